//! Every sample of every page: its language decides how it is checked, and a sample that no check takes fails.

use super::help::words;
use crate::support::Case;
use crate::support::agent::Script;
use crate::support::machine::not_checked;
use crate::support::schema::check_frame;
use serde_json::{Value, json};
use spektacular::cli;
use spektacular::cmd::COMMANDS;
use spektacular::protocol::inbound::{self, Message};
use spektacular::protocol::messages::{FRAMES, MESSAGES};
use spektacular::protocol::publish::Client;
use spektacular::workflow::{plan, spec};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");
/// The tag of a block that is indented and not fenced.
const INDENTED: &str = "indented";

/// A block of a page.
#[derive(Debug)]
struct Sample {
    /// The page and the line, for the message of a failure.
    place: String,
    /// The words behind the fence.
    tag: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages: all Markdown of the project except the texts that spektacular itself gives to agents and projects.
fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (vec![root().join("README.md")], vec![root().join("src"), root().join(".github")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().unwrap().to_str().unwrap() {
                "prompts" | "init" | "skills" => {}
                _ if path.is_dir() => folders.push(path),
                name if name.ends_with(".md") => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The samples of a page. A fence inside a longer one is a part of that sample.
#[track_caller]
fn samples(page: &Path) -> Vec<Sample> {
    let name = page.strip_prefix(root()).unwrap().display();
    let (mut found, mut fence, mut before): (Vec<Sample>, Option<&str>, &str) = (Vec::new(), None, "");
    let text = fs::read_to_string(page).unwrap();
    for (number, line) in text.lines().enumerate() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        let begins =
            |tag: &str| Sample { place: format!("{name}:{}", number + 1), tag: tag.to_owned(), text: String::new() };
        match fence {
            Some(open) if line == open => fence = None,
            None if ticks.len() >= 3 => {
                fence = Some(ticks);
                found.push(begins(&line[ticks.len()..]));
            }
            None if line.starts_with("    ") && before.is_empty() => {
                found.push(begins(INDENTED));
                found.last_mut().unwrap().text = line[4..].to_owned() + "\n";
            }
            None if !line.starts_with("    ") || found.last().is_none_or(|last| last.tag != INDENTED) => {}
            Some(_) | None => {
                found.last_mut().unwrap().text +=
                    &(line.strip_prefix("    ").filter(|_| fence.is_none()).unwrap_or(line).to_owned() + "\n")
            }
        }
        before = line;
    }
    assert!(fence.is_none(), "{name}: a fence is open at the end");
    found
}

/// All samples with these tags.
#[track_caller]
fn tagged(tags: &[&str]) -> Vec<Sample> {
    let all: Vec<Sample> = pages().iter().flat_map(|page| samples(page)).collect();
    let found: Vec<Sample> = all.into_iter().filter(|sample| tags.contains(&sample.tag.as_str())).collect();
    assert!(!found.is_empty(), "no page has a sample with one of the tags {tags:?}");
    found
}

/// A command in a sandbox that has this program on PATH, with an empty stdin.
fn command(case: &Case, program: &str) -> Command {
    let mut command = case.command(program);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", case.path("bin").display())).stdin(Stdio::null());
    command
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn every_sample_has_a_language_that_a_test_checks() {
    let checked = [JSON, &["python", "sh", "console", "text", "", "markdown", INDENTED]].concat();
    for sample in pages().iter().flat_map(|page| samples(page)) {
        assert!(checked.contains(&sample.tag.as_str()), "{}: no test checks {:?}", sample.place, sample.tag);
        assert!(!sample.text.trim().is_empty(), "{}: an empty sample", sample.place);
    }
}

const JSON: &[&str] = &["json", "jsonl", "json in", "json out", "json dialogue"];

/// A message is one that the program understands, a frame fits the schema, and any other value is a configuration, some
/// of its agents, or a policy.
#[test]
fn the_program_takes_every_sample_in_json() {
    for Sample { place, tag, text } in tagged(JSON) {
        let spoken = text.replace("\n> ", "\n").replace("\n< ", "\n");
        let values = serde_json::Deserializer::from_str(spoken.trim_start_matches(['>', '<'])).into_iter::<Value>();
        let values: Vec<Value> = values.map(|value| value.unwrap_or_else(|why| panic!("{place}: {why}"))).collect();
        assert!(tag != "jsonl" || values.len() == text.lines().count(), "{place}: a message is one line");
        for value in values {
            let kind = value["type"].as_str().unwrap_or_default();
            if FRAMES.iter().any(|frame| frame.name == kind) {
                is_frame(&place, value);
            } else if MESSAGES.iter().any(|message| message.name == kind) {
                let read = inbound::parse(value.to_string().as_bytes()).unwrap().message;
                let is_good = !matches!(read, Message::Malformed(_) | Message::Unsupported | Message::UnknownType(_));
                assert!(is_good, "{place}: {value}: {read:?}");
            } else {
                is_configured(&place, &value);
            }
        }
    }
}

#[track_caller]
fn is_frame(place: &str, mut frame: Value) {
    // Most samples omit the envelope.
    for (field, text) in [("v", "1"), ("id", "msg_1"), ("ts", "2026-02-20T10:00:00.040Z"), ("run_id", "r")] {
        frame.as_object_mut().unwrap().entry(field).or_insert(json!(text));
    }
    check_frame(&frame).unwrap_or_else(|why| panic!("{place}: {why}"));
}

#[track_caller]
fn is_configured(place: &str, value: &Value) {
    let forms = [value.clone(), json!({"agents": value}), json!({"permissions": value})];
    let said = forms.map(|form| {
        let case = Case::new().file("home/.config/spektacular/config.json", &form.to_string());
        let did = case.run(&["config", "list"]);
        (did.code == Some(0) && did.err.is_empty()).then_some(()).ok_or(did.err)
    });
    assert!(said.iter().any(Result::is_ok), "{place}: nothing takes {value}: {said:?}");
}

#[test]
fn every_client_on_a_page_passes_the_check() {
    for (tag, interpreter) in [("python", "python3"), ("sh", "sh")] {
        if Command::new(interpreter).args(["-c", ""]).output().is_err() {
            not_checked("the clients on the pages", &format!("{interpreter} is not installed"));
            continue;
        }
        for Sample { place, text, .. } in tagged(&[tag]) {
            let case = Case::new().link("bin/spektacular", PROGRAM).file("client", &text);
            let case = case.file("spektacular.py", &Client::Python.file());
            let mut check = command(&case, PROGRAM);
            check.args(["protocol", "check", "--", interpreter]).arg(case.path("client")).args(["demo", "go"]);
            let done = check.output().unwrap();
            assert!(done.status.success(), "{place}: {}", said(&done));
        }
    }
}

/// Makes times such as `(0.1s)` equal, because they differ from run to run.
fn without_times(text: &str) -> String {
    regex_lite::Regex::new(r"\([0-9]+\.[0-9]s\)").unwrap().replace_all(text, "(0.0s)").into_owned()
}

#[test]
fn every_session_on_a_page_is_a_real_one() {
    for Sample { place, text, .. } in tagged(&["console"]) {
        let case = Case::new().link("bin/spektacular", PROGRAM);
        let steps: Vec<&str> = text.strip_prefix("$ ").unwrap().split("\n$ ").collect();
        for step in steps {
            let (line, wanted) = step.split_once('\n').unwrap();
            let line = line.replace(" /tmp ", &format!(" {} ", case.path("tmp").display()));
            let done = command(&case, "sh").args(["-c", &line]).output().unwrap();
            assert_eq!(without_times(said(&done).trim_end()), wanted.trim_end(), "{place}: {line}");
        }
    }
}

/// A text is an output of the program, a recorded one, or a marker by which an agent asks.
#[test]
fn every_text_on_a_page_is_a_real_one() {
    for Sample { place, text, .. } in tagged(&["text", ""]) {
        let shown = match text.strip_prefix("$ ").and_then(|text| text.split_once('\n')) {
            Some((line, shown)) => {
                parses(&place, line);
                shown
            }
            None => &text,
        };
        if text.starts_with("<!--QUESTION:") {
            let mut asked = Case::with(Script::new().say("m_1", text.trim()).done(&text)).spawn();
            asked.start(json!({"prompt": "go"}));
            assert_eq!(asked.until("run.question").payload()["kind"], "select", "{place}");
            asked.cancel();
            asked.finish().cancelled();
        } else {
            let recorded = fs::read_to_string(root().join("testdata/screens/run/log.txt")).unwrap();
            assert!([Case::new().run(&["help"]).out, recorded].contains(&shown.to_owned()), "{place}: {shown}");
        }
    }
}

#[test]
fn every_specification_and_plan_on_a_page_keeps_the_rules() {
    for Sample { place, text, .. } in tagged(&["markdown"]) {
        let broken = if text.starts_with("# Plan: ") {
            plan::read(text.as_bytes()).violations("p.md", &[]).1
        } else {
            spec::check("s.md", text.as_bytes(), &[]).1
        };
        assert!(broken.is_empty(), "{place}: {broken:?}");
    }
}

/// The parser takes the words of each command of ours in a line. A text may leave a word out or have a placeholder.
#[track_caller]
fn parses(place: &str, line: &str) {
    for part in line.split('|').filter(|part| part.contains("spektacular ")) {
        let words = words(part);
        let placeholders = words.iter().filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()));
        let unknown: Vec<String> = placeholders.map(|word| format!(" {word}. ")).collect();
        if let Err(why) = cli::parse(COMMANDS, words.iter().map(OsString::from)) {
            let is_placeholder = why.starts_with("Unknown ") && unknown.iter().any(|name| why.contains(name));
            assert!(is_placeholder || why.starts_with("Missing "), "{place}: {line}: {why}");
        }
    }
}

#[test]
fn the_parser_takes_every_command_on_a_page() {
    for Sample { place, text, .. } in tagged(&[INDENTED]) {
        let done = Command::new("sh").args(["-nc", &text]).output().unwrap();
        assert!(done.status.success(), "{place}: {}", said(&done));
        for line in text.lines() {
            // The program without an installation.
            let line = line.replace("cargo run --release -- ", "spektacular ");
            if line.starts_with("spektacular ") || line.contains("| spektacular ") {
                parses(&place, &line);
            }
        }
    }
    let mut commands = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for code in text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("spektacular ")) {
            parses(&page.display().to_string(), code.trim_end_matches("..."));
            commands += 1;
        }
    }
    assert!(commands > 50, "{commands} commands in the texts");
}

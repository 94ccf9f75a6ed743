//! Each kind of input that is read outside the steps of a run costs linear time: files, typed values, texts.

use crate::growth::is_steep;
use crate::inside::Allocated;
use crate::world::World;
use allocation_counter::measure;
use serde_json::value::RawValue;
use spektacular::agent::registry::Agents;
use spektacular::clean::{Cleaner, whole};
use spektacular::cli::typed_fields;
use spektacular::config::{self, Places};
use spektacular::engine::Script;
use spektacular::protocol::request::Options;
use spektacular::recording::Recording;
use spektacular::workflow::template::{PromptKind, expanded};
use spektacular::workflow::{plan, spec};
use std::ffi::OsString;
use std::fs;
use std::process::Command;

/// A kind of input.
struct Part {
    name: &'static str,
    /// The amount for the first of three calls. The others get twice and four times as much.
    first: usize,
    /// Prepares this amount, and returns the work to count.
    make: fn(usize) -> Box<dyn FnOnce()>,
}

const PARTS: &[Part] = &[
    Part { name: "lines of stderr", first: 500, make: |n| stderr((0..n).map(|line| format!("line {line}")).collect()) },
    Part { name: "lines of stderr that end inside a secret", first: 2000, make: |n| stderr(vec![ENDLESS.into(); n]) },
    Part { name: "stderr of an unfinished secret", first: 500, make: |n| stderr(unfinished(n)) },
    Part { name: "answers in a file", first: 500, make: answers_of_file },
    Part { name: "answers in flags", first: 500, make: answers_of_flags },
    Part { name: "agents of a configuration", first: 200, make: |n| configured(agents(n), String::new()) },
    Part { name: "agents of two layers", first: 200, make: |n| configured(agents(n), agents(n)) },
    Part { name: "repeated keys of a configuration", first: 500, make: |n| configured(models(n), String::new()) },
    Part { name: "keys of an untrusted project", first: 500, make: |n| configured(String::new(), agents(n)) },
    Part { name: "environment variables", first: 100, make: environment },
    Part { name: "a permission map", first: 500, make: permissions },
    Part { name: "typed permissions", first: 500, make: typed_permissions },
    Part { name: "typed MCP servers", first: 200, make: typed_servers },
    Part { name: "placeholders of a prompt", first: 2000, make: |n| template("{{failure}} {{user}} ".repeat(n)) },
    Part { name: "braces of a prompt", first: 2000, make: |n| template("{{".repeat(n)) },
    Part { name: "names that are no placeholders", first: 2000, make: |n| template("{{a".repeat(n)) },
    Part { name: "escapes that are cleaned", first: 2000, make: |n| cleaned("\u{1b}[1;31mred\u{1b}[0m\r\n".repeat(n)) },
    Part { name: "controls that are cleaned", first: 2000, make: |n| cleaned("\u{202e}\u{7}\u{9b}".repeat(n)) },
    Part { name: "an unfinished escape", first: 2000, make: |n| cleaned(format!("\u{1b}]{}", "0;x\u{1b}".repeat(n))) },
    Part { name: "lines of a recording", first: 500, make: recorded },
    Part { name: "requirements of a specification", first: 200, make: specification },
    Part { name: "tasks of a plan", first: 200, make: planned },
];

/// A secret that ends where the next one begins, so that the end of a line always waits for more text.
const ENDLESS: &str = "-----END RSA PRIVATE KEY----------BEGIN RSA PRIVATE KEY-----";

fn unfinished(lines: usize) -> Vec<String> {
    let body = (0..lines).map(|line| format!("MIIEowIBAAKCAQEA{line}"));
    std::iter::once("-----BEGIN RSA PRIVATE KEY-----".to_owned()).chain(body).collect()
}

fn stderr(lines: Vec<String>) -> Box<dyn FnOnce()> {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    world.hear(r#"{"v":"1","type":"run.start","payload":{"prompt":"Go on"}}"#);
    world.spawn();
    let lines: Vec<String> = lines.into_iter().map(|line| line + "\n").collect();
    Box::new(move || lines.iter().for_each(|line| world.conductor().stderr_text(line)))
}

fn answers_of_file(count: usize) -> Box<dyn FnOnce()> {
    let answers: Vec<String> = (0..count).map(|number| format!(r#""question {number}":"answer""#)).collect();
    let text = format!("{{{}}}", answers.join(","));
    Box::new(move || assert!(!Script::read(&text).unwrap().is_empty()))
}

fn answers_of_flags(count: usize) -> Box<dyn FnOnce()> {
    let answers = (0..count).map(|number| (format!("question {}", number / 2), "answer".to_owned())).collect();
    Box::new(move || Script::default().add_typed(answers))
}

fn agents(count: usize) -> String {
    let all: Vec<String> =
        (0..count).map(|number| format!(r#""agent{number}":{{"driver":"acp","command":"x"}}"#)).collect();
    format!(r#"{{"agents":{{{}}}}}"#, all.join(","))
}

/// A configuration that repeats one agent `count` times.
fn models(count: usize) -> String {
    format!(r#"{{"agents":{{{}}}}}"#, vec![r#""claude":{"model":"m"}"#; count].join(","))
}

fn configured(user: String, project: String) -> Box<dyn FnOnce()> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        (!text.is_empty()).then(|| fs::write(&path, text).unwrap()).map(|()| path)
    };
    let places = Places {
        user: file("user.json", &user),
        project: file("project.json", &project),
        trusted: None,
        folder: folder.path().to_owned(),
        old: None,
    };
    Box::new(move || {
        let loaded = config::load_from(&places, std::iter::empty());
        loaded.config.layers();
        loaded.config.names();
        drop(folder);
    })
}

fn environment(count: usize) -> Box<dyn FnOnce()> {
    let pair = |number| (OsString::from(format!("SPEKTACULAR_X{number}")), OsString::from("x"));
    let variables: Vec<_> = (0..count).map(pair).collect();
    let places = Places { user: None, project: None, trusted: None, folder: "/".into(), old: None };
    Box::new(move || drop(config::load_from(&places, variables.into_iter())))
}

fn permissions(count: usize) -> Box<dyn FnOnce()> {
    let all: Vec<String> = (0..count).map(|number| format!(r#""category{number}":"allow""#)).collect();
    let raw = RawValue::from_string(format!("{{{}}}", all.join(","))).unwrap();
    Box::new(move || assert!(Options::default().set("permissions", &raw).is_err()))
}

fn typed_permissions(count: usize) -> Box<dyn FnOnce()> {
    let all: Vec<String> = (0..count).map(|number| format!("category{number}=allow")).collect();
    let text = all.join(",");
    Box::new(move || assert!(typed_fields::value("permissions", &text).is_err()))
}

fn typed_servers(count: usize) -> Box<dyn FnOnce()> {
    let all: Vec<String> = (0..count).map(|number| format!(r#""server{number}":{{"command":"x"}}"#)).collect();
    let text = format!(r#"{{"mcpServers":{{{}}}}}"#, all.join(","));
    Box::new(move || assert!(typed_fields::value("mcp_servers", &text).is_ok()))
}

#[track_caller]
fn template(text: String) -> Box<dyn FnOnce()> {
    Box::new(move || {
        let _ = PromptKind::Retry.check(&text);
        assert!(expanded(&text, |_| Some("value")).len() >= text.len() / 4);
    })
}

#[track_caller]
fn cleaned(text: String) -> Box<dyn FnOnce()> {
    Box::new(move || {
        let mut cleaner = Cleaner::default();
        let pieces: usize = text.split_inclusive('\n').map(|piece| cleaner.push(piece).len()).sum();
        assert!(pieces <= 8 * text.len() && whole(&text).len() <= 8 * text.len());
    })
}

fn recorded(count: usize) -> Box<dyn FnOnce()> {
    let head = r#"{"recording":1,"driver":"claude","agent_version":"1","argv":[]}"#;
    let text = format!("{head}\n{}", "{\"at_ms\":1,\"agent\":\"a line\"}\n".repeat(count));
    Box::new(move || assert!(Recording::parse(&text).is_ok()))
}

fn specification(count: usize) -> Box<dyn FnOnce()> {
    let all: String = (1..=count).map(|number| format!("- [ ] R{number} It does {number}.\n")).collect();
    let text = format!("# Specification: Many\n\n## Summary\n\nIt does.\n\n## Requirements\n\n{all}");
    Box::new(move || drop(spec::check("many.md", text.as_bytes(), &[])))
}

fn planned(count: usize) -> Box<dyn FnOnce()> {
    let all: String = (1..=count).map(|number| format!("- [ ] T1.{number} Task (R{number})\n")).collect();
    let text = format!("# Plan: Many\nSpec: many.md\n\n## Phase 1: All\n\n{all}\n### Verify\n\n```sh\ntrue\n```\n");
    Box::new(move || drop(plan::read(text.as_bytes()).violations("plan.md", &[])))
}

#[track_caller]
fn check(counted: impl Fn(&Part, usize) -> u64) {
    let steep =
        PARTS.iter().filter(|part| is_steep(part.name, [1, 2, 4].map(|times| counted(part, part.first * times))));
    let steep: Vec<&str> = steep.map(|part| part.name).collect();
    assert!(steep.is_empty(), "the work grows faster than the input: {steep:?}");
}

#[test]
fn allocated_memory_of_other_input_grows_as_the_input_does() {
    check(|part, size| {
        let work = (part.make)(size);
        let counted = measure(work);
        Allocated { count: counted.count_total, bytes: counted.bytes_total, ..Allocated::default() }.work()
    });
}

/// For a process under valgrind: the kind of input and its size, separated by a space.
const CHILD: &str = "COUNT_PART";

/// Allocations do not show that each part of an input is compared with all others. Instructions do.
#[test]
#[ignore = "needs valgrind: .ci/run"]
fn instructions_of_other_input_grow_as_the_input_does() {
    let child = std::env::var(CHILD).ok();
    if let Some((size, name)) = child.as_deref().and_then(|text| text.split_once(' ')) {
        let part = PARTS.iter().find(|part| part.name == name).unwrap();
        return (part.make)(size.parse().unwrap())();
    }
    check(|part, size| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("valgrind.log");
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(format!("--log-file={}", log.display()));
        command.arg(std::env::current_exe().unwrap()).args(["--ignored", "instructions_of_other_input"]);
        let out = command.env(CHILD, format!("{size} {}", part.name)).output().unwrap();
        assert!(out.status.success(), "{}: {}", part.name, String::from_utf8_lossy(&out.stdout));
        crate::instructions::instructions_in(&fs::read_to_string(log).unwrap())
    });
}

//! Help, completions and the manual page agree with the parser, because all of them come from one table.

use crate::support::Case;
use crate::support::machine::not_checked;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use spektacular::cli::row::{FlagForm, HELP};
use spektacular::cli::{self, Request};
use spektacular::cmd::{COMMANDS, command};
use spektacular::help::complete::{ARGUMENT, Shell};

/// The output of a command that writes nothing to stderr.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let did = Case::new().run(args);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{args:?}");
    did.out
}

/// The error for a command line.
#[track_caller]
fn wrong(args: &[&str]) -> String {
    let did = Case::new().run(args);
    let text = did.refused(2);
    text.strip_prefix("spektacular: usage: ").unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn parse(args: &[&str]) -> Result<Request, String> {
    cli::parse(COMMANDS, args.iter().map(OsString::from))
}

/// The long flags that a text mentions.
fn flags_in(text: &str) -> BTreeSet<String> {
    let name = |part: &str| part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect::<String>();
    text.split("--").skip(1).map(name).filter(|name| name.len() > 1 && !name.starts_with('-')).collect()
}

/// A text without its line breaks.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_has_a_short_and_a_long_help_with_all_its_flags() {
    for command in COMMANDS {
        let (short, long) = (printed(&[command.name, "-h"]), printed(&[command.name, "--help"]));
        assert_eq!(printed(&["help", command.name]), long);
        assert_eq!(printed(&["--help", command.name]), long);
        for text in [&short, &long] {
            assert!(text.starts_with(command.text.about), "{text}");
            assert!(text.contains(&format!("Usage: spektacular {}", command.name)), "{text}");
            for flag in command.all_flags() {
                // A long page has only the names of some flags.
                if text.contains(&format!(" --{} --", flag.long)) || text.contains(&format!(" --{}\n", flag.long)) {
                    continue;
                }
                let mut lines = text.lines().map(str::trim_start);
                let letter = flag.short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
                let value = match flag.value {
                    FlagForm::Attached => format!("[={}]", flag.metavar),
                    _ => format!(" {}", flag.metavar),
                };
                let usage = format!("{letter}--{}{value}", flag.long);
                assert!(lines.any(|line| line.starts_with(usage.trim_end())), "{}: no {usage}", command.name);
            }
        }
        for (line, what) in command.text.examples {
            assert!(long.contains(line) && words_of(&long).contains(what), "{long}");
        }
        if command.flags.is_empty() {
            continue;
        }
        let all = printed(&["help", command.name, "flags"]);
        for text in [&short, &long, &all] {
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{}: a line is long", command.name);
        }
        assert!(long.lines().count() <= 100, "{}: more than a page", command.name);
        for flag in command.flags {
            let one = printed(&["help", command.name, flag.long]);
            assert!(all.contains(&one), "{one}");
            let default = flag.fallback();
            let facts = flag.values.iter().copied().chain([default.as_str()]).chain(flag.more.lines());
            for fact in facts {
                assert!(words_of(&one).contains(fact), "{}: no {fact}", flag.long);
            }
        }
    }
}

#[test]
fn every_page_of_the_reference_is_printed() {
    let pages = [
        ("acp", include_str!("../../../src/acp/reference.md")),
        ("config", include_str!("../../../src/config/reference.md")),
        ("agents", include_str!("../../../src/agent/reference.md")),
        ("spec", include_str!("../../../src/workflow/reference.md")),
    ];
    for (name, page) in pages {
        assert!(page.starts_with("# ") && page.ends_with('\n'), "{name}");
        assert_eq!(printed(&["help", name, "reference"]), page);
        let long = printed(&["help", name]);
        assert!(!long.contains(page) && long.contains(&format!("`spektacular help {name} reference`")), "{name}");
        assert!(!printed(&[name, "-h"]).contains(page), "the short help of {name} has its page");
    }
    assert_eq!(printed(&["protocol"]), include_str!("../../../src/protocol/reference.md"));
}

#[test]
fn flags_are_grouped() {
    for command in COMMANDS.iter().filter(|command| !command.flags.is_empty()) {
        assert!(command.flags[0].group.is_some(), "{} begins without a group", command.name);
        let titles: Vec<&str> = command.all_flags().filter_map(|flag| flag.group).collect();
        assert_eq!(titles.len(), titles.iter().collect::<BTreeSet<_>>().len(), "{titles:?}");
        let names: BTreeSet<&str> = command.all_flags().map(|flag| flag.long).collect();
        assert_eq!(names.len(), command.all_flags().count(), "a flag of {} stands twice", command.name);
        let letters: Vec<char> = command.all_flags().filter_map(|flag| flag.short).collect();
        assert_eq!(letters.len(), letters.iter().collect::<BTreeSet<_>>().len(), "{letters:?}");
    }
}

#[test]
fn the_overview_names_every_command() {
    let text = printed(&["--help"]);
    assert_eq!(printed(&["help"]), text);
    assert_eq!(printed(&["-h"]), text);
    for command in COMMANDS {
        assert!(text.contains(&format!("\n  {} ", command.name)) && text.contains(command.text.about), "{text}");
    }
}

/// The words of an example, split as by a shell, from the program's name to the next shell operator.
pub(super) fn words(line: &str) -> Vec<String> {
    let line = &line[line.find("spektacular ").unwrap()..];
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' | '\'' => inside = !inside,
            '|' | '>' | ')' if !inside => break,
            ' ' if !inside => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words.split_off(1)
}

#[test]
fn the_parser_accepts_every_example() {
    for (line, _) in COMMANDS.iter().flat_map(|command| command.text.examples) {
        let parsed = cli::parse(COMMANDS, words(line).into_iter().map(OsString::from));
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
    }
}

#[test]
fn the_values_that_are_listed_are_the_values_that_are_taken() {
    for flag in command("adhoc").unwrap().flags.iter().filter(|flag| !flag.values.is_empty()) {
        let long = format!("--{}", flag.long);
        for value in flag.values {
            assert!(parse(&["adhoc", &long, value]).is_ok(), "{long} {value}");
        }
        let why = parse(&["adhoc", &long, "zq-bad-7731"]).unwrap_err();
        for value in flag.values {
            assert!(why.contains(value), "{why} lacks {value}");
        }
        assert!(!why.contains("zq-bad-7731"), "{why}");
    }
    for (flag, default) in [("agent", "claude"), ("permissions", "ask"), ("idle-timeout", "600")] {
        let found = command("adhoc").unwrap().flags.iter().find(|known| known.long == flag).unwrap();
        assert_eq!(found.fallback(), default);
    }
}

#[test]
fn a_typo_gets_a_suggestion() {
    for (args, meant) in [
        (&["adhco"][..], "Unknown command adhco. Did you mean adhoc?"),
        (&["help", "reply"], "Did you mean replay?"),
        (&["adhoc", "--promt", "x"], "Unknown flag --promt. Did you mean --prompt?"),
        (&["adhoc", "--answr", "x"], "Did you mean --answer?"),
        (&["completions", "bsh"], "Did you mean bash?"),
        (&["config", "--glob", "list"], "Unknown flag --glob. Did you mean --global?"),
        (&["config", "--zzz", "list"], "Unknown flag --zzz. `spektacular help config` lists the flags."),
        (&["man", "--hlep"], "Unknown flag --hlep. Did you mean --help?"),
        (&["adhoc", "--max turns/", "x"], "Unknown flag --max?turns?. Did you mean --max-turns?"),
        (&["adhoc", "-x"], "Unknown flag -x. `spektacular help adhoc` lists the flags."),
        (&["--hlep"], "Unknown flag --hlep. Did you mean --help?"),
        (&["--agent", "claude", "hi"], "--agent must follow a command: spektacular adhoc --agent."),
        (&["-m", "x"], "-m must follow a command: spektacular adhoc -m."),
        (&["adhoc", "--yes=private", "x"], "--yes takes no value."),
        (&["fix the test"], "Unknown command. To run a task: spektacular adhoc \"TASK\"."),
        (&["resume"], "Unknown command resume. Use adhoc --continue, or adhoc --resume ID."),
        (&["adhoc", "-r", "x"], "Unknown flag -r. Use --resume."),
        (&["adhoc", "--r", "x"], "Unknown flag --r. `spektacular help adhoc` lists the flags."),
        (&["adhoc", "--version"], "Unknown flag --version. Use spektacular --version."),
        (&["adhoc", "--output", "jsn", "x"], "--output must be cli or json. Did you mean json?"),
        (
            &["adhoc", "--progress", "nromal", "x"],
            "--progress must be one of \"minimal\", \"normal\", \"full\". Did you mean normal?",
        ),
        (&["adhoc", "--model"], "--model needs a value: --model NAME."),
        (&["adhoc", "--resume"], "--resume needs a value: --resume ID."),
        (&["adhoc", "-f"], "-f needs a value: -f FILE."),
        (&["adhoc", "--env", "1A=private", "x"], "--env must be NAME=VALUE, with a NAME of letters"),
        (&["replay"], "Missing FILE"),
        (&["export"], "Missing SESSION"),
        (&["export", "a", "b"], "Too many words"),
        (&["ask-server", "private"], "ask-server takes no arguments."),
    ] {
        let why = wrong(args);
        assert!(why.contains(meant), "{args:?}: {why}");
        assert!(!why.contains("private"), "{args:?}: {why}");
    }
    let case = Case::new();
    let why = case.run(&["adhoc", "--agent", "cluade", "x"]).err;
    assert!(why.contains("Unknown agent cluade (from --agent). Did you mean claude?"), "{why}");
    assert_eq!(fs::read_dir(case.work()).unwrap().count(), 0, "a refused run left a file");
}

#[test]
fn without_a_command_the_error_lists_the_commands() {
    let did = Case::new().run(&[]);
    assert_eq!((did.code, did.out.as_str()), (Some(2), ""), "{did:?}");
    assert_eq!(did.err, format!("spektacular: usage: Missing command.\n{}", spektacular::help::overview(COMMANDS)));
}

#[test]
fn meaningless_words_are_refused() {
    for args in [
        &["--version", "x"][..],
        &["-V", "--help"],
        &["protocol", "zq-bad-7731 "],
        &["protocol", "examples", "x"],
        &["man", "x"],
        &["help", "adhoc", "replay"],
        &["help", "zq-bad-7731 "],
        &["completions"],
        &["completions", "bash", "zsh"],
        &["completions", "zq-bad-7731"],
        &["--help", "--output"],
        &["man", "--output", "json"],
    ] {
        let why = wrong(args);
        assert!(!why.contains("zq-bad-7731"), "{why}");
    }
}

#[test]
fn the_manual_page_shows_values_as_they_are_typed_and_links_as_their_words() {
    let page = printed(&["man"]).replace("\\-", "-");
    for line in ["POLICY is ask, allow or deny", "ask: the agent asks", "cli for a person", "jsonl: read messages"] {
        assert!(page.contains(&format!("\n{line}")), "{line}: {page}");
    }
    assert!(page.contains("\nThe task.") && page.contains("see workflows (") && !page.contains("]("), "{page}");
}

#[test]
fn every_flag_is_offered_and_in_the_manual_page() {
    let page = printed(&["man"]).replace("\\-", "-");
    for command in COMMANDS {
        let offered = completed(&Case::new(), "--", &[command.name]);
        for flag in command.all_flags() {
            let spelled = format!("--{}", flag.long);
            assert!(offered.contains(&spelled), "{} does not offer {spelled}", command.name);
            assert!(flag.long == HELP.long || flags_in(&page).contains(flag.long), "the manual page lacks {spelled}");
        }
    }
    let commands = completed(&Case::new(), "", &[]);
    assert!(COMMANDS.iter().all(|command| commands.iter().any(|word| word == command.name)), "{commands:?}");
    for (name, shell) in Shell::WORDS.iter().zip(Shell::ALL) {
        assert_eq!(printed(&["completions", name]), shell.script());
        assert!(shell.script().contains(ARGUMENT), "{name}");
    }
}

/// The words that the program offers for `word` behind the words `before`.
#[track_caller]
fn completed(case: &Case, word: &str, before: &[&str]) -> Vec<String> {
    let word = format!(".{word}");
    let args: Vec<&str> = [ARGUMENT, &word].into_iter().chain(before.iter().copied()).collect();
    let did = case.run(&args);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{args:?}");
    did.out.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

/// A project with an agent of its own, a session, a plan, a draft and a specification.
fn furnished() -> Case {
    Case::new()
        .file("home/.config/spektacular/config.json", r#"{"agents":{"mine":{"driver":"acp","command":"mine"}}}"#)
        .file("work/.spektacular/local/sessions/mine", "ses_7\t1\tit's [a] \"$(touch hacked)\" `touch hacked`: \\n;\n")
        .file("work/.spektacular/specs/quick-start.md", "")
        .file("work/.spektacular/plans/quick-start/plan.md", "")
        .file("work/.spektacular/plans/quieter.draft/plan.md", "")
}

#[test]
fn completions_are_those_of_the_moment() {
    let case = furnished();
    let rows: [(&str, &[&str], &[&str]); 25] = [
        ("ad", &[], &["adhoc"]),
        ("--permi", &["run"], &["--permissions"]),
        ("", &["adhoc", "--output"], &["cli", "json"]),
        ("j", &["adhoc", "--output", "="], &["json"]),
        ("--output=j", &["adhoc"], &["--output=json"]),
        ("mi", &["adhoc", "-a"], &["mine"]),
        ("", &["adhoc", "-C"], &[":folders"]),
        ("s", &["adhoc", "--answers"], &[":files"]),
        ("", &["adhoc", "--model"], &[]),
        ("--o", &["adhoc", "--"], &[]),
        ("se", &["open", "--resume"], &["ses_7"]),
        ("", &["export"], &["ses_7"]),
        ("q", &["plan"], &["quick-start"]),
        ("q", &["implement"], &["quick-start"]),
        ("./", &["implement"], &[":files"]),
        ("c", &["plan"], &["check"]),
        ("q", &["plan", "check"], &["quick-start"]),
        ("rep", &["help"], &["replay", "report"]),
        ("un", &["config"], &["unset"]),
        ("fail", &["config", "get"], &["fail_on_denied"]),
        ("mi", &["config", "--output", "json", "set", "agent"], &["mine"]),
        ("mi", &["agents", "check", "--all"], &["mine"]),
        ("", &["adhoc", "--mode"], &["plan"]),
        ("", &["adhoc", "-a", "codex", "--mode"], &["default", "plan"]),
        ("b", &["run", "--agent=opencode", "--mode", "="], &["build"]),
    ];
    let before = case.listing();
    for (word, words, wanted) in rows {
        assert_eq!(completed(&case, word, words), wanted, "{words:?} {word}");
    }
    assert_eq!(case.listing(), before, "completions change nothing");
    // Nothing is wrong enough to disturb a shell.
    let broken = Case::new().file("home/.config/spektacular/config.json", "{");
    assert!(completed(&broken, "cla", &["open", "-a"]).contains(&"claude".to_owned()));
    assert_eq!(broken.run(&[ARGUMENT]).code, Some(0));
}

/// The output of a program that checks a text. `None`: the program is not installed.
fn checked_by(program: &str, args: &[&str], text: &str) -> Option<Output> {
    let child = Command::new(program)
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        not_checked(&format!("our output by {program}"), "it is not installed");
        return None;
    };
    let (mut stdin, text) = (child.stdin.take().unwrap(), text.to_owned());
    // A writer of more than a pipe holds must not wait for a reader.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(output)
}

#[test]
fn the_manual_page_is_roff() {
    let page = printed(&["man"]);
    assert!(page.starts_with(".TH SPEKTACULAR 1 "));
    for code in spektacular::protocol::failure::Code::ALL {
        assert!(page.contains(code.name()), "{}", code.name());
    }
    // A line that begins with a dot is a request. These are all the requests that the page uses.
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        let known = [".TH", ".nh", ".ad", ".SH", ".SS", ".TP", ".IP", ".PP", ".RS", ".RE", ".nf", ".fi", ".br", ".B"];
        assert!(known.contains(&line.split(' ').next().unwrap()), "{line}");
    }
    if let Some(output) = checked_by("man", &["-l", "--warnings=w", "-"], &page) {
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "man warns");
        let text = String::from_utf8_lossy(&output.stdout);
        for title in ["LAYERS", "FILES", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"] {
            assert!(text.contains(&format!("\n{title}\n")), "the manual page lacks {title}");
        }
        for literal in ["--permissions", "~/.config/spektacular/config.json", "'read=allow,edit=allow,*=ask'"] {
            assert!(text.contains(literal), "the manual page does not show {literal} as it is typed");
        }
    }
}

#[test]
fn flags_of_other_programs_work_or_name_ours() {
    for (typed, meant) in [
        (&["run", "-y", "-c", "task"][..], &["adhoc", "--yes", "--continue", "task"][..]),
        (&["exec", "--resume", "id", "task"], &["adhoc", "--session", "id", "task"]),
        (&["adhoc", "--json", "-f", "task.md"], &["adhoc", "--output", "json", "--prompt-file", "task.md"]),
        (&["open", "-y", "--resume", "id"], &["open", "--yes", "--session", "id"]),
    ] {
        assert!(matches!(parse(typed), Ok(Request::Start(_))), "{typed:?}: {:?}", parse(typed));
        assert!(matches!(parse(meant), Ok(Request::Start(_))), "{meant:?}: {:?}", parse(meant));
    }
    for (flag, ours) in [
        ("--dangerously-skip-permissions", "Use --yes"),
        ("--yolo", "Use --yes"),
        ("--permission-mode", "Use --permissions"),
        ("--output-format", "Use --output"),
        ("--mcp-config", "Use --mcp-servers"),
        ("--print", "adhoc prints the answer and exits"),
        ("--last", "Use --continue"),
    ] {
        let why = wrong(&["adhoc", flag, "private"]);
        assert!(why.starts_with(&format!("Unknown flag {flag}. ")) && why.contains(ours), "{why}");
        assert!(!why.contains("private"), "{why}");
    }
    assert!(Case::new().run(&["run", "--yolo", "--json"]).out.contains("\"type\":\"run.failed\""));
}

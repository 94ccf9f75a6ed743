//! Every form of a screen, character for character, at three widths: testdata/screens/FORM/COLUMNS.txt, and log.txt for
//! a run without a terminal. `UPDATE_GOLDEN=1 cargo test --test suite screens` rewrites them.
//!
//! `⏎` ends a row that the terminal broke because the program did not.

use serde_json::json;
use std::fs;
use std::path::Path;

use super::codex::Codex;
use super::edits::{edited, edits, failed};
use super::showing::{TASKS, WAITS, lets_it_go_on, plan as planned};
use super::{waits_for_a_second, without_times};
use crate::agents::golden::report;
use crate::playback::normal::difference;
use crate::support::agent::{Script, bash, can_use, question};
use crate::support::person::Person;
use crate::support::{Case, in_time};

/// A screen, and the way in which a person reaches it.
struct Form {
    name: &'static str,
    case: fn() -> Case,
    args: &'static [&'static str],
    /// A text to wait for, and the answer to the prompt after it.
    answers: &'static [(&'static str, &'static str)],
    /// The text to wait for on a screen that shows a run in progress.
    during: Option<&'static str>,
}

const RUN: Form = Form { name: "", case: Case::new, args: &["adhoc", "go"], answers: &[], during: None };
const CODEX: &[&str] = &["adhoc", "--agent", "codex", "go"];

const FORMS: &[Form] = &[
    Form { name: "diff", case: diff, ..RUN },
    Form { name: "failed_command", case: failed_command, ..RUN },
    Form { name: "plan", case: plan, ..RUN },
    Form { name: "markdown", case: markdown, ..RUN },
    Form { name: "status", case: status, during: Some("s] Run cargo test"), ..RUN },
    Form { name: "verbose", case: verbose, args: &["adhoc", "-v", "--cwd", "/", "go"], ..RUN },
    Form { name: "failure", case: failure, ..RUN },
    Form { name: "confirm", case: confirm, args: CODEX, answers: &[("Deploy", "?"), ("cancels", "y")], ..RUN },
    Form { name: "select", case: select, answers: &[("store", "?"), ("cancels", "4"), ("!", "2")], ..RUN },
    Form { name: "multi_select", case: multi_select, answers: &[("Which", "?"), ("cancels", "1,3")], ..RUN },
    Form { name: "text", case: text, args: CODEX, answers: &[("called", "?"), ("cancels", "")], ..RUN },
    Form { name: "secret", case: secret, args: CODEX, answers: &[("key", "?"), ("cancels", "tr0ub4dor&3")], ..RUN },
    Form { name: "path", case: path, args: CODEX, answers: &[("file", "?"), ("cancels", "notes.md")], ..RUN },
    Form { name: "form", case: form, args: CODEX, answers: &[("1 of 2", "0"), ("!", "8080"), ("2 of 2", "2")], ..RUN },
    Form { name: "permission", case: permission, answers: &[("Allow", "?"), ("cancels", "a")], ..RUN },
    Form { name: "permission_edit", case: permission_edit, answers: &[("Allow", "n use tabs")], ..RUN },
    Form { name: "permission_command", case: permission_command, args: CODEX, answers: &[("Allow", "y")], ..RUN },
    Form {
        name: "run",
        case: story,
        args: &["adhoc", "--yes", "fix the failing test"],
        answers: &[("empty input", "1")],
        ..RUN
    },
];

/// The name, the agent and the arguments of a run without a terminal.
type Log = (&'static str, fn() -> Case, &'static [&'static str]);

const LOGS: &[Log] = &[
    ("run", story, &["--yes", "fix the failing test"]),
    ("run_denied", story, &["fix the failing test"]),
    ("select", select, &["--answer", "Database=SQLite", "go"]),
    ("failure", failure, &["go"]),
    ("permission_edit", permission_edit, &["--answer", "permission=allow_once", "go"]),
];

/// Long enough to be wrapped on every screen.
const LONG: &str = "The release needs a database that keeps its data over a restart and that runs without a server, so the choice is not free.";

fn diff() -> Case {
    Case::with(edits(2))
}

fn failed_command() -> Case {
    let output = "Exit code 101\nrunning 3 tests\ntest parser::empty_input ... FAILED\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 12 filtered out\n";
    let command = bash("cargo test --workspace --all-features parser");
    Case::with(Script::new().tool_use("c1", "Bash", &command).out(&failed("c1", output)).done("A test fails."))
}

fn plan() -> Case {
    let script = planned(Script::new(), "t1", TASKS, ["in_progress", "pending", "pending"]);
    let script = planned(script, "t2", TASKS, ["completed", "in_progress", "pending"]);
    Case::with(planned(script, "t3", TASKS, ["completed", "completed", "completed"]).done("All three are done."))
}

fn markdown() -> Case {
    let said = format!(
        "# The choice\n\n{LONG}\n\n- **SQLite** is a file, and `cargo add rusqlite` adds it.\n- PostgreSQL is a server.\n\n1. Add the crate.\n2. Write the schema.\n\n```rust\nlet store = Store::open(\"app.db\")?;\n```\n\n| store | server |\n|---|---|\n| SQLite | no |\n"
    );
    Case::with(Script::new().say("m1", &said).done(&said))
}

fn status() -> Case {
    let command = bash("cargo test --workspace --all-features parser::tests::an_empty_input_is_an_error");
    let script = Script::new().say("m1", "I run the tests.").tool_use("c1", "Bash", &command).sh(WAITS);
    Case::with(script.tool_result("c1", "ok").done("They pass."))
}

fn verbose() -> Case {
    let script = Script::new().think("m1", LONG).tool("c1", "Bash", &bash("ls"), "Cargo.toml\nsrc");
    Case::with(script.say("m2", "Two entries.").done("Two entries."))
}

fn failure() -> Case {
    let limited = json!({"api_error_status": 429, "result": "API Error: Request rejected (429)"});
    Case::with(Script::new().out(&crate::support::agent::error_result(limited)).sh("RC=1; leave"))
}

fn codex(asks: Codex) -> Case {
    Case::new().program("codex", &asks.says("Thank you."))
}

fn confirm() -> Case {
    codex(Codex::new().asks("confirm", "Deploy to production now?", json!({"default": false, "header": "Deploy"})))
}

fn select() -> Case {
    let options = json!([
        {"label": "SQLite", "description": "One file, no server, and enough for a single process that writes"},
        {"label": "PostgreSQL", "description": "A server"},
        {"label": "Memory", "description": "Nothing is kept"},
    ]);
    let ask = json!([{"question": format!("Where should I store it? {LONG}"), "header": "Database", "multiSelect": false, "options": options}]);
    Case::with(Script::asks_user(ask))
}

fn multi_select() -> Case {
    Case::with(Script::asks_user(json!([question("Which features do you want?", true)])))
}

fn text() -> Case {
    codex(Codex::new().asks("text", "What should the service be called?", json!({"default": "web", "header": "Name"})))
}

fn secret() -> Case {
    codex(Codex::new().asks("secret", "What is the key of the registry?", json!({})))
}

fn path() -> Case {
    codex(Codex::new().asks("file_path", "Which file holds the notes?", json!({})))
}

fn form() -> Case {
    codex(Codex::new().asks_form(json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer", "minimum": 1, "title": "Port", "description": "The port that the service listens on", "default": 80},
        "region": {"type": "string", "enum": ["eu-west", "us-east"], "title": "Region"},
    }})))
}

fn permission() -> Case {
    Case::with(Script::asks("WebFetch", json!({"url": "https://docs.example.org/api", "prompt": "The list of calls"})))
}

fn permission_edit() -> Case {
    let input = json!({"file_path": "src/parser.rs", "old_string": "    Ok(Vec::new())", "new_string": "    Err(Error::Empty)"});
    Case::with(Script::asks("Edit", input))
}

fn permission_command() -> Case {
    codex(
        Codex::new()
            .asks_to_run("git push --force-with-lease origin HEAD:refs/heads/release-2026-11 && git push --tags"),
    )
}

/// A run with a plan, a failure, a question and a diff.
fn story() -> Case {
    let output = "Exit code 101\ntest parser::empty_input ... FAILED\ntest result: FAILED. 41 passed; 1 failed\n";
    let ask = json!({"questions": [{
        "question": "What should parse return for an empty input?", "header": "Empty input", "multiSelect": false,
        "options": [{"label": "An error", "description": "as the test expects"}, {"label": "An empty list", "description": "as the code does now"}],
    }]});
    let hunk = [
        " fn parse(text: &str) -> Result<Vec<Item>, Error> {",
        "     if text.is_empty() {",
        "-        return Ok(Vec::new());",
        "+        return Err(Error::Empty);",
        "     }",
    ];
    let tasks = ["Run the tests", "Fix the failing test", "Run the tests again"];
    let states = [
        ["in_progress", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "in_progress"],
        ["completed"; 3],
    ];
    let script = planned(Script::new().say("m1", "I run the tests first."), "t1", tasks, states[0]);
    let script = script.ask("req-1", "c1", "Bash", bash("cargo test")).out(&failed("c1", output));
    let script = planned(script, "t2", tasks, states[1]);
    let script = script
        .tool_use("c2", "AskUserQuestion", &ask)
        .out(&can_use("req-2", "c2", "AskUserQuestion", &ask))
        .sh("answer");
    let script = script.tool_result("c2", "(answered)").tool_use("c3", "Edit", &json!({"file_path": "src/parser.rs"}));
    let script = planned(script.out(&edited("c3", "src/parser.rs", &hunk)), "t3", tasks, states[2]);
    let script = planned(script.tool("c4", "Bash", &bash("cargo test"), "ok"), "t4", tasks, states[3]);
    let said = "`parse` now returns **an error** for an empty input. All 42 tests pass.";
    Case::with(script.say("m5", said).done(said))
}

/// The screen without the parts that differ from run to run.
fn normal(text: &str, case: &Case) -> String {
    let text = text.replace(&case.path("").display().to_string(), "/home/user/");
    let time = regex_lite::Regex::new(r"\b[0-9]+s\b").unwrap();
    time.replace_all(&without_times(&text), "0s").into_owned()
}

/// The screen, once no tool took a second: its time would leave less room for its title.
#[track_caller]
fn shown(form: &Form, columns: u16) -> String {
    in_time(|| {
        let (person, screen) = reached(form, columns);
        if without_times(&screen) == screen { Ok(normal(&screen, &person.case)) } else { Err(screen) }
    })
}

fn reached(form: &Form, columns: u16) -> (Person, String) {
    let mut person = (form.case)().columns(columns).at_terminal(form.args);
    for (text, answer) in form.answers {
        person.answers(text, answer);
    }
    if let Some(text) = form.during {
        person.waits_for(text);
        waits_for_a_second(&mut person);
        // The end of the line.
        person.waits_for("\u{1b}[0m");
        let screen = person.terminal().drawn();
        lets_it_go_on(&person);
        person.ends();
        return (person, screen);
    }
    person.ends();
    let screen = person.terminal().drawn();
    (person, screen)
}

pub(super) fn check(name: &str, got: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/screens").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, got).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    if got == expected { Ok(()) } else { Err(format!("{name}:\n{}", difference(&lines(&expected), &lines(got)))) }
}

/// Checks every form at one width.
fn check_all(columns: u16) {
    let wrong =
        FORMS.iter().filter_map(|form| check(&format!("{}/{columns}.txt", form.name), &shown(form, columns)).err());
    report(&wrong.collect::<Vec<_>>());
}

#[test]
fn forms_on_a_wide_terminal() {
    check_all(120);
}

#[test]
fn forms_on_a_usual_terminal() {
    check_all(80);
}

#[test]
fn forms_on_a_narrow_terminal() {
    check_all(40);
}

#[test]
fn a_run_without_a_terminal_has_its_log() {
    let wrong = LOGS.iter().filter_map(|(name, case, args)| {
        // stdout and stderr in one log, in order.
        let case = case().shell("exec \"$@\" 2>&1");
        let log = String::from_utf8(case.cli(args).stdout).unwrap();
        check(&format!("{name}/log.txt"), &normal(&log, &case)).err()
    });
    report(&wrong.collect::<Vec<_>>());
}

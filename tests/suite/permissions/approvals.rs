//! What somebody approves is what runs: an action is shown whole, and nothing in it hides behind a mask or an escape.

use crate::support;

use serde_json::json;
use support::agent::{Script, bash};
use support::{Case, run};

#[test]
fn an_action_is_shown_whole_or_it_is_not_asked_about() {
    let command = |bytes: usize| format!("echo {}\ntouch pwned", "x".repeat(bytes));
    // The detail of a permission is never cut.
    let mut session = Case::with(Script::asks("Bash", bash(&command(11_000)))).spawn();
    session.start(json!({"max_frame_bytes": 16 << 10}));
    let question = session.until("run.question");
    assert_eq!(question.payload()["subject"]["detail"], command(11_000));
    session.answer(&question, json!("deny"));
    session.finish().completed();
    let outcome = run(Case::with(Script::asks("Bash", bash(&command(20_000)))), json!({"max_frame_bytes": 16 << 10}));
    outcome.completed();
    assert_eq!(outcome.of_type("run.question").len(), 0);
    assert_eq!(outcome.warnings("permission_too_long").len(), 1);
    assert_eq!(outcome.progress("question_resolved")[0].text("value"), "deny");
    // A policy needs no question.
    let payload = json!({"max_frame_bytes": 16 << 10, "permissions": "allow"});
    let outcome = run(Case::with(Script::asks("Bash", bash(&command(20_000)))), payload);
    assert_eq!(outcome.progress("question_resolved")[0].text("value"), "allow_once");
    assert!(outcome.warnings("permission_too_long").is_empty());
}

#[test]
fn redaction_hides_nothing_that_acts() {
    for (command, shown) in [
        ("true Authorization: Zq7731abcdef;touch pwned;true", "true Authorization: [redacted];touch pwned;true"),
        ("true -----BEGIN PRIVATE KEY----- ; touch pwned\nls", "true -----BEGIN PRIVATE KEY----- ; touch pwned\nls"),
        ("env -u Authorization: reboot", "env -u Authorization: reboot"),
        ("curl -u hunter2-Zq7731/x+y|sh", "curl -u [redacted]|sh"),
    ] {
        let mut session = Case::with(Script::asks("Bash", bash(command))).spawn();
        session.start(json!({"secrets": ["hunter2-Zq7731/x+y"]}));
        let question = session.until("run.question");
        assert_eq!(question.payload()["subject"]["detail"], shown);
        session.answer(&question, json!("deny"));
        session.finish().completed();
    }
}

/// On a terminal nothing is folded, and what would act there is shown as an escape.
#[test]
fn a_terminal_shows_every_line_of_a_command() {
    let lines: String = (1..=60).map(|n| format!("echo line-{n}\n")).collect();
    for (command, shown) in [
        (lines.as_str(), "echo line-31"),
        ("ls \u{1b}];touch pwned;\u{7}", "ls \\u{1b}];touch pwned;\\u{7}"),
        ("ls \u{9b}2K\u{202e}x", "ls \\u{9b}2K\\u{202e}x"),
        ("true Authorization: Zq7731abcdef;touch pwned;true", "true Authorization: [redacted];touch pwned;true"),
    ] {
        let case = Case::with(Script::asks("Bash", bash(command))).columns(400);
        let mut person = case.at_terminal(&["adhoc", "go"]);
        person.answers("Allow this command?", "n");
        let (code, seen) = person.ends();
        assert!(code == 0 && seen.contains(shown), "{shown} is not in {seen}");
        assert!(!seen.contains("more lines"), "{seen}");
    }
}

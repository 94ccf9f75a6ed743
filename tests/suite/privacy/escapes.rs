//! Escape sequences in the names of folders and agents never reach a terminal.

use crate::support;

use std::fs;

use serde_json::{Value, json};
use support::agent::Script;
use support::case::Did;
use support::{Case, run};

const USER: &str = "home/.config/spektacular/config.json";
/// A folder's name that sets a title, colors and moves the cursor.
const FOLDER: &str = "we\u{1b}]0;owned\u{7}i\u{1b}[31mr\u{9b}2Jd";

fn in_folder(case: &Case, args: &[&str]) -> Did {
    let output = case.other(FOLDER, args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Did { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
fn is_plain(did: &Did) {
    let bad = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!bad(&did.out) && !bad(&did.err), "{did:?}");
}

#[test]
fn no_folder_sends_escapes_to_a_terminal() {
    let case = Case::new().file(&format!("{FOLDER}/.spektacular/config.json"), r#"{"permissions":"deny"}"#);
    for args in [
        &["config", "path"][..],
        &["config", "list"],
        &["config", "trust"],
        &["config", "set", "model", "m"],
        &["config", "unset", "model"],
        &["config", "get", "nothing"],
        &["adhoc", "--dry-run", "--agent", "demo", "go"],
    ] {
        let did = in_folder(&case, args);
        is_plain(&did);
        assert!(format!("{}{}", did.out, did.err).contains("weird") || args[1] == "get", "{did:?}");
    }
    // A program gets the name unchanged, escaped as JSON.
    let did = in_folder(&case, &["config", "path", "--output", "json"]);
    is_plain(&did);
    let paths: Value = serde_json::from_str(&did.out).unwrap();
    assert!(paths["project"].as_str().unwrap().contains(FOLDER));
}

#[test]
fn no_diagnostic_of_an_orchestrators_run_sends_escapes_to_a_terminal() {
    let case = Case::new().file(&format!("{FOLDER}/.spektacular/config.json"), "{broken");
    for output in ["json", "cli"] {
        let did = in_folder(&case, &["adhoc", "--output", output, "--prompt", "go"]);
        assert!(did.code == Some(2) && did.err.contains(".spektacular/config.json, line 1"), "{did:?}");
        assert!(!did.err.trim_end().chars().any(char::is_control), "{did:?}");
    }
}

#[test]
fn no_agents_name_sends_escapes_to_a_terminal() {
    let agent = json!({"driver": "acp", "command": "no\u{1b}[2Jsuch", "display_name": "My\u{1b}[31m Agent\n\u{9b}2J"});
    let case = Case::new().file(USER, &json!({"agents": {"mine": agent}}).to_string());
    for args in [&["agents", "list"][..], &["agents", "check", "mine"]] {
        let did = case.run(args);
        is_plain(&did);
        assert!(did.out.contains("My Agent"), "{did:?}");
    }
}

#[test]
fn keys_of_recorded_objects_are_redacted() {
    let secret = "correct-horse-battery";
    let input = json!({"file_path": "a", secret: {"inner": [{secret: 1}]}});
    let script = Script::new().tool("toolu_1", "Read", &input, "(done)").say("msg_1", "Hello").done("Hello");
    let case = Case::with(script).file(USER, r#"{"debug":{"enabled":true}}"#).args(&["--record", "run.jsonl"]);
    let outcome = run(case, json!({"secrets": [secret]}));
    outcome.completed();
    let log = fs::read_dir(outcome.case().path("work/.spektacular/debug/logs")).unwrap();
    let log = log.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    for file in [outcome.case().path("work/run.jsonl"), log.unwrap()] {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains("[redacted]") && !text.contains(secret), "{text}");
    }
    outcome.never_shows(secret);
}

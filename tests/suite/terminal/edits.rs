//! Tests of edits and failures as a person sees them: the diff, the exit code, and the parts that a stop ended.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::codex::Codex;
use super::without_times;
use crate::support::agent::{Script, bash, can_use, tool_result};
use crate::support::{Case, in_time, run};

const RUN: &[&str] = &["adhoc", "go"];

/// The result of a changed file, as Claude Code reports it.
pub(super) fn edited(call: &str, path: &str, hunk: &[&str]) -> Value {
    let without = |sign: char| hunk.iter().filter(|line| !line.starts_with(sign)).count();
    let (old, new) = (without('+'), without('-'));
    let patch = json!([{"oldStart": 3, "oldLines": old, "newStart": 3, "newLines": new, "lines": hunk}]);
    tool_result(call, "done", json!({"filePath": path, "structuredPatch": patch}))
}

/// The result of a failed command.
pub(super) fn failed(call: &str, output: &str) -> Value {
    let mut failed = tool_result(call, output, json!("Error"));
    failed["message"]["content"][0]["is_error"] = json!(true);
    failed
}

/// An edit of one file, and a new file with this number of lines.
pub(super) fn edits(lines: usize) -> Script {
    let content: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
    let created = json!({"type": "create", "filePath": "new.txt", "content": content, "structuredPatch": []});
    Script::new()
        .tool_use("c1", "Edit", &json!({"file_path": "src/lib.rs"}))
        .out(&edited("c1", "src/lib.rs", &[" fn add() {", "-\told", "+\tnew", "+\tmore", " }"]))
        .tool_use("c2", "Write", &json!({"file_path": "new.txt"}))
        .out(&tool_result("c2", "created", created))
        .done("Done.")
}

const CHANGED: &str = "    @@ -3,3 +3,4 @@\n     fn add() {\n    -    old\n    +    new\n    +    more\n     }\n";

/// The stderr of a run without a terminal, up to the line with the duration.
#[track_caller]
fn logged(case: &Case, args: &[&str]) -> String {
    let done = case.cli(args);
    let log = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{log}");
    let begin = log.find("\n* ").map_or(0, |at| at + 1);
    without_times(&log[begin..log.find("\ndone after").map_or(log.len(), |at| at + 1)])
}

#[test]
fn frames_have_inputs_and_changes_at_level_full() {
    let outcome = run(Case::with(edits(2)), json!({"progress": "full"}));
    let tools = outcome.progress("tool");
    let payload = |at: usize| &tools[at]["payload"];
    assert_eq!(payload(0)["input"], json!({"file_path": "src/lib.rs"}));
    let (old, new) = ("fn add() {\n\told\n}\n", "fn add() {\n\tnew\n\tmore\n}\n");
    assert_eq!(payload(1)["diff"], json!([{"path": "src/lib.rs", "old": old, "new": new}]));
    assert_eq!(payload(3)["diff"], json!([{"path": "new.txt", "old": "", "new": "line 1\nline 2\n"}]));
    assert!(payload(0).get("diff").is_none() && payload(1).get("input").is_none());
    let normal = run(Case::with(edits(2)), json!({}));
    assert!(!normal.stdout.contains("\"input\":") && !normal.stdout.contains("\"diff\":"), "{}", normal.stdout);
}

/// An input that is too long for a frame is left out, and hidden like other texts.
#[test]
fn a_long_input_is_left_out_and_a_secret_one_is_hidden() {
    let long = json!({"file_path": "a.txt", "content": "x".repeat(70 << 10)});
    let secret = json!({"file_path": "b.txt", "content": "the magic word is hush-hush-hush"});
    let script = Script::new().tool_use("c1", "Write", &long).tool_use("c2", "Write", &secret).done("Done.");
    let outcome = run(Case::with(script), json!({"progress": "full", "secrets": ["hush-hush-hush"]}));
    let tools = outcome.progress("tool");
    let (first, second) = (&tools[0]["payload"], &tools[1]["payload"]);
    assert!(first.get("input").is_none() && first["truncated"] == true, "{first}");
    assert_eq!(second["input"]["content"], "the magic word is [redacted]", "{second}");
}

#[test]
fn an_edit_shows_its_diff() {
    let mut person = Case::with(edits(2)).at_terminal(RUN);
    let (code, seen) = person.ends();
    assert_eq!(code, 0, "{seen}");
    let expected =
        format!("* Edit src/lib.rs: done\n{CHANGED}* Write new.txt: done\n    +line 1\n    +line 2\nDone.\n");
    assert!(without_times(&person.screen().join("\n")).starts_with(&expected), "{:?}", person.screen());
    for colored in ["\u{1b}[31m-    old\u{1b}[0m", "\u{1b}[32m+    new\u{1b}[0m", "\u{1b}[2m@@ -3,3 +3,4 @@\u{1b}[0m"] {
        assert!(seen.contains(colored), "{seen:?}");
    }
}

#[test]
fn a_diff_has_forty_lines_or_all_or_none() {
    let log = logged(&Case::with(edits(50)), &["go"]);
    let shown: String = (1..=34).map(|n| format!("    +line {n}\n")).collect();
    // Each edit has its own forty lines.
    let first = format!("* Edit src/lib.rs\n{CHANGED}* Write new.txt\n{shown}");
    let rest: String = (35..=40).map(|n| format!("    +line {n}\n")).collect();
    assert_eq!(log, format!("{first}{rest}    ... 10 more lines (--diff full)\n"));
    let all: String = (35..=50).map(|n| format!("    +line {n}\n")).collect();
    assert_eq!(logged(&Case::with(edits(50)), &["--diff", "full", "go"]), format!("{first}{all}"));
    assert_eq!(logged(&Case::with(edits(50)), &["--diff", "none", "go"]), "* Edit src/lib.rs\n* Write new.txt\n");
    assert_eq!(logged(&Case::with(edits(50)), &["--quiet", "go"]), "");
}

#[test]
fn a_diff_keeps_to_the_terminal_and_hides_secrets() {
    let long = format!("+{}", "x".repeat(100));
    let script = Script::new()
        .tool_use("c1", "Edit", &json!({"file_path": "a"}))
        .out(&edited("c1", "a", &[&long, "+key = hunter2-hunter2-77 \u{1b}[31mred"]))
        .done("Done.");
    let mut person = Case::with(script).columns(40).at_terminal(&["adhoc", "--secret", "hunter2-hunter2-77", "go"]);
    assert_eq!(person.ends().0, 0);
    let screen = person.screen();
    assert_eq!(screen[2], format!("    +{}…", "x".repeat(33)));
    assert_eq!(screen[3], "    +key = [redacted] red");
}

#[test]
fn a_diff_below_other_lines_repeats_the_title() {
    let script = Script::new()
        .tool_use("c1", "Edit", &json!({"file_path": "a"}))
        .tool_use("c2", "Bash", &bash("ls"))
        .out(&edited("c1", "a", &["-1", "+2"]))
        .tool_result("c2", "")
        .done("Done.");
    let expected = "* Edit a\n* Run ls\n* Edit a\n    @@ -3 +3 @@\n    -1\n    +2\n";
    assert_eq!(logged(&Case::with(script), &["go"]), expected);
}

#[test]
fn an_edit_that_the_person_allowed_is_not_shown_twice() {
    let input = json!({"file_path": "a", "old_string": "1", "new_string": "2"});
    let script = Script::new()
        .tool_use("c1", "Edit", &input)
        .out(&can_use("req-1", "c1", "Edit", &input))
        .sh("answer")
        .out(&edited("c1", "a", &["-1", "+2"]))
        .done("Done.");
    let mut person = Case::with(script).at_terminal(RUN);
    person.answers("Allow Edit a?", "y");
    assert_eq!(person.ends().0, 0);
    let screen = person.screen();
    assert_eq!(screen.iter().filter(|row| *row == "    -1").count(), 1, "{screen:?}");
    assert!(screen.iter().any(|row| without_times(row) == "* Edit a: done"), "{screen:?}");
}

#[test]
fn the_frames_of_an_edit_have_no_diff() {
    let frames = Case::with(edits(2)).run(&["adhoc", "--output", "json", "--progress", "full", "go"]).out;
    assert!(frames.contains("Edit src/lib.rs") && !frames.contains("@@"), "{frames}");
}

#[test]
fn a_patch_of_several_files_names_each() {
    let change = |path: &str, kind: &str, diff: &str| json!({"path": path, "kind": {"type": kind}, "diff": diff});
    let changes = json!([
        change("a.txt", "update", "@@ -1 +1 @@\n-1\n+2\n"),
        change("b.txt", "add", "new\n"),
        change("c.txt", "delete", "gone\n"),
    ]);
    let item = |status: &str| json!({"type": "fileChange", "id": "i1", "changes": changes, "status": status});
    let codex = Codex::new().item(&item("inProgress"), &item("completed")).says("Done.");
    let log = logged(&Case::new().program("codex", &codex), &["--agent", "codex", "go"]);
    let expected =
        "* Edit 3 files\n    a.txt\n    @@ -1 +1 @@\n    -1\n    +2\n    b.txt\n    +new\n    c.txt\n    -gone\n";
    assert_eq!(log, expected);
}

#[test]
fn a_failed_command_shows_its_exit_code() {
    let failed = failed("c1", "Exit code 3\nfirst\nsecond\n");
    let script = Script::new().tool_use("c1", "Bash", &bash("make")).out(&failed).done("Done.");
    let lines = "* Run make: failed (exit 3)\n    first\n    second\n";
    assert_eq!(logged(&Case::with(script), &["go"]), format!("* Run make\n{lines}"));

    let item = |status: &str, more: Value| {
        let mut item = json!({"type": "commandExecution", "id": "i1", "command": "make", "status": status});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let over = item("failed", json!({"aggregatedOutput": "first\nsecond\n", "exitCode": 3}));
    let codex = Codex::new().item(&item("inProgress", json!({})), &over).says("Done.");
    let log = logged(&Case::new().program("codex", &codex), &["--agent", "codex", "go"]);
    assert_eq!(log, format!("* Run make\n{lines}"));
}

#[test]
fn a_tool_that_a_stop_ended_was_cancelled() {
    let waits = Script::new().tool_use("c1", "Bash", &bash("sleep 60")).sh("listen");
    let mut person = Case::with(waits).at_terminal(RUN);
    person.waits_for("s] Run sleep 60");
    person.signals(Signal::INT);
    let (code, seen) = person.ends();
    assert_eq!(code, 130, "{seen}");
    let screen = person.screen();
    assert!(screen[0].starts_with("* Run sleep 60: cancelled") && !seen.contains("failed"), "{screen:?}");
}

#[test]
fn a_tool_that_a_time_limit_ended_was_cancelled() {
    let waits = Script::new()
        .tool_use("c1", "Bash", &bash("sleep 60"))
        .sh("read -r interrupt")
        .out(&failed("c1", "The user doesn't want to proceed with this tool use."))
        .sh("listen");
    let mut seconds = 0.25;
    in_time(|| {
        seconds *= 2.0;
        let done = Case::with(waits.clone()).cli(&["--timeout", &seconds.to_string(), "go"]);
        let log = without_times(&String::from_utf8(done.stderr).unwrap());
        if !log.contains("\n* Run sleep 60\n") {
            return Err(format!("the tool did not begin within {seconds} s: {log}"));
        }
        assert!(log.contains("\n* Run sleep 60\n* Run sleep 60: cancelled\nspektacular: timeout: "), "{log}");
        Ok(())
    });
}

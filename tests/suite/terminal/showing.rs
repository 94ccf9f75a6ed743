//! Tests of the output of a run for a person.

use rustix::process::Signal;
use serde_json::json;

use super::{waits_for_a_second, without_times};
use crate::support::Case;
use crate::support::agent::{Script, bash, can_use, quote};
use crate::support::person::Person;

const RUN: &[&str] = &["adhoc", "go"];

/// Continues when the test allows it.
pub(super) const WAITS: &str = "until [ -e \"$D/go\" ]; do sleep 0.02; done";

pub(super) fn lets_it_go_on(person: &Person) {
    std::fs::write(person.case.path("log/go"), "").unwrap();
}

pub(super) const TASKS: [&str; 3] = ["Read the code", "Change it", "Run the tests"];

/// The agent reports its plan: tasks, each with its state.
pub(super) fn plan(script: Script, call: &str, names: [&str; 3], states: [&str; 3]) -> Script {
    let todos: Vec<_> = names
        .iter()
        .zip(states)
        .map(|(name, state)| json!({"content": name, "status": state, "activeForm": name}))
        .collect();
    script.tool(call, "TodoWrite", &json!({ "todos": todos }), "ok")
}

fn working() -> Script {
    let script =
        plan(Script::new().say("m1", "I shall look at it."), "t1", TASKS, ["in_progress", "pending", "pending"]);
    let script = script.tool("c1", "Read", &json!({"file_path": "/home/user/project/a.txt"}), "the content");
    let script = plan(script, "t2", TASKS, ["completed", "in_progress", "pending"]);
    let script = script.tool_use("c2", "Bash", &bash("cargo test")).sh(WAITS).tool_result("c2", "all passed");
    script.say_pieces("m2", &["It is do", "ne: all te", "sts pass."]).done("It is done: all tests pass.")
}

#[test]
fn a_run_shows_short_lines_and_its_status_line_leaves_no_trace() {
    for columns in [80, 40] {
        let mut person = Case::with(working()).columns(columns).at_terminal(RUN);
        person.waits_for("s] Run cargo test");
        waits_for_a_second(&mut person);
        lets_it_go_on(&person);
        let (code, seen) = person.ends();
        assert_eq!(code, 0, "{seen}");
        let screen: Vec<String> = person.screen().iter().map(|row| without_times(row)).collect();
        let expected = [
            "I shall look at it.",
            "  [>] Read the code",
            "  [ ] Change it",
            "  [ ] Run the tests",
            "* Read /home/user/project/a.txt: done",
            "  [x] Read the code",
            "  [>] Change it",
            "* Run cargo test: done",
            "It is done: all tests pass.",
        ];
        assert_eq!(screen[..expected.len()], expected, "{seen:?}");
        // The terminal wraps the text at any place.
        let rest = screen[expected.len()..].concat().replace(' ', "");
        assert!(rest.starts_with("doneafter"), "{rest}");
        assert!(rest.contains("17tokensin(7cached),5out,$0.25session5f0c1a52-"), "{rest}");
        assert!(!rest.contains("s]"), "{rest}");
    }
}

#[test]
fn the_agent_has_pipes_where_a_person_has_a_terminal() {
    let look =
        "for fd in 0 1 2; do if [ -t $fd ]; then note \"$fd is a terminal\"; else note \"$fd is none\"; fi; done";
    let script = Script::bare().sh(look).sh(&Script::hello().body());
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("Hello");
    assert_eq!(person.ends().0, 0);
    assert_eq!(person.file("log/notes").lines().take(3).collect::<Vec<_>>(), ["0 is none", "1 is none", "2 is none"]);
}

#[test]
fn the_agent_cannot_reach_the_terminal_of_the_person() {
    let look = "if (: </dev/tty) 2>/dev/null; then note 'a terminal'; else note 'no terminal'; fi";
    let script = Script::bare().sh(look).sh(&Script::hello().body());
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("Hello");
    assert_eq!(person.ends().0, 0);
    assert_eq!(person.file("log/notes").lines().next(), Some("no terminal"));
    // A query to an agent outside a run.
    let look =
        "if (: </dev/tty) 2>/dev/null; then echo a terminal; else echo no terminal; fi >\"$HOME\"/notes\necho '{}'";
    for (agent, args) in [("claude", ["agents", "check"].as_slice()), ("opencode", &["export", "ses_1", "--agent"])] {
        let case = Case::new().script(&format!("bin/{agent}"), look);
        let mut person = case.at_terminal(&[args, &[agent]].concat());
        person.ends();
        assert_eq!(person.file("home/notes"), "no terminal\n", "{args:?}");
    }
}

#[test]
fn escape_sequences_go_only_to_terminals_that_want_them() {
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")] {
        let mut person = Case::with(working()).env(name, value).at_terminal(RUN);
        person.waits_for(if name == "NO_COLOR" { "s] Run cargo test" } else { "* Run cargo test" });
        lets_it_go_on(&person);
        let (code, seen) = person.ends();
        assert_eq!(code, 0);
        assert!(!seen.contains('\u{1b}'), "{name}={value}: {seen:?}");
        let screen = person.screen().join("\n");
        assert!(screen.contains("It is done: all tests pass.\ndone after"), "{screen}");
        assert!(!screen.contains("s] Run"), "{screen}");
    }
}

#[test]
fn stdout_has_only_the_agents_text() {
    let mut person = Case::with(working()).stdout_to("stdout").at_terminal(RUN);
    person.waits_for("s] Run cargo test");
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    assert_eq!(person.file("stdout"), "I shall look at it.\nIt is done: all tests pass.\n");
    let screen = person.screen();
    assert!(screen.iter().any(|row| row.starts_with("* Run cargo test: done")), "{screen:?}");
    assert!(!screen.concat().contains("I shall"), "{screen:?}");

    let mut person = Case::with(working()).stdout_to("stdout").stderr_to("stderr").at_terminal(RUN);
    lets_it_go_on(&person);
    assert_eq!(person.ends(), (0, String::new()));
    let told = person.file("stderr");
    assert!(told.contains("* Run cargo test\n") && !told.contains(['\u{1b}', '\r']), "{told:?}");
}

#[test]
fn quiet_shows_the_final_text_and_verbose_shows_everything() {
    let script = || {
        let script = Script::new().say("m0", "First words.").think("m1", "Let me think.\nTwice.");
        script.tool("c1", "Bash", &bash("ls"), "a.txt\nb.txt").say("m2", "The last word.").done("The last word.")
    };
    let mut person = Case::with(script()).at_terminal(&["adhoc", "--quiet", "go"]);
    assert_eq!(person.ends(), (0, "The last word.\r\n".to_owned()));

    let mut person = Case::with(script()).at_terminal(&["adhoc", "-v", "go"]);
    assert_eq!(person.ends().0, 0);
    let screen = person.screen().join("\n");
    for line in [
        "agent Claude Code, permissions ask, in ",
        "session 5f0c1a52-",
        "  | Let me think.\n  | Twice.",
        "    a.txt\n    b.txt",
    ] {
        assert!(screen.contains(line), "{line}: {screen}");
    }

    let mut person = Case::with(script()).at_terminal(&["adhoc", "-q", "-v", "go"]);
    let (code, seen) = person.ends();
    assert_eq!((code, seen.contains("Give --quiet or --verbose")), (2, true), "{seen}");
}

#[test]
fn an_answer_for_always_covers_queued_requests() {
    let edit = |path: &str| json!({"file_path": path, "content": "x"});
    let script = Script::new()
        .out(&can_use("req-1", "toolu_1", "Write", &edit("a.txt")))
        .out(&can_use("req-2", "toolu_2", "Write", &edit("b.txt")))
        .say("msg_1", "Both at once.")
        .sh("answer")
        .sh("answer")
        .done("All done.");
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("Allow Write a.txt?");
    // The text follows the second request, so that this request is open too.
    person.answers("Both at once.", "a");
    let (code, seen) = person.ends();
    assert_eq!(code, 0);
    assert!(seen.contains("  (Already answered.)\r\n"), "{seen}");
}

#[test]
fn quiet_still_asks_and_still_reports_a_failure() {
    let mut person = Case::with(Script::asks_bash()).at_terminal(&["adhoc", "-q", "go"]);
    person.answers("Allow this command?", "n");
    let (code, seen) = person.ends();
    assert_eq!(code, 0);
    assert!(seen.ends_with("> n\r\nAll done.\r\n"), "{seen:?}");
    let mut person = Case::with(Script::new().sh("RC=3; leave")).at_terminal(&["adhoc", "-q", "go"]);
    let (code, seen) = person.ends();
    assert_eq!((code, seen.contains("spektacular: agent_exited: ")), (1, true), "{seen}");
}

#[test]
fn no_sequence_of_the_agents_reaches_the_screen() {
    let pieces = ["a\u{1b}]0;ti", "tle\u{7}b\u{1b}", "[2Jc\u{9b}3", "1md\r", "e \u{1b}", "P1$r\u{1b}", "\\f"];
    let script = Script::new().say_pieces("m1", &pieces);
    let title = format!("echo \u{1b}[31mred\u{1b}[0m {}", "\u{202e}x");
    let mut person = Case::with(script.tool("c1", "Bash", &bash(&title), "\u{1b}[2Jout").done(""))
        .at_terminal(&["adhoc", "-v", "go"]);
    let (code, seen) = person.ends();
    assert_eq!(code, 0);
    let screen = person.screen().join("\n");
    assert!(screen.contains("abcd\ne f\n") && screen.contains("* Run echo red <U+202E>x: done"), "{screen}");
    for foreign in ["\u{1b}]", "\u{1b}[2J", "\u{1b}P", "\u{7}", "\u{9b}"] {
        assert!(!seen.contains(foreign), "{seen:?}");
    }
}

#[test]
fn a_terminal_that_becomes_narrow_keeps_no_piece_of_the_status_line() {
    let command = "a-command --with many --long flags --that fill --a whole --line of the terminal";
    let script = Script::new().tool_use("c1", "Bash", &bash(command)).sh(WAITS).tool_result("c1", "").done("Done.");
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("s] Run a-command");
    person.resizes(30);
    // 79 columns are three rows of 30. The cursor goes up to the first of them.
    person.waits_for("\r\u{1b}[2A\u{1b}[J");
    let width = |line: &str| line.trim_start_matches("\u{1b}[2m").chars().count();
    let line = person.waits_for("…");
    assert_eq!(width(&line), 29, "{line:?}");
    person.resizes(60);
    // A line for the old width may still come.
    let lines = std::iter::from_fn(|| {
        person.waits_for("\r\u{1b}[K");
        Some(person.waits_for("…"))
    });
    let line = lines.take(20).find(|line| width(line) != 29).expect("a line for the new width");
    assert_eq!(width(&line), 59, "{line:?}");
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
}

#[test]
fn wide_characters_do_not_wrap_the_status_line() {
    let command = "echo 漢字かな交じり文の長い長い長い長い長い長い長い長い題名";
    let script = Script::new().tool_use("c1", "Bash", &bash(command)).sh(WAITS).tool_result("c1", "").done("Done.");
    let mut person = Case::with(script).columns(40).at_terminal(RUN);
    person.waits_for("s] Run echo 漢字");
    waits_for_a_second(&mut person);
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    let screen = person.screen();
    assert!(screen[0].starts_with("* Run echo 漢字") && screen[0].contains("…: done"), "{screen:?}");
    assert!(screen[1..].iter().all(|row| !row.contains('漢') && !row.contains("s] ")), "{screen:?}");
}

#[test]
fn a_key_pressed_during_the_run_leaves_no_piece_of_the_status_line() {
    let script = Script::new().tool_use("c1", "Bash", &bash("sleep")).sh(WAITS).tool_result("c1", "").done("Done.");
    let shell = "\"$@\" | cat";
    // Where another program may change the terminal's modes, the key shows, and the status line is cleared.
    let mut person = Case::with(script).shell(shell).at_terminal(RUN);
    person.waits_for("s] Run sleep");
    person.types("\n");
    person.waits_for("\u{1b}[A\r\u{1b}[J");
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    assert!(!person.screen().concat().contains("s] "), "{:?}", person.screen());
}

#[test]
fn a_suspended_run_hides_its_status_line_until_it_continues() {
    let script = Script::new().tool_use("c1", "Bash", &bash("sleep")).sh(WAITS).tool_result("c1", "").done("Done.");
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("s] Run sleep");
    person.signals(Signal::TSTP);
    person.sees_it_stopped();
    person.waits_until("an empty screen", |person| person.screen().is_empty());
    person.waits_for("\r\u{1b}[K");
    person.signals(Signal::CONT);
    person.waits_for("s] Run sleep");
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_pause_within_a_line_shows_the_status_below_it() {
    let said = Script::new().say_pieces("m1", &["The first half, ", "the second half."]).done("Done.").body();
    let second = |line: &&str| line.contains("text_delta") && line.contains("the second");
    let lines = said.lines().flat_map(|line| second(&line).then_some(WAITS).into_iter().chain([line]));
    let script = Script::bare().sh(&lines.collect::<Vec<_>>().join("\n"));
    let mut person = Case::with(script).at_terminal(RUN);
    person.waits_for("The first half,");
    person.waits_for("s] Claude Code is working");
    person.waits_for("\u{1b}8");
    let screen = person.screen();
    assert!(screen[0] == "The first half," && screen[1].ends_with("s] Claude Code is working"), "{screen:?}");
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    let screen = person.screen();
    assert!(screen[0].starts_with("The first half, the second half."), "{screen:?}");
    assert!(!screen.concat().contains("s] "), "{screen:?}");
}

#[test]
fn markdown_is_laid_out_on_a_terminal_and_nowhere_else() {
    let text = "# The plan\n\nRun **all** the tests with `cargo test`, and then wait for their end.\n";
    let script = || Script::new().say("m1", text).done(text);
    let mut person = Case::with(script()).columns(40).at_terminal(RUN);
    let (code, seen) = person.ends();
    assert_eq!(code, 0, "{seen}");
    let expected = ["The plan", "", "Run all the tests with cargo test, and", "then wait for their end."];
    assert_eq!(person.screen()[..4], expected);
    assert!(seen.contains("\u{1b}[1mThe plan\u{1b}[22m") && seen.contains("\u{1b}[36mcargo"), "{seen:?}");

    let mut person = Case::with(script()).at_terminal(&["adhoc", "--plain", "go"]);
    assert!(person.ends().1.contains("# The plan\r\n\r\nRun **all** the tests with `cargo test`"));
    let mut person = Case::with(script()).stdout_to("stdout").at_terminal(RUN);
    assert_eq!((person.ends().0, person.file("stdout").as_str()), (0, text));
}

#[test]
fn colors_can_be_turned_on_and_off() {
    let failed = || Script::new().sh("RC=3; leave");
    let log = |case: Case, args: &[&str]| String::from_utf8(case.cli(args).stderr).unwrap();
    for (case, args, colored) in [
        (Case::with(failed()), &["go"][..], false),
        (Case::with(failed()), &["--color", "always", "go"], true),
        (Case::with(failed()).env("FORCE_COLOR", "1"), &["go"], true),
        (Case::with(failed()).env("FORCE_COLOR", "0"), &["go"], false),
        (Case::with(failed()).env("FORCE_COLOR", "false"), &["go"], false),
        (Case::with(failed()).env("FORCE_COLOR", "1").env("NO_COLOR", "1"), &["go"], false),
        (Case::with(failed()).env("FORCE_COLOR", "1"), &["--color", "never", "go"], false),
    ] {
        let log = log(case, args);
        assert_eq!(log.contains("\u{1b}[31mspektacular: agent_exited"), colored, "{args:?}: {log:?}");
    }
    for (case, args) in [
        (Case::with(failed()), &["adhoc", "--color", "never", "go"][..]),
        (Case::with(failed()).env("FORCE_COLOR", "0"), &["adhoc", "go"]),
    ] {
        let seen = case.at_terminal(args).ends().1;
        assert!(seen.contains("agent_exited") && !seen.contains("\u{1b}["), "{seen:?}");
    }
}

#[test]
fn errors_name_flags() {
    for (args, told) in [
        (&["adhoc", "--cwd", "/nowhere/at/all", "go"][..], "--cwd must be the path of an existing directory."),
        (&["adhoc", "--agent", "nobody", "go"][..], "Unknown agent nobody (from --agent). The agents are: "),
        (&["adhoc", "--timeout", "0.2", "go"][..], "The run took longer than --timeout: raise it"),
    ] {
        let mut person = Case::with(Script::new().sh(&format!("sleep {}", quote("30")))).at_terminal(args);
        let (_, seen) = person.ends();
        // The text is wrapped between words.
        let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(seen.contains(told.trim_end()), "{seen}");
        assert!(!seen.contains("run.start") && !seen.contains('`'), "{seen}");
    }
}

#[test]
fn a_secret_that_colors_split_is_hidden() {
    let secret = "hunter2-hunter2-77";
    let split = "hun\u{1b}[31mter2-hunter2\u{1b}[0m-77";
    let script = Script::new().tool("c1", "Bash", &bash(&format!("echo {split}")), &format!("says {split}"));
    let script = script.say_pieces("m1", &["It is hun\u{1b}[3", "1mter2-hunter2\u{1b}[0m-77."]);
    let script = script.done("It is there.");
    let mut person = Case::with(script).at_terminal(&["adhoc", "--verbose", "--secret", secret, "go"]);
    let (code, seen) = person.ends();
    assert!(code == 0 && seen.matches("[redacted]").count() >= 2, "{code}: {seen}");
    assert!(!seen.contains(secret), "{seen}");
}

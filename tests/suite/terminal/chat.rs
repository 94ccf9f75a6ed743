//! Tests of a conversation at a terminal: prompts, what waits, cancels, steering, and the end.

use crate::sessions::conversations::{UNTIL_INTERRUPT, lifecycle, steerable};
use crate::support::agent::{AgentLog, Script};
use crate::support::person::{CTRL_C, CTRL_D, CTRL_Z, Person};
use crate::support::{Case, io, limit};
use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

/// Continues a script once the log folder contains the file `go`.
const UNTIL_GO: &str = r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#;

/// Waits until the keys are read one by one, as they are at the prompt line.
#[track_caller]
fn waits_for_keys(person: &Person) {
    let read = || !tcgetattr(&person.keyboard).unwrap().local_modes.contains(LocalModes::ICANON);
    assert!(io::wait_for(limit(), read), "the keys are not read");
}

fn prompts(person: &Person) -> Vec<String> {
    AgentLog::new(&person.case.path("log")).prompts()
}

fn go(person: &Person) {
    std::fs::create_dir_all(person.case.path("log")).unwrap();
    std::fs::write(person.case.path("log").join("go"), "").unwrap();
}

#[track_caller]
fn ends_with(person: &mut Person, code: i32) -> String {
    let (ended, seen) = person.ends();
    assert_eq!(ended, code, "{seen}");
    let modes = tcgetattr(&person.keyboard).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
    seen
}

#[test]
fn each_line_is_a_turn_of_one_process_and_ctrl_d_ends_the_conversation() {
    let script = Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two");
    let mut person = Case::with(script).at_terminal(&["chat"]);
    person.waits_for("Ctrl-D: end.");
    person.waits_for("> ");
    person.types("helo\u{1b}[Dl\u{1b}[F you\r");
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types("\u{1b}[A, again\u{1b}\rand now?\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["hello you", "hello you, again\nand now?"]);
    let screen = person.screen();
    let at =
        |wanted: &str| screen.iter().position(|row| row == wanted).unwrap_or_else(|| panic!("{wanted}: {screen:?}"));
    let rows = ["> hello you", "One", "> hello you, again", "  and now?", "Two"].map(at);
    assert!(rows.is_sorted(), "{screen:?}");
}

#[test]
fn a_prompt_typed_while_the_agent_works_waits() {
    let script = Script::new().say("msg_1", "Thinking").sh(UNTIL_GO).result("One").sh("prompt").say("msg_2", "Two");
    let mut person = Case::with(script.done("Two")).at_terminal(&["adhoc", "--conversation", "begin"]);
    person.waits_for("Thinking");
    waits_for_keys(&person);
    person.types("later");
    person.waits_for("> later");
    person.types("\r");
    person.waits_for("  waiting: later");
    go(&person);
    person.waits_for("turn 1 done");
    person.waits_for("> later");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["begin", "later"]);
}

#[test]
fn ctrl_c_cancels_the_turn_and_the_next_prompt_works() {
    let script = Script::new().say("msg_1", "Thinking").sh(UNTIL_INTERRUPT).sh("prompt");
    let mut person = Case::with(script.say("msg_2", "Two").done("Two")).at_terminal(&["chat", "begin"]);
    person.waits_for("Thinking");
    person.types(CTRL_C);
    person.waits_for("turn 1 cancelled");
    person.waits_for("> ");
    person.types("half");
    person.waits_for("half");
    person.types("\u{15}again\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["begin", "again"]);
}

#[test]
fn ctrl_c_twice_ends_the_run() {
    let script = Script::new().say("msg_1", "One").done("One");
    let mut person = Case::with(script).at_terminal(&["chat", "begin"]);
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types(CTRL_C);
    person.waits_for("Ctrl-C again");
    person.types(CTRL_C);
    let seen = ends_with(&mut person, 130);
    assert!(seen.contains("spektacular: cancelled"), "{seen}");
}

#[test]
fn the_prompt_line_ends_without_a_run() {
    for (key, code) in [(CTRL_D, 0), ("\u{3}\u{3}", 130)] {
        let mut person = Case::with(Script::hello()).at_terminal(&["chat"]);
        person.waits_for("> ");
        waits_for_keys(&person);
        for key in key.chars() {
            person.types(&key.to_string());
            if key == '\u{3}' && code == 130 {
                person.waits_until("the first Ctrl-C", |person| person.screen().concat().contains("Ctrl-C again"));
            }
        }
        ends_with(&mut person, code);
        assert!(!person.case.path("log/pid").exists(), "an agent was started");
    }
}

#[test]
fn a_question_interrupts_the_prompt_line() {
    let script = Script::new().say("msg_1", "Thinking").sh(UNTIL_GO);
    let script = script.ask("req-1", "toolu_1", "Bash", crate::support::agent::bash("touch a.txt"));
    let script = script.tool_result("toolu_1", "(done)").say("msg_2", "One").result("One");
    let script = script.sh("prompt").say("msg_3", "Two").done("Two");
    let mut person = Case::with(script).at_terminal(&["chat", "begin"]);
    person.waits_for("Thinking");
    waits_for_keys(&person);
    person.types("half");
    person.waits_for("> half");
    go(&person);
    person.answers("Allow this command?", "y");
    person.waits_for("turn 1 done");
    person.waits_for("> half");
    person.types(" and whole\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["begin", "half and whole"]);
}

#[test]
fn a_suspended_conversation_returns_with_its_line() {
    let mut person = Case::with(Script::new().say("msg_1", "One").done("One")).at_terminal(&["chat"]);
    person.waits_for("> ");
    waits_for_keys(&person);
    person.types("half");
    person.waits_for("half");
    person.types(CTRL_Z);
    person.sees_it_stopped();
    assert!(person.echo(), "the shell has no echo");
    person.signals(Signal::CONT);
    person.waits_for("> half");
    waits_for_keys(&person);
    person.types(" and whole\r");
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["half and whole"]);
}

#[test]
fn an_exclamation_mark_steers() {
    let script = steerable().say("msg_1", "Working").sh("prompt").sh(&lifecycle("queued")).sh(&lifecycle("started"));
    let script = script.say("msg_2", "Other").done("Other");
    let mut person = Case::with(script).at_terminal(&["chat", "begin"]);
    person.waits_for("Working");
    waits_for_keys(&person);
    person.types("! Not this\r");
    person.waits_for("> Not this");
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    let seen = ends_with(&mut person, 0);
    assert!(!seen.contains("waiting: "), "{seen}");
    assert_eq!(prompts(&person), ["begin", "Not this"]);
}

#[test]
fn a_conversation_continues_an_old_session() {
    let script = Script::new().say("msg_1", "One").done("One");
    let mut person = Case::with(script).shell("\"$@\"; exec \"$1\" chat --continue").at_terminal(&["chat"]);
    for _ in 0..2 {
        person.waits_for("Ctrl-D: end.");
        person.waits_for("> ");
        waits_for_keys(&person);
        person.types("go\r");
        person.waits_for("turn 1 done");
        person.waits_for("> ");
        person.types(CTRL_D);
    }
    ends_with(&mut person, 0);
    let argv = person.file("log/argv");
    assert!(argv.contains("--resume="), "{argv}");
}

#[test]
fn a_conversation_without_a_terminal_is_refused() {
    for args in [&["chat", "go"][..], &["adhoc", "--conversation", "--output", "cli", "go"]] {
        let run = Case::with(Script::hello()).run(args);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains("A conversation needs a terminal"), "{}", run.err);
    }
}

#[test]
fn a_pipe_belongs_to_the_first_prompt_and_the_terminal_has_the_further_ones() {
    let script = Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two");
    let case = Case::with(script).shell("echo 'the diff' | \"$@\"");
    let mut person = case.at_terminal(&["chat", "review this"]);
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types("again\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    assert_eq!(prompts(&person), ["review this\n\n```stdin\nthe diff\n```", "again"]);
}

#[test]
fn a_turn_that_fails_leaves_the_conversation_open() {
    let failed = json!({"subtype": "error_during_execution", "errors": ["It failed"]});
    let failed = crate::support::agent::error_result(failed);
    let script = Script::new().out(&failed).sh("prompt").say("msg_2", "Two").done("Two");
    let mut person = Case::with(script).at_terminal(&["chat", "begin"]);
    person.waits_for("turn 1 failed");
    person.waits_for("> ");
    person.types("again\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    let seen = ends_with(&mut person, 0);
    assert_eq!((seen.matches("It failed").count(), prompts(&person)), (1, vec!["begin".into(), "again".into()]));
}

#[test]
fn a_terminal_without_escape_sequences_takes_prompts_too() {
    let script = Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two");
    let mut person = Case::with(script).env("TERM", "dumb").at_terminal(&["chat", "begin"]);
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types("agaim\u{7f}n\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types(CTRL_D);
    let seen = ends_with(&mut person, 0);
    assert!(!seen.contains('\u{1b}'), "{seen:?}");
    assert_eq!(prompts(&person), ["begin", "again"]);
}

#[test]
fn a_slash_chooses_the_model_shows_facts_and_calls_the_agents_commands() {
    let script = Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two");
    let mut person = Case::with(script).file("work/notes/today.md", "").at_terminal(&["chat"]);
    person.waits_for("Claude Code, a new session");
    person.waits_for("> ");
    person.types("/model opus\r");
    person.waits_for("model: opus");
    person.types("/permissions never\r");
    person.waits_for("`permissions` must be");
    person.types("/permissions read=allow,*=ask\r");
    person.waits_for("permissions: read=allow,*=ask");
    person.types("/coast\r");
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types("/cost\r");
    person.waits_for("17 tokens in, 5 out");
    person.types("/coast\r");
    person.waits_for("Did you mean /cost?");
    // A Tab that arrives with other keys is part of a pasted text.
    for (keys, shown) in
        [("/com", "> /com"), ("\t", "/compact "), ("now @no", "@no"), ("\t", "@notes/"), ("\t", "@notes/today.md ")]
    {
        person.types(keys);
        person.waits_for(shown);
    }
    person.types("\r");
    person.waits_for("turn 2 done");
    person.waits_for("> ");
    person.types("/exit\r");
    ends_with(&mut person, 0);
    let log = AgentLog::new(&person.case.path("log"));
    assert!(log.argv().contains(&"--model=opus".to_owned()), "{:?}", log.argv());
    assert_eq!(
        log.prompts(),
        ["/coast", "/compact now @notes/today.md "],
        "before it lists its commands, it may have any"
    );
}

#[test]
fn a_conversation_goes_on_with_another_model_and_then_with_another_agent() {
    let script = Script::new().say("msg_1", "One").done("One");
    let case = Case::with(script).file("work/a.txt", "");
    let mut person =
        case.at_terminal(&["chat", "--model=opus", "--env", "KEPT=yes", "--name", "long", "--yes", "begin"]);
    for (typed, said, about) in [
        ("/model sonnet\r", "model: sonnet", "Claude Code, continuing session "),
        ("/permissions read-only\r", "permissions: read-only", "Claude Code, continuing session "),
        ("/agent demo\r", "agent: demo, in a new session", "Demo, a new session"),
    ] {
        person.waits_for("turn 1 done");
        person.waits_for("> ");
        person.types(typed);
        person.waits_for(said);
        let seen = person.waits_for(about);
        assert!(!seen.contains("resume with"), "{seen}");
        person.waits_for("> ");
        waits_for_keys(&person);
        if !typed.starts_with("/agent") {
            person.types("go\r");
        }
    }
    person.types(CTRL_D);
    ends_with(&mut person, 0);
    let log = AgentLog::new(&person.case.path("log"));
    let argv = log.argv();
    let has = |begin: &str| argv.iter().any(|word| word.starts_with(begin));
    assert!(has("--model=sonnet") && has("--resume=") && !has("--model=opus"), "{argv:?}");
}

#[test]
fn a_conversation_goes_on_with_another_model_after_a_turn_that_failed() {
    let failed = crate::support::agent::error_result(json!({"subtype": "error_during_execution", "errors": ["No"]}));
    let script = Script::new().out(&failed).sh("prompt").say("msg_2", "Two").done("Two");
    let mut person = Case::with(script).at_terminal(&["chat", "begin"]);
    person.waits_for("turn 1 failed");
    person.waits_for("> ");
    person.types("/model sonnet\r");
    person.waits_for("Claude Code, continuing session ");
    person.waits_for("> ");
    waits_for_keys(&person);
    person.types(CTRL_D);
    ends_with(&mut person, 0);
}

#[test]
fn a_conversation_that_is_recorded_keeps_its_model() {
    let script = Script::new().say("msg_1", "One").done("One");
    let mut person = Case::with(script).at_terminal(&["chat", "--record", "all.jsonl", "begin"]);
    person.waits_for("turn 1 done");
    person.waits_for("> ");
    person.types("/model sonnet\r");
    person.waits_for("A conversation with --record or --report keeps its model");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
}

#[test]
fn a_terminal_that_becomes_narrow_keeps_one_copy_of_the_prompt() {
    let mut person = Case::with(Script::hello()).columns(60).at_terminal(&["chat"]);
    person.waits_for("> ");
    person.types("a prompt that is a good deal longer than half of the line");
    person.waits_for("of the line");
    person.resizes(30);
    // 59 columns are two rows of 30. The cursor goes up to the first of them.
    person.waits_for("\r\u{1b}[1A\u{1b}[J");
    person.types("\u{15}");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
}

#[test]
fn a_conversation_says_which_session_it_continues() {
    let case = Case::with(Script::hello());
    let first = case.run(&["adhoc", "Say the word"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let mut person = case.at_terminal(&["chat", "--continue"]);
    let line = person.waits_for("word)");
    assert!(line.contains("Claude Code, continuing session ") && line.contains(" (Say the"), "{line}");
    person.waits_for("> ");
    person.types(CTRL_D);
    ends_with(&mut person, 0);
}

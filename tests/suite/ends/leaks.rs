//! Tests of processes that the agent leaves behind: tools in sessions of their own, daemons, holders of its stdout.
//! Every test file checks its runs for leftover processes. The agents here try hardest to leave some.

use crate::support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use support::agent::{Script, text};
use support::{Case, Outcome, Session, in_time, io, limit, procs, run, run_to_exit};

/// Ways to start a process that survives a kill of the group. Each writes its pid into `$D/child`.
const ESCAPES: [(&str, &str); 6] = [
    (
        "a session of its own",
        r#"setsid sh -c 'trap "" TERM INT HUP; echo $$ >"$1/child"; while :; do sleep 1; done' x "$D" &"#,
    ),
    ("a double fork", r#"(setsid sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" &)"#),
    ("nohup", r#"(nohup sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" >/dev/null 2>&1 &)"#),
    ("a group of its own", r#"(timeout 300 sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" &)"#),
    ("no environment", r#"(env -i setsid sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" &)"#),
    ("closed pipes", r#"(setsid sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" </dev/null >/dev/null 2>&1 &)"#),
];

/// The ways whose processes the program finds on this system: without what Linux alone has, it finds only those in the
/// agent's process group.
fn escapes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ESCAPES.into_iter().filter(|(name, _)| cfg!(feature = "linux") || *name == "nohup")
}

const WAIT_CHILD: &str = r#"while ! [ -s "$D/child" ]; do sleep 0.01; done"#;

fn child(session: &Session) -> i32 {
    session.wait_until("the child", || session.log().text("child").ends_with('\n'));
    session.log().text("child").trim().parse().unwrap()
}

#[track_caller]
fn assert_gone(outcome: &Outcome, name: &str) {
    let pid = outcome.log().text("child").trim().parse().unwrap();
    // A killed process may need a while to exit.
    assert!(io::wait_for(limit(), || !procs::alive(pid)), "{name}: {pid} is alive");
}

#[test]
fn no_process_of_a_tool_survives_a_cancel() {
    for (name, escape) in escapes() {
        let script = Script::new().sh(escape).sh(WAIT_CHILD).say("msg_1", "started").sh("listen");
        let mut session = Case::with(script).spawn();
        session.start(json!({}));
        session.until_text("started");
        session.cancel();
        let outcome = session.finish();
        outcome.cancelled();
        assert_gone(&outcome, name);
    }
}

/// As git does with its locks: the tool cleans up after SIGTERM, although the agent is gone by then.
#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes that an agent leaves behind")]
fn a_tool_has_time_to_react_to_sigterm_when_its_agent_is_gone() {
    let tool =
        r#"(trap 'sleep 0.1; echo clean >"$D/clean"; exit' TERM; echo up >"$D/up"; while :; do sleep 0.01; done) &"#;
    for (name, end) in [("an agent that dies of SIGTERM", "exec sleep 300"), ("one that obeys the interrupt", "listen")]
    {
        let mut session = Case::with(Script::new().sh(tool).sh(end)).spawn();
        session.start(json!({}));
        session.wait_until("the tool", || !session.log().text("up").is_empty());
        session.cancel();
        let outcome = session.finish();
        outcome.cancelled();
        assert_eq!(outcome.log().text("clean"), "clean\n", "{name}");
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes that an agent leaves behind")]
fn processes_that_outlive_a_polite_agent_are_stopped_with_a_warning() {
    for (name, escape) in escapes() {
        let script = Script::new().sh(escape).sh(WAIT_CHILD).say("msg_1", "ok").done("ok");
        let outcome = run_to_exit(|| Case::with(script.clone()), &json!({}), 0);
        assert_eq!(outcome.completed()["text"], "ok", "{name}");
        assert_gone(&outcome, name);
        assert!(!outcome.warnings("leaked_process").is_empty(), "{name}: no warning leaked_process");
    }
}

#[test]
fn a_run_that_leaves_nothing_behind_has_no_such_warning() {
    let script = Script::new().sh("sleep 0.01 & wait").say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    assert!(outcome.warnings("leaked_process").is_empty());
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_grandchild_that_holds_stdout_does_not_hold_the_run() {
    let script = Script::new()
        .sh(r#"setsid sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" &"#)
        .sh(WAIT_CHILD)
        .say("msg_1", "last")
        .result("last")
        .sh("exit 0");
    in_time(|| {
        let mut session = Case::with(script.clone()).spawn();
        let began = Instant::now();
        session.start(json!({}));
        let outcome = session.finish();
        assert_eq!(outcome.completed()["text"], "last");
        assert!(!outcome.warnings("leaked_process").is_empty());
        assert_gone(&outcome, "a grandchild");
        let took = outcome.ended - began;
        if took < Duration::from_secs(2) { Ok(()) } else { Err(format!("the end came after {took:?}")) }
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn every_line_before_the_agents_death_is_delivered() {
    let line = text("msg_0", "line").to_string().replace("msg_0", "msg_%d");
    // awk reads its printf format from a file, so that no quoting is needed.
    let script = Script::new()
        .sh(&format!("cat >\"$D/format\" <<'END'\n{line}\nEND"))
        .sh(r#"(setsid sh -c 'echo $$ >"$1/child"; exec sleep 300' x "$D" &)"#)
        .sh(WAIT_CHILD)
        .sh(r#"awk '{ for (i = 1; i <= 2000; i++) printf $0 "\n", i }' "$D/format""#)
        .say("msg_last", "the very last")
        .sh("exit 3");
    let outcome = run(Case::with(script), json!({}));
    outcome.failed("agent_exited");
    assert_eq!(outcome.terminal()["payload"]["agent_exit"]["code"], 3);
    let texts = outcome.progress("text");
    assert_eq!(texts.len(), 2001);
    assert_eq!(texts[2000].text("text"), "the very last");
}

#[test]
fn when_the_program_is_killed_the_whole_tree_ends_within_a_second() {
    // After the program exits, an orphan without our environment cannot be distinguished from other processes.
    for (name, escape) in escapes().filter(|(name, _)| *name != "no environment") {
        let script = Script::bare()
            .sh("trap '' TERM INT HUP\nleave() { while :; do sleep 1; done; }")
            .sh("prompt")
            .out(&support::agent::init())
            .sh(escape)
            .sh(WAIT_CHILD)
            .say("msg_1", "started")
            .sh("listen");
        in_time(|| {
            let mut session = Case::with(script.clone()).spawn();
            session.start(json!({}));
            session.until_text("started");
            let (agent, child) = (session.log().pid(), child(&session));
            assert!(procs::alive(agent) && procs::alive(child), "{name}");
            let killed = Instant::now();
            session.signal(Signal::KILL);
            session.wait_exit();
            session.wait_until(name, || !procs::alive(agent) && !procs::alive(child));
            let took = killed.elapsed();
            let outcome = session.finish_unchecked();
            assert!(outcome.left.is_empty(), "{name}: {:?}", outcome.left);
            if took < Duration::from_secs(1) { Ok(()) } else { Err(format!("{name}: {took:?}")) }
        });
    }
}

#[test]
fn a_process_that_ends_during_the_run_is_not_a_leak() {
    let brief =
        r#"(setsid true & echo $! >"$D/child"); while kill -0 "$(cat "$D/child")" 2>/dev/null; do sleep 0.01; done"#;
    let script = Script::new().sh(brief).say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    assert!(outcome.warnings("leaked_process").is_empty());
}

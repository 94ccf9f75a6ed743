//! Tests of a fault of our own at any point. After a panic, the run ends with `internal_error` and one terminal frame. A
//! thread that stops for ever does not keep the process after a signal. No process of the agent is left.

use crate::acp::hostile::PANICS;
use crate::agents::verify::verify_hasty;
use crate::support::agent::{Script, quote};
use crate::support::machine::not_checked;
use crate::support::{Case, Outcome, Session, in_time, io, read, start_line};
use crate::tidy::code::{code, rust_files};
use crate::workflows::implement::{allowed, phase, plan, project};
use crate::workflows::worktree::repository;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};
use std::time::Duration;

/// Makes a debug build panic at the named point.
const PANIC_AT: &str = "TEST_PANIC_AT";
/// Makes a debug build send itself SIGTERM at the named point, and stop there for ever.
pub(crate) const HANG_AT: &str = "TEST_HANG_AT";
/// Makes a debug build stop for ever at the named point.
const STALL_AT: &str = "TEST_STALL_AT";
/// Makes a debug build send itself SIGTERM at the named point.
const SIGNAL_AT: &str = "TEST_SIGNAL_AT";

/// The setup that makes a run reach a point.
#[derive(Clone, Copy, PartialEq)]
enum Reached {
    /// Every run with an agent reaches the point.
    Always,
    ByCancel,
    /// The run has an MCP server for the agent to start.
    ByServer,
    /// The agent connects to the ask-server's socket.
    ByAsking,
    ByPromptFile,
    /// The agent completes its work in a git repository.
    ByCompletion,
    /// The run is a conversation with checkpoints.
    ByCheckpoint,
    /// `implement --commit` carries out a plan.
    ByImplement,
}

/// Every point, except those of stdout's writer that a pipe does not reach.
const POINTS: &[(&str, Reached)] = &[
    ("agent-exit", Reached::Always),
    ("agent-exit sweep", Reached::ByCancel),
    ("agent-stderr", Reached::Always),
    ("agent-stdin", Reached::Always),
    ("agent-stdout", Reached::Always),
    ("agent-stdout line", Reached::Always),
    ("ask", Reached::ByAsking),
    ("ask-answers", Reached::ByAsking),
    ("ask-peer", Reached::ByAsking),
    ("attempted", Reached::ByImplement),
    ("backstop", Reached::ByCancel),
    ("checkpoints", Reached::ByCheckpoint),
    ("command line", Reached::Always),
    ("configuration", Reached::Always),
    ("phase-io", Reached::ByImplement),
    ("started", Reached::ByImplement),
    ("git-baseline", Reached::Always),
    ("git-compare", Reached::ByCompletion),
    ("git-status", Reached::ByImplement),
    ("loop", Reached::Always),
    ("loop with a deadline", Reached::ByCancel),
    ("output", Reached::Always),
    ("plan", Reached::ByImplement),
    ("reaper", Reached::Always),
    ("servers", Reached::ByServer),
    ("signals", Reached::Always),
    ("signals signal", Reached::Always),
    ("signals-backstop", Reached::Always),
    ("start", Reached::ByPromptFile),
    ("stdin", Reached::Always),
    ("stdin message", Reached::Always),
    ("stdout-watch", Reached::Always),
    ("step", Reached::Always),
];

/// The points at which stdout is lost if it is a file. A pipe needs the writer only while it is full.
const WRITER: &[&str] = &["stdout", "stdout chunk"];

/// The points of `protocol check`, which has no run of its own.
const CHECKER: &[&str] = &["client"];
/// The points of the program that a client of the check starts.
const PLAYER: &[&str] = &["frames"];
/// The points of `agents verify`.
const VERIFIER: &[&str] = &["model", "model-door", "model-talk"];

/// The points after the last frame of a run.
const AFTER: &[&str] = &["worktree close"];

/// The time for the start of a run and for its end, which takes at most 4 s from the first request.
const STARTED_AND_STOPPED: Duration = Duration::from_secs(6);

pub(crate) fn has_points(test: &str) -> bool {
    if !cfg!(debug_assertions) {
        not_checked(test, "only a debug build has points at which it can be made to panic");
    }
    cfg!(debug_assertions)
}

/// A run with a fault at this point, with a process that only a sweep ends: a tool in a session of its own that ignores
/// SIGTERM.
fn case(fault: &str, point: &str, reached: Reached) -> Case {
    if reached == Reached::ByImplement {
        return project(&plan(&[phase(1, &["test -s a"], "")]), "echo 1 >a").git().env(fault, point);
    }
    let tool = "setsid sh -c \"trap '' TERM; exec sleep 1000\" >/dev/null 2>&1 &\necho some noise >&2";
    let script = Script::new().sh(tool).say("msg_1", "up");
    let script = if reached == Reached::ByCompletion { script.done("up") } else { script.sh("listen") };
    let case = Case::with(script).git().env(fault, point);
    match reached {
        Reached::ByPromptFile => case.file("work/prompt", "hi").args(&["--prompt-file", "prompt"]),
        Reached::ByAsking => {
            let log = quote(&case.path("log").display().to_string());
            case.program("opencode", &format!("#!/bin/sh\nD={log}\n{ACP}"))
        }
        Reached::Always | Reached::ByCancel | Reached::ByServer | Reached::ByCompletion => case,
        Reached::ByCheckpoint | Reached::ByImplement => case,
    }
}

/// An ACP agent that records how to start the ask-server.
const ACP: &str = r#"
recv() { IFS= read -r line || exit 0; }
recv; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
recv; printf '%s\n' "$line" >"$D/new.part"; mv "$D/new.part" "$D/new"
sleep 1000 & wait
"#;

fn connect(session: &Session) -> UnixStream {
    let new = session.log().path("new");
    session.wait_until("the session", || new.exists());
    let new: Value = serde_json::from_str(&read(&new)).unwrap();
    let address = new["params"]["mcpServers"][0]["env"][0]["value"].as_str().unwrap().to_owned();
    let (nonce, path) = address.split_once(':').unwrap();
    let mut stream = UnixStream::connect(path).unwrap();
    // The other side may have exited already.
    let _ = writeln!(stream, "{nonce}");
    stream
}

fn carry(fault: &str, point: &str, reached: Reached) -> Outcome {
    let mut session = case(fault, point, reached).spawn();
    match reached {
        Reached::Always | Reached::ByCancel | Reached::ByCompletion => drop(session.start(json!({"agent": "claude"}))),
        Reached::ByCheckpoint => {
            session.start(json!({"agent": "claude", "conversation": true, "checkpoints": true}));
        }
        Reached::ByAsking => drop(session.start(json!({"agent": "opencode"}))),
        Reached::ByServer => {
            let server = json!({"name": "s", "command": "s", "required": false});
            session.start(json!({"agent": "claude", "mcp_servers": [server]}));
        }
        Reached::ByImplement => drop(session.start(allowed(json!({"commit": true})))),
        Reached::ByPromptFile => {}
    }
    match reached {
        Reached::Always | Reached::ByServer | Reached::ByPromptFile | Reached::ByCompletion => {}
        Reached::ByCheckpoint | Reached::ByImplement => {}
        Reached::ByCancel => {
            session.until_text("up");
            session.cancel();
        }
        Reached::ByAsking if point == "ask" => {}
        Reached::ByAsking => drop(connect(&session)),
    }
    session.finish_unchecked()
}

#[test]
fn a_panic_at_any_point_ends_the_run_in_order() {
    if !has_points("a_panic_at_any_point_ends_the_run_in_order") {
        return;
    }
    for (point, reached) in POINTS {
        // git has two seconds after the agent's end. A baseline that is late leaves nothing to compare.
        let outcome = in_time(|| {
            let outcome = carry(PANIC_AT, point, *reached);
            let late = outcome.warnings("artifacts_incomplete").first().map(|warning| warning.raw.clone());
            late.filter(|_| *point == "git-compare").map_or(Ok(outcome), Err)
        });
        let terminals = outcome.frames.iter().filter(|frame| frame.is_terminal()).count();
        assert_eq!(terminals, 1, "{point}: {}", outcome.stdout);
        assert!(
            outcome.frames.iter().all(|frame| !frame.raw.contains(r#""run_id":"""#)),
            "{point}: {}",
            outcome.stdout
        );
        outcome.failed("internal_error");
        assert_eq!(outcome.exit_code, Some(70), "{point}");
        assert!(outcome.left.is_empty(), "{point}: {:?}", outcome.left);
    }
}

#[test]
fn a_panic_of_the_writer_of_stdout_ends_in_74_and_stops_the_agent() {
    if !has_points("a_panic_of_the_writer_of_stdout_ends_in_74_and_stops_the_agent") {
        return;
    }
    for point in WRITER {
        let (case, said) = written_by_the_writer(PANIC_AT, point);
        assert_eq!(said.status.code(), Some(74), "{point}: {}", read(&case.path("out")));
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert!(stderr.starts_with("spektacular: undelivered: "), "{point}: {stderr}");
        assert_eq!(case.survivors(), Vec::<String>::new(), "{point}");
    }
}

/// The points of the threads that read the agent's output or mark its end.
const READERS: &[&str] = &["agent-exit", "agent-exit sweep", "agent-stderr", "agent-stdout", "agent-stdout line"];

/// The points of the threads without which no frame follows a signal. Before the run, the main thread does everything.
const FRAMES: [&str; 8] = [
    "command line",
    "configuration",
    "loop",
    "loop with a deadline",
    "signals",
    "signals signal",
    "stdin message",
    "step",
];

#[test]
fn a_thread_that_stops_for_ever_does_not_keep_a_process_that_is_told_to_end() {
    if !has_points("a_thread_that_stops_for_ever_does_not_keep_a_process_that_is_told_to_end") {
        return;
    }
    for (point, reached) in POINTS {
        let outcome = in_time(|| {
            let outcome = carry(HANG_AT, point, *reached);
            let took = outcome.took();
            if took < STARTED_AND_STOPPED { Ok(outcome) } else { Err(format!("{point}: {took:?}")) }
        });
        assert!(outcome.left.is_empty(), "{point}: {:?}", outcome.left);
        let terminals = outcome.frames.iter().filter(|frame| frame.is_terminal()).count();
        let is_mute = FRAMES.contains(point);
        assert_eq!(terminals, usize::from(!is_mute), "{point}: {}", outcome.stdout);
        assert_eq!(outcome.exit_code == Some(74), is_mute, "{point}: {:?} {}", outcome.exit_code, outcome.stderr);
        let is_cut = READERS.contains(point);
        assert_eq!(outcome.warnings("output_incomplete").len(), usize::from(is_cut), "{point}: {}", outcome.stdout);
    }
}

/// As if the message took for ever to read.
#[test]
fn a_signal_is_served_while_a_message_is_read() {
    if !has_points("a_signal_is_served_while_a_message_is_read") {
        return;
    }
    // The end of a message of this length comes in a later read than its beginning.
    let prompt = "x".repeat(1 << 20);
    let mut session = Case::with(Script::hello()).env(HANG_AT, "stdin message").spawn();
    session.start(json!({"agent": "claude", "prompt": prompt}));
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.terminal().kind(), "run.cancelled", "{} {}", outcome.stdout, outcome.stderr);
    assert!(outcome.took() < STARTED_AND_STOPPED, "{:?}", outcome.took());
}

/// Runs an agent that stays, with a file as stdout, which has the writer write.
#[track_caller]
fn written_by_the_writer(fault: &str, point: &str) -> (Case, Output) {
    let case = case(fault, point, Reached::Always);
    let out = File::create(case.path("out")).unwrap();
    let mut command = case.other("work", &["adhoc", "--output", "json"]);
    let mut run = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    // The program may have ended before it reads this.
    let _ = writeln!(run.stdin.take().unwrap(), "{}", start_line(r#"{"prompt":"hi","agent":"claude"}"#));
    let said = run.wait_with_output().unwrap();
    (case, said)
}

#[test]
fn a_writer_of_stdout_that_stops_for_ever_does_not_keep_a_process_that_is_told_to_end() {
    if !has_points("a_writer_of_stdout_that_stops_for_ever_does_not_keep_a_process_that_is_told_to_end") {
        return;
    }
    for point in WRITER {
        let (case, said) = written_by_the_writer(HANG_AT, point);
        assert_eq!(said.status.code(), Some(74), "{point}: {}", read(&case.path("out")));
        assert_eq!(case.survivors(), Vec::<String>::new(), "{point}");
    }
}

#[test]
fn a_loop_that_stops_for_ever_does_not_keep_a_run_beyond_its_deadline() {
    if !has_points("a_loop_that_stops_for_ever_does_not_keep_a_run_beyond_its_deadline") {
        return;
    }
    let mut session = case(STALL_AT, "loop with a deadline", Reached::Always).spawn();
    session.start(json!({"agent": "claude", "timeout_s": 1}));
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.exit_code, Some(74), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("the run did not end in time"), "{}", outcome.stderr);
    assert!(outcome.left.is_empty(), "{:?}", outcome.left);
}

#[test]
fn work_after_the_run_costs_neither_its_end_nor_its_exit_code() {
    if !has_points("work_after_the_run_costs_neither_its_end_nor_its_exit_code") {
        return;
    }
    for point in AFTER {
        let case = repository("exec sleep 1000").env(STALL_AT, point);
        let mut session = case.args(&["--worktree=fix", "--prompt", "go"]).spawn();
        session.until("run.started");
        session.signal(Signal::TERM);
        let outcome = session.finish_unchecked();
        outcome.cancelled();
        assert_eq!(outcome.exit_code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("the work after the run did not end in time"), "{}", outcome.stderr);
    }
}

#[test]
fn a_panic_of_another_command_is_reported() {
    if !has_points("a_panic_of_another_command_is_reported") {
        return;
    }
    let said = Case::new().env(PANIC_AT, "configuration").cli(&["hi"]);
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(70), "{stderr}");
    assert!(stderr.starts_with("spektacular: internal_error: "), "{stderr}");
}

#[test]
fn a_panic_of_the_checker_is_not_blamed_on_the_client() {
    if !has_points("a_panic_of_the_checker_is_not_blamed_on_the_client") {
        return;
    }
    for point in CHECKER {
        let case = Case::new().env(PANIC_AT, point);
        let words = ["protocol", "check", "--dialogue", "hello", "--timeout", "1", "--", "true"];
        let said = case.other("work", &words).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(70), "{stderr}");
        assert!(stderr.contains("spektacular: internal_error: "), "{stderr}");
    }
    for point in PLAYER {
        let case = Case::new().env(PANIC_AT, point);
        let program = env!("CARGO_BIN_EXE_spektacular");
        let words =
            ["protocol", "check", "--dialogue", "hello", "--", program, "adhoc", "--output", "json", "--prompt", "hi"];
        let said = case.other("work", &words).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(70), "{stderr}");
        assert!(said.stdout.is_empty() && stderr.contains("spektacular has a bug"), "{stderr}");
    }
}

#[test]
fn a_panic_of_the_scripted_model_is_not_blamed_on_the_agent() {
    if !has_points("a_panic_of_the_scripted_model_is_not_blamed_on_the_agent") {
        return;
    }
    for point in VERIFIER {
        let said = verify_hasty(&[(PANIC_AT, point)]);
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(70), "{point}: {stderr}");
        assert!(stderr.contains("spektacular: internal_error: "), "{stderr}");
    }
}

/// The signal handlers are installed before the command line and the configuration are read, even if the command line
/// is refused.
#[test]
fn a_signal_while_a_run_is_prepared_ends_in_a_frame() {
    if !has_points("a_signal_while_a_run_is_prepared_ends_in_a_frame") {
        return;
    }
    for (flags, kind) in [(&[][..], "run.cancelled"), (&["--no-such-flag"][..], "run.failed")] {
        let points = ["command line", "configuration"];
        for (command, point) in ["adhoc", "spec", "plan", "implement"].into_iter().zip(points.into_iter().cycle()) {
            let case = Case::new().env(SIGNAL_AT, point);
            let words = [&[command, "--output", "json"], flags].concat();
            let mut command = case.other("work", &words);
            let mut run = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let stdin = run.stdin.take();
            let done = run.wait_with_output().unwrap();
            drop(stdin);
            let out = String::from_utf8(done.stdout).unwrap();
            let last: Value = serde_json::from_str(out.lines().last().unwrap_or_default())
                .unwrap_or_else(|_| panic!("{words:?}: no frame, {}", done.status));
            assert_eq!(last["type"], kind, "{words:?}");
        }
    }
}

#[test]
fn a_dry_run_leaves_signals_their_default_actions() {
    if !has_points("a_dry_run_leaves_signals_their_default_actions") {
        return;
    }
    let case = Case::new().env(SIGNAL_AT, "command line");
    let mut command = case.other("work", &["adhoc", "--dry-run", "-"]);
    let mut run = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It waits for the prompt.
    let stdin = run.stdin.take();
    let status = io::exit(&mut run, case.limit).expect("the end");
    drop(stdin);
    assert_eq!(status.signal(), Some(15), "{status}");
}

#[test]
fn every_thread_and_every_point_has_a_row() {
    let mut named = BTreeSet::new();
    for (_, text) in rust_files("src") {
        for call in ["spawn_thread(\"", "point(\"", "BackgroundTask::start(\""] {
            let names = code(&text).split(call).skip(1).filter_map(|rest| rest.split('"').next());
            named.extend(names.map(str::to_owned));
        }
    }
    let rows =
        POINTS.iter().map(|(point, _)| *point).chain([WRITER, CHECKER, PLAYER, VERIFIER, AFTER].concat()).chain(PANICS);
    assert_eq!(named, rows.map(str::to_owned).collect());
}

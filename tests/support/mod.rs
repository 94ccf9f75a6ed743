//! The harness. A case is a folder with a fake agent. A session, a person or a plain call runs the program there. An
//! outcome holds the frames and the exit code. No test sleeps in place of waiting for an event, and every wait has a
//! limit.

pub(crate) mod agent;
pub(crate) mod attacks;
pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod io;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod person;
pub(crate) mod procs;
pub(crate) mod schema;
pub(crate) mod screen;
pub(crate) mod session;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use case::Case;
pub(crate) use machine::limit;
pub(crate) use outcome::{Frame, Outcome};
pub(crate) use session::Session;

/// The run id that `Session::start` chooses.
pub(crate) const RUN: &str = "run-under-test";
/// The environment variable by which a test finds its own processes.
pub(crate) const MARKER: &str = "TEST_CASE";

/// The delay that a loaded machine may add to a time that the protocol promises: 0.7 s, and more where the waits are longer.
#[track_caller]
pub(crate) fn slack() -> Duration {
    limit() * 7 / 200
}

/// Repeats a scenario with a time limit of the program until the machine is fast enough for it, and returns its result.
/// A load can only delay, so that one success is proof, and a defect fails each time. `Err`: what came too late.
#[track_caller]
pub(crate) fn in_time<T>(mut scenario: impl FnMut() -> Result<T, String>) -> T {
    let until = Instant::now() + limit();
    for tries in 1.. {
        match scenario() {
            Ok(result) => return result,
            Err(late) if tries > 3 && Instant::now() > until => panic!("late in each of {tries} tries: {late}"),
            Err(_) => {}
        }
    }
    unreachable!("the loop has no end")
}

/// A message for `Session::send_line`, from its payload's text.
pub(crate) fn start_line(payload: &str) -> String {
    format!(r#"{{"v":"1","id":"start","type":"run.start","run_id":"{RUN}","payload":{payload}}}"#)
}

/// Runs a case from start to end without sending messages in between.
#[track_caller]
pub(crate) fn run(case: Case, payload: Value) -> Outcome {
    let mut session = case.spawn();
    session.start(payload);
    session.finish()
}

/// Runs a case until git answers within the two seconds for which a run waits.
#[track_caller]
pub(crate) fn run_with_git(case: impl Fn() -> Case, payload: &Value) -> Outcome {
    in_time(|| {
        let outcome = run(case(), payload.clone());
        let late = |warning: &&Frame| warning.text("text").starts_with("git was too slow: ");
        let warning =
            outcome.warnings("artifacts_incomplete").into_iter().find(late).map(|warning| warning.raw.clone());
        warning.map_or(Ok(outcome), Err)
    })
}

/// Runs a case until its agent exits by itself, with this code, within the two seconds that it has after its result.
#[track_caller]
pub(crate) fn run_to_exit(case: impl Fn() -> Case, payload: &Value, code: i64) -> Outcome {
    in_time(|| {
        let outcome = run(case(), payload.clone());
        let exit = outcome.terminal().payload()["agent_exit"].clone();
        if exit["code"] == code { Ok(outcome) } else { Err(exit.to_string()) }
    })
}

/// The file's text, or "" if there is no file.
pub(crate) fn read(path: &Path) -> String {
    fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

/// The values of the options of a question's payload.
#[track_caller]
pub(crate) fn options(question: &Value) -> Vec<&str> {
    list(&question["options"]).iter().map(|option| option["value"].as_str().expect("value")).collect()
}

/// The elements of an array, or none if the value is not an array.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

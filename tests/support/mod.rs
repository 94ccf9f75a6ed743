//! The harness. A case is a folder with a fake agent. A session, a person or a plain call runs the program there. An
//! outcome holds the frames and the exit code. No test sleeps in place of waiting for an event, and every wait has a
//! limit.

pub(crate) mod agent;
pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod io;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod person;
pub(crate) mod procs;
pub(crate) mod session;

use std::fs;
use std::path::Path;
use std::time::Duration;

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

//! The clocks of a run stand still while the program is stopped.

use crate::support::agent::Script;
use crate::support::{Case, Session, io, read};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Longer than the limits of the run.
const STOP: Duration = Duration::from_secs(5);
const LIMIT_S: u32 = 3;

fn is_stopped(session: &Session) -> bool {
    let stat = read(Path::new(&format!("/proc/{}/stat", session.pid())));
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// A run whose limits pass while it is stopped.
fn stopped_by(signal: Signal, payload: serde_json::Value) -> Session {
    let script = Script::new().say("msg_1", "up").sh("prompt").say("msg_2", "ok").done("ok");
    let mut session = Case::with(script).spawn();
    session.start(payload);
    session.until_text("up");
    session.signal(signal);
    session.wait_until("the stop", || is_stopped(&session));
    // The time itself is what the clocks must not count.
    io::wait_for(STOP, || false);
    session.signal(Signal::CONT);
    session
}

#[test]
fn no_limit_passes_while_the_program_is_stopped() {
    for signal in [Signal::STOP, Signal::TSTP] {
        for limit in ["idle_timeout_s", "timeout_s"] {
            let mut session = stopped_by(signal, json!({limit: LIMIT_S, "heartbeat_s": 0.2}));
            // A heartbeat after the stop: the loop runs, and has found no limit due.
            let before = session.frames.len();
            session.until_where("a heartbeat after the stop", |frame| frame.is_progress("heartbeat"));
            assert!(session.frames.len() > before);
            session.cancel();
            let outcome = session.finish();
            let duration = outcome.cancelled()["duration_ms"].as_u64().unwrap();
            assert!(duration < 1000 * u64::from(LIMIT_S) + 2000, "{signal:?} {limit}: {duration} ms");
        }
    }
}

#[test]
fn a_limit_still_passes_after_a_stop() {
    for limit in ["idle_timeout_s", "timeout_s"] {
        let session = stopped_by(Signal::STOP, json!({limit: LIMIT_S}));
        session.finish().failed(limit.strip_suffix("_s").unwrap());
    }
}

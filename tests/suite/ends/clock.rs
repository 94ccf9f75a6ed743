//! The clocks of a run stand still while the program is stopped.

use crate::support::agent::Script;
use crate::support::{Case, Session, io, procs, read};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// The limits of a run in seconds, the shortest first. A stop takes longer than the limit.
const LIMITS_S: [u64; 4] = [3, 6, 12, 24];

fn stop_of(limit_s: u64) -> Duration {
    Duration::from_secs(limit_s + 2)
}

fn is_stopped(session: &Session) -> bool {
    let stat = read(Path::new(&format!("/proc/{}/stat", session.pid())));
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// A run whose limit passes while it is stopped. `None`: the machine is so loaded that the limit passed before the stop.
fn stopped_by(signal: Signal, limit: &str, limit_s: u64) -> Option<Session> {
    let script = Script::new().say("msg_1", "up").sh("prompt").say("msg_2", "ok").done("ok");
    let mut session = Case::with(script).spawn();
    let began = Instant::now();
    session.start(json!({limit: limit_s, "heartbeat_s": 0.2}));
    session.until_where("a word or the end", |frame| frame.is_terminal() || frame.text("text").contains("up"));
    session.signal(signal);
    session.wait_until("the stop or the end", || is_stopped(&session) || !procs::alive(session.pid() as i32));
    if began.elapsed() >= Duration::from_secs(limit_s) / 2 {
        return None;
    }
    // No event: the elapsed time itself is what the clocks must not count.
    io::wait_for(stop_of(limit_s), || false);
    session.signal(Signal::CONT);
    Some(session)
}

/// The run with the shortest limit that this machine can keep before the stop.
#[track_caller]
fn stopped_in_time(signal: Signal, limit: &str) -> (Session, u64) {
    let stopped = |limit_s| Some((stopped_by(signal, limit, limit_s)?, limit_s));
    LIMITS_S.into_iter().find_map(stopped).expect("a machine that starts a shell within twelve seconds")
}

#[test]
fn no_limit_passes_while_the_program_is_stopped() {
    for signal in [Signal::STOP, Signal::TSTP] {
        for limit in ["idle_timeout_s", "timeout_s"] {
            let (mut session, limit_s) = stopped_in_time(signal, limit);
            // A heartbeat after the stop shows that the loop runs and found no limit due.
            session.until_where("a heartbeat after the stop", |frame| frame.is_progress("heartbeat"));
            session.cancel();
            let outcome = session.finish();
            let duration = Duration::from_millis(outcome.cancelled()["duration_ms"].as_u64().unwrap());
            assert!(duration < stop_of(limit_s), "{signal:?} {limit}: the run counts {duration:?} with the stop");
        }
    }
}

#[test]
fn a_limit_still_passes_after_a_stop() {
    for limit in ["idle_timeout_s", "timeout_s"] {
        let (session, _) = stopped_in_time(Signal::STOP, limit);
        session.finish().failed(limit.strip_suffix("_s").unwrap());
    }
}

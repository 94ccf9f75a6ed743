//! Tests with many runs in parallel, many events, and long silences. Each test has a short form, and a long form for an
//! idle machine.

use crate::length::by_length;
use crate::support::agent::{Script, text};
use crate::support::{Case, Session, io, limit, procs, read, start_line};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn many_runs_at_once_do_not_disturb_each_other() {
    let count = by_length(10, 50);
    let mut sessions: Vec<Session> = (0..count).map(|_| Case::with(Script::hello()).spawn()).collect();
    for session in &mut sessions {
        session.start(json!({}));
    }
    for session in sessions {
        assert_eq!(session.finish().completed()["text"], "Hello");
    }
}

/// The additional memory that the program may need for more events, in KiB. The lists of events that it has seen are
/// short.
const GROWTH_KIB: u64 = 4 << 10;

/// Measures the memory after a tenth of an agent's messages and after all of them.
#[test]
fn many_events_take_no_more_memory_than_a_tenth_of_them() {
    let count = by_length(20_000, 100_000);
    let line = text("msg_@N", "word").to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let (head, tail) = line.split_once("@N").unwrap();
    let flood = format!("awk 'BEGIN {{ for (n = 0; n < {count}; n++) print \"{head}\" n \"{tail}\" }}'");
    let case = Case::with(Script::new().sh(&flood).say("last", "the last").sh("listen"));
    let command = &["adhoc", "--output", "json"];
    let mut child = case.other("work", command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", start_line(r#"{"prompt": "hi"}"#)).unwrap();
    let (mut texts, mut early, mut late) = (0, 0, 0);
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        texts += usize::from(line.contains(r#""kind":"text""#));
        if texts == count / 10 && early == 0 {
            early = procs::peak_kib(child.id());
        }
        if line.contains("the last") {
            late = procs::peak_kib(child.id());
            writeln!(stdin, r#"{{"v":"1","type":"run.cancel"}}"#).unwrap();
        }
    }
    assert_eq!(io::exit(&mut child, limit()).expect("the end").code(), Some(0));
    assert_eq!(texts, count + 1);
    assert!(early > 0 && late < early + GROWTH_KIB, "{early} KiB, then {late} KiB");
}

/// The number of times that the process's threads went to sleep. `None`: a thread does not sleep now.
fn sleeps(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let count = |status: String| {
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        field("State:").starts_with('S').then(|| field("voluntary_ctxt_switches:").parse::<u64>().unwrap())
    };
    tasks.map(|task| count(read(&task.path().join("status")))).sum()
}

#[test]
fn nothing_wakes_up_in_a_silence() {
    let silence = Duration::from_secs(by_length(2, 60));
    let mut session = Case::with(Script::new().say("msg_1", "up").sh("listen")).spawn();
    session.start(json!({"heartbeat_s": 0}));
    session.until_text("up");
    // The baseline of the work tree may still be in progress: the silence begins when nothing changes any more.
    session.wait_until("the silence", || {
        let before = sleeps(session.pid());
        before.is_some() && !io::wait_for(Duration::from_millis(300), || sleeps(session.pid()) != before)
    });
    let before = sleeps(session.pid()).expect("silence");
    // No event: the test measures the silence itself.
    io::wait_for(silence, || false);
    let woken = sleeps(session.pid()).map(|after| after - before);
    session.cancel();
    session.finish().cancelled();
    assert_eq!(woken, Some(0), "wake-ups without an event");
}

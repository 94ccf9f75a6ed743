//! Tests of files that a command line names and that are pipes or terminals: signals are always served, and a file that
//! nobody writes or reads is an error.

use crate::support;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use support::agent::Script;
use support::{Case, Session, procs};

/// Starts the program with a file that is a pipe which nobody opens for writing.
#[track_caller]
fn with_pipe(flags: &[&str]) -> (Session, PathBuf) {
    let case = Case::with(Script::hello());
    let pipe = case.path("pipe");
    assert!(Command::new("/usr/bin/mkfifo").arg(&pipe).status().unwrap().success());
    let flags: Vec<&str> =
        flags.iter().map(|flag| if *flag == "PIPE" { pipe.to_str().unwrap() } else { flag }).collect();
    (case.args(&flags).spawn(), pipe)
}

const FILES: [&[&str]; 5] = [
    &["--prompt-file", "PIPE"],
    &["--answers", "PIPE", "--prompt", "go"],
    &["--answers", "PIPE"],
    &["--system-prompt-file", "PIPE", "--prompt", "go"],
    &["--system-prompt-file", "PIPE"],
];

#[test]
fn a_signal_is_served_while_a_pipe_is_waited_for() {
    for flags in FILES {
        let (session, pipe) = with_pipe(flags);
        // The open pipe makes the program wait for input.
        let _writer = fs::File::options().read(true).write(true).open(pipe).unwrap();
        session.wait_until("the handlers of signals", || procs::handles(session.pid(), Signal::TERM));
        session.signal(Signal::TERM);
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["source"], "signal", "{flags:?}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_an_error() {
    let sessions: Vec<Session> = FILES.iter().map(|flags| with_pipe(flags).0).collect();
    for (session, flags) in sessions.into_iter().zip(FILES) {
        let message = session.finish().failed("usage")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(flags[0]) && message.contains("nothing writes"), "{message}");
    }
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let (session, pipe) = with_pipe(&["--system-prompt-file", "PIPE", "--prompt", "go"]);
    let mut writer = fs::File::options().write(true).open(pipe).unwrap();
    writer.write_all(b"be ").unwrap();
    writer.write_all(b"brief\n").unwrap();
    drop(writer);
    let outcome = session.finish();
    outcome.completed();
    assert!(outcome.log().argv().iter().any(|arg| arg.ends_with("=be brief")), "{:?}", outcome.log().argv());
}

#[test]
fn a_terminal_is_refused_as_a_recording() {
    let case = Case::with(Script::hello());
    let mut person = case.at_terminal(&["adhoc", "--record", "/dev/tty", "--headless", "go"]);
    let (code, seen) = person.ends();
    assert!(code == 2 && seen.contains("--record: the file cannot be written"), "{code} {seen}");
}

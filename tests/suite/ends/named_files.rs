//! Tests of files that a command line names and that are pipes or terminals: signals are always served, and a file that
//! nobody writes or reads is an error.

use crate::support;

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::OFlags;
use rustix::process::Signal;
use support::agent::Script;
use support::{Case, Session, procs};

/// A case with a pipe as its file, and the pipe.
#[track_caller]
fn with_pipe(flags: &[&str]) -> (Case, PathBuf) {
    let case = Case::with(Script::hello());
    let pipe = case.path("pipe");
    assert!(Command::new("/usr/bin/mkfifo").arg(&pipe).status().unwrap().success());
    let flags: Vec<&str> =
        flags.iter().map(|flag| if *flag == "PIPE" { pipe.to_str().unwrap() } else { flag }).collect();
    (case.args(&flags), pipe)
}

/// Both ends of the pipe. While they are open, the program waits for input.
fn both_ends(pipe: &Path) -> File {
    File::options().read(true).write(true).open(pipe).unwrap()
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
        let (case, pipe) = with_pipe(flags);
        let _kept = both_ends(&pipe);
        let session = case.spawn();
        session.wait_until("the handlers of signals", || procs::handles(session.pid(), Signal::TERM));
        session.signal(Signal::TERM);
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["source"], "signal", "{flags:?}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_an_error() {
    let sessions: Vec<Session> = FILES.iter().map(|flags| with_pipe(flags).0.spawn()).collect();
    for (session, flags) in sessions.into_iter().zip(FILES) {
        let message = session.finish().failed("usage")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(flags[0]) && message.contains("nothing writes"), "{message}");
    }
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let (case, pipe) = with_pipe(&["--system-prompt-file", "PIPE", "--prompt", "go"]);
    let mut ends = both_ends(&pipe);
    let session = case.spawn();
    ends.write_all(b"be ").unwrap();
    ends.write_all(b"brief\n").unwrap();
    // A pipe that nobody holds loses its content.
    let descriptors = format!("/proc/{}/fd", session.pid());
    let holds = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|file| file == pipe);
    session.wait_until("the program to open the pipe", || {
        fs::read_dir(&descriptors).into_iter().flatten().flatten().any(holds)
    });
    drop(ends);
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

#[test]
fn replay_waits_for_the_writer_of_a_pipe_only_within_a_limit() {
    let case = Case::new();
    assert!(case.command("mkfifo").arg("pipe").status().unwrap().success());
    let did = case.run(&["replay", "pipe"]);
    assert!(did.refused(2).contains("nothing writes to this pipe"), "{did:?}");
}

#[test]
fn replay_reads_a_line_of_any_length_in_limited_memory() {
    let case = Case::new();
    let recording = [r#"{"recording":1}"#, r#"{"at_ms":0,"host":"{\"type\":\"a\"}"}"#, r#"{"at_ms":0,"exit":3}"#];
    fs::write(case.path("work/run.jsonl"), recording.join("\n")).unwrap();
    let replay = format!("'{}' replay run.jsonl", env!("CARGO_BIN_EXE_spektacular"));
    // In KiB. The line takes more.
    let script = format!(
        r#"{{ head -c 300000000 /dev/zero; echo; echo '{{"type":"a"}}'; }} | {{ ulimit -v 250000; {replay}; }}"#
    );
    let did = case.command("/bin/sh").args(["-c", &script]).output().unwrap();
    let errors = String::from_utf8(did.stderr).unwrap();
    assert_eq!(did.status.code(), Some(3), "{errors}");
    assert!(errors.starts_with("replay: the host sent a line that is not a JSON object"), "{errors}");
}

#[test]
fn report_waits_for_the_writer_of_a_pipe_only_within_a_limit() {
    let case = Case::new();
    assert!(case.command("mkfifo").arg("pipe").status().unwrap().success());
    let did = case.run(&["report", "pipe"]);
    assert!(did.refused(2).contains("nothing writes to this pipe"), "{did:?}");
}

/// A repository whose git waits for the writer of a pipe for ever.
#[track_caller]
fn git_that_waits() -> Case {
    let case = Case::with(Script::hello()).git();
    assert!(case.command("mkfifo").arg("../pipe").status().unwrap().success());
    let set = ["config", "core.excludesFile", "../pipe"];
    assert!(case.command("git").args(set).status().unwrap().success());
    case
}

#[test]
fn a_worktree_waits_for_git_only_within_the_time_limit_of_the_run() {
    let case = git_that_waits();
    let did = case.run(&["adhoc", "--worktree", "--timeout", "1", "go"]);
    assert!(did.refused(2).contains("git did not read the repository in time"), "{did:?}");
    assert_eq!(case.survivors(), Vec::<String>::new());
}

#[test]
fn a_signal_ends_the_wait_for_git() {
    let session = git_that_waits().args(&["--worktree", "--prompt", "go"]).spawn();
    // A pipe without a reader takes no writer. The writer stays, and git waits for its text.
    let writer = OnceCell::new();
    let pipe = session.case().path("pipe");
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let open = || File::options().write(true).custom_flags(nonblocking).open(&pipe);
    session.wait_until("git", || open().is_ok_and(|file| writer.set(file).is_ok()));
    session.signal(Signal::TERM);
    session.finish().cancelled();
}

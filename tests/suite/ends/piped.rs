//! Tests of a person's run with piped input besides a prompt, and with every other kind of stdin.

use crate::support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeWriter, Seek, SeekFrom, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::agent::{AgentLog, Script};
use support::{Case, io, procs};

/// The number of bytes that every pipe holds.
const PIPE_BUF: usize = 4096;

fn hello() -> Case {
    Case::with(Script::hello())
}

fn adhoc(case: &Case, args: &[&str], stdin: impl Into<Stdio>) -> Child {
    let mut command = case.other("work", &[&["adhoc"], args].concat());
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn log(case: &Case) -> AgentLog {
    AgentLog::new(&case.path("log"))
}

/// A pipe with this content whose writer is closed.
fn holding(text: &str) -> Stdio {
    let (reader, mut writer) = pipe().unwrap();
    // Only a text that the pipe cannot hold has to wait for its reader.
    let is_short = text.len() <= PIPE_BUF;
    let text = text.to_owned();
    let mut write = move || writer.write_all(text.as_bytes());
    if is_short {
        write().unwrap()
    } else {
        drop(std::thread::spawn(write))
    }
    reader.into()
}

/// A pipe that stays open and empty.
fn silent() -> (Stdio, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    (reader.into(), writer)
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The prompt that the agent received.
#[track_caller]
fn prompt(args: &[&str], stdin: impl Into<Stdio>) -> String {
    let case = hello();
    let output = adhoc(&case, args, stdin).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut prompts = log(&case).prompts();
    assert_eq!(prompts.len(), 1);
    prompts.remove(0)
}

/// The error of a run that does not begin.
#[track_caller]
fn refused(args: &[&str], stdin: impl Into<Stdio>) -> String {
    let case = hello();
    let output = adhoc(&case, args, stdin).wait_with_output().unwrap();
    let said = stderr(&output).to_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(!log(&case).ran());
    let (_, message) = said.split_once("spektacular: usage: ").unwrap();
    message.trim_end().to_owned()
}

const FENCED: &str = "review this\n\n```stdin\na diff\nof two lines\n```";

#[test]
fn a_pipe_goes_behind_the_prompt() {
    let text = "a diff\nof two lines\n";
    assert_eq!(prompt(&["review", "this"], holding(text)), FENCED);
    assert_eq!(prompt(&["--prompt", "review this"], holding(text)), FENCED);
    let case = hello();
    fs::write(case.path("work/task"), "review this\n").unwrap();
    let output = adhoc(&case, &["--prompt-file", "task"], holding(text)).wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(log(&case).prompts(), [FENCED]);
}

#[test]
fn a_file_is_read_from_its_current_position() {
    let case = hello();
    let path = case.path("work/input");
    fs::write(&path, "not this\na diff\nof two lines\n").unwrap();
    let mut file = File::open(&path).unwrap();
    file.seek(SeekFrom::Start(9)).unwrap();
    assert_eq!(prompt(&["review", "this"], file), FENCED);
    fs::write(&path, "").unwrap();
    assert_eq!(prompt(&["review", "this"], File::open(&path).unwrap()), "review this", "an empty file adds nothing");
}

#[test]
fn a_dash_marks_the_place_of_stdin() {
    let said = prompt(&["Explain this:", "-", "in one line"], holding("x = 1\n"));
    assert_eq!(said, "Explain this:\n\n```stdin\nx = 1\n```\n\nin one line");
    assert_eq!(prompt(&["-"], holding("the whole prompt\n")), "the whole prompt");
    assert_eq!(prompt(&[], holding("the whole prompt\n")), "the whole prompt");
    assert_eq!(prompt(&["compute 3 - 2"], Stdio::null()), "compute 3 - 2", "a dash in a word is a dash");
    assert!(refused(&["a", "-", "b", "-"], Stdio::null()).contains("Give - once"));
    for nothing in [holding(""), Stdio::null()] {
        assert!(refused(&["Explain this:", "-"], nothing).starts_with("stdin is empty, but the prompt has a - for it"));
    }
}

#[test]
fn a_stdin_of_any_other_kind_is_not_read() {
    assert_eq!(prompt(&["go"], Stdio::null()), "go");
    assert_eq!(prompt(&["go"], holding("")), "go", "a pipe at its end adds nothing");
    assert_eq!(prompt(&["go"], File::open("/dev/zero").unwrap()), "go");
    assert_eq!(prompt(&["go"], File::open("/").unwrap()), "go");
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&ours).write_all(b"not for you\n").unwrap();
    assert_eq!(prompt(&["go"], OwnedFd::from(theirs)), "go");
    drop(ours);
}

#[test]
fn a_closed_stdin_is_not_read() {
    let case = hello();
    let program = case.other("work", &["adhoc", "go"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec \"$@\" <&-", "sh"]).arg(program.get_program()).args(program.get_args());
    shell.env_clear().current_dir(case.work());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(shell.output().unwrap().status.success());
    assert_eq!(log(&case).prompts(), ["go"]);
}

#[test]
fn a_silent_pipe_is_abandoned_unless_a_dash_asks_to_wait_for_it() {
    let (stdin, mut late) = silent();
    let waiting = hello();
    let waits = adhoc(&waiting, &["--input-timeout", "0.5", "Explain this:", "-"], stdin);
    let (stdin, _kept) = silent();
    let alone = hello();
    let output = adhoc(&alone, &["--input-timeout", "1.5", "go"], stdin).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("spektacular: stdin sent nothing for 1.5 s: the run goes on without it\n"), "{said}");
    assert!(output.status.success(), "{said}");
    assert_eq!(log(&alone).prompts(), ["go"]);
    let (stdin, _kept) = silent();
    let message = refused(&["--input-timeout", "1"], stdin);
    assert_eq!(message, "stdin sent nothing for 1 s: give the prompt as words, or - to wait for it without a limit.");
    // By now, the other run has been silent for longer than its limit would be.
    late.write_all(b"late\n").unwrap();
    drop(late);
    let output = waits.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(log(&waiting).prompts(), ["Explain this:\n\n```stdin\nlate\n```"]);
}

#[test]
fn a_slow_pipe_is_waited_for_and_stderr_says_so() {
    let (stdin, mut late) = silent();
    let case = hello();
    let mut child = adhoc(&case, &["explain"], stdin);
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("spektacular: waiting for input from a pipe: add </dev/null"), "{line}");
    late.write_all(b"the build's output\n").unwrap();
    drop(late);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(log(&case).prompts(), ["explain\n\n```stdin\nthe build's output\n```"]);
}

#[test]
fn the_time_to_wait_for_a_pipe_must_be_a_number() {
    for value in ["0", "-1", "soon", ""] {
        let message = refused(&["--input-timeout", value, "go"], Stdio::null());
        assert!(message.contains("--input-timeout") && message.contains("number of seconds above 0"), "{message}");
    }
}

#[test]
fn an_unusable_prompt_is_refused() {
    let long = "x".repeat(8 << 20);
    let too_long = "the text is longer than 8 MiB: put it into a file that the agent reads.";
    assert_eq!(refused(&["go"], holding(&format!("{long}y"))), format!("stdin: {too_long}"));
    assert_eq!(refused(&["go"], holding(&long)), format!("The prompt: {too_long}"));
    let case = hello();
    fs::write(case.path("work/latin"), b"caf\xe9").unwrap();
    let file = File::open(case.path("work/latin")).unwrap();
    assert_eq!(refused(&["go"], file), "stdin: the text must be UTF-8.");
}

#[test]
fn a_signal_is_served_while_stdin_is_read() {
    for args in [&["go"][..], &["-"], &[]] {
        let (stdin, _kept) = silent();
        let case = hello();
        let child = adhoc(&case, args, stdin);
        assert!(io::wait_for(support::limit(), || procs::handles(child.id(), Signal::TERM)));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        // stdin is still open: only the signal ends the program, and it comes before the refusal of a silent pipe.
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(143), "{args:?}");
        assert_eq!(stderr(&output), "spektacular: cancelled\n");
        assert!(!log(&case).ran());
    }
}

#[test]
fn a_dry_run_reads_no_stdin() {
    let (stdin, _kept) = silent();
    // A run that reads this pipe is refused because it is silent.
    let output = adhoc(&hello(), &["--dry-run", "go"], stdin).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_orchestrators_stdin_is_not_read_for_a_prompt() {
    let case = hello();
    let args = ["--output", "json", "--prompt", "go"];
    let (stdin, _kept) = silent();
    assert!(adhoc(&case, &args, stdin).wait_with_output().unwrap().status.success());
    assert!(adhoc(&case, &args, holding("a diff\n")).wait_with_output().unwrap().status.success());
    assert_eq!(log(&case).prompts(), ["go", "go"]);
}

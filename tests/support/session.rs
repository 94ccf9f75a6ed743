//! A run of the protocol: the program with a pipe at each of its three streams.

use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::agent::AgentLog;
use super::io::{self, Gate, Line, LineReader, StdinWriter};
use super::{Case, Frame, Outcome, RUN, procs};

impl Case {
    #[track_caller]
    pub(crate) fn spawn(self) -> Session {
        let (stdin_read, stdin_write) = std::io::pipe().expect("pipe");
        let (stdout_read, stdout_write) = std::io::pipe().expect("pipe");
        let (stderr_read, stderr_write) = std::io::pipe().expect("pipe");
        if self.nonblocking {
            rustix::io::ioctl_fionbio(&stdin_read, true).expect("O_NONBLOCK");
            rustix::io::ioctl_fionbio(&stdout_write, true).expect("O_NONBLOCK");
        }
        let mut command = self.adhoc();
        command.stdin(stdin_read).stderr(stderr_write);
        match self.stdout_file() {
            Some(file) => command.stdout(file),
            None => command.stdout(stdout_write),
        };
        let child = command.spawn().expect("spawn spektacular");
        drop(command);
        let (stdout, lines) = LineReader::spawn(stdout_read, self.gate.clone());
        Session {
            child,
            stdin: Some(StdinWriter::spawn(stdin_write)),
            lines,
            stdout,
            stderr: LineReader::spawn(stderr_read, Gate::new()).0,
            frames: Vec::new(),
            started: Instant::now(),
            sent: 0,
            exit: None,
            quiet: false,
            case: self,
        }
    }
}

/// The program while it runs.
pub(crate) struct Session {
    pub(crate) case: Case,
    pub(crate) frames: Vec<Frame>,
    pub(crate) started: Instant,
    child: Child,
    stdin: Option<StdinWriter>,
    lines: Receiver<Line>,
    stdout: LineReader,
    stderr: LineReader,
    sent: usize,
    exit: Option<(Option<i32>, Option<i32>)>,
    quiet: bool,
}

impl Session {
    /// Sends run.start with the id "start"; a payload without a prompt gets one.
    #[track_caller]
    pub(crate) fn start(&mut self, mut payload: Value) -> &mut Session {
        if payload.get("prompt").is_none() {
            payload["prompt"] = json!("go");
        }
        let message = json!({"v": "1", "id": "start", "type": "run.start", "run_id": RUN, "payload": payload});
        self.send_line(&message.to_string())
    }

    /// Sends a message of version 1 and returns its id.
    #[track_caller]
    pub(crate) fn send(&mut self, kind: &str, payload: Value) -> String {
        self.sent += 1;
        let id = format!("m{}", self.sent);
        let message = json!({"v": "1", "id": id, "type": kind, "run_id": RUN, "payload": payload});
        self.send_line(&message.to_string());
        id
    }

    /// Answers a question and returns the message's id.
    #[track_caller]
    pub(crate) fn answer(&mut self, question: &Frame, value: Value) -> String {
        self.send("run.input", json!({"question_id": question.text("question_id"), "value": value}))
    }

    #[track_caller]
    pub(crate) fn cancel(&mut self) -> String {
        self.send("run.cancel", json!({"reason": "enough"}))
    }

    #[track_caller]
    pub(crate) fn send_line(&mut self, line: &str) -> &mut Session {
        self.send_raw(format!("{line}\n").as_bytes())
    }

    #[track_caller]
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> &mut Session {
        self.stdin.as_ref().expect("stdin is closed").send(bytes.to_vec());
        self
    }

    pub(crate) fn close_stdin(&mut self) -> &mut Session {
        self.stdin = None;
        self
    }

    pub(crate) fn read_stdout(&self) {
        self.case.gate.open();
    }

    #[track_caller]
    pub(crate) fn close_stdout(&self) {
        self.case.gate.close();
        self.wait_until("stdout closed", || self.stdout.is_done());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // The process may have exited just now.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn case(&self) -> &Case {
        &self.case
    }

    pub(crate) fn log(&self) -> AgentLog {
        AgentLog::new(&self.case.path("log"))
    }

    /// Returns the next frame. Fails the test if none arrives.
    #[track_caller]
    pub(crate) fn next_frame(&mut self) -> Frame {
        self.next_frame_by(Instant::now() + self.case.limit)
    }

    #[track_caller]
    fn next_frame_by(&mut self, deadline: Instant) -> Frame {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match Frame::parse(&line) {
                Ok(frame) => {
                    self.frames.push(frame.clone());
                    frame
                }
                Err(problem) => self.fail(&problem),
            },
            Err(RecvTimeoutError::Timeout) => self.fail("no frame within the limit"),
            Err(RecvTimeoutError::Disconnected) => self.fail("stdout ended"),
        }
    }

    /// Reads frames up to the first for which `wanted` holds.
    #[track_caller]
    pub(crate) fn until_where(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let deadline = Instant::now() + self.case.limit;
        loop {
            if let Some(last) = self.frames.last()
                && last.is_terminal()
            {
                self.fail(&format!("the run ended before {what}"));
            }
            let frame = self.next_frame_by(deadline);
            if wanted(&frame) {
                return frame;
            }
        }
    }

    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Frame {
        self.until_where(kind, |f| f.kind() == kind)
    }

    #[track_caller]
    pub(crate) fn until_progress(&mut self, kind: &str) -> Frame {
        self.until_where(kind, |f| f.is_progress(kind))
    }

    #[track_caller]
    pub(crate) fn until_warning(&mut self, code: &str) -> Frame {
        self.until_where(code, |f| f.is_progress("warning") && f.text("code") == code)
    }

    #[track_caller]
    pub(crate) fn until_status(&mut self, status: &str) -> Frame {
        self.until_where(status, |f| f.is_progress("status") && f.text("status") == status)
    }

    #[track_caller]
    pub(crate) fn until_text(&mut self, text: &str) -> Frame {
        self.until_where(text, |f| f.is_progress("text") && f.text("text").contains(text))
    }

    /// Waits for a condition that no frame reports.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        if !io::wait_for(self.case.limit, done) {
            self.fail(&format!("waited in vain for: {what}"));
        }
    }

    /// Waits for the fake agent to note this word.
    #[track_caller]
    pub(crate) fn wait_note(&self, note: &str) {
        self.wait_until(note, || self.log().noted(note));
    }

    /// Waits for the end of the process: exit code and signal.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt;
        if self.exit.is_none() {
            let Some(status) = io::exit(&mut self.child, self.case.limit) else { self.fail("the process did not end") };
            self.exit = Some((status.code(), status.signal()));
        }
        self.exit.expect("exit")
    }

    /// Reads to the end and checks the invariants of every run. stdin stays open if the test left it open.
    #[track_caller]
    pub(crate) fn finish(self) -> Outcome {
        let outcome = self.finish_unchecked();
        outcome.check_invariants();
        outcome
    }

    /// Like `finish`, without the invariants: for runs whose frames cannot arrive.
    #[track_caller]
    pub(crate) fn finish_unchecked(mut self) -> Outcome {
        while let Ok(line) = self.lines.recv_timeout(self.case.limit) {
            match Frame::parse(&line) {
                Ok(frame) => self.frames.push(frame),
                Err(problem) => self.fail(&problem),
            }
        }
        if !self.stdout.is_done() {
            self.fail("stdout stays open");
        }
        let (exit_code, signal) = self.wait_exit();
        let ended = Instant::now();
        self.wait_until("stderr to end", || self.stderr.is_done());
        let left = self.case.survivors();
        self.quiet = true;
        Outcome {
            frames: std::mem::take(&mut self.frames),
            exit_code,
            signal,
            ended,
            stdout: String::from_utf8_lossy(&self.stdout.all()).into_owned(),
            stderr: String::from_utf8_lossy(&self.stderr.all()).into_owned(),
            left,
            session: self,
        }
    }

    /// The processes that carry the case's marker, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        self.case.processes()
    }

    #[track_caller]
    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!("{why}")
    }

    pub(super) fn dump(&self, frames: &[Frame]) -> String {
        let mut text = format!("---- frames ({})\n", frames.len());
        for frame in frames {
            text.push_str(&io::shorten(&frame.raw, 600));
            text.push('\n');
        }
        text.push_str(&format!("---- stderr\n{}\n", io::shorten(&String::from_utf8_lossy(&self.stderr.all()), 4000)));
        text.push_str(&format!("---- the fake agent\n{}", self.log().dump()));
        text
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.quiet {
            eprintln!("{}", self.dump(&self.frames));
        }
        if self.exit.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        procs::kill_marked(&self.case.marker);
        self.case.gate.close();
    }
}

//! The harness: a case is a folder with a fake agent in it, a session is one run of the program in that folder,
//! an outcome is what came out. Nothing here sleeps in place of an event, and every wait has a limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)] // helpers outside of #[test] functions

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod io;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod plain;
pub(crate) mod procs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use agent::{AgentLog, Script};
use io::{Gate, Line, LineReader, StdinWriter};
pub(crate) use machine::limit;
pub(crate) use outcome::{Frame, Outcome};

/// What a loaded machine may add to a time that the protocol promises.
pub(crate) const SLACK: Duration = Duration::from_millis(700);
/// The run id that `Session::start` chooses.
pub(crate) const RUN: &str = "run-under-test";
/// The environment variable by which a test finds its own processes.
pub(crate) const MARKER: &str = "TEST_CASE";

/// A folder with bin/ (the fake agent), work/, home/, tmp/ and log/, and how to start the program in it.
pub(crate) struct Case {
    dir: TempDir,
    marker: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    shell: Option<String>,
    stdout_file: Option<PathBuf>,
    gate: Gate,
    nonblocking: bool,
    /// The longest of each wait.
    pub(crate) limit: Duration,
}

/// A shell starts its background jobs with SIGINT ignored, nohup does so with SIGHUP; the program keeps to that, so a
/// test of signals must undo it.
fn signals_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 0b100_0000_0000_0011 != 0)
}

impl Case {
    #[track_caller]
    pub(crate) fn new() -> Case {
        let dir = tempfile::Builder::new().prefix("spk-").tempdir().expect("temp dir");
        for name in ["bin", "work", "home", "tmp", "log"] {
            fs::create_dir(dir.path().join(name)).expect("mkdir");
        }
        let marker = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("uuid").trim().to_owned();
        Case {
            dir,
            marker,
            args: Vec::new(),
            env: Vec::new(),
            shell: None,
            stdout_file: None,
            gate: Gate::new(),
            nonblocking: false,
            limit: limit(),
        }
    }

    /// A case with this fake agent.
    pub(crate) fn with(script: Script) -> Case {
        Case::new().agent(script)
    }

    /// Puts the fake agent on PATH.
    pub(crate) fn agent(self, script: Script) -> Case {
        let text = script.render(&self.path("log"));
        self.agent_file(text.as_bytes(), 0o755)
    }

    /// Puts any file on PATH as the agent.
    #[track_caller]
    pub(crate) fn agent_file(self, content: &[u8], mode: u32) -> Case {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path("bin/claude");
        fs::write(&path, content).expect("agent");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Case {
        self.args.extend(args.iter().map(|a| (*a).to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Case {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the program through `sh -c`; the text ends in `exec "$@"`.
    pub(crate) fn shell(mut self, text: &str) -> Case {
        self.shell = Some(text.to_owned());
        self
    }

    pub(crate) fn stdout_file(mut self, path: &str) -> Case {
        self.stdout_file = Some(path.into());
        self
    }

    /// Nobody reads stdout until `Session::read_stdout`.
    pub(crate) fn unread(self) -> Case {
        self.gate.pause();
        self
    }

    /// Both pipes are non-blocking on the program's side.
    pub(crate) fn nonblocking(mut self) -> Case {
        self.nonblocking = true;
        self
    }

    /// Makes work/ a git repository with one commit.
    #[track_caller]
    pub(crate) fn git(self) -> Case {
        fs::write(self.path("work/old.txt"), "old\n").expect("old.txt");
        for args in [
            &["init", "-q"][..],
            &["add", "."][..],
            &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "one"][..],
        ] {
            let mut git = Command::new("/usr/bin/git");
            git.args(args).current_dir(self.path("work")).env_clear().env("HOME", self.path("home"));
            assert!(git.status().expect("git").success(), "git {args:?}");
        }
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    #[track_caller]
    pub(crate) fn work(&self) -> PathBuf {
        fs::canonicalize(self.path("work")).expect("work")
    }

    fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_spektacular");
        let mut command = match &self.shell {
            Some(text) => {
                let mut sh = Command::new("/bin/sh");
                sh.args(["-c", text, "sh", binary]);
                sh
            }
            None if signals_are_ignored() => {
                let mut env = Command::new("/usr/bin/env");
                env.args(["--default-signal=INT,HUP,TERM", binary]);
                env
            }
            None => Command::new(binary),
        };
        command.args(["adhoc", "--output", "json"]).args(&self.args);
        self.surround(&mut command);
        command
    }

    /// The directory and the clean environment of everything that runs here.
    fn surround(&self, command: &mut Command) {
        command.env_clear().current_dir(self.work());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("LANG", "C.UTF-8").env("TMPDIR", self.path("tmp"));
        command.env(MARKER, &self.marker);
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
    }

    /// A command of the program that is no run of the protocol, in a folder of the case.
    pub(crate) fn other(&self, folder: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spektacular"));
        self.surround(&mut command);
        command.args(args).current_dir(self.path(folder)).stdin(Stdio::null());
        command
    }

    /// Writes a file, and the folders that it is in.
    #[track_caller]
    pub(crate) fn file(self, name: &str, content: &str) -> Case {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
        fs::write(path, content).expect("a file");
        self
    }

    /// Puts a program on PATH.
    #[track_caller]
    pub(crate) fn program(self, name: &str, script: &str) -> Case {
        use std::os::unix::fs::PermissionsExt;
        let case = self.file(&format!("bin/{name}"), script);
        fs::set_permissions(case.path(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).expect("chmod");
        case
    }

    /// Runs it for a person, without a terminal and with nothing on stdin, to its end.
    #[track_caller]
    pub(crate) fn cli(&self, args: &[&str]) -> std::process::Output {
        self.command().args(["--output", "cli"]).args(args).stdin(Stdio::null()).output().expect("spektacular")
    }

    #[track_caller]
    pub(crate) fn spawn(self) -> Session {
        let (stdin_read, stdin_write) = std::io::pipe().expect("pipe");
        let (stdout_read, stdout_write) = std::io::pipe().expect("pipe");
        let (stderr_read, stderr_write) = std::io::pipe().expect("pipe");
        if self.nonblocking {
            rustix::io::ioctl_fionbio(&stdin_read, true).expect("O_NONBLOCK");
            rustix::io::ioctl_fionbio(&stdout_write, true).expect("O_NONBLOCK");
        }
        let mut command = self.command();
        command.stdin(stdin_read).stderr(stderr_write);
        match &self.stdout_file {
            Some(path) => {
                drop(stdout_write);
                command.stdout(Stdio::from(fs::OpenOptions::new().write(true).open(path).expect("stdout file")));
            }
            None => {
                command.stdout(stdout_write);
            }
        }
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

    /// Sends a message of version 1 and returns the id that it has.
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
        // A process that has just gone is no mistake of the test.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> AgentLog {
        AgentLog::new(&self.case.path("log"))
    }

    /// The next frame, in order; the test fails when there is none.
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

    /// Waits for something that no frame tells.
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

    /// Reads to the end, and checks what holds for every run. stdin stays open if the test left it open.
    #[track_caller]
    pub(crate) fn finish(self) -> Outcome {
        let outcome = self.finish_unchecked();
        outcome.check_invariants();
        outcome
    }

    /// As `finish`, without the invariants: for runs whose frames cannot arrive.
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
        let left = self.survivors();
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
        procs::marked(&self.case.marker)
    }

    /// What still carries the marker a second after the end.
    fn survivors(&self) -> Vec<String> {
        io::wait_for(Duration::from_secs(1) + SLACK, || self.processes().is_empty());
        self.processes().into_iter().map(|(pid, line)| format!("{pid} {line}")).collect()
    }

    #[track_caller]
    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!("{why}")
    }

    fn dump(&self, frames: &[Frame]) -> String {
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

/// A message for `Session::send_line`, from its payload's text.
pub(crate) fn start_line(payload: &str) -> String {
    format!(r#"{{"v":"1","id":"start","type":"run.start","run_id":"{RUN}","payload":{payload}}}"#)
}

/// Runs a case from start to end with nothing said in between.
#[track_caller]
pub(crate) fn run(case: Case, payload: Value) -> Outcome {
    let mut session = case.spawn();
    session.start(payload);
    session.finish()
}

/// The file's text, or "" where there is none.
pub(crate) fn read(path: &Path) -> String {
    fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

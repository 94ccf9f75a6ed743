//! The sandbox of every test: a folder with bin/, work/, home/, tmp/ and log/, a clean environment, and the way to
//! start the program there. The drivers are beside this file: a `Session` over pipes, a `Person` at a terminal, `run`
//! for a whole run.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::agent::Script;
use super::io::{self, Gate};
use super::{MARKER, limit, procs};

const BINARY: &str = env!("CARGO_BIN_EXE_spektacular");

pub(crate) struct Case {
    dir: TempDir,
    pub(super) marker: String,
    subcommand: &'static str,
    args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) shell: Option<String>,
    stdout_file: Option<PathBuf>,
    stderr_file: Option<PathBuf>,
    pub(super) gate: Gate,
    pub(super) nonblocking: bool,
    pub(super) columns: u16,
    /// The time limit of each wait.
    pub(crate) limit: Duration,
}

/// A shell starts its background jobs with SIGINT ignored, and nohup ignores SIGHUP. The program keeps such settings,
/// so a test of signals must undo them.
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
            subcommand: "adhoc",
            args: Vec::new(),
            env: Vec::new(),
            shell: None,
            stdout_file: None,
            stderr_file: None,
            gate: Gate::new(),
            nonblocking: false,
            columns: 80,
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
        self.program("claude", &text)
    }

    /// Puts any file on PATH as the agent.
    #[track_caller]
    pub(crate) fn agent_file(self, content: &[u8], mode: u32) -> Case {
        self.write("bin/claude", content, mode)
    }

    /// Puts a program on PATH.
    #[track_caller]
    pub(crate) fn program(self, name: &str, content: &str) -> Case {
        self.write(&format!("bin/{name}"), content.as_bytes(), 0o755)
    }

    /// Writes a shell script.
    #[track_caller]
    pub(crate) fn script(self, name: &str, body: &str) -> Case {
        self.write(name, format!("#!/bin/sh\n{body}\n").as_bytes(), 0o755)
    }

    /// Writes a file and creates its folders.
    #[track_caller]
    pub(crate) fn file(self, name: &str, content: &str) -> Case {
        self.write(name, content.as_bytes(), 0o644)
    }

    #[track_caller]
    fn write(self, name: &str, content: &[u8], mode: u32) -> Case {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
        executable(&path, content, mode);
        self
    }

    #[track_caller]
    pub(crate) fn link(self, name: &str, target: &str) -> Case {
        std::os::unix::fs::symlink(self.path(target), self.path(name)).expect("a link");
        self
    }

    /// Makes work/ a git repository with one commit.
    #[track_caller]
    pub(crate) fn git(self) -> Case {
        let case = self.file("work/old.txt", "old\n");
        for args in [
            &["init", "-q"][..],
            &["add", "."][..],
            &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "one"][..],
        ] {
            let mut git = Command::new("/usr/bin/git");
            git.args(args).current_dir(case.work()).env_clear().env("HOME", case.path("home"));
            assert!(git.status().expect("git").success(), "git {args:?}");
        }
        case
    }

    /// Runs this command of the program instead of adhoc.
    pub(crate) fn subcommand(mut self, name: &'static str) -> Case {
        self.subcommand = name;
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

    /// Starts the program through `sh -c`; the text runs it as `"$@"`.
    pub(crate) fn shell(mut self, text: &str) -> Case {
        self.shell = Some(text.to_owned());
        self
    }

    /// Redirects stdout to a file, in the case's folder or anywhere.
    pub(crate) fn stdout_to(mut self, path: &str) -> Case {
        self.stdout_file = Some(self.path(path));
        self
    }

    pub(crate) fn stderr_to(mut self, path: &str) -> Case {
        self.stderr_file = Some(self.path(path));
        self
    }

    /// Leaves stdout unread until `Session::read_stdout`.
    pub(crate) fn unread(self) -> Case {
        self.gate.pause();
        self
    }

    /// Makes both pipes non-blocking on the program's side.
    pub(crate) fn nonblocking(mut self) -> Case {
        self.nonblocking = true;
        self
    }

    /// Sets the width of the terminal.
    pub(crate) fn columns(mut self, columns: u16) -> Case {
        self.columns = columns;
        self
    }

    #[track_caller]
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("the case's folder").join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(super) fn stdout_file(&self) -> Option<File> {
        self.stdout_file.as_deref().map(writable)
    }

    pub(super) fn stderr_file(&self) -> Option<File> {
        self.stderr_file.as_deref().map(writable)
    }

    /// The gate of the program's stdout.
    pub(crate) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// The value of [`MARKER`] in the environment of the case's processes.
    pub(crate) fn marker(&self) -> &str {
        &self.marker
    }

    /// A command for any program, in work/ and with the case's clean environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.work());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("LANG", "C.UTF-8").env("TMPDIR", self.path("tmp"));
        command.env(MARKER, &self.marker).envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// The command that starts the program as the case is set up, with the case's arguments.
    pub(super) fn adhoc(&self) -> Command {
        let mut command = match &self.shell {
            Some(text) => {
                let mut sh = self.command("/bin/sh");
                sh.args(["-c", text, "sh", BINARY]);
                sh
            }
            None if signals_are_ignored() => {
                let mut env = self.command("/usr/bin/env");
                env.args(["--default-signal=INT,HUP,TERM", BINARY]);
                env
            }
            None => self.command(BINARY),
        };
        command.args([self.subcommand, "--output", "json"]).args(&self.args);
        command
    }

    /// A command of the program, in a folder of the case and with an empty stdin.
    pub(crate) fn other(&self, folder: &str, args: &[&str]) -> Command {
        let mut command = self.command(BINARY);
        command.args(args).current_dir(self.path(folder)).stdin(Stdio::null());
        command
    }

    /// The processes that carry the case's marker, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        procs::marked(&self.marker)
    }

    /// The processes that keep the case's marker after the end. A killed process may need a while to exit.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let mut left = Vec::new();
        io::wait_for(self.limit, || {
            left = self.processes();
            left.is_empty()
        });
        left.into_iter().map(|(pid, line)| format!("{pid} {line}")).collect()
    }

    /// Runs adhoc with --output cli to its end, without a terminal and with an empty stdin.
    #[track_caller]
    pub(crate) fn cli(&self, args: &[&str]) -> Output {
        self.adhoc().args(["--output", "cli"]).args(args).stdin(Stdio::null()).output().expect("spektacular")
    }

    /// Starts the command of the case with an empty stdin, and does not wait for it.
    #[track_caller]
    pub(crate) fn started(&self, args: &[&str]) -> Child {
        let mut command = self.adhoc();
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("spektacular")
    }

    /// Runs a command of the program in work/, to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Did {
        let Output { status, stdout, stderr } = self.other("work", args).output().expect("spektacular");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Did { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Everything below the folder, sorted.
    #[track_caller]
    pub(crate) fn listing(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.path("")];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    todo.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

/// Writes a file that can be started at once. A process that another test starts meanwhile holds a copy of the
/// descriptor until its exec, and the system starts no file that is open for writing. The lock lasts as long as a copy.
#[track_caller]
pub(crate) fn executable(path: &Path, content: &[u8], mode: u32) {
    let mut file = File::create(path).expect("a file");
    file.lock().expect("a lock");
    file.write_all(content).expect("a file");
    drop(file);
    // Before the mode changes, which may forbid to read.
    File::open(path).expect("a file").lock().expect("a lock");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

#[track_caller]
fn writable(path: &Path) -> File {
    File::options().write(true).create(true).truncate(true).open(path).expect("an output file")
}

/// The result of a command of the program.
#[derive(Debug)]
pub(crate) struct Did {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Did {
    /// Its stdout, which must be one line of JSON, after an exit with this code.
    #[track_caller]
    pub(crate) fn json(&self, code: i32) -> serde_json::Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out.matches('\n').count(), 1, "{self:?}");
        serde_json::from_str(&self.out).expect("JSON")
    }

    /// Its only line on stderr, after an exit with this code and with an empty stdout.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        assert_eq!(self.err.matches('\n').count(), 1, "{self:?}");
        &self.err
    }
}

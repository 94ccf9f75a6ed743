//! A person at a terminal: the program's pseudo-terminal, keys, and the contents of the screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use super::screen::Screen;
use super::{Case, procs, read};
use rustix::fs::OFlags;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
pub(crate) const CTRL_BACKSLASH: &str = "\u{1c}";
pub(crate) const CTRL_Z: &str = "\u{1a}";

impl Case {
    /// Starts the program in the terminal's session, through the case's shell if it has one.
    #[track_caller]
    pub(crate) fn at_terminal(mut self, args: &[&str]) -> Person {
        let log = self.path("log").display().to_string();
        // The variables of the case are set later and take precedence.
        self.env.splice(0..0, [("D".to_owned(), log), ("TERM".to_owned(), "xterm-256color".to_owned())]);
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let keyboard = File::from(master);
        resize(&keyboard, self.columns);
        let shell = self.shell.as_deref().unwrap_or("exec \"$@\"");
        // Keys send signals only to a session that owns the terminal. The test itself may run with signals ignored.
        let mut command = self.command("/usr/bin/setsid");
        command.args([
            "--ctty",
            "/usr/bin/env",
            "--default-signal=INT,QUIT,HUP,TERM,TSTP",
            "/bin/sh",
            "-c",
            shell,
            "sh",
        ]);
        command.arg(env!("CARGO_BIN_EXE_spektacular")).args(args);
        let open = || open(&keyboard);
        command.stdin(open());
        command.stdout(self.stdout_file().unwrap_or_else(open)).stderr(self.stderr_file().unwrap_or_else(open));
        let child = command.spawn().unwrap();
        drop(command);
        let mut reader = keyboard.try_clone().unwrap();
        let (bytes_in, bytes) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if bytes_in.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Person { child, keyboard, bytes, all: Vec::new(), met: 0, code: None, case: self }
    }
}

/// The program's end of the terminal.
#[track_caller]
fn open(keyboard: &File) -> File {
    let name = ptsname(keyboard, Vec::new()).unwrap();
    let no_owner = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    File::options().read(true).write(true).custom_flags(no_owner).open(name.to_str().unwrap()).unwrap()
}

#[track_caller]
fn resize(terminal: &File, columns: u16) {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

/// A person at a terminal of the program.
pub(crate) struct Person {
    child: Child,
    pub(crate) keyboard: File,
    bytes: Receiver<Vec<u8>>,
    all: Vec<u8>,
    /// The length of the output that earlier waits have passed.
    met: usize,
    code: Option<i32>,
    pub(crate) case: Case,
}

impl Person {
    #[track_caller]
    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for `prompt`, and answers.
    #[track_caller]
    pub(crate) fn answers(&mut self, prompt: &str, answer: &str) -> String {
        self.waits_for(prompt);
        let seen = self.waits_for("> ");
        self.types(&format!("{answer}\n"));
        seen
    }

    /// Waits for `text` after the output of earlier waits. Returns the output up to it.
    #[track_caller]
    pub(crate) fn waits_for(&mut self, text: &str) -> String {
        let until = Instant::now() + self.case.limit;
        loop {
            let new = String::from_utf8_lossy(&self.all[self.met..]).into_owned();
            if let Some(at) = new.find(text) {
                // An incomplete character at the end is never part of a match.
                self.met += at + text.len();
                return new[..at + text.len()].to_owned();
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(more) => self.sees(more),
                Err(_) => panic!("no {text:?} in {new:?}"),
            }
        }
    }

    /// Adds output. Leaves out the sequences that switch the marks of a paste, which show nothing and come at any point.
    fn sees(&mut self, more: Vec<u8>) {
        self.all.extend(more);
        for marks in [b"\x1b[?2004h", b"\x1b[?2004l"] {
            let found = |all: &[u8]| all.windows(marks.len()).position(|part| part == marks);
            while let Some(at) = found(&self.all[self.met..]) {
                self.all.drain(self.met + at..self.met + at + marks.len());
            }
        }
    }

    /// Waits for a condition of the output so far.
    #[track_caller]
    pub(crate) fn waits_until(&mut self, what: &str, done: impl Fn(&Person) -> bool) {
        let until = Instant::now() + self.case.limit;
        while !done(self) {
            match self.bytes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => self.sees(more),
                Err(_) => panic!("waited in vain for: {what}: {:?}", self.screen()),
            }
        }
    }

    pub(crate) fn resizes(&self, columns: u16) {
        resize(&self.keyboard, columns);
    }

    #[track_caller]
    pub(crate) fn echo(&self) -> bool {
        tcgetattr(&self.keyboard).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// The number of bytes in the whole lines that were typed and not read yet.
    #[track_caller]
    pub(crate) fn typed_ahead(&self) -> u64 {
        ioctl_fionread(open(&self.keyboard)).unwrap()
    }

    #[track_caller]
    pub(crate) fn signals(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the program has stopped.
    #[track_caller]
    pub(crate) fn sees_it_stopped(&self) {
        let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap();
        assert!(status.is_some_and(|(_, status)| status.stopped()), "it ended");
    }

    /// Waits for the end. Returns the exit code as a shell reports it, and the whole output.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        self.code = Some(code);
        // The program's end of the terminal is closed, so its output ends.
        while let Ok(more) = self.bytes.recv_timeout(self.case.limit) {
            self.sees(more);
        }
        (code, String::from_utf8_lossy(&self.all).into_owned())
    }

    /// The current contents of the screen, row by row.
    pub(crate) fn screen(&self) -> Vec<String> {
        self.terminal().rows()
    }

    /// The terminal with all its output so far.
    pub(crate) fn terminal(&self) -> Screen {
        let mut screen = Screen::new(usize::from(self.case.columns));
        String::from_utf8_lossy(&self.all).chars().for_each(|c| screen.take(c));
        screen
    }

    pub(crate) fn file(&self, name: &str) -> String {
        read(&self.case.path(name))
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if self.code.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        procs::kill_marked(&self.case.marker);
    }
}

//! A terminal in the place of pipes: JSON Lines over it, and a person at it.
#![expect(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(20);

struct Person {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    _folder: tempfile::TempDir,
}

impl Person {
    fn at(args: &[&str]) -> Person {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_spektacular"))
            .args(args)
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder.path())
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .unwrap();
        let mut reader = File::from(master.try_clone().unwrap());
        let (screen_in, screen) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if screen_in.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Person { child, keyboard: File::from(master), screen, seen: String::new(), _folder: folder }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the screen shows `text` after what was waited for before.
    fn waits_for(&mut self, text: &str) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(at) = self.seen.find(text) {
                return self.seen.drain(..at + text.len()).collect();
            }
            let left = until.saturating_duration_since(Instant::now());
            let more = self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn json_lines_over_a_terminal_are_neither_cut_nor_echoed() {
    let mut person = Person::at(&["adhoc", "--output", "json"]);
    // Longer than a terminal's line. Written once the terminal is switched: before that it would be cut.
    let until = Instant::now() + LIMIT;
    while rustix::termios::tcgetattr(&person.keyboard)
        .unwrap()
        .local_modes
        .contains(rustix::termios::LocalModes::ICANON)
    {
        assert!(Instant::now() < until, "the terminal was not switched");
        thread::yield_now();
    }
    let note = "x".repeat(6000);
    let start = format!(
        "{{\"v\":\"1\",\"type\":\"run.start\",\"payload\":{{\"prompt\":\"hi\",\"agent\":\"demo\",\"interactive\":false,\"metadata\":{{\"note\":\"{note}\"}}}}}}\n"
    );
    person.types(&start);
    let text = person.waits_for("\"type\":\"run.completed\"");
    assert!(text.starts_with("{\"v\":\"1\",\"id\":\"msg_1\""), "{}", &text[..100.min(text.len())]);
    assert!(!text.contains('\r'), "lines end with CR LF");
    assert_eq!(text.matches("run.start\"").count(), 0, "the input was echoed");
    for line in BufReader::new(text.as_bytes()).lines().map_while(Result::ok).filter(|line| line.ends_with('}')) {
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
    }
    person.waits_for("\n");
    assert_eq!(person.code(), Some(0));
    let modes = rustix::termios::tcgetattr(&person.keyboard).unwrap();
    assert!(modes.local_modes.contains(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO));
    assert!(modes.output_modes.contains(rustix::termios::OutputModes::OPOST));
}

#[test]
fn a_person_answers_by_number_and_by_the_default() {
    let mut person = Person::at(&["adhoc", "--agent", "demo", "say hello"]);
    let shown = person.waits_for("or your own text: ");
    assert!(shown.contains("1. Short - One line."), "{shown}");
    person.types("2\n");
    let shown = person.waits_for("Enter for deny: ");
    assert!(shown.contains("Allow Write: hello.md?") && shown.contains("+# Hello"), "{shown}");
    person.types("seven\n");
    let shown = person.waits_for("Enter for deny: ");
    assert!(shown.contains("! Answer with an option's value, label or number."), "{shown}");
    person.types("1\n");
    person.waits_for("Done: the greeting is in hello.md.");
    assert_eq!(person.code(), Some(0));
    assert!(person._folder.path().join("hello.md").exists());
}

#[test]
fn enter_takes_the_default_which_denies() {
    let mut person = Person::at(&["adhoc", "--agent", "demo", "say hello"]);
    person.waits_for("or your own text: ");
    person.types("1\n");
    person.waits_for("Enter for deny: ");
    person.types("\n");
    person.waits_for("was not allowed");
    assert_eq!(person.code(), Some(0));
}

#[test]
fn an_interrupt_at_a_question_cancels_and_exits_as_shells_expect() {
    let mut person = Person::at(&["adhoc", "--agent", "demo", "say hello"]);
    person.waits_for("or your own text: ");
    let pid = rustix::process::Pid::from_child(&person.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    person.waits_for("spektacular: cancelled");
    assert_eq!(person.code(), Some(143));
}

//! Tests of a run of several parts. The engine owns the stdin, the stdout and the signals of its process, so this
//! suite has no harness: it starts its own binary again, and that second process is under test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[expect(dead_code, reason = "the suite uses the helpers for missing programs")]
#[path = "../support/machine.rs"]
mod machine;
mod scenario;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use spektacular::process;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The argument that makes this program the process under test.
const UNDER_TEST: &str = "under-test";
const TEST: &str = "parts_leave_nothing_behind";

fn main() {
    // A run starts its helpers as its own program with an argument.
    let helper: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = process::run_helper(&helper) {
        std::process::exit(code);
    }
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some(UNDER_TEST) => scenario::carry(&args.next().unwrap()),
        // As in the harness, a filter that matches no test runs nothing.
        filter if filter.is_some_and(|word| !word.starts_with('-') && !TEST.contains(word)) => {}
        _ => {
            parts_leave_nothing_behind();
            println!("test {TEST} ... ok");
        }
    }
}

struct UnderTest {
    child: Child,
    /// The process waits here after each part of its run.
    gate: UnixListener,
    folder: TempDir,
    stdin: std::process::ChildStdin,
    stdout: std::io::Lines<BufReader<std::process::ChildStdout>>,
    stderr: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl UnderTest {
    fn start() -> UnderTest {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("gate");
        let gate = UnixListener::bind(&path).unwrap();
        assert!(Command::new("mkfifo").arg(folder.path().join("gate.asleep")).status().unwrap().success());
        let me = std::env::current_exe().unwrap();
        let mut child = Command::new(me)
            .arg(UNDER_TEST)
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        UnderTest { child, gate, folder, stdin, stdout, stderr }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Lets the process continue with the next part.
    fn go_on(&self) {
        drop(self.gate.accept().unwrap());
    }

    /// Waits until the command of the step runs.
    fn until_asleep(&self) {
        std::fs::read(self.folder.path().join("gate.asleep")).unwrap();
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits for this message of the process on stderr.
    #[track_caller]
    fn until_said(&mut self, wanted: &str) -> String {
        loop {
            let line = self.stderr.next().unwrap_or_else(|| panic!("stderr ended before {wanted}")).unwrap();
            if let Some(rest) = line.strip_prefix(wanted) {
                return rest.to_owned();
            }
        }
    }
}

fn parts_leave_nothing_behind() {
    let mut under = UnderTest::start();
    under.send(&json!({"v": "1", "id": "start", "type": "run.start", "run_id": "outside",
        "payload": {"prompt": "Say hello.", "agent": "recorded"}}));

    // The process waits between the first two parts, so a line that arrives now is for the second.
    let between = under.until_said("after 1: ");
    under.send(&json!({"v": "1", "id": "again", "type": "run.start", "payload": {"prompt": "No"}}));
    under.go_on();
    assert_eq!(under.until_said("after 2: "), between, "threads or descriptors are left over");

    // From the first signal on, the process has four seconds.
    under.go_on();
    under.until_asleep();
    under.terminate();
    assert_eq!(under.until_said("after 3: "), between, "threads or descriptors are left over");

    // A signal between two parts ends the next one.
    under.terminate();
    under.go_on();
    assert_eq!(under.until_said("after 4: "), between, "threads or descriptors are left over");
    under.go_on();
    drop(under.stdin);

    let frames: Vec<Value> = under.stdout.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(under.child.wait().unwrap().success());

    let count = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).count();
    assert_eq!((count("run.started"), count("run.completed"), count("run.cancelled")), (1, 0, 1), "{frames:#?}");
    let ids: Vec<String> = (1..=frames.len()).map(|number| format!("msg_{number}")).collect();
    assert_eq!(frames.iter().map(|frame| frame["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    assert!(frames.iter().all(|frame| frame["run_id"] == "outside"));

    let warned = |reply_to: &str, code: &str| {
        frames.iter().any(|frame| frame["reply_to"] == reply_to && frame["payload"]["code"] == code)
    };
    assert!(warned("again", "duplicate_start"), "a line from between two parts was lost: {frames:#?}");

    let last = frames.last().unwrap();
    assert_eq!(last["type"], "run.cancelled");
    assert_eq!(last["payload"]["usage"]["output_tokens"], 2 * scenario::RECORDED_OUTPUT_TOKENS, "{last}");
    let files = last["payload"]["artifacts"].as_array().unwrap();
    let reported = frames.iter().filter(|frame| frame["type"] == "run.artifact").count();
    assert_eq!((files.len(), reported), (1, 1), "the same file of two parts is one artifact: {frames:#?}");

    // Every id is unique across the parts.
    for key in ["message_id", "call_id"] {
        let ids = frames
            .iter()
            .filter(|frame| frame["payload"]["done"] != false)
            .filter(|frame| frame["payload"]["state"].is_null() || frame["payload"]["state"] == "started");
        let mut ids: Vec<&str> =
            ids.filter(|f| f["type"] == "run.progress").filter_map(|frame| frame["payload"][key].as_str()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(all > 1 && ids.len() == all, "{key}: {ids:?} of {all}");
    }
}

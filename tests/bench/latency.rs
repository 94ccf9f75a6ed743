//! Measures the time from a cause to its effect in a run that is otherwise idle.

use crate::beside::Hello;
use crate::measured::{median, peak_of, program};
use crate::scripted::Scripted;
use crate::table::Table;
use crate::workload::{Dialect, Events};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

/// A request for permission, as Claude Code makes it.
const PERMISSION: &str = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"c"}}"#;

/// Measures everything.
pub(crate) fn measure(table: &Table, quick: bool) {
    let times = if quick { 20 } else { 200 };
    table.heading("latency", &["us", "beside us", "ratio"]);
    start(table, times);
    let mut run = Live::start();
    let mut cat = Echo::start();
    let events = (0..times).map(|number| (run.event(number), cat.round_trip())).collect();
    compare(table, "an event, beside cat", events);
    let questions = (0..times).map(|_| (run.question(), cat.round_trip() + cat.round_trip())).collect();
    compare(table, "a question and its answer, beside cat twice", questions);
    let cancels = (0..times / 10).map(|_| (Live::start().cancel_in_a_stream(), f64::NAN)).collect();
    compare(table, "a cancel while lines stream", cancels);
}

fn compare(table: &Table, name: &str, pairs: Vec<(f64, f64)>) {
    let of = |pick: fn(&(f64, f64)) -> f64| median(pairs.iter().map(pick).collect());
    table.row(name, &[of(|pair| pair.0) * 1e6, of(|pair| pair.1) * 1e6, of(|pair| pair.0 / pair.1)]);
}

/// Measures the time from exec to the first line.
fn start(table: &Table, times: usize) {
    let agent = Scripted::new(Dialect::Claude, &Dialect::Claude.script(""));
    let hello = Hello::build();
    let mut pairs = Vec::new();
    for _ in 0..times {
        let beside = hello.as_ref().map_or(f64::NAN, |hello| first_line(&mut Command::new(hello.program()), ""));
        let mut command = agent.command(program());
        pairs.push((first_line(command.args(["adhoc", "--output", "json"]), &agent.start("")), beside));
    }
    compare(table, "exec to run.started, beside a static hello", pairs);
}

fn first_line(command: &mut Command, input: &str) -> f64 {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // A program that reads nothing may have exited already.
    let _ = child.stdin.as_mut().unwrap().write_all(input.as_bytes());
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let took = began.elapsed().as_secs_f64();
    while out.read_line(&mut line).unwrap() > 0 {}
    child.wait().unwrap();
    took
}

/// A run whose agent only holds its pipes. The benchmark reads and writes at their far ends.
pub(crate) struct Live {
    child: Child,
    stdin: ChildStdin,
    frames: BufReader<ChildStdout>,
    pub(crate) agent_out: File,
    agent_in: BufReader<File>,
    /// The agent's folder.
    _agent: Scripted,
}

impl Live {
    pub(crate) fn start() -> Live {
        let agent = Scripted::holding();
        let mut command = agent.command(program());
        command.args(["adhoc", "--output", "json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(agent.start("").as_bytes()).unwrap();
        let mut frames = BufReader::new(child.stdout.take().unwrap());
        // The session id is the pid of the agent.
        let session = until(&mut frames, "\"kind\":\"session\"");
        let id = session.split("\"session_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let agent_out = File::options().append(true).open(format!("/proc/{id}/fd/1")).unwrap();
        let agent_in = BufReader::new(File::open(format!("/proc/{id}/fd/0")).unwrap());
        Live { child, stdin, frames, agent_out, agent_in, _agent: agent }
    }

    /// Ends the run and returns the peak memory in KiB.
    pub(crate) fn peak(mut self) -> f64 {
        let peak = peak_of(&format!("/proc/{}/status", self.child.id())).unwrap();
        // The guard ends the agent.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        peak
    }

    /// Measures the time from an agent's line to its frame.
    fn event(&mut self, number: usize) -> f64 {
        let line = Dialect::Claude.lines(Events::Messages(60), 1).replace("msg_0", &format!("msg_{number}"));
        let began = Instant::now();
        self.agent_out.write_all(line.as_bytes()).unwrap();
        until(&mut self.frames, "\"kind\":\"text\"");
        began.elapsed().as_secs_f64()
    }

    /// Measures the time from the agent's request, through the question and its answer, to the line that the agent
    /// receives.
    fn question(&mut self) -> f64 {
        let began = Instant::now();
        writeln!(self.agent_out, "{PERMISSION}").unwrap();
        let question = until(&mut self.frames, "\"type\":\"run.question\"");
        let id = question.split("\"question_id\":\"").nth(1).unwrap().split('"').next().unwrap();
        let input = r#"{"v":"1","type":"run.input","payload":{"question_id":"ID","value":"allow_once"}}"#;
        writeln!(self.stdin, "{}", input.replace("ID", id)).unwrap();
        until(&mut self.agent_in, "\"behavior\":\"allow\"");
        began.elapsed().as_secs_f64()
    }

    /// Measures the time from run.cancel to the line that tells the agent to stop, while the agent writes as fast as it
    /// can.
    fn cancel_in_a_stream(mut self) -> f64 {
        let mut out = self.agent_out.try_clone().unwrap();
        let lines = Dialect::Claude.lines(Events::Mix, 30_000);
        let writer = thread::spawn(move || while out.write_all(lines.as_bytes()).is_ok() {});
        let mut frames = self.frames;
        let mut seen = String::new();
        for _ in 0..10_000 {
            seen.clear();
            frames.read_line(&mut seen).unwrap();
        }
        let reader = thread::spawn(move || while frames.read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {});
        let began = Instant::now();
        writeln!(self.stdin, r#"{{"v":"1","type":"run.cancel"}}"#).unwrap();
        until(&mut self.agent_in, "\"interrupt\"");
        let took = began.elapsed().as_secs_f64();
        // The guard ends the agent.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        drop((self.agent_out, self.agent_in));
        reader.join().unwrap();
        writer.join().unwrap();
        took
    }
}

/// Returns the first line that contains the word.
#[track_caller]
fn until(lines: &mut impl BufRead, word: &str) -> String {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the end comes before {word}");
    }
    line
}

/// cat between two pipes.
struct Echo {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Echo {
    fn start() -> Echo {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Echo { child, out }
    }

    fn round_trip(&mut self) -> f64 {
        let began = Instant::now();
        writeln!(self.child.stdin.as_mut().unwrap(), "{PERMISSION}").unwrap();
        until(&mut self.out, "can_use_tool");
        began.elapsed().as_secs_f64()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

//! What a run costs, each as a ratio to something that was measured beside it: machines differ, and so do their
//! minutes. `cargo bench`; it asserts nothing.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to tell")]
#![expect(clippy::print_stdout, reason = "a benchmark's result")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");
const START: &str = "{\"v\":\"1\",\"type\":\"run.start\",\"payload\":{\"prompt\":\"Go on\",\"progress\":\"full\"}}\n";
/// Pairs a comparison is made of. The two of a pair run one after the other.
const PAIRS: usize = 15;

fn main() {
    // `cargo test --all-targets` runs benchmarks too, with this flag: there is nothing to test here.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    println!("{:<58} {:>10} {:>10} {:>7}", "", "this", "beside", "ratio");
    let folder = agent("cat said.jsonl\nread -r rest", &transcript(20_000, 60));
    compare("exec to run.started, beside exec to --version", || first_frame(&folder), || version(&folder));
    compare("20,000 lines of an agent, beside cat", || whole_run(&folder), || cat(&folder));
    let folder = agent("cat said.jsonl\nread -r rest", &transcript(1, 10_000_000));
    compare("one line of 10 MB, beside cat", || whole_run(&folder), || cat(&folder));
    println!("{:<58} {:>7} KiB", "peak memory of that run", peak_memory(&folder));
    let folder = agent("cat said.jsonl\nread -r rest", &transcript(1, 10));
    compare("a run of one line, beside its agent alone", || whole_run(&folder), || alone(&folder));
}

/// Two things in turn; prints the medians, and the median of the ratios.
fn compare(what: &str, this: impl Fn() -> Duration, beside: impl Fn() -> Duration) {
    let pairs: Vec<(f64, f64)> = (0..PAIRS).map(|_| (this().as_secs_f64(), beside().as_secs_f64())).collect();
    let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (a, b, ratio) = (median(&|p| p.0), median(&|p| p.1), median(&|p| p.0 / p.1));
    println!("{what:<58} {:>7.2} ms {:>7.2} ms {ratio:>7.2}", a * 1e3, b * 1e3);
}

/// What an agent says that streams a text of so many pieces.
fn transcript(pieces: usize, bytes: usize) -> String {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","claude_code_version":"1","model":"m"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#;
    let mut out = format!("{init}\n");
    for number in 0..pieces {
        let text = "word ".repeat(bytes.div_ceil(5));
        let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
        let message = format!(r#"{{"id":"m{number}","role":"assistant","content":{content}}}"#);
        writeln!(out, r#"{{"type":"assistant","message":{message},"parent_tool_use_id":null,"session_id":"s"}}"#)
            .unwrap();
    }
    out + result + "\n"
}

fn agent(script: &str, said: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claude");
    fs::write(folder.path().join("said.jsonl"), said).unwrap();
    fs::write(&file, format!("#!/bin/sh\nread -r line\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn run(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["adhoc", "--output", "json"]).current_dir(folder).env_clear();
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn first_frame(folder: &TempDir) -> Duration {
    let began = Instant::now();
    let mut child = run(folder.path()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(START.as_bytes()).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let took = began.elapsed();
    drain(&mut stdout);
    child.wait().unwrap();
    took
}

fn whole_run(folder: &TempDir) -> Duration {
    let began = Instant::now();
    let mut child = run(folder.path()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(START.as_bytes()).unwrap();
    drain(child.stdout.as_mut().unwrap());
    child.wait().unwrap();
    began.elapsed()
}

fn version(folder: &TempDir) -> Duration {
    output(Command::new(PROGRAM).arg("--version").current_dir(folder.path()))
}

fn cat(folder: &TempDir) -> Duration {
    output(Command::new("cat").arg("said.jsonl").current_dir(folder.path()))
}

fn alone(folder: &TempDir) -> Duration {
    output(Command::new("sh").args(["-c", "echo x | ./claude"]).current_dir(folder.path()))
}

fn output(command: &mut Command) -> Duration {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drain(child.stdout.as_mut().unwrap());
    child.wait().unwrap();
    began.elapsed()
}

fn drain(from: &mut impl Read) {
    let mut buffer = vec![0; 1 << 16];
    while from.read(&mut buffer).unwrap() > 0 {}
}

/// The most memory that the run had at once, in KiB, as the kernel counted it while it ran.
fn peak_memory(folder: &TempDir) -> u64 {
    let mut child = run(folder.path()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(START.as_bytes()).unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (mut peak, mut line) = (0, String::new());
    while stdout.read_line(&mut line).unwrap() > 0 {
        line.clear();
        let text = fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = peak.max(found.and_then(|kib| kib.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0));
    }
    child.wait().unwrap();
    peak
}

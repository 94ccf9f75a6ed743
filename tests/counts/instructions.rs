//! Counts the instructions per event, of the whole program without its agent. valgrind runs one thread at a time, far
//! slower than the agent writes. Two runs still differ by up to one or two per cent, because threads may spin for a
//! moment before they wait. So the minimum of several runs counts.

use crate::expected::compare;
use crate::scripted::Scripted;
use crate::workload::{Dialect, Events, Step};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

/// The environment variable that names the program to count: a static release build, because such builds are alike on
/// all machines.
const PROGRAM: &str = "COUNT_INSTRUCTIONS_OF";
/// The environment variable that names its target. Counts are committed per target.
const TARGET: &str = "COUNT_TARGET";
const EVENTS: usize = 6000;
const RUNS: usize = 3;

/// The program to count.
pub(crate) fn program() -> PathBuf {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| panic!("{PROGRAM} names no program"));
    fs::canonicalize(program).unwrap()
}

/// Runs the program with a scripted agent and further flags. Returns the number of instructions and the output on stdout.
pub(crate) fn count(dialect: Dialect, steps: &[Step], options: &str, flags: &[&str]) -> (u64, String) {
    let agent = Scripted::new(dialect, steps);
    let log = agent.folder().join("valgrind.log");
    let mut command = agent.command("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--trace-children=no"]);
    command.arg(format!("--log-file={}.%p", log.display()));
    command.arg(program()).args(["adhoc", "--output", "json", "--input", "jsonl"]).args(flags);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let number = child.id();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(agent.start(options).as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    drop(stdin);
    let log = fs::read_to_string(format!("{}.{number}", log.display())).unwrap();
    (instructions_in(&log), String::from_utf8(out.stdout).unwrap())
}

/// The number of instructions in a log of cachegrind. Without the simulation of a cache, it counts nothing else.
pub(crate) fn instructions_in(log: &str) -> u64 {
    let counted = log.lines().find_map(|line| line.split("refs:").nth(1));
    counted.unwrap_or_else(|| panic!("valgrind counted nothing: {log}")).trim().replace(',', "").parse().unwrap()
}

/// Counts the instructions of a run beyond those of a run with a tenth of the events. The beginning and the end do not
/// count, because they take longer on a machine with more processes.
#[track_caller]
fn per_event(name: &str, dialect: Dialect, events: Events, options: &str, flags: &[&str]) {
    let target = std::env::var(TARGET).unwrap_or_else(|_| panic!("{TARGET} names no target"));
    let least = |events_in_all| {
        let steps = dialect.script(&dialect.lines(events, events_in_all));
        let runs = (0..RUNS).map(|_| {
            let (instructions, out) = count(dialect, &steps, options, flags);
            assert!(out.lines().last().unwrap().contains("\"type\":\"run.completed\""), "{out}");
            instructions
        });
        runs.min().unwrap()
    };
    let (few, many) = (least(EVENTS / 10), least(EVENTS));
    compare(&format!("instructions {target} {name}"), (many - few) as f64 / (EVENTS - EVENTS / 10) as f64);
}

#[test]
#[ignore = "needs valgrind and a static release build: .ci/run"]
fn events_take_as_many_instructions_as_committed() {
    per_event("claude mix", Dialect::Claude, Events::Mix, "", &[]);
    per_event("codex mix", Dialect::Codex, Events::Mix, "", &[]);
    per_event("gemini mix", Dialect::Acp, Events::Mix, "", &[]);
    per_event("claude deltas", Dialect::Claude, Events::Deltas, r#","progress":"full""#, &[]);
    per_event("claude mix with 5 secrets", Dialect::Claude, Events::Mix, &secrets(5), &[]);
    per_event("claude mix with a recording", Dialect::Claude, Events::Mix, "", &["--record", "recording.jsonl"]);
}

/// `count` secrets that the agent never says.
pub(crate) fn secrets(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"secret-number-{number}-{}\"", number * 7919)).collect();
    format!(r#","secrets":[{}]"#, all.join(","))
}

//! The process under test: four runs in sequence, and the resources that they leave behind.

use super::joined::Joined;
use super::machine::limit;
use spektacular::agent::Base;
use spektacular::agent::registry::{Agent, Agents, Dialect};
use spektacular::config::Layers;
use spektacular::engine::{Begin, Engine, Job, Prepared, Report};
use spektacular::io::inbox::Source;
use spektacular::io::output::diagnose;
use spektacular::protocol::request::{Options, Permissions};
use spektacular::protocol::words::{Level, Policy};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The output tokens in the recorded agent's usage.
pub(crate) const RECORDED_OUTPUT_TOKENS: u64 = 20;
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/claude/write_file/recording.jsonl");
/// Prints a line and never exits by itself.
const SLEEPER: &str = "echo asleep; exec sleep 1000";

fn agents() -> Agents {
    let mut agents = Agents::built_in();
    let base = Base::command(env!("CARGO_BIN_EXE_spektacular"));
    let args = vec!["replay".into(), RECORDING.into(), "--".into()];
    agents.put(Agent::new("recorded", Dialect::Claude, Base { args, ..base }));
    let args = vec!["-c".into(), SLEEPER.into()];
    agents.put(Agent::new("sleeper", Dialect::Lines, Base { args, ..Base::command("/bin/sh") }));
    agents
}

fn job(begin: Begin) -> Job {
    let permissions = Some(Permissions::All(Policy::Allow));
    // Requests deltas, so that text arrives while the agent still speaks.
    let above = Options { permissions, progress: Some(Level::Full), ..Options::default() };
    let layers = Layers { above, ..Layers::new(agents()) };
    Job { begin, ..Job::new(layers) }
}

fn start(agent: &str) -> Begin {
    let options = Options { prompt: Some("Go".into()), agent: Some(agent.into()), ..Options::default() };
    Begin::Awaited(Box::new(|| Ok(Box::new(Prepared { start: Some(options), ..Prepared::default() }))))
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).expect("/proc").count()
}

/// Waits until the process has as many threads as between two runs and as many open files as after the first, or until
/// the limit passes. The first count of files is taken after the threads that close files have ended.
fn left(threads: usize, files: Option<usize>) -> (usize, usize) {
    let deadline = Instant::now() + limit();
    loop {
        let now = (count("/proc/self/task"), count("/proc/self/fd"));
        if (now.0 == threads && files.is_none_or(|files| files == now.1)) || Instant::now() > deadline {
            return now;
        }
        // No event: /proc tells nobody that it has changed.
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Waits until the other side accepts the connection and closes it.
fn wait_at(gate: &str) {
    let mut nothing = [0];
    let read = UnixStream::connect(gate).expect("the gate").read(&mut nothing);
    assert_eq!(read.expect("the gate opens"), 0);
}

pub(crate) fn carry(gate: &str) {
    let folder = tempfile::TempDir::new().expect("temp dir");
    std::env::set_current_dir(folder.path()).expect("cwd");
    let mut engine = Engine::start(Source::Stdin);
    let mut peer = Joined::of(4);
    let mut reports: Vec<Report> = Vec::new();
    // The threads that read stdin, watch stdout and read signals start with the first run and stay.
    let threads = count("/proc/self/task") + 3;
    let mut files = None;
    for (number, begin) in [(1, Begin::FromInput), (2, start("recorded")), (3, start("sleeper")), (4, start("sleeper"))]
    {
        reports.push(engine.run(job(begin), &mut peer));
        // A run that a signal ended leaves the process to its backstop.
        let signalled = reports.iter().filter(|report| report.signal.is_some()).count();
        let now = left(threads + signalled, files);
        assert_eq!(now.0, threads + signalled, "threads are left over");
        files = files.or(Some(now.1));
        diagnose(&format!("after {number}: {} files", now.1));
        wait_at(gate);
    }
    let signals: Vec<Option<i32>> = reports.iter().map(|report| report.signal).collect();
    assert_eq!(signals, [None, None, Some(15), Some(15)]);
    assert!(reports.iter().all(|report| report.code == 0 && report.terminal.is_some()));
}

//! The process under test: a run of four parts, and the resources that each leaves behind.

use super::machine::limit;
use spektacular::agent::Base;
use spektacular::agent::registry::{Agent, Agents, Dialect};
use spektacular::config::Layers;
use spektacular::engine::{Admission, Engine, Job, Recorded};
use spektacular::io::inbox::Source;
use spektacular::io::output::diagnose;
use spektacular::json_lines::JsonLines;
use spektacular::protocol::outbound::{Outcome, WorkflowEnd, WorkflowStarted};
use spektacular::protocol::request::{Options, Permissions, Settings};
use spektacular::protocol::words::{Level, Policy, WorkflowKind};
use spektacular::protocol::workflow::{ShownOptions, WorkflowOptions};
use spektacular::run::{Part, PartWork, ShellCommand, StepWork, Turn, TurnBegin};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The output tokens in the recorded agent's usage.
pub(crate) const RECORDED_OUTPUT_TOKENS: u64 = 20;
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/claude/write_file/recording.jsonl");
/// Tells the pipe that it names that it runs, and never exits by itself.
const SLEEPER: &str = "echo >\"$1\"; exec sleep 1000";

fn agents() -> Agents {
    let mut agents = Agents::built_in();
    let base = Base::command(env!("CARGO_BIN_EXE_spektacular"));
    let args = vec!["replay".into(), RECORDING.into(), "--".into()];
    agents.put(Agent::new("recorded", Dialect::Claude, Base { args, ..base }));
    agents
}

/// A turn of the recorded agent.
fn turn() -> PartWork {
    let start = TurnBegin::NewSession;
    let (keeps_process, offers_blocked, asking_failed) = (false, false, false);
    PartWork::Turn(Turn { start, keeps_process, offers_blocked, whole: None, asking_failed, guest: None })
}

fn sleep(gate: &str) -> PartWork {
    let args = ["-c", SLEEPER, "sh", &format!("{gate}.asleep")].map(str::to_owned).into();
    PartWork::Step(StepWork::Command(ShellCommand { args, env: Vec::new(), title: Some("sleep".into()), phase: None }))
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).expect("/proc").count()
}

/// Waits until the process has as many threads as between two parts and as many open files as after the first, or until
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
    let mut peer = JsonLines::default();
    // The threads that read stdin, watch stdout and read signals start with the run and stay.
    let threads = count("/proc/self/task") + 3;
    let (tell, settings) = channel::<Settings>();
    let (workflow, options) = (WorkflowKind::Spec, WorkflowOptions::default().resolved());
    let options = ShownOptions { of: workflow, settings: options };
    let started = WorkflowStarted { name: workflow, project: "/".into(), target: None, options };
    let admit = move |settings: &mut Settings, _: &_, _: Option<&_>, _: &[_], _: &mut _| {
        settings.is_part = true;
        tell.send(settings.clone()).expect("the settings are wanted");
        Ok(started)
    };
    let permissions = Some(Permissions::All(Policy::Allow));
    // Requests deltas, so that text arrives while the agent still speaks.
    let above = Options { permissions, progress: Some(Level::Full), ..Options::default() };
    let layers = Layers { above, ..Layers::new(agents()) };
    let job = Job { admission: Some(Admission { workflow, admit: Box::new(admit) }), ..Job::new(layers) };
    let mut run = engine.open(job, &mut peer).expect("the run is open");
    let settings = settings.recv().expect("settings");
    let (mut files, mut outcomes, mut signalled) = (None, Vec::new(), 0);
    for (number, work) in [(1, turn()), (2, turn()), (3, sleep(gate)), (4, sleep(gate))] {
        let part = Part { settings: settings.clone(), work };
        let end = run.part(part, Recorded::default()).expect("frames can be delivered");
        // A part that a signal ended leaves the process to its backstop.
        signalled += usize::from(matches!(end.outcome, Outcome::Cancelled { .. }));
        outcomes.push(end.outcome);
        let now = left(threads + signalled, files);
        assert_eq!(now.0, threads + signalled, "threads are left over");
        files = files.or(Some(now.1));
        diagnose(&format!("after {number}: {} files", now.1));
        wait_at(gate);
    }
    let ends: Vec<&str> = outcomes.iter().map(word).collect();
    assert_eq!(ends, ["completed", "completed", "cancelled", "cancelled"]);
    let report = run.close(outcomes.remove(3), Some(WorkflowEnd::unknown(WorkflowKind::Spec)));
    assert_eq!((report.code, report.signal), (0, Some(15)));
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed { .. } => "completed",
        Outcome::Failed(_) => "failed",
        Outcome::Cancelled { .. } => "cancelled",
    }
}

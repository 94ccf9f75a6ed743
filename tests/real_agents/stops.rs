//! Stopping real agents at work. Each of these has a tool or a model that would go on for minutes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Client, Run, permission};
use crate::lab::{Agent, Lab};
use crate::support::{SLACK, procs};
use crate::twice;

/// The longest from the first stop to the end of the program.
const STOP: Duration = Duration::from_secs(4);

/// A run whose shell tool sleeps for minutes, and the tool's process.
struct AtWork {
    client: Client,
    tool: i32,
}

impl AtWork {
    fn start(agent: Agent, payload: Value) -> AtWork {
        let lab = Lab::new(agent, "long_tool");
        let file = lab.case.work().join("tool.pid");
        let mut client = Client::start(lab, payload, permission("allow_once"));
        let given = |f: &crate::support::Frame| f.is_progress("question_resolved");
        client.until("the permission", given);
        let tool = client.wait_file(&file).parse().expect("pid");
        assert!(procs::alive(tool), "the tool is not at work");
        AtWork { client, tool }
    }

    fn finish(self, since: Instant) -> Run {
        let run = self.client.finish();
        assert!(run.outcome.ended - since < STOP + SLACK, "the end took {:?}", run.outcome.ended - since);
        assert!(!procs::alive(self.tool), "the tool goes on");
        run
    }
}

fn cancel_in_a_tool(agent: Agent) {
    let mut work = AtWork::start(agent, json!({}));
    let since = Instant::now();
    work.client.session.cancel();
    let run = work.finish(since);
    assert_eq!(run.outcome.cancelled()["source"], "orchestrator");
    assert_eq!(run.outcome.cancelled()["reason"], "enough");
    assert_eq!(run.stub().conversation().len(), 1, "the model was asked again");
}

#[test]
fn a_cancel_while_a_tool_runs() {
    twice("a_cancel_while_a_tool_runs", || cancel_in_a_tool(Agent::Claude));
}

#[test]
fn a_cancel_while_a_tool_of_the_old_version_runs() {
    twice("a_cancel_while_a_tool_of_the_old_version_runs", || cancel_in_a_tool(Agent::OldClaude));
}

#[test]
fn a_cancel_while_the_model_speaks() {
    twice("a_cancel_while_the_model_speaks", || {
        let lab = Lab::new(Agent::Claude, "slow_stream");
        let mut client = Client::start(lab, json!({"progress": "full"}), Vec::new());
        client.until("the first words", |f| f.is_progress("text") && f.text("text").contains("one"));
        let since = Instant::now();
        client.session.cancel();
        let run = client.finish();
        run.outcome.cancelled();
        assert!(run.outcome.ended - since < STOP, "the end took {:?}", run.outcome.ended - since);
        assert!(!run.outcome.said().contains("ten"), "it was not stopped");
    });
}

#[test]
fn a_cancel_while_the_model_is_silent() {
    twice("a_cancel_while_the_model_is_silent", || {
        let lab = Lab::new(Agent::Claude, "silence");
        let mut client = Client::start(lab, json!({"progress": "full"}), Vec::new());
        client.until("the first words", |f| f.is_progress("text"));
        client.session.cancel();
        client.finish().outcome.cancelled();
    });
}

#[test]
fn a_cancel_while_a_question_is_open() {
    twice("a_cancel_while_a_question_is_open", || {
        let mut client = Client::start(Lab::new(Agent::Claude, "permission"), json!({}), Vec::new());
        client.until("the question", |f| f.kind() == "run.question");
        client.session.cancel();
        let run = client.finish();
        run.outcome.cancelled();
        assert_eq!(run.outcome.resolutions(), ["withdrawn"]);
        assert!(!run.made("asked.txt"));
    });
}

#[test]
fn a_signal_while_a_tool_runs() {
    twice("a_signal_while_a_tool_runs", || {
        let work = AtWork::start(Agent::Claude, json!({}));
        let since = Instant::now();
        work.client.session.signal(Signal::TERM);
        assert_eq!(work.finish(since).outcome.cancelled()["source"], "signal");
    });
}

#[test]
fn a_time_limit_while_a_tool_runs() {
    twice("a_time_limit_while_a_tool_runs", || {
        let limit = Duration::from_secs(8); // so long that the tool is surely at work
        let work = AtWork::start(Agent::Claude, json!({"timeout_s": limit.as_secs()}));
        let started = work.client.session.started;
        let run = work.finish(started + limit);
        run.outcome.failed("timeout");
        assert!(run.outcome.took() >= limit, "it took only {:?}", run.outcome.took());
    });
}

fn killed_in_a_tool(agent: Agent) {
    let work = AtWork::start(agent, json!({}));
    work.client.session.signal(Signal::KILL);
    // This waits for a second, and a little, until the last process is gone.
    let run = work.client.finish_killed();
    assert_eq!(run.outcome.signal, Some(Signal::KILL.as_raw()));
    assert!(run.outcome.left.is_empty(), "left: {:?}", run.outcome.left);
    assert!(!procs::alive(work.tool), "the tool goes on");
}

#[test]
fn a_killed_program_leaves_nothing_behind() {
    twice("a_killed_program_leaves_nothing_behind", || killed_in_a_tool(Agent::Claude));
}

#[test]
fn a_killed_program_leaves_nothing_of_the_old_version_behind() {
    twice("a_killed_program_leaves_nothing_of_the_old_version_behind", || killed_in_a_tool(Agent::OldClaude));
}

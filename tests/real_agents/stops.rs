//! Stopping busy agents. Each test has a tool or a model that would run for minutes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Client, Run, permission};
use crate::lab::Lab;
use crate::support::{procs, slack};

rows!(old: cancel_in_a_tool kill_in_a_tool);
rows!(ours: cancel_in_a_text cancel_at_a_question timeout_in_a_tool);
rows!(of cancel_while_the_agent_is_silent: claude Claude);
rows!(of signal_in_a_tool: claude Claude);

/// The maximum time from the first stop to the end of the program.
const STOP: Duration = Duration::from_secs(4);

/// A run whose shell tool sleeps for minutes, and the tool's processes.
struct AtWork {
    client: Client,
    tool: Vec<i32>,
}

impl AtWork {
    #[track_caller]
    fn start(agent: Agent, payload: Value) -> AtWork {
        let lab = Lab::new(agent, "long_tool");
        let file = lab.case.work().join("at_work");
        let mut client = Client::start(lab, payload, permission("allow_once"));
        client.until("the permission", |f| f.is_progress("question_resolved"));
        client.wait_file(&file);
        let processes = client.session.processes().into_iter();
        // Finds the tool by the marker in its environment, because the pid that it sees may be one inside a sandbox.
        let tool: Vec<i32> = processes.filter(|(_, line)| line.contains("sleep 300")).map(|(pid, _)| pid).collect();
        assert!(!tool.is_empty(), "the tool is not at work");
        AtWork { client, tool }
    }

    #[track_caller]
    fn finish(self, since: Instant) -> Run {
        let run = self.client.finish();
        assert!(run.outcome.ended - since < STOP + slack(), "the end took {:?}", run.outcome.ended - since);
        assert!(!self.tool.iter().any(|pid| procs::alive(*pid)), "the tool goes on");
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

fn cancel_in_a_text(agent: Agent) {
    let mut client = Client::start(Lab::new(agent, "slow_stream"), json!({"progress": "full"}), Vec::new());
    client.until("the first words", |f| f.is_progress("text") && f.text("text").contains("one"));
    let since = Instant::now();
    client.session.cancel();
    let run = client.finish();
    run.outcome.cancelled();
    assert!(run.outcome.ended - since < STOP, "the end took {:?}", run.outcome.ended - since);
    assert!(!run.outcome.said().contains("ten"), "it was not stopped");
}

fn cancel_while_the_agent_is_silent(agent: Agent) {
    let mut client = Client::start(Lab::new(agent, "silence"), json!({"progress": "full"}), Vec::new());
    client.until("the first words", |f| f.is_progress("text"));
    client.session.cancel();
    client.finish().outcome.cancelled();
}

fn cancel_at_a_question(agent: Agent) {
    let mut client = Client::start(Lab::new(agent, "permission"), json!({}), Vec::new());
    client.until("the question", |f| f.kind() == "run.question");
    client.session.cancel();
    let run = client.finish();
    run.outcome.cancelled();
    assert_eq!(run.outcome.resolutions(), ["withdrawn"]);
    assert!(!run.made("asked.txt"));
}

fn signal_in_a_tool(agent: Agent) {
    let work = AtWork::start(agent, json!({}));
    let since = Instant::now();
    work.client.session.signal(Signal::TERM);
    assert_eq!(work.finish(since).outcome.cancelled()["source"], "signal");
}

fn timeout_in_a_tool(agent: Agent) {
    let limit = Duration::from_secs(agent.ways().at_work_s);
    let work = AtWork::start(agent, json!({"timeout_s": limit.as_secs()}));
    let started = work.client.session.started;
    let run = work.finish(started + limit);
    run.outcome.failed("timeout");
    assert!(run.outcome.took() >= limit, "it took only {:?}", run.outcome.took());
}

/// The program itself is killed.
fn kill_in_a_tool(agent: Agent) {
    let work = AtWork::start(agent, json!({}));
    work.client.session.signal(Signal::KILL);
    // Waits a little more than a second for the last process to exit.
    let run = work.client.finish_killed();
    assert_eq!(run.outcome.signal, Some(Signal::KILL.as_raw()));
    assert!(run.outcome.left.is_empty(), "left: {:?}", run.outcome.left);
    assert!(!work.tool.iter().any(|pid| procs::alive(*pid)), "the tool goes on");
}

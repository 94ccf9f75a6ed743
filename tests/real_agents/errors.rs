//! A model that refuses.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{Run, run};
use crate::lab::Lab;

rows!(error_401 error_429_then_ok error_500);

fn plain(agent: Agent, scenario: &str) -> Run {
    run(Lab::new(agent, scenario), json!({}), Vec::new())
}

fn error_401(agent: Agent) {
    let run = plain(agent, "key_refused");
    run.outcome.failed("auth_required");
    // Claude Code by itself would try for three minutes.
    assert!(run.outcome.took().as_secs() < 60, "it took {:?}", run.outcome.took());
}

/// A rate limit that passes is a warning where the agent tells of it.
fn error_429_then_ok(agent: Agent) {
    let run = plain(agent, "busy_once");
    run.completed("Now I have time.");
    let told = agent.ways().tells_retries;
    assert_eq!(run.outcome.warnings("agent_retrying").len(), usize::from(told));
    let states = run.outcome.progress("status");
    assert_eq!(states.iter().any(|f| f.text("status") == "retrying"), told);
    assert_eq!(run.stub().conversation().len(), 2);
}

fn error_500(agent: Agent) {
    let run = plain(agent, "broken");
    let (code, status) = agent.ways().broken;
    let payload = run.outcome.failed(code);
    assert_eq!(payload["retryable"], code == "provider_unavailable");
    assert_eq!(payload["detail"]["http_status"], json!(status));
    let address = run.stub().url();
    run.outcome.never_shows(address.trim_start_matches("http://"));
}

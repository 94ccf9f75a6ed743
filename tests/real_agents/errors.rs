//! Errors of the model's provider.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{Run, run};
use crate::lab::Lab;

rows!(error_400 error_401 error_404 error_429_then_ok error_500 not_logged_in);

fn plain(agent: Agent, scenario: &str) -> Run {
    run(Lab::new(agent, scenario), json!({}), Vec::new())
}

/// The provider's error message reaches the user.
fn error_400(agent: Agent) {
    let run = plain(agent, "too_large");
    let payload = run.outcome.failed("agent_error");
    let said = payload["detail"]["agent_message"].as_str().unwrap_or_default();
    assert!(said.contains("max_tokens is too large: this model allows at most 8192 of them."), "{payload}");
}

fn error_404(agent: Agent) {
    let run = plain(agent, "no_model");
    let payload = run.outcome.failed("model_not_found");
    let model = run.outcome.progress("session")[0].text("model");
    let message = format!("The model {model} does not exist, or your account may not use it: choose another model.");
    assert_eq!(payload["message"], message);
    assert!(payload["detail"]["agent_message"].is_string(), "{payload}");
}

/// Nobody is asked, least of all a model that nobody chose.
fn not_logged_in(agent: Agent) {
    let mut lab = Lab::new(agent, "hello");
    lab.case = agent.log_out(lab.case);
    let run = run(lab, json!({}), Vec::new());
    let message = run.outcome.failed("auth_required")["message"].as_str().unwrap().to_owned();
    assert!(!message.contains("refused") && message.contains(": "), "{message}");
    assert!(run.stub().conversation().is_empty(), "a model was asked");
}

fn error_401(agent: Agent) {
    let run = plain(agent, "key_refused");
    let message = run.outcome.failed("auth_required")["message"].as_str().unwrap();
    assert!(message.starts_with("The provider refused the credentials of "), "{message}");
    // By default, Claude Code retries for three minutes.
    assert!(run.outcome.took().as_secs() < 60, "it took {:?}", run.outcome.took());
}

/// A temporary rate limit is a warning if the agent reports it.
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
    let message = payload["message"].as_str().unwrap();
    assert_eq!(message.contains("HTTP status 500"), status.is_some(), "{message}");
    assert!(payload["detail"]["agent_message"].is_string(), "{payload}");
    let address = run.stub().url();
    assert!(!message.contains(address.trim_start_matches("http://")), "the sentence is ours: {message}");
}

//! Errors of the model's provider.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use spektacular::agent::provider_samples::{SAMPLES, Sample};
use spektacular::protocol::failure::Code;

use crate::agents::Agent;
use crate::client::{Run, run};
use crate::lab::Lab;
use crate::length::by_length;

rows!(a_failure_has_one_meaning error_429_then_ok not_logged_in);

/// The agents at work at a time. Most of the time they wait until they try again.
const AT_ONCE: usize = 3;

/// A row of the table.
struct Row {
    sample: Sample,
    scenario: Value,
    /// The address of a provider that cannot be reached.
    address: Option<&'static str>,
    /// Whether the provider says when its limit ends. Only OpenCode and Gemini CLI pass that on with the failure.
    tells_end: bool,
    /// Whether the agent repeats the request for more than a minute.
    is_long: bool,
}

/// The failures that the drivers are tested with, and those of the connection.
fn table(agent: Agent) -> Vec<Row> {
    let patient = agent == Agent::OpenCode;
    let refusal = |sample: &Sample, retry_after: Option<u32>| {
        let refusal =
            json!({"status": sample.status, "message": sample.text, "class": sample.name, "retry_after": retry_after});
        json!({"replies": [], "after": {"refuse": refusal}})
    };
    let row = |sample: &Sample, retry_after| Row {
        sample: *sample,
        scenario: refusal(sample, retry_after),
        address: None,
        tells_end: retry_after.is_some() && matches!(sample.code, Code::RateLimited | Code::QuotaExceeded),
        is_long: patient && retry_after.is_none(),
    };
    let told = SAMPLES.iter().filter(|sample| sample.status.is_some());
    let busy = SAMPLES.iter().filter(|sample| sample.code == Code::RateLimited && sample.status.is_some());
    let unreachable = |text, address| Row {
        sample: Sample { status: None, name: None, text, code: Code::ProviderUnavailable },
        scenario: json!({"replies": [], "after": {"say": ["It"], "cut": true}}),
        address,
        tells_end: false,
        is_long: patient,
    };
    told.map(|sample| row(sample, Some(1)))
        .chain(busy.map(|sample| row(sample, None)))
        .chain([
            unreachable("a refused connection", Some("http://127.0.0.1:1")),
            unreachable("no such host", Some("http://no-such-host.invalid")),
            unreachable("a cut stream", None),
        ])
        .collect()
}

/// The same failure has the same code, HTTP status and `retryable` from every agent, and the user reads its words. Rows of
/// more than a minute, and all but the first status of each code, belong to the long form.
fn a_failure_has_one_meaning(agent: Agent) {
    let mut codes = HashSet::new();
    let mut is_first = |row: &Row| row.sample.status.is_none() || codes.insert(row.sample.code.name());
    let rows = table(agent).into_iter().filter(|row| by_length(!row.is_long && is_first(row), true));
    let rows: Vec<Row> = rows.collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(mistake(agent, row));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A difference between a run and its row.
fn mistake(agent: Agent, row: &Row) -> Option<String> {
    let Row { sample, scenario, address, is_long, tells_end } = row;
    let lab = Lab::playing(agent, &scenario.to_string(), *address);
    let run = run(lab, json!({"timeout_s": 200}), Vec::new());
    let payload = run.outcome.terminal().payload();
    let status = sample.status.filter(|_| !drops_status(agent, sample));
    let said = &payload["detail"]["agent_message"];
    let model = run.outcome.progress("session").first().map(|frame| frame.text("model").to_owned()).unwrap_or_default();
    let names_model = payload["message"].as_str().is_some_and(|message| message.contains(&model));
    let is_right = payload["code"] == sample.code.name()
        && payload["retryable"] == sample.code.retryable()
        && payload["detail"]["http_status"] == json!(status)
        && (said.is_string() || sample.code == Code::AuthRequired)
        && (sample.code != Code::ModelNotFound || names_model)
        && payload["detail"]["retry_at"].is_string() == (*tells_end && passes_end_on(agent, sample))
        && (*is_long || run.outcome.took().as_secs() < 60);
    (!is_right).then(|| format!("{sample:?} {address:?}, after {:?}: {}", run.outcome.took(), payload))
}

/// Gemini CLI reads the end of a limit from the body of a 429 only.
fn passes_end_on(agent: Agent, sample: &Sample) -> bool {
    agent == Agent::OpenCode || agent == Agent::Gemini && sample.status == Some(429)
}

/// Codex has a name of its own for a quota that is used up by insufficient_quota, but not for 402.
fn drops_status(agent: Agent, sample: &Sample) -> bool {
    agent.ways().drops_status == Some(sample.code) && sample.status != Some(402)
}

fn plain(agent: Agent, scenario: &str) -> Run {
    run(Lab::new(agent, scenario), json!({}), Vec::new())
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

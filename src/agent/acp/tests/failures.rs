//! Failures of the provider, as the agents report them. The lines are those of real agents.

use super::{failure, hear, in_a_turn};
use crate::agent::acp::agents::find_profile;
use crate::agent::acp::errors;
use crate::agent::provider_samples::SAMPLES;
use crate::agent::rpc::Error;
use crate::agent::{AgentEvent, Program, TurnOver};
use crate::protocol::failure::Code;
use serde_json::{Value, json};

fn ended(agent: &str, text: &str, end: &Value) -> (Option<Code>, Option<u16>) {
    let mut driver = in_a_turn(find_profile(&Program::Command(agent.into()), agent));
    if !text.is_empty() {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": "s", "update": update});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }
    let mut line = json!({"jsonrpc": "2.0", "id": 3});
    line.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
    let (_, events) = hear(&mut driver, &line);
    let status = events.iter().find_map(|event| match event {
        AgentEvent::TurnOver(TurnOver::Failed(failure)) => failure.http_status,
        _ => None,
    });
    (failure(&events), status)
}

#[test]
fn a_failure_of_the_provider_is_that_of_the_common_table() {
    for sample in SAMPLES {
        let bare = json!({"code": -32603, "message": sample.text});
        let opencode = json!({"service": "session", "errorName": "APIError"});
        let opencode = json!({"code": -32603, "message": format!("Internal error: {}", sample.text), "data": opencode});
        let google = json!({"error": {"code": sample.status, "message": sample.text}}).to_string();
        let errors = match sample.status {
            Some(status) => vec![
                ("gemini", json!({"code": status, "message": google})),
                (
                    "new",
                    json!({"code": -32603, "message": "Internal error", "data": {"status": status, "message": sample.text}}),
                ),
                ("new", json!({"code": -32603, "message": "Agent error", "data": format!("{status} {}", sample.text)})),
            ],
            None => vec![("opencode", opencode), ("gemini", bare.clone()), ("new", bare)],
        };
        for (agent, error) in errors {
            let mut driver = in_a_turn(find_profile(&Program::Command(agent.into()), agent));
            let (_, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "error": error}));
            let failed = events.iter().find_map(|event| match event {
                AgentEvent::TurnOver(TurnOver::Failed(failure)) => Some(failure),
                _ => None,
            });
            sample.is(failed.unwrap_or_else(|| panic!("{agent}: {events:?}")));
        }
    }
}

#[test]
fn a_refused_handshake_has_the_agents_own_reason() {
    let profile = find_profile(&Program::Command("new".into()), "new");
    for (message, code) in [
        ("The server has exited with code 1: Permission denied", Code::AgentProtocolError),
        ("401 Unauthorized: invalid API key", Code::AuthRequired),
    ] {
        let failure = errors::handshake(profile, &Error { message: message.into(), ..Error::default() });
        assert_eq!((failure.code, failure.agent_message), (code, Some(message.into())), "{message}");
    }
}

#[test]
fn a_refused_session_is_missing_or_busy() {
    let profile = find_profile(&Program::Command("new".into()), "new");
    for (message, detail, code) in [
        ("thread t already has an active writer", "", Code::SessionBusy),
        ("Internal error", "Session s is in use by another process", Code::SessionBusy),
        ("Session is locked", "", Code::SessionBusy),
        ("Invalid session identifier \"s\"", "", Code::SessionNotFound),
        ("Internal error", "", Code::SessionNotFound),
    ] {
        let error = Error { message: message.into(), detail: detail.into(), ..Error::default() };
        let failure = errors::resume(profile, &error);
        assert_eq!((failure.code, failure.retryable), (code, code == Code::SessionBusy), "{message} {detail}");
    }
}

#[test]
fn the_data_of_an_error_decides_before_its_message() {
    let error =
        |code: i64, message: &str, data: Value| json!({"error": {"code": code, "message": message, "data": data}});
    let internal = |data: Value| error(-32603, "Internal error", data);
    for (agent, end, code, status) in [
        ("qwen", internal(json!({"details": "401 invalid x-api-key"})), Code::AuthRequired, Some(401)),
        ("droid", internal(json!("429 slow down please")), Code::RateLimited, Some(429)),
        ("droid", internal(json!("500 Something broke.")), Code::ProviderUnavailable, Some(500)),
        ("claude-acp", internal(json!({"errorKind": "rate_limit"})), Code::RateLimited, None),
        ("claude-acp", internal(json!({"errorKind": "server_error"})), Code::ProviderUnavailable, None),
        ("kimi", error(-32000, "Authentication required: 401 no", Value::Null), Code::AuthRequired, Some(401)),
        ("openhands", internal(json!({"details": "litellm.RateLimitError: no"})), Code::RateLimited, None),
        ("new", internal(json!({"status": 503})), Code::ProviderUnavailable, Some(503)),
        ("new", internal(json!({"code": 429})), Code::RateLimited, Some(429)),
        ("new", internal(json!({"http_status": "401"})), Code::AuthRequired, Some(401)),
        (
            "new",
            internal(json!({"error": {"type": "rate_limit_error", "message": "Slow down."}})),
            Code::RateLimited,
            None,
        ),
        (
            "new",
            internal(json!({"error": {"status": 500, "message": "Broken."}})),
            Code::ProviderUnavailable,
            Some(500),
        ),
        ("new", error(-32603, "HTTP 500: broken", json!({"status": 401})), Code::AuthRequired, Some(401)),
        ("new", error(-32603, "HTTP 500: broken", json!("429 slow down")), Code::RateLimited, Some(429)),
        ("new", error(-32603, "HTTP 429: wait", Value::Null), Code::RateLimited, Some(429)),
        ("new", error(-32603, "line 4012 of 500 files", Value::Null), Code::AgentError, None),
    ] {
        assert_eq!(ended(agent, "", &end), (Some(code), status), "{agent}: {end}");
    }
}

#[test]
fn a_turn_without_an_answer_of_the_model_is_not_completed() {
    let bare = json!({"result": {"stopReason": "end_turn"}});
    let counted = json!({"result": {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}}});
    let refused = "Info: Retrying...Error: Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).";
    for (agent, text, end, wanted) in [
        ("copilot", refused, &bare, (Some(Code::AuthRequired), Some(401))),
        ("copilot", refused, &counted, (None, None)),
        ("copilot", "Done.", &bare, (None, None)),
        ("hermes", "HTTP 401: invalid x-api-key", &bare, (Some(Code::AuthRequired), Some(401))),
        ("hermes", "API call failed after 1 retries: HTTP 429: slow", &bare, (Some(Code::RateLimited), Some(429))),
        (
            "codex-acp",
            "exceeded retry limit, last status: 429 Too Many Requests\n\n",
            &bare,
            (Some(Code::RateLimited), Some(429)),
        ),
        ("codex-acp", "We’re currently experiencing high demand.", &bare, (Some(Code::ProviderUnavailable), None)),
        ("kimi", "", &bare, (Some(Code::AgentError), None)),
        ("pi-acp", "", &bare, (Some(Code::AgentError), None)),
        (
            "pi-acp",
            "Retrying (attempt 1/3, waiting 2s)...\nRetrying (attempt 2/3, waiting 4s)...",
            &bare,
            (Some(Code::AgentError), None),
        ),
        ("pi-acp", "Retrying (attempt 1/3, waiting 2s)...\nDone.", &bare, (None, None)),
        ("pi-acp", "Done.", &bare, (None, None)),
        ("new", "HTTP 401: invalid x-api-key", &bare, (None, None)),
        ("new", "", &bare, (None, None)),
    ] {
        assert_eq!(ended(agent, text, end), wanted, "{agent}: {text}");
    }
}

//! Claude Code's ways to fail → our codes, from its frames and never from its exit code. Its own error texts name
//! hosts, ports and pieces of requests; ours take their place.

use crate::agent::TurnOver;
use crate::agent::json::Object;
use crate::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;

/// A refused key or a missing login.
pub(super) fn auth(status: Option<u16>) -> Failure {
    let message =
        "The provider refused the credentials of Claude Code: log in with `claude`, or set ANTHROPIC_API_KEY.";
    Failure::new(Code::AuthRequired, message).with_status(status)
}

/// One line about an api_retry.
pub(super) fn retrying(message: &Object<'_>, status: Option<u16>) -> String {
    let why = match status {
        Some(429) => "the rate limit",
        Some(529) => "an overloaded provider",
        Some(_) => "an error of the provider",
        None => "a failed connection",
    };
    let attempt = message.count("attempt").unwrap_or(1);
    match (message.count("max_retries"), message.number("retry_delay_ms")) {
        (Some(most), Some(delay)) => {
            format!("Retrying after {why}: attempt {attempt} of {most} in {:.1} s", delay.max(0.0) / 1000.0)
        }
        _ => format!("Retrying after {why}: attempt {attempt}"),
    }
}

/// The end of a turn whose result says `is_error` (or does not say).
pub(super) fn classify(result: &Object<'_>, api_error: Option<&str>, unknown_session: bool) -> TurnOver {
    let reason = result.str("terminal_reason").unwrap_or_default();
    if reason.starts_with("aborted") {
        return TurnOver::Interrupted;
    }
    let status = result.count("api_error_status").and_then(|s| u16::try_from(s).ok());
    let text = result.str("result").unwrap_or_default();
    let subtype = result.str("subtype").unwrap_or_default();
    if unknown_session && subtype == "error_during_execution" && result.count("num_turns") == Some(0) {
        let message = "Claude Code has no session with this id: check session_id, and the working directory.";
        return TurnOver::Failed(Failure::new(Code::SessionNotFound, message));
    }
    let (code, message) = match (subtype.as_str(), reason.as_str(), api_error) {
        ("error_max_turns", ..) => (Code::LimitReached, "The run used up max_turns: raise it or split the task."),
        ("error_max_budget_usd", ..) => {
            (Code::LimitReached, "The run used up max_cost_usd: raise it or split the task.")
        }
        (_, "prompt_too_long" | "blocking_limit", _) => {
            (Code::ContextExceeded, "The prompt or the conversation is too long for the model: shorten it.")
        }
        (_, _, Some("model_not_found")) => MODEL,
        (_, _, Some("authentication_failed")) => return TurnOver::Failed(auth(status)),
        _ => by_status(status, &text),
    };
    TurnOver::Failed(Failure::new(code, message).with_status(status))
}

const MODEL: (Code, &str) = (Code::ModelNotFound, "The model does not exist or may not be used: choose another model.");

fn by_status(status: Option<u16>, text: &str) -> (Code, &'static str) {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|p| text.starts_with(p));
    match status {
        Some(401 | 403) => (Code::AuthRequired, AUTH),
        Some(404) => MODEL,
        Some(413) => (Code::ContextExceeded, "The request is too large for the provider: shorten the task."),
        Some(429) => (Code::RateLimited, "The provider's rate limit is reached: try again later."),
        _ if begins(&["Invalid API key", "Not logged in", "Failed to authenticate"]) => (Code::AuthRequired, AUTH),
        _ if begins(&["Credit balance is too low"]) => {
            (Code::LimitReached, "The account has no credit left: add credit at the provider.")
        }
        _ if begins(&["Prompt is too long"]) => {
            (Code::ContextExceeded, "The prompt or the conversation is too long for the model: shorten it.")
        }
        _ if begins(&["There's an issue with the selected model"]) => MODEL,
        Some(500..=599) => UNAVAILABLE,
        _ if begins(&["API Error: Repeated 529", "API Error: 5", "Unable to connect", "Request timed out"])
            || text.contains("Unable to connect")
            || text.contains("Request timed out") =>
        {
            UNAVAILABLE
        }
        _ if text.contains("Request rejected (429)") => {
            (Code::RateLimited, "The provider's rate limit is reached: try again later.")
        }
        _ if text.contains("refus") && text.contains("Usage Policy") => {
            (Code::Refused, "The model refused the task: change the prompt.")
        }
        _ => (Code::AgentError, "Claude Code reported an error: see its own log, or record the run."),
    }
}

const AUTH: &str =
    "The provider refused the credentials of Claude Code: log in with `claude`, or set ANTHROPIC_API_KEY.";
const UNAVAILABLE: (Code, &str) =
    (Code::ProviderUnavailable, "The provider could not be reached or failed: try again later.");

/// An end without a result.
pub(super) fn exited(exit: AgentExit, alive: bool, stderr: &str) -> Failure {
    if alive || exit.signal.is_some() {
        let message = "Claude Code ended without a result: run it again, or record the run to see what it did.";
        return Failure::new(Code::AgentExited, message);
    }
    let message = match exit.code {
        Some(126 | 127) => "Claude Code could not be run: check that its program and its interpreter are installed.",
        Some(0) => {
            return Failure::new(
                Code::AgentExited,
                "Claude Code ended at once and said nothing: check its installation.",
            );
        }
        _ if stderr.contains("unknown option") => {
            "Claude Code does not know one of its options: update it, or check agent_args."
        }
        _ => "Claude Code ended before it said anything: see detail.stderr_tail, or run `claude` by hand.",
    };
    Failure::new(Code::AgentStartFailed, message)
}

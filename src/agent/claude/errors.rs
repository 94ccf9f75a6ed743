//! Maps Claude Code's error messages to our codes. Ignores its exit code, which says nothing about the cause.

use crate::agent::limit::Limit;
use crate::agent::provider::{self, Evidence, ProviderAccount};
use crate::agent::{TurnOver, error_text};
use crate::json::{Object, Raw};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::VIOLATIONS;
use crate::protocol::outbound::{AgentExit, Text};
use crate::protocol::schema::Mismatch;
use crate::protocol::terms::sentence;

pub(super) const LOGIN: &str = "log in with `claude`, or set ANTHROPIC_API_KEY";

const ACCOUNT: ProviderAccount = ProviderAccount { agent: "Claude Code", login: LOGIN };

pub(super) fn retrying(message: &Object<'_>, status: Option<u16>) -> String {
    let why = provider::retried_after(status);
    let attempt = message.count("attempt").unwrap_or(1);
    match (message.count("max_retries"), message.number("retry_delay_ms")) {
        (Some(most), Some(delay)) => {
            format!("Retrying after {why}: attempt {attempt} of {most} in {:.1} s", delay.max(0.0) / 1000.0)
        }
        _ => format!("Retrying after {why}: attempt {attempt}"),
    }
}

#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) class: String,
    pub(super) said: Option<String>,
}

/// Reads an error message that Claude Code writes in place of the model. `None`: an ordinary message.
pub(super) fn api_error(line: &Object<'_>) -> Option<ApiError> {
    let class = line.string("error")?;
    let message = line.object("message");
    let blocks = message.iter().flat_map(|message| message.objects("content"));
    let texts: Vec<String> = blocks.filter_map(|block| block.string("text")).collect();
    Some(ApiError { class, said: error_text::errors(texts.iter().map(String::as_str)) })
}

/// `mismatches`: the mistakes in the last structured result.
pub(super) fn classify(
    result: &Object<'_>,
    api_error: Option<ApiError>,
    mismatches: Vec<Mismatch>,
    unknown_session: bool,
) -> TurnOver {
    let reason = result.string("terminal_reason").unwrap_or_default();
    if reason.starts_with("aborted") {
        return TurnOver::Interrupted;
    }
    let (class, earlier) = api_error.map(|error| (error.class, error.said)).unzip();
    let text = result.string("result").unwrap_or_default();
    let errors: Vec<String> = result.array("errors").filter_map(Raw::string).collect();
    let said = error_text::error(&text)
        .or_else(|| error_text::errors(errors.iter().map(String::as_str)))
        .or(earlier.flatten());
    let status = result.count("api_error_status").and_then(|s| u16::try_from(s).ok());
    let subtype = result.string("subtype").unwrap_or_default();
    if unknown_session && subtype == "error_during_execution" && result.count("num_turns") == Some(0) {
        return TurnOver::Failed(Failure::session_not_found("Claude Code").saying(said));
    }
    let failure = match (subtype.as_str(), reason.as_str(), class.as_deref()) {
        ("error_max_turns", ..) => Limit::MaxTurns.reached(),
        ("error_max_budget_usd", ..) => Limit::MaxCostUsd.reached(),
        ("error_max_structured_output_retries", ..) => Failure::result_invalid(last_mismatches(&errors, mismatches)),
        (_, "prompt_too_long" | "blocking_limit", _) => Failure::context_exceeded(),
        _ if result.str("stop_reason").as_deref() == Some("refusal") => Failure::refused(),
        (.., class) => {
            let text = said.as_deref().unwrap_or(&text);
            let evidence = Evidence { status, names: &[class.unwrap_or_default()], text };
            provider::failure(ACCOUNT, &evidence, said.clone())
        }
    };
    let http_status = failure.http_status.or(status);
    TurnOver::Failed(Failure { http_status, ..failure.saying(said) })
}

/// Older versions do not repeat the mistakes in the error at the end.
fn last_mismatches(errors: &[String], earlier: Vec<Mismatch>) -> Vec<Mismatch> {
    match errors.iter().find_map(|error| mismatches(error)) {
        Some(last) => last,
        None if earlier.is_empty() => vec![Mismatch::of_whole("is missing")],
        None => earlier,
    }
}

/// The mistakes in an error: "…required schema: /a: must be integer, /b: must be string". `None`: another error.
pub(super) fn mismatches(error: &str) -> Option<Vec<Mismatch>> {
    let (_, found) = error.split_once("required schema: ")?;
    let one = |part: &str| match part.split_once(": ").filter(|(path, _)| path.starts_with('/')) {
        Some((path, text)) => Mismatch { path: path.into(), text: text.into() },
        None => Mismatch::of_whole(part.strip_prefix("root: ").unwrap_or(part)),
    };
    Some(found.split(", ").take(VIOLATIONS).map(one).collect())
}

pub(super) fn exited(exit: AgentExit, alive: bool, stderr: &Text) -> Failure {
    if alive || exit.signal.is_some() {
        return Failure::exited("Claude Code");
    }
    let message = match exit.code {
        Some(126 | 127) => {
            "Claude Code could not be run: check that its program and its interpreter are installed.".into()
        }
        Some(0) => {
            return Failure::new(
                Code::AgentExited,
                "Claude Code exited at once without output: check its installation.",
            );
        }
        _ if stderr.contains("unknown option") => {
            sentence!("Claude Code refused an unknown option: update it, or check {agent_args:#}.", agent_args)
        }
        _ => sentence!("Claude Code exited without output: see {stderr_tail}, or run `claude` by hand.", stderr_tail),
    };
    Failure::new(Code::AgentStartFailed, message)
}

//! Maps Codex's errors to our codes, by `codexErrorInfo`. Ignores its exit code, which says nothing about the cause.

use crate::agent::{error_text, rpc};
use crate::json::{Object, Raw};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;
use crate::protocol::terms::sentence;

/// An error from Codex.
struct Reported {
    class: String,
    status: Option<u16>,
    message: String,
    details: String,
}

fn read(error: Option<&Object<'_>>) -> Reported {
    let field = |name: &str| error.and_then(|error| error.string(name)).unwrap_or_default();
    let (message, details) = (field("message"), field("additionalDetails"));
    let info = error.and_then(|error| error.raw("codexErrorInfo"));
    // The class is a name, or an object whose only key is the name.
    let outer = info.and_then(Raw::object);
    let class = match &outer {
        Some(outer) => outer.iter().next().map(|(name, _)| name.into_owned()),
        None => info.and_then(Raw::string),
    }
    .unwrap_or_default();
    let status = outer.and_then(|outer| outer.object(&class)).and_then(|of_class| of_class.count("httpStatusCode"));
    Reported { class, status: status.and_then(|s| u16::try_from(s).ok()), message, details }
}

impl Reported {
    fn said(&self) -> Option<String> {
        // A retry notice does not describe the error.
        let message = if self.message.starts_with(RECONNECTING) { "" } else { &self.message };
        error_text::errors([message, &self.details])
    }
}

/// The beginning of Codex's message about a retry.
const RECONNECTING: &str = "Reconnecting...";

pub(super) fn said(error: &Object<'_>) -> Option<String> {
    read(Some(error)).said()
}

/// The way to log in.
pub(super) const LOGIN: &str = "run `codex login`, or set the provider's key";

/// The failure for a missing login or key.
pub(super) fn not_logged_in() -> Failure {
    Failure::not_logged_in("Codex", LOGIN)
}

/// The failure for credentials that the provider refused.
fn unauthorized(status: Option<u16>) -> Failure {
    Failure::credentials_refused("Codex", LOGIN, status)
}

pub(super) fn failed(error: Option<&Object<'_>>) -> Failure {
    let reported = read(error);
    let failure = by_class(&reported).unwrap_or_else(|| Failure::reported("Codex", reported.said()));
    failure.with_status(reported.status).saying(reported.said())
}

/// The failure for an error class or an HTTP status. `None`: neither is known.
fn by_class(Reported { class, status, message, .. }: &Reported) -> Option<Failure> {
    let begins = |prefix: &str| message.starts_with(prefix);
    Some(match (class.as_str(), *status) {
        ("unauthorized", _) | (_, Some(401 | 403)) => unauthorized(*status),
        ("rateLimitExceeded", _) | (_, Some(429)) => Failure::rate_limited(),
        ("usageLimitExceeded" | "sessionBudgetExceeded", _) => {
            let message = "The account's quota or budget is used up: raise it at the provider.";
            Failure::new(Code::LimitReached, message)
        }
        ("contextWindowExceeded", _) | (_, Some(413)) => Failure::context_exceeded(),
        ("modelNotFound", _) | (_, Some(404)) => Failure::model_not_found(),
        ("cyberPolicy" | "misalignmentPolicyViolation" | "inferenceHookDenied", _) => {
            Failure::new(Code::Refused, "The provider's policy refused the task: change the prompt.")
        }
        (_, Some(500..=599)) => Failure::provider_unavailable(*status),
        (
            "internalServerError"
            | "serverOverloaded"
            | "flexUnavailable"
            | "policyCapacityUnavailable"
            | "httpConnectionFailed"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected"
            | "responseTooManyFailedAttempts",
            None,
        ) => Failure::provider_unavailable(None),
        _ if begins("stream disconnected") || begins("error sending request") => Failure::provider_unavailable(*status),
        _ if begins("Missing environment variable") => not_logged_in(),
        _ => return None,
    })
}

/// The failure for an error that no retry can fix, such as an invalid key. `None`: a retry may help.
pub(super) fn no_use(error: Option<&Object<'_>>) -> Option<Failure> {
    let reported = read(error);
    let refused = reported.class == "unauthorized" || matches!(reported.status, Some(401 | 403));
    refused.then(|| unauthorized(reported.status).saying(reported.said()))
}

/// A line that describes an error after which Codex retries.
pub(super) fn retrying(error: Option<&Object<'_>>) -> String {
    let Reported { class, status, message, .. } = read(error);
    let why = match (class.as_str(), status) {
        ("rateLimitExceeded", _) | (_, Some(429)) => "the rate limit",
        ("serverOverloaded", _) => "an overloaded provider",
        ("internalServerError", _) | (_, Some(_)) => "a provider error",
        _ => "a broken connection",
    };
    // "Reconnecting... 1/2": keeps only the numbers.
    let count = message.rsplit(' ').next().and_then(|last| last.split_once('/'));
    let numbers = count.and_then(|(n, of)| Some((n.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
    match numbers {
        Some((attempt, most)) => format!("Retrying after {why}: attempt {attempt} of {most}"),
        None => format!("Retrying after {why}"),
    }
}

/// The failure for a refused handshake request, or a response that lacks what we need.
pub(super) fn refused(method: &str, error: Option<&rpc::Error>) -> Failure {
    let (code, text) = match method {
        "thread/resume" | "thread/fork" => {
            let text =
                sentence!("Codex has no session with this id: check {session_id:#}, and CODEX_HOME.", session_id);
            (Code::SessionNotFound, text)
        }
        "turn/start" => {
            let text = sentence!("Codex refused the prompt: see {agent_message}, or record the run.", agent_message);
            (Code::AgentError, text)
        }
        _ => {
            let text = "Codex could not open a session: check its configuration, or update it.";
            (Code::AgentStartFailed, text.into())
        }
    };
    Failure::new(code, text).saying(error.and_then(rpc::Error::said))
}

/// The failure for an exit without a result. `open`: whether the thread was open. `alive`: whether a line came.
pub(super) fn exited(exit: AgentExit, open: bool, alive: bool) -> Failure {
    if open || exit.signal.is_some() {
        return Failure::exited("Codex");
    }
    let message = match exit.code {
        Some(126 | 127) => "Codex could not be run: check that its program and its interpreter are installed.".into(),
        _ if alive => "Codex exited before its session was open: run `codex app-server` by hand, or update it.".into(),
        _ => sentence!(
            "Codex exited without output: run `codex app-server` by hand, or check {agent_args:#}.",
            agent_args
        ),
    };
    Failure::new(Code::AgentStartFailed, message)
}

#[cfg(test)]
mod tests {
    use super::{failed, no_use, retrying};
    use crate::json::Object;
    use crate::protocol::failure::Code;

    fn code(error: &str) -> Code {
        failed(Object::parse(error).as_ref()).code
    }

    #[test]
    fn classes_and_statuses_have_codes() {
        let class = |info: &str| code(&format!(r#"{{"message":"m","codexErrorInfo":{info}}}"#));
        assert_eq!(class(r#"{"httpConnectionFailed":{"httpStatusCode":401}}"#), Code::AuthRequired);
        assert_eq!(class(r#"{"responseTooManyFailedAttempts":{"httpStatusCode":429}}"#), Code::RateLimited);
        assert_eq!(class(r#"{"responseTooManyFailedAttempts":{"httpStatusCode":null}}"#), Code::ProviderUnavailable);
        assert_eq!(class(r#""usageLimitExceeded""#), Code::LimitReached);
        assert_eq!(class(r#""contextWindowExceeded""#), Code::ContextExceeded);
        assert_eq!(class(r#""serverOverloaded""#), Code::ProviderUnavailable);
        assert_eq!(class(r#""modelNotFound""#), Code::ModelNotFound);
        assert_eq!(class(r#""other""#), Code::AgentError);
        assert_eq!(
            code(r#"{"message":"stream disconnected before completion: x","codexErrorInfo":"other"}"#),
            Code::ProviderUnavailable
        );
        assert_eq!(code("{}"), Code::AgentError);
    }

    #[test]
    fn the_agents_error_message_is_kept() {
        let raw = r#"{"message":"{\"error\":{\"message\":\"Too large.\",\"type\":\"invalid_request_error\"}}"}"#;
        let failure = failed(Object::parse(raw).as_ref());
        assert_eq!((failure.code, failure.agent_message), (Code::AgentError, Some("Too large.".into())));
        assert!(
            failure.message.text().unredacted().ends_with("see detail.agent_message."),
            "{}",
            failure.message.text().unredacted()
        );
        let silent = failed(None);
        assert!(
            silent.agent_message.is_none() && !silent.message.text().contains("agent_message"),
            "{}",
            silent.message.text().unredacted()
        );
        let retry = r#"{"message":"Reconnecting... 1/2","additionalDetails":"status 401",
            "codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}"#;
        assert_eq!(no_use(Object::parse(retry).as_ref()).unwrap().agent_message, Some("status 401".into()));
    }

    #[test]
    fn a_retry_warning_shows_only_its_numbers() {
        let error = r#"{"message":"Reconnecting... 1/2","codexErrorInfo":{"responseStreamDisconnected":{}}}"#;
        assert_eq!(retrying(Object::parse(error).as_ref()), "Retrying after a broken connection: attempt 1 of 2");
    }
}

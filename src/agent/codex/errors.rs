//! Codex's ways to fail → our codes, from codexErrorInfo and never from its exit code. Its own texts hold pieces of
//! keys and addresses; ours take their place.

use crate::agent::json::{Object, text};
use crate::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;

/// What Codex says of an error: its class, the HTTP status, its text.
struct Reported {
    class: String,
    status: Option<u16>,
    message: String,
}

fn read(error: Option<&Object<'_>>) -> Reported {
    let message = error.and_then(|error| error.str("message")).unwrap_or_default();
    let Some(info) = error.and_then(|error| error.raw("codexErrorInfo")) else {
        return Reported { class: String::new(), status: None, message };
    };
    // A word, or an object with one member that is the word.
    if let Some(class) = text(info) {
        return Reported { class, status: None, message };
    }
    let outer = Object::parse(info.get());
    let class = outer.as_ref().and_then(|o| o.iter().next().map(|(name, _)| name.to_owned())).unwrap_or_default();
    let status = outer.and_then(|o| o.object(&class)).and_then(|o| o.count("httpStatusCode"));
    Reported { class, status: status.and_then(|s| u16::try_from(s).ok()), message }
}

/// No login, or a refused key.
pub(super) fn auth(status: Option<u16>) -> Failure {
    let message =
        "Codex is not logged in, or its credentials were refused: run `codex login`, or set the provider's key.";
    Failure::new(Code::AuthRequired, message).with_status(status)
}

/// The error of a turn that failed.
pub(super) fn failed(error: Option<&Object<'_>>) -> Failure {
    let Reported { class, status, message } = read(error);
    let begins = |prefix: &str| message.starts_with(prefix);
    let (code, text) = match (class.as_str(), status) {
        ("unauthorized", _) | (_, Some(401 | 403)) => return auth(status),
        ("rateLimitExceeded", _) | (_, Some(429)) => {
            (Code::RateLimited, "The provider's rate limit is reached: try again later.")
        }
        ("usageLimitExceeded" | "sessionBudgetExceeded", _) => {
            (Code::LimitReached, "The account's quota or budget is used up: raise it at the provider.")
        }
        ("contextWindowExceeded", _) | (_, Some(413)) => {
            (Code::ContextExceeded, "The prompt or the conversation is too long for the model: shorten it.")
        }
        ("modelNotFound", _) | (_, Some(404)) => {
            (Code::ModelNotFound, "The model does not exist or may not be used: choose another model.")
        }
        ("cyberPolicy" | "misalignmentPolicyViolation" | "inferenceHookDenied", _) => {
            (Code::Refused, "The provider's policy refused the task: change the prompt.")
        }
        (_, Some(500..=599)) => UNAVAILABLE,
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
        ) => UNAVAILABLE,
        _ if begins("stream disconnected") || begins("error sending request") => UNAVAILABLE,
        _ if begins("Missing environment variable") => return auth(None),
        _ => (Code::AgentError, "Codex reported an error: see its own log, or record the run."),
    };
    Failure::new(code, text).with_status(status)
}

const UNAVAILABLE: (Code, &str) =
    (Code::ProviderUnavailable, "The provider could not be reached or failed: try again later.");

/// The failure that no further try can change: a refused key stays refused.
pub(super) fn no_use(error: Option<&Object<'_>>) -> Option<Failure> {
    let Reported { class, status, .. } = read(error);
    (class == "unauthorized" || matches!(status, Some(401 | 403))).then(|| auth(status))
}

/// One line about an error after which Codex tries again.
pub(super) fn retrying(error: Option<&Object<'_>>) -> String {
    let Reported { class, status, message } = read(error);
    let why = match (class.as_str(), status) {
        ("rateLimitExceeded", _) | (_, Some(429)) => "the rate limit",
        ("serverOverloaded", _) => "an overloaded provider",
        ("internalServerError", _) | (_, Some(_)) => "an error of the provider",
        _ => "a broken connection",
    };
    // "Reconnecting... 1/2": only the numbers are taken over.
    let count = message.rsplit(' ').next().and_then(|last| last.split_once('/'));
    let numbers = count.and_then(|(n, of)| Some((n.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
    match numbers {
        Some((attempt, most)) => format!("Retrying after {why}: attempt {attempt} of {most}"),
        None => format!("Retrying after {why}"),
    }
}

/// A request of the handshake was refused.
pub(super) fn refused(method: &str) -> Failure {
    let (code, text) = match method {
        "thread/resume" => {
            (Code::SessionNotFound, "Codex has no session with this id: check session_id, and CODEX_HOME.")
        }
        "turn/start" => (Code::AgentError, "Codex did not take the prompt: see its own log, or record the run."),
        _ => (Code::AgentStartFailed, "Codex could not open a session: check its configuration, or update it."),
    };
    Failure::new(code, text)
}

/// An end without a result.
pub(super) fn exited(exit: AgentExit, alive: bool) -> Failure {
    if alive {
        let message = "Codex ended without a result: run it again, or record the run to see what it did.";
        return Failure::new(Code::AgentExited, message);
    }
    let message = match exit.code {
        Some(126 | 127) => "Codex could not be run: check that its program and its interpreter are installed.",
        _ => "Codex ended before it said anything: run `codex app-server` by hand, or check agent_args.",
    };
    Failure::new(Code::AgentStartFailed, message)
}

#[cfg(test)]
mod tests {
    use super::{failed, retrying};
    use crate::agent::json::Object;
    use crate::failure::Code;

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
    fn a_retry_shows_its_numbers_and_nothing_else() {
        let error = r#"{"message":"Reconnecting... 1/2","codexErrorInfo":{"responseStreamDisconnected":{}}}"#;
        assert_eq!(retrying(Object::parse(error).as_ref()), "Retrying after a broken connection: attempt 1 of 2");
    }
}

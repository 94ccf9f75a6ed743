//! Maps the errors of ACP agents to our codes.

use super::profile::Profile;
use crate::agent::TurnOver;
use crate::agent::rpc::{Error, METHOD_NOT_FOUND};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;
use crate::protocol::terms::sentence;

/// JSON-RPC's code for "log in first".
const AUTH_REQUIRED: i64 = -32000;
/// JSON-RPC's code for a request that was cancelled.
const CANCELLED: i64 = -32800;

/// The failure for a refused handshake, or for an unsupported version of the protocol.
pub(super) fn version(profile: &Profile) -> Failure {
    let message = format!("{} does not speak version 1 of ACP: update it.", profile.name);
    Failure::new(Code::AgentProtocolError, message)
}

/// The failure for a session that could not be opened.
pub(super) fn new_session(profile: &Profile, error: &Error) -> Failure {
    let failure = if error.code == AUTH_REQUIRED {
        Failure::not_logged_in(profile.name, profile.login)
    } else {
        let message = format!("{} could not open a session: run it by hand to see why.", profile.name);
        Failure::new(Code::AgentError, message)
    };
    failure.saying(error.said())
}

/// The failure for a session that could not be resumed.
pub(super) fn resume(profile: &Profile, error: &Error) -> Failure {
    let failure = match error.code {
        AUTH_REQUIRED => Failure::not_logged_in(profile.name, profile.login),
        METHOD_NOT_FOUND => cannot_resume(profile),
        _ => Failure::session_not_found(profile.name),
    };
    failure.saying(error.said())
}

/// The failure for an agent that cannot resume sessions.
pub(super) fn cannot_resume(profile: &Profile) -> Failure {
    Failure::not_resumable(&format!("{} cannot resume a session in this version.", profile.name))
}

/// The failure for a model that the agent rejects.
pub(super) fn model(error: &Error) -> Failure {
    Failure::model_not_found().saying(error.said())
}

/// The failure for a session whose model nobody chose.
pub(super) fn stand_in(profile: &Profile) -> Failure {
    let Profile { name, login, .. } = profile;
    let message = sentence!(
        "{name} has no configured model, or no credentials for it, and would send the prompt to a remote model that \
         nobody chose: {login}, or choose a model with {model}.",
        model
    );
    Failure::new(Code::AuthRequired, message)
}

/// The failure for a turn that ended with an error. Some agents use the provider's HTTP status as the
/// code, others send only a text.
pub(super) fn prompt(profile: &Profile, error: &Error) -> TurnOver {
    if error.code == CANCELLED {
        return TurnOver::Interrupted;
    }
    let status = u16::try_from(error.code).ok().filter(|status| (400..600).contains(status));
    let failure = by_status(profile, status, error).unwrap_or_else(|| Failure::reported(profile.name, error.said()));
    TurnOver::Failed(failure.with_status(status).saying(error.said()))
}

/// The failure for an HTTP status. `None`: no code of ours applies.
fn by_status(profile: &Profile, status: Option<u16>, error: &Error) -> Option<Failure> {
    let text = error.message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let refused = || Failure::credentials_refused(profile.name, profile.login, status);
    let no_key = says(&["key", "credential"]) && says(&["missing", "not set", "no api", "not found"]);
    let no_model = says(&["not found", "does not exist", "not supported"]) && says(&["model", "entity"]);
    Some(match status {
        _ if error.code == AUTH_REQUIRED => Failure::not_logged_in(profile.name, profile.login),
        Some(401 | 403) => refused(),
        Some(400) if says(&["api key", "api_key", "api-key"]) => refused(),
        Some(404) => Failure::model_not_found(),
        // A missing model is reported as status 500 with a plain text.
        Some(500) if no_model => Failure::model_not_found(),
        Some(413) => Failure::context_exceeded(),
        Some(429) => Failure::rate_limited(),
        Some(500..=599) => Failure::provider_unavailable(status),
        None if no_key => Failure::not_logged_in(profile.name, profile.login),
        None if error.name == "ProviderAuthError"
            || says(&["api key", "api_key", "api-key", "unauthorized", "authentication"]) =>
        {
            refused()
        }
        None if no_model => Failure::model_not_found(),
        None if says(&["rate limit", "too many requests", "quota"]) => Failure::rate_limited(),
        _ if error.name == "ContextOverflowError" || says(&["context length", "too many tokens", "too long"]) => {
            Failure::context_exceeded()
        }
        None if says(&["overloaded", "unavailable", "unable to connect", "timed out", "econn", "server error"]) => {
            Failure::provider_unavailable(None)
        }
        _ => return None,
    })
}

/// The failure for a turn that reached a limit.
pub(super) fn limit() -> Failure {
    Failure::new(Code::LimitReached, "The agent reached its own limit or its model's: split the task.")
}

/// The failure for an agent that kept retrying a denied call.
pub(super) fn denied_too_often() -> Failure {
    let message = "The agent kept requesting an action that was denied: allow it, or clarify the task.";
    Failure::new(Code::LimitReached, message)
}

/// The failure for an exit without a result. `open`: whether the session was open. `alive`: whether a line came.
pub(super) fn exited(profile: &Profile, exit: AgentExit, open: bool, alive: bool) -> Failure {
    if open || exit.signal.is_some() {
        return Failure::exited(profile.name);
    }
    let when = if alive { "before its session was open" } else { "without output" };
    let message = format!("{} exited {when}: run it by hand to see why.", profile.name);
    Failure::new(Code::AgentStartFailed, message)
}

//! Maps the errors of ACP agents to our codes.

use super::profile::Profile;
use crate::agent::TurnOver;
use crate::agent::provider::{self, Evidence, ProviderAccount};
use crate::agent::rpc::{Error, METHOD_NOT_FOUND};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;
use crate::protocol::terms::sentence;

const AUTH_REQUIRED: i64 = -32000;
const CANCELLED: i64 = -32800;

pub(super) fn handshake(profile: &Profile, error: &Error) -> Failure {
    let why = "refused to begin a dialogue over ACP: run it by hand to see why, or update it.";
    unopened(profile, error, Code::AgentProtocolError, why)
}

pub(super) fn version(profile: &Profile) -> Failure {
    let message = format!("{} does not speak version 1 of ACP: update it.", profile.name);
    Failure::new(Code::AgentProtocolError, message)
}

pub(super) fn new_session(profile: &Profile, error: &Error) -> Failure {
    unopened(profile, error, Code::AgentError, "could not open a session: run it by hand to see why.")
}

/// The provider may fail already here: some agents start their own server only at the handshake.
fn unopened(profile: &Profile, error: &Error, code: Code, why: &str) -> Failure {
    let failure = || Failure::new(code, format!("{} {why}", profile.name));
    provider(profile, error).unwrap_or_else(failure).saying(error.said())
}

pub(super) fn resume(profile: &Profile, error: &Error) -> Failure {
    let failure = match error.code {
        AUTH_REQUIRED => Failure::not_logged_in(profile.name, profile.login),
        METHOD_NOT_FOUND => cannot_resume(profile),
        _ if error.is_of_busy_session() => Failure::session_busy(),
        _ => Failure::session_not_found(profile.name),
    };
    failure.saying(error.said())
}

pub(super) fn cannot_resume(profile: &Profile) -> Failure {
    Failure::not_resumable(&format!("{} cannot resume a session in this version.", profile.name))
}

pub(super) fn stand_in(profile: &Profile) -> Failure {
    let Profile { name, login, .. } = profile;
    let message = sentence!(
        "{name} has no configured model, or no credentials for it, and would send the prompt to a remote model that \
         nobody chose: {login}, or choose a model with {model}.",
        model
    );
    Failure::new(Code::AuthRequired, message)
}

/// Some agents use the provider's HTTP status as the error's code, others send only a text.
pub(super) fn prompt(profile: &Profile, error: &Error) -> TurnOver {
    if error.code == CANCELLED {
        return TurnOver::Interrupted;
    }
    let reported = || judged(profile, error, |account, evidence| provider::failure(account, evidence, error.said()));
    let failure = provider(profile, error).unwrap_or_else(reported);
    TurnOver::Failed(failure.saying(error.said()).until(error.retry_at))
}

/// Whether an error that follows a denial reports only the denial.
pub(super) fn is_denial(error: &Error) -> bool {
    error.code == CANCELLED || is_denial_notice(&error.message)
}

/// Whether a text is the agent's own note that the user denied something, and not the model's.
pub(super) fn is_denial_notice(text: &str) -> bool {
    const BYTES: usize = 200;
    let text = text.to_ascii_lowercase();
    let is_by_user = || ["by user", "by the user"].iter().any(|by| text.contains(by));
    text.len() <= BYTES
        && ["cancel", "reject", "denied", "declined"].iter().any(|word| text.contains(word))
        && is_by_user()
}

/// The HTTP status of a failure: as the error's code, or in its data. Gemini CLI gives a broken connection the code 500.
fn status(error: &Error) -> Option<u16> {
    let code = u64::try_from(error.code).ok().filter(|code| *code != 500 || !provider::is_unreachable(&error.message));
    let numbers = [code, error.status];
    let told = numbers.into_iter().flatten().filter_map(|number| u16::try_from(number).ok());
    told.into_iter().find(|status| (400..600).contains(status))
}

fn provider(profile: &Profile, error: &Error) -> Option<Failure> {
    let logged_out = || Failure::not_logged_in(profile.name, profile.login);
    judged(profile, error, provider::known).or_else(|| (error.code == AUTH_REQUIRED).then(logged_out))
}

fn judged<T>(profile: &Profile, error: &Error, judge: impl FnOnce(ProviderAccount, &Evidence<'_>) -> T) -> T {
    let text = format!("{}\n{}", error.detail, error.message);
    let evidence = Evidence { status: status(error), names: &[&error.reason, &error.name], text: text.trim() };
    judge(ProviderAccount { agent: profile.name, login: profile.login }, &evidence)
}

/// The failure of a turn that ended well with only the agent's own words about a failure.
pub(super) fn noticed(profile: &Profile, text: String) -> TurnOver {
    prompt(profile, &Error { message: text, ..Error::default() })
}

pub(super) fn silent(profile: &Profile) -> Failure {
    let message = format!("{} gave no answer, as when its provider fails: run it by hand to see why.", profile.name);
    Failure::new(Code::AgentError, message)
}

pub(super) fn limit() -> Failure {
    Failure::new(Code::LimitReached, "The agent reached its own limit or its model's: split the task.")
}

pub(super) fn denied_too_often() -> Failure {
    let message = "The agent kept requesting an action that was denied: allow it, or clarify the task.";
    Failure::new(Code::LimitReached, message)
}

/// `open`: whether the session was open. `alive`: whether a line came.
pub(super) fn exited(profile: &Profile, exit: AgentExit, open: bool, alive: bool) -> Failure {
    if open || exit.signal.is_some() {
        return Failure::exited(profile.name);
    }
    let when = if alive { "before its session was open" } else { "without output" };
    let message = format!("{} exited {when}: run it by hand to see why.", profile.name);
    Failure::new(Code::AgentStartFailed, message)
}

//! Maps Codex's errors to our codes, by `codexErrorInfo`. Ignores its exit code, which says nothing about the cause.

use crate::agent::provider::{self, Evidence, ProviderAccount};
use crate::agent::{error_text, rpc};
use crate::json::{Object, Raw};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::AgentExit;
use crate::protocol::terms::sentence;
use crate::protocol::utc::UtcTime;

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
    // Two failures have no status, but a form of their own: 500 a class, and 400 the provider's JSON as the message.
    let of_form = match class.as_str() {
        "internalServerError" => Some(500),
        "other" if Object::parse(&message).is_some_and(|body| body.raw("error").is_some()) => Some(400),
        _ => None,
    };
    Reported { class, status: status.and_then(|s| u16::try_from(s).ok()).or(of_form), message, details }
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

pub(super) const LOGIN: &str = "run `codex login`, or set the provider's key";

const ACCOUNT: ProviderAccount = ProviderAccount { agent: "Codex", login: LOGIN };

pub(super) fn failed(error: Option<&Object<'_>>) -> Failure {
    let reported = read(error);
    let Reported { class, status, message, .. } = &reported;
    let evidence = Evidence { status: *status, names: &[class], text: message };
    provider::failure(ACCOUNT, &evidence, reported.said())
}

/// The end of the account's limits that are used up.
pub(super) fn resets_at(params: &Object<'_>) -> Option<UtcTime> {
    let limits = params.object("rateLimits")?;
    let windows = ["primary", "secondary"].into_iter().filter_map(|name| limits.object(name));
    let used_up = windows.filter(|window| window.number("usedPercent").is_some_and(|used| used >= 100.0));
    used_up.filter_map(|window| UtcTime::of_seconds(window.number("resetsAt")?)).max()
}

/// The failure for an error that no retry can fix, such as an invalid key. `None`: a retry may help.
pub(super) fn no_use(error: Option<&Object<'_>>) -> Option<Failure> {
    let reported = read(error);
    let refused = reported.class == "unauthorized" || matches!(reported.status, Some(401 | 403));
    refused.then(|| Failure::credentials_refused("Codex", LOGIN, reported.status).saying(reported.said()))
}

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

/// `error` is `None` for a response that lacks what we need.
pub(super) fn refused(method: &str, error: Option<&rpc::Error>) -> Failure {
    if method == "thread/resume" && error.is_some_and(rpc::Error::is_of_busy_session) {
        return Failure::session_busy().saying(error.and_then(rpc::Error::said));
    }
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

/// `open`: whether the thread was open. `alive`: whether a line came.
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
    use super::{failed, no_use, resets_at, retrying};
    use crate::agent::provider_samples::SAMPLES;
    use crate::json::Object;
    use crate::protocol::failure::Code;
    use crate::protocol::utc::UtcTime;
    use serde_json::json;

    fn code(error: &str) -> Code {
        failed(Object::parse(error).as_ref()).code
    }

    #[test]
    fn classes_and_statuses_have_codes() {
        let class = |info: &str| code(&format!(r#"{{"message":"m","codexErrorInfo":{info}}}"#));
        for (name, code) in [
            ("unauthorized", Code::AuthRequired),
            ("rateLimitExceeded", Code::RateLimited),
            ("usageLimitExceeded", Code::QuotaExceeded),
            ("sessionBudgetExceeded", Code::QuotaExceeded),
            ("contextWindowExceeded", Code::ContextExceeded),
            ("modelNotFound", Code::ModelNotFound),
            ("cyberPolicy", Code::Refused),
            ("misalignmentPolicyViolation", Code::Refused),
            ("inferenceHookDenied", Code::Refused),
            ("internalServerError", Code::ProviderUnavailable),
            ("serverOverloaded", Code::ProviderUnavailable),
            ("flexUnavailable", Code::ProviderUnavailable),
            ("policyCapacityUnavailable", Code::ProviderUnavailable),
            ("httpConnectionFailed", Code::ProviderUnavailable),
            ("responseStreamConnectionFailed", Code::ProviderUnavailable),
            ("responseStreamDisconnected", Code::ProviderUnavailable),
            ("responseTooManyFailedAttempts", Code::ProviderUnavailable),
            ("other", Code::AgentError),
        ] {
            assert_eq!(class(&format!("\"{name}\"")), code, "{name}");
        }
        for (status, code) in [
            ("null", Code::ProviderUnavailable),
            ("401", Code::AuthRequired),
            ("403", Code::AuthRequired),
            ("404", Code::ModelNotFound),
            ("413", Code::ContextExceeded),
            ("429", Code::RateLimited),
            ("503", Code::ProviderUnavailable),
        ] {
            let info = format!(r#"{{"httpConnectionFailed":{{"httpStatusCode":{status}}}}}"#);
            assert_eq!(class(&info), code, "{status}");
        }
        assert_eq!(
            code(r#"{"message":"stream disconnected before completion: x","codexErrorInfo":"other"}"#),
            Code::ProviderUnavailable
        );
        assert_eq!(code("{}"), Code::AgentError);
    }

    #[test]
    fn a_failure_of_the_provider_is_that_of_the_common_table() {
        for sample in SAMPLES {
            let status = json!(sample.status);
            let info = json!({"responseStreamConnectionFailed": {"httpStatusCode": status}});
            let info = if sample.status.is_some() { info } else { json!("other") };
            let error = json!({"message": sample.text, "codexErrorInfo": info}).to_string();
            sample.is(&failed(Object::parse(&error).as_ref()));
        }
    }

    #[test]
    fn the_last_end_of_a_limit_that_is_used_up_counts() {
        let at = |primary: u64, secondary: u64| {
            let window = |used: u64, resets_at: u64| json!({"usedPercent": used, "resetsAt": resets_at});
            let limits =
                json!({"primary": window(primary, 1_771_581_600), "secondary": window(secondary, 1_771_900_000)});
            resets_at(&Object::parse(&json!({"rateLimits": limits}).to_string()).unwrap())
        };
        assert_eq!(at(100, 40), UtcTime::of_seconds(1_771_581_600.0));
        assert_eq!(at(100, 100), UtcTime::of_seconds(1_771_900_000.0));
        assert_eq!(at(99, 40), None);
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

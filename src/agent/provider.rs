//! The failures of a model's provider, in one table for all agents: the same failure has the same code from each.

use crate::protocol::failure::{Code, Failure};
use crate::protocol::utc::UtcTime;

#[derive(Clone, Copy, Debug)]
pub(super) struct ProviderAccount {
    pub(super) agent: &'static str,
    pub(super) login: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Evidence<'a> {
    /// The HTTP status in the error's data.
    pub(super) status: Option<u16>,
    /// The names of the failure in the error's data, by the provider or by the agent.
    pub(super) names: &'a [&'a str],
    pub(super) text: &'a str,
}

impl Evidence<'_> {
    fn status(&self) -> Option<u16> {
        self.status.or_else(|| status_in(self.text))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    LoggedOut,
    Credentials,
    Quota,
    Context,
    Model,
    Policy,
    Rate,
    Unavailable,
}

/// The evidence of a cause. The first row that fits decides, at each step of [`cause`].
struct Row {
    cause: Cause,
    /// Names that decide before a status, because they say more than it does. In lower case, letters and digits only.
    codes: &'static [&'static str],
    /// HTTP statuses that decide whatever the words are.
    statuses: &'static [u16],
    /// Names that decide without a status.
    kinds: &'static [&'static str],
    /// Words in lower case. A text must have all parts that `&` joins.
    words: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row {
        cause: Cause::LoggedOut,
        codes: &[],
        statuses: &[],
        kinds: &[],
        words: &[
            "not logged in",
            "missing environment variable",
            "key&missing",
            "key&not set",
            "no api key",
            "key&not found",
            "credential&missing",
            "credential&not found",
            "no credentials",
        ],
    },
    Row {
        cause: Cause::Quota,
        codes: &[
            "insufficientquota",
            "billingerror",
            "usagelimitexceeded",
            "sessionbudgetexceeded",
            "usagelimitreached",
        ],
        statuses: &[402],
        kinds: &["quotaexceeded"],
        words: &[
            "insufficient quota",
            "exceeded your current quota",
            "daily quota",
            "usage limit",
            "credit balance",
            "out of credit",
            "payment required",
            "spending limit",
            "billing hard limit",
            "hit your limit",
            "session limit",
            "weekly limit",
        ],
    },
    Row {
        cause: Cause::Context,
        codes: &["contextwindowexceeded", "contextlengthexceeded", "contextoverflowerror", "prompttoolong"],
        statuses: &[413],
        kinds: &[],
        words: &[
            "context length",
            "context window",
            "maximum context",
            "too many tokens",
            "prompt is too long",
            "input is too long",
            "input token count",
            "maximum number of tokens",
            "prompt&too long",
            "context&too long",
            "conversation&too long",
        ],
    },
    Row {
        cause: Cause::Credentials,
        codes: &["unauthorized", "invalidapikey", "providerautherror"],
        statuses: &[401, 403],
        kinds: &["authenticationfailed", "authenticationerror", "permissiondenied", "permissionerror"],
        words: &[
            "api key",
            "api-key",
            "x-api-key",
            "unauthorized",
            "unauthenticated",
            "authenticat",
            "forbidden",
            "token&expired",
            "login&expired",
            "session&expired",
            "log in again",
            "login required",
            "please sign in",
        ],
    },
    Row {
        cause: Cause::Model,
        codes: &["modelnotfound"],
        statuses: &[404],
        kinds: &["providermodelnotfounderror"],
        words: &[
            "model&not found",
            "model&does not exist",
            "model&not supported",
            "entity&not found",
            "issue with the selected model",
        ],
    },
    Row {
        cause: Cause::Policy,
        codes: &["cyberpolicy", "misalignmentpolicyviolation", "inferencehookdenied", "contentfilter"],
        statuses: &[],
        kinds: &[],
        words: &["refus&usage policy"],
    },
    Row {
        cause: Cause::Rate,
        codes: &["ratelimitexceeded"],
        statuses: &[429],
        kinds: &["ratelimit", "ratelimiterror", "resourceexhausted"],
        words: &["rate limit", "ratelimit", "too many requests", "quota", "resource exhausted"],
    },
    Row {
        cause: Cause::Unavailable,
        codes: &[],
        statuses: &[408],
        kinds: &[
            "internalservererror",
            "servererror",
            "serveroverloaded",
            "overloaded",
            "overloadederror",
            "flexunavailable",
            "policycapacityunavailable",
            "httpconnectionfailed",
            "responsestreamconnectionfailed",
            "responsestreamdisconnected",
            "responsetoomanyfailedattempts",
        ],
        words: &["overloaded", "unavailable", "server error", "servererror", "high demand"],
    },
    Row { cause: Cause::Unavailable, codes: &[], statuses: &[], kinds: &[], words: CONNECTION },
];

pub(super) fn retried_after(status: Option<u16>) -> &'static str {
    match status {
        Some(429) => "the rate limit",
        Some(529) => "an overloaded provider",
        Some(_) => "a provider error",
        None => "a failed connection",
    }
}

/// The words of a missing or broken connection.
const CONNECTION: &[&str] = &[
    "unable to connect",
    "cannot connect",
    "timed out",
    "timeout",
    "econn",
    "enotfound",
    "eai again",
    "etimedout",
    "enetunreach",
    "getaddrinfo",
    "dns",
    "fetch failed",
    "socket hang up",
    "connection refused",
    "connection reset",
    "connection closed",
    "connection was closed",
    "connection error",
    "network error",
    "stream disconnected",
    "error sending request",
    "terminated",
];

pub(super) fn is_unreachable(text: &str) -> bool {
    has_words(&plain_text(text), CONNECTION)
}

fn plain_text(text: &str) -> String {
    text.to_lowercase().replace('_', " ")
}

fn has_words(text: &str, all: &[&str]) -> bool {
    all.iter().any(|words| words.split('&').all(|word| text.contains(word)))
}

/// Falls back to an error of the agent. `said`: the agent's own words.
pub(super) fn failure(account: ProviderAccount, evidence: &Evidence<'_>, said: Option<String>) -> Failure {
    let reported = || Failure::reported(account.agent, said.clone()).with_status(evidence.status());
    known(account, evidence).unwrap_or_else(reported).saying(said)
}

/// `None`: the evidence fits no code.
pub(super) fn known(account: ProviderAccount, evidence: &Evidence<'_>) -> Option<Failure> {
    let status = evidence.status();
    let cause = cause(status, evidence)?;
    // Gemini CLI gives a missing model the status of a failure of its own.
    let status = if cause == Cause::Model && status == Some(500) { Some(404) } else { status };
    let failure = match cause {
        Cause::LoggedOut => Failure::not_logged_in(account.agent, account.login),
        Cause::Credentials => Failure::credentials_refused(account.agent, account.login, status),
        Cause::Quota => Failure::quota_exceeded(),
        Cause::Context => Failure::context_exceeded(),
        Cause::Model => Failure::model_not_found(),
        Cause::Policy => Failure::new(Code::Refused, "The provider's policy refused the task: change the prompt."),
        Cause::Rate => Failure::rate_limited(),
        Cause::Unavailable => Failure::provider_unavailable(status),
    };
    // Claude Code appends the end of a limit to its words.
    let moment = evidence.text.rsplit_once('|').and_then(|(_, seconds)| seconds.trim().parse().ok());
    Some(failure.with_status(status).until(moment.and_then(UtcTime::of_seconds)))
}

/// The cause, by the evidence in this order: a code of the provider, its status, the agent's own kind, and words.
fn cause(status: Option<u16>, evidence: &Evidence<'_>) -> Option<Cause> {
    let plain = |name: &&str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let names: Vec<String> = evidence.names.iter().map(plain).collect();
    let text = plain_text(evidence.text);
    let named = |of: fn(&Row) -> &[&str]| by(|row| of(row).iter().any(|name| names.iter().any(|given| given == name)));
    let said = by(|row| has_words(&text, row.words));
    let by_status = match (status, said) {
        // The provider's limits for a minute and for a month have one status, and a missing key has that of a wrong one.
        (Some(429), Some(Cause::Quota)) if !text.contains("retry in") => Some(Cause::Quota),
        (Some(401 | 403), Some(Cause::LoggedOut)) => said,
        (Some(500), Some(Cause::Model)) => said,
        (Some(500..=599), _) => Some(Cause::Unavailable),
        (Some(status), _) => by(|row| row.statuses.contains(&status)),
        (None, _) => None,
    };
    // An agent's kind for a missing login is that for a refused one.
    let kind = || {
        named(|row| row.kinds).map(|kind| match (kind, said) {
            (Cause::Credentials, Some(Cause::LoggedOut)) => Cause::LoggedOut,
            _ => kind,
        })
    };
    named(|row| row.codes).or(by_status).or_else(|| status.is_none().then(kind).flatten()).or(said)
}

fn by(fits: impl Fn(&Row) -> bool) -> Option<Cause> {
    TABLE.iter().find(|row| fits(row)).map(|row| row.cause)
}

/// The HTTP status at the beginning of a text, as in `401 invalid key`, or after a word for it.
pub(super) fn status_in(text: &str) -> Option<u16> {
    const WORDS: [&str; 6] = ["http ", "status ", "status code ", ": ", "rejected (", "repeated "];
    let text = text.trim().to_ascii_lowercase();
    let number = |text: &str| {
        let is_whole = !text.get(3..)?.starts_with(|c: char| c.is_ascii_alphanumeric());
        text.get(..3)?.parse().ok().filter(|status| is_whole && (400..600).contains(status))
    };
    let after = |word: &str| text.split(word).skip(1).find_map(number);
    number(&text).or_else(|| WORDS.iter().find_map(|word| after(word)))
}

#[cfg(test)]
mod tests {
    use super::{Evidence, ProviderAccount, TABLE, known};
    use crate::protocol::failure::Code;

    const ACCOUNT: ProviderAccount = ProviderAccount { agent: "A", login: "log in" };

    fn code(status: Option<u16>, names: &[&str], text: &str) -> Option<Code> {
        known(ACCOUNT, &Evidence { status, names, text }).map(|failure| failure.code)
    }

    #[test]
    fn each_piece_of_evidence_alone_leads_to_the_cause_of_its_row() {
        for row in TABLE {
            let causes: Vec<Option<Code>> = [row.codes, row.kinds]
                .concat()
                .iter()
                .map(|name| code(None, &[name], ""))
                .chain(row.statuses.iter().map(|status| code(Some(*status), &[], "")))
                .chain(row.words.iter().map(|words| code(None, &[], &words.replace('&', " "))))
                .collect();
            assert!(causes.iter().all(|cause| cause.is_some() && *cause == causes[0]), "{:?}: {causes:?}", row.cause);
        }
    }

    #[test]
    fn a_code_decides_before_a_status_and_a_status_before_a_kind_and_words() {
        for (status, names, text, wanted) in [
            (Some(429), "insufficient_quota", "rate limit", Some(Code::QuotaExceeded)),
            (Some(400), "context_length_exceeded", "unauthorized", Some(Code::ContextExceeded)),
            (Some(401), "APIError", "fetch failed", Some(Code::AuthRequired)),
            (Some(503), "rate_limit", "unauthorized", Some(Code::ProviderUnavailable)),
            (Some(400), "serverOverloaded", "context window", Some(Code::ContextExceeded)),
            (None, "rate_limit", "unauthorized", Some(Code::RateLimited)),
            (Some(500), "", "Requested entity was not found.", Some(Code::ModelNotFound)),
            (Some(429), "", "You exceeded your current quota. Please retry in 3 s.", Some(Code::RateLimited)),
            (Some(429), "", "You have exhausted your daily quota on this model.", Some(Code::QuotaExceeded)),
            (None, "", "HTTP 503: no", Some(Code::ProviderUnavailable)),
            (Some(418), "", "no", None),
        ] {
            assert_eq!(code(status, &[names], text), wanted, "{status:?} {names} {text}");
        }
    }
}

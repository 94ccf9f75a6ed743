//! The agents that take over where another one fails.

use super::declare::objects;
use super::form::{Form, HasForm, object_forms};
use super::read::{Read, agent_and_model, list, optional};
use super::words::TakesOverAfter;
use crate::json::Fields;
use serde::Serialize;
use serde_json::value::RawValue;

/// The maximum number of agents.
pub(super) const AGENTS: usize = 16;

objects! {
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct FallbackAgent {
        /// The name of a configured agent.
        pub agent: String as name,
        /// The model, by the agent's name for it. Null: the agent's own default.
        pub model: Option<String> as list,
        /// The failures after which it takes over. Null: those of the account and of the agent's start, and limits of the
        /// provider for which the run does not wait.
        pub on: Option<Vec<TakesOverAfter>>,
    }
}

object_forms! {
    OBJECT = "FallbackRequest" {
        /// The name of a configured agent.
        agent: Form::FILLED, false;
        /// The model. By default the agent's own.
        model: Form::FILLED, true;
        /// The failures after which it takes over.
        on: Form::List(&TakesOverAfter::FORM), true;
    }
}

impl FallbackAgent {
    pub(super) const REQUEST: Form = Form::AtMost(AGENTS, &Form::Either(&[Form::FILLED, Form::Object(&OBJECT)]));

    /// `waits`: whether the run waits for the end of such a limit.
    pub(crate) fn takes_over_after(&self, code: &str, waits: bool) -> bool {
        use TakesOverAfter::{
            AgentNotFound, AgentStartFailed, AuthRequired, ProviderUnavailable, QuotaExceeded, RateLimited,
        };
        let Some(code) = TakesOverAfter::from_word(code) else { return false };
        match &self.on {
            Some(codes) => codes.contains(&code),
            None => match code {
                QuotaExceeded | AuthRequired | AgentNotFound | AgentStartFailed => true,
                RateLimited | ProviderUnavailable => !waits,
                TakesOverAfter::AgentError
                | TakesOverAfter::AgentExited
                | TakesOverAfter::AgentProtocolError
                | TakesOverAfter::ModelNotFound
                | TakesOverAfter::ContextExceeded
                | TakesOverAfter::Refused => false,
            },
        }
    }
}

const EXPECTED: &str = "a list of at most 16 agents, each as \"AGENT\" or \"AGENT:MODEL\", or as an object with `agent` and optionally \
                        `model` and a list of failure codes as `on`: agent_not_found, agent_start_failed, \
                        auth_required, quota_exceeded, rate_limited, provider_unavailable, model_not_found, \
                        context_exceeded, refused, agent_error, agent_exited, agent_protocol_error";

pub(super) fn fallback(raw: &RawValue) -> Read<Vec<FallbackAgent>> {
    let all = list(raw).filter(|all| all.len() <= AGENTS).ok_or(Some(EXPECTED))?;
    all.into_iter().map(entry).collect()
}

fn entry(raw: &RawValue) -> Read<FallbackAgent> {
    let (agent, model) = agent_and_model(raw, &OBJECT, EXPECTED)?;
    let on = Fields::parse(raw.get()).map_or(Ok(None), |fields| optional(&fields, "on", codes, EXPECTED))?;
    Ok(FallbackAgent { agent, model, on })
}

fn codes(raw: &RawValue) -> Read<Vec<TakesOverAfter>> {
    list(raw).ok_or(Some(EXPECTED))?.into_iter().map(TakesOverAfter::read).collect()
}

#[cfg(test)]
mod tests {
    use super::{FallbackAgent, TakesOverAfter, fallback};
    use serde_json::value::RawValue;

    fn read(json: &str) -> Result<Vec<FallbackAgent>, Option<&'static str>> {
        fallback(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn an_entry_is_a_name_with_a_model_or_an_object() {
        let all = read(r#"["codex","opencode:a/b:c",{"agent":"demo:x","on":["refused"],"model":null}]"#).unwrap();
        let seen: Vec<_> = all.iter().map(|it| (it.agent.as_str(), it.model.as_deref(), it.on.as_deref())).collect();
        assert_eq!(seen[0], ("codex", None, None));
        assert_eq!(seen[1], ("opencode", Some("a/b:c"), None));
        assert_eq!(seen[2], ("demo:x", None, Some(&[TakesOverAfter::Refused][..])));
    }

    #[test]
    fn an_entry_that_would_not_take_over_is_refused() {
        for json in [
            r#""codex""#,
            r#"[""]"#,
            r#"[":m"]"#,
            r#"["codex:"]"#,
            "[{}]",
            r#"[{"agent":""}]"#,
            r#"[{"agent":"a","model":""}]"#,
            r#"[{"agent":"a","on":["timeout"]}]"#,
            r#"[{"agent":"a","on":"refused"}]"#,
        ] {
            assert!(read(json).is_err_and(|why| why.is_some_and(|why| why.contains("`agent`"))), "{json}");
        }
        assert_eq!(read(r#"[{"agent":"a","agent":"b"}]"#), Err(None));
        assert!(read(&format!("[{}]", ["\"a\""; 17].join(","))).is_err());
    }

    #[test]
    fn by_default_it_takes_over_where_the_agent_cannot_work_and_the_run_does_not_wait() {
        let agent = &read(r#"["a"]"#).unwrap()[0];
        for (code, waits, takes_over) in [
            ("quota_exceeded", true, true),
            ("auth_required", true, true),
            ("rate_limited", false, true),
            ("rate_limited", true, false),
            ("provider_unavailable", true, false),
            ("agent_error", false, false),
            ("timeout", false, false),
        ] {
            assert_eq!(agent.takes_over_after(code, waits), takes_over, "{code} {waits}");
        }
    }
}

//! The calls of the model that an agent makes within a turn, its retries, and the provider's errors. ACP reports usage
//! only at a turn's end, no retry, and of an error only the text. OpenCode reports them through a plugin of ours, as
//! notifications.
//!
//! Measured on OpenCode 1.18.33: the notification of a call comes when its tools are done and before the next call, that of
//! an error before the turn's end. With a plugin, OpenCode waits at its start until it has installed a library with npm into
//! its folders of configuration that lack it, or has given that up. Therefore a run without a budget has the plugin only
//! where they have the library, which OpenCode installs by itself at its first start with a network.

use super::{Acp, own_rules};
use crate::agent::limit::Limit;
use crate::agent::rpc::Error;
use crate::agent::{AgentEvent, DriverOutput, FoundBy, LaunchFile};
use crate::json::Object;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::Usage;
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::utc::UtcTime;
use crate::protocol::words::OnUnsupported;

const PLUGIN: &str = include_str!("opencode/spektacular.js");
/// The configuration with the plugin. A folder of configuration, by OPENCODE_CONFIG_DIR, would hide the user's memory file.
const CONFIGURATION: &str = r#"{"plugin":["./spektacular.js"]}"#;
/// The time limit for the first line of an agent that may install something before it.
const START_TIMEOUT: Seconds = Seconds(300.0);
/// OpenCode's name for a prompt that is too long, after which it shortens the conversation and tries again without an end.
const OVERFLOW: &str = "ContextOverflowError";
/// The number of such errors without a tool call in between that end the turn.
const OVERFLOWS: u32 = 3;
const UNPRICED: &str = "_spektacular/unpriced";

const BUDGETS: [Limit; 3] = [Limit::MaxTurns, Limit::MaxTokens, Limit::MaxCostUsd];

#[derive(Debug, Default)]
pub(super) struct Steps {
    budgets: Vec<Limit>,
    has_library: bool,
    is_wish: bool,
    pub(super) reported: bool,
    /// The last report, because a repeated one counts once.
    last: Option<String>,
    error: Error,
    /// The errors since the last tool call of this turn that say that the prompt is too long.
    overflows: u32,
}

impl Steps {
    pub(super) fn new(settings: &Settings) -> Steps {
        Steps {
            budgets: BUDGETS.into_iter().filter(|limit| limit.is_set(settings)).collect(),
            has_library: own_rules::is_set(&settings.own_rules, own_rules::LIBRARY),
            is_wish: settings.on_unsupported == OnUnsupported::Warn,
            ..Steps::default()
        }
    }

    pub(super) fn files(&self) -> Vec<LaunchFile> {
        if self.budgets.is_empty() && !self.has_library {
            return Vec::new();
        }
        let is_priced = self.budgets.contains(&Limit::MaxCostUsd) && !self.is_wish;
        let plugin = PLUGIN.replace("PRICED = false", &format!("PRICED = {is_priced}"));
        let found = FoundBy::FreeVariable("OPENCODE_CONFIG");
        vec![
            LaunchFile { found, name: "opencode.json", text: CONFIGURATION.into() },
            LaunchFile { found: FoundBy::Sibling, name: "spektacular.js", text: plugin },
        ]
    }

    /// `None`: the plugin does not delay the agent's first line.
    pub(super) fn start_timeout(&self) -> Option<Seconds> {
        (!self.budgets.is_empty() && !self.has_library).then_some(START_TIMEOUT)
    }

    pub(super) fn begin_turn(&mut self) {
        (self.error, self.overflows) = (Error::default(), 0);
    }

    /// ACP's error has only the text.
    pub(super) fn explain(&self, error: &mut Error) {
        let told = &self.error;
        if !told.message.is_empty() && error.message.contains(&told.message) {
            error.status = error.status.or(told.status);
            error.reason.clone_from(&told.reason);
            error.name.clone_from(&told.name);
            error.retry_at = told.retry_at;
        }
    }

    /// The failure of a turn that was stopped because its prompt stays too long.
    pub(super) fn overflowed(&self) -> Option<Failure> {
        (self.overflows >= OVERFLOWS).then(|| Failure::context_exceeded().saying(self.error.said()))
    }

    /// Must run before the first prompt. Error: a budget would not hold.
    pub(super) fn check(&self, agent: &str, out: &mut DriverOutput) -> Result<(), Failure> {
        for limit in self.budgets.iter().filter(|_| !self.reported) {
            let why = "it does not load the plugin that counts, as with `--pure` or OPENCODE_CONFIG";
            limit.give_up(agent, self.is_wish, why, out)?;
        }
        Ok(())
    }
}

/// The failure of a prompt that the plugin stopped, because the cost would not be known.
pub(super) fn unpriced(agent: &str, error: &Error) -> Option<Failure> {
    let why = "its configuration has no price for this model";
    error.message.contains(UNPRICED).then(|| Limit::MaxCostUsd.not_kept(agent, why))
}

impl Acp {
    pub(super) fn step(&mut self, method: &str, params: Option<&Object<'_>>, out: &mut DriverOutput) {
        match method {
            "_spektacular/ready" => self.steps.reported = true,
            "_spektacular/retry" => {
                let attempt = params.and_then(|params| params.count("attempt")).unwrap_or(1);
                let retry_at = params.and_then(|params| time(params, "next"));
                out.events.push(AgentEvent::Retrying { text: format!("Retrying: attempt {attempt}").into(), retry_at });
            }
            "_spektacular/error" => {
                let Some(params) = params else { return out.unparsed() };
                let field = |name: &str| params.string(name).unwrap_or_default();
                if field("session") == self.session {
                    let error = Error {
                        message: field("text"),
                        name: field("name"),
                        reason: field("reason"),
                        status: params.count("status"),
                        retry_at: time(params, "until"),
                        ..Error::default()
                    };
                    self.provider_failed(error, out);
                }
            }
            "_spektacular/step" => {
                let Some(params) = params else { return out.unparsed() };
                if params.bool("calls") == Some(true) {
                    self.steps.overflows = 0;
                }
                let id = params.string("id");
                // A fork copies the calls of its session before the first prompt.
                if !self.is_prompting() || id.is_some() && id == self.steps.last {
                    return;
                }
                self.steps.last = id;
                self.used = self.used.plus(&used(params));
                out.events.extend([AgentEvent::ModelCalled, AgentEvent::Usage(self.used)]);
            }
            _ => {}
        }
    }

    fn provider_failed(&mut self, error: Error, out: &mut DriverOutput) {
        self.steps.overflows += u32::from(error.name == OVERFLOW);
        self.steps.error = error;
        if self.steps.overflows == OVERFLOWS {
            self.cancel_turn(out);
        }
    }
}

/// The time in a field with milliseconds since 1970.
fn time(params: &Object<'_>, name: &str) -> Option<UtcTime> {
    UtcTime::of_seconds(params.number(name)? / 1000.0)
}

fn used(params: &Object<'_>) -> Usage {
    let tokens = params.object("tokens");
    let count = |name: &str| tokens.as_ref().and_then(|tokens| tokens.count(name)).unwrap_or(0);
    let cache = tokens.as_ref().and_then(|tokens| tokens.object("cache"));
    let cached = |name: &str| cache.as_ref().and_then(|cache| cache.count(name)).unwrap_or(0);
    let output = count("output").saturating_add(count("reasoning"));
    Usage::of_call(count("input"), (cached("read"), cached("write")), output, params.number("cost"))
}

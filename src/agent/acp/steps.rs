//! The calls of the model that an agent makes within a turn. ACP reports usage only at a turn's end, so that no budget
//! could hold. OpenCode reports each call through a plugin of ours, as a notification.
//!
//! Measured on OpenCode 1.18.33: the notification of a call comes when its tools are done and before the next call. With
//! a plugin, OpenCode waits at its start until it has installed a library with npm into its folders of configuration that
//! lack it, or has given that up, which takes minutes without a network. Therefore only a run with a budget has the plugin.

use super::Acp;
use crate::agent::limit::Limit;
use crate::agent::rpc::Error;
use crate::agent::{AgentEvent, DriverOutput, FoundBy, LaunchFile};
use crate::json::Object;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::Usage;
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::OnUnsupported;

const PLUGIN: &str = include_str!("opencode/spektacular.js");
/// The variable for a further folder of configuration.
const FOLDER: FoundBy = FoundBy::Folder("OPENCODE_CONFIG_DIR");
/// The time limit for the first line of an agent that may install something before it.
const START_TIMEOUT: Seconds = Seconds(300.0);
/// The plugin's error for a model without a price.
const UNPRICED: &str = "_spektacular/unpriced";

/// The budgets that the reports serve.
const BUDGETS: [Limit; 3] = [Limit::MaxTurns, Limit::MaxTokens, Limit::MaxCostUsd];

/// The budgets that need the reports.
#[derive(Debug, Default)]
pub(super) struct Steps {
    budgets: Vec<Limit>,
    /// Whether the budgets are given up if there are no reports.
    is_wish: bool,
    /// Whether the agent reports its calls.
    pub(super) reported: bool,
    /// The last report, because a repeated one counts once.
    last: Option<String>,
}

impl Steps {
    pub(super) fn new(settings: &Settings) -> Steps {
        Steps {
            budgets: BUDGETS.into_iter().filter(|limit| limit.is_set(settings)).collect(),
            is_wish: settings.on_unsupported == OnUnsupported::Warn,
            ..Steps::default()
        }
    }

    /// The files of the plugin. The last two keep the agent from installing a library for it.
    pub(super) fn files(&self) -> Vec<LaunchFile> {
        if self.budgets.is_empty() {
            return Vec::new();
        }
        let is_priced = self.budgets.contains(&Limit::MaxCostUsd) && !self.is_wish;
        let plugin = PLUGIN.replace("PRICED = false", &format!("PRICED = {is_priced}"));
        let installed = r#"{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1"}}}}"#;
        let file = |name, text: &str| LaunchFile { found: FOLDER, name, text: text.into() };
        vec![
            file("plugin/spektacular.js", &plugin),
            file("package-lock.json", installed),
            file("node_modules/.empty", ""),
        ]
    }

    /// The time limit for the agent's first line, if the plugin delays it.
    pub(super) fn start_timeout(&self) -> Option<Seconds> {
        (!self.budgets.is_empty()).then_some(START_TIMEOUT)
    }

    /// Checks, before the first prompt, that the budgets will hold. Error: one does not.
    pub(super) fn check(&self, agent: &str, out: &mut DriverOutput) -> Result<(), Failure> {
        for limit in self.budgets.iter().filter(|_| !self.reported) {
            let why = "it does not load the plugin that counts, as with `--pure` or OPENCODE_CONFIG_DIR";
            match self.is_wish {
                true => out.warn(sentence!("{field} has no effect: {why}", field = limit.field())),
                false => return Err(limit.not_kept(agent, why)),
            }
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
    /// Handles a notification of the plugin.
    pub(super) fn step(&mut self, method: &str, params: Option<&Object<'_>>, out: &mut DriverOutput) {
        match method {
            "_spektacular/ready" => self.steps.reported = true,
            "_spektacular/retry" => {
                let attempt = params.and_then(|params| params.count("attempt")).unwrap_or(1);
                // In milliseconds since 1970.
                let next = params.and_then(|params| params.number("next"));
                let retry_at = next.and_then(|next| UtcTime::of_seconds(next / 1000.0));
                out.events.push(AgentEvent::Retrying { text: format!("Retrying: attempt {attempt}").into(), retry_at });
            }
            "_spektacular/step" => {
                let Some(params) = params else { return out.unparsed() };
                let id = params.string("id");
                if id.is_some() && id == self.steps.last {
                    return;
                }
                self.steps.last = id;
                self.used = self.used.plus(&used(params));
                out.events.extend([AgentEvent::ModelCalled, AgentEvent::Usage(self.used)]);
            }
            _ => {}
        }
    }
}

/// The usage of one call of the model.
fn used(params: &Object<'_>) -> Usage {
    let tokens = params.object("tokens");
    let count = |name: &str| tokens.as_ref().and_then(|tokens| tokens.count(name)).unwrap_or(0);
    let cache = tokens.as_ref().and_then(|tokens| tokens.object("cache"));
    let cached = |name: &str| cache.as_ref().and_then(|cache| cache.count(name)).unwrap_or(0);
    let output = count("output").saturating_add(count("reasoning"));
    Usage::of_call(count("input"), (cached("read"), cached("write")), output, params.number("cost"))
}

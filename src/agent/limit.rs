//! The limits of run.start, and the keeper of each with an agent. A limit is kept or refused, never ignored, unless
//! the caller asked for that with `on_unsupported`.

use super::preference::no_effect;
use super::{Driver, DriverOutput, Launch, result};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::{self, Field};
use crate::protocol::request::{McpAccess, McpServer, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
pub use crate::protocol::words::Limit;
use crate::protocol::words::{LimitField, McpTransport, OnUnsupported};

impl Limit {
    pub fn is_set(self, settings: &Settings) -> bool {
        match self {
            Limit::MaxTurns => settings.max_turns.is_some(),
            Limit::MaxToolCalls => settings.max_tool_calls.is_some(),
            Limit::MaxTokens => settings.max_tokens.is_some(),
            Limit::MaxCostUsd => settings.max_cost_usd.is_some(),
            Limit::AllowedTools => settings.allowed_tools.is_some(),
            Limit::DisallowedTools => settings.disallowed_tools.is_some(),
            Limit::McpServers => !settings.mcp_servers.is_empty(),
            Limit::Permissions => settings.permissions.denies(),
        }
    }

    /// The nearest is first.
    fn similar(self) -> &'static [Limit] {
        match self {
            Limit::MaxTurns => &[Limit::MaxToolCalls, Limit::MaxTokens, Limit::MaxCostUsd],
            Limit::MaxToolCalls => &[Limit::MaxTurns, Limit::MaxTokens, Limit::MaxCostUsd],
            Limit::MaxTokens => &[Limit::MaxCostUsd, Limit::MaxTurns, Limit::MaxToolCalls],
            Limit::MaxCostUsd => &[Limit::MaxTokens, Limit::MaxTurns, Limit::MaxToolCalls],
            Limit::AllowedTools => &[Limit::DisallowedTools, Limit::Permissions],
            Limit::DisallowedTools => &[Limit::AllowedTools, Limit::Permissions],
            Limit::McpServers | Limit::Permissions => &[],
        }
    }

    fn field(self) -> &'static Field {
        fields::known(self.word())
    }

    /// The advice when neither this limit nor a similar one can be kept.
    fn otherwise(self) -> Sentence {
        match self {
            Limit::MaxTurns | Limit::MaxToolCalls | Limit::MaxTokens | Limit::MaxCostUsd => {
                sentence!("{timeout_s}", timeout_s)
            }
            Limit::AllowedTools | Limit::DisallowedTools => "another agent".into(),
            Limit::McpServers => "the agent's own configuration".into(),
            Limit::Permissions => sentence!("{sandbox} with \"read-only\" or `\"allow\"`", sandbox),
        }
    }

    /// The failure of a run whose agent turned out not to keep this limit.
    pub(super) fn not_kept(self, agent: &str, why: &str) -> Failure {
        Failure::invalid_start(sentence!(
            "{field} cannot be kept on the agent {agent}: {why}. Use {otherwise}, or set {on_unsupported} to \"warn\" to \
             run without it.",
            field = self.field(),
            otherwise = self.otherwise(),
            on_unsupported
        ))
    }

    /// Gives up this limit, with a warning, because the agent turned out not to keep it. Error: it is not a wish.
    pub(super) fn give_up(self, agent: &str, is_wish: bool, why: &str, out: &mut DriverOutput) -> Result<(), Failure> {
        if !is_wish {
            return Err(self.not_kept(agent, why));
        }
        out.warn(sentence!("{field} has no effect: {why}", field = self.field()));
        Ok(())
    }

    pub(crate) fn reached(self) -> Failure {
        let message = match self {
            Limit::MaxTurns | Limit::MaxToolCalls | Limit::MaxTokens | Limit::MaxCostUsd => {
                sentence!("The run reached {field:#}: raise it or split the task.", field = self.field())
            }
            Limit::AllowedTools | Limit::DisallowedTools | Limit::McpServers => sentence!(
                "The agent used a tool that {field:#} excludes: change {field:#}, or the prompt.",
                field = self.field()
            ),
            Limit::Permissions => sentence!(
                "The agent did something that {permissions} denies, without asking: set {sandbox} to \"read-only\", use another agent, or \
                 change {permissions}.",
                permissions,
                sandbox
            ),
        };
        Failure { limit: LimitField::from_word(self.word()), ..Failure::new(Code::LimitReached, message) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The agent, by means of its own.
    Agent,
    /// The run, by what the agent reports.
    Run,
    Nobody,
}

#[derive(Clone, Debug)]
pub struct Keepers(Vec<(Limit, Keeper)>);

impl Keepers {
    pub fn by(keeper: impl Fn(Limit) -> Keeper) -> Keepers {
        Keepers(Limit::ALL.iter().map(|limit| (*limit, keeper(*limit))).collect())
    }

    pub fn of(&self, limit: Limit) -> Keeper {
        self.0.iter().find(|(known, _)| *known == limit).map_or(Keeper::Nobody, |(_, keeper)| *keeper)
    }
}

/// Prepares the agent's start, once all its limits are known to hold.
pub(crate) fn launch(settings: &Settings, driver: &mut dyn Driver, out: &mut DriverOutput) -> Result<Launch, Failure> {
    let features = driver.features(settings);
    if settings.conversation && features.capabilities.conversation == Some(false) {
        let agent = &settings.agent;
        return Err(Failure::invalid_start(sentence!(
            "{conversation} must be false: the agent {agent} can neither stay nor resume its session.",
            conversation
        )));
    }
    check(settings, &features.keepers, out)?;
    let mut settings = settings.clone();
    let servers = std::mem::take(&mut settings.mcp_servers);
    let reaches = |transport| features.transports.contains(&transport);
    settings.mcp_servers =
        reachable(servers, &settings.agent, settings.on_unsupported == OnUnsupported::Warn, reaches, out)?;
    if let Some(schema) = &settings.output_schema {
        settings.prompt = result::prompt(&settings, schema, driver.features(&settings).result_way, out);
    }
    driver.launch(&settings, out)
}

/// Error: the agent cannot reach a server. `drops`: leaves that server out instead, and adds a warning to `out`.
pub(crate) fn reachable(
    servers: Vec<McpServer>,
    agent: &str,
    drops: bool,
    reaches: impl Fn(McpTransport) -> bool,
    out: &mut DriverOutput,
) -> Result<Vec<McpServer>, Failure> {
    let lacks = |server: &McpServer| match &server.access {
        McpAccess::Remote { transport, .. } => Some(*transport).filter(|transport| !reaches(*transport)),
        McpAccess::Stdio { .. } => None,
    };
    let mut reached = Vec::new();
    for server in servers {
        match lacks(&server).map(McpTransport::word) {
            None => reached.push(server),
            Some(transport) if drops => out.warn(sentence!(
                "A server in {mcp_servers} is left out: this agent does not support the transport {transport}",
                mcp_servers
            )),
            Some(transport) => {
                return Err(Failure::invalid_start(sentence!(
                    "{mcp_servers} cannot be kept on the agent {agent}, which does not support the transport {transport}: \
                     use another `transport` or a `command`, or set {on_unsupported} to \"warn\" to run without such \
                     servers.",
                    mcp_servers,
                    on_unsupported
                )));
            }
        }
    }
    Ok(reached)
}

/// Error: the first limit that is not kept. With `on_unsupported` `"warn"`, adds a warning to `out` instead.
fn check(settings: &Settings, keepers: &Keepers, out: &mut DriverOutput) -> Result<(), Failure> {
    let by_sandbox = |limit| limit == Limit::Permissions && settings.sandbox.keeps(&settings.permissions);
    let is_kept = |limit: Limit| keepers.of(limit) != Keeper::Nobody || by_sandbox(limit);
    for limit in Limit::ALL.iter().filter(|limit| limit.is_set(settings) && !is_kept(**limit)) {
        // A workflow allows what its own steps need, whatever the policy says.
        let is_warning = settings.is_part && *limit == Limit::Permissions;
        match if is_warning { OnUnsupported::Warn } else { settings.on_unsupported } {
            OnUnsupported::Warn => out.warn(no_effect(limit.field())),
            OnUnsupported::Fail => {
                let similar = limit.similar().iter().find(|limit| is_kept(**limit));
                let field_of = |limit: &Limit| sentence!("{field}", field = limit.field());
                let (agent, instead) = (&settings.agent, similar.map_or_else(|| limit.otherwise(), field_of));
                return Err(Failure::invalid_start(sentence!(
                    "{field} cannot be enforced with the agent {agent}: use {instead}, or set {on_unsupported} to \"warn\" to \
                     run without it.",
                    field = limit.field(),
                    instead = &instead,
                    on_unsupported
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Limit;
    use crate::protocol::words::LimitField;

    #[test]
    fn the_word_of_a_limit_is_its_field_also_in_a_failure() {
        for limit in Limit::ALL {
            assert_eq!(limit.field().name, limit.word());
            assert_eq!(limit.reached().limit.map(LimitField::word), Some(limit.word()));
        }
    }
}

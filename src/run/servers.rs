//! The MCP servers of a run: what the agent and the servers' launchers report about them.
//!
//! Until the session is open, an agent may start a server again, so the reports of launchers only count from then on. What
//! the agent itself says counts at once.

use super::effects::Effects;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{McpServerState, Text};
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::words::{McpState, Warning};
use std::time::Duration;

const NAME_CHARS: usize = 64;
const WORDS_CHARS: usize = 200;

pub(super) struct Servers {
    pub(super) list: Vec<RunServer>,
    /// Whether the frame about the session was emitted.
    pub(super) session_open: bool,
    /// Whether they must start before the agent's first prompt, or with it.
    pub(super) awaited: bool,
    pub(super) due: Option<Duration>,
}

pub(super) struct RunServer {
    name: String,
    pub(super) state: McpState,
    /// The last report of its launcher, unless it has none.
    pub(super) launched: Option<McpState>,
    pub(super) words: Option<Text>,
    pub(super) part: ServerPart,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerPart {
    /// The run needs it to start.
    Required,
    /// The run goes on without it. Whether the warning was given.
    Optional { warned: bool },
    /// The agent has it from elsewhere.
    AgentsOwn,
}

impl Servers {
    pub(super) fn new(settings: &Settings) -> Servers {
        let server = |server: &McpServer| RunServer {
            name: server.name.clone(),
            state: McpState::Pending,
            launched: server.launcher.is_some().then_some(McpState::Pending),
            words: None,
            part: if server.required { ServerPart::Required } else { ServerPart::Optional { warned: false } },
        };
        let list = settings.mcp_servers.iter().map(server).collect();
        Servers { list, session_open: false, awaited: false, due: None }
    }

    pub(super) fn states(&self) -> Vec<McpServerState> {
        let state = |server: &RunServer| McpServerState { name: server.name.as_str().into(), state: server.state };
        self.list.iter().map(state).collect()
    }

    pub(super) fn begin(&mut self, now: Duration, settings: &Settings) {
        let is_awaited = self.list.iter().any(|server| server.launched.is_some());
        self.due = settings.start_timeout_s.filter(|_| is_awaited).map(|limit| now + limit.duration());
    }

    pub(super) fn missing(&self) -> Option<Failure> {
        self.list.iter().find(|server| server.is_awaited()).map(RunServer::failure)
    }

    /// The failure of the first server without which a turn has ended.
    pub(super) fn missed(&self) -> Option<Failure> {
        self.missing().filter(|_| self.awaited)
    }

    /// Returns whether the state changed.
    pub(super) fn told(&mut self, name: String, state: McpState, said: Option<Text>) -> bool {
        let at = self.list.iter().position(|server| server.name == name).unwrap_or_else(|| {
            let (launched, words, part) = (None, None, ServerPart::AgentsOwn);
            self.list.push(RunServer { name, state: McpState::Pending, launched, words, part });
            self.list.len() - 1
        });
        let server = &mut self.list[at];
        server.words = server.words.take().or(said);
        // Some agents report the beginning of a start late.
        state != McpState::Pending && std::mem::replace(&mut server.state, state) != state
    }
}

impl RunServer {
    fn label(&self) -> String {
        short(&self.name, NAME_CHARS)
    }

    /// Nobody reports the start of a server without a launcher, unless the agent does.
    pub(super) fn is_awaited(&self) -> bool {
        let is_silent = self.launched.is_some_and(|launched| launched != McpState::Ready);
        self.part == ServerPart::Required && self.state == McpState::Pending && is_silent
    }

    pub(super) fn failure(&self) -> Failure {
        let label = self.label();
        let words = self.words.as_ref().map(Text::unredacted).unwrap_or_default().trim();
        let message = if words.is_empty() {
            sentence!(
                "The MCP server {label} did not start within {start_timeout_s:#}: check it in {mcp_servers}, or set its \
                 `required` to false.",
                start_timeout_s,
                mcp_servers
            )
        } else {
            sentence!(
                "The MCP server {label} did not start: see {agent_message}, and correct it in {mcp_servers} or set its \
                 `required` to false.",
                agent_message,
                mcp_servers
            )
        };
        Failure::new(Code::AgentStartFailed, message).saying((!words.is_empty()).then(|| words.to_owned()))
    }

    /// Warns that it is not available.
    pub(super) fn warn(&mut self, effects: &mut Effects) {
        self.part = ServerPart::Optional { warned: true };
        let words = self.words.as_ref().map(Text::unredacted).unwrap_or_default();
        let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let label = self.label();
        let text = match last {
            "" => format!("The MCP server {label} is not available"),
            last => format!("The MCP server {label} is not available: {}", short(last, WORDS_CHARS)),
        };
        effects.warn(Warning::McpUnavailable, text, None);
    }
}

/// The beginning of a text, in one line.
fn short(text: &str, chars: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars).collect()
}

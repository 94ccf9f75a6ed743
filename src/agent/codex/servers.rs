//! The reports of Codex about its MCP servers. Measured on 0.169.0: it starts them with the thread and reports each
//! state; with `required`, the thread opens only once the server runs, and the refusal of the thread names the server.

use crate::agent::{AgentEvent, error_text};
use crate::json::Object;
use crate::protocol::request::McpServer;
use crate::protocol::words::McpState;

/// The beginning of a refusal of the thread. The failed servers follow, each with a colon and the reason.
const REQUIRED: &str = "required MCP servers failed to initialize: ";

pub(super) fn state(params: &Object<'_>) -> Option<AgentEvent> {
    let state = match &*params.str("status")? {
        "starting" => McpState::Pending,
        "ready" => McpState::Ready,
        _ => McpState::Failed,
    };
    let said = params.str("error").and_then(|said| error_text::error(&said)).map(Into::into);
    Some(AgentEvent::McpServer { name: params.string("name")?, state, said })
}

pub(super) fn failed(refusal: &str, servers: &[McpServer]) -> Vec<AgentEvent> {
    let Some((_, reasons)) = refusal.split_once(REQUIRED) else { return Vec::new() };
    let named = |server: &&McpServer| {
        let label = format!("{}: ", server.name);
        reasons.match_indices(&label).any(|(at, _)| reasons[..at].chars().next_back().is_none_or(|c| c == ' '))
    };
    let event = |server: &McpServer| AgentEvent::McpServer {
        name: server.name.clone(),
        state: McpState::Failed,
        said: error_text::error(reasons).map(Into::into),
    };
    servers.iter().filter(|server| server.required).filter(named).map(event).collect()
}

//! The tool `ask_user` for Claude: our MCP server speaks over the control protocol. It needs no process, and Claude
//! sets no time limit on its calls.

use super::Claude;
use super::control::{refuse_request, respond};
use crate::agent::ask_user;
use crate::agent::mcp::{self, Out};
use crate::agent::{AgentEvent, AskKey, DriverOutput, Reply};
use crate::json::Object;
use crate::protocol::request::Settings;
use crate::protocol::words::McpState;
use serde_json::{Value, json};

/// Empty: the model is not offered the tool.
#[derive(Debug, Default)]
pub(super) struct Names {
    server: String,
    tool: String,
}

impl Names {
    pub(super) fn new(settings: &Settings) -> Names {
        let server = ask_user::server_name(settings);
        Names { tool: format!("mcp__{server}__{}", ask_user::TOOL), server }
    }

    pub(super) fn has_tool(&self) -> bool {
        !self.tool.is_empty()
    }

    pub(super) fn config(&self) -> (String, Value) {
        // Without `alwaysLoad`, the model has to search for the tool first.
        (self.server.clone(), json!({"type": "sdk", "name": self.server, "alwaysLoad": true}))
    }

    /// `None`: the server is ours, or the user turned it off.
    pub(super) fn server_state(&self, server: &Object<'_>) -> Option<AgentEvent> {
        let name = server.string("name").filter(|name| *name != self.server)?;
        let state = match &*server.str("status")? {
            "connected" => McpState::Ready,
            "pending" => McpState::Pending,
            "disabled" => return None,
            _ => McpState::Failed,
        };
        Some(AgentEvent::McpServer { name, state, said: None })
    }

    pub(super) fn is_tool(&self, name: &str) -> bool {
        !name.is_empty() && self.tool == name
    }

    /// Older versions of Claude Code do not name the server.
    pub(super) fn asks_for_own(&self, request: &Object<'_>) -> bool {
        let from_us = || request.object("mcp_server").is_none_or(|server| server.is("source", "sdk"));
        request.str("tool_name").is_some_and(|name| self.is_tool(&name)) && from_us()
    }
}

impl Claude {
    pub(super) fn mcp_message(&mut self, id: String, request: &Object<'_>, out: &mut DriverOutput) {
        let is_ours = self.names.has_tool() && request.is("server_name", &self.names.server);
        let message = request.raw("message").filter(|_| is_ours);
        let Some(message) = message else { return out.send.push(refuse_request(&id)) };
        match self.server.message(message.get()) {
            Out::Send(reply) => out.send.push(response(&id, &reply)),
            Out::Nothing => out.send.push(response(&id, &mcp::nothing())),
            // Claude Code has a tool of its own for the result.
            Out::Submitted(reply, _) => out.send.push(response(&id, &reply)),
            Out::Ask(call, asks) => {
                let key = AskKey(id);
                self.asked.insert(key.clone(), call);
                out.events.push(AgentEvent::Ask { key, asks: asks.into_iter().collect(), call: None });
            }
            Out::Withdrawn(call) => {
                out.send.push(response(&id, &mcp::nothing()));
                if let Some(key) = self.asked.iter().find(|(_, asked)| **asked == call).map(|(key, _)| key.clone()) {
                    self.asked.remove(&key);
                    out.events.push(AgentEvent::AskWithdrawn { key });
                }
            }
        }
    }

    /// Returns whether `key` names a waiting call.
    pub(super) fn answer_call(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) -> bool {
        let Some(call) = self.asked.remove(key) else { return false };
        out.send.extend(self.server.answer(&call, replies).map(|reply| response(&key.0, &reply)));
        true
    }

    pub(super) fn withdraw_calls(&mut self, out: &mut DriverOutput) {
        for (key, call) in std::mem::take(&mut self.asked) {
            out.send.extend(self.server.withdraw(&call).map(|reply| response(&key.0, &reply)));
        }
    }
}

fn response(id: &str, reply: &str) -> String {
    respond(id, &format!("{{\"mcp_response\":{reply}}}"))
}

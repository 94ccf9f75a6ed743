//! The opening of a session with the run's MCP servers: a new session, one that is resumed, or a fork.

use super::profile::ServerWay;
use super::session::{Phase, SessionAbilities, SessionSetup};
use super::{Acp, AskLink, errors};
use crate::agent::limit::{Limit, reachable};
use crate::agent::rpc::Error;
use crate::agent::{DriverOutput, takes_no_images};
use crate::json::Object;
use crate::protocol::failure::Failure;
use crate::protocol::request::{McpAccess, McpServer};
use crate::protocol::terms::sentence;
use crate::protocol::words::McpTransport;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn server(server: &McpServer) -> Value {
    let pairs = |map: &BTreeMap<String, String>| -> Vec<Value> {
        map.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    };
    match &server.access {
        McpAccess::Stdio { env, .. } => {
            let (command, args) = server.command_line().unwrap_or_default();
            json!({"name": server.name, "command": command, "args": args, "env": pairs(env)})
        }
        McpAccess::Remote { transport, url, headers } => {
            json!({"type": transport, "name": server.name, "url": url, "headers": pairs(headers)})
        }
    }
}

pub(super) fn servers_file(servers: &[McpServer]) -> String {
    let server = |server: &McpServer| {
        let about = match &server.access {
            McpAccess::Stdio { env, .. } => {
                let (command, args) = server.command_line().unwrap_or_default();
                json!({"type": "local", "command": command, "args": args, "env": env, "tools": ["*"]})
            }
            McpAccess::Remote { transport, url, headers } => {
                json!({"type": transport, "url": url, "headers": headers, "tools": ["*"]})
            }
        };
        (server.name.clone(), about)
    };
    json!({"mcpServers": servers.iter().map(server).collect::<Map<_, _>>()}).to_string()
}

/// Whether the agent would start the server.
fn is_command(server: &McpServer) -> bool {
    server.command_line().is_some()
}

impl SessionSetup {
    fn has_commands(&self) -> bool {
        self.servers.iter().any(is_command)
    }

    pub(super) fn rejects_servers(&self, error: &Error) -> bool {
        let text = format!("{}\n{}", error.message, error.detail).to_lowercase();
        self.has_commands() && ["mcp", "stdio"].iter().any(|word| text.contains(word))
    }
}

impl Acp {
    pub(super) fn initialized(&mut self, result: &Object<'_>, out: &mut DriverOutput) {
        if result.count("protocolVersion") != Some(1) {
            return self.fail(errors::version(self.profile), out);
        }
        self.version = result.object("agentInfo").and_then(|info| info.string("version"));
        let abilities = result.object("agentCapabilities");
        let loads = abilities.as_ref().and_then(|a| a.bool("loadSession")).unwrap_or(false);
        let sessions = abilities.as_ref().and_then(|a| a.object("sessionCapabilities"));
        let can = |what: &str| sessions.as_ref().is_some_and(|sessions| sessions.raw(what).is_some());
        let (resumes, forks) = (can("resume"), can("fork"));
        self.resumes = Some(loads || resumes);
        self.start.abilities = SessionAbilities { resumes, loads, forks };
        let prompts = abilities.as_ref().and_then(|a| a.object("promptCapabilities"));
        self.takes_images = Some(prompts.and_then(|prompts| prompts.bool("image")) == Some(true));
        if !self.start.images.is_empty() && self.takes_images == Some(false) {
            return self.fail(takes_no_images(&self.start.agent), out);
        }
        let transports = abilities.as_ref().and_then(|abilities| abilities.object("mcpCapabilities"));
        let says = |transport: &str| transports.as_ref().and_then(|transports| transports.bool(transport));
        let mut all = std::mem::take(&mut self.start.servers);
        if matches!(self.profile.servers, ServerWay::File(_) | ServerWay::Nowhere) {
            all.clear();
        }
        let reaches = |transport: McpTransport| says(transport.word()) == Some(true);
        match reachable(all, &self.start.agent, self.start.warns, reaches, out) {
            Ok(servers) => self.start.servers = servers,
            Err(failure) => return self.fail(failure, out),
        }
        match says("stdio") == Some(false) && self.start.has_commands() {
            true => self.open_without_servers(out),
            false => self.open(out),
        }
    }

    /// The run fails if it needs a server that the agent would have to start.
    pub(super) fn open_without_servers(&mut self, out: &mut DriverOutput) {
        let own = &self.ask_server;
        if self.start.servers.iter().any(|server| is_command(server) && server.name != *own) {
            let why = "it does not start MCP servers";
            if !self.start.warns {
                return self.fail(Limit::McpServers.not_kept(&self.start.agent, why), out);
            }
            out.warn(sentence!("{mcp_servers} has no effect on servers with a command: {why}", mcp_servers));
        }
        self.start.servers.retain(|server| !is_command(server));
        self.start.awaits_servers = false;
        if !self.own_tools.is_empty() {
            self.ask_link = AskLink::Missing;
            out.warn("This agent does not start the server for questions: its model can ask only by question markers");
        }
        self.open(out);
    }

    fn open(&mut self, out: &mut DriverOutput) {
        let SessionAbilities { resumes, loads, forks } = self.start.abilities;
        let servers: Vec<Value> = self.start.servers.iter().map(server).collect();
        let mut params = json!({"cwd": self.cwd.to_string_lossy(), "mcpServers": servers});
        self.phase = Phase::Opening;
        let Some(id) = self.start.resume.clone() else { return self.request("session/new", &params, out) };
        params["sessionId"] = json!(id);
        if self.start.fork {
            if !forks {
                return self.fail(Failure::not_forkable(self.profile.name), out);
            }
            return self.request("session/fork", &params, out);
        }
        self.session = id.to_string();
        self.start.replays = !resumes;
        match (resumes, loads) {
            // `session/resume` does not replay the session.
            (true, _) => self.request("session/resume", &params, out),
            (false, true) => self.request("session/load", &params, out),
            (false, false) => self.fail(errors::cannot_resume(self.profile), out),
        }
    }
}

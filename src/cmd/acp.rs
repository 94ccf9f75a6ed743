//! `acp`: serves an agent to a client of the Agent Client Protocol.

use super::agent_check::{capabilities, login};
use super::{complain, configured, named};
use crate::acp::{AcpServer, Facts, LocalServerHost, Lookups, serve};
use crate::agent::Program;
use crate::agent::limit::{Keeper, Limit};
use crate::agent::native::LoggedIn;
use crate::agent::registry::Agent;
use crate::cli::AcpArgs;
use crate::config::Layers;
use crate::engine::redactor_here;
use crate::process::query::find;
use crate::protocol::failure::Failure;
use crate::protocol::request::Options;
use crate::protocol::request::Permissions;
use crate::protocol::words::{McpTransport, OnUnsupported};
use std::path::PathBuf;

/// Runs the command; returns the exit code.
pub(super) fn run(typed: &AcpArgs) -> u8 {
    match server(typed) {
        Ok(server) => serve::serve(server),
        Err(failure) => complain(&failure),
    }
}

fn server(typed: &AcpArgs) -> Result<AcpServer, Failure> {
    let layers = configured()?;
    let agent = named(&layers, typed.agent.as_deref(), " --agent")?.into_owned();
    let start = Options { agent: Some(agent.name.clone()), ..typed.options.clone() };
    let (options, _) = layers.under(start);
    let redactor = redactor_here(&options, Some(&agent));
    let facts = facts(typed, &layers, &agent, options);
    let (missing, logged_in) = (agent.clone(), agent);
    let known = Lookups {
        missing: Box::new(move || why_missing(&missing)),
        login: Box::new(move || how_to_log_in(&logged_in)),
        redact: Box::new(move |text, servers| {
            let mut of_client = Options::default();
            if let Some(servers) = servers.and_then(|servers| serde_json::from_str(servers).ok()) {
                // Servers that cannot be read are refused when the run begins.
                let _ = of_client.set("mcp_servers", servers);
            }
            redactor_here(&of_client, None).redact(&redactor.redact(text)).into_owned()
        }),
    };
    Ok(AcpServer::new(facts, Box::new(LocalServerHost::new(known))))
}

fn facts(typed: &AcpArgs, layers: &Layers, agent: &Agent, options: Options) -> Facts {
    let able = capabilities(agent, layers);
    let settings = options.clone().resolve(String::new(), agent.name.clone(), PathBuf::new());
    let features = agent.features(&settings);
    let takes_servers = features.keepers.of(Limit::McpServers) != Keeper::Nobody;
    let permissions = match options.permissions.unwrap_or_default() {
        Permissions::ByCategory { .. } => "custom".to_owned(),
        word @ (Permissions::ReadOnly | Permissions::All(_)) => word.to_string(),
    };
    let json = |raw: &serde_json::value::RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
    Facts {
        agent: agent.name.clone(),
        display_name: agent.display_name.clone(),
        images: features.images,
        servers: takes_servers || options.on_unsupported == Some(OnUnsupported::Warn),
        http: takes_servers && features.transports.contains(&McpTransport::Http),
        sse: takes_servers && features.transports.contains(&McpTransport::Sse),
        conversation: able.conversation != Some(false),
        resume: able.resume != Some(false),
        login: matches!(agent.base.program, Program::Command(_)),
        question_limit: options.question_timeout_s.is_some(),
        permissions,
        model: options.model.clone(),
        effort: options.effort.clone(),
        mode: options.mode.clone(),
        fields: typed.fields.iter().map(|(name, raw)| (*name, json(raw))).collect(),
    }
}

/// The reason why the agent cannot start.
fn why_missing(agent: &Agent) -> Option<String> {
    if find(&agent.base).is_some() {
        return None;
    }
    let install = agent.base.install.as_ref().map(|install| format!(" To install it: {install}.")).unwrap_or_default();
    Some(format!("{} is not installed.{install}", agent.display_name))
}

fn how_to_log_in(agent: &Agent) -> Option<String> {
    let (state, why) = login(agent);
    matches!(state, LoggedIn::No(_))
        .then(|| format!("{why}. Run `spektacular open --agent {}` in a terminal and log in there.", agent.name))
}

//! pi's command line, and the extension that asks.

use crate::agent::header_variables::configuration;
use crate::agent::launch::plain_name;
use crate::agent::{FoundBy, LaunchFile, ask_user, fitting, result};
use crate::json::to_line;
use crate::protocol::failure::Failure;
use crate::protocol::fields::{Field, field};
use crate::protocol::request::Settings;
use crate::protocol::words::SystemPromptMode;
use serde_json::{Map, json};

const EXTENSION: &str = include_str!("spektacular.js");

/// The last argument expects the path of [`extension`]. Error: a value that does not fit a command line.
pub(super) fn arguments(settings: &Settings) -> Result<Vec<String>, Failure> {
    let mut args: Vec<String> = ["--mode", "rpc"].map(str::to_owned).into();
    let session = if settings.fork { "--fork" } else { "--session" };
    let values: [(&'static Field, &str, Option<&str>); 3] = [
        (field!(session_id), session, settings.session_id.as_deref()),
        (field!(model), "--model", settings.model.as_deref()),
        (field!(effort), "--thinking", settings.effort.as_deref()),
    ];
    for (field, flag, value) in values {
        if let Some(value) = value {
            args.extend([flag.into(), fitting(field, value.to_owned())?]);
        }
    }
    args.extend(settings.agent_args.iter().cloned());
    args.push("--extension".into());
    Ok(args)
}

/// `name`: the name under which it speaks to us, and of our server. Error: a server's name that pi does not accept.
pub(super) fn extension(settings: &Settings, name: &str, own_tools: &[String]) -> Result<LaunchFile, Failure> {
    settings.mcp_servers.iter().try_for_each(|server| plain_name(server).map(drop))?;
    let servers = configuration(&settings.mcp_servers).chain(configuration(settings.ask_server.as_slice()));
    let run = json!({
        "name": name,
        "own": own_tools,
        "allowed": settings.allowed_tools,
        "disallowed": settings.disallowed_tools.as_deref().unwrap_or_default(),
        "reads": settings.permissions.is_read_only(),
        "prompt": settings.system_prompt,
        "replaces": settings.system_prompt_mode == SystemPromptMode::Replace,
        "servers": servers.collect::<Map<_, _>>(),
    });
    let text = EXTENSION.replacen("RUN = {}", &format!("RUN = {}", to_line(&run)), 1);
    Ok(LaunchFile { found: FoundBy::Flag(""), name: "spektacular.js", text })
}

/// pi's names for the tools of our own server.
pub(super) fn own_tools(settings: &Settings, server: &str) -> Vec<String> {
    let server = server.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let tools = settings.ask_server.iter().flat_map(|_| [ask_user::TOOL, result::TOOL]);
    tools.map(|tool| format!("mcp__{server}__{tool}")).collect()
}

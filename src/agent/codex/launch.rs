//! Codex's command line, and the requests that begin a run.

use crate::agent::launch::{plain_name, server_limit};
use crate::agent::native::Confinement;
use crate::agent::{ask_user, fitting, header_variables, no_such_mode};
use crate::json::to_line;
use crate::protocol::failure::Failure;
use crate::protocol::fields::{Field, field};
use crate::protocol::image::Image;
use crate::protocol::request::{McpAccess, McpServer, Settings};
use crate::protocol::schema::OutputSchema;
use crate::protocol::words::{Level, SandboxMode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Settings for every run. `-c features.X=false` only warns about an unknown feature, whereas `--disable X` fails.
const CONFIG: [&str; 7] = [
    // Otherwise Codex retries a missing network forever.
    "features.unbounded_connection_retries=false",
    // Snapshots contain exported keys, readable by everyone.
    "features.shell_snapshot=false",
    // Commands must not see the keys in the environment.
    "shell_environment_policy.ignore_default_excludes=false",
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    // Otherwise Codex refuses the model's own question tool.
    "features.default_mode_request_user_input=true",
    "suppress_unstable_features_warning=true",
];

/// In the run's sandbox, Codex confines nothing itself.
pub(super) fn confinement(settings: &Settings) -> Confinement {
    match settings.sandbox.domain() {
        None => Confinement::of(&settings.own_rules),
        Some(_) => Confinement::Namespaces,
    }
}

/// Error: a value that does not fit a command line.
pub(super) fn arguments(settings: &Settings) -> Result<Vec<String>, Failure> {
    let mut args = vec!["app-server".to_owned()];
    args.extend(CONFIG.iter().flat_map(|fixed| ["-c".to_owned(), (*fixed).to_owned()]));
    if confinement(settings) == Confinement::Landlock {
        args.extend(["-c".into(), "features.use_legacy_landlock=true".into()]);
    }
    let mut give = |field: &'static Field, key: &str, value: String| {
        args.extend(["-c".into(), fitting(field, format!("{key}={value}"))?]);
        Ok(())
    };
    if settings.mode.as_ref().is_some_and(|mode| !MODES.contains(&mode.as_str())) {
        return Err(no_such_mode(MODES.map(str::to_owned)));
    }
    if let Some(effort) = &settings.effort {
        give(field!(effort), "model_reasoning_effort", to_line(effort))?;
    }
    if !settings.add_dirs.is_empty() {
        let full: Vec<String> =
            settings.add_dirs.iter().map(|dir| settings.cwd.join(dir).to_string_lossy().into_owned()).collect();
        give(field!(add_dirs), "sandbox_workspace_write.writable_roots", to_line(&full))?;
    }
    let limit = server_limit(settings).as_secs_f64();
    for (position, server) in settings.mcp_servers.iter().enumerate() {
        let name = plain_name(server)?;
        let wait = server.required.then(|| [("required", "true".into()), ("startup_timeout_sec", limit.to_string())]);
        for (key, value) in server_settings(position, server).into_iter().chain(wait.into_iter().flatten()) {
            give(field!(mcp_servers), &format!("mcp_servers.{name}.{key}"), value)?;
        }
    }
    args.extend(settings.agent_args.iter().cloned());
    Ok(args)
}

/// The values are TOML.
fn server_settings(position: usize, server: &McpServer) -> Vec<(&'static str, String)> {
    // A JSON string is a TOML string; a table is written another way.
    let pair = |name: &str, value: &str| format!("{}={}", to_line(&name), to_line(&value));
    let table = |pairs: Vec<String>| (!pairs.is_empty()).then(|| format!("{{{}}}", pairs.join(",")));
    match &server.access {
        McpAccess::Stdio { env, .. } => {
            let (command, args) = server.command_line().unwrap_or_default();
            let env = table(env.iter().map(|(name, value)| pair(name, value)).collect());
            let always = [("command", to_line(&command)), ("args", to_line(&args))];
            always.into_iter().chain(env.map(|env| ("env", env))).collect()
        }
        McpAccess::Remote { url, .. } => {
            let variables = header_variables::variables_of(position, server);
            let headers = table(variables.map(|(name, variable)| pair(name, &variable)).collect());
            std::iter::once(("url", to_line(url))).chain(headers.map(|table| ("env_http_headers", table))).collect()
        }
    }
}

pub(super) const MODES: [&str; 2] = ["default", "plan"];

/// The mode for `turn/start`, with Codex's own instructions for it. `model`: the thread's model.
pub(super) fn mode(settings: &Settings, model: Option<&str>) -> Option<Value> {
    let mode = settings.mode.as_ref()?;
    let own = json!({"model": model?, "reasoning_effort": settings.effort, "developer_instructions": null});
    Some(json!({"mode": mode, "settings": own}))
}

/// The provider refuses a schema with optional or unknown properties.
pub(super) fn schema(settings: &Settings) -> Option<&OutputSchema> {
    settings.output_schema.as_ref().filter(|schema| schema.is_strict())
}

/// The version is the protocol's, so that recordings do not depend on a release.
pub(super) fn initialize(progress: Level) -> Value {
    let mut unwanted = vec![
        "thread/readState/changed",
        "thread/settings/updated",
        "remoteControl/status/changed",
        "turn/diff/updated",
        "item/plan/delta",
        "item/commandExecution/outputDelta",
        "item/fileChange/outputDelta",
        "item/fileChange/patchUpdated",
    ];
    if progress != Level::Full {
        unwanted.extend(["item/agentMessage/delta", "item/reasoning/summaryTextDelta", "item/reasoning/textDelta"]);
    }
    json!({
        "clientInfo": {"name": "spektacular", "title": null, "version": "1"},
        "capabilities": {"experimentalApi": true, "optOutNotificationMethods": unwanted},
    })
}

/// Omits `cwd`, with which Codex would write a trust entry into the user's configuration. Sets `untrusted`, so that
/// Codex asks as other agents do and our policy answers. Where nothing may act, a sandbox keeps its commands from
/// writing, and they run without a request: Codex's own, or the run's, in which Codex's cannot start.
pub(super) fn thread(settings: &Settings) -> (&'static str, Value) {
    let (asks, sandbox) = match (settings.sandbox.domain(), settings.only_reads()) {
        // Codex's read-only sandbox needs namespaces.
        (None, true) if confinement(settings) == Confinement::Namespaces => ("on-request", "read-only"),
        (None, _) => ("untrusted", "workspace-write"),
        (Some(_), true) if settings.sandbox.mode == SandboxMode::ReadOnly => ("on-request", "danger-full-access"),
        (Some(_), _) => ("untrusted", "danger-full-access"),
    };
    let mut params = json!({"approvalPolicy": asks, "sandbox": sandbox});
    if let Some(model) = &settings.model {
        params["model"] = json!(model);
    }
    if let Some(instructions) = &settings.system_prompt {
        let place = settings.new_system_prompt().map_or("developerInstructions", |_| "baseInstructions");
        params[place] = json!(instructions);
    }
    match &settings.session_id {
        Some(id) => {
            params["threadId"] = json!(id);
            params["excludeTurns"] = json!(true);
            (if settings.fork { "thread/fork" } else { "thread/resume" }, params)
        }
        None => {
            if settings.interactive {
                params["dynamicTools"] = json!([{"type": "function", "name": ask_user::TOOL,
                    "description": ask_user::DESCRIPTION, "inputSchema": ask_user::schema()}]);
            }
            ("thread/start", params)
        }
    }
}

pub(super) const START: &str = "turn/start";

/// The schema keeps the order of its properties, in which the model writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnStart {
    pub(super) input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) collaboration_mode: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_schema: Option<Box<RawValue>>,
    pub(super) thread_id: Option<String>,
}

/// Codex reads the images itself.
pub(super) fn input(text: &str, images: &[Image]) -> Value {
    let images = images.iter().map(|image| json!({"type": "localImage", "path": image.path.to_string_lossy()}));
    images.chain([json!({"type": "text", "text": text, "text_elements": []})]).collect()
}

#[cfg(test)]
mod tests {
    use super::{arguments, thread};
    use crate::protocol::request::{McpAccess, McpServer, Options, Permissions, Settings};
    use crate::protocol::words::{Category, Policy};

    fn settings() -> Settings {
        Options::default().resolve("x".into(), "codex".into(), "/w".into())
    }

    /// Only its sandbox keeps a command that is not asked about from acting.
    #[test]
    fn commands_run_unasked_only_in_the_read_only_sandbox() {
        let one = |category, policy| Permissions::ByCategory { named: [(category, policy)].into(), rest: None };
        let looks = |rest| {
            let named = [(Category::Read, Policy::Allow), (Category::Search, Policy::Allow)];
            Permissions::ByCategory { named: named.into(), rest: Some(rest) }
        };
        for (permissions, reads) in [
            // An edit that somebody allows fails in the read-only sandbox if it needs a new folder.
            (Permissions::default(), false),
            (looks(Policy::Ask), false),
            (looks(Policy::Deny), true),
            (Permissions::ReadOnly, true),
            (one(Category::Edit, Policy::Allow), false),
            (one(Category::Execute, Policy::Deny), false),
            (one(Category::Execute, Policy::Allow), false),
            (one(Category::Read, Policy::Ask), false),
            (one(Category::Search, Policy::Deny), false),
            (Permissions::All(Policy::Allow), false),
            (Permissions::All(Policy::Deny), false),
        ] {
            let (_, params) = thread(&Settings { permissions: permissions.clone(), ..settings() });
            let wanted = if reads { ("on-request", "read-only") } else { ("untrusted", "workspace-write") };
            assert_eq!(
                (&params["approvalPolicy"], &params["sandbox"]),
                (&wanted.0.into(), &wanted.1.into()),
                "{permissions}"
            );
        }
    }

    /// Without namespaces, Codex's read-only sandbox cannot start, and the policy decides about each command.
    #[test]
    fn without_namespaces_its_sandbox_uses_landlock() {
        let legacy = "features.use_legacy_landlock=true".to_owned();
        for (own_rules, is_legacy, asks) in
            [("", false, "on-request"), ("landlock", true, "untrusted"), ("nothing", false, "untrusted")]
        {
            let settings = Settings { permissions: Permissions::ReadOnly, own_rules: own_rules.into(), ..settings() };
            assert_eq!(arguments(&settings).unwrap().contains(&legacy), is_legacy, "{own_rules}");
            assert_eq!(thread(&settings).1["approvalPolicy"], asks, "{own_rules}");
        }
    }

    #[test]
    fn values_are_toml() {
        let mut settings = settings();
        settings.effort = Some("a\"b".into());
        settings.add_dirs = vec!["lib".into(), "/opt".into()];
        let access = McpAccess::Stdio {
            command: "db\\x".into(),
            args: vec!["a b".into()],
            env: [("K".to_owned(), "v\n".to_owned())].into(),
        };
        settings.mcp_servers = vec![McpServer::new("my-db", access)];
        let args = arguments(&settings).unwrap();
        for wanted in [
            r#"model_reasoning_effort="a\"b""#,
            r#"sandbox_workspace_write.writable_roots=["/w/lib","/opt"]"#,
            r#"mcp_servers.my-db.command="db\\x""#,
            r#"mcp_servers.my-db.args=["a b"]"#,
            r#"mcp_servers.my-db.env={"K"="v\n"}"#,
        ] {
            assert!(args.iter().any(|arg| arg == wanted), "{wanted} is not in {args:?}");
        }
    }

    #[test]
    fn a_name_with_a_dot_is_refused() {
        let mut settings = settings();
        let access = McpAccess::Stdio { command: "x".into(), args: Vec::new(), env: Default::default() };
        settings.mcp_servers = vec![McpServer::new("a.b", access)];
        assert!(arguments(&settings).is_err());
    }
}

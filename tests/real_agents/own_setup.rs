//! A user's setup of an agent is in what the model is asked: in an ad hoc run and in `spec` as in the agent's own
//! headless mode.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::run;
use crate::lab::Lab;
use crate::support::Case;

rows!(old: a_setup_is_in_what_the_model_is_asked);

/// Keeps OpenCode from installing a library into a folder of its configuration.
const INSTALLED: &str = r#"{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}}"#;

/// Codex's hashes of the hooks in `hooks`, with which a user trusts them.
const TRUSTED: [(&str, &str); 2] = [
    ("session_start", "c5019271b0c3fc10985d0a36d1633e253051ec1f6257884be4393c91eb86cd8c"),
    ("user_prompt_submit", "0be9533d59ecdd6808ad39aedc05e1a9cdc7c21e5131f324a7dd51de42aa4a19"),
];

fn skill(mark: &str) -> String {
    format!("---\nname: {}\ndescription: {mark}\n---\nA wren.\n", mark.to_lowercase().replace('_', "-"))
}

/// A command, or a sub-agent.
fn described(mark: &str) -> String {
    format!("---\nname: {}\ndescription: {mark}\nmode: subagent\n---\nA wren.\n", mark.to_lowercase().replace('_', "-"))
}

/// Hooks that add to what the model is asked, for Claude Code and Codex.
fn hooks() -> Value {
    let hook = |mark: &str| json!([{"hooks": [{"type": "command", "command": format!("echo {mark}")}]}]);
    json!({"SessionStart": hook("MARK_USER_HOOK"), "UserPromptSubmit": hook("MARK_PROMPT_HOOK")})
}

fn gemini_hook(event: &str, mark: &str) -> Value {
    let added = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": mark}});
    json!([{"hooks": [{"type": "command", "name": mark, "command": format!("echo '{added}'")}]}])
}

/// The words and arguments of an MCP server that works.
fn server() -> (&'static str, [String; 2]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_agents/server.mjs");
    ("node", [file.to_str().unwrap().to_owned(), "works".to_owned()])
}

/// The files of the setup. A JSON file is merged with one that is there, a TOML file appended.
fn files(agent: Agent, case: &Case) -> Vec<(&'static str, String)> {
    let (command, args) = server();
    let servers = |name: &str| json!({name: {"command": command, "args": args}});
    let toml = |name: &str| format!("\n[mcp_servers.{name}]\ncommand = \"{command}\"\nargs = {}\n", json!(args));
    match agent {
        Agent::Claude | Agent::OldClaude => vec![
            ("home/.claude/CLAUDE.md", "MARK_USER_MEMORY\n".into()),
            ("home/.claude/skills/mark-user-skill/SKILL.md", skill("MARK_USER_SKILL")),
            ("home/.claude/commands/two.md", described("MARK_USER_COMMAND")),
            ("home/.claude/agents/two.md", described("MARK_USER_AGENT")),
            ("home/.claude/settings.json", json!({"hooks": hooks(), "enableAllProjectMcpServers": true}).to_string()),
            ("home/.claude.json", json!({"mcpServers": servers("mark_user_server")}).to_string()),
            ("work/.claude/skills/mark-project-skill/SKILL.md", skill("MARK_PROJECT_SKILL")),
            ("work/.claude/commands/one.md", described("MARK_PROJECT_COMMAND")),
            ("work/.claude/agents/one.md", described("MARK_PROJECT_AGENT")),
            ("work/.mcp.json", json!({"mcpServers": servers("mark_project_server")}).to_string()),
            (
                "home/market/.claude-plugin/marketplace.json",
                json!({"name": "market", "owner": {"name": "me"}, "plugins": [{"name": "bird", "source": "./bird"}]})
                    .to_string(),
            ),
            ("home/market/bird/.claude-plugin/plugin.json", json!({"name": "bird", "version": "1.0.0"}).to_string()),
            ("home/market/bird/skills/mark-plugin/SKILL.md", skill("MARK_PLUGIN")),
        ],
        Agent::Codex => {
            let home = case.path("home");
            let trust = TRUSTED.map(|(event, hash)| {
                let file = home.join(".codex/hooks.json");
                format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:{hash}\"\n", file.display())
            });
            let project = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", case.work().display());
            vec![
                ("home/.codex/AGENTS.md", "MARK_USER_MEMORY\n".into()),
                ("home/.agents/skills/mark-user-skill/SKILL.md", skill("MARK_USER_SKILL")),
                ("home/.codex/skills/mark-codex-skill/SKILL.md", skill("MARK_CODEX_SKILL")),
                ("home/.codex/hooks.json", json!({"hooks": hooks()}).to_string()),
                ("home/.codex/config.toml", toml("mark_user_server") + &trust.concat() + &project),
                ("work/.agents/skills/mark-project-skill/SKILL.md", skill("MARK_PROJECT_SKILL")),
                ("work/.codex/config.toml", toml("mark_project_server")),
            ]
        }
        Agent::Gemini => {
            let hooks = json!({
                "SessionStart": gemini_hook("SessionStart", "MARK_USER_HOOK"),
                "BeforeAgent": gemini_hook("BeforeAgent", "MARK_PROMPT_HOOK"),
            });
            let extension = json!({"name": "bird", "version": "1.0.0", "contextFileName": "BIRD.md"});
            vec![
                ("home/.gemini/GEMINI.md", "MARK_USER_MEMORY\n".into()),
                ("home/.gemini/skills/mark-user-skill/SKILL.md", skill("MARK_USER_SKILL")),
                (
                    "home/.gemini/settings.json",
                    json!({"hooks": hooks, "mcpServers": servers("mark_user_server")}).to_string(),
                ),
                ("home/.gemini/extensions/bird/gemini-extension.json", extension.to_string()),
                ("home/.gemini/extensions/bird/BIRD.md", "MARK_PLUGIN\n".into()),
                ("home/.gemini/agents/two.md", described("MARK_USER_AGENT").replace("mode: subagent\n", "")),
                ("work/.gemini/skills/mark-project-skill/SKILL.md", skill("MARK_PROJECT_SKILL")),
                ("work/.gemini/settings.json", json!({"mcpServers": servers("mark_project_server")}).to_string()),
            ]
        }
        Agent::OpenCode => {
            let plugin = |mark: &str| {
                format!(
                    "export const Mark = async () => ({{\"experimental.chat.system.transform\": \
                     async (input, output) => {{ output.system.push(\"{mark}\") }}}})\n"
                )
            };
            let server = |name: &str| {
                let words: Vec<&str> = [command].into_iter().chain(args.iter().map(String::as_str)).collect();
                json!({"mcp": {name: {"type": "local", "command": words}}}).to_string()
            };
            vec![
                ("home/.config/opencode/AGENTS.md", "MARK_USER_MEMORY\n".into()),
                ("home/.config/opencode/skills/mark-user-skill/SKILL.md", skill("MARK_USER_SKILL")),
                (
                    "home/.config/opencode/agent/two.md",
                    described("MARK_USER_AGENT").replace("name: mark-user-agent\n", ""),
                ),
                ("home/.config/opencode/plugin/mark.js", plugin("MARK_USER_PLUGIN")),
                ("home/.config/opencode/opencode.json", server("mark_user_server")),
                ("work/.opencode/skills/mark-project-skill/SKILL.md", skill("MARK_PROJECT_SKILL")),
                (
                    "work/.opencode/agent/one.md",
                    described("MARK_PROJECT_AGENT").replace("name: mark-project-agent\n", ""),
                ),
                ("work/.opencode/plugin/mark.js", plugin("MARK_PROJECT_PLUGIN")),
                ("work/.opencode/package-lock.json", INSTALLED.into()),
                ("work/.opencode/node_modules/placeholder", String::new()),
                ("work/opencode.json", server("mark_project_server")),
            ]
        }
    }
}

/// A place with the setup, and its marks.
#[track_caller]
fn furnished(agent: Agent, scenario: &str) -> (Lab, BTreeSet<String>) {
    let mut lab = Lab::new(agent, scenario);
    let mut files = files(agent, &lab.case);
    files.extend(["work/CLAUDE.md", "work/AGENTS.md", "work/GEMINI.md"].map(|file| (file, "MARK_ROOT\n".into())));
    files.extend(
        ["work/sub/CLAUDE.md", "work/sub/AGENTS.md", "work/sub/GEMINI.md"].map(|file| (file, "MARK_NESTED\n".into())),
    );
    files.push(("work/sub/code.txt", "a wren\n".into()));
    let word = |letter: char| !letter.is_ascii_alphabetic() && letter != '_';
    let marks = files
        .iter()
        .flat_map(|(_, text)| text.split(word))
        .filter(|it| it.starts_with("MARK_") || it.starts_with("mark_"));
    let marks = marks.map(str::to_owned).collect();
    for (path, text) in files {
        let there = fs::read_to_string(lab.case.path(path)).unwrap_or_default();
        lab.case = lab.case.file(path, &merged(path, &there, text));
    }
    if matches!(agent, Agent::Claude | Agent::OldClaude) {
        let market = lab.case.path("home/market");
        for words in [&["marketplace", "add", market.to_str().unwrap()][..], &["install", "bird@market"]] {
            let added = lab.case.command("claude").arg("plugin").args(words).stdin(Stdio::null()).output().unwrap();
            assert!(added.status.success(), "{words:?}: {added:?}");
        }
    }
    (lab, marks)
}

fn merged(path: &str, there: &str, text: String) -> String {
    match serde_json::from_str::<Value>(there) {
        Ok(Value::Object(mut object)) if path.ends_with(".json") => {
            object.extend(serde_json::from_str::<serde_json::Map<String, Value>>(&text).unwrap());
            Value::Object(object).to_string()
        }
        Ok(_) | Err(_) => there.to_owned() + &text,
    }
}

/// The number of requests that contain each mark, and the tools that they offer.
fn counts(marks: &BTreeSet<String>, requests: &[Value]) -> (BTreeMap<String, usize>, BTreeSet<String>) {
    let texts: Vec<String> = requests.iter().map(Value::to_string).collect();
    let count = |mark: &String| (mark.clone(), texts.iter().filter(|text| text.contains(mark.as_str())).count());
    let offered = requests.iter().flat_map(|request| request["tools"].as_array().into_iter().flatten());
    let several = offered.flat_map(|tool| match tool["functionDeclarations"].as_array() {
        Some(tools) => tools.iter().collect(),
        None => vec![tool.get("function").unwrap_or(tool)],
    });
    let names = several.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    (marks.iter().map(count).collect(), names)
}

fn a_setup_is_in_what_the_model_is_asked(agent: Agent) {
    let (lab, marks) = furnished(agent, "setup");
    let words: &[&str] = match agent {
        Agent::Claude | Agent::OldClaude => &["claude", "-p", "go"],
        Agent::Codex => &["codex", "exec", "go"],
        Agent::Gemini => &["gemini", "--approval-mode", "yolo", "-p", "go"],
        Agent::OpenCode => &["opencode", "run", "go"],
    };
    let own = lab.case.command(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).contains("I looked."), "{own:?}");
    let (mut wanted, tools) = counts(&marks, &lab.stub.conversation());
    let unseen: Vec<&String> = wanted.iter().filter(|(_, count)| **count == 0).map(|(mark, _)| mark).collect();
    assert_eq!(unseen, agent.ways().unseen_marks, "not even in its own mode");
    agent.ways().lost_marks.iter().for_each(|mark| *wanted.get_mut(*mark).unwrap() = 0);

    let adhoc = run(furnished(agent, "setup").0, json!({"interactive": false}), Vec::new());
    adhoc.completed("I looked.");
    let (found, offered) = counts(&marks, &adhoc.stub().conversation());
    assert_eq!(found, wanted);
    let missing: Vec<&String> = tools.difference(&offered).collect();
    assert!(missing.is_empty(), "tools that a run does not offer: {missing:?}");

    let (lab, _) = furnished(agent, "setup_spec");
    let lab = Lab { case: lab.case.subcommand("spec"), ..lab };
    let payload = json!({"prompt": "Greet people", "interactive": false, "workflow": {"name": "greeting"}});
    let spec = run(lab, payload, Vec::new());
    spec.outcome.completed();
    let (found, _) = counts(&marks, &spec.stub().conversation());
    for (mark, count) in wanted {
        assert_eq!(found[&mark] > 0, count > 0, "{mark} in spec: {found:?}");
    }
}

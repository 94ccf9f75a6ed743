//! Facts about Claude Code that its dialect does not cover. Measured on 2.1.330: `--version` writes no files; a session
//! is one file, named by its id, in a folder for the working directory in which it started.

use super::errors::LOGIN;
use crate::agent::native::{
    Folder, Interface, InterfaceOptions, LoggedIn, Login, Native, SessionFiles, SessionStore, Sign, State, Version,
    flag,
};
use crate::agent::vendor::Vendor;
use crate::json::Object;

const FOLDER: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: ".claude" };
/// The folder of `.claude.json`: beside the configuration folder, or inside it if the variable is set.
const BESIDE: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: "" };

/// The facts about Claude Code.
pub(crate) static NATIVE: Native = Native {
    version: Some(Version { flag: "--version", folders: &[] }),
    vendor: Some(Vendor::Anthropic),
    login: Login {
        signs: &[
            (Sign::Variable("ANTHROPIC_API_KEY"), LoggedIn::Yes, "ANTHROPIC_API_KEY is set"),
            (Sign::Variable("ANTHROPIC_AUTH_TOKEN"), LoggedIn::Yes, "ANTHROPIC_AUTH_TOKEN is set"),
            (Sign::Variable("CLAUDE_CODE_OAUTH_TOKEN"), LoggedIn::Yes, "CLAUDE_CODE_OAUTH_TOKEN is set"),
            (Sign::File(FOLDER, ".credentials.json", "\"claudeAiOauth\""), LoggedIn::Yes, "it has stored credentials"),
            (Sign::File(BESIDE, ".claude.json", "\"primaryApiKey\""), LoggedIn::Yes, "it has a stored key"),
            (
                Sign::File(FOLDER, "settings.json", "\"apiKeyHelper\""),
                LoggedIn::Unknown,
                "its settings name a key helper",
            ),
            (Sign::Variable("CLAUDE_CODE_USE_BEDROCK"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
            (Sign::Variable("CLAUDE_CODE_USE_VERTEX"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
            (Sign::Variable("CLAUDE_CODE_USE_FOUNDRY"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
        ],
        otherwise: (LoggedIn::No(LOGIN), "neither a key in the environment nor stored credentials"),
    },
    sessions: Some(SessionStore::File(SessionFiles {
        folder: FOLDER,
        paths: |id| vec![format!("projects/*/{id}.jsonl")],
        // The file's name contains the whole id.
        first_line: |_| String::new(),
        kept: None,
        loadable: None,
        cost: Some(cost_in),
    })),
    modes: &["plan"],
    own_rules: None,
    // Measured: it works without writing its settings, which a later run outside a sandbox would obey. It writes its login
    // in place, but cannot lock it there.
    state: State {
        reads: &[(FOLDER, ""), (BESIDE, ".claude.json")],
        folders: &[(FOLDER, "projects"), (FOLDER, "sessions"), (FOLDER, "session-env"), (FOLDER, "shell-snapshots")],
        files: &[(FOLDER, ".credentials.json")],
        made: &[],
        variables: &[],
        settings: &[],
    },
    interface: Some(Interface {
        args,
        has_modes: true,
        asking_env: |_| None,
        not_for_people: &[],
        // With this variable, Claude Code assumes that another Claude Code started it.
        env_remove: &["CLAUDECODE"],
    }),
};

/// The session's cost, which Claude Code 2.1.330 writes at the end of each run and adds to the sums of the next one.
fn cost_in(line: &str) -> Option<f64> {
    let state = Object::parse(line).filter(|line| line.is("type", "cost-state"))?;
    state.number("totalCostUSD")
}

fn args(options: &InterfaceOptions<'_>) -> Vec<String> {
    let flags = [
        flag("--model", options.model),
        flag("--agent", options.mode),
        flag("--resume", options.session),
        flag("--permission-mode", options.asks_for.map(|asks_for| asks_for.choose("default", "bypassPermissions"))),
    ];
    let mut args: Vec<String> = flags.into_iter().flatten().chain(options.args.iter().cloned()).collect();
    if let Some(prompt) = options.prompt {
        args.extend(["--".into(), prompt.into()]);
    }
    args
}

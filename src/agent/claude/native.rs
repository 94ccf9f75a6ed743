//! Claude Code beside its dialect. Measured on 2.1.330: `--version` writes nothing; a session is one file, named by
//! its id, in a folder for the directory in which it began.

use crate::agent::native::{Export, Folder, LoggedIn, Login, Native, Open, Sign, Version, Wish, flag};

const FOLDER: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: ".claude" };
/// This one file lies beside the folder, unless that was moved.
const BESIDE: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: "" };

/// Claude Code's own ways.
pub static NATIVE: Native = Native {
    version: Some(Version { flag: "--version", folders: &[] }),
    login: Login {
        signs: &[
            (Sign::Variable("ANTHROPIC_API_KEY"), LoggedIn::Yes, "ANTHROPIC_API_KEY is set"),
            (Sign::Variable("ANTHROPIC_AUTH_TOKEN"), LoggedIn::Yes, "ANTHROPIC_AUTH_TOKEN is set"),
            (Sign::Variable("CLAUDE_CODE_OAUTH_TOKEN"), LoggedIn::Yes, "CLAUDE_CODE_OAUTH_TOKEN is set"),
            (Sign::File(FOLDER, ".credentials.json", "\"claudeAiOauth\""), LoggedIn::Yes, "it has stored credentials"),
            (Sign::File(BESIDE, ".claude.json", "\"primaryApiKey\""), LoggedIn::Yes, "it has a stored key"),
            (Sign::File(FOLDER, "settings.json", "\"apiKeyHelper\""), LoggedIn::Unknown, "its settings name a helper"),
            (Sign::Variable("CLAUDE_CODE_USE_BEDROCK"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
            (Sign::Variable("CLAUDE_CODE_USE_VERTEX"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
            (Sign::Variable("CLAUDE_CODE_USE_FOUNDRY"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
        ],
        otherwise: (LoggedIn::No, "neither a key in the environment nor stored credentials"),
    },
    export: Some(Export::File {
        folder: FOLDER,
        paths: |id| vec![format!("projects/*/{id}.jsonl")],
        // The file's name has the whole id.
        first_line: |_| String::new(),
    }),
    open: Some(Open {
        args,
        has_modes: true,
        asking_env: &[],
        not_for_people: &[],
        // Else it takes itself for one that another started.
        env_remove: &["CLAUDECODE"],
    }),
};

fn args(wish: &Wish<'_>) -> Vec<String> {
    let flags = [
        flag("--model", wish.model),
        flag("--agent", wish.mode),
        flag("--resume", wish.session),
        flag("--permission-mode", wish.asking.map(|asking| asking.choose("default", "bypassPermissions"))),
    ];
    let mut args: Vec<String> = flags.into_iter().flatten().chain(wish.args.iter().cloned()).collect();
    if let Some(prompt) = wish.prompt {
        args.extend(["--".into(), prompt.into()]);
    }
    args
}

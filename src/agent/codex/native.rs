//! Codex beside its dialect. Measured on 0.169.0: `--version` leaves files in its folder; a session is a rollout file,
//! whose name ends with the id; keys in the environment are not used unless a provider of the user's names them.

use crate::agent::native::{Export, Folder, LoggedIn, Login, Native, Open, Sign, Version, Wish, flag};

const FOLDER: Folder = Folder { variable: ("CODEX_HOME", ""), home: ".codex" };

/// Codex's own ways.
pub static NATIVE: Native = Native {
    version: Some(Version { flag: "--version", folders: &["CODEX_HOME"] }),
    login: Login {
        signs: &[
            (Sign::File(FOLDER, "auth.json", "\"tokens\""), LoggedIn::Yes, "it has stored credentials"),
            (Sign::File(FOLDER, "auth.json", "\"OPENAI_API_KEY\""), LoggedIn::Yes, "it has a stored key"),
            (
                Sign::File(FOLDER, "config.toml", "model_provider"),
                LoggedIn::Unknown,
                "its configuration names a provider of its own",
            ),
            (
                Sign::File(FOLDER, "config.toml", "cli_auth_credentials_store"),
                LoggedIn::Unknown,
                "its credentials may be in the system's keyring",
            ),
        ],
        otherwise: (LoggedIn::No, "it has no stored credentials"),
    },
    export: Some(Export::File {
        folder: FOLDER,
        paths: |id| {
            vec![format!("sessions/*/*/*/rollout-*-{id}.jsonl"), format!("archived_sessions/rollout-*-{id}.jsonl")]
        },
        // A part of an id would fit the name as well.
        first_line: |id| format!("\"id\":\"{id}\""),
    }),
    open: Some(Open { args, has_modes: false, asking_env: &[], not_for_people: &[], env_remove: &[] }),
};

fn args(wish: &Wish<'_>) -> Vec<String> {
    // Without a question it stays in its sandbox: to leave that is not what was said. It asks to leave the sandbox, and for
    // nothing else, so it asks for most where the sandbox allows least.
    let (most, least) = (["on-request", "read-only"], ["never", "workspace-write"]);
    let asking = wish.asking.map(|asking| asking.choose(most, least));
    let asking = asking.map(|[ask, sandbox]| [format!("--ask-for-approval={ask}"), format!("--sandbox={sandbox}")]);
    let resume = wish.session.map(|_| "resume".to_owned());
    let mut args: Vec<String> = resume.into_iter().chain(flag("--model", wish.model)).collect();
    args.extend(asking.into_iter().flatten());
    args.extend(wish.args.iter().cloned());
    let words: Vec<&str> = [wish.session, wish.prompt].into_iter().flatten().collect();
    if !words.is_empty() {
        args.push("--".into());
        args.extend(words.into_iter().map(str::to_owned));
    }
    args
}

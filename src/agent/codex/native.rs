//! Facts about Codex that its dialect does not cover. Measured on 0.169.0: `--version` leaves files in its folder; a
//! session is a rollout file whose name ends with the id; Codex uses a key in the environment only if a configured
//! provider names it.

use super::errors::LOGIN;
use super::launch::MODES;
use crate::agent::native::{
    Folder, Interface, InterfaceOptions, LoggedIn, Login, Native, OwnRules, RuleSource, SessionFiles, SessionStore,
    Sign, State, Version, flag,
};
use crate::agent::vendor::Vendor;

const FOLDER: Folder = Folder { variable: ("CODEX_HOME", ""), home: ".codex" };

pub(crate) static NATIVE: Native = Native {
    version: Some(Version { flag: "--version", folders: &["CODEX_HOME"] }),
    vendor: Some(Vendor::OpenAi),
    login: Login {
        signs: &[
            (Sign::File(FOLDER, "auth.json", "\"tokens\""), LoggedIn::Yes, "it has stored credentials"),
            (Sign::File(FOLDER, "auth.json", "\"OPENAI_API_KEY\""), LoggedIn::Yes, "it has a stored key"),
            (
                Sign::File(FOLDER, "config.toml", "model_provider"),
                LoggedIn::Unknown,
                "its configuration names its own provider",
            ),
            (
                Sign::File(FOLDER, "config.toml", "cli_auth_credentials_store"),
                LoggedIn::Unknown,
                "its credentials may be in the system's keyring",
            ),
        ],
        otherwise: (LoggedIn::No(LOGIN), "it has no stored credentials"),
    },
    sessions: Some(SessionStore::File(SessionFiles {
        folder: FOLDER,
        paths: |id| {
            vec![format!("sessions/*/*/*/rollout-*-{id}.jsonl"), format!("archived_sessions/rollout-*-{id}.jsonl")]
        },
        // Without this check, the end of an id would match the name too.
        first_line: |id| format!("\"id\":\"{id}\""),
        kept: None,
        loadable: None,
        cost: None,
        parts: Some(super::stored::parts),
    })),
    modes: &MODES,
    // Measured on 0.169.0: without user namespaces, each command fails, unless it uses Landlock.
    own_rules: Some(OwnRules { sources: |_, _| vec![RuleSource::Confinement], kept: |texts| texts.concat() }),
    // Measured: it works without writing its settings, which a later run outside a sandbox would obey.
    state: State {
        reads: &[(FOLDER, "")],
        folders: &[
            (FOLDER, "sessions"),
            (FOLDER, "thread-writer-locks"),
            (FOLDER, "tmp"),
            (FOLDER, "skills"),
            (FOLDER, "log"),
            (FOLDER, "sqlite"),
        ],
        files: &[(FOLDER, "auth.json"), (FOLDER, "history.jsonl")],
        // Codex makes it if it is empty, and ends without a word if it cannot.
        made: &[(FOLDER, "installation_id")],
        variables: &[("CODEX_SQLITE_HOME", (FOLDER, "sqlite"))],
        // A later run follows a skill.
        settings: &[(FOLDER, "skills")],
        ..State::NONE
    },
    interface: Some(Interface { args, has_modes: false, asking_env: |_| None, not_for_people: &[], env_remove: &[] }),
};

fn args(options: &InterfaceOptions<'_>) -> Vec<String> {
    // A Codex that asks nothing stays in its sandbox, because the user did not allow it to leave. Codex asks only to
    // leave the sandbox, so it asks most often if the sandbox allows the least.
    let (most, least) = (["on-request", "read-only"], ["never", "workspace-write"]);
    let approvals = options.asks_for.map(|asks_for| asks_for.choose(most, least));
    let approvals =
        approvals.map(|[ask, sandbox]| [format!("--ask-for-approval={ask}"), format!("--sandbox={sandbox}")]);
    let resume = options.session.map(|_| "resume".to_owned());
    let flags = [resume, flag("--model", options.model)].into_iter().chain(approvals.into_iter().flatten().map(Some));
    let words = [options.session, options.prompt].into_iter().flatten();
    let dashes = words.clone().next().map(|_| "--");
    options.around(flags, dashes.into_iter().chain(words).map(str::to_owned))
}

//! Facts about Gemini CLI and OpenCode that ACP does not cover.

use super::own_rules::{self, OPENCODE_CONFIG};
use crate::agent::native::{
    AsksFor, Folder, Interface, LoggedIn, Login, Native, OwnRules, RuleSource, SessionFiles, SessionStore, Sign, State,
    Version, flag,
};
use crate::agent::vendor::Vendor;

const GEMINI_FOLDER: Folder = Folder { variable: ("GEMINI_CLI_HOME", ".gemini"), home: ".gemini" };
const OPENCODE_STATE: Folder = Folder { variable: ("XDG_STATE_HOME", "opencode"), home: ".local/state/opencode" };
const OPENCODE_CACHE: Folder = Folder { variable: ("XDG_CACHE_HOME", "opencode"), home: ".cache/opencode" };
const OPENCODE_DATA: Folder = Folder { variable: ("XDG_DATA_HOME", "opencode"), home: ".local/share/opencode" };

/// The modes of Gemini CLI that do not make it ask less than `permissions` says.
pub(super) const GEMINI_MODES: &[&str] = &["default", "plan"];

/// Gemini CLI. Measured on 0.61.0: `--version` takes up to 3 s and leaves files in its folder; a session's file is
/// named by the minute in which it began and the first eight characters of the id. `session/load` first begins a file of
/// this name, so that within the same minute it would write into the session that it then reads. Gemini finds a session
/// by the id within its file, whatever the file's name is.
pub(super) static GEMINI: Native = Native {
    version: Some(Version { flag: "--version", folders: &["GEMINI_CLI_HOME"] }),
    vendor: Some(Vendor::Google),
    login: Login {
        signs: &[
            (Sign::Variable("GEMINI_API_KEY"), LoggedIn::Yes, "GEMINI_API_KEY is set"),
            (Sign::Variable("GOOGLE_API_KEY"), LoggedIn::Yes, "GOOGLE_API_KEY is set"),
            (Sign::File(GEMINI_FOLDER, "oauth_creds.json", "_token\""), LoggedIn::Yes, "it has stored credentials"),
            (
                Sign::File(GEMINI_FOLDER, "gemini-credentials.json", ""),
                LoggedIn::Unknown,
                "its stored credentials are encrypted",
            ),
            (Sign::File(GEMINI_FOLDER, ".env", "_API_KEY"), LoggedIn::Yes, "its .env file holds a key"),
            (Sign::Variable("GOOGLE_GENAI_USE_VERTEXAI"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
            (Sign::Variable("GOOGLE_GENAI_USE_GCA"), LoggedIn::Unknown, "a cloud provider's credentials are used"),
        ],
        otherwise: (
            LoggedIn::Unknown,
            "no credentials were found, but the system's keyring or a .env file may hold them",
        ),
    },
    sessions: Some(SessionStore::File(SessionFiles {
        folder: GEMINI_FOLDER,
        paths: |id| {
            let parts = [id.get(..8).unwrap_or(id), last_digits(id)];
            parts.map(|part| format!("tmp/*/chats/session-*-{part}.jsonl")).into()
        },
        first_line: |id| format!("\"sessionId\":\"{id}\""),
        // Gemini finds no session without a message of its model.
        kept: Some("\"type\":\"gemini\""),
        loadable: Some(|id| format!("session-0000-00-00T00-00-{}.jsonl", last_digits(id))),
        cost: None,
        parts: Some(super::gemini_stored::parts),
    })),
    modes: GEMINI_MODES,
    // A file of ours for `--policy` replaces this folder.
    own_rules: Some(OwnRules {
        sources: |environment, _| {
            let folder = GEMINI_FOLDER.path(environment).into_iter();
            folder.map(|folder| RuleSource::Folder(folder.join("policies"))).collect()
        },
        kept: |folders| folders.concat(),
    }),
    // Measured: it ends without a word if it cannot create files beside its settings.
    state: State {
        folders: &[(GEMINI_FOLDER, "")],
        settings: &[
            (GEMINI_FOLDER, "settings.json"),
            (GEMINI_FOLDER, ".env"),
            (GEMINI_FOLDER, "GEMINI.md"),
            (GEMINI_FOLDER, "trustedFolders.json"),
            (GEMINI_FOLDER, "commands"),
            (GEMINI_FOLDER, "extensions"),
            (GEMINI_FOLDER, "policies"),
        ],
        ..State::NONE
    },
    interface: Some(Interface {
        args: |options| {
            let asks = options.asks_for.map(|asks_for| asks_for.choose("default", "yolo"));
            let before =
                [flag("--model", options.model), flag("--resume", options.session), flag("--approval-mode", asks)];
            options.around(before, flag("--prompt-interactive", options.prompt))
        },
        has_modes: false,
        asking_env: |_| None,
        not_for_people: &["--acp", "--experimental-acp", "--approval-mode"],
        env_remove: &[],
    }),
};

fn last_digits(id: &str) -> &str {
    id.len().checked_sub(8).and_then(|at| id.get(at..)).unwrap_or(id)
}

/// Makes OpenCode ask; by default it asks for almost nothing. This overrides every configuration and leaves
/// OPENCODE_CONFIG_CONTENT to the user. It names the tools because a user's rule for one of them would win over `*`.
fn opencode_asks(own_rules: &str) -> Option<(&'static str, String)> {
    let tools =
        ["*", "bash", "edit", "webfetch", "task", "external_directory"].map(|tool| format!("\"{tool}\":\"ask\""));
    let rules: Vec<String> = tools.into_iter().chain(own_rules::appended(own_rules, |_| "ask")).collect();
    Some(("OPENCODE_PERMISSION", format!("{{{}}}", rules.join(","))))
}

/// OpenCode. Measured on 1.18.33: `--version` creates folders for data, state and cache; sessions are in a database, and
/// `export` prints one in any working directory.
pub(super) static OPENCODE: Native = Native {
    vendor: None,
    version: Some(Version {
        flag: "--version",
        folders: &["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"],
    }),
    login: Login {
        signs: &[
            (Sign::Variable("OPENCODE_AUTH_CONTENT"), LoggedIn::Yes, "OPENCODE_AUTH_CONTENT is set"),
            (Sign::File(OPENCODE_DATA, "auth.json", "\"type\""), LoggedIn::Yes, "it has stored credentials"),
            (
                Sign::File(OPENCODE_CONFIG, "opencode.json", "\"provider\""),
                LoggedIn::Unknown,
                "its configuration names its own provider",
            ),
        ],
        otherwise: (
            LoggedIn::Unknown,
            "it has no stored credentials, but can use keys from many variables, or no key at all",
        ),
    },
    sessions: Some(SessionStore::Command {
        args: |id| vec!["export".into(), id.into()],
        // The second message is for an id that does not have OpenCode's form.
        unknown: &["Session not found", "Expected a string starting with \"ses\""],
    }),
    modes: &["build", "plan"],
    own_rules: Some(own_rules::OPENCODE_RULES),
    state: State {
        reads: &[(OPENCODE_CONFIG, "")],
        folders: &[(OPENCODE_DATA, ""), (OPENCODE_STATE, ""), (OPENCODE_CACHE, "")],
        ..State::NONE
    },
    interface: Some(Interface {
        args: |options| {
            let allow = (options.asks_for == Some(AsksFor::Nothing)).then(|| "--auto".to_owned());
            let (model, mode) = (flag("--model", options.model), flag("--agent", options.mode));
            options.around([model, mode, flag("--session", options.session), allow], flag("--prompt", options.prompt))
        },
        has_modes: true,
        asking_env: opencode_asks,
        not_for_people: &["acp"],
        env_remove: &[],
    }),
};

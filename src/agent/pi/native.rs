//! Facts about pi that its dialect does not cover. Measured on 1.6.0.

use crate::agent::endpoint::{Endpoint, Wire};
use crate::agent::native::{
    Folder, Interface, InterfaceOptions, LoggedIn, Login, Native, SessionFiles, SessionStore, Sign, Version,
};

pub(super) const LOGIN: &str = "run `pi` and then `/login`, or set the provider's key";

const FOLDER: Folder = Folder { variable: ("PI_CODING_AGENT_DIR", ""), home: ".pi/agent" };

pub(crate) static NATIVE: Native = Native {
    version: Some(Version { flag: "--version", folders: &["PI_CODING_AGENT_DIR"] }),
    login: Login {
        signs: &[(Sign::File(FOLDER, "auth.json", "\""), LoggedIn::Yes, "it has stored credentials")],
        otherwise: (LoggedIn::Unknown, "a key may be in the environment"),
    },
    sessions: Some(SessionStore::File(SessionFiles {
        folder: FOLDER,
        paths: |id| vec![format!("sessions/*/*_{id}.jsonl")],
        first_line: |id| format!("\"id\":\"{id}\""),
        kept: None,
        loadable: None,
        cost: None,
        parts: None,
    })),
    interface: Some(Interface { args, has_modes: false, asking_env: |_| None, not_for_people: &[], env_remove: &[] }),
    ..Native::whole(&[(FOLDER, "")], &[(FOLDER, "settings.json"), (FOLDER, "extensions")])
};

/// pi asks for nothing, so that an interface that asks has only the tools that read.
fn args(options: &InterfaceOptions<'_>) -> Vec<String> {
    let reads = options.asks_for.and_then(|asks_for| asks_for.choose(Some("read,grep,find,ls"), None));
    let flags = [("--session", options.session), ("--model", options.model), ("--tools", reads)];
    let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?.to_owned()]));
    // An argument that begins with `@` would name a file.
    let guard = |prompt: &str| if prompt.starts_with('@') { " " } else { "" };
    let prompt = options.prompt.map(|prompt| ["--".to_owned(), format!("{}{prompt}", guard(prompt))]);
    options.around(given.flatten().map(Some), prompt.into_iter().flatten())
}

const MODELS: &str = r#"{"providers": {"stub": {
    "baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "{key}",
    "models": [{"id": "stub-model", "name": "Stub", "contextWindow": 100000, "maxTokens": 8000},
        {"id": "other-model", "name": "Other", "contextWindow": 100000, "maxTokens": 8000}]
}}}"#;

const SETTINGS: &str = r#"{"defaultProvider": "stub", "defaultModel": "stub-model", "quietStartup": true, "retry": {"maxRetries": 1, "baseDelayMs": 200}}"#;

pub(crate) static ENDPOINT: Endpoint = Endpoint {
    wire: Wire::ChatCompletions,
    model: Some(("stub/other-model", "other-model")),
    env: &[("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1")],
    files: &[(".pi/agent/models.json", MODELS), (".pi/agent/settings.json", SETTINGS)],
};

//! Facts about Claude Code that its dialect does not cover. Measured on 2.1.330: `--version` writes no files; a session
//! is one file, named by its id, in a folder for the working directory in which it started.

use super::errors::LOGIN;
use crate::agent::native::{
    Environment, Folder, Interface, InterfaceOptions, LoggedIn, Login, Native, OwnRules, RuleSource, SessionFiles,
    SessionStore, Sign, State, Version, flag,
};
use crate::agent::vendor::Vendor;
use crate::json::Object;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FOLDER: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: ".claude" };
/// The folder of `.claude.json`: beside the configuration folder, or inside it if the variable is set.
const BESIDE: Folder = Folder { variable: ("CLAUDE_CONFIG_DIR", ""), home: "" };

/// Measured: it works without writing its settings, which a later run outside a sandbox would obey. It writes its login in
/// place, but cannot lock it there.
pub(crate) const STATE: State = State {
    reads: &[(FOLDER, ""), (BESIDE, ".claude.json")],
    folders: &[(FOLDER, "projects"), (FOLDER, "sessions"), (FOLDER, "session-env"), (FOLDER, "shell-snapshots")],
    files: &[(FOLDER, ".credentials.json")],
    ..State::NONE
};

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
        parts: Some(super::stored::parts),
    })),
    modes: &["plan"],
    own_rules: Some(OwnRules { sources: hook_sources, kept: longest_hook }),
    state: STATE,
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

/// The longest time that a run gives the user's hooks at its end.
const HOOKS: Duration = Duration::from_secs(30);

/// The variable with the time of all hooks at the end of a session, in milliseconds.
const HOOK_TIME: &str = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS";

/// The settings that may declare hooks for the end of a session. Measured on 2.1.330: by itself, it gives them 1.5 s, and more
/// only if a file of settings declares it.
fn hook_sources(environment: Environment<'_>, cwd: &Path) -> Vec<RuleSource> {
    let own = FOLDER.path(environment).map(|folder| folder.join("settings.json"));
    let project = ["settings.json", "settings.local.json"].map(|name| cwd.join(".claude").join(name));
    let managed = PathBuf::from("/etc/claude-code/managed-settings.json");
    let files = own.into_iter().chain(project).chain([managed]).map(RuleSource::File);
    let variable = environment(HOOK_TIME).and_then(|value| value.into_string().ok()).map(RuleSource::Text);
    files.chain(variable).collect()
}

/// Returns seconds. Empty: none declares a hook.
fn longest_hook(texts: &[String]) -> String {
    let declared = |settings: Object<'_>| {
        let groups = settings.object("hooks")?.objects("SessionEnd");
        let hooks = groups.flat_map(|group| group.objects("hooks").collect::<Vec<_>>());
        hooks.filter_map(|hook| hook.number("timeout")).reduce(f64::max)
    };
    let time = |text: &String| match text.trim().parse::<f64>() {
        Ok(millis) => Some(millis / 1000.0),
        Err(_) => Object::parse(text).and_then(declared),
    };
    texts.iter().filter_map(time).reduce(f64::max).map(|time| time.to_string()).unwrap_or_default()
}

/// The time that Claude Code needs for the hooks at its end, beyond what it always needs.
pub(super) fn hook_time(longest: &str) -> Duration {
    let time = longest.parse().ok().and_then(|time| Duration::try_from_secs_f64(time).ok());
    time.map(|time| time.min(HOOKS)).unwrap_or_default()
}

fn args(options: &InterfaceOptions<'_>) -> Vec<String> {
    let flags = [
        flag("--model", options.model),
        flag("--agent", options.mode),
        flag("--resume", options.session),
        flag("--permission-mode", options.asks_for.map(|asks_for| asks_for.choose("default", "bypassPermissions"))),
    ];
    options.around(flags, options.prompt.into_iter().flat_map(|prompt| ["--".to_owned(), prompt.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::{hook_time, longest_hook};
    use std::time::Duration;

    #[test]
    fn a_hook_gets_the_time_that_it_declares() {
        let hooks = |timeout: &str| {
            format!(r#"{{"hooks":{{"SessionEnd":[{{"hooks":[{{"command":"x"}},{{"timeout":{timeout}}}]}}]}}}}"#)
        };
        for (texts, seconds) in [
            (vec![hooks("4"), "{}".into(), hooks("7.5")], 7.5),
            (vec![hooks("600")], 30.0),
            (vec![hooks("-1")], 0.0),
            (vec![hooks("\"x\"")], 0.0),
            (vec![hooks("1"), "2500".into()], 2.5),
            (vec!["not JSON".into()], 0.0),
        ] {
            assert_eq!(hook_time(&longest_hook(&texts)), Duration::from_secs_f64(seconds), "{texts:?}");
        }
    }
}

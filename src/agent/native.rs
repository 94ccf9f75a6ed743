//! Facts about an agent that its dialect does not cover: how to query its version and its login, where it stores its
//! sessions, and how to start its own interface. One [`Native`] per agent, in a file beside its driver, or in the file of
//! an ACP agent. The commands read the files and start the processes.

use super::Base;
use super::stored::StoredPart;
use super::vendor::Vendor;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::limits::ARGUMENT_BYTES;
use crate::protocol::words::word_enums;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the value of a variable by its name.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

#[derive(Debug)]
pub struct Native {
    /// `None`: its version cannot be queried.
    pub version: Option<Version>,
    /// `None`: it runs models of several vendors.
    pub vendor: Option<Vendor>,
    pub login: Login,
    /// `None`: `export` cannot read its sessions.
    pub sessions: Option<SessionStore>,
    /// `None`: it has no known interface of its own.
    pub interface: Option<Interface>,
    /// Its built-in modes, which shells complete. It may have more.
    pub modes: &'static [&'static str],
    /// The user's own rules that a run would replace, and other facts of this machine. `None`: a run needs none.
    pub own_rules: Option<OwnRules>,
    pub state: State,
}

/// The state of agents below HOME, with their logins, which a sandbox hides from other agents.
pub(crate) const OF_AGENTS: &[&str] = &[
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".local/share/opencode",
    ".local/state/opencode",
    ".cache/opencode",
    ".config/opencode",
    ".cursor",
    ".config/Cursor",
    ".config/github-copilot",
    ".copilot",
    ".qwen",
    ".qoder",
    ".factory",
    ".augment",
    ".junie",
    ".kimi",
    ".kimi-code",
    ".cline",
    ".hermes",
    ".config/kilo",
    ".local/share/kilo",
    ".vibe",
    ".pi",
    ".stakpak",
    ".config/goose",
    ".local/share/goose",
    ".openclaw",
];

/// The settings of agents in a project, which can run commands in a later run.
pub(crate) const IN_PROJECT: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/plugin",
    ".opencode/plugins",
];

pub(crate) type StatePlace = (Folder, &'static str);

/// The files of an agent, for a run with a sandbox, which hides them from other agents.
#[derive(Debug)]
pub struct State {
    /// The places that it reads: its configuration and its login.
    pub reads: &'static [StatePlace],
    /// The folders that it changes, which must exist.
    pub folders: &'static [StatePlace],
    /// The files that it changes in place, if they exist.
    pub files: &'static [StatePlace],
    /// Files that it changes in place and cannot make in a sandbox. They are made empty.
    pub made: &'static [StatePlace],
    /// Variables that move files of it into one of the folders.
    pub variables: &'static [(&'static str, StatePlace)],
    /// Its settings, which could run commands in a later run. The run reports their changes.
    pub settings: &'static [StatePlace],
    /// The reason why it does not work in a sandbox, as a clause.
    pub unfit: Option<&'static str>,
}

impl State {
    pub(crate) const NONE: State =
        State { reads: &[], folders: &[], files: &[], made: &[], variables: &[], settings: &[], unfit: None };
}

#[derive(Debug)]
pub struct OwnRules {
    /// The places that may hold some, for an environment and a working directory. A later one overrides an earlier one.
    pub sources: fn(Environment<'_>, &Path) -> Vec<RuleSource>,
    /// The part of them that a run must keep, in a form that only the driver reads. Empty: none.
    pub kept: fn(&[String]) -> String,
}

#[derive(Debug)]
pub enum RuleSource {
    /// The text of this file, if it exists.
    File(PathBuf),
    /// The path of this folder, if it exists.
    Folder(PathBuf),
    Text(String),
    /// `{"NAME":true}` if npm has installed this library in the folder, and in those of the others that exist.
    Library {
        name: &'static str,
        needed: PathBuf,
        others: Vec<PathBuf>,
    },
    /// The word of a [`Confinement`].
    Confinement,
}

word_enums! {
    /// The means by which an agent can confine its commands on this machine.
    pub(crate) enum Confinement {
        /// Namespaces of users and mounts, and all else.
        Namespaces = "namespaces",
        Landlock = "landlock",
        Nothing = "nothing",
    }
}

impl Confinement {
    /// A sentence without a full stop, for an agent whose commands run in namespaces. `None`: nothing is missing.
    pub(crate) fn effect(self) -> Option<&'static str> {
        match self {
            Confinement::Namespaces => None,
            Confinement::Landlock => Some(
                "The system forbids user namespaces, so the agent's own sandbox uses Landlock: a command can read what the \
                 user can read, and where nothing may be changed, the policy decides about each command that may change \
                 something",
            ),
            Confinement::Nothing => Some(
                "The system forbids user namespaces and has no Landlock, so the agent's own sandbox cannot start, and each \
                 of its commands fails: permit one of them",
            ),
        }
    }

    /// Without a kept rule, nothing is known to be missing.
    pub(crate) fn of(own_rules: &str) -> Confinement {
        Confinement::from_word(own_rules).unwrap_or(Confinement::Namespaces)
    }
}

#[derive(Debug)]
pub struct Version {
    pub flag: &'static str,
    /// The variables that name the agent's folders. During the query they point to an empty folder, so that the agent
    /// leaves no files behind.
    pub folders: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The variable that moves the folder, and the folder's path below the variable's value.
    pub variable: (&'static str, &'static str),
    /// The folder's path below HOME if the variable is not set.
    pub home: &'static str,
}

impl Folder {
    /// `None`: the environment does not determine it.
    pub fn path(&self, environment: Environment<'_>) -> Option<PathBuf> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (variable, below) = self.variable;
        set(variable).map(|folder| folder.join(below)).or_else(|| Some(set("HOME")?.join(self.home)))
    }
}

pub(super) const HOME: Folder = Folder { variable: ("", ""), home: "" };

/// The signs of a login, the most reliable first.
#[derive(Debug)]
pub struct Login {
    pub signs: &'static [(Sign, LoggedIn, &'static str)],
    pub otherwise: (LoggedIn, &'static str),
}

/// A sign of a login. Its value is neither read nor shown.
#[derive(Debug)]
pub enum Sign {
    Variable(&'static str),
    File(Folder, &'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedIn {
    /// The agent has credentials. Only the provider knows whether they are still valid.
    Yes,
    /// The agent has no credentials. A clause says how to get some.
    No(&'static str),
    /// The agent may have credentials in a place that we do not read.
    Unknown,
}

impl LoggedIn {
    pub fn word(self) -> &'static str {
        match self {
            LoggedIn::Yes => "yes",
            LoggedIn::No(_) => "no",
            LoggedIn::Unknown => "unknown",
        }
    }
}

impl Login {
    /// `holds`: whether a file exists and contains a text.
    pub fn look(
        &self,
        environment: Environment<'_>,
        holds: &dyn Fn(PathBuf, &str) -> bool,
    ) -> (LoggedIn, &'static str) {
        let shows = |sign: &Sign| match sign {
            Sign::Variable(name) => environment(name).is_some_and(|value| !value.is_empty()),
            Sign::File(folder, name, text) => {
                folder.path(environment).is_some_and(|folder| holds(folder.join(name), text))
            }
        };
        let found = self.signs.iter().find(|(sign, ..)| shows(sign));
        found.map_or(self.otherwise, |(_, meaning, why)| (*meaning, *why))
    }
}

#[derive(Debug)]
pub enum SessionStore {
    File(SessionFiles),
    Command {
        /// The arguments that print a session, for its id.
        args: fn(&str) -> Vec<String>,
        /// The agent's messages for an unknown session id.
        unknown: &'static [&'static str],
    },
}

#[derive(Debug)]
pub struct SessionFiles {
    pub folder: Folder,
    /// The possible paths for a session's id. Each part may have one `*`.
    pub paths: fn(&str) -> Vec<String>,
    /// A text in the file's first line, for a session's id.
    pub first_line: fn(&str) -> String,
    /// A text that the file has once the agent can load the session. `None`: it can from the beginning.
    pub kept: Option<&'static str>,
    /// The name that a session's file must have before the agent loads the session. `None`: any name.
    pub loadable: Option<fn(&str) -> String>,
    /// The cost of the session so far in US dollars, if a line of its file reports it. `None`: no line does.
    pub cost: Option<fn(&str) -> Option<f64>>,
    /// `None`: the format is not read.
    pub(crate) parts: Option<fn(&str) -> Vec<StoredPart>>,
}

#[derive(Debug)]
pub struct Interface {
    pub args: fn(&InterfaceOptions<'_>) -> Vec<String>,
    pub has_modes: bool,
    /// A variable that makes the agent ask permission for every action, with the user's [`OwnRules`] that it keeps.
    pub asking_env: fn(&str) -> Option<(&'static str, String)>,
    /// Prefixes of the arguments in the agent's entry that only its dialect needs.
    pub not_for_people: &'static [&'static str],
    pub env_remove: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsksFor {
    Everything,
    Nothing,
}

impl AsksFor {
    pub(super) fn choose<T>(self, everything: T, nothing: T) -> T {
        match self {
            AsksFor::Everything => everything,
            AsksFor::Nothing => nothing,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct InterfaceOptions<'a> {
    pub prompt: Option<&'a str>,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub session: Option<&'a str>,
    /// `None`: the agent's own settings decide.
    pub asks_for: Option<AsksFor>,
    pub args: &'a [String],
}

impl InterfaceOptions<'_> {
    /// The arguments in order: flags, the person's arguments, and the prompt, with what must stand right before it.
    pub(super) fn around(
        &self,
        flags: impl IntoIterator<Item = Option<String>>,
        prompt: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        flags.into_iter().flatten().chain(self.args.iter().cloned()).chain(prompt).collect()
    }
}

/// The facts about an unknown agent.
pub(crate) static NONE: Native = Native::of_state(State::NONE);

impl Native {
    pub(crate) const fn of_state(state: State) -> Native {
        Native {
            version: None,
            vendor: None,
            login: Login { signs: &[], otherwise: (LoggedIn::Unknown, "only the agent itself knows") },
            sessions: None,
            interface: None,
            modes: &[],
            own_rules: None,
            state,
        }
    }

    /// Only folders that the agent changes as a whole, with its settings in them.
    pub(crate) const fn whole(folders: &'static [StatePlace], settings: &'static [StatePlace]) -> Native {
        Native::of_state(State { folders, settings, ..State::NONE })
    }
}

impl Interface {
    /// The arguments in an agent's entry without those that only its dialect needs.
    pub fn for_people(&self, base: &Base) -> Vec<String> {
        let fits = |arg: &&String| !self.not_for_people.iter().any(|begin| arg.starts_with(begin));
        base.args.iter().filter(fits).cloned().collect()
    }

    /// Error: an argument is too long for a command line.
    pub fn arguments(&self, base: &Base, options: &InterfaceOptions<'_>) -> Result<Vec<String>, Failure> {
        let all: Vec<String> = self.for_people(base).into_iter().chain((self.args)(options)).collect();
        if all.iter().any(|arg| arg.len() > ARGUMENT_BYTES) {
            let message = format!(
                "The prompt or a flag's value is longer than {ARGUMENT_BYTES} bytes, the limit of a command line: put it into a file that the agent reads."
            );
            return Err(Failure::new(Code::InvalidRequest, message));
        }
        Ok(all)
    }
}

/// A flag with its value as one argument, so that no value is taken for a flag.
pub(super) fn flag(name: &str, value: Option<&str>) -> Option<String> {
    value.map(|value| format!("{name}={value}"))
}

/// Whether a text can be a session's id in a path: letters, digits, `-` and `_`, not beginning with `-`.
pub(crate) fn is_session_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&id.len()) && id.bytes().all(fits) && !id.starts_with('-')
}

/// Whether a name matches a pattern with at most one `*`.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::{AsksFor, Folder, InterfaceOptions, LoggedIn, Native, fits, is_session_id};
    use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
    use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
    use crate::agent::{Base, claude, codex};
    use std::path::PathBuf;

    #[test]
    fn a_session_id_cannot_leave_its_folder() {
        for good in ["ses_dff02d324ffep4", "f0497063-4977-4fc9-aeae-4a6c48bd6e50", "a"] {
            assert!(is_session_id(good), "{good}");
        }
        for bad in ["", "..", "a/b", "a*", "-a", "a.b", "a\0", "ä", &"a".repeat(129)] {
            assert!(!is_session_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_star_matches_any_text() {
        assert!(fits("a*b", "ab") && fits("a*b", "axxb") && fits("*", "x") && fits("a", "a"));
        assert!(!fits("a*a", "a") && !fits("a", "b") && !fits("x*", "y"));
    }

    #[test]
    fn a_folder_moves_with_its_variable() {
        let folder = Folder { variable: ("MOVED", "sub"), home: ".agent" };
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        assert_eq!(folder.path(&home), Some(PathBuf::from("/h/.agent")));
        let moved = |name: &str| Some(if name == "HOME" { "/h" } else { "/m" }.into());
        assert_eq!(folder.path(&moved), Some(PathBuf::from("/m/sub")));
        assert_eq!(folder.path(&|_| None), None);
    }

    fn line(native: &Native, base: &[&str], options: &InterfaceOptions<'_>) -> String {
        let mut entry = Base::command("x");
        entry.args = base.iter().map(|arg| (*arg).to_owned()).collect();
        native.interface.as_ref().unwrap().arguments(&entry, options).unwrap().join(" ")
    }

    #[test]
    fn every_interface_gets_its_options() {
        let args = ["--extra".to_owned()];
        let (prompt, model, mode, session) = (Some("-say hi"), Some("m"), Some("owl"), Some("s"));
        let all = InterfaceOptions { prompt, model, mode, session, asks_for: Some(AsksFor::Nothing), args: &args };
        let (gemini, opencode) = (GEMINI.native, OPENCODE.native);
        let wanted = [
            (
                &claude::NATIVE,
                "--model=m --agent=owl --resume=s --permission-mode=bypassPermissions --extra -- -say hi",
            ),
            (
                &codex::NATIVE,
                "resume --model=m --ask-for-approval=never --sandbox=workspace-write --extra -- s -say hi",
            ),
            (gemini, "--model=m --resume=s --approval-mode=yolo --extra --prompt-interactive=-say hi"),
            (opencode, "--model=m --agent=owl --session=s --auto --extra --prompt=-say hi"),
        ];
        for (native, line_wanted) in wanted {
            assert_eq!(line(native, &[], &all), line_wanted);
            assert_eq!(line(native, &["first"], &InterfaceOptions::default()), "first");
        }
        let asks = InterfaceOptions { asks_for: Some(AsksFor::Everything), ..InterfaceOptions::default() };
        for (native, line_wanted) in [
            (&claude::NATIVE, "--permission-mode=default"),
            (&codex::NATIVE, "--ask-for-approval=on-request --sandbox=read-only"),
            (gemini, "--approval-mode=default"),
            (opencode, ""),
        ] {
            assert_eq!(line(native, &[], &asks), line_wanted);
        }
        let asking = (opencode.interface.as_ref().unwrap().asking_env)(r#"{"permission":{"bash":{"rm *":"deny"}}}"#);
        assert!(asking.is_some_and(|(_, rules)| rules.ends_with(r#","bas?":{"rm *":"deny"}}"#)));
        assert_eq!(line(gemini, &["--acp", "--approval-mode=default", "-d"], &InterfaceOptions::default()), "-d");
        assert_eq!(line(opencode, &["acp"], &InterfaceOptions::default()), "");
    }

    #[test]
    fn a_prompt_that_is_too_long_is_refused() {
        let long = "x".repeat(131_080);
        let options = InterfaceOptions { prompt: Some(&long), ..InterfaceOptions::default() };
        assert!(claude::NATIVE.interface.as_ref().unwrap().arguments(&Base::command("x"), &options).is_err());
    }

    #[test]
    fn a_variable_or_a_file_shows_a_login() {
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        let nothing = |_: PathBuf, _: &str| false;
        assert_eq!(claude::NATIVE.login.look(&|_| None, &nothing).0.word(), "no");
        let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "x".into());
        assert_eq!(claude::NATIVE.login.look(&key, &nothing).0, LoggedIn::Yes);
        let empty = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "".into());
        assert_eq!(claude::NATIVE.login.look(&empty, &nothing).0.word(), "no");
        let file = |path: PathBuf, text: &str| path.ends_with(".codex/auth.json") && text == "\"tokens\"";
        assert_eq!(codex::NATIVE.login.look(&home, &file).0, LoggedIn::Yes);
        let provider = |path: PathBuf, text: &str| path.ends_with(".codex/config.toml") && text == "model_provider";
        assert_eq!(codex::NATIVE.login.look(&home, &provider).0, LoggedIn::Unknown);
    }
}

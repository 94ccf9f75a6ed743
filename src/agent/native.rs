//! What an agent is beside its dialect: how it tells its version, where a log-in shows, where its sessions lie, and how
//! its own interface is begun. Pure facts, one [`Native`] an agent, in a file beside its driver. The commands look at
//! the file system and start the processes.

use super::registry::{Agent, Dialect};
use super::{Base, Program, claude, codex};
use crate::failure::{Code, Failure};
use crate::protocol::limits::ARGUMENT_BYTES;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment of an agent: the value of a variable, by its name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// One agent's own ways.
#[derive(Debug)]
pub struct Native {
    /// How its program tells the version. `None`: it is not asked.
    pub version: Option<Version>,
    /// Where a log-in shows.
    pub login: Login,
    /// Where its sessions are. `None`: it keeps none, or not where they can be got.
    pub export: Option<Export>,
    /// How its own interface is begun. `None`: it has none that is known.
    pub open: Option<Open>,
}

/// How a program tells its version.
#[derive(Debug)]
pub struct Version {
    /// The argument for it.
    pub flag: &'static str,
    /// Variables that say where it keeps files. They point to an empty folder meanwhile: to ask leaves nothing behind.
    pub folders: &'static [&'static str],
}

/// A folder of an agent's.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The variable that moves it, and where it then is below that.
    pub variable: (&'static str, &'static str),
    /// Where it is below HOME otherwise.
    pub home: &'static str,
}

impl Folder {
    /// Where it is.
    pub fn path(&self, environment: Environment<'_>) -> Option<PathBuf> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (variable, below) = self.variable;
        set(variable).map(|folder| folder.join(below)).or_else(|| Some(set("HOME")?.join(self.home)))
    }
}

/// Where a log-in shows, from the surest sign to the last word.
#[derive(Debug)]
pub struct Login {
    /// Each sign, what it means, and a word why.
    pub signs: &'static [(Sign, LoggedIn, &'static str)],
    /// What it means when there is no sign at all.
    pub otherwise: (LoggedIn, &'static str),
}

/// A sign of a log-in. Its value is never looked at, and never shown.
#[derive(Debug)]
pub enum Sign {
    /// A variable that is set and not empty.
    Variable(&'static str),
    /// A file in a folder that has this text in it.
    File(Folder, &'static str, &'static str),
}

/// Whether an agent is logged in, as far as that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedIn {
    /// It has credentials. Whether they are still good only the provider knows.
    Yes,
    /// It has none.
    No,
    /// It may have them in a place that is not looked at.
    Unknown,
}

impl LoggedIn {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            LoggedIn::Yes => "yes",
            LoggedIn::No => "no",
            LoggedIn::Unknown => "unknown",
        }
    }
}

impl Login {
    /// What the signs say. `holds`: whether a file is there and has a text in it.
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

/// Where an agent's session can be got.
#[derive(Debug)]
pub enum Export {
    /// A file in this folder: the paths below it for a session's id, each part perhaps with one `*`, and a text that
    /// the file's first line has then.
    File {
        /// The folder.
        folder: Folder,
        /// The paths.
        paths: fn(&str) -> Vec<String>,
        /// The text.
        first_line: fn(&str) -> String,
    },
    /// What the agent prints when it is started with these arguments.
    Command {
        /// The arguments, for a session's id.
        args: fn(&str) -> Vec<String>,
        /// The agent's messages for an unknown session id.
        unknown: &'static [&'static str],
    },
}

/// How an agent's own interface is begun.
#[derive(Debug)]
pub struct Open {
    /// Its arguments.
    pub args: fn(&Wish<'_>) -> Vec<String>,
    /// Whether its arguments have a place for a mode.
    pub has_modes: bool,
    /// Added to its environment, where it is to ask for all that it can.
    pub asking_env: &'static [(&'static str, &'static str)],
    /// Arguments of the agent's entry that are for its dialect alone, by how they begin.
    pub not_for_people: &'static [&'static str],
    /// Taken out of its environment.
    pub env_remove: &'static [&'static str],
}

/// The actions for which an agent asks permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// All that it can ask for.
    Everything,
    /// Nothing.
    Nothing,
}

impl Asking {
    /// The one or the other.
    pub(super) fn choose<T>(self, everything: T, nothing: T) -> T {
        match self {
            Asking::Everything => everything,
            Asking::Nothing => nothing,
        }
    }
}

/// What a person wants of an agent's own interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'a> {
    /// The first thing to say.
    pub prompt: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// Its own mode.
    pub mode: Option<&'a str>,
    /// The session to go on with.
    pub session: Option<&'a str>,
    /// The actions for which the agent asks permission. `None`: its own settings decide.
    pub asking: Option<Asking>,
    /// Further arguments of the person's.
    pub args: &'a [String],
}

/// The ways of an agent: those of its dialect's own, by the program where a dialect has several.
pub fn of(agent: &Agent) -> &'static Native {
    match (agent.dialect, &agent.base.program) {
        (Dialect::Lines, _) | (_, Program::Myself) => &NONE,
        (Dialect::Claude, _) => &claude::NATIVE,
        (Dialect::Codex, _) => &codex::NATIVE,
        (Dialect::Acp, program) => super::acp::profile::of(program, &agent.name).native,
    }
}

/// An agent of which nothing is known.
pub static NONE: Native = Native {
    version: None,
    login: Login { signs: &[], otherwise: (LoggedIn::Unknown, "only the agent itself can tell") },
    export: None,
    open: None,
};

impl Open {
    /// The arguments of an agent's entry without those for its dialect.
    pub fn for_people(&self, base: &Base) -> Vec<String> {
        let fits = |arg: &&String| !self.not_for_people.iter().any(|begin| arg.starts_with(begin));
        base.args.iter().filter(fits).cloned().collect()
    }

    /// The whole command line after the program. Error: an argument that is too long.
    pub fn arguments(&self, base: &Base, wish: &Wish<'_>) -> Result<Vec<String>, Failure> {
        let all: Vec<String> = self.for_people(base).into_iter().chain((self.args)(wish)).collect();
        if all.iter().any(|arg| arg.len() > ARGUMENT_BYTES) {
            let message =
                "The prompt or a flag's value is too long for a command line: put it into a file that the agent reads.";
            return Err(Failure::new(Code::InvalidRequest, message));
        }
        Ok(all)
    }
}

/// A flag with its value in one word, so that no value is taken for a flag.
pub(super) fn flag(name: &str, value: Option<&str>) -> Option<String> {
    value.map(|value| format!("{name}={value}"))
}

/// Whether a text can be a session's id in a path: letters, digits, `-` and `_`, and no dash in front.
pub fn is_session_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&id.len()) && id.bytes().all(fits) && !id.starts_with('-')
}

/// Whether a name fits a pattern with at most one `*`.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asking, Folder, LoggedIn, Native, Wish, fits, is_session_id};
    use crate::agent::acp::profile::{GEMINI, OPENCODE};
    use crate::agent::{Base, claude, codex};
    use std::path::PathBuf;

    #[test]
    fn no_id_leads_out_of_a_folder() {
        for good in ["ses_dff02d324ffep4", "f0497063-4977-4fc9-aeae-4a6c48bd6e50", "a"] {
            assert!(is_session_id(good), "{good}");
        }
        for bad in ["", "..", "a/b", "a*", "-a", "a.b", "a\0", "ä", &"a".repeat(129)] {
            assert!(!is_session_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
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

    fn line(native: &Native, base: &[&str], wish: &Wish<'_>) -> String {
        let mut entry = Base::command("x");
        entry.args = base.iter().map(|arg| (*arg).to_owned()).collect();
        native.open.as_ref().unwrap().arguments(&entry, wish).unwrap().join(" ")
    }

    #[test]
    fn every_interface_is_begun_with_what_was_wanted() {
        let args = ["--extra".to_owned()];
        let (prompt, model, mode, session) = (Some("-say hi"), Some("m"), Some("owl"), Some("s"));
        let all = Wish { prompt, model, mode, session, asking: Some(Asking::Nothing), args: &args };
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
            assert_eq!(line(native, &["first"], &Wish::default()), "first");
        }
        let asks = Wish { asking: Some(Asking::Everything), ..Wish::default() };
        for (native, line_wanted) in [
            (&claude::NATIVE, "--permission-mode=default"),
            (&codex::NATIVE, "--ask-for-approval=on-request --sandbox=read-only"),
            (gemini, "--approval-mode=default"),
            (opencode, ""),
        ] {
            assert_eq!(line(native, &[], &asks), line_wanted);
        }
        assert!(opencode.open.as_ref().unwrap().asking_env.iter().any(|(name, _)| *name == "OPENCODE_PERMISSION"));
        assert_eq!(line(gemini, &["--acp", "--approval-mode=default", "-d"], &Wish::default()), "-d");
        assert_eq!(line(opencode, &["acp"], &Wish::default()), "");
    }

    #[test]
    fn a_prompt_that_is_too_long_is_refused() {
        let long = "x".repeat(131_080);
        let wish = Wish { prompt: Some(&long), ..Wish::default() };
        assert!(claude::NATIVE.open.as_ref().unwrap().arguments(&Base::command("x"), &wish).is_err());
    }

    #[test]
    fn a_log_in_shows_in_a_variable_or_in_a_file() {
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        let nothing = |_: PathBuf, _: &str| false;
        assert_eq!(claude::NATIVE.login.look(&|_| None, &nothing).0, LoggedIn::No);
        let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "x".into());
        assert_eq!(claude::NATIVE.login.look(&key, &nothing).0, LoggedIn::Yes);
        let empty = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "".into());
        assert_eq!(claude::NATIVE.login.look(&empty, &nothing).0, LoggedIn::No);
        let file = |path: PathBuf, text: &str| path.ends_with(".codex/auth.json") && text == "\"tokens\"";
        assert_eq!(codex::NATIVE.login.look(&home, &file).0, LoggedIn::Yes);
        let provider = |path: PathBuf, text: &str| path.ends_with(".codex/config.toml") && text == "model_provider";
        assert_eq!(codex::NATIVE.login.look(&home, &provider).0, LoggedIn::Unknown);
    }
}

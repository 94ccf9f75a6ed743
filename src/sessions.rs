//! The last sessions, for `--continue` and `sessions`: one small file per agent in a directory, and one per agent and
//! document of a workflow. For a directory with a `.spektacular`, the files are there, where git ignores them. For other
//! directories, they are in the user's state folder, so that a run leaves nothing in a directory outside projects.

use crate::clean::one_line;
use crate::config::Layers;
use crate::io::files::{OpenFolder, main_of, state_folder, worktrees_folder};
use crate::protocol::ids::{SessionId, SessionName};
use crate::protocol::limits;
use crate::protocol::request::Options;
use crate::protocol::words::WorkflowKind;
use crate::protocol::workflow::HOME;
use crate::suggest::{Typed, Unknown, nearest, plain_name};
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LOCAL: &str = "local";
/// The folder of session files in the local folder, and in the user's state folder.
const SESSIONS: &str = "sessions";
/// The maximum number of sessions in a file. Older ones are dropped.
const KEPT: usize = 20;
const WORDS: usize = 60;
const FILE_BYTES: u64 = (KEPT * (limits::SESSION_ID_BYTES + 4 * WORDS + 128)) as u64;

/// The maximum wait for other runs that store their sessions: a run that has ended must not stay.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) id: SessionId,
    /// The time when its last run ended, in seconds since 1970. 0: unknown.
    pub(crate) at: u64,
    /// The first words of that run's prompt, redacted. May be empty.
    pub(crate) words: String,
    pub(crate) name: Option<SessionName>,
    /// The cost of its stored runs, in US dollars. `None`: that of one of them is unknown.
    pub(crate) cost_usd: Option<f64>,
}

impl Stored {
    /// A session whose run ends now. `words`: the first words of the prompt, redacted.
    pub(crate) fn now(id: &SessionId, words: &str) -> Stored {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
        let words = one_line(words).replace('\t', " ").trim().chars().take(WORDS).collect();
        Stored { id: id.clone(), at, words, name: None, cost_usd: None }
    }

    /// Parses a line of a file: the id, the time, the words, the name and the cost, separated by tabs. Earlier versions
    /// wrote fewer of them. `None`: the line is invalid.
    fn read(line: &str) -> Option<Stored> {
        let mut parts = line.splitn(5, '\t');
        let id = SessionId::stored(parts.next()?)?;
        let at = parts.next().and_then(|at| at.parse().ok()).unwrap_or_default();
        let words = one_line(parts.next().unwrap_or_default()).chars().take(WORDS).collect();
        let name = parts.next().and_then(SessionName::new);
        let cost = parts.next().and_then(|cost| cost.parse().ok());
        Some(Stored { id, at, words, name, cost_usd: cost.filter(|cost: &f64| cost.is_finite() && *cost >= 0.0) })
    }

    fn line(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let cost = self.cost_usd.map(|cost| cost.to_string()).unwrap_or_default();
        let line = format!("{}\t{}\t{}\t{name}\t{cost}", &*self.id, self.at, self.words);
        line.trim_end_matches('\t').to_owned() + "\n"
    }

    /// The session after a further run: it keeps its name, and the costs add up.
    fn after(self, earlier: Option<&Stored>) -> Stored {
        let Some(earlier) = earlier else { return self };
        let cost_usd = self.cost_usd.zip(earlier.cost_usd).map(|(cost, earlier)| cost + earlier);
        Stored { name: self.name.clone().or_else(|| earlier.name.clone()), cost_usd, ..self }
    }

    pub(crate) fn is_named(&self, typed: &str) -> bool {
        &*self.id == typed || self.name.as_deref() == Some(typed)
    }
}

pub(crate) struct SessionFile {
    cwd: PathBuf,
    name: String,
}

impl SessionFile {
    /// The file for the run that these options describe. `None`: the agent or the directory does not exist.
    pub(crate) fn of_run(layers: &Layers, options: Options) -> Option<SessionFile> {
        let (options, agent) = layers.under(options);
        let agent = agent?;
        let cwd = Path::new(options.cwd.as_deref().unwrap_or(".")).canonicalize().ok()?;
        is_plain(&agent.name).then(|| SessionFile { cwd, name: agent.name.clone() })
    }

    /// `None`: the agent's name cannot be part of a file name.
    pub(crate) fn of_document(project: &Path, kind: WorkflowKind, document: &str, agent: &str) -> Option<SessionFile> {
        let name = format!("{}.{document}.{agent}", kind.word());
        is_plain(agent).then(|| SessionFile { cwd: project.to_owned(), name })
    }

    pub(crate) fn id(&self) -> Option<SessionId> {
        self.all().into_iter().next().map(|stored| stored.id)
    }

    /// Newest first.
    pub(crate) fn all(&self) -> Vec<Stored> {
        self.text().map(|text| text.lines().map_while(Stored::read).take(KEPT).collect()).unwrap_or_default()
    }

    fn text(&self) -> Option<String> {
        let (root, parts) = self.place()?;
        let mut folder = OpenFolder::open(&root).ok()?;
        for part in &parts {
            folder = folder.inner(part).ok()?;
        }
        let file = folder.file(self.name.as_ref(), OFlags::RDONLY, 0).ok()?;
        file.metadata().ok().filter(Metadata::is_file)?;
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// The folder with the agents' files, as an existing directory and the path below it. `None`: the environment does
    /// not name a home directory.
    fn place(&self) -> Option<(PathBuf, Vec<OsString>)> {
        if self.has_folder() {
            return Some((self.cwd.clone(), [HOME, LOCAL, SESSIONS].map(OsString::from).to_vec()));
        }
        let names = self.cwd.components().filter_map(|part| match part {
            Component::Normal(name) => Some(stand_in(name)),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        });
        Some((state_folder()?, ["spektacular", SESSIONS].map(OsString::from).into_iter().chain(names).collect()))
    }

    pub(crate) fn moved_to(self, cwd: PathBuf) -> SessionFile {
        SessionFile { cwd, ..self }
    }

    /// The file for the agent that took over, if one did. `None`: its name cannot be part of a file name.
    pub(crate) fn of_agent(self, took_over: Option<&str>) -> Option<SessionFile> {
        let name = took_over.unwrap_or(&self.name);
        is_plain(name).then(|| SessionFile { name: name.to_owned(), ..self })
    }

    pub(crate) fn has_folder(&self) -> bool {
        self.cwd.join(HOME).symlink_metadata().is_ok()
    }

    /// Stores a session atomically, ahead of the earlier ones. Does nothing without a project and a home directory.
    /// Returns whether it has its name, which a run that began at the same time may have taken. Error: the file cannot be
    /// written. Symbolic links are not followed, because the directory may come from a stranger.
    pub(crate) fn keep(&self, stored: &Stored) -> io::Result<bool> {
        let mut is_named = true;
        self.change(|all| {
            let all = with(all, stored.clone());
            is_named = stored.name.is_none() || all.first().is_some_and(|first| first.name == stored.name);
            all
        })?;
        Ok(is_named)
    }

    /// Removes a session. The agent keeps its own files. Error: see [`SessionFile::keep`].
    pub(crate) fn forget(&self, id: &SessionId) -> io::Result<()> {
        self.change(|mut all| {
            all.retain(|one| one.id != *id);
            all
        })
    }

    fn change(&self, changed: impl FnOnce(Vec<Stored>) -> Vec<Stored>) -> io::Result<()> {
        let Some((root, parts)) = self.place() else { return Ok(()) };
        let folder = enter(&root, &parts)?;
        // Runs that end at the same time must not drop each other's sessions.
        if folder.lock(LOCK_LIMIT).is_none() {
            return Err(ErrorKind::TimedOut.into());
        }
        let lines: String = changed(self.all()).iter().map(Stored::line).collect();
        let new = OsString::from(format!("{}.{}.new", self.name, std::process::id()));
        folder.replace_unsynced(self.name.as_ref(), &new, 0o600, lines.as_bytes())
    }
}

/// The name of the folder that stands for a directory. The names of session files never begin with a plus sign, so that
/// the file of agent `claude` for one directory leaves room for its subdirectory `claude`.
fn stand_in(directory: &OsStr) -> OsString {
    let mut name = OsString::from("+");
    name.push(directory);
    name
}

/// Creates the folder at `parts` below `root`. No link below the root is followed.
fn enter(root: &Path, parts: &[OsString]) -> io::Result<OpenFolder> {
    // Other users must not read the words of a prompt.
    let existing = |made: io::Result<()>| made.or_else(|error| if root.is_dir() { Ok(()) } else { Err(error) });
    existing(DirBuilder::new().recursive(true).mode(0o700).create(root))?;
    let mut folder = OpenFolder::open(root)?;
    for part in parts {
        folder = folder.enter(part)?;
        if part == LOCAL {
            folder.ignore()?;
        }
    }
    Ok(folder)
}

/// Creates the folder of all worktrees of runs. Error: the system's, or the environment names no home directory.
pub(crate) fn make_worktrees_folder() -> io::Result<PathBuf> {
    let root = state_folder().ok_or(ErrorKind::NotFound)?;
    enter(&root, &["spektacular", "worktrees"].map(OsString::from))?;
    worktrees_folder().ok_or_else(|| ErrorKind::NotFound.into())
}

/// The sessions with this one ahead of them. A name stays with the session that had it first.
fn with(mut all: Vec<Stored>, mut stored: Stored) -> Vec<Stored> {
    let earlier = all.iter().position(|other| other.id == stored.id).map(|at| all.remove(at));
    stored.name = stored.name.filter(|name| all.iter().all(|other| other.name.as_ref() != Some(name)));
    all.insert(0, stored.after(earlier.as_ref()));
    while all.len() > KEPT {
        // A session with a name stays longer than the others.
        let unnamed = all.iter().rposition(|one| one.name.is_none()).filter(|at| *at > 0);
        all.remove(unnamed.unwrap_or(all.len() - 1));
    }
    all
}

/// Whether an agent's name can be part of a file name. It may come from a configuration.
fn is_plain(agent: &str) -> bool {
    agent.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The last sessions of all agents in a directory, with the names of their agents, the newest first.
pub(crate) fn newest<'a>(layers: &'a Layers, cwd: Option<&Path>) -> Vec<(&'a str, Stored)> {
    let cwd = cwd.map(|path| path.to_string_lossy().into_owned());
    let mut found: Vec<(&str, Stored)> = Vec::new();
    for agent in layers.agents.iter() {
        let options = Options { agent: Some(agent.name.clone()), cwd: cwd.clone(), ..Options::default() };
        let stored = SessionFile::of_run(layers, options).map(|last| last.all()).unwrap_or_default();
        found.extend(stored.into_iter().map(|stored| (agent.name.as_str(), stored)));
    }
    found.sort_by_key(|(_, stored)| std::cmp::Reverse(stored.at));
    found
}

/// The one of these sessions that a person names by its id or its name. Error: none is, in words that name a similar one.
pub(crate) fn find<'a, 'b>(found: &'b [(&'a str, Stored)], typed: &str) -> Result<&'b (&'a str, Stored), String> {
    let by_id = found.iter().find(|(_, stored)| &*stored.id == typed);
    by_id.or_else(|| found.iter().find(|(_, stored)| stored.is_named(typed))).ok_or_else(|| {
        let known = found.iter().flat_map(|(_, stored)| stored.name.as_deref().into_iter().chain([&*stored.id]));
        let unknown = Unknown { what: "session", dashes: "", typed: Typed::Value(typed), place: "" };
        unknown.message(known, "`spektacular sessions` lists them.")
    })
}

/// The id of the session that `--continue` resumes. Error: the agent of these options has none in this directory, in
/// words that name the agent which has one.
pub(crate) fn continued(layers: &Layers, options: Options) -> Result<SessionId, String> {
    let last = SessionFile::of_run(layers, options);
    if let Some(id) = last.as_ref().and_then(SessionFile::id) {
        return Ok(id);
    }
    let other = last.as_ref().and_then(|last| newest(layers, Some(&last.cwd)).into_iter().next());
    let remedy = match &other {
        Some((agent, _)) => format!("The last session here is from {agent}: add --agent {agent}."),
        None => "Start one without --continue.".to_owned(),
    };
    let agent = last.map_or_else(|| "the agent".to_owned(), |last| last.name);
    Err(format!("--continue: {agent} has no earlier session in this directory. {remedy}"))
}

/// The id of the session that `--session` names by its id or its name. An unknown text with a digit is taken for an id
/// that the agent knows: agents choose ids by chance. Error: the text is an unknown name, or that of another agent's session.
pub(crate) fn resumed(layers: &Layers, options: Options, typed: &SessionId) -> Result<SessionId, String> {
    let Some(file) = SessionFile::of_run(layers, options) else { return Ok(typed.clone()) };
    let own = file.all();
    let by_id = own.iter().find(|stored| stored.id == *typed);
    if let Some(stored) = by_id.or_else(|| own.iter().find(|stored| stored.is_named(typed))) {
        return Ok(stored.id.clone());
    }
    let all = newest(layers, Some(&file.cwd));
    if let Some((agent, stored)) = all.iter().find(|(_, stored)| stored.is_named(typed)) {
        let shown = stored.name.as_deref().unwrap_or(&stored.id);
        return Err(format!("--session: {shown} is a session of {agent}: add --agent {agent}."));
    }
    // Gemini CLI's word for the last one.
    if &**typed == "latest" {
        return Err("No session is named latest. To resume the last one, use --continue.".to_owned());
    }
    let names = own.iter().filter_map(|stored| stored.name.as_deref());
    match (nearest(typed, names), plain_name(typed)) {
        (Some(name), Some(typed)) => Err(format!("Unknown session {typed}. Did you mean {name}?")),
        (Some(name), None) => Err(format!("Unknown session. Did you mean {name}?")),
        (None, _) if typed.bytes().any(|byte| byte.is_ascii_digit()) => Ok(typed.clone()),
        (None, typed) => {
            let typed = typed.map(|typed| format!(" {typed}")).unwrap_or_default();
            Err(format!(
                "Unknown session{typed}. `spektacular sessions` lists them; an id of the agent's own has a digit."
            ))
        }
    }
}

/// The session with this name or id that a run in a worktree of the project stored, and its directory. `None`: there is
/// none, or a session in the directory of these options has it.
pub(crate) fn stored_in_worktree(layers: &Layers, options: Options, typed: &SessionId) -> Option<(SessionId, PathBuf)> {
    let file = SessionFile::of_run(layers, options)?;
    if file.all().iter().any(|stored| stored.is_named(typed)) {
        return None;
    }
    let from = file.cwd.clone();
    let mut trees = std::fs::read_dir(worktrees_folder()?).ok()?.flatten().map(|entry| entry.path());
    trees.find_map(|cwd| {
        let file = SessionFile { cwd, name: file.name.clone() };
        if !main_of(&file.cwd).is_some_and(|main| from.starts_with(main)) {
            return None;
        }
        let stored = file.all().into_iter().find(|stored| stored.is_named(typed))?;
        Some((stored.id, file.cwd))
    })
}

/// Fails if another session in the directory of these options has this name. `resumed`: the session that may have it.
pub(crate) fn is_free(
    layers: &Layers,
    options: Options,
    name: &SessionName,
    resumed: Option<&SessionId>,
) -> Result<(), String> {
    let all = SessionFile::of_run(layers, options).map(|file| newest(layers, Some(&file.cwd))).unwrap_or_default();
    let taken = |stored: &Stored| stored.name.as_ref() == Some(name) && Some(&stored.id) != resumed;
    match all.iter().find(|(_, stored)| taken(stored)) {
        Some((agent, _)) => Err(format!(
            "--name: a session of {agent} is already named {name}. To continue it: --resume {name}. To free the name: \
             spektacular sessions rm {name}.",
            name = &**name
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{SessionFile, Stored, with};
    use crate::protocol::ids::{SessionId, SessionName};
    use crate::protocol::words::WorkflowKind;
    use std::path::Path;

    #[test]
    fn an_agent_whose_name_is_no_plain_word_has_no_file() {
        let of = |agent| SessionFile::of_document(Path::new("/"), WorkflowKind::Spec, "a", agent);
        for agent in ["claude", "my-Agent_2"] {
            assert_eq!(of(agent).unwrap().name, format!("spec.a.{agent}"));
        }
        for agent in ["../a", "a/b", "a.b", "a b", "a\0", "ä"] {
            assert!(of(agent).is_none(), "{agent:?}");
        }
    }

    #[test]
    fn a_line_is_an_id_a_time_words_a_name_and_a_cost() {
        let stored = Stored::now(&SessionId::stored("a-1").unwrap(), " fix\tthe \u{1b}[31mtest\nand more");
        assert_eq!(stored.line().matches('\t').count(), 2, "as an earlier version wrote it");
        let named = Stored { name: SessionName::new("back.end"), cost_usd: Some(0.25), ..stored.clone() };
        let unnamed = Stored { cost_usd: Some(2.0), ..stored.clone() };
        let priceless = Stored { name: SessionName::new("b"), ..stored.clone() };
        for one in [named, unnamed, priceless] {
            assert_eq!(Stored::read(one.line().trim_end_matches('\n')), Some(one));
        }
        let spoilt = Stored::read("a\t1\tx\t--yes\t-1").unwrap();
        assert_eq!((spoilt.name, spoilt.cost_usd), (None, None));
        assert_eq!(Stored::read(stored.line().trim_end_matches('\n')), Some(stored.clone()));
        assert!(stored.words.starts_with("fix the test"), "{stored:?}");
        let id = SessionId::stored("a").unwrap();
        let old = Stored { id, at: 0, words: String::new(), name: None, cost_usd: None };
        assert_eq!(Stored::read("a"), Some(old), "a file of an earlier version");
        for line in ["", "\t1\tx", "--yes\t1\tx", "../x", "a b", &"x".repeat(2000)] {
            assert_eq!(Stored::read(line), None, "{line:?}");
        }
    }

    #[test]
    fn runs_that_end_with_one_name_give_it_to_the_first_of_them() {
        let run =
            |id: &str| Stored { name: SessionName::new("one"), ..Stored::now(&SessionId::stored(id).unwrap(), "x") };
        let all = ["a", "b", "a", "c"].into_iter().fold(Vec::new(), |all, id| with(all, run(id)));
        let named: Vec<&str> = all.iter().filter(|one| one.name.is_some()).map(|one| &*one.id).collect();
        assert_eq!((all.len(), named), (3, vec!["a"]));
    }

    #[test]
    fn a_further_run_keeps_the_name_and_adds_its_cost() {
        let id = SessionId::stored("a").unwrap();
        let run = |name: &str, cost_usd| Stored { name: SessionName::new(name), cost_usd, ..Stored::now(&id, "x") };
        let second = run("", Some(0.5)).after(Some(&run("one", Some(0.25))));
        assert_eq!((second.name.as_deref(), second.cost_usd), (Some("one"), Some(0.75)));
        let renamed = run("two", None).after(Some(&run("one", Some(0.25))));
        assert_eq!((renamed.name.as_deref(), renamed.cost_usd), (Some("two"), None));
        assert_eq!(run("", Some(1.0)).after(None).cost_usd, Some(1.0));
    }
}

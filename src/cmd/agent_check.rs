//! The findings of `agents check` for each agent: availability, version, login, capabilities. A check calls no model
//! and downloads nothing.

use crate::agent::native::{Confinement, LoggedIn, Native};
use crate::agent::registry::Agent;
use crate::agent::{Base, Program, npx};
use crate::config::Layers;
use crate::engine::flaw_in_file;
use crate::io::files::open_regular;
use crate::process::own_rules::kept_rules;
use crate::process::query::{Asked, NoAnswer, Queries, find, variable};
use crate::protocol::outbound::Capabilities;
use crate::protocol::request::Options;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const VERSION_LIMIT: Duration = Duration::from_secs(15);
const FILE_BYTES: u64 = 1 << 20;

pub(super) struct Check {
    pub(super) path: Option<PathBuf>,
    pub(super) version: Option<String>,
    /// The reason why a run could not start it. `None`: it is available.
    pub(super) problem: Option<String>,
    /// The means that its runs lack on this machine. `None`: none is known to be missing.
    pub(super) lacks: Option<&'static str>,
    /// Whether the agent is logged in, and the evidence.
    pub(super) logged_in: (LoggedIn, &'static str),
    pub(super) capabilities: Capabilities,
}

/// Checks all agents at the same time, because some take seconds to report a version. Available ones come first.
pub(super) fn checks<'a>(agents: &[&'a Agent], layers: &Layers) -> Vec<(&'a Agent, Check)> {
    let asking = Queries::begin();
    // npm creates this folder even if it stores nothing.
    let npm = std::env::var_os("HOME").map(|home| Path::new(&home).join(".npm")).filter(|folder| !folder.exists());
    let mut found: Vec<(&Agent, Check)> = std::thread::scope(|scope| {
        let ask = |(number, agent): (usize, &&'a Agent)| {
            let (agent, asking) = (*agent, &asking);
            (agent, scope.spawn(move || answer(agent, asking, number)))
        };
        let threads = agents.iter().enumerate().map(ask).collect::<Vec<_>>();
        let crashed = || Err("the check itself failed".to_owned());
        let answers = threads.into_iter().map(|(agent, thread)| (agent, thread.join().unwrap_or_else(|_| crashed())));
        answers.map(|(agent, answer)| (agent, check(agent, answer, layers))).collect()
    });
    drop(asking);
    if let Some(folder) = npm {
        // This removes the folder only if it is empty.
        let _ = std::fs::remove_dir(folder);
    }
    found.sort_by_key(|(_, check)| check.problem.is_some());
    found
}

fn check(agent: &Agent, answer: Result<Option<String>, String>, layers: &Layers) -> Check {
    let logged_in = login(agent);
    let (version, problem) = answer.map_or_else(|problem| (None, Some(problem)), |version| (version, None));
    let (path, lacks) = (find(&entry_here(agent)), lacks(agent));
    Check { path, version, problem, lacks, logged_in, capabilities: capabilities(agent, layers) }
}

fn lacks(agent: &Agent) -> Option<&'static str> {
    let rules = agent.native().own_rules.as_ref()?;
    let cwd = std::env::current_dir().unwrap_or_default();
    Confinement::of(&kept_rules(rules, &|name| variable(&agent.base, name), &cwd)).effect()
}

/// The entry that a run would start here: the agent's own, or npx in place of a program that is missing.
fn entry_here(agent: &Agent) -> Cow<'_, Base> {
    let by_npx = || npx::base_in_place_of(&agent.base).filter(|base| find(base).is_some());
    let base = if find(&agent.base).is_some() { None } else { by_npx() };
    base.map_or(Cow::Borrowed(&agent.base), Cow::Owned)
}

pub(super) fn login(agent: &Agent) -> (LoggedIn, &'static str) {
    match agent.base.program {
        Program::Myself => (LoggedIn::Yes, "it needs no login"),
        Program::Command(_) => agent.native().login.look(&|name| variable(&agent.base, name), &|path, text| {
            read(&path).is_some_and(|content| content.contains(text))
        }),
    }
}

/// The capabilities that run.started would show.
pub(super) fn capabilities(agent: &Agent, layers: &Layers) -> Capabilities {
    let (options, _) = layers.under(Options { agent: Some(agent.name.clone()), ..Options::default() });
    let cwd = std::env::current_dir().unwrap_or_default();
    agent.capabilities(options.resolve("{prompt}".into(), agent.name.clone(), cwd))
}

/// `number`: the agent's own. Error: the reason why the program cannot be started.
fn answer(agent: &Agent, asking: &Queries, number: usize) -> Result<Option<String>, String> {
    let base = &*entry_here(agent);
    let program = match &base.program {
        Program::Myself => {
            return flaw_in_file(agent).map_or_else(|| Ok(Some(env!("CARGO_PKG_VERSION").to_owned())), Err);
        }
        Program::Command(name) => name,
    };
    let native = agent.native();
    let Some(question) = Question::version_of(agent, base, native) else {
        // An unknown program may start work instead of printing a version.
        let path = find(base).ok_or_else(|| missing(program))?;
        let may_run = path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
        return if may_run { Ok(None) } else { Err(not_started(program)) };
    };
    let folder = asking.folder().map(|folder| folder.join(number.to_string()));
    let folder = folder.filter(|folder| std::fs::create_dir(folder).is_ok());
    let folder = folder.ok_or("a temporary directory cannot be created")?;
    let args = question.args.clone();
    let env = question.environment(&folder);
    // The query runs in an empty directory, because some programs load files from the current one.
    let cwd = Some(folder.as_path());
    let asked = Asked { cwd, base, args, env, limit: VERSION_LIMIT, bytes: FILE_BYTES };
    let line = || format!("`{program} {}`", question.args.join(" "));
    match asking.ask(&asked) {
        Ok(answer) if answer.code == Some(0) => Ok(version(answer.output)),
        Ok(answer) if question.npx && npx::is_missing(&String::from_utf8_lossy(&answer.errors)) => {
            Err("npx has not downloaded it yet; the first run will".into())
        }
        Ok(answer) => Err(match answer.code {
            Some(code) => format!("{} failed with exit code {code}", line()),
            None => format!("{} was killed by a signal", line()),
        }),
        Err(NoAnswer::Missing) => Err(missing(program)),
        Err(NoAnswer::NotStarted) => Err(not_started(program)),
        Err(NoAnswer::Late) => Err(format!("{} took longer than {} s", line(), VERSION_LIMIT.as_secs())),
        Err(NoAnswer::TooLong) => Err(format!("{} printed more than 1 MiB", line())),
    }
}

fn missing(program: &str) -> String {
    let place = if program.contains('/') { "" } else { " on the PATH" };
    format!("{program} was not found{place}")
}

fn not_started(program: &str) -> String {
    format!("{program} cannot be started: check its permissions and its interpreter")
}

struct Question {
    args: Vec<String>,
    /// Variables that move the program's files to an empty folder.
    folders: &'static [&'static str],
    npx: bool,
}

impl Question {
    /// `None`: the agent's version cannot be queried.
    fn version_of(agent: &Agent, base: &Base, native: &'static Native) -> Option<Question> {
        let folders = native.version.as_ref().map_or(&[] as &[&str], |version| version.folders);
        let flag = native.version.as_ref().map(|version| version.flag).or(agent.version);
        let (mut args, npx) = match (npx::command(base), &native.version, &native.interface) {
            (Some(command), ..) => (command, true),
            (None, Some(_), Some(open)) => (open.for_people(base), false),
            (None, Some(_), None) => (base.args.clone(), false),
            (None, None, _) => (Vec::new(), false),
        };
        if let (true, None, Some(program)) =
            (base.package.is_none() && agent.base.package.is_some(), flag, args.last_mut())
        {
            // It might start work. Whether its package is there shows any program beside it.
            *program = "true".into();
        } else {
            args.extend(flag.or(npx.then_some("--version"))?.split(' ').map(str::to_owned));
        }
        Some(Question { args, folders, npx })
    }

    fn environment(&self, scratch: &Path) -> Vec<(String, OsString)> {
        let folders = self.folders.iter().chain(&["TMPDIR"]).map(|name| ((*name).to_owned(), scratch.into()));
        let npm = npx::OFFLINE.iter().map(|(name, value)| ((*name).to_owned(), value.into()));
        let logs = (npx::LOGS.to_owned(), scratch.join("npm").into());
        folders.chain(npm.chain([logs]).filter(|_| self.npx)).collect()
    }
}

/// Finds the version in a program's output, where it stands alone, before a name or after one.
fn version(output: Vec<u8>) -> Option<String> {
    let output = String::from_utf8(output).ok()?;
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let words = output.split_whitespace();
    let word = words.map(|word| word.trim_start_matches('v').trim_end_matches('.')).find(is_version)?;
    (word.len() <= 64 && word.chars().all(|c| c.is_ascii_graphic())).then(|| word.to_owned())
}

fn read(path: &Path) -> Option<String> {
    let mut content = Vec::new();
    open_regular(path).ok()?.take(FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

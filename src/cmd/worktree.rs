//! `--worktree`: a run in a fresh git worktree of its own. It is made before the run starts, and removed after the run if
//! it holds no work.

use crate::clean::{one_line, shell_word};
use crate::cli::{Adhoc, WorktreeName};
use crate::config::Config;
use crate::engine::{Awaited, Prepared};
use crate::io::failpoint::point;
use crate::io::output::{diagnose, explain};
use crate::process::git::copies::{BYTES_MAX, NotTaken};
use crate::process::git::worktree::{AddFailure, NoRepository, Repository, Work, Worktree, is_incomplete};
use crate::process::query::Until;
use crate::process::tree::nonce;
use crate::protocol::failure::Failure;
use crate::protocol::words::WorkflowKind;
use crate::sessions::{SessionFile, make_worktrees_folder};
use crate::workflow::plan::Digest;
use crate::workflow::project::{Argument, Project, shown};
use crate::workflow::set_up::SetUp;
use crate::workflow::stop::Stop;
use crate::workflow::workflow_run::WorkflowRun;
use crate::workflow::{counted, first_of};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};
use time::OffsetDateTime;
use time::macros::format_description;

/// The time limit for the checkout, which may be of a large repository. A cancel ends it sooner.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// For the looks before the checkout: git reads files that its configuration names, and one may be a pipe.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for the look at a worktree after its run.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The time that a run without a worktree waits until its incomplete checkout is removed.
const ABANDONED_LIMIT: Duration = Duration::from_secs(10);
/// The time from a request to end, or a deadline, to the end of the looks at the worktree; and the least time for them.
const ASKED_LIMIT: Duration = Duration::from_millis(3500);
const ASKED_LEAST: Duration = Duration::from_millis(300);
const SET_UP_LIMIT: Duration = Duration::from_secs(600);
pub(super) const SHORT_COMMIT: usize = 12;

/// The command that goes on in a worktree.
#[derive(Clone)]
pub(super) struct Again {
    workflow: Option<WorkflowKind>,
    /// The command with its flags, without `--cwd` and the argument.
    words: Vec<String>,
    /// The flags to add, whose values may be secret.
    unshown: Vec<&'static str>,
    /// SPEC or PLAN.
    argument: Option<String>,
}

impl Again {
    pub(super) fn of(adhoc: &Adhoc) -> Again {
        let command = match adhoc.workflow {
            None if adhoc.options.conversation == Some(true) => "chat",
            None => "adhoc",
            Some(kind) => kind.word(),
        };
        let mut words = vec![command.to_owned()];
        let (secret, shown): (Vec<_>, Vec<_>) = adhoc.repeated.iter().partition(|flag| flag.may_be_secret);
        words.extend(shown.iter().flat_map(|flag| &flag.words).map(|word| word.to_string_lossy().into_owned()));
        let mut unshown: Vec<&'static str> = secret.iter().map(|flag| flag.name).collect();
        unshown.sort_unstable();
        unshown.dedup();
        words.extend(adhoc.fields.name.iter().flat_map(|name| ["--name".to_owned(), name.clone()]));
        if adhoc.workflow.is_some_and(|kind| kind != WorkflowKind::Implement) {
            words.push("--continue".to_owned());
        }
        let has_argument = matches!(adhoc.workflow, Some(WorkflowKind::Plan | WorkflowKind::Implement));
        let argument = adhoc.words.first().filter(|_| has_argument).cloned();
        Again { workflow: adhoc.workflow, words, unshown, argument }
    }

    /// The name of the specification that the run in this worktree made, if it made one and its command names none.
    fn made_name(&self, cwd: &Path) -> Option<String> {
        if self.workflow != Some(WorkflowKind::Spec) || self.words.iter().any(|word| word == "--name") {
            return None;
        }
        let specs = |folder: &Path| Project::around(folder).ok()?.specs().ok();
        let known: Vec<String> = specs(&std::env::current_dir().ok()?)?.into_iter().map(|spec| spec.name).collect();
        let mut made = specs(cwd)?.into_iter().map(|spec| spec.name).filter(|name| !known.contains(name));
        made.next().filter(|_| made.next().is_none())
    }

    /// `is_stored`: whether the session of a task can be continued.
    fn line(&self, cwd: &Path, is_stored: bool) -> String {
        let mut words = vec!["spektacular".to_owned()];
        words.extend(self.words.iter().map(|word| shell(Path::new(word))));
        words.extend(self.made_name(cwd).map(|name| format!("--name {}", shell(Path::new(&name)))));
        words.push(format!("--cwd {}", shell(cwd)));
        if self.workflow.is_none() && is_stored {
            words.push("--continue".to_owned());
        }
        // A path on the command line is relative to the directory of the shell, and a name is none.
        let is_path = |argument: &str| argument.contains('/') || argument.ends_with(".md");
        let argument = self.argument.as_ref().map(|argument| match is_path(argument) {
            true => shell(&cwd.join(argument)),
            false => shell(Path::new(argument)),
        });
        words.extend(argument);
        words.join(" ")
    }

    /// The flags to add to that command, because no line shows values that may be secret.
    fn addition(&self) -> Option<String> {
        let flags: Vec<String> = self.unshown.iter().map(|name| format!("--{name}")).collect();
        (!flags.is_empty()).then(|| format!("and add {} as before", flags.join(" and ")))
    }

    /// Fails if the run's SPEC or PLAN is in the directory `from`, and the worktree lacks it.
    fn check(&self, from: &Path, cwd: &Path) -> Result<(), Failure> {
        let (Some(kind), Some(argument)) = (self.workflow, &self.argument) else { return Ok(()) };
        let Ok(argument) = Argument::parse("", OsStr::new(argument)) else { return Ok(()) };
        let file = |at: &Path| {
            let project = Project::around(at).ok()?;
            match kind {
                WorkflowKind::Spec => None,
                WorkflowKind::Plan => project.spec(&argument, at).ok(),
                WorkflowKind::Implement => project.plan(&argument, at).ok().map(|plan| plan.file),
            }
        };
        match (file(from), file(cwd)) {
            (Some(file), None) => Err(Failure::usage(format!(
                "--worktree: {} is not committed, so the worktree lacks it: commit it first.",
                shown(&file)
            ))),
            (Some(_), Some(_)) | (None, _) => Ok(()),
        }
    }
}

#[derive(Clone)]
pub(super) struct Wanted {
    name: WorktreeName,
    again: Again,
    /// The project's folder, and the globs of the ignored files to take along from it.
    folder: PathBuf,
    copy: Vec<String>,
    /// `None`: no commands set it up.
    set_up: Option<SetUp>,
}

impl Wanted {
    pub(super) fn of(adhoc: &Adhoc, config: &Config) -> Option<Wanted> {
        let name = adhoc.worktree.clone()?;
        let (folder, copy) = (config.folder().to_owned(), config.texts("worktree.copy"));
        let fields = &adhoc.fields;
        let set_up = SetUp {
            from: config.find("worktree.setup").and_then(|value| value.origin.place()).unwrap_or_default(),
            commands: config.texts("worktree.setup"),
            is_allowed: adhoc.allow_setup || fields.allow_verify == Some(true),
            limit: fields.verify_timeout_s.map_or(SET_UP_LIMIT, |limit| limit.duration()),
        };
        let set_up = Some(set_up).filter(|set_up| !set_up.commands.is_empty());
        Some(Wanted { name, again: Again::of(adhoc), folder, copy, set_up })
    }
}

pub(super) struct WorktreeRequest {
    name: String,
    cwd: PathBuf,
    wanted: Wanted,
    made: Sender<Made>,
    until: Until,
}

/// The end of a run that wanted a worktree.
pub(super) struct WorktreeEnd {
    name: String,
    asked: Wanted,
    made: Receiver<Made>,
    /// The worktree, once the run has begun.
    begun: Option<Made>,
    /// Dropping it ends git, and the incomplete worktree is removed.
    wanted: crossbeam_channel::Sender<Infallible>,
}

struct Made {
    worktree: Worktree,
    name: String,
    /// The agent's working directory in it.
    cwd: PathBuf,
}

/// `cwd`: the run's directory outside the worktree. `limit`: the time limit of the run.
pub(super) fn request(asked: Wanted, cwd: Option<&str>, limit: Option<Duration>) -> (WorktreeRequest, WorktreeEnd) {
    let (made, receiver) = channel();
    let (until, wanted) = Until::wanted(Instant::now() + limit.unwrap_or(CHECKOUT_LIMIT).min(CHECKOUT_LIMIT));
    let name = match asked.name.clone() {
        WorktreeName::Given(name) => name,
        WorktreeName::Generated => generated(SystemTime::now()),
    };
    let end = WorktreeEnd { name: name.clone(), asked: asked.clone(), made: receiver, begun: None, wanted };
    (WorktreeRequest { name, cwd: cwd.unwrap_or(".").into(), wanted: asked, made, until }, end)
}

/// A name by the time, in UTC, and by chance.
fn generated(now: SystemTime) -> String {
    let date = OffsetDateTime::from(now).format(format_description!("[year][month][day]-[hour][minute][second]"));
    let random = nonce();
    format!("{}-{}", date.unwrap_or_default(), random.get(..4).unwrap_or(&random))
}

pub(super) fn in_worktree(
    request: Option<WorktreeRequest>,
    make: impl FnOnce() -> Result<Box<Prepared>, Failure> + Send + 'static,
) -> Awaited {
    Box::new(move || {
        let prepared = make()?;
        match request {
            Some(request) => request.prepare(prepared),
            None => Ok(prepared),
        }
    })
}

impl WorktreeRequest {
    /// Blocks until git is done.
    pub(super) fn prepare(self, mut prepared: Box<Prepared>) -> Result<Box<Prepared>, Failure> {
        let made = make(self.name, &self.cwd, &self.wanted, &self.until)?;
        prepared.above.cwd = made.cwd.to_str().map(str::to_owned);
        let is_complete = self.wanted.again.check(&self.cwd, &made.cwd);
        // Nobody receives it if the run was cancelled long ago.
        let _ = self.made.send(made);
        is_complete.map(|()| prepared)
    }
}

pub(super) fn repository(cwd: &Path, until: &Until) -> Result<(PathBuf, Repository), Failure> {
    let gone = |_| Failure::usage("A worktree needs a working directory that exists.");
    let cwd = cwd.canonicalize().map_err(gone)?;
    let found = Repository::around(&cwd, &until.at_most(READ_LIMIT)).map_err(|why| {
        Failure::usage(match why {
            NoRepository::Outside => "A worktree needs git and a git repository: run `git init` to create one.",
            NoRepository::NoCommit => "A worktree needs a commit to begin from: make the first one.",
            NoRepository::Late => "git did not read the repository in time: see whether git status ends, and whether a file that it reads is a pipe.",
            NoRepository::Failed => "git cannot read the repository: see what git status reports.",
        })
    })?;
    Ok((cwd, found))
}

fn make(name: String, cwd: &Path, wanted: &Wanted, until: &Until) -> Result<Made, Failure> {
    let (cwd, repository) = repository(cwd, until)?;
    let look = until.at_most(READ_LIMIT);
    let path = make_worktrees_folder().map(|folder| place(&folder, repository.main(), &name));
    let path = path.map_err(|_| Failure::usage("--worktree: cannot create the folder for worktrees."))?;
    let branch = branch_of(&name);
    if path.to_str().is_none() {
        return Err(Failure::usage("--worktree needs a path in UTF-8."));
    }
    if path.symlink_metadata().is_ok() || is_incomplete(&path) {
        let tree = shell(&path);
        let removal = format!("spektacular worktrees rm {name}");
        return Err(Failure::usage(if is_incomplete(&path) {
            format!(
                "The worktree {name} is not complete, or is being made: give another name, or remove it with {removal}"
            )
        } else if repository.has_worktree(&path, &look) {
            format!(
                "The worktree {name} exists: continue in it with --cwd {tree}, give another name, or, once it is merged, \
                 remove it with {removal}"
            )
        } else {
            format!("{tree} exists, and is not a worktree of this repository: give another name, or move it away.")
        }));
    }
    if repository.has_branch(&branch, &look).unwrap_or(false) {
        return Err(Failure::usage(format!(
            "The branch {branch} exists: give another name, or delete it, once it is merged, with git branch -d {branch}"
        )));
    }
    if repository.is_changed {
        diagnose("spektacular: warning: the worktree is made from HEAD, without the uncommitted changes here");
    }
    let commit: String = repository.head().chars().take(SHORT_COMMIT).collect();
    // Before the checkout, which takes a while in a large repository.
    diagnose(&format!("spektacular: checking out {commit} into the worktree {name}: {}", shell(&path)));
    let inside = cwd.strip_prefix(repository.root()).map(Path::to_owned).unwrap_or_default();
    let mut worktree = repository.add(&path, branch, until).map_err(|AddFailure { message, is_left }| {
        if is_left {
            diagnose(&incomplete(&name));
        }
        Failure::usage(format!("git cannot make the worktree {name}: {}", one_line(&message)))
    })?;
    let filled = fill(&worktree, &name, wanted, until);
    let ready = filled.and_then(|()| if wanted.set_up.is_none() { complete(&mut worktree) } else { Ok(()) });
    if let Err(failure) = ready {
        if !worktree.discard(&Until::deadline(Instant::now() + ABANDONED_LIMIT)) {
            diagnose(&incomplete(&name));
        }
        return Err(failure);
    }
    // An empty path would add a slash.
    let below: PathBuf = path.join(inside).components().collect();
    let cwd = if below.is_dir() { below } else { path };
    Ok(Made { worktree, name, cwd })
}

/// The number of paths that a line names.
const NAMED: usize = 10;

fn listed(paths: &[PathBuf]) -> String {
    first_of(paths.iter().map(|path| shell(path)), NAMED)
}

/// The project's folder, relative to the root of its work tree. Empty: it is in another one.
fn inside(folder: &Path, root: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_default();
    folder.strip_prefix(root).map(Path::to_owned).unwrap_or_default()
}

fn complete(worktree: &mut Worktree) -> Result<(), Failure> {
    let unwritable = |_| Failure::usage("--worktree: cannot write to the folder for worktrees.");
    worktree.complete().map_err(unwritable)
}

/// Fills a new worktree with what a checkout lacks.
fn fill(worktree: &Worktree, name: &str, wanted: &Wanted, until: &Until) -> Result<(), Failure> {
    let folder = inside(&wanted.folder, worktree.repository().root());
    let taken = worktree.take_along(&folder, &wanted.copy, until).map_err(|why| {
        Failure::usage(match why {
            NotTaken::TooMuch => format!(
                "worktree.copy takes along more than 100,000 files or {} GiB: narrow its globs.",
                BYTES_MAX >> 30
            ),
            NotTaken::Git(_) => {
                "worktree.copy: git did not list the ignored files: see what git status --ignored reports.".to_owned()
            }
        })
    })?;
    if !wanted.copy.is_empty() {
        let files = counted(taken.files, "ignored file");
        diagnose(&format!("spektacular: took {files} along into the worktree {name}"));
    }
    if !taken.left.is_empty() {
        diagnose(&format!(
            "spektacular: warning: worktree.copy takes along regular files that can be read, and no links: {} stayed behind",
            listed(&taken.left)
        ));
    }
    let empty = worktree.fill_submodules(until).unwrap_or_default();
    if !empty.is_empty() {
        diagnose(&format!(
            "spektacular: warning: these submodules of the worktree {name} are empty, because filling them needs the \
             network: {}",
            listed(&empty)
        ));
    }
    Ok(())
}

impl WorktreeEnd {
    pub(super) fn has_set_up(&self) -> bool {
        self.asked.set_up.is_some()
    }

    /// Error: nobody consented, or a command failed.
    pub(super) fn set_up(&mut self, outer: &mut WorkflowRun<'_>) -> Result<(), Stop> {
        self.begun = self.made.try_recv().ok();
        let (Some(set_up), Some(made)) = (&self.asked.set_up, &mut self.begun) else { return Ok(()) };
        let folder = made.worktree.path().join(inside(&self.asked.folder, made.worktree.repository().root()));
        set_up.run(outer, &folder)?;
        Ok(complete(&mut made.worktree)?)
    }

    /// Removes the worktree if it holds no work. `last`: the file for the run's session. `asked_at`: the request to end
    /// the run, or its deadline. Returns the file in the worktree. `None`: the session has no directory to continue in.
    pub(super) fn close(self, last: Option<SessionFile>, asked_at: Option<Instant>) -> Option<SessionFile> {
        drop(self.wanted);
        point("worktree close");
        let now = Instant::now();
        let left = asked_at.map(|at| (at + ASKED_LIMIT).saturating_duration_since(now).max(ASKED_LEAST));
        let within = |limit: Duration| left.map_or(limit, |left| left.min(limit));
        let begun = self.begun.map(Ok);
        let made = begun.unwrap_or_else(|| self.made.recv_timeout(within(ABANDONED_LIMIT))).inspect_err(|error| {
            if *error == RecvTimeoutError::Timeout {
                diagnose(&incomplete(&self.name));
            }
        });
        let Made { worktree, name, cwd } = made.ok()?;
        let until = Until::deadline(now + within(LOOK_LIMIT));
        let is_complete = worktree.is_complete();
        let work = worktree.work(&until).ok();
        if !is_complete && worktree.discard(&until) {
            diagnose(&format!("spektacular: the worktree {name} was not completed and was removed"));
            return None;
        }
        if is_complete && work.as_ref().is_some_and(|work| !work.is_any()) && worktree.discard(&until) {
            diagnose(&format!("spektacular: the worktree {name} had no changes and was removed"));
            return None;
        }
        let again = (self.asked.again.line(&cwd, last.is_some()), self.asked.again.addition());
        explain(&directions(&name, work.as_ref(), &worktree, again));
        last.map(|last| last.moved_to(cwd))
    }
}

/// `work`: `None` if git cannot read the worktree. `again`: the command that continues, and what to add to it.
fn directions(
    name: &str,
    work: Option<&Work>,
    worktree: &Worktree,
    (again, addition): (String, Option<String>),
) -> String {
    let (tree, root) = (shell(worktree.path()), shell(worktree.repository().root()));
    let place = work.map_or("cannot be read".to_owned(), |work| format!("is {}", work.head));
    let commit = work.filter(|work| work.has_files);
    let commit = commit.map(|_| format!("git -C {tree} add -A && git -C {tree} commit"));
    let push = "push what is new in its submodules: only the worktree has their commits".to_owned();
    let own = |action: &str| Some(format!("spektacular worktrees {action} {name} --cwd {root}"));
    let lines = [
        ("first", work.filter(|work| work.has_submodules).map(|_| push)),
        ("look", own("show")),
        ("commit", commit),
        ("merge", own("merge")),
        ("continue", Some(again)),
        ("", addition),
        ("remove", own("rm")),
    ];
    let mut text = format!("spektacular: the worktree {name} {place}\n");
    for (label, command) in lines {
        text.extend(command.map(|command| format!("  {label:9} {command}\n")));
    }
    text
}

fn incomplete(name: &str) -> String {
    format!("spektacular: the worktree {name} is not complete: remove it with spektacular worktrees rm {name}")
}

/// The number of digits that tell the worktrees of one repository from those of another.
const TAG: usize = 4;

/// The end of the names of a repository's worktrees.
fn tag(main: &Path) -> String {
    let digest = Digest::of(main.as_os_str().as_bytes()).to_string();
    format!("-{}", &digest[digest.len() - TAG..])
}

fn place(folder: &Path, main: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{}", tag(main)))
}

/// The name of a worktree of a repository, by its path. `None`: no run made it.
pub(super) fn name_at(folder: &Path, main: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(folder).ok()?.to_str()?.strip_suffix(&tag(main))?;
    WorktreeName::given(name).map(|_| name.to_owned())
}

/// The branch that a worktree is made with.
pub(super) fn branch_of(name: &str) -> String {
    format!("spektacular/{name}")
}

fn shell(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::generated;
    use crate::cli::WorktreeName;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_generated_name_is_a_name() {
        let name = generated(UNIX_EPOCH);
        assert!(name.starts_with("19700101-000000-"), "{name}");
        assert_eq!(WorktreeName::given(&name), Some(WorktreeName::Given(name.clone())));
        assert_ne!(name, generated(UNIX_EPOCH));
    }
}

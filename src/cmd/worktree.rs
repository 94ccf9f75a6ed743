//! `--worktree`: a run in a fresh git worktree of its own. It is made before the run starts, and removed after the run if
//! it holds no work.

use crate::clean::{one_line, shell_word};
use crate::cli::{Adhoc, WorktreeName};
use crate::engine::{Awaited, Prepared};
use crate::io::output::{diagnose, explain};
use crate::process::git::worktree::{AddFailure, NoRepository, Repository, Work, Worktree};
use crate::process::query::Until;
use crate::process::tree::nonce;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::words::WorkflowKind;
use crate::sessions::{SessionFile, WORKTREES, data_folder};
use crate::workflow::project::{Argument, Project, shown};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};
use time::OffsetDateTime;
use time::macros::format_description;

/// The time limit for the checkout, which may be of a large repository. A cancel ends it sooner.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The time limit for the looks at a repository before the checkout. git reads files that its configuration names, and
/// such a file may be a pipe.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for the look at a worktree after its run.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The time that a run without a worktree waits until its incomplete checkout is removed.
const ABANDONED_LIMIT: Duration = Duration::from_secs(10);
/// The time from a request to end, or a deadline, to the end of the looks at the worktree; and the least time for them.
const ASKED_LIMIT: Duration = Duration::from_millis(3500);
const ASKED_LEAST: Duration = Duration::from_millis(300);
/// The number of characters of a commit that are shown.
const SHORT_COMMIT: usize = 12;

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
    /// The command that goes on where this one ended.
    pub(super) fn of(adhoc: &Adhoc) -> Again {
        let command = match adhoc.workflow {
            None if adhoc.options.conversation == Some(true) => "chat",
            None => "adhoc",
            Some(kind) => kind.word(),
        };
        let mut words = vec![command.to_owned()];
        words.extend(adhoc.repeated.iter().cloned());
        words.extend(adhoc.fields.name.iter().flat_map(|name| ["--name".to_owned(), name.clone()]));
        if adhoc.workflow.is_some_and(|kind| kind != WorkflowKind::Implement) {
            words.push("--continue".to_owned());
        }
        let has_argument = matches!(adhoc.workflow, Some(WorkflowKind::Plan | WorkflowKind::Implement));
        let argument = adhoc.words.first().filter(|_| has_argument).cloned();
        Again { workflow: adhoc.workflow, words, unshown: adhoc.unshown.clone(), argument }
    }

    /// The command line. `is_stored`: whether the session of a task can be continued.
    fn line(&self, cwd: &Path, is_stored: bool) -> String {
        let mut words = vec!["spektacular".to_owned()];
        words.extend(self.words.iter().map(|word| shell(Path::new(word))));
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
            (Some(file), None) => Err(usage(format!(
                "--worktree: {} is not committed, so the worktree lacks it: commit it first.",
                shown(&file)
            ))),
            (Some(_), Some(_)) | (None, _) => Ok(()),
        }
    }
}

pub(super) struct WorktreeRequest {
    name: String,
    cwd: PathBuf,
    again: Again,
    made: Sender<Made>,
    until: Until,
}

/// The end of a run that wanted a worktree.
pub(super) struct WorktreeEnd {
    name: String,
    again: Again,
    made: Receiver<Made>,
    /// Dropping it ends git, and the incomplete worktree is removed.
    wanted: crossbeam_channel::Sender<Infallible>,
}

/// A worktree that was made.
struct Made {
    worktree: Worktree,
    name: String,
    /// The agent's working directory in it.
    cwd: PathBuf,
}

/// The request for a worktree, and its counterpart for the end of the run. `cwd`: the run's directory outside it. `limit`:
/// the time limit of the run.
pub(super) fn request(
    name: WorktreeName,
    cwd: Option<&str>,
    again: Again,
    limit: Option<Duration>,
) -> (WorktreeRequest, WorktreeEnd) {
    let (made, receiver) = channel();
    let (until, wanted) = Until::wanted(Instant::now() + limit.unwrap_or(CHECKOUT_LIMIT).min(CHECKOUT_LIMIT));
    let name = match name {
        WorktreeName::Given(name) => name,
        WorktreeName::Generated => generated(SystemTime::now()),
    };
    let end = WorktreeEnd { name: name.clone(), again: again.clone(), made: receiver, wanted };
    (WorktreeRequest { name, cwd: cwd.unwrap_or(".").into(), again, made, until }, end)
}

/// A name by the time, in UTC, and by chance.
fn generated(now: SystemTime) -> String {
    let date = OffsetDateTime::from(now).format(format_description!("[year][month][day]-[hour][minute][second]"));
    let random = nonce();
    format!("{}-{}", date.unwrap_or_default(), random.get(..4).unwrap_or(&random))
}

fn usage(message: String) -> Failure {
    Failure::new(Code::Usage, message)
}

/// Work that prepares a run, and its worktree.
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
    /// Makes the worktree, and has the run take place in it. Blocks until git is done.
    pub(super) fn prepare(self, mut prepared: Box<Prepared>) -> Result<Box<Prepared>, Failure> {
        let made = make(self.name, &self.cwd, &self.until)?;
        prepared.above.cwd = made.cwd.to_str().map(str::to_owned);
        let is_complete = self.again.check(&self.cwd, &made.cwd);
        // Nobody receives it if the run was cancelled long ago.
        let _ = self.made.send(made);
        is_complete.map(|()| prepared)
    }
}

fn make(name: String, cwd: &Path, until: &Until) -> Result<Made, Failure> {
    let gone = |_| usage("--worktree: the working directory does not exist.".to_owned());
    let cwd = cwd.canonicalize().map_err(gone)?;
    let look = until.at_most(READ_LIMIT);
    let repository = Repository::around(&cwd, &look).map_err(|why| {
        usage(match why {
            NoRepository::Outside => {
                "--worktree needs a git repository, and git: make a repository with git init.".into()
            }
            NoRepository::NoCommit => "--worktree needs a commit to begin from: make the first one.".into(),
            NoRepository::Late => "--worktree: git did not read the repository in time: see whether git status ends, and whether a file that it reads is a pipe.".into(),
            NoRepository::Failed => "--worktree: git cannot read the repository: see what git status reports.".into(),
        })
    })?;
    let folder = data_folder(repository.main(), WORKTREES);
    let folder = folder.map_err(|_| usage("--worktree: cannot create the folder for worktrees.".to_owned()))?;
    let (path, branch) = (folder.join(&name), format!("spektacular/{name}"));
    if path.to_str().is_none() {
        return Err(usage("--worktree needs a path in UTF-8.".to_owned()));
    }
    if path.symlink_metadata().is_ok() {
        let tree = shell(&path);
        return Err(usage(if path.canonicalize().is_ok_and(|path| repository.has_worktree(&path, &look)) {
            let removal = removal(&path, &branch);
            format!(
                "The worktree {name} exists: continue in it with --cwd {tree}, give another name, or, once it is merged, \
                 remove it with {removal}"
            )
        } else {
            format!("{tree} exists, and is not a worktree of this repository: give another name, or move it away.")
        }));
    }
    if repository.has_branch(&branch, &look).unwrap_or(false) {
        return Err(usage(format!(
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
    let worktree = repository.add(&path, branch.clone(), until).map_err(|AddFailure { message, is_left }| {
        if is_left {
            diagnose(&incomplete(&name, &path, &branch));
        }
        usage(format!("git cannot make the worktree {name}: {}", one_line(&message)))
    })?;
    // An empty path would add a slash.
    let below: PathBuf = path.join(inside).components().collect();
    let cwd = if below.is_dir() { below } else { path };
    Ok(Made { worktree, name, cwd })
}

impl WorktreeEnd {
    /// Removes the worktree if it holds no work; otherwise prints how to go on with it. `last`: the file for the run's
    /// session. `asked_at`: the request to end the run, or its deadline. Returns the file in the worktree. `None`: the
    /// session has no directory to continue in.
    pub(super) fn close(self, last: Option<SessionFile>, asked_at: Option<Instant>) -> Option<SessionFile> {
        drop(self.wanted);
        let now = Instant::now();
        let left = asked_at.map(|at| (at + ASKED_LIMIT).saturating_duration_since(now).max(ASKED_LEAST));
        let within = |limit: Duration| left.map_or(limit, |left| left.min(limit));
        let made = self.made.recv_timeout(within(ABANDONED_LIMIT)).inspect_err(|error| {
            if *error == RecvTimeoutError::Timeout {
                let name = &self.name;
                diagnose(&format!(
                    "spektacular: the worktree {name} is not complete: git worktree list shows its path, and git branch -d \
                     spektacular/{name} deletes its branch"
                ));
            }
        });
        let Made { worktree, name, cwd } = made.ok()?;
        let until = Until::deadline(now + within(LOOK_LIMIT));
        let work = worktree.work(&until).ok();
        if work.as_ref().is_some_and(|work| !work.is_any()) && worktree.discard(&until) {
            diagnose(&format!("spektacular: the worktree {name} had no changes and was removed"));
            return None;
        }
        let again = (self.again.line(&cwd, last.is_some()), self.again.addition());
        explain(&directions(&name, work.as_ref(), &worktree, again));
        last.map(|last| last.moved_to(cwd))
    }
}

/// The lines that tell how to look at a worktree, merge it, continue in it and remove it. `work`: `None` if git cannot
/// read it. `again`: the command that continues, and what to add to it.
fn directions(
    name: &str,
    work: Option<&Work>,
    worktree: &Worktree,
    (again, addition): (String, Option<String>),
) -> String {
    let (tree, root) = (shell(worktree.path()), shell(worktree.repository().root()));
    // The name of HEAD in commands. `None`: it has no commit.
    let at = work
        .and_then(|work| work.head.branch.clone().filter(|_| work.head.commit.is_some()).or(work.head.commit.clone()));
    let at = at.map(|at| shell(Path::new(&at)));
    let merge = at.as_ref().map(|at| format!("git -C {root} merge {at}"));
    let log = at.as_ref().filter(|_| work.is_some_and(|work| work.has_commits));
    let log = log.map(|at| format!("git -C {root} log -p HEAD..{at}"));
    let has_files = work.is_none_or(|work| work.has_files) || log.is_none();
    let status = has_files.then(|| format!("git -C {tree} status"));
    let commit = work.filter(|work| work.has_files).map(|_| format!("git -C {tree} add -A && git -C {tree} commit"));
    let line = |name: &str, commands: [Option<String>; 2]| {
        let commands: Vec<String> = commands.into_iter().flatten().collect();
        if commands.is_empty() { String::new() } else { format!("  {name:9} {}\n", commands.join(" && ")) }
    };
    let place = work.map_or("cannot be read".to_owned(), |work| format!("is {}", work.head));
    let mut text = format!("spektacular: the worktree {name} {place}\n");
    let has_submodules = work.is_some_and(|work| work.has_submodules);
    if has_submodules {
        text.push_str(&line(
            "first",
            [Some("push what is new in its submodules: only the worktree has their commits".into()), None],
        ));
    }
    text.push_str(&line("look", [status, log]));
    text.push_str(&line("merge", [commit.filter(|_| merge.is_some()), merge]));
    text.push_str(&line("continue", [Some(again), None]));
    text.push_str(&line("", [addition, None]));
    if !has_submodules {
        let removal = removal(worktree.path(), worktree.branch());
        text.push_str(&line("remove", [Some(format!("cd {root}")), Some(removal)]));
    }
    text
}

/// The line about a worktree that was not completed, and could not be removed. It holds nothing of anybody's.
fn incomplete(name: &str, path: &Path, branch: &str) -> String {
    let tree = shell(path);
    format!(
        "spektacular: the worktree {name} is not complete: remove it with git worktree remove --force {tree} && git branch \
         -d {branch}"
    )
}

/// The commands that remove a worktree whose work is merged. Otherwise they fail: a commit that no branch has would be
/// lost with the worktree.
fn removal(path: &Path, branch: &str) -> String {
    let tree = shell(path);
    format!(
        "git merge-base --is-ancestor \"$(git -C {tree} rev-parse HEAD)\" HEAD && git worktree remove {tree} && git branch \
         -d {branch}"
    )
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

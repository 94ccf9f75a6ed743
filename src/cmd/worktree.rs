//! `--worktree`: a run in a fresh git worktree of its own. It is made before the run starts, and removed after the run if
//! it holds no work.

use crate::clean::one_line;
use crate::cli::WorktreeName;
use crate::engine::Prepared;
use crate::io::output::{diagnose, explain};
use crate::process::git::worktree::{AddFailure, NoRepository, Repository, Work, Worktree};
use crate::process::query::Until;
use crate::process::tree::nonce;
use crate::protocol::failure::{Code, Failure};
use crate::sessions::{SessionFile, data_folder};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};
use time::OffsetDateTime;
use time::macros::format_description;

/// The folder of the worktrees in the local folder of a project, and in the user's state folder.
const WORKTREES: &str = "worktrees";
/// The time limit for the checkout, which may be of a large repository. A cancel ends it sooner.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The time limit for the look at a worktree after its run.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The time that a cancelled run waits until its incomplete checkout is removed.
const ABANDONED_LIMIT: Duration = Duration::from_secs(10);
/// The number of characters of a commit that are shown.
const SHORT_COMMIT: usize = 12;

/// A worktree to make.
pub(super) struct WorktreeRequest {
    name: String,
    cwd: PathBuf,
    made: Sender<Made>,
    until: Until,
}

/// The end of a run that wanted a worktree.
pub(super) struct WorktreeEnd {
    name: String,
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

/// The request for a worktree, and its counterpart for the end of the run. `cwd`: the run's directory outside it.
pub(super) fn request(name: WorktreeName, cwd: Option<&str>) -> (WorktreeRequest, WorktreeEnd) {
    let (made, receiver) = channel();
    let (until, wanted) = Until::wanted(Instant::now() + CHECKOUT_LIMIT);
    let name = match name {
        WorktreeName::Given(name) => name,
        WorktreeName::Generated => generated(SystemTime::now()),
    };
    let end = WorktreeEnd { name: name.clone(), made: receiver, wanted };
    (WorktreeRequest { name, cwd: cwd.unwrap_or(".").into(), made, until }, end)
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

impl WorktreeRequest {
    /// Makes the worktree, and has the run take place in it. Blocks until git is done.
    pub(super) fn prepare(self, mut prepared: Box<Prepared>) -> Result<Box<Prepared>, Failure> {
        let made = make(self.name, &self.cwd, &self.until)?;
        prepared.above.cwd = made.cwd.to_str().map(str::to_owned);
        // Nobody receives it if the run was cancelled long ago.
        let _ = self.made.send(made);
        Ok(prepared)
    }
}

fn make(name: String, cwd: &Path, until: &Until) -> Result<Made, Failure> {
    let gone = |_| usage("--worktree: the working directory does not exist.".to_owned());
    let cwd = cwd.canonicalize().map_err(gone)?;
    let repository = Repository::around(&cwd, until).map_err(|why| {
        usage(match why {
            NoRepository::Outside => {
                "--worktree needs a git repository, and git: make a repository with git init.".into()
            }
            NoRepository::NoCommit => "--worktree needs a commit to begin from: make the first one.".into(),
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
        let (tree, discard) = (shell(&path), discard(&path, &branch));
        return Err(usage(format!(
            "The worktree {name} exists: continue in it with --cwd {tree}, give another name, or remove it with {discard}"
        )));
    }
    if repository.has_branch(&branch, until).unwrap_or(false) {
        return Err(usage(format!(
            "The branch {branch} exists: give another name, or delete it with git branch -D {branch}"
        )));
    }
    if repository.is_changed {
        diagnose("spektacular: warning: the worktree is made from HEAD, without the uncommitted changes here");
    }
    let commit: String = repository.head().chars().take(SHORT_COMMIT).collect();
    // Before the checkout, which takes a while in a large repository.
    diagnose(&format!("spektacular: checking out {commit} into the worktree {name}: {}", path.display()));
    let inside = cwd.strip_prefix(repository.root()).map(Path::to_owned).unwrap_or_default();
    let worktree = repository.add(&path, branch.clone(), until).map_err(|AddFailure { message, is_left }| {
        if is_left {
            diagnose(&incomplete(&name, &path, &branch));
        }
        usage(format!("git cannot make the worktree {name}: {}", one_line(&message)))
    })?;
    let below = path.join(inside);
    let cwd = if below.is_dir() { below } else { path };
    Ok(Made { worktree, name, cwd })
}

impl WorktreeEnd {
    /// Removes the worktree if it holds no work; otherwise prints how to go on with it. `last`: the file for the run's
    /// session. Returns the file in the worktree. `None`: the session has no directory to continue in.
    pub(super) fn close(self, last: Option<SessionFile>) -> Option<SessionFile> {
        drop(self.wanted);
        let made = self.made.recv_timeout(ABANDONED_LIMIT).inspect_err(|error| {
            if *error == RecvTimeoutError::Timeout {
                let name = &self.name;
                diagnose(&format!(
                    "spektacular: the worktree {name} is not complete: git worktree list shows its path, and git branch -D \
                     spektacular/{name} deletes its branch"
                ));
            }
        });
        let Made { worktree, name, cwd } = made.ok()?;
        let until = Until::deadline(Instant::now() + LOOK_LIMIT);
        let work = worktree.work(&until);
        if work == Ok(Work { has_commits: false, has_files: false }) && worktree.remove(&until) {
            diagnose(&format!("spektacular: the worktree {name} had no changes and was removed"));
            return None;
        }
        // A worktree that cannot be read may hold anything.
        let work = work.unwrap_or(Work { has_commits: true, has_files: true });
        explain(&directions(&name, work, worktree.path(), worktree.branch(), worktree.repository()));
        last.map(|last| last.moved_to(cwd))
    }
}

/// The lines that tell how to look at a worktree, merge it, continue in it and remove it.
fn directions(name: &str, work: Work, path: &Path, branch: &str, repository: &Repository) -> String {
    let (tree, root) = (shell(path), shell(repository.root()));
    let merge = format!("git -C {root} merge {branch}");
    let (look, merge) = match work {
        Work { has_files: true, has_commits: false } => {
            (format!("git -C {tree} status"), format!("git -C {tree} add -A && git -C {tree} commit && {merge}"))
        }
        Work { has_files: true, has_commits: true } => (
            format!("git -C {tree} status && git -C {root} log -p HEAD..{branch}"),
            format!("git -C {tree} add -A && git -C {tree} commit && {merge}"),
        ),
        Work { has_files: false, .. } => (format!("git -C {root} log -p HEAD..{branch}"), merge),
    };
    let discard = discard(path, branch);
    format!(
        "spektacular: the worktree {name} is on the branch {branch}\n  look      {look}\n  merge     {merge}\n  continue  \
         spektacular adhoc --cwd {tree} --continue\n  remove    cd {root} && {discard}\n"
    )
}

/// The line about a worktree that was not completed, and could not be removed.
fn incomplete(name: &str, path: &Path, branch: &str) -> String {
    format!("spektacular: the worktree {name} is not complete: remove it with {}", discard(path, branch))
}

/// The commands that remove a worktree with all work in it.
fn discard(path: &Path, branch: &str) -> String {
    format!("git worktree remove --force {} && git branch -D {branch}", shell(path))
}

/// A path as one word of a shell.
fn shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | ':');
    if text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::{generated, shell};
    use crate::cli::WorktreeName;
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_generated_name_is_a_name() {
        let name = generated(UNIX_EPOCH);
        assert!(name.starts_with("19700101-000000-"), "{name}");
        assert_eq!(WorktreeName::given(&name), Some(WorktreeName::Given(name.clone())));
        assert_ne!(name, generated(UNIX_EPOCH));
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [("/a/b-c_1.d", "/a/b-c_1.d"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'")] {
            assert_eq!(shell(Path::new(path)), word);
        }
    }
}

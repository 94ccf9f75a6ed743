//! `worktrees`: lists the worktrees that runs left in this repository, shows one, merges one, and removes one.

use super::worktree::{SHORT_COMMIT, branch_of, name_at, repository};
use super::{finish, secrets_here};
use crate::clean::{escaped, one_line, shell_word};
use crate::cli::action::{ActionRow, Offers, Word, act, actions, bare, one};
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, json, output, own_path, own_switch, store};
use crate::cli::{Output, Wrong};
use crate::io::files::{main_of, worktrees_folder};
use crate::json::{map_strings, to_line};
use crate::process::git::kept::{Merged, Taken, TreeContents, TreeState};
use crate::process::git::worktree::{Repository, known_in};
use crate::process::query::Until;
use crate::protocol::failure::Failure;
use crate::suggest::{Typed, Unknown};
use crate::workflow::counted;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const COMMAND: Command = Command {
    words: Words::Actions(&actions::<_, { ACTIONS.len() }>(ACTIONS)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "worktrees",
        &CommandText {
            about: "list, show, merge and remove the worktrees that runs left behind",
            more: "\
The worktrees are those that --worktree made for this repository, in the user's state folder. NAME is the name of one.
merge merges its branch into the current branch. It needs everything to be committed on both sides, and undoes a merge with
conflicts. rm removes its folder, and its branch if another branch has all of its commits; it refuses to lose a commit.
Neither touches a worktree in which a run works.",
            examples: &[
                ("spektacular adhoc --worktree=fix --yes \"Fix the parser\"", "make one"),
                ("spektacular worktrees", "list them"),
                ("spektacular worktrees merge fix", "merge its commits into the branch here"),
                ("spektacular worktrees rm fix", "remove it"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| finish(text(&args)))),
    )
};

const FLAGS: &[Row<WorktreesArgs>] = &[
    own_path("cwd", "DIR", "a directory in the repository", |to: &mut WorktreesArgs| &mut to.cwd)
        .short('C')
        .begins("The worktrees"),
    own_switch("force", "rm: discard uncommitted changes too; commits are kept", |to: &mut WorktreesArgs| {
        to.force = true
    }),
    output(|to: &mut WorktreesArgs| &mut to.output),
    json(|to: &mut WorktreesArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct WorktreesArgs {
    what: WorktreesAction,
    cwd: Option<PathBuf>,
    force: bool,
    output: Output,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum WorktreesAction {
    #[default]
    List,
    Show(String),
    Merge(String),
    Remove(String),
}

const NAME: &[Word; 1] = &[Word { name: "NAME", offers: Offers::Worktrees }];

const ACTIONS: &[ActionRow<WorktreesAction>] = &[
    bare("list", "list the worktrees, also without an action", || WorktreesAction::List),
    one("show", "show a worktree's path, commits and changed files", NAME, WorktreesAction::Show),
    one("merge", "merge a worktree's commits into the branch here", NAME, WorktreesAction::Merge),
    one("rm", "remove a worktree; commits that no other branch has stay", NAME, WorktreesAction::Remove),
];

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<WorktreesArgs, Wrong> {
    let mut args: WorktreesArgs = store(FLAGS, given)?;
    if !words.is_empty() {
        args.what = act("worktrees", ACTIONS, words)?;
    }
    match args.what {
        WorktreesAction::List | WorktreesAction::Show(_) | WorktreesAction::Merge(_) if args.force => {
            Err("--force is for worktrees rm.".into())
        }
        WorktreesAction::List | WorktreesAction::Show(_) | WorktreesAction::Merge(_) | WorktreesAction::Remove(_) => {
            Ok(args)
        }
    }
}

/// The time limit for git. A merge runs the hooks of the repository.
const GIT_LIMIT: Duration = Duration::from_secs(600);
/// The maximum number of commits and of files that `show` lists.
const LISTED: usize = 20;

struct Trees {
    repository: Repository,
    folder: PathBuf,
    until: Until,
}

struct Tree {
    name: String,
    path: PathBuf,
    state: TreeState,
    is_used: bool,
    /// The number of commits that HEAD here lacks. `None`: git cannot tell.
    commits: Option<u64>,
}

fn text(args: &WorktreesArgs) -> Result<String, Failure> {
    let trees = Trees::around(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let (value, words) = match &args.what {
        WorktreesAction::List => {
            let all: Vec<Tree> = trees.paths()?.into_iter().map(|(name, path)| trees.tree(name, path)).collect();
            let value = json!({"worktrees": all.iter().map(Tree::entry).collect::<Vec<_>>()});
            (value, all.iter().map(Tree::line).collect())
        }
        WorktreesAction::Show(name) => {
            let path = trees.find(name)?;
            let tree = trees.tree(name.clone(), path);
            (json!({"worktree": tree.entry()}), trees.shown(&tree))
        }
        WorktreesAction::Merge(name) => {
            let (_taken, tree) = trees.take(name)?;
            trees.merge(&tree)?
        }
        WorktreesAction::Remove(name) => {
            let (taken, tree) = trees.take(name)?;
            trees.remove(&tree, &taken, args.force)?
        }
    };
    let redactor = secrets_here();
    Ok(match args.output {
        Output::Json => map_strings(&to_line(&value), &mut |text| redactor.redact(text).into_owned()) + "\n",
        Output::Cli => redactor.redact(&words).into_owned(),
    })
}

/// The names of the worktrees of the repository around the current directory, read without git.
pub(super) fn names() -> Vec<String> {
    let (Some(folder), Ok(cwd)) = (worktrees_folder(), std::env::current_dir()) else { return Vec::new() };
    let paths = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: PathBuf| {
        let main = main_of(&path).filter(|main| cwd.starts_with(main))?;
        name_at(&folder, &main, &path)
    };
    paths.filter_map(name).collect()
}

impl Trees {
    fn around(cwd: &Path) -> Result<Trees, Failure> {
        let until = Until::deadline(Instant::now() + GIT_LIMIT);
        let (_, repository) = repository(cwd, &until)?;
        let folder = worktrees_folder()
            .ok_or_else(|| Failure::usage("HOME or XDG_STATE_HOME must name the place of worktrees."))?;
        Ok(Trees { repository, folder, until })
    }

    /// The names and paths of the worktrees, also of incomplete ones that git has not registered, sorted by name.
    fn paths(&self) -> Result<Vec<(String, PathBuf)>, Failure> {
        let main = self.repository.main();
        let unreadable = |_| Failure::usage("git cannot list the worktrees: see what git worktree list reports.");
        let registered = self.repository.registered(&self.until).map_err(unreadable)?;
        // Those of another repository may have the same digits in their names.
        let is_own = |path: &PathBuf| main_of(path).is_none_or(|owner| owner == main);
        let known = known_in(&self.folder).into_iter().filter(is_own);
        let all = registered.into_iter().map(|one| one.path).chain(known);
        let mut named: Vec<(String, PathBuf)> =
            all.filter_map(|path| Some((name_at(&self.folder, main, &path)?, path))).collect();
        named.sort();
        named.dedup();
        Ok(named)
    }

    fn tree(&self, name: String, path: PathBuf) -> Tree {
        let is_used = self.repository.take(&path).is_none();
        self.look(name, path, is_used)
    }

    fn look(&self, name: String, path: PathBuf, is_used: bool) -> Tree {
        let state = self.repository.state_of(&path, &self.until);
        let commit = match &state {
            TreeState::Whole(contents) => contents.head.commit.clone(),
            TreeState::Missing | TreeState::Incomplete | TreeState::Unreadable => {
                self.repository.commit_of(&branch_of(&name), &self.until)
            }
        };
        let commits = commit.and_then(|commit| self.repository.unmerged(&commit, &self.until).ok());
        Tree { name, path, state, is_used, commits }
    }

    fn find(&self, name: &str) -> Result<PathBuf, Failure> {
        let all = self.paths()?;
        match all.iter().find(|(known, _)| known == name) {
            Some((_, path)) => Ok(path.clone()),
            None => {
                let unknown = Unknown { what: "worktree", dashes: "", typed: Typed::Value(name), place: "" };
                let names = all.iter().map(|(name, _)| name.as_str());
                Err(Failure::usage(unknown.message(names, "`spektacular worktrees` lists them.")))
            }
        }
    }

    fn shown(&self, tree: &Tree) -> String {
        let path = shell_word(&tree.path.to_string_lossy());
        let row = |label: &str, fact: &str| format!("{label:10} {fact}\n");
        let mut text = row("worktree", &tree.name) + &row("state", &tree.words()) + &row("directory", &path);
        let TreeState::Whole(TreeContents { head, changed, .. }) = &tree.state else { return text };
        text.push_str(&row("HEAD", &head.to_string()));
        let commit = head.commit.as_deref().unwrap_or_default();
        let commits = self.repository.subjects(commit, LISTED, &self.until).unwrap_or_default();
        let files = changed.iter().take(LISTED).map(|file| one_line(&file.to_string_lossy()));
        let rows = |label: &str, rows: Vec<String>, of: usize| {
            let more = (of > rows.len()).then(|| format!("{:10} and {} more\n", "", of - rows.len()));
            let labels = std::iter::once(label).chain(std::iter::repeat(""));
            let lines: String = labels.zip(rows).map(|(label, row)| format!("{label:10} {row}\n")).collect();
            lines + &more.unwrap_or_default()
        };
        let commits: Vec<String> = commits.iter().map(|line| one_line(line)).collect();
        text.push_str(&rows("commits", commits, tree.commits.unwrap_or_default() as usize));
        text.push_str(&rows("changed", files.collect(), changed.len()));
        if tree.commits != Some(0) {
            let root = shell_word(&self.repository.root().to_string_lossy());
            let short: String = commit.chars().take(SHORT_COMMIT).collect();
            text.push_str(&row("difference", &format!("git -C {root} diff HEAD...{short}")));
        }
        text
    }

    /// Takes a worktree that no run uses, and looks at it: a look before would miss what a run has just left.
    fn take(&self, name: &str) -> Result<(Taken, Tree), Failure> {
        let path = self.find(name)?;
        // HEAD here would seem to keep its commits, and git needs the folder.
        if self.repository.root() == path {
            return Err(Failure::usage(
                "Name another work tree of the repository with --cwd, or run it there, not from the worktree itself.",
            ));
        }
        let used = || Failure::usage(format!("A run works in the worktree {name}: wait until it ends, or stop it."));
        let taken = self.repository.take(&path).ok_or_else(used)?;
        Ok((taken, self.look(name.to_owned(), path, false)))
    }

    fn merge(&self, tree: &Tree) -> Result<(Value, String), Failure> {
        let (name, path) = (&tree.name, shell_word(&tree.path.to_string_lossy()));
        let Some(contents) = tree.contents() else {
            let (why, branch) = (tree.words(), branch_of(name));
            return Err(Failure::usage(format!(
                "The worktree {name} {why}: merge what its branch has with git merge {branch}."
            )));
        };
        if !contents.changed.is_empty() {
            return Err(Failure::usage(format!(
                "The worktree {name} has {} that nobody has committed: git -C {path} add -A && git -C {path} commit",
                counted(contents.changed.len(), "file")
            )));
        }
        if contents.in_submodules {
            return Err(Failure::usage(format!(
                "Submodules of the worktree {name} may have commits that exist nowhere else: push them, then merge with git."
            )));
        }
        let unreadable = |_| Failure::usage("git cannot read the work tree here: see what git status reports.");
        let (here, is_changed) = self.repository.tree_around(&self.until).map_err(unreadable)?;
        let Some(into) = here.branch else {
            return Err(Failure::usage("HEAD is detached here: switch to the branch that gets the commits."));
        };
        if is_changed {
            return Err(Failure::usage("The work tree here has changes: commit or stash them first."));
        }
        let Some(from) = contents.head.branch.as_ref().or(contents.head.commit.as_ref()) else {
            return Err(Failure::usage(format!("The worktree {name} has no commit.")));
        };
        let commits = tree.commits.unwrap_or_default();
        let root = shell_word(&self.repository.root().to_string_lossy());
        match self.repository.merge(from, &self.until) {
            Merged::Done => {}
            Merged::Refused => {
                let by_hand = format!("git -C {root} merge {}", shell_word(from));
                return Err(Failure::usage(format!(
                    "git did not merge {name}, and nothing has changed: see why with {by_hand}"
                )));
            }
            Merged::Stuck => {
                return Err(Failure::usage(format!(
                    "git did not merge {name}, and the attempt could not be undone: see git -C {root} status"
                )));
            }
        }
        let text = format!(
            "merged {} of {name} into {into}; to remove it: spektacular worktrees rm {name}\n",
            counted(commits as usize, "commit")
        );
        Ok((json!({"merged": tree.entry(), "into": into}), text))
    }

    fn remove(&self, tree: &Tree, taken: &Taken, force: bool) -> Result<(Value, String), Failure> {
        let (name, path) = (&tree.name, shell_word(&tree.path.to_string_lossy()));
        let branch = branch_of(name);
        match &tree.state {
            TreeState::Whole(contents) => self.may_lose(name, &path, contents, force)?,
            TreeState::Unreadable if !force => {
                return Err(Failure::usage(format!(
                    "git cannot read the worktree {name}, which may hold work: see git -C {path} status, or remove it with \
                     --force."
                )));
            }
            TreeState::Missing | TreeState::Incomplete | TreeState::Unreadable => {}
        }
        let known = self.repository.commit_of(&branch, &self.until);
        if !self.repository.remove_kept(&tree.path, taken, &self.until) {
            return Err(Failure::usage(format!(
                "The worktree {name} cannot be removed as a whole: see what is left in {path}"
            )));
        }
        let kept = known.and_then(|commit| self.keep_branch(&branch, &commit));
        let and = kept.map(|why| format!("; the branch {branch} stays, because {why}")).unwrap_or_default();
        Ok((json!({"removed": tree.entry(), "branch": kept.map(|_| branch)}), format!("removed {name}{and}\n")))
    }

    /// Deletes a branch that nothing needs. Returns the reason why it stays otherwise.
    fn keep_branch(&self, branch: &str, commit: &str) -> Option<&'static str> {
        let Ok(trees) = self.repository.registered(&self.until) else { return Some("git cannot list the worktrees") };
        if trees.iter().any(|tree| tree.head.branch.as_deref() == Some(branch)) {
            return Some("another work tree has it checked out");
        }
        match self.repository.only_there(commit, Some(branch), &self.until) {
            Ok(0) => {
                let is_gone = self.repository.delete_branch(branch, commit, &self.until);
                (!is_gone).then_some("git did not delete it")
            }
            Ok(1..) => Some("no other one has its commits"),
            Err(_) => Some("git cannot tell whether another one has its commits"),
        }
    }

    /// Fails if the removal of a worktree loses a commit, or without `force` a file.
    fn may_lose(&self, name: &str, path: &str, contents: &TreeContents, force: bool) -> Result<(), Failure> {
        if contents.in_submodules || contents.nested {
            return Err(Failure::usage(format!(
                "The worktree {name} has repositories of its own, whose commits may exist nowhere else: push or move them, \
                 then remove it with git worktree remove --force {path}"
            )));
        }
        let Some(commit) = &contents.head.commit else { return Ok(()) };
        let lost = match contents.head.branch {
            Some(_) => Ok(0),
            None => self.repository.only_there(commit, None, &self.until),
        };
        if lost != Ok(0) {
            return Err(Failure::usage(format!(
                "HEAD of the worktree {name} is detached, and no branch has its commits: keep them with git -C {path} \
                 branch NAME"
            )));
        }
        if !contents.changed.is_empty() && !force {
            return Err(Failure::usage(format!(
                "The worktree {name} has {} that nobody has committed: commit them, or remove them with --force.",
                counted(contents.changed.len(), "file")
            )));
        }
        Ok(())
    }
}

impl Tree {
    fn word(&self) -> &'static str {
        match &self.state {
            _ if self.is_used => "running",
            TreeState::Missing => "missing",
            TreeState::Incomplete => "incomplete",
            TreeState::Unreadable => "unreadable",
            TreeState::Whole(contents) if !contents.changed.is_empty() => "changed",
            TreeState::Whole(_) if self.commits != Some(0) => "unmerged",
            TreeState::Whole(_) => "merged",
        }
    }

    /// The state, as the rest of a sentence about the worktree.
    fn words(&self) -> String {
        let (commits, changed) = (self.commits.unwrap_or_default() as usize, self.changed().unwrap_or_default());
        let work = format!("{} to merge, {} to commit", counted(commits, "commit"), counted(changed, "file"));
        match &self.state {
            _ if self.is_used => format!("running: {work}"),
            TreeState::Missing => "is missing: somebody removed its folder".to_owned(),
            TreeState::Incomplete => "is incomplete: it was never finished".to_owned(),
            TreeState::Unreadable => "is unreadable: git cannot read it".to_owned(),
            TreeState::Whole(_) => work,
        }
    }

    fn contents(&self) -> Option<&TreeContents> {
        match &self.state {
            TreeState::Whole(contents) => Some(contents),
            TreeState::Missing | TreeState::Incomplete | TreeState::Unreadable => None,
        }
    }

    fn changed(&self) -> Option<usize> {
        self.contents().map(|contents| contents.changed.len())
    }

    fn entry(&self) -> Value {
        let head = self.contents().map(|contents| contents.head.clone()).unwrap_or_default();
        json!({
            "name": self.name,
            "path": self.path.to_string_lossy(),
            "state": self.word(),
            "branch": head.branch,
            "commit": head.commit,
            "commits": self.commits,
            "changed": self.changed(),
        })
    }

    fn line(&self) -> String {
        let path = escaped(&self.path.to_string_lossy(), false).replace('\n', "\\u{a}");
        format!("{}  {}  {path}\n", self.name, self.words())
    }
}

//! `--commit`: one git commit for each phase that passes, of plan.md and of the files that git reports as changed now and
//! did not before the first phase.

use super::attempted;
use crate::clean::last_bytes;
use crate::io::signals;
use crate::process::background_task::BackgroundTask;
use crate::process::git::{Baseline, BaselineResult, Head, Incomplete};
use crate::process::variables::OF_GIT;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Text;
use crate::workflow::first_of;
use crate::workflow::project::{HOME, LOCAL, shown};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest subject, in characters.
const SUBJECT: usize = 72;
/// The maximum time for git to list the changes.
const LIMIT: Duration = Duration::from_secs(30);

/// A step of a commit, in a shell. Each has a time limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitStep {
    /// Notes the tree that a commit of the files that the list names would have, as the commands have judged them.
    Judged,
    /// Stages these files, and adds plan.md to that tree.
    Add,
    /// Commits these files alone: what else is staged stays so.
    Commit,
    /// Unstages them, after a commit that failed.
    Reset,
    /// Compares the commit with that tree, since hooks may change it, or anybody the files since the commands passed. Then
    /// the index gets what was committed: hooks work on an index of their own. Exits with [`CHANGED`] or [`STRANGE`] if the
    /// commit differs.
    Settle,
}

/// The exit status of [`GitStep::Settle`] if the commit and the work tree have the same content, but not the judged one.
const CHANGED: i32 = 3;
/// The exit status of [`GitStep::Settle`] if the commit and the work tree differ. The output names the files.
const STRANGE: i32 = 4;

/// `status`: of [`GitStep::Settle`]. `again`: the way to continue. Error: the commands cannot judge the commit.
pub(super) fn is_changed((status, output): (Option<i32>, &str), phase: &str, again: &str) -> Result<bool, Failure> {
    let why = match status {
        Some(0) => return Ok(false),
        Some(CHANGED) => return Ok(true),
        Some(STRANGE) => "a hook committed other content than the files have that passed",
        _ => "it could not be compared with the files that passed",
    };
    let message = format!(
        "The commit of {phase} was made, but {why}: correct the hook and the commit, then {again} to continue."
    );
    Err(Failure { agent_message: said(output), ..Failure::new(Code::CommitFailed, message) })
}

/// `None`: the output is empty.
pub(super) fn said(output: &str) -> Option<Text> {
    Some(last_bytes(output, 4 << 10)).filter(|said| !said.is_empty()).map(Into::into)
}

impl GitStep {
    /// The script of the step. `$1`: the list of files, with NULs; `$2`: the message; `$3`: git, found by the rule for
    /// agents, since the shell would also search folders of the project. The request's variables may lead git to another
    /// repository. Nothing that git starts of its own may outlive the step.
    pub(super) fn script(self) -> String {
        let command = match self {
            GitStep::Judged => {
                "GIT_INDEX_FILE=$list.index; export GIT_INDEX_FILE; rm -f \"$list.index\"\n\
                 if git rev-parse --quiet --verify HEAD >/dev/null; then git read-tree HEAD; fi &&\n\
                 git add -A \"$files\" --pathspec-file-nul && git write-tree >\"$list.tree\"\n\
                 status=$?; rm -f \"$list.index\"; exit $status"
            }
            GitStep::Add => {
                "git add -A \"$files\" --pathspec-file-nul || exit\n\
                 test -s \"$list.plan\" || exit 0\n\
                 GIT_INDEX_FILE=$list.index; export GIT_INDEX_FILE; rm -f \"$list.index\"\n\
                 git read-tree \"$(cat \"$list.tree\")\" &&\n\
                 git add -A \"--pathspec-from-file=$list.plan\" --pathspec-file-nul && git write-tree >\"$list.tree\"\n\
                 status=$?; rm -f \"$list.index\"; exit $status"
            }
            GitStep::Commit => {
                "git commit --quiet --cleanup=whitespace -m \"$message\" --only \"$files\" --pathspec-file-nul"
            }
            GitStep::Reset => "git reset --quiet \"$files\" --pathspec-file-nul",
            GitStep::Settle => {
                "git diff-tree -r -z --no-renames --name-only \"$(cat \"$list.tree\")\" HEAD >\"$list.changed\" || exit\n\
                 if test -s \"$list.changed\"; then\n\
                 git reset --quiet \"--pathspec-from-file=$list.changed\" --pathspec-file-nul || exit\n\
                 options='--no-ext-diff --no-textconv --ignore-submodules=none --name-only'\n\
                 different=$(xargs -0 \"$git\" --literal-pathspecs diff $options HEAD -- <\"$list.changed\") || exit\n\
                 if test -n \"$different\"; then printf '%s\\n' \"$different\"; exit 4; fi; exit 3; fi"
            }
        };
        format!(
            "exec 2>&1\nlist=$1 files=--pathspec-from-file=$1 message=$2 git=$3\n\
             unset {}\n\
             git() {{\n\
             \"$git\" -c gc.auto=0 -c maintenance.auto=false -c core.fsmonitor=false --literal-pathspecs \"$@\"\n}}\n{command}\n",
            OF_GIT.join(" ")
        )
    }
}

/// The work tree before the first phase.
#[derive(Debug)]
pub(crate) struct Commits {
    before: Arc<Baseline>,
    /// The project's folder, relative to the root of the work tree.
    project: PathBuf,
    earlier: attempted::EarlierWork,
    /// Files of ours, relative to the root of the work tree.
    own: Vec<PathBuf>,
}

pub(crate) type StatusQuery = BackgroundTask<BaselineResult>;

pub(crate) fn look(folder: &Path) -> StatusQuery {
    let folder = folder.to_owned();
    BackgroundTask::start("git-status", LIMIT, move |until| Baseline::for_commit(&folder, until))
}

/// Waits for a query outside of a run. A signal that ends this process ends git first.
pub(crate) fn wait(mut look: StatusQuery) -> Option<BaselineResult> {
    let (result, over) = (look.result(), look.over());
    let _ = signals::before_the_end(move || {
        look.give_up();
        let _ = over.recv();
    });
    result.recv().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCommits {
    /// No git, or no work tree.
    NoGit,
    /// git failed, or was too slow.
    Failed,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The files to commit, relative to the root of the work tree.
    pub(crate) files: Vec<PathBuf>,
    /// The files that the phase changed and that do not belong to it, relative to the root of the work tree.
    pub(crate) left: Vec<PathBuf>,
    /// The files and folders that belong to the phase, and that only another repository could commit.
    pub(crate) elsewhere: Vec<PathBuf>,
}

impl From<Incomplete> for NoCommits {
    fn from(_: Incomplete) -> NoCommits {
        NoCommits::Failed
    }
}

impl Commits {
    /// `project`: absolute and without links. `before`: from before the first phase. `own`: files of ours that exist.
    pub(crate) fn begin(
        project: &Path,
        before: Option<BaselineResult>,
        earlier: attempted::EarlierWork,
        own: &[PathBuf],
    ) -> Result<Commits, NoCommits> {
        let before = before.ok_or(NoCommits::Failed)??.ok_or(NoCommits::NoGit)?;
        let inside = project.strip_prefix(before.root()).map_err(|_| NoCommits::Failed)?.to_owned();
        let inside_tree = |path: &PathBuf| Some(path.canonicalize().ok()?.strip_prefix(before.root()).ok()?.to_owned());
        let own = own.iter().filter_map(inside_tree).collect();
        Ok(Commits { project: inside, before, earlier, own })
    }

    /// The changes that are neither spektacular's own nor of an earlier attempt.
    pub(crate) fn dirty(&self) -> Vec<PathBuf> {
        let is_foreign = |path: &PathBuf| self.earlier.foreign.contains(path);
        let changed = self.before.changed().map(Path::to_owned);
        let changed = changed.filter(|path| !self.is_own(path) && !self.earlier.files.contains(path));
        changed.chain(self.before.nested().into_iter().filter(is_foreign)).collect()
    }

    pub(crate) fn due(&self) -> Option<u16> {
        self.earlier.due
    }

    pub(crate) fn root(&self) -> &Path {
        self.before.root()
    }

    pub(crate) fn git(&self) -> &Path {
        self.before.program()
    }

    /// `last`: the work tree after the phase before, replaced by `now`. `documents`: relative to the project's folder.
    pub(crate) fn share(
        &self,
        now: Option<BaselineResult>,
        last: &mut Option<Arc<Baseline>>,
        documents: &[PathBuf],
    ) -> Result<Share, NoCommits> {
        let now = now.ok_or(NoCommits::Failed)??.ok_or(NoCommits::NoGit)?;
        let local = self.project.join(LOCAL);
        let is_document = |path: &Path| documents.iter().any(|document| self.project.join(document) == path);
        let mut share = Share::default();
        let then = last.as_ref().unwrap_or(&self.before);
        let is_ours = |path: &Path| is_document(path) || !self.before.has(path) || self.earlier.files.contains(path);
        let is_first = last.is_none();
        for path in now.changed().filter(|path| !path.starts_with(&local) && !self.is_record(path)) {
            if is_ours(path) {
                match now.uncommitted_in(path) {
                    files if files.is_empty() => share.files.push(path.to_owned()),
                    files => share.elsewhere.extend(files),
                }
            } else if !self.is_own(path) {
                let is_foreign = is_first && self.earlier.foreign.contains(path);
                share.left.extend((is_foreign || now.differs(then, path)).then(|| path.to_owned()));
            }
        }
        for path in now.nested() {
            let is_earlier = |files: &BTreeSet<PathBuf>| is_first && files.contains(&path);
            if is_earlier(&self.earlier.foreign) {
                share.left.push(path.join(""));
            } else if is_earlier(&self.earlier.files) || now.differs(then, &path) {
                share.elsewhere.push(path.join(""));
            }
        }
        let reverted = self.before.changed().filter(|path| then.has(path) && !now.has(path));
        share.left.extend(reverted.filter(|path| !self.is_own(path) && !is_ours(path)).map(Path::to_owned));
        *last = Some(now);
        Ok(share)
    }

    /// Whether a file is below `.spektacular`, or is a [record](Self::is_record) of ours.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        path.starts_with(self.project.join(HOME)) || self.is_record(path)
    }

    /// Whether a file is the report or a recording of this run. Further recordings have a number in their names.
    fn is_record(&self, path: &Path) -> bool {
        let is_further = |own: &Path| {
            let [first, this] = [own, path].map(|path| path.file_stem().unwrap_or_default().to_string_lossy());
            let number = this.strip_prefix(&*first).and_then(|rest| rest.strip_prefix('-'));
            own.parent() == path.parent()
                && own.extension() == path.extension()
                && number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        self.own.iter().any(|own| own == path || is_further(own))
    }
}

pub(crate) fn head(now: Option<BaselineResult>) -> Option<Head> {
    Some(now?.ok()??.head().clone())
}

pub(crate) struct CommitMessage<'a> {
    /// The name of the plan.
    pub(crate) plan: &'a str,
    /// The path of plan.md.
    pub(crate) target: &'a str,
    pub(crate) number: u16,
    pub(crate) title: &'a str,
    /// The ids of the tasks, with blanks between them.
    pub(crate) tasks: &'a str,
}

impl CommitMessage<'_> {
    pub(crate) fn text(&self, template: Option<&str>) -> String {
        let CommitMessage { plan, target, number, title, tasks } = self;
        if let Some(template) = template {
            return self.filled(template);
        }
        let subject: String = format!("{plan}: phase {number}, {title}").chars().take(SUBJECT).collect();
        format!("{}\n\nPlan: {target}\nTasks: {tasks}\n", subject.trim_end())
    }

    /// A value is not expanded again.
    fn filled(&self, template: &str) -> String {
        let number = self.number.to_string();
        let values = [("{plan}", self.plan), ("{n}", &*number), ("{title}", self.title), ("{tasks}", self.tasks)];
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            let found = values.iter().find(|(placeholder, _)| rest[at..].starts_with(placeholder));
            let (length, value) = found.map_or((1, "{"), |(placeholder, value)| (placeholder.len(), value));
            text.push_str(value);
            rest = &rest[at + length..];
        }
        text + rest
    }
}

pub(super) fn named(files: &[PathBuf], most: usize) -> String {
    first_of(files.iter().map(|file| shown(file)), most)
}

/// The list of files for [`GitStep::script`].
pub(crate) fn list(files: &[PathBuf]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    files.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::{CommitMessage, Commits, GitStep, NoCommits, Share, head, list, look};
    use crate::process::git::{Baseline, BaselineResult};
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::sync::Arc;
    use tempfile::TempDir;

    fn git(at: &Path, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(args).current_dir(at);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    const MESSAGE: CommitMessage<'_> =
        CommitMessage { plan: "p", target: "p.md", number: 1, title: "It", tasks: "T1.1" };

    /// Commits as the step does. Returns whether git agreed.
    fn commit(commits: &Commits, files: &[std::path::PathBuf]) -> bool {
        let at = commits.root().join(".git/list");
        fs::write(&at, list(files)).unwrap();
        let step = |step: GitStep| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &step.script(), "sh"]).arg(&at).arg(MESSAGE.text(None)).arg(commits.git());
            command.current_dir(commits.root()).env("GIT_TRACE2_EVENT", commits.root().join(TRACE));
            // As inside a hook of another repository.
            command.envs([("GIT_DIR", "/nowhere/.git"), ("GIT_INDEX_FILE", "/nowhere/index"), ("GIT_WORK_TREE", "/")]);
            let names = [("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@b.c")];
            command.envs(names).envs([("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@b.c")]);
            command.status().unwrap().success()
        };
        let done = step(GitStep::Judged) && step(GitStep::Add) && step(GitStep::Commit);
        assert!(done || step(GitStep::Reset));
        done
    }

    fn now(at: &Path) -> Option<BaselineResult> {
        look(at).result().recv().ok()
    }

    fn begin(at: &Path) -> Result<Commits, NoCommits> {
        Commits::begin(at, now(at), super::attempted::EarlierWork::default(), &[])
    }

    fn share(commits: &Commits, last: &mut Option<Arc<Baseline>>) -> Share {
        commits.share(now(commits.root()), last, &[PLAN.into()]).unwrap()
    }

    /// The log of the programs that git starts.
    const TRACE: &str = ".git/trace";
    const PLAN: &str = ".spektacular/plans/x/plan.md";

    fn repository() -> (TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        git(&at, &["init", "-q"]);
        for name in ["kept", "gone", "mine", "staged"] {
            fs::write(at.join(name), "old\n").unwrap();
        }
        git(&at, &["add", "."]);
        git(&at, &["commit", "-qm", "first"]);
        fs::create_dir_all(at.join(".spektacular/plans/x")).unwrap();
        fs::write(at.join(PLAN), "plan").unwrap();
        (folder, at)
    }

    #[test]
    fn only_files_that_the_phases_changed_are_committed() {
        let (_folder, at) = repository();
        fs::write(at.join("mine"), "mine\n").unwrap();
        fs::write(at.join("staged"), "staged\n").unwrap();
        git(&at, &["add", "staged"]);
        // The name of a new file would match this one as a pattern.
        fs::write(at.join("mine.new"), "mine\n").unwrap();
        fs::create_dir_all(at.join(".spektacular/local")).unwrap();
        let commits = begin(&at).unwrap();
        assert_eq!(commits.dirty(), ["mine", "mine.new", "staged"].map(Path::new));
        fs::write(at.join("kept"), "new\n").unwrap();
        fs::write(at.join(".spektacular/local/log"), "ours\n").unwrap();
        fs::write(at.join("*.new"), "new\n").unwrap();
        fs::write(at.join("a.new\n"), "new\n").unwrap();
        fs::remove_file(at.join("gone")).unwrap();
        let mut last = None;
        let share_now = |last: &mut Option<Arc<Baseline>>| share(&commits, last);
        let share = share_now(&mut last);
        assert_eq!(share.files, ["*.new", PLAN, "a.new\n", "gone", "kept"].map(Path::new));
        assert_eq!(share.left, Vec::<std::path::PathBuf>::new());
        assert!(commit(&commits, &share.files));
        let left = " M mine\nM  staged\n?? .spektacular/local/\n?? mine.new\n";
        assert_eq!(git(&at, &["status", "--porcelain"]), left);
        // git starts nothing that may outlive the step.
        let trace = fs::read_to_string(at.join(TRACE)).unwrap();
        assert!(trace.contains("\"commit\"") && !trace.contains("\"maintenance\"") && !trace.contains("\"gc\""));
        assert_eq!(git(&at, &["log", "-1", "--format=%s|%b"]).trim_end(), "p: phase 1, It|Plan: p.md\nTasks: T1.1");
        let commit = head(now(commits.root())).unwrap().commit;
        assert_eq!(commit.as_deref(), Some(git(&at, &["rev-parse", "HEAD"]).trim_end()));
        // A later phase changes what was not ours.
        fs::write(at.join("mine"), "theirs\n").unwrap();
        let share = share_now(&mut last);
        assert_eq!((share.files.len(), share.left), (0, vec!["mine".into()]));
        assert!(share_now(&mut last).left.is_empty());
    }

    #[test]
    fn a_hook_can_refuse_and_nothing_is_staged_then() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, at) = repository();
        let commits = begin(&at).unwrap();
        assert!(commits.dirty().is_empty(), "the plan counts as a change of the user's");
        let hook = at.join(".git/hooks/pre-commit");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at.join("new"), "new\n").unwrap();
        let share = share(&commits, &mut None);
        assert!(!commit(&commits, &share.files));
        assert_eq!(git(&at, &["status", "--porcelain"]), "?? .spektacular/\n?? new\n");
    }

    #[test]
    fn a_folder_without_git_has_no_commits() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(begin(folder.path()).err(), Some(NoCommits::NoGit));
    }

    #[test]
    fn the_subject_has_at_most_72_characters() {
        let title = "é".repeat(100);
        let target = ".spektacular/plans/x/plan.md";
        let message = CommitMessage { plan: "größe", target, number: 12, title: &title, tasks: "T12.1 T12.2" };
        let text = message.text(None);
        let mut lines = text.lines();
        let subject = lines.next().unwrap();
        assert!(subject.chars().count() == 72 && subject.starts_with("größe: phase 12, é"), "{subject}");
        assert_eq!(lines.collect::<Vec<_>>(), ["", "Plan: .spektacular/plans/x/plan.md", "Tasks: T12.1 T12.2"]);
    }

    #[test]
    fn a_template_is_filled_once() {
        let message = CommitMessage { title: "Fix {n}", ..MESSAGE };
        let text = message.text(Some("feat({plan}): {title} {{n}} {x} {\n\n{tasks}"));
        assert_eq!(text, "feat(p): Fix {n} {1} {x} {\n\nT1.1");
    }
}

//! `spec` and `plan`: a session in which the agent writes a draft, the check after each of its turns, and the rename.

use super::conversation::{Conversation, Terms};
use super::draft::{DraftPaths, Snapshot};
use super::lock::{Lock, make_local};
use super::markdown::fenced;
use super::name::Slug;
use super::permit::DraftPermit;
use super::project::{FileProblem, HOME, Project, shown};
use super::prompts::{CommonValues, PromptText, SessionPrompt};
use super::review::{self, ReviewVerdict};
use super::slip;
use super::stop::Stop;
use super::template::has_placeholder;
use super::violation::{Rule, Violation};
use super::workflow_run::WorkflowRun;
use crate::paths::absolute;
use crate::process::background_task::BackgroundTask;
use crate::process::git::Baseline;
use crate::process::query::Until;
use crate::protocol::failure::Code;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::{Artifact, Text};
use crate::protocol::review::ReviewFinding;
use crate::protocol::words::{Action, PlanStatus, Warning, WorkflowKind};
use crate::protocol::workflow::WorkflowSettings;
use crate::sessions::{SessionFile, Stored};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const GIT_LIMIT: Duration = Duration::from_secs(5);

/// The maximum number of violations that a warning names.
const REJECTED: usize = 20;

pub(crate) struct Author {
    pub kind: WorkflowKind,
    pub project: Project,
    pub name: Slug,
    pub paths: DraftPaths,
    /// The command that the description probably means. The user is asked first.
    pub doubt: Option<&'static str>,
    pub options: WorkflowSettings,
    pub ignored: Vec<Rule>,
    pub prompt: AuthorPrompt,
    pub warnings: Vec<(Warning, String)>,
    /// The file that remembers from which description or specification the draft is made, and its text.
    pub source: Option<(PathBuf, Vec<u8>)>,
    /// Held until the author is dropped. `None`: a dry run.
    pub(super) _lock: Option<Lock>,
}

pub(crate) struct AuthorPrompt {
    pub first: SessionPrompt,
    pub resume: PromptText,
    pub words: String,
    /// The change of the specification of a plan that is continued, for the agent. Empty: it did not change.
    pub news: String,
    pub review: Option<PromptText>,
    /// The need that the draft serves: a description, or a specification.
    pub need: String,
    pub values: CommonValues,
}

pub(crate) struct CheckedDraft {
    pub violations: Vec<Violation>,
    pub tasks: usize,
    /// The counts for the sentence `FILE created with COUNTS`.
    pub counts: String,
    /// The path and new bytes of a file to rewrite before the draft is renamed.
    pub rewritten: Option<(PathBuf, Vec<u8>)>,
    /// A plan that came out unchanged although its specification changed: the warning about it.
    pub stale: Option<String>,
    /// A plan that was changed after its specification: which of its phases stay.
    pub compared: Option<String>,
}

pub(crate) type CheckDraft<'c> = &'c dyn Fn(&Author) -> CheckedDraft;

impl Author {
    /// Returns the text of run.completed.
    pub(crate) fn write(&self, outer: &mut WorkflowRun<'_>, check: CheckDraft<'_>) -> Result<String, Stop> {
        outer.hide(self.paths.hidden());
        for (warning, text) in &self.warnings {
            outer.warn(*warning, text.as_str());
        }
        if let Some(word) = self.doubt {
            slip::confirm(outer, word)?;
        }
        self.steps(outer, PlanStatus::InProgress, PlanStatus::Pending);
        make_local(&self.project).map_err(Stop::from)?;
        let first = self.begin(outer, check).map_err(unwritable)?;
        let ended = self.attempts(outer, &first, check);
        self.project.remove_empty(&self.paths.draft);
        let checked = ended?;
        self.finish(outer, &checked).map_err(unwritable)?;
        match &checked.stale {
            Some(text) => outer.warn(Warning::SpecChanged, text.as_str()),
            None => self.remember_source(),
        }
        if let Some(text) = &checked.compared {
            outer.warn(Warning::SpecChanged, text.as_str());
        }
        self.steps(outer, PlanStatus::Completed, PlanStatus::Completed);
        outer.end.complete = true;
        Ok(format!("{} created with {}", shown(&self.paths.target), checked.counts))
    }

    fn attempts(
        &self,
        outer: &mut WorkflowRun<'_>,
        first: &SessionPrompt,
        check: CheckDraft<'_>,
    ) -> Result<CheckedDraft, Stop> {
        let finished = self.paths.snapshot(&self.project, &self.paths.finished);
        let mut conversation = Conversation::default();
        let (mut again, mut attempt, mut warned, mut rounds) = (None, 1, false, 0);
        loop {
            let draft = self.paths.snapshot(&self.project, &self.paths.draft);
            let is_last = attempt >= self.options.attempts;
            self.turn(outer, &mut conversation, (first, again), !is_last)?;
            self.steps(outer, PlanStatus::Completed, PlanStatus::InProgress);
            let mut checked = self.examine(outer, &finished, &draft, check)?;
            if !outer.seen().files.is_empty() && !std::mem::replace(&mut warned, true) {
                let text = "Files other than the draft were changed: see the artifacts of this run.";
                outer.warn(Warning::UnexpectedChange, text);
            }
            if checked.violations.is_empty() && conversation.leave(outer)? {
                // Something of the agent's may run when it exits, such as a hook.
                checked = self.examine(outer, &finished, &draft, check)?;
            }
            let mut found = Vec::new();
            if checked.violations.is_empty() {
                found = self.review(outer, &finished)?;
                if found.is_empty() {
                    return Ok(checked);
                }
                if is_last || rounds == self.options.review_rounds {
                    outer.tell_open(&shown(&self.paths.target), &found);
                    outer.end.review = found;
                    return Ok(checked);
                }
                rounds += 1;
            } else if is_last {
                return Err(self.invalid(outer, &checked));
            } else {
                self.tell_rejection(outer, attempt, &checked.violations);
            }
            attempt += 1;
            outer.budgets_left()?;
            self.steps(outer, PlanStatus::InProgress, PlanStatus::Pending);
            // The session knows the user's words already.
            let news = if found.is_empty() { String::new() } else { review::of_draft(&found) };
            again = Some(self.continuation(&checked.violations, "", &news));
        }
    }

    fn review(&self, outer: &mut WorkflowRun<'_>, finished: &Snapshot) -> Result<Vec<ReviewFinding>, Stop> {
        let Some(text) = &self.prompt.review else { return Ok(Vec::new()) };
        let DraftPaths { draft, target, .. } = &self.paths;
        let before = self.paths.snapshot(&self.project, draft);
        let subject = format!("This is the draft of a {}: {}", self.what(), shown(draft));
        let files = self.paths.files(draft);
        let named = files.iter().zip(&before).map(|(path, bytes)| {
            let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
            format!("`{}`:\n\n{}", shown(path), fenced("markdown", &text))
        });
        let work = named.collect::<Vec<_>>().join("\n\n");
        let prompt = review::prompt(&self.prompt.values, text, (&subject, &self.prompt.need, &work));
        let place = |file: &str| {
            let path = absolute(self.project.folder(), file);
            files.iter().find(|own| self.project.folder().join(own) == path).map(|own| shown(own))
        };
        let tree = self.work_tree(outer)?;
        let verdict = outer.review(&shown(target), prompt, None, place)?;
        if !outer.seen().files.is_empty() || self.has_changed(outer, tree)? {
            let text =
                format!("{}: the review changed files beside the draft, which stay: see git status", shown(target));
            outer.warn(Warning::UnexpectedChange, text);
        }
        if self.paths.snapshot(&self.project, draft) != before {
            self.paths.restore(&self.project, draft, &before).map_err(unwritable)?;
            let text = format!("The review changed {}; it was restored.", shown(draft));
            outer.warn(Warning::UnexpectedChange, text);
        }
        self.put_back(outer, finished, &before).map_err(unwritable)?;
        match verdict {
            ReviewVerdict::Found(found) => Ok(found),
            ReviewVerdict::Accepted | ReviewVerdict::Unreviewed => Ok(Vec::new()),
        }
    }

    /// `None`: git cannot list the work tree.
    fn work_tree(&self, outer: &mut WorkflowRun<'_>) -> Result<Option<Arc<Baseline>>, Stop> {
        let folder = self.project.folder().to_owned();
        let look = move |until: &Until| Baseline::now(&folder, until).ok().flatten();
        Ok(outer.wait_for_task(None, BackgroundTask::start("git-baseline", GIT_LIMIT, look))?.flatten())
    }

    fn has_changed(&self, outer: &mut WorkflowRun<'_>, before: Option<Arc<Baseline>>) -> Result<bool, Stop> {
        let (Some(before), own) = (before, self.project.folder().join(HOME)) else { return Ok(false) };
        let look = move |until: &Until| {
            let files = before.compare(until).unwrap_or_default();
            files.iter().any(|(path, _)| !path.starts_with(&own)) || before.has_ignored_changes(&own, until) == Ok(true)
        };
        Ok(outer.wait_for_task(None, BackgroundTask::start("git-compare", GIT_LIMIT, look))? == Some(true))
    }

    fn examine(
        &self,
        outer: &mut WorkflowRun<'_>,
        finished: &Snapshot,
        draft: &Snapshot,
        check: CheckDraft<'_>,
    ) -> Result<CheckedDraft, Stop> {
        self.put_back(outer, finished, draft).map_err(unwritable)?;
        let checked = check(self);
        let main = self.paths.files(&self.paths.draft).first().map(|path| shown(path));
        let is_missing = |v: &Violation| v.rule == Rule::MissingFile && Some(&v.file) == main.as_ref();
        let is_checked = !checked.violations.iter().any(is_missing);
        outer.end.tasks = is_checked.then_some(checked.tasks as u64);
        outer.end.violations = checked.violations.iter().map(Violation::breach).collect();
        Ok(checked)
    }

    fn steps(&self, outer: &mut WorkflowRun<'_>, writing: PlanStatus, checking: PlanStatus) {
        let what = self.what();
        outer.plan([(format!("Write the {what}"), writing), (format!("Check the {what}"), checking)]);
    }

    fn what(&self) -> &'static str {
        super::document(self.kind).1
    }

    fn begin(&self, outer: &mut WorkflowRun<'_>, check: CheckDraft<'_>) -> Result<SessionPrompt, FileProblem> {
        let DraftPaths { draft, finished, .. } = &self.paths;
        // A killed run may have left the room for its draft.
        self.project.remove_empty(draft);
        if !self.options.resume {
            self.remember_source();
            outer.end.kept.extend(self.project.give_way(draft)?);
            self.make_room()?;
            return Ok(self.prompt.first.clone());
        }
        if !self.paths.is_there(&self.project, draft)? {
            // Something else, such as a link, may have the draft's name.
            outer.end.kept.extend(self.project.give_way(draft)?);
            let copy = self.paths.snapshot(&self.project, finished);
            self.paths.restore(&self.project, draft, &copy)?;
        }
        self.make_room()?;
        Ok(self.continuation(&check(self).violations, &self.prompt.words, &self.prompt.news))
    }

    /// Remembers the specification from which the plan is made. Without it, a later run shows no difference.
    fn remember_source(&self) {
        if let Some((path, bytes)) = &self.source {
            let _ = self.project.write(path, bytes);
        }
    }

    /// Creates the folders of the draft's files: an agent in a sandbox may write only where a folder exists.
    fn make_room(&self) -> Result<(), FileProblem> {
        let DraftPaths { draft, .. } = &self.paths;
        self.paths.files(draft).iter().try_for_each(|file| self.project.make_room_for(file))
    }

    /// `news`: a part before the user's words.
    fn continuation(&self, violations: &[Violation], words: &str, news: &str) -> SessionPrompt {
        let line = |v: &Violation| format!("{}: {}: {}\n", v.line.unwrap_or_default(), v.rule.word(), v.text);
        let violations: String = violations.iter().map(line).collect();
        let file = shown(&self.paths.draft);
        let AuthorPrompt { resume, values, .. } = &self.prompt;
        let has_place = has_placeholder(&resume.text, "words");
        let words = if has_place && !news.is_empty() { format!("{news}\n\n{words}") } else { words.to_owned() };
        let mut prompt = values.fill(resume, |name| match name {
            "file" => Some(&file),
            "violations" => Some(violations.trim_end()),
            "words" => Some(words.trim_end()),
            _ => None,
        });
        if !has_place && !news.is_empty() {
            prompt.text = format!("{}\n\n{news}\n", prompt.text.trim_end());
        }
        prompt
    }

    /// At first, resumes the last session of this name and agent, if possible. `again`: the prompt of a further turn.
    fn turn(
        &self,
        outer: &mut WorkflowRun<'_>,
        conversation: &mut Conversation,
        (first, again): (&SessionPrompt, Option<SessionPrompt>),
        keeps_process: bool,
    ) -> Result<(), Stop> {
        let place = self.session_file(outer);
        let judge = DraftPermit {
            project: self.project.folder().to_owned(),
            draft: self.project.folder().join(&self.paths.draft),
            check: self.prompt.values.check.clone(),
        };
        let terms = Terms { judge: Arc::new(judge), limit: None, offers_blocked: false, keeps_process };
        let ended = match again {
            Some(again) => {
                let whole = first.followed_by(&again);
                conversation.further_turn(outer, again, whole, &terms)
            }
            None => {
                let known = place.as_ref().filter(|_| self.options.resume && outer.can_resume());
                match known.and_then(SessionFile::id) {
                    Some(id) => conversation.resume(outer, id, first.clone(), first.clone(), &terms),
                    None => conversation.begin(outer, first.clone(), &terms),
                }
            }
        };
        // Another agent may have taken over.
        if let (Some(place), Some(id)) =
            (self.session_file(outer), outer.session_id().and_then(|id| SessionId::stored(id)))
        {
            // Without it, the next run begins a new session.
            let _ = place.keep(&Stored::now(&id, ""));
        }
        ended.map(drop)
    }

    fn session_file(&self, outer: &WorkflowRun<'_>) -> Option<SessionFile> {
        SessionFile::of_document(self.project.folder(), self.kind, self.name.as_str(), &outer.agent().name)
    }

    /// Moves a link, or anything else of the wrong kind, out of the place of a file. Returns whether there was one.
    fn unblock(&self, outer: &mut WorkflowRun<'_>, path: &Path) -> Result<bool, FileProblem> {
        let is_blocked = self.project.entry(path)?.is_some() && !self.paths.is_there(&self.project, path)?;
        if is_blocked {
            outer.end.kept.extend(self.project.give_way(path)?);
        }
        Ok(is_blocked)
    }

    /// Restores the finished file. If the agent changed it and not the draft, its changes become the draft.
    fn put_back(&self, outer: &mut WorkflowRun<'_>, finished: &Snapshot, draft: &Snapshot) -> Result<(), FileProblem> {
        let (project, paths) = (&self.project, &self.paths);
        if self.unblock(outer, &paths.draft)? {
            self.make_room()?;
            let text = format!("{} was not written as a regular file; it was moved.", shown(&paths.draft));
            outer.warn(Warning::UnexpectedChange, text);
        }
        if self.unblock(outer, &paths.finished)? {
            paths.restore(project, &paths.finished, finished)?;
            let text =
                format!("The agent put something else in the place of {}; it was moved.", shown(&paths.finished));
            outer.warn(Warning::UnexpectedChange, text);
        }
        if paths.snapshot(project, &paths.finished) == *finished {
            return Ok(());
        }
        let untouched = paths.snapshot(project, &paths.draft) == *draft;
        let moved = self.set_aside(outer, untouched);
        // Even if the agent blocked the folder for its version.
        paths.restore(project, &paths.finished, finished)?;
        moved?;
        let text = format!("The agent changed {}; the file was restored.", shown(&paths.target));
        outer.warn(Warning::UnexpectedChange, text);
        Ok(())
    }

    fn set_aside(&self, outer: &mut WorkflowRun<'_>, untouched: bool) -> Result<(), FileProblem> {
        let (project, paths) = (&self.project, &self.paths);
        if !untouched {
            outer.end.kept.extend(project.give_way(&paths.finished)?);
            return Ok(());
        }
        outer.end.kept.extend(project.give_way(&paths.draft)?);
        if project.entry(&paths.finished)?.is_some() {
            project.rename(&paths.finished, &paths.draft)?;
        }
        Ok(())
    }

    fn finish(&self, outer: &mut WorkflowRun<'_>, checked: &CheckedDraft) -> Result<(), FileProblem> {
        let (project, paths) = (&self.project, &self.paths);
        if let Some((path, bytes)) = &checked.rewritten {
            project.write(path, bytes)?;
        }
        let before = paths.snapshot(project, &paths.finished);
        outer.end.kept.extend(project.give_way(&paths.finished)?);
        project.rename(&paths.draft, &paths.finished)?;
        let after = paths.snapshot(project, &paths.finished);
        for ((path, before), after) in paths.files(&paths.finished).iter().zip(before).zip(after) {
            let action = if before.is_some() { Action::Modified } else { Action::Created };
            outer.wrote(artifact(path, action, after.map(|bytes| bytes.len() as u64)));
        }
        Ok(())
    }

    fn tell_rejection(&self, outer: &mut WorkflowRun<'_>, attempt: u32, violations: &[Violation]) {
        let of = self.options.attempts;
        let text = format!("The draft of attempt {attempt} of {of} was rejected: {}", broken(violations));
        outer.warn(Warning::DraftRejected, text);
    }

    fn invalid(&self, outer: &WorkflowRun<'_>, checked: &CheckedDraft) -> Stop {
        let count = checked.violations.len();
        let draft = shown(&self.paths.draft);
        let missing = checked.violations.iter().all(|violation| violation.rule == Rule::MissingFile);
        let what = match (missing, count) {
            (true, 1) => format!("The agent did not write {}", checked.violations[0].file),
            (_, 1) => format!("{draft} breaks a rule"),
            (_, count) => format!("{draft} has {count} violations"),
        };
        let remedy = match self.paths.snapshot(&self.project, &self.paths.draft).iter().any(Option::is_some) {
            true => "correct the draft, or let the agent continue with --continue.",
            false => {
                "read what the agent said, check --skill if you set it, and run the command again. \
                 --continue needs a draft."
            }
        };
        let message = format!("{what}: {remedy}{}", outer.denials());
        Stop::failed(Code::ResultInvalid, message)
    }
}

fn broken(violations: &[Violation]) -> String {
    let place = |v: &Violation| format!("{}:{}: {}", v.file, v.line.unwrap_or_default(), v.rule.word());
    let mut all: Vec<String> = violations.iter().take(REJECTED).map(place).collect();
    if violations.len() > REJECTED {
        all.push(format!("and {} more", violations.len() - REJECTED));
    }
    all.join(", ")
}

/// The run sets the id of the artifact.
fn artifact(path: &Path, action: Action, size_bytes: Option<u64>) -> Artifact {
    let (artifact_id, path) = (String::new(), Text::from(shown(path)));
    Artifact { artifact_id, path, action, kind: "file", size_bytes, truncated: false }
}

pub(crate) fn unwritable(problem: FileProblem) -> Stop {
    let message = match problem {
        FileProblem::Exhausted => return problem.refusal("A file of the workflow").into(),
        FileProblem::Outside => {
            "Cannot write a file below .spektacular, because a folder there has become a link: restore the folder."
        }
        FileProblem::TooLarge | FileProblem::Io(_) => {
            "Cannot write a file below .spektacular: free some space, or check the permissions."
        }
    };
    Stop::failed(Code::ResourceExhausted, message)
}

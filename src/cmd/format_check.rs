//! `spec check` and `plan check`: the violations in files, without an agent.

use super::{complain, secrets_here};
use crate::clean::one_line;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{FlagForm, GivenFlag, Row, flags, json, output, own_texts, store};
use crate::cli::{Output, Wrong};
use crate::io::output::{diagnose, print};
use crate::json::{map_strings, to_line};
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure, NO_DIRECTORY};
use crate::protocol::words::RefusalReason;
use crate::workflow::check::{self, Contents, PlanCheck};
use crate::workflow::counted;
use crate::workflow::documents::is_readme;
use crate::workflow::name::Slug;
use crate::workflow::plan::{PlanPhase, Task, WorkPlan};
use crate::workflow::project::{Argument, Entry, FileProblem, PlanPath, Project, plan_folder, shown, spec_file};
use crate::workflow::violation::{Rule, Violation};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub(super) const SPEC_CHECK: Command = Command {
    words: Words::Free("FILE...", Offers::Files),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "spec check",
        &CommandText {
            about: "check specifications",
            more: "\
FILE is the name of a specification, or a path that contains / or ends in .md.
Each violation is printed as FILE:LINE: RULE: TEXT. The line is 0 if a part of the file is missing or the file is too large.
The exit code is 0, or 1 if there are violations, or 2 if a file cannot be read. `spektacular help spec reference` explains the rules.",
            examples: &[
                ("spektacular spec check login", "check .spektacular/specs/login.md"),
                ("spektacular spec check --output json docs/login.md", "check any file, for a program"),
                ("spektacular spec check --ignore line-reference login", "exclude a rule"),
            ],
        },
        |given, words| Ok(Runnable::new(read("FILE", given, words)?, |args| all(&args, spec))),
    )
};

pub(super) const PLAN_CHECK: Command = Command {
    words: Words::Free("PLAN...", Offers::Plans),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "plan check",
        &CommandText {
            about: "check plans",
            more: "\
PLAN is the name of a plan, or a path that contains / or ends in .md.
A name or a folder checks plan.md, research.md and context.md, which must all exist. The path of a plan.md checks that file only.
Each violation is printed as FILE:LINE: RULE: TEXT. The line is 0 if a part of the file is missing or the file is too large.
The exit code is 0, or 1 if there are violations, or 2 if a plan cannot be read. `spektacular help spec reference` explains the rules.",
            examples: &[
                ("spektacular plan check login", "check the files in .spektacular/plans/login"),
                ("spektacular plan check --output json login", "also list its phases, for a program"),
            ],
        },
        |given, words| Ok(Runnable::new(read("PLAN", given, words)?, |args| all(&args, plan))),
    )
};

const FLAGS: &[Row<CheckArgs>] = &[
    own_texts("ignore", "RULE", FlagForm::Item, "exclude this rule from the check", |to: &mut CheckArgs| {
        &mut to.ignored
    })
    .begins("The check"),
    output(|to: &mut CheckArgs| &mut to.output),
    json(|to: &mut CheckArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct CheckArgs {
    /// The files, as paths or names. At least one.
    files: Vec<OsString>,
    ignored: Vec<String>,
    output: Output,
}

fn read(what: &str, given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<CheckArgs, Wrong> {
    if words.is_empty() {
        return Err(format!("Missing {what}: give a name, or a path that contains / or ends in .md."));
    }
    Ok(CheckArgs { files: words, ..store(FLAGS, given)? })
}

const VIOLATED: u8 = 1;
const UNREADABLE: u8 = 2;

pub(super) struct Findings {
    /// The file as messages name it.
    file: String,
    pub(super) tasks: usize,
    pub(super) violations: Vec<Violation>,
    /// `None`: the file is not a plan.
    pub(super) plan: Option<WorkPlan>,
}

/// `None`: the argument is not a document to check.
type Check = fn(&Path, &OsStr, &[Rule]) -> Result<Option<Findings>, Failure>;

fn all(typed: &CheckArgs, check: Check) -> u8 {
    let ignored: Result<Vec<Rule>, String> = typed.ignored.iter().map(|name| Rule::ignored(name)).collect();
    let ignored = match ignored {
        Ok(ignored) => ignored,
        Err(why) => return complain(&Failure::usage(format!("--ignore: {why}"))),
    };
    // A directory that no longer exists has no files either.
    let cwd = std::env::current_dir().unwrap_or_default();
    let redactor = secrets_here();
    let redact = |text: &str| redactor.redact(text).into_owned();
    let mut exit = 0;
    for file in &typed.files {
        let name = shown(Path::new(file));
        let Some(found) = check(&cwd, file, &ignored).transpose() else {
            if !print(&skipped(&redact(&name), typed.output)) {
                return EXIT_UNDELIVERED;
            }
            continue;
        };
        exit = exit.max(match &found {
            Ok(found) if found.violations.is_empty() => 0,
            Ok(_) => VIOLATED,
            Err(_) => UNREADABLE,
        });
        if let Err(refusal) = &found {
            let message = redact(&format!("{name}: {}", refusal.message.for_person().unredacted()));
            diagnose(&format!("spektacular: {}: {message}", Code::InvalidRequest.name()));
        }
        let text = match typed.output {
            Output::Json => as_json(&name, &found, &redact),
            Output::Cli => found.as_ref().map(|found| in_words(found, &redact)).unwrap_or_default(),
        };
        if !print(&text) {
            return EXIT_UNDELIVERED;
        }
    }
    exit
}

fn skipped(name: &str, output: Output) -> String {
    match output {
        Output::Json => {
            let line = json!({"file": name, "valid": true, "tasks": null, "violations": [], "skipped": true});
            to_line(&line) + "\n"
        }
        Output::Cli => format!("{}: skipped, not a specification\n", one_line(name)),
    }
}

fn in_words(found: &Findings, redact: &dyn Fn(&str) -> String) -> String {
    let mut lines: Vec<String> = found.violations.iter().map(Violation::in_words).collect();
    if lines.is_empty() {
        lines.push(format!("{}: valid, {}", found.file, counted(found.tasks, "task")));
    }
    lines.iter().map(|line| one_line(&redact(line)) + "\n").collect()
}

fn as_json(name: &str, found: &Result<Findings, Failure>, redact: &dyn Fn(&str) -> String) -> String {
    map_strings(&to_line(&object(name, found)), &mut |text| redact(text)) + "\n"
}

/// `name`: the file that could not be read.
pub(super) fn object(name: &str, found: &Result<Findings, Failure>) -> Value {
    let mut line = match found {
        Ok(found) => {
            let violations: Vec<Value> = found.violations.iter().map(|of| violation(of, &found.file)).collect();
            json!({"file": found.file, "valid": violations.is_empty(), "tasks": found.tasks, "violations": violations})
        }
        Err(refusal) => {
            let error = json!({"reason": refusal.reason.map(RefusalReason::word), "message": refusal.message.text().unredacted()});
            json!({"file": name, "valid": false, "tasks": null, "violations": [], "error": error})
        }
    };
    if let Some(plan) = found.as_ref().ok().and_then(|found| found.plan.as_ref()) {
        line["phases"] = plan.phases.iter().map(phase).collect();
    }
    line
}

/// A violation in another file of a plan names that file.
fn violation(violation: &Violation, file: &str) -> Value {
    let mut shown = json!({"line": violation.line, "rule": violation.rule.word(), "text": violation.text});
    if violation.file != file {
        shown["file"] = json!(violation.file);
    }
    shown
}

fn spec(cwd: &Path, typed: &OsStr, ignored: &[Rule]) -> Result<Option<Findings>, Failure> {
    if is_readme(Path::new(typed)) {
        return Ok(None);
    }
    let (project, path, file) = find("FILE", cwd, typed, spec_file)?;
    spec_at(&project, &path, shown(&file), ignored).map(Some)
}

/// `file`: its name in messages.
pub(super) fn spec_at(project: &Project, path: &Path, file: String, ignored: &[Rule]) -> Result<Findings, Failure> {
    let contents = match project.markdown(path) {
        Ok(Contents::Missing) => Err(FileProblem::Io(io::ErrorKind::NotFound)),
        contents => contents,
    };
    let contents = contents.map_err(|problem| problem.refusal(&file))?;
    let (spec, violations) = check::spec(&file, &contents, ignored);
    Ok(Findings { file, tasks: spec.tasks.len(), violations, plan: None })
}

fn plan(cwd: &Path, typed: &OsStr, ignored: &[Rule]) -> Result<Option<Findings>, Failure> {
    let (project, inside, named) = find("PLAN", cwd, typed, plan_folder)?;
    let (path, named) = (PlanPath::new(inside.clone()), PlanPath::new(named));
    // The path of a plan.md means that file alone; a folder means all files of the plan.
    let whole = path.folder == inside;
    let wanted = if whole { Entry::Folder } else { Entry::File };
    match project.entry(&inside) {
        Ok(Some(entry)) if entry == wanted => {}
        Ok(None) => return Err(FileProblem::Io(io::ErrorKind::NotFound).refusal("PLAN")),
        Ok(Some(_)) => return Err(FileProblem::Outside.refusal("PLAN")),
        Err(problem) => return Err(problem.refusal("PLAN")),
    }
    plan_at(&project, &path, (&named.folder, whole), ignored).map(Some)
}

/// `folder`: its folder in messages. `whole`: whether research.md and context.md must be there.
pub(super) fn plan_at(
    project: &Project,
    path: &PlanPath,
    (folder, whole): (&Path, bool),
    ignored: &[Rule],
) -> Result<Findings, Failure> {
    let request = PlanCheck { shown: folder, whole, of: None, ignored };
    let (plan, _, violations) = check::plan(project, path, request).map_err(|problem| problem.refusal("PLAN"))?;
    let file = shown(&folder.join(path.file.file_name().unwrap_or_default()));
    Ok(Findings { file, tasks: plan.tasks(), violations, plan: Some(plan) })
}

pub(super) fn phase(phase: &PlanPhase) -> Value {
    let task = |task: &Task| json!({"id": task.id(), "text": task.text, "done": task.done});
    json!({
        "id": phase.id(),
        "title": phase.title,
        "state": if phase.is_done() { "done" } else { "open" },
        "tasks": phase.tasks.iter().map(task).collect::<Vec<_>>(),
        "verify": phase.verify,
        "manual": phase.manual,
        "protect": phase.protect.iter().map(|entry| entry.entry()).collect::<Vec<_>>(),
    })
}

/// The project, the path inside it, and the path to show. `of_name`: the path of a name.
fn find(
    what: &str,
    cwd: &Path,
    typed: &OsStr,
    of_name: fn(&Slug) -> PathBuf,
) -> Result<(Project, PathBuf, PathBuf), Failure> {
    match Argument::parse(what, typed)? {
        Argument::Path(path) => located(what, cwd, &path).map(|(project, inside)| (project, inside, path)),
        Argument::Name(name) => Ok((around(cwd)?, of_name(&name), of_name(&name))),
    }
}

pub(super) fn around(cwd: &Path) -> Result<Project, Failure> {
    let gone = |_| Failure::refused_for(RefusalReason::NotFound, NO_DIRECTORY);
    Project::around(cwd).map_err(gone)
}

/// A check may read any file: one outside the current project belongs to the project around its own folder.
fn located(what: &str, cwd: &Path, path: &Path) -> Result<(Project, PathBuf), Failure> {
    let project = around(cwd)?;
    match project.inside(what, path, cwd) {
        Ok(inside) => Ok((project, inside)),
        Err(refusal) => {
            let folder = cwd.join(path);
            let own = folder.parent().and_then(|folder| Project::around(folder).ok()).ok_or_else(|| refusal.clone())?;
            let inside = own.inside(what, path, cwd)?;
            Ok((own, inside))
        }
    }
}

//! `status`: the specifications and plans of a project, each with its state and the command that comes next.

use super::format_check::{Findings, around, object, plan_at, spec_at};
use super::{finish, secrets_here};
use crate::clean::one_line;
use crate::cli::Output;
use crate::cli::command::{Command, CommandText, Runnable};
use crate::cli::row::{OutputArgs, flags, store_alone};
use crate::json::{map_strings, to_line};
use crate::protocol::failure::Failure;
use crate::workflow::check::{spec_has_changed, spec_path};
use crate::workflow::counted;
use crate::workflow::documents::Document;
use crate::workflow::name::Slug;
use crate::workflow::plan::{State, WorkPlan};
use crate::workflow::project::{FILE_BYTES_MAX, PlanPath, Project, shown};
use crate::workflow::spec::check;
use crate::workflow::violation::Rule;
use serde_json::{Value, json};

pub(super) const COMMAND: Command = Command {
    flags: &flags::<_, { OutputArgs::FLAGS.len() }>(OutputArgs::FLAGS),
    ..Command::named(
        "status",
        &CommandText {
            about: "list the specifications and plans, and what comes next",
            more: "\
Shows the name, the state, the number of tasks and the next command for each specification and plan of the project.
No agent is started and nothing is written.",
            examples: &[
                ("spektacular status", "list the specifications and plans of this project"),
                ("spektacular status --output json", "the same as one JSON object"),
            ],
        },
        |given, words| Ok(Runnable::new(store_alone("status", OutputArgs::FLAGS, given, &words)?, |args| run(&args))),
    )
};

/// The columns between two cells.
const GAP: usize = 2;

struct Row {
    document: Document,
    found: Result<Findings, Failure>,
    state: String,
    /// The number of requirements that passed phases cover. `None`: the tasks have no ids, or nothing is planned.
    covered: Option<usize>,
    /// The command that comes next. `None`: nothing is left to do, or no command can name the document.
    next: Option<String>,
}

fn run(typed: &OutputArgs) -> u8 {
    let cwd = std::env::current_dir().unwrap_or_default();
    finish(around(&cwd).and_then(|project| {
        let (specs, plans) = rows(&project)?;
        let redactor = secrets_here();
        let redact = |text: &str| redactor.redact(text).into_owned();
        Ok(match typed.output {
            Output::Json => as_json(&project, &specs, &plans, &redact),
            Output::Cli => in_words(&specs, &plans, &redact),
        })
    }))
}

/// The specifications and the plans. Error: one of their folders cannot be read.
fn rows(project: &Project) -> Result<(Vec<Row>, Vec<Row>), Failure> {
    let specs = project.specs().map_err(|problem| problem.refusal("The folder of specifications"))?;
    let plans = project.plans().map_err(|problem| problem.refusal("The folder of plans"))?;
    let is_planned = |name: &str| plans.iter().any(|plan| plan.name == name);
    let has_spec = |name: &str| specs.iter().any(|spec| spec.name == name && !spec.is_draft);
    let plan_rows: Vec<Row> = plans.iter().map(|plan| plan_row(project, plan, has_spec(&plan.name))).collect();
    let row = |spec: &Document| {
        let covered = covered(project, spec, &plan_rows);
        Row { covered, ..spec_row(project, spec, is_planned(&spec.name)) }
    };
    let spec_rows = specs.iter().map(row).collect();
    Ok((spec_rows, plan_rows))
}

fn covered(project: &Project, spec: &Document, plans: &[Row]) -> Option<usize> {
    let bytes = project.read(&spec.path, FILE_BYTES_MAX).ok().flatten()?;
    let ids = check("", &bytes, &[]).0.ids()?;
    let finished = plans.iter().filter(|row| !row.document.is_draft);
    let mut plans = finished.filter_map(|row| row.found.as_ref().ok()?.plan.as_ref());
    let plan = plans.rfind(|plan| spec_path(project, plan).is_some_and(|path| path == spec.path))?;
    Some(ids.into_iter().filter(|id| plan.covers(*id) == Some(true)).count())
}

fn spec_row(project: &Project, document: &Document, is_planned: bool) -> Row {
    let found = spec_at(project, &document.path, shown(&document.path), &[]);
    let breaks = found.as_ref().is_ok_and(|found| !found.violations.is_empty());
    let state = match &found {
        Err(_) => vec!["unreadable".to_owned()],
        Ok(found) => {
            let finished = if breaks || document.is_draft { None } else { Some("valid".to_owned()) };
            let draft = document.is_draft.then(|| "draft".to_owned());
            draft.into_iter().chain(finished).chain(violations(found)).collect()
        }
    };
    let next = match Slug::parse(&document.name) {
        Some(name) if breaks || document.is_draft => Some(format!("spektacular spec --continue --name {name}")),
        Some(name) if !is_planned && found.is_ok() => Some(format!("spektacular plan {name}")),
        Some(_) | None => None,
    };
    Row { document: document.clone(), found, state: state.join(", "), covered: None, next }
}

fn plan_row(project: &Project, document: &Document, has_spec: bool) -> Row {
    let found = plan_at(project, &PlanPath::in_folder(document.path.clone()), (&document.path, true), &[]);
    let state = match &found {
        Err(_) => vec!["unreadable".to_owned()],
        Ok(found) if document.is_draft => std::iter::once("draft".to_owned()).chain(violations(found)).collect(),
        Ok(found) => {
            let plan = found.plan.as_ref().filter(|plan| !plan.phases.is_empty());
            let changed = || plan.is_some_and(|plan| spec_has_changed(project, plan));
            let mut state: Vec<String> = violations(found).into_iter().chain(plan.map(done)).collect();
            state.extend(plan.and_then(failed));
            state.extend(changed().then(|| "specification changed since".to_owned()));
            state
        }
    };
    let next = found.as_ref().ok().zip(Slug::parse(&document.name)).and_then(|(found, name)| {
        // Coverage and the other files of the plan matter while it is written, not while it is carried out.
        let mut ignored = vec![Rule::Uncovered, Rule::UnknownRequirement];
        ignored.extend(found.plan.as_ref().map(|_| Rule::MissingFile));
        let breaks = found.violations.iter().any(|violation| !ignored.contains(&violation.rule));
        let open = found.plan.as_ref().and_then(WorkPlan::first_open);
        match document.is_draft || breaks {
            true => has_spec.then(|| format!("spektacular plan --continue {name}")),
            false => open.map(|_| format!("spektacular implement {name}")),
        }
    });
    Row { document: document.clone(), found, state: state.join(", "), covered: None, next }
}

fn violations(found: &Findings) -> Option<String> {
    (!found.violations.is_empty()).then(|| format!("violations: {}", found.violations.len()))
}

fn done(plan: &WorkPlan) -> String {
    let done = plan.phases.iter().filter(|phase| phase.is_done()).count();
    format!("{done} of {} done", counted(plan.phases.len(), "phase"))
}

fn failed(plan: &WorkPlan) -> Option<String> {
    let phase = plan.first_open()?;
    match phase.state.as_ref()?.state {
        State::Failed => Some(format!("failed at {}", phase.id())),
        State::InProgress | State::Passed => None,
    }
}

fn as_json(project: &Project, specs: &[Row], plans: &[Row], redact: &dyn Fn(&str) -> String) -> String {
    let row = |row: &Row| {
        let mut value = object(&shown(&row.document.path), &row.found);
        value["name"] = json!(row.document.name);
        value["state"] = json!(row.state);
        value["next"] = json!(row.next);
        value
    };
    let all = |rows: &[Row]| rows.iter().map(row).collect::<Vec<Value>>();
    let mut covered = all(specs);
    for (value, count) in covered.iter_mut().zip(specs.iter().map(|row| row.covered)) {
        count.into_iter().for_each(|count| value["covered"] = json!(count));
    }
    let line = json!({"project": shown(project.folder()), "specs": covered, "plans": all(plans)});
    map_strings(&to_line(&line), &mut |text| redact(text)) + "\n"
}

fn in_words(specs: &[Row], plans: &[Row], redact: &dyn Fn(&str) -> String) -> String {
    if specs.is_empty() && plans.is_empty() {
        return "This project has no specification yet. Next: spektacular spec \"DESCRIPTION\".\n".to_owned();
    }
    let cells = |row: &Row| {
        let tasks = row.found.as_ref().map(|found| format!(", {}", counted(found.tasks, "task"))).unwrap_or_default();
        let covered = row.covered.map(|count| format!(", {count} covered")).unwrap_or_default();
        let next = row.next.as_ref().map(|next| format!("next: {next}")).unwrap_or_default();
        [row.document.name.clone(), format!("{}{tasks}{covered}", row.state), next].map(|cell| one_line(&redact(&cell)))
    };
    let (specs, plans): (Vec<_>, Vec<_>) = (specs.iter().map(cells).collect(), plans.iter().map(cells).collect());
    let width = |at: usize| specs.iter().chain(&plans).map(|cells| cells[at].chars().count()).max().unwrap_or_default();
    let (first, second) = (width(0) + GAP, width(1) + GAP);
    let line = |[name, state, next]: &[String; 3]| format!("{:GAP$}{name:first$}{state:second$}{next}", "");
    let mut text = String::new();
    for (title, rows) in [("Specifications", specs), ("Plans", plans)].iter().filter(|(_, rows)| !rows.is_empty()) {
        text += &format!("{title}\n");
        rows.iter().for_each(|cells| text += &format!("{}\n", line(cells).trim_end()));
    }
    text
}

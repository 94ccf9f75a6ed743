//! Runs a task: `adhoc` directly on the engine, the other commands through a workflow.

use super::format_check;
use super::reported::{ReportFile, Reported};
use super::texts::Prompt;
use super::worktree::WorktreeEnd;
use crate::clean::{shell_word, whole};
use crate::cli::{Adhoc, Output};
use crate::config::Places;
use crate::engine::dry_run::{self, Plan};
use crate::engine::{Begin, Engine, Job, Peer, Report};
use crate::io::output::{deliver, diagnose};
use crate::io::stdin;
use crate::json::{map_strings, to_line};
use crate::protocol::failure::Failure;
use crate::protocol::request::{Options, Seconds, Settings};
use crate::protocol::words::{OnRateLimit, WorkflowKind};
use crate::protocol::workflow::{WorkflowOptions, WorkflowSettings};
use crate::sessions::SessionFile;
use crate::workflow::admission::Surroundings;
use crate::workflow::author::Author;
use crate::workflow::implement::{self, Preview};
use crate::workflow::project::Project;
use crate::workflow::prompts::SessionPrompt;
use crate::workflow::slip::command_word;
use crate::workflow::stop::Stop;
use crate::workflow::workflow_run::{SAME_COMMAND, SHOWN_COMMAND, WorkflowRun};
use crate::workflow::{plan_run, spec_run};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) struct TaskRunner {
    workflow: Option<WorkflowKind>,
    fields: WorkflowOptions,
    /// Whether the prompt comes from the command line, with paths relative to our own directory.
    typed: bool,
    in_worktree: bool,
    report: Option<PathBuf>,
    own: Vec<PathBuf>,
}

impl TaskRunner {
    pub(super) fn new(adhoc: &mut Adhoc, typed: bool) -> TaskRunner {
        // In a worktree, the arguments name its files.
        let in_worktree = adhoc.worktree.is_some();
        let typed = typed && !in_worktree;
        let fields = std::mem::take(&mut adhoc.fields);
        let own = adhoc.report.iter().chain(&adhoc.record).cloned().collect();
        TaskRunner { workflow: adhoc.workflow, fields, typed, in_worktree, report: adhoc.report.take(), own }
    }

    /// A workflow waits for a limit of the provider if a person is at a terminal, unless somebody chose otherwise.
    pub(super) fn on_rate_limit(&self, person: bool) -> Option<OnRateLimit> {
        // Some systems of continuous integration give their jobs a terminal.
        let unattended = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        (self.workflow.is_some() && person && !unattended).then_some(OnRateLimit::Wait)
    }

    /// Whether the description is the name of a command, which is a slip to correct before anything else.
    pub(super) fn is_doubtful(&self, adhoc: &Adhoc) -> bool {
        let word = matches!(adhoc.words.as_slice(), [word] if command_word(word).is_some());
        word && self.workflow == Some(WorkflowKind::Spec)
    }

    pub(super) fn prompt(&self, adhoc: &Adhoc) -> Result<Prompt, String> {
        let typed = Prompt::named_by(adhoc);
        let workflow = self.workflow.map(row);
        let found = match workflow {
            // The argument names a file, so piped input is ignored.
            Some(row) if !row.takes_text => typed,
            Some(_) if self.fields.resume == Some(true) && typed.is_none() => Some(Prompt::Nothing),
            Some(_) | None if adhoc.dry_run => Some(typed.unwrap_or_else(Prompt::stand_in)),
            Some(_) | None => {
                let first = adhoc.input_timeout.map_or(stdin::FIRST_BYTE, Seconds::duration);
                Prompt::with_piped(typed, stdin::kind(), first)
            }
        };
        found.ok_or_else(|| match workflow {
            Some(row) => format!("{}{}", row.missing, (row.others)()),
            None => "Missing prompt: spektacular adhoc \"TASK\".".to_owned(),
        })
    }

    /// The place of the session for `adhoc --continue`. Workflows store their sessions themselves.
    pub(super) fn last(&self, job: &Job) -> Option<SessionFile> {
        SessionFile::of_run(&job.layers, Options::default()).filter(|_| self.workflow.is_none())
    }

    fn surroundings(&self, dry: bool) -> Surroundings {
        let typed_in = self.typed.then(|| std::env::current_dir().unwrap_or_default());
        let (places, own) = (Places::of_process(), self.own.clone());
        Surroundings { typed_in, places, dry, in_worktree: self.in_worktree, own }
    }

    pub(super) fn run(mut self, engine: Engine, mut job: Job, peer: &mut dyn Peer, fresh: Fresh<'_>) -> Report {
        let Some(path) = self.report.take() else { return self.carry_plainly(engine, job, peer, fresh) };
        let file = ReportFile::open(&path, job.project.as_deref());
        let file = file.map_err(|failure| job.begin = Begin::Refused(failure)).ok();
        let mut reported = Reported::new(peer);
        let ended = self.carry_plainly(engine, job, &mut reported, fresh);
        let report = reported.into_report();
        if file.is_some_and(|file| file.write(&report).is_err()) {
            diagnose("spektacular: warning: the report is incomplete: the file could not be written");
        }
        ended
    }

    fn carry_plainly(self, mut engine: Engine, job: Job, peer: &mut dyn Peer, mut fresh: Fresh<'_>) -> Report {
        match (self.workflow, fresh.as_mut().filter(|end| end.has_set_up())) {
            (Some(kind), _) => self.carry_workflow(kind, engine, job, peer, fresh),
            (None, Some(end)) => after_set_up(engine, job, peer, end),
            (None, None) => engine.run(job, peer),
        }
    }

    /// Not inlined, so that a plain run does not touch the 36 KiB of its stack frame.
    #[inline(never)]
    fn carry_workflow(
        self,
        kind: WorkflowKind,
        engine: Engine,
        job: Job,
        peer: &mut dyn Peer,
        fresh: Fresh<'_>,
    ) -> Report {
        let around = self.surroundings(false);
        (row(kind).carry)(engine, job, peer, (self.fields, &around, fresh))
    }

    /// For `--dry-run`. Error: the run would be refused.
    pub(super) fn plan(&self, options: Options, job: &Job) -> Result<DryRun, Failure> {
        let Some(kind) = self.workflow else {
            let plan = dry_run::plan(options, &job.layers, &job.warnings, |_| Ok(()))?;
            return Ok(DryRun { agent: plan, workflow: None });
        };
        let around = self.surroundings(true);
        let fields = self.fields.clone().resolved();
        let mut workflow = None;
        let agent = dry_run::plan(options, &job.layers, &job.warnings, |settings| {
            let (shown, prompt) = (row(kind).preview)(settings, fields, &around)?;
            (settings.prompt, settings.raw_prompt) = (prompt.text, prompt.raw);
            workflow = Some(shown);
            Ok(())
        })?;
        Ok(DryRun { agent, workflow })
    }
}

struct WorkflowRow {
    missing: &'static str,
    /// A sentence that lists the files for the missing argument, or an empty text.
    others: fn() -> String,
    /// Whether the argument is a text, which stdin can supply too. Otherwise it names a file.
    takes_text: bool,
    carry: fn(Engine, Job, &mut dyn Peer, Typed<'_>) -> Report,
    preview: fn(&mut Settings, WorkflowSettings, &Surroundings) -> Result<Previewed, Failure>,
}

/// The worktree that the run makes for itself, if it does.
type Fresh<'w> = Option<&'w mut WorktreeEnd>;

/// The command line of a workflow, its surroundings, and the worktree of its run.
type Typed<'w> = (WorkflowOptions, &'w Surroundings, Fresh<'w>);

/// The result of a dry run's workflow, and the prompt of its first session.
type Previewed = (DryWorkflow, SessionPrompt);

fn row(kind: WorkflowKind) -> &'static WorkflowRow {
    match kind {
        WorkflowKind::Spec => &WorkflowRow {
            missing: "Missing description: spektacular spec \"DESCRIPTION\".",
            others: String::new,
            takes_text: true,
            carry: spec,
            preview: |settings, fields, around| Ok(DryWorkflow::preview(spec_run::admit(settings, fields, around)?.0)),
        },
        WorkflowKind::Plan => &WorkflowRow {
            missing: "Missing SPEC: spektacular plan SPEC.",
            others: || here().map(|project| project.other_specs("")).unwrap_or_default(),
            takes_text: false,
            carry: plan,
            preview: |settings, fields, around| Ok(DryWorkflow::preview(plan_run::admit(settings, fields, around)?.0)),
        },
        WorkflowKind::Implement => &WorkflowRow {
            missing: "Missing PLAN: spektacular implement PLAN.",
            others: || here().map(|project| project.other_plans("")).unwrap_or_default(),
            takes_text: false,
            carry: implement,
            preview: |settings, fields, around| Ok(DryWorkflow::of_plan(implement::preview(settings, fields, around)?)),
        },
    }
}

fn here() -> Option<Project> {
    Project::around(&std::env::current_dir().ok()?).ok()
}

fn set_up(outer: &mut WorkflowRun<'_>, fresh: Fresh<'_>) -> Result<(), Stop> {
    fresh.map_or(Ok(()), |end| end.set_up(outer))
}

/// Sets up the worktree of a session, which begins then.
fn after_set_up(mut engine: Engine, job: Job, peer: &mut dyn Peer, end: &mut WorktreeEnd) -> Report {
    match WorkflowRun::open_session(&mut engine, job, peer) {
        Ok(mut outer) => match end.set_up(&mut outer) {
            Ok(()) => outer.rest(),
            Err(stop) => outer.close(Err(stop)),
        },
        Err(report) => *report,
    }
}

fn spec(mut engine: Engine, job: Job, peer: &mut dyn Peer, (flags, around, fresh): Typed<'_>) -> Report {
    let around = around.clone();
    let admit = move |settings: &mut Settings, _: &_, options| spec_run::admit(settings, options, &around);
    match WorkflowRun::open(&mut engine, job, peer, (WorkflowKind::Spec, flags), admit) {
        Ok((mut outer, author)) => {
            let text = set_up(&mut outer, fresh).and_then(|()| author.write(&mut outer, &spec_run::check));
            outer.close(text)
        }
        Err(report) => *report,
    }
}

fn plan(mut engine: Engine, job: Job, peer: &mut dyn Peer, (flags, around, fresh): Typed<'_>) -> Report {
    let around = around.clone();
    let admit = move |settings: &mut Settings, _: &_, options| {
        let (author, spec, started) = plan_run::admit(settings, options, &around)?;
        Ok(((author, spec), started))
    };
    match WorkflowRun::open(&mut engine, job, peer, (WorkflowKind::Plan, flags), admit) {
        Ok((mut outer, (author, spec))) => {
            let check = |author: &Author| plan_run::check(author, &spec);
            let text = set_up(&mut outer, fresh).and_then(|()| author.write(&mut outer, &check));
            outer.close(text)
        }
        Err(report) => *report,
    }
}

fn implement(mut engine: Engine, job: Job, peer: &mut dyn Peer, (flags, around, fresh): Typed<'_>) -> Report {
    let from = around.typed_in.clone();
    let admit = move |settings: &mut Settings, _: &_, options| implement::admit(settings, options, from.as_deref());
    match WorkflowRun::open(&mut engine, job, peer, (WorkflowKind::Implement, flags), admit) {
        Ok((mut outer, target)) => {
            outer.again = if around.in_worktree { SHOWN_COMMAND } else { SAME_COMMAND };
            let text = set_up(&mut outer, fresh).and_then(|()| implement::carry(&mut outer, target, around));
            outer.close(text)
        }
        Err(report) => *report,
    }
}

pub(super) struct DryRun {
    agent: Plan,
    workflow: Option<DryWorkflow>,
}

struct DryWorkflow {
    kind: WorkflowKind,
    target: String,
    prompt: String,
    phases: Vec<Value>,
    lines: String,
}

impl DryWorkflow {
    fn preview(author: Author) -> Previewed {
        let prompt = author.prompt.first;
        let workflow = DryWorkflow {
            kind: author.kind,
            target: crate::workflow::project::shown(&author.paths.target),
            prompt: super::secrets_here().redact(&prompt.text).into_owned(),
            phases: Vec::new(),
            lines: String::new(),
        };
        (workflow, prompt)
    }

    fn of_plan(seen: Preview) -> Previewed {
        let redactor = super::secrets_here();
        let redacted = |value: Value| {
            let text = map_strings(&value.to_string(), &mut |text| redactor.redact(text).into_owned());
            serde_json::from_str(&text).unwrap_or_default()
        };
        let mut lines = String::new();
        for phase in &seen.plan.phases {
            let state = if phase.is_done() { "done" } else { "open" };
            lines.push_str(&format!("phase        {} ({state}): {}\n", phase.id(), phase.title));
            phase.verify.iter().for_each(|command| lines.push_str(&format!("             {command}\n")));
        }
        let phases = seen.plan.phases.iter().map(format_check::phase);
        let workflow = DryWorkflow {
            kind: WorkflowKind::Implement,
            target: seen.target,
            prompt: redactor.redact(&seen.prompt.text).into_owned(),
            phases: phases.map(redacted).collect(),
            lines: redactor.redact(&lines).into_owned(),
        };
        (workflow, seen.prompt)
    }
}

impl DryRun {
    pub(super) fn show(&self, output: Output) -> u8 {
        let text = match (&self.workflow, output) {
            (None, Output::Json) => to_line(&json!(self.agent)),
            (None, Output::Cli) => for_people(&self.agent),
            (Some(DryWorkflow { kind, target, prompt, phases, lines: _ }), Output::Json) => to_line(&json!({
                "workflow": kind.word(),
                "target": target,
                "agent": self.agent,
                "prompt": prompt,
                "phases": phases,
            })),
            (Some(DryWorkflow { kind, target, prompt, phases: _, lines }), Output::Cli) => {
                let (kind, agent, prompt, lines) = (kind.word(), for_people(&self.agent), whole(prompt), whole(lines));
                let text = format!("workflow     {kind}\ntarget       {target}\n{agent}\n{lines}\n{prompt}");
                text.trim_end().to_owned()
            }
        };
        deliver(&format!("{text}\n"))
    }
}

/// The plan as text, without a line end.
fn for_people(plan: &Plan) -> String {
    let path = plan.path.as_deref().unwrap_or("not found");
    let words: Vec<String> = plan.command.iter().map(|word| shell_word(word)).collect();
    let mut lines = vec![
        format!("agent        {} ({})", plan.agent, plan.driver),
        format!("program      {path}"),
        format!("command      {}", words.join(" ")),
        format!("directory    {}", plan.cwd),
        format!("environment  {}", in_words(&plan.env_set, &plan.env_removed)),
    ];
    lines.extend(plan.images.iter().map(|path| format!("image        {path}")));
    lines.extend(plan.warnings.iter().map(|warning| format!("warning      {}", warning.for_person().shown())));
    let lines: Vec<_> = lines.iter().map(|line| whole(line)).collect();
    lines.join("\n")
}

fn in_words(set: &[String], removed: &[String]) -> String {
    let parts = [("sets", set), ("removes", removed)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(verb, names)| format!("{verb} {}", names.join(" "))).collect();
    if parts.is_empty() { "unchanged".into() } else { parts.join("; ") }
}

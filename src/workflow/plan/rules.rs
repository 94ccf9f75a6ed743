//! Reads a plan and checks every rule of its format.

use super::own::{StateLine, digest, is_own};
use super::phase::{PlanPhase, Task, phase_heading, task, task_in};
use super::{PHASES_MAX, SpecLine, TASKS_MAX, WorkPlan, verify};
use crate::workflow::markdown::{FencePlace, Heading, TextLine, decoded, ends_section, lines, title};
use crate::workflow::spec::{FILE_BYTES_MAX, Spec};
use crate::workflow::violation::{Rule, Violation, Violations};
use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Debug)]
pub struct Checked {
    pub plan: WorkPlan,
    /// The text. Empty if the file is not UTF-8 or is too large.
    pub text: String,
    found: Violations,
}

/// Reads a plan and checks the rules that need only its text.
pub fn read(bytes: &[u8]) -> Checked {
    let mut found = Violations::default();
    if bytes.len() as u64 > FILE_BYTES_MAX {
        found.too_long();
        return Checked { plan: WorkPlan::default(), text: String::new(), found };
    }
    let text = decoded(bytes, &mut found);
    let lines = lines(&text, &mut found);
    let title = title(&lines, &mut found);
    let places = places(&lines, &mut found);
    let below = title.and_then(|(_, at)| lines.get(at + 1)).filter(|line| is_own(line));
    let digest = below.and_then(|line| digest(line.text));
    let plan = WorkPlan {
        title: title.map(|(title, _)| title.to_owned()).unwrap_or_default(),
        spec: spec_line(&lines[..places.first().map_or(lines.len(), |place| place.lines.start)]),
        phases: places.iter().map(|place| phase(place, &lines, &text, &mut found)).collect(),
        digest,
    };
    own_lines(&lines, below.filter(|_| plan.digest.is_some()), &places, &plan, &mut found);
    everywhere(&lines, &places, &mut found);
    match plan.phases.len() {
        0 => found.absent(Rule::NoPhases, "Add at least one phase: ## Phase 1: TITLE."),
        number if number > PHASES_MAX => found.absent(Rule::TooLarge, "Use at most 99 phases."),
        _ => {}
    }
    let is_utf8 = matches!(text, std::borrow::Cow::Borrowed(_));
    Checked { plan, text: if is_utf8 { text.into_owned() } else { String::new() }, found }
}

impl Checked {
    /// Checks that the tasks name exactly the requirements of the specification, if those have ids.
    pub fn covers(&mut self, spec: &Spec) {
        let Some(ids) = spec.ids() else { return };
        let known: BTreeSet<u64> = ids.iter().copied().collect();
        let tasks = || self.plan.phases.iter().flat_map(|phase| &phase.tasks);
        let served: BTreeSet<u64> = tasks().flat_map(|task| task.serves.iter().copied()).collect();
        let unknown = tasks().filter(|task| task.serves.iter().any(|id| !known.contains(id)));
        for task in unknown {
            let text = "At the end of this task, name only requirements that the specification has.";
            self.found.at(task.line, Rule::UnknownRequirement, text);
        }
        for id in known.difference(&served) {
            let text = format!("Add (R{id}) at the end of the task that serves this requirement.");
            self.found.absent(Rule::Uncovered, text);
        }
    }

    /// `path`: relative to the project's folder.
    pub fn names(&mut self, path: &str) {
        match &self.plan.spec {
            None => self.found.absent(
                Rule::SpecLine,
                "Add the line `Spec: PATH` below the title, with the path of the specification.",
            ),
            Some(line) if line.path.trim_start_matches("./") != path => {
                self.found.at(line.line, Rule::SpecLine, "Name the specification that the plan was made for.");
            }
            Some(_) => {}
        }
    }

    /// `file`: the file's name in the violations.
    pub fn violations(self, file: &str, ignored: &[Rule]) -> (WorkPlan, Vec<Violation>) {
        (self.plan, self.found.sorted(file, ignored))
    }
}

struct At {
    number: u16,
    title: String,
    /// The lines of the phase, including the heading.
    lines: Range<usize>,
}

fn places(lines: &[TextLine<'_>], found: &mut Violations) -> Vec<At> {
    let mut places: Vec<At> = Vec::new();
    let (mut open, mut highest) = (false, 0);
    for (at, line) in lines.iter().enumerate() {
        let Some(heading) = line.heading() else { continue };
        if ends_section(&heading) {
            if let Some(last) = places.last_mut().filter(|_| open) {
                last.lines.end = at;
            }
            open = false;
        }
        if let Some((number, title)) = phase_heading(line.text) {
            if number <= highest {
                found.at(line.number, Rule::PhaseOrder, "Number the phases in ascending order.");
            }
            highest = highest.max(number);
            places.push(At { number, title: title.to_owned(), lines: at..lines.len() });
            open = true;
        } else if begins_with_phase(&heading) {
            let text = format!(
                "This heading begins with the word Phase, but begins no phase. Write `## Phase {}: TITLE`, with a number \
                 in digits, a colon and a title, or reword it.",
                highest.saturating_add(1)
            );
            found.at(line.number, Rule::PhaseHeading, text);
        }
    }
    places
}

fn begins_with_phase(heading: &Heading<'_>) -> bool {
    let word = heading.text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
    word.is_some_and(|word| word.eq_ignore_ascii_case("phase"))
}

/// The line `Spec: PATH` before the phases.
fn spec_line(lines: &[TextLine<'_>]) -> Option<SpecLine> {
    let path = |line: &TextLine<'_>| {
        let path = line.text.strip_prefix("Spec: ").filter(|_| line.is_outside())?.trim();
        (!path.is_empty()).then(|| SpecLine { path: path.to_owned(), line: line.number })
    };
    lines.iter().find_map(path)
}

fn phase(place: &At, lines: &[TextLine<'_>], text: &str, found: &mut Violations) -> PlanPhase {
    let (heading, below) = (&lines[place.lines.start], &lines[place.lines.start + 1..place.lines.end]);
    let state = below.first().filter(|line| is_own(line)).and_then(|line| StateLine::parse(line.text));
    let own = &below[usize::from(state.is_some())..];
    let whole = own.first().zip(own.last()).map(|(first, last)| &text[first.at.start..last.at.end]);
    let mut phase = PlanPhase {
        number: place.number,
        title: place.title.clone(),
        line: heading.number,
        state,
        tasks: tasks(u64::from(place.number), below, found),
        text: whole.unwrap_or_default().to_owned(),
        verify: Vec::new(),
        manual: Vec::new(),
        protect: Vec::new(),
    };
    verify::read(below, &mut phase, found);
    if phase.tasks.is_empty() {
        let text = "Write the tasks of this phase as `- [ ] T1.1 TEXT`, with the number of the phase first.";
        found.at(phase.line, Rule::NoTasks, text);
    }
    if phase.verify.is_empty() {
        let text = "Add `### Verify` to this phase, with at least one command in a fence with the info string sh.";
        found.at(phase.line, Rule::NoVerify, text);
    }
    if phase.tasks.len() > TASKS_MAX {
        found.absent(Rule::TooLarge, "Use at most 99 tasks in a phase.");
    }
    phase
}

fn tasks(phase: u64, lines: &[TextLine<'_>], found: &mut Violations) -> Vec<Task> {
    let mut highest = 0;
    let tasks: Vec<Task> = lines.iter().filter_map(task).collect();
    for task in &tasks {
        let (of, number) = task.number;
        if of != phase {
            found.at(task.line, Rule::TaskId, "Begin the id of this task with the number of its phase.");
        } else if number <= highest {
            found.at(task.line, Rule::TaskId, "Number the tasks of a phase in ascending order.");
        }
        if of == phase {
            highest = highest.max(number);
        }
    }
    tasks
}

/// Checks that each of spektacular's own lines is where it belongs.
fn own_lines(
    lines: &[TextLine<'_>],
    digest: Option<&TextLine<'_>>,
    places: &[At],
    plan: &WorkPlan,
    found: &mut Violations,
) {
    let states = places.iter().zip(&plan.phases).filter(|(_, phase)| phase.state.is_some());
    let good: BTreeSet<usize> =
        states.map(|(place, _)| lines[place.lines.start].number + 1).chain(digest.map(|line| line.number)).collect();
    for line in lines.iter().filter(|line| is_own(line) && !good.contains(&line.number)) {
        found.at(line.number, Rule::StateLine, "Remove this line: only spektacular writes such lines.");
    }
}

/// Checks the rules that hold for every line of a plan.
fn everywhere(lines: &[TextLine<'_>], places: &[At], found: &mut Violations) {
    let mut phases = places.iter().map(|place| place.lines.clone()).peekable();
    for (at, line) in lines.iter().enumerate() {
        while phases.next_if(|phase| phase.end <= at).is_some() {}
        let in_phase = phases.peek().is_some_and(|phase| phase.contains(&at));
        match (line.place, task_in(line.text, line.number)) {
            (FencePlace::Inside, Some(_)) => in_fence(line, found),
            (FencePlace::Inside, None) if phase_heading(line.text).is_some() => in_fence(line, found),
            (FencePlace::Outside, Some(_)) if !in_phase => {
                found.at(line.number, Rule::OutsidePhase, "Move this task into a phase.");
            }
            (FencePlace::Outside, None) if line.item().is_some_and(has_box) => {
                let text = "Write this task as `- [ ] T1.1 TEXT`, without indentation, or remove the brackets.";
                found.at(line.number, Rule::NotATask, text);
            }
            (FencePlace::Outside | FencePlace::Opens(_) | FencePlace::Inside | FencePlace::Closes, _) => {}
        }
    }
}

fn in_fence(line: &TextLine<'_>, found: &mut Violations) {
    found.at(line.number, Rule::InFence, "Move this line out of the fence, or write it in another form.");
}

/// Whether a list item begins with brackets around at most 2 characters, other than a link.
fn has_box(item: &str) -> bool {
    let Some(rest) = item.strip_prefix('[') else { return false };
    // A bracket may be inside the brackets: `[]]` counts.
    let close = rest.char_indices().take(3).find(|(_, c)| *c == ']');
    close.is_some_and(|(at, _)| !rest[at + 1..].starts_with('('))
}

//! The format of a specification: its parts and its rules.

mod wording;

use super::markdown::{FencePlace, Heading, TextLine, decoded, ends_section, lines, requirement_id, title};
use super::violation::{Rule, Violation, Violations};
use std::collections::HashMap;

pub const FILE_BYTES_MAX: u64 = 256 << 10;

/// A specification, as far as it is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The title, or an empty text.
    pub title: String,
    pub tasks: Vec<Requirement>,
}

/// A task of a specification, which is a requirement for a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The number of its id `R1`.
    pub id: Option<u64>,
    /// The text, without the id.
    pub text: String,
    /// Whether its box is ticked.
    pub done: bool,
    /// The line, from 1.
    pub line: usize,
}

impl Spec {
    /// `None`: the tasks have no ids.
    pub fn ids(&self) -> Option<Vec<u64>> {
        self.tasks.first()?.id?;
        Some(self.tasks.iter().filter_map(|task| task.id).collect())
    }
}

/// No other byte changes. `ticked`: the new state of a box, by the number of its id; `None`: it stays.
pub(crate) fn with_boxes(text: &str, ticked: impl Fn(u64) -> Option<bool>) -> String {
    let tasks = check("", text.as_bytes(), &[]).0.tasks;
    let change = |task: &Requirement| Some((task.line, ticked(task.id?)?));
    let changes: HashMap<usize, bool> = tasks.iter().filter_map(change).collect();
    let line = |(at, line): (usize, &str)| match (changes.get(&(at + 1)), line.find(']')) {
        (Some(is_ticked), Some(end)) => format!("- [{}{}", if *is_ticked { 'x' } else { ' ' }, &line[end..]),
        (Some(_), None) | (None, _) => line.to_owned(),
    };
    text.split_inclusive('\n').enumerate().map(line).collect()
}

pub fn check(file: &str, bytes: &[u8], ignored: &[Rule]) -> (Spec, Vec<Violation>) {
    let mut found = Violations::default();
    let spec = read(bytes, &mut found);
    (spec, found.sorted(file, ignored))
}

const SECTIONS: [&str; 3] = ["Overview", REQUIREMENTS, "Acceptance Criteria"];
const REQUIREMENTS: &str = "Requirements";
/// The section that may contain code.
const TECHNICAL: &str = "Technical Approach";

/// A section: its heading of level 2 and the lines until the next heading of level 1 or 2.
struct Section<'l, 'a> {
    name: &'a str,
    heading: &'l TextLine<'a>,
    lines: &'l [TextLine<'a>],
}

fn read(bytes: &[u8], found: &mut Violations) -> Spec {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        found.too_long();
        return Spec::default();
    }
    let text = decoded(bytes, found);
    let lines = lines(&text, found);
    let title = title(&lines, found).map(|(title, _)| title.to_owned()).unwrap_or_default();
    let sections = sections(&lines);
    for name in SECTIONS {
        let mut with_name = sections.iter().filter(|section| section.name == name);
        match with_name.next() {
            None => found.absent(Rule::Section, format!("Add the section `## {name}`.")),
            Some(section) if section.lines.iter().all(|line| line.text.trim().is_empty()) => {
                found.at(section.heading.number, Rule::Section, format!("Write something under `## {name}`."));
            }
            Some(_) => {}
        }
        for section in with_name {
            let text = "Merge this section into the earlier one of the same name.";
            found.at(section.heading.number, Rule::Section, text);
        }
    }
    let tasks = tasks(&sections, found);
    fences(&lines, &sections, found);
    for line in &lines {
        wording::check(line, found);
    }
    Spec { title, tasks }
}

fn sections<'l, 'a>(lines: &'l [TextLine<'a>]) -> Vec<Section<'l, 'a>> {
    let headings = lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.heading()?)));
    let ends: Vec<(usize, Heading<'a>)> = headings.filter(|(_, heading)| ends_section(heading)).collect();
    let section = |(at, (from, heading)): (usize, &(usize, Heading<'a>))| {
        let to = ends.get(at + 1).map_or(lines.len(), |(next, _)| *next);
        (heading.level == 2).then(|| Section {
            name: heading.text,
            heading: &lines[*from],
            lines: &lines[from + 1..to],
        })
    };
    ends.iter().enumerate().filter_map(section).collect()
}

fn tasks(sections: &[Section<'_, '_>], found: &mut Violations) -> Vec<Requirement> {
    const NO_TASKS: &str = "Write each requirement as `- [ ] R1: TEXT`.";
    let mut tasks: Vec<Requirement> = Vec::new();
    let mut highest = 0;
    let (mut heading, mut with_ids) = (None, None);
    for section in sections.iter().filter(|section| section.name == REQUIREMENTS) {
        heading = heading.or(Some(section.heading.number));
        for line in section.lines {
            let unindented = !line.text.starts_with(char::is_whitespace);
            let Some(_) = line.item().filter(|_| unindented) else { continue };
            let Some(task) = task(line) else {
                found.at(line.number, Rule::NotATask, "Write this requirement as `- [ ] TEXT`, or indent it.");
                continue;
            };
            match (with_ids, task.id) {
                (Some(true), None) => found.at(line.number, Rule::TaskId, "Add an id: the first task has one."),
                (Some(false), Some(_)) => {
                    found.at(line.number, Rule::TaskId, "Remove the id, or add one to every task.");
                }
                (_, Some(id)) if id <= highest => {
                    found.at(line.number, Rule::TaskId, "Number the tasks in ascending order.");
                }
                _ => {}
            }
            with_ids = with_ids.or(Some(task.id.is_some()));
            highest = highest.max(task.id.unwrap_or_default());
            tasks.push(task);
        }
    }
    match (tasks.is_empty(), heading) {
        (true, Some(heading)) => found.at(heading, Rule::NoTasks, NO_TASKS),
        (true, None) => found.absent(Rule::NoTasks, NO_TASKS),
        (false, _) => {}
    }
    tasks
}

/// The line as a task: `- [ ] TEXT` or `- [ ] R1: TEXT`.
fn task(line: &TextLine<'_>) -> Option<Requirement> {
    let (done, text) = match line.text.split_at_checked("- [ ] ".len())? {
        ("- [ ] ", text) => (false, text),
        ("- [x] " | "- [X] ", text) => (true, text),
        _ => return None,
    };
    if text.starts_with(char::is_whitespace) {
        return None;
    }
    let id = requirement_id(text).and_then(|(id, rest)| Some((id, rest.strip_prefix(' ')?)));
    let (id, text) = id.map_or((None, text), |(id, text)| (Some(id), text.trim_start()));
    Some(Requirement { id, text: text.to_owned(), done, line: line.number })
}

/// Checks that a line above each fence outside the section for code calls it an example.
fn fences(lines: &[TextLine<'_>], sections: &[Section<'_, '_>], found: &mut Violations) {
    const ABOVE: usize = 3;
    let mut technical = sections.iter().filter(|section| section.name == TECHNICAL).peekable();
    for (at, line) in lines.iter().enumerate() {
        let FencePlace::Opens(_) = line.place else { continue };
        let ends = |section: &Section<'_, '_>| section.lines.last().map_or(0, |line| line.number);
        while technical.next_if(|section| ends(section) < line.number).is_some() {}
        let is_technical = technical.peek().is_some_and(|section| section.heading.number < line.number);
        let is_example =
            || lines[at.saturating_sub(ABOVE)..at].iter().any(|line| wording::is_about_an_example(line.text));
        if !is_technical && !is_example() {
            let text = "Move this code to `## Technical Approach`, or call it an example in the line above.";
            found.at(line.number, Rule::CodeFence, text);
        }
    }
}

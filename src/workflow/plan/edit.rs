//! Edits of a plan. Each changes one line or the boxes of a phase, and no other byte: line ends, a BOM and a missing
//! final line end stay.

use super::Digest;
use super::own::{StateLine, digest, digest_line, is_own};
use super::phase::{phase_heading, task};
use crate::workflow::markdown::{TextLine, ends_section, lines, title};
use crate::workflow::violation::Violations;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanChange {
    /// Sets the state line of the phase with this number.
    State(u16, StateLine),
    Tick(u16),
    Untick(u16),
    Spec(Digest),
}

/// Applies changes to a text. `None`: a phase or the title is missing.
pub fn edited(text: &str, changes: &[PlanChange]) -> Option<String> {
    changes.iter().try_fold(text.to_owned(), |text, change| one(&text, change))
}

fn one(text: &str, change: &PlanChange) -> Option<String> {
    let lines = lines(text, &mut Violations::default());
    let edits = match change {
        PlanChange::State(number, line) => {
            let phase = phase(&lines, *number)?;
            let is_state = |line: &TextLine<'_>| StateLine::parse(line.text).is_some();
            vec![below(text, &lines, phase.start, is_state, &line.to_string())?]
        }
        PlanChange::Tick(number) => boxes(&lines[phase(&lines, *number)?], " ", "x"),
        PlanChange::Untick(number) => boxes(&lines[phase(&lines, *number)?], "xX", " "),
        PlanChange::Spec(new) => {
            let (_, at) = title(&lines, &mut Violations::default())?;
            vec![below(text, &lines, at, |line| digest(line.text).is_some(), &digest_line(new))?]
        }
    };
    let (mut out, mut at) = (String::with_capacity(text.len() + 80), 0);
    for (place, new) in edits {
        out.push_str(&text[at..place.start]);
        out.push_str(&new);
        at = place.end;
    }
    out.push_str(&text[at..]);
    Some(out)
}

/// A part of the text, and its replacement.
type Edit = (Range<usize>, String);

/// The lines of a phase, including its heading.
fn phase(lines: &[TextLine<'_>], number: u16) -> Option<Range<usize>> {
    let is_it = |line: &TextLine<'_>| line.is_outside() && phase_heading(line.text).is_some_and(|(n, _)| n == number);
    let from = lines.iter().position(is_it)?;
    let rest = &lines[from + 1..];
    let length = rest.iter().position(|line| line.heading().is_some_and(|heading| ends_section(&heading)));
    Some(from..from + 1 + length.unwrap_or(rest.len()))
}

/// Sets the line directly below another one: replaces a line of the same kind there, or inserts one.
fn below(
    text: &str,
    lines: &[TextLine<'_>],
    at: usize,
    is_kind: impl Fn(&TextLine<'_>) -> bool,
    new: &str,
) -> Option<Edit> {
    if let Some(old) = lines.get(at + 1).filter(|line| line.is_outside() && is_kind(line)) {
        let content = old.at.start..old.at.start + old.text.len();
        return Some((content, new.to_owned()));
    }
    let above = lines.get(at)?;
    let end = above.at.end;
    let whole = &text[above.at.clone()];
    // The new line gets the line end of the line above, or none if that has none.
    Some(match (whole.ends_with("\r\n"), whole.ends_with('\n')) {
        (true, _) => (end..end, format!("{new}\r\n")),
        (false, true) => (end..end, format!("{new}\n")),
        (false, false) => (end..end, format!("\n{new}")),
    })
}

fn boxes(lines: &[TextLine<'_>], old: &str, new: &str) -> Vec<Edit> {
    const BOX: usize = "- [".len();
    let is_old = |line: &&TextLine<'_>| task(line).is_some() && line.text[BOX..].starts_with(|c| old.contains(c));
    let place = |line: &TextLine<'_>| line.at.start + BOX..line.at.start + BOX + 1;
    lines.iter().filter(is_old).map(|line| (place(line), new.to_owned())).collect()
}

pub fn without_own_lines(text: &str) -> String {
    let lines = lines(text, &mut Violations::default());
    lines.iter().filter(|line| !is_own(line)).map(|line| &text[line.at.clone()]).collect()
}

//! The review of a phase or of a draft by a session of another agent, or of the same one, which may only read.

use super::markdown::fenced;
use super::project::Project;
use super::prompts::{CommonValues, PromptText, SessionPrompt};
use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::paths::{absolute, real};
use crate::protocol::failure::Code;
use crate::protocol::outbound::Outcome;
use crate::protocol::review::{ReviewFinding, ReviewResult};
use crate::protocol::words::Warning;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const DIFFERENCE_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReviewVerdict {
    Accepted,
    Found(Vec<ReviewFinding>),
    Unreviewed,
}

impl WorkflowRun<'_> {
    /// `subject`: in sentences. `left`: the time that the phase has left; `None`: no limit. `place`: the path in the
    /// project of a file that a finding may name.
    pub(crate) fn review(
        &mut self,
        subject: &str,
        prompt: SessionPrompt,
        left: Option<Duration>,
        place: impl Fn(&str) -> Option<String>,
    ) -> Result<ReviewVerdict, Stop> {
        let outcome = match self.review_session(prompt, left) {
            Err(Stop::Failed(failure)) if failure.code == Code::LimitReached => Outcome::Failed(*failure),
            outcome => outcome?,
        };
        let why = match outcome {
            Outcome::Completed { structured_output, .. } => {
                let result = structured_output.and_then(|json| ReviewResult::read(json.unredacted()));
                match result.map(|result| (result.accept, result.findings(place))) {
                    // Who accepts and finds something all the same has found it.
                    Some((_, (found, elsewhere))) if !found.is_empty() => {
                        if elsewhere > 0 {
                            let text =
                                format!("{subject}: findings in files that are not part of the work do not count");
                            self.warn(Warning::ReviewFindings, text);
                        }
                        return Ok(ReviewVerdict::Found(found));
                    }
                    Some((true, (_, 0))) => return Ok(ReviewVerdict::Accepted),
                    Some((_, (_, 1..))) => "it found faults only in files that are not part of the work",
                    Some((false, _)) => "it did not accept the work, and found nothing",
                    None => "its result cannot be read",
                }
            }
            Outcome::Failed(failure) => {
                let text = format!("{subject} was not reviewed: {} failed ({})", self.reviewer(), failure.code.name());
                self.warn(Warning::Unreviewed, text);
                return Ok(ReviewVerdict::Unreviewed);
            }
            Outcome::Cancelled { reason, source } => return Err(Stop::Cancelled { reason, source }),
        };
        self.warn(Warning::Unreviewed, format!("{subject} was not reviewed by {}: {why}", self.reviewer()));
        Ok(ReviewVerdict::Unreviewed)
    }

    pub(crate) fn tell_open(&mut self, subject: &str, open: &[ReviewFinding]) {
        let text = format!("{subject}: the review has {} open", super::counted(open.len(), "finding"));
        self.warn(Warning::ReviewFindings, text);
    }
}

/// `work`: the phase or the draft, the specification, and the difference.
pub(crate) fn prompt(values: &CommonValues, text: &PromptText, work: (&str, &str, &str)) -> SessionPrompt {
    // The user is not there for the reviewer.
    values.fill(text, |name| match name {
        "phase" => Some(work.0),
        "spec" => Some(work.1),
        "difference" => Some(work.2),
        _ => None,
    })
}

/// The path of a file in the project, outside of `.spektacular`. `None`: it is elsewhere.
pub(crate) fn in_project(project: &Project, file: &str) -> Option<String> {
    let folder = project.folder();
    let path = absolute(folder, Path::new(file));
    let inside =
        path.strip_prefix(folder).ok().filter(|_| real(folder, &path).is_some_and(|it| it.starts_with(folder)))?;
    let is_work = !inside.as_os_str().is_empty() && !inside.starts_with(super::project::HOME);
    is_work.then(|| inside.to_string_lossy().into_owned())
}

pub(crate) fn listed(findings: &[ReviewFinding]) -> String {
    let mut text = String::new();
    for ReviewFinding { file, line, severity, text: what } in findings {
        let _ = write!(text, "\n- ");
        if let Some(file) = file {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            let _ = write!(text, "{}{line}: ", file.unredacted());
        }
        let one_line = |text: &str| crate::clean::one_line(text);
        let _ = write!(text, "{}: {}", one_line(severity.unredacted()), one_line(what.unredacted()));
    }
    text
}

pub(crate) fn of_draft(findings: &[ReviewFinding]) -> String {
    format!(
        "# Review\n\nThe draft breaks no rule. Then another session reviewed it, and found:\n{}\n\nCorrect what holds. \
         Where a finding does not hold, leave the draft as it is, and say why.",
        listed(findings)
    )
}

pub(crate) fn shown_difference(difference: &str) -> String {
    if difference.len() <= DIFFERENCE_BYTES {
        return fenced("diff", difference);
    }
    let start = &difference[..difference.floor_char_boundary(DIFFERENCE_BYTES)];
    format!("{}\n\nThis is its beginning. Read the other files themselves.", fenced("diff", start))
}

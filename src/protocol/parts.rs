//! One walk over a body: every free text, every list, every piece of somebody's JSON. Redaction and the frame limit
//! both use it, so neither can forget a field that the other knows.

use super::outbound::{About, Body, Json, Outcome, Place, SubjectFrame, Text};
use super::question::{Answer, Choices, Kind};
use super::words::Purpose;

/// In what order parts are cut where a frame is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Outputs and details.
    Output,
    /// Lists.
    List,
    /// Texts.
    Text,
    /// What the orchestrator gave itself.
    Own,
}

impl Rank {
    /// All ranks, the first to be cut first.
    pub const ALL: [Rank; 4] = [Rank::Output, Rank::List, Rank::Text, Rank::Own];
}

/// A list that can be cut.
pub trait Cut {
    /// How many elements it has.
    fn count(&self) -> usize;
    /// Keeps the first `count`.
    fn cut(&mut self, count: usize);
}

impl<T> Cut for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn cut(&mut self, count: usize) {
        self.truncate(count);
    }
}

impl Cut for Choices {
    fn count(&self) -> usize {
        // A question without options cannot be answered: the last one is not to be cut.
        self.count().saturating_sub(1)
    }
    fn cut(&mut self, count: usize) {
        self.cut(count + 1);
    }
}

/// One part of a body.
pub enum Part<'a> {
    /// Free text.
    Text(&'a mut String),
    /// A list; the texts in it come as parts of their own.
    List(&'a mut dyn Cut),
    /// Somebody's JSON, which can only be kept or dropped.
    Json(&'a mut Option<Json>),
}

type Visit<'v> = &'v mut dyn FnMut(Rank, Part<'_>);

fn text(rank: Rank, text: &mut Text, visit: Visit<'_>) {
    visit(rank, Part::Text(&mut text.0));
}

fn places(places: &mut Vec<Place>, visit: Visit<'_>) {
    for place in places.iter_mut() {
        text(Rank::List, &mut place.path, visit);
    }
    visit(Rank::List, Part::List(places));
}

fn subject(subject: &mut SubjectFrame, visit: Visit<'_>) {
    text(Rank::Output, &mut subject.detail, visit);
    text(Rank::Text, &mut subject.title, visit);
    places(&mut subject.locations, visit);
}

/// Calls `visit` with every part of `body`.
pub fn each(body: &mut Body, visit: Visit<'_>) {
    match body {
        Body::Started(started) => {
            for argument in &mut started.agent_args {
                text(Rank::List, argument, visit);
            }
            visit(Rank::List, Part::List(&mut started.agent_args));
            let settings = &mut started.settings;
            for list in
                [Some(&mut settings.add_dirs), settings.allowed_tools.as_mut(), settings.disallowed_tools.as_mut()]
                    .into_iter()
                    .flatten()
            {
                list.iter_mut().for_each(|item| visit(Rank::List, Part::Text(item)));
                visit(Rank::List, Part::List(list));
            }
            for item in [settings.model.as_mut(), settings.effort.as_mut()].into_iter().flatten() {
                visit(Rank::Text, Part::Text(item));
            }
            if let Some(names) = &mut settings.env_allow {
                visit(Rank::List, Part::List(names));
            }
            text(Rank::Text, &mut started.cwd, visit);
            visit(Rank::Text, Part::Text(&mut settings.completion_marker));
            visit(Rank::Own, Part::Json(&mut started.metadata));
        }
        Body::Progress(progress) => {
            about(&mut progress.about, visit);
            text(Rank::Text, &mut progress.text, visit);
        }
        Body::Question(question) => {
            if let Some(shown) = &mut question.subject {
                subject(shown, visit);
            }
            // The options of a permission are the protocol's own words, and short: none is hidden or cut.
            let own = question.ask.purpose == Purpose::Permission;
            if let (Kind::Select { choices, .. }, false) = (&mut question.ask.kind, own) {
                choices.descriptions_mut().for_each(|item| visit(Rank::Output, Part::Text(item)));
                visit(Rank::List, Part::List(choices));
            }
            if let Some(Answer::Text(item)) = &mut question.ask.default {
                visit(Rank::Text, Part::Text(item));
            }
            if let Some(error) = &mut question.error {
                text(Rank::Text, error, visit);
            }
            visit(Rank::Text, Part::Text(&mut question.ask.header));
            visit(Rank::Text, Part::Text(&mut question.ask.text));
        }
        Body::Artifact(artifact) => text(Rank::Text, &mut artifact.path, visit),
        Body::Terminal(end) => {
            for artifact in &mut end.artifacts {
                text(Rank::List, &mut artifact.path, visit);
            }
            visit(Rank::List, Part::List(&mut end.artifacts));
            for tally in [&mut end.unattended.denied, &mut end.unattended.unanswered] {
                tally.first.iter_mut().for_each(|left| text(Rank::List, &mut left.text, visit));
                visit(Rank::List, Part::List(&mut tally.first));
            }
            outcome(&mut end.outcome, visit);
            visit(Rank::Own, Part::Json(&mut end.metadata));
        }
    }
}

fn about(about: &mut About, visit: Visit<'_>) {
    match about {
        About::Session { agent_version, model, .. } => {
            for item in [agent_version, model].into_iter().flatten() {
                text(Rank::Text, item, visit);
            }
        }
        About::Resolved { permission, what, .. } => {
            if let Some((shown, _)) = permission {
                subject(shown, visit);
            }
            text(Rank::Text, what, visit);
        }
        About::Tool { locations, output, .. } => {
            if let Some(output) = output {
                text(Rank::Output, output, visit);
            }
            places(locations, visit);
        }
        About::Plan(entries) => {
            entries.iter_mut().for_each(|entry| text(Rank::List, &mut entry.text, visit));
            visit(Rank::List, Part::List(entries));
        }
        _ => {}
    }
}

fn outcome(outcome: &mut Outcome, visit: Visit<'_>) {
    match outcome {
        Outcome::Completed { text: answer, structured_output, .. } => {
            visit(Rank::Output, Part::Json(structured_output));
            text(Rank::Text, answer, visit);
        }
        Outcome::Failed(failure) => {
            if let Some(tail) = &mut failure.stderr_tail {
                visit(Rank::Output, Part::Text(tail));
            }
            visit(Rank::Text, Part::Text(&mut failure.message));
        }
        Outcome::Cancelled { reason: Some(reason), .. } => text(Rank::Text, reason, visit),
        Outcome::Cancelled { .. } => {}
    }
}

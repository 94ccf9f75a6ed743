//! The questions of a played run.

use super::dialogues::Course;
use super::log::{By, Fact};
use super::player::{Playing, Received, RunPlayer};
use crate::agent::ask_user;
use crate::json::{Object, to_line};
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::BAD_ANSWERS;
use crate::protocol::outbound::{Body, PermissionEnd, Progress, ProgressKind, Question, Text};
use crate::protocol::question::{ALLOW_ONCE, Answer, Ask, DENY, Given, Subject, check};
use crate::protocol::read::Seconds;
use crate::protocol::words::{Category, Resolution, Status, Warning};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

/// The time limit of a question that times out.
const SHORT: Duration = Duration::from_millis(300);
/// The number of frames while a question is open. Together, they exceed what a pipe holds.
const FLOOD_FRAMES: usize = 160;
/// The length of the text of each of these frames.
const FLOOD_BYTES: usize = 4 << 10;

/// An open question.
struct Open {
    id: QuestionId,
    ask: Ask,
    attempt: u32,
}

/// The questions of one group.
struct Group {
    id: String,
    size: usize,
    course: Course,
    deadline: Instant,
    open: Vec<Open>,
}

/// The questions that a dialogue has as JSON.
pub(super) fn parsed(asks: &[&str]) -> Vec<Ask> {
    asks.iter().filter_map(|ask| ask_user::ask(&Object::parse(ask)?).ok()).collect()
}

/// A question for a permission.
pub(super) fn permission() -> Ask {
    let subject = Subject::new(Category::Execute, "make test", Vec::new(), "make test");
    Ask::permission(subject, "Allow make test?", None)
}

impl RunPlayer {
    /// Asks questions until all are resolved. `limit`: the time for an answer.
    pub(super) fn ask(&mut self, asks: Vec<Ask>, course: Course, limit: Duration) -> Playing<()> {
        if !self.settings.interactive {
            self.pipes.note(Fact::Skipped("the run is headless, so that it asks no questions".into()));
            return Ok(());
        }
        let limit = if course == Course::Expires { SHORT } else { limit };
        let mut group = Group {
            id: format!("g_{}", self.questions + 1),
            size: asks.len(),
            course,
            deadline: Instant::now() + limit,
            open: Vec::new(),
        };
        for ask in asks {
            self.questions += 1;
            let open = Open { id: format!("q_{}", self.questions).as_str().into(), ask, attempt: 1 };
            self.pipes.note(Fact::Asked(open.id.to_string()));
            self.emit_question(&group, &open, None, None)?;
            group.open.push(open);
        }
        self.status(Status::WaitingForInput)?;
        let mut flood = if course == Course::Flood { FLOOD_FRAMES } else { 0 };
        while !group.open.is_empty() {
            if self.pipes.ended {
                self.resolve_all(&mut group, Resolution::InputClosed)?;
                break;
            }
            let until = if flood > 0 { Instant::now() } else { group.deadline };
            match self.listen(Some(until)) {
                Ok(Received::Answer { question, given, id }) => {
                    self.answer(&mut group, &question, &given, id.as_deref())?;
                }
                Ok(Received::Silence) if flood > 0 => {
                    flood -= 1;
                    self.say("x".repeat(FLOOD_BYTES))?;
                }
                Ok(Received::Silence) if Instant::now() >= group.deadline => {
                    self.resolve_all(&mut group, Resolution::Timeout)?;
                }
                Ok(Received::TurnCancelled) => self.resolve_all(&mut group, Resolution::Withdrawn)?,
                Ok(Received::Silence | Received::Nothing) => {}
                Err(stop) => {
                    self.resolve_all(&mut group, Resolution::Withdrawn)?;
                    return Err(stop);
                }
            }
        }
        self.status(Status::Running)
    }

    /// Ignores an answer to a question that is not open.
    pub(super) fn ignore_answer(&mut self, reply_to: Option<&str>) -> Playing<()> {
        let warning = Progress::warning(Warning::UnknownQuestion, "The answer was ignored: no such question is open");
        self.emit(reply_to, Body::Progress(Box::new(warning)))
    }

    fn emit_question(
        &mut self,
        group: &Group,
        open: &Open,
        error: Option<Text>,
        reply_to: Option<&str>,
    ) -> Playing<()> {
        let left = group.deadline.saturating_duration_since(Instant::now());
        let question = Question {
            question_id: open.id.clone(),
            group_id: group.id.clone(),
            group_size: group.size,
            ask: open.ask.clone(),
            timeout_s: Seconds(left.as_millis() as f64 / 1000.0),
            attempt: open.attempt,
            error,
            truncated: false,
        };
        self.emit(reply_to, Body::Question(Box::new(question)))
    }

    fn answer(&mut self, group: &mut Group, id: &QuestionId, given: &Given, reply_to: Option<&str>) -> Playing<()> {
        let Some(at) = group.open.iter().position(|open| open.id == *id) else { return self.ignore_answer(reply_to) };
        let mut open = group.open.remove(at);
        let error = match value(given) {
            None => return self.resolve(&open, Resolution::Declined, None, reply_to),
            Some(_) if group.course == Course::Again && open.attempt == 1 => {
                "This answer never fits. Try again.".into()
            }
            Some(value) => match value.and_then(|value| check(&open.ask, &value, None)) {
                Ok(answer) => return self.resolve(&open, Resolution::Answered, option(&answer), reply_to),
                Err(why) => why,
            },
        };
        if open.attempt == BAD_ANSWERS {
            let clause = format!("{BAD_ANSWERS} answers to a question did not fit; the last mistake: {error}");
            self.pipes.note(Fact::WrongMessage(clause.trim_end_matches('.').to_owned()));
            return self.resolve(&open, Resolution::Declined, None, reply_to);
        }
        open.attempt += 1;
        self.pipes.note(Fact::Repeated(open.id.to_string()));
        self.emit_question(group, &open, Some(error.into()), reply_to)?;
        group.open.push(open);
        Ok(())
    }

    fn resolve_all(&mut self, group: &mut Group, resolution: Resolution) -> Playing<()> {
        for open in std::mem::take(&mut group.open) {
            self.resolve(&open, resolution, None, None)?;
        }
        self.pipes.watch_reading();
        Ok(())
    }

    /// Resolves a question. `value`: the chosen option of a permission.
    fn resolve(
        &mut self,
        open: &Open,
        resolution: Resolution,
        value: Option<&'static str>,
        reply_to: Option<&str>,
    ) -> Playing<()> {
        let by = match resolution {
            Resolution::Answered | Resolution::Declined => By::Answer,
            Resolution::Timeout => By::Timeout,
            Resolution::InputClosed | Resolution::Headless | Resolution::Policy | Resolution::Withdrawn => By::End,
        };
        self.pipes.note(Fact::Resolved(open.id.to_string(), by));
        let unanswered = matches!(resolution, Resolution::Timeout | Resolution::InputClosed);
        let permission = open.ask.subject.clone().map(|subject| PermissionEnd { subject, value });
        let about = ProgressKind::Resolved {
            question_id: open.id.clone(),
            resolution,
            used_default: unanswered && open.ask.default.is_some(),
            permission,
            what: open.ask.text.clone(),
        };
        self.emit(reply_to, Body::Progress(Box::new(Progress::new(about, "A question is resolved"))))
    }
}

/// The option of a permission that an answer chooses.
fn option(answer: &Answer) -> Option<&'static str> {
    match answer {
        Answer::One(text) => [ALLOW_ONCE, DENY].into_iter().find(|option| *text == *option),
        Answer::Bool(_) | Answer::Many(_) | Answer::Text(_) | Answer::Null => None,
    }
}

/// The value of an answer. `None`: the question is declined. Error: it cannot be read.
fn value(given: &Given) -> Option<Result<Box<RawValue>, String>> {
    let text = match given {
        Given::Declined => return None,
        Given::Value(value) => return Some(Ok(value.clone())),
        Given::FromEnv(name) => std::env::var(name).ok(),
        Given::FromFile(path) => std::fs::read_to_string(path).ok(),
    };
    let raw = |text: String| RawValue::from_string(to_line(&text)).ok();
    Some(text.and_then(raw).ok_or_else(|| "`value_from` could not be read.".to_owned()))
}

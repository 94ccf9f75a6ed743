//! The open questions: their ids, groups and clocks, and how an answer, its absence or a policy resolves each.
//!
//! This module makes all decisions about questions; drivers make none.

use super::asked_question::{AlwaysAllowed, BesideAnswer, NoAnswerCause, OpenQuestion, Resolved, shown, shown_subject};
use super::frame_texts::FrameTexts;
use crate::agent::{AskKey, Reply};
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::{BAD_ANSWERS, SECRET_BYTES, WAITING_REQUESTS};
use crate::protocol::outbound::{Body, Question, Text};
use crate::protocol::question::{Answer, Asks, BadAnswer, Decision, Kind, PathFact, check};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::words::{Category, Purpose, Resolution};
use crate::redact::Redactor;
use serde_json::value::RawValue;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    prefix: String,
    questions: u64,
    groups_made: u64,
    /// The groups whose asker still waits, in the order in which they were asked. So few that the list
    /// is searched from its beginning.
    groups: Vec<Group>,
    granted: AlwaysAllowed,
    pub(super) input_closed: bool,
    /// The size of the agent's current line in bytes, or 0 once it is counted for a request.
    pub(super) line_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Agent(AskKey),
    /// The agent, by a call of our tool.
    Tool(u64),
    Markers,
    Step,
}

/// Questions that the agent asked together.
#[derive(Debug)]
struct Group {
    id: String,
    /// The number of its first question. The others have the numbers after it.
    number: u64,
    asker: Asker,
    members: Vec<OpenQuestion>,
    deadline: Duration,
    /// The size of the request, in bytes. The driver and the run keep at most the line that contained it.
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Completed {
    pub(super) asker: Asker,
    pub(super) replies: Vec<Reply>,
    /// Whether a question that needs an answer was declined.
    pub(super) declined: bool,
}

#[derive(Debug)]
pub(super) enum AnswerEffect {
    Unknown,
    /// The answer has an input for a tool, and does not allow the call.
    NoInput,
    /// The answer does not fit: repeat the question.
    Again(QuestionId, BadAnswer),
    /// The question is resolved, together with those that the same answer covers.
    Resolved(Vec<Resolved>),
}

/// An answer from the orchestrator, before it is checked.
#[derive(Debug)]
pub enum Answered {
    /// A value, and the kind of file at the path that it names.
    Value(Box<RawValue>, Option<PathFact>),
    /// A value that was read from the source in `value_from`.
    Kept(Box<RawValue>, Option<PathFact>),
    /// The source in `value_from` could not be read. The text says why.
    Unreadable(BadAnswer),
    /// A secret that is too long to redact.
    TooLong,
    Declined,
}

impl Answered {
    /// Whether an answer is a secret: any answer to a secret question, and free text from `value_from`.
    fn is_secret(&self, kind: &Kind) -> bool {
        match (kind, self) {
            (Kind::Secret, _) => true,
            (Kind::Select { choices, .. }, Answered::Kept(raw, _)) => {
                let text = crate::json::string(raw).unwrap_or_default();
                !choices.as_slice().iter().any(|choice| {
                    choice.value == text.as_str() || choice.label.unredacted().eq_ignore_ascii_case(&text)
                })
            }
            (Kind::Text | Kind::FilePath, Answered::Kept(..)) => true,
            (Kind::Confirm, Answered::Kept(..))
            | (_, Answered::Value(..) | Answered::Unreadable(_) | Answered::TooLong | Answered::Declined) => false,
        }
    }
}

impl OpenQuestions {
    pub(super) fn new(prefix: &str) -> OpenQuestions {
        OpenQuestions { prefix: prefix.to_owned(), ..OpenQuestions::default() }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes).sum()
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.groups.len() > WAITING_REQUESTS
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.groups.iter().any(Group::is_open)
    }

    fn place(&self, id: &QuestionId) -> Option<(usize, usize)> {
        let number = id.strip_prefix("q_")?.strip_prefix(&self.prefix)?.strip_prefix('_')?.parse::<u64>().ok()?;
        let at = self.groups.partition_point(|group| group.number <= number).checked_sub(1)?;
        let group = &self.groups[at];
        let within = usize::try_from(number - group.number).ok()?;
        group.members.get(within).filter(|member| member.reply.is_none() && member.id == *id).map(|_| (at, within))
    }

    pub(super) fn find(&self, id: &QuestionId) -> Option<&OpenQuestion> {
        self.place(id).map(|(group, within)| &self.groups[group].members[within])
    }

    /// The deadline of the open questions. After the end of stdin, they are due at once, because only an answer that
    /// was read before can still arrive.
    pub(super) fn due(&self) -> Option<Duration> {
        let deadline = self.groups.iter().filter(|group| group.is_open()).map(|group| group.deadline).min();
        if self.input_closed { deadline.map(|_| Duration::ZERO) } else { deadline }
    }

    pub(super) fn due_cause(&self) -> NoAnswerCause {
        if self.input_closed { NoAnswerCause::InputClosed } else { NoAnswerCause::Timeout }
    }

    fn next_id(&mut self) -> QuestionId {
        self.questions += 1;
        format!("q_{}_{}", self.prefix, self.questions).into()
    }

    /// Adds a group of at least one question, and resolves those that a policy decides. In a headless run, also the
    /// others, as if nobody answered. Returns the ids of the questions that wait, and the resolved ones.
    pub(super) fn open(
        &mut self,
        now: Duration,
        asker: Asker,
        asks: Asks,
        settings: &Settings,
        texts: &FrameTexts,
    ) -> (Vec<QuestionId>, Vec<Resolved>) {
        self.groups_made += 1;
        let (number, id) = (self.questions + 1, format!("g_{}_{}", self.prefix, self.groups_made));
        let new = |ask| OpenQuestion::new(self.next_id(), ask, texts, settings.max_frame_bytes);
        let mut members: Vec<OpenQuestion> = asks.into_iter().map(new).collect();
        let mut resolved = Vec::new();
        for member in &mut members {
            match member.decided(settings, &self.granted) {
                Some(reply) => resolved.push(member.resolve(reply, Resolution::Policy, false)),
                None if member.hidden.is_some() => {
                    let denied = member.resolve(Reply::Denied(None), Resolution::Policy, false);
                    resolved.push(Resolved { hidden: member.hidden, ..denied });
                }
                None if !settings.interactive => {
                    resolved.extend(member.resolve_unanswered(NoAnswerCause::Headless, settings))
                }
                None => {}
            }
        }
        let bytes = match asker {
            Asker::Agent(_) => std::mem::take(&mut self.line_bytes),
            Asker::Tool(_) | Asker::Markers | Asker::Step => 0,
        };
        let deadline = now + settings.question_timeout_s.duration();
        let group = Group { id, number, asker, members, deadline, bytes };
        let waiting = group.open().map(|member| member.id.clone()).collect();
        self.groups.push(group);
        (waiting, resolved)
    }

    /// `deadline`: of the run.
    pub(super) fn frame(
        &self,
        id: &QuestionId,
        error: Option<BadAnswer>,
        deadline: Option<Duration>,
        now: Duration,
        texts: &FrameTexts,
    ) -> Option<Body> {
        let (group, within) = self.place(id)?;
        let group = &self.groups[group];
        let member = &group.members[within];
        let due = deadline.map_or(group.deadline, |end| end.min(group.deadline));
        let left = due.saturating_sub(now);
        let mut ask = member.shown.clone();
        // The text of a permission contains its title, except for a plan.
        if let Some(subject) = ask.subject.as_ref().filter(|subject| subject.category != Category::Mode) {
            let redactor = &texts.redactor;
            let (text, title) = (ask.text.redacted_action(redactor), subject.title.redacted_action(redactor));
            let text = match title.is_empty() {
                true => text,
                false => text.replace(&*title, &texts.action_title(&subject.title)).into(),
            };
            ask.text = texts.cut(&text).into();
        }
        ask.subject = ask.subject.as_ref().map(|subject| shown_subject(subject, texts));
        Some(Body::Question(Box::new(Question {
            question_id: member.id.clone(),
            group_id: group.id.clone(),
            group_size: group.members.len(),
            timeout_s: Seconds(left.as_millis() as f64 / 1000.0),
            attempt: member.attempt,
            error: error.map(Text::from),
            ask,
            truncated: false,
        })))
    }

    /// Registers a secret answer with the redactor before it is used. Also returns whether it is too plain to redact.
    pub(super) fn keep_secret(
        &mut self,
        id: &QuestionId,
        answered: Answered,
        redactor: &mut Redactor,
    ) -> (Answered, bool) {
        let is_secret = self.find(id).is_some_and(|member| answered.is_secret(&member.shown.kind));
        let (true, Answered::Value(raw, _) | Answered::Kept(raw, _)) = (is_secret, &answered) else {
            return (answered, false);
        };
        let Some(text) = crate::json::string(raw) else { return (answered, false) };
        if text.len() > SECRET_BYTES {
            return (Answered::TooLong, false);
        }
        let is_kept = redactor.add(&text);
        if is_kept {
            self.hide(redactor);
        }
        (answered, !is_kept)
    }

    fn hide(&mut self, redactor: &Redactor) {
        let open = self.groups.iter_mut().flat_map(Group::open_mut);
        // The texts of a permission are redacted with the frame.
        let open = open.filter(|member| member.ask.purpose != Purpose::Permission);
        open.for_each(|member| member.shown = shown(&member.ask, redactor));
    }

    /// Resolves open questions: those whose deadline has passed, or all. Also returns whether the run fails.
    pub(super) fn resolve_without_answer(
        &mut self,
        now: Duration,
        cause: NoAnswerCause,
        settings: &Settings,
    ) -> (Vec<Resolved>, bool) {
        let (mut resolved, mut fails) = (Vec::new(), false);
        let is_late = |group: &&mut Group| cause != NoAnswerCause::Timeout || group.deadline <= now;
        for member in self.groups.iter_mut().filter(is_late).flat_map(Group::open_mut) {
            let one = member.resolve_unanswered(cause, settings);
            fails |= one.is_none();
            resolved.push(one.unwrap_or_else(|| member.resolve(Reply::Declined(None), cause.resolution(), false)));
        }
        (resolved, fails)
    }

    pub(super) fn take(
        &mut self,
        now: Duration,
        id: &QuestionId,
        answered: &Answered,
        beside: BesideAnswer,
        settings: &Settings,
    ) -> AnswerEffect {
        let Some((group, within)) = self.place(id) else { return AnswerEffect::Unknown };
        let group = &mut self.groups[group];
        let member = &mut group.members[within];
        let checked = match answered {
            Answered::Declined => Ok(None),
            Answered::Unreadable(why) => Err(why.clone()),
            Answered::TooLong => Err(format!("A secret may have at most {SECRET_BYTES} bytes.")),
            Answered::Value(value, path) | Answered::Kept(value, path) => {
                // A value that became secret only now was shown before, so it is accepted too.
                let shown = check(&member.checked(), value, *path);
                shown.or_else(|why| check(&member.ask, value, *path).map_err(|_| why)).map(Some)
            }
        };
        if beside.input.is_some() && !matches!(checked, Ok(Some(Answer::Decision(Decision::AllowOnce)))) {
            return AnswerEffect::NoInput;
        }
        let always = match &checked {
            Ok(Some(Answer::Decision(Decision::AllowAlways))) => member.ask.scope.clone(),
            _ => None,
        };
        let is_secret = answered.is_secret(&member.shown.kind);
        let resolved = match checked {
            Ok(Some(_)) if always.is_some() => member.allow_always(),
            Ok(Some(answer)) => {
                let resolved = member.resolve(member.reply_for(answer, beside), Resolution::Answered, false);
                if is_secret { Resolved { value: Answer::Null, ..resolved } } else { resolved }
            }
            Ok(None) => member.resolve(Reply::Declined(beside.message), Resolution::Declined, false),
            Err(why) if member.attempt < BAD_ANSWERS => {
                member.attempt += 1;
                return AnswerEffect::Again(member.id.clone(), why);
            }
            Err(_) => member.resolve(Reply::Declined(None), Resolution::Declined, false),
        };
        group.deadline = now + settings.question_timeout_s.duration();
        let mut all = vec![resolved];
        if let Some(scope) = always {
            self.granted.add(&scope);
            // An answer "always" also resolves the questions that are already open.
            let open = self.groups.iter_mut().flat_map(Group::open_mut);
            all.extend(open.filter(|m| m.ask.scope.as_ref() == Some(&scope)).map(OpenQuestion::allow_always));
        }
        AnswerEffect::Resolved(all)
    }

    /// Withdraws the questions of one asker, or of all. Also returns the calls of the tool that asked them: unlike a
    /// driver, the tool's server must be told.
    pub(super) fn withdraw(&mut self, asker: Option<&Asker>) -> (Vec<Resolved>, Vec<u64>) {
        let (mut resolved, mut calls) = (Vec::new(), Vec::new());
        for mut group in self.groups.extract_if(.., |group| asker.is_none_or(|asker| group.asker == *asker)) {
            let open = group.open_mut();
            resolved.extend(open.map(|member| member.resolve(Reply::Declined(None), Resolution::Withdrawn, false)));
            match group.asker {
                Asker::Tool(call) => calls.push(call),
                Asker::Agent(_) | Asker::Markers | Asker::Step => {}
            }
        }
        (resolved, calls)
    }

    pub(super) fn completed(&mut self) -> Vec<Completed> {
        let completed = |group: Group| Completed {
            asker: group.asker,
            declined: group.members.iter().any(OpenQuestion::is_missed),
            replies: group.members.into_iter().filter_map(|m| m.reply).collect(),
        };
        self.groups.extract_if(.., |group| !group.is_open()).map(completed).collect()
    }
}

impl Group {
    fn is_open(&self) -> bool {
        self.open().next().is_some()
    }

    fn open(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.members.iter().filter(|member| member.reply.is_none())
    }

    fn open_mut(&mut self) -> impl Iterator<Item = &mut OpenQuestion> {
        self.members.iter_mut().filter(|member| member.reply.is_none())
    }
}

//! The open questions: their ids, groups and clocks, and how an answer, its absence or a policy resolves each.
//!
//! This module makes all decisions about questions; drivers make none.

use super::always_allowed::AlwaysAllowed;
use super::answered::Answered;
use super::frame_texts::FrameTexts;
use super::inside::reads_inside;
use super::redact_question::{AskedAndShown, Hidden, both, shown};
use crate::agent::{AskKey, Reply};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::{BAD_ANSWERS, SECRET_BYTES};
use crate::protocol::question::{ALLOW_ONCE, Answer, Ask, Asks, BadAnswer, Decision, Kind, Subject, check};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::text::Text;
use crate::protocol::words::{LimitField, OnQuestionTimeout, Policy, Purpose, Resolution};
use crate::redact::Redactor;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The open questions, and the counters of their ids.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    prefix: String,
    questions: u64,
    groups_made: u64,
    /// The groups whose asker still waits, by the number of their first question.
    groups: BTreeMap<u64, Group>,
    /// The groups whose asker still waits, by asker.
    askers: BTreeSet<(Asker, u64)>,
    /// The groups that have an open question, by deadline.
    deadlines: BTreeSet<(Duration, u64)>,
    /// The groups without an open question.
    done: BTreeSet<u64>,
    pub(super) granted: AlwaysAllowed,
    /// Whether stdin has ended.
    pub(super) input_closed: bool,
    /// The size of the agent's current line in bytes, or 0 once it is counted for a request.
    pub(super) line_bytes: usize,
    /// The size of the agent's requests that wait for answers, in bytes. The driver and the run keep at most the lines
    /// that contained them.
    held_bytes: usize,
}

/// The asker of a group of questions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asker {
    /// The agent, by a request of its dialect.
    Agent(AskKey),
    /// The agent, by a call of our tool.
    Tool(u64),
    /// Markers in the agent's text.
    Markers,
}

/// Questions that the agent asked together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) asker: Asker,
    pub(super) members: Vec<OpenQuestion>,
    /// The deadline of its open questions.
    pub(super) deadline: Duration,
    /// The size of the request, in bytes.
    bytes: usize,
}

/// A question in a group, and its resolution.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    pub(super) id: QuestionId,
    /// The question as the agent asked it.
    ask: Ask,
    /// The question as a frame shows it: redacted.
    pub(super) shown: Ask,
    /// The reason why nobody can approve it.
    hidden: Option<Hidden>,
    pub(super) attempt: u32,
    reply: Option<Reply>,
}

#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) question_id: QuestionId,
    pub(super) resolution: Resolution,
    pub(super) used_default: bool,
    /// The question as a frame showed it.
    pub(super) ask: Ask,
    /// The value that was taken, as frames may show it.
    pub(super) value: Answer,
    /// Whether a frame can show the whole action.
    pub(super) fits: bool,
    /// The reason why the question was denied without being asked.
    pub(super) hidden: Option<Hidden>,
}

/// A group whose questions are all resolved.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) asker: Asker,
    /// The replies, one per question, in order.
    pub(super) replies: Vec<Reply>,
    /// Whether a question that needs an answer was declined.
    pub(super) declined: bool,
}

/// The reason why nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswerCause {
    /// The question's time ran out.
    Timeout,
    /// stdin has ended.
    InputClosed,
    Headless,
}

#[derive(Debug)]
pub(super) enum AnswerEffect {
    /// No open question has this id.
    Unknown,
    /// The answer has an input for a tool, and does not allow the call.
    NoInput,
    /// The answer does not fit: repeat the question.
    Again(QuestionId, BadAnswer),
    /// The question is resolved, together with those that the same answer covers.
    Resolved(Vec<Resolved>),
}

/// The parts of an answer beside its value.
#[derive(Debug, Default)]
pub(super) struct BesideAnswer {
    /// Text for the agent, to go with a denial.
    pub(super) message: Option<Text>,
    /// The input for the tool, to go with a permission.
    pub(super) input: Option<String>,
}

impl OpenQuestions {
    /// Creates an empty book. `prefix`: makes the ids unique across processes. `questions`, `groups`: the counters
    /// after earlier runs.
    pub(super) fn new(prefix: &str, questions: u64, groups: u64, granted: AlwaysAllowed) -> OpenQuestions {
        let prefix = prefix.to_owned();
        OpenQuestions { prefix, questions, groups_made: groups, granted, ..OpenQuestions::default() }
    }

    /// The counters of questions and groups.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.questions, self.groups_made)
    }

    /// The size of the requests that wait for answers, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether a question is open.
    pub(super) fn is_waiting(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// The group of the question with this id, if the asker still waits.
    fn group_of(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix("q_")?.strip_prefix(&self.prefix)?.strip_prefix('_')?.parse::<u64>().ok()?;
        self.groups.range(..=number).next_back().map(|(first, _)| *first)
    }

    pub(super) fn find(&self, id: &QuestionId) -> Option<(&Group, &OpenQuestion)> {
        let group = self.groups.get(&self.group_of(id)?)?;
        group.open().find(|member| member.id == *id).map(|member| (group, member))
    }

    /// The ids of a group's open questions.
    pub(super) fn waiting(&self, group: u64) -> Vec<QuestionId> {
        self.groups.get(&group).into_iter().flat_map(Group::open).map(|member| member.id.clone()).collect()
    }

    /// The deadline of the open questions. After the end of stdin, they are due at once, because only an answer that
    /// was read before can still arrive.
    pub(super) fn due(&self) -> Option<Duration> {
        let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
        if self.input_closed { deadline.map(|_| Duration::ZERO) } else { deadline }
    }

    /// The reason why nobody answers the questions that are due.
    pub(super) fn due_cause(&self) -> NoAnswerCause {
        if self.input_closed { NoAnswerCause::InputClosed } else { NoAnswerCause::Timeout }
    }

    fn next_id(&mut self) -> QuestionId {
        self.questions += 1;
        format!("q_{}_{}", self.prefix, self.questions).into()
    }

    /// Adds a group of at least one question, and resolves those that a policy decides. Returns the group's number.
    pub(super) fn open(
        &mut self,
        now: Duration,
        asker: Asker,
        asks: Asks,
        settings: &Settings,
        texts: &FrameTexts,
    ) -> (u64, Vec<Resolved>) {
        self.groups_made += 1;
        let number = self.questions + 1;
        let id = format!("g_{}_{}", self.prefix, self.groups_made);
        let members = asks
            .into_iter()
            .map(|ask| {
                let AskedAndShown { asked, shown, hidden } = both(ask, texts, settings.max_frame_bytes);
                OpenQuestion { id: self.next_id(), shown, ask: asked, hidden, attempt: 1, reply: None }
            })
            .collect();
        let deadline = now + settings.question_timeout_s.duration();
        let bytes = match asker {
            Asker::Agent(_) => std::mem::take(&mut self.line_bytes),
            Asker::Tool(_) | Asker::Markers => 0,
        };
        self.held_bytes += bytes;
        self.askers.insert((asker.clone(), number));
        self.deadlines.insert((deadline, number));
        self.groups.insert(number, Group { id, asker, members, deadline, bytes });
        (number, self.resolve_without_asking(number, settings))
    }

    /// Redacts the open questions again after a new secret became known.
    pub(super) fn hide(&mut self, redactor: &Redactor) {
        let open = self.groups.values_mut().flat_map(Group::open_mut);
        // The texts of a permission are redacted with the frame.
        let open = open.filter(|member| member.ask.purpose != Purpose::Permission);
        open.for_each(|member| member.shown = shown(&member.ask, redactor));
    }

    /// Notes that questions of this group were resolved.
    fn resolved_in(&mut self, number: u64) {
        if let Some(group) = self.groups.get(&number).filter(|group| group.open().next().is_none()) {
            self.deadlines.remove(&(group.deadline, number));
            self.done.insert(number);
        }
    }

    /// Resolves the questions that a policy decides. In a headless run, also the others, as if nobody answered.
    fn resolve_without_asking(&mut self, number: u64, settings: &Settings) -> Vec<Resolved> {
        let Some(group) = self.groups.get_mut(&number) else { return Vec::new() };
        let mut resolved = Vec::new();
        for member in &mut group.members {
            let subject = member.ask.subject.as_ref().filter(|_| member.ask.purpose == Purpose::Permission);
            let categories =
                |subject: &Subject| std::iter::once(subject.category).chain(member.ask.also.iter().copied());
            // Only the shown question still has the detail.
            let judged = subject.and(member.shown.subject.as_ref());
            let own = judged.and_then(|subject| settings.judge.as_ref()?.decide(subject, &member.ask.also));
            let policy = judged
                .map(|subject| settings.permissions.strictest(categories(subject), reads_inside(subject, settings)));
            let decided = match own.or(policy) {
                Some(Policy::Allow) if member.ask.offers(ALLOW_ONCE) => Some(Reply::Allowed),
                Some(Policy::Allow | Policy::Deny) => Some(denied()),
                Some(Policy::Ask) if self.granted.covers(member.ask.scope.as_ref()) => Some(Reply::Allowed),
                Some(Policy::Ask) | None => None,
            };
            match decided {
                Some(reply) => resolved.push(member.resolve(reply, Resolution::Policy, false)),
                None if member.hidden.is_some() => {
                    let denied = member.resolve(denied(), Resolution::Policy, false);
                    resolved.push(Resolved { hidden: member.hidden, ..denied });
                }
                None if !settings.interactive => {
                    resolved.extend(member.resolve_unanswered(NoAnswerCause::Headless, settings))
                }
                None => {}
            }
        }
        self.resolved_in(number);
        resolved
    }

    /// Resolves open questions that nobody answers: those whose deadline has passed, or all. Also returns whether the
    /// run fails.
    pub(super) fn resolve_without_answer(
        &mut self,
        now: Duration,
        cause: NoAnswerCause,
        settings: &Settings,
    ) -> (Vec<Resolved>, bool) {
        let (mut resolved, mut fails) = (Vec::new(), false);
        let late = |(deadline, _): &&(Duration, u64)| cause != NoAnswerCause::Timeout || *deadline <= now;
        let concerned: BTreeSet<u64> = self.deadlines.iter().take_while(late).map(|(_, number)| *number).collect();
        for number in concerned {
            for member in self.groups.get_mut(&number).into_iter().flat_map(Group::open_mut) {
                let (one, fail) = member.give_up(cause, settings);
                resolved.push(one);
                fails |= fail;
            }
            self.resolved_in(number);
        }
        (resolved, fails)
    }

    /// Checks an answer and resolves its question.
    pub(super) fn take(
        &mut self,
        now: Duration,
        id: &QuestionId,
        answered: &Answered,
        beside: BesideAnswer,
        settings: &Settings,
    ) -> AnswerEffect {
        let Some(number) = self.group_of(id) else { return AnswerEffect::Unknown };
        let Some(group) = self.groups.get_mut(&number) else { return AnswerEffect::Unknown };
        let Some(member) = group.open_mut().find(|member| member.id == *id) else { return AnswerEffect::Unknown };
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
        self.deadlines.remove(&(group.deadline, number));
        group.deadline = now + settings.question_timeout_s.duration();
        self.deadlines.insert((group.deadline, number));
        self.resolved_in(number);
        let mut all = vec![resolved];
        if let Some(scope) = always {
            self.granted.add(&scope);
            // An answer "always" also resolves the questions that are already open.
            for number in self.groups.keys().copied().collect::<Vec<_>>() {
                let open = self.groups.get_mut(&number).into_iter().flat_map(Group::open_mut);
                all.extend(open.filter(|m| m.ask.scope.as_ref() == Some(&scope)).map(OpenQuestion::allow_always));
                self.resolved_in(number);
            }
        }
        AnswerEffect::Resolved(all)
    }

    /// Withdraws the questions of one asker, or of all. Also returns the calls of the tool that asked them: unlike a
    /// driver, the tool's server must be told.
    pub(super) fn withdraw(&mut self, asker: Option<&Asker>) -> (Vec<Resolved>, Vec<u64>) {
        let gone: Vec<u64> = match asker {
            Some(asker) => {
                let of_asker = (asker.clone(), 0)..=(asker.clone(), u64::MAX);
                self.askers.range(of_asker).map(|(_, number)| *number).collect()
            }
            None => self.groups.keys().copied().collect(),
        };
        let gone: Vec<Group> = gone.into_iter().filter_map(|number| self.remove(number)).collect();
        let call = |group: &Group| match group.asker {
            Asker::Tool(call) => Some(call),
            Asker::Agent(_) | Asker::Markers => None,
        };
        let calls = gone.iter().filter_map(call).collect();
        let open = gone.into_iter().flat_map(|group| group.members).filter(|m| m.reply.is_none());
        let resolved = open.map(|mut member| member.resolve(Reply::Declined(None), Resolution::Withdrawn, false));
        (resolved.collect(), calls)
    }

    /// Removes and returns the groups whose questions are all resolved.
    pub(super) fn completed(&mut self) -> Vec<Completed> {
        let completed = |group: Group| Completed {
            asker: group.asker,
            declined: group.members.iter().any(OpenQuestion::is_missed),
            replies: group.members.into_iter().filter_map(|m| m.reply).collect(),
        };
        let done = std::mem::take(&mut self.done);
        done.into_iter().filter_map(|number| self.remove(number)).map(completed).collect()
    }

    fn remove(&mut self, number: u64) -> Option<Group> {
        let group = self.groups.remove(&number)?;
        self.held_bytes -= group.bytes;
        self.askers.remove(&(group.asker.clone(), number));
        self.deadlines.remove(&(group.deadline, number));
        self.done.remove(&number);
        Some(group)
    }
}

fn denied() -> Reply {
    Reply::Denied(None)
}

impl Group {
    fn open(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.members.iter().filter(|member| member.reply.is_none())
    }

    fn open_mut(&mut self) -> impl Iterator<Item = &mut OpenQuestion> {
        self.members.iter_mut().filter(|member| member.reply.is_none())
    }
}

impl OpenQuestion {
    /// The question as a frame shows it, with the agent's unredacted rules.
    fn checked(&self) -> Ask {
        Ask { validation: self.ask.validation.clone(), ..self.shown.clone() }
    }

    /// Whether the question requires an answer and was declined.
    fn is_missed(&self) -> bool {
        matches!(self.reply, Some(Reply::Declined(_))) && self.ask.required && self.ask.default.is_none()
    }

    fn resolve(&mut self, reply: Reply, resolution: Resolution, used_default: bool) -> Resolved {
        let value = match &reply {
            Reply::Allowed | Reply::AllowedWith(_) => Answer::Decision(Decision::AllowOnce),
            Reply::Denied(_) => Answer::Decision(Decision::Deny),
            Reply::NoUser if self.ask.purpose == Purpose::Permission => Answer::Decision(Decision::Deny),
            Reply::Answer(answer) => renamed(answer.clone(), &self.ask.kind, &self.shown.kind),
            Reply::Declined(_) | Reply::NoUser => Answer::Null,
        };
        self.reply = Some(reply);
        let (question_id, ask) = (self.id.clone(), self.shown.clone());
        let fits = self.hidden != Some(Hidden::TooLong);
        Resolved { question_id, resolution, used_default, ask, value, fits, hidden: None }
    }

    /// Resolves the question with "always". The agent is told only that this request is allowed.
    fn allow_always(&mut self) -> Resolved {
        let resolved = self.resolve(Reply::Allowed, Resolution::Answered, false);
        Resolved { value: Answer::Decision(Decision::AllowAlways), ..resolved }
    }

    /// Converts an answer to the shown question into a reply with the agent's own values.
    fn reply_for(&self, answer: Answer, message: BesideAnswer) -> Reply {
        if self.ask.purpose == Purpose::Permission {
            return match (answer, message) {
                (Answer::Decision(Decision::AllowOnce), BesideAnswer { input: Some(input), .. }) => {
                    Reply::AllowedWith(input)
                }
                (Answer::Decision(Decision::AllowOnce), _) => Reply::Allowed,
                (_, BesideAnswer { message, .. }) => Reply::Denied(message),
            };
        }
        Reply::Answer(renamed(answer, &self.shown.kind, &self.ask.kind))
    }

    fn give_up(&mut self, cause: NoAnswerCause, settings: &Settings) -> (Resolved, bool) {
        match self.resolve_unanswered(cause, settings) {
            Some(resolved) => (resolved, false),
            None => (self.resolve(Reply::Declined(None), cause.resolution(), false), true),
        }
    }

    /// Resolves the question by the protocol's rules for unanswered questions. `None`: the run fails.
    fn resolve_unanswered(&mut self, cause: NoAnswerCause, settings: &Settings) -> Option<Resolved> {
        let (reply, used_default) = match (&self.ask.default, self.ask.required, cause) {
            // Nobody denied it, so the agent is not told that the user did.
            (_, _, NoAnswerCause::Headless | NoAnswerCause::InputClosed) if self.ask.purpose == Purpose::Permission => {
                (Reply::NoUser, cause == NoAnswerCause::InputClosed)
            }
            (Some(default), ..) => (self.reply_for_default(default.clone()), true),
            (None, false, _) => (Reply::Answer(Answer::Null), false),
            (None, true, NoAnswerCause::Headless) => (Reply::NoUser, false),
            (None, true, NoAnswerCause::InputClosed) if settings.closed_input_declines => {
                (Reply::Declined(None), false)
            }
            (None, true, NoAnswerCause::InputClosed) => return None,
            (None, true, NoAnswerCause::Timeout) => match settings.on_question_timeout {
                OnQuestionTimeout::Fail => return None,
                OnQuestionTimeout::Continue => (Reply::Declined(None), false),
            },
        };
        Some(self.resolve(reply, cause.resolution(), used_default))
    }

    /// Converts the default into a reply. The default has the agent's own values.
    fn reply_for_default(&self, default: Answer) -> Reply {
        if default == Answer::Decision(Decision::Deny) { denied() } else { Reply::Answer(default) }
    }
}

/// An answer with the values that the options of `from` have in `to`, the same question in its other form.
fn renamed(answer: Answer, from: &Kind, to: &Kind) -> Answer {
    let (Kind::Select { choices: from, .. }, Kind::Select { choices: to, .. }) = (from, to) else { return answer };
    let renamed = |value: Text| {
        let at = from.as_slice().iter().position(|choice| choice.value == value);
        at.and_then(|at| to.as_slice().get(at)).map_or(value, |choice| choice.value.clone())
    };
    match answer {
        Answer::One(value) => Answer::One(renamed(value)),
        Answer::Many(values) => Answer::Many(values.into_iter().map(renamed).collect()),
        other @ (Answer::Decision(_) | Answer::Bool(_) | Answer::Text(_) | Answer::Null) => other,
    }
}

impl NoAnswerCause {
    /// The failure of a run that needs the answer.
    pub(super) fn failure(self) -> Failure {
        match self {
            NoAnswerCause::Timeout => Failure::new(
                Code::QuestionTimeout,
                sentence!(
                    "A question was not answered in time: answer it, or raise {question_timeout_s:#}.",
                    question_timeout_s
                ),
            )
            .at(LimitField::QuestionTimeout),
            NoAnswerCause::InputClosed | NoAnswerCause::Headless => Failure::new(
                Code::InputClosed,
                Sentence::pair(
                    "A question needs an answer, but nobody can give one: keep stdin open, use --answer, or run headless.",
                    "A question needs an answer, and nobody is left to give one: add --answer, or start the run in a \
                     terminal.",
                ),
            ),
        }
    }

    fn resolution(self) -> Resolution {
        match self {
            NoAnswerCause::Timeout => Resolution::Timeout,
            NoAnswerCause::InputClosed => Resolution::InputClosed,
            NoAnswerCause::Headless => Resolution::Headless,
        }
    }
}

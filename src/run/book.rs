//! The open questions: ids, groups, clocks, and what an answer, its absence or a policy makes of each.
//!
//! Everything that decides about a question is here and not in a driver.

use super::granted::Granted;
use crate::agent::{AskKey, Reply};
use crate::protocol::limits::BAD_ANSWERS;
use crate::protocol::question::{
    ALLOW_ALWAYS, ALLOW_ONCE, Answer, Ask, BadAnswer, Choice, Choices, DENY, Kind, PathFact, Subject, check,
};
use crate::protocol::request::Settings;
use crate::protocol::words::{OnQuestionTimeout, Policy, Purpose, Resolution};
use crate::redact::Redactor;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::time::Duration;

/// The questions that wait, and the ids given so far.
#[derive(Debug)]
pub(crate) struct Book {
    prefix: String,
    questions: u64,
    groups_made: u64,
    groups: Vec<Group>,
    granted: Granted,
}

/// Who waits for the answers to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The agent, by a request of its dialect.
    Agent(AskKey),
    /// The agent, by a call of the tool that we offer it.
    Tool(u64),
    /// The markers in what the agent said.
    Markers,
}

/// Questions that the agent asked together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: String,
    pub(crate) asker: Asker,
    pub(crate) members: Vec<Member>,
    deadline: Duration,
}

/// One question.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    /// As the agent asked it.
    ask: Ask,
    /// As it is shown: redacted, with values that can be answered.
    pub(crate) shown: Ask,
    pub(crate) attempt: u32,
    reply: Option<Reply>,
}

/// One question's end.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) question_id: String,
    pub(crate) resolution: Resolution,
    pub(crate) used_default: bool,
    /// The question as it was shown.
    pub(crate) ask: Ask,
    /// Of a permission: the chosen option.
    pub(crate) value: Option<String>,
}

/// A group whose questions are all resolved.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) asker: Asker,
    /// One for each question, in order.
    pub(crate) replies: Vec<Reply>,
    /// Whether the asker gets no answer to a question that needs one.
    pub(crate) declined: bool,
}

/// Why nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The question's time is over.
    Timeout,
    /// stdin is at its end.
    InputClosed,
    /// The run is headless.
    Headless,
}

/// What an absence makes of a question.
enum Fallback {
    Reply(Reply, bool),
    /// Nobody can answer, and the run fails.
    Fail,
}

/// What came of an answer.
#[derive(Debug)]
pub(crate) enum Taken {
    /// There is no such question, or not any more.
    Unknown,
    /// It does not fit; the question is to be repeated.
    Again(String, BadAnswer),
    /// The question is resolved, and with it those that the same answer decides.
    Resolved(Vec<Resolved>),
}

/// An answer as the orchestrator gave it.
#[derive(Debug)]
pub enum Answered {
    /// A value, and what is known of it as a path.
    Value(Box<RawValue>, Option<PathFact>),
    /// The same, read from where `value_from` pointed, so that it stayed off the pipe.
    Kept(Box<RawValue>, Option<PathFact>),
    /// A value that could not be read.
    Unreadable,
    /// The user declines.
    Declined,
}

impl Book {
    /// `prefix` makes the ids unique across processes; `questions` and `groups` were given out before.
    pub(crate) fn new(prefix: &str, questions: u64, groups: u64) -> Book {
        Book {
            prefix: prefix.to_owned(),
            questions,
            groups_made: groups,
            groups: Vec::new(),
            granted: Granted::default(),
        }
    }

    /// Questions and groups so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.questions, self.groups_made)
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open().next().is_some()
    }

    /// All open questions with their group.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&Group, &Member)> {
        let members = |group| -> Box<dyn Iterator<Item = (&Group, &Member)>> {
            let group: &Group = group;
            Box::new(group.members.iter().filter(|m| m.reply.is_none()).map(move |m| (group, m)))
        };
        self.groups.iter().flat_map(members)
    }

    /// The question with this id, if it is open.
    pub(crate) fn find(&self, id: &str) -> Option<(&Group, &Member)> {
        self.open().find(|(_, member)| member.id == id)
    }

    /// When the first clock runs out.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.groups.iter().map(|group| group.deadline).min()
    }

    fn next_id(&mut self) -> String {
        self.questions += 1;
        format!("q_{}_{}", self.prefix, self.questions)
    }

    /// Takes in a group. Gives its id.
    pub(crate) fn add(
        &mut self,
        now: Duration,
        asker: Asker,
        asks: Vec<Ask>,
        settings: &Settings,
        redactor: &Redactor,
    ) -> String {
        self.groups_made += 1;
        let id = format!("g_{}_{}", self.prefix, self.groups_made);
        let members = asks
            .into_iter()
            .map(|ask| Member { id: self.next_id(), shown: shown(&ask, redactor), ask, attempt: 1, reply: None })
            .collect();
        let deadline = now + settings.question_timeout_s.duration();
        self.groups.push(Group { id: id.clone(), asker, members, deadline });
        id
    }

    /// Hides what became a secret since the open questions were taken in.
    pub(crate) fn hide(&mut self, redactor: &Redactor) {
        let open = self.groups.iter_mut().flat_map(|group| &mut group.members).filter(|m| m.reply.is_none());
        open.for_each(|member| member.shown = shown(&member.ask, redactor));
    }

    /// Resolves what a policy decides, and all of a group if the run is headless.
    pub(crate) fn settle(&mut self, id: &str, settings: &Settings) -> Vec<Resolved> {
        let Some(group) = self.groups.iter_mut().find(|group| group.id == id) else { return Vec::new() };
        let mut resolved = Vec::new();
        for member in &mut group.members {
            let subject = member.ask.subject.as_ref().filter(|_| member.ask.purpose == Purpose::Permission);
            let categories =
                |subject: &Subject| std::iter::once(subject.category).chain(member.ask.also.iter().copied());
            let decided = match subject.map(|subject| settings.permissions.strictest(categories(subject))) {
                Some(Policy::Allow) if member.ask.offers(ALLOW_ONCE) => Some(Reply::Allowed),
                Some(Policy::Allow | Policy::Deny) => Some(denied()),
                Some(Policy::Ask) if self.granted.covers(member.ask.scope.as_ref()) => Some(Reply::Allowed),
                Some(Policy::Ask) | None => None,
            };
            match decided {
                Some(reply) => resolved.push(member.resolve(reply, Resolution::Policy, false)),
                None if !settings.interactive => resolved.extend(member.fall_back(Absence::Headless, settings)),
                None => {}
            }
        }
        resolved
    }

    /// What an absence makes of every open question it concerns: those whose time is over, or all of them. The
    /// `bool` says that the run fails.
    pub(crate) fn nobody(&mut self, now: Duration, absence: Absence, settings: &Settings) -> (Vec<Resolved>, bool) {
        let (mut resolved, mut fails) = (Vec::new(), false);
        for group in &mut self.groups {
            if absence == Absence::Timeout && group.deadline > now {
                continue;
            }
            for member in group.members.iter_mut().filter(|m| m.reply.is_none()) {
                let (one, fail) = member.give_up(absence, settings);
                resolved.push(one);
                fails |= fail;
            }
        }
        (resolved, fails)
    }

    /// Takes an answer.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        id: &str,
        answered: &Answered,
        message: Option<String>,
        settings: &Settings,
    ) -> Taken {
        let Some(group) = self.groups.iter_mut().find(|g| g.members.iter().any(|m| m.id == id && m.reply.is_none()))
        else {
            return Taken::Unknown;
        };
        let Some(member) = group.members.iter_mut().find(|m| m.id == id) else { return Taken::Unknown };
        let checked = match answered {
            Answered::Declined => Ok(None),
            Answered::Unreadable => Err("The value could not be read from where value_from points.".into()),
            Answered::Value(value, path) | Answered::Kept(value, path) => {
                // The agent's own values are answers too: they were shown if they became secret only now.
                let shown = check(&member.checked(), value, *path);
                shown.or_else(|why| check(&member.ask, value, *path).map_err(|_| why)).map(Some)
            }
        };
        let always = match &checked {
            Ok(Some(Answer::One(value))) if value == ALLOW_ALWAYS => member.ask.scope.clone(),
            _ => None,
        };
        let resolved = match checked {
            Ok(Some(_)) if always.is_some() => member.allow_always(),
            Ok(Some(answer)) => member.resolve(member.reply_for(answer, message), Resolution::Answered, false),
            Ok(None) => member.resolve(Reply::Declined(message), Resolution::Declined, false),
            Err(why) if member.attempt < BAD_ANSWERS => {
                member.attempt += 1;
                return Taken::Again(member.id.clone(), why);
            }
            Err(_) => member.resolve(Reply::Declined(None), Resolution::Declined, false),
        };
        group.deadline = now + settings.question_timeout_s.duration();
        let mut all = vec![resolved];
        if let Some(scope) = always {
            self.granted.add(&scope);
            // Those that were asked before the answer came are answered by it too.
            let open = self.groups.iter_mut().flat_map(|group| &mut group.members).filter(|m| m.reply.is_none());
            all.extend(open.filter(|m| m.ask.scope.as_ref() == Some(&scope)).map(Member::allow_always));
        }
        Taken::Resolved(all)
    }

    /// Withdraws the questions of one asker, or of all. Also gives those who asked them.
    pub(crate) fn withdraw(&mut self, asker: Option<&Asker>) -> (Vec<Resolved>, Vec<Asker>) {
        let (gone, kept) = self.groups.drain(..).partition(|group| asker.is_none_or(|asker| group.asker == *asker));
        self.groups = kept;
        let gone: Vec<Group> = gone;
        let askers = gone.iter().map(|group| group.asker.clone()).collect();
        let open = gone.into_iter().flat_map(|group| group.members).filter(|m| m.reply.is_none());
        let resolved = open.map(|mut member| member.resolve(Reply::Declined(None), Resolution::Withdrawn, false));
        (resolved.collect(), askers)
    }

    /// Takes out the groups that are resolved as a whole.
    pub(crate) fn completed(&mut self) -> Vec<Completed> {
        let (done, open) = self.groups.drain(..).partition(|group| group.members.iter().all(|m| m.reply.is_some()));
        self.groups = open;
        let done: Vec<Group> = done;
        let completed = |group: Group| Completed {
            asker: group.asker,
            declined: group.members.iter().any(Member::is_missed),
            replies: group.members.into_iter().filter_map(|m| m.reply).collect(),
        };
        done.into_iter().map(completed).collect()
    }

    /// The time that a question has left.
    pub(crate) fn left(&self, group: &Group, now: Duration) -> Duration {
        group.deadline.saturating_sub(now)
    }
}

fn denied() -> Reply {
    Reply::Denied(None)
}

impl Member {
    /// The question as it is shown, with the rules as the agent gave them.
    fn checked(&self) -> Ask {
        Ask { validation: self.ask.validation.clone(), ..self.shown.clone() }
    }

    /// Whether it was declined although it needs an answer.
    fn is_missed(&self) -> bool {
        matches!(self.reply, Some(Reply::Declined(_))) && self.ask.required && self.ask.default.is_none()
    }

    fn resolve(&mut self, reply: Reply, resolution: Resolution, used_default: bool) -> Resolved {
        let value = match &reply {
            Reply::Answer(Answer::One(value)) => Some(value.clone()),
            Reply::Allowed => Some(ALLOW_ONCE.to_owned()),
            Reply::Denied(_) => Some(DENY.to_owned()),
            _ => None,
        };
        self.reply = Some(reply);
        Resolved { question_id: self.id.clone(), resolution, used_default, ask: self.shown.clone(), value }
    }

    /// The answer "always": the agent hears of this one request alone.
    fn allow_always(&mut self) -> Resolved {
        let resolved = self.resolve(Reply::Allowed, Resolution::Answered, false);
        Resolved { value: Some(ALLOW_ALWAYS.to_owned()), ..resolved }
    }

    /// The reply for an answer to the question as it was shown.
    fn reply_for(&self, answer: Answer, message: Option<String>) -> Reply {
        if self.ask.purpose == Purpose::Permission {
            return if answer == Answer::One(ALLOW_ONCE.into()) { Reply::Allowed } else { Reply::Denied(message) };
        }
        let (Kind::Select { choices: shown, .. }, Kind::Select { choices: asked, .. }) =
            (&self.shown.kind, &self.ask.kind)
        else {
            return Reply::Answer(answer);
        };
        let original = |value: String| {
            let at = shown.as_slice().iter().position(|choice| choice.value == value);
            at.and_then(|at| asked.as_slice().get(at)).map_or(value, |choice| choice.value.clone())
        };
        Reply::Answer(match answer {
            Answer::One(value) => Answer::One(original(value)),
            Answer::Many(values) => Answer::Many(values.into_iter().map(original).collect()),
            other => other,
        })
    }

    fn give_up(&mut self, absence: Absence, settings: &Settings) -> (Resolved, bool) {
        match self.fall_back(absence, settings) {
            Some(resolved) => (resolved, false),
            None => (self.resolve(Reply::Declined(None), absence.resolution(), false), true),
        }
    }

    /// The protocol's table of what happens when nobody answers. `None`: the run fails.
    fn fall_back(&mut self, absence: Absence, settings: &Settings) -> Option<Resolved> {
        let fallback = match (&self.ask.default, self.ask.required, absence) {
            // Headless, a permission that is to be asked counts as denied.
            (_, _, Absence::Headless) if self.ask.purpose == Purpose::Permission => Fallback::Reply(denied(), false),
            (Some(default), ..) => Fallback::Reply(self.reply_for_default(default.clone()), true),
            (None, false, _) => Fallback::Reply(Reply::Answer(Answer::Null), false),
            (None, true, Absence::Headless) => Fallback::Reply(Reply::NoUser, false),
            (None, true, Absence::InputClosed) => Fallback::Fail,
            (None, true, Absence::Timeout) => match settings.on_question_timeout {
                OnQuestionTimeout::Fail => Fallback::Fail,
                OnQuestionTimeout::Continue => Fallback::Reply(Reply::Declined(None), false),
            },
        };
        match fallback {
            Fallback::Reply(reply, used_default) => Some(self.resolve(reply, absence.resolution(), used_default)),
            Fallback::Fail => None,
        }
    }

    /// Defaults are the agent's own values, so they need no translation.
    fn reply_for_default(&self, default: Answer) -> Reply {
        match default {
            Answer::One(value) if self.ask.purpose == Purpose::Permission && value == DENY => denied(),
            other => Reply::Answer(other),
        }
    }
}

impl Absence {
    fn resolution(self) -> Resolution {
        match self {
            Absence::Timeout => Resolution::Timeout,
            Absence::InputClosed => Resolution::InputClosed,
            Absence::Headless => Resolution::Headless,
        }
    }
}

/// The question as it may leave the process. A value that holds a secret becomes `option_N`, so that it can still be
/// answered.
fn shown(ask: &Ask, redactor: &Redactor) -> Ask {
    let clean = |text: &str| redactor.redact(text).into_owned();
    let mut shown = ask.clone();
    if ask.purpose == Purpose::Permission {
        // Its options are the protocol's own words; its texts are redacted with the frame.
        return shown;
    }
    shown.text = clean(&ask.text);
    shown.validation.pattern = ask.validation.pattern.as_deref().map(clean);
    shown.header = clean(&ask.header).chars().take(crate::protocol::limits::HEADER_CHARS).collect();
    if let Kind::Select { choices: asked, multiple, allow_other } = &ask.kind {
        let mut all: Vec<Choice> = Vec::new();
        for (at, choice) in asked.as_slice().iter().enumerate() {
            let number = at + 1;
            let value = usable(&choice.value, &clean(&choice.value), format!("option_{number}"));
            let label = clean(&choice.label);
            let cut = format!("{} ({number})", &label[..label.floor_char_boundary(OPTION_BYTES)]);
            let label = usable(&choice.label, &label, cut);
            let description = choice.description.as_deref().map(clean);
            all.push(Choice {
                value: unlike(value, all.iter().map(|other| &other.value)),
                label: unlike(label, all.iter().map(|other| &other.label)),
                description,
            });
        }
        let Some(choices) = Choices::new(all) else { return shown };
        let pairs = asked.as_slice().iter().zip(choices.as_slice());
        let named: HashMap<&String, &String> = pairs.map(|(asked, shown)| (&asked.value, &shown.value)).collect();
        // A default that names no option is free text.
        let default = |value: &String| named.get(value).map_or_else(|| clean(value), |shown| (*shown).clone());
        shown.default = ask.default.as_ref().map(|given| match given {
            Answer::One(value) => Answer::One(default(value)),
            Answer::Many(values) => Answer::Many(values.iter().map(default).collect()),
            Answer::Bool(_) | Answer::Text(_) | Answer::Null => given.clone(),
        });
        shown.kind = Kind::Select { choices, multiple: *multiple, allow_other: *allow_other };
    }
    shown
}

/// The longest value or label of an option that is shown as it is, in bytes.
const OPTION_BYTES: usize = 1024;

/// The text, unless it holds a secret or is too long: then what stands for it.
fn usable(original: &str, clean: &str, instead: String) -> String {
    if original == clean && clean.len() <= OPTION_BYTES { clean.to_owned() } else { instead }
}

/// The text, made unlike all others.
fn unlike<'a>(mut text: String, others: impl Iterator<Item = &'a String> + Clone) -> String {
    while others.clone().any(|other| *other == text) {
        text.push('_');
    }
    text
}

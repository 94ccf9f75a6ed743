//! The parts of a body: its free texts, its lists and its foreign JSON. Redaction and the frame limit both visit them, so
//! neither can forget a field that the other handles. The declarations in [`super::declare`] generate the walk.

use super::ids::{CallId, CheckpointId, MessageId, PromptId, QuestionId, SessionId};
use super::text::{Json, Text};
use crate::redact::Redactor;

/// The order in which parts are cut if a frame is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Outputs and details.
    Output,
    List,
    Text,
    /// JSON that the orchestrator itself sent.
    Own,
}

impl Rank {
    pub(crate) const ALL: [Rank; 4] = [Rank::Output, Rank::List, Rank::Text, Rank::Own];
}

pub(crate) trait Cut {
    fn count(&self) -> usize;
    /// Keeps the first `count` elements.
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

pub(crate) enum BodyPart<'a> {
    Text(&'a mut Text),
    /// A part of an action that somebody approves. It is never cut.
    Action(&'a mut Text),
    /// A setting or a sentence of our own, which may contain a secret too.
    Own(&'a mut String),
    /// Text that is useful only as a whole: it is kept or dropped.
    Whole(&'a mut Option<Text>),
    /// A text that the orchestrator may send back as an answer. It is never cut.
    Answer(&'a mut Text),
    /// The texts in it are visited as separate parts.
    List(&'a mut dyn Cut),
    /// Foreign JSON, which can only be kept or dropped.
    Json(&'a mut Option<Json>),
}

pub(crate) type Visit<'v> = &'v mut dyn FnMut(Rank, BodyPart<'_>);

/// The treatment of the texts and lists of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Cut(Rank),
    /// They describe an action that somebody approves.
    Action,
    /// They describe an action that nobody approves any more: its list may be cut.
    PastAction,
    /// An orchestrator may send them back as an answer.
    Answer,
}

pub(crate) trait Parts {
    fn visit(&mut self, role: Role, visit: Visit<'_>);
}

impl Parts for Text {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        match role {
            Role::Cut(rank) => visit(rank, BodyPart::Text(self)),
            Role::Action | Role::PastAction => visit(Rank::Own, BodyPart::Action(self)),
            Role::Answer => visit(Rank::List, BodyPart::Answer(self)),
        }
    }
}

impl Parts for String {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        visit(role.rank(), BodyPart::Own(self));
    }
}

impl Parts for Option<Json> {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        visit(role.rank(), BodyPart::Json(self));
    }
}

impl<T: Parts> Parts for Option<T> {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        if let Some(value) = self {
            value.visit(role, visit);
        }
    }
}

impl<T: Parts> Parts for Box<T> {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        (**self).visit(role, visit);
    }
}

impl<T: Parts> Parts for Vec<T> {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        self.iter_mut().for_each(|element| element.visit(role, visit));
        visit_list(self, role, visit);
    }
}

/// Visits a list itself, without its elements.
pub(super) fn visit_list(list: &mut dyn Cut, role: Role, visit: Visit<'_>) {
    match role {
        Role::Cut(rank) => visit(rank, BodyPart::List(list)),
        Role::Action => {}
        Role::PastAction | Role::Answer => visit(Rank::List, BodyPart::List(list)),
    }
}

impl Role {
    fn rank(self) -> Rank {
        match self {
            Role::Cut(rank) => rank,
            Role::Action | Role::PastAction | Role::Answer => Rank::Own,
        }
    }
}

/// Without free text: an id, a number, or a word of the protocol. Only such a value needs no role in a declaration.
pub(crate) trait Fixed {}

macro_rules! fixed {
    ($($type:ty),* $(,)?) => {$(
        impl Fixed for $type {}
    )*};
}

fixed! {
    &'static str, bool, u16, u32, u64, usize, i32, f64,
    QuestionId, SessionId, MessageId, CallId, PromptId, CheckpointId,
}

impl<T: Fixed> Fixed for Option<T> {}
impl<T: Fixed> Fixed for Vec<T> {}

/// A name or an id of our own, or of the configuration.
pub(crate) trait NameText {}
impl NameText for String {}
impl NameText for Option<String> {}

/// Compiles only for a name.
#[inline(always)]
pub(crate) fn check_name<T: NameText>(_: &T) {}

/// Compiles only for a value without free text.
#[inline(always)]
pub(crate) fn check_fixed<T: Fixed>(_: &T) {}

/// Proves that the parts of a body are redacted. Only [`redact`] makes one, so that no text becomes JSON before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsRedacted(());

pub(super) fn redact(body: &mut impl Parts, redactor: &Redactor) -> IsRedacted {
    body.visit(Role::Cut(Rank::Text), &mut |_, part| match part {
        BodyPart::Text(text) | BodyPart::Answer(text) => text.redact(redactor),
        BodyPart::Action(text) => text.redact_action(redactor),
        BodyPart::Own(text) => redactor.redact_in(text),
        BodyPart::Whole(text) => text.iter_mut().for_each(|text| text.redact(redactor)),
        BodyPart::Json(Some(json)) => json.map(&mut |text| redactor.redact(text).into_owned()),
        BodyPart::Json(None) | BodyPart::List(_) => {}
    });
    IsRedacted(())
}

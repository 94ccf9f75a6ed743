//! The parts of a body: its free texts, its lists and its foreign JSON. Redaction and the frame limit both visit them, so
//! neither can forget a field that the other handles. The declarations in [`super::declare`] generate the walk.

use super::ids::{CallId, MessageId, PromptId, QuestionId, SessionId};
use super::outbound::ToolExit;
use super::question::{Answer, Ask, Choice, Choices, Kind};
use super::read::{Permissions, Seconds};
use super::text::{Json, Text};
use super::words::Purpose;
use std::collections::HashSet;

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
    /// All ranks, in the order of cutting.
    pub(crate) const ALL: [Rank; 4] = [Rank::Output, Rank::List, Rank::Text, Rank::Own];
}

/// A list that can be cut.
pub(crate) trait Cut {
    /// The number of elements.
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

impl Cut for Choices {
    fn count(&self) -> usize {
        // A question without options cannot be answered, so one option stays.
        self.count().saturating_sub(1)
    }
    fn cut(&mut self, count: usize) {
        self.cut(count + 1);
    }
}

pub(crate) enum BodyPart<'a> {
    /// Free text.
    Text(&'a mut Text),
    /// A part of an action that somebody approves. It is never cut.
    Action(&'a mut Text),
    /// A setting or a sentence of our own, which may contain a secret too.
    Own(&'a mut String),
    /// Text that is useful only as a whole: it is kept or dropped.
    Whole(&'a mut Option<Text>),
    /// A text that the orchestrator may send back as an answer. It is never cut.
    Answer(&'a mut Text),
    /// A list. The texts in it are visited as separate parts.
    List(&'a mut dyn Cut),
    /// Foreign JSON, which can only be kept or dropped.
    Json(&'a mut Option<Json>),
}

pub(crate) type Visit<'v> = &'v mut dyn FnMut(Rank, BodyPart<'_>);

/// The treatment of the texts and lists of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// They may be cut.
    Cut(Rank),
    /// They describe an action that somebody approves.
    Action,
    /// They describe an action that nobody approves any more: its list may be cut.
    PastAction,
    /// An orchestrator may send them back as an answer.
    Answer,
}

/// A value with parts.
pub(crate) trait Parts {
    /// Calls `visit` with every part.
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

/// A value without free text: an id, a number, or a word of the protocol. Only such a value needs no role in a
/// declaration.
pub(crate) trait Fixed {}

macro_rules! fixed {
    ($($type:ty),* $(,)?) => {$(
        impl Fixed for $type {}
    )*};
}

fixed!(
    &'static str,
    bool,
    u16,
    u32,
    u64,
    usize,
    i32,
    f64,
    Seconds,
    Permissions,
    QuestionId,
    SessionId,
    MessageId,
    CallId,
    PromptId,
    ToolExit,
);

impl<T: Fixed> Fixed for Option<T> {}
impl<T: Fixed> Fixed for Vec<T> {}

/// A name or an id of our own, or of the configuration.
pub(crate) trait Name {}
impl Name for String {}
impl Name for Option<String> {}

/// Does nothing. Compiles only for a name.
#[inline(always)]
pub(crate) fn check_name<T: Name>(_: &T) {}

/// Does nothing. Compiles only for a value without free text.
#[inline(always)]
pub(crate) fn check_fixed<T: Fixed>(_: &T) {}

impl Parts for Ask {
    fn visit(&mut self, _: Role, visit: Visit<'_>) {
        // No frame shows `scope` and `also`.
        let Ask { purpose, kind, header, text, default, validation, required: _, subject, scope: _, also: _ } = self;
        subject.visit(Role::Action, visit);
        validation.visit(Role::Cut(Rank::Output), visit);
        header.visit(Role::Cut(Rank::Text), visit);
        match purpose {
            // The options of a permission, and so its default, are the protocol's own words, and short.
            Purpose::Permission => text.visit(Role::Action, visit),
            Purpose::Clarification | Purpose::Input => {
                answers(kind, default, visit);
                text.visit(Role::Cut(Rank::Text), visit);
            }
        }
    }
}

fn answers(kind: &mut Kind, default: &mut Option<Answer>, visit: Visit<'_>) {
    let options: &[Choice] = match kind {
        Kind::Select { choices, multiple: _, allow_other: _ } => {
            choices.iter_mut().for_each(|choice| choice.visit(Role::Answer, visit));
            visit(Rank::List, BodyPart::List(choices));
            choices.as_slice()
        }
        Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => &[],
    };
    let named: HashSet<&Text> = match default {
        Some(Answer::One(_) | Answer::Many(_)) => options.iter().map(|choice| &choice.value).collect(),
        Some(Answer::Bool(_) | Answer::Text(_) | Answer::Null) | None => HashSet::new(),
    };
    // A default that names an option must still name it afterwards.
    fn part<'a>(named: &HashSet<&Text>, value: &'a mut Text) -> BodyPart<'a> {
        if named.contains(&*value) { BodyPart::Answer(value) } else { BodyPart::Text(value) }
    }
    match default {
        Some(Answer::One(value)) => visit(Rank::Text, part(&named, value)),
        Some(Answer::Text(free)) => free.visit(Role::Cut(Rank::Text), visit),
        Some(Answer::Many(values)) => {
            values.iter_mut().for_each(|value| visit(Rank::List, part(&named, value)));
            visit(Rank::List, BodyPart::List(values));
        }
        Some(Answer::Bool(_) | Answer::Null) | None => {}
    }
}

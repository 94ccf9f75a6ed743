//! The parts of a question. Their treatment depends on its purpose, so that no declaration can state it.

use super::parts::{BodyPart, Parts, Rank, Role, Visit};
use super::question::{Answer, Ask, Choice, Kind};
use super::text::Text;
use super::words::Purpose;
use std::collections::HashSet;

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

impl Parts for Answer {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        match self {
            Answer::One(text) | Answer::Text(text) => text.visit(role, visit),
            Answer::Many(texts) => texts.visit(role, visit),
            Answer::Decision(_) | Answer::Bool(_) | Answer::Null => {}
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
        Some(Answer::Decision(_) | Answer::Bool(_) | Answer::Text(_) | Answer::Null) | None => HashSet::new(),
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
        Some(Answer::Decision(_) | Answer::Bool(_) | Answer::Null) | None => {}
    }
}

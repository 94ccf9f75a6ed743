//! Sentences of our own, each written once for two readers: a program knows the fields of run.start and of a frame's
//! `detail`, and a person at a terminal knows flags, and sees the details below the sentence.

use super::parts::{Parts, Role, Visit};
use super::text::Text;
use crate::redact::Redactor;
use std::fmt::{self, Display, Formatter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Program,
    Person,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    text: Text,
    /// The words for a person, where they differ.
    for_person: Option<Box<Text>>,
}

impl Sentence {
    pub(crate) fn new(write: impl Fn(Audience) -> String) -> Sentence {
        Sentence::pair(write(Audience::Program), write(Audience::Person))
    }

    /// A sentence that differs as a whole.
    pub(crate) fn pair(text: impl Into<Text>, for_person: impl Into<Text>) -> Sentence {
        let (text, for_person) = (text.into(), for_person.into());
        Sentence { for_person: (for_person != text).then(|| Box::new(for_person)), text }
    }

    /// The sentence as one about a run.start, which a person has not written.
    pub(crate) fn about_start(self) -> Sentence {
        Sentence::pair(
            format!("run.start: {}", self.text.unredacted()),
            self.for_person.map_or(self.text, |text| *text),
        )
    }

    pub(crate) fn into_redacted(mut self, redactor: &Redactor) -> Sentence {
        self.text.redact(redactor);
        self.for_person.iter_mut().for_each(|text| text.redact(redactor));
        self
    }

    /// The sentence with more words at its end.
    pub(crate) fn with(self, more: &str) -> Sentence {
        Sentence::new(|audience| self.to(audience).to_owned() + more)
    }

    /// In the words of frames.
    pub fn text(&self) -> &Text {
        &self.text
    }

    pub fn for_person(&self) -> &Text {
        self.for_person.as_deref().unwrap_or(&self.text)
    }

    pub(crate) fn into_texts(self) -> (Text, Option<Box<Text>>) {
        (self.text, self.for_person)
    }

    /// As a part of another sentence.
    pub(crate) fn to(&self, audience: Audience) -> &str {
        match audience {
            Audience::Program => self.text.unredacted(),
            Audience::Person => self.for_person().unredacted(),
        }
    }
}

impl<T: Into<Text>> From<T> for Sentence {
    fn from(text: T) -> Sentence {
        Sentence { text: text.into(), for_person: None }
    }
}

impl Parts for Sentence {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        self.text.visit(role, visit);
        self.for_person.visit(role, visit);
    }
}

/// A part of a sentence that the two readers know by different words.
pub(crate) trait Term {
    /// `bare`: without backticks.
    fn write(&self, audience: Audience, bare: bool, out: &mut Formatter<'_>) -> fmt::Result;
}

pub(crate) struct Worded<'t, T> {
    pub(crate) term: &'t T,
    pub(crate) audience: Audience,
}

impl<T: Term> Display for Worded<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.term.write(self.audience, f.alternate(), f)
    }
}

impl<T: Term> Term for &T {
    fn write(&self, audience: Audience, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        (**self).write(audience, bare, out)
    }
}

impl Term for Sentence {
    fn write(&self, audience: Audience, _bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.to(audience))
    }
}

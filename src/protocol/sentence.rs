//! Sentences of our own, each written once for two readers: a program knows the fields of run.start and of a frame's
//! `detail`, and a person at a terminal knows flags, and sees the details below the sentence.

use super::fields::{self, Field};
use super::parts::{Parts, Role, Visit};
use super::text::Text;
use crate::redact::Redactor;
use std::fmt::{self, Display, Formatter};

/// Writes a [`Sentence`]: a format string, then the names in it that the two readers know by different words. Such a
/// name is a field of run.start or a detail of a failure, which the compiler checks, or `NAME = TERM` for another
/// [`Term`]. Every other name in the string is a variable, as in `format!`.
///
/// `{cwd}` is `` `cwd` `` for a program and `--cwd` for a person; `{cwd:#}` is the same without the backticks.
macro_rules! sentence {
    ($text:literal $(, $name:ident $(= $term:expr)?)+ $(,)?) => {
        $crate::protocol::sentence::Sentence::new(|reader| {
            $(let $name = $crate::protocol::sentence::Worded {
                term: &$crate::protocol::sentence::term!($name $(= $term)?),
                reader,
            };)+
            format!($text)
        })
    };
}

/// The term with a name in a sentence.
macro_rules! term {
    ($name:ident) => {
        const { $crate::protocol::sentence::Named::find(stringify!($name)) }
    };
    ($name:ident = $term:expr) => {
        $term
    };
}

pub(crate) use {sentence, term};

/// The reader of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Reads frames.
    Program,
    /// Reads lines at a terminal.
    Person,
}

/// A sentence of our own, in the words of each reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    text: Text,
    /// The words for a person, where they differ.
    for_person: Option<Box<Text>>,
}

impl Sentence {
    /// A sentence in the words that `write` finds for each reader.
    pub(crate) fn new(write: impl Fn(Reader) -> String) -> Sentence {
        Sentence::pair(write(Reader::Program), write(Reader::Person))
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

    /// The sentence without secrets.
    pub(crate) fn into_redacted(mut self, redactor: &Redactor) -> Sentence {
        self.text.redact(redactor);
        self.for_person.iter_mut().for_each(|text| text.redact(redactor));
        self
    }

    /// The sentence with more words at its end.
    pub(crate) fn with(self, more: &str) -> Sentence {
        Sentence::new(|reader| self.to(reader).to_owned() + more)
    }

    /// The sentence in the words of frames.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The sentence in the words of a person at a terminal.
    pub fn for_person(&self) -> &Text {
        self.for_person.as_deref().unwrap_or(&self.text)
    }

    /// Its words in frames, and for a person where they differ.
    pub(crate) fn into_texts(self) -> (Text, Option<Box<Text>>) {
        (self.text, self.for_person)
    }

    /// The sentence in the words of one reader, as a part of another sentence.
    pub(crate) fn to(&self, reader: Reader) -> &str {
        match reader {
            Reader::Program => self.text.unredacted(),
            Reader::Person => self.for_person().unredacted(),
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
    /// Writes the words for one reader. `bare`: without backticks.
    fn write(&self, reader: Reader, bare: bool, out: &mut Formatter<'_>) -> fmt::Result;
}

/// A term in the words of one reader.
pub(crate) struct Worded<'t, T> {
    pub(crate) term: &'t T,
    pub(crate) reader: Reader,
}

impl<T: Term> Display for Worded<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.term.write(self.reader, f.alternate(), f)
    }
}

impl<T: Term> Term for &T {
    fn write(&self, reader: Reader, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        (**self).write(reader, bare, out)
    }
}

impl Term for Sentence {
    fn write(&self, reader: Reader, _bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.to(reader))
    }
}

impl Term for Field {
    fn write(&self, reader: Reader, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        match reader {
            Reader::Program if bare => out.write_str(self.name),
            Reader::Program => write!(out, "`{}`", self.name),
            Reader::Person if self.flag.is_empty() => write!(out, "the {}", self.name),
            Reader::Person => write!(out, "--{}", self.flag),
        }
    }
}

/// A term that has its name in the source.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    Field(&'static Field),
    /// A key of a failure's `detail`, and the words for what a person sees of it.
    Detail(&'static str, &'static str),
}

/// The details that sentences refer to, as the object of "see".
const DETAILS: [Named; 3] = [
    Named::Detail("agent_message", "what it says, below"),
    Named::Detail("stderr_tail", "what it wrote, below"),
    Named::Detail("violations", "why, below"),
];

impl Named {
    /// The term with this name. Does not compile if there is none.
    pub(crate) const fn find(name: &str) -> Named {
        let mut at = 0;
        while at < DETAILS.len() {
            if let Named::Detail(key, _) = DETAILS[at]
                && fields::equal(key.as_bytes(), name.as_bytes())
            {
                return DETAILS[at];
            }
            at += 1;
        }
        Named::Field(fields::known(name))
    }
}

impl Term for Named {
    fn write(&self, reader: Reader, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        match (self, reader) {
            (Named::Field(field), _) => field.write(reader, bare, out),
            (Named::Detail(key, _), Reader::Program) => write!(out, "detail.{key}"),
            (Named::Detail(_, words), Reader::Person) => out.write_str(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sentence;
    use crate::protocol::failure::Failure;
    use crate::protocol::fields::field;
    use crate::redact::Redactor;

    fn both(sentence: &Sentence) -> (&str, &str) {
        (sentence.text().unredacted(), sentence.for_person().unredacted())
    }

    #[test]
    fn each_reader_has_its_own_words() {
        let (names, flagged) = ("claude, demo", field!(env));
        for (sentence, program, person) in [
            (
                sentence!("{agent} must be one of: {names}.", agent).about_start(),
                "run.start: `agent` must be one of: claude, demo.",
                "--agent must be one of: claude, demo.",
            ),
            (
                sentence!(
                    "Raise {timeout_s:#} or {flagged:#}: see {stderr_tail}",
                    timeout_s,
                    flagged = flagged,
                    stderr_tail
                ),
                "Raise timeout_s or env: see detail.stderr_tail",
                "Raise --timeout or --env: see what it wrote, below",
            ),
            (sentence!("{prompt} is long", prompt), "`prompt` is long", "the prompt is long"),
            (
                Failure::not_resumable("why.").message,
                "run.start: `session_id` cannot be given: why.",
                "The session cannot be resumed: why.",
            ),
            // A key of a configuration file is no flag.
            (
                "timeout_s in config.json, line 3".into(),
                "timeout_s in config.json, line 3",
                "timeout_s in config.json, line 3",
            ),
        ] {
            assert_eq!(both(&sentence), (program, person));
            let inner = sentence!("A: {sentence} Z", sentence = &sentence).with("!");
            assert_eq!(both(&inner), (&*format!("A: {program} Z!"), &*format!("A: {person} Z!")));
        }
    }

    #[test]
    fn a_secret_is_redacted_for_both_readers() {
        let mut redactor = Redactor::new();
        redactor.add_all(["hunter2-is-secret"]);
        let name = "hunter2-is-secret";
        let sentence = sentence!("{model} {name}", model).into_redacted(&redactor);
        assert_eq!(both(&sentence), ("`model` [redacted]", "--model [redacted]"));
    }
}

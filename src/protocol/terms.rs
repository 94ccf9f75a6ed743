//! The names in sentences that the two readers of a [`Sentence`](super::sentence::Sentence) know by different words:
//! fields of run.start, and the details of a failure.

use super::fields::{self, Field};
use super::sentence::{Audience, Term};
use std::fmt::{self, Formatter};

/// Writes a [`Sentence`](super::sentence::Sentence): a format string, then the names in it that the two readers know by
/// different words. Such a name is a field of run.start or a detail of a failure, which the compiler checks, or
/// `NAME = TERM` for another [`Term`]. Every other name in the string is a variable, as in `format!`.
///
/// `{cwd}` is `` `cwd` `` for a program and `--cwd` for a person; `{cwd:#}` is the same without the backticks.
macro_rules! sentence {
    ($text:literal $(, $name:ident $(= $term:expr)?)+ $(,)?) => {
        $crate::protocol::sentence::Sentence::new(|audience| {
            $(let $name = $crate::protocol::sentence::Worded {
                term: &$crate::protocol::terms::term!($name $(= $term)?),
                audience,
            };)+
            format!($text)
        })
    };
}

macro_rules! term {
    ($name:ident) => {
        const { $crate::protocol::terms::Named::find(stringify!($name)) }
    };
    ($name:ident = $term:expr) => {
        $term
    };
}

pub(crate) use {sentence, term};

impl Term for Field {
    fn write(&self, audience: Audience, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        match audience {
            Audience::Program if bare => out.write_str(self.name),
            Audience::Program => write!(out, "`{}`", self.name),
            Audience::Person if self.flag.is_empty() => write!(out, "the {}", self.name),
            Audience::Person => write!(out, "--{}", self.flag),
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
    /// Does not compile if there is none.
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
    fn write(&self, audience: Audience, bare: bool, out: &mut Formatter<'_>) -> fmt::Result {
        match (self, audience) {
            (Named::Field(field), _) => field.write(audience, bare, out),
            (Named::Detail(key, _), Audience::Program) => write!(out, "detail.{key}"),
            (Named::Detail(_, words), Audience::Person) => out.write_str(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::failure::Failure;
    use crate::protocol::fields::field;
    use crate::protocol::sentence::Sentence;
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
            // A message about a configuration file keeps the names of its keys.
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

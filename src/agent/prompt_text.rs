//! The parts of a user's prompt that an agent may take for more than text: a command at its beginning, and mentioned
//! paths.

use super::text::hash;
use super::{AgentEvent, DriverOutput};
use crate::clean::one_line;
use crate::json::Object;
use crate::protocol::outbound::{AgentCommand, Text};
use crate::protocol::prompt::{called_command, first_word};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The maximum number of commands that are reported, and the maximum characters of their names and descriptions.
const COMMANDS: usize = 256;
const NAME: usize = 128;
const DESCRIPTION: usize = 512;

/// The report of these commands: the name, the description and the hint of each.
pub(super) fn commands<'a>(
    all: impl IntoIterator<Item = (Cow<'a, str>, Option<String>, Option<String>)>,
) -> AgentEvent {
    let text = |text: Option<String>| {
        let line = one_line(&text?).chars().take(DESCRIPTION).collect::<String>();
        (!line.is_empty()).then(|| Text::from(line))
    };
    let command = |(name, description, hint): (Cow<'a, str>, Option<String>, Option<String>)| {
        let is_name = called_command(&format!("/{name}")) == Some(first_word(&name)) && name.chars().count() <= NAME;
        is_name.then(|| AgentCommand {
            name: name.into_owned().into(),
            description: text(description),
            hint: text(hint),
        })
    };
    AgentEvent::Commands(all.into_iter().filter_map(command).take(COMMANDS).collect())
}

#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The hashes of their names. `None`: the agent has not listed them.
    known: Option<BTreeSet<u64>>,
    pub(super) reports: bool,
    /// The hash of a called name that was not compared yet.
    called: Option<u64>,
}

impl Commands {
    pub(super) fn list(&mut self, from: &Object<'_>, field: &str, out: &mut DriverOutput) {
        let name = |command: Object<'_>| Some(hash(first_word(&command.str("name")?)));
        self.known = Some(from.objects(field).filter_map(name).collect());
        if self.reports {
            let command = |command: Object<'_>| {
                let hint = command.object("input").and_then(|input| input.string("hint"));
                Some((command.string("name")?.into(), command.string("description"), hint))
            };
            out.events.push(commands(from.objects(field).filter_map(command)));
        }
        self.compare(out);
    }

    pub(super) fn call(&mut self, prompt: &str, out: &mut DriverOutput) {
        self.called = called_command(prompt).map(hash);
        self.compare(out);
    }

    fn compare(&mut self, out: &mut DriverOutput) {
        let Some(known) = &self.known else { return };
        if self.called.take().is_some_and(|called| !known.contains(&called)) {
            out.warn(no_such_command());
        }
    }
}

pub(super) fn no_such_command() -> Sentence {
    sentence!(
        "This agent does not have the command with which the prompt begins, so {raw_prompt} has no effect on it",
        raw_prompt
    )
}

/// A prompt that calls no command, for agents that take a text for one if it begins with a slash.
pub(super) fn without_command(prompt: &str) -> Cow<'_, str> {
    if prompt.trim_start().starts_with('/') { format!("The task:\n{prompt}").into() } else { prompt.into() }
}

/// The mentions `@path` in a prompt: the position of each, and its path without quotes. A path ends before the next mention,
/// so that all of them together are no longer than the prompt.
pub(super) fn mentions(prompt: &str) -> impl Iterator<Item = (usize, &str)> {
    // The characters after which Claude Code finds a mention.
    let is_boundary = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '。' | '、' | '？' | '！');
    prompt.match_indices('@').filter(move |(at, _)| prompt[..*at].chars().next_back().is_none_or(is_boundary)).map(
        move |(at, _)| {
            let rest = &prompt[at + 1..];
            let path = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').map(|(path, _)| path),
                None => rest.split(is_boundary).next(),
            };
            (at, path.unwrap_or_default())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_mention_follows_a_boundary() {
        let found = |prompt| mentions(prompt).collect::<Vec<_>>();
        assert_eq!(found("See @a/b and @\"c d\"."), [(4, "a/b"), (13, "c d")]);
        assert_eq!(found("me@x.y 看。@z"), [(13, "z")]);
        assert_eq!(found("@a。@b @\"c\nd\" @\"e"), [(0, "a"), (5, "b"), (8, "c\nd"), (15, "")]);
    }
}

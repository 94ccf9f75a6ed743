//! Question markers: `<!--QUESTION:{"questions":[…]}-->` in what the agent says is a question in plain text. It is
//! cut out, outside code fences and across pieces; one that is not valid stays text.

use crate::agent::json::{Object, Raw};
use crate::agent::{NO_USER_PROMPT, Reply};
use crate::protocol::limited::Asks;
use crate::protocol::question::{Ask, Choice, Choices, Kind};
use crate::protocol::words::Purpose;

const BEGIN: &str = "<!--QUESTION:";
const END: &str = "-->";
/// A marker that is longer, in bytes, is text.
const LONGEST: usize = 64 << 10;

/// Cuts the markers out of one message that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// What may be the beginning of a marker, or the whole of one that has not ended.
    held: String,
    /// How many bytes at its beginning were let go.
    gone: usize,
    /// The current line so far, to see code fences.
    line: String,
    fence: Option<(char, usize)>,
}

impl Cutter {
    /// The text of a piece without its markers; their questions go to `asks`. `done` ends the message.
    pub(crate) fn push(&mut self, piece: &str, done: bool, asks: &mut Asks) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            if self.held().is_empty() && c != '<' {
                self.let_go(c, &mut out);
                continue;
            }
            self.held.push(c);
            self.settle(&mut out, asks);
        }
        if done {
            out.push_str(self.held());
            *self = Cutter::default();
        }
        out
    }

    /// What is held, without what of it was let go already.
    fn held(&self) -> &str {
        &self.held[self.gone..]
    }

    /// Lets go of what is held once it is known to be text, or a whole marker.
    fn settle(&mut self, out: &mut String, asks: &mut Asks) {
        while let Some(first) = self.held().chars().next() {
            let held = self.held();
            let whole = held.len() >= BEGIN.len();
            let may_be = self.fence.is_none() && if whole { held.starts_with(BEGIN) } else { BEGIN.starts_with(held) };
            if may_be && (!whole || (!held.ends_with(END) && held.len() <= LONGEST)) {
                return;
            }
            if may_be && let Some(found) = held.strip_suffix(END).and_then(|text| questions(&text[BEGIN.len()..])) {
                asks.extend(found);
                self.gone = self.held.len();
            } else {
                // Text: its first character goes, and what follows may still be the beginning of a marker.
                self.gone += first.len_utf8();
                self.let_go(first, out);
            }
        }
        self.held.clear();
        self.gone = 0;
    }

    fn let_go(&mut self, c: char, out: &mut String) {
        self.seen(c);
        out.push(c);
        // Not each time: it costs as much as is held.
        if self.gone > LONGEST {
            self.held.drain(..self.gone);
            self.gone = 0;
        }
    }

    fn seen(&mut self, c: char) {
        if c != '\n' {
            if self.line.len() < 80 {
                self.line.push(c);
            }
            return;
        }
        let line = std::mem::take(&mut self.line);
        let text = line.trim_start_matches(' ');
        let Some(sign @ ('`' | '~')) = text.chars().next().filter(|_| line.len() - text.len() <= 3) else { return };
        let length = text.chars().take_while(|c| *c == sign).count();
        self.fence = match self.fence {
            None if length >= 3 => Some((sign, length)),
            Some((open, least)) if open == sign && length >= least && text.trim_end().len() == length => None,
            same => same,
        };
    }
}

/// A whole text without its markers.
pub(crate) fn without(text: String) -> String {
    if !text.contains(BEGIN) {
        return text;
    }
    Cutter::default().push(&text, true, &mut Asks::default())
}

/// The questions of a marker. `None`: it is not valid.
fn questions(json: &str) -> Option<Vec<Ask>> {
    let object = Object::parse(json.trim())?;
    let all = object.array("questions");
    let asks: Vec<Ask> = all.map(|raw| question(&raw.object()?)).collect::<Option<_>>()?;
    (!asks.is_empty()).then_some(asks)
}

fn question(question: &Object<'_>) -> Option<Ask> {
    let text = question.string("question").filter(|text| !text.trim().is_empty())?;
    let choice = |raw: Raw<'_>| {
        let option = raw.object()?;
        let label = option.string("label")?;
        Some(Choice { value: label.clone(), label, description: option.string("description") })
    };
    let options: Vec<Choice> = question.array("options").map(choice).collect::<Option<_>>()?;
    let multiple = question.bool("multiple") == Some(true);
    let kind =
        Choices::new(options).map_or(Kind::Text, |choices| Kind::Select { choices, multiple, allow_other: true });
    Some(Ask::new(Purpose::Clarification, kind, &question.string("header").unwrap_or_default(), text))
}

/// The answers as the prompt of a further turn.
pub(crate) fn prompt(texts: &[String], replies: &[Reply]) -> String {
    if replies.iter().all(|reply| *reply == Reply::NoUser) {
        return NO_USER_PROMPT.into();
    }
    let answer = |reply: &Reply| match reply {
        Reply::Declined(_) | Reply::Denied(_) => "(the user declined to answer)".into(),
        Reply::Answer(_) | Reply::Allowed | Reply::NoUser => reply.spoken(),
    };
    match (texts, replies) {
        ([_], [reply @ Reply::Answer(_)]) => answer(reply),
        _ => texts.iter().zip(replies).map(|(text, reply)| format!("{text}\n{}\n", answer(reply))).collect::<String>(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cutter, without};
    use crate::protocol::limited::Asks;

    const MARKER: &str = "<!--QUESTION:{\"questions\":[{\"question\":\"Which?\",\"options\":[{\"label\":\"A\"}]}]}-->";

    #[test]
    fn only_valid_markers_outside_fences_are_cut() {
        for (text, left) in [
            (format!("a {MARKER} b"), "a  b".to_owned()),
            (format!("a\n```\n{MARKER}\n```\n{MARKER}c"), format!("a\n```\n{MARKER}\n```\nc")),
            ("<!--QUESTION:{}--> x".into(), "<!--QUESTION:{}--> x".into()),
            ("<!--QUESTION:{\"questions\":[]}-->".into(), "<!--QUESTION:{\"questions\":[]}-->".into()),
            ("<<!-- other --><!--QUESTION".into(), "<<!-- other --><!--QUESTION".into()),
            (format!("~~~~\n~~~\n{MARKER}\n~~~~~\n{MARKER}"), format!("~~~~\n~~~\n{MARKER}\n~~~~~\n")),
            (format!("<!--QUESTION:<!--QUESTION:{MARKER}"), "<!--QUESTION:<!--QUESTION:".into()),
        ] {
            assert_eq!(without(text), left);
        }
    }

    #[test]
    fn every_split_gives_the_same() {
        let text = format!("x{MARKER}y\n```\n{MARKER}\n```");
        let whole = without(text.clone());
        for cut in 0..=text.len() {
            let (mut cutter, mut asks) = (Cutter::default(), Asks::default());
            let joined = cutter.push(&text[..cut], false, &mut asks) + &cutter.push(&text[cut..], true, &mut asks);
            assert_eq!((joined, asks.len()), (whole.clone(), 1));
        }
    }
}

//! Markers in the agent's text, outside code fences, also split over pieces, such as
//! `<!--QUESTION:{"questions":[…]}-->`. Valid markers are removed from the text; invalid ones stay.

use crate::agent::{NO_USER_PROMPT, Reply, ask_user};
use crate::json::{Object, Raw};
use crate::protocol::question::{Ask, Asks};
use crate::protocol::text::Text;
use std::borrow::Cow;

const BEGIN: &str = "<!--QUESTION:";
const END: &str = "-->";
/// The maximum size of a question marker, in bytes. A longer one stays text.
const LONGEST: usize = 64 << 10;

/// Removes the markers of one kind from a message that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Cutter {
    /// The beginning of a marker.
    begin: &'static str,
    /// The maximum size of a marker, in bytes.
    longest: usize,
    /// Text that may begin a marker.
    held: String,
    /// The number of bytes at the beginning of `held` that were already returned.
    gone: usize,
    fences: Fences,
}

impl Cutter {
    pub(crate) fn new(begin: &'static str, longest: usize) -> Cutter {
        Cutter { begin, longest, held: String::new(), gone: 0, fences: Fences::default() }
    }

    pub(super) fn of_questions() -> Cutter {
        Cutter::new(BEGIN, LONGEST)
    }

    /// Takes a piece and returns the text without markers. `None`: the piece stays the same. `done`: the piece ends the
    /// message. `take` gets the content of each marker; a marker for which it returns false stays text.
    pub(crate) fn push(&mut self, piece: &str, done: bool, take: &mut dyn FnMut(&str) -> bool) -> Option<String> {
        if self.held.is_empty() && !piece.contains('<') {
            self.fences.see(piece);
            return None;
        }
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, after) = rest.split_at(self.step(rest));
            rest = after;
            if self.held().is_empty() && !taken.starts_with('<') {
                self.fences.see(taken);
                out.push_str(taken);
            } else {
                self.held.push_str(taken);
                self.release_held(&mut out, take);
            }
        }
        if done {
            out.push_str(self.held());
        }
        Some(out)
    }

    /// Removes the question markers from a piece, and adds their questions to `asks`.
    pub(super) fn questions<'a>(&mut self, text: &'a Text, done: bool, asks: &mut Asks) -> Cow<'a, Text> {
        let mut take = |json: &str| questions(json).map(|found| asks.extend(found)).is_some();
        self.push(text.unredacted(), done, &mut take).map_or(Cow::Borrowed(text), |rest| Cow::Owned(rest.into()))
    }

    /// The size of the held text, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// The length of the next part to examine: up to a possible beginning of a marker, one character of the beginning,
    /// or up to a possible end.
    fn step(&self, text: &str) -> usize {
        let held = self.held().len();
        if held == 0 {
            return text.find('<').map_or(text.len(), |at| at.max(1));
        }
        if held < self.begin.len() {
            return text.chars().next().map_or(0, char::len_utf8);
        }
        let room = text.ceil_char_boundary((self.longest + 1).saturating_sub(held).clamp(1, text.len()));
        text[..room].find('>').map_or(room, |at| at + 1)
    }

    /// The held text that was not yet returned.
    fn held(&self) -> &str {
        &self.held[self.gone..]
    }

    /// Moves held text to `out` once it cannot be a marker, and passes the content of a complete marker to `take`.
    fn release_held(&mut self, out: &mut String, take: &mut dyn FnMut(&str) -> bool) {
        let (begin, longest) = (self.begin, self.longest);
        // Each attempt parses everything up to the end, so only the first and the last of several beginnings are tried.
        let last = self.held().ends_with(END).then(|| self.held.rfind(begin)).flatten();
        let mut first = true;
        while !self.held().is_empty() {
            let held = &self.held[self.gone..];
            let whole = held.len() >= begin.len();
            let may_be = !self.fences.open() && if whole { held.starts_with(begin) } else { begin.starts_with(held) };
            if may_be && (!whole || (!held.ends_with(END) && held.len() <= longest)) {
                // Done only occasionally, because it moves all of the held text.
                if self.gone > longest {
                    self.held.drain(..self.gone);
                    self.gone = 0;
                }
                return;
            }
            let tried = may_be && (std::mem::take(&mut first) || last == Some(self.gone));
            let marker = held.strip_suffix(END).filter(|_| tried);
            if marker.is_some_and(|text| take(&text[begin.len()..])) {
                self.gone = self.held.len();
            } else {
                let text = held.get(1..).and_then(|rest| rest.find('<')).map_or(held, |at| &held[..=at]);
                self.fences.see(text);
                out.push_str(text);
                self.gone += text.len();
            }
        }
        self.held.clear();
        self.gone = 0;
    }
}

/// Tracks the code fences of a text that arrives in pieces.
#[derive(Debug, Default)]
struct Fences {
    /// The beginning of the current line.
    line: String,
    /// The character and the length of the open fence.
    fence: Option<(char, usize)>,
}

impl Fences {
    /// The number of bytes at the beginning of a line that can decide about a fence.
    const LINE_BYTES: usize = 80;

    fn open(&self) -> bool {
        self.fence.is_some()
    }

    fn see(&mut self, text: &str) {
        let mut lines = text.split('\n');
        self.add(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line();
            self.add(line);
        }
    }

    fn add(&mut self, text: &str) {
        let room = Self::LINE_BYTES.saturating_sub(self.line.len()).min(text.len());
        self.line.push_str(&text[..text.ceil_char_boundary(room)]);
    }

    fn end_line(&mut self) {
        let text = self.line.trim_start_matches(' ');
        let sign = text.chars().next().filter(|_| self.line.len() - text.len() <= 3);
        if let Some(sign @ ('`' | '~')) = sign {
            let length = text.chars().take_while(|c| *c == sign).count();
            self.fence = match self.fence {
                None if length >= 3 => Some((sign, length)),
                Some((open, least)) if open == sign && length >= least && text.trim_end().len() == length => None,
                same => same,
            };
        }
        self.line.clear();
    }
}

/// Removes the markers from a whole text, and adds their questions to `asks`.
pub(super) fn cut<'a>(text: &'a Text, asks: &mut Asks) -> Cow<'a, Text> {
    if text.contains(BEGIN) { Cutter::of_questions().questions(text, true, asks) } else { Cow::Borrowed(text) }
}

/// Searches for the completion marker in a message that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// The end of the text so far, in which the marker may begin.
    tail: String,
    pub(super) found: bool,
}

impl Finder {
    /// Searches the next piece of the message.
    pub(super) fn push(&mut self, marker: &str, piece: &str) {
        if self.found {
            return;
        }
        let keep = marker.len().saturating_sub(1);
        // Only the beginning of a piece can complete a marker that begins in the tail.
        let head = &piece[..piece.floor_char_boundary(keep)];
        self.tail.push_str(head);
        self.found = piece.contains(marker) || self.tail.contains(marker);
        if piece.len() > head.len() {
            self.tail.clear();
            self.tail.push_str(&piece[piece.ceil_char_boundary(piece.len().saturating_sub(keep))..]);
        } else {
            let cut = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(keep));
            self.tail.drain(..cut);
        }
    }
}

/// Parses the questions of a marker. `None`: the marker is invalid.
fn questions(json: &str) -> Option<Vec<Ask>> {
    let object = Object::parse(json.trim())?;
    let all = object.array("questions");
    let asks: Vec<Ask> = all.map(|raw| question(&raw.object()?)).collect::<Option<_>>()?;
    (!asks.is_empty()).then_some(asks)
}

fn question(question: &Object<'_>) -> Option<Ask> {
    let is_labelled = |raw: Raw<'_>| raw.object().is_some_and(|option| option.string("label").is_some());
    question.array("options").all(is_labelled).then(|| ask_user::ask(question).ok()).flatten()
}

/// Formats the answers as the prompt of a further turn. `is_headless`: the answers are defaults.
pub(super) fn prompt(texts: &[Text], replies: &[Reply], is_headless: bool) -> String {
    if replies.iter().all(|reply| *reply == Reply::NoUser) {
        return NO_USER_PROMPT.into();
    }
    if is_headless {
        return format!(
            "{NO_USER_PROMPT} These answers are the defaults of your questions.\n\n{}",
            listed(texts, replies)
        );
    }
    match (texts, replies) {
        ([_], [reply @ Reply::Answer(_)]) => spoken(reply),
        _ => listed(texts, replies),
    }
}

fn listed(texts: &[Text], replies: &[Reply]) -> String {
    let one = |(text, reply): (&Text, &Reply)| format!("{}\n{}\n", text.unredacted(), spoken(reply));
    texts.iter().zip(replies).map(one).collect()
}

fn spoken(reply: &Reply) -> String {
    match reply {
        Reply::Declined(_) | Reply::Denied(_) => "(the user declined to answer)".into(),
        Reply::Answer(_) | Reply::Allowed | Reply::NoUser => reply.spoken(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asks, Cutter, Finder, NO_USER_PROMPT, Reply, Text, cut, prompt};
    use crate::protocol::question::Answer;

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
            assert_eq!(*cut(&text.into(), &mut Asks::default()), left.as_str());
        }
    }

    #[test]
    fn a_marker_with_a_question_that_nobody_could_answer_stays() {
        for question in [
            r#""kind":"rank""#,
            r#""kind":"select""#,
            r#""kind":"secret","default":"x""#,
            r#""kind":"text","default":"x","validation":{"min_length":2}"#,
            r#""validation":{"min":2,"max":1}"#,
            r#""options":[{"label":"A"},{"value":"B"}]"#,
        ] {
            let text = format!("<!--QUESTION:{{\"questions\":[{{\"question\":\"Q\",{question}}}]}}-->");
            let mut asks = Asks::default();
            assert_eq!(*cut(&text.as_str().into(), &mut asks), text.as_str());
            assert!(asks.is_empty(), "{text}");
        }
    }

    #[test]
    fn in_a_headless_run_the_agent_hears_that_no_user_is_present_and_the_defaults() {
        let (texts, default) = (["A?".into(), "B?".into()], Reply::Answer(Answer::Text("spec".into())));
        let told = |replies: &[Reply], is_headless| prompt(&texts[..replies.len()], replies, is_headless);
        assert_eq!(told(&[Reply::NoUser, Reply::NoUser], true), NO_USER_PROMPT);
        for replies in [vec![default.clone()], vec![default.clone(), Reply::NoUser]] {
            let told = told(&replies, true);
            assert!(told.starts_with(NO_USER_PROMPT) && told.contains("A?\nspec\n"), "{told}");
        }
        assert_eq!(told(&[default], false), "spec");
    }

    #[test]
    fn every_split_gives_the_same() {
        let text = format!("x{MARKER}y\n```\n{MARKER}\n```");
        let whole = Text::from(text.as_str());
        let whole = cut(&whole, &mut Asks::default());
        for cut in 0..=text.len() {
            let (mut cutter, mut asks) = (Cutter::of_questions(), Asks::default());
            let (first, second) = (text[..cut].into(), text[cut..].into());
            let (first, second) =
                (cutter.questions(&first, false, &mut asks), cutter.questions(&second, true, &mut asks));
            let joined = [first.unredacted(), second.unredacted()].concat();
            assert_eq!((joined.as_str(), asks.len()), (whole.unredacted(), 1));
        }
    }

    #[test]
    fn a_marker_is_found_over_any_split() {
        const MARKER: &str = "<promise>COMPLETE</promise>";
        let text = "before <promise>COMPLETE</promise> after";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut finder = Finder::default();
                finder.push(MARKER, &text[..first]);
                finder.push(MARKER, &text[first..second]);
                finder.push(MARKER, &text[second..]);
                assert!(finder.found, "{first} {second}");
            }
        }
    }

    #[test]
    fn a_marker_is_found_behind_beginnings_that_never_end() {
        for before in
            ["<!--QUESTION:".repeat(3), "<!--QUESTION:".repeat(20_000), format!("<!--QUESTION:{}", "x".repeat(70_000))]
        {
            let text = format!("{before}{MARKER} after").into();
            assert_eq!(*cut(&text, &mut Asks::default()), format!("{before} after").as_str());
        }
    }
}

//! Markers in the agent's text, also split over pieces. In code they mean nothing. That of completion means nothing in a
//! line of the prompt that the agent repeats either, and stays in the text. Those of questions, such as
//! `<!--QUESTION:{"questions":[…]}-->`, are removed if they are valid.

use crate::agent::{NO_USER_PROMPT, Reply, ask_user};
use crate::json::{Object, Raw};
use crate::markers::{Cutter, Fence};
use crate::protocol::question::{Ask, Asks};
use crate::protocol::text::Text;
use std::borrow::Cow;

/// The maximum length of a line that is examined as a whole, in bytes.
const LINE_BYTES: usize = 8 << 10;
/// The maximum number of lines with the marker that prompts may have. Further ones count as the agent's own.
const TOLD: usize = 32;

#[derive(Debug, Default)]
pub(super) struct CompletionMarker {
    marker: String,
    /// The lines of the prompts that contain the marker, each with the line before it.
    told: Vec<(String, String)>,
}

impl CompletionMarker {
    pub(super) fn new(marker: &str) -> CompletionMarker {
        CompletionMarker { marker: marker.to_owned(), told: Vec::new() }
    }

    pub(super) fn note_text(&mut self, prompt: &Text) {
        self.note_prompt(prompt.unredacted());
    }

    /// Notes the lines of a prompt that the agent may repeat.
    pub(super) fn note_prompt(&mut self, prompt: &str) {
        if !prompt.contains(&self.marker) {
            return;
        }
        let mut before = "";
        for line in prompt.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.contains(&self.marker) && self.told.len() < TOLD {
                self.told.push((before.to_owned(), line.to_owned()));
            }
            before = line;
        }
    }

    pub(super) fn is_in(&self, text: &Text) -> bool {
        let (mut finder, text) = (Finder::default(), text.unredacted());
        if text.contains(&self.marker) {
            finder.push(self, text);
        }
        finder.finish(self)
    }

    fn is_said(&self, line: &str, before: &str) -> bool {
        if !line.contains(&self.marker) {
            return false;
        }
        let mut rest = Cow::Borrowed(line);
        for (told_before, told) in &self.told {
            // A marker alone in its line is the agent's own, unless the line before it is repeated too.
            if *told != self.marker || (!told_before.is_empty() && before.ends_with(told_before.as_str())) {
                rest = Cow::Owned(rest.replace(told.as_str(), ""));
            }
        }
        without_code(&rest).contains(&self.marker)
    }
}

/// Searches for the completion marker in a message that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Finder {
    fence: Fence,
    /// The current line, or the end of a long one.
    line: String,
    /// The last line that was not blank, if a prompt has the marker.
    before: String,
    found: bool,
}

impl Finder {
    pub(super) fn push(&mut self, marker: &CompletionMarker, piece: &str) {
        if self.found {
            return;
        }
        let is_one_line = !marker.marker.contains('\n');
        let mut lines = piece.split(|c| c == '\n' && is_one_line);
        self.add(marker, lines.next().unwrap_or_default());
        for line in lines {
            self.end_line(marker);
            self.add(marker, line);
        }
    }

    pub(super) fn finish(&mut self, marker: &CompletionMarker) -> bool {
        self.end_line(marker);
        self.found
    }

    fn add(&mut self, marker: &CompletionMarker, mut text: &str) {
        let limit = LINE_BYTES.max(2 * marker.marker.len());
        while self.line.len() + text.len() > limit {
            let (first, rest) = text.split_at(text.floor_char_boundary(limit - self.line.len()));
            self.line.push_str(first);
            self.found |= !self.fence.is_open() && marker.is_said(&self.line, &self.before);
            // The marker may begin at the end of what is dropped.
            let kept = marker.marker.len().saturating_sub(1);
            self.line.drain(..self.line.ceil_char_boundary(self.line.len().saturating_sub(kept)));
            text = rest;
        }
        self.line.push_str(text);
    }

    fn end_line(&mut self, marker: &CompletionMarker) {
        let was_open = self.fence.is_open();
        self.fence.see_line(&self.line);
        if !was_open && !self.fence.is_open() {
            self.found |= marker.is_said(&self.line, &self.before);
        }
        if !marker.told.is_empty() && !self.line.trim().is_empty() {
            self.before.clear();
            self.before.push_str(self.line.trim());
        }
        self.line.clear();
    }
}

/// A line without its code spans: a run of backticks, and the text up to the next run of the same length.
fn without_code(line: &str) -> Cow<'_, str> {
    if !line.contains('`') {
        return Cow::Borrowed(line);
    }
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        let length = run(from);
        let after = &from[length..];
        out.push_str(before);
        match span_end(after, length) {
            Some(end) => rest = &after[end..],
            None => {
                out.push_str(&from[..length]);
                rest = after;
            }
        }
    }
    Cow::Owned(out + rest)
}

fn span_end(text: &str, length: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find('`') {
        let begin = from + at;
        let run = text[begin..].len() - text[begin..].trim_start_matches('`').len();
        from = begin + run;
        if run == length {
            return Some(from);
        }
    }
    None
}

const BEGIN: &str = "<!--QUESTION:";
/// The maximum size of a question marker, in bytes. A longer one stays text.
const LONGEST: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct QuestionCutter(Cutter);

impl Default for QuestionCutter {
    fn default() -> QuestionCutter {
        QuestionCutter(Cutter::new(BEGIN, LONGEST))
    }
}

impl QuestionCutter {
    pub(super) fn push<'a>(&mut self, text: &'a Text, done: bool, asks: &mut Asks) -> Cow<'a, Text> {
        let mut take = |json: &str| questions(json).map(|found| asks.extend(found)).is_some();
        self.0.push(text.unredacted(), done, &mut take).map_or(Cow::Borrowed(text), |rest| Cow::Owned(rest.into()))
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

pub(super) fn cut<'a>(text: &'a Text, asks: &mut Asks) -> Cow<'a, Text> {
    if text.contains(BEGIN) { QuestionCutter::default().push(text, true, asks) } else { Cow::Borrowed(text) }
}

/// `None`: the marker is invalid.
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
        Reply::Answer(_) | Reply::Allowed | Reply::AllowedWith(_) | Reply::NoUser => reply.spoken(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asks, CompletionMarker, Finder, LINE_BYTES, NO_USER_PROMPT, QuestionCutter, Reply, Text, cut, prompt};
    use crate::protocol::question::Answer;

    const MARKER: &str = "<promise>COMPLETE</promise>";

    #[track_caller]
    fn check(prompt: &str, text: &str, wanted: bool) {
        let mut marker = CompletionMarker::new(MARKER);
        marker.note_prompt(prompt);
        assert_eq!(marker.is_in(&text.into()), wanted, "{text}");
        for first in (0..=text.len().min(200)).filter(|at| text.is_char_boundary(*at)) {
            let mut finder = Finder::default();
            finder.push(&marker, &text[..first]);
            finder.push(&marker, &text[first..]);
            assert_eq!(finder.finish(&marker), wanted, "{first} {text}");
        }
    }

    #[test]
    fn a_marker_in_code_means_nothing() {
        check("", &format!("before {MARKER} after"), true);
        check("", &format!("```\n{MARKER}\n```\n"), false);
        check("", &format!("```\n{MARKER}\n```\nDone: {MARKER}"), true);
        check("", &format!("I say `{MARKER}` at the end."), false);
        check("", &format!("I say `` ` {MARKER} `` at the end."), false);
        check("", &format!("A lone ` and {MARKER}"), true);
        check("", &format!("`a` {MARKER} `b`"), true);
    }

    #[test]
    fn a_marker_in_a_repeated_prompt_means_nothing() {
        let prompt = format!("Fix it.\nWrite {MARKER} when it works.\n\nOr this:\n{MARKER}\n");
        check(&prompt, &prompt, false);
        check(&prompt, &format!("> {}", prompt.replace('\n', "\n> ")), false);
        check(&prompt, &format!("{prompt}\nIt works.\n{MARKER}\n"), true);
        check(&prompt, MARKER, true);
        check(&prompt, &format!("Write {MARKER} when it works. {MARKER}"), true);
        check(MARKER, MARKER, true);
    }

    #[test]
    fn a_marker_in_a_long_line_is_found() {
        for before in [LINE_BYTES - 5, LINE_BYTES, 3 * LINE_BYTES - 1] {
            check("", &format!("{}{MARKER}{}", "é".repeat(before / 2), "x".repeat(LINE_BYTES)), true);
        }
    }

    #[test]
    fn a_marker_may_have_several_lines() {
        let marker = CompletionMarker::new("A\nB");
        assert!(marker.is_in(&"x A\nB y".into()) && !marker.is_in(&"A B".into()));
    }

    const QUESTION: &str =
        "<!--QUESTION:{\"questions\":[{\"question\":\"Which?\",\"options\":[{\"label\":\"A\"}]}]}-->";

    #[test]
    fn only_valid_markers_outside_fences_are_cut() {
        for (text, left) in [
            (format!("a {QUESTION} b"), "a  b".to_owned()),
            (format!("a\n```\n{QUESTION}\n```\n{QUESTION}c"), format!("a\n```\n{QUESTION}\n```\nc")),
            ("<!--QUESTION:{}--> x".into(), "<!--QUESTION:{}--> x".into()),
            ("<!--QUESTION:{\"questions\":[]}-->".into(), "<!--QUESTION:{\"questions\":[]}-->".into()),
            ("<<!-- other --><!--QUESTION".into(), "<<!-- other --><!--QUESTION".into()),
            (format!("~~~~\n~~~\n{QUESTION}\n~~~~~\n{QUESTION}"), format!("~~~~\n~~~\n{QUESTION}\n~~~~~\n")),
            (format!("<!--QUESTION:<!--QUESTION:{QUESTION}"), "<!--QUESTION:<!--QUESTION:".into()),
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
        let text = format!("x{QUESTION}y\n```\n{QUESTION}\n```");
        let whole = Text::from(text.as_str());
        let whole = cut(&whole, &mut Asks::default());
        for cut in 0..=text.len() {
            let (mut cutter, mut asks) = (QuestionCutter::default(), Asks::default());
            let (first, second) = (text[..cut].into(), text[cut..].into());
            let (first, second) = (cutter.push(&first, false, &mut asks), cutter.push(&second, true, &mut asks));
            let joined = [first.unredacted(), second.unredacted()].concat();
            assert_eq!((joined.as_str(), asks.len()), (whole.unredacted(), 1));
        }
    }

    #[test]
    fn a_marker_is_found_behind_beginnings_that_never_end() {
        for before in
            ["<!--QUESTION:".repeat(3), "<!--QUESTION:".repeat(20_000), format!("<!--QUESTION:{}", "x".repeat(70_000))]
        {
            let text = format!("{before}{QUESTION} after").into();
            assert_eq!(*cut(&text, &mut Asks::default()), format!("{before} after").as_str());
        }
    }
}

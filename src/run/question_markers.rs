//! Markers in the agent's text, outside code fences, also split over pieces, such as
//! `<!--QUESTION:{"questions":[…]}-->`. Valid markers are removed from the text; invalid ones stay.

use crate::agent::{NO_USER_PROMPT, Reply, ask_user};
use crate::json::{Object, Raw};
use crate::markers::Cutter;
use crate::protocol::question::{Ask, Asks};
use crate::protocol::text::Text;
use std::borrow::Cow;

const BEGIN: &str = "<!--QUESTION:";
/// The maximum size of a question marker, in bytes. A longer one stays text.
const LONGEST: usize = 64 << 10;

/// Removes the question markers from a message that arrives in pieces.
#[derive(Debug)]
pub(super) struct QuestionCutter(Cutter);

impl QuestionCutter {
    pub(super) fn new() -> QuestionCutter {
        QuestionCutter(Cutter::new(BEGIN, LONGEST))
    }

    /// Removes the markers from a piece, and adds their questions to `asks`.
    pub(super) fn push<'a>(&mut self, text: &'a Text, done: bool, asks: &mut Asks) -> Cow<'a, Text> {
        let mut take = |json: &str| questions(json).map(|found| asks.extend(found)).is_some();
        self.0.push(text.unredacted(), done, &mut take).map_or(Cow::Borrowed(text), |rest| Cow::Owned(rest.into()))
    }

    /// The size of the held text, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// Removes the markers from a whole text, and adds their questions to `asks`.
pub(super) fn cut<'a>(text: &'a Text, asks: &mut Asks) -> Cow<'a, Text> {
    if text.contains(BEGIN) { QuestionCutter::new().push(text, true, asks) } else { Cow::Borrowed(text) }
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
        Reply::Answer(_) | Reply::Allowed | Reply::AllowedWith(_) | Reply::NoUser => reply.spoken(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asks, NO_USER_PROMPT, QuestionCutter, Reply, Text, cut, prompt};
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
            let (mut cutter, mut asks) = (QuestionCutter::new(), Asks::default());
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
            let text = format!("{before}{MARKER} after").into();
            assert_eq!(*cut(&text, &mut Asks::default()), format!("{before} after").as_str());
        }
    }
}

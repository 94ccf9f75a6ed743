//! A further prompt: the payload of a run.input that answers no question.

use super::form::{Form, TextRule, WordSet, object_forms};
use super::ids::CheckpointId;
use super::input::answer_keys;
use super::limits::{IMAGES, PROMPT_BYTES};
use super::read::{TOO_LONG, boolean, images, is_null, prompt};
use super::text::Text;
use crate::json::{Fields, string};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherPrompt {
    /// Never empty.
    pub text: Text,
    /// Whether the agent gets the prompt while it works, if it can take one.
    pub now: bool,
    pub images: Vec<String>,
    /// Whether the agent may take it as a command. `None`: as run.start says.
    pub raw: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptInput {
    Prompt(FurtherPrompt),
    End,
    /// `rewind`: the files become what they were at this checkpoint. `None`: no checkpoint can have that id.
    Rewind(Option<CheckpointId>),
    /// A payload that is also an answer, or neither.
    Mixed,
    /// A prompt that cannot be taken: the rest of a sentence that says why.
    Wrong(Cow<'static, str>),
}

object_forms! {
    pub(super) PROMPT = "Prompt" {
        /// The prompt.
        prompt: Form::Shaped(&TextRule { most: Some(PROMPT_BYTES), ..TextRule::FILLED }), false;
        /// `now`: the agent gets it while it works, if it can. `next`, the default: after the turn.
        when: Form::Word(&WordSet { name: "", words: &["next", "now"], grows: false }), true;
        /// The paths of images that belong to the prompt.
        images: Form::AtMost(IMAGES, &Form::FILLED), true;
        /// Whether the agent may take the prompt as a command. The default is that of run.start.
        raw_prompt: Form::Bool, true;
    }

    pub(super) END = "End" {
        /// No further prompt comes.
        end: Form::True, false;
    }

    pub(super) REWIND = "Rewind" {
        /// The checkpoint.
        rewind: Form::Shaped(&TextRule::matching(CheckpointId::PATTERN)), false;
    }
}

pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    PROMPT.keys().chain(END.keys()).chain(REWIND.keys())
}

impl PromptInput {
    /// `None`: it answers a question. Error: a key is repeated.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<PromptInput>, Repeated> {
        if fields.repeats_one_of(keys()) || fields.repeats_one_of(answer_keys()) {
            return Err(Repeated);
        }
        let has = |key: &str| fields.get(key).is_some();
        let [prompt, end, rewind] = ["prompt", "end", "rewind"].map(|key| fields.get(key));
        match [prompt, end, rewind].into_iter().flatten().count() {
            0 => return Ok(None),
            1 if !answer_keys().any(has) => {}
            _ => return Ok(Some(PromptInput::Mixed)),
        }
        if let Some(raw) = rewind {
            return Ok(Some(PromptInput::Rewind(string(raw).as_deref().and_then(CheckpointId::read))));
        }
        Ok(Some(match prompt {
            None if end.is_some_and(|raw| raw.get() == "true") => PromptInput::End,
            None => PromptInput::Mixed,
            Some(raw) => prompt_of(raw, fields).map_or_else(|why| PromptInput::Wrong(why.into()), PromptInput::Prompt),
        }))
    }
}

/// Error: the rest of a sentence that says why the prompt cannot be taken.
fn prompt_of(raw: &RawValue, fields: &Fields<'_>) -> Result<FurtherPrompt, &'static str> {
    let text = prompt(raw).map_err(|why| match why {
        Some(TOO_LONG) => "`prompt` must be at most 8 MiB long",
        Some(_) | None => "`prompt` must be a non-empty string",
    })?;
    let given = |name: &str| fields.get(name).filter(|raw| !is_null(raw));
    let now = match given("when").map(|raw| string(raw).unwrap_or_default()).as_deref() {
        None | Some("next") => false,
        Some("now") => true,
        Some(_) => return Err("`when` must be \"next\" or \"now\""),
    };
    let images = given("images").map_or(Ok(Vec::new()), images);
    let images = images.map_err(|_| "`images` must be a list of at most 20 paths")?;
    let raw = given("raw_prompt").map(boolean).transpose().map_err(|_| "`raw_prompt` must be true or false")?;
    Ok(FurtherPrompt { text: text.into(), now, images, raw })
}

/// The first word, without the `/`. `None`: the prompt calls no command, for instance because it begins with a path.
pub(crate) fn called_command(prompt: &str) -> Option<&str> {
    let word = prompt.trim_start().strip_prefix('/')?.split(char::is_whitespace).next()?;
    (!word.is_empty() && !word.contains('/')).then_some(word)
}

/// The word of a command's name that a prompt begins with.
pub(crate) fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeated;

#[cfg(test)]
mod tests {
    use super::{CheckpointId, FurtherPrompt, PromptInput, Repeated, called_command};
    use crate::json::Fields;

    fn read(json: &str) -> Result<Option<PromptInput>, Repeated> {
        PromptInput::read(&Fields::parse(json).unwrap())
    }

    #[test]
    fn a_payload_is_a_prompt_the_end_an_answer_or_wrong() {
        let with = |now, images: &[&str]| {
            let images = images.iter().map(|path| (*path).to_owned()).collect();
            Ok(Some(PromptInput::Prompt(FurtherPrompt { text: "go".into(), now, images, raw: None })))
        };
        let prompt = |now| with(now, &[]);
        assert_eq!(read(r#"{"prompt":"go"}"#), prompt(false));
        assert_eq!(read(r#"{"prompt":"go","when":"next","other":1}"#), prompt(false));
        assert_eq!(read(r#"{"prompt":"go","when":"now"}"#), prompt(true));
        assert_eq!(read(r#"{"prompt":"go","when":null,"images":null}"#), prompt(false));
        assert_eq!(read(r#"{"prompt":"go","images":["a.png","/b.png"]}"#), with(false, &["a.png", "/b.png"]));
        assert_eq!(read(r#"{"end":true}"#), Ok(Some(PromptInput::End)));
        let rewind = |id| Ok(Some(PromptInput::Rewind(id)));
        assert_eq!(read(r#"{"rewind":"p_3"}"#), rewind(Some(CheckpointId::Prompt(3))));
        assert_eq!(read(r#"{"rewind":"r_1"}"#), rewind(Some(CheckpointId::Rewind(1))));
        for wrong in ["\"p_\"", "\"q_1\"", "\"p_+1\"", "\"p_1234567890123456789\"", "1", "null"] {
            assert_eq!(read(&format!("{{\"rewind\":{wrong}}}")), rewind(None), "{wrong}");
        }
        for mixed in [
            r#"{"prompt":"go","value":1}"#,
            r#"{"prompt":"go","question_id":"q"}"#,
            r#"{"prompt":"go","end":true}"#,
            r#"{"prompt":"go","rewind":"p_1"}"#,
            r#"{"rewind":"p_1","value":1}"#,
            r#"{"end":false}"#,
        ] {
            assert_eq!(read(mixed), Ok(Some(PromptInput::Mixed)), "{mixed}");
        }
        for wrong in [
            r#"{"prompt":""}"#,
            r#"{"prompt":1}"#,
            r#"{"prompt":"x","when":"soon"}"#,
            r#"{"prompt":"x","images":"a.png"}"#,
            r#"{"prompt":"x","images":[1]}"#,
            r#"{"prompt":"x","raw_prompt":"yes"}"#,
        ] {
            assert!(matches!(read(wrong), Ok(Some(PromptInput::Wrong(_)))), "{wrong}");
        }
        assert_eq!(read(r#"{"question_id":"q","value":1}"#), Ok(None));
        assert_eq!(read(r#"{"prompt":"a","prompt":"b"}"#), Err(Repeated));
    }

    #[test]
    fn the_first_word_is_a_command() {
        for (prompt, command) in [
            ("/greet Ada", Some("greet")),
            (" \n/plugin:greet", Some("plugin:greet")),
            ("/greet\nAda", Some("greet")),
            ("/etc/hosts is wrong", None),
            ("/ is the root", None),
            ("greet /now", None),
        ] {
            assert_eq!(called_command(prompt), command, "{prompt}");
        }
    }
}

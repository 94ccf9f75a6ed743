//! The review of a workflow's work by another session: who reviews, the result, and what it finds.

use super::declare::objects;
use super::form::{Form, object_forms};
use super::read::{Read, agent_and_model};
use super::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

objects! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Reviewer {
        /// The name of a configured agent. Null: the agent of the run.
        pub agent: Option<String> as name,
        /// The model, by the agent's name for it. Null: the run's, or another agent's own default.
        pub model: Option<String> as list,
    }

    /// Still open.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReviewFinding {
        /// The file, relative to the project's folder. Null: it is about no file.
        pub file: Option<Text> as inherited,
        /// The line, from 1. Null: it is about no line.
        pub line: Option<u64>,
        /// The weight, in the reviewer's words.
        pub severity: Text as inherited,
        /// The fault, in the reviewer's words.
        pub text: Text as inherited,
    }
}

/// Every key is required, because some providers take no other schema.
pub(crate) const SCHEMA: &str = r#"{"type":"object","properties":{"accept":{"type":"boolean"},"findings":{"type":"array","items":{"type":"object","properties":{"file":{"type":["string","null"]},"line":{"type":["integer","null"]},"severity":{"type":"string"},"text":{"type":"string"}},"required":["file","line","severity","text"],"additionalProperties":false}}},"required":["accept","findings"],"additionalProperties":false}"#;

const FINDINGS: usize = 50;
const TEXT_CHARS: usize = 2000;
const SEVERITY_CHARS: usize = 40;

#[derive(Deserialize)]
pub(crate) struct ReviewResult {
    pub(crate) accept: bool,
    pub(crate) findings: Vec<FoundByReview>,
}

#[derive(Deserialize)]
pub(crate) struct FoundByReview {
    pub(crate) file: Option<String>,
    line: Option<u64>,
    severity: String,
    text: String,
}

impl ReviewResult {
    /// For a result that fits [`SCHEMA`]. `None`: a line is not a whole number from 0.
    pub(crate) fn read(json: &str) -> Option<ReviewResult> {
        serde_json::from_str(json).ok()
    }

    /// The findings whose file `place` accepts, by its path in the project, and the number of the others.
    pub(crate) fn findings(self, place: impl Fn(&str) -> Option<String>) -> (Vec<ReviewFinding>, usize) {
        let all = self.findings.into_iter().map(|found| {
            let file = match found.file.filter(|file| !file.is_empty()) {
                Some(file) => Some(place(&file)?.into()),
                None => None,
            };
            let cut = |text: &str, chars: usize| Text::from(text.trim().chars().take(chars).collect::<String>());
            let line = found.line.filter(|line| *line > 0);
            let (severity, text) = (cut(&found.severity, SEVERITY_CHARS), cut(&found.text, TEXT_CHARS));
            Some(ReviewFinding { file, line, severity, text })
        });
        let all: Vec<Option<ReviewFinding>> = all.collect();
        let elsewhere = all.iter().filter(|found| found.is_none()).count();
        (all.into_iter().flatten().take(FINDINGS).collect(), elsewhere)
    }
}

object_forms! {
    OBJECT = "ReviewRequest" {
        /// The name of a configured agent.
        agent: Form::FILLED, false;
        /// The model.
        model: Form::FILLED, true;
    }
}

pub(super) const REQUEST: Form = Form::Either(&[Form::Bool, Form::FILLED, Form::Object(&OBJECT)]);

const EXPECTED: &str = "true, false, \"AGENT\" or \"AGENT:MODEL\", or an object with `agent` and, if you like, `model`";

/// `None`: no review.
pub(super) fn review(raw: &RawValue) -> Read<Option<Reviewer>> {
    match raw.get() {
        "true" => Ok(Some(Reviewer::default())),
        "false" => Ok(None),
        _ => {
            let (agent, model) = agent_and_model(raw, &OBJECT, EXPECTED)?;
            Ok(Some(Reviewer { agent: Some(agent), model }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReviewResult, Reviewer, SCHEMA, review};
    use crate::protocol::schema::OutputSchema;
    use serde_json::value::RawValue;

    #[test]
    fn a_reviewer_is_a_name_with_a_model_or_an_object() {
        let read = |json: &str| review(&RawValue::from_string(json.to_owned()).unwrap());
        let reviewer = |agent: Option<&str>, model: Option<&str>| {
            Ok(Some(Reviewer { agent: agent.map(str::to_owned), model: model.map(str::to_owned) }))
        };
        assert_eq!(read("true"), reviewer(None, None));
        assert_eq!(read("false"), Ok(None));
        assert_eq!(read("\"codex\""), reviewer(Some("codex"), None));
        assert_eq!(read("\"opencode:a/b:c\""), reviewer(Some("opencode"), Some("a/b:c")));
        assert_eq!(read("{\"model\":\"m\",\"agent\":\"a\"}"), reviewer(Some("a"), Some("m")));
        for wrong in
            ["\"\"", "\":m\"", "\"a:\"", "1", "[]", "{}", "{\"model\":\"m\"}", "{\"agent\":\"\"}", "{\"agent\":true}"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_finding_elsewhere_is_left_out_and_a_long_one_is_cut() {
        OutputSchema::read(&RawValue::from_string(SCHEMA.to_owned()).unwrap()).unwrap();
        let text = "x".repeat(5000);
        let found = |file: &str| format!(r#"{{"file":{file},"line":0,"severity":"high","text":"{text}"}}"#);
        let json =
            format!(r#"{{"accept":true,"findings":[{},{},{}]}}"#, found("\"a\""), found("\"/b\""), found("null"));
        let (all, elsewhere) =
            ReviewResult::read(&json).unwrap().findings(|file| (file == "a").then(|| "src/a".to_owned()));
        assert_eq!((all.len(), elsewhere), (2, 1));
        assert_eq!((all[0].file.as_ref().unwrap().shown(), all[0].line), ("src/a", None));
        assert_eq!((all[0].text.shown().len(), all[1].file.is_some()), (2000, false));
    }
}

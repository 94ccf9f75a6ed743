//! Questions: permissions become requests for permission, all others become forms where the client shows some, and text
//! in the turn otherwise. Nothing but a permission is ever asked as a permission, because a policy of the client could
//! answer it.

use super::updates::{self, fenced, location, tool_kind, value};
use crate::agent::form::own_words;
use crate::clean::{is_deceptive, one_line};
use crate::json::{Object, Raw};
use crate::protocol::limits::OPTIONS;
use crate::protocol::words::QuestionKind;
use serde_json::{Map, Value, json};

/// The limits of a narrow client: the number of options, the lengths of a label and of a value, that of another text
/// with the client's own words around it, and that of an answer.
const NARROW_OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;
const NARROW_LABEL: usize = 64;
const NARROW_VALUE: usize = 256;
const NARROW_TEXT: usize = 400;
const NARROW_ANSWER: u64 = 4096;
/// The answer that leaves a question in the text unanswered.
const SKIP: &str = "/skip";
const ANSWER: &str = "answer";
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    value: String,
    label: String,
    description: Option<String>,
}

/// A question of a run other than a permission.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) kind: QuestionKind,
    pub(super) attempt: u64,
    header: String,
    text: String,
    error: Option<String>,
    options: Vec<Choice>,
    multiple: bool,
    allow_other: bool,
    default: Option<Value>,
    validation: Value,
    required: bool,
}

/// Whether a narrow client shows this text. It refuses a form with a control or format character, such as a newline.
fn shows(text: &str, limit: usize) -> bool {
    text.encode_utf16().count() <= limit && !text.chars().any(is_deceptive)
}

impl Question {
    /// `None`: the question is a permission, or not a question.
    pub(super) fn read(payload: &Object<'_>) -> Option<Question> {
        let kind = QuestionKind::from_word(&payload.string("kind")?)?;
        let choice = |option: Object<'_>| {
            let value = option.string("value")?;
            Some(Choice { label: option.string("label")?, description: option.string("description"), value })
        };
        (!payload.is("purpose", "permission")).then_some(Question {
            id: payload.string("question_id")?,
            kind,
            attempt: payload.count("attempt").unwrap_or(1),
            header: payload.string("header").unwrap_or_default(),
            text: payload.string("text").unwrap_or_default(),
            error: payload.string("error"),
            options: payload.objects("options").filter_map(choice).collect(),
            multiple: payload.bool("multiple").unwrap_or_default(),
            allow_other: payload.bool("allow_other").unwrap_or_default(),
            default: payload.raw("default").map(value),
            validation: payload.raw("validation").map(value).unwrap_or_default(),
            required: payload.bool("required").unwrap_or(true),
        })
    }

    /// The parameters of elicitation/create. `narrow`: the client's forms are narrow. `None`: they are too narrow.
    pub(super) fn form(&self, session: &str, narrow: bool) -> Option<Value> {
        let error = self.error.iter().map(|error| format!("{error}\n"));
        let message: String = error.chain([self.text.clone()]).collect();
        let message = if narrow { one_line(&message) } else { message };
        if narrow && !self.fits(&message) {
            return None;
        }
        let mut answer = self.property(narrow);
        if narrow {
            // These clients show the fields of a form, and not its message.
            answer["description"] = json!(message);
        }
        let mut properties = Map::new();
        properties.insert(ANSWER.into(), answer);
        let other = self.kind == QuestionKind::Select && self.allow_other;
        if other {
            properties.insert(
                OTHER.into(),
                json!({
                    "type": "string", "title": "Other", "description": "Your own words",
                    "_meta": own_words(ANSWER),
                }),
            );
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if self.required && !other && self.default.is_none() {
            schema["required"] = json!([ANSWER]);
        }
        Some(json!({"mode": "form", "sessionId": session, "message": message, "requestedSchema": schema}))
    }

    fn fits(&self, message: &str) -> bool {
        let fits = |choice: &Choice| shows(&choice.label, NARROW_LABEL) && shows(&choice.value, NARROW_VALUE);
        let options_fit = NARROW_OPTIONS.contains(&self.options.len()) && self.options.iter().all(fits);
        shows(message, NARROW_TEXT)
            && shows(&self.header, NARROW_LABEL)
            && (self.kind != QuestionKind::Select || options_fit)
            && self.limit("min_length").is_none_or(|length| length <= NARROW_ANSWER)
    }

    fn limit(&self, name: &str) -> Option<u64> {
        self.validation.get(name).and_then(Value::as_u64)
    }

    fn property(&self, narrow: bool) -> Value {
        let option = |choice: &Choice| {
            let mut option = json!({"const": choice.value, "title": choice.label});
            let about = choice.description.as_ref().map(|about| if narrow { one_line(about) } else { about.clone() });
            if let Some(about) = about.filter(|about| !narrow || (!about.is_empty() && shows(about, NARROW_TEXT))) {
                option["description"] = json!(about);
            }
            option
        };
        let options = || self.options.iter().map(option).collect::<Vec<_>>();
        let mut property = match self.kind {
            QuestionKind::Confirm => json!({"type": "boolean"}),
            QuestionKind::Select if self.multiple => json!({"type": "array", "items": {"anyOf": options()}}),
            QuestionKind::Select => json!({"type": "string", "oneOf": options()}),
            QuestionKind::Text | QuestionKind::Secret | QuestionKind::FilePath => json!({"type": "string"}),
        };
        property["title"] = json!(if self.header.is_empty() { "Answer" } else { &self.header });
        if self.kind == QuestionKind::Select && self.multiple {
            for (ours, theirs) in [("min_selected", "minItems"), ("max_selected", "maxItems")] {
                // Own words count as one more.
                if let Some(count) = self.limit(ours).filter(|_| !self.allow_other) {
                    property[theirs] = json!(count);
                }
            }
        }
        if self.kind == QuestionKind::Text {
            for (ours, theirs) in [("min_length", "minLength"), ("max_length", "maxLength")] {
                if let Some(count) = self.limit(ours) {
                    property[theirs] = json!(if narrow { count.min(NARROW_ANSWER) } else { count });
                }
            }
            if let Some(pattern) = self.validation.get("pattern").filter(|_| !narrow) {
                property["pattern"] = pattern.clone();
            }
        }
        if let Some(default) = self.default.as_ref().filter(|default| self.may_show(default, narrow)) {
            property["default"] = default.clone();
        }
        property
    }

    /// A narrow client refuses a default that is not an option.
    fn may_show(&self, default: &Value, narrow: bool) -> bool {
        let is_option = |text: &str| self.options.iter().any(|choice| choice.value == text);
        match (self.kind, default) {
            (QuestionKind::Confirm, default) => default.is_boolean(),
            (QuestionKind::Select, Value::Array(list)) if self.multiple => {
                !narrow || list.iter().all(|value| value.as_str().is_some_and(is_option))
            }
            (QuestionKind::Select, Value::String(text)) if !self.multiple => !narrow || is_option(text),
            (QuestionKind::Select, _) => false,
            (QuestionKind::Text | QuestionKind::Secret | QuestionKind::FilePath, default) => {
                default.as_str().is_some_and(|text| !narrow || shows(text, NARROW_TEXT))
            }
        }
    }

    /// The payload of run.input for the answer to a form. An empty answer lets the run decide.
    pub(super) fn payload_of_form(&self, result: &Object<'_>) -> Value {
        let id = &self.id;
        let content = result.object("content").filter(|_| result.is("action", "accept"));
        let Some(content) = content else { return json!({"question_id": id, "declined": true}) };
        let other = content.string(OTHER).filter(|text| !text.trim().is_empty());
        let chosen = content.raw(ANSWER).map(answer).filter(|chosen| *chosen != json!(""));
        match (chosen, other) {
            (Some(Value::Array(mut list)), Some(other)) => {
                list.push(json!(other));
                json!({"question_id": id, "value": list})
            }
            (None, Some(other)) if self.multiple => json!({"question_id": id, "value": [other]}),
            (_, Some(other)) => json!({"question_id": id, "value": other}),
            (Some(value), None) => json!({"question_id": id, "value": value}),
            (None, None) => match &self.default {
                Some(default) => json!({"question_id": id, "value": default}),
                None if !self.required => json!({"question_id": id, "value": null}),
                None => json!({"question_id": id, "declined": true}),
            },
        }
    }

    /// The payload of run.input for an answer that is a prompt.
    pub(super) fn payload_of_text(&self, text: &str) -> Value {
        let (id, text) = (&self.id, text.trim());
        if text == SKIP {
            return json!({"question_id": id, "declined": true});
        }
        // A label may contain a comma.
        let is_one =
            || self.options.iter().any(|choice| choice.label.eq_ignore_ascii_case(text) || choice.value == text);
        if self.kind == QuestionKind::Select && self.multiple && !is_one() {
            let list: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            return json!({"question_id": id, "value": list});
        }
        json!({"question_id": id, "value": text})
    }

    pub(super) fn as_text(&self) -> String {
        let error = self.error.as_ref().map(|error| format!("{error}\n\n")).unwrap_or_default();
        let header = if self.header.is_empty() { String::new() } else { format!("**{}**: ", self.header) };
        let list = self.numbered();
        let list = if list.is_empty() { list } else { format!("\n\n{list}") };
        format!("\n\n{error}{header}{}{list}\n\n{} {SKIP} leaves the question unanswered.\n", self.text, self.how())
    }

    fn numbered(&self) -> String {
        let line = |(at, choice): (usize, &Choice)| {
            let about = choice.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("{}. {}{about}", at + 1, choice.label)
        };
        self.options.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    fn how(&self) -> &'static str {
        match (self.kind, self.multiple, self.allow_other) {
            (QuestionKind::Confirm, ..) => "Answer yes or no.",
            (QuestionKind::Select, false, false) => "Answer with a number or an option.",
            (QuestionKind::Select, false, true) => "Answer with a number, an option, or your own words.",
            (QuestionKind::Select, true, false) => "Answer with numbers or options, separated by commas.",
            (QuestionKind::Select, true, true) => {
                "Answer with numbers, options or your own words, separated by commas."
            }
            (QuestionKind::FilePath, ..) => "Answer with a path.",
            (QuestionKind::Text | QuestionKind::Secret, ..) => "Answer in your next message.",
        }
    }

    pub(super) fn secret(&self) -> String {
        format!(
            "\n\n{}\n\nThis needs a secret, which no client of this protocol can keep. The question is declined. \
             Give the agent the secret another way, for example in its environment.\n",
            self.text
        )
    }
}

/// The answer in a form. One that fits no question becomes an empty object, which the run refuses.
fn answer(raw: Raw<'_>) -> Value {
    match raw.elements() {
        Some(elements) => {
            let texts = elements.take(OPTIONS + 1).map(|element| element.string().map(Value::from));
            texts.collect::<Option<Vec<_>>>().map_or_else(|| json!({}), Value::from)
        }
        None if raw.fields().is_some() => json!({}),
        None => value(raw),
    }
}

/// The parameters of session/request_permission for a run.question. `call`: the id of a call in this session.
pub(super) fn permission(payload: &Object<'_>, session: &str, cwd: &str, call: impl Fn(&str) -> String) -> Value {
    let subject = payload.object("subject");
    let field = |name: &str| subject.as_ref().and_then(|subject| subject.string(name));
    let id = field("call_id").or_else(|| payload.string("question_id")).unwrap_or_default();
    let category = field("category").unwrap_or_default();
    let language = match category.as_str() {
        "execute" => "sh",
        "edit" | "delete" | "move" => "diff",
        _ => "",
    };
    let (mut content, detail) = match field("detail") {
        Some(detail) if language == "diff" => updates::changes(&detail, cwd),
        detail => (Vec::new(), detail.unwrap_or_default()),
    };
    if !detail.is_empty() {
        content.push(json!({"type": "content", "content": {"type": "text", "text": fenced(language, &detail)}}));
    }
    let locations = subject.iter().flat_map(|subject| subject.objects("locations"));
    let locations: Vec<Value> = locations.filter_map(|place| location(&place, cwd)).collect();
    let title = field("title").or_else(|| payload.string("text")).unwrap_or_default();
    let options = payload.objects("options").filter_map(|option| {
        let value = option.string("value")?;
        let kind = match value.as_str() {
            same @ ("allow_once" | "allow_always") => same,
            _ => "reject_once",
        };
        let label = option.string("label").unwrap_or_else(|| value.clone());
        // The scope of "always" must be visible where it is chosen.
        let name = match option.string("description").filter(|_| kind == "allow_always") {
            Some(scope) => format!("{label} ({scope})"),
            None => label,
        };
        Some(json!({"optionId": value, "name": name, "kind": kind}))
    });
    let options: Vec<Value> = options.collect();
    let mut tool = json!({
        "toolCallId": call(&id), "title": title, "status": "pending", "locations": locations,
        "kind": tool_kind(&category),
    });
    if !content.is_empty() {
        tool["content"] = json!(content);
    }
    json!({"sessionId": session, "toolCall": tool, "options": options})
}

/// The payload of run.input for the client's answer to a permission. `None`: the client failed to ask, which denies.
pub(super) fn permitted(question: &str, result: Option<&Object<'_>>) -> Value {
    let outcome = result.and_then(|result| result.object("outcome"));
    let chosen =
        outcome.filter(|outcome| outcome.is("outcome", "selected")).and_then(|outcome| outcome.string("optionId"));
    match chosen.filter(|option| ["allow_once", "allow_always", "deny"].contains(&option.as_str())) {
        Some(option) => json!({"question_id": question, "value": option}),
        None => json!({"question_id": question, "declined": true}),
    }
}

#[cfg(test)]
mod tests {
    use super::{Question, own_words};
    use crate::json::Object;
    use serde_json::json;

    fn question(payload: &str) -> Question {
        Question::read(&Object::parse(payload).unwrap()).unwrap()
    }

    #[test]
    fn an_answer_in_text_is_a_list_only_where_several_may_be_chosen() {
        let several = question(
            r#"{"question_id":"q","kind":"select","multiple":true,"options":[{"value":"a, b","label":"A, B"},{"value":"c","label":"C"}]}"#,
        );
        assert_eq!(several.payload_of_text(" 1, C "), json!({"question_id": "q", "value": ["1", "C"]}));
        assert_eq!(several.payload_of_text("a, b"), json!({"question_id": "q", "value": "a, b"}));
        assert_eq!(several.payload_of_text("/skip"), json!({"question_id": "q", "declined": true}));
        let one = question(r#"{"question_id":"q","kind":"text"}"#);
        assert_eq!(one.payload_of_text("a, b\n"), json!({"question_id": "q", "value": "a, b"}));
    }

    #[test]
    fn an_answer_that_fits_no_question_takes_no_memory() {
        let several = question(r#"{"question_id":"q","kind":"select","multiple":true}"#);
        let many = format!("[{}]", vec!["\"a\""; 100_000].join(","));
        for (answer, wanted) in [
            (r#"["a","b"]"#, json!(["a", "b"])),
            ("true", json!(true)),
            (r#"{"a":[1]}"#, json!({})),
            (r#"["a",{}]"#, json!({})),
            (&many, json!(vec!["a"; 1001])),
        ] {
            let result = format!(r#"{{"action":"accept","content":{{"answer":{answer}}}}}"#);
            let payload = several.payload_of_form(&Object::parse(&result).unwrap());
            assert_eq!(payload, json!({"question_id": "q", "value": wanted}));
        }
    }

    #[test]
    fn a_narrow_client_gets_only_forms_that_it_can_show() {
        let select = |count: usize, text: &str| {
            let option =
                |n: usize| json!({"value": n.to_string(), "label": format!("Option {n}"), "description": "a\nb"});
            let options: Vec<_> = (1..=count).map(option).collect();
            let payload = json!({"question_id": "q", "kind": "select", "text": text, "options": options,
                "allow_other": true, "default": "own"});
            question(&payload.to_string())
        };
        let wide = select(6, "Which\none?").form("s", false).unwrap();
        assert_eq!(wide["message"], "Which\none?");
        let property = &wide["requestedSchema"]["properties"]["answer"];
        assert_eq!((property["oneOf"].as_array().map(Vec::len), &property["default"]), (Some(6), &json!("own")));
        assert_eq!(wide["requestedSchema"]["properties"]["other"]["_meta"], own_words("answer"));
        let narrow = select(4, "Which\n  one?").form("s", true).unwrap();
        let property = &narrow["requestedSchema"]["properties"]["answer"];
        assert_eq!((&narrow["message"], &property["description"]), (&json!("Which one?"), &json!("Which one?")));
        assert_eq!((&property["oneOf"][3]["description"], property.get("default")), (&json!("a b"), None));
        let long = "x".repeat(401);
        for (count, text) in [(1, "a"), (5, "a"), (2, "a\u{200b}"), (2, &long)] {
            assert_eq!(select(count, text).form("s", true), None, "{count}: {text}");
        }
    }
}

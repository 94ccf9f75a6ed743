//! MCP elicitation forms. Each property of a form's JSON Schema becomes a question, all in one group; the replies
//! become the form's content. Codex and ACP agents send the same forms.

use super::Reply;
use crate::json::{Object, Raw};
use crate::protocol::question::{Answer, Ask, Asks, Choice, Choices, Kind, Validation, check};
use crate::protocol::text::Text;
use crate::protocol::words::Purpose;
use serde_json::value::to_raw_value;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// The mark of a property for own words beside the property `question`. Codex introduced it, and clients know it.
pub(crate) fn own_words(question: &str) -> Value {
    serde_json::json!({"codex": {"isOtherAnswer": true, "questionId": question}})
}

/// Reads a question in the form of Claude Code, which other agents have taken over.
pub(super) fn question(question: &Object<'_>) -> Ask {
    let choice = |option: Object<'_>| Some(Choice::labelled(option.string("label")?, option.string("description")));
    let choices = Choices::new(question.objects("options").filter_map(choice));
    let multiple = question.bool("multiSelect") == Some(true);
    let header = question.string("header").unwrap_or_default();
    let text = question.string("question").unwrap_or_default();
    Ask::new(Purpose::Clarification, Kind::open(choices, multiple), header, text)
}

#[derive(Debug)]
pub(super) struct ElicitationForm(Vec<Field>);

#[derive(Debug)]
struct Field {
    name: String,
    /// Whether the form expects a JSON number, although the question is a text.
    is_number: bool,
    required: bool,
}

const NUMBER: &str = r"^\s*-?[0-9]+(\.[0-9]+)?\s*$";

impl ElicitationForm {
    /// `None`: the form has no properties, has one that no question can ask for, or requires more questions than the
    /// limit.
    pub(super) fn read(schema: &Object<'_>, message: &str) -> Option<(ElicitationForm, Asks)> {
        let properties = schema.object("properties")?;
        let required: HashSet<String> = schema.array("required").filter_map(Raw::string).collect();
        let (mut fields, mut asks) = (Vec::new(), Asks::default());
        for (name, raw) in properties.iter() {
            let required = required.contains(&*name);
            let field = Field { name: name.into_owned(), is_number: false, required };
            let (field, ask) = field.read(&raw.object()?, message)?;
            asks.extend([ask]);
            if asks.dropped() == 0 {
                fields.push(field);
            } else if field.required {
                return None;
            }
        }
        (!asks.is_empty()).then_some((ElicitationForm(fields), asks))
    }

    /// `None`: the form is declined, because a required field has no answer, or no field has one.
    pub(super) fn content(&self, replies: &[Reply]) -> Option<Map<String, Value>> {
        let mut content = Map::new();
        let mut answered = false;
        for (field, reply) in self.0.iter().zip(replies) {
            match reply {
                Reply::Answer(Answer::Null) => answered = true,
                Reply::Answer(answer) => {
                    content.insert(field.name.clone(), field.value(answer)?);
                    answered = true;
                }
                Reply::Allowed | Reply::AllowedWith(_) | Reply::Declined(_) | Reply::Denied(_) | Reply::NoUser => {
                    if field.required {
                        return None;
                    }
                }
            }
        }
        answered.then_some(content)
    }
}

impl Field {
    fn read(self, property: &Object<'_>, message: &str) -> Option<(Field, Ask)> {
        let label = property.string("title").unwrap_or_else(|| self.name.clone());
        let mut text = if message.is_empty() { label.clone() } else { format!("{message}\n{label}") };
        if let Some(description) = property.string("description") {
            text.push_str(&format!(": {description}"));
        }
        let (kind, validation) = answers(property)?;
        let is_number = is_number(property);
        let required = self.required;
        let ask = Ask { required, validation, ..Ask::new(Purpose::Input, kind, label, text) };
        // A default that breaks the schema's own rules is dropped, because it would be used if nobody answers.
        let default = property.raw("default").and_then(|raw| match is_number {
            true => check(&ask, &to_raw_value(&number(raw.get())?.to_string()).ok()?, None).ok(),
            false => check(&ask, raw.value(), None).ok(),
        });
        Some((Field { is_number, ..self }, Ask { default, ..ask }))
    }

    /// `None`: the form expects a number, and the answer is not one.
    fn value(&self, answer: &Answer) -> Option<Value> {
        match answer {
            Answer::Text(text) if self.is_number => number(text.unredacted()).map(Value::Number),
            Answer::Decision(_)
            | Answer::Text(_)
            | Answer::Bool(_)
            | Answer::One(_)
            | Answer::Many(_)
            | Answer::Null => Some(answer.unredacted()),
        }
    }
}

fn is_number(property: &Object<'_>) -> bool {
    property.is("type", "number") || property.is("type", "integer")
}

/// `None`: no question can ask for the property.
fn answers(property: &Object<'_>) -> Option<(Kind, Validation)> {
    let none = Validation::default();
    match property.str("type").as_deref() {
        Some("boolean") => Some((Kind::Confirm, none)),
        Some("array") => {
            let choices = choices(&property.object("items")?)?;
            let (min_selected, max_selected) = (property.count("minItems"), property.count("maxItems"));
            let kind = Kind::Select { choices, multiple: true, allow_other: false };
            Some((kind, Validation { min_selected, max_selected, ..none }))
        }
        Some("number" | "integer") => {
            let (min, max) = (property.number("minimum"), property.number("maximum"));
            let integer = property.is("type", "integer").then_some(true);
            // Without a bound, only this rule makes the answer a number.
            let free = min.is_none() && max.is_none() && integer.is_none();
            let pattern = free.then(|| NUMBER.into());
            Some((Kind::Text, Validation { min, max, integer, pattern, ..none }))
        }
        _ => Some(match choices(property) {
            Some(choices) => (Kind::Select { choices, multiple: false, allow_other: false }, none),
            None => {
                let (min_length, max_length) = (property.count("minLength"), property.count("maxLength"));
                let pattern = property.string("pattern").map(Text::from);
                (Kind::Text, Validation { min_length, max_length, pattern, ..none })
            }
        }),
    }
}

fn choices(schema: &Object<'_>) -> Option<Choices> {
    let titled = |option: Object<'_>| {
        let value = option.string("const")?;
        let label = option.string("title").unwrap_or_else(|| value.clone());
        let description = option.string("description").map(Text::from);
        Some(Choice { value: value.into(), label: label.into(), description })
    };
    let titles: Vec<Option<String>> = schema.array("enumNames").map(Raw::string).collect();
    let plain = schema.array("enum").enumerate().filter_map(|(at, raw)| {
        let value = raw.string()?;
        let label = titles.get(at).cloned().flatten().unwrap_or_else(|| value.clone());
        Some(Choice { value: value.into(), label: label.into(), description: None })
    });
    Choices::new(["oneOf", "anyOf"].iter().flat_map(|name| schema.objects(name)).filter_map(titled).chain(plain))
}

/// Parses a number: 3 and not 3.0, because the schema may require an integer.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let number = text.parse::<f64>().ok()?;
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    if is_whole { Some((number as i64).into()) } else { Number::from_f64(number) }
}

#[cfg(test)]
mod tests {
    use super::{ElicitationForm, number};
    use crate::agent::Reply;
    use crate::json::Object;
    use crate::protocol::question::Asks;
    use crate::protocol::question::{Answer, Ask, Kind, check};
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    fn read(schema: &Value) -> Option<(ElicitationForm, Asks)> {
        ElicitationForm::read(&Object::parse(&schema.to_string()).unwrap(), "Set it up.")
    }

    fn one(property: Value) -> Ask {
        read(&json!({"properties": {"p": property}})).unwrap().1[0].clone()
    }

    fn setup() -> (ElicitationForm, Asks) {
        read(&json!({"type": "object", "required": ["db", "port"], "properties": {
            "db": {"type": "string", "enum": ["pg", "lite"], "enumNames": ["Postgres", "SQLite"]},
            "port": {"type": "integer", "title": "Port", "description": "Where it listens", "minimum": 1, "default": 80},
            "on": {"type": "boolean", "default": true},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "maxItems": 1},
            "name": {"type": "string", "minLength": 2, "pattern": "^x"},
        }}))
        .unwrap()
    }

    #[test]
    fn each_property_becomes_a_question() {
        let (_, asks) = setup();
        // serde_json sorts the keys of the schema above.
        let by_header = |header: &str| asks.iter().find(|ask| ask.header == header).unwrap();
        let (db, port, tags, name) = (by_header("db"), by_header("Port"), by_header("tags"), by_header("name"));
        assert_eq!((db.required, port.required, tags.required, name.required), (true, true, false, false));
        let Kind::Select { choices, multiple: false, .. } = &db.kind else { panic!("{db:?}") };
        assert_eq!(
            (choices.as_slice()[1].value.unredacted(), choices.as_slice()[1].label.unredacted()),
            ("lite", "SQLite")
        );
        assert_eq!(port.text, "Set it up.\nPort: Where it listens");
        assert_eq!(port.default, Some(Answer::Text("80".into())));
        assert_eq!((port.validation.min, port.validation.integer), (Some(1.0), Some(true)));
        assert_eq!(by_header("on").default, Some(Answer::Bool(true)));
        assert!(matches!(&tags.kind, Kind::Select { multiple: true, .. }));
        assert_eq!((tags.validation.max_selected, name.validation.min_length), (Some(1), Some(2)));
    }

    #[test]
    fn the_content_maps_names_to_answers() {
        let (form, asks) = setup();
        let answer = |ask: &Ask| match ask.header.unredacted() {
            "db" => Reply::Answer(Answer::One("lite".into())),
            "Port" => Reply::Answer(Answer::Text(" 5432 ".into())),
            "on" => Reply::Answer(Answer::Bool(false)),
            "tags" => Reply::Answer(Answer::Many(vec!["b".into()])),
            _ => Reply::Declined(None),
        };
        let replies: Vec<Reply> = asks.iter().map(answer).collect();
        let content = json!({"db": "lite", "port": 5432, "on": false, "tags": ["b"]});
        assert_eq!(form.content(&replies).map(Value::Object), Some(content));
        let without_port = |ask: &Ask| if ask.header == "Port" { Reply::Declined(None) } else { answer(ask) };
        assert_eq!(form.content(&asks.iter().map(without_port).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_form_of_optional_fields_is_declined_if_all_are_declined() {
        let (form, _) = read(&json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})).unwrap();
        let left_open = [Reply::Answer(Answer::Null), Reply::Declined(None)];
        assert_eq!(form.content(&left_open).map(Value::Object), Some(json!({})));
        for nobody in [Reply::Declined(None), Reply::NoUser] {
            assert_eq!(form.content(&[nobody.clone(), nobody]), None);
        }
    }

    #[test]
    fn a_number_without_bounds_accepts_only_numbers() {
        let ask = one(json!({"type": "number"}));
        let fits = |text: &str| check(&ask, &to_raw_value(text).unwrap(), None).is_ok();
        assert!(fits("-1.5") && fits(" 7 ") && !fits("abc") && !fits(""));
    }

    #[test]
    fn a_default_that_breaks_the_rules_is_dropped() {
        for (property, default) in [
            (json!({"type": "integer", "minimum": 1, "default": 0}), None),
            (json!({"type": "integer", "default": 1.5}), None),
            (json!({"type": "integer", "default": "1"}), None),
            (json!({"type": "integer", "default": 80.0}), Some(Answer::Text("80".into()))),
            (json!({"type": "number", "default": 2.5}), Some(Answer::Text("2.5".into()))),
            (json!({"type": "string", "maxLength": 2, "default": "abc"}), None),
            (json!({"type": "string", "enum": ["a"], "default": "b"}), None),
            (json!({"type": "boolean", "default": "perhaps"}), None),
            (json!({"type": "array", "items": {"enum": ["a"]}, "default": []}), Some(Answer::Many(Vec::new()))),
        ] {
            assert_eq!(one(property.clone()).default, default, "{property}");
        }
    }

    #[test]
    fn unsupported_forms_are_refused() {
        for properties in [json!({}), json!({"p": 1}), json!({"p": {"type": "array", "items": {"type": "string"}}})] {
            assert!(read(&json!({"properties": properties})).is_none(), "{properties}");
        }
    }

    #[test]
    fn whole_numbers_stay_whole() {
        for (text, wanted) in
            [("9223372036854775807", "9223372036854775807"), ("3.0", "3"), ("1e3", "1000"), ("0.25", "0.25")]
        {
            assert_eq!(number(text).unwrap().to_string(), wanted);
        }
        assert!(number("abc").is_none() && number("inf").is_none());
    }
}

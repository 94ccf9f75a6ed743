//! The description of the protocol as data holds for the frames that the program writes and the messages that it reads.

use crate::pages::reference::real;
use serde_json::{Map, Value};
use spektacular::protocol::fields::FIELDS;
use spektacular::protocol::form::{FieldForm, Form, Member, ObjectForm};
use spektacular::protocol::inbound::{self, Message};
use spektacular::protocol::messages::{ENVELOPE_IN, ENVELOPE_OUT, FRAMES, MESSAGES, ProgressKind};
use spektacular::protocol::request::Options;
use spektacular::protocol::words::Category;
use std::collections::BTreeMap;

/// Every field in order, those of other declarations included.
pub(crate) fn fields_of(object: &ObjectForm) -> Vec<FieldForm> {
    let fields = object.members.iter().map(|member| match member {
        Member::Field(field) => vec![*field],
        Member::All(object) => fields_of(object),
        Member::AllOrNone(object) => {
            fields_of(object).into_iter().map(|field| FieldForm { optional: true, ..field }).collect()
        }
        Member::Kind | Member::Hidden => Vec::new(),
    });
    fields.flatten().collect()
}

/// The values that were seen of each declared field, by its path.
type Seen = BTreeMap<String, SeenField>;

#[derive(Default)]
struct SeenField {
    present: bool,
    absent: bool,
    null: bool,
}

/// Checks a value against its form.
fn check(value: &Value, form: &Form, at: &str, seen: &mut Seen) -> Result<(), String> {
    let wrong = || Err(format!("{at} is {value}, not {form:?}"));
    let is = |right: bool| if right { Ok(()) } else { wrong() };
    match form {
        Form::Text | Form::Shaped(_) => is(value.is_string()),
        Form::Word(set) => is(value.as_str().is_some_and(|word| set.words.contains(&word))),
        Form::Bool => is(value.is_boolean()),
        Form::True => is(*value == true),
        Form::Integer => is(value.is_i64() || value.is_u64()),
        Form::Number | Form::Within(_) => is(value.is_number()),
        Form::List(form) | Form::AtMost(_, form) => match value.as_array() {
            Some(all) => all.iter().try_for_each(|one| check(one, form, &format!("{at}[]"), seen)),
            None => wrong(),
        },
        Form::Map(form) | Form::Named(_, form) => match value.as_object() {
            Some(all) => all.values().try_for_each(|one| check(one, form, at, seen)),
            None => wrong(),
        },
        Form::Policies(form) => match value.as_object() {
            Some(all) => {
                let known = |key: &str| key == "*" || Category::from_word(key).is_some();
                is(all.keys().all(|key| known(key)))?;
                all.values().try_for_each(|one| check(one, form, at, seen))
            }
            None => wrong(),
        },
        Form::Object(object) => match value.as_object() {
            Some(fields) => check_fields(fields, &fields_of(object), at, seen),
            None => wrong(),
        },
        Form::AnyObject | Form::Schema => is(value.is_object()),
        Form::Any => Ok(()),
        Form::Nullable(_) if value.is_null() => Ok(()),
        Form::Nullable(form) => check(value, form, at, seen),
        Form::Either(forms) => {
            let fits = |form: &&Form| check(value, form, at, &mut Seen::new()).is_ok();
            match forms.iter().find(fits) {
                Some(form) => check(value, form, at, seen),
                None => wrong(),
            }
        }
    }
}

/// Checks the fields of an object, which may be fewer, against its declaration.
fn check_fields(object: &Map<String, Value>, fields: &[FieldForm], at: &str, seen: &mut Seen) -> Result<(), String> {
    if let Some(unknown) = object.keys().find(|key| !fields.iter().any(|field| field.name == *key)) {
        return Err(format!("{at} has the field {unknown}, which is not declared"));
    }
    for field in fields {
        let path = format!("{at}.{}", field.name);
        let value = object.get(field.name);
        let noted = seen.entry(path.clone()).or_default();
        noted.present |= value.is_some_and(|value| !value.is_null());
        noted.null |= value.is_some_and(Value::is_null);
        noted.absent |= value.is_none();
        match value {
            Some(value) => check(value, &field.form, &path, seen)?,
            None if field.optional => {}
            None => return Err(format!("{path} is missing")),
        }
    }
    Ok(())
}

/// The declared fields of a payload.
fn payload_fields(kind: &str, payload: &Value) -> Vec<FieldForm> {
    let frame = FRAMES.iter().find(|frame| frame.name == kind).unwrap();
    let [object] = frame.payloads else { panic!("{kind} has several payloads") };
    let mut fields = fields_of(object);
    if kind == "run.progress" {
        let kind = ProgressKind::KINDS.iter().find(|kind| kind.name == payload["kind"]).unwrap();
        fields.extend(fields_of(kind.fields));
    }
    fields
}

#[test]
fn every_frame_has_the_declared_fields_and_no_others() {
    let mut seen = Seen::new();
    for line in real().into_iter().flat_map(|(most, least)| [most, least]) {
        let mut frame: Value = serde_json::from_str(&line).unwrap();
        let payload = frame.as_object_mut().unwrap().remove("payload").unwrap();
        let kind = frame["type"].as_str().unwrap().to_owned();
        let progress = if kind == "run.progress" { payload["kind"].as_str().unwrap() } else { "" };
        let label = format!("{kind} {progress}");
        let checked = check_fields(frame.as_object().unwrap(), &fields_of(&ENVELOPE_OUT), "frame", &mut seen);
        let fields = payload_fields(&kind, &payload);
        let checked = checked.and_then(|()| check_fields(payload.as_object().unwrap(), &fields, &label, &mut seen));
        assert_eq!(checked, Ok(()), "{line}");
    }
    // No frame here sets these. A frame shows only the options of its own workflow.
    let silent = ["run.started .agent.version", ".structured_output", ".parent_call_id", " tool.exit_code"];
    let expected = |path: &str| silent.iter().any(|end| path.ends_with(end)) || path.contains(".workflow.options.");
    let never: Vec<&String> =
        seen.iter().filter(|(path, seen)| !seen.present && !expected(path)).map(|(path, _)| path).collect();
    assert!(never.is_empty(), "no frame has a value at {never:?}");
    let unseen = |kind: &&&str| !seen.contains_key(&format!("run.progress {kind}.kind"));
    assert_eq!(ProgressKind::NAMES.iter().find(unseen), None);
    // A field that a frame may lack is declared so, and the frames with few fields lack it.
    let optional = |path: &str| seen[path].absent;
    for path in ["run.progress tool.output", "run.question .options", "run.failed .turns", "frame.reply_to"] {
        assert!(optional(path), "{path}");
    }
}

#[test]
fn fields_that_only_some_frames_have_are_optional_and_the_others_are_not() {
    let required = |object: &ObjectForm, name: &str| {
        let field = fields_of(object).into_iter().find(|field| field.name == name).unwrap();
        (!field.optional, matches!(field.form, Form::Nullable(_)))
    };
    let payload = |kind: &str| FRAMES.iter().find(|frame| frame.name == kind).unwrap().payloads[0];
    assert_eq!(required(payload("run.completed"), "session_id"), (true, true));
    assert_eq!(required(payload("run.completed"), "truncated"), (false, false));
    assert_eq!(required(payload("run.failed"), "detail"), (true, true));
    assert_eq!(required(payload("run.question"), "options"), (false, false));
    assert_eq!(required(payload("run.started"), "workflow"), (false, false));
}

#[test]
fn every_declared_field_has_a_description() {
    #[track_caller]
    fn walk(object: &ObjectForm, path: &str) {
        for field in fields_of(object) {
            assert!(!field.doc.trim().is_empty(), "{path}.{} has no description", field.name);
            form(&field.form, &format!("{path}.{}", field.name));
        }
    }
    #[track_caller]
    fn form(one: &Form, path: &str) {
        match one {
            Form::Object(object) => walk(object, path),
            Form::List(one) | Form::AtMost(_, one) | Form::Map(one) | Form::Named(_, one) => form(one, path),
            Form::Policies(one) | Form::Nullable(one) => form(one, path),
            Form::Either(all) => all.iter().for_each(|one| form(one, path)),
            Form::Text | Form::Shaped(_) | Form::Word(_) | Form::Bool | Form::True => {}
            Form::Integer | Form::Number | Form::Within(_) => {}
            Form::AnyObject | Form::Any | Form::Schema => {}
        }
    }
    for message in FRAMES.iter().chain(&MESSAGES) {
        message.payloads.iter().for_each(|object| walk(object, message.name));
    }
    ProgressKind::KINDS.iter().for_each(|kind| walk(kind.fields, kind.name));
    walk(&ENVELOPE_IN, "message");
    walk(&ENVELOPE_OUT, "frame");
}

#[test]
fn run_start_has_the_fields_of_the_table() {
    let [start] = MESSAGES[0].payloads else { panic!("run.start has several payloads") };
    let names: Vec<&str> = fields_of(start).iter().map(|field| field.name).collect();
    let (workflow, rest) = names.split_last().unwrap();
    assert_eq!((*workflow, rest), ("workflow", Options::NAMES));
    let required: Vec<&str> = fields_of(start).iter().filter(|field| !field.optional).map(|field| field.name).collect();
    assert_eq!(required, ["prompt"]);
    assert_eq!(FIELDS.len(), rest.len());
}

/// A value of a form.
fn example(form: &Form) -> Value {
    match form {
        Form::Text | Form::Shaped(_) => "a".into(),
        Form::Word(set) => set.words[0].into(),
        Form::Bool | Form::True => true.into(),
        Form::Integer => 20_000.into(),
        Form::Number => 1.5.into(),
        Form::Within(range) => if range.most < 20_000.0 { range.most } else { 20_000.0 }.into(),
        Form::List(form) | Form::AtMost(_, form) => vec![example(form)].into(),
        Form::Map(form) | Form::Named(_, form) => Map::from_iter([("A".to_owned(), example(form))]).into(),
        Form::Policies(form) => Map::from_iter([("*".to_owned(), example(form))]).into(),
        Form::Object(object) => {
            let fields = fields_of(object).into_iter();
            // Each URL has a form of its own.
            let value = |field: &FieldForm| match field.name {
                "url" => "http://h".into(),
                "rewind" => "p_1".into(),
                _ => example(&field.form),
            };
            fields.map(|field| (field.name.to_owned(), value(&field))).collect::<Map<_, _>>().into()
        }
        Form::AnyObject | Form::Schema => Map::new().into(),
        Form::Any => Value::Null,
        Form::Nullable(form) => example(form),
        Form::Either(forms) => example(&forms[0]),
    }
}

#[test]
fn the_declared_forms_of_run_start_are_the_ones_that_it_accepts() {
    for field in FIELDS {
        let forms: Vec<Form> = match field.form {
            Form::Either(forms) => forms.to_vec(),
            Form::List(Form::Either(forms)) => forms.iter().map(Form::List).collect(),
            form => vec![form],
        };
        for form in forms {
            let raw = serde_json::value::to_raw_value(&example(&form)).unwrap();
            let read = Options::default().set(field.name, &raw);
            assert!(read.is_ok(), "{}: {raw} {read:?}", field.name);
        }
        let wrong = match field.form {
            Form::Text | Form::Shaped(_) | Form::Word(_) => serde_json::json!(1),
            _ => serde_json::json!("a text"),
        };
        let raw = serde_json::value::to_raw_value(&wrong).unwrap();
        assert!(Options::default().set(field.name, &raw).is_err(), "{}", field.name);
    }
}

#[test]
fn each_declared_payload_is_a_message() {
    for message in &MESSAGES {
        for payload in message.payloads {
            let payload = if message.name == "run.start" {
                serde_json::json!({"prompt": "go"})
            } else {
                example(&Form::Object(payload))
            };
            let line = serde_json::json!({"v": "1", "type": message.name, "payload": payload}).to_string();
            let read = inbound::parse(line.as_bytes()).unwrap().message;
            let is_whole = match &read {
                Message::Start(payload) => payload.wrong.is_none(),
                Message::Answer(input) => input.given.is_some() && input.question_id.is_some(),
                Message::Prompt(spoken) => {
                    use spektacular::protocol::prompt::PromptInput;
                    matches!(spoken, PromptInput::Prompt(_) | PromptInput::End | PromptInput::Rewind(Some(_)))
                }
                Message::Cancel { reason, .. } => reason.is_some(),
                Message::Malformed(_) | Message::Unsupported | Message::UnknownType(_) => false,
            };
            assert!(is_whole, "{line}: {read:?}");
        }
    }
}

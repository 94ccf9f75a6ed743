//! The examples of the reference, each as one line.

use crate::protocol::forms::fields_of;
use serde_json::value::RawValue;
use spektacular::json::{Fields, string};
use spektacular::protocol::form::ObjectForm;
use spektacular::protocol::messages::{FRAMES, MESSAGES};
use spektacular::protocol::publish::REFERENCE;
use spektacular::protocol::words::Purpose;
use std::collections::HashSet;

/// A message for each form of its payload, and a frame for each type, each kind and each kind of question, a permission
/// too: the examples of the reference, each as one line.
pub(super) fn examples() -> String {
    let mut seen = HashSet::new();
    let all = blocks("json in").chain(blocks("json out"));
    let first = all.filter(|example| form_of(example).is_some_and(|form| seen.insert(form)));
    first.map(|example| one_line(example.get()) + "\n").collect()
}

/// The examples in the blocks with this tag.
fn blocks(tag: &str) -> impl Iterator<Item = Box<RawValue>> {
    let mut parts = REFERENCE.split("\n```");
    let _ = parts.next();
    // The parts alternate between the insides of blocks and the text between them.
    let inside = parts.step_by(2).filter_map(move |part| part.strip_prefix(tag)?.strip_prefix('\n'));
    inside.flat_map(|text| serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok))
}

/// The type of a message, and the form of its payload.
fn form_of(example: &RawValue) -> Option<(String, String)> {
    let fields = Fields::parse(example.get())?;
    let kind = fields.get("type").and_then(string)?;
    let payload = fields.get("payload").and_then(|raw| Fields::parse(raw.get()));
    let text = |key: &str| payload.as_ref().and_then(|payload| payload.get(key)).and_then(string);
    if FRAMES.iter().any(|frame| frame.name == kind) {
        let permission = text("purpose").filter(|purpose| purpose == Purpose::Permission.word());
        return Some((kind, permission.or_else(|| text("kind")).unwrap_or_default()));
    }
    let forms = MESSAGES.iter().find(|message| message.name == kind)?.payloads;
    let has = |key: &str| payload.as_ref().is_some_and(|payload| payload.get(key).is_some());
    let fits = |form: &&&ObjectForm| fields_of(form).iter().all(|field| field.optional || has(field.name));
    forms.iter().find(fits).map(|form| (kind, form.name.to_owned()))
}

/// JSON without blanks between its parts.
fn one_line(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let keep = |c: &char| {
        quoted ^= *c == '"' && !escaped;
        escaped = quoted && *c == '\\' && !escaped;
        quoted || !c.is_whitespace()
    };
    json.chars().filter(keep).collect()
}

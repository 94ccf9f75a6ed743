//! What the agent asks: permissions and forms, and the answers to them.

use super::Acp;
use super::updates::Call;
use crate::agent::json::{Object, text};
use crate::agent::{Event, Reply, Turn};
use crate::protocol::question::{Answer, Ask, Choice, Choices, Kind, Location, Subject, Validation};
use crate::protocol::scope::Scope;
use crate::protocol::words::{Action, Category, Purpose, Warning};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};
use std::path::PathBuf;

/// A request of the agent's that waits.
#[derive(Debug)]
pub(super) enum Pending {
    /// For a tool call; the ids of the options that hold for this request alone. One that lasts is never chosen: how
    /// far it reaches is the agent's affair, and it would not ask again.
    Permission { call: String, once: Option<String>, reject: Option<String> },
    /// A form.
    Form(Vec<Field>),
}

/// A field of a form.
#[derive(Debug)]
pub(super) struct Field {
    name: String,
    number: bool,
    required: bool,
}

impl Acp {
    /// A permission. `None`: it is not one that can be answered.
    pub(super) fn permission(&mut self, params: &Object<'_>, turn: &mut Turn) -> Option<(Pending, Vec<Ask>)> {
        let about = params.object("toolCall")?;
        let before = about.str("toolCallId").and_then(|id| self.calls.get(&id)).map(Call::identity).unwrap_or_default();
        let id = self.learn(&about)?;
        self.called = true;
        self.end_message(turn);
        if !self.calls.get(&id)?.is_own() {
            self.show(&id, turn);
        }
        let call = self.calls.get(&id)?;
        let locations = call.locations().iter();
        let subject = Subject {
            category: call.category(),
            title: call.title(),
            locations: locations
                .map(|at| Location { path: at.path.to_string_lossy().into_owned(), line: at.line })
                .collect(),
            detail: detail(&about, call),
        };
        let options = params.objects("options");
        let of_kind = |kind: &str| options.iter().find(|o| o.is("kind", kind)).and_then(|o| o.str("optionId"));
        let (once, reject) = (of_kind("allow_once"), of_kind("reject_once"));
        let text = format!("Allow {}?", subject.title);
        let ask = if once.is_some() {
            let identity = self.identity(&about, before, call);
            let scope = Scope::of(subject.category, self.tool_name(&id, call), identity.as_deref());
            Ask::permission(subject, text, scope)
        } else {
            let why = "A permission can only be denied: the agent offers no way to allow it for one request alone";
            turn.events.push(Event::Warning(Warning::UnsupportedOption, why.into()));
            Ask::denial(subject, text)
        };
        Some((Pending::Permission { call: id, once, reject }, vec![ask]))
    }

    /// What makes a call the same as another one. `before`: what was known of it before the request, which may leave
    /// out where a command runs. `None`: not all of it is known.
    fn identity(&self, about: &Object<'_>, before: String, call: &Call) -> Option<String> {
        let input = about.object("rawInput").map(|input| input.without(PROSE)).unwrap_or_default();
        if self.profile.titles_are_commands && call.category() == Category::Execute {
            let content = about.raw("content").map(RawValue::get).unwrap_or_default();
            return Some(format!("{}\n{content}\n{input}\n{before}", call.text()));
        }
        (!input.is_empty()).then(|| format!("{input}\n{before}"))
    }

    /// The name of the tool that is called.
    fn tool_name<'a>(&self, id: &'a str, call: &'a Call) -> Option<&'a str> {
        // Up to the last: what comes before it may hold the separator too.
        let in_id = id.rsplit_once("__").map(|(name, _)| name).filter(|_| self.profile.ids_name_tools);
        in_id.or(call.name())
    }
}

/// What the model says of a call, and how long it may take: neither changes what it does.
pub(super) const PROSE: &[&str] = &["description", "timeout"];

/// What exactly is to be allowed: the change, the command, else what the agent says of it.
fn detail(about: &Object<'_>, call: &Call) -> String {
    let input = about.object("rawInput");
    let field = |name: &str| input.as_ref().and_then(|input| input.str(name));
    if let Some(known) = field("diff").or_else(|| field("command")) {
        return known;
    }
    let diffs = Diff::all(about);
    if !diffs.is_empty() {
        return diffs.iter().map(Diff::text).collect();
    }
    if call.category() == Category::Execute {
        return call.text().to_owned();
    }
    // However long it is: what is allowed must be seen.
    if let Some(raw) = about.raw("rawInput").map(RawValue::get).filter(|raw| *raw != "{}") {
        return raw.to_owned();
    }
    if !call.input().is_empty() {
        return call.input().to_owned();
    }
    let texts: Vec<String> =
        about.objects("content").iter().filter_map(|part| part.object("content")?.str("text")).collect();
    if texts.is_empty() { call.text().to_owned() } else { texts.join("\n") }
}

/// A change of a file.
#[derive(Debug)]
pub(super) struct Diff<'a> {
    pub(super) path: PathBuf,
    pub(super) action: Action,
    old: Option<&'a RawValue>,
    new: Option<&'a RawValue>,
}

impl<'a> Diff<'a> {
    /// The changes in the content of a tool call.
    pub(super) fn all(about: &Object<'a>) -> Vec<Diff<'a>> {
        about.objects("content").iter().filter(|part| part.is("type", "diff")).filter_map(Diff::read).collect()
    }

    fn read(part: &Object<'a>) -> Option<Diff<'a>> {
        let old = part.raw("oldText");
        let action = match part.object("_meta").and_then(|meta| meta.str("kind")).as_deref() {
            Some("add") => Action::Created,
            Some("modify") => Action::Modified,
            Some("delete") => Action::Deleted,
            _ if old.is_none_or(|old| old.get() == "\"\"") => Action::Created,
            _ => Action::Modified,
        };
        Some(Diff { path: PathBuf::from(part.str("path")?), action, old, new: part.raw("newText") })
    }

    /// The lines that go and those that come, without the equal ones before and after.
    fn text(&self) -> String {
        let (old, new) = (self.old.and_then(text).unwrap_or_default(), self.new.and_then(text).unwrap_or_default());
        let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        (old, new) = (old.split_off(same), new.split_off(same));
        let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        old.truncate(old.len() - same);
        new.truncate(new.len() - same);
        let signed =
            |sign: char, lines: Vec<&str>| lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>();
        signed('-', old) + &signed('+', new)
    }
}

/// Whether the user is asked to fill in a form. Other elicitations are not served.
pub(super) fn is_form(params: &Object<'_>) -> bool {
    params.str("mode").is_none_or(|mode| mode == "form")
}

/// A form to fill in: one group of questions. `None`: it is none, or has no field that can be asked.
pub(super) fn form(params: &Object<'_>) -> Option<(Pending, Vec<Ask>)> {
    if !is_form(params) {
        return None;
    }
    let schema = params.object("requestedSchema")?;
    let properties = schema.object("properties")?;
    let required: Vec<String> = schema.array("required").into_iter().filter_map(text).collect();
    let message = params.str("message").unwrap_or_default();
    let (mut fields, mut asks) = (Vec::new(), Vec::new());
    for (name, raw) in properties.iter() {
        let property = Object::parse(raw.get())?;
        let number = matches!(property.str("type").as_deref(), Some("number" | "integer"));
        let required = required.iter().any(|one| one == name);
        asks.push(Ask { required, ..question(name, &property, &message) });
        fields.push(Field { name: name.to_owned(), number, required });
    }
    (!asks.is_empty()).then_some((Pending::Form(fields), asks))
}

fn question(name: &str, property: &Object<'_>, message: &str) -> Ask {
    let title = property.str("title").unwrap_or_else(|| name.to_owned());
    let label = property.str("description").unwrap_or_else(|| title.clone());
    let text = if message.is_empty() { label } else { format!("{message}\n{label}") };
    let default = property.raw("default");
    let (kind, default, validation) = match property.str("type").as_deref() {
        Some("boolean") => (Kind::Confirm, property.bool("default").map(Answer::Bool), Validation::default()),
        Some("array") => several(property),
        Some("number" | "integer") => {
            let rules = Validation {
                min: property.number("minimum"),
                max: property.number("maximum"),
                integer: property.is("type", "integer").then_some(true),
                ..Validation::default()
            };
            (Kind::Text, default.map(|raw| Answer::Text(raw.get().to_owned())), rules)
        }
        _ => match choices(property) {
            Some(choices) => {
                let kind = Kind::Select { choices, multiple: false, allow_other: false };
                (kind, property.str("default").map(Answer::One), Validation::default())
            }
            None => {
                let rules = Validation {
                    min_length: property.count("minLength"),
                    max_length: property.count("maxLength"),
                    pattern: property.str("pattern"),
                    ..Validation::default()
                };
                (Kind::Text, property.str("default").map(Answer::Text), rules)
            }
        },
    };
    Ask { default, validation, ..Ask::new(Purpose::Input, kind, &title, text) }
}

fn several(property: &Object<'_>) -> (Kind, Option<Answer>, Validation) {
    let rules = Validation {
        min_selected: property.count("minItems"),
        max_selected: property.count("maxItems"),
        ..Validation::default()
    };
    let given: Vec<String> = property.array("default").into_iter().filter_map(text).collect();
    let default = property.raw("default").map(|_| Answer::Many(given));
    match property.object("items").as_ref().and_then(choices) {
        Some(choices) => (Kind::Select { choices, multiple: true, allow_other: false }, default, rules),
        None => (Kind::Text, None, Validation::default()),
    }
}

/// The values that a string may have.
fn choices(property: &Object<'_>) -> Option<Choices> {
    let titled = ["oneOf", "anyOf"].iter().map(|name| property.objects(name)).find(|all| !all.is_empty());
    let named = |option: &Object<'_>| {
        let value = option.str("const")?;
        let label = option.str("title").unwrap_or_else(|| value.clone());
        Some(Choice { value, label, description: option.str("description") })
    };
    if let Some(all) = titled {
        return Choices::new(all.iter().filter_map(named));
    }
    let names: Vec<String> = property.array("enumNames").into_iter().filter_map(text).collect();
    let values = property.array("enum").into_iter().filter_map(text).enumerate();
    Choices::new(values.map(|(at, value)| Choice {
        label: names.get(at).unwrap_or(&value).clone(),
        value,
        description: None,
    }))
}

impl Pending {
    /// The tool call that waits for it.
    pub(super) fn call(&self) -> Option<&str> {
        match self {
            Pending::Permission { call, .. } => Some(call),
            Pending::Form(_) => None,
        }
    }

    /// Whether these replies deny it, and the denier's words.
    pub(super) fn denial(&self, replies: &[Reply]) -> Option<Option<String>> {
        match (self, replies.first()) {
            (Pending::Form(_), _) => None,
            (_, Some(Reply::Allowed)) => None,
            (_, Some(Reply::Denied(message) | Reply::Declined(message))) => Some(message.clone()),
            _ => Some(None),
        }
    }

    /// The result when the turn is cancelled.
    pub(super) fn cancelled(&self) -> Value {
        match self {
            Pending::Permission { .. } => json!({"outcome": {"outcome": "cancelled"}}),
            Pending::Form(_) => json!({"action": "cancel"}),
        }
    }

    /// The result that allows it once.
    pub(super) fn allowed(&self) -> Value {
        self.respond(&[Reply::Allowed])
    }

    /// The result for these replies.
    pub(super) fn respond(&self, replies: &[Reply]) -> Value {
        let Pending::Permission { once, reject, .. } = self else { return self.filled_in(replies) };
        let chosen = if self.denial(replies).is_none() { once } else { reject };
        match chosen {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => self.cancelled(),
        }
    }

    fn filled_in(&self, replies: &[Reply]) -> Value {
        let Pending::Form(fields) = self else { return json!({"action": "decline"}) };
        let mut content = Map::new();
        let mut given = false;
        for (field, reply) in fields.iter().zip(replies) {
            match reply {
                Reply::Answer(Answer::Null) => given = true,
                Reply::Answer(answer) => {
                    given = true;
                    content.insert(field.name.clone(), value(answer, field.number));
                }
                // A form without what it requires would not be valid.
                _ if field.required => return json!({"action": "decline"}),
                _ => {}
            }
        }
        if given { json!({"action": "accept", "content": content}) } else { json!({"action": "decline"}) }
    }
}

fn value(answer: &Answer, number: bool) -> Value {
    match answer {
        Answer::Text(text) if number => {
            let text = text.trim();
            let whole = text.parse::<i64>().ok().map(Number::from);
            whole.or_else(|| text.parse().ok().and_then(Number::from_f64)).map_or(json!(text), Value::Number)
        }
        other => json!(other),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pending, form};
    use crate::agent::Reply;
    use crate::agent::json::Object;
    use crate::protocol::question::{Answer, Kind};
    use serde_json::json;

    const FORM: &str = r#"{"mode":"form","message":"Set it up.","requestedSchema":{"type":"object","required":["db","port"],
        "properties":{"db":{"type":"string","enum":["pg","lite"],"enumNames":["Postgres","SQLite"]},
        "port":{"type":"integer","minimum":1,"default":80},"on":{"type":"boolean","default":true},
        "tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},"maxItems":1},
        "name":{"type":"string","minLength":2,"pattern":"^x"}}}}"#;

    #[test]
    fn a_form_is_a_group_of_questions_and_answers_go_back_by_name() {
        let (pending, asks) = form(&Object::parse(FORM).unwrap()).unwrap();
        assert_eq!(asks.iter().map(|ask| ask.required).collect::<Vec<_>>(), [true, true, false, false, false]);
        assert!(matches!(&asks[0].kind, Kind::Select { multiple: false, .. }));
        assert_eq!(asks[1].default, Some(Answer::Text("80".into())));
        assert_eq!((asks[1].validation.min, asks[1].validation.integer), (Some(1.0), Some(true)));
        assert_eq!(asks[2].default, Some(Answer::Bool(true)));
        assert!(matches!(&asks[3].kind, Kind::Select { multiple: true, .. }));
        assert_eq!(asks[4].validation.min_length, Some(2));
        let replies = [
            Reply::Answer(Answer::One("lite".into())),
            Reply::Answer(Answer::Text(" 5432 ".into())),
            Reply::Answer(Answer::Bool(false)),
            Reply::Answer(Answer::Many(vec!["b".into()])),
            Reply::Declined(None),
        ];
        let content = json!({"db": "lite", "port": 5432, "on": false, "tags": ["b"]});
        assert_eq!(pending.respond(&replies), json!({"action": "accept", "content": content}));
        let declined = [Reply::Declined(None), replies[1].clone(), Reply::NoUser, Reply::NoUser, Reply::NoUser];
        assert_eq!(pending.respond(&declined), json!({"action": "decline"}));
    }

    #[test]
    fn without_an_option_to_reject_a_denial_cancels() {
        let pending = Pending::Permission { call: "c".into(), once: Some("o".into()), reject: None };
        assert_eq!(pending.respond(&[Reply::Denied(None)]), json!({"outcome": {"outcome": "cancelled"}}));
        let selected = json!({"outcome": {"outcome": "selected", "optionId": "o"}});
        assert_eq!(pending.respond(&[Reply::Allowed]), selected);
    }
}

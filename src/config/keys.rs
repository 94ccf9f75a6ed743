//! The keys of the configuration: most fields of run.start and a few more, each with its default and its check.

use super::agents::Entry;
use crate::agent::registry::DEFAULT;
use crate::cli::Output;
use crate::cli::typed_fields;
use crate::json::{Fields, string};
use crate::protocol::fields::{FIELDS, Fallback, Field, Options, ProjectFileRule};
use crate::protocol::form::Form;
use crate::protocol::limits::{COMMAND_BYTES, COMMANDS};
use crate::protocol::read::{boolean, path, strings};
use crate::protocol::words::Policy;
use crate::suggest::{Typed, Unknown};
use serde_json::value::{RawValue, to_raw_value};

#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name, with a dot between an object and its key.
    pub name: &'static str,
    pub project_rule: ProjectFileRule,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Field(&'static Field),
    Output,
    /// True or false; holds the default.
    Switch(bool),
    Path,
    Texts(Checks),
}

/// Error: the fault, as the rest of a sentence about the value.
type Checks = fn(&[String]) -> Result<(), String>;

pub(super) const PREFIX: &str = "SPEKTACULAR_";

const OUTPUT: Key = Key { name: "output", project_rule: ProjectFileRule::Free, kind: Kind::Output };
const ALERT: Key = Key { name: "alert", project_rule: ProjectFileRule::Free, kind: Kind::Switch(true) };
/// The keys that follow those of the fields of run.start.
const LAST: [Key; 4] = [
    Key { name: "debug.enabled", project_rule: ProjectFileRule::Trusted, kind: Kind::Switch(false) },
    Key { name: "debug.log_dir", project_rule: ProjectFileRule::Trusted, kind: Kind::Path },
    Key { name: "worktree.copy", project_rule: ProjectFileRule::Trusted, kind: Kind::Texts(globs) },
    Key { name: "worktree.setup", project_rule: ProjectFileRule::Trusted, kind: Kind::Texts(commands) },
];

/// The maximum number of globs.
const GLOBS: usize = 100;

fn globs(all: &[String]) -> Result<(), String> {
    let is_inside =
        |glob: &str| !glob.starts_with('/') && !glob.contains('\0') && glob.split('/').all(|part| part != "..");
    if all.len() > GLOBS || all.iter().any(|glob| glob.is_empty() || !is_inside(glob)) {
        return Err(format!("must be a list of at most {GLOBS} globs below the project's directory, without `..`"));
    }
    Ok(())
}

fn commands(all: &[String]) -> Result<(), String> {
    let fits = |command: &str| {
        command.len() <= COMMAND_BYTES && !command.trim().is_empty() && !command.contains(['\n', '\r', '\0'])
    };
    if all.len() > COMMANDS || !all.iter().all(|command| fits(command)) {
        return Err(format!(
            "must be a list of at most {COMMANDS} commands, each in one line of at most {COMMAND_BYTES} bytes"
        ));
    }
    Ok(())
}

/// The fields of run.start that are not keys, because they belong to one run.
pub fn of_one_run() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().filter(|field| field.key.is_none()).map(|field| field.name)
}

const COUNT: usize = {
    let (mut count, mut at) = (2 + LAST.len(), 0);
    while at < FIELDS.len() {
        count += FIELDS[at].key.is_some() as usize;
        at += 1;
    }
    count
};

/// Every key except those of `agents`: `output`, `alert`, the fields of run.start in their order, `debug`, `worktree`.
pub static KEYS: &[Key] = &{
    let mut keys = [OUTPUT; COUNT];
    keys[1] = ALERT;
    let (mut next, mut at) = (2, 0);
    while at < FIELDS.len() {
        let field = &FIELDS[at];
        if let Some(project_rule) = field.key {
            keys[next] = Key { name: field.name, project_rule, kind: Kind::Field(field) };
            next += 1;
        }
        at += 1;
    }
    [keys[next], keys[next + 1], keys[next + 2], keys[next + 3]] = LAST;
    keys
};

impl Key {
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('.', "_"))
    }

    pub fn built_in(&self) -> Option<Box<RawValue>> {
        match self.kind {
            Kind::Field(field) => match field.fallback {
                Fallback::Value(value) => value(),
                Fallback::Agent => to_raw_value(DEFAULT).ok(),
                Fallback::Absent | Fallback::Driver(_) => None,
            },
            Kind::Output => to_raw_value(Output::WORDS[0]).ok(),
            Kind::Switch(value) => to_raw_value(&value).ok(),
            Kind::Path => to_raw_value(".spektacular/debug/logs").ok(),
            Kind::Texts(_) => None,
        }
    }

    /// All values, if they are words. `agents`: the names of the agents.
    pub fn words(&self, agents: &[String]) -> Vec<String> {
        let words: &[&str] = match self.kind {
            Kind::Field(Field { fallback: Fallback::Agent, .. }) => return agents.to_vec(),
            Kind::Field(field) => match field.form {
                Form::Word(set) => set.words,
                Form::Bool => &["true", "false"],
                Form::Either(forms) => return words_of(forms),
                Form::Policies(_) => Policy::WORDS,
                Form::Text
                | Form::Shaped(_)
                | Form::Integer
                | Form::Number
                | Form::Within(_)
                | Form::List(_)
                | Form::AtMost(..)
                | Form::Map(_)
                | Form::Named(..)
                | Form::Object(_)
                | Form::AnyObject
                | Form::Any
                | Form::True
                | Form::Schema
                | Form::Nullable(_) => &[],
            },
            Kind::Output => Output::WORDS,
            Kind::Switch(_) => &["true", "false"],
            Kind::Path | Kind::Texts(_) => &[],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    pub(super) fn is_field(&self) -> bool {
        matches!(self.kind, Kind::Field(_))
    }
}

fn words_of(forms: &[Form]) -> Vec<String> {
    let sets = forms.iter().filter_map(|form| if let Form::Word(set) = form { Some(set.words) } else { None });
    sets.flatten().map(|word| (*word).to_owned()).collect()
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Slot<'a> {
    Key(&'a Key),
    /// A field of `agents.NAME`.
    Agent(&'a str, &'static str),
}

impl Slot<'_> {
    pub(super) fn project_rule(&self) -> ProjectFileRule {
        match self {
            Slot::Key(key) => key.project_rule,
            Slot::Agent(..) => ProjectFileRule::Trusted,
        }
    }

    pub(super) fn outermost(&self) -> &str {
        match self {
            Slot::Key(key) => key.name.split('.').next().unwrap_or_default(),
            Slot::Agent(..) => "agents",
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Slot::Key(key) => key.name.to_owned(),
            Slot::Agent(agent, field) => format!("agents.{agent}.{field}"),
        }
    }

    /// Error: the fault, as the rest of a sentence about the value.
    pub(super) fn check(&self, raw: &RawValue) -> Result<(), String> {
        let must_be = |expected: &str| format!("must be {expected}");
        match self {
            Slot::Key(key) => match key.kind {
                Kind::Field(_) => Options::default().set(key.name, raw).map_err(|problem| problem.clause()),
                Kind::Output => {
                    let words =
                        || Output::WORDS.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
                    let read = string(raw).and_then(|word| Output::from_word(&word));
                    read.map(drop).ok_or_else(|| must_be(&words()))
                }
                Kind::Switch(_) => boolean(raw).map(drop).map_err(|why| must_be(why.unwrap_or_default())),
                Kind::Path => path(raw).map(drop).map_err(|_| must_be("a path")),
                Kind::Texts(fits) => fits(&strings(raw).map_err(|why| must_be(why.unwrap_or("a list of strings")))?),
            },
            Slot::Agent(_, field) => Entry::default().set(field, raw).map_err(|problem| problem.clause()),
        }
    }

    /// Error: the fault, as the rest of a sentence about the value.
    pub(super) fn typed(&self, text: &str) -> Result<Box<RawValue>, String> {
        if let Slot::Key(Key { kind: Kind::Field(_), name, .. }) = self {
            return typed_fields::value(name, text);
        }
        if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(text)
            && self.check(&raw).is_ok()
        {
            return Ok(raw);
        }
        let raw = match self {
            Slot::Key(Key { kind: Kind::Texts(_), .. }) => to_raw_value(&[text]),
            Slot::Key(_) | Slot::Agent(..) => to_raw_value(text),
        };
        let raw = raw.map_err(|_| "must be text".to_owned())?;
        self.check(&raw).map(|()| raw)
    }
}

/// Whether a name is that of an object of keys.
fn is_group(name: &str) -> bool {
    matches!(name, "" | "debug" | "worktree" | "agents")
        || name.strip_prefix("agents.").is_some_and(|agent| !agent.contains('.'))
}

fn is_agent_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || matches!(b, b'_' | b'-'))
}

/// The slot with this name. `place`: where the name was read, after a blank. Error: a message.
pub(super) fn slot<'a>(name: &'a str, place: &str) -> Result<Slot<'a>, String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(Slot::Key(key));
    }
    // A comma ends a subject that includes a place.
    let there = if place.is_empty() { String::new() } else { format!("{place},") };
    if let Some(agent) = name.strip_prefix("agents.") {
        return of_agent(agent, place, &there);
    }
    if is_group(name) && !name.is_empty() {
        return Err(format!("{name}{there} must be an object."));
    }
    if of_one_run().any(|field| field == name) {
        return Err(format!("{name}{there} is not a key, because it belongs to a single run."));
    }
    if let Some(key) = KEYS.iter().find(|key| name.strip_prefix(key.name).is_some_and(|rest| rest.starts_with('.'))) {
        return Err(format!("{}{there} has no keys inside. Set it as a whole, as JSON.", key.name));
    }
    if name.is_empty() {
        return Err(format!(
            "A key{there} is empty or contains a dot. Nest objects, as in {{\"debug\": {{\"enabled\": true}}}}."
        ));
    }
    let names = KEYS.iter().map(|key| key.name).chain(["agents"]);
    Err(unknown("key", name, place).message(names, "`spektacular help config reference` lists the keys."))
}

/// The field of an agent: `NAME.FIELD`.
fn of_agent<'a>(name: &'a str, place: &str, there: &str) -> Result<Slot<'a>, String> {
    let (agent, field) = name.split_once('.').unwrap_or((name, ""));
    if !is_agent_name(agent) {
        let rule = "must have 1 to 64 characters out of a-z, 0-9, _ and -, and begin with a letter or a digit";
        return Err(format!("The name of an agent{there} {rule}."));
    }
    let fields = || format!("Its fields are {}.", Entry::NAMES.join(", "));
    if field.is_empty() {
        return Err(format!("agents.{agent}{there} must be an object. {}", fields()));
    }
    match Entry::NAMES.iter().find(|known| **known == field) {
        Some(field) => Ok(Slot::Agent(agent, field)),
        None => {
            let place = format!(" of agents.{agent}{place}");
            Err(unknown("field", field, &place).message(Entry::NAMES.iter().copied(), &fields()))
        }
    }
}

fn unknown<'a>(what: &'a str, typed: &'a str, place: &'a str) -> Unknown<'a> {
    Unknown { what, typed: Typed::Name(typed), place, dashes: "" }
}

/// The values in an object, by dotted name. A value in the place of an object counts as a value.
pub(super) fn leaves<'a>(name: &str, raw: &'a RawValue, found: &mut Vec<(String, &'a RawValue)>) {
    match Fields::parse(raw.get()).filter(|_| is_group(name)) {
        None => found.push((name.to_owned(), raw)),
        Some(fields) => {
            for (key, value) in fields.iter() {
                match (name, key) {
                    // In a file, keys have no dots and are not empty.
                    (_, key) if key.contains('.') || key.is_empty() => found.push((String::new(), value)),
                    ("", key) => leaves(key, value, found),
                    (name, key) => leaves(&format!("{name}.{key}"), value, found),
                }
            }
        }
    }
}

/// Reads a typed value for a key or for an object of keys. Error: a message.
pub fn typed(name: &str, text: &str) -> Result<Box<RawValue>, String> {
    if !is_group(name) || name.is_empty() {
        return slot(name, "")?.typed(text).map_err(|why| format!("{name} {why}."));
    }
    known(name)?;
    let raw: Box<RawValue> =
        serde_json::from_str(text).map_err(|_| format!("{name} must be an object, written as JSON."))?;
    let mut found = Vec::new();
    leaves(name, &raw, &mut found);
    for (name, raw) in found {
        let slot = slot(&name, "")?;
        slot.check(raw).map_err(|why| format!("{} {why}.", slot.name()))?;
    }
    Ok(raw)
}

/// Checks that a key or an object of keys exists. Error: a message.
pub fn known(name: &str) -> Result<(), String> {
    match slot(name, "") {
        Err(why) if name.is_empty() || !is_group(name) => Err(why),
        Err(why) if name.strip_prefix("agents.").is_some_and(|agent| !is_agent_name(agent)) => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYS, known, slot, typed};
    use crate::protocol::fields::Options;
    use std::path::PathBuf;

    #[test]
    fn the_defaults_of_the_keys_are_the_settings_of_an_empty_run_start() {
        let mut said = Options::default();
        for key in KEYS.iter().filter(|key| key.is_field()) {
            if let Some(value) = key.built_in() {
                said.set(key.name, &value).unwrap();
            }
        }
        assert_eq!(said.agent.as_deref(), Some(crate::agent::registry::DEFAULT));
        assert_eq!(said.idle_timeout_s.map(|seconds| seconds.0), Some(600.0));
        let settled = |options: Options| {
            let mut settings = options.resolve("p".into(), "a".into(), PathBuf::from("/"));
            // Only whether a layer sets it differs.
            settings.sets_on_question_timeout = false;
            format!("{settings:?}")
        };
        assert_eq!(settled(said), settled(Options::default()));
    }

    #[test]
    fn wrong_names_get_a_suggestion() {
        for (name, hint) in [
            ("modle", "Unknown key modle. Did you mean model?"),
            ("timeout", "Did you mean timeout_s?"),
            ("debug.enable", "Did you mean debug.enabled?"),
            ("agents.mine.comand", "Unknown field comand of agents.mine. Did you mean command?"),
            ("agents.mine.zzz", "Its fields are driver, command,"),
            ("agents.Mine.command", "The name of an agent must have"),
            ("env.NAME", "env has no keys inside. Set it as a whole"),
            ("prompt", "prompt is not a key, because it belongs to a single run."),
            ("zzz", "lists the keys"),
            ("", "A key is empty or contains a dot"),
        ] {
            let why = slot(name, "").map(|_| ()).unwrap_err();
            assert!(why.contains(hint), "{name}: {why}");
            assert!(known(name).is_err(), "{name}");
        }
        for name in ["model", "debug", "agents", "agents.mine", "agents.mine.env", "debug.log_dir"] {
            assert_eq!(known(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_typed_value_is_read_as_json_if_it_fits() {
        for (name, text, stored) in [
            ("model", "12", "\"12\""),
            ("permissions", "read=allow,*=deny", r#"{"read":"allow","*":"deny"}"#),
            ("mcp_servers", r#"{"mcpServers":{"a":{"command":"x"}}}"#, r#"[{"name":"a","command":"x"}]"#),
            ("debug.enabled", "true", "true"),
            ("debug.log_dir", "12", "\"12\""),
            ("agents.mine", r#"{ "driver":"acp" }"#, r#"{ "driver":"acp" }"#),
        ] {
            assert_eq!(typed(name, text).unwrap().get(), stored, "{name}");
        }
        for (name, text, why) in [
            ("timeout_s", "-1", "timeout_s must be a number of seconds above 0."),
            ("model", "", "model must be a non-empty string."),
            ("debug.enabled", "yes", "debug.enabled must be true or false."),
            ("output", "xml", "output must be \"cli\" or \"json\"."),
            ("agents.mine", r#"{"comand":"x"}"#, "Did you mean command?"),
            ("agents.mine", r#"{"driver":"x"}"#, "agents.mine.driver must be one of"),
            ("agents.mine.driver", "x", "agents.mine.driver must be one of"),
            ("agents.mine.env", r#"{"a b":"c"}"#, "agents.mine.env must be an object of strings"),
            ("agents.a b", "x", "The name of an agent must have"),
            ("debug", "on", "debug must be an object"),
        ] {
            let said = typed(name, text).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
    }
}

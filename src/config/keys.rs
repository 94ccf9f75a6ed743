//! Every key of a configuration, in one table: what its value must be, what it is by itself, and whose word counts.

use super::agents::Entry;
use crate::help::did_you_mean;
use crate::protocol::json::{Fields, string};
use crate::protocol::request::{Options, Problem, boolean, path};
use serde_json::value::RawValue;

/// One key.
#[derive(Debug)]
pub struct Key {
    /// The name. A dot leads into an object.
    pub name: &'static str,
    /// Its value as JSON, where nobody sets it.
    pub built_in: Option<&'static str>,
    /// How careful one must be with it.
    pub care: Care,
    kind: Kind,
}

/// How careful one must be with a key. A project's file comes with the project, perhaps from a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// A project's file may set it unasked: it runs nothing, allows nothing, and gives nothing away.
    Free,
    /// It counts from a project's file only if that is trusted.
    Trusted,
    /// The same, and it protects its user: a value that cannot be used is not passed over.
    Guards,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A field of run.start.
    Field,
    Output,
    Switch,
    Path,
}

const fn field(name: &'static str, built_in: Option<&'static str>, care: Care) -> Key {
    Key { name, built_in, care, kind: Kind::Field }
}

/// The fields of run.start that are no keys: they belong to one run.
pub const OF_ONE_RUN: &[&str] = &["prompt", "session_id", "metadata"];

/// Every key but those of `agents`.
pub static KEYS: &[Key] = &[
    Key { name: "output", built_in: Some("\"cli\""), care: Care::Free, kind: Kind::Output },
    // Not every agent asks before it acts, and some are fetched when they are first named.
    field("agent", Some("\"claude\""), Care::Trusted),
    field("model", None, Care::Free),
    field("effort", None, Care::Free),
    // A mode may allow what others ask for.
    field("mode", None, Care::Trusted),
    field("system_prompt", None, Care::Trusted),
    field("cwd", None, Care::Trusted),
    field("add_dirs", Some("[]"), Care::Trusted),
    field("interactive", Some("true"), Care::Free),
    field("permissions", Some("\"ask\""), Care::Guards),
    field("allowed_tools", None, Care::Guards),
    field("disallowed_tools", None, Care::Guards),
    field("mcp_servers", Some("[]"), Care::Trusted),
    field("timeout_s", None, Care::Free),
    // None: it depends on the agent.
    field("start_timeout_s", None, Care::Free),
    field("idle_timeout_s", Some("600"), Care::Free),
    field("tool_timeout_s", Some("3600"), Care::Free),
    field("question_timeout_s", Some("300"), Care::Free),
    field("on_question_timeout", Some("\"fail\""), Care::Free),
    field("max_turns", None, Care::Trusted),
    field("max_cost_usd", None, Care::Trusted),
    field("progress", Some("\"normal\""), Care::Free),
    field("heartbeat_s", Some("30"), Care::Free),
    field("max_frame_bytes", Some("262144"), Care::Free),
    field("env", Some("{}"), Care::Trusted),
    field("env_allow", None, Care::Guards),
    field("secrets", Some("[]"), Care::Guards),
    field("agent_args", Some("[]"), Care::Trusted),
    field("output_schema", None, Care::Free),
    field("completion_marker", Some("\"<promise>COMPLETE</promise>\""), Care::Free),
    field("question_markers", Some("true"), Care::Free),
    field("raw_prompt", Some("false"), Care::Trusted),
    Key { name: "debug.enabled", built_in: Some("false"), care: Care::Trusted, kind: Kind::Switch },
    Key { name: "debug.log_dir", built_in: Some("\".spektacular/debug/logs\""), care: Care::Trusted, kind: Kind::Path },
];

impl Key {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("SPEKTACULAR_{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// Whether it is a field of run.start.
    pub(super) fn is_field(&self) -> bool {
        matches!(self.kind, Kind::Field)
    }

    /// Reads a value from a shell: JSON where that fits, else a string.
    pub(super) fn typed(&self, text: &str) -> Result<Box<RawValue>, String> {
        Slot::Key(self).typed(text)
    }
}

/// Where one value goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot<'a> {
    Key(&'a Key),
    /// A field of `agents.NAME`.
    Agent(&'a str, &'static str),
}

impl Slot<'_> {
    pub(super) fn care(&self) -> Care {
        match self {
            Slot::Key(key) => key.care,
            Slot::Agent(..) => Care::Trusted,
        }
    }

    /// The outermost key, as a warning names it.
    pub(super) fn outermost(&self) -> &str {
        match self {
            Slot::Key(key) => key.name.split('.').next().unwrap_or_default(),
            Slot::Agent(..) => "agents",
        }
    }

    /// What the value must be, if it is not.
    pub(super) fn check(&self, raw: &RawValue) -> Result<(), String> {
        let expected = |problem| match problem {
            Problem::Field { expected, .. } => expected,
            Problem::Repeated => "an object without a repeated key",
        };
        let done = match self {
            Slot::Key(key) => match key.kind {
                Kind::Field => Options::default().set(key.name, raw).map_err(expected),
                Kind::Output => {
                    let fits = string(raw).is_some_and(|word| word == "cli" || word == "json");
                    fits.then_some(()).ok_or("one of \"cli\", \"json\"")
                }
                Kind::Switch => boolean(raw).map(drop).map_err(Option::unwrap_or_default),
                Kind::Path => path(raw).map(drop).map_err(|_| "a path"),
            },
            Slot::Agent(_, field) => Entry::default().set(field, raw).map_err(expected),
        };
        done.map_err(|expected| match self {
            Slot::Key(key) => format!("{} must be {expected}", key.name),
            Slot::Agent(name, field) => format!("agents.{name}.{field} must be {expected}"),
        })
    }

    fn typed(&self, text: &str) -> Result<Box<RawValue>, String> {
        if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(text)
            && self.check(&raw).is_ok()
        {
            return Ok(raw);
        }
        let raw = serde_json::value::to_raw_value(text).map_err(|_| "The value must be text".to_owned())?;
        self.check(&raw).map(|()| raw)
    }
}

/// Whether a name stands for an object of keys.
fn is_group(name: &str) -> bool {
    matches!(name, "" | "debug" | "agents") || name.strip_prefix("agents.").is_some_and(|agent| !agent.contains('.'))
}

/// Whether an agent can have this name.
fn is_agent_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || matches!(b, b'_' | b'-'))
}

/// The place with this name. Error: one sentence without its full stop, with a suggestion.
pub(super) fn slot(name: &str) -> Result<Slot<'_>, String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(Slot::Key(key));
    }
    if let Some(agent) = name.strip_prefix("agents.") {
        let (agent, field) = agent.split_once('.').unwrap_or((agent, ""));
        if !is_agent_name(agent) {
            return Err(
                "An agent's name must be at most 64 of a-z, 0-9, _ and -, and begin with none of the last two".into()
            );
        }
        if field.is_empty() {
            return Err(format!("agents.{agent} must be an object of: {}", Entry::NAMES.join(", ")));
        }
        return match Entry::NAMES.iter().find(|known| **known == field) {
            Some(field) => Ok(Slot::Agent(agent, field)),
            None => Err(match did_you_mean(field, Entry::NAMES.iter().copied()) {
                Some(meant) => format!("An agent has no such field. Did you mean {meant}?"),
                None => format!("An agent has no such field, but: {}", Entry::NAMES.join(", ")),
            }),
        };
    }
    if is_group(name) && !name.is_empty() {
        return Err(format!("{name} must be an object"));
    }
    if OF_ONE_RUN.contains(&name) {
        return Err(format!("{name} is no key: it belongs to one run"));
    }
    if let Some(key) = KEYS.iter().find(|key| name.strip_prefix(key.name).is_some_and(|rest| rest.starts_with('.'))) {
        return Err(format!("{} is set as a whole, as JSON", key.name));
    }
    let names = KEYS.iter().map(|key| key.name).chain(["agents"]);
    Err(match did_you_mean(name, names) {
        Some(meant) => format!("There is no such key. Did you mean {meant}?"),
        None => "There is no such key. `spektacular config --help` lists the keys".into(),
    })
}

/// The values in an object, by their dotted names. What should be an object and is none counts as a value.
pub(super) fn leaves<'a>(name: &str, raw: &'a RawValue, found: &mut Vec<(String, &'a RawValue)>) {
    match Fields::parse(raw.get()).filter(|_| is_group(name)) {
        None => found.push((name.to_owned(), raw)),
        Some(fields) => {
            for (key, value) in fields.iter() {
                match (name, key) {
                    // No key of a file has a dot, and no name is empty.
                    (_, key) if key.contains('.') || key.is_empty() => found.push((String::new(), value)),
                    ("", key) => leaves(key, value, found),
                    (name, key) => leaves(&format!("{name}.{key}"), value, found),
                }
            }
        }
    }
}

/// Reads what was typed for a key, or for an object of keys. Error: one sentence without its full stop.
pub fn typed(name: &str, text: &str) -> Result<Box<RawValue>, String> {
    if !is_group(name) || name.is_empty() {
        return slot(name)?.typed(text);
    }
    let raw: Box<RawValue> =
        serde_json::from_str(text).map_err(|_| format!("{name} must be an object, written as JSON"))?;
    let mut found = Vec::new();
    leaves(name, &raw, &mut found);
    found.iter().try_for_each(|(name, raw)| slot(name)?.check(raw))?;
    Ok(raw)
}

/// Whether there is such a key, or object of keys. Error: one sentence without its full stop, with a suggestion.
pub fn known(name: &str) -> Result<(), String> {
    match slot(name) {
        Err(why) if name.is_empty() || !is_group(name) => Err(why),
        Err(why) if name.strip_prefix("agents.").is_some_and(|agent| !is_agent_name(agent)) => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYS, OF_ONE_RUN, known, slot, typed};
    use crate::protocol::request::Options;
    use serde_json::value::RawValue;
    use std::path::PathBuf;

    #[test]
    fn every_field_of_run_start_is_a_key_or_belongs_to_one_run() {
        let mut names: Vec<&str> =
            KEYS.iter().filter(|key| key.is_field()).map(|key| key.name).chain(OF_ONE_RUN.iter().copied()).collect();
        let mut all = Options::NAMES.to_vec();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    #[test]
    fn the_table_says_what_is_so_where_nobody_sets_anything() {
        let mut said = Options::default();
        for key in KEYS.iter().filter(|key| key.is_field()) {
            if let Some(value) = key.built_in {
                let raw: Box<RawValue> = serde_json::from_str(value).unwrap();
                said.set(key.name, &raw).unwrap();
            }
        }
        assert_eq!(said.agent.as_deref(), Some(crate::agent::registry::DEFAULT));
        let settled = |options: Options| format!("{:?}", options.resolve("p".into(), "a".into(), PathBuf::from("/")));
        assert_eq!(settled(said), settled(Options::default()));
    }

    #[test]
    fn wrong_names_get_a_suggestion() {
        for (name, hint) in [
            ("modle", "Did you mean model?"),
            ("timeout", "Did you mean timeout_s?"),
            ("debug.enable", "Did you mean debug.enabled?"),
            ("agents.mine.comand", "Did you mean command?"),
            ("agents.Mine.command", "An agent's name must be"),
            ("env.NAME", "env is set as a whole"),
            ("prompt", "it belongs to one run"),
            ("zzz", "lists the keys"),
            ("", "lists the keys"),
        ] {
            let why = slot(name).unwrap_err();
            assert!(why.contains(hint), "{name}: {why}");
            assert!(known(name).is_err(), "{name}");
        }
        for name in ["model", "debug", "agents", "agents.mine", "agents.mine.env", "debug.log_dir"] {
            assert_eq!(known(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_is_typed_is_json_where_that_fits() {
        for (name, text, stored) in [
            ("model", "12", "\"12\""),
            ("model", "a\"b", "\"a\\\"b\""),
            ("timeout_s", "12", "12"),
            ("permissions", "deny", "\"deny\""),
            ("permissions", r#"{"edit":"deny"}"#, r#"{"edit":"deny"}"#),
            ("debug.enabled", "true", "true"),
            ("agents.mine", r#"{ "driver":"acp" }"#, r#"{ "driver":"acp" }"#),
        ] {
            assert_eq!(typed(name, text).unwrap().get(), stored, "{name}");
        }
        for (name, text, why) in [
            ("timeout_s", "-1", "timeout_s must be a number of seconds above 0"),
            ("debug.enabled", "yes", "debug.enabled must be true or false"),
            ("output", "xml", "output must be one of"),
            ("agents.mine", r#"{"comand":"x"}"#, "Did you mean command?"),
            ("agents.mine.driver", "x", "agents.mine.driver must be one of"),
            ("agents.mine.env", r#"{"a b":"c"}"#, "agents.mine.env must be an object of strings"),
            ("debug", "on", "debug must be an object"),
        ] {
            let said = typed(name, text).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
    }
}

//! The modes and the model of a session, and how much each mode asks. Agents name their modes as they like, so that the
//! names are data: a rule for every agent, also for one that nobody tried.

use super::errors;
use super::profile::Profile;
use crate::json::{Object, Raw};
use crate::protocol::failure::Failure;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskLevel {
    /// Some actions are allowed without a request.
    Allows,
    Unknown,
    /// Whatever acts needs permission.
    Asks,
    /// The agent only reads and plans.
    Reads,
}

/// The names of modes, in lowercase letters and digits. `*` stands for any text. The first that fits counts.
static NAMES: &[(&str, AskLevel)] = &[
    ("autooff", AskLevel::Asks),
    ("*auto*", AskLevel::Allows),
    ("*yolo*", AskLevel::Allows),
    ("*accept*", AskLevel::Allows),
    ("*bypass*", AskLevel::Allows),
    ("*skip*", AskLevel::Allows),
    ("*dangerous*", AskLevel::Allows),
    ("*unrestricted*", AskLevel::Allows),
    ("*fullaccess*", AskLevel::Allows),
    ("*workspacewrite*", AskLevel::Allows),
    ("*workspaceaccess*", AskLevel::Allows),
    ("*allowall*", AskLevel::Allows),
    ("*allowedits*", AskLevel::Allows),
    ("*approveall*", AskLevel::Allows),
    ("*llmapprove*", AskLevel::Allows),
    ("*alwaysallow*", AskLevel::Allows),
    ("*alwaysapprove*", AskLevel::Allows),
    ("*alwaysproceed*", AskLevel::Allows),
    ("*noapproval*", AskLevel::Allows),
    ("*withoutapproval*", AskLevel::Allows),
    ("*dontask*", AskLevel::Allows),
    ("*neverask*", AskLevel::Allows),
    ("*noask*", AskLevel::Allows),
    ("*risk*", AskLevel::Allows),
    ("never", AskLevel::Allows),
    ("turbo*", AskLevel::Allows),
    ("default*", AskLevel::Asks),
    ("ask*", AskLevel::Asks),
    ("alwaysask*", AskLevel::Asks),
    ("manual*", AskLevel::Asks),
    ("normal*", AskLevel::Asks),
    ("confirm*", AskLevel::Asks),
    ("supervised*", AskLevel::Asks),
    ("suggest*", AskLevel::Asks),
    ("untrusted*", AskLevel::Asks),
    ("*approval*", AskLevel::Asks),
    ("plan*", AskLevel::Reads),
    ("*readonly*", AskLevel::Reads),
    ("spec*", AskLevel::Reads),
];

/// The names of switches that make an agent allow by itself when they are on.
static SWITCHES: &[&str] = &[
    "*autoapprov*",
    "*autoaccept*",
    "*autoallow*",
    "*autoedit*",
    "*autoexec*",
    "*autorun*",
    "*yolo*",
    "*bypass*",
    "*skippermission*",
    "*unrestricted*",
    "*fullaccess*",
    "*allowall*",
    "*alwaysallow*",
    "*alwaysapprove*",
    "*dontask*",
];

/// The names of options of a request that reach beyond it.
static LASTING: &[&str] = &[
    "*always*",
    "*auto*",
    "*bypass*",
    "*dontask*",
    "*permanent*",
    "*project*",
    "*remember*",
    "*risk*",
    "*session*",
    "*yolo*",
];

pub(super) fn lasts(name: &str) -> bool {
    is_one_of(&plain(name), LASTING)
}

/// Options whose values are modes, by category, id or name.
static OPTIONS: &[&str] = &["mode", "*permission*", "*approval*", "*autonomy*"];

fn fits(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => name == pattern,
        (None, Some(beginning)) => name.starts_with(beginning),
        (Some(end), None) => name.ends_with(end),
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
    }
}

/// A name in lowercase letters and digits; of an address only the last part.
fn plain(name: &str) -> String {
    let last = name.rsplit(['#', '/']).next().unwrap_or_default();
    last.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_one_of(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

/// An id or a name that allows decides.
fn level(names: [&str; 2]) -> AskLevel {
    let of = |name: &str| {
        let name = plain(name);
        NAMES.iter().find(|(pattern, _)| fits(&name, pattern)).map_or(AskLevel::Unknown, |(_, level)| *level)
    };
    match names.map(of) {
        [AskLevel::Allows, _] | [_, AskLevel::Allows] => AskLevel::Allows,
        [AskLevel::Unknown, by_name] => by_name,
        [by_id, AskLevel::Unknown | AskLevel::Asks | AskLevel::Reads] => by_id,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Setter {
    Option(String),
    #[default]
    Request,
}

#[derive(Debug)]
struct Mode {
    value: Value,
    level: AskLevel,
}

/// Modes of which a session has one at a time.
#[derive(Debug)]
pub(super) struct Modes {
    pub(super) set: Setter,
    pub(super) current: Option<Value>,
    all: Vec<Mode>,
}

impl Modes {
    /// The first is the one that `mode` selects.
    pub(super) fn of_session(result: &Object<'_>, profile: &Profile) -> Vec<Modes> {
        let mut found = Vec::new();
        let main = option(result, "mode");
        let main_id = main.as_ref().map(|(_, id)| id.clone());
        match main {
            Some((option, id)) => found.push(Modes::of_option(&option, id, profile)),
            None => found.extend(result.object("modes").map(|modes| Modes::of_modes(&modes, profile))),
        }
        for option in result.objects("configOptions") {
            let Some(id) = option.string("id").filter(|id| Some(id) != main_id.as_ref()) else { continue };
            let names = [option.str("category"), Some(id.as_str().into()), option.str("name")];
            let names: Vec<String> = names.into_iter().flatten().map(|name| plain(&name)).collect();
            let is = |patterns: &[&str]| names.iter().any(|name| is_one_of(name, patterns));
            if is(SWITCHES) {
                found.push(Modes::of_switch(&option, id));
            } else if is(OPTIONS) && option.list("options").is_some() {
                found.push(Modes::of_option(&option, id, profile));
            }
        }
        found
    }

    fn of_option(option: &Object<'_>, id: String, profile: &Profile) -> Modes {
        let all = option.objects("options").filter_map(|mode| Mode::read(&mode, "value", profile)).collect();
        Modes { set: Setter::Option(id), current: option.string("currentValue").map(Value::from), all }
    }

    fn of_modes(modes: &Object<'_>, profile: &Profile) -> Modes {
        let all = modes.objects("availableModes").filter_map(|mode| Mode::read(&mode, "id", profile)).collect();
        Modes { set: Setter::Request, current: modes.string("currentModeId").map(Value::from), all }
    }

    /// Reads a switch that makes the agent allow by itself: a boolean, or one of two words.
    fn of_switch(option: &Object<'_>, id: String) -> Modes {
        let read = |value: Raw<'_>| match value.str() {
            Some(text) => Some(json!(text)),
            None => serde_json::from_str(value.get()).ok().filter(Value::is_boolean),
        };
        let named: Vec<Value> = option.objects("options").filter_map(|o| o.raw("value").and_then(read)).collect();
        let values = if named.is_empty() { vec![json!(false), json!(true)] } else { named };
        let is_off = |value: &Value| match value.as_str() {
            Some(text) => ["off", "false", "no", "never", "disabled", "none"].contains(&plain(text).as_str()),
            None => value == &json!(false),
        };
        let mode = |value: Value| {
            let level = if is_off(&value) { AskLevel::Asks } else { AskLevel::Allows };
            Mode { value, level }
        };
        let all = values.into_iter().map(mode).collect();
        Modes { set: Setter::Option(id), current: option.raw("currentValue").and_then(read), all }
    }

    pub(super) fn allows(&self, value: &Value) -> bool {
        self.all.iter().any(|mode| mode.value == *value && mode.level == AskLevel::Allows)
    }

    pub(super) fn names(&self, profile: &Profile) -> Vec<String> {
        let names = self.all.iter().filter_map(|mode| mode.value.as_str());
        let may = |name: &&str| profile.modes.is_none_or(|modes| modes.contains(name));
        names.filter(may).map(str::to_owned).collect()
    }

    /// The mode that asks most. `reads`: one that only reads is better. `None`: none is known to ask, and the current one
    /// allows by itself.
    pub(super) fn choose(&self, reads: bool) -> Option<ModeChoice> {
        let current = self.current.as_ref().and_then(|value| self.all.iter().find(|mode| mode.value == *value));
        let wanted: &[AskLevel] = if reads { &[AskLevel::Reads, AskLevel::Asks] } else { &[AskLevel::Asks] };
        for wanted in wanted {
            if current.is_some_and(|mode| mode.level == *wanted) {
                return Some(ModeChoice::Stay(*wanted));
            }
            if let Some(mode) = self.all.iter().find(|mode| mode.level == *wanted) {
                return Some(ModeChoice::Change(mode.value.clone(), *wanted));
            }
        }
        let may_ask = || self.all.iter().any(|mode| mode.level != AskLevel::Allows);
        match current.map(|mode| mode.level) {
            Some(AskLevel::Allows) => None,
            Some(level) => Some(ModeChoice::Stay(level)),
            // Whether the agent asks shows once it acts.
            None => may_ask().then_some(ModeChoice::Stay(AskLevel::Unknown)),
        }
    }
}

impl Mode {
    fn read(mode: &Object<'_>, id: &str, profile: &Profile) -> Option<Mode> {
        let id = mode.string(id)?;
        let is_known = profile.asking_mode == Some(&*id);
        let name = mode.str("name").unwrap_or_default();
        Some(Mode { level: if is_known { AskLevel::Asks } else { level([&id, &name]) }, value: id.into() })
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum ModeChoice {
    Stay(AskLevel),
    Change(Value, AskLevel),
}

/// Returns the option with this id, or else with this category, and its id. An agent may have several of a category.
fn option<'a>(result: &Object<'a>, what: &str) -> Option<(Object<'a>, String)> {
    let of = |field: &'static str| result.objects("configOptions").find(|option| option.is(field, what));
    let option = of("id").or_else(|| of("category"))?;
    let id = option.string("id")?;
    Some((option, id))
}

#[derive(Debug, Default)]
pub(super) struct ModelChoice {
    pub(super) method: Setter,
    pub(super) current: Option<String>,
    /// Whether the session offers a list of models without any.
    is_empty: bool,
}

/// Whether a model is one of those that OpenCode offers to everybody, with or without a login: `opencode/big-pickle`, and
/// `opencode/…-free`.
fn is_for_everybody(model: &str) -> bool {
    model.strip_prefix("opencode/").is_some_and(|name| name == "big-pickle" || name.ends_with("-free"))
}

impl ModelChoice {
    /// The failure of a session whose model nobody chose: without credentials for the configured model, or without a
    /// configured one, OpenCode takes a remote model of its own, to which the prompt and the code would go.
    pub(super) fn stand_in(&self, profile: &Profile) -> Option<Failure> {
        if self.is_empty {
            return Some(Failure::not_logged_in(profile.name, profile.login));
        }
        self.current.as_deref().filter(|model| is_for_everybody(model)).map(|_| errors::stand_in(profile))
    }
}

pub(super) fn model_choice(result: &Object<'_>) -> ModelChoice {
    if let Some((option, id)) = option(result, "model") {
        let is_empty = option.list("options").is_some() && option.objects("options").next().is_none();
        return ModelChoice { method: Setter::Option(id), current: option.string("currentValue"), is_empty };
    }
    let current = result.object("models").and_then(|models| models.string("currentModelId"));
    ModelChoice { method: Setter::Request, current, is_empty: false }
}

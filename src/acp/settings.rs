//! The settings of a session that a client can change: modes, which are policies for permissions, and options.

use super::Facts;
use super::refusal::RequestError;
use crate::json::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The policies, with the names and the descriptions that a client shows.
const POLICIES: [(&str, &str, &str); 4] = [
    ("ask", "Ask", "Ask before each action that needs permission"),
    ("allow", "Allow", "Allow everything without asking"),
    ("deny", "Deny", "Deny everything that needs permission"),
    ("read-only", "Read only", "Allow reading and searching, deny all else"),
];
const CUSTOM: (&str, &str, &str) = ("custom", "Configured", "The policy of the configuration");
/// The value of an option that is not set.
const DEFAULT: &str = "default";
const EFFORTS: [&str; 3] = ["low", "medium", "high"];
const VALUE_BYTES: usize = 256;

/// The options, with the names of their fields of run.start.
const OPTIONS: [&str; 4] = [PERMISSIONS, MODEL, EFFORT, MODE];
const PERMISSIONS: &str = "permissions";
const MODEL: &str = "model";
const EFFORT: &str = "effort";
const MODE: &str = "mode";

/// The values of the options that the client has set. The others are as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen(BTreeMap<&'static str, String>);

impl Chosen {
    pub(super) fn read(stored: &Object<'_>) -> Chosen {
        let value = |option| Some((option, stored.string(option).filter(|value| value.len() <= VALUE_BYTES)?));
        Chosen(OPTIONS.into_iter().filter_map(value).collect())
    }

    /// Drops a policy that this process does not know.
    pub(super) fn known(mut self, facts: &Facts) -> Chosen {
        self.0.retain(|option, value| *option != PERMISSIONS || policies(facts).any(|(id, ..)| id == value));
        self
    }

    /// Error: the mode is unknown.
    pub(super) fn set_mode(&mut self, mode: &str, facts: &Facts) -> Result<(), RequestError> {
        self.set(PERMISSIONS, mode, facts).map_err(|_| {
            let known: Vec<&str> = policies(facts).map(|(id, ..)| id).collect();
            RequestError::parameter("modeId", &format!("one of {}", known.join(", ")))
        })
    }

    /// Error: the option or its value is unknown.
    pub(super) fn set(&mut self, option: &str, value: &str, facts: &Facts) -> Result<(), RequestError> {
        if value.is_empty() || value.len() > VALUE_BYTES || value.chars().any(char::is_control) {
            return Err(RequestError::parameter("value", "a string of 1 to 256 bytes without control characters"));
        }
        let Some(option) = OPTIONS.into_iter().find(|known| *known == option) else {
            return Err(RequestError::parameter("configId", "permissions, model, effort or mode"));
        };
        if option == PERMISSIONS && !policies(facts).any(|(id, ..)| id == value) {
            return Err(RequestError::parameter("value", "one of the values of the option"));
        }
        if value == DEFAULT || value == CUSTOM.0 {
            self.0.remove(option);
        } else {
            self.0.insert(option, value.to_owned());
        }
        Ok(())
    }

    /// The policy in force, as the id of a mode.
    pub(super) fn policy<'a>(&'a self, facts: &'a Facts) -> &'a str {
        self.0.get(PERMISSIONS).unwrap_or(&facts.permissions)
    }

    pub(super) fn modes(&self, facts: &Facts) -> Value {
        let mode = |(id, name, about): (&str, &str, &str)| json!({"id": id, "name": name, "description": about});
        json!({"currentModeId": self.policy(facts), "availableModes": policies(facts).map(mode).collect::<Vec<_>>()})
    }

    pub(super) fn options(&self, facts: &Facts) -> Value {
        let policy = |(id, name, about): (&str, &str, &str)| json!({"value": id, "name": name, "description": about});
        let policies: Vec<Value> = policies(facts).map(policy).collect();
        let text = |option: &str, configured: &Option<String>, words: &[&str]| {
            let chosen = self.0.get(option).map(String::as_str);
            let default = configured.as_ref().map_or("Default".into(), |value| format!("Default ({value})"));
            let others = words.iter().copied().chain(chosen.filter(|value| !words.contains(value)));
            let options = others.map(|value| json!({"value": value, "name": value}));
            let options: Vec<Value> =
                std::iter::once(json!({"value": DEFAULT, "name": default})).chain(options).collect();
            (chosen.unwrap_or(DEFAULT).to_owned(), options)
        };
        let (model, models) = text(MODEL, &facts.model, &[]);
        let (effort, efforts) = text(EFFORT, &facts.effort, &EFFORTS);
        let (mode, modes) = text(MODE, &facts.mode, &[]);
        json!([
            {"type": "select", "id": PERMISSIONS, "name": "Permissions", "category": "mode",
             "currentValue": self.policy(facts), "options": policies},
            {"type": "select", "id": MODEL, "name": "Model", "category": "model",
             "currentValue": model, "options": models},
            {"type": "select", "id": EFFORT, "name": "Effort", "category": "thought_level",
             "currentValue": effort, "options": efforts},
            {"type": "select", "id": MODE, "name": "Agent's own mode", "currentValue": mode, "options": modes},
        ])
    }

    pub(super) fn put(&self, payload: &mut Value) {
        self.0.iter().for_each(|(option, value)| payload[*option] = json!(value));
    }
}

fn policies(facts: &Facts) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    POLICIES.into_iter().chain((facts.permissions == CUSTOM.0).then_some(CUSTOM))
}

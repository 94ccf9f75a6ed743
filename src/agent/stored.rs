//! The content of a session that an agent stores, for a client that loads the session. A reader per agent is beside its
//! driver.

use crate::json::Object;
use crate::protocol::words::Category;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredPart {
    Prompt(String),
    Text(String),
    Reasoning(String),
    Tool(StoredTool),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredTool {
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) category: Category,
    pub(crate) title: String,
    pub(crate) paths: Vec<String>,
    pub(crate) input: Value,
    /// `None`: its end is not stored.
    pub(crate) succeeded: Option<bool>,
    pub(crate) output: String,
    pub(crate) exit_code: Option<i64>,
    pub(crate) edits: Vec<StoredEdit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEdit {
    pub(crate) path: String,
    /// `None`: the file is new.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

impl StoredEdit {
    pub(super) fn of_diff<'a>(path: String, lines: impl Iterator<Item = &'a str>) -> StoredEdit {
        let (mut old, mut new) = (String::new(), String::new());
        for line in lines {
            let Some((sign, text)) = line.split_at_checked(1) else { continue };
            if matches!(sign, " " | "-") {
                old.extend([text, "\n"]);
            }
            if matches!(sign, " " | "+") {
                new.extend([text, "\n"]);
            }
        }
        StoredEdit { path, old: Some(old), new }
    }
}

/// The objects in the lines of a session. A line may be cut while the agent writes it.
pub(super) fn lines(session: &str) -> impl Iterator<Item = Object<'_>> {
    session.lines().filter_map(Object::parse)
}

/// Null: the object has no such value.
pub(super) fn value_of(object: &Object<'_>, name: &str) -> Value {
    object.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null)
}

/// The parts of a session that stores the end of a call apart from its beginning.
#[derive(Default)]
pub(super) struct StoredParts {
    pub(super) all: Vec<StoredPart>,
    calls: HashMap<String, usize>,
}

impl StoredParts {
    pub(super) fn push(&mut self, part: StoredPart) {
        if let StoredPart::Tool(tool) = &part {
            self.calls.insert(tool.call.clone(), self.all.len());
        }
        self.all.push(part);
    }

    pub(super) fn open(&mut self, call: &str) -> Option<&mut StoredTool> {
        match self.all.get_mut(*self.calls.get(call)?)? {
            StoredPart::Tool(tool) => Some(tool),
            StoredPart::Prompt(_) | StoredPart::Text(_) | StoredPart::Reasoning(_) => None,
        }
    }
}

//! The content of a session that an agent stores, for a client that loads the session. A reader per agent is beside its
//! driver.

use crate::json::Object;
use crate::protocol::words::Category;
use serde_json::Value;

/// A part of a stored session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredPart {
    Prompt(String),
    Text(String),
    Reasoning(String),
    Tool(StoredTool),
}

/// A call of a tool, with its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredTool {
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) category: Category,
    pub(crate) title: String,
    pub(crate) paths: Vec<String>,
    pub(crate) input: Value,
    /// Whether it succeeded. `None`: its end is not stored.
    pub(crate) succeeded: Option<bool>,
    pub(crate) output: String,
    pub(crate) exit_code: Option<i64>,
    pub(crate) edits: Vec<StoredEdit>,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEdit {
    pub(crate) path: String,
    /// The old lines. `None`: the file is new.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

impl StoredEdit {
    /// The change of a file in the lines of a diff, each with its sign.
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

/// The tool of this call, for its end.
pub(super) fn open<'a>(parts: &'a mut [StoredPart], call: &str) -> Option<&'a mut StoredTool> {
    let tools = parts.iter_mut().rev().filter_map(|part| match part {
        StoredPart::Tool(tool) => Some(tool),
        StoredPart::Prompt(_) | StoredPart::Text(_) | StoredPart::Reasoning(_) => None,
    });
    tools.into_iter().find(|tool| tool.call == call)
}

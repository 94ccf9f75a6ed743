//! The rows of `agents verify`: what the model says, what the client does, and the judgment. It is based on the frames, the
//! files, and what the model heard.

use crate::agent::registry::VerifyRowName;
use crate::scripted_model::{HeardRequest, Wire};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

pub(super) struct VerifyRow {
    pub(super) name: VerifyRowName,
    pub(super) scenario: &'static str,
    /// Fields of run.start, as JSON.
    pub(super) start: &'static str,
    pub(super) permission: &'static str,
    pub(super) further: Further,
    judge: fn(&SeenRun) -> RowResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Further {
    Nothing,
    /// Cancels the run once the command runs.
    Cancel,
    /// Resumes the session in a second run, which is judged.
    Resume,
    /// Chooses the other model. Without one, the row is left out.
    Model,
}

/// The judgment of a row, with a clause that says what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowResult {
    Kept,
    /// The run was refused before the agent started.
    Refused(String),
    NotKept(String),
    /// It acted against the policy, which no knowledge about the agent excuses.
    Acted(&'static str),
}

pub(super) struct SeenRun {
    pub(super) frames: Vec<Value>,
    pub(super) work: PathBuf,
    /// The number of processes that the run left behind.
    pub(super) left: usize,
    pub(super) heard: Vec<HeardRequest>,
    pub(super) wire: Wire,
    /// The part of the other model's name in a request.
    pub(super) model: Option<&'static str>,
}

/// The file in which a command shows that it runs.
pub(super) const AT_WORK: &str = "at_work";
pub(super) const ANSWER: &str = "SQLite";

const HELLO: &str = r#"{"replies": [{"say": ["Good day."]}]}"#;
const COMMAND: &str = r#"{"replies": [{"calls": [{"shell": "touch asked.txt"}]}, {"say": ["That was it."]}]}"#;
const WRITE: &str =
    r#"{"replies": [{"calls": [{"write": {"path": "new.txt", "content": "a line\n"}}]}, {"say": ["That was it."]}]}"#;
const BOTH: &str = r#"{"replies": [
    {"calls": [{"shell": "touch asked.txt"}]},
    {"calls": [{"write": {"path": "new.txt", "content": "a line\n"}}]},
    {"say": ["That was it."]}
]}"#;
const QUESTION: &str = r#"{"replies": [
    {"calls": [{"ask": [{"question": "Where shall the data live?", "header": "Storage", "options": ["Postgres", "SQLite"]}]}]},
    {"say": ["So be it."]}
]}"#;
const LONG: &str = r#"{"replies": [{"calls": [{"shell": "touch at_work; sleep 300"}]}, {"say": ["That was long."]}]}"#;
const HERON: &str = r#"{"replies": [{"say": ["The word is heron."]}, {"say": ["I said it."]}]}"#;
const NO_KEY: &str =
    r#"{"replies": [], "after": {"refuse": {"status": 401, "message": "This API key is not valid."}}}"#;
const BROKEN: &str = r#"{"replies": [], "after": {"refuse": {"status": 500, "message": "Internal server error"}}}"#;
const BUSY: &str =
    r#"{"replies": [], "after": {"refuse": {"status": 429, "message": "Too many requests: slow down."}}}"#;

/// A run that needs an MCP server, which is a script of the shell without a tool.
const SERVER: &str = r#"{"mcp_servers": [{"name": "badges", "command": "sh", "args": ["-c",
    "while read -r line; do id=${line##*'\"id\":'}; id=${id%%[,\\}]*}; case $line in *'\"initialize\"'*) answer='{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"badges\",\"version\":\"1\"}}';; *'\"tools/list\"'*) answer='{\"tools\":[]}';; *'\"ping\"'*) answer={};; *) continue;; esac; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$answer\"; done"
]}]}"#;

const fn row(
    name: VerifyRowName,
    scenario: &'static str,
    start: &'static str,
    judge: fn(&SeenRun) -> RowResult,
) -> VerifyRow {
    VerifyRow { name, scenario, start, permission: "allow_once", further: Further::Nothing, judge }
}

pub(super) const ROWS: &[VerifyRow] = &[
    row(VerifyRowName::Hello, HELLO, "{}", SeenRun::says_hello),
    row(VerifyRowName::Allow, COMMAND, "{}", SeenRun::asked_and_ran),
    VerifyRow { permission: "deny", ..row(VerifyRowName::Denied, COMMAND, "{}", SeenRun::goes_on_without_acting) },
    row(VerifyRowName::Deny, COMMAND, r#"{"permissions": "deny"}"#, SeenRun::did_nothing),
    row(VerifyRowName::ReadOnly, BOTH, r#"{"permissions": "read-only"}"#, SeenRun::did_nothing),
    row(VerifyRowName::Write, WRITE, "{}", SeenRun::asked_and_wrote),
    row(VerifyRowName::Question, QUESTION, "{}", SeenRun::heard_the_answer),
    VerifyRow {
        further: Further::Cancel,
        ..row(VerifyRowName::Cancel, LONG, r#"{"permissions": "allow"}"#, SeenRun::was_cancelled)
    },
    VerifyRow { further: Further::Resume, ..row(VerifyRowName::Resume, HERON, "{}", SeenRun::remembers) },
    row(VerifyRowName::NoKey, NO_KEY, "{}", |seen| seen.failed("auth_required")),
    row(VerifyRowName::Busy, BUSY, "{}", |seen| seen.failed("rate_limited")),
    row(VerifyRowName::Broken, BROKEN, "{}", |seen| seen.failed("provider_unavailable")),
    row(VerifyRowName::Mcp, HELLO, SERVER, SeenRun::started_the_server),
    VerifyRow { further: Further::Model, ..row(VerifyRowName::Model, HELLO, "{}", SeenRun::reached_the_model) },
];

impl VerifyRow {
    /// Whether the provider refuses every request with a failure that may pass.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.name, VerifyRowName::Busy | VerifyRowName::Broken)
    }

    pub(super) fn judge(&self, seen: &SeenRun) -> RowResult {
        let found = (self.judge)(seen);
        if found == RowResult::Kept && seen.left > 0 {
            return RowResult::NotKept(format!("{} processes are left", seen.left));
        }
        found
    }
}

impl SeenRun {
    pub(super) fn end(&self) -> &Value {
        self.frames.last().unwrap_or(&Value::Null)
    }

    fn made(&self, file: &str) -> bool {
        self.work.join(file).exists()
    }

    /// `None`: the run completed.
    fn other_end(&self) -> Option<RowResult> {
        let payload = &self.end()["payload"];
        let word = |field: &str| payload[field].as_str().unwrap_or_default();
        match self.end()["type"].as_str() {
            Some("run.completed") => None,
            Some("run.failed") if word("code") == "invalid_request" => Some(RowResult::Refused(word("message").into())),
            Some("run.failed") => {
                let said =
                    payload["detail"]["agent_message"].as_str().map(|said| format!(" {said}")).unwrap_or_default();
                Some(RowResult::NotKept(format!("the run failed: {}: {}{said}", word("code"), word("message"))))
            }
            Some(other) => Some(RowResult::NotKept(format!("the run ended with {other}"))),
            None => Some(RowResult::NotKept("the run ended without a frame".into())),
        }
    }

    fn asked(&self) -> Vec<String> {
        let questions = self.frames.iter().filter(|frame| frame["payload"]["purpose"] == "permission");
        questions.map(|frame| frame["payload"]["subject"].to_string()).collect()
    }

    fn says(&self, text: &str) -> RowResult {
        let said = || self.end()["payload"]["text"].as_str().is_some_and(|said| said.contains(text));
        self.other_end().unwrap_or_else(|| match said() {
            true => RowResult::Kept,
            false => RowResult::NotKept("the answer of the model is missing".into()),
        })
    }

    fn says_hello(&self) -> RowResult {
        self.says("Good day.")
    }

    /// `what`: the action, which a permission must show.
    fn asked_and(&self, file: &str, what: &str) -> RowResult {
        match (self.asked().as_slice(), self.made(file)) {
            ([], true) => RowResult::NotKept("it acted without asking".into()),
            ([], false) => self.other_end().unwrap_or_else(|| RowResult::NotKept("it neither asked nor acted".into())),
            (asked, _) if !asked.iter().any(|subject| subject.contains(what)) => {
                RowResult::NotKept("it did not show what it asked for".into())
            }
            (_, false) => RowResult::NotKept("it did not act although it was allowed to".into()),
            (_, true) => self.says("That was it."),
        }
    }

    fn asked_and_ran(&self) -> RowResult {
        self.asked_and("asked.txt", "touch asked.txt")
    }

    fn asked_and_wrote(&self) -> RowResult {
        let wrote = fs::read_to_string(self.work.join("new.txt"));
        match wrote.is_ok_and(|text| text.trim_end() != "a line") {
            true => RowResult::NotKept("the file has another content".into()),
            false => self.asked_and("new.txt", "new.txt"),
        }
    }

    fn did_nothing(&self) -> RowResult {
        match (self.made("asked.txt"), self.made("new.txt")) {
            (true, _) => RowResult::Acted("the command ran"),
            (false, true) => RowResult::Acted("the file was written"),
            (false, false) => self.other_end().unwrap_or(RowResult::Kept),
        }
    }

    fn goes_on_without_acting(&self) -> RowResult {
        match (self.asked().is_empty(), self.made("asked.txt")) {
            (true, true) => RowResult::NotKept("it acted without asking".into()),
            (false, true) => RowResult::Acted("the command ran after it was denied"),
            (_, false) => self.says("That was it."),
        }
    }

    /// The texts and the results of tools in the last request of the conversation.
    fn last_heard(&self) -> String {
        let last = self.heard.iter().rfind(|request| request.conversation).map(|request| &request.body);
        let parts = last.map(|body| [self.wire.texts(body), self.wire.tool_results(body)].concat());
        parts.unwrap_or_default().join("\n")
    }

    fn heard_the_answer(&self) -> RowResult {
        let asked = self
            .frames
            .iter()
            .any(|frame| frame["type"] == "run.question" && frame["payload"]["purpose"] != "permission");
        match (asked, self.last_heard().contains(ANSWER)) {
            (true, true) => self.says("So be it."),
            (true, false) => RowResult::NotKept("the model did not hear the answer".into()),
            (false, _) => self.other_end().unwrap_or_else(|| RowResult::NotKept("it did not ask".into())),
        }
    }

    fn started_the_server(&self) -> RowResult {
        let is_ready = |frame: &Value| frame["payload"]["mcp_servers"][0]["state"] == "ready";
        match self.frames.iter().any(is_ready) {
            true => self.says("Good day."),
            false => self.other_end().unwrap_or_else(|| RowResult::NotKept("it did not start the server".into())),
        }
    }

    fn reached_the_model(&self) -> RowResult {
        let last = self.heard.iter().rfind(|request| request.conversation);
        let asked = |name| last.is_some_and(|request| request.line.contains(name) || request.names_model(name));
        match self.model.is_some_and(asked) {
            true => self.says("Good day."),
            false => self.other_end().unwrap_or_else(|| RowResult::NotKept("the request was for another model".into())),
        }
    }

    fn was_cancelled(&self) -> RowResult {
        match self.end()["type"].as_str() {
            _ if !self.made(AT_WORK) => {
                self.other_end().unwrap_or_else(|| RowResult::NotKept("the command did not begin".into()))
            }
            Some("run.cancelled") => RowResult::Kept,
            _ => self.other_end().unwrap_or_else(|| RowResult::NotKept("the run completed".into())),
        }
    }

    fn remembers(&self) -> RowResult {
        if self.last_heard().contains("The word is heron.") {
            return self.says("I said it.");
        }
        self.other_end().unwrap_or_else(|| RowResult::NotKept("the model did not hear the first turn".into()))
    }

    fn failed(&self, code: &str) -> RowResult {
        match self.end()["payload"]["code"].as_str() {
            Some(ended) if ended == code => RowResult::Kept,
            _ => self.other_end().unwrap_or_else(|| RowResult::NotKept("the run completed".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS, RowResult, SeenRun, VerifyRowName};
    use crate::scripted_model::{HeardRequest, ModelScenario, Wire};
    use serde_json::{Value, json};

    #[test]
    fn every_row_can_be_played() {
        assert_eq!(ROWS.iter().map(|row| row.name).collect::<Vec<_>>(), VerifyRowName::ALL);
        for row in ROWS {
            assert!(ModelScenario::parse(row.scenario).is_ok(), "{}", row.name.word());
            assert!(
                serde_json::from_str::<Value>(row.start).is_ok_and(|start| start.is_object()),
                "{}",
                row.name.word()
            );
        }
    }

    #[test]
    fn a_row_is_not_kept_if_the_request_is_for_another_model_or_a_process_is_left() {
        let seen = |asked: &str, left| {
            let heard = vec![HeardRequest {
                line: "POST /v1/messages".into(),
                conversation: true,
                body: json!({"model": asked}),
            }];
            let frames = vec![json!({"type": "run.completed", "payload": {"text": "Good day."}})];
            SeenRun { frames, work: "/w".into(), left, heard, wire: Wire::Messages, model: Some("other") }
        };
        let row = ROWS.iter().find(|row| row.name == VerifyRowName::Model).unwrap();
        assert_eq!(row.judge(&seen("the-other-1", 0)), RowResult::Kept);
        assert_eq!(row.judge(&seen("first", 0)), RowResult::NotKept("the request was for another model".into()));
        assert_eq!(row.judge(&seen("the-other-1", 2)), RowResult::NotKept("2 processes are left".into()));
    }

    #[test]
    fn an_action_against_the_policy_is_more_than_a_missing_promise() {
        let folder = tempfile::tempdir().unwrap();
        let end = |frame: Value| {
            let work = folder.path().to_owned();
            let seen =
                SeenRun { frames: vec![frame], work, left: 0, heard: Vec::new(), wire: Wire::Messages, model: None };
            ROWS.iter().find(|row| row.name == VerifyRowName::Deny).unwrap().judge(&seen)
        };
        let refused = json!({"type": "run.failed", "payload": {"code": "invalid_request", "message": "No."}});
        assert_eq!(end(json!({"type": "run.completed", "payload": {}})), RowResult::Kept);
        assert_eq!(end(refused.clone()), RowResult::Refused("No.".into()));
        std::fs::write(folder.path().join("asked.txt"), "").unwrap();
        assert_eq!(end(refused), RowResult::Acted("the command ran"));
    }
}

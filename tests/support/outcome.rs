//! The outcome of a run: frames, exit code, and queries about them.

use std::ops::Deref;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::agent::AgentLog;
use super::io::Line;
use super::{Case, Session};

/// A frame as it arrived.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) raw: String,
    pub(crate) at: Instant,
    value: Value,
}

impl Deref for Frame {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Frame {
    pub(super) fn parse(line: &Line) -> Result<Frame, String> {
        let raw = String::from_utf8(line.bytes.clone()).map_err(|_| "a frame is not UTF-8".to_owned())?;
        if !line.complete {
            return Err(format!("a frame without its newline: {raw}"));
        }
        let value: Value = serde_json::from_str(&raw).map_err(|e| format!("not JSON ({e}): {raw}"))?;
        if !value.is_object() {
            return Err(format!("not an object: {raw}"));
        }
        Ok(Frame { raw, value, at: line.at })
    }

    pub(crate) fn kind(&self) -> &str {
        self["type"].as_str().unwrap_or("")
    }

    pub(crate) fn payload(&self) -> &Value {
        &self["payload"]
    }

    /// The text at a payload's key, or "".
    pub(crate) fn text(&self, key: &str) -> &str {
        self["payload"][key].as_str().unwrap_or("")
    }

    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.kind(), "run.completed" | "run.failed" | "run.cancelled")
    }

    pub(crate) fn is_progress(&self, kind: &str) -> bool {
        self.kind() == "run.progress" && self.text("kind") == kind
    }
}

/// A finished run.
pub(crate) struct Outcome {
    pub(crate) frames: Vec<Frame>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ended: Instant,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) left: Vec<String>,
    pub(super) session: Session,
}

impl Outcome {
    pub(crate) fn case(&self) -> &Case {
        &self.session.case
    }

    pub(crate) fn log(&self) -> AgentLog {
        self.session.log()
    }

    /// The lifetime of the process.
    pub(crate) fn took(&self) -> Duration {
        self.ended - self.session.started
    }

    #[track_caller]
    pub(crate) fn terminal(&self) -> &Frame {
        self.frames.last().expect("no frame at all")
    }

    pub(crate) fn progress(&self, kind: &str) -> Vec<&Frame> {
        self.frames.iter().filter(|f| f.is_progress(kind)).collect()
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Frame> {
        self.frames.iter().filter(|f| f.kind() == kind).collect()
    }

    pub(crate) fn warnings(&self, code: &str) -> Vec<&Frame> {
        self.progress("warning").into_iter().filter(|f| f.text("code") == code).collect()
    }

    /// The resolutions of all questions, in order.
    pub(crate) fn resolutions(&self) -> Vec<&str> {
        self.progress("question_resolved").into_iter().map(|f| f.text("resolution")).collect()
    }

    /// The joined texts of the agent.
    pub(crate) fn said(&self) -> String {
        self.progress("text").into_iter().map(|f| f.text("text")).collect()
    }

    #[track_caller]
    pub(crate) fn completed(&self) -> &Value {
        assert_eq!(self.terminal().kind(), "run.completed", "{}", self.terminal().raw);
        self.terminal().payload()
    }

    #[track_caller]
    pub(crate) fn cancelled(&self) -> &Value {
        assert_eq!(self.terminal().kind(), "run.cancelled", "{}", self.terminal().raw);
        self.terminal().payload()
    }

    #[track_caller]
    pub(crate) fn failed(&self, code: &str) -> &Value {
        assert_eq!(self.terminal().kind(), "run.failed", "{}", self.terminal().raw);
        assert_eq!(self.terminal().text("code"), code, "{}", self.terminal().raw);
        self.terminal().payload()
    }

    /// Checks that neither stream contains this text.
    #[track_caller]
    pub(crate) fn never_shows(&self, text: &str) {
        assert!(!self.stdout.contains(text), "stdout shows {text}");
        assert!(!self.stderr.contains(text), "stderr shows {text}");
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.session.dump(&self.frames));
        }
    }
}

//! Recordings: one format for bug reports, golden tests and demos. JSON Lines: a header, then what was said in order.
//!
//! ```text
//! {"recording":1,"driver":"claude","agent_version":"2.1.330","argv":["claude","--print"],"cwd":"/home/user/project"}
//! {"at_ms":5,"host":"a line we wrote"}
//! {"at_ms":350,"agent":"a line the agent wrote"}
//! {"at_ms":351,"stderr":"a line of its stderr"}
//! {"at_ms":400,"host_eof":true}
//! {"at_ms":420,"exit":0}
//! ```
//! The last line is `exit` or `signal`. The demo's recording also has `{"file":{"path":"a.md","content":"…"}}`, a file
//! that its replay makes, and `"if_allowed":true|false` on a line that is played only after such an answer. Readers
//! ignore what they do not know.

use crate::protocol::json::{Fields, number, string, to_line};
use serde_json::json;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A line we wrote to the agent.
    Host(String),
    /// A line the agent wrote.
    Agent(String),
    /// A line of its stderr.
    Stderr(String),
    /// We closed its stdin.
    HostEof,
    /// It made this file (path relative to the working directory, content).
    File(String, String),
    /// This, but only where the host's last answer allowed, or did not allow, what it was asked.
    Only {
        /// Whether it must have allowed it.
        allowed: bool,
        /// What happened then.
        moment: Box<Moment>,
    },
    /// It ended with a code.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
}

/// What a recording says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The driver whose dialect this is.
    pub driver: String,
    /// The agent's version, where it was known.
    pub agent_version: Option<String>,
    /// The command line.
    pub argv: Vec<String>,
    /// The working directory. A replay puts its own in its place.
    pub cwd: Option<String>,
}

/// A whole recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// What it says of itself.
    pub header: Header,
    /// When, since the start, and what.
    pub moments: Vec<(Duration, Moment)>,
}

impl Recording {
    /// Reads a recording. The error names the line.
    pub fn parse(text: &str) -> Result<Recording, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, first) = lines.next().ok_or("the recording is empty")?;
        let fields = Fields::parse(first).filter(|f| f.get("recording").and_then(number) == Some(1.0));
        let fields = fields.ok_or("line 1 is not the header of a recording of version 1")?;
        let header = Header {
            driver: fields.get("driver").and_then(string).unwrap_or_default(),
            agent_version: fields.get("agent_version").and_then(string),
            argv: fields.get("argv").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default(),
            cwd: fields.get("cwd").and_then(string),
        };
        let mut moments = Vec::new();
        for (at, line) in lines {
            let fields = Fields::parse(line).ok_or_else(|| format!("line {} is not a JSON object", at + 1))?;
            let ms = fields.get("at_ms").and_then(number).filter(|ms| *ms >= 0.0).unwrap_or(0.0);
            moments.extend(moment(&fields).map(|moment| (Duration::from_millis(ms as u64), moment)));
        }
        Ok(Recording { header, moments })
    }
}

fn moment(fields: &Fields<'_>) -> Option<Moment> {
    let moment = plain_moment(fields)?;
    Some(match fields.get("if_allowed").map(RawValue::get) {
        Some("true") => Moment::Only { allowed: true, moment: Box::new(moment) },
        Some("false") => Moment::Only { allowed: false, moment: Box::new(moment) },
        _ => moment,
    })
}

fn plain_moment(fields: &Fields<'_>) -> Option<Moment> {
    let text = |name| fields.get(name).and_then(string);
    let code = |name| fields.get(name).and_then(number).map(|n| n as i32);
    if let Some(file) = fields.get("file").and_then(|raw| Fields::parse(raw.get())) {
        let part = |name| file.get(name).and_then(string);
        return Some(Moment::File(part("path")?, part("content")?));
    }
    None.or_else(|| text("host").map(Moment::Host))
        .or_else(|| text("agent").map(Moment::Agent))
        .or_else(|| text("stderr").map(Moment::Stderr))
        .or_else(|| fields.get("host_eof").map(|_| Moment::HostEof))
        .or_else(|| code("exit").map(Moment::Exit))
        .or_else(|| code("signal").map(Moment::Signal))
}

/// Writes a recording while it happens. Everything given to it is already redacted.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    failed: bool,
}

impl Recorder {
    /// Makes the file, readable by its owner alone: what an agent says may be private.
    pub(crate) fn create(path: &std::path::Path) -> io::Result<Recorder> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Recorder { file, failed: false })
    }

    pub(crate) fn header(&mut self, header: &Header) {
        self.line(&json!({"recording": 1, "driver": header.driver, "agent_version": header.agent_version,
            "argv": header.argv, "cwd": header.cwd}));
    }

    pub(crate) fn moment(&mut self, at: Duration, moment: &Moment) {
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        self.line(&match moment {
            Moment::Host(text) => json!({"at_ms": at_ms, "host": text}),
            Moment::Agent(text) => json!({"at_ms": at_ms, "agent": text}),
            Moment::Stderr(text) => json!({"at_ms": at_ms, "stderr": text}),
            Moment::HostEof => json!({"at_ms": at_ms, "host_eof": true}),
            // A real agent makes its files itself.
            Moment::File(..) | Moment::Only { .. } => return,
            Moment::Exit(code) => json!({"at_ms": at_ms, "exit": code}),
            Moment::Signal(signal) => json!({"at_ms": at_ms, "signal": signal}),
        });
    }

    /// A full disk ends the recording, not the run.
    fn line(&mut self, value: &serde_json::Value) {
        if !self.failed {
            self.failed = self.file.write_all(format!("{}\n", to_line(value)).as_bytes()).is_err();
        }
    }

    /// Whether something could not be written.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }
}

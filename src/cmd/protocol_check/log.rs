//! The log of a dialogue: facts, one JSON line each. The played run and the checker append to one file, so that its
//! order is the order of the facts.

use crate::json::to_line;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LogEntry {
    /// The time in milliseconds since 1970.
    pub(super) at: u64,
    /// The process that saw it.
    pub(super) pid: u32,
    pub(super) fact: Fact,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Fact {
    Called,
    /// The command line starts no run that speaks the protocol. The text is a sentence.
    WrongCall(String),
    /// A message is wrong: a clause about it.
    WrongMessage(String),
    /// A message has fields that the protocol does not have: the text of the warning.
    UnknownField(String),
    /// A field of run.start is missing or has a wrong value. The text is a sentence.
    WrongStart(String),
    Began,
    /// The dialogue needs something that the run excludes: the rest of a sentence.
    Skipped(String),
    Sending,
    Sent,
    /// The client closed the stdout of the played program.
    Undelivered,
    /// The played program has a bug, so that nothing is judged.
    OwnFault,
    /// The question's id.
    Asked(String),
    /// A question was repeated after an answer that did not fit.
    Repeated(String),
    Resolved(String, By),
    /// The client has read all frames so far.
    AllRead,
    /// The client sent an answer to this question, or declined it.
    Answered(String),
    /// The client closed the stdin of the run before a run.start.
    NoStart,
    /// A question had no answer because the client had closed the stdin of the run.
    InputMissed,
    /// The run is over. The last frame and the exit follow.
    RunEnd(RunEnd),
    /// The command exited. `None`: a signal ended it.
    CommandEnded(Option<i32>),
    /// The command did not exit in time.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum By {
    Answer,
    Timeout,
    /// The end of stdin, or of the run.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunEnd {
    Completed,
    Failed,
    Cancelled,
    /// The process ends without a terminal frame.
    Vanished,
}

#[derive(Debug)]
pub(super) struct Log(File);

impl Log {
    pub(super) fn open(path: &Path) -> io::Result<Log> {
        OpenOptions::new().create(true).append(true).open(path).map(Log)
    }

    /// A fact that cannot be written is lost, because the client must not notice.
    pub(super) fn note(&mut self, fact: Fact) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let line = to_line(&LogEntry { at, pid: std::process::id(), fact }) + "\n";
        let _ = self.0.write_all(line.as_bytes());
    }
}

pub(super) fn read(text: &str) -> Vec<LogEntry> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

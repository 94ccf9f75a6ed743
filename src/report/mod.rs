//! A run as one page of HTML: frames, or a recording, in; the page out. Pure: `cmd::report` reads and writes.
//!
//! The reader is tolerant. It shows what it does not know generically, and notes a line that it cannot read. Time is
//! linear in the input. Memory is bounded: by [`PAGE_BYTES`] and [`ENTRIES`] for the page, whatever the length of the
//! input, and one line of at most [`LINE_BYTES`]. A text is cut at 64 KiB. The page notes each omission.

mod chart;
mod dialogue;
mod html;
mod page;
mod rows;
mod run;
mod tools;
mod value;

use self::dialogue::AgentDialogue;
use self::run::RunView;
use crate::json::bounded;
use serde_json::Value;
use std::collections::HashMap;

pub(crate) const LINE_BYTES: usize = 16 << 20;
/// The maximum size of the texts of a page, in bytes, before they become HTML.
pub(crate) const PAGE_BYTES: usize = 16 << 20;
/// The maximum number of entries of all timelines.
pub(crate) const ENTRIES: usize = 20_000;
/// The maximum number of runs and recordings on a page.
const PARTS: usize = 200;
/// The maximum length of a run's id, in bytes, as the protocol has it.
const RUN_ID_BYTES: usize = 128;
const NOTES: usize = 20;

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReportLine<'a> {
    Text(&'a [u8]),
    /// A line longer than [`LINE_BYTES`].
    TooLong,
}

#[derive(Debug, Default)]
pub(crate) struct ReportPage {
    parts: Vec<Part>,
    runs: HashMap<String, usize>,
    /// The recording of the current file.
    recording: Option<usize>,
    /// The prompt of a run that has not begun, or of the next frame about a further prompt.
    prompt: Option<String>,
    file: String,
    line: u64,
    /// The number of frames and recorded lines in the current file.
    pub(crate) found: u64,
    notes: Vec<String>,
    omitted_lines: u64,
    room: Room,
}

/// The maximum number of values of a line that are kept, beside its fields and theirs. More would be cut on the page.
const VALUES: usize = html::TEXT_BYTES;

#[derive(Debug)]
enum Part {
    Run(Box<RunView>),
    Recording(AgentDialogue),
}

/// The room that is left on the page.
#[derive(Debug)]
struct Room {
    bytes: usize,
    entries: usize,
    omitted: u64,
}

impl Default for Room {
    fn default() -> Room {
        Room { bytes: PAGE_BYTES, entries: ENTRIES, omitted: 0 }
    }
}

impl Room {
    /// `false`: there is none, and the entry is counted as left out.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.entries > 0 && self.bytes >= bytes;
        if fits {
            self.entries -= 1;
            self.bytes -= bytes;
        } else {
            self.omitted += 1;
        }
        fits
    }

    /// Takes room for more text of an entry.
    fn grow(&mut self, bytes: usize) -> bool {
        let fits = self.bytes >= bytes;
        self.bytes -= if fits { bytes } else { 0 };
        fits
    }

    /// A copy of a frame's payload, or null if there is no room. `size`: the length of the frame, in bytes.
    fn copy(&mut self, payload: &Value, size: usize) -> Value {
        if self.grow(size) {
            return payload.clone();
        }
        self.omitted += 1;
        Value::Null
    }

    /// Like [`Room::copy`], for a frame of which a run keeps one: a short one is on a full page too.
    fn copy_single(&mut self, payload: &Value, size: usize) -> Value {
        if size <= html::TEXT_BYTES { payload.clone() } else { self.copy(payload, size) }
    }
}

impl ReportPage {
    /// `name`: as messages show it.
    pub(crate) fn begin(&mut self, name: &str) {
        (self.file, self.line, self.found) = (name.to_owned(), 0, 0);
        (self.recording, self.prompt) = (None, None);
        self.runs.clear();
    }

    /// The first line of all files that could not be used.
    pub(crate) fn first_note(&self) -> Option<&str> {
        self.notes.first().map(|note| note.trim_end_matches('.'))
    }

    /// The prompt of the run that begins next, or of the next frame about a further prompt. It must be redacted.
    pub(crate) fn prompt(&mut self, prompt: &str) {
        self.prompt = Some(prompt.to_owned());
    }

    pub(crate) fn line(&mut self, line: ReportLine<'_>) {
        self.line += 1;
        let bytes = match line {
            ReportLine::Text(bytes) => bytes,
            ReportLine::TooLong => return self.note("is longer than 16 MiB"),
        };
        if bytes.trim_ascii().is_empty() {
            return;
        }
        match bounded(bytes, 2, VALUES) {
            Ok(value) if value.is_object() => self.object(&value, bytes.len()),
            Ok(_) | Err(_) => self.note("is not a JSON object"),
        }
    }

    fn note(&mut self, why: &str) {
        self.omitted_lines += 1;
        if self.notes.len() < NOTES {
            self.notes.push(format!("Line {} of {} {why}.", self.line, self.file));
        }
    }

    /// `size`: the length of the line, in bytes.
    fn object(&mut self, value: &Value, size: usize) {
        if value["recording"] == 1 {
            self.recording = self.add(|| Part::Recording(AgentDialogue::new(value)));
            self.found += u64::from(self.recording.is_some());
        } else if let Some(at) = self.recording {
            self.found += 1;
            if let Some(Part::Recording(dialogue)) = self.parts.get_mut(at) {
                dialogue.moment(value, &mut self.room);
            }
        } else if let Some(kind) = value["type"].as_str() {
            self.message(kind, value, size);
        } else {
            self.note("is neither a frame nor part of a recording");
        }
    }

    fn message(&mut self, kind: &str, value: &Value, size: usize) {
        self.found += 1;
        let id = value["run_id"].as_str().unwrap_or_default();
        if id.len() > RUN_ID_BYTES {
            return self.note("has a run_id that is too long");
        }
        if kind == "run.start" {
            self.prompt = value["payload"]["prompt"].as_str().map(str::to_owned);
            return;
        }
        // A message of the orchestrator may leave out the run's id.
        let last = || self.runs.values().max().copied().filter(|_| id.is_empty());
        let at = match self.runs.get(id).copied().or_else(last) {
            Some(at) => at,
            None => {
                let prompt = self.prompt.take();
                let Some(at) = self.add(|| Part::Run(Box::new(RunView::new(prompt)))) else { return };
                self.runs.insert(id.to_owned(), at);
                at
            }
        };
        if let Some(Part::Run(run)) = self.parts.get_mut(at) {
            if value["payload"]["kind"] == "prompt"
                && let Some(prompt) = self.prompt.take()
            {
                run.further_prompt(&prompt, &mut self.room);
            }
            run.message(kind, value, size, &mut self.room);
        }
    }

    fn add(&mut self, part: impl FnOnce() -> Part) -> Option<usize> {
        if self.parts.len() == PARTS {
            self.note("begins a run beyond the limit of 200");
            return None;
        }
        self.parts.push(part());
        Some(self.parts.len() - 1)
    }

    pub(crate) fn page(&self) -> String {
        page::page(self)
    }
}

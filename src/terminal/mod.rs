//! A person at a terminal: the second reader of the frames. The agent's text goes to stdout, all else to stderr.
//! What is typed becomes the same messages that an orchestrator sends.

mod ask;

use crate::clean::{Cleaner, one_line};
use crate::protocol::frame::Frame;
use crate::protocol::inbound::Inbound;
use crate::protocol::outbound::{About, Body, Outcome, Progress, Terminal};
use crate::protocol::words::{Action, ToolState, Warning};
use crate::session::{Chunk, Front};
use ask::Asking;
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Instant;

/// Renders frames for a person.
#[derive(Default)]
pub struct TerminalFront {
    cleaners: HashMap<String, Cleaner>,
    /// Whether the last text on stdout did not end its line.
    open_line: bool,
    /// Whether any text was shown.
    said: bool,
    asking: Asking,
    /// Whether a person reads along: then the session's id is shown at the end.
    person: bool,
}

impl TerminalFront {
    /// `person`: whether stderr is a terminal.
    pub fn new(person: bool) -> TerminalFront {
        TerminalFront { person, ..TerminalFront::default() }
    }

    fn say(&mut self, id: &str, text: &str, done: bool) -> String {
        let mut shown = self.cleaners.entry(id.to_owned()).or_default().push(text);
        if done {
            self.cleaners.remove(id);
            if !shown.ends_with('\n') && (self.open_line || !shown.is_empty()) {
                shown.push('\n');
            }
        }
        self.said |= !shown.is_empty();
        if let Some(last) = shown.chars().last() {
            self.open_line = last != '\n';
        }
        shown
    }

    fn progress(&mut self, progress: &Progress) -> Chunk {
        let line = one_line(&progress.text.0);
        let note = match &progress.about {
            // What a sub-agent says is its own work; the agent says what came of it.
            About::Text { .. } if progress.parent_call_id.is_some() => String::new(),
            About::Text { message_id, done, .. } => {
                return Chunk { out: self.say(message_id, &progress.text.0, *done).into_bytes(), ..Chunk::default() };
            }
            About::Tool { state: ToolState::Started, .. } => format!("* {line}\n"),
            About::Tool { state: ToolState::Failed, .. } => format!("* {line}: failed\n"),
            About::Tool { state: ToolState::Denied, .. } => format!("* {line}: denied\n"),
            About::Warning(Warning::EmptyResult) => String::new(),
            About::Warning(_) => format!("spektacular: warning: {line}\n"),
            About::Resolved { question_id, .. } => {
                self.asking.resolved(question_id);
                self.asking.prompt()
            }
            About::Plan(entries) => entries.iter().fold(String::new(), |mut list, entry| {
                let _ = writeln!(list, "  [{}] {}", entry.status.word(), one_line(&entry.text.0));
                list
            }),
            _ => String::new(),
        };
        Chunk { err: note.into_bytes(), ..Chunk::default() }
    }

    fn terminal(&mut self, end: &Terminal) -> Chunk {
        let mut chunk = Chunk::default();
        match &end.outcome {
            Outcome::Completed { text, .. } => {
                // An agent that streams no text has it in the result alone.
                if !self.said {
                    chunk.out = self.say("result", &text.0, true).into_bytes();
                }
            }
            Outcome::Failed(failure) => {
                let mut text = format!("spektacular: {}: {}\n", failure.code.name(), one_line(&failure.message));
                if let Some(tail) = &failure.stderr_tail {
                    let _ = tail.lines().try_for_each(|line| writeln!(text, "  {line}"));
                }
                chunk.err = text.into_bytes();
            }
            Outcome::Cancelled { .. } => chunk.err = b"spektacular: cancelled\n".to_vec(),
        }
        if let Some(id) = end.session_id.as_ref().filter(|_| self.person) {
            chunk.err.extend(format!("session {}: go on with --session\n", one_line(id)).bytes());
        }
        chunk
    }
}

impl Front for TerminalFront {
    fn show(&mut self, frame: &mut Frame, _max_bytes: usize) -> Chunk {
        let prompted = self.asking.take_prompted();
        let mut chunk = self.render(frame);
        // Whatever comes while a prompt stands open begins on a line of its own; an answer has ended the line.
        if prompted && chunk.size() > 0 {
            chunk.before.push(b'\n');
        } else if prompted {
            self.asking.set_prompted();
        }
        chunk
    }

    fn typed(&mut self, line: String, read: Instant) -> Vec<Inbound> {
        self.asking.typed(&line, read).into_iter().collect()
    }
}

impl TerminalFront {
    fn render(&mut self, frame: &Frame) -> Chunk {
        match &frame.body {
            Body::Started(_) => Chunk::default(),
            Body::Progress(progress) => self.progress(progress),
            Body::Question(question) => {
                let text = self.asking.ask(question);
                Chunk { err: text.into_bytes(), ..Chunk::default() }
            }
            Body::Artifact(artifact) => {
                let sign = match artifact.action {
                    Action::Created => "+",
                    Action::Modified => "~",
                    Action::Deleted => "-",
                };
                let line = format!("{sign} {}\n", one_line(&artifact.path.0));
                Chunk { err: line.into_bytes(), ..Chunk::default() }
            }
            Body::Terminal(end) => self.terminal(end),
        }
    }
}

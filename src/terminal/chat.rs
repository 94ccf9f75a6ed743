//! The line at which a person types the prompts of a conversation. It shows while the agent waits for a prompt, and
//! while something is typed. Typed prompts become the messages of an orchestrator.

use super::TerminalPeer;
use super::editor::{AnswerEnd, Editor, Face, KeyEffect, TOO_LONG, echo_of};
use super::prompt;
use super::screen::{Ink, Look, PromptLine, Shown};
use super::slash::{ChatFacts, ChatPlace, ChosenSettings, Entered};
use super::tools::painted;
use super::width;
use crate::clean::{one_line, whole};
use crate::engine::Understood;
use crate::protocol::ids::{InboundId, PromptId};
use crate::protocol::inbound::{CancelScope, Inbound, Message};
use crate::protocol::outbound::{Progress, ProgressKind};
use crate::protocol::prompt::{FurtherPrompt, PromptInput};
use crate::protocol::request::{Options, Payload};
use crate::protocol::words::{PromptState, Status};
use std::collections::HashMap;
use std::mem;
use std::time::{Duration, Instant};

/// The beginning of the line, and of each further row.
const MARK: &str = "> ";
const INDENT: &str = "  ";
const ROWS: usize = 8;
/// The maximum columns of a prompt in a line about it.
const MENTION: usize = 60;
/// Two presses of Ctrl-C within this time end the run.
const TWICE: Duration = Duration::from_secs(1);
const HELP: &str = "Type a prompt. /help: more, Alt-Enter: new line, Ctrl-C: cancel, Ctrl-D: end.\n";

#[derive(Debug, Default)]
pub(super) struct Chat {
    look: Look,
    stage: Stage,
    pub(super) editor: Editor,
    /// Whether no further prompt comes.
    pub(super) closing: bool,
    /// Whether the conversation goes on with other settings after its end.
    goes_on: bool,
    /// The prompts that the run has not reported yet, by message id.
    sent: HashMap<String, SentPrompt>,
    waiting: HashMap<PromptId, String>,
    count: u64,
    interrupted: Option<Instant>,
    last_said: String,
    first_line: Option<String>,
    known: ChatFacts,
    /// Whether the run takes prompts as commands unless they say otherwise, because its first one called a command.
    runs_raw: bool,
}

#[derive(Debug, Default)]
enum Stage {
    /// The first prompt begins the run, with these fields.
    Opening(Box<Options>),
    /// The first prompt is known, and the run has not begun.
    #[default]
    Starting,
    Working,
    Idle,
    /// A prompt was sent, and its turn has not begun.
    Sent,
    Over,
}

#[derive(Debug)]
struct SentPrompt {
    text: String,
    /// Whether the screen shows the whole prompt already.
    shown: bool,
}

#[derive(Debug, Default)]
pub(super) struct LineEffect {
    /// The bytes that show the keys, where the line cannot be drawn again.
    pub(super) echo: String,
    pub(super) lines: String,
    pub(super) meant: Option<Inbound>,
}

impl TerminalPeer {
    /// `opening`: the fields of run.start if its prompt is typed too.
    pub fn converse(&mut self, opening: Option<Options>, around: ChatPlace) {
        self.asking.stays = true;
        self.chat = Some(Chat::new(self.look, opening, around));
        self.wake_at = Some(Instant::now());
    }

    /// The first line of the prompt that began the run, if it was typed.
    pub fn take_first_line(&mut self) -> Option<String> {
        self.chat.as_mut()?.first_line.take()
    }

    /// The settings with which the conversation is to go on after its end. `None`: it is over.
    pub fn again(&self) -> Option<&ChosenSettings> {
        self.chat.as_ref().filter(|chat| chat.goes_on).map(|chat| &chat.known.chosen)
    }

    /// Keeps the settings from now on. `why`: a clause about the conversation.
    pub(super) fn keep_settings(&mut self, why: &'static str) {
        self.chat.iter_mut().for_each(|chat| _ = chat.known.around.keeps.get_or_insert(why));
    }

    /// Whether a person types, so that only whole lines may show.
    pub(super) fn is_typed_at(&self) -> bool {
        self.asking.is_open() || self.chat.as_ref().is_some_and(Chat::is_open)
    }

    pub(super) fn stepped(&mut self, step: LineEffect, now: Instant) -> Understood {
        let LineEffect { echo, lines, meant } = step;
        let mut chunk = self.place(Shown::lines(lines), now);
        chunk.before.splice(0..0, echo.into_bytes());
        Understood { chunk, messages: meant.into_iter().collect() }
    }
}

impl Chat {
    fn new(look: Look, opening: Option<Options>, around: ChatPlace) -> Chat {
        Chat {
            look,
            stage: opening.map_or(Stage::Starting, |options| Stage::Opening(Box::new(options))),
            editor: if look.escapes { Editor::with_history() } else { Editor::default() },
            known: ChatFacts::of(around),
            ..Chat::default()
        }
    }

    /// The lines before the first prompt line: the agent and the session, and the keys.
    pub(super) fn help(&self) -> String {
        let about = match self.known.around.about.as_str() {
            "" => String::new(),
            about => self.dim(about),
        };
        match self.stage {
            Stage::Opening(_) => about + &self.dim(HELP),
            Stage::Starting | Stage::Working | Stage::Idle | Stage::Sent | Stage::Over => about,
        }
    }

    /// Whether the line shows, unless a question is open.
    pub(super) fn is_open(&self) -> bool {
        !self.closing
            && match self.stage {
                Stage::Opening(_) | Stage::Idle => true,
                Stage::Starting | Stage::Working | Stage::Sent => !self.editor.is_empty(),
                Stage::Over => false,
            }
    }

    fn is_working(&self) -> bool {
        matches!(self.stage, Stage::Starting | Stage::Working | Stage::Sent)
    }

    /// Returns whether a further turn begins.
    pub(super) fn status(&mut self, status: Status) -> bool {
        let begins = matches!(self.stage, Stage::Idle | Stage::Sent) && status == Status::Running;
        self.stage = match (mem::replace(&mut self.stage, Stage::Over), status) {
            (Stage::Over, _) => Stage::Over,
            (_, Status::WaitingForPrompt) => Stage::Idle,
            (Stage::Idle, Status::Cancelling) => Stage::Idle,
            (Stage::Opening(_) | Stage::Starting | Stage::Working | Stage::Idle | Stage::Sent, _) => Stage::Working,
        };
        begins
    }

    /// Returns the line about a prompt that is not finished.
    pub(super) fn end(&mut self) -> String {
        self.stage = Stage::Over;
        let (before, behind) = self.editor.around();
        let text = before + &behind;
        self.editor.clear();
        if text.trim().is_empty() { String::new() } else { self.dim(&format!("  not sent: {}\n", mention(&text))) }
    }

    pub(super) fn typed(&mut self, keys: &[u8], width: usize) -> LineEffect {
        if self.closing || matches!(self.stage, Stage::Over) {
            return LineEffect::default();
        }
        if keys == b"\t" && self.look.escapes {
            let (added, candidates) = self.known.complete(&self.editor.around().0);
            self.editor.insert(&added);
            let candidates: Vec<String> = candidates.iter().map(|name| one_line(name)).collect();
            let lines = if candidates.is_empty() { String::new() } else { self.dim(&candidates.join("  ")) };
            return LineEffect { lines, ..LineEffect::default() };
        }
        let was_open = self.is_open();
        let KeyEffect { echo, end, .. } = self.editor.press_keys(keys, Face { visible: true, indent: 2, width });
        let echo = if self.look.escapes || !was_open { String::new() } else { echo };
        let Some(end) = end else { return LineEffect { echo, ..LineEffect::default() } };
        let (lines, meant) = match end {
            AnswerEnd::Text(text) => self.entered(&text),
            AnswerEnd::Declined => self.closed(),
            AnswerEnd::TooLong => (prompt::refusal(TOO_LONG, &self.look), None),
        };
        LineEffect { echo, lines, meant }
    }

    fn entered(&mut self, text: &str) -> (String, Option<Inbound>) {
        let (now, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest.trim_start()));
        if text.trim().is_empty() {
            return (String::new(), None);
        }
        let opening = match &mut self.stage {
            Stage::Opening(options) => Some(&mut **options),
            Stage::Starting | Stage::Working | Stage::Idle | Stage::Sent | Stage::Over => None,
        };
        let calls = match self.known.read(text, opening) {
            Entered::Prompt { calls } => calls,
            Entered::Shown(lines) => return (lines.trim_end().to_owned() + "\n", None),
            Entered::Again(line) => {
                self.goes_on = true;
                let (note, message) = self.closed();
                return (line + "\n" + &note, message);
            }
            Entered::End => return self.closed(),
            Entered::Rewind(to) => {
                return (String::new(), Some(Inbound::bare(Message::Prompt(PromptInput::Rewind(Some(to))))));
            }
        };
        // A line that the terminal cannot draw again stays as it was typed.
        let shown = matches!(self.stage, Stage::Opening(_) | Stage::Idle);
        let lines = if shown && self.look.escapes { self.quoted(text) } else { String::new() };
        if let Stage::Opening(options) = &mut self.stage {
            let mut options = Options { prompt: Some(text.to_owned()), ..mem::take(&mut **options) };
            self.runs_raw = calls;
            options.raw_prompt = calls.then_some(true).or(options.raw_prompt);
            self.stage = Stage::Starting;
            self.last_said = mention(text);
            self.first_line = text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
            let start = Message::Start(Box::new(Payload { options, ..Payload::default() }));
            return (lines, Some(Inbound::bare(start)));
        }
        self.count += 1;
        let id = format!("prompt_{}", self.count);
        let raw = (calls || self.runs_raw).then_some(calls);
        // A command has a turn of its own.
        let prompt = FurtherPrompt { text: text.into(), now: now && !calls, images: Vec::new(), raw };
        let message = Message::Prompt(PromptInput::Prompt(prompt));
        if let Stage::Idle = self.stage {
            self.stage = Stage::Sent;
        }
        self.sent.insert(id.clone(), SentPrompt { text: text.to_owned(), shown });
        (lines, Some(Inbound { id: Some(InboundId::from(id)), ..Inbound::bare(message) }))
    }

    fn closed(&mut self) -> (String, Option<Inbound>) {
        self.closing = true;
        let message = match self.stage {
            Stage::Opening(_) => Message::Cancel { reason: None, scope: CancelScope::Run },
            Stage::Starting | Stage::Working | Stage::Idle | Stage::Sent | Stage::Over => {
                Message::Prompt(PromptInput::End)
            }
        };
        let note =
            if self.goes_on { "It counts after this turn.\n" } else { "The conversation ends after this turn.\n" };
        let lines = if self.is_working() { self.dim(note) } else { String::new() };
        (lines, Some(Inbound::bare(message)))
    }

    /// `None`: Ctrl-C ends the run.
    pub(super) fn interrupted(&mut self, now: Instant) -> Option<LineEffect> {
        let is_second = self.interrupted.replace(now).is_some_and(|last| now.saturating_duration_since(last) <= TWICE);
        let note = "Ctrl-C again, or Ctrl-D, ends the conversation.\n";
        match self.stage {
            _ if is_second => None,
            Stage::Opening(_) | Stage::Idle if !self.closing => {
                self.editor.clear();
                Some(LineEffect { lines: self.dim(note), ..LineEffect::default() })
            }
            Stage::Working | Stage::Sent => {
                let message = Message::Cancel { reason: None, scope: CancelScope::Turn };
                Some(LineEffect { meant: Some(Inbound::bare(message)), ..LineEffect::default() })
            }
            Stage::Opening(_) | Stage::Starting | Stage::Idle | Stage::Over => None,
        }
    }

    pub(super) fn heard(&mut self, reply_to: Option<&str>, progress: &Progress) -> String {
        self.known.note(progress, |edit| painted(&self.look, edit));
        let rewound = self.known.note_checkpoint(progress, &self.last_said);
        if !rewound.is_empty() {
            return self.dim(&rewound);
        }
        let sent = reply_to.and_then(|id| self.sent.remove(id));
        let ProgressKind::Prompt { prompt_id, state, .. } = progress.about else {
            // The run refused it.
            if sent.is_some() && matches!(self.stage, Stage::Sent) {
                self.stage = Stage::Idle;
            }
            return String::new();
        };
        let waited = self.waiting.remove(&prompt_id);
        if state == PromptState::Sent
            && let Some(text) = sent.as_ref().map(|sent| &sent.text).or(waited.as_ref())
        {
            self.last_said = mention(text);
        }
        match (state, sent, waited) {
            (PromptState::Queued, Some(SentPrompt { text, .. }), _) => {
                let line = self.dim(&format!("  waiting: {}\n", mention(&text)));
                self.waiting.insert(prompt_id, text);
                line
            }
            (PromptState::Sent, Some(SentPrompt { shown: false, text }), _) | (PromptState::Sent, None, Some(text)) => {
                self.quoted(&text)
            }
            (PromptState::Dropped, _, Some(text)) => self.dim(&format!("  not sent: {}\n", mention(&text))),
            (PromptState::Queued | PromptState::Sent | PromptState::Dropped, _, _) => String::new(),
        }
    }

    pub(super) fn drawn(&self, width: usize) -> PromptLine {
        let (before, behind) = self.editor.around();
        // The last column stays free: a terminal that fills it does not say where its cursor is.
        let limit = width.saturating_sub(1).max(MARK.len() + 2);
        let mut rows = vec![(MARK.to_owned(), MARK.len())];
        let put = |rows: &mut Vec<(String, usize)>, c: char| {
            let echo = if c == '\n' { String::new() } else { echo_of(c, 0) };
            let columns = width::columns(&echo);
            if c == '\n' || rows.last().is_some_and(|(_, used)| used + columns > limit) {
                rows.push((INDENT.to_owned(), INDENT.len()));
            }
            if let Some((row, used)) = rows.last_mut() {
                row.push_str(&echo);
                *used += columns;
            }
        };
        before.chars().for_each(|c| put(&mut rows, c));
        let (row, column) = (rows.len() - 1, rows.last().map_or(0, |(_, used)| *used));
        behind.chars().for_each(|c| put(&mut rows, c));
        let first = (row + 1).saturating_sub(ROWS);
        let last = (first + ROWS).min(rows.len()) - 1;
        let mut drawn = rows[first..=last].iter().map(|(row, _)| row.as_str()).collect::<Vec<_>>().join("\n");
        if !behind.is_empty() && self.look.escapes {
            let up = if last > row { format!("\u{1b}[{}A", last - row) } else { String::new() };
            drawn.push_str(&format!("\r{up}\u{1b}[{column}C"));
        }
        let above = rows[first..row].iter().map(|(_, used)| *used).collect();
        PromptLine { drawn, above, column }
    }

    fn quoted(&self, text: &str) -> String {
        let text = whole(text);
        let lines = text.lines().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { MARK } else { INDENT }));
        lines.map(|line| self.look.paint(Ink::Bold, &line) + "\n").collect()
    }

    fn dim(&self, lines: &str) -> String {
        self.look.paint(Ink::Dim, lines.trim_end_matches('\n')) + "\n"
    }
}

fn mention(text: &str) -> String {
    width::cut(&one_line(text), MENTION)
}

#[cfg(test)]
mod tests {
    use super::{Chat, ChatPlace, Look, Options, PromptId, PromptLine, Stage};
    use crate::protocol::inbound::{CancelScope, Inbound, Message};
    use crate::protocol::outbound::{Progress, ProgressKind};
    use crate::protocol::prompt::PromptInput;
    use crate::protocol::words::{PromptState, Status};
    use std::time::{Duration, Instant};

    fn chat(opening: bool) -> Chat {
        let look = Look { escapes: true, live: true, ..Look::default() };
        Chat::new(look, opening.then(Options::default), ChatPlace::default())
    }

    fn meant(inbound: Option<Inbound>) -> String {
        match inbound.map(|inbound| inbound.message) {
            Some(Message::Start(start)) => format!("start {}", start.options.prompt.unwrap_or_default()),
            Some(Message::Prompt(PromptInput::Prompt(prompt))) => format!("{} {}", prompt.now, prompt.text.shown()),
            Some(Message::Prompt(PromptInput::End)) => "end".into(),
            Some(Message::Cancel { scope: CancelScope::Turn, .. }) => "cancel the turn".into(),
            Some(Message::Cancel { scope: CancelScope::Run, .. }) => "cancel".into(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn typed_lines_are_messages() {
        let mut chat = chat(true);
        assert_eq!(meant(chat.typed(b"hello\r", 80).meant), "start hello");
        chat.status(Status::Running);
        assert!(!chat.is_open());
        let step = chat.typed(b"later\r", 80);
        assert_eq!((step.lines.as_str(), meant(step.meant)), ("", "false later".to_owned()));
        assert_eq!(meant(chat.typed(b"! faster\r", 80).meant), "true faster");
        assert!(chat.typed(b"  \r", 80).meant.is_none());
        let queued =
            Progress::new(ProgressKind::Prompt { prompt_id: PromptId(1), state: PromptState::Queued, said: None }, "");
        assert!(chat.heard(Some("prompt_1"), &queued).contains("  waiting: later"));
        let sent =
            Progress::new(ProgressKind::Prompt { prompt_id: PromptId(2), state: PromptState::Sent, said: None }, "");
        assert_eq!(chat.heard(Some("prompt_2"), &sent), "\u{1b}[1m> faster\u{1b}[0m\n");
        let sent =
            Progress::new(ProgressKind::Prompt { prompt_id: PromptId(1), state: PromptState::Sent, said: None }, "");
        assert_eq!(chat.heard(None, &sent), "\u{1b}[1m> later\u{1b}[0m\n");
        chat.status(Status::WaitingForPrompt);
        assert!(chat.is_open());
        let step = chat.typed(b"again\r", 80);
        assert_eq!((step.lines.as_str(), meant(step.meant)), ("\u{1b}[1m> again\u{1b}[0m\n", "false again".to_owned()));
        assert_eq!(meant(chat.typed(b"\x04", 80).meant), "end");
        assert!(!chat.is_open());
    }

    #[test]
    fn ctrl_c_cancels_the_turn_and_twice_ends_the_run() {
        let (mut chat, now) = (chat(false), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        assert!(chat.interrupted(now).is_none(), "the run has not begun");
        chat.stage = Stage::Working;
        assert_eq!(meant(chat.interrupted(later(5)).unwrap().meant), "cancel the turn");
        assert!(chat.interrupted(later(6)).is_none());
        chat.status(Status::WaitingForPrompt);
        chat.typed(b"half", 80);
        assert!(chat.interrupted(later(10)).unwrap().meant.is_none());
        assert!(chat.editor.is_empty());
        assert_eq!(meant(chat.typed(b"\x04", 80).meant), "end");
    }

    #[test]
    fn the_line_wraps_and_keeps_its_cursor() {
        let mut chat = chat(true);
        chat.typed(b"abcdefg", 8);
        assert_eq!(chat.drawn(8), PromptLine { drawn: "> abcde\n  fg".into(), above: vec![7], column: 4 });
        chat.typed(b"\x1b[D\x1b[D\x1b[D", 8);
        assert_eq!(
            chat.drawn(8),
            PromptLine { drawn: "> abcde\n  fg\r\u{1b}[1A\u{1b}[6C".into(), above: vec![], column: 6 }
        );
        chat.typed("\u{1b}\r".repeat(20).as_bytes(), 8);
        assert_eq!(chat.drawn(8).above.len(), 7);
    }
}

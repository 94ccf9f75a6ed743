//! A person at a terminal: the second reader of the frames. The agent's text goes to stdout, all else to stderr.
//! Typed lines become the same messages that an orchestrator sends.
//!
//! [`TerminalPeer`] turns frames into what is to be shown: `speech` the agent's words, `work` its tools and the status
//! line, `prompt` questions. `ask` keeps the questions, `answer` reads what is typed. `screen` alone knows what stands
//! on the terminal, and puts the rest there.

mod alert;
mod answer;
mod ask;
mod chat;
mod claims;
mod editor;
mod ends;
mod log;
mod markdown;
mod phases;
mod prompt;
mod screen;
mod slash;
mod speech;
mod table;
mod tools;
mod width;
mod work;

pub use alert::TerminalFeatures;
pub(crate) use screen::Ink;
pub use screen::{Detail, Look};
pub use slash::{ChatPlace, ChosenSettings, Setting};

use crate::clean::{escaped, one_line};
use crate::engine::{InAdvance, Outbox, Outgoing, Peer, ScreenChange, ScreenPeer, Understood};
use crate::io::foreground::is_in_front;
use crate::io::output::Chunk;
use crate::io::tty::{Keyboard, columns};
use crate::protocol::failure::Failure;
use crate::protocol::outbound::{Body, CallId, PlanEntry, Progress, ProgressKind, Started, Text, WorkflowStarted};
use crate::protocol::question::{Answer, Decision, Subject};
use crate::protocol::words::{Resolution, Status, ToolState, Warning, WorkflowKind};
use alert::Alert;
use ask::{Asking, Reaction};
use chat::Chat;
use claims::Claims;
use markdown::Page;
use screen::{Below, Screen, Shown};
use speech::Speech;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};
use tools::ToolLine;
use work::Activity;

/// The time for which the status line stays away after a text, because text through a pipe arrives a little later.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause within a line of text after which the status shows below it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The pause within a message after which its last word shows, complete or not.
const WORD: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct TerminalPeer {
    look: Look,
    screen: Screen,
    speech: Speech,
    page: Page,
    /// The time at which the last text was shown.
    spoke: Option<Instant>,
    /// The failure of a turn that was shown last.
    told: Option<Failure>,
    /// Whether the conversation's prompt line was prepared.
    woke: bool,
    /// The time at which the word that is held back shows.
    word_at: Option<Instant>,
    work: Activity,
    asking: Asking,
    chat: Option<Chat>,
    alert: Alert,
    plan: Vec<PlanEntry>,
    wake_at: Option<Instant>,
    /// Permissions denied because nobody answered, by reason.
    denied: BTreeMap<&'static str, u64>,
    /// The reason for an unanswered question, if nobody can answer.
    absent: &'static str,
    /// The flag that resumes the session. `None`: the session cannot be resumed, or is not stored.
    resumed_by: Option<String>,
    /// Whether the run carries out a plan.
    implements: bool,
    /// Whether stdout gets a structured result, and nothing else.
    wants_result: bool,
    /// The number of times that something was shown.
    count: u64,
    /// The tool whose beginning was shown last, and the count at that time.
    begun: Option<(CallId, u64)>,
    /// The titles of the permissions that were asked for: the person saw those changes.
    approved: HashSet<String>,
}

impl TerminalPeer {
    /// `home`: what `~` stands for in a path that is typed.
    pub fn new(look: Look, keyboard: Option<Keyboard>, home: Option<String>) -> TerminalPeer {
        TerminalPeer {
            look,
            absent: if keyboard.is_some() { "headless" } else { "no terminal" },
            screen: Screen::new(look),
            page: Page::new(look.features.links),
            asking: Asking::new(look, keyboard, home),
            ..TerminalPeer::default()
        }
    }

    fn place(&mut self, mut shown: Shown, now: Instant) -> Chunk {
        let width = self.width();
        if self.look.live && self.work.began.is_some() {
            self.asking.switch_echo_off();
        }
        if !shown.lines.is_empty() || !shown.prompt.is_empty() {
            shown.text.push_str(&self.page.rows(width));
        }
        let speaks = self.look.shared && !shown.text.is_empty();
        if speaks {
            self.spoke = Some(now);
        }
        if (speaks || !shown.lines.is_empty()) && shown.prompt.is_empty() && self.asking.is_open() {
            shown.prompt = self.asking.mark(now).prompt;
        }
        self.set_alarm(now);
        let mut below = Below::Nothing;
        if let Some(chat) = self.chat.as_ref().filter(|chat| chat.is_open()) {
            if !self.asking.is_open() && !self.asking.is_away() && is_in_front() {
                below = Below::Typed(chat.drawn(width));
            }
        } else if speaks {
            self.wake_at = self.wake_at.map(|at| at.max(now + PAUSE));
        } else if self.look.live && self.look.detail > Detail::Quiet && !self.asking.is_open() && is_in_front() {
            // From the background the line would overwrite the shell's input line.
            let pauses = self.spoke.is_none_or(|spoke| now.saturating_duration_since(spoke) >= PATIENCE);
            let status = self.work.line(now).filter(|_| pauses || !self.screen.is_within_text());
            below = status.map_or(Below::Nothing, Below::Status);
        }
        self.count += u64::from(shown != Shown::default());
        (shown.lines, shown.prompt) = (width::wrap(&shown.lines, width), width::wrap(&shown.prompt, width));
        let breaks = matches!(below, Below::Typed(_)) && self.screen.is_within_text();
        if breaks || !shown.lines.is_empty() || !shown.prompt.is_empty() {
            self.page.interrupted();
        }
        let mut chunk = self.screen.place(shown, below, width);
        if self.look.alert {
            let change = self.alert.change(self.asking.is_open(), self.look.features.titles);
            chunk.err.splice(0..0, change.into_bytes());
        }
        chunk
    }

    fn width(&self) -> usize {
        if self.look.live { columns() } else { usize::MAX }
    }

    /// Sets the wake-up for the next second of the countdown or the status line, or for a word that is held back.
    fn set_alarm(&mut self, now: Instant) {
        let next = match (self.look.live && self.work.began.is_some(), self.is_typed_at()) {
            (false, _) => None,
            (true, true) => self.asking.counts_at(now),
            (true, false) => self.work.changes_at(now).filter(|_| self.look.detail > Detail::Quiet),
        };
        self.wake_at = next.into_iter().chain(self.word_at).min();
    }

    /// While a person types, only whole lines show.
    fn late_word(&mut self, now: Instant) -> Shown {
        if self.word_at.take_if(|at| *at <= now).is_none() || self.is_typed_at() {
            return Shown::default();
        }
        let text = self.speech.late();
        Shown { text: self.laid_out(text, false), ..Shown::default() }
    }

    fn render(&mut self, body: &Body, in_advance: Option<&InAdvance>, now: Instant) -> Shown {
        match body {
            Body::Started(started) => self.started(started, now),
            Body::Question(question) => {
                let subject = question.ask.subject.as_ref().filter(|_| in_advance.is_none());
                self.approved.extend(subject.map(|subject| one_line(subject.title.shown())));
                self.asking.ask(question, in_advance, now)
            }
            Body::Terminal(end) => self.terminal(end),
            Body::Progress(progress) => {
                if let ProgressKind::Resolved { question_id, resolution, subject, value, what, .. } = &progress.about {
                    let choice = value.as_ref().filter(|_| subject.is_some());
                    let left = self.left(*resolution, choice, what);
                    let next = self.asking.resolved(question_id, *resolution, now);
                    let note = self.by_policy(*resolution, subject.as_ref(), choice);
                    return Shown { lines: note + &left + &next.lines, ..next };
                }
                if self.look.detail == Detail::Quiet {
                    self.unseen(progress, now)
                } else {
                    self.progress(progress, now)
                }
            }
            Body::Artifact(_) if self.look.detail == Detail::Quiet => Shown::default(),
            // The tool's own line names the file.
            Body::Artifact(artifact) if self.work.changes(&artifact.path) => Shown::default(),
            Body::Artifact(artifact) => Shown::lines(self.artifact(artifact)),
        }
    }

    /// Counts an unanswered permission, or returns a line. `choice`: the option that a permission got.
    fn left(&mut self, resolution: Resolution, choice: Option<&Answer>, what: &Text) -> String {
        let (verb, why) = match resolution {
            Resolution::Headless => ("asked", self.absent),
            Resolution::InputClosed => ("answered", self.absent),
            Resolution::Timeout => ("answered", "no answer in time"),
            Resolution::Answered | Resolution::Declined | Resolution::Policy | Resolution::Withdrawn => {
                return String::new();
            }
        };
        match choice {
            Some(Answer::Decision(Decision::Deny)) => *self.denied.entry(why).or_default() += 1,
            Some(_) => {}
            // A prompt that was shown says itself that its time is over.
            None if resolution == Resolution::Timeout || self.look.detail == Detail::Quiet => {}
            None => {
                let line = format!("Not {verb} ({why}): {}", one_line(what.shown()));
                return self.look.paint(Ink::Yellow, &line) + "\n";
            }
        }
        String::new()
    }

    /// Shows only with --verbose.
    fn by_policy(&self, resolution: Resolution, subject: Option<&Subject>, choice: Option<&Answer>) -> String {
        let (Some(subject), Some(choice), Resolution::Policy) = (subject, choice, resolution) else {
            return String::new();
        };
        let verb = if *choice == Answer::Decision(Decision::Deny) { "Denied" } else { "Allowed" };
        // Removing characters from a redacted action would join the parts of a secret that they split.
        let title = escaped(subject.title.shown(), false).replace('\n', " ");
        self.verbose(|| format!("{verb} by policy: {title}"))
    }

    fn verbose(&self, line: impl FnOnce() -> String) -> String {
        if self.look.detail == Detail::Verbose { self.look.paint(Ink::Dim, &line()) + "\n" } else { String::new() }
    }

    fn started(&mut self, started: &Started, now: Instant) -> Shown {
        let name = one_line(started.agent.display_name.shown());
        let line = self.header(&name, started);
        self.note_whether_resumable(started.capabilities.resume);
        let writes = |workflow: &WorkflowStarted| workflow.name != WorkflowKind::Implement;
        self.speech.claims = started.workflow.as_deref().is_some_and(writes).then(Claims::default);
        self.implements = started.workflow.as_ref().is_some_and(|it| it.name == WorkflowKind::Implement);
        self.wants_result = started.config.settings.output_schema.is_some();
        self.work.begin(name, now);
        self.chat.iter_mut().for_each(|chat| _ = chat.status(Status::Starting));
        self.asking.set_limit(started.config.settings.question_timeout_s.duration());
        Shown::lines(line)
    }

    /// Takes note of progress that is not shown, except a second word about the start.
    fn unseen(&mut self, progress: &Progress, now: Instant) -> Shown {
        if let ProgressKind::Status { status, until, agent } = &progress.about {
            self.work.status(*status, *until, now);
            agent.iter().for_each(|agent| self.note_successor(agent));
            if self.chat.as_mut().is_some_and(|chat| chat.status(*status)) {
                self.work.began = Some(now);
                self.speech.said = false;
            }
        }
        if let ProgressKind::Turn(turn) = &progress.about
            && self.chat.is_some()
        {
            return self.turn(turn, now);
        }
        Shown::lines(self.work.slow_start(progress))
    }

    fn progress(&mut self, progress: &Progress, now: Instant) -> Shown {
        let nested = progress.parent_call_id.is_some();
        let line = one_line(progress.text.shown());
        match &progress.about {
            // A sub-agent's text is internal: the agent itself reports the outcome.
            ProgressKind::Text { .. } | ProgressKind::Reasoning { .. } if nested => Shown::default(),
            ProgressKind::Text { message_id, withdrawn: true, .. } => {
                let text = self.speech.withdrawn(*message_id);
                drop(self.page.end(self.width()));
                Shown { text, ..Shown::lines("  (The agent withdrew its last message.)\n") }
            }
            ProgressKind::Text { message_id, done, .. } if self.wants_result => {
                Shown::lines(self.speech.thought(*message_id, progress.text.shown(), *done))
            }
            ProgressKind::Text { message_id, done, .. } => {
                let text = self.speech.text(*message_id, progress.text.shown(), *done, self.is_typed_at());
                self.word_at = self.speech.holds(*message_id).then(|| now + WORD);
                Shown { text: self.laid_out(text, *done), ..Shown::default() }
            }
            ProgressKind::Reasoning { message_id, done, withdrawn: false } if self.look.detail == Detail::Verbose => {
                let text = self.speech.thought(*message_id, progress.text.shown(), *done);
                Shown::lines(text.lines().map(|line| self.verbose(|| format!("  | {line}"))).collect::<String>())
            }
            ProgressKind::Tool { call_id, state, output, phase: Some(_), .. } => {
                let (line, hint) = state.title(&line);
                let took = self.work.tool(*call_id, line, &[], *state, now);
                Shown::lines(self.command((line, hint), *state, took, output.as_ref()))
            }
            ProgressKind::Phase { .. } => Shown::lines(self.phase(progress)),
            ProgressKind::Tool { call_id: call, category, state, output, exit_code, diff, locations, .. } => {
                let (line, hint) = state.title(&line);
                let is_known = *state != ToolState::Started && self.approved.remove(line);
                let changes = category.changes_files();
                let files = if changes { &**locations } else { &[] };
                let (call, state, output) = (*call, *state, output.as_ref());
                let took = self.work.tool(call, line, files, state, now);
                let exit_code = exit_code.code;
                let tool = ToolLine { call, title: line, hint, nested, state, took, output, exit_code, diff, is_known };
                Shown::lines(self.tool(&tool))
            }
            // The phases have lines of their own.
            ProgressKind::Plan(_) if self.implements => Shown::default(),
            ProgressKind::Plan(entries) | ProgressKind::Todo(entries) => Shown::lines(self.plan(entries)),
            ProgressKind::Usage(usage) => {
                self.work.cost = usage.cost_usd;
                Shown::default()
            }
            ProgressKind::Warning { code: Warning::EmptyResult, .. } => Shown::default(),
            ProgressKind::Warning { for_person, .. } => {
                let line = for_person.as_ref().map_or(line, |text| one_line(text.shown()));
                let text = format!("spektacular: warning: {line}");
                Shown::lines(self.look.paint(Ink::Yellow, &text) + "\n")
            }
            ProgressKind::Status { status: Status::WaitingForLimit, .. } => self.waits_for_limit(progress, now),
            ProgressKind::Status { .. } | ProgressKind::Turn(_) | ProgressKind::Commands(_) => {
                self.unseen(progress, now)
            }
            ProgressKind::Session { session_id, agent_version, model, .. } => {
                let [version, model] = [agent_version, model].map(|text| text.as_ref().map(Text::shown));
                Shown::lines(self.session(session_id.as_deref(), version, model))
            }
            ProgressKind::Heartbeat { idle_s, waiting_on } => Shown::lines(self.sign_of_life(*idle_s, *waiting_on)),
            // A conversation shows them itself.
            ProgressKind::Prompt { .. } | ProgressKind::Checkpoint { .. } => Shown::default(),
            ProgressKind::Reasoning { .. } | ProgressKind::Resolved { .. } => Shown::default(),
        }
    }

    fn laid_out(&mut self, text: String, done: bool) -> String {
        let width = self.width();
        if self.look.page { self.page.lay_out(&text, done, width) } else { text }
    }

    fn enter_pressed(&mut self) -> Chunk {
        let wiped = if self.asking.is_echo_off() { String::new() } else { self.screen.entered() };
        let mut chunk = self.place(Shown::default(), Instant::now());
        chunk.before.splice(0..0, wiped.into_bytes());
        chunk
    }

    fn refresh(&mut self) -> Chunk {
        let now = Instant::now();
        let countdown = self.asking.countdown(now).unwrap_or_default();
        let mut word = self.late_word(now);
        if !std::mem::replace(&mut self.woke, true) && self.chat.is_some() {
            self.asking.prompt(now);
            word.lines = self.chat.as_ref().map(Chat::help).unwrap_or_default();
        }
        let chunk = self.place(word, now);
        Chunk { err: [countdown.into_bytes(), chunk.err].concat(), ..chunk }
    }

    fn resumed(&mut self) -> Chunk {
        let now = Instant::now();
        // Another program may have changed the terminal's modes meanwhile.
        self.asking.leave();
        self.chat.iter_mut().for_each(|chat| chat.editor.drop_unfinished_key());
        self.alert.met();
        let shown = self.asking.prompt(now);
        self.place(shown, now)
    }
}

impl Peer for TerminalPeer {
    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let now = Instant::now();
        self.screen.note_run(outgoing.run_id);
        let mut shown = self.render(outgoing.body, outgoing.in_advance.as_ref(), now);
        if let (Some(chat), Body::Progress(progress)) = (&mut self.chat, &**outgoing.body) {
            shown.lines.push_str(&chat.heard(outgoing.reply_to, progress));
        }
        out.push(self.place(shown, now));
    }

    /// Nobody sees the numbers of frames here.
    fn dropped(&mut self, _frames: u64) {}

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        Some(self)
    }
}

impl ScreenPeer for TerminalPeer {
    fn typed(&mut self, keys: &[u8], read: Instant) -> Understood {
        let now = Instant::now();
        if let Some(chat) = self.chat.as_mut().filter(|_| !self.asking.takes(read)) {
            let step = chat.typed(keys, self.look.live.then(columns).unwrap_or(usize::MAX));
            return self.stepped(step, now);
        }
        let Reaction { echo, entered, shown, meant } = self.asking.typed(keys, read, now, self.width());
        if entered {
            self.screen.entered();
        }
        // The answer's effect shows once the run reports it.
        let mut chunk = if meant.is_empty() { self.place(shown, now) } else { Chunk::default() };
        chunk.before.splice(0..0, echo.into_bytes());
        Understood { chunk, messages: meant }
    }

    fn note(&mut self, line: &str) -> Chunk {
        self.place(Shown::lines(format!("{line}\n")), Instant::now())
    }

    fn debug(&mut self, line: &str) -> Chunk {
        if self.look.detail == Detail::Verbose { self.note(line) } else { Chunk::default() }
    }

    fn interrupted(&mut self) -> Option<Understood> {
        let now = Instant::now();
        let step = self.chat.as_mut()?.interrupted(now)?;
        Some(self.stepped(step, now))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    fn changed(&mut self, change: ScreenChange) -> Chunk {
        match change {
            ScreenChange::Due => self.refresh(),
            ScreenChange::Enter => self.enter_pressed(),
            ScreenChange::Resumed => self.resumed(),
            ScreenChange::Foreground if self.asking.is_away() => self.resumed(),
            ScreenChange::Foreground => Chunk::default(),
        }
    }

    fn clear_last_line(&mut self) -> Vec<u8> {
        self.asking.leave();
        (self.screen.clear(self.width()) + &self.alert.end()).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, Look, PAUSE, Shown, TerminalPeer};
    use crate::engine::{Outbox, Outgoing, Peer, ScreenPeer};
    use crate::protocol::ids::RunId;
    use crate::protocol::outbound::{Body, MessageId, Progress, ProgressKind};
    use crate::protocol::redacted::Redacted;
    use crate::redact::Redactor;
    use std::time::{Duration, Instant, SystemTime};

    fn show(peer: &mut TerminalPeer, piece: &str) -> Chunk {
        let about = ProgressKind::Text { message_id: MessageId::Said(1), done: false, withdrawn: false };
        let progress = Progress::new(about, piece);
        let mut body = Redacted::new(Body::Progress(Box::new(progress)), &Redactor::new());
        let mut out = Outbox::default();
        let at = SystemTime::now();
        peer.show(
            Outgoing {
                body: &mut body,
                reply_to: None,
                run_id: &RunId::generated("r"),
                max_bytes: 0,
                at,
                in_advance: None,
            },
            &mut out,
        );
        out.pop()
    }

    #[test]
    fn an_enter_without_a_question_clears_the_status_line_that_it_left() {
        let look = Look { person: true, live: true, escapes: true, shared: true, ..Look::default() };
        let mut peer = TerminalPeer::new(look, None, None);
        peer.work.begin("Agent".into(), Instant::now());
        peer.place(Shown::lines("an answer\n"), Instant::now());
        assert!(peer.typed(b"y\n", Instant::now()).chunk.before.is_empty());
        assert_eq!(String::from_utf8(peer.enter_pressed().before).unwrap(), "\u{1b}[A\r\u{1b}[J");
    }

    #[test]
    fn the_last_word_shows_once_the_agent_pauses() {
        for look in [Look::default(), Look { live: true, shared: true, ..Look::default() }] {
            let mut peer = TerminalPeer::new(look, None, None);
            peer.work.begin("Agent".into(), Instant::now());
            assert_eq!(show(&mut peer, "Building the project").out, b"Building the ");
            let due = peer.word_at.unwrap();
            assert!(peer.wake_at().unwrap() <= due);
            assert_eq!(peer.late_word(due - Duration::from_millis(1)), Shown::default());
            assert_eq!(peer.late_word(due).text, "project");
            assert_eq!((peer.late_word(due).text.as_str(), peer.word_at), ("", None));
            assert_eq!(show(&mut peer, "\nNow ").out, b"\nNow ");
            assert_eq!(peer.word_at, None, "nothing is held back");
        }
    }

    #[test]
    fn the_status_line_waits_until_a_text_was_seen() {
        for shared in [true, false] {
            let look = Look { person: true, live: true, escapes: true, shared, ..Look::default() };
            let mut peer = TerminalPeer::new(look, None, None);
            // The next second begins within the pause. A run that begins later stays at 0 s, so nothing changes.
            let now = Instant::now();
            let began = if shared {
                now.checked_sub(Duration::from_secs(1) - PAUSE / 2)
            } else {
                now.checked_add(Duration::from_secs(3600))
            };
            peer.work.begin("Agent".into(), began.unwrap());
            assert!(String::from_utf8(peer.refresh().err).unwrap().contains("s] starting Agent"));
            let before = Instant::now();
            let chunk = show(&mut peer, "a line\n");
            assert_eq!((chunk.out, chunk.err), (b"a line\n".to_vec(), Vec::new()));
            assert_eq!(chunk.before.is_empty(), !shared, "a text elsewhere leaves the status line alone");
            let next = peer.wake_at().unwrap().saturating_duration_since(before);
            assert!(!shared || next >= PAUSE, "{next:?}");
            assert_eq!(peer.refresh().err.is_empty(), !shared);
        }
    }
}

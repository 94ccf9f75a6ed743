//! The queue of questions for a person. It asks one at a time.

use super::answer::{self, Meaning};
use super::editor::{AnswerEnd, Editor, Face, TOO_LONG};
use super::prompt;
use super::screen::{Look, Shown};
use crate::clean::one_line;
use crate::engine::InAdvance;
use crate::io::tty::{EchoOff, KeyMode, KeyWish, Keyboard};
use crate::protocol::ids::QuestionId;
use crate::protocol::inbound::{Inbound, Message};
use crate::protocol::outbound::Question;
use crate::protocol::question::{AnswerInput, Given, Kind};
use crate::protocol::text::Text;
use crate::protocol::words::{Purpose, Resolution};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// A longer time limit counts as none for a person.
const NO_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The text that goes back to the question before, in a group.
pub(super) const BACK: &str = "<";

/// The first of the waiting questions is being asked.
#[derive(Debug, Default)]
pub(super) struct Asking {
    look: Look,
    waiting: VecDeque<Waiting>,
    /// The answered questions of a group that has open ones, which the person may still change. The run gets their
    /// answers with the last one.
    held: Vec<(Waiting, Inbound)>,
    /// The lines of questions whose answers were given in advance, by id.
    in_advance: HashMap<QuestionId, String>,
    /// The answer typed last, where the screen does not show it yet: the label of an option, or the meaning of Enter.
    chosen: Option<String>,
    /// A text that is nearly an option, typed for the open question: typed again, it is meant.
    doubted: Option<String>,
    /// The number of questions in each group so far.
    asked: HashMap<String, usize>,
    limit: Option<Duration>,
    /// The time of the prompt: earlier input does not answer it. `None`: no prompt is shown, or the run has not resolved
    /// the answer yet.
    since: Option<Instant>,
    keyboard: Option<Keyboard>,
    /// Whether keys are read while no question is open too.
    pub(super) stays: bool,
    /// Whether the question waits until this process has the terminal again.
    away: bool,
    told: bool,
    /// Keeps the terminal's own line mode and echo off while a question is open.
    mode: Option<KeyMode>,
    /// Keeps the echo off while no question is open. Below `mode`, so it is dropped after it.
    echo_off: Option<EchoOff>,
    editor: Editor,
    home: Option<String>,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    /// The question's number in its group, from 1.
    place: usize,
    until: Option<Instant>,
}

impl Waiting {
    fn left(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now))
    }
}

#[derive(Debug, Default)]
pub(super) struct Reaction {
    pub(super) echo: String,
    pub(super) entered: bool,
    pub(super) shown: Shown,
    pub(super) meant: Vec<Inbound>,
}

fn limited(time: Duration) -> Option<Duration> {
    (time < NO_LIMIT).then_some(time)
}

impl Asking {
    /// `home`: what `~` stands for in a path.
    pub(super) fn new(look: Look, keyboard: Option<Keyboard>, home: Option<String>) -> Asking {
        Asking { look, keyboard, home, ..Asking::default() }
    }

    /// Whether keys that were read at this time belong to the open question.
    pub(super) fn takes(&self, read: Instant) -> bool {
        self.since.is_some_and(|since| read >= since)
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limited(limit);
    }

    pub(super) fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Takes a repeated question too. Nothing is to be shown if its answer was given in advance.
    pub(super) fn ask(&mut self, question: &Question, in_advance: Option<&InAdvance>, now: Instant) -> Shown {
        if let Some(answer) = in_advance {
            *self.asked.entry(question.group_id.clone()).or_default() += 1;
            self.in_advance.insert(question.question_id.clone(), prompt::in_advance(question, answer));
            return Shown::default();
        }
        // Nobody can answer, and the end of the question has a line of its own.
        if self.keyboard.is_none() {
            self.in_advance.remove(&question.question_id);
            let refusal = |why: &Text| prompt::refusal(&one_line(why.shown()), &self.look);
            return Shown::lines(question.error.as_ref().map(refusal).unwrap_or_default());
        }
        // If an answer given in advance does not fit, the person answers.
        let was_counted = self.in_advance.remove(&question.question_id).is_some();
        let until = limited(question.timeout_s.duration()).and_then(|left| now.checked_add(left));
        match self.waiting.iter().position(|waiting| waiting.question.question_id == question.question_id) {
            Some(at) => (self.waiting[at].question, self.waiting[at].until) = (question.clone(), until),
            None => {
                let place = self.asked.entry(question.group_id.clone()).or_default();
                *place += usize::from(!was_counted);
                self.waiting.push_back(Waiting { question: question.clone(), place: *place, until });
            }
        }
        let is_first = self.waiting.front().is_some_and(|first| first.question.question_id == question.question_id);
        if is_first { self.prompt(now) } else { Shown::default() }
    }

    pub(super) fn resolved(&mut self, id: &QuestionId, resolution: Resolution, now: Instant) -> Shown {
        if let Some(line) = self.in_advance.remove(id) {
            return if resolution == Resolution::Answered { Shown::lines(line) } else { Shown::default() };
        }
        self.held.retain(|(held, _)| held.question.question_id != *id);
        let Some(at) = self.waiting.iter().position(|waiting| waiting.question.question_id == *id) else {
            return Shown::default();
        };
        let over = self.waiting.remove(at).map(|waiting| waiting.question.group_id);
        // An answer restarts the clock for the rest of its group.
        let until = self.limit.and_then(|limit| now.checked_add(limit));
        for other in self.waiting.iter_mut().filter(|other| Some(&other.question.group_id) == over.as_ref()) {
            other.until = until;
        }
        if at > 0 {
            return Shown::default();
        }
        if resolution == Resolution::Withdrawn {
            // The rest of the group is withdrawn next: it must not show before that.
            self.waiting.retain(|other| Some(&other.question.group_id) != over.as_ref());
            self.held.clear();
        }
        if !self.stays {
            self.mode = None;
        }
        self.editor = Editor::default();
        self.doubted = None;
        let chosen = self.chosen.take().map(|label| format!("  {label}\n"));
        let why = match resolution {
            Resolution::Timeout => "  (No answer in time.)\n".to_owned(),
            Resolution::Withdrawn => "  (Question withdrawn.)\n".to_owned(),
            // Nothing was typed at this prompt: the answer to another question covers it.
            Resolution::Answered if self.since.is_some() => "  (Already answered.)\n".to_owned(),
            Resolution::Answered => chosen.unwrap_or_default(),
            Resolution::Declined | Resolution::Headless | Resolution::InputClosed | Resolution::Policy => String::new(),
        };
        let next = self.prompt(now);
        Shown { lines: format!("{why}{}", next.lines), ..next }
    }

    pub(super) fn prompt(&mut self, now: Instant) -> Shown {
        self.since = None;
        self.away = self.keyboard.as_ref().is_some_and(|keyboard| !keyboard.is_in_front());
        let Some(first) = self.waiting.front() else {
            if self.stays && !self.away {
                self.take_keys(false);
            }
            self.listen(self.stays);
            return Shown::default();
        };
        let mut lines = prompt::question(&first.question, first.place, &self.look);
        if self.away {
            if !std::mem::replace(&mut self.told, true) {
                lines.push_str(&prompt::refusal("To answer, bring the run to the foreground: fg", &self.look));
            }
            self.listen(true);
            return Shown { lines, ..Shown::default() };
        }
        let secret = first.question.ask.kind == Kind::Secret;
        if let Some(keyboard) = &self.keyboard {
            keyboard.forget();
        }
        self.take_keys(secret);
        self.editor.drop_unfinished_key();
        if secret {
            self.editor = Editor::default();
        }
        if secret && self.mode.is_none() {
            lines.push_str(&prompt::refusal("This terminal cannot hide what you type.", &self.look));
        }
        self.since = Some(Instant::now());
        self.listen(true);
        Shown { lines, ..self.mark(now) }
    }

    fn take_keys(&mut self, secret: bool) {
        let Some(keyboard) = &self.keyboard else { return };
        let wish = KeyWish { secret, marks: self.look.escapes };
        let same = self.mode.take().filter(|mode| mode.wanted == wish);
        self.mode = same.or_else(|| keyboard.take_keys(wish));
    }

    /// Keeps what is typed without a question out of the run's output, until [`Asking::leave`].
    pub(super) fn switch_echo_off(&mut self) {
        if self.mode.is_none() {
            let still = self.echo_off.take().filter(EchoOff::holds);
            self.echo_off = still.or_else(|| self.keyboard.as_ref().and_then(Keyboard::switch_echo_off));
        }
    }

    pub(super) fn is_echo_off(&self) -> bool {
        self.echo_off.as_ref().is_some_and(EchoOff::holds)
    }

    /// The prompt's last line, to show again below other output.
    pub(super) fn mark(&self, now: Instant) -> Shown {
        let Some(first) = self.waiting.front() else { return Shown::default() };
        let prompt = prompt::input(&first.question, first.left(now), !self.held.is_empty(), &self.look);
        let typed = self.editor.again(self.face(first, now, usize::MAX));
        Shown { prompt: prompt + &typed, ..Shown::default() }
    }

    fn face(&self, first: &Waiting, now: Instant, width: usize) -> Face {
        let visible = self.mode.is_some() && first.question.ask.kind != Kind::Secret;
        Face { visible, indent: prompt::indent(first.left(now), &self.look), width }
    }

    /// The time at which the countdown changes next.
    pub(super) fn counts_at(&self, now: Instant) -> Option<Instant> {
        let until = self.waiting.front().filter(|_| self.look.live && self.look.escapes)?.until?;
        let left = until.saturating_duration_since(now);
        let next = if left > prompt::NEAR { prompt::NEAR.as_secs() } else { prompt::seconds(left).saturating_sub(1) };
        // Just after each full second, to show the new number. At zero the run reports the timeout.
        let at = until.checked_sub(Duration::from_secs(next))? + Duration::from_millis(1);
        (next > 0).then_some(at)
    }

    /// The time left, if it is short.
    pub(super) fn countdown(&self, now: Instant) -> Option<String> {
        let counts = self.is_open() && self.look.live && self.look.escapes;
        let left = self.waiting.front().filter(|_| counts)?.left(now)?;
        (left <= prompt::NEAR).then(|| prompt::countdown(left))
    }

    pub(super) fn end(&mut self) {
        self.waiting.clear();
        self.held.clear();
        (self.since, self.stays) = (None, false);
        self.leave();
    }

    /// Restores the echo and stops reading, until the prompt shows again.
    pub(super) fn leave(&mut self) {
        self.listen(false);
        // From the background only the shell can restore the echo.
        if self.keyboard.as_ref().is_none_or(Keyboard::is_in_front) {
            self.mode = None;
            self.echo_off = None;
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.away && (self.stays || !self.waiting.is_empty())
    }

    fn listen(&self, listen: bool) {
        self.keyboard.iter().for_each(|keyboard| keyboard.listen(listen));
    }

    pub(super) fn typed(&mut self, keys: &[u8], read: Instant, now: Instant, width: usize) -> Reaction {
        let Some(first) = self.waiting.front().filter(|_| self.takes(read)) else {
            return Reaction::default();
        };
        let face = self.face(first, now, width);
        let effect = self.editor.press_keys(keys, face);
        let Some(end) = effect.end else {
            let shown = if effect.again { self.mark(now) } else { Shown::default() };
            return Reaction { echo: effect.echo, shown, ..Reaction::default() };
        };
        let entered = end != AnswerEnd::Declined;
        // Without a mode of our own, the terminal has shown the keys itself.
        let echo = if entered && self.mode.is_some() { effect.echo + "\n" } else { effect.echo };
        let (shown, meant) = self.ended(end, now);
        Reaction { echo, entered, shown, meant }
    }

    fn ended(&mut self, end: AnswerEnd, now: Instant) -> (Shown, Vec<Inbound>) {
        if end == AnswerEnd::Text(BACK.into())
            && let Some((earlier, _)) = self.held.pop()
        {
            self.waiting.push_front(earlier);
            return (self.prompt(now), Vec::new());
        }
        let Some(first) = self.waiting.front() else { return (Shown::default(), Vec::new()) };
        let mut is_enter_alone = false;
        let meaning = match end {
            AnswerEnd::Text(text) => {
                is_enter_alone = text.trim().is_empty();
                match answer::nearly(&first.question, &text).filter(|_| self.doubted.as_deref() != Some(text.trim())) {
                    Some(label) => {
                        self.doubted = Some(text.trim().to_owned());
                        Meaning::Refused(format!("Did you mean {label}? Type its number, or the same text again."))
                    }
                    None => answer::read(&first.question, &text, self.home.as_deref()),
                }
            }
            AnswerEnd::Declined => Meaning::Answer(Given::Declined, None),
            AnswerEnd::TooLong => Meaning::Refused(TOO_LONG.into()),
        };
        let lines = match meaning {
            Meaning::Answer(given, message) => {
                let question_id = Some(first.question.question_id.clone());
                let input = AnswerInput {
                    question_id,
                    given: Some(given),
                    message: message.map(Text::from),
                    ..AnswerInput::default()
                };
                let alone = || prompt::enter(&first.question).filter(|_| is_enter_alone);
                self.chosen = prompt::chosen(&first.question, input.given.as_ref()).or_else(alone);
                return self.answered(Inbound::bare(Message::Answer(input)), now);
            }
            Meaning::Explain => prompt::help(&first.question, !self.held.is_empty()),
            Meaning::Refused(why) => prompt::refusal(&why, &self.look),
        };
        (Shown { lines, ..self.mark(now) }, Vec::new())
    }

    /// Holds the answer if the person may still change it.
    fn answered(&mut self, answer: Inbound, now: Instant) -> (Shown, Vec<Inbound>) {
        let Some(first) = self.waiting.pop_front() else { return (Shown::default(), Vec::new()) };
        let goes_on = |other: &Waiting| other.question.group_id == first.question.group_id;
        // A limit counts until the run has the answer, and an answer to a permission may cover another one.
        let may_change = first.until.is_none() && first.question.ask.purpose != Purpose::Permission;
        if may_change && self.waiting.iter().any(goes_on) {
            self.held.push((first, answer));
            (self.editor, self.doubted) = (Editor::default(), None);
            let chosen = self.chosen.take().map(|label| format!("  {label}\n")).unwrap_or_default();
            let next = self.prompt(now);
            return (Shown { lines: chosen + &next.lines, ..next }, Vec::new());
        }
        self.since = None;
        let (asked, mut answers): (Vec<Waiting>, Vec<Inbound>) = self.held.drain(..).unzip();
        answers.push(answer);
        // The run may repeat one of them, which is then asked next.
        asked.into_iter().rev().for_each(|earlier| self.waiting.push_front(earlier));
        self.waiting.push_front(first);
        (Shown::default(), answers)
    }
}

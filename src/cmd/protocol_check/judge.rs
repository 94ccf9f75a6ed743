//! The judgement: from the facts of a dialogue to the mistakes of the client. Pure.

use super::dialogues::Dialogue;
use super::log::{By, Entry, Fact, Over};
use std::collections::{BTreeMap, BTreeSet};

/// The length of a write, in milliseconds, that proves that the client does not read.
const BLOCKED_MS: u64 = 1000;
/// The time, in milliseconds, that a client has to take back an answer after it read that the question is resolved.
const GRACE_MS: u64 = 100;

/// A mistake of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    NotCalled,
    WrongCall,
    NoStart,
    InvalidMessage,
    UnknownField,
    InvalidStart,
    NotReading,
    UnknownQuestion,
    AnsweredTwice,
    AnsweredResolved,
    Unanswered,
    NotAnsweredAgain,
    ClosedInput,
    LeftRunning,
    StoppedAtUnknown,
    TrustedExitCode,
    WrongEnd,
    NeverEnded,
}

impl Mistake {
    /// The word in JSON.
    pub(super) fn code(self) -> &'static str {
        match self {
            Mistake::NotCalled => "not_called",
            Mistake::WrongCall => "wrong_call",
            Mistake::NoStart => "no_start",
            Mistake::InvalidMessage => "invalid_message",
            Mistake::UnknownField => "unknown_field",
            Mistake::InvalidStart => "invalid_start",
            Mistake::NotReading => "not_reading",
            Mistake::UnknownQuestion => "unknown_question",
            Mistake::AnsweredTwice => "answered_twice",
            Mistake::AnsweredResolved => "answered_resolved",
            Mistake::Unanswered => "unanswered",
            Mistake::NotAnsweredAgain => "not_answered_again",
            Mistake::ClosedInput => "closed_input",
            Mistake::LeftRunning => "left_running",
            Mistake::StoppedAtUnknown => "stopped_at_unknown",
            Mistake::TrustedExitCode => "trusted_exit_code",
            Mistake::WrongEnd => "wrong_end",
            Mistake::NeverEnded => "never_ended",
        }
    }
}

/// A mistake with its description in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) mistake: Mistake,
    pub(super) text: String,
}

/// The judgement of a dialogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The mistakes, each text once.
    pub(super) findings: Vec<Finding>,
    /// The reason why a part of the dialogue could not be played: the rest of a sentence.
    pub(super) skipped: Option<String>,
}

impl Verdict {
    fn add(&mut self, mistake: Mistake, text: impl Into<String>) {
        let finding = Finding { mistake, text: text.into() };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// Judges a client by the log of a dialogue. `checker`: the process whose facts concern all runs.
pub(super) fn judge(dialogue: &'static Dialogue, log: &[Entry], checker: u32) -> Verdict {
    let runs: BTreeSet<u32> = log.iter().map(|entry| entry.pid).filter(|pid| *pid != checker).collect();
    let mut verdict = Verdict::default();
    if runs.is_empty() {
        let text = "The command did not run spektacular: it must call the first one on PATH, or the one that the \
                    variable SPEKTACULAR names.";
        verdict.add(Mistake::NotCalled, text);
        if log.iter().any(|entry| entry.fact == Fact::Expired) {
            verdict.add(Mistake::NeverEnded, "The command did not end in time.");
        }
    }
    for run in runs {
        let mut seen = Seen::new(dialogue, verdict);
        log.iter().filter(|entry| [run, checker].contains(&entry.pid)).for_each(|entry| seen.take(entry));
        verdict = seen.verdict;
    }
    verdict
}

/// The state of a question.
#[derive(Debug)]
enum State {
    Open {
        repeated: bool,
    },
    /// `read`: the time at which the client had read that the question is resolved.
    Resolved {
        by: By,
        read: Option<u64>,
    },
}

/// The facts about one run so far.
struct Seen {
    dialogue: &'static Dialogue,
    verdict: Verdict,
    questions: BTreeMap<String, State>,
    began: bool,
    input_ended: bool,
    /// The client cannot get a terminal frame any more, because it closed stdout.
    undelivered: bool,
    /// A mistake ended the run, so that its other ends are consequences.
    refused: bool,
    /// The time at which the last write began, unless it is done.
    sending: Option<u64>,
    over: Option<Over>,
}

impl Seen {
    fn new(dialogue: &'static Dialogue, verdict: Verdict) -> Seen {
        Seen {
            dialogue,
            verdict,
            questions: BTreeMap::new(),
            began: false,
            input_ended: false,
            undelivered: false,
            refused: false,
            sending: None,
            over: None,
        }
    }

    fn take(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Called => {}
            Fact::WrongCall(text) => {
                self.refused = true;
                self.verdict.add(Mistake::WrongCall, text.clone());
            }
            Fact::WrongMessage(clause) => {
                self.refused |= !self.began;
                self.verdict.add(Mistake::InvalidMessage, format!("A message is wrong: {clause}."));
            }
            Fact::UnknownField(name) => {
                self.verdict.add(Mistake::UnknownField, format!("A message has an unknown field: {name}."));
            }
            Fact::WrongStart(text) => {
                self.refused = true;
                self.verdict.add(Mistake::InvalidStart, text.clone());
            }
            Fact::Began => self.began = true,
            Fact::Skipped(why) => self.verdict.skipped = Some(why.clone()),
            Fact::Sending => self.sending = Some(entry.at),
            Fact::Sent => self.sent(entry.at),
            Fact::Undelivered => self.undelivered = true,
            Fact::Asked(id) => {
                if self.input_ended {
                    self.closed_input();
                }
                self.questions.insert(id.clone(), State::Open { repeated: false });
            }
            Fact::Repeated(id) => {
                self.questions.insert(id.clone(), State::Open { repeated: true });
            }
            Fact::Resolved(id, by) => self.resolved(id, *by),
            Fact::AllRead => self.read(entry.at),
            Fact::Answered(id) => self.answered(id, entry.at),
            Fact::InputEnded => self.input_ended(),
            Fact::Over(over) => self.over = Some(*over),
            Fact::CommandEnded(code) => self.ended(*code),
            Fact::Expired => self.expired(),
        }
    }

    fn any_open(&self) -> bool {
        self.questions.values().any(|state| matches!(state, State::Open { .. }))
    }

    fn sent(&mut self, now: u64) {
        let took = self.sending.take().map_or(0, |began| now.saturating_sub(began));
        if took >= BLOCKED_MS && self.any_open() {
            let seconds = took as f64 / 1000.0;
            let text = format!(
                "The client read nothing for {seconds:.1} s while a question was open, so that a frame was stuck in the \
                 pipe. Read on while your user thinks: a question can be withdrawn, and the run waits for its reader."
            );
            self.verdict.add(Mistake::NotReading, text);
        }
    }

    fn resolved(&mut self, id: &str, by: By) {
        let before = self.questions.insert(id.to_owned(), State::Resolved { by, read: None });
        let expires = self.dialogue.has_short_question();
        match (by, before) {
            (By::Timeout, Some(State::Open { repeated: true })) => {
                let text = "The client did not answer the question that came again after an answer that did not fit. A \
                            run.question with a greater `attempt` repeats the question: answer it again, or decline it.";
                self.verdict.add(Mistake::NotAnsweredAgain, text);
            }
            (By::Timeout, Some(State::Open { repeated: false })) if !expires => {
                let text = "The client did not answer a question. Answer it, decline it, or send `interactive: false` in \
                            run.start.";
                self.verdict.add(Mistake::Unanswered, text);
            }
            (By::Answer | By::End | By::Timeout, _) => {}
        }
    }

    fn read(&mut self, now: u64) {
        for state in self.questions.values_mut() {
            if let State::Resolved { read, .. } = state {
                read.get_or_insert(now);
            }
        }
    }

    fn answered(&mut self, id: &str, now: u64) {
        let (mistake, text) = match self.questions.get(id) {
            Some(State::Open { .. }) => return,
            None => (Mistake::UnknownQuestion, "The client answered a question that was never asked."),
            Some(State::Resolved { by: By::Answer, .. }) => {
                (Mistake::AnsweredTwice, "The client answered a question twice. Send one run.input per run.question.")
            }
            Some(State::Resolved { read: Some(read), .. }) if now >= read + GRACE_MS => (
                Mistake::AnsweredResolved,
                "The client answered a question after it had read that the question is resolved. Take a question away \
                 from your user when its question_resolved comes.",
            ),
            // The answer and the resolution crossed.
            Some(State::Resolved { .. }) => return,
        };
        self.verdict.add(mistake, text);
    }

    fn input_ended(&mut self) {
        self.input_ended = true;
        if !self.began && !self.refused && self.over.is_none() {
            self.refused = true;
            let text = "The client closed the stdin of the run before it sent a run.start as a line with a line feed.";
            self.verdict.add(Mistake::NoStart, text);
        } else if self.any_open() {
            self.closed_input();
        }
    }

    fn closed_input(&mut self) {
        let text = "The client closed the stdin of the run although it may ask questions, which nobody can answer any \
                    more. Keep stdin open until the terminal frame, or send `interactive: false` in run.start.";
        self.verdict.add(Mistake::ClosedInput, text);
    }

    fn ended(&mut self, code: Option<i32>) {
        let exit = code.map_or("was ended by a signal".to_owned(), |code| format!("exited with {code}"));
        let Dialogue { mistake, rule, .. } = self.dialogue;
        let ending = match self.over {
            None if self.refused => return,
            None if self.undelivered => {
                (*mistake, format!("The command closed the stdout of the run before its terminal frame, and {exit}."))
            }
            None if code == Some(0) => {
                let text = "The command exited with 0 before the run ended, and left it running. Read on until the terminal \
                            frame.";
                return self.verdict.add(Mistake::LeftRunning, text);
            }
            None => (*mistake, format!("The command {exit} before the run ended.")),
            Some(Over::Cancelled) => return,
            Some(Over::Completed) if code != Some(0) => {
                (*mistake, format!("The command {exit} although the last frame was run.completed."))
            }
            Some(Over::Failed) if code == Some(0) && !self.refused => {
                (*mistake, "The command exited with 0 although the last frame was run.failed.".to_owned())
            }
            Some(Over::Vanished) if code == Some(0) => {
                (*mistake, "The command exited with 0 although no terminal frame came.".to_owned())
            }
            Some(Over::Completed | Over::Failed | Over::Vanished) => return,
        };
        self.verdict.add(ending.0, format!("{} {rule}", ending.1));
    }

    fn expired(&mut self) {
        let text = match (self.over, self.sending, self.began) {
            (None, Some(_), _) => {
                let text = "The client stopped reading the frames of the run, which waits for its reader.";
                self.verdict.add(Mistake::NotReading, text);
                return;
            }
            (None, None, false) => {
                let text = "The client did not send a run.start, or did not flush it.";
                self.verdict.add(Mistake::NoStart, text);
                return;
            }
            (None, None, true) => "The command did not end its run in time.",
            (Some(_), ..) => {
                "The command did not end after its run ended. The terminal frame is the last one, and after the end of \
                 stdout none can come."
            }
        };
        self.verdict.add(Mistake::NeverEnded, text);
    }
}

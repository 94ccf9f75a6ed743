//! The judgment: from the facts of a dialogue to the mistakes of the client. Pure.

use super::dialogues::{Dialogue, Mistake, Quirk};
use super::log::{By, Fact, LogEntry, RunEnd};
use std::collections::{BTreeMap, BTreeSet};

/// The length of a write, in milliseconds, that proves that the client does not read.
const BLOCKED_MS: u64 = 1000;
/// The time, in milliseconds, that a client has to take back an answer after it read that the question is resolved.
const GRACE_MS: u64 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) mistake: Mistake,
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Each text once.
    pub(super) findings: Vec<Finding>,
    /// The reason why a part of the dialogue could not be played: the rest of a sentence.
    pub(super) skipped: Option<String>,
    /// Whether the client's time was over before it began a run.
    pub(super) idle: bool,
}

impl Verdict {
    pub(super) fn not_begun() -> Verdict {
        let why = "the client began no run in the time of an earlier dialogue";
        Verdict { skipped: Some(why.into()), ..Verdict::default() }
    }

    fn add(&mut self, mistake: Mistake, text: impl Into<String>) {
        let finding = Finding { mistake, text: text.into() };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// `checker`: the process whose facts concern all runs.
pub(super) fn judge(dialogue: &'static Dialogue, log: &[LogEntry], checker: u32) -> Verdict {
    // After its time is up, the client only dies.
    let over = log.iter().position(|entry| entry.fact == Fact::Expired).map_or(log.len(), |at| at + 1);
    let log = &log[..over];
    let runs: BTreeSet<u32> = log.iter().map(|entry| entry.pid).filter(|pid| *pid != checker).collect();
    let has = |fact: &Fact| log.iter().any(|entry| entry.fact == *fact);
    let mut verdict = Verdict { idle: has(&Fact::Expired) && !has(&Fact::Began), ..Verdict::default() };
    if runs.is_empty() {
        let text = "The command did not run spektacular: it must call the first one on PATH, or the one that the \
                    variable SPEKTACULAR names.";
        verdict.add(Mistake::NotCalled, text);
        if has(&Fact::Expired) {
            verdict.add(Mistake::NeverEnded, "The command did not end in time.");
        }
    }
    if runs.len() > 1 {
        let text = format!(
            "The command started {} runs: start one run per dialogue, and report its end instead of a retry.",
            runs.len()
        );
        verdict.add(Mistake::SeveralRuns, text);
    }
    for run in runs {
        let mut seen = Seen::new(dialogue, verdict);
        log.iter().filter(|entry| [run, checker].contains(&entry.pid)).for_each(|entry| seen.take(entry));
        verdict = seen.verdict;
    }
    verdict
}

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

struct Seen {
    dialogue: &'static Dialogue,
    verdict: Verdict,
    questions: BTreeMap<String, State>,
    began: bool,
    /// The client cannot get a terminal frame any more, because it closed stdout.
    undelivered: bool,
    /// A mistake ended the run, so that its other ends are consequences.
    refused: bool,
    /// The time at which the last write began, and whether a question was open then. `None`: it is done.
    sending: Option<(u64, bool)>,
    over: Option<RunEnd>,
}

impl Seen {
    fn new(dialogue: &'static Dialogue, verdict: Verdict) -> Seen {
        Seen {
            dialogue,
            verdict,
            questions: BTreeMap::new(),
            began: false,
            undelivered: false,
            refused: false,
            sending: None,
            over: None,
        }
    }

    fn take(&mut self, entry: &LogEntry) {
        match &entry.fact {
            Fact::Called | Fact::OwnFault => {}
            Fact::WrongCall(text) => {
                self.refused = true;
                self.verdict.add(Mistake::WrongCall, text.clone());
            }
            Fact::WrongMessage(clause) => {
                self.refused |= !self.began;
                self.verdict.add(Mistake::InvalidMessage, format!("A message is wrong: {clause}."));
            }
            Fact::UnknownField(warning) => {
                let text = format!("{}.", warning.replacen("Ignored", "A message has", 1));
                self.verdict.add(Mistake::UnknownField, text);
            }
            Fact::WrongStart(text) => {
                self.refused = true;
                self.verdict.add(Mistake::InvalidStart, text.clone());
            }
            Fact::Began => self.began = true,
            Fact::Skipped(why) => self.verdict.skipped = Some(why.clone()),
            Fact::Sending => self.sending = Some((entry.at, self.any_open())),
            Fact::Sent => self.sent(entry.at),
            Fact::Undelivered => self.undelivered = true,
            Fact::Asked(id) => {
                self.questions.insert(id.clone(), State::Open { repeated: false });
            }
            Fact::Repeated(id) => {
                self.questions.insert(id.clone(), State::Open { repeated: true });
            }
            Fact::Resolved(id, by) => self.resolved(id, *by, entry.at),
            Fact::AllRead => self.read(entry.at),
            Fact::Answered(id) => self.answered(id, entry.at),
            Fact::NoStart => self.no_start(),
            Fact::InputMissed => self.input_missed(),
            Fact::RunEnd(over) => self.over = Some(*over),
            Fact::CommandEnded(code) => self.ended(*code),
            Fact::Expired => self.expired(),
        }
    }

    fn any_open(&self) -> bool {
        self.questions.values().any(|state| matches!(state, State::Open { .. }))
    }

    fn sent(&mut self, now: u64) {
        let (began, asked) = self.sending.take().unwrap_or((now, false));
        let took = now.saturating_sub(began);
        if took >= BLOCKED_MS && asked {
            let seconds = took as f64 / 1000.0;
            let text = format!(
                "The client read nothing for {seconds:.1} s while a question was open, so that a frame was stuck in the \
                 pipe. Read on while your user thinks: a question can be withdrawn, and the run waits for its reader."
            );
            self.verdict.add(Mistake::NotReading, text);
        }
    }

    fn resolved(&mut self, id: &str, by: By, now: u64) {
        let before = self.questions.insert(id.to_owned(), State::Resolved { by, read: None });
        // Whoever does not read cannot answer either.
        let unread = self.sending.is_some_and(|(began, _)| now.saturating_sub(began) >= BLOCKED_MS);
        let excused = unread || self.dialogue.quirk == Quirk::Expires;
        match (by, before) {
            (By::Timeout, Some(State::Open { repeated: true })) => {
                let text = "The client did not answer the question that came again after an answer that did not fit. A \
                            run.question with a greater `attempt` repeats the question: answer it again, or decline it.";
                self.verdict.add(Mistake::NotAnsweredAgain, text);
            }
            (By::Timeout, Some(State::Open { repeated: false })) if !excused => {
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

    fn no_start(&mut self) {
        // A line without a line feed is a mistake of its own.
        if !self.refused {
            self.refused = true;
            let text = "The client closed the stdin of the run before it sent a run.start as a line with a line feed.";
            self.verdict.add(Mistake::NoStart, text);
        }
    }

    fn input_missed(&mut self) {
        let text = "The client closed the stdin of the run although it may ask questions, which nobody can then \
                    answer. Keep stdin open until the terminal frame, or send `interactive: false` in run.start.";
        self.verdict.add(Mistake::ClosedInput, text);
    }

    fn ended(&mut self, code: Option<i32>) {
        let exit = code.map_or("was ended by a signal".to_owned(), |code| format!("exited with {code}"));
        let Dialogue { mistake, rule, .. } = self.dialogue;
        let ending = match self.over {
            None if self.refused => return,
            None if code == Some(0) => {
                let text = "The command exited with 0 before the run ended, and left it running. Read on until the terminal \
                            frame.";
                return self.verdict.add(Mistake::LeftRunning, text);
            }
            None if self.undelivered => {
                (*mistake, format!("The command closed the stdout of the run before its terminal frame, and {exit}."))
            }
            None => (*mistake, format!("The command {exit} before the run ended.")),
            Some(RunEnd::Cancelled) => return,
            Some(RunEnd::Completed) if code != Some(0) => {
                (*mistake, format!("The command {exit} although the last frame was run.completed."))
            }
            Some(RunEnd::Failed) if code == Some(0) && !self.refused => {
                (*mistake, "The command exited with 0 although the last frame was run.failed.".to_owned())
            }
            Some(RunEnd::Vanished) if code == Some(0) => {
                (*mistake, "The command exited with 0 although no terminal frame came.".to_owned())
            }
            Some(RunEnd::Completed | RunEnd::Failed | RunEnd::Vanished) => return,
        };
        self.verdict.add(ending.0, format!("{} {rule}", ending.1));
    }

    fn expired(&mut self) {
        let (mistake, text) = match (self.over, self.sending, self.began) {
            (None, Some(_), _) => {
                (Mistake::NotReading, "The client stopped reading the frames of the run, which waits for its reader.")
            }
            (None, None, false) => (Mistake::NoStart, "The client did not send a run.start, or did not flush it."),
            (None, None, true) => (Mistake::NeverEnded, "The command did not end its run in time."),
            (Some(_), ..) => (
                Mistake::NeverEnded,
                "The command did not end after its run ended. The terminal frame is the last one, and after the end of \
                 stdout none can come.",
            ),
        };
        self.verdict.add(mistake, text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialogues::Dialogue;
    use super::super::log::{By, Fact, LogEntry, RunEnd};
    use super::judge;

    const CHECKER: u32 = 1;

    fn codes(dialogue: &str, facts: Vec<(u64, Fact)>) -> Vec<serde_json::Value> {
        let entry = |(at, fact): (u64, Fact)| {
            let pid = if matches!(fact, Fact::CommandEnded(_) | Fact::Expired) { CHECKER } else { 2 };
            LogEntry { at, pid, fact }
        };
        let log: Vec<LogEntry> = facts.into_iter().map(entry).collect();
        let verdict = judge(Dialogue::named(dialogue).unwrap(), &log, CHECKER);
        verdict.findings.iter().map(|finding| serde_json::json!(finding.mistake)).collect()
    }

    fn asked_and_timed_out() -> Vec<(u64, Fact)> {
        let id = || "q_1".to_owned();
        vec![(0, Fact::Began), (0, Fact::Asked(id())), (300, Fact::Resolved(id(), By::Timeout))]
    }

    #[test]
    fn an_answer_that_crosses_the_resolution_is_no_mistake() {
        let answer = || Fact::Answered("q_1".into());
        for (read, answered, wanted) in
            [(None, 9000, &[][..]), (Some(900), 950, &[]), (Some(900), 1000, &["answered_resolved"])]
        {
            let mut facts = asked_and_timed_out();
            facts.extend(read.map(|at| (at, Fact::AllRead)));
            facts.push((answered, answer()));
            assert_eq!(codes("timeout", facts), wanted, "{read:?} {answered}");
        }
        let mut facts = asked_and_timed_out();
        facts[2].1 = Fact::Resolved("q_1".into(), By::Answer);
        facts.push((301, answer()));
        assert_eq!(codes("timeout", facts), ["answered_twice"]);
    }

    #[test]
    fn only_an_open_question_makes_a_slow_reader_wrong() {
        let write = |took: u64| vec![(0, Fact::Began), (10, Fact::Sending), (10 + took, Fact::Sent)];
        assert!(codes("huge", write(5000)).is_empty());
        for (took, wanted) in [(999, &[][..]), (1000, &["not_reading"])] {
            let mut facts = write(took);
            facts.insert(1, (5, Fact::Asked("q_1".into())));
            assert_eq!(codes("thinking", facts), wanted);
        }
    }

    #[test]
    fn the_exit_code_of_the_command_must_match_the_run() {
        use RunEnd::{Cancelled, Completed, Failed, Vanished};
        for (dialogue, over, code, wanted) in [
            ("hello", Completed, Some(0), &[][..]),
            ("hello", Completed, Some(3), &["wrong_end"]),
            ("hello", Completed, None, &["wrong_end"]),
            ("failed", Failed, Some(0), &["trusted_exit_code"]),
            ("failed", Failed, Some(1), &[]),
            ("vanished", Vanished, Some(0), &["trusted_exit_code"]),
            ("hello", Cancelled, Some(0), &[]),
            ("hello", Cancelled, Some(130), &[]),
        ] {
            let facts = vec![(0, Fact::Began), (1, Fact::RunEnd(over)), (2, Fact::CommandEnded(code))];
            assert_eq!(codes(dialogue, facts), wanted, "{over:?} {code:?}");
        }
        assert_eq!(codes("hello", vec![(0, Fact::Began), (1, Fact::CommandEnded(Some(0)))]), ["left_running"]);
        assert_eq!(
            codes("unknown-kind", vec![(0, Fact::Began), (1, Fact::CommandEnded(Some(1)))]),
            ["stopped_at_unknown"]
        );
    }

    #[test]
    fn a_refused_start_has_no_further_mistakes() {
        let wrong = Fact::WrongStart("run.start: `prompt` must be a non-empty string.".into());
        let facts = vec![(0, wrong), (1, Fact::RunEnd(RunEnd::Failed)), (2, Fact::CommandEnded(Some(0)))];
        assert_eq!(codes("failed", facts), ["invalid_start"]);
        assert_eq!(codes("hello", vec![(9, Fact::Expired)]), ["not_called", "never_ended"]);
    }
}

//! The end of a turn and of a run.

use super::TerminalPeer;
use super::chat::Chat;
use super::screen::{Detail, Ink, Shown};
use super::work::sum;
use crate::clean::{one_line, whole};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{MessageId, Outcome, RuleViolation, Terminal, Text, TurnReport};
use crate::protocol::review::ReviewFinding;
use crate::protocol::schema::Mismatch;
use std::fmt::Write;
use std::time::{Duration, Instant};

impl TerminalPeer {
    /// Without a flag, the end shows only the session's id.
    pub fn resumed_by(&mut self, flag: Option<String>) {
        self.resumed_by = flag;
    }

    /// `None`: the agent's ability is not known yet.
    pub(super) fn note_whether_resumable(&mut self, resume: Option<bool>) {
        if resume == Some(false) {
            self.resumed_by = None;
            self.keep_settings("with an agent that resumes no session");
        }
    }

    /// The agent that took over has a session of its own.
    pub(super) fn note_successor(&mut self, agent: &str) {
        self.resumed_by.iter_mut().for_each(|flag| flag.insert_str(0, &format!("--agent {agent} ")));
        self.keep_settings("that another agent took over");
    }

    pub(super) fn turn(&mut self, turn: &TurnReport, now: Instant) -> Shown {
        let mut shown = Shown::default();
        let over = match &turn.outcome {
            Outcome::Completed { structured_output: Some(json), .. } if self.wants_result => {
                shown.text = self.speech.text(MessageId::Result(turn.number), json.shown().get(), true, false);
                "done"
            }
            Outcome::Completed { text, .. } => {
                if !self.speech.said && !self.wants_result {
                    let text = self.speech.text(MessageId::Result(turn.number), text.shown(), true, false);
                    shown.text = self.laid_out(text, true);
                }
                "done"
            }
            Outcome::Failed(failure) => {
                shown.lines = self.failed(failure);
                self.told = Some(failure.clone());
                "failed"
            }
            Outcome::Cancelled { .. } => "cancelled",
        };
        self.speech.said = false;
        if self.look.detail > Detail::Quiet {
            let line = format!("turn {} {over} {}", turn.number, sum(self.work.elapsed(now), &turn.usage));
            let _ = writeln!(shown.lines, "{}", self.look.paint(Ink::Dim, &line));
        }
        shown
    }

    fn failed(&self, failure: &Failure) -> String {
        let text = format!("spektacular: {}: {}", failure.code.name(), one_line(failure.message.for_person().shown()));
        self.look.paint(Ink::Red, &text) + "\n" + &details(failure)
    }

    pub(super) fn terminal(&mut self, end: &Terminal) -> Shown {
        let quiet = self.look.detail == Detail::Quiet;
        let mut shown = Shown::default();
        self.speech.claims = None;
        for title in self.work.end().into_iter().filter(|_| self.look.live && !quiet) {
            let _ = writeln!(shown.lines, "* {title}: cancelled");
        }
        self.asking.end();
        shown.lines.extend(self.chat.iter_mut().map(Chat::end));
        shown.lines.extend(end.workflow.iter().flat_map(|workflow| &workflow.violations).map(breach));
        shown.lines.extend(end.workflow.iter().flat_map(|workflow| &workflow.review).map(finding));
        match &end.outcome {
            // The line of a workflow is the last one, whatever its agent said.
            Outcome::Completed { text, .. } if end.workflow.is_some() => {
                shown.text = self.speech.text(MessageId::Result(0), text.shown(), true, false);
            }
            // Each turn has shown its own end.
            Outcome::Completed { .. } if end.turns.is_some() => {}
            Outcome::Failed(failure) if self.told.as_ref() == Some(failure) => {}
            Outcome::Completed { structured_output, .. } if self.wants_result => match structured_output {
                Some(json) => shown.text = self.speech.text(MessageId::Result(0), json.shown().get(), true, false),
                None => shown.lines.push_str(HIDDEN_RESULT),
            },
            // An agent without streaming has its text in the result alone.
            Outcome::Completed { text, text_cut, .. } if !self.speech.said => {
                let text = self.speech.text(MessageId::Result(0), text.shown(), true, false);
                shown.text = self.laid_out(text, true);
                shown.lines.push_str(if *text_cut { CUT_ANSWER } else { "" });
            }
            Outcome::Completed { .. } => {}
            Outcome::Failed(failure) => shown.lines.push_str(&self.failed(failure)),
            // The person ended a conversation without a completed turn.
            Outcome::Cancelled { .. } if self.chat.as_ref().is_some_and(|chat| chat.closing) => {}
            Outcome::Cancelled { .. } => shown.lines.push_str("spektacular: cancelled\n"),
        }
        shown.lines.push_str(&self.denials());
        shown.lines.push_str(&end.workflow.as_ref().map(|workflow| self.report(workflow)).unwrap_or_default());
        // A run without an agent has no duration worth showing.
        if !quiet && (end.duration_ms > 0 || end.agent_exit.is_some()) {
            let how = if matches!(end.outcome, Outcome::Completed { .. }) { "done " } else { "ended " };
            let sum = sum(Duration::from_millis(end.duration_ms), &end.usage);
            let _ = writeln!(shown.lines, "{}", self.look.paint(Ink::Dim, &format!("{how}{sum}")));
        }
        let goes_on = self.again().is_some();
        if let Some(id) = end.session_id.as_ref().filter(|_| !quiet && !self.implements && !goes_on) {
            let resumes = end.workflow.is_none() && !recurs(&end.outcome);
            let flag = self.resumed_by.as_ref().filter(|_| resumes);
            let how = flag.map(|flag| format!(": resume with {flag}")).unwrap_or_default();
            let line = format!("session {}{how}", one_line(id));
            let _ = writeln!(shown.lines, "{}", self.look.paint(Ink::Dim, &line));
        }
        shown
    }
}

/// Whether a resumed session would fail in the same way, because the agent could not use its model at all.
fn recurs(outcome: &Outcome) -> bool {
    let Outcome::Failed(failure) = outcome else { return false };
    matches!(failure.code, Code::AuthRequired | Code::ModelNotFound | Code::SessionNotFound)
}

fn breach(breach: &RuleViolation) -> String {
    let place = format!("{}:{}", breach.file.shown(), breach.line.unwrap_or_default());
    one_line(&format!("{place}: {}: {}", breach.rule, breach.text.shown())) + "\n"
}

fn finding(found: &ReviewFinding) -> String {
    let file = found.file.as_ref().map_or("-", Text::shown);
    let line = found.line.map(|line| format!(":{line}")).unwrap_or_default();
    one_line(&format!("{file}{line}: {}: {}", found.severity.shown(), found.text.shown())) + "\n"
}

const CUT_ANSWER: &str = "spektacular: warning: the answer was too long and was cut\n";

const HIDDEN_RESULT: &str = "spektacular: warning: the result nests too deeply or is too long to be shown\n";

/// The lines below a failure's sentence: the mistakes in a result, what the agent said, and the commands of a plan.
fn details(failure: &Failure) -> String {
    let place = |path: &str| if path.is_empty() { "the result".to_owned() } else { path.to_owned() };
    let mistake = |Mismatch { path, text }: &Mismatch| one_line(&format!("{}: {}", place(path.shown()), text.shown()));
    let told = [failure.agent_message.as_ref(), failure.stderr_tail.as_deref(), failure.commands.as_deref()];
    let told = told.into_iter().flatten();
    let told = told.flat_map(|told| whole(told.shown()).lines().map(str::to_owned).collect::<Vec<_>>());
    let mistakes = failure.violations.iter().flat_map(|all| &all.0);
    mistakes.map(mistake).chain(told).map(|line| format!("  {line}\n")).collect()
}

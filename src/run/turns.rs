//! The turns of a run, and the prompts that wait for one. A run with one turn and a run with many are the same code: a
//! turn owns all that ends with it, and its end adds its counts to those of the past turns.

use super::asked_question::Resolved;
use super::effects::Effects;
use super::limit_wait::{GO_ON, LimitWait, LimitWaits};
use super::text_markers::CompletionMarker;
use super::{Effect, StopSignal};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::PromptId;
use crate::protocol::image::Image;
use crate::protocol::limits::{LEFT_LISTED, PROMPTS_WAITING};
use crate::protocol::outbound::{
    Json, Outcome, ProgressKind, Text, TurnReport, UnansweredItem, UnansweredItems, Unattended, Usage,
};
use crate::protocol::prompt::FurtherPrompt;
use crate::protocol::question::{Answer, Asks, Decision};
use crate::protocol::request::{Seconds, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::words::{LimitField, OnRateLimit, PromptState, Resolution, Source, TurnOrigin, TurnOutcome};
use std::collections::VecDeque;
use std::time::Duration;

/// The time that an agent has to stop a turn before its process is ended.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(2);

pub(super) const RUN_IS_ENDING: &str = "the run is ending";

/// The turns of a run. A run that is not a conversation has one, and further ones only for prompts that wait.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) current: CurrentTurn,
    past: Past,
    pub(super) completion: CompletionMarker,
    pub(super) waiting: VecDeque<WaitingPrompt>,
    /// The cause of the next turn, if the agent has its prompt and began a turn of its own before it.
    pub(super) sent: Option<TurnCause>,
    /// The number of prompts so far, including those of earlier parts.
    pub(super) prompts: u64,
    pub(super) closing: bool,
    pub(super) limits: LimitWaits,
}

/// The running turn, or the last one: all that begins and ends with it.
#[derive(Default)]
pub(super) struct CurrentTurn {
    /// The number of the turn, from 1.
    pub(super) number: u64,
    pub(super) cause: TurnCause,
    pub(super) state: TurnState,
    pub(super) began: Duration,
    /// The usage of the run when the turn began.
    usage_before: Usage,
    /// Whether the agent wrote the completion marker.
    pub(super) completion: bool,
    pub(super) unattended: Unattended,
    pub(super) marked: MarkerQuestions,
    /// Whether a required question was declined and the agent has done nothing since.
    pub(super) declined: bool,
    pub(super) result: ResultSide,
    /// Its prompt, if the turn can wait for a limit. `None`: that of the run.
    prompt: Option<WaitingPrompt>,
    /// Whether a tool ran, or the agent got more than the prompt.
    pub(super) worked: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TurnCause {
    /// The prompt of run.start.
    #[default]
    Start,
    /// The further prompt with this number.
    Prompt(u64),
    /// The agent began the turn by itself.
    Agent,
}

#[derive(Default)]
pub(super) struct MarkerQuestions {
    pub(super) asks: Asks,
    pub(super) texts: Vec<Text>,
    /// The number of further turns.
    pub(super) turns: u32,
}

/// The structured result of a turn with `output_schema`.
#[derive(Default)]
pub(super) struct ResultSide {
    /// The last fitting result that the model gave with our tool.
    pub(super) submitted: Option<Json>,
    /// The number of times that a result went back to the agent.
    pub(super) returned: u32,
}

#[derive(Default)]
struct Past {
    /// The last completed turn.
    completed: Option<Outcome>,
    /// The failure of the last failed turn.
    failed: Option<Failure>,
    unattended: Unattended,
    completion: bool,
}

#[derive(Default)]
pub(super) enum TurnState {
    #[default]
    Running,
    Stopping {
        why: StopCause,
        due: Option<Duration>,
        /// Whether the agent's process is being ended, so that only its exit ends the turn.
        with_process: bool,
    },
    /// The turn failed because of a limit, and goes on when that is over.
    AwaitingLimit(LimitWait),
    /// The agent waits for a prompt since then, or the run ends.
    Over { since: Duration },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    Cancel,
    Timeout,
}

impl StopCause {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            StopCause::Cancel => Outcome::Cancelled { reason: None, source: Source::Orchestrator },
            StopCause::Timeout => {
                let message = sentence!(
                    "The turn took longer than {turn_timeout_s:#}: raise it or split the task.",
                    turn_timeout_s
                );
                Outcome::Failed(Failure::new(Code::Timeout, message).at(LimitField::TurnTimeout))
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct WaitingPrompt {
    pub(super) number: u64,
    pub(super) text: Text,
    pub(super) images: Vec<Image>,
    /// Whether the agent may take it as a command. `None`: as the settings say.
    pub(super) raw: Option<bool>,
}

impl CurrentTurn {
    fn begin(number: u64, cause: TurnCause, now: Duration, usage_before: Usage) -> CurrentTurn {
        CurrentTurn { number, cause, began: now, usage_before, ..CurrentTurn::default() }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, TurnState::Running)
    }
}

impl Turns {
    /// `prompts`: the number of prompts of earlier parts.
    pub(super) fn first(now: Duration, prompts: u64, settings: &Settings) -> Turns {
        let mut completion = CompletionMarker::new(&settings.completion_marker);
        [settings.system_prompt.as_deref().unwrap_or_default(), &settings.prompt]
            .iter()
            .for_each(|prompt| completion.note_prompt(prompt));
        let current = CurrentTurn::begin(1, TurnCause::Start, now, Usage::default());
        Turns { completion, current, prompts, ..Turns::default() }
    }

    /// `usage`: of the run so far.
    pub(super) fn begin_next(&mut self, cause: TurnCause, now: Duration, usage: Usage) {
        self.current = CurrentTurn::begin(self.current.number + 1, cause, now, usage);
    }

    /// Notes that the running turn is one that the agent began by itself. The turn of the prompt that it has comes next.
    pub(super) fn precede(&mut self) {
        if self.current.cause != TurnCause::Agent {
            self.sent = Some(std::mem::replace(&mut self.current.cause, TurnCause::Agent));
        }
    }

    /// Notes that the agent takes the prompt that it has in the running turn, if no turn of that prompt runs.
    pub(super) fn join(&mut self) {
        self.current.cause = self.sent.take().unwrap_or(self.current.cause);
    }

    pub(super) fn keep_prompt(&mut self, prompt: &WaitingPrompt, settings: &Settings) {
        self.current.prompt = (settings.on_rate_limit == OnRateLimit::Wait).then(|| prompt.clone());
    }

    pub(super) fn prompt_after_limit(&self, settings: &Settings) -> WaitingPrompt {
        let number = self.prompts;
        if self.current.worked {
            return WaitingPrompt { number, text: GO_ON.into(), images: Vec::new(), raw: None };
        }
        let first = || {
            let (text, images) = (settings.prompt.as_str().into(), settings.attached.clone());
            WaitingPrompt { number, text, images, raw: None }
        };
        self.current.prompt.clone().unwrap_or_else(first)
    }

    /// Ends the turn, and reports it if the run is a conversation. `usage`: of the run so far.
    pub(super) fn end_current(&mut self, outcome: Outcome, usage: &Usage, settings: &Settings, effects: &mut Effects) {
        let turn = &mut self.current;
        turn.state = TurnState::Over { since: effects.now };
        let (completion_detected, unattended) = (turn.completion, std::mem::take(&mut turn.unattended));
        self.past.completion |= completion_detected;
        self.past.unattended.join(unattended.clone());
        match &outcome {
            Outcome::Completed { .. } => {
                self.past.completed = Some(outcome.clone());
                self.limits = LimitWaits::default();
            }
            Outcome::Failed(failure) => self.past.failed = Some(failure.clone()),
            Outcome::Cancelled { .. } => {}
        }
        if !settings.conversation {
            return;
        }
        let usage = usage.since(&turn.usage_before);
        let (origin, prompt_id) = match turn.cause {
            TurnCause::Start => (TurnOrigin::Prompt, None),
            TurnCause::Prompt(number) => (TurnOrigin::Prompt, Some(PromptId(number))),
            TurnCause::Agent => (TurnOrigin::Agent, None),
        };
        let number = turn.number;
        let agent = settings.agent.clone();
        let report = TurnReport { number, agent, origin, prompt_id, outcome, usage, completion_detected, unattended };
        let what = match report.word() {
            TurnOutcome::Completed => "completed",
            TurnOutcome::Failed => "failed",
            TurnOutcome::Cancelled => "was cancelled",
        };
        let text = format!("Turn {} {what}", report.number);
        effects.tell(ProgressKind::Turn(Box::new(report)), text, None);
    }

    pub(super) fn refuses(&self) -> Option<&'static str> {
        match () {
            () if self.closing => Some(RUN_IS_ENDING),
            () if self.waiting.len() >= PROMPTS_WAITING => Some("too many prompts wait already"),
            () => None,
        }
    }

    pub(super) fn number(&mut self, prompt: FurtherPrompt, images: Vec<Image>) -> WaitingPrompt {
        self.prompts += 1;
        WaitingPrompt { number: self.prompts, text: prompt.text, images, raw: prompt.raw }
    }

    pub(super) fn drop_waiting(&mut self, effects: &mut Effects) {
        let sent = match self.sent.take() {
            Some(TurnCause::Prompt(number)) => Some(number),
            Some(TurnCause::Start | TurnCause::Agent) | None => None,
        };
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|prompt| prompt.number);
        for number in sent.into_iter().chain(waiting) {
            effects.prompt(number, PromptState::Dropped, None, None);
        }
    }

    /// The next deadline of the turn, or of the wait for a prompt.
    pub(super) fn due(&self, settings: &Settings) -> Option<Duration> {
        let after = |from: Duration, limit: Option<Seconds>| limit.map(|limit| from + limit.duration());
        if !settings.conversation {
            return None;
        }
        match self.current.state {
            TurnState::Running | TurnState::AwaitingLimit(_) => after(self.current.began, settings.turn_timeout_s),
            TurnState::Stopping { due, .. } => due,
            TurnState::Over { .. } if self.closing => None,
            TurnState::Over { since } => after(since, settings.prompt_timeout_s),
        }
    }

    pub(super) fn interrupt(&mut self, why: StopCause, now: Duration) {
        let due = Some(now + INTERRUPT_LIMIT);
        self.current.state = TurnState::Stopping { why, due, with_process: false };
    }

    /// First SIGTERM, then SIGKILL.
    pub(super) fn signal_tree(&mut self, effects: &mut Effects) {
        let TurnState::Stopping { due, with_process, .. } = &mut self.current.state else { return };
        let signal = if *with_process { StopSignal::Kill } else { StopSignal::Terminate };
        *due = (!*with_process).then_some(effects.now + INTERRUPT_LIMIT);
        *with_process = true;
        effects.push(Effect::SignalTree(signal));
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.current.state, TurnState::Over { .. })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_over() && self.waiting.is_empty() && self.sent.is_none()
    }

    /// Notes that a tool runs: no limit keeps the agent from its work.
    pub(super) fn note_work(&mut self) {
        self.current.worked = true;
        self.limits = LimitWaits::default();
    }

    pub(super) fn awaits_limit(&self) -> bool {
        matches!(self.current.state, TurnState::AwaitingLimit(_))
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.current.state, TurnState::Stopping { .. })
    }

    pub(super) fn ends_with_process(&self) -> bool {
        matches!(self.current.state, TurnState::Stopping { with_process: true, .. })
    }

    pub(super) fn has_completed(&self) -> bool {
        self.past.completed.is_some()
    }

    /// `None`: nothing was denied, or `fail_on_denied` is not set.
    pub(super) fn denied_failure(&self, settings: &Settings) -> Option<Failure> {
        let count = self.past.unattended.denied.count;
        let how_many = if count == 1 { "A permission was".to_owned() } else { format!("{count} permissions were") };
        (settings.fail_on_denied && count > 0).then(|| {
            let message = sentence!(
                "{how_many} denied because nobody answered, and {fail_on_denied} is set: allow what the task needs with \
                 {permissions}, or answer.",
                fail_on_denied,
                permissions
            );
            Failure::new(Code::Denied, message)
        })
    }

    /// Returns the questions that nobody answered, and whether there was the completion marker.
    pub(super) fn take_sums(&mut self) -> (Unattended, bool) {
        (std::mem::take(&mut self.past.unattended), self.past.completion)
    }

    pub(super) fn conclusion(&mut self) -> Outcome {
        let failed = self.past.failed.take().map(Outcome::Failed);
        let cancelled = StopCause::Cancel.outcome();
        self.past.completed.take().or(failed).unwrap_or(cancelled)
    }
}

impl Unattended {
    /// `text`: the subject of the question, in one short line.
    pub(super) fn count(&mut self, resolved: &Resolved, text: &str) {
        match resolved.resolution {
            Resolution::Headless | Resolution::Timeout | Resolution::InputClosed => {}
            // Somebody answered, a policy decided, or the agent withdrew the question.
            Resolution::Answered | Resolution::Declined | Resolution::Policy | Resolution::Withdrawn => return,
        }
        match &resolved.ask.subject {
            Some(subject) if resolved.value == Answer::Decision(Decision::Deny) => {
                self.denied.add(subject.category.word(), text)
            }
            Some(_) => {}
            None => self.unanswered.add(resolved.ask.kind.word().word(), text),
        }
    }
}

impl UnansweredItems {
    fn add(&mut self, category: &'static str, text: &str) {
        self.count += 1;
        if self.first.len() < LEFT_LISTED {
            self.first.push(UnansweredItem { category, text: Text::from(text) });
        }
    }
}

//! The lifecycle of a run as the protocol defines it, without texts, agents and frames.

use super::acts::{Act, Answer, Asked, IDLE_TIMEOUT, QUESTION_TIMEOUT, Rules, START_TIMEOUT, Seen, TOOL_TIMEOUT};
use super::puppet::Said;
use super::turns::Turns;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Due,
    Running,
    TreeGone,
    Ended,
    Resting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rung {
    Interrupted,
    Leaving,
    Terminated,
    Killed,
}

/// The asker of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asker {
    Agent(u64),
    Tool(u64),
    Markers,
}

#[derive(Clone, Debug)]
struct Question {
    number: u64,
    sort: Asked,
    attempts: u32,
    open: bool,
    /// Whether the question was refused although it required an answer.
    missed: bool,
}

#[derive(Clone, Debug)]
struct Group {
    asker: Asker,
    questions: Vec<Question>,
    deadline: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Decided {
    outcome: &'static str,
    rung: Rung,
    due: Option<Duration>,
}

/// The state of a run.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(super) rules: Rules,
    pub(crate) now: Duration,
    started: bool,
    ended: bool,
    pub(super) process: Process,
    groups: VecDeque<Group>,
    pub(crate) asked: u64,
    always: bool,
    input_closed: bool,
    signals: u32,
    pub(super) decided: Option<Decided>,
    /// Whether a required question was refused and the agent has done nothing since.
    pub(super) refused: bool,
    pub(super) markers: usize,
    /// The number of further turns that carried answers to markers.
    pub(super) answered: u32,
    pub(super) turns: Turns,
    pub(super) active: Duration,
    /// All tool calls so far, and the running ones.
    calls: BTreeSet<u64>,
    pub(super) tools: Vec<(u64, Duration)>,
    run_due: Option<Duration>,
    start_due: Option<Duration>,
    /// Whether a process of the agent has exited.
    exited: bool,
    /// Whether the agent was suspended for a later part of the run.
    rests: bool,
    pub(super) seen: Vec<Seen>,
}

/// The exit code of an outcome.
fn exit_code(outcome: &str) -> u8 {
    match outcome {
        "run.completed" | "run.cancelled" => 0,
        "agent_error" | "agent_exited" | "limit_reached" | "rate_limited" => 1,
        "invalid_request" => 2,
        "unsupported_version" | "invalid_message" | "no_start" => 3,
        "agent_not_found" => 4,
        "timeout" | "idle_timeout" | "start_timeout" | "question_timeout" => 5,
        "input_closed" | "question_declined" => 6,
        "internal_error" | "resource_exhausted" => 70,
        other => panic!("the model does not know {other}"),
    }
}

impl Reference {
    pub(crate) fn new(rules: Rules) -> Reference {
        Reference {
            rules,
            now: Duration::ZERO,
            started: false,
            ended: false,
            process: Process::Due,
            groups: VecDeque::new(),
            asked: 0,
            always: false,
            input_closed: false,
            signals: 0,
            decided: None,
            refused: false,
            markers: 0,
            answered: 0,
            turns: Turns::default(),
            active: Duration::ZERO,
            calls: BTreeSet::new(),
            tools: Vec::new(),
            run_due: None,
            start_due: None,
            exited: false,
            rests: false,
            seen: Vec::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    pub(crate) fn is_running(&self) -> bool {
        self.started && !self.ended && self.process == Process::Running
    }

    /// Whether the act can happen now. A process that does not run neither writes nor exits.
    pub(crate) fn fits(&self, act: &Act) -> bool {
        let started = self.started && !self.ended;
        match act {
            Act::Spawned | Act::SpawnFailed => started && self.process == Process::Due,
            Act::Said(Said::Result | Said::Failure | Said::Interrupted) if self.rules.lives.per_turn => false,
            Act::Rested => self.is_running() && self.rests,
            Act::CannotRest => self.is_running() && self.rests && self.waits_for_rest(),
            Act::Said(_) | Act::ToolAsk(..) | Act::ToolWithdrawn(_) => self.is_running(),
            Act::NotRead | Act::TreeGone => self.is_running(),
            Act::Ended => started && matches!(self.process, Process::Running | Process::TreeGone),
            Act::Refused | Act::Due => started,
            // If stdout is lost before the run has begun, the run reports nothing.
            Act::OutputLost => self.started,
            _ => true,
        }
    }

    /// The visible effects of the act.
    pub(crate) fn take(&mut self, act: &Act) -> Vec<Seen> {
        if !self.ended {
            if self.started {
                self.live(act)
            } else {
                self.waiting(act)
            }
            if self.started
                && !self.ended
                && matches!(self.process, Process::Ended | Process::Resting)
                && let Some(decided) = self.decided
            {
                self.close_last_turn(decided.outcome);
                self.end(decided.outcome);
            }
        }
        std::mem::take(&mut self.seen)
    }

    fn end(&mut self, outcome: &'static str) {
        self.ended = true;
        self.seen.push(Seen::Terminal(outcome, exit_code(outcome)));
    }

    fn waiting(&mut self, act: &Act) {
        match act {
            Act::Start => {
                self.started = true;
                self.active = self.now;
                self.turns.began = self.now;
                self.seen.extend([Seen::Started, Seen::Spawn]);
            }
            Act::Cancel | Act::CancelTurn | Act::Signal => self.end("run.cancelled"),
            Act::Malformed => self.end("invalid_message"),
            Act::Unsupported => self.end("unsupported_version"),
            Act::InputEnded => self.end("no_start"),
            _ => {}
        }
    }

    fn live(&mut self, act: &Act) {
        match act {
            Act::Spawned => {
                self.process = Process::Running;
                self.active = self.now;
                // The limits cover all processes together.
                if !self.exited {
                    self.run_due = self.rules.timeout.map(|timeout| self.now + timeout);
                    self.start_due = Some(self.now + START_TIMEOUT);
                }
            }
            Act::SpawnFailed => {
                self.process = Process::Ended;
                self.decide("agent_not_found");
            }
            Act::Said(said) => self.said(said),
            Act::ToolAsk(call, asks) => {
                self.active = self.now;
                self.open(Asker::Tool(*call), asks);
            }
            Act::ToolWithdrawn(call) => {
                self.active = self.now;
                self.withdraw(Some(Asker::Tool(*call)));
            }
            Act::Input(back, answer) => self.input(*back, *answer),
            Act::Cancel => self.cancel(),
            Act::Signal => {
                self.signals += 1;
                if self.signals > 1 {
                    self.kill();
                } else {
                    self.cancel();
                }
            }
            Act::InputEnded if !self.input_closed => {
                self.input_closed = true;
                if self.rules.eof_cancels {
                    self.cancel();
                } else {
                    self.nobody("input_closed");
                    self.no_more_prompts();
                }
            }
            Act::OutputLost => self.stop("internal_error"),
            Act::Refused => self.stop("resource_exhausted"),
            Act::Unsupported => match &mut self.decided {
                Some(decided) if decided.outcome == "run.completed" => decided.outcome = "unsupported_version",
                _ => self.stop("unsupported_version"),
            },
            Act::NotRead => {
                self.active = self.now;
                self.start_due = None;
            }
            Act::TreeGone => self.tree_gone(),
            Act::Ended => {
                self.tree_gone();
                self.process = Process::Ended;
                self.exited = true;
                if self.decided.is_none() {
                    self.exited();
                }
            }
            Act::Rested if self.waits_for_rest() => self.process = Process::Resting,
            Act::Rested => {}
            Act::CannotRest => {
                if let Some(decided) = self.decided {
                    self.after_result(decided.outcome);
                }
            }
            Act::Due | Act::Later(_) => self.tick(),
            Act::Prompt(now) => self.prompt(*now),
            Act::End => self.no_more_prompts(),
            Act::CancelTurn if self.rules.conversation => self.interrupt_turn(false),
            Act::CancelTurn => self.cancel(),
            Act::Start | Act::Malformed | Act::UnknownType | Act::InputEnded => {}
        }
    }

    fn said(&mut self, said: &Said) {
        self.active = self.now;
        self.start_due = None;
        match said {
            Said::Text | Said::Marker => {
                self.refused = false;
                self.markers += usize::from(*said == Said::Marker);
            }
            Said::Tool(call) => {
                self.refused = false;
                if self.calls.insert(*call) {
                    self.tools.push((*call, self.now));
                }
            }
            Said::ToolOver(call) => self.tools.retain(|(running, _)| running != call),
            Said::Ask(key, asks) => {
                self.refused = false;
                self.open(Asker::Agent(*key), asks);
            }
            Said::Withdraw(key) => self.withdraw(Some(Asker::Agent(*key))),
            Said::Result => self.turn_over(true, "run.completed"),
            Said::Failure => self.turn_over(false, "rate_limited"),
            Said::Interrupted => {
                self.turn_over(false, if self.refused { "question_declined" } else { "agent_error" });
            }
            Said::Garbage => {}
            Said::Session => self.turns.has_session = true,
            Said::Background(works) => self.background(*works),
            Said::Began(own) => self.turn_began(*own),
        }
    }

    /// Handles the end of a turn: the end of the run, the reply to an interrupt, or the questions of markers.
    fn turn_over(&mut self, well: bool, mut outcome: &'static str) {
        if let Some(decided) = self.decided {
            if decided.rung == Rung::Interrupted {
                self.climb();
            }
            return;
        }
        if self.turns.ends_with_process() {
            return;
        }
        if well && self.asks_by_markers(&mut outcome) {
            return;
        }
        // A sub-agent that goes on still waits for its answers.
        if !self.turns.background {
            self.withdraw(None);
        }
        if let Some(outcome) = self.end_turn(outcome) {
            self.release(outcome);
        }
    }

    /// Lets the agent go after its result, or has it rest.
    pub(super) fn release(&mut self, outcome: &'static str) {
        if outcome == "run.completed" && self.rules.keeps && !self.rules.lives.per_turn {
            self.decide(outcome);
            self.rests = true;
            self.seen.push(Seen::Rest);
        } else {
            self.after_result(outcome);
        }
    }

    /// Handles the exit of the agent's process, which ends its turn.
    fn exited(&mut self) {
        let mut outcome = match (self.rules.lives.per_turn, self.refused) {
            (true, _) => "run.completed",
            (false, true) => "question_declined",
            (false, false) => "agent_exited",
        };
        if self.rules.lives.per_turn && self.asks_by_markers(&mut outcome) {
            return;
        }
        if let Some(outcome) = self.end_turn(outcome) {
            self.decide(outcome);
        }
    }

    /// Asks the questions of the markers in a turn that has ended well. Returns whether there are any.
    fn asks_by_markers(&mut self, outcome: &mut &'static str) -> bool {
        if !self.turns.is_running() {
            return false;
        }
        let asks = std::mem::take(&mut self.markers);
        if asks == 0 || (!self.rules.interactive && self.answered > 0) {
            return false;
        }
        self.answered += 1;
        if self.answered > 20 {
            *outcome = "limit_reached";
            return false;
        }
        self.open(Asker::Markers, &vec![Asked::Required; asks]);
        true
    }

    /// Whether the run is over once the agent rests.
    fn waits_for_rest(&self) -> bool {
        self.decided.is_some_and(|decided| decided.rung == Rung::Leaving && decided.due.is_none())
    }

    /// Starts the agent for a further turn.
    pub(super) fn spawn(&mut self) {
        self.process = Process::Due;
        self.seen.push(Seen::Spawn);
    }

    pub(super) fn after_result(&mut self, outcome: &'static str) {
        let due = if self.rules.lives.leaves { self.now + Duration::from_secs(2) } else { self.now };
        self.decided = Some(Decided { outcome, rung: Rung::Leaving, due: Some(due) });
        self.turns.background = false;
        self.seen.extend([Seen::Sent("finish".into()), Seen::InputClosed]);
    }

    pub(super) fn decide(&mut self, outcome: &'static str) {
        self.turns.background = false;
        self.decided.get_or_insert(Decided { outcome, rung: Rung::Leaving, due: None });
    }

    fn open(&mut self, asker: Asker, asks: &[Asked]) {
        if self.decided.is_some() || self.turns.is_stopping() {
            return self.reply(asker, asks.len());
        }
        let mut group = Group { asker, questions: Vec::new(), deadline: self.now + QUESTION_TIMEOUT };
        for sort in asks {
            self.asked += 1;
            let mut question = Question { number: self.asked, sort: *sort, attempts: 1, open: true, missed: false };
            let by_policy = *sort == Asked::Permission && (self.rules.policy != 0 || self.always);
            if by_policy || !self.rules.interactive {
                question.open = false;
                let how = if by_policy { "policy" } else { "headless" };
                self.seen.push(Seen::Resolved(question.number, how));
            }
            group.questions.push(question);
        }
        let waiting: Vec<u64> = group.questions.iter().filter(|q| q.open).map(|q| q.number).collect();
        self.groups.push_back(group);
        if waiting.len() < asks.len() {
            self.active = self.now;
        }
        self.complete();
        self.seen.extend(waiting.into_iter().map(|number| Seen::Asked(number, 1)));
    }

    fn reply(&mut self, asker: Asker, count: usize) {
        self.seen.push(match asker {
            Asker::Agent(key) => Seen::Sent(format!("answer {key} {count}")),
            Asker::Tool(call) => Seen::ToolReplies(call),
            Asker::Markers if self.rules.lives.per_turn => return self.spawn(),
            Asker::Markers => Seen::Sent("follow up".into()),
        });
    }

    /// Passes the replies to the askers of complete groups.
    fn complete(&mut self) {
        let (done, rest): (VecDeque<Group>, VecDeque<Group>) =
            std::mem::take(&mut self.groups).into_iter().partition(|group| group.questions.iter().all(|q| !q.open));
        self.groups = rest;
        for group in done {
            self.refused = group.questions.iter().any(|question| question.missed);
            self.reply(group.asker, group.questions.len());
        }
    }

    fn waits(&self) -> bool {
        !self.groups.is_empty()
    }

    pub(super) fn withdraw(&mut self, asker: Option<Asker>) {
        let (gone, rest): (VecDeque<Group>, VecDeque<Group>) = std::mem::take(&mut self.groups)
            .into_iter()
            .partition(|group| asker.is_none_or(|asker| asker == group.asker));
        self.groups = rest;
        for group in &gone {
            if let Asker::Tool(call) = group.asker {
                self.seen.push(Seen::ToolWithdrawn(call));
            }
        }
        for question in gone.iter().flat_map(|group| &group.questions).filter(|question| question.open) {
            self.seen.push(Seen::Resolved(question.number, "withdrawn"));
            self.active = self.now;
        }
    }

    fn input(&mut self, back: usize, answer: Answer) {
        let Some(number) = self.asked.checked_sub(back as u64) else { return };
        let found = self.groups.iter_mut().find_map(|group| {
            let at = group.questions.iter().position(|question| question.number == number && question.open)?;
            Some((group, at))
        });
        let Some((group, at)) = found else { return };
        // A question from a marker accepts any text.
        let other = group.asker == Asker::Markers;
        let question = &mut group.questions[at];
        let always = answer == Answer::Always && question.sort == Asked::Permission;
        let how = match answer {
            Answer::Good => "answered",
            Answer::Always if always || other => "answered",
            Answer::Declined => "declined",
            Answer::Bad | Answer::Always => {
                if question.attempts < 5 {
                    question.attempts += 1;
                    self.seen.push(Seen::Asked(number, question.attempts));
                    return;
                }
                "declined"
            }
        };
        question.open = false;
        question.missed = how == "declined" && question.sort == Asked::Required;
        group.deadline = self.now + QUESTION_TIMEOUT;
        self.seen.push(Seen::Resolved(number, how));
        if always {
            self.always = true;
            let all = self.groups.iter_mut().flat_map(|group| &mut group.questions);
            for question in all.filter(|question| question.open && question.sort == Asked::Permission) {
                question.open = false;
                self.seen.push(Seen::Resolved(question.number, "answered"));
            }
        }
        self.active = self.now;
        self.complete();
    }

    /// Resolves the questions that nobody answers because stdin ended or their time ran out.
    fn nobody(&mut self, how: &'static str) {
        let (mut fails, mut some) = (false, false);
        // The groups with the earliest deadlines come first.
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.retain(|at| how == "input_closed" || self.groups[*at].deadline <= self.now);
        // Keeps the order in which they were asked.
        for at in order {
            for question in self.groups[at].questions.iter_mut().filter(|question| question.open) {
                question.open = false;
                some = true;
                if question.sort == Asked::Required {
                    question.missed = true;
                    fails |= how == "input_closed" || !self.rules.continues;
                }
                self.seen.push(Seen::Resolved(question.number, how));
            }
        }
        if fails {
            return self.stop(if how == "timeout" { "question_timeout" } else { "input_closed" });
        }
        if some {
            self.active = self.now;
            self.complete();
        }
    }

    pub(super) fn cancel(&mut self) {
        if self.decided.is_some() { self.climb() } else { self.stop("run.cancelled") }
    }

    fn stop(&mut self, outcome: &'static str) {
        if self.decided.is_some() {
            return;
        }
        let due = Some(self.now + Duration::from_millis(700));
        self.decided = Some(Decided { outcome, rung: Rung::Interrupted, due });
        self.turns.background = false;
        self.withdraw(None);
        self.seen.push(Seen::Sent("interrupt".into()));
        if !self.rules.lives.listens {
            self.climb();
            self.climb();
        }
    }

    fn kill(&mut self) {
        if self.decided.is_none() {
            self.stop("run.cancelled");
        }
        if let Some(decided) = &mut self.decided {
            (decided.rung, decided.due) = (Rung::Killed, None);
        }
        self.seen.push(Seen::Kill);
    }

    /// The next step of the ladder.
    fn climb(&mut self) {
        let Some(decided) = &mut self.decided else { return };
        let later = Some(self.now + Duration::from_millis(700));
        match decided.rung {
            Rung::Interrupted => {
                decided.rung = Rung::Leaving;
                decided.due = if self.rules.lives.leaves { later } else { Some(self.now) };
                self.seen.extend([Seen::Sent("finish".into()), Seen::InputClosed]);
            }
            Rung::Leaving => {
                (decided.rung, decided.due) = (Rung::Terminated, later);
                self.seen.push(Seen::Terminate);
            }
            Rung::Terminated | Rung::Killed => {
                (decided.rung, decided.due) = (Rung::Killed, None);
                self.seen.push(Seen::Kill);
            }
        }
    }

    fn tree_gone(&mut self) {
        if self.process == Process::Running {
            self.process = Process::TreeGone;
            self.turns.background = false;
            self.tools.clear();
            self.withdraw(None);
        }
    }

    fn idle_due(&self) -> Option<Duration> {
        let working = self.tools.last().map(|(_, since)| *since).or_else(|| self.background_since());
        let held = working.map_or(Duration::ZERO, |since| since + TOOL_TIMEOUT);
        let awaits_agent = !self.waits() && (!self.turns.is_over() || self.ends_when_idle());
        (awaits_agent && !self.active.is_zero()).then(|| self.active.max(held) + IDLE_TIMEOUT)
    }

    fn question_due(&self) -> Option<Duration> {
        let first = self.groups.iter().map(|group| group.deadline).min();
        if self.input_closed { first.map(|_| Duration::ZERO) } else { first }
    }

    /// The next deadline.
    pub(crate) fn due(&self) -> Option<Duration> {
        if !self.started || self.ended || matches!(self.process, Process::TreeGone) {
            return None;
        }
        match self.decided {
            Some(decided) => decided.due,
            None => {
                let all = [self.run_due, self.start_due, self.idle_due(), self.question_due(), self.turn_due()];
                all.into_iter().flatten().min()
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now;
        let passed = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        if self.process == Process::TreeGone {
            return;
        }
        if let Some(decided) = self.decided {
            if passed(decided.due) {
                self.climb();
            }
            return;
        }
        let late = [(self.run_due, "timeout"), (self.start_due, "start_timeout"), (self.idle_due(), "idle_timeout")];
        let first = late.into_iter().filter(|(due, _)| passed(*due)).min_by_key(|(due, _)| *due);
        if let Some((_, code)) = first {
            return match code {
                "idle_timeout" if self.background_since().is_some() => self.conclude(),
                _ => self.stop(code),
            };
        }
        if passed(self.turn_due()) {
            self.turn_is_due();
        }
        if self.decided.is_none() && passed(self.question_due()) {
            self.nobody(if self.input_closed { "input_closed" } else { "timeout" });
        }
    }
}

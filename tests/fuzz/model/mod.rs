//! Compares a run with a model of its lifecycle: events in any order lead to the result that the protocol defines.

mod acts;
mod puppet;
mod reference;
mod turns;

use super::rng::Rng;
use super::round::settings;
use acts::{Act, Answer, IDLE_TIMEOUT, QUESTION_TIMEOUT, Rules, START_TIMEOUT, Seen, TOOL_TIMEOUT};
use crossbeam_channel::{Receiver, Sender, unbounded};
use puppet::{Puppet, Said};
use reference::Reference;
use serde_json::value::RawValue;
use spektacular::agent::{Driver, Line};
use spektacular::protocol::failure::{Code, Failure};
use spektacular::protocol::inbound::Flaw;
use spektacular::protocol::outbound::{AgentExit, Body, Outcome, ProgressKind, WorkflowEnd, WorkflowStarted};
use spektacular::protocol::prompt::{FurtherPrompt, PromptInput};
use spektacular::protocol::request::{Options, Permissions, Seconds, Settings};
use spektacular::protocol::words::{
    Background, OnQuestionTimeout, Policy, PromptState, Source, TurnOrigin, WorkflowKind,
};
use spektacular::protocol::workflow::{ShownOptions, WorkflowOptions};
use spektacular::redact::Redactor;
use spektacular::run::{
    AgentEnd, Answered, Closing, Effect, Event, OnEof, Origin, Part, PartWork, ReadInput, Remake, Run, Start,
    StopSignal, Turn, TurnBegin,
};
use std::time::Duration;

/// A run with its model.
struct Pair {
    run: Run,
    model: Reference,
    rules: Rules,
    say: Sender<Said>,
    next: Receiver<Said>,
    /// Whether the run was started.
    started: bool,
    effects: Vec<Effect>,
    terminal: bool,
}

fn seconds(time: Duration) -> Option<Seconds> {
    Some(Seconds(time.as_secs_f64()))
}

impl Pair {
    fn new(rules: Rules) -> Pair {
        let (say, next) = unbounded();
        let on_eof = if rules.eof_cancels { OnEof::Cancel } else { OnEof::Continue };
        Pair {
            run: Run::new("m", on_eof, Redactor::new()),
            model: Reference::new(rules),
            rules,
            say,
            next,
            started: false,
            effects: Vec::new(),
            terminal: false,
        }
    }

    fn settings(&self) -> Settings {
        let policy = [Policy::Ask, Policy::Allow, Policy::Deny][usize::from(self.rules.policy)];
        let continues = if self.rules.continues { OnQuestionTimeout::Continue } else { OnQuestionTimeout::Fail };
        let options = Options {
            interactive: Some(self.rules.interactive),
            permissions: Some(Permissions::All(policy)),
            on_question_timeout: Some(continues),
            question_timeout_s: seconds(QUESTION_TIMEOUT),
            start_timeout_s: seconds(START_TIMEOUT),
            idle_timeout_s: seconds(IDLE_TIMEOUT),
            tool_timeout_s: seconds(TOOL_TIMEOUT),
            timeout_s: self.rules.timeout.and_then(seconds),
            conversation: Some(self.rules.conversation),
            turn_timeout_s: self.rules.turn_timeout.and_then(seconds),
            prompt_timeout_s: self.rules.prompt_timeout.and_then(seconds),
            heartbeat_s: seconds(Duration::ZERO),
            background: Some(if self.rules.waits { Background::Wait } else { Background::Refuse }),
            ..Options::default()
        };
        options.resolve("Go".into(), "puppet".into(), "/w".into())
    }

    fn start(&mut self) -> Event<'static> {
        if std::mem::replace(&mut self.started, true) {
            let failure = Failure::new(Code::InvalidRequest, "A second run.start.");
            return Event::Start(Origin::default(), Err(spektacular::run::Refusal::new(failure)));
        }
        let (lives, next) = (self.rules.lives, self.next.clone());
        let puppet = move || -> Box<dyn Driver> { Box::new(Puppet::new(lives, next.clone())) };
        let mut start = Start::new(self.settings(), "Puppet".into(), puppet(), Redactor::new());
        start.remake = (self.rules.conversation || self.rules.keeps).then(|| Box::new(puppet) as Remake);
        start.workflow = self.rules.keeps.then(|| Box::new(workflow()));
        Event::Start(Origin::default(), Ok(Box::new(start)))
    }

    fn input(&self, back: usize, answer: Answer) -> Event<'static> {
        let number = self.model.asked.checked_sub(back as u64);
        let question_id = number.map(|number| format!("q_m_{number}").into());
        // Every list of options here has a first option. Only permissions offer "always".
        let value = match answer {
            Answer::Good => "1",
            Answer::Always => "\"allow_always\"",
            Answer::Bad | Answer::Declined => "{}",
        };
        let value = RawValue::from_string(value.into()).expect("JSON");
        let answered = if answer == Answer::Declined { Answered::Declined } else { Answered::Value(value, None) };
        Event::Answer(
            Origin::default(),
            ReadInput {
                question_id,
                answered: Some(answered),
                message: None,
                updated_input: None,
                unknown: Default::default(),
            },
        )
    }

    fn event(&mut self, act: &Act) -> Event<'static> {
        let origin = Origin::default();
        match act {
            Act::Start => self.start(),
            Act::Spawned => Event::Spawned,
            Act::SpawnFailed => Event::SpawnFailed(Failure::new(Code::AgentNotFound, "There is none.")),
            Act::Said(said) => {
                self.say.send(said.clone()).expect("the puppet listens");
                Event::Line(Line::Text("line".into()))
            }
            Act::ToolAsk(call, asks) => {
                Event::ToolAsk { call: *call, asks: asks.iter().copied().map(puppet::ask).collect() }
            }
            Act::ToolWithdrawn(call) => Event::ToolAskWithdrawn { call: *call },
            Act::Input(back, answer) => self.input(*back, *answer),
            Act::Cancel => Event::Cancel(origin, None, Source::Orchestrator),
            Act::CancelTurn => Event::CancelTurn(origin, None),
            Act::Prompt(now) => {
                let prompt = FurtherPrompt { text: "More".into(), now: *now, images: Vec::new(), raw: None };
                Event::Prompt(origin, PromptInput::Prompt(prompt), Vec::new())
            }
            Act::End => Event::Prompt(origin, PromptInput::End, Vec::new()),
            Act::Signal => Event::Cancel(origin, None, Source::Signal),
            Act::InputEnded => Event::InputEnded,
            Act::OutputLost => Event::OutputLost,
            Act::Unsupported => Event::Unsupported(origin),
            Act::Malformed => Event::Malformed(origin, Flaw::Form),
            Act::UnknownType => Event::UnknownType(origin, "Ignored a message".into()),
            Act::NotRead => Event::NotRead,
            Act::Refused => Event::Refused(Failure::new(Code::ResourceExhausted, "It is full.")),
            Act::TreeGone => Event::TreeGone(AgentExit { code: Some(0), signal: None }),
            Act::Ended => {
                let exit = AgentExit { code: Some(0), signal: None };
                Event::AgentEnded(
                    AgentEnd { exit, leaked: false, lost_session: false, stderr: "".into() },
                    Ok(Vec::new()),
                )
            }
            Act::Rested => Event::Rested(Ok(Vec::new())),
            Act::CannotRest => Event::CannotRest,
            Act::Due | Act::Later(_) => Event::Tick,
        }
    }

    /// Applies an act to the run and to the model, and compares the effects.
    fn act(&mut self, act: &Act) -> Result<(), String> {
        if !self.model.fits(act) {
            return Ok(());
        }
        match act {
            Act::Due => match self.model.due() {
                Some(due) => self.model.now = self.model.now.max(due),
                None => return Ok(()),
            },
            Act::Later(ms) => self.model.now += Duration::from_millis(*ms),
            // Only the start happens at time zero.
            _ => self.model.now += Duration::from_millis(1),
        }
        let event = self.event(act);
        let begins = matches!(event, Event::Start(..)) && self.run.is_waiting();
        self.run.step(self.model.now, event, &mut self.effects);
        if begins && self.run.is_between() {
            let (start, keeps_process) = (TurnBegin::NewSession, true);
            let turn =
                Turn { start, keeps_process, offers_blocked: false, whole: None, asking_failed: false, guest: None };
            let part = Part { settings: self.settings(), work: PartWork::Turn(turn) };
            self.run.step(self.model.now, Event::Part(Box::new(part)), &mut self.effects);
        }
        if let Some(end) = self.run.take_part_end() {
            let workflow = WorkflowEnd::unknown(WorkflowKind::Spec);
            let closing = Closing { outcome: end.outcome, workflow: Some(workflow), killed: None };
            self.run.step(self.model.now, Event::Close(Box::new(closing)), &mut self.effects);
        }
        let expected = self.model.take(act);
        let mut seen = Vec::with_capacity(expected.len());
        for effect in self.effects.drain(..) {
            if self.terminal && matches!(effect, Effect::Emit { .. }) {
                return Err(format!("{act:?}: a frame after the terminal frame"));
            }
            self.terminal |= matches!(&effect, Effect::Emit { body: Body::Terminal(_), .. });
            seen.extend(told(effect));
        }
        if seen != expected {
            return Err(format!("{act:?}: the run does {seen:?}, and the protocol says {expected:?}"));
        }
        if self.run.next_deadline() != self.model.due() {
            let (run, model) = (self.run.next_deadline(), self.model.due());
            return Err(format!("{act:?}: the run waits for {run:?}, and the protocol says {model:?}"));
        }
        let code = self.terminal.then(|| {
            seen.iter().find_map(|one| match one {
                Seen::Terminal(_, code) => Some(*code),
                _ => None,
            })
        });
        if let Some(Some(code)) = code
            && self.run.exit_code() != Some(code)
        {
            return Err(format!("{act:?}: the exit code is {:?}", self.run.exit_code()));
        }
        Ok(())
    }
}

/// A process stays only in the run of a workflow, which has one part here.
fn workflow() -> WorkflowStarted {
    let (name, settings) = (WorkflowKind::Spec, WorkflowOptions::default().resolved());
    WorkflowStarted { name, project: "/w".into(), target: None, options: ShownOptions { of: name, settings } }
}

/// The model's view of an effect.
fn told(effect: Effect) -> Option<Seen> {
    let number = |id: &str| id.rsplit('_').next().and_then(|text| text.parse().ok()).expect("a question's id");
    Some(match effect {
        Effect::Emit { body, .. } => match body {
            Body::Started(_) => Seen::Started,
            Body::Question(question) => Seen::Asked(number(&question.question_id), question.attempt),
            Body::Progress(progress) => match &progress.about {
                ProgressKind::Resolved { question_id, resolution, .. } => {
                    let words = ["answered", "declined", "timeout", "input_closed", "headless", "policy", "withdrawn"];
                    let word = resolution.word();
                    Seen::Resolved(number(question_id), words.into_iter().find(|known| *known == word)?)
                }
                ProgressKind::Turn(turn) => {
                    let word = match &turn.outcome {
                        Outcome::Completed { .. } => "run.completed",
                        Outcome::Failed(failure) => failure.code.name(),
                        Outcome::Cancelled { .. } => "run.cancelled",
                    };
                    Seen::Turn(turn.number, word, turn.origin == TurnOrigin::Agent)
                }
                ProgressKind::Prompt { state, .. } => Seen::Prompt(match state {
                    PromptState::Queued => "queued",
                    PromptState::Sent => "sent",
                    PromptState::Dropped => "dropped",
                }),
                _ => return None,
            },
            Body::Artifact(_) => return None,
            Body::Terminal(terminal) => match &terminal.outcome {
                Outcome::Completed { .. } => Seen::Terminal("run.completed", 0),
                Outcome::Cancelled { .. } => Seen::Terminal("run.cancelled", 0),
                Outcome::Failed(failure) => Seen::Terminal(failure.code.name(), failure.code.exit_code()),
            },
        },
        Effect::Spawn(..) => Seen::Spawn,
        Effect::ToAgent(line) => Seen::Sent(line),
        Effect::ToolReplies { call, .. } => Seen::ToolReplies(call),
        Effect::ToolWithdrawn { call } => Seen::ToolWithdrawn(call),
        Effect::CloseAgentInput => Seen::InputClosed,
        Effect::Rest => Seen::Rest,
        // The model has no agents that take over, and no checkpoints.
        Effect::HandOver | Effect::Checkpoint(_) => return None,
        Effect::SignalTree(StopSignal::Terminate) => Seen::Terminate,
        Effect::SignalTree(StopSignal::Kill) => Seen::Kill,
        Effect::RunId(_)
        | Effect::FrameLimit(_)
        | Effect::HoldSession(_)
        | Effect::Attach(_)
        | Effect::Said { .. }
        | Effect::Hurry
        | Effect::Diagnose(_)
        | Effect::Note(_) => return None,
    })
}

/// Plays acts, and then brings the run to its end. Time alone must do that once the agent obeys the kill.
fn play(rules: Rules, acts: &[Act]) -> Result<(), String> {
    let mut pair = Pair::new(rules);
    for act in acts {
        pair.act(act)?;
    }
    pair.act(&Act::Spawned)?;
    pair.act(&Act::Cancel)?;
    for _ in 0..8 {
        pair.act(&Act::Due)?;
    }
    pair.act(&Act::Ended)?;
    if !pair.terminal || !pair.model.is_over() {
        return Err("the run does not end".into());
    }
    // After the end, no event has an effect.
    for act in [Act::Cancel, Act::Signal, Act::InputEnded, Act::Unsupported, Act::Later(1_000_000)] {
        pair.act(&act)?;
    }
    Ok(())
}

/// Removes acts as long as the remaining ones still fail.
fn smallest(rules: Rules, mut acts: Vec<Act>) -> Vec<Act> {
    let mut at = 0;
    while at < acts.len() {
        let mut fewer = acts.clone();
        fewer.remove(at);
        if play(rules, &fewer).is_err() {
            (acts, at) = (fewer, 0);
        } else {
            at += 1;
        }
    }
    acts
}

/// The numbers of runs in a short and in a long round.
const RUNS: (u64, u64) = (6_000, 100_000);

/// Checks half of the runs, so that two tests use two processors.
#[track_caller]
fn half(first: u64) {
    let (seed, seconds) = settings();
    let runs = if seconds.is_some() { RUNS.1 } else { RUNS.0 };
    println!("model: {} runs, FUZZ_SEED={seed}", runs / 2);
    for number in (first..runs).step_by(2) {
        let mut rng = Rng::new(seed.wrapping_add(number));
        let rules = Rules::random(&mut rng);
        let acts = Act::sequence(&mut rng);
        if play(rules, &acts).is_err() {
            let acts = smallest(rules, acts);
            let why = play(rules, &acts).err().unwrap_or_default();
            panic!("run {number} of FUZZ_SEED={seed}, {rules:?}\n{acts:#?}\n{why}");
        }
    }
}

#[test]
fn even_runs_follow_the_model_of_the_protocol() {
    half(0);
}

#[test]
fn odd_runs_follow_the_model_of_the_protocol() {
    half(1);
}

//! The events of a run of the model, and their visible effects.

use super::super::rng::Rng;
use super::puppet::Said;
use std::time::Duration;

/// The form of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Permission,
    /// With a default.
    Default,
    /// An answer is not required.
    Optional,
    /// Required, without a default.
    Required,
}

/// The behavior of the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    pub(crate) listens: bool,
    pub(crate) leaves: bool,
    /// Whether it takes a prompt while it works.
    pub(crate) steers: bool,
    /// Whether it stays when its turn is interrupted.
    pub(crate) stays: bool,
    /// Whether each turn has a process of its own, which ends with it.
    pub(crate) per_turn: bool,
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) lives: Lives,
    pub(crate) interactive: bool,
    /// Whether `on_question_timeout` is `continue`.
    pub(crate) continues: bool,
    /// Whether `--on-eof cancel` is set.
    pub(crate) eof_cancels: bool,
    /// The policy in `permissions`.
    pub(crate) policy: u8,
    pub(crate) timeout: Option<Duration>,
    pub(crate) conversation: bool,
    pub(crate) turn_timeout: Option<Duration>,
    pub(crate) prompt_timeout: Option<Duration>,
    /// Whether the agent's process stays after a completed turn.
    pub(crate) keeps: bool,
    /// Whether the run waits for the agent's work in the background.
    pub(crate) waits: bool,
}

pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
pub(crate) const TOOL_TIMEOUT: Duration = Duration::from_secs(200);
pub(crate) const QUESTION_TIMEOUT: Duration = Duration::from_secs(50);

impl Rules {
    pub(crate) fn random(rng: &mut Rng) -> Rules {
        Rules {
            lives: Lives {
                listens: !rng.once_in(3),
                leaves: !rng.once_in(3),
                steers: rng.once_in(2),
                stays: !rng.once_in(3),
                per_turn: rng.once_in(4),
            },
            interactive: !rng.once_in(4),
            continues: rng.once_in(2),
            eof_cancels: rng.once_in(4),
            policy: if rng.once_in(2) { 0 } else { 1 + rng.below(2) as u8 },
            timeout: rng.once_in(2).then(|| Duration::from_secs(70 + rng.below(200) as u64)),
            conversation: rng.once_in(2),
            turn_timeout: rng.once_in(3).then(|| Duration::from_secs(10 + rng.below(60) as u64)),
            prompt_timeout: rng.once_in(3).then(|| Duration::from_secs(10 + rng.below(60) as u64)),
            keeps: rng.once_in(5),
            waits: !rng.once_in(3),
        }
    }
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The first option: "allow once" for a permission.
    Good,
    /// The option "allow always".
    Always,
    Bad,
    Declined,
}

/// An event. The model skips events that do not fit the moment.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Start,
    Spawned,
    SpawnFailed,
    Said(Said),
    ToolAsk(u64, Vec<Asked>),
    ToolWithdrawn(u64),
    /// An answer to the question with this number, counted from the end.
    Input(usize, Answer),
    Cancel,
    /// A cancel of the turn.
    CancelTurn,
    /// A further prompt, and whether the agent is to get it while it works.
    Prompt(bool),
    /// The end of the prompts.
    End,
    Signal,
    InputEnded,
    OutputLost,
    Unsupported,
    Malformed,
    UnknownType,
    NotRead,
    Refused,
    TreeGone,
    Ended,
    /// The agent rests, or cannot rest.
    Rested,
    CannotRest,
    /// Time advances to the next deadline.
    Due,
    /// Time advances by this many milliseconds.
    Later(u64),
}

impl Act {
    pub(crate) fn random(rng: &mut Rng) -> Act {
        let asks = |rng: &mut Rng| {
            let sorts = [Asked::Permission, Asked::Permission, Asked::Default, Asked::Optional, Asked::Required];
            (0..1 + rng.below(3)).map(|_| *rng.pick(&sorts)).collect::<Vec<_>>()
        };
        let key = |rng: &mut Rng| rng.below(4) as u64;
        match rng.below(72) {
            0..=8 => Act::Said(Said::Ask(key(rng), asks(rng))),
            9 => Act::Said(Said::Withdraw(key(rng))),
            10 | 11 => Act::Said(Said::Text),
            12 => Act::Said(Said::Marker),
            13 => Act::Said(Said::Tool(key(rng))),
            14 => Act::Said(Said::ToolOver(key(rng))),
            15 => Act::Said(Said::Result),
            16 => Act::Said(if rng.once_in(2) { Said::Failure } else { Said::Interrupted }),
            17 => Act::Said(Said::Garbage),
            18 => Act::ToolAsk(key(rng), asks(rng)),
            19 => Act::ToolWithdrawn(key(rng)),
            20..=28 => {
                let answers = [Answer::Good, Answer::Good, Answer::Bad, Answer::Bad, Answer::Declined, Answer::Always];
                Act::Input(rng.below(5), *rng.pick(&answers))
            }
            29 => Act::Cancel,
            30 => Act::Signal,
            31 => Act::InputEnded,
            32 => rng.pick(&[Act::OutputLost, Act::Unsupported, Act::Refused]).clone(),
            33 => rng.pick(&[Act::Malformed, Act::UnknownType, Act::NotRead]).clone(),
            34 => Act::Ended,
            35 => Act::TreeGone,
            36 => Act::Start,
            37 => Act::Later(rng.next() % 40_000),
            42..=46 => Act::Prompt(rng.once_in(3)),
            47 | 48 => Act::CancelTurn,
            49 => Act::End,
            50..=52 => Act::Said(Said::Result),
            53 => Act::Said(Said::Session),
            54 => Act::Said(Said::Interrupted),
            55 | 56 => Act::Rested,
            57 => Act::CannotRest,
            58 | 59 => Act::Spawned,
            60..=62 => Act::Ended,
            63..=66 => Act::Said(Said::Background(rng.once_in(2))),
            67..=70 => Act::Said(Said::Began(!rng.once_in(3))),
            _ => Act::Due,
        }
    }

    /// Acts that begin with those that every run needs, mostly in order.
    pub(crate) fn sequence(rng: &mut Rng) -> Vec<Act> {
        let early = |rng: &mut Rng| rng.once_in(12).then(|| Act::random(rng));
        let mut acts: Vec<Act> = early(rng).into_iter().chain([Act::Start]).collect();
        acts.extend(early(rng));
        acts.push(if rng.once_in(30) { Act::SpawnFailed } else { Act::Spawned });
        let length = 2 + rng.below(16);
        acts.extend((0..length).map(|_| Act::random(rng)));
        acts
    }
}

/// The actions of a run that the model predicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Started,
    /// A question: its number and its attempt.
    Asked(u64, u32),
    Resolved(u64, &'static str),
    /// A line to the agent.
    Sent(String),
    InputClosed,
    Terminate,
    Kill,
    ToolReplies(u64),
    ToolWithdrawn(u64),
    Spawn,
    /// The agent is suspended.
    Rest,
    /// The number of a turn that ended, its outcome, and whether the agent began it.
    Turn(u64, &'static str, bool),
    /// The state of a prompt.
    Prompt(&'static str),
    /// The type of the terminal frame, or its failure code, and the exit code.
    Terminal(&'static str, u8),
}

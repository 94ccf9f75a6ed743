//! Agents: the [`Driver`] trait, the neutral [`Event`]s that every dialect is turned into, and the registry.
//!
//! A driver is pure: a message of the agent in, events and lines for the agent out. It never sees a frame, a run id,
//! a clock or a file, so a recording of an agent replays to the same bytes every time. It decides nothing about
//! questions either: it says what was asked, and is told how that was resolved.
//!
//! How the dialects map (the trait was tried on all of them before it was fixed):
//!
//! | | Claude Code | Codex app-server | ACP agents | plain commands |
//! |---|---|---|---|---|
//! | `launch` | argv; the user line | argv; `initialize` | argv; `initialize` | argv; the prompt, end of input |
//! | `line` | one stream-json object | JSON-RPC: the handshake goes on here | the same | a line of text |
//! | `Event::Session` | `system/init` | `thread/start` answered | `session/new` answered | a configured pattern |
//! | `Event::Ask` | `can_use_tool` | `requestApproval`, `requestUserInput`, elicitation | `request_permission`, elicitation | – |
//! | `answer` | `control_response` | result by request id | the chosen option's id | – |
//! | `follow_up` | a further user line | `turn/start` | `session/prompt` | a new process |
//! | `Event::TurnOver` | `result` | `turn/completed` | the prompt's response | – |
//! | `listens` | yes | yes | yes | no: a stop begins with SIGTERM |
//! | `interrupt` | `interrupt` | `turn/interrupt` | open permissions `cancelled`, `session/cancel` | – |
//! | `finish` | `end_session`, end of input | clean up terminals, end of input | end of input | – |
//! | `exited` | no result: failed | no result: failed | no result: failed | the exit code decides |
//!
//! A model that cannot ask, or not everything, is offered a tool: [`ask_user`] says what it is, and `mcp` is a server that
//! offers it. Codex takes the tool itself; Claude Code takes the server over its control protocol; an ACP agent starts a
//! process, which reaches the session by a socket, so that its calls come to the run beside the driver.

pub mod acp;
pub mod ask_user;
pub mod claude;
pub mod codex;
mod detail;
mod form;
pub mod json;
pub mod lines;
pub(crate) mod mcp;
pub mod native;
pub mod npx;
mod recent;
pub mod registry;
mod reply;
mod rpc;
mod said;
pub mod text;

pub use self::reply::{NO_USER_PROMPT, Reply};
use crate::failure::{Code, Failure};
use crate::protocol::limited::{Asks, Entries};
use crate::protocol::limits::ARGUMENT_BYTES;
use crate::protocol::outbound::{AgentExit, Capabilities, Usage};
use crate::protocol::request::{DEFAULT_START_TIMEOUT, Seconds, Settings};
use crate::protocol::words::{Action, Category, StopReason, ToolState, Warning};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program, found on the PATH that the agent will have.
    Command(String),
    /// This binary itself.
    Myself,
}

/// How an agent is started, before its driver adds anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// What to start.
    pub program: Program,
    /// The arguments before the driver's own.
    pub args: Vec<String>,
    /// Added to its environment, over what the driver adds.
    pub env: BTreeMap<String, String>,
    /// How to get it, for the message that says it is missing.
    pub install: Option<String>,
}

impl Base {
    /// This program and nothing else.
    pub fn command(name: &str) -> Base {
        Base { program: Program::Command(name.into()), args: Vec::new(), env: BTreeMap::new(), install: None }
    }

    /// A launch with these arguments and this environment of the driver's. `driver`: the dialect.
    fn launch(&self, driver: &'static str, args: Vec<String>, env: Vec<(String, String)>) -> Launch {
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        Launch {
            program: self.program.clone(),
            args: self.args.iter().cloned().chain(args).collect(),
            env: env.into_iter().chain(own).collect(),
            env_remove: Vec::new(),
            send: Vec::new(),
            close_input: false,
            start_timeout: Some(DEFAULT_START_TIMEOUT),
            driver,
            install: self.install.clone(),
        }
    }
}

/// How to start an agent's process, and what to write to it first.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to start.
    pub program: Program,
    /// Its arguments.
    pub args: Vec<String>,
    /// Added to its environment, below what run.start adds.
    pub env: Vec<(String, String)>,
    /// Taken out of its environment.
    pub env_remove: Vec<String>,
    /// Lines to write once it runs, each without its LF.
    pub send: Vec<String>,
    /// Whether its stdin ends after them.
    pub close_input: bool,
    /// The limit until its first line when run.start gives none. `None`: there is none.
    pub start_timeout: Option<Seconds>,
    /// The dialect, as a recording names it.
    pub driver: &'static str,
    /// How to get its program, for the message that says it is missing.
    pub install: Option<String>,
}

/// A line of the agent's stdout, without its LF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// What it said. Bytes that are no UTF-8 are U+FFFD. Owned where it may be kept without a copy.
    Text(Cow<'a, str>),
    /// A line longer than [`crate::protocol::limits::AGENT_LINE_BYTES`], which was skipped.
    TooLong,
}

/// A driver's own name for a message. Unique in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageKey(pub u64);

/// A driver's own name for one request for answers. Unique in a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskKey(pub String);

/// A file that a tool works on, as the agent names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Absolute, or relative to the working directory.
    pub path: PathBuf,
    /// From 1.
    pub line: Option<u64>,
}

/// What one message of an agent's means, in no agent's terms. Keys (`message`, `call`, `parent`) are the driver's
/// own, unique in a run; frames never show them.
#[derive(Clone, Debug)]
pub enum Event {
    /// The session is known.
    Session {
        /// Its id, for a later resume.
        id: Option<String>,
        /// The agent's version.
        version: Option<String>,
        /// The model in use.
        model: Option<String>,
    },
    /// A piece of what the agent says or thinks.
    Text {
        /// Which message it belongs to.
        message: MessageKey,
        /// The piece.
        piece: String,
        /// Whether the message is complete now.
        done: bool,
        /// Whether it is a thought. All pieces of a message agree.
        reasoning: bool,
        /// The tool call whose sub-agent speaks.
        parent: Option<String>,
    },
    /// A piece of something that comes whole later and is shown only then. A recording must still find a secret that
    /// is split over such pieces.
    Partial {
        /// What it is a piece of. No message has the same key.
        whole: MessageKey,
        /// The piece.
        piece: String,
        /// Whether it was the last.
        done: bool,
    },
    /// A message, of which pieces were sent, is not valid any more.
    Withdrawn {
        /// Which message.
        message: MessageKey,
    },
    /// A tool call began, or more is known of it.
    Tool {
        /// Which call.
        call: String,
        /// What kind of tool it is.
        category: Category,
        /// The title, whole; its first line is shown. `None`: unchanged.
        title: Option<String>,
        /// The files it works on.
        locations: Vec<At>,
        /// The tool call whose sub-agent makes it.
        parent: Option<String>,
    },
    /// A tool call is over.
    ToolOver {
        /// Which call.
        call: String,
        /// How it ended.
        state: ToolState,
        /// What it gave.
        output: Option<String>,
    },
    /// The agent's plan, as a whole.
    Plan(Entries),
    /// The agent's plan as one text: one entry per line, and headings.
    PlanText(String),
    /// What the whole run used so far.
    Usage(Usage),
    /// The agent reports a change of a file as done.
    Changed {
        /// As the agent names it.
        path: PathBuf,
        /// What happened to it.
        action: Action,
    },
    /// The agent asks, and waits. The questions are one group.
    Ask {
        /// Which request.
        key: AskKey,
        /// What is asked; at least one.
        asks: Asks,
    },
    /// The agent does not wait for this any more.
    AskWithdrawn {
        /// Which request.
        key: AskKey,
    },
    /// The agent tries again.
    Retrying {
        /// One human line, in our own words.
        text: String,
    },
    /// Something the orchestrator should know.
    Warning(Warning, String),
    /// A line that could not be read, or only in part.
    Unparsed,
    /// A diagnostic in our own words, for recordings and verbose output.
    Note(String),
    /// The agent's turn is over.
    TurnOver(TurnOver),
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub enum TurnOver {
    /// With a result.
    Completed {
        /// The final answer.
        answer: text::FinalAnswer,
        /// The structured result.
        structured: Option<Box<RawValue>>,
        /// Why the model stopped.
        stop: StopReason,
    },
    /// With an error of the agent's.
    Failed(Failure),
    /// By an interrupt. Ours, or else a failure.
    Interrupted,
}

/// What a driver wants done after one call.
#[derive(Debug, Default)]
pub struct Turn {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Lines for the agent, each without its LF.
    pub send: Vec<String>,
    /// Whether its stdin ends after them.
    pub close_input: bool,
    /// Whether the line says more than was taken from it: [`Driver::more`] gives the next part.
    pub more: bool,
    /// The process that takes the further turn, of an agent that has one process a turn. See [`Driver::follow_up`].
    pub relaunch: Option<Box<Launch>>,
}

/// The title of a call: the tool, and what the call is about. Drivers never cut text, not even after its first line,
/// because half a secret cannot be found. The run redacts the whole text and then cuts it.
fn title(tool: &str, about: &str) -> String {
    let about = about.trim_start();
    if about.is_empty() { tool.to_owned() } else { format!("{tool}: {about}") }
}

/// A flag with its value as one argument, so that no value is taken for a flag. Error: one that fits no command line.
pub(crate) fn argument(field: &str, flag: &str, value: &str) -> Result<String, Failure> {
    fitting(field, format!("{flag}={value}"))
}

/// An argument that holds what run.start has in `field`. Error: one that fits no command line.
fn fitting(field: &str, argument: String) -> Result<String, Failure> {
    if argument.len() > ARGUMENT_BYTES || argument.contains('\0') {
        let message = format!("run.start: `{field}` is too long for the agent, or holds a NUL: shorten it.");
        return Err(Failure::new(Code::InvalidRequest, message));
    }
    Ok(argument)
}

/// The agent has no mode of this name. `names`: the modes that it reports.
fn no_such_mode(names: impl IntoIterator<Item = String>) -> Failure {
    const SHOWN: usize = 20;
    let plain = |name: &String| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (1..=64).contains(&name.len()) && name.chars().all(fits)
    };
    let names: Vec<String> = names.into_iter().filter(plain).take(SHOWN).collect();
    let choice = if names.is_empty() { String::new() } else { format!(" Its modes here: {}.", names.join(", ")) };
    Failure::new(Code::InvalidRequest, format!("The agent does not have this mode: check `mode`.{choice}"))
}

/// The settings that not every agent can follow, and how to see whether one was given.
type Wish = (&'static str, fn(&Settings) -> bool);
const WISHES: [Wish; 11] = [
    ("model", |settings| settings.model.is_some()),
    ("effort", |settings| settings.effort.is_some()),
    ("mode", |settings| settings.mode.is_some()),
    ("system_prompt", |settings| settings.system_prompt.is_some()),
    ("max_turns", |settings| settings.max_turns.is_some()),
    ("max_cost_usd", |settings| settings.max_cost_usd.is_some()),
    ("output_schema", |settings| settings.output_schema.is_some()),
    ("mcp_servers", |settings| !settings.mcp_servers.is_empty()),
    ("add_dirs", |settings| !settings.add_dirs.is_empty()),
    ("allowed_tools", |settings| settings.allowed_tools.is_some()),
    ("disallowed_tools", |settings| settings.disallowed_tools.is_some()),
];

/// Warns of the settings that were given, but for those in `follows`, which this agent can follow.
fn without_effect(settings: &Settings, follows: &[&str], turn: &mut Turn) {
    for (field, given) in WISHES {
        if given(settings) && !follows.contains(&field) {
            let text = format!("`{field}` has no effect on this agent");
            turn.events.push(Event::Warning(Warning::UnsupportedOption, text));
        }
    }
}

/// One agent's dialect.
pub trait Driver: Send {
    /// What this driver can do, as far as it is known before the agent runs.
    fn capabilities(&self) -> Capabilities;

    /// How to start the agent for these settings. Also keeps what it needs of them. Warnings about options without
    /// an effect go into `turn`. Errors: what would never work, such as a value too long for a command line.
    fn launch(&mut self, settings: &Settings, turn: &mut Turn) -> Result<Launch, Failure>;

    /// One line of the agent's stdout.
    fn line(&mut self, line: Line<'_>, turn: &mut Turn);

    /// The next part of a line that was too long to be taken at once.
    fn more(&mut self, _turn: &mut Turn) {}

    /// Every question of the request `key` is resolved; one reply each, in the order they were asked.
    fn answer(&mut self, key: &AskKey, replies: &[Reply], turn: &mut Turn);

    /// Whether the agent takes further turns. While a turn goes on the answer stays the same.
    fn takes_turns(&self) -> bool {
        true
    }

    /// A further turn of the user's in the same session, after a turn that ended well. Where the process ended with
    /// that turn, `turn.relaunch` is the next one; without it, or with a turn that failed, the run is over.
    fn follow_up(&mut self, prompt: &str, turn: &mut Turn);

    /// Whether the agent listens to anything after its launch: an interrupt, the end of its stdin. Where it does not,
    /// a stop begins with SIGTERM.
    fn listens(&self) -> bool {
        true
    }

    /// Asks the agent to stop what it is doing.
    fn interrupt(&mut self, turn: &mut Turn);

    /// The result that counts is there: tell the agent to leave.
    fn finish(&mut self, turn: &mut Turn);

    /// Whether the agent leaves when it is told to. Else it is not waited for before it is stopped.
    fn leaves(&self) -> bool {
        true
    }

    /// The name of the tool by which its model is to ask, if that needs a server: [`Settings::ask_server`].
    fn asks_by(&self, _settings: &Settings) -> Option<&'static str> {
        None
    }

    /// The agent's process ended, and all of its lines were taken.
    fn drained(&mut self, _turn: &mut Turn) {}

    /// The agent's process ended, and no turn of it had a result. `stderr` is what it said last.
    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &str) -> TurnOver;

    /// Whether the agent's stderr may be shown. Some agents dump prompts and keys there.
    fn stderr_is_fit(&self) -> bool {
        true
    }
}

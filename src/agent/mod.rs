//! Agents: the [`Driver`] trait, the neutral [`AgentEvent`]s into which each driver translates its dialect, and the
//! registry.
//!
//! A driver is pure: it takes a line from the agent and returns events and lines for the agent. It never sees a frame,
//! a run id, a clock or a file, so a recording of an agent replays to the same bytes every time. It makes no decision
//! about a question: it reports the question, and the run supplies the reply.
//!
//! The counterparts of the trait's methods in the dialects:
//!
//! | | Claude Code | Codex app-server | ACP agents | pi | plain commands |
//! |---|---|---|---|---|---|
//! | `launch` | argv; the user line | argv; `initialize` | argv; `initialize` | argv, an extension; `get_state` | argv; the prompt, end of input |
//! | `line` | one stream-json object | JSON-RPC: the handshake continues here | the same | a response or an event | a line of text |
//! | `AgentEvent::Session` | `system/init` | `thread/start` answered | `session/new` answered | `get_state` answered | a configured pattern |
//! | `AgentEvent::Ask` | `can_use_tool` | `requestApproval`, `requestUserInput`, elicitation | `request_permission`, elicitation | a dialog of an extension | – |
//! | `answer` | `control_response` | result by request id | the chosen option's id | `extension_ui_response` | – |
//! | `follow_up` | a further user line | `turn/start` | `session/prompt` | `prompt` | a new process |
//! | `AgentEvent::TurnOver` | `result` | `turn/completed` | the prompt's response | `agent_settled` | – |
//! | `interrupt` | `interrupt` | `turn/interrupt` | open permissions `cancelled`, `session/cancel` | open dialogs cancelled, `abort` | – |
//! | `finish` | `end_session`, end of input | clean up terminals, end of input | end of input | end of input | – |
//! | `exited` | no result: failed | no result: failed | no result: failed | no result: failed | the exit code decides |
//!
//! A model that cannot ask every kind of question is offered a tool: [`ask_user`] defines it, and `mcp` is a server
//! that offers it. Codex takes the tool itself; Claude Code talks to the server over its control protocol; an ACP agent
//! and pi start the server as a process, which reaches the run through a socket and not through the driver.

pub(crate) mod acp;
pub(crate) mod ask_user;
mod built_in;
pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod demo;
mod detail;
pub(crate) mod edits;
pub mod endpoint;
mod error_text;
pub mod features;
pub(crate) mod form;
mod header_variables;
mod launch;
pub mod limit;
pub(crate) mod lines;
pub(crate) mod mcp;
pub(crate) mod native;
pub(crate) mod npx;
pub(crate) mod pause;
pub(crate) mod pi;
mod preference;
mod prompt_text;
mod provider;
pub mod provider_samples;
mod recent;
pub mod registry;
mod reply;
pub(crate) mod result;
pub(crate) mod rpc;
mod shell;
pub(crate) mod stored;
pub mod text;
mod title;
mod tool_input;
pub(crate) mod unwritable;
mod vendor;

pub use self::features::{Features, LEAVE};
pub use self::launch::{FoundBy, Launch, LaunchFile};
pub use self::mcp::Offered;
pub use self::preference::Preference;
pub use self::reply::{NO_USER_PROMPT, Reply};
pub use self::result::ResultWay;
use self::title::title;
use crate::json::Object;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::Field;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::limits::{self, ARGUMENT_BYTES};
use crate::protocol::outbound::{AgentCommand, AgentExit, Entries, Json, Place, PlanEntry, Text, ToolFacts, Usage};
use crate::protocol::question::Asks;
use crate::protocol::request::{DEFAULT_START_TIMEOUT, Settings};
use crate::protocol::schema::Mismatch;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{
    Action, Category, Level, McpState, PlanStatus, StopReason, ToolState, TurnOrigin, Warning,
};
use crate::suggest::plain_name;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// A program, found on the PATH that the agent will have.
    Command(String),
    #[default]
    Myself,
}

/// The command that starts an agent, before its driver adds anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    pub program: Program,
    /// The arguments before the driver's own.
    pub args: Vec<String>,
    /// These override the driver's own.
    pub env: BTreeMap<String, String>,
    pub install: Option<String>,
    pub package: Option<&'static str>,
}

impl Base {
    pub fn command(name: &str) -> Base {
        Base { program: Program::Command(name.into()), ..Base::default() }
    }

    fn launch(&self, driver: &'static str, args: Vec<String>, env: Vec<(String, String)>) -> Launch {
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        Launch {
            args: self.args.iter().cloned().chain(args).collect(),
            env: env.into_iter().chain(own).collect(),
            start_timeout: Some(DEFAULT_START_TIMEOUT),
            install: self.install.clone(),
            package: self.package,
            ..Launch::new(self.program.clone(), driver)
        }
    }
}

/// A line of the agent's stdout, without its LF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Invalid UTF-8 is replaced with U+FFFD. An owned text can be kept without a copy.
    Text(Cow<'a, str>),
    TooLong,
}

/// A driver's own name for a message. Unique in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageKey(pub u64);

impl MessageKey {
    /// `count`: the number of messages so far.
    fn next(count: &mut u64) -> MessageKey {
        *count += 1;
        MessageKey(*count)
    }
}

/// An agent's name for a tool call, as a hash of it, so that a key takes no memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(u64);

impl CallKey {
    pub fn of(name: &str) -> CallKey {
        CallKey(text::hash(name))
    }
}

/// A driver's own name for one request for answers. Unique in a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskKey(pub String);

/// An action or message of an agent, in terms that all agents share. The keys (`message`, `call`, `parent`) are the
/// driver's own names, unique in a run; frames never show them.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    Session {
        id: Option<SessionId>,
        version: Option<Text>,
        model: Option<Text>,
    },
    Text {
        message: MessageKey,
        piece: Text,
        done: bool,
        /// All pieces of a message have the same value.
        reasoning: bool,
        /// The tool call whose sub-agent speaks.
        parent: Option<CallKey>,
    },
    /// A piece of an item that is shown only when it is complete. Recordings need the pieces to find a secret that is
    /// split between them.
    Partial {
        /// No message has the same key.
        whole: MessageKey,
        piece: Text,
        done: bool,
    },
    /// The agent takes back a message after some of its pieces were sent.
    Withdrawn {
        message: MessageKey,
    },
    /// A tool call began, or new facts about it are known.
    Tool {
        call: CallKey,
        category: Category,
        /// The tool, as the agent knows it. Empty if the agent does not say.
        name: String,
        /// The whole title, of which only the first line is shown. `None`: unchanged.
        title: Option<Text>,
        locations: Vec<Place>,
        /// The input of the call, an object. `None`: not wanted, not known, or unchanged.
        input: Option<Json>,
        parent: Option<CallKey>,
    },
    ToolOver {
        call: CallKey,
        state: ToolState,
        output: Option<Text>,
        /// Its edits are empty unless [`Settings::tool_facts`].
        facts: ToolFacts,
    },
    /// The whole plan of the agent.
    Plan(Entries),
    /// The agent's plan as one text: one entry per line, and headings.
    PlanText(Text),
    /// A call of the model ended, and the tools that it asked for are done.
    ModelCalled,
    /// The usage of the whole run so far.
    Usage(Usage),
    Changed {
        /// The file, as the agent names it.
        path: Text,
        action: Action,
    },
    /// The agent asks questions, as one group, and waits.
    Ask {
        key: AskKey,
        /// At least one.
        asks: Asks,
        call: Option<CallKey>,
    },
    AskWithdrawn {
        key: AskKey,
    },
    /// The agent itself refused a result that the model gave with our tool, and told the model.
    ResultRefused(Mismatch),
    /// The agent reported the state of an MCP server, maybe of one that the run does not know.
    McpServer {
        name: String,
        state: McpState,
        /// The agent's reason for a failure.
        said: Option<Text>,
    },
    /// The agent's own commands and skills: all of them.
    Commands(Vec<AgentCommand>),
    /// The agent is ready for its first prompt, and [`Driver::send_held`] sends it once the MCP servers are known to run.
    AwaitsServers,
    Retrying {
        /// A line for people, in our own words.
        text: Text,
        retry_at: Option<UtcTime>,
    },
    Warning(Warning, Sentence),
    /// A line could not be parsed, or only in part.
    Unparsed,
    /// A diagnostic in our own words, for recordings and verbose output.
    Note(Text),
    /// The work that the agent goes on with after its turn, or has scheduled: all of it, each by a short name.
    Background(Vec<Text>),
    /// A turn began that the agent begins by itself, or the next prompt's turn, if another one preceded it.
    TurnBegan(TurnOrigin),
    TurnOver(TurnOver),
}

#[derive(Clone, Debug)]
pub enum TurnOver {
    Completed {
        answer: text::FinalAnswer,
        structured: Option<Json>,
        stop: StopReason,
    },
    Failed(Failure),
    /// An interrupt ended the turn. If the interrupt was not ours, the run fails.
    Interrupted,
}

impl TurnOver {
    pub(crate) fn completed(answer: impl Into<text::FinalAnswer>) -> TurnOver {
        TurnOver::Completed { answer: answer.into(), structured: None, stop: StopReason::EndTurn }
    }
}

#[derive(Debug, Default)]
pub struct DriverOutput {
    pub events: Vec<AgentEvent>,
    /// Lines for the agent, each without its LF.
    pub send: Vec<String>,
    pub close_input: bool,
    /// The process for the further turn, if the agent has one process per turn. See [`Driver::follow_up`].
    pub relaunch: Option<Box<Launch>>,
}

impl DriverOutput {
    /// Adds the warning that a setting has no effect.
    fn warn(&mut self, text: impl Into<Sentence>) {
        self.events.push(AgentEvent::Warning(Warning::UnsupportedOption, text.into()));
    }

    fn unparsed(&mut self) {
        self.events.push(AgentEvent::Unparsed);
    }

    fn fail(&mut self, failure: Failure) {
        self.events.push(AgentEvent::TurnOver(TurnOver::Failed(failure)));
    }
}

#[derive(Clone, Copy, Debug)]
struct Wants {
    /// Whether the run shows pieces of texts, and the outputs of tools.
    full: bool,
    /// Whether the run reports the agent's commands, which somebody may type.
    commands: bool,
    facts: bool,
    /// The maximum size of a final answer in a frame, in bytes.
    answer_bytes: usize,
    /// Whether the agent may take the user's text as a command, by the settings.
    raw_by_default: bool,
    /// Whether the agent may take the next text of the user's as a command.
    raw_prompt: bool,
}

impl Wants {
    fn new(settings: &Settings) -> Wants {
        Wants {
            full: settings.progress == Level::Full,
            commands: settings.progress == Level::Full && settings.conversation,
            facts: settings.tool_facts,
            answer_bytes: settings.max_frame_bytes.saturating_mul(limits::COMPLETED_FACTOR),
            raw_by_default: settings.raw_prompt,
            raw_prompt: settings.raw_prompt,
        }
    }

    fn take_commands(&mut self, raw: Option<bool>) {
        self.raw_prompt = raw.unwrap_or(self.raw_by_default);
    }
}

impl Default for Wants {
    fn default() -> Wants {
        Wants {
            full: false,
            commands: false,
            facts: false,
            answer_bytes: limits::FRAME_BYTES,
            raw_by_default: false,
            raw_prompt: false,
        }
    }
}

fn speech(key: MessageKey, parent: Option<CallKey>, reasoning: bool, piece: impl Into<Text>, done: bool) -> AgentEvent {
    AgentEvent::Text { message: key, piece: piece.into(), done, reasoning, parent }
}

fn plan_entry(entry: &Object<'_>, text: &str) -> PlanEntry {
    let status = match entry.str("status").as_deref() {
        Some("in_progress" | "inProgress") => PlanStatus::InProgress,
        Some("completed") => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    };
    PlanEntry { text: entry.string(text).unwrap_or_default().into(), status }
}

/// A flag with its value as one argument, so that no value can look like a flag. Error: it does not fit a command line.
pub(crate) fn argument(field: &'static Field, flag: &str, value: &str) -> Result<String, Failure> {
    fitting(field, format!("{flag}={value}"))
}

/// An argument with the value of `field` in run.start. Error: it does not fit a command line.
fn fitting(field: &'static Field, argument: String) -> Result<String, Failure> {
    if argument.len() > ARGUMENT_BYTES || argument.contains('\0') {
        return Err(Failure::invalid_start(sentence!(
            "{field} must fit the agent's command line: at most {ARGUMENT_BYTES} bytes, without NUL.",
            field = field
        )));
    }
    Ok(argument)
}

fn no_such_mode(names: impl IntoIterator<Item = String>) -> Failure {
    const SHOWN: usize = 20;
    let names: Vec<String> = names.into_iter().filter(|name| plain_name(name).is_some()).take(SHOWN).collect();
    let choice = if names.is_empty() { String::new() } else { format!(" Its modes are: {}.", names.join(", ")) };
    let message = sentence!("The agent does not have this mode: check {mode}.{choice}", mode);
    Failure::new(Code::InvalidRequest, message)
}

pub(crate) fn takes_no_images(agent: &str) -> Failure {
    Failure::invalid_start(sentence!("{images} cannot be used: the agent {agent} does not accept images.", images))
}

pub trait Driver: Send {
    fn features(&self, settings: &Settings) -> Features;

    /// Adds a warning to `out` for each option that has no effect. Error: a setting that cannot work, such as a value
    /// too long for a command line.
    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure>;

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput);

    /// Handles a line of the agent's stderr, or a part of a long one, if its [`Launch::reads_stderr`].
    fn stderr(&mut self, _text: &str, _out: &mut DriverOutput) {}

    /// Whether the agent has not opened its session yet, so that its output is no proof that it started. Only for an agent
    /// that answers the request for a session at once.
    fn is_opening(&self) -> bool {
        false
    }

    /// `replies`: one per question, in their order.
    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput);

    /// Whether the agent takes further turns. Does not change during a turn.
    fn takes_turns(&self) -> bool {
        true
    }

    /// Sends a further prompt in the same session: for a further turn, or to go on with this one, such as to correct a
    /// result. The line with the prompt contains the labels of its images. If the process ended with the last turn,
    /// `out.relaunch` is the next process; without one, or if the turn failed, the run is over.
    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput);

    /// Says whether the agent may take the prompts from now on as commands. `None`: as its settings say.
    fn take_commands(&mut self, _raw: Option<bool>) {}

    /// Passes a prompt to the agent while it works on a turn, like [`Driver::follow_up`]. Returns whether the agent takes
    /// it now.
    fn steer(&mut self, _prompt: &str, _images: &[Image], _out: &mut DriverOutput) -> bool {
        false
    }

    /// Sends the first prompt, which waited for MCP servers. See [`AgentEvent::AwaitsServers`].
    fn send_held(&mut self, _out: &mut DriverOutput) {}

    /// Notes that the agent has started [`Settings::ask_server`].
    fn ask_server_came(&mut self, _out: &mut DriverOutput) {}

    /// Asks the agent to stop its turn and to stay for the next one. Returns whether it can.
    fn interrupt_turn(&mut self, _out: &mut DriverOutput) -> bool {
        false
    }

    fn interrupt(&mut self, out: &mut DriverOutput);

    /// Tells the agent to exit, after the final result.
    fn finish(&mut self, out: &mut DriverOutput);

    /// Handles the end of the agent's process tree, after its last line.
    fn tree_gone(&mut self, _exit: AgentExit, _out: &mut DriverOutput) {}

    /// The process ended without a result. `alive`: whether it wrote anything. `stderr`: the end of its stderr.
    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver;

    /// The approximate size of what the driver keeps of messages and tools that the agent has not ended, in bytes.
    fn held_bytes(&self) -> usize {
        0
    }
}

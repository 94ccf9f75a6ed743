//! Claude Code: stream-json both ways, with the control protocol for questions, permissions and interrupts.
//!
//! Facts (measured on 2.1.197 and 2.1.330): nothing comes out before the first user line; a `result` ends a turn,
//! not the process; `is_error` is the truth and `subtype` is not; one assistant line comes per content block; a tool's
//! permission may be asked before the line of the next tool of the same answer; several may be open at once; an
//! unknown control request that is not answered hangs the turn.

mod ask;
mod asking;
mod errors;
mod launch;
mod native;
mod speech;
mod tools;
mod usage;

pub use self::native::NATIVE;

use self::ask::Pending;
use self::speech::{Speech, Stream, skip};
use super::json::{Object, text, without_controls};
use super::mcp;
use super::text::{Answer, Chunks, Fingerprint, LONG};
use super::{AskKey, Base, Driver, Event, Launch, Line, Program, Reply, Turn, TurnOver};
use super::{ask_user, no_such_mode, without_effect};
use crate::failure::{Code, Failure};
use crate::protocol::limits;
use crate::protocol::outbound::{AgentExit, Capabilities, Usage};
use crate::protocol::question::{ALLOW_ONCE, Answer as QuestionAnswer, Ask};
use crate::protocol::request::Settings;
use crate::protocol::words::{Action, Level, PlanStatus, QuestionKind, StopReason, ToolState};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

/// The driver for Claude Code, and for a recording of it.
#[derive(Debug)]
pub struct Claude {
    base: Base,
    /// Requests of Claude's that wait for an answer. Several can be open at once.
    pending: BTreeMap<AskKey, Pending>,
    /// What each tool call is, by its id.
    calls: HashMap<String, String>,
    /// Calls that were not allowed: their result is no failure of the tool.
    denied: HashSet<String>,
    /// How many blocks of a message were seen: a message id alone does not name a block.
    blocks: HashMap<String, u64>,
    /// The block that is being streamed, by the call whose sub-agent speaks.
    streams: HashMap<Option<String>, Stream>,
    /// The message that is being streamed, by the same.
    streaming: HashMap<Option<String>, String>,
    /// Blocks that are too long to be said at once.
    long: VecDeque<Speech>,
    /// The plan of the last call that asks to leave plan mode.
    plan: Option<String>,
    /// Where the line that is being read lies in memory.
    line_address: usize,
    /// The most of a final answer that a frame can take, in bytes.
    answer_bytes: usize,
    /// Whether tools' outputs are shown.
    outputs: bool,
    /// Whether what the user says may be a command of Claude's.
    raw_prompt: bool,
    session_known: bool,
    /// The agent of Claude's that is to work: an unknown one is ignored by Claude itself.
    mode: Option<String>,
    resuming: bool,
    /// What the last synthetic message said of an error of the API's.
    api_error: Option<String>,
    /// What the turns used so far.
    used: Usage,
    /// Control requests of ours so far.
    requests: u64,
    /// Whether the model is offered a tool of ours to ask with.
    offers_asking: bool,
    /// The server of that tool.
    server: mcp::Server,
    /// Its calls that wait for an answer, by the request that brought them.
    asked: BTreeMap<AskKey, mcp::Id>,
}

impl Claude {
    /// A driver for the agent that `base` starts.
    pub fn new(base: Base) -> Claude {
        Claude {
            base,
            pending: BTreeMap::new(),
            calls: HashMap::new(),
            denied: HashSet::new(),
            blocks: HashMap::new(),
            streams: HashMap::new(),
            streaming: HashMap::new(),
            long: VecDeque::new(),
            plan: None,
            line_address: 0,
            answer_bytes: limits::FRAME_BYTES,
            outputs: false,
            raw_prompt: false,
            session_known: false,
            mode: None,
            resuming: false,
            api_error: None,
            used: Usage::default(),
            requests: 0,
            offers_asking: false,
            server: mcp::Server::new(ask_user::TOOL),
            asked: BTreeMap::new(),
        }
    }

    /// A recording says what it says, whatever it is asked.
    fn is_recording(&self) -> bool {
        self.base.program == Program::Myself
    }

    fn control(&mut self, subtype: &str, turn: &mut Turn) {
        self.requests += 1;
        let id = format!("spk_{}", self.requests);
        turn.send.push(line(&json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}})));
    }

    fn message(&mut self, message: &Object<'_>, turn: &mut Turn) {
        match message.str("type").as_deref() {
            Some("system") => self.system(message, turn),
            Some("assistant") => self.assistant(message, turn),
            Some("stream_event") => self.stream_event(message, turn),
            Some("user") => self.user(message, turn),
            Some("control_request") => self.control_request(message, turn),
            Some("control_cancel_request") => {
                let key = AskKey(message.str("request_id").unwrap_or_default());
                if self.pending.remove(&key).is_some() || self.forget_call(&key) {
                    turn.events.push(Event::AskWithdrawn { key });
                }
            }
            Some("result") => self.result(message, turn),
            // Answers to our own requests, and what later versions add.
            Some(_) => {}
            None => turn.events.push(Event::Unparsed),
        }
    }

    fn system(&mut self, message: &Object<'_>, turn: &mut Turn) {
        match message.str("subtype").as_deref() {
            Some("init") if !self.session_known => {
                self.session_known = true;
                turn.events.push(Event::Session {
                    id: message.str("session_id"),
                    version: message.str("claude_code_version"),
                    model: message.str("model"),
                });
                let known: Vec<String> = message.array("agents").into_iter().filter_map(text).collect();
                if self.mode.as_ref().is_some_and(|mode| !known.is_empty() && !known.contains(mode)) {
                    turn.events.push(Event::TurnOver(TurnOver::Failed(no_such_mode(known))));
                }
            }
            Some("api_retry") => {
                let status = message.count("error_status").and_then(|s| u16::try_from(s).ok());
                // A refused key stays refused: ten retries of it take three minutes.
                if matches!(status, Some(401 | 403)) {
                    turn.events.push(Event::TurnOver(TurnOver::Failed(errors::auth(status))));
                    return;
                }
                // The pieces of the broken answer are not valid any more: it is asked for again.
                self.withdraw_streams(turn);
                turn.events.push(Event::Retrying { text: errors::retrying(message, status) });
            }
            Some("permission_denied") => self.denied.extend(message.str("tool_use_id")),
            _ => {}
        }
    }

    fn withdraw_streams(&mut self, turn: &mut Turn) {
        let mut broken: Vec<Stream> = self.streams.drain().map(|(_, stream)| stream).collect();
        broken.sort_by(|a, b| a.key.cmp(&b.key));
        turn.events.extend(broken.into_iter().map(|stream| Event::Withdrawn { message: stream.key }));
    }

    fn assistant(&mut self, line: &Object<'_>, turn: &mut Turn) {
        if let Some(class) = line.str("error") {
            // The text of such a message is an error text with addresses in it; the result follows.
            self.api_error = Some(class);
            return;
        }
        let Some(message) = line.object("message") else { return };
        let parent = line.str("parent_tool_use_id");
        let id = message.str("id").unwrap_or_default();
        for block in message.objects("content") {
            match block.str("type").as_deref() {
                Some(kind @ ("text" | "thinking")) => {
                    if let Some(whole) = block.raw(kind) {
                        self.whole_block(&id, &parent, kind == "thinking", whole, turn);
                    }
                }
                Some("tool_use") => self.tool_use(&block, &parent, turn),
                _ => {}
            }
        }
    }

    /// A block that is whole now. What was streamed of it is not said again.
    fn whole_block(&mut self, id: &str, parent: &Option<String>, thinking: bool, whole: &RawValue, turn: &mut Turn) {
        let mut chunks = Chunks::new(whole.get());
        let streamed = self.streams.remove(parent);
        let (key, rest) = match streamed {
            Some(stream) if stream.message == id && stream.thinking == thinking => {
                match skip(&mut chunks, &stream.sent) {
                    Some(rest) => (stream.key, rest),
                    None => {
                        turn.events.push(Event::Withdrawn { message: stream.key });
                        chunks = Chunks::new(whole.get());
                        (self.next_block(id), String::new())
                    }
                }
            }
            _ if chunks.left() == 0 => return,
            _ => (self.next_block(id), String::new()),
        };
        let mut speech = Speech { key, parent: parent.clone(), thinking, line: String::new(), at: 0, end: 0 };
        if chunks.left() > LONG && self.long.is_empty() {
            turn.events.push(speech.event(rest, false));
            // The line itself is kept, once it is not borrowed any more: a copy would double the memory it takes.
            speech.at = chunks.remaining().as_ptr().addr() - self.line_address;
            speech.end = speech.at + chunks.left();
            self.long.push_back(speech);
            turn.more = true;
            return;
        }
        let whole = rest + &chunks.collect::<String>();
        turn.events.push(speech.event(whole, true));
    }

    fn next_block(&mut self, id: &str) -> String {
        let count = self.blocks.entry(id.to_owned()).or_default();
        *count += 1;
        format!("{id}/{count}")
    }

    fn stream_event(&mut self, line: &Object<'_>, turn: &mut Turn) {
        let Some(event) = line.object("event") else { return };
        let parent = line.str("parent_tool_use_id");
        match event.str("type").as_deref() {
            Some("message_start") => {
                let id = event.object("message").and_then(|m| m.str("id")).unwrap_or_default();
                self.streaming.insert(parent, id);
            }
            Some("content_block_stop") => {
                let whole = format!("{parent:?}/input");
                turn.events.push(Event::Partial { whole, piece: String::new(), done: true });
            }
            Some("content_block_delta") => {
                let Some(delta) = event.object("delta") else { return };
                if let Some(piece) = delta.str("partial_json") {
                    let whole = format!("{parent:?}/input");
                    return turn.events.push(Event::Partial { whole, piece, done: false });
                }
                let (thinking, piece) = match delta.str("type").as_deref() {
                    Some("text_delta") => (false, delta.str("text")),
                    Some("thinking_delta") => (true, delta.str("thinking")),
                    _ => return,
                };
                let Some(piece) = piece.filter(|piece| !piece.is_empty()) else { return };
                let id = self.streaming.get(&parent).cloned().unwrap_or_default();
                if !self.streams.contains_key(&parent) {
                    let key = self.next_block(&id);
                    let stream = Stream { message: id, key, thinking, sent: Fingerprint::default() };
                    self.streams.insert(parent.clone(), stream);
                }
                if let Some(stream) = self.streams.get_mut(&parent) {
                    stream.sent.push(&piece);
                    let speech =
                        Speech { key: stream.key.clone(), parent, thinking, line: String::new(), at: 0, end: 0 };
                    turn.events.push(speech.event(piece, false));
                }
            }
            _ => {}
        }
    }

    fn tool_use(&mut self, block: &Object<'_>, parent: &Option<String>, turn: &mut Turn) {
        let (Some(call), Some(name)) = (block.str("id"), block.str("name")) else { return };
        self.calls.insert(call.clone(), name.clone());
        let input = block.object("input");
        match name.as_str() {
            // These are questions and results, and come as such.
            "AskUserQuestion" | "StructuredOutput" | asking::TOOL => return,
            "TodoWrite" => return turn.events.extend(input.as_ref().map(plan)),
            // The request for leave, which follows, may come without the plan.
            "ExitPlanMode" => self.plan = input.as_ref().and_then(|input| input.str("plan")),
            _ => {}
        }
        turn.events.push(Event::Tool {
            call,
            category: tools::category(&name),
            title: tools::title(&name, input.as_ref()),
            locations: tools::locations(input.as_ref()),
            parent: parent.clone(),
        });
    }

    fn user(&mut self, line: &Object<'_>, turn: &mut Turn) {
        let Some(message) = line.object("message") else { return };
        let detail = line.object("tool_use_result");
        for block in message.objects("content").into_iter().filter(|block| block.is("type", "tool_result")) {
            let Some(call) = block.str("tool_use_id") else { continue };
            let name = self.calls.remove(&call).unwrap_or_default();
            let failed = block.bool("is_error") == Some(true);
            if let (false, Some(detail)) = (failed, &detail) {
                changed(&name, detail, turn);
            }
            if matches!(name.as_str(), "AskUserQuestion" | "StructuredOutput" | "TodoWrite" | asking::TOOL) {
                continue;
            }
            let state = match (self.denied.remove(&call), failed) {
                (true, _) => ToolState::Denied,
                (false, true) => ToolState::Failed,
                (false, false) => ToolState::Completed,
            };
            turn.events.push(Event::ToolOver {
                call,
                state,
                output: self.outputs.then(|| tools::output(&block)).flatten(),
            });
        }
    }

    fn control_request(&mut self, line: &Object<'_>, turn: &mut Turn) {
        let Some(id) = line.str("request_id") else { return turn.events.push(Event::Unparsed) };
        let Some(request) = line.object("request") else { return turn.send.push(refuse_request(&id)) };
        let subtype = request.str("subtype").unwrap_or_default();
        if subtype == "mcp_message" {
            return self.mcp_message(id, &request, turn);
        }
        let read = (subtype == "can_use_tool").then(|| ask::read(&request, self.plan.take())).flatten();
        let Some((pending, asks)) = read else { return turn.send.push(refuse_request(&id)) };
        if self.offers_asking && asking::is_own(&request) {
            let allowed = Reply::Answer(QuestionAnswer::One(ALLOW_ONCE.into()));
            return turn.send.push(respond(&id, &pending.respond(&[allowed]).0));
        }
        let key = AskKey(id);
        self.pending.insert(key.clone(), pending);
        turn.events.push(Event::Ask { key, asks });
    }

    /// What this run used so far. In a resumed session the sums over the process also hold what earlier runs of it
    /// used (seen with 2.1.330), so there the turns are added up, and the cost is not known.
    fn usage(&mut self, result: &Object<'_>) -> Usage {
        usage::add(&mut self.used, usage::of_turn(result));
        match usage::of_process(result).filter(|_| !self.resuming) {
            Some(usage) => usage,
            None => Usage { cost_usd: result.number("total_cost_usd").filter(|_| !self.resuming), ..self.used },
        }
    }

    fn final_answer(&self, result: &RawValue) -> Answer {
        Answer::collect(Chunks::new(result.get()), self.answer_bytes)
    }

    fn result(&mut self, message: &Object<'_>, turn: &mut Turn) {
        self.streams.clear();
        turn.events.push(Event::Usage(self.usage(message)));
        if message.bool("is_error") == Some(false) {
            turn.events.push(Event::TurnOver(TurnOver::Completed {
                answer: message.raw("result").map(|raw| self.final_answer(raw)).unwrap_or_default(),
                structured: message.raw("structured_output").map(ToOwned::to_owned),
                stop: match message.str("stop_reason").as_deref() {
                    None | Some("end_turn") => StopReason::EndTurn,
                    // A structured result is a tool call as far as the API knows.
                    Some("tool_use") if message.raw("structured_output").is_some() => StopReason::EndTurn,
                    Some("max_tokens") => StopReason::MaxTokens,
                    Some("refusal") => StopReason::Refusal,
                    Some(_) => StopReason::Other,
                },
            }));
            return;
        }
        let unknown_session = self.resuming && !self.session_known;
        let over = errors::classify(message, self.api_error.as_deref(), unknown_session);
        turn.events.push(Event::TurnOver(over));
    }
}

impl Driver for Claude {
    fn capabilities(&self) -> Capabilities {
        let real = Some(!self.is_recording());
        Capabilities {
            questions: match self.offers_asking {
                true => QuestionKind::ALL.to_vec(),
                false => vec![QuestionKind::Select, QuestionKind::Text],
            },
            resume: real,
            deltas: real,
            structured_output: real,
            usage: Some(true),
        }
    }

    fn takes_turns(&self) -> bool {
        !self.is_recording()
    }

    fn launch(&mut self, settings: &Settings, turn: &mut Turn) -> Result<Launch, Failure> {
        if self.is_recording() {
            if settings.session_id.is_some() {
                let message = "run.start: `session_id` cannot be given: this agent has no sessions to resume.";
                return Err(Failure::new(Code::InvalidRequest, message));
            }
            without_effect(settings, &[], turn);
        } else {
            self.mode.clone_from(&settings.mode);
            ask_user::warn_if_taken(settings, turn);
            self.offers_asking = ask_user::is_wanted(settings);
        }
        self.resuming = settings.session_id.is_some();
        self.answer_bytes = settings.max_frame_bytes.saturating_mul(limits::COMPLETED_FACTOR);
        self.outputs = settings.progress == Level::Full;
        self.raw_prompt = settings.raw_prompt;
        let server = self.offers_asking.then(asking::config);
        let args = launch::arguments(settings, settings.progress == Level::Full, server)?;
        Ok(Launch {
            env_remove: vec!["CLAUDECODE".into()],
            send: vec![user_line(&launch::guarded(&settings.prompt, settings.raw_prompt))],
            ..self.base.launch("claude", args, launch::environment(settings))
        })
    }

    fn line(&mut self, line: Line<'_>, turn: &mut Turn) {
        let Line::Text(text) = line else { return turn.events.push(Event::Unparsed) };
        let text = without_controls(text);
        if text.trim().is_empty() {
            return;
        }
        self.line_address = text.as_ptr().addr();
        let Some(message) = Object::parse(&text) else { return turn.events.push(Event::Unparsed) };
        self.message(&message, turn);
        drop(message);
        if let Some(speech) = self.long.back_mut().filter(|speech| speech.line.is_empty()) {
            speech.line = text.into_owned();
        }
    }

    fn more(&mut self, turn: &mut Turn) {
        let Some(mut speech) = self.long.pop_front() else { return };
        let mut chunks = Chunks::resume(speech.line.get(speech.at..speech.end).unwrap_or_default());
        let piece = chunks.next().unwrap_or_default();
        speech.at = speech.end - chunks.left();
        let done = speech.at == speech.end;
        turn.events.push(speech.event(piece, done));
        if !done {
            self.long.push_front(speech);
        }
        turn.more = !self.long.is_empty();
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], turn: &mut Turn) {
        if self.answer_call(key, replies, turn) {
            return;
        }
        let Some(pending) = self.pending.remove(key) else { return };
        let (response, denied) = pending.respond(replies);
        self.denied.extend(denied);
        turn.send.push(respond(&key.0, &response));
    }

    fn follow_up(&mut self, prompt: &str, turn: &mut Turn) {
        self.api_error = None;
        turn.send.push(user_line(&launch::guarded(prompt, self.raw_prompt)));
    }

    fn interrupt(&mut self, turn: &mut Turn) {
        self.control("interrupt", turn);
        self.withdraw_calls(turn);
    }

    fn finish(&mut self, turn: &mut Turn) {
        // end_session also ends what runs in the background; end of input alone waits for it.
        self.control("end_session", turn);
        turn.close_input = true;
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &str) -> TurnOver {
        TurnOver::Failed(errors::exited(exit, alive, stderr))
    }
}

fn line(value: &Value) -> String {
    crate::protocol::json::to_line(value)
}

fn user_line(prompt: &str) -> String {
    line(&json!({"type": "user", "message": {"role": "user", "content": prompt}}))
}

/// Our answer to Claude's request `id`; `response` is JSON.
fn respond(id: &str, response: &str) -> String {
    let id = crate::protocol::json::to_line(&id);
    format!(
        "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":{id},\"response\":{response}}}}}"
    )
}

fn refuse_request(id: &str) -> String {
    line(&json!({"type": "control_response",
        "response": {"subtype": "error", "request_id": id, "error": "This host does not serve this request."}}))
}

fn plan(input: &Object<'_>) -> Event {
    let entry = |todo: Object<'_>| {
        let status = match todo.str("status").as_deref() {
            Some("in_progress") => PlanStatus::InProgress,
            Some("completed") => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        };
        (todo.str("content").unwrap_or_default(), status)
    };
    Event::Plan(input.objects("todos").into_iter().map(entry).collect())
}

/// Write, Edit and NotebookEdit report the file that they changed.
fn changed(tool: &str, detail: &Object<'_>, turn: &mut Turn) {
    let path = match tool {
        "Write" | "Edit" | "MultiEdit" => detail.str("filePath"),
        "NotebookEdit" => detail.str("notebook_path").or_else(|| detail.str("filePath")),
        _ => None,
    };
    let action = if detail.is("type", "create") { Action::Created } else { Action::Modified };
    turn.events.extend(path.map(|path| Event::Changed { path: PathBuf::from(path), action }));
}

/// The text of a JSON value that is a string, else the value as it was written.
fn shown(raw: &RawValue) -> String {
    text(raw).unwrap_or_else(|| raw.get().to_owned())
}

/// The questions of one request.
type Asks = Vec<Ask>;

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

use self::ask::ClaudeRequest;
use self::errors::ApiError;
use self::speech::{QueuedBlock, StreamedBlock};
use super::json::{Object, Raw, without_controls};
use super::mcp;
use super::text::{Chunks, FinalAnswer};
use super::{AskKey, Base, Driver, Event, Launch, Line, Program, Reply, Turn, TurnOver};
use super::{ask_user, no_such_mode, without_effect};
use crate::failure::{Code, Failure};
use crate::protocol::limits;
use crate::protocol::outbound::{AgentExit, Capabilities, Usage};
use crate::protocol::request::Settings;
use crate::protocol::words::{Action, Level, PlanStatus, QuestionKind, StopReason, ToolState};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

/// The driver for Claude Code, and for a recording of it.
#[derive(Debug)]
pub struct Claude {
    base: Base,
    /// Requests of Claude's that wait for an answer. Several can be open at once.
    pending: BTreeMap<AskKey, ClaudeRequest>,
    /// What each tool call is, by its id.
    calls: HashMap<String, String>,
    /// Calls that were not allowed: their result is no failure of the tool.
    denied: HashSet<String>,
    /// How many blocks of a message were seen: a message id alone does not name a block.
    blocks: HashMap<String, u64>,
    /// The block that is being streamed, by the call whose sub-agent speaks.
    streams: HashMap<Option<String>, StreamedBlock>,
    /// The message that is being streamed, by the same.
    streaming: HashMap<Option<String>, String>,
    /// Blocks that are too long to be said at once.
    long: VecDeque<QueuedBlock>,
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
    api_error: Option<ApiError>,
    /// What the turns used so far.
    used: Usage,
    /// Control requests of ours so far.
    requests: u64,
    /// Whether the model is offered a tool of ours to ask with.
    offers_asking: bool,
    /// The server of that tool.
    server: mcp::Server,
    /// Its calls that wait for an answer, by the request that brought them.
    asked: BTreeMap<AskKey, mcp::RequestId>,
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
        let read = match message.str("type").as_deref() {
            Some("system") => self.system(message, turn),
            Some("assistant") => self.assistant(message, turn),
            Some("stream_event") => self.stream_event(message, turn),
            Some("user") => self.user(message, turn),
            Some("control_request") => self.control_request(message, turn),
            Some("control_cancel_request") => self.control_cancel_request(message, turn),
            Some("result") => self.result(message, turn),
            // Answers to our own requests, and what later versions add.
            Some(_) => Some(()),
            None => None,
        };
        if read.is_none() {
            turn.events.push(Event::Unparsed);
        }
    }

    // The functions that read a message return `None` if it lacks a part that its type needs. They use the rest of it.

    fn system(&mut self, message: &Object<'_>, turn: &mut Turn) -> Option<()> {
        match message.string("subtype")?.as_str() {
            "init" if !self.session_known => {
                let id = message.string("session_id").or_else(|| message.string("sessionId"))?;
                self.session_known = true;
                turn.events.push(Event::Session {
                    id: Some(id),
                    version: message.string("claude_code_version"),
                    model: message.string("model"),
                });
                let known: Vec<String> = message.array("agents").filter_map(Raw::string).collect();
                if self.mode.as_ref().is_some_and(|mode| !known.is_empty() && !known.contains(mode)) {
                    turn.events.push(Event::TurnOver(TurnOver::Failed(no_such_mode(known))));
                }
            }
            "api_retry" => {
                let status = message.count("error_status").and_then(|s| u16::try_from(s).ok());
                // A refused key stays refused: ten retries of it take three minutes.
                if matches!(status, Some(401 | 403)) {
                    turn.events.push(Event::TurnOver(TurnOver::Failed(errors::auth(status))));
                    return Some(());
                }
                // The pieces of the broken answer are not valid any more: it is asked for again.
                self.withdraw_streams(turn);
                turn.events.push(Event::Retrying { text: errors::retrying(message, status) });
            }
            "permission_denied" => self.denied.extend(message.string("tool_use_id")),
            _ => {}
        }
        Some(())
    }

    fn assistant(&mut self, line: &Object<'_>, turn: &mut Turn) -> Option<()> {
        if let Some(error) = errors::api_error(line) {
            // Claude Code writes this message itself. The result that follows usually repeats it.
            self.api_error = Some(error);
            return Some(());
        }
        let message = line.object("message")?;
        let parent = line.string("parent_tool_use_id");
        let id = message.string("id").unwrap_or_default();
        let mut read = Some(());
        for raw in message.list("content")? {
            let block = raw.object();
            read = read.and(block.and_then(|block| self.block(&id, &parent, &block, turn)));
        }
        read
    }

    fn block(&mut self, id: &str, parent: &Option<String>, block: &Object<'_>, turn: &mut Turn) -> Option<()> {
        match block.string("type")?.as_str() {
            kind @ ("text" | "thinking") => {
                let whole = block.raw(kind).filter(|raw| raw.is_string())?;
                self.whole_block(id, parent, kind == "thinking", whole, turn);
                Some(())
            }
            "tool_use" => self.tool_use(block, parent, turn),
            _ => Some(()),
        }
    }

    fn tool_use(&mut self, block: &Object<'_>, parent: &Option<String>, turn: &mut Turn) -> Option<()> {
        let (call, name) = (block.string("id")?, block.string("name")?);
        self.calls.insert(call.clone(), name.clone());
        let input = block.object("input");
        match name.as_str() {
            // These are questions and results, and come as such.
            "AskUserQuestion" | "StructuredOutput" | asking::TOOL => return Some(()),
            "TodoWrite" => {
                turn.events.extend(input.as_ref().map(plan));
                return Some(());
            }
            // The request for leave, which follows, may come without the plan.
            "ExitPlanMode" => self.plan = input.as_ref().and_then(|input| input.string("plan")),
            _ => {}
        }
        turn.events.push(Event::Tool {
            call,
            category: tools::category(&name),
            title: Some(tools::title(&name, input.as_ref())),
            locations: tools::locations(input.as_ref()),
            parent: parent.clone(),
        });
        Some(())
    }

    fn user(&mut self, line: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let message = line.object("message")?;
        // Text that Claude Code itself adds on the user's side.
        if message.string("content").is_some() {
            return Some(());
        }
        let detail = line.object("tool_use_result");
        let mut read = Some(());
        for raw in message.list("content")? {
            let block = raw.object();
            read = read.and(block.and_then(|block| match block.string("type")?.as_str() {
                "tool_result" => self.tool_result(&block, detail.as_ref(), turn),
                _ => Some(()),
            }));
        }
        read
    }

    fn tool_result(&mut self, block: &Object<'_>, detail: Option<&Object<'_>>, turn: &mut Turn) -> Option<()> {
        let call = block.string("tool_use_id")?;
        let name = self.calls.remove(&call).unwrap_or_default();
        let failed = block.bool("is_error") == Some(true);
        if let (false, Some(detail)) = (failed, detail) {
            changed(&name, detail, turn);
        }
        if matches!(name.as_str(), "AskUserQuestion" | "StructuredOutput" | "TodoWrite" | asking::TOOL) {
            return Some(());
        }
        let state = match (self.denied.remove(&call), failed) {
            (true, _) => ToolState::Denied,
            (false, true) => ToolState::Failed,
            (false, false) => ToolState::Completed,
        };
        let output = self.outputs.then(|| tools::output(block)).flatten();
        turn.events.push(Event::ToolOver { call, state, output });
        Some(())
    }

    /// Every request is answered, also one that cannot be read: Claude would wait for ever.
    fn control_request(&mut self, line: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let id = line.string("request_id")?;
        let request = line.object("request");
        let subtype = request.as_ref().and_then(|request| request.string("subtype"));
        let (Some(request), Some(subtype)) = (request, subtype) else {
            turn.send.push(refuse_request(&id));
            return None;
        };
        match subtype.as_str() {
            "mcp_message" => self.mcp_message(id, &request, turn),
            "can_use_tool" => return self.can_use_tool(id, &request, turn),
            _ => turn.send.push(refuse_request(&id)),
        }
        Some(())
    }

    fn can_use_tool(&mut self, id: String, request: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let Some((pending, asks)) = ask::read(request, self.plan.take()) else {
            turn.send.push(refuse_request(&id));
            return None;
        };
        if self.offers_asking && asking::is_own(request) {
            turn.send.push(respond(&id, &pending.respond(&[Reply::Allowed]).0));
            return Some(());
        }
        let key = AskKey(id);
        self.pending.insert(key.clone(), pending);
        turn.events.push(Event::Ask { key, asks });
        Some(())
    }

    fn control_cancel_request(&mut self, message: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let key = AskKey(message.string("request_id")?);
        if self.pending.remove(&key).is_some() || self.forget_call(&key) {
            turn.events.push(Event::AskWithdrawn { key });
        }
        Some(())
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

    fn final_answer(&self, result: Raw<'_>) -> FinalAnswer {
        FinalAnswer::collect(Chunks::new(result.get()), self.answer_bytes)
    }

    fn result(&mut self, message: &Object<'_>, turn: &mut Turn) -> Option<()> {
        let subtype = message.string("subtype");
        // `is_error` is the truth where it is there.
        let failed = match (message.bool("is_error"), &subtype) {
            (Some(failed), _) => failed,
            (None, Some(subtype)) => subtype.starts_with("error"),
            (None, None) => message.string("result").map(|_| false)?,
        };
        self.streams.clear();
        turn.events.push(Event::Usage(self.usage(message)));
        let over = if failed {
            let unknown_session = self.resuming && !self.session_known;
            errors::classify(message, self.api_error.take(), unknown_session)
        } else {
            self.completed(message)
        };
        turn.events.push(Event::TurnOver(over));
        Some(())
    }

    fn completed(&self, result: &Object<'_>) -> TurnOver {
        let structured = result.raw("structured_output");
        TurnOver::Completed {
            answer: result.raw("result").map(|raw| self.final_answer(raw)).unwrap_or_default(),
            structured: structured.map(|raw| raw.value().to_owned()),
            stop: match result.str("stop_reason").as_deref() {
                None | Some("end_turn") => StopReason::EndTurn,
                // A structured result is a tool call as far as the API knows.
                Some("tool_use") if structured.is_some() => StopReason::EndTurn,
                Some("max_tokens") => StopReason::MaxTokens,
                Some("refusal") => StopReason::Refusal,
                Some(_) => StopReason::Other,
            },
        }
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
        let said = self.api_error.take().and_then(|error| error.said);
        TurnOver::Failed(errors::exited(exit, alive, stderr).saying(said))
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
        (todo.string("content").unwrap_or_default(), status)
    };
    Event::Plan(input.objects("todos").map(entry).collect())
}

/// Write, Edit and NotebookEdit report the file that they changed.
fn changed(tool: &str, detail: &Object<'_>, turn: &mut Turn) {
    let path = match tool {
        "Write" | "Edit" | "MultiEdit" => detail.string("filePath"),
        "NotebookEdit" => detail.string("notebook_path").or_else(|| detail.string("filePath")),
        _ => None,
    };
    let action = if detail.is("type", "create") { Action::Created } else { Action::Modified };
    turn.events.extend(path.map(|path| Event::Changed { path: PathBuf::from(path), action }));
}

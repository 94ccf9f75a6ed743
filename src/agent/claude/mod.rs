//! Claude Code: stream-json both ways, with the control protocol for questions, permissions and interrupts.
//!
//! Facts (measured on 2.1.197 and 2.1.330): Claude writes nothing before the first user line; a `result` ends a turn,
//! not the process; `is_error` is reliable and `subtype` is not; each content block comes in an assistant line of its
//! own; Claude may ask permission for a tool before the line of the next tool of the same answer; several permissions
//! may be open at the same time; an unanswered control request hangs the turn, even one of an unknown kind.
//!
//! A request that the provider refuses with 400 is sent again, up to five times: without some of the beta features, and
//! then with all tools instead of those that a search would find. So a turn succeeds after at most five refusals
//! (2.1.330).

mod ask_user_mcp;
mod background;
mod can_use_tool;
mod content;
mod control;
mod errors;
mod launch;
mod native;
mod result;
mod speech;
mod steer;
mod stored;
#[cfg(test)]
mod tests;
mod tools;
mod usage;

pub(crate) use self::native::{NATIVE, STATE};

use self::background::BackgroundWork;
use self::can_use_tool::ClaudeRequest;
use self::errors::ApiError;
use self::speech::Blocks;
use self::steer::Steering;
use self::tools::Calls;
use self::usage::ModelCalls;
use super::limit::{Keeper, Limit};
use super::preference::Preference;
use super::prompt_text::commands;
use super::{
    AgentEvent, AskKey, Base, Driver, DriverOutput, Features, LEAVE, Launch, Line, Reply, ResultWay, TurnOver, Wants,
    ask_user, mcp, no_such_mode,
};
use crate::json::{Index, Object, Raw, is_blank};
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text, Usage};
use crate::protocol::request::Settings;
use crate::protocol::schema::Mismatch;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::QuestionKind;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Claude {
    base: Base,
    index: Index,
    pending: BTreeMap<AskKey, ClaudeRequest>,
    calls: Calls,
    speech: Blocks,
    /// The plan in the last call that asks to leave plan mode.
    plan: Option<String>,
    wants: Wants,
    session_known: bool,
    /// The requested agent of Claude Code, which silently ignores an unknown one.
    mode: Option<String>,
    resuming: bool,
    /// The cost of the resumed session before this run, in US dollars, if known.
    cost_before: Option<f64>,
    /// The API error in the last message that Claude wrote itself.
    api_error: Option<ApiError>,
    /// The end of the account's limit, once it is reached.
    resets_at: Option<UtcTime>,
    /// The mistakes in the last structured result that Claude refused.
    mismatches: Vec<Mismatch>,
    used: Usage,
    /// The tokens of the model's last call, with its answer.
    context: Option<u64>,
    /// The usage of the current turn so far, if `max_tokens` needs it before the turn's end.
    streamed: Option<Usage>,
    model_calls: ModelCalls,
    requests: u64,
    steering: Steering,
    work: BackgroundWork,
    names: ask_user_mcp::Names,
    server: mcp::Server,
    /// Calls of the tool that wait for an answer, by the control request that contained them.
    asked: BTreeMap<AskKey, mcp::RequestId>,
}

impl Claude {
    pub(crate) fn new(base: Base) -> Claude {
        Claude { base, server: mcp::Server::new(ask_user::TOOL), ..Claude::default() }
    }

    fn message(&mut self, message: &Object<'_>, out: &mut DriverOutput) {
        let read = match message.str("type").as_deref() {
            Some("assistant") => self.assistant(message, out),
            Some("stream_event") => {
                self.count_tokens(message, out);
                self.speech.stream_event(message, out)
            }
            Some("user") => self.user(message, out),
            Some("system") => self.system(message, out),
            Some("control_request") => self.control_request(message, out),
            Some("control_cancel_request") => self.control_cancel_request(message, out),
            Some("result") => self.result(message, out),
            Some("rate_limit_event") => self.rate_limit(message),
            Some("command_lifecycle") => {
                self.work.fired(message);
                self.steering.lifecycle(message, out)
            }
            // Responses to our own requests, and types that later versions add.
            Some(_) => Some(()),
            None => None,
        };
        if read.is_none() {
            out.unparsed();
        }
    }

    // The functions that read a message return `None` if it lacks a part that its type needs. They use the rest of it.

    fn system(&mut self, message: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        match &*message.str("subtype")? {
            "init" if !self.session_known => {
                let id = message.string("session_id").or_else(|| message.string("sessionId"))?;
                self.session_known = true;
                self.steering.opened(message);
                out.events.extend(message.objects("mcp_servers").filter_map(|server| self.names.server_state(&server)));
                out.events.push(AgentEvent::Session {
                    id: SessionId::new(id),
                    version: message.string("claude_code_version").map(Text::from),
                    model: message.string("model").map(Text::from),
                });
                if self.wants.commands {
                    let names = message.array("slash_commands").filter_map(Raw::string);
                    out.events.push(commands(names.map(|name| (name.into(), None, None))));
                }
                let known: Vec<String> = message.array("agents").filter_map(Raw::string).collect();
                if self.mode.as_ref().is_some_and(|mode| !known.is_empty() && !known.contains(mode)) {
                    out.fail(no_such_mode(known));
                }
            }
            "api_retry" => {
                let status = message.count("error_status").and_then(|s| u16::try_from(s).ok());
                // A refused key stays refused, and ten retries take three minutes.
                if matches!(status, Some(401 | 403)) {
                    out.fail(Failure::credentials_refused("Claude Code", errors::LOGIN, status));
                    return Some(());
                }
                // Claude requests the broken answer again, so the pieces received so far are no longer valid.
                self.speech.withdraw(out);
                out.events.push(AgentEvent::Retrying {
                    text: errors::retrying(message, status).into(),
                    retry_at: self.resets_at,
                });
            }
            "init" => {
                self.steering.turn_begins(out);
                self.work.none_due(out);
            }
            "background_tasks_changed" => self.work.changed(message, out),
            "task_notification" => self.work.ended(message),
            "session_state_changed" if message.is("state", "idle") => self.work.none_due(out),
            "permission_denied" => self.calls.deny(message.string("tool_use_id")),
            _ => {}
        }
        Some(())
    }
}

fn keeper(limit: Limit) -> Keeper {
    match limit {
        // Its own flag limits the calls of each turn, not those of the run.
        Limit::MaxTurns | Limit::MaxToolCalls | Limit::MaxTokens => Keeper::Run,
        Limit::MaxCostUsd | Limit::AllowedTools | Limit::DisallowedTools | Limit::McpServers | Limit::Permissions => {
            Keeper::Agent
        }
    }
}

impl Driver for Claude {
    fn held_bytes(&self) -> usize {
        self.speech.held_bytes()
    }

    fn features(&self, settings: &Settings) -> Features {
        let questions = match self.names.has_tool() {
            true => QuestionKind::ALL.to_vec(),
            false => vec![QuestionKind::Select, QuestionKind::Text],
        };
        let (steer, updated_input) = (self.steering.possible, Some(true));
        let capabilities = Capabilities { steer, updated_input, ..Capabilities::usual(questions) };
        Features {
            preferences: Preference::ALL.to_vec(),
            images: true,
            result_way: if launch::schema(settings).is_some() { ResultWay::Own } else { ResultWay::Text },
            leave_time: LEAVE + native::hook_time(&settings.own_rules),
            ..Features::usual(capabilities, keeper)
        }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        self.mode.clone_from(&settings.mode);
        ask_user::warn_if_taken(settings, out);
        if ask_user::is_wanted(settings) {
            self.names = ask_user_mcp::Names::new(settings);
        }
        self.steering = Steering::of_run(&settings.nonce);
        self.model_calls = ModelCalls::of_run(settings.max_turns.is_some());
        self.resuming = settings.session_id.is_some();
        self.cost_before = settings.session_cost_usd;
        self.wants = Wants::new(settings);
        let server = self.names.has_tool().then(|| self.names.config());
        // Only the events of a stream report the tokens before the end of the turn.
        self.streamed = settings.max_tokens.map(|_| Usage::default());
        let args = launch::arguments(settings, self.wants.full || self.streamed.is_some(), server)?;
        let prompt = launch::guarded(&settings.prompt, settings.raw_prompt);
        Ok(Launch {
            env_remove: vec!["CLAUDECODE".into()],
            send: vec![control::user_line(&prompt, &settings.attached, None)],
            images: settings.attached.clone(),
            files: launch::files(settings),
            ..self.base.launch("claude", args, launch::environment(settings))
        })
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let Line::Text(mut text) = line else { return out.unparsed() };
        if is_blank(&text) {
            return;
        }
        let mut index = std::mem::take(&mut self.index);
        match index.read(&mut text) {
            Some(message) => self.message(&message, out),
            None => out.unparsed(),
        }
        self.index = index;
        self.speech.take_line(text, out);
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        if self.answer_call(key, replies, out) {
            return;
        }
        let Some(pending) = self.pending.remove(key) else { return };
        let (response, denied) = pending.respond(replies);
        self.calls.deny(denied);
        out.send.push(control::respond(&key.0, &response));
    }

    fn take_commands(&mut self, raw: Option<bool>) {
        self.wants.take_commands(raw);
    }

    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) {
        self.api_error = None;
        let uuid = self.steering.follow_up(self.work.is_pending());
        out.send.push(control::user_line(&launch::guarded(prompt, self.wants.raw_prompt), images, uuid.as_deref()));
    }

    fn steer(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) -> bool {
        let Some(uuid) = self.steering.next() else { return false };
        out.send.push(control::user_line(&launch::guarded(prompt, self.wants.raw_prompt), images, Some(&uuid)));
        true
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        self.interrupt(out);
        true
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        // Otherwise Claude Code begins a turn for a prompt that waits.
        let cancels = self.steering.forget();
        self.work.interrupted(out);
        let request = if cancels {
            json!({"subtype": "interrupt", "cancel_queued": true})
        } else {
            json!({"subtype": "interrupt"})
        };
        self.control(&request, out);
        self.withdraw_calls(out);
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        // end_session also ends background work; closing stdin alone waits for it.
        self.control(&json!({"subtype": "end_session"}), out);
        out.close_input = true;
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        let said = self.api_error.take().and_then(|error| error.said);
        TurnOver::Failed(errors::exited(exit, alive, stderr).saying(said))
    }
}

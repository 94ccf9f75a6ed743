//! Codex over `codex app-server`: JSON-RPC both ways.
//!
//! Facts (measured on 0.169.0): only `turn/completed` ends a turn, and the exit code says nothing; Codex's request ids
//! start at 0 and are independent of ours; a file change's approval names no file; a broken stream leaves a
//! message without its end, and the retry starts a new one; `request_user_input_async` asks in a message, and its
//! turn may end with the question open; an interrupted turn leaves its commands running; an unanswered request
//! blocks the turn; stderr contains parts of keys.

mod ask;
mod errors;
mod items;
mod launch;
mod native;
mod script;
mod servers;
mod skills;
mod stored;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use self::native::NATIVE;

use self::ask::CodexRequest;
use self::items::{Items, Spot};
use self::launch::START;
use self::turns::OutlivingWork;
use super::limit::{Keeper, Limit};
use super::preference::{Preference, warn_of_ignored};
use super::recent::RecentMap;
use super::rpc::{self, Incoming};
use super::text::hash;
use super::{
    AgentEvent, AskKey, Base, CallKey, Driver, DriverOutput, Features, Launch, Line, Reply, ResultWay, TurnOver, Wants,
    header_variables,
};
use crate::json::{Index, Object};
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text, Usage};
use crate::protocol::request::Settings;
use crate::protocol::schema::OutputSchema;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{McpTransport, QuestionKind, Warning};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Default)]
pub(crate) struct Codex {
    base: Base,
    index: Index,
    settings: Option<Box<Settings>>,
    requests: BTreeMap<u64, &'static str>,
    asked: u64,
    version: Option<String>,
    thread: Option<String>,
    model: Option<String>,
    running: Option<String>,
    /// Requests from Codex that wait for an answer, each with its turn.
    pending: BTreeMap<AskKey, (String, CodexRequest)>,
    items: Items,
    background: OutlivingWork,
    /// The end of a turn, held back until an answer has been sent and Codex has accepted it.
    held: Option<(String, TurnOver)>,
    used: Usage,
    /// The last total of each thread, hashed, because Codex repeats them.
    totals: RecentMap<u64>,
    /// The last error message, for an exit without a result.
    said: Option<String>,
    /// The end of the account's limit, once it is reached.
    resets_at: Option<UtcTime>,
    /// Whether the agent was told to stop or leave.
    leaving: bool,
    /// Whether to stop the turn that was requested and has not begun.
    stops_next: bool,
    /// The prompt that waits for the list of skills.
    unsent: Option<skills::Calling>,
}

impl Codex {
    pub(crate) fn new(base: Base) -> Codex {
        Codex { base, ..Codex::default() }
    }

    fn request(&mut self, method: &'static str, params: &impl Serialize, out: &mut DriverOutput) {
        self.asked += 1;
        self.requests.insert(self.asked, method);
        out.send.push(rpc::request(self.asked, method, params));
    }

    /// Sends the user's message: as a new turn, or into the running one.
    fn say(&mut self, text: &str, images: &[Image], out: &mut DriverOutput) {
        self.send(launch::input(text, images), out);
    }

    fn send(&mut self, input: Value, out: &mut DriverOutput) {
        let settings = self.settings.as_ref();
        let params = launch::TurnStart {
            input,
            collaboration_mode: settings.and_then(|settings| launch::mode(settings, self.model.as_deref())),
            output_schema: settings.and_then(|settings| launch::schema(settings)).map(OutputSchema::of_objects),
            thread_id: self.thread.clone(),
        };
        self.request(START, &params, out);
    }

    fn stop_turn(&mut self, out: &mut DriverOutput) {
        if let Some(running) = self.running.clone() {
            self.request("turn/interrupt", &json!({"threadId": self.thread, "turnId": running}), out);
        }
    }

    /// Ends the commands of an interrupted turn, which would keep running.
    fn clean_terminals(&mut self, out: &mut DriverOutput) {
        self.request("thread/backgroundTerminals/clean", &json!({"threadId": self.thread}), out);
    }

    fn response(
        &mut self,
        method: &'static str,
        result: Result<Option<Object<'_>>, rpc::Error>,
        out: &mut DriverOutput,
    ) {
        let result = match result {
            Ok(result) => result,
            Err(error) => return self.refused(method, &error, out),
        };
        if self.leaving && method != START {
            return;
        }
        match method {
            "initialize" => {
                // "name/0.169.0 (system) …"
                let agent = result.and_then(|result| result.string("userAgent"));
                self.version = agent.and_then(|text| Some(text.split_once('/')?.1.split(' ').next()?.to_owned()));
                out.send.push(rpc::notification("initialized", None));
                self.request("account/read", &json!({"refreshToken": false}), out);
            }
            "account/read" => {
                let nobody = |account: &Object<'_>| {
                    account.raw("account").is_none() && account.bool("requiresOpenaiAuth") == Some(true)
                };
                if result.is_some_and(|account| nobody(&account)) {
                    return out.fail(Failure::not_logged_in("Codex", errors::LOGIN));
                }
                self.open_thread(out);
            }
            "thread/start" | "thread/resume" | "thread/fork" => self.thread_open(result, out),
            START => {
                let id = result.and_then(|result| result.object("turn")).and_then(|turn| turn.string("id"));
                self.turn_began(id, out);
            }
            skills::LIST => self.call_skill(result.as_ref(), out),
            _ => {}
        }
    }

    fn refused(&mut self, method: &'static str, error: &rpc::Error, out: &mut DriverOutput) {
        match method {
            // Older versions may lack it.
            "account/read" if !self.leaving => self.open_thread(out),
            "initialize" | "thread/start" | "thread/resume" | "thread/fork" | START => {
                let known = self.settings.as_ref().map(|settings| settings.mcp_servers.as_slice()).unwrap_or_default();
                out.events.extend(servers::failed(&error.message, known));
                out.fail(errors::refused(method, Some(error)));
            }
            // Older versions may lack it.
            skills::LIST if !self.leaving => self.call_skill(None, out),
            _ => {}
        }
    }

    fn open_thread(&mut self, out: &mut DriverOutput) {
        let Some(settings) = &self.settings else { return };
        let (method, params) = launch::thread(settings);
        self.request(method, &params, out);
    }

    fn thread_open(&mut self, result: Option<Object<'_>>, out: &mut DriverOutput) {
        let thread = result.as_ref().and_then(|result| result.object("thread"));
        let Some(id) = thread.as_ref().and_then(|thread| thread.string("id")) else {
            return out.fail(errors::refused("thread/start", None));
        };
        self.thread = Some(id.clone());
        self.model = result.as_ref().and_then(|result| result.string("model"));
        let version = self.version.take().or_else(|| thread.and_then(|thread| thread.string("cliVersion")));
        out.events.push(AgentEvent::Session {
            id: SessionId::new(id),
            version: version.map(Text::from),
            model: self.model.clone().map(Text::from),
        });
        let take = |settings: &mut Box<Settings>| {
            (std::mem::take(&mut settings.prompt), std::mem::take(&mut settings.attached))
        };
        let (prompt, images) = self.settings.as_mut().map(take).unwrap_or_default();
        self.prompt(&prompt, &images, out);
        if self.unsent.is_none() {
            self.list_skills(out);
        }
    }

    /// Handles a turn's id: of a new turn, of the running one, or of the one whose end is held back.
    fn turn_began(&mut self, id: Option<String>, out: &mut DriverOutput) {
        match self.held.take() {
            Some((held, over)) if Some(&held) == id.as_ref() => return self.end(held, over, out),
            _ => {}
        }
        if self.running != id {
            self.items.answer = None;
            self.running = id;
        }
        if self.leaving || std::mem::take(&mut self.stops_next) {
            self.stop_turn(out);
        }
    }

    fn is_own(&self, params: &Object<'_>) -> bool {
        params.str("threadId").is_none_or(|thread| Some(&*thread) == self.thread.as_deref())
    }

    fn spot<'a>(&self, params: &Object<'a>) -> Spot<'a> {
        let thread = params.str("threadId").filter(|thread| Some(&**thread) != self.thread.as_deref());
        let parent = thread.map(|thread| self.items.maker(&thread).unwrap_or_else(|| CallKey::of(&thread)));
        Spot { turn: params.str("turnId").unwrap_or_default(), parent }
    }

    /// `None`: a required field is missing.
    fn notification(&mut self, method: &str, params: Option<&Object<'_>>, out: &mut DriverOutput) -> Option<()> {
        match method {
            "item/started" | "item/completed" => {
                let params = params?;
                let item = params.object("item")?;
                let (spot, over) = (self.spot(params), method == "item/completed");
                if item.is("delivery", "async") {
                    self.asynchronous(&spot, &item, over, out);
                    return Some(());
                }
                self.background.item(&spot, &item, over, out);
                self.items.item(&spot, &item, over, out)
            }
            "item/agentMessage/delta" => self.items.piece(&self.spot(params?), params?, None, out),
            "item/reasoning/summaryTextDelta" => {
                self.items.piece(&self.spot(params?), params?, Some(items::SUMMARY), out)
            }
            "item/reasoning/textDelta" => self.items.piece(&self.spot(params?), params?, Some(items::CONTENT), out),
            "turn/plan/updated" => {
                let plan = items::plan(params?)?;
                out.events.extend(self.is_own(params?).then_some(plan));
                Some(())
            }
            "thread/tokenUsage/updated" => self.usage(params?, out),
            "error" => self.error(params?, out),
            "account/rateLimits/updated" => {
                self.resets_at = errors::resets_at(params?);
                Some(())
            }
            "serverRequest/resolved" => {
                let key = AskKey(params?.raw("requestId")?.get().to_owned());
                if self.pending.remove(&key).is_some() {
                    out.events.push(AgentEvent::AskWithdrawn { key });
                }
                Some(())
            }
            "mcpServer/startupStatus/updated" if self.is_own(params?) => {
                out.events.push(servers::state(params?)?);
                Some(())
            }
            "turn/started" | "turn/completed" if params.is_some_and(|params| !self.is_own(params)) => {
                let thread = params?.str("threadId")?;
                self.background.other_turn(&thread, method == "turn/completed", out);
                Some(())
            }
            "turn/started" => {
                params.and_then(|params| self.turn_started(params, out));
                Some(())
            }
            "thread/goal/updated" if self.is_own(params?) => self.background.goal(params?, out),
            "turn/completed" => self.turn_completed(params?, out),
            // Notifications that we do not pass on, and those of later versions.
            _ => Some(()),
        }
    }

    fn error(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let error = params.object("error")?;
        self.said = errors::said(&error);
        // The end of the turn reports a final error.
        if params.bool("willRetry") != Some(true) {
            return Some(());
        }
        if let Some(refused) = errors::no_use(Some(&error)) {
            out.fail(refused);
            return Some(());
        }
        self.items.withdraw(out);
        out.events.push(AgentEvent::Retrying { text: errors::retrying(Some(&error)).into(), retry_at: self.resets_at });
        Some(())
    }

    /// Codex continues and takes the answers as a further message.
    fn asynchronous(&mut self, spot: &Spot<'_>, item: &Object<'_>, over: bool, out: &mut DriverOutput) {
        let Some((pending, asks)) = ask::asynchronous(item).filter(|_| over) else { return };
        let key = AskKey(format!("{}/{}", spot.turn, item.string("id").unwrap_or_default()));
        self.pending.insert(key.clone(), (spot.turn.to_string(), pending));
        out.events.push(AgentEvent::Ask { key, asks, call: None });
    }

    fn served(&mut self, id: &str, method: &str, params: Option<&Object<'_>>, out: &mut DriverOutput) {
        if method == "item/permissions/requestApproval" {
            // A request for more permissions for a whole turn. No tool call needs them, so we grant none.
            return out.send.push(rpc::result(id, &json!({"permissions": {}, "scope": "turn"})));
        }
        let spot = params.map(|params| self.spot(params));
        let cwd = self.settings.as_ref().map(|settings| settings.cwd.as_path()).unwrap_or(Path::new(""));
        let read = |(params, spot)| ask::read(method, params, spot, &self.items, cwd);
        let asked = params.zip(spot.as_ref()).and_then(read);
        match (asked, spot) {
            (Some((pending @ CodexRequest::Unclear(_), _)), _) => out.send.push(rpc::result(id, &pending.respond(&[]))),
            (Some((pending, asks)), Some(spot)) => {
                let key = AskKey(id.to_owned());
                let item = params.and_then(|params| params.str("itemId"));
                let call = item.map(|item| CallKey::of(&spot.key(&item)));
                self.pending.insert(key.clone(), (spot.turn.to_string(), pending));
                out.events.push(AgentEvent::Ask { key, asks, call });
            }
            _ => {
                let text = "This host does not serve this request.";
                out.send.push(rpc::error(id, rpc::METHOD_NOT_FOUND, text));
                out.events.extend(ask::is_known(method).then_some(AgentEvent::Unparsed));
            }
        }
    }

    /// Sums the responses, because the thread's total also counts earlier runs.
    fn usage(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let usage = params.object("tokenUsage")?;
        let (last, total) = (usage.object("last")?, usage.raw("total")?);
        // A resumed thread also reports the usage of its past turns.
        if self.is_own(params) && params.str("turnId").as_deref() != self.running.as_deref() {
            return Some(());
        }
        let thread = params.str("threadId").unwrap_or_default();
        let new = hash(total.get());
        if self.totals.get(&thread) == Some(&new) {
            return Some(());
        }
        self.totals.insert(&thread, new);
        let sum = |old: Option<u64>, name: &str| match (old, last.count(name)) {
            (Some(old), Some(more)) => Some(old.saturating_add(more)),
            (old, more) => old.or(more),
        };
        self.used = Usage {
            input_tokens: sum(self.used.input_tokens, "inputTokens"),
            output_tokens: sum(self.used.output_tokens, "outputTokens"),
            cached_input_tokens: sum(self.used.cached_input_tokens, "cachedInputTokens"),
            cost_usd: None,
            context_tokens: last.count("totalTokens").filter(|_| self.is_own(params)).or(self.used.context_tokens),
            context_window: usage.count("modelContextWindow").or(self.used.context_window),
        };
        // One notification for each response of the model.
        out.events.extend([AgentEvent::ModelCalled, AgentEvent::Usage(self.used)]);
        Some(())
    }
}

fn keeper(limit: Limit) -> Keeper {
    match limit {
        // Codex has no limits of its own, and reports no cost.
        Limit::MaxTurns | Limit::MaxToolCalls | Limit::MaxTokens | Limit::AllowedTools | Limit::DisallowedTools => {
            Keeper::Run
        }
        Limit::MaxCostUsd => Keeper::Nobody,
        Limit::McpServers | Limit::Permissions => Keeper::Agent,
    }
}

impl Driver for Codex {
    fn held_bytes(&self) -> usize {
        self.items.held_bytes()
    }

    fn features(&self, settings: &Settings) -> Features {
        let capabilities = Capabilities { steer: Some(true), ..Capabilities::usual(QuestionKind::ALL.to_vec()) };
        Features {
            preferences: Preference::ALL.iter().copied().filter(|one| *one != Preference::Background).collect(),
            transports: &[McpTransport::Http],
            images: true,
            result_way: if launch::schema(settings).is_some() { ResultWay::Own } else { ResultWay::Text },
            stderr_is_fit: false,
            ..Features::usual(capabilities, keeper)
        }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        warn_of_ignored(settings, self, out);
        let effect = launch::confinement(settings).effect();
        out.events.extend(effect.map(|text| AgentEvent::Warning(Warning::SandboxPartial, text.into())));
        self.items.wants = Wants::new(settings);
        let args = launch::arguments(settings)?;
        let env = header_variables::environment(&settings.mcp_servers);
        self.settings = Some(Box::new(settings.clone()));
        let mut first = DriverOutput::default();
        self.request("initialize", &launch::initialize(settings.progress), &mut first);
        Ok(Launch { send: first.send, ..self.base.launch("codex", args, env) })
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let mut index = std::mem::take(&mut self.index);
        rpc::line(&mut index, line, out, |message, out| match message {
            Incoming::Request { id, method, params } => self.served(id, &method, params.as_ref(), out),
            Incoming::Notification { method, params } => {
                if self.notification(&method, params.as_ref(), out).is_none() {
                    out.unparsed();
                }
            }
            Incoming::Response { id, result } => {
                if let Some(method) = self.requests.remove(&id) {
                    self.response(method, result, out);
                }
            }
        });
        self.index = index;
    }

    fn is_opening(&self) -> bool {
        self.thread.is_none()
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        let Some((_, pending)) = self.pending.remove(key) else { return };
        if let CodexRequest::Async(_) = pending {
            if let Some(text) = pending.message(replies).filter(|_| !self.leaving) {
                self.say(&text, &[], out);
            }
            return;
        }
        pending.denied_server(replies).iter().for_each(|server| self.items.denied.add(server));
        out.send.push(rpc::result(&key.0, &pending.respond(replies)));
    }

    fn take_commands(&mut self, raw: Option<bool>) {
        self.items.wants.take_commands(raw);
    }

    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) {
        self.prompt(prompt, images, out);
    }

    /// A turn that begins while another one runs is added to that one.
    fn steer(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) -> bool {
        let runs = self.running.is_some();
        if runs {
            self.prompt(prompt, images, out);
        }
        runs
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        if self.held.take().is_some() {
            // Codex has ended the turn, and only a question in a message is open.
            self.pending.retain(|_, (_, pending)| !matches!(pending, CodexRequest::Async(_)));
            out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
            return true;
        }
        let runs = self.running.is_some();
        if self.unsent.take().is_some() && !runs {
            out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
            return true;
        }
        let starts = self.requests.values().any(|method| *method == START);
        if runs {
            self.stop_turn(out);
            self.clean_terminals(out);
        }
        self.stops_next = starts && !runs;
        runs || starts
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        self.leaving = true;
        let starting = self.requests.values().any(|method| *method == START);
        if self.running.is_none() && !starting {
            // No turn is running, so no end of a turn will be reported.
            return out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
        }
        self.stop_turn(out);
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        self.leaving = true;
        if self.thread.is_some() {
            self.clean_terminals(out);
        }
        out.close_input = true;
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, _stderr: &Text) -> TurnOver {
        TurnOver::Failed(errors::exited(exit, self.thread.is_some(), alive).saying(self.said.take()))
    }
}

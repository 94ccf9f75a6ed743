//! pi over `pi --mode rpc`: commands, their responses, and events.
//!
//! Facts (measured on 1.6.0): pi asks for nothing, so an extension of ours asks before each call of a tool, by a dialog
//! whose title is the name of the run's server. Only `agent_settled` ends a turn: a retry, a compaction or a queued prompt
//! may follow `agent_end`. A prompt's response precedes its turn. `abort` waits for an open dialog. No flag of pi's own takes
//! its value after `=`. An unknown model or session ends the process, with a line on stderr.

mod calls;
mod events;
mod launch;
mod native;
#[cfg(test)]
mod tests;

pub(crate) use self::native::{ENDPOINT, NATIVE};

use self::calls::{ALLOWED, GateRequest, PiRequest, cancelled, question, respond};
use self::events::{Block, failed, is_broken, server_states};
use super::limit::{Keeper, Limit};
use super::preference::{Preference, no_effect, warn_of_ignored};
use super::prompt_text::{Commands, without_command};
use super::provider::{self, Evidence, ProviderAccount};
use super::recent::RecentMap;
use super::text::FinalAnswer;
use super::{
    AgentEvent, AskKey, Base, CallKey, Driver, DriverOutput, Features, Launch, Line, Reply, ResultWay, TurnOver, Wants,
    ask_user, error_text, header_variables, npx, takes_no_images,
};
use crate::json::{Index, Object, Raw, is_blank, to_line};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::field;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text, Usage};
use crate::protocol::question::one;
use crate::protocol::request::Settings;
use crate::protocol::words::{Action, McpTransport, OnUnsupported, QuestionKind, StopReason, TurnOrigin, Warning};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NAME: &str = "pi";
const ACCOUNT: ProviderAccount = ProviderAccount { agent: NAME, login: native::LOGIN };

/// The expected message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Opening,
    /// None: the MCP servers must run first.
    AwaitingServers,
    Prompting,
    /// None: the turn is over, and another may start.
    Idle,
}

#[derive(Debug, Default)]
pub(crate) struct Pi {
    base: Base,
    index: Index,
    settings: Option<Box<Settings>>,
    wants: Wants,
    phase: Phase,
    /// The name under which our extension speaks, and of our server.
    name: String,
    own_tools: Vec<String>,
    /// The version, once our extension has reported that it runs.
    extension: Option<String>,
    commands: Commands,
    /// `None`: not known yet.
    takes_images: Option<bool>,
    is_priced: bool,
    /// The prompts without a response.
    unheard: u32,
    works: bool,
    cancelling: bool,
    /// The end of a turn, held back until pi has heard the prompts that it may have missed.
    held: Option<TurnOver>,
    pending: BTreeMap<AskKey, PiRequest>,
    denied: RecentMap<()>,
    /// The files of the open calls that change one, each with its change.
    changes: RecentMap<(Text, Action)>,
    block: Option<Block>,
    messages: u64,
    answer: FinalAnswer,
    stop: Option<StopReason>,
    /// The error of the last call of the model.
    failed: Option<String>,
    /// The end of that call, in seconds since 1970.
    ended_at: Option<f64>,
    used: Usage,
}

impl Pi {
    pub(crate) fn new(base: Base) -> Pi {
        Pi { base, ..Pi::default() }
    }

    fn prompt(&mut self, text: &str, images: &[Image], out: &mut DriverOutput) {
        if !self.works {
            (self.answer, self.failed, self.cancelling) = (FinalAnswer::default(), None, false);
        }
        if self.wants.raw_prompt {
            self.commands.call(text, out);
        }
        let text = if self.wants.raw_prompt { text.into() } else { without_command(text) };
        let image = |one: &Image| json!({"type": "image", "mimeType": one.media_type, "data": one.label()});
        let images: Vec<Value> = images.iter().map(image).collect();
        (self.phase, self.unheard) = (Phase::Prompting, self.unheard + 1);
        out.send
            .push(to_line(&json!({"type": "prompt", "message": text, "images": images, "streamingBehavior": "steer"})));
    }

    fn first_prompt(&mut self, out: &mut DriverOutput) {
        let Some(settings) = self.settings.as_deref_mut() else { return };
        let (prompt, images) = (std::mem::take(&mut settings.prompt), std::mem::take(&mut settings.attached));
        self.prompt(&prompt, &images, out);
    }

    fn response(&mut self, response: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let failure = (response.bool("success") != Some(true)).then(|| response.string("error").unwrap_or_default());
        let data = response.object("data");
        match (&*response.str("command")?, failure) {
            ("get_state", None) => {
                if let Err(failure) = self.opened(&data?, out) {
                    out.fail(failure);
                }
            }
            ("get_state", Some(said)) => out.fail(failed(&said)),
            ("get_commands", None) => self.commands.list(&data?, "commands", out),
            ("prompt", failure) => {
                self.unheard = self.unheard.saturating_sub(1);
                let is_started = data.is_some_and(|data| data.is("disposition", "started"));
                self.heard(failure, is_started, out);
            }
            ("abort", _) if self.cancelling && !self.works && self.unheard == 0 && self.phase == Phase::Prompting => {
                self.end(TurnOver::Interrupted, out);
            }
            _ => {}
        }
        Some(())
    }

    fn heard(&mut self, failure: Option<String>, is_started: bool, out: &mut DriverOutput) {
        if is_started {
            self.held = None;
            out.send.extend(self.cancelling.then(|| command("abort")));
            return;
        }
        // pi may have queued it after it cleared the queue, and would add it to the next prompt.
        out.send.extend((self.cancelling && failure.is_none()).then(|| command("clear_queue")));
        let goes_on = self.works || self.unheard > 0;
        if failure.is_some() && (goes_on || self.held.is_some()) {
            out.events
                .push(AgentEvent::Warning(Warning::PromptRefused, "A prompt was ignored: pi did not take it".into()));
        }
        if !goes_on {
            let over = match (self.held.take(), failure) {
                (Some(over), _) => over,
                (None, Some(said)) => TurnOver::Failed(failed(&said)),
                // An extension served the prompt without the model.
                (None, None) => TurnOver::completed(std::mem::take(&mut self.answer)),
            };
            self.end(over, out);
        }
    }

    fn opened(&mut self, state: &Object<'_>, out: &mut DriverOutput) -> Result<(), Failure> {
        let Some((settings, version)) = self.settings.as_deref().zip(self.extension.clone()) else {
            let message = "pi does not load the extension that asks for permission: run it by hand to see why.";
            return Err(Failure::new(Code::AgentStartFailed, message));
        };
        let id = state.string("sessionId").and_then(SessionId::new);
        // pi also takes the beginning of an id.
        if settings.session_id.is_some() && !settings.fork && settings.session_id != id {
            return Err(Failure::session_not_found(NAME));
        }
        let model = state.object("model");
        let prices = model.as_ref().and_then(|model| model.object("cost"));
        self.is_priced =
            prices.is_some_and(|prices| ["input", "output"].iter().any(|of| prices.number(of) > Some(0.0)));
        // pi leaves images out for a model that takes none, without a word.
        self.takes_images = model
            .as_ref()
            .filter(|model| model.list("input").is_some())
            .map(|model| model.array("input").any(|input| input.str().is_some_and(|input| input == "image")));
        if !settings.attached.is_empty() && self.takes_images == Some(false) {
            return Err(takes_no_images(NAME));
        }
        if Limit::MaxCostUsd.is_set(settings) && !self.is_priced {
            let is_wish = settings.on_unsupported == OnUnsupported::Warn;
            let why = "its configuration has no price for this model";
            Limit::MaxCostUsd.give_up(&settings.agent, is_wish, why, out)?;
        }
        if settings.effort.as_deref().is_some_and(|effort| !state.is("thinkingLevel", effort)) {
            out.warn(no_effect(field!(effort)));
        }
        self.used.context_window = model.as_ref().and_then(|model| model.count("contextWindow"));
        let name = model.and_then(|model| Some(format!("{}/{}", model.str("provider")?, model.str("id")?)));
        let version = Some(version).filter(|version| !version.is_empty()).map(Text::from);
        out.events.push(AgentEvent::Session { id, version, model: name.map(Text::from) });
        if self.wants.commands || self.wants.raw_prompt {
            out.send.push(command("get_commands"));
        }
        if settings.mcp_servers.iter().any(|server| server.launcher.is_some()) {
            self.phase = Phase::AwaitingServers;
            out.events.push(AgentEvent::AwaitsServers);
        } else {
            self.first_prompt(out);
        }
        Ok(())
    }

    /// `None`: a required field is missing.
    fn event(&mut self, kind: &str, event: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        match kind {
            "response" => return self.response(event, out),
            "extension_ui_request" => return self.asked(event, out),
            "message_update" => return self.piece(&event.object("assistantMessageEvent")?, out),
            "message_end" => self.message(&event.object("message")?, out),
            "agent_start" => {
                self.works = true;
                if self.phase == Phase::Idle {
                    self.phase = Phase::Prompting;
                    out.events.push(AgentEvent::TurnBegan(TurnOrigin::Agent));
                }
            }
            "tool_execution_start" | "tool_execution_end" if self.is_own(&event.str("toolName")?) => {}
            "tool_execution_start" => return self.tool(event, out),
            "tool_execution_end" => return self.tool_over(event, out),
            "turn_end" => {
                let is_answer = event.object("message").is_some_and(|message| !is_broken(&message));
                out.events.extend(is_answer.then_some(AgentEvent::ModelCalled));
            }
            "compaction_end" => {
                let used = event.object("result").and_then(|result| result.object("usage"));
                used.iter().for_each(|used| self.count(used, out));
            }
            "auto_retry_start" => self.retries(event, out),
            "agent_settled" => self.settled(event.bool("aborted") == Some(true), out),
            // Events that we do not pass on, and those of later versions.
            _ => {}
        }
        Some(())
    }

    /// Whether this is pi's name for a tool of ours, which asks for itself.
    fn is_own(&self, tool: &str) -> bool {
        self.own_tools.iter().any(|own| own == tool)
    }

    fn asked(&mut self, request: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let (id, method) = (request.string("id")?, request.str("method")?);
        let text = |name: &str| request.string(name).unwrap_or_default();
        let (pending, ask, call) = match &*method {
            "setStatus" if request.is("statusKey", &self.name) => {
                self.extension = Some(text("statusText"));
                return Some(());
            }
            "input" if request.is("title", &self.name) => {
                let Some(gate) = GateRequest::read(request) else {
                    out.send.push(cancelled(&id));
                    return None;
                };
                if let Some((_, action)) = self.changes.get_mut(&gate.call).filter(|_| gate.creates) {
                    *action = Action::Created;
                }
                let Some(ask) = gate.ask.filter(|_| !self.cancelling && !self.is_own(&gate.tool)) else {
                    let is_allowed = self.is_own(&gate.tool);
                    out.send.push(if is_allowed { respond(&id, "value", json!(ALLOWED)) } else { cancelled(&id) });
                    return Some(());
                };
                let call = CallKey::of(&gate.call);
                (PiRequest::Permission(gate.call), ask, Some(call))
            }
            method => {
                let asked = question(method, request);
                let Some((pending, ask)) = asked.filter(|_| !self.cancelling) else {
                    match method {
                        // The turn is being stopped, or the choice has no option.
                        "confirm" | "input" | "editor" | "select" => out.send.push(cancelled(&id)),
                        _ => server_states(&text("message"), out),
                    }
                    return Some(());
                };
                (pending, ask, None)
            }
        };
        self.pending.insert(AskKey(id.clone()), pending);
        out.events.push(AgentEvent::Ask { key: AskKey(id), asks: one(ask), call });
        Some(())
    }

    fn end(&mut self, over: TurnOver, out: &mut DriverOutput) {
        self.phase = Phase::Idle;
        let gone = std::mem::take(&mut self.pending);
        out.events.extend(gone.into_keys().map(|key| AgentEvent::AskWithdrawn { key }));
        out.events.push(AgentEvent::TurnOver(over));
    }
}

fn command(name: &str) -> String {
    to_line(&json!({"type": name}))
}

fn keeper(limit: Limit) -> Keeper {
    match limit {
        // pi has no limits of its own.
        Limit::MaxTurns | Limit::MaxToolCalls | Limit::MaxTokens | Limit::MaxCostUsd => Keeper::Run,
        // Our extension denies what is excluded, and asks before the rest.
        Limit::AllowedTools | Limit::DisallowedTools | Limit::McpServers | Limit::Permissions => Keeper::Agent,
    }
}

impl Driver for Pi {
    fn features(&self, settings: &Settings) -> Features {
        let (questions, yes) = (QuestionKind::ALL.to_vec(), Some(true));
        let capabilities = Capabilities { steer: yes, updated_input: yes, ..Capabilities::usual(questions) };
        let ignored = [Preference::Mode, Preference::Background];
        Features {
            preferences: Preference::ALL.iter().copied().filter(|one| !ignored.contains(one)).collect(),
            transports: &[McpTransport::Http],
            images: self.takes_images != Some(false),
            ask_tool: ask_user::is_wanted(settings).then_some(ask_user::TOOL),
            result_way: ResultWay::by_tool(settings),
            ..Features::usual(capabilities, keeper)
        }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        warn_of_ignored(settings, self, out);
        ask_user::warn_if_taken(settings, out);
        if settings.session_id.as_ref().is_some_and(|id| !super::native::is_session_id(id)) {
            return Err(Failure::session_not_found(NAME));
        }
        let args = launch::arguments(settings)?;
        self.name = ask_user::server_name(settings);
        self.own_tools = launch::own_tools(settings, &self.name);
        self.wants = Wants::new(settings);
        self.commands.reports = self.wants.commands;
        self.settings = Some(Box::new(settings.clone()));
        Ok(Launch {
            // A replay finds the name in its id.
            send: vec![to_line(&json!({"id": self.name, "type": "get_state"}))],
            images: settings.attached.clone(),
            files: vec![launch::extension(settings, &self.name, &self.own_tools)?],
            ..self.base.launch(NAME, args, header_variables::environment(&settings.mcp_servers))
        })
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let Line::Text(mut text) = line else { return out.unparsed() };
        if is_blank(&text) {
            return;
        }
        if self.phase == Phase::Opening && text.starts_with("Session found in different project") {
            return out.fail(Failure::session_not_found(NAME));
        }
        let mut index = std::mem::take(&mut self.index);
        let object = index.read(&mut text);
        let read = object.and_then(|event| self.event(&event.raw("type").and_then(Raw::str)?, &event, out));
        if read.is_none() {
            out.unparsed();
        }
        self.index = index;
    }

    fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        let Some(pending) = self.pending.remove(key) else { return };
        let is_allowed = matches!(replies.first(), Some(Reply::Allowed | Reply::AllowedWith(_)));
        if let PiRequest::Permission(call) = &pending
            && !is_allowed
        {
            self.denied.insert(call, ());
        }
        out.send.push(pending.respond(&key.0, replies));
    }

    fn take_commands(&mut self, raw: Option<bool>) {
        self.wants.take_commands(raw);
    }

    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) {
        self.prompt(prompt, images, out);
    }

    fn steer(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) -> bool {
        let runs = self.phase == Phase::Prompting && !self.cancelling;
        if runs {
            self.prompt(prompt, images, out);
        }
        runs
    }

    fn send_held(&mut self, out: &mut DriverOutput) {
        if self.phase == Phase::AwaitingServers {
            self.first_prompt(out);
        }
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        self.cancelling = self.phase == Phase::Prompting;
        if self.cancelling {
            out.send.extend(self.pending.keys().map(|key| cancelled(&key.0)));
            out.send.extend([command("clear_queue"), command("abort")]);
        }
        self.cancelling
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        if !self.interrupt_turn(out) {
            out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
        }
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        out.close_input = true;
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        let said = stderr.unredacted();
        let resumes = self.settings.as_ref().is_some_and(|settings| settings.session_id.is_some());
        let is_unknown = resumes && said.contains("No session found");
        let evidence = Evidence { text: said, ..Evidence::default() };
        let failure = match npx::failure(&self.base, stderr).filter(|_| !alive) {
            Some(failure) => failure,
            None if self.phase != Phase::Opening || exit.signal.is_some() => Failure::exited(NAME),
            None if is_unknown => Failure::session_not_found(NAME),
            None => provider::known(ACCOUNT, &evidence).unwrap_or_else(|| {
                let message = "pi exited before its session was open: run it by hand to see why.";
                Failure::new(Code::AgentStartFailed, message)
            }),
        };
        TurnOver::Failed(failure.saying(error_text::error(said)))
    }
}

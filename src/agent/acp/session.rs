//! The requests to the agent, from the handshake to the prompt, and their order.

use super::ask::Denial;
use super::modes::{AskLevel, ModeChoice, Modes, Setter, model_choice};
use super::profile::{HiddenFailure, Profile, ServerWay};
use super::{Acp, AskLink, errors, steps};
use crate::agent::limit::Limit;
use crate::agent::preference::no_effect;
use crate::agent::reply::NO_USER;
use crate::agent::rpc::{self, Error};
use crate::agent::{AgentEvent, DriverOutput, TurnOver, no_such_mode};
use crate::json::Object;
use crate::protocol::failure::Failure;
use crate::protocol::fields::field;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{Text, Usage};
use crate::protocol::request::{McpServer, Permissions, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::words::{Category, OnUnsupported, Policy, StopReason};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The expected message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Initializing,
    Opening,
    /// The end of the replay of a loaded session; whether a part of the replay came since we last asked.
    Replaying(bool),
    /// The response that sets a mode; whether `mode` names it.
    ChoosingMode(bool),
    ChoosingModel,
    /// No message: the MCP servers must run first.
    AwaitingServers,
    Prompting,
    /// No message is expected: the turn is over, and another may start.
    Idle,
    /// No message is expected: the session is over.
    Over,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionAbilities {
    pub(super) resumes: bool,
    pub(super) loads: bool,
    pub(super) forks: bool,
}

#[derive(Debug, Default)]
pub(super) struct SessionSetup {
    pub(super) prompt: String,
    pub(super) images: Vec<Image>,
    pub(super) agent: String,
    pub(super) resume: Option<SessionId>,
    pub(super) fork: bool,
    pub(super) abilities: SessionAbilities,
    mode: Option<String>,
    is_wished: bool,
    /// The first are those that `mode` selects.
    modes: Vec<Modes>,
    /// The modes to set, and whether somebody wished for each.
    changes: VecDeque<(Setter, Value, bool)>,
    permissions: Permissions,
    model: Option<String>,
    shown_model: Option<String>,
    pub(super) servers: Vec<McpServer>,
    /// Whether the first prompt waits for servers, of which the agent says nothing.
    pub(super) awaits_servers: bool,
    pub(super) warns: bool,
    is_kept: bool,
    pub(super) server_names: Vec<String>,
    pub(super) replays: bool,
    set_model: Setter,
}

impl SessionSetup {
    /// `prompted`: the agent gets the system prompt by another way. ACP has none.
    pub(super) fn new(settings: &Settings, profile: &Profile, prompted: bool) -> SessionSetup {
        let takes = profile.servers != ServerWay::Nowhere;
        let servers = || settings.mcp_servers.iter().chain(&settings.ask_server).filter(|_| takes);
        let system = settings.system_prompt.as_ref().filter(|text| !prompted && !text.is_empty());
        SessionSetup {
            prompt: match system {
                Some(system) => format!("{system}\n\n{}", settings.prompt),
                None => settings.prompt.clone(),
            },
            images: settings.attached.clone(),
            agent: settings.agent.clone(),
            resume: settings.session_id.clone(),
            fork: settings.fork,
            mode: settings.mode.clone(),
            is_wished: settings.mode.is_some(),
            model: settings.model.clone().filter(|_| profile.model_flag.is_none()),
            servers: servers().cloned().collect(),
            awaits_servers: takes && settings.mcp_servers.iter().any(|server| server.launcher.is_some()),
            warns: settings.on_unsupported == OnUnsupported::Warn,
            is_kept: settings.sandbox.keeps(&settings.permissions),
            permissions: settings.permissions.clone(),
            server_names: servers().map(|server| server.name.clone()).collect(),
            ..SessionSetup::default()
        }
    }
}

/// The maximum number of times that we tell an agent to continue after a denial.
const DENIALS: u32 = 3;

impl Acp {
    pub(super) fn request(&mut self, method: &str, params: &Value, out: &mut DriverOutput) {
        self.requests += 1;
        self.waiting = self.requests;
        out.send.push(rpc::request(self.requests, method, params));
    }

    pub(super) fn initialize(&mut self, out: &mut DriverOutput) {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "elicitation": {"form": {}},
            },
            // The protocol's version, so that recordings do not depend on a release.
            "clientInfo": {"name": "spektacular", "title": "spektacular", "version": "1"},
        });
        self.request("initialize", &params, out);
    }

    pub(super) fn response(&mut self, result: Result<Option<Object<'_>>, Error>, out: &mut DriverOutput) {
        match (self.phase, result) {
            (Phase::Initializing, Ok(Some(result))) => self.initialized(&result, out),
            (Phase::Initializing, Ok(None)) => self.fail(errors::version(self.profile), out),
            (Phase::Initializing, Err(error)) => self.fail(errors::handshake(self.profile, &error), out),
            (Phase::Opening, Ok(result)) => self.opened(result.as_ref(), out),
            (Phase::Opening, Err(error)) if self.start.rejects_servers(&error) => self.open_without_servers(out),
            (Phase::Opening, Err(error)) => {
                let failure = match self.start.resume {
                    Some(_) => errors::resume(self.profile, &error),
                    None => errors::new_session(self.profile, &error),
                };
                self.fail(failure, out);
            }
            (Phase::Replaying(true), _) => self.ask_whether_replayed(out),
            (Phase::Replaying(false), _) => self.choose_mode(out),
            (Phase::ChoosingMode(_), Ok(_)) => self.set_modes(out),
            (Phase::ChoosingMode(true), Err(error)) => self.refuse_mode(error.said(), out),
            (Phase::ChoosingMode(false), Err(_)) => {
                if self.keeps_policy("it refuses the mode that asks", out) {
                    self.set_modes(out);
                }
            }
            (Phase::ChoosingModel, Ok(_)) => self.first_prompt(out),
            (Phase::ChoosingModel, Err(error)) => self.fail(Failure::model_not_found().saying(error.said()), out),
            (Phase::Prompting, Ok(result)) => self.turn_ended(result.as_ref(), out),
            (Phase::Prompting, Err(error)) => self.turn_failed(error, out),
            (Phase::AwaitingServers | Phase::Idle | Phase::Over, _) => {}
        }
    }

    pub(super) fn fail(&mut self, failure: Failure, out: &mut DriverOutput) {
        self.phase = Phase::Over;
        out.fail(failure);
    }

    fn opened(&mut self, result: Option<&Object<'_>>, out: &mut DriverOutput) {
        if let Some(id) = result.and_then(|result| result.string("sessionId")) {
            self.session = id.to_string();
        }
        if self.session.is_empty() {
            return self.fail(errors::version(self.profile), out);
        }
        let offered = result.map(model_choice).unwrap_or_default();
        let ready = self.steps.check(&self.start.agent, out);
        let stand_in = self.start.model.is_none().then(|| offered.stand_in(self.profile)).flatten();
        self.start.shown_model = self.start.model.clone().or(offered.current);
        self.tell_session(out);
        if let Some(failure) = stand_in.or(ready.err()) {
            return self.fail(failure, out);
        }
        self.start.set_model = offered.method;
        self.start.modes = result.map(|result| Modes::of_session(result, self.profile)).unwrap_or_default();
        if self.start.resume.is_some() && self.start.replays {
            return self.ask_whether_replayed(out);
        }
        self.choose_mode(out);
    }

    /// Sends an unknown request, which the agent answers at once. Parts of a replay may follow the response that should
    /// end it; if none comes before this answer, the replay is over.
    fn ask_whether_replayed(&mut self, out: &mut DriverOutput) {
        self.phase = Phase::Replaying(false);
        self.request("_spektacular/quiet", &json!({}), out);
    }

    /// Runs before the choice of the model, because a mode may change it.
    fn choose_mode(&mut self, out: &mut DriverOutput) {
        let wished = self.start.mode.take();
        match (wished.as_ref(), self.start.modes.first()) {
            (Some(mode), Some(modes)) => {
                let names = modes.names(self.profile);
                let is_excluded = self.profile.modes.is_some_and(|modes| !modes.contains(&mode.as_str()));
                if is_excluded || !names.is_empty() && !names.contains(mode) {
                    return self.refuse_mode(None, out);
                }
                let change = (modes.set.clone(), json!(mode), true);
                if !self.profile.modes_are_agents()
                    && modes.allows(&change.1)
                    && !self.keeps_policy("the chosen mode does not ask for permission", out)
                {
                    return;
                }
                self.start.changes.push_back(change);
            }
            (Some(_), None) => {
                out.warn(sentence!("{mode} has no effect on this agent: its sessions offer no modes", mode));
            }
            (None, _) => {}
        }
        if self.profile.modes_are_agents() || self.ask_most(out) {
            self.set_modes(out);
        }
    }

    /// Prepares the changes to the modes that ask most, except for the one that somebody wished for. Returns whether the
    /// run goes on.
    fn ask_most(&mut self, out: &mut DriverOutput) -> bool {
        let is_wished = self.start.is_wished;
        let policy = |category: &Category| self.start.permissions.policy(*category);
        let unasked = self.profile.unasked;
        let denied = unasked.iter().any(|category| policy(category) == Policy::Deny);
        let is_asked = unasked.iter().any(|category| policy(category) == Policy::Ask);
        let reads = denied || self.reads_only();
        let modes = self.start.modes.iter().skip(usize::from(is_wished));
        let choices: Vec<_> = modes.map(|modes| (modes.set.clone(), modes.choose(reads))).collect();
        let only_reads = choices.iter().any(|(_, choice)| {
            matches!(choice, Some(ModeChoice::Stay(AskLevel::Reads) | ModeChoice::Change(_, AskLevel::Reads)))
        });
        let keeps = match () {
            () if choices.iter().any(|(_, choice)| choice.is_none()) => {
                self.keeps_policy("none of its modes asks for permission", out)
            }
            () if denied && !only_reads && !is_wished => self.keeps_policy("it does not ask for permission", out),
            () => {
                if is_asked {
                    out.warn(sentence!(
                        "{permissions} has no effect on some actions: this agent does not ask for them",
                        permissions
                    ));
                }
                true
            }
        };
        let changes = choices.into_iter().filter_map(|(set, choice)| match choice {
            Some(ModeChoice::Change(mode, _)) => Some((set, mode, false)),
            Some(ModeChoice::Stay(_)) | None => None,
        });
        self.start.changes.extend(changes);
        keeps
    }

    fn reads_only(&self) -> bool {
        self.start.permissions.is_read_only() && self.profile.rules.is_none()
    }

    /// The agent made the change by itself. It never stays in a mode that allows by itself.
    pub(super) fn mode_changed(&mut self, update: &Object<'_>, out: &mut DriverOutput) {
        if !matches!(self.phase, Phase::Prompting | Phase::Idle) || self.profile.modes_are_agents() {
            return;
        }
        match update.str("sessionUpdate").as_deref() {
            Some("current_mode_update") => {
                let modes = self.start.modes.iter_mut().find(|modes| modes.set == Setter::Request);
                modes.into_iter().for_each(|modes| modes.current = update.string("currentModeId").map(Value::from));
            }
            Some("config_option_update") => self.start.modes = Modes::of_session(update, self.profile),
            _ => return,
        }
        let reads = self.reads_only();
        let skipped = usize::from(self.start.is_wished);
        let is_lax = |modes: &&Modes| modes.current.as_ref().is_some_and(|value| modes.allows(value));
        let lax = self.start.modes.iter().skip(skipped).filter(is_lax);
        let changes: Vec<_> = lax.filter_map(|modes| Some((modes.set.clone(), modes.choose(reads)?))).collect();
        // The responses are not waited for.
        let waiting = self.waiting;
        for (set, choice) in changes {
            if let ModeChoice::Change(mode, _) = choice {
                self.set(set, "session/set_mode", "modeId", &mode, out);
            }
        }
        self.waiting = waiting;
    }

    /// Fails the run, or warns, because the agent cannot keep the policy, unless that allows everything or the sandbox
    /// keeps it. Returns whether the run goes on.
    fn keeps_policy(&mut self, why: &str, out: &mut DriverOutput) -> bool {
        if self.start.permissions.allow_all() || self.start.is_kept {
            return true;
        }
        self.ignores_policy = true;
        if self.start.warns {
            out.warn(no_effect(field!(permissions)));
        } else {
            self.fail(Limit::Permissions.not_kept(&self.start.agent, why), out);
        }
        self.start.warns
    }

    fn set_modes(&mut self, out: &mut DriverOutput) {
        let Some((set, mode, is_wished)) = self.start.changes.pop_front() else { return self.choose_model(out) };
        self.phase = Phase::ChoosingMode(is_wished);
        self.set(set, "session/set_mode", "modeId", &mode, out);
    }

    fn refuse_mode(&mut self, said: Option<String>, out: &mut DriverOutput) {
        let names = self.start.modes.first().map(|modes| modes.names(self.profile)).unwrap_or_default();
        self.fail(no_such_mode(names).saying(said), out);
    }

    fn set(&mut self, how: Setter, method: &str, field: &str, value: &Value, out: &mut DriverOutput) {
        match how {
            Setter::Option(id) => {
                let params = json!({"sessionId": self.session, "configId": id, "value": value});
                self.request("session/set_config_option", &params, out);
            }
            Setter::Request => self.request(method, &json!({"sessionId": self.session, field: value}), out),
        }
    }

    fn choose_model(&mut self, out: &mut DriverOutput) {
        let Some(model) = self.start.model.clone() else { return self.first_prompt(out) };
        self.phase = Phase::ChoosingModel;
        self.set(self.start.set_model.clone(), "session/set_model", "modelId", &json!(model), out);
    }

    fn turn_failed(&mut self, mut error: Error, out: &mut DriverOutput) {
        self.end_turn(out);
        self.steps.explain(&mut error);
        let denied = std::mem::take(&mut self.denied);
        if !self.cancelling && !denied.is_empty() && errors::is_denial(&error) {
            return self.continue_after_denial(&denied, out);
        }
        let over = match (self.cancelling, steps::unpriced(&self.start.agent, &error)) {
            (true, _) => self.interrupted(),
            (false, Some(failure)) => TurnOver::Failed(failure),
            (false, None) => errors::prompt(self.profile, &error),
        };
        out.events.push(AgentEvent::TurnOver(over));
    }

    pub(super) fn tell_session(&self, out: &mut DriverOutput) {
        out.events.push(AgentEvent::Session {
            id: SessionId::new(self.session.as_str()),
            version: self.version.clone().map(Text::from),
            model: self.start.shown_model.clone().map(Text::from),
        });
    }

    /// Notices that an agent that nobody tried ignores the servers of a session: its model was never offered our tool.
    fn miss_ask_server(&mut self, out: &mut DriverOutput) {
        let is_expected = self.profile.servers == ServerWay::Untried && self.own_tools.contains(&self.profile.ask_tool);
        if is_expected && self.ask_link == AskLink::Unknown {
            self.ask_link = AskLink::Missing;
            out.warn("This agent has not started the server for questions: its model can ask only by question markers");
            self.tell_session(out);
        }
    }

    fn end_turn(&mut self, out: &mut DriverOutput) {
        self.phase = Phase::Idle;
        self.end_message(out);
        self.withdraw(None, out);
        for (id, _) in self.calls.drain() {
            self.finished.add(&id);
        }
    }

    fn turn_ended(&mut self, result: Option<&Object<'_>>, out: &mut DriverOutput) {
        self.end_turn(out);
        self.miss_ask_server(out);
        if let Some(result) = result.filter(|_| !self.steps.reported) {
            self.count(result, out);
        }
        let stop = result.and_then(|result| result.str("stopReason")).unwrap_or_default();
        let denied = std::mem::take(&mut self.denied);
        // The turn ended at the denial: the model did not speak after it.
        if !self.cancelling && !denied.is_empty() && matches!(&*stop, "end_turn" | "cancelled") {
            return self.continue_after_denial(&denied, out);
        }
        if self.cancelling || stop == "cancelled" {
            let over = self.interrupted();
            return out.events.push(AgentEvent::TurnOver(over));
        }
        if let Some(failed) = self.hidden_failure(result).filter(|_| stop == "end_turn") {
            return out.events.push(AgentEvent::TurnOver(failed));
        }
        out.events.push(AgentEvent::TurnOver(match &*stop {
            "max_tokens" | "max_turn_requests" => TurnOver::Failed(errors::limit()),
            "refusal" => TurnOver::Failed(Failure::refused()),
            _ => TurnOver::Completed {
                answer: std::mem::take(&mut self.answer),
                structured: None,
                stop: if stop == "end_turn" { StopReason::EndTurn } else { StopReason::Other },
            },
        }));
    }

    pub(super) fn is_prompting(&self) -> bool {
        self.phase == Phase::Prompting
    }

    fn interrupted(&self) -> TurnOver {
        self.steps.overflowed().map_or(TurnOver::Interrupted, TurnOver::Failed)
    }

    fn hidden_failure(&self, result: Option<&Object<'_>>) -> Option<TurnOver> {
        let text = self.answer.clone().into_text();
        let text = text.unredacted();
        match self.profile.hidden_failure.as_ref()? {
            HiddenFailure::Notice(notices) => {
                let is_counted = result.is_some_and(|result| result.object("usage").is_some());
                let is_notice = || notices.iter().any(|notice| text.contains(notice));
                (!is_counted && is_notice()).then(|| errors::noticed(self.profile, text.to_owned()))
            }
            HiddenFailure::Silence(notices) => {
                let is_notice = |line: &str| notices.iter().any(|notice| line.starts_with(notice));
                let is_silent = text.lines().map(str::trim).all(|line| line.is_empty() || is_notice(line));
                (is_silent && !self.called).then(|| TurnOver::Failed(errors::silent(self.profile)))
            }
        }
    }

    /// Continues after a turn that ended at a denial: the user only denied one call.
    fn continue_after_denial(&mut self, denied: &[(String, Denial)], out: &mut DriverOutput) {
        self.denials += 1;
        if self.denials > DENIALS {
            return self.fail(errors::denied_too_often(), out);
        }
        let mut text = String::new();
        for (title, denial) in denied {
            text += &match denial {
                Denial::NoUser => format!("Permission denied for: {title}\n{NO_USER}\n"),
                Denial::ByUser(None) => format!("The user denied permission for: {title}\n"),
                Denial::ByUser(Some(message)) => {
                    format!("The user denied permission for: {title}\nThe user says: {}\n", message.unredacted())
                }
            };
        }
        text.push_str("Do not try it again. Continue the task without it.");
        self.send_prompt(&text, &[], Vec::new(), out);
    }

    fn count(&mut self, result: &Object<'_>, out: &mut DriverOutput) {
        let tokens = match self.profile.counts_turns {
            true => of_turn(result),
            // These are the counts of the last request. They cover the whole turn only if it called no tool and ended
            // normally.
            false => {
                let whole = !self.called && !self.cancelling && result.is("stopReason", "end_turn");
                of_request(result).filter(|_| whole)
            }
        };
        match tokens {
            Some((input, output)) if !self.uncounted => {
                let turn = Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() };
                self.used = self.used.plus(&turn);
            }
            _ => {
                self.uncounted = true;
                (self.used.input_tokens, self.used.output_tokens) = (None, None);
            }
        }
        if self.used != Usage::default() {
            out.events.push(AgentEvent::Usage(self.used));
        }
    }
}

fn of_turn(result: &Object<'_>) -> Option<(u64, u64)> {
    let counts = result.object("_meta")?.object("quota")?.object("token_count")?;
    Some((counts.count("input_tokens")?, counts.count("output_tokens")?))
}

/// Covers only the turn's last request. The input includes cached tokens.
fn of_request(result: &Object<'_>) -> Option<(u64, u64)> {
    let usage = result.object("usage")?;
    let cached: u64 = ["cachedReadTokens", "cachedWriteTokens"].iter().filter_map(|name| usage.count(name)).sum();
    Some((usage.count("inputTokens")? + cached, usage.count("outputTokens")?))
}

//! From the handshake to the prompt's response: what is asked of the agent in which order.

use super::profile::Profile;
use super::{Acp, errors};
use crate::agent::json::Object;
use crate::agent::rpc::{self, Error};
use crate::agent::text::FinalAnswer;
use crate::agent::{Event, Turn, TurnOver, no_such_mode};
use crate::failure::Failure;
use crate::protocol::outbound::Usage;
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::words::{StopReason, Warning};
use serde_json::{Value, json};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The response to `initialize`.
    Initializing,
    /// The session, new or resumed.
    Opening,
    /// The end of what a loaded session replays; whether something of it came since we last asked.
    Replaying(bool),
    /// The mode to be set.
    ChoosingMode,
    /// The model to be set.
    ChoosingModel,
    /// The end of a turn.
    Prompting,
    /// Nothing: a turn is over, and another may begin.
    Idle,
    /// Nothing ever.
    Over,
}

/// What a session is opened with.
#[derive(Debug, Default)]
pub(super) struct SessionSetup {
    prompt: String,
    cwd: String,
    resume: Option<String>,
    /// The mode that is to be set in the session.
    mode: Option<String>,
    /// The modes that the session offers.
    modes: Modes,
    /// The model that is to be set in the session.
    model: Option<String>,
    servers: Value,
    /// The names of these servers.
    pub(super) server_names: Vec<String>,
    /// Whether resuming replays what was said.
    replays: bool,
    set_model: Setter,
}

impl SessionSetup {
    pub(super) fn new(settings: &Settings, profile: &Profile) -> SessionSetup {
        // ACP has no place for a system prompt.
        let servers = || settings.mcp_servers.iter().chain(&settings.ask_server);
        let system = settings.system_prompt.as_ref().filter(|text| !text.is_empty());
        SessionSetup {
            prompt: match system {
                Some(system) => format!("{system}\n\n{}", settings.prompt),
                None => settings.prompt.clone(),
            },
            cwd: settings.cwd.to_string_lossy().into_owned(),
            resume: settings.session_id.clone(),
            mode: settings.mode.clone().filter(|_| profile.has_modes),
            model: settings.model.clone().filter(|_| profile.model_flag.is_none()),
            servers: servers().map(server).collect(),
            server_names: servers().map(|server| server.name.clone()).collect(),
            ..SessionSetup::default()
        }
    }
}

fn server(server: &McpServer) -> Value {
    let env: Vec<Value> = server.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"name": server.name, "command": server.command, "args": server.args, "env": env})
}

/// How often an agent that stops at a denial is told to go on.
const DENIALS: u32 = 20;

impl Acp {
    fn request(&mut self, method: &str, params: &Value, turn: &mut Turn) {
        self.requests += 1;
        self.waiting = self.requests;
        turn.send.push(rpc::request(self.requests, method, params));
    }

    pub(super) fn initialize(&mut self, turn: &mut Turn) {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "elicitation": {"form": {}},
            },
            // The version is that of what we serve: a recording must not depend on a release.
            "clientInfo": {"name": "spektacular", "title": "spektacular", "version": "1"},
        });
        self.request("initialize", &params, turn);
    }

    /// The response to the request of ours that is waited for.
    pub(super) fn response(&mut self, result: Result<Option<Object<'_>>, Error>, turn: &mut Turn) {
        match (self.phase, result) {
            (Phase::Initializing, Ok(Some(result))) => self.initialized(&result, turn),
            (Phase::Initializing, result) => {
                let said = result.err().and_then(|error| error.said());
                self.fail(errors::version(self.profile).saying(said), turn);
            }
            (Phase::Opening, Ok(result)) => self.opened(result.as_ref(), turn),
            (Phase::Opening, Err(error)) => {
                let failure = match self.start.resume {
                    Some(_) => errors::resume(self.profile, &error),
                    None => errors::new_session(self.profile, &error),
                };
                self.fail(failure, turn);
            }
            (Phase::Replaying(true), _) => self.ask_whether_replayed(turn),
            (Phase::Replaying(false), _) => self.choose_mode(turn),
            (Phase::ChoosingMode, Ok(_)) => self.choose_model(turn),
            (Phase::ChoosingMode, Err(error)) => self.refuse_mode(error.said(), turn),
            (Phase::ChoosingModel, Ok(_)) => self.first_prompt(turn),
            (Phase::ChoosingModel, Err(error)) => self.fail(errors::model(&error), turn),
            (Phase::Prompting, Ok(result)) => self.turn_ended(result.as_ref(), turn),
            (Phase::Prompting, Err(error)) => self.turn_failed(&error, turn),
            (Phase::Idle | Phase::Over, _) => {}
        }
    }

    fn fail(&mut self, failure: Failure, turn: &mut Turn) {
        self.phase = Phase::Over;
        turn.events.push(Event::TurnOver(TurnOver::Failed(failure)));
    }

    fn initialized(&mut self, result: &Object<'_>, turn: &mut Turn) {
        if result.count("protocolVersion") != Some(1) {
            return self.fail(errors::version(self.profile), turn);
        }
        self.version = result.object("agentInfo").and_then(|info| info.string("version"));
        let abilities = result.object("agentCapabilities");
        let loads = abilities.as_ref().and_then(|a| a.bool("loadSession")).unwrap_or(false);
        let sessions = abilities.as_ref().and_then(|a| a.object("sessionCapabilities"));
        let resumes = sessions.is_some_and(|sessions| sessions.raw("resume").is_some());
        self.resumes = Some(loads || resumes);
        let mut params = json!({"cwd": self.start.cwd, "mcpServers": self.start.servers});
        self.phase = Phase::Opening;
        let Some(id) = self.start.resume.clone() else { return self.request("session/new", &params, turn) };
        params["sessionId"] = json!(id);
        self.session = id;
        match (resumes, loads) {
            // Without a replay.
            (true, _) => self.request("session/resume", &params, turn),
            (false, true) => self.request("session/load", &params, turn),
            (false, false) => self.fail(errors::cannot_resume(self.profile), turn),
        }
        self.start.replays = !resumes;
    }

    fn opened(&mut self, result: Option<&Object<'_>>, turn: &mut Turn) {
        if let Some(id) = result.and_then(|result| result.string("sessionId")) {
            self.session = id;
        }
        if self.session.is_empty() {
            return self.fail(errors::version(self.profile), turn);
        }
        let offered = result.map(model_choice).unwrap_or_default();
        turn.events.push(Event::Session {
            id: Some(self.session.clone()),
            version: self.version.clone(),
            model: self.start.model.clone().or(offered.current),
        });
        self.start.set_model = offered.method;
        self.start.modes = result.map(Modes::of).unwrap_or_default();
        if self.start.resume.is_some() && self.start.replays {
            return self.ask_whether_replayed(turn);
        }
        self.choose_mode(turn);
    }

    /// A part of a replay may come after the response that should end it. An agent answers a request that it does not
    /// know at once: if nothing came before the answer, the replay is over.
    fn ask_whether_replayed(&mut self, turn: &mut Turn) {
        self.phase = Phase::Replaying(false);
        self.request("_spektacular/quiet", &json!({}), turn);
    }

    /// Before the model: a mode may bring one of its own.
    fn choose_mode(&mut self, turn: &mut Turn) {
        let Some(mode) = self.start.mode.take() else { return self.choose_model(turn) };
        let Modes { set, names } = &self.start.modes;
        let Some(set) = set.clone() else {
            let text = "`mode` has no effect on this agent: its sessions offer no modes";
            turn.events.push(Event::Warning(Warning::UnsupportedOption, text.into()));
            return self.choose_model(turn);
        };
        if !names.is_empty() && !names.contains(&mode) {
            return self.refuse_mode(None, turn);
        }
        self.phase = Phase::ChoosingMode;
        self.set(set, "session/set_mode", "modeId", &mode, turn);
    }

    fn refuse_mode(&mut self, said: Option<String>, turn: &mut Turn) {
        let names = std::mem::take(&mut self.start.modes.names);
        self.fail(no_such_mode(names).saying(said), turn);
    }

    /// Sets what the session offers as an option, or by a request of its own.
    fn set(&mut self, how: Setter, method: &str, field: &str, value: &str, turn: &mut Turn) {
        match how {
            Setter::Option(id) => {
                let params = json!({"sessionId": self.session, "configId": id, "value": value});
                self.request("session/set_config_option", &params, turn);
            }
            Setter::Request => self.request(method, &json!({"sessionId": self.session, field: value}), turn),
        }
    }

    fn choose_model(&mut self, turn: &mut Turn) {
        let Some(model) = self.start.model.clone() else { return self.first_prompt(turn) };
        self.phase = Phase::ChoosingModel;
        self.set(self.start.set_model.clone(), "session/set_model", "modelId", &model, turn);
    }

    fn first_prompt(&mut self, turn: &mut Turn) {
        let prompt = std::mem::take(&mut self.start.prompt);
        self.prompt(&prompt, turn);
    }

    /// Begins a turn.
    pub(super) fn prompt(&mut self, text: &str, turn: &mut Turn) {
        self.phase = Phase::Prompting;
        self.answer = FinalAnswer::default();
        self.called = false;
        // What begins with a slash would be a command, also after blanks. `@path` is plain text to these agents in ACP:
        // a file would come as a resource.
        let command = text.trim_start().starts_with('/') && !self.raw_prompt;
        let guard = if command { "The task:\n" } else { "" };
        let prompt = json!([{"type": "text", "text": format!("{guard}{text}")}]);
        self.request("session/prompt", &json!({"sessionId": self.session, "prompt": prompt}), turn);
    }

    fn turn_failed(&mut self, error: &Error, turn: &mut Turn) {
        self.end_turn(turn);
        let over = match self.cancelling {
            true => TurnOver::Interrupted,
            false => errors::prompt(self.profile, error),
        };
        turn.events.push(Event::TurnOver(over));
    }

    fn end_turn(&mut self, turn: &mut Turn) {
        self.phase = Phase::Idle;
        self.end_message(turn);
        self.withdraw(None, turn);
        for id in std::mem::take(&mut self.calls).into_keys() {
            self.finished.add(&id);
        }
    }

    fn turn_ended(&mut self, result: Option<&Object<'_>>, turn: &mut Turn) {
        self.end_turn(turn);
        if let Some(result) = result {
            self.count(result, turn);
        }
        let stop = result.and_then(|result| result.str("stopReason")).unwrap_or_default();
        if self.cancelling || stop == "cancelled" {
            turn.events.push(Event::TurnOver(TurnOver::Interrupted));
            return;
        }
        let denied = std::mem::take(&mut self.denied);
        if stop == "end_turn" && self.profile.stops_when_denied && !denied.is_empty() {
            return self.go_on(&denied, turn);
        }
        turn.events.push(Event::TurnOver(match &*stop {
            "max_tokens" | "max_turn_requests" => TurnOver::Failed(errors::limit()),
            "refusal" => TurnOver::Failed(Failure::refused()),
            _ => TurnOver::Completed {
                answer: std::mem::take(&mut self.answer),
                structured: None,
                stop: if stop == "end_turn" { StopReason::EndTurn } else { StopReason::Other },
            },
        }));
    }

    /// The turn ended at a denial, though the user only said no to one thing.
    fn go_on(&mut self, denied: &[(String, Option<String>)], turn: &mut Turn) {
        self.denials += 1;
        if self.denials > DENIALS {
            return self.fail(errors::denied_too_often(), turn);
        }
        let mut text = String::new();
        for (title, message) in denied {
            text.push_str(&format!("The user denied the permission for: {title}\n"));
            text.extend(message.iter().map(|message| format!("The user says: {message}\n")));
        }
        text.push_str("Do not try it again. Go on with the task without it.");
        self.prompt(&text, turn);
    }

    fn count(&mut self, result: &Object<'_>, turn: &mut Turn) {
        let tokens = match self.profile.counts_turns {
            true => of_turn(result),
            // Those of the last request: all there was, if no tool was called and it came to its end.
            false => {
                let whole = !self.called && !self.cancelling && result.is("stopReason", "end_turn");
                of_request(result).filter(|_| whole)
            }
        };
        match tokens {
            Some((input, output)) if !self.uncounted => {
                self.used.input_tokens = Some(self.used.input_tokens.unwrap_or(0) + input);
                self.used.output_tokens = Some(self.used.output_tokens.unwrap_or(0) + output);
            }
            _ => {
                self.uncounted = true;
                (self.used.input_tokens, self.used.output_tokens) = (None, None);
            }
        }
        if self.used != Usage::default() {
            turn.events.push(Event::Usage(self.used));
        }
    }

    /// Whether what the session cost so far is what this run cost.
    pub(super) fn is_new_session(&self) -> bool {
        self.start.resume.is_none()
    }
}

/// Input and output tokens of all a turn's requests.
fn of_turn(result: &Object<'_>) -> Option<(u64, u64)> {
    let counts = result.object("_meta")?.object("quota")?.object("token_count")?;
    Some((counts.count("input_tokens")?, counts.count("output_tokens")?))
}

/// Input and output tokens of a turn's last request. Ours hold what came from a cache.
fn of_request(result: &Object<'_>) -> Option<(u64, u64)> {
    let usage = result.object("usage")?;
    let cached: u64 = ["cachedReadTokens", "cachedWriteTokens"].iter().filter_map(|name| usage.count(name)).sum();
    Some((usage.count("inputTokens")? + cached, usage.count("outputTokens")?))
}

/// How something of a session is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Setter {
    /// By this option.
    Option(String),
    /// By a request of its own.
    #[default]
    Request,
}

/// The modes of a session.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// How one is set. `None`: the session has none.
    set: Option<Setter>,
    /// Their names, as far as they are known.
    names: Vec<String>,
}

impl Modes {
    /// The modes that a session offers.
    fn of(result: &Object<'_>) -> Modes {
        if let Some((option, id)) = option(result, "mode") {
            let names = option.objects("options").filter_map(|option| option.string("value")).collect();
            return Modes { set: Some(Setter::Option(id)), names };
        }
        let modes = result.object("modes");
        let names = modes.iter().flat_map(|modes| modes.objects("availableModes"));
        Modes { names: names.filter_map(|mode| mode.string("id")).collect(), set: modes.map(|_| Setter::Request) }
    }
}

/// The option of a session for this, with its id.
fn option<'a>(result: &Object<'a>, what: &str) -> Option<(Object<'a>, String)> {
    let mut options = result.objects("configOptions");
    let option = options.find(|option| option.is("category", what) || option.is("id", what))?;
    let id = option.string("id")?;
    Some((option, id))
}

#[derive(Debug, Default)]
struct ModelChoice {
    method: Setter,
    current: Option<String>,
}

/// What a session says of its model.
fn model_choice(result: &Object<'_>) -> ModelChoice {
    if let Some((option, id)) = option(result, "model") {
        return ModelChoice { method: Setter::Option(id), current: option.string("currentValue") };
    }
    let current = result.object("models").and_then(|models| models.string("currentModelId"));
    ModelChoice { method: Setter::Request, current }
}

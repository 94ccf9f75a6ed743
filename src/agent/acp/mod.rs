//! Agents that speak the Agent Client Protocol (ACP, version 1) over stdio: one driver, and one [`profile`] per agent.
//!
//! Facts (Gemini CLI 0.61.0, OpenCode 1.18.33): the prompt's response ends a turn but not the process, and the exit code
//! means nothing; the agent numbers its requests from 0, as we do; the first message about a call may be its permission
//! or its end; a completed tool may have failed; a cancelled turn does not end while a permission is open; stderr
//! contains keys, prompts and paths; one agent asks us to write files although we say that we cannot, and writes them
//! itself if we refuse.

pub(crate) mod agents;
mod ask;
mod call;
mod errors;
mod gemini_stored;
mod modes;
mod native;
mod open_requests;
mod opening;
mod own_rules;
pub(crate) mod profile;
mod prompt;
mod rules;
mod session;
mod steps;
#[cfg(test)]
mod tests;
mod updates;

use self::ask::EarlyRequest;
use self::call::Call;
use self::open_requests::OpenRequests;
use self::own_rules::CONTENT;
use self::profile::{Profile, PromptWay, ServerWay};
use self::rules::{RuleFormat, ToolRules};
use self::session::{Phase, SessionSetup};
use self::steps::Steps;
use self::updates::Said;
use super::limit::{Keeper, Limit};
use super::native::SessionStore;
use super::preference::{Preference, warn_of_ignored};
use super::prompt_text::Commands;
use super::recent::{OpenMap, Recent};
use super::rpc::{self, Incoming};
use super::text::FinalAnswer;
use super::{
    AgentEvent, AskKey, Base, CallKey, Driver, DriverOutput, Features, FoundBy, LEAVE, Launch, LaunchFile, Line,
    MessageKey, Reply, ResultWay, TurnOver, Wants, ask_user, npx, result,
};
use crate::json::{Index, Object};
use crate::protocol::failure::Failure;
use crate::protocol::fields::{Field, field};
use crate::protocol::image::Image;
use crate::protocol::limits::ARGUMENT_BYTES;
use crate::protocol::outbound::{AgentExit, Capabilities, Text, ToolFacts, Usage};
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Category, Policy, QuestionKind, ToolState};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Acp {
    base: Base,
    index: Index,
    profile: &'static Profile,
    phase: Phase,
    start: SessionSetup,
    cwd: PathBuf,
    /// Empty until the agent tells it.
    session: String,
    version: Option<String>,
    /// `None`: not known yet.
    resumes: Option<bool>,
    /// `None`: not known yet.
    takes_images: Option<bool>,
    requests: u64,
    /// The number of our request whose response we expect.
    waiting: u64,
    pending: OpenRequests,
    /// The permission requests that wait for the whole input of their call, by the call's id.
    early: OpenMap<EarlyRequest>,
    calls: OpenMap<Call>,
    finished: Recent,
    said: Option<Said>,
    /// The message that is being skipped, and the agent's own id of the message.
    passed: Option<(MessageKey, Option<String>)>,
    messages: u64,
    commands: Commands,
    answer: FinalAnswer,
    wants: Wants,
    cancelling: bool,
    /// The first calls denied since the agent's last message.
    denied: Vec<(String, ask::Denial)>,
    /// The number of times that we told the agent to continue after a denial.
    denials: u32,
    ignores_policy: bool,
    /// Whether this turn called a tool.
    called: bool,
    used: Usage,
    steps: Steps,
    /// Whether the tokens of a turn are unknown.
    uncounted: bool,
    /// The names of our own tools that the model is offered.
    own_tools: Vec<&'static str>,
    ask_server: String,
    ask_link: AskLink,
}

/// Whether the agent has started our server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AskLink {
    /// It is not known, and not looked for.
    #[default]
    Unknown,
    /// A turn ended before the agent started it.
    Missing,
    Here,
}

impl Acp {
    pub(crate) fn new(base: Base, profile: &'static Profile) -> Acp {
        Acp { base, profile, ..Acp::default() }
    }

    fn message(&mut self, message: Incoming<'_>, out: &mut DriverOutput) {
        match message {
            Incoming::Response { id, result } if id == self.waiting => self.response(result, out),
            // The response to an earlier request.
            Incoming::Response { .. } => {}
            Incoming::Notification { method, params } if method == "session/update" => {
                if params.and_then(|params| self.update(&params, out)).is_none() {
                    out.unparsed();
                }
            }
            Incoming::Notification { method, params } => self.step(&method, params.as_ref(), out),
            Incoming::Request { id, method, params } => self.asked(id, &method, params, out),
        }
    }

    fn asked(&mut self, id: &str, method: &str, params: Option<Object<'_>>, out: &mut DriverOutput) {
        if method == PERMISSION && params.as_ref().is_some_and(|params| self.defers(id, params)) {
            return;
        }
        let served = match method {
            PERMISSION => true,
            "elicitation/create" => params.as_ref().is_none_or(ask::is_form),
            _ => false,
        };
        let read = match (method, params) {
            (PERMISSION, Some(params)) if ask::questions_of(&params).is_some() => ask::questions(&params),
            (PERMISSION, Some(params)) => self.permission(&params, out),
            ("elicitation/create", Some(params)) => ask::form(&params),
            _ => None,
        };
        let Some((pending, asks)) = read else {
            out.send.push(rpc::error(id, rpc::METHOD_NOT_FOUND, "This client does not serve this request."));
            out.events.extend(served.then_some(AgentEvent::Unparsed));
            return;
        };
        if self.cancelling {
            out.send.push(rpc::result(id, &pending.cancelled()));
            return;
        }
        if pending.call().and_then(|call| self.calls.get(call)).is_some_and(|call| call.own) {
            // The call itself asks the user; a permission before it would be pointless.
            return out.send.push(rpc::result(id, &pending.respond(&[Reply::Allowed])));
        }
        self.end_message(out);
        let key = AskKey(id.to_owned());
        let call = pending.call().map(CallKey::of);
        self.pending.insert(key.clone(), pending);
        out.events.push(AgentEvent::Ask { key, asks, call });
    }

    /// `None`: the questions about all calls.
    fn withdraw(&mut self, call: Option<&str>, out: &mut DriverOutput) {
        let gone = match call {
            Some(call) => self.pending.take_of(call),
            None => {
                self.early = OpenMap::default();
                self.pending.take_all().into_keys().collect()
            }
        };
        out.events.extend(gone.into_iter().map(|key| AgentEvent::AskWithdrawn { key }));
    }

    fn arguments(&self, settings: &Settings) -> Result<Vec<String>, Failure> {
        let mut args = Vec::new();
        let mut give = |field: &'static Field, flag: &str, value: &str| {
            args.push(super::argument(field, flag, value)?);
            Ok(())
        };
        if let (Some(flag), Some(model)) = (self.profile.model_flag, &settings.model) {
            give(field!(model), flag, model)?;
        }
        if let Some(flag) = self.profile.dir_flag {
            settings.add_dirs.iter().try_for_each(|dir| give(field!(add_dirs), flag, dir))?;
        }
        args.extend(settings.agent_args.iter().cloned());
        Ok(args)
    }

    fn cancel_turn(&mut self, out: &mut DriverOutput) {
        self.cancelling = true;
        out.send.push(rpc::notification("session/cancel", Some(&json!({"sessionId": self.session}))));
        // The turn does not end before all these have an answer.
        for (key, pending) in self.pending.take_all() {
            out.send.push(rpc::result(&key.0, &pending.cancelled()));
        }
        for (_, early) in self.early.drain() {
            out.send.push(rpc::result(&early.id, &ask::cancelled()));
        }
    }
}

const PERMISSION: &str = "session/request_permission";

/// The maximum number of denied calls that the message to the model names.
const DENIALS_TOLD: usize = 20;

impl Acp {
    fn keeper(&self, limit: Limit, settings: &Settings) -> Keeper {
        match limit {
            Limit::MaxToolCalls => Keeper::Run,
            Limit::McpServers if self.profile.servers == ServerWay::Nowhere => Keeper::Nobody,
            Limit::McpServers => Keeper::Agent,
            Limit::Permissions if self.ignores_policy => Keeper::Nobody,
            Limit::Permissions if self.unkept_reads(settings) == Some(Policy::Deny) => Keeper::Nobody,
            // It may run what it knows to be harmless without a request.
            Limit::Permissions if self.profile.rules == Some(RuleFormat::Gemini) => Keeper::Agent,
            Limit::Permissions => Keeper::Run,
            Limit::AllowedTools | Limit::DisallowedTools if self.profile.rules.is_some() => Keeper::Agent,
            Limit::MaxTurns | Limit::MaxTokens | Limit::MaxCostUsd if self.profile.reports_steps => Keeper::Run,
            Limit::MaxTurns | Limit::MaxTokens | Limit::MaxCostUsd | Limit::AllowedTools | Limit::DisallowedTools => {
                Keeper::Nobody
            }
        }
    }

    /// The policy for reads and searches that the agent does not keep, because it runs commands such as `cat` without asking
    /// unless it may run none.
    fn unkept_reads(&self, settings: &Settings) -> Option<Policy> {
        let runs = settings.permissions.policy(Category::Execute) != Policy::Deny;
        let leaks = runs && self.profile.rules == Some(RuleFormat::Gemini);
        let policies = [Category::Read, Category::Search].map(|looks| settings.permissions.policy_inside(looks));
        [Policy::Deny, Policy::Ask].into_iter().find(|policy| leaks && policies.contains(policy))
    }

    /// ACP has no means for an effort, nor for further directories.
    fn follows(&self, preference: Preference, settings: &Settings) -> bool {
        match preference {
            Preference::Model | Preference::SystemPrompt | Preference::Mode => true,
            Preference::SystemPromptMode => self.takes_new_prompt(settings),
            Preference::AddDirs => self.profile.dir_flag.is_some() || self.profile.modes_are_agents(),
            Preference::Effort | Preference::Background => false,
        }
    }

    fn takes_new_prompt(&self, settings: &Settings) -> bool {
        match self.profile.new_prompt {
            None => false,
            Some(PromptWay::File(_)) => true,
            // Its JSON goes into a variable, in which a character may take six bytes.
            Some(PromptWay::OpenCode) => {
                let fits = |text: &String| text.len() <= ARGUMENT_BYTES / 8;
                !own_rules::is_set(&settings.own_rules, CONTENT) && settings.system_prompt.as_ref().is_none_or(fits)
            }
        }
    }

    fn ask_tool(&self, settings: &Settings) -> Option<&'static str> {
        let reaches = self.profile.servers != ServerWay::Nowhere;
        (reaches && ask_user::is_wanted(settings)).then_some(self.profile.ask_tool)
    }

    /// A call of our tool must be known as such, so that it needs no permission.
    fn result_way(&self, settings: &Settings) -> ResultWay {
        if self.profile.own_call.is_some() { ResultWay::by_tool(settings) } else { ResultWay::Text }
    }
}

impl Driver for Acp {
    fn held_bytes(&self) -> usize {
        self.calls.bytes() + self.early.bytes()
    }

    fn features(&self, settings: &Settings) -> Features {
        let questions = match (self.own_tools.contains(&self.profile.ask_tool), self.profile.servers) {
            // By question markers.
            _ if self.ask_link == AskLink::Missing => vec![QuestionKind::Select, QuestionKind::Text],
            (true, _) => QuestionKind::ALL.to_vec(),
            (false, ServerWay::Nowhere) => vec![QuestionKind::Select, QuestionKind::Text],
            (false, _) => vec![QuestionKind::Confirm, QuestionKind::Select, QuestionKind::Text],
        };
        let capabilities = Capabilities {
            resume: self.resumes,
            usage: (self.profile.counts_turns || self.steps.reported).then_some(true),
            ..Capabilities::usual(questions)
        };
        let follows = |preference: &Preference| self.follows(*preference, settings);
        let leaves = self.profile.leaves_servers || self.start.server_names.is_empty();
        Features {
            preferences: Preference::ALL.iter().copied().filter(follows).collect(),
            images: self.takes_images != Some(false),
            ask_tool: self.ask_tool(settings),
            result_way: self.result_way(settings),
            leave_time: if leaves { LEAVE } else { Duration::ZERO },
            stderr_is_fit: false,
            ..Features::usual(capabilities, |limit| self.keeper(limit, settings))
        }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        warn_of_ignored(settings, self, out);
        if self.unkept_reads(settings) == Some(Policy::Ask) {
            out.warn(sentence!(
                "{permissions} has no effect on commands that only read, such as `cat`: this agent runs them without asking",
                permissions
            ));
        }
        let mut args = self.arguments(settings)?;
        let new_prompt = settings.new_system_prompt().filter(|_| self.takes_new_prompt(settings));
        self.start = SessionSetup::new(settings, self.profile, new_prompt.is_some());
        self.cwd.clone_from(&settings.cwd);
        self.wants = Wants::new(settings);
        self.commands.reports = self.wants.commands;
        if settings.ask_server.is_some() {
            self.own_tools.extend(self.ask_tool(settings));
            self.own_tools.extend((self.result_way(settings) == ResultWay::Tool).then_some(result::TOOL));
        }
        self.ask_server = ask_user::server_name(settings);
        ask_user::warn_if_taken(settings, out);
        let mut first = DriverOutput::default();
        self.initialize(&mut first);
        let mut env: Vec<(String, String)> =
            self.profile.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let rules = ToolRules::new(settings, &self.own_tools);
        if self.profile.reports_steps {
            self.steps = Steps::new(settings);
        }
        let mut files = self.steps.files();
        match self.profile.rules {
            Some(RuleFormat::OpenCode(variable)) => {
                env.push((variable.into(), rules.opencode()));
                if self.profile.reports_steps && !own_rules::is_set(&settings.own_rules, CONTENT) {
                    let prompt =
                        |text: &String| own_rules::new_prompt(&settings.own_rules, settings.mode.as_deref(), text);
                    let prompt = new_prompt.map(prompt);
                    let parts: Vec<String> = rules.opencode_sub_agents().into_iter().chain(prompt).collect();
                    env.extend((!parts.is_empty()).then(|| (CONTENT.into(), format!("{{{}}}", parts.join(",")))));
                }
            }
            Some(RuleFormat::Gemini) => {
                let policy = rules.gemini();
                // Our file would replace the folder of the user's own.
                let own = policy.iter().filter(|_| !settings.own_rules.is_empty());
                args.extend(own.map(|_| format!("--policy={}", settings.own_rules)));
                let file = |text| LaunchFile { found: FoundBy::Flag("--policy="), name: "policy.toml", text };
                files.extend(policy.map(file));
            }
            None => {}
        }
        if let (Some(PromptWay::File(variable)), Some(text)) = (self.profile.new_prompt, new_prompt) {
            let found = FoundBy::Variable(variable);
            files.push(LaunchFile { found, name: "system-prompt.md", text: text.clone() });
        }
        if let ServerWay::File(beginning) = self.profile.servers {
            let text = (!self.start.servers.is_empty()).then(|| opening::servers_file(&self.start.servers));
            let file = |text| LaunchFile { found: FoundBy::Flag(beginning), name: "mcp.json", text };
            files.extend(text.map(file));
        }
        let images = settings.attached.clone();
        let session_files = match &self.profile.native.sessions {
            Some(SessionStore::File(files)) => Some(files),
            Some(SessionStore::Command { .. }) | None => None,
        };
        let launch = Launch { send: first.send, images, session_files, ..self.base.launch("acp", args, env) };
        let start_timeout = self.steps.start_timeout().or(launch.start_timeout);
        Ok(Launch { files, start_timeout, ..launch })
    }

    fn ask_server_came(&mut self, out: &mut DriverOutput) {
        if std::mem::replace(&mut self.ask_link, AskLink::Here) == AskLink::Missing {
            self.tell_session(out);
        }
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let mut index = std::mem::take(&mut self.index);
        rpc::line(&mut index, line, out, |message, out| self.message(message, out));
        self.index = index;
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        let Some(pending) = self.pending.remove(key) else { return };
        if let (Some(denial), Some(call)) = (pending.denial(replies), pending.call()) {
            // Some agents do not mention such a call again, others report that it failed.
            out.events.push(AgentEvent::ToolOver {
                call: CallKey::of(call),
                state: ToolState::Denied,
                output: None,
                facts: ToolFacts::default(),
            });
            if let Some(known) = self.calls.get(call) {
                if self.denied.len() < DENIALS_TOLD {
                    self.denied.push((known.label(), denial));
                }
                self.forget(call);
            }
        }
        out.send.push(rpc::result(&key.0, &pending.respond(replies)));
    }

    fn take_commands(&mut self, raw: Option<bool>) {
        self.wants.take_commands(raw);
    }

    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) {
        self.prompt(prompt, images, out);
    }

    fn send_held(&mut self, out: &mut DriverOutput) {
        if self.phase == Phase::AwaitingServers {
            self.send_first(out);
        }
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        let runs = self.phase == Phase::Prompting;
        if runs {
            self.cancel_turn(out);
        }
        runs
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        if !self.interrupt_turn(out) {
            self.phase = Phase::Over;
            out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
        }
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        out.close_input = true;
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        let of_npx = npx::failure(&self.base, stderr).filter(|_| !alive);
        let of_agent = || errors::exited(self.profile, exit, !self.session.is_empty(), alive);
        TurnOver::Failed(of_npx.unwrap_or_else(of_agent))
    }
}

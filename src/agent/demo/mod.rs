//! The demo agent: this program itself, which plays a scenario. It needs no model, no key and no network.
//!
//! The driver is here, and [`play`], the loop of the process that it drives, which runs the [`player`] with the actions
//! of a [`scenario`], or does the [`workflow`]'s work. `Agents::find` chooses the scenario; the process is
//! `spektacular demo play`, in `cmd::demo`.

pub(crate) mod catalog;
mod lines;
pub(crate) mod player;
pub(crate) mod read;
pub(crate) mod scenario;
mod script;
mod workflow;

use self::lines::{FromHost, PlayerLine};
use self::player::{DemoStage, End, Player, TurnStop};
use self::scenario::Scenario;
use self::workflow::DemoPart;
use super::limit::{Keeper, Limit};
use super::preference::warn_of_ignored;
use super::text::FinalAnswer;
use super::{
    AgentEvent, AskKey, Base, CallKey, Driver, DriverOutput, Features, Launch, Line, MessageKey, Reply, ResultWay,
    TurnOver, Wants, ask_user, edits, plan_entry, speech,
};
use crate::json::{Index, Object, Raw};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, FileEdit, Json, Text, ToolFacts, Usage};
use crate::protocol::question::{Answer, Ask, Asks, Place, Subject, one};
use crate::protocol::request::Settings;
use crate::protocol::scope::Scope;
use crate::protocol::words::{Action, Category, QuestionKind, StopReason, ToolState};

const AGENT: &str = "The demo agent";
const SESSION: &str = "5d3f0c1e-de30-4000-8000-000000000001";

#[derive(Debug, Default)]
pub(crate) struct Demo {
    base: Base,
    index: Index,
    wants: Wants,
    /// The number of messages so far, and whether the last one goes on.
    messages: u64,
    speaks: bool,
    answer: FinalAnswer,
    used: Usage,
    steers: u64,
}

impl Demo {
    pub(crate) fn new(base: Base) -> Demo {
        Demo { base, ..Demo::default() }
    }

    /// `None`: the line lacks a part that it needs.
    fn read(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let (name, value) = line.iter().next()?;
        match &*name {
            "session" => out.events.push(AgentEvent::Session {
                id: SessionId::new(SESSION),
                version: Some("demo".into()),
                model: Some("demo-model".into()),
            }),
            "say" | "think" => self.say(line, value.string()?, name == "think", out),
            "ask" => {
                let asks: Option<Asks> = value.elements()?.map(|raw| ask_user::ask(&raw.object()?).ok()).collect();
                let asks = asks.filter(|asks| !asks.is_empty())?;
                out.events.push(AgentEvent::Ask { key: AskKey(line.string("key")?), asks, call: None });
            }
            "tool" => self.tool(line, &value.object()?, out)?,
            "end" => self.end(line, &value.str()?, out)?,
            "plan" => {
                let entries = value.elements()?.filter_map(Raw::object);
                out.events.push(AgentEvent::Plan(entries.map(|entry| plan_entry(&entry, "text")).collect()));
            }
            "usage" => {
                self.used = self.used.plus(&usage(&value.object()?));
                out.events.push(AgentEvent::Usage(self.used));
            }
            "retry" => out.events.push(AgentEvent::Retrying { text: value.string()?.into(), retry_at: None }),
            "steers" => self.over(line, out)?,
            _ => return None,
        }
        Some(())
    }

    fn say(&mut self, line: &Object<'_>, piece: String, reasoning: bool, out: &mut DriverOutput) {
        let (done, parent) = (line.bool("done") == Some(true), parent(line));
        if !self.speaks {
            self.messages += 1;
        }
        if !reasoning && parent.is_none() {
            if !self.speaks {
                self.answer = FinalAnswer::default();
            }
            self.answer.push(&piece, self.wants.answer_bytes);
        }
        self.speaks = !done;
        out.events.push(speech(MessageKey(self.messages), parent, reasoning, piece, done));
    }

    fn tool(&mut self, line: &Object<'_>, tool: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let key = line.string("call")?;
        let category = Category::from_word(&tool.str("category")?)?;
        let name = tool.string("name").unwrap_or_default();
        let subject = tool.string("subject").unwrap_or_default();
        let title = super::title(category, &name, &subject);
        let places = tool.array("paths").filter_map(Raw::string);
        let locations: Vec<Place> = places.map(|path| Place { path: path.into(), line: None }).collect();
        let input = tool.raw("input").filter(|_| self.wants.full).map(|raw| Json::from(raw.value().to_owned()));
        let call = CallKey::of(&key);
        out.events.push(AgentEvent::Tool {
            call,
            category,
            name: name.clone(),
            title: Some(title.clone().into()),
            locations: locations.clone(),
            input,
            parent: parent(line),
        });
        if line.bool("asks") == Some(true) {
            let detail = tool.str("content").map_or(subject.clone(), |text| edits::signed("+", &text));
            let scope = Scope::of_request(category, Some(&name), Some(&subject));
            let text = format!("Allow {title}?");
            let subject = Subject::new(category, title, locations, detail);
            let asks = one(Ask::permission(subject, text, scope));
            out.events.push(AgentEvent::Ask { key: AskKey(key), asks, call: Some(call) });
        }
        Some(())
    }

    fn end(&mut self, line: &Object<'_>, call: &str, out: &mut DriverOutput) -> Option<()> {
        let state = match &*line.str("state")? {
            "completed" => ToolState::Completed,
            "failed" => ToolState::Failed,
            _ => ToolState::Denied,
        };
        let mut facts =
            ToolFacts { exit_code: line.number("exit_code").map(|code| code as i64), ..ToolFacts::default() };
        if let Some(changed) = line.object("changed") {
            let (path, action) = (changed.string("path")?, Action::from_word(&changed.str("action")?)?);
            let content = changed.str("content").filter(|_| self.wants.facts);
            let before = changed.str("before");
            let edit = content.and_then(|text| {
                // The player reports no old text of a file that is not text.
                let lines = match (action, &before) {
                    (Action::Created, _) => edits::signed("+", &text),
                    (Action::Modified, Some(before)) => edits::between(before, &text),
                    (Action::Modified, None) | (Action::Deleted, _) => return None,
                };
                FileEdit::new(path.clone(), lines)
            });
            facts.edits = edit.into_iter().collect();
            out.events.push(AgentEvent::Changed { path: path.into(), action });
        }
        let output = line.string("output").filter(|_| self.wants.full).map(Text::from);
        out.events.push(AgentEvent::ToolOver { call: CallKey::of(call), state, output, facts });
        Some(())
    }

    /// The player has not read a prompt that it does not count: the turn ends after it.
    fn over(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        if line.count("steers")? < self.steers {
            return Some(());
        }
        self.speaks = false;
        let answer = std::mem::take(&mut self.answer);
        out.events.push(AgentEvent::TurnOver(match &*line.str("over")? {
            "completed" => {
                let structured = line.raw("result").map(|raw| raw.value().to_owned().into());
                TurnOver::Completed { answer, structured, stop: StopReason::EndTurn }
            }
            "failed" => TurnOver::Failed(failed(&line.object("failure")?)?),
            _ => TurnOver::Interrupted,
        }));
        Some(())
    }
}

fn parent(line: &Object<'_>) -> Option<CallKey> {
    line.str("parent").map(|call| CallKey::of(&call))
}

fn usage(from: &Object<'_>) -> Usage {
    Usage {
        input_tokens: from.count("input_tokens"),
        output_tokens: from.count("output_tokens"),
        cached_input_tokens: from.count("cached_input_tokens"),
        cost_usd: from.number("cost_usd"),
        ..Usage::default()
    }
}

fn failed(from: &Object<'_>) -> Option<Failure> {
    let status = from.count("http_status").and_then(|status| u16::try_from(status).ok());
    let said = from.string("message");
    let failure = match &*from.str("code")? {
        "auth_required" => {
            Failure::credentials_refused("the demo agent", "choose a scenario that does not fail", status)
        }
        "context_exceeded" => Failure::context_exceeded(),
        "limit_reached" => {
            Failure::new(Code::LimitReached, "The agent reached its own limit or its model's: split the task.")
        }
        "model_not_found" => Failure::model_not_found(),
        "quota_exceeded" => Failure::quota_exceeded(),
        "provider_unavailable" => Failure::provider_unavailable(status),
        "rate_limited" => Failure::rate_limited(),
        "refused" => Failure::refused(),
        "agent_error" => Failure::reported(AGENT, said.clone()),
        _ => return None,
    };
    Some(failure.with_status(status).saying(said))
}

/// `None`: there is no answer.
fn answer(reply: &Reply) -> Option<Vec<String>> {
    let text = |text: &Text| text.unredacted().to_owned();
    match reply {
        Reply::Answer(Answer::Many(labels)) => Some(labels.iter().map(text).collect()),
        Reply::Answer(Answer::Null) | Reply::Declined(_) | Reply::NoUser => None,
        Reply::Answer(Answer::Decision(_) | Answer::Bool(_) | Answer::One(_) | Answer::Text(_)) => {
            Some(vec![reply.spoken()])
        }
        Reply::Allowed | Reply::AllowedWith(_) => Some(vec!["allowed".into()]),
        Reply::Denied(_) => Some(vec!["denied".into()]),
    }
}

fn keeper(limit: Limit) -> Keeper {
    match limit {
        Limit::MaxToolCalls | Limit::MaxTokens | Limit::MaxCostUsd | Limit::AllowedTools | Limit::DisallowedTools => {
            Keeper::Run
        }
        Limit::MaxTurns | Limit::McpServers => Keeper::Nobody,
        Limit::Permissions => Keeper::Agent,
    }
}

impl Driver for Demo {
    fn features(&self, _settings: &Settings) -> Features {
        let questions = QuestionKind::ALL.to_vec();
        let capabilities = Capabilities { resume: Some(false), steer: Some(true), ..Capabilities::usual(questions) };
        Features { result_way: ResultWay::Own, ..Features::usual(capabilities, keeper) }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        if settings.session_id.is_some() {
            return Err(Failure::not_resumable("this agent has no sessions to resume."));
        }
        warn_of_ignored(settings, self, out);
        self.wants = Wants::new(settings);
        let prompt = FromHost::Prompt(settings.prompt.clone());
        Ok(Launch { send: vec![prompt.line()], ..self.base.launch("demo", Vec::new(), Vec::new()) })
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let Line::Text(mut text) = line else { return out.unparsed() };
        let mut index = std::mem::take(&mut self.index);
        if index.read(&mut text).and_then(|line| self.read(&line, out)).is_none() {
            out.unparsed();
        }
        self.index = index;
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        out.send.push(FromHost::Answers(key.0.clone(), replies.iter().map(answer).collect()).line());
    }

    fn follow_up(&mut self, prompt: &str, _images: &[Image], out: &mut DriverOutput) {
        out.send.push(FromHost::Prompt(prompt.to_owned()).line());
    }

    fn steer(&mut self, prompt: &str, _images: &[Image], out: &mut DriverOutput) -> bool {
        self.steers += 1;
        out.send.push(FromHost::Steer(prompt.to_owned()).line());
        true
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        self.interrupt(out);
        true
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        out.send.push(FromHost::Interrupt.line());
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        out.send.push(FromHost::End.line());
        out.close_input = true;
    }

    fn exited(&mut self, _exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        let mut failure = Failure::exited(AGENT);
        failure.stderr_tail = Some(Box::new(stderr.clone())).filter(|_| !alive);
        TurnOver::Failed(failure)
    }
}

/// Plays the agent's side of a run, turn by turn. `works`: whether a prompt of a workflow gets the work that it asks
/// for instead.
pub(crate) fn play(scenario: &Scenario, works: bool, stage: &mut dyn DemoStage) -> End {
    let mut player = Player::new(stage);
    let Some(mut prompt) = player.prompt() else { return End::Exit(0) };
    player.send(PlayerLine::default().with("session", "true"));
    let mut working = false;
    loop {
        let part = if works { DemoPart::of(&prompt, player.stage) } else { None };
        // A correction in a workflow may be any prompt.
        working |= part.is_some();
        let outcome = match part {
            Some(part) => part.play(&mut player),
            None if working => DemoPart::Phase { number: 0, again: false }.play(&mut player),
            None => player.turn(scenario, prompt),
        };
        if let Err(TurnStop::Over(end)) = outcome {
            return end;
        }
        player.end_turn(outcome);
        match player.prompt() {
            Some(next) => prompt = next,
            None => return End::Exit(0),
        }
    }
}

//! The turns of a thread: their ends, those that Codex begins by itself, and the work that outlives them.
//!
//! Facts (measured on 0.169.0): a command that outlives its turn ends with an `item/completed` of its own. Codex begins
//! turns by itself as long as the thread has an active goal, which a tool of the model's sets. A sub-agent goes on when the
//! turn that started it is over, and begins no further turn of the thread.

use super::ask::CodexRequest;
use super::items::Spot;
use super::script::script_of;
use super::{Codex, START, errors};
use crate::agent::text::FinalAnswer;
use crate::agent::{AgentEvent, CallKey, DriverOutput, TurnOver, title};
use crate::json::{Object, Raw};
use crate::protocol::outbound::{Text, ToolFacts};
use crate::protocol::words::{Category, ToolState, TurnOrigin};
use std::collections::BTreeMap;

/// The maximum number of commands, and of sub-agents, that are remembered.
const OPEN: usize = 256;
/// The maximum length of a command's name, in bytes.
const NAME: usize = 200;

#[derive(Debug, Default)]
pub(super) struct OutlivingWork {
    /// The open commands of past turns, by their keys.
    left: BTreeMap<String, Text>,
    agents: BTreeMap<String, SubAgent>,
    goal: Option<Text>,
}

/// A sub-agent, whose work belongs to the call with the key of its thread.
#[derive(Debug)]
struct SubAgent {
    name: Text,
    works: bool,
    is_called: bool,
}

impl OutlivingWork {
    pub(super) fn item(&mut self, spot: &Spot<'_>, item: &Object<'_>, over: bool, out: &mut DriverOutput) {
        if item.is("type", "subAgentActivity") {
            self.sub_agent(spot, item, out);
            return;
        }
        let Some(id) = item.str("id").filter(|_| over && !self.left.is_empty()) else { return };
        if self.left.remove(&spot.key(&id)).is_some() {
            self.report(out);
        }
    }

    /// Each step of a sub-agent's life comes twice.
    fn sub_agent(&mut self, spot: &Spot<'_>, item: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let thread = item.string("agentThreadId")?;
        let (call, is_known) = (CallKey::of(&thread), self.agents.contains_key(&thread));
        let state = match item.str("kind").as_deref()? {
            "started" if !is_known && self.agents.len() < OPEN => {
                let path = item.string("agentPath").unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default();
                out.events.push(AgentEvent::Tool {
                    call,
                    category: Category::Agent,
                    name: "spawn_agent".into(),
                    title: Some(title(Category::Agent, "", name).into()),
                    locations: Vec::new(),
                    input: None,
                    parent: spot.parent,
                });
                self.agents.insert(thread, SubAgent { name: name.into(), works: true, is_called: true });
                self.report(out);
                return Some(());
            }
            "completed" => ToolState::Completed,
            "interrupted" => ToolState::Failed,
            _ => return None,
        };
        std::mem::take(&mut self.agents.get_mut(&thread)?.is_called).then_some(())?;
        out.events.push(AgentEvent::ToolOver { call, state, output: None, facts: ToolFacts::default() });
        Some(())
    }

    /// The thread may be a sub-agent's.
    pub(super) fn other_turn(&mut self, thread: &str, over: bool, out: &mut DriverOutput) {
        if let Some(agent) = self.agents.get_mut(thread).filter(|agent| agent.works == over) {
            agent.works = !over;
            self.report(out);
        }
    }

    pub(super) fn goal(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let goal = params.object("goal")?;
        self.goal = goal.string("objective").filter(|_| goal.is("status", "active")).map(Text::from);
        self.report(out);
        Some(())
    }

    /// Takes the open commands of a turn that is over. They outlive it only if it `is_completed`: Codex ends those of an
    /// interrupted one, and reports the end of none of them.
    fn turn_over(&mut self, open: Vec<(String, String)>, is_completed: bool, out: &mut DriverOutput) {
        if is_completed && !open.is_empty() && self.left.len() < OPEN {
            self.left.extend(open.into_iter().map(|(key, command)| (key, name(command))));
            self.report(out);
        }
    }

    fn report(&self, out: &mut DriverOutput) {
        let agents = self.agents.values().filter(|agent| agent.works).map(|agent| &agent.name);
        out.events.push(AgentEvent::Background(self.left.values().chain(agents).chain(&self.goal).cloned().collect()));
    }
}

/// A command's name: the beginning of its script.
fn name(command: String) -> Text {
    let mut name = script_of(&command).unwrap_or(command);
    name.truncate(name.floor_char_boundary(NAME));
    name.into()
}

impl Codex {
    /// A turn that no request of ours has begun is Codex's own.
    pub(super) fn turn_started(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let id = params.object("turn")?.string("id")?;
        let is_requested = self.requests.values().any(|method| *method == START);
        if !is_requested && self.running.as_ref() != Some(&id) {
            self.items.answer = None;
            self.running = Some(id);
            out.events.push(AgentEvent::TurnBegan(TurnOrigin::Agent));
        }
        Some(())
    }

    pub(super) fn turn_completed(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let done = params.object("turn")?;
        self.said = None;
        let id = done.string("id").unwrap_or_default();
        if self.running.as_ref() == Some(&id) {
            self.running = None;
        }
        let open = self.items.forget_calls(&id);
        self.background.turn_over(open, done.is("status", "completed"), out);
        // The turn's requests are over. Questions in a message stay open.
        let all = std::mem::take(&mut self.pending).into_iter();
        let (gone, kept): (BTreeMap<_, _>, _) =
            all.partition(|(_, (of, pending))| *of == id && !matches!(pending, CodexRequest::Async(_)));
        self.pending = kept;
        out.events.extend(gone.into_keys().map(|key| AgentEvent::AskWithdrawn { key }));
        match done.str("status").as_deref() {
            Some("completed") => {
                // A user message may have interrupted a message from the model.
                self.items.withdraw(out);
                let over = self.completed(&done);
                self.end(id, over, out);
            }
            Some("interrupted") => {
                self.items.forget_streams();
                out.events.push(AgentEvent::TurnOver(TurnOver::Interrupted));
            }
            _ => {
                self.items.withdraw(out);
                let failure = errors::failed(done.object("error").as_ref());
                out.fail(failure.until(self.resets_at));
            }
        }
        Some(())
    }

    fn completed(&mut self, done: &Object<'_>) -> TurnOver {
        let message = |item: &Object<'_>| item.is("type", "agentMessage") && !item.is("delivery", "async");
        let texts = || done.objects("items").filter(message).filter_map(|item| item.raw("text"));
        let last = || texts().filter(|text| text.is_string()).last().and_then(Raw::string);
        let answer = self.items.answer.take().or_else(|| last().map(FinalAnswer::from)).unwrap_or_default();
        TurnOver::completed(answer)
    }

    /// The run continues while an answer is open or Codex has not accepted one.
    pub(super) fn end(&mut self, id: String, over: TurnOver, out: &mut DriverOutput) {
        let asks = self.pending.values().any(|(_, pending)| matches!(pending, CodexRequest::Async(_)));
        let unheard = self.unsent.is_some() || self.requests.values().any(|method| *method == START);
        if (asks || unheard) && !self.leaving {
            self.held = Some((id, over));
            return;
        }
        out.events.push(AgentEvent::TurnOver(over));
    }
}

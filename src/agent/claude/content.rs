//! The content of messages: the model's texts, its tool calls, and their results.

use super::tools::{self, CallKind};
use super::{Claude, errors, usage};
use crate::agent::{AgentEvent, CallKey, DriverOutput, plan_entry, tool_input};
use crate::json::{Object, Raw};
use crate::protocol::outbound::{Json, Text, ToolFacts};
use crate::protocol::words::{Action, ToolState};

impl Claude {
    pub(super) fn assistant(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let [error, message, parent] = line.raws(["error", "message", "parent_tool_use_id"]);
        if let Some(error) = error.and_then(|_| errors::api_error(line)) {
            // Claude Code writes this message itself. The result that follows usually repeats it.
            self.api_error = Some(error);
            return Some(());
        }
        let parent = parent.and_then(Raw::str).map(|call| CallKey::of(&call));
        let [id, content, used] = message.and_then(Raw::object)?.raws(["id", "content", "usage"]);
        let id = id.and_then(Raw::str).unwrap_or_default();
        if parent.is_none() {
            self.model_calls.message(&id, out);
            self.context = used.and_then(Raw::object).and_then(|used| usage::context(&used)).or(self.context);
        }
        let mut read = Some(());
        for block in content.and_then(Raw::elements)? {
            let block = block.object();
            read = read.and(block.and_then(|block| self.block(&id, parent, &block, out)));
        }
        read
    }

    fn block(&mut self, id: &str, parent: Option<CallKey>, block: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let [kind, text, thinking] = block.raws(["type", "text", "thinking"]);
        let (whole, thought) = match &*kind.and_then(Raw::str)? {
            "text" => (text, false),
            "thinking" => (thinking, true),
            "tool_use" => return self.tool_use(block, parent, out),
            _ => return Some(()),
        };
        let whole = whole.filter(|raw| raw.is_string())?;
        self.speech.whole_block(id, parent, thought, whole, out);
        Some(())
    }

    fn tool_use(&mut self, block: &Object<'_>, parent: Option<CallKey>, out: &mut DriverOutput) -> Option<()> {
        let [call, name, input] = block.raws(["id", "name", "input"]);
        let (call, name) = (call.and_then(Raw::str)?, name.and_then(Raw::str)?);
        self.calls.begin(&call, &name, self.names.is_tool(&name));
        let whole = input.filter(|_| self.wants.full).map(|input| Json::from(input.value().to_owned()));
        let input = input.and_then(Raw::object);
        match &*name {
            // These calls appear as questions, and as the result of the run.
            "AskUserQuestion" | "StructuredOutput" => return Some(()),
            name if self.names.is_tool(name) => return Some(()),
            "TodoWrite" => {
                out.events.extend(input.as_ref().map(plan));
                return Some(());
            }
            // The request for permission, which follows, may lack the plan.
            "ExitPlanMode" => self.plan = input.as_ref().and_then(|input| input.string("plan")),
            _ => {}
        }
        out.events.push(AgentEvent::Tool {
            call: CallKey::of(&call),
            category: tool_input::category(&name),
            name: (*name).to_owned(),
            title: Some(tool_input::title(&name, input.as_ref()).into()),
            locations: tool_input::locations(input.as_ref()),
            input: whole,
            parent,
        });
        Some(())
    }

    pub(super) fn user(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let message = line.object("message")?;
        let content = message.raw("content")?;
        // Text that Claude Code itself adds on the user's side.
        if content.is_string() {
            return Some(());
        }
        let mut read = Some(());
        for block in content.elements()? {
            let block = block.object();
            read = read.and(block.and_then(|block| match &*block.str("type")? {
                "tool_result" => self.tool_result(&block, line, out),
                _ => Some(()),
            }));
        }
        read
    }

    fn tool_result(&mut self, block: &Object<'_>, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let call = block.str("tool_use_id")?;
        let failed = block.bool("is_error") == Some(true);
        let (kind, denied) = self.calls.end(&call);
        if !failed {
            out.events.extend(changed(kind, line));
            if let Some(result) = line.object("tool_use_result") {
                self.work.scheduled(&result, out);
            }
        }
        if kind == CallKind::Hidden {
            if failed {
                self.mismatches = block.str("content").and_then(|text| errors::mismatches(&text)).unwrap_or_default();
            }
            return Some(());
        }
        let state = match (denied, failed) {
            (true, _) => ToolState::Denied,
            (false, true) => ToolState::Failed,
            (false, false) => ToolState::Completed,
        };
        let output = self.wants.full.then(|| tools::output(block)).flatten().map(Text::from);
        let facts = facts(state, block, line, self.wants.facts);
        out.events.push(AgentEvent::ToolOver { call: CallKey::of(&call), state, output, facts });
        Some(())
    }
}

fn facts(state: ToolState, block: &Object<'_>, line: &Object<'_>, wants_edits: bool) -> ToolFacts {
    match state {
        ToolState::Failed => ToolFacts { exit_code: tools::exit_code(block), ..ToolFacts::default() },
        ToolState::Completed => {
            let result = line.object("tool_use_result");
            let edits = result.as_ref().filter(|_| wants_edits).and_then(tools::edit).into_iter().collect();
            ToolFacts { edits, exit_code: result.as_ref().is_some_and(tools::is_success).then_some(0) }
        }
        ToolState::Denied | ToolState::Started | ToolState::Cancelled => ToolFacts::default(),
    }
}

fn plan(input: &Object<'_>) -> AgentEvent {
    AgentEvent::Plan(input.objects("todos").map(|todo| plan_entry(&todo, "content")).collect())
}

fn changed(kind: CallKind, line: &Object<'_>) -> Option<AgentEvent> {
    let fields: &[&str] = match kind {
        CallKind::File => &["filePath"],
        CallKind::Notebook => &["notebook_path", "filePath"],
        CallKind::Hidden | CallKind::Other => return None,
    };
    let detail = line.object("tool_use_result")?;
    let path = fields.iter().find_map(|field| detail.string(field))?;
    let action = if detail.is("type", "create") { Action::Created } else { Action::Modified };
    Some(AgentEvent::Changed { path: path.into(), action })
}

//! pi's events: the model's texts, the calls of its tools, and the ends of turns.

use super::calls::locations;
use super::{ACCOUNT, Pi};
use crate::agent::provider::{self, Evidence};
use crate::agent::text::FinalAnswer;
use crate::agent::{AgentEvent, CallKey, DriverOutput, MessageKey, TurnOver, edits, error_text, tool_input};
use crate::json::{Object, Raw, SplitPair};
use crate::protocol::failure::Failure;
use crate::protocol::outbound::{FileEdit, Text, ToolFacts, Usage};
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{Action, Category, McpState, StopReason, ToolState};

#[derive(Debug)]
pub(super) struct Block {
    /// Its place in the message.
    at: u64,
    key: MessageKey,
    kind: BlockKind,
    pair: SplitPair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thought,
    /// The input of a tool, which is shown only when it is complete.
    Input,
}

impl Block {
    fn says(&self, piece: String, done: bool) -> AgentEvent {
        let (message, piece, reasoning) = (self.key, piece.into(), self.kind == BlockKind::Thought);
        match self.kind {
            BlockKind::Input => AgentEvent::Partial { whole: message, piece, done },
            BlockKind::Text | BlockKind::Thought => AgentEvent::Text { message, piece, done, reasoning, parent: None },
        }
    }
}

impl Pi {
    pub(super) fn piece(&mut self, update: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let kind = match &*update.str("type")? {
            "text_delta" => BlockKind::Text,
            "thinking_delta" => BlockKind::Thought,
            "toolcall_delta" => BlockKind::Input,
            _ => return Some(()),
        };
        let (at, piece) = (update.count("contentIndex")?, update.raw("delta").and_then(Raw::literal)?);
        if self.block.as_ref().is_none_or(|block| block.at != at) {
            self.end_block(out);
            let key = MessageKey::next(&mut self.messages);
            self.block = Some(Block { at, key, kind, pair: SplitPair::default() });
        }
        let block = self.block.as_mut()?;
        let piece = block.pair.join(piece).into_owned();
        out.events.push(block.says(piece, false));
        Some(())
    }

    pub(super) fn end_block(&mut self, out: &mut DriverOutput) {
        let Some(mut block) = self.block.take() else { return };
        let rest = block.pair.finish().to_owned();
        out.events.push(block.says(rest, true));
    }

    /// The message may be of the user or of a tool.
    pub(super) fn message(&mut self, message: &Object<'_>, out: &mut DriverOutput) {
        let used = message.object("usage");
        if message.is("role", "assistant") {
            let millis = |name: &str| message.number(name);
            self.ended_at = millis("timestamp").map(|began| (began + millis("durationMs").unwrap_or(0.0)) / 1000.0);
            let is_broken = is_broken(message);
            self.failed = is_broken.then(|| message.string("errorMessage").unwrap_or_default());
            if let Some(shown) = self.block.take_if(|block| is_broken && block.kind != BlockKind::Input) {
                out.events.push(AgentEvent::Withdrawn { message: shown.key });
            }
            self.end_block(out);
            self.stop = Some(match message.str("stopReason").as_deref() {
                Some("stop" | "toolUse") => StopReason::EndTurn,
                Some("length") => StopReason::MaxTokens,
                _ => StopReason::Other,
            });
            if let Some(text) = message.texts("content").filter(|text| !text.trim().is_empty()) {
                self.answer.replace(&text, self.wants.answer_bytes);
            }
            let context = used.as_ref().and_then(|used| used.count("totalTokens")).filter(|total| *total > 0);
            self.used.context_tokens = context.or(self.used.context_tokens);
        }
        used.iter().for_each(|used| self.count(used, out));
    }

    pub(super) fn count(&mut self, used: &Object<'_>, out: &mut DriverOutput) {
        let count = |name: &str| used.count(name).unwrap_or(0);
        let cost = used.object("cost").and_then(|cost| cost.number("total")).filter(|_| self.is_priced);
        let cached = (count("cacheRead"), count("cacheWrite"));
        self.used = self.used.plus(&Usage::of_call(count("input"), cached, count("output"), cost));
        out.events.push(AgentEvent::Usage(self.used));
    }

    /// pi's own times tell when the retry comes.
    pub(super) fn retries(&self, event: &Object<'_>, out: &mut DriverOutput) {
        let status = provider::status_in(&event.string("errorMessage").unwrap_or_default());
        let number = |name: &str| event.number(name).unwrap_or(0.0);
        let (attempt, most, delay) = (number("attempt"), number("maxAttempts"), number("delayMs") / 1000.0);
        let why = provider::retried_after(status);
        let text = format!("Retrying after {why}: attempt {attempt} of {most} in {delay:.1} s").into();
        let retry_at = self.ended_at.and_then(|ended| UtcTime::of_seconds(ended + delay));
        out.events.push(AgentEvent::Retrying { text, retry_at });
    }

    pub(super) fn tool(&mut self, event: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let (id, name, raw) = (event.str("toolCallId")?, event.string("toolName")?, event.raw("args")?);
        let (input, category) = (raw.object()?, tool_input::category(&name));
        let locations = locations(&name, &input);
        if let (Category::Edit, [file]) = (category, &locations[..]) {
            self.changes.insert(&id, (file.path.clone(), Action::Modified));
        }
        out.events.push(AgentEvent::Tool {
            call: CallKey::of(&id),
            category,
            title: Some(tool_input::title(&name, Some(&input)).into()),
            name,
            locations,
            input: self.wants.full.then(|| raw.value().to_owned().into()),
            parent: event.str("parentToolCallId").map(|parent| CallKey::of(&parent)),
        });
        Some(())
    }

    pub(super) fn tool_over(&mut self, event: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let id = event.str("toolCallId")?;
        let state = match (self.denied.remove(&id), event.bool("isError")) {
            (Some(()), _) => ToolState::Denied,
            (None, Some(true)) => ToolState::Failed,
            (None, _) => ToolState::Completed,
        };
        let changed = self.changes.remove(&id).filter(|_| state == ToolState::Completed);
        let result = event.object("result");
        let part = |name: &str| result.as_ref().and_then(|result| result.object(name));
        let patch = part("details").filter(|_| self.wants.facts).and_then(|details| details.string("patch"));
        let edit = |((path, _), patch): (&(Text, Action), String)| FileEdit::new(path.clone(), edits::unified(&patch));
        let edits = changed.as_ref().zip(patch).and_then(edit).into_iter().collect();
        let exit_code =
            part("structuredContent").and_then(|command| command.number("exit_code")).map(|code| code as i64);
        let output = result.as_ref().filter(|_| self.wants.full).and_then(|result| result.texts("content"));
        out.events.extend(changed.map(|(path, action)| AgentEvent::Changed { path, action }));
        out.events.push(AgentEvent::ToolOver {
            call: CallKey::of(&id),
            state,
            output: output.map(Text::from),
            facts: ToolFacts { exit_code, edits },
        });
        Some(())
    }

    pub(super) fn settled(&mut self, aborted: bool, out: &mut DriverOutput) {
        self.works = false;
        let answer: FinalAnswer = std::mem::take(&mut self.answer);
        let over = match (aborted, self.failed.take()) {
            (true, _) => TurnOver::Interrupted,
            (false, Some(said)) => TurnOver::Failed(failed(&said)),
            (false, None) => {
                TurnOver::Completed { answer, structured: None, stop: self.stop.unwrap_or(StopReason::Other) }
            }
        };
        match self.unheard {
            0 => self.end(over, out),
            1.. => self.held = Some(over),
        }
    }
}

/// Whether the message is not an answer of the model.
pub(super) fn is_broken(message: &Object<'_>) -> bool {
    matches!(message.str("stopReason").as_deref(), Some("error" | "aborted"))
}

/// The failure that pi reports with these words, such as `401: {"message": …}`.
pub(super) fn failed(said: &str) -> Failure {
    let words = said.split_once(": ").map_or(said, |(_, words)| words);
    provider::failure(ACCOUNT, &Evidence { text: said, ..Evidence::default() }, error_text::error(words))
}

/// Reports the servers in pi's notice about those that it cannot use, a line for each.
pub(super) fn server_states(notice: &str, out: &mut DriverOutput) {
    let Some(rest) = notice.strip_prefix("MCP servers need attention:") else { return };
    let named = rest.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
    let failed = |(name, said): (&str, &str)| AgentEvent::McpServer {
        name: name.into(),
        state: McpState::Failed,
        said: Some(said.into()),
    };
    out.events.extend(named.map(failed));
}

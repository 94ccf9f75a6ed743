//! Handles the end of a turn.

use super::{Claude, errors, usage};
use crate::agent::text::FinalAnswer;
use crate::agent::{AgentEvent, DriverOutput, TurnOver};
use crate::json::{Chunks, Object, Raw};
use crate::protocol::outbound::Usage;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::StopReason;

impl Claude {
    pub(super) fn result(&mut self, message: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let subtype = message.str("subtype");
        // `is_error` decides if it is present.
        let failed = match (message.bool("is_error"), &subtype) {
            (Some(failed), _) => failed,
            (None, Some(subtype)) => subtype.starts_with("error"),
            (None, None) => message.raw("result").filter(|raw| raw.is_string()).map(|_| false)?,
        };
        self.speech.forget_streams();
        self.steering.turn_ends();
        // After the last call within Claude Code's own limit, this result ends the run.
        if subtype.as_deref() != Some("error_max_turns") {
            self.model_calls.over(out);
        }
        out.events.push(AgentEvent::Usage(self.usage(message)));
        let over = if failed {
            let unknown_session = self.resuming && !self.session_known;
            let mismatches = std::mem::take(&mut self.mismatches);
            match errors::classify(message, self.api_error.take(), mismatches, unknown_session) {
                TurnOver::Failed(failure) => TurnOver::Failed(failure.until(self.resets_at)),
                over @ (TurnOver::Completed { .. } | TurnOver::Interrupted) => over,
            }
        } else {
            self.completed(message)
        };
        // A prompt that came too late for the turn begins another one, which belongs to ours.
        match self.steering.waits() {
            true => out.events.push(AgentEvent::Note("The turn goes on with a prompt that waits".into())),
            false => out.events.push(AgentEvent::TurnOver(over)),
        }
        Some(())
    }

    pub(super) fn rate_limit(&mut self, message: &Object<'_>) -> Option<()> {
        let info = message.object("rate_limit_info")?;
        let resets_at = info.number("resetsAt").and_then(UtcTime::of_seconds);
        self.resets_at = resets_at.filter(|_| info.is("status", "rejected"));
        Some(())
    }

    /// Reports the tokens of a response: the input at its beginning, and the output at its end.
    pub(super) fn count_tokens(&mut self, line: &Object<'_>, out: &mut DriverOutput) {
        let Some(streamed) = &mut self.streamed else { return };
        let Some(event) = line.object("event") else { return };
        let used = match event.str("type").as_deref() {
            Some("message_start") => {
                let used = event.object("message").map(|message| usage::of_turn(&message)).unwrap_or_default();
                Usage { output_tokens: None, ..used }
            }
            Some("message_delta") => Usage { output_tokens: usage::of_turn(&event).output_tokens, ..Usage::default() },
            _ => return,
        };
        *streamed = streamed.plus(&used);
        out.events.push(AgentEvent::Usage(self.used.plus(streamed)));
    }

    /// In a resumed session, the sums over the process include the usage of earlier runs (seen with 2.1.330). In that
    /// case the turns are added up, and the cost is known only if the cost of the earlier runs is known.
    fn usage(&mut self, result: &Object<'_>) -> Usage {
        self.streamed = self.streamed.map(|_| Usage::default());
        self.used = self.used.plus(&usage::of_turn(result));
        let used = match usage::of_process(result).filter(|_| !self.resuming) {
            Some(usage) => usage,
            None => Usage { cost_usd: self.cost(result.number("total_cost_usd")), ..self.used },
        };
        Usage { context_tokens: self.context, context_window: usage::window(result), ..used }
    }

    /// A sum that does not exceed the earlier cost does not include it.
    fn cost(&self, sum: Option<f64>) -> Option<f64> {
        match (self.resuming, self.cost_before) {
            (false, _) => sum,
            (true, None) => None,
            (true, Some(before)) => sum.map(|sum| if sum <= before { sum } else { sum - before }),
        }
    }

    fn completed(&self, result: &Object<'_>) -> TurnOver {
        let answer = |raw: Raw<'_>| FinalAnswer::collect(Chunks::new(raw.get()), self.wants.answer_bytes);
        let structured = result.raw("structured_output");
        TurnOver::Completed {
            answer: result.raw("result").map(answer).unwrap_or_default(),
            structured: structured.map(|raw| raw.value().to_owned().into()),
            stop: match result.str("stop_reason").as_deref() {
                None | Some("end_turn") => StopReason::EndTurn,
                // The API treats a structured result as a tool call.
                Some("tool_use") if structured.is_some() => StopReason::EndTurn,
                Some("max_tokens") => StopReason::MaxTokens,
                Some("refusal") => StopReason::Refusal,
                Some(_) => StopReason::Other,
            },
        }
    }
}

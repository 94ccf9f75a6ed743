//! Tests of the driver's state and of streamed pieces.

use super::Claude;
use crate::agent::provider_samples::SAMPLES;
use crate::agent::{AgentEvent, Base, Driver, DriverOutput, Line, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::text::Text;
use crate::protocol::utc::UtcTime;
use serde_json::{Value, json};

fn events(claude: &mut Claude, line: &Value) -> Vec<AgentEvent> {
    let mut out = DriverOutput::default();
    claude.line(Line::Text(line.to_string().into()), &mut out);
    out.events
}

#[test]
fn a_failure_of_the_provider_is_that_of_the_common_table() {
    for sample in SAMPLES {
        let mut claude = Claude::new(Base::command("claude"));
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": sample.text,
            "api_error_status": sample.status});
        let events = events(&mut claude, &result);
        let Some(AgentEvent::TurnOver(TurnOver::Failed(failure))) = events.last() else { panic!("{events:?}") };
        sample.is(failure);
    }
}

#[test]
fn the_end_of_a_limit_is_the_time_to_go_on() {
    let failed = |status: &str, http_status: u16, said: &str| {
        let mut claude = Claude::new(Base::command("claude"));
        let info = json!({"status": status, "resetsAt": 1_771_581_600, "rateLimitType": "five_hour"});
        events(&mut claude, &json!({"type": "rate_limit_event", "rate_limit_info": info}));
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": said,
            "api_error_status": http_status});
        let events = events(&mut claude, &result);
        let Some(AgentEvent::TurnOver(TurnOver::Failed(failure))) = events.last() else { panic!("{events:?}") };
        failure.retry_at
    };
    let at = UtcTime::of_seconds(1_771_581_600.0);
    assert_eq!(failed("rejected", 429, "You have reached your usage limit"), at);
    assert_eq!(failed("allowed", 429, "You have reached your usage limit|1771581600"), at);
    assert_eq!(failed("allowed", 429, "You have reached your usage limit"), None);
    assert_eq!(failed("rejected", 500, "Something broke"), None);
}

fn content(kind: &str, id: &str, parent: Option<&str>, blocks: &Value) -> Value {
    json!({"type": kind, "message": {"id": id, "content": blocks}, "parent_tool_use_id": parent})
}

fn streamed(parent: Option<&str>, event: &Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": parent})
}

fn round(number: usize, parent: Option<&str>) -> Vec<Value> {
    let (id, call) = (format!("msg_{number}"), format!("call_{number}"));
    let delta = |delta: Value| streamed(parent, &json!({"type": "content_block_delta", "delta": delta}));
    vec![
        streamed(parent, &json!({"type": "message_start", "message": {"id": id}})),
        delta(json!({"type": "text_delta", "text": "Hel"})),
        delta(json!({"type": "text_delta", "text": "lo"})),
        content("assistant", &id, parent, &json!([{"type": "text", "text": "Hello"}])),
        streamed(parent, &json!({"type": "content_block_stop"})),
        delta(json!({"type": "input_json_delta", "partial_json": "{}"})),
        content("assistant", &id, parent, &json!([{"type": "tool_use", "id": call, "name": "Write", "input": {}}])),
        streamed(parent, &json!({"type": "content_block_stop"})),
        streamed(parent, &json!({"type": "message_stop"})),
        json!({"type": "system", "subtype": "permission_denied", "tool_use_id": call}),
        content("user", "", parent, &json!([{"type": "tool_result", "tool_use_id": call, "content": "No."}])),
        content("assistant", &id, parent, &json!([{"type": "text", "text": "Bye"}])),
    ]
}

#[test]
fn nothing_is_kept_of_finished_calls() {
    let mut claude = Claude::new(Base::command("claude"));
    for number in 0..50 {
        let parent = format!("parent_{number}");
        for line in round(number, None).iter().chain(&round(number, Some(&parent))) {
            assert!(!events(&mut claude, line).iter().any(|event| matches!(event, AgentEvent::Unparsed)), "{line}");
        }
        assert!(claude.calls.len() == 0 && claude.speech.is_empty(), "{claude:?}");
    }
}

#[test]
fn a_streamed_block_is_not_repeated_and_another_one_has_another_key() {
    let mut claude = Claude::new(Base::command("claude"));
    let said: Vec<(u64, Text, bool)> = round(1, None)
        .iter()
        .flat_map(|line| events(&mut claude, line))
        .filter_map(|event| match event {
            AgentEvent::Text { message, piece, done, .. } => Some((message.0, piece, done)),
            AgentEvent::Partial { whole, piece, done } => Some((whole.0, piece, done)),
            _ => None,
        })
        .collect();
    let expected =
        [(1, "Hel", false), (1, "lo", false), (1, "", true), (2, "{}", false), (2, "", true), (3, "Bye", true)];
    assert_eq!(said, expected.map(|(key, piece, done)| (key, piece.into(), done)));
}

#[test]
fn a_block_whose_pieces_cut_a_character_is_not_withdrawn() {
    let delta = |literal: &str| {
        streamed(None, &json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "TEXT"}}))
            .to_string()
            .replace("TEXT", literal)
    };
    let start = streamed(None, &json!({"type": "message_start", "message": {"id": "m"}})).to_string();
    let whole = content("assistant", "m", None, &json!([{"type": "text", "text": "a\u{1f600}b"}])).to_string();
    let mut claude = Claude::new(Base::command("claude"));
    let mut said = Vec::new();
    for line in [start, delta(r"a\ud83d"), delta(r"\ude00"), whole] {
        let mut out = DriverOutput::default();
        claude.line(Line::Text(line.into()), &mut out);
        said.extend(out.events.into_iter().filter_map(|event| match event {
            AgentEvent::Text { message, piece, .. } => Some((message.0, piece.unredacted().to_owned())),
            AgentEvent::Withdrawn { message } => panic!("{message:?} is withdrawn"),
            _ => None,
        }));
    }
    assert_eq!(said, ["a", "\u{1f600}", "b"].map(|piece| (1, piece.to_owned())));
}

#[test]
fn calls_without_a_result_do_not_pile_up() {
    let mut claude = Claude::new(Base::command("claude"));
    for number in 0..5000 {
        let call = format!("call_{number}");
        let block = json!([{"type": "tool_use", "id": call, "name": "Write", "input": {}}]);
        events(&mut claude, &content("assistant", "m", None, &block));
        events(&mut claude, &json!({"type": "system", "subtype": "permission_denied", "tool_use_id": call}));
    }
    assert!(claude.calls.len() <= 2 * 1024, "{}", claude.calls.len());
}

#[test]
fn a_result_of_a_refused_task_is_refused() {
    let mut claude = Claude::new(Base::command("claude"));
    let refused =
        json!({"type": "result", "subtype": "success", "is_error": true, "stop_reason": "refusal", "result": "No."});
    let code = events(&mut claude, &refused).into_iter().find_map(|event| match event {
        AgentEvent::TurnOver(TurnOver::Failed(failure)) => Some(failure.code),
        _ => None,
    });
    assert_eq!(code, Some(Code::Refused));
}

/// Claude Code requests a stalled answer again, as a stream or whole, and reports no retry.
#[test]
fn a_stalled_answer_is_withdrawn_when_another_one_begins() {
    let delta = |text: &str| {
        let delta = json!({"type": "text_delta", "text": text});
        streamed(None, &json!({"type": "content_block_delta", "delta": delta}))
    };
    let start = |id: &str| streamed(None, &json!({"type": "message_start", "message": {"id": id}}));
    let whole = content("assistant", "msg_2", None, &json!([{"type": "text", "text": "I am done"}]));
    for again in [vec![whole.clone()], vec![start("msg_2"), delta("I am "), whole.clone()]] {
        let mut claude = Claude::new(Base::command("claude"));
        let lines = [vec![start("msg_1"), delta("I am ")], again].concat();
        let said: Vec<String> = lines
            .iter()
            .flat_map(|line| events(&mut claude, line))
            .filter_map(|event| match event {
                AgentEvent::Text { message, piece, .. } => Some(format!("{} {}", message.0, piece.shown())),
                AgentEvent::Withdrawn { message } => Some(format!("{} withdrawn", message.0)),
                _ => None,
            })
            .collect();
        assert_eq!(said[..2], ["1 I am ", "1 withdrawn"]);
        assert_eq!(said[2..].iter().map(|text| text.trim_start_matches("2 ")).collect::<String>(), "I am done");
    }
}

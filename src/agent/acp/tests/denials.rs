//! Agents that end their turn at a denial.

use super::{hear, in_a_turn};
use crate::agent::acp::Acp;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::acp::profile::GENERIC;
use crate::agent::{AgentEvent, Driver, DriverOutput, Reply, TurnOver};
use crate::protocol::words::ToolState;
use serde_json::{Value, json};

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

fn says(driver: &mut Acp, text: &str) {
    let content = json!({"type": "text", "text": text});
    hear(driver, &update(&json!({"sessionUpdate": "agent_message_chunk", "content": content})));
}

fn denied() -> Acp {
    let mut driver = in_a_turn(&GENERIC);
    says(&mut driver, "I will run it.");
    let options = json!([{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]);
    let call = json!({"toolCallId": "c", "title": "x", "kind": "execute", "rawInput": {"command": "make"}});
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let (_, events) = hear(
        &mut driver,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}),
    );
    let Some(AgentEvent::Ask { key, .. }) = events.last() else { panic!("{events:?}") };
    driver.answer(key, &[Reply::Denied(None)], &mut DriverOutput::default());
    let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"});
    hear(&mut driver, &update(&failed));
    driver
}

fn ended(reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": reason}})
}

#[test]
fn the_model_is_told_of_a_denial_that_ended_the_turn() {
    let error = |code: i64, text: &str| json!({"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": text}});
    // Of Qwen, Droid and Kilo; of Codex; with Copilot's notice; as errors.
    for (notice, end) in [
        (None, ended("end_turn")),
        (None, ended("cancelled")),
        (Some("Info: Operation cancelled by user"), ended("end_turn")),
        (None, error(-32800, "cancelled")),
        (None, error(-32603, "Request was rejected by the user")),
    ] {
        let mut driver = denied();
        if let Some(notice) = notice {
            says(&mut driver, notice);
        }
        let (sent, events) = hear(&mut driver, &end);
        assert!(!events.iter().any(|event| matches!(event, AgentEvent::TurnOver(_))), "{end}: {events:?}");
        let text = sent[0]["params"]["prompt"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("The user denied permission for: Run make\n"), "{text}");
    }
}

#[test]
fn an_agent_that_goes_on_after_a_denial_is_not_told_again() {
    for text in ["Then I do without it.", "Info: Operation cancelled by user"] {
        let mut driver = denied();
        says(&mut driver, text);
        says(&mut driver, " Done.");
        let (sent, events) = hear(&mut driver, &ended("end_turn"));
        let Some(AgentEvent::TurnOver(TurnOver::Completed { answer, .. })) = events.last() else {
            panic!("{events:?}")
        };
        assert!(sent.is_empty());
        let wanted = if text.starts_with("Info") { " Done." } else { "Then I do without it. Done." };
        assert_eq!(format!("{answer:?}").matches(wanted).count(), 1, "{answer:?}");
        assert!(!format!("{answer:?}").contains("Operation"), "{answer:?}");
    }
    // Without a denial, the same end is one of the agent.
    let (_, events) = hear(&mut in_a_turn(&GENERIC), &ended("cancelled"));
    assert!(matches!(events.last(), Some(AgentEvent::TurnOver(TurnOver::Interrupted))), "{events:?}");
}

/// The lines are those of OpenCode, whose configuration has no tool `bash`.
#[test]
fn a_call_that_the_agent_itself_refuses_is_denied() {
    let mut driver = in_a_turn(&OPENCODE);
    let error = "Model tried to call unavailable tool 'bash'. Available tools: edit, glob.";
    for told in [
        json!({"sessionUpdate": "tool_call", "title": "bash", "kind": "execute", "status": "pending", "rawInput": {"cwd": "/w"}}),
        json!({"sessionUpdate": "tool_call_update", "status": "in_progress", "kind": "other", "title": "invalid",
            "rawInput": {"tool": "bash", "error": error}}),
        json!({"sessionUpdate": "tool_call_update", "status": "completed", "title": "Invalid Tool",
            "rawOutput": {"output": format!("The arguments provided to the tool are invalid: {error}")}}),
    ] {
        let mut told = told;
        told["toolCallId"] = json!("call_2_0");
        let (_, events) = hear(&mut driver, &update(&told));
        let states: Vec<ToolState> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::ToolOver { state, .. } => Some(*state),
                _ => None,
            })
            .collect();
        let is_last = told["status"] == "completed";
        assert_eq!(states, if is_last { vec![ToolState::Denied] } else { vec![] }, "{events:?}");
    }
}

//! Results that the agent refuses before they reach our tool.

use super::{asking, hear};
use crate::agent::AgentEvent;
use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
use crate::protocol::schema::Mismatch;
use serde_json::json;

#[test]
fn a_result_that_gemini_refuses_itself_is_reported_with_its_reason() {
    let update = |id: &str, text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "other", "status": "failed",
            "content": content});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    };
    let own = "mcp_spektacular-1a2b_submit_result__1";
    for (text, path, told) in [
        ("params/n must be integer", "/n", "must be integer"),
        ("params must have required property 'n'", "", "must have required property 'n'"),
        ("It is refused.", "", "It is refused."),
    ] {
        let (_, events) = hear(&mut asking(&GEMINI), &update(own, text));
        let [AgentEvent::ResultRefused(mismatch)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(*mismatch, Mismatch { path: path.into(), text: told.into() });
    }
    let (_, events) = hear(&mut asking(&GEMINI), &update("mcp_other_submit_result__1", "params/n must be integer"));
    assert!(matches!(events.as_slice(), [AgentEvent::Tool { .. }, AgentEvent::ToolOver { .. }]), "{events:?}");
}

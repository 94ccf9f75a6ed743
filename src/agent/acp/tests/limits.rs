//! The limits of what an agent can make the driver keep or say.

use super::{failure, hear, in_a_turn};
use crate::agent::acp::Acp;
use crate::agent::acp::profile::{GEMINI, OPENCODE};
use crate::agent::{AgentEvent, Driver, Reply, Turn};
use crate::protocol::question::Kind;
use serde_json::{Value, json};

#[test]
fn an_agent_is_told_of_20_denied_calls_and_to_continue_20_times() {
    let denied = |driver: &mut Acp, call: &str| {
        let options = json!([{"optionId": "once", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
        let call = json!({"toolCallId": call, "title": format!("Do {call}."), "kind": "execute"});
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let ask = json!({"jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params});
        let (_, events) = hear(driver, &ask);
        let key = events.iter().find_map(|event| match event {
            AgentEvent::Ask { key, .. } => Some(key.clone()),
            _ => None,
        });
        driver.answer(&key.unwrap(), &[Reply::Denied(None)], &mut Turn::default());
    };
    let end = |driver: &mut Acp, id: u64| {
        hear(driver, &json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}}))
    };
    for calls in [20, 21] {
        let mut driver = in_a_turn(&OPENCODE);
        (0..calls).for_each(|call| denied(&mut driver, &format!("c{call}")));
        let (sent, _) = end(&mut driver, 3);
        let text = sent[0]["params"]["prompt"][0]["text"].as_str().unwrap();
        assert_eq!(text.matches("The user denied permission for: ").count(), 20, "{text}");
    }
    let mut driver = in_a_turn(&OPENCODE);
    for turn in 0..=20 {
        denied(&mut driver, &format!("t{turn}"));
        let (sent, events) = end(&mut driver, 3 + turn);
        assert_eq!((sent.len(), failure(&events).is_some()), if turn < 20 { (1, false) } else { (0, true) }, "{turn}");
    }
}

#[test]
fn lists_have_a_limit() {
    let labels: Vec<String> = (0..1500).map(|n| n.to_string()).collect();
    let properties: serde_json::Map<String, Value> =
        (0..101).map(|n| (format!("p{n}"), json!({"type": "string", "enum": labels}))).collect();
    let form = |required: Value| {
        let schema = json!({"properties": properties, "required": required});
        let params = json!({"sessionId": "s", "mode": "form", "message": "M", "requestedSchema": schema});
        json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params})
    };
    let (_, events) = hear(&mut in_a_turn(&GEMINI), &form(json!(["p0"])));
    let [AgentEvent::Ask { asks, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((asks.len(), asks.dropped()), (100, 1));
    let Kind::Select { choices, .. } = &asks[0].kind else { panic!("{:?}", asks[0]) };
    assert_eq!(choices.warning("Q").as_deref(), Some("Dropped 500 options of Q: the limit is 1000"));
    // The user would fill in 100 fields, and the form would be declined for the last one.
    let (sent, events) = hear(&mut in_a_turn(&GEMINI), &form(json!(["p99"])));
    assert!(sent[0]["error"].is_object() && matches!(events[..], [AgentEvent::Unparsed]), "{events:?}");
    let entries = vec![json!({"content": "c", "status": "pending"}); 1001];
    let update = json!({"sessionId": "s", "update": {"sessionUpdate": "plan", "entries": entries}});
    let plan = json!({"jsonrpc": "2.0", "method": "session/update", "params": update});
    let (_, events) = hear(&mut in_a_turn(&GEMINI), &plan);
    let [AgentEvent::Plan(entries)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((entries.len(), entries.dropped()), (1000, 1));
}

/// The directory of a command is only in its call's own input. If that is too long to keep, nobody can approve it.
#[test]
fn a_command_whose_input_is_lost_can_only_be_denied() {
    let asked = |bytes: usize| {
        let mut driver = in_a_turn(&OPENCODE);
        let input = json!({"command": format!("true {}", "x".repeat(bytes)), "workdir": "/etc"});
        let call = json!({"toolCallId": "c", "title": "bash", "kind": "execute", "rawInput": input});
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        let update = json!({"sessionId": "s", "update": update});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": update}));
        let options = json!([{"optionId": "once", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let ask = json!({"jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params});
        let (_, events) = hear(&mut driver, &ask);
        let Some(AgentEvent::Ask { asks, .. }) = events.last() else { panic!("{events:?}") };
        asks[0].offers("allow_once")
    };
    assert!(asked(60 << 10));
    assert!(!asked(70 << 10));
}

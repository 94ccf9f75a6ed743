//! The commands that agents do not put into the permission request itself. The requests are those of real agents.

use super::{hear, in_a_turn};
use crate::agent::acp::agents::find_profile;
use crate::agent::{AgentEvent, Program};
use crate::protocol::text::Text;
use crate::protocol::words::{Category, ToolState};
use serde_json::{Value, json};

const COMMAND: &str = "rm -rf build && make all && echo a very long command that requests cut";

fn asked(agent: &str, updates: &[Value], call: &Value) -> (Category, Text, usize) {
    let mut driver = in_a_turn(find_profile(&Program::Command(agent.into()), agent));
    for update in updates {
        let params = json!({"sessionId": "s", "update": update});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }
    let options = json!([{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let (_, events) = hear(
        &mut driver,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}),
    );
    let Some(AgentEvent::Ask { asks, .. }) = events.last() else { panic!("{events:?}") };
    let subject = asks[0].subject.as_ref().unwrap();
    let offers = ["allow_once", "deny"].iter().filter(|option| asks[0].offers(option)).count();
    (subject.category, subject.detail.clone(), offers)
}

fn text(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

fn begun(id: &str, title: &str, input: Value) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "execute", "status": "pending",
        "rawInput": input})
}

#[test]
fn the_command_of_a_request_is_found_wherever_the_agent_puts_it() {
    let input = json!({"command": COMMAND}).to_string();
    let streamed = |part: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": "0:c", "status": "in_progress", "content": text(part)});
    let cut = format!("Requesting approval to Running: {}…", &COMMAND[..20]);
    for (agent, updates, call) in [
        // Vibe names only the call.
        ("vibe-acp", vec![begun("c", "bash: x", json!({"command": COMMAND}))], json!({"toolCallId": "c"})),
        // Kimi cuts the command in its request, and streams the input of the call before.
        (
            "kimi",
            vec![
                json!({"sessionUpdate": "tool_call", "toolCallId": "0:c", "title": "Bash", "kind": "execute", "status": "pending", "content": text("")}),
                streamed(&input[..30]),
                streamed(&input),
            ],
            json!({"toolCallId": "0:c", "title": "Bash", "content": text(&cut)}),
        ),
        // Cline cuts the title.
        (
            "cline",
            vec![],
            json!({"toolCallId": "c", "title": "run commands: rm -rf", "kind": "execute", "rawInput": {"commands": [COMMAND]}}),
        ),
        // OpenHands asks for the call before, under an id of its own.
        (
            "openhands",
            vec![begun("c", "terminal", json!({"command": COMMAND}))],
            json!({"toolCallId": "confirmation-s", "title": "Confirm Agent Actions", "kind": "other"}),
        ),
        // Copilot repeats it.
        (
            "copilot",
            vec![begun("c", "x", json!({"command": COMMAND, "description": "x"}))],
            json!({"toolCallId": "c", "title": "x", "kind": "execute", "rawInput": {"command": COMMAND, "commands": [COMMAND]}}),
        ),
    ] {
        let (category, detail, offers) = asked(agent, &updates, &call);
        assert_eq!((category, detail, offers), (Category::Execute, COMMAND.into(), 2), "{agent}");
    }
}

#[test]
fn a_request_that_may_be_for_several_calls_is_denied() {
    let calls = [begun("c", "terminal", json!({"command": "a"})), begun("d", "terminal", json!({"command": "b"}))];
    let call = json!({"toolCallId": "confirmation-s", "title": "Confirm Agent Actions", "kind": "other"});
    assert_eq!(asked("openhands", &calls, &call).2, 1, "only `deny`");
    assert_eq!(asked("openhands", &calls[..1], &call).2, 2);
}

#[test]
fn commands_that_differ_are_all_shown() {
    let call = json!({"toolCallId": "c", "title": "x", "kind": "execute", "rawInput": {"command": "a", "commands": ["a", "b"]}});
    assert_eq!(asked("new", &[], &call).1, "a\ncommands: [\"a\",\"b\"]");
    let call = json!({"toolCallId": "c", "title": "x", "kind": "execute", "rawInput": {"commands": ["a", "b"]}});
    assert_eq!(asked("new", &[], &call).1, "a\nb");
}

#[test]
fn a_command_of_opencode_that_only_looks_is_a_read() {
    let input = |command: &str| json!({"command": command, "workdir": "/w/sub", "description": "d"});
    for (command, category) in [("cat a", Category::Read), ("cat a; rm b", Category::Execute)] {
        let call = json!({"toolCallId": "c", "title": command, "kind": "execute", "rawInput": {"command": command}});
        let whole = begun("c", "bash", input(command));
        assert_eq!(asked("opencode", &[whole], &call).0, category, "{command}");
        assert_eq!(asked("opencode", &[], &call).0, Category::Execute, "its folder is unknown");
    }
}

#[test]
fn a_sub_agent_that_gemini_refuses_is_denied() {
    let mut driver = in_a_turn(find_profile(&Program::Command("gemini".into()), "gemini"));
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "invoke_agent__invoke_agent_1_0",
        "status": "failed", "kind": "think", "content": text("Tool execution for \"Generalist Agent\" denied by policy.")});
    let params = json!({"sessionId": "s", "update": update});
    let (_, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    let [AgentEvent::Tool { category, .. }, AgentEvent::ToolOver { state, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*category, *state), (Category::Agent, ToolState::Denied));
}

/// The beginning of the id is the name of Gemini's tool, which it tells nowhere else.
#[test]
fn a_tool_of_gemini_has_the_name_in_its_id() {
    let mut driver = in_a_turn(find_profile(&Program::Command("gemini".into()), "gemini"));
    let id = "mcp_a__b_read__mcp_a__b_read_1795293391074_0";
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": "in_progress", "title": "Read", "kind": "other"});
    let params = json!({"sessionId": "s", "update": update});
    let (_, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    let [AgentEvent::Tool { name, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(name, "mcp_a__b_read");
}

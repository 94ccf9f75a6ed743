//! "Always": equal calls have equal scopes, whatever arrives first, and other calls have other ones.

use super::{hear, in_a_turn};
use crate::agent::acp::Acp;
use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::acp::profile::GENERIC;
use crate::agent::{AgentEvent, Driver, DriverOutput};
use crate::protocol::scope::Scope;
use crate::protocol::text::Text;
use serde_json::{Value, json};

fn update(driver: &mut Acp, update: Value) -> (Vec<Value>, Vec<AgentEvent>) {
    hear(driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}))
}

fn request(driver: &mut Acp, call: Value) -> (Vec<Value>, Vec<AgentEvent>) {
    let params = json!({"sessionId": "s", "toolCall": call, "options": [{"optionId": "o", "kind": "allow_once"}]});
    hear(driver, &json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params}))
}

fn asked(events: &[AgentEvent]) -> Option<(Text, Scope)> {
    events.iter().find_map(|event| match event {
        AgentEvent::Ask { asks, .. } => Some((asks[0].subject.as_ref()?.detail.clone(), asks[0].scope.clone()?)),
        _ => None,
    })
}

fn touched(driver: &mut Acp, id: &str, early: bool, place: &Value) -> (Text, Scope) {
    let pending = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/p"}});
    let mut input = json!({"command": "touch a", "description": "Touch it"});
    input.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
    let begun = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": "touch a", "kind": "execute",
        "status": "in_progress", "rawInput": input});
    let call = json!({"toolCallId": id, "title": "touch a", "kind": "execute", "status": "pending",
        "rawInput": {"command": "touch a"}});
    update(driver, pending);
    let events = if early {
        let (sent, events) = request(driver, call);
        assert!(sent.is_empty() && asked(&events).is_none(), "the directory is not known yet: {events:?}");
        update(driver, begun).1
    } else {
        update(driver, begun);
        request(driver, call).1
    };
    asked(&events).unwrap_or_else(|| panic!("{events:?}"))
}

#[test]
fn a_request_before_the_input_of_its_call_is_the_same_as_one_after_it() {
    let mut driver = in_a_turn(&OPENCODE);
    let (usual, other) = (json!({"cwd": "/p"}), json!({"workdir": "/p/sub"}));
    let late = touched(&mut driver, "a", false, &usual);
    assert_eq!(touched(&mut driver, "b", true, &usual), late);
    assert_eq!(late.0, Text::from("touch a"));
    let elsewhere = touched(&mut driver, "c", true, &other);
    assert_eq!(touched(&mut driver, "d", false, &other), elsewhere);
    assert_eq!(elsewhere.0, Text::from("touch a\nworkdir: \"/p/sub\""));
    assert_ne!(elsewhere.1, late.1, "a command elsewhere is another one");
}

#[test]
fn a_second_request_for_a_call_shows_its_directory_too() {
    let mut driver = in_a_turn(&OPENCODE);
    touched(&mut driver, "a", true, &json!({"workdir": "/x"}));
    let call = json!({"toolCallId": "a", "title": "touch a", "kind": "execute", "rawInput": {"command": "touch a"}});
    assert_eq!(asked(&request(&mut driver, call).1).unwrap().0, Text::from("touch a\nworkdir: \"/x\""));
}

#[test]
fn a_request_that_waits_for_its_input_is_answered_when_its_call_or_the_turn_ends() {
    let early = |driver: &mut Acp| {
        update(
            driver,
            json!({"sessionUpdate": "tool_call", "toolCallId": "a", "kind": "execute", "status": "pending",
                "rawInput": {"cwd": "/p"}}),
        );
        let (sent, events) = request(driver, json!({"toolCallId": "a", "rawInput": {"command": "touch a"}}));
        assert!(sent.is_empty() && asked(&events).is_none());
    };
    let cancelled = json!({"jsonrpc": "2.0", "id": 9, "result": {"outcome": {"outcome": "cancelled"}}});
    let mut driver = in_a_turn(&OPENCODE);
    early(&mut driver);
    let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "failed"});
    let (sent, events) = update(&mut driver, failed);
    assert_eq!((sent, asked(&events)), (vec![cancelled.clone()], None));
    let mut driver = in_a_turn(&OPENCODE);
    early(&mut driver);
    let mut out = DriverOutput::default();
    driver.interrupt(&mut out);
    assert!(super::sent(&out).contains(&cancelled));
}

#[test]
fn always_covers_the_same_input_and_nothing_else() {
    let mut driver = in_a_turn(&GENERIC);
    let mut ask = |id: &str, call: Value| {
        let mut call = call;
        call["toolCallId"] = json!(id);
        asked(&request(&mut driver, call).1).unwrap().1
    };
    for kind in ["other", "execute"] {
        let call = |input: Value| json!({"kind": kind, "title": "issue", "rawInput": input});
        let close = call(json!({"tool": "issue", "description": "Close the issue", "timeout": 1}));
        let first = ask("a", close.clone());
        assert_eq!(ask("b", close), first);
        for other in [
            call(json!({"tool": "issue", "description": "Delete the repository", "timeout": 1})),
            call(json!({"tool": "issue", "description": "Close the issue", "timeout": 2})),
            call(json!({"tool": "issue", "timeout": 1})),
        ] {
            assert_ne!(ask("c", other), first);
        }
    }
    // The content may be all that states the command.
    let run = |text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        json!({"kind": "execute", "title": "Bash", "rawInput": {"cwd": "/p"}, "content": content})
    };
    assert_ne!(ask("d", run("Run: ls")), ask("e", run("Run: rm a")));
}

#[test]
fn a_description_and_a_directory_change_a_command() {
    let mut driver = in_a_turn(&GEMINI);
    let mut ask = |id: &str, place: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": place}}]);
        let call =
            json!({"toolCallId": id, "title": "rm -f a", "kind": "execute", "status": "pending", "content": content});
        asked(&request(&mut driver, call).1).unwrap()
    };
    let first = ask("a", "[current working directory /p] (Remove it)");
    assert_eq!(ask("b", "[current working directory /p] (Remove it)"), first);
    assert_ne!(ask("c", "[current working directory /p] (Once more)").1, first.1);
    assert_eq!(first.0, Text::from("rm -f a"));
    // A directory may have a bracket in its name.
    for place in ["[current working directory /q] (Remove it)", "[current working directory /p] (x] (Remove it)"] {
        let other = ask("d", place);
        assert_ne!(other.1, first.1);
        assert_eq!(other.0, Text::from(format!("rm -f a\n{place}")));
    }
}

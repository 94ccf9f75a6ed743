//! Prompts during a turn.

use super::super::AcpServer;
use super::super::server::ClientLine;
use super::super::shared::ServerEffect;
use super::{FakeHost, facts};
use serde_json::{Value, json};

/// A server with a session in its first turn, whose request has the number 3.
struct Place {
    server: AcpServer,
    session: String,
}

impl Place {
    fn new(steers: bool) -> Place {
        let server = AcpServer::new(facts(true), Box::new(FakeHost::default()));
        let mut place = Place { server, session: String::new() };
        let able = json!({"session": {"notices": {}}});
        place.request(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": able}));
        let made = place.request(2, "session/new", json!({"cwd": "/", "mcpServers": []}));
        place.session = made[0]["result"]["sessionId"].as_str().unwrap().to_owned();
        place.prompt(3, "First");
        place.frame(json!({"type": "run.started", "payload": {"capabilities": {"steer": steers}}}));
        place
    }

    fn said(effects: Vec<ServerEffect>) -> Vec<Value> {
        let lines = effects.into_iter().filter_map(|effect| match effect {
            ServerEffect::Say(line) | ServerEffect::Tell(_, line) => Some(line),
            ServerEffect::Start(..)
            | ServerEffect::End(_)
            | ServerEffect::Limit(_)
            | ServerEffect::Unlimit(_)
            | ServerEffect::Diagnose(_) => None,
        });
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> Vec<Value> {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        Place::said(self.server.client(&ClientLine::Whole(line.into_bytes())))
    }

    fn prompt(&mut self, id: u64, text: &str) -> Vec<Value> {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.request(id, "session/prompt", params)
    }

    fn frame(&mut self, frame: Value) -> Vec<Value> {
        Place::said(self.server.child(1, &frame.to_string()))
    }

    fn progress(&mut self, payload: Value, reply_to: &str) -> Vec<Value> {
        self.frame(json!({"type": "run.progress", "reply_to": reply_to, "payload": payload}))
    }

    fn turn_ends(&mut self) -> Vec<u64> {
        let said = self.progress(json!({"kind": "turn", "outcome": "completed"}), "");
        assert!(said.iter().all(|line| line["result"]["stopReason"] == "end_turn"), "{said:?}");
        said.iter().map(|line| line["id"].as_u64().unwrap()).collect()
    }
}

#[test]
fn a_prompt_during_a_turn_steers_and_is_answered_with_the_turn() {
    let mut place = Place::new(true);
    let said = place.prompt(4, "Rather this");
    assert_eq!(said[0]["payload"], json!({"prompt": "Rather this", "when": "now"}), "{said:?}");
    assert_eq!(place.progress(json!({"kind": "prompt", "state": "sent"}), "steer"), [json!(null); 0]);
    assert_eq!(place.turn_ends(), [3, 4]);
}

#[test]
fn a_prompt_that_came_too_late_begins_a_turn_of_its_own() {
    let mut place = Place::new(true);
    place.prompt(4, "Rather this");
    place.progress(json!({"kind": "prompt", "state": "queued"}), "steer");
    assert_eq!(place.turn_ends(), [3]);
    place.progress(json!({"kind": "prompt", "state": "sent"}), "");
    assert_eq!(place.turn_ends(), [4]);
}

#[test]
fn a_prompt_that_waits_is_shown_as_such() {
    let mut place = Place::new(false);
    let said = place.prompt(4, "Then this");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["params"]["update"]["sessionUpdate"], "notice");
    assert_eq!(place.turn_ends(), [3]);
    let said = place.progress(json!({"kind": "status", "status": "waiting_for_prompt"}), "");
    assert_eq!(said[0]["payload"], json!({"prompt": "Then this"}));
    assert_eq!(place.turn_ends(), [4]);
}

#[test]
fn the_agents_commands_are_offered_and_called() {
    let mut place = Place::new(true);
    let listed = json!([{"name": "review", "description": "Review it", "hint": "FILE"}, {"name": "init", "description": null, "hint": null}]);
    let said = place.progress(json!({"kind": "commands", "commands": listed}), "");
    let offered = json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "review", "description": "Review it", "input": {"hint": "FILE"}}, {"name": "init", "description": ""}]});
    assert_eq!(said[0]["params"]["update"], offered, "{said:?}");
    let said = place.prompt(4, "/review a.rs");
    assert_eq!(said[0]["params"]["update"]["sessionUpdate"], "notice", "a command has a turn of its own: {said:?}");
    assert_eq!(place.turn_ends(), [3]);
    let said = place.progress(json!({"kind": "status", "status": "waiting_for_prompt"}), "");
    assert_eq!(said[0]["payload"], json!({"prompt": "/review a.rs", "raw_prompt": true}));
    assert_eq!(place.turn_ends(), [4]);
    place.progress(json!({"kind": "status", "status": "waiting_for_prompt"}), "");
    let said = place.prompt(5, "/etc/hosts is wrong");
    assert_eq!(said[0]["payload"], json!({"prompt": "/etc/hosts is wrong"}));
    assert_eq!(place.turn_ends(), [5]);
    place.progress(json!({"kind": "status", "status": "waiting_for_prompt"}), "");
    let said = place.prompt(6, "/unknown");
    assert_eq!(said[0]["payload"], json!({"prompt": "/unknown"}), "the agent does not have it");

    let said = place.request(7, "session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(said[1]["params"]["update"], offered, "after the response: {said:?}");
    assert_eq!(said[1]["params"]["sessionId"], said[0]["result"]["sessionId"]);
}

#[test]
fn a_command_that_begins_a_session_is_one_and_the_next_text_is_none() {
    let mut place = Place::new(false);
    let made = place.request(7, "session/new", json!({"cwd": "/", "mcpServers": []}));
    place.session = made[0]["result"]["sessionId"].as_str().unwrap().to_owned();
    let said = place.prompt(8, "/init");
    let start = said.iter().find(|line| line["type"] == "run.start").unwrap();
    assert_eq!(start["payload"]["raw_prompt"], true, "nobody knows the commands yet");
    let frame = |place: &mut Place, payload: Value| {
        Place::said(place.server.child(2, &json!({"type": "run.progress", "payload": payload}).to_string()))
    };
    frame(&mut place, json!({"kind": "turn", "outcome": "completed"}));
    frame(&mut place, json!({"kind": "status", "status": "waiting_for_prompt"}));
    let said = place.prompt(9, "Go on");
    assert_eq!(said[0]["payload"], json!({"prompt": "Go on", "raw_prompt": false}));
}

//! The modes of an agent, which a session offers in one of two ways.

use super::{failure, hear, initialized, started};
use crate::agent::acp::Acp;
use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::acp::profile::Profile;
use crate::agent::{AgentEvent, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::request::Options;
use serde_json::{Value, json};

fn with_mode(profile: &'static Profile, offered: Value) -> (Acp, Vec<Value>, Vec<AgentEvent>) {
    let wished = Options { mode: Some("plan".into()), model: Some("m".into()), ..Options::default() };
    let mut driver = started(profile, wished);
    hear(&mut driver, &initialized(&json!({})));
    let mut result = json!({"sessionId": "s"});
    result.as_object_mut().unwrap().extend(offered.as_object().unwrap().clone());
    let (sent, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": result}));
    (driver, sent, events)
}

#[test]
fn a_mode_is_set_before_the_model_as_the_session_offers_it() {
    let option = |name: &str| json!({"configOptions": [{"id": "way", "category": "mode", "options": [{"value": "build"}, {"value": name}]}]});
    let modes =
        |name: &str| json!({"modes": {"currentModeId": "build", "availableModes": [{"id": "build"}, {"id": name}]}});
    let by_option = ("session/set_config_option", json!({"sessionId": "s", "configId": "way", "value": "plan"}));
    let by_request = ("session/set_mode", json!({"sessionId": "s", "modeId": "plan"}));
    for (offered, (method, params)) in [(option("plan"), by_option), (modes("plan"), by_request)] {
        let (mut driver, sent, _) = with_mode(&OPENCODE, offered);
        assert_eq!((&sent[0]["method"], &sent[0]["params"]), (&json!(method), &params));
        let (sent, _) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
        assert_eq!(sent[0]["method"], "session/set_model");
        let (sent, _) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 4, "result": {}}));
        assert_eq!(sent[0]["method"], "session/prompt");
    }
    // A mode that is missing or refused: the message names the existing ones whose names can be shown.
    let refused = |events: &[AgentEvent]| match events.last() {
        Some(AgentEvent::TurnOver(TurnOver::Failed(failure))) => {
            (failure.code, failure.message.text().clone(), failure.agent_message.clone())
        }
        other => panic!("{other:?}"),
    };
    let says = |names: &str| format!("The agent does not have this mode: check `mode`. Its modes are: {names}.").into();
    for (name, names) in [("review", "build, review"), ("sk-odd name", "build")] {
        for offered in [option(name), modes(name)] {
            let (_, sent, events) = with_mode(&OPENCODE, offered);
            assert!(sent.is_empty());
            assert_eq!(refused(&events), (Code::InvalidRequest, says(names), None));
        }
    }
    let (mut driver, ..) = with_mode(&OPENCODE, option("plan"));
    let (_, events) =
        hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "no"}}));
    assert_eq!(refused(&events), (Code::InvalidRequest, says("build, plan"), Some("no".into())));
}

#[test]
fn a_mode_that_cannot_be_set_is_a_warning() {
    let (_, sent, events) = with_mode(&OPENCODE, json!({}));
    assert_eq!(sent[0]["method"], "session/set_model");
    let warned = |event: &AgentEvent| matches!(event, AgentEvent::Warning(_, text) if text.text().contains("`mode` has no effect"));
    assert!(events.iter().any(warned), "{events:?}");
    let modes = json!({"modes": {"availableModes": [{"id": "plan"}, {"id": "yolo"}]}});
    let (_, sent, _) = with_mode(&GEMINI, modes.clone());
    assert_eq!(sent[0]["method"], "session/set_mode");
    // This mode would make Gemini ask less than `permissions` says.
    let mut driver = started(&GEMINI, Options { mode: Some("yolo".into()), ..Options::default() });
    hear(&mut driver, &initialized(&json!({})));
    let result = json!({"sessionId": "s", "modes": modes["modes"]});
    let (sent, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": result}));
    assert_eq!((sent.len(), failure(&events)), (0, Some(Code::InvalidRequest)));
}

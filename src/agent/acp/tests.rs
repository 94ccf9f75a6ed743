//! The driver with an agent that says what no recording has.

mod always;
mod approvals;
mod asking;
mod denials;
mod failures;
mod limits;
mod modes;
mod prompts;
mod results;
mod servers;
mod shown;

use super::Acp;
use super::profile::{GENERIC, Profile};
use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::{AgentEvent, AskKey, Base, Driver, DriverOutput, Line, Reply, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::Answer;
use crate::protocol::request::Options;
use crate::protocol::text::Text;
use serde_json::{Value, json};

fn started(profile: &'static Profile, options: Options) -> Acp {
    prompted(profile, "Go on", options)
}

fn prompted(profile: &'static Profile, prompt: &str, options: Options) -> Acp {
    let mut driver = Acp::new(Base::command("agent"), profile);
    let settings = options.resolve(prompt.into(), "agent".into(), "/p".into());
    let launch = driver.launch(&settings, &mut DriverOutput::default()).unwrap();
    assert_eq!(launch.send.len(), 1);
    driver
}

fn hear(driver: &mut Acp, line: &Value) -> (Vec<Value>, Vec<AgentEvent>) {
    let mut out = DriverOutput::default();
    driver.line(Line::Text(line.to_string().into()), &mut out);
    (sent(&out), out.events)
}

fn sent(out: &DriverOutput) -> Vec<Value> {
    out.send.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn initialized(abilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": abilities}})
}

fn in_a_turn(profile: &'static Profile) -> Acp {
    let mut driver = started(profile, Options::default());
    hear(&mut driver, &initialized(&json!({})));
    let (sent, _) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}));
    assert_eq!(sent[0]["method"], "session/prompt");
    driver
}

fn failure(events: &[AgentEvent]) -> Option<Code> {
    events.iter().find_map(|event| match event {
        AgentEvent::TurnOver(TurnOver::Failed(failure)) => Some(failure.code),
        _ => None,
    })
}

#[test]
fn another_version_is_refused() {
    for version in [json!(2), json!(0), json!("1"), Value::Null] {
        let mut driver = started(&GEMINI, Options::default());
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": version}});
        let (sent, events) = hear(&mut driver, &answer);
        assert!(sent.is_empty());
        assert_eq!(failure(&events), Some(Code::AgentProtocolError));
    }
}

#[test]
fn a_session_is_resumed_as_the_agent_can() {
    let resume = || Options { session_id: SessionId::new("s"), ..Options::default() };
    let ways = [
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), Some("session/resume")),
        (json!({"loadSession": true}), Some("session/load")),
        (json!({}), None),
    ];
    for (abilities, method) in ways {
        let (sent, events) = hear(&mut started(&GEMINI, resume()), &initialized(&abilities));
        assert_eq!(sent.first().and_then(|line| line["method"].as_str()), method);
        assert_eq!(failure(&events), method.is_none().then_some(Code::InvalidRequest));
    }
}

#[test]
fn a_form_is_asked_and_answered() {
    let mut driver = in_a_turn(&GEMINI);
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let (_, events) = hear(
        &mut driver,
        &json!({"jsonrpc": "2.0", "id": "e-1", "method": "elicitation/create",
            "params": {"mode": "form", "message": "How many?", "requestedSchema": schema}}),
    );
    let Some(AgentEvent::Ask { key, asks, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((key.0.as_str(), asks.len(), asks[0].text.unredacted()), ("\"e-1\"", 1, "How many?\nn"));
    let mut out = DriverOutput::default();
    driver.answer(key, &[Reply::Answer(Answer::Text("1.5".into()))], &mut out);
    let wanted = json!({"jsonrpc": "2.0", "id": "e-1", "result": {"action": "accept", "content": {"n": 1.5}}});
    assert_eq!(sent(&out), [wanted]);
}

#[test]
fn unserved_requests_are_refused_and_unknown_notifications_ignored() {
    let mut driver = in_a_turn(&OPENCODE);
    let url = json!({"mode": "url", "message": "Log in", "url": "https://example.com"});
    for (method, params) in [("fs/read_text_file", json!({})), ("elicitation/create", url), ("_x/y", Value::Null)] {
        let (sent, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(7), &json!(-32601)));
        assert!(events.is_empty());
    }
    for method in ["elicitation/complete", "_x/note"] {
        let (sent, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "method": method, "params": {"a": 1}}));
        assert!(sent.is_empty() && events.is_empty());
    }
}

#[test]
fn an_interrupt_answers_open_and_later_questions() {
    let mut driver = in_a_turn(&GEMINI);
    let permission = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {"sessionId": "s",
            "toolCall": {"toolCallId": format!("c{id}"), "title": "t"},
            "options": [{"optionId": "o", "kind": "allow_once"}]}})
    };
    hear(&mut driver, &permission(0));
    let mut out = DriverOutput::default();
    driver.interrupt(&mut out);
    let cancelled = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "cancelled"}}});
    assert_eq!(sent(&out)[0]["method"], "session/cancel");
    assert_eq!(sent(&out)[1], cancelled(0));
    assert_eq!(hear(&mut driver, &permission(1)).0, [cancelled(1)]);
    let mut out = DriverOutput::default();
    driver.answer(&AskKey("0".into()), &[Reply::Declined(None)], &mut out);
    assert!(out.send.is_empty(), "it is answered once");
    let (_, events) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}));
    assert!(matches!(events.last(), Some(AgentEvent::TurnOver(TurnOver::Interrupted))));
}

#[test]
fn errors_and_limits_have_codes_of_ours() {
    let error = |code: i64, text: &str| json!({"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": text}});
    let stop = |reason: &str| json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": reason}});
    let cases = [
        (error(-32000, "log in"), Code::AuthRequired),
        (error(403, "no"), Code::AuthRequired),
        (error(400, "API key not valid"), Code::AuthRequired),
        (error(429, "quota"), Code::RateLimited),
        (error(503, "busy"), Code::ProviderUnavailable),
        (error(500, "models/x is not found"), Code::ModelNotFound),
        (error(-32603, "Internal error: Rate limit exceeded"), Code::RateLimited),
        (error(-32603, "Internal error: something"), Code::AgentError),
        (stop("max_tokens"), Code::LimitReached),
        (stop("max_turn_requests"), Code::LimitReached),
        (stop("refusal"), Code::Refused),
    ];
    for (line, code) in cases {
        let (_, events) = hear(&mut in_a_turn(&GEMINI), &line);
        assert_eq!(failure(&events), Some(code), "{line}");
        let Some(AgentEvent::TurnOver(TurnOver::Failed(failure))) = events.last() else { panic!("{events:?}") };
        let words = line["error"]["message"].as_str().map(Text::from);
        assert_eq!(failure.agent_message, words, "{line}");
        assert!(
            !failure.message.text().contains("something"),
            "the sentence is ours: {}",
            failure.message.text().unredacted()
        );
    }
}

#[test]
fn a_prompt_is_a_command_only_on_request() {
    for (prompt, raw, wanted) in [("/init", false, "The task:\n/init"), ("/init", true, "/init"), ("go", false, "go")] {
        let mut driver = in_a_turn(&GEMINI);
        driver.wants.raw_prompt = raw;
        let mut out = DriverOutput::default();
        driver.follow_up(prompt, &[], &mut out);
        assert_eq!(sent(&out)[0]["params"]["prompt"][0]["text"], wanted);
    }
}

#[test]
fn a_question_is_withdrawn_when_its_call_fails_and_when_the_turn_ends() {
    let mut driver = in_a_turn(&OPENCODE);
    let option = json!({"optionId": "o", "kind": "allow_once"});
    for id in [0, 1] {
        let call = json!({"toolCallId": format!("c{id}"), "title": "t"});
        let params = json!({"sessionId": "s", "toolCall": call, "options": [option]});
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        hear(&mut driver, &line);
    }
    let withdrawn = |events: &[AgentEvent]| -> Vec<String> {
        let key = |event: &AgentEvent| match event {
            AgentEvent::AskWithdrawn { key } => Some(key.0.clone()),
            _ => None,
        };
        events.iter().filter_map(key).collect()
    };
    // The end of a call withdraws its other requests too.
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    assert_eq!(withdrawn(&hear(&mut driver, &line).1), ["1"]);
    let end = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}});
    assert_eq!(withdrawn(&hear(&mut driver, &end).1), ["0"]);
}

fn asking(profile: &'static Profile) -> Acp {
    let mut driver = in_a_turn(profile);
    driver.own_tools = vec![driver.profile.ask_tool, "submit_result"];
    driver.ask_server = "spektacular-1a2b".into();
    driver
}

fn permission(id: &str, title: &str, kind: &str) -> Value {
    let call = json!({"toolCallId": id, "title": title, "kind": kind, "status": "pending"});
    let options = json!([{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params})
}

#[test]
fn only_our_own_tool_is_allowed_without_a_question() {
    let (id, title) = ("mcp_spektacular-1a2b_ask_the_user__1", "ask_the_user (spektacular-1a2b MCP Server)");
    let (sent, events) = hear(&mut asking(&GEMINI), &permission(id, title, "other"));
    assert_eq!(sent[0]["result"]["outcome"], json!({"outcome": "selected", "optionId": "yes"}));
    assert!(events.is_empty(), "{events:?}");
    for (id, title, kind) in [
        // A command named like our tool, another server's tool, and a server and tool whose joined names equal ours.
        ("run_shell_command__1", title, "execute"),
        (id, title, "execute"),
        ("mcp_other_ask_the_user__1", "ask_the_user (other MCP Server)", "other"),
        (id, "the_user (spektacular-1a2b_ask MCP Server)", "other"),
        ("mcp_spektacular-1a2b_rm__1", "rm (spektacular-1a2b MCP Server)", "other"),
        // A server of the project's, which cannot know the random part.
        ("mcp_spektacular_ask_the_user__1", "ask_the_user (spektacular MCP Server)", "other"),
    ] {
        let (sent, events) = hear(&mut asking(&GEMINI), &permission(id, title, kind));
        assert!(sent.is_empty() && events.iter().any(|e| matches!(e, AgentEvent::Ask { .. })), "{id} {title} {kind}");
    }
    let (sent, _) = hear(&mut in_a_turn(&GEMINI), &permission(id, title, "other"));
    assert!(sent.is_empty(), "it is not offered");
    let mut late = asking(&OPENCODE);
    hear(&mut late, &permission("c1", "bash", "other"));
    let (sent, events) = hear(&mut late, &permission("c1", "spektacular-1a2b_ask_user", "other"));
    assert!(sent.is_empty() && !events.is_empty(), "a later title may be the model's own words");
}

#[test]
fn a_call_of_our_own_tool_shows_only_as_its_questions() {
    let mut driver = asking(&OPENCODE);
    for status in ["pending", "in_progress", "completed"] {
        let content = json!([{"type": "content", "content": {"type": "text", "text": "1234"}}]);
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "spektacular-1a2b_ask_user",
            "kind": "other", "status": status, "content": content});
        let line =
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
        let (sent, events) = hear(&mut driver, &line);
        assert!(sent.is_empty() && events.is_empty(), "{status}: {events:?}");
    }
}

#[test]
fn only_known_messages_without_a_required_field_cause_a_warning() {
    let update = |update: Value| json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
    let ask = |method: &str, params: Value| json!({"id": 0, "method": method, "params": params});
    for line in [
        json!({"method": "session/update"}),
        json!({"method": "session/update", "params": [1]}),
        json!({"method": "session/update", "params": {"sessionId": "s"}}),
        update(json!({"content": {"type": "text", "text": "x"}})),
        update(json!({"sessionUpdate": "agent_message_chunk"})),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": "x"})),
        update(json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text"}})),
        update(json!({"sessionUpdate": "tool_call", "title": "x"})),
        update(json!({"sessionUpdate": "tool_call_update", "status": "completed"})),
        update(json!({"sessionUpdate": "plan"})),
        ask("session/request_permission", json!({"options": []})),
        ask("session/request_permission", Value::Null),
        ask("elicitation/create", json!({"mode": "form"})),
    ] {
        let (_, events) = hear(&mut in_a_turn(&GEMINI), &line);
        assert!(matches!(events[..], [AgentEvent::Unparsed]), "{line}: {events:?}");
    }
    for line in [
        json!({"method": "later/versions", "params": [1]}),
        update(json!({"sessionUpdate": "later_versions"})),
        update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []})),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": ""}})),
        json!({"method": "session/update", "params": {"sessionId": "a sub-agent's"}}),
        ask("elicitation/create", json!({"mode": "url", "url": "x"})),
        ask("fs/read_text_file", Value::Null),
    ] {
        let (_, events) = hear(&mut in_a_turn(&GEMINI), &line);
        assert!(events.is_empty(), "{line}: {events:?}");
    }
}

#[test]
fn a_long_title_is_reported_once_in_full_and_kept_until_its_call_ends() {
    let long = format!("echo {}", "x".repeat(10 << 20));
    let update = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1"});
        fields.as_object().unwrap().iter().for_each(|(name, value)| update[name] = value.clone());
        json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
    };
    let told = |events: &[AgentEvent]| -> Vec<Option<Text>> {
        let title = |event: &AgentEvent| match event {
            AgentEvent::Tool { title, .. } => Some(title.clone()),
            _ => None,
        };
        events.iter().filter_map(title).collect()
    };
    let begun = || {
        let mut driver = in_a_turn(&GEMINI);
        let (_, events) =
            hear(&mut driver, &update(json!({"title": long, "kind": "execute", "status": "in_progress"})));
        assert_eq!(told(&events), [Some(format!("Run {long}").into())]);
        let places = json!({"locations": [{"path": "/p/a"}]});
        let (_, events) = hear(&mut driver, &update(places));
        assert_eq!(told(&events), [None], "to tell of it each time would cost too much");
        driver
    };
    let kept = |driver: &Acp| driver.calls.get("c1").map_or(0, |call| call.text.len());

    let mut driver = begun();
    assert_eq!(kept(&driver), long.len());
    hear(&mut driver, &update(json!({"status": "completed"})));
    assert_eq!(kept(&driver), 0);

    let mut driver = begun();
    let (_, events) = hear(&mut driver, &permission("c1", &long, "execute"));
    let Some(AgentEvent::Ask { key, .. }) = events.last() else { panic!("no question") };
    driver.answer(key, &[Reply::Denied(None)], &mut DriverOutput::default());
    assert_eq!(kept(&driver), 0);

    let mut driver = begun();
    hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}));
    assert_eq!(kept(&driver), 0);
}

/// JavaScript counts in UTF-16, and cuts a text inside a character.
#[test]
fn a_character_cut_into_two_pieces_is_whole() {
    let mut driver = in_a_turn(&GENERIC);
    let mut said = Vec::new();
    let mut end = String::new();
    let piece = |kind: &str, literal: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}",
                "content":{{"type":"text","text":"{literal}"}}}}}}}}"#
        )
    };
    let (text, thought) = ("agent_message_chunk", "agent_thought_chunk");
    let result = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
    let lines = [
        piece(thought, r"a\ud83d"),
        piece(text, r"b\ud83d"),
        piece(text, r"\ude00\ud83d"),
        piece(text, r"\ude00c\ud83d"),
        result.into(),
    ];
    for line in lines {
        let mut out = DriverOutput::default();
        driver.line(Line::Text(line.replace('\n', "").into()), &mut out);
        for event in out.events {
            match event {
                AgentEvent::Text { piece, done, .. } => said.push(format!("{} {done}", piece.unredacted())),
                AgentEvent::TurnOver(TurnOver::Completed { answer, .. }) => end = answer.into_text().shown().to_owned(),
                other => panic!("{other:?}"),
            }
        }
    }
    let whole = ["a false", "\u{fffd} true", "b false", "\u{1f600} false", "\u{1f600}c false", "\u{fffd} true"];
    assert_eq!((said.as_slice(), end.as_str()), (&whole.map(str::to_owned)[..], "b\u{1f600}\u{1f600}c\u{fffd}"));
}

#[test]
fn finished_calls_are_not_remembered() {
    let mut driver = in_a_turn(&GEMINI);
    let call = |id: usize, status: &str| {
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": format!("c{id}"), "status": status,
            "title": "ls", "kind": "execute"});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    };
    for id in 0..1000 {
        hear(&mut driver, &call(id, "in_progress"));
        hear(&mut driver, &call(id, "completed"));
    }
    assert_eq!(driver.calls.len(), 0);
    let (_, events) = hear(&mut driver, &call(999, "in_progress"));
    assert!(events.is_empty(), "a late update of a finished call: {events:?}");
}

#[test]
fn a_permission_shows_every_field_of_its_input() {
    let detail = |profile, earlier: Value, call: Value| {
        let mut driver = in_a_turn(profile);
        let about = |mut call: Value, kind: &str| {
            call["toolCallId"] = json!("c");
            call["sessionUpdate"] = json!(kind);
            call
        };
        let update = json!({"sessionId": "s", "update": about(earlier, "tool_call")});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": update}));
        let options = json!([{"optionId": "o", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": about(call, ""), "options": options});
        let asked = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params});
        let (_, events) = hear(&mut driver, &asked);
        let Some(AgentEvent::Ask { asks, .. }) = events.last() else { panic!("{events:?}") };
        asks[0].subject.as_ref().unwrap().detail.clone()
    };
    let shell = |input: Value| json!({"kind": "execute", "title": "npm test", "rawInput": input});
    let edit = json!({"kind": "edit", "title": "a", "locations": [{"path": "/p/a"}],
        "rawInput": {"path": "/p/a", "old_string": "1", "new_string": "2", "replace_all": true},
        "content": [{"type": "diff", "path": "/p/a", "oldText": "1", "newText": "2"}]});
    let gemini = |directory: &str| {
        let text = format!("[current working directory {directory}] (Run the tests)");
        json!({"kind": "execute", "title": "npm test", "content": [{"type": "content", "content": {"type": "text", "text": text}}]})
    };
    let plain = json!({"command": "npm test", "description": "d", "cwd": "/p"});
    for (profile, earlier, call, wanted) in [
        (&OPENCODE, plain.clone(), shell(plain), "npm test"),
        (
            &OPENCODE,
            json!({"command": "npm test", "workdir": "/etc", "sandbox": false}),
            shell(json!({"command": "npm test"})),
            "npm test\nsandbox: false\nworkdir: \"/etc\"",
        ),
        (&OPENCODE, json!({}), shell(json!({"cmd": ["npm", "test"]})), "npm test\ncmd: [\"npm\",\"test\"]"),
        (&OPENCODE, json!({}), edit, "update /p/a\n-1\n+2\nreplace_all: true"),
        (&GEMINI, json!({}), gemini("/p"), "npm test"),
        (&GEMINI, json!({}), gemini("/etc"), "npm test\n[current working directory /etc] (Run the tests)"),
    ] {
        assert_eq!(detail(profile, json!({"rawInput": earlier, "kind": call["kind"]}), call), wanted);
    }
}

/// OpenCode's request for a search names no place for the working directory.
#[test]
fn a_search_without_a_path_is_one_of_the_working_directory() {
    let places = |profile, kind: &str, locations: Value, input: Value| -> Vec<String> {
        let call = json!({"toolCallId": "c", "kind": kind, "title": "x", "locations": locations, "rawInput": input});
        let options = json!([{"optionId": "o", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let asked = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params});
        let (_, events) = hear(&mut in_a_turn(profile), &asked);
        let Some(AgentEvent::Ask { asks, .. }) = events.last() else { panic!("{events:?}") };
        let locations = &asks[0].subject.as_ref().unwrap().locations;
        locations.iter().map(|place| place.path.shown().to_owned()).collect()
    };
    let at = |path: &str| json!([{ "path": path }]);
    for (profile, kind, locations, input, wanted) in [
        (&OPENCODE, "search", json!([]), json!({"pattern": "../x"}), &["/p"][..]),
        (&OPENCODE, "search", json!([]), json!({"pattern": "x", "path": ""}), &["/p"]),
        (&OPENCODE, "search", at("/p"), json!({"pattern": "x", "path": "/p"}), &["/p"]),
        (&OPENCODE, "search", at("/etc"), json!({"pattern": "x", "path": "/etc"}), &["/etc"]),
        // Unless the whole input is known and is that of a search, the place is unknown.
        (&OPENCODE, "search", json!([]), json!({}), &[]),
        (&OPENCODE, "search", json!([]), json!({"pattern": "x", "path": "/etc"}), &[]),
        (&OPENCODE, "search", json!([]), json!({"pattern": "x", "path": ["/etc"]}), &[]),
        (&OPENCODE, "read", json!([]), json!({"pattern": "x"}), &[]),
        (&OPENCODE, "execute", json!([]), json!({"pattern": "x"}), &[]),
        // Nothing is known about the searches of other agents.
        (&GENERIC, "search", json!([]), json!({"pattern": "x"}), &[]),
    ] {
        assert_eq!(places(profile, kind, locations, input.clone()), wanted, "{kind} {input}");
    }
}

/// A secret may be split between the pieces. A recording contains them although no frame shows them.
#[test]
fn recordings_learn_the_pieces_of_messages_that_no_frame_shows() {
    for (session, kind) in [("of a sub-agent", "agent_message_chunk"), ("s", "user_message_chunk")] {
        let mut driver = in_a_turn(&OPENCODE);
        let mut keys = Vec::new();
        let mut pieces = |update: Value| {
            let params = json!({"sessionId": session, "update": update});
            let (_, events) =
                hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
            let [AgentEvent::Partial { whole, piece, done }] = &events[..] else { panic!("{events:?}") };
            keys.push(*whole);
            (piece.clone(), *done)
        };
        let mut chunk = |text: &str| {
            pieces(json!({"sessionUpdate": kind, "messageId": "m", "content": {"type": "text", "text": text}}))
        };
        assert_eq!((chunk("hun"), chunk("ter2")), (("hun".into(), false), ("ter2".into(), false)));
        assert_eq!(pieces(json!({"sessionUpdate": "available_commands_update"})), (Text::default(), true));
        assert!(keys.iter().all(|key| *key == keys[0]));
    }
}

#[test]
fn a_new_file_shows_its_lines_with_and_without_a_permission() {
    let written = json!({"filePath": "/p/a", "content": "one\n"});
    let asked = json!({"filepath": "/p/a", "diff": "--- /p/a\n+++ /p/a\n@@ -0,0 +1,1 @@\n+one\n"});
    for (input, lines) in [(written, "+one\n"), (asked, "@@ -0,0 +1,1 @@\n+one\n")] {
        let mut driver = in_a_turn(&OPENCODE);
        driver.wants.facts = true;
        let update = |mut update: Value| {
            update["sessionUpdate"] = json!("tool_call_update");
            update["toolCallId"] = json!("c1");
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
        };
        hear(&mut driver, &update(json!({"status": "in_progress", "kind": "edit", "rawInput": input})));
        let output = json!({"metadata": {"filepath": "/p/a", "exists": false}});
        let (_, events) = hear(&mut driver, &update(json!({"status": "completed", "rawOutput": output})));
        let facts = events.iter().find_map(|event| match event {
            AgentEvent::ToolOver { facts, .. } => Some(facts),
            _ => None,
        });
        let edits = &facts.unwrap().edits;
        assert_eq!(edits.iter().map(|edit| &edit.lines).collect::<Vec<_>>(), [&Text::from(lines)]);
    }
}

#[test]
fn an_exit_before_the_session_is_open_is_a_failed_start() {
    let exit = |driver: &mut Acp, code, signal| match driver.exited(AgentExit { code, signal }, true, &Text::default())
    {
        TurnOver::Failed(failure) => failure.code,
        other => panic!("{other:?}"),
    };
    let mut opening = started(&GEMINI, Options::default());
    hear(&mut opening, &initialized(&json!({})));
    assert_eq!(exit(&mut opening, Some(0), None), Code::AgentStartFailed);
    assert_eq!(exit(&mut opening, None, Some(9)), Code::AgentExited);
    assert_eq!(exit(&mut in_a_turn(&GEMINI), Some(0), None), Code::AgentExited);
}

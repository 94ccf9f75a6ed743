//! Cases that no recording has.

use super::Pi;
use crate::agent::{AgentEvent, AskKey, Base, Driver, DriverOutput, Line, Program, Reply, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::{Answer, Kind};
use crate::protocol::request::{McpAccess, McpServer, Options, Permissions, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::text::Text;
use crate::protocol::words::{Category, OnUnsupported, ToolState, Warning};
use serde_json::{Value, json};

fn told(pi: &mut Pi, line: &Value) -> DriverOutput {
    let mut out = DriverOutput::default();
    pi.line(Line::Text(line.to_string().into()), &mut out);
    out
}

fn settings(options: Options) -> Settings {
    options.resolve("x".into(), "pi".into(), "/w".into())
}

fn state(data: &Value) -> Value {
    json!({"type": "response", "command": "get_state", "success": true, "data": data})
}

fn open(options: Options, extension: bool, data: &Value) -> (Pi, DriverOutput) {
    open_with(&settings(options), extension, data)
}

fn open_with(settings: &Settings, extension: bool, data: &Value) -> (Pi, DriverOutput) {
    let mut pi = Pi::new(Base::command("pi"));
    pi.launch(settings, &mut DriverOutput::default()).unwrap();
    let ready = json!({"type": "extension_ui_request", "id": "s", "method": "setStatus", "statusKey": "spektacular",
        "statusText": "1.6.0"});
    if extension {
        told(&mut pi, &ready);
    }
    let out = told(&mut pi, &state(data));
    (pi, out)
}

fn running() -> Pi {
    let (mut pi, out) = open(Options::default(), true, &json!({"sessionId": "s"}));
    assert!(out.send[0].contains(r#""type":"prompt""#), "{:?}", out.send);
    told(&mut pi, &started());
    told(&mut pi, &json!({"type": "agent_start"}));
    pi
}

fn started() -> Value {
    json!({"type": "response", "command": "prompt", "success": true, "data": {"disposition": "started"}})
}

fn settled() -> Value {
    json!({"type": "agent_settled", "aborted": false})
}

fn gate(tool: &str, input: &Value) -> Value {
    let message = json!({"call": "c", "tool": tool, "input": input}).to_string();
    json!({"type": "extension_ui_request", "id": "r", "method": "input", "title": "spektacular", "placeholder": message})
}

fn ended(out: &DriverOutput) -> Option<&TurnOver> {
    out.events.iter().find_map(|event| if let AgentEvent::TurnOver(over) = event { Some(over) } else { None })
}

fn code(out: &DriverOutput) -> Option<Code> {
    if let Some(TurnOver::Failed(failure)) = ended(out) { Some(failure.code) } else { None }
}

fn reply(pi: &mut Pi, reply: Reply) -> Value {
    let mut out = DriverOutput::default();
    pi.answer(&AskKey("r".into()), &[reply], &mut out);
    let mut answer: Value = serde_json::from_str(&out.send[0]).unwrap();
    for own in ["type", "id"] {
        answer.as_object_mut().unwrap().remove(own);
    }
    match answer["value"].as_str().and_then(|text| serde_json::from_str(text).ok()) {
        Some(value) => value,
        None => answer,
    }
}

#[test]
fn the_prompt_waits_for_the_extension_and_the_right_session() {
    let session = |id: &str| Options { session_id: SessionId::new(id), ..Options::default() };
    let data = json!({"sessionId": "abc"});
    for (options, extension, wanted) in [
        (Options::default(), true, None),
        (Options::default(), false, Some(Code::AgentStartFailed)),
        (session("abc"), true, None),
        (session("ab"), true, Some(Code::SessionNotFound)),
        (Options { fork: Some(true), ..session("ab") }, true, None),
    ] {
        let (_, out) = open(options, extension, &data);
        assert_eq!((code(&out), out.send.len()), (wanted, usize::from(wanted.is_none())));
    }
    let bad = Pi::new(Base::command("pi")).launch(&settings(session("../x")), &mut DriverOutput::default());
    assert_eq!(bad.unwrap_err().code, Code::SessionNotFound);
}

#[test]
fn a_cost_limit_needs_a_price() {
    let limited = |on| Options { max_cost_usd: Some(1.0), on_unsupported: Some(on), ..Options::default() };
    let priced = |price: f64| json!({"sessionId": "s", "model": {"cost": {"input": price, "output": 0}}});
    for (on, price, wanted, prompts) in [
        (OnUnsupported::Fail, 0.0, Some(Code::InvalidRequest), 0),
        (OnUnsupported::Fail, 0.5, None, 1),
        (OnUnsupported::Warn, 0.0, None, 1),
    ] {
        let (_, out) = open(limited(on), true, &priced(price));
        assert_eq!((code(&out), out.send.len()), (wanted, prompts), "{on:?} {price}");
    }
}

#[test]
fn an_image_needs_a_model_that_takes_images() {
    for (inputs, wanted) in
        [(json!(["text"]), Some(Code::InvalidRequest)), (json!(["text", "image"]), None), (Value::Null, None)]
    {
        let mut settings = settings(Options::default());
        let subject = sentence!("{images}", images);
        settings.attached = vec![Image { subject, path: "/w/a.png".into(), media_type: "image/png", bytes: 1 }];
        let (pi, out) = open_with(&settings, true, &json!({"sessionId": "s", "model": {"input": inputs}}));
        assert_eq!((code(&out), out.send.len()), (wanted, usize::from(wanted.is_none())), "{inputs}");
        assert_eq!(pi.features(&settings).images, wanted.is_none());
    }
}

#[test]
fn a_prompt_that_pi_queues_after_a_cancel_is_taken_from_the_queue() {
    let mut pi = running();
    let mut out = DriverOutput::default();
    assert!(pi.steer("And B.", &[], &mut out) && pi.interrupt_turn(&mut out));
    let mut response = started();
    response["data"]["disposition"] = json!("queued");
    let out = told(&mut pi, &response);
    assert!(out.send.len() == 1 && out.send[0].contains("clear_queue"), "{out:?}");
    let out = told(&mut pi, &json!({"type": "agent_settled", "aborted": true}));
    assert!(matches!(ended(&out), Some(TurnOver::Interrupted)));
}

#[test]
fn nothing_is_asked_while_a_turn_is_being_stopped() {
    let mut pi = running();
    pi.interrupt_turn(&mut DriverOutput::default());
    let request = json!({"type": "extension_ui_request", "id": "r", "method": "confirm", "title": "Sure?"});
    let out = told(&mut pi, &request);
    assert!(out.events.is_empty() && out.send[0].contains("cancelled"), "{out:?}");
}

#[test]
fn a_permission_shows_the_call_and_takes_every_reply() {
    for (tool, input, category, detail, place) in [
        ("bash", json!({"command": "make", "timeout": 5}), Category::Execute, "make\ntimeout: 5", None),
        ("codemode", json!({"code": "text(\"a\")\nexit()"}), Category::Execute, "text(\"a\")\nexit()", None),
        ("write", json!({"path": "a", "content": "1"}), Category::Edit, "add a\n+1", Some("a")),
        (
            "edit",
            json!({"path": "a", "edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": "4"}]}),
            Category::Edit,
            "-1\n+2\n-3\n+4\n",
            Some("a"),
        ),
        ("read", json!({"path": "~/.ssh/id"}), Category::Read, r#"{"path":"~/.ssh/id"}"#, None),
        ("grep", json!({"pattern": "x"}), Category::Search, r#"{"pattern":"x"}"#, Some(".")),
        ("find", json!({"pattern": "../*"}), Category::Search, r#"{"pattern":"../*"}"#, None),
        ("mcp__a__b", json!({"x": 1}), Category::Mcp, r#"{"x":1}"#, None),
    ] {
        let mut pi = running();
        let out = told(&mut pi, &gate(tool, &input));
        let [AgentEvent::Ask { asks, .. }] = &out.events[..] else { panic!("{tool}: {:?}", out.events) };
        let subject = asks.iter().next().unwrap().subject.clone().unwrap();
        let places: Vec<&str> = subject.locations.iter().map(|place| place.path.unredacted()).collect();
        assert_eq!((subject.category, places), (category, place.into_iter().collect()), "{tool}");
        assert!(subject.detail.unredacted().contains(detail.trim_start_matches("add a\n")), "{tool}: {subject:?}");
    }
    for (given, wanted) in [
        (Reply::Allowed, json!({"allowed": true})),
        (Reply::AllowedWith("{\"command\":\"true\"}".into()), json!({"allowed": true, "input": {"command": "true"}})),
        (Reply::Denied(Some("Not now.".into())), json!({"reason": "Not now."})),
        (Reply::Denied(None), json!({})),
    ] {
        let mut pi = running();
        told(&mut pi, &gate("bash", &json!({"command": "make"})));
        assert_eq!(reply(&mut pi, given.clone()), wanted);
        let end = json!({"type": "tool_execution_end", "toolCallId": "c", "toolName": "bash", "isError": true,
            "result": {"content": []}});
        let out = told(&mut pi, &end);
        let denied = !matches!(given, Reply::Allowed | Reply::AllowedWith(_));
        let wanted = if denied { ToolState::Denied } else { ToolState::Failed };
        assert!(matches!(out.events[..], [AgentEvent::ToolOver { state, .. }] if state == wanted), "{:?}", out.events);
    }
    // An input that nobody can read is not asked about.
    let out = told(&mut running(), &gate("bash", &json!("make")));
    assert!(out.events.is_empty() && out.send[0].contains("cancelled"), "{out:?}");
}

#[test]
fn other_extensions_may_ask() {
    for (method, fields, kind, answer, wanted) in [
        ("confirm", json!({}), "confirm", Answer::Bool(true), json!({"confirmed": true})),
        ("select", json!({"options": ["A", "B"]}), "select", Answer::One("B".into()), json!({"value": "B"})),
        ("input", json!({"placeholder": "p"}), "text", Answer::Text("t".into()), json!({"value": "t"})),
    ] {
        let mut pi = running();
        let mut request = json!({"type": "extension_ui_request", "id": "r", "method": method, "title": "Sure?"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let out = told(&mut pi, &request);
        let [AgentEvent::Ask { asks, call: None, .. }] = &out.events[..] else { panic!("{:?}", out.events) };
        let ask = asks.iter().next().unwrap();
        assert!(ask.text.unredacted().starts_with("Sure?"));
        assert_eq!((ask.kind.word().word(), matches!(ask.kind, Kind::Secret)), (kind, false));
        assert_eq!(reply(&mut pi, Reply::Answer(answer)), wanted);
        told(&mut pi, &request);
        assert_eq!(reply(&mut pi, Reply::Declined(None)), json!({"cancelled": true}));
        told(&mut pi, &request);
        let out = told(&mut pi, &settled());
        assert!(matches!(out.events[..], [AgentEvent::AskWithdrawn { .. }, AgentEvent::TurnOver(_)]), "{out:?}");
    }
}

#[test]
fn a_prompt_that_pi_may_have_missed_holds_the_end_back() {
    for (disposition, goes_on) in [("started", true), ("handled", false)] {
        let mut pi = running();
        let mut out = DriverOutput::default();
        assert!(pi.steer("And B.", &[], &mut out));
        assert!(out.send[0].contains(r#""streamingBehavior":"steer""#));
        assert!(ended(&told(&mut pi, &settled())).is_none(), "the end waits");
        let mut response = started();
        response["data"]["disposition"] = json!(disposition);
        assert_eq!(ended(&told(&mut pi, &response)).is_none(), goes_on, "{disposition}");
        if goes_on {
            told(&mut pi, &json!({"type": "agent_start"}));
            assert!(matches!(ended(&told(&mut pi, &settled())), Some(TurnOver::Completed { .. })));
        }
    }
}

#[test]
fn a_prompt_that_pi_refuses_during_a_turn_is_not_lost_silently() {
    let refused = json!({"type": "response", "command": "prompt", "success": false, "error": "Busy."});
    for settles_first in [false, true] {
        let mut pi = running();
        assert!(pi.steer("And B.", &[], &mut DriverOutput::default()));
        if settles_first {
            told(&mut pi, &settled());
        }
        let out = told(&mut pi, &refused);
        assert!(matches!(out.events[0], AgentEvent::Warning(Warning::PromptRefused, _)), "{out:?}");
        assert_eq!(matches!(ended(&out), Some(TurnOver::Completed { .. })), settles_first);
    }
}

#[test]
fn a_dialog_that_nobody_can_answer_is_cancelled() {
    let select =
        json!({"type": "extension_ui_request", "id": "r", "method": "select", "title": "Which?", "options": []});
    let mut broken = gate("bash", &json!({}));
    broken["placeholder"] = json!("{");
    for request in [select, broken] {
        let out = told(&mut running(), &request);
        assert!(out.send.len() == 1 && out.send[0].contains("cancelled"), "{request}: {out:?}");
    }
}

#[test]
fn a_cancel_answers_what_is_open_before_it_aborts() {
    let mut pi = running();
    told(&mut pi, &gate("bash", &json!({"command": "make"})));
    let mut out = DriverOutput::default();
    assert!(pi.interrupt_turn(&mut out));
    let order = ["cancelled", "clear_queue", "abort"];
    assert!(out.send.len() == 3 && out.send.iter().zip(order).all(|(line, word)| line.contains(word)), "{out:?}");
    let out = told(&mut pi, &gate("bash", &json!({"command": "make"})));
    assert!(out.events.is_empty() && out.send[0].contains("cancelled"), "nothing is asked any more");
    let out = told(&mut pi, &json!({"type": "agent_settled", "aborted": true}));
    assert!(matches!(ended(&out), Some(TurnOver::Interrupted)));

    // The prompt had not begun: it is aborted as soon as it has.
    let (mut pi, _) = open(Options::default(), true, &json!({"sessionId": "s"}));
    pi.interrupt(&mut DriverOutput::default());
    assert!(told(&mut pi, &started()).send[0].contains("abort"));
    // pi had nothing to abort.
    let out = told(&mut pi, &json!({"type": "response", "command": "abort", "success": true}));
    assert!(matches!(ended(&out), Some(TurnOver::Interrupted)));
    let mut out = DriverOutput::default();
    pi.interrupt(&mut out);
    assert!(out.send.is_empty() && ended(&out).is_some());
}

#[test]
fn an_exit_before_the_session_is_told_as_what_it_is() {
    let resumed = || Options { session_id: SessionId::new("s"), ..Options::default() };
    for (options, status, stderr, wanted) in [
        (Options::default(), 1, "Error: Model \"x/y\" not found. Use --list-models.", Code::ModelNotFound),
        (Options::default(), 1, "No API key found for anthropic.", Code::AuthRequired),
        (Options::default(), 1, "", Code::AgentStartFailed),
        (resumed(), 1, "No session found matching 's'", Code::SessionNotFound),
        (resumed(), 0, "", Code::AgentStartFailed),
    ] {
        let mut pi = Pi::new(Base::command("pi"));
        pi.launch(&settings(options), &mut DriverOutput::default()).unwrap();
        let over = pi.exited(AgentExit { code: Some(status), signal: None }, false, &Text::from(stderr));
        assert!(matches!(&over, TurnOver::Failed(failure) if failure.code == wanted), "{stderr}: {over:?}");
    }
}

/// pi asks whether to copy it, and would wait.
#[test]
fn a_session_of_another_project_is_not_found() {
    let mut pi = Pi::new(Base::command("pi"));
    pi.launch(&settings(Options::default()), &mut DriverOutput::default()).unwrap();
    let mut out = DriverOutput::default();
    pi.line(Line::Text("Session found in different project: /other".into()), &mut out);
    assert_eq!(code(&out), Some(Code::SessionNotFound));
}

#[test]
fn the_extension_has_what_the_run_says() {
    let access = McpAccess::Stdio { command: "db".into(), args: Vec::new(), env: [("A".into(), "$x".into())].into() };
    let mut settings = settings(Options {
        disallowed_tools: Some(vec!["bash".into()]),
        permissions: Some(Permissions::ReadOnly),
        system_prompt: Some("Be brief.".into()),
        ..Options::default()
    });
    settings.mcp_servers = vec![McpServer::new("my-db", access.clone())];
    settings.ask_server = Some(McpServer::new("spektacular-1", access.clone()));
    settings.nonce = "1".into();
    let launch = Pi::new(Base::command("pi")).launch(&settings, &mut DriverOutput::default()).unwrap();
    assert_eq!(
        (launch.program, launch.args.last().map(String::as_str)),
        (Program::Command("pi".into()), Some("--extension"))
    );
    let text = &launch.files[0].text;
    let run = text.lines().find_map(|line| line.strip_prefix("const RUN = ")).unwrap();
    let run: Value = serde_json::from_str(run).unwrap();
    for (field, wanted) in [
        ("name", json!("spektacular-1")),
        ("own", json!(["mcp__spektacular_1__ask_user", "mcp__spektacular_1__submit_result"])),
        ("disallowed", json!(["bash"])),
        ("reads", json!(true)),
        ("prompt", json!("Be brief.")),
    ] {
        assert_eq!(run[field], wanted, "{field}");
    }
    assert_eq!(run["servers"]["my-db"]["env"], json!({"A": "$x"}));
    assert!(run["servers"]["spektacular-1"].is_object());
    settings.mcp_servers = vec![McpServer::new("a.b", access)];
    assert!(Pi::new(Base::command("pi")).launch(&settings, &mut DriverOutput::default()).is_err());
}

#[test]
fn a_retry_says_when_it_comes_and_a_failed_server_why() {
    let mut pi = running();
    told(
        &mut pi,
        &json!({"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "error",
        "errorMessage": "429: {}", "timestamp": 1_795_881_024_000_i64, "durationMs": 1000}}),
    );
    let out = told(
        &mut pi,
        &json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000,
        "errorMessage": "429: {\"message\":\"Slow down.\"}"}),
    );
    let [AgentEvent::Retrying { text, retry_at: Some(at) }] = &out.events[..] else { panic!("{:?}", out.events) };
    assert_eq!(text.unredacted(), "Retrying after the rate limit: attempt 1 of 3 in 2.0 s");
    assert_eq!(at.since_1970().as_secs(), 1_795_881_027);
    let notice = "MCP servers need attention:\n  bad: failed: spawn ENOENT\nRun /mcp to fix.";
    let out = told(&mut pi, &json!({"type": "extension_ui_request", "id": "n", "method": "notify", "message": notice}));
    assert!(matches!(&out.events[..], [AgentEvent::McpServer { name, .. }] if name == "bad"), "{:?}", out.events);
}

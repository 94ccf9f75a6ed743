//! The limits of what an agent can make the driver keep or say.

use super::{failure, hear, in_a_turn, initialized, started};
use crate::agent::acp::Acp;
use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::{AgentEvent, Base, Driver, DriverOutput, Reply, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::question::Kind;
use crate::protocol::request::{Options, Permissions, Seconds, Settings};
use crate::protocol::text::Text;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{Category, OnUnsupported, Policy};
use serde_json::{Value, json};

#[test]
fn an_agent_is_told_of_20_denied_calls_and_to_continue_3_times() {
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
        driver.answer(&key.unwrap(), &[Reply::Denied(None)], &mut DriverOutput::default());
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
    for turn in 0..=3 {
        denied(&mut driver, &format!("t{turn}"));
        let (sent, events) = end(&mut driver, 3 + turn);
        assert_eq!((sent.len(), failure(&events).is_some()), if turn < 3 { (1, false) } else { (0, true) }, "{turn}");
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

fn session(model: &str, offered: &[&str]) -> Value {
    let options: Vec<Value> = offered.iter().map(|value| json!({"value": value})).collect();
    let option = json!({"id": "model", "category": "model", "currentValue": model, "options": options});
    json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s", "configOptions": [option]}})
}

#[test]
fn no_prompt_goes_to_a_model_that_nobody_chose() {
    let free = &["opencode/big-pickle", "opencode/heron-free"][..];
    let more = &["opencode/big-pickle", "openai/gpt-5"][..];
    for (named, model, offered, is_sent) in [
        (None, "opencode/big-pickle", free, false),
        (None, "opencode/heron-free", free, false),
        (None, "opencode/big-pickle", more, false),
        (None, "anthropic/claude", &[], false),
        (None, "openai/gpt-5", more, true),
        (None, "opencode/claude", more, true),
        (Some("opencode/big-pickle"), "opencode/big-pickle", free, true),
    ] {
        let options = Options { model: named.map(str::to_owned), ..Options::default() };
        let mut driver = started(&OPENCODE, options);
        hear(&mut driver, &initialized(&json!({})));
        let (sent, events) = hear(&mut driver, &session(model, offered));
        assert_eq!(failure(&events), (!is_sent).then_some(Code::AuthRequired), "{model} {offered:?}");
        assert_eq!(sent.is_empty(), !is_sent, "{model} {offered:?}");
    }
}

#[test]
fn a_budget_of_opencode_needs_the_reports_of_each_call_of_the_model() {
    for (is_wish, reports, is_sent) in [(false, false, false), (false, true, true), (true, false, true)] {
        let mut driver = Acp::new(Base::command("agent"), &OPENCODE);
        let on_unsupported = is_wish.then_some(OnUnsupported::Warn);
        let options = Options { max_cost_usd: Some(1.0), on_unsupported, ..Options::default() };
        let settings = options.resolve("Go on".into(), "agent".into(), "/p".into());
        let launch = driver.launch(&settings, &mut DriverOutput::default()).unwrap();
        let plugin = launch.files.iter().find(|file| file.name == "spektacular.js").unwrap();
        assert_eq!(plugin.text.contains("PRICED = true"), !is_wish, "{}", plugin.text);
        if reports {
            hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "_spektacular/ready", "params": {}}));
        }
        hear(&mut driver, &initialized(&json!({})));
        let (sent, events) = hear(&mut driver, &session("stub/model", &["stub/model"]));
        assert_eq!(failure(&events), (!is_sent).then_some(Code::InvalidRequest));
        assert_eq!(sent.is_empty(), !is_sent);
    }
}

#[test]
fn opencode_has_the_plugin_only_where_it_waits_for_nothing() {
    for (own_rules, max_turns, has_plugin, is_patient) in [
        ("", None, false, false),
        (r#"{"@opencode-ai/plugin":true}"#, None, true, false),
        (r#"{"@opencode-ai/plugin":true}"#, Some(3), true, false),
        ("", Some(3), true, true),
    ] {
        let options = Options { max_turns, ..Options::default() };
        let settings = options.resolve("Go on".into(), "agent".into(), "/p".into());
        let settings = Settings { own_rules: own_rules.into(), ..settings };
        let mut driver = Acp::new(Base::command("agent"), &OPENCODE);
        let launch = driver.launch(&settings, &mut DriverOutput::default()).unwrap();
        assert_eq!(!launch.files.is_empty(), has_plugin, "{own_rules} {max_turns:?}");
        // The user's own plugins may delay it too.
        let retries = launch.env.iter().any(|(name, _)| name == "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT");
        assert!(retries, "{own_rules} {max_turns:?}");
        assert_eq!(launch.start_timeout == Some(Seconds(300.0)), is_patient, "{own_rules} {max_turns:?}");
    }
}

fn report(name: &str, status: Option<u16>, text: &str) -> Value {
    let params = json!({"session": "s", "name": name, "status": status, "text": text});
    json!({"jsonrpc": "2.0", "method": "_spektacular/error", "params": params})
}

#[test]
fn a_report_explains_the_error_with_its_text_and_no_other() {
    for (said, status) in [("Internal error: No.", Some(403)), ("Internal error: Something else.", None)] {
        let mut driver = in_a_turn(&OPENCODE);
        hear(&mut driver, &report("APIError", Some(403), "No."));
        let (_, events) = hear(&mut driver, &json!({"id": 3, "error": {"code": -32603, "message": said}}));
        let [AgentEvent::TurnOver(TurnOver::Failed(failure))] = &events[..] else { panic!("{events:?}") };
        assert_eq!(failure.http_status, status, "{said}");
    }
}

#[test]
fn a_report_of_a_limit_has_its_end() {
    let mut driver = in_a_turn(&OPENCODE);
    let mut report = report("APIError", Some(429), "Slow down.");
    report["params"]["until"] = json!(1_771_581_600_000_u64);
    hear(&mut driver, &report);
    let (_, events) = hear(&mut driver, &json!({"id": 3, "error": {"code": -32603, "message": "Slow down."}}));
    let [AgentEvent::TurnOver(TurnOver::Failed(failure))] = &events[..] else { panic!("{events:?}") };
    assert_eq!(failure.retry_at.map(UtcTime::text).as_deref(), Some("2026-02-20T10:00:00.000Z"));
}

#[test]
fn a_prompt_that_stays_too_long_ends_the_turn() {
    let mut driver = in_a_turn(&OPENCODE);
    let overflow = report("ContextOverflowError", None, "Too long.");
    for step in [false, true, false] {
        assert!(hear(&mut driver, &overflow).0.is_empty());
        assert!(hear(&mut driver, &overflow).0.is_empty());
        let params = json!({"id": step, "tokens": {}, "calls": true});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "_spektacular/step", "params": params}));
    }
    let sent: Vec<_> = (0..3).flat_map(|_| hear(&mut driver, &overflow).0).collect();
    assert!(sent.len() == 1 && sent[0]["method"] == "session/cancel", "{sent:?}");
    let (_, events) = hear(&mut driver, &json!({"id": 3, "error": {"code": -32603, "message": "Too long."}}));
    let [.., AgentEvent::TurnOver(TurnOver::Failed(failure))] = &events[..] else { panic!("{events:?}") };
    assert_eq!(failure.code, Code::ContextExceeded);
    assert_eq!(failure.agent_message.as_ref().map(Text::unredacted), Some("Too long."));
}

#[test]
fn each_turn_may_shorten_its_conversation() {
    let mut driver = in_a_turn(&OPENCODE);
    for turn in 3..6 {
        for _ in 0..2 {
            assert!(hear(&mut driver, &report("ContextOverflowError", None, "Too long.")).0.is_empty(), "{turn}");
        }
        let (_, events) = hear(&mut driver, &json!({"id": turn, "result": {"stopReason": "end_turn"}}));
        assert!(matches!(events[..], [.., AgentEvent::TurnOver(TurnOver::Completed { .. })]), "{events:?}");
        driver.follow_up("Go on", &[], &mut DriverOutput::default());
    }
}

#[test]
fn each_report_of_a_turn_counts_once_with_all_its_tokens() {
    let copied =
        json!({"jsonrpc": "2.0", "method": "_spektacular/step", "params": {"id": "a", "tokens": {}, "cost": 1}});
    assert!(hear(&mut started(&OPENCODE, Options::default()), &copied).1.is_empty());
    let mut driver = in_a_turn(&OPENCODE);
    hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "_spektacular/ready", "params": {}}));
    let tokens = json!({"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 30, "write": 2}});
    let step = |id: &str| {
        let params = json!({"id": id, "tokens": tokens, "cost": 0.5});
        json!({"jsonrpc": "2.0", "method": "_spektacular/step", "params": params})
    };
    let (_, first) = hear(&mut driver, &step("a"));
    assert!(matches!(first[..], [AgentEvent::ModelCalled, AgentEvent::Usage(_)]), "{first:?}");
    let (_, again) = hear(&mut driver, &step("a"));
    assert!(again.is_empty(), "{again:?}");
    let (_, second) = hear(&mut driver, &step("b"));
    let [AgentEvent::ModelCalled, AgentEvent::Usage(used)] = &second[..] else { panic!("{second:?}") };
    assert_eq!((used.input_tokens, used.output_tokens, used.cached_input_tokens), (Some(264), Some(30), Some(60)));
    assert_eq!(used.cost_usd, Some(1.0));
}

/// Gemini CLI runs commands that only read without asking, unless it may run none.
#[test]
fn a_policy_for_reads_that_gemini_does_not_keep_is_refused_or_a_warning() {
    use crate::agent::limit::launch;
    let policy = |named: &[(Category, Policy)]| Permissions::ByCategory {
        named: named.iter().copied().collect(),
        rest: Some(Policy::Ask),
    };
    let (read, run) = (Category::Read, Category::Execute);
    for (profile, named, refused, warned) in [
        (&GEMINI, &[(read, Policy::Deny)][..], true, false),
        (&GEMINI, &[(read, Policy::Deny), (run, Policy::Deny)], false, false),
        (&GEMINI, &[(read, Policy::Ask)], false, true),
        (&GEMINI, &[], false, false),
        (&OPENCODE, &[(read, Policy::Ask)], false, false),
    ] {
        let mut driver = Acp::new(Base::command("agent"), profile);
        let options = Options { permissions: Some(policy(named)), ..Options::default() };
        let settings = options.resolve("x".into(), "agent".into(), "/p".into());
        let mut out = DriverOutput::default();
        assert_eq!(launch(&settings, &mut driver, &mut out).is_err(), refused, "{named:?}");
        assert_eq!(!out.events.is_empty(), warned, "{named:?}: {:?}", out.events);
    }
}

//! The mode that asks most. The sessions are those of real agents, cut to what counts.

use super::{failure, hear, initialized, started};
use crate::agent::acp::agents::find_profile;
use crate::agent::acp::profile::Profile;
use crate::agent::limit::{Keeper, Limit};
use crate::agent::{AgentEvent, Driver, Program};
use crate::protocol::failure::Code;
use crate::protocol::request::{Options, Permissions};
use crate::protocol::words::{Category, OnUnsupported, Policy};
use serde_json::{Value, json};

fn profile(agent: &str) -> &'static Profile {
    find_profile(&Program::Command(agent.into()), agent)
}

fn all(policy: Policy) -> Permissions {
    Permissions::All(policy)
}

/// A session with these modes, each `id=name`; the first is the current one.
fn modes(modes: &[&str]) -> Value {
    let all: Vec<Value> = modes
        .iter()
        .map(|mode| {
            let (id, name) = mode.split_once('=').unwrap_or((mode, mode));
            json!({"id": id, "name": name})
        })
        .collect();
    json!({"modes": {"currentModeId": all[0]["id"], "availableModes": all}})
}

/// The modes that the driver sets before the prompt, `id` or `option=value` each, or the code of its failure; and the
/// number of warnings.
fn sent(agent: &str, options: Options, session: &Value) -> (Vec<String>, usize) {
    let mut driver = started(profile(agent), options);
    hear(&mut driver, &initialized(&json!({})));
    let mut result = json!({"sessionId": "s"});
    result.as_object_mut().unwrap().extend(session.as_object().unwrap().clone());
    let mut line = json!({"jsonrpc": "2.0", "id": 2, "result": result});
    let (mut all, mut warnings) = (Vec::new(), 0);
    for id in 3.. {
        let (sent, events) = hear(&mut driver, &line);
        warnings += events.iter().filter(|event| matches!(event, AgentEvent::Warning(..))).count();
        let Some(sent) = sent.into_iter().next() else {
            all.push(format!("{:?}", failure(&events)));
            break;
        };
        let params = &sent["params"];
        match sent["method"].as_str().unwrap() {
            "session/set_mode" => all.push(params["modeId"].as_str().unwrap().to_owned()),
            "session/set_config_option" => {
                all.push(format!("{}={}", params["configId"].as_str().unwrap(), params["value"]));
            }
            _ => break,
        }
        line = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    (all, warnings)
}

fn under(agent: &str, permissions: Permissions, session: &Value) -> Vec<String> {
    sent(agent, Options { permissions: Some(permissions), ..Options::default() }, session).0
}

const REFUSED: &str = "Some(InvalidRequest)";

#[test]
fn every_agent_is_put_into_the_mode_that_asks_most() {
    let qwen = ["auto=Auto", "plan=Plan", "default=Default", "auto-edit=Auto Edit", "yolo=YOLO"];
    let claude = ["auto=Auto", "default=Manual", "acceptEdits=Accept edits", "plan=Plan"];
    let codex = [
        "agent=Auto review",
        "read-only=Read-only",
        "workspace-write=Workspace access",
        "agent-full-access=Full access",
    ];
    let vibe = ["accept-edits=Accept Edits", "default=Default", "ask=Ask", "plan=Plan", "auto-approve=Auto Approve"];
    let droid = ["normal=Auto (Off)", "spec=Spec", "auto-low=Auto (Low)", "auto-high=Auto (High)"];
    let openhands = ["always-ask=Always ask", "always-approve=Always approve", "llm-approve=LLM approve"];
    let address = "https://agentclientprotocol.com/protocol/session-modes#";
    let copilot: Vec<String> = ["agent", "plan", "autopilot"].map(|mode| format!("{address}{mode}")).into();
    let copilot: Vec<&str> = copilot.iter().map(String::as_str).collect();
    let plan = format!("{address}plan");
    for (agent, offered, asks, reads) in [
        ("qwen", &qwen[..], Some("default"), Some("plan")),
        ("claude-acp", &claude, Some("default"), Some("plan")),
        ("codex-acp", &codex, Some("read-only"), Some("read-only")),
        ("vibe-acp", &vibe, Some("default"), Some("plan")),
        ("droid", &droid, None, Some("spec")),
        ("openhands", &openhands, None, None),
        ("copilot", &copilot, None, Some(&*plan)),
        ("cline", &["act=Act", "plan=Plan"], None, Some("plan")),
        ("hermes", &["default=Default", "acceptEdits=Accept Edits", "dontAsk=Don't Ask"], None, Some(REFUSED)),
        // Its modes are agents, and its rules say what it asks for.
        ("kilo", &["code=code", "ask=ask", "plan=plan"], None, None),
        ("opencode", &["build=build", "plan=plan"], None, None),
        ("gemini", &["default=Default", "autoEdit=Auto Edit", "yolo=YOLO", "plan=Plan"], None, None),
        ("gemini", &["yolo=YOLO", "default=Default"], Some("default"), Some("default")),
        // Agents that nobody tried.
        ("new", &["bypassPermissions=Bypass", "manual=Ask for everything"], Some("manual"), Some("manual")),
        ("new", &["full-access=Full access", "always-ask=Safe"], Some("always-ask"), Some("always-ask")),
        ("new", &["code=Code", "review=Review"], None, None),
    ] {
        let wanted = |mode: Option<&str>| mode.map(str::to_owned).into_iter().collect::<Vec<_>>();
        let session = modes(offered);
        assert_eq!(under(agent, all(Policy::Ask), &session), wanted(asks), "{agent}");
        assert_eq!(under(agent, all(Policy::Allow), &session), wanted(asks), "{agent}");
        assert_eq!(under(agent, Permissions::ReadOnly, &session), wanted(reads), "{agent}");
    }
}

#[test]
fn options_count_as_modes() {
    let option = |id: &str, name: &str, category: Value, current: Value, values: &[&str]| {
        let values: Vec<Value> = values.iter().map(|value| json!({"value": value, "name": value})).collect();
        json!({"id": id, "name": name, "category": category, "currentValue": current, "options": values})
    };
    let session = |options: &[Value]| json!({"configOptions": options});
    let on_off = ["on", "off"];
    for (options, wanted) in [
        // Copilot's and Cline's.
        (vec![option("allow_all", "Allow All", json!("permissions"), json!("on"), &on_off)], vec!["allow_all=\"off\""]),
        (vec![option("allow_all", "Allow All", json!("permissions"), json!("off"), &on_off)], vec![]),
        (
            vec![json!({"id": "auto_approve", "name": "Auto-approve tools", "type": "boolean", "currentValue": true})],
            vec!["auto_approve=false"],
        ),
        // Droid's modes.
        (
            vec![option(
                "autonomy_level",
                "Autonomy Level",
                json!("mode"),
                json!("auto-high"),
                &["auto-high", "normal"],
            )],
            vec!["autonomy_level=\"normal\""],
        ),
        (
            vec![
                option("mode", "Mode", json!("mode"), json!("auto"), &["auto", "default"]),
                option("approval_policy", "Approvals", Value::Null, json!("never"), &["never", "untrusted"]),
            ],
            vec!["mode=\"default\"", "approval_policy=\"untrusted\""],
        ),
        // Options that are no modes.
        (
            vec![
                option("fast", "Fast mode", json!("model_config"), json!("on"), &on_off),
                option("auto_compact", "Auto-compact", Value::Null, json!("on"), &on_off),
                option("effort", "Effort", json!("thought_level"), json!("auto"), &["auto", "default"]),
            ],
            vec![],
        ),
    ] {
        assert_eq!(under("new", all(Policy::Deny), &session(&options)), wanted, "{options:?}");
    }
}

#[test]
fn a_policy_that_no_mode_keeps_is_refused_before_the_prompt() {
    let allows = modes(&["yolo=YOLO", "accept-edits=Accept edits"]);
    for policy in [all(Policy::Ask), all(Policy::Deny), Permissions::ReadOnly] {
        assert_eq!(under("new", policy, &allows), [REFUSED]);
    }
    assert_eq!(under("new", all(Policy::Allow), &allows), [""; 0]);
    let warned = Options {
        permissions: Some(all(Policy::Deny)),
        on_unsupported: Some(OnUnsupported::Warn),
        ..Options::default()
    };
    assert_eq!(sent("new", warned, &allows), (vec![], 1));
    // A mode that somebody wishes for keeps the policy too.
    let wished = |policy| Options { mode: Some("yolo".into()), permissions: Some(policy), ..Options::default() };
    let both = modes(&["default", "yolo"]);
    assert_eq!(sent("new", wished(all(Policy::Allow)), &both), (vec!["yolo".into()], 0));
    assert_eq!(sent("new", wished(all(Policy::Ask)), &both), (vec![REFUSED.into()], 0));
    let warned_of = Options { on_unsupported: Some(OnUnsupported::Warn), ..wished(Permissions::ReadOnly) };
    assert_eq!(sent("new", warned_of, &both), (vec!["yolo".into()], 1));

    // Known agents that do not ask for some actions.
    let by =
        |category, policy| Permissions::ByCategory { named: [(category, policy)].into(), rest: Some(Policy::Allow) };
    let kimi = modes(&["default=Default", "plan=Plan", "auto=Auto", "yolo=YOLO"]);
    let hermes = modes(&["default=Default", "acceptEdits=Accept Edits"]);
    for (agent, session, policy, wanted) in [
        ("kimi", &kimi, all(Policy::Deny), vec!["plan"]),
        ("kimi", &kimi, by(Category::Execute, Policy::Deny), vec![]),
        ("hermes", &hermes, all(Policy::Deny), vec![REFUSED]),
        ("hermes", &hermes, by(Category::Edit, Policy::Deny), vec![]),
        ("pi-acp", &modes(&["off=Thinking: off"]), all(Policy::Deny), vec![REFUSED]),
        ("pi-acp", &modes(&["off=Thinking: off"]), all(Policy::Allow), vec![]),
    ] {
        assert_eq!(under(agent, policy, session), wanted, "{agent}");
    }
    let asking = || Options { permissions: Some(all(Policy::Ask)), ..Options::default() };
    assert_eq!(sent("kimi", asking(), &kimi), (vec![], 1), "it edits unasked: a warning");
    assert_eq!(sent("pi-acp", asking(), &json!({})), (vec![], 1));
}

fn put_back(agent: &str, options: Options, session: &Value, update: &Value) -> Vec<Value> {
    let mut driver = started(profile(agent), options);
    hear(&mut driver, &initialized(&json!({})));
    let mut result = session.clone();
    result["sessionId"] = json!("s");
    let mut line = json!({"jsonrpc": "2.0", "id": 2, "result": result});
    for id in 3.. {
        let (sent, _) = hear(&mut driver, &line);
        if sent[0]["method"] == "session/prompt" {
            let params = json!({"sessionId": "s", "update": update});
            let (sent, events) =
                hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
            assert!(events.is_empty(), "{events:?}");
            // The turn goes on: its end is the response to the prompt.
            let end = json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}});
            let (_, events) = hear(&mut driver, &end);
            assert!(events.iter().any(|event| matches!(event, AgentEvent::TurnOver(_))), "{events:?}");
            return sent.into_iter().map(|sent| sent["params"].clone()).collect();
        }
        line = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    unreachable!()
}

#[test]
fn an_agent_that_changes_to_a_mode_that_allows_is_put_back() {
    let under = |policy| Options { permissions: Some(policy), ..Options::default() };
    let now = |mode: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
    let offered = modes(&["default", "plan", "acceptEdits"]);
    let set = |mode: &str| vec![json!({"sessionId": "s", "modeId": mode})];
    for (agent, options, changed, wanted) in [
        ("new", under(all(Policy::Ask)), "acceptEdits", set("default")),
        ("claude-acp", under(Permissions::ReadOnly), "acceptEdits", set("plan")),
        ("new", under(all(Policy::Ask)), "plan", vec![]),
        ("new", Options { mode: Some("acceptEdits".into()), ..under(all(Policy::Allow)) }, "acceptEdits", vec![]),
        // Its modes are agents.
        ("opencode", under(all(Policy::Ask)), "acceptEdits", vec![]),
    ] {
        assert_eq!(put_back(agent, options, &offered, &now(changed)), wanted, "{agent} {changed}");
    }
    let options =
        |auto: bool| json!([{"id": "auto_approve", "name": "Auto-approve", "type": "boolean", "currentValue": auto}]);
    let update = json!({"sessionUpdate": "config_option_update", "configOptions": options(true)});
    let session = json!({"configOptions": options(false)});
    let wanted = json!({"sessionId": "s", "configId": "auto_approve", "value": false});
    assert_eq!(put_back("new", under(all(Policy::Ask)), &session, &update), [wanted]);
}

#[test]
fn an_agent_that_refuses_the_asking_mode_does_not_run() {
    let options = Options { permissions: Some(all(Policy::Deny)), ..Options::default() };
    let mut driver = started(profile("new"), options);
    hear(&mut driver, &initialized(&json!({})));
    let mut result = modes(&["auto", "default"]);
    result["sessionId"] = json!("s");
    hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": result}));
    let refused = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "no"}});
    let (sent, events) = hear(&mut driver, &refused);
    assert_eq!((sent.len(), failure(&events)), (0, Some(Code::InvalidRequest)));
    let settings = Options::default().resolve("Go on".into(), "agent".into(), "/p".into());
    assert_eq!(driver.features(&settings).keepers.of(Limit::Permissions), Keeper::Nobody);
}

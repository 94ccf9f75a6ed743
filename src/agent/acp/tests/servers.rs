//! The MCP servers of a session.

use super::{failure, hear, initialized};
use crate::agent::acp::Acp;
use crate::agent::acp::profile::GENERIC;
use crate::agent::{AgentEvent, Base, Driver, DriverOutput};
use crate::protocol::failure::Code;
use crate::protocol::request::{McpAccess, McpServer, Options, Settings};
use crate::protocol::words::{OnUnsupported, QuestionKind};
use serde_json::{Value, json};

fn begun(servers: &[&str], on: OnUnsupported, abilities: &Value) -> (Acp, Settings, Vec<Value>, Vec<AgentEvent>) {
    let options = Options { on_unsupported: Some(on), ..Options::default() };
    let mut settings = options.resolve("Go on".into(), "agent".into(), "/p".into());
    let access = McpAccess::Stdio { command: "server".into(), args: Vec::new(), env: [].into() };
    settings.mcp_servers = servers.iter().map(|name| McpServer::new(*name, access.clone())).collect();
    settings.ask_server = Some(McpServer::new("spektacular", access));
    let mut driver = Acp::new(Base::command("agent"), &GENERIC);
    driver.launch(&settings, &mut DriverOutput::default()).unwrap();
    let (sent, events) = hear(&mut driver, &initialized(abilities));
    (driver, settings, sent, events)
}

fn names(opening: &Value) -> Vec<&str> {
    let servers = opening["params"]["mcpServers"].as_array().unwrap();
    servers.iter().map(|server| server["name"].as_str().unwrap()).collect()
}

fn warnings(events: &[AgentEvent]) -> usize {
    events.iter().filter(|event| matches!(event, AgentEvent::Warning(..))).count()
}

#[test]
fn an_agent_that_nobody_tried_gets_the_servers_of_the_run() {
    let (driver, settings, sent, _) = begun(&["wiki"], OnUnsupported::Fail, &json!({}));
    assert_eq!(names(&sent[0]), ["wiki", "spektacular"]);
    assert_eq!(driver.features(&settings).capabilities.questions, QuestionKind::ALL);
}

/// As far as is known, no agent does so today.
#[test]
fn an_agent_that_starts_no_servers_runs_without_them_or_is_refused() {
    let refusal = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "Invalid params",
        "data": "stdio MCP servers are not supported"}});
    let says_so = json!({"mcpCapabilities": {"stdio": false}});
    for (servers, on, wanted, warned) in [
        (&[][..], OnUnsupported::Fail, None, 1),
        (&["wiki"], OnUnsupported::Fail, Some(Code::InvalidRequest), 0),
        (&["wiki"], OnUnsupported::Warn, None, 2),
    ] {
        for by_capability in [true, false] {
            let abilities = if by_capability { &says_so } else { &Value::Null };
            let (mut driver, settings, mut sent, mut events) = begun(servers, on, abilities);
            if !by_capability {
                assert!(names(&sent[0]).contains(&"spektacular"));
                (sent, events) = hear(&mut driver, &refusal);
            }
            assert_eq!((failure(&events), warnings(&events)), (wanted, warned));
            if wanted.is_none() {
                assert_eq!((&sent[0]["method"], names(&sent[0])), (&json!("session/new"), vec![]));
                let kinds = driver.features(&settings).capabilities.questions;
                assert_eq!(kinds, [QuestionKind::Select, QuestionKind::Text]);
                let id = sent[0]["id"].clone();
                let (sent, _) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": id, "result": {"sessionId": "s"}}));
                assert_eq!(sent[0]["method"], "session/prompt");
            }
        }
    }
    // Another refusal is that of the session.
    let (mut driver, ..) = begun(&[], OnUnsupported::Fail, &Value::Null);
    let other = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "Internal error"}});
    assert_eq!(failure(&hear(&mut driver, &other).1), Some(Code::AgentError));
}

//! An agent that is added by its own file and its name in the list, and the ways to MCP servers.

use super::{Agent, Agents, Dialect};
use crate::agent::{AgentEvent, Base, Driver, DriverOutput, FoundBy, Launch, Line, TurnOver, limit};
use crate::protocol::failure::Code;
use crate::protocol::failure::Failure;
use crate::protocol::request::{McpAccess, McpServer, Options};
use crate::protocol::words::{OnUnsupported, QuestionKind};
use serde_json::{Value, json};

fn with_server(on_unsupported: OnUnsupported) -> Options {
    let access = McpAccess::Stdio { command: "scales".into(), args: vec!["-v".into()], env: [].into() };
    Options {
        mcp_servers: Some(vec![McpServer::new("scales", access)]),
        on_unsupported: Some(on_unsupported),
        ..Options::default()
    }
}

fn start(agent: &Agent, options: Options) -> Result<(Box<dyn Driver>, Launch, usize), Failure> {
    let (mut driver, mut out) = (agent.driver(), DriverOutput::default());
    let settings = options.resolve("go".into(), agent.name.clone(), "/p".into());
    let launch = limit::launch(&settings, &mut *driver, &mut out)?;
    Ok((driver, launch, out.events.len()))
}

fn hear(driver: &mut dyn Driver, id: u64, result: &Value) -> (Value, Option<Code>) {
    let mut out = DriverOutput::default();
    let line = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    driver.line(Line::Text(line.into()), &mut out);
    let failed = out.events.iter().find_map(|event| match event {
        AgentEvent::TurnOver(TurnOver::Failed(failure)) => Some(failure.code),
        _ => None,
    });
    (out.send.first().map_or(Value::Null, |line| serde_json::from_str(line).unwrap()), failed)
}

#[test]
fn a_file_and_a_name_in_the_list_add_an_agent() {
    let agents = Agents::built_in();
    let agent = agents.find("sampler").unwrap();
    assert_eq!((agent.name.as_str(), agent.display_name.as_str()), ("sample", "Sample"));
    assert_eq!((agent.base.package, agent.tested.unwrap().keeps().count()), (Some("sample@1.2.3"), 5));
    let (_, launch, _) = start(&agent, Options::default()).unwrap();
    assert_eq!(launch.words().collect::<Vec<_>>(), ["sample-acp", "--acp"]);
    assert_eq!((launch.env, launch.package), (vec![("SAMPLE_QUIET".into(), "1".into())], Some("sample@1.2.3")));
    // The profile is at work, also where a configuration names the program.
    let mine = Agent::new("mine", Dialect::Acp, Base::command("/opt/sample-acp"));
    let (mut driver, ..) = start(&mine, Options::default()).unwrap();
    hear(&mut *driver, 1, &json!({"protocolVersion": 1}));
    let modes = json!([{"id": "fast", "name": "Fast"}, {"id": "careful", "name": "Careful"}]);
    let session = json!({"sessionId": "s", "modes": {"currentModeId": "fast", "availableModes": modes}});
    assert_eq!(hear(&mut *driver, 2, &session).0["params"]["modeId"], "careful");
    hear(&mut *driver, 3, &json!({}));
    assert_eq!(hear(&mut *driver, 4, &json!({"stopReason": "end_turn"})).1, Some(Code::AgentError));
}

#[test]
fn servers_are_refused_on_an_agent_that_ignores_them_and_its_model_has_no_tool_to_ask() {
    let agent = Agents::built_in().find("sample").unwrap().into_owned();
    let refused = start(&agent, with_server(OnUnsupported::Fail)).map(|_| ()).unwrap_err();
    assert_eq!(refused.code, Code::InvalidRequest);
    assert!(refused.message.text().contains("`mcp_servers` cannot be enforced with the agent sample"));
    let (mut driver, _, warnings) = start(&agent, with_server(OnUnsupported::Warn)).unwrap();
    let (opening, _) = hear(&mut *driver, 1, &json!({"protocolVersion": 1}));
    assert_eq!((&opening["params"]["mcpServers"], warnings), (&json!([]), 1));
    let interactive = Options { interactive: Some(true), ..Options::default() };
    let settings = interactive.resolve("go".into(), "sample".into(), "/p".into());
    assert_eq!(agent.features(&settings).ask_tool, None);
    assert_eq!(agent.capabilities(settings).questions, [QuestionKind::Select, QuestionKind::Text]);
}

#[test]
fn servers_go_into_a_file_on_an_agent_that_reads_one() {
    let agents = Agents::built_in();
    let (mut driver, launch, _) = start(&agents.find("copilot").unwrap(), with_server(OnUnsupported::Fail)).unwrap();
    let file = &launch.files[0];
    assert_eq!(file.found, FoundBy::Flag("--additional-mcp-config=@"));
    let text: Value = serde_json::from_str(&file.text).unwrap();
    let server = json!({"type": "local", "command": "scales", "args": ["-v"], "env": {}, "tools": ["*"]});
    assert_eq!(text, json!({"mcpServers": {"scales": server}}));
    let (opening, _) = hear(&mut *driver, 1, &json!({"protocolVersion": 1}));
    assert_eq!(opening["params"]["mcpServers"], json!([]));
}

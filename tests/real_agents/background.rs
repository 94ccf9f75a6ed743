//! Work that an agent leaves behind when its turn ends, turns that it begins, and MCP servers that are missing or end.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Client, run};
use crate::lab::Lab;

rows!(of the_run_waits_for_a_command_in_the_background: claude Claude);
rows!(of a_refused_background_leaves_nothing_behind: claude Claude);
rows!(of the_run_waits_for_a_sub_agent_in_the_background: claude Claude);
rows!(of the_run_waits_for_a_wake_up: claude Claude);
rows!(of a_turn_of_the_agents_own_takes_no_prompt: claude Claude);
rows!(of a_goal_has_turns_of_its_own: codex Codex);
rows!(of a_command_that_outlives_the_run_is_named: codex Codex);
rows!(a_server_that_is_missing_fails_the_run_or_is_a_warning);
rows!(ours: a_server_that_ends_at_its_start a_slow_server_is_awaited_if_it_is_required a_server_that_ends_at_work_is_told);

fn waits(run: &crate::client::Run) -> bool {
    run.outcome.progress("status").iter().any(|frame| frame.text("status") == "waiting_for_agent")
}

/// The turn ends first; the agent begins another one when the command has ended.
fn the_run_waits_for_a_command_in_the_background(agent: Agent) {
    let run = run(Lab::new(agent, "background"), json!({"permissions": "allow"}), Vec::new());
    run.outcome.completed();
    assert!(run.made("late.txt") && waits(&run), "{:?}", run.files());
    assert!(run.outcome.warnings("background_stopped").is_empty());
    assert_eq!(run.messages("text"), ["It runs.", "It is done."]);
}

fn a_refused_background_leaves_nothing_behind(agent: Agent) {
    let payload = json!({"permissions": "allow", "background": "refuse"});
    let run = run(Lab::new(agent, "background"), payload, Vec::new());
    run.completed("It runs.");
    assert!(!waits(&run) && run.outcome.warnings("background_stopped").is_empty());
}

/// Its report begins a further turn.
fn the_run_waits_for_a_sub_agent_in_the_background(agent: Agent) {
    let run = run(Lab::new(agent, "scout"), json!({"permissions": "allow"}), Vec::new());
    run.completed("I saw a heron.");
    let heard = run.stub().last_heard();
    assert!(heard.contains("<status>completed</status>") && heard.contains("I saw a heron."), "{heard}");
    assert_eq!(run.tools(), [("agent", "completed")]);
    assert!(run.outcome.warnings("background_stopped").is_empty());
}

/// The shortest time that Claude Code takes is a minute.
fn the_run_waits_for_a_wake_up(agent: Agent) {
    let run = run(Lab::new(agent, "wake_up"), json!({"permissions": "allow"}), Vec::new());
    run.completed("I looked again.");
    assert!(waits(&run));
    assert_eq!(run.messages("text"), ["Later.", "I looked again."]);
}

/// An event that the agent watches for begins a turn, and a prompt sent meanwhile gets a turn of its own.
fn a_turn_of_the_agents_own_takes_no_prompt(agent: Agent) {
    let lab = Lab::new(agent, "watch");
    let place = |name: &str| lab.case.work().join(name);
    let (seen, at_work, go) = (place("seen"), place("at_work"), place("go"));
    let touch = |path: &Path| fs::write(path, "").expect("a file");
    let mut client = Client::start(lab, json!({"permissions": "allow", "conversation": true}), Vec::new());
    client.until("the first turn's end", |frame| frame.text("status") == "waiting_for_prompt");
    touch(&seen);
    client.wait_file(&at_work);
    client.session.send("run.input", json!({"prompt": "Which colour?"}));
    client.session.send("run.input", json!({"end": true}));
    client.until("the prompt", |frame| frame.is_progress("prompt"));
    touch(&go);
    let run = client.finish();
    run.completed("It was grey.");
    let turns = run.outcome.progress("turn");
    let turns: Vec<_> = turns.iter().map(|turn| (turn.text("origin"), turn.text("final_text"))).collect();
    assert_eq!(turns, [("prompt", "I watch."), ("agent", "A heron came."), ("prompt", "It was grey.")]);
    assert!(run.stub().last_heard().contains("Which colour?"));
}

/// Codex goes on with an active goal, and a prompt of the user's gets a turn of its own.
fn a_goal_has_turns_of_its_own(agent: Agent) {
    let call = |name: &str, input: Value| json!({"calls": [{"tool": {"name": name, "input": input}}]});
    let replies = [
        call("create_goal", json!({"objective": "Count to two"})),
        json!({"say": ["One."]}),
        call("update_goal", json!({"status": "complete"})),
        json!({"say": ["Two."]}),
        json!({"say": ["It was grey."]}),
    ];
    let lab = Lab::playing(agent, &json!({"replies": replies}).to_string(), None);
    let mut client = Client::start(lab, json!({"permissions": "allow", "conversation": true}), Vec::new());
    client.until("the turn of the goal", |frame| frame.is_progress("turn") && frame.text("origin") == "agent");
    client.session.send("run.input", json!({"prompt": "Which colour?"}));
    client.session.send("run.input", json!({"end": true}));
    let run = client.finish();
    run.completed("It was grey.");
    let turns = run.outcome.progress("turn");
    let turns: Vec<_> = turns.iter().map(|turn| (turn.text("origin"), turn.text("final_text"))).collect();
    assert_eq!(turns, [("prompt", "One."), ("agent", "Two."), ("prompt", "It was grey.")]);
}

fn a_command_that_outlives_the_run_is_named(agent: Agent) {
    let payload = json!({"permissions": "allow", "timeout_s": 10});
    let run = run(Lab::new(agent, "background_endless"), payload, Vec::new());
    run.outcome.failed("timeout");
    assert!(waits(&run));
    let warnings = run.outcome.warnings("background_stopped");
    assert!(warnings.len() == 1 && warnings[0].text("text").contains("sleep 300"), "not named once");
}

fn a_server_that_is_missing_fails_the_run_or_is_a_warning(agent: Agent) {
    for required in [true, false] {
        let server = json!({"name": "gone", "command": "/no/such/server", "required": required});
        let payload = json!({"mcp_servers": [server], "start_timeout_s": 40});
        let run = run(Lab::new(agent, "hello"), payload, Vec::new());
        if required {
            let message = run.outcome.failed("agent_start_failed")["message"].to_string();
            assert!(message.contains("gone"), "{message}");
        } else {
            run.completed("Good day from the model.");
            assert_eq!(run.outcome.warnings("mcp_unavailable").len(), 1);
        }
    }
}

/// A run with a server that behaves in this way.
fn with_server(agent: Agent, way: &str, required: bool) -> crate::client::Run {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_agents/server.mjs");
    let server = json!({"name": "badges", "command": "node", "args": [file, way], "required": required});
    let payload = json!({"mcp_servers": [server], "permissions": "allow", "start_timeout_s": 40});
    run(Lab::new(agent, "badge"), payload, Vec::new())
}

/// The reported states of the server.
fn states(run: &crate::client::Run) -> Vec<Value> {
    let frames = run.outcome.progress("session");
    frames.iter().map(|frame| frame["payload"]["mcp_servers"][0]["state"].clone()).collect()
}

fn a_server_that_ends_at_its_start(agent: Agent) {
    let run = with_server(agent, "ends", true);
    let failed = run.outcome.failed("agent_start_failed");
    assert!(failed["message"].as_str().unwrap().contains("The MCP server badges did not start"), "{failed}");
    assert_eq!(failed["detail"]["agent_message"], "The store of badges is closed.");
    assert!(run.stub().conversation().is_empty(), "a model was asked");

    let run = with_server(agent, "ends", false);
    run.completed("It is 4711.");
    let warnings = run.outcome.warnings("mcp_unavailable");
    let text = "The MCP server badges is not available: The store of badges is closed.";
    assert!(warnings.len() == 1 && warnings[0].text("text") == text, "not one warning");
    assert_eq!(states(&run).last(), Some(&json!("failed")));
}

/// Without `required`, the agent may wait for it too, or work without it, which a warning says.
fn a_slow_server_is_awaited_if_it_is_required(agent: Agent) {
    let called =
        |run: &crate::client::Run| run.stub().tool_results().iter().any(|told| told.contains("The badge is 4711."));
    let run = with_server(agent, "slow", true);
    run.completed("It is 4711.");
    assert!(called(&run), "{:?}", run.stub().tool_results());
    assert_eq!(states(&run), ["ready"]);

    let run = with_server(agent, "slow", false);
    run.completed("It is 4711.");
    assert_eq!(run.outcome.warnings("mcp_unavailable").len(), usize::from(!called(&run)));
}

fn a_server_that_ends_at_work_is_told(agent: Agent) {
    let run = with_server(agent, "ends-at-work", true);
    run.completed("It is 4711.");
    assert_eq!(run.tools(), [("mcp", "failed")]);
    assert_eq!(states(&run).last(), Some(&json!("failed")));
    assert_eq!(run.outcome.warnings("mcp_unavailable").len(), 1);
}

//! Work that an agent leaves behind when its turn ends, and MCP servers that do not start.

use serde_json::json;

use crate::agents::Agent;
use crate::client::run;
use crate::lab::Lab;

rows!(of the_run_waits_for_a_command_in_the_background: claude Claude);
rows!(of a_refused_background_leaves_nothing_behind: claude Claude);
rows!(of a_command_that_outlives_the_run_is_named: codex Codex);
rows!(a_server_that_is_missing_fails_the_run_or_is_a_warning);

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

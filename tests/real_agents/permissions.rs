//! Permissions: allowed once, allowed for the rest of the run, denied.

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Client, Rule, Run, denial, permission, run};
use crate::lab::Lab;
use crate::support::options;

rows!(old: permission_allow permission_deny);
rows!(permission_allow_always permission_by_policy);
rows!(old: permission_always_is_no_wider_than_it_says permission_always_covers_each_equal_request);
rows!(ours: permission_denied_without_an_answer);
rows!(of permission_that_nobody_can_give: claude Claude);
rows!(of a_sub_agent_waits_for_nobody: opencode OpenCode);
rows!(of a_sub_agent_that_may_act_is_denied: gemini Gemini);

fn ask(agent: Agent, scenario: &str, rules: Vec<Rule>) -> Run {
    run(Lab::new(agent, scenario), json!({}), rules)
}

fn permission_allow(agent: Agent) {
    let run = ask(agent, "permission", permission("allow_once"));
    run.completed("That was it.");
    assert!(run.made("asked.txt"));
    assert_eq!(run.outcome.resolutions(), ["answered"]);
    assert_eq!(run.tools(), [("execute", "completed")]);
    assert_eq!(run.artifacts(), [("asked.txt", "created")], "made by a shell command, found by comparison");
    let question = run.questions()[0];
    assert_eq!(question["payload"]["subject"]["detail"], "touch asked.txt");
    assert_eq!(options(&question["payload"]), ["allow_once", "allow_always", "deny"]);
    assert_eq!(run.outcome.progress("question_resolved")[0].text("value"), "allow_once");
    let states = run.outcome.progress("status");
    assert!(states.iter().any(|f| f.text("status") == "waiting_for_input"));
}

fn permission_deny(agent: Agent) {
    let run = ask(agent, "permission", denial("Not on a Friday."));
    run.completed("That was it.");
    assert!(!run.made("asked.txt"));
    assert_eq!(run.tools(), [("execute", "denied")]);
    assert_eq!(run.outcome.progress("question_resolved")[0].text("value"), "deny");
    let told = run.stub().tool_results().concat() + &run.stub().last_heard();
    assert_eq!(told.contains("Not on a Friday."), agent.ways().reads_why, "whether the model reads why: {told}");
}

/// A permission that was allowed once is asked for again; one for the whole run is not. Neither is stored in the
/// project.
fn permission_allow_always(agent: Agent) {
    let mut client = Client::start(Lab::new(agent, "permission_thrice"), json!({}), permission("allow_always"));
    let question = client.session.until("run.question");
    client.session.answer(&question, json!("allow_once"));
    let run = client.finish();
    run.completed("Touched three times.");
    assert_eq!(run.questions().len(), 2);
    assert_eq!(run.tools(), [("execute", "completed"); 3]);
    assert_eq!(run.files(), [".git", "asked.txt", "old.txt"], "a rule was written into the project");
}

/// Permission to edit files is asked for once and covers only edits: a command stays denied.
fn permission_always_is_no_wider_than_it_says(agent: Agent) {
    let payload = json!({"permissions": {"edit": "ask", "*": "deny"}});
    let run = run(Lab::new(agent, "edits_then_rm"), payload, permission("allow_always"));
    run.completed("Tried it all.");
    assert_eq!(run.questions().len(), 1, "asked once for two edits");
    let question = run.questions()[0];
    assert_eq!(question["payload"]["subject"]["category"], "edit");
    assert_eq!(question["payload"]["options"][1]["label"], "Allow all file edits for this run");
    assert_eq!(run.tools(), [("edit", "completed"), ("edit", "completed"), ("execute", "denied")]);
    assert!(run.made("one.txt") && run.made("two.txt") && run.made("old.txt"), "{:?}", run.files());
    assert_eq!(run.outcome.resolutions(), ["answered", "policy", "policy"]);
    let payload = run.outcome.completed();
    assert_eq!(payload["denied"], json!({"count": 0, "first": []}), "a policy's denial has an answer");
}

/// Each command and the edits are asked about once, in whatever order the agent's messages arrive.
fn permission_always_covers_each_equal_request(agent: Agent) {
    let run = ask(agent, "always", permission("allow_always"));
    run.completed("Did it all.");
    let asked = run.questions();
    let titles: Vec<&Value> = asked.iter().map(|question| &question["payload"]["subject"]["title"]).collect();
    assert_eq!(asked.len(), 3, "one for each command and one for the edits: {titles:?}");
    assert!(run.tools().iter().all(|(_, state)| *state == "completed"), "{:?}", run.tools());
    assert!(run.made("two.txt") && !run.made("asked.txt"), "{:?}", run.files());
}

/// With fail_on_denied, a run fails if nobody was present to allow a request.
fn permission_denied_without_an_answer(agent: Agent) {
    let payload = json!({"interactive": false, "fail_on_denied": true});
    let run = run(Lab::new(agent, "permission"), payload, Vec::new());
    run.outcome.failed("denied");
    assert_eq!(run.outcome.exit_code, Some(6));
    assert!(!run.made("asked.txt"));
}

/// Without a user the policy decides, and `ask` means deny.
fn permission_by_policy(agent: Agent) {
    let payload = json!({"interactive": false, "permissions": {"edit": "allow", "*": "ask"}});
    let run = run(Lab::new(agent, "two_tools"), payload, Vec::new());
    run.completed("Both are there.");
    let mut tools = run.tools();
    tools.sort_unstable();
    assert_eq!(tools, [("edit", "completed"), ("execute", "denied")]);
    assert_eq!((run.made("one.txt"), run.made("two.txt")), (true, false));
    let mut resolutions = run.outcome.resolutions();
    resolutions.sort_unstable();
    assert_eq!(resolutions, ["headless", "policy"]);
}

fn permission_that_nobody_can_give(agent: Agent) {
    let mut client = Client::start(Lab::new(agent, "permission"), json!({}), Vec::new());
    client.session.until("run.question");
    client.session.close_stdin();
    let run = client.finish();
    run.completed("That was it.");
    assert_eq!(run.outcome.resolutions(), ["input_closed"]);
    assert_eq!(run.tools(), [("execute", "denied")]);
    assert!(!run.made("asked.txt"));
}

/// OpenCode's ACP does not pass on what a sub-agent asks for: it may do what the policy allows, and has no tool for more.
fn a_sub_agent_waits_for_nobody(agent: Agent) {
    for (policy, acts) in [(json!("allow"), true), (json!({"agent": "allow", "*": "ask"}), false)] {
        let run = run(Lab::new(agent, "sub_agent_acts"), json!({"permissions": policy, "timeout_s": 60}), Vec::new());
        run.completed("All done.");
        assert_eq!(run.tools(), [("agent", "completed")], "{policy}");
        assert_eq!(run.made("asked.txt"), acts, "{policy}");
    }
}

/// Nobody would hear what it asks for.
fn a_sub_agent_that_may_act_is_denied(agent: Agent) {
    let run = run(Lab::new(agent, "delegate_generalist"), json!({"permissions": "allow"}), Vec::new());
    run.completed("All done.");
    assert_eq!(run.tools(), [("agent", "denied")]);
}

//! Conversations with real agents: further prompts in one process, and turns that are cancelled.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{Client, permission, rule};
use crate::lab::Lab;
use crate::support::{Frame, procs};

rows!(two_turns_share_a_session a_cancelled_turn_leaves_the_agent);
rows!(ours: the_second_turn_asks the_end_of_stdin_waits_for_the_prompts a_failed_turn_leaves_the_session
    calls_of_the_model_count_over_all_turns);
rows!(old: a_prompt_reaches_the_agent_at_work_or_waits);

fn ends_turn(frame: &Frame, turn: u64) -> bool {
    frame.is_progress("turn") && frame["payload"]["turn"] == turn
}

/// The model remembers the first turn, and the agent does not start again.
fn two_turns_share_a_session(agent: Agent) {
    let payload = json!({"conversation": true, "prompt": "Say a word."});
    let mut client = Client::start(Lab::new(agent, "resume"), payload, Vec::new());
    let first = client.until("the first turn", |frame| ends_turn(frame, 1));
    assert_eq!(first.text("final_text"), "The word is heron.");
    client.session.send("run.input", json!({"prompt": "Which word?"}));
    let second = client.until("the second turn", |frame| ends_turn(frame, 2));
    assert_eq!((second.text("outcome"), second.text("final_text")), ("completed", "I said heron."));
    client.session.send("run.input", json!({"end": true}));
    let run = client.finish();
    assert_eq!(run.completed("I said heron.")["turns"], 2);
    assert_eq!(run.outcome.progress("session").len(), 1, "the agent started again");
    let heard = run.stub().last_heard();
    for part in ["Say a word.", "The word is heron.", "Which word?"] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
    let (one, two) = (&first["payload"]["usage"], &second["payload"]["usage"]);
    assert_eq!(one["input_tokens"], two["input_tokens"], "the usage of a turn is not its own");
}

/// The tool of a cancelled turn ends, and the session takes another prompt.
fn a_cancelled_turn_leaves_the_agent(agent: Agent) {
    let lab = Lab::new(agent, "cancelled_turn");
    let file = lab.case.work().join("at_work");
    let mut client = Client::start(lab, json!({"conversation": true}), permission("allow_once"));
    client.until("the permission", |frame| frame.is_progress("question_resolved"));
    client.wait_file(&file);
    let processes = client.session.processes().into_iter();
    let tool: Vec<i32> = processes.filter(|(_, line)| line.contains("sleep 300")).map(|(pid, _)| pid).collect();
    assert!(!tool.is_empty(), "the tool is not at work");
    client.session.send("run.cancel", json!({"scope": "turn"}));
    let turn = client.until("the cancelled turn", |frame| ends_turn(frame, 1));
    assert_eq!(turn.text("outcome"), "cancelled");
    client.session.wait_until("the end of the tool", || !tool.iter().any(|pid| procs::alive(*pid)));
    client.session.send("run.input", json!({"prompt": "Are you there?"}));
    let turn = client.until("the second turn", |frame| ends_turn(frame, 2));
    assert_eq!((turn.text("outcome"), turn.text("final_text")), ("completed", "Here I am again."));
    client.session.close_stdin();
    client.finish().completed("Here I am again.");
}

/// The model asks in the second turn, and reads the answer.
fn the_second_turn_asks(agent: Agent) {
    let rules = vec![rule("clarification", "Storage", json!("SQLite"))];
    let mut client = Client::start(Lab::new(agent, "second_turn_asks"), json!({"conversation": true}), rules);
    client.until("the first turn", |frame| ends_turn(frame, 1));
    client.session.send("run.input", json!({"prompt": "Ask me."}));
    let turn = client.until("the second turn", |frame| ends_turn(frame, 2));
    assert_eq!((turn.text("outcome"), turn.text("final_text")), ("completed", "So be it."));
    client.session.send("run.input", json!({"end": true}));
    let run = client.finish();
    assert_eq!(run.completed("So be it.")["turns"], 2);
    assert_eq!(run.questions().len(), 1);
    assert!(run.stub().tool_results()[0].contains("SQLite"), "{:?}", run.stub().tool_results());
}

/// An error of the provider ends the turn and not the session.
fn a_failed_turn_leaves_the_session(agent: Agent) {
    let payload = json!({"conversation": true, "prompt": "Say a word."});
    // Claude Code repeats a request that is refused with 400, with fewer of its beta features, but not one with 413.
    let (scenario, code) = match agent {
        Agent::Claude | Agent::OldClaude => ("first_turn_too_large", "context_exceeded"),
        Agent::Codex | Agent::Gemini | Agent::OpenCode => ("first_turn_fails", "agent_error"),
    };
    let mut client = Client::start(Lab::new(agent, scenario), payload, Vec::new());
    let turn = client.until("the first turn", |frame| ends_turn(frame, 1));
    assert_eq!((turn.text("outcome"), &turn["payload"]["failure"]["code"]), ("failed", &json!(code)));
    client.session.send("run.input", json!({"prompt": "Now?"}));
    let turn = client.until("the second turn", |frame| ends_turn(frame, 2));
    assert_eq!((turn.text("outcome"), turn.text("final_text")), ("completed", "Now it fits."));
    client.session.close_stdin();
    let run = client.finish();
    run.completed("Now it fits.");
    assert_eq!(run.outcome.progress("session").len(), 1, "the agent started again");
}

/// Two calls of the model in each turn: the limit of three allows one turn, and ends the second. An agent on which it
/// cannot hold is not started.
fn calls_of_the_model_count_over_all_turns(agent: Agent) {
    let payload = json!({"conversation": true, "prompt": "Work.", "max_turns": 3, "permissions": "allow"});
    let lab = Lab::new(agent, "work_twice");
    let mut client = Client::start(lab, payload, Vec::new());
    if agent.ways().refuses.contains(&"max_turns") {
        client.finish().outcome.failed("invalid_request");
        return;
    }
    let turn = client.until("the first turn", |frame| ends_turn(frame, 1));
    assert_eq!(turn.text("final_text"), "One.");
    client.session.send("run.input", json!({"prompt": "Again."}));
    let run = client.finish();
    let failed = run.outcome.failed("limit_reached");
    assert_eq!((&failed["detail"]["limit"], &failed["turns"]), (&json!("max_turns"), &json!(2)));
    // A call that is running when the limit is passed may exceed it.
    assert!(run.stub().conversation().len() <= 4, "{}", run.stub().conversation().len());
}

/// Waiting prompts are sent before the conversation ends.
fn the_end_of_stdin_waits_for_the_prompts(agent: Agent) {
    let payload = json!({"conversation": true, "prompt": "Say a word."});
    let mut client = Client::start(Lab::new(agent, "resume"), payload, Vec::new());
    client.session.send("run.input", json!({"prompt": "Which word?"}));
    client.session.close_stdin();
    let run = client.finish();
    assert_eq!(run.completed("I said heron.")["turns"], 2);
    assert_eq!(run.outcome.progress("session").len(), 1, "the agent started again");
}

/// A prompt that must not wait reaches the model in the running turn, or becomes the next turn.
fn a_prompt_reaches_the_agent_at_work_or_waits(agent: Agent) {
    let lab = Lab::new(agent, "steered");
    let (at_work, go) = (lab.case.work().join("at_work"), lab.case.work().join("go"));
    let mut client = Client::start(lab, json!({"conversation": true}), permission("allow_once"));
    let session = client.until("the session", |frame| frame.is_progress("session"));
    let steers = matches!(agent, Agent::Claude | Agent::Codex);
    assert_eq!(session["payload"]["capabilities"]["steer"], steers);
    client.until("the permission", |frame| frame.is_progress("question_resolved"));
    client.wait_file(&at_work);
    client.session.send("run.input", json!({"prompt": "Be quick about it.", "when": "now"}));
    let prompt = client.until("the prompt", |frame| frame.is_progress("prompt"));
    assert_eq!(prompt.text("state"), if steers { "sent" } else { "queued" });
    std::fs::write(go, "").expect("a file");
    client.session.close_stdin();
    let run = client.finish();
    assert_eq!(run.completed("As you wish.")["turns"], if steers { 1 } else { 2 });
    assert!(run.stub().last_heard().contains("Be quick about it."), "{}", run.stub().last_heard());
}

//! The fields of run.start with real agents: prompts, models, sessions, budgets. Sub-agents too.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{permission, run};
use crate::lab::Lab;

rows!(old: resume fork);
rows!(resume_unknown prompt_is_text model_and_system_prompt);
rows!(ours: new_system_prompt);
rows!(of mode: opencode OpenCode, claude Claude, claude_old OldClaude);
// Claude Code has no plan mode beside its permissions.
rows!(of plan_mode: codex Codex, gemini Gemini, opencode OpenCode);
rows!(of mode_unknown: opencode OpenCode, claude Claude);
rows!(further_directories);
rows!(of tools_not_allowed: claude Claude);
rows!(of budget_of_turns: claude Claude);
rows!(of sub_agent_names_its_call: claude Claude);
rows!(of sub_agent_counts: claude Claude);
rows!(a_sub_agent_works);

/// A prompt runs no command of the agent and names no file.
fn prompt_is_text(agent: Agent) {
    let (prompt, secret) = ("/compact what @note.txt says", "the content of a file");
    let lab = Lab::new(agent, "hello");
    std::fs::write(lab.case.work().join("note.txt"), secret).expect("note");
    let run = run(lab, json!({"prompt": prompt}), Vec::new());
    run.completed("Good day from the model.");
    let heard = run.stub().last_heard();
    assert!(heard.contains(prompt), "{prompt} is not in: {heard}");
    assert!(!heard.contains(secret), "the file went to the model");
}

fn model_and_system_prompt(agent: Agent) {
    let model = agent.ways().another_model;
    let payload = json!({"model": model, "system_prompt": "Speak like a heron."});
    let run = run(Lab::new(agent, "hello"), payload, Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request();
    // The part before a slash is the provider's name in the agent's configuration.
    assert!(request.contains(model.rsplit('/').next().expect("name")), "{model} is not in: {request}");
    assert!(request.contains("Speak like a heron."), "{request}");
    assert_eq!(run.outcome.progress("session")[0].text("model"), model);
}

/// With `replace`, the model reads nothing of the agent's own system prompt.
fn new_system_prompt(agent: Agent) {
    let own = match agent {
        Agent::Claude | Agent::OldClaude => "You are Claude Code",
        Agent::Codex => "You are Codex, a coding agent",
        Agent::Gemini | Agent::OpenCode => "software engineering",
    };
    let request = |mode: &str| {
        let payload = json!({"system_prompt": "Speak like {env:HOME} a heron.", "system_prompt_mode": mode});
        let run = run(Lab::new(agent, "hello"), payload, Vec::new());
        run.completed("Good day from the model.");
        assert!(run.outcome.progress("warning").is_empty());
        run.stub().first_request()
    };
    let (appended, replaced) = (request("append"), request("replace"));
    assert!(appended.contains(own), "{appended}");
    assert!(replaced.contains("Speak like {env:HOME} a heron.") && !replaced.contains(own), "{replaced}");
}

/// A place with an agent that the user defined, named `owl`.
fn with_owl(agent: Agent, scenario: &str) -> Lab {
    let mut lab = Lab::new(agent, scenario);
    let (file, own) = match agent {
        Agent::OpenCode => ("home/.config/opencode/agent/owl.md", "mode: primary\n"),
        _ => ("home/.claude/agents/owl.md", "name: owl\n"),
    };
    lab.case = lab.case.file(file, &format!("---\n{own}description: An owl\n---\nYou are an owl of the north.\n"));
    lab
}

fn mode(agent: Agent) {
    let run = run(with_owl(agent, "hello"), json!({"mode": "owl"}), Vec::new());
    run.completed("Good day from the model.");
    assert!(run.stub().first_request().contains("You are an owl of the north."), "{}", run.stub().first_request());
    assert!(run.outcome.progress("warning").is_empty());
}

/// The agent's own mode for plans.
fn plan_mode(agent: Agent) {
    let run = run(Lab::new(agent, "hello"), json!({"mode": "plan"}), Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request().to_lowercase();
    assert!(request.contains("plan mode") || request.contains("mode: plan"), "{request}");
    assert!(run.outcome.progress("warning").is_empty());
}

/// A file in a directory of `add_dirs` is read like one of the working directory.
fn further_directories(agent: Agent) {
    let mut lab = Lab::new(agent, "outside");
    lab.case = lab.case.file("outside/note.txt", "a heron\n");
    let permissions = json!({"read": "allow", "search": "allow", "*": "deny"});
    let run = run(lab, json!({"add_dirs": ["../outside"], "permissions": permissions}), Vec::new());
    run.completed("I read it.");
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains("a heron")), "{results:?}");
    assert!(run.outcome.progress("warning").is_empty());
}

fn mode_unknown(agent: Agent) {
    let run = run(with_owl(agent, "hello"), json!({"mode": "heron"}), Vec::new());
    let message = run.outcome.failed("invalid_request")["message"].to_string();
    assert!(message.contains("`mode`") && message.contains("owl") && !message.contains("heron"), "{message}");
}

fn tools_not_allowed(agent: Agent) {
    let payload = json!({"disallowed_tools": ["Bash", "AskUserQuestion"]});
    let run = run(Lab::new(agent, "hello"), payload, Vec::new());
    let request = &run.stub().conversation()[0];
    let tools = request["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"Read"), "{names:?}");
    assert!(!names.contains(&"Bash") && !names.contains(&"AskUserQuestion"), "{names:?}");
}

/// A session is resumed at once, and again.
fn resume(agent: Agent) {
    let first = run(Lab::new(agent, "resume"), json!({"prompt": "Say a word."}), Vec::new());
    let session = first.completed("The word is heron.")["session_id"].clone();
    let before = first.outcome.completed()["usage"].clone();
    let mut said = vec!["Say a word.", "The word is heron."];
    for (prompt, answer) in
        [("Which word?", "I said heron."), ("Which bird?", "It was a heron."), ("Sure?", "I am sure.")]
    {
        let last = run(first.again(), json!({"prompt": prompt, "session_id": session}), Vec::new());
        assert_eq!(last.completed(answer)["session_id"], session);
        let now = &last.outcome.completed()["usage"];
        assert_eq!(now["input_tokens"], before["input_tokens"]);
        // The old Claude Code does not store it.
        let wanted = before["cost_usd"].as_f64().filter(|_| agent != Agent::OldClaude);
        let is_near = |cost: f64| wanted.is_some_and(|wanted| (cost - wanted).abs() < wanted / 1e6);
        let cost = now["cost_usd"].as_f64();
        assert_eq!(cost.is_some(), wanted.is_some(), "{now}");
        assert!(cost.is_none_or(is_near), "{now}, not {before}");
        said.push(prompt);
        let heard = last.stub().last_heard();
        for part in &said {
            assert!(heard.contains(part), "{part} is not in: {heard}");
        }
        said.push(answer);
    }
}

/// A session from another one knows its past, and leaves it as it is.
fn fork(agent: Agent) {
    let first = run(Lab::new(agent, "resume"), json!({"prompt": "Say a word."}), Vec::new());
    let session = first.completed("The word is heron.")["session_id"].clone();
    let payload = json!({"prompt": "Which word?", "session_id": session, "fork": true});
    let forked = run(first.again(), payload, Vec::new());
    if agent == Agent::Gemini {
        let message = forked.outcome.failed("invalid_request")["message"].to_string();
        assert!(message.contains("`fork`"), "{message}");
    } else {
        assert_ne!(forked.completed("I said heron.")["session_id"], session);
        let heard = forked.stub().last_heard();
        assert!(heard.contains("Say a word.") && heard.contains("Which word?"), "{heard}");
        let now = &forked.outcome.completed()["usage"];
        assert_eq!(now["input_tokens"], first.outcome.completed()["usage"]["input_tokens"], "{now}");
    }
    let model = if agent == Agent::Gemini { "I said heron." } else { "It was a heron." };
    let old = run(first.again(), json!({"prompt": "Which bird?", "session_id": session}), Vec::new());
    assert_eq!(old.completed(model)["session_id"], session);
    let heard = old.stub().last_heard();
    assert!(heard.contains("Say a word.") && !heard.contains("Which word?"), "{heard}");
}

/// An unknown id in the agent's form, and one in another form.
fn resume_unknown(agent: Agent) {
    let uuid = "01234567-89ab-4def-8123-456789abcdef";
    let ids = if agent == Agent::OpenCode { &["ses_0123456789abcdefghijklmnop", uuid][..] } else { &[uuid] };
    for id in ids {
        let run = run(Lab::new(agent, "hello"), json!({"session_id": id}), Vec::new());
        run.outcome.failed("session_not_found");
        assert!(run.stub().conversation().is_empty(), "the model was asked all the same");
    }
}

fn budget_of_turns(agent: Agent) {
    let payload = json!({"max_turns": 2});
    let run = run(Lab::new(agent, "turns"), payload, permission("allow_once"));
    let payload = run.outcome.failed("limit_reached");
    assert_eq!(payload["retryable"], false);
}

fn sub_agent_names_its_call(agent: Agent) {
    // In the background the sub-agent would race with its parent for the replies of the script.
    let inline = json!({"background": "refuse"});
    let run = run(Lab::new(agent, "sub_agent"), inline, permission("allow_once"));
    run.completed("There is nothing.");
    let tools = run.outcome.progress("tool");
    let agent = tools.iter().find(|f| f.text("category") == "agent").expect("the sub-agent's call");
    let call = agent.text("call_id");
    let texts = run.outcome.progress("text");
    let scout = texts.iter().find(|f| f.text("text") == "The scout saw nothing.").expect("the sub-agent's text");
    assert_eq!(scout.text("parent_call_id"), call);
    let own = texts.iter().find(|f| f.text("text") == "There is nothing.").expect("the agent's own text");
    assert_eq!(own.text("parent_call_id"), "");
    let shell = tools.iter().find(|f| f.text("category") == "execute").expect("the sub-agent's tool");
    assert_eq!(shell.text("parent_call_id"), call);
    assert_eq!(run.tools(), [("execute", "completed"), ("agent", "completed")]);
}

fn sub_agent_counts(agent: Agent) {
    // In the background the sub-agent would race with its parent for the replies of the script.
    let inline = json!({"background": "refuse"});
    let run = run(Lab::new(agent, "sub_agent"), inline, permission("allow_once"));
    let usage = run.completed("There is nothing.")["usage"].clone();
    assert_eq!(run.stub().conversation().len(), 4, "two requests of each");
    assert_eq!(usage["input_tokens"], 400);
    assert_eq!(usage["output_tokens"], 40);
}

/// The run ends with the agent's own answer, and not before its sub-agent's work.
fn a_sub_agent_works(agent: Agent) {
    let (scenario, more, answer) = match agent {
        // In the background the sub-agent would race with its parent for the replies of the script.
        Agent::Claude | Agent::OldClaude => ("sub_agent", json!({"background": "refuse"}), "There is nothing."),
        Agent::Codex => ("delegate_codex", json!({"agent_args": ["-c", "features.multi_agent_v2=true"]}), "All done."),
        Agent::Gemini => ("delegate_gemini", json!({}), "All done."),
        Agent::OpenCode => ("sub_agent_acts", json!({}), "All done."),
    };
    let mut payload = json!({"permissions": "allow", "timeout_s": 100});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let run = run(Lab::new(agent, scenario), payload, Vec::new());
    run.completed(answer);
    let tools = run.tools();
    assert_eq!(tools.iter().filter(|tool| **tool == ("agent", "completed")).count(), 1, "{tools:?}");
    let frames = run.outcome.progress("tool");
    let started: Vec<_> = frames.iter().filter(|tool| tool.text("state") == "started").collect();
    let call = started.iter().find(|tool| tool.text("category") == "agent").unwrap().text("call_id");
    let inner = started.iter().filter(|tool| tool.text("parent_call_id") == call).count();
    // The ACP of the others reports nothing of a sub-agent.
    assert_eq!(inner, usize::from(matches!(agent, Agent::Claude | Agent::OldClaude | Agent::Codex)), "{tools:?}");
    match agent {
        Agent::Codex | Agent::OpenCode => assert!(run.made("asked.txt")),
        Agent::Gemini => assert!(run.stub().tool_results().concat().contains("The scout saw a heron.")),
        Agent::Claude | Agent::OldClaude => {}
    }
}

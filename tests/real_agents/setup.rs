//! Tests that a run keeps a user's setup of an agent, and the default where the policy says nothing.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Client, Run, permission, run};
use crate::install::search_program;
use crate::lab::Lab;
use crate::length::by_length;

rows!(own_denials_win);
rows!(reads_are_the_default);
rows!(of a_hook_at_the_end_gets_its_time: claude Claude);
rows!(of commands_run_without_user_namespaces: codex Codex);
rows!(of sub_agents_stay_in_the_turn: opencode OpenCode);
rows!(of mentions_stay_text: claude Claude, claude_old OldClaude);
rows!(a_raw_prompt_calls_a_skill_and_sends_a_file a_conversation_names_the_commands_and_one_prompt_calls_one);

/// A project with a skill, for every agent under the names that it looks for.
fn project(agent: Agent, scenario: &str) -> Lab {
    let mut lab = Lab::new(agent, scenario);
    // OpenCode searches by a program that it otherwise downloads.
    symlink(search_program(), lab.case.path("bin/rg")).unwrap();
    let skill = "---\nname: birds\ndescription: names birds\n---\nA wren.\n";
    for folder in [".claude", ".agents"] {
        lab.case = lab.case.file(&format!("work/{folder}/skills/birds/SKILL.md"), skill);
    }
    lab.case = lab.case.file("work/sub/code.txt", "a wren\n");
    lab
}

/// The number of tools that ended as `completed`, and whether the two that act did.
fn done(run: &Run) -> (usize, bool, bool) {
    let completed = run.tools().iter().filter(|(_, state)| *state == "completed").count();
    (completed, run.made("new.txt"), run.made("asked.txt"))
}

/// A read, a search, an edit and a command under each policy, with and without a user. For an agent that starts slowly,
/// the short form has both ways for the default alone, and of each other policy the way with a user if it asks.
fn reads_are_the_default(agent: Agent) {
    for (policy, asked, with_user, without) in [
        (Value::Null, 2, (4, true, true), (2, false, false)),
        (json!("allow"), 0, (4, true, true), (4, true, true)),
        (json!({"read": "ask"}), 4, (4, true, true), (0, false, false)),
        (json!("deny"), 0, (0, false, false), (0, false, false)),
    ] {
        let both = by_length(!agent.starts_slowly(), true) || policy.is_null();
        for (interactive, wanted) in [(true, with_user), (false, without)] {
            if !both && interactive != (asked > 0) {
                continue;
            }
            let payload = json!({"permissions": policy, "interactive": interactive});
            let run = run(project(agent, "four_kinds"), payload, permission("allow_once"));
            let questions = if interactive { asked } else { 0 };
            assert_eq!(run.questions().len(), questions, "{policy} {interactive}");
            assert_eq!(done(&run), wanted, "{policy} {interactive}: {:?}", run.tools());
        }
    }
}

/// The agent's own rules deny a command, whatever the run allows.
fn own_denials_win(agent: Agent) {
    let mut lab = Lab::new(agent, "permission");
    let (file, rules) = match agent {
        Agent::Claude | Agent::OldClaude => {
            ("home/.claude/settings.json", r#"{"permissions":{"deny":["Bash(touch asked.txt)"]}}"#)
        }
        Agent::Codex => {
            ("home/.codex/rules/own.rules", r#"prefix_rule(pattern=["touch", "asked.txt"], decision="forbidden")"#)
        }
        Agent::Gemini => (
            "home/.gemini/policies/own.toml",
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch asked.txt\"\ndecision = \"deny\"\npriority = 100\n",
        ),
        Agent::OpenCode => {
            ("work/opencode.jsonc", "{// mine\n\"permission\": {\"bash\": {\"touch asked.txt\": \"deny\"}}}")
        }
    };
    lab.case = lab.case.file(file, rules);
    // The list makes Gemini read a policy file of ours.
    let payload = json!({"permissions": "allow", "disallowed_tools": ["no_such_tool"]});
    let run = run(lab, payload, Vec::new());
    assert!(run.outcome.completed()["text"].as_str().unwrap().ends_with("That was it."));
    assert!(!run.made("asked.txt"), "{:?}", run.tools());
}

/// By itself, Claude Code gives the hooks at its end 1.5 s, and a run its exit 2 s.
fn a_hook_at_the_end_gets_its_time(agent: Agent) {
    let mut lab = Lab::new(agent, "hello");
    let hook = json!({"type": "command", "command": "sleep 5; touch the_end.txt", "timeout": 20});
    let hooks = json!({"hooks": {"SessionEnd": [{"hooks": [hook]}]}});
    lab.case = lab.case.file("home/.claude/settings.json", &hooks.to_string());
    let run = run(lab, json!({}), Vec::new());
    run.completed("Good day from the model.");
    assert!(run.made("the_end.txt") && run.outcome.warnings("leaked_process").is_empty(), "{:?}", run.files());
}

/// As in many containers. Where nothing can be unshared, the system already forbids them.
fn commands_run_without_user_namespaces(agent: Agent) {
    let within = "unshare --map-root-user true 2>/dev/null || exec \"$@\"; \
        exec unshare --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"' sh \"$@\"";
    for (payload, wanted) in [
        (json!({"permissions": "allow"}), (4, true, true)),
        (json!({"interactive": false}), (2, false, false)),
        (json!({"permissions": "deny"}), (0, false, false)),
    ] {
        let mut lab = project(agent, "four_kinds");
        lab.case = lab.case.shell(within);
        let run = run(lab, payload.clone(), Vec::new());
        run.outcome.completed();
        assert_eq!(done(&run), wanted, "{payload}: {:?}", run.tools());
        let warnings = run.outcome.warnings("sandbox_partial");
        assert!(warnings.len() == 1 && warnings[0].text("text").contains("user namespaces"), "not one warning");
    }
}

/// Nobody would hear of one in the background.
fn sub_agents_stay_in_the_turn(agent: Agent) {
    let mut lab = Lab::new(agent, "hello");
    lab.case = lab.case.env("OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS", "true");
    let run = run(lab, json!({"permissions": "allow"}), Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request();
    assert!(request.contains("subagent_type") && !request.contains("\"background\""), "{request}");
}

/// A file that the prompt mentions is not sent to the model.
fn mentions_stay_text(agent: Agent) {
    let lab = Lab::new(agent, "hello");
    let lab = Lab { case: lab.case.file("outside/note.txt", "a heron\n"), ..lab };
    let mention = format!("Look at @{}", lab.case.path("outside/note.txt").display());
    let run = run(lab, json!({"prompt": mention}), Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request();
    assert!(request.contains("outside/note.txt") && !request.contains("a heron"), "{request}");
}

/// A raw prompt calls a skill and mentions a file, as far as the agent expands them; a warning tells the rest.
fn a_raw_prompt_calls_a_skill_and_sends_a_file(agent: Agent) {
    let payload = json!({"prompt": "/birds See @sub/code.txt", "raw_prompt": true});
    let run = run(project(agent, "hello"), payload, Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request();
    let follows = agent != Agent::Gemini;
    assert_eq!(request.contains("A wren."), follows, "the skill: {request}");
    assert_eq!(run.outcome.warnings("unsupported_option").len(), usize::from(!follows));
    assert_eq!(request.contains("a wren"), agent != Agent::Codex, "the file: {request}");
}

/// The agent lists its commands. A prompt of a conversation calls one if it says so, and the agent's own if not.
fn a_conversation_names_the_commands_and_one_prompt_calls_one(agent: Agent) {
    let payload = json!({"conversation": true, "progress": "full", "prompt": "Say a word."});
    let mut client = Client::start(project(agent, "resume"), payload, Vec::new());
    client.until("the first turn", |frame| frame.is_progress("turn"));
    client.session.send("run.input", json!({"prompt": "/birds", "raw_prompt": agent != Agent::Gemini}));
    client.until("the second turn", |frame| frame.is_progress("turn"));
    client.session.send("run.input", json!({"end": true}));
    let run = client.finish();
    let lists = run.outcome.progress("commands");
    let names: Vec<&str> = lists
        .iter()
        .flat_map(|list| list["payload"]["commands"].as_array().unwrap())
        .filter_map(|it| it["name"].as_str())
        .collect();
    let wanted = if agent == Agent::Gemini { "memory show" } else { "birds" };
    assert!(names.contains(&wanted), "{names:?}");
    let heard = run.stub().last_heard();
    assert_eq!(heard.contains("A wren."), agent != Agent::Gemini, "the skill: {heard}");
}

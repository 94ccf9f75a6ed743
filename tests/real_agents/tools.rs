//! The output of an agent in a successful run: texts, reasoning, tools, files.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Run, permission, run};
use crate::install::search_program;
use crate::lab::Lab;
use crate::support::io::shorten;
use crate::ways::Output;

rows!(old: hello);
rows!(think_then_say shell_fail write_file work_has_one_title);
rows!(ours: two_chunks shell_ok big_output write_file_fully two_tools);
rows!(of two_chunks_whole: claude Claude, codex Codex);

/// A run in which every request is allowed.
fn allowed(agent: Agent, scenario: &str, payload: Value) -> Run {
    run(Lab::new(agent, scenario), payload, permission("allow_once"))
}

fn hello(agent: Agent) {
    let run = allowed(agent, "hello", json!({}));
    let payload = run.completed("Good day from the model.");
    let ways = agent.ways();
    assert_eq!(payload["stop_reason"], "end_turn");
    assert_eq!(payload["usage"]["input_tokens"], 150, "the cached ones are included");
    assert_eq!(payload["usage"]["output_tokens"], 7);
    assert_eq!(payload["usage"]["cached_input_tokens"], if ways.cached { json!(30) } else { Value::Null });
    assert_eq!(payload["usage"]["cost_usd"].is_number(), ways.cost);
    let left = payload["agent_exit"] == json!({"code": 0, "signal": null});
    assert!(left || !ways.leaves_in_time, "{}", payload["agent_exit"]);
    assert_eq!(run.messages("text"), ["Good day from the model."]);
    let session = run.outcome.progress("session");
    assert_eq!(session.len(), 1);
    assert_eq!(session[0].text("agent_version"), agent.version());
    assert_eq!(session[0]["payload"]["session_id"], payload["session_id"]);
    assert!(run.outcome.progress("warning").is_empty());
    assert!(run.stub().last_heard().contains("go\n"), "the prompt went to the model");
    assert!(run.artifacts().is_empty());
}

/// A message in two pieces is one frame by default.
fn two_chunks_whole(agent: Agent) {
    let run = allowed(agent, "two_chunks", json!({}));
    run.completed("Good day in two pieces.");
    let texts = run.outcome.progress("text");
    assert_eq!(texts.len(), 1);
    assert_eq!(texts[0]["payload"]["done"], true);
    assert_eq!(texts[0].text("text"), "Good day in two pieces.");
}

/// A message in two pieces arrives in pieces on request.
fn two_chunks(agent: Agent) {
    let run = allowed(agent, "two_chunks", json!({"progress": "full"}));
    run.completed("Good day in two pieces.");
    let pieces = run.outcome.progress("text");
    assert!(pieces.len() >= 2, "one piece only");
    assert_eq!(pieces[0].text("text"), "Good day ");
    assert_eq!(pieces[0]["payload"]["done"], false);
    assert_eq!(run.messages("text"), ["Good day in two pieces."]);
}

fn think_then_say(agent: Agent) {
    let run = allowed(agent, "think", json!({"progress": "full"}));
    run.completed("Good day, on reflection.");
    assert_eq!(run.messages("reasoning"), [agent.ways().reasoning]);
    assert_eq!(run.messages("text"), ["Good day, on reflection."]);
}

fn shell_ok(agent: Agent) {
    let run = allowed(agent, "shell_ok", json!({"progress": "full"}));
    let usage = &run.completed("It spoke.")["usage"];
    let ways = agent.ways();
    assert_eq!(usage["input_tokens"], 200, "of both requests");
    assert_eq!(run.tools(), [("execute", "completed")]);
    let tools = run.outcome.progress("tool");
    assert_eq!(tools[0].text("state"), "started");
    assert_eq!(tools[1].text("output").contains("the shell speaks"), ways.output != Output::Nothing);
    assert_eq!(run.messages("text"), ["Let me see.", "It spoke."]);
    assert!(run.stub().tool_results()[0].contains("the shell speaks"));
}

/// A command that fails does not fail the run.
fn shell_fail(agent: Agent) {
    let run = allowed(agent, "shell_fail", json!({}));
    run.completed("It ended with 3.");
    assert_eq!(run.tools(), [("execute", agent.ways().failed_command)]);
    assert_eq!(titles(&run), ["Run echo so far so good; echo no further >&2; exit 3"]);
    let tools = run.outcome.progress("tool");
    let exit_code = &tools.last().expect("tool")["payload"]["exit_code"];
    // Gemini CLI does not report it.
    assert_eq!(*exit_code, if agent == Agent::Gemini { Value::Null } else { json!(3) });
    assert_eq!(
        run.questions()[0]["payload"]["subject"]["title"],
        "Run echo so far so good; echo no further >&2; exit 3"
    );
    assert!(run.stub().tool_results()[0].contains("no further"));
}

fn big_output(agent: Agent) {
    let run = allowed(agent, "big_output", json!({"progress": "full"}));
    run.completed("A lot of numbers.");
    assert_eq!(run.tools(), [("execute", "completed")]);
    let tools = run.outcome.progress("tool");
    let output = tools.last().expect("tool").text("output");
    let seen = match agent.ways().output {
        Output::Head => output.starts_with("1\n2\n3\n") || output.contains("\n1\n2\n3\n"),
        Output::Tail => output.trim_end().ends_with("\n299999\n300000"),
        Output::Nothing => output.is_empty(),
    };
    assert!(seen, "{}", shorten(output, 400));
    assert!(output.len() <= 64 * 1024, "{} bytes of output", output.len());
}

fn write_file(agent: Agent) {
    let run = allowed(agent, "write_file", json!({}));
    run.completed("The report is written.");
    assert_eq!(run.artifacts(), [("notes/report.md", "created")]);
    assert_eq!(run.tools(), [("edit", "completed")]);
    assert_eq!(titles(&run), ["Write notes/report.md"]);
    let artifact = run.outcome.of_type("run.artifact")[0];
    assert_eq!(artifact["payload"]["size_bytes"], "# Report\n\nNothing to report.\n".len());
    let question = run.questions()[0];
    assert_eq!(question["payload"]["subject"]["category"], "edit");
    let subject = &question["payload"]["subject"];
    assert_eq!(subject["locations"][0]["path"], "notes/report.md");
    assert_eq!(subject["title"], "Write notes/report.md");
    assert_eq!(subject["call_id"], run.outcome.progress("tool")[0].text("call_id"));
}

/// The titles of the tools, each once.
fn titles(run: &Run) -> Vec<String> {
    let tools = run.outcome.progress("tool");
    tools.iter().filter(|tool| tool.text("state") == "started").map(|tool| tool.text("text").to_owned()).collect()
}

/// The same work has the same title, ten kinds of it, whatever tool the agent has for it.
fn work_has_one_title(agent: Agent) {
    let lab = Lab::new(agent, "work");
    // OpenCode searches by a program that it otherwise downloads.
    symlink(search_program(), lab.case.path("bin/rg")).unwrap();
    let run = run(lab, json!({"progress": "full"}), permission("allow_once"));
    run.completed("All done.");
    let wanted = [
        "Write one.txt",
        "Read one.txt",
        "Edit one.txt",
        agent.ways().searching,
        "Write notes/two.txt",
        agent.ways().listing,
        "Run git log --oneline -1",
        "Run mv notes/two.txt three.txt",
        "Run test -s three.txt && echo full",
        "Run rm one.txt three.txt",
    ];
    assert_eq!(titles(&run), wanted);
    let tools = run.outcome.progress("tool");
    let edit = tools.iter().find(|tool| tool.text("text") == "Edit one.txt" && tool.text("state") == "completed");
    let diff = &edit.expect("edit")["payload"]["diff"];
    assert_eq!(*diff, json!([{"path": "one.txt", "old": "a line\n", "new": "another line\n"}]));
}

/// An edit shows its content at level full.
fn write_file_fully(agent: Agent) {
    let run = allowed(agent, "write_file", json!({"progress": "full"}));
    run.completed("The report is written.");
    let tools = run.outcome.progress("tool");
    let last = &tools.last().expect("tool")["payload"];
    let new = json!([{"path": "notes/report.md", "old": "", "new": "# Report\n\nNothing to report.\n"}]);
    assert_eq!(last["diff"], new, "{last}");
    assert!(last["duration_ms"].is_u64() && last.get("exit_code").is_none(), "{last}");
    // Gemini CLI sends no input.
    let inputs: Vec<&Value> = tools.iter().map(|tool| &tool["payload"]["input"]).filter(|it| it.is_object()).collect();
    assert_eq!(inputs.is_empty(), agent == Agent::Gemini, "{inputs:?}");
    assert!(inputs.iter().all(|input| input.to_string().contains("Nothing to report.")), "{inputs:?}");
}

fn two_tools(agent: Agent) {
    let run = allowed(agent, "two_tools", json!({}));
    run.completed("Both are there.");
    let mut tools = run.tools();
    tools.sort_unstable();
    assert_eq!(tools, [("edit", "completed"), ("execute", "completed")]);
    let mut artifacts = run.artifacts();
    artifacts.sort_unstable();
    assert_eq!(artifacts, [("one.txt", "created"), ("two.txt", "created")]);
    assert_eq!(run.questions().len(), 2);
}

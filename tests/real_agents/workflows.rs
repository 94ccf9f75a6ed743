//! `spec`, `plan` and `implement` with real agents: drafts, questions, verification, retries, and continuing after a
//! kill.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agents::Agent;
use crate::client::{Client, Run, permission, rule, run};
use crate::install::search_program;
use crate::lab::Lab;
use crate::support::{Frame, read};

rows!(spec_reads spec_asks_by_tool);
rows!(ours: spec_headless spec_mended spec_continued plan_headless);
// The only agent whose requests for such a search name no place.
rows!(of spec_globs: opencode OpenCode);
// Gemini CLI and OpenCode have no tool of their own for questions here.
rows!(of spec_asks: claude Claude, codex Codex);
rows!(of spec_asks_nobody: claude Claude, codex Codex);
rows!(spec_in_one_process spec_asks_a_sub_agent);
rows!(implement_ticks);
rows!(ours: implement_killed implement_mended implement_never_passes implement_idle implement_blocked);

const SPEC: &str = ".spektacular/specs/greeting.md";
const DRAFT: &str = ".spektacular/specs/greeting.draft.md";
const PLAN: &str = ".spektacular/plans/greeting/plan.md";
const GOOD_SPEC: &str = "# Greeting\n\n## Overview\n\nPeople are greeted.\n\n## Requirements\n\n- [ ] R1: A greeting \
    is printed.\n- [ ] R2: It names the person.\n\n## Acceptance Criteria\n\n- The greeting names the person.\n";
/// Phase 1 requires hello.txt; phase 2 requires the name Ada in name.txt.
const GOOD_PLAN: &str = "# Plan: Greeting\nSpec: .spektacular/specs/greeting.md\n\n\
    ## Phase 1: The text\n\n- [ ] T1.1 Write the greeting to hello.txt (R1)\n\n### Verify\n\n```sh\ntest -s hello.txt\n```\n\n\
    ## Phase 2: The name\n\n- [ ] T2.1 Name the person in name.txt (R2)\n\n### Verify\n\n```sh\ngrep -q Ada name.txt\n```\n";
fn with(lab: Lab, workflow: &'static str) -> Lab {
    Lab { case: lab.case.subcommand(workflow), ..lab }
}

fn spec(agent: Agent, scenario: &str) -> Lab {
    with(Lab::new(agent, scenario), "spec")
}

fn greeting(interactive: bool) -> Value {
    json!({"prompt": "Greet people", "interactive": interactive, "workflow": {"name": "greeting"}})
}

/// A place with a plan of two phases.
fn planned(agent: Agent, scenario: &str) -> Lab {
    let lab = with(Lab::new(agent, scenario), "implement");
    Lab { case: lab.case.file(&format!("work/{PLAN}"), GOOD_PLAN), ..lab }
}

fn implement(attempts: u32) -> Value {
    json!({"prompt": "greeting", "workflow": {"allow_verify": true, "attempts": attempts}})
}

#[track_caller]
fn is_specified(run: &Run) {
    run.completed(&format!("{SPEC} created with 2 tasks"));
    assert_eq!(run.artifacts(), [(SPEC, "created")]);
    assert_eq!(read(&run.outcome.case().work().join(SPEC)), GOOD_SPEC);
    let warnings: Vec<&str> = run.outcome.progress("warning").iter().map(|frame| frame.raw.as_str()).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// Without a user, the policy allows writing the draft and running the check command, and nothing is denied.
fn spec_headless(agent: Agent) {
    let run = run(spec(agent, "spec"), greeting(false), Vec::new());
    is_specified(&run);
    assert!(run.questions().is_empty());
    assert!(run.tools().iter().all(|(_, state)| *state == "completed"), "{:?}", run.tools());
    let checked = run.stub().tool_results().pop().expect("the check");
    assert!(checked.contains("valid, 2 tasks"), "{checked}");
}

fn spec_asks(agent: Agent) {
    asked(agent, "spec_asks");
}

fn spec_asks_by_tool(agent: Agent) {
    asked(agent, "spec_asks_by_tool");
}

/// The agent asks the user, and its model reads the answer.
#[track_caller]
fn asked(agent: Agent, scenario: &str) {
    let run = run(spec(agent, scenario), greeting(true), vec![rule("clarification", "Person", json!("Ada"))]);
    is_specified(&run);
    assert_eq!(run.questions().len(), 1);
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains("Ada") && !result.contains("Bob")), "{results:?}");
}

/// In a headless run, the question returns to the agent, which still writes the specification.
fn spec_asks_nobody(agent: Agent) {
    let run = run(spec(agent, "spec_asks"), greeting(false), Vec::new());
    is_specified(&run);
    let results = run.stub().tool_results();
    assert!(results.iter().any(|result| result.contains("No user is present")), "{results:?}");
}

/// Without a user and without `--yes`, the agent reads and searches the project.
fn spec_reads(agent: Agent) {
    let results = looked(agent, "spec_reads").join("\n");
    assert!(results.contains("A_WORD_OF_THE_CODE") && results.contains("inner/more.py"), "{results}");
}

fn spec_globs(agent: Agent) {
    let results = looked(agent, "spec_globs").join("\n");
    assert!(results.contains("inner/more.py"), "{results}");
}

/// The results of the agent's tools in a headless run in which nothing is denied.
#[track_caller]
fn looked(agent: Agent, scenario: &str) -> Vec<String> {
    let lab = spec(agent, scenario);
    // OpenCode searches by a program that it otherwise downloads.
    symlink(search_program(), lab.case.path("bin/rg")).unwrap();
    let case = lab.case.file("work/greeting.py", "A_WORD_OF_THE_CODE = 1\n").file("work/inner/more.py", "# a wren\n");
    let run = run(Lab { case, ..lab }, greeting(false), Vec::new());
    is_specified(&run);
    assert!(run.questions().is_empty());
    assert!(run.tools().iter().all(|(_, state)| *state == "completed"), "{:?}", run.tools());
    run.stub().tool_results()
}

/// A sub-agent looks at the project before the draft is written, without a user.
fn spec_asks_a_sub_agent(agent: Agent) {
    let call = |name: &str, input: Value| json!({"calls": [{"tool": {"name": name, "input": input}}]});
    let task = |tool: &str, kind: &str| {
        call(tool, json!({"description": "Look around", "prompt": "Look around.", "subagent_type": kind}))
    };
    let draft = json!({"calls": [{"write": {"path": DRAFT, "content": GOOD_SPEC}}]});
    let (looks, seen) = (json!({"calls": [{"read": "old.txt"}]}), json!({"say": ["I saw it."]}));
    let (replies, more) = match agent {
        // In the background the sub-agent would race with its parent for the replies of the script.
        Agent::Claude | Agent::OldClaude => {
            (vec![task("Task", "general-purpose"), looks, seen, draft], json!({"background": "refuse"}))
        }
        // Whichever of the two is first writes the draft.
        Agent::Codex => (
            vec![
                call("collaboration__spawn_agent", json!({"message": "Look.", "task_name": "scout"})),
                draft.clone(),
                draft,
            ],
            json!({"agent_args": ["-c", "features.multi_agent_v2=true"]}),
        ),
        Agent::Gemini => {
            let report = json!({"SummaryOfFindings": "Old.", "ExplorationTrace": [], "RelevantLocations": []});
            let investigator = json!({"agent_name": "codebase_investigator", "prompt": "Look."});
            (
                vec![
                    call("invoke_agent", investigator),
                    looks,
                    call("complete_task", json!({"report": report})),
                    draft,
                ],
                json!({}),
            )
        }
        Agent::OpenCode => (vec![task("task", "general"), looks, seen, draft], json!({})),
    };
    let scenario = json!({"replies": replies, "after": {"say": ["Done."]}});
    let mut payload = greeting(false);
    // OpenCode asks before it starts a sub-agent; the others do not.
    payload["permissions"] = json!({"agent": "allow", "*": "ask"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let run = run(with(Lab::playing(agent, &scenario.to_string(), None), "spec"), payload, Vec::new());
    is_specified(&run);
    let tools = run.tools();
    assert!(tools.contains(&("agent", "completed")), "{tools:?}");
    assert!(tools.iter().all(|(_, state)| *state == "completed"), "{tools:?}");
}

/// A draft that breaks a rule goes back to the agent in the same run and the same session.
fn spec_mended(agent: Agent) {
    let run = run(spec(agent, "spec_broken"), greeting(true), permission("allow_once"));
    run.completed(&format!("{SPEC} created with 2 tasks"));
    assert_eq!(read(&run.outcome.case().work().join(SPEC)), GOOD_SPEC);
    assert_eq!(run.outcome.completed()["workflow"]["violations"], json!([]));
    let heard = run.stub().last_heard();
    for part in ["# Create a specification", "# Continue", "5: open-question: "] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
    // A resumed session contains the agent's earlier messages.
    let said = heard.matches("greeting.draft.md created with 2 tasks").count();
    assert!(said > 0, "{heard}");
}

/// A draft that breaks a rule fails the run. The next run continues it in the same session.
fn spec_continued(agent: Agent) {
    let mut once = greeting(false);
    once["workflow"]["attempts"] = json!(1);
    let first = run(spec(agent, "spec_broken"), once, Vec::new());
    let failed = first.outcome.failed("result_invalid");
    assert_eq!(failed["workflow"]["violations"][0]["rule"], "open-question");
    let session = failed["session_id"].clone();
    let payload = json!({"prompt": "Be brief", "workflow": {"name": "greeting", "continue": true}});
    let second = run(with(first.again(), "spec"), payload, permission("allow_once"));
    let completed = second.completed(&format!("{SPEC} created with 2 tasks"));
    assert_eq!(completed["session_id"], session);
    assert_eq!(read(&first.outcome.case().work().join(SPEC)), GOOD_SPEC);
    let heard = second.stub().last_heard();
    assert!(heard.contains("# Continue") && heard.contains("5: open-question: "), "{heard}");
    assert!(heard.contains("# Create a specification"), "{heard}");
}

fn plan_headless(agent: Agent) {
    let lab = with(Lab::new(agent, "spec_plan"), "plan");
    let lab = Lab { case: lab.case.file(&format!("work/{SPEC}"), GOOD_SPEC), ..lab };
    let run = run(lab, json!({"prompt": "greeting", "interactive": false}), Vec::new());
    run.completed(&format!("{PLAN} created with 2 phases and 2 tasks"));
    assert!(run.questions().is_empty());
    let checked = run.stub().tool_results().pop().expect("the check");
    assert!(checked.contains(": valid"), "{checked}");
    let folder = run.outcome.case().work().join(".spektacular/plans/greeting");
    let written = read(&folder.join("plan.md"));
    assert!(written.contains("<!-- spektacular: spec="), "{written}");
    assert!(folder.join("research.md").exists() && folder.join("context.md").exists());
}

/// The phase frames after each baseline in order, as `P1 started 1`.
fn states(run: &Run) -> Vec<String> {
    let frames = run.outcome.progress("phase");
    let line = |f: &&Frame| format!("{} {} {}", f.text("phase"), f.text("state"), f["payload"]["attempt"]);
    frames.iter().map(line).filter(|line| !line.ends_with(" verifying 0")).collect()
}

/// The text of a file that must exist.
fn text(work: &Path, name: &str) -> String {
    fs::read_to_string(work.join(name)).expect("a file of the agent's")
}

/// A command of phase 2 fails once, and the same session corrects the fault; a new one if the agent cannot resume yet.
fn implement_mended(agent: Agent) {
    let run = run(planned(agent, "implement_mended"), implement(3), permission("allow_once"));
    run.completed(&format!("{PLAN}: 2 of 2 phases passed"));
    assert_eq!(
        states(&run),
        [
            "P1 started 1",
            "P1 verifying 1",
            "P1 passed 1",
            "P2 started 1",
            "P2 verifying 1",
            "P2 failed 1",
            "P2 started 2",
            "P2 verifying 2",
            "P2 passed 2"
        ]
    );
    let work = run.outcome.case().work();
    assert_eq!((text(&work, "hello.txt").as_str(), text(&work, "name.txt").as_str()), ("Hello\n", "Ada\n"));
    assert_eq!(text(&work, PLAN).matches("- [x] T").count(), 2);
    let heard = run.stub().last_heard();
    // Each phase begins a new session.
    assert!(!heard.contains("# Implement Phase 1: The text"), "{heard}");
    for part in ["# Implement Phase 2: The name", "# Verification failed", "Attempt 2 of 3", "grep -q Ada name.txt"] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
    // A resumed session contains the agent's earlier messages.
    assert!(heard.contains("Phase 2 is there."), "{heard}");
}

/// The second draft is a further turn of the same process: its recording begins with the header of the first one, and
/// goes on with the prompt. The agent opens its session only once.
fn spec_in_one_process(agent: Agent) {
    let lab = Lab::new(agent, "spec_broken");
    let record = lab.case.path("tmp/run.jsonl");
    let case = lab.case.args(&["--record", record.to_str().expect("a path")]);
    let run = run(with(Lab { case, ..lab }, "spec"), greeting(true), permission("allow_once"));
    run.completed(&format!("{SPEC} created with 2 tasks"));
    assert_eq!(run.outcome.progress("session").len(), 1, "the agent started again");
    let second = read(&record.with_file_name("run-2.jsonl"));
    let lines: Vec<&str> = second.lines().take(2).collect();
    assert_eq!(read(&record).lines().next(), Some(lines[0]));
    let host: Value = serde_json::from_str(lines[1]).expect("JSON");
    assert!(host["host"].as_str().is_some_and(|line| line.contains("# Continue")), "{}", lines[1]);
}

fn implement_never_passes(agent: Agent) {
    let run = run(planned(agent, "implement_never"), implement(2), permission("allow_once"));
    let failed = run.outcome.failed("verification_failed");
    let detail = json!({"phase": "P2", "attempt": 2, "command": "grep -q Ada name.txt", "exit_code": 1,
        "timed_out": false, "output_tail": ""});
    assert_eq!(failed["detail"], detail);
    let states: Vec<&Value> = (0..2).map(|i| &failed["workflow"]["phases"][i]["state"]).collect();
    assert_eq!(states, ["passed", "failed"]);
    assert!(text(&run.outcome.case().work(), PLAN).contains("- [ ] T2.1"));
}

/// The agent claims to be done but uses no tool.
fn implement_idle(agent: Agent) {
    let run = run(planned(agent, "implement_idle"), implement(3), Vec::new());
    let failed = run.outcome.failed("no_progress");
    assert_eq!(failed["workflow"]["complete"], false);
    assert_eq!(states(&run), ["P1 started 1", "P1 failed 1", "P1 started 2", "P1 failed 2"]);
    assert_eq!(run.tools(), [("execute", "failed")], "a command ran after the baseline");
    assert!(text(&run.outcome.case().work(), PLAN).contains("- [ ] T1.1"));
}

/// The agent cheats: it only edits plan.md, ticking the boxes and replacing the commands with `true`.
fn implement_ticks(agent: Agent) {
    let run = run(planned(agent, "implement_ticks"), implement(2), permission("allow_once"));
    run.outcome.failed("no_progress");
    assert!(run.questions().is_empty(), "an edit of the plan is denied without a question");
    // The baseline comes first.
    assert_eq!(run.tools(), [("execute", "failed"), ("edit", "denied"), ("edit", "denied")]);
    let plan = text(&run.outcome.case().work(), PLAN);
    assert!(plan.contains("- [ ] T1.1") && plan.contains("test -s hello.txt"), "{plan}");
}

/// The marker of a blocked agent ends the run, and is cut from the text.
fn implement_blocked(agent: Agent) {
    let run = run(planned(agent, "implement_blocked"), implement(3), permission("allow_once"));
    let failed = run.outcome.failed("blocked");
    assert_eq!((&failed["detail"]["phase"], &failed["detail"]["attempt"]), (&json!("P1"), &json!(1)));
    assert!(run.outcome.said().contains("The greeting is a secret."), "{}", run.outcome.said());
    assert!(!run.outcome.said().contains("BLOC"), "{}", run.outcome.said());
}

/// After a kill in phase 2, no process is left, and the same command continues with phase 2.
fn implement_killed(agent: Agent) {
    let lab = planned(agent, "implement_killed");
    let file = lab.case.work().join("at_work");
    let mut client = Client::start(lab, implement(3), permission("allow_once"));
    client.until("phase 2", |f| f.is_progress("phase") && f.text("phase") == "P2");
    client.until("the shell", |f| f.is_progress("question_resolved"));
    client.wait_file(&file);
    client.session.signal(Signal::KILL);
    // Waits a little more than a second for the last process to exit.
    let first = client.finish_killed();
    assert_eq!(first.outcome.signal, Some(Signal::KILL.as_raw()));
    assert!(first.outcome.left.is_empty(), "left: {:?}", first.outcome.left);
    assert!(text(&first.outcome.case().work(), PLAN).contains("<!-- spektacular: in_progress attempts=1"));
    let asked = first.stub().conversation().len();
    let second = run(with(first.again(), "implement"), implement(3), permission("allow_once"));
    second.completed(&format!("{PLAN}: 2 of 2 phases passed"));
    assert_eq!(states(&second), ["P2 started 1", "P2 verifying 1", "P2 passed 1"]);
    let phases = &second.outcome.completed()["workflow"]["phases"];
    assert_eq!((&phases[0]["state"], &phases[1]["state"]), (&json!("done"), &json!("passed")));
    assert_eq!(second.stub().conversation().len(), asked + 2);
    assert!(second.stub().last_heard().contains("# Earlier attempt"), "{}", second.stub().last_heard());
}

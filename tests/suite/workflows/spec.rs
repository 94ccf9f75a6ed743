//! Tests of `spec` for an orchestrator and a person: frames, refusals, drafts, continuing, permissions, cancels.

use std::fs;

use serde_json::{Value, json};

use crate::support::agent::{AgentLog, Script, quote};
use crate::support::{Case, Outcome, Session, list, read, run};

const DRAFT: &str = ".spektacular/specs/login.draft.md";
const TARGET: &str = ".spektacular/specs/login.md";
pub(crate) const GOOD: &str = "# Login\n\n## Overview\n\nPeople log in.\n\n## Requirements\n\n- [ ] R1: A code is sent.\n\
    - [ ] R2: The code works once.\n\n## Acceptance Criteria\n\n- A code logs in.\n";
/// An open question in line 5.
const BAD: &str = "# Login\n\n## Overview\n\nTBD\n\n## Requirements\n\n- [ ] R1: A code is sent.\n\n\
    ## Acceptance Criteria\n\n- A code logs in.\n";

/// A fake agent that writes a file and completes.
pub(crate) fn writes(path: &str, text: &str) -> Script {
    Script::new().sh(&write(path, text)).done("Done")
}

pub(crate) fn write(path: &str, text: &str) -> String {
    format!("mkdir -p \"$(dirname {path})\"; printf '%s' {} > {path}", quote(text))
}

fn spec(script: Script) -> Case {
    Case::with(script).subcommand("spec")
}

fn login(workflow: Value) -> Value {
    let mut fields = json!({"name": "login"});
    fields.as_object_mut().unwrap().extend(workflow.as_object().unwrap().clone());
    json!({"prompt": "Log in", "workflow": fields})
}

/// The object `workflow` of the terminal frame, with every key.
#[track_caller]
fn told(outcome: &Outcome) -> &Value {
    let workflow = &outcome.terminal().payload()["workflow"];
    let keys: Vec<&str> = workflow.as_object().expect("workflow").keys().map(String::as_str).collect();
    for key in ["name", "target", "complete", "tasks", "violations", "kept", "phases"] {
        assert!(keys.contains(&key), "{key}: {workflow}");
    }
    workflow
}

#[track_caller]
fn refused(outcome: &Outcome, reason: &str) {
    let failed = outcome.failed("invalid_request");
    assert_eq!(failed["detail"]["reason"], reason, "{failed}");
    assert!(!outcome.log().ran(), "the agent was started");
    told(outcome);
}

#[test]
fn a_draft_that_passes_its_check_becomes_the_specification() {
    let outcome = run(spec(writes(DRAFT, GOOD)), login(json!({})));
    let started = outcome.frames[0].payload();
    assert_eq!(started["workflow"]["name"], "spec");
    assert_eq!(started["workflow"]["target"], TARGET);
    assert_eq!(started["workflow"]["project"], started["config"]["cwd"]);
    let (drafts, reviews) =
        (json!({"name": "login", "force": false, "continue": false}), json!({"review": null, "review_rounds": 2}));
    let mut options = json!({"skill": null, "ignore": [], "attempts": 3});
    [drafts, reviews]
        .into_iter()
        .for_each(|more| options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone()));
    assert_eq!(started["workflow"]["options"], options);
    let completed = outcome.completed();
    assert_eq!(completed["text"], format!("{TARGET} created with 2 tasks"));
    assert_eq!(completed["artifacts"], json!([{"path": TARGET, "action": "created"}]));
    let workflow = told(&outcome);
    assert_eq!((&workflow["complete"], &workflow["tasks"]), (&json!(true), &json!(2)));
    assert_eq!(read(&outcome.case().path("work").join(TARGET)), GOOD);
    assert!(!outcome.case().path("work").join(DRAFT).exists());
    assert_eq!(outcome.of_type("run.started").len(), 1);
    let artifacts = outcome.of_type("run.artifact");
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0].payload()["artifact_id"], "a_1");
    let plans: Vec<Vec<&Value>> = outcome
        .progress("plan")
        .iter()
        .map(|plan| list(&plan.payload()["entries"]).iter().map(|entry| &entry["status"]).collect())
        .collect();
    assert_eq!(
        plans,
        [["in_progress", "pending"], ["completed", "in_progress"], ["completed", "completed"]].map(|p| p.to_vec())
    );
}

#[test]
fn the_prompt_has_one_line_per_required_fact() {
    let mut session = spec(writes(DRAFT, GOOD)).spawn();
    session.start(json!({"prompt": "Log in\nby mail", "workflow": {"name": "login"}}));
    let outcome = session.finish();
    let prompt = outcome.log().prompts()[0].clone();
    let lines: Vec<&str> = prompt.lines().collect();
    for section in ["`## Constraints`", "`## Non-goals`", "`## Success metrics`"] {
        assert!(prompt.contains(section), "{section} is not suggested: {prompt}");
    }
    for line in ["# Create a specification", "Description: Log in", "by mail", "## Format", "## Review", "## Interview"]
    {
        assert!(lines.contains(&line), "no line {line}: {prompt}");
    }
    assert!(lines.contains(&format!("File: {DRAFT}").as_str()), "{prompt}");
    let check = format!(" spec check {DRAFT}");
    assert!(lines.iter().any(|line| line.starts_with('/') && line.ends_with(&check)), "{prompt}");
    let headless = run(
        spec(writes(DRAFT, GOOD)),
        json!({"prompt": "Log in", "interactive": false, "workflow": {"name": "login"}}),
    );
    let prompt = headless.log().prompts()[0].clone();
    assert!(prompt.lines().any(|line| line == "No user is present: analyze the codebase to infer the requirements."));
    assert!(!prompt.contains("## Interview") && prompt.contains("`## Assumptions`"), "{prompt}");
}

#[test]
fn a_skill_is_a_thin_prompt_passed_raw() {
    let outcome = run(spec(writes(DRAFT, GOOD)), login(json!({"skill": "spec:new", "name": "login"})));
    outcome.completed();
    assert_eq!(outcome.log().prompts()[0], format!("/spec:new\n\nDescription: Log in\nFile: {DRAFT}\n"));
}

#[test]
fn without_a_draft_the_message_says_to_run_the_command_again() {
    let outcome = run(spec(Script::hello()), login(json!({"skill": "nosuch", "attempts": 1})));
    let message = outcome.failed("result_invalid")["message"].as_str().unwrap().to_owned();
    assert!(message.contains(DRAFT) && message.contains("--continue") && message.contains("--skill"), "{message}");
    assert!(message.contains("run the command again") && !message.contains("correct the draft"), "{message}");
}

#[test]
fn a_name_may_have_underscores_inside() {
    let named = |name: &str| run(spec(Script::hello()), json!({"prompt": "x", "workflow": {"name": name}}));
    assert_eq!(told(&named("user_log-in"))["target"], ".spektacular/specs/user_log-in.md");
    for bad in ["_login", "login_", "_"] {
        let message = named(bad).failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("dashes and underscores, with a letter or a digit at both ends"), "{message}");
    }
    let derived = run(spec(Script::hello()), json!({"prompt": "Fix the __user_id__ (again)"}));
    assert_eq!(told(&derived)["target"], ".spektacular/specs/fix-the-__user_id__-again.md");
}

#[test]
fn a_draft_that_breaks_a_rule_is_kept_and_can_be_continued() {
    let outcome = run(spec(writes(DRAFT, BAD)), login(json!({})));
    let message = outcome.failed("result_invalid")["message"].as_str().unwrap().to_owned();
    assert!(message.contains(DRAFT) && message.contains("--continue"), "{message}");
    let workflow = told(&outcome);
    let violation = &workflow["violations"][0];
    assert_eq!((&violation["file"], &violation["line"]), (&json!(DRAFT), &json!(5)));
    assert_eq!(violation["rule"], "open-question");
    assert_eq!(workflow["complete"], false);
}

#[test]
fn a_draft_is_continued_in_the_last_session_with_its_violations() {
    let case = Case::with(writes(DRAFT, BAD));
    assert_eq!(case.run(&["spec", "--name", "login", "Log in"]).code, Some(1));
    let case = case.agent(writes(DRAFT, GOOD));
    let did = case.run(&["spec", "--continue", "Be", "brief"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let log = AgentLog::new(&case.path("log"));
    let prompt = log.prompts().pop().unwrap();
    assert!(prompt.starts_with("# Continue\n"), "{prompt}");
    assert!(prompt.contains(DRAFT) && prompt.trim_end().ends_with("Be brief"), "{prompt}");
    assert!(prompt.lines().any(|line| line.starts_with("5: open-question: ")), "{prompt}");
    assert!(log.argv().iter().any(|arg| arg.starts_with("--resume=")), "{:?}", log.argv());
}

#[test]
fn an_ignored_rule_is_not_reported() {
    run(spec(writes(DRAFT, BAD)), login(json!({"ignore": ["open-question"]}))).completed();
    let outcome = run(spec(writes(DRAFT, BAD)), login(json!({"ignore": ["open-questions"]})));
    let failed = outcome.failed("invalid_request");
    assert!(failed["message"].as_str().unwrap().contains("workflow.ignore"), "{failed}");
}

#[test]
fn a_missing_draft_is_an_invalid_result() {
    let outcome = run(spec(Script::hello()), login(json!({"attempts": 1})));
    outcome.failed("result_invalid");
    assert_eq!(told(&outcome)["violations"][0]["rule"], "missing-file");
    assert_eq!(told(&outcome)["violations"][0]["line"], Value::Null);
}

#[test]
fn a_finished_file_is_replaced_only_by_force_and_kept() {
    let case = || spec(writes(DRAFT, GOOD)).file(&format!("work/{TARGET}"), "# Old\n");
    let outcome = run(case(), login(json!({})));
    refused(&outcome, "exists");
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert!([TARGET, "--force", "--name"].iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(told(&outcome)["target"], TARGET);
    let outcome = run(case(), login(json!({"force": true})));
    outcome.completed();
    let kept = &told(&outcome)["kept"][0];
    assert_eq!(kept["path"], TARGET);
    let to = kept["to"].as_str().unwrap();
    assert!(to.starts_with(".spektacular/local/old/") && to.ends_with("/specs/login.md"), "{to}");
    assert_eq!(read(&outcome.case().path("work").join(to)), "# Old\n");
}

#[test]
fn an_earlier_draft_gives_way_and_a_changed_finished_file_is_put_back() {
    let case =
        spec(writes(TARGET, GOOD)).file(&format!("work/{TARGET}"), "# Old\n").file(&format!("work/{DRAFT}"), "x");
    let outcome = run(case, login(json!({"force": true})));
    outcome.completed();
    let kept: Vec<&str> = list(&told(&outcome)["kept"]).iter().map(|kept| kept["path"].as_str().unwrap()).collect();
    assert_eq!(kept, [DRAFT, TARGET]);
    let old = told(&outcome)["kept"][1]["to"].as_str().unwrap().to_owned();
    assert_eq!(read(&outcome.case().path("work").join(old)), "# Old\n");
    assert_eq!(read(&outcome.case().path("work").join(TARGET)), GOOD);
}

#[test]
fn continue_needs_an_existing_draft() {
    refused(&run(spec(Script::hello()), login(json!({"continue": true}))), "not_found");
    let outcome = run(spec(Script::hello()), json!({"prompt": "x", "workflow": {"continue": true}}));
    refused(&outcome, "not_found");
    // Without a draft, the new draft begins with the finished file.
    let case = spec(Script::hello()).file(&format!("work/{TARGET}"), GOOD);
    run(case, login(json!({"continue": true}))).completed();
}

#[test]
fn a_link_is_never_written_through() {
    let case = spec(Script::hello()).link("work/.spektacular", "../tmp");
    let outcome = run(case, login(json!({})));
    refused(&outcome, "outside");
    assert_eq!(fs::read_dir(outcome.case().path("tmp")).unwrap().count(), 0);
    let script = Script::new().sh(&format!("mkdir -p .spektacular/specs; ln -s /etc/passwd {DRAFT}")).done("Done");
    let outcome = run(spec(script), login(json!({"attempts": 1})));
    outcome.failed("result_invalid");
    let told = told(&outcome);
    assert_eq!(told["violations"][0]["rule"], "missing-file");
    // The link gives way.
    let kept = outcome.case().work().join(told["kept"][0]["to"].as_str().unwrap());
    assert_eq!(fs::read_link(kept).unwrap().to_str(), Some("/etc/passwd"));
    assert!(outcome.case().work().join(DRAFT).symlink_metadata().is_err());
}

#[test]
fn a_workflow_makes_its_own_sessions_and_prompts() {
    for field in [json!({"session_id": "s"}), json!({"output_schema": {}}), json!({"raw_prompt": true})] {
        let mut start = login(json!({}));
        start.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        let outcome = run(spec(Script::hello()), start);
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(field.as_object().unwrap().keys().next().unwrap()), "{message}");
        told(&outcome);
    }
    let outcome = run(spec(Script::hello()), login(json!({"name": "No name"})));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("`workflow.name`"));
    let outcome = run(spec(writes(DRAFT, GOOD)), login(json!({"commit": true})));
    outcome.completed();
    assert_eq!(outcome.warnings("unknown_field").len(), 1);
}

#[test]
fn a_description_has_a_limit() {
    let long = "x".repeat((128 << 10) + 1);
    refused(&run(spec(Script::hello()), json!({"prompt": long, "workflow": {"name": "login"}})), "too_large");
}

#[test]
fn the_workflow_allows_exactly_the_actions_that_its_prompt_needs() {
    let edit = |path: &str| json!({"file_path": path, "content": "x"});
    let check = format!("{} spec check {DRAFT}", env!("CARGO_BIN_EXE_spektacular"));
    let script = Script::new()
        .ask("req-1", "toolu_1", "Write", edit(DRAFT))
        .tool_result("toolu_1", "ok")
        .ask("req-2", "toolu_2", "Write", edit("src/main.rs"))
        .tool_result("toolu_2", "no")
        .ask("req-3", "toolu_3", "Read", json!({"file_path": "README.md"}))
        .tool_result("toolu_3", "ok")
        .ask("req-4", "toolu_4", "Read", json!({"file_path": "/etc/hostname"}))
        .tool_result("toolu_4", "no")
        .ask("req-5", "toolu_5", "Bash", json!({"command": "rm -r /"}))
        .tool_result("toolu_5", "no")
        .ask("req-6", "toolu_6", "Bash", json!({"command": format!("{check}; rm -r /")}))
        .tool_result("toolu_6", "no")
        .ask("req-7", "toolu_7", "Bash", json!({"command": check}))
        .tool_result("toolu_7", "ok")
        .sh(&write(DRAFT, BAD))
        .done("Done");
    let mut start = login(json!({"attempts": 1}));
    start["interactive"] = json!(false);
    let outcome = run(spec(script), start);
    let values: Vec<&Value> = outcome.progress("question_resolved").iter().map(|f| &f.payload()["value"]).collect();
    assert_eq!(values, ["allow_once", "deny", "allow_once", "deny", "deny", "deny", "allow_once"]);
    let [policy, headless] = ["policy", "headless"];
    assert_eq!(outcome.resolutions(), [policy, headless, policy, headless, headless, headless, policy]);
    let message = outcome.failed("result_invalid")["message"].as_str().unwrap().to_owned();
    assert!(["4 permissions", "--permissions", "--yes"].iter().all(|word| message.contains(word)), "{message}");
}

#[test]
fn a_headless_specification_is_written_from_the_projects_code() {
    // The agent reads the file only if it is allowed to.
    let reads = r#"code=unread; case "$line" in *'"behavior":"allow"'*) code=$(cat src/login.rs) ;; esac"#;
    let writes = format!(r#"{}; printf -- '- The code has: %s\n' "$code" >> {DRAFT}"#, write(DRAFT, GOOD));
    let script = Script::new()
        .ask("req-1", "toolu_1", "Read", json!({"file_path": "src/login.rs"}))
        .sh(reads)
        .tool_result("toolu_1", "ok")
        .ask("req-2", "toolu_2", "Grep", json!({"pattern": "fn login", "path": "src"}))
        .tool_result("toolu_2", "ok")
        .sh(&writes)
        .done("Done");
    let mut start = login(json!({}));
    start["interactive"] = json!(false);
    let outcome = run(spec(script).file("work/src/login.rs", "fn login_by_code_7731() {}\n"), start);
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["policy", "policy"]);
    assert!(outcome.of_type("run.question").is_empty());
    let text = read(&outcome.case().path("work").join(TARGET));
    assert!(text.ends_with("- The code has: fn login_by_code_7731() {}\n"), "{text}");
}

#[test]
fn the_agents_own_list_is_a_todo_at_level_full_only() {
    let todo = json!({"todos": [{"content": "a", "status": "pending", "activeForm": "a"}]});
    for (level, count) in [("full", 1), ("normal", 0)] {
        let script = Script::new().tool("toolu_1", "TodoWrite", &todo, "ok").sh(&write(DRAFT, GOOD)).done("Done");
        let mut start = login(json!({}));
        start["progress"] = json!(level);
        let outcome = run(spec(script), start);
        outcome.completed();
        assert_eq!(outcome.progress("todo").len(), count, "{level}");
        assert_eq!(outcome.progress("plan").len(), 3, "{level}");
    }
}

#[test]
fn files_beside_the_draft_cause_a_warning() {
    let script = Script::new().sh(&write(DRAFT, GOOD)).sh("echo x > other.txt").done("Done");
    let outcome = run(spec(script).git(), login(json!({})));
    outcome.completed();
    assert_eq!(outcome.warnings("unexpected_change").len(), 1);
    let paths: Vec<&str> = outcome.of_type("run.artifact").iter().map(|f| f.text("path")).collect();
    assert_eq!(paths, ["other.txt", TARGET]);
}

#[test]
fn a_finished_file_is_restored_where_the_agent_blocks_the_folder_of_replaced_files() {
    let block = "rm -rf .spektacular/local/old; touch .spektacular/local/old";
    for (draft, text) in [(true, GOOD), (false, BAD)] {
        let script = Script::new().sh(block).sh(&write(TARGET, BAD));
        let script = if draft { script.sh(&write(DRAFT, text)) } else { script };
        let case = spec(script.done("Done")).file(&format!("work/{TARGET}"), GOOD).file(&format!("work/{DRAFT}"), BAD);
        let outcome = run(case, login(json!({"continue": true})));
        outcome.failed("resource_exhausted");
        assert_eq!(read(&outcome.case().path(&format!("work/{TARGET}"))), GOOD, "the agent's version is left");
    }
}

fn asking() -> Session {
    let mut session = spec(Script::asks_bash()).spawn();
    session.start(login(json!({})));
    session.until("run.question");
    session
}

#[test]
fn a_cancel_ends_the_one_run_and_the_name_is_locked_until_then() {
    let mut session = asking();
    let second = session.case().run(&["spec", "--output", "json", "--headless", "--name", "login", "Log in"]).json(2);
    assert_eq!(second["payload"]["detail"]["reason"], "locked", "{second}");
    assert_eq!(second["payload"]["workflow"]["target"], TARGET);
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    assert_eq!(told(&outcome)["complete"], false);
    assert_eq!(told(&outcome)["tasks"], Value::Null);
}

#[test]
fn an_agents_failure_ends_the_workflow_with_its_code() {
    let script = Script::new().sh(&write(DRAFT, GOOD)).sh("exit 3");
    let outcome = run(spec(script), login(json!({})));
    outcome.failed("agent_exited");
    assert_eq!(read(&outcome.case().path("work").join(DRAFT)), GOOD);
    assert!(!outcome.case().path("work").join(TARGET).exists());
}

#[test]
fn a_person_sees_the_line_at_the_end_and_violations_on_stderr() {
    let case = Case::with(writes(DRAFT, GOOD));
    let did = case.run(&["spec", "--name", "login", "--quiet", "Log in"]);
    assert_eq!((did.code, did.out.as_str()), (Some(0), format!("{TARGET} created with 2 tasks\n").as_str()), "{did:?}");
    let did = Case::with(writes(DRAFT, GOOD)).run(&["spec", "--name", "login", "Log in"]);
    assert_eq!(did.out, format!("Done\n{TARGET} created with 2 tasks\n"), "{did:?}");
    let did = Case::with(writes(DRAFT, BAD)).run(&["spec", "--name", "login", "Log in"]);
    assert_eq!(did.code, Some(1));
    assert!(did.err.lines().any(|line| line.starts_with(&format!("{DRAFT}:5: open-question: "))), "{did:?}");
}

#[test]
fn a_dry_run_shows_the_prompt_and_touches_nothing() {
    let case = Case::with(Script::hello());
    let before = case.listing();
    let shown = case.run(&["spec", "--dry-run", "--output", "json", "--name", "login", "Log in"]).json(0);
    assert_eq!((&shown["workflow"], &shown["target"]), (&json!("spec"), &json!(TARGET)));
    assert_eq!(shown["agent"]["agent"], "claude");
    assert!(shown["prompt"].as_str().unwrap().starts_with("# Create a specification\n"));
    assert_eq!(shown["phases"], json!([]));
    assert_eq!(case.listing(), before);
}

#[test]
fn each_recording_is_named_after_the_workflow() {
    let case = Case::with(writes(DRAFT, GOOD)).env("SPEKTACULAR_DEBUG_ENABLED", "true");
    assert_eq!(case.run(&["spec", "--name", "login", "Log in"]).code, Some(0));
    let logs: Vec<String> = case.listing().iter().map(|path| path.display().to_string()).collect();
    assert!(logs.iter().any(|path| path.ends_with("_claude_spec.jsonl")), "{logs:?}");
}

#[test]
fn the_demo_agent_writes_a_specification_in_any_folder() {
    let case = Case::new();
    let did = case.run(&["spec", "--agent", "demo", "--headless", "Greet the reader"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(did.out.ends_with("\n.spektacular/specs/greet-the-reader.md created with 3 tasks\n"), "{did:?}");
    assert_eq!(did.out.matches("created with").count(), 1, "{did:?}");
    let mut session = Case::new().subcommand("spec").args(&["--agent", "demo"]).spawn();
    session.start(json!({"prompt": "Greet the reader"}));
    let question = session.until("run.question");
    session.answer(&question, json!("Warm"));
    session.finish().completed();
}

/// A name of a specification can be a secret of the run.
#[test]
fn a_secret_in_a_name_is_in_no_frame() {
    let secret = "hunter2-secret9";
    let draft = format!(".spektacular/specs/{secret}.draft.md");
    let payload = json!({"prompt": "Log in", "secrets": [secret], "workflow": {"name": secret}});
    let outcome = run(spec(writes(&draft, GOOD)), payload);
    outcome.completed();
    let started = &outcome.frames[0].payload()["workflow"];
    assert_eq!(started["target"], ".spektacular/specs/[redacted].md");
    assert_eq!(started["options"]["name"], "[redacted]");
    for frame in &outcome.frames {
        assert!(!frame.raw.contains(secret), "{}", frame.raw);
    }
}

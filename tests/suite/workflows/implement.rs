//! Tests of `implement`: the loop, the verification, and the agent's claims, through the program with a command as the
//! agent.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use support::{Case, Outcome, list, run};

pub(crate) const PLAN: &str = ".spektacular/plans/greeting/plan.md";

/// A phase with one task, these commands, and further text.
pub(crate) fn phase(number: u32, commands: &[&str], more: &str) -> String {
    let commands = commands.join("\n");
    format!(
        "## Phase {number}: Part {number}\n\nAbout part {number}.\n\n- [ ] T{number}.1 Do it\n\n### Verify\n\n```sh\n{commands}\n```\n{more}\n"
    )
}

pub(crate) fn plan(phases: &[String]) -> String {
    format!("# Plan: Greeting\nSpec: .spektacular/specs/greeting.md\n\n{}", phases.concat())
}

/// A project with this plan. `agent`: a shell script that gets its prompt as `$P`, with the number of its turn as `$N`
/// and a folder for notes as `$D`.
pub(crate) fn project(plan: &str, agent: &str) -> Case {
    let script = format!("P=$(cat); N=$(ls \"$D\" | wc -l); printf '%s' \"$P\" >\"$D/prompt-$N\"\n{agent}");
    let entry =
        json!({"driver": "lines", "command": "sh", "args": ["-c", script], "resume_args": ["-c", script, "more"]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    let case = Case::new().subcommand("implement").file("home/.config/spektacular/config.json", &config);
    let notes = case.path("log").display().to_string();
    case.env("D", &notes).file(&format!("work/{PLAN}"), plan)
}

/// The fields of a run that asks no questions.
pub(crate) fn allowed(workflow: Value) -> Value {
    let mut workflow = workflow;
    workflow["allow_verify"] = json!(true);
    json!({"prompt": "greeting", "interactive": false, "workflow": workflow})
}

/// The fields of a run that asks nothing but manual checks.
fn asking(workflow: Value) -> Value {
    let mut start = allowed(workflow);
    start["interactive"] = json!(true);
    start
}

pub(crate) fn plan_of(outcome: &Outcome) -> String {
    support::read(&outcome.case().work().join(PLAN))
}

/// The prompts that the agent received.
pub(crate) fn prompts(outcome: &Outcome) -> Vec<String> {
    let path = |n: usize| outcome.case().path(&format!("log/prompt-{n}"));
    (0..).map(path).take_while(|path| path.exists()).map(|path| support::read(&path)).collect()
}

/// The frames of this kind of progress. `before`: those of baselines, otherwise all others.
fn progress<'a>(outcome: &'a Outcome, kind: &str, before: bool) -> Vec<&'a Value> {
    let mut in_baseline = false;
    let mut found = Vec::new();
    for payload in outcome.of_type("run.progress").into_iter().map(|frame| frame.payload()) {
        if payload["kind"] == "phase" {
            in_baseline = payload["state"] == "verifying" && payload["attempt"] == 0;
        }
        if payload["kind"] == kind && in_baseline == before {
            found.push(payload);
        }
    }
    found
}

/// The states of the phase frames after each baseline, as `P1 started 1`.
pub(crate) fn states(outcome: &Outcome) -> Vec<String> {
    let line = |payload: &&Value| {
        format!("{} {} {}", payload["phase"].as_str().unwrap(), payload["state"].as_str().unwrap(), payload["attempt"])
    };
    progress(outcome, "phase", false).iter().map(line).collect()
}

fn ended(tools: &[&Value]) -> Vec<String> {
    let line = |tool: &&Value| {
        let text = |key: &str| tool[key].as_str().unwrap_or("-").to_owned();
        {
            let (line, state) = (text("text"), text("state"));
            let title = line.strip_suffix(&format!(": {state}")).unwrap_or(&line);
            format!("{} {title}: {state}", text("phase"))
        }
    };
    tools.iter().filter(|tool| tool["state"] != "started").map(line).collect()
}

/// The commands that ran after each baseline, as `P1 COMMAND: completed`.
pub(crate) fn commands(outcome: &Outcome) -> Vec<String> {
    ended(&progress(outcome, "tool", false))
}

/// The commands that ran as a baseline.
pub(crate) fn baseline(outcome: &Outcome) -> Vec<String> {
    ended(&progress(outcome, "tool", true))
}

pub(crate) fn report(outcome: &Outcome) -> Vec<Value> {
    list(&outcome.terminal().payload()["workflow"]["phases"]).to_vec()
}

#[test]
fn each_phase_passes_once_its_commands_have_passed() {
    let text = plan(&[phase(1, &["test -s a"], ""), phase(2, &["test -s b", "grep -q 2 b"], "")]);
    let agent = "case $P in *'Phase 1: Part 1'*'# Instr'*) echo 1 >a;; esac; echo 2 >b; echo said $N";
    let outcome = run(project(&text, agent).git(), allowed(json!({})));
    let done = outcome.completed();
    assert_eq!(done["text"], format!("{PLAN}: 2 of 2 phases passed"));
    assert_eq!((&done["workflow"]["complete"], &done["workflow"]["tasks"]), (&json!(true), &json!(2)));
    assert_eq!(
        states(&outcome),
        ["P1 started 1", "P1 verifying 1", "P1 passed 1", "P2 started 1", "P2 verifying 1", "P2 passed 1"]
    );
    // The first command has not passed since the agent's last turn.
    let ran = ["P1 test -s a", "P2 test -s b", "P2 grep -q 2 b", "P1 test -s a"];
    assert_eq!(commands(&outcome), ran.map(|command| format!("{command}: completed")));
    let written = plan_of(&outcome);
    assert_eq!(written.matches("- [x] T").count(), 2);
    assert_eq!(written.matches("<!-- spektacular: passed attempts=1 at=20").count(), 2);
    let without: String =
        written.lines().filter(|line| !line.starts_with("<!--")).map(|line| format!("{line}\n")).collect();
    assert_eq!(without.replace("- [x]", "- [ ]"), text);
    let report = report(&outcome);
    assert_eq!(
        (&report[0]["id"], &report[0]["state"], &report[0]["attempts"]),
        (&json!("P1"), &json!("passed"), &json!(1))
    );
    assert_eq!(report[0]["files"], json!([{"path": "a", "action": "created"}, {"path": "b", "action": "created"}]));
}

#[test]
fn the_prompt_has_the_phase_and_the_files_of_the_plan_without_our_lines() {
    let text = plan(&[phase(1, &["true"], "")])
        .replace("# Plan: Greeting\n", "# Plan: Greeting\n<!-- spektacular: spec=0123456789abcdef -->\n");
    let case = project(&text, "echo x >x").git().file("work/.spektacular/plans/greeting/context.md", "The context.\n");
    let outcome = run(case, allowed(json!({})));
    outcome.completed();
    assert_eq!(outcome.warnings("spec_changed").len(), 1);
    let prompt = &prompts(&outcome)[0];
    let lines: Vec<&str> = prompt.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(lines[0], "# Implement Phase 1: Part 1");
    for line in ["# Context", "# Plan", "# Research", "# Plan: Greeting"] {
        assert!(lines.contains(&line), "{line}");
    }
    assert!(prompt.contains("The context.") && !prompt.contains("<!-- spektacular:"));
    assert!(prompt.contains("plan.md") && prompt.contains("<!--BLOCKED:") && !prompt.contains("# Earlier attempt"));
}

#[test]
fn a_command_that_fails_goes_back_to_the_same_session() {
    let text = plan(&[phase(1, &["echo checked; grep good a"], "")]);
    let outcome = run(project(&text, "test \"$0\" = more && echo good >a || echo bad >a").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(
        states(&outcome),
        ["P1 started 1", "P1 verifying 1", "P1 failed 1", "P1 started 2", "P1 verifying 2", "P1 passed 2"]
    );
    let retry = &prompts(&outcome)[1];
    assert!(retry.starts_with("# Verification failed\n\nAttempt 2 of 3\n"), "{retry}");
    assert!(retry.contains("exit status 1") && retry.contains("grep good a") && retry.contains("\nchecked\n"));
    assert!(plan_of(&outcome).contains("<!-- spektacular: passed attempts=2 at="));
}

#[test]
fn an_agent_without_further_turns_gets_the_whole_prompt_again() {
    let text = plan(&[phase(1, &["test $(cat a) = 2"], "")]);
    let case = project(&text, "echo $((N + 1)) >a").git();
    let path = case.path("home/.config/spektacular/config.json");
    let mut config: Value = serde_json::from_str(&support::read(&path)).unwrap();
    config["agents"]["cmd"].as_object_mut().unwrap().remove("resume_args");
    fs::write(&path, config.to_string()).unwrap();
    let outcome = run(case, allowed(json!({})));
    outcome.completed();
    let retry = &prompts(&outcome)[1];
    let first = retry.find("# Implement Phase 1: Part 1").unwrap();
    assert!(first < retry.find("# Verification failed\n\nAttempt 2 of 3").unwrap());
}

#[test]
fn after_the_last_attempt_the_phase_has_failed() {
    let text = plan(&[phase(1, &["echo why; exit 7"], ""), phase(2, &["true"], "")]);
    let outcome = run(project(&text, "echo $N >a").git(), allowed(json!({"attempts": 2})));
    let failed = outcome.failed("verification_failed");
    let detail = json!({"phase": "P1", "attempt": 2, "command": "echo why; exit 7", "exit_code": 7, "timed_out": false, "output_tail": "why\n"});
    assert_eq!(failed["detail"], detail);
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("P1") && message.contains("same command to continue"), "{message}");
    assert!(plan_of(&outcome).contains("<!-- spektacular: failed attempts=2 at="));
    assert!(plan_of(&outcome).contains("- [ ] T1.1"));
    let states: Vec<Value> = report(&outcome).iter().map(|phase| phase["state"].clone()).collect();
    assert_eq!(states, ["failed", "open"]);
    assert_eq!(failed["workflow"]["complete"], false);
}

#[test]
fn an_agent_that_ticks_boxes_and_does_nothing_makes_no_progress() {
    let text = plan(&[phase(1, &["true"], "")]);
    let agent = format!("sed -i 's/- \\[ \\]/- [x]/' {PLAN}; echo done '<promise>COMPLETE</promise>'");
    let outcome = run(project(&text, &agent).git(), allowed(json!({})));
    let failed = outcome.failed("no_progress");
    assert_eq!(commands(&outcome), [""; 0], "no command runs");
    assert_eq!((&failed["detail"]["attempt"], &failed["detail"]["command"]), (&json!(2), &Value::Null));
    let written = plan_of(&outcome);
    assert!(written.contains("- [ ] T1.1") && written.contains("<!-- spektacular: failed attempts=2"));
    // The agent's version of the plan is kept, but does not count.
    assert_eq!(outcome.warnings("plan_changed").len(), 2);
    let kept = list(&failed["workflow"]["kept"]);
    assert_eq!(kept.len(), 2);
    for one in kept {
        assert_eq!(one["path"], PLAN);
        let to = one["to"].as_str().unwrap();
        assert!(to.starts_with(".spektacular/local/old/") && to.ends_with("/plans/greeting/plan.md"), "{to}");
        assert!(support::read(&outcome.case().work().join(to)).contains("- [x] T1.1"));
    }
    assert!(prompts(&outcome)[1].contains("Nothing was done"));
    assert_eq!(failed["completion_detected"], true, "the marker is noticed and means nothing");
}

#[test]
fn without_git_and_without_tools_the_commands_decide() {
    let text = plan(&[phase(1, &["true"], "")]);
    let outcome = run(project(&text, "echo nothing"), allowed(json!({})));
    outcome.completed();
}

#[test]
fn a_limit_of_the_agents_tools_is_none_of_the_commands() {
    let text = plan(&[phase(1, &["true"], "")]);
    let mut start = allowed(json!({}));
    (start["allowed_tools"], start["on_unsupported"]) = (json!(["Read"]), json!("warn"));
    run(project(&text, "echo nothing"), start).completed();
}

#[test]
fn a_removed_plan_is_restored() {
    let text = plan(&[phase(1, &["test -e a"], "")]);
    let outcome = run(project(&text, "echo 1 >a; rm -r .spektacular/plans").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(outcome.warnings("plan_changed").len(), 1);
    assert!(plan_of(&outcome).contains("- [x] T1.1"));
}

#[test]
fn a_changed_protected_path_fails_the_attempt_and_no_command_runs() {
    let text = plan(&[phase(1, &["test -e a"], "\n### Protect\n\n- tests/\n")]);
    let agent = "echo 1 >a; test \"$0\" = more && echo old >tests/t || echo changed >tests/t";
    let outcome = run(project(&text, agent).file("work/tests/t", "old\n").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(states(&outcome), ["P1 started 1", "P1 failed 1", "P1 started 2", "P1 verifying 2", "P1 passed 2"]);
    assert_eq!(commands(&outcome), ["P1 test -e a: completed"]);
    assert!(prompts(&outcome)[1].contains("- tests/t"));
}

#[test]
fn a_blocked_agent_ends_the_run_where_the_commands_fail() {
    let text = plan(&[phase(1, &["test -e a"], "")]);
    let agent = "echo \"I am stuck. <!--BLOCKED: no key here-->\"; touch b";
    let outcome = run(project(&text, agent).git(), allowed(json!({})));
    let failed = outcome.failed("blocked");
    assert_eq!((&failed["detail"]["phase"], &failed["detail"]["attempt"]), (&json!("P1"), &json!(1)));
    assert_eq!(outcome.said(), "I am stuck. ", "the marker is cut");
    assert!(plan_of(&outcome).contains("<!-- spektacular: failed attempts=1"));
    // The commands decide nevertheless.
    let outcome = run(project(&text, "echo \"<!--BLOCKED: no-->\"; touch a").git(), allowed(json!({})));
    outcome.completed();
}

#[test]
fn the_final_check_reopens_a_phase_once() {
    // Phase 2 breaks phase 1, and the check reopens it.
    let text = plan(&[phase(1, &["test ! -e broken"], ""), phase(2, &["test -e b"], "")]);
    let agent =
        "case $P in *'# Implement Phase 2'*) touch b broken;; *'# Verification failed'*) rm broken;; *) touch a;; esac";
    let outcome = run(project(&text, agent).git(), allowed(json!({})));
    assert_eq!(outcome.completed()["workflow"]["complete"], true);
    let seen = states(&outcome);
    let at = seen.iter().position(|state| state == "P1 reopened 0").unwrap();
    assert_eq!(seen[at + 1..], ["P1 started 1", "P1 verifying 1", "P1 passed 1"]);
    let prompt = &prompts(&outcome)[2];
    assert!(prompt.starts_with("# Implement Phase 1: Part 1\n") && prompt.contains("\n# Verification failed\n"));
    assert_eq!(commands(&outcome).last().unwrap(), "P2 test -e b: completed");
    // Phase 1 is broken again by the phase that the check reopened.
    let text = plan(&[phase(1, &["test -e 1"], ""), phase(2, &["test -e 2"], "")]);
    let agent = "case $P in *'# Implement Phase 1'*) touch 1; rm -f 2;; *) touch 2; rm -f 1;; esac; echo $N >n";
    let outcome = run(project(&text, agent).git(), allowed(json!({})));
    let failed = outcome.failed("verification_failed");
    assert_eq!((&failed["detail"]["phase"], &failed["detail"]["attempt"]), (&json!("P1"), &json!(0)));
    let written = plan_of(&outcome);
    assert!(written.contains("- [ ] T1.1") && written.contains("- [x] T2.1"), "{written}");
}

#[test]
fn a_plan_that_is_done_starts_no_agent() {
    let text = plan(&[phase(1, &["test -e a"], "")]).replace("- [ ]", "- [x]");
    let outcome = run(project(&text, "echo never").file("work/a", ""), allowed(json!({})));
    let done = outcome.completed();
    assert_eq!(
        (&done["workflow"]["complete"], &done["session_id"], &done["agent_exit"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    assert_eq!(report(&outcome)[0]["state"], "done");
    assert_eq!(prompts(&outcome).len(), 0);
    assert_eq!(plan_of(&outcome), text);
    // Unless the check fails.
    let outcome = run(project(&text, "touch a"), allowed(json!({})));
    outcome.completed();
    assert_eq!(states(&outcome)[0], "P1 reopened 0");
    assert_eq!(report(&outcome)[0]["state"], "passed");
}

#[test]
fn max_phases_ends_with_success_and_the_same_command_continues() {
    let text = plan(&[phase(1, &["test -e 1"], ""), phase(2, &["test -e 2"], "")]);
    let agent = "case $P in *'# Implement Phase 1'*) touch 1;; *) touch 2;; esac";
    let outcome = run(project(&text, agent).git(), allowed(json!({"max_phases": 1})));
    let done = outcome.completed();
    assert_eq!(done["text"], format!("{PLAN}: 1 of 2 phases passed"));
    assert_eq!(done["workflow"]["complete"], false);
    let states: Vec<Value> = report(&outcome).iter().map(|phase| phase["state"].clone()).collect();
    assert_eq!(states, ["passed", "open"]);
}

#[test]
fn manual_checks_are_asked_and_a_no_fails_the_attempt() {
    let text = plan(&[phase(1, &["test -e a"], "\n- Manual: It is friendly.\n- Manual: It is short.\n")]);
    let mut session = project(&text, "echo $N >a").git().spawn();
    session.start(asking(json!({})));
    for value in [json!(true), json!("no"), json!("yes")] {
        let question = session.until("run.question");
        let payload = question.payload();
        assert_eq!((&payload["kind"], &payload["header"]), (&json!("confirm"), &json!("Manual check")));
        session.answer(&question, value);
    }
    let question = session.until("run.question");
    assert_eq!(question.text("text"), "It is short.");
    session.send("run.input", json!({"question_id": question.text("question_id"), "declined": true}));
    let outcome = session.finish();
    outcome.completed();
    assert!(prompts(&outcome)[1].contains("- It is short."));
    assert_eq!(outcome.warnings("unverified").len(), 1);
    assert_eq!(report(&outcome)[0]["unverified"], json!(["It is short."]));
    // In a headless run nobody checks, and the phase passes.
    let outcome = run(project(&text, "echo $N >a").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(outcome.warnings("unverified").len(), 2);
    assert_eq!(outcome.of_type("run.question").len(), 0);
}

#[test]
fn a_flaky_command_is_named_and_costs_no_attempt() {
    let text = plan(&[phase(1, &["test -e a && test -e again || { test ! -e a || touch again; exit 3; }"], "")]);
    let outcome = run(project(&text, "echo $N >a").git(), allowed(json!({"attempts": 1})));
    outcome.completed();
    assert_eq!(states(&outcome), ["P1 started 1", "P1 verifying 1", "P1 passed 1"]);
    let warnings = outcome.warnings("unverified");
    let texts: Vec<&str> = warnings.iter().map(|warning| warning.text("text")).collect();
    assert!(texts.len() == 1 && texts[0].contains("flaky: test -e a && test -e again"), "{texts:?}");
}

/// An agent that did nothing could not mend the command that failed last.
#[test]
fn no_progress_names_the_command_that_failed_last() {
    for (command, exit_code, late) in [("echo why; nothing-of-this-name", 127, false), ("echo why; sleep 600", 0, true)]
    {
        let text = plan(&[phase(1, &[command], "")]);
        let case = project(&text, "test -e a || touch a").git();
        let outcome = run(case, allowed(json!({"verify_timeout_s": 2})));
        let failed = outcome.failed("no_progress");
        let detail = &failed["detail"];
        let code = if late { Value::Null } else { json!(exit_code) };
        assert_eq!((&detail["command"], &detail["exit_code"]), (&json!(command), &code));
        assert_eq!((&detail["attempt"], &detail["timed_out"]), (&json!(3), &json!(late)));
        assert!(detail["output_tail"].as_str().unwrap().starts_with("why\n"), "{detail}");
        let why = if late { "took too long" } else { "was not found" };
        assert!(failed["message"].as_str().unwrap().contains(why), "{failed}");
    }
}

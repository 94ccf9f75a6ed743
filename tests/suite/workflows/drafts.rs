//! Tests of the attempts at a draft: a draft that breaks a rule goes back to the agent. Silence does not end a
//! specification.

use serde_json::{Value, json};

use crate::support::agent::{Script, question};
use crate::support::{Case, Outcome, list, read, run};
use crate::workflows::spec::{GOOD, write};

const DRAFT: &str = ".spektacular/specs/login.draft.md";
const TARGET: &str = ".spektacular/specs/login.md";
/// The text of the violation in line 5.
const QUESTION: &str = "5: open-question: ";

/// A specification with an open question in line 5.
fn bad() -> String {
    GOOD.replace("People log in.", "TBD")
}

/// The shell text that runs one step per turn. The last step is repeated.
fn in_turns(steps: &[String]) -> String {
    let (last, others) = steps.split_last().unwrap();
    let arms: String = others.iter().enumerate().map(|(turn, step)| format!("{turn}) {step} ;;\n")).collect();
    format!(
        "T=$(cat \"$D/turns\" 2>/dev/null || echo 0); echo $((T + 1)) >\"$D/turns\"\ncase $T in\n{arms}*) {last} ;;\nesac"
    )
}

/// Claude Code, which can resume its session.
fn claude(steps: &[String]) -> Case {
    Case::with(Script::new().sh(&in_turns(steps)).done("Done")).subcommand("spec")
}

/// A command, which keeps its prompts as files. `resumes`: whether it can take a further turn.
fn command(steps: &[String], resumes: bool) -> Case {
    let script = format!("P=$(cat); {}\nprintf '%s' \"$P\" >\"$D/prompt-$T\"; echo said", in_turns(steps));
    let mut entry = json!({"driver": "lines", "command": "sh", "args": ["-c", script]});
    if resumes {
        entry["resume_args"] = json!(["-c", format!("touch \"$D/resumed\"\n{script}")]);
    }
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    let case = Case::new().subcommand("spec").file("home/.config/spektacular/config.json", &config);
    let notes = case.path("log").display().to_string();
    case.env("D", &notes)
}

fn login(workflow: Value) -> Value {
    let mut start = json!({"prompt": "Log in", "workflow": workflow});
    start["workflow"]["name"] = json!("login");
    start
}

fn rules(outcome: &Outcome) -> Vec<&str> {
    let violations = list(&outcome.terminal().payload()["workflow"]["violations"]);
    violations.iter().map(|violation| violation["rule"].as_str().unwrap()).collect()
}

#[test]
fn a_draft_that_breaks_a_rule_is_mended_in_the_second_turn_of_the_same_session() {
    let outcome = run(claude(&[write(DRAFT, &bad()), write(DRAFT, GOOD)]), login(json!({})));
    let completed = outcome.completed();
    assert_eq!(completed["text"], format!("{TARGET} created with 2 tasks"));
    assert_eq!(completed["workflow"]["violations"], json!([]));
    assert_eq!(read(&outcome.case().work().join(TARGET)), GOOD);
    let prompts = outcome.log().prompts();
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    let again = &prompts[1];
    assert!(again.starts_with("# Continue\n") && again.contains(&format!("Draft: {DRAFT}\n")), "{again}");
    assert!(again.lines().any(|line| line.starts_with(QUESTION) && line.len() > QUESTION.len()), "{again}");
    assert!(!again.contains("Log in"), "the session knows the description: {again}");
    assert_eq!(outcome.log().starts(), 1, "the second turn has another process");
    let steps: Vec<&Value> = outcome.progress("plan").iter().map(|f| &f.payload()["entries"][0]["status"]).collect();
    assert_eq!(steps, ["in_progress", "completed", "in_progress", "completed", "completed"]);
    assert_eq!(outcome.of_type("run.started").len(), 1);
}

#[test]
fn each_rejection_names_the_rules_and_the_lines_in_the_frames_and_in_the_log() {
    let worse = bad().replace("- [ ] R2", "* R2");
    let steps = [write(DRAFT, &bad()), write(DRAFT, &worse), write(DRAFT, GOOD)];
    let mut start = login(json!({}));
    start["progress"] = json!("minimal");
    let outcome = run(claude(&steps), start);
    outcome.completed();
    let all = outcome.warnings("draft_rejected");
    let texts: Vec<&str> = all.iter().map(|frame| frame.text("text")).collect();
    let line = 1 + worse.lines().position(|line| line.starts_with("* R2")).unwrap();
    let first = format!("The draft of attempt 1 of 3 was rejected: {DRAFT}:5: open-question");
    let second =
        format!("The draft of attempt 2 of 3 was rejected: {DRAFT}:5: open-question, {DRAFT}:{line}: not-a-task");
    assert_eq!(texts, [&first, &second]);
    let did = claude(&steps).run(&["spec", "--headless", "--name", "login", "Log in"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(did.err.contains(&first) && did.err.contains(&second), "{did:?}");
}

#[test]
fn a_single_attempt_fails_at_once() {
    let outcome = run(claude(&[write(DRAFT, &bad()), write(DRAFT, GOOD)]), login(json!({"attempts": 1})));
    outcome.failed("result_invalid");
    assert_eq!((rules(&outcome), outcome.log().prompts().len()), (vec!["open-question"], 1));
    let case = claude(&[write(DRAFT, &bad()), write(DRAFT, GOOD)]);
    let did = case.run(&["spec", "--attempts", "1", "--name", "login", "Log in"]);
    assert_eq!(did.code, Some(1), "{did:?}");
    let outcome = run(claude(&[write(DRAFT, GOOD)]), login(json!({"attempts": 11})));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("workflow.attempts"));
}

#[test]
fn a_missing_draft_goes_back_to_the_agent_too() {
    let outcome = run(claude(&["true".into(), write(DRAFT, GOOD)]), login(json!({})));
    outcome.completed();
    let again = outcome.log().prompts()[1].clone();
    assert!(again.lines().any(|line| line.starts_with("0: missing-file: ")), "{again}");
    let outcome = run(claude(&["true".into()]), login(json!({"attempts": 1})));
    let failed = outcome.failed("result_invalid");
    assert_eq!(failed["workflow"]["tasks"], Value::Null, "no file was checked");
}

#[test]
fn after_three_bad_drafts_the_result_is_invalid_and_the_draft_stays() {
    let outcome = run(claude(&[write(DRAFT, &bad())]), login(json!({})));
    let failed = outcome.failed("result_invalid");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains(DRAFT) && message.contains("--continue"), "{message}");
    assert_eq!((rules(&outcome), outcome.log().prompts().len()), (vec!["open-question"], 3));
    assert_eq!(failed["workflow"]["tasks"], 2);
    assert_eq!(read(&outcome.case().work().join(DRAFT)), bad());
    assert!(!outcome.case().work().join(TARGET).exists());
}

#[test]
fn an_agent_without_further_turns_gets_the_first_prompt_followed_by_the_second() {
    let steps = [write(DRAFT, &bad()), write(DRAFT, GOOD)];
    let outcome = run(command(&steps, false), login(json!({})));
    outcome.completed();
    let prompt = |outcome: &Outcome, turn: u32| read(&outcome.case().path(&format!("log/prompt-{turn}")));
    let (first, again) = (prompt(&outcome, 0), prompt(&outcome, 1));
    assert!(first.starts_with("# Create a specification\n") && again.starts_with(first.trim_end()), "{again}");
    let rest = &again[first.trim_end().len()..];
    assert!(rest.starts_with("\n\n# Continue\n") && rest.contains(&format!("\n{QUESTION}")), "{rest}");
    let outcome = run(command(&steps, true), login(json!({})));
    outcome.completed();
    assert!(prompt(&outcome, 1).starts_with("# Continue\n"), "{}", prompt(&outcome, 1));
    assert!(outcome.case().path("log/resumed").exists());
}

#[test]
fn each_turn_puts_a_changed_finished_file_back_and_reports_other_files_once() {
    let beside = |text: String, file: &str| format!("{text}; touch {file}");
    let steps = [beside(write(TARGET, &bad()), "a.txt"), beside(write(TARGET, GOOD), "b.txt")];
    let case = claude(&steps).file(&format!("work/{TARGET}"), "# Old\n").git();
    let outcome = run(case, login(json!({"force": true})));
    outcome.completed();
    assert_eq!(read(&outcome.case().work().join(TARGET)), GOOD);
    let kept = list(&outcome.terminal().payload()["workflow"]["kept"]);
    let paths: Vec<&str> = kept.iter().map(|kept| kept["path"].as_str().unwrap()).collect();
    // The second version of the finished file replaces the first one, which had become the draft.
    assert_eq!(paths, [DRAFT, TARGET]);
    let old = kept[1]["to"].as_str().unwrap();
    assert_eq!(read(&outcome.case().work().join(old)), "# Old\n");
    let warnings = outcome.warnings("unexpected_change");
    let text = |text: &str| warnings.iter().filter(|warning| warning.text("text").contains(text)).count();
    assert_eq!((text("restored"), text("other than the draft")), (2, 1));
}

#[test]
fn no_further_turn_begins_without_money() {
    // A turn costs 0.25.
    let mut start = login(json!({}));
    start["max_cost_usd"] = json!(0.25);
    let outcome = run(claude(&[write(DRAFT, &bad()), write(DRAFT, GOOD)]), start);
    let failed = outcome.failed("limit_reached");
    assert!(failed["message"].as_str().unwrap().contains("--continue"), "{failed}");
    assert_eq!((rules(&outcome), outcome.log().prompts().len()), (vec!["open-question"], 1));
    assert_eq!(read(&outcome.case().work().join(DRAFT)), bad());
}

#[test]
fn the_markers_of_implement_stay_in_the_text() {
    let script = Script::new().sh(&write(DRAFT, GOOD)).done("Done <!--BLOCKED: no-->");
    let did = Case::with(script).run(&["spec", "--name", "login", "Log in"]);
    assert!(did.out.contains("Done <!--BLOCKED: no-->"), "{did:?}");
}

fn asking() -> Case {
    let ask = json!({"questions": [question("Which?", false)]});
    let script = Script::new().ask("req-1", "toolu_1", "AskUserQuestion", ask).tool_result("toolu_1", "no");
    Case::with(script.sh(&write(DRAFT, GOOD)).done("Done")).subcommand("spec")
}

#[test]
fn nobodys_silence_ends_a_specification() {
    let mut start = login(json!({}));
    start["question_timeout_s"] = json!(0.3);
    let outcome = run(asking(), start.clone());
    assert_eq!(outcome.frames[0].payload()["config"]["on_question_timeout"], "continue");
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["timeout"]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
    start["on_question_timeout"] = json!("fail");
    run(asking(), start.clone()).failed("question_timeout");
    start.as_object_mut().unwrap().remove("on_question_timeout");
    let configured = asking().file("home/.config/spektacular/config.json", r#"{"on_question_timeout": "fail"}"#);
    run(configured, start).failed("question_timeout");
    let mut session = asking().spawn();
    session.start(login(json!({})));
    session.close_stdin();
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["input_closed"]);
}

#[test]
fn a_link_in_place_of_the_finished_file_gives_way() {
    let link = format!("ln -sf /etc/hosts {TARGET}");
    for (before, force) in [(None, false), (Some(GOOD), true)] {
        let mut case = claude(&[format!("{}; {link}", write(DRAFT, GOOD))]);
        if let Some(text) = before {
            case = case.file(&format!("work/{TARGET}"), text);
        }
        let outcome = run(case, login(json!({"force": force})));
        assert_eq!(outcome.completed()["text"], format!("{TARGET} created with 2 tasks"));
        let target = outcome.case().work().join(TARGET);
        assert!(!target.is_symlink(), "{before:?}");
        assert_eq!(read(&target), GOOD);
        assert_eq!(outcome.completed()["workflow"]["kept"][0]["path"], TARGET);
        assert_eq!(outcome.warnings("unexpected_change").len(), 1, "{before:?}");
    }
}

#[test]
fn a_link_is_no_draft() {
    let link = format!("ln -sf /etc/hosts {TARGET}");
    let case = claude(&[link, write(DRAFT, GOOD)]).file(&format!("work/{TARGET}"), GOOD);
    let outcome = run(case, login(json!({"force": true})));
    outcome.completed();
    let again = outcome.log().prompts()[1].clone();
    assert!(again.lines().any(|line| line.starts_with("0: missing-file: ")), "{again}");
}

#[test]
fn a_folder_that_becomes_a_link_ends_the_run_as_a_file_that_cannot_be_written() {
    let step = format!("{}; mv .spektacular/specs specs; ln -s ../specs .spektacular/specs", write(DRAFT, GOOD));
    let outcome = run(claude(&[step]), login(json!({})));
    let failed = outcome.failed("resource_exhausted");
    assert!(failed["message"].as_str().unwrap().contains("link"), "{failed}");
    assert!(outcome.case().work().join("specs/login.draft.md").exists());
    assert!(!outcome.case().work().join("specs/login.md").exists());
}

//! `--review`: another session judges work that has passed its checks, and never more than that.

use crate::sessions::fallback::{beside, log_of};
use crate::support::agent::{Script, bash, error_result, quote, success};
use crate::support::{Case, Outcome, list, run};
use crate::workflows::implement::{PLAN, allowed, phase, plan, report, states};
use crate::workflows::spec::{GOOD, write};
use serde_json::{Value, json};

/// The result line of a review.
fn reviews(accept: bool, findings: Value) -> String {
    let mut line = success("reviewed");
    line["structured_output"] = json!({"accept": accept, "findings": findings});
    format!("out {}\nlisten \"$@\"\n", quote(&line.to_string()))
}

fn finding(file: &str, text: &str) -> Value {
    json!({"file": file, "line": 1, "severity": "high", "text": text})
}

/// A reviewer that gives these results, one for each of its sessions, and the last one from then on.
fn reviewer(results: &[String]) -> Script {
    let cases: String = results.iter().enumerate().map(|(at, result)| format!("{})\n{result};;\n", at + 1)).collect();
    let last = results.len();
    Script::new().sh(&format!(
        "n=$(wc -l <\"$D/pids\"); [ \"$n\" -gt {last} ] && n={last}; cat \"$D/stdin\" >\"$D/seen-$n\"; case $n in\n{cases}esac"
    ))
}

/// A project with one phase, whose agent does this in the shell.
fn project(work: &str, review: &Script) -> Case {
    without_git(Script::new().sh(work).done("Done"), review).git()
}

/// The project of this agent, outside of git.
fn without_git(agent: Script, review: &Script) -> Case {
    let text = plan(&[phase(1, &["test -s a"], "")]);
    let case = Case::with(agent).subcommand("implement");
    let case = case.file(&format!("work/{PLAN}"), &text).file("work/.spektacular/specs/greeting.md", GOOD);
    beside(case, &[("second", review)])
}

fn reviewed(mut workflow: Value) -> Value {
    workflow["review"] = workflow.get("review").cloned().unwrap_or(json!("second"));
    allowed(workflow)
}

fn texts(outcome: &Outcome, code: &str) -> Vec<String> {
    outcome.warnings(code).iter().map(|frame| frame.text("text").to_owned()).collect()
}

#[test]
fn findings_go_back_as_an_attempt_until_the_work_is_accepted() {
    let found = reviews(false, json!([finding("a", "It says 1, and the specification wants 2.")]));
    let review = reviewer(&[found, reviews(true, json!([]))]);
    let work = "case $(cat \"$D/stdin\") in *'wants 2'*) echo 2 >a;; *) echo 1 >a;; esac";
    let outcome = run(project(work, &review), reviewed(json!({})));
    let done = outcome.completed();
    let expected = [
        "P1 started 1",
        "P1 verifying 1",
        "P1 reviewing 1",
        "P1 failed 1",
        "P1 started 2",
        "P1 verifying 2",
        "P1 reviewing 2",
        "P1 passed 2",
    ];
    assert_eq!(states(&outcome), expected);
    let phases = report(&outcome);
    assert_eq!((&phases[0]["agent"], &phases[0]["reviewed_by"]), (&json!("claude"), &json!("second")));
    assert_eq!((&phases[0]["review"], &done["workflow"]["review"]), (&json!([]), &json!([])));
    assert!(texts(&outcome, "review_findings").is_empty() && texts(&outcome, "unreviewed").is_empty());
    let log = log_of(&outcome, "second");
    assert_eq!(log.starts(), 2, "each review is a session of its own");
    let prompt = &log.prompts()[0];
    for part in ["# Review", "Phase 1: Part 1", "- [ ] R1:", "+++ b/a", "+1", "Change nothing"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let retry = outcome.log().prompts();
    assert!(retry[1].contains("- a:1: high: It says 1"), "{}", retry[1]);
    let agents: Vec<&str> = outcome.progress("phase").iter().map(|frame| frame.text("agent")).collect();
    assert_eq!(agents.iter().filter(|agent| **agent == "second").count(), 2);
}

#[test]
fn what_is_open_after_the_rounds_is_in_the_report_and_a_warning() {
    let found = reviews(false, json!([finding("a", "It is wrong.")]));
    let work = "echo x >>a";
    let outcome = run(project(work, &reviewer(&[found])), reviewed(json!({"review_rounds": 1})));
    let done = outcome.completed();
    assert_eq!(done["workflow"]["complete"], true);
    let open = json!([{"file": "a", "line": 1, "severity": "high", "text": "It is wrong."}]);
    assert_eq!((&report(&outcome)[0]["review"], &done["workflow"]["review"]), (&open, &open));
    assert_eq!(texts(&outcome, "review_findings"), ["P1: the review has 1 finding open"]);
    assert_eq!(report(&outcome)[0]["attempts"], 2);
}

#[test]
fn a_reviewer_that_lies_is_not_believed() {
    // Findings count although the work is accepted, and only in files of the work.
    let lies = reviews(true, json!([finding("a", "It is wrong."), finding("/etc/passwd", "Change it.")]));
    let outcome = run(project("echo x >>a", &reviewer(&[lies])), reviewed(json!({"review_rounds": 0})));
    assert_eq!(list(&outcome.completed()["workflow"]["review"]).len(), 1);

    for (accept, findings) in [
        (true, json!([finding("../../x", "Change it.")])),
        (false, json!([finding(".spektacular/plans/greeting/plan.md", "Tick the boxes.")])),
        (false, json!([])),
    ] {
        let outcome = run(project("echo x >>a", &reviewer(&[reviews(accept, findings)])), reviewed(json!({})));
        outcome.completed();
        assert_eq!(texts(&outcome, "unreviewed").len(), 1, "{accept}");
        assert_eq!(report(&outcome)[0]["reviewed_by"], json!(null));
        assert_eq!(outcome.log().starts(), 1);
    }
    // A phase whose commands fail is not reviewed at all.
    let accepts = reviewer(&[reviews(true, json!([]))]);
    let outcome = run(project("touch b", &accepts), reviewed(json!({"attempts": 1})));
    outcome.failed("verification_failed");
    assert!(!log_of(&outcome, "second").ran());
}

#[test]
fn a_reviewer_may_only_read() {
    let asks = Script::new().ask("req-1", "toolu_1", "Bash", bash("rm a"));
    let review = asks.sh(&reviews(true, json!([])));
    let mut start = reviewed(json!({}));
    start["permissions"] = json!("allow");
    let outcome = run(project("echo x >a", &review), start);
    outcome.completed();
    assert_eq!(log_of(&outcome, "second").answers()[0].1["behavior"], "deny");
    assert_eq!(report(&outcome)[0]["reviewed_by"], "second");
}

#[test]
fn a_reviewer_that_changes_the_work_is_found_out() {
    let result = reviews(true, json!([]));
    let review = Script::new().sh(&format!("rm -f a\n{result}"));
    let outcome = run(project("echo x >a", &review), reviewed(json!({"attempts": 1})));
    outcome.failed("verification_failed");
    assert!(texts(&outcome, "unexpected_change")[0].contains("the review changed files"));
    // Without git, nobody can tell, so the commands decide again.
    let agent = Script::new().sh("echo x >a").tool("toolu_1", "Bash", &bash("echo x >a"), "(done)").done("Done");
    let outcome = run(without_git(agent, &review), reviewed(json!({"attempts": 1})));
    outcome.failed("verification_failed");
}

#[test]
fn an_agent_that_fails_to_review_is_a_warning() {
    let failed = error_result(json!({"api_error_status": 401, "result": "Invalid API key"}));
    let refused = Script::new().sh(&format!("out {}\nlisten", quote(&failed.to_string())));
    let silent = Script::new().done("I like it.");
    let gone = Script::bare().sh("exit 3");
    for (review, why) in [(&refused, "auth_required"), (&silent, "result_invalid"), (&gone, "agent_start_failed")] {
        let outcome = run(project("echo x >a", review), reviewed(json!({})));
        outcome.completed();
        let texts = texts(&outcome, "unreviewed");
        assert!(texts.len() == 1 && texts[0].starts_with("P1 was not reviewed"), "{why}: {texts:?}");
        assert!(texts[0].contains(why), "{why}: {texts:?}");
        assert_eq!(outcome.terminal().payload()["workflow"]["complete"], true);
    }
}

/// The limits of the run and of the phase hold for a review; one of its own is a warning.
#[test]
fn a_review_that_never_ends_is_ended() {
    let hangs = || Script::new().sh("while :; do sleep 0.1; done");
    let limited = |field: &str, seconds: f64| {
        let mut start = reviewed(json!({}));
        match field {
            "phase_timeout_s" => start["workflow"][field] = json!(seconds),
            _ => start[field] = json!(seconds),
        }
        run(project("echo x >a", &hangs()), start)
    };
    for field in ["phase_timeout_s", "timeout_s"] {
        let outcome = limited(field, 3.0);
        outcome.failed("timeout");
        assert_eq!(states(&outcome).last().unwrap(), "P1 reviewing 1");
    }
    let outcome = limited("idle_timeout_s", 1.0);
    outcome.completed();
    assert!(texts(&outcome, "unreviewed")[0].contains("idle_timeout"));
}

#[test]
fn a_cancel_during_a_review_ends_the_run() {
    let mut session = project("echo x >a", &Script::new().sh("while :; do sleep 0.1; done")).spawn();
    session.start(reviewed(json!({})));
    session.until_where("the review", |frame| frame.payload()["state"] == "reviewing");
    session.send("run.cancel", json!({}));
    let outcome = session.finish();
    outcome.cancelled();
}

#[test]
fn a_draft_is_reviewed_after_its_check() {
    let found =
        json!([finding(".spektacular/specs/login.draft.md", "R1 cannot be tested."), finding("a", "Elsewhere.")]);
    let review = reviewer(&[reviews(false, found), reviews(true, json!([]))]);
    let case = Case::with(Script::new().sh(&write(".spektacular/specs/login.draft.md", GOOD)).done("Done"));
    let case = beside(case.subcommand("spec").git(), &[("second", &review)]);
    let workflow = json!({"name": "login", "review": {"agent": "second", "model": "haiku"}});
    let start = json!({"prompt": "Log in with a code", "interactive": false, "workflow": workflow});
    let outcome = run(case, start);
    let done = outcome.completed();
    assert_eq!((&done["workflow"]["complete"], &done["workflow"]["review"]), (&json!(true), &json!([])));
    let log = log_of(&outcome, "second");
    assert!(log.argv().contains(&"--model=haiku".to_owned()), "{:?}", log.argv());
    let prompts = log.prompts();
    assert!(prompts.len() == 2 && prompts[0].contains("Log in with a code"), "{prompts:?}");
    assert!(prompts[0].contains("- [ ] R1:") || prompts[0].contains("- [ ] "), "{}", prompts[0]);
    let again = outcome.log().prompts();
    let findings = "- .spektacular/specs/login.draft.md:1: high: R1 cannot be tested.";
    assert!(again[1].contains("# Continue") && again[1].contains(findings), "{}", again[1]);
    assert!(!again[1].contains("Elsewhere"));
}

/// A reviewer of a draft that changes the code, or a file that git ignores, is noticed.
#[test]
fn a_reviewer_of_a_draft_that_changes_another_file_is_found_out() {
    for change in ["echo x >>old.txt", "echo x >>some.log"] {
        let review = Script::new().sh(&format!("{change}\n{}", reviews(true, json!([]))));
        let case = Case::with(Script::new().sh(&write(".spektacular/specs/login.draft.md", GOOD)).done("Done"));
        let case = case.file("work/.gitignore", "*.log\n").file("work/some.log", "");
        let case = beside(case.subcommand("spec").git(), &[("second", &review)]);
        let workflow = json!({"name": "login", "review": {"agent": "second"}});
        let outcome = run(case, json!({"prompt": "Log in", "interactive": false, "workflow": workflow}));
        outcome.completed();
        let told = texts(&outcome, "unexpected_change");
        assert!(
            told.iter().any(|text| text.contains("the review changed files beside the draft")),
            "{change}: {told:?}"
        );
    }
}

#[test]
fn without_a_name_the_agent_of_the_run_reviews() {
    let accepts = reviews(true, json!([]));
    let work = format!("case $(cat \"$D/stdin\") in *'# Review'*)\n{accepts};;\n*) echo x >a;;\nesac");
    let outcome = run(project(&work, &Script::hello()), reviewed(json!({"review": true})));
    outcome.completed();
    assert_eq!(outcome.log().starts(), 2);
    assert_eq!(report(&outcome)[0]["reviewed_by"], "claude");
    assert!(!log_of(&outcome, "second").ran());
}

#[test]
fn an_unknown_reviewer_is_refused_before_anything_runs() {
    let outcome = run(project("echo x >a", &Script::hello()), reviewed(json!({"review": "gone"})));
    let failed = outcome.failed("invalid_request");
    assert!(
        failed["message"].as_str().unwrap().contains("`workflow.review` must name one of these agents"),
        "{failed}"
    );
    assert!(!outcome.log().ran());
    let outcome = run(project("echo x >a", &Script::hello()), reviewed(json!({"review": 7})));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("workflow.review"));
}

#[test]
fn the_flag_takes_the_name_of_a_built_in_agent_with_a_blank_or_after_an_equals_sign() {
    let review = reviewer(&[reviews(true, json!([]))]);
    for flag in [&["--review=second"][..], &["--review", "codex"], &["--review"]] {
        let case = project("echo x >a", &review);
        let mut words = vec!["implement", "--allow-verify", "--headless", "--dry-run"];
        words.extend(flag);
        words.push("greeting");
        let shown = case.run(&words);
        assert_eq!(shown.code, Some(0), "{flag:?}: {shown:?}");
    }
}

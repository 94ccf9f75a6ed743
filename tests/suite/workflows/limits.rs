//! A provider's limit in a workflow: the run waits for its end without a process, and goes on with the same attempt in
//! the same session.

use crate::sessions::limits::limit;
use crate::support::agent::{SESSION, Script, bash};
use crate::support::{Case, Outcome, run};
use crate::workflows::implement::{PLAN, allowed, phase, plan, states};
use crate::workflows::spec::{GOOD, write};
use serde_json::{Value, json};

const DRAFT: &str = ".spektacular/specs/login.draft.md";

fn waits(mut start: Value) -> Value {
    start["on_rate_limit"] = json!("wait");
    start
}

/// The steps of a turn whose number stands in the file `turn` beside the work folder.
fn turns(steps: &[&str]) -> Script {
    let cases: String = steps.iter().enumerate().map(|(at, step)| format!("{at}) {step};;\n")).collect();
    let count = r#"T=$(cat "$D/turn" 2>/dev/null || echo 0); echo $((T + 1)) >"$D/turn""#;
    Script::new().sh(&format!("{count}\ncase $T in\n{cases}esac")).done("Done")
}

#[track_caller]
fn statuses(outcome: &Outcome) -> Vec<&str> {
    outcome.progress("status").iter().map(|frame| frame.text("status")).collect()
}

#[test]
fn a_limit_in_a_phase_costs_no_attempt_and_keeps_the_session() {
    let worked = Script::bare().tool("toolu_1", "Bash", &bash("touch a"), "(done)").body();
    let script = turns(&[&format!("touch a\n{worked}{}", limit(1)), "touch b"]);
    let text = plan(&[phase(1, &["test -e a && test -e b"], "")]);
    let case = Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), &text).git();
    let outcome = run(case, waits(allowed(json!({}))));
    outcome.completed();
    assert_eq!(states(&outcome), ["P1 started 1", "P1 verifying 1", "P1 passed 1"]);
    assert_eq!(statuses(&outcome).iter().filter(|status| **status == "waiting_for_limit").count(), 1);
    let log = outcome.log();
    assert!(log.argv().contains(&format!("--resume={SESSION}")), "{:?}", log.argv());
    let prompts = log.prompts();
    assert!(prompts.len() == 2 && prompts[1].contains("Go on with the task"), "{prompts:?}");
}

#[test]
fn a_limit_in_a_further_turn_of_a_process_that_stayed_is_waited_for_too() {
    let script = turns(&[&write(DRAFT, "# X"), &limit(1), &write(DRAFT, GOOD)]);
    let case = Case::with(script).subcommand("spec").git();
    let outcome = run(case, waits(json!({"prompt": "Log in", "interactive": false, "workflow": {"name": "login"}})));
    outcome.completed();
    let log = outcome.log();
    let prompts = log.prompts();
    assert_eq!((prompts.len(), log.starts()), (3, 2), "{prompts:?}");
    assert!(prompts[1].starts_with("# Continue\n") && prompts[1] == prompts[2], "{prompts:?}");
    assert!(log.argv().contains(&format!("--resume={SESSION}")), "{:?}", log.argv());
}

#[test]
fn a_phases_time_limit_holds_while_the_run_waits() {
    let script = turns(&[&limit(1000)]);
    let text = plan(&[phase(1, &["test -e a"], "")]);
    let case = Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), &text).git();
    let outcome = run(case, waits(allowed(json!({"phase_timeout_s": 3}))));
    outcome.failed("timeout");
    assert_eq!(statuses(&outcome).last(), Some(&"waiting_for_limit"));
}

#[test]
fn at_a_terminal_a_workflow_waits_by_default_and_counts_down() {
    let text = plan(&[phase(1, &["test -e a"], "")]);
    let case = || Case::with(turns(&[&limit(1000)])).file(&format!("work/{PLAN}"), &text).git();
    let arguments = ["implement", "--allow-verify", "greeting"];
    let mut person = case().at_terminal(&arguments);
    person.waits_for("Claude Code's limit ends at ");
    person.types("\u{3}");
    let (code, log) = person.ends();
    assert_eq!(code, 130, "{log}");
    assert!(log.contains("for the provider's limit to end") && log.contains("(rate_limited)"), "{log}");
    let (code, log) = case().env("CI", "true").at_terminal(&arguments).ends();
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("rate limit is reached") && !log.contains("limit ends at"), "{log}");
}

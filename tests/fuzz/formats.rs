//! The two formats of the workflows: specifications and plans.

use super::input::{Input, bytes, from_text};
use super::round::{Checked, Target};
use spektacular::workflow::plan::{PlanChange, State, StateLine, edited, read, without_own_lines};
use spektacular::workflow::spec;
use spektacular::workflow::violation::VIOLATIONS_MAX;

const SPEC: &str = "# Specification: Greeting\n\n## Summary\n\nIt greets.\n\n## Requirements\n\n- [ ] R1 It greets.\n\
                    - [ ] R2 It says who is greeted.\n\n```sh\nnot code\n```\n";
const PLAN: &str = "# Plan: Greeting\n<!-- spektacular: spec=0123456789abcdef -->\nSpec: .spektacular/specs/x.md\n\n## Phase 1: A\n\
     <!-- spektacular: failed attempts=3 at=2026-02-20T10:00:00.000Z -->\n\nAbout.\n\n- [ ] T1.1 One (R1)\n- [x] T1.2 Two\n\n\
     ### Verify\n\n```sh\ntest -s a\n```\n\n### Protect\n\n- tests/\n\n## Phase 2: B\n\n- [ ] T2.1 Three\n\n### Verify\n\n\
     ```sh\ntrue\n```\n";

fn hold(condition: bool, why: &str) -> Checked {
    if condition { Ok(()) } else { Err(why.into()) }
}

fn both() -> Vec<Input> {
    vec![from_text(SPEC), from_text(PLAN)]
}

fn target(name: &'static str, check: fn(&Input) -> Checked) -> Target {
    Target { name, cases: 500, seeds: both, words: &[], check, headed: false }
}

#[test]
fn specifications() {
    target("specifications", |input| {
        let bytes = bytes(input);
        let (_, found) = spec::check("x.md", &bytes, &[]);
        hold(found.len() <= VIOLATIONS_MAX, "too many violations are listed")?;
        hold(spec::check("x.md", &bytes, &[]).1 == found, "the same file breaks other rules")
    })
    .round();
}

#[test]
fn plans() {
    target("plans", |input| {
        let bytes = bytes(input);
        let checked = read(&bytes);
        let text = checked.text.clone();
        let (plan, found) = checked.violations("plan.md", &[]);
        hold(found.len() <= VIOLATIONS_MAX, "too many violations are listed")?;
        hold(
            without_own_lines(&without_own_lines(&text)) == without_own_lines(&text),
            "a second pass takes more lines",
        )?;
        let Some(phase) = plan.phases.first().filter(|_| found.is_empty()) else { return Ok(()) };
        let line = StateLine { state: State::Passed, attempts: 1, at: "2026-02-20T10:00:00.000Z".into() };
        let changes = [PlanChange::State(phase.number, line), PlanChange::Tick(phase.number)];
        let passed = edited(&text, &changes).ok_or("a phase of a valid plan is not found")?;
        let again = read(passed.as_bytes());
        hold(again.plan.phases.first().is_some_and(|phase| phase.is_done()), "a phase that passed is not done")?;
        let (after, found) = again.violations("plan.md", &[]);
        hold(found.is_empty() && after.phases.len() == plan.phases.len(), "an edit breaks the plan")
    })
    .round();
}

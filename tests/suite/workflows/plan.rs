//! Tests of `plan`: from a specification to a plan.

use serde_json::{Value, json};
use std::fs;

use crate::support::agent::{Script, quote};
use crate::support::case::{Did, executable};
use crate::support::{Case, Outcome, list, read, run};
use crate::workflows::spec::{GOOD, write};

const SPEC: &str = ".spektacular/specs/login.md";
const FOLDER: &str = ".spektacular/plans/login";
const PLAN: &str = "# Plan: Login\nSpec: .spektacular/specs/login.md\n\n## Phase 1: All of it\n\n\
    - [ ] T1.1 Send codes (R1, R2)\n\n### Verify\n\n```sh\ntrue\n```\n";

fn case(plan: &str) -> Case {
    let script = Script::new()
        .sh(&write(&format!("{FOLDER}.draft/plan.md"), plan))
        .sh(&write(&format!("{FOLDER}.draft/research.md"), "# R\n"))
        .sh(&write(&format!("{FOLDER}.draft/context.md"), "# C\n"))
        .done("Done");
    Case::with(script).subcommand("plan").file(&format!("work/{SPEC}"), GOOD)
}

#[test]
fn three_files_that_pass_their_check_become_the_plan() {
    let outcome = run(case(PLAN), json!({"prompt": "login"}));
    let completed = outcome.completed();
    assert_eq!(completed["text"], format!("{FOLDER}/plan.md created with 1 phase and 1 task"));
    assert_eq!(completed["workflow"]["target"], format!("{FOLDER}/plan.md"));
    let made: Vec<&str> = outcome.of_type("run.artifact").iter().map(|f| f.text("path")).collect();
    assert_eq!(made, ["plan.md", "research.md", "context.md"].map(|name| format!("{FOLDER}/{name}")));
    let plan = read(&outcome.case().path("work").join(FOLDER).join("plan.md"));
    let own = plan.lines().nth(1).unwrap();
    assert!(own.starts_with("<!-- spektacular: spec=") && own.ends_with(" -->"), "{plan}");
    assert_eq!(plan.replace(&format!("{own}\n"), ""), PLAN);
    let prompt = outcome.log().prompts()[0].clone();
    assert!(prompt.ends_with(&format!("\n# Specification to Plan\n\n{GOOD}")), "{prompt}");
    for line in [format!("Folder: {FOLDER}.draft"), "## Format".into(), "## Review".into(), "## Interview".into()] {
        assert!(prompt.lines().any(|own| own == line), "no line {line}: {prompt}");
    }
    assert!(prompt.contains("`## Testing strategy`") && prompt.contains("`## Rollback`"), "{prompt}");
    assert!(prompt.contains(".spektacular/knowledge/") && prompt.contains(SPEC), "{prompt}");
    assert!(prompt.lines().any(|line| line.ends_with(&format!(" plan check {FOLDER}.draft"))), "{prompt}");
}

#[test]
fn a_plan_that_does_not_cover_its_specification_stays_a_draft() {
    let outcome = run(case(&PLAN.replace(", R2", "")), json!({"prompt": SPEC}));
    outcome.failed("result_invalid");
    let workflow = &outcome.terminal().payload()["workflow"];
    assert_eq!(workflow["violations"][0]["rule"], "uncovered", "{workflow}");
    assert!(outcome.case().path("work").join(format!("{FOLDER}.draft/plan.md")).exists());
    assert!(!outcome.case().path("work").join(FOLDER).exists());
}

#[test]
fn a_plan_that_breaks_a_rule_goes_back_to_the_agent() {
    let incomplete = write(&format!("{FOLDER}.draft/plan.md"), &PLAN.replace(", R2", ""));
    let missing =
        format!("if ! [ -e \"$D/once\" ]; then touch \"$D/once\"; {incomplete}; rm {FOLDER}.draft/context.md; fi");
    let again = case(PLAN);
    let script = Script::new()
        .sh(&write(&format!("{FOLDER}.draft/plan.md"), PLAN))
        .sh(&write(&format!("{FOLDER}.draft/research.md"), "# R\n"))
        .sh(&write(&format!("{FOLDER}.draft/context.md"), "# C\n"))
        .sh(&missing)
        .done("Done");
    let outcome = run(again.agent(script), json!({"prompt": "login"}));
    outcome.completed();
    let prompts = outcome.log().prompts();
    let told = |text: &str| prompts[1].lines().any(|line| line.contains(text));
    assert!(prompts.len() == 2 && prompts[1].starts_with("# Continue\n"), "{prompts:?}");
    assert!(told(": uncovered: ") && told("0: missing-file: Write context.md "), "{}", prompts[1]);
}

/// An agent in a sandbox may write a file, but not create its folder.
#[test]
fn the_folder_of_a_draft_exists_before_the_agent_writes_and_goes_if_it_stays_empty() {
    let mut once = json!({"prompt": "login", "workflow": {"attempts": 1}});
    let empty = run(
        case(PLAN).agent(Script::new().sh(&format!("test -d {FOLDER}.draft && touch seen")).done("Done")),
        once.clone(),
    );
    let failed = empty.failed("result_invalid");
    assert_eq!(failed["workflow"]["tasks"], Value::Null, "no file was checked");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("run the command again. --continue needs a draft."), "{message}");
    assert!(empty.case().work().join("seen").exists());
    assert!(!empty.case().work().join(format!("{FOLDER}.draft")).exists());
    once["prompt"] = json!("Log in");
    once["workflow"]["name"] = json!("login");
    let draft = ".spektacular/specs/login.draft.md";
    let script = Script::new().sh(&format!("printf '%s' {} > {draft}", quote(GOOD))).done("Done");
    run(Case::with(script).subcommand("spec"), once).completed();
}

#[test]
fn a_specification_is_found_by_name_or_path_and_must_be_there() {
    for (argument, reason) in [
        ("signup", "not_found"),
        ("docs/none.md", "not_found"),
        ("/etc/hostname.md", "outside"),
        ("No Name", "invalid"),
    ] {
        let outcome = run(case(PLAN), json!({"prompt": argument}));
        assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], reason, "{argument}");
        assert_eq!(outcome.terminal().payload()["workflow"]["target"], Value::Null);
    }
    let outside = case(PLAN).file("home/spec.md", GOOD);
    let path = outside.path("home/spec.md").display().to_string();
    let outcome = run(outside, json!({"prompt": path}));
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "outside");
}

#[test]
fn the_plans_of_a_project_are_replaced_together() {
    let again =
        || case(PLAN).file(&format!("work/{FOLDER}/plan.md"), "# Old\n").file(&format!("work/{FOLDER}/x.md"), "");
    let outcome = run(again(), json!({"prompt": "login"}));
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "exists");
    let outcome = run(again(), json!({"prompt": "login", "workflow": {"force": true}}));
    outcome.completed();
    let kept = list(&outcome.terminal().payload()["workflow"]["kept"]);
    assert_eq!((kept.len(), &kept[0]["path"]), (1, &json!(FOLDER)));
    let old = outcome.case().path("work").join(kept[0]["to"].as_str().unwrap());
    assert_eq!(read(&old.join("plan.md")), "# Old\n");
    assert!(old.join("x.md").exists());
}

/// A run of `plan --continue` with this agent, after the specification changed.
#[track_caller]
fn continued(first: &Outcome, script: Script, spec: &str, words: &[&str]) -> (String, Did) {
    let case = first.case();
    fs::write(case.work().join(SPEC), spec).unwrap();
    executable(&case.path("bin/claude"), script.render(&case.path("log")).as_bytes(), 0o755);
    let did = case.run(&[&["plan", "--headless", "--continue", "login"], words].concat());
    assert_eq!(did.code, Some(0), "{did:?}");
    (first.log().prompts().pop().unwrap(), did)
}

fn digest(first: &Outcome) -> String {
    read(&first.case().work().join(FOLDER).join("plan.md")).lines().nth(1).unwrap().to_owned()
}

#[test]
fn a_plan_that_is_continued_gets_the_difference_of_its_specification_and_the_words() {
    let first = run(case(PLAN), json!({"prompt": "login"}));
    first.completed();
    let old = digest(&first);
    let changed = GOOD.replace("The code works once.", "The code works twice.");
    // The agent leaves the plan as it is: it is still a plan for the old text.
    let idle = || Script::new().done("Nothing to do");
    let (prompt, did) = continued(&first, idle(), &changed, &["Keep", "it short"]);
    let parts: Vec<&str> = prompt.splitn(2, "\n# The specification changed\n").collect();
    assert!(parts.len() == 2 && parts[0].starts_with("# Continue\n"), "{prompt}");
    for line in
        ["--- .spektacular/specs/login.md", "-- [ ] R2: The code works once.", "+- [ ] R2: The code works twice."]
    {
        assert!(parts[1].lines().any(|own| own == line), "{line}: {prompt}");
    }
    assert!(prompt.trim_end().ends_with("\n\nKeep it short"), "{prompt}");
    assert!(did.err.contains("came out unchanged"), "{did:?}");
    assert_eq!(digest(&first), old);
    let status = first.case().run(&["status"]);
    assert!(status.out.contains("specification changed since"), "{status:?}");
    // It hears so again, until the plan has changed.
    let script = Script::new().sh(&format!("echo More. >>{FOLDER}.draft/research.md")).done("Done");
    let (prompt, did) = continued(&first, script, &changed, &[]);
    assert!(prompt.contains("works twice.") && !did.err.contains("came out unchanged"), "{did:?}");
    assert!(prompt.contains("\nThe phases of the plan:\n\n- P1: "), "{prompt}");
    assert!(did.err.contains("plan.md follows the change of .spektacular/specs/login.md: P1 stays (open)"), "{did:?}");
    assert_ne!(digest(&first), old);
    let (prompt, _) = continued(&first, idle(), &changed, &[]);
    assert!(!prompt.contains("# The specification changed"), "{prompt}");
    // The next change is one from that text.
    let (prompt, _) = continued(&first, idle(), GOOD, &[]);
    assert!(prompt.contains("\n-- [ ] R2: The code works twice.\n"), "{prompt}");
}

/// A phase that has passed and that the agent changes is told, and so is one that it opens again.
#[test]
fn it_is_said_of_each_phase_whether_it_stays() {
    let two =
        format!("{}\n## Phase 2: More\n\n- [ ] T2.1 More (R1)\n\n### Verify\n\n```sh\ntrue\n```\n", PLAN.trim_end());
    let first = run(case(&two), json!({"prompt": "login"}));
    first.completed();
    let file = first.case().work().join(FOLDER).join("plan.md");
    let done = read(&file).replace("- [ ] ", "- [x] ");
    fs::write(&file, done).unwrap();
    let change = format!(
        "f={FOLDER}.draft/plan.md; sed -i 's/T2.1 More/T2.1 Much more/; s/\\[x\\] T2.1/[ ] T2.1/' $f; \
         printf '\\n## Phase 3: Third\\n\\n- [ ] T3.1 x (R1)\\n\\n### Verify\\n\\n```sh\\ntrue\\n```\\n' >>$f"
    );
    let script = Script::new().sh(&change).done("Done");
    let changed = GOOD.replace("The code works once.", "The code works twice.");
    let (prompt, did) = continued(&first, script, &changed, &[]);
    assert!(prompt.contains("(has passed)\n- P2: More (has passed)\n"), "{prompt}");
    assert!(did.err.contains(": P1 stays (done), P2 changed (open), P3 is new"), "{did:?}");
}

/// The agent that changes a specification hears what its plan has done already.
#[test]
fn a_specification_that_is_continued_gets_its_plan_and_its_change() {
    let first = run(case(PLAN), json!({"prompt": "login"}));
    first.completed();
    let case = first.case();
    fs::write(case.work().join(SPEC), GOOD.replace("works once.", "works twice.")).unwrap();
    executable(&case.path("bin/claude"), Script::new().done("Done").render(&case.path("log")).as_bytes(), 0o755);
    let did = case.run(&["spec", "--headless", "--continue", "--name", "login", "Allow", "two", "codes"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let prompt = first.log().prompts().pop().unwrap();
    for part in ["# The plan\n", "\n- P1: ", "\n# The specification changed\n", "\n+- [ ] R2: The code works twice.\n"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(prompt.trim_end().ends_with("Allow two codes"), "{prompt}");
}

#[test]
fn a_specification_whose_old_text_is_unknown_or_short_is_shown_as_a_whole() {
    let first = run(case(PLAN), json!({"prompt": "login"}));
    first.completed();
    let other = "# Other\n\n## Overview\n\nAll is new.\n\n## Requirements\n\n- [ ] R1: It is.\n- [ ] R2: So.\n\n\
        ## Acceptance Criteria\n\n- New.\n";
    let (prompt, _) = continued(&first, Script::new().done("-"), other, &[]);
    assert!(prompt.contains("\n# The specification changed\n") && prompt.contains("All is new."), "{prompt}");
    fs::remove_dir_all(first.case().work().join(".spektacular/local/planned")).unwrap();
    let (prompt, _) = continued(&first, Script::new().done("-"), other, &[]);
    assert!(prompt.contains("Its earlier text is not known") && prompt.contains("\nAll is new.\n"), "{prompt}");
}

#[test]
fn words_come_with_run_start_too() {
    let outcome = run(case(PLAN), json!({"prompt": "login", "workflow": {"words": "Two phases."}}));
    outcome.completed();
    assert!(outcome.log().prompts()[0].contains("The user adds: Two phases.\n"));
    let start = json!({"prompt": "login", "workflow": {"continue": true, "words": "Three phases."}});
    let again = case(PLAN).file(&format!("work/{FOLDER}/plan.md"), PLAN);
    let outcome = run(again, start);
    outcome.completed();
    assert!(outcome.log().prompts()[0].trim_end().ends_with("\n\nThree phases."));
    let long = json!({"prompt": "login", "workflow": {"words": "x".repeat((128 << 10) + 1)}});
    let message = run(case(PLAN), long).failed("invalid_request")["message"].to_string();
    assert!(message.contains("workflow.words"), "{message}");
}

#[test]
fn a_specification_with_violations_only_causes_a_warning() {
    let bad = GOOD.replace("People log in.", "TBD");
    let outcome = run(case(PLAN).file(&format!("work/{SPEC}"), &bad), json!({"prompt": "login"}));
    outcome.completed();
    assert_eq!(outcome.warnings("spec_violations").len(), 1);
}

#[test]
fn the_demo_agent_plans_its_own_specification_and_any_other() {
    let case = Case::new();
    assert_eq!(case.run(&["spec", "--agent", "demo", "--headless", "Greet"]).code, Some(0));
    let did = case.run(&["plan", "--agent", "demo", "greet"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(did.out.ends_with(".spektacular/plans/greet/plan.md created with 2 phases and 2 tasks\n"), "{did:?}");
    assert_eq!(did.out.matches(" created with ").count(), 1, "{did:?}");
    let case = Case::new().file("work/login.md", GOOD);
    assert_eq!(case.run(&["plan", "--agent", "demo", "login.md"]).code, Some(0));
}

/// The plan must name its specification, so the agent has to learn the path even from a prompt that lists no knowledge.
#[test]
fn a_prompt_of_the_user_s_own_names_the_specification_too() {
    let line = format!("The plan has the line `Spec: {SPEC}`.");
    for (text, wanted) in [
        ("Write {{folder}}.\n\n{{spec}}\n", format!("{line}\n\nWrite {FOLDER}.draft.\n\n{GOOD}")),
        ("/plan {{folder}}\n\n{{spec}}", format!("/plan {FOLDER}.draft\n\n{}\n\n{line}\n", GOOD.trim_end())),
    ] {
        let outcome =
            run(case(PLAN).file("home/.config/spektacular/prompts/plan.md", text), json!({"prompt": "login"}));
        outcome.completed();
        assert_eq!(outcome.log().prompts()[0], wanted);
    }
}

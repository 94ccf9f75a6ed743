//! Tests of `status`, and of what helps a person who does not know the names: lists, slips, README.md.

use serde_json::{Value, json};
use std::fs;

use crate::support::agent::Script;
use crate::support::{Case, read, run};
use crate::workflows::spec::{GOOD, write};

const SPECS: &str = "work/.spektacular/specs";
const PLANS: &str = "work/.spektacular/plans";

fn plan(first: &str, second: &str) -> String {
    format!(
        "# Plan: Login\nSpec: .spektacular/specs/login.md\n## Phase 1: Codes\n{first}- [x] T1.1 Send codes (R1)\n\
         ### Verify\n```sh\ntrue\n```\n## Phase 2: Expiry\n{second}- [ ] T2.1 Let them expire (R2)\n### Verify\n```sh\ntrue\n```\n"
    )
}

/// Adds a plan with its two other files.
fn planned(case: Case, folder: &str, plan: &str) -> Case {
    case.file(&format!("{PLANS}/{folder}/plan.md"), plan)
        .file(&format!("{PLANS}/{folder}/research.md"), "# R\n")
        .file(&format!("{PLANS}/{folder}/context.md"), "# C\n")
}

fn state(attempts: &str) -> String {
    format!("<!-- spektacular: {attempts} at=2026-01-01T00:00:00.000Z -->\n")
}

fn project() -> Case {
    let case = Case::new()
        .file(&format!("{SPECS}/README.md"), "# Specifications\n")
        .file(&format!("{SPECS}/login.md"), GOOD)
        .file(&format!("{SPECS}/search.md"), &GOOD.replace("People log in.", "TBD"))
        .file(&format!("{SPECS}/export.draft.md"), GOOD)
        .file(&format!("{SPECS}/import.md"), GOOD)
        .file(&format!("{PLANS}/README.md"), "# Plans\n");
    let case = planned(case, "login", &plan(&state("passed attempts=1"), &state("failed attempts=3")));
    planned(case, "search.draft", &plan("", ""))
}

#[test]
fn each_document_has_its_state_and_the_command_that_comes_next() {
    let did = project().run(&["status"]);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{did:?}");
    let lines: Vec<Vec<&str>> =
        did.out.lines().map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect()).collect();
    let lines: Vec<Vec<&str>> = lines.into_iter().map(|cells| cells.into_iter().map(str::trim).collect()).collect();
    let expected: [&[&str]; 8] = [
        &["Specifications"],
        &["export", "draft, 2 tasks", "next: spektacular spec --continue --name export"],
        &["import", "valid, 2 tasks", "next: spektacular plan import"],
        &["login", "valid, 2 tasks, 1 covered"],
        &["search", "violations: 1, 2 tasks", "next: spektacular spec --continue --name search"],
        &["Plans"],
        &["login", "1 of 2 phases done, failed at P2, 2 tasks", "next: spektacular implement login"],
        &["search", "draft, 2 tasks", "next: spektacular plan --continue search"],
    ];
    assert_eq!(lines, expected, "{}", did.out);
}

#[test]
fn programs_get_the_fields_of_the_checks() {
    let case = project();
    let did = case.run(&["status", "--json"]);
    let all: Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!(did.out.lines().count(), 1);
    let work = fs::canonicalize(case.work()).unwrap();
    assert_eq!(all["project"], work.to_str().unwrap());
    let search = &all["specs"][3];
    assert_eq!(
        search,
        &json!({"file": ".spektacular/specs/search.md", "name": "search", "valid": false, "tasks": 2,
            "state": "violations: 1", "next": "spektacular spec --continue --name search",
            "violations": search["violations"]})
    );
    assert_eq!(search["violations"][0]["rule"], "open-question");
    let login = &all["plans"][0];
    assert_eq!((&login["file"], &login["valid"]), (&json!(".spektacular/plans/login/plan.md"), &json!(true)));
    assert_eq!((&login["phases"][0]["state"], &login["phases"][1]["state"]), (&json!("done"), &json!("open")));
    assert_eq!(all["specs"][2]["next"], Value::Null);
}

#[test]
fn a_plan_without_its_other_files_can_be_carried_out() {
    let open = plan("", "").replace("- [x]", "- [ ]");
    let case = Case::new().file(&format!("{SPECS}/login.md"), GOOD).file(&format!("{PLANS}/login/plan.md"), &open);
    let did = case.run(&["status"]);
    let line = did.out.lines().last().unwrap().to_owned();
    assert!(line.contains("violations: 2") && line.ends_with("next: spektacular implement login"), "{}", did.out);
}

#[test]
fn a_plan_shows_that_its_specification_changed_and_that_it_is_done() {
    let digest = "<!-- spektacular: spec=0123456789abcdef0123456789abcdef -->";
    let done = plan(&state("passed attempts=1"), "").replace("- [ ]", "- [x]");
    let stale = done.replacen('\n', &format!("\n{digest}\n"), 1);
    let case = planned(Case::new().file(&format!("{SPECS}/login.md"), GOOD), "login", &stale);
    let did = case.run(&["status"]);
    let line = did.out.lines().last().unwrap().to_owned();
    assert!(line.ends_with("2 of 2 phases done, specification changed since, 2 tasks"), "{}", did.out);
    let did = Case::new().run(&["status"]);
    assert!(did.code == Some(0) && did.out.contains("spektacular spec \""), "{did:?}");
    let did = Case::new().run(&["status", "login"]);
    assert_eq!(did.code, Some(2), "{did:?}");
}

#[test]
fn a_readme_is_no_specification() {
    let readme = ".spektacular/specs/README.md";
    let case = project();
    let did = case.run(&["spec", "check", readme, "login"]);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""));
    assert_eq!(
        did.out,
        format!("{readme}: skipped, not a specification\n.spektacular/specs/login.md: valid, 2 tasks\n")
    );
    let did = case.run(&["spec", "check", "--json", readme]);
    let line: Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!(line, json!({"file": readme, "valid": true, "tasks": null, "violations": [], "skipped": true}));
}

#[test]
fn an_unknown_or_missing_name_is_answered_with_those_that_exist() {
    for (args, message) in [
        (vec!["plan", "--agent", "demo", "serach"], "Specifications here: search, import, login."),
        (vec!["plan"], "Missing SPEC: spektacular plan SPEC. Specifications here: import, login, search."),
        (vec!["implement", "--agent", "demo", "logni"], "Plans here: login."),
        (vec!["implement"], "Missing PLAN: spektacular implement PLAN. Plans here: login."),
    ] {
        let did = project().run(&args);
        assert_eq!(did.code, Some(2), "{did:?}");
        assert!(did.err.trim_end().ends_with(message), "{}", did.err);
    }
}

/// An agent that writes the specification `list`.
fn lister() -> Case {
    Case::with(Script::new().sh(&write(".spektacular/specs/list.draft.md", GOOD)).done("Done"))
}

#[test]
fn a_description_that_is_a_command_is_refused_if_nobody_can_be_asked() {
    for args in [vec!["spec", "list"], vec!["spec", "--yes", "LS"], vec!["spec", "--output", "json", "show"]] {
        let case = lister();
        let did = case.run(&args);
        assert_eq!(did.code, Some(2), "{did:?}");
        assert!((did.err.clone() + &did.out).contains("spektacular status"), "{did:?}");
        assert!(!case.work().join(".spektacular/specs").exists());
    }
    // An orchestrator's run.start is no slip of the keyboard.
    let outcome = run(lister().subcommand("spec"), json!({"prompt": "list"}));
    outcome.completed();
}

#[test]
fn a_person_is_asked_whether_a_command_is_a_description() {
    for (answer, code) in [("n", 2), ("y", 0)] {
        let mut person = lister().at_terminal(&["spec", "list"]);
        person.answers("Write a specification about `list`?", answer);
        let (ended, _) = person.ends();
        assert_eq!(ended, code, "{answer}");
        let made = person.case.work().join(".spektacular/specs/list.md");
        assert_eq!(made.exists().then(|| read(&made)), (code == 0).then(|| GOOD.to_owned()));
    }
}

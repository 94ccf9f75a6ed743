//! The check of specifications on sentences that people write, and on faults that models make. `testdata/specifications`
//! has one of either in each line.

use spektacular::workflow::spec::check;

const PLAIN: &str = include_str!("../../../testdata/specifications/plain.txt");
/// A rule, a tab, and the lines that break it, joined by `\n`.
const FAULTS: &str = include_str!("../../../testdata/specifications/faults.txt");

/// A specification with these lines among its requirements and in its acceptance criteria.
fn specification(requirements: &str, criteria: &str) -> String {
    format!(
        "# Sentences\n\n## Overview\n\nThey say what a product does.\n\n## Requirements\n\n- [ ] R1: It works.\n{requirements}\n\
         ## Acceptance Criteria\n\n- It is checked.\n{criteria}\n"
    )
}

/// The rules that a specification breaks, each with its line's text.
fn broken(text: &str) -> Vec<(&'static str, String)> {
    let line = |number: Option<usize>| number.and_then(|number| text.lines().nth(number - 1)).unwrap_or_default();
    let violations = check("spec.md", text.as_bytes(), &[]).1;
    violations.iter().map(|violation| (violation.rule.word(), line(violation.line).to_owned())).collect()
}

#[test]
fn two_hundred_plain_sentences_break_no_rule_wherever_they_stand() {
    let sentences: Vec<&str> = PLAIN.lines().collect();
    assert!(sentences.len() >= 200, "{}", sentences.len());
    let requirements: String =
        sentences.iter().enumerate().map(|(at, text)| format!("- [ ] R{}: {text}\n", at + 2)).collect();
    let criteria: String = sentences.iter().map(|text| format!("- {text}\n")).collect();
    assert_eq!(broken(&specification(&requirements, &criteria)), []);
    let paragraphs: String = sentences.iter().map(|text| format!("\n{text}\n\n1. {text}\n\n> {text}\n")).collect();
    assert_eq!(broken(&specification("", &paragraphs)), []);
}

#[test]
fn forty_planted_faults_are_found_by_their_rules() {
    let faults: Vec<(&str, String)> = FAULTS
        .lines()
        .map(|line| {
            let (rule, text) = line.split_once('\t').unwrap();
            (rule, text.replace("\\n", "\n").replace("\\u0007", "\u{7}"))
        })
        .collect();
    assert!(faults.len() >= 40, "{}", faults.len());
    for (rule, text) in faults {
        let is_task = rule == "task-id" || text.starts_with("- [ ]");
        let spec =
            if is_task { specification(&format!("{text}\n"), "") } else { specification("", &format!("{text}\n")) };
        let found = broken(&spec);
        assert!(found.iter().any(|(broken, _)| *broken == rule), "{rule}: {text}: {found:?}");
    }
}

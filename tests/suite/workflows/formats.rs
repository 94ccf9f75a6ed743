//! Tests of the formats of specifications and plans: one example that breaks each rule, with the line at fault;
//! examples that break none; and the edits of a plan.

use proptest::prelude::*;
use spektacular::workflow::plan::{self, Digest, PlanChange, State, StateLine, edited, without_own_lines};
use spektacular::workflow::spec;
use spektacular::workflow::template::PromptKind;
use spektacular::workflow::violation::{Rule, VIOLATIONS_MAX, Violation};
use std::collections::BTreeSet;

const SPEC: &str = "\
# Greeting

## Overview

A greeting for everybody.

## Requirements

- [ ] R1: The greeting is there.
- [x] R2: It names the user.
  - an indented item is free

## Acceptance Criteria

- The user reads the greeting.
";

const PLAN: &str = "\
# Plan: Greeting
Spec: .spektacular/specs/greeting.md
## Phase 1: The text
What this phase is about.
- [ ] T1.1 Write the greeting (R1)
- [ ] T1.2 Say who it is for (R2, R3)
### Verify
```sh
# a comment

test -s hello.txt
```
- Manual: The greeting is friendly.
### Protect
- tests/
## Phase 2: The rest
- [X] T2.1 Tidy up
### Verify
```sh
true
```
";

type Broken = Vec<(Rule, Option<usize>)>;

fn pairs(violations: &[Violation]) -> Broken {
    violations.iter().map(|violation| (violation.rule, violation.line)).collect()
}

fn of_spec(text: &str) -> Broken {
    pairs(&spec::check("s.md", text.as_bytes(), &[]).1)
}

fn of_plan(text: &str) -> Broken {
    pairs(&plan::read(text.as_bytes()).violations("p.md", &[]).1)
}

/// A text with one part replaced. The part must exist.
#[track_caller]
fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

#[test]
fn good_specifications_break_no_rule() {
    assert_eq!(of_spec(SPEC), []);
    let (found, _) = spec::check("s.md", SPEC.as_bytes(), &[]);
    assert_eq!((found.title.as_str(), found.tasks.len(), found.ids()), ("Greeting", 2, Some(vec![1, 2])));
    assert_eq!(
        (found.tasks[1].text.as_str(), found.tasks[1].done, found.tasks[1].line),
        ("It names the user.", true, 10)
    );
    let without_ids = SPEC.replace("R1: ", "").replace("R2: ", "");
    assert_eq!(of_spec(&without_ids), []);
    assert_eq!(spec::check("", without_ids.as_bytes(), &[]).0.ids(), None);
    // Trailing spaces, CR before LF and a BOM do not matter.
    assert_eq!(of_spec(&format!("\u{feff}{}", SPEC.replace('\n', " \t\r\n"))), []);
    assert_eq!(of_spec(SPEC.trim_end()), []);
    // Fences may contain anything. In the section for code, a fence needs no text before it.
    let code = "## Technical Approach\n\n~~~sh\nnpm install\nsee a.rs:1 TBD\n- git push\n# Not a title\n~~~\n";
    assert_eq!(of_spec(&format!("{SPEC}\n{code}")), []);
    for above in ["An example:", "**Bad**", "A GOOD one\n\n"] {
        assert_eq!(of_spec(&format!("{SPEC}\n{above}\n```\nx\n```\n")), []);
    }
}

#[test]
fn every_rule_of_a_specification_is_reported_at_its_line() {
    use Rule::{
        CodeFence, ControlCharacter, Instruction, LineReference, NoTasks, NotATask, OpenQuestion, Section,
        ShellCommand, SolutionHeading, TaskId, Title, UnclosedFence,
    };
    let one = |rule, line| vec![(rule, Some(line))];
    let cases: Vec<(String, Broken)> = vec![
        (with(SPEC, "# Greeting", "Greeting"), one(Title, 1)),
        (with(SPEC, "# Greeting", "\n\n#Greeting"), one(Title, 3)),
        (with(SPEC, "# Greeting", "## Greeting"), one(Title, 1)),
        (
            with(SPEC, "A greeting for everybody.", "# Again"),
            vec![(Section, Some(3)), (Title, Some(5))].into_iter().collect(),
        ),
        (with(SPEC, "## Overview", "## Introduction"), vec![(Section, None)]),
        (with(SPEC, "## Acceptance Criteria", "## Acceptance criteria"), vec![(Section, None)]),
        (with(SPEC, "A greeting for everybody.\n", ""), one(Section, 3)),
        (format!("{SPEC}## Overview\nx\n"), one(Section, 16)),
        (with(SPEC, "- [ ] R1: The greeting is there.\n- [x] R2: It names the user.\n", ""), one(NoTasks, 7)),
        (with(SPEC, "## Requirements", "## Needs"), vec![(Section, None), (NoTasks, None)]),
        (with(SPEC, "- [ ] R1", "* [ ] R1"), one(NotATask, 9)),
        (with(SPEC, "- [ ] R1: The", "- The"), one(NotATask, 9)),
        (with(SPEC, "- [ ] R1: The", "1. The"), one(NotATask, 9)),
        (with(SPEC, "- [x] R2: It names the user.", "- [ ]"), one(NotATask, 10)),
        (with(SPEC, "- [x] R2", "- [-] R2"), one(NotATask, 10)),
        (with(SPEC, "R2: It", "It"), one(TaskId, 10)),
        (with(SPEC, "R1: The", "The"), one(TaskId, 10)),
        (with(SPEC, "R2", "R1"), one(TaskId, 10)),
        (with(SPEC, "R1", "R18446744073709551616"), one(TaskId, 10)),
        (with(SPEC, "for everybody", "as in src/a.rs:12"), one(LineReference, 5)),
        (with(SPEC, "for everybody", "at line 12 of src/a.py"), one(LineReference, 5)),
        (with(SPEC, "- [ ] R1: The", "- [ ] R1: `git push` The"), one(ShellCommand, 9)),
        (with(SPEC, "  - an indented", "  2) npm run an indented"), one(ShellCommand, 11)),
        (with(SPEC, "- The user reads", "- Edit src/user.rs, reads"), one(Instruction, 15)),
        (with(SPEC, "- [ ] R1: The", "- [ ] R1: Run npm install. The"), one(Instruction, 9)),
        (format!("{SPEC}### how to FIX ##\n"), one(SolutionHeading, 16)),
        (format!("{SPEC}```\nx\n```\n"), one(CodeFence, 16)),
        (format!("{SPEC}An example\n\n\n\n```\nx\n```\n"), one(CodeFence, 20)),
        (format!("{SPEC}## Technical Approach\n# x\n```\n```\n"), vec![(Title, Some(17)), (CodeFence, Some(18))]),
        (format!("{SPEC}An example:\n\n````\n```\n"), one(UnclosedFence, 18)),
        (format!("{SPEC}An example:\n~~~\n```\n~~~ x\n"), one(UnclosedFence, 17)),
        (with(SPEC, "for everybody", "[NEEDS CLARIFICATION: who?]"), one(OpenQuestion, 5)),
        (with(SPEC, "for everybody", "(TBD: who?)"), one(OpenQuestion, 5)),
        (with(SPEC, "for everybody", "\u{1b}[31m"), one(ControlCharacter, 5)),
        (with(SPEC, "for everybody", "\u{202e}\u{2066}"), one(ControlCharacter, 5)),
    ];
    for (text, expected) in cases {
        assert_eq!(of_spec(&text), expected, "{text}");
    }
    // A blank file, and each control character alone.
    assert_eq!(of_spec(" \n\n")[0], (Title, None));
    for c in
        ['\0', '\u{8}', '\u{b}', '\u{c}', '\u{1f}', '\u{7f}', '\u{80}', '\u{9f}', '\u{2028}', '\u{2029}', '\u{200e}']
    {
        assert_eq!(of_spec(&with(SPEC, "everybody", &c.to_string())), one(ControlCharacter, 5), "{c:?}");
    }
    for c in ['\t', '\r', '\u{a0}', '\u{200d}', '\u{feff}'] {
        assert_eq!(of_spec(&with(SPEC, "everybody", &c.to_string())), [], "{c:?}");
    }
}

#[test]
fn invalid_utf8_is_reported_by_line() {
    let mut bytes = SPEC.as_bytes().to_vec();
    bytes[SPEC.find("everybody").unwrap()] = 0xff;
    assert_eq!(pairs(&spec::check("", &bytes, &[]).1), [(Rule::NotUtf8, Some(5))]);
    assert_eq!(pairs(&spec::check("", &bytes, &[Rule::NotUtf8]).1), []);
    let mut bytes = PLAN.as_bytes().to_vec();
    bytes[PLAN.find("about").unwrap()] = 0xc3;
    let checked = plan::read(&bytes);
    assert_eq!(checked.text, "", "an edit would change more than its line");
    assert_eq!(pairs(&checked.violations("", &[]).1), [(Rule::NotUtf8, Some(4))]);
}

#[test]
fn good_plans_break_no_rule() {
    assert_eq!(of_plan(PLAN), []);
    let plan = plan::read(PLAN.as_bytes()).plan;
    assert_eq!(
        plan.spec.as_ref().map(|spec| (spec.path.as_str(), spec.line)),
        Some((".spektacular/specs/greeting.md", 2))
    );
    assert_eq!((plan.title.as_str(), plan.phases.len(), plan.tasks()), ("Plan: Greeting", 2, 3));
    let [first, second] = &plan.phases[..] else { panic!() };
    assert_eq!((first.id().as_str(), first.title.as_str(), first.line, first.is_done()), ("P1", "The text", 3, false));
    assert_eq!(first.tasks[1].id(), "T1.2");
    assert_eq!((first.tasks[1].text.as_str(), &first.tasks[1].serves[..]), ("Say who it is for (R2, R3)", &[2, 3][..]));
    assert_eq!(
        (first.verify[0].as_str(), first.manual[0].as_str()),
        ("test -s hello.txt", "The greeting is friendly.")
    );
    assert_eq!((first.protect[0].path.as_str(), first.protect[0].folder), ("tests", true));
    assert!(
        first.text.starts_with("What this phase is about.\n") && first.text.ends_with("- tests/\n"),
        "{}",
        first.text
    );
    assert!(second.is_done() && plan.first_open() == Some(first));
    // Links, brackets around more text, and headings that only begin with the word.
    let free = "- [x](y) [ab](c)\n- [abc] d\n- see [x]\n### Phases\n#### A Phase\nWhat this";
    assert_eq!(of_plan(&with(PLAN, "What this", free)), []);
    let own = with(PLAN, "Greeting\n", "Greeting\n<!-- spektacular: spec=0123456789abcdef -->\n");
    let own = with(&own, "text\n", "text\n<!-- spektacular: failed attempts=3 at=2026-02-20T10:00:00Z -->\n");
    assert_eq!(of_plan(&own), []);
    let plan = plan::read(own.as_bytes()).plan;
    assert_eq!(plan.digest, Digest::parse("0123456789abcdef"));
    assert_eq!(plan.phases[0].state.as_ref().map(|line| (line.state, line.attempts)), Some((State::Failed, 3)));
    assert!(!plan.phases[0].text.contains("spektacular:") && plan.phases[0].text.starts_with("What"));
    assert_eq!(without_own_lines(&own), PLAN);
    assert_eq!(of_plan(&format!("\u{feff}{}", PLAN.replace('\n', " \r\n"))), []);
}

#[test]
fn every_rule_of_a_plan_is_reported_at_its_line() {
    use Rule::{
        Command, ControlCharacter, InFence, NoPhases, NoTasks, NoVerify, NotATask, OutsidePhase, PhaseHeading,
        PhaseOrder, Protect, StateLine, TaskId, Title, TooLarge, UnclosedFence, Verify,
    };
    let one = |rule, line| vec![(rule, Some(line))];
    let long = "x".repeat(4097);
    let at_limit = "x".repeat(4096);
    let phases = |count: usize| {
        let phase = |n| format!("## Phase {n}: x\n- [ ] T{n}.1 x\n### Verify\n```sh\ntrue\n```\n");
        format!("# T\n{}", (1..=count).map(phase).collect::<String>())
    };
    let tasks = |count: usize| (3..count + 2).map(|n| format!("- [ ] T1.{n} x\n")).collect::<String>();
    let cases: Vec<(String, Broken)> = vec![
        (with(PLAN, "# Plan", "Plan"), one(Title, 1)),
        ("# T\n".into(), vec![(NoPhases, None)]),
        (with(PLAN, "- [X] T2.1 Tidy up\n", ""), one(NoTasks, 16)),
        (with(PLAN, "\ntrue", ""), one(NoVerify, 16)),
        (with(PLAN, "test -s", "# test -s"), one(NoVerify, 3)),
        (with(PLAN, "### Verify", "#### Verify"), one(NoVerify, 3)),
        (with(PLAN, "What this", "### phase one\nWhat this"), one(PhaseHeading, 4)),
        (
            with(PLAN, "What this", "# Phase\nWhat this"),
            vec![
                (NoTasks, Some(3)),
                (NoVerify, Some(3)),
                (Title, Some(4)),
                (PhaseHeading, Some(4)),
                (OutsidePhase, Some(6)),
                (OutsidePhase, Some(7)),
            ],
        ),
        (with(PLAN, "## Phase 2: The", " ## Phase 2: The"), vec![(PhaseHeading, Some(16)), (OutsidePhase, Some(17))]),
        (with(PLAN, "Phase 2:", "Phase 1:").replace("T2.1", "T1.1"), one(PhaseOrder, 16)),
        (with(PLAN, "- [ ] T1.1 Write", "- [~] T1.1 Write"), one(NotATask, 5)),
        (with(PLAN, "What this", "* [ ] x\nWhat this"), one(NotATask, 4)),
        (with(PLAN, "What this", "1. [ ] x\nWhat this"), one(NotATask, 4)),
        (with(PLAN, "What this", "  - [] x\nWhat this"), one(NotATask, 4)),
        (with(PLAN, "What this", "- [ ] x\nWhat this"), one(NotATask, 4)),
        (with(PLAN, "What this", "- [äö] x\nWhat this"), one(NotATask, 4)),
        (with(PLAN, "Spec: ", "- [ ] x\nSpec: "), one(NotATask, 2)),
        (with(PLAN, "T1.2", "T2.2"), one(TaskId, 6)),
        (with(PLAN, "T1.2", "T1.1"), one(TaskId, 6)),
        (with(PLAN, "Spec: ", "- [ ] T1.1 x\nSpec: "), one(OutsidePhase, 2)),
        (with(PLAN, "### Protect", "### Verify\n### Protect"), one(Verify, 14)),
        (with(PLAN, "### Protect", "```sh\n```\n### Protect"), one(Verify, 14)),
        (with(PLAN, "```sh", "```bash"), one(Verify, 8)),
        (with(PLAN, "```sh", "```"), one(Verify, 8)),
        (with(PLAN, "- Manual: The", "- The"), one(Verify, 13)),
        (with(PLAN, "- Manual: The", "  - Manual: The"), one(Verify, 13)),
        (with(PLAN, "- Manual: The greeting is friendly.", "- Manual:"), one(Verify, 13)),
        (with(PLAN, "- Manual: The", "- [ ] The"), vec![(NotATask, Some(13)), (Verify, Some(13))]),
        (with(PLAN, "test -s hello.txt", "test -s \\"), one(Command, 11)),
        (with(PLAN, "test -s hello.txt", &long), one(Command, 11)),
        (with(PLAN, "test -s hello.txt", &at_limit), vec![]),
        (with(PLAN, "test -s hello.txt", &"true\n".repeat(20)), vec![]),
        (with(PLAN, "test -s hello.txt", &"true\n".repeat(21)), vec![(TooLarge, None)]),
        (with(PLAN, "- tests/", &"- x\n".repeat(50)), vec![]),
        (with(PLAN, "- tests/", &"- x\n".repeat(51)), vec![(TooLarge, None)]),
        (with(PLAN, "### Verify", &format!("{}### Verify", tasks(98))), vec![]),
        (with(PLAN, "### Verify", &format!("{}### Verify", tasks(99))), vec![(TooLarge, None)]),
        (phases(99), vec![]),
        (phases(100), vec![(TooLarge, None)]),
        (with(PLAN, "- tests/", "- /etc/passwd"), one(Protect, 15)),
        (with(PLAN, "- tests/", "- a/../b"), one(Protect, 15)),
        (with(PLAN, "- tests/", "- `.git/hooks/`"), one(Protect, 15)),
        (with(PLAN, "- tests/", "- ./.spektacular"), one(Protect, 15)),
        (with(PLAN, "- tests/", "- ./"), one(Protect, 15)),
        (with(PLAN, "# a comment", "- [ ] T1.3 x"), one(InFence, 9)),
        (with(PLAN, "# a comment", "## Phase 3: x"), one(InFence, 9)),
        (with(PLAN, "What this", "<!-- spektacular: done -->\nWhat this"), one(StateLine, 4)),
        (with(PLAN, "What this", "\n<!-- spektacular: passed attempts=1 at=2026 -->\nWhat this"), one(StateLine, 5)),
        (with(PLAN, "What this", "<!-- spektacular: spec=0123456789abcdef -->\nWhat this"), one(StateLine, 4)),
        (with(PLAN, "Spec: ", "<!-- spektacular: spec=0123 -->\nSpec: "), one(StateLine, 2)),
        (with(PLAN, "What this", "<!-- spektacular:\nWhat this"), one(StateLine, 4)),
        (PLAN.strip_suffix("```\n").unwrap().into(), one(UnclosedFence, 19)),
        (with(PLAN, "test -s hello.txt", "test\u{202e} -s"), one(ControlCharacter, 11)),
    ];
    for (text, expected) in cases {
        assert_eq!(of_plan(&text), expected, "{text}");
    }
}

#[test]
fn a_plan_is_compared_with_its_specification() {
    let with_ids = |ids: &[u64]| {
        let tasks: String = ids.iter().map(|id| format!("- [ ] R{id}: x\n")).collect();
        let text = format!("# S\n## Overview\nx\n## Requirements\n{tasks}## Acceptance Criteria\nx\n");
        spec::check("", text.as_bytes(), &[]).0
    };
    let against = |ids: &[u64]| {
        let mut checked = plan::read(PLAN.as_bytes());
        checked.covers(&with_ids(ids));
        checked.violations("", &[]).1
    };
    assert_eq!(pairs(&against(&[1, 2, 3])), []);
    assert_eq!(pairs(&against(&[])), [], "a specification without ids says nothing");
    assert_eq!(pairs(&against(&[1, 2])), [(Rule::UnknownRequirement, Some(6))]);
    let uncovered = against(&[1, 2, 3, 4, 10]);
    assert_eq!(pairs(&uncovered), [(Rule::Uncovered, None); 2]);
    assert!(uncovered[0].text.contains("(R4)") && uncovered[1].text.contains("(R10)"), "{uncovered:?}");
}

#[test]
fn a_plan_names_its_specification() {
    let naming = |text: &str| {
        let mut checked = plan::read(text.as_bytes());
        checked.names(".spektacular/specs/greeting.md");
        pairs(&checked.violations("", &[]).1)
    };
    assert_eq!(naming(PLAN), []);
    assert_eq!(naming(&with(PLAN, "Spec: ", "Spec: ./")), []);
    assert_eq!(naming(&with(PLAN, "greeting.md", "other.md")), [(Rule::SpecLine, Some(2))]);
    assert_eq!(naming(&with(PLAN, "Spec: .spektacular/specs/greeting.md\n", "")), [(Rule::SpecLine, None)]);
    let late = with(
        &with(PLAN, "Spec: .spektacular/specs/greeting.md\n", ""),
        "What this",
        "Spec: .spektacular/specs/greeting.md\nWhat",
    );
    assert_eq!(naming(&late), [(Rule::SpecLine, None)]);
}

#[test]
fn every_rule_has_an_example_and_can_be_ignored() {
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.word()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    let source = include_str!("formats.rs");
    for rule in Rule::ALL.iter().filter(|rule| **rule != Rule::MissingFile) {
        assert!(source.contains(&format!("{rule:?}")), "{rule:?} has no example");
    }
    for rule in Rule::ALL {
        assert_eq!(Rule::ignored(rule.word()).is_ok(), !matches!(rule, Rule::MissingFile | Rule::TooLarge));
    }
    assert_eq!(Rule::ignored("sections"), Err("Unknown rule sections. Did you mean section?".into()));
}

/// The blocks of a text that are in a fence with this opening line.
fn blocks<'a>(text: &'a str, open: &str) -> Vec<&'a str> {
    let fence = open.trim_end_matches(char::is_alphabetic);
    let open = format!("\n{open}\n");
    let parts: Vec<&str> = text.split(&open).skip(1).collect();
    parts.iter().map(|part| &part[..part.find(&format!("\n{fence}\n")).unwrap() + 1]).collect()
}

#[test]
fn samples_in_the_prompts_and_the_reference_are_valid() {
    let reference = include_str!("../../../src/workflow/reference.md");
    for page in [PromptKind::Spec.built_in(), reference] {
        let shown = blocks(page, "```markdown");
        assert_eq!(shown.len(), 1, "{page}");
        assert_eq!(of_spec(shown[0]), [], "{}", shown[0]);
        assert!(spec::check("", shown[0].as_bytes(), &[]).0.ids().is_some());
    }
    for page in [PromptKind::Plan.built_in(), reference] {
        let shown = blocks(page, "````markdown");
        assert_eq!(shown.len(), 1, "{page}");
        assert_eq!(of_plan(shown[0]), [], "{}", shown[0]);
    }
    for rule in Rule::ALL {
        assert!(reference.contains(&format!("| `{}` |", rule.word())), "the reference lacks {}", rule.word());
    }
}

#[test]
fn the_prompts_have_the_lines_that_agents_and_programs_look_for() {
    let has = |kind: PromptKind, lines: &[&str]| {
        for line in lines {
            assert!(kind.built_in().lines().any(|known| known == *line), "{} lacks {line}", kind.word());
        }
    };
    let spec = [
        "# Create a specification",
        "Description: {{description}}",
        "File: {{file}}",
        "## Format",
        "## Review",
        "{{check}}",
        "{{user}}",
    ];
    has(PromptKind::Spec, &spec);
    has(PromptKind::Plan, &["Folder: {{folder}}", "## Format", "## Review", "{{check}}", "{{user}}", "{{knowledge}}"]);
    assert!(PromptKind::Plan.built_in().ends_with("\n# Specification to Plan\n\n{{spec}}\n"));
    has(PromptKind::Implement, &["{{phase}}", "# Context", "# Plan", "# Research", "{{user}}"]);
    assert!(PromptKind::Implement.built_in().contains("<!--BLOCKED: REASON-->"));
    has(PromptKind::Retry, &["# Verification failed", "{{failure}}"]);
    has(PromptKind::Continue, &["{{violations}}", "{{check}}"]);
    assert!(PromptKind::Continue.built_in().starts_with("# Continue\n"));
    assert!(PromptKind::Continue.built_in().ends_with("\n{{words}}\n"));
    for (kind, rounds) in [(PromptKind::Spec, true), (PromptKind::Plan, true), (PromptKind::Retry, false)] {
        assert_eq!(kind.built_in().contains("at most 3 rounds"), rounds, "{}", kind.word());
    }
}

#[test]
fn at_most_a_hundred_violations_are_reported_in_the_order_of_lines() {
    let text = format!("{SPEC}{}", "TBD: a.rs:1\n".repeat(200));
    let (_, violations) = spec::check("", text.as_bytes(), &[]);
    assert_eq!(violations.len(), VIOLATIONS_MAX);
    assert!(violations.is_sorted_by_key(|violation| violation.line));
    // An ignored rule does not use up the limit of reported violations.
    let (_, violations) = spec::check("", text.as_bytes(), &[Rule::LineReference]);
    assert!(violations.len() == VIOLATIONS_MAX && violations.iter().all(|v| v.rule == Rule::OpenQuestion));
}

#[test]
fn hostile_texts_are_checked_in_linear_time() {
    // Each of these texts would take minutes if a rule looked back or ahead without a limit.
    let size = 64 << 10;
    let fill = |part: &str| part.repeat(size / part.len());
    for part in [
        "`",
        "~",
        "#",
        "# ",
        "- ",
        "- [",
        "[",
        "]",
        "- [ ] ",
        "a.rs:1",
        "a.rs:",
        ".",
        "./",
        "R1: ",
        "- [ ] R1: ",
        "(R1, ",
        "(",
        "\n",
        "```\n",
        "- [ ] T1.1 x (R1)\n",
        "## Phase 1: x\n",
        "## Overview\n",
        "at line ",
        "use ",
        "1",
        "T1.",
        "<!-- spektacular: ",
        "<!-- spektacular: spec=",
        "- `",
        " ",
        "\t",
        "\u{202e}",
        "TBD",
        "```sh\n",
        "### Verify\n",
        "{{",
        "\r",
        "\u{feff}",
    ] {
        for text in
            [fill(part), format!("# T\n## Requirements\n{}", fill(part)), format!("## Phase 1: x\n- {}", fill(part))]
        {
            let text = &text[..text.floor_char_boundary(size)];
            let _ = of_spec(text);
            let mut checked = plan::read(text.as_bytes());
            checked.covers(&spec::check("", text.as_bytes(), &[]).0);
            assert!(checked.violations("", &[]).1.len() <= VIOLATIONS_MAX);
            let _ = (edited(text, &[PlanChange::Tick(1)]), without_own_lines(text));
        }
    }
    let large = "x".repeat((256 << 10) + 1);
    assert_eq!(of_spec(&large), [(Rule::TooLarge, None)]);
    assert_eq!(of_plan(&large), [(Rule::TooLarge, None)]);
}

/// A state line.
fn state(state: State, attempts: u32) -> StateLine {
    StateLine { state, attempts, at: "2026-02-20T10:00:00.000Z".into() }
}

#[test]
fn an_edit_changes_its_line_and_no_other_byte() {
    for ending in ["\n", "\r\n"] {
        for begin in ["", "\u{feff}"] {
            let text = format!("{begin}{}", PLAN.replace('\n', ending));
            let line = state(State::InProgress, 1);
            let once = edited(&text, &[PlanChange::State(1, line.clone())]).unwrap();
            assert_eq!(once, with(&text, &format!("The text{ending}"), &format!("The text{ending}{line}{ending}")));
            let twice = edited(&once, &[PlanChange::State(1, state(State::Passed, 2))]).unwrap();
            assert_eq!(twice, with(&once, &line.to_string(), &state(State::Passed, 2).to_string()));
            let ticked = edited(&text, &[PlanChange::Tick(1)]).unwrap();
            assert_eq!(ticked, text.replace("- [ ]", "- [x]"));
            assert_eq!(edited(&text, &[PlanChange::Tick(2)]).unwrap(), text, "a capital X is a tick too");
            assert_eq!(edited(&text, &[PlanChange::Untick(2)]).unwrap(), with(&text, "[X]", "[ ]"));
            assert_eq!(edited(&ticked, &[PlanChange::Untick(1)]).unwrap(), text);
            let digest = Digest::of(b"spec");
            let known = edited(&text, &[PlanChange::Spec(digest.clone())]).unwrap();
            let below = format!("Greeting{ending}<!-- spektacular: spec={digest} -->{ending}");
            assert_eq!(known, with(&text, &format!("Greeting{ending}"), &below));
            let again = edited(&known, &[PlanChange::Spec(Digest::of(b"other"))]).unwrap();
            assert_eq!(again, with(&known, &digest.to_string(), &Digest::of(b"other").to_string()));
        }
    }
    assert_eq!(edited(PLAN, &[PlanChange::Tick(3)]), None);
    assert_eq!(edited("no title\n", &[PlanChange::Spec(Digest::of(b""))]), None);
    // A heading in a last line without a line end gets one. The new last line has none.
    let line = state(State::Failed, 3);
    let last = edited("# T\n## Phase 1: x", &[PlanChange::State(1, line.clone())]).unwrap();
    assert_eq!(last, format!("# T\n## Phase 1: x\n{line}"));
    // Spaces after a state line stay.
    let blanks = format!("# T\n## Phase 1: x\n{line}  \t\r\ny");
    let changed = edited(&blanks, &[PlanChange::State(1, state(State::Passed, 1))]).unwrap();
    assert_eq!(changed, with(&blanks, &line.to_string(), &state(State::Passed, 1).to_string()));
}

/// Lines of plans, valid and invalid, in any order.
fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("# T"),
        Just("## Phase 1: a"),
        Just("## Phase 2: b"),
        Just("## Other"),
        Just("### Verify"),
        Just("```sh"),
        Just("```"),
        Just("~~~~"),
        Just("true"),
        Just("- [ ] T1.1 x (R1)"),
        Just("- [x] T1.2 y"),
        Just("- [X] T2.1 z  "),
        Just("- Manual: m"),
        Just("<!-- spektacular: passed attempts=1 at=2026-02-20T10:00:00Z -->"),
        Just("<!-- spektacular: spec=0123456789abcdef -->"),
        Just(""),
        Just("- [ ] ä"),
    ];
    let ending = prop_oneof![3 => Just("\n"), 1 => Just("\r\n"), 1 => Just(" \n")];
    let begin = prop_oneof![Just(""), Just("\u{feff}")];
    (begin, proptest::collection::vec((line, ending), 0..25), any::<bool>()).prop_map(|(begin, lines, cut)| {
        let text: String = lines.iter().map(|(line, ending)| format!("{line}{ending}")).collect();
        let text = if cut { text.trim_end_matches(['\n', '\r']) } else { &text };
        format!("{begin}{text}")
    })
}

/// The lines of a text, including their ends.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Ticks change one character in each line of a task, and nothing else.
    #[test]
    fn ticks_change_only_boxes(text in lines(), number in 1u16..3, tick in any::<bool>()) {
        let change = if tick { PlanChange::Tick(number) } else { PlanChange::Untick(number) };
        let before = plan::read(text.as_bytes()).plan;
        let Some(new) = edited(&text, std::slice::from_ref(&change)) else {
            prop_assert!(before.phases.iter().all(|phase| phase.number != number));
            return Ok(());
        };
        let after = plan::read(new.as_bytes()).plan;
        let (old_phase, new_phase) = (
            before.phases.iter().find(|phase| phase.number == number).unwrap(),
            after.phases.iter().find(|phase| phase.number == number).unwrap(),
        );
        prop_assert!(new_phase.tasks.iter().all(|task| task.done == tick));
        let changed: BTreeSet<usize> =
            split(&text).iter().zip(split(&new)).enumerate().filter(|(_, (old, new))| **old != *new).map(|(at, _)| at + 1).collect();
        let wanted: BTreeSet<usize> =
            old_phase.tasks.iter().filter(|task| task.done != tick).map(|task| task.line).collect();
        prop_assert_eq!(changed, wanted);
        prop_assert_eq!(text.len(), new.len());
        prop_assert_eq!(edited(&new, &[change]), Some(new.clone()));
    }

    /// A state line reads back as written, and the text without it is unchanged.
    #[test]
    fn a_state_line_is_the_only_change(text in lines(), number in 1u16..3, attempts in 0u32..100) {
        let line = state(State::Failed, attempts);
        let before = plan::read(text.as_bytes()).plan;
        let Some(phase) = before.phases.iter().find(|phase| phase.number == number) else {
            prop_assert_eq!(edited(&text, &[PlanChange::State(number, line)]), None);
            return Ok(());
        };
        let new = edited(&text, &[PlanChange::State(number, line.clone())]).unwrap();
        let after = plan::read(new.as_bytes()).plan;
        let found = after.phases.iter().find(|phase| phase.number == number).unwrap();
        prop_assert_eq!(found.state.as_ref(), Some(&line));
        let (old, new_lines) = (split(&text), split(&new));
        let extra = usize::from(phase.state.is_none());
        prop_assert_eq!(new_lines.len(), old.len() + extra);
        // The lines above it, except for the end of a last line, and the lines below are the same bytes.
        prop_assert_eq!(&old[..phase.line - 1], &new_lines[..phase.line - 1]);
        prop_assert_eq!(&old[phase.line + 1 - extra..], &new_lines[phase.line + 1..]);
        prop_assert_eq!(new.ends_with('\n'), text.ends_with('\n'));
    }

    /// The line of the digest is the only one that changes, too.
    #[test]
    fn a_digest_is_the_only_change(text in lines()) {
        let digest = Digest::of(text.as_bytes());
        let Some(new) = edited(&text, &[PlanChange::Spec(digest.clone())]) else { return Ok(()) };
        let after = plan::read(new.as_bytes()).plan;
        prop_assert_eq!(after.digest, Some(digest.clone()));
        prop_assert_eq!(edited(&new, &[PlanChange::Spec(digest)]), Some(new.clone()));
        let own = split(&new).len() - split(&text).len();
        prop_assert!(own <= 1);
    }

    /// Any file can be read: the violations are in order, and their texts quote nothing from it.
    #[test]
    fn any_text_is_checked(text in "(zqzq|- \\[ \\] |## Phase |```|\\PC|\n|\r|#|-| ){0,300}") {
        for violations in [
            spec::check("f", text.as_bytes(), &[]).1,
            plan::read(text.as_bytes()).violations("f", &[]).1,
        ] {
            prop_assert!(violations.is_sorted_by_key(|violation| violation.line));
            prop_assert!(violations.iter().all(|v| v.line.is_none_or(|line| line >= 1)));
            prop_assert!(violations.iter().all(|violation| !violation.text.contains("zqzq")));
        }
    }
}

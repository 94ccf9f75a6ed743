//! The formats of the workflows (specifications, plans and prompts), and lines with images.

use super::input::{Input, bytes, from_text, text};
use super::round::{Checked, Target};
use spektacular::protocol::image::{Image, media_type, with_data};
use spektacular::workflow::plan::{PlanChange, State, StateLine, edited, read, without_own_lines};
use spektacular::workflow::spec;
use spektacular::workflow::template::{PromptKind, expanded, has_placeholder};
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
    Target { name, cases: 200, seeds: both, words: &[], check, headed: false }
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

/// Prompts of a project.
#[test]
fn prompts() {
    let seeds = || PromptKind::WORDS.iter().filter_map(|name| PromptKind::from_word(name)).map(seed).collect();
    let target =
        Target { seeds, words: &["{{", "}}", "{{file}}", "{{failure}}", "{{other}}"], ..target("prompts", good) };
    target.round();

    fn seed(kind: PromptKind) -> Input {
        from_text(kind.built_in())
    }

    fn good(input: &Input) -> Checked {
        let text = text(input);
        // A value that looks like a placeholder stays as it is.
        let value = |name: &str| (name == "file").then_some("{{failure}}");
        let removed = expanded(&text, |_| None);
        hold(removed.len() <= text.len(), "a text grows without values")?;
        let places = text.matches("{{file}}").count();
        let filled = expanded(&text, value);
        hold(
            filled.len() == removed.len() + places * "{{failure}}".len(),
            "a value is not put in once for each place",
        )?;
        for kind in PromptKind::WORDS.iter().filter_map(|name| PromptKind::from_word(name)) {
            let taken = kind.check(&text).is_ok();
            let known = kind.placeholders().filter(|name| has_placeholder(&text, name)).count();
            hold(!taken || known > 0, "a prompt without a placeholder is taken")?;
        }
        Ok(())
    }
}

/// A line for an agent, with the labels of images in it.
#[test]
fn images() {
    let seeds = || {
        let [first, second] = both_images().map(|image| format!("{{\"data\":\"{}\"}}", image.label()));
        vec![from_text(&format!("[{first},{second}]")), from_text(&format!("[{second},{{\"text\":\"é\"}},{first}]"))]
    };
    let check = |input: &Input| {
        let (line, images) = (text(input), both_images());
        let filled = with_data(&line, &images, |image| Ok::<_, String>(vec![b'x'; image.bytes as usize]))?;
        media_type(line.as_bytes());
        let Some(mut filled) = filled else { return Ok(()) };
        for (image, data) in images.iter().zip(["eHh4", "eHh4eHh4eHg="]) {
            let field = format!("\"data\":\"{data}\"");
            hold(filled.contains(&field), "an image has no data")?;
            filled = filled.replacen(&field, &format!("\"data\":\"{}\"", image.label()), 1);
        }
        hold(filled == line, "something else than a label changed")
    };
    Target { seeds, ..target("images", check) }.round();
}

fn both_images() -> [Image; 2] {
    [("image/png", 3), ("image/gif", 8)].map(|(media_type, bytes)| Image {
        subject: "number".into(),
        path: "/x".into(),
        media_type,
        bytes,
    })
}

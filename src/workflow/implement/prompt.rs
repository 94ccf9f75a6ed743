//! The values for the prompts of a phase: its description, and the last failure.

use super::phase_loop::{Failing, Fault};
use crate::clean::last_bytes;
use crate::workflow::markdown::fenced;
use crate::workflow::plan::PlanPhase;
use crate::workflow::review::listed;
use std::fmt::Write;

/// The maximum length of a command's output in a prompt, in bytes.
const OUTPUT: usize = 16 << 10;
/// The maximum number of protected paths in a prompt.
const PATHS: usize = 50;

/// The value of `{{phase}}`.
pub(super) fn phase(phase: &PlanPhase, earlier: bool, reopened: Option<&Failing>) -> String {
    let mut text = format!("# Implement Phase {}: {}\n\n{}", phase.number, phase.title, phase.text.trim());
    if earlier {
        text.push_str(
            "\n\n# Earlier attempt\n\nAn earlier run began this phase. Part of the work may be done: inspect the \
             current state first, and continue from there.",
        );
    }
    if let Some(failing) = reopened {
        text.push_str("\n\n# Verification failed\n\nThis phase had passed. Afterwards, its command failed:\n\n");
        text.push_str(&command(failing));
    }
    text
}

/// The value of `{{failure}}`.
pub(super) fn failure(attempt: u32, of: u32, fault: &Fault) -> String {
    let what = match fault {
        Fault::Command(failing) => command(failing),
        Fault::Protected(paths) => {
            let what = "These protected files changed. Restore each to its state before this phase:\n";
            format!("{what}{}", path_list(paths))
        }
        Fault::Idle(_) => {
            "Nothing was done: no file changed, and no tool ran that changes something. The commands were \
                        not run. Do the work of this phase."
                .to_owned()
        }
        Fault::Review(found) => format!(
            "The commands of this phase passed. Then another session reviewed the work, and found:\n{}\n\nCorrect what \
             holds. Where a finding does not hold, leave the work as it is, and say why.",
            listed(found)
        ),
        Fault::Manual(text) => format!("A person checked the result. This does not hold:\n\n- {text}"),
    };
    format!("Attempt {attempt} of {of}\n\n{what}")
}

fn path_list(paths: &[String]) -> String {
    let mut text: String = paths.iter().take(PATHS).map(|path| format!("\n- {path}")).collect();
    if paths.len() > PATHS {
        let _ = write!(text, "\n- and {} more", paths.len() - PATHS);
    }
    text
}

fn command(failing: &Failing) -> String {
    let how = match (failing.timed_out, failing.exit_code, failing.signal) {
        (true, ..) => "its time limit expired".to_owned(),
        (false, Some(code), _) => format!("exit status {code}"),
        (false, None, Some(signal)) => format!("ended by signal {signal}"),
        (false, None, None) => "it could not be started".to_owned(),
    };
    let mut text = format!("{}\n\nResult: {how}\n\n", fenced("sh", &failing.command));
    if !failing.changed.is_empty() {
        text.push_str("It changed these protected files. Restore each, and keep the command from changing them:\n");
        text.push_str(&path_list(&failing.changed));
        text.push_str("\n\n");
    }
    let output = last_bytes(&failing.output, OUTPUT);
    match output.trim().is_empty() {
        true => text.push_str("It printed nothing."),
        false => {
            let cut = if output.len() < failing.output.len() { "The end of its output" } else { "Its output" };
            let _ = write!(text, "{cut}:\n\n{}", fenced("text", output));
        }
    }
    text
}

/// A text on one line, cut to `chars` characters.
pub(super) fn short(text: &str, chars: usize) -> String {
    let line = crate::clean::one_line(text);
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{OUTPUT, failure, phase};
    use crate::workflow::implement::phase_loop::{Failing, Fault};
    use crate::workflow::markdown::fenced;
    use crate::workflow::plan;

    fn failing(output: &str) -> Failing {
        Failing { command: "make check".into(), exit_code: Some(2), output: output.into(), ..Failing::default() }
    }

    #[test]
    fn a_retry_says_which_attempt_it_is_and_what_failed() {
        let text = failure(2, 3, &Fault::Command(failing("a\nb\n")));
        assert!(text.starts_with("Attempt 2 of 3\n\n```sh\nmake check\n```\n\nResult: exit status 2\n\n"), "{text}");
        assert!(text.ends_with("Its output:\n\n```text\na\nb\n```"));
        let late = Failing { timed_out: true, exit_code: None, ..failing("") };
        assert!(failure(2, 3, &Fault::Command(late)).contains("its time limit expired"));
        assert!(failure(2, 3, &Fault::Idle(None)).contains("Nothing was done"));
        assert!(failure(3, 3, &Fault::Manual("It is friendly.".into())).ends_with("- It is friendly."));
        let many = (0..60).map(|n| format!("tests/{n}")).collect();
        let text = failure(2, 3, &Fault::Protected(many));
        assert!(text.contains("\n- tests/49") && text.ends_with("\n- and 10 more") && !text.contains("tests/50"));
    }

    #[test]
    fn no_output_closes_its_fence_and_the_end_of_a_long_one_is_shown() {
        for text in ["```\nx", "a ````` b", "`"] {
            let shown = fenced("text", text);
            let fence: String = shown.chars().take_while(|c| *c == '`').collect();
            assert!(!text.contains(&fence) && shown.ends_with(&format!("\n{fence}")), "{shown}");
        }
        let long: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        let text = failure(2, 3, &Fault::Command(failing(&long)));
        assert!(text.len() < OUTPUT + 300 && text.contains("The end of its output:") && text.contains("line 4999\n"));
    }

    #[test]
    fn the_prompt_of_a_phase_has_its_heading_and_earlier_failures() {
        let text = "# Plan: X\nSpec: x.md\n## Phase 1: The text\n<!-- spektacular: failed attempts=3 at=2026 -->\nAbout.\n\
                    - [ ] T1.1 Write it\n### Verify\n```sh\ntrue\n```\n";
        let plan = plan::read(text.as_bytes()).plan;
        let shown = phase(&plan.phases[0], true, Some(&failing("no")));
        assert!(shown.starts_with("# Implement Phase 1: The text\n\nAbout.\n- [ ] T1.1 Write it"), "{shown}");
        assert!(!shown.contains("spektacular: failed"));
        let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("# ")).collect();
        assert_eq!(lines, ["# Implement Phase 1: The text", "# Earlier attempt", "# Verification failed"]);
    }
}

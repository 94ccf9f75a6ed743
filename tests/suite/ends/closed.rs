//! Tests of standard streams that were closed when the program started.

use std::process::Output;

use crate::support::Case;
use crate::support::agent::Script;

/// A run with a prompt, started by a shell that closes these descriptors.
fn closed(subcommand: &'static str, output: &str, closed: &[u8]) -> (Case, Output) {
    let closing: String = closed.iter().map(|number| format!(" {number}>&-")).collect();
    let case = Case::with(Script::hello()).subcommand(subcommand).shell(&format!("exec \"$@\"{closing}"));
    let args: &[&str] = match subcommand {
        "spec" => &["--name", "login", "--prompt", "Log in"],
        "plan" => &["--prompt", "Log in", "--name", "login"],
        "implement" => &["login"],
        _ => &["--prompt", "hi"],
    };
    let said = case.cli(&[&["--output", output], args].concat());
    (case, said)
}

const ALL: [&[u8]; 8] = [&[], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_is_74_whatever_else_is_closed() {
    for output in ["json", "cli"] {
        for numbers in ALL {
            let (case, said) = closed("adhoc", output, numbers);
            let lost = numbers.contains(&1);
            let code = said.status.code();
            assert_eq!(code, Some(if lost { 74 } else { 0 }), "{output} {numbers:?}: {said:?}");
            assert_eq!(case.path("log/pid").exists(), !lost, "{output} {numbers:?}: no agent starts");
            let named = String::from_utf8_lossy(&said.stderr).starts_with("spektacular: undelivered: ");
            assert_eq!(named, lost && !numbers.contains(&2), "{output} {numbers:?}: {said:?}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_is_74_before_a_workflow_starts() {
    for subcommand in ["spec", "plan", "implement"] {
        for output in ["json", "cli"] {
            for numbers in ALL.into_iter().filter(|numbers| numbers.contains(&1)) {
                let (case, said) = closed(subcommand, output, numbers);
                assert_eq!(said.status.code(), Some(74), "{subcommand} {output} {numbers:?}: {said:?}");
                assert!(!case.path("log/pid").exists(), "{subcommand} {output} {numbers:?}");
            }
        }
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_comes_before_every_other_failure() {
    for output in ["json", "cli"] {
        let case = Case::with(Script::hello()).shell("exec \"$@\" <&- >&-");
        assert_eq!(case.cli(&["--output", output, "--no-such-flag"]).status.code(), Some(74), "{output}");
        let case = case.file("work/.spektacular/config.json", "{");
        assert_eq!(case.cli(&["--output", output, "--prompt", "hi"]).status.code(), Some(74), "{output}");
    }
}

#[test]
fn a_dev_null_that_the_parent_holds_is_not_a_closed_stdout() {
    for shell in ["exec 1<>/dev/null; \"$@\"; exit $?", "exec \"$@\" >/dev/null 2>&1"] {
        for output in ["json", "cli"] {
            let case = Case::with(Script::hello()).shell(shell);
            let said = case.cli(&["--output", output, "--prompt", "hi"]);
            assert_eq!(said.status.code(), Some(0), "{shell} {output}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_is_74_for_every_command_that_prints() {
    let commands =
        ["--version", "help adhoc", "agents list", "config list", "status", "completions bash", "prompts spec"];
    for command in commands.into_iter().chain(["adhoc --agent demo --dry-run hi"]) {
        for numbers in ALL {
            let closing: String = numbers.iter().map(|number| format!(" {number}>&-")).collect();
            let case = Case::new().shell(&format!("exec \"$1\" {command}{closing}"));
            let code = case.cli(&[]).status.code();
            assert_eq!(code, Some(if numbers.contains(&1) { 74 } else { 0 }), "{command} {numbers:?}");
        }
    }
}

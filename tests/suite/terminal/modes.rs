//! Tests of terminal modes: whatever ends or stops the program, the terminal then has line mode and echo.

use serde_json::json;

use super::codex::Codex;
use crate::ends::panics::{HANG_AT, has_points};
use crate::support::agent::Script;
use crate::support::person::{CTRL_BACKSLASH, CTRL_Z, Person};
use crate::support::{Case, io, limit, start_line};
use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};

/// Whether the terminal has line mode and echo.
fn is_cooked(person: &Person) -> bool {
    tcgetattr(&person.keyboard).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
}

#[track_caller]
fn becomes(person: &Person, cooked: bool) {
    assert!(io::wait_for(limit(), || is_cooked(person) == cooked), "cooked: {}", !cooked);
}

/// A run for an orchestrator over a terminal, with an open question.
fn over_a_terminal() -> Person {
    let mut person = Case::with(Script::asks_bash()).at_terminal(&["adhoc", "--output", "json"]);
    becomes(&person, false);
    person.types(&format!("{}\n", start_line(r#"{"prompt":"go"}"#)));
    person.waits_for("\"type\":\"run.question\"");
    person
}

#[test]
fn a_signal_that_ends_the_program_at_once_gives_an_orchestrators_terminal_back() {
    let mut person = over_a_terminal();
    person.types(CTRL_BACKSLASH);
    assert_eq!(person.ends().0, 128 + 3);
    assert!(is_cooked(&person));
    let usual = [Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::XCPU];
    for signal in usual.into_iter().chain([Signal::PROF, Signal::VTALARM, Signal::IO, Signal::POWER, Signal::STKFLT]) {
        let mut person = over_a_terminal();
        person.signals(signal);
        assert_eq!(person.ends().0, 128 + signal.as_raw());
        assert!(is_cooked(&person), "{signal:?}");
    }
}

#[test]
fn a_program_that_hangs_gives_the_terminal_back() {
    if !has_points("a_program_that_hangs_gives_the_terminal_back") {
        return;
    }
    let mut person = Case::new().env(HANG_AT, "loop").at_terminal(&["adhoc", "--output", "json"]);
    becomes(&person, false);
    person.types(&format!("{}\n", start_line(r#"{"prompt":"go","agent":"demo"}"#)));
    assert_eq!(person.ends().0, 74);
    assert!(is_cooked(&person));
}

#[test]
fn a_signal_that_ends_the_program_at_once_brings_the_echo_back_after_a_secret() {
    for signal in [Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::IO, Signal::POWER, Signal::STKFLT] {
        let codex = Codex::new().asks("secret", "What key?", json!({})).says("Done.");
        let mut person = Case::new().program("codex", &codex).at_terminal(&["adhoc", "--agent", "codex", "go"]);
        person.waits_for("> ");
        assert!(!person.echo());
        person.signals(signal);
        assert_eq!(person.ends().0, 128 + signal.as_raw());
        assert!(is_cooked(&person), "{signal:?}");
    }
}

#[test]
fn a_stopped_run_lends_its_terminal_and_takes_it_back() {
    let mut person = over_a_terminal();
    for _ in 0..3 {
        person.types(CTRL_Z);
        person.sees_it_stopped();
        assert!(is_cooked(&person), "our modes stay while we are stopped");
        person.signals(Signal::CONT);
        becomes(&person, false);
    }
    person.types("{\"v\":\"1\",\"type\":\"run.cancel\"}\n");
    person.waits_for("\"type\":\"run.cancelled\"");
    assert_eq!(person.ends().0, 0);
    assert!(is_cooked(&person));
}

#[test]
fn the_terminal_is_taken_back_after_ctrl_z_and_fg() {
    for shell in ["bash --norc --noprofile --noediting -i", "sh -i"] {
        let case = Case::with(Script::asks_bash()).env("PS1", "% ").shell(&format!("export B=\"$1\"; exec {shell}"));
        let mut person = case.at_terminal(&[]);
        person.waits_for("% ");
        person.types("\"$B\" adhoc --output json\n");
        becomes(&person, false);
        person.types(&format!("{}\n", start_line(r#"{"prompt":"go"}"#)));
        person.waits_for("\"type\":\"run.question\"");
        for _ in 0..2 {
            person.types(CTRL_Z);
            person.waits_for("% ");
            becomes(&person, true);
            person.types("fg\n");
            becomes(&person, false);
        }
        person.types("{\"v\":\"1\",\"type\":\"run.cancel\"}\n");
        person.waits_for("\"type\":\"run.cancelled\"");
        person.waits_for("% ");
        person.types("exit\n");
        person.ends();
    }
}

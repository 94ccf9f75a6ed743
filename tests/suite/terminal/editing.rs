//! Tests of the text that a person types as an answer: several lines, pastes, corrections, and what the shell gets
//! afterwards.

use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use super::asking::{RUN, at, said};
use super::codex::Codex;
use crate::support::Case;
use crate::support::person::{CTRL_C, Person};

/// A shell that reports the line which the program left for it.
const THEN_READS: &str =
    "trap : INT; \"$@\"; echo \"code=$?\"; exec bash -c 'IFS= read -r -t 0.5 line; echo \"left=[$line]\"'";

fn asked(kind: &str, case: impl FnOnce(Case) -> Case) -> Person {
    let codex = Codex::new().asks(kind, "What name?", json!({})).says("Thank you.");
    let mut person = case(at(codex)).at_terminal(RUN);
    person.waits_for("What name?");
    person.waits_for("> ");
    person
}

#[track_caller]
fn modes_are_restored(person: &Person) {
    let modes = tcgetattr(&person.keyboard).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
}

#[test]
fn pasted_lines_are_one_answer() {
    for paste in ["\u{1b}[200~one\rtwo\rthree\u{1b}[201~", "one\rtwo\rthree", "one\ntwo\nthree"] {
        let mut person = asked("text", |case| case);
        person.types(paste);
        person.waits_for("three");
        person.types("\r");
        assert_eq!(person.ends().0, 0, "{paste:?}");
        assert_eq!(said(&person), ["one\ntwo\nthree"], "{paste:?}");
        modes_are_restored(&person);
    }
}

#[test]
fn an_unfinished_paste_is_not_left_for_the_shell() {
    let mut person = asked("confirm", |case| case.shell(THEN_READS));
    person.types("y\nrm -rf something");
    person.waits_for("something");
    person.types(CTRL_C);
    person.waits_for("code=130");
    person.waits_for("left=[]");
    assert_eq!(person.ends().0, 0);
    modes_are_restored(&person);
}

#[test]
fn alt_enter_breaks_a_line_and_keys_correct_it() {
    let mut person = asked("text", |case| case);
    person.types("onx");
    person.waits_for("onx");
    person.types("\u{7f}e\u{1b}\rtwo wrong\u{17}words");
    person.waits_for("words");
    person.types("\u{1b}[D\u{1b}[A!\r");
    assert_eq!(person.ends().0, 0);
    assert_eq!(said(&person), ["one\ntwo words!"]);
    assert!(person.screen().iter().any(|row| row.trim_end() == "  two words!"), "{:?}", person.screen());
}

#[test]
fn a_secret_of_several_lines_is_not_echoed() {
    let mut person = asked("secret", |case| case);
    assert!(!person.echo());
    person.types("\u{1b}[200~-----BEGIN\rhunter2-Zq7731\u{1b}[201~");
    person.types("\r");
    let (code, seen) = person.ends();
    assert_eq!(code, 0, "{seen}");
    assert!(!seen.contains("hunter2") && !seen.contains("BEGIN"), "{seen}");
    modes_are_restored(&person);
}

#[test]
fn a_terminal_without_escape_sequences_takes_a_text_too() {
    let mut person = asked("text", |case| case.env("TERM", "dumb"));
    person.types("web");
    person.waits_for("web");
    person.types("\r");
    let (code, seen) = person.ends();
    assert!(code == 0 && !seen.contains('\u{1b}'), "{code}: {seen:?}");
    assert_eq!(said(&person), ["web"]);
}

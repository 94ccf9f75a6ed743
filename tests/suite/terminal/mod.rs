//! Tests with a terminal instead of pipes: JSON Lines over it, and a person at it.

mod asking;
mod chat;
mod codex;
mod editing;
mod edits;
mod jobs;
mod log;
mod modes;
mod pictures;
mod screens;
mod showing;
mod svg;
mod type_ahead;

use crate::support::person::Person;
use crate::support::{Case, io, limit};
use rustix::termios::{LocalModes, OutputModes, tcgetattr};
use std::io::{BufRead, BufReader};

/// The text without the times of tools, which show from one second on.
pub(crate) fn without_times(text: &str) -> String {
    let slow = regex_lite::Regex::new(r" \([0-9]+s\)|, [0-9]+s(\))").unwrap();
    slow.replace_all(text, "$1").into_owned()
}

/// Waits until the status line shows a later second than its first one.
#[track_caller]
fn waits_for_a_second(person: &mut Person) {
    let seconds = |shown: &str| -> Option<u64> { shown.rsplit('[').next()?.strip_suffix("s]")?.parse().ok() };
    while seconds(&person.waits_for("s]")).is_none_or(|seconds| seconds == 0) {}
}

#[test]
fn json_lines_over_a_terminal_are_neither_cut_nor_echoed() {
    // All three streams are the terminal, as for a program that hands a PTY to a model.
    let mut person = Case::new().at_terminal(&["adhoc", "--output", "json"]);
    // The note is longer than a terminal's line buffer. It is typed after the switch, because the terminal would cut it
    // before.
    let switched = || !tcgetattr(&person.keyboard).unwrap().local_modes.contains(LocalModes::ICANON);
    assert!(io::wait_for(limit(), switched), "the terminal was not switched");
    let note = "x".repeat(6000);
    let start = format!(
        "{{\"v\":\"1\",\"type\":\"run.start\",\"payload\":{{\"prompt\":\"hi\",\"agent\":\"demo\",\"interactive\":false,\"metadata\":{{\"note\":\"{note}\"}}}}}}\n"
    );
    person.types(&start);
    let text = person.waits_for("\"type\":\"run.completed\"");
    assert!(text.starts_with("{\"v\":\"1\",\"id\":\"msg_1\""), "{}", &text[..100.min(text.len())]);
    assert!(!text.contains('\r'), "lines end with CR LF");
    assert_eq!(text.matches("run.start\"").count(), 0, "the input was echoed");
    for line in BufReader::new(text.as_bytes()).lines().map_while(Result::ok).filter(|line| line.ends_with('}')) {
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
    }
    person.waits_for("\n");
    assert_eq!(person.ends().0, 0);
    let modes = tcgetattr(&person.keyboard).unwrap();
    assert!(modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
    assert!(modes.output_modes.contains(OutputModes::OPOST));
}

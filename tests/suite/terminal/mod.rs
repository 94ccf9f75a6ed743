//! Tests with a terminal instead of pipes: JSON Lines over it, and a person at it.

mod asking;
mod codex;
mod edits;
mod jobs;
mod log;
mod modes;
mod screens;
mod showing;

use crate::support::{Case, io, limit};
use rustix::termios::{LocalModes, OutputModes, tcgetattr};
use std::io::{BufRead, BufReader};

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

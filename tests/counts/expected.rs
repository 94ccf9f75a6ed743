//! The committed counts.

use std::fs::File;
use std::io::{Read, Seek, Write};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counts/expected.txt");
/// The maximum relative difference between a count and the committed one.
const ROOM: f64 = 0.03;

/// Compares a count with the committed one, or writes it if `UPDATE_COUNTS=1` is set.
#[track_caller]
pub(crate) fn compare(name: &str, counted: f64) {
    println!("{name} {counted:.1}");
    let mut file = File::options().read(true).write(true).open(FILE).unwrap();
    // Tests run in parallel, in threads and in processes.
    file.lock().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    if std::env::var_os("UPDATE_COUNTS").is_some() {
        let mut lines: Vec<String> = text.lines().filter(|line| !is_of(line, name)).map(str::to_owned).collect();
        lines.push(format!("{name} {counted:.1}"));
        lines.sort();
        file.rewind().unwrap();
        file.set_len(0).unwrap();
        file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        return;
    }
    let expected: f64 =
        found.unwrap_or_else(|| panic!("no count of {name} is committed; {}", advice())).parse().unwrap();
    let ratio = counted / expected;
    assert!(
        (1.0 - ROOM..=1.0 + ROOM).contains(&ratio),
        "{name}: {counted:.1}, {:+.1} % from the committed {expected:.1}; if that is meant, {}",
        (ratio - 1.0) * 100.0,
        advice()
    );
}

fn is_of(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))
}

fn advice() -> &'static str {
    "run the same test with UPDATE_COUNTS=1 and commit tests/counts/expected.txt"
}

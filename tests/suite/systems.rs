//! The differences between the systems: the tests that only Linux holds, by the subject in the reference's table.

use crate::support::read;
use crate::tidy::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};

/// The ignored tests of a build without the feature `linux`, by subject.
const ONLY_ON_LINUX: &[(&str, &[&str])] = &[];

/// The subjects of the table, and whether all systems promise the same.
fn subjects() -> BTreeMap<String, bool> {
    let page = read(&root().join("src/protocol/reference.md"));
    let section = page.split("\n## Systems\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[0].to_owned(), cells[2] == "the same")).collect()
}

#[test]
fn every_test_that_only_linux_holds_names_its_subject() {
    let ignored = concat!("#[cfg_attr(not(feature = \"linux\"), ", "ignore = \"");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in rust_files("tests") {
        for rest in text.split(ignored).skip(1) {
            let subject = rest.split("\")]").next().unwrap().to_owned();
            let name = rest.split("fn ").nth(1).unwrap().split('(').next().unwrap().to_owned();
            assert!(found.entry(subject).or_default().insert(name), "{}: twice", path.display());
        }
    }
    let listed = ONLY_ON_LINUX.iter().map(|(subject, tests)| {
        ((*subject).to_owned(), tests.iter().map(|test| (*test).to_owned()).collect::<BTreeSet<_>>())
    });
    assert_eq!(found, listed.collect(), "the list is not what the tests say");
    let subjects = subjects();
    for subject in found.keys() {
        assert_eq!(subjects.get(subject), Some(&false), "{subject:?} is no difference in the table: {subjects:?}");
    }
}

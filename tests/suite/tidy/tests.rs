//! Rules for the tests, and rules that keep names and paths correct.

use crate::tidy::code::{code, root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The targets of `cargo test` and `cargo bench`. A suite that changes its own process or its allocator needs a target
/// of its own, and so do the real agents and OpenClaw, which need a feature. Everything else is a module of `suite`.
const TARGETS: &[&str] = &["bench", "counts", "engine", "fuzz", "openclaw", "real_agents", "suite", "tree"];

#[test]
fn tests_are_one_binary() {
    let files = fs::read_dir(root().join("tests")).unwrap().map(|entry| entry.unwrap().path());
    let is_target =
        |path: &std::path::PathBuf| path.is_file() || ["main.rs", "run.rs"].iter().any(|name| path.join(name).exists());
    let mut found: Vec<String> =
        files.filter(is_target).map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, TARGETS, "make a new test file a module of tests/suite/main.rs");
}

/// Unlike `allow`, `expect` fails once it is no longer needed.
#[test]
fn every_exception_from_a_lint_is_an_expectation_with_a_reason() {
    let (allow, expect) = (concat!("[", "allow("), concat!("[", "expect("));
    for (path, text) in rust_files("src").into_iter().chain(rust_files("tests")) {
        assert!(!text.contains(allow), "{}: write #[expect(LINT, reason = \"…\")]", path.display());
        for rest in text.split(expect).skip(1) {
            let attribute = rest.split(")]").next().unwrap();
            assert!(attribute.contains("reason = "), "{}: an expectation without a reason", path.display());
        }
    }
}

#[test]
fn helpers_are_compiled_once_per_binary() {
    for (path, text) in rust_files("tests") {
        let declares = text.lines().any(|line| ["mod support;", "mod playback;"].contains(&line));
        let mains = ["tests/suite/main.rs", "tests/real_agents/main.rs", "tests/fuzz/main.rs"];
        let is_main = mains.iter().any(|main| path.ends_with(main));
        assert!(is_main || !declares, "{}: write `use crate::support`", path.display());
    }
}

#[test]
fn every_sleep_says_why_there_is_no_event() {
    for (path, text) in rust_files("tests").into_iter().filter(|(path, _)| !path.ends_with("tidy/tests.rs")) {
        let mut before = "";
        for line in text.lines() {
            let sleeps = line.contains("sleep(Duration");
            let excused = before.trim_start().starts_with("// No event: ");
            assert!(!sleeps || excused, "{}: wait for an event, or say `// No event: …` above: {line}", path.display());
            assert!(!line.contains("yield_now()"), "{}: a busy loop takes a core from others: {line}", path.display());
            before = line;
        }
    }
}

/// The functions of a file that are not tests: the lines above each, its own line, and its body.
fn helpers<'t>(lines: &'t [&'t str]) -> impl Iterator<Item = (&'t [&'t str], &'t str, &'t [&'t str])> {
    let starts = lines.iter().enumerate().filter(|(_, line)| {
        let line = line.trim_start();
        line.strip_prefix("pub(crate) ").unwrap_or(line).starts_with("fn ")
    });
    starts.filter_map(|(at, line)| {
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let above = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with(['#', '/'])).count();
        let above = &lines[at - above..at];
        let body = &lines[at..at + lines[at..].iter().take_while(|line| **line != end).count()];
        (!above.iter().any(|line| line.trim() == "#[test]")).then_some((above, *line, body))
    })
}

/// Helpers of the harness, and those that a file calls in several places.
#[test]
fn helpers_name_their_caller() {
    for (path, text) in rust_files("tests") {
        let is_harness = path.starts_with("tests/support");
        let lines: Vec<&str> = text.lines().collect();
        for (above, line, body) in helpers(&lines) {
            let name = line.split("fn ").nth(1).unwrap_or_default().split(['(', '<']).next().unwrap_or_default();
            let is_public = line.trim_start().starts_with("pub(crate) ");
            let checks = |words: &[&str]| body.iter().any(|line| words.iter().any(|word| line.contains(word)));
            let fails = checks(&["assert!(", "assert_eq!(", "panic!("])
                || is_harness && is_public && checks(&[".expect(\"", ".unwrap()", ".fail("]);
            let shared = is_harness && is_public || text.matches(&format!("{name}(")).count() > 2;
            let tracked = above.iter().any(|line| line.trim() == "#[track_caller]");
            assert!(
                !(fails && shared) || tracked || name == "main",
                "{}: #[track_caller] is missing: {line}",
                path.display()
            );
        }
    }
}

#[test]
fn a_test_that_may_lack_a_program_says_so() {
    for (path, text) in rust_files("tests") {
        for program in ["python3", "unshare", "setpriv", "perl", "zsh", "fish", "man"] {
            let starts = [format!("Command::new(\"{program}\""), format!("[\"{program}\", \"-")];
            let starts = starts.iter().any(|word| text.contains(word.as_str()));
            assert!(!starts || text.contains("not_checked("), "{} needs {program}", path.display());
        }
    }
}

/// Words in texts for people that name a file or a target.
fn named<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    text.split(prefix).skip(1).map(|rest| {
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.')).collect::<String>()
    })
}

#[test]
fn texts_name_only_existing_tests() {
    let mut texts: Vec<_> = rust_files("src").into_iter().chain(rust_files("tests")).collect();
    for name in ["README.md", ".github/CONTRIBUTING.md", "testdata/README.md", ".ci/run", "src/protocol/reference.md"] {
        texts.push((name.into(), fs::read_to_string(root().join(name)).unwrap()));
    }
    for (path, text) in texts.iter().filter(|(path, _)| !path.ends_with("tidy/tests.rs")) {
        for target in named(text, "--test ") {
            assert!(TARGETS.contains(&target.as_str()), "{}: --test {target}: no such target", path.display());
        }
        // Some modules of the program have a folder of tests too.
        for file in named(&text.replace("/tests/", "/"), "tests/").filter(|file| file.ends_with(".rs")) {
            assert!(root().join("tests").join(&file).exists(), "{}: tests/{file} is not there", path.display());
        }
    }
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in rust_files("src") {
        // The two forms of the system have the same items, and a build has one of them.
        if path == Path::new("src/system/posix.rs") {
            continue;
        }
        for line in code(&text).lines() {
            let line = ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|word| line.strip_prefix(word));
            let kinds = ["struct ", "enum ", "trait ", "type "];
            let Some(rest) = line.and_then(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind))) else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            places.entry(name).or_default().insert(path.display().to_string());
        }
    }
    for (name, places) in places {
        assert!(places.len() == 1, "{name} is in {places:?}: rename all but one");
    }
}

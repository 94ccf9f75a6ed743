//! The pictures of the README: real runs at a terminal, of the demo agent and of recordings of Claude Code, drawn as testdata/screens/svg/NAME-COLUMNS.svg.
//! `UPDATE_GOLDEN=1 cargo test --test suite pictures` rewrites them.

use super::screens::check;
use super::svg::picture;
use super::without_times;
use crate::golden::report;
use crate::playback::case::Case as Recorded;
use crate::playback::process::sandbox;
use crate::support::person::{CTRL_D, Person};
use crate::support::{Case, in_time};
use regex_lite::{Captures, Regex};
use std::fs;
use std::path::Path;

/// A command line, and what a person types.
struct Sitting {
    name: &'static str,
    case: fn() -> Case,
    args: &'static [&'static str],
    /// A text to wait for, and the keys at the prompt after it.
    keys: &'static [(&'static str, &'static str)],
}

const SPEC: &[&str] = &["spec", "--agent", "demo", "Greet the reader"];
const PLAN: &[&str] = &["plan", "--agent", "demo", "greet-the-reader"];

const SITTINGS: &[Sitting] = &[
    Sitting {
        name: "run",
        case: || sandbox(&Recorded::named("claude/fix_test")),
        args: &["adhoc", "fix the failing test"],
        keys: &[("Allow this command", "a\r"), ("Empty input", "1\r"), ("Allow Edit", "y\r")],
    },
    Sitting {
        name: "chat",
        case: || sandbox(&Recorded::named("claude/chat")),
        args: &["chat"],
        keys: &[
            ("Type a prompt", "Why does parse fail its test?\r"),
            ("turn 1 done", "Change parse.\r"),
            ("Allow Edit", "a\r"),
            ("turn 2 done", CTRL_D),
        ],
    },
    Sitting { name: "spec", case: Case::new, args: SPEC, keys: &[("Which style", "2\r")] },
    Sitting { name: "plan", case: specified, args: PLAN, keys: &[] },
    Sitting {
        name: "implement",
        case: planned,
        args: &["implement", "--agent", "demo", "greet-the-reader"],
        keys: &[("Run the commands", "y\r"), ("Allow Write", "a\r")],
    },
];

fn specified() -> Case {
    let case = Case::new();
    assert_eq!(case.run(&[SPEC, &["--headless"]].concat()).code, Some(0));
    case
}

fn planned() -> Case {
    let case = specified();
    assert_eq!(case.run(PLAN).code, Some(0));
    case
}

/// The command line as a person types it.
fn typed(args: &[&str]) -> String {
    let quoted = |arg: &&str| if arg.contains(' ') { format!("\"{arg}\"") } else { (*arg).to_owned() };
    format!("spektacular {}", args.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

impl Sitting {
    #[track_caller]
    fn ended(&self, columns: u16) -> Person {
        let prompt = format!("printf '\\033[2m$\\033[0m %s\\n' '{}'; exec \"$@\"", typed(self.args));
        let mut person = (self.case)().columns(columns).shell(&prompt).at_terminal(self.args);
        for (text, keys) in self.keys {
            person.waits_for(text);
            person.waits_for("> ");
            person.types(keys);
        }
        let (code, seen) = person.ends();
        assert_eq!(code, 0, "{seen}");
        person
    }

    /// The picture of a run in which no time takes more room than `0s`.
    #[track_caller]
    fn picture(&self, columns: u16) -> String {
        let slow = Regex::new(r"[^.0-9][0-9]{2,}(\.[0-9])?s\b").unwrap();
        let screen = in_time(|| {
            let screen = self.ended(columns).terminal();
            let drawn = screen.drawn();
            if without_times(&drawn) == drawn && !slow.is_match(&drawn) { Ok(screen) } else { Err(drawn) }
        });
        let title = format!("{}, on a terminal of {columns} columns", typed(self.args));
        let svg = picture(&title, columns.into(), &screen.cells());
        let time = Regex::new(r"\b[0-9](\.[0-9])?s\b").unwrap();
        time.replace_all(&svg, |time: &Captures<'_>| if time.get(1).is_some() { "0.0s" } else { "0s" }).into_owned()
    }
}

fn check_all(columns: u16) {
    let name = |sitting: &Sitting| format!("svg/{}-{columns}.svg", sitting.name);
    let wrong = SITTINGS.iter().filter_map(|sitting| check(&name(sitting), &sitting.picture(columns)).err());
    report(&wrong.collect::<Vec<_>>());
}

#[test]
fn pictures_of_a_usual_terminal() {
    check_all(80);
}

#[test]
fn pictures_of_a_wide_terminal() {
    check_all(120);
}

#[test]
fn every_picture_is_well_formed() {
    let token = Regex::new(r#"<(/?)([a-z]+)((?: [a-zA-Z-]+="[^"<&]*")*)(/?)>|&(?:amp|lt|gt);|[^<&]+"#).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/screens/svg");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let svg = fs::read_to_string(&path).unwrap();
        let (mut open, mut at) = (Vec::new(), 0);
        for found in token.captures_iter(&svg) {
            let whole = found.get(0).unwrap();
            assert_eq!(whole.start(), at, "{}: {:?}", path.display(), &svg[at..whole.end()]);
            at = whole.end();
            let part = |number| found.get(number).map_or("", |part| part.as_str());
            match (part(1), part(2), part(4)) {
                (_, "", _) | (_, _, "/") => {}
                ("/", name, _) => assert_eq!(open.pop(), Some(name), "{}", path.display()),
                (_, name, _) => open.push(name),
            }
        }
        assert!(at == svg.len() && open.is_empty(), "{}: {open:?}", path.display());
    }
}

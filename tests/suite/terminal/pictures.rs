//! The pictures of the README: runs of the demo agent and of recordings of Claude Code at a terminal, drawn as
//! testdata/screens/svg/NAME-COLUMNS.svg. `UPDATE_GOLDEN=1 cargo test --test suite pictures` rewrites them.

use super::screens::check;
use super::svg::picture;
use super::without_times;
use crate::agents::golden::report;
use crate::playback::case::Case as Recorded;
use crate::playback::process::sandbox;
use crate::support::person::{CTRL_D, Person};
use crate::support::{Case, in_time};
use regex_lite::{Captures, Regex};

/// A command line, and what a person types.
struct Scene {
    name: &'static str,
    case: fn() -> Case,
    args: &'static [&'static str],
    /// A text to wait for, and the keys at the prompt after it.
    keys: &'static [(&'static str, &'static str)],
}

const SPEC: &[&str] = &["spec", "--agent", "demo", "Greet the reader"];
const PLAN: &[&str] = &["plan", "--agent", "demo", "greet-the-reader"];

const SCENES: &[Scene] = &[
    Scene {
        name: "run",
        case: || sandbox(&Recorded::named("claude/fix_test")),
        args: &["adhoc", "fix the failing test"],
        keys: &[("Allow this command", "a\r"), ("Empty input", "1\r"), ("Allow Edit", "y\r")],
    },
    Scene {
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
    Scene { name: "spec", case: Case::new, args: SPEC, keys: &[("Which style", "2\r")] },
    Scene { name: "plan", case: specified, args: PLAN, keys: &[] },
    Scene {
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

impl Scene {
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

/// Fails if a text is not the XML of a picture: elements with attributes, texts and three entities.
fn well_formed(svg: &str) -> Result<(), String> {
    let token = Regex::new(r#"<(/?)([a-z]+)((?: [a-zA-Z-]+="[^"<&]*")*)(/?)>|&(?:amp|lt|gt);|[^<&]+"#).unwrap();
    let (mut open, mut at) = (Vec::new(), 0);
    for found in token.captures_iter(svg) {
        let part = |number| found.get(number).map_or("", |part| part.as_str());
        if !svg[at..].starts_with(part(0)) {
            break;
        }
        at += part(0).len();
        match (part(1), part(2), part(4)) {
            (_, "", _) | (_, _, "/") => {}
            ("/", name, _) if open.last() == Some(&name) => drop(open.pop()),
            ("/", name, _) => return Err(format!("</{name}> ends nothing")),
            (_, name, _) => open.push(name),
        }
    }
    if at == svg.len() && open.is_empty() { Ok(()) } else { Err(format!("no XML, within {open:?}: {}", &svg[at..])) }
}

fn check_all(columns: u16) {
    let wrong = SCENES.iter().filter_map(|scene| {
        let svg = scene.picture(columns);
        well_formed(&svg).and_then(|()| check(&format!("svg/{}-{columns}.svg", scene.name), &svg)).err()
    });
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
fn a_picture_with_a_mistake_is_not_well_formed() {
    assert_eq!(well_formed("<svg a=\"1\"><g>a &lt; b<c/></g>\n</svg>"), Ok(()));
    for wrong in ["<a>b", "<a><b></a></b>", "</a>", "a & b", "a < b", "<a b=c/>", "<a b=\"<\"/>"] {
        assert!(well_formed(wrong).is_err(), "{wrong}");
    }
}

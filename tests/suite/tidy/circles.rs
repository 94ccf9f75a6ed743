//! The files of a folder depend on each other in one direction.

use crate::tidy::code::{code, rust_files};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// The segments of a path below `src`.
type Place = Vec<String>;

/// The code of every module of the program, without comments and tests.
fn modules() -> BTreeMap<Place, String> {
    let mut modules = BTreeMap::new();
    for (path, text) in rust_files("src") {
        let path = path.strip_prefix("src").unwrap().with_extension("");
        let mut place: Place = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if place.last().is_some_and(|name| name == "mod" || name == "lib") {
            place.pop();
        }
        if !matches!(place.last().map(String::as_str), Some("main" | "tests")) {
            let lines = code(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
            modules.insert(place, lines.map(|line| format!("{line}\n")).collect());
        }
    }
    modules
}

/// The paths in a tree of imports: `a::{b, c::{d, e}}` has three.
fn expanded(tree: &str) -> Vec<String> {
    let Some((before, inside)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inside = inside.rsplit_once('}').unwrap().0;
    let (mut paths, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths.extend(expanded(&inside[from..at]).iter().map(|path| format!("{}{path}", before.trim())));
                from = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// The modules of the program and the items that they export again.
struct Program {
    modules: BTreeMap<Place, String>,
    exports: BTreeMap<Place, Place>,
}

impl Program {
    fn read() -> Program {
        let mut program = Program { modules: modules(), exports: BTreeMap::new() };
        for place in program.modules.keys() {
            for (is_export, used) in program.paths(place) {
                if is_export {
                    let name = used.last().unwrap().clone();
                    program.exports.insert(place.iter().cloned().chain([name]).collect(), used);
                }
            }
        }
        program
    }

    /// The paths that a module uses, from the root. `true`: the module exports the item at the path.
    fn paths(&self, place: &Place) -> Vec<(bool, Place)> {
        let code = &self.modules[place];
        let import = Regex::new(r"(?m)^\s*(pub(?:\([a-z: ]+\))? )?use ([^;]+);").unwrap();
        let inline = Regex::new(r"\b(?:crate|super|self)(?:::\w+)+").unwrap();
        let imports = import.captures_iter(code).flat_map(|found| {
            let is_export = found.get(1).is_some();
            expanded(&found[2]).into_iter().map(move |path| (is_export, path))
        });
        let rest = import.replace_all(code, "");
        let inline = inline.find_iter(&rest).map(|found| (false, found.as_str().to_owned()));
        imports.chain(inline).filter_map(|(is_export, path)| Some((is_export, self.absolute(place, &path)?))).collect()
    }

    /// The path from the root. `None`: it leads to another package.
    fn absolute(&self, place: &Place, path: &str) -> Option<Place> {
        let segments = path.split(" as ").next()?.split("::").map(|part| part.trim().to_owned());
        let mut at = place.clone();
        let mut rest: Vec<String> = segments.collect();
        match rest[0].as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                let up = rest.iter().take_while(|part| *part == "super").count();
                at.truncate(place.len() - up);
                rest.drain(1..up);
            }
            first => {
                at.push(first.to_owned());
                if !self.modules.contains_key(&at) {
                    return None;
                }
            }
        }
        at.extend(rest.drain(1..));
        Some(at)
    }

    /// The module that defines the item at a path.
    fn owner(&self, path: &Place) -> Place {
        let item = (1..=path.len()).map(|n| &path[..n]).find(|part| !self.modules.contains_key(*part));
        match item.and_then(|item| self.exports.get(item)) {
            Some(origin) => self.owner(origin),
            None => (0..=path.len()).rev().map(|n| &path[..n]).find(|n| self.modules.contains_key(*n)).unwrap().into(),
        }
    }

    /// For each module, the siblings that it or a module below it uses.
    fn arrows(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        let mut arrows: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
        for from in self.modules.keys() {
            for to in self.paths(from).iter().map(|(_, path)| self.owner(path)) {
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if shared < from.len() && shared < to.len() {
                    arrows.entry(from[..=shared].into()).or_default().insert(to[..=shared].into());
                }
            }
        }
        arrows
    }
}

#[test]
fn no_file_uses_a_sibling_that_uses_it() {
    let mut arrows = Program::read().arrows();
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 100, "the imports are not found");
    // Removes whatever uses no sibling that remains. A circle is never removed.
    loop {
        let places: BTreeSet<Place> = arrows.keys().cloned().collect();
        arrows.retain(|_, used| used.iter().any(|sibling| places.contains(sibling)));
        if arrows.len() == places.len() {
            break;
        }
    }
    let left: Vec<String> = arrows.iter().map(|(from, to)| format!("{} -> {to:?}", from.join("/"))).collect();
    assert!(left.is_empty(), "these files form a circle, or lead into one: {left:#?}");
}

#[test]
fn imports_are_read_with_their_groups_and_exports() {
    assert_eq!(expanded("a::{b, c::{d, e as f}}"), ["a::b", "a::c::d", "a::c::e as f"]);
    let modules = [("", "mod a;\nmod b;"), ("a", "pub use one::Thing;"), ("a/one", ""), ("b", "use crate::a::Thing;")];
    let place = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Place>();
    let modules = modules.into_iter().map(|(path, code)| (place(path), code.to_owned())).collect();
    let exports = [(place("a/Thing"), place("a/one/Thing"))].into();
    let program = Program { modules, exports };
    assert_eq!(program.owner(&place("a/Thing")), place("a/one"));
    assert_eq!(program.absolute(&place("a/one"), "super::super::b::X"), Some(place("b/X")));
    assert_eq!(program.arrows(), [(place("b"), [place("a")].into())].into());
}

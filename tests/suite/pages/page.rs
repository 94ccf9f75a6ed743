//! Reads the protocol reference: its samples, its sections and the rows of its tables.

pub(crate) const PAGE: &str = include_str!("../../../src/protocol/reference.md");

/// The lines inside all blocks with this tag.
#[track_caller]
fn inside(tag: &str) -> Vec<&'static str> {
    let (mut found, mut open) = (Vec::new(), None);
    for line in PAGE.lines() {
        match (open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(info),
            (Some(_), Some(_)) => open = None,
            (Some(info), None) if info == tag => found.push(line),
            _ => {}
        }
    }
    assert!(!found.is_empty(), "no block with the tag {tag}");
    found
}

/// JSON without spaces between its parts: a sample as it is on the wire.
fn compact(sample: &str) -> String {
    let (mut text, mut quoted, mut escaped) = (String::new(), false, false);
    for c in sample.chars() {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
        if quoted || !c.is_whitespace() {
            text.push(c);
        }
    }
    text
}

/// The samples of all blocks with this tag, each as one line. The page wraps them: a further line of a sample is
/// indented, or closes it. In a dialogue, the direction stays in front.
#[track_caller]
pub(crate) fn lines(tag: &str) -> Vec<String> {
    let mut samples: Vec<(&str, String)> = Vec::new();
    for line in inside(tag) {
        if line.starts_with([' ', '}']) {
            samples.last_mut().unwrap_or_else(|| panic!("a sample begins with {line}")).1 += line;
            continue;
        }
        let (direction, first) = if tag == "json dialogue" { line.split_at(2) } else { ("", line) };
        samples.push((direction, first.to_owned()));
    }
    samples.into_iter().map(|(direction, sample)| format!("{direction}{}", compact(&sample))).collect()
}

/// All frames of the program in the reference, including those of the dialogue.
pub(crate) fn frames() -> Vec<String> {
    let said = lines("json dialogue").into_iter().filter_map(|line| Some(line.strip_prefix("< ")?.to_owned()));
    lines("json out").into_iter().chain(said).collect()
}

pub(crate) fn section(heading: &str) -> &'static str {
    part(PAGE, heading)
}

/// The text under a heading of a page, without the headings below it.
#[track_caller]
pub(crate) fn part(page: &'static str, heading: &str) -> &'static str {
    let start = page.find(&format!("# {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let rest = &page[start + 2..];
    &rest[..rest.find("\n#").unwrap_or(rest.len())]
}

/// The section about a type of frame.
pub(crate) fn home(kind: &str) -> &'static str {
    match kind {
        "run.completed" | "run.failed" | "run.cancelled" => section("run.completed, run.failed, run.cancelled"),
        other => section(other),
    }
}

/// The cells of the table row in `text` that begins with `first`.
#[track_caller]
pub(crate) fn row(text: &'static str, first: &str) -> Vec<&'static str> {
    let head = format!("| {first} |");
    let line = text.lines().find(|line| line.starts_with(&head)).unwrap_or_else(|| panic!("no row {head}"));
    line.trim_matches('|').split('|').map(str::trim).collect()
}

pub(crate) fn names(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}`"))
}

/// Compares a page with what it must be. With `UPDATE_GOLDEN=1`, rewrites it instead. `file`: its path in the project.
#[track_caller]
pub(crate) fn hold(file: &str, page: &str, wanted: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        return std::fs::write(format!("{}/{file}", env!("CARGO_MANIFEST_DIR")), wanted).unwrap();
    }
    for (is, must_be) in page.lines().zip(wanted.lines()) {
        assert_eq!(is, must_be, "UPDATE_GOLDEN=1 cargo test --test suite -- reference published corrects {file}");
    }
    assert!(page == wanted, "UPDATE_GOLDEN=1 cargo test --test suite -- reference published corrects {file}");
}

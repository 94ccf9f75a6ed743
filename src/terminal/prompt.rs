//! The text of a question for a person. Pure.

use super::answer::{key, keys};
use super::screen::{Ink, Look};
use super::tools::without_first_hunk;
use super::work::span;
use crate::clean::{escaped, one_line, whole};
use crate::engine::InAdvance;
use crate::protocol::limits::BAD_ANSWERS;
use crate::protocol::outbound::{Question, Text};
use crate::protocol::question::{ALLOW_ALWAYS, Answer, Ask, Choice, Given, Kind, Place, Subject, Validation, check};
use crate::protocol::words::{Category, PathType, Purpose};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

/// The time left at which the countdown begins.
pub(super) const NEAR: Duration = Duration::from_secs(30);
const MARK: &str = "> ";
/// Columns of the countdown before a prompt.
const COUNTDOWN: usize = 6;

/// `place`: the question's number within its group, from 1.
pub(super) fn question(question: &Question, place: usize, look: &Look) -> String {
    let ask = &question.ask;
    let mut out = String::new();
    if let Some(why) = &question.error {
        let last = if question.attempt >= BAD_ANSWERS { " This is the last attempt." } else { "" };
        out.push_str(&refusal(&format!("{}{last}", one_line(why.shown())), look));
    }
    // A permission's text needs no header.
    let header =
        Some(one_line(ask.header.shown())).filter(|header| !header.is_empty() && ask.purpose != Purpose::Permission);
    let header = header.map(|header| format!("[{header}] ")).unwrap_or_default();
    let of = if question.group_size > 1 { format!(" ({place} of {})", question.group_size) } else { String::new() };
    let text = titled(ask, Some("this command"));
    let line = format!("? {header}{}{of}", text.trim_end().replace('\n', "\n  "));
    let _ = writeln!(out, "{}", look.paint(Ink::Bold, &line));
    if let Some(subject) = &ask.subject {
        out.push_str(&what_exactly(subject, &text, look));
    }
    if let Kind::Select { choices, .. } = &ask.kind {
        for (at, choice) in choices.as_slice().iter().enumerate() {
            match (ask.purpose, key(choice.value.shown())) {
                (Purpose::Permission, Some(key)) => {
                    let _ = writeln!(out, "  {key}  {}", one_line(choice.label.shown()));
                }
                _ => {
                    let label = one_line(choice.label.shown());
                    let more = choice.description.as_ref().map(|description| one_line(description.shown()));
                    let more = more.filter(|more| *more != label).map(|more| format!(" - {more}")).unwrap_or_default();
                    let _ = writeln!(out, "  {}. {label}{more}", at + 1);
                }
            }
        }
    }
    out
}

pub(super) fn in_advance(question: &Question, answer: &InAdvance) -> String {
    let ask = &question.ask;
    let header = one_line(ask.header.shown());
    let name = match (header.as_str(), ask.purpose) {
        ("", _) | (_, Purpose::Permission) => one_line(&titled(ask, None)),
        (_, Purpose::Clarification | Purpose::Input) => format!("{header}:"),
    };
    let answer = match answer {
        InAdvance::Value(value) => {
            // A number or a value means an option, which has a label.
            let raw = RawValue::from_string(value.clone()).ok();
            let meant = raw.and_then(|raw| check(ask, &raw, None).ok());
            meant.map_or_else(|| spoken(value, &ask.kind), |answer| shown(&answer, &ask.kind))
        }
        InAdvance::Hidden => "••••••".to_owned(),
        InAdvance::Declined => "declined".to_owned(),
    };
    format!("{name} {answer} (--answer)\n")
}

/// `None`: the answer is not a choice, or allows or denies.
pub(super) fn chosen(question: &Question, given: Option<&Given>) -> Option<String> {
    match (&question.ask.kind, given) {
        (Kind::Select { .. }, Some(Given::Value(value))) if question.ask.purpose != Purpose::Permission => {
            Some(spoken(value.get(), &question.ask.kind))
        }
        _ => None,
    }
}

/// A JSON value as a person reads it: labels in place of an option's values.
fn spoken(value: &str, kind: &Kind) -> String {
    let answer = match serde_json::from_str(value) {
        Ok(Json::Bool(yes)) => Answer::Bool(yes),
        Ok(Json::String(text)) => Answer::One(text.into()),
        Ok(Json::Array(all)) => Answer::Many(
            all.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned).into()).collect(),
        ),
        Ok(Json::Null) => Answer::Null,
        Ok(other @ (Json::Number(_) | Json::Object(_))) => Answer::Text(other.to_string().into()),
        Err(_) => Answer::Text(value.into()),
    };
    shown(&answer, kind)
}

pub(super) fn refusal(why: &str, look: &Look) -> String {
    format!("{}\n", look.paint(Ink::Red, &format!("! {why}")))
}

/// `command`: the words in place of a command that the detail shows.
fn titled(ask: &Ask, command: Option<&str>) -> String {
    // Cleaning would leave out parts of an action.
    let safe = |text: &'_ Text| match ask.purpose {
        Purpose::Permission => escaped(text.shown(), false).into_owned(),
        Purpose::Clarification | Purpose::Input => whole(text.shown()).into_owned(),
    };
    let text = safe(&ask.text);
    let asks = |subject: &Subject| {
        let reason = text.strip_suffix(&format!("Allow {}?", safe(&subject.title)))?;
        let title = || safe(&subject.title);
        let what = command.filter(|_| is_below(subject)).map_or_else(title, str::to_owned);
        (reason.is_empty() || reason.ends_with('\n')).then(|| format!("{reason}Allow {what}?"))
    };
    ask.subject.as_ref().and_then(asks).unwrap_or_else(|| text.clone())
}

/// Whether the detail shows the command of the title.
fn is_below(subject: &Subject) -> bool {
    let title = subject.title.shown();
    let command = title.strip_prefix("Run ").unwrap_or(title).trim();
    subject.category == Category::Execute && subject.detail.shown().contains(command)
}

/// The places and the detail of the permission, each unless the question repeats it.
fn what_exactly(subject: &Subject, text: &str, look: &Look) -> String {
    let detail = escaped(subject.detail.shown(), subject.category.changes_files());
    // The question may repeat the detail, or its first line, such as an address. A command is always shown.
    let is_command = subject.category == Category::Execute;
    let detail = if !is_command && detail.trim() == text.trim() { "" } else { &*detail };
    let (first, rest) = detail.split_once('\n').unwrap_or((detail, ""));
    let is_repeated = !is_command && text.ends_with(&format!(" {first}?"));
    let detail = if is_repeated { rest } else { detail };
    let changes = subject.category.changes_files();
    let path = |place: &Place| escaped(place.path.shown(), false).replace('\n', "\\u{a}");
    let asked = subject.locations.iter().map(path).filter(|path| text.ends_with(&format!(" {path}?")));
    let asked = asked.collect::<Vec<_>>();
    let detail = if changes { without_header(detail, &asked) } else { detail };
    // The lines that a change adds, removes or keeps do not name its file.
    let is_content = |line: &&str| changes && line.starts_with(['+', '-', ' ']);
    let named = text.lines().chain(detail.lines().filter(|line| !is_content(line))).flat_map(paths);
    let named: HashSet<&str> = if subject.locations.is_empty() { HashSet::new() } else { named.collect() };
    let mut out = String::new();
    for place in &subject.locations {
        let path = path(place);
        if !asked.contains(&path) && !named.contains(path.as_str()) {
            let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
            let _ = writeln!(out, "    {path}{line}");
        }
    }
    // Nothing is left out: what a person approves is what runs. The last line of a change has no text after its end.
    let lines = if changes { detail.strip_suffix('\n').unwrap_or(detail) } else { detail };
    for line in lines.split('\n').filter(|_| !detail.is_empty()) {
        let ink = match line.chars().next().filter(|_| changes) {
            Some('+') => Some(Ink::Green),
            Some('-') => Some(Ink::Red),
            _ => None,
        };
        let _ = writeln!(out, "    {}", ink.map_or_else(|| line.to_owned(), |ink| look.paint(ink, line)));
    }
    out
}

/// The parts of a text that may be paths, each with its last parts: `/w/a/b`, `w/a/b`, `a/b`, `b`.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    const PARTS: usize = 32;
    let words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'', ',', '?', ':']));
    // A path with blanks follows one word.
    let rest = line.split_once(' ').map(|(_, rest)| rest.trim_end());
    let parts = |word: &'_ str| word.rmatch_indices('/').take(PARTS).map(|(at, _)| at + 1).collect::<Vec<_>>();
    words.chain(rest).flat_map(move |word| std::iter::once(0).chain(parts(word)).map(move |at| &word[at..]))
}

/// A diff without the header that names its file, if that is the file in the question.
fn without_header<'a>(detail: &'a str, asked: &[String]) -> &'a str {
    let is_asked = |path: &str| asked.iter().any(|file| path == file || path.ends_with(&format!("/{file}")));
    let index = || {
        let (path, rest) = detail.strip_prefix("Index: ")?.split_once('\n')?;
        let (rule, rest) = rest.split_once('\n')?;
        let (old, rest) = rest.strip_prefix("--- ")?.split_once('\n')?;
        let (new, rest) = rest.strip_prefix("+++ ")?.split_once('\n')?;
        let is_rule = rule.bytes().all(|byte| byte == b'=');
        let is_one = [old, new].iter().all(|name| name.trim_end() == path);
        (is_rule && is_one && is_asked(path)).then_some(rest)
    };
    let change = || {
        let (head, rest) = detail.split_once('\n')?;
        let (_, path) =
            head.split_once(' ').filter(|(kind, _)| matches!(*kind, "add" | "update" | "delete" | "file"))?;
        is_asked(path).then_some(rest)
    };
    without_first_hunk(index().or_else(change).unwrap_or(detail))
}

/// `left`: the time left, where it is limited. `back`: whether the question before can be answered anew.
pub(super) fn input(question: &Question, left: Option<Duration>, back: bool, look: &Look) -> String {
    let ask = &question.ask;
    let hint = match &ask.kind {
        Kind::Confirm => "yes or no".to_owned(),
        Kind::Select { choices, .. } if ask.purpose == Purpose::Permission => keys(choices.as_slice()),
        Kind::Select { multiple, allow_other, .. } => {
            let number = if *multiple { "numbers, such as 1,3" } else { "a number" };
            if *allow_other { format!("{number}, or your own text") } else { number.to_owned() }
        }
        Kind::Text => "text".into(),
        Kind::Secret => "text, which is not shown".into(),
        Kind::FilePath => "a path".into(),
    };
    let enter = enter(question).map(|what| format!("Enter: {what}, ")).unwrap_or_default();
    let back = if back { "<: back, " } else { "" };
    let within = left.map(|left| format!(" within {}", span(Duration::from_secs(seconds(left))))).unwrap_or_default();
    let hint = look.paint(Ink::Dim, &format!("Answer{within} with {hint} ({enter}{back}?: help)"));
    let room = " ".repeat(indent(left, look) - MARK.len());
    format!("{hint}\n{room}{MARK}")
}

/// The columns before what is typed.
pub(super) fn indent(left: Option<Duration>, look: &Look) -> usize {
    let room = if left.is_some() && look.live && look.escapes { COUNTDOWN } else { 0 };
    room + MARK.len()
}

/// Writes the time into the room before the mark; the cursor stays. A wrapped input line shows it in its last row.
pub(super) fn countdown(left: Duration) -> String {
    let time = format!("{}s", seconds(left));
    format!("\u{1b}7\r{time:>4}\u{1b}8")
}

/// Rounds up.
pub(super) fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

/// The meaning of Enter alone.
pub(super) fn enter(question: &Question) -> Option<String> {
    let ask = &question.ask;
    match &ask.default {
        Some(default) => Some(shown(default, &ask.kind)),
        None if !ask.required => Some("no answer".into()),
        None => None,
    }
}

fn shown(default: &Answer, kind: &Kind) -> String {
    let label = |value: &Text| {
        let all: &[Choice] = if let Kind::Select { choices, .. } = kind { choices.as_slice() } else { &[] };
        let found = all.iter().find(|choice| choice.value == *value);
        one_line(found.map_or(value, |choice| &choice.label).shown())
    };
    match default {
        Answer::Decision(decision) => label(&decision.word().into()),
        Answer::Bool(true) => "yes".into(),
        Answer::Bool(false) => "no".into(),
        Answer::One(text) | Answer::Text(text) => label(text),
        Answer::Many(texts) => texts.iter().map(label).collect::<Vec<_>>().join(", "),
        Answer::Null => "no answer".into(),
    }
}

const LINES: &str = "For several lines, press Alt-Enter at the end of a line, or paste them: Enter sends all.";

pub(super) fn help(question: &Question, back: bool) -> String {
    let ask = &question.ask;
    let mut lines: Vec<String> = match &ask.kind {
        Kind::Confirm => vec!["Type yes, no, y or n.".into()],
        Kind::Select { choices, .. } if ask.purpose == Purpose::Permission => allowing(choices.as_slice()),
        Kind::Select { multiple, allow_other, .. } => {
            let first = if *multiple {
                "Type numbers or names from the list, separated by commas: 1,3."
            } else {
                "Type a number from the list, or the name beside it."
            };
            let other = ["Any other text is taken as your own answer.", LINES];
            std::iter::once(first).chain(other.into_iter().filter(|_| *allow_other)).map(str::to_owned).collect()
        }
        Kind::Text => vec!["Type one line of text.".into(), LINES.into()],
        Kind::Secret => {
            vec!["Your input is not shown, and is redacted from everything that the run prints.".into(), LINES.into()]
        }
        Kind::FilePath => vec!["Type a path. A relative path starts at the agent's working directory.".into()],
    };
    lines.extend(rules(&ask.validation));
    lines.extend(enter(question).map(|what| format!("Enter alone means: {what}.")));
    lines.extend(back.then(|| "< goes back to the question before.".to_owned()));
    lines.push("Ctrl-D declines to answer. Ctrl-C cancels the run.".into());
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn allowing(all: &[Choice]) -> Vec<String> {
    let mut lines = vec!["y, yes or allow: Allow this request only.".to_owned()];
    if let Some(always) = all.iter().find(|choice| choice.value == ALLOW_ALWAYS) {
        let reach = always.description.as_ref().unwrap_or(&always.label).shown();
        lines.push(format!("a or always: {}", one_line(reach)));
    }
    lines.push("n, no or deny: Deny it. To tell the agent why, add words: n use the other file.".into());
    lines
}

fn rules(rules: &Validation) -> Vec<String> {
    let whole = rules.integer == Some(true);
    let number = rules.min.is_some() || rules.max.is_some() || whole;
    let path = match (rules.path_type, rules.must_exist) {
        (Some(PathType::File), Some(true)) => Some("It must be a file that exists."),
        (Some(PathType::Directory), Some(true)) => Some("It must be a directory that exists."),
        (Some(PathType::File), _) => Some("It must not be a directory."),
        (Some(PathType::Directory), _) => Some("It must not be a file."),
        (None, Some(true)) => Some("It must exist."),
        (None, _) => None,
    };
    [
        number.then(|| if whole { "It must be a whole number.".to_owned() } else { "It must be a number.".into() }),
        rules.min.map(|least| format!("It must be at least {least}.")),
        rules.max.map(|most| format!("It may be at most {most}.")),
        rules.min_length.map(|least| format!("It needs at least {least} characters.")),
        rules.max_length.map(|most| format!("It may have at most {most} characters.")),
        rules.pattern.as_ref().map(|pattern| format!("It must match the pattern {}", one_line(pattern.shown()))),
        rules.min_selected.map(|least| format!("Choose at least {least}.")),
        rules.max_selected.map(|most| format!("Choose at most {most}.")),
        path.map(str::to_owned),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{question, titled, without_header};
    use crate::protocol::outbound::Question;
    use crate::protocol::question::{Ask, Place, Subject};
    use crate::protocol::request::Seconds;
    use crate::protocol::words::Category;
    use crate::terminal::screen::Look;
    use crate::terminal::width::wrap;

    fn asked(category: Category, detail: &str, paths: &[&str]) -> String {
        let locations = paths.iter().map(|path| Place { path: (*path).into(), line: None }).collect();
        let subject = Subject::new(category, "Tool: it", locations, detail);
        let ask = Ask::permission(subject, "Allow Tool: it?", None);
        let (question_id, timeout_s) = ("q_1_1".to_owned().into(), Seconds(60.0));
        let asked = Question {
            question_id,
            group_id: "g".into(),
            group_size: 1,
            timeout_s,
            attempt: 1,
            error: None,
            ask,
            truncated: false,
        };
        question(&asked, 1, &Look::default())
    }

    /// The detail that a question on a terminal shows, with its rows and its escapes turned back.
    fn turned_back(shown: &str) -> String {
        let shown = shown.replace("\n  ↳   ", "");
        let lines: Vec<&str> = shown.strip_suffix('\n').unwrap().split('\n').collect();
        let options = lines.iter().rposition(|line| line.starts_with("    ")).unwrap();
        let detail: Vec<&str> = lines[1..=options].iter().map(|line| line.strip_prefix("    ").unwrap()).collect();
        let mut parts = detail.join("\n");
        let mut out = String::new();
        while let Some((before, escape)) = parts.split_once("\\u{") {
            let (code, rest) = escape.split_once('}').unwrap();
            out.push_str(before);
            out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            parts = rest.to_owned();
        }
        out + &parts
    }

    proptest::proptest! {
        /// Whatever a command holds, the terminal shows exactly this command.
        #[test]
        fn a_command_on_a_terminal_can_be_turned_back(
            // The question itself fits into one row.
            width in 24..200_usize,
            command in "([a-z ;|&\\\\{}u0-9\n\t]|\\\\u\\{1b\\}|@@ -0,0 \n|Index: a\n|\u{1b}\\];|\u{7}|\u{9b}|\r|\u{202e}|\u{200b}|.){1,60}( {0,3}[a-z]{1,90}(\n  )?){0,9}",
        ) {
            proptest::prop_assume!(!command.trim().is_empty());
            let shown = wrap(&asked(Category::Execute, &command, &[]), width);
            proptest::prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'));
            proptest::prop_assert_eq!(turned_back(&shown), command);
        }
    }

    #[test]
    fn neither_a_header_nor_a_file_is_left_out_because_the_content_names_it() {
        let diff = "@@ -0,0 +1 @@\n+ /etc/passwd\n";
        assert!(asked(Category::Execute, diff, &[]).contains("    @@ -0,0 +1 @@\n"));
        assert!(asked(Category::Execute, " Allow Run it?", &[]).contains("\n     Allow Run it?\n"));
        let edit = asked(Category::Edit, "+ /etc/passwd\n+/etc/passwd", &["/etc/passwd"]);
        assert!(edit.contains("\n    file /etc/passwd\n"), "{edit}");
        let named = asked(Category::Edit, "update /etc/passwd\n+x", &["/etc/passwd"]);
        assert!(!named.contains("\n    /etc/passwd\n"), "{named}");
        let path = "/tmp/a\u{1b}]/../../etc/passwd\u{7}";
        let edit = asked(Category::Edit, "+x", &[path]);
        assert!(edit.contains("\n    file /tmp/a\\u{1b}]/../../etc/passwd\\u{7}\n"), "{edit}");
    }

    #[test]
    fn a_question_about_a_permission_keeps_the_agents_reason() {
        let asked = |text: &str| {
            let (title, detail) = ("Run touch a", "touch a");
            let subject = Subject::new(Category::Execute, title, Vec::new(), detail);
            Ask::permission(subject, text, None)
        };
        for (text, shown, in_one_line) in [
            ("Allow Run touch a?", "Allow this command?", "Allow Run touch a?"),
            ("I need a.\nAllow Run touch a?", "I need a.\nAllow this command?", "I need a.\nAllow Run touch a?"),
            ("May I? Allow Run touch a?", "May I? Allow Run touch a?", "May I? Allow Run touch a?"),
            ("Allow it?", "Allow it?", "Allow it?"),
        ] {
            let ask = asked(text);
            assert_eq!(
                (titled(&ask, Some("this command")).as_str(), titled(&ask, None).as_str()),
                (shown, in_one_line)
            );
        }
    }

    #[test]
    fn a_diff_of_the_file_in_the_question_needs_no_header() {
        let diff = |old: &str, new: &str| format!("Index: /w/a/b.md\n====\n--- {old}\n+++ {new}\n@@ -0,0 +1 @@\n+x");
        let asked = ["a/b.md".to_owned()];
        assert_eq!(without_header(&diff("/w/a/b.md", "/w/a/b.md\t"), &asked), "+x");
        assert_eq!(without_header("add /w/a/b.md\n+x", &asked), "+x");
        assert_eq!(without_header("update a/b.md\n@@ -1 +1 @@\n-x\n+y", &asked), "@@ -1 +1 @@\n-x\n+y");
        for (detail, asked) in [
            (diff("/w/a/b.md", "/w/a/c.md"), &asked[..]),
            (diff("/w/a/b.md", "/w/a/b.md"), &[]),
            (diff("/w/a/b.md", "/w/a/b.md"), &["/b.md".to_owned()]),
            ("add /w/a/c.md\n+x".to_owned(), &asked[..]),
            ("--- /w/a/b.md\n+++ /w/a/b.md\n+x".to_owned(), &asked[..]),
        ] {
            assert_eq!(without_header(&detail, asked), detail);
        }
    }
}

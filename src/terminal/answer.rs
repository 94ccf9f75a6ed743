//! Interprets a typed line as an answer. Pure: the run checks the answer again, and checks paths.

use crate::clean::one_line;
use crate::protocol::outbound::Question;
use crate::protocol::question::{ALLOW_ALWAYS, ALLOW_ONCE, Ask, Choice, DENY, Given, Kind, Validation, check};
use crate::protocol::words::Purpose;
use crate::suggest::nearest;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

#[derive(Debug)]
pub(super) enum Meaning {
    Explain,
    /// An answer; with a denial, also the words for the agent.
    Answer(Given, Option<String>),
    Refused(String),
}

/// `home`: what `~` stands for in a path.
pub(super) fn read(question: &Question, line: &str, home: Option<&str>) -> Meaning {
    let (ask, text) = (&question.ask, line.trim());
    if text == "?" {
        return Meaning::Explain;
    }
    let read = match (&ask.kind, text, &ask.default) {
        (_, "", Some(default)) => raw(&default.unredacted()),
        (Kind::Text | Kind::Secret | Kind::FilePath, "", None) if !ask.required => raw(&()),
        (Kind::Confirm | Kind::Select { multiple: false, .. }, "", None) if !ask.required => raw(&()),
        (Kind::Confirm, ..) => raw(&text),
        // Enter alone does not mean an empty text.
        (Kind::Text | Kind::Secret, "", None) => Err("An answer is required. Ctrl-D declines to give one.".into()),
        (Kind::Text | Kind::Secret, ..) => raw(&line),
        (Kind::FilePath, ..) if text.contains('\n') => Err("Answer with one path, on one line.".into()),
        (Kind::FilePath, ..) => raw(&at_home(text, home)),
        (Kind::Select { choices, .. }, ..) if ask.purpose == Purpose::Permission => {
            return permission(choices.as_slice(), text);
        }
        (Kind::Select { choices, multiple, allow_other }, ..) => {
            let all = choices.as_slice();
            if *multiple {
                several(all, *allow_other, text)
            } else {
                one(all, *allow_other, text).and_then(|v| raw(&v))
            }
        }
    };
    // The run checks the pattern: the copy shown here may be redacted.
    let ask = &Ask { validation: Validation { pattern: None, ..ask.validation.clone() }, ..ask.clone() };
    let checked = read.and_then(|value| match check(ask, &value, None) {
        Ok(_) => Ok(value),
        Err(_) if ask.kind == Kind::Confirm => Err("Answer yes or no.".into()),
        Err(why) => Err(why),
    });
    match checked {
        Ok(value) => Meaning::Answer(Given::Value(value), None),
        Err(why) => Meaning::Refused(why),
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, String> {
    to_raw_value(value).map_err(|_| "This answer could not be used.".into())
}

/// A key or a word that allows or denies. Words after a denial are for the agent.
fn permission(all: &[Choice], text: &str) -> Meaning {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (word, rest) = (word.trim_end_matches([',', ':', '.']).to_lowercase(), rest.trim());
    let (value, message) = match word.as_str() {
        "n" | "no" | "deny" => (DENY.to_owned(), Some(rest.to_owned()).filter(|rest| !rest.is_empty())),
        "y" | "yes" | "allow" if rest.is_empty() => (ALLOW_ONCE.to_owned(), None),
        "a" | "always" if rest.is_empty() => (ALLOW_ALWAYS.to_owned(), None),
        _ => (one(all, false, text).unwrap_or_default(), None),
    };
    match raw(&value) {
        Ok(raw) if all.iter().any(|choice| choice.value == value.as_str()) => {
            Meaning::Answer(Given::Value(raw), message)
        }
        _ => Meaning::Refused(format!("Answer {}.", keys(all))),
    }
}

/// As a person reads them: `y, a or n`.
pub(super) fn keys(all: &[Choice]) -> String {
    let keys: Vec<&str> = all.iter().filter_map(|choice| key(choice.value.shown())).collect();
    match keys.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => keys.concat(),
    }
}

pub(super) fn key(value: &str) -> Option<&'static str> {
    [(ALLOW_ONCE, "y"), (ALLOW_ALWAYS, "a"), (DENY, "n")].iter().find(|(name, _)| *name == value).map(|(_, key)| *key)
}

/// The value of an option by its name or number, or a free text.
fn one(all: &[Choice], allow_other: bool, text: &str) -> Result<String, String> {
    let same = |name: &str| name.trim().to_lowercase() == text.to_lowercase();
    let by_value = all.iter().find(|c| c.value == text);
    let by_label = || all.iter().find(|c| same(c.label.shown()));
    let by_number = || all.get(digits(text)?.parse::<usize>().ok()?.checked_sub(1)?);
    let chosen = by_value.or_else(by_label).or_else(|| yes_or_no(all, text)).or_else(by_number);
    if let Some(choice) = chosen {
        return Ok(choice.value.shown().to_owned());
    }
    let range = format!("Answer with a number from 1 to {}.", all.len());
    match allow_other {
        true if !text.is_empty() && !is_slip(all, text) => Ok(text.to_owned()),
        true => Err(format!("{range} Your own text must be more than numbers, y or n.")),
        false => Err(range),
    }
}

/// Numbers alone, numbers of several options with signs between them, `y` or `n`: never a free text.
fn is_slip(all: &[Choice], text: &str) -> bool {
    let are_numbers =
        text.split(|c: char| c == ',' || c.is_whitespace()).all(|part| part.is_empty() || digits(part).is_some());
    are_numbers || joins_options(all, text) || ["y", "n"].iter().any(|key| text.eq_ignore_ascii_case(key))
}

/// The numbers of several options with signs between them: `1;3`, `1-3`, `1 & 3`. A version and a time are not.
fn joins_options(all: &[Choice], text: &str) -> bool {
    let is_sign = |c: char| c.is_whitespace() || ",;&+/|-".contains(c);
    let fits = |part: &str| part.parse().is_ok_and(|number: usize| (1..=all.len()).contains(&number));
    let numbers: Vec<&str> = text.split(is_sign).filter(|part| !part.is_empty()).collect();
    numbers.len() > 1 && numbers.into_iter().all(fits)
}

/// The digits of a number, which may end as it does in the list: `1.`.
fn digits(text: &str) -> Option<&str> {
    let digits = text.strip_suffix(['.', ')']).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

/// The only option that begins with the word yes, if the text is `y` or `yes`; likewise for no.
fn yes_or_no<'a>(all: &'a [Choice], text: &str) -> Option<&'a Choice> {
    let word = match text.to_lowercase().as_str() {
        "y" | "yes" => "yes",
        "n" | "no" => "no",
        _ => return None,
    };
    let begins = |choice: &&Choice| {
        let label = choice.label.shown().trim().to_lowercase();
        label.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let mut found = all.iter().filter(begins);
    found.next().filter(|_| found.next().is_none())
}

/// The maximum length of a label, in bytes, that has no similar texts.
const SHORT: usize = 3;

/// The label of the option that a typed text resembles, if the question accepts any text.
pub(super) fn nearly(question: &Question, line: &str) -> Option<String> {
    let Kind::Select { choices, multiple: false, allow_other: true } = &question.ask.kind else { return None };
    let (all, text) = (choices.as_slice(), line.trim().to_lowercase());
    if one(all, false, line.trim()).is_ok() || is_slip(all, line.trim()) {
        return None;
    }
    let lower: Vec<String> = all.iter().map(|choice| choice.label.shown().trim().to_lowercase()).collect();
    let mut longer = lower.iter().filter(|label| !text.is_empty() && label.starts_with(&text));
    let only = longer.next().filter(|_| longer.next().is_none()).map(String::as_str);
    // Too many words resemble a short label.
    let near = || nearest(&text, lower.iter().map(String::as_str).filter(|label| label.len() > SHORT));
    let near = only.or_else(near)?;
    lower.iter().position(|label| label == near).and_then(|at| all.get(at)).map(|choice| one_line(choice.label.shown()))
}

/// Numbers and names separated by commas; numbers also by spaces.
fn several(all: &[Choice], allow_other: bool, text: &str) -> Result<Box<RawValue>, String> {
    if let Ok(value) = one(all, false, text) {
        return raw(&[value]);
    }
    let numbers = text.split_whitespace().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    let parts: Vec<&str> = if numbers && !text.contains(',') {
        text.split_whitespace().collect()
    } else {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    };
    let listed = parts.iter().any(|part| one(all, false, part).is_ok() || is_slip(all, part));
    if !listed && allow_other && !parts.is_empty() {
        return raw(&[text]);
    }
    let values: Result<Vec<String>, String> = parts.iter().map(|part| one(all, allow_other, part)).collect();
    raw(&values.map_err(|_| format!("Answer with numbers from 1 to {}, such as 1,2.", all.len()))?)
}

fn at_home(path: &str, home: Option<&str>) -> String {
    match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Meaning, nearly, read};
    use crate::protocol::outbound::Question;
    use crate::protocol::question::{Answer, Ask, Choice, Choices, Given, Kind, Subject, Validation};
    use crate::protocol::request::Seconds;
    use crate::protocol::scope::Scope;
    use crate::protocol::words::{Category, Purpose};

    fn question(ask: Ask) -> Question {
        Question {
            question_id: "q".into(),
            group_id: "g".into(),
            group_size: 1,
            ask,
            timeout_s: Seconds(1.0),
            attempt: 1,
            error: None,
            truncated: false,
        }
    }

    fn select(multiple: bool, allow_other: bool) -> Ask {
        let option =
            |label: &str| Choice { value: label.to_lowercase().into(), label: label.into(), description: None };
        let choices = Choices::new(["Red", "Green", "Blue"].map(option)).unwrap();
        Ask::new(Purpose::Clarification, Kind::Select { choices, multiple, allow_other }, "", "Which?")
    }

    fn meant(ask: &Ask, line: &str) -> String {
        match read(&question(ask.clone()), line, Some("/home/me")) {
            Meaning::Explain => "explain".into(),
            Meaning::Answer(Given::Value(value), None) => value.get().into(),
            Meaning::Answer(Given::Value(value), Some(message)) => format!("{} because {message}", value.get()),
            Meaning::Answer(..) => "declined".into(),
            Meaning::Refused(why) => format!("! {why}"),
        }
    }

    #[test]
    fn a_choice_is_a_number_a_name_or_where_allowed_a_text() {
        const OWN: &str = "! Answer with a number from 1 to 3. Your own text must be more than numbers, y or n.";
        for (line, closed, open) in [
            ("2", "\"green\"", "\"green\""),
            (" GREEN ", "\"green\"", "\"green\""),
            ("0", "! Answer with a number from 1 to 3.", OWN),
            ("4", "! Answer with a number from 1 to 3.", OWN),
            ("99999999999999999999999", "! Answer with a number from 1 to 3.", OWN),
            ("2.", "\"green\"", "\"green\""),
            ("1 3", "! Answer with a number from 1 to 3.", OWN),
            ("1, 3", "! Answer with a number from 1 to 3.", OWN),
            ("4.", "! Answer with a number from 1 to 3.", OWN),
            ("y", "! Answer with a number from 1 to 3.", OWN),
            ("N", "! Answer with a number from 1 to 3.", OWN),
            ("+1", "! Answer with a number from 1 to 3.", "\"+1\""),
            ("3.11", "! Answer with a number from 1 to 3.", "\"3.11\""),
            ("1;3", "! Answer with a number from 1 to 3.", OWN),
            ("1-3", "! Answer with a number from 1 to 3.", OWN),
            ("1 & 3", "! Answer with a number from 1 to 3.", OWN),
            ("24/7", "! Answer with a number from 1 to 3.", "\"24/7\""),
            ("2026-11-25", "! Answer with a number from 1 to 3.", "\"2026-11-25\""),
            ("pink", "! Answer with a number from 1 to 3.", "\"pink\""),
            ("", "! Answer with a number from 1 to 3.", OWN),
            ("?", "explain", "explain"),
        ] {
            assert_eq!(meant(&select(false, false), line), closed, "{line}");
            assert_eq!(meant(&select(false, true), line), open, "{line}");
        }
        let default = Ask { default: Some(Answer::One("red".into())), ..select(false, true) };
        assert_eq!(
            (meant(&default, ""), meant(&Ask { required: false, ..select(false, true) }, "")),
            ("\"red\"".to_owned(), "null".to_owned())
        );
    }

    #[test]
    fn y_and_n_choose_the_only_option_that_says_so() {
        let options = |labels: &[&str]| {
            let option = |label: &&str| Choice { value: (*label).into(), label: (*label).into(), description: None };
            let choices = Choices::new(labels.iter().map(option)).unwrap();
            Ask::new(Purpose::Clarification, Kind::Select { choices, multiple: false, allow_other: true }, "", "Go?")
        };
        let (plain, long) = (options(&["Yes", "No"]), options(&["No, wait", "Yes (Recommended)"]));
        for line in ["y", "Y", "yes"] {
            assert_eq!(
                (meant(&plain, line).as_str(), meant(&long, line).as_str()),
                ("\"Yes\"", "\"Yes (Recommended)\"")
            );
        }
        assert_eq!(meant(&long, "n"), "\"No, wait\"");
        // A key that no single option says is a slip.
        assert_eq!(
            meant(&options(&["Node", "Yes, all", "Yes, some"]), "y"),
            "! Answer with a number from 1 to 3. Your own text must be more than numbers, y or n."
        );
        assert_eq!(
            meant(&options(&["Node", "Rust"]), "n"),
            "! Answer with a number from 1 to 2. Your own text must be more than numbers, y or n."
        );
        assert_eq!(meant(&options(&["Node", "Rust"]), "no"), "\"no\"");
    }

    #[test]
    fn a_beginning_or_a_misspelling_of_one_option_is_doubtful() {
        let near = |line: &str| nearly(&question(select(false, true)), line);
        assert_eq!(
            (near("gr"), near("gren"), near("BLU")),
            (Some("Green".into()), Some("Green".into()), Some("Blue".into()))
        );
        assert_eq!((near("green"), near("pink"), near(""), near("2")), (None, None, None, None));
    }

    #[test]
    fn several_are_numbers_and_names_with_commas() {
        for (line, closed, open) in [
            ("1,3", "[\"red\",\"blue\"]", "[\"red\",\"blue\"]"),
            ("1 3", "[\"red\",\"blue\"]", "[\"red\",\"blue\"]"),
            ("blue, 1,", "[\"blue\",\"red\"]", "[\"blue\",\"red\"]"),
            (
                "1,4",
                "! Answer with numbers from 1 to 3, such as 1,2.",
                "! Answer with numbers from 1 to 3, such as 1,2.",
            ),
            (
                "4 5",
                "! Answer with numbers from 1 to 3, such as 1,2.",
                "! Answer with numbers from 1 to 3, such as 1,2.",
            ),
            ("y", "! Answer with numbers from 1 to 3, such as 1,2.", "! Answer with numbers from 1 to 3, such as 1,2."),
            ("N", "! Answer with numbers from 1 to 3, such as 1,2.", "! Answer with numbers from 1 to 3, such as 1,2."),
            (
                "1, y",
                "! Answer with numbers from 1 to 3, such as 1,2.",
                "! Answer with numbers from 1 to 3, such as 1,2.",
            ),
            (
                "1-3",
                "! Answer with numbers from 1 to 3, such as 1,2.",
                "! Answer with numbers from 1 to 3, such as 1,2.",
            ),
            (
                "1 & 2",
                "! Answer with numbers from 1 to 3, such as 1,2.",
                "! Answer with numbers from 1 to 3, such as 1,2.",
            ),
            ("1, pink", "! Answer with numbers from 1 to 3, such as 1,2.", "[\"red\",\"pink\"]"),
            ("pink, and grey", "! Answer with numbers from 1 to 3, such as 1,2.", "[\"pink, and grey\"]"),
            ("", "! Choose at least 1.", "! Choose at least 1."),
        ] {
            assert_eq!(meant(&select(true, false), line), closed, "{line}");
            assert_eq!(meant(&select(true, true), line), open, "{line}");
        }
        assert_eq!(meant(&Ask { required: false, ..select(true, false) }, ""), "[]");
    }

    #[test]
    fn a_permission_has_keys_and_a_denial_may_say_why() {
        let subject = Subject::new(Category::Execute, "x", Vec::new(), "");
        let scope = Scope::of_request(Category::Execute, None, Some("x"));
        let (ask, never) =
            (Ask::permission(subject.clone(), "Allow?", scope), Ask::permission(subject, "Allow?", None));
        for line in ["y", "YES", "allow", "Allow once", "1"] {
            assert_eq!(meant(&ask, line), "\"allow_once\"", "{line}");
        }
        for line in ["a", "always", "Allow this exact command for this run"] {
            assert_eq!(
                (meant(&ask, line), meant(&never, line)),
                ("\"allow_always\"".into(), "! Answer y or n.".into())
            );
        }
        for line in ["n", "No", "deny", ""] {
            assert_eq!(meant(&ask, line), "\"deny\"", "{line}");
        }
        assert_eq!(meant(&ask, "n: use npm ci"), "\"deny\" because use npm ci");
        for line in ["yes but carefully", "maybe", "4"] {
            assert_eq!(meant(&ask, line), "! Answer y, a or n.", "{line}");
        }
    }

    #[test]
    fn texts_paths_and_confirmations_are_read() {
        let of = |kind| Ask::new(Purpose::Input, kind, "", "What?");
        assert_eq!(meant(&of(Kind::Confirm), "Y"), "\"Y\"");
        assert_eq!(meant(&of(Kind::Confirm), "perhaps"), "! Answer yes or no.");
        assert_eq!(meant(&of(Kind::Secret), ""), "! An answer is required. Ctrl-D declines to give one.");
        assert_eq!(meant(&of(Kind::Secret), " pass word "), "\" pass word \"");
        assert_eq!(meant(&of(Kind::FilePath), " ~/a b "), "\"/home/me/a b\"");
        assert_eq!(meant(&of(Kind::FilePath), "~you/a"), "\"~you/a\"");
        assert_eq!(meant(&of(Kind::FilePath), ""), "! Answer with a path.");
        let rules = Validation { min: Some(1.0), integer: Some(true), ..Validation::default() };
        let number = Ask { validation: rules, default: Some(Answer::Text("80".into())), ..of(Kind::Text) };
        assert_eq!(meant(&number, "0"), "! The number must be at least 1.");
        assert_eq!(meant(&number, ""), "\"80\"");
        assert_eq!(meant(&Ask { required: false, ..of(Kind::Text) }, ""), "null");
    }
}

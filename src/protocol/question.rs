//! Questions, and the check of their answers. Drivers and the protocol share these types.

use super::declare::objects;
use super::ids::CallId;
pub use super::input::{AnswerInput, Given};
use super::limited::{Limited, unique};
use super::limits::{OPTIONS, QUESTIONS};
use super::parts::Cut;
use super::pattern::Pattern;
use super::scope::Scope;
use super::text::Text;
use super::words::{Category, PathType, Policy, Purpose, QuestionKind, word_enums};
use crate::json::{number, string};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

objects! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Choice {
        /// The value that an answer names, unique in its question.
        pub value: Text as answer,
        /// The text that a person reads, unique in its question.
        pub label: Text as answer,
        /// A longer description.
        pub description: Option<Text> as known output,
    }
}

impl Choice {
    /// Creates an option whose label is its value. Drops an empty description.
    pub fn labelled(label: String, description: Option<String>) -> Choice {
        let label = Text::from(label);
        let description = description.filter(|text| !text.is_empty()).map(Text::from);
        Choice { value: label.clone(), label, description }
    }
}

/// The options of a select: at least one, with unique values and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices(Limited<Choice, OPTIONS>);

impl Choices {
    /// Of options that share a value or a label, keeps the first. `None`: the list is empty.
    pub fn new(all: impl IntoIterator<Item = Choice>) -> Option<Choices> {
        let all: Vec<Choice> = all.into_iter().collect();
        let new = unique(&all, |choice| (&choice.value, &choice.label));
        let kept: Limited<Choice, OPTIONS> =
            all.into_iter().zip(new).filter_map(|(one, new)| new.then_some(one)).collect();
        (!kept.is_empty()).then_some(Choices(kept))
    }

    pub fn warning(&self, of: &str) -> Option<String> {
        self.0.warning("option", "options", of)
    }

    pub fn as_slice(&self) -> &[Choice] {
        &self.0
    }

    /// For redacting and cutting their texts. Values and labels must stay unique.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Choice> {
        self.0.elements_mut().iter_mut()
    }
}

impl Cut for Choices {
    fn count(&self) -> usize {
        // A question without options cannot be answered, so one option stays.
        self.0.len().saturating_sub(1)
    }
    fn cut(&mut self, count: usize) {
        self.0.elements_mut().truncate(count + 1);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Confirm,
    Select {
        choices: Choices,
        multiple: bool,
        allow_other: bool,
    },
    Text,
    /// Text that is redacted everywhere.
    Secret,
    FilePath,
}

impl Kind {
    /// A select of these options that also accepts another text. Without options, a text.
    pub fn open(choices: Option<Choices>, multiple: bool) -> Kind {
        choices.map_or(Kind::Text, |choices| Kind::Select { choices, multiple, allow_other: true })
    }

    pub fn word(&self) -> QuestionKind {
        match self {
            Kind::Confirm => QuestionKind::Confirm,
            Kind::Select { .. } => QuestionKind::Select,
            Kind::Text => QuestionKind::Text,
            Kind::Secret => QuestionKind::Secret,
            Kind::FilePath => QuestionKind::FilePath,
        }
    }
}

objects! {
    /// Rules that do not apply are absent.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Validation {
        /// The least length of the answer, in characters.
        pub min_length: Option<u64> as known,
        /// The greatest length of the answer, in characters.
        pub max_length: Option<u64> as known,
        /// A regular expression that the answer must match.
        pub pattern: Option<Text> as known whole,
        /// False if the pattern is too large or its dialect is not supported, otherwise absent.
        pub pattern_checked: Option<bool> as known,
        /// The least number.
        pub min: Option<f64> as known,
        /// The greatest number.
        pub max: Option<f64> as known,
        /// Whether the number must be whole.
        pub integer: Option<bool> as known,
        /// The least number of options to choose.
        pub min_selected: Option<u64> as known,
        /// The greatest number of options to choose.
        pub max_selected: Option<u64> as known,
        /// Whether the path must exist.
        pub must_exist: Option<bool> as known,
        /// The kind of file that the path must name.
        pub path_type: Option<PathType> as known,
    }
}

impl Validation {
    pub(crate) fn note_unchecked(&mut self) {
        let unchecked = self.pattern.as_ref().is_some_and(|pattern| Pattern::new(pattern.unredacted()).is_none());
        self.pattern_checked = unchecked.then_some(false);
    }
}

objects! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Place {
        /// The path as the agent reports it. In a frame, it is relative to the working directory if it is inside, otherwise
        /// absolute.
        pub path: Text as inherited,
        /// The line number, from 1.
        pub line: Option<u64> as known,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Subject {
        /// The kind of tool.
        pub category: Category,
        /// The title. A frame shows its first line.
        pub title: Text as inherited,
        /// The files that the action concerns.
        pub locations: Vec<Place> as inherited,
        /// The exact action to allow, such as the command or the diff.
        pub detail: Text as inherited,
        /// The tool call that needs the permission. Null: no frame shows the call.
        pub call_id: Option<CallId>,
    }
}

impl Subject {
    /// The run adds the tool call. The detail of a change names each of its files.
    pub fn new(category: Category, title: impl Into<Text>, locations: Vec<Place>, detail: impl Into<Text>) -> Subject {
        let mut detail = detail.into();
        if category.changes_files() {
            detail = with_files(&locations, detail);
        }
        Subject { category, title: title.into(), locations, detail, call_id: None }
    }
}

/// The detail of a change, after a line for each file that none of its own lines names. The content of a file does not
/// count: it could name another one.
fn with_files(locations: &[Place], detail: Text) -> Text {
    let lines = detail.unredacted().lines().filter(|line| !line.starts_with(['+', '-', ' ']));
    let named: HashSet<&str> =
        lines.flat_map(|line| [" ", ": "].map(|end| line.split_once(end))).flatten().map(|at| at.1).collect();
    let heads = locations.iter().map(|place| file_line("file", place.path.unredacted()));
    let unnamed: String = heads.filter(|head| !named.contains(head["file ".len()..].trim_end())).collect();
    if unnamed.is_empty() { detail } else { format!("{unnamed}{}", detail.unredacted()).into() }
}

/// The line that begins the change of a file: what happens to it, and its whole path.
pub(crate) fn file_line(what: &str, path: &str) -> String {
    // A path with a line break could look like a change.
    format!("{what} {}\n", path.replace('\n', "\\n"))
}

/// Decides before the policy of the run does. A workflow uses it to allow the actions that its own prompt needs.
pub trait Judge: std::fmt::Debug + Send + Sync {
    /// `also`: further categories of the request. `None`: the policy decides.
    fn decide(&self, subject: &Subject, also: &[Category]) -> Option<Policy>;

    /// Whether the agent needs no permission to look at the project.
    fn lets_read(&self) -> bool {
        false
    }
}

/// A question from the agent, before it gets an id and a clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub purpose: Purpose,
    pub kind: Kind,
    /// A frame shows at most [`crate::protocol::limits::HEADER_CHARS`] characters of it.
    pub header: Text,
    pub text: Text,
    pub default: Option<Answer>,
    pub validation: Validation,
    pub required: bool,
    pub subject: Option<Subject>,
    /// For a permission: the requests that "always" covers. `None`: "always" is not offered.
    pub scope: Option<Scope>,
    /// For a permission: further categories of the same request. The strictest of their policies decides.
    pub also: Vec<Category>,
}

pub type Asks = Limited<Ask, QUESTIONS>;

pub fn one(ask: Ask) -> Asks {
    std::iter::once(ask).collect()
}

impl Ask {
    /// A required question without a default or validation.
    pub fn new(purpose: Purpose, kind: Kind, header: impl Into<Text>, text: impl Into<Text>) -> Ask {
        Ask {
            purpose,
            kind,
            header: header.into(),
            text: text.into(),
            default: None,
            validation: Validation::default(),
            required: true,
            subject: None,
            scope: None,
            also: Vec::new(),
        }
    }

    /// The shape is the same for every agent. `scope`: the requests that "always" covers.
    pub fn permission(subject: Subject, text: impl Into<Text>, scope: Option<Scope>) -> Ask {
        let once = option(ALLOW_ONCE, "Allow once", None);
        let always = scope.as_ref().map(|scope| option(ALLOW_ALWAYS, scope.label(), Some(scope.description())));
        let all = std::iter::once(once).chain(always).chain([option(DENY, "Deny", None)]);
        let choices = Choices(all.collect());
        Ask { scope, ..Ask::deniable(subject, text, choices) }
    }

    /// Creates a permission that can only be denied, because the agent offers no way to allow this request alone.
    pub fn denial(subject: Subject, text: impl Into<Text>) -> Ask {
        Ask::deniable(subject, text, Choices([option(DENY, "Deny", None)].into_iter().collect()))
    }

    fn deniable(subject: Subject, text: impl Into<Text>, choices: Choices) -> Ask {
        let kind = Kind::Select { choices, multiple: false, allow_other: false };
        Ask {
            default: Some(Answer::Decision(Decision::Deny)),
            subject: Some(subject),
            ..Ask::new(Purpose::Permission, kind, "Permission", text)
        }
    }

    pub fn offers(&self, value: &str) -> bool {
        matches!(&self.kind, Kind::Select { choices, .. } if choices.0.iter().any(|choice| choice.value == value))
    }
}

fn option(value: &str, label: &str, description: Option<&str>) -> Choice {
    Choice { value: value.into(), label: label.into(), description: description.map(Text::from) }
}

pub const ALLOW_ONCE: &str = "allow_once";
/// The permission option that allows all requests within its scope for the rest of the run.
pub const ALLOW_ALWAYS: &str = "allow_always";
/// Always offered.
pub const DENY: &str = "deny";

word_enums! {
    /// The answer to a permission. Its words are the protocol's own, so that no secret can hide them.
    pub enum Decision { AllowOnce = ALLOW_ONCE, AllowAlways = ALLOW_ALWAYS, Deny = DENY }
}

/// A valid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Decision(Decision),
    /// The answer to a confirm.
    Bool(bool),
    /// The answer to a select: an option's value, or free text.
    One(Text),
    /// The answer to a select with several values.
    Many(Vec<Text>),
    /// The answer to a text, secret or file_path.
    Text(Text),
    /// No answer, which only an optional question accepts.
    Null,
}

impl Answer {
    /// For the agent, or for a question that is already redacted.
    pub fn unredacted(&self) -> Value {
        match self {
            Answer::Decision(decision) => decision.word().into(),
            Answer::Bool(answer) => Value::Bool(*answer),
            Answer::One(text) | Answer::Text(text) => text.unredacted().into(),
            Answer::Many(texts) => texts.iter().map(Text::unredacted).collect(),
            Answer::Null => Value::Null,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFact {
    Missing,
    /// A file, or anything else that is not a directory.
    File,
    Directory,
}

/// The reason why an answer is invalid: a sentence for the person who gave it, which does not quote the answer.
pub type BadAnswer = String;

/// `path`: the kind of file at the path that the value names.
pub fn check(ask: &Ask, value: &RawValue, path: Option<PathFact>) -> Result<Answer, BadAnswer> {
    if value.get() == "null" {
        return if ask.required { Err("An answer is required.".into()) } else { Ok(Answer::Null) };
    }
    let rules = &ask.validation;
    match &ask.kind {
        Kind::Confirm => confirm(value),
        Kind::Select { choices, multiple: false, allow_other } => {
            let chosen = choose(&Named::new(choices), *allow_other, value)?;
            let decision = Decision::from_word(chosen.unredacted()).filter(|_| ask.purpose == Purpose::Permission);
            Ok(decision.map_or(Answer::One(chosen), Answer::Decision))
        }
        Kind::Select { choices, multiple: true, allow_other } => {
            several(choices, *allow_other, value, rules, ask.required)
        }
        Kind::Text | Kind::Secret => {
            let whole = number(value).filter(|_| ask.kind == Kind::Text && rules.integer == Some(true));
            let text =
                string(value).or_else(|| whole.map(|number| number.to_string())).ok_or("Answer with a string.")?;
            text_fits(&text, rules)?;
            Ok(Answer::Text(text.into()))
        }
        Kind::FilePath => {
            let text = string(value).filter(|s| !s.is_empty() && !s.contains('\0')).ok_or("Answer with a path.")?;
            text_fits(&text, rules)?;
            path_fits(path, rules)?;
            Ok(Answer::Text(text.into()))
        }
    }
}

fn confirm(value: &RawValue) -> Result<Answer, BadAnswer> {
    let word = string(value).unwrap_or_else(|| value.get().to_owned()).trim().to_lowercase();
    match word.as_str() {
        "true" | "yes" | "y" => Ok(Answer::Bool(true)),
        "false" | "no" | "n" => Ok(Answer::Bool(false)),
        _ => Err("Answer with true or false, yes or no.".into()),
    }
}

struct Named<'a> {
    all: &'a [Choice],
    by_value: HashMap<&'a str, &'a Choice>,
    /// In lower case.
    by_label: HashMap<String, &'a Choice>,
}

impl<'a> Named<'a> {
    fn new(choices: &'a Choices) -> Named<'a> {
        let all = choices.as_slice();
        let mut by_label = HashMap::new();
        for choice in all {
            by_label.entry(choice.label.unredacted().trim().to_lowercase()).or_insert(choice);
        }
        Named { all, by_value: all.iter().map(|choice| (choice.value.unredacted(), choice)).collect(), by_label }
    }

    fn number(&self, n: f64) -> Option<&'a Choice> {
        (n.fract() == 0.0 && n >= 1.0).then(|| self.all.get(n as usize - 1)).flatten()
    }

    fn text(&self, text: &str) -> Option<&'a Choice> {
        let label = text.trim().to_lowercase();
        let digits = !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit());
        let named = self.by_value.get(text).or_else(|| self.by_label.get(&label)).copied();
        named.or_else(|| digits.then(|| label.parse().ok().and_then(|n| self.number(n))).flatten())
    }
}

/// By its value, by its label in any case, or by its number from 1. Otherwise returns the free text, if allowed.
fn choose(named: &Named<'_>, allow_other: bool, value: &RawValue) -> Result<Text, BadAnswer> {
    let text = string(value);
    let found = match &text {
        None => number(value).and_then(|n| named.number(n)),
        Some(text) => named.text(text),
    };
    match (found, text) {
        (Some(choice), _) => Ok(choice.value.clone()),
        (None, Some(text)) if allow_other && !text.trim().is_empty() => Ok(text.into()),
        _ if allow_other => Err("Answer with an option's value, label or number, or with a text.".into()),
        _ => Err("Answer with an option's value, label or number.".into()),
    }
}

fn several(
    choices: &Choices,
    allow_other: bool,
    value: &RawValue,
    rules: &Validation,
    required: bool,
) -> Result<Answer, BadAnswer> {
    let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_else(|_| vec![value]);
    let named = Named::new(choices);
    let (mut chosen, mut seen) = (Vec::new(), HashSet::new());
    for item in items {
        let one = choose(&named, allow_other, item).map_err(|_| list_wanted(choices, allow_other))?;
        if seen.insert(one.clone()) {
            chosen.push(one);
        }
    }
    let least = rules.min_selected.unwrap_or(u64::from(required));
    if (chosen.len() as u64) < least {
        let list = if least > 1 { format!(" {}", list_wanted(choices, allow_other)) } else { String::new() };
        return Err(format!("Choose at least {least}.{list}"));
    }
    if let Some(most) = rules.max_selected.filter(|most| chosen.len() as u64 > *most) {
        return Err(format!("Choose at most {most}."));
    }
    Ok(Answer::Many(chosen))
}

fn list_wanted(choices: &Choices, allow_other: bool) -> BadAnswer {
    let others = if allow_other { ", or texts of your own" } else { "" };
    let example = if choices.as_slice().len() > 1 { "[1, 2]" } else { "[1]" };
    format!("Answer with a list of the options' values, labels or numbers{others}, such as {example}.")
}

fn text_fits(text: &str, rules: &Validation) -> Result<(), BadAnswer> {
    let length = text.chars().count() as u64;
    if let Some(least) = rules.min_length.filter(|least| length < *least) {
        return Err(format!("The answer needs at least {least} characters."));
    }
    if let Some(most) = rules.max_length.filter(|most| length > *most) {
        return Err(format!("The answer may have at most {most} characters."));
    }
    // If we cannot evaluate a pattern, the asker checks it.
    let pattern = rules.pattern.as_ref().and_then(|pattern| Pattern::new(pattern.unredacted()));
    if pattern.is_some_and(|pattern| !pattern.allows(text)) {
        return Err("The answer does not have the required form.".into());
    }
    if rules.min.is_none() && rules.max.is_none() && rules.integer != Some(true) {
        return Ok(());
    }
    let given = text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or("Answer with a number.")?;
    if rules.integer == Some(true) && given.fract() != 0.0 {
        return Err("Answer with a whole number.".into());
    }
    if let Some(min) = rules.min.filter(|min| given < *min) {
        return Err(format!("The number must be at least {min}."));
    }
    if let Some(max) = rules.max.filter(|max| given > *max) {
        return Err(format!("The number may be at most {max}."));
    }
    Ok(())
}

fn path_fits(path: Option<PathFact>, rules: &Validation) -> Result<(), BadAnswer> {
    match (path, rules.must_exist, rules.path_type) {
        (Some(PathFact::Missing), Some(true), _) => Err("This path does not exist.".into()),
        (Some(PathFact::Directory), _, Some(PathType::File)) => Err("Answer with a file, not a directory.".into()),
        (Some(PathFact::File), _, Some(PathType::Directory)) => Err("Answer with a directory, not a file.".into()),
        _ => Ok(()),
    }
}

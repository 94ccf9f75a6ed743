//! One question: as the agent asks it, as frames show it, and its resolution.

use super::frame_texts::FrameTexts;
use crate::agent::Reply;
use crate::json::encoded_bytes;
use crate::paths::real;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::QuestionId;
use crate::protocol::limits::REMEMBERED;
use crate::protocol::question::{ALLOW_ONCE, Answer, Ask, Choice, Choices, Decision, Kind, Place, Subject};
use crate::protocol::request::Settings;
use crate::protocol::scope::Scope;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::text::Text;
use crate::protocol::words::{Category, LimitField, OnQuestionTimeout, Policy, Purpose, Resolution};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

/// The room in a frame for everything but the action, in bytes: the envelope, the options and a cut title.
const ROOM: usize = 4 << 10;
/// The room for the keys and the line number of a place, in bytes.
const PLACE: usize = 48;

#[derive(Debug)]
pub(super) struct OpenQuestion {
    pub(super) id: QuestionId,
    pub(super) ask: Ask,
    /// The question as a frame shows it: redacted.
    pub(super) shown: Ask,
    pub(super) hidden: Option<Hidden>,
    pub(super) attempt: u32,
    pub(super) reply: Option<Reply>,
}

#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) question_id: QuestionId,
    pub(super) resolution: Resolution,
    pub(super) used_default: bool,
    pub(super) ask: Ask,
    /// The value that was taken, as frames may show it.
    pub(super) value: Answer,
    pub(super) fits: bool,
    /// The reason why the question was denied without being asked.
    pub(super) hidden: Option<Hidden>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswerCause {
    Timeout,
    InputClosed,
    Headless,
}

#[derive(Debug, Default)]
pub(super) struct BesideAnswer {
    pub(super) message: Option<Text>,
    pub(super) input: Option<String>,
}

/// The reason why nobody can approve an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    TooLong,
    NoCommand,
    NoFile,
}

/// Redacts a question. An option's value that contains a secret becomes `option_N`, so that an answer can name the
/// option.
pub(super) fn shown(ask: &Ask, redactor: &Redactor) -> Ask {
    let clean = |text: &Text| Text::from(text.redacted(redactor));
    let mut shown = ask.clone();
    if ask.text.is_blank() {
        shown.text = WITHOUT_TEXT.into();
    }
    if ask.purpose == Purpose::Permission {
        // A permission's options are the protocol's own words, and its texts are redacted with the frame.
        return shown;
    }
    shown.text = clean(&shown.text);
    shown.validation.note_unchecked();
    shown.validation.pattern = ask.validation.pattern.as_ref().map(clean);
    let header: String = ask.header.redacted(redactor).chars().take(crate::protocol::limits::HEADER_CHARS).collect();
    shown.header = header.into();
    if let Kind::Select { choices: asked, multiple, allow_other } = &ask.kind {
        let (mut values, mut labels) = (HashSet::new(), HashSet::new());
        let mut all: Vec<Choice> = Vec::new();
        for (at, choice) in asked.as_slice().iter().enumerate() {
            let number = at + 1;
            let value = usable(choice.value.redacted(redactor), |_| format!("option_{number}"));
            let cut = |label: &str| format!("{} ({number})", &label[..label.floor_char_boundary(OPTION_BYTES)]);
            let label = usable(choice.label.redacted(redactor), cut);
            let description = choice.description.as_ref().map(clean);
            let (value, label) = (unlike(value, &mut values), unlike(label, &mut labels));
            all.push(Choice { value: value.into(), label: label.into(), description });
        }
        let Some(choices) = Choices::new(all) else { return shown };
        let pairs = asked.as_slice().iter().zip(choices.as_slice());
        let named: HashMap<&Text, &Text> = pairs.map(|(asked, shown)| (&asked.value, &shown.value)).collect();
        // A default that does not name an option is free text.
        let default = |value: &Text| named.get(value).map_or_else(|| clean(value), |shown| (*shown).clone());
        shown.default = ask.default.as_ref().map(|given| match given {
            Answer::One(value) => Answer::One(default(value)),
            Answer::Many(values) => Answer::Many(values.iter().map(default).collect()),
            Answer::Decision(_) | Answer::Bool(_) | Answer::Text(_) | Answer::Null => given.clone(),
        });
        shown.kind = Kind::Select { choices, multiple: *multiple, allow_other: *allow_other };
    }
    shown
}

const WITHOUT_TEXT: &str = "The agent asked a question without text.";

const OPTION_BYTES: usize = 1024;

/// A redacted text, or the result of `instead` if the text contained a secret or is too long.
fn usable(text: Cow<'_, str>, instead: impl FnOnce(&str) -> String) -> String {
    match text {
        Cow::Borrowed(same) if same.len() <= OPTION_BYTES => same.to_owned(),
        text @ (Cow::Borrowed(_) | Cow::Owned(_)) => instead(&text),
    }
}

fn unlike(mut text: String, others: &mut HashSet<String>) -> String {
    while !others.insert(text.clone()) {
        text.push('_');
    }
    text
}

pub(super) fn shown_subject(subject: &Subject, texts: &FrameTexts) -> Subject {
    Subject {
        title: texts.action_title(&subject.title).into(),
        locations: texts.places(&subject.locations),
        ..subject.clone()
    }
}

impl OpenQuestion {
    /// A question as it is answered, and as it is shown. The texts of a permission are kept only once, and only if they
    /// fit into a frame: a person must not approve what no frame showed.
    pub(super) fn new(id: QuestionId, mut ask: Ask, texts: &FrameTexts, frame_bytes: usize) -> OpenQuestion {
        let redactor = &texts.redactor;
        let mut copy = shown(&ask, redactor);
        let mut hidden = None;
        if ask.purpose == Purpose::Permission
            && let (Some(kept), Some(subject)) = (&mut ask.subject, &mut copy.subject)
        {
            (ask.text, kept.detail, kept.title) = (Text::default(), Text::default(), Text::default());
            // Only the text of a plan is shown whole. That of another permission is its title and a few words.
            let is_plan = subject.category == Category::Mode;
            let size = |text: &Text| encoded_bytes(&text.redacted_action(redactor));
            let places: usize = texts.places(&subject.locations).iter().map(|place| size(&place.path) + PLACE).sum();
            let text = if is_plan { size(&copy.text) } else { 0 };
            let fits = ROOM + places + text + size(&subject.detail) <= frame_bytes;
            hidden = if !fits {
                Some(Hidden::TooLong)
            } else if subject.category == Category::Execute && subject.detail.is_blank() {
                Some(Hidden::NoCommand)
            } else if subject.category.changes_files() && subject.locations.is_empty() {
                Some(Hidden::NoFile)
            } else {
                None
            };
            if !fits {
                subject.detail = Text::default();
            }
            if subject.title.size() > frame_bytes {
                let title = subject.title.redacted_action(redactor).into_owned();
                let cut = title[..title.floor_char_boundary(frame_bytes)].to_owned();
                copy.text = copy.text.redacted_action(redactor).replace(&title, &cut).into();
                subject.title = cut.into();
            } else if !fits {
                copy.text = subject.title.clone();
            }
        }
        OpenQuestion { id, ask, shown: copy, hidden, attempt: 1, reply: None }
    }

    /// The reply by a policy, or by an answer "always". `None`: the question must be asked.
    pub(super) fn decided(&self, settings: &Settings, granted: &AlwaysAllowed) -> Option<Reply> {
        // Only the shown question still has the detail.
        let judged = self.shown.subject.as_ref().filter(|_| self.ask.purpose == Purpose::Permission)?;
        let own = settings.judge.as_ref().and_then(|judge| judge.decide(judged, &self.ask.also));
        let categories = std::iter::once(judged.category).chain(self.ask.also.iter().copied());
        match own.unwrap_or_else(|| settings.permissions.strictest(categories, reads_inside(judged, settings))) {
            Policy::Allow if self.ask.offers(ALLOW_ONCE) => Some(Reply::Allowed),
            Policy::Allow | Policy::Deny => Some(Reply::Denied(None)),
            Policy::Ask => granted.covers(self.ask.scope.as_ref()).then_some(Reply::Allowed),
        }
    }

    /// The question as a frame shows it, with the agent's unredacted rules.
    pub(super) fn checked(&self) -> Ask {
        Ask { validation: self.ask.validation.clone(), ..self.shown.clone() }
    }

    pub(super) fn is_missed(&self) -> bool {
        matches!(self.reply, Some(Reply::Declined(_))) && self.ask.required && self.ask.default.is_none()
    }

    pub(super) fn resolve(&mut self, reply: Reply, resolution: Resolution, used_default: bool) -> Resolved {
        let value = match &reply {
            Reply::Allowed | Reply::AllowedWith(_) => Answer::Decision(Decision::AllowOnce),
            Reply::Denied(_) => Answer::Decision(Decision::Deny),
            Reply::NoUser if self.ask.purpose == Purpose::Permission => Answer::Decision(Decision::Deny),
            Reply::Answer(answer) => renamed(answer.clone(), &self.ask.kind, &self.shown.kind),
            Reply::Declined(_) | Reply::NoUser => Answer::Null,
        };
        self.reply = Some(reply);
        let (question_id, ask) = (self.id.clone(), self.shown.clone());
        let fits = self.hidden != Some(Hidden::TooLong);
        Resolved { question_id, resolution, used_default, ask, value, fits, hidden: None }
    }

    /// Resolves the question with "always". The agent is told only that this request is allowed.
    pub(super) fn allow_always(&mut self) -> Resolved {
        let resolved = self.resolve(Reply::Allowed, Resolution::Answered, false);
        Resolved { value: Answer::Decision(Decision::AllowAlways), ..resolved }
    }

    /// Converts an answer to the shown question into a reply with the agent's own values.
    pub(super) fn reply_for(&self, answer: Answer, message: BesideAnswer) -> Reply {
        if self.ask.purpose == Purpose::Permission {
            return match (answer, message) {
                (Answer::Decision(Decision::AllowOnce), BesideAnswer { input: Some(input), .. }) => {
                    Reply::AllowedWith(input)
                }
                (Answer::Decision(Decision::AllowOnce), _) => Reply::Allowed,
                (_, BesideAnswer { message, .. }) => Reply::Denied(message),
            };
        }
        Reply::Answer(renamed(answer, &self.shown.kind, &self.ask.kind))
    }

    /// Resolves the question by the protocol's rules for unanswered questions. `None`: the run fails.
    pub(super) fn resolve_unanswered(&mut self, cause: NoAnswerCause, settings: &Settings) -> Option<Resolved> {
        let (reply, used_default) = match (&self.ask.default, self.ask.required, cause) {
            // Nobody denied it, so the agent is not told that the user did.
            (_, _, NoAnswerCause::Headless | NoAnswerCause::InputClosed) if self.ask.purpose == Purpose::Permission => {
                (Reply::NoUser, cause == NoAnswerCause::InputClosed)
            }
            (Some(Answer::Decision(Decision::Deny)), ..) => (Reply::Denied(None), true),
            // The default has the agent's own values.
            (Some(default), ..) => (Reply::Answer(default.clone()), true),
            (None, false, _) => (Reply::Answer(Answer::Null), false),
            (None, true, NoAnswerCause::Headless) => (Reply::NoUser, false),
            (None, true, NoAnswerCause::InputClosed) if settings.closed_input_declines => {
                (Reply::Declined(None), false)
            }
            (None, true, NoAnswerCause::InputClosed) => return None,
            (None, true, NoAnswerCause::Timeout) => match settings.on_question_timeout {
                OnQuestionTimeout::Fail => return None,
                OnQuestionTimeout::Continue => (Reply::Declined(None), false),
            },
        };
        Some(self.resolve(reply, cause.resolution(), used_default))
    }
}

/// An answer with the values that the options of `from` have in `to`, the same question in its other form.
fn renamed(answer: Answer, from: &Kind, to: &Kind) -> Answer {
    let (Kind::Select { choices: from, .. }, Kind::Select { choices: to, .. }) = (from, to) else { return answer };
    let renamed = |value: Text| {
        let at = from.as_slice().iter().position(|choice| choice.value == value);
        at.and_then(|at| to.as_slice().get(at)).map_or(value, |choice| choice.value.clone())
    };
    match answer {
        Answer::One(value) => Answer::One(renamed(value)),
        Answer::Many(values) => Answer::Many(values.into_iter().map(renamed).collect()),
        other @ (Answer::Decision(_) | Answer::Bool(_) | Answer::Text(_) | Answer::Null) => other,
    }
}

impl NoAnswerCause {
    pub(super) fn failure(self) -> Failure {
        match self {
            NoAnswerCause::Timeout => Failure::new(
                Code::QuestionTimeout,
                sentence!(
                    "A question was not answered in time: answer it, or raise {question_timeout_s:#}.",
                    question_timeout_s
                ),
            )
            .at(LimitField::QuestionTimeout),
            NoAnswerCause::InputClosed | NoAnswerCause::Headless => Failure::new(
                Code::InputClosed,
                Sentence::pair(
                    "A question needs an answer, but nobody can give one: keep stdin open, use --answer, or run headless.",
                    "A question needs an answer, and nobody is left to give one: add --answer, or start the run in a \
                     terminal.",
                ),
            ),
        }
    }

    pub(super) fn resolution(self) -> Resolution {
        match self {
            NoAnswerCause::Timeout => Resolution::Timeout,
            NoAnswerCause::InputClosed => Resolution::InputClosed,
            NoAnswerCause::Headless => Resolution::Headless,
        }
    }
}

/// The scopes that an answer "always" allowed for the rest of the run. Only the run knows them, because an agent that
/// knew them would stop asking.
#[derive(Debug, Default)]
pub(super) struct AlwaysAllowed(BTreeSet<Scope>);

impl AlwaysAllowed {
    /// Beyond [`REMEMBERED`] scopes, requests are asked about again.
    pub(super) fn add(&mut self, scope: &Scope) {
        if self.0.len() < REMEMBERED {
            self.0.insert(scope.clone());
        }
    }

    pub(super) fn covers(&self, scope: Option<&Scope>) -> bool {
        scope.is_some_and(|scope| self.0.contains(scope))
    }
}

/// Whether an action reads or searches only in the working directory and the further directories.
pub(super) fn reads_inside(subject: &Subject, settings: &Settings) -> bool {
    let reads = matches!(subject.category, Category::Read | Category::Search);
    if !reads || subject.locations.is_empty() {
        return false;
    }
    let own = std::iter::once(settings.cwd.as_path()).chain(settings.add_dirs.iter().map(Path::new));
    let own: Vec<_> = own.filter_map(|dir| real(&settings.cwd, dir)).collect();
    let inside = |place: &Place| {
        let path = real(&settings.cwd, Path::new(place.path.unredacted()));
        path.is_some_and(|path| own.iter().any(|dir| path.starts_with(dir)))
    };
    subject.locations.iter().all(inside)
}

#[cfg(test)]
mod tests {
    use super::{AlwaysAllowed, reads_inside};
    use crate::protocol::limits::REMEMBERED;
    use crate::protocol::question::{Place, Subject};
    use crate::protocol::request::Options;
    use crate::protocol::scope::Scope;
    use crate::protocol::words::Category;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_number_of_remembered_scopes_is_limited() {
        let mut granted = AlwaysAllowed::default();
        let command = |number: usize| Scope::of_request(Category::Execute, None, Some(&number.to_string()));
        (0..=REMEMBERED).filter_map(command).for_each(|scope| granted.add(&scope));
        assert!(granted.covers(command(REMEMBERED - 1).as_ref()));
        assert!(!granted.covers(command(REMEMBERED).as_ref()));
        assert!(!granted.covers(None));
    }

    #[test]
    fn a_read_through_a_link_is_outside() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("project");
        std::fs::create_dir_all(cwd.join("src")).unwrap();
        std::fs::create_dir(folder.path().join("more")).unwrap();
        symlink(folder.path(), cwd.join("out")).unwrap();
        let mut settings = Options::default().resolve("x".into(), "x".into(), cwd);
        settings.add_dirs = vec!["../more".into()];
        let more = folder.path().join("more/a").to_string_lossy().into_owned();
        for (category, paths, wanted) in [
            (Category::Read, &["src/a", "b"][..], true),
            (Category::Search, &["."], true),
            (Category::Read, &[&more], true),
            (Category::Read, &["src/../../x"], false),
            (Category::Read, &["out/x"], false),
            (Category::Read, &["a", "/etc/hostname"], false),
            (Category::Search, &[], false),
            (Category::Edit, &["a"], false),
        ] {
            let locations = paths.iter().map(|path| Place { path: (*path).into(), line: None }).collect();
            let subject = Subject::new(category, "t", locations, "");
            assert_eq!(reads_inside(&subject, &settings), wanted, "{category:?} {paths:?}");
        }
    }
}

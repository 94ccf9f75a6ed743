//! The object `workflow` in run.start, in run.started and in terminal frames.

use super::declare::objects;
use super::fields::{setting, settle};
use super::form::{Form, HasForm, Member, ObjectForm};
use super::frame_value::{FrameObject, ObjectWriter, object_value};
use super::parts::{Parts, Role, Visit};
use super::pieces::ArtifactRef;
use super::read::{ATTEMPTS, ROUNDS, Read, Seconds, boolean, count, narrowed, positive, strings_where, within};
use super::review::{self, ReviewFinding, Reviewer, review};
use super::sentence::Sentence;
use super::text::Text;
use super::unknown::UnknownNames;
use super::words::{PhaseOutcome, WorkflowKind};
use crate::json::{Fields, string};
use crate::redact::Redactor;
use crate::suggest::nearest;
use WorkflowKind::{Implement, Plan, Spec};
use serde_json::value::RawValue;

/// The program's folder in a project.
pub const HOME: &str = ".spektacular";

/// A row: `FIELD, NAME: TYPE = READER, DEFAULT, WORKFLOWS;`. DEFAULT is `optional` or `default(VALUE)`.
macro_rules! fields {
    ($($(#[doc = $doc:literal])* $field:ident, $name:literal: $type:ty = $read:ident, $kind:ident $(($default:expr))?, $of:expr;)*) => {
        /// `None`: this layer does not set the field.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct WorkflowOptions { $($(#[doc = $doc])* pub $field: Option<$type>,)* }

        #[derive(Clone, Debug)]
        pub struct WorkflowSettings { $($(#[doc = $doc])* pub $field: setting!($kind $(($default))?, $type),)* }

        impl WorkflowOptions {
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            pub fn has(kind: WorkflowKind, name: &str) -> bool {
                let of: &[WorkflowKind] = match name {
                    $($name => &$of,)*
                    _ => &[],
                };
                of.contains(&kind)
            }

            /// Ignores unknown names. Error: the rest of "must be …".
            pub fn set(&mut self, name: &str, raw: &RawValue) -> Result<(), &'static str> {
                match name {
                    $($name => self.$field = Some($read(raw).map_err(|expected| expected.unwrap_or("an object"))?),)*
                    _ => {}
                }
                Ok(())
            }

            pub fn over(self, base: WorkflowOptions) -> WorkflowOptions {
                WorkflowOptions { $($field: self.$field.or(base.$field),)* }
            }

            pub fn resolved(self) -> WorkflowSettings {
                WorkflowSettings { $($field: settle!($kind $(($default))?, self.$field, ()),)* }
            }
        }

        impl FrameObject for ShownOptions {
            const OBJECT: ObjectForm = ObjectForm {
                name: "WorkflowOptions",
                members: &[$(if is_shown($name) {
                    Member::field(
                        $name,
                        concat!($($doc),*),
                        <setting!($kind $(($default))?, $type) as HasForm>::FORM,
                        true,
                    )
                } else {
                    Member::Hidden
                }),*],
            };

            fn put_fields(&self, object: &mut ObjectWriter<'_>) {
                $(if is_shown($name) && WorkflowOptions::has(self.of, $name) {
                    object.entry(concat!(",\"", $name, "\":"), &self.settings.$field);
                })*
            }
        }

        pub const OPTIONS: ObjectForm = ObjectForm {
            name: "Workflow",
            members: &[$(Member::field(
                $name,
                concat!($($doc),*),
                form_of(stringify!($read), <$type as HasForm>::FORM),
                true,
            )),*],
        };
    };
}

fields! {
    /// The name of a specification.
    name, "name": String = name, optional, [Spec];
    /// Whether a finished file is replaced.
    force, "force": bool = boolean, default(false), [Spec, Plan];
    /// Whether an earlier draft is continued.
    resume, "continue": bool = boolean, default(false), [Spec, Plan];
    /// The words of the user about the draft that is continued, or about the plan.
    words, "words": String = words, optional, [Spec, Plan];
    /// The agent's own command that begins the prompt.
    skill, "skill": String = skill, optional, [Spec];
    /// The rules that the check ignores.
    ignore, "ignore": Vec<String> = rules, default(Vec::new()), [Spec, Plan];
    /// The maximum number of attempts at a draft or a phase.
    attempts, "attempts": u32 = attempts, default(3), [Spec, Plan, Implement];
    /// The agent that reviews the work before it counts. Null: nobody does.
    review, "review": Option<Reviewer> = review, default(None), [Spec, Plan, Implement];
    /// The maximum number of times that the findings of a review go back to the agent.
    review_rounds, "review_rounds": u32 = rounds, default(2), [Spec, Plan, Implement];
    /// The maximum number of phases that pass in this run.
    max_phases, "max_phases": u64 = count, optional, [Implement];
    /// The limit of one phase with all its attempts and commands.
    phase_timeout_s, "phase_timeout_s": Seconds = positive, optional, [Implement];
    /// Whether the user consents to the plan's commands in advance.
    allow_verify, "allow_verify": bool = boolean, default(false), [Implement];
    /// Whether a phase whose commands pass before any work counts as passed.
    accept_done, "accept_done": bool = boolean, default(false), [Implement];
    /// The limit of each command.
    verify_timeout_s, "verify_timeout_s": Seconds = positive, default(Seconds(600.0)), [Implement];
    /// Whether each phase that passes becomes a commit.
    commit, "commit": bool = boolean, default(false), [Implement];
    /// The message of each commit, in which `{plan}`, `{n}`, `{title}` and `{tasks}` stand for the phase.
    commit_message, "commit_message": String = template, optional, [Implement];
    /// Whether to commit even if the work tree has other changes.
    allow_dirty, "allow_dirty": bool = boolean, default(false), [Implement];
}

const fn form_of(reader: &str, form: Form) -> Form {
    if matches!(reader.as_bytes(), b"review") { review::REQUEST } else { narrowed(reader, form) }
}

/// In characters. A character takes at most 4 bytes.
pub const NAME_LENGTH: usize = 50;

/// The rest of "must be …".
pub const NAME_FORM: &str =
    "1 to 50 lower-case letters, digits, dashes and underscores, with a letter or a digit at both ends";

/// Letters and digits of any script count.
pub fn is_name(text: &str) -> bool {
    let inner = |c| c == '-' || c == '_';
    let ends = !text.starts_with(inner) && !text.ends_with(inner);
    let length = text.chars().take(NAME_LENGTH + 1).count();
    (1..=NAME_LENGTH).contains(&length) && text.chars().all(|c| inner(c) || is_name_letter(c)) && ends
}

/// Whether a character is a letter or a digit, but not in upper case.
pub fn is_name_letter(c: char) -> bool {
    c.is_alphanumeric() && c.to_lowercase().eq([c])
}

fn name(raw: &RawValue) -> Read<String> {
    string(raw).filter(|text| is_name(text)).ok_or(Some(NAME_FORM))
}

/// The user's words are a part of the prompt.
const fn is_shown(field: &str) -> bool {
    !matches!(field.as_bytes(), b"words")
}

pub const WORDS_BYTES: usize = 128 << 10;

/// Of a commit's message.
const TEMPLATE_BYTES: usize = 16 << 10;

fn words(raw: &RawValue) -> Read<String> {
    string(raw).filter(|text| text.len() <= WORDS_BYTES).ok_or(Some("a text of at most 128 KiB"))
}

fn skill(raw: &RawValue) -> Read<String> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b":_-".contains(&b);
    let fits = |text: &String| {
        text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) && text.len() <= 256 && text.bytes().all(legal)
    };
    string(raw).filter(fits).ok_or(Some("a command of the agent, without its slash: letters, digits, `:`, `_`, `-`"))
}

fn template(raw: &RawValue) -> Read<String> {
    let fits = |text: &String| !text.trim().is_empty() && text.len() <= TEMPLATE_BYTES && !text.contains('\0');
    string(raw).filter(fits).ok_or(Some("a text of 1 byte to 16 KiB that is not blank"))
}

fn rules(raw: &RawValue) -> Read<Vec<String>> {
    let fits =
        |text: &String| (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    strings_where(raw, fits, "a list of at most 1024 names of rules")
}

fn attempts(raw: &RawValue) -> Read<u32> {
    within(raw, &ATTEMPTS).map(|n| n as u32)
}

fn rounds(raw: &RawValue) -> Read<u32> {
    within(raw, &ROUNDS).map(|n| n as u32)
}

/// The object `workflow` of a run.start, read for one workflow.
#[derive(Debug, Default)]
pub struct WorkflowFields {
    pub options: WorkflowOptions,
    /// About the first invalid field.
    pub wrong: Option<Sentence>,
    /// Those that this workflow does not have.
    pub unknown: UnknownNames,
}

impl WorkflowFields {
    /// A `null` field counts as absent.
    pub fn read(kind: WorkflowKind, raw: Option<&RawValue>) -> WorkflowFields {
        let mut read = WorkflowFields::default();
        let Some(raw) = raw else { return read };
        let Some(fields) = Fields::parse(raw.get()) else {
            read.wrong = Some(Sentence::from("`workflow` must be an object.").about_start());
            return read;
        };
        let own = |name: &&&str| WorkflowOptions::has(kind, name);
        for (name, raw) in fields.iter() {
            if !WorkflowOptions::has(kind, name) {
                read.unknown.add(&format!("workflow.{name}"), || {
                    nearest(name, WorkflowOptions::NAMES.iter().filter(own).copied()).map(str::to_owned)
                });
                continue;
            }
            if raw.get() == "null" {
                continue;
            }
            if let Err(expected) = read.options.set(name, raw) {
                let wrong = || Sentence::from(format!("`workflow.{name}` must be {expected}.")).about_start();
                read.wrong.get_or_insert_with(wrong);
            }
        }
        read
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct WorkflowStarted {
        /// The workflow.
        pub name: WorkflowKind,
        /// The project's folder, absolute.
        pub project: Text as text,
        /// The file that the workflow writes or works on.
        pub target: Option<Text> as text,
        /// The fields, with defaults filled in.
        pub options: ShownOptions as text,
    }
}

impl WorkflowStarted {
    /// Redacts every text: a name that the user chose can be a secret too.
    pub fn redact(&mut self, redactor: &Redactor) {
        self.project.redact(redactor);
        self.target.iter_mut().for_each(|target| target.redact(redactor));
        let WorkflowSettings { name, skill, review, .. } = &mut self.options.settings;
        let model = review.as_mut().map(|review| &mut review.model);
        [name, skill].into_iter().chain(model).flatten().for_each(|text| redactor.redact_in(text));
    }
}

/// Only the fields that this workflow has.
#[derive(Clone, Debug)]
pub struct ShownOptions {
    pub of: WorkflowKind,
    pub settings: WorkflowSettings,
}

object_value!(ShownOptions);

impl Parts for ShownOptions {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        // The options are checked words, names and numbers, except for the name of the agent's command.
        self.settings.skill.visit(role, visit);
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct WorkflowEnd {
        /// The workflow.
        pub name: WorkflowKind,
        /// The file that the workflow writes or works on. Null: unknown.
        pub target: Option<Text> as text,
        /// Whether everything is done and checked.
        pub complete: bool,
        /// The number of tasks. Null: no file was checked.
        pub tasks: Option<u64>,
        /// The violations that a check found.
        pub violations: Vec<RuleViolation> as list,
        /// The files that were moved out of the way.
        pub kept: Vec<MovedFile> as list,
        /// The reports of the phases.
        pub phases: Vec<PhaseReport> as list,
        /// The findings of the review that are still open, of all phases.
        pub review: Vec<ReviewFinding> as list,
    }
}

impl WorkflowEnd {
    pub fn unknown(name: WorkflowKind) -> WorkflowEnd {
        WorkflowEnd {
            name,
            target: None,
            complete: false,
            tasks: None,
            violations: Vec::new(),
            kept: Vec::new(),
            phases: Vec::new(),
            review: Vec::new(),
        }
    }
}

objects! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RuleViolation {
        /// The file.
        pub file: Text as inherited,
        /// The line, from 1.
        pub line: Option<u64>,
        /// The rule's name.
        pub rule: &'static str,
        /// The instruction for correcting it.
        pub text: Text as inherited,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MovedFile {
        /// The old path.
        pub path: Text as inherited,
        /// The new path.
        pub to: Text as inherited,
    }

    #[derive(Clone, Debug)]
    pub struct PhaseReport {
        /// The phase's id, such as `P1`.
        pub id: String as name,
        /// The phase's title.
        pub title: Text as text,
        /// The state.
        pub state: PhaseOutcome,
        /// The agent that worked on it last in this run. Null: none did.
        pub agent: Option<String> as name,
        /// The number of attempts in this run.
        pub attempts: u64,
        /// The time that the phase took in this run, in milliseconds.
        pub duration_ms: u64,
        /// The cost of its sessions in this run, in US dollars. Null: unknown.
        pub cost_usd: Option<f64>,
        /// The files that changed.
        pub files: Vec<ArtifactRef> as output,
        /// The id of the phase's commit.
        pub commit: Option<String> as name,
        /// Where HEAD was, and where it is, if the agent moved it to another branch or off its commit. Absent: HEAD
        /// stayed.
        pub head: Option<Text> as known inherited,
        /// The manual checks that nobody confirmed.
        pub unverified: Vec<Text> as output,
        /// The agent that reviewed it last in this run. Null: none did.
        pub reviewed_by: Option<String> as name,
        /// The findings of the review that are still open.
        pub review: Vec<ReviewFinding> as list,
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkflowFields, WorkflowKind, is_name};
    use crate::redact::Redactor;
    use serde_json::value::to_raw_value;

    #[test]
    fn a_name_has_dashes_and_underscores_inside_only() {
        for good in ["a", "0", "a-1", "a_1", "a_-_b", "a__b", "größe-ändern", "日本語", "٣"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "_a", "a_", "_", "A", "a b", "Ä", "a·b", "a\u{301}", "a。"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_name(&"語".repeat(50)) && !is_name(&"a".repeat(51)));
    }

    #[test]
    fn a_field_of_another_workflow_is_ignored_and_a_wrong_one_is_named() {
        let raw =
            to_raw_value(&serde_json::json!({"attempts": 99, "commit": true, "force": "yes", "name": null})).unwrap();
        let wrong = |read: &WorkflowFields| read.wrong.as_ref().map(|wrong| wrong.text().unredacted().to_owned());
        let text = "run.start: `workflow.attempts` must be a whole number from 1 to 10.";
        let read = WorkflowFields::read(WorkflowKind::Spec, Some(&raw));
        assert_eq!(wrong(&read).as_deref(), Some(text));
        let warning = read.unknown.warning("field", " of run.start", &Redactor::new());
        assert_eq!(warning.as_deref(), Some("Ignored an unknown field of run.start: workflow.commit"));
        let read = WorkflowFields::read(WorkflowKind::Implement, Some(&raw));
        assert_eq!(wrong(&read).as_deref(), Some(text));
        assert_eq!(read.options.resolved().attempts, 3);
    }
}

//! Violations: a rule, the line that breaks it, and an instruction. The text of a violation never quotes the file.

use crate::protocol::outbound::{RuleViolation, Text};
use crate::protocol::words::word_enums;
use crate::suggest::{Typed, Unknown};
use std::borrow::Cow;

/// The maximum number of violations that are reported at once.
pub const VIOLATIONS_MAX: usize = 100;

word_enums! {
    /// A rule of the two formats. Violations in one line come in this order.
    pub enum Rule {
        MissingFile = "missing-file",
        /// A file or a part of it is larger than its limit.
        TooLarge = "too-large",
        /// A line is not UTF-8.
        NotUtf8 = "not-utf8",
        ControlCharacter = "control-character",
        /// The first line is not a title, or there is a second title.
        Title = "title",
        /// A fence has no end.
        UnclosedFence = "unclosed-fence",
        /// A section is missing, empty or repeated.
        Section = "section",
        /// A plan without phases.
        NoPhases = "no-phases",
        /// A file or a phase without tasks.
        NoTasks = "no-tasks",
        /// A phase without a command.
        NoVerify = "no-verify",
        /// A heading that begins with the word Phase but is not the heading of a phase.
        PhaseHeading = "phase-heading",
        /// The number of a phase does not ascend.
        PhaseOrder = "phase-order",
        /// A list item that should be a task.
        NotATask = "not-a-task",
        /// An id that is missing, does not fit or does not ascend.
        TaskId = "task-id",
        /// A task outside every phase.
        OutsidePhase = "outside-phase",
        /// A section Verify of the wrong form.
        Verify = "verify",
        /// A command that is too long or continues in the next line.
        Command = "command",
        /// A path that cannot be protected.
        Protect = "protect",
        /// A task or the heading of a phase inside a fence.
        InFence = "in-fence",
        /// A misplaced line that only this program may write.
        StateLine = "state-line",
        /// The line that names the specification.
        SpecLine = "spec-line",
        /// A requirement without a task.
        Uncovered = "uncovered",
        /// A task that names a requirement missing from the specification.
        UnknownRequirement = "unknown-requirement",
        /// A file with a line number.
        LineReference = "line-reference",
        /// A shell command as a list item.
        ShellCommand = "shell-command",
        /// An instruction as a list item.
        Instruction = "instruction",
        SolutionHeading = "solution-heading",
        /// Code outside of the section for it.
        CodeFence = "code-fence",
        OpenQuestion = "open-question",
    }
}

impl Rule {
    /// The rule with this name, if `--ignore` accepts it. Error: one sentence about the name.
    pub fn ignored(name: &str) -> Result<Rule, String> {
        let may = |rule: &&Rule| !matches!(rule, Rule::MissingFile | Rule::TooLarge);
        match Rule::from_word(name) {
            Some(rule) if may(&&rule) => Ok(rule),
            Some(rule) => {
                Err(format!("The rule {} cannot be ignored: without it, nothing could be checked.", rule.word()))
            }
            None => {
                let known = Rule::ALL.iter().filter(may).map(|rule| rule.word());
                Err(Unknown { what: "rule", dashes: "", typed: Typed::Value(name), place: "" }
                    .message(known, "`spektacular help spec reference` lists the rules."))
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The file, as messages name it.
    pub file: String,
    /// The line, from 1. `None`: a missing or too large part has no line.
    pub line: Option<usize>,
    pub rule: Rule,
    /// The instruction that fixes it. It does not quote the file.
    pub text: Cow<'static, str>,
}

impl Violation {
    /// The violation as one line: `FILE:LINE: RULE: TEXT`. The line is 0 for a violation without a line.
    pub fn in_words(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line.unwrap_or_default(), self.rule.word(), self.text)
    }

    /// The violation as frames show it.
    pub fn breach(&self) -> RuleViolation {
        RuleViolation {
            file: Text::from(self.file.as_str()),
            line: self.line.map(|line| line as u64),
            rule: self.rule.word(),
            text: Text::from(self.text.to_string()),
        }
    }
}

/// The violations found in one file so far.
#[derive(Debug, Default)]
pub struct Violations(Vec<(Option<usize>, Rule, Cow<'static, str>)>);

impl Violations {
    /// Adds a violation in a line, from 1.
    pub fn at(&mut self, line: usize, rule: Rule, text: impl Into<Cow<'static, str>>) {
        self.0.push((Some(line), rule, text.into()));
    }

    /// Adds a violation without a line.
    pub fn absent(&mut self, rule: Rule, text: impl Into<Cow<'static, str>>) {
        self.0.push((None, rule, text.into()));
    }

    /// Adds the violation of a file that is longer than [`FILE_BYTES_MAX`](super::spec::FILE_BYTES_MAX).
    pub fn too_long(&mut self) {
        self.absent(Rule::TooLarge, "Shorten the file to at most 256 KiB.");
    }

    /// The first [`VIOLATIONS_MAX`] violations, sorted by line, without those of ignored rules. `file`: the file as
    /// messages name it.
    pub fn sorted(mut self, file: &str, ignored: &[Rule]) -> Vec<Violation> {
        self.0.retain(|(_, rule, _)| !ignored.contains(rule));
        // The sort is stable: violations of one rule without a line keep their order.
        self.0.sort_by_key(|(line, rule, _)| (*line, *rule));
        self.0.truncate(VIOLATIONS_MAX);
        let full = |(line, rule, text)| Violation { file: file.to_owned(), line, rule, text };
        self.0.into_iter().map(full).collect()
    }
}

//! Violations: a rule, the line that breaks it, and an instruction. The text of a violation never quotes the file.

use crate::protocol::outbound::{RuleViolation, Text};
use crate::protocol::words::word_enums;
use crate::suggest::{Typed, Unknown};
use std::borrow::Cow;

pub const VIOLATIONS_MAX: usize = 100;

word_enums! {
    /// A rule of the two formats. Violations in one line come in this order.
    pub enum Rule {
        MissingFile = "missing-file",
        TooLarge = "too-large",
        NotUtf8 = "not-utf8",
        ControlCharacter = "control-character",
        /// The first line is not a title, or there is a second title.
        Title = "title",
        UnclosedFence = "unclosed-fence",
        /// A section is missing, empty or repeated.
        Section = "section",
        NoPhases = "no-phases",
        /// A file or a phase without tasks.
        NoTasks = "no-tasks",
        NoVerify = "no-verify",
        /// A heading that begins with the word Phase but is not the heading of a phase.
        PhaseHeading = "phase-heading",
        PhaseOrder = "phase-order",
        /// A list item that should be a task.
        NotATask = "not-a-task",
        /// An id that is missing, does not fit or does not ascend.
        TaskId = "task-id",
        OutsidePhase = "outside-phase",
        Verify = "verify",
        /// A command that is too long or continues in the next line.
        Command = "command",
        /// A path that cannot be protected.
        Protect = "protect",
        /// A task or the heading of a phase inside a fence.
        InFence = "in-fence",
        /// A misplaced line that only this program may write.
        StateLine = "state-line",
        SpecLine = "spec-line",
        /// A requirement without a task.
        Uncovered = "uncovered",
        UnknownRequirement = "unknown-requirement",
        /// A file with a line number.
        LineReference = "line-reference",
        /// A shell command as a list item.
        ShellCommand = "shell-command",
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
    pub text: Cow<'static, str>,
}

impl Violation {
    /// The violation as one line: `FILE:LINE: RULE: TEXT`. The line is 0 for a violation without a line.
    pub fn in_words(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line.unwrap_or_default(), self.rule.word(), self.text)
    }

    pub fn breach(&self) -> RuleViolation {
        RuleViolation {
            file: Text::from(self.file.as_str()),
            line: self.line.map(|line| line as u64),
            rule: self.rule.word(),
            text: Text::from(self.text.to_string()),
        }
    }
}

#[derive(Debug, Default)]
pub struct Violations(Vec<(Option<usize>, Rule, Cow<'static, str>)>);

impl Violations {
    /// `line`: from 1.
    pub fn at(&mut self, line: usize, rule: Rule, text: impl Into<Cow<'static, str>>) {
        self.0.push((Some(line), rule, text.into()));
    }

    pub fn absent(&mut self, rule: Rule, text: impl Into<Cow<'static, str>>) {
        self.0.push((None, rule, text.into()));
    }

    pub fn too_long(&mut self) {
        self.absent(Rule::TooLarge, "Shorten the file to at most 256 KiB.");
    }

    /// The first [`VIOLATIONS_MAX`], sorted by line, without those of ignored rules. `file`: as messages name it.
    pub fn sorted(mut self, file: &str, ignored: &[Rule]) -> Vec<Violation> {
        self.0.retain(|(_, rule, _)| !ignored.contains(rule));
        // The sort is stable: violations of one rule without a line keep their order.
        self.0.sort_by_key(|(line, rule, _)| (*line, *rule));
        self.0.truncate(VIOLATIONS_MAX);
        let full = |(line, rule, text)| Violation { file: file.to_owned(), line, rule, text };
        self.0.into_iter().map(full).collect()
    }
}

//! Prompts as templates: `{{x}}` is replaced by a value, which is not expanded again.

use crate::protocol::words::word_enums;
use crate::redact::Redactor;
use crate::suggest::{either, hint, shown};

word_enums! {
    pub enum PromptKind {
        Spec = "spec",
        Plan = "plan",
        /// Begins a phase.
        Implement = "implement",
        /// Begins a further attempt at a phase.
        Retry = "retry",
        Continue = "continue",
        /// Begins the session that reviews a phase or a draft.
        Review = "review",
    }
}

const COMMON: [&str; 4] = ["project", "knowledge", "user", "check"];

impl PromptKind {
    pub fn built_in(self) -> &'static str {
        match self {
            PromptKind::Spec => include_str!("prompts/spec.md"),
            PromptKind::Plan => include_str!("prompts/plan.md"),
            PromptKind::Implement => include_str!("prompts/implement.md"),
            PromptKind::Retry => include_str!("prompts/retry.md"),
            PromptKind::Continue => include_str!("prompts/continue.md"),
            PromptKind::Review => include_str!("prompts/review.md"),
        }
    }

    /// `true`: required.
    fn own(self) -> &'static [(&'static str, bool)] {
        match self {
            PromptKind::Spec => &[("description", true), ("file", true)],
            PromptKind::Plan => &[("spec", true), ("folder", true)],
            PromptKind::Implement => &[("phase", true), ("plan", false), ("context", false), ("research", false)],
            PromptKind::Retry => &[("failure", true)],
            PromptKind::Continue => &[("file", true), ("violations", false), ("words", false)],
            PromptKind::Review => &[("phase", true), ("spec", false), ("difference", true)],
        }
    }

    pub fn placeholders(self) -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(self.own().iter().map(|(name, _)| *name))
    }

    /// Error: one sentence that names the prompt and the placeholder.
    pub fn check(self, text: &str) -> Result<(), String> {
        let placeholder = |part| match part {
            Part::Text(_) => None,
            Part::Placeholder(name) => Some(name),
        };
        let used: Vec<&str> = parts(text).filter_map(placeholder).collect();
        if let Some(unknown) = used.iter().find(|used| self.placeholders().all(|known| known != **used)) {
            let shown = shown(unknown, &Redactor::new());
            let hint = hint(unknown, self.placeholders());
            let known: Vec<&str> = self.placeholders().collect();
            let hint = if hint.is_empty() { format!(" It may have {}.", either(&known)) } else { hint };
            return Err(format!("The prompt {} has an unknown placeholder {{{{{shown}}}}}.{hint}", self.word()));
        }
        match self.own().iter().find(|(name, must)| *must && !used.contains(name)) {
            Some((name, _)) => Err(format!("The prompt {} lacks the placeholder {{{{{name}}}}}. Add it.", self.word())),
            None => Ok(()),
        }
    }
}

/// A placeholder without a value is removed.
pub fn expanded<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let part = |part| match part {
        Part::Text(text) => text,
        Part::Placeholder(name) => value(name).unwrap_or_default(),
    };
    parts(text).map(part).collect()
}

pub fn has_placeholder(text: &str, name: &str) -> bool {
    parts(text).any(|part| part == Part::Placeholder(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// The parts of a template, in one pass. `{{x}}` is a placeholder if x consists of letters, digits, `_` and `-`.
fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut pieces = text.split("{{");
    let first = Part::Text(pieces.next().unwrap_or_default());
    let rest = pieces.flat_map(move |piece| {
        let length = piece.bytes().take_while(|b| is_name(b)).count();
        let (name, rest) = piece.split_at(length);
        match rest.strip_prefix("}}").filter(|_| length > 0) {
            Some(rest) => [Part::Placeholder(name), Part::Text(rest)],
            None => [Part::Text("{{"), Part::Text(piece)],
        }
    });
    std::iter::once(first).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::{PromptKind, expanded};

    #[test]
    fn a_value_is_not_expanded_again() {
        let value = |name: &str| match name {
            "a" => Some("{{b}}"),
            "b" => Some("B"),
            _ => None,
        };
        for (text, expected) in [
            ("{{a}}{{b}}", "{{b}}B"),
            ("x {{b}} y", "x B y"),
            ("{{{b}}", "{{{b}}"),
            ("{{{{b}}}}", "{{B}}"),
            ("{{ b }} {{}} {{ }} ${{ secrets.x }}", "{{ b }} {{}} {{ }} ${{ secrets.x }}"),
            ("{{b", "{{b"),
            ("{{b}", "{{b}"),
            ("{{unset}}.", "."),
            ("", ""),
        ] {
            assert_eq!(expanded(text, value), expected, "{text}");
        }
    }

    #[test]
    fn the_built_in_texts_have_their_placeholders() {
        for kind in PromptKind::ALL.iter().copied() {
            assert_eq!(kind.check(kind.built_in()), Ok(()));
            assert_eq!(PromptKind::from_word(kind.word()), Some(kind));
            assert!(kind.built_in().ends_with('\n') && !kind.built_in().starts_with('/'), "{}", kind.word());
        }
    }

    #[test]
    fn a_wrong_text_is_named_with_its_placeholder() {
        for (kind, text, message) in [
            (PromptKind::Spec, "{{description}}", "The prompt spec lacks the placeholder {{file}}. Add it."),
            (PromptKind::Spec, "{{file}}", "The prompt spec lacks the placeholder {{description}}. Add it."),
            (PromptKind::Plan, "{{spec}}", "The prompt plan lacks the placeholder {{folder}}. Add it."),
            (PromptKind::Plan, "{{folder}}", "The prompt plan lacks the placeholder {{spec}}. Add it."),
            (PromptKind::Implement, "{{plan}}", "The prompt implement lacks the placeholder {{phase}}. Add it."),
            (PromptKind::Retry, "again", "The prompt retry lacks the placeholder {{failure}}. Add it."),
            (PromptKind::Continue, "{{words}}", "The prompt continue lacks the placeholder {{file}}. Add it."),
            (
                PromptKind::Retry,
                "{{failure}} {{fialure}}",
                "The prompt retry has an unknown placeholder {{fialure}}. Did you mean failure?",
            ),
            (
                PromptKind::Retry,
                "{{failure}} {{file}}",
                "The prompt retry has an unknown placeholder {{file}}. It may have project, knowledge, user, check or failure.",
            ),
        ] {
            assert_eq!(kind.check(text), Err(message.to_owned()));
        }
        let long = format!("{{{{failure}}}} {{{{{}}}}}", "x".repeat(65));
        let cut = format!("The prompt retry has an unknown placeholder {{{{{}}}}}. It", "x".repeat(64));
        assert!(PromptKind::Retry.check(&long).unwrap_err().starts_with(&cut));
    }
}

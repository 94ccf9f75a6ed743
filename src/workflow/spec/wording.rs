//! The rules about the words of a specification, which says what is needed and not how to do it.

use crate::workflow::markdown::{TextLine, item_text};
use crate::workflow::violation::{Rule, Violations};

/// The file endings of code.
const ENDINGS: [&str; 14] = ["ts", "js", "tsx", "jsx", "py", "go", "rs", "java", "rb", "php", "c", "cpp", "h", "hpp"];
/// The first words of shell commands.
const COMMANDS: [&str; 20] = [
    "npm", "npx", "yarn", "pnpm", "git", "docker", "kubectl", "curl", "wget", "bash", "sh", "cd", "mkdir", "rm", "cp",
    "mv", "cat", "grep", "awk", "sed",
];
/// The headings of sections about a solution.
const SOLUTIONS: [&str; 4] = ["technical notes", "implementation notes", "fix approach", "how to fix"];
/// Words that call the code below them an example.
const EXAMPLES: [&str; 3] = ["example", "bad", "good"];

/// The text before the number of a line.
const AT_LINE: &str = "at line ";

/// Checks the words of a line outside fences.
pub(super) fn check(line: &TextLine<'_>, found: &mut Violations) {
    if !line.is_outside() {
        return;
    }
    let mut broken = |rule, text| found.at(line.number, rule, text);
    if names_a_line(line.text) {
        broken(Rule::LineReference, "Describe the place instead: line numbers change.");
    }
    if let Some(item) = line.item().map(item_text) {
        if begins_with_command(item) {
            broken(Rule::ShellCommand, "State what must hold instead of a command to run.");
        }
        if is_instruction(item) {
            broken(Rule::Instruction, "State what is needed instead of how to change the code.");
        }
    }
    let is_solution = |text: &str| SOLUTIONS.iter().any(|solution| text.eq_ignore_ascii_case(solution));
    if line.heading().is_some_and(|heading| is_solution(heading.text)) {
        broken(Rule::SolutionHeading, "Remove this section, or move the necessary facts to `## Technical Approach`.");
    }
    if line.text.contains("[NEEDS CLARIFICATION") || words(line.text).any(|word| word == "TBD") {
        broken(Rule::OpenQuestion, "Answer this question, or write the assumption under `## Assumptions`.");
    }
}

/// Whether a line above a fence calls it an example.
pub(super) fn is_about_an_example(line: &str) -> bool {
    words(line).any(|word| EXAMPLES.iter().any(|example| word.eq_ignore_ascii_case(example)))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c))
}

/// Whether a text contains a reference such as `src/main.rs:12` or `at line 12`.
fn names_a_line(text: &str) -> bool {
    let mut pieces = text.split(':');
    let mut before = pieces.next().unwrap_or_default();
    for after in pieces {
        if after.starts_with(|c: char| c.is_ascii_digit()) && is_file_of_code(before) {
            return true;
        }
        before = after;
    }
    let lower = text.to_ascii_lowercase();
    lower.match_indices(AT_LINE).any(|(at, _)| {
        let is_begin = !lower[..at].ends_with(is_word);
        is_begin && lower[at + AT_LINE.len()..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a text ends with the path of a source file.
fn is_file_of_code(text: &str) -> bool {
    let Some((path, ending)) = text.rsplit_once('.') else { return false };
    ENDINGS.contains(&ending) && path.chars().rev().take_while(|c| is_word(*c) || "./-".contains(*c)).any(is_word)
}

fn begins_with_command(item: &str) -> bool {
    item.split_once([' ', '\t']).is_some_and(|(first, _)| COMMANDS.contains(&first))
}

/// Whether an item begins with an instruction, such as `use X to`.
fn is_instruction(item: &str) -> bool {
    let mut words = item.split_whitespace();
    // Words after the sixth do not matter.
    let words: [String; 6] = std::array::from_fn(|_| lower(words.next().unwrap_or_default()));
    let is = |at: usize, known: &[&str]| {
        words.get(at).is_some_and(|word| {
            // Punctuation after the word does not matter: `remove the: ...`.
            let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
            known.contains(&&word[..end])
        })
    };
    let kinds = ["flag", "option", "parameter"];
    let has = |at: usize| words.get(at).is_some_and(|word| !word.is_empty());
    match words[0].as_str() {
        "use" => has(1) && is(2, &["to"]),
        "remove" => is(1, &["the"]),
        "add" => is(2, &kinds) || (["a", "an", "the"].contains(&words[1].as_str()) && is(3, &kinds)),
        "change" => is(1, &["line"]) && words[2].starts_with(|c: char| c.is_ascii_digit()),
        "replace" => has(1) && is(2, &["with"]),
        _ => false,
    }
}

/// The beginning of a word in lower case, long enough to distinguish all known words.
fn lower(word: &str) -> String {
    word.chars().take(16).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{begins_with_command, is_about_an_example, is_instruction, names_a_line};

    #[test]
    fn references_to_lines_are_found() {
        for text in [
            "see src/main.rs:12",
            "a.ts:1",
            "(lib/x.hpp:7)",
            "b.js:3:4",
            "x: y.go:9",
            "- ../a-b/c.d.py:10",
            "at line 5",
            "At Line 12, it",
            "AT LINE 3",
            "it fails at line 7.",
        ] {
            assert!(names_a_line(text), "{text}");
        }
        for text in [
            "src/main.rs",
            "main.rs: 12",
            "main.rs:x",
            "rs:12",
            ".rs:12",
            "//.rs:12",
            "main.txt:12",
            "main.RS:12",
            "12:30",
            "that line 5",
            "at the line 5",
            "what we look at. Line 5 is long",
            "at line five",
            "a.rsx:1",
        ] {
            assert!(!names_a_line(text), "{text}");
        }
    }

    #[test]
    fn commands_are_found_at_the_beginning_only() {
        for text in ["npm install", "git\tpush", "sed x"] {
            assert!(begins_with_command(text), "{text}");
        }
        for text in ["npm", "Git push", "gitlab is used", "the cat sat", "npm`"] {
            assert!(!begins_with_command(text), "{text}");
        }
    }

    #[test]
    fn instructions_are_found_at_the_beginning_only() {
        for text in [
            "Use foo to bar",
            "use `x` to",
            "Remove the button",
            "add --verbose flag",
            "Add a --verbose flag.",
            "add an X option",
            "Add the X parameter, please",
            "change line 12",
            "REPLACE foo WITH bar",
        ] {
            assert!(is_instruction(text), "{text}");
        }
        for text in [
            "The user can use foo to bar",
            "use foo bar to",
            "use to",
            "remove theft",
            "remove a button",
            "Add flags",
            "add X flagged",
            "change the line",
            "change lines 3",
            "replace with",
            "replace a b with",
        ] {
            assert!(!is_instruction(text), "{text}");
        }
    }

    #[test]
    fn only_the_words_make_an_example() {
        for text in ["An example:", "BAD", "### Good"] {
            assert!(is_about_an_example(text), "{text}");
        }
        for text in ["examples", "badly", "goods", ""] {
            assert!(!is_about_an_example(text), "{text}");
        }
    }
}

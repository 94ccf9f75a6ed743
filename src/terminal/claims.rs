//! The line that the prompts of spec and plan ask of the agent: `DRAFT created with 3 tasks`. A person does not see it,
//! because the workflow ends with the same line about the finished file.

use crate::protocol::ids::MessageId;
use crate::protocol::workflow::HOME;
use std::collections::HashMap;

/// A longer line is shown, in bytes.
const LONGEST: usize = 1 << 10;

/// The beginnings of lines that may become such a line.
#[derive(Debug, Default)]
pub(super) struct Claims {
    lines: HashMap<MessageId, Line>,
}

#[derive(Debug)]
enum Line {
    Held(String),
    Shown,
}

impl Line {
    fn empty() -> Line {
        Line::Held(String::new())
    }

    fn release(&mut self) -> String {
        match std::mem::replace(self, Line::Shown) {
            Line::Held(held) => held,
            Line::Shown => String::new(),
        }
    }
}

impl Claims {
    /// Returns the part to show. `done` ends the message.
    pub(super) fn cut(&mut self, id: MessageId, piece: &str, done: bool) -> String {
        let (mut line, mut out) = (self.lines.remove(&id).unwrap_or_else(Line::empty), String::new());
        for part in piece.split_inclusive('\n') {
            match &mut line {
                Line::Held(held) => held.push_str(part),
                Line::Shown => out.push_str(part),
            }
            let ends = part.ends_with('\n');
            if matches!(&line, Line::Held(held) if !if ends { is_claim(held) } else { may_be_claim(held) }) {
                out.push_str(&line.release());
            }
            if ends {
                line = Line::empty();
            }
        }
        if !done {
            self.lines.insert(id, line);
        } else if matches!(&line, Line::Held(held) if !is_claim(held)) {
            out.push_str(&line.release());
        }
        out
    }
}

/// The text without the marks that Markdown puts around a path or a sentence.
fn bare(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*'))
}

fn may_be_claim(line: &str) -> bool {
    let (line, length) = (bare(line), line.len());
    let home = line.get(..HOME.len()).unwrap_or(line);
    length <= LONGEST && HOME.starts_with(home)
}

/// Whether the line is `PATH created with COUNTS`.
fn is_claim(line: &str) -> bool {
    let claim = bare(line).trim_end_matches('.').split_once(" created with ");
    let Some((path, counts)) = claim.filter(|(path, _)| may_be_claim(path) && !bare(path).contains(' ')) else {
        return false;
    };
    let is_count = |count: &str| match count.split_once(' ') {
        Some((number, noun)) => {
            number.bytes().all(|b| b.is_ascii_digit()) && matches!(noun, "task" | "tasks" | "phase" | "phases")
        }
        None => false,
    };
    !bare(path).is_empty() && counts.split(" and ").all(is_count)
}

#[cfg(test)]
mod tests {
    use super::Claims;
    use crate::protocol::ids::MessageId::Said;

    fn shown(pieces: &[&str]) -> String {
        let mut claims = Claims::default();
        let text: String = pieces.iter().map(|piece| claims.cut(Said(1), piece, false)).collect();
        text + &claims.cut(Said(1), "", true)
    }

    #[test]
    fn the_claim_is_cut_however_it_arrives() {
        for claim in [
            ".spektacular/specs/a.draft.md created with 3 tasks",
            "`.spektacular/specs/a.draft.md` created with 1 task.",
            "**.spektacular/plans/a.draft created with 2 phases and 2 tasks**",
        ] {
            for end in ["", "\n"] {
                let text = format!("Done.\n{claim}{end}");
                assert_eq!(shown(&[&text]), "Done.\n", "{text}");
                let words: Vec<&str> = text.split_inclusive(' ').collect();
                assert_eq!(shown(&words), "Done.\n", "{text}");
            }
            assert_eq!(shown(&[claim, "\nMore"]), "More");
        }
    }

    #[test]
    fn other_lines_are_shown() {
        for text in [
            "",
            "One\n\n`two`\n",
            ".spektacular/specs/a.md created with care",
            ".spektacular/specs/a.md has 3 tasks\nand more",
            "I say: .spektacular/specs/a.md created with 3 tasks",
            ".spektacular and b created with 3 tasks",
            " created with 3 tasks",
        ] {
            let words: Vec<&str> = text.split_inclusive(' ').collect();
            assert_eq!((shown(&[text]), shown(&words)), (text.to_owned(), text.to_owned()));
        }
        let mut claims = Claims::default();
        assert_eq!(claims.cut(Said(1), "Words appear ", false), "Words appear ");
        let long = format!(".spektacular/{} ", "x".repeat(2000));
        assert_eq!(claims.cut(Said(2), &long, false), long);
    }
}

//! The width of a text on a terminal, by Unicode's tables. A character of ambiguous width counts as one column, as
//! terminals show it outside East Asian locales.

use unicode_width::UnicodeWidthStr;

/// Joins emoji to one sign.
pub(super) const JOINER: char = '\u{200d}';

/// The signs of a text: each is a character with its marks, or a sequence of joined emoji.
pub(super) fn signs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut last = rest.chars().next()?;
        let next = rest.char_indices().skip(1).find(|(_, c)| {
            let continues = last == JOINER || has_no_width(*c) || matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
            last = *c;
            !continues
        });
        let (sign, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(sign)
    })
}

pub(super) fn has_no_width(c: char) -> bool {
    columns(c.encode_utf8(&mut [0; 4])) == 0
}

/// Whether the character belongs to a script that has no blanks between words.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// A control character takes one.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// The text, cut at its end where it is wider than `limit` columns.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if columns(text) <= limit {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |sign: &&str| {
        used += columns(sign);
        used <= limit
    };
    let mut out: String = signs(text).take_while(fits).collect();
    out.extend((limit > 0).then_some('…'));
    out
}

/// The blanks before a line of code, a command or a diff. Such a line also breaks within a word, so that no part of an
/// agent's text stands where a line of ours begins.
const VERBATIM: &str = "    ";

/// The beginning of each further row of such a line. The line of another text cannot look like it, so that nobody takes a
/// line break of a command for a wrapped row.
const FURTHER: &str = "  ↳   ";

const REASONING: &str = "  | ";

/// A continuation stands below the text behind the line's marker. A verbatim line keeps every blank.
pub(super) fn wrap(lines: &str, width: usize) -> String {
    let mut out = String::with_capacity(lines.len());
    for line in lines.split_inclusive('\n') {
        if visible(line.trim_end()) <= width {
            out.push_str(line);
            continue;
        }
        let is_verbatim = line.starts_with(VERBATIM);
        let prefix = continuation(line, width);
        let indent = columns(&prefix);
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            if column > indent && column + visible(word.trim_end()) > width {
                if !is_verbatim {
                    out.truncate(out.trim_end_matches(' ').len());
                }
                out.push('\n');
                out.push_str(&prefix);
                column = indent;
            }
            let text = word.trim_end();
            if is_verbatim && column + visible(word) > width {
                column = push_broken(word, &prefix, column, width, &mut out);
            } else if is_breakable(text, indent, visible(text), width) {
                column = push_broken(text, &prefix, column, width, &mut out) + visible(&word[text.len()..]);
                out.push_str(&word[text.len()..]);
            } else {
                out.push_str(word);
                column += visible(word);
            }
        }
    }
    out
}

fn continuation(line: &str, width: usize) -> String {
    if line.starts_with(VERBATIM) {
        return FURTHER.chars().take(width / 2).collect();
    }
    if without_style(line).starts_with(REASONING) {
        return REASONING.into();
    }
    " ".repeat(hanging(line).min(width / 2))
}

/// Paths and addresses stay whole, to be copied.
pub(super) fn is_breakable(word: &str, indent: usize, columns: usize, width: usize) -> bool {
    indent > 0 && 2 * indent <= width && indent + columns > width && !word.contains('/')
}

/// Returns the column behind the word.
pub(super) fn push_broken(word: &str, prefix: &str, mut column: usize, width: usize, out: &mut String) -> usize {
    let (mut is_color, indent) = (false, columns(prefix));
    for sign in signs(word) {
        let columns = if is_color || sign.starts_with(char::is_control) { 0 } else { columns(sign) };
        is_color = sign.starts_with('\u{1b}') || is_color && !sign.starts_with('m');
        if column > indent && column + columns > width {
            out.push('\n');
            out.push_str(prefix);
            column = indent;
        }
        out.push_str(sign);
        column += columns;
    }
    column
}

/// The columns of a text with colors in it.
fn visible(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once('m').map_or(part, |(_, after)| after));
    std::iter::once(first).chain(others).map(|part| columns(part) - part.matches('\n').count()).sum()
}

/// The columns before the text of a line: its blanks, and a marker such as `*`, `?`, `2.` or `[x]`.
fn hanging(line: &str) -> usize {
    let start = without_style(line);
    let blanks = start.len() - start.trim_start_matches(' ').len();
    let (marker, rest) = start[blanks..].split_once(' ').unwrap_or_default();
    // A letter is a key only if it stands in a column of keys.
    let is_sign = marker.chars().count() == 1 && (!marker.starts_with(char::is_alphabetic) || rest.starts_with(' '));
    let is_marker = is_sign || marker.starts_with('[') || marker.ends_with('.');
    let fits = is_marker && marker.len() <= 4;
    blanks + if fits { marker.len() + 1 + rest.len() - rest.trim_start_matches(' ').len() } else { 0 }
}

fn without_style(line: &str) -> &str {
    line.trim_start_matches("\u{1b}[1m").trim_start_matches("\u{1b}[2m")
}

#[cfg(test)]
mod tests {
    use super::{columns, cut, wrap};

    #[test]
    fn our_lines_wrap_between_words_and_below_their_text() {
        for (line, expected) in [
            ("short\n", "short\n"),
            ("? one two three four\n", "? one two\n  three four\n"),
            ("  2. one two three\n", "  2. one two\n     three\n"),
            ("  y  one two three\n", "  y  one two\n     three\n"),
            ("done after 3s and more\n> ", "done after\n3s and more\n> "),
            ("    git push --all\n", "    git push\n  ↳    --all\n"),
            ("    averyverylongword\n", "    averyver\n  ↳   ylongw\n  ↳   ord\n"),
            ("    \u{1b}[32m+averyverylong\u{1b}[0m\n", "    \u{1b}[32m+averyve\n  ↳   rylong\u{1b}[0m\n"),
            ("  | one two three\n", "  | one two\n  | three\n"),
            ("  n, one two three\n", "  n, one two\n  three\n"),
            ("averyverylongword and\n", "averyverylongword\nand\n"),
            ("  2. averyverylongword x\n", "  2. averyve\n     rylongw\n     ord x\n"),
            ("  2. a/very/long/path x\n", "  2. a/very/long/path\n     x\n"),
            ("\u{1b}[1m? one two three\u{1b}[0m\n", "\u{1b}[1m? one two\n  three\u{1b}[0m\n"),
            ("\u{1b}[2mtwelve letter\u{1b}[0m\n", "\u{1b}[2mtwelve\nletter\u{1b}[0m\n"),
        ] {
            assert_eq!(wrap(line, 12), expected, "{line:?}");
        }
        assert_eq!(wrap("\u{1b}[2mtwelve three\u{1b}[0m\n", 12), "\u{1b}[2mtwelve three\u{1b}[0m\n");
    }

    #[test]
    fn a_width_is_that_of_a_terminal() {
        for (text, width) in [
            ("Tiếng Việt", 10),
            ("✓ done ⏎", 8),
            ("ｶﾀｶﾅ", 4),
            ("漢字", 4),
            ("e\u{301}", 1),
            ("👩‍👩‍👧", 2),
            ("👍🏽", 2),
            ("❤\u{fe0f}", 2),
            ("🇩🇪", 2),
            ("→ ─ é", 5),
        ] {
            assert_eq!(columns(text), width, "{text}");
        }
    }

    #[test]
    fn a_cut_or_wrapped_text_never_exceeds_its_columns() {
        for text in [
            "plain text",
            "漢字かな交じり文",
            "é\u{301}è",
            "👩‍👩‍👧 family👩‍👩‍👧",
            "→ ✓ done",
            "",
            "a漢b漢",
            "❤\u{fe0f}❤\u{fe0f}👍🏽",
        ] {
            for limit in 0..24 {
                let cut = cut(text, limit);
                assert!(columns(&cut) <= limit, "{cut:?} in {limit}");
                assert_eq!(cut == text, columns(text) <= limit, "{cut:?} in {limit}");
            }
            for limit in 8..24 {
                let rows = wrap(&format!("    {text}{text}{text}\n"), limit);
                assert!(rows.lines().all(|row| columns(row) <= limit), "{rows} in {limit}");
                assert!(!rows.lines().any(|row| row.ends_with('\u{200d}')), "{rows} in {limit}");
            }
        }
        assert_eq!(
            (cut("漢字かな", 6), cut("漢字かな", 7), cut("abc", 2), cut("a👩‍👩‍👧b", 3), cut("e\u{301}e\u{301}a", 2)),
            ("漢字…".to_owned(), "漢字か…".to_owned(), "a…".to_owned(), "a…".to_owned(), "e\u{301}…".to_owned())
        );
    }
}

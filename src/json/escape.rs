//! Strings of safe JSON, in blocks of bytes.

use super::unsafe_on_a_line;

/// Whether a byte needs no escape in a string of safe JSON. Every character that must be escaped begins with a control
/// character, a quote, a backslash, or one of four bytes. Has no branch, so that a block of bytes is one computation.
const fn is_plain(byte: u8) -> bool {
    (byte >= 0x20)
        & (byte != b'"')
        & (byte != b'\\')
        & (byte != 0x7f)
        & (byte != 0xc2)
        & (byte != 0xd8)
        & (byte != 0xe2)
}

/// [`is_plain`] of every byte: faster for a single one.
const PLAIN: [bool; 256] = {
    let (mut plain, mut byte) = ([false; 256], 0);
    while byte < 256 {
        plain[byte] = is_plain(byte as u8);
        byte += 1;
    }
    plain
};

/// The length of the beginning of a text that needs no escape, up to the first character that may need one.
pub(super) fn plain_len(text: &str) -> usize {
    let (blocks, rest) = text.as_bytes().as_chunks::<16>();
    let is_whole = |block: &&[u8; 16]| block.iter().fold(true, |plain, byte| plain & is_plain(*byte));
    let whole = blocks.iter().take_while(is_whole).count();
    let next = blocks.get(whole).map_or(rest, <[u8; 16]>::as_slice);
    whole * 16 + next.iter().take_while(|byte| PLAIN[usize::from(**byte)]).count()
}

pub fn put_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain.as_bytes());
        if special.is_empty() {
            break;
        }
        rest = put_specials(special, out);
    }
    out.push(b'"');
}

/// The number of bytes after a special one that are examined one by one: more may follow, as in JSON.
const NEAR: usize = 16;

/// Appends the first part of a text that begins with a special character. Returns the rest.
fn put_specials<'t>(text: &'t str, out: &mut Vec<u8>) -> &'t str {
    let (mut at, mut end) = (put_quoted(text.as_bytes(), out), 0);
    while let Some(byte) = text.as_bytes().get(at).copied() {
        if PLAIN[usize::from(byte)] {
            if at >= end && text.is_char_boundary(at) {
                break;
            }
            out.push(byte);
            at += 1;
            continue;
        }
        let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        at += c.len_utf8();
        end = at + NEAR;
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            _ if c < ' ' || unsafe_on_a_line(c) => put_escape(c, out),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    text.get(at..).unwrap_or_default()
}

const WORDS: usize = 16;

/// Appends the first words of a text, of eight bytes each, until one is not printable ASCII or the second in a row needs
/// no backslash. A string that quotes JSON has few such words. Returns the number of bytes taken.
fn put_quoted(text: &[u8], out: &mut Vec<u8>) -> usize {
    let (words, _) = text.as_chunks::<8>();
    let (mut escaped, mut at, mut taken, mut was_plain) = ([0; 16 * WORDS + 8], 0, 0, false);
    // Writes the whole rest of a word. The next write replaces all after the bytes that count.
    let mut put = |at: usize, word: u64| escaped[at..at + 8].copy_from_slice(&word.to_le_bytes());
    for word in words.iter().take(WORDS) {
        let mut word = u64::from_le_bytes(*word);
        let Some(mut quotes) = quotes(word) else { break };
        let (is_plain, mut left) = (quotes == 0, 8);
        if is_plain && was_plain {
            break;
        }
        was_plain = is_plain;
        while quotes != 0 {
            let before = quotes.trailing_zeros() as usize / 8;
            put(at, word);
            put(at + before, b'\\'.into());
            (at, left) = (at + before + 1, left - before);
            // The quote itself is now the lowest byte, without its mark.
            (word, quotes) = (word >> (8 * before), (quotes >> (8 * before)) & !0x80);
        }
        put(at, word);
        (at, taken) = (at + left, taken + 8);
    }
    out.extend_from_slice(&escaped[..at]);
    taken
}

/// The bytes of a word that need a backslash: the highest bit of each. `None`: not all bytes are printable ASCII.
const fn quotes(word: u64) -> Option<u64> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    // A borrow or carry changes the next byte only if this one is not printable.
    if (word | word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES)) & HIGHEST != 0 {
        return None;
    }
    let (quote, backslash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
    // The sum of 0x7f and any ASCII byte but 0 has the highest bit.
    Some(!((quote + !HIGHEST) & (backslash + !HIGHEST)) & HIGHEST)
}

/// Appends JSON, and escapes its unsafe characters, which JSON allows only in strings.
pub(super) fn put_safe(json: &str, out: &mut Vec<u8>) {
    let mut rest = 0;
    for (at, c) in json.char_indices().filter(|(_, c)| unsafe_on_a_line(*c)) {
        out.extend_from_slice(&json.as_bytes()[rest..at]);
        put_escape(c, out);
        rest = at + c.len_utf8();
    }
    out.extend_from_slice(&json.as_bytes()[rest..]);
}

/// Appends `\u` and four digits. Every character that is escaped so has a code below 0x10000.
fn put_escape(c: char, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    out.extend([12, 8, 4, 0].map(|shift| DIGITS[(u32::from(c) >> shift) as usize & 15]));
}

#[cfg(test)]
mod tests {
    use super::put_string;
    use crate::json::to_line;
    use proptest::prelude::*;

    #[test]
    fn a_text_of_nothing_but_quotes_is_escaped() {
        for count in 0..300 {
            let mut out = Vec::new();
            put_string(&"\"\\".repeat(count), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("\"{}\"", "\\\"\\\\".repeat(count)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn quotes_are_escaped_alike_beside_all_else(text in "([\"\\\\]|[ -~]|[a-z]{0,9}|[\n\u{1f}\u{7f}\u{85}é\u{2028}😀]?){0,40}") {
            let mut out = Vec::new();
            put_string(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), to_line(&text));
        }
    }
}

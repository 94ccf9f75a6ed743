//! The reader and the writer of JSON, for the whole program. One scanner knows the syntax. Over it, an [`Object`] reads an
//! agent's line leniently, through an index, and [`Fields`] reads a message or a file strictly. What is written is safe on
//! a line and on a screen.
//!
//! serde_json's own error texts quote their input, so none of them leaves this module.

mod bounded;
mod decode;
mod escape;
mod fields;
mod index;
mod mapped;
mod object;
mod scan;

pub use self::bounded::bounded;
pub use self::decode::{Chunks, SplitPair, decoded_in_place};
pub use self::escape::put_string;
use self::escape::{plain_len, put_safe};
pub use self::fields::{Fields, elements, number, string};
pub use self::index::Index;
pub use self::mapped::{Change, map_keys_and_strings, map_strings};
pub(crate) use self::object::is_blank;
pub use self::object::{Elements, Object, ObjectFields, Raw};
use self::scan::literal_len;
use serde::Serialize;

/// Works on broken JSON too.
pub fn deeper_than(text: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// JSON permits a number beyond the range of a double, but common readers fail on it. `json` must be valid.
pub fn has_huge_number(json: &str) -> bool {
    // Fewer digits without an exponent are within the range.
    const DIGITS: usize = 300;
    let mut rest = json;
    while let Some(first) = rest.bytes().next() {
        let length = match first {
            b'"' => literal_len(rest),
            b'-' | b'0'..=b'9' => {
                let length =
                    rest.bytes().take_while(|b| matches!(b, b'+' | b'-' | b'.' | b'0'..=b'9' | b'e' | b'E')).count();
                let number = &rest[..length];
                let may_be_huge = length > DIGITS || number.contains(['e', 'E']);
                if may_be_huge && number.parse().is_ok_and(f64::is_infinite) {
                    return true;
                }
                length
            }
            _ => 1,
        };
        rest = &rest[length..];
    }
    false
}

/// Whether a character is legal in a string of JSON but not safe on a line or a screen: DEL, the C1 controls, U+2028 and
/// U+2029 (line ends to some readers), and the bidirectional controls.
pub(crate) fn unsafe_on_a_line(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub fn put_number(number: u64, out: &mut Vec<u8>) {
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// The size of a text as a string of safe JSON, in bytes, without its quotes.
pub fn encoded_bytes(text: &str) -> usize {
    let (mut bytes, mut rest) = (0, text);
    while !rest.is_empty() {
        let plain = plain_len(rest);
        let special = rest[plain..].chars().next();
        bytes += plain + special.map_or(0, encoded_len);
        rest = &rest[plain + special.map_or(0, char::len_utf8)..];
    }
    bytes
}

/// The length of the longest beginning of a text that fits into `bytes` bytes of safe JSON, without quotes.
pub fn fitting(text: &str, bytes: usize) -> usize {
    let (mut left, mut at) = (bytes, 0);
    loop {
        // No more of the text is read than can fit, or the parts of a long text would take quadratic time.
        let window = text.ceil_char_boundary((at + left).saturating_add(1));
        let plain = plain_len(&text[at..window]);
        if plain > left {
            return text.floor_char_boundary(at + left);
        }
        (left, at) = (left - plain, at + plain);
        match text[at..].chars().next() {
            Some(c) if encoded_len(c) <= left => (left, at) = (left - encoded_len(c), at + c.len_utf8()),
            Some(_) | None => return at,
        }
    }
}

pub fn encoded_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ if unsafe_on_a_line(c) => 6,
        _ => c.len_utf8(),
    }
}

/// Appends `value` as one line of safe JSON, without the LF.
pub fn encode(value: &impl Serialize, out: &mut Vec<u8>) {
    // Writing to memory cannot fail, and all our types can be serialised.
    let json = serde_json::to_string(value);
    debug_assert!(json.is_ok(), "cannot serialise this value");
    put_safe(&json.unwrap_or_default(), out);
}

pub fn to_line(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    encode(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{deeper_than, encoded_bytes, encoded_len, fitting, has_huge_number, put_string, to_line};

    #[test]
    fn depth_ignores_strings() {
        assert!(!deeper_than(br#"{"a":"[[[[\"[["}"#, 1));
        assert!(deeper_than(br#"{"a":[]}"#, 1));
    }

    #[test]
    fn numbers_beyond_a_double_are_seen() {
        let long = "9".repeat(400);
        for huge in ["1e999", "[0,{\"a\":-1.5E+400}]", &long, &format!("{{\"\\\"1\":-{long}}}")] {
            assert!(has_huge_number(huge), "{huge}");
            assert!(serde_json::from_str::<serde_json::Value>(huge).is_err(), "{huge}");
        }
        for fits in ["1.7976931348623157e308", "1e-999", "\"1e999\"", "{\"1e999\":[0.1,-12]}", &"9".repeat(308)] {
            assert!(!has_huge_number(fits), "{fits}");
            assert!(serde_json::from_str::<serde_json::Value>(fits).is_ok(), "{fits}");
        }
    }

    #[test]
    fn unsafe_characters_are_escaped() {
        assert_eq!(to_line(&"a\u{7f}\u{85}\u{2028}\u{202e}é\u{1b}"), "\"a\\u007f\\u0085\\u2028\\u202eé\\u001b\"");
    }

    #[test]
    fn every_character_is_escaped_alike_at_every_position() {
        let all: Vec<char> =
            (0..0x2100).chain([0xfeff, 0xffff, 0x1f600, 0x10ffff]).filter_map(char::from_u32).collect();
        for (at, c) in all.into_iter().enumerate() {
            let text = format!("{}{c}{}", "é".repeat(at % 19), "x".repeat(at % 17));
            let mut out = Vec::new();
            put_string(&text, &mut out);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, to_line(&text));
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
            assert_eq!(out.len() - 2, encoded_bytes(&text));
            assert_eq!(out.len() - 2, text.chars().map(encoded_len).sum::<usize>());
            for bytes in 0..out.len() {
                let fits = fitting(&text, bytes);
                assert!(encoded_bytes(&text[..fits]) <= bytes);
                let more =
                    text[fits..].chars().next().map_or(bytes + 1, |c| encoded_bytes(&text[..fits + c.len_utf8()]));
                assert!(more > bytes);
            }
        }
    }
}

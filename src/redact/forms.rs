//! The forms in which a value can appear in a text.

use crate::base64::{STANDARD, URL_SAFE, unpadded};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The minimum size of a value. A shorter one would mask ordinary text.
pub(super) const MIN_BYTES: usize = 8;
/// The minimum number of different characters. `........` or `aaaabbbb` is filler.
const MIN_DIFFERENT: usize = 4;

pub(super) fn usable(value: &str) -> bool {
    let mut different: Vec<char> = Vec::with_capacity(MIN_DIFFERENT);
    for c in value.chars() {
        if !different.contains(&c) {
            different.push(c);
        }
        if different.len() == MIN_DIFFERENT {
            return value.len() >= MIN_BYTES;
        }
    }
    false
}

pub(super) fn every_form(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    encode(value, &mut forms);
    // A program may trim a text that it prints.
    let trimmed = value.trim();
    if trimmed != value && usable(trimmed) {
        encode(trimmed, &mut forms);
    }
    if value.contains(['\n', '\r']) {
        for line in value.split(['\n', '\r']) {
            // The line is also registered without its indentation, which a tool that prints a file may change.
            for line in [line, line.trim()] {
                if usable(line) {
                    encode(line, &mut forms);
                }
            }
        }
        let lines = trimmed.replace("\r\n", "\n");
        for sign in DIFF_SIGNS {
            let diff = lines.replace('\n', &format!("\n{sign}"));
            forms.insert(json(&diff, PLAIN_JSON));
            forms.insert(diff);
        }
        // After trimming and with short line ends, a form may be too short.
        forms.retain(|form| form.len() >= MIN_BYTES);
    }
    forms
}

/// The prefixes of lines in a diff, because the lines themselves may be too short to be registered alone.
const DIFF_SIGNS: [&str; 4] = ["", "+", "-", " "];

fn encode(value: &str, forms: &mut BTreeSet<String>) {
    forms.insert(value.to_owned());
    for first in JSON {
        let once = json(value, first);
        for second in JSON {
            forms.insert(json(&once, second));
        }
        forms.insert(once);
    }
    for keep in PERCENT_KEEPS {
        for (plus, upper) in [(false, false), (false, true), (true, false), (true, true)] {
            forms.insert(percent(value, keep, plus, upper));
        }
    }
    for quote in ["\"", "&quot;", "&#34;"] {
        for apostrophe in ["'", "&#39;", "&#x27;", "&apos;"] {
            forms.insert(html(value, quote, apostrophe));
        }
    }
    forms.extend([value.replace('\'', r"'\''"), value.replace('\'', r#"'"'"'"#)]);
    forms.extend([python(value), hex(value, false), hex(value, true)]);
    base64(value.as_bytes(), STANDARD, forms);
    base64(value.as_bytes(), URL_SAFE, forms);
}

/// The choices that the JSON format leaves to a writer.
#[derive(Clone, Copy)]
struct Json {
    /// Whether it writes `/` as `\/`.
    slash: bool,
    /// Whether it writes non-ASCII characters as `\u` escapes.
    ascii: bool,
    upper: bool,
    /// Further characters that it writes as `\u` escapes.
    also: &'static str,
}

const PLAIN_JSON: Json = Json { slash: false, ascii: false, upper: false, also: "" };

const JSON: [Json; 7] = [
    PLAIN_JSON,
    Json { slash: true, ..PLAIN_JSON },
    Json { ascii: true, ..PLAIN_JSON },
    Json { ascii: true, upper: true, ..PLAIN_JSON },
    Json { slash: true, ascii: true, ..PLAIN_JSON },
    // Go's encoding/json.
    Json { also: "<>&", ..PLAIN_JSON },
    // .NET's System.Text.Json.
    Json { slash: false, ascii: true, upper: true, also: "<>&'+`\"" },
];

fn json(value: &str, style: Json) -> String {
    let mut out = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        match c {
            _ if style.also.contains(c) || style.ascii && !c.is_ascii() => {
                unicode(&mut out, c, style.upper);
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if style.slash => out.push_str("\\/"),
            c if c < ' ' => unicode(&mut out, c, style.upper),
            c => out.push(c),
        }
    }
    out
}

fn unicode(out: &mut String, c: char, upper: bool) {
    // Writing into a String cannot fail.
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = if upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
    }
}

/// Besides letters and digits: RFC 3986, the same with `/`, encodeURIComponent, HTML forms, encodeURI.
const PERCENT_KEEPS: [&str; 5] = ["-._~", "-._~/", "-._~!*'()", "-._*", "-._~!*'();,/?:@&=+$#"];

fn percent(value: &str, keep: &str, plus: bool, upper: bool) -> String {
    let mut out = String::with_capacity(value.len() + 16);
    for &byte in value.as_bytes() {
        if byte.is_ascii_alphanumeric() || keep.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else if byte == b' ' && plus {
            out.push('+');
        } else {
            out.push('%');
            push_hex(&mut out, byte, upper);
        }
    }
    out
}

fn html(value: &str, quote: &str, apostrophe: &str) -> String {
    let tags = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    tags.replace('"', quote).replace('\'', apostrophe)
}

/// Python's repr(), which escapes the apostrophe only if the text has both quotes.
fn python(value: &str) -> String {
    let both = value.contains('"') && value.contains('\'');
    let mut out = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\'' if both => out.push_str("\\'"),
            c if c < ' ' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn hex(value: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len() * 2);
    for &byte in value.as_bytes() {
        push_hex(&mut out, byte, upper);
    }
    out
}

fn push_hex(out: &mut String, byte: u8, upper: bool) {
    let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
}

/// Adds the base64 forms of a value inside a longer text, in which the value starts at one of three places in a group
/// of three bytes. Only the first and last characters then contain bits of the neighbours.
fn base64(bytes: &[u8], alphabet: &[u8; 64], forms: &mut BTreeSet<String>) {
    for (lead, skip) in [(0, 0), (1, 2), (2, 3)] {
        let mut data = vec![0; lead];
        data.extend_from_slice(bytes);
        let chars = unpadded(&data, alphabet);
        let stable = data.len() * 8 / 6;
        let middle = chars.get(skip..stable).filter(|middle| middle.len() >= MIN_BYTES);
        let Some(middle) = middle else { continue };
        forms.insert(middle.to_owned());
        // If the data ends with the value, the last character is known as well.
        if let Some(tail) = chars.get(skip..).filter(|_| chars.len() > stable) {
            forms.insert(tail.to_owned());
            let padding = "=".repeat(3 - data.len() % 3);
            forms.insert(format!("{tail}{padding}"));
        }
    }
}

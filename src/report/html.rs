//! Text as HTML. Every text of a frame passes through here, so that it stays text.

use crate::clean::{escaped, whole};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// The maximum length of one text on the page, in bytes. The page has the number of omitted bytes.
pub(super) const TEXT_BYTES: usize = 64 << 10;

/// A text that is cut at [`TEXT_BYTES`] as it grows.
#[derive(Debug, Default)]
pub(super) struct Clipped {
    text: String,
    omitted: usize,
}

impl Clipped {
    pub(super) fn new(text: &str) -> Clipped {
        let mut clipped = Clipped::default();
        clipped.push(text);
        clipped
    }

    pub(super) fn push(&mut self, text: &str) {
        let room = if self.omitted > 0 { 0 } else { TEXT_BYTES - self.text.len() };
        let kept = text.floor_char_boundary(room);
        self.text.push_str(&text[..kept]);
        self.omitted += text.len() - kept;
    }

    pub(super) fn is_blank(&self) -> bool {
        self.omitted == 0 && self.text.trim().is_empty()
    }

    /// The text without escape sequences, for reading.
    pub(super) fn html(&self) -> String {
        escape(&whole(&self.text)).into_owned() + &self.omission()
    }

    /// The text with each deceptive character as an escape, for what a person approves.
    pub(super) fn exact(&self) -> String {
        escape(&escaped(&self.text, true)).into_owned() + &self.omission()
    }

    /// The first line that is not blank, for a title.
    pub(super) fn first_line(&self) -> String {
        line(self.text.lines().find(|text| !text.trim().is_empty()).unwrap_or_default())
    }

    fn omission(&self) -> String {
        match self.omitted {
            0 => String::new(),
            bytes => format!("<span class=cut>{} bytes omitted</span>", grouped(bytes as u64)),
        }
    }
}

/// A text for reading, cut at [`TEXT_BYTES`].
pub(super) fn text(text: &str) -> String {
    Clipped::new(text).html()
}

pub(super) fn line(text: &str) -> String {
    const CHARS: usize = 300;
    let short: String = text.chars().take(CHARS).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    escape(&crate::clean::one_line(&short)).into_owned() + more
}

/// Empty for a blank text.
pub(super) fn block(label: &str, class: &str, body: &Clipped) -> String {
    if body.is_blank() {
        return String::new();
    }
    format!("<div class=block><div class=label>{label}</div><pre class=\"{class}\">{}</pre></div>", body.html())
}

/// Empty for null and for an empty object or list.
pub(super) fn json(label: &str, value: &Value) -> String {
    let empty = match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if empty {
        return String::new();
    }
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    block(label, "", &Clipped::new(&pretty))
}

/// `lines`: hunks, each line with its sign.
pub(super) fn diff(path: &str, lines: &str) -> String {
    let shown = &lines[..lines.floor_char_boundary(TEXT_BYTES)];
    let mut html = format!("<div class=block><div class=label>{}</div><pre class=diff>", line(path));
    for text in shown.lines() {
        let class = match text.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'@' | b'\\') => "hunk",
            _ => "ctx",
        };
        let _ = write!(html, "<span class={class}>{}\n</span>", escape(&whole(text)));
    }
    if shown.len() < lines.len() {
        let omitted = grouped((lines.len() - shown.len()) as u64);
        let _ = write!(html, "<span class=cut>{omitted} bytes omitted</span>");
    }
    html + "</pre></div>"
}

fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'', '\0']) {
        return Cow::Borrowed(text);
    }
    let mut html = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\0' => html.push(char::REPLACEMENT_CHARACTER),
            c => html.push(c),
        }
    }
    Cow::Owned(html)
}

/// A number with a comma before each third digit.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{} h {:02} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

pub(super) fn money(dollars: f64) -> String {
    if dollars > 0.0 && dollars < 0.01 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

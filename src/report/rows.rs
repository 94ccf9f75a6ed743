//! The rows of a timeline, and the entries of a plan.

use super::html::line;
use super::value::str_of;
use serde_json::Value;
use std::fmt::Write;

pub(super) fn plan(entries: &[Value]) -> String {
    let mut html = String::from("<ul class=plan>");
    for entry in entries {
        let (class, sign) = match str_of(entry, "status") {
            "completed" => ("done", "✓"),
            "in_progress" => ("now", "▸"),
            _ => ("later", "○"),
        };
        let _ =
            write!(html, "<li class={class}><span aria-hidden=true>{sign}</span>{}</li>", line(str_of(entry, "text")));
    }
    html + "</ul>"
}

/// A row of a timeline: a line, which can be opened if it has a body.
pub(super) fn row(at: Option<u64>, class: &str, head: &str, body: &str, nested: bool) -> String {
    if body.is_empty() {
        return row_of(at, class, &format!("<div class=head>{head}</div>"), nested);
    }
    // A reader looks for failures, changes and questions first.
    let open = class.contains("failed") || class.contains("change") || class.contains("question");
    let open = if open { " open" } else { "" };
    let inner = format!("<details{open}><summary class=head>{head}</summary><div class=body>{body}</div></details>");
    row_of(at, class, &inner, nested)
}

pub(super) fn row_of(at: Option<u64>, class: &str, inner: &str, nested: bool) -> String {
    let time = at.map(clock).unwrap_or_default();
    let nested = if nested { " nested" } else { "" };
    format!("<li class=\"{class}{nested}\"><time>{time}</time><div class=what>{inner}</div></li>\n")
}

/// Minutes, seconds and tenths since the start.
fn clock(ms: u64) -> String {
    let (seconds, tenths) = (ms / 1_000, ms % 1_000 / 100);
    match seconds / 3_600 {
        0 => format!("{}:{:02}.{tenths}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

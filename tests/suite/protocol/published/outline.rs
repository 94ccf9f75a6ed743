//! JSON for people to read: the keys in their order, and what fits on a line.

use spektacular::json::to_line;
use std::fmt::Write;

/// The longest line, in characters.
const WIDTH: usize = 120;

/// A JSON value.
#[derive(Clone)]
pub(super) enum JsonTree {
    /// A value as JSON.
    Leaf(String),
    List(Vec<JsonTree>),
    Object(Vec<(String, JsonTree)>),
}

impl JsonTree {
    pub(super) fn text(text: &str) -> JsonTree {
        JsonTree::Leaf(to_line(&text))
    }

    pub(super) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> JsonTree {
        JsonTree::List(texts.into_iter().map(JsonTree::text).collect())
    }

    /// The value in at most [`WIDTH`] columns where that is possible. Ends with a newline.
    pub(super) fn page(&self) -> String {
        let mut out = String::new();
        self.put(0, 0, &mut out);
        out + "\n"
    }

    /// The value on one line.
    fn line(&self) -> String {
        let join = |parts: Vec<String>| parts.join(", ");
        match self {
            JsonTree::Leaf(json) => json.clone(),
            JsonTree::List(all) => format!("[{}]", join(all.iter().map(JsonTree::line).collect())),
            JsonTree::Object(all) => {
                format!(
                    "{{{}}}",
                    join(all.iter().map(|(key, node)| format!("{}: {}", to_line(key), node.line())).collect())
                )
            }
        }
    }

    /// `column`: the columns before the value on its first line.
    fn put(&self, depth: usize, column: usize, out: &mut String) {
        let line = self.line();
        if column + line.chars().count() < WIDTH {
            out.push_str(&line);
            return;
        }
        let indent = "  ".repeat(depth + 1);
        let (open, close) = match self {
            JsonTree::Leaf(json) => return out.push_str(json),
            JsonTree::List(_) => ('[', ']'),
            JsonTree::Object(_) => ('{', '}'),
        };
        let _ = write!(out, "{open}\n{indent}");
        match self {
            JsonTree::Leaf(_) => {}
            JsonTree::List(all) if all.iter().all(|node| matches!(node, JsonTree::Leaf(_))) => fill(all, &indent, out),
            JsonTree::List(all) => {
                for (at, node) in all.iter().enumerate() {
                    separate(at, &indent, out);
                    node.put(depth + 1, indent.len(), out);
                }
            }
            JsonTree::Object(all) => {
                for (at, (key, node)) in all.iter().enumerate() {
                    separate(at, &indent, out);
                    let key = to_line(key) + ": ";
                    out.push_str(&key);
                    node.put(depth + 1, indent.len() + key.chars().count(), out);
                }
            }
        }
        let _ = write!(out, "\n{}{close}", "  ".repeat(depth));
    }
}

fn separate(at: usize, indent: &str, out: &mut String) {
    if at > 0 {
        let _ = write!(out, ",\n{indent}");
    }
}

/// Writes as many values on each line as fit.
fn fill(all: &[JsonTree], indent: &str, out: &mut String) {
    let mut column = indent.len();
    for (at, node) in all.iter().enumerate() {
        let json = node.line();
        let width = json.chars().count() + 2;
        if at > 0 && column + width > WIDTH {
            separate(at, indent, out);
            column = indent.len();
        } else if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&json);
        column += width;
    }
}

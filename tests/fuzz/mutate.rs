//! Random changes to inputs: to the order of lines, to the JSON in a line, to its bytes.

use super::input::Input;
use super::json::Node;
use super::rng::Rng;

/// Contents of strings, as JSON escapes them.
const STRINGS: &[&str] = &[
    "",
    " ",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\\ud83d\\ude00",
    "\\u001b[31mred\\u001b[0m",
    "\\u001b]0;never ended",
    "\\u202e\\u2028\\u0085",
    "é\u{200b}ß",
    "\\r\\n\\r",
    "<!--QUESTION:{\\\"questions\\\":[{\\\"question\\\":\\\"Which?\\\",\\\"options\\\":[{\\\"label\\\":\\\"A\\\"}]}]}-->",
    "<!--QUESTION:",
    "-->",
    "```\\n",
    "<promise>COMPLETE</promise>",
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "Authorization: Bearer ",
    "https://user:pass@example.org/",
    "-----BEGIN RSA PRIVATE KEY-----\\n",
    "/home/user/project/a.txt",
    "../../../x",
    "/",
    "$q1",
    "allow_once",
    "deny",
    "{\\\"a\\\":[1]}",
    "^(?:a?){1000}b$",
    "(",
    "default",
];

/// Values other than strings.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1",
    "1.5",
    "1e308",
    "1e999",
    "-1e999",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "9007199254740993",
    "0.0000000000000000000000000001",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "\"\"",
    "NaN",
    "01",
    "",
];

/// Changes an input, once or a few times. `others`: inputs of the same target, as a source of parts. `words`: whole
/// lines to insert.
pub(crate) fn mutate(input: &Input, others: &[Input], words: &[&str], rng: &mut Rng) -> Input {
    let mut input = input.clone();
    for _ in 0..1 + rng.below(3) * rng.below(4) {
        once(&mut input, others, words, rng);
    }
    input
}

fn once(input: &mut Input, others: &[Input], words: &[&str], rng: &mut Rng) {
    if input.is_empty() {
        input.push(Vec::new());
    }
    let at = rng.below(input.len());
    match rng.below(16) {
        0 => drop(input.remove(at)),
        1 => input.insert(rng.below(input.len()), input[at].clone()),
        2 => {
            let other = rng.below(input.len());
            input.swap(at, other);
        }
        3 => input.truncate(at),
        4 => {
            let other = rng.pick(others);
            input.insert(at, rng.pick(other).clone());
        }
        5 if !words.is_empty() => input.insert(at, rng.pick(words).as_bytes().to_vec()),
        6 => {
            let more = 1 + rng.below(40);
            let line = input[at].clone();
            input.splice(at..at, std::iter::repeat_n(line, more));
        }
        7 => flip(&mut input[at], rng),
        _ => {
            let other = rng.pick(others);
            let other = rng.pick(other).clone();
            input[at] = json(&input[at], &other, rng);
        }
    }
}

/// Changes the bytes of a line. Its first two are the tag of a step.
fn flip(line: &mut Vec<u8>, rng: &mut Rng) {
    let from = rng.below(line.len() + 1).max(2.min(line.len()));
    match rng.below(5) {
        0 => line.truncate(from),
        1 => line.insert(from, (rng.next() & 0xff) as u8),
        2 if from < line.len() => drop(line.remove(from)),
        3 if from < line.len() => line[from] ^= 1 << rng.below(7),
        _ => {
            let word = rng.pick(STRINGS).replace("\\u001b", "\u{1b}");
            line.splice(from..from, word.bytes());
        }
    }
    line.retain(|byte| *byte != b'\n');
}

/// The tag of a step, and the JSON or text after it.
fn tagged(line: &str) -> (&str, &str) {
    if line.as_bytes().get(1) == Some(&b' ') { line.split_at(2) } else { ("", line) }
}

/// Changes the JSON in a line, or its bytes if it has none.
fn json(line: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let (tag, body) = tagged(&text);
    let Some(mut node) = Node::parse(body).filter(|node| node.count() > 1) else {
        let mut line = line.to_vec();
        flip(&mut line, rng);
        return line;
    };
    let other = String::from_utf8_lossy(other);
    let other = Node::parse(tagged(&other).1);
    change(&mut node, other, rng);
    let mut text = node.text();
    text.retain(|c| c != '\n');
    format!("{tag}{text}").into_bytes()
}

/// Changes one value inside.
fn change(node: &mut Node, other: Option<Node>, rng: &mut Rng) {
    let count = node.count();
    let Some(inside) = node.at(rng.below(count)) else { return };
    // JSON in a string.
    if let Some(nested) = inside.inside().filter(|text| text.starts_with("{\\\"")).and_then(unescaped)
        && let Some(mut nested) = Node::parse(&nested).filter(|_| !rng.once_in(3))
    {
        change(&mut nested, other, rng);
        *inside = Node::string(&nested.text().replace('\\', "\\\\").replace('"', "\\\""));
        return;
    }
    match inside {
        Node::Array(all) if !all.is_empty() && !rng.once_in(4) => list(all, rng),
        Node::Object(all) if !all.is_empty() && !rng.once_in(4) => fields(all, rng),
        _ => replace(inside, other, rng),
    }
}

fn unescaped(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

fn list(all: &mut Vec<Node>, rng: &mut Rng) {
    let at = rng.below(all.len());
    match rng.below(5) {
        0 => drop(all.remove(at)),
        1 => all.insert(rng.below(all.len()), all[at].clone()),
        2 => {
            let other = rng.below(all.len());
            all.swap(at, other);
        }
        3 => {
            let more = 1 + rng.below(30);
            let node = all[at].clone();
            all.splice(at..at, std::iter::repeat_n(node, more));
        }
        _ => all.clear(),
    }
}

fn fields(all: &mut Vec<(String, Node)>, rng: &mut Rng) {
    let at = rng.below(all.len());
    let other = rng.below(all.len());
    match rng.below(6) {
        0 | 1 => drop(all.remove(at)),
        2 => all.insert(other, all[at].clone()),
        3 => {
            // Exchanges the values of two keys.
            let node = all[at].1.clone();
            all[at].1 = std::mem::replace(&mut all[other].1, node);
        }
        4 => all[at].0 = all[other].0.clone(),
        _ => all[at].0 = format!("\"{}\"", rng.pick(STRINGS)),
    }
}

fn replace(node: &mut Node, other: Option<Node>, rng: &mut Rng) {
    let choice = rng.below(10);
    if let Some(inside) = node.inside() {
        let inside = inside.to_owned();
        let cut = inside.char_indices().map(|(at, _)| at).nth(rng.below(inside.len().max(1))).unwrap_or_default();
        let new = match choice {
            // A cut may break an escape, which makes the line invalid JSON. Few mutations should do so.
            0 if !inside.contains('\\') || rng.once_in(8) => inside[..cut].to_owned(),
            1 => format!("{inside}{}", rng.pick(STRINGS)),
            2 => format!("{}{inside}", rng.pick(STRINGS)),
            3 if !inside.contains('\\') => format!("{}{}{}", &inside[..cut], rng.pick(STRINGS), &inside[cut..]),
            4 => inside.repeat(2 + rng.below(20)),
            5 => format!("{inside}{}", "x".repeat(rng.below(5000))),
            6 => (*rng.pick(STRINGS)).to_owned(),
            _ => String::new(),
        };
        if choice < 7 {
            *node = Node::string(&new);
            return;
        }
    }
    *node = match choice {
        0..=4 => Node::Scalar((*rng.pick(VALUES)).to_owned()),
        5 => Node::string(rng.pick::<&str>(STRINGS)),
        6 => Node::Array(vec![node.clone()]),
        7 => {
            let depth = 1 + rng.below(300);
            Node::Scalar(format!("{}{}", "[".repeat(depth), "]".repeat(depth)))
        }
        _ => match other {
            Some(mut other) => {
                let count = other.count();
                other.at(rng.below(count)).cloned().unwrap_or_else(|| Node::Scalar("null".into()))
            }
            None => Node::Object(vec![("\"type\"".into(), node.clone())]),
        },
    };
}

/// A place of an input that can grow to any size.
#[derive(Clone, Debug)]
pub(crate) struct Pump {
    line: usize,
    kind: PumpKind,
}

#[derive(Clone, Debug)]
enum PumpKind {
    Line,
    /// The value with this number, whose elements or characters are repeated.
    Inside(usize),
}

impl Pump {
    /// `from`: the first line that may change.
    pub(crate) fn of(input: &Input, from: usize, rng: &mut Rng) -> Pump {
        let line = from + rng.below(input.len().saturating_sub(from));
        let text = input.get(line).map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
        let node = Node::parse(tagged(&text).1).filter(|node| node.count() > 1 && !rng.once_in(3));
        let kind = node.map_or(PumpKind::Line, |node| PumpKind::Inside(rng.below(node.count())));
        Pump { line, kind }
    }

    /// The input with about this many additional bytes.
    pub(crate) fn grown(&self, input: &Input, bytes: usize) -> Input {
        let mut input = input.clone();
        let Some(line) = input.get(self.line).cloned() else { return input };
        let text = String::from_utf8_lossy(&line);
        let (tag, body) = tagged(&text);
        match (self.kind.clone(), Node::parse(body)) {
            (PumpKind::Inside(number), Some(mut node)) => {
                if let Some(node) = node.at(number) {
                    grow(node, bytes);
                }
                input[self.line] = format!("{tag}{}", node.text()).into_bytes();
            }
            _ => {
                let times = bytes / (line.len() + 1).max(4);
                input.splice(self.line..self.line, std::iter::repeat_n(line.clone(), times));
            }
        }
        input
    }
}

/// Repeats the elements of a value. The copies get numbers, so that they all differ.
fn grow(node: &mut Node, bytes: usize) {
    match node {
        Node::Scalar(_) => {
            let inside = node.inside().filter(|text| !text.is_empty()).unwrap_or("x ").to_owned();
            *node = Node::string(&inside.repeat(bytes / inside.len()));
        }
        Node::Array(all) => {
            let one = all.first().cloned().unwrap_or(Node::Scalar("0".into()));
            let times = bytes / (one.text().len() + 1);
            all.extend((0..times).map(|number| numbered(&one, number)));
        }
        Node::Object(all) => {
            let (key, one) = all.first().cloned().unwrap_or(("\"a\"".into(), Node::Scalar("0".into())));
            let times = bytes / (key.len() + one.text().len() + 8);
            let key = key.trim_matches('"').to_owned();
            all.extend((0..times).map(|number| (format!("\"{key}{number}\""), one.clone())));
        }
    }
}

fn numbered(node: &Node, number: usize) -> Node {
    match node {
        Node::Scalar(_) => match node.inside() {
            Some(inside) => Node::string(&format!("{inside}{number}")),
            None => node.clone(),
        },
        Node::Array(all) => Node::Array(all.iter().map(|node| numbered(node, number)).collect()),
        Node::Object(all) => {
            // The words of a dialect stay unchanged.
            let change = |(key, node): &(String, Node)| {
                let word = ["\"type\"", "\"status\"", "\"kind\"", "\"subtype\""].contains(&key.as_str());
                (key.clone(), if word { node.clone() } else { numbered(node, number) })
            };
            Node::Object(all.iter().map(change).collect())
        }
    }
}

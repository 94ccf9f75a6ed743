//! JSON as written. Keeps numbers of any size, repeated keys and lone surrogates.

/// A value. A scalar is kept as its source text, a string with its quotes.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Scalar(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn blank(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.blank();
        let found = self.text[self.at..].starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn scalar(&mut self) -> Option<String> {
        self.blank();
        let rest = &self.text[self.at..];
        let length = if rest.starts_with('"') {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            end?.0 + 1
        } else {
            rest.find([',', ']', '}', ':', ' ', '\t', '\r', '\n', '"', '[', '{']).unwrap_or(rest.len())
        };
        self.at += length;
        (length > 0).then(|| rest[..length].to_owned())
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth == 0 {
            return None;
        }
        if self.takes("[") {
            let mut all = Vec::new();
            while !self.takes("]") {
                all.push(self.value(depth - 1)?);
                self.takes(",");
            }
            return Some(Node::Array(all));
        }
        if self.takes("{") {
            let mut all = Vec::new();
            while !self.takes("}") {
                let key = self.scalar()?;
                self.takes(":").then_some(())?;
                all.push((key, self.value(depth - 1)?));
                self.takes(",");
            }
            return Some(Node::Object(all));
        }
        self.scalar().map(Node::Scalar)
    }
}

impl Node {
    /// Parses JSON, leniently.
    pub(crate) fn parse(text: &str) -> Option<Node> {
        let mut parser = Parser { text, at: 0 };
        let node = parser.value(200)?;
        parser.blank();
        (parser.at == text.len()).then_some(node)
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Node::Scalar(text) => out.push_str(text),
            Node::Array(all) => {
                out.push('[');
                for (at, node) in all.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    node.write(out);
                }
                out.push(']');
            }
            Node::Object(all) => {
                out.push('{');
                for (at, (key, node)) in all.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(key);
                    out.push(':');
                    node.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The number of values in this value, including itself.
    pub(crate) fn count(&self) -> usize {
        1 + match self {
            Node::Scalar(_) => 0,
            Node::Array(all) => all.iter().map(Node::count).sum(),
            Node::Object(all) => all.iter().map(|(_, node)| node.count()).sum(),
        }
    }

    /// The value with this number. 0 is the value itself.
    pub(crate) fn at(&mut self, mut number: usize) -> Option<&mut Node> {
        if number == 0 {
            return Some(self);
        }
        number -= 1;
        let children: Vec<&mut Node> = match self {
            Node::Scalar(_) => return None,
            Node::Array(all) => all.iter_mut().collect(),
            Node::Object(all) => all.iter_mut().map(|(_, node)| node).collect(),
        };
        for child in children {
            let count = child.count();
            if number < count {
                return child.at(number);
            }
            number -= count;
        }
        None
    }

    /// The text between the quotes of a string, still escaped.
    pub(crate) fn inside(&self) -> Option<&str> {
        let Node::Scalar(text) = self else { return None };
        text.strip_prefix('"')?.strip_suffix('"')
    }

    /// A string with this text, which is already escaped.
    pub(crate) fn string(inside: &str) -> Node {
        Node::Scalar(format!("\"{inside}\""))
    }
}

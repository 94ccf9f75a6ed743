//! Markers in a text that arrives in pieces, outside code fences, such as `<!--QUESTION:…-->`.

const END: &str = "-->";

/// Removes the markers of one kind from a message that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Cutter {
    begin: &'static str,
    /// In bytes.
    longest: usize,
    /// Text that may begin a marker.
    held: String,
    /// The number of bytes at the beginning of `held` that were already returned.
    gone: usize,
    fences: Fences,
}

impl Cutter {
    pub(crate) fn new(begin: &'static str, longest: usize) -> Cutter {
        Cutter { begin, longest, held: String::new(), gone: 0, fences: Fences::default() }
    }

    /// Takes a piece and returns the text without markers. `None`: the piece stays the same. `done`: the piece ends the
    /// message. `take` gets the content of each marker; a marker for which it returns false stays text.
    pub(crate) fn push(&mut self, piece: &str, done: bool, take: &mut dyn FnMut(&str) -> bool) -> Option<String> {
        if self.held.is_empty() && !piece.contains('<') {
            self.fences.see(piece);
            return None;
        }
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, after) = rest.split_at(self.step(rest));
            rest = after;
            if self.held().is_empty() && !taken.starts_with('<') {
                self.fences.see(taken);
                out.push_str(taken);
            } else {
                self.held.push_str(taken);
                self.release_held(&mut out, take);
            }
        }
        if done {
            out.push_str(self.held());
        }
        Some(out)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// The length of the next part to examine: up to a possible beginning, one character of it, or up to a possible
    /// end.
    fn step(&self, text: &str) -> usize {
        let held = self.held().len();
        if held == 0 {
            return text.find('<').map_or(text.len(), |at| at.max(1));
        }
        if held < self.begin.len() {
            return text.chars().next().map_or(0, char::len_utf8);
        }
        let room = text.ceil_char_boundary((self.longest + 1).saturating_sub(held).clamp(1, text.len()));
        text[..room].find('>').map_or(room, |at| at + 1)
    }

    fn held(&self) -> &str {
        &self.held[self.gone..]
    }

    /// Moves held text to `out` once it cannot be a marker, and passes the content of a complete marker to `take`.
    fn release_held(&mut self, out: &mut String, take: &mut dyn FnMut(&str) -> bool) {
        let (begin, longest) = (self.begin, self.longest);
        // Each attempt parses everything up to the end, so only the first and the last of several beginnings are tried.
        let last = self.held().ends_with(END).then(|| self.held.rfind(begin)).flatten();
        let mut first = true;
        while !self.held().is_empty() {
            let held = &self.held[self.gone..];
            let whole = held.len() >= begin.len();
            let may_be = !self.fences.open() && if whole { held.starts_with(begin) } else { begin.starts_with(held) };
            if may_be && (!whole || (!held.ends_with(END) && held.len() <= longest)) {
                // Done only occasionally, because it moves all of the held text.
                if self.gone > longest {
                    self.held.drain(..self.gone);
                    self.gone = 0;
                }
                return;
            }
            let tried = may_be && (std::mem::take(&mut first) || last == Some(self.gone));
            let marker = held.strip_suffix(END).filter(|_| tried);
            if marker.is_some_and(|text| take(&text[begin.len()..])) {
                self.gone = self.held.len();
            } else {
                let text = held.get(1..).and_then(|rest| rest.find('<')).map_or(held, |at| &held[..=at]);
                self.fences.see(text);
                out.push_str(text);
                self.gone += text.len();
            }
        }
        self.held.clear();
        self.gone = 0;
    }
}

#[derive(Debug, Default)]
struct Fences {
    /// The beginning of the current line.
    line: String,
    fence: Fence,
}

impl Fences {
    /// The number of bytes at the beginning of a line that can decide about a fence.
    const LINE_BYTES: usize = 80;

    fn open(&self) -> bool {
        self.fence.is_open()
    }

    fn see(&mut self, text: &str) {
        let mut lines = text.split('\n');
        self.add(lines.next().unwrap_or_default());
        for line in lines {
            self.fence.see_line(&self.line);
            self.line.clear();
            self.add(line);
        }
    }

    fn add(&mut self, text: &str) {
        let room = Self::LINE_BYTES.saturating_sub(self.line.len()).min(text.len());
        self.line.push_str(&text[..text.ceil_char_boundary(room)]);
    }
}

/// The open code fence, if there is one: its character and its length.
#[derive(Debug, Default)]
pub(crate) struct Fence(Option<(char, usize)>);

impl Fence {
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Sees a whole line, or its beginning.
    pub(crate) fn see_line(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let sign = text.chars().next().filter(|_| line.len() - text.len() <= 3);
        if let Some(sign @ ('`' | '~')) = sign {
            let length = text.chars().take_while(|c| *c == sign).count();
            self.0 = match self.0 {
                None if length >= 3 => Some((sign, length)),
                Some((open, least)) if open == sign && length >= least && text.trim_end().len() == length => None,
                same => same,
            };
        }
    }
}

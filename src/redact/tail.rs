//! The rest of a shape after its certain part.

use super::view::{Class, MAX_SLASHES, NoMatch, Quote, View, is_quote};

const MAX_PEM_LABEL: usize = 64;

#[derive(Clone, Debug)]
pub(super) enum Tail {
    Run(Class),
    Line(LineTail),
    Pem,
}

impl Tail {
    /// The end of the tail. Error: the tail continues; the position to resume from.
    pub(super) fn end(&mut self, view: View<'_>, from: usize) -> Result<usize, usize> {
        let mut at = from;
        loop {
            let next = match self {
                Tail::Run(class) => view.at_least(at, *class, 1),
                Tail::Line(line) => line.element(view, at),
                Tail::Pem => return pem_end(view, at),
            };
            match next {
                Ok(next) => at = next,
                Err(NoMatch::No) => return Ok(at),
                Err(NoMatch::More) => return Err(at),
            }
        }
    }
}

fn pem_end(view: View<'_>, from: usize) -> Result<usize, usize> {
    let mut at = from;
    while let Some(n) = view.bytes[at..].iter().position(|&byte| byte == b'-') {
        at += n;
        match pem_line(view, at, b"-----END ") {
            Ok(end) => return Ok(end),
            Err(NoMatch::More) => return Err(at),
            Err(NoMatch::No) => at += 1,
        }
    }
    // A cut key extends to the end of the text.
    let end = view.bytes.len();
    if view.open { Err(end) } else { Ok(end) }
}

/// Matches the first or last line of a private key, which begins with `start`.
pub(super) fn pem_line(view: View<'_>, at: usize, start: &[u8]) -> Result<usize, NoMatch> {
    let label = view.literal(at, start)?;
    let end = view.whole_run(label, Class::Label, 0, MAX_PEM_LABEL)?;
    let text = &view.bytes[label..end];
    if !text.ends_with(b"PRIVATE KEY") && !text.ends_with(b"PRIVATE KEY BLOCK") {
        return Err(NoMatch::No);
    }
    view.literal(end, b"-----")
}

/// The rest of a line or of a quoted text.
#[derive(Clone, Debug, Default)]
pub(super) struct LineTail {
    /// The quote that opened the value.
    pub(super) quote: Option<Quote>,
    /// Whether the value is a list of `name="value"`.
    pub(super) list: bool,
    /// The quote that opened an entry of the list.
    pub(super) inner: Option<Quote>,
    pub(super) equals: bool,
}

impl LineTail {
    /// The position after the next element. Error: the value ends before it, or more text is needed.
    pub(super) fn element(&mut self, view: View<'_>, at: usize) -> Result<usize, NoMatch> {
        let end = view.whole_run(at, Class::Backslash, 0, MAX_SLASHES)?;
        let slashes = end - at;
        let byte = view.at(end)?;
        match byte {
            b'\n' | b'\r' => return Err(NoMatch::No),
            b'<' if self.quote.is_none() => return Err(NoMatch::No),
            mark if is_quote(mark) => self.at_quote(Quote { mark, slashes })?,
            // An escaped line end or quote ends the value. Other escapes belong to the value.
            b'n' | b'r' if slashes > 0 => return Err(NoMatch::No),
            b'u' if slashes > 0 => {
                let rest = &view.bytes[end + 1..];
                let code = &rest[..rest.len().min(4)];
                let ends: [&[u8]; 5] = [b"000a", b"000d", b"0022", b"0027", b"003c"];
                if ends.iter().any(|hex| hex[..code.len()].eq_ignore_ascii_case(code)) {
                    return Err(if code.len() == 4 { NoMatch::No } else { view.ran_out() });
                }
            }
            _ => {}
        }
        self.equals = byte == b'=';
        Ok(end + 1)
    }

    fn at_quote(&mut self, here: Quote) -> Result<(), NoMatch> {
        let closes = |open: Quote| open.mark == here.mark && here.slashes <= open.slashes;
        if self.inner == Some(here) {
            self.inner = None;
        } else if self.quote.is_some_and(closes) || self.inner.is_some_and(closes) {
            return Err(NoMatch::No);
        } else if self.inner.is_some() {
            // A different quote inside an entry.
        } else if self.list && self.equals {
            self.inner = Some(here);
        } else if self.quote.is_none() {
            return Err(NoMatch::No);
        }
        Ok(())
    }
}

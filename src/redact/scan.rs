//! The scan of one text: finds where secrets begin, and how far each mask reaches.

use super::shapes::{self, Armed};
use super::tail::Tail;
use super::view::{NoMatch, View, is_word, known};
use super::{MASK, Redactor};

/// A part of the text between two masks. No form or token crosses a mask.
struct Segment {
    end: usize,
    open: bool,
    masked: bool,
}

impl Segment {
    fn at_end_of(scan: &Scan<'_>) -> Self {
        let mut from = scan.at;
        while let Some(n) = scan.text[from..].find('[') {
            let end = from + n;
            let rest = &scan.text[end..];
            let masked = rest.starts_with(MASK);
            let open = !scan.closed && !masked;
            if masked || open && MASK.starts_with(rest) {
                return Self { end, open, masked };
            }
            from = end + 1;
        }
        Self { end: scan.text.len(), open: !scan.closed, masked: false }
    }
}

enum Pause {
    /// A mask was written, but the end of its secret is unknown.
    Masked,
    /// The decision needs further text.
    Hold,
    End,
}

enum Step {
    Mask(Growth),
    Arm(Armed),
}

/// A secret with a written mask and an unknown end.
pub(super) struct Growth {
    pub(super) at: usize,
    pub(super) tail: Option<Tail>,
    /// The earliest possible end.
    pub(super) least: usize,
}

impl Growth {
    fn new(at: usize, tail: Option<Tail>, form: Option<usize>) -> Self {
        let least = form.map_or(at, |end| end.max(at));
        Self { at, tail, least }
    }
}

pub(super) struct Scan<'t> {
    text: &'t str,
    closed: bool,
    /// The position up to which everything is decided.
    pub(super) at: usize,
    /// The end of the last mask, where a word may begin.
    pub(super) gap: usize,
    /// The position up to which the text was copied to `out`, unless `out` is empty.
    pub(super) copied: usize,
    pub(super) out: String,
    pub(super) armed: Option<Armed>,
    pub(super) growth: Option<Growth>,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str, at: usize, closed: bool) -> Self {
        Self { text, closed, at, gap: 0, copied: at, out: String::new(), armed: None, growth: None }
    }

    fn mask(&mut self, growth: Growth) {
        self.out.push_str(&self.text[self.copied..self.at]);
        self.out.push_str(MASK);
        self.growth = Some(growth);
    }

    /// Skips the rest of the last secret. False: the secret does not end in this text.
    fn swallow(&mut self) -> bool {
        let Some(mut growth) = self.growth.take() else { return true };
        let view = View { bytes: self.text.as_bytes(), open: !self.closed };
        let end = match &mut growth.tail {
            None => Ok(growth.at),
            Some(tail) => tail.end(view, growth.at),
        };
        match end {
            Ok(end) => {
                let end = end.max(growth.least);
                self.resume_after_mask(end, end);
                true
            }
            Err(at) => {
                growth.at = at;
                self.resume_after_mask(at, at);
                self.growth = Some(growth);
                false
            }
        }
    }

    fn resume_after_mask(&mut self, at: usize, copied: usize) {
        self.at = at;
        self.gap = at;
        self.copied = copied;
        if self.armed.as_ref().is_some_and(|armed| armed.at < at) {
            self.armed = None;
        }
    }
}

impl Redactor {
    /// Scans the text up to its end, or to a place where further text decides.
    pub(super) fn run(&self, scan: &mut Scan<'_>) {
        let mut segment = Segment::at_end_of(scan);
        loop {
            if !scan.swallow() {
                return;
            }
            if scan.at > segment.end {
                segment = Segment::at_end_of(scan);
            }
            match self.segment(scan, &segment) {
                Pause::Masked => {}
                Pause::Hold => return,
                Pause::End if segment.masked => {
                    scan.resume_after_mask(segment.end + MASK.len(), scan.copied);
                    segment = Segment::at_end_of(scan);
                }
                Pause::End => return,
            }
        }
    }

    /// Scans the text up to the segment's end, or to the first new mask.
    fn segment(&self, scan: &mut Scan<'_>, segment: &Segment) -> Pause {
        let view = View { bytes: &scan.text.as_bytes()[..segment.end], open: segment.open };
        while scan.at < segment.end {
            let limit = scan.armed.as_ref().map_or(segment.end, |armed| armed.at);
            scan.at = self.filter.next(view.bytes, scan.at, limit);
            if scan.at == segment.end {
                break;
            }
            match self.step(view, scan) {
                Ok(Step::Mask(growth)) => {
                    scan.mask(growth);
                    return Pause::Masked;
                }
                Ok(Step::Arm(armed)) => scan.armed = Some(armed),
                Err(NoMatch::More) => return Pause::Hold,
                Err(NoMatch::No) => {}
            }
            scan.at += 1;
        }
        Pause::End
    }

    fn step(&self, view: View<'_>, scan: &Scan<'_>) -> Result<Step, NoMatch> {
        let at = scan.at;
        let form = known(self.form_at(view, at))?;
        if let Some(armed) = scan.armed.as_ref().filter(|armed| armed.at == at) {
            // Only a key with several lines can be longer than the armed shape.
            let (end, tail) = match known(shapes::pem(view, at))? {
                Some(found) => (found.end, found.tail),
                None => (armed.end, armed.tail.clone()),
            };
            return Ok(Step::Mask(Growth::new(end, tail, form)));
        }
        if let Some((end, tail)) = known(self.shape_at(view, scan.gap, at))? {
            return Ok(Step::Mask(Growth::new(end, tail, form)));
        }
        if let Some(end) = form {
            return Ok(Step::Mask(Growth::new(end, None, form)));
        }
        if scan.armed.is_some() {
            return Err(NoMatch::No);
        }
        shapes::armed(view, scan.gap, at).map(Step::Arm)
    }

    fn shape_at(&self, view: View<'_>, gap: usize, at: usize) -> Result<(usize, Option<Tail>), NoMatch> {
        let found = shapes::direct(view, gap, at)?;
        // A form also ends the word, because it becomes a mask.
        if found.exact && known(view.at(found.end))?.is_some_and(is_word) {
            self.form_at(view, found.end)?;
        }
        Ok((found.end, found.tail))
    }
}

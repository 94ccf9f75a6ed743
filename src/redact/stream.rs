//! Redacts a text that arrives in pieces.

use super::scan::{Growth, Scan};
use super::shapes::{Armed, LOOK_BACK};
use super::{MASK, Redactor};
use crate::clean::Cleaner;
use std::borrow::Cow;
use std::fmt;

impl Redactor {
    /// Whether a piece contains neither a secret, nor the beginning of one, nor the beginning of a mask.
    fn passes(&self, piece: &str) -> bool {
        let bytes = piece.as_bytes();
        let end = &bytes[bytes.len().saturating_sub(MASK.len() - 1)..];
        let may_be_mask =
            end.iter().rposition(|&byte| byte == b'[').is_some_and(|at| MASK.as_bytes().starts_with(&end[at..]));
        !may_be_mask && self.filter.next(bytes, 0, bytes.len()) == bytes.len()
    }
}

/// Redacts a text that arrives in pieces.
///
/// The joined results equal [`Redactor::redact`] of the joined pieces, wherever they were cut. The stream holds back
/// the end of the text while it may become a secret: at most the length of the longest form, or about 20 KiB of a
/// possible JWT. A certain but unfinished secret is masked at once, and the stream drops its rest.
#[derive(Default)]
pub struct Stream {
    /// Up to [`LOOK_BACK`] bytes that were already returned, then the bytes that are held back.
    text: String,
    returned: usize,
    armed: Option<Armed>,
    growth: Option<Growth>,
    /// The cleaner, for a redactor that cleans first.
    cleaner: Cleaner,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held()).finish_non_exhaustive()
    }
}

impl Stream {
    /// Takes the next piece and returns the text that is now certain. The result is borrowed if it is the piece itself.
    pub fn push<'a>(&mut self, redactor: &Redactor, piece: &'a str) -> Cow<'a, str> {
        if !redactor.cleans {
            return self.push_piece(redactor, piece);
        }
        match self.cleaner.push(piece) {
            Cow::Borrowed(piece) => self.push_piece(redactor, piece),
            Cow::Owned(clean) => Cow::Owned(self.push_piece(redactor, &clean).into_owned()),
        }
    }

    fn push_piece<'a>(&mut self, redactor: &Redactor, piece: &'a str) -> Cow<'a, str> {
        let nothing_held = self.held() == 0 && self.armed.is_none() && self.growth.is_none();
        if nothing_held && redactor.passes(piece) {
            self.text.push_str(&piece[piece.floor_char_boundary(piece.len().saturating_sub(LOOK_BACK))..]);
            let start = self.text.floor_char_boundary(self.text.len().saturating_sub(LOOK_BACK));
            self.text.drain(..start);
            self.returned = self.text.len();
            return Cow::Borrowed(piece);
        }
        self.text.push_str(piece);
        Cow::Owned(self.advance(redactor, false))
    }

    /// Returns the text that is held back, and resets the stream for another text.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        self.text.push_str(self.cleaner.finish());
        let out = self.advance(redactor, true);
        *self = Self::default();
        out
    }

    /// The number of bytes that are held back.
    pub fn held(&self) -> usize {
        self.text.len() - self.returned
    }

    fn advance(&mut self, redactor: &Redactor, closed: bool) -> String {
        let text = std::mem::take(&mut self.text);
        let mut scan = Scan::new(&text, self.returned, closed);
        scan.armed = self.armed.take();
        scan.growth = self.growth.take();
        redactor.run(&mut scan);
        let mut out = scan.out;
        out.push_str(&text[scan.copied..scan.at]);

        let back = scan.at.saturating_sub(LOOK_BACK).max(scan.gap);
        let start = text.floor_char_boundary(back);
        self.returned = scan.at - start;
        self.armed = scan.armed.map(|armed| Armed { at: armed.at - start, end: armed.end - start, ..armed });
        self.growth = scan.growth.map(|growth| Growth {
            at: growth.at - start,
            least: growth.least.saturating_sub(start),
            ..growth
        });
        self.text = text;
        self.text.drain(..start);
        out
    }
}

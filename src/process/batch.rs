//! Batches: lines of the agent that were read together. A batch passes from the reader to the loop as one text, and the
//! text's memory is reused for a later batch.

use crate::io::lines::READ_BYTES;
use std::borrow::Cow;

/// The maximum number of lines in a batch, apart from an empty line before the last one.
pub(super) const BATCH_LINES: usize = 14;
/// The size in bytes at which a batch accepts no further line. A single line may be longer.
const BATCH_BYTES: usize = READ_BYTES / 2;

/// The lines of the next batch, not yet checked for UTF-8.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    /// The end of each line in `bytes`.
    ends: Vec<usize>,
}

/// A batch of lines, in order. Bytes that are not UTF-8 are replaced by U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    ends: Vec<usize>,
    /// The number of taken lines, and the beginning of the next one.
    taken: usize,
    start: usize,
    /// The number of bytes that were read.
    size: usize,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_LINES || self.bytes.len() >= BATCH_BYTES
    }

    /// Adds a line. Does not copy a long line that is the only one in its batch.
    pub(super) fn push(&mut self, line: Cow<'_, [u8]>) {
        match line {
            Cow::Owned(line) if line.len() >= BATCH_BYTES && self.bytes.is_empty() => self.bytes = line,
            line @ (Cow::Owned(_) | Cow::Borrowed(_)) => self.bytes.extend_from_slice(&line),
        }
        self.ends.push(self.bytes.len());
    }

    /// The lines as text. The whole batch is validated at once.
    pub(super) fn into_lines(self) -> Lines {
        let Gathered { bytes, mut ends } = self;
        let size = bytes.len();
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            let (mut text, mut start) = (String::new(), 0);
            for end in &mut ends {
                text.push_str(&String::from_utf8_lossy(&error.as_bytes()[start..*end]));
                start = std::mem::replace(end, text.len());
            }
            text
        });
        Lines { text, ends, taken: 0, start: 0, size }
    }
}

impl Lines {
    /// Whether every line was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.ends.len()
    }

    /// The number of lines, taken or not.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes that were read for this batch.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Takes the next line. A long line is owned, so that keeping it needs no copy.
    pub(crate) fn next(&mut self) -> Option<Cow<'_, str>> {
        let end = *self.ends.get(self.taken)?;
        self.taken += 1;
        let start = std::mem::replace(&mut self.start, end);
        if self.ends.len() == 1 && end >= BATCH_BYTES {
            return Some(Cow::Owned(std::mem::take(&mut self.text)));
        }
        Some(Cow::Borrowed(&self.text[start..end]))
    }

    /// Returns the memory of a batch whose lines were taken, for the next batch.
    pub(super) fn reuse(self) -> Gathered {
        let Lines { text, mut ends, .. } = self;
        let mut bytes = text.into_bytes();
        bytes.clear();
        ends.clear();
        // A batch that ended with a long line is larger than most.
        bytes.shrink_to(2 * BATCH_BYTES);
        Gathered { bytes, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, Gathered};

    #[test]
    fn broken_characters_are_replaced_line_by_line() {
        let mut gathered = Gathered::default();
        for line in [b"a\xe2\x82".as_slice(), b"", b"\xff\xffb", "é".as_bytes()] {
            gathered.push(line.into());
        }
        let mut lines = gathered.into_lines();
        let all: Vec<String> = std::iter::from_fn(|| lines.next().map(|line| line.into_owned())).collect();
        assert_eq!(all, ["a\u{fffd}", "", "\u{fffd}\u{fffd}b", "é"]);
        assert!(lines.is_empty());
    }

    #[test]
    fn a_long_line_is_neither_copied_nor_kept() {
        let long = vec![b'x'; 10 * BATCH_BYTES];
        let address = long.as_ptr();
        let mut gathered = Gathered::default();
        gathered.push(long.into());
        assert!(gathered.is_full());
        let mut lines = gathered.into_lines();
        let line = lines.next().unwrap();
        assert_eq!((line.as_ptr(), line.len()), (address, 10 * BATCH_BYTES));
        drop(line);
        assert_eq!(lines.reuse().bytes.capacity(), 0);
    }
}

//! The position of a value in a line.

/// A part of a line, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Span {
    /// A span of these byte positions. They fit into 32 bits because no line reaches 4 GiB.
    pub(super) fn new(from: usize, to: usize) -> Span {
        Span { from: from as u32, to: to as u32 }
    }

    #[inline]
    pub(super) fn slice_of(self, line: &str) -> &str {
        line.get(self.from as usize..self.to as usize).unwrap_or_default()
    }

    /// Whether the span's text equals `text`.
    #[inline]
    pub(super) fn is(self, line: &str, text: &str) -> bool {
        let bytes = line.as_bytes().get(self.from as usize..self.to as usize);
        (self.to - self.from) as usize == text.len() && bytes.is_some_and(|bytes| is_same(bytes, text.as_bytes()))
    }

    /// The span of a string without its quotes.
    pub(super) fn inside(self) -> Span {
        Span { from: self.from + 1, to: (self.from + 1).max(self.to.saturating_sub(1)) }
    }

    /// The span of a string with its quotes, from the span without them.
    pub(super) fn outside(self) -> Span {
        Span { from: self.from.saturating_sub(1), to: self.to + 1 }
    }
}

/// Whether texts of the same length are equal. Compares words: faster than a call for texts as short as keys.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if let Some(last) = a.last_chunk::<8>() {
        return b.last_chunk() == Some(last) && a.as_chunks::<8>().0.iter().eq(b.as_chunks().0);
    }
    if let (Some(first), Some(last)) = (a.first_chunk::<4>(), a.last_chunk::<4>()) {
        return b.first_chunk() == Some(first) && b.last_chunk() == Some(last);
    }
    a.iter().eq(b)
}

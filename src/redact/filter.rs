//! Finds the places in a text where a secret may begin, without comparing the secrets.

/// The first three bytes of all forms and shapes. Two bytes rule out nearly every place in a text, and the third byte
/// nearly all others, so that the cost hardly depends on the number of secrets.
#[derive(Clone)]
pub(super) struct Filter {
    firsts: [bool; 256],
    /// One bit for each pair of the first two bytes.
    pairs: Box<Bits>,
    /// One bit for each pair of neighbours among the three bytes.
    neighbours: Box<Bits>,
    /// One bit for each hash of three bytes.
    triples: Box<Bits>,
}

type Bits = [u64; 1024];

impl Default for Filter {
    fn default() -> Self {
        Self {
            firsts: [false; 256],
            pairs: Box::new([0; 1024]),
            neighbours: Box::new([0; 1024]),
            triples: Box::new([0; 1024]),
        }
    }
}

impl Filter {
    pub(super) fn add(&mut self, [a, b, c]: [u8; 3]) {
        self.firsts[usize::from(a)] = true;
        set(&mut self.pairs, pair(a, b));
        set(&mut self.neighbours, pair(a, b));
        set(&mut self.neighbours, pair(b, c));
        set(&mut self.triples, triple(a, b, c));
    }

    /// Whether a secret may begin anywhere in a complete text.
    pub(super) fn finds(&self, bytes: &[u8]) -> bool {
        // Every secret is longer than two bytes.
        self.position(bytes).is_some()
    }

    /// The first place between `from` and `limit` where a secret may begin; otherwise `limit`. The text may continue
    /// after its last byte.
    pub(super) fn next(&self, bytes: &[u8], from: usize, limit: usize) -> usize {
        let whole = &bytes[from..bytes.len().min(limit + 2)];
        if let Some(n) = self.position(whole) {
            return from + n;
        }
        let rest = (from + whole.len().saturating_sub(2)).max(from)..limit.min(bytes.len());
        let end = rest.end;
        rest.into_iter().find(|&at| self.may_begin(&bytes[at..])).unwrap_or(end.max(from))
    }

    /// The first place where a secret may begin, without the last two bytes.
    fn position(&self, bytes: &[u8]) -> Option<usize> {
        let (pairs, _) = bytes.get(1..)?.as_chunks();
        for (at, &[a, b]) in pairs.iter().enumerate() {
            // One lookup rules out most places.
            if get(&self.neighbours, pair(a, b)) {
                let begins = |at: &usize| bytes.get(*at..*at + 3).is_some_and(|three| self.may_begin(three));
                if let Some(at) = [2 * at, 2 * at + 1].into_iter().find(begins) {
                    return Some(at);
                }
            }
        }
        None
    }

    /// Whether a secret may begin with these bytes. True if there are too few bytes to decide.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        match *bytes {
            [] => false,
            [a] => self.firsts[usize::from(a)],
            [a, b] => get(&self.pairs, pair(a, b)),
            [a, b, c, ..] => get(&self.pairs, pair(a, b)) && get(&self.triples, triple(a, b, c)),
        }
    }
}

fn pair(a: u8, b: u8) -> usize {
    usize::from(a) | usize::from(b) << 8
}

fn triple(a: u8, b: u8, c: u8) -> usize {
    // The upper half of a product with an odd constant mixes all bits.
    (u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9e37_79b1) >> 16) as usize
}

fn set(bits: &mut Bits, index: usize) {
    bits[index >> 6] |= 1 << (index & 63);
}

fn get(bits: &Bits, index: usize) -> bool {
    bits[index >> 6] >> (index & 63) & 1 != 0
}

//! Random numbers from a seed: splitmix64. The same seed gives the same numbers on every machine.

#[derive(Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Numbers that depend only on these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Rng {
        let mut rng = Rng(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            rng = Rng(rng.next() ^ word);
        }
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`, or 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or_default()
    }

    /// True once in `times` calls.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Splits the text into random pieces, some of them empty.
    pub(crate) fn pieces<'a>(&mut self, text: &'a str) -> Vec<&'a str> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let longest = if self.once_in(2) { 4 } else { 64 };
            let size = rest.ceil_char_boundary(self.below(longest).min(rest.len()));
            let (piece, after) = rest.split_at(size);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}

//! The digest of a specification, which reveals later changes.

use std::fmt;

/// A digest: 16 to 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// FNV-1a with 128 bits. A deliberate collision is possible, and would only suppress a warning.
    pub fn of(bytes: &[u8]) -> Digest {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let hash = bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
        Digest(format!("{hash:032x}"))
    }

    /// The digest of a specification. Its boxes do not count, because `implement` ticks them.
    pub fn of_spec(bytes: &[u8]) -> Digest {
        let unticked = |line: &[u8]| match line.strip_prefix(b"- [x] ").or_else(|| line.strip_prefix(b"- [X] ")) {
            Some(text) => [b"- [ ] ", text].concat(),
            None => line.to_vec(),
        };
        Digest::of(&bytes.split_inclusive(|byte| *byte == b'\n').flat_map(unticked).collect::<Vec<u8>>())
    }

    pub fn parse(text: &str) -> Option<Digest> {
        let good = (16..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then(|| Digest(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn the_digest_is_fnv_1a() {
        assert_eq!(Digest::of(b"").to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(Digest::of(b"a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(Digest::of(b"foobar").to_string(), "343e1662793c64bf6f0d3597ba446f18");
        assert_eq!(Digest::parse(&Digest::of(b"x").to_string()), Some(Digest::of(b"x")));
        let spec = b"# A\n- [x] R1: a\n- [X] R2: b\n  - [x] c\n";
        assert_eq!(Digest::of_spec(spec), Digest::of(b"# A\n- [ ] R1: a\n- [ ] R2: b\n  - [x] c\n"));
    }

    #[test]
    fn only_16_to_64_hex_digits_are_a_digest() {
        for (length, good) in [(15, false), (16, true), (64, true), (65, false)] {
            assert_eq!(Digest::parse(&"a".repeat(length)).is_some(), good, "{length}");
        }
        assert!(Digest::parse("0123456789ABCDEF").is_some() && Digest::parse("0123456789abcdeg").is_none());
    }
}

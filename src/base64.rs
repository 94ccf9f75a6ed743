//! Base64, as RFC 4648 defines it.

pub(crate) const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(crate) const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// With the standard alphabet and with padding.
pub(crate) fn encode(data: &[u8]) -> String {
    let mut out = unpadded(data, STANDARD);
    out.extend(std::iter::repeat_n('=', (3 - data.len() % 3) % 3));
    out
}

pub(crate) fn unpadded(data: &[u8], alphabet: &[u8; 64]) -> String {
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    let chars = |a: u8, b: u8, c: u8| {
        let bits = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
        [18, 12, 6, 0].map(|shift| char::from(alphabet[(bits >> shift & 63) as usize]))
    };
    let (groups, rest) = data.as_chunks::<3>();
    for [a, b, c] in groups {
        out.extend(chars(*a, *b, *c));
    }
    match rest {
        [a] => out.extend(&chars(*a, 0, 0)[..2]),
        [a, b] => out.extend(&chars(*a, *b, 0)[..3]),
        _ => {}
    }
    out
}

/// With the standard alphabet, with or without padding. `None`: it is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if text.len() - digits.len() > 2 || digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let bits = group.iter().try_fold(0, |bits, byte| Some(bits << 6 | value(*byte)?))?;
        // A group of n characters holds n - 1 bytes; the bits that are left over do not count.
        let bits = bits << (6 * (4 - group.len()));
        out.extend_from_slice(&u32::to_be_bytes(bits)[1..group.len()]);
    }
    Some(out)
}

fn value(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, URL_SAFE, decode, encode, unpadded};

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn the_vectors_of_the_standard_hold() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (data, expected) in vectors {
            assert_eq!(encode(data.as_bytes()), expected, "{data}");
            assert_eq!(decode(expected).as_deref(), Some(data.as_bytes()), "{expected}");
            assert_eq!(decode(expected.trim_end_matches('=')).as_deref(), Some(data.as_bytes()), "{expected}");
        }
        for wrong in ["A", "AAAAA", "Zm9v!", "Zg===", "Zm 9v", "-_-_"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_character_has_its_value() {
        let group = |first: u32| (first << 18 | (first + 1) << 12 | (first + 2) << 6 | (first + 3)).to_be_bytes();
        let data: Vec<u8> = (0..64).step_by(4).flat_map(|first| group(first).into_iter().skip(1)).collect();
        assert_eq!(encode(&data).as_bytes(), STANDARD);
        assert_eq!(decode(&encode(&data)), Some(data.clone()));
        assert_eq!(unpadded(&data, URL_SAFE).as_bytes(), URL_SAFE);
    }
}

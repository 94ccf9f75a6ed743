//! The tokens of JSON: checks them, or skips values that are known to be valid. Never recurses, so that deep nesting
//! cannot overflow the stack. A function `after_…` returns the place after what it is named for.

/// The first byte after spaces, which are rare. No other white space may stand in a line.
#[inline(always)]
pub(super) fn token(bytes: &[u8], at: &mut usize) -> Option<u8> {
    let byte = *bytes.get(*at)?;
    if byte != b' ' {
        return Some(byte);
    }
    *at = after_spaces(bytes, *at);
    bytes.get(*at).copied()
}

#[cold]
fn after_spaces(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| **byte == b' ').count()
}

/// The place after white space in a text that is known to be valid.
pub(super) fn after_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| **byte <= b' ').count()
}

/// Begins after the opening quote. Returns the place after the closing one, and whether there are escapes.
#[inline(always)]
pub(super) fn after_string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let at = after_plain(bytes, at);
    match bytes.get(at) {
        Some(b'"') => Some((at + 1, false)),
        _ => after_escapes(bytes, at).map(|at| (at, true)),
    }
}

/// The length of the string literal that `text` begins with, quotes included.
pub(super) fn literal_len(text: &str) -> usize {
    after_string(text.as_bytes(), 1).map_or(text.len(), |(end, _)| end)
}

/// The place after a value that is known to be valid.
pub(super) fn after_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at + 1).map_or(bytes.len(), |(end, _)| end),
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' => (depth, at) = (depth.saturating_sub(1), at + 1),
            _ if depth > 0 => at += 1,
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                return at + bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
            }
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The rest of a string from its first escape on.
#[cold]
fn after_escapes(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {}
            _ => return None,
        }
        at += match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        at = after_plain(bytes, at);
    }
}

/// The place of the first quote, backslash or control character.
#[inline(always)]
fn after_plain(bytes: &[u8], mut at: usize) -> usize {
    // Most strings end within their first words.
    for _ in 0..2 {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else { break };
        let found = marks(*word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    after_plain_blocks(bytes, at)
}

/// The bytes of a word that end the plain part of a string, by the highest bit of each; only the lowest of them is
/// certain. A vector would examine more bytes at once, but its result would take longer to reach a general register.
#[inline(always)]
fn marks(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(word);
    let quotes = word ^ (ONES * b'"' as u64);
    let escapes = word ^ (ONES * b'\\' as u64);
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    (below | quotes.wrapping_sub(ONES) & !quotes | escapes.wrapping_sub(ONES) & !escapes) & (ONES << 7)
}

#[cold]
fn after_plain_blocks(bytes: &[u8], mut at: usize) -> usize {
    let is_plain = |byte: &u8| (*byte != b'"') & (*byte != b'\\') & (*byte >= 0x20);
    let (blocks, _) = bytes.get(at..).unwrap_or_default().as_chunks::<32>();
    at += 32 * blocks.iter().take_while(|block| block.iter().fold(true, |plain, byte| plain & is_plain(byte))).count();
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = marks(*word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len())
}

/// Checks `true`, `false`, `null` or a number that begins with this byte. Returns the place after it.
#[cold]
pub(super) fn after_word(bytes: &[u8], at: usize, first: u8) -> Option<usize> {
    match first {
        b't' => after_literal(bytes, at, b"true"),
        b'f' => after_literal(bytes, at, b"false"),
        b'n' => after_literal(bytes, at, b"null"),
        _ => after_number(bytes, at),
    }
}

fn after_literal<const LENGTH: usize>(bytes: &[u8], at: usize, literal: &[u8; LENGTH]) -> Option<usize> {
    (bytes.get(at..)?.first_chunk() == Some(literal)).then_some(at + LENGTH)
}

fn after_number(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(bytes.get(at) == Some(&b'-'));
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { after_digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = after_digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = after_digits(bytes, at + 1 + usize::from(signed))?;
    }
    Some(at)
}

fn after_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(at + digits)
}

#[cfg(test)]
mod tests {
    use super::after_plain;

    #[test]
    fn the_plain_part_of_a_string_ends_where_any_byte_ends_it() {
        let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        for (first, second) in
            (0..=u8::MAX).flat_map(|first| [0, 0x1f, b' ', b'"', b'#', 0x5d, 0xa2].map(|b| (first, b)))
        {
            for at in [0, 6, 7, 8, 15, 23, 31, 32, 39, 70] {
                let mut bytes = vec![b'a'; 80];
                bytes[at..at + 2].copy_from_slice(&[first, second]);
                let naive = bytes.iter().position(is_end).unwrap_or(bytes.len());
                assert_eq!(after_plain(&bytes, 0), naive, "{first} {second} at {at}");
                assert_eq!(after_plain(&bytes[..at + 2], 0), naive.min(at + 2), "{first} {second} at {at}");
            }
        }
    }
}

//! A text that may continue after its end, and classes of characters.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoMatch {
    /// The mismatch is certain: no further text can change it.
    No,
    /// The mismatch is uncertain: further text decides.
    More,
}

/// Turns a certain mismatch into `None`, and passes on an uncertain one.
pub(super) fn known<T>(result: Result<T, NoMatch>) -> Result<Option<T>, NoMatch> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(NoMatch::No) => Ok(None),
        Err(NoMatch::More) => Err(NoMatch::More),
    }
}

#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) open: bool,
}

impl View<'_> {
    /// The kind of mismatch at the end of the bytes.
    pub(super) fn ran_out(self) -> NoMatch {
        if self.open { NoMatch::More } else { NoMatch::No }
    }

    pub(super) fn at(self, at: usize) -> Result<u8, NoMatch> {
        self.bytes.get(at).copied().ok_or(self.ran_out())
    }

    /// The position after a literal.
    pub(super) fn literal(self, at: usize, literal: &[u8]) -> Result<usize, NoMatch> {
        self.compare(at, literal, u8::eq)
    }

    pub(super) fn any_case(self, at: usize, literal: &[u8]) -> Result<usize, NoMatch> {
        self.compare(at, literal, u8::eq_ignore_ascii_case)
    }

    /// Compares byte by byte, because nearly all comparisons fail within three bytes.
    #[inline]
    fn compare(self, at: usize, literal: &[u8], equal: impl Fn(&u8, &u8) -> bool) -> Result<usize, NoMatch> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if !rest.iter().zip(literal).all(|(a, b)| equal(a, b)) {
            Err(NoMatch::No)
        } else if rest.len() < literal.len() {
            Err(self.ran_out())
        } else {
            Ok(at + literal.len())
        }
    }

    /// The position after the first `min` bytes of a run of a class.
    pub(super) fn at_least(self, at: usize, class: Class, min: usize) -> Result<usize, NoMatch> {
        for n in at..at + min {
            if !class.has(self.at(n)?) {
                return Err(NoMatch::No);
            }
        }
        Ok(at + min)
    }

    /// The end of a run of `min` to `max` bytes of a class.
    pub(super) fn whole_run(self, at: usize, class: Class, min: usize, max: usize) -> Result<usize, NoMatch> {
        let mut end = at;
        while class.has(self.at(end)?) {
            end += 1;
            if end - at > max {
                return Err(NoMatch::No);
            }
        }
        if end - at < min {
            return Err(NoMatch::No);
        }
        Ok(end)
    }

    pub(super) fn blanks(self, at: usize) -> Result<usize, NoMatch> {
        self.whole_run(at, Class::Blank, 0, MAX_BLANKS)
    }

    /// The position after an optional quote, with any number of backslashes.
    pub(super) fn quote(self, at: usize) -> Result<(usize, Option<Quote>), NoMatch> {
        let end = self.whole_run(at, Class::Backslash, 0, MAX_SLASHES)?;
        let mark = self.at(end)?;
        if is_quote(mark) {
            let slashes = end - at;
            Ok((end + 1, Some(Quote { mark, slashes })))
        } else if end == at {
            Ok((at, None))
        } else {
            Err(NoMatch::No)
        }
    }
}

pub(super) const MAX_BLANKS: usize = 8;
pub(super) const MAX_SLASHES: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    Alnum,
    Upper,
    Word,
    /// As in base64url.
    Token,
    Dashed,
    /// The characters of a bearer token in RFC 6750.
    Bearer,
    Label,
    Blank,
    Backslash,
}

impl Class {
    pub(super) fn has(self, byte: u8) -> bool {
        let alnum = byte.is_ascii_alphanumeric();
        match self {
            Class::Alnum => alnum,
            Class::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Class::Word => alnum || byte == b'_',
            Class::Token => alnum || matches!(byte, b'_' | b'-'),
            Class::Dashed => alnum || byte == b'-',
            Class::Bearer => alnum || b"-._~+/=".contains(&byte),
            Class::Label => byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ',
            Class::Blank => matches!(byte, b' ' | b'\t'),
            Class::Backslash => byte == b'\\',
        }
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    Class::Word.has(byte)
}

pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// A quote and the backslashes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) mark: u8,
    pub(super) slashes: usize,
}

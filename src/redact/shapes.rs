//! Secrets with a known shape.
//!
//! Each shape keeps one rule: a match in the beginning of a text is also a match in the whole text. Therefore a cut at
//! a mask never turns the rest into a new secret, and a second pass changes nothing.

use super::tail::{LineTail, Tail, pem_line};
use super::view::{Class, MAX_BLANKS, MAX_SLASHES, NoMatch, View, is_quote, known};

/// The maximum size of the first part of a JWT, in bytes. A longer one is other base64, such as an embedded source map.
const MAX_JWT_HEADER: usize = 4 * 1024;
/// The maximum size of the second part of a JWT, in bytes. Servers refuse longer headers.
const MAX_JWT_PAYLOAD: usize = 16 * 1024;
const MIN_JWT_PART: usize = 10;
const MAX_USERINFO: usize = 1024;
const MIN_BEARER: usize = 16;
/// The number of bytes before a position that decide whether a word begins there.
pub(super) const LOOK_BACK: usize = 24;

pub(super) struct Found {
    /// The end of the part that is certain.
    pub(super) end: usize,
    /// The optional part that may follow.
    pub(super) tail: Option<Tail>,
    /// Whether the match counts only if no word character follows.
    pub(super) exact: bool,
}

/// A shape whose beginning is harmless (a header name, a URL scheme) and whose secret follows.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) tail: Option<Tail>,
}

struct Prefix {
    text: &'static [u8],
    class: Class,
    min: usize,
    tail: Option<Class>,
    /// The characters, besides letters and digits, that must not precede the shape.
    not_after: &'static [u8],
}

const fn prefix(text: &'static [u8], class: Class, min: usize, tail: Class) -> Prefix {
    Prefix { text, class, min, tail: Some(tail), not_after: b"" }
}

const fn aws(text: &'static [u8]) -> Prefix {
    Prefix { text, class: Class::Upper, min: 16, tail: None, not_after: b"_" }
}

const PREFIXES: &[Prefix] = &[
    Prefix { text: b"sk-", class: Class::Token, min: 20, tail: Some(Class::Token), not_after: b"_-" },
    prefix(b"ghp_", Class::Alnum, 20, Class::Word),
    prefix(b"gho_", Class::Alnum, 20, Class::Word),
    prefix(b"ghu_", Class::Alnum, 20, Class::Word),
    prefix(b"ghr_", Class::Alnum, 20, Class::Word),
    // Newer tokens consist of an app id, `_` and a JWT.
    prefix(b"ghs_", Class::Word, 20, Class::Bearer),
    prefix(b"github_pat_", Class::Word, 20, Class::Word),
    prefix(b"glpat-", Class::Token, 20, Class::Token),
    aws(b"AKIA"),
    aws(b"ASIA"),
    aws(b"ABIA"),
    aws(b"ACCA"),
    prefix(b"AIza", Class::Token, 35, Class::Token),
    prefix(b"xoxa-", Class::Dashed, 10, Class::Dashed),
    prefix(b"xoxb-", Class::Dashed, 10, Class::Dashed),
    prefix(b"xoxe-", Class::Dashed, 10, Class::Dashed),
    prefix(b"xoxp-", Class::Dashed, 10, Class::Dashed),
    prefix(b"xoxr-", Class::Dashed, 10, Class::Dashed),
    prefix(b"xoxs-", Class::Dashed, 10, Class::Dashed),
    prefix(b"hf_", Class::Alnum, 30, Class::Alnum),
    prefix(b"npm_", Class::Alnum, 36, Class::Alnum),
];

pub(super) fn beginnings() -> impl Iterator<Item = [u8; 3]> {
    let prefixes = PREFIXES.iter().filter_map(|prefix| prefix.text.first_chunk().copied());
    // The words of `armed` match in any case.
    let words = [*b"aut", *b"bea"].into_iter().flat_map(|word| {
        (0..8).map(move |upper: u8| {
            let mut letters = word;
            let cased = letters.iter_mut().enumerate().filter(|(n, _)| upper >> n & 1 == 1);
            cased.for_each(|(_, letter)| letter.make_ascii_uppercase());
            letters
        })
    });
    // JSON may escape the slashes of a URL.
    prefixes.chain([*b"eyJ", *b"---", *b"://", *b":/\\", *b":\\/", *b":\\\\"]).chain(words)
}

/// `gap`: the end of the last mask.
pub(super) fn direct(view: View<'_>, gap: usize, at: usize) -> Result<Found, NoMatch> {
    match view.at(at)? {
        b'-' => pem(view, at),
        b'e' => jwt(view, gap, at),
        // These begin the shapes of `armed`.
        b'a' | b'b' | b'B' | b':' => Err(NoMatch::No),
        first => {
            let mut stop = NoMatch::No;
            for prefix in PREFIXES.iter().filter(|prefix| prefix.text[0] == first) {
                match one_prefix(view, gap, at, prefix) {
                    Ok(found) => return Ok(found),
                    Err(NoMatch::More) => stop = NoMatch::More,
                    Err(NoMatch::No) => {}
                }
            }
            Err(stop)
        }
    }
}

pub(super) fn armed(view: View<'_>, gap: usize, at: usize) -> Result<Armed, NoMatch> {
    match view.at(at)? {
        b'a' | b'A' => authorization(view, gap, at),
        b'b' | b'B' => bearer(view, gap, at),
        b':' => userinfo(view, at),
        _ => Err(NoMatch::No),
    }
}

fn one_prefix(view: View<'_>, gap: usize, at: usize, prefix: &Prefix) -> Result<Found, NoMatch> {
    let start = outside_word(view.literal(at, prefix.text), &view.bytes[gap..at], prefix.not_after)?;
    Ok(Found {
        end: view.at_least(start, prefix.class, prefix.min)?,
        tail: prefix.tail.map(Tail::Run),
        exact: prefix.tail.is_none(),
    })
}

fn jwt(view: View<'_>, gap: usize, at: usize) -> Result<Found, NoMatch> {
    let part = |at: usize, max: usize| -> Result<usize, NoMatch> {
        view.literal(at, b"eyJ")?;
        let end = view.whole_run(at, Class::Token, MIN_JWT_PART, max)?;
        view.literal(end, b".")
    };
    if in_word(&view.bytes[gap..at], b"_-") {
        return Err(NoMatch::No);
    }
    let payload = part(at, MAX_JWT_HEADER)?;
    let signature = part(payload, MAX_JWT_PAYLOAD)?;
    Ok(Found {
        end: view.at_least(signature, Class::Token, MIN_JWT_PART)?,
        tail: Some(Tail::Run(Class::Token)),
        exact: false,
    })
}

/// The first line of a private key, followed by a character that can continue a key. Code that only mentions the line
/// has a quote there.
pub(super) fn pem(view: View<'_>, at: usize) -> Result<Found, NoMatch> {
    let end = pem_line(view, at, b"-----BEGIN ")?;
    let next = view.at(end)?;
    if !(next.is_ascii_alphanumeric() || next.is_ascii_whitespace() || matches!(next, b'\\' | b'%')) {
        return Err(NoMatch::No);
    }
    Ok(Found { end, tail: Some(Tail::Pem), exact: false })
}

fn bearer(view: View<'_>, gap: usize, at: usize) -> Result<Armed, NoMatch> {
    let end = outside_word(view.any_case(at, b"bearer"), &view.bytes[gap..at], b"")?;
    let token = view.whole_run(end, Class::Blank, 1, MAX_BLANKS)?;
    Ok(Armed { at: token, end: view.at_least(token, Class::Bearer, MIN_BEARER)?, tail: Some(Tail::Run(Class::Bearer)) })
}

/// `user:password@` after `://`, up to the last `@` before the end of the host.
fn userinfo(view: View<'_>, at: usize) -> Result<Armed, NoMatch> {
    let mut start = at + 1;
    for _ in 0..2 {
        // JSON may escape the slash.
        start = view.whole_run(start, Class::Backslash, 0, MAX_SLASHES)?;
        start = view.literal(start, b"/")?;
    }
    let (mut colon, mut found) = (false, None);
    for n in start..start + MAX_USERINFO {
        let Some(byte) = known(view.at(n))? else { break };
        match byte {
            b'@' if colon && n > start + 1 => found = Some(n),
            b':' => colon = true,
            // Code that builds a URL, with braces, contains no secret.
            b'/' | b'?' | b'#' | b'<' | b'>' | b'\\' | b'{' | b'}' => break,
            byte if byte <= b' ' || is_quote(byte) => break,
            _ => {}
        }
    }
    let end = found.ok_or(NoMatch::No)?;
    Ok(Armed { at: start, end, tail: None })
}

const SCHEMES: [&[u8]; 10] = [
    b"bearer",
    b"basic",
    b"token",
    b"digest",
    b"oauth",
    b"signature",
    b"hawk",
    b"negotiate",
    b"ntlm",
    b"aws4-hmac-sha256",
];

/// The schemes with a list of `name="value"`.
const LISTS: [&[u8]; 4] = [b"digest", b"oauth", b"signature", b"hawk"];

fn authorization(view: View<'_>, gap: usize, at: usize) -> Result<Armed, NoMatch> {
    let end = outside_word(view.any_case(at, b"authorization"), &view.bytes[gap..at], b"")?;
    let (end, name_quote) = view.quote(end)?;
    let mut next = view.blanks(end)?;
    match view.at(next)? {
        b':' => next += 1,
        b'=' if view.at(next + 1)? == b'>' => next += 2,
        b'=' => next += 1,
        _ => return Err(NoMatch::No),
    }
    let (start, quote) = view.quote(view.blanks(next)?)?;
    // A quoted name is a key of JSON, whose value must stay as it is unless it is a string.
    if name_quote.is_some() && quote.is_none() {
        return Err(NoMatch::No);
    }
    let (start, list) = scheme(view, start)?;
    if matches!(view.at(start)?, b'=' | b':' | b'{' | b'[' | b'(') {
        return Err(NoMatch::No);
    }
    let line = LineTail { quote, list, ..LineTail::default() };
    line.clone().element(view, start)?;
    Ok(Armed { at: start, end: start, tail: Some(Tail::Line(line)) })
}

/// The position after the scheme, if there is one. A scheme alone, or its beginning, is not a credential.
fn scheme(view: View<'_>, at: usize) -> Result<(usize, bool), NoMatch> {
    let rest = view.bytes.get(at..).unwrap_or_default();
    for word in SCHEMES {
        if rest.len() <= word.len() && word[..rest.len()].eq_ignore_ascii_case(rest) {
            return Err(view.ran_out());
        }
        if let Ok(end) = view.any_case(at, word) {
            if Class::Blank.has(view.at(end)?) {
                return Ok((view.blanks(end)?, LISTS.contains(&word)));
            }
            if known(LineTail::default().element(view, end))?.is_none() {
                return Err(NoMatch::No);
            }
        }
    }
    Ok((at, false))
}

/// The end of a match, unless it begins inside a word.
fn outside_word(end: Result<usize, NoMatch>, before: &[u8], joiners: &[u8]) -> Result<usize, NoMatch> {
    if end == Err(NoMatch::No) || in_word(before, joiners) { Err(NoMatch::No) } else { end }
}

/// Whether a position is inside a word, judging by the text before it.
fn in_word(before: &[u8], joiners: &[u8]) -> bool {
    let Some((&last, rest)) = before.split_last() else { return false };
    if !last.is_ascii_alphanumeric() {
        return joiners.contains(&last);
    }
    let ends = |mark: &[u8], digits: usize| {
        before.len() >= mark.len() + digits
            && before[..before.len() - digits].ends_with(mark)
            && before[before.len() - digits..].iter().all(u8::is_ascii_hexdigit)
    };
    let escape = rest.last() == Some(&b'\\') && b"nrtbfv0ae".contains(&last);
    !(escape || ends(b"%", 2) || ends(b"\\x", 2) || ends(b"\\u", 4) || ends_in_color(last, rest))
}

/// Whether the text ends in the `m` of a terminal's color code: `ESC [ 3 2 m`.
fn ends_in_color(last: u8, rest: &[u8]) -> bool {
    let rest = &rest[rest.len().saturating_sub(LOOK_BACK - 1)..];
    let start = rest.iter().rposition(|&byte| !byte.is_ascii_digit() && byte != b';');
    last == b'm' && start.is_some_and(|n| rest[n] == b'[')
}

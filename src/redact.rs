//! Replaces secrets in texts by a mask.
//!
//! It finds registered values in the forms in which programs print them (JSON, URL, HTML, shell, hex, base64), and
//! tokens of a known shape (API keys, JWTs, private keys, `Authorization` headers, passwords in URLs).
//!
//! It does not find a value that is reversed, spaced out, cut into halves, wrapped over lines or compressed, nor a form
//! inside another form, except JSON in JSON. No rule masks text that only looks random, because that would change code,
//! hashes and ids.

mod action;
pub(crate) mod arguments;
mod forms;
mod scan;
mod shapes;
mod tail;
mod view;

use crate::clean::{Cleaner, whole};
use scan::{Growth, Scan};
use shapes::{Armed, LOOK_BACK};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use view::{NoMatch, View};

/// A text may already contain it.
pub const MASK: &str = "[redacted]";

/// A second pass changes nothing. Of overlapping matches the leftmost counts, and of those the longest.
#[derive(Clone)]
pub struct Redactor {
    /// Finds the places where a form or a shape may begin. Shared by clones, because its tables take six pages.
    filter: Arc<Filter>,
    /// Those of the registered values, sorted.
    forms: Vec<Box<str>>,
    /// Whether texts are cleaned for a terminal before they are searched.
    cleans: bool,
    generation: Generation,
}

/// The state of a redactor's secrets: the number of times that secrets were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation(u32);

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Knows only the shapes.
    pub fn new() -> Self {
        let mut filter = Filter::new();
        shapes::beginnings().for_each(|beginning| filter.add(beginning));
        Self { filter: Arc::new(filter), forms: Vec::new(), cleans: false, generation: Generation::default() }
    }

    /// Registers all forms of a value, and of its lines when it has several. False: the value has fewer than 8 bytes or
    /// fewer than 4 different characters. It is refused, because masking it would damage ordinary text.
    pub fn add(&mut self, secret: &str) -> bool {
        self.add_all([secret]) == 0
    }

    /// Returns the number of values that [`Redactor::add`] refuses.
    pub fn add_all<'a>(&mut self, secrets: impl IntoIterator<Item = &'a str>) -> usize {
        let (mut refused, known) = (0, self.forms.len());
        for secret in secrets {
            if forms::usable(secret) {
                self.forms.extend(forms::every_form(secret).into_iter().map(String::into_boxed_str));
            } else {
                refused += 1;
            }
        }
        let beginnings = self.forms[known..].iter().filter_map(|form| form.as_bytes().first_chunk());
        beginnings.for_each(|beginning| Arc::make_mut(&mut self.filter).add(*beginning));
        self.forms.sort_unstable();
        self.forms.dedup();
        self.generation.0 += 1;
        refused
    }

    /// A redacted text is clean until the generation changes.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Registers the values of the environment variables whose name marks them as secret. Skips existing paths (by
    /// `is_path`, which runs last), plain decimal numbers, words such as `true` and `none`, and the values that
    /// [`Redactor::add`] refuses.
    pub fn add_environment<'a>(
        &mut self,
        vars: impl Iterator<Item = (&'a str, &'a str)>,
        is_path: &dyn Fn(&str) -> bool,
    ) {
        self.add_values(vars.filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value), is_path);
    }

    /// Registers these values, except those that [`Redactor::add_environment`] skips whatever their name.
    pub fn add_values<'a>(&mut self, values: impl Iterator<Item = &'a str>, is_path: &dyn Fn(&str) -> bool) {
        let is_secret = |value: &&str| !is_setting(value) && forms::usable(value) && !is_path(value);
        self.add_all(values.filter(is_secret));
    }

    /// Makes the redactor clean every text for a terminal before it searches the text. Cleaning later would join the
    /// parts of a secret that escape sequences split.
    pub fn clean_first(&mut self) {
        self.cleans = true;
        self.generation.0 += 1;
    }

    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.cleans {
            return self.redact_uncleaned(text);
        }
        match whole(text) {
            Cow::Borrowed(text) => self.redact_uncleaned(text),
            Cow::Owned(clean) => Cow::Owned(self.redact_uncleaned(&clean).into_owned()),
        }
    }

    pub fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact(text) {
            *text = clean;
        }
    }

    /// Like [`Redactor::redact`], for a recording, which keeps escape sequences.
    pub fn redact_uncleaned<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_clear(text) {
            return Cow::Borrowed(text);
        }
        let mut scan = Scan::new(text, 0, true);
        self.run(&mut scan);
        if scan.out.is_empty() {
            return Cow::Borrowed(text);
        }
        scan.out.push_str(&text[scan.copied..]);
        Cow::Owned(scan.out)
    }

    /// Whether a text contains no beginning of a secret, and so no secret.
    pub fn is_clear(&self, text: &str) -> bool {
        // The filter leaves out the last two bytes: every secret is longer.
        self.filter.position(text.as_bytes()).is_none()
    }

    /// Whether a piece contains neither a secret, nor the beginning of one, nor the beginning of a mask.
    fn passes(&self, piece: &str) -> bool {
        let bytes = piece.as_bytes();
        let end = &bytes[bytes.len().saturating_sub(MASK.len() - 1)..];
        let may_be_mask =
            end.iter().rposition(|&byte| byte == b'[').is_some_and(|at| MASK.as_bytes().starts_with(&end[at..]));
        !may_be_mask && self.filter.next(bytes, 0, bytes.len()) == bytes.len()
    }

    /// The end of the longest form that begins here.
    fn form_at(&self, view: View<'_>, at: usize) -> Result<usize, NoMatch> {
        let rest = &view.bytes[at..];
        let mut before = self.forms.partition_point(|form| form.as_bytes() <= rest);
        if view.open && self.forms.get(before).is_some_and(|form| form.as_bytes().starts_with(rest)) {
            return Err(NoMatch::More);
        }
        // The forms that are prefixes of the text sort before it, the longest last. If the form just before the text is
        // not a prefix, it shares a beginning with the text, and no earlier form shares a longer one.
        let mut common = rest;
        while let Some(form) = before.checked_sub(1).map(|last| self.forms[last].as_bytes()) {
            if common.starts_with(form) {
                return Ok(at + form.len());
            }
            let same = common.iter().zip(form).take_while(|(a, b)| a == b).count();
            if same < forms::MIN_BYTES {
                break;
            }
            common = &common[..same];
            before = self.forms[..before].partition_point(|form| form.as_bytes() <= common);
        }
        Err(NoMatch::No)
    }
}

/// Whether an environment variable of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const MARKS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "PAT"];
    name.split('_').any(|part| MARKS.iter().any(|mark| mark.eq_ignore_ascii_case(part)))
}

/// Whether a value is a plain decimal number or a word such as `true`. Floating-point numbers do not count, because the
/// hex key `12345678e9012345` looks like one.
fn is_setting(value: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "none", "null"];
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    number || WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// The first three bytes of all forms and shapes. Two bytes rule out nearly every place in a text, and the third byte
/// nearly all others, so that the cost hardly depends on the number of secrets.
#[derive(Clone)]
struct Filter {
    firsts: [bool; 256],
    /// One bit for each pair of the first two bytes.
    pairs: Box<Bits>,
    /// One bit for each pair of neighbours among the three bytes.
    neighbours: Box<Bits>,
    /// One bit for each hash of three bytes.
    triples: Box<Bits>,
}

type Bits = [u64; 1024];

impl Filter {
    fn new() -> Self {
        let bits = || Box::new([0; 1024]);
        Self { firsts: [false; 256], pairs: bits(), neighbours: bits(), triples: bits() }
    }

    fn add(&mut self, [a, b, c]: [u8; 3]) {
        self.firsts[usize::from(a)] = true;
        set(&mut self.pairs, pair(a, b));
        set(&mut self.neighbours, pair(a, b));
        set(&mut self.neighbours, pair(b, c));
        set(&mut self.triples, triple(a, b, c));
    }

    /// The first place between `from` and `limit` where a secret may begin, or `limit`. The text may go on after its
    /// end.
    fn next(&self, bytes: &[u8], from: usize, limit: usize) -> usize {
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

    /// True if there are too few bytes to decide.
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
    /// For a redactor that cleans first.
    cleaner: Cleaner,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held()).finish_non_exhaustive()
    }
}

impl Stream {
    /// Returns the text that is now certain. The result is borrowed if it is the piece itself.
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

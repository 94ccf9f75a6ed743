//! Masks secrets in text.
//!
//! Two kinds are found: values that were registered, in the forms in which programs print them
//! (JSON, URL, HTML, shell, hex, base64), and tokens whose shape gives them away (API keys, JWTs,
//! private keys, `Authorization` headers, passwords in URLs).
//!
//! Not found: a value that is reversed, spaced out, cut into halves, wrapped over lines or
//! compressed, and a form inside another form other than JSON in JSON. There is no rule for text
//! that merely looks random, because such a rule rewrites code, hashes and ids.

mod forms;
mod scan;
mod shapes;
mod tail;
mod view;

use std::borrow::Cow;
use std::fmt;

use scan::{Growth, Scan};
use shapes::{Armed, LOOK_BACK};
use view::{Stop, View};

/// What stands in the place of a secret. Where a text already has it, it is left as it is.
pub const MASK: &str = "[redacted]";

/// Knows the registered values and masks them, and all known token shapes, in texts.
///
/// Redacting a redacted text changes nothing. Where matches overlap, the leftmost counts, and of
/// those the longest.
pub struct Redactor {
    /// One bit for each pair of bytes with which a form or a shape begins.
    pairs: Box<Pairs>,
    /// The same for the shapes alone.
    shape_pairs: Box<Pairs>,
    /// The first bytes of the forms.
    first: [bool; 256],
    /// For each pair of bytes the number of its bucket, from 1; empty before the first value.
    slots: Vec<u32>,
    /// The forms that begin with one pair of bytes, the longest first.
    buckets: Vec<Vec<String>>,
}

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
    /// Finds token shapes only, until values are added.
    pub fn new() -> Self {
        let mut pairs = Box::new([0; 1024]);
        for [a, b] in shapes::triggers() {
            mark(&mut pairs, pair(a, b));
        }
        Self { shape_pairs: pairs.clone(), pairs, first: [false; 256], slots: Vec::new(), buckets: Vec::new() }
    }

    /// Registers all forms of a value, and of its lines when it has several.
    ///
    /// False: the value has less than 8 bytes or fewer than 4 different characters. Masking it
    /// would damage ordinary text, so it is not registered.
    pub fn add(&mut self, secret: &str) -> bool {
        if !forms::usable(secret) {
            return false;
        }
        for form in forms::of(secret) {
            self.insert(form);
        }
        true
    }

    /// Registers the values of the environment variables whose name marks them as secret.
    ///
    /// The name, split at `_` and in any case, has one of the segments KEY, TOKEN, SECRET,
    /// PASSWORD, PASSWD, CREDENTIAL, CREDENTIALS or PAT. Left out are existing paths (`is_path`
    /// is asked last), plain decimal numbers, words such as `true` and `none`, and silently the
    /// values that [`Redactor::add`] refuses.
    pub fn add_environment<'a>(
        &mut self,
        vars: impl Iterator<Item = (&'a str, &'a str)>,
        is_path: &dyn Fn(&str) -> bool,
    ) {
        for (name, value) in vars {
            if is_secret_name(name) && !is_setting(value) && forms::usable(value) && !is_path(value) {
                self.add(value);
            }
        }
    }

    /// The text with every secret masked; borrowed when there was none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut scan = Scan::new(text, 0, true);
        self.run(&mut scan);
        if scan.out.is_empty() {
            return Cow::Borrowed(text);
        }
        scan.out.push_str(&text[scan.copied..]);
        Cow::Owned(scan.out)
    }

    fn insert(&mut self, form: String) {
        let &[a, b, ..] = form.as_bytes() else {
            return;
        };
        if self.slots.is_empty() {
            self.slots = vec![0; 1 << 16];
        }
        let slot = &mut self.slots[pair(a, b)];
        if *slot == 0 {
            self.buckets.push(Vec::new());
            // There are at most 64 Ki pairs.
            *slot = u32::try_from(self.buckets.len()).unwrap_or(0);
            mark(&mut self.pairs, pair(a, b));
            self.first[usize::from(a)] = true;
        }
        let bucket = &mut self.buckets[*slot as usize - 1];
        let order = |known: &String| form.len().cmp(&known.len()).then_with(|| known.cmp(&form));
        if let Err(at) = bucket.binary_search_by(order) {
            bucket.insert(at, form);
        }
    }

    /// The end of the longest form that begins here.
    fn form_at(&self, view: View<'_>, at: usize) -> Result<usize, Stop> {
        let (first, second) = (view.at(at)?, view.bytes.get(at + 1));
        let Some(&second) = second else {
            return Err(if self.first[usize::from(first)] { view.ran_out() } else { Stop::No });
        };
        let bucket = match self.slots.get(pair(first, second)) {
            None | Some(0) => return Err(Stop::No),
            Some(&slot) => &self.buckets[slot as usize - 1],
        };
        let rest = &view.bytes[at..];
        for form in bucket.iter().map(String::as_bytes) {
            // Most candidates fail here, without a call to compare them.
            if rest.get(2).is_some_and(|third| form.get(2) != Some(third)) {
                continue;
            }
            if rest.starts_with(form) {
                return Ok(at + form.len());
            }
            if view.open && form.starts_with(rest) {
                return Err(Stop::More);
            }
        }
        Err(Stop::No)
    }

    /// Whether the first two bytes allow a shape here.
    fn may_be_shape(&self, view: View<'_>, at: usize) -> bool {
        match view.bytes[at..] {
            [a, b, ..] => is_marked(&self.shape_pairs, pair(a, b)),
            _ => true,
        }
    }

    /// The first place from which on something may begin, at most `limit`. The last byte always
    /// counts as such a place, since it has no pair.
    fn candidate(&self, bytes: &[u8], from: usize, limit: usize) -> usize {
        let stop = limit.min(bytes.len().saturating_sub(1)).max(from);
        let end = bytes.len().min(stop + 1);
        for (n, window) in bytes[from..end].windows(2).enumerate() {
            if is_marked(&self.pairs, pair(window[0], window[1])) {
                return from + n;
            }
        }
        stop
    }
}

/// One bit for each pair of bytes.
type Pairs = [u64; 1024];

fn pair(a: u8, b: u8) -> usize {
    usize::from(a) | usize::from(b) << 8
}

fn mark(pairs: &mut Pairs, index: usize) {
    pairs[index >> 6] |= 1 << (index & 63);
}

fn is_marked(pairs: &Pairs, index: usize) -> bool {
    pairs[index >> 6] >> (index & 63) & 1 != 0
}

fn is_secret_name(name: &str) -> bool {
    const MARKS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "PAT"];
    name.split('_').any(|part| MARKS.iter().any(|mark| mark.eq_ignore_ascii_case(part)))
}

/// Whether a value is a number or a switch. Only plain decimals are numbers: a hex key such as
/// `12345678e9012345` would pass as a float.
fn is_setting(value: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "none", "null"];
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    number || WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Redacts a text that comes in pieces.
///
/// What it returns, joined, equals [`Redactor::redact`] of the joined pieces, wherever they were
/// cut. It holds back the end of the text while that may still become a secret: at most the
/// length of the longest registered form, or some 20 KiB of what looks like a JWT. A secret that
/// is certain but has not ended gives its mask at once, and its rest is dropped as it comes.
#[derive(Default)]
pub struct Stream {
    /// Up to [`LOOK_BACK`] bytes that were returned already, then those held back.
    text: String,
    returned: usize,
    armed: Option<Armed>,
    growth: Option<Growth>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held()).finish_non_exhaustive()
    }
}

impl Stream {
    /// Takes the next piece and returns what is certain by now.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.text.push_str(piece);
        self.advance(redactor, false)
    }

    /// Returns what is left, and makes the stream ready for another text.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        let out = self.advance(redactor, true);
        *self = Self::default();
        out
    }

    /// How many bytes are held back.
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

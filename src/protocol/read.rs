//! Readers of the values of fields: one function per type and range, which the rows of [`super::fields`] and
//! [`super::workflow`] name.

use super::form::{Form, ObjectForm, Range, TextRule, range};
use super::ids::SessionId;
use super::limits;
use super::parts::Fixed;
use super::schema::OutputSchema;
use super::sentence::Sentence;
use crate::json::{Fields, elements, number, string};
use crate::redact::is_secret_name;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The reason why a payload could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A known key is repeated in one object, so the message is malformed.
    Repeated,
    /// A field has a wrong type or is out of its range.
    Field {
        name: &'static str,
        /// The rest of "must be …".
        expected: &'static str,
    },
    /// A field that run.start does not have, but whose name resembles that of a limit.
    Misspelled {
        /// As messages show it.
        typed: String,
        meant: &'static str,
    },
    /// A field is larger than [`limits::FIELD_BYTES`].
    Size { name: &'static str },
}

impl Problem {
    /// The rest of a sentence about the value.
    pub fn clause(&self) -> String {
        match self {
            Problem::Repeated => "repeats a key".into(),
            Problem::Field { expected, .. } => format!("must be {expected}"),
            Problem::Misspelled { typed, meant } => format!("has no field `{typed}`: name it `{meant}`"),
            Problem::Size { .. } => format!("must be at most {} MiB of JSON", limits::FIELD_BYTES >> 20),
        }
    }

    /// Names the field, never its value.
    pub fn message(&self) -> Sentence {
        match self {
            Problem::Repeated => "A field occurs twice in one object. Send it once.".into(),
            Problem::Misspelled { typed, meant } => Sentence::from(format!(
                "it has no field `{typed}`. A misspelled limit would not be enforced, so this is an error: did you mean `{meant}`?"
            ))
            .about_start(),
            Problem::Field { name, .. } | Problem::Size { name } => {
                Sentence::from(format!("`{name}` {}.", self.clause())).about_start()
            }
        }
    }
}

/// The result of a reader of one field. `Err(None)`: a key is repeated. `Err(Some(text))`: the field must be `text`.
pub(crate) type Read<T> = Result<T, Option<&'static str>>;

const POSITIVE: Range = range!("a number of seconds" above 0);
const ZERO_OR_MORE: Range = range!("a number of seconds", 0 or more);
/// The greatest is one that every reader of JSON keeps exact.
const COUNT: Range = Range { most: 1e15, ..range!(whole "a whole number", 1 or more) };
const COST: Range = range!("a number" above 0);
/// [`limits::FRAME_BYTES_MIN`] to [`limits::FRAME_BYTES_MAX`].
const FRAME_BYTES: Range = range!(whole "a whole number" from 16384 to 67108864);
pub(super) const ATTEMPTS: Range = range!(whole "a whole number" from 1 to 10);
/// The number of times that the findings of a review go back to the agent.
pub(super) const ROUNDS: Range = range!(whole "a whole number" from 0 to 10);

/// The names of specifications, and of plans, as far as every dialect of regular expressions can say it: of the letters of
/// other scripts, those in upper case fit too.
const NAME_PATTERN: &str = r"^[^\x00-/:-`{-\x7f]([^\x00-,./:-^`{-\x7f]{0,48}[^\x00-/:-`{-\x7f])?$";

/// The form of the values that a reader accepts: that of its type, or a narrower one.
pub(super) const fn narrowed(reader: &str, form: Form) -> Form {
    const VARIABLES: Form = Form::Shaped(&TextRule::matching(r"^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$"));
    const RULE: Form = Form::Shaped(&TextRule::matching("^[a-z-]{1,64}$"));
    match reader.as_bytes() {
        b"positive" => Form::Within(&POSITIVE),
        b"zero_or_more" => Form::Within(&ZERO_OR_MORE),
        b"count" => Form::Within(&COUNT),
        b"cost" => Form::Within(&COST),
        b"frame_bytes" => Form::Within(&FRAME_BYTES),
        b"attempts" => Form::Within(&ATTEMPTS),
        b"rounds" => Form::Within(&ROUNDS),
        b"non_empty" | b"path" | b"template" => Form::FILLED,
        b"prompt" => const { Form::Shaped(&TextRule { most: Some(limits::PROMPT_BYTES), ..TextRule::FILLED }) },
        b"system_prompt" => {
            const { Form::Shaped(&TextRule { least: 0, most: Some(limits::PROMPT_BYTES), pattern: "" }) }
        }
        b"strings" | b"paths" | b"secrets" => const { Form::AtMost(limits::LIST_ENTRIES, &Form::FILLED) },
        b"images" => const { Form::AtMost(limits::IMAGES, &Form::FILLED) },
        b"names" => const { Form::AtMost(limits::LIST_ENTRIES, &VARIABLES) },
        b"environment" => const { Form::Named(&TextRule::matching(r"^[A-Za-z_][A-Za-z0-9_]*$"), &Form::Text) },
        b"name" => const { Form::Shaped(&TextRule::matching(NAME_PATTERN)) },
        b"skill" => const { Form::Shaped(&TextRule::matching("^[A-Za-z0-9][A-Za-z0-9:_-]{0,255}$")) },
        b"rules" => const { Form::AtMost(limits::LIST_ENTRIES, &RULE) },
        _ => {
            if let Form::List(one) = form {
                Form::AtMost(limits::LIST_ENTRIES, one)
            } else {
                form
            }
        }
    }
}

macro_rules! layer {
    ($(#[$about:meta])* $layer:ident { $($(#[$doc:meta])* $name:ident: $type:ty = $read:path;)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $layer { $($(#[$doc])* pub $name: Option<$type>,)* }

        impl $layer {
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Ignores unknown names.
            pub fn set(
                &mut self,
                name: &str,
                raw: &serde_json::value::RawValue,
            ) -> Result<(), $crate::protocol::read::Problem> {
                match name {
                    $(stringify!($name) => {
                        self.$name = Some($crate::protocol::read::field(stringify!($name), raw, $read)?);
                    })*
                    _ => {}
                }
                Ok(())
            }

            pub fn says(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// This layer, with the fields of `base` that it does not set.
            pub fn over(self, base: $layer) -> $layer {
                $layer { $($name: self.$name.or(base.$name),)* }
            }
        }
    };
}

pub(crate) use layer;

/// Checks the size first, so that a large value costs nothing.
pub(crate) fn field<T>(name: &'static str, raw: &RawValue, read: fn(&RawValue) -> Read<T>) -> Result<T, Problem> {
    // The prompts have a limit of their own.
    if raw.get().len() > limits::FIELD_BYTES && !matches!(name, "prompt" | "system_prompt") {
        return Err(Problem::Size { name });
    }
    read(raw).map_err(|wrong| wrong.map_or(Problem::Repeated, |expected| Problem::Field { name, expected }))
}

/// Finite, not negative, at most a hundred years.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.0.clamp(0.0, limits::SECONDS))
    }
}

impl Fixed for Seconds {}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Writes 60 and not 60.0, so that an integer stays an integer.
        if self.0.fract() == 0.0 && self.0 <= limits::SECONDS {
            return serializer.serialize_u64(self.0 as u64);
        }
        serializer.serialize_f64(self.0)
    }
}

pub(crate) fn any_string(raw: &RawValue) -> Read<String> {
    string(raw).ok_or(Some("a string"))
}

pub(crate) fn non_empty(raw: &RawValue) -> Read<String> {
    string(raw).filter(|s| !s.is_empty()).ok_or(Some("a non-empty string"))
}

pub(super) fn prompt(raw: &RawValue) -> Read<String> {
    non_empty(raw).and_then(short)
}

pub(super) fn system_prompt(raw: &RawValue) -> Read<String> {
    any_string(raw).and_then(short)
}

pub(super) const TOO_LONG: &str = "at most 8 MiB long";

fn short(prompt: String) -> Read<String> {
    if prompt.len() <= limits::PROMPT_BYTES { Ok(prompt) } else { Err(Some(TOO_LONG)) }
}

pub(super) fn session_id(raw: &RawValue) -> Read<SessionId> {
    string(raw).and_then(SessionId::new).ok_or(Some("a non-empty string of at most 1024 bytes"))
}

pub(crate) fn path(raw: &RawValue) -> Read<String> {
    let usable = |s: &String| !s.is_empty() && !s.contains('\0');
    string(raw).filter(usable).ok_or(Some("the path of an existing directory"))
}

pub(crate) fn boolean(raw: &RawValue) -> Read<bool> {
    serde_json::from_str(raw.get()).map_err(|_| Some("true or false"))
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// `None`: it is not a list, or has more than [`limits::LIST_ENTRIES`].
pub(super) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    let entries: Vec<&RawValue> = elements(raw)?.take(limits::LIST_ENTRIES + 1).collect();
    (entries.len() <= limits::LIST_ENTRIES).then_some(entries)
}

pub(super) fn strings_where(raw: &RawValue, fits: fn(&String) -> bool, expected: &'static str) -> Read<Vec<String>> {
    let items = list(raw).ok_or(Some(expected))?;
    items.into_iter().map(|item| string(item).filter(fits).ok_or(Some(expected))).collect()
}

pub(crate) fn strings(raw: &RawValue) -> Read<Vec<String>> {
    strings_where(raw, |s| !s.is_empty() && !s.contains('\0'), "a list of at most 1024 non-empty strings")
}

/// In all `secrets` together, like [`SECRET_LINES`].
const SECRETS_BYTES: usize = 256 << 10;
const SECRET_LINES: usize = 1000;

/// Limited, because every text is searched for each of them and each of their lines, in many forms.
pub(super) fn secrets(raw: &RawValue) -> Read<Vec<String>> {
    let expected = "a list of non-empty strings, each at most 64 KiB, in total at most 256 KiB and 1000 lines";
    let all = strings_where(raw, |s| !s.is_empty() && s.len() <= limits::SECRET_BYTES, expected)?;
    if secrets_fit(all.iter().map(String::as_str)) { Ok(all) } else { Err(Some(expected)) }
}

pub(crate) fn paths(raw: &RawValue) -> Read<Vec<String>> {
    strings_where(raw, |s| !s.is_empty() && !s.contains('\0'), "a list of at most 1024 paths")
}

pub(super) fn images(raw: &RawValue) -> Read<Vec<String>> {
    let expected = Some("a list of at most 20 paths");
    paths(raw).ok().filter(|all| all.len() <= limits::IMAGES).ok_or(expected)
}

pub(crate) fn arguments(raw: &RawValue) -> Read<Vec<String>> {
    let expected = "a list of at most 1024 strings without NUL, each at most 131071 and all together at most 131072 \
                    bytes long";
    let fits = |s: &String| !s.contains('\0') && s.len() <= limits::ARGUMENT_BYTES;
    let all = strings_where(raw, fits, expected)?;
    let bytes: usize = all.iter().map(String::len).sum();
    if bytes <= limits::ARGUMENTS_BYTES { Ok(all) } else { Err(Some(expected)) }
}

pub(super) fn within(raw: &RawValue, range: &'static Range) -> Read<f64> {
    number(raw).filter(|n| range.contains(*n)).ok_or(Some(range.expected))
}

pub(super) fn positive(raw: &RawValue) -> Read<Seconds> {
    within(raw, &POSITIVE).map(|n| Seconds(n.min(limits::SECONDS)))
}

pub(super) fn zero_or_more(raw: &RawValue) -> Read<Seconds> {
    within(raw, &ZERO_OR_MORE).map(|n| Seconds(n.abs().min(limits::SECONDS)))
}

pub(super) fn count(raw: &RawValue) -> Read<u64> {
    within(raw, &COUNT).map(|n| n as u64)
}

pub(super) fn cost(raw: &RawValue) -> Read<f64> {
    within(raw, &COST)
}

pub(super) fn frame_bytes(raw: &RawValue) -> Read<usize> {
    within(raw, &FRAME_BYTES).map(|n| n as usize)
}

pub fn is_environment_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(crate) fn environment(raw: &RawValue) -> Read<BTreeMap<String, String>> {
    let expected = Some(
        "an object of strings whose names are [A-Za-z_][A-Za-z0-9_]* and which fit an environment, all together at most \
         131072 bytes long; those with names of secrets have at most 1000 lines",
    );
    let (mut out, mut bytes) = (BTreeMap::new(), 0);
    for (name, value) in string_map(raw).ok_or(expected)? {
        // The kernel limits the length of `NAME=value` and its NUL.
        let fits = name.len() + value.len() + 2 <= limits::ARGUMENT_BYTES + 1;
        bytes += name.len() + value.len();
        if !is_environment_name(&name) || value.contains('\0') || !fits || bytes > limits::ARGUMENTS_BYTES {
            return Err(expected);
        }
        out.insert(name, value);
    }
    let secrets = out.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.as_str());
    if secrets_fit(secrets) { Ok(out) } else { Err(expected) }
}

pub(super) fn secrets_fit<'a>(secrets: impl Iterator<Item = &'a str>) -> bool {
    let (mut bytes, mut lines) = (0, 0);
    for secret in secrets {
        bytes += secret.len();
        lines += secret.lines().count();
    }
    bytes <= SECRETS_BYTES && lines <= SECRET_LINES
}

/// A field of an object, where null counts as absent. Error: `expected`, the rest of "must be …" for what contains it.
pub(super) fn optional<T>(
    fields: &Fields<'_>,
    key: &str,
    read: fn(&RawValue) -> Read<T>,
    expected: &'static str,
) -> Read<Option<T>> {
    fields.get(key).filter(|raw| !is_null(raw)).map(read).transpose().map_err(|why| why.map(|_| expected))
}

/// `"AGENT"`, `"AGENT:MODEL"`, or an object of this form with `agent` and optionally `model`.
pub(super) fn agent_and_model(
    raw: &RawValue,
    form: &ObjectForm,
    expected: &'static str,
) -> Read<(String, Option<String>)> {
    if let Some(text) = string(raw) {
        let (agent, model) = text.split_once(':').map_or((&*text, None), |(agent, model)| (agent, Some(model)));
        let is_whole = !agent.is_empty() && model != Some("");
        return if is_whole { Ok((agent.to_owned(), model.map(str::to_owned))) } else { Err(Some(expected)) };
    }
    let fields = Fields::parse(raw.get()).ok_or(Some(expected))?;
    if fields.repeats_one_of(form.keys()) {
        return Err(None);
    }
    let text = |key| optional(&fields, key, non_empty, expected);
    Ok((text("agent")?.ok_or(Some(expected))?, text("model")?))
}

pub(super) fn string_map(raw: &RawValue) -> Option<Vec<(String, String)>> {
    let fields = Fields::parse(raw.get())?;
    fields.iter().map(|(name, value)| Some((name.to_owned(), string(value)?))).collect()
}

pub(super) fn names(raw: &RawValue) -> Read<Vec<String>> {
    let fits = |s: &String| is_environment_name(s.strip_suffix('*').unwrap_or(s)) || s == "*";
    strings_where(raw, fits, "a list of at most 1024 names of environment variables, each optionally ending in `*`")
}

pub(super) fn object(raw: &RawValue) -> Read<Box<RawValue>> {
    Fields::parse(raw.get()).map(|_| raw.to_owned()).ok_or(Some("an object"))
}

pub(super) fn schema(raw: &RawValue) -> Read<OutputSchema> {
    object(raw)?;
    OutputSchema::read(raw).map_err(Some)
}

pub(super) fn metadata(raw: &RawValue) -> Read<Box<RawValue>> {
    let fits = raw.get().len() <= limits::METADATA_BYTES;
    object(raw).ok().filter(|_| fits).ok_or(Some("an object of at most 65536 bytes"))
}

//! The messages of the protocol as data: each field's name, type and presence. The declarations of the fields contain the
//! facts; nothing here repeats them.

use serde_json::value::RawValue;

/// The form of a value in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A string.
    Text,
    /// A string that keeps a rule.
    Shaped(&'static TextRule),
    /// One of these strings.
    Word(&'static WordSet),
    /// True or false.
    Bool,
    /// Always true: the field is absent otherwise.
    True,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A number within a range.
    Within(&'static Range),
    /// A list of values of this form.
    List(&'static Form),
    /// A list of at most so many values of this form.
    AtMost(usize, &'static Form),
    /// An object with any keys, whose values have this form.
    Map(&'static Form),
    /// An object whose keys keep a rule, and whose values have this form.
    Named(&'static TextRule, &'static Form),
    /// An object whose keys are tool categories, and `*` for the rest.
    Policies(&'static Form),
    /// An object with declared fields.
    Object(&'static ObjectForm),
    /// An object from outside, as it was sent.
    AnyObject,
    /// Any JSON from outside.
    Any,
    /// A JSON Schema.
    Schema,
    /// A value of this form, or null.
    Nullable(&'static Form),
    /// A value of one of these forms.
    Either(&'static [Form]),
}

/// A closed set of strings.
#[derive(Clone, Copy, Debug)]
pub struct WordSet {
    /// The name of the set in other languages. Empty: the set has none.
    pub name: &'static str,
    /// The strings.
    pub words: &'static [&'static str],
    /// Whether a later minor version may add strings, which readers must accept.
    pub grows: bool,
}

/// A rule for a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRule {
    /// The smallest number of characters.
    pub least: usize,
    /// The greatest number of characters. Where the protocol counts bytes, this number of bytes.
    pub most: Option<usize>,
    /// A regular expression that the whole string matches. Empty: any string does.
    pub pattern: &'static str,
}

/// The major version.
pub(crate) const VERSION: Form = Form::Word(&WordSet { name: "", words: &["1"], grows: false });

impl TextRule {
    /// A string that is not empty.
    pub(crate) const FILLED: TextRule = TextRule { least: 1, most: None, pattern: "" };

    /// A string that a regular expression describes.
    pub(crate) const fn matching(pattern: &'static str) -> TextRule {
        TextRule { least: 0, most: None, pattern }
    }
}

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Whether the number must be whole.
    pub whole: bool,
    /// The smallest number.
    pub least: f64,
    /// Whether the smallest number itself is outside the range.
    pub above: bool,
    /// The greatest number. Infinite: there is none.
    pub most: f64,
    /// The range in words, as the rest of "must be …".
    pub expected: &'static str,
}

impl Range {
    /// Whether the range contains a number.
    pub(crate) fn contains(&self, number: f64) -> bool {
        let low = if self.above { number > self.least } else { number >= self.least };
        low && number <= self.most && (!self.whole || number.fract() == 0.0)
    }
}

/// A range of numbers, with its words: `range!("a number" above 0)`, `range!(whole "a number", 1 or more)` or
/// `range!(whole "a number" from 1 to 10)`.
macro_rules! range {
    (whole $($rest:tt)*) => {
        $crate::protocol::form::Range { whole: true, ..$crate::protocol::form::range!($($rest)*) }
    };
    ($unit:literal above $least:literal) => {
        $crate::protocol::form::Range {
            above: true,
            ..$crate::protocol::form::range!(@ $least, f64::INFINITY, concat!($unit, " above ", $least))
        }
    };
    ($unit:literal, $least:literal or more) => {
        $crate::protocol::form::range!(@ $least, f64::INFINITY, concat!($unit, ", ", $least, " or more"))
    };
    ($unit:literal from $least:literal to $most:literal) => {
        $crate::protocol::form::range!(@ $least, $most as f64, concat!($unit, " from ", $least, " to ", $most))
    };
    (@ $least:literal, $most:expr, $expected:expr) => {
        $crate::protocol::form::Range {
            whole: false,
            least: $least as f64,
            above: false,
            most: $most,
            expected: $expected,
        }
    };
}

pub(crate) use range;

/// An object with declared fields.
#[derive(Clone, Copy, Debug)]
pub struct ObjectForm {
    /// The name of the type.
    pub name: &'static str,
    /// The parts of the object, in the order of the frame.
    pub members: &'static [Member],
}

/// A part of an object.
#[derive(Clone, Copy, Debug)]
pub enum Member {
    /// A field.
    Field(FieldForm),
    /// The fields of another declaration, which stand in this object.
    All(&'static ObjectForm),
    /// Like `All`, but the fields are only there together.
    AllOrNone(&'static ObjectForm),
    /// The fields of a kind of run.progress.
    Kind,
    /// No frame shows this part.
    Hidden,
}

/// A field of an object.
#[derive(Clone, Copy, Debug)]
pub struct FieldForm {
    /// The key.
    pub name: &'static str,
    /// The meaning, in sentences. May begin with a blank.
    pub doc: &'static str,
    /// The form of the value.
    pub form: Form,
    /// Whether the field may be absent.
    pub optional: bool,
    /// Whether only runs with the progress level full have the field.
    pub only_full: bool,
}

impl ObjectForm {
    /// The keys of an object that is declared without other declarations.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.members.iter().filter_map(|member| match member {
            Member::Field(field) => Some(field.name),
            Member::All(_) | Member::AllOrNone(_) | Member::Kind | Member::Hidden => None,
        })
    }
}

impl Member {
    /// A field that is declared by hand.
    pub(crate) const fn field(name: &'static str, doc: &'static str, form: Form, optional: bool) -> Member {
        Member::Field(FieldForm { name, doc, form, optional, only_full: false })
    }
}

/// A type that has one form in JSON.
pub trait HasForm {
    /// The form.
    const FORM: Form;
}

/// An outbound or inbound message.
#[derive(Clone, Copy, Debug)]
pub struct MessageForm {
    /// The message's `type`.
    pub name: &'static str,
    /// The meaning, in sentences.
    pub doc: &'static str,
    /// The payload: one of these.
    pub payloads: &'static [&'static ObjectForm],
}

macro_rules! described {
    ($($type:ty => $form:expr;)*) => {$(
        impl HasForm for $type {
            const FORM: Form = $form;
        }
    )*};
}

pub(crate) use described;

described! {
    String => Form::Text;
    str => Form::Text;
    bool => Form::Bool;
    u16 => Form::Integer;
    u32 => Form::Integer;
    u64 => Form::Integer;
    usize => Form::Integer;
    i32 => Form::Integer;
    i64 => Form::Integer;
    f64 => Form::Number;
}

impl<T: HasForm> HasForm for Option<T> {
    const FORM: Form = Form::Nullable(&T::FORM);
}

impl<T: HasForm> HasForm for Vec<T> {
    const FORM: Form = Form::List(&T::FORM);
}

impl<T: HasForm> HasForm for [T] {
    const FORM: Form = Form::List(&T::FORM);
}

impl HasForm for Box<RawValue> {
    const FORM: Form = Form::AnyObject;
}

impl<T: HasForm> HasForm for Box<T> {
    const FORM: Form = T::FORM;
}

impl<T: HasForm + ?Sized> HasForm for &T {
    const FORM: Form = T::FORM;
}

impl<T: HasForm> HasForm for std::collections::BTreeMap<String, T> {
    const FORM: Form = Form::Map(&T::FORM);
}

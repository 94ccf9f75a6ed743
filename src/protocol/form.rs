//! The messages of the protocol as data: each field's name, type and presence. The declarations of the fields contain the
//! facts; nothing here repeats them.

use serde_json::value::RawValue;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug)]
pub enum Form {
    Text,
    Shaped(&'static TextRule),
    Word(&'static WordSet),
    Bool,
    /// Always true: the field is absent otherwise.
    True,
    Integer,
    Number,
    Within(&'static Range),
    List(&'static Form),
    AtMost(usize, &'static Form),
    /// An object with any keys, whose values have this form.
    Map(&'static Form),
    /// An object whose keys keep a rule, and whose values have this form.
    Named(&'static TextRule, &'static Form),
    /// An object whose keys are tool categories, and `*` for the rest.
    Policies(&'static Form),
    Object(&'static ObjectForm),
    /// An object from outside, as it was sent.
    AnyObject,
    Any,
    Schema,
    Nullable(&'static Form),
    Either(&'static [Form]),
}

#[derive(Clone, Copy, Debug)]
pub struct WordSet {
    /// The name of the set in other languages. Empty: the set has none.
    pub name: &'static str,
    pub words: &'static [&'static str],
    /// Whether a later minor version may add strings, which readers must accept.
    pub grows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRule {
    /// In characters.
    pub least: usize,
    /// In characters; where the protocol counts bytes, in bytes.
    pub most: Option<usize>,
    /// A regular expression that the whole string matches. Empty: any string does.
    pub pattern: &'static str,
}

pub(crate) const VERSION: Form = Form::Word(&WordSet { name: "", words: &["1"], grows: false });

impl Form {
    pub(crate) const FILLED: Form = Form::Shaped(&TextRule::FILLED);
}

impl TextRule {
    pub(crate) const FILLED: TextRule = TextRule { least: 1, most: None, pattern: "" };

    pub(crate) const fn matching(pattern: &'static str) -> TextRule {
        TextRule { least: 0, most: None, pattern }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub whole: bool,
    pub least: f64,
    /// Whether the smallest number itself is outside the range.
    pub above: bool,
    /// Infinite: there is none.
    pub most: f64,
    /// The rest of "must be …".
    pub expected: &'static str,
}

impl Range {
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

#[derive(Clone, Copy, Debug)]
pub struct ObjectForm {
    pub name: &'static str,
    /// In the order of the frame.
    pub members: &'static [Member],
}

#[derive(Clone, Copy, Debug)]
pub enum Member {
    Field(FieldForm),
    /// The fields of another declaration, which stand in this object.
    All(&'static ObjectForm),
    /// Like `All`, but the fields are only there together.
    AllOrNone(&'static ObjectForm),
    /// The fields of a kind of run.progress.
    Kind,
    Hidden,
}

#[derive(Clone, Copy, Debug)]
pub struct FieldForm {
    pub name: &'static str,
    /// The meaning, in sentences. May begin with a blank.
    pub doc: &'static str,
    pub form: Form,
    pub optional: bool,
    /// Whether only runs with the progress level full have the field.
    pub only_full: bool,
}

impl ObjectForm {
    /// Without the keys of other declarations in the object.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.members.iter().filter_map(|member| match member {
            Member::Field(field) => Some(field.name),
            Member::All(_) | Member::AllOrNone(_) | Member::Kind | Member::Hidden => None,
        })
    }
}

impl Member {
    pub(crate) const fn field(name: &'static str, doc: &'static str, form: Form, optional: bool) -> Member {
        Member::Field(FieldForm { name, doc, form, optional, only_full: false })
    }
}

/// Declares the forms of objects: for each key its description, its form, and whether it may be absent.
macro_rules! object_forms {
    ($(
        $(#[$meta:meta])*
        $vis:vis $object:ident = $name:literal {
            $( $(#[doc = $doc:literal])* $key:ident: $form:expr, $optional:literal; )*
        }
    )*) => {$(
        $(#[$meta])*
        $vis const $object: $crate::protocol::form::ObjectForm = $crate::protocol::form::ObjectForm {
            name: $name,
            members: &[$(
                $crate::protocol::form::Member::field(stringify!($key), concat!($($doc),*), $form, $optional)
            ),*],
        };
    )*};
}

pub(crate) use object_forms;

pub trait HasForm {
    const FORM: Form;
}

#[derive(Clone, Copy, Debug)]
pub struct MessageForm {
    pub name: &'static str,
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
    PathBuf => Form::Text;
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

//! The messages of the protocol as data: each field's name, type and presence. The declarations of the fields contain the
//! facts; nothing here repeats them.

use serde_json::value::RawValue;

/// The form of a value in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A string.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// True or false.
    Bool,
    /// Always true: the field is absent otherwise.
    True,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A list of values of this form.
    List(&'static Form),
    /// An object with any keys, whose values have this form.
    Map(&'static Form),
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
}

impl ObjectForm {
    /// The keys of an object that is declared without other declarations.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.members.iter().filter_map(|member| match member {
            Member::Field(field) => Some(field.name),
            Member::All(_) | Member::AllOrNone(_) | Member::Kind | Member::Hidden => None,
        })
    }

    /// Every field in order, those of other declarations included.
    pub fn fields(&self) -> Vec<FieldForm> {
        let fields = self.members.iter().map(|member| match member {
            Member::Field(field) => vec![*field],
            Member::All(object) => object.fields(),
            Member::AllOrNone(object) => {
                object.fields().into_iter().map(|field| FieldForm { optional: true, ..field }).collect()
            }
            Member::Kind | Member::Hidden => Vec::new(),
        });
        fields.flatten().collect()
    }
}

impl Member {
    /// A field that is declared by hand.
    pub(crate) const fn field(name: &'static str, doc: &'static str, form: Form, optional: bool) -> Member {
        Member::Field(FieldForm { name, doc, form, optional })
    }
}

/// A type that has one form in JSON.
pub(crate) trait HasForm {
    const FORM: Form;
}

/// An outbound or inbound message.
#[derive(Clone, Copy, Debug)]
pub struct MessageForm {
    /// The message's `type`.
    pub name: &'static str,
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

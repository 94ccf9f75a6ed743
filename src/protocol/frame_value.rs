//! The values that frames can contain, and the writer of their objects.

use super::form::{Form, HasForm, Member, ObjectForm, TextRule, described};
use super::ids::{CallId, CheckpointId, MessageId, PromptId, QuestionId, RunId, SessionId, put_id};
use super::limits::SESSION_ID_BYTES;
use super::parts::IsRedacted;
use super::text::{Json, Text};
use crate::json::{encode, put_number, put_string};

pub(crate) trait FrameValue: HasForm {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted);
}

/// A value whose fields stand in an object of a frame.
pub(crate) trait FrameObject {
    const OBJECT: ObjectForm;
    /// The fields as a part of another object.
    const MEMBER: Member = Member::All(&Self::OBJECT);

    fn put_fields(&self, object: &mut ObjectWriter<'_>);
}

/// A value that a frame shows only if there is something to say.
pub(crate) trait Known {
    /// The form of the value where it is shown.
    const FORM: Form;

    fn is_known(&self) -> bool;
}

impl<T: HasForm> Known for Option<T> {
    const FORM: Form = T::FORM;

    #[inline(always)]
    fn is_known(&self) -> bool {
        self.is_some()
    }
}

impl<T: HasForm> Known for Vec<T> {
    const FORM: Form = Form::List(&T::FORM);

    fn is_known(&self) -> bool {
        !self.is_empty()
    }
}

impl Known for bool {
    const FORM: Form = Form::True;

    #[inline(always)]
    fn is_known(&self) -> bool {
        *self
    }
}

pub(crate) struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
    proof: IsRedacted,
}

impl ObjectWriter<'_> {
    /// `key`: a comma, the key in quotes and a colon.
    #[inline(always)]
    pub(crate) fn entry(&mut self, key: &'static str, value: &(impl FrameValue + ?Sized)) {
        let key = if std::mem::take(&mut self.empty) { &key[1..] } else { key };
        self.out.extend_from_slice(key.as_bytes());
        value.put(self.out, self.proof);
    }
}

#[inline(always)]
pub(crate) fn put_object(out: &mut Vec<u8>, proof: IsRedacted, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    out.push(b'{');
    write(&mut ObjectWriter { out: &mut *out, empty: true, proof });
    out.push(b'}');
}

macro_rules! object_value {
    ($name:ident $(<$life:lifetime>)?) => {
        impl $(<$life>)? $crate::protocol::form::HasForm for $name $(<$life>)? {
            const FORM: $crate::protocol::form::Form =
                $crate::protocol::form::Form::Object(&<$name as $crate::protocol::frame_value::FrameObject>::OBJECT);
        }

        impl $(<$life>)? $crate::protocol::frame_value::FrameValue for $name $(<$life>)? {
            fn put(&self, out: &mut Vec<u8>, proof: $crate::protocol::parts::IsRedacted) {
                $crate::protocol::frame_value::put_object(out, proof, |object| {
                    $crate::protocol::frame_value::FrameObject::put_fields(self, object);
                });
            }
        }
    };
}

pub(crate) use object_value;

impl<T: FrameObject> FrameObject for Option<T> {
    const OBJECT: ObjectForm = T::OBJECT;
    const MEMBER: Member = Member::AllOrNone(&T::OBJECT);

    fn put_fields(&self, object: &mut ObjectWriter<'_>) {
        if let Some(value) = self {
            value.put_fields(object);
        }
    }
}

impl<T: FrameObject> FrameObject for Box<T> {
    const OBJECT: ObjectForm = T::OBJECT;
    const MEMBER: Member = T::MEMBER;

    fn put_fields(&self, object: &mut ObjectWriter<'_>) {
        (**self).put_fields(object);
    }
}

impl<T: FrameObject> FrameObject for &T {
    const OBJECT: ObjectForm = T::OBJECT;
    const MEMBER: Member = T::MEMBER;

    fn put_fields(&self, object: &mut ObjectWriter<'_>) {
        (**self).put_fields(object);
    }
}

described! {
    Text => Form::Text;
    Json => Form::Any;
    RunId => Form::Shaped(&TextRule::matching(RunId::PATTERN));
    QuestionId => Form::Text;
    SessionId => Form::Shaped(&TextRule { most: Some(SESSION_ID_BYTES), ..TextRule::FILLED });
    MessageId => Form::Text;
    CallId => Form::Text;
    PromptId => Form::Text;
    CheckpointId => Form::Text;
}

macro_rules! values {
    ($($type:ty, $it:ident, $out:ident $(, $proof:ident)? => $write:expr;)*) => {$(
        impl $crate::protocol::frame_value::FrameValue for $type {
            fn put(&self, $out: &mut Vec<u8>, _proof: $crate::protocol::parts::IsRedacted) {
                $(let $proof = _proof;)?
                let $it = self;
                $write
            }
        }
    )*};
}

pub(super) use values;

values! {
    Text, it, out => put_string(it.shown(), out);
    Json, it, out => out.extend_from_slice(it.shown().get().as_bytes());
    str, it, out => put_string(it, out);
    String, it, out => put_string(it, out);
    QuestionId, it, out => put_string(it, out);
    SessionId, it, out => put_string(it, out);
    MessageId, it, out => match it {
        MessageId::Said(number) => put_id("m_", *number, out),
        MessageId::Result(number) => put_id("m_result_", *number, out),
    };
    CallId, it, out => put_id("c_", it.0, out);
    PromptId, it, out => put_id("p_", it.0, out);
    CheckpointId, it, out => put_string(&it.to_string(), out);
    bool, it, out => out.extend_from_slice(if *it { b"true" } else { b"false" });
    u64, it, out => put_number(*it, out);
    u32, it, out => put_number((*it).into(), out);
    u16, it, out => put_number((*it).into(), out);
    usize, it, out => put_number(*it as u64, out);
    i64, it, out => encode(it, out);
    i32, it, out => encode(it, out);
    f64, it, out => encode(it, out);
}

impl<T: FrameValue> FrameValue for Option<T> {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        match self {
            Some(it) => it.put(out, proof),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl<T: FrameValue + ?Sized> FrameValue for &T {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        (**self).put(out, proof);
    }
}

impl<T: FrameValue> FrameValue for Box<T> {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        (**self).put(out, proof);
    }
}

impl<T: FrameValue> FrameValue for Vec<T> {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        self.as_slice().put(out, proof);
    }
}

impl<T: FrameValue> FrameValue for [T] {
    fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        out.push(b'[');
        for (at, it) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            it.put(out, proof);
        }
        out.push(b']');
    }
}

/// A word of the protocol needs no escape.
#[inline]
pub(crate) fn put_word(word: &'static str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

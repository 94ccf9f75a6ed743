//! The macros that declare what frames contain, each field once: its type, its place in the JSON, its description, and the
//! treatment of its texts.
//!
//! A field is `name: Type`, or `name = "key": Type` if its key in JSON is another one. After `as` stand
//! - at most one word about its presence: `known` (absent if there is nothing to say), `full` (the same, and only runs with
//!   the progress level full have it), `flat` (its own fields stand in this object), or `hidden` (no frame shows it, but a
//!   terminal may);
//! - at most one word about its texts, from the list in [`visit_field`]. A field without such a word has no free text,
//!   which the compiler checks.

macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

macro_rules! put_field {
    ($object:ident, [hidden $($word:ident)*], $value:expr, $field:ident $($key:literal)?) => {
        let _ = $value;
    };
    ($object:ident, [flat $($word:ident)*], $value:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::frame_value::FrameObject::put_fields($value, $object)
    };
    ($object:ident, [known $($word:ident)*], $value:expr, $field:ident $($key:literal)?) => {
        if $crate::protocol::frame_value::Known::is_known($value) {
            $crate::protocol::declare::put_field!($object, [], $value, $field $($key)?);
        }
    };
    ($object:ident, [full $($word:ident)*], $value:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::declare::put_field!($object, [known $($word)*], $value, $field $($key)?);
    };
    ($object:ident, [$($word:ident)*], $value:expr, $field:ident $($key:literal)?) => {
        $object.entry(concat!(",\"", $crate::protocol::declare::key!($field $($key)?), "\":"), $value)
    };
}

macro_rules! member {
    ([hidden $($word:ident)*], $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::form::Member::Hidden
    };
    ([flat $($word:ident)*], $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        <$type as $crate::protocol::frame_value::FrameObject>::MEMBER
    };
    ([known $($word:ident)*], $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::declare::known_member!(false, $type, $doc, $field $($key)?)
    };
    ([full $($word:ident)*], $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::declare::known_member!(true, $type, $doc, $field $($key)?)
    };
    ([$($word:ident)*], $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::form::Member::field(
            $crate::protocol::declare::key!($field $($key)?),
            $doc,
            <$type as $crate::protocol::form::HasForm>::FORM,
            false,
        )
    };
}

macro_rules! known_member {
    ($only_full:literal, $type:ty, $doc:expr, $field:ident $($key:literal)?) => {
        $crate::protocol::form::Member::Field($crate::protocol::form::FieldForm {
            name: $crate::protocol::declare::key!($field $($key)?),
            doc: $doc,
            form: <$type as $crate::protocol::frame_value::Known>::FORM,
            optional: true,
            only_full: $only_full,
        })
    };
}

macro_rules! visit_field {
    // Texts that are cut last, and their lists.
    ([text], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!(@cut Text, $value, $visit)
    };
    // Elements of lists.
    ([list], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!(@cut List, $value, $visit)
    };
    // Outputs and details, which are cut first.
    ([output], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!(@cut Output, $value, $visit)
    };
    // JSON that the orchestrator itself sent.
    ([own], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!(@cut Own, $value, $visit)
    };
    // An action that somebody approved or not.
    ([past_action], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::parts::Parts::visit($value, $crate::protocol::parts::Role::PastAction, $visit)
    };
    // A value that the orchestrator may send back as an answer.
    ([answer], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::parts::Parts::visit($value, $crate::protocol::parts::Role::Answer, $visit)
    };
    // The role of the object that contains the field.
    ([inherited], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::parts::Parts::visit($value, $role, $visit)
    };
    // Text that is useful only as a whole.
    ([whole], $value:expr, $role:ident, $visit:ident) => {
        $visit($crate::protocol::parts::Rank::Output, $crate::protocol::parts::BodyPart::Whole($value))
    };
    // A list of names, which are no free text.
    ([names], $value:expr, $role:ident, $visit:ident) => {
        if let Some(names) = $value {
            let role = $crate::protocol::parts::Role::Cut($crate::protocol::parts::Rank::List);
            $crate::protocol::parts::visit_list(names, role, $visit);
        }
    };
    // A string that is a name or an id, and no free text.
    ([name], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::parts::check_name($value)
    };
    ([known $($word:ident)?], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!([$($word)?], $value, $role, $visit)
    };
    ([full $($word:ident)?], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!([$($word)?], $value, $role, $visit)
    };
    ([flat $($word:ident)?], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!([$($word)?], $value, $role, $visit)
    };
    ([hidden $($word:ident)?], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::declare::visit_field!([$($word)?], $value, $role, $visit)
    };
    ([], $value:expr, $role:ident, $visit:ident) => {
        $crate::protocol::parts::check_fixed($value)
    };
    (@cut $rank:ident, $value:expr, $visit:ident) => {
        $crate::protocol::parts::Parts::visit(
            $value,
            $crate::protocol::parts::Role::Cut($crate::protocol::parts::Rank::$rank),
            $visit,
        )
    };
}

/// Declares types with parts that frames show in other forms: they need [`views`].
macro_rules! sources {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])* $fvis:vis $field:ident: $type:ty $(as $($word:ident)+)?, )*
        }
    )*) => {$(
        $(#[$meta])*
        $vis struct $name {
            $( $(#[doc = $doc])* $fvis $field: $type, )*
        }

        impl $crate::protocol::parts::Parts for $name {
            fn visit(
                &mut self,
                _role: $crate::protocol::parts::Role,
                visit: $crate::protocol::parts::Visit<'_>,
            ) {
                let $name { $($field),* } = self;
                $( $crate::protocol::declare::visit_field!([$($($word)+)?], $field, _role, visit); )*
                let _ = visit;
            }
        }
    )*};
}

macro_rules! shown {
    ($name:ident $(<$life:lifetime>)?, {
        $( $(#[doc = $doc:literal])* $field:ident $(= $key:literal)?: $type:ty $(as $($word:ident)+)?, )*
    }) => {
        impl $(<$life>)? $crate::protocol::frame_value::FrameObject for $name $(<$life>)? {
            const OBJECT: $crate::protocol::form::ObjectForm = $crate::protocol::form::ObjectForm {
                name: stringify!($name),
                members: &[$( $crate::protocol::declare::member!([$($($word)+)?], $type, concat!($($doc),*), $field $($key)?) ),*],
            };

            fn put_fields(&self, object: &mut $crate::protocol::frame_value::ObjectWriter<'_>) {
                $( $crate::protocol::declare::put_field!(object, [$($($word)+)?], &self.$field, $field $($key)?); )*
            }
        }

        $crate::protocol::frame_value::object_value!($name $(<$life>)?);
    };
}

macro_rules! objects {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $fvis:vis $field:ident $(= $key:literal)?: $type:ty $(as $($word:ident)+)?,
            )*
        }
    )*) => {$(
        $crate::protocol::declare::sources! {
            $(#[$meta])*
            $vis struct $name {
                $( $(#[doc = $doc])* $fvis $field: $type $(as $($word)+)?, )*
            }
        }

        $crate::protocol::declare::shown!($name, {
            $( $(#[doc = $doc])* $field $(= $key)?: $type $(as $($word)+)?, )*
        });
    )*};
}

/// Declares the form in which a frame shows values of other types. A view is made while a frame is written.
macro_rules! views {
    ($(
        $(#[$meta:meta])*
        struct $name:ident<$life:lifetime> {
            $( $(#[doc = $doc:literal])* $field:ident $(= $key:literal)?: $type:ty $(as $($word:ident)+)?, )*
        }
    )*) => {$(
        $(#[$meta])*
        struct $name<$life> {
            $( $field: $type, )*
        }

        $crate::protocol::declare::shown!($name<$life>, {
            $( $(#[doc = $doc])* $field $(= $key)?: $type $(as $($word)+)?, )*
        });
    )*};
}

pub(crate) use {key, known_member, member, objects, put_field, shown, sources, views, visit_field};

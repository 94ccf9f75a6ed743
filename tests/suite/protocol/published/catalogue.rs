//! Every named type of the protocol: the declarations, with the names that they have in other languages.

use crate::protocol::forms::fields_of;
use spektacular::protocol::fields::{Fallback, find};
use spektacular::protocol::form::{FieldForm, Form, HasForm, Member, MessageForm, ObjectForm, WordSet};
use spektacular::protocol::messages::{ENVELOPE_IN, ENVELOPE_OUT, FRAMES, KindForm, MESSAGES, ProgressKind};
use spektacular::protocol::words::Category;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inbound,
    Outbound,
}

/// A named type.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) side: Side,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// One of some words.
    Words(&'static WordSet),
    /// An object.
    Object(ObjectShape),
    /// One of some types, which the value of `tag` tells apart. `None`: their required fields do.
    Union { tag: Option<&'static str>, members: Vec<String> },
}

#[derive(Debug, Default)]
pub(super) struct ObjectShape {
    pub(super) properties: Vec<Property>,
    /// Fields that are only there together.
    pub(super) groups: Vec<Vec<&'static str>>,
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) value: ValueShape,
    pub(super) optional: bool,
    /// Whether null counts as absent.
    pub(super) or_null: bool,
    /// The value if the field is absent, as JSON.
    pub(super) default: Option<String>,
}

impl Property {
    /// Sets the default of a field of run.start.
    fn set_default(&mut self) {
        self.default = match find(self.name).map(|field| field.fallback) {
            Some(Fallback::Value(value)) => value().map(|raw| raw.get().to_owned()),
            Some(Fallback::Absent | Fallback::Driver(_) | Fallback::Agent) | None => None,
        };
    }

    /// The description with the range and the default.
    pub(super) fn documented(&self) -> String {
        let range = match self.value {
            ValueShape::Form(Form::Within(range)) => format!(" Must be {}.", range.expected),
            ValueShape::Form(_) | ValueShape::Constant(_) | ValueShape::Type(_) => String::new(),
        };
        let default = self.default.as_ref().map(|json| format!(" Default: {json}.")).unwrap_or_default();
        format!("{}{range}{default}", self.doc)
    }
}

/// The type of a value.
#[derive(Debug)]
pub(super) enum ValueShape {
    Form(Form),
    /// Exactly this string.
    Constant(&'static str),
    /// The type with this name.
    Type(String),
}

/// The name of the union of all messages in one direction.
pub(super) fn union_of(side: Side) -> &'static str {
    match side {
        Side::Inbound => "Message",
        Side::Outbound => "Frame",
    }
}

/// `run.started` as the name of a type: `RunStarted`.
pub(super) fn camel(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    name.split(['.', '_']).map(part).collect()
}

/// The name of a declared object in other languages.
pub(super) fn type_name(object: &ObjectForm) -> &'static str {
    object.name.strip_suffix("View").unwrap_or(object.name)
}

/// Every named type. Each stands after those that it names.
pub(super) fn definitions() -> Vec<Definition> {
    let mut all = Catalogue { definitions: Vec::new() };
    for (side, messages) in [(Side::Inbound, &MESSAGES[..]), (Side::Outbound, &FRAMES[..])] {
        let members = messages.iter().map(|message| all.message(side, message)).collect();
        let doc = match side {
            Side::Inbound => "A message to spektacular.",
            Side::Outbound => "A frame from spektacular.",
        };
        all.add(side, union_of(side), doc, Shape::Union { tag: Some("type"), members });
    }
    all.definitions
}

struct Catalogue {
    definitions: Vec<Definition>,
}

impl Catalogue {
    /// Adds a type, unless it is there; returns its name.
    fn add(&mut self, side: Side, name: &str, doc: &str, shape: Shape) -> String {
        if !self.definitions.iter().any(|known| known.name == name) {
            self.definitions.push(Definition { name: name.to_owned(), doc: doc.trim().to_owned(), side, shape });
        }
        name.to_owned()
    }

    /// Adds a message with its envelope.
    fn message(&mut self, side: Side, message: &MessageForm) -> String {
        let payload = self.payload(side, message);
        let envelope = match side {
            Side::Inbound => &ENVELOPE_IN,
            Side::Outbound => &ENVELOPE_OUT,
        };
        let mut object = self.object(side, envelope, None);
        for property in &mut object.properties {
            property.or_null = false;
            if property.name == "type" {
                property.value = ValueShape::Constant(message.name);
            }
        }
        object.properties.retain(|property| property.name != "payload");
        let all_optional = message.payloads.iter().all(|payload| fields_of(payload).iter().all(|field| field.optional));
        object.properties.push(Property {
            name: "payload",
            doc: "The content.".into(),
            value: ValueShape::Type(payload),
            optional: side == Side::Inbound && all_optional,
            or_null: false,
            default: None,
        });
        self.add(side, &camel(message.name), message.doc, Shape::Object(object))
    }

    /// Adds the payload of a message.
    fn payload(&mut self, side: Side, message: &MessageForm) -> String {
        let doc = format!("The payload of {}.", message.name);
        match message.payloads {
            [one] if has_kinds(one) => {
                let members = ProgressKind::KINDS.iter().map(|kind| self.kind(one, kind)).collect();
                self.add(side, type_name(one), &doc, Shape::Union { tag: Some("kind"), members })
            }
            [one] => {
                let mut object = self.object(side, one, None);
                if message.name == "run.start" {
                    object.properties.iter_mut().for_each(Property::set_default);
                }
                self.add(side, type_name(one), &doc, Shape::Object(object))
            }
            several => {
                let members = several.iter().map(|one| self.named(side, one)).collect();
                let name = message.name.rsplit('.').next().unwrap_or(message.name);
                self.add(side, &camel(name), &doc, Shape::Union { tag: None, members })
            }
        }
    }

    /// Adds the payload of a kind of run.progress.
    fn kind(&mut self, progress: &'static ObjectForm, kind: &'static KindForm) -> String {
        let mut object = self.object(Side::Outbound, progress, Some(kind));
        for property in object.properties.iter_mut().filter(|property| property.name == "kind") {
            property.value = ValueShape::Constant(kind.name);
        }
        let doc = format!("{} From level {}.", kind.doc.trim(), kind.level.word());
        self.add(Side::Outbound, &format!("Progress{}", camel(kind.name)), &doc, Shape::Object(object))
    }

    fn named(&mut self, side: Side, object: &'static ObjectForm) -> String {
        let shape = self.object(side, object, None);
        self.add(side, type_name(object), "", Shape::Object(shape))
    }

    fn object(&mut self, side: Side, object: &ObjectForm, kind: Option<&'static KindForm>) -> ObjectShape {
        let mut shape = ObjectShape::default();
        self.members(side, object, kind, &mut shape);
        shape
    }

    fn members(&mut self, side: Side, object: &ObjectForm, kind: Option<&'static KindForm>, shape: &mut ObjectShape) {
        for member in object.members {
            match member {
                Member::Field(field) => shape.properties.push(self.property(side, field)),
                Member::All(inner) => self.members(side, inner, kind, shape),
                Member::AllOrNone(inner) => {
                    let at = shape.properties.len();
                    self.members(side, inner, kind, shape);
                    let group = &mut shape.properties[at..];
                    group.iter_mut().for_each(|property| property.optional = true);
                    shape.groups.push(group.iter().map(|property| property.name).collect());
                }
                Member::Kind => {
                    if let Some(kind) = kind {
                        self.members(side, kind.fields, None, shape);
                    }
                }
                Member::Hidden => {}
            }
        }
    }

    fn property(&mut self, side: Side, field: &FieldForm) -> Property {
        self.form(side, &field.form);
        let full = if field.only_full { " From level full." } else { "" };
        Property {
            name: field.name,
            doc: format!("{}{full}", field.doc.trim()),
            value: ValueShape::Form(field.form),
            optional: field.optional,
            or_null: side == Side::Inbound && field.optional,
            default: None,
        }
    }

    /// Adds the named types in a form.
    fn form(&mut self, side: Side, form: &Form) {
        match form {
            Form::Word(set) if !set.name.is_empty() => {
                self.add(side, set.name, "", Shape::Words(set));
            }
            Form::Object(object) => {
                self.named(side, object);
            }
            Form::List(one) | Form::AtMost(_, one) | Form::Map(one) | Form::Named(_, one) | Form::Nullable(one) => {
                self.form(side, one)
            }
            Form::Policies(one) => {
                self.form(side, &Category::FORM);
                self.form(side, one);
            }
            Form::Either(all) => all.iter().for_each(|one| self.form(side, one)),
            Form::Text
            | Form::Shaped(_)
            | Form::Word(_)
            | Form::Bool
            | Form::True
            | Form::Integer
            | Form::Number
            | Form::Within(_)
            | Form::AnyObject
            | Form::Any
            | Form::Schema => {}
        }
    }
}

/// Whether it is the payload of run.progress, which differs by kind.
fn has_kinds(object: &ObjectForm) -> bool {
    object.members.iter().any(|member| match member {
        Member::Kind => true,
        Member::All(inner) => has_kinds(inner),
        Member::Field(_) | Member::AllOrNone(_) | Member::Hidden => false,
    })
}

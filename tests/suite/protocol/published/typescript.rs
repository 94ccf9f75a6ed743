//! TypeScript declarations of the messages and frames.

use super::about;
use super::catalogue::{Definition, ObjectShape, Property, Shape, ValueShape, definitions, type_name};
use spektacular::json::to_line;
use spektacular::protocol::form::{Form, HasForm, WordSet};
use spektacular::protocol::words::Category;
use std::fmt::Write;

/// The longest line, in characters.
const WIDTH: usize = 120;

/// One module with a type for each message, frame and object.
pub(super) fn typescript() -> String {
    let mut out = String::new();
    for line in about() {
        let _ = writeln!(out, "// {line}");
    }
    for definition in definitions() {
        out.push('\n');
        comment(&mut out, "", &definition.doc);
        define(&mut out, &definition);
    }
    out
}

/// Writes a comment, unless it is empty.
fn comment(out: &mut String, indent: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "{indent}/** {} */", text.replace("*/", "* /"));
    }
}

fn define(out: &mut String, definition: &Definition) {
    let Definition { name, shape, .. } = definition;
    match shape {
        Shape::Words(set) => {
            let open = set.grows.then(|| "(string & {})".to_owned());
            let words = set.words.iter().map(to_line).chain(open).collect();
            alias(out, name, words);
        }
        Shape::Union { members, .. } => alias(out, name, members.clone()),
        Shape::Object(ObjectShape { properties, .. }) => {
            let _ = writeln!(out, "export interface {name} {{");
            for property in properties {
                let Property { name, optional, .. } = property;
                comment(out, "  ", &property.documented());
                let optional = if *optional { "?" } else { "" };
                let _ = writeln!(out, "  {name}{optional}: {};", type_of(property));
            }
            out.push_str("}\n");
        }
    }
}

/// Declares a type that is one of several.
fn alias(out: &mut String, name: &str, members: Vec<String>) {
    let line = format!("export type {name} = {};", members.join(" | "));
    if line.len() <= WIDTH {
        let _ = writeln!(out, "{line}");
        return;
    }
    let _ = write!(out, "export type {name} =");
    for member in members {
        let _ = write!(out, "\n  | {member}");
    }
    out.push_str(";\n");
}

fn type_of(property: &Property) -> String {
    let plain = match &property.value {
        ValueShape::Form(form) => value(form),
        ValueShape::Constant(word) => to_line(word),
        ValueShape::Type(name) => name.clone(),
    };
    if property.or_null { format!("{plain} | null") } else { plain }
}

fn words(set: &WordSet) -> String {
    set.words.iter().map(to_line).collect::<Vec<_>>().join(" | ")
}

fn value(form: &Form) -> String {
    match form {
        Form::Text | Form::Shaped(_) => "string".into(),
        Form::Word(set) if set.name.is_empty() => words(set),
        Form::Word(set) => set.name.into(),
        Form::Bool => "boolean".into(),
        Form::True => "true".into(),
        Form::Integer | Form::Number | Form::Within(_) => "number".into(),
        Form::List(one) | Form::AtMost(_, one) => match value(one) {
            union if union.contains(" | ") => format!("({union})[]"),
            one => format!("{one}[]"),
        },
        Form::Map(one) | Form::Named(_, one) => format!("Record<string, {}>", value(one)),
        Form::Policies(one) => format!("Partial<Record<{} | \"*\", {}>>", value(&Category::FORM), value(one)),
        Form::Object(object) => type_name(object).into(),
        Form::AnyObject | Form::Schema => "Record<string, unknown>".into(),
        Form::Any => "unknown".into(),
        Form::Nullable(one) => format!("{} | null", value(one)),
        Form::Either(all) => all.iter().map(value).collect::<Vec<_>>().join(" | "),
    }
}

//! Python types of the messages and frames: TypedDicts.

use super::about;
use super::catalogue::{Definition, ObjectShape, Property, Shape, ValueShape, definitions, type_name};
use spektacular::json::to_line;
use spektacular::protocol::form::{Form, HasForm, WordSet};
use spektacular::protocol::words::Category;
use std::fmt::Write;

/// The longest line, in characters.
const WIDTH: usize = 120;

/// The keywords of Python that can be a field. A class cannot declare them.
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
    "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield",
];

const IMPORTS: &str = "\
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired
else:
    NotRequired = Optional
";

/// One module with a type for each message, frame and object.
pub(super) fn python() -> String {
    let [version, later] = about();
    let mut out = format!("\"\"\"{version}\n\n{later}\nFor Python 3.9 or later.\n\"\"\"\n\n{IMPORTS}");
    let mut after_object = false;
    for definition in definitions() {
        let is_object = matches!(definition.shape, Shape::Object(_));
        out.push_str(if is_object || after_object { "\n\n" } else { "\n" });
        after_object = is_object;
        define(&mut out, &definition);
    }
    out
}

fn define(out: &mut String, definition: &Definition) {
    let Definition { name, doc, shape, .. } = definition;
    match shape {
        Shape::Words(set) => {
            remark(out, "", doc);
            let _ = writeln!(out, "{name} = {}", grown(set, literal(set.words)));
        }
        Shape::Union { members, .. } => {
            remark(out, "", doc);
            let _ = writeln!(out, "{name} = {}", generic("Union", members));
        }
        Shape::Object(ObjectShape { properties, .. }) => {
            let by_call = properties.iter().any(|property| KEYWORDS.contains(&property.name));
            if by_call {
                remark(out, "", doc);
                let _ = writeln!(out, "{name} = TypedDict(\n    \"{name}\",\n    {{");
            } else {
                let _ = writeln!(out, "class {name}(TypedDict):");
                if !doc.is_empty() {
                    let _ = writeln!(out, "    \"\"\"{doc}\"\"\"\n");
                }
            }
            for property in properties {
                let indent = if by_call { "        " } else { "    " };
                remark(out, indent, &property.documented());
                let kind = type_of(property);
                let _ = match by_call {
                    true => writeln!(out, "{indent}\"{}\": {kind},", property.name),
                    false => writeln!(out, "{indent}{}: {kind}", property.name),
                };
            }
            if by_call {
                out.push_str("    },\n)\n");
            }
        }
    }
}

/// Writes a comment, unless it is empty.
fn remark(out: &mut String, indent: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "{indent}# {text}");
    }
}

/// `Literal["a", "b"]`.
fn literal(words: &[&str]) -> String {
    generic("Literal", &words.iter().map(to_line).collect::<Vec<_>>())
}

/// `Union[A, B]`, with a line for each if they are many.
fn generic(name: &str, arguments: &[String]) -> String {
    let line = format!("{name}[{}]", arguments.join(", "));
    if line.len() <= WIDTH - 40 { line } else { format!("{name}[\n    {},\n]", arguments.join(",\n    ")) }
}

fn grown(set: &WordSet, known: String) -> String {
    if set.grows { format!("Union[{known}, str]") } else { known }
}

fn type_of(property: &Property) -> String {
    let plain = match &property.value {
        ValueShape::Form(form) => value(form),
        ValueShape::Constant(word) => literal(&[word]),
        ValueShape::Type(name) => name.clone(),
    };
    let plain = if property.or_null { format!("Union[{plain}, None]") } else { plain };
    if property.optional { format!("NotRequired[{plain}]") } else { plain }
}

fn value(form: &Form) -> String {
    match form {
        Form::Text | Form::Shaped(_) => "str".into(),
        Form::Word(set) if set.name.is_empty() => literal(set.words),
        Form::Word(set) => set.name.into(),
        Form::Bool => "bool".into(),
        Form::True => "Literal[True]".into(),
        Form::Integer => "int".into(),
        Form::Within(range) if range.whole => "int".into(),
        Form::Number | Form::Within(_) => "float".into(),
        Form::List(one) | Form::AtMost(_, one) => format!("list[{}]", value(one)),
        Form::Map(one) | Form::Named(_, one) => format!("dict[str, {}]", value(one)),
        Form::Policies(one) => {
            format!("dict[Union[{}, {}], {}]", value(&Category::FORM), literal(&["*"]), value(one))
        }
        Form::Object(object) => type_name(object).into(),
        Form::AnyObject | Form::Schema => "dict[str, Any]".into(),
        Form::Any => "Any".into(),
        Form::Nullable(one) => format!("Union[{}, None]", value(one)),
        Form::Either(all) => format!("Union[{}]", all.iter().map(value).collect::<Vec<_>>().join(", ")),
    }
}

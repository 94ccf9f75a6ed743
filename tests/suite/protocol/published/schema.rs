//! JSON Schema 2020-12 of the messages and frames.

use super::about;
use super::catalogue::{
    Definition, ObjectShape, Property, Shape, Side, ValueShape, camel, definitions, type_name, union_of,
};
use super::outline::JsonTree;
use spektacular::protocol::form::{Form, HasForm, Range, TextRule, WordSet};
use spektacular::protocol::publish::{MessageSet, UnknownParts, version};
use spektacular::protocol::words::Category;

type Keyword = (String, JsonTree);

/// The schema of some messages.
pub(super) fn schema(scope: &MessageSet, unknown: UnknownParts) -> String {
    let root = match scope {
        MessageSet::All => {
            let sides = [Side::Inbound, Side::Outbound].map(|side| object([refers(union_of(side))]));
            keyword("anyOf", JsonTree::List(sides.into()))
        }
        MessageSet::Inbound => refers(union_of(Side::Inbound)),
        MessageSet::Outbound => refers(union_of(Side::Outbound)),
        MessageSet::Type(kind) => refers(&camel(kind)),
    };
    let mut whole = vec![
        keyword("$schema", JsonTree::text("https://json-schema.org/draft/2020-12/schema")),
        keyword("title", JsonTree::text(&format!("spektacular protocol {}", version()))),
        keyword("description", JsonTree::text(&about().join(" "))),
    ];
    let all = definitions();
    let mut names = Vec::new();
    collect(&root.1, &mut names);
    let mut defined: Vec<Keyword> = Vec::new();
    while let Some(name) = names.get(defined.len()).cloned() {
        let definition = all.iter().find(|definition| definition.name == name);
        let node = definition.map_or(JsonTree::Object(Vec::new()), |definition| define(definition, &all, unknown));
        collect(&node, &mut names);
        defined.push((name, node));
    }
    whole.extend([root, keyword("$defs", JsonTree::Object(defined))]);
    JsonTree::Object(whole).page()
}

fn keyword(name: &str, node: JsonTree) -> Keyword {
    (name.to_owned(), node)
}

fn object(keywords: impl IntoIterator<Item = Keyword>) -> JsonTree {
    JsonTree::Object(keywords.into_iter().collect())
}

fn of_type(name: &str) -> Keyword {
    keyword("type", JsonTree::text(name))
}

fn number(name: &str, number: impl ToString) -> Keyword {
    keyword(name, JsonTree::Leaf(number.to_string()))
}

const REFERENCE: &str = "#/$defs/";

fn refers(name: &str) -> Keyword {
    keyword("$ref", JsonTree::text(&format!("{REFERENCE}{name}")))
}

/// Adds the names of the definitions to which a schema refers.
fn collect(node: &JsonTree, names: &mut Vec<String>) {
    match node {
        JsonTree::Leaf(json) => {
            let name = json.trim_matches('"').strip_prefix(REFERENCE);
            names.extend(name.filter(|name| !names.iter().any(|known| known == name)).map(str::to_owned));
        }
        JsonTree::List(all) => all.iter().for_each(|node| collect(node, names)),
        JsonTree::Object(all) => all.iter().for_each(|(_, node)| collect(node, names)),
    }
}

fn define(definition: &Definition, all: &[Definition], unknown: UnknownParts) -> JsonTree {
    let open = definition.side == Side::Outbound && unknown == UnknownParts::Allowed;
    let doc = Some(definition.doc.as_str()).filter(|doc| !doc.is_empty());
    let mut keywords: Vec<Keyword> = doc.map(|doc| keyword("description", JsonTree::text(doc))).into_iter().collect();
    match &definition.shape {
        Shape::Words(set) => keywords.extend(words(set, open)),
        Shape::Object(shape) => keywords.extend(fields(shape, open)),
        Shape::Union { tag, members } => {
            let mut choices: Vec<JsonTree> = members.iter().map(|name| object([refers(name)])).collect();
            choices.extend(tag.filter(|_| open).map(|tag| later(tag, &members_of(members, all))));
            keywords.push(keyword("oneOf", JsonTree::List(choices)));
        }
    }
    JsonTree::Object(keywords)
}

fn members_of<'d>(names: &[String], all: &'d [Definition]) -> Vec<&'d ObjectShape> {
    let named = |name: &String| all.iter().find(|definition| definition.name == *name);
    let objects = names.iter().filter_map(named).filter_map(|definition| match &definition.shape {
        Shape::Object(object) => Some(object),
        Shape::Words(_) | Shape::Union { .. } => None,
    });
    objects.collect()
}

/// The schema of a later member of a union: another tag, and the fields that all members require.
fn later(tag: &str, members: &[&ObjectShape]) -> JsonTree {
    let tags = members.iter().flat_map(|member| &member.properties).filter_map(|property| match property.value {
        ValueShape::Constant(word) => Some(word),
        ValueShape::Form(_) | ValueShape::Type(_) => None,
    });
    let known = object([keyword("enum", JsonTree::texts(tags))]);
    let required = |member: &&ObjectShape, name: &str| {
        member.properties.iter().any(|property| property.name == name && !property.optional)
    };
    let first = members.first().map(|member| member.properties.as_slice()).unwrap_or_default();
    let common: Vec<&Property> =
        first.iter().filter(|property| members.iter().all(|member| required(member, property.name))).collect();
    let properties = common.iter().map(|property| {
        let node = match &property.value {
            ValueShape::Constant(_) => object([of_type("string"), keyword("not", known.clone())]),
            ValueShape::Type(_) => object([of_type("object")]),
            ValueShape::Form(form) => object(value(form)),
        };
        keyword(property.name, node)
    });
    object([
        keyword("description", JsonTree::text(&format!("A later minor version may add a {tag}. Ignore it."))),
        of_type("object"),
        keyword("properties", JsonTree::Object(properties.collect())),
        keyword("required", JsonTree::texts(common.iter().map(|property| property.name))),
    ])
}

fn words(set: &WordSet, open: bool) -> Vec<Keyword> {
    let known = match set.words {
        [one] => keyword("const", JsonTree::text(one)),
        all => keyword("enum", JsonTree::texts(all.iter().copied())),
    };
    match open && set.grows {
        true => vec![keyword("anyOf", JsonTree::List(vec![object([known]), object([of_type("string")])]))],
        false => vec![known],
    }
}

fn fields(shape: &ObjectShape, open: bool) -> Vec<Keyword> {
    let required = shape.properties.iter().filter(|property| !property.optional).map(|property| property.name);
    let mut keywords = vec![
        of_type("object"),
        keyword("properties", object(shape.properties.iter().map(|field| keyword(field.name, property(field))))),
        keyword("required", JsonTree::texts(required)),
    ];
    let others = shape.groups.iter().flat_map(|group| {
        let others =
            |name: &&str| JsonTree::texts(group.iter().copied().filter(|other| *other != *name).collect::<Vec<_>>());
        group.iter().filter(|_| group.len() > 1).map(move |name| keyword(name, others(name)))
    });
    let others: Vec<Keyword> = others.collect();
    if !others.is_empty() {
        keywords.push(keyword("dependentRequired", JsonTree::Object(others)));
    }
    if !open {
        keywords.push(keyword("additionalProperties", JsonTree::Leaf("false".into())));
    }
    keywords
}

fn property(property: &Property) -> JsonTree {
    let plain = match &property.value {
        ValueShape::Form(form) => value(form),
        ValueShape::Constant(word) => vec![keyword("const", JsonTree::text(word))],
        ValueShape::Type(name) => vec![refers(name)],
    };
    let doc = keyword("description", JsonTree::text(&property.doc));
    let default = property.default.as_ref().map(|json| keyword("default", JsonTree::Leaf(json.clone())));
    let value = if property.or_null { nullable(plain) } else { plain };
    object(std::iter::once(doc).chain(value).chain(default))
}

/// The keywords for a value that may also be null.
fn nullable(mut keywords: Vec<Keyword>) -> Vec<Keyword> {
    if let Some((_, node @ JsonTree::Leaf(_))) = keywords.iter_mut().find(|(name, _)| name == "type") {
        let name = std::mem::replace(node, JsonTree::Leaf(String::new()));
        *node = JsonTree::List(vec![name, JsonTree::text("null")]);
        return keywords;
    }
    let null = object([of_type("null")]);
    match keywords.as_mut_slice() {
        [(name, JsonTree::List(choices))] if name == "anyOf" => choices.push(null),
        _ => keywords = vec![keyword("anyOf", JsonTree::List(vec![JsonTree::Object(keywords), null]))],
    }
    keywords
}

/// The keywords for a value of this form.
fn value(form: &Form) -> Vec<Keyword> {
    let items = |one: &Form| keyword("items", object(value(one)));
    let values = |one: &Form| keyword("additionalProperties", object(value(one)));
    match form {
        Form::Text => vec![of_type("string")],
        Form::Shaped(rule) => std::iter::once(of_type("string")).chain(text(rule)).collect(),
        Form::Word(set) if set.name.is_empty() => words(set, false),
        Form::Word(set) => vec![refers(set.name)],
        Form::Bool => vec![of_type("boolean")],
        Form::True => vec![keyword("const", JsonTree::Leaf("true".into()))],
        Form::Integer => vec![of_type("integer")],
        Form::Number => vec![of_type("number")],
        Form::Within(range) => within(range),
        Form::List(one) => vec![of_type("array"), items(one)],
        Form::AtMost(most, one) => vec![of_type("array"), items(one), number("maxItems", most)],
        Form::Map(one) => vec![of_type("object"), values(one)],
        Form::Named(rule, one) => {
            vec![of_type("object"), keyword("propertyNames", object(text(rule))), values(one)]
        }
        Form::Policies(one) => {
            let rest = object([keyword("const", JsonTree::text("*"))]);
            let names = keyword("anyOf", JsonTree::List(vec![object(value(&Category::FORM)), rest]));
            vec![of_type("object"), keyword("propertyNames", object([names])), values(one)]
        }
        Form::Object(named) => vec![refers(type_name(named))],
        Form::AnyObject | Form::Schema => vec![of_type("object")],
        Form::Any => Vec::new(),
        Form::Nullable(one) => nullable(value(one)),
        Form::Either(all) => {
            vec![keyword("anyOf", JsonTree::List(all.iter().map(|one| object(value(one))).collect()))]
        }
    }
}

fn text(rule: &TextRule) -> Vec<Keyword> {
    let least = Some(rule.least).filter(|least| *least > 0).map(|least| number("minLength", least));
    let most = rule.most.map(|most| number("maxLength", most));
    let pattern = Some(rule.pattern).filter(|pattern| !pattern.is_empty());
    let pattern = pattern.map(|pattern| keyword("pattern", JsonTree::text(pattern)));
    [least, most, pattern].into_iter().flatten().collect()
}

fn within(range: &Range) -> Vec<Keyword> {
    let least = if range.above { "exclusiveMinimum" } else { "minimum" };
    let most = Some(range.most).filter(|most| most.is_finite()).map(|most| number("maximum", most));
    let kind = of_type(if range.whole { "integer" } else { "number" });
    [kind, number(least, range.least)].into_iter().chain(most).collect()
}

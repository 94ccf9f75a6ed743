//! Reads a schema into nodes, which refer to each other by their index.

use super::format::Format;
use crate::json::{Raw, number};
use crate::protocol::pattern::Pattern;
use crate::protocol::words::word_enums;
use crate::suggest::plain_name;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Others refer to it by its index.
#[derive(Debug)]
pub(super) enum SchemaNode {
    /// Everything fits, or nothing.
    Fixed(bool),
    Rules(Box<SchemaRules>),
}

/// An absent rule allows everything.
#[derive(Debug, Default)]
pub(super) struct SchemaRules {
    pub(super) types: Vec<Type>,
    pub(super) properties: HashMap<String, usize>,
    /// A list of names.
    pub(super) required: Option<Box<RawValue>>,
    /// The schema of the properties that `properties` does not name.
    pub(super) additional: Option<usize>,
    pub(super) items: Option<usize>,
    /// The index of the first element to which `items` applies.
    pub(super) items_from: usize,
    /// A list of values.
    pub(super) options: Option<Box<RawValue>>,
    pub(super) constant: Option<Box<RawValue>>,
    pub(super) any_of: Vec<usize>,
    pub(super) reference: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
    pub(super) bounds: Vec<(Bound, f64)>,
}

word_enums! {
    pub(super) enum Type {
        Null = "null",
        Boolean = "boolean",
        Integer = "integer",
        Number = "number",
        String = "string",
        Array = "array",
        Object = "object",
    }
    pub(super) enum Bound {
        Minimum = "minimum",
        Maximum = "maximum",
        ExclusiveMinimum = "exclusiveMinimum",
        ExclusiveMaximum = "exclusiveMaximum",
        MultipleOf = "multipleOf",
        MinLength = "minLength",
        MaxLength = "maxLength",
        MinItems = "minItems",
        MaxItems = "maxItems",
        MinProperties = "minProperties",
        MaxProperties = "maxProperties",
    }
}

impl Bound {
    fn read(self, value: Raw<'_>) -> Read<f64> {
        let number = number(value.value());
        let (fits, expected): (fn(&f64) -> bool, _) = match self {
            Bound::Minimum | Bound::Maximum | Bound::ExclusiveMinimum | Bound::ExclusiveMaximum => {
                (|_| true, "a JSON Schema, whose minimum and maximum are numbers")
            }
            Bound::MultipleOf => (|n| *n > 0.0, "a JSON Schema, whose multipleOf is a number above 0"),
            Bound::MinLength
            | Bound::MaxLength
            | Bound::MinItems
            | Bound::MaxItems
            | Bound::MinProperties
            | Bound::MaxProperties => {
                (|n| *n >= 0.0 && n.fract() == 0.0, "a JSON Schema, whose limits of lengths are integers from 0 on")
            }
        };
        number.filter(fits).ok_or(expected)
    }
}

impl SchemaNode {
    /// Whether an object fits, as far as only the type decides.
    pub(super) fn takes_object(&self) -> bool {
        let SchemaNode::Rules(rules) = self else { return matches!(self, SchemaNode::Fixed(true)) };
        rules.types == [Type::Object] || (rules.types.is_empty() && !rules.restricts_values())
    }

    pub(super) fn has_type(&self) -> bool {
        matches!(self, SchemaNode::Rules(rules) if !rules.types.is_empty())
    }

    pub(super) fn is_strict(&self) -> bool {
        let SchemaNode::Rules(rules) = self else { return matches!(self, SchemaNode::Fixed(false)) };
        let is_described = !rules.types.is_empty() || rules.restricts_values();
        let names_all = rules.required().count() == rules.properties.len()
            && rules.required().all(|name| rules.properties.contains_key(&*name));
        is_described && (!rules.types.contains(&Type::Object) || (rules.closed() && names_all))
    }

    /// The schemas that apply to the same value.
    fn same(&self) -> impl Iterator<Item = usize> {
        let rules = match self {
            SchemaNode::Rules(rules) => Some(rules),
            SchemaNode::Fixed(_) => None,
        };
        rules.into_iter().flat_map(|rules| rules.any_of.iter().copied().chain(rules.reference))
    }
}

impl SchemaRules {
    pub(super) fn required(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.required.iter().flat_map(|list| elements_of(list)).filter_map(Raw::str)
    }

    /// Whether it names the values that fit, or other schemas for the same value.
    fn restricts_values(&self) -> bool {
        self.options.is_some() || self.constant.is_some() || !self.any_of.is_empty() || self.reference.is_some()
    }

    fn closed(&self) -> bool {
        self.additional == Some(NOTHING)
    }
}

pub(super) fn elements_of(list: &RawValue) -> impl Iterator<Item = Raw<'_>> {
    Raw::of(list).and_then(Raw::elements).into_iter().flatten()
}

/// The index of the schema that nothing fits. The whole schema has index 0.
const NOTHING: usize = 1;

/// Error: the rule that the schema breaks, as the rest of "must be …".
type Read<T> = Result<T, &'static str>;

const SCHEMAS: usize = 10_000;
/// The maximum number of ignored keywords that are named.
const UNCHECKED: usize = 20;

/// Keeps a list of what is left to read, because a chain of references may be long.
pub(super) struct Reader<'a> {
    root: Raw<'a>,
    /// The index of each known schema, by its position.
    known: HashMap<usize, usize>,
    /// The number of schemas, each counted as often as something refers to it.
    count: usize,
    left: Vec<(usize, Raw<'a>)>,
    nodes: Vec<SchemaNode>,
    unchecked: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    /// Reads the nodes of a schema, and the names of the keywords that are not checked.
    pub(super) fn read(root: Raw<'a>) -> Read<(Vec<SchemaNode>, Vec<String>)> {
        let mut reader = Reader {
            root,
            known: HashMap::new(),
            count: 0,
            left: Vec::new(),
            nodes: Vec::new(),
            unchecked: BTreeSet::new(),
        };
        reader.index(root)?;
        reader.nodes.push(SchemaNode::Fixed(false));
        while let Some((index, value)) = reader.left.pop() {
            reader.nodes[index] = reader.node(value)?;
        }
        if is_endless(&reader.nodes) {
            return Err("a JSON Schema, in which no schema refers to itself for the same value");
        }
        Ok((reader.nodes, reader.unchecked.into_iter().collect()))
    }

    /// The index of a schema, which is read later.
    fn index(&mut self, value: Raw<'a>) -> Read<usize> {
        self.count += 1;
        if self.count > SCHEMAS {
            return Err("a JSON Schema of at most 10000 schemas, references included");
        }
        if value.get() == "false" {
            return Ok(NOTHING);
        }
        let next = self.nodes.len();
        let index = *self.known.entry(value.at()).or_insert(next);
        if index == next {
            self.nodes.push(SchemaNode::Fixed(true));
            self.left.push((index, value));
        }
        Ok(index)
    }

    fn node(&mut self, value: Raw<'a>) -> Read<SchemaNode> {
        match (value.get(), value.fields()) {
            ("true" | "{}", _) => Ok(SchemaNode::Fixed(true)),
            (_, Some(keywords)) => Ok(SchemaNode::Rules(Box::new(self.rules(keywords)?))),
            (_, None) => Err("a JSON Schema, in which each schema is an object or a boolean"),
        }
    }

    fn rules(&mut self, keywords: impl Iterator<Item = (Cow<'a, str>, Raw<'a>)>) -> Read<SchemaRules> {
        let (mut rules, mut is_by_pattern) = (SchemaRules::default(), false);
        for (keyword, value) in keywords {
            is_by_pattern |= keyword == "patternProperties";
            self.keyword(&keyword, value, &mut rules)?;
        }
        // It applies to the properties that no pattern names.
        if is_by_pattern && rules.additional.take().is_some() {
            self.ignore("additionalProperties");
        }
        Ok(rules)
    }

    fn keyword(&mut self, keyword: &str, value: Raw<'a>, rules: &mut SchemaRules) -> Read<()> {
        match keyword {
            "type" => rules.types = types(value).ok_or("a JSON Schema whose `type` names JSON types")?,
            "properties" => {
                let named = value.fields().ok_or("a JSON Schema, whose properties are an object of schemas")?;
                let indexed = named.map(|(name, schema)| Ok((name.into_owned(), self.index(schema)?)));
                rules.properties = indexed.collect::<Read<_>>()?;
            }
            "required" => {
                let is_list = value.elements().is_some_and(|mut names| names.all(Raw::is_string));
                rules.required = is_list.then(|| value.value().to_owned());
                is_list.then_some(()).ok_or("a JSON Schema, whose required is a list of names")?;
            }
            "additionalProperties" => rules.additional = Some(self.index(value)?),
            "items" => rules.items = Some(self.index(value)?),
            // It applies to the first elements, and `items` to the others.
            "prefixItems" => {
                rules.items_from = value.elements().map_or(0, Iterator::count);
                self.ignore(keyword);
            }
            "enum" => {
                value.elements().ok_or("a JSON Schema, whose enum is a list of values")?;
                rules.options = Some(value.value().to_owned());
            }
            "const" => rules.constant = Some(value.value().to_owned()),
            "anyOf" => {
                let schemas = value.elements().into_iter().flatten().map(|schema| self.index(schema));
                rules.any_of = schemas.collect::<Read<_>>()?;
                (!rules.any_of.is_empty()).then_some(()).ok_or("a JSON Schema, whose anyOf is a list of schemas")?;
            }
            "$ref" => rules.reference = self.reference(value)?,
            "$defs" | "definitions" => {
                let named = value.fields().ok_or("a JSON Schema, whose $defs are an object of schemas")?;
                for (_, schema) in named {
                    self.index(schema)?;
                }
            }
            "pattern" => {
                let text = value.str().ok_or("a JSON Schema, whose pattern is a string")?;
                rules.pattern = Pattern::new(&text);
                if rules.pattern.is_none() {
                    self.ignore(keyword);
                }
            }
            "format" => {
                value.str().ok_or("a JSON Schema, whose format is a string")?;
                rules.format = serde_json::from_str(value.get()).ok();
                if rules.format.is_none() {
                    self.ignore(keyword);
                }
            }
            // They describe, and permit everything.
            "$schema" | "$id" | "$anchor" | "$comment" | "$vocabulary" | "title" | "description" | "default"
            | "examples" | "deprecated" | "readOnly" | "writeOnly" | "contentEncoding" | "contentMediaType" => {}
            _ => match Bound::from_word(keyword) {
                Some(bound) => rules.bounds.push((bound, bound.read(value)?)),
                None => self.ignore(keyword),
            },
        }
        Ok(())
    }

    /// `None`: it is in another document, or named by an anchor.
    fn reference(&mut self, value: Raw<'a>) -> Read<Option<usize>> {
        let text = value.str().ok_or("a JSON Schema, whose $ref is a string")?;
        let Some(pointer) = text.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
        else {
            self.ignore("$ref");
            return Ok(None);
        };
        let target = unescaped(pointer).and_then(|pointer| pointed(self.root, &pointer));
        let target = target.ok_or("a JSON Schema, whose $ref names a schema in it, such as #/$defs/item")?;
        self.index(target).map(Some)
    }

    fn ignore(&mut self, keyword: &str) {
        if self.unchecked.len() < UNCHECKED {
            let plain = plain_name(keyword.trim_start_matches('$')).is_some();
            self.unchecked.insert(if plain { keyword.to_owned() } else { "?".to_owned() });
        }
    }
}

/// Decodes `%20` and the like in a pointer.
fn unescaped(pointer: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = if *first == b'%' { more.split_at_checked(2) } else { None };
        let (byte, left) = match escaped {
            Some((digits, left)) => (u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, left),
            None => (*first, more),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8(bytes).ok()
}

fn pointed<'a>(root: Raw<'a>, pointer: &str) -> Option<Raw<'a>> {
    pointer.split('/').skip(1).try_fold(root, |value, step| {
        let name = step.replace("~1", "/").replace("~0", "~");
        match value.elements() {
            Some(mut elements) => elements.nth(name.parse().ok()?),
            None => value.object()?.raw(&name),
        }
    })
}

fn types(value: Raw<'_>) -> Option<Vec<Type>> {
    let one = |value: Raw<'_>| Type::from_word(&value.str()?);
    match value.elements() {
        None => one(value).map(|kind| vec![kind]),
        Some(all) => all.map(one).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()),
    }
}

/// Whether a schema applies itself to the same value, which would never end.
fn is_endless(nodes: &[SchemaNode]) -> bool {
    let mut users = vec![0_usize; nodes.len()];
    nodes.iter().flat_map(SchemaNode::same).for_each(|used| users[used] += 1);
    let mut unused: Vec<usize> = (0..nodes.len()).filter(|index| users[*index] == 0).collect();
    let mut ended = 0;
    while let Some(index) = unused.pop() {
        ended += 1;
        for used in nodes[index].same() {
            users[used] -= 1;
            if users[used] == 0 {
                unused.push(used);
            }
        }
    }
    ended < nodes.len()
}

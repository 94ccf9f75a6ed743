//! The JSON Schema of a structured result (draft 2020-12), read once and checked for every result.
//!
//! It covers the keywords that providers of models support themselves. [`OutputSchema::unchecked`] names every other one.
//! A check takes a bounded number of steps, whatever the schema is.

mod check;
mod format;
mod nodes;

use self::nodes::{Reader, SchemaNode};
use super::declare::objects;
use super::form::{Form, HasForm};
use super::limits::RESULT_BYTES;
use super::parts::{Parts, Role, Visit};
use super::text::{Json, Text, is_hard_to_read};
use crate::json::{Index, map_strings};
use serde_json::value::RawValue;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct OutputSchema {
    raw: Box<RawValue>,
    /// The schema and the schemas inside it. The first is the whole.
    nodes: Arc<[SchemaNode]>,
    unchecked: Arc<[String]>,
}

objects! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Mismatch {
        /// The place in the result, as a JSON pointer. Empty: the whole result.
        pub path: Text as inherited,
        /// The rule that the value breaks, with the keyword.
        pub text: Text as inherited,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatches(pub Vec<Mismatch>);

impl Parts for Mismatches {
    fn visit(&mut self, role: Role, visit: Visit<'_>) {
        self.0.visit(role, visit);
    }
}

impl HasForm for OutputSchema {
    const FORM: Form = Form::Schema;
}

impl Mismatch {
    pub fn of_whole(text: impl Into<Text>) -> Mismatch {
        Mismatch { path: Text::default(), text: text.into() }
    }

    /// For the model.
    pub fn line(&self) -> String {
        let place = Some(self.path.unredacted()).filter(|path| !path.is_empty()).unwrap_or("the result");
        format!("{place}: {}", self.text.unredacted())
    }
}

impl OutputSchema {
    /// Error: the rest of "must be …".
    pub fn read(raw: &RawValue) -> Result<OutputSchema, &'static str> {
        const EXPECTED: &str = "an object that is a JSON Schema";
        if !raw.get().starts_with('{') || is_hard_to_read(raw.get()) {
            return Err(EXPECTED);
        }
        // On one line, because agents read lines.
        let line = map_strings(raw.get(), &mut str::to_owned);
        let mut index = Index::default();
        let (nodes, unchecked) = Reader::read(index.value(&line).ok_or(EXPECTED)?)?;
        let raw = RawValue::from_string(line).map_err(|_| EXPECTED)?;
        Ok(OutputSchema { raw, nodes: nodes.into(), unchecked: unchecked.into() })
    }

    /// On one line.
    pub fn get(&self) -> &str {
        self.raw.get()
    }

    /// The schema of the results that are objects, with its properties in their order.
    pub fn of_objects(&self) -> Box<RawValue> {
        let typed = self.nodes.first().is_some_and(SchemaNode::has_type);
        let rest = self.get().trim_start().strip_prefix('{').filter(|_| !typed);
        let Some(rest) = rest else { return self.raw.clone() };
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        RawValue::from_string(format!("{{\"type\":\"object\"{comma}{rest}")).unwrap_or_else(|_| self.raw.clone())
    }

    pub fn unchecked(&self) -> &[String] {
        &self.unchecked
    }

    /// Whether a result may be an object, as the input of a tool must be.
    pub fn takes_object(&self) -> bool {
        self.nodes.first().is_some_and(SchemaNode::takes_object)
    }

    /// Whether providers accept it as the format of an answer: each object names and requires all its properties.
    pub fn is_strict(&self) -> bool {
        self.takes_object() && self.unchecked.is_empty() && self.nodes.iter().all(SchemaNode::is_strict)
    }

    /// Returns at most [`super::limits::VIOLATIONS`]. Empty: it fits.
    pub fn check(&self, result: &Json) -> Vec<Mismatch> {
        let result = result.unredacted();
        if result.len() > RESULT_BYTES {
            return vec![Mismatch::of_whole(format!("is longer than {} MiB", RESULT_BYTES >> 20))];
        }
        let line = map_strings(result, &mut str::to_owned);
        let mut index = Index::default();
        // The frame shows null for a value that is hard to read.
        let value = index.value(&line).filter(|_| !is_hard_to_read(result));
        value.map_or_else(Vec::new, |value| check::violations(&self.nodes, value))
    }
}

#[cfg(test)]
mod tests;

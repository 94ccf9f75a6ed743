//! Checks a value against a schema.

use super::Mismatch;
use super::nodes::{Bound, SchemaNode, SchemaRules, Type};
use crate::protocol::limits::VIOLATIONS;
use serde_json::{Number, Value};

/// The maximum number of steps of a check: a tenth of a second of work.
const STEPS: u64 = 4 << 20;
/// The deepest chain of schemas that apply to a value and to the values around it.
const DEPTH: usize = 1000;

/// The violations of the schema with the index 0, at most [`VIOLATIONS`].
pub(super) fn violations(nodes: &[SchemaNode], value: &Value) -> Vec<Mismatch> {
    let mut check =
        Check { nodes, path: String::new(), depth: 0, steps: STEPS, silent: false, given_up: false, found: Vec::new() };
    check.fits(0, value);
    if check.given_up {
        // What was found so far may be wrong.
        check.found.clear();
        check.found.push(Mismatch::of_whole("takes too many steps to check: use a simpler schema"));
    }
    check.found.truncate(VIOLATIONS);
    check.found
}

struct Check<'a> {
    nodes: &'a [SchemaNode],
    /// The JSON pointer of the current value.
    path: String,
    depth: usize,
    /// The number of steps that are left.
    steps: u64,
    /// Whether violations only decide, and are not reported.
    silent: bool,
    /// Whether the check was too long.
    given_up: bool,
    found: Vec<Mismatch>,
}

impl Check<'_> {
    /// Spends steps. Returns whether there were as many.
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps as u64);
        self.given_up |= left.is_none();
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether the search for further violations is over.
    fn is_done(&self, fits: bool) -> bool {
        self.given_up || self.found.len() >= VIOLATIONS || (self.silent && !fits)
    }

    /// Reports a violation by the current value.
    fn wrong(&mut self, text: impl FnOnce() -> String) -> bool {
        if !self.silent && self.found.len() < VIOLATIONS {
            self.found.push(Mismatch { path: self.path.clone().into(), text: text().into() });
        }
        false
    }

    /// Checks a value inside the current one.
    fn inside(&mut self, key: &str, node: usize, value: &Value) -> bool {
        let length = self.path.len();
        self.path.push('/');
        for c in key.chars() {
            match c {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                _ => self.path.push(c),
            }
        }
        let fits = self.fits(node, value);
        self.path.truncate(length);
        fits
    }

    fn fits(&mut self, node: usize, value: &Value) -> bool {
        let nodes = self.nodes;
        if self.depth >= DEPTH || !self.spend(1) {
            self.given_up = true;
            return false;
        }
        let Some(node) = nodes.get(node) else { return true };
        self.depth += 1;
        let fits = match node {
            SchemaNode::Fixed(true) => true,
            SchemaNode::Fixed(false) => self.wrong(|| "is not allowed here".into()),
            SchemaNode::Rules(rules) => self.keeps(rules, value),
        };
        self.depth -= 1;
        fits
    }

    fn keeps(&mut self, rules: &SchemaRules, value: &Value) -> bool {
        if !rules.types.is_empty() && !rules.types.iter().any(|kind| is_of(*kind, value)) {
            let words: Vec<&str> = rules.types.iter().map(|kind| kind.word()).collect();
            return self.wrong(|| format!("must be of the type {} (type)", words.join(" or ")));
        }
        let mut fits = self.is_one_of(rules, value) && self.is_bounded(rules, value);
        fits &= match value {
            Value::Object(fields) => self.has_properties(rules, fields),
            Value::Array(elements) => self.has_items(rules, elements),
            Value::String(text) => self.is_text(rules, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if let Some(reference) = rules.reference.filter(|_| !self.is_done(fits)) {
            fits &= self.fits(reference, value);
        }
        if !rules.any_of.is_empty() && !self.is_done(fits) {
            fits &= self.fits_any(&rules.any_of, value);
        }
        fits
    }

    fn fits_any(&mut self, schemas: &[usize], value: &Value) -> bool {
        let silent = std::mem::replace(&mut self.silent, true);
        let fits = schemas.iter().any(|schema| self.fits(*schema, value));
        self.silent = silent;
        fits || self.wrong(|| "fits none of the schemas in anyOf".into())
    }

    fn is_one_of(&mut self, rules: &SchemaRules, value: &Value) -> bool {
        if let Some(options) = &rules.options {
            let is_one = options.iter().any(|option| self.equal(option, value));
            if !is_one {
                return self.wrong(|| "must be one of the listed values (enum)".into());
            }
        }
        if rules.constant.as_ref().is_some_and(|constant| !self.equal(constant, value)) {
            return self.wrong(|| "must be the given value (const)".into());
        }
        true
    }

    /// Whether two values are equal. 1 and 1.0 are.
    fn equal(&mut self, one: &Value, other: &Value) -> bool {
        if !self.spend(1) {
            return false;
        }
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => same_number(one, other),
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.equal(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                let same = |(name, one)| other.get(name).is_some_and(|other| self.equal(one, other));
                one.len() == other.len() && one.iter().all(same)
            }
            (Value::String(one), Value::String(other)) => one == other,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Null, Value::Null) => true,
            (
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
                _,
            ) => false,
        }
    }

    fn has_properties(&mut self, rules: &SchemaRules, fields: &serde_json::Map<String, Value>) -> bool {
        let mut fits = true;
        if !self.spend(rules.required.len()) {
            return false;
        }
        for name in rules.required.iter().filter(|name| !fields.contains_key(*name)) {
            fits = self.wrong(|| format!("lacks the property {name:?} (required)"));
            if self.is_done(fits) {
                return fits;
            }
        }
        for (name, value) in fields {
            let named = rules.properties.get(name);
            let fitting = match (named, rules.additional) {
                (None, Some(rest)) if matches!(self.nodes.get(rest), Some(SchemaNode::Fixed(false))) => {
                    self.wrong(|| format!("has the unknown property {name:?} (additionalProperties)"))
                }
                (Some(&schema), _) | (None, Some(schema)) => self.inside(name, schema, value),
                (None, None) => true,
            };
            fits &= fitting;
            if self.is_done(fits) {
                return fits;
            }
        }
        fits
    }

    fn has_items(&mut self, rules: &SchemaRules, elements: &[Value]) -> bool {
        let Some(items) = rules.items else { return true };
        let mut fits = true;
        for (index, element) in elements.iter().enumerate().skip(rules.items_from) {
            fits &= self.inside(&index.to_string(), items, element);
            if self.is_done(fits) {
                break;
            }
        }
        fits
    }

    fn is_text(&mut self, rules: &SchemaRules, text: &str) -> bool {
        if rules.pattern.as_ref().is_some_and(|pattern| !pattern.allows(text)) {
            return self.wrong(|| "does not match the regular expression (pattern)".into());
        }
        match rules.format.filter(|format| !format.fits(text)) {
            Some(format) => self.wrong(|| format!("must be {} (format)", format.words())),
            None => true,
        }
    }

    fn is_bounded(&mut self, rules: &SchemaRules, value: &Value) -> bool {
        let mut fits = true;
        for (bound, limit) in &rules.bounds {
            if !bound.holds(*limit, value) {
                fits = self.wrong(|| format!("must {} {limit} ({})", bound.words(), bound.word()));
            }
        }
        fits
    }
}

impl Bound {
    /// Whether a value keeps the bound. A bound for another type holds.
    fn holds(self, limit: f64, value: &Value) -> bool {
        let size = match (self, value) {
            (
                Bound::Minimum | Bound::Maximum | Bound::ExclusiveMinimum | Bound::ExclusiveMaximum | Bound::MultipleOf,
                Value::Number(number),
            ) => number.as_f64(),
            (Bound::MinLength | Bound::MaxLength, Value::String(text)) => Some(text.chars().count() as f64),
            (Bound::MinItems | Bound::MaxItems, Value::Array(elements)) => Some(elements.len() as f64),
            (Bound::MinProperties | Bound::MaxProperties, Value::Object(fields)) => Some(fields.len() as f64),
            _ => None,
        };
        let Some(size) = size else { return true };
        match self {
            Bound::Minimum | Bound::MinLength | Bound::MinItems | Bound::MinProperties => size >= limit,
            Bound::Maximum | Bound::MaxLength | Bound::MaxItems | Bound::MaxProperties => size <= limit,
            Bound::ExclusiveMinimum => size > limit,
            Bound::ExclusiveMaximum => size < limit,
            Bound::MultipleOf => {
                // 0.3 is a multiple of 0.1, although the quotient of the doubles is not whole.
                let count = size / limit;
                (count - count.round()).abs() <= count.abs().max(1.0) * 1e-12
            }
        }
    }

    /// The rule, as a part of "must … LIMIT".
    fn words(self) -> &'static str {
        match self {
            Bound::Minimum => "be at least",
            Bound::Maximum => "be at most",
            Bound::ExclusiveMinimum => "be greater than",
            Bound::ExclusiveMaximum => "be less than",
            Bound::MultipleOf => "be a multiple of",
            Bound::MinLength => "have a length of at least",
            Bound::MaxLength => "have a length of at most",
            Bound::MinItems => "have a number of elements of at least",
            Bound::MaxItems => "have a number of elements of at most",
            Bound::MinProperties => "have a number of properties of at least",
            Bound::MaxProperties => "have a number of properties of at most",
        }
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
}

fn is_of(kind: Type, value: &Value) -> bool {
    match (kind, value) {
        (Type::Null, Value::Null)
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_))
        | (Type::String, Value::String(_))
        | (Type::Array, Value::Array(_))
        | (Type::Object, Value::Object(_)) => true,
        // 1.0 is an integer.
        (Type::Integer, Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

//! Checks a value against a schema. It keeps a list of what is left to check, because a chain of schemas may be long and
//! the stack small.

use super::Mismatch;
use super::nodes::{Bound, SchemaNode, SchemaRules, Type, elements_of};
use crate::json::{Elements, ObjectFields, Raw};
use crate::protocol::limits::VIOLATIONS;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The maximum number of steps of a check: a tenth of a second of work.
const STEPS: u64 = 4 << 20;
/// The number of bytes whose comparison is a step.
const STEP_BYTES: usize = 16;
/// The maximum number of jobs that are left at the same time.
const JOBS: usize = 1000;

/// The violations of the schema with the index 0, at most [`VIOLATIONS`].
pub(super) fn violations(nodes: &[SchemaNode], value: Raw<'_>) -> Vec<Mismatch> {
    let mut check = Check {
        nodes,
        path: String::new(),
        left: Vec::new(),
        trying: Vec::new(),
        steps: STEPS,
        given_up: false,
        found: Vec::new(),
    };
    check.push(Job::Schema(0, value));
    while let Some((job, path)) = check.left.pop().filter(|_| !check.given_up && check.found.len() < VIOLATIONS) {
        check.path.truncate(path);
        check.work_on(job);
    }
    if check.given_up {
        // The violations found so far may be wrong.
        check.found.clear();
        check.found.push(Mismatch::of_whole("takes too many steps to check: use a simpler schema"));
    }
    check.found
}

enum Job<'a> {
    /// Apply the schema with this index to a value.
    Schema(usize, Raw<'a>),
    /// Apply the rules for properties to the fields that are left.
    Fields(&'a SchemaRules, ObjectFields<'a>),
    /// Apply a schema to the elements that are left. The number is the index of the first of them.
    Elements(usize, usize, Elements<'a>),
    /// Apply the first of these schemas that fits.
    AnyOf(&'a [usize], Raw<'a>),
    /// All jobs after this one try an alternative. These are left if it does not fit.
    Trying(&'a [usize], Raw<'a>),
}

struct Check<'a> {
    nodes: &'a [SchemaNode],
    /// The JSON pointer of the current value.
    path: String,
    /// The jobs that are left, the next one last, each with the length of its path.
    left: Vec<(Job<'a>, usize)>,
    /// The positions of [`Job::Trying`]. While there are any, a violation only ends the attempt.
    trying: Vec<usize>,
    steps: u64,
    given_up: bool,
    found: Vec<Mismatch>,
}

impl<'a> Check<'a> {
    /// Returns whether there were as many.
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps as u64);
        self.given_up |= left.is_none();
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    fn push(&mut self, job: Job<'a>) {
        self.given_up |= self.left.len() >= JOBS;
        self.left.push((job, self.path.len()));
    }

    fn work_on(&mut self, job: Job<'a>) {
        match job {
            Job::Schema(node, value) => self.apply(node, value),
            Job::Fields(rules, mut fields) => {
                if let Some((name, value)) = fields.next() {
                    self.push(Job::Fields(rules, fields));
                    self.field(rules, &name, value);
                }
            }
            Job::Elements(items, index, mut elements) => {
                if let Some(element) = elements.next() {
                    self.push(Job::Elements(items, index + 1, elements));
                    self.inside(&index.to_string(), items, element);
                }
            }
            Job::AnyOf(schemas, value) => {
                self.trying.push(self.left.len());
                self.push(Job::Trying(schemas, value));
                self.next_alternative();
            }
            // The alternative fits.
            Job::Trying(..) => drop(self.trying.pop()),
        }
    }

    /// Ends the attempt, and tries the next alternative of the innermost anyOf that has one. `false`: there is none.
    fn next_alternative(&mut self) -> bool {
        while let Some(at) = self.trying.last() {
            self.left.truncate(at + 1);
            if let Some((Job::Trying(schemas, value), path)) = self.left.last_mut() {
                self.path.truncate(*path);
                if let Some((next, rest)) = schemas.split_first() {
                    let job = Job::Schema(*next, *value);
                    *schemas = rest;
                    self.push(job);
                    return true;
                }
            }
            self.left.pop();
            self.trying.pop();
        }
        false
    }

    /// Returns whether the check of the value goes on.
    fn wrong(&mut self, text: impl FnOnce() -> String) -> bool {
        let is_attempt = !self.trying.is_empty();
        if is_attempt && self.next_alternative() {
            return false;
        }
        let text = if is_attempt { "fits none of the schemas in anyOf".to_owned() } else { text() };
        self.found.push(Mismatch { path: self.path.clone().into(), text: text.into() });
        !is_attempt && self.found.len() < VIOLATIONS
    }

    fn inside(&mut self, key: &str, node: usize, value: Raw<'a>) {
        self.path.push('/');
        for c in key.chars() {
            match c {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                _ => self.path.push(c),
            }
        }
        self.push(Job::Schema(node, value));
    }

    fn apply(&mut self, node: usize, value: Raw<'a>) {
        let nodes = self.nodes;
        if !self.spend(1) {
            return;
        }
        match nodes.get(node) {
            None | Some(SchemaNode::Fixed(true)) => {}
            Some(SchemaNode::Fixed(false)) => _ = self.wrong(|| "is not allowed here".into()),
            Some(SchemaNode::Rules(rules)) => self.apply_rules(rules, value),
        }
    }

    fn apply_rules(&mut self, rules: &'a SchemaRules, value: Raw<'a>) {
        if !rules.types.is_empty() && !rules.types.iter().any(|kind| is_of(*kind, value)) {
            let words: Vec<&str> = rules.types.iter().map(|kind| kind.word()).collect();
            self.wrong(|| format!("must be of the type {} (type)", words.join(" or ")));
            return;
        }
        let goes_on = self.is_one_of(rules, value)
            && self.is_bounded(rules, value)
            && self.is_text(rules, value)
            && self.has_required(rules, value);
        if !goes_on {
            return;
        }
        // The job that is added last comes first.
        if !rules.any_of.is_empty() {
            self.push(Job::AnyOf(&rules.any_of, value));
        }
        if let Some(reference) = rules.reference {
            self.push(Job::Schema(reference, value));
        }
        if let Some(fields) = value.fields() {
            self.push(Job::Fields(rules, fields));
        }
        if let (Some(items), Some(mut elements)) = (rules.items, value.elements()) {
            if let Some(last) = rules.items_from.checked_sub(1) {
                elements.nth(last);
            }
            self.push(Job::Elements(items, rules.items_from, elements));
        }
    }

    fn is_one_of(&mut self, rules: &SchemaRules, value: Raw<'_>) -> bool {
        if let Some(options) = &rules.options {
            self.spend(options.get().len() / STEP_BYTES);
            if !elements_of(options).any(|option| self.equal(option, value)) {
                return self.wrong(|| "must be one of the listed values (enum)".into());
            }
        }
        let constant = rules.constant.as_ref().and_then(|constant| Raw::of(constant));
        if constant.is_some_and(|constant| !self.equal(constant, value)) {
            return self.wrong(|| "must be the given value (const)".into());
        }
        true
    }

    /// 1 and 1.0 are equal.
    fn equal(&mut self, one: Raw<'_>, other: Raw<'_>) -> bool {
        let (a, b, kind) = (one.get(), other.get(), type_of(one));
        if !self.spend(1 + a.len().min(b.len()) / STEP_BYTES) || kind != type_of(other) {
            return false;
        }
        match kind {
            Type::Null => true,
            Type::Boolean => a == b,
            Type::Integer | Type::Number => same_number(a, b),
            Type::String => one.str() == other.str(),
            Type::Array => {
                let (mut all, mut others) =
                    (one.elements().into_iter().flatten(), other.elements().into_iter().flatten());
                all.by_ref().all(|one| others.next().is_some_and(|other| self.equal(one, other)))
                    && others.next().is_none()
            }
            Type::Object => {
                let (all, others) = (fields_of(one), fields_of(other));
                let same = |(name, one): (_, &Raw<'_>)| others.get(name).is_some_and(|other| self.equal(*one, *other));
                all.len() == others.len() && all.iter().all(same)
            }
        }
    }

    fn has_required(&mut self, rules: &SchemaRules, value: Raw<'_>) -> bool {
        let Some(fields) = value.fields().filter(|_| rules.required.is_some()) else { return true };
        let names: HashSet<Cow<'_, str>> = fields.map(|(name, _)| name).collect();
        for name in rules.required() {
            if !self.spend(1)
                || !names.contains(&name) && !self.wrong(|| format!("lacks the property {name:?} (required)"))
            {
                return false;
            }
        }
        true
    }

    fn field(&mut self, rules: &SchemaRules, name: &str, value: Raw<'a>) {
        self.spend(1);
        match (rules.properties.get(name), rules.additional) {
            (None, Some(rest)) if matches!(self.nodes.get(rest), Some(SchemaNode::Fixed(false))) => {
                self.wrong(|| format!("has the unknown property {name:?} (additionalProperties)"));
            }
            (Some(&schema), _) | (None, Some(schema)) => self.inside(name, schema, value),
            (None, None) => {}
        }
    }

    fn is_text(&mut self, rules: &SchemaRules, value: Raw<'_>) -> bool {
        let Some(text) = value.str() else { return true };
        if rules.pattern.as_ref().is_some_and(|pattern| !pattern.allows(&text)) {
            return self.wrong(|| "does not match the regular expression (pattern)".into());
        }
        match rules.format.filter(|format| !format.fits(&text)) {
            Some(format) => self.wrong(|| format!("must be {} (format)", format.words())),
            None => true,
        }
    }

    fn is_bounded(&mut self, rules: &SchemaRules, value: Raw<'_>) -> bool {
        rules.bounds.iter().all(|(bound, limit)| {
            bound.holds(*limit, value) || self.wrong(|| format!("must {} {limit} ({})", bound.words(), bound.word()))
        })
    }
}

impl Bound {
    /// A bound for another type holds.
    fn holds(self, limit: f64, value: Raw<'_>) -> bool {
        let size = match self {
            Bound::Minimum | Bound::Maximum | Bound::ExclusiveMinimum | Bound::ExclusiveMaximum | Bound::MultipleOf => {
                value.get().parse().ok()
            }
            Bound::MinLength | Bound::MaxLength => value.str().map(|text| text.chars().count() as f64),
            Bound::MinItems | Bound::MaxItems => value.elements().map(|elements| elements.count() as f64),
            Bound::MinProperties | Bound::MaxProperties => value.fields().map(|fields| fields.count() as f64),
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

    /// A part of "must … LIMIT".
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

/// Of fields with the same name the last counts.
fn fields_of(value: Raw<'_>) -> HashMap<Cow<'_, str>, Raw<'_>> {
    value.fields().into_iter().flatten().collect()
}

/// Whole ones are compared exactly.
fn same_number(one: &str, other: &str) -> bool {
    match (one.parse::<i128>(), other.parse::<i128>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.parse::<f64>() == other.parse::<f64>(),
    }
}

/// That of a number is [`Type::Number`].
fn type_of(value: Raw<'_>) -> Type {
    match value.get().as_bytes().first() {
        Some(b'{') => Type::Object,
        Some(b'[') => Type::Array,
        Some(b'"') => Type::String,
        Some(b't' | b'f') => Type::Boolean,
        Some(b'n') => Type::Null,
        Some(_) | None => Type::Number,
    }
}

fn is_of(kind: Type, value: Raw<'_>) -> bool {
    // 1.0 is an integer.
    let is_whole = || value.get().parse::<f64>().is_ok_and(|number| number.fract() == 0.0);
    let own = type_of(value);
    kind == own || kind == Type::Integer && own == Type::Number && is_whole()
}

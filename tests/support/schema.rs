//! The schema that `spektacular protocol schema` prints, in a validator that is not ours.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use spektacular::protocol::messages::FRAMES;
use spektacular::protocol::publish::{MessageSet, UnknownParts, schema};
use std::sync::OnceLock;

/// A compiled schema.
pub(crate) struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Validator {
    #[track_caller]
    pub(crate) fn new(scope: &MessageSet, unknown: UnknownParts) -> Validator {
        const PLACE: &str = "file:///protocol.json";
        let text = schema(scope, unknown);
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(PLACE, serde_json::from_str(&text).expect("a schema is JSON")).expect("a schema");
        let root = compiler.compile(PLACE, &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
        Validator { schemas, root }
    }

    /// Error: the places at which the value does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.root).map_err(|error| format!("{error:#}"))
    }
}

/// Checks a frame against the schema of its type and of this version, in which nothing may be unknown.
pub(crate) fn check_frame(frame: &Value) -> Result<(), String> {
    static STRICT: OnceLock<Vec<(&str, Validator)>> = OnceLock::new();
    let strict = STRICT.get_or_init(|| {
        let validator = |kind: &str| Validator::new(&MessageSet::Type(kind.into()), UnknownParts::Refused);
        FRAMES.iter().map(|frame| (frame.name, validator(frame.name))).collect()
    });
    let (_, validator) = strict.iter().find(|(kind, _)| frame["type"] == *kind).ok_or("a frame of an unknown type")?;
    validator.check(frame).map_err(|why| format!("{frame} does not fit the schema: {why}"))
}

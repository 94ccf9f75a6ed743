//! The protocol in forms for other programs and other languages: JSON Schema, TypeScript, Python, examples, and the
//! sections of the reference. Pure functions from the declarations to text.

mod catalogue;
mod outline;
mod page;
mod python;
mod schema;
mod typescript;

pub use page::{examples, section, section_names};
pub use schema::{MessageSet, UnknownParts, schema};

use super::outbound::ProtocolVersion;
use super::words::word_enums;

/// The reference of the protocol.
pub const REFERENCE: &str = include_str!("../reference.md");

word_enums! {
    /// A language with types of the messages.
    pub enum Language {
        TypeScript = "ts",
        Python = "python",
    }
}

impl Language {
    /// A client to copy into a project, which names the types of [`Language::types`].
    pub fn client(self) -> &'static str {
        match self {
            Language::TypeScript => include_str!("clients/spektacular.ts"),
            Language::Python => include_str!("clients/spektacular.py"),
        }
    }

    /// One file with a type for each message, frame and object.
    pub fn types(self) -> String {
        match self {
            Language::TypeScript => typescript::typescript(),
            Language::Python => python::python(),
        }
    }
}

/// The version of the protocol: `1.1`.
pub fn version() -> String {
    let ProtocolVersion { v, minor, .. } = ProtocolVersion::OURS;
    format!("{v}.{minor}")
}

/// The first sentences of each generated file.
fn about() -> [String; 2] {
    [
        format!("The spektacular protocol {}, from spektacular {}.", version(), ProtocolVersion::OURS.spektacular),
        "A later minor version may add frame types, kinds, fields and codes: ignore those that you do not know.".into(),
    ]
}

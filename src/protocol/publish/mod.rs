//! The protocol in forms for other programs and other languages: JSON Schema, TypeScript, Python, examples, and the
//! sections of the reference. The files are committed; `tests/suite/protocol/published` generates them from the declarations.

mod page;
mod schema;

pub use page::{section, section_names};
pub use schema::{MessageSet, UnknownParts, schema};

use super::outbound::ProtocolVersion;
use super::words::word_enums;

/// The reference of the protocol.
pub const REFERENCE: &str = include_str!("../reference.md");

/// A message for each form of its payload, and a frame for each type, each kind and each kind of question, a permission
/// too: the examples of the reference, each as one line.
pub const EXAMPLES: &str = include_str!("examples.jsonl");

word_enums! {
    /// A language with types of the messages.
    pub enum Language {
        TypeScript = "ts",
        Python = "python",
    }
}

word_enums! {
    /// A client to copy into a project.
    pub enum Client {
        TypeScript = "ts",
        Python = "python",
        PythonAsyncio = "python-asyncio",
    }
}

/// The last line before the types in the file of types for Python. The clients have the same imports.
const PYTHON_IMPORTS_END: &str = "    NotRequired = Optional\n";

impl Client {
    /// One file: the client, and the types of [`Language::types`].
    pub fn file(self) -> String {
        match self {
            Client::TypeScript => [include_str!("clients/spektacular.ts"), "\n", Language::TypeScript.types()].concat(),
            Client::Python => with_types(include_str!("clients/spektacular.py")),
            Client::PythonAsyncio => with_types(include_str!("clients/spektacular_asyncio.py")),
        }
    }
}

fn with_types(client: &str) -> String {
    let types = Language::Python.types();
    let (_, types) = types.split_once(PYTHON_IMPORTS_END).unwrap_or(("", types));
    [client, "\n", types].concat()
}

impl Language {
    /// One file with a type for each message, frame and object.
    pub fn types(self) -> &'static str {
        match self {
            Language::TypeScript => include_str!("clients/spektacular-types.ts"),
            Language::Python => include_str!("clients/spektacular_types.py"),
        }
    }
}

/// The version of the protocol: `1.1`.
pub fn version() -> String {
    let ProtocolVersion { v, minor, .. } = ProtocolVersion::OURS;
    format!("{v}.{minor}")
}

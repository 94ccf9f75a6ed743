//! run.artifact, and its short form in lists.

use super::declare::objects;
use super::text::Text;
use super::words::Action;

objects! {
    #[derive(Clone, Debug)]
    pub struct Artifact {
        /// `a_1`, `a_2`, …
        pub artifact_id: String as name,
        /// The path, relative to the working directory if it is inside, otherwise absolute.
        pub path: Text as text,
        /// The change.
        pub action: Action,
        /// Always `file`.
        pub kind: &'static str,
        /// The size in bytes. Null: unknown.
        pub size_bytes: Option<u64>,
        /// Whether something was cut.
        pub truncated: bool as known,
    }

    /// In the list of a terminal frame.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ArtifactRef {
        /// The path, as in run.artifact.
        pub path: Text as inherited,
        /// The change.
        pub action: Action,
    }
}

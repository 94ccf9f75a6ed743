//! run.artifact, and its short form in lists.

use super::text::Text;
use super::words::Action;

/// run.artifact.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// `a_1`, `a_2`, …
    pub artifact_id: String,
    /// Relative to the working directory where it is inside, else absolute.
    pub path: Text,
    /// The change.
    pub action: Action,
    /// Always `file`.
    pub kind: &'static str,
    /// The size in bytes; null if unknown.
    pub size_bytes: Option<u64>,
    /// Whether something was cut.
    pub truncated: bool,
}

/// An artifact in the list of a terminal frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRef {
    /// As in run.artifact.
    pub path: Text,
    /// As in run.artifact.
    pub action: Action,
}

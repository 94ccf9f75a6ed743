//! The sandbox of a run: what the request asks for, and what the kernel keeps.

use super::declare::objects;
use super::form::{Form, HasForm, object_forms};
use super::limits;
use super::permissions::Permissions;
use super::read::{Read, optional, paths};
use super::words::{Category, GitState, Policy, SandboxMode, SandboxSecrets};
use crate::json::Fields;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    pub mode: SandboxMode,
    /// Further paths that the agent may change, as they were given.
    pub write: Vec<String>,
    /// Further paths that the agent may read, as they were given.
    pub read: Vec<String>,
    pub secrets: SandboxSecrets,
    pub force: Force,
}

impl Default for Sandbox {
    fn default() -> Sandbox {
        Sandbox::of(SandboxMode::Off)
    }
}

/// The state of a sandbox on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Force {
    /// The machine was not asked yet, or the sandbox is off.
    #[default]
    Unknown,
    /// The agent's processes start in this domain.
    Kept(Arc<Domain>),
    /// The run goes on without the sandbox. A clause gives the reason.
    Missing(String),
}

/// The part of a sandbox that is the same for each process of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub kernel: Kernel,
    /// The agent's own files and folders, which it may read.
    pub reads: Vec<PathBuf>,
    /// The folders of the agent's state, which it may change.
    pub folders: Vec<PathBuf>,
    /// The files of the agent's state, which it may change if they exist.
    pub files: Vec<PathBuf>,
    /// Files that the agent expects and cannot make, which are made empty.
    pub made: Vec<PathBuf>,
    /// Variables that the agent needs in a sandbox, unless they are set.
    pub variables: Vec<(&'static str, PathBuf)>,
    /// The agent's settings among these, whose changes the run reports.
    pub settings: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The version of Landlock's interface.
    pub abi: u32,
    /// Whether the agent can signal its own processes alone.
    pub signals: bool,
    /// Whether Unix sockets outside the grants are out of reach.
    pub sockets: bool,
    /// Whether files can be kept unchanged where the agent may change the folder around them.
    pub files: bool,
}

impl Kernel {
    /// The protection of git's hooks and settings where the agent may change the folder around them.
    pub(crate) fn git(self) -> GitState {
        if self.files { GitState::Protected } else { GitState::Checked }
    }
}

objects! {
    #[derive(Clone, Debug)]
    pub struct SandboxInForce {
        /// The mode.
        pub mode: SandboxMode,
        /// The version of the kernel's interface (Landlock). Null: nothing is kept.
        pub abi: Option<u32>,
        /// Whether the agent can signal no process outside the sandbox.
        pub signals: Option<bool>,
        /// Whether the agent can reach no Unix socket outside the sandbox.
        pub sockets: Option<bool>,
        /// The protection of git's hooks and settings, and of the configuration that spektacular trusts.
        pub git: Option<GitState>,
        /// Further paths that the agent may change.
        pub write: Vec<String> as list,
        /// Further paths that the agent may read.
        pub read: Vec<String> as list,
        /// Whether the agent can read the secrets in HOME.
        pub secrets: SandboxSecrets,
    }
}

impl Sandbox {
    pub fn of(mode: SandboxMode) -> Sandbox {
        Sandbox { mode, write: Vec::new(), read: Vec::new(), secrets: SandboxSecrets::Hidden, force: Force::Unknown }
    }

    pub fn is_on(&self) -> bool {
        self.mode != SandboxMode::Off
    }

    /// `None`: they start without a sandbox.
    pub(crate) fn domain(&self) -> Option<&Arc<Domain>> {
        match &self.force {
            Force::Kept(domain) => Some(domain),
            Force::Unknown | Force::Missing(_) => None,
        }
    }

    /// Whether an agent that never asks keeps this policy because it can change nothing.
    pub(crate) fn keeps(&self, permissions: &Permissions) -> bool {
        let changes_nothing = self.mode == SandboxMode::ReadOnly && self.domain().is_some();
        changes_nothing
            && match permissions {
                Permissions::ReadOnly => true,
                Permissions::All(policy) => *policy == Policy::Deny,
                Permissions::ByCategory { named, .. } => {
                    named.iter().all(|(category, policy)| *policy != Policy::Deny || Category::ACTS.contains(category))
                }
            }
    }

    pub(crate) fn missing(&self) -> Option<String> {
        match &self.force {
            Force::Missing(why) => Some(format!("The agent runs without a sandbox, because {why}")),
            Force::Unknown | Force::Kept(_) => None,
        }
    }

    pub fn in_force(&self) -> SandboxInForce {
        let kernel = self.domain().map(|domain| domain.kernel);
        let mode = if kernel.is_some() { self.mode } else { SandboxMode::Off };
        SandboxInForce {
            mode,
            abi: kernel.map(|kernel| kernel.abi),
            signals: kernel.map(|kernel| kernel.signals),
            sockets: kernel.map(|kernel| kernel.sockets),
            git: kernel.map(|kernel| match mode {
                SandboxMode::ReadOnly => GitState::Protected,
                SandboxMode::Off | SandboxMode::Workspace => kernel.git(),
            }),
            write: self.write.clone(),
            read: self.read.clone(),
            secrets: self.secrets,
        }
    }

    pub(super) const REQUEST: Form = Form::Either(&[SandboxMode::FORM, Form::Object(&OBJECT)]);
}

object_forms! {
    OBJECT = "SandboxRequest" {
        /// The mode.
        mode: SandboxMode::FORM, false;
        /// Further paths that the agent may change, for the mode workspace.
        write: PATHS, true;
        /// Further paths that the agent may read.
        read: PATHS, true;
        /// Whether the agent can read the secrets in HOME. By default hidden.
        secrets: SandboxSecrets::FORM, true;
    }
}

const PATHS: Form = Form::AtMost(limits::LIST_ENTRIES, &Form::FILLED);

/// As run.started shows it: [`Sandbox::in_force`].
impl HasForm for Sandbox {
    const FORM: Form = SandboxInForce::FORM;
}

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Sandbox::of(self.mode) {
            return self.mode.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("mode", &self.mode)?;
        map.serialize_entry("write", &self.write)?;
        map.serialize_entry("read", &self.read)?;
        map.serialize_entry("secrets", &self.secrets)?;
        map.end()
    }
}

const EXPECTED: &str = "\"off\", \"read-only\" or \"workspace\", or an object with one of these as `mode`, lists of at most \
                        1024 paths as `read` and, for \"workspace\", `write`, and \"hidden\" or \"readable\" as `secrets`";

pub(super) fn sandbox(raw: &RawValue) -> Read<Sandbox> {
    let wrong = Some(EXPECTED);
    let Some(fields) = Fields::parse(raw.get()) else {
        return SandboxMode::read(raw).map(Sandbox::of).map_err(|_| wrong);
    };
    if fields.repeats_one_of(OBJECT.keys()) {
        return Err(None);
    }
    // A misspelled key would leave a path open, or a secret readable.
    if fields.iter().any(|(key, _)| !OBJECT.keys().any(|known| known == key)) {
        return Err(wrong);
    }
    let mut sandbox = Sandbox::of(optional(&fields, "mode", SandboxMode::read, EXPECTED)?.ok_or(wrong)?);
    sandbox.write = optional(&fields, "write", paths, EXPECTED)?.unwrap_or_default();
    sandbox.read = optional(&fields, "read", paths, EXPECTED)?.unwrap_or_default();
    sandbox.secrets = optional(&fields, "secrets", SandboxSecrets::read, EXPECTED)?.unwrap_or(sandbox.secrets);
    let fits = sandbox.mode != SandboxMode::ReadOnly || sandbox.write.is_empty();
    if fits { Ok(sandbox) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::{Sandbox, sandbox};
    use crate::protocol::words::{SandboxMode, SandboxSecrets};
    use serde_json::value::RawValue;

    fn read(json: &str) -> Result<Sandbox, Option<&'static str>> {
        sandbox(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn a_word_and_an_object_are_read() {
        assert_eq!(read("\"workspace\""), Ok(Sandbox::of(SandboxMode::Workspace)));
        let all = read(r#"{"mode":"workspace","write":["a"],"read":["/b"],"secrets":"readable"}"#).unwrap();
        assert_eq!((all.write, all.read), (vec!["a".to_owned()], vec!["/b".to_owned()]));
        assert_eq!(all.secrets, SandboxSecrets::Readable);
        assert_eq!(read(r#"{"mode":"off","write":null}"#), Ok(Sandbox::default()));
    }

    #[test]
    fn what_would_not_hold_is_refused() {
        for json in [
            "\"readonly\"",
            "true",
            "{}",
            r#"{"write":[]}"#,
            r#"{"mode":"workspace","reads":[]}"#,
            r#"{"mode":"read-only","write":["a"]}"#,
            r#"{"mode":"workspace","write":"a"}"#,
            r#"{"mode":"workspace","secrets":"shown"}"#,
        ] {
            assert!(read(json).is_err_and(|why| why.is_some_and(|why| why.contains("`mode`"))), "{json}");
        }
        assert_eq!(read(r#"{"mode":"off","mode":"off"}"#), Err(None));
    }

    #[test]
    fn a_sandbox_is_written_as_it_is_read() {
        for json in ["\"off\"", r#"{"mode":"workspace","write":["a"],"read":[],"secrets":"hidden"}"#] {
            assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
        }
    }
}

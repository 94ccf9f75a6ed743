//! The policy of a run's permissions, and its reader.

use super::form::{Form, HasForm, WordSet};
use super::parts::Fixed;
use super::read::Read;
use super::words::{Category, Policy};
use crate::json::{Fields, string};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// Reading, searching and thinking are allowed, everything else is denied.
    ReadOnly,
    All(Policy),
    ByCategory {
        named: BTreeMap<Category, Policy>,
        /// The entry `*`. `None`: the user is asked about the other categories.
        rest: Option<Policy>,
    },
}

impl Fixed for Permissions {}

impl HasForm for Permissions {
    const FORM: Form = Form::Either(&[
        Policy::FORM,
        Form::Word(&WordSet { name: "", words: &[READ_ONLY], grows: false }),
        Form::Policies(&Policy::FORM),
    ]);
}

impl Default for Permissions {
    fn default() -> Permissions {
        Permissions::All(Policy::Ask)
    }
}

impl Permissions {
    pub fn allow_all(&self) -> bool {
        Category::ALL.iter().all(|category| self.policy(*category) == Policy::Allow)
    }

    pub fn policy(&self, category: Category) -> Policy {
        match self {
            Permissions::ReadOnly => match category {
                Category::Read | Category::Search | Category::Think => Policy::Allow,
                Category::Edit
                | Category::Delete
                | Category::Move
                | Category::Execute
                | Category::Fetch
                | Category::Agent
                | Category::Mcp
                | Category::Mode
                | Category::Other => Policy::Deny,
            },
            Permissions::All(policy) => *policy,
            Permissions::ByCategory { named, rest } => {
                named.get(&category).or(rest.as_ref()).copied().unwrap_or(Policy::Ask)
            }
        }
    }

    /// Whether the policy leaves reading and searching to the default, which allows both in the run's directories: it
    /// names neither, and is not `deny` alone.
    fn leaves_reading(&self) -> bool {
        match self {
            Permissions::ReadOnly => false,
            Permissions::All(policy) => *policy != Policy::Deny,
            Permissions::ByCategory { named, .. } => {
                !named.contains_key(&Category::Read)
                    && !named.contains_key(&Category::Search)
                    && Category::ALL.iter().any(|category| self.policy(*category) != Policy::Deny)
            }
        }
    }

    /// The policy for an action that touches nothing outside the working directory and the further directories.
    pub fn policy_inside(&self, category: Category) -> Policy {
        let reads = matches!(category, Category::Read | Category::Search);
        if reads && self.leaves_reading() { Policy::Allow } else { self.policy(category) }
    }

    pub fn denies(&self) -> bool {
        Category::ALL.iter().any(|category| self.policy(*category) == Policy::Deny)
    }

    /// Whether reading and searching are allowed, and everything that acts is denied.
    pub fn is_read_only(&self) -> bool {
        let reads = |category: &Category| matches!(category, Category::Read | Category::Search);
        Category::ALL
            .iter()
            .filter(|category| **category != Category::Think)
            .all(|category| self.policy(*category) == if reads(category) { Policy::Allow } else { Policy::Deny })
    }

    /// `inside`: whether the action touches nothing outside the working directory and the further directories.
    pub fn strictest(&self, categories: impl Iterator<Item = Category>, inside: bool) -> Policy {
        let strictness = |policy: &Policy| match policy {
            Policy::Allow => 0,
            Policy::Ask => 1,
            Policy::Deny => 2,
        };
        let policy = |category| if inside { self.policy_inside(category) } else { self.policy(category) };
        categories.map(policy).max_by_key(strictness).unwrap_or(Policy::Ask)
    }
}

/// Formats the policy as `--permissions` accepts it.
impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permissions::ReadOnly => f.write_str(READ_ONLY),
            Permissions::All(policy) => f.write_str(policy.word()),
            Permissions::ByCategory { named, rest } => {
                for (category, policy) in named {
                    write!(f, "{}={},", category.word(), policy.word())?;
                }
                write!(f, "*={}", rest.unwrap_or(Policy::Ask).word())
            }
        }
    }
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Permissions::ReadOnly => serializer.serialize_str(READ_ONLY),
            Permissions::All(policy) => policy.serialize(serializer),
            Permissions::ByCategory { named, rest } => {
                let mut map = serializer.serialize_map(None)?;
                for (category, policy) in named {
                    map.serialize_entry(category, policy)?;
                }
                if let Some(rest) = rest {
                    map.serialize_entry("*", rest)?;
                }
                map.end()
            }
        }
    }
}

const READ_ONLY: &str = "read-only";

const POLICIES: &str = "\"ask\", \"allow\", \"deny\", \"read-only\", or an object of these by tool category: read, edit, delete, move, \
    search, execute, fetch, think, agent, mcp, mode, other, or * for the rest";

pub(super) fn permissions(raw: &RawValue) -> Read<Permissions> {
    let policy = |raw: &RawValue| Policy::read(raw).map_err(|_| Some(POLICIES));
    let Some(fields) = Fields::parse(raw.get()) else {
        if string(raw).is_some_and(|word| word == READ_ONLY) {
            return Ok(Permissions::ReadOnly);
        }
        return policy(raw).map(Permissions::All);
    };
    let mut keys = HashSet::new();
    if !fields.iter().all(|(key, _)| keys.insert(key)) {
        return Err(None);
    }
    let (mut named, mut rest) = (BTreeMap::new(), None);
    for (key, value) in fields.iter() {
        if key == "*" {
            rest = Some(policy(value)?);
        } else {
            named.insert(Category::from_word(key).ok_or(Some(POLICIES))?, policy(value)?);
        }
    }
    Ok(Permissions::ByCategory { named, rest })
}

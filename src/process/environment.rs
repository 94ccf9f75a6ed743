//! The environment of the processes that we start.

use super::tree::{MARKER, marker_value};
use super::variables::OF_GIT;
use crate::agent::Launch;
use crate::protocol::request::Settings;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Our own variables, without those that lead git to one repository.
pub(crate) fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !OF_GIT.iter().any(|git| name == git))
}

pub(crate) fn environment_over(own: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    inherited().chain(own).collect()
}

/// Later sources take precedence: our own variables (all of them but those of git's, or those that `env_allow` and the
/// fixed list admit) without those that the driver removes, the driver's variables, the request's `env`, and the
/// marker.
pub(crate) fn environment(launch: &Launch, settings: &Settings, nonce: &str) -> BTreeMap<OsString, OsString> {
    const ALWAYS: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_*", "TERM", "TMPDIR"];
    let matches = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    };
    let allowed = |name: &OsString| {
        let Some(list) = &settings.env_allow else { return true };
        let Some(name) = name.to_str() else { return false };
        ALWAYS.iter().any(|pattern| matches(pattern, name)) || list.iter().any(|pattern| matches(pattern, name))
    };
    let mut all: BTreeMap<OsString, OsString> = inherited().filter(|(name, _)| allowed(name)).collect();
    for name in &launch.env_remove {
        all.remove(&OsString::from(name));
    }
    all.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(settings.env.iter().map(|(name, value)| (name.into(), value.into())));
    all.insert(MARKER.into(), marker_value(nonce).into());
    all
}

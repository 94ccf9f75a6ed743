//! The paths that a sandbox leaves to a process, in the words of every system.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The use of a path and of everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Names of files alone.
    List,
    /// Reads, and runs programs.
    Read,
    /// Reads, runs programs, and changes everything.
    Write,
    Device,
    Connect,
    /// Cannot be renamed or removed, whatever its folder permits.
    Pinned,
    /// Cannot be changed at all, whatever its folder permits.
    Fixed,
}

impl Access {
    const ALL: [(Access, u8); 7] = [
        (Access::List, b'l'),
        (Access::Read, b'r'),
        (Access::Write, b'w'),
        (Access::Device, b'd'),
        (Access::Connect, b'c'),
        (Access::Pinned, b'p'),
        (Access::Fixed, b'f'),
    ];
}

/// Everything else is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants(pub(super) Vec<(Access, PathBuf)>);

impl Grants {
    pub(crate) fn add(&mut self, access: Access, path: impl Into<PathBuf>) {
        self.0.push((access, path.into()));
    }

    pub(crate) fn protects(&self) -> bool {
        self.0.iter().any(|(access, _)| matches!(access, Access::Pinned | Access::Fixed))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Access, &Path)> {
        self.0.iter().map(|(access, path)| (*access, path.as_path()))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (access, path) in &self.0 {
            out.extend(Access::ALL.iter().filter(|(known, _)| known == access).map(|(_, letter)| *letter));
            // A path of the system has no NUL.
            out.extend_from_slice(path.as_os_str().as_bytes());
            out.push(0);
        }
        out
    }

    /// `None`: the bytes are not complete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Grants> {
        let mut grants = Grants::default();
        let Some(bytes) = bytes.strip_suffix(&[0]) else { return bytes.is_empty().then_some(grants) };
        for one in bytes.split(|byte| *byte == 0) {
            let (letter, path) = one.split_first()?;
            let (access, _) = Access::ALL.iter().find(|(_, known)| known == letter)?;
            grants.add(*access, OsStr::from_bytes(path));
        }
        Some(grants)
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Grants};

    #[test]
    fn grants_pass_to_another_process() {
        let mut grants = Grants::default();
        assert_eq!(Grants::decode(&grants.encode()), Some(grants.clone()));
        grants.add(Access::Read, "/usr");
        grants.add(Access::Device, "/dev/null");
        let bytes = grants.encode();
        assert_eq!(Grants::decode(&bytes), Some(grants));
        assert_eq!(Grants::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Grants::decode(b"x/usr\0"), None);
    }
}

//! Paths without dots, and with all links resolved.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Without `.` and `..`. Does not look at the file system.
pub(crate) fn absolute(cwd: &Path, path: impl AsRef<Path>) -> PathBuf {
    let mut out = PathBuf::new();
    for component in cwd.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => out.push(part),
        }
    }
    out
}

/// The path with a suffix of its file's name, before the extension.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The path with all links resolved. The part that does not exist yet is kept as it is. `None`: the path leads nowhere,
/// or some programs would take it for another one: a URL, or a path in a home.
pub(crate) fn real(cwd: &Path, path: &Path) -> Option<PathBuf> {
    let is_plain = |text: &str| !text.starts_with('~') && !text.contains("://");
    let path = path.to_str().is_none_or(is_plain).then(|| cwd.join(path))?;
    let mut rest: Vec<&OsStr> = Vec::new();
    let mut at = path.as_path();
    loop {
        match at.canonicalize() {
            Ok(found) => return Some(rest.iter().rev().fold(found, |path, name| path.join(name))),
            // A write through a dangling link would create its target.
            Err(_) if at.symlink_metadata().is_ok() => return None,
            Err(_) => match at.components().next_back()? {
                Component::Normal(name) => rest.push(name),
                Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            },
        }
        at = at.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use super::absolute;
    use std::path::Path;

    #[test]
    fn an_absolute_path_has_no_dots() {
        for (path, wanted) in [("/a/b/../c", "/a/c"), ("/a/./b/", "/a/b"), ("/../a", "/a"), ("../b", "/b")] {
            assert_eq!(absolute(Path::new("/w"), path), Path::new(wanted));
        }
    }
}

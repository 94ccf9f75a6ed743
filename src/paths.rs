//! Paths as texts: no function here looks at the file system.

use std::path::{Component, Path, PathBuf};

/// An absolute path without `.` and `..`.
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

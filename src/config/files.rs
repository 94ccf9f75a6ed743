//! The places of configuration files, and how they are read and written.

use crate::io::files::{OpenFolder, open_regular};
use crate::json::bounded;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::workflow::HOME;
use rustix::fs::RawMode;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the project's file, and of the user's.
const FILE: &str = "config.json";
/// The maximum size of the list of trusted files, which holds their texts, in bytes.
pub(super) const TRUSTED_BYTES: usize = 4 << 20;
/// The maximum wait for another process that changes a file in the same folder.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The user's file, which may not exist; `None` without a home directory.
    pub user: Option<PathBuf>,
    /// The list of trusted files, which may not exist.
    pub trusted: Option<PathBuf>,
    /// The project's file, or the place for one.
    pub project: Option<PathBuf>,
    /// The directory of the project, which holds `.spektacular`.
    pub folder: PathBuf,
    /// The file of an older version, which is not read.
    pub old: Option<PathBuf>,
}

impl Places {
    pub fn of_process() -> Places {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let config = config.map(|dir| dir.join("spektacular"));
        let user = config.as_ref().map(|dir| dir.join(FILE));
        let trusted = config.map(|dir| dir.join("trusted.json"));
        match std::env::current_dir() {
            Ok(cwd) => Places { user, trusted, ..Places::around(&cwd) },
            Err(_) => Places { user, trusted, ..Places::default() },
        }
    }

    /// The project around a directory: the nearest directory with a file, up to the root of the git work tree. Outside
    /// a git work tree, only the directory itself counts.
    fn around(cwd: &Path) -> Places {
        let root = cwd.ancestors().find(|dir| is_work_tree(dir));
        let within = |dir: &&Path| root.map_or(*dir == cwd, |root| dir.starts_with(root));
        let file = |dir: &Path, name: &str| Some(dir.join(HOME).join(name)).filter(|file| file.exists());
        let mut old = None;
        for dir in cwd.ancestors().take_while(within) {
            let found = file(dir, FILE);
            if found.is_some() {
                return Places { project: found, folder: dir.into(), old, ..Places::default() };
            }
            old = old.or_else(|| file(dir, "config.yaml"));
        }
        let folder = root.unwrap_or(cwd).to_owned();
        Places { project: Some(folder.join(HOME).join(FILE)), folder, old, ..Places::default() }
    }
}

/// As git sees it: `.git` is a file with a path, or a directory with a repository.
pub fn is_work_tree(dir: &Path) -> bool {
    dir.join(".git").is_file() || dir.join(".git/HEAD").exists()
}

/// `why` follows the file's name.
fn unusable(path: &Path, why: &str) -> Failure {
    Failure::new(Code::InvalidConfig, format!("{}{why}.", path.display()))
}

/// Whether a project's file or its directory is a link, so that the file may belong to another project or to the user.
pub(super) fn is_linked(path: &Path) -> bool {
    let link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    link(path) || path.parent().is_some_and(link)
}

/// Only a link can lead out: a stranger's project must not choose which file of the user's is read.
pub(super) fn leads_out(path: &Path, project: &Path) -> bool {
    let inside = || Some(path.canonicalize().ok()?.starts_with(project.canonicalize().ok()?));
    is_linked(path) && inside() == Some(false)
}

pub(super) fn not_linked(path: &Path) -> Result<(), Failure> {
    if is_linked(path) { Err(unusable(path, " is a symbolic link: replace it with a regular file")) } else { Ok(()) }
}

/// The file holds one JSON object. An empty file counts as an empty object. `None`: the file is missing.
pub(super) fn read(path: &Path, most: usize) -> Result<Option<String>, Failure> {
    let meta = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        meta => meta.map_err(|_| unusable(path, " cannot be read: check its permissions"))?,
    };
    if !meta.is_file() || meta.len() > most as u64 {
        return Err(unusable(path, &format!(" must be a file of at most {} MiB", most >> 20)));
    }
    let mut bytes = Vec::new();
    let done = open_regular(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
    done.map_err(|_| unusable(path, " cannot be read: check its permissions"))?;
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Some("{}\n".into()));
    }
    parse(bytes).map(Some).map_err(|why| unusable(path, &why))
}

/// The beginnings of the parser's messages, and the same in the words of an editor of the file.
const FLAWS: &[(&str, &str)] = &[
    ("EOF", "unexpected end of the JSON"),
    ("trailing comma", "invalid JSON: remove the comma before this bracket"),
    ("expected `,` or", "invalid JSON: a comma or a closing bracket is missing"),
    ("expected `:`", "invalid JSON: a colon is missing"),
    ("key must be a string", "invalid JSON: a key must be in double quotes"),
    ("trailing characters", "invalid JSON: remove the text after the end of the value"),
];

/// The fault in a JSON text. The parser's own message could quote the text.
pub fn flaw(error: &serde_json::Error) -> &'static str {
    let told = error.to_string();
    FLAWS.iter().find(|(begin, _)| told.starts_with(begin)).map_or("invalid JSON", |(_, flaw)| flaw)
}

/// Checks that a text is one JSON object. Error: the fault, to follow the name of the file.
fn parse(bytes: &[u8]) -> Result<String, String> {
    let value = bounded(bytes, 0, 0)
        .map_err(|error| format!(", line {}, column {}: {}", error.line(), error.column(), flaw(&error)))?;
    if !value.is_object() {
        return Err(" must contain one JSON object, in { and }".into());
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Changes the file atomically. A lock keeps other processes of this program away. `mode`: of a new file.
pub(super) fn change(
    path: &Path,
    mode: RawMode,
    most: usize,
    change: impl FnOnce(Option<&str>) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let denied = |_| unusable(path, " cannot be written: free some space, or check the permissions of its folder");
    // The target of a link is changed, not the link.
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(_) if path.is_symlink() => {
            return Err(unusable(path, " is a symbolic link without a target: remove it, or create the target"));
        }
        Err(_) => path.to_owned(),
    };
    let folder = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(denied)?;
    let folder = OpenFolder::open(folder).map_err(denied)?;
    let alone = folder.lock(LOCK_LIMIT).ok_or_else(|| {
        unusable(path, " is being changed by another process, which does not finish: stop that process")
    })?;
    let old = read(&target, most)?;
    let new = change(old.as_deref())?;
    parse(new.as_bytes()).map_err(|_| unusable(path, " would be broken by this change: edit it by hand"))?;
    if new.len() > most {
        let why = format!(" would exceed {} MiB with this change, and could not be read again", most >> 20);
        return Err(unusable(path, &why));
    }
    let name = target.file_name().unwrap_or_default();
    // Every change under the lock uses this name, so that the next one replaces the file that a killed one left.
    let by = if alone { String::new() } else { format!(".{}", std::process::id()) };
    let temporary = OsString::from(format!(".{}{by}.tmp", name.to_string_lossy()));
    folder.replace(name, &temporary, mode, new.as_bytes()).map_err(denied)
}

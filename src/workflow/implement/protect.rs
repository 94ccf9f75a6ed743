//! The protected paths of a phase: their contents before its first attempt, and their differences later.
//!
//! Files are compared by content and permissions, whatever git says about them, and not by times, which anybody can set.
//! A link is compared by its target, even if it replaces a folder of the path, and the file or folder that it leads to is
//! protected too. Only a link to a folder that contains the link is not followed. What cannot be read counts as changed.
//!
//! A process that escaped the agent's tree could change a file and change it back while a command runs. That shows in
//! the inode and in its change time, which nobody can set: see [`Stamps`].

use crate::process::query::Until;
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use crate::workflow::plan::PlanPhase;
use crate::workflow::project::{HOME, shown};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The maximum number of protected files (and of folders), and the maximum bytes in them.
const FILES: usize = 10_000;
const BYTES: u64 = 64 << 20;

/// The folders that change during normal work, relative to the project's folder.
const OWN: [&str; 2] = [HOME, ".git"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The paths exceed [`FILES`] or [`BYTES`].
    TooLarge,
    Unreadable(PathBuf),
    GivenUp,
}

impl Unread {
    pub(crate) fn refusal(self, phase: &PlanPhase) -> Failure {
        let id = phase.id();
        match self {
            Unread::TooLarge => {
                let (files, bytes) = (FILES / 1000, BYTES >> 20);
                let message = format!(
                    "{id} protects more than {files},000 files or {bytes} MiB: name fewer under `### Protect` in the plan."
                );
                Failure::refused_for(RefusalReason::TooLarge, message)
            }
            Unread::Unreadable(path) => {
                let path = shown(&path);
                let message = format!(
                    "{id} protects {path}, which cannot be read: give yourself the right to read it, or do not protect it."
                );
                Failure::refused_for(RefusalReason::Invalid, message)
            }
            Unread::GivenUp => Failure::no_thread(),
        }
    }
}

/// The content of a path. A path that does not exist has no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    File {
        permissions: u32,
        size: u64,
        digest: [u64; 2],
    },
    /// `leads_to`: the end of all links, relative to the project's folder if inside. `None`: it does not exist.
    Link {
        target: OsString,
        leads_to: Option<PathBuf>,
    },
    Folder,
    /// A pipe, a socket or a device.
    Other,
    /// It cannot be read, so it equals nothing, not even itself.
    Unknown,
}

/// The content of the protected paths at one time, by the entry of the plan that protects them.
#[derive(Debug)]
pub(crate) struct ProtectedState {
    held: BTreeMap<String, HeldPaths>,
    keys: Keys,
}

type HeldPaths = BTreeMap<PathBuf, Held>;

/// A folder's change time changes if it is moved away and back, which changes nothing about its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamps(BTreeMap<PathBuf, Stamp>);

/// The device, the inode, and its change time in seconds and nanoseconds.
type Stamp = (u64, u64, i64, i64);

impl Stamps {
    /// The paths of both looks whose inode or change time differs.
    pub(crate) fn differences(&self, now: &Stamps) -> Vec<String> {
        let differs = |(path, then): &(&PathBuf, &Stamp)| now.0.get(*path).is_some_and(|now| now != *then);
        self.0.iter().filter(differs).map(|(path, _)| path.to_string_lossy().into_owned()).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The changed paths, in order, relative to the project's folder.
    pub(crate) changed: Vec<String>,
    /// Taken before the contents were read.
    pub(crate) stamps: Stamps,
}

/// Random keys, so that nobody can construct two contents with the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keys([u64; 4]);

impl Keys {
    fn random() -> Keys {
        Keys([0; 4].map(|_: u64| RandomState::new().hash_one(0)))
    }

    #[expect(deprecated, reason = "std has no other hash with keys that a later run can use again")]
    fn hashers(self) -> [std::hash::SipHasher; 2] {
        let Keys([a, b, c, d]) = self;
        [std::hash::SipHasher::new_with_keys(a, b), std::hash::SipHasher::new_with_keys(c, d)]
    }
}

impl ProtectedState {
    /// `entries`: relative to the project's folder. Those of `known` stay as they are there.
    pub(crate) fn read(
        project: &Path,
        entries: &[String],
        known: Option<&ProtectedState>,
        until: &Until,
    ) -> Result<ProtectedState, Unread> {
        let keys = known.map_or_else(Keys::random, |known| known.keys);
        let mut walk = Walk::new(project, keys, until);
        let mut held = BTreeMap::new();
        for entry in entries {
            let paths = match known.and_then(|known| known.held.get(entry)) {
                Some(paths) => paths.clone(),
                None => walk.all(entry)?,
            };
            held.insert(entry.clone(), paths);
        }
        match walk.unreadable {
            Some(path) => Err(Unread::Unreadable(path)),
            None => Ok(ProtectedState { held, keys }),
        }
    }

    /// Adds the entries of another state with the same keys.
    pub(crate) fn join(&mut self, other: &ProtectedState) {
        self.held.extend(other.held.iter().map(|(entry, paths)| (entry.clone(), paths.clone())));
    }

    /// For a later run: the keys, then for each entry a line of its own and one for each path. Paths are in hex.
    pub(super) fn record(&self) -> String {
        let Keys([a, b, c, d]) = self.keys;
        let mut text = format!("{a:x} {b:x} {c:x} {d:x}\n");
        for (entry, paths) in &self.held {
            let _ = writeln!(text, "entry {}", hex(entry.as_bytes()));
            for (path, held) in paths {
                let _ = writeln!(text, "{} {}", hex(path.as_os_str().as_bytes()), held.record());
            }
        }
        text
    }

    /// `None`: the text is not such a record.
    pub(super) fn parse(text: &str) -> Option<ProtectedState> {
        let mut lines = text.lines();
        let keys: Vec<u64> = lines.next()?.split(' ').map(number).collect::<Option<_>>()?;
        let keys = Keys(keys.try_into().ok()?);
        let (mut held, mut paths) = (BTreeMap::new(), None::<&mut HeldPaths>);
        for line in lines {
            let (path, rest) = line.split_once(' ')?;
            if path == "entry" {
                paths = Some(held.entry(String::from_utf8(bytes(rest)?).ok()?).or_default());
            } else {
                paths.as_mut()?.insert(PathBuf::from(OsString::from_vec(bytes(path)?)), Held::parse(rest)?);
            }
        }
        Some(ProtectedState { held, keys })
    }

    /// Paths that only links lead to: relative to the project's folder if inside, otherwise absolute.
    pub(crate) fn behind_links(&self) -> impl Iterator<Item = String> {
        let is_new = |path: &Path| !self.held.keys().any(|entry| path.starts_with(entry));
        let all = self.held.values().flatten();
        all.filter(move |(path, held)| !matches!(held, Held::Link { .. }) && is_new(path))
            .map(|(path, _)| path.to_string_lossy().into_owned())
    }

    pub(crate) fn look(&self, project: &Path, until: &Until) -> Looked {
        let mut differing = BTreeSet::new();
        let mut stamps = BTreeMap::new();
        for (entry, before) in &self.held {
            let mut walk = Walk::new(project, self.keys, until);
            let Ok(now) = walk.all(entry) else {
                // The entry was below the limits before, so it changed. Nobody sees a result that was given up.
                return Looked { changed: vec![entry.clone()], ..Looked::default() };
            };
            stamps.append(&mut walk.stamps);
            let is_same = |path: &PathBuf, held: &Held| *held != Held::Unknown && now.get(path) == Some(held);
            differing.extend(before.iter().filter(|(path, held)| !is_same(path, held)).map(|(path, _)| path.clone()));
            differing.extend(now.into_keys().filter(|path| !before.contains_key(path)));
        }
        let changed = differing.into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
        Looked { changed, stamps: Stamps(stamps) }
    }
}

impl Held {
    fn record(&self) -> String {
        match self {
            Held::File { permissions, size, digest: [one, two] } => {
                format!("file {permissions:x} {size:x} {one:x} {two:x}")
            }
            Held::Link { target, leads_to: Some(path) } => {
                format!("link {} {}", hex(target.as_bytes()), hex(path.as_os_str().as_bytes()))
            }
            Held::Link { target, leads_to: None } => format!("link {}", hex(target.as_bytes())),
            Held::Folder => "folder".to_owned(),
            Held::Other => "other".to_owned(),
            Held::Unknown => "unknown".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Held> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["file", permissions, size, one, two] => Some(Held::File {
                permissions: u32::try_from(number(permissions)?).ok()?,
                size: number(size)?,
                digest: [number(one)?, number(two)?],
            }),
            ["link", target] => Some(Held::Link { target: OsString::from_vec(bytes(target)?), leads_to: None }),
            ["link", target, path] => {
                let leads_to = Some(PathBuf::from(OsString::from_vec(bytes(path)?)));
                Some(Held::Link { target: OsString::from_vec(bytes(target)?), leads_to })
            }
            ["folder"] => Some(Held::Folder),
            ["other"] => Some(Held::Other),
            ["unknown"] => Some(Held::Unknown),
            _ => None,
        }
    }
}

/// Bytes in hex: a path may not be UTF-8.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(pair).collect()
}

fn number(hex: &str) -> Option<u64> {
    u64::from_str_radix(hex, 16).ok()
}

struct Walk<'a> {
    project: &'a Path,
    keys: Keys,
    until: &'a Until,
    /// The paths of the current entry.
    held: HeldPaths,
    /// The paths of all entries, because entries may overlap.
    seen: HeldPaths,
    stamps: BTreeMap<PathBuf, Stamp>,
    /// The first path that could not be read.
    unreadable: Option<PathBuf>,
    /// Folders that links lead to, not yet walked.
    linked: Vec<PathBuf>,
    files: usize,
    folders: usize,
    bytes: u64,
}

impl<'a> Walk<'a> {
    fn new(project: &'a Path, keys: Keys, until: &'a Until) -> Walk<'a> {
        Walk {
            project,
            keys,
            until,
            held: HeldPaths::new(),
            seen: HeldPaths::new(),
            stamps: BTreeMap::new(),
            unreadable: None,
            linked: Vec::new(),
            files: 0,
            folders: 0,
            bytes: 0,
        }
    }

    fn all(&mut self, entry: &str) -> Result<HeldPaths, Unread> {
        self.entry(Path::new(entry))?;
        while let Some(folder) = self.linked.pop() {
            self.folder(folder)?;
        }
        Ok(std::mem::take(&mut self.held))
    }

    /// Adds one protected path. Of a folder behind a link on the way, only the rest of the path counts.
    fn entry(&mut self, entry: &Path) -> Result<(), Unread> {
        let mut path = PathBuf::new();
        let mut rest = entry.components();
        while let Some(component) = rest.next() {
            if component == Component::CurDir {
                continue;
            }
            path.push(component);
            let Some(metadata) = self.metadata(&path)? else { return Ok(()) };
            let is_last = rest.clone().next().is_none();
            if metadata.is_symlink() && !is_last {
                self.stamp(&path, &metadata);
                let Some(target) = self.link(path)? else { return Ok(()) };
                path = target;
            } else if !metadata.is_dir() {
                return self.add(path, &metadata);
            } else if is_last {
                self.stamp(&path, &metadata);
            }
        }
        self.folder(path)
    }

    /// Adds a folder with its contents, without recursion, because the agent chooses its depth.
    fn folder(&mut self, top: PathBuf) -> Result<(), Unread> {
        let mut folders = vec![top];
        while let Some(folder) = folders.pop() {
            if self.held.contains_key(&folder) || OWN.iter().any(|own| folder == Path::new(own)) {
                continue;
            }
            if self.seen.insert(folder.clone(), Held::Folder).is_none() {
                self.folders += 1;
            }
            if self.folders > FILES {
                return Err(Unread::TooLarge);
            }
            let Ok(entries) = fs::read_dir(self.project.join(&folder)) else {
                self.unknown(folder)?;
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    self.unknown(folder.clone())?;
                    break;
                };
                let path = folder.join(entry.file_name());
                // The type of the entry itself, not of a link's target.
                match self.metadata(&path)? {
                    Some(metadata) if metadata.is_dir() => {
                        self.stamp(&path, &metadata);
                        folders.push(path);
                    }
                    Some(metadata) => self.add(path, &metadata)?,
                    None => {}
                }
            }
            self.held.entry(folder).or_insert(Held::Folder);
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, metadata: &Metadata) -> Result<(), Unread> {
        self.stamp(&path, metadata);
        let kind = metadata.file_type();
        if kind.is_symlink() {
            let at = self.project.join(&path);
            return self.link(path)?.map_or(Ok(()), |target| self.follow(&at, target));
        }
        if self.held.contains_key(&path) {
            return Ok(());
        }
        let held = match self.seen.get(&path) {
            Some(held) => held.clone(),
            None => {
                self.count(if kind.is_file() { metadata.size() } else { 0 })?;
                self.read(&path, metadata)
            }
        };
        self.keep(path, held);
        Ok(())
    }

    fn read(&mut self, path: &Path, metadata: &Metadata) -> Held {
        if !metadata.is_file() {
            return Held::Other;
        }
        let (permissions, size) = (metadata.mode() & 0o7777, metadata.size());
        match self.digest(&self.project.join(path), size) {
            Some(digest) => Held::File { permissions, size, digest },
            None => {
                self.unreadable.get_or_insert_with(|| path.to_owned());
                Held::Unknown
            }
        }
    }

    /// The properties of a path, but not of a link's target. `None`: it does not exist, or this is unknown.
    fn metadata(&mut self, path: &Path) -> Result<Option<Metadata>, Unread> {
        match fs::symlink_metadata(self.project.join(path)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(_) => self.unknown(path.to_owned()).map(|()| None),
        }
    }

    fn stamp(&mut self, path: &Path, metadata: &Metadata) {
        let stamp = (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        self.stamps.insert(path.to_owned(), stamp);
    }

    fn unknown(&mut self, path: PathBuf) -> Result<(), Unread> {
        self.count(0)?;
        self.unreadable.get_or_insert_with(|| path.clone());
        self.keep(path, Held::Unknown);
        Ok(())
    }

    fn keep(&mut self, path: PathBuf, held: Held) {
        self.seen.insert(path.clone(), held.clone());
        self.held.insert(path, held);
    }

    /// Adds a link alone. Returns what it leads to.
    fn link(&mut self, path: PathBuf) -> Result<Option<PathBuf>, Unread> {
        let at = self.project.join(&path);
        let inside = |path: PathBuf| path.strip_prefix(self.project).map(Path::to_owned).unwrap_or(path);
        let leads_to = at.canonicalize().ok().map(inside);
        if !self.seen.contains_key(&path) {
            self.count(0)?;
        }
        let target = fs::read_link(&at).unwrap_or_default().into();
        self.keep(path, Held::Link { target, leads_to: leads_to.clone() });
        Ok(leads_to)
    }

    /// Adds what a link leads to. Walks a folder later, so that the depth of links costs no stack.
    fn follow(&mut self, link: &Path, target: PathBuf) -> Result<(), Unread> {
        let absolute = self.project.join(&target);
        if link.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|at| at.starts_with(&absolute)) {
            return Ok(());
        }
        match self.metadata(&target)? {
            Some(metadata) if metadata.is_dir() => {
                self.stamp(&target, &metadata);
                self.linked.push(target);
                Ok(())
            }
            Some(metadata) => self.add(target, &metadata),
            None => Ok(()),
        }
    }

    fn count(&mut self, bytes: u64) -> Result<(), Unread> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        match self.files > FILES || self.bytes > BYTES {
            true => Err(Unread::TooLarge),
            false if self.until.is_over() => Err(Unread::GivenUp),
            false => Ok(()),
        }
    }

    /// Neither follows a link nor blocks, because something else may have taken the file's place.
    fn digest(&self, path: &Path, size: u64) -> Option<[u64; 2]> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(path).ok()?;
        file.metadata().ok().filter(Metadata::is_file)?;
        let mut rest = file.take(size);
        let mut hashers = self.keys.hashers();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match rest.read(&mut buffer).ok()? {
                0 => break,
                _ if self.until.is_over() => return None,
                count => hashers.iter_mut().for_each(|hasher| hasher.write(&buffer[..count])),
            }
        }
        Some([hashers[0].finish(), hashers[1].finish()])
    }
}

/// Whether an absolute path is a protected path or lies in one. `project`: the folder to which `entries` are relative.
pub(crate) fn covers(project: &Path, entries: &[String], path: &Path) -> bool {
    entries.iter().any(|entry| path.starts_with(project.join(entry)))
}

#[cfg(test)]
mod tests;

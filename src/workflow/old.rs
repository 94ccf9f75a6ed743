//! Replaced files are kept: they move to `.spektacular/local/old/STAMP/`.

use super::project::{FileProblem, HOME, LOCAL, Project, shown};
use crate::protocol::outbound::{GaveWay, Text};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use time::OffsetDateTime;
use time::macros::format_description;

/// How many folders of one second get a name.
const TRIES: u32 = 10_000;

impl Project {
    /// A new path for what gives way now, below a folder that does not exist yet.
    fn old_path(&self, path: &Path, now: SystemTime) -> Result<PathBuf, FileProblem> {
        let format = format_description!("[year][month][day]T[hour][minute][second]Z");
        let stamp = OffsetDateTime::from(now).format(format).unwrap_or_default();
        let inside = path.strip_prefix(HOME).unwrap_or(path);
        for number in 1..=TRIES {
            let stamp = if number == 1 { stamp.clone() } else { format!("{stamp}-{number}") };
            let folder = Path::new(LOCAL).join("old").join(stamp);
            if self.entry(&folder)?.is_none() {
                return Ok(folder.join(inside));
            }
        }
        Err(FileProblem::Io(std::io::ErrorKind::AlreadyExists))
    }

    /// Moves a file or a folder out of the way.
    ///
    /// # Errors
    /// The file system's.
    pub fn give_way(&self, path: &Path) -> Result<GaveWay, FileProblem> {
        let to = self.old_path(path, SystemTime::now())?;
        self.rename(path, &to)?;
        Ok(moved(path, &to))
    }

    /// Keeps bytes that give way at a path.
    ///
    /// # Errors
    /// The file system's.
    pub fn keep(&self, path: &Path, bytes: &[u8]) -> Result<GaveWay, FileProblem> {
        let to = self.old_path(path, SystemTime::now())?;
        self.write(&to, bytes)?;
        Ok(moved(path, &to))
    }
}

fn moved(path: &Path, to: &Path) -> GaveWay {
    GaveWay { path: Text::from(shown(path)), to: Text::from(shown(to)) }
}

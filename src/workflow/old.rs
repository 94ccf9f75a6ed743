//! Replaced files are kept in `.spektacular/local/old/STAMP/`.

use super::project::{FileProblem, HOME, LOCAL, Project, shown};
use crate::protocol::outbound::{MovedFile, Text};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use time::OffsetDateTime;
use time::macros::format_description;

/// The maximum number of folders for the same second.
const TRIES: u32 = 10_000;

impl Project {
    /// A new path for a file that is replaced now, below a folder that does not exist yet.
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

    /// Moves a file or a folder of any kind out of the way. `None`: the path did not exist.
    pub fn give_way(&self, path: &Path) -> Result<Option<MovedFile>, FileProblem> {
        if self.entry(path)?.is_none() {
            return Ok(None);
        }
        let to = self.old_path(path, SystemTime::now())?;
        self.rename(path, &to)?;
        Ok(Some(MovedFile { path: Text::from(shown(path)), to: Text::from(shown(&to)) }))
    }
}

//! The state of a phase's protected paths from before its first attempt, kept in the user's state folder. A later run
//! compares with it: otherwise a file that was changed on the way would be taken for the original.
//!
//! The record counts only while the state line of the phase says in_progress or failed. That line proves that there was a
//! record: if it is missing, somebody removed it, and the phase does not continue. To accept a changed file, remove the
//! state line.

use super::protect::{ProtectedState, hex};
use crate::io::files::{OpenFolder, state_folder};
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use crate::workflow::plan::PlanPhase;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum size of a record, in bytes: 10,000 paths of the greatest length that systems accept, in hex.
const RECORD_BYTES: u64 = 128 << 20;

pub(super) fn no_record(phase: &PlanPhase) -> Failure {
    let id = phase.id();
    let message = format!(
        "The record of the protected files of {id} is missing, so they may have changed since the phase began: inspect \
         them, then remove the state line below the heading of {id} in the plan to begin the phase anew."
    );
    Failure::refused_for(RefusalReason::Invalid, message)
}

/// The place of a phase's record.
#[derive(Debug)]
pub(super) struct KeptState {
    folder: PathBuf,
    name: String,
}

impl KeptState {
    /// `plan`: the plan's folder. `None`: the environment names no state folder.
    pub(super) fn for_phase(project: &Path, plan: &Path, phase: u16) -> Option<KeptState> {
        let digest = crate::workflow::plan::Digest::of(hex(project.join(plan).as_os_str().as_bytes()).as_bytes());
        Some(KeptState { folder: state_folder()?.join("spektacular/protected"), name: format!("{digest}-{phase}") })
    }

    /// `None`: the record is missing or damaged.
    pub(super) fn load(&self) -> Option<ProtectedState> {
        let folder = OpenFolder::open(&self.folder).ok()?;
        let file = folder.file(self.name.as_ref(), OFlags::RDONLY, 0).ok()?;
        let mut text = String::new();
        file.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
        ProtectedState::parse(&text)
    }

    /// Replaces an earlier record of the phase.
    pub(super) fn store(&self, state: &ProtectedState) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let temporary = format!("{}.{}.new", self.name, std::process::id());
        let folder = OpenFolder::open(&self.folder)?;
        folder.replace(self.name.as_ref(), OsStr::new(&temporary), 0o600, state.record().as_bytes())
    }

    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(self.folder.join(&self.name));
    }
}

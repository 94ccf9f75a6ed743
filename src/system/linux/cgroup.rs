//! A control group for the run (cgroup v2), where the system allows one: a service manager delegates a part of the tree
//! to its user, and root may use all of it. The agent joins the group before it starts. So each of its processes is in
//! the group, with any environment and any parent, and the kernel kills all of them at once.
//!
//! A process with the right to do so can still leave the group, so the sweep of the tree remains necessary.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The mount points of version 2 of control groups. The second one is for a system that also uses version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const NAME_DIGITS: usize = 12;
/// The first and the longest pause between two checks for the killed processes.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(10));

#[derive(Clone, Debug)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// `None`: the system does not allow it, or the kernel cannot kill a group.
    pub fn create(nonce: &str) -> Option<ControlGroup> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let ours = |mount: &&str| Path::new(mount).join(own);
        let parent = MOUNTS.iter().map(ours).find(|folder| folder.join("cgroup.procs").is_file())?;
        let group = ControlGroup(parent.join(format!("spektacular-{}", &nonce[..NAME_DIGITS.min(nonce.len())])));
        fs::create_dir(&group.0).ok()?;
        if group.0.join("cgroup.kill").is_file() {
            return Some(group);
        }
        group.remove();
        None
    }

    /// For a process that did not create the group. `None` if the path is empty.
    pub(crate) fn at(folder: PathBuf) -> Option<ControlGroup> {
        (!folder.as_os_str().is_empty()).then_some(ControlGroup(folder))
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Without the right to do so, the process stays in its group.
    pub(crate) fn join(&self) {
        let _ = fs::write(self.0.join("cgroup.procs"), "0");
    }

    pub(crate) fn members(&self) -> Vec<u32> {
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        // The kernel lists a process of another PID namespace as 0.
        list.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0).collect()
    }

    /// Includes the groups below. Waits for at most `limit` until all are gone. Returns a lower bound of their number.
    pub(crate) fn kill(&self, limit: Duration) -> usize {
        if !self.is_populated() {
            return 0;
        }
        let (start, count) = (Instant::now(), self.members().len());
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let mut pause = PAUSES.0;
        while self.is_populated() && start.elapsed() < limit {
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
        count.max(1)
    }

    fn is_populated(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
    }

    /// Removes the group, if no process is in it.
    pub fn remove(&self) {
        remove(&self.0);
    }
}

fn remove(folder: &Path) {
    if fs::remove_dir(folder).is_ok() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

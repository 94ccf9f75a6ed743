//! The namespaces in which some agents put their commands, and those in which a sandbox makes files unchangeable.

use crate::system::sandbox::{Access, Grants};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind_recursive, mount_change, mount_remount};
use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use rustix::thread::UnshareFlags;
use std::path::Path;
use std::{env, fs, io};

/// Does what bubblewrap does, and changes nothing outside. Only for a process with one thread, which ends after this.
pub(crate) fn enter_namespaces() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    // Some systems permit the namespaces, and nothing in them.
    own_mounts()
}

/// Keeps this process, which must have one thread, and all that it will start, from changing the [`Access::Fixed`] files
/// and folders, and from renaming the [`Access::Pinned`] ones. Changes nothing for other processes. The process must then
/// enter a Landlock domain, or what it starts could undo this.
pub(crate) fn protect(grants: &Grants) -> io::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    match unshare(UnshareFlags::NEWNS) {
        // Only a user namespace permits it to an ordinary user, who keeps the own numbers there. The files that say so are
        // closed to a process that hides its memory.
        Err(Errno::PERM) => {
            set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{uid} {uid} 1", uid = uid.as_raw()))?;
            fs::write("/proc/self/gid_map", format!("{gid} {gid} 1", gid = gid.as_raw()))?;
        }
        entered => entered?,
    }
    own_mounts()?;
    for (access, path) in &grants.0 {
        match access {
            Access::Pinned => mount_bind_recursive(path, path)?,
            Access::Fixed => fix(path)?,
            Access::List | Access::Read | Access::Write | Access::Device | Access::Connect => {}
        }
    }
    // The working directory still lies below the new mounts.
    env::set_current_dir(env::current_dir()?)
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(
        deprecated,
        reason = "the flags do not touch the table of descriptors, and this package has no unsafe code"
    )]
    rustix::thread::unshare(flags)
}

/// Keeps mounts that this process makes to itself.
fn own_mounts() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

fn fix(path: &Path) -> io::Result<()> {
    mount_bind_recursive(path, path)?;
    let set = statvfs(path)?.f_flag;
    // A user namespace may not take these from a mount that has them.
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| set.contains(*flag)).map(|(_, flag)| flag);
    Ok(mount_remount(path, kept.fold(MountFlags::BIND | MountFlags::RDONLY, MountFlags::union), "")?)
}

/// Settings of the kernel that forbid namespaces to ordinary users: the value that does, and the change.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "for git's hooks, the sysctl user.max_user_namespaces must be above 0"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "for git's hooks, the sysctl kernel.unprivileged_userns_clone must be 1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "for git's hooks, the sysctl kernel.apparmor_restrict_unprivileged_userns must be 0",
    ),
];

/// The change after which files could be kept unchanged, as a clause.
pub(crate) fn obstacle() -> &'static str {
    let is_set = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    let setting = SETTINGS.iter().find(|(file, value, _)| is_set(file, value)).map(|(_, _, change)| *change);
    setting.unwrap_or(
        "for git's hooks, user namespaces and mounts in them must be permitted, in a container by its profiles",
    )
}

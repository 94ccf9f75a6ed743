//! The namespaces in which some agents put their commands.

use rustix::io;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

/// Enters a user namespace and a mount namespace of its own, as bubblewrap does, and changes nothing outside. Only for a
/// process with one thread, which ends after this.
pub(crate) fn enter_namespaces() -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "the flags do not touch the table of descriptors, and this package has no unsafe code"
    )]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    // Some systems permit the namespaces, and nothing in them.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

//! The launcher: gives the agent its own session, and so no controlling terminal. An agent in our session could type an
//! answer into the person's terminal, or write to the terminal directly.
//!
//! `Command` cannot create a session. So the child is this program with a hidden argument, which creates the session
//! and then becomes the agent. Its stderr is a socket at first. Through that socket, it receives its real stderr and
//! reports why the agent cannot be started. If the socket closes without a report, the agent is running.

use super::own_executable;
use crate::system::{ControlGroup, is_executable};
use rustix::cmsg_space;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::ffi::OsString;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// The hidden first argument that makes this program run as the launcher.
pub(super) const LAUNCH_ARGUMENT: &str = "__launch";

/// The maximum time of the launcher. It never waits, but it may be stopped from outside.
const LIMIT: Duration = Duration::from_secs(10);

/// Starts a program in its own session, and in the control group if there is one. `prepare` sets everything except
/// stderr. Error: the system's, as from [`Command::spawn`].
pub(super) fn spawn(
    program: &Path,
    cgroup: Option<&ControlGroup>,
    stderr: &PipeWriter,
    prepare: impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<Child> {
    let Some(launcher) = own_executable::program() else {
        // Without the launcher, the agent gets at least its own group.
        let mut command = Command::new(program);
        prepare(&mut command)?;
        return command.stderr(stderr.try_clone()?).process_group(0).spawn();
    };
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(LIMIT))?;
    let mut command = Command::new(launcher);
    command.arg(LAUNCH_ARGUMENT).arg(cgroup.map_or(Path::new(""), ControlGroup::folder)).arg(program);
    prepare(&mut command)?;
    let mut child = command.stderr(OwnedFd::from(theirs)).spawn()?;
    // The command still holds the launcher's end of the socket.
    drop(command);
    let mut errno = [0; 4];
    let error = match send(&ours, stderr).and_then(|()| ours.read_exact(&mut errno)) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(child),
        Err(error) => error,
        Ok(()) => io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
    };
    let _ = child.kill();
    let _ = child.wait();
    Err(error)
}

/// The launcher's main function. `args`: the folder of the control group, the program and its arguments. Returns only
/// if the program cannot be started.
pub(super) fn run(args: impl IntoIterator<Item = OsString>) -> i32 {
    let Ok(status) = fcntl_dupfd_cloexec(io::stderr(), 3) else { return 1 };
    let mut status = UnixStream::from(status);
    let error = become_program(&status, args);
    let _ = status.write_all(&error.raw_os_error().unwrap_or(0).to_ne_bytes());
    1
}

fn become_program(status: &UnixStream, args: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut args = args.into_iter();
    let ready = receive(status).and_then(|stderr| Ok(rustix::stdio::dup2_stderr(stderr)?));
    let (Some(cgroup), Some(program), Ok(())) = (args.next(), args.next(), ready) else {
        return ErrorKind::InvalidInput.into();
    };
    if let Some(cgroup) = ControlGroup::at(cgroup.into()) {
        cgroup.join();
    }
    // This fails only for the leader of a group, and a new child is not one.
    let _ = rustix::process::setsid();
    if !is_executable(Path::new(&program)) {
        return io::Error::from_raw_os_error(rustix::io::Errno::NOEXEC.raw_os_error());
    }
    Command::new(program).args(args).exec()
}

fn send(socket: &UnixStream, descriptor: &PipeWriter) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(b"2")], &mut control, SendFlags::empty())?;
    Ok(())
}

fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::empty())?;
    let descriptors = control.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut descriptors) = message else { return None };
        descriptors.next()
    });
    descriptors.ok_or_else(|| ErrorKind::UnexpectedEof.into())
}

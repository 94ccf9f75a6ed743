//! The launcher: gives the agent its own session, and so no controlling terminal. An agent in our session could type an
//! answer into the person's terminal, or write to the terminal directly.
//!
//! `Command` cannot create a session. So the child is this program with a hidden argument, which creates the session
//! and then becomes the agent. Its stderr is a socket at first. Through that socket, it receives its real stderr and
//! reports why the agent cannot be started. If the socket closes without a report, the agent is running.

use super::own_executable;
use crate::io::files::open_regular;
use crate::system::{ControlGroup, Grants, is_executable, protect, restrict};
use rustix::cmsg_space;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

pub(super) const LAUNCH_ARGUMENT: &str = "__launch";

/// The maximum time of the launcher. It never waits, but it may be stopped from outside.
const LIMIT: Duration = Duration::from_secs(10);

/// The error of an agent that the system does not restrict.
#[derive(Debug)]
pub(super) struct NotRestricted(pub(super) String);

impl fmt::Display for NotRestricted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NotRestricted {}

/// `prepare` sets everything except stderr. Error: the system's, as from [`Command::spawn`]; around a [`NotRestricted`]
/// if the sandbox cannot be kept.
pub(super) fn spawn(
    program: &Path,
    cgroup: Option<&ControlGroup>,
    grants: Option<&Grants>,
    stderr: &PipeWriter,
    prepare: impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<Child> {
    let Some(launcher) = own_executable::program() else {
        if grants.is_some() {
            return Err(io::Error::other(NotRestricted("spektacular cannot find its own program file".into())));
        }
        // Without the launcher, the agent gets at least its own group.
        let mut command = Command::new(program);
        prepare(&mut command)?;
        return command.stderr(stderr.try_clone()?).process_group(0).spawn();
    };
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(LIMIT))?;
    let mut command = Command::new(launcher);
    let sandbox = if grants.is_some() { SANDBOX } else { "" };
    command.arg(LAUNCH_ARGUMENT).arg(cgroup.map_or(Path::new(""), ControlGroup::folder)).arg(sandbox).arg(program);
    prepare(&mut command)?;
    let mut child = command.stderr(OwnedFd::from(theirs)).spawn()?;
    // The command still holds the launcher's end of the socket.
    drop(command);
    let mut report = Vec::new();
    let told = send(&ours, stderr)
        .and_then(|()| grants.map_or(Ok(()), |grants| ours.write_all(&grants.encode())))
        .and_then(|()| ours.shutdown(Shutdown::Write))
        .and_then(|()| ours.read_to_end(&mut report));
    let error = match told {
        Ok(0) => return Ok(child),
        Ok(_) => reported(&report),
        Err(error) => error,
    };
    let _ = child.kill();
    let _ = child.wait();
    Err(error)
}

const SANDBOX: &str = "sandbox";

/// The error in a launcher's report: the system's number, and a text if the sandbox cannot be kept.
fn reported(report: &[u8]) -> io::Error {
    match report.split_first_chunk::<4>() {
        Some((errno, [])) => io::Error::from_raw_os_error(i32::from_ne_bytes(*errno)),
        Some((_, why)) => io::Error::other(NotRestricted(String::from_utf8_lossy(why).into_owned())),
        None => ErrorKind::InvalidData.into(),
    }
}

/// The launcher's main function. `args`: the folder of the control group, [`SANDBOX`] or nothing, the program and its
/// arguments. Returns only if the program cannot be started.
pub(super) fn run(args: impl IntoIterator<Item = OsString>) -> i32 {
    let Ok(status) = fcntl_dupfd_cloexec(io::stderr(), 3) else { return 1 };
    let mut status = UnixStream::from(status);
    let error = become_program(&status, args);
    let _ = status.write_all(&error.raw_os_error().unwrap_or(0).to_ne_bytes());
    if let Some(NotRestricted(why)) = error.get_ref().and_then(|error| error.downcast_ref()) {
        let _ = status.write_all(why.as_bytes());
    }
    1
}

fn become_program(mut status: &UnixStream, args: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut args = args.into_iter();
    let ready = receive(status).and_then(|stderr| Ok(rustix::stdio::dup2_stderr(stderr)?));
    let (Some(cgroup), Some(sandbox), Some(program), Ok(())) = (args.next(), args.next(), args.next(), ready) else {
        return ErrorKind::InvalidInput.into();
    };
    if let Some(cgroup) = ControlGroup::at(cgroup.into()) {
        cgroup.join();
    }
    // This fails only for the leader of a group, and a new child is not one.
    let _ = rustix::process::setsid();
    if sandbox == SANDBOX {
        let mut grants = Vec::new();
        let read = status.read_to_end(&mut grants).map_err(|why| why.to_string());
        let grants = read.and_then(|_| Grants::decode(&grants).ok_or_else(|| "the grants are not complete".into()));
        // The parent ends its list of grants only when it is complete, so that a shorter one never counts.
        let confine = |grants: Grants| {
            if grants.protects() {
                protect(&grants).map_err(|why| format!("files cannot be kept unchanged ({why})"))?;
            }
            restrict(&grants)
        };
        if let Err(why) = grants.and_then(confine) {
            return io::Error::other(NotRestricted(why));
        }
    }
    // The system decides about a file that cannot be read, and refuses one that is not regular.
    if open_regular(Path::new(&program)).is_ok_and(|program| !is_executable(program)) {
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

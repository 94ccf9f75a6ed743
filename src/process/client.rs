//! A client of the protocol as a child process: any command, which finds our stand-in for this program.

use super::query::{Queries, SWEEP_LIMIT};
use super::tree::{self, MARKER, Tree, marker_value};
use crate::io::spawn_thread;
use crossbeam_channel::{Receiver, bounded};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Dropping it kills everything that it started.
pub(crate) struct ClientProcess {
    child: Child,
    tree: Tree,
    exited: Receiver<Option<i32>>,
}

impl Queries {
    /// The client has its own process group and an empty stdin. Its stdout goes to our stderr.
    pub(crate) fn start_client(
        &self,
        program: &OsStr,
        args: &[OsString],
        env: &[(&str, OsString)],
    ) -> io::Result<ClientProcess> {
        let own = tree::nonce();
        let stderr = io::stderr().as_fd().try_clone_to_owned().map_or(Stdio::null(), Stdio::from);
        let mut command = Command::new(program);
        command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
        command.env(MARKER, marker_value(&format!("{}:{own}", self.nonce())));
        let child = command.stdin(Stdio::null()).stdout(stderr).process_group(0).spawn()?;
        let (sender, exited) = bounded(1);
        let pid = Pid::from_child(&child);
        // Without the thread, the client never seems to end, and the time limit ends it.
        let _ = spawn_thread("client", move || {
            let status = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = sender.send(status.ok().flatten().and_then(|status| status.exit_status()));
        });
        Ok(ClientProcess { child, tree: Tree::by_marker(own), exited })
    }
}

impl ClientProcess {
    /// Waits for the exit code; in it, `None` stands for a signal. `None`: the client did not exit within `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<Option<i32>> {
        self.exited.recv_timeout(limit).ok()
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        self.tree.sweep(Some(self.child.id()), SWEEP_LIMIT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

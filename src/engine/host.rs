//! The host of a run. The real one is [`super::local_host::LocalHost`]; tests use one without processes and clocks.

use crate::agent::registry::Agent;
use crate::agent::{Launch, Offered, Reply};
use crate::process::sandbox::SandboxFault;
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::question::PathFact;
use crate::protocol::request::{Launcher, McpServer, Settings};
use crate::protocol::sandbox::Domain;
use crate::run::{CheckpointOrder, StopSignal};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that is about to be replaced.
#[derive(Debug, PartialEq, Eq)]
pub enum PresentFile {
    Missing,
    /// It is outside the run's directories, is not text, or is too large.
    Hidden,
    Text(String),
}

/// Everything outside a run that the run reads or acts on.
pub trait Host {
    /// The time since the run began. It never goes back.
    fn now(&self) -> Duration;
    fn date(&self) -> SystemTime;
    /// The environment variables of this process that are text.
    fn variables(&self) -> Vec<(String, String)>;
    /// The directory that `cwd` names, absolute and without symbolic links, or the current directory of this process.
    /// `None`: it does not exist.
    fn directory(&self, cwd: Option<&Path>) -> Option<PathBuf>;
    fn look(&self, path: &Path) -> PathFact;
    /// The text of a regular file. `None`: it cannot be read, or is too long.
    fn read(&self, path: &Path) -> Option<String>;
    /// The size of a regular file, and at most `bytes` of its first bytes. Error: the system's; `InvalidInput` if it
    /// is not a regular file.
    fn image(&self, path: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)>;
    /// The size of a file, in bytes. `None`: it does not exist.
    fn size(&self, path: &Path) -> Option<u64>;
    /// The file at a path that the agent asks to write. The path is relative to the working directory, or absolute.
    /// `room`: the maximum size of its text, in bytes.
    fn present(&self, _path: &Path, _settings: &Settings, _room: u64) -> PresentFile {
        PresentFile::Missing
    }
    /// The cost of a run's session before the run, in US dollars. `None`: unknown.
    fn cost_before(&self, _agent: &Agent, _settings: &Settings) -> Option<f64> {
        None
    }
    /// The user's own rules about the agent's tools that the run must keep. Empty: none.
    fn own_rules(&self, _agent: &Agent, _settings: &Settings) -> String {
        String::new()
    }
    fn domain(&self, _agent: &Agent, _settings: &Settings) -> Result<Domain, SandboxFault> {
        Err(SandboxFault::System("this host has no processes".into()))
    }
    /// A random text that no other process can know. Empty: names get no random part.
    fn nonce(&self) -> String {
        String::new()
    }
    /// `None`: this host cannot offer them.
    fn offer(&mut self, tools: Offered) -> Option<McpServer>;
    /// The launcher of the MCP server at each of these positions in `mcp_servers`. Empty: this host hears nothing of them.
    fn launchers(&mut self, _positions: &[usize]) -> Vec<Launcher> {
        Vec::new()
    }
    /// Answers a call of the tool `ask_user`.
    fn reply(&mut self, call: u64, replies: &[Reply]);
    fn withdraw(&mut self, call: u64);
    /// Prepares for checkpoints of the work tree around this folder. Returns false if there is none, or no git.
    fn keep_checkpoints(&mut self, _cwd: &Path) -> bool {
        false
    }
    /// `except`: files of ours, absolute.
    fn checkpoint(&mut self, _order: CheckpointOrder, _except: Vec<PathBuf>) {}
    /// Whether the agent gets nothing for now, because the checkpoint before it is not taken.
    fn holds_back(&self) -> bool {
        false
    }
    /// `stderr`: whether its lines are needed. Error: the reason why the agent cannot run, and what to do about it.
    fn spawn(&mut self, launch: &Launch, settings: &Settings, stderr: bool) -> Result<(), Failure>;
    /// The package that npx runs in place of the missing program of the agent that was started last.
    fn npx_package(&self) -> Option<&'static str> {
        None
    }
    /// Keeps other runs from resuming a session that the agent writes, until its process is gone.
    fn hold_session(&mut self, _id: &SessionId) {}
    fn send(&mut self, line: String);
    /// The number of bytes in the queue for the agent's stdin.
    fn unsent(&self) -> usize {
        0
    }
    /// Closes the agent's stdin once the queue is written.
    fn close_input(&mut self);
    fn signal_tree(&mut self, signal: StopSignal);
    /// Suspends the agent's processes until the next part of the run as soon as nothing runs beside the agent, and then
    /// searches for changed files. Returns false if the agent must end instead.
    fn rest(&mut self) -> bool {
        false
    }
    /// Ends the search for changed files, because the run must end now. `stopping`: whether the end was requested.
    fn hurry(&mut self, stopping: bool);
    /// Kills the agent's whole process tree at once, after a fault of our own.
    fn abort(&mut self);
}

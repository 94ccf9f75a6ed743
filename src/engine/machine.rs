//! The machine as a run uses it. The real one is [`super::host::Host`]; tests have one without processes and clocks.

use crate::agent::{Launch, Reply};
use crate::failure::Failure;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::PathFact;
use crate::protocol::request::{McpServer, Settings};
use crate::run::Method;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The agent is gone: its whole process tree, and its output was read to the end.
#[derive(Clone, Debug)]
pub struct Departed {
    /// How the agent's own process ended.
    pub exit: AgentExit,
    /// Whether something of it outlived it and was stopped.
    pub leaked: bool,
    /// The last of its stderr, as it was.
    pub stderr: String,
}

/// Everything outside a run that the run looks at or acts on.
pub trait Machine {
    /// The time since the run began. It never goes back.
    fn now(&self) -> Duration;
    /// The date, for frames.
    fn date(&self) -> SystemTime;
    /// The environment variables of this process that are text.
    fn variables(&self) -> Vec<(String, String)>;
    /// The directory that `cwd` names, absolute and without links; without a name this process's own. `None`: there is
    /// no such directory.
    fn directory(&self, cwd: Option<&Path>) -> Option<PathBuf>;
    /// What a path leads to.
    fn look(&self, path: &Path) -> PathFact;
    /// The text of a regular file. `None`: it cannot be read, or is too long.
    fn read(&self, path: &Path) -> Option<String>;
    /// The size of a file, in bytes. `None`: it is not there.
    fn size(&self, path: &Path) -> Option<u64>;
    /// Random text that nothing else can know. Empty: names without a random part are wanted.
    fn nonce(&self) -> String {
        String::new()
    }
    /// Offers the agent's model this tool to ask with. `None`: that is not possible here.
    fn offer(&mut self, tool: &'static str) -> Option<McpServer>;
    /// Answers a call of the tool.
    fn reply(&mut self, call: u64, replies: &[Reply]);
    /// Ends a call of the tool that nobody answers.
    fn withdraw(&mut self, call: u64);
    /// Starts the agent. `stderr`: somebody wants the lines of its stderr.
    ///
    /// # Errors
    /// Everything that keeps the agent from running, in words that say what to do.
    fn spawn(&mut self, launch: &Launch, settings: &Settings, stderr: bool) -> Result<(), Failure>;
    /// Queues a line for the agent's stdin.
    fn send(&mut self, line: String);
    /// How many bytes of that queue are not written yet.
    fn unsent(&self) -> usize {
        0
    }
    /// Closes the agent's stdin once the queue is written.
    fn close_input(&mut self);
    /// Stops the agent's whole process tree.
    fn stop(&mut self, method: Method);
    /// The end is wanted now: nothing more is to be looked for. `stopping`: the run is ended at somebody's wish.
    fn hurry(&mut self, stopping: bool);
    /// Ends the agent's whole process tree here and now, after a fault of our own.
    fn abort(&mut self);
}

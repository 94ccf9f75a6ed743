//! The real machine: the agent's process, its pipes and its tree; the guard; git; the socket of the ask-server.

use super::ask_socket::{AskEvent, AskSocket};
use super::machine::{Departed, Machine};
use crate::agent::{Launch, Reply};
use crate::failure::Failure;
use crate::io::signals::stop_ourselves;
use crate::process::child::{AgentOutput, AgentProcess, ProcessEvent};
use crate::process::git::{Baseline, Changes, Pending};
use crate::process::guard::Guard;
use crate::process::tree::{self, Signal, Swept, Tree};
use crate::protocol::question::PathFact;
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::words::Action;
use crate::run::Method;
use crossbeam_channel::{Receiver, never};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long the sweep of what outlived the agent may take after an end by itself, and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);
/// How long git may take to say what changed, each before and after.
const GIT_LIMIT: Duration = Duration::from_millis(200);
/// The longest file that is read for a value, in bytes.
const VALUE_BYTES: u64 = 1 << 20;

/// The machine of one run.
pub(crate) struct Host {
    pub(super) began: Instant,
    /// What marks the processes of this run.
    nonce: String,
    agent: Option<AgentProcess>,
    /// Where the agent's model asks, if it is offered that.
    asking: Option<AskSocket>,
    guard: Option<Guard>,
    end: AgentEnd,
    swept_at: Option<Instant>,
    /// What the working directory was like before the agent ran.
    baseline: Option<Pending>,
    /// Bytes of the line that is being dealt with.
    taken: usize,
}

/// The agent's end has parts that come in any order.
#[derive(Default)]
struct AgentEnd {
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

impl Host {
    pub(crate) fn new() -> Host {
        Host {
            began: Instant::now(),
            nonce: tree::nonce(),
            agent: None,
            asking: None,
            guard: None,
            end: AgentEnd::default(),
            swept_at: None,
            baseline: None,
            taken: 0,
        }
    }

    /// Whether a process of the agent's is there.
    pub(super) fn has_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// When the agent's tree was gone. `None`: it is still there, or there never was one.
    pub(super) fn swept_at(&self) -> Option<Instant> {
        self.swept_at
    }

    /// The agent's output; never ready once it is read to the end.
    pub(super) fn output(&self) -> Receiver<AgentOutput> {
        let drained = self.end.stdout && self.end.stderr.is_some();
        self.agent.as_ref().filter(|_| !drained).map_or_else(never, |agent| agent.data.clone())
    }

    /// Whether a line of the agent's waits to be read.
    pub(super) fn has_output(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.data.is_empty())
    }

    /// What the agent's process does; never ready once its tree is gone.
    pub(super) fn process(&self) -> Receiver<ProcessEvent> {
        self.agent.as_ref().filter(|_| self.end.swept.is_none()).map_or_else(never, |agent| agent.process.clone())
    }

    /// What comes over the socket of the ask-server.
    pub(super) fn asks(&self) -> Receiver<AskEvent> {
        self.asking.as_ref().map_or_else(never, |socket| socket.heard.clone())
    }

    /// The socket of the ask-server.
    pub(super) fn asking(&mut self) -> Option<&mut AskSocket> {
        self.asking.as_mut()
    }

    /// When callers of the tool must next hear that they are waited for.
    pub(super) fn progress_at(&self) -> Option<Instant> {
        self.asking.as_ref().and_then(AskSocket::progress_at)
    }

    /// A line of the agent's is being dealt with.
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    /// The line is dealt with: the reader may read that much more.
    pub(super) fn taken(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if let Some(agent) = &self.agent {
            agent.taken(taken);
        }
    }

    /// The agent's own process ended: what outlived it is swept.
    pub(super) fn exited(&mut self, stopped: bool) {
        self.settle_git();
        let limit = if stopped { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
        if let Some(agent) = &self.agent {
            agent.sweep(limit);
        }
    }

    pub(super) fn swept(&mut self, swept: Swept) -> Option<Departed> {
        self.end.swept = Some(swept);
        self.swept_at = Some(Instant::now());
        self.departed()
    }

    pub(super) fn stdout_ended(&mut self) -> Option<Departed> {
        self.end.stdout = true;
        self.departed()
    }

    pub(super) fn stderr_ended(&mut self, tail: String) -> Option<Departed> {
        self.end.stderr = Some(tail);
        self.departed()
    }

    /// Once every part of the agent's end is there.
    fn departed(&mut self) -> Option<Departed> {
        let AgentEnd { swept: Some(swept), stdout: true, stderr: Some(tail) } = &self.end else { return None };
        let mut agent = self.agent.take()?;
        Some(Departed { exit: agent.reap(), leaked: swept.killed > 0, stderr: tail.clone() })
    }

    /// The files that changed since the agent was started. `None`: git could not tell. After a stop nothing is asked.
    pub(super) fn changed(&mut self, stopped: bool) -> Option<Vec<(PathBuf, Action)>> {
        let baseline = self.baseline.as_mut().filter(|_| !stopped);
        match baseline.map_or(Changes::NotARepository, |baseline| baseline.changes(GIT_LIMIT)) {
            Changes::NotARepository => Some(Vec::new()),
            Changes::Incomplete => None,
            Changes::Files(files) => Some(files),
        }
    }

    /// As subreaper this process inherits what the agent's tools leave behind; as zombies they would stay to the end.
    pub(super) fn reap_orphans(&mut self) {
        self.settle_git();
        if let Some(agent) = &self.agent {
            agent.reap_orphans();
        }
    }

    /// Ctrl-Z: the agent stops with us, and goes on with us.
    pub(super) fn suspend(&mut self, leave: impl FnOnce()) {
        self.signal(Signal::STOP);
        leave();
        stop_ourselves();
        self.signal(Signal::CONT);
    }

    fn signal(&mut self, signal: Signal) {
        self.settle_git();
        if let Some(agent) = &self.agent {
            agent.signal(signal);
        }
    }

    /// A git of ours descends from us like the agent's processes: it must be over before these are ended.
    fn settle_git(&mut self) {
        if let Some(baseline) = &mut self.baseline {
            baseline.settle();
        }
    }

    /// The run is over. Only where its terminal frame could not be delivered can anything be left.
    pub(super) fn dismiss(mut self) {
        if let Some(agent) = &self.agent {
            agent.signal(Signal::KILL);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

impl Machine for Host {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn date(&self) -> SystemTime {
        SystemTime::now()
    }

    fn variables(&self) -> Vec<(String, String)> {
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
    }

    fn directory(&self, cwd: Option<&Path>) -> Option<PathBuf> {
        let own = std::env::current_dir().ok();
        let path = own.as_deref().unwrap_or(Path::new("/")).join(cwd.unwrap_or(Path::new("")));
        // The real path: an agent reports the paths that it sees.
        path.is_dir().then(|| path.canonicalize().unwrap_or(path))
    }

    fn look(&self, path: &Path) -> PathFact {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => PathFact::Directory,
            Ok(_) => PathFact::File,
            Err(_) => PathFact::Missing,
        }
    }

    /// Regular files only: anything else, a pipe above all, could keep us waiting.
    fn read(&self, path: &Path) -> Option<String> {
        let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= VALUE_BYTES)?;
        let mut text = String::new();
        std::fs::File::open(path).ok()?.take(meta.len() + 1).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn size(&self, path: &Path) -> Option<u64> {
        path.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
    }

    fn offer(&mut self, tool: &'static str) -> Option<McpServer> {
        self.asking = AskSocket::open(tool).ok();
        self.asking.as_ref().and_then(AskSocket::server)
    }

    fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.asking.iter_mut().for_each(|socket| socket.reply(call, replies));
    }

    fn withdraw(&mut self, call: u64) {
        self.asking.iter_mut().for_each(|socket| socket.withdraw(call));
    }

    fn spawn(&mut self, launch: &Launch, settings: &Settings, stderr: bool) -> Result<(), Failure> {
        let mut tree = Tree::before_spawn(self.nonce.clone());
        if self.baseline.is_none() {
            // Without a guard the run goes on: it only matters if this process is killed.
            self.guard = Guard::start(&self.nonce, self.asking.as_ref().map(AskSocket::folder)).ok();
            self.baseline = Some(Baseline::begin(&settings.cwd, GIT_LIMIT));
        }
        if let Some(guard) = &self.guard {
            tree.spare(guard.pid());
        }
        (self.end, self.swept_at) = Default::default();
        let agent = AgentProcess::spawn(launch, settings, tree, &self.nonce, stderr)?;
        if let Some(guard) = &mut self.guard {
            guard.leader(agent.pid());
        }
        self.agent = Some(agent);
        Ok(())
    }

    fn send(&mut self, line: String) {
        if let Some(agent) = &self.agent {
            agent.send(line);
        }
    }

    fn close_input(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.close_input();
        }
    }

    fn stop(&mut self, method: Method) {
        self.signal(match method {
            Method::Terminate => Signal::TERM,
            Method::Kill => Signal::KILL,
        });
    }

    fn abort(&mut self) {
        self.settle_git();
        if let Some(mut agent) = self.agent.take() {
            agent.end_now(LEAK_LIMIT_STOPPED);
        }
    }
}

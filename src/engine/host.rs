//! The real machine: the agent's process, its pipes and its tree; the guard; git; the socket of the ask-server.

use super::ask_socket::{AskEvent, AskSocket};
use super::changes::{Waiting, Watch};
use super::machine::{Departed, Machine};
use crate::agent::{Launch, Reply};
use crate::failure::Failure;
use crate::io::files::open_regular;
use crate::io::signals::stop_ourselves;
use crate::process::batch::Lines;
use crate::process::cgroup::ControlGroup;
use crate::process::child::{AgentOutput, AgentProcess, ProcessEvent};
use crate::process::git::{Changes, Incomplete, Told};
use crate::process::guard::Guard;
use crate::process::tree::{self, Inherited, Signal, Swept, Tree};
use crate::protocol::question::PathFact;
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::words::Action;
use crate::run::{Method, Unseen};
use crossbeam_channel::{Receiver, never};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long the sweep of processes that outlived the agent may take, after its own end and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);
/// The maximum size of a file with a value, in bytes.
const VALUE_BYTES: u64 = 1 << 20;

/// How many random digits are in the name of the ask-server: agents limit the length of a tool's name.
const NAME_DIGITS: usize = 12;

/// Warnings about processes that may outlive the run.
const NO_GUARD: &str = "The guard is not running: if spektacular is killed, the agent and its tools keep running";
const NO_PROC: &str = "/proc is not available: processes that leave the agent's process group may outlive the run";

/// The machine of one run.
pub(crate) struct Host {
    began: Instant,
    /// How long this process was stopped meanwhile. The run's clock stands still then.
    stopped: Duration,
    /// Whether it was stopped before the clocks were read last.
    was_stopped: bool,
    /// The mark of this run's processes.
    nonce: String,
    agent: Option<AgentProcess>,
    /// The socket for questions of the agent's model, if it is offered the tool.
    asking: Option<AskSocket>,
    guard: Option<Guard>,
    /// Holds the agent's processes.
    cgroup: Option<ControlGroup>,
    inherited: Inherited,
    /// Warnings about processes that may outlive the run.
    troubles: Vec<&'static str>,
    end: AgentEnd,
    swept_at: Option<Instant>,
    /// The queries to git for this run.
    watch: Watch,
    /// The time of this wake-up, since the run began and as a date. All events of a wake-up have the same time.
    now: (Duration, SystemTime),
}

/// The parts of the agent's end, which arrive in any order.
#[derive(Default)]
struct AgentEnd {
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

/// The agent's end, and the changed files.
pub(super) type Looked = (Departed, Result<Vec<(PathBuf, Action)>, Unseen>);

impl Host {
    pub(crate) fn new() -> Host {
        Host {
            began: Instant::now(),
            stopped: Duration::ZERO,
            was_stopped: false,
            nonce: tree::nonce(),
            agent: None,
            asking: None,
            guard: None,
            cgroup: None,
            inherited: Inherited::default(),
            troubles: Vec::new(),
            end: AgentEnd::default(),
            swept_at: None,
            watch: Watch::default(),
            now: (Duration::ZERO, SystemTime::now()),
        }
    }

    /// A machine for a process that has these children already.
    pub(super) fn beside(inherited: &Inherited) -> Host {
        Host { inherited: inherited.clone(), ..Host::new() }
    }

    /// Whether a process of the agent exists.
    pub(super) fn has_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// When the agent's tree was gone. `None`: it still exists, or never did.
    pub(super) fn swept_at(&self) -> Option<Instant> {
        self.swept_at
    }

    /// The channel of the agent's output; never ready after its end.
    pub(super) fn output(&self) -> Receiver<AgentOutput> {
        let drained = self.end.stdout && self.end.stderr.is_some();
        self.agent.as_ref().filter(|_| !drained).map_or_else(never, |agent| agent.data.clone())
    }

    /// Whether output of the agent waits.
    pub(super) fn has_output(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.data.is_empty())
    }

    /// The channel of the process's events; never ready once its tree is gone.
    pub(super) fn process(&self) -> Receiver<ProcessEvent> {
        self.agent.as_ref().filter(|_| self.end.swept.is_none()).map_or_else(never, |agent| agent.process.clone())
    }

    /// The channel of the ask-server's events.
    pub(super) fn asks(&self) -> Receiver<AskEvent> {
        self.asking.as_ref().map_or_else(never, |socket| socket.heard.clone())
    }

    /// The socket of the ask-server.
    pub(super) fn asking(&mut self) -> Option<&mut AskSocket> {
        self.asking.as_mut()
    }

    /// When to send the next progress to the tool's callers.
    pub(super) fn progress_at(&self) -> Option<Instant> {
        self.asking.as_ref().and_then(AskSocket::progress_at)
    }

    /// Reads the clocks, after the loop has waited or a process was started. `stopped`: this process was stopped since
    /// they were read last. Nobody knows for how long, so the run's clock stands still for the whole time.
    pub(super) fn read_clocks(&mut self, stopped: impl FnOnce() -> bool) {
        let passed = self.began.elapsed();
        let stopped = stopped();
        // A stop right after the clock was read shows only in the next reading.
        if std::mem::replace(&mut self.was_stopped, stopped) || stopped {
            self.stopped = passed.saturating_sub(self.now.0);
        }
        self.now = (passed.saturating_sub(self.stopped), SystemTime::now());
    }

    /// When the run's clock will show this time.
    pub(super) fn at(&self, time: Duration) -> Instant {
        self.began + self.stopped + time
    }

    /// Lets the reader read more: the agent's lines are handled.
    pub(super) fn taken(&mut self, lines: Lines) {
        if let Some(agent) = &self.agent {
            agent.taken(lines);
        }
    }

    /// Handles the exit of the agent's own process: sweeps what outlived it, but not a git of ours.
    pub(super) fn exited(&mut self, stopped: bool) {
        self.watch.exited();
        if stopped {
            self.watch.end();
        }
        if self.watch.is_busy() {
            return self.watch.wait(Waiting::Sweep);
        }
        self.sweep(stopped);
    }

    fn sweep(&mut self, stopped: bool) {
        let limit = if stopped { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
        if let Some(agent) = &mut self.agent {
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

    /// The agent's end, once all of its parts arrived.
    fn departed(&mut self) -> Option<Departed> {
        let AgentEnd { swept: Some(swept), stdout: true, stderr: Some(tail) } = &self.end else { return None };
        let mut agent = self.agent.take()?;
        Some(Departed { exit: agent.reap(), leaked: swept.killed > 0, stderr: tail.clone() })
    }

    /// The changed files. `None`: the agent's end waits for git.
    pub(super) fn look(&mut self, departed: Departed, stopped: bool) -> Option<Looked> {
        match self.watch.compare(stopped) {
            Some(changes) => Some(self.looked(departed, changes, stopped)),
            None => {
                self.watch.wait(Waiting::Run(departed));
                None
            }
        }
    }

    fn looked(&mut self, departed: Departed, changes: Changes, stopped: bool) -> Looked {
        (departed, self.watch.files(changes, stopped))
    }

    /// Ready when git has something to say.
    pub(super) fn git(&self) -> Receiver<Told> {
        self.watch.told()
    }

    /// When the wait for git ends.
    pub(super) fn tires_at(&self) -> Option<Instant> {
        self.watch.due()
    }

    /// Handles git's answer, or its failure.
    pub(super) fn git_told(&mut self, told: Option<Told>, stopped: bool) -> Option<Looked> {
        let changes = self.watch.hear(told);
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopped),
            Some(Waiting::Run(departed)) => {
                let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
                return Some(self.looked(departed, changes, stopped));
            }
        }
        None
    }

    /// Gives up on git once the wait is over.
    pub(super) fn tire_of_git(&mut self, stopped: bool) -> Option<Looked> {
        if self.watch.due().is_none_or(|due| due > Instant::now()) {
            return None;
        }
        self.watch.end();
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopped),
            Some(Waiting::Run(departed)) => {
                return Some(self.looked(departed, Changes::Incomplete(Incomplete::Late), stopped));
            }
        }
        None
    }

    /// Whether orphans may be reaped now. A git of ours could be taken for one of them, so it finishes first.
    pub(super) fn can_reap(&mut self) -> bool {
        !self.watch.is_busy() && self.agent.as_ref().is_some_and(AgentProcess::can_reap)
    }

    /// Handles the end of a child: an orphan, which would stay a zombie until the run ends, or the guard.
    pub(super) fn children_ended(&mut self) {
        if let Some(agent) = &self.agent {
            agent.reap_orphans();
        }
        if self.guard.as_mut().is_some_and(Guard::has_ended) {
            self.guard = None;
            self.troubles.push(NO_GUARD);
        }
    }

    /// The next warning about processes that may outlive the run.
    pub(super) fn next_trouble(&mut self) -> Option<&'static str> {
        self.troubles.pop()
    }

    /// Ctrl-Z: stops and continues the agent together with this process.
    pub(super) fn suspend(&mut self, leave: impl FnOnce()) {
        self.signal(Signal::STOP);
        leave();
        self.read_clocks(|| false);
        stop_ourselves();
        self.read_clocks(|| true);
        self.signal(Signal::CONT);
    }

    fn signal(&mut self, signal: Signal) {
        // Stopping a git of ours for a while does no harm.
        let spares_git = !matches!(signal, Signal::STOP | Signal::CONT) && self.watch.is_busy();
        match &self.agent {
            Some(agent) if spares_git => agent.signal_marked(signal),
            Some(agent) => agent.signal(signal),
            None => {}
        }
    }

    /// Cleans up after the run. Something is left only if its terminal frame could not be delivered.
    pub(super) fn dismiss(mut self) {
        self.watch.end();
        if let Some(agent) = &self.agent {
            agent.signal(Signal::KILL);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        self.cgroup.iter().for_each(ControlGroup::remove);
    }
}

impl Machine for Host {
    fn now(&self) -> Duration {
        self.now.0
    }

    fn date(&self) -> SystemTime {
        self.now.1
    }

    fn variables(&self) -> Vec<(String, String)> {
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
    }

    fn directory(&self, cwd: Option<&Path>) -> Option<PathBuf> {
        let path = match cwd {
            Some(cwd) if cwd.is_absolute() => cwd.to_owned(),
            // Our own directory may be deleted.
            cwd => std::env::current_dir().ok()?.join(cwd.unwrap_or(Path::new(""))),
        };
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

    fn read(&self, path: &Path) -> Option<String> {
        let mut text = String::new();
        open_regular(path).ok()?.take(VALUE_BYTES + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= VALUE_BYTES).then_some(text)
    }

    fn size(&self, path: &Path) -> Option<u64> {
        path.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
    }

    fn nonce(&self) -> String {
        // The nonce of the tree would not do: the agent's processes have it in their environment.
        tree::nonce().chars().take(NAME_DIGITS).collect()
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
        let first = self.watch.is_idle();
        if first {
            // First, because file times are coarse, and the agent's changes must be newer than this.
            self.watch.begin(&settings.cwd);
        }
        let mut tree = Tree::before_spawn(self.nonce.clone()).beside(&self.inherited);
        if first {
            self.cgroup = ControlGroup::create(&self.nonce);
            // The run continues without a guard, which matters only if this process is killed.
            let folder = self.asking.as_ref().map(AskSocket::folder);
            self.guard = Guard::start(&self.nonce, self.cgroup.as_ref(), folder).ok();
            match (tree::sees_processes(), &self.guard) {
                (false, _) => self.troubles.push(NO_PROC),
                (true, None) => self.troubles.push(NO_GUARD),
                (true, Some(_)) => {}
            }
        }
        if let Some(guard) = &self.guard {
            tree.spare(guard.pid());
        }
        let tree = tree.within(self.cgroup.clone());
        (self.end, self.swept_at) = Default::default();
        let agent = AgentProcess::spawn(launch, settings, tree, &self.nonce, stderr)?;
        if let Some(guard) = &mut self.guard {
            guard.leader(agent.pid());
        }
        self.agent = Some(agent);
        self.read_clocks(|| false);
        Ok(())
    }

    fn send(&mut self, line: String) {
        if let Some(agent) = &self.agent {
            agent.send(line);
        }
    }

    fn unsent(&self) -> usize {
        self.agent.as_ref().map_or(0, |agent| agent.unsent())
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

    fn hurry(&mut self, stopping: bool) {
        self.watch.hurry(stopping);
    }

    fn abort(&mut self) {
        self.watch.end();
        if let Some(mut agent) = self.agent.take() {
            agent.end_now(LEAK_LIMIT_STOPPED);
        }
    }
}

//! The processes of one agent: how to find them, how to signal all of them, and how to end them.
//!
//! Agents run their tools in separate sessions, so the agent's process group holds only some of the processes that it
//! starts. The rest are found in two ways: by a random nonce in the environment, which every process of the run
//! inherits, and by descent from us, which also finds a process that cleared its environment or whose environment we
//! may not read. [`become_subreaper`] makes descent work for daemons too. If the run has a control group, that group
//! holds all of them.
//!
//! As long as we adopt the orphans of the tree, only our own descendants are read, by the kernel's lists of children, so
//! that the cost of an end does not depend on the machine's other processes. Where the system does not show the
//! processes, only the agent's process group is signalled.

mod fork_chains;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions};

use crate::system::{
    ControlGroup, Id, ProcessInfo, adopted, carries, descendants, from_pid, group_keeps_number, group_lives,
    hides_environment, keeps_descendants, processes, random, read_process, send, signal_group, start_time, to_pid,
};

pub use crate::process::variables::RUN as MARKER;
pub use crate::system::become_subreaper;
pub use rustix::process::Signal;

/// The maximum number of nonces in one marker, including our own. A run nested deeper keeps the outermost ones.
const MARKER_NONCES_MAX: usize = 32;
/// The maximum size of one inherited nonce, in bytes. A longer one is not ours and is dropped.
const NONCE_BYTES_MAX: usize = 64;
/// The number of consecutive looks that must find nothing before the tree counts as gone. One is not enough: reading
/// the processes takes time, and a process in the middle of exec shows an empty environment.
const CLEAN_LOOKS: u32 = 2;
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// The maximum time for which one round of the sweep waits for the processes that it killed, before it looks again.
const ROUND_WAIT: Duration = Duration::from_millis(100);
const CHASE_LIMIT: Duration = Duration::from_millis(200);

/// 32 random hex digits: the kernel's random bytes, or, if there are none, std's hash keys mixed with pid and time.
pub fn nonce() -> String {
    let mut bytes = [0; 16];
    if random(&mut bytes) {
        return format!("{:032x}", u128::from_ne_bytes(bytes));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let salt = (std::process::id(), now);
    let (high, low) = (RandomState::new().hash_one(salt), RandomState::new().hash_one(salt));
    format!("{high:016x}{low:016x}")
}

/// Marks the git of this process, which the sweeps of its runs must spare. Its guards end it too.
pub(super) fn nonce_of_git() -> String {
    let me = std::process::id();
    format!("git{me}x{}", start_time(me).unwrap_or_default())
}

pub(super) fn has_git() -> bool {
    let nonce = nonce_of_git();
    let is_git = |process: &ProcessInfo| !process.zombie && carries(process.id.0, MARKER, &nonce);
    descendants().unwrap_or_default().iter().any(is_git)
}

/// The value of [`MARKER`] for the processes that we spawn: the inherited nonces, then `own`, at most 32 in all. Each
/// run's sweep finds its own nonce in the list, so an outer run also ends inner ones.
pub fn marker_value(own: &str) -> String {
    let inherited = std::env::var(MARKER).unwrap_or_default();
    let is_nonce = |part: &&str| {
        (1..=NONCE_BYTES_MAX).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let outer = inherited.split(':').filter(is_nonce).take(MARKER_NONCES_MAX - 1);
    outer.chain([own]).collect::<Vec<_>>().join(":")
}

/// Blocks until the process has exited, without reaping it, so that its pid and group id stay taken until the caller
/// reaps it. Returns at once if `pid` is not an unreaped child of ours.
pub fn wait_without_reaping(pid: u32) {
    let Some(pid) = to_pid(pid) else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(pid), options).err() == Some(Errno::INTR) {}
}

/// Whether an orphan that we adopted carries this nonce, or may: a process in the middle of exec shows no environment.
pub(super) fn has_orphan_of(nonce: &str) -> bool {
    let lives = |pid| read_process(pid).is_some_and(|process| !process.zombie);
    let may_be = |pid| carries(pid, MARKER, nonce) || hides_environment(pid) && lives(pid);
    adopted().into_iter().flatten().any(may_be)
}

/// The processes that [`adopted`] lists, or, where the system does not list them, all: the caller chooses its children.
fn possible_children() -> Vec<ProcessInfo> {
    adopted().map_or_else(processes, |pids| pids.into_iter().filter_map(read_process).collect())
}

/// The children that this process had before it started any: a process that replaced itself by this program left them.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    living: Vec<Id>,
    /// Our own children that started before a run.
    ours: HashSet<u32>,
}

impl Inherited {
    /// Call it before the first process is started.
    pub fn find() -> Inherited {
        let me = std::process::id();
        let living = possible_children().into_iter().filter(|process| process.parent == me && !process.zombie);
        Inherited { living: living.map(|process| process.id).collect(), ours: HashSet::new() }
    }

    /// Adds the daemons of inherited children that exited. Call it before the first process of a run is started.
    pub(crate) fn renew(&mut self) {
        if !self.living.is_empty() {
            self.living.extend(Inherited::find().living);
        }
    }

    pub(crate) fn except(&mut self, pid: u32) {
        self.ours.insert(pid);
    }

    fn any_is_alive(&self) -> bool {
        let ids = self.living.iter().filter(|id| !self.ours.contains(&id.0));
        ids.into_iter().any(|id| read_process(id.0).is_some_and(|now| now.id == *id && !now.zombie))
    }
}

/// The process tree of an agent: a snapshot of the processes before the spawn, and the means to find those that were
/// started later.
///
/// A process belongs to the tree if its environment carries the nonce; if it is in the agent's process group; if it
/// descends from such a process; or if it descends from us and did not exist before the spawn. Descent from us proves
/// nothing where we adopt the orphans of strangers: as PID 1, and while an inherited child lives.
#[derive(Debug, Default)]
pub struct Tree {
    /// The nonce of its processes, or several with colons between them.
    nonces: String,
    me: u32,
    /// The latest start time before the spawn, in clock ticks since boot. An older process is not checked for the
    /// marker, unless it is in `before`.
    since: u64,
    by_descent: bool,
    /// Our descendants before the spawn. They are never killed unless they carry the nonce.
    before: HashSet<Id>,
    /// Our direct children before the spawn. Another part of this program reaps them.
    children_before: HashSet<Id>,
    spared: HashSet<Id>,
    /// An agent that is not our child (the guard's case), identified by its start time.
    foreign_leader: Option<Id>,
    /// Whether all processes of the tree are our descendants, so that looks need not read all processes.
    below_us: bool,
    reaps: bool,
    /// Whether the host is gone, so that the tree's orphans pass to a process other than ours.
    orphaned: bool,
    /// Contains all processes of the tree that did not leave it.
    cgroup: Option<ControlGroup>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of living processes that received SIGKILL, including the agent itself if it was alive.
    pub killed: usize,
    /// Those still alive at the limit: stuck in the kernel, or of another user, whom we may not signal.
    pub left: usize,
}

struct Look {
    living: Vec<ProcessInfo>,
    /// Children of ours that exited and that no other part reaps.
    orphans: Vec<u32>,
}

impl Tree {
    /// Call it right before the agent is spawned: it records our present descendants.
    pub fn before_spawn(nonce: String) -> Tree {
        let mut tree = Tree::new(nonce);
        tree.below_us = keeps_descendants();
        let table = tree.table();
        let mut inside = HashSet::new();
        tree.descend(tree.me, &by_parent(&table), &mut inside);
        tree.by_descent = tree.me != 1;
        tree.reaps = true;
        tree.since = table.iter().map(|process| process.id.1).max().unwrap_or(0);
        let ours = table.iter().filter(|process| inside.contains(&process.id.0));
        tree.before = ours.map(|process| process.id).collect();
        let children = table.iter().filter(|process| process.parent == tree.me);
        tree.children_before = children.map(|process| process.id).collect();
        tree
    }

    /// Ignores descent from us while an inherited child lives, because its daemons become our children too.
    #[must_use]
    pub fn beside(mut self, inherited: &Inherited) -> Tree {
        self.by_descent &= !inherited.any_is_alive();
        self
    }

    #[must_use]
    pub fn within(self, cgroup: Option<ControlGroup>) -> Tree {
        Tree { cgroup, ..self }
    }

    pub(super) fn cgroup(&self) -> Option<&ControlGroup> {
        self.cgroup.as_ref()
    }

    /// For agents that run in parallel and all descend from us. Reaps nothing: a child may belong to another agent.
    pub(super) fn by_marker(nonce: String) -> Tree {
        Tree::new(nonce)
    }

    /// The agent is not our child, so its group is signalled only while its start time matches.
    pub(super) fn of_the_dead(nonces: String, leader: Option<Id>) -> Tree {
        Tree { foreign_leader: leader, orphaned: true, ..Tree::new(nonces) }
    }

    fn new(nonces: String) -> Tree {
        Tree { nonces, me: std::process::id(), ..Tree::default() }
    }

    /// Excludes the process `pid`, such as the guard, from killing and reaping, and its descendants unless they carry
    /// the nonce. If the spared process exits and its children pass to us, they are no longer recognized as its own.
    pub fn spare(&mut self, pid: u32) {
        self.spared.extend(read_process(pid).map(|process| process.id));
    }

    /// Each process receives the signal once. `leader`: the agent's pid as long as it has not been reaped; its group
    /// has the same number. Returns the number of processes that received the signal.
    pub fn signal_all(&self, leader: Option<u32>, signal: Signal) -> usize {
        self.signal_known(leader, signal, &mut HashSet::new())
    }

    /// Like [`Tree::signal_all`], but spares processes known only by their descent from us.
    pub(super) fn signal_marked(&self, leader: Option<u32>, signal: Signal) -> usize {
        let living = self.look_by(false, leader, &mut HashSet::new()).living;
        self.signal_each(&living, leader, signal)
    }

    pub(super) fn signal_known(&self, leader: Option<u32>, signal: Signal, known: &mut HashSet<Id>) -> usize {
        let living = self.look(leader, known).living;
        self.signal_each(&living, leader, signal)
    }

    fn signal_each(&self, living: &[ProcessInfo], leader: Option<u32>, signal: Signal) -> usize {
        let group = self.group(leader);
        let group_done = signal_group(group, signal);
        let done = living.iter().filter(|process| {
            let in_group = group_done && group.map(from_pid) == Some(process.group);
            in_group || send(process.id, signal)
        });
        done.count().max(usize::from(group_done))
    }

    /// Whether all processes of the tree are in the leader's process group. A descendant of ours that shows no environment
    /// counts as a process of the tree outside that group: one in the middle of exec may prove to be one.
    pub(super) fn is_one_group(&self, leader: u32) -> bool {
        let living = |descent| self.look_by(descent, Some(leader), &mut HashSet::new()).living;
        living(false).iter().all(|process| process.group == leader)
            && (!self.by_descent
                || living(true).iter().all(|process| process.group == leader || !hides_environment(process.id.0)))
    }

    /// Includes the agent. Zombies do not count.
    pub fn members(&self) -> Vec<u32> {
        let living = self.look(None, &mut HashSet::new()).living;
        living.iter().map(|process| process.id.0).collect()
    }

    pub(super) fn any_left(&self, leader: Option<u32>, known: &mut HashSet<Id>) -> bool {
        !self.look(leader, known).living.is_empty() || group_lives(self.group(leader))
    }

    /// Leaves `leader` (the agent, which the caller reaps) and spared processes. Returns the number of reaped orphans.
    pub fn reap_orphans(&self, leader: Option<u32>) -> usize {
        reap(&self.orphans(&possible_children(), leader))
    }

    /// Kills the tree's control group. Then sends SIGKILL in rounds until the tree is empty or `limit` has passed, and
    /// reaps adopted orphans in each round. If a later round finds new processes, it stops the whole tree before killing
    /// it, so that nothing can fork between the look and the kill. Only the time limits the number of rounds.
    ///
    /// `leader` is the agent's pid as long as the caller has not reaped it. The sweep never reaps it, and as a zombie
    /// it counts neither as killed nor as left. At least one round runs, even with a limit of zero.
    pub fn sweep(&self, leader: Option<u32>, limit: Duration) -> Swept {
        self.sweep_known(leader, limit, &mut HashSet::new())
    }

    /// Sweeps once the tree's processes have ended, or `grace` has passed. Those that end by themselves count as killed.
    pub(super) fn sweep_after(&self, grace: Duration, leader: Option<u32>, limit: Duration) -> Swept {
        let living = if grace.is_zero() { Vec::new() } else { self.look(leader, &mut HashSet::new()).living };
        if !living.is_empty() {
            wait_until_gone(&living, grace);
        }
        let swept = self.sweep(leader, limit);
        Swept { killed: swept.killed.max(living.len()), ..swept }
    }

    pub(super) fn sweep_known(&self, leader: Option<u32>, limit: Duration, known: &mut HashSet<Id>) -> Swept {
        let start = Instant::now();
        let grouped = self.cgroup.as_ref().map_or(0, |cgroup| cgroup.kill(limit));
        let mut killed = HashSet::new();
        let (mut clean, mut rounds) = (0, 0);
        loop {
            let met = self.chase(leader, &mut killed, CHASE_LIMIT.min(limit.saturating_sub(start.elapsed())));
            let Look { mut living, orphans } = self.look(leader, known);
            let reaped = reap(&orphans);
            if living.is_empty() {
                // The group may contain a process that the system does not show.
                signal_group(self.group(leader), Signal::KILL);
                clean = clean_looks(clean, met || reaped > 0);
                if clean == CLEAN_LOOKS {
                    return Swept { killed: grouped + killed.len(), left: 0 };
                }
                if start.elapsed() >= limit + ROUND_WAIT {
                    return Swept { killed: grouped + killed.len(), left: usize::from(met) };
                }
                thread::sleep(PAUSE_MIN);
                continue;
            }
            clean = 0;
            if rounds > 0 && start.elapsed() >= limit {
                return Swept { killed: grouped + killed.len(), left: living.len() };
            }
            if rounds > 0 && living.iter().any(|process| !killed.contains(&process.id)) {
                living = self.freeze(leader, known, limit.saturating_sub(start.elapsed()));
            }
            rounds += 1;
            let sent = living.iter().filter(|process| send(process.id, Signal::KILL));
            killed.extend(sent.map(|process| process.id));
            // Signal the group once more as a whole, to reach processes forked since the look.
            signal_group(self.group(leader), Signal::KILL);
            wait_until_gone(&living, ROUND_WAIT.min(limit.saturating_sub(start.elapsed())));
        }
    }

    /// Sends SIGSTOP until a look finds no unstopped process, or `limit` has passed. Returns the living processes.
    fn freeze(&self, leader: Option<u32>, known: &mut HashSet<Id>, limit: Duration) -> Vec<ProcessInfo> {
        let start = Instant::now();
        let mut stopped = HashSet::new();
        loop {
            let living = self.look(leader, known).living;
            let mut fresh = false;
            for process in living.iter().filter(|process| stopped.insert(process.id)) {
                fresh |= send(process.id, Signal::STOP);
            }
            if !fresh || start.elapsed() >= limit {
                return living;
            }
        }
    }

    /// `known`: those that earlier looks found, which stay in the tree even if their environment or parent changes.
    fn look(&self, leader: Option<u32>, known: &mut HashSet<Id>) -> Look {
        self.look_by(self.by_descent, leader, known)
    }

    fn table(&self) -> Vec<ProcessInfo> {
        self.below_us.then(descendants).flatten().unwrap_or_else(processes)
    }

    fn look_by(&self, descent: bool, leader: Option<u32>, known: &mut HashSet<Id>) -> Look {
        let table = self.table();
        let children = by_parent(&table);
        let group = self.group(leader).map(from_pid);
        let grouped: HashSet<u32> = self.cgroup.iter().flat_map(ControlGroup::members).collect();
        let mut inside = HashSet::new();
        if descent {
            self.descend(self.me, &children, &mut inside);
        }
        for process in table.iter().filter(|process| self.may_signal(process)) {
            // The environment is checked last because reading it takes time.
            if !inside.contains(&process.id.0)
                && (known.contains(&process.id)
                    || group == Some(process.group)
                    || grouped.contains(&process.id.0)
                    || self.is_marked(process))
            {
                inside.insert(process.id.0);
                self.descend(process.id.0, &children, &mut inside);
            }
        }
        let orphans = self.orphans(&table, leader);
        let mut living = table;
        living.retain(|process| inside.contains(&process.id.0) && self.may_signal(process));
        known.extend(living.iter().map(|process| process.id));
        Look { living, orphans }
    }

    /// Adds the descendants of `root` to `inside`, but does not descend through processes that belong to others.
    fn descend(&self, root: u32, children: &HashMap<u32, Vec<&ProcessInfo>>, inside: &mut HashSet<u32>) {
        let mut open = vec![root];
        while let Some(parent) = open.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                let foreign =
                    child.id.0 == self.me || self.before.contains(&child.id) || self.spared.contains(&child.id);
                if !foreign && inside.insert(child.id.0) {
                    open.push(child.id.0);
                }
            }
        }
    }

    fn is_marked(&self, process: &ProcessInfo) -> bool {
        let is_old = process.id.1 < self.since && !self.before.contains(&process.id);
        !is_old && carries(process.id.0, MARKER, &self.nonces)
    }

    fn may_signal(&self, process: &ProcessInfo) -> bool {
        let pid = process.id.0;
        pid > 1 && pid != self.me && !process.zombie && !self.spared.contains(&process.id)
    }

    fn orphans(&self, table: &[ProcessInfo], leader: Option<u32>) -> Vec<u32> {
        let orphans = table.iter().filter(|process| {
            self.reaps
                && process.zombie
                && process.parent == self.me
                && leader != Some(process.id.0)
                && !self.spared.contains(&process.id)
                && !self.children_before.contains(&process.id)
        });
        orphans.map(|process| process.id.0).collect()
    }

    /// The leader's group, if its number cannot have been reused: the leader is an unreaped child of ours, or it is
    /// the foreign leader and its start time still matches.
    fn group(&self, leader: Option<u32>) -> Option<Pid> {
        let leader = to_pid(leader?)?;
        if leader.is_init() {
            return None;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let is_child = || rustix::process::waitid(WaitId::Pid(leader), options).is_ok();
        let is_pinned = match self.foreign_leader {
            Some(id) => id.0 == from_pid(leader) && group_keeps_number(id),
            None => is_child(),
        };
        is_pinned.then_some(leader)
    }
}

/// `traces`: whether the look found a process that had exited, which may have left a child that started after the look.
fn clean_looks(before: u32, traces: bool) -> u32 {
    if traces { 0 } else { before + 1 }
}

/// Reaps each orphan by its pid: waiting for any child could take the agent's status from its owner.
fn reap(orphans: &[u32]) -> usize {
    let ended = |pid: &&u32| {
        let pid = to_pid(**pid);
        pid.is_some() && matches!(rustix::process::waitpid(pid, WaitOptions::NOHANG), Ok(Some(_)))
    };
    orphans.iter().filter(ended).count()
}

fn wait_until_gone(killed: &[ProcessInfo], limit: Duration) {
    let start = Instant::now();
    let mut pause = PAUSE_MIN;
    let lives =
        |process: &ProcessInfo| read_process(process.id.0).is_some_and(|now| now.id == process.id && !now.zombie);
    while start.elapsed() < limit {
        thread::sleep(pause);
        if !killed.iter().any(lives) {
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn by_parent(table: &[ProcessInfo]) -> HashMap<u32, Vec<&ProcessInfo>> {
    let mut children: HashMap<u32, Vec<&ProcessInfo>> = HashMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(process);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::{clean_looks, nonce};

    #[test]
    fn a_process_that_had_exited_restarts_the_count_of_clean_looks() {
        let counts = [false, true, false, false].into_iter().scan(0, |clean, traces| {
            *clean = clean_looks(*clean, traces);
            Some(*clean)
        });
        assert_eq!(counts.collect::<Vec<_>>(), [1, 0, 1, 2]);
    }

    #[test]
    fn nonces_are_32_hex_digits_and_differ() {
        let (one, two) = (nonce(), nonce());
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }
}

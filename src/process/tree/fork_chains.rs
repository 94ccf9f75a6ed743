//! The chase: ends processes that fork and exit at once. Such a process is gone before a look at all processes reaches
//! it, so the chase looks only at the newest ones, as fast as possible.

use super::{MARKER, Tree, reap};
use crate::system::{Id, adopted, carries, newest_pid, read_process, to_pid};
use rustix::process::{Signal, kill_process};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Consecutive looks at our own children that must find nothing: one can miss a child that starts or ends meanwhile.
const QUIET_LOOKS: u32 = 3;
/// The chase of foreign children ends after this time without one: each is visible only once it has forked.
const QUIET: Duration = Duration::from_millis(10);
/// The maximum number of new pids that one look checks. The look at all processes handles the rest.
const NEW_PIDS_MAX: usize = 256;

impl Tree {
    /// Kills until no new process appears, or `limit` has passed. Returns whether it found any.
    pub(super) fn chase(&self, leader: Option<u32>, killed: &mut HashSet<Id>, limit: Duration) -> bool {
        match (self.reaps, self.orphaned) {
            (true, _) => self.chase_adopted(leader, killed, limit),
            (false, true) => self.chase_newest(killed, limit),
            (false, false) => false,
        }
    }

    /// Every orphan of the tree becomes our child at once, so one look finds each chain of forks.
    fn chase_adopted(&self, leader: Option<u32>, killed: &mut HashSet<Id>, limit: Duration) -> bool {
        let start = Instant::now();
        let kept: HashSet<u32> = self.before.iter().chain(&self.spared).map(|id| id.0).chain(leader).collect();
        let (mut quiet, mut met) = (0, false);
        while quiet < QUIET_LOOKS {
            let children = adopted().unwrap_or_default().into_iter().filter(|pid| !kept.contains(pid));
            let ended = children.filter(|pid| self.end_child(*pid, killed)).count();
            quiet = if ended > 0 { 0 } else { quiet + 1 };
            met |= ended > 0;
            if start.elapsed() >= limit {
                break;
            }
        }
        met
    }

    /// No other part reaps it, so its pid cannot be reused. Returns false if it was killed before and is still exiting.
    fn end_child(&self, pid: u32, killed: &mut HashSet<Id>) -> bool {
        let Some(target) = to_pid(pid) else { return false };
        if reap(&[pid]) == 1 {
            return true;
        }
        let ours = self.by_descent || carries(pid, MARKER, &self.nonces);
        let sent = ours && kill_process(target, Signal::KILL).is_ok();
        // Read after the kill, which must be fast. The zombie stays until it is reaped here.
        sent && read_process(pid).is_some_and(|process| killed.insert(process.id))
    }

    fn chase_newest(&self, killed: &mut HashSet<Id>, limit: Duration) -> bool {
        let start = Instant::now();
        let (mut active, mut met) = (start, false);
        let Some(mut old) = newest_pid() else { return false };
        while active.elapsed() < QUIET && start.elapsed() < limit {
            let Some(new) = newest_pid() else { break };
            for pid in (old + 1..=new).rev().take(NEW_PIDS_MAX) {
                // A pid that was just assigned is not assigned again before the kill.
                if carries(pid, MARKER, &self.nonces) {
                    (active, met) = (Instant::now(), true);
                    let sent = to_pid(pid).is_some_and(|target| kill_process(target, Signal::KILL).is_ok());
                    killed.extend(read_process(pid).filter(|_| sent).map(|process| process.id));
                } else if read_process(pid).is_none() {
                    // The process is gone already: it may have been a link of the chain.
                    active = Instant::now();
                }
            }
            old = new;
        }
        met
    }
}

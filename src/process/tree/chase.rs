//! The chase: ends processes that fork and exit at once. Such a process is gone before a look at all processes reaches
//! it, so the chase looks at the newest ones alone, as fast as it can.

use super::{Tree, reap};
use crate::process::info::{Id, adopted, carries, newest_pid, read_process, to_pid};
use rustix::process::{Signal, kill_process};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How many looks in a row at our own children must meet nobody before the chase ends. One can miss a child that
/// starts or ends meanwhile.
const QUIET_LOOKS: u32 = 3;
/// How long the chase of another's children continues without meeting one: each is seen only once it has forked.
const QUIET: Duration = Duration::from_millis(10);
/// Most new pids that one look checks. More than that are left to the look at all processes.
const NEW_PIDS_MAX: usize = 256;

impl Tree {
    /// Kills until nobody new comes, or `limit` has passed. Returns whether it met anybody.
    pub(super) fn chase(&self, leader: Option<u32>, killed: &mut HashSet<Id>, limit: Duration) -> bool {
        match (self.reaps, self.orphaned) {
            (true, _) => self.chase_adopted(leader, killed, limit),
            (false, true) => self.chase_newest(killed, limit),
            (false, false) => false,
        }
    }

    /// Every orphan of the tree becomes our child at once, so one look meets each chain of forks.
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

    /// Reaps an adopted child that has exited, or kills one that lives and is ours. Nobody else reaps it, so its pid
    /// stays its own. Returns false if it was killed before and still ends.
    fn end_child(&self, pid: u32, killed: &mut HashSet<Id>) -> bool {
        let Some(target) = to_pid(pid) else { return false };
        if reap(&[pid]) == 1 {
            return true;
        }
        let ours = self.by_descent || carries(pid, &self.nonce);
        let sent = ours && kill_process(target, Signal::KILL).is_ok();
        // Read after the kill, which must be fast; the zombie stays until it is reaped here.
        sent && read_process(pid).is_some_and(|process| killed.insert(process.id))
    }

    /// Looks at every pid that the kernel gives out.
    fn chase_newest(&self, killed: &mut HashSet<Id>, limit: Duration) -> bool {
        let start = Instant::now();
        let (mut active, mut met) = (start, false);
        let Some(mut old) = newest_pid() else { return false };
        while active.elapsed() < QUIET && start.elapsed() < limit {
            let Some(new) = newest_pid() else { break };
            for pid in (old + 1..=new).rev().take(NEW_PIDS_MAX) {
                // A pid that was given out this moment is not given out again before the kill.
                if carries(pid, &self.nonce) {
                    (active, met) = (Instant::now(), true);
                    let sent = to_pid(pid).is_some_and(|target| kill_process(target, Signal::KILL).is_ok());
                    killed.extend(read_process(pid).filter(|_| sent).map(|process| process.id));
                } else if read_process(pid).is_none() {
                    // Gone already: it may have been a link of the chain.
                    active = Instant::now();
                }
            }
            old = new;
        }
        met
    }
}

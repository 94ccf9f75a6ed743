//! The work that Claude Code goes on with after a turn, or has scheduled.
//!
//! Facts (measured on 2.1.330): `background_tasks_changed` lists the running tasks, such as commands, monitors and
//! sub-agents. After `task_notification` about one of them, Claude Code begins a turn with an init message, unless it
//! has told the model already; the state idle says that no turn is due. The results of ScheduleWakeup and CronCreate
//! have the time and the id of what is scheduled, and `command_lifecycle` with a `wakeup_source` comes before its turn.

use crate::agent::{AgentEvent, DriverOutput};
use crate::json::Object;
use crate::protocol::outbound::Text;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct BackgroundWork {
    tasks: BTreeMap<String, String>,
    /// The time of the scheduled wake-up, in milliseconds.
    wakeup: Option<u64>,
    jobs: BTreeMap<String, Job>,
    /// The work that has ended or fired, and about which the model hears in the next turn.
    due: Option<String>,
    told: Vec<String>,
}

#[derive(Debug)]
struct Job {
    name: String,
    is_recurring: bool,
    /// The time of its next turn, in milliseconds.
    next: Option<u64>,
}

const WAKEUP: &str = "a wake-up";

impl BackgroundWork {
    pub(super) fn is_pending(&self) -> bool {
        !self.told.is_empty()
    }

    pub(super) fn changed(&mut self, message: &Object<'_>, out: &mut DriverOutput) {
        let task = |task: Object<'_>| {
            let name = task.string("description").or_else(|| task.string("task_type"));
            Some((task.string("task_id")?, name.unwrap_or_default()))
        };
        self.tasks = message.objects("tasks").filter_map(task).collect();
        self.report(out);
    }

    /// The list without the task follows.
    pub(super) fn ended(&mut self, message: &Object<'_>) {
        let task = message.str("task_id").and_then(|id| self.tasks.get(&*id));
        self.due = task.cloned().or(self.due.take());
    }

    pub(super) fn scheduled(&mut self, result: &Object<'_>, out: &mut DriverOutput) {
        if let Some(time) = result.count("scheduledFor") {
            self.wakeup = Some(time).filter(|time| *time > 0);
        } else if let Some(id) = result.string("id") {
            match result.string("humanSchedule") {
                Some(name) => {
                    let is_recurring = result.bool("recurring") == Some(true);
                    self.jobs.insert(id, Job { name, is_recurring, next: result.count("nextFireAt") });
                }
                None => _ = self.jobs.remove(&id),
            }
        }
        self.report(out);
    }

    pub(super) fn fired(&mut self, message: &Object<'_>) {
        match message.str("wakeup_source").as_deref() {
            Some("loop_wakeup") => {
                // The running turn may have set another one meanwhile.
                let time = message.count("scheduled_for");
                let fired = self.wakeup.take_if(|next| time.is_none_or(|time| time == *next));
                self.due = fired.map(|_| WAKEUP.to_owned()).or(self.due.take());
            }
            Some(_) => {
                let single = self.jobs.iter().filter(|(_, job)| !job.is_recurring);
                let first = single.min_by_key(|(_, job)| job.next).map(|(id, _)| id.clone());
                let fired = first.and_then(|id| self.jobs.remove(&id));
                self.due = fired.map(|job| job.name).or(self.due.take());
            }
            None => {}
        }
    }

    /// The turn has begun, or Claude Code rests without it.
    pub(super) fn none_due(&mut self, out: &mut DriverOutput) {
        self.due = None;
        self.report(out);
    }

    /// An interrupt cancels a wake-up.
    pub(super) fn interrupted(&mut self, out: &mut DriverOutput) {
        self.wakeup = None;
        self.report(out);
    }

    fn report(&mut self, out: &mut DriverOutput) {
        let jobs = self.jobs.values().map(|job| &job.name);
        let named = self.tasks.values().chain(jobs).chain(&self.due).cloned();
        let work: Vec<String> = named.chain(self.wakeup.map(|_| WAKEUP.to_owned())).collect();
        if work != self.told {
            out.events.push(AgentEvent::Background(work.iter().map(|name| Text::from(name.as_str())).collect()));
            self.told = work;
        }
    }
}

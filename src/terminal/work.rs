//! The agent's current activity for the status line; times, counts and costs for people.

use crate::clean::one_line;
use crate::protocol::ids::CallId;
use crate::protocol::outbound::{Place, Progress, Text, Usage};
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{Status, ToolState};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The time from which the agent's work counts. `None`: nothing goes on.
    pub(super) began: Option<Instant>,
    /// The time spent waiting for the person so far, and the beginning of the current wait.
    awaited: Duration,
    awaited_since: Option<Instant>,
    name: String,
    status: Option<Status>,
    limit_ends: Option<UtcTime>,
    /// Whether the last status was a second word about the start.
    starts_slowly: bool,
    /// The running tools, by the order in which they began.
    tools: BTreeMap<u64, Tool>,
    /// The places of the running tools in that order, by id.
    places: HashMap<CallId, u64>,
    /// The number of tools that ever began.
    count: u64,
    /// The label of the phase, and whether its commands run before its work.
    pub(super) phase: Option<(String, bool)>,
    /// The cost so far, in US dollars, of a run that has phases.
    pub(super) cost: Option<f64>,
}

#[derive(Debug)]
struct Tool {
    title: String,
    files: Vec<String>,
    began: Instant,
    /// The time spent waiting for the person before.
    awaited: Duration,
}

impl Activity {
    pub(super) fn begin(&mut self, name: String, now: Instant) {
        (self.began, self.name) = (Some(now), name);
    }

    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }

    /// The line of a second word about the start, which takes longer than usual.
    pub(super) fn slow_start(&mut self, progress: &Progress) -> String {
        if std::mem::take(&mut self.starts_slowly) { one_line(progress.text.shown()) + "\n" } else { String::new() }
    }

    /// Returns the titles of the tools that never ended.
    pub(super) fn end(&mut self) -> Vec<String> {
        self.began = None;
        self.places.clear();
        std::mem::take(&mut self.tools).into_values().map(|tool| tool.title).collect()
    }

    pub(super) fn status(&mut self, status: Status, until: Option<UtcTime>, now: Instant) {
        self.limit_ends = until;
        self.awaited = self.awaited(now);
        self.awaited_since = (status == Status::WaitingForInput).then_some(now);
        self.starts_slowly = self.status.replace(status) == Some(Status::Starting) && status == Status::Starting;
    }

    fn awaited(&self, now: Instant) -> Duration {
        self.awaited + self.awaited_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Whether a running tool changes this file.
    pub(super) fn changes(&self, file: &Text) -> bool {
        self.tools.values().any(|tool| tool.files.iter().any(|path| path == file.shown()))
    }

    /// `files`: those that the tool changes. Returns its duration without the time in which the person was awaited.
    pub(super) fn tool(
        &mut self,
        id: CallId,
        title: &str,
        files: &[Place],
        state: ToolState,
        now: Instant,
    ) -> Duration {
        let awaited = self.awaited(now);
        if state != ToolState::Started {
            let ended = self.places.remove(&id).and_then(|place| self.tools.remove(&place));
            return ended.map_or(Duration::ZERO, |tool| {
                now.saturating_duration_since(tool.began).saturating_sub(awaited - tool.awaited)
            });
        }
        if !self.places.contains_key(&id) {
            self.count += 1;
            self.places.insert(id, self.count);
            let files = files.iter().map(|place| place.path.shown().to_owned()).collect();
            self.tools.insert(self.count, Tool { title: title.to_owned(), files, began: now, awaited });
        }
        Duration::ZERO
    }

    pub(super) fn line(&self, now: Instant) -> Option<String> {
        let elapsed = span(now.saturating_duration_since(self.began?));
        let activity = self.activity();
        Some(match (&self.phase, self.cost) {
            (None, _) => format!("[{elapsed}] {activity}"),
            (Some((phase, _)), None) => format!("[{elapsed}] {phase}: {activity}"),
            (Some((phase, _)), Some(cost)) => format!("[{elapsed}, ${cost:.2}] {phase}: {activity}"),
        })
    }

    pub(super) fn activity(&self) -> String {
        let name = &self.name;
        match (self.status, self.tools.last_key_value()) {
            (Some(Status::Cancelling), _) => format!("stopping {name}"),
            (Some(Status::Retrying), _) => format!("{name} is retrying"),
            (Some(Status::WaitingForLimit), _) => self.limit_line(),
            (_, Some((_, tool))) if self.tools.len() == 1 => tool.title.clone(),
            (_, Some((_, last))) => format!("{} tools, {}", self.tools.len(), last.title),
            (None | Some(Status::Starting), None) => format!("starting {name}"),
            (Some(Status::WaitingForAgent), None) => format!("{name} works in the background"),
            (_, None) => format!("{name} is working"),
        }
    }

    fn limit_line(&self) -> String {
        let name = &self.name;
        let Some(ends) = self.limit_ends else { return format!("waiting for {name}'s limit to end") };
        let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let left = span(ends.since_1970().saturating_sub(date));
        format!("{name}'s limit ends at {} UTC, in {left}: Ctrl-C stops", ends.of_day())
    }

    /// The time at which the status line changes next.
    pub(super) fn changes_at(&self, now: Instant) -> Option<Instant> {
        let began = self.began?;
        let seconds = now.saturating_duration_since(began).as_secs() + 1;
        began.checked_add(Duration::from_secs(seconds))
    }
}

/// A duration for people, such as `1m 05s`.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

pub(super) fn sum(time: Duration, usage: &Usage) -> String {
    let cached = usage.cached_input_tokens.filter(|count| *count > 0);
    let cached = cached.map(|count| format!(" ({} cached)", grouped(count))).unwrap_or_default();
    let parts = [
        Some(format!("after {}", span(time))),
        usage.input_tokens.map(|count| format!("{} tokens in{cached}", grouped(count))),
        usage.output_tokens.map(|count| format!("{} out", grouped(count))),
        usage.cost_usd.map(|cost| if cost > 0.0 && cost < 0.1 { format!("${cost:.4}") } else { format!("${cost:.2}") }),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{Activity, CallId, span, sum};
    use crate::protocol::outbound::Usage;
    use crate::protocol::words::{Status, ToolState};
    use std::time::{Duration, Instant};

    #[test]
    fn a_tools_duration_excludes_the_time_in_which_the_person_was_awaited() {
        let (mut work, began) = (Activity::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        work.status(Status::Running, None, at(0));
        work.tool(CallId(1), "Run ls", &[], ToolState::Started, at(1));
        work.status(Status::WaitingForInput, None, at(2));
        work.tool(CallId(2), "Run pwd", &[], ToolState::Started, at(50));
        work.status(Status::Running, None, at(60));
        assert_eq!(work.tool(CallId(1), "", &[], ToolState::Completed, at(64)), Duration::from_secs(5));
        assert_eq!(work.tool(CallId(2), "", &[], ToolState::Completed, at(64)), Duration::from_secs(4));
    }

    #[test]
    fn times_counts_and_costs_are_shown_in_short_form() {
        for (seconds, shown) in [(0, "0s"), (59, "59s"), (65, "1m 05s"), (3599, "59m 59s"), (7265, "2h 01m")] {
            assert_eq!(span(Duration::from_secs(seconds)), shown);
        }
        let usage = Usage {
            input_tokens: Some(1_234_567),
            output_tokens: Some(89),
            cached_input_tokens: Some(1000),
            cost_usd: Some(0.0123),
            ..Usage::default()
        };
        let time = Duration::from_millis(1900);
        assert_eq!(sum(time, &usage), "after 1s, 1,234,567 tokens in (1,000 cached), 89 out, $0.0123");
        assert_eq!(sum(time, &Usage::default()), "after 1s");
    }
}

//! `agents verify`: plays rows with the agent that is installed here, each against a scripted model in a place of its own,
//! and compares what it keeps with what is known about it.

mod client;
mod rows;

use self::client::{not_played, play};
use self::rows::{Further, ROWS, RowResult, VerifyRow};
use super::agent_check::Check;
use crate::agent::endpoint::Endpoint;
use crate::agent::registry::{Agent, Promise, Tested};
use crate::clean::one_line;
use crate::cli::Output;
use crate::io::output::print;
use crate::io::panic_channel;
use crate::json::to_line;
use crate::process::guard::GuardedScratch;
use crate::process::scratch::unusable;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crossbeam_channel::{bounded, unbounded};
use serde_json::{Value, json};
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::thread::{available_parallelism, scope};
use std::time::{Duration, Instant};

/// The maximum number of agents at the same time, each of which takes hundreds of megabytes.
const AT_ONCE: usize = 4;

pub(super) fn verify(agent: &Agent, check: &Check, output: Output) -> Result<u8, Failure> {
    let Some(endpoint) = agent.endpoint else {
        let message = format!(
            "{} cannot be verified offline: spektacular does not know how to point it at another provider.",
            agent.name
        );
        return Err(Failure::new(Code::Usage, message));
    };
    if let Some(problem) = &check.problem {
        return Err(Failure::new(Code::AgentNotFound, format!("{} is not available: {problem}.", agent.name)));
    }
    let folder = GuardedScratch::new().map_err(|error| unusable(&error))?;
    let panics = panic_channel::listen();
    let report = Report { agent, version: check.version.as_deref(), output };
    let mut shown = output == Output::Json || print(&report.heading());
    let mut broken = Vec::new();
    play_all(agent, endpoint, folder.path(), |row, result, time| {
        let found = row.judge(&result?);
        let known = known(row, agent.tested);
        if !passes(known, &found) {
            broken.push(row.name.word());
        }
        shown = shown && print(&report.line(row, &found, known, time));
        Ok(())
    })
    .map_err(|error| not_played(&error))?;
    if panics.try_recv().is_ok() {
        return Err(Failure::of_our_own());
    }
    shown = shown && print(&report.summary(&broken));
    Ok(if shown { u8::from(!broken.is_empty()) } else { EXIT_UNDELIVERED })
}

/// Plays the rows, several at the same time, and passes them on in their order. Error: the first one.
fn play_all(
    agent: &Agent,
    endpoint: &Endpoint,
    folder: &Path,
    mut show: impl FnMut(&VerifyRow, io::Result<rows::SeenRun>, Duration) -> io::Result<()>,
) -> io::Result<()> {
    let (todo, next) = unbounded();
    let rows = ROWS.iter().filter(|row| row.further != Further::Model || endpoint.model.is_some());
    let results: Vec<_> = rows.map(|row| (row, bounded(1))).collect();
    // Many agents repeat a request that failed for minutes: those rows begin first.
    let (slow, others): (Vec<_>, Vec<_>) = results.iter().partition(|(row, _)| row.is_refused());
    for (row, (sender, _)) in slow.into_iter().chain(others) {
        let _ = todo.send((*row, sender.clone()));
    }
    drop(todo);
    scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, NonZero::get).min(AT_ONCE) {
            let next = next.clone();
            scope.spawn(move || {
                for (row, sender) in next {
                    let begun = Instant::now();
                    let seen = play(row, agent, endpoint, folder);
                    let _ = sender.send((seen, begun.elapsed()));
                }
            });
        }
        results.into_iter().try_for_each(|(row, (_, result))| {
            let (seen, time) = result.recv().map_err(|_| io::Error::from(io::ErrorKind::Other))?;
            show(row, seen, time)
        })
    })
}

/// Whether the agent is known to keep the row's promise. `None`: nobody tested it.
fn known(row: &VerifyRow, tested: Option<Tested>) -> Option<bool> {
    match row.name.promise() {
        None => Some(true),
        Some(_) => tested.map(|tested| !tested.fails.contains(&row.name)),
    }
}

fn passes(known: Option<bool>, found: &RowResult) -> bool {
    match found {
        RowResult::Kept => true,
        RowResult::Refused(_) | RowResult::NotKept(_) => known == Some(false),
        RowResult::Acted(_) => false,
    }
}

impl RowResult {
    fn word(&self) -> &'static str {
        match self {
            RowResult::Kept => "kept",
            RowResult::Refused(_) => "refused",
            RowResult::NotKept(_) => "not_kept",
            RowResult::Acted(_) => "acted",
        }
    }

    fn text(&self) -> &str {
        match self {
            RowResult::Kept => "",
            RowResult::Refused(text) | RowResult::NotKept(text) => text,
            RowResult::Acted(text) => text,
        }
    }
}

struct Report<'a> {
    agent: &'a Agent,
    version: Option<&'a str>,
    output: Output,
}

impl Report<'_> {
    fn tested(&self) -> Option<&'static str> {
        self.agent.tested.map(|tested| tested.version)
    }

    fn heading(&self) -> String {
        let version = self.version.unwrap_or("of an unknown version");
        let tested = self.tested().map_or("untested so far".to_owned(), |tested| format!("tested: {tested}"));
        format!("{} {version} ({tested})\n", one_line(&self.agent.display_name))
    }

    fn line(&self, row: &VerifyRow, found: &RowResult, known: Option<bool>, time: Duration) -> String {
        let passed = passes(known, found);
        let known_word = known.map(|keeps| if keeps { "kept" } else { "not_kept" });
        match self.output {
            Output::Json => {
                to_line(
                    &json!({"kind": "row", "row": row.name.word(), "promise": row.name.promise().map(Promise::word),
                    "known": known_word, "found": found.word(), "passed": passed, "text": found.text(),
                    "duration_ms": u64::try_from(time.as_millis()).unwrap_or(u64::MAX)}),
                ) + "\n"
            }
            Output::Cli => {
                let verdict = match (passed, known) {
                    (false, _) => "BROKEN",
                    (true, Some(false)) if *found == RowResult::Kept => "better",
                    (true, Some(false)) => "known",
                    (true, Some(true) | None) => "",
                };
                let cells = [row.name.word(), known_word.unwrap_or("unknown"), found.word(), verdict]
                    .map(|cell| cell.replace('_', " "));
                let [name, known, found_word, verdict] = &cells;
                let text = one_line(found.text());
                format!("  {name:<10} known: {known:<9} here: {found_word:<9} {verdict:<7} {text}")
                    .trim_end()
                    .to_owned()
                    + "\n"
            }
        }
    }

    fn summary(&self, broken: &[&str]) -> String {
        match self.output {
            Output::Json => {
                let summary: Value = json!({"kind": "summary", "agent": self.agent.name, "version": self.version,
                    "tested": self.tested(), "passed": broken.is_empty(), "broken": broken});
                to_line(&summary) + "\n"
            }
            Output::Cli if broken.is_empty() => "It keeps every promise that it is known to keep.\n".into(),
            Output::Cli => format!("Broken: {}.\n", broken.join(", ")),
        }
    }
}

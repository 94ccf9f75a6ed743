//! The invariants of every simulated run: those of all frames, and those of its end.

use super::world::{Frame, World};
use crate::support::check::{self, Checked, Seen, hold};
use spektacular::agent::Line;
use spektacular::protocol::inbound::Flaw;
use spektacular::protocol::words::Source;
use spektacular::run::{Event, Origin, StopSignal};
use std::collections::BTreeSet;
use std::time::Duration;

/// Checks the frames of a run and its exit code.
pub(crate) fn frames(frames: &[Frame], exit_code: Option<u8>) -> Checked {
    let mut seen = Vec::with_capacity(frames.len());
    for Frame { line, value } in frames {
        seen.push(Seen { raw: line.strip_suffix('\n').ok_or("a frame without its newline")?, value });
    }
    check::frames(&seen, exit_code.map(i32::from))
}

/// The questions that wait for an answer.
pub(crate) fn open_questions(frames: &[Frame]) -> BTreeSet<&str> {
    let mut open = BTreeSet::new();
    for Frame { value, .. } in frames {
        let id = value["payload"]["question_id"].as_str().unwrap_or_default();
        match value["type"] == "run.question" {
            true => drop(open.insert(id)),
            false => drop(open.remove(id)),
        }
    }
    open
}

/// Checks the frames, and also that the run ignores everything after its end and was stopped in time.
pub(crate) fn world(world: &mut World) -> Checked {
    frames(&world.frames, world.run().exit_code())?;
    in_time(world)?;
    deaf(world)
}

/// From the first stop to the last kill, at most 3 s pass. After a result, the agent first has 2 s to exit.
fn in_time(world: &mut World) -> Checked {
    let stopping = world.run().stopping();
    let host = world.host_mut();
    let Some((at, _)) = host.stops.iter().find(|(_, signal)| *signal == StopSignal::Kill) else { return Ok(()) };
    let by_itself = host.closed.map(|closed| closed + Duration::from_secs(5));
    let due = stopping.map_or(by_itself, |stopping| Some(stopping + Duration::from_secs(3)));
    hold!(due.is_some_and(|due| *at <= due), "killed at {at:?}, due at {due:?}");
    Ok(())
}

/// After the end, no event has an effect.
fn deaf(world: &mut World) -> Checked {
    let later = [
        Event::Line(Line::Text("{\"type\":\"result\",\"is_error\":false,\"result\":\"late\"}".into())),
        Event::Line(Line::TooLong),
        Event::Cancel(Origin::default(), None, Source::Orchestrator),
        Event::Cancel(Origin::default(), None, Source::Signal),
        Event::Malformed(Origin::default(), Flaw::Form),
        Event::Unsupported(Origin::default()),
        Event::InputEnded,
        Event::OutputLost,
        Event::Spawned,
        Event::Tick,
    ];
    let (code, due) = (world.run().exit_code(), world.run().next_deadline());
    hold!(due.is_none(), "the run waits for {due:?} after its end");
    for (at, event) in later.into_iter().enumerate() {
        let traces = world.traces();
        world.step(event);
        hold!(world.traces() == traces, "event {at} after the end has an effect");
    }
    hold!(world.run().exit_code() == code, "the exit code changed after the end");
    Ok(())
}

//! Recordings of real agents, played in-process: no process, no thread, no clock.
//!
//! A case is a folder below testdata/ with a recording, what the orchestrator sent, and the frames that came out.

pub(crate) mod case;
pub(crate) mod invariants;
pub(crate) mod normal;
pub(crate) mod player;
pub(crate) mod process;
pub(crate) mod world;

//! `spektacular acp`: any agent of ours as an agent of the Agent Client Protocol, version 1, for editors and other
//! clients. `reference.md` describes the mapping in both directions.
//!
//! ```text
//! client's lines ─┐                ┌── pure ──┐   ┌─ lines for the client
//! frames of runs ─┼─► serve: loop ─►│ AcpServer│──►┤  lines for a run
//! ends of runs ───┘                └──────────┘   └─ start a run, end a run
//! ```
//!
//! The translator is an orchestrator like any other: each session has a child, `spektacular adhoc --output json`, which
//! holds its conversation. So a crash or a stall of one session touches no other, and nothing here knows an agent. The
//! child cancels its run at the end of its stdin, so that no way in which this process can end leaves an agent behind.
//!
//! [`AcpServer`] holds the sessions and has no clock, thread or channel; a [`ServerHost`] answers its questions about the disk.

mod content;
mod history;
mod local_host;
mod methods;
mod questions;
mod refusal;
mod runs;
pub(crate) mod serve;
mod server;
mod session;
mod settings;
mod shared;
mod store;
#[cfg(test)]
mod tests;
mod updates;

pub(crate) use local_host::{LocalServerHost, Lookups};
pub(crate) use server::AcpServer;

use serde_json::Value;

const PROTOCOL_VERSION: u64 = 1;
const SESSIONS: usize = 32;
/// The maximum number of children, including those that are ending.
const CHILDREN: usize = 2 * SESSIONS;
/// The maximum number of prompts that wait in a session.
const PROMPTS_WAITING: usize = 32;
const WAITING_BYTES: usize = 64 << 20;
const PARAMETERS_BYTES: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) agent: String,
    pub(crate) display_name: String,
    pub(crate) images: bool,
    /// Whether the agent takes MCP servers, or runs without those of the client.
    pub(crate) servers: bool,
    pub(crate) http: bool,
    pub(crate) sse: bool,
    /// Whether a conversation with the agent is possible. If not, a session has one turn.
    pub(crate) conversation: bool,
    /// Some agents tell only once they run.
    pub(crate) resume: bool,
    pub(crate) login: bool,
    /// Whether the configuration limits the time of a question.
    pub(crate) question_limit: bool,
    /// The configured permissions: a word, or `custom` for a policy by category.
    pub(crate) permissions: String,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    /// The configured mode of the agent.
    pub(crate) mode: Option<String>,
    /// The fields of run.start from the command line.
    pub(crate) fields: Vec<(&'static str, Value)>,
}

//! The features of an agent: what it can do, and how its process behaves.

use super::limit::{Keeper, Keepers, Limit};
use super::{Preference, ResultWay};
use crate::protocol::outbound::Capabilities;
use crate::protocol::words::McpTransport;
use std::time::Duration;

/// The time in which most agents exit.
pub const LEAVE: Duration = Duration::from_secs(2);

/// The features of an agent in a run, as far as its driver knows them now: some agents tell only once they run.
#[derive(Clone, Debug)]
pub struct Features {
    pub capabilities: Capabilities,
    pub keepers: Keepers,
    pub preferences: Vec<Preference>,
    pub transports: &'static [McpTransport],
    pub images: bool,
    /// The agent's name for the tool `ask_user`, if the tool needs a server process: `Settings::ask_server`.
    pub ask_tool: Option<&'static str>,
    pub result_way: ResultWay,
    pub reports_tools: bool,
    pub process_per_turn: bool,
    /// Whether the agent reacts to an interrupt or the end of its stdin. If not, a stop begins with SIGTERM.
    pub listens: bool,
    /// The time in which the agent exits when it is told to. Zero: it does not, and the run stops its process at once.
    pub leave_time: Duration,
    /// Whether the agent's stderr may be shown. Some agents write prompts and keys to it.
    pub stderr_is_fit: bool,
}

impl Features {
    /// The features that most drivers have: an agent that stays, listens and reports its tools, with a result in its text,
    /// no images and no preferences.
    pub fn usual(capabilities: Capabilities, keeper: impl Fn(Limit) -> Keeper) -> Features {
        Features {
            capabilities,
            keepers: Keepers::by(keeper),
            preferences: Vec::new(),
            transports: McpTransport::ALL,
            images: false,
            ask_tool: None,
            result_way: ResultWay::Text,
            reports_tools: true,
            process_per_turn: false,
            listens: true,
            leave_time: LEAVE,
            stderr_is_fit: true,
        }
    }
}

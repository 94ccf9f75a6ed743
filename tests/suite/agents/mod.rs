//! The agents: what is installed, how each dialect is driven, and what their recordings replay to.

mod anomalies;
mod every_agent;
pub(crate) mod golden;
mod images;
mod installed;
mod kept;
mod lines;
mod mcp_servers;
mod results;
pub(crate) mod verify;

//! The protocol: messages in, frames out, and the types of both. It knows no agent.

mod artifact;
pub mod failure;
pub mod fields;
pub mod frame;
pub mod ids;
pub mod image;
pub mod inbound;
pub mod json;
pub(crate) mod limited;
pub mod limits;
mod mcp_server;
pub(crate) mod origins;
pub mod outbound;
pub(crate) mod parts;
pub(crate) mod pattern;
pub mod question;
pub(crate) mod read;
pub mod redacted;
pub mod request;
pub mod scope;
pub mod text;
pub mod typed;
pub(crate) mod unknown;
pub(crate) mod variables;
mod wire;
pub mod words;
pub mod workflow;

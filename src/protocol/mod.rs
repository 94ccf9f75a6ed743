//! The protocol: messages in, frames out, and the types of both. It knows no agent.

pub mod frame;
pub mod inbound;
pub mod json;
pub mod limits;
pub mod outbound;
pub mod parts;
pub mod question;
pub mod request;
pub mod scope;
mod wire;
pub mod words;

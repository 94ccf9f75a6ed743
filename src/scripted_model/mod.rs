//! A model on loopback that plays a scenario, for agents that run without an account, a key or a network. It speaks the
//! API of a provider, [`Wire`], as far as agents use it.

mod http;
mod scenario;
mod server;
mod tools;
mod wire;

pub use self::scenario::ModelScenario;
pub use self::server::{HeardRequest, ScriptedModel};
pub use crate::agent::endpoint::Wire;

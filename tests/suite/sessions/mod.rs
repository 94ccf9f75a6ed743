//! Sessions and conversations: continuing, exporting, and an agent's own interface.

mod background;
mod checkpoints;
pub(crate) mod conversations;
mod export;
pub(crate) mod fallback;
pub(crate) mod limits;
mod oneshot;
mod open;
mod stored;

//! Questions: who answers them, when nobody does, and how a model without a tool for questions asks.

mod answers;
mod ask_server;
mod asked;
mod declined;
mod unanswered;
mod unattended;

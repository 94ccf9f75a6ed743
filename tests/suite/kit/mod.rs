//! The demo agent, reports, completions, integrations and releases.

mod demo;
mod habits;
mod integrate;
mod releases;
mod report;
mod tab;

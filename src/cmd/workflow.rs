//! The commands that are workflows: one run, made of several parts.

use crate::agent::registry::Agent;
use crate::config::Places;
use crate::engine::{Engine, Job, Peer};
use crate::protocol::request::Settings;
use crate::protocol::words::WorkflowKind;
use crate::protocol::workflow::WorkflowOptions;
use crate::workflow::implement;
use crate::workflow::outer::{Ended, Outer};
use std::path::PathBuf;

/// A workflow as the command line asks for it.
#[derive(Clone, Debug)]
pub(super) struct AskedWorkflow {
    pub(super) kind: WorkflowKind,
    pub(super) options: WorkflowOptions,
    /// Where a relative path starts that the command line names. `None`: the path comes with run.start.
    pub(super) from: Option<PathBuf>,
}

/// Carries out a workflow.
pub(super) fn run(asked: AskedWorkflow, engine: Engine, job: Job, peer: &mut dyn Peer) -> Ended {
    let AskedWorkflow { kind, options, from } = asked;
    let admit = move |settings: &mut Settings, _: &Agent, options| implement::admit(settings, options, from.as_deref());
    match Outer::open(engine, job, peer, (kind, options), admit) {
        Ok((outer, target)) => implement::carry(outer, target, &Places::of_process()),
        Err(ended) => ended,
    }
}

//! The payload of a run.start and its parser.

pub use super::fields::{DEFAULT_START_TIMEOUT, Options, Settings};
pub use super::mcp_server::{Launcher, McpAccess, McpServer};
use super::misspelt::meant;
pub use super::permissions::Permissions;
use super::read::is_null;
pub use super::read::{Problem, Seconds, is_environment_name};
use super::review;
use super::schema::OutputSchema;
use super::unknown::UnknownNames;
use super::words::Level;
use super::workflow::WorkflowOptions;
use crate::json::Fields;
use crate::redact::Redactor;
use crate::suggest::{nearest, shown};
use serde_json::value::RawValue;

#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// A `null` field counts as absent.
    pub options: Options,
    /// The first invalid field.
    pub wrong: Option<Problem>,
    pub unknown: UnknownNames,
    /// The object `workflow`, which only the workflows use.
    pub workflow: Option<Box<RawValue>>,
}

impl Settings {
    /// `next`: the settings of the run of the agent that takes over.
    pub(crate) fn taken_over_by(&self, next: &Settings) -> Settings {
        Settings {
            agent: next.agent.clone(),
            model: next.model.clone(),
            agent_args: next.agent_args.clone(),
            attached: next.attached.clone(),
            sandbox: next.sandbox.clone(),
            own_rules: next.own_rules.clone(),
            fallback: next.fallback.clone(),
            mcp_servers: next.mcp_servers.clone(),
            ask_server: next.ask_server.clone(),
            nonce: next.nonce.clone(),
            session_id: None,
            fork: false,
            session_cost_usd: None,
            ..self.clone()
        }
    }

    /// These settings for a review: it reads, and says what it finds as one result.
    pub(crate) fn for_review(&self) -> Settings {
        let schema = RawValue::from_string(review::SCHEMA.to_owned()).ok();
        Settings {
            permissions: Permissions::ReadOnly,
            output_schema: schema.and_then(|schema| OutputSchema::read(&schema).ok()),
            // Only the findings count, which the workflow shows.
            progress: Level::Minimal,
            interactive: false,
            question_markers: false,
            // These are for the work.
            system_prompt: None,
            mode: None,
            judge: None,
            attached: Vec::new(),
            fallback: Vec::new(),
            session_id: None,
            session_cost_usd: None,
            ..self.clone()
        }
    }
}

impl Options {
    pub fn parse(payload: Option<&RawValue>) -> Payload {
        let mut read = Payload::default();
        let Some(fields) = payload.and_then(|raw| Fields::parse(raw.get())) else { return read };
        read.wrong = fields.repeats_one_of(Options::NAMES.iter().copied()).then_some(Problem::Repeated);
        for (name, raw) in fields.iter() {
            if name == "workflow" {
                if is_repeated(raw) || read.workflow.is_some() {
                    read.wrong = Some(Problem::Repeated);
                }
                read.workflow = Some(raw.to_owned()).filter(|raw| !is_null(raw));
                continue;
            }
            if !Options::NAMES.contains(&name) {
                if let Some(meant) = meant(name).filter(|_| !is_null(raw)) {
                    read.wrong
                        .get_or_insert(Problem::Misspelled { typed: shown(name, &Redactor::new()), meant: meant.name });
                    continue;
                }
                read.unknown.add(name, || nearest(name, Options::NAMES.iter().copied()).map(str::to_owned));
                continue;
            }
            if is_null(raw) {
                continue;
            }
            match (read.options.set(name, raw), &read.wrong) {
                // A repeated key anywhere makes the message malformed, which takes precedence over an invalid field.
                (Err(Problem::Repeated), _) => read.wrong = Some(Problem::Repeated),
                (Err(problem), None) => read.wrong = Some(problem),
                _ => {}
            }
        }
        read
    }
}

fn is_repeated(raw: &RawValue) -> bool {
    Fields::parse(raw.get()).is_some_and(|fields| fields.repeats_one_of(WorkflowOptions::NAMES.iter().copied()))
}

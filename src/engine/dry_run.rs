//! The dry run: the command line, directory and environment that a run would start, without starting anything.

use super::local_host::LocalHost;
use super::prepare;
use crate::agent::{AgentEvent, DriverOutput, limit};
use crate::config::Layers;
use crate::process::environment::environment;
use crate::process::program::find_program;
use crate::process::sandbox::confine;
use crate::process::tree::nonce;
use crate::protocol::failure::Failure;
use crate::protocol::request::{Options, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::words::Warning;
use crate::redact::Redactor;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const SHOWN_BYTES: usize = 1000;

/// The process that a run would start. Texts are redacted, and long ones cut; the environment is shown by names only.
#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    pub agent: String,
    pub driver: &'static str,
    /// The program, as configured, and its arguments.
    pub command: Vec<String>,
    /// The path of the program. `None`: it was not found.
    pub path: Option<String>,
    pub cwd: String,
    pub images: Vec<String>,
    /// Variables that the agent gets and this process lacks, or has with another value.
    pub env_set: Vec<String>,
    pub env_removed: Vec<String>,
    #[serde(serialize_with = "in_words_of_frames")]
    pub warnings: Vec<Sentence>,
}

fn in_words_of_frames<S: Serializer>(warnings: &[Sentence], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(warnings.iter().map(|warning| warning.text().shown()))
}

/// Error: the failure of a run.start that cannot be carried out.
pub(crate) fn plan(
    start: Options,
    layers: &Layers,
    warnings: &[(Warning, String)],
    change: impl FnOnce(&mut Settings) -> Result<(), Failure>,
) -> Result<Plan, Failure> {
    let origins = layers.origins.without(&start);
    let (options, agent) = layers.under(start);
    let agent = agent.as_deref();
    let model_warnings = layers.model_warnings(&options, agent);
    let mut host = LocalHost::new();
    let (redactor, _) = prepare::redactor_for(prepare::redactor(&host, false), &options, agent, &host);
    let mut ready = prepare::settings(options, None, agent, (&layers.agents, &origins), &host)?;
    change(&mut ready.settings)?;
    let mut start = ready.start(Redactor::new(), 0, &mut host);
    let settings = start.settings.clone();
    let mut out = DriverOutput::default();
    let launch = limit::launch(&settings, start.driver.as_mut(), &mut out)?;
    // A dry run does not fail because a program is missing.
    let found = find_program(&launch, &settings, &nonce()).ok();
    let mut theirs =
        found.as_ref().map_or_else(|| environment(&launch, &settings, &nonce()), |it| it.environment.clone());
    if let Some(domain) = settings.sandbox.domain() {
        // The folder gets its name at the start.
        confine(&mut theirs, domain, &settings, Path::new(""));
    }
    let path = found.as_ref().map(|found| found.program.clone());
    let launch = found.map_or(Cow::Borrowed(&launch), |found| found.launch);
    let ours: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let names = |from: &BTreeMap<OsString, OsString>, differs: &dyn Fn(&OsString) -> bool| {
        from.keys().filter(|name| differs(name)).map(|name| name.to_string_lossy().into_owned()).collect()
    };
    Ok(Plan {
        agent: settings.agent,
        driver: launch.driver,
        command: launch.words().map(|word| shown(&redactor, word)).collect(),
        path: path.filter(|path| path.is_file()).map(|path| path.to_string_lossy().into_owned()),
        cwd: settings.cwd.to_string_lossy().into_owned(),
        images: settings.attached.iter().map(|image| shown(&redactor, &image.path.to_string_lossy())).collect(),
        env_set: names(&theirs, &|name| ours.get(name) != theirs.get(name)),
        env_removed: names(&ours, &|name| !theirs.contains_key(name)),
        warnings: warnings
            .iter()
            .map(|(_, text)| text.clone())
            .chain(model_warnings)
            .chain(start.missing)
            .map(Sentence::from)
            .chain(out.events.into_iter().filter_map(warning))
            .map(|warning| warning.into_redacted(&redactor))
            .collect(),
    })
}

fn warning(event: AgentEvent) -> Option<Sentence> {
    let AgentEvent::Warning(_, text) = event else { return None };
    Some(text)
}

/// Redacts and cuts a word, in this order, because half a secret could not be found.
fn shown(redactor: &Redactor, word: &str) -> String {
    let clean = redactor.redact(word);
    if clean.len() <= SHOWN_BYTES {
        return clean.into_owned();
    }
    let head = &clean[..clean.floor_char_boundary(SHOWN_BYTES)];
    format!("{head}… ({} bytes)", word.len())
}

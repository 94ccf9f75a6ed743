//! `open`: an agent's own interface gets the terminal.

use super::{complain, configured, named};
use crate::agent::native::{self, Wish};
use crate::cli::Open;
use crate::failure::{Code, Failure};
use crate::process::handover::{Handover, hand_over, has_terminal};
use crate::protocol::request::Options;
use std::path::PathBuf;

/// Runs the command; returns the agent's exit code, or that of the failure that kept it from running.
pub fn run(typed: &Open) -> u8 {
    open(typed).unwrap_or_else(|failure| complain(&failure))
}

fn open(typed: &Open) -> Result<u8, Failure> {
    let layers = configured()?;
    let agent = named(&layers, typed.agent.as_deref(), " (from --agent)")?;
    let wished = Options { agent: Some(agent.name.clone()), model: typed.model.clone(), ..Options::default() };
    let (options, _) = layers.under(wished);
    let native = native::of(agent);
    let Some(open) = &native.open else {
        let message = format!("{} has no interface that open can start: use adhoc.", agent.name);
        return Err(Failure::new(Code::InvalidRequest, message));
    };
    if !has_terminal() {
        let message = "open needs a terminal on stdin and stdout. Without one use adhoc.";
        return Err(Failure::new(Code::Usage, message));
    }
    let wish = Wish {
        prompt: typed.prompt.as_deref(),
        model: options.model.as_deref(),
        session: typed.session.as_deref(),
        allow: typed.allow,
        args: &typed.args,
    };
    let args = open.arguments(&agent.base, &wish)?;
    let cwd = directory(typed)?;
    let env: Vec<(String, String)> = typed.env.clone().into_iter().collect();
    hand_over(&Handover { base: &agent.base, args: &args, env: &env, env_remove: open.env_remove, cwd: &cwd })
}

fn directory(typed: &Open) -> Result<PathBuf, Failure> {
    let own = std::env::current_dir().ok();
    let wanted = typed.cwd.clone().unwrap_or_default();
    let cwd = own.map_or(wanted.clone(), |own| own.join(&wanted));
    let message = "--cwd must be the path of an existing directory.";
    cwd.is_dir().then_some(cwd).ok_or_else(|| Failure::new(Code::InvalidRequest, message))
}

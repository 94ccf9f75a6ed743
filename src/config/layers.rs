//! The configured agents, and the defaults that lie over and under a run.start.

use super::origins::Origins;
use crate::agent::registry::{Agent, Agents, DEFAULT};
use crate::protocol::request::Options;
use std::borrow::Cow;

/// The key `model` of a file.
#[derive(Clone, Debug)]
pub struct FileModel {
    pub model: String,
    /// The agent that the file, or else a file below it, chooses for runs. The model belongs to it.
    pub agent: String,
    /// The model of an untrusted file does not reach an agent whose command line takes the model as it is.
    pub trusted: bool,
}

#[derive(Clone, Debug)]
pub struct Layers {
    pub agents: Agents,
    /// Defaults that override an agent's own.
    pub above: Options,
    /// Defaults that an agent's own override.
    pub below: Options,
    /// The models that files set, which override `below`. A later one yields to an earlier one.
    pub models: Vec<FileModel>,
    pub origins: Origins,
}

impl Layers {
    pub fn new(agents: Agents) -> Layers {
        let (above, below) = (Options::default(), Options::default());
        Layers { agents, above, below, models: Vec::new(), origins: Origins::default() }
    }

    pub fn default_agent(&self) -> &str {
        self.above.agent.as_deref().or(self.below.agent.as_deref()).unwrap_or(DEFAULT)
    }

    /// A run.start with all defaults, and its agent. `None`: the agent is unknown.
    pub fn under(&self, start: Options) -> (Options, Option<Cow<'_, Agent>>) {
        let options = start.over(self.above.clone());
        let agent = self.agents.find(options.agent.as_deref().unwrap_or(self.default_agent()));
        let own = agent.as_deref().map(Agent::defaults).unwrap_or_default();
        let file = agent.as_deref().and_then(|agent| self.models.iter().find(|file| self.is_for(file, agent)));
        let file = Options { model: file.map(|file| file.model.clone()), ..Options::default() };
        (options.over(own).over(file).over(self.below.clone()), agent)
    }

    fn belongs_to(&self, file: &FileModel, agent: &Agent) -> bool {
        self.agents.find(&file.agent).is_some_and(|owner| owner.name == agent.name)
    }

    fn is_for(&self, file: &FileModel, agent: &Agent) -> bool {
        self.belongs_to(file, agent) && (file.trusted || !agent.takes_model_as_it_is())
    }

    /// A file's model that does not reach the agent, and a model that the agent's vendor does not have: a warning each.
    pub fn model_warnings(&self, options: &Options, agent: Option<&Agent>) -> Vec<String> {
        let Some(agent) = agent else { return Vec::new() };
        let used = self.models.iter().position(|file| self.is_for(file, agent));
        let by_default =
            options.model.is_none() || used.is_some_and(|at| options.model.as_ref() == Some(&self.models[at].model));
        let ignored = self.models.first().filter(|_| used != Some(0) && by_default).map(|file| {
            if self.belongs_to(file, agent) {
                return "`model` of the project's configuration has no effect on this agent, because the file is not \
                        trusted. Read it, then run `spektacular config trust`"
                    .to_owned();
            }
            let (owner, name) = (&file.agent, &agent.name);
            format!(
                "`model` of the configuration has no effect on this agent, because it belongs to {owner}, the default \
                 agent. Set agents.{name}.model for this agent, and agents.{owner}.model in place of `model`"
            )
        });
        ignored.into_iter().chain(options.model.as_deref().and_then(|model| agent.foreign_model(model))).collect()
    }
}

//! The configured agents, and the defaults that lie over and under a run.start.

use super::origins::Origins;
use crate::agent::registry::{Agent, Agents, DEFAULT};
use crate::protocol::request::Options;
use std::borrow::Cow;

/// The configured agents and defaults.
#[derive(Clone, Debug)]
pub struct Layers {
    pub agents: Agents,
    /// Defaults that override an agent's own.
    pub above: Options,
    /// Defaults that an agent's own override.
    pub below: Options,
    /// The model of a project's file that is not trusted. Overrides `below`, but not for an agent whose command line
    /// takes the model as it is.
    pub guest_model: Option<String>,
    pub origins: Origins,
}

impl Layers {
    /// These agents without configured defaults.
    pub fn new(agents: Agents) -> Layers {
        let (above, below) = (Options::default(), Options::default());
        Layers { agents, above, below, guest_model: None, origins: Origins::default() }
    }

    /// The agent for runs that name none.
    pub fn default_agent(&self) -> &str {
        self.above.agent.as_deref().or(self.below.agent.as_deref()).unwrap_or(DEFAULT)
    }

    /// A run.start with all defaults, and its agent. `None`: the agent is unknown.
    pub fn under(&self, start: Options) -> (Options, Option<Cow<'_, Agent>>) {
        let options = start.over(self.above.clone());
        let agent = self.agents.find(options.agent.as_deref().unwrap_or(self.default_agent()));
        let own = agent.as_deref().map(Agent::defaults).unwrap_or_default();
        let is_unfit = agent.as_deref().is_some_and(Agent::takes_model_as_it_is);
        let guest = self.guest_model.clone().filter(|_| !is_unfit);
        let guest = Options { model: guest, ..Options::default() };
        (options.over(own).over(guest).over(self.below.clone()), agent)
    }

    /// The warning that the untrusted model has no effect on the agent of a run with these options.
    pub fn guest_warning(&self, options: &Options, agent: Option<&Agent>) -> Option<String> {
        let by_default = options.model.as_ref().is_none_or(|model| self.below.model.as_ref() == Some(model));
        let ignored = self.guest_model.is_some() && by_default && agent?.takes_model_as_it_is();
        let text = "`model` of the project's configuration has no effect on this agent, because the file is not \
                    trusted. Read it, then run `spektacular config trust`";
        ignored.then(|| text.to_owned())
    }
}

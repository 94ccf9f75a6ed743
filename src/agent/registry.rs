//! The agents, by name. To add a built-in agent that speaks ACP, see [`acp::agents`]. To add a dialect, add a module
//! beside this one with a [`Driver`], a name in [`Dialect`] and in [`Dialect::EXPECTED`], and an arm to each `match` of
//! [`Agent`].

#[cfg(test)]
mod tests;

use super::acp;
use super::built_in::BuiltIn;
pub use super::built_in::{Dialect, Promise, Tested, VerifyRowName};
use super::demo;
use super::demo::catalog::{self, ScenarioChoice};
use super::endpoint::{self, Endpoint};
pub use super::lines::LinesSetup;
use super::native::{self, Native};
use super::vendor::Vendor;
use super::{Base, Driver, DriverOutput, Features, Program, claude, codex, lines, pi};
use crate::protocol::outbound::Capabilities;
use crate::protocol::request::{McpAccess, McpServer, Options, Settings};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::suggest::{Typed, Unknown};
use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub name: String,
    pub aliases: Vec<String>,
    pub display_name: String,
    pub dialect: Dialect,
    pub base: Base,
    /// The model of a run that names none.
    pub model: Option<String>,
    /// The completion marker of a run that names none.
    pub completion_marker: Option<String>,
    /// For the dialect of lines.
    pub lines: LinesSetup,
    /// Files and folders of its own, which it may change in a sandbox.
    pub state: Vec<String>,
    /// Separated by blanks. `None`: unknown, or the dialect defines it.
    pub version: Option<&'static str>,
    /// `None`: nobody checked it, or its entry was changed.
    pub tested: Option<Tested>,
    pub endpoint: Option<&'static Endpoint>,
}

static OWN_DIALECTS: &[BuiltIn] = &[
    BuiltIn {
        aliases: &["claude-code"],
        dialect: Dialect::Claude,
        args: &[],
        tested: Some(Tested { version: "2.1.330", fails: &[] }),
        endpoint: Some(&endpoint::CLAUDE_CODE),
        ..BuiltIn::program("claude", "Claude Code", "npm install -g @anthropic-ai/claude-code")
    },
    BuiltIn {
        dialect: Dialect::Codex,
        args: &[],
        tested: Some(Tested { version: "0.169.0", fails: &[] }),
        endpoint: Some(&endpoint::CODEX),
        ..BuiltIn::program("codex", "Codex", "npm install -g @openai/codex")
    },
    BuiltIn {
        dialect: Dialect::Pi,
        args: &[],
        package: Some("@earendil-works/pi-coding-agent@1.6.0"),
        tested: Some(Tested { version: "1.6.0", fails: &[] }),
        endpoint: Some(&pi::ENDPOINT),
        ..BuiltIn::program("pi", "pi", "npm install -g @earendil-works/pi-coding-agent")
    },
    BuiltIn {
        dialect: Dialect::Demo,
        command: None,
        args: &["demo", "play"],
        tested: Some(Tested { version: env!("CARGO_PKG_VERSION"), fails: &[] }),
        ..BuiltIn::program(DEMO, "Demo", "built in")
    },
];

fn built_in() -> impl Iterator<Item = &'static BuiltIn> {
    OWN_DIALECTS.iter().chain(acp::agents::entries())
}

const DEMO: &str = "demo";
pub const DEFAULT: &str = "claude";

impl From<&BuiltIn> for Agent {
    fn from(entry: &BuiltIn) -> Agent {
        let env = entry.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let base = Base {
            program: entry.command.map_or(Program::Myself, |command| Program::Command(command.into())),
            args: entry.args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.collect(),
            install: Some(entry.install.into()),
            package: entry.package,
        };
        Agent {
            aliases: entry.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            display_name: entry.display_name.into(),
            version: entry.version,
            tested: entry.tested,
            endpoint: entry.endpoint,
            ..Agent::new(entry.name, entry.dialect, base)
        }
    }
}

impl Agent {
    pub fn new(name: &str, dialect: Dialect, base: Base) -> Agent {
        Agent { name: name.into(), display_name: name.into(), dialect, base, ..Agent::default() }
    }

    pub fn defaults(&self) -> Options {
        Options { model: self.model.clone(), completion_marker: self.completion_marker.clone(), ..Options::default() }
    }

    pub fn capabilities(&self, mut settings: Settings) -> Capabilities {
        let mut driver = self.driver();
        // The capabilities depend only on whether there is a server.
        let access = McpAccess::Stdio { command: String::new(), args: Vec::new(), env: [].into() };
        let server = |_| McpServer::new("", access);
        settings.ask_server = driver.features(&settings).ask_tool.map(server);
        // The capabilities are the same if the driver refuses the settings.
        let _ = driver.launch(&settings, &mut DriverOutput::default());
        driver.features(&settings).capabilities
    }

    /// The facts about this agent outside its dialect: those of the dialect, or those of the program if the dialect has
    /// several agents.
    pub fn native(&self) -> &'static Native {
        match (self.dialect, &self.base.program) {
            (Dialect::Lines | Dialect::Demo, _) | (_, Program::Myself) => &native::NONE,
            (Dialect::Claude, _) => &claude::NATIVE,
            (Dialect::Codex, _) => &codex::NATIVE,
            (Dialect::Pi, _) => &pi::NATIVE,
            (Dialect::Acp, program) => acp::agents::find_profile(program, &self.name).native,
        }
    }

    /// `None`: the agent plays no scenario from a file.
    pub fn scenario_file(&self) -> Option<&str> {
        let name = self.name.strip_prefix(catalog::PREFIX).filter(|_| self.dialect == Dialect::Demo)?;
        match ScenarioChoice::of(name)? {
            ScenarioChoice::File(path) => Some(path),
            ScenarioChoice::BuiltIn(_) => None,
        }
    }

    pub fn features(&self, settings: &Settings) -> Features {
        self.driver().features(settings)
    }

    /// Whether the agent's command line takes the model as it is, so that only a trusted configuration may set it.
    pub fn takes_model_as_it_is(&self) -> bool {
        match self.dialect {
            Dialect::Lines => true,
            Dialect::Acp | Dialect::Claude | Dialect::Codex | Dialect::Demo | Dialect::Pi => false,
        }
    }

    /// The warning that a model is one of another vendor. `None`: it is not, as far as its name tells.
    pub fn foreign_model(&self, model: &str) -> Option<String> {
        let vendor = self.native().vendor?;
        let other = Vendor::of_model(model).filter(|other| *other != vendor)?;
        let (name, other, own) = (&self.display_name, other.word(), vendor.word());
        Some(format!("The model belongs to {other}, but {name} runs models of {own}"))
    }

    pub fn driver(&self) -> Box<dyn Driver> {
        let base = self.base.clone();
        match self.dialect {
            Dialect::Claude => Box::new(claude::Claude::new(base)),
            Dialect::Codex => Box::new(codex::Codex::new(base)),
            Dialect::Demo => Box::new(demo::Demo::new(base)),
            Dialect::Pi => Box::new(pi::Pi::new(base)),
            Dialect::Acp => Box::new(acp::Acp::new(base, acp::agents::find_profile(&self.base.program, &self.name))),
            Dialect::Lines => Box::new(lines::LinesDriver::new(base, self.lines.clone())),
        }
    }
}

/// All agents, sorted by name.
#[derive(Clone, Debug)]
pub struct Agents(Vec<Agent>);

pub(crate) const ANY_COMMAND: &str = "To run your own command as an agent, add it once: spektacular config set --global agents.mine \
    '{\"driver\":\"lines\",\"command\":\"my-command\"}'. Then use --agent mine.";

impl Agents {
    pub fn built_in() -> Agents {
        let mut agents: Vec<Agent> = built_in().map(Agent::from).collect();
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        Agents(agents)
    }

    /// The agent with this name or alias, or the demo agent with this scenario.
    pub fn find(&self, name: &str) -> Option<Cow<'_, Agent>> {
        // Only built-in agents have an alias.
        let aliased = || built_in().find(|agent| agent.aliases.contains(&name)).map(|agent| agent.name);
        let agent = self.named(name).or_else(|| self.named(aliased()?));
        agent.map(Cow::Borrowed).or_else(|| self.with_scenario(name).map(Cow::Owned))
    }

    fn named(&self, name: &str) -> Option<&Agent> {
        self.0.binary_search_by(|known| (*known.name).cmp(name)).ok().map(|at| &self.0[at])
    }

    /// The demo agent with the scenario in a name like `demo:hang`.
    fn with_scenario(&self, name: &str) -> Option<Agent> {
        let scenario = name.strip_prefix(catalog::PREFIX)?;
        let demo = self.named(DEMO).filter(|agent| agent.dialect == Dialect::Demo)?;
        let mut agent = Agent { name: name.to_owned(), ..demo.clone() };
        agent.base.args.push(ScenarioChoice::of(scenario)?.word().to_owned());
        Some(agent)
    }

    /// Has the demo agent play the scenario in this file under the name of each agent.
    pub(crate) fn play(&mut self, scenario: &str) {
        let demo = Agents::built_in().with_scenario(&format!("{}{scenario}", catalog::PREFIX));
        for agent in &mut self.0 {
            let played = demo.clone().unwrap_or_else(|| agent.clone());
            *agent = Agent { name: agent.name.clone(), display_name: agent.display_name.clone(), ..played };
        }
    }

    pub fn put(&mut self, agent: Agent) {
        match self.0.binary_search_by(|known| known.name.cmp(&agent.name)) {
            Ok(at) => self.0[at] = agent,
            Err(at) => self.0.insert(at, agent),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter()
    }

    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|agent| std::iter::once(&agent.name).chain(&agent.aliases)).map(String::as_str)
    }

    /// `from`: where the name comes from, with a leading space.
    pub(crate) fn unknown(&self, name: &str, from: &str) -> Sentence {
        if let Some(scenario) = name.strip_prefix(catalog::PREFIX) {
            return catalog::unknown(scenario, from).into();
        }
        let unknown = Unknown { what: "agent", dashes: "", typed: Typed::Value(name), place: from };
        let otherwise = match name {
            "plan" | "build" => sentence!("If it is a mode of the agent, use {mode}.", mode),
            command if command.contains([' ', '/']) => {
                format!("The agents are: {}. {ANY_COMMAND}", self.names()).into()
            }
            _ => format!("The agents are: {}.", self.names()).into(),
        };
        Sentence::new(|audience| unknown.message(self.all_names(), otherwise.to(audience)))
    }

    /// All names without the aliases, for a message.
    pub fn names(&self) -> String {
        self.0.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

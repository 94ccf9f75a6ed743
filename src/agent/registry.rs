//! The agents, by name. To add a built-in agent, add an entry to [`BUILT_IN`]. To add a dialect, add a module beside
//! this one, a line to [`Dialect`], and an arm to each of [`Agent::driver`] and [`Agent::native`].

use super::acp::{self, profile};
use super::native::{self, Native};
use super::{Base, Driver, Program, Turn, claude, codex, lines};
use crate::protocol::origins::Origins;
use crate::protocol::outbound::Capabilities;
use crate::protocol::request::{McpServer, Options, Settings};
use crate::suggest::Unknown;

/// An agent that run.start can name.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The name.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The name for people.
    pub display_name: String,
    /// The agent's dialect.
    pub dialect: Dialect,
    /// The command that starts it.
    pub base: Base,
    /// The model of a run that names none.
    pub model: Option<String>,
    /// The completion marker of a run that names none.
    pub completion_marker: Option<String>,
    /// Patterns that find the session's id in the agent's output, for a dialect without session ids.
    pub session_patterns: Vec<String>,
    /// The arguments for a further turn, for a dialect with one process per turn.
    pub resume_args: Vec<String>,
    /// The argument with which its program prints its version. `None`: unknown, or the dialect defines it.
    pub version: Option<&'static str>,
}

macro_rules! dialects {
    ($(#[$first_doc:meta])* $first:ident = $first_name:literal $(, $(#[$doc:meta])* $variant:ident = $name:literal)* $(,)?) => {
        /// The dialect of an agent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Dialect {
            $(#[$first_doc])* $first,
            $($(#[$doc])* $variant,)*
        }

        impl Dialect {
            /// Every dialect, by its name in configurations and recordings.
            pub const ALL: &[(&str, Dialect)] = &[($first_name, Dialect::$first) $(, ($name, Dialect::$variant))*];

            /// The rule for a dialect's name, for error messages.
            pub const EXPECTED: &str = concat!("one of \"", $first_name, "\"" $(, ", \"", $name, "\"")*);

            /// The dialect's name in configurations and recordings.
            pub fn name(self) -> &'static str {
                match self {
                    Dialect::$first => $first_name,
                    $(Dialect::$variant => $name,)*
                }
            }
        }
    };
}

dialects! {
    /// The Agent Client Protocol.
    Acp = "acp",
    /// Claude Code's stream-json.
    Claude = "claude",
    /// Codex's app-server.
    Codex = "codex",
    /// No dialect: any command that prints text.
    Lines = "lines",
}

/// An agent that needs no configuration.
struct BuiltIn {
    name: &'static str,
    alias: Option<&'static str>,
    display_name: &'static str,
    dialect: Dialect,
    /// `None`: this binary itself.
    command: Option<&'static str>,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    version: Option<&'static str>,
    install: &'static str,
}

/// The fields that most built-in agents have in common.
const ACP: BuiltIn = BuiltIn {
    name: "",
    alias: None,
    display_name: "",
    dialect: Dialect::Acp,
    command: None,
    args: &["acp"],
    env: &[],
    version: Some("--version"),
    install: "",
};

/// The install hint for an agent that npx downloads.
const NODE: &str = "install Node.js, which brings npx";

static BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "claude",
        alias: Some("claude-code"),
        display_name: "Claude Code",
        dialect: Dialect::Claude,
        command: Some("claude"),
        args: &[],
        install: "npm install -g @anthropic-ai/claude-code",
        ..ACP
    },
    BuiltIn {
        name: "codex",
        display_name: "Codex",
        dialect: Dialect::Codex,
        command: Some("codex"),
        args: &[],
        install: "npm install -g @openai/codex",
        ..ACP
    },
    BuiltIn {
        name: "demo",
        display_name: "Demo",
        dialect: Dialect::Claude,
        args: &["replay", "--demo", "--"],
        install: "built in",
        ..ACP
    },
    BuiltIn {
        name: "gemini",
        alias: Some("gemini-cli"),
        display_name: "Gemini CLI",
        command: Some("gemini"),
        // The mode in the user's settings might not ask for permission.
        args: &["--acp", "--approval-mode=default"],
        install: "npm install -g @google/gemini-cli",
        ..ACP
    },
    BuiltIn {
        name: "opencode",
        display_name: "OpenCode",
        command: Some("opencode"),
        install: "npm install -g opencode-ai",
        ..ACP
    },
    // The commands from here on are from the agents' documentation and are untested.
    BuiltIn {
        name: "auggie",
        display_name: "Auggie",
        command: Some("npx"),
        args: &["--yes", "@augmentcode/auggie", "--acp"],
        env: &[("AUGMENT_DISABLE_AUTO_UPDATE", "1")],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "cagent",
        display_name: "cagent",
        command: Some("cagent"),
        version: Some("version"),
        install: "see https://github.com/docker/cagent",
        ..ACP
    },
    BuiltIn {
        name: "claude-acp",
        display_name: "Claude Code over ACP",
        command: Some("npx"),
        args: &["--yes", "@zed-industries/claude-code-acp"],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "code-assistant",
        display_name: "Code Assistant",
        command: Some("code-assistant"),
        install: "see https://github.com/stippi/code-assistant",
        ..ACP
    },
    BuiltIn {
        name: "codex-acp",
        display_name: "Codex over ACP",
        command: Some("codex-acp"),
        args: &[],
        // It refuses --version.
        version: None,
        install: "see https://github.com/zed-industries/codex-acp",
        ..ACP
    },
    BuiltIn {
        name: "copilot",
        display_name: "GitHub Copilot",
        command: Some("npx"),
        args: &["--yes", "@github/copilot-language-server", "--acp"],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "droid",
        display_name: "Factory Droid",
        command: Some("droid"),
        args: &["exec", "--output-format", "acp"],
        env: &[("DROID_DISABLE_AUTO_UPDATE", "true"), ("FACTORY_DROID_AUTO_UPDATE_ENABLED", "false")],
        install: "see https://docs.factory.ai",
        ..ACP
    },
    BuiltIn {
        name: "goose",
        display_name: "Goose",
        command: Some("goose"),
        install: "see https://github.com/block/goose",
        ..ACP
    },
    BuiltIn {
        name: "junie",
        display_name: "Junie",
        command: Some("npx"),
        args: &["--yes", "@jetbrains/junie-cli", "--acp=true"],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "kimi",
        display_name: "Kimi CLI",
        command: Some("kimi"),
        install: "see https://github.com/MoonshotAI/kimi-cli",
        ..ACP
    },
    BuiltIn { name: "pi", display_name: "Pi", command: Some("npx"), args: &["--yes", "pi-acp"], install: NODE, ..ACP },
    BuiltIn {
        name: "qoder",
        display_name: "Qoder CLI",
        command: Some("npx"),
        args: &["--yes", "@qoder-ai/qodercli", "--acp"],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "qwen",
        display_name: "Qwen Code",
        command: Some("npx"),
        args: &["--yes", "@qwen-code/qwen-code", "--acp", "--experimental-skills"],
        install: NODE,
        ..ACP
    },
    BuiltIn {
        name: "raxol",
        display_name: "Raxol",
        command: Some("raxol"),
        install: "see https://github.com/Hydepwns/raxol",
        ..ACP
    },
    BuiltIn {
        name: "stakpak",
        display_name: "Stakpak",
        command: Some("stakpak"),
        install: "see https://github.com/stakpak/agent",
        ..ACP
    },
    BuiltIn {
        name: "vibe",
        display_name: "Mistral Vibe",
        command: Some("vibe-acp"),
        args: &[],
        install: "see https://github.com/mistralai/mistral-vibe",
        ..ACP
    },
];

/// The default agent.
pub const DEFAULT: &str = "claude";

impl BuiltIn {
    fn agent(&self) -> Agent {
        let env = self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let base = Base {
            program: self.command.map_or(Program::Myself, |command| Program::Command(command.into())),
            args: self.args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.collect(),
            install: Some(self.install.into()),
        };
        Agent {
            aliases: self.alias.iter().map(|alias| (*alias).to_owned()).collect(),
            display_name: self.display_name.into(),
            version: self.version,
            ..Agent::new(self.name, self.dialect, base)
        }
    }
}

impl Agent {
    /// Creates an agent with only these properties.
    pub fn new(name: &str, dialect: Dialect, base: Base) -> Agent {
        Agent {
            name: name.into(),
            aliases: Vec::new(),
            display_name: name.into(),
            dialect,
            base,
            model: None,
            completion_marker: None,
            session_patterns: Vec::new(),
            resume_args: Vec::new(),
            version: None,
        }
    }

    /// The agent's own defaults for fields of run.start.
    pub fn defaults(&self) -> Options {
        Options { model: self.model.clone(), completion_marker: self.completion_marker.clone(), ..Options::default() }
    }

    /// The capabilities of a run with this agent, as run.started shows them.
    pub fn capabilities(&self, mut settings: Settings) -> Capabilities {
        let mut driver = self.driver();
        // The capabilities depend only on whether there is a server.
        let server = |_| McpServer { name: String::new(), command: String::new(), args: Vec::new(), env: [].into() };
        settings.ask_server = driver.asks_by(&settings).map(server);
        // The capabilities are the same if the driver refuses the settings.
        let _ = driver.launch(&settings, &mut Turn::default());
        driver.capabilities()
    }

    /// The facts about this agent outside its dialect: those of the dialect, or those of the program if the dialect has
    /// several agents.
    pub fn native(&self) -> &'static Native {
        match (self.dialect, &self.base.program) {
            (Dialect::Lines, _) | (_, Program::Myself) => &native::NONE,
            (Dialect::Claude, _) => &claude::NATIVE,
            (Dialect::Codex, _) => &codex::NATIVE,
            (Dialect::Acp, program) => profile::of(program, &self.name).native,
        }
    }

    /// Creates the driver for one run.
    pub fn driver(&self) -> Box<dyn Driver> {
        let base = self.base.clone();
        match self.dialect {
            Dialect::Claude => Box::new(claude::Claude::new(base)),
            Dialect::Codex => Box::new(codex::Codex::new(base)),
            Dialect::Acp => Box::new(acp::Acp::new(base, profile::of(&self.base.program, &self.name))),
            Dialect::Lines => {
                Box::new(lines::LinesDriver::new(base, self.session_patterns.clone(), self.resume_args.clone()))
            }
        }
    }
}

/// All agents, sorted by name.
#[derive(Clone, Debug)]
pub struct Agents(Vec<Agent>);

impl Agents {
    /// The built-in agents.
    pub fn built_in() -> Agents {
        let mut agents: Vec<Agent> = BUILT_IN.iter().map(BuiltIn::agent).collect();
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        Agents(agents)
    }

    /// The agent with this name or alias.
    pub fn find(&self, name: &str) -> Option<&Agent> {
        let named = |name: &str| self.0.binary_search_by(|known| (*known.name).cmp(name)).ok().map(|at| &self.0[at]);
        // Only built-in agents have an alias.
        let aliased = || BUILT_IN.iter().find(|agent| agent.alias == Some(name)).map(|agent| agent.name);
        named(name).or_else(|| named(aliased()?))
    }

    /// Adds an agent, or replaces the one with the same name.
    pub fn put(&mut self, agent: Agent) {
        match self.0.binary_search_by(|known| known.name.cmp(&agent.name)) {
            Ok(at) => self.0[at] = agent,
            Err(at) => self.0.insert(at, agent),
        }
    }

    /// All agents.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter()
    }

    /// All names and aliases.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|agent| std::iter::once(&agent.name).chain(&agent.aliases)).map(String::as_str)
    }

    /// The message about an unknown name. `from`: where the name comes from, with a leading space.
    pub fn unknown(&self, name: &str, from: &str) -> String {
        let unknown = Unknown { what: "agent", typed: name, place: from, ..Unknown::default() };
        unknown.message(self.all_names(), &format!("The agents are: {}.", self.names()))
    }

    /// All names without the aliases, for a message.
    pub fn names(&self) -> String {
        self.0.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The configured agents and defaults.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The agents.
    pub agents: Agents,
    /// Defaults that override an agent's own.
    pub above: Options,
    /// Defaults that an agent's own override.
    pub below: Options,
    /// The model of a project's file that is not trusted. Overrides `below`, but not for an agent whose command line
    /// takes the model as it is.
    pub guest_model: Option<String>,
    /// The origin of each default.
    pub origins: Origins,
}

impl Layers {
    /// These agents without configured defaults.
    pub fn of(agents: Agents) -> Layers {
        let (above, below) = (Options::default(), Options::default());
        Layers { agents, above, below, guest_model: None, origins: Origins::default() }
    }

    /// The agent for runs that name none.
    pub fn default_agent(&self) -> &str {
        self.above.agent.as_deref().or(self.below.agent.as_deref()).unwrap_or(DEFAULT)
    }

    /// A run.start with all defaults, and its agent. `None`: the agent is unknown.
    pub fn under(&self, start: Options) -> (Options, Option<&Agent>) {
        let options = start.over(self.above.clone());
        let agent = self.agents.find(options.agent.as_deref().unwrap_or(self.default_agent()));
        let own = agent.map(Agent::defaults).unwrap_or_default();
        let guest = self.guest_model.clone().filter(|_| agent.is_none_or(|agent| agent.dialect != Dialect::Lines));
        let guest = Options { model: guest, ..Options::default() };
        (options.over(own).over(guest).over(self.below.clone()), agent)
    }

    /// The warning that the untrusted model has no effect on the agent of a run with these options.
    pub fn guest_warning(&self, options: &Options, agent: Option<&Agent>) -> Option<String> {
        let by_default = options.model.as_ref().is_none_or(|model| self.below.model.as_ref() == Some(model));
        let ignored = self.guest_model.is_some() && by_default && agent?.dialect == Dialect::Lines;
        let text = "`model` of the project's configuration has no effect on this agent, because the file is not \
                    trusted. Read it, then run `spektacular config trust`";
        ignored.then(|| text.to_owned())
    }
}

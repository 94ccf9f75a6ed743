//! The place where a real agent runs: the pinned version, a clean environment, a fresh home, a repository with one
//! commit, and a model on loopback.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agents::Agent;
use crate::stub::Stub;
use crate::support::Case;

/// The key of the agents.
pub(crate) use spektacular::agent::endpoint::MADE_UP_KEY as KEY;

/// The place for one run.
pub(crate) struct Lab {
    pub(crate) agent: Agent,
    pub(crate) case: Case,
    pub(crate) stub: Arc<Stub>,
    /// The agent's working directory, if not the case's own folder.
    pub(crate) cwd: Option<PathBuf>,
}

impl Lab {
    pub(crate) fn new(agent: Agent, scenario: &str) -> Lab {
        let case = patient().git();
        let stub = Arc::new(Stub::start(agent.endpoint().wire, scenario, &case.work()));
        Lab { agent, case: furnish(case, agent, &stub), stub, cwd: None }
    }

    /// `address`: of a provider that cannot be reached, in place of the model.
    pub(crate) fn playing(agent: Agent, scenario: &str, address: Option<&str>) -> Lab {
        let case = patient().git();
        let stub = Arc::new(Stub::play(agent.endpoint().wire, scenario, &case.work()));
        let mut case = furnish(case, agent, &stub);
        if let Some(address) = address {
            case = agent.furnish(case.env("HTTP_PROXY", "").env("HTTPS_PROXY", ""), address);
        }
        Lab { agent, case, stub, cwd: None }
    }

    /// Prepares a second run in the home and working directory of an earlier one. The model continues its scenario.
    pub(crate) fn after(agent: Agent, earlier: &Case, stub: &Arc<Stub>) -> Lab {
        let home = earlier.path("home");
        let case = furnish(patient(), agent, stub).env("HOME", home.to_str().expect("home"));
        Lab { agent, case, stub: stub.clone(), cwd: Some(earlier.work()) }
    }
}

/// A real agent is slow to start and slow in each step.
fn patient() -> Case {
    let mut case = Case::new();
    case.limit *= 6;
    case
}

/// The case's environment is already clean. These variables keep the agent on loopback.
fn furnish(case: Case, agent: Agent, stub: &Stub) -> Case {
    symlink(agent.program(), case.path("bin").join(agent.name())).expect("link");
    // Agents that are scripts need node, and the clean PATH is short.
    symlink(node(), case.path("bin/node")).expect("link");
    let proxied = case
        // Requests to other hosts reach the stub, which refuses them.
        .env("HTTP_PROXY", &stub.url())
        .env("HTTPS_PROXY", &stub.url())
        .env("NO_PROXY", "127.0.0.1");
    agent.furnish(proxied, &stub.url())
}

fn node() -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH");
    let found = std::env::split_paths(&path).map(|folder| folder.join("node")).find(|file| file.is_file());
    std::fs::canonicalize(found.as_deref().unwrap_or(Path::new("/usr/bin/node"))).expect("node runs some of the agents")
}

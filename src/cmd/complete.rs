//! `__complete`: the completions that a shell asks for at each Tab. It only reads, starts no program, and says nothing on
//! stderr: whatever is wrong with the configuration, another command reports it.

use super::{COMMANDS, worktrees};
use crate::agent::demo::catalog::{NAMES, PREFIX};
use crate::clean::one_line;
use crate::cli::action::Offers;
use crate::cli::row::Flag;
use crate::config::Layers;
use crate::config::{self, KEYS};
use crate::help::complete::{Candidate, LiveNames, lines};
use crate::io::output::deliver;
use crate::protocol::publish::section_names;
use crate::sessions::{Stored, newest};
use crate::workflow::documents::Document;
use crate::workflow::name::Slug;
use crate::workflow::project::Project;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// `args`: as `help::complete::ARGUMENT` explains.
pub(super) fn run(args: &[OsString]) -> u8 {
    let mut words = args.iter().map(|word| word.to_string_lossy().into_owned());
    let word = words.next().unwrap_or_default();
    let word = word.strip_prefix('.').unwrap_or_default();
    let live = Live { scenarios: word.contains(PREFIX) };
    deliver(&lines(COMMANDS, &live, word, &words.collect::<Vec<_>>()))
}

struct Live {
    /// Whether the names of agents include the scenarios of the demo agent.
    scenarios: bool,
}

impl Live {
    fn agents(&self) -> Vec<String> {
        let scenarios = NAMES.iter().filter(|_| self.scenarios).map(|name| format!("{PREFIX}{name}"));
        layers().agents.iter().map(|agent| agent.name.clone()).chain(scenarios).collect()
    }
}

impl LiveNames for Live {
    fn names(&self, offers: Offers, key: &str) -> Vec<Candidate> {
        match offers {
            Offers::Agents => self.agents().into_iter().map(bare).collect(),
            Offers::Sessions => {
                let layers = layers();
                newest(&layers, None).into_iter().flat_map(|(agent, stored)| session(agent, &stored)).collect()
            }
            Offers::Worktrees => worktrees::names().into_iter().map(bare).collect(),
            Offers::Modes => {
                let layers = layers();
                let agent = layers.agents.find(if key.is_empty() { layers.default_agent() } else { key });
                let modes = agent.map(|agent| agent.native().modes).unwrap_or_default();
                modes.iter().map(|mode| bare((*mode).to_owned())).collect()
            }
            Offers::Specs => documents(|project| project.specs().unwrap_or_default()),
            Offers::Plans => documents(|project| project.plans().unwrap_or_default()),
            Offers::Sections => {
                let names: BTreeSet<String> = section_names().into_iter().map(str::to_lowercase).collect();
                names.into_iter().map(|name| bare(name.replace(' ', "-"))).collect()
            }
            Offers::Keys => {
                KEYS.iter().map(|key| Candidate { word: key.name.into(), about: about(key).into() }).collect()
            }
            Offers::ValuesOfKey => {
                let key = KEYS.iter().find(|known| known.name == key);
                key.map(|key| key.words(&self.agents())).unwrap_or_default().into_iter().map(bare).collect()
            }
            Offers::Nothing
            | Offers::Files
            | Offers::Folders
            | Offers::Commands
            | Offers::Words(_)
            | Offers::WordsOrFiles(_) => Vec::new(),
        }
    }
}

fn session(agent: &str, stored: &Stored) -> impl Iterator<Item = Candidate> + use<> {
    let about = format!("{agent}: {}", one_line(&stored.words));
    let words = [stored.name.as_deref().map(str::to_owned), Some(stored.id.to_string())];
    words.into_iter().flatten().map(move |word| Candidate { word, about: about.clone() })
}

fn bare(word: String) -> Candidate {
    Candidate { word, about: String::new() }
}

fn layers() -> Layers {
    config::load().config.layers().0
}

fn about(key: &config::Key) -> &'static str {
    let sets = |flag: &&Flag| flag.field.map_or(flag.long, |field| field.name) == key.name;
    COMMANDS.iter().flat_map(|command| command.flags).find(sets).map(|flag| flag.help).unwrap_or_default()
}

fn documents(of: fn(&Project) -> Vec<Document>) -> Vec<Candidate> {
    let project = std::env::current_dir().and_then(|cwd| Project::around(&cwd));
    let documents = project.map(|project| of(&project)).unwrap_or_default();
    let finished = documents.into_iter().filter(|document| !document.is_draft && Slug::parse(&document.name).is_some());
    finished.map(|document| bare(document.name)).collect()
}

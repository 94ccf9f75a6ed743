//! The last session of each agent for each specification and plan, for `--continue`.

use super::name::Slug;
use super::project::{LOCAL, Project};
use crate::protocol::ids::SessionId;
use crate::protocol::limits::SESSION_ID_BYTES;
use crate::protocol::words::WorkflowKind;
use std::path::{Path, PathBuf};

/// The file that stores a session's id.
#[derive(Clone, Debug)]
pub(crate) struct LastSession(PathBuf);

impl LastSession {
    /// The file for a name and an agent. `None`: the agent's name cannot be part of a file name.
    pub(crate) fn of(kind: WorkflowKind, name: &Slug, agent: &str) -> Option<LastSession> {
        let plain = agent.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let file = format!("{}.{name}.{agent}", kind.word());
        plain.then(|| LastSession(Path::new(LOCAL).join("sessions").join(file)))
    }

    pub(crate) fn id(&self, project: &Project) -> Option<SessionId> {
        let bytes = project.read(&self.0, SESSION_ID_BYTES as u64 + 1).ok()??;
        let text = String::from_utf8(bytes).ok()?;
        SessionId::stored(text.strip_suffix('\n')?)
    }

    /// Stores the id. Without it, the next run begins a new session.
    pub(crate) fn keep(&self, project: &Project, id: &str) {
        let _ = project.write(&self.0, format!("{id}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::LastSession;
    use crate::protocol::words::WorkflowKind;
    use crate::workflow::name::Slug;

    #[test]
    fn an_agent_whose_name_is_no_plain_word_has_no_file() {
        let of = |agent| LastSession::of(WorkflowKind::Spec, &Slug::parse("a").unwrap(), agent);
        for agent in ["claude", "my-Agent_2"] {
            assert!(of(agent).unwrap().0.ends_with(format!("sessions/spec.a.{agent}")), "{agent}");
        }
        for agent in ["../a", "a/b", "a.b", "a b", "a\0", "ä"] {
            assert!(of(agent).is_none(), "{agent:?}");
        }
    }
}

//! A peer that joins several runs into one: one run.started, one terminal frame, ids without a gap, usage summed.

use spektacular::engine::{Outbox, Outgoing, Peer, ScreenPeer};
use spektacular::json_lines::JsonLines;
use spektacular::protocol::ids::RunId;
use spektacular::protocol::outbound::{Body, Terminal};
use spektacular::protocol::redacted::Redacted;
use spektacular::redact::Redactor;
use std::collections::{BTreeSet, HashSet};

pub(crate) struct Joined {
    peer: JsonLines,
    /// The number of remaining runs. The terminal frame of the last one becomes that of the joined run.
    pub(crate) left: usize,
    run_id: Option<RunId>,
    ended: Vec<Terminal>,
    files: BTreeSet<String>,
}

impl Joined {
    pub(crate) fn of(runs: usize) -> Joined {
        Joined { peer: JsonLines::default(), left: runs, run_id: None, ended: Vec::new(), files: BTreeSet::new() }
    }
}

impl Peer for Joined {
    fn dropped(&mut self, frames: u64) {
        self.peer.dropped(frames);
    }

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        self.peer.screen()
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let first = self.run_id.is_none();
        let run_id = self.run_id.get_or_insert_with(|| outgoing.run_id.clone()).clone();
        match &**outgoing.body {
            Body::Started(_) if !first => return,
            Body::Artifact(artifact) => {
                if !self.files.insert(format!("{:?} {}", artifact.action, artifact.path.shown())) {
                    return;
                }
            }
            Body::Terminal(end) => {
                self.left -= 1;
                if self.left > 0 {
                    self.ended.push((**end).clone());
                    return;
                }
                let mut end = (**end).clone();
                for before in self.ended.iter().rev() {
                    end.usage = before.usage.plus(&end.usage);
                    end.artifacts.splice(0..0, before.artifacts.iter().cloned());
                }
                let mut seen = HashSet::new();
                end.artifacts.retain(|artifact| seen.insert((artifact.path.clone(), artifact.action)));
                // All its texts are redacted already.
                let mut body = Redacted::new(Body::Terminal(Box::new(end)), &Redactor::new());
                return self.peer.show(Outgoing { run_id: &run_id, body: &mut body, ..outgoing }, out);
            }
            Body::Started(_) | Body::Progress(_) | Body::Question(_) => {}
        }
        self.peer.show(Outgoing { run_id: &run_id, ..outgoing }, out);
    }
}

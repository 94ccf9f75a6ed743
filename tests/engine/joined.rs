//! A peer that makes one run of several: one run.started, one terminal frame, ids without a gap, usage summed.

use spektacular::engine::{Outgoing, Peer, Understood};
use spektacular::io::inbox::RawLine;
use spektacular::io::output::Chunk;
use spektacular::json_lines::JsonLines;
use spektacular::protocol::outbound::{Body, Terminal, Usage};
use std::collections::BTreeSet;
use std::time::Instant;

pub(crate) struct Joined {
    peer: JsonLines,
    /// Runs that are still to come; the last one's terminal frame is the outside one's.
    pub(crate) left: usize,
    run_id: Option<String>,
    usage: Usage,
    ended: Vec<Terminal>,
    files: BTreeSet<String>,
}

impl Joined {
    pub(crate) fn of(runs: usize) -> Joined {
        Joined {
            peer: JsonLines::default(),
            left: runs,
            run_id: None,
            usage: Usage::default(),
            ended: Vec::new(),
            files: BTreeSet::new(),
        }
    }

    fn add(&mut self, usage: &Usage) {
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.usage.input_tokens = sum(self.usage.input_tokens, usage.input_tokens);
        self.usage.output_tokens = sum(self.usage.output_tokens, usage.output_tokens);
    }
}

impl Peer for Joined {
    fn hear(&mut self, line: &RawLine, at: Instant) -> Understood {
        self.peer.hear(line, at)
    }

    fn show(&mut self, outgoing: Outgoing<'_>) -> Chunk {
        let first = self.run_id.is_none();
        let run_id = self.run_id.get_or_insert_with(|| outgoing.run_id.to_owned()).clone();
        match outgoing.body {
            Body::Started(_) if !first => return Chunk::default(),
            Body::Artifact(artifact) => {
                if !self.files.insert(format!("{:?} {}", artifact.action, artifact.path.0)) {
                    return Chunk::default();
                }
            }
            Body::Terminal(end) => {
                self.left -= 1;
                self.add(&end.usage);
                self.ended.push((**end).clone());
                if self.left > 0 {
                    return Chunk::default();
                }
                end.usage = self.usage;
                let all = self.ended.iter().flat_map(|end| &end.artifacts);
                end.artifacts = all.cloned().collect();
                end.artifacts.dedup_by(|a, b| a.path == b.path && a.action == b.action);
            }
            Body::Started(_) | Body::Progress(_) | Body::Question(_) => {}
        }
        self.peer.show(Outgoing { run_id: &run_id, ..outgoing })
    }
}

//! An orchestrator as the peer of a run: JSON Lines on stdin and stdout, and one line on stderr for a failed run.

use crate::engine::{Outbox, Outgoing, Peer, ScreenPeer};
use crate::io::output::Chunk;
use crate::protocol::frame::{Stamper, stderr_line};

#[derive(Debug, Default)]
pub struct JsonLines {
    stamper: Stamper,
    /// Whether lines on stderr begin with the run's id.
    log_id: bool,
}

impl JsonLines {
    pub fn new(log_id: bool) -> JsonLines {
        JsonLines { log_id, ..JsonLines::default() }
    }
}

impl Peer for JsonLines {
    fn dropped(&mut self, frames: u64) {
        self.stamper.dropped(frames);
    }

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        None
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Outgoing { body, reply_to, run_id, max_bytes, at, in_advance: _ } = outgoing;
        let err = stderr_line(body);
        if self.stamper.stamp(at, body) {
            out.line(|line| self.stamper.write(run_id, reply_to, body, max_bytes, line));
        }
        if let Some(line) = err {
            let id = if self.log_id { &format!("[{}] ", &**run_id) } else { "" };
            out.push(Chunk { err: format!("{id}{line}\n").into_bytes(), ..Chunk::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JsonLines;
    use crate::engine::{Outbox, Outgoing, Peer};
    use crate::protocol::ids::RunId;
    use crate::protocol::outbound::{Body, Progress, ProgressKind};
    use crate::protocol::redacted::Redacted;
    use crate::protocol::words::Status;
    use crate::redact::Redactor;
    use std::time::UNIX_EPOCH;

    #[test]
    fn frames_share_a_chunk_and_dropped_ones_leave_no_gap() {
        let (mut peer, mut out) = (JsonLines::default(), Outbox::default());
        let show = |peer: &mut JsonLines, out: &mut Outbox| {
            let about = ProgressKind::Status { status: Status::Running, until: None, agent: None };
            let progress = Progress::new(about, "It runs");
            let mut body = Redacted::new(Body::Progress(Box::new(progress)), &Redactor::new());
            peer.show(
                Outgoing {
                    body: &mut body,
                    reply_to: None,
                    run_id: &RunId::generated("r"),
                    max_bytes: 1000,
                    at: UNIX_EPOCH,
                    in_advance: None,
                },
                out,
            );
        };
        (0..3).for_each(|_| show(&mut peer, &mut out));
        assert_eq!(out.pop().out.split(|byte| *byte == b'\n').count(), 4);
        assert!(out.is_empty());
        (0..5).for_each(|_| show(&mut peer, &mut out));
        peer.dropped(out.drop_progress());
        assert!(out.is_empty());
        show(&mut peer, &mut out);
        assert!(out.pop().out.starts_with(b"{\"v\":\"1\",\"id\":\"msg_4\""));
    }
}

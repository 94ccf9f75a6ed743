//! `--report`: collects the frames of a run on their way to its peer, and writes the page when the run ends.

use crate::engine::{Outbox, Outgoing, Peer, ScreenPeer};
use crate::io::files::create_private;
use crate::protocol::failure::Failure;
use crate::protocol::frame::Stamper;
use crate::protocol::outbound::{Body, ProgressKind};
use crate::redact::Redactor;
use crate::report::{ReportLine, ReportPage};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The file of a report, opened before the run, so that a wrong path fails at once.
pub(super) struct ReportFile(File);

/// A peer whose frames are reported. Memory is bounded as that of [`ReportPage`].
pub(super) struct Reported<'a> {
    peer: &'a mut dyn Peer,
    report: ReportPage,
    stamper: Stamper,
    frame: Vec<u8>,
}

impl ReportFile {
    pub(super) fn open(path: &Path, project: Option<&Path>) -> Result<ReportFile, Failure> {
        let message = "--report: the file cannot be written. Name a regular file in a writable directory. Below the \
                       project's directory, no part of the path may be a symbolic link.";
        create_private(path, project).map(ReportFile).map_err(|_| Failure::usage(message))
    }

    pub(super) fn write(mut self, report: &ReportPage) -> std::io::Result<()> {
        self.0.write_all(report.page().as_bytes())
    }
}

impl<'a> Reported<'a> {
    pub(super) fn new(peer: &'a mut dyn Peer) -> Reported<'a> {
        let mut report = ReportPage::default();
        report.begin("the run");
        Reported { peer, report, stamper: Stamper::default(), frame: Vec::new() }
    }

    pub(super) fn into_report(self) -> ReportPage {
        self.report
    }
}

impl Peer for Reported<'_> {
    fn prompted(&mut self, prompt: &str, redactor: &Redactor) {
        self.report.prompt(&redactor.redact(prompt));
        self.peer.prompted(prompt, redactor);
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Outgoing { body, reply_to, run_id, max_bytes, at, in_advance } = outgoing;
        if let Body::Progress(progress) = &**body
            && let ProgressKind::Prompt { said: Some(said), .. } = &progress.about
        {
            self.report.prompt(said.shown());
        }
        if self.stamper.stamp(at, body) {
            self.frame.clear();
            // Without a limit, because writing cuts the body that the peer gets next.
            self.stamper.write(run_id, reply_to, body, usize::MAX, &mut self.frame);
            self.report.line(ReportLine::Text(&self.frame));
        }
        self.peer.show(Outgoing { body, reply_to, run_id, max_bytes, at, in_advance }, out);
    }

    fn dropped(&mut self, frames: u64) {
        self.peer.dropped(frames);
    }

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        self.peer.screen()
    }
}

//! The machine as the server sees it.

use super::shared::ServerHost;
use super::store::{self, StoredSession};
use crate::agent::stored::StoredPart;
use crate::base64;
use crate::process::guard::GuardedScratch;
use crate::process::tree::nonce;
use std::fs;
use std::path::Path;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::macros::format_description;

/// The answers that only the command can give.
pub(crate) struct Lookups {
    pub(crate) missing: Box<dyn Fn() -> Option<String>>,
    pub(crate) login: Box<dyn Fn() -> Option<String>>,
    /// Removes secrets from a text, also those of these MCP servers, as run.start takes them.
    pub(crate) redact: Box<Redact>,
    pub(crate) own_session: Box<OwnSession>,
}

type OwnSession = dyn Fn(&str) -> Vec<StoredPart>;
type Redact = dyn Fn(&str, Option<&str>) -> String;

pub(crate) struct LocalServerHost {
    known: Lookups,
    /// The folder of the images, once there is one. Dropping it removes the images.
    images: Option<GuardedScratch>,
    written: u64,
}

impl LocalServerHost {
    pub(crate) fn new(known: Lookups) -> LocalServerHost {
        LocalServerHost { known, images: None, written: 0 }
    }
}

impl ServerHost for LocalServerHost {
    fn id(&mut self) -> String {
        nonce()
    }

    fn is_folder(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn missing(&self) -> Option<String> {
        (self.known.missing)()
    }

    fn login(&self) -> Option<String> {
        (self.known.login)()
    }

    fn image(&mut self, data: &str) -> Option<String> {
        let bytes = base64::decode(data)?;
        if self.images.is_none() {
            self.images = GuardedScratch::new().ok();
        }
        self.written += 1;
        let path = self.images.as_ref()?.path().join(self.written.to_string());
        fs::write(&path, bytes).ok()?;
        path.into_os_string().into_string().ok()
    }

    fn redact(&self, text: &str, servers: Option<&str>) -> String {
        (self.known.redact)(text, servers)
    }

    fn remove(&mut self, path: &str) {
        let _ = fs::remove_file(path);
    }

    fn stored(&self) -> Vec<StoredSession> {
        store::all()
    }

    fn store(&mut self, session: &StoredSession) {
        let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
        let updated = OffsetDateTime::from(SystemTime::now()).format(format).unwrap_or_default();
        let session = StoredSession { updated, ..session.clone() };
        // A session that cannot be stored can be used, but not resumed.
        let _ = store::store(&session);
    }

    fn keep(&mut self, session: &str, updates: &str) {
        // A history that cannot be stored is only not replayed.
        let _ = store::keep(session, updates);
    }

    fn own_session(&self, agent_session: &str) -> Vec<StoredPart> {
        (self.known.own_session)(agent_session)
    }

    fn history(&self, session: &str) -> String {
        store::history(session)
    }

    fn real(&self, path: &str) -> String {
        fs::canonicalize(path).ok().and_then(|real| real.into_os_string().into_string().ok()).unwrap_or(path.to_owned())
    }
}

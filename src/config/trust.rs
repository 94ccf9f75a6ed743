//! The project files that the user trusts, each with its text at that time, so that any change needs trust again. A copy
//! of the text, unlike a hash, cannot match another text.

use super::edit;
use super::files;
use crate::failure::Failure;
use crate::protocol::json::{Fields, string, to_line};
use std::path::Path;

/// Whether a file with this text is trusted. An unreadable list trusts nothing.
pub(super) fn is_trusted(store: Option<&Path>, file: &Path, text: &str) -> bool {
    let known = store.and_then(|store| files::read(store).ok().flatten());
    let fields = known.as_deref().and_then(Fields::parse);
    fields.and_then(|fields| fields.get(&name(file)).and_then(string)).is_some_and(|trusted| trusted == text)
}

/// Trusts a file with this text.
pub(super) fn trust(store: &Path, file: &Path, text: &str) -> Result<(), Failure> {
    files::change(store, 0o600, |old| {
        let old = old.unwrap_or("{}\n");
        Ok(edit::set(old, &[&name(file)], &to_line(&text)).unwrap_or_else(|| old.to_owned()))
    })
}

fn name(file: &Path) -> String {
    file.canonicalize().unwrap_or_else(|_| file.to_owned()).to_string_lossy().into_owned()
}

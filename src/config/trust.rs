//! The project files that the user trusts, each with its text at that time, so that any change needs trust again. A copy
//! of the text, unlike a hash, cannot match another text.

use super::edit;
use super::files;
use crate::io::files::read_regular;
use crate::json::{Fields, string, to_line};
use crate::protocol::failure::Failure;
use serde_json::value::RawValue;
use std::path::Path;

/// An unreadable list trusts nothing.
pub(super) fn is_trusted(store: Option<&Path>, file: &Path, text: &str) -> bool {
    let known = store.and_then(|store| files::read(store, files::TRUSTED_BYTES).ok().flatten());
    let fields = known.as_deref().and_then(Fields::parse);
    fields.and_then(|fields| fields.get(&name(file)).and_then(string)).is_some_and(|trusted| trusted == text)
}

pub(super) fn trust(store: &Path, file: &Path, text: &str) -> Result<(), Failure> {
    files::change(store, 0o600, files::TRUSTED_BYTES, |old| {
        let old = old.unwrap_or("{}\n");
        let with = |old: &str| edit::set(old, &[&name(file)], &to_line(&text)).unwrap_or_else(|| old.to_owned());
        let new = with(old);
        Ok(if new.len() <= files::TRUSTED_BYTES { new } else { with(&current(old)) })
    })
}

/// The maximum size of a trusted file, in bytes.
const TRUSTED_BYTES: u64 = 4 << 20;

/// The list without the files that are gone or have another text now: trust in those has no effect any more.
fn current(list: &str) -> String {
    let Some(fields) = Fields::parse(list) else { return list.to_owned() };
    let holds = |file: &str, text: &RawValue| read_regular(Path::new(file), TRUSTED_BYTES).ok() == string(text);
    let kept = fields.iter().filter(|(file, text)| holds(file, text));
    let lines: Vec<String> = kept.map(|(file, text)| format!("  {}: {}", to_line(&file), text.get())).collect();
    if lines.is_empty() { "{}\n".to_owned() } else { format!("{{\n{}\n}}\n", lines.join(",\n")) }
}

fn name(file: &Path) -> String {
    file.canonicalize().unwrap_or_else(|_| file.to_owned()).to_string_lossy().into_owned()
}

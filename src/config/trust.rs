//! The project files that the user trusts, each with its text at that time, so that any change needs trust again. A copy
//! of the text, unlike a hash, cannot match another text.

use super::edit;
use super::files;
use crate::json::{Fields, string, to_line};
use crate::protocol::failure::Failure;
use serde_json::value::RawValue;
use std::path::Path;

/// Whether a file with this text is trusted. An unreadable list trusts nothing.
pub(super) fn is_trusted(store: Option<&Path>, file: &Path, text: &str) -> bool {
    let known = store.and_then(|store| files::read(store).ok().flatten());
    let fields = known.as_deref().and_then(Fields::parse);
    fields.and_then(|fields| fields.get(&name(file)).and_then(string)).is_some_and(|trusted| trusted == text)
}

pub(super) fn trust(store: &Path, file: &Path, text: &str) -> Result<(), Failure> {
    files::change(store, 0o600, |old| {
        let old = old.unwrap_or("{}\n");
        let with = |old: &str| edit::set(old, &[&name(file)], &to_line(&text)).unwrap_or_else(|| old.to_owned());
        let new = with(old);
        Ok(if files::fits(&new) { new } else { with(&current(old)) })
    })
}

/// The list without the files that are gone or have another text now: trust in those has no effect any more.
fn current(list: &str) -> String {
    let Some(fields) = Fields::parse(list) else { return list.to_owned() };
    let holds = |file: &str, text: &RawValue| std::fs::read_to_string(file).ok() == string(text);
    let kept = fields.iter().filter(|(file, text)| holds(file, text));
    let lines: Vec<String> = kept.map(|(file, text)| format!("  {}: {}", to_line(&file), text.get())).collect();
    if lines.is_empty() { "{}\n".to_owned() } else { format!("{{\n{}\n}}\n", lines.join(",\n")) }
}

fn name(file: &Path) -> String {
    file.canonicalize().unwrap_or_else(|_| file.to_owned()).to_string_lossy().into_owned()
}

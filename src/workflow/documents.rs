//! The specifications and plans of a project, as its folders list them.

use super::first_of;
use super::name::Slug;
use super::project::{Entry, FileProblem, PLANS, Project, SPECS};
use crate::suggest::nearest;
use std::path::{Path, PathBuf};

/// The maximum number of entries to read from a folder.
const ENTRIES: usize = 10_000;
/// The maximum number of names in a message.
const NAMES: usize = 10;
const README: &str = "README.md";
const DRAFT: &str = ".draft";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The name, without the endings of the file and of a draft.
    pub name: String,
    /// The specification, or the folder of the plan, relative to the project's folder.
    pub path: PathBuf,
    /// Whether it has not passed its check yet.
    pub is_draft: bool,
}

impl Document {
    fn new(folder: &str, entry: &str, stem: &str) -> Document {
        let name = stem.strip_suffix(DRAFT);
        let path = Path::new(folder).join(entry);
        Document { name: name.unwrap_or(stem).to_owned(), path, is_draft: name.is_some() }
    }
}

pub(crate) fn is_readme(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == README)
}

impl Project {
    /// The specifications and their drafts, sorted by file name. Error: the folder is a link, or cannot be read.
    pub fn specs(&self) -> Result<Vec<Document>, FileProblem> {
        self.documents(SPECS, Entry::File, ".md")
    }

    /// The plans and their drafts, sorted by folder name. Error: the folder is a link, or cannot be read.
    pub fn plans(&self) -> Result<Vec<Document>, FileProblem> {
        self.documents(PLANS, Entry::Folder, "")
    }

    /// A space and a sentence that lists the specifications, the closest to `typed` first. Empty: none exists.
    pub fn other_specs(&self, typed: &str) -> String {
        listed(&self.specs().unwrap_or_default(), "Specifications", typed)
    }

    /// A space and a sentence that lists the plans, the closest to `typed` first. Empty: none exists.
    pub fn other_plans(&self, typed: &str) -> String {
        listed(&self.plans().unwrap_or_default(), "Plans", typed)
    }

    fn documents(&self, folder: &str, wanted: Entry, ending: &str) -> Result<Vec<Document>, FileProblem> {
        let entries = self.list(Path::new(folder), ENTRIES)?;
        let found = entries.iter().filter(|(name, entry)| *entry == wanted && name != README);
        let document = |name: &str| Some(Document::new(folder, name, name.strip_suffix(ending)?));
        Ok(found.filter_map(|(name, _)| document(name.to_str()?)).collect())
    }
}

fn listed(documents: &[Document], what: &str, typed: &str) -> String {
    let named = documents.iter().filter(|document| !document.is_draft).map(|document| document.name.as_str());
    let mut names: Vec<&str> = named.filter(|name| Slug::parse(name).is_some()).collect();
    let closest = nearest(typed, names.iter().copied());
    names.sort_by_key(|name| Some(*name) != closest);
    let names = first_of(names.into_iter().map(str::to_owned), NAMES);
    if names.is_empty() { names } else { format!(" {what} here: {names}.") }
}

#[cfg(test)]
mod tests {
    use super::{Document, listed};

    fn documents(names: &[&str]) -> Vec<Document> {
        names.iter().map(|name| Document::new("plans", name, name)).collect()
    }

    #[test]
    fn the_closest_name_comes_first_and_drafts_do_not_count() {
        let all = documents(&["a", "login", "search", "x.draft", "No Name"]);
        assert_eq!(listed(&all, "Plans", "serach"), " Plans here: search, a, login.");
        assert_eq!(listed(&all, "Plans", ""), " Plans here: a, login, search.");
        assert_eq!(listed(&documents(&["x.draft"]), "Plans", "x"), "");
        let many: Vec<String> = (0..12).map(|number| format!("p{number:02}")).collect();
        let many = documents(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(listed(&many, "Plans", "zzzz").ends_with("p09 and 2 more."));
    }
}

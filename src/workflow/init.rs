//! `init`: the folders of a project, with a README in each.

use super::project::{CONFIG, Entry, FileProblem, HOME, Project};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::words::RefusalReason;
use std::path::{Path, PathBuf};

const FILES: [(&str, &str); 10] = [
    (CONFIG, "{}\n"),
    (".spektacular/.gitignore", "local/\ndebug/\n*.draft.md\n*.draft/\n*.tmp\n*.log\n.env\n"),
    (".spektacular/knowledge/conventions.md", include_str!("init/conventions.md")),
    (".spektacular/specs/README.md", include_str!("init/specs.md")),
    (".spektacular/plans/README.md", include_str!("init/plans.md")),
    (".spektacular/prompts/README.md", include_str!("init/prompts.md")),
    (".spektacular/knowledge/README.md", include_str!("init/knowledge.md")),
    (".spektacular/knowledge/learnings/README.md", include_str!("init/learnings.md")),
    (".spektacular/knowledge/architecture/README.md", include_str!("init/architecture.md")),
    (".spektacular/knowledge/gotchas/README.md", include_str!("init/gotchas.md")),
];

/// Existing files stay unchanged. Returns each path, and whether its file was created.
pub(crate) fn init(project: &Project) -> Result<Vec<(&'static str, bool)>, Failure> {
    let mut files = Vec::new();
    for (path, _) in FILES {
        files.push((path, is_missing(project, path)?));
    }
    for ((path, text), (_, is_missing)) in FILES.iter().zip(&mut files) {
        if *is_missing {
            let failed = |problem: FileProblem| {
                let why = match problem {
                    FileProblem::Exhausted => return problem.refusal(path),
                    FileProblem::Outside => "a folder on the way to it is a link".to_owned(),
                    FileProblem::TooLarge => "it is too large".to_owned(),
                    FileProblem::Io(kind) => format!("{kind}"),
                };
                let message = format!("{path} cannot be written: {why}. Check the permissions of the folder.");
                Failure::new(Code::ResourceExhausted, message)
            };
            *is_missing = project.create(Path::new(path), text.as_bytes()).map_err(failed)?;
        }
    }
    Ok(files)
}

/// Error: the file, or a folder on the way to it, is a link or of the wrong kind.
fn is_missing(project: &Project, path: &str) -> Result<bool, Failure> {
    let refused = |path: &Path, wanted: &str| {
        let message =
            format!("{} must be a {wanted}, not a link or another kind of file. Nothing was created.", path.display());
        Failure::refused_for(RefusalReason::Outside, message)
    };
    let mut folders: Vec<PathBuf> = Path::new(path).ancestors().skip(1).map(Path::to_owned).collect();
    folders.retain(|folder| folder.starts_with(HOME));
    for folder in folders.iter().rev() {
        match project.entry(folder) {
            Ok(None) => return Ok(true),
            Ok(Some(Entry::Folder)) => {}
            Ok(Some(Entry::File | Entry::Link | Entry::Other)) | Err(_) => return Err(refused(folder, "folder")),
        }
    }
    match project.entry(Path::new(path)) {
        Ok(None) => Ok(true),
        Ok(Some(Entry::File)) => Ok(false),
        Ok(Some(Entry::Folder | Entry::Link | Entry::Other)) | Err(_) => Err(refused(Path::new(path), "file")),
    }
}

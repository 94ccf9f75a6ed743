//! The text of each prompt in force (the project's if it is trusted, otherwise the user's, otherwise the built-in one),
//! and the values that every prompt may have.

use super::project::{Entry, FILE_BYTES_MAX, FileProblem, KNOWLEDGE, PROMPTS, Project, shown};
use super::template::{PromptKind, expanded};
use crate::config::Places;
use crate::io::files::open_regular;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::words::word_enums;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const KNOWLEDGE_FILES_MAX: usize = 100;
const ENTRIES_MAX: usize = 1000;
const DEPTH_MAX: usize = 8;

word_enums! {
    pub enum PromptSource {
        BuiltIn = "built-in",
        User = "user",
        Project = "project",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    pub kind: PromptKind,
    pub text: String,
    pub source: PromptSource,
    /// The message of the warning `untrusted_prompt`, if the project has a text that is ignored.
    pub warning: Option<String>,
}

impl PromptText {
    /// Error: the user's file exists but cannot be used.
    pub fn load(kind: PromptKind, project: &Project, places: &Places) -> Result<PromptText, Failure> {
        let own = PromptText { kind, text: kind.built_in().to_owned(), source: PromptSource::BuiltIn, warning: None };
        let warning = match of_project(kind, project) {
            Ok(None) => None,
            Ok(Some(text)) if places.is_trusted(&project.folder().join(file_of(kind)), &text) => {
                return Ok(PromptText { text, source: PromptSource::Project, ..own });
            }
            Ok(Some(_)) => Some("is not trusted. Read it, then run `spektacular config trust`"),
            Err(_) => Some("is not a regular UTF-8 file of at most 256 KiB, so it cannot be trusted"),
        };
        let warning = warning.map(|why| format!("{} is ignored: it {why}.", shown(&file_of(kind))));
        let user = of_user(kind, places)?.map(|text| (text, PromptSource::User));
        let (text, source) = user.unwrap_or((own.text, PromptSource::BuiltIn));
        Ok(PromptText { kind, text, source, warning })
    }

    /// Error: a placeholder is unknown or missing.
    pub fn checked(self) -> Result<PromptText, Failure> {
        self.kind.check(&self.text).map_err(|why| Failure::new(Code::InvalidConfig, why))?;
        Ok(self)
    }
}

/// A prompt for a session, with its values filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPrompt {
    pub text: String,
    /// Whether the agent gets the text unchanged, because it begins with one of the agent's own commands.
    pub raw: bool,
}

impl SessionPrompt {
    pub(super) fn followed_by(&self, next: &SessionPrompt) -> SessionPrompt {
        SessionPrompt { text: format!("{}\n\n{}", self.text.trim_end(), next.text), raw: self.raw }
    }
}

#[derive(Clone, Debug)]
pub struct CommonValues {
    /// `{{project}}`: the project's folder.
    pub(super) project: String,
    /// `{{knowledge}}`: the project's knowledge folder and the files in it.
    pub(super) knowledge: String,
    /// `{{user}}`: how to ask the user, or that no user is present.
    pub(super) user: &'static str,
    /// `{{check}}`: the command that checks the draft or the plan.
    pub(super) check: String,
}

impl CommonValues {
    pub fn new(project: &Project, user_is_present: bool, check: String) -> CommonValues {
        CommonValues {
            project: project.folder().to_string_lossy().into_owned(),
            knowledge: project.knowledge(),
            user: if user_is_present { USER } else { NO_USER },
            check,
        }
    }

    /// The line end at the end of the file is not part of the prompt.
    pub fn fill<'v>(&'v self, prompt: &PromptText, own: impl Fn(&str) -> Option<&'v str>) -> SessionPrompt {
        let text = expanded(prompt.text.strip_suffix('\n').unwrap_or(&prompt.text), |name| match name {
            "project" => Some(&self.project),
            "knowledge" => Some(&self.knowledge),
            "user" => Some(self.user),
            "check" => Some(&self.check),
            name => own(name),
        });
        SessionPrompt { text, raw: prompt.text.starts_with('/') }
    }
}

/// The project's file for a prompt, relative to the project's folder.
fn file_of(kind: PromptKind) -> PathBuf {
    Path::new(PROMPTS).join(format!("{}.md", kind.word()))
}

fn of_project(kind: PromptKind, project: &Project) -> Result<Option<String>, FileProblem> {
    let bytes = project.read(&file_of(kind), FILE_BYTES_MAX)?;
    bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| FileProblem::Io(ErrorKind::InvalidData))).transpose()
}

fn of_user(kind: PromptKind, places: &Places) -> Result<Option<String>, Failure> {
    let Some(folder) = places.user.as_deref().and_then(Path::parent) else { return Ok(None) };
    let path = folder.join("prompts").join(format!("{}.md", kind.word()));
    let unusable = || {
        let message = format!("{} must be a readable file of at most 256 KiB of UTF-8.", shown(&path));
        Failure::new(Code::InvalidConfig, message)
    };
    match path.metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Ok(meta) if meta.is_file() && meta.len() <= FILE_BYTES_MAX => {}
        Ok(_) | Err(_) => return Err(unusable()),
    }
    let mut text = String::new();
    let read = open_regular(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|_| unusable())?;
    Ok(Some(text))
}

/// The existing prompts of a project that can be trusted: their files and texts.
pub fn of_project_to_trust(project: &Project) -> Vec<(PathBuf, String)> {
    let file = |kind| Some((project.folder().join(file_of(kind)), of_project(kind, project).ok()??));
    PromptKind::ALL.iter().copied().filter_map(file).collect()
}

const USER: &str = r#"## Interview

Ask the user what the code does not tell you: the goal, the scope, the edge cases, and what counts as done.
Use your question tool if you have one. Otherwise end your turn with a marker like this one, outside code fences; the answers arrive as the next turn:

<!--QUESTION:{"questions":[{"question":"Where are sessions stored?","header":"Storage","options":[{"label":"Database"},{"label":"Memory"}]}]}-->

Ask only what matters, and ask related questions together. If an answer is declined or asking fails, infer the answer and write it down as an assumption."#;

const NO_USER: &str = "\
No user is present: analyze the codebase to infer the requirements.
Ask nothing. Write assumptions under `## Assumptions`.";

impl Project {
    pub fn knowledge(&self) -> String {
        let mut files = Vec::new();
        self.collect(Path::new(KNOWLEDGE), DEPTH_MAX, &mut files);
        let lines: String = files.iter().map(|file| format!("\n- {file}")).collect();
        match files.is_empty() {
            true => format!("Notes about this project belong in `{KNOWLEDGE}/`, which is still empty."),
            false => {
                format!("Notes about this project are in `{KNOWLEDGE}/`. Read the files that concern your task:{lines}")
            }
        }
    }

    fn collect(&self, folder: &Path, depth: usize, files: &mut Vec<String>) {
        for (name, kind) in self.list(folder, ENTRIES_MAX).unwrap_or_default() {
            let path = folder.join(name);
            match kind {
                _ if files.len() == KNOWLEDGE_FILES_MAX => return,
                Entry::File => files.push(shown(&path)),
                Entry::Folder if depth > 0 => self.collect(&path, depth - 1, files),
                Entry::Folder | Entry::Link | Entry::Other => {}
            }
        }
    }
}

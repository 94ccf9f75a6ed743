//! The command line of `adhoc`, whose flags become fields of run.start.

use super::choices::{AtEof, Color, DiffSize, Output};
use super::row::{Flag, FlagForm, GivenFlag, HasFields, Row, store};
use super::{Wrong, foreign, text, variable};
use crate::cli::typed_fields;
use crate::json::string;
use crate::protocol::fields::Field;
use crate::protocol::ids::SessionName;
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{SandboxMode, WorkflowKind};
use crate::protocol::workflow::{WORDS_BYTES, WorkflowOptions};
use crate::suggest::hint;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeName {
    Generated,
    Given(String),
}

impl WorktreeName {
    /// `None`: the name cannot be part of a path and of a branch.
    pub(crate) fn given(name: &str) -> Option<WorktreeName> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let (first, last) = (name.as_bytes().first(), name.as_bytes().last());
        let fits = name.len() <= 64 && name.bytes().all(is_plain) && is_letter(first) && is_letter(last);
        // git allows neither in the name of a branch.
        let is_reserved = name.contains("..") || name.split('.').any(|part| part == "lock");
        (fits && !is_reserved).then(|| WorktreeName::Given(name.to_owned()))
    }

    pub(super) fn read(flag: &Flag, value: OsString) -> Result<WorktreeName, Wrong> {
        let name = text(flag, value)?;
        if name.is_empty() {
            return Ok(WorktreeName::Generated);
        }
        WorktreeName::given(&name).ok_or_else(|| {
            format!(
                "--{}: a name has 1 to 64 letters, digits and .-_, and begins and ends with a letter or digit.",
                flag.long
            )
        })
    }
}

/// A flag of a command line that a run which continues this one repeats.
#[derive(Clone, Debug)]
pub struct RepeatedFlag {
    /// The name, without its dashes.
    pub name: &'static str,
    /// The field of run.start that the flag sets. `None`: the flag is the command's own.
    pub field: Option<&'static str>,
    /// The flag with its value, one or two words.
    pub words: Vec<OsString>,
    pub may_be_secret: bool,
}

#[derive(Debug, Default)]
pub struct Adhoc {
    pub output: Option<Output>,
    /// Whether `--input jsonl` is given.
    pub read_messages: bool,
    pub words: Vec<String>,
    pub prompt: Option<String>,
    pub prompt_file: Option<PathBuf>,
    pub system_prompt_file: Option<PathBuf>,
    /// Whether `--continue` is given.
    pub go_on: bool,
    pub session_name: Option<SessionName>,
    pub no_session: bool,
    pub answers: Vec<(String, String)>,
    pub answers_file: Option<PathBuf>,
    pub input_timeout: Option<Seconds>,
    pub on_eof: AtEof,
    pub record: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub signal_exit: bool,
    pub log_id: bool,
    pub mirror_stderr: bool,
    pub dry_run: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub color: Color,
    pub plain: bool,
    pub no_alert: bool,
    pub diff: DiffSize,
    pub worktree: Option<WorktreeName>,
    pub allow_setup: bool,
    /// The scenario that the demo agent plays in place of every agent. No flag sets it.
    pub scenario: Option<PathBuf>,
    pub repeated: Vec<RepeatedFlag>,
    pub sandbox_write: Vec<String>,
    pub sandbox_read: Vec<String>,
    pub options: Options,
    /// The flags that set these fields, by field.
    pub flags: BTreeMap<&'static str, &'static str>,
    /// The files that contain the values of further fields, by field.
    pub files: BTreeMap<&'static str, PathBuf>,
    pub workflow: Option<WorkflowKind>,
    pub fields: WorkflowOptions,
    lists: BTreeMap<&'static str, (&'static Flag, Vec<String>)>,
    pairs: BTreeMap<&'static str, (&'static Flag, BTreeMap<String, String>)>,
}

/// The flags that say where a run begins, what its task is, and which files it writes. A run that continues it repeats
/// all others.
const NOT_REPEATED: [&str; 16] = [
    "prompt",
    "prompt-file",
    "image",
    "cwd",
    "worktree",
    "session",
    "fork",
    "continue",
    "name",
    "no-session",
    "conversation",
    "force",
    "dry-run",
    "record",
    "report",
    "input",
];
/// The flags whose values may be secret.
const UNSHOWN: [&str; 5] = ["env", "secret", "mcp-servers", "agent-arg", "answer"];

pub(crate) fn stored(rows: &'static [Row<Adhoc>], given: Vec<GivenFlag>) -> Result<Adhoc, Wrong> {
    let known = given.iter().filter_map(|given| Some((rows.get(given.at)?.flag, &given.value)));
    let kept = known.filter(|(flag, _)| !NOT_REPEATED.contains(&flag.long));
    let repeated = kept.map(|(flag, value)| RepeatedFlag::of(&flag, value)).collect();
    Ok(Adhoc { repeated, ..store(rows, given)? })
}

impl RepeatedFlag {
    fn of(flag: &Flag, value: &OsStr) -> RepeatedFlag {
        let mut words = vec![OsString::from(format!("--{}", flag.long))];
        if flag.takes_value() {
            words.push(value.to_owned());
        } else if flag.value == FlagForm::Attached && !value.is_empty() {
            words.iter_mut().for_each(|word| {
                word.push("=");
                word.push(value);
            });
        }
        let field = flag.field.map(|field| field.name);
        RepeatedFlag { name: flag.long, field, words, may_be_secret: UNSHOWN.contains(&flag.long) }
    }
}

pub(crate) fn read_workflow(kind: WorkflowKind, adhoc: Adhoc, words: Vec<OsString>) -> Result<Adhoc, Wrong> {
    let mut adhoc = Adhoc { workflow: Some(kind), ..read(adhoc, words)? };
    if kind == WorkflowKind::Plan && adhoc.words.len() > 1 {
        let words = adhoc.words.split_off(1).join(" ");
        if words.len() > WORDS_BYTES {
            return Err(
                "The words after SPEC are longer than 128 KiB: put details into files that the agent reads.".into()
            );
        }
        adhoc.fields.words = Some(words);
    }
    Ok(adhoc)
}

pub(crate) fn read_chat(adhoc: Adhoc, words: Vec<OsString>) -> Result<Adhoc, Wrong> {
    let mut adhoc = Adhoc { output: Some(Output::Cli), ..read(adhoc, words)? };
    adhoc.options.conversation = Some(true);
    Ok(adhoc)
}

pub(crate) fn read(mut adhoc: Adhoc, words: Vec<OsString>) -> Result<Adhoc, Wrong> {
    for (name, (flag, list)) in std::mem::take(&mut adhoc.lists) {
        set(&mut adhoc.options, flag, name, &raw(&list)?)?;
    }
    for (name, (flag, pairs)) in std::mem::take(&mut adhoc.pairs) {
        set(&mut adhoc.options, flag, name, &raw(&pairs)?)?;
    }
    widen_sandbox(&mut adhoc)?;
    for word in words {
        adhoc.words.push(word.into_string().map_err(|_| "The prompt must be UTF-8.".to_owned())?);
    }
    agrees(&adhoc).map(|()| adhoc)
}

fn widen_sandbox(adhoc: &mut Adhoc) -> Result<(), Wrong> {
    let (write, read) = (std::mem::take(&mut adhoc.sandbox_write), std::mem::take(&mut adhoc.sandbox_read));
    let Some(sandbox) = adhoc.options.sandbox.as_mut().filter(|sandbox| sandbox.is_on()) else {
        return match (write.is_empty(), read.is_empty()) {
            (true, true) => Ok(()),
            (false, _) => Err("--sandbox-write needs --sandbox workspace.".into()),
            (true, false) => Err("--sandbox-read needs --sandbox read-only or --sandbox workspace.".into()),
        };
    };
    if sandbox.mode == SandboxMode::ReadOnly && !write.is_empty() {
        return Err("--sandbox-write needs --sandbox workspace: a read-only agent changes nothing.".into());
    }
    sandbox.write.extend(write);
    sandbox.read.extend(read);
    Ok(())
}

fn agrees(adhoc: &Adhoc) -> Result<(), Wrong> {
    let dashes = adhoc.words.iter().filter(|word| *word == "-").count();
    let stdin = adhoc.prompt_file.as_deref() == Some(Path::new("-")) || dashes > 0;
    let answers = !adhoc.answers.is_empty() || adhoc.answers_file.is_some();
    let ways = [!adhoc.words.is_empty(), adhoc.prompt.is_some(), adhoc.prompt_file.is_some()];
    let ways = ways.into_iter().filter(|is_given| *is_given).count();
    let prompt = ways > 0;
    let resumed = foreign::resumed(&adhoc.words);
    let options = &adhoc.options;
    // The first one that applies is reported.
    let wrong = [
        (adhoc.quiet && adhoc.verbose, "Give --quiet or --verbose, not both."),
        (
            ways > 1,
            "Give the prompt once: as words, with --prompt, or with --prompt-file. The agent reads other files itself: \
             name them in the prompt.",
        ),
        (resumed.is_some(), resumed.unwrap_or_default()),
        (
            adhoc.system_prompt_file.is_some() && options.system_prompt.is_some(),
            "Give the system prompt once: with --system-prompt or --system-prompt-file.",
        ),
        (adhoc.go_on && options.session_id.is_some(), "Give --continue or --session, not both."),
        (
            adhoc.go_on && adhoc.worktree.is_some(),
            "Give --continue or --worktree, not both: a fresh worktree has no earlier session. To continue in an older \
             one, give its path with --cwd.",
        ),
        (
            adhoc.go_on && adhoc.output == Some(Output::Json) && !prompt,
            "--continue needs a prompt on the command line: a run.start names its own session_id.",
        ),
        (
            adhoc.session_name.is_some() && adhoc.output == Some(Output::Json) && !prompt,
            "--name needs a prompt on the command line: an orchestrator keeps the session_id of its runs itself.",
        ),
        (adhoc.session_name.is_some() && adhoc.no_session, "Give --name or --no-session, not both."),
        (
            answers && options.interactive == Some(false),
            "Give answers or --headless, not both: a headless run asks nothing.",
        ),
        (dashes > 1, "Give - once: it stands for stdin. To use a literal -, quote the whole prompt."),
        (stdin && adhoc.read_messages, "stdin cannot hold both the prompt and the messages of --input jsonl."),
    ];
    wrong.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, why)| Err(why.into()))
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, Wrong> {
    to_raw_value(value).map_err(|_| "A value on the command line is invalid.".to_owned())
}

impl HasFields for Adhoc {
    /// A later value replaces an earlier one, but a list or an object collects all.
    fn set_field(&mut self, flag: &'static Flag, field: &'static Field, value: OsString) -> Result<(), Wrong> {
        let name = field.name;
        self.flags.insert(name, flag.long);
        self.files.remove(name);
        match flag.value {
            FlagForm::Item => self.lists.entry(name).or_insert((flag, Vec::new())).1.push(text(flag, value)?),
            FlagForm::Pair => {
                self.pairs.entry(name).or_insert((flag, BTreeMap::new())).1.extend([variable(flag, value)?]);
            }
            FlagForm::Switch(_) | FlagForm::Json | FlagForm::Words | FlagForm::Text | FlagForm::Attached => {
                if let Some(file) = value.to_str().and_then(|text| typed_fields::file(name, text)) {
                    self.files.insert(name, file.to_owned());
                } else {
                    option(&mut self.options, flag, name, value)?;
                }
            }
        }
        Ok(())
    }
}

/// The value is not an `@FILE`.
pub(crate) fn option(options: &mut Options, flag: &Flag, name: &str, value: OsString) -> Result<(), Wrong> {
    let value = match flag.value {
        FlagForm::Switch(meaning) => raw(&serde_json::from_str::<serde_json::Value>(meaning).unwrap_or_default())?,
        FlagForm::Json | FlagForm::Words => {
            let typed = text(flag, value)?;
            let file = typed_fields::file(name, "@FILE").filter(|_| !typed.trim_start().starts_with(['{', '[']));
            let file = file.map(|_| format!(" For a file with the JSON, use --{} @FILE.", flag.long));
            typed_fields::value(name, &typed)
                .map_err(|why| format!("--{} {why}.{}", flag.long, file.unwrap_or_default()))?
        }
        FlagForm::Text | FlagForm::Item | FlagForm::Pair | FlagForm::Attached => raw(&text(flag, value)?)?,
    };
    set(options, flag, name, &value)
}

fn set(options: &mut Options, flag: &Flag, name: &str, value: &RawValue) -> Result<(), Wrong> {
    options.set(name, value).map_err(|problem| {
        let hint = hint(&string(value).unwrap_or_default(), flag.values.iter().copied());
        format!("--{} {}.{hint}", flag.long, typed_fields::clause(name, &problem))
    })
}

pub(super) fn workflow_field(to: &mut Adhoc, name: &str, flag: &Flag, value: OsString) -> Result<(), Wrong> {
    let json = match flag.value {
        FlagForm::Switch(_) => raw(&true)?,
        FlagForm::Attached if value.is_empty() => raw(&true)?,
        FlagForm::Json => {
            let typed = text(flag, value)?;
            RawValue::from_string(typed.clone()).or_else(|_| raw(&typed))?
        }
        FlagForm::Item => {
            let mut list = to.fields.ignore.take().unwrap_or_default();
            list.push(text(flag, value)?);
            raw(&list)?
        }
        FlagForm::Text | FlagForm::Words | FlagForm::Pair | FlagForm::Attached => raw(&text(flag, value)?)?,
    };
    to.fields.set(name, &json).map_err(|expected| format!("--{} must be {expected}.", flag.long))
}

pub(super) fn answer(flag: &Flag, value: OsString) -> Result<(String, String), Wrong> {
    let answer = text(flag, value)?;
    let pair = answer.split_once('=').filter(|(key, _)| !key.trim().is_empty());
    let (key, value) = pair.ok_or(format!("--{} must be {}.", flag.long, flag.metavar))?;
    Ok((key.into(), value.into()))
}

//! The commands of a conversation's prompt line, and the completion of what is typed there.

use crate::clean::one_line;
use crate::protocol::outbound::{AgentCommand, ArtifactRef, CheckpointId, FileEdit, Progress, ProgressKind, Usage};
use crate::protocol::prompt::{called_command, first_word};
use crate::protocol::request::Options;
use crate::protocol::words::{CheckpointState, word_enums};
use crate::suggest::{Typed, Unknown};
use serde_json::value::{RawValue, to_raw_value};
use std::path::{Path, PathBuf};

/// The maximum size of the changes that `/diff` shows, in bytes. The oldest are dropped.
const CHANGES_BYTES: usize = 256 << 10;
/// The maximum number of candidates of a completion that are shown.
const SHOWN: usize = 40;

/// Our own commands: the name, its input, and a description.
const OWN: [(&str, &str, &str); 9] = [
    ("agent", " NAME", "choose the agent; after the first prompt, in a new session"),
    ("cost", "", "show the tokens and the cost so far"),
    ("diff", "", "show the changes that the agent reported"),
    ("exit", "", "end the conversation, as Ctrl-D and /quit do"),
    ("help", "", "show the commands and the keys"),
    ("model", " NAME", "choose the model"),
    ("permissions", " POLICY", "choose what runs without asking"),
    ("rewind", " [ID | list]", "restore files to before the last prompt, or prompt ID"),
    ("sessions", "", "list the last sessions in this directory"),
];

/// Reads the value of a field as a flag takes it. Error: the range, as a clause about the field.
type ReadTyped = fn(&str, &str) -> Result<Box<RawValue>, String>;

#[derive(Debug, Default)]
pub struct ChatPlace {
    /// The line that says which agent and which session the conversation has.
    pub about: String,
    /// The last sessions in the directory, a line each.
    pub sessions: String,
    pub agents: Vec<String>,
    /// The reason why a conversation that has begun keeps its settings, as a clause. `None`: it can begin again.
    pub keeps: Option<&'static str>,
    /// The directory below which Tab completes paths.
    pub cwd: PathBuf,
    /// The files whose path below a directory begins with a text, those of a folder with a `/` at the end.
    pub files: Option<fn(&Path, &str) -> Vec<String>>,
    pub typed: Option<ReadTyped>,
}

word_enums! {
    /// A setting that a person can choose in a conversation, by the name of its command, of its field in run.start, and of
    /// its flag.
    pub enum Setting { Agent = "agent", Model = "model", Permissions = "permissions" }
}

#[derive(Clone, Debug, Default)]
pub struct ChosenSettings {
    /// Each chosen setting once, with its value.
    pub values: Vec<(Setting, String)>,
    /// Whether the agent was chosen after the conversation had begun with another one.
    pub has_other_agent: bool,
}

impl ChosenSettings {
    fn put(&mut self, setting: Setting, value: &str) {
        self.values.retain(|(known, _)| *known != setting);
        self.values.push((setting, value.to_owned()));
    }
}

#[derive(Debug, Default)]
pub(super) struct ChatFacts {
    pub(super) around: ChatPlace,
    pub(super) chosen: ChosenSettings,
    /// The agent's own commands. `None`: it has not listed them.
    commands: Option<Vec<AgentCommand>>,
    usage: Option<Usage>,
    /// The checkpoints, each with the prompt that followed it.
    checkpoints: Vec<(CheckpointId, String)>,
    /// The edits so far, as painted lines.
    changes: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// A prompt. `calls`: it calls a command of the agent's.
    Prompt { calls: bool },
    /// A command of ours, with the lines that it shows.
    Shown(String),
    /// The conversation is to go on with another setting. The line says so.
    Again(String),
    /// The files are to be put back to this checkpoint.
    Rewind(CheckpointId),
    /// No further prompt comes.
    End,
}

impl ChatFacts {
    pub(super) fn of(around: ChatPlace) -> ChatFacts {
        ChatFacts { around, ..ChatFacts::default() }
    }

    /// `paint`: the lines of an edit.
    pub(super) fn note(&mut self, progress: &Progress, paint: impl Fn(&FileEdit) -> String) {
        if let ProgressKind::Commands(all) = &progress.about {
            self.commands = Some(all.clone());
        } else if let ProgressKind::Usage(usage) = &progress.about {
            self.usage = Some(*usage);
        } else if let ProgressKind::Tool { diff, .. } = &progress.about {
            self.changes.extend(diff.iter().map(paint));
            let mut size: usize = self.changes.iter().map(String::len).sum();
            while size > CHANGES_BYTES && self.changes.len() > 1 {
                size -= self.changes.remove(0).len();
            }
        }
    }

    /// `opening`: the fields of the run, if it has not begun.
    pub(super) fn read(&mut self, text: &str, opening: Option<&mut Options>) -> Entered {
        // A blank before the slash makes it a text.
        let Some(name) = called_command(text).filter(|_| text.starts_with('/')) else {
            return Entered::Prompt { calls: false };
        };
        let rest = text[1 + name.len()..].trim();
        if matches!(name, "exit" | "quit") {
            return Entered::End;
        }
        if name == "rewind" {
            return self.rewind(rest, opening.is_some());
        }
        if let Some(setting) = Setting::from_word(name) {
            return self.choose(setting, rest, opening).unwrap_or_else(Entered::Shown);
        }
        if OWN.iter().any(|(own, ..)| *own == name) {
            return Entered::Shown(self.own(name));
        }
        let names = || self.commands.iter().flatten().map(|command| first_word(command.name.shown()));
        if self.commands.is_none() || names().any(|known| known == name) {
            return Entered::Prompt { calls: true };
        }
        let unknown = Unknown { what: "command", dashes: "/", typed: Typed::Value(name), place: "" };
        let known = OWN.iter().map(|(own, ..)| *own).chain(names());
        let otherwise = "/help lists the commands; a blank before the / sends the text as it is.";
        Entered::Shown(unknown.message(known, otherwise))
    }

    fn own(&self, name: &str) -> String {
        match name {
            "cost" => self.usage.map_or_else(
                || "Nothing was used so far.".to_owned(),
                |usage| {
                    let cost = usage.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
                    format!("{}{cost}", usage.line())
                },
            ),
            "diff" if self.changes.is_empty() => "The agent reported no change to a file so far.".to_owned(),
            "diff" => self.changes.concat(),
            "sessions" if self.around.sessions.is_empty() => "No session is stored for this directory.".to_owned(),
            "sessions" => format!("{}`spektacular chat --resume ID` continues one.", self.around.sessions),
            _ => self.help(),
        }
    }

    /// Chooses for the run that has not begun, or for one that continues this one.
    fn choose(&mut self, setting: Setting, value: &str, opening: Option<&mut Options>) -> Result<Entered, String> {
        let name = setting.word();
        if value.is_empty() {
            return Err(format!(
                "Name it: /{name}{}",
                OWN.iter().find(|(own, ..)| *own == name).map_or("", |row| row.1)
            ));
        }
        if setting == Setting::Agent && !self.around.agents.iter().any(|known| known == value) {
            let unknown = Unknown { what: "agent", dashes: "", typed: Typed::Value(value), place: "" };
            let known = self.around.agents.iter().map(String::as_str);
            return Err(unknown.message(known, "`spektacular agents list` lists them."));
        }
        let is_opening = opening.is_some();
        let text = || to_raw_value(value).map_err(|_| "cannot be set".to_owned());
        let raw = self.around.typed.map_or_else(text, |typed| typed(name, value));
        let raw = raw.map_err(|clause| format!("`{name}` {clause}."))?;
        let set = opening.unwrap_or(&mut Options::default()).set(name, &raw);
        set.map_err(|problem| format!("`{name}` {}.", problem.clause()))?;
        let chosen = format!("{name}: {}", one_line(value));
        if is_opening {
            self.chosen.put(setting, value);
            return Ok(Entered::Shown(chosen));
        }
        if let Some(why) = self.around.keeps {
            return Err(format!("A conversation {why} keeps its {name}: end it with Ctrl-D, and begin another one."));
        }
        let mut session = "";
        if setting == Setting::Agent {
            // The model was one of the agent before.
            self.chosen.values.retain(|(known, _)| *known != Setting::Model);
            self.chosen.has_other_agent = true;
            session = ", in a new session";
        }
        self.chosen.put(setting, value);
        Ok(Entered::Again(chosen + session))
    }

    fn rewind(&self, rest: &str, is_opening: bool) -> Entered {
        let line = |(id, text): &(CheckpointId, String)| format!("  {id}: {text}\n");
        let before_prompt = |id: &CheckpointId| matches!(id, CheckpointId::Prompt(_));
        match (rest, self.checkpoints.last()) {
            (_, None) if is_opening => Entered::Shown("The conversation has not begun.".into()),
            ("list", None) => {
                Entered::Shown("The chat has no checkpoint yet, or it was begun without --checkpoints.".into())
            }
            ("list", Some(_)) => Entered::Shown(self.checkpoints.iter().map(line).collect()),
            ("", _) => {
                let last = self.checkpoints.iter().rev().map(|(id, _)| *id).find(before_prompt);
                Entered::Rewind(last.unwrap_or(CheckpointId::Prompt(0)))
            }
            (id, _) => match CheckpointId::read(id) {
                Some(id) => Entered::Rewind(id),
                None => Entered::Shown("Name a checkpoint such as p_1: /rewind list lists them.".into()),
            },
        }
    }

    /// `prompt`: the one that follows the checkpoint. Returns the lines about a rewind.
    pub(super) fn note_checkpoint(&mut self, progress: &Progress, prompt: &str) -> String {
        let ProgressKind::Checkpoint { checkpoint_id, state, undo, files } = &progress.about else {
            return String::new();
        };
        match state {
            CheckpointState::Complete => return String::new(),
            CheckpointState::Taken => {
                self.checkpoints.push((*checkpoint_id, prompt.to_owned()));
                return String::new();
            }
            CheckpointState::Restored => {}
        }
        self.checkpoints.extend(undo.map(|undo| (undo, format!("before /rewind {checkpoint_id}"))));
        let line = |file: &ArtifactRef| format!("  {} ({})\n", one_line(file.path.shown()), file.action.word());
        let undone = undo.map(|undo| format!("/rewind {undo} undoes it.\n")).unwrap_or_default();
        match files.as_slice() {
            [] => "No file has changed since then.\n".to_owned(),
            files => "Put back:\n".to_owned() + &files.iter().map(line).collect::<String>() + &undone,
        }
    }

    fn help(&self) -> String {
        let row = |name: &str, hint: &str, about: &str| {
            let head = format!("/{name}{hint}");
            format!("  {head:<22} {about}").trim_end().to_owned() + "\n"
        };
        let mut lines: String = OWN.iter().map(|(name, hint, about)| row(name, hint, about)).collect();
        let theirs = self.commands.iter().flatten();
        let theirs: Vec<String> = theirs.map(|command| format!("/{}", one_line(command.name.shown()))).collect();
        if !theirs.is_empty() {
            lines.push_str(&format!("  of the agent: {}\n", theirs.join(" ")));
        }
        lines + "  Tab completes a command, or a path after @. A space before the / sends the text as it is."
    }

    /// Returns the characters to add, and the candidates to show.
    pub(super) fn complete(&self, before: &str) -> (String, Vec<String>) {
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let (typed, mut all): (&str, Vec<String>) = if let (Some(name), true) = (word.strip_prefix('/'), word == before)
        {
            let theirs = self.commands.iter().flatten().map(|command| first_word(command.name.shown()).to_owned());
            (name, OWN.iter().map(|(own, ..)| (*own).to_owned()).chain(theirs).collect())
        } else if let (Some(path), Some(files)) = (word.strip_prefix('@'), self.around.files) {
            (path, files(&self.around.cwd, path))
        } else {
            return (String::new(), Vec::new());
        };
        all.retain(|name| name.starts_with(typed));
        all.sort();
        all.dedup();
        let common = all.iter().skip(1).fold(all.first().cloned().unwrap_or_default(), |common, name| {
            common.chars().zip(name.chars()).take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
        });
        let mut added = common.get(typed.len()..).unwrap_or_default().to_owned();
        if let [only] = &all[..] {
            added.push_str(if only.ends_with('/') { "" } else { " " });
        }
        let candidates = if added.is_empty() { all.into_iter().take(SHOWN).collect() } else { Vec::new() };
        (added, candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::{ChatFacts, ChatPlace, Entered, OWN, Setting};
    use crate::protocol::outbound::{
        AgentCommand, ArtifactRef, CallId, CheckpointId, FileEdit, Progress, ProgressKind, ToolExit, Usage,
    };
    use crate::protocol::request::Options;
    use crate::protocol::words::{Action, Category, CheckpointState, ToolState};
    use crate::terminal::screen::Look;
    use crate::terminal::tools::painted;

    fn known() -> ChatFacts {
        let command = |name: &str| AgentCommand { name: name.into(), description: None, hint: None };
        let around = ChatPlace {
            agents: vec!["claude".into(), "codex".into()],
            files: Some(|_, typed| {
                let all = ["src/", "src/main.rs", "sample.txt"].into_iter().filter(|path| path.starts_with(typed));
                all.map(str::to_owned).collect()
            }),
            ..ChatPlace::default()
        };
        let mut known = ChatFacts { around, ..ChatFacts::default() };
        let all = ["review", "memory show"].map(command).to_vec();
        known.note(&Progress::new(ProgressKind::Commands(all), ""), |_| String::new());
        known
    }

    #[test]
    fn a_slash_calls_our_command_or_the_agents_and_nothing_else() {
        let mut known = known();
        let prompt = |calls| Entered::Prompt { calls };
        for (text, entry) in [
            ("hello", prompt(false)),
            ("/etc/hosts is wrong", prompt(false)),
            (" /review", prompt(false)),
            ("/review a.rs", prompt(true)),
            ("/memory show", prompt(true)),
        ] {
            assert_eq!(known.read(text, None), entry, "{text}");
        }
        assert_eq!(ChatFacts::default().read("/any", None), prompt(true), "the agent may have it");
        let Entered::Shown(lines) = known.read("/reviw", None) else { panic!("it was sent") };
        assert_eq!(lines, "Unknown command /reviw. Did you mean /review?");
        let Entered::Shown(lines) = known.read("/help", None) else { panic!("it was sent") };
        assert!(OWN.iter().all(|(name, ..)| lines.contains(&format!("/{name}"))), "{lines}");
        assert!(lines.contains("/review /memory show"), "{lines}");
    }

    #[test]
    fn settings_are_chosen_before_the_first_prompt_and_after_it() {
        let (mut known, mut options) = (known(), Options::default());
        let mut said = |text: &str, opening: Option<&mut Options>| match known.read(text, opening) {
            Entered::Shown(lines) => lines,
            Entered::Again(line) => format!("again, {line}"),
            Entered::Prompt { .. } | Entered::Rewind(_) | Entered::End => panic!("{text} was sent"),
        };
        let mut opening = |text: &str| said(text, Some(&mut options));
        assert_eq!(opening("/model opus"), "model: opus");
        assert_eq!(opening("/agent codex"), "agent: codex");
        assert_eq!(opening("/agent codx"), "Unknown agent codx. Did you mean codex?");
        let wrong = opening("/permissions never");
        assert!(wrong.starts_with("`permissions` must be"), "{wrong}");
        assert_eq!(opening("/permissions read-only"), "permissions: read-only");
        assert_eq!(opening("/model"), "Name it: /model NAME");
        assert!(said("/permissions never", None).starts_with("`permissions` must be"));
        assert_eq!(said("/model sonnet", None), "again, model: sonnet");
        assert_eq!(said("/agent claude", None), "again, agent: claude, in a new session");
        assert_eq!((options.model.as_deref(), options.agent.as_deref()), (Some("opus"), Some("codex")));
        let chosen = [(Setting::Permissions, "read-only".to_owned()), (Setting::Agent, "claude".to_owned())];
        assert_eq!(known.chosen.values, chosen, "the model was one of another agent");
        known.around.keeps = Some("that began with a pipe");
        let Entered::Shown(late) = known.read("/model opus", None) else { panic!("it was taken") };
        assert!(late.starts_with("A conversation that began with a pipe keeps its model"), "{late}");
    }

    #[test]
    fn the_cost_is_that_so_far() {
        let mut known = known();
        assert_eq!(known.read("/cost", None), Entered::Shown("Nothing was used so far.".into()));
        let usage = Usage { input_tokens: Some(5), output_tokens: Some(2), cost_usd: Some(0.5), ..Usage::default() };
        known.note(&Progress::new(ProgressKind::Usage(usage), ""), |_| String::new());
        assert_eq!(known.read("/cost", None), Entered::Shown("5 tokens in, 2 out, $0.5000".into()));
    }

    #[test]
    fn a_rewind_goes_to_the_last_checkpoint_or_to_the_one_that_is_named() {
        let mut known = known();
        assert_eq!(known.read("/rewind", None), Entered::Rewind(CheckpointId::Prompt(0)));
        let about = |state, undo| ProgressKind::Checkpoint {
            checkpoint_id: CheckpointId::Prompt(2),
            state,
            undo,
            files: vec![ArtifactRef { path: "a.rs".into(), action: Action::Created }],
        };
        let taken = Progress::new(about(CheckpointState::Taken, None), "");
        assert_eq!(known.note_checkpoint(&taken, "tidy up"), "");
        assert_eq!(known.read("/rewind", None), Entered::Rewind(CheckpointId::Prompt(2)));
        assert_eq!(known.read("/rewind p_1", None), Entered::Rewind(CheckpointId::Prompt(1)));
        assert!(matches!(known.read("/rewind 1", None), Entered::Shown(lines) if lines.contains("/rewind list")));
        let done = Progress::new(about(CheckpointState::Restored, Some(CheckpointId::Rewind(1))), "");
        assert_eq!(known.note_checkpoint(&done, ""), "Put back:\n  a.rs (created)\n/rewind r_1 undoes it.\n");
        // A further one does not undo the first.
        assert_eq!(known.read("/rewind", None), Entered::Rewind(CheckpointId::Prompt(2)));
        let listed = "  p_2: tidy up\n  r_1: before /rewind p_2\n";
        assert_eq!(known.read("/rewind list", None), Entered::Shown(listed.into()));
    }

    #[test]
    fn the_changes_are_those_so_far() {
        let mut known = known();
        assert_eq!(known.read("/diff", None), Entered::Shown("The agent reported no change to a file so far.".into()));
        let edit = FileEdit::new("a.rs", "@@ -0,0 +1 @@\n+new\n".into()).unwrap();
        let exit = ToolExit { code: None, in_frame: false };
        let about = ProgressKind::Tool {
            call_id: CallId(1),
            name: None,
            category: Category::Edit,
            state: ToolState::Completed,
            locations: Vec::new(),
            duration_ms: None,
            exit_code: exit,
            sandbox_suspected: false,
            phase: None,
            input: None,
            output: None,
            diff: vec![edit.clone(), edit],
        };
        known.note(&Progress::new(about, ""), |edit| painted(&Look::default(), edit));
        assert_eq!(known.read("/diff", None), Entered::Shown("a.rs\n+new\na.rs\n+new\n".into()));
    }

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let none = Vec::<String>::new;
        for (before, added, candidates) in [
            ("/he", "lp ", none()),
            ("/rev", "iew ", none()),
            ("/me", "mory ", none()),
            ("say /he", "", none()),
            ("look at @sr", "c/", vec![]),
            ("@sa", "mple.txt ", none()),
            ("@s", "", vec!["sample.txt".to_owned(), "src/".into(), "src/main.rs".into()]),
            ("plain", "", none()),
        ] {
            assert_eq!(known().complete(before), (added.to_owned(), candidates), "{before}");
        }
    }
}

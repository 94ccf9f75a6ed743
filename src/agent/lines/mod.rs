//! Any command: the prompt goes in, lines of text come out, and the exit code decides.
//!
//! A turn is one process. The prompt replaces `{prompt}` in its arguments, or else is its stdin. Its stdout is one
//! message, complete when the process ends, because question markers and secrets may span lines. A further turn is a
//! new process with `resume_args`.
//!
//! The prompt is passed verbatim. A value that begins an argument must not begin with `-`, because the command would take
//! it for a flag, unless `--` stands before it.

mod command;
#[cfg(test)]
mod tests;

use self::command::{MODEL, PROMPT, SESSION, Values};
use super::limit::Keeper;
use super::preference::{Preference, warn_of_ignored};
use super::provider::{self, Evidence, ProviderAccount};
use super::text::FinalAnswer;
use super::{
    AgentEvent, AskKey, Base, Driver, DriverOutput, Features, Launch, Line, MessageKey, Reply, TurnOver, Wants,
    error_text, speech,
};
use crate::clean::{self, Cleaner};
use crate::json::Object;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::image::Image;
use crate::protocol::limits::ARGUMENT_BYTES;
use crate::protocol::outbound::{AgentExit, Capabilities, Text};
use crate::protocol::pattern::{COMPILED_BYTES, PATTERN_BYTES, Pattern};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::QuestionKind;
use std::borrow::Cow;

/// The maximum beginning of a line in which session ids are searched, in bytes.
const SEARCHED: usize = 64 << 10;
/// The maximum size of held-back blank text, in bytes.
const BLANK: usize = 64 << 10;

/// The settings of a command, as a configuration has them.
#[derive(Clone, Debug, Default)]
pub struct LinesSetup {
    /// Regular expressions that find the session's id in their first group, or else in the whole match.
    pub session_patterns: Vec<String>,
    /// A turn failed if a line matches one.
    pub failure_patterns: Vec<String>,
    /// The path of the text in lines that are JSON.
    pub text_field: Option<String>,
    /// The arguments for a further turn; without them, sessions end with their process.
    pub resume_args: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct LinesDriver {
    base: Base,
    args: Vec<String>,
    setup: LinesSetup,
    patterns: Vec<Pattern>,
    failures: Vec<Pattern>,
    failed: Option<String>,
    model: Option<String>,
    cwd: String,
    agent_args: Vec<String>,
    wants: Wants,
    session: Option<SessionId>,
    turns: u64,
    answer: FinalAnswer,
    /// Held-back blank text, passed on only if more text follows.
    blank: String,
    /// Whether to search this turn for its session's id.
    seeks: bool,
    /// The numbers of lines of this turn's stdout and stderr searched for the id.
    sought: (u64, u64),
    /// The indexes of the patterns that matched in this turn, to note each once.
    matched: Vec<usize>,
    running: bool,
    cleaner: Cleaner,
}

impl LinesDriver {
    pub(crate) fn new(mut base: Base, setup: LinesSetup) -> LinesDriver {
        let args = std::mem::take(&mut base.args);
        LinesDriver { base, args, setup, ..LinesDriver::default() }
    }

    fn resumes(&self) -> bool {
        command::names(&self.setup.resume_args, SESSION)
    }

    /// Whether the command line of the first turn has the model.
    fn takes_model(&self, settings: &Settings) -> bool {
        command::names(if settings.session_id.is_some() { &self.setup.resume_args } else { &self.args }, MODEL)
    }

    /// `template`: the turn's arguments. Error: an argument that does not fit a command line.
    fn turn(&mut self, template: &[String], prompt: &str) -> Result<Launch, Failure> {
        let model = self.model.as_deref();
        let values = Values { prompt, session: self.session.as_deref(), model, cwd: &self.cwd };
        let mut args = command::arguments(template, &values)?;
        args.extend(self.agent_args.iter().cloned());
        let text = prompt.strip_suffix('\n').unwrap_or(prompt);
        let by_stdin = !command::names(template, PROMPT);
        self.turns += 1;
        self.answer = FinalAnswer::default();
        self.blank.clear();
        self.cleaner = Cleaner::default();
        (self.seeks, self.running) = (!self.patterns.is_empty(), true);
        self.sought = (0, 0);
        self.matched.clear();
        self.failed = None;
        Ok(Launch {
            send: text.split('\n').filter(|_| by_stdin).map(str::to_owned).collect(),
            close_input: true,
            start_timeout: None,
            reads_stderr: !self.patterns.is_empty() || !self.failures.is_empty(),
            ..self.base.launch("lines", args, Vec::new())
        })
    }

    fn session(&self) -> AgentEvent {
        AgentEvent::Session { id: self.session.clone(), version: None, model: self.model.clone().map(Text::from) }
    }

    /// The first match in a turn counts. `stream`: the line's number and its stream, for notes.
    fn seek(&mut self, text: &str, stream: (u64, &str), out: &mut DriverOutput) {
        if !self.seeks {
            return;
        }
        let text = &text[..text.floor_char_boundary(SEARCHED)];
        for (at, pattern) in self.patterns.iter().enumerate() {
            let Some(id) = pattern.find(text) else { continue };
            let place = format!("number {} of session_patterns matched line {}{}", at + 1, stream.0, stream.1);
            let Some(id) = SessionId::new(id).filter(fits_argument) else {
                // Once is enough: the pattern may match every line.
                if !self.matched.contains(&at) {
                    self.matched.push(at);
                    out.events.push(AgentEvent::Note(format!("{place}, but the match cannot be a session id").into()));
                }
                continue;
            };
            self.matched.push(at);
            out.events.push(AgentEvent::Note(format!("{place}: found the session id").into()));
            self.seeks = false;
            if self.session.as_ref() != Some(&id) {
                self.session = Some(id);
                out.events.push(self.session());
            }
            return;
        }
    }

    /// The first failure in a turn counts.
    fn seek_failure(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(SEARCHED)];
        if self.failed.is_none() && self.failures.iter().any(|pattern| pattern.find(text).is_some()) {
            self.failed = Some(text.trim().to_owned());
        }
    }

    /// Trims the message as a whole.
    fn say(&mut self, text: &str, out: &mut DriverOutput) {
        let words = text.trim_end();
        let begins = self.answer.print.bytes() == 0;
        if words.is_empty() {
            self.blank.push_str(text);
            if self.blank.len() <= BLANK {
                return;
            }
        }
        let mut piece = Cow::Borrowed(words);
        if !self.blank.is_empty() {
            piece = Cow::Owned(std::mem::take(&mut self.blank) + words);
        }
        self.blank.push_str(if words.is_empty() { "" } else { &text[words.len()..] });
        let piece = if begins { piece.trim_start() } else { &piece };
        if piece.is_empty() {
            return;
        }
        self.answer.push(piece, self.wants.answer_bytes);
        out.events.push(speech(MessageKey(self.turns), None, false, piece, false));
    }
}

/// Whether a session's id may be part of a command line, where it must not look like a flag.
fn fits_argument(id: &SessionId) -> bool {
    !id.starts_with('-') && !id.contains(char::is_control)
}

fn compiled(field: &str, patterns: &[String]) -> Result<Vec<Pattern>, Failure> {
    let one = |(at, pattern): (usize, &String)| {
        Pattern::new(pattern).ok_or_else(|| {
            let message = format!(
                "The agent's `{field}`: number {} must be a regular expression of at most {} KiB, compiled at most {} KiB: correct it.",
                at + 1,
                PATTERN_BYTES >> 10,
                COMPILED_BYTES.1 >> 10
            );
            Failure::new(Code::InvalidConfig, message)
        })
    };
    patterns.iter().enumerate().map(one).collect()
}

impl Driver for LinesDriver {
    fn features(&self, settings: &Settings) -> Features {
        let asks = !self.setup.resume_args.is_empty();
        let capabilities = Capabilities {
            resume: Some(self.resumes()),
            usage: Some(false),
            conversation: Some(asks && (!self.resumes() || !self.setup.session_patterns.is_empty())),
            ..Capabilities::usual(if asks { vec![QuestionKind::Select, QuestionKind::Text] } else { Vec::new() })
        };
        let model = self.takes_model(settings).then_some(Preference::Model);
        Features {
            preferences: model.into_iter().chain([Preference::SystemPrompt]).collect(),
            reports_tools: false,
            process_per_turn: true,
            listens: false,
            // A command reports neither its tools nor its usage.
            ..Features::usual(capabilities, |_| Keeper::Nobody)
        }
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Launch, Failure> {
        self.patterns = compiled("session_patterns", &self.setup.session_patterns)?;
        self.failures = compiled("failure_patterns", &self.setup.failure_patterns)?;
        if settings.fork {
            return Err(Failure::not_forkable("this agent"));
        }
        let template = match &settings.session_id {
            None => self.args.clone(),
            Some(id) if self.resumes() && fits_argument(id) => self.setup.resume_args.clone(),
            Some(_) if self.resumes() => {
                return Err(Failure::invalid_start(sentence!(
                    "{session_id} must not begin with `-` or contain control characters.",
                    session_id
                )));
            }
            Some(_) => return Err(Failure::not_resumable("this agent has no `resume_args` with {session}.")),
        };
        let takes_model = self.takes_model(settings);
        warn_of_ignored(settings, self, out);
        self.model = settings.model.clone().filter(|_| takes_model || command::names(&self.setup.resume_args, MODEL));
        self.cwd = settings.cwd.to_string_lossy().into_owned();
        self.agent_args.clone_from(&settings.agent_args);
        self.wants = Wants::new(settings);
        self.session.clone_from(&settings.session_id);
        if self.session.is_some() {
            out.events.push(self.session());
        }
        // A command has no separate system prompt.
        match settings.system_prompt.as_ref().filter(|text| !text.is_empty()) {
            Some(system) => self.turn(&template, &format!("{system}\n\n{}", settings.prompt)),
            None => self.turn(&template, &settings.prompt),
        }
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        let Line::Text(text) = line else { return out.unparsed() };
        self.sought.0 += u64::from(self.seeks);
        // Keeps the final state of the line as a terminal shows it: progress bars overwrite themselves.
        let line = text.trim_end_matches('\r');
        let line = self.cleaner.push(&line[line.rfind('\r').map_or(0, |cr| cr + 1)..]);
        self.seek(&line, (self.sought.0, ""), out);
        self.seek_failure(&line);
        let picked = self.setup.text_field.as_deref().and_then(|path| picked(&line, path));
        if picked.as_ref().is_some_and(String::is_empty) {
            return;
        }
        // A text in JSON may have escape sequences of its own.
        let line = picked.map_or(line, |text| Cow::Owned(self.cleaner.push(&text).into_owned()));
        self.say(&line, out);
        let end = self.cleaner.push("\n");
        self.say(&end, out);
    }

    fn stderr(&mut self, text: &str, out: &mut DriverOutput) {
        self.sought.1 += u64::from(self.seeks);
        let line = clean::whole(text);
        self.seek(line.trim_end(), (self.sought.1, " of stderr"), out);
        self.seek_failure(line.trim_end());
    }

    /// Commands ask no questions.
    fn answer(&mut self, _key: &AskKey, _replies: &[Reply], _out: &mut DriverOutput) {}

    /// A session cannot be resumed without its id.
    fn takes_turns(&self) -> bool {
        let may_be_named = self.running && !self.setup.session_patterns.is_empty();
        !self.setup.resume_args.is_empty() && (!self.resumes() || self.session.is_some() || may_be_named)
    }

    fn follow_up(&mut self, prompt: &str, _images: &[Image], out: &mut DriverOutput) {
        match self.turn(&self.setup.resume_args.clone(), prompt) {
            Ok(launch) => out.relaunch = Some(Box::new(launch)),
            Err(_) => {
                let message = format!(
                    "A further prompt must fit the agent's command line: at most {ARGUMENT_BYTES} bytes, without NUL, and not beginning with `-`."
                );
                let failure = Failure::new(Code::InvalidRequest, message);
                out.fail(failure);
            }
        }
    }

    /// Commands have no interrupt.
    fn interrupt(&mut self, _out: &mut DriverOutput) {}

    /// A command exits by itself.
    fn finish(&mut self, _out: &mut DriverOutput) {}

    fn tree_gone(&mut self, _exit: AgentExit, out: &mut DriverOutput) {
        let lines = self.sought.0 + self.sought.1;
        let missed = (0..self.patterns.len()).filter(|at| !self.matched.contains(at));
        let note = |at: usize| format!("number {} of session_patterns matched none of {lines} lines", at + 1);
        out.events.extend(missed.map(|at| AgentEvent::Note(note(at).into())));
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        self.running = false;
        if let Some(said) = self.failed.take().filter(|_| exit.signal.is_none()) {
            let account = ProviderAccount { agent: "The agent", login: "log in with its own command" };
            let evidence = Evidence { text: &said, ..Evidence::default() };
            return TurnOver::Failed(provider::failure(account, &evidence, error_text::error(&said)));
        }
        let (code, message): (_, Sentence) = match (exit.code, exit.signal) {
            (Some(0), _) => {
                let answer = std::mem::take(&mut self.answer);
                return TurnOver::completed(answer);
            }
            // A shell and env exit with these codes if they cannot run a command.
            (Some(126 | 127), _) if !alive => (
                Code::AgentStartFailed,
                "The agent's command could not be run: check that its program and its interpreter are installed."
                    .into(),
            ),
            (Some(status), _) if stderr.is_empty() => {
                (Code::AgentError, format!("The agent ended with exit code {status}: see its output.").into())
            }
            (Some(status), _) => {
                let message = sentence!("The agent ended with exit code {status}: see {stderr_tail}.", stderr_tail);
                (Code::AgentError, message)
            }
            (None, _) => (
                Code::AgentExited,
                "A signal ended the agent: run it again, or run its command by hand to see why.".into(),
            ),
        };
        TurnOver::Failed(Failure::new(code, message))
    }
}

/// The texts at a path of keys, joined by newlines. A key of a list leads into each object of it. `None`: the line is not
/// an object, so that it is text itself.
fn picked(line: &str, path: &str) -> Option<String> {
    let object = Object::parse(line.trim())?;
    let mut texts = Vec::new();
    pick(&object, path, &mut texts);
    Some(texts.join("\n"))
}

fn pick(object: &Object<'_>, path: &str, texts: &mut Vec<String>) {
    let Some((first, rest)) = path.split_once('.') else { return texts.extend(object.string(path)) };
    if let Some(inner) = object.object(first) {
        return pick(&inner, rest, texts);
    }
    for inner in object.objects(first) {
        pick(&inner, rest, texts);
    }
}

//! The player: the agent's side of a dialogue. It takes the steps of a scenario or of a workflow, and speaks to the driver
//! in lines of JSON. Whatever it reads, writes and waits for belongs to its [`DemoStage`].

use super::lines::{FromHost, PlayerLine, quoted};
use super::read::is_placeholder;
use super::scenario::{
    CallWork, Condition, FileChange, NamedQuestion, PlayedCall, Scenario, ScenarioStep, SpokenText, StepAction, ToolEnd,
};
use crate::json::map_strings;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The size of the pieces of a repeated text, in bytes.
const PIECE_BYTES: usize = 16 << 10;
/// The maximum length of an answer in a text, in bytes.
const ANSWER_BYTES: usize = 16 << 10;
/// The maximum size of all answers in one line, in bytes.
const FILLED_BYTES: usize = 1 << 20;
const NO_ANSWER: &str = "(no answer)";

pub(crate) trait DemoStage {
    /// Writes to stdout. Returns whether somebody can read it.
    fn print(&mut self, line: &str) -> bool;
    /// Writes to stderr.
    fn complain(&mut self, text: &str);
    fn hear(&mut self, wait: Wait) -> HeardLine;
    /// The time since the start.
    fn now(&self) -> Duration;
    /// Writes a file. A `guarded` one must lie below the working directory, whatever links lead there. `None`: it cannot
    /// be written. Otherwise whether it is new.
    fn write(&mut self, path: &str, content: &str, guarded: bool) -> Option<bool>;
    /// Deletes a file below the working directory. Returns whether it did.
    fn delete(&mut self, path: &str) -> bool;
    fn read(&mut self, path: &str) -> Option<String>;
    fn requirements(&self, spec: &str) -> Vec<u64>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Forever,
    AtMost(Duration),
}

#[derive(Debug)]
pub(crate) enum HeardLine {
    Line(String),
    Silence,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exit(u8),
    /// The process stays, and does nothing any more.
    Hang,
}

#[derive(Debug)]
pub(super) enum TurnStop {
    Interrupted,
    /// The failure as JSON.
    Failed(String),
    Over(End),
}

pub(super) type Played<T> = Result<T, TurnStop>;

/// The answer to a question: the text, or all chosen labels. `None`: unanswered.
type Answer = Option<Vec<String>>;

pub(super) struct Player<'s> {
    pub(super) stage: &'s mut dyn DemoStage,
    answers: BTreeMap<String, Answer>,
    keys: u64,
    turns: u64,
    /// The prompts that steer and were not awaited yet.
    steers: VecDeque<String>,
    steered: u64,
    /// The structured result of the turn, as JSON.
    result: Option<String>,
}

impl<'s> Player<'s> {
    pub(super) fn new(stage: &'s mut dyn DemoStage) -> Player<'s> {
        Player { stage, answers: BTreeMap::new(), keys: 0, turns: 0, steers: VecDeque::new(), steered: 0, result: None }
    }

    pub(super) fn prompt(&mut self) -> Option<String> {
        loop {
            let HeardLine::Line(line) = self.stage.hear(Wait::Forever) else { return None };
            match FromHost::parse(&line) {
                Some(FromHost::Prompt(text)) => return Some(text),
                Some(FromHost::Steer(_)) => {
                    // It came too late for its turn, whose end the driver therefore held back.
                    self.steered += 1;
                    self.end_turn(Ok(()));
                }
                Some(FromHost::End) => return None,
                Some(FromHost::Interrupt | FromHost::Answers(..)) | None => {}
            }
        }
    }

    pub(super) fn end_turn(&mut self, outcome: Played<()>) {
        let line = PlayerLine::default().with("steers", &self.steered.to_string());
        let result = self.result.take();
        let line = match outcome {
            Ok(()) => line.with("over", "\"completed\"").with("result", result.as_deref().unwrap_or("null")),
            Err(TurnStop::Failed(failure)) => line.with("over", "\"failed\"").with("failure", &failure),
            Err(TurnStop::Interrupted | TurnStop::Over(_)) => line.with("over", "\"interrupted\""),
        };
        self.steers.clear();
        self.send(line);
    }

    /// An unread stdout is the host's end, which the next wait reports.
    pub(super) fn send(&mut self, line: PlayerLine) {
        self.stage.print(&line.done());
    }

    /// `None`: nothing that concerns the turn.
    fn hear(&mut self, wait: Wait) -> Played<Option<(String, Vec<Answer>)>> {
        match self.stage.hear(wait) {
            HeardLine::Silence => Ok(None),
            HeardLine::Ended => Err(TurnStop::Over(End::Exit(0))),
            HeardLine::Line(line) => match FromHost::parse(&line) {
                Some(FromHost::Answers(key, answers)) => Ok(Some((key, answers))),
                Some(FromHost::Steer(text)) => {
                    self.steered += 1;
                    self.steers.push_back(text);
                    Ok(None)
                }
                Some(FromHost::Interrupt) => Err(TurnStop::Interrupted),
                Some(FromHost::End) => Err(TurnStop::Over(End::Exit(0))),
                Some(FromHost::Prompt(_)) | None => Ok(None),
            },
        }
    }

    fn wait(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Played<()> {
        let until = self.stage.now() + limit;
        while !done(self) {
            let left = until.saturating_sub(self.stage.now());
            if left.is_zero() {
                break;
            }
            self.hear(Wait::AtMost(left))?;
        }
        Ok(())
    }

    fn answers_to(&mut self, keys: &[String]) -> Played<Vec<Vec<Answer>>> {
        let mut found: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
        while keys.iter().any(|key| !found.contains_key(key)) {
            if let Some((key, answers)) = self.hear(Wait::Forever)? {
                found.insert(key, answers);
            }
        }
        Ok(keys.iter().filter_map(|key| found.remove(key)).collect())
    }

    pub(super) fn turn(&mut self, scenario: &Scenario, prompt: String) -> Played<()> {
        self.turns += 1;
        self.answers.insert("prompt".into(), Some(vec![prompt]));
        self.answers.insert("turn".into(), Some(vec![self.turns.to_string()]));
        let count = u64::try_from(scenario.turns.len()).unwrap_or(1);
        let at = usize::try_from((self.turns - 1) % count).unwrap_or_default();
        for step in scenario.turns.get(at).into_iter().flatten() {
            for _ in 0..step.times {
                // An interrupt counts between two steps.
                self.hear(Wait::AtMost(Duration::ZERO))?;
                if !self.holds(&step.conditions) {
                    break;
                }
                self.step(step)?;
            }
        }
        Ok(())
    }

    fn holds(&self, conditions: &[Condition]) -> bool {
        let holds = |Condition { name, any_of, negated }: &Condition| {
            let answer = self.answers.get(name).and_then(Option::as_ref);
            let matches = any_of.iter().any(|wanted| match (wanted, answer) {
                (None, answer) => answer.is_none(),
                (Some(wanted), Some(answer)) => answer.contains(wanted),
                (Some(_), None) => false,
            });
            matches != *negated
        };
        conditions.iter().all(holds)
    }

    fn step(&mut self, step: &ScenarioStep) -> Played<()> {
        match &step.action {
            StepAction::Say { words, thought, parent } => {
                let parent = parent.as_ref().map(|name| self.named_key(name));
                self.say(words, |piece, done| {
                    let line = PlayerLine::default().with(if *thought { "think" } else { "say" }, piece);
                    line.with("done", &done.to_string()).of(parent.as_deref())
                })?;
            }
            StepAction::Ask(questions) => self.questions(questions)?,
            StepAction::Calls(calls) => self.calls(calls)?,
            StepAction::End(call, end) => self.end_tool(&self.named_key(call), end),
            StepAction::Plan(entries) => self.send_filled("plan", entries),
            StepAction::Usage(usage) => self.send_filled("usage", usage),
            StepAction::Retry(text) => self.send_filled("retry", &quoted(text)),
            StepAction::Result(result) => self.result = Some(self.filled(result)),
            StepAction::Fail(failure) => return Err(TurnStop::Failed(self.filled(failure))),
            StepAction::Wait(limit) => self.wait(*limit, |_| false)?,
            StepAction::AwaitSteer(limit) => {
                self.wait(*limit, |player| !player.steers.is_empty())?;
                let steer = self.steers.pop_front().map(|text| vec![text]);
                self.answers.insert("steer".into(), steer);
            }
            StepAction::Stderr(text) => {
                let text = self.expanded(text, &mut FILLED_BYTES.clone());
                self.stage.complain(&text);
            }
            StepAction::Exit(code) => return Err(TurnStop::Over(End::Exit(*code))),
            StepAction::Hang => return Err(TurnStop::Over(End::Hang)),
        }
        Ok(())
    }

    fn say(&mut self, words: &SpokenText, line: impl Fn(&str, bool) -> PlayerLine) -> Played<()> {
        let pieces: Vec<String> = match (words.pieces.as_slice(), words.times) {
            (pieces, 1) => pieces.to_vec(),
            (pieces, times) => {
                let whole = pieces.concat();
                let each = (PIECE_BYTES / whole.len().max(1)).max(1);
                let (full, rest) = (times as usize / each, times as usize % each);
                let all = std::iter::repeat_n(each, full).chain((rest > 0).then_some(rest));
                return self.say_repeated(&whole, all.collect(), line);
            }
        };
        for (at, piece) in pieces.iter().enumerate() {
            let piece = self.filled(&quoted(piece));
            self.send(line(&piece, at + 1 == pieces.len()));
        }
        Ok(())
    }

    fn say_repeated(&mut self, text: &str, counts: Vec<usize>, line: impl Fn(&str, bool) -> PlayerLine) -> Played<()> {
        let last = counts.len();
        for (at, count) in counts.into_iter().enumerate() {
            self.hear(Wait::AtMost(Duration::ZERO))?;
            self.send(line(&quoted(&text.repeat(count)), at + 1 == last));
        }
        Ok(())
    }

    fn questions(&mut self, questions: &[NamedQuestion]) -> Played<()> {
        let forms: Vec<String> = questions.iter().map(|question| self.filled(&question.form)).collect();
        let answers = self.ask(&forms)?;
        for (question, answer) in questions.iter().zip(answers) {
            if let Some(name) = &question.name {
                self.answers.insert(name.clone(), answer);
            }
        }
        Ok(())
    }

    /// Asks the questions, each as JSON, as one group.
    pub(super) fn ask(&mut self, forms: &[String]) -> Played<Vec<Answer>> {
        let key = self.key();
        self.send(PlayerLine::default().with("ask", &format!("[{}]", forms.join(","))).with("key", &quoted(&key)));
        Ok(self.answers_to(&[key])?.pop().unwrap_or_default())
    }

    fn calls(&mut self, calls: &[PlayedCall]) -> Played<()> {
        let calls: Vec<&PlayedCall> = calls.iter().filter(|call| self.holds(&call.conditions)).collect();
        let begun: Vec<(&PlayedCall, String)> = calls.into_iter().map(|call| (call, self.begin(call))).collect();
        let keys: Vec<String> = begun.iter().filter(|(call, _)| call.asks()).map(|(_, key)| key.clone()).collect();
        let mut answers = self.answers_to(&keys)?.into_iter();
        for (call, key) in begun {
            let allowed = !call.asks() || is_allowed(&answers.next().unwrap_or_default());
            let word = match &call.work {
                _ if !allowed => {
                    self.send(ended(&key, "denied"));
                    "denied"
                }
                CallWork::Tool(tool) => {
                    tool.end.iter().for_each(|end| self.end_tool(&key, end));
                    "allowed"
                }
                CallWork::Change(change) if self.change(&key, change) => "allowed",
                CallWork::Change(_) => "failed",
            };
            if let Some(name) = &call.name {
                self.answers.insert(name.clone(), Some(vec![word.to_owned()]));
            }
        }
        Ok(())
    }

    fn begin(&mut self, call: &PlayedCall) -> String {
        let key = call.name.as_ref().map(|name| self.named_key(name)).unwrap_or_else(|| self.key());
        let head = match &call.work {
            CallWork::Tool(tool) => self.filled(&tool.head),
            CallWork::Change(change) => self.head(change),
        };
        let parent = call.parent.as_ref().map(|name| self.named_key(name));
        self.send(called(&head, &key, call.asks()).of(parent.as_deref()));
        key
    }

    /// The key of a call with a name, which each turn may use again.
    fn named_key(&self, name: &str) -> String {
        format!("{name} in turn {}", self.turns)
    }

    /// The key of a call without a name, or of a request. No name of a call has a blank.
    fn key(&mut self) -> String {
        self.keys += 1;
        format!("number {}", self.keys)
    }

    fn head(&self, change: &FileChange) -> String {
        match &change.content {
            Some(content) => write_head(&change.path, &self.text(content)),
            None => {
                let path = quoted(&change.path);
                PlayerLine::default()
                    .with("name", "\"Delete\"")
                    .with("category", "\"delete\"")
                    .with("subject", &path)
                    .with("paths", &format!("[{path}]"))
                    .done()
            }
        }
    }

    fn change(&mut self, call: &str, change: &FileChange) -> bool {
        match &change.content {
            Some(content) => {
                let text = self.text(content);
                self.written(call, (&change.path, &text), true)
            }
            None => {
                let done = self.stage.delete(&change.path);
                self.changed(call, (&change.path, "deleted", None), None, done)
            }
        }
    }

    fn written(&mut self, call: &str, (path, text): (&str, &str), guarded: bool) -> bool {
        let before = self.stage.read(path);
        let done = self.stage.write(path, text, guarded);
        let action = if done == Some(true) { "created" } else { "modified" };
        self.changed(call, (path, action, Some(text)), before, done.is_some())
    }

    fn changed(
        &mut self,
        call: &str,
        (path, action, content): (&str, &str, Option<&str>),
        before: Option<String>,
        done: bool,
    ) -> bool {
        let text = |text: Option<&str>| text.map_or("null".into(), quoted);
        let line = ended(call, if done { "completed" } else { "failed" });
        let change = PlayerLine::default()
            .with("path", &quoted(path))
            .with("action", &quoted(action))
            .with("before", &text(before.as_deref()))
            .with("content", &text(content));
        self.send(if done { line.with("changed", &change.done()) } else { line });
        done
    }

    pub(super) fn write(&mut self, path: &str, text: &str) -> Played<bool> {
        let call = self.key();
        self.send(called(&write_head(path, text), &call, true));
        if is_allowed(&self.answers_to(std::slice::from_ref(&call))?.pop().unwrap_or_default()) {
            return Ok(self.written(&call, (path, text), false));
        }
        self.send(ended(&call, "denied"));
        Ok(false)
    }

    fn end_tool(&mut self, call: &str, end: &ToolEnd) {
        let mut line = ended(call, if end.failed { "failed" } else { "completed" });
        if let Some(output) = &end.output {
            line = line.with("output", &quoted(&self.text(output)));
        }
        if let Some(code) = end.exit_code {
            line = line.with("exit_code", &code.to_string());
        }
        self.send(line);
    }

    fn send_filled(&mut self, name: &str, value: &str) {
        let value = self.filled(value);
        self.send(PlayerLine::default().with(name, &value));
    }

    fn text(&self, words: &SpokenText) -> String {
        let whole = self.expanded(&words.pieces.concat(), &mut FILLED_BYTES.clone());
        // Only a text without repetitions has answers in it.
        if words.times == 1 { whole } else { words.pieces.concat().repeat(words.times as usize) }
    }

    /// JSON with the answers in its strings.
    fn filled(&self, json: &str) -> String {
        let mut room = FILLED_BYTES;
        map_strings(json, &mut |text| self.expanded(text, &mut room))
    }

    /// A text with the answers for its placeholders, as long as there is `room`, in bytes.
    fn expanded(&self, text: &str, room: &mut usize) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let name = rest[1..].split_once('}').map(|(name, _)| name).filter(|name| is_placeholder(name));
            let answer = name.and_then(|name| self.answers.get(name));
            let (Some(name), Some(answer)) = (name, answer) else {
                out.push('{');
                rest = &rest[1..];
                continue;
            };
            let answer = answer.as_ref().map_or(NO_ANSWER.into(), |all| all.join(", "));
            let answer = &answer[..answer.floor_char_boundary(ANSWER_BYTES.min(*room))];
            *room -= answer.len();
            out.push_str(answer);
            rest = &rest[name.len() + 2..];
        }
        out + rest
    }
}

impl PlayedCall {
    fn asks(&self) -> bool {
        match &self.work {
            CallWork::Tool(tool) => tool.asks,
            CallWork::Change(_) => true,
        }
    }
}

/// `head`: the fields that describe the call, as JSON.
fn called(head: &str, call: &str, asks: bool) -> PlayerLine {
    PlayerLine::default().with("tool", head).with("call", &quoted(call)).with("asks", &asks.to_string())
}

fn ended(call: &str, state: &str) -> PlayerLine {
    PlayerLine::default().with("end", &quoted(call)).with("state", &quoted(state))
}

fn is_allowed(answers: &[Answer]) -> bool {
    matches!(answers, [Some(words)] if words.iter().any(|word| word == "allowed"))
}

fn write_head(path: &str, text: &str) -> String {
    let (path, text) = (quoted(path), quoted(text));
    let input = PlayerLine::default().with("file_path", &path).with("content", &text).done();
    let line = PlayerLine::default().with("name", "\"Write\"").with("category", "\"edit\"").with("subject", &path);
    line.with("paths", &format!("[{path}]")).with("content", &text).with("input", &input).done()
}

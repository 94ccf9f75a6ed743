//! Reads a scenario's file. The [agents' page](../reference.md) describes the format.

use super::lines::PlayerLine;
use super::scenario::{
    CallWork, Condition, FileChange, NamedQuestion, PlayedCall, PlayedTool, Scenario, ScenarioStep, SpokenText,
    StepAction, ToolEnd,
};
use crate::agent::ask_user;
use crate::json::{Fields, Object, number, string};
use crate::protocol::failure::Code;
use crate::protocol::words::{Category, PlanStatus};
use crate::suggest::{Typed, Unknown, either};
use serde_json::value::RawValue;
use std::path::{Component, Path};
use std::time::Duration;

/// The maximum size of a scenario's file, in bytes.
pub(crate) const FILE_BYTES: usize = 1 << 20;
/// The maximum size of a text with its repetitions, in bytes.
const TEXT_BYTES: usize = 8 << 20;
/// The maximum number of times to play a step or a text.
const TIMES: u32 = 1_000_000;
/// The longest wait of a step, in seconds.
const WAIT_S: f64 = 3600.0;
const FAILURES: [Code; 9] = [
    Code::AgentError,
    Code::AuthRequired,
    Code::ContextExceeded,
    Code::LimitReached,
    Code::ModelNotFound,
    Code::ProviderUnavailable,
    Code::QuotaExceeded,
    Code::RateLimited,
    Code::Refused,
];

pub(crate) const ACTIONS: [&str; 18] = [
    "say",
    "think",
    "ask",
    "tool",
    "end",
    "write",
    "delete",
    "together",
    "plan",
    "usage",
    "retry",
    "result",
    "fail",
    "wait",
    "await_steer",
    "stderr",
    "exit",
    "hang",
];
/// The keys that any step may have.
pub(crate) const MODIFIERS: [&str; 5] = ["call", "parent", "times", "if", "unless"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScenarioFlaw {
    /// The line, from 1.
    line: usize,
    why: String,
}

impl ScenarioFlaw {
    pub(crate) fn message(&self, file: &str) -> String {
        format!("{file}, line {}: {}", self.line, self.why)
    }
}

/// The reader of one text, which knows the line of each value in it.
#[derive(Clone, Copy)]
struct Reader<'t>(&'t str);

type Read<T> = Result<T, ScenarioFlaw>;

impl Scenario {
    pub(crate) fn parse(text: &str) -> Read<Scenario> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let reader = Reader(text);
        if text.len() > FILE_BYTES {
            return Err(ScenarioFlaw { line: 1, why: format!("The file is longer than {} MiB.", FILE_BYTES >> 20) });
        }
        let whole: &RawValue = serde_json::from_str(text).map_err(|error| ScenarioFlaw {
            line: error.line().max(1),
            why: format!("Invalid JSON at column {}.", error.column()),
        })?;
        let fields = reader.object(whole, "A scenario", &["about", "turns"])?;
        let about =
            fields.get("about").ok_or_else(|| reader.flaw(whole, "A scenario needs `about`, a line of text."))?;
        let turns =
            fields.get("turns").ok_or_else(|| reader.flaw(whole, "A scenario needs `turns`, a list of turns."))?;
        let (about, all) = (reader.text(about, "`about`")?, reader.list(turns, "`turns`")?);
        if all.is_empty() {
            return Err(reader.flaw(turns, "`turns` must not be empty."));
        }
        let turn = |raw| reader.list(raw, "A turn")?.into_iter().map(|step| reader.step(step)).collect();
        Ok(Scenario { about, turns: all.into_iter().map(turn).collect::<Read<_>>()? })
    }
}

impl<'t> Reader<'t> {
    fn flaw(self, at: &RawValue, why: impl Into<String>) -> ScenarioFlaw {
        let offset = at.get().as_ptr().addr().saturating_sub(self.0.as_ptr().addr());
        ScenarioFlaw { line: 1 + self.0.get(..offset).unwrap_or_default().matches('\n').count(), why: why.into() }
    }

    /// The fields of an object, all of which are known and occur once.
    fn object(self, raw: &'t RawValue, what: &str, known: &[&str]) -> Read<Fields<'t>> {
        let fields = Fields::parse(raw.get()).ok_or_else(|| self.flaw(raw, format!("{what} must be an object.")))?;
        if fields.repeats_one_of(known.iter().copied()) {
            return Err(self.flaw(raw, format!("{what} has a key twice.")));
        }
        if let Some((name, value)) = fields.iter().find(|(name, _)| !known.contains(name)) {
            let place =
                format!(" of {}", what.strip_prefix("A ").map_or_else(|| what.to_owned(), |rest| format!("a {rest}")));
            let unknown = Unknown { what: "key", dashes: "", typed: Typed::Name(name), place: &place };
            let message = unknown.message(known.iter().copied(), &format!("Its keys are: {}.", known.join(", ")));
            return Err(self.flaw(value, message));
        }
        Ok(fields)
    }

    fn list(self, raw: &'t RawValue, what: &str) -> Read<Vec<&'t RawValue>> {
        serde_json::from_str(raw.get()).map_err(|_| self.flaw(raw, format!("{what} must be a list.")))
    }

    fn text(self, raw: &RawValue, what: &str) -> Read<String> {
        string(raw).ok_or_else(|| self.flaw(raw, format!("{what} must be a string.")))
    }

    fn flag(self, raw: &RawValue, what: &str) -> Read<bool> {
        serde_json::from_str(raw.get()).map_err(|_| self.flaw(raw, format!("{what} must be true or false.")))
    }

    fn times(self, raw: &RawValue) -> Read<u32> {
        let times = serde_json::from_str(raw.get()).ok().filter(|times| (1..=TIMES).contains(times));
        times.ok_or_else(|| self.flaw(raw, format!("`times` must be a whole number from 1 to {TIMES}.")))
    }

    fn seconds(self, raw: &RawValue, what: &str) -> Read<Duration> {
        let seconds = number(raw).filter(|seconds| (0.0..=WAIT_S).contains(seconds));
        let seconds =
            seconds.ok_or_else(|| self.flaw(raw, format!("{what} must be a number of seconds, at most {WAIT_S}.")))?;
        Ok(Duration::from_secs_f64(seconds))
    }

    fn name(self, raw: &RawValue, what: &str) -> Read<String> {
        let name = string(raw).filter(|name| is_placeholder(name));
        name.ok_or_else(|| self.flaw(raw, format!("{what} must be a name of a-z, 0-9 and _.")))
    }

    fn words(self, raw: &'t RawValue, what: &str) -> Read<SpokenText> {
        let words = if let Some(text) = string(raw) {
            SpokenText { pieces: vec![text], times: 1 }
        } else if let Ok(pieces) = serde_json::from_str(raw.get()) {
            SpokenText { pieces, times: 1 }
        } else {
            let fields = self.object(raw, what, &["repeat", "times"])?;
            let (Some(text), Some(times)) = (fields.get("repeat"), fields.get("times")) else {
                return Err(self.flaw(
                    raw,
                    format!("{what} must be a string, a list of strings, or an object with repeat and times."),
                ));
            };
            SpokenText { pieces: vec![self.text(text, "`repeat`")?], times: self.times(times)? }
        };
        let bytes = words.pieces.iter().map(String::len).sum::<usize>().saturating_mul(words.times as usize);
        if bytes > TEXT_BYTES {
            return Err(self.flaw(raw, format!("{what} is longer than {} MiB.", TEXT_BYTES >> 20)));
        }
        Ok(words)
    }

    fn step(self, raw: &'t RawValue) -> Read<ScenarioStep> {
        let known = [&ACTIONS[..], &MODIFIERS].concat();
        let fields = self.object(raw, "A step", &known)?;
        let found: Vec<(&str, &'t RawValue)> = fields.iter().filter(|(name, _)| ACTIONS.contains(name)).collect();
        let (name, value) = match found[..] {
            [one] => one,
            [] => return Err(self.flaw(raw, format!("A step needs one of {}.", ACTIONS.join(", ")))),
            _ => {
                let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
                return Err(self.flaw(raw, format!("A step has one action, but this one has {}.", names.join(" and "))));
            }
        };
        let takers: [(&str, &[&str]); 2] =
            [("call", &["tool", "write", "delete", "end"]), ("parent", &["say", "think", "tool", "write", "delete"])];
        for (modifier, takers) in takers {
            if let Some(raw) = fields.get(modifier).filter(|_| !takers.contains(&name)) {
                return Err(self.flaw(raw, format!("`{modifier}` belongs only to {}.", either(takers))));
            }
        }
        let mut conditions = Vec::new();
        for (key, negated) in [("if", false), ("unless", true)] {
            if let Some(raw) = fields.get(key) {
                self.conditions(raw, (key, negated), &mut conditions)?;
            }
        }
        let times = fields.get("times").map_or(Ok(1), |raw| self.times(raw))?;
        let action = self.action((name, value), raw, &fields)?;
        Ok(ScenarioStep { action, times, conditions })
    }

    /// A step of `together`.
    fn call(self, raw: &'t RawValue) -> Read<PlayedCall> {
        let step = self.step(raw)?;
        match (step.action, step.times) {
            (StepAction::Calls(mut calls), 1) if calls.len() == 1 => {
                let call = calls.pop().map(|call| PlayedCall { conditions: step.conditions, ..call });
                call.ok_or_else(|| self.flaw(raw, CALLS))
            }
            _ => Err(self.flaw(raw, CALLS)),
        }
    }

    fn conditions(self, raw: &'t RawValue, (key, negated): (&str, bool), to: &mut Vec<Condition>) -> Read<()> {
        let rule =
            || format!("`{key}` must be an object: the name of an answer, and a string, null or a list of these.");
        let fields = Fields::parse(raw.get()).ok_or_else(|| self.flaw(raw, rule()))?;
        for (name, wanted) in fields.iter() {
            let one = serde_json::from_str::<Option<String>>(wanted.get()).map(|one| vec![one]);
            let any_of = one.or_else(|_| serde_json::from_str(wanted.get())).map_err(|_| self.flaw(wanted, rule()))?;
            to.push(Condition { name: name.to_owned(), any_of, negated });
        }
        Ok(())
    }

    fn action(self, (name, raw): (&str, &'t RawValue), step: &'t RawValue, fields: &Fields<'t>) -> Read<StepAction> {
        let what = format!("`{name}`");
        let given = |name: &str| fields.get(name).map(|raw| self.name(raw, &format!("`{name}`"))).transpose();
        let (call, parent) = (given("call")?, given("parent")?);
        Ok(match name {
            "say" | "think" => StepAction::Say { words: self.words(raw, &what)?, thought: name == "think", parent },
            "ask" => StepAction::Ask(self.questions(raw)?),
            "tool" | "write" | "delete" => {
                let work = if name == "tool" {
                    CallWork::Tool(self.tool(raw)?)
                } else {
                    CallWork::Change(self.change(raw, name)?)
                };
                if call.is_none() && matches!(work, CallWork::Tool(PlayedTool { end: None, .. })) {
                    return Err(self.flaw(step, "A tool that stays open needs `call`, a name."));
                }
                StepAction::Calls(vec![PlayedCall { name: call, parent, conditions: Vec::new(), work }])
            }
            "end" => {
                let call = call.ok_or_else(|| self.flaw(step, "`end` needs `call`, the name of an open call."))?;
                StepAction::End(call, self.tool_end(&self.object(raw, "`end`", &END_KEYS)?)?)
            }
            "together" => {
                StepAction::Calls(self.list(raw, &what)?.into_iter().map(|raw| self.call(raw)).collect::<Read<_>>()?)
            }
            "plan" => StepAction::Plan(self.plan(raw)?),
            "usage" => StepAction::Usage(self.usage(raw)?),
            "retry" => StepAction::Retry(self.text(raw, &what)?),
            "result" => StepAction::Result(raw.get().to_owned()),
            "fail" => StepAction::Fail(self.failure(raw)?),
            "wait" => StepAction::Wait(self.seconds(raw, &what)?),
            "await_steer" => StepAction::AwaitSteer(self.seconds(raw, &what)?),
            "stderr" => StepAction::Stderr(self.text(raw, &what)?),
            "exit" => {
                let code = serde_json::from_str(raw.get());
                StepAction::Exit(code.map_err(|_| self.flaw(raw, "`exit` must be an exit code from 0 to 255."))?)
            }
            "hang" if raw.get() == "true" => StepAction::Hang,
            _ => return Err(self.flaw(raw, format!("{what} must be true."))),
        })
    }

    fn questions(self, raw: &'t RawValue) -> Read<Vec<NamedQuestion>> {
        const KEYS: [&str; 9] =
            ["name", "question", "header", "kind", "options", "multiple", "default", "required", "validation"];
        let one = |raw: &'t RawValue| {
            let fields = self.object(raw, "A question", &KEYS)?;
            let form = Object::parse(raw.get()).map(|form| (ask_user::ask(&form), without(&fields, &["name"])));
            match form {
                Some((Ok(_), form)) => {
                    let name = fields.get("name").map(|raw| self.name(raw, "`name`")).transpose()?;
                    Ok(NamedQuestion { name, form })
                }
                Some((Err(why), _)) => Err(self.flaw(raw, format!("A question: {why}"))),
                None => Err(self.flaw(raw, "A question must be an object.")),
            }
        };
        let all: Vec<NamedQuestion> = self.list(raw, "`ask`")?.into_iter().map(one).collect::<Read<_>>()?;
        if all.is_empty() { Err(self.flaw(raw, "`ask` must not be empty.")) } else { Ok(all) }
    }

    fn tool(self, raw: &'t RawValue) -> Read<PlayedTool> {
        const HEAD: [&str; 5] = ["name", "category", "subject", "paths", "input"];
        let known = [&HEAD[..], &["ask"], &END_KEYS].concat();
        let fields = self.object(raw, "`tool`", &known)?;
        let category = fields.get("category").and_then(string).and_then(|word| Category::from_word(&word));
        if category.is_none() {
            return Err(
                self.flaw(fields.get("category").unwrap_or(raw), format!("`category` must be {}.", Category::EXPECTED))
            );
        }
        for name in ["name", "subject"] {
            fields.get(name).map_or(Ok(String::new()), |raw| self.text(raw, &format!("`{name}`")))?;
        }
        if let Some(paths) = fields.get("paths") {
            self.list(paths, "`paths`")?.into_iter().try_for_each(|path| self.text(path, "A path").map(drop))?;
        }
        if let Some(input) = fields.get("input").filter(|input| Fields::parse(input.get()).is_none()) {
            return Err(self.flaw(input, "`input` must be an object."));
        }
        let is_open = fields.get("state").and_then(string).is_some_and(|state| state == "open");
        Ok(PlayedTool {
            head: without(&fields, &[&["ask"], &END_KEYS[..]].concat()),
            asks: fields.get("ask").map_or(Ok(false), |raw| self.flag(raw, "`ask`"))?,
            end: if is_open { None } else { Some(self.tool_end(&fields)?) },
        })
    }

    fn tool_end(self, fields: &Fields<'t>) -> Read<ToolEnd> {
        let failed = match fields.get("state") {
            None => false,
            Some(raw) => match string(raw).as_deref() {
                Some("completed") => false,
                Some("failed") => true,
                _ => {
                    return Err(self
                        .flaw(raw, "`state` must be \"completed\", \"failed\", or \"open\" for a tool that goes on."));
                }
            },
        };
        let exit_code = fields.get("exit_code").map(|raw| {
            serde_json::from_str(raw.get()).map_err(|_| self.flaw(raw, "`exit_code` must be a whole number."))
        });
        let output = fields.get("output").map(|raw| self.words(raw, "`output`"));
        Ok(ToolEnd { failed, output: output.transpose()?, exit_code: exit_code.transpose()? })
    }

    fn change(self, raw: &'t RawValue, name: &str) -> Read<FileChange> {
        let keys: &[&str] = if name == "write" { &["path", "content"] } else { &["path"] };
        let fields = self.object(raw, &format!("`{name}`"), keys)?;
        let path = fields.get("path").ok_or_else(|| self.flaw(raw, format!("`{name}` needs `path`.")))?;
        let text = string(path).filter(|path| is_inside(path));
        let text = text.ok_or_else(|| {
            self.flaw(path, "`path` must be a relative path without `..` and without names that begin with a dot.")
        })?;
        let content = match (name, fields.get("content")) {
            ("write", None) => return Err(self.flaw(raw, "`write` needs `content`.")),
            (_, content) => content.map(|raw| self.words(raw, "`content`")).transpose()?,
        };
        Ok(FileChange { path: text, content })
    }

    fn plan(self, raw: &'t RawValue) -> Read<String> {
        for entry in self.list(raw, "`plan`")? {
            let fields = self.object(entry, "An entry of `plan`", &["text", "status"])?;
            let status = fields.get("status").and_then(string).and_then(|word| PlanStatus::from_word(&word));
            if fields.get("text").and_then(string).is_none() || status.is_none() {
                let why = format!("An entry of `plan` needs `text`, a string, and `status`, {}.", PlanStatus::EXPECTED);
                return Err(self.flaw(entry, why));
            }
        }
        Ok(raw.get().to_owned())
    }

    fn usage(self, raw: &'t RawValue) -> Read<String> {
        const KEYS: [&str; 4] = ["input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"];
        for (name, value) in self.object(raw, "`usage`", &KEYS)?.iter() {
            let is_whole = serde_json::from_str::<u64>(value.get()).is_ok();
            if !is_whole && (name != "cost_usd" || number(value).is_none_or(|cost| cost < 0.0)) {
                return Err(self.flaw(value, format!("`{name}` must be a number of at least 0.")));
            }
        }
        Ok(raw.get().to_owned())
    }

    fn failure(self, raw: &'t RawValue) -> Read<String> {
        let fields = self.object(raw, "`fail`", &["code", "message", "http_status"])?;
        if fields.get("code").and_then(string).is_none_or(|name| FAILURES.iter().all(|code| code.name() != name)) {
            let names: Vec<&str> = FAILURES.iter().map(|code| code.name()).collect();
            return Err(
                self.flaw(fields.get("code").unwrap_or(raw), format!("`code` must be one of {}.", names.join(", ")))
            );
        }
        if let Some(message) = fields.get("message") {
            self.text(message, "`message`")?;
        }
        if let Some(status) = fields.get("http_status").filter(|raw| serde_json::from_str::<u16>(raw.get()).is_err()) {
            return Err(self.flaw(status, "`http_status` must be a whole number."));
        }
        Ok(raw.get().to_owned())
    }
}

const CALLS: &str = "The steps of `together` must be tool, write or delete, without `times`.";
const END_KEYS: [&str; 3] = ["state", "output", "exit_code"];

/// The fields except these, as JSON.
fn without(fields: &Fields<'_>, names: &[&str]) -> String {
    let kept = fields.iter().filter(|(name, _)| !names.contains(name));
    kept.fold(PlayerLine::default(), |line, (name, raw)| line.with(name, raw.get())).done()
}

pub(super) fn is_placeholder(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// Whether a path leads to a file below the working directory, outside hidden files and folders.
fn is_inside(path: &str) -> bool {
    let plain =
        |part: Component<'_>| matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b"."));
    !path.is_empty() && !path.contains('\0') && !path.ends_with('/') && Path::new(path).components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::{ACTIONS, FAILURES, MODIFIERS, Scenario};

    #[test]
    fn the_page_has_every_key_of_a_step() {
        let (_, page) = include_str!("../reference.md").split_once("\n## Scenarios of the demo agent\n").unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let keys: Vec<&str> = rows.flat_map(|keys| keys.split("`, `")).map(|key| key.trim_matches('`')).collect();
        for key in ACTIONS.iter().chain(&MODIFIERS) {
            assert!(keys.contains(key), "{key} has no row");
        }
        assert_eq!(keys.len(), ACTIONS.len() + MODIFIERS.len(), "{keys:?}");
        assert!(FAILURES.iter().all(|code| page.contains(&format!("`{}`", code.name()))));
    }

    fn flaw(step: &str) -> String {
        let text = format!("{{\n\"about\": \"a\",\n\"turns\": [[\n{step}\n]]}}");
        Scenario::parse(&text).map(drop).unwrap_err().message("a.json")
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_key() {
        for (step, wanted) in [
            (",", "a.json, line 4: Invalid JSON"),
            (r#"{"sya": "x"}"#, "line 4: Unknown key sya of a step. Did you mean say?"),
            ("{\"say\":\n1}", "line 5: `say`"),
            (r#"{"say":"a","think":"b"}"#, "has say and think"),
            (r#"{"times":2}"#, "A step needs one of say, think"),
            (r#"{"say":"a","times":0}"#, "`times` must be a whole number from 1"),
            (r#"{"say":{"repeat":"0123456789","times":1000000}}"#, "longer than 8 MiB"),
            (r#"{"ask":[]}"#, "must not be empty"),
            (r#"{"ask":[{"question":"Q","kind":"rank"}]}"#, "`kind` must be"),
            (r#"{"ask":[{"question":"Q","kind":"text","requird":true}]}"#, "Did you mean required?"),
            (r#"{"ask":[{"question":"Q","kind":"text","name":"A b"}]}"#, "`name` must be a name"),
            (r#"{"tool":{"category":"cook"}}"#, "`category` must be one of"),
            (r#"{"tool":{"category":"read","state":"open"}}"#, "needs `call`"),
            (r#"{"end":{}}"#, "needs `call`"),
            (r#"{"together":[{"say":"a"}]}"#, "must be tool, write or delete"),
            (r#"{"plan":[{"text":"a","status":"done"}]}"#, "`status`, one of"),
            (r#"{"usage":{"input_tokens":-1}}"#, "`input_tokens` must be"),
            (r#"{"fail":{"code":"timeout"}}"#, "`code` must be one of agent_error"),
            (r#"{"wait":1e9}"#, "`wait` must be a number of seconds"),
            (r#"{"exit":256}"#, "from 0 to 255"),
            (r#"{"hang":false}"#, "`hang`"),
            (r#"{"say":"a","if":{"b":1}}"#, "`if` must be an object"),
            (r#"{"say":"a","say":"b"}"#, "a key twice"),
        ] {
            assert!(flaw(step).contains(wanted), "{step}: {}", flaw(step));
        }
    }

    #[test]
    fn a_path_stays_below_the_working_directory() {
        for path in ["", "/a", "../a", "a/../b", "./a", ".git/config", "a/.b", "a/", "a\\u0000"] {
            let step = format!(r#"{{"write":{{"path":"{path}","content":""}}}}"#);
            assert!(flaw(&step).contains("`path` must be"), "{path}");
        }
    }
}

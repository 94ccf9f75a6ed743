//! The calls of a scenario in the terms of an agent, whose tools are found by their names and inputs in its request.

use super::scenario::{AskedQuestion, ModelCall, ModelReply};
use serde_json::{Map, Value, json};
use std::path::Path;

struct Offer<'a> {
    name: &'a str,
    schema: &'a Value,
}

pub(super) struct AgentCall {
    pub(super) name: String,
    pub(super) input: CallInput,
}

pub(super) enum CallInput {
    Fields(Value),
    Text(String),
}

/// The words in the names of tools, those that fit best first.
const SHELL: &[&str] =
    &["bash", "shell", "terminal", "run_command", "run_commands", "execute", "exec", "command", "commands"];
const WRITE: &[&str] = &["write", "create", "editor", "edit", "save"];
const EDIT: &[&str] = &["edit", "replace"];
const ASK: &[&str] = &["ask", "question", "questions", "choice", "input"];

/// The names of inputs with the same meaning.
const COMMANDS: &[&str] = &["command", "cmd", "commands", "code"];
const PATHS: &[&str] = &["file_path", "filePath", "path", "absolute_path", "filename"];
const CONTENTS: &[&str] = &["content", "file_text", "contents", "text", "file_content", "new_text"];
const OLD: &[&str] = &["old_string", "oldString", "old_str"];
const NEW: &[&str] = &["new_string", "newString", "new_str"];

/// The ends of the names of our tools for questions and for results.
const ASKING: &[&str] = &["ask_user", "ask_the_user"];
const RESULT: &[&str] = &["submit_result", "StructuredOutput"];

pub(super) fn count(body: &Value) -> usize {
    offers(&body["tools"]).len()
}

/// The names of the tools for commands and for files of an API's usual agent. A call by such a name shows how the agent
/// treats a tool that it does not offer.
pub(super) type UsualTools = [&'static str; 2];

/// Takes the calls out of the reply, in the terms of this request. `cwd`: the agent's working directory.
pub(super) fn calls(reply: &mut ModelReply, body: &Value, cwd: &Path, usual: UsualTools) -> Vec<AgentCall> {
    let request = Request { offers: offers(&body["tools"]), cwd, usual };
    let calls = std::mem::take(&mut reply.calls);
    calls.iter().filter_map(|call| request.translate(call).map_err(|text| reply.say.push(text)).ok()).collect()
}

fn offers(tools: &Value) -> Vec<Offer<'_>> {
    if let Some(all) = tools.as_array() {
        return all.iter().flat_map(offers).collect();
    }
    let inner = ["functionDeclarations", "function", "tools"].iter().filter_map(|key| tools.get(key));
    let schema = ["input_schema", "parametersJsonSchema", "parameters"].iter().find_map(|key| tools.get(key));
    let own = tools["name"].as_str().map(|name| Offer { name, schema: schema.unwrap_or(&Value::Null) });
    own.into_iter().chain(inner.flat_map(offers)).collect()
}

/// The words of a tool's name: `AskUser` and `ask_user` have the same.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && name[..at].ends_with(|before: char| before.is_ascii_lowercase()) {
            plain.push('_');
        }
        plain.push(c.to_ascii_lowercase());
    }
    plain
}

/// The place of the first of these words in a tool's name.
fn rank(name: &str, words: &[&str]) -> Option<usize> {
    let plain = plain(name);
    let has = |word: &&&str| {
        plain.split(|c: char| !c.is_ascii_lowercase()).any(|part| part == **word)
            || word.contains('_') && plain.contains(**word)
    };
    words.iter().position(|word| has(&word))
}

fn fields(input: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
    input.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The call of an offered tool, with a value for each further input that it requires.
fn call_of(offer: &Offer<'_>, mut input: Map<String, Value>) -> AgentCall {
    let properties = &offer.schema["properties"];
    if properties.get("description").is_some() {
        input.entry("description").or_insert_with(|| json!("Run it"));
    }
    for name in offer.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let about = &properties[name];
        let value = about["enum"].get(0).cloned().unwrap_or_else(|| match about["type"].as_str() {
            Some("boolean") => json!(false),
            Some("integer" | "number") => json!(1),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("x"),
        });
        input.entry(name).or_insert(value);
    }
    AgentCall { name: offer.name.to_owned(), input: CallInput::Fields(Value::Object(input)) }
}

struct Request<'a> {
    offers: Vec<Offer<'a>>,
    cwd: &'a Path,
    usual: UsualTools,
}

impl Request<'_> {
    /// Error: a text in place of the call.
    fn translate(&self, call: &ModelCall) -> Result<AgentCall, String> {
        let absolute = |path: &str| json!(self.cwd.join(path));
        Ok(match call {
            ModelCall::Shell(command) => self.shell(command, true),
            ModelCall::Try(command) => self.shell(command, false),
            ModelCall::Read(path) => match self.find(&["read"], [PATHS]) {
                Some((offer, [key])) => call_of(offer, fields([(key, absolute(path))])),
                None => self.shell(&format!("cat {path}"), false),
            },
            ModelCall::Search(word) => match self.find(&["grep"], [&["pattern"]]) {
                Some((offer, [key])) => call_of(offer, fields([(key, json!(word))])),
                None => self.shell(&format!("grep -rn {word}"), false),
            },
            ModelCall::Write { path, content } => match self.find(WRITE, [PATHS, CONTENTS]) {
                Some((offer, [at, what])) => {
                    let mut input = fields([(at, absolute(path)), (what, json!(content))]);
                    if offer.schema["properties"].get("command").is_some() {
                        input.insert("command".to_owned(), json!("create"));
                    }
                    call_of(offer, input)
                }
                None => {
                    let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
                    self.patch(&format!("*** Add File: {path}\n{added}"))
                }
            },
            ModelCall::Edit { path, old, new } => match self.find(EDIT, [PATHS, OLD, NEW]) {
                Some((offer, [at, before, after])) => {
                    call_of(offer, fields([(at, absolute(path)), (before, json!(old)), (after, json!(new))]))
                }
                None => self.patch(&format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n")),
            },
            ModelCall::Ask(questions) => self.ask(questions)?,
            ModelCall::Offered(input) => match self.ending(ASKING) {
                Some(offer) => call_of(offer, input.as_object().cloned().unwrap_or_default()),
                None => return Err("(no tool to ask the user is offered)".into()),
            },
            ModelCall::Result(input) => match self.ending(RESULT) {
                Some(offer) => AgentCall { name: offer.name.to_owned(), input: CallInput::Fields(input.clone()) },
                None => return Err(input.to_string()),
            },
            ModelCall::Tool { name, input } => {
                let end = name.split_once('*').map(|(_, end)| end);
                let offer = end.and_then(|end| self.ending(&[end]));
                let name = offer.map_or_else(|| name.replace('*', ""), |offer| offer.name.to_owned());
                AgentCall { name, input: CallInput::Fields(input.clone()) }
            }
        })
    }

    fn ending(&self, ends: &[&str]) -> Option<&Offer<'_>> {
        self.offers.iter().find(|offer| ends.iter().any(|end| offer.name.ends_with(end)))
    }

    /// The offered tool whose name fits best, with its names of these inputs. It is none of our own tools.
    fn find<const N: usize>(
        &self,
        words: &[&str],
        inputs: [&[&'static str]; N],
    ) -> Option<(&Offer<'_>, [&'static str; N])> {
        let keys = |offer: &Offer<'_>| {
            let properties = &offer.schema["properties"];
            let named = inputs.map(|names| names.iter().copied().find(|name| properties.get(name).is_some()));
            named.iter().all(Option::is_some).then(|| named.map(Option::unwrap_or_default))
        };
        let own = self.offers.iter().filter(|offer| !ASKING.iter().any(|end| offer.name.ends_with(end)));
        let fitting = own.filter_map(|offer| Some((rank(offer.name, words)?, offer, keys(offer)?)));
        fitting.min_by_key(|(rank, ..)| *rank).map(|(_, offer, keys)| (offer, keys))
    }

    /// `leaves`: the command must leave the agent's own sandbox, as the real models ask for commands that act.
    fn shell(&self, command: &str, leaves: bool) -> AgentCall {
        let Some((offer, [key])) = self.find(SHELL, [COMMANDS]) else {
            return self.not_offered(0, json!({"command": command}));
        };
        let properties = &offer.schema["properties"];
        let is_list = properties[key]["type"] == "array";
        let mut input = fields([(key, if is_list { json!([command]) } else { json!(command) })]);
        if leaves && properties.get("sandbox_permissions").is_some() {
            input.insert("sandbox_permissions".to_owned(), json!("require_escalated"));
            input.insert("justification".to_owned(), json!(format!("May I run {command}?")));
        }
        // The time after which the model gets the output so far.
        if properties.get("yield_time_ms").is_some() {
            input.insert("yield_time_ms".to_owned(), json!(30_000));
        }
        call_of(offer, input)
    }

    /// A change of files in the one form of patches that some agents have.
    fn patch(&self, change: &str) -> AgentCall {
        let text = format!("*** Begin Patch\n{change}*** End Patch\n");
        if let Some((offer, [key])) = self.find(&["patch"], [&["input", "patch"]]) {
            return call_of(offer, fields([(key, json!(text))]));
        }
        match self.offers.iter().find(|offer| rank(offer.name, &["patch"]).is_some()) {
            Some(offer) => AgentCall { name: offer.name.to_owned(), input: CallInput::Text(text) },
            None => self.not_offered(1, json!({"patch": text})),
        }
    }

    fn not_offered(&self, tool: usize, input: Value) -> AgentCall {
        AgentCall { name: self.usual[tool].to_owned(), input: CallInput::Fields(input) }
    }

    fn ask(&self, questions: &[AskedQuestion]) -> Result<AgentCall, String> {
        let own = self.find(ASK, [&["questions"]]).map(|(offer, _)| offer);
        let offer = own.or_else(|| self.ending(ASKING)).ok_or("(no tool to ask the user is offered)")?;
        let root = offer.schema;
        let item = &resolved(&root["properties"]["questions"]["items"], root)["properties"];
        let as_texts = resolved(&resolved(&item["options"], root)["items"], root)["type"] == "string";
        let one = |(at, asked): (usize, &AskedQuestion)| {
            let option = |label: &String| match as_texts {
                true => json!(label),
                false => json!({"label": label, "description": format!("To choose {label}.")}),
            };
            let options: Value = asked.options.iter().map(option).collect();
            let kind = if own.is_some() { "choice" } else { "select" };
            let all = json!({"question": asked.question, "header": asked.header, "id": format!("q{at}"), "kind": kind,
                "type": kind, "multiSelect": asked.multiple, "multiple": asked.multiple,
                "multi_select": asked.multiple, "options": options});
            let known = |(name, _): &(&String, &Value)| item.is_null() || item.get(name.as_str()).is_some();
            let kept = all.as_object().into_iter().flatten().filter(known);
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        let questions: Value = questions.iter().enumerate().map(one).collect();
        Ok(call_of(offer, fields([("questions", questions)])))
    }
}

/// A schema that may be a reference into the tool's whole schema.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let path = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    path.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

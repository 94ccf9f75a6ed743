//! The demo agent in a workflow. It speaks like a real agent, but has no model and always writes the same files.

use crate::io::output::print;
use crate::json::{Fields, string, to_line};
use crate::workflow::spec;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SESSION: &str = "5d3f0c1e-de30-4000-8000-000000000002";
/// The files that its plan creates.
const HELLO: &str = "spektacular-demo/hello.txt";
const GOODBYE: &str = "spektacular-demo/goodbye.txt";

/// A role that the demo agent plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DemoPart {
    /// Writes a specification to this file.
    Spec(String),
    /// Writes a plan into this folder.
    Plan {
        folder: String,
        /// The path and the text of the specification.
        spec: (String, String),
    },
    /// Implements the phase with this number. `again`: whether its commands have failed before.
    Phase { number: u64, again: bool },
}

impl DemoPart {
    /// The role to play for a prompt. `None`: the prompt does not come from a workflow.
    pub(super) fn of(prompt: &str) -> Option<DemoPart> {
        let line = |prefix: &str| prompt.lines().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
        let has = |wanted: &str| prompt.lines().any(|line| line == wanted);
        let again = has("# Verification failed");
        if let Some(phase) = line("# Implement Phase ") {
            let number = phase.split(':').next().and_then(|number| number.parse().ok())?;
            return Some(DemoPart::Phase { number, again });
        }
        if again {
            return Some(DemoPart::Phase { number: 2, again });
        }
        if has("# Create a specification") || (prompt.starts_with('/') && line("File: ").is_some()) {
            return line("File: ").map(DemoPart::Spec);
        }
        if has("# Specification to Plan") {
            let (_, text) = prompt.split_once("\n# Specification to Plan\n")?;
            let path = prompt.split_once("`Spec: ").and_then(|(_, rest)| rest.split_once('`'));
            let path = path.map(|(path, _)| path.to_owned()).unwrap_or_default();
            return Some(DemoPart::Plan { folder: line("Folder: ")?, spec: (path, text.to_owned()) });
        }
        has("# Continue").then(|| line("Draft: ")).flatten().map(DemoPart::going_on)
    }

    /// The role for continuing a draft.
    fn going_on(draft: String) -> DemoPart {
        if draft.ends_with(".md") {
            return DemoPart::Spec(draft);
        }
        let plan = std::fs::read_to_string(Path::new(&draft).join("plan.md")).unwrap_or_default();
        let path = plan.lines().find_map(|line| line.strip_prefix("Spec: ")).unwrap_or_default().to_owned();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        DemoPart::Plan { folder: draft, spec: (path, text) }
    }
}

/// Plays a role, and those of further turns. `next`: returns the next line of the host. Returns the exit code.
pub(super) fn play(role: DemoPart, next: &mut dyn FnMut() -> Option<String>) -> u8 {
    let mut actor = Actor { next, calls: 0, over: false };
    let mut turn = Some(role);
    while let Some(role) = turn {
        let prompt = actor.turn(role);
        turn = prompt.map(|prompt| DemoPart::of(&prompt).unwrap_or(DemoPart::Phase { number: 0, again: false }));
    }
    0
}

struct Actor<'n> {
    next: &'n mut dyn FnMut() -> Option<String>,
    calls: u64,
    /// Whether the host has ended the session.
    over: bool,
}

impl Actor<'_> {
    /// Plays a role. Returns the prompt of the next turn.
    fn turn(&mut self, role: DemoPart) -> Option<String> {
        let init = json!({"type": "system", "subtype": "init", "session_id": SESSION, "model": "demo-model",
            "tools": ["AskUserQuestion", "Write"], "permissionMode": "default"});
        self.send(&init);
        let last = match role {
            DemoPart::Spec(file) => self.spec(&file),
            DemoPart::Plan { folder, spec } => self.plan(&folder, &spec),
            DemoPart::Phase { number, again } => self.phase(number, again),
        };
        self.finish(&last)
    }

    fn send(&mut self, message: &Value) {
        self.over |= !print(&format!("{}\n", to_line(message)));
    }

    fn message(&mut self, content: Value) {
        let id = format!("msg_{}", self.calls);
        self.send(&json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [content]},
            "parent_tool_use_id": null, "session_id": SESSION}));
    }

    fn say(&mut self, text: &str) {
        self.calls += 1;
        self.message(json!({"type": "text", "text": text}));
    }

    /// Calls a tool if the host allows it. Returns the input that the host approved. `None`: the host denied the call.
    fn call(&mut self, tool: &str, input: &Value) -> Option<String> {
        self.calls += 1;
        let (call, request) = (format!("toolu_{}", self.calls), format!("request-{}", self.calls));
        self.message(json!({"type": "tool_use", "id": call, "name": tool, "input": input}));
        self.send(&json!({"type": "control_request", "request_id": request, "request":
            {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": call}}));
        let allowed = self.answer(&request);
        let done = allowed.is_some()
            && (tool != "Write" || write(input["file_path"].as_str(), input["content"].as_str().unwrap_or_default()));
        let text = if done { "Done." } else { "This was not done." };
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": text, "is_error": !done});
        let mut message = json!({"type": "user", "message": {"role": "user", "content": [result]},
            "parent_tool_use_id": null, "session_id": SESSION});
        if done && tool == "Write" {
            message["tool_use_result"] =
                json!({"type": "create", "filePath": input["file_path"], "content": input["content"]});
        }
        self.send(&message);
        allowed.filter(|_| done)
    }

    /// Waits for the host's answer to a request.
    fn answer(&mut self, request: &str) -> Option<String> {
        while !self.over {
            let Some(line) = (self.next)() else {
                self.over = true;
                break;
            };
            let Some(fields) = Fields::parse(&line) else { continue };
            let response = fields.get("response").and_then(|raw| Fields::parse(raw.get()));
            match response {
                Some(response) if response.get("request_id").and_then(string).as_deref() == Some(request) => {
                    let inner = response.get("response").and_then(|raw| Fields::parse(raw.get()))?;
                    let allows = inner.get("behavior").and_then(string).as_deref() == Some("allow");
                    return inner.get("updatedInput").filter(|_| allows).map(|raw| raw.get().to_owned());
                }
                Some(_) => {}
                None => self.control(&fields),
            }
        }
        None
    }

    /// Answers a request of the host: an interrupt, or the end of the session.
    fn control(&mut self, fields: &Fields<'_>) {
        if let Some(id) = fields.get("request").and(fields.get("request_id")).and_then(string) {
            self.over = true;
            self.send(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": id}}));
        }
    }

    /// Writes a file if the host allows it. Returns whether the file was written.
    fn write(&mut self, path: &str, content: &str) -> bool {
        let path = std::env::current_dir().unwrap_or_default().join(path);
        let input = json!({"file_path": path.to_string_lossy(), "content": content});
        self.call("Write", &input).is_some()
    }

    /// Ends the turn. Returns the prompt of the next one.
    fn finish(&mut self, last: &str) -> Option<String> {
        if !self.over {
            self.say(last);
            self.send(&json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": self.calls,
                "result": last, "stop_reason": "end_turn", "session_id": SESSION, "total_cost_usd": 0,
                "usage": {"input_tokens": 120, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20,
                    "output_tokens": 40}, "permission_denials": [], "terminal_reason": "completed"}));
        }
        while let Some(line) = (self.next)() {
            if let Some(prompt) = said(&line) {
                return Some(prompt);
            }
            if let Some(fields) = Fields::parse(&line) {
                self.control(&fields);
            }
        }
        None
    }

    fn spec(&mut self, file: &str) -> String {
        self.say("I am the demo agent: I ask one question, and write a specification that is always the same.");
        let question = json!({"questions": [{"question": "Which style should the greeting have?", "header": "Style",
            "multiSelect": false, "options": [{"label": "Plain", "description": "One line."},
                {"label": "Warm", "description": "One line, and an exclamation mark."}]}]});
        let answer = self.call("AskUserQuestion", &question).unwrap_or_default();
        let style = if answer.contains("\"Warm\"") { "warm" } else { "plain" };
        let assumed = if answer.is_empty() {
            "\n## Assumptions\n\n- A plain style is fine: nobody was there to ask.\n"
        } else {
            ""
        };
        let text = format!(
            "# A greeting\n\n## Overview\n\nThe project greets whoever reads it, in a {style} style, and says goodbye.\n\n\
             ## Requirements\n\n- [ ] R1: A file holds the greeting.\n- [ ] R2: The greeting is addressed to the world.\n\
             - [ ] R3: A second file says goodbye.\n\n\
             ## Acceptance Criteria\n\n- Both files exist and are not empty.\n- Each contains its word.\n{assumed}"
        );
        match self.write(file, &text) {
            true => format!("{file} created with 3 tasks"),
            false => format!("{file} could not be written."),
        }
    }

    fn plan(&mut self, folder: &str, (path, text): &(String, String)) -> String {
        self.say("I am the demo agent: I write a plan of two phases.");
        let ids = spec::check("", text.as_bytes(), &[]).0.ids().unwrap_or_default();
        let (first, second) = ids.split_at(ids.len().div_ceil(2));
        let plan = format!(
            "# Plan: A greeting\nSpec: {path}\n\n## Phase 1: The greeting\n\n- [ ] T1.1 Write the greeting to {HELLO}{}\n\n\
             ### Verify\n\n```sh\ntest -s {HELLO}\n```\n\n## Phase 2: The farewell\n\n\
             - [ ] T2.1 Say goodbye in {GOODBYE}{}\n\n### Verify\n\n```sh\ntest -s {GOODBYE}\ngrep -q Goodbye {GOODBYE}\n```\n",
            serves(first),
            serves(second)
        );
        let files = [
            ("plan.md", plan.as_str()),
            ("research.md", "# Research\n\nTwo new files do not depend on anything in the project.\n"),
            ("context.md", "# Context\n\nThe files have their own folder, so nothing else changes.\n"),
        ];
        match files.into_iter().all(|(name, text)| self.write(&format!("{folder}/{name}"), text)) {
            true => format!("{folder} created with 2 phases and 2 tasks"),
            false => format!("{folder} could not be written."),
        }
    }

    fn phase(&mut self, number: u64, again: bool) -> String {
        let (file, text) = match (number, again) {
            (1, _) => (HELLO, "Hello, world.\n"),
            // A deliberate mistake that the commands find.
            (2, false) => (GOODBYE, "Godbye, world.\n"),
            (2, true) => (GOODBYE, "Goodbye, world.\n"),
            _ => return "I am the demo agent: I know only the two phases of my own plan.".into(),
        };
        let mends = again && Path::new(file).exists();
        match self.write(file, text) {
            true if mends => format!("There was a spelling mistake in {file}: I corrected it."),
            true => format!("I wrote {file}."),
            false => format!("{file} could not be written."),
        }
    }
}

/// The ids of the requirements that a task serves, after a space.
fn serves(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("R{id}")).collect();
    if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) }
}

/// The text of a line with which the host begins a turn.
pub(super) fn said(line: &str) -> Option<String> {
    let message = Fields::parse(line)?.get("message")?.to_owned();
    Fields::parse(message.get())?.get("content").and_then(string)
}

/// Writes a file and the folders above it.
fn write(path: Option<&str>, content: &str) -> bool {
    let Some(path) = path.map(PathBuf::from) else { return false };
    let made = path.parent().is_none_or(|folder| std::fs::create_dir_all(folder).is_ok());
    made && std::fs::write(&path, content).is_ok()
}

#[cfg(test)]
mod tests {
    use super::DemoPart;

    #[test]
    fn the_prompt_decides_the_part() {
        let plan = "The plan has the line `Spec: a.md`.\nFolder: p.draft\n# Specification to Plan\n# T\n";
        for (prompt, role) in [
            ("say hello", None),
            ("# Create a specification\nFile: a.draft.md\n", Some(DemoPart::Spec("a.draft.md".into()))),
            ("/spec\n\nDescription: x\nFile: a.draft.md\n", Some(DemoPart::Spec("a.draft.md".into()))),
            (plan, Some(DemoPart::Plan { folder: "p.draft".into(), spec: ("a.md".into(), "# T\n".into()) })),
            ("# Implement Phase 2: The farewell\n", Some(DemoPart::Phase { number: 2, again: false })),
            ("# Implement Phase 1: X\n\n# Verification failed\n", Some(DemoPart::Phase { number: 1, again: true })),
            ("# Verification failed\nAttempt 2 of 3\n", Some(DemoPart::Phase { number: 2, again: true })),
            ("# Continue\n\nDraft: b.draft.md\n", Some(DemoPart::Spec("b.draft.md".into()))),
        ] {
            assert_eq!(DemoPart::of(prompt), role, "{prompt}");
        }
    }
}

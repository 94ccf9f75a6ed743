//! The sessions that Gemini CLI stores: a line for each message, the newest form of a message last, and lines that set all
//! messages anew.

use crate::agent::stored::{StoredEdit, StoredPart, StoredTool, lines, value_of};
use crate::agent::title;
use crate::json::Object;
use crate::protocol::words::Category;
use std::collections::HashMap;

/// The beginning of the text with which Gemini CLI itself begins a session.
const CONTEXT: &str = "<session_context>";

pub(super) fn parts(session: &str) -> Vec<StoredPart> {
    let mut messages = Messages::default();
    for line in lines(session) {
        match line.object("$set").map(|set| (set.raw("messages").is_some(), set)) {
            Some((true, set)) => {
                messages = Messages::default();
                set.objects("messages").for_each(|message| messages.put(message));
            }
            Some((false, _)) => {}
            None => messages.put(line),
        }
    }
    messages.all.iter().flat_map(of_message).collect()
}

/// The newest form of each message, in the order of their first forms.
#[derive(Default)]
struct Messages<'s> {
    all: Vec<Object<'s>>,
    places: HashMap<String, usize>,
}

impl<'s> Messages<'s> {
    fn put(&mut self, message: Object<'s>) {
        let id = message.string("id");
        match id.as_ref().and_then(|id| self.places.get(id)) {
            Some(&at) => self.all[at] = message,
            None => {
                self.places.extend(id.map(|id| (id, self.all.len())));
                self.all.push(message);
            }
        }
    }
}

fn of_message(message: &Object<'_>) -> Vec<StoredPart> {
    let text = |of: &Object<'_>, name: &str| of.string(name).filter(|text| !text.trim().is_empty());
    match message.str("type").as_deref() {
        Some("user") => {
            let texts = message.objects("content").filter_map(|part| text(&part, "text"));
            let own = texts.chain(text(message, "content")).filter(|text| !text.starts_with(CONTEXT));
            own.map(StoredPart::Prompt).collect()
        }
        Some("gemini") => {
            let thought = |thought: Object<'_>| {
                let both = [text(&thought, "subject"), text(&thought, "description")].into_iter().flatten();
                StoredPart::Reasoning(both.collect::<Vec<_>>().join("\n"))
            };
            let thoughts = message.objects("thoughts").map(thought);
            // A message of a resumed session has a list of parts in place of a text.
            let parts = message.objects("content").filter_map(|part| text(&part, "text"));
            let said = text(message, "content").into_iter().chain(parts).map(StoredPart::Text);
            thoughts.chain(said).chain(message.objects("toolCalls").map(|call| StoredPart::Tool(tool(&call)))).collect()
        }
        _ => Vec::new(),
    }
}

fn tool(call: &Object<'_>) -> StoredTool {
    let name = call.string("name").unwrap_or_default();
    let category = match &*name {
        "run_shell_command" => Category::Execute,
        "write_file" | "replace" => Category::Edit,
        "read_file" | "read_many_files" => Category::Read,
        "glob" | "grep_search" | "search_file_content" | "list_directory" => Category::Search,
        "web_fetch" | "google_web_search" => Category::Fetch,
        _ => Category::Other,
    };
    let args = call.object("args");
    let about = ["command", "file_path", "path", "pattern", "query", "prompt"];
    let about = args.and_then(|args| about.iter().find_map(|name| args.string(name))).unwrap_or_default();
    let shown = call.object("resultDisplay");
    let edit = shown.and_then(|shown| {
        let is_new = shown.bool("isNewFile") == Some(true);
        let old = if is_new { None } else { Some(shown.string("originalContent")?) };
        Some(StoredEdit { path: shown.string("filePath")?, old, new: shown.string("newContent")? })
    });
    let succeeded = call.is("status", "success");
    let answers = call.objects("result").filter_map(|part| part.object("functionResponse")?.object("response"));
    let outputs = answers.filter_map(|answer| answer.string("output").or_else(|| answer.string("error")));
    StoredTool {
        call: call.string("id").unwrap_or_default(),
        title: title(category, if name == "write_file" { "write" } else { &name }, &about),
        paths: args.and_then(|args| args.string("file_path")).into_iter().collect(),
        input: value_of(call, "args"),
        succeeded: Some(succeeded),
        output: outputs.collect(),
        exit_code: None,
        edits: edit.filter(|_| succeeded).into_iter().collect(),
        name,
        category,
    }
}

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::agent::stored::{StoredEdit, StoredPart};

    /// A session of 0.61.0, without the fields that are not read.
    const SESSION: &str = r#"{"sessionId":"b1d37b45","kind":"main"}
{"$set":{"messages":[{"id":"a","type":"user","content":[{"text":"<session_context>\nThis is the Gemini CLI."}]}]}}
{"id":"b","type":"user","content":[{"text":"Look at it"}]}
{"$set":{"lastUpdated":"2026-11-28T19:26:49.075Z"}}
{"id":"c","type":"gemini","content":"Two things at once.","thoughts":[{"subject":"Plan","description":"Two files."}]}
{"id":"d","type":"gemini","content":"","toolCalls":[{"id":"write_1","name":"write_file","args":{"file_path":"/w/one.txt"},"status":"executing"}]}
{"id":"d","type":"gemini","content":"","toolCalls":[{"id":"write_1","name":"write_file","args":{"file_path":"/w/one.txt","content":"one\n"},"result":[{"functionResponse":{"response":{"output":"Created."}}}],"status":"success","resultDisplay":{"filePath":"/w/one.txt","originalContent":"","newContent":"one\n","isNewFile":true}},{"id":"run_2","name":"run_shell_command","args":{"command":"false"},"result":[{"functionResponse":{"response":{"error":"no"}}}],"status":"error"}]}
{"id":"e","type":"user","content":[{"functionResponse":{"id":"write_1","response":{"output":"Created."}}}]}
"#;

    /// Measured on 0.61.0: resuming writes the messages before in this form.
    #[test]
    fn a_resumed_session_keeps_the_texts_of_the_agent() {
        let session = r#"{"$set":{"messages":[{"id":"b","type":"user","content":[{"text":"Go"}]},{"id":"c","type":"gemini","content":[{"text":"One."},{"text":"Two."}]}]}}
"#;
        let parts = parts(session);
        let [StoredPart::Prompt(_), StoredPart::Text(one), StoredPart::Text(two)] = parts.as_slice() else {
            panic!("{parts:?}")
        };
        assert_eq!((&**one, &**two), ("One.", "Two."));
    }

    #[test]
    fn a_session_has_its_prompts_its_texts_and_its_tools_with_their_ends() {
        let parts = parts(SESSION);
        let [
            StoredPart::Prompt(prompt),
            StoredPart::Reasoning(thought),
            StoredPart::Text(text),
            StoredPart::Tool(write),
            StoredPart::Tool(run),
        ] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!((&**prompt, &**thought, &**text), ("Look at it", "Plan\nTwo files.", "Two things at once."));
        assert_eq!((&*write.title, write.succeeded, &*write.output), ("Write /w/one.txt", Some(true), "Created."));
        assert_eq!(write.edits, [StoredEdit { path: "/w/one.txt".into(), old: None, new: "one\n".into() }]);
        assert_eq!((&*run.title, run.succeeded, &*run.output), ("Run false", Some(false), "no"));
    }
}

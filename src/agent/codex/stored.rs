//! The sessions that Codex stores. Of the lines of a rollout, those about completed items have all that a person saw.

use super::script;
use crate::agent::stored::{StoredEdit, StoredPart, StoredTool, lines, value_of};
use crate::agent::title;
use crate::json::{Object, Raw};
use crate::protocol::words::Category;
use serde_json::{Value, json};

pub(super) fn parts(session: &str) -> Vec<StoredPart> {
    let event = |line: Object<'_>| {
        let event = line.object("payload").filter(|_| line.is("type", "event_msg"))?;
        part(&event.object("item").filter(|_| event.is("type", "item_completed"))?)
    };
    lines(session).filter_map(event).collect()
}

fn part(item: &Object<'_>) -> Option<StoredPart> {
    let text = |name: &str| {
        let texts: Vec<String> = item.objects(name).filter_map(|block| block.string("text")).collect();
        Some(texts.concat()).filter(|text| !text.is_empty())
    };
    match &*item.str("type")? {
        "UserMessage" => text("content").map(StoredPart::Prompt),
        "AgentMessage" => text("content").map(StoredPart::Text),
        "Reasoning" => {
            let summary: Vec<String> = item.array("summary_text").filter_map(Raw::string).collect();
            Some(summary.join("\n\n")).filter(|text| !text.is_empty()).map(StoredPart::Reasoning)
        }
        "CommandExecution" => Some(StoredPart::Tool(command(item))),
        "FileChange" => Some(StoredPart::Tool(change(item))),
        "McpToolCall" => {
            let (server, tool) = (item.string("server")?, item.string("tool")?);
            let (name, title) = (format!("mcp__{server}__{tool}"), title(Category::Mcp, &server, &tool));
            Some(StoredPart::Tool(call(item, Category::Mcp, name, title, value_of(item, "arguments"))))
        }
        "WebSearch" => {
            let query = item.string("query").unwrap_or_default();
            let title = title(Category::Fetch, "", &query);
            Some(StoredPart::Tool(call(item, Category::Fetch, "web_search".into(), title, json!({"query": query}))))
        }
        _ => None,
    }
}

fn call(item: &Object<'_>, category: Category, name: String, title: String, input: Value) -> StoredTool {
    let failed = item.str("status").is_some_and(|status| status != "completed");
    StoredTool {
        call: item.string("id").unwrap_or_default(),
        name,
        category,
        title,
        paths: Vec::new(),
        input,
        succeeded: Some(!failed),
        output: String::new(),
        exit_code: None,
        edits: Vec::new(),
    }
}

fn command(item: &Object<'_>) -> StoredTool {
    let words: Vec<String> = item.array("command").filter_map(Raw::string).collect();
    // The last word is the script of the shell that the others start.
    let script = match words.as_slice() {
        [shell, flag, script] if script::is_shell(&format!("{shell} {flag} ")) => script.clone(),
        words => words.join(" "),
    };
    let title = title(Category::Execute, "exec_command", &script);
    StoredTool {
        output: item.string("aggregated_output").unwrap_or_default(),
        exit_code: item.number("exit_code").map(|code| code as i64),
        ..call(item, Category::Execute, "exec_command".into(), title, json!({"command": script}))
    }
}

fn change(item: &Object<'_>) -> StoredTool {
    let changes = item.object("changes");
    let edits = changes.iter().flat_map(Object::iter).filter_map(|(path, change)| {
        let (path, change) = (path.into_owned(), change.object()?);
        let content = || change.string("content").unwrap_or_default();
        Some(match &*change.str("type")? {
            "add" => StoredEdit { path, old: None, new: content() },
            "delete" => StoredEdit { path, old: Some(content()), new: String::new() },
            _ => {
                let diff = change.string("unified_diff")?;
                StoredEdit::of_diff(path, diff.lines().filter(|line| !line.starts_with("@@")))
            }
        })
    });
    let edits: Vec<StoredEdit> = edits.collect();
    let paths: Vec<String> = edits.iter().map(|edit| edit.path.clone()).collect();
    let subject = match paths.as_slice() {
        [path] => path.clone(),
        paths => format!("{} files", paths.len()),
    };
    let is_new = edits.iter().all(|edit| edit.old.is_none());
    let title = title(Category::Edit, if is_new { "write" } else { "" }, &subject);
    StoredTool { edits, paths, ..call(item, Category::Edit, "apply_patch".into(), title, Value::Null) }
}

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::agent::stored::{StoredEdit, StoredPart};

    /// A session of 0.169.0, without the fields that are not read.
    const SESSION: &str = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>"}]}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"Look at it","text_elements":[]}]}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"msg_1","content":[{"type":"Text","text":"Two things at once."}]}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","id":"call_1_0","changes":{"/w/one.txt":{"type":"add","content":"one\n"}},"status":"completed"}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","id":"call_1_1","changes":{"/w/a":{"type":"update","unified_diff":"@@ -1,2 +1,2 @@\n a\n-b\n+c\n","move_path":null}},"status":"completed"}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"call_1_2","command":["/bin/bash","-lc","cat two.txt"],"status":"failed","aggregated_output":"no such file","exit_code":1}}}
{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Both are done."}}
"#;

    #[test]
    fn a_session_has_its_prompts_its_texts_and_its_tools_with_their_ends() {
        let parts = parts(SESSION);
        let [
            StoredPart::Prompt(prompt),
            StoredPart::Text(text),
            StoredPart::Tool(write),
            StoredPart::Tool(edit),
            StoredPart::Tool(run),
        ] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!((&**prompt, &**text), ("Look at it", "Two things at once."));
        assert_eq!((&*write.title, write.succeeded), ("Write /w/one.txt", Some(true)));
        assert_eq!(write.edits, [StoredEdit { path: "/w/one.txt".into(), old: None, new: "one\n".into() }]);
        assert_eq!(edit.title, "Edit /w/a");
        assert_eq!(edit.edits, [StoredEdit { path: "/w/a".into(), old: Some("a\nb\n".into()), new: "a\nc\n".into() }]);
        assert_eq!((&*run.title, run.succeeded, run.exit_code), ("Run cat two.txt", Some(false), Some(1)));
        assert_eq!(run.output, "no such file");
    }
}

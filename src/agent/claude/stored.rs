//! The sessions that Claude Code stores: each line of the file is a message, as in stream-json, or a fact of its own.

use super::tools;
use crate::agent::stored::{StoredEdit, StoredPart, StoredParts, StoredTool, lines, value_of};
use crate::agent::tool_input;
use crate::json::{Object, Raw};

/// The calls that are shown as a plan or as the result of the run.
const HIDDEN: [&str; 2] = ["StructuredOutput", "TodoWrite"];
/// The beginnings of texts that Claude Code itself adds on the user's side.
const OWN: [&str; 5] =
    ["<system-reminder>", "<command-", "<local-command-", "<task-notification>", "[Request interrupted"];

pub(super) fn parts(session: &str) -> Vec<StoredPart> {
    let mut parts = StoredParts::default();
    for line in lines(session) {
        let is_own = ["isSidechain", "isMeta", "isCompactSummary"].iter().any(|name| line.bool(name) == Some(true));
        let Some(message) = line.object("message").filter(|_| !is_own) else { continue };
        match line.str("type").as_deref() {
            Some("user") => user(&message, &line, &mut parts),
            Some("assistant") => {
                message.objects("content").filter_map(|block| said(&block)).for_each(|part| parts.push(part))
            }
            _ => {}
        }
    }
    parts.all
}

fn user(message: &Object<'_>, line: &Object<'_>, parts: &mut StoredParts) {
    let prompt = |text: String| {
        let text = text.trim_start();
        (!OWN.iter().any(|own| text.starts_with(own))).then(|| StoredPart::Prompt(text.to_owned()))
    };
    message.string("content").and_then(prompt).into_iter().for_each(|part| parts.push(part));
    for block in message.objects("content") {
        match block.str("type").as_deref() {
            Some("text") => block.string("text").and_then(prompt).into_iter().for_each(|part| parts.push(part)),
            Some("tool_result") => ended(&block, line, parts),
            _ => {}
        }
    }
}

fn said(block: &Object<'_>) -> Option<StoredPart> {
    match &*block.str("type")? {
        "text" => block.string("text").map(StoredPart::Text),
        "thinking" => block.string("thinking").map(StoredPart::Reasoning),
        "tool_use" => {
            let (name, input) = (block.string("name")?, block.object("input"));
            let paths = input.map(|input| input.raws(["file_path", "notebook_path", "path"]));
            (!HIDDEN.contains(&&*name)).then(|| {
                StoredPart::Tool(StoredTool {
                    call: block.string("id").unwrap_or_default(),
                    category: tool_input::category(&name),
                    title: tool_input::title(&name, input.as_ref()),
                    paths: paths.into_iter().flatten().flatten().filter_map(Raw::string).collect(),
                    input: value_of(block, "input"),
                    name,
                    succeeded: None,
                    output: String::new(),
                    exit_code: None,
                    edits: Vec::new(),
                })
            })
        }
        _ => None,
    }
}

fn ended(block: &Object<'_>, line: &Object<'_>, parts: &mut StoredParts) {
    let Some(tool) = block.str("tool_use_id").and_then(|call| parts.open(&call)) else { return };
    let failed = block.bool("is_error") == Some(true);
    let result = line.object("toolUseResult");
    tool.succeeded = Some(!failed);
    tool.output = tools::output(block).unwrap_or_default();
    tool.exit_code = match &result {
        _ if failed => tools::exit_code(block),
        Some(result) => tools::is_success(result).then_some(0),
        None => None,
    };
    tool.edits = result.filter(|_| !failed).and_then(|result| edit(&result)).into_iter().collect();
}

fn edit(result: &Object<'_>) -> Option<StoredEdit> {
    let path = result.string("filePath")?;
    if result.is("type", "create") {
        return Some(StoredEdit { path, old: None, new: result.string("content")? });
    }
    let lines: Vec<String> =
        result.objects("structuredPatch").flat_map(|hunk| hunk.array("lines").filter_map(Raw::string)).collect();
    (!lines.is_empty()).then(|| StoredEdit::of_diff(path, lines.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::agent::stored::{StoredEdit, StoredPart};

    /// A session of 2.1.330, without the fields that are not read, and with a sub-agent and texts of Claude Code's own.
    const SESSION: &str = r#"{"type":"queue-operation","operation":"enqueue","content":"Look at it"}
{"isSidechain":false,"type":"user","message":{"role":"user","content":"\n/Look at it"}}
{"isSidechain":false,"isMeta":true,"type":"user","message":{"role":"user","content":"Caveat"}}
{"isSidechain":false,"type":"user","message":{"role":"user","content":"<command-name>/model</command-name>"}}
{"isSidechain":true,"type":"user","message":{"role":"user","content":"Of a sub-agent"}}
{"message":{"id":"msg_1","role":"assistant","content":[{"type":"thinking","thinking":"Two files."}]},"type":"assistant"}
{"message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"Two things at once."}]},"type":"assistant"}
{"message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"call_1_0","name":"Write","input":{"file_path":"/w/one.txt","content":"one\n"}}]},"type":"assistant"}
{"message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"call_1_1","name":"Bash","input":{"command":"touch two.txt","description":"Run a command"}}]},"type":"assistant"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"call_1_0","type":"tool_result","content":"File created successfully"}]},"toolUseResult":{"type":"create","filePath":"/w/one.txt","content":"one\n","structuredPatch":[]}}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"call_1_1","type":"tool_result","content":"Exit code 2\nno","is_error":true}]},"toolUseResult":"Error: Exit code 2\nno"}
{"message":{"id":"msg_2","role":"assistant","content":[{"type":"tool_use","id":"call_2","name":"Edit","input":{"file_path":"/w/one.txt"}}]},"type":"assistant"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"call_2","type":"tool_result","content":"ok"}]},"toolUseResult":{"filePath":"/w/one.txt","structuredPatch":[{"oldStart":1,"lines":[" a","-b","+c"]}]}}
{"message":{"id":"msg_3","role":"assistant","content":[{"type":"text","te"#;

    #[test]
    fn a_session_has_its_prompts_its_texts_and_its_tools_with_their_ends() {
        let parts = parts(SESSION);
        let [
            StoredPart::Prompt(prompt),
            StoredPart::Reasoning(thought),
            StoredPart::Text(text),
            StoredPart::Tool(write),
            StoredPart::Tool(bash),
            StoredPart::Tool(edit),
        ] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!((&**prompt, &**thought, &**text), ("/Look at it", "Two files.", "Two things at once."));
        assert_eq!(
            (&*write.title, write.succeeded, &*write.output),
            ("Write /w/one.txt", Some(true), "File created successfully")
        );
        assert_eq!(write.edits, [StoredEdit { path: "/w/one.txt".into(), old: None, new: "one\n".into() }]);
        assert_eq!((&*bash.title, bash.succeeded, bash.exit_code), ("Run touch two.txt", Some(false), Some(2)));
        assert_eq!(bash.input["command"], "touch two.txt");
        assert_eq!(
            edit.edits,
            [StoredEdit { path: "/w/one.txt".into(), old: Some("a\nb\n".into()), new: "a\nc\n".into() }]
        );
    }
}

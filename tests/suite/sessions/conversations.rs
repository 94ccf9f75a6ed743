//! Tests of conversations: further prompts, the ends of turns, cancels and limits of a turn, and the end.

use crate::support::agent::{Script, bash, can_use};
use crate::support::{Case, Frame, Session};
use serde_json::{Value, json};

/// Ends a turn when the host interrupts it, and stays.
pub(crate) const UNTIL_INTERRUPT: &str = r#"while recv; do case "$line" in *'"subtype":"interrupt"'*) note interrupt; accept; out "$ABORTED"; break ;; *) control ;; esac; done"#;

/// Two turns that answer, and then the end.
fn two_turns() -> Script {
    Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two")
}

#[track_caller]
fn begin(case: Case, mut payload: Value) -> Session {
    let mut session = case.spawn();
    payload["conversation"] = json!(true);
    session.start(payload);
    session
}

fn turns(frames: &[Frame]) -> Vec<(u64, &str)> {
    let turns = frames.iter().filter(|frame| frame.is_progress("turn"));
    turns.map(|frame| (frame["payload"]["turn"].as_u64().unwrap(), frame.text("outcome"))).collect()
}

fn prompts(frames: &[Frame]) -> Vec<String> {
    let prompts = frames.iter().filter(|frame| frame.is_progress("prompt"));
    prompts.map(|frame| format!("{} {}", frame.text("prompt_id"), frame.text("state"))).collect()
}

#[test]
fn a_further_prompt_is_a_turn_of_the_same_process() {
    let mut session = begin(Case::with(two_turns()), json!({}));
    let first = session.until_progress("turn");
    assert_eq!((first.text("outcome"), first.text("final_text")), ("completed", "One"));
    session.until_status("waiting_for_prompt");
    let id = session.send("run.input", json!({"prompt": "And now?"}));
    let sent = session.until_progress("prompt");
    assert_eq!((sent.text("state"), sent["reply_to"].as_str()), ("sent", Some(id.as_str())));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.send("run.input", json!({"end": true}));
    let outcome = session.finish();
    assert_eq!((outcome.completed()["text"].as_str(), &outcome.completed()["turns"]), (Some("Two"), &json!(2)));
    assert_eq!(turns(&outcome.frames), [(1, "completed"), (2, "completed")]);
    assert_eq!(prompts(&outcome.frames), ["p_1 sent"]);
    assert_eq!(outcome.log().prompts(), ["go", "And now?"]);
    assert_eq!(outcome.frames[0]["payload"]["protocol"]["minor"], 2);
    assert_eq!(outcome.frames[0]["payload"]["capabilities"]["conversation"], true);
    outcome.never_shows("And now?");
}

#[test]
fn the_end_of_stdin_ends_the_conversation_after_what_waits() {
    let mut session = begin(Case::with(two_turns()), json!({}));
    session.send("run.input", json!({"prompt": "And now?"}));
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Two");
    assert_eq!(prompts(&outcome.frames).last().map(String::as_str), Some("p_1 sent"));
    assert_eq!(turns(&outcome.frames), [(1, "completed"), (2, "completed")]);
}

#[test]
fn a_run_that_is_no_conversation_takes_prompts_until_none_waits() {
    let waits = Script::new().ask("req-1", "toolu_1", "Bash", bash("true")).say("msg_1", "One").result("One");
    let mut session = Case::with(waits.sh("prompt").say("msg_2", "Two").done("Two")).spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish();
    assert_eq!((outcome.completed()["text"].as_str(), outcome.completed().get("turns")), (Some("Two"), None));
    assert_eq!(turns(&outcome.frames), []);
    assert_eq!(prompts(&outcome.frames), ["p_1 queued", "p_1 sent"]);
}

#[test]
fn a_cancelled_turn_leaves_the_agent_and_drops_what_waits() {
    let script = Script::new().say("msg_1", "Thinking").sh(UNTIL_INTERRUPT).sh("prompt");
    let mut session = begin(Case::with(script.say("msg_2", "Two").done("Two")), json!({}));
    session.until_text("Thinking");
    session.send("run.input", json!({"prompt": "Later"}));
    session.until_progress("prompt");
    session.send("run.cancel", json!({"scope": "turn"}));
    let turn = session.until_progress("turn");
    assert_eq!((turn.text("outcome"), &turn["payload"]["final_text"]), ("cancelled", &Value::Null));
    session.until_status("waiting_for_prompt");
    // Without a running turn, a cancel of it does nothing.
    session.send("run.cancel", json!({"scope": "turn"}));
    session.send("run.input", json!({"prompt": "Again"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.send("run.input", json!({"end": true}));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Two");
    assert_eq!(prompts(&outcome.frames), ["p_1 queued", "p_1 dropped", "p_2 sent"]);
    assert_eq!(outcome.log().prompts(), ["go", "Again"]);
}

#[test]
fn a_cancelled_turn_withdraws_its_question() {
    let script = Script::new().tool_use("toolu_1", "Bash", &bash("true"));
    let asks = script.out(&can_use("req-1", "toolu_1", "Bash", &bash("true")));
    let script = asks.sh(UNTIL_INTERRUPT).sh("prompt").say("msg_2", "Two").done("Two");
    let mut session = begin(Case::with(script), json!({}));
    session.until("run.question");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_progress("turn");
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.resolutions(), ["withdrawn"]);
    assert_eq!(outcome.cancelled()["turns"], 1);
    assert_eq!(outcome.exit_code, Some(0));
}

#[test]
fn an_agent_that_ignores_the_interrupt_is_started_again_with_its_session() {
    let script = Script::new().sh(
        r#"if [ -e "$D/again" ]; then :; else touch "$D/again"; note hangs; while :; do recv || sleep 0.02; done; fi"#,
    );
    let case = Case::with(script.say("msg_2", "Two").done("Two"));
    let mut session = begin(case, json!({}));
    session.until_progress("session");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "Again"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Two");
    assert!(outcome.log().argv().iter().any(|arg| arg.starts_with("--resume=")), "{:?}", outcome.log().argv());
    assert_eq!(turns(&outcome.frames), [(1, "cancelled"), (2, "completed")]);
}

/// The driver of an agent that counts its own money sees the rest of it after a restart.
#[test]
fn an_agent_that_is_started_again_gets_the_rest_of_the_money() {
    let turn = r#"T=$(cat "$D/turn" 2>/dev/null || echo 0); echo $((T + 1)) >"$D/turn""#;
    let hangs = r#"if [ "$T" = 1 ]; then while :; do recv || sleep 0.02; done; fi"#;
    let script = Script::new().sh(turn).sh(hangs).say("msg_1", "Done").done("Done");
    let mut session = begin(Case::with(script), json!({"max_cost_usd": 1.0}));
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "Hang"}));
    let hanging = session.case.path("log/turn");
    session.wait_until("the second turn", || crate::support::read(&hanging).trim() == "2");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_where("the cancelled turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.send("run.input", json!({"prompt": "Again"}));
    session.close_stdin();
    let outcome = session.finish();
    outcome.completed();
    let argv = outcome.log().argv();
    assert!(argv.contains(&"--max-budget-usd=0.75".to_owned()), "{argv:?}");
}

/// Claude Code's own limit counts the calls of each turn anew.
#[test]
fn calls_of_the_model_count_over_all_turns() {
    let turn = |script: Script, call: &str, text: &str| {
        script.tool(call, "Read", &json!({"file_path": "a"}), "x").say(&format!("msg_{text}"), text)
    };
    let script = || turn(turn(Script::new(), "c1", "One").result("One").sh("prompt"), "c2", "Two").done("Two");
    for (most, outcome) in [(4, "run.completed"), (3, "run.failed")] {
        let mut session = begin(Case::with(script()), json!({"max_turns": most}));
        session.until_progress("turn");
        session.send("run.input", json!({"prompt": "And now?"}));
        session.close_stdin();
        let ended = session.finish();
        assert_eq!(ended.terminal().kind(), outcome, "max_turns {most}");
        assert!(outcome == "run.completed" || ended.failed("limit_reached")["detail"]["limit"] == "max_turns");
        assert_eq!(ended.log().prompts().len(), 2);
    }
    // Nothing is left for a further prompt.
    let mut session = begin(Case::with(script()), json!({"max_turns": 2}));
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "And now?"}));
    let ended = session.finish();
    assert_eq!(ended.failed("limit_reached")["detail"]["limit"], "max_turns");
    assert_eq!(ended.log().prompts(), ["go"]);
}

#[test]
fn a_turn_has_a_time_limit_and_so_has_the_wait_for_a_prompt() {
    let script = Script::new().say("msg_1", "Thinking").sh(UNTIL_INTERRUPT).sh("listen");
    let session = begin(Case::with(script), json!({"turn_timeout_s": 0.3, "prompt_timeout_s": 0.3}));
    let outcome = session.finish();
    assert_eq!(outcome.failed("timeout")["turns"], 1);
    let turn = outcome.progress("turn")[0];
    assert_eq!((turn.text("outcome"), &turn["payload"]["failure"]["code"]), ("failed", &json!("timeout")));
}

#[test]
fn prompts_that_cannot_be_taken_are_refused_with_a_warning() {
    let waits = Script::new().say("msg_1", "Thinking").sh(UNTIL_INTERRUPT).sh("listen");
    let mut session = begin(Case::with(waits), json!({}));
    session.until_text("Thinking");
    for _ in 0..32 {
        session.send("run.input", json!({"prompt": "more"}));
    }
    for (payload, code) in [
        (json!({"prompt": "one too many"}), "prompt_refused"),
        (json!({"prompt": ""}), "prompt_refused"),
        (json!({"prompt": 7}), "prompt_refused"),
        (json!({"prompt": "x", "value": 1}), "invalid_answer"),
    ] {
        let id = session.send("run.input", payload);
        let warning = session.until_where(&id, |frame| frame["reply_to"] == id.as_str());
        assert_eq!(warning.text("code"), code, "{}", warning.raw);
    }
    session.cancel();
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["turns"], 1);
}

#[test]
fn an_agent_that_dies_while_a_prompt_is_awaited_fails_the_run() {
    let script = Script::new().say("msg_1", "One").result("One").sh("exit 3");
    let outcome = begin(Case::with(script), json!({})).finish();
    assert_eq!(outcome.failed("agent_exited")["turns"], 1);
    assert_eq!(turns(&outcome.frames), [(1, "completed")]);
}

#[test]
fn a_failed_turn_that_leaves_the_session_does_not_end_the_conversation() {
    let failed =
        crate::support::agent::error_result(json!({"subtype": "error_during_execution", "errors": ["It failed"]}));
    let script = Script::new().out(&failed).sh("prompt").say("msg_2", "Two").done("Two");
    let mut session = begin(Case::with(script), json!({}));
    let turn = session.until_progress("turn");
    assert_eq!((turn.text("outcome"), &turn["payload"]["failure"]["code"]), ("failed", &json!("agent_error")));
    session.send("run.input", json!({"prompt": "Again"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.close_stdin();
    assert_eq!(session.finish().completed()["text"], "Two");
}

#[test]
fn a_command_gets_a_process_for_each_turn() {
    let script = r#"printf '%s' "said $(cat)""#;
    let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", script], "resume_args": ["-c", script]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    let mut session = begin(Case::new().file("home/.config/spektacular/config.json", &config), json!({}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "two"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!((outcome.completed()["text"].as_str(), &outcome.completed()["turns"]), (Some("said two"), &json!(2)));
}

#[test]
fn a_command_that_cannot_go_on_holds_no_conversation() {
    let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", "cat"]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    let outcome = begin(Case::new().file("home/.config/spektacular/config.json", &config), json!({})).finish();
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("`conversation`"));
}

#[test]
fn a_prompt_may_have_images() {
    let mut session = begin(Case::with(two_turns()).file("work/a.gif", "GIF89a...."), json!({}));
    session.until_status("waiting_for_prompt");
    for (images, part) in [
        (json!(["none.png"]), "cannot be read"),
        (json!(["a.gif", "b.gif"]), "number 2"),
        (json!("a.gif"), "`images` must be a list"),
    ] {
        let id = session.send("run.input", json!({"prompt": "Look", "images": images}));
        let warning = session.until_where(&id, |frame| frame["reply_to"] == id.as_str());
        assert_eq!(warning.text("code"), "prompt_refused");
        assert!(warning.text("text").contains(part), "{}", warning.raw);
    }
    session.send("run.input", json!({"prompt": "Look", "images": ["a.gif"]}));
    session.until_text("Two");
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(prompts(&outcome.frames), ["p_1 sent"]);
    let line = outcome.log().text("stdin");
    let line = line.lines().find(|line| line.contains("Look")).unwrap();
    let content: Value = serde_json::from_str::<Value>(line).unwrap()["message"]["content"].clone();
    assert_eq!(content[0]["source"], json!({"type": "base64", "media_type": "image/gif", "data": "R0lGODlhLi4uLg=="}));
    assert_eq!(content[1]["text"], "Look");
}

/// The beginning of a script of a Claude Code that takes prompts while it works.
pub(crate) fn steerable() -> Script {
    let mut init = crate::support::agent::init();
    init["capabilities"] = json!(["msg_lifecycle_v1", "interrupt_cancel_queued_v1"]);
    Script::bare().sh("prompt").out(&init)
}

/// Reports what becomes of the last prompt.
pub(crate) fn lifecycle(state: &str) -> String {
    let uuid = r#"u=${line#*'"uuid":"'}; u=${u%%'"'*}; "#;
    format!(r#"{uuid}out '{{"type":"command_lifecycle","state":"{state}","command_uuid":"'"$u"'"}}'"#)
}

#[test]
fn a_prompt_reaches_an_agent_that_works_on_a_turn() {
    let script = steerable().say("msg_1", "Working").sh("prompt").sh(&lifecycle("queued")).sh(&lifecycle("started"));
    let mut session = begin(Case::with(script.say("msg_2", "Other").done("Other")), json!({}));
    assert_eq!(session.until("run.started")["payload"]["capabilities"]["steer"], Value::Null);
    assert_eq!(session.until_progress("session")["payload"]["capabilities"]["steer"], true);
    session.until_text("Working");
    session.send("run.input", json!({"prompt": "Not this", "when": "now"}));
    session.until_status("waiting_for_prompt");
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!((prompts(&outcome.frames), turns(&outcome.frames)), (vec!["p_1 sent".into()], vec![(1, "completed")]));
    assert_eq!(outcome.completed()["text"], "Other");
}

#[test]
fn a_turn_continues_with_a_prompt_that_came_too_late_for_its_answer() {
    let script = steerable().say("msg_1", "Working").sh("prompt").sh(&lifecycle("queued")).result("One");
    let script = script.sh(&lifecycle("started")).say("msg_2", "Two").done("Two");
    let mut session = begin(Case::with(script), json!({}));
    session.until_text("Working");
    session.send("run.input", json!({"prompt": "Not this", "when": "now"}));
    let turn = session.until_progress("turn");
    assert_eq!((turn["payload"]["turn"].as_u64(), turn.text("final_text")), (Some(1), "Two"));
    session.close_stdin();
    assert_eq!(session.finish().completed()["turns"], 1);
}

#[test]
fn a_cancelled_turn_takes_the_prompt_with_it_that_reached_the_agent_too_late() {
    let script = steerable().say("msg_1", "Working").sh("prompt").sh(&lifecycle("queued")).sh("note queued");
    let mut session = begin(Case::with(script.sh(UNTIL_INTERRUPT).sh("listen")), json!({}));
    session.until_text("Working");
    session.send("run.input", json!({"prompt": "Not this", "when": "now"}));
    session.until_progress("prompt");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_progress("turn");
    session.close_stdin();
    let outcome = session.finish();
    assert!(outcome.log().text("stdin").contains(r#""cancel_queued":true"#), "{}", outcome.log().text("stdin"));
    assert_eq!(outcome.cancelled()["turns"], 1);
}

#[test]
fn an_agent_that_cannot_be_steered_gets_the_prompt_next() {
    let script =
        Script::new().say("msg_1", "Thinking").sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#).result("One");
    let mut session = begin(Case::with(script.sh("prompt").say("msg_2", "Two").done("Two")), json!({}));
    session.until_text("Thinking");
    session.send("run.input", json!({"prompt": "And now?", "when": "now"}));
    assert_eq!(session.until_progress("prompt").text("state"), "queued");
    std::fs::write(session.log().path("go"), "").unwrap();
    session.until_text("Two");
    session.close_stdin();
    assert_eq!(turns(&session.finish().frames), [(1, "completed"), (2, "completed")]);
}

#[test]
fn the_turn_that_the_end_of_the_run_cuts_short_is_reported_too() {
    let script = Script::new().say("msg_1", "Thinking").sh("listen");
    let mut session = begin(Case::with(script), json!({}));
    session.until_text("Thinking");
    session.send("run.input", json!({"prompt": "Later"}));
    session.until_progress("prompt");
    session.cancel();
    let outcome = session.finish();
    assert_eq!((turns(&outcome.frames), &outcome.cancelled()["turns"]), (vec![(1, "cancelled")], &json!(1)));
    assert_eq!(prompts(&outcome.frames), ["p_1 queued", "p_1 dropped"]);
    let silent = Script::new().say("msg_1", "Thinking").sh("listen");
    let outcome = begin(Case::with(silent), json!({"idle_timeout_s": 0.3})).finish();
    assert_eq!(outcome.failed("idle_timeout")["turns"], 1);
    assert_eq!(outcome.progress("turn")[0]["payload"]["failure"]["code"], "idle_timeout");
}

#[test]
fn denials_count_for_their_turn_and_for_the_run() {
    let script = Script::new().ask("req-1", "toolu_1", "Bash", bash("true")).result("One");
    let script = script.sh("prompt").ask("req-2", "toolu_2", "Bash", bash("true")).done("Two");
    let payload = json!({"interactive": false, "fail_on_denied": true});
    let mut session = begin(Case::with(script), payload);
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.send("run.input", json!({"end": true}));
    let outcome = session.finish();
    let denied: Vec<&Value> = outcome.progress("turn").iter().map(|turn| &turn["payload"]["denied"]["count"]).collect();
    assert_eq!(denied, [&json!(1), &json!(1)]);
    assert!(outcome.failed("denied")["message"].as_str().unwrap().starts_with("2 permissions"));
}

#[test]
fn always_lasts_for_the_run_and_each_turn_has_its_own_usage() {
    let script = Script::new().ask("req-1", "toolu_1", "Bash", bash("touch a.txt")).result("One");
    let script = script.sh("prompt").ask("req-2", "toolu_2", "Bash", bash("touch a.txt"));
    let mut twice = crate::support::agent::success("Two");
    let model = twice["modelUsage"].as_object_mut().unwrap().values_mut().next().unwrap();
    (model["inputTokens"], model["cacheReadInputTokens"]) = (json!(30), json!(14));
    let mut session = begin(Case::with(script.out(&twice).sh("listen")), json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("allow_always"));
    let first = session.until_progress("turn");
    session.send("run.input", json!({"prompt": "And now?"}));
    let second =
        session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.of_type("run.question").len(), 1);
    let input = |payload: &Value| payload["usage"]["input_tokens"].as_u64();
    assert_eq!((input(&first["payload"]), input(&second["payload"])), (Some(17), Some(27)));
    assert_eq!(input(outcome.completed()), Some(44));
}

#[test]
fn a_result_without_a_turn_is_no_turn() {
    let script = Script::new().say("msg_1", "One").result("One").sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#);
    let mut session = begin(Case::with(script.result("Stray").sh("prompt").say("msg_2", "Two").done("Two")), json!({}));
    session.until_status("waiting_for_prompt");
    std::fs::write(session.log().path("go"), "").unwrap();
    session.until_progress("usage");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.until_text("Two");
    session.close_stdin();
    assert_eq!(turns(&session.finish().frames), [(1, "completed"), (2, "completed")]);
}

/// A client that sends its prompts at this status must not wait for ever.
#[test]
fn after_a_question_between_two_turns_the_status_is_again_that_a_prompt_is_awaited() {
    let asks = can_use("req-1", "toolu_1", "Bash", &bash("touch a.txt"));
    let script = Script::new().say("msg_1", "One").result("One").out(&asks).sh("answer").sh("prompt");
    let mut session = begin(Case::with(script.say("msg_2", "Two").done("Two")), json!({}));
    session.until_status("waiting_for_prompt");
    let question = session.until("run.question");
    session.answer(&question, json!("allow_once"));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.until_text("Two");
    session.close_stdin();
    assert_eq!(turns(&session.finish().frames), [(1, "completed"), (2, "completed")]);
}

#[test]
fn a_command_whose_first_turn_was_cancelled_begins_a_new_session() {
    let script = r#"if [ -e begun ]; then printf '%s' "said $(cat)"; else touch begun; exec sleep 300; fi"#;
    let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", script],
        "resume_args": ["-c", "exit 9", "{session}"], "session_patterns": ["session ([a-z]+)"]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    let mut session = begin(Case::new().file("home/.config/spektacular/config.json", &config), json!({}));
    let begun = session.case().work().join("begun");
    session.wait_until("the first process", || begun.exists());
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "two"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "said two");
    assert_eq!(turns(&outcome.frames), [(1, "cancelled"), (2, "completed")]);
}

#[test]
fn the_demo_agent_holds_a_conversation() {
    let mut session = begin(Case::new(), json!({"agent": "demo"}));
    let question = session.until("run.question");
    session.answer(&question, json!("Short"));
    let permission = session.until("run.question");
    session.answer(&permission, json!("allow_once"));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "Again"}));
    session.until("run.question");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_where("the second turn", |frame| frame.is_progress("turn") && frame["payload"]["turn"] == 2);
    session.send("run.input", json!({"prompt": "Once more"}));
    let question = session.until("run.question");
    session.answer(&question, json!("Short"));
    let permission = session.until("run.question");
    session.answer(&permission, json!("deny"));
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(turns(&outcome.frames), [(1, "completed"), (2, "cancelled"), (3, "completed")]);
    assert!(outcome.completed()["text"].as_str().unwrap().contains("was not allowed"));
    assert_eq!(outcome.of_type("run.artifact").len(), 1);
}

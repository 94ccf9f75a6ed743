//! The scenarios of the demo agent: each keeps its promise, follows the answers, and ends in every fault.

use crate::support::procs::peak_kib;
use crate::support::{Case, Frame, Outcome, Session};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Begins a run of a scenario.
#[track_caller]
fn begin(scenario: &str, mut payload: Value) -> Session {
    let mut session = Case::new().spawn();
    payload["agent"] = json!(format!("demo:{scenario}"));
    session.start(payload);
    session
}

/// Runs a scenario to its end, and answers its questions in their order.
#[track_caller]
fn play(scenario: &str, payload: Value, answers: &[Value]) -> Outcome {
    let mut session = begin(scenario, payload);
    for answer in answers {
        let question = session.until("run.question");
        session.answer(&question, answer.clone());
    }
    session.finish()
}

fn texts(outcome: &Outcome) -> Vec<&str> {
    outcome.progress("text").into_iter().map(|frame| frame.text("text")).collect()
}

/// The facts of a frame of a tool call: its title and its state.
fn tools(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.progress("tool").into_iter().map(|frame| (frame.text("text"), frame.text("state"))).collect()
}

fn artifacts(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.of_type("run.artifact").into_iter().map(|frame| (frame.text("path"), frame.text("action"))).collect()
}

/// A scenario of the user's own, in the file `own.json` of the process's directory.
fn own(steps: &Value) -> Case {
    Case::new().file("work/own.json", &json!({"about": "Mine.", "turns": [steps]}).to_string())
}

#[test]
fn every_scenario_has_a_test_here() {
    let listed = Case::new().run(&["demo", "list", "--output", "json"]).json(0);
    let names: Vec<&str> =
        listed["scenarios"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert!(names.len() > 15, "{names:?}");
    let code = include_str!("demo.rs");
    for name in names {
        let plays = ["play(", "begin("].iter().any(|call| code.contains(&format!("{call}\"{name}\"")));
        assert!(plays, "{name} is not played");
    }
}

#[test]
fn hello_says_one_message() {
    let outcome = play("hello", json!({"prompt": "Good morning"}), &[]);
    assert_eq!(texts(&outcome), ["Hello. You said: Good morning"]);
    assert_eq!(outcome.completed()["usage"]["input_tokens"], 10);
    assert!(outcome.of_type("run.question").is_empty() && tools(&outcome).is_empty());
    assert_eq!(
        outcome.frames[0]["payload"]["agent"],
        json!({"name": "demo:hello", "display_name": "Demo", "version": null})
    );
}

#[test]
fn greeting_follows_its_answers() {
    for (answer, permission, said, end, lines) in [
        (
            json!("Short"),
            "allow_once",
            "Thank you, I have your answer: Short.",
            "Done: the greeting is in hello.md.",
            Some(3),
        ),
        (
            json!("Long"),
            "allow_once",
            "Thank you, I have your answer: Long.",
            "Done: the greeting is in hello.md.",
            Some(5),
        ),
        (
            json!("With a song"),
            "deny",
            "Thank you, I have your answer: With a song.",
            "Done, without a file: writing hello.md was not allowed. Try again with --yes.",
            None,
        ),
    ] {
        let outcome = play("greeting", json!({}), &[answer, json!(permission)]);
        assert_eq!(texts(&outcome)[1..], [said, end]);
        let file = std::fs::read_to_string(outcome.case().work().join("hello.md"));
        assert_eq!(file.ok().map(|text| text.lines().count()), lines);
        assert_eq!(artifacts(&outcome).len(), usize::from(lines.is_some()));
    }
    let mut declined = begin("greeting", json!({"permissions": "deny"}));
    let question = declined.until("run.question");
    declined.send("run.input", json!({"question_id": question["payload"]["question_id"], "declined": true}));
    let outcome = declined.finish();
    assert_eq!(texts(&outcome)[1], "Nobody answered, so I decide for myself.");
    // Without a scenario's name, the dialogue is the same.
    let mut session = Case::new().spawn();
    session.start(json!({"agent": "demo", "interactive": false, "permissions": "allow"}));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Done: the greeting is in hello.md.");
}

#[test]
fn questions_asks_every_kind_and_shows_the_answers() {
    let answers = [
        (
            [
                json!("no"),
                json!("Green"),
                json!(["Cheese", "Onions"]),
                json!("hello"),
                json!("7"),
                json!("."),
                json!(null),
            ],
            "Go on: no.",
            "Colour: Green. Toppings: Cheese, Onions. Title: hello.",
            "Count: 7. Directory: .. Note: (no answer).",
        ),
        (
            [
                json!(true),
                json!("My own, purple"),
                json!(["Olives"]),
                json!("another"),
                json!("10"),
                json!("deep"),
                json!("Quick!"),
            ],
            "Go on: yes.",
            "Colour: My own, purple. Toppings: Olives. Title: another.",
            "Count: 10. Directory: deep. Note: Quick!.",
        ),
    ];
    for (answers, first, second, third) in answers {
        let mut session = Case::new().file("work/deep/a.txt", "").spawn();
        session.start(json!({"agent": "demo:questions"}));
        let mut kinds = BTreeSet::new();
        let mut sizes = Vec::new();
        for answer in answers {
            let question = session.until("run.question");
            kinds.insert(question.text("kind").to_owned());
            sizes.push(question["payload"]["group_size"].as_u64().unwrap());
            session.answer(&question, answer);
        }
        let question = session.until("run.question");
        kinds.insert(question.text("kind").to_owned());
        session.answer(&question, json!("correct-horse-battery"));
        let outcome = session.finish();
        assert_eq!(kinds.iter().collect::<Vec<_>>(), ["confirm", "file_path", "secret", "select", "text"]);
        assert_eq!(sizes, [1, 3, 3, 3, 3, 3, 3]);
        assert_eq!(texts(&outcome)[..3], [first, second, third]);
        outcome.completed();
        outcome.never_shows("correct-horse-battery");
    }
}

#[test]
fn questions_asks_again_after_a_bad_answer() {
    let mut session = begin("questions", json!({}));
    for bad in [json!("perhaps"), json!(3)] {
        let question = session.until("run.question");
        session.answer(&question, bad);
    }
    let again = session.until("run.question");
    assert_eq!((&again["payload"]["attempt"], again.text("kind")), (&json!(3), "confirm"));
    assert!(again.text("error").len() > 5);
    session.answer(&again, json!(true));
    let group: Vec<Frame> = (0..3).map(|_| session.until("run.question")).collect();
    assert_eq!(group[0]["payload"]["group_id"], group[2]["payload"]["group_id"]);
    for (question, bad) in
        group.iter().zip([json!(["Red", "Blue"]), json!(["Cheese", "Olives", "Onions"]), json!("No!")])
    {
        session.answer(question, bad);
        let again = session.until("run.question");
        assert_eq!(
            (&again["payload"]["attempt"], &again["payload"]["question_id"]),
            (&json!(2), &question["payload"]["question_id"])
        );
    }
    session.cancel();
    session.finish().cancelled();
}

#[test]
fn permission_follows_the_decision() {
    for (payload, answers, state, said) in [
        (json!({}), vec![json!("allow_once")], "completed", "The tests pass."),
        (json!({}), vec![json!("deny")], "denied", "I may not run the tests, so I do not know whether they pass."),
        (json!({"permissions": "allow"}), vec![], "completed", "The tests pass."),
        (
            json!({"interactive": false}),
            vec![],
            "denied",
            "I may not run the tests, so I do not know whether they pass.",
        ),
    ] {
        let outcome = play("permission", payload, &answers);
        let title = if state == "denied" { "Run npm test: denied" } else { "Run npm test" };
        assert_eq!(tools(&outcome), [("Run npm test", "started"), (title, state)]);
        assert_eq!(outcome.completed()["text"], said);
        for question in outcome.of_type("run.question") {
            assert_eq!(question["payload"]["subject"]["detail"], "npm test");
        }
    }
}

#[test]
fn two_permissions_are_open_at_once_and_are_answered_in_any_order() {
    for (first, second, said) in [
        ("allow_once", "deny", "npm test was denied, and writing notes.md was allowed."),
        ("deny", "allow_once", "npm test was allowed, and writing notes.md was denied."),
    ] {
        let mut session = begin("permissions-two-at-once", json!({}));
        let tests = session.until("run.question");
        let notes = session.until("run.question");
        assert_ne!(tests["payload"]["group_id"], notes["payload"]["group_id"]);
        session.answer(&notes, json!(first));
        session.answer(&tests, json!(second));
        let outcome = session.finish();
        assert_eq!(outcome.completed()["text"], said);
        assert_eq!(outcome.case().work().join("notes.md").exists(), first == "allow_once");
    }
}

#[test]
fn plan_shows_a_thought_and_three_states_of_its_plan() {
    let outcome = play("plan", json!({"progress": "full"}), &[]);
    let done = |frame: &&Frame| {
        let entries = frame["payload"]["entries"].as_array().unwrap().clone();
        entries.iter().filter(|entry| entry["status"] == "completed").count()
    };
    assert_eq!(outcome.progress("plan").iter().map(done).collect::<Vec<_>>(), [0, 1, 3]);
    let thoughts: String = outcome.progress("reasoning").into_iter().map(|frame| frame.text("text")).collect();
    assert_eq!(thoughts, "First I look, then I change, then I check.");
    outcome.completed();
}

#[test]
fn subagent_names_the_call_that_its_work_belongs_to() {
    let outcome = play("subagent", json!({"progress": "full"}), &[]);
    let calls = outcome.progress("tool");
    let agent = &calls[0]["payload"];
    assert_eq!((&agent["category"], &agent["text"]), (&json!("agent"), &json!("Agent: look around")));
    let inner: Vec<(&str, &str)> = calls
        .iter()
        .filter(|call| call["payload"]["parent_call_id"] == agent["call_id"])
        .map(|call| (call.text("text"), call.text("state")))
        .collect();
    assert_eq!(inner[1..2], [("Search **/main.*", "completed")]);
    assert_eq!(inner[3..], [("Read src/missing.rs: failed", "failed")]);
    let said =
        outcome.progress("text").into_iter().find(|frame| frame["payload"]["parent_call_id"] == agent["call_id"]);
    assert_eq!(said.unwrap().text("text"), "I look for the entry point.");
    assert_eq!(outcome.completed()["text"], "The sub-agent found src/main.rs.");
}

#[test]
fn artifacts_creates_modifies_and_deletes() {
    let outcome = play("artifacts", json!({"permissions": "allow"}), &[]);
    let (a, b) = ("spektacular-demo/a.txt", "spektacular-demo/b.txt");
    assert_eq!(artifacts(&outcome), [(a, "created"), (b, "created"), (a, "modified"), (b, "deleted")]);
    let work = outcome.case().work();
    assert_eq!(std::fs::read_to_string(work.join(a)).unwrap(), "One\nand a half\n");
    assert!(!work.join(b).exists());
    outcome.completed();
    let outcome = play("artifacts", json!({"permissions": "deny"}), &[]);
    assert_eq!((artifacts(&outcome), outcome.case().work().join("spektacular-demo").exists()), (vec![], false));
}

#[test]
fn structured_result_is_corrected_in_a_second_attempt() {
    let schema = |count: &str| {
        json!({"type": "object", "required": ["name", "count"],
            "properties": {"name": {"type": "string"}, "count": {"type": count}}})
    };
    let outcome = play("structured-result", json!({"output_schema": schema("integer")}), &[]);
    assert_eq!(outcome.completed()["structured_output"], json!({"name": "demo", "count": 3}));
    assert_eq!(texts(&outcome), ["Here is the result.", "Here is the whole result."]);
    let outcome = play("structured-result", json!({"output_schema": schema("string")}), &[]);
    assert!(!outcome.failed("result_invalid")["detail"]["violations"].as_array().unwrap().is_empty());
}

#[test]
fn errors_have_the_code_and_the_status_of_the_provider() {
    let outcome = play("error-429", json!({}), &[]);
    let failed = outcome.failed("rate_limited");
    assert_eq!((&failed["retryable"], &failed["detail"]["http_status"]), (&json!(true), &json!(429)));
    assert_eq!(outcome.warnings("agent_retrying").len(), 1);
    let outcome = play("error-401", json!({}), &[]);
    let failed = outcome.failed("auth_required");
    assert_eq!((&failed["retryable"], &failed["detail"]["http_status"]), (&json!(false), &json!(401)));
    assert_eq!(failed["detail"]["agent_message"], "Invalid API key.");
}

#[test]
fn crash_ends_in_the_middle_of_a_call() {
    let outcome = play("crash", json!({}), &[]);
    assert_eq!(outcome.failed("agent_exited")["agent_exit"], json!({"code": 3, "signal": null}));
    assert_eq!(tools(&outcome), [("Run npm test", "started"), ("Run npm test: failed", "failed")]);
}

#[test]
fn hang_ends_by_a_cancel_and_by_a_time_limit() {
    let mut session = begin("hang", json!({}));
    session.until_text("I think about it.");
    session.cancel();
    session.finish().cancelled();
    let outcome = play("hang", json!({"idle_timeout_s": 0.2}), &[]);
    outcome.failed("idle_timeout");
}

#[test]
fn huge_stays_in_bounded_memory() {
    const LIMIT_KIB: u64 = 192 << 10;
    let mut session = begin("huge", json!({"progress": "full"}));
    session.until_where("the usage", |frame| frame.is_progress("usage"));
    let peak = peak_kib(session.pid());
    let outcome = session.finish();
    assert!(peak < LIMIT_KIB, "{peak} KiB");
    let said: usize = texts(&outcome).iter().map(|text| text.len()).sum();
    assert_eq!((said, tools(&outcome).len()), (8 << 20, 4002));
    assert!(outcome.completed()["message_id"].is_string(), "the text of the last frame is cut");
}

#[test]
fn unicode_comes_out_as_it_is() {
    for answer in ["日本", "🚀", "e\u{301} \u{202e}x"] {
        let outcome = play("unicode", json!({"permissions": "allow"}), &[json!(answer)]);
        assert_eq!(outcome.completed()["text"], format!("✅ {answer}"));
        assert!(texts(&outcome)[0].contains("👨‍👩‍👧") && texts(&outcome)[0].contains("عربي"));
        assert_eq!(artifacts(&outcome), [("grüße 🚀.md", "created")]);
        assert!(outcome.case().work().join("grüße 🚀.md").exists());
    }
}

#[test]
fn slow_sends_heartbeats_and_ends_by_a_time_limit() {
    let outcome = play("slow", json!({"heartbeat_s": 0.5}), &[]);
    assert!(!outcome.progress("heartbeat").is_empty());
    assert_eq!(outcome.completed()["text"], "That is done.");
    play("slow", json!({"timeout_s": 0.3}), &[]).failed("timeout");
}

#[test]
fn secret_shows_neither_the_answer_nor_the_token() {
    let token = "hunter2-correct-horse";
    for answer in [token, "another-Secret-4711"] {
        let outcome = play("secret", json!({"progress": "full"}), &[json!(answer)]);
        assert_eq!(outcome.said(), "Your token is [redacted].The old one was [redacted].Done.");
        outcome.never_shows(answer);
        outcome.never_shows("abcdefghijABCDEFGHIJ");
        outcome.completed();
    }
}

#[test]
fn turns_holds_a_conversation_and_goes_on_after_a_failed_turn() {
    for name in ["Ada", "Alan"] {
        let mut session = begin("turns", json!({"prompt": "One", "conversation": true}));
        let question = session.until("run.question");
        session.answer(&question, json!(name));
        session.until_status("waiting_for_prompt");
        session.send("run.input", json!({"prompt": "Two"}));
        session.until_status("waiting_for_prompt");
        session.send("run.input", json!({"prompt": "Three"}));
        session.until_status("waiting_for_prompt");
        session.send("run.input", json!({"end": true}));
        let outcome = session.finish();
        let ends: Vec<&str> = outcome.progress("turn").into_iter().map(|turn| turn.text("outcome")).collect();
        assert_eq!(ends, ["completed", "failed", "completed"]);
        assert_eq!(outcome.progress("turn")[1]["payload"]["failure"]["code"], "provider_unavailable");
        let end = outcome.completed();
        assert_eq!(end["text"], format!("Turn 3. You said: Three, and your name is {name}."));
        assert_eq!((&end["turns"], &end["usage"]["input_tokens"]), (&json!(3), &json!(60)));
    }
}

#[test]
fn the_tools_of_a_further_turn_have_calls_of_their_own() {
    let mut session = begin("greeting", json!({"permissions": "allow", "conversation": true, "interactive": false}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "Again"}));
    session.until_status("waiting_for_prompt");
    session.close_stdin();
    let outcome = session.finish();
    let calls: Vec<(&str, &str)> =
        outcome.progress("tool").into_iter().map(|tool| (tool.text("call_id"), tool.text("state"))).collect();
    assert_eq!(calls, [("c_1", "started"), ("c_1", "completed"), ("c_2", "started"), ("c_2", "completed")]);
}

#[test]
fn after_a_turn_of_hang_that_had_to_be_killed_a_prompt_fails_with_the_reason() {
    // By then, the agent surely hangs.
    let mut session = begin("hang", json!({"conversation": true, "turn_timeout_s": 1}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "Again"}));
    let outcome = session.finish();
    let failed = outcome.failed("agent_exited");
    assert!(failed["message"].as_str().unwrap().contains("cannot resume its session"), "{failed}");
}

#[test]
fn steer_follows_a_prompt_in_its_turn_and_can_be_interrupted() {
    let mut session = begin("steer", json!({"conversation": true}));
    assert_eq!(session.until("run.started")["payload"]["capabilities"]["steer"], true);
    session.until_progress("text");
    session.send("run.input", json!({"prompt": "Count in French", "when": "now"}));
    session.until_text("I do this instead: Count in French");
    session.until_status("waiting_for_prompt");
    // The next turn waits too. An interrupt ends it, and the conversation goes on.
    session.send("run.input", json!({"prompt": "Again"}));
    session.until_progress("text");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_status("waiting_for_prompt");
    session.close_stdin();
    let outcome = session.finish();
    let ends: Vec<&str> = outcome.progress("turn").into_iter().map(|turn| turn.text("outcome")).collect();
    assert_eq!(ends, ["completed", "cancelled"]);
    let states: Vec<&str> = outcome.progress("prompt").into_iter().map(|prompt| prompt.text("state")).collect();
    assert_eq!(states, ["sent", "sent"]);
}

#[test]
fn a_scenario_of_the_user_s_own_is_played_by_flag_and_by_run_start() {
    let steps = json!([{"ask": [{"name": "city", "question": "Where?", "kind": "text"}]}, {"say": "To {city}."}]);
    for path in ["./own.json", "own.json", "../work/own.json"] {
        // The agent runs elsewhere. The path is relative to the directory of the process.
        let mut session = own(&steps).file("work/deep/a.txt", "").spawn();
        session.start(json!({"agent": format!("demo:{path}"), "cwd": "deep"}));
        let question = session.until("run.question");
        session.answer(&question, json!("Turku"));
        assert_eq!(session.finish().completed()["text"], "To Turku.");
    }
    let did = own(&steps).run(&["adhoc", "--agent", "demo:./own.json", "--answer", "Where?=Oulu", "go"]);
    assert_eq!((did.code, did.out.as_str()), (Some(0), "To Oulu.\n"), "{did:?}");
    assert!(own(&steps).run(&["agents", "check", "demo:own.json"]).out.contains("logged in"));
    assert!(own(&steps).run(&["demo", "show", "own.json"]).out.contains("say: To {city}."));
}

#[test]
fn a_mistake_in_a_file_is_named_before_anything_starts() {
    let text = "{\"about\": \"Mine.\",\n\"turns\": [[\n{\"sya\": \"Hello\"}]]}";
    let wanted = "own.json, line 3: Unknown key sya of a step. Did you mean say?";
    let case = || Case::new().file("work/own.json", text);
    let mut session = case().spawn();
    session.start(json!({"agent": "demo:own.json"}));
    let outcome = session.finish();
    assert_eq!(outcome.failed("invalid_request")["message"], format!("run.start: `agent`: {wanted}"));
    let did = case().run(&["adhoc", "--agent", "demo:own.json", "go"]);
    assert!(did.refused(2).contains(&format!("--agent: {wanted}")), "{did:?}");
    assert!(case().run(&["demo", "show", "own.json"]).refused(2).contains(wanted));
    assert!(case().run(&["agents", "check", "demo:own.json"]).out.contains(wanted));
    let long = format!("{{\"about\": \"{}\", \"turns\": [[]]}}", "x".repeat(1 << 20));
    let long = Case::new().file("work/own.json", &long);
    assert!(long.run(&["adhoc", "--agent", "demo:own.json", "go"]).refused(2).contains("of at most 1 MiB"));
    assert!(Case::new().run(&["adhoc", "--agent", "demo:no.json", "go"]).refused(2).contains("no.json cannot be read"));
}

#[test]
fn an_unknown_scenario_gets_a_hint_and_the_list() {
    let did = Case::new().run(&["adhoc", "--agent", "demo:questoins", "go"]);
    let said = did.refused(2);
    assert!(
        said.contains(
            "Unknown scenario questoins (from --agent). Did you mean questions? The scenarios are: greeting,"
        )
    );
    let mut session = Case::new().spawn();
    session.start(json!({"agent": "demo:questoins"}));
    let outcome = session.finish();
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("run.start: `agent` names an unknown scenario. Did you mean questions? The scenarios"));
    assert!(Case::new().run(&["demo", "show", "hnag"]).refused(2).contains("Did you mean hang?"));
    assert!(Case::new().run(&["agents", "check", "demo:"]).refused(2).contains("Unknown scenario."));
}

#[test]
fn a_file_writes_only_below_the_working_directory_and_deletes_only_what_it_wrote() {
    let steps = json!([
        {"call": "through", "write": {"path": "link/a.txt", "content": "x"}},
        {"call": "onto", "write": {"path": "target", "content": "x"}},
        {"call": "gone", "delete": {"path": "mine.txt"}},
        {"say": "{through} {onto} {gone}"}
    ]);
    let case = own(&steps).file("work/mine.txt", "mine").file("tmp/secret", "s");
    let case = case.link("work/link", "../tmp").link("work/target", "../tmp/secret");
    let mut session = case.spawn();
    session.start(json!({"agent": "demo:own.json", "permissions": "allow"}));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "failed failed failed");
    assert!(artifacts(&outcome).is_empty());
    let case = outcome.case();
    assert!(case.work().join("mine.txt").exists() && !case.path("tmp/a.txt").exists());
    assert_eq!(std::fs::read_to_string(case.path("tmp/secret")).unwrap(), "s");
}

#[test]
fn every_built_in_scenario_is_a_template() {
    let case = Case::new();
    for name in ["greeting", "questions", "turns"] {
        let file = case.run(&["demo", "show", name, "--output", "json"]);
        let read: Value = serde_json::from_str(&file.out).unwrap();
        assert!(read["turns"].is_array(), "{file:?}");
        let copy = Case::new().file("work/copy.json", &file.out);
        let shown = copy.run(&["demo", "show", "copy.json"]).out;
        assert_eq!(shown.replacen("copy.json", name, 1), case.run(&["demo", "show", name]).out);
    }
}

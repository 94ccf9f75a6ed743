//! Tests of `fallback`: the next agent takes over where one fails, and only while nothing was done.

use super::limits::limit;
use crate::support::agent::{AgentLog, Script, bash, error_result, quote};
use crate::support::{Case, Outcome, Session};
use serde_json::{Value, json};

/// Agents of the configuration besides `claude`, each with a fake program of its name.
pub(crate) fn beside(case: Case, agents: &[(&str, &Script)]) -> Case {
    let entries: Value =
        agents.iter().map(|(name, _)| ((*name).to_owned(), entry(name))).collect::<serde_json::Map<_, _>>().into();
    let config = json!({"agents": entries}).to_string();
    agents.iter().fold(case.file("home/.config/spektacular/config.json", &config), |case, (name, script)| {
        let folder = format!("log-{name}");
        let text = script.render(&case.path(&folder));
        case.file(&format!("{folder}/.keep"), "").program(name, &text)
    })
}

fn entry(name: &str) -> Value {
    json!({"driver": "claude", "command": name})
}

pub(crate) fn log_of(outcome: &Outcome, agent: &str) -> AgentLog {
    AgentLog::new(&outcome.case().path(&format!("log-{agent}")))
}

fn limited() -> Script {
    Script::new().sh(&limit(1000))
}

fn second(text: &str) -> Script {
    Script::new().say("msg_1", text).done(text)
}

#[track_caller]
fn begin(case: Case, mut payload: Value) -> Session {
    let mut session = case.spawn();
    if payload.get("fallback").is_none() {
        payload["fallback"] = json!(["second"]);
    }
    session.start(payload);
    session
}

#[test]
fn the_next_agent_takes_over_with_the_same_prompt_in_a_session_of_its_own() {
    let case = beside(Case::with(limited()), &[("second", &second("Done"))]);
    let payload = json!({"model": "opus", "fallback": [{"agent": "second", "model": "haiku"}], "max_turns": 9});
    let outcome = begin(case, payload).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    let config = &outcome.frames[0].payload()["config"];
    assert_eq!(config["fallback"], json!([{"agent": "second", "model": "haiku", "on": null}]));
    let warning = outcome.warnings("agent_replaced")[0].text("text").to_owned();
    assert_eq!(warning, "claude failed (rate_limited), and second takes over");
    let statuses = outcome.progress("status");
    let seen: Vec<_> = statuses.iter().map(|it| (it.text("status"), it.payload()["agent"].as_str())).collect();
    let running = ("running", None);
    assert_eq!(seen, [("starting", None), running, ("starting", Some("second")), running]);
    let log = log_of(&outcome, "second");
    assert_eq!((outcome.log().prompts(), log.prompts()), (vec!["go".to_owned()], vec!["go".to_owned()]));
    let argv = log.argv();
    assert!(
        argv.contains(&"--model=haiku".to_owned()) && !argv.iter().any(|word| word.starts_with("--resume")),
        "{argv:?}"
    );
}

#[test]
fn the_agent_that_takes_over_has_a_recording_of_its_own() {
    let case = beside(Case::with(limited()), &[("second", &second("Done"))]).args(&["--record", "run.jsonl"]).git();
    let outcome = begin(case, json!({})).finish();
    outcome.completed();
    let recorded = |name: &str| std::fs::read_to_string(outcome.case().work().join(name)).unwrap();
    let (first, next) = (recorded("run.jsonl"), recorded("run-2-second.jsonl"));
    let argv = |text: &str| serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()["argv"][0].clone();
    assert!(argv(&first).as_str().unwrap().ends_with("claude") && first.contains("rate_limit"), "{first}");
    assert!(argv(&next).as_str().unwrap().ends_with("second") && next.contains("Done"), "{next}");
    assert!(!first.contains("Done") && !next.contains("rate_limit"));
    assert_eq!(outcome.of_type("run.artifact").len(), 0, "a recording is not the agent's work");
}

#[test]
fn once_a_tool_ran_the_failure_names_the_next_agent() {
    let worked = Script::new().tool("toolu_1", "Bash", &bash("touch a.txt"), "(done)").sh(&limit(1000));
    let outcome = begin(beside(Case::with(worked), &[("second", &second("Done"))]), json!({})).finish();
    let failed = outcome.failed("rate_limited");
    let message = failed["message"].as_str().unwrap();
    assert!(message.ends_with("to go on with it, begin a run with `agent` second."), "{message}");
    assert!(!log_of(&outcome, "second").ran());
}

#[test]
fn an_agent_that_is_missing_or_does_not_start_is_replaced_too() {
    for first in [json!({"agent": "gone"}), json!({"agent": "dies"})] {
        let dies = Script::bare().sh("echo 'no such option' >&2; exit 3");
        let case = beside(Case::new(), &[("second", &second("Done")), ("dies", &dies), ("gone", &Script::bare())]);
        std::fs::remove_file(case.path("bin/gone")).unwrap();
        let outcome = begin(case, first.clone()).finish();
        assert_eq!(outcome.completed()["text"], "Done", "{first}");
        assert_eq!(outcome.warnings("agent_replaced").len(), 1);
    }
}

#[test]
fn agents_take_over_one_after_the_other_until_one_works() {
    let refused = Script::new().sh(&format!(
        "out {}\nlisten",
        quote(&error_result(json!({"api_error_status": 401, "result": "Invalid API key"})).to_string())
    ));
    let all = [("second", &refused), ("third", &second("Done"))];
    let case = beside(Case::with(limited()), &all);
    let outcome = begin(case, json!({"fallback": ["second", {"agent": "gone-too"}, "third"]})).finish();
    let failed = outcome.failed("invalid_request");
    assert!(failed["message"].as_str().unwrap().contains("`fallback` must name only these agents"), "{failed}");

    let outcome = begin(beside(Case::with(limited()), &all), json!({"fallback": ["second", "third"]})).finish();
    assert_eq!(outcome.completed()["text"], "Done");
    let texts: Vec<&str> = outcome.warnings("agent_replaced").iter().map(|it| it.text("text")).collect();
    assert_eq!(
        texts,
        ["claude failed (rate_limited), and second takes over", "second failed (auth_required), and third takes over"]
    );
    // Without another one, the last failure is the run's.
    let outcome = begin(beside(Case::with(limited()), &all), json!({})).finish();
    outcome.failed("auth_required");
}

#[test]
fn a_limit_is_waited_for_and_other_codes_are_not_taken_over() {
    let fails_once = format!("if [ \"$(wc -l <\"$D/pids\")\" -eq 1 ]; then\n{}fi", limit(1));
    let script = Script::new().sh(&fails_once).say("msg_1", "Waited").done("Waited");
    let case = beside(Case::with(script), &[("second", &second("Done"))]);
    let outcome = begin(case, json!({"on_rate_limit": "wait"})).finish();
    assert_eq!(outcome.completed()["text"], "Waited");

    // A wait that would be too long is none.
    let case = beside(Case::with(limited()), &[("second", &second("Done"))]);
    let outcome = begin(case, json!({"on_rate_limit": "wait", "max_wait_s": 100})).finish();
    assert_eq!(outcome.completed()["text"], "Done");

    let case = beside(Case::with(limited()), &[("second", &second("Done"))]);
    let outcome = begin(case, json!({"fallback": [{"agent": "second", "on": ["auth_required"]}]})).finish();
    outcome.failed("rate_limited");
}

#[test]
fn a_conversation_goes_on_with_the_agent_that_took_over_its_first_turn() {
    let case = beside(Case::with(limited()), &[("second", &second("Done"))]);
    let mut session = begin(case, json!({"conversation": true}));
    let turn = session.until_progress("turn");
    assert_eq!((turn.text("outcome"), turn.text("agent")), ("completed", "second"));
    session.send("run.input", json!({"prompt": "And now?"}));
    let turn = session.until_progress("turn");
    assert_eq!((turn.text("outcome"), turn.text("agent")), ("completed", "second"));
    session.close_stdin();
    let outcome = session.finish();
    assert_eq!(log_of(&outcome, "second").prompts(), ["go", "And now?"]);

    // Nobody else knows what was said in earlier turns.
    let turns = format!("if [ -e \"$D/turn\" ]; then\n{}fi\ntouch \"$D/turn\"", limit(1000));
    let script = Script::new().sh(&turns).say("msg_1", "One").done("One");
    let mut session = begin(beside(Case::with(script), &[("second", &second("Done"))]), json!({"conversation": true}));
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "And now?"}));
    let turn = session.until_progress("turn");
    assert_eq!(turn.text("outcome"), "failed");
    assert!(turn.payload()["failure"]["message"].as_str().unwrap().contains("second does not take over"));
    session.close_stdin();
    session.finish();
}

#[test]
fn a_limit_that_the_next_agent_cannot_keep_is_refused_before_any_agent_starts() {
    let config = json!({"agents": {"words": {"driver": "lines", "command": "words"}}}).to_string();
    let case = Case::with(limited()).file("home/.config/spektacular/config.json", &config);
    let outcome = begin(case, json!({"fallback": ["words"], "max_tool_calls": 3})).finish();
    let failed = outcome.failed("invalid_request");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("`max_tool_calls` cannot be enforced with the agent words"), "{message}");
    assert!(!outcome.log().ran());
}

#[test]
fn a_cancel_ends_the_run_while_the_first_agent_leaves() {
    // It ignores SIGTERM, so the second agent does not start within 4 s.
    let stays = limit(1000).replace("\nlisten\n", "\ntrap '' TERM\nwhile :; do sleep 1; done\n");
    let case = beside(Case::with(Script::new().sh(&stays)), &[("second", &second("Done"))]);
    let mut session = begin(case, json!({}));
    session.until_progress("session");
    session.wait_until("the limit is reached", || session.log().path("pid").exists());
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    assert!(!log_of(&outcome, "second").ran());
}

#[test]
fn the_session_is_stored_for_the_agent_that_took_over() {
    let case =
        beside(Case::with(limited()).file("work/.spektacular/config.json", "{}"), &[("second", &second("Done"))]);
    let did = case.run(&["adhoc", "--fallback", "second", "go"]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    let names: Vec<String> = case
        .listing()
        .iter()
        .filter_map(|path| Some(path.to_str()?.split_once(".spektacular/local/sessions/")?.1.to_owned()))
        .collect();
    assert_eq!(names, ["second"]);
    let did = case.run(&["adhoc", "--agent", "second", "--continue", "more"]);
    assert_eq!(did.code, Some(0), "{}", did.err);
}

//! Tests of a simulated run: its idle clock in simulated time, and messages that arrive while nobody reads its frames.

use crate::playback::world::{Sent, World, exited, killed};
use serde_json::{Value, json};
use spektacular::agent::registry::Agents;
use spektacular::config::Layers;
use spektacular::engine::{Admission, Job};
use spektacular::protocol::inbound::parse;
use spektacular::protocol::outbound::{Outcome, WorkflowStarted};
use spektacular::protocol::question::{Ask, Kind};
use spektacular::protocol::request::Options;
use spektacular::protocol::words::{Purpose, WorkflowKind};
use spektacular::protocol::workflow::{ShownOptions, WorkflowOptions};
use spektacular::run::{Event, Part, PartWork, StopSignal, Turn, TurnBegin};
use std::time::Duration;

/// A run with an agent that works.
fn working(payload: Value) -> World {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    let mut start = json!({"prompt": "Go on", "agent": "claude", "heartbeat_s": 0, "timeout_s": 100_000});
    start.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
    world.hear(&message("run.start", start));
    world.spawn();
    world.line(&json!({"type": "system", "subtype": "init", "session_id": "s"}).to_string());
    world
}

fn message(kind: &str, payload: Value) -> String {
    json!({"v": "1", "type": kind, "payload": payload}).to_string()
}

/// A question of the agent. No tool was reported, so none runs.
fn ask(world: &mut World) -> String {
    let question = json!({"question": "Which?", "header": "Which", "multiSelect": false,
        "options": [{"label": "This", "description": ""}, {"label": "That", "description": ""}]});
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {"questions": [question]},
        "tool_use_id": "t"});
    world.line(&json!({"type": "control_request", "request_id": "r", "request": request}).to_string());
    world.question_ids().pop().expect("a question")
}

/// The payload of the last frame once the agent is gone.
#[track_caller]
fn end(world: &mut World) -> Value {
    world.gone(exited(0), "");
    assert!(world.is_over(), "the run goes on");
    world.frames.last().unwrap().value.clone()
}

/// A text of the agent, and the result of its turn.
fn answer(world: &mut World, text: &str) {
    let said = json!([{"type": "text", "text": text}]);
    let message = json!({"id": text, "role": "assistant", "content": said});
    world.line(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null}).to_string());
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s"});
    world.line(&result.to_string());
}

/// The payloads of the progress of this kind so far.
fn progress(world: &World, kind: &str) -> Vec<Value> {
    let payloads = world.frames.iter().map(|frame| &frame.value["payload"]);
    payloads.filter(|payload| payload["kind"] == kind).cloned().collect()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn an_open_question_stops_the_idle_clock_and_its_answer_restarts_it() {
    let mut world = working(json!({"idle_timeout_s": 10, "tool_timeout_s": 1, "question_timeout_s": 2000}));
    world.tick_until(seconds(5));
    let question_id = ask(&mut world);
    world.tick_until(seconds(1000));
    assert!(!world.is_decided(), "the agent counts as silent while it waits for an answer");
    world.hear(&message("run.input", json!({"question_id": question_id, "value": "This"})));
    world.tick_until(seconds(1009));
    assert!(!world.is_decided(), "the clock did not begin anew");
    world.tick_until(seconds(1011));
    assert!(world.is_decided(), "the clock stands still");
    assert_eq!(end(&mut world)["payload"]["code"], "idle_timeout");
}

#[test]
fn the_idle_clock_stands_still_while_a_prompt_is_awaited() {
    for is_answered in [true, false] {
        let mut world = working(json!({"conversation": true, "idle_timeout_s": 10, "heartbeat_s": 4}));
        world.tick_until(seconds(5));
        answer(&mut world, "One");
        world.tick_until(seconds(1000));
        assert!(!world.is_decided(), "the agent counts as silent while it waits for a prompt");
        let last = progress(&world, "heartbeat").pop().expect("a heartbeat");
        assert_eq!(last["waiting_on"], "prompt");
        assert!(last["idle_s"].as_f64().unwrap() > 900.0, "{last}");
        world.hear(&message("run.input", json!({"prompt": "And now?"})));
        world.tick_until(seconds(1009));
        assert!(!world.is_decided(), "the clock did not begin anew");
        if is_answered {
            answer(&mut world, "Two");
            world.hear(&message("run.input", json!({"end": true})));
            assert_eq!(end(&mut world)["payload"]["text"], "Two");
        } else {
            world.tick_until(seconds(1011));
            assert!(world.is_decided(), "the clock stands still");
            assert_eq!(end(&mut world)["payload"]["code"], "idle_timeout");
        }
    }
}

#[test]
fn a_prompt_waits_for_the_end_of_a_turn_that_took_too_long() {
    let mut world = working(json!({"conversation": true, "turn_timeout_s": 10}));
    world.hear(&message("run.input", json!({"prompt": "And now?"})));
    world.hear(&message("run.input", json!({"end": true})));
    world.tick_until(seconds(11));
    let sent = |world: &mut World, text: &str| {
        let mut lines = world.host_mut().sent.iter();
        lines.any(|sent| matches!(sent, Sent::Line(line) if line.contains(text)))
    };
    assert!(sent(&mut world, "interrupt") && !sent(&mut world, "And now?"), "the turn has not ended");
    let aborted = json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": "s"});
    world.line(&aborted.to_string());
    assert!(sent(&mut world, "And now?"), "the turn has ended");
    answer(&mut world, "Two");
    assert_eq!(end(&mut world)["payload"]["text"], "Two");
    let fields = |kind: &str, field: &str| -> Vec<Value> {
        progress(&world, kind).iter().map(|payload| payload[field].clone()).collect()
    };
    assert_eq!(fields("prompt", "state"), ["queued", "sent"]);
    assert_eq!(fields("turn", "outcome"), ["failed", "completed"]);
}

#[test]
fn a_running_tool_stops_the_idle_clock_for_the_tools_limit() {
    for is_over in [true, false] {
        let mut world = working(json!({"idle_timeout_s": 10, "tool_timeout_s": 60, "heartbeat_s": 4}));
        world.tick_until(seconds(5));
        let block = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "sleep 99"}});
        let call = json!({"id": "m", "role": "assistant", "content": [block]});
        world.line(&json!({"type": "assistant", "message": call, "parent_tool_use_id": null}).to_string());
        world.tick_until(seconds(74));
        assert!(!world.is_decided(), "the agent counts as silent while its tool runs");
        assert_eq!(progress(&world, "heartbeat").len(), 18);
        if is_over {
            let block = json!({"type": "tool_result", "tool_use_id": "t", "content": "(done)"});
            let result = json!({"role": "user", "content": [block]});
            world.line(&json!({"type": "user", "message": result, "parent_tool_use_id": null}).to_string());
            world.tick_until(seconds(83));
            assert!(!world.is_decided(), "the clock did not begin anew");
            answer(&mut world, "ok");
            assert_eq!(end(&mut world)["type"], "run.completed");
        } else {
            world.tick_until(seconds(76));
            assert!(world.is_decided(), "the tool has no limit");
            assert_eq!(end(&mut world)["payload"]["code"], "idle_timeout");
        }
    }
}

/// Lets frames wait until messages are only counted whose only reply would be a warning.
fn overfill(world: &mut World) {
    let mut number = 0;
    while !world.conductor().outbox().is_overfull() {
        number += 1;
        let message =
            json!({"id": format!("m{number}"), "role": "assistant", "content": [{"type": "text", "text": "x"}]});
        world.hand(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null}).to_string());
    }
}

/// Hears a line of stdin. Leaves the frames in the outbox.
fn hear(world: &mut World, line: &str) {
    parse(line.as_bytes()).into_iter().for_each(|message| world.conductor().inbound(message));
}

#[test]
fn a_cancel_is_heard_however_many_frames_wait() {
    for reason in ["enough", ""] {
        let mut world = working(json!({}));
        overfill(&mut world);
        hear(&mut world, &message("run.cancel", json!({"reason": reason})));
        assert!(world.run().stopping().is_some(), "the cancel was dropped");
        world.take();
        let last = end(&mut world);
        assert_eq!((&last["type"], &last["payload"]["reason"]), (&json!("run.cancelled"), &json!(reason)));
    }
}

#[test]
fn an_answer_and_an_unsupported_version_are_heard_however_many_frames_wait() {
    let mut world = working(json!({}));
    let question_id = ask(&mut world);
    overfill(&mut world);
    hear(&mut world, &message("run.input", json!({"question_id": question_id, "value": "This"})));
    hear(&mut world, r#"{"v":"2","type":"run.cancel"}"#);
    assert!(world.run().stopping().is_some(), "the message was dropped");
    world.take();
    let resolutions: Vec<&Value> = world.frames.iter().map(|frame| &frame.value["payload"]["resolution"]).collect();
    assert!(resolutions.contains(&&json!("answered")), "the answer was dropped");
    assert_eq!(end(&mut world)["payload"]["code"], "unsupported_version");
}

#[test]
fn an_unsupported_version_after_the_result_fails_the_run() {
    let mut world = working(json!({}));
    let result =
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done", "session_id": "s"});
    world.line(&result.to_string());
    assert!(world.is_decided() && !world.is_over(), "the agent has its result and has not exited");
    world.hear(r#"{"v":"2","type":"run.cancel"}"#);
    let last = end(&mut world);
    assert_eq!((&last["type"], &last["payload"]["code"]), (&json!("run.failed"), &json!("unsupported_version")));
}

#[test]
fn messages_that_would_only_be_warned_about_are_counted_while_too_many_frames_wait() {
    let mut world = working(json!({}));
    overfill(&mut world);
    for _ in 0..5 {
        hear(&mut world, "garbage");
        hear(&mut world, &message("run.unknown", json!({})));
        hear(&mut world, &message("run.input", json!({"question_id": "q_none_1", "value": "x"})));
        hear(&mut world, &message("run.start", json!({"prompt": "again"})));
    }
    world.take();
    assert_eq!(progress(&world, "warning"), Vec::<Value>::new(), "the warnings fill the outbox further");
    hear(&mut world, "garbage");
    world.take();
    let warnings = progress(&world, "warning");
    let texts: Vec<&str> = warnings.iter().map(|warning| warning["text"].as_str().unwrap()).collect();
    assert!(texts.len() == 2 && texts[0].contains("20"), "{texts:?}");
}

#[test]
fn no_heartbeat_joins_too_many_waiting_frames() {
    let mut world = working(json!({"heartbeat_s": 1}));
    overfill(&mut world);
    for second in 1..=100 {
        world.at(seconds(second));
        world.conductor().tick();
    }
    world.take();
    assert_eq!(progress(&world, "heartbeat"), Vec::<Value>::new(), "nobody reads them");
    world.tick_until(seconds(103));
    assert!(!progress(&world, "heartbeat").is_empty(), "somebody reads again");
}

#[test]
fn stderr_explains_only_the_end_of_an_agent_that_never_spoke() {
    let tail = |world: &mut World| {
        world.gone(exited(3), "cannot read the settings");
        let last = &world.frames.last().unwrap().value;
        assert_eq!(last["type"], "run.failed");
        last["payload"]["detail"]["stderr_tail"].clone()
    };
    assert_eq!(tail(&mut working(json!({}))), Value::Null);
    let mut silent = World::new("/home/user/project", Options::default(), Agents::built_in());
    silent.hear(&message("run.start", json!({"prompt": "Go on", "agent": "claude"})));
    silent.spawn();
    assert_eq!(tail(&mut silent), "cannot read the settings");
}

#[test]
fn a_call_of_ask_user_and_its_end_are_signs_of_life() {
    let mut world = working(json!({"idle_timeout_s": 10, "heartbeat_s": 4, "question_timeout_s": 2000}));
    world.tick_until(seconds(5));
    let ask = Ask::new(Purpose::Input, Kind::FilePath, "H", "Which?");
    world.step(Event::ToolAsk { call: 1, asks: vec![ask] });
    world.tick_until(seconds(9));
    assert_eq!(progress(&world, "heartbeat").pop().expect("a heartbeat")["idle_s"], 4.0);
    world.tick_until(seconds(1000));
    world.step(Event::ToolAskWithdrawn { call: 1 });
    world.tick_until(seconds(1009));
    assert!(!world.is_decided(), "the clock did not begin anew");
    world.tick_until(seconds(1011));
    assert!(world.is_decided(), "the clock stands still");
}

/// The result of a turn that used six tokens.
fn use_six_tokens(world: &mut World) {
    let usage = json!({"input_tokens": 4, "output_tokens": 2});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": "s",
        "usage": usage});
    world.line(&result.to_string());
}

#[test]
fn a_budget_counts_the_processes_that_have_ended() {
    for (max_tokens, last) in [(12, "run.completed"), (11, "run.failed")] {
        let mut world = working(json!({"conversation": true, "max_tokens": max_tokens}));
        use_six_tokens(&mut world);
        world.hear(&message("run.input", json!({"prompt": "And now?"})));
        world.hear(&message("run.cancel", json!({"scope": "turn"})));
        world.gone(killed(9), "");
        world.hear(&message("run.input", json!({"prompt": "Again"})));
        world.spawn();
        world.line(&json!({"type": "system", "subtype": "init", "session_id": "s"}).to_string());
        use_six_tokens(&mut world);
        world.hear(&message("run.input", json!({"end": true})));
        let frame = end(&mut world);
        assert_eq!((&frame["type"], &frame["payload"]["usage"]["input_tokens"]), (&json!(last), &json!(8)), "{frame}");
    }
}

#[test]
fn a_cancel_after_the_result_ends_the_next_part() {
    for is_late in [true, false] {
        let admission = Some(admission());
        let mut world = World::of(Job { admission, ..Job::new(Layers::new(Agents::built_in())) }, "/home/user/project");
        world.hear(&message("run.start", json!({"prompt": "Go on", "agent": "claude", "heartbeat_s": 0})));
        let settings = Options::default().resolve("Go on".into(), "claude".into(), "/home/user/project".into());
        let part = |world: &mut World| {
            let (start, keeps_process) = (TurnBegin::NewSession, false);
            let turn =
                Turn { start, keeps_process, offers_blocked: false, whole: None, asking_failed: false, guest: None };
            world.step(Event::Part(Box::new(Part { settings: settings.clone(), work: PartWork::Turn(turn) })));
        };
        part(&mut world);
        world.spawn();
        world.line(&json!({"type": "system", "subtype": "init", "session_id": "s"}).to_string());
        if is_late {
            answer(&mut world, "Done");
        }
        world.hear(&message("run.cancel", json!({"reason": "enough"})));
        world.gone(exited(0), "");
        let outcome = |world: &mut World| world.conductor().take_part_end().expect("the part is over").outcome;
        let first = outcome(&mut world);
        assert_eq!(matches!(first, Outcome::Completed { .. }), is_late, "{first:?}");
        if is_late {
            part(&mut world);
            let next = outcome(&mut world);
            assert!(matches!(&next, Outcome::Cancelled { reason: Some(_), .. }), "{next:?}");
        }
        assert!(!world.is_over(), "the workflow closes its run");
    }
}

/// The admission of a workflow that changes nothing.
fn admission() -> Admission {
    let (workflow, options) = (WorkflowKind::Spec, WorkflowOptions::default().resolved());
    let options = ShownOptions { of: workflow, settings: options };
    let started = WorkflowStarted { name: workflow, project: "/home/user/project".into(), target: None, options };
    Admission { workflow, admit: Box::new(move |_, _, _, _, _| Ok(started)) }
}

#[test]
fn a_stop_takes_each_step_at_its_time() {
    let mut world = working(json!({}));
    world.tick_until(seconds(5));
    world.hear(&message("run.cancel", json!({})));
    world.tick_until(seconds(60));
    let after = |millis: u64| seconds(5) + Duration::from_millis(millis);
    assert_eq!(world.host_mut().closed, Some(after(700)));
    let stops = [(after(1400), StopSignal::Terminate), (after(2100), StopSignal::Kill)];
    assert_eq!(world.host_mut().stops, stops);
}

#[test]
fn a_turn_lists_the_first_20_unanswered_questions() {
    let mut world = working(json!({"conversation": true, "interactive": false}));
    for call in 0..21 {
        let ask = Ask::new(Purpose::Input, Kind::FilePath, "H", format!("Which {call}?").as_str());
        world.step(Event::ToolAsk { call, asks: vec![ask] });
    }
    answer(&mut world, "Done");
    let turn = progress(&world, "turn").pop().expect("the end of the turn");
    let listed = &turn["unanswered"];
    assert_eq!((&listed["count"], listed["first"].as_array().unwrap().len()), (&json!(21), 20), "{turn}");
}

//! Tests of the budget for everything that is kept for an agent.

use crate::length::by_length;
use crate::playback::world::{World, killed};
use crate::support::agent::{self, Script, quote};
use crate::support::{Case, procs};
use serde_json::{Value, json};
use spektacular::agent::registry::Agents;
use spektacular::protocol::limits::{KEPT_BYTES, WAITING_REQUESTS};
use spektacular::protocol::request::Options;

/// A run with an agent that works.
fn begun() -> World {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    let payload = json!({"prompt": "Go on", "agent": "claude", "max_frame_bytes": 4 << 20});
    world.hear(&json!({"v": "1", "type": "run.start", "payload": payload}).to_string());
    world.spawn();
    say(&mut world, &json!({"type": "system", "subtype": "init", "session_id": "s"}));
    world
}

fn say(world: &mut World, message: &Value) {
    world.line(&message.to_string());
}

fn called(call: &str, path: &str) -> Value {
    let block = json!({"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}});
    let message = json!({"id": call, "role": "assistant", "content": [block]});
    json!({"type": "assistant", "message": message, "parent_tool_use_id": null})
}

fn permission(world: &mut World, id: &str, bytes: usize) {
    let input = json!({"command": "x".repeat(bytes)});
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": id});
    say(world, &json!({"type": "control_request", "request_id": id, "request": request}));
}

fn deny(world: &mut World, id: &str) {
    let payload = json!({"question_id": id, "value": "deny"});
    world.hear(&json!({"v": "1", "type": "run.input", "payload": payload}).to_string());
}

/// The failure code of the run, which must be decided.
#[track_caller]
fn failure(mut world: World) -> Value {
    assert!(world.is_decided(), "the run goes on");
    world.gone(killed(9), "");
    world.frames.last().map(|frame| frame.value["payload"]["code"].clone()).unwrap_or_default()
}

#[test]
fn the_places_of_open_tools_are_dropped_when_there_is_no_room() {
    let (mut world, path) = (begun(), "p".repeat(1 << 20));
    let calls: Vec<String> = (0..35).map(|call| format!("c{call}")).collect();
    calls.iter().for_each(|call| say(&mut world, &called(call, &format!("/{path}/{call}"))));
    for call in &calls {
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": "ok"});
        say(&mut world, &json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    let of = |state: &str| -> Vec<&Value> {
        let payloads = world.frames.iter().map(|frame| &frame.value["payload"]);
        payloads.filter(|payload| payload["state"] == state).collect()
    };
    let has_place = |tool: &&&Value| tool["locations"][0].is_object();
    assert_eq!(of("started").iter().filter(has_place).count(), 35);
    let completed = of("completed");
    let whole = completed.iter().filter(has_place).count();
    assert_eq!((completed.len(), whole), (35, 31), "a MiB each and a little more");
    assert!(completed[31..].iter().all(|tool| tool["truncated"] == true));
    assert!(!world.is_decided());
}

/// A run with as many open permissions of 2 MiB as the budget holds.
#[track_caller]
fn with_permissions() -> World {
    let mut world = begun();
    (0..15).for_each(|id| permission(&mut world, &id.to_string(), 2 << 20));
    assert!(!world.is_decided());
    world
}

#[test]
fn open_tools_beyond_the_budget_fail_the_run() {
    let tools = until_exhausted(with_permissions(), 10_000, |call| called(&format!("c{call}"), "/a"));
    assert!((6_000..8_000).contains(&tools), "{tools} tools of about 300 bytes in less than 2 MiB");
}

#[test]
fn open_permissions_count_until_they_are_answered() {
    let mut world = with_permissions();
    let first = world.question_ids()[0].clone();
    deny(&mut world, &first);
    permission(&mut world, "15", 2 << 20);
    assert!(!world.is_decided());
    permission(&mut world, "16", 2 << 20);
    assert_eq!(failure(world), "resource_exhausted");
}

#[test]
fn more_open_permissions_than_the_limit_fail_the_run() {
    let mut world = begun();
    (0..WAITING_REQUESTS).for_each(|id| permission(&mut world, &id.to_string(), 10));
    let first = world.question_ids()[0].clone();
    deny(&mut world, &first);
    permission(&mut world, "next", 10);
    assert!(!world.is_decided());
    permission(&mut world, "last", 10);
    assert_eq!(failure(world), "resource_exhausted");
}

#[test]
fn lines_that_the_agent_does_not_read_fail_the_run() {
    let mut world = begun();
    permission(&mut world, "1", 10);
    world.host_mut().unsent = KEPT_BYTES + 1;
    let first = world.question_ids()[0].clone();
    deny(&mut world, &first);
    assert_eq!(failure(world), "resource_exhausted");
}

/// A run with an agent of this dialect that works in the session or thread `s`.
fn working(agent: &str, hello: &[Value]) -> World {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    let payload = json!({"prompt": "Go on", "agent": agent, "progress": "full"});
    world.hear(&json!({"v": "1", "type": "run.start", "payload": payload}).to_string());
    world.spawn();
    hello.iter().for_each(|message| say(&mut world, message));
    world
}

fn codex() -> World {
    let thread = json!({"thread": {"id": "s"}});
    working(
        "codex",
        &[
            json!({"id": 1, "result": {}}),
            json!({"id": 2, "result": {"account": null, "requiresOpenaiAuth": false}}),
            json!({"id": 3, "result": thread}),
            json!({"id": 4, "result": {"turn": {"id": "t"}}}),
        ],
    )
}

fn gemini() -> World {
    working(
        "gemini",
        &[json!({"id": 1, "result": {"protocolVersion": 1}}), json!({"id": 2, "result": {"sessionId": "s"}})],
    )
}

/// Says these messages until the run fails. Returns the number of messages that it took.
#[track_caller]
fn until_exhausted(mut world: World, most: usize, message: impl Fn(usize) -> Value) -> usize {
    for number in 0..most {
        say(&mut world, &message(number));
        if world.is_decided() {
            assert_eq!(failure(world), "resource_exhausted");
            return number + 1;
        }
    }
    panic!("the run goes on after {most} messages");
}

#[test]
fn the_memory_of_a_driver_has_a_budget() {
    let long = "x".repeat(60 << 10);
    // A call that waits for permission is not reported yet.
    let pending = |number| {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{number}"), "status": "pending",
            "title": "Run", "kind": "execute", "rawInput": {"command": long}});
        json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
    };
    let calls = until_exhausted(gemini(), 1000, pending);
    assert!((500..600).contains(&calls), "{calls} calls");
    let delta = |number| {
        let params = json!({"threadId": "s", "turnId": "t", "itemId": format!("{long}{number}"), "delta": "a"});
        json!({"method": "item/agentMessage/delta", "params": params})
    };
    let items = until_exhausted(codex(), 1000, delta);
    assert!((500..600).contains(&items), "{items} items");
    let patch = |number| {
        let change = json!({"path": "/home/user/project/a", "kind": {"type": "add"}, "diff": long});
        let item = json!({"type": "fileChange", "id": format!("i{number}"), "changes": [change]});
        json!({"method": "item/started", "params": {"threadId": "s", "turnId": "t", "item": item}})
    };
    let patches = until_exhausted(codex(), 1000, patch);
    assert!((500..600).contains(&patches), "{patches} patches");
    let sub_agent = |number| {
        let event = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
        json!({"type": "stream_event", "event": event, "parent_tool_use_id": format!("p{number}")})
    };
    let sub_agents = until_exhausted(with_permissions(), 20_000, sub_agent);
    assert!((3_000..9_000).contains(&sub_agents), "{sub_agents} sub-agents in less than 2 MiB");
}

/// A hostile line from an agent, the number of times it is sent, and whether that ends the run.
struct Hostile {
    what: &'static str,
    /// Replaces `@N` by the number and `@X` by the long text.
    line: Value,
    payload: Value,
    exhausts: bool,
}

fn hostile() -> [Hostile; 4] {
    let tool = json!({"type": "tool_use", "id": "t@N", "name": "Read", "input": {"file_path": "/@X"}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "@X"}});
    let permission = || agent::can_use("r@N", "t@N", "Bash", &json!({"command": "@X"}));
    let row = |what, line, payload, exhausts| Hostile { what, line, payload, exhausts };
    [
        row("open tools", agent::assistant("m@N", tool), json!({}), false),
        row(
            "open messages",
            json!({"type": "stream_event", "event": delta, "parent_tool_use_id": "p@N"}),
            json!({}),
            false,
        ),
        row("open permissions", permission(), json!({"max_frame_bytes": 64 << 20}), true),
        row("unread replies", permission(), json!({"permissions": "allow"}), true),
    ]
}

/// Runs an agent that prints the line `count` times with a text of `bytes` bytes, and never reads its input. Returns
/// the program's peak memory in KiB.
fn peak(hostile: &Hostile, count: usize, bytes: usize) -> u64 {
    let line = hostile.line.to_string();
    let (head, tail) = line.split_once("@X").expect("a place for the text");
    let steps = format!(
        "head -c {bytes} /dev/zero | tr '\\0' x >\"$D/text\"\nn=0\nwhile [ $n -lt {count} ]; do\nn=$((n + 1))\n\
         printf %s {} | sed \"s/@N/$n/g\"; cat \"$D/text\"; printf %s {} | sed \"s/@N/$n/g\"; echo\ndone",
        quote(head),
        quote(tail)
    );
    let mut case = Case::with(Script::new().sh(&steps).result("ok").sh("exec sleep 1000"));
    // A line of many MiB takes a debug build seconds of the processor's time, and a busy machine many times that.
    case.limit *= 10;
    let mut session = case.spawn();
    let mut payload = hostile.payload.clone();
    payload["heartbeat_s"] = json!(0.2);
    session.start(payload);
    let mut peak = 0;
    while !session.next_frame().is_terminal() {
        peak = peak.max(procs::peak_kib(session.pid()));
    }
    let outcome = session.finish_unchecked();
    match hostile.exhausts {
        true => drop(outcome.failed("resource_exhausted").clone()),
        false => drop(outcome.completed().clone()),
    }
    peak
}

/// The limit of the program's memory, in KiB. Besides the budget, the program needs room for the current line, for some
/// copies of it, and for memory that the allocator does not return, which differs from run to run. Without a budget, each
/// case took more than 512 MiB.
const PEAK_KIB: u64 = 320 << 10;

#[track_caller]
fn assert_bounded(lines: &[Hostile], count: usize, bytes: usize) {
    for hostile in lines {
        let peak = peak(hostile, count, bytes);
        assert!(peak < PEAK_KIB, "{}: {peak} KiB", hostile.what);
    }
}

#[test]
fn an_agent_cannot_make_the_program_hold_more_than_its_budget() {
    let all = hostile();
    // The last two end the run.
    assert_bounded(by_length(&all[2..], &all), 5, 8 << 20);
}

/// The numbers with which the budget was found to be missing. Meant for a release build.
#[test]
#[ignore = "takes minutes"]
fn many_longer_lines_stay_within_the_budget_too() {
    assert_bounded(&hostile(), 100, 5 << 20);
    assert_bounded(&hostile(), 40, 20 << 20);
}

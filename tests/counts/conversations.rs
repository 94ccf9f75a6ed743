//! A long conversation: each turn costs as much as the first ones, and the memory stays flat.

use crate::length::by_length;
use crate::workload::Dialect;
use crate::world::{Sent, World};
use serde_json::Value;
use spektacular::agent::registry::Agents;
use spektacular::protocol::inbound::parse;
use spektacular::protocol::request::Options;
use std::ops::Range;

/// The turns before the first measurement, after which every buffer has its size and every bounded memory is full.
const EARLY: usize = 2000;
/// The number of turns that are compared.
const COMPARED: usize = 1000;
/// The memory that the measured turns may keep, in bytes.
const KEPT: i64 = 4096;

#[test]
fn turns_of_claude_cost_the_same_each_and_keep_no_memory() {
    turns_cost_the_same_and_keep_nothing(Dialect::Claude);
}

#[test]
fn turns_of_codex_cost_the_same_each_and_keep_no_memory() {
    turns_cost_the_same_and_keep_nothing(Dialect::Codex);
}

#[test]
fn turns_of_an_acp_agent_cost_the_same_each_and_keep_no_memory() {
    turns_cost_the_same_and_keep_nothing(Dialect::Acp);
}

#[track_caller]
fn turns_cost_the_same_and_keep_nothing(dialect: Dialect) {
    let turns = by_length(4000, 10_000);
    let mut talk = Talk::begin(dialect);
    talk.turns(1..EARLY);
    let early = allocation_counter::measure(|| talk.turns(EARLY..EARLY + COMPARED));
    let middle = allocation_counter::measure(|| talk.turns(EARLY + COMPARED..turns - COMPARED));
    let late = allocation_counter::measure(|| talk.turns(turns - COMPARED..turns));
    println!("{dialect:?}: {early:?}, then {middle:?}, {late:?}");
    assert!(early.count_total > COMPARED as u64, "{dialect:?}: nothing was counted");
    // The nodes of the trees of ids are not split and joined in each turn alike.
    let (before, after) = (early.count_total as f64, late.count_total as f64);
    assert!(after < before * 1.001, "{dialect:?}: {COMPARED} turns make {before}, and then {after} allocations");
    let (before, after) = (early.bytes_total as f64, late.bytes_total as f64);
    assert!(after < before * 1.01, "{dialect:?}: {COMPARED} turns allocate {before}, and then {after} bytes");
    let kept = early.bytes_current + middle.bytes_current + late.bytes_current;
    assert!(kept < KEPT, "{dialect:?}: {kept} bytes are kept");
}

/// A conversation whose agent answers each prompt with a message, a question and a tool.
struct Talk {
    world: World,
    dialect: Dialect,
}

impl Talk {
    /// Begins the conversation, and ends its first turn.
    fn begin(dialect: Dialect) -> Talk {
        let options = Options { conversation: Some(true), ..Options::default() };
        let mut talk = Talk { world: World::new("/home/user/project", options, Agents::built_in()), dialect };
        let agent = dialect.agent();
        talk.world.hear(&format!(r#"{{"v":"1","type":"run.start","payload":{{"prompt":"Go on","agent":"{agent}"}}}}"#));
        talk.world.spawn();
        for step in dialect.script("") {
            if let crate::workload::Step::Say(lines) = step {
                lines.lines().for_each(|line| talk.world.hand(line));
            }
        }
        let shown = talk.shown();
        assert!(shown.contains(r#""waiting_for_prompt""#), "{shown}");
        talk
    }

    fn turns(&mut self, numbers: Range<usize>) {
        numbers.for_each(|number| self.turn(number));
    }

    fn turn(&mut self, number: usize) {
        self.world.host_mut().sent.clear();
        self.hear(r#"{"v":"1","type":"run.input","payload":{"prompt":"Go on"}}"#);
        let request = self.heard()["id"].as_u64().unwrap_or_default();
        for line in self.dialect.begins(request, number).lines() {
            self.world.hand(line);
        }
        let shown = self.shown();
        let question = format!("q_golden_{number}");
        assert!(shown.contains(&question), "turn {number}: {shown}");
        self.hear(&format!(
            r#"{{"v":"1","type":"run.input","payload":{{"question_id":"{question}","value":"allow_once"}}}}"#
        ));
        assert!(self.heard().is_object(), "turn {number}: no answer");
        for line in self.dialect.ends(request, number).lines() {
            self.world.hand(line);
        }
        let shown = self.shown();
        let wanted = format!(r#""origin":"prompt","prompt_id":"p_{number}","outcome":"completed""#);
        assert!(
            shown.contains(&wanted) && shown.contains(&format!(r#""turn":{},"#, number + 1)),
            "turn {number}: {shown}"
        );
    }

    /// Passes a line of stdin to the run.
    fn hear(&mut self, line: &str) {
        parse(line.as_bytes()).into_iter().for_each(|message| self.world.conductor().inbound(message));
    }

    /// The last line that the agent got.
    #[track_caller]
    fn heard(&mut self) -> Value {
        match self.world.host_mut().sent.pop_back() {
            Some(Sent::Line(line)) => serde_json::from_str(&line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Takes the waiting frames.
    fn shown(&mut self) -> String {
        let mut all = String::new();
        while !self.world.conductor().outbox().is_empty() {
            all.push_str(std::str::from_utf8(&self.world.conductor().outbox().pop().out).unwrap());
        }
        all
    }
}

impl Dialect {
    /// The lines of a turn up to its question. `request`: the id of the request that began it.
    fn begins(self, request: u64, number: usize) -> String {
        match self {
            Dialect::Claude => format!(
                r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"text","text":"I shall."}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"tool_use","id":"c{number}","name":"Bash","input":{{"command":"touch a"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"control_request","request_id":"r{number}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"touch a"}},"tool_use_id":"c{number}"}}}}
"#
            ),
            Dialect::Codex => format!(
                r#"{{"id":{request},"result":{{"turn":{{"id":"u{number}","items":[],"status":"inProgress","error":null}}}}}}
{{"method":"turn/started","params":{{"threadId":"t","turn":{{"id":"u{number}","items":[],"status":"inProgress","error":null}}}}}}
{{"method":"item/completed","params":{{"item":{{"type":"agentMessage","id":"m{number}","text":"I shall.","phase":null}},"threadId":"t","turnId":"u{number}"}}}}
{{"method":"item/started","params":{{"item":{{"type":"commandExecution","id":"c{number}","command":"touch a","cwd":"/home/user/project","status":"inProgress","commandActions":[],"aggregatedOutput":null,"exitCode":null}},"threadId":"t","turnId":"u{number}"}}}}
{{"id":{number},"method":"item/commandExecution/requestApproval","params":{{"threadId":"t","turnId":"u{number}","itemId":"c{number}","command":"touch a","cwd":"/home/user/project"}}}}
"#
            ),
            Dialect::Acp => format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"I shall."}}}}}}}}
{{"jsonrpc":"2.0","id":"p{number}","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c{number}","status":"pending","title":"touch a","content":[],"locations":[],"kind":"execute"}},"options":[{{"optionId":"once","name":"Allow","kind":"allow_once"}},{{"optionId":"no","name":"Reject","kind":"reject_once"}}]}}}}
"#
            ),
        }
    }

    /// The lines of a turn after the answer.
    fn ends(self, request: u64, number: usize) -> String {
        match self {
            Dialect::Claude => format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"c{number}","type":"tool_result","content":"ok"}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","session_id":"s","total_cost_usd":{number},"usage":{{"input_tokens":100,"output_tokens":10}}}}
"#
            ),
            Dialect::Codex => format!(
                r#"{{"method":"item/completed","params":{{"item":{{"type":"commandExecution","id":"c{number}","command":"touch a","cwd":"/home/user/project","status":"completed","commandActions":[],"aggregatedOutput":"","exitCode":0}},"threadId":"t","turnId":"u{number}"}}}}
{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"u{number}","items":[],"status":"completed","error":null}}}}}}
"#
            ),
            Dialect::Acp => format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"c{number}","status":"completed","title":"touch a","content":[],"locations":[],"kind":"execute"}}}}}}
{{"jsonrpc":"2.0","id":{request},"result":{{"stopReason":"end_turn"}}}}
"#
            ),
        }
    }
}

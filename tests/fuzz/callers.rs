//! The ask-server: the lines of its socket, through its MCP server to questions and answers.
//!
//! | line | step |
//! |---|---|
//! | `c 1` | connection 1 comes |
//! | `< 1 {…}` | a line from connection 1 |
//! | `t 1`, `g 1` | a line of connection 1 is too long; connection 1 ends |
//! | `a`, `d`, `n`, `w` | the oldest call is answered, declined, left because nobody is there, withdrawn |
//! | `p` | the next progress messages are due |

use super::input::{Input, from_text};
use super::round::{Checked, Target};
use crossbeam_channel::{Receiver, bounded};
use serde_json::{Value, json};
use spektacular::agent::Reply;
use spektacular::engine::{AskConnections, AskEvent, AskOutcome};
use spektacular::protocol::limits;
use spektacular::protocol::question::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The length of a connection's queue: shorter than in a run, so that queues fill often.
const WAITING: usize = 20;
/// The maximum length of a line for a caller, apart from the texts that the caller sent.
const OWN_BYTES: usize = 32 << 10;
/// The maximum number of bytes that one byte of a caller can become, as an escape in a JSON string inside a JSON string.
const FACTOR: usize = 16;

const WORDS: &[&str] = &["c 1", "c 2", "t 1", "g 1", "g 2", "a", "d", "n", "w", "p", "< 1 {}", "< 1 []", "< 2 x"];

fn hold(condition: bool, why: &str) -> Checked {
    if condition { Ok(()) } else { Err(why.into()) }
}

struct Play {
    callers: AskConnections,
    open: BTreeMap<u64, Receiver<String>>,
    /// The questions of each open call.
    calls: BTreeMap<u64, usize>,
    known: BTreeSet<u64>,
    now: Instant,
    /// The bytes that the callers sent.
    heard: usize,
    /// The lines that the callers got.
    sent: Vec<String>,
}

impl Play {
    fn new(now: Instant) -> Play {
        Play {
            callers: AskConnections::new("ask_user"),
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            known: BTreeSet::new(),
            now,
            heard: 0,
            sent: Vec::new(),
        }
    }

    fn run(&mut self, input: &Input) -> Checked {
        for line in input {
            let line = String::from_utf8_lossy(line);
            let (tag, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let number = number.parse::<u64>().unwrap_or(1) % 8;
            match tag {
                "c" if !self.open.contains_key(&number) => {
                    let (lines_in, lines) = bounded(WAITING);
                    self.open.insert(number, lines);
                    self.hear(AskEvent::Came(number, lines_in))?;
                }
                "<" => {
                    self.heard += text.len();
                    self.hear(AskEvent::Line(number, text.to_owned()))?;
                }
                "t" => self.hear(AskEvent::TooLong(number))?,
                "g" => {
                    self.open.remove(&number);
                    self.hear(AskEvent::Gone(number))?;
                }
                "a" => self.resolve(|callers, call, asks| {
                    let answer = |ask| match ask % 3 {
                        0 => Answer::Text("an \"answer\"\n".into()),
                        1 => Answer::Many(vec!["a".into(), "b".into()]),
                        _ => Answer::Bool(true),
                    };
                    callers.reply(call, &(0..asks).map(|ask| Reply::Answer(answer(ask))).collect::<Vec<_>>());
                }),
                "d" => self.resolve(|callers, call, asks| callers.reply(call, &vec![Reply::Declined(None); asks])),
                "n" => self.resolve(|callers, call, asks| callers.reply(call, &vec![Reply::NoUser; asks])),
                "w" => self.resolve(|callers, call, _| callers.withdraw(call)),
                "p" => {
                    self.now = self.callers.progress_at().unwrap_or(self.now);
                    self.callers.progress(self.now);
                    hold(self.callers.progress_at().is_none_or(|at| at > self.now), "progress is due at once again")?;
                }
                _ => {}
            }
            self.read()?;
        }
        Ok(())
    }

    fn hear(&mut self, event: AskEvent) -> Checked {
        for outcome in self.callers.handle(event, self.now) {
            match outcome {
                AskOutcome::Asked(call, asks) => {
                    hold(self.known.insert(call), "two calls have one number")?;
                    hold((1..=limits::QUESTIONS).contains(&asks.len()), "a call asks nothing, or too much")?;
                    self.calls.insert(call, asks.len());
                }
                AskOutcome::Withdrawn(call) => {
                    hold(self.calls.remove(&call).is_some(), "a call is withdrawn that is not open")?;
                }
                AskOutcome::Came => {}
                AskOutcome::Submitted(_) => return Err("a result comes, although no tool takes one".into()),
            }
        }
        hold(self.calls.len() <= self.open.len() * limits::TOOL_CALLS, "more calls wait than connections may have")
    }

    fn resolve(&mut self, how: impl FnOnce(&mut AskConnections, u64, usize)) {
        if let Some((call, asks)) = self.calls.pop_first() {
            how(&mut self.callers, call, asks);
        }
    }

    /// Reads and checks the lines for the callers. Sometimes the callers do not read, so that their queues fill.
    fn read(&mut self) -> Checked {
        if self.sent.len() % 3 == 2 && self.open.values().all(|lines| lines.len() < WAITING / 2) {
            return Ok(());
        }
        for lines in self.open.values() {
            for line in lines.try_iter() {
                let value: Value = serde_json::from_str(&line).map_err(|e| format!("not JSON: {e}: {line}"))?;
                hold(!line.contains('\n') && value["jsonrpc"] == "2.0", "not one line of JSON-RPC")?;
                hold(line.len() <= OWN_BYTES + FACTOR * self.heard, "a line is longer than its cause")?;
                self.sent.push(line);
            }
        }
        Ok(())
    }
}

fn seeds() -> Vec<Input> {
    let request = |id: Value, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let call = |id: Value, questions: Value| {
        let arguments = json!({"questions": questions});
        request(id, "tools/call", json!({"name": "ask_user", "arguments": arguments, "_meta": {"progressToken": 7}}))
    };
    let options = json!([{"label": "A", "description": "The first."}, "B"]);
    let questions = json!([
        {"question": "Which?", "kind": "select", "header": "Way", "options": options, "default": "A"},
        {"question": "Which ones?", "kind": "multi-select", "options": options, "required": false},
        {"question": "Name?", "kind": "text", "validation": {"min_length": 1, "max_length": 9, "pattern": "^[a-z]+$"}},
        {"question": "Password?", "kind": "secret"},
        {"question": "File?", "kind": "file_path", "validation": {"must_exist": true}},
        {"question": "Sure?", "kind": "confirm", "default": "yes"},
    ]);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "b"}});
    let begin = format!(
        "c 1\n< 1 {}\n< 1 {}",
        request(json!(0), "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})),
        request(json!("l"), "tools/list", json!({})),
    );
    let one = json!({"name": "ask_user", "arguments": {"question": "Q", "kind": "text"}});
    [
        format!(
            "{begin}\n< 1 {}\np\na\n< 1 {}\nd",
            call(json!(1), questions.clone()),
            request(json!(2), "ping", json!({}))
        ),
        format!("{begin}\n< 1 {}\np\np\n< 1 {cancelled}\ng 1", call(json!("b"), questions.clone())),
        format!("c 1\nc 2\n< 1 {0}\n< 2 {0}\nn\nw\nt 2\ng 2", call(json!(1.5), questions)),
        format!("c 1\n< 1 {}\nw\n< 1 not JSON", request(json!(3), "tools/call", one)),
    ]
    .iter()
    .map(|text| from_text(text))
    .collect()
}

#[test]
fn ask_server() {
    let check = |input: &Input| {
        let now = Instant::now();
        let (mut play, mut again) = (Play::new(now), Play::new(now));
        play.run(input)?;
        again.run(input)?;
        hold(play.sent == again.sent && play.calls == again.calls, "the same input gives other lines")
    };
    Target { name: "ask_server", cases: 200, seeds, words: WORDS, check, headed: false }.round();
}

//! Each kind of input costs linear time: twice the input, twice the work.

use crate::inside::play;
use crate::instructions::{count, secrets};
use crate::workload::{Dialect, Events, Step};
use spektacular::protocol::limits;

/// How much more the second doubling may cost than the first. Linear work gives 2, quadratic work 4.
const LIMIT: f64 = 2.5;

/// A kind of input.
struct Kind {
    name: &'static str,
    /// How much of it the first of three runs has; the others have twice and four times as much, up to a limit.
    first: usize,
    /// The run.start and the agent's steps for this much of it.
    make: fn(usize) -> (String, Vec<Step>),
}

const CLAUDE: Dialect = Dialect::Claude;

const KINDS: &[Kind] = &[
    // Longer than what is handled in one piece, so that all three take the same way.
    Kind { name: "the length of a line", first: 300_000, make: |n| say(CLAUDE.lines(Events::Messages(n), 1)) },
    Kind { name: "the length of a line of commands", first: 20_000, make: |n| say(commands(n)) },
    Kind { name: "pieces of a message", first: 2000, make: |n| say(CLAUDE.lines(Events::Deltas, n)) },
    Kind { name: "options of a question", first: limits::OPTIONS / 4, make: |n| say(question(1, n)) },
    Kind { name: "questions of a group", first: limits::QUESTIONS / 4, make: |n| say(question(n, 2)) },
    Kind { name: "open questions", first: 100, make: |n| say((0..n).map(permission).collect()) },
    Kind { name: "open tools", first: 500, make: |n| say(open_tools(n)) },
    Kind { name: "secrets", first: 100, make: |n| (secrets(n), CLAUDE.script(&CLAUDE.lines(Events::Mix, 30))) },
    Kind { name: "unknown fields of run.start", first: 500, make: |n| (fields(n), CLAUDE.script(&plan(1))) },
    Kind { name: "variables of run.start", first: 500, make: |n| (variables(n), CLAUDE.script(&plan(1))) },
    Kind { name: "changed files", first: 300, make: |n| say((0..n).map(written).collect()) },
    Kind { name: "entries of a plan", first: limits::PLAN_ENTRIES / 4, make: |n| say(plan(n).repeat(20)) },
];

fn say(lines: String) -> (String, Vec<Step>) {
    (String::new(), CLAUDE.script(&lines))
}

/// A command of this many words.
fn commands(words: usize) -> String {
    let command = "echo 'a b' && ".repeat(words / 4);
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"c","name":"Bash","input":{{"command":"{command}true"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
    )
}

fn question(questions: usize, options: usize) -> String {
    let options: Vec<String> =
        (0..options).map(|o| format!(r#"{{"label":"Way {o}","description":"Number {o}."}}"#)).collect();
    let one = |number| {
        format!(
            r#"{{"question":"Which way {number}?","header":"Way","multiSelect":false,"options":[{}]}}"#,
            options.join(",")
        )
    };
    let all: Vec<String> = (0..questions).map(one).collect();
    format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{{"questions":[{}]}},"tool_use_id":"c"}}}}
"#,
        all.join(",")
    )
}

fn permission(number: usize) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"r{number}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"touch {number}"}},"tool_use_id":"c{number}"}}}}
"#
    )
}

fn fields(count: usize) -> String {
    (0..count).map(|number| format!(",\"permissionz{number}\":{number}")).collect()
}

fn variables(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"NAME_{number}\":\"value {number}\"")).collect();
    format!(",\"env\":{{{}}}", all.join(","))
}

/// A file that the agent writes.
fn written(number: usize) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"tool_use","id":"c{number}","name":"Write","input":{{"file_path":"/home/user/project/{number}.txt","content":"x"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"c{number}","type":"tool_result","content":"ok"}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
    )
}

/// Tools that all start before the first ends.
fn open_tools(tools: usize) -> String {
    let lines = CLAUDE.lines(Events::Tools, 2 * tools);
    let (starts, ends): (Vec<_>, Vec<_>) = lines.lines().partition(|line| line.contains("tool_use\","));
    [starts, ends].concat().join("\n") + "\n"
}

fn plan(entries: usize) -> String {
    let entry = |number| format!(r#"{{"content":"Step {number}","status":"pending","activeForm":"Doing {number}"}}"#);
    let all: Vec<String> = (0..entries).map(entry).collect();
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"c","name":"TodoWrite","input":{{"todos":[{}]}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#,
        all.join(",")
    )
}

/// Compares the work of three runs of each kind.
fn check(counted: impl Fn(&str, &[Step]) -> u64) {
    let mut steep = Vec::new();
    for Kind { name, first, make } in KINDS {
        let [one, two, four] = [1, 2, 4].map(|times| {
            let (options, steps) = make(first * times);
            counted(&options, &steps)
        });
        let growth = (four as f64 - two as f64) / (two as f64 - one as f64);
        println!("{name}: {one}, {two}, {four}: {growth:.2}");
        if growth > LIMIT {
            steep.push(format!("{name}: {growth:.2}"));
        }
    }
    assert!(steep.is_empty(), "the work grows faster than the input (2 is linear, 4 quadratic): {steep:?}");
}

#[test]
fn allocated_memory_grows_as_the_input_does() {
    check(|options, steps| play(CLAUDE, steps, options, true).work());
}

#[test]
#[ignore = "needs valgrind and a static release build: .ci/run"]
fn instructions_grow_as_the_input_does() {
    // The least of some runs: one that waits long for its agent's processes looks at them more often.
    check(|options, steps| (0..3).map(|_| count(CLAUDE, steps, options).0).min().unwrap());
}

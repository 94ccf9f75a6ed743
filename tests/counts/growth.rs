//! Each kind of input to a run costs linear time: twice the input takes twice the work.

use crate::inside::play;
use crate::instructions::{count, secrets};
use crate::workload::{Dialect, Events, Step};
use spektacular::protocol::limits;
use std::fmt::Write as _;

/// The maximum ratio between the costs of the second and of the first doubling. Linear work gives 2, quadratic work 4.
const LIMIT: f64 = 2.5;

/// A kind of input.
struct Kind {
    name: &'static str,
    dialect: Dialect,
    /// The amount for the first of three runs. The others have twice and four times as much, up to a limit.
    first: usize,
    /// Returns, for an amount, further fields of run.start and the agent's lines.
    make: fn(usize) -> (String, String),
}

const CLAUDE: Dialect = Dialect::Claude;
const CODEX: Dialect = Dialect::Codex;
const ACP: Dialect = Dialect::Acp;

const KINDS: &[Kind] = &[
    // Longer than the part that is handled at once, so that all three runs take the same path.
    claude("the length of a line", 300_000, |n| say(CLAUDE.lines(Events::Messages(n), 1))),
    claude("the length of a line of commands", 20_000, |n| say(commands(n))),
    claude("pieces of a message", 2000, |n| say(CLAUDE.lines(Events::Deltas, n))),
    claude("options of a question", limits::OPTIONS / 4, |n| say(question(1, n))),
    claude("questions of a group", limits::QUESTIONS / 4, |n| say(question(n, 2))),
    claude("open questions", 100, |n| say((0..n).map(permission).collect())),
    claude("open tools", 500, |n| say(open_tools(n))),
    claude("secrets", 100, |n| (secrets(n), CLAUDE.lines(Events::Mix, 30))),
    claude("unknown fields of run.start", 1500, |n| (fields(n), plan(1))),
    claude("variables of run.start", 500, |n| (variables(n), plan(1))),
    claude("changed files", 300, |n| say((0..n).map(written).collect())),
    claude("entries of a plan", limits::PLAN_ENTRIES / 4, |n| say(plan(n).repeat(20))),
    claude("lines of an edit", 1000, |n| say(edit(n))),
    claude("fields of a tool's input", 500, |n| say(asked_with(&input_fields(n)))),
    claude("repeated fields of a tool's input", 500, |n| say(asked_with(&repeated("command", n)))),
    claude("question markers", 2000, |n| say(message(&"<!--QUESTION:{}--> ".repeat(n)))),
    Kind { name: "fields of a call's input", dialect: ACP, first: 500, make: |n| say(acp_permission(n, 1)) },
    Kind { name: "fields and places of a call", dialect: ACP, first: 500, make: |n| say(acp_permission(n, n)) },
    Kind { name: "changes of a call", dialect: ACP, first: 200, make: |n| say(acp_changes(n)) },
    Kind { name: "fields of a form", dialect: ACP, first: limits::QUESTIONS / 4, make: |n| say(form(n)) },
    Kind { name: "files of a patch", dialect: CODEX, first: 200, make: |n| say(patch(n)) },
    Kind {
        name: "repeated fields of an approval",
        dialect: CODEX,
        first: 500,
        make: |n| say(approval(&repeated("networkApprovalContext", n))),
    },
];

const fn claude(name: &'static str, first: usize, make: fn(usize) -> (String, String)) -> Kind {
    Kind { name, dialect: CLAUDE, first, make }
}

fn say(lines: String) -> (String, String) {
    (String::new(), lines)
}

/// A command with this number of words.
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
    (0..count).map(|number| format!(",\"permissionzzz{number}\":{number}")).collect()
}

fn variables(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"NAME_{number}\":\"value {number}\"")).collect();
    format!(",\"env\":{{{}}}", all.join(","))
}

/// A file that the agent writes.
fn written(number: usize) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"tool_use","id":"c{number}","name":"Write","input":{{"file_path":"/home/user/project/{number}.txt","content":"x"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"c{number}","type":"tool_result","content":"ok"}}]}},"tool_use_result":{{"type":"create","filePath":"/home/user/project/{number}.txt"}},"parent_tool_use_id":null,"session_id":"s"}}
"#
    )
}

/// Tools that all start before the first one ends.
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

/// An edit of `lines` lines, which leaves every second line unchanged.
fn edit(lines: usize) -> String {
    let text = |changed: &str| {
        (0..lines).fold(String::new(), |mut text, number| {
            let _ = write!(text, "{number}{}\\n", if number % 2 == 0 { changed } else { "" });
            text
        })
    };
    let input =
        format!(r#""file_path":"/home/user/project/a","old_string":"{}","new_string":"{}""#, text(""), text("x"));
    format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"Edit","input":{{{input}}},"tool_use_id":"c"}}}}
"#
    )
}

fn input_fields(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"field_{number}\":\"/value/{number}\"")).collect();
    all.join(",")
}

fn repeated(field: &str, count: usize) -> String {
    vec![format!("\"{field}\":\"touch a\""); count].join(",")
}

/// A permission question about a call with this input.
fn asked_with(input: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{{input}}},"tool_use_id":"c"}}}}
"#
    )
}

fn message(text: &str) -> String {
    let text = text.replace('"', "\\\"");
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
    )
}

/// A call, and a permission question that gives the call another input.
fn acp_permission(fields: usize, places: usize) -> String {
    let places: Vec<String> = (0..places).map(|number| format!(r#"{{"path":"/place/{number}"}}"#)).collect();
    let call = format!(
        r#""toolCallId":"c","status":"in_progress","title":"Do it","kind":"edit","locations":[{}],"content":[{{"type":"diff","path":"/a","oldText":"a","newText":"b"}}]"#,
        places.join(",")
    );
    let (before, input) = (input_fields(fields), input_fields(fields).replace("field_", "other_"));
    let options = r#"[{"optionId":"once","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]"#;
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call",{call},"rawInput":{{{before}}}}}}}}}
{{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{{call},"rawInput":{{{input}}}}},"options":{options}}}}}
{GOES_ON}"#
    )
}

/// After a denial, an agent that says nothing more gets a further turn, which these agents would not answer.
const GOES_ON: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I go on."}}}}
"#;

fn acp_changes(count: usize) -> String {
    let change =
        |number| format!(r#"{{"type":"diff","path":"/home/user/project/{number}","oldText":"a","newText":"b"}}"#);
    let changes: Vec<String> = (0..count).map(change).collect();
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"c","status":"completed","title":"Do it","kind":"edit","content":[{}]}}}}}}
"#,
        changes.join(",")
    )
}

fn form(fields: usize) -> String {
    let field = |number| format!(r#""field_{number}":{{"type":"string","title":"Field {number}"}}"#);
    let (all, names): (Vec<String>, Vec<String>) =
        (0..fields).map(|number| (field(number), format!("\"field_{number}\""))).unzip();
    format!(
        r#"{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{{"sessionId":"s","mode":"form","message":"Fill in","requestedSchema":{{"type":"object","properties":{{{}}},"required":[{}]}}}}}}
"#,
        all.join(","),
        names.join(",")
    )
}

fn patch(files: usize) -> String {
    let change =
        |number| format!(r#"{{"path":"/home/user/project/{number}","kind":{{"type":"add"}},"diff":"a\nb\n"}}"#);
    let changes: Vec<String> = (0..files).map(change).collect();
    format!(
        r#"{{"method":"item/completed","params":{{"item":{{"type":"fileChange","id":"c","status":"completed","changes":[{}]}},"threadId":"t","turnId":"u"}}}}
"#,
        changes.join(",")
    )
}

fn approval(fields: &str) -> String {
    format!(
        r#"{{"id":"a","method":"item/commandExecution/requestApproval","params":{{"threadId":"t","turnId":"u","itemId":"c","command":"touch a","cwd":"/home/user/project",{fields}}}}}
"#
    )
}

/// Whether the second doubling of an input costs too much. `counted`: the work for the amount, twice the amount, and
/// four times the amount.
pub(crate) fn is_steep(name: &str, counted: [u64; 3]) -> bool {
    let [one, two, four] = counted.map(|work| work as f64);
    let growth = (four - two) / (two - one);
    println!("{name}: {counted:?}: {growth:.2} (2 is linear, 4 quadratic)");
    growth > LIMIT
}

/// Compares the work of three runs of each kind. A kind that looks steep is counted again, in `tries` at most, and the
/// minimum counts: a run that waits long for the agent's processes checks them more often.
#[track_caller]
fn check(tries: usize, counted: impl Fn(Dialect, &str, &[Step]) -> u64) {
    let steep = KINDS.iter().filter(|Kind { name, dialect, first, make }| {
        let mut least = [u64::MAX; 3];
        !(0..tries).any(|_| {
            for (times, least) in [1, 2, 4].iter().zip(&mut least) {
                let (options, lines) = make(first * times);
                *least = counted(*dialect, &options, &dialect.script(&lines)).min(*least);
            }
            !is_steep(name, least)
        })
    });
    let steep: Vec<&str> = steep.map(|kind| kind.name).collect();
    assert!(steep.is_empty(), "the work grows faster than the input: {steep:?}");
}

#[test]
fn allocated_memory_grows_as_the_input_does() {
    check(1, |dialect, options, steps| play(dialect, steps, options, true).work());
}

#[test]
#[ignore = "needs valgrind and a static release build: .ci/run"]
fn instructions_grow_as_the_input_does() {
    check(3, |dialect, options, steps| count(dialect, steps, options, &[]).0);
}

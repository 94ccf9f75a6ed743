//! Questions of a model that has no other way to ask: the server that an agent starts, its conversation with the agent,
//! and the results of its calls.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use serde_json::{Value, json};
use spektacular::protocol::limits;
use support::agent::quote;
use support::machine::not_checked;
use support::{Case, Outcome, Session, limit, read};

/// An ACP agent that opens a session, records how to start the ask-server, and waits until it is told to end its turn.
const AGENT: &str = r#"
recv() { IFS= read -r line || exit 0; printf '%s\n' "$line" >>"$D/stdin"; }
recv; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
recv; printf '%s\n' "$line" >"$D/new.part"; mkfifo "$D/go"; mv "$D/new.part" "$D/new"
printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
recv; cat "$D/go" >/dev/null
printf '%s\n' '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
while recv; do :; done
"#;

/// The parameters of the session that the agent was asked to open.
struct Run {
    session: Session,
    new: Value,
}

impl Run {
    fn start(case: Case, mut payload: Value) -> Run {
        let agent = format!("#!/bin/sh\nD={}\n{AGENT}", quote(&case.path("log").display().to_string()));
        let case = case.program("opencode", &agent);
        payload["agent"] = json!("opencode");
        let mut session = case.spawn();
        session.start(payload);
        session.wait_until("the session", || session.log().path("new").exists());
        let new = serde_json::from_str(&session.log().text("new")).unwrap();
        Run { session, new }
    }

    fn begin(payload: Value) -> Run {
        Run::start(Case::new(), payload)
    }

    fn servers(&self) -> Vec<Value> {
        self.new["params"]["mcpServers"].as_array().unwrap().clone()
    }

    /// The nonce and the path of the socket.
    fn address(&self) -> (String, PathBuf) {
        let address = self.servers()[0]["env"][0]["value"].as_str().unwrap().to_owned();
        let (nonce, path) = address.split_once(':').unwrap();
        (nonce.into(), path.into())
    }

    /// Starts the server as the agent would.
    fn server(&self) -> Server {
        let (nonce, path) = self.address();
        Server::start(&format!("{nonce}:{}", path.display()))
    }

    /// Ends the agent's turn, and with it the run.
    #[track_caller]
    fn finish(self) -> Outcome {
        fs::write(self.session.log().path("go"), "go\n").unwrap();
        let socket = self.address().1;
        let outcome = self.session.finish();
        assert!(!socket.parent().unwrap().exists(), "the socket's folder is left");
        outcome
    }
}

/// A running ask-server.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Server {
    fn start(address: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spektacular"))
            .arg("ask-server")
            .env_clear()
            .env("SPEKTACULAR_ASK", address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let all = stdout.lines().map_while(Result::ok);
            all.map(|line| serde_json::from_str(&line).expect("a line of JSON")).try_for_each(|line| send.send(line))
        });
        let stdin = child.stdin.take();
        Server { child, stdin, lines }
    }

    fn say(&mut self, line: &str) {
        // The end of its output proves that the server has ended.
        let _ = self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes());
    }

    fn hear(&self) -> Value {
        self.lines.recv_timeout(limit()).expect("an answer")
    }

    fn request(&mut self, id: u64, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }

    fn call(&mut self, id: u64, questions: Value) {
        self.request(id, "tools/call", json!({"name": "ask_user", "arguments": {"questions": questions}}));
    }

    /// The entries of a call's result.
    #[track_caller]
    fn answers(&self, id: u64) -> Vec<Value> {
        let line = self.hear();
        assert_eq!((&line["id"], &line["result"]["isError"]), (&json!(id), &json!(false)), "{line}");
        let text: Value = serde_json::from_str(line["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        text["answers"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn hears_an_error(&self, id: u64) {
        let line = self.hear();
        assert_eq!((&line["id"], &line["result"]["isError"]), (&json!(id), &json!(true)), "{line}");
    }

    fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn question(kind: &str) -> Value {
    json!({"question": "What?", "kind": kind, "options": [{"label": "A"}, {"label": "B"}]})
}

#[test]
fn every_kind_is_asked_and_its_answer_goes_back() {
    let mut run = Run::begin(json!({}));
    assert_eq!(run.servers().len(), 1);
    let folder = run.address().1.parent().unwrap().to_owned();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut server = run.server();
    server.request(0, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert_eq!(server.hear()["result"]["protocolVersion"], "2025-06-18");
    server.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    server.request(1, "tools/list", json!({}));
    let tools = server.hear()["result"]["tools"].clone();
    assert_eq!(tools[0]["name"], "ask_user");
    assert_eq!(tools[0]["inputSchema"]["type"], "object");
    let kinds = ["confirm", "select", "multi-select", "text", "secret", "file_path"];
    let values =
        [json!("yes"), json!("b"), json!(["A", 2]), json!("some words"), json!("hush hush 1234"), json!("a/b.txt")];
    server.call(2, kinds.iter().map(|kind| question(kind)).collect());
    for value in &values {
        let asked = run.session.until("run.question");
        assert_eq!(asked.payload()["group_size"], 6);
        run.session.answer(&asked, value.clone());
    }
    let answers: Vec<Value> = server.answers(2).iter().map(|answer| answer["answer"].clone()).collect();
    let expected =
        [json!(true), json!("B"), json!(["A", "B"]), values[3].clone(), values[4].clone(), values[5].clone()];
    assert_eq!(answers, expected);
    let outcome = run.finish();
    outcome.completed();
    assert_eq!(server.wait(), Some(0), "the server ends with its run");
    assert_eq!(outcome.frames[0].payload()["capabilities"]["questions"].as_array().unwrap().len(), 5);
    outcome.never_shows("hush hush 1234");
    assert_eq!(outcome.progress("tool").len(), 0);
}

/// A client of the socket in its working directory: sends the nonce and a ping, and prints the reply.
const CLIENT: &str = r#"
use IO::Socket::UNIX;
my $socket = IO::Socket::UNIX->new(Peer => "s") or die "no connection: $!";
$SIG{PIPE} = "IGNORE";
$socket->autoflush(1);
print $socket "$ARGV[0]\n", '{"jsonrpc":"2.0","id":1,"method":"ping"}', "\n";
print "connected ", scalar(<$socket>) // "";
"#;

#[test]
fn another_user_who_knows_the_nonce_is_not_heard() {
    let other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let works = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !works(&[&other[..], &["perl", "-MIO::Socket::UNIX", "-e", "1"]].concat()) {
        return not_checked("a client of another user", "it needs perl, and setpriv that can change the user");
    }
    let run = Run::begin(json!({}));
    let (nonce, socket) = run.address();
    let folder = socket.parent().unwrap();
    // Normally the folder alone keeps other users out.
    for (path, mode) in [(folder, 0o711), (&socket, 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let said = |user: &[&str]| {
        let words = [user, &["perl", "-e", CLIENT, &nonce]].concat();
        let output = Command::new(words[0]).args(&words[1..]).current_dir(folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&other), "connected ");
    assert!(said(&["env"]).starts_with(r#"connected {"jsonrpc""#), "the same user is not heard");
    run.finish().completed();
}

#[test]
fn a_message_of_1_mib_is_read_and_a_longer_one_is_refused() {
    let run = Run::begin(json!({}));
    let mut server = run.server();
    let ping = |fill: usize| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x".repeat(fill)}}).to_string()
    };
    let longest = limits::TOOL_LINE_BYTES - ping(0).len();
    server.say(&ping(longest));
    assert_eq!(server.hear(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    server.say(&ping(longest + 1));
    let error = json!({"code": -32600, "message": "A message must not be longer than 1 MiB."});
    assert_eq!(server.hear(), json!({"jsonrpc": "2.0", "id": null, "error": error}));
    server.say(&ping(0));
    assert_eq!(server.hear()["id"], 1, "the connection goes on");
    drop(server);
    run.finish().completed();
}

#[test]
fn the_ways_in_which_a_question_stays_unanswered() {
    let plain = question("text");
    let with_default = json!({"question": "What?", "kind": "confirm", "default": "no"});
    let optional = json!({"question": "What?", "kind": "text", "required": false});
    let go_on = json!({"question_timeout_s": 0.2, "on_question_timeout": "continue"});
    // The columns: the question, run.start, whether stdin ends, and the status and answer that the model reads.
    let rows = [
        (&plain, &go_on, false, "timeout", "declined", Value::Null),
        (&with_default, &go_on, false, "timeout", "answered", json!(false)),
        (&optional, &go_on, false, "timeout", "left_open", Value::Null),
        (&with_default, &json!({}), true, "input_closed", "answered", json!(false)),
        (&optional, &json!({}), true, "input_closed", "left_open", Value::Null),
    ];
    for (question, start, eof, resolution, status, answer) in rows {
        let mut run = Run::begin(start.clone());
        let mut server = run.server();
        server.call(1, json!([question]));
        run.session.until("run.question");
        if eof {
            run.session.close_stdin();
        }
        let told = server.answers(1).remove(0);
        assert_eq!((&told["status"], &told["answer"]), (&json!(status), &answer), "{question} {resolution}");
        let outcome = run.finish();
        outcome.completed();
        assert_eq!(outcome.resolutions(), [resolution]);
    }
}

#[test]
fn a_model_can_validate_the_answers() {
    let mut run = Run::begin(json!({}));
    let mut server = run.server();
    let rules = json!({"min": 1, "max": 9, "integer": true});
    server.call(1, json!([{"question": "How many?", "kind": "text", "default": "3", "validation": rules}]));
    let asked = run.session.until("run.question");
    assert_eq!(asked.payload()["validation"], json!({"min": 1.0, "max": 9.0, "integer": true}));
    assert_eq!(asked.payload()["default"], "3");
    run.session.answer(&asked, json!("12"));
    let again = run.session.until("run.question");
    assert_eq!((again.text("error"), &again.payload()["attempt"]), ("The number may be at most 9.", &json!(2)));
    run.session.answer(&again, json!("8"));
    assert_eq!(server.answers(1)[0]["answer"], "8");

    let path = json!({"must_exist": true, "path_type": "file"});
    server.call(2, json!([{"question": "Which file?", "kind": "file_path", "validation": path}]));
    let asked = run.session.until("run.question");
    run.session.answer(&asked, json!("nowhere"));
    let again = run.session.until("run.question");
    fs::write(run.session.case.path("work/here"), "").unwrap();
    run.session.answer(&again, json!("here"));
    assert_eq!(server.answers(2)[0]["answer"], "here");

    // The model receives the error, and the user gets no question.
    server.call(3, json!([question("text"), {"question": "?", "kind": "text", "validation": {"min": 2, "max": 1}}]));
    let line = server.hear();
    let why = line["result"]["content"][0]["text"].as_str().unwrap();
    assert!(line["result"]["isError"] == true && why.starts_with("Question 2: `min` must not be"), "{line}");
    let outcome = run.finish();
    outcome.completed();
    assert_eq!(outcome.of_type("run.question").len(), 4);
}

#[test]
fn a_question_that_fails_the_run_ends_its_call() {
    for (start, eof, code) in
        [(json!({"question_timeout_s": 0.2}), false, "question_timeout"), (json!({}), true, "input_closed")]
    {
        let mut run = Run::begin(start);
        let mut server = run.server();
        server.call(1, json!([question("text")]));
        run.session.until("run.question");
        if eof {
            run.session.close_stdin();
        }
        server.hears_an_error(1);
        run.session.finish().failed(code);
    }
}

#[test]
fn the_agent_learns_of_a_declined_question_and_continues() {
    let mut run = Run::begin(json!({}));
    let mut server = run.server();
    server.call(1, json!([question("text")]));
    let asked = run.session.until("run.question");
    run.session.send("run.input", json!({"question_id": asked.text("question_id"), "declined": true}));
    assert_eq!(server.answers(1)[0]["status"], "declined");
    run.finish().completed();
}

#[test]
fn an_abandoned_call_withdraws_its_questions() {
    type GiveUp = fn(&mut Server);
    let ways: [(&str, GiveUp); 3] = [
        ("cancelled", |server| {
            server.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        }),
        ("the server is told to end", |server| server.stdin = None),
        ("the server dies", |server| server.child.kill().unwrap()),
    ];
    for (way, give_up) in ways {
        let mut run = Run::begin(json!({}));
        let mut server = run.server();
        server.call(1, json!([question("text"), question("confirm")]));
        let asked = run.session.until("run.question");
        run.session.until("run.question");
        run.session.answer(&asked, json!("half of it"));
        run.session.until_progress("question_resolved");
        give_up(&mut server);
        let resolved = run.session.until_progress("question_resolved");
        assert_eq!(resolved.text("resolution"), "withdrawn", "{way}");
        let outcome = run.finish();
        outcome.completed();
        assert_eq!(outcome.resolutions(), ["answered", "withdrawn"], "{way}");
    }
}

#[test]
fn a_cancelled_run_ends_its_calls() {
    let mut run = Run::begin(json!({}));
    let mut server = run.server();
    server.call(1, json!([question("text")]));
    run.session.until("run.question");
    run.session.cancel();
    server.hears_an_error(1);
    let socket = run.address().1;
    let outcome = run.session.finish();
    outcome.cancelled();
    assert_eq!(outcome.resolutions(), ["withdrawn"]);
    assert!(!socket.parent().unwrap().exists());
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn bad_input_is_refused_and_the_next_message_is_heard() {
    let mut run = Run::begin(json!({}));
    let mut server = run.server();
    for (line, code) in [
        ("garbage".to_owned(), -32700),
        ("\u{fffd}\u{0}".to_owned(), -32700),
        ("[1]".to_owned(), -32600),
        (format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20)), -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"prompts/list"}"#.to_owned(), -32601),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"rm"}}"#.to_owned(), -32602),
    ] {
        server.say(&line);
        assert_eq!(server.hear()["error"]["code"], code, "{:.80}", line);
    }
    server.call(1, json!([{"question": "What?", "kind": "rank"}]));
    server.hears_an_error(1);
    // One call more than the limit of waiting calls.
    for id in 2..19 {
        server.call(id, json!([question("confirm")]));
    }
    server.hears_an_error(18);
    for _ in 2..18 {
        run.session.until("run.question");
    }
    server.request(30, "ping", json!({}));
    assert_eq!(server.hear()["id"], 30);
    let outcome = run.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["withdrawn"; 16]);
}

#[test]
fn only_a_caller_with_the_nonce_is_served() {
    let run = Run::begin(json!({}));
    let (nonce, path) = run.address();
    let end = |mut stream: UnixStream| {
        stream.set_read_timeout(Some(limit())).unwrap();
        let mut rest = Vec::new();
        // The connection is reset if unread bytes were left.
        let _ = stream.read_to_end(&mut rest);
        rest
    };
    let wrong = "0".repeat(nonce.len());
    for first in [format!("{wrong}\n"), format!("{nonce} \n"), "{\"id\":1,\"method\":\"ping\"}\n".repeat(9)] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        let _ = stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        assert_eq!(end(stream), b"", "{first:?} was let in");
    }
    // A silent connection does not keep its place forever. A connection that arrives while all places are taken is
    // refused.
    let silent: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let mut ninth = UnixStream::connect(&path).unwrap();
    let _ = ninth.write_all(format!("{nonce}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n").as_bytes());
    assert_eq!(end(ninth), b"");
    silent.into_iter().for_each(|stream| assert_eq!(end(stream), b""));
    let mut server = run.server();
    server.request(1, "ping", json!({}));
    assert_eq!(server.hear()["id"], 1);
    run.finish().completed();
}

#[test]
fn without_a_run_the_server_explains_its_purpose() {
    let start = |address: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spektacular"));
        command.arg("ask-server").env_clear().envs(address.map(|address| ("SPEKTACULAR_ASK", address)));
        command.stdin(Stdio::null()).output().unwrap()
    };
    for address in [None, Some("nothing"), Some("abc:/nowhere/at/all")] {
        let output = start(address);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("spektacular: usage: ") && text.lines().count() == 1, "{text}");
        assert!(!text.contains("nowhere"), "{text}");
    }
}

#[test]
fn a_caller_gets_progress_on_request_while_a_question_waits() {
    let mut run = Run::begin(json!({"heartbeat_s": 0}));
    let mut server = run.server();
    let arguments = json!({"questions": [question("text")]});
    server.request(
        1,
        "tools/call",
        json!({"name": "ask_user", "arguments": arguments, "_meta": {"progressToken": "t"}}),
    );
    let asked = run.session.until("run.question");
    let told = server.hear();
    assert_eq!((&told["method"], &told["params"]["progressToken"]), (&json!("notifications/progress"), &json!("t")));
    run.session.answer(&asked, json!("late"));
    assert_eq!(server.answers(1)[0]["answer"], "late");
    run.finish().completed();
}

#[test]
fn a_secret_answer_is_in_no_recording() {
    let case = Case::new();
    let file = case.path("tmp/run.jsonl");
    let case = case.args(&["--record", &file.display().to_string()]);
    let mut run = Run::start(case, json!({"progress": "full"}));
    let mut server = run.server();
    server.call(1, json!([question("secret")]));
    let asked = run.session.until("run.question");
    run.session.answer(&asked, json!("a-secret-of-mine-42"));
    assert_eq!(server.answers(1)[0]["answer"], "a-secret-of-mine-42");
    let outcome = run.finish();
    outcome.never_shows("a-secret-of-mine-42");
    assert!(read(&file).contains("session/new"));
    assert!(!read(&file).contains("a-secret-of-mine-42"));
}

#[test]
fn the_tool_is_offered_only_where_somebody_can_answer_and_the_name_is_free() {
    let mut headless = Run::begin(json!({"interactive": false}));
    assert_eq!(headless.servers(), Vec::<Value>::new());
    fs::write(headless.session.log().path("go"), "go\n").unwrap();
    headless.session.until("run.completed");
    let taken = Run::begin(json!({"mcp_servers": [{"name": "Spektacular", "command": "x", "required": false}]}));
    assert_eq!(taken.servers().len(), 1);
    assert_eq!(taken.servers()[0]["args"][2], "x");
    fs::write(taken.session.log().path("go"), "go\n").unwrap();
    let outcome = taken.session.finish();
    assert_eq!(outcome.warnings("unsupported_option").len(), 1);
    assert!(fs::read_dir(outcome.case().path("tmp")).unwrap().next().is_none(), "a folder is left");
}

#[test]
fn nothing_is_left_when_the_program_is_killed() {
    let mut run = Run::begin(json!({}));
    let mut server = run.server();
    server.call(1, json!([question("text")]));
    run.session.until("run.question");
    let folder = run.address().1.parent().unwrap().to_owned();
    assert!(folder.exists());
    run.session.signal(Signal::KILL);
    run.session.wait_exit();
    assert_eq!(server.wait(), Some(0), "the server ends when its run is gone");
    let gone = |folder: &Path| !folder.exists();
    run.session.wait_until("the folder to go", || gone(&folder));
}

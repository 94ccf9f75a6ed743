//! The clients that `spektacular protocol client` prints, copied out and run as an author of an orchestrator would.
//! `.ci/run` checks their types and runs the one in TypeScript.

use crate::support::Case;
use crate::support::machine::not_checked;
use serde_json::Value;
use spektacular::protocol::publish::{Client, Language};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");

/// Whether Python is missing, as on a machine with only the Rust toolchain.
fn lacks_python(what: &str) -> bool {
    let lacks = Command::new("python3").arg("--version").output().is_err();
    if lacks {
        not_checked(what, "python3 is not installed");
    }
    lacks
}

/// A folder with both clients in Python, a script, and this program on PATH.
fn project(script: &str) -> (Case, Command) {
    let case = Case::new()
        .link("bin/spektacular", PROGRAM)
        .file("app/spektacular.py", &Client::Python.file())
        .file("app/spektacular_asyncio.py", &Client::PythonAsyncio.file())
        .file("app/script.py", script);
    let mut command = case.command("python3");
    command
        .arg(case.path("app/script.py"))
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", case.path("bin").display()))
        .env("PYTHONUNBUFFERED", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    (case, command)
}

const PYTHON: [Client; 2] = [Client::Python, Client::PythonAsyncio];

/// The example in the header of a client in Python.
fn example(client: Client) -> String {
    let file = client.file();
    let header = file.split("\"\"\"").nth(1).unwrap();
    let lines = header.lines().skip_while(|line| !line.starts_with("    "));
    lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The scenarios of the demo agent, each with the frame that ends it.
fn scenarios() -> Vec<(String, &'static str)> {
    let listed = Case::new().run(&["demo", "list", "--output", "json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let names = listed["scenarios"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
    names
        .map(|name| {
            let end = match name.as_str() {
                "crash" | "error-401" | "error-429" => "run.failed",
                "hang" => "run.cancelled",
                _ => "run.completed",
            };
            (name, end)
        })
        .collect()
}

#[test]
fn the_clients_are_short_and_import_nothing_foreign() {
    for client in Client::ALL {
        let file = client.file();
        let types = file.find(Language::TypeScript.types()).or_else(|| file.find("\nPolicy = ")).unwrap();
        assert!(file[..types].lines().count() < 250, "{client:?}");
        for line in file.lines().filter(|line| line.starts_with("from ") || line.starts_with("import ")) {
            let own = [
                "__future__",
                "asyncio",
                "collections",
                "json",
                "os",
                "queue",
                "subprocess",
                "sys",
                "threading",
                "time",
                "typing",
                "node:",
            ];
            assert!(own.iter().any(|name| line.contains(name)), "{line}");
        }
    }
}

#[test]
fn the_example_in_the_header_answers_and_completes() {
    if lacks_python("the example of the client in Python") {
        return;
    }
    for client in PYTHON {
        let (case, mut command) = project(&example(client));
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(b"Long\nallow_once\n").unwrap();
        let done = running.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && err.is_empty(), "{out}{err}");
        assert!(out.contains("? How shall I greet you?") && out.trim_end().ends_with("run.completed"), "{out}");
        assert!(case.path("work/hello.md").exists());
    }
}

#[test]
fn the_example_in_the_header_is_cancelled_by_an_interrupt() {
    if lacks_python("an interrupt of the client in Python") {
        return;
    }
    // A shell starts a job in the background with SIGINT ignored, and Python would keep that.
    let heeds = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n";
    let (_case, mut command) = project(&format!("{heeds}{}", example(Client::Python)));
    let mut running = command.spawn().unwrap();
    // Open until the end: a person who does not answer.
    let _typed = running.stdin.take();
    let mut seen = Vec::new();
    for line in BufReader::new(running.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("? ") {
            let id = rustix::process::Pid::from_child(&running);
            rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        }
        seen.push(line);
    }
    assert!(running.wait().unwrap().success(), "{seen:?}");
    assert_eq!(seen.last().map(|line| line.trim()), Some("run.cancelled"), "{seen:?}");
}

#[test]
fn the_client_plays_every_scenario() {
    if lacks_python("the client in Python with every scenario") {
        return;
    }
    for script in ["every_scenario.py", "every_scenario_asyncio.py"] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/protocol").join(script);
        let (_case, mut command) = project(&std::fs::read_to_string(script).unwrap());
        let scenarios = scenarios();
        let done = command.args(scenarios.iter().map(|(name, _)| name)).stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let wanted: Vec<String> = scenarios.iter().map(|(name, end)| format!("{name} {end}")).collect();
        assert_eq!(out.lines().collect::<Vec<_>>(), wanted, "{err}");
        assert!(done.status.success(), "{err}");
    }
}

#[test]
fn the_client_ends_in_every_fault() {
    if lacks_python("faults of the client in Python") {
        return;
    }
    // Each line of output is about one fault.
    let script = r#"
import os, signal
from spektacular import Died, Run

start = {"agent": "demo", "prompt": "go"}
try:
    with Run(start, command=["false"]) as run:
        run.wait()
except Died:
    print("died")
def fail(question):
    raise ValueError("callback")
try:
    with Run(start, fail) as run:
        run.wait()
except ValueError as error:
    print(error)
with Run(start, lambda question: None) as run:
    for frame in run:
        if frame["type"] == "run.question":
            break
print("left")
with Run(start, lambda question: None) as run:
    for frame in run:
        if frame["type"] == "run.question":
            run.reply(frame["payload"]["question_id"], {"declined": True})
print(run.wait()["type"])
try:
    with Run({"agent": "demo:hang", "prompt": "go"}) as run:
        for frame in run:
            if frame["type"] == "run.progress" and frame["payload"]["kind"] == "text":
                os.kill(run.process.pid, signal.SIGKILL)
except Died:
    print("killed")
with Run({"agent": "demo:hang", "prompt": "go"}) as run:
    next(run)
for _ in range(2):
    try:
        run.wait()
    except Died as error:
        print(error)
for start in ({"agent": "demo", "prompt": object()}, {"agent": "demo", "prompt": "go"}):
    try:
        with Run(start, lambda question: {"valeu": "Short"}) as run:
            run.wait()
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
with Run({"agent": "nobody", "prompt": "go"}, run_id="mine.1") as run:
    last = run.wait()
    print(last["payload"]["code"], last["run_id"])
"#;
    let with_asyncio = r#"
import asyncio, os, signal
from spektacular_asyncio import Died, Run

async def silent(question):
    return None
async def wrong(question):
    return {"valeu": "Short"}
async def main():
    start = {"agent": "demo", "prompt": "go"}
    try:
        async with Run(start, command=["false"]) as run:
            await run.wait()
    except Died:
        print("died")
    async def fail(question):
        raise ValueError("callback")
    try:
        async with Run(start, fail) as run:
            await run.wait()
    except ValueError as error:
        print(error)
    async with Run(start, silent) as run:
        async for frame in run:
            if frame["type"] == "run.question":
                break
    print("left")
    async with Run(start, silent) as run:
        async for frame in run:
            if frame["type"] == "run.question":
                await run.reply(frame["payload"]["question_id"], {"declined": True})
    print((await run.wait())["type"])
    try:
        async with Run({"agent": "demo:hang", "prompt": "go"}) as run:
            async for frame in run:
                if frame["type"] == "run.progress" and frame["payload"]["kind"] == "text":
                    os.kill(run.process.pid, signal.SIGKILL)
    except Died:
        print("killed")
    async with Run({"agent": "demo:hang", "prompt": "go"}) as run:
        await run.__anext__()
    for _ in range(2):
        try:
            await run.wait()
        except Died as error:
            print(error)
    for start in ({"agent": "demo", "prompt": object()}, {"agent": "demo", "prompt": "go"}):
        try:
            async with Run(start, wrong) as run:
                await run.wait()
        except (TypeError, ValueError) as error:
            print(type(error).__name__)
    async with Run({"agent": "nobody", "prompt": "go"}, run_id="mine.1") as run:
        last = await run.wait()
        print(last["payload"]["code"], last["run_id"])
asyncio.run(main())
"#;
    let closed = "the run was closed before its terminal frame";
    let wanted = ["died", "callback", "left", "run.completed", "killed", closed, closed, "TypeError", "ValueError"];
    let wanted = [&wanted[..], &["invalid_request mine.1"]].concat();
    for script in [script, with_asyncio] {
        let (_case, mut command) = project(script);
        let done = command.stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(out.lines().collect::<Vec<_>>(), wanted, "{err}");
    }
}

#[test]
fn the_client_passes_every_dialogue_of_the_check() {
    if lacks_python("the client in Python under protocol check") {
        return;
    }
    for client in [
        include_str!("../../../testdata/protocol/checked_client.py"),
        include_str!("../../../testdata/protocol/checked_client_asyncio.py"),
    ] {
        let (case, _) = project(client);
        let script = case.path("app/script.py");
        let did = case.run(&["protocol", "check", "--timeout", "60", "--", "python3", script.to_str().unwrap()]);
        assert_eq!(did.code, Some(0), "{}{}", did.out, did.err);
        assert!(did.out.ends_with("The client made no mistakes.\n") && !did.out.contains("skipped"), "{}", did.out);
    }
}

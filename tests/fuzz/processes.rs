//! The real program with agents that print mutated recordings, blank, huge and broken lines included, as a run, as a
//! conversation and as `acp`. Two properties hold: the process ends within its limit, and nothing panics.
//!
//! This takes all the time of a long round, because it mostly waits.

use super::input::{Input, bytes, from_text};
use super::mutate::mutate;
use super::playback::case::{self, Directive};
use super::rng::Rng;
use super::round::{Checked, settings};
use super::support::{Case, io, limit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use spektacular::protocol::failure::EXIT_UNDELIVERED;
use spektacular::recording::Moment;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The number of inputs of each way in a short round.
const CASES: u64 = 3;
/// The exit code after a panic.
const INTERNAL_ERROR: i32 = 70;
/// The agents: one of each dialect.
const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "cmd"];
/// An agent's behavior after its output: it ends, it waits for the end of its stdin, or it hangs.
const ENDS: [&str; 3] = ["exit 0", "exec cat >/dev/null", "exec sleep 1000"];
const BROKEN: [&[u8]; 3] = [b"< W\xef\x86", b"< \x89In", b"< \xff"];

/// The way to drive the program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Run,
    Conversation,
    Acp,
}

/// The messages and the output of a recorded case. Here they need no order between them.
fn recorded(case: &case::Case) -> Input {
    let heard = case.script.iter().filter_map(|directive| match directive {
        Directive::Send(text) => Some(format!("> {text}")),
        Directive::Await(_) | Directive::Eof | Directive::Signal => None,
    });
    let said = case.recording.moments.iter().filter_map(|(_, moment)| match moment {
        Moment::Agent(line) => Some(format!("< {line}")),
        _ => None,
    });
    heard.chain(said).map(String::into_bytes).collect()
}

/// Lines that no recording has.
fn add_hostile(input: &mut Input, rng: &mut Rng) {
    for _ in 0..rng.below(4) {
        let at = rng.below(input.len() + 1);
        let lines: Input = match rng.below(3) {
            0 => vec![b"< ".to_vec(); 1 + rng.below(2000)],
            1 => vec![[b"< ".to_vec(), vec![b'x'; rng.below(4 << 20)]].concat()],
            _ => BROKEN.iter().map(|line| line.to_vec()).collect(),
        };
        input.splice(at..at, lines);
    }
}

/// The lines with this tag.
fn tagged(input: &Input, tag: &[u8]) -> Input {
    input.iter().filter_map(|line| line.strip_prefix(tag)).map(<[u8]>::to_vec).collect()
}

/// The first messages of a client of `acp` or of an orchestrator.
fn beginning(way: Way, agent: &str) -> String {
    let start = json!({"prompt": "go", "agent": agent, "timeout_s": 1, "conversation": way == Way::Conversation});
    let request =
        |id: u64, method: &str, params| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    match way {
        Way::Run | Way::Conversation => format!("{}\n", json!({"v": "1", "type": "run.start", "payload": start})),
        Way::Acp => {
            let new = request(2, "session/new", json!({"cwd": "/tmp", "mcpServers": []}));
            format!("{}\n{new}\n", request(1, "initialize", json!({"protocolVersion": 1})))
        }
    }
}

/// A prompt for the session that the program has opened, by its answer.
fn prompt(answers: &str) -> Option<String> {
    let (_, rest) = answers.split_once("\"sessionId\":\"")?;
    let prompt = json!([{"type": "text", "text": "go"}]);
    let params = json!({"sessionId": rest.split_once('"')?.0, "prompt": prompt});
    Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params})))
}

fn check(way: Way, input: &Input, rng: &mut Rng) -> Checked {
    let config = json!({"agents": {"cmd": {"driver": "lines", "command": "cmd"}}});
    let mut case = Case::new().file("home/.config/spektacular/config.json", &config.to_string());
    let output = case.path("output");
    fs::write(&output, bytes(&tagged(input, b"< "))).expect("the agent's output");
    let script =
        format!("[ \"$1\" != --version ] || exit 1\nread -r line\ncat '{}'\n{}", output.display(), rng.pick(&ENDS));
    for agent in AGENTS {
        case = case.script(&format!("bin/{agent}"), &script);
    }
    let agent = *rng.pick(&AGENTS);
    let words: &[&str] = if way == Way::Acp { &["acp", "--agent", agent] } else { &["adhoc", "--output", "json"] };
    let mut command = case.other("work", words);
    let answers = case.path("answers");
    let file = fs::File::create(&answers).expect("a file for the answers");
    let command = command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::null());
    let mut child = command.spawn().expect("spektacular");
    let mut stdin = child.stdin.take().expect("a pipe");
    // The program may have ended already.
    let _ = stdin.write_all(beginning(way, agent).as_bytes());
    let mut first = None;
    if way == Way::Acp {
        io::wait_for(limit(), || {
            first = fs::read_to_string(&answers).ok().as_deref().and_then(prompt);
            first.is_some()
        });
    }
    let rest = [first.unwrap_or_default().into_bytes(), bytes(&tagged(input, b"> ")), b"\n".to_vec()].concat();
    let _ = stdin.write_all(&rest);
    if rng.once_in(3) {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    // `acp` ends with its input.
    let kept = (way != Way::Acp && rng.once_in(2)).then_some(stdin);
    let status = io::exit(&mut child, limit());
    drop(kept);
    match status {
        None => {
            let _ = child.kill();
            Err("it does not end".into())
        }
        Some(status) if status.code() == Some(INTERNAL_ERROR) => Err("a panic".into()),
        // Its stdout is a file, which takes everything at once.
        Some(status) if status.code() == Some(EXIT_UNDELIVERED.into()) => Err("only the backstop ends it".into()),
        Some(_) => Ok(()),
    }
}

#[track_caller]
fn round(way: Way) {
    let (seed, seconds) = settings();
    let began = Instant::now();
    let time = seconds.map(Duration::from_secs);
    let inputs: Vec<Input> = case::all().iter().map(recorded).chain([from_text("> {}\n< {}")]).collect();
    let mut number = 0;
    while time.map_or(number < CASES, |time| began.elapsed() < time) {
        let mut rng = Rng::new(seed.wrapping_add(number));
        let mut input = mutate(rng.pick(&inputs), &inputs, &[], &mut rng);
        add_hostile(&mut input, &mut rng);
        if let Err(why) = check(way, &input, &mut rng) {
            let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-found-processes");
            fs::write(&file, bytes(&input)).expect("a file for the input");
            panic!("{way:?}: {why}. FUZZ_SEED={seed}, case {number}; the input is in {}", file.display());
        }
        number += 1;
    }
    println!("{way:?}: {number} processes, FUZZ_SEED={seed}");
}

#[test]
fn a_run_ends_whatever_its_agent_prints() {
    round(Way::Run);
}

#[test]
fn a_conversation_ends_whatever_its_agent_prints() {
    round(Way::Conversation);
}

#[test]
fn acp_ends_whatever_its_client_and_its_agent_print() {
    round(Way::Acp);
}

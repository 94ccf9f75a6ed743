//! Compares every recording of a real agent with its expected frames: through the library, where time and order are
//! exact, and again through the program with a replay as the agent.

use crate::length::by_length;
use crate::playback;

use playback::case::{self, Case};
use playback::player::Player;
use playback::{invariants, normal, process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const HINT: &str =
    "If this is what it should be: UPDATE_GOLDEN=1 cargo test --test suite golden, and read the difference.";

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Reports all differences, not only the first.
#[track_caller]
pub(crate) fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n{} wrong. {HINT}", wrong.join("\n"), wrong.len());
}

#[test]
fn recordings_give_the_expected_frames() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1");
    let wrong: Vec<String> = case::all().iter().filter_map(|case| check(case, update).err()).collect();
    report(&wrong);
}

fn check(case: &Case, update: bool) -> Result<(), String> {
    let named = |why: String| format!("{}: {why}", case.name);
    let mut player = Player::play(case).map_err(named)?;
    invariants::world(&mut player.world).map_err(named)?;
    let got: String = player.world.frames.iter().map(|frame| normal::normal(&frame.line) + "\n").collect();
    if update {
        fs::write(case.expected_path(), &got).map_err(|e| named(e.to_string()))?;
    }
    let expected = case.expected();
    if got == expected {
        return Ok(());
    }
    Err(named(format!("the frames differ:\n{}", normal::difference(&lines(&expected), &lines(&got)))))
}

/// Every case, or every fourth in the short form.
///
/// The program reads the agent's lines and the orchestrator's answers as they come: a line that the agent writes
/// without waiting may be taken before or after an answer. That changes the order of frames and nothing else, so
/// the lists are compared sorted; that ids have no gap is one of the invariants.
#[test]
fn the_program_gives_the_same_frames() {
    let cases: Vec<Case> = case::all().into_iter().step_by(by_length(4, 1)).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = check_program(case) {
                        wrong.lock().unwrap().push(format!("{}: {why}", case.name));
                    }
                }
            });
        }
    });
    report(&wrong.into_inner().unwrap());
}

fn check_program(case: &Case) -> Result<(), String> {
    let played = process::play(case)?;
    let code = played.code.and_then(|code| u8::try_from(code).ok());
    invariants::frames(&played.frames, code)?;
    let recorded = case.recording.header.cwd.as_deref().unwrap_or_default();
    let sorted = |all: Vec<String>| -> Vec<String> {
        let mut all = all;
        all.sort();
        all
    };
    let cwd = played.cwd.to_string_lossy();
    let comparable = |line: &str| normal::comparable(line, &cwd, recorded);
    let mut got = sorted(played.frames.iter().map(|frame| comparable(&frame.line)).collect());
    let expected = sorted(case.expected().lines().map(comparable).collect());
    // A played agent starts no MCP server, and the program warns of one that is missing at the end.
    let is_missing = |line: &String| line.contains(r#""code":"mcp_unavailable""#);
    if !expected.iter().any(is_missing) {
        got.retain(|line| !is_missing(line));
    }
    if got != expected {
        return Err(format!("the frames differ:\n{}", normal::difference(&expected, &got)));
    }
    let terminal = &played.frames[played.frames.len() - 1].value;
    let line = match terminal["payload"]["code"].as_str() {
        Some(code) => format!("spektacular: {code}: {}\n", terminal["payload"]["message"].as_str().unwrap_or_default()),
        None => String::new(),
    };
    if played.stderr == line { Ok(()) } else { Err(format!("stderr is {:?}, not {line:?}", played.stderr)) }
}

/// Every key of version 1. A new key must first be added to the reference.
const KEYS: &str = "\
    abi action add_dirs agent agent_args agent_exit agent_message agent_version allow_other allowed_tools artifact_id artifacts \
    attempt background cached_input_tokens call_id capabilities category checkpoint_id checkpoints code commands completion_detected completion_marker config context_tokens context_window conversation \
    cost_usd count cwd default deltas denied description detail diff disallowed_tools display_name done duration_ms effort entries \
    env_allow error exit_code fail_on_denied failure fallback files final_text first fork git group_id group_size header heartbeat_s hint http_status id idle_s idle_timeout_s images input input_tokens \
    integer interactive kind label limit line locations max max_cost_usd max_frame_bytes max_length max_selected \
    max_tokens max_tool_calls max_turns max_wait_s mcp_servers message message_id metadata min min_length min_selected minor mode model multiple must_exist name new old \
    on_question_timeout on_rate_limit on_unsupported options origin outcome output output_tokens parent_call_id path path_type pattern payload permissions \
    progress prompt_id prompt_timeout_s protocol purpose question_id question_markers question_timeout_s questions raw_prompt read reason reply_to \
    required resolution resume retry_at retryable rewind run_id sandbox secrets session_id signal signals size_bytes sockets source spektacular start_timeout_s \
    state status steer stderr_tail stop_reason structured_output subject supported system_prompt_mode text timeout_s title tool_timeout_s \
    truncated ts turn turn_timeout_s turns type unanswered undo updated_input usage used_default v validation value version waiting_on withdrawn write";

/// Every key in the frames belongs to the protocol, for every agent.
#[test]
fn frames_hold_only_keys_of_the_protocol() {
    let mut seen = BTreeSet::new();
    for case in case::all() {
        for line in case.expected().lines() {
            collect(&serde_json::from_str(line).unwrap(), &mut seen);
        }
    }
    let known: BTreeSet<&str> = KEYS.split_whitespace().collect();
    let foreign: Vec<&String> = seen.iter().filter(|key| !known.contains(key.as_str())).collect();
    assert!(foreign.is_empty(), "keys that are not the protocol's: {foreign:?}");
    assert!(seen.len() > known.len() / 2, "the recordings show only {} keys", seen.len());
}

/// All keys, except for those inside values from the orchestrator.
fn collect(value: &Value, seen: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                seen.insert(key.clone());
                if !["metadata", "structured_output", "permissions", "input"].contains(&key.as_str()) {
                    collect(value, seen);
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, seen)),
        _ => {}
    }
}

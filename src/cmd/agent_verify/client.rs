//! The client of `agents verify`: it plays a row with the agent in a place of its own, and knows only the protocol.

use super::rows::{ANSWER, AT_WORK, Further, SeenRun, VerifyRow};
use crate::agent::Program;
use crate::agent::endpoint::Endpoint;
use crate::agent::registry::{Agent, Agents};
use crate::json::to_line;
use crate::process::own_run::{AloneRun, start_alone};
use crate::protocol::failure::{Code, Failure};
use crate::scripted_model::{ModelScenario, ScriptedModel};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const RUN_S: u64 = 300;
const START_S: u64 = 120;
/// The time until a command that was allowed runs, and the pause between two looks for it.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

struct Place {
    work: PathBuf,
    env: Vec<(String, OsString)>,
}

pub(super) fn play(row: &VerifyRow, agent: &Agent, endpoint: &Endpoint, folder: &Path) -> io::Result<SeenRun> {
    let work = folder.join(row.name.word()).join("work");
    let scenario = ModelScenario::parse(row.scenario).map_err(io::Error::other)?.of_main_agent();
    let model = ScriptedModel::start(endpoint.wire, scenario, work.clone())?;
    let place = furnish(work, agent, endpoint, &model.url())?;
    let mut payload: Value = serde_json::from_str(row.start).map_err(io::Error::other)?;
    payload["agent"] = json!(agent.name);
    payload["timeout_s"] = json!(RUN_S);
    payload["start_timeout_s"] = json!(START_S);
    let other = endpoint.model.filter(|_| row.further == Further::Model);
    if let Some((name, _)) = other {
        payload["model"] = json!(name);
    }
    payload["prompt"] = json!("Do the next part of the work.");
    let mut seen = place.talk(row, &payload)?;
    if row.further == Further::Resume && seen.0.last().is_some_and(|end| end["type"] == "run.completed") {
        payload["session_id"] = seen.0.last().map(|end| end["payload"]["session_id"].clone()).unwrap_or_default();
        seen = place.talk(row, &payload)?;
    }
    let (frames, left) = seen;
    Ok(SeenRun {
        frames,
        work: place.work,
        left,
        heard: model.heard(),
        wire: endpoint.wire,
        model: other.map(|(_, part)| part),
    })
}

fn furnish(work: PathBuf, agent: &Agent, endpoint: &Endpoint, url: &str) -> io::Result<Place> {
    let (home, tmp) = (work.with_file_name("home"), work.with_file_name("tmp"));
    for folder in [&work, &home, &tmp] {
        fs::create_dir_all(folder)?;
    }
    let home_text = home.to_string_lossy();
    let put = |path: &str, text: &str| {
        let path = home.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text))
    };
    for (path, text) in endpoint.files {
        put(path, &Endpoint::fill(text, url, &home_text))?;
    }
    if let Some(entry) = own_entry(agent) {
        put(".config/spektacular/config.json", &to_line(&json!({"agents": {&agent.name: entry}})))?;
    }
    let kept = ["PATH", "USER", "LANG", "TERM"].iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let own = [
        ("HOME", home.clone().into_os_string()),
        ("TMPDIR", tmp.into_os_string()),
        // Requests to other hosts reach the model, which refuses them.
        ("HTTP_PROXY", url.into()),
        ("HTTPS_PROXY", url.into()),
        ("NO_PROXY", "127.0.0.1,localhost".into()),
    ];
    let settings = endpoint.env.iter().map(|(name, value)| (*name, Endpoint::fill(value, url, &home_text).into()));
    let env = kept.chain(own).chain(settings).map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Place { work, env })
}

/// The command of an agent whose entry the user changed.
fn own_entry(agent: &Agent) -> Option<Value> {
    let built_in = Agents::built_in();
    let same = built_in
        .find(&agent.name)
        .is_some_and(|own| own.base.program == agent.base.program && own.base.args == agent.base.args);
    match &agent.base.program {
        Program::Command(command) if !same => Some(json!({"command": command, "args": agent.base.args})),
        Program::Command(_) | Program::Myself => None,
    }
}

impl Place {
    /// Returns the frames, and the number of processes that the run left behind.
    fn talk(&self, row: &VerifyRow, start: &Value) -> io::Result<(Vec<Value>, usize)> {
        let mut run = start_alone(&self.work, &self.env)?;
        let mut lines = BufReader::new(run.take_stdout()?);
        tell(&mut run, "run.start", start);
        let mut frames = Vec::new();
        let mut line = String::new();
        let mut cancels = row.further == Further::Cancel;
        while lines.read_line(&mut line)? > 0 {
            let frame: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
            line.clear();
            if frame["type"] == "run.question" {
                tell(&mut run, "run.input", &answer(row, &frame["payload"]));
            }
            if cancels && frame["payload"]["category"] == "execute" {
                cancels = false;
                self.wait_for_the_command();
                tell(&mut run, "run.cancel", &json!({}));
            }
            frames.push(frame);
        }
        Ok((frames, run.wait()))
    }

    /// Its file is its only sign.
    fn wait_for_the_command(&self) {
        let until = Instant::now() + COMMAND_LIMIT;
        while !self.work.join(AT_WORK).exists() && Instant::now() < until {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// A run that has ended reads none.
fn tell(run: &mut AloneRun, kind: &str, payload: &Value) {
    let line = to_line(&json!({"v": "1", "type": kind, "payload": payload})) + "\n";
    let _ = run.stdin().map(|stdin| stdin.write_all(line.as_bytes()));
}

fn answer(row: &VerifyRow, question: &Value) -> Value {
    let value = if question["purpose"] == "permission" { row.permission } else { ANSWER };
    json!({"question_id": question["question_id"], "value": value})
}

pub(super) fn not_played(error: &io::Error) -> Failure {
    Failure::new(Code::ResourceExhausted, format!("A check could not be run: {}.", error.kind()))
}

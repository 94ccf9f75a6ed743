//! A whole run as one input: each line is a step of the orchestrator or the agent.
//!
//! | line | step |
//! |---|---|
//! | `= {…}` | the first line: the configuration of the agents |
//! | `> …` | a line on stdin; `$q1` stands for the id of the first question |
//! | `< …` | a line of the agent's stdout |
//! | `+ 500` | this many milliseconds pass |
//! | `x 0` | the agent's process exits with this code |
//! | `e`, `k`, `t`, `o` | stdin ends, SIGTERM comes, a line of the agent's is too long, stdout is closed |

use super::input::Input;
use super::playback::case::{Case, Directive, agents_of, with_ids};
use super::playback::invariants;
use super::playback::player::Player;
use super::playback::world::{Sent, World, exited, killed};
use super::rng::Rng;
use super::round::Checked;
use serde_json::Value;
use spektacular::engine::Host;
use spektacular::protocol::inbound::parse;
use spektacular::protocol::request::Options;
use spektacular::recording::Moment;
use spektacular::run::Event;
use std::time::Duration;

/// The maximum number of deadlines in one step. After that, time stops.
const DEADLINES: usize = 50;

/// Converts a recorded case to an input.
pub(crate) fn of_case(case: &Case) -> Input {
    let mut player = Player::new(case, Options::default());
    let mut lines = vec![format!("= {}", case.config().unwrap_or("{}".into()).replace('\n', " "))];
    let mut now = Duration::ZERO;
    let mut left = player.script.len();
    player.begin().expect("a case begins with run.start");
    player.world.spawn();
    let acted = |player: &Player<'_>, left: &mut usize, lines: &mut Vec<String>| {
        let done = case.script.len() - player.script.len();
        for directive in &case.script[case.script.len() - *left..done] {
            match directive {
                Directive::Send(text) => lines.push(format!("> {text}")),
                Directive::Eof => lines.push("e".into()),
                Directive::Signal => lines.push("k".into()),
                Directive::Await(_) => {}
            }
        }
        *left = player.script.len();
    };
    acted(&player, &mut left, &mut lines);
    for (index, (at, moment)) in case.recording.moments.iter().enumerate() {
        let wait = at.saturating_sub(now).as_millis();
        if wait > 0 {
            lines.push(format!("+ {wait}"));
        }
        now = now.max(*at);
        player.moment(index).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        acted(&player, &mut left, &mut lines);
        match moment {
            Moment::Agent(line) => lines.push(format!("< {line}")),
            Moment::Exit(code) => lines.push(format!("x {code}")),
            Moment::Signal(signal) => lines.push(format!("x {}", 128 + signal)),
            _ => {}
        }
    }
    lines.into_iter().map(String::into_bytes).collect()
}

/// Plays an input to the end of its run.
struct Play {
    world: World,
    ids: Vec<String>,
    /// The number of frames that were already searched for questions.
    seen: usize,
    sent: Vec<Sent>,
    /// Whether the agent speaks JSON.
    json: bool,
}

impl Play {
    fn new(input: &Input) -> Play {
        let head = input.first().map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
        let config = head.strip_prefix("= ").and_then(|text| serde_json::from_str::<Value>(text).ok());
        let config = config.unwrap_or_default();
        let world = World::new("/home/user/project", Options::default(), agents_of(&config));
        Play { world, ids: Vec::new(), seen: 0, sent: Vec::new(), json: config["agents"].is_null() }
    }

    fn run(&mut self, input: &Input) -> Checked {
        for line in input {
            let (tag, rest) = line.split_at(line.len().min(2));
            self.step(tag, rest)?;
            self.after()?;
        }
        self.end()
    }

    fn step(&mut self, tag: &[u8], rest: &[u8]) -> Checked {
        let number = || String::from_utf8_lossy(rest).trim().parse::<i32>().unwrap_or(1);
        match tag {
            b"> " => {
                let line = match std::str::from_utf8(rest) {
                    Ok(text) if text.contains("$q") => with_ids(text, &self.ids).into_bytes(),
                    _ => rest.to_vec(),
                };
                parse(&line).into_iter().for_each(|message| self.world.conductor().inbound(message));
                // Takes the frames.
                self.world.spawn();
            }
            b"< " if self.world.host_mut().has_process => self.world.line(&String::from_utf8_lossy(rest)),
            b"t" if self.world.host_mut().has_process => self.world.too_long(),
            b"+ " => {
                let now = self.world.host_mut().now();
                self.pass(now + Duration::from_millis(number().unsigned_abs().into()))?;
            }
            b"x " => self.world.gone(exited(number()), ""),
            b"e" => self.world.step(Event::InputEnded),
            b"k" => self.world.signal(),
            b"o" if !self.world.run().is_waiting() => self.world.step(Event::OutputLost),
            _ => {}
        }
        Ok(())
    }

    /// Advances the time, and handles every deadline on the way.
    fn pass(&mut self, until: Duration) -> Checked {
        let mut idle = 0;
        for _ in 0..DEADLINES {
            let Some(due) = self.world.run().next_deadline().filter(|due| *due <= until) else {
                self.world.at(until);
                return Ok(());
            };
            let (now, traces) = (self.world.host_mut().now(), self.world.traces());
            self.world.tick(due);
            let still = self.world.host_mut().now() == now && self.world.traces() == traces;
            idle = if still { idle + 1 } else { 0 };
            if idle > 3 {
                return Err(format!("the run wakes at {due:?} again and again"));
            }
        }
        Ok(())
    }

    /// Follows every step: starts the agent, reads the lines for it, and numbers the questions.
    fn after(&mut self) -> Checked {
        self.world.spawn();
        for sent in std::mem::take(&mut self.world.host_mut().sent) {
            if let Sent::Line(line) = &sent
                && self.json
            {
                serde_json::from_str::<serde::de::IgnoredAny>(line)
                    .map_err(|e| format!("sent no JSON: {e}: {line}"))?;
            }
            self.sent.push(sent);
        }
        for frame in &self.world.frames[self.seen..] {
            let payload = &frame.value["payload"];
            if frame.value["type"] == "run.question" && payload["attempt"] == 1 {
                self.ids.extend(payload["question_id"].as_str().map(str::to_owned));
            }
        }
        self.seen = self.world.frames.len();
        Ok(())
    }

    /// The agent exits. If that does not end the run, a person kills it.
    fn end(&mut self) -> Checked {
        if self.world.run().is_waiting() {
            self.world.step(Event::InputEnded);
        }
        self.world.gone(exited(0), "");
        self.after()?;
        for _ in 0..3 {
            if !self.world.is_over() {
                self.world.signal();
                self.after()?;
                self.world.gone(killed(9), "");
            }
        }
        if self.world.is_over() { Ok(()) } else { Err("the run does not end".into()) }
    }
}

/// The run ends, its frames follow the protocol, and a second run of the same input gives the same bytes.
pub(crate) fn check(input: &Input) -> Checked {
    let mut play = Play::new(input);
    play.run(input)?;
    invariants::world(&mut play.world)?;
    if Rng::of(&input.concat()).once_in(4) {
        let mut again = Play::new(input);
        again.run(input)?;
        let same = play.world.frames.iter().map(|frame| &frame.line).eq(again.world.frames.iter().map(|f| &f.line));
        if !same || play.sent != again.sent {
            return Err("the same input gives other bytes".into());
        }
    }
    Ok(())
}

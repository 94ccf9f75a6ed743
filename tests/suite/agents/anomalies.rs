//! Replays every recording of a real agent with a fault before a sample of its moments. Each run is driven to its end in
//! simulated time. The invariants of every run hold, and the outcome follows the protocol.

use crate::length::by_length;
use crate::playback;

use playback::case::{self, Case};
use playback::invariants;
use playback::normal::difference;
use playback::player::{Obeys, Player};
use playback::world::{Frame, exited, killed};
use spektacular::protocol::failure::EXIT_UNDELIVERED;
use spektacular::protocol::inbound::{Addressee, Flaw};
use spektacular::protocol::request::{Options, Seconds};
use spektacular::protocol::words::Source;
use spektacular::recording::Moment;
use spektacular::run::{Event, Origin, StopSignal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::Instant;

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anomaly {
    /// A cancel. The agent then writes nothing more.
    Cancel(Obeys),
    /// A cancel. The agent continues with its recorded lines.
    CancelIgnored,
    /// The agent exits with this code or by this signal.
    Death { code: Option<i32>, signal: Option<i32> },
    /// The agent writes nothing more.
    Silence(Obeys),
    /// timeout_s passes, and the agent writes nothing more.
    Deadline,
    /// stdout is closed, and the agent writes nothing more.
    OutputLost,
    /// A signal arrives, and the agent writes nothing more.
    Signal,
    /// Two signals arrive, and the agent writes nothing more.
    TwoSignals,
    /// A message of another version arrives, and the agent writes nothing more.
    OtherVersion,
    /// The agent cannot be started.
    SpawnFails,
    /// stdin ends, and the recording continues.
    InputEnds,
    /// The agent writes an invalid line, and the recording continues.
    Garbage,
    /// The agent writes a line that is too long, and the recording continues.
    TooLong,
    /// The agent writes a blank line, and the recording continues.
    Blank,
    /// An invalid line arrives on stdin, and the recording continues.
    Malformed,
    /// A message of an unknown type arrives, and the recording continues.
    UnknownType,
}

/// The time of the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    BeforeStart,
    BeforeSpawn,
    /// Before this moment of the recording.
    Moment(usize),
}

/// A run with an anomaly.
struct Trial<'a> {
    case: &'a Case,
    /// The frames of the recording without the fault.
    golden: &'a [Frame],
    anomaly: Anomaly,
    when: When,
}

/// The known facts at the time of the fault.
#[derive(Default)]
struct Before {
    frames: usize,
    decided: bool,
    alive: bool,
    /// Whether the session is open.
    opened: bool,
    /// Whether a question was declined. An agent that exits without a result after that may have needed the answer.
    declined: bool,
}

impl Anomaly {
    /// Whether the fault can happen at that time.
    fn fits(self, when: When) -> bool {
        match self {
            Anomaly::SpawnFails => when == When::BeforeSpawn,
            Anomaly::Death { .. }
            | Anomaly::Silence(_)
            | Anomaly::Deadline
            | Anomaly::Garbage
            | Anomaly::TooLong
            | Anomaly::Blank => {
                matches!(when, When::Moment(_))
            }
            _ => true,
        }
    }

    /// The code of the one warning that such a run has in addition to the recorded frames.
    fn warning(self) -> Option<&'static str> {
        match self {
            Anomaly::Garbage | Anomaly::TooLong => Some("agent_output_unparsed"),
            Anomaly::Malformed => Some("malformed_message"),
            Anomaly::UnknownType => Some("unknown_type"),
            _ => None,
        }
    }

    /// The type or the failure codes that fit the end of a run whose outcome was not known before.
    fn ends(self, when: When, before: &Before, plain: bool) -> &'static [&'static str] {
        match self {
            // The exit code decides, and a turn that ended well may have asked.
            Anomaly::Death { code: Some(0), .. } if plain => &[],
            Anomaly::Death { code: Some(_), .. } if plain => &["agent_error"],
            // The run waits for no first line.
            Anomaly::Silence(_) if plain => &["idle_timeout", "question_timeout"],
            Anomaly::Cancel(_) | Anomaly::CancelIgnored | Anomaly::Signal | Anomaly::TwoSignals => &["run.cancelled"],
            Anomaly::Death { signal: Some(_), .. } => &["agent_exited"],
            Anomaly::Death { .. } if before.opened => &["agent_exited"],
            Anomaly::Death { .. } => &["agent_exited", "agent_start_failed"],
            Anomaly::Silence(_) if before.alive && before.opened => &["idle_timeout", "question_timeout"],
            // An agent that answers the request for its session at once has not started before that.
            Anomaly::Silence(_) if before.alive => &["idle_timeout", "question_timeout", "start_timeout"],
            Anomaly::Silence(_) => &["start_timeout"],
            Anomaly::Deadline => &["timeout", "question_timeout"],
            Anomaly::OutputLost => &["internal_error"],
            Anomaly::OtherVersion => &["unsupported_version"],
            Anomaly::SpawnFails => &["agent_start_failed"],
            Anomaly::InputEnds if when == When::BeforeStart => &["no_start"],
            Anomaly::Malformed if when == When::BeforeStart => &["invalid_message"],
            // The outcome depends on the recording.
            _ => &[],
        }
    }

    /// Whether the fault happens to a process.
    fn is_of_process(self) -> bool {
        matches!(self, Anomaly::Death { .. } | Anomaly::Garbage | Anomaly::TooLong | Anomaly::Blank)
    }

    /// Whether an agent that is a command treats the line as normal text.
    fn is_text_of_a_command(self) -> bool {
        matches!(self, Anomaly::Garbage | Anomaly::Blank)
    }

    /// Whether the run asks nobody any more.
    fn stops(self) -> bool {
        let before = Before { alive: true, opened: true, ..Before::default() };
        !matches!(self.ends(When::BeforeSpawn, &before, false), [] | ["idle_timeout", ..])
    }
}

impl Trial<'_> {
    /// Whether a conversation is idle between two turns, as it may be.
    fn is_silence_between_turns(&self, player: &Player<'_>) -> bool {
        let mut frames = player.world.frames.iter().rev();
        let status = frames.find_map(|frame| frame.value["payload"]["status"].as_str());
        matches!(self.anomaly, Anomaly::Silence(_)) && status == Some("waiting_for_prompt")
    }

    fn run(&self) -> Result<(), String> {
        let mut player = Player::new(self.case, self.options());
        if self.when != When::BeforeStart {
            player.begin()?;
        }
        if let When::Moment(index) = self.when {
            player.world.spawn();
            (0..index).try_for_each(|index| player.moment(index))?;
        }
        if self.anomaly.is_of_process() && self.when != When::BeforeStart && !player.world.host_mut().has_process {
            // The fault needs a process, and none runs at this moment.
            return Ok(());
        }
        let before = Before {
            frames: player.world.frames.len(),
            decided: player.world.is_decided() || self.is_silence_between_turns(&player),
            // Warnings about options, and the status `starting`, come before the process runs.
            alive: matches!(self.when, When::Moment(_))
                && player.world.frames.iter().skip(1).any(|frame| {
                    let payload = &frame.value["payload"];
                    payload["kind"] != "warning" && payload["status"] != "starting"
                }),
            opened: player.world.frames.iter().any(|frame| frame.value["payload"]["kind"] == "session"),
            declined: player.world.frames.iter().any(|frame| frame.value["payload"]["resolution"] == "declined"),
        };
        self.inject(&mut player);
        let open = invariants::open_questions(&player.world.frames);
        if self.stops() && self.anomaly != Anomaly::Deadline && !open.is_empty() {
            return Err(format!("questions that are not withdrawn at once: {open:?}"));
        }
        let exact = self.go_on(&mut player)?;
        if self.anomaly == Anomaly::OutputLost && self.when == When::BeforeStart {
            let told = player.world.frames.is_empty() && player.world.run().exit_code() == Some(EXIT_UNDELIVERED);
            return told.then_some(()).ok_or("nothing can be told without stdout, but by the exit code".into());
        }
        invariants::world(&mut player.world)?;
        self.check_end(&player, &before)?;
        if exact { self.check_frames(&player.world.frames) } else { Ok(()) }
    }

    /// Whether the run asks no more questions. A command with exit code 0 completed its turn, so its questions are asked.
    fn stops(&self) -> bool {
        let well = self.case.is_plain() && matches!(self.anomaly, Anomaly::Death { code: Some(0), .. });
        self.anomaly.stops() && !well
    }

    fn options(&self) -> Options {
        let moments = &self.case.recording.moments;
        match (self.anomaly, self.when) {
            // Just after the moment, so that the earlier moments play unchanged.
            (Anomaly::Deadline, When::Moment(index)) => {
                let limit = (moments[index].0 - moments[0].0).as_secs_f64() + 0.0005;
                Options { timeout_s: Some(Seconds(limit)), ..Options::default() }
            }
            // A long silence needs only a few heartbeats.
            (Anomaly::Silence(_), _) => Options { heartbeat_s: Some(Seconds(120.0)), ..Options::default() },
            _ => Options::default(),
        }
    }

    fn inject(&self, player: &mut Player<'_>) {
        let origin = || Origin { id: Some("anomaly".into()), run: Addressee::Unnamed };
        let world = &mut player.world;
        match self.anomaly {
            Anomaly::Cancel(_) | Anomaly::CancelIgnored => {
                world.step(Event::Cancel(origin(), Some("Enough.".into()), Source::Orchestrator));
            }
            Anomaly::Death { code: Some(code), .. } => world.gone(exited(code), ""),
            Anomaly::Death { signal, .. } => world.gone(killed(signal.unwrap_or(9)), ""),
            Anomaly::Signal => world.signal(),
            Anomaly::TwoSignals => {
                world.signal();
                world.signal();
                let killed = world.host_mut().stops.iter().any(|(_, signal)| *signal == StopSignal::Kill);
                assert!(killed || world.is_over(), "a second signal skips to the kill");
            }
            Anomaly::OutputLost => world.step(Event::OutputLost),
            Anomaly::OtherVersion => world.step(Event::Unsupported(origin())),
            Anomaly::SpawnFails => world.fail_to_spawn(),
            Anomaly::InputEnds => world.step(Event::InputEnded),
            Anomaly::Garbage => world.line("Segmentation fault {\"type\":"),
            Anomaly::TooLong => world.too_long(),
            Anomaly::Blank => ["", "\r", " \t "].into_iter().for_each(|blank| world.line(blank)),
            Anomaly::Malformed => world.step(Event::Malformed(Origin::default(), Flaw::Form)),
            Anomaly::UnknownType => world.step(Event::UnknownType(origin(), "Ignored a message".into())),
            Anomaly::Silence(_) | Anomaly::Deadline => {}
        }
    }

    /// Drives the run to its end. Returns true if it may differ from the recording only by a warning.
    fn go_on(&self, player: &mut Player<'_>) -> Result<bool, String> {
        let exact = match self.anomaly {
            Anomaly::Cancel(obeys) | Anomaly::Silence(obeys) => {
                self.be_silent(player, obeys);
                return Ok(false);
            }
            Anomaly::CancelIgnored => false,
            Anomaly::InputEnds => {
                let acts = player.will_act();
                player.hush();
                let waits = |frame: &Frame| frame.value["payload"]["resolution"] == "timeout";
                !acts && !self.golden.iter().any(waits)
            }
            // These lines count as the agent's first line, perhaps for an agent that wrote no other.
            Anomaly::TooLong | Anomaly::Blank => {
                self.case.recording.moments.iter().any(|(_, m)| matches!(m, Moment::Agent(_)))
            }
            _ if self.anomaly.warning().is_some() => true,
            _ => {
                self.be_silent(player, Obeys::Kill);
                return Ok(false);
            }
        };
        if player.world.is_over() {
            return Ok(false);
        }
        if self.when == When::BeforeStart {
            player.begin()?;
        }
        let from = match self.when {
            When::Moment(index) => index,
            _ => {
                player.world.spawn();
                0
            }
        };
        if exact {
            (from..self.case.recording.moments.len()).try_for_each(|index| player.moment(index))?;
            player.finish()?;
        } else {
            player.hush();
            player.agent_goes_on(from);
        }
        Ok(exact)
    }

    fn be_silent(&self, player: &mut Player<'_>, obeys: Obeys) {
        if self.when == When::BeforeSpawn {
            player.world.spawn();
        }
        player.hush();
        if self.is_silence_between_turns(player) {
            // Nothing else ends a conversation in which everybody is silent.
            player.world.step(Event::InputEnded);
        }
        player.agent_is_silent(obeys);
    }

    /// The terminal frame fits, and once the run is being stopped it asks nobody.
    fn check_end(&self, player: &Player<'_>, before: &Before) -> Result<(), String> {
        let frames = &player.world.frames;
        let terminal = &frames[frames.len() - 1].value;
        let asked = frames[before.frames..].iter().find(|frame| frame.value["type"] == "run.question");
        if let Some(frame) = asked.filter(|_| self.stops()) {
            return Err(format!("a question after the end was decided: {}", frame.line));
        }
        let (kind, code) = (&terminal["type"], &terminal["payload"]["code"]);
        if before.decided {
            let golden = &self.golden[self.golden.len() - 1].value;
            let same = *kind == golden["type"] && *code == golden["payload"]["code"];
            // Only a message of another version fails a run at any time, even after its result.
            let failed_late = self.anomaly == Anomaly::OtherVersion && golden["type"] == "run.completed";
            if failed_late && code == "unsupported_version" {
                return Ok(());
            }
            return if same { Ok(()) } else { Err(format!("an outcome that was decided changed to {terminal}")) };
        }
        let ends = self.anomaly.ends(self.when, before, self.case.is_plain());
        let left = matches!(self.anomaly, Anomaly::Death { code: Some(_), .. }) && before.declined;
        let fits = ends.is_empty() || ends.iter().any(|end| kind == end || code == end);
        let fits = fits || (left && code == "question_declined");
        if fits { Ok(()) } else { Err(format!("the run should end with one of {ends:?}, not {terminal}")) }
    }

    /// The frames are those of the recording plus the warning of the fault.
    fn check_frames(&self, frames: &[Frame]) -> Result<(), String> {
        let (mut got, golden) = (unnumbered(frames), unnumbered(self.golden));
        if let Some(code) = self.anomaly.warning() {
            let code = format!("\"code\":\"{code}\"");
            let at = got.iter().position(|line| line.contains(&code) && !golden.contains(line));
            got.remove(at.ok_or_else(|| format!("no warning with {code}"))?);
        }
        // The first line of a silent agent shows that it works, and that it has other words than those on its stderr.
        let works = |line: &String| line.contains(r#""status":"running""#);
        let golden = match self.anomaly {
            Anomaly::Garbage if !golden.iter().any(works) => {
                got.retain(|line| !works(line));
                golden.iter().map(|line| without_stderr(line)).collect()
            }
            _ => golden,
        };
        if got == golden { Ok(()) } else { Err(difference(&golden, &got)) }
    }
}

/// A frame without the end of the agent's stderr, the last field of a failure's `detail`.
fn without_stderr(line: &str) -> String {
    match line.split_once(",\"stderr_tail\":\"") {
        Some((before, tail)) => before.to_owned() + tail.split_once('"').map_or(tail, |(_, after)| after),
        None => line.to_owned(),
    }
}

/// The frames without their ids and times, sorted. A further frame changes the ids, and an early first line changes a
/// time.
fn unnumbered(frames: &[Frame]) -> Vec<String> {
    let without = |line: &str| match (line.find(",\"id\""), line.find(",\"type\"")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &line[..from], &line[to..]),
        _ => line.to_owned(),
    };
    let mut all: Vec<String> = frames.iter().map(|frame| without(&frame.line)).collect();
    all.sort();
    all
}

/// Each case, and its frames without a fault.
static PLAYED: LazyLock<Vec<(Case, Vec<Frame>)>> = LazyLock::new(|| {
    let played = |case: Case| {
        let frames = Player::play(&case).unwrap_or_else(|why| panic!("{}: {why}", case.name)).world.frames;
        (case, frames)
    };
    case::all().into_iter().map(played).collect()
});

/// A fault comes before one moment in this number: in the short form, and in the long one.
const SAMPLE: usize = 20;
const LONG_SAMPLE: usize = 12;

/// Runs a fault at the places of every recording. `number`: the row of the fault, so that the short forms of all faults
/// together have one at every place.
fn everywhere(number: usize, anomaly: Anomaly) {
    let step = by_length(SAMPLE, LONG_SAMPLE);
    let began = Instant::now();
    let (mut runs, mut places, mut wrong) = (0, 0, Vec::new());
    for (at, (case, golden)) in PLAYED.iter().enumerate() {
        let moments = case.recording.moments.len();
        places += match anomaly {
            Anomaly::SpawnFails => 1,
            _ if anomaly.is_text_of_a_command() && case.is_plain() => 0,
            _ => moments / step,
        };
        let sample = ((number + at) % step..moments).step_by(step);
        let all = [When::BeforeStart, When::BeforeSpawn].into_iter().chain(sample.map(When::Moment));
        for when in all.filter(|when| anomaly.fits(*when)) {
            if anomaly.is_text_of_a_command() && case.is_plain() {
                continue;
            }
            let trial = Trial { case, golden, anomaly, when };
            let result = catch_unwind(AssertUnwindSafe(|| trial.run())).unwrap_or_else(|_| Err("it panicked".into()));
            wrong.extend(result.err().map(|why| format!("{}, {anomaly:?}, {when:?}: {why}", case.name)));
            runs += 1;
        }
    }
    eprintln!("{anomaly:?}: {runs} runs in {:.1?}", began.elapsed());
    let shown = wrong.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {runs} are wrong:\n{shown}", wrong.len());
    assert!(runs >= places, "{runs} runs for {places} places");
}

macro_rules! anomalies {
    ($($name:ident: $anomaly:expr;)*) => {
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "the names of the tests")]
        enum Row { $($name),* }
        $(#[test] fn $name() { everywhere(Row::$name as usize, $anomaly); })*
    };
}

anomalies! {
    cancel_until_the_kill: Anomaly::Cancel(Obeys::Kill);
    cancel_that_the_agent_obeys: Anomaly::Cancel(Obeys::InputEnd);
    cancel_that_the_agent_ignores: Anomaly::CancelIgnored;
    death_with_an_error: Anomaly::Death { code: Some(1), signal: None };
    death_without_an_error: Anomaly::Death { code: Some(0), signal: None };
    death_by_a_signal: Anomaly::Death { code: None, signal: Some(11) };
    silence_until_the_kill: Anomaly::Silence(Obeys::Kill);
    silence_until_the_term: Anomaly::Silence(Obeys::Terminate);
    silence_until_the_end_of_input: Anomaly::Silence(Obeys::InputEnd);
    deadline: Anomaly::Deadline;
    stdout_is_closed: Anomaly::OutputLost;
    signal: Anomaly::Signal;
    second_signal: Anomaly::TwoSignals;
    message_of_another_version: Anomaly::OtherVersion;
    agent_cannot_be_started: Anomaly::SpawnFails;
    stdin_ends: Anomaly::InputEnds;
    garbage_from_the_agent: Anomaly::Garbage;
    endless_line_from_the_agent: Anomaly::TooLong;
    blank_lines_from_the_agent: Anomaly::Blank;
    malformed_message: Anomaly::Malformed;
    message_of_an_unknown_type: Anomaly::UnknownType;
}

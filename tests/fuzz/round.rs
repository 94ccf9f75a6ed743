//! One round of a target: first the corpus, then random mutations of it, each checked against the target's properties. A
//! failing input is minimized and printed with everything needed to reproduce it.
//!
//! By default a round is short and deterministic. `FUZZ_SECONDS` sets the total time of all targets, and `FUZZ_SEED` the
//! seed of a long round, which otherwise comes from the clock.

use super::input::{self, Input};
use super::mutate::{Pump, mutate};
use super::rng::Rng;
use allocation_counter::measure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The seed of a short round.
const SEED: u64 = 1;
/// The number of targets that share the time of a long round: the callers of [`Target::round`], and the search for
/// secrets.
const TARGETS: u32 = 18;
/// One input in `GROWN` is also grown, to measure how its cost grows.
const GROWN: usize = 50;
/// The growth of an input in the first of three measurements, in bytes.
const GROWTH: usize = 16 << 10;
/// The maximum factor by which the cost may rise when the growth doubles.
const LIMIT: u64 = 3;
/// The maximum number of attempts to make a failing input smaller.
const TRIES: usize = 3000;

#[test]
fn the_time_is_shared_by_all_targets() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let files = std::fs::read_dir(folder).expect("tests/fuzz").map(|entry| entry.expect("a file").path());
    let texts = files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).expect("a text"));
    let rounds: usize = texts.map(|text| text.lines().filter(|line| line.ends_with(".round();")).count()).sum();
    assert_eq!(TARGETS as usize, rounds + 1);
}

pub(crate) type Checked = Result<(), String>;

/// The subject of fuzzing.
pub(crate) struct Target {
    /// The name of the target's folder in the corpus.
    pub(crate) name: &'static str,
    /// The number of random inputs in a short round.
    pub(crate) cases: u64,
    /// Inputs in addition to the corpus.
    pub(crate) seeds: fn() -> Vec<Input>,
    /// Whole lines to insert.
    pub(crate) words: &'static [&'static str],
    /// Checks the properties. Its random choices depend on the input alone.
    pub(crate) check: fn(&Input) -> Checked,
    /// Whether the first line determines how the others are read. Mutations leave such a line unchanged.
    pub(crate) headed: bool,
}

/// The source of an input.
#[derive(Clone, Copy)]
struct Case {
    seed: u64,
    number: u64,
}

/// The seed of a round, and the seconds of a long one.
pub(crate) fn settings() -> (u64, Option<u64>) {
    let seconds = number("FUZZ_SECONDS");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(SEED, |time| time.as_nanos() as u64);
    let seed = number("FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { clock() } else { SEED });
    (seed, seconds)
}

/// The time of one target in a long round.
pub(crate) fn share(seconds: u64) -> Duration {
    Duration::from_secs(seconds) / TARGETS
}

#[track_caller]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number")))
}

impl Target {
    /// Runs a round, and fails with the first failing input.
    pub(crate) fn round(&self) {
        let (seed, seconds) = settings();
        let began = Instant::now();
        let time = seconds.map(share);
        let mut inputs = Vec::new();
        for (name, input) in input::corpus(self.name) {
            if let Err(why) = self.holds(&input) {
                panic!("testdata/corpus/{}/{name}: {why}", self.name);
            }
            inputs.push(input);
        }
        inputs.extend((self.seeds)());
        assert!(inputs.iter().any(|input| !input.is_empty()), "{} has nothing to begin with", self.name);
        println!("{}: {} inputs, FUZZ_SEED={seed}", self.name, inputs.len());
        let (mut number, mut grown) = (0, 0);
        while time.map_or(number < self.cases, |time| began.elapsed() < time) {
            let case = Case { seed, number };
            number += 1;
            let mut rng = self.rng(case);
            let input = self.mutated(&inputs, &mut rng);
            self.keep(&input);
            if let Err(why) = self.holds(&input) {
                self.fail(case, &input, &why);
            }
            if rng.once_in(GROWN) {
                grown += 1;
                let original = rng.pick(&inputs).clone();
                let pump = Pump::of(&original, usize::from(self.headed), &mut rng);
                if let Err(why) = self.grows_linearly(&original, &pump) {
                    self.fail(case, &pump.grown(&original, GROWTH), &why);
                }
            }
        }
        let spent = began.elapsed().as_secs_f64();
        println!("{}: {number} cases, {grown} grown, {:.0} a second", self.name, number as f64 / spent);
    }

    fn rng(&self, case: Case) -> Rng {
        let mut rng = Rng::of(self.name.as_bytes());
        Rng::new(rng.next() ^ Rng::new(case.seed).next().wrapping_add(case.number))
    }

    fn mutated(&self, inputs: &[Input], rng: &mut Rng) -> Input {
        let mut input = rng.pick(inputs).clone();
        let head: Input = input.drain(..usize::from(self.headed && !input.is_empty())).collect();
        head.into_iter().chain(mutate(&input, inputs, self.words, rng)).collect()
    }

    /// Checks the properties, and that nothing panics.
    fn holds(&self, input: &Input) -> Checked {
        catch_unwind(AssertUnwindSafe(|| (self.check)(input))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        })
    }

    /// Compares the costs of once, twice and four times the growth. An input may cross one limit, where its cost jumps,
    /// but not two in a row.
    fn grows_linearly(&self, input: &Input, pump: &Pump) -> Checked {
        let mut costs = Vec::new();
        for times in [1, 2, 4] {
            let grown = pump.grown(input, GROWTH * times);
            self.keep(&grown);
            let mut held = Ok(());
            let counted = measure(|| held = self.holds(&grown));
            held?;
            costs.push(counted.count_total * 64 + counted.bytes_total);
        }
        let steep = costs.windows(2).all(|pair| pair[1] > pair[0] * LIMIT);
        if steep { Err(format!("its cost grows faster than its size: {costs:?} for {pump:?}")) } else { Ok(()) }
    }

    fn file(&self, what: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{what}-{}", self.name))
    }

    /// Saves an input before its check, which may abort this process or never end.
    fn keep(&self, input: &Input) {
        std::fs::write(self.file("last"), input::bytes(input)).expect("a file for the last input");
    }

    #[track_caller]
    fn fail(&self, case: Case, input: &Input, why: &str) -> ! {
        let (small, why) = self.smaller(input, why.to_owned());
        let file = self.file("found");
        let mut bytes = input::bytes(&small);
        bytes.push(b'\n');
        std::fs::write(&file, bytes).expect("a file for the input");
        let shown: String = input::text(&small).chars().take(4000).collect();
        panic!(
            "{why}\ntarget {}, FUZZ_SEED={}, case {}, as small as it gets:\n{shown}\nKeep it once it is mended: \
             cp {} testdata/corpus/{}/NAME",
            self.name,
            case.seed,
            case.number,
            file.display(),
            self.name
        );
    }

    /// Minimizes a failing input: removes lines, then parts of lines. Returns the input and its failure.
    fn smaller(&self, input: &Input, why: String) -> (Input, String) {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let (mut best, mut why, mut tries) = (input.clone(), why, 0);
        let mut improve = |best: &mut Input, smaller: Input, why: &mut String| {
            tries += 1;
            let failed = (tries <= TRIES).then(|| self.holds(&smaller).err()).flatten();
            failed.is_some_and(|reason| {
                (*best, *why) = (smaller, reason);
                true
            })
        };
        let mut size = best.len().div_ceil(2);
        while size > 0 {
            let mut at = usize::from(self.headed);
            while at < best.len() {
                let mut smaller = best.clone();
                smaller.drain(at..(at + size).min(best.len()));
                if !improve(&mut best, smaller, &mut why) {
                    at += size;
                }
            }
            size /= 2;
        }
        for line in usize::from(self.headed)..best.len() {
            let mut size = best[line].len() / 2;
            while size > 0 {
                let mut at = 0;
                while at < best[line].len() {
                    let mut smaller = best.clone();
                    smaller[line].drain(at..(at + size).min(best[line].len()));
                    if !improve(&mut best, smaller, &mut why) {
                        at += size;
                    }
                }
                size /= 2;
            }
        }
        std::panic::set_hook(hook);
        (best, why)
    }
}

//! Measures runs in which the agent writes as fast as it can.

use crate::beside::{by_bare_loop, by_cat};
use crate::measured::{Cost, median, program, run};
use crate::scripted::Scripted;
use crate::table::Table;
use crate::workload::{Dialect, Events};
use std::fs::File;
use std::process::Stdio;

/// The output of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Json,
    /// JSON with a recording.
    Record,
    /// Terminal mode, with both streams in files.
    Terminal,
}

struct Workload {
    name: &'static str,
    dialect: Dialect,
    events: Events,
    count: usize,
    /// Further fields of run.start.
    options: String,
    way: Way,
    times: usize,
}

const MILLION: usize = 1_000_000;

/// The workload that the others differ from.
fn usual(count: usize, times: usize) -> Workload {
    Workload {
        name: "small events",
        dialect: Dialect::Claude,
        events: Events::Mix,
        count,
        options: String::new(),
        way: Way::Json,
        times,
    }
}

/// All measurements.
fn workloads(quick: bool) -> Vec<Workload> {
    let (some, times) = if quick { (20_000, 3) } else { (100_000, 5) };
    let usual = || usual(some, times);
    let full = || r#","progress":"full""#.to_owned();
    let mut all = vec![
        Workload { name: "one event", count: 1, times: 5 * times, ..usual() },
        usual(),
        Workload { name: "small events of Codex", dialect: Dialect::Codex, ..usual() },
        Workload { name: "small events of ACP", dialect: Dialect::Acp, ..usual() },
        Workload { name: "small events, 5 secrets", options: secrets(5), ..usual() },
        Workload { name: "small events, 50 secrets", options: secrets(50), ..usual() },
        Workload { name: "small events, progress full", options: full(), ..usual() },
        Workload { name: "small events, --record", way: Way::Record, ..usual() },
        Workload { name: "small events, terminal mode to files", way: Way::Terminal, ..usual() },
        Workload { name: "tools", events: Events::Tools, ..usual() },
        Workload { name: "pieces of a message", events: Events::Deltas, options: full(), ..usual() },
        Workload { name: "a line of 10 MB", events: Events::Messages(10_000_000), count: 1, ..usual() },
    ];
    if !quick {
        let long = Events::Messages(100_000_000);
        all.push(Workload { name: "a line of 100 MB, above the limit", events: long, count: 1, times: 3, ..usual() });
        all.push(Workload { name: "a million small events", count: MILLION, times: 3, ..usual() });
    }
    all
}

/// `count` secrets that the agent never says.
fn secrets(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"secret-number-{number}-{}\"", number * 7919)).collect();
    format!(r#","secrets":[{}]"#, all.join(","))
}

/// Measures every workload, each run next to the reference programs. The table shows medians.
pub(crate) fn measure(table: &Table, quick: bool) {
    let columns = ["events", "us/event", "CPU us/event", "bare loop us", "cat us", "% of bare", "peak KiB"];
    table.heading("streams", &columns);
    for workload in workloads(quick) {
        let runs = measured(&workload);
        let each = 1e6 / workload.count as f64;
        let of = |pick: &dyn Fn(&[Cost; 3]) -> f64| median(runs.iter().map(pick).collect());
        let numbers = [
            workload.count as f64,
            of(&|run| run[0].wall * each),
            of(&|run| run[0].cpu * each),
            of(&|run| run[1].wall * each),
            of(&|run| run[2].wall * each),
            of(&|run| 100.0 * run[1].wall / run[0].wall),
            of(&|run| run[0].peak),
        ];
        table.row(workload.name, &numbers);
    }
}

/// The least throughput of small events, in per cent of the bare loop's. A machine with two cores, both busy, reached 147
/// in the fastest runs and 195 in the median: the margin is wide, and a loss of more than a third is seen.
const LEAST: f64 = 95.0;

/// Compares the throughput of small events with the bare loop's. Returns whether it is enough. The fastest run of each
/// counts, because whatever else the machine does only makes a run slower.
pub(crate) fn check(table: &Table) -> bool {
    let runs = measured(&usual(100_000, 9));
    let fastest = |of: usize| runs.iter().map(|run| run[of].wall).fold(f64::INFINITY, f64::min);
    let throughput = 100.0 * fastest(1) / fastest(0);
    table.heading("throughput", &["% of bare", "at least"]);
    table.row("small events", &[throughput, LEAST]);
    throughput >= LEAST
}

/// The costs of a workload's runs: of the program, of the bare loop and of cat.
fn measured(workload: &Workload) -> Vec<[Cost; 3]> {
    let steps = workload.dialect.script(&workload.dialect.lines(workload.events, workload.count));
    let agent = Scripted::new(workload.dialect, &steps);
    let file = agent.said(&steps);
    (0..workload.times).map(|_| [once(workload, &agent), by_bare_loop(&file), by_cat(&file)]).collect()
}

fn once(workload: &Workload, agent: &Scripted) -> Cost {
    let mut command = agent.command(program());
    let file = |name: &str| Stdio::from(File::create(agent.folder().join(name)).unwrap());
    command.arg("adhoc");
    if workload.way == Way::Record {
        command.arg("--record").arg(agent.folder().join("recording.jsonl"));
    }
    if workload.way == Way::Terminal {
        command.args(["--output", "cli", "--prompt", "Go on", "--agent", workload.dialect.agent()]);
        command.stdout(file("out")).stderr(file("err"));
        return run(&mut command, None);
    }
    command.args(["--output", "json"]).stdout(Stdio::piped());
    run(&mut command, Some(&agent.start(&workload.options)))
}

//! `report`: a page of HTML from the frames of a run or from a recording.

use super::complain;
use super::export::write;
use super::texts::unread;
use crate::clean::one_line;
use crate::cli::Wrong;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, own_path, own_switch, store};
use crate::io::files::FileOrPipe;
use crate::io::output::{deliver, diagnose};
use crate::protocol::failure::Failure;
use crate::report::{LINE_BYTES, ReportLine, ReportPage};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::path::PathBuf;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("FILE...", Offers::Files),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "report",
        &CommandText {
            about: "create an HTML report of a run or a recording",
            more: "\
FILE holds the frames that adhoc, spec, plan or implement wrote with --output json, or a recording made with --record.
Several files make one page. `-` is stdin. Without --out, the page goes to stdout.
The page needs no network and no script. It shows the outcome, the plan, the files, the time, the tokens, the questions, and
each step of the agent. Frames of --progress full have diffs and outputs. A run.start among the frames adds the prompt.
A line longer than 16 MiB is skipped, and a text is cut at 64 KiB. The page holds at most 16 MiB of text and 20,000 events,
and says what it leaves out.",
            examples: &[
                (
                    "spektacular adhoc --output json --progress full --prompt \"fix it\" > run.jsonl",
                    "keep the frames of a run",
                ),
                ("spektacular report run.jsonl -o run.html", "make the page"),
                ("spektacular adhoc --report run.html \"fix it\"", "make it at the end of the run"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<ReportArgs>] = &[
    own_path("out", "FILE", "write to a file, completely or not at all", |to: &mut ReportArgs| &mut to.out)
        .short('o')
        .begins("The page"),
    own_switch("force", "let --out replace an existing file", |to| to.force = true),
];

#[derive(Debug, Default)]
struct ReportArgs {
    /// `-` is stdin.
    files: Vec<PathBuf>,
    /// `None`: stdout.
    out: Option<PathBuf>,
    force: bool,
}

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<ReportArgs, Wrong> {
    if words.is_empty() {
        return Err("Missing FILE: report needs the frames of a run or a recording. `-` is stdin.".into());
    }
    Ok(ReportArgs { files: words.into_iter().map(PathBuf::from).collect(), ..store(FLAGS, given)? })
}

fn run(typed: &ReportArgs) -> u8 {
    let mut report = ReportPage::default();
    if let Err(message) = typed.files.iter().try_for_each(|file| add(&mut report, file)) {
        return complain(&Failure::usage(message));
    }
    let page = report.page();
    let Some(out) = &typed.out else { return deliver(&page) };
    if let Err(failure) = write(out, page.as_bytes(), typed.force) {
        return complain(&failure);
    }
    diagnose(&format!("spektacular: the report is in {}", one_line(&out.to_string_lossy())));
    0
}

/// Error: a sentence about the file.
fn add(report: &mut ReportPage, file: &Path) -> Result<(), String> {
    let is_stdin = file == Path::new("-");
    let name = if is_stdin { "stdin".into() } else { one_line(&file.to_string_lossy()) };
    let failed = |kind: ErrorKind| format!("{name}: {}.", unread(kind));
    report.begin(&name);
    let read = if is_stdin {
        lines(report, std::io::stdin().lock())
    } else {
        let opened = FileOrPipe::open(file).map_err(|error| failed(error.kind()))?;
        lines(report, BufReader::new(opened))
    };
    read.map_err(|error| failed(error.kind()))?;
    if report.found == 0 {
        return Err(format!(
            "{name} contains no frames: name a file written with --output json or --record. The first unusable line: {}.",
            report.first_note().unwrap_or("none, the file is empty")
        ));
    }
    Ok(())
}

/// Hands each line to the report. Holds one line at most, and no more of it than the limit.
fn lines(report: &mut ReportPage, mut input: impl BufRead) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES as u64 + 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() > LINE_BYTES && line.last() != Some(&b'\n') {
            report.line(ReportLine::TooLong);
            input.skip_until(b'\n')?;
        } else {
            report.line(ReportLine::Text(&line));
        }
    }
}

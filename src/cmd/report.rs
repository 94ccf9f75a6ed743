//! `report`: a page of HTML from the frames of a run or from a recording.

use super::complain;
use super::export::write;
use super::texts::unread;
use crate::clean::one_line;
use crate::cli::ReportArgs;
use crate::io::files::FileOrPipe;
use crate::io::output::{diagnose, print_bytes};
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::report::{LINE_BYTES, ReportLine, ReportPage};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Runs the command; returns the exit code.
pub(super) fn run(typed: &ReportArgs) -> u8 {
    let mut report = ReportPage::default();
    let read = typed.files.iter().try_for_each(|file| add(&mut report, file));
    let page = match read {
        Ok(()) => report.page(),
        Err(message) => return complain(&Failure::new(Code::Usage, message)),
    };
    match &typed.out {
        Some(out) => match write(out, page.as_bytes(), typed.force) {
            Ok(()) => {
                diagnose(&format!("spektacular: the report is in {}", one_line(&out.to_string_lossy())));
                0
            }
            Err(failure) => complain(&failure),
        },
        None if print_bytes(page.as_bytes()) => 0,
        None => EXIT_UNDELIVERED,
    }
}

/// Adds a file to the report. Error: a sentence about the file.
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
    if report.found() == 0 {
        return Err(format!(
            "{name} has no frame: name a file of --output json or of --record. The first line that could not be used: {}.",
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

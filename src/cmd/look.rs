//! The way in which a person sees a run: colors, width and detail, from the command line, the environment and the terminal.

use crate::cli::{Adhoc, Color, DiffSize};
use crate::terminal::{Detail, Look, TerminalFeatures};
use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

const DIFF_LINES: usize = 40;

/// `live`: whether the output is a terminal that shows colors.
pub(super) fn has_colors(wanted: Color, live: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let forced = set("FORCE_COLOR").map(|value| value != "0" && value != "false");
    match wanted {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if set("NO_COLOR").is_some() => false,
        Color::Auto => forced.unwrap_or(live),
    }
}

/// `alert`: whether the configuration wants questions announced.
pub(super) fn look(adhoc: &Adhoc, alert: bool) -> Look {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let person = std::io::stderr().is_terminal();
    let live = person && set("TERM").is_some_and(|term| term != "dumb");
    let detail = match (adhoc.quiet, adhoc.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    };
    let escapes = has_colors(adhoc.color, live);
    let page = live && escapes && !adhoc.plain && std::io::stdout().is_terminal();
    let diff_lines = match adhoc.diff {
        DiffSize::None => 0,
        DiffSize::Short => DIFF_LINES,
        DiffSize::Full => usize::MAX,
    };
    let features = if live && escapes && !adhoc.plain {
        TerminalFeatures::detect(|name| set(name).and_then(|value| value.into_string().ok()))
    } else {
        TerminalFeatures::default()
    };
    Look {
        detail,
        person,
        live,
        escapes,
        shared: (person && may_be_seen(&std::io::stdout())) || is_merged(),
        page,
        diff_lines,
        log_id: adhoc.log_id,
        alert: live && alert && !adhoc.no_alert,
        features,
    }
}

/// Whether stdout may appear on a terminal, perhaps through a pipe to `tee` or `head`.
fn may_be_seen(stdout: &std::io::Stdout) -> bool {
    let file = stdout.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let kind = file.and_then(|file| file.metadata()).map(|meta| meta.file_type());
    stdout.is_terminal() || kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Whether stdout and stderr are one file or pipe, as after `2>&1`.
fn is_merged() -> bool {
    let file = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().and_then(|fd| std::fs::File::from(fd).metadata());
    let (out, err) = (file(std::io::stdout().as_fd()), file(std::io::stderr().as_fd()));
    out.ok().zip(err.ok()).is_some_and(|(out, err)| (out.dev(), out.ino()) == (err.dev(), err.ino()))
}

//! argv in, exit code out.
#![forbid(unsafe_code)]

use spektacular::cmd;
use spektacular::io::threads;
use spektacular::process::{self, own_executable};
use std::ffi::OsString;
use std::panic::catch_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic becomes a frame; its own text could contain a secret.
    std::panic::set_hook(Box::new(|_| {}));
    own_executable::keep_private();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = process::run_helper(&args) {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let run = || catch_unwind(|| cmd::run(args)).unwrap_or_else(|_| cmd::crashed());
    ExitCode::from(threads::with_room(run).unwrap_or_else(cmd::no_room))
}

//! argv in, exit code out.
#![forbid(unsafe_code)]

use spektacular::cli::{self, Typed};
use spektacular::cmd;
use spektacular::failure::{Code, Failure};
use spektacular::io::output::deliver;
use spektacular::process::guard;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic becomes a frame; its own text may hold what must not be seen.
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    ExitCode::from(run(args))
}

fn run(args: Vec<OsString>) -> u8 {
    if args.first().is_some_and(|first| first == guard::GUARD_ARGUMENT) {
        return u8::try_from(guard::run_guard(std::io::stdin())).unwrap_or(1);
    }
    let run = cli::is_run(&args).then(|| cli::asked_output(&args));
    match cli::parse(args) {
        Ok(Typed::Print(text)) => deliver(&text),
        Ok(Typed::Adhoc(adhoc)) => cmd::adhoc::run(*adhoc),
        Ok(Typed::Config(config)) => cmd::config::run(&config),
        Ok(Typed::Completions(shell)) => cmd::manual::completions(shell),
        Ok(Typed::Man) => cmd::manual::man(),
        Ok(Typed::Agents(typed)) => cmd::agents::run(&typed),
        Ok(Typed::Export(typed)) => cmd::export::run(&typed),
        Ok(Typed::Open(typed)) => cmd::open::run(&typed),
        Ok(Typed::AskServer) => cmd::ask_server::run(),
        Ok(Typed::Replay(replay)) => cmd::replay::run(&replay),
        Err(wrong) => match run {
            Some(output) => cmd::adhoc::refuse(output, Failure::new(Code::Usage, wrong)),
            None => cmd::complain(&Failure::new(Code::Usage, wrong)),
        },
    }
}

//! `ask-server`: an agent starts this command so that its model can ask the user of the run. The command moves bytes
//! between the agent and the run's socket; only the run interprets the lines.

use crate::cli::command::{Command, CommandText, Runnable};
use crate::cli::no_words;
use crate::engine::ASK_ADDRESS;
use crate::io::output::{stdout, write_whole};
use crate::io::spawn_thread;
use crate::protocol::failure::Failure;
use crate::system::is_same_user;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

pub(super) const COMMAND: Command = Command {
    ..Command::named(
        "ask-server",
        &CommandText {
            about: "MCP server through which a model asks the user; agents start it",
            more: "The server speaks MCP on stdin and stdout. A run gives it to agents whose models have no other way to ask.",
            examples: &[(
                "spektacular ask-server",
                "the command that an agent starts; outside a run, it reports an error",
            )],
        },
        |_, words| Ok(Runnable::new(no_words("ask-server", &words)?, |()| run())),
    )
};

fn run() -> u8 {
    relay().map_or_else(|why| super::complain(&Failure::usage(why)), |()| 0)
}

/// Moves bytes until either side ends. Error: the relay cannot begin; the sentence is for a diagnostic.
fn relay() -> Result<(), &'static str> {
    let address = std::env::var(ASK_ADDRESS).unwrap_or_default();
    let (nonce, path) =
        address.split_once(':').ok_or("ask-server works only if an agent starts it during a run of spektacular.")?;
    let ended = |_| "The run of this ask-server has ended.";
    let mut socket = UnixStream::connect(path).map_err(ended)?;
    if !is_same_user(&socket) {
        return Err("The run of this ask-server belongs to another user.");
    }
    let mut lines = socket.try_clone().map_err(|_| "Cannot open a file: raise the limit of open files.")?;
    let mut out = stdout();
    let begin = format!("{nonce}\n");
    write_whole(&mut socket, begin.as_bytes()).map_err(ended)?;
    let pass_on = move || {
        pass(&mut io::stdin().lock(), &mut socket);
        // The agent has closed its side. Closing the socket reports that to the run, and ends the answers.
        let _ = socket.shutdown(Shutdown::Both);
    };
    spawn_thread("stdin", pass_on).map_err(|_| "Cannot start a thread.")?;
    pass(&mut lines, &mut out);
    Ok(())
}

/// Copies bytes as they arrive, until either end closes. Returns whether `from` closed first.
pub(super) fn pass(from: &mut impl Read, to: &mut (impl Write + AsFd)) -> bool {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return true,
            Ok(count) if write_whole(to, &bytes[..count]).is_ok() => {}
            Ok(_) => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

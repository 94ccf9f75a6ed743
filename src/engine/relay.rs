//! The ask-server: started by an agent, it moves lines between that and the run's socket. What the lines mean is the
//! run's, so there is nothing here that could be said wrong.

use super::ask_socket::{ADDRESS, is_same_user};
use crate::io::output::{stdout, write_whole};
use crate::io::spawn_thread;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Runs it until either side ends. Error: why it could not begin, for a diagnostic.
pub fn relay() -> Result<(), &'static str> {
    let address = std::env::var(ADDRESS).unwrap_or_default();
    let (nonce, path) =
        address.split_once(':').ok_or("ask-server is started by an agent, for a run of `spektacular adhoc`.")?;
    let mut socket = UnixStream::connect(path).map_err(|_| "The run that asks is not there any more.")?;
    if !is_same_user(&socket) {
        return Err("The run that asks belongs to another user.");
    }
    let mut lines = socket.try_clone().map_err(|_| "No file could be opened: raise the limit of open files.")?;
    let mut out = stdout().ok_or("stdout is closed.")?;
    let begin = format!("{nonce}\n");
    write_whole(&mut socket, begin.as_bytes()).map_err(|_| "The run that asks is not there any more.")?;
    let pass_on = move || {
        pass(&mut io::stdin().lock(), &mut socket);
        // The agent has no more to ask: the run learns it, and the answers end.
        let _ = socket.shutdown(Shutdown::Both);
    };
    spawn_thread("stdin", pass_on).map_err(|_| "No thread could be started.")?;
    pass(&mut lines, &mut out);
    Ok(())
}

/// Moves bytes as they come, to the end of either.
fn pass(from: &mut impl Read, to: &mut (impl Write + AsFd)) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) if write_whole(to, &bytes[..count]).is_ok() => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

//! Reference programs, which do a part of the work and nothing more. Their measurements are the limits to compare with.

use crate::measured::{Cost, run};
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The argument that makes the benchmark program run the bare loop.
pub(crate) const BARE_LOOP: &str = "--bare-loop";

/// Reads lines from stdin, parses each one, writes it to stdout and flushes.
pub(crate) fn bare_loop() {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    while stdin.read_until(b'\n', &mut line).unwrap() > 0 {
        let parsed: serde_json::Value = serde_json::from_slice(&line).unwrap();
        std::hint::black_box(&parsed);
        stdout.write_all(&line).unwrap();
        stdout.flush().unwrap();
        line.clear();
    }
}

/// Measures the bare loop on the lines of a file, which come through a pipe.
pub(crate) fn by_bare_loop(file: &Path) -> Cost {
    through(file, Command::new(std::env::current_exe().unwrap()).arg(BARE_LOOP))
}

/// Measures cat on the same bytes through the same two pipes.
pub(crate) fn by_cat(file: &Path) -> Cost {
    through(file, &mut Command::new("cat"))
}

/// Runs `cat file | command`. Only the time counts, because the processor time would be that of the shell.
fn through(file: &Path, command: &mut Command) -> Cost {
    let mut piped = Command::new("sh");
    piped.args(["-c", r#"cat "$0" | "$@""#]).arg(file).arg(command.get_program()).args(command.get_args());
    run(piped.stdout(Stdio::piped()), None)
}

/// A static program that prints a line. `None`: it cannot be built here.
pub(crate) struct Hello {
    folder: TempDir,
}

impl Hello {
    pub(crate) fn build() -> Option<Hello> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("hello.rs"), "fn main() { println!(\"Hello\"); }\n").unwrap();
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["-O", "-C", "target-feature=+crt-static", "hello.rs"]).current_dir(folder.path());
        rustc.stdout(Stdio::null()).stderr(Stdio::null());
        rustc.status().is_ok_and(|status| status.success()).then_some(Hello { folder })
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.path().join("hello")
    }
}

//! A scripted agent as a program: a folder to put on the PATH, and the command that runs it.

use crate::workload::{Dialect, Step};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// An agent that plays a script.
pub(crate) struct Scripted {
    folder: TempDir,
    dialect: Dialect,
}

impl Scripted {
    /// Writes the agent's program, and each text that it says into a file beside it.
    pub(crate) fn new(dialect: Dialect, steps: &[Step]) -> Scripted {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut program = String::from("#!/bin/sh\ncd \"${0%/*}\"\n");
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Hear => program.push_str("read -r line\n"),
                Step::Say(lines) => {
                    fs::write(folder.path().join(format!("said.{number}")), lines).expect("the agent's lines");
                    writeln!(program, "cat said.{number}").expect("a String takes everything");
                }
            }
        }
        program.push_str("exec cat >/dev/null\n");
        Scripted::with(dialect, folder, &program)
    }

    /// An agent of Claude's dialect that opens a session named after its process id, and then only holds its pipes.
    pub(crate) fn holding() -> Scripted {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let init = r#"{"type":"system","subtype":"init","session_id":"'$$'","claude_code_version":"1","model":"m"}"#;
        let program = format!("#!/bin/sh\nread -r line\necho '{init}'\nexec sleep 1000\n");
        Scripted::with(Dialect::Claude, folder, &program)
    }

    fn with(dialect: Dialect, folder: TempDir, program: &str) -> Scripted {
        let file = folder.path().join(dialect.agent());
        fs::write(&file, program).expect("the agent's program");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("chmod");
        // The folder is not a git work tree and holds nothing that takes time to search.
        fs::create_dir(folder.path().join("work")).expect("mkdir");
        Scripted { folder, dialect }
    }

    /// The file with the lines of the last step.
    pub(crate) fn said(&self, steps: &[Step]) -> PathBuf {
        self.folder.path().join(format!("said.{}", steps.len() - 1))
    }

    /// The path of the script.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The run.start that names the agent. `options`: further fields, each after a comma.
    pub(crate) fn start(&self, options: &str) -> String {
        let agent = self.dialect.agent();
        format!(
            "{{\"v\":\"1\",\"type\":\"run.start\",\"payload\":{{\"prompt\":\"Go on\",\"agent\":\"{agent}\"{options}}}}}\n"
        )
    }

    /// A command in the environment of the agent. The caller sets all three streams.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path().join("work")).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().display()));
        command.env("HOME", self.folder.path()).stderr(Stdio::null());
        command
    }
}

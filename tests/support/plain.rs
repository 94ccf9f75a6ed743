//! A folder with bin/, home/ and work/, and the program run in it with a clean environment, to its end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) struct Plain {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What the program did.
#[derive(Debug)]
pub(crate) struct Did {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Plain {
    #[track_caller]
    pub(crate) fn new() -> Plain {
        let dir = tempfile::Builder::new().prefix("spk-").tempdir().unwrap();
        for name in ["bin", "home", "tmp", "work"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Plain { dir, env: Vec::new() }
    }

    /// A file below the folder, with what leads to it.
    #[track_caller]
    pub(crate) fn file(self, name: &str, content: &str) -> Plain {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A program below the folder, as a script of the shell's.
    #[track_caller]
    pub(crate) fn script(self, name: &str, body: &str) -> Plain {
        let plain = self.file(name, &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(plain.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        plain
    }

    #[track_caller]
    pub(crate) fn link(self, name: &str, target: &str) -> Plain {
        std::os::unix::fs::symlink(self.path(target), self.path(name)).unwrap();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Plain {
        self.env.push((name.into(), value.into()));
        self
    }

    #[track_caller]
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// A command in this folder's environment. The PATH has the folder's programs and the system's.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path("work")).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp")).env("LANG", "C.UTF-8");
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Did {
        let mut command = self.command(env!("CARGO_BIN_EXE_spektacular"));
        let Output { status, stdout, stderr } = command.args(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Did { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Everything below the folder, sorted.
    #[track_caller]
    pub(crate) fn listing(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.path("")];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

impl Did {
    /// Its stdout, which is one line of JSON, after an end with this code.
    #[track_caller]
    pub(crate) fn json(&self, code: i32) -> serde_json::Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out.matches('\n').count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }

    /// Its only line on stderr, after an end with this code and without a word on stdout.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        assert_eq!(self.err.matches('\n').count(), 1, "{self:?}");
        &self.err
    }
}

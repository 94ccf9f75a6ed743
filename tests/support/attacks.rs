//! The attacks of an agent on its sandbox, and the work that it must be able to do there. The reference has the same table.

use super::machine::not_checked;
use super::{Case, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The attempt, its shell commands, and whether it works with the modes workspace and read-only. `$OUT` is a folder
/// outside, `$OUTSIDE` a process outside, and 9 an inherited descriptor of the file `$OUT/open`.
type Attack = (&'static str, &'static str, [bool; 2]);

/// The attacks that a sandbox promises to stop.
pub(crate) const STOPPED: &[Attack] = &[
    ("write a file outside", "echo x > $OUT/new", [false, false]),
    ("write in HOME", "echo x > $HOME/new", [false, false]),
    ("append to a file outside", "echo x >> $OUT/victim", [false, false]),
    ("truncate a file outside", ": > $OUT/victim", [false, false]),
    ("delete a file outside", "rm -f $OUT/victim && ! test -e $OUT/victim", [false, false]),
    ("make a folder outside", "mkdir $OUT/folder", [false, false]),
    ("delete a folder outside", "rmdir $OUT/empty", [false, false]),
    ("rename a file outside", "mv $OUT/victim $OUT/renamed", [false, false]),
    ("move a file from outside", "mv $OUT/victim $TMPDIR/stolen", [false, false]),
    ("move a file to outside", "echo x > $TMPDIR/gift && mv $TMPDIR/gift $OUT/gift", [false, false]),
    ("link a file from outside", "ln $OUT/victim $TMPDIR/linked", [false, false]),
    ("make a link outside", "ln -s /etc/passwd $OUT/link", [false, false]),
    ("write through a link", "ln -sf $OUT/victim $TMPDIR/through && echo x > $TMPDIR/through", [false, false]),
    ("write by /proc/self/root", "echo x > /proc/self/root$OUT/new", [false, false]),
    ("open an inherited file again, by /proc/self/fd", "echo x > /proc/self/fd/9", [false, false]),
    ("write by a child of a child", "sh -c 'sh -c \"echo x > $0/new\" $0' $OUT", [false, false]),
    ("write from a session of its own", "setsid -w sh -c 'echo x > $0/new' $OUT", [false, false]),
    ("read a file outside", "cat $OUT/victim", [false, false]),
    ("read a secret by its path", "cat $HOME/.ssh/id_test", [false, false]),
    ("read a secret by a link", "cat $HOME/link", [false, false]),
    ("read a secret by /proc/self/root", "cat /proc/self/root$HOME/.ssh/id_test", [false, false]),
    ("read a secret by the root of a process outside", "cat /proc/$OUTSIDE/root$HOME/.ssh/id_test", [false, false]),
    ("mount a folder over another", "mount --bind $HOME $TMPDIR", [false, false]),
    ("enter the namespaces of a process outside", "nsenter -t $OUTSIDE -m true", [false, false]),
];

/// The attacks that nobody promises to stop, and that work.
pub(crate) const NOT_STOPPED: &[Attack] = &[
    ("see that a file outside exists", "test -e $OUT/victim", [true, true]),
    ("change the mode of a file outside", "chmod 600 $OUT/mode", [true, true]),
    ("change the time of a file outside", "touch -d 2001-01-01 $OUT/mode", [true, true]),
    ("write to an inherited descriptor that the agent passes on", "echo x >&9", [true, true]),
    ("list HOME", "ls $HOME", [true, true]),
];

/// The work that a sandbox leaves to an agent.
pub(crate) const WORK: &[Attack] = &[
    ("write in cwd", "echo x > inside", [true, false]),
    ("write in TMPDIR", "echo x > $TMPDIR/file && cat $TMPDIR/file", [true, true]),
    ("read the rest of HOME", "cat $HOME/plain", [true, true]),
    ("read the system", "cat /etc/passwd", [true, true]),
    ("run a program that it made", "printf '#!/bin/sh\\n' > made && chmod +x made && ./made", [true, false]),
    (
        "git",
        "git init -q tree && cd tree && git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m one",
        [true, false],
    ),
];

/// Further work, with programs of the machine.
pub(crate) const TOOLS: &[Attack] = &[
    (
        "cargo",
        "PATH=$CARGO:$PATH; cargo init -q --offline --vcs none --lib --name a rust && cd rust && cargo test -q --offline",
        [true, false],
    ),
    (
        "npm",
        "PATH=$NPM:$PATH; mkdir -p js/dep && cd js && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > dep/package.json && \
         npm install --offline --no-audit --no-update-notifier ./dep && node -e 'require.resolve(\"dep/package.json\")'",
        [true, false],
    ),
    ("python", "$PYTHON -m venv --without-pip py && py/bin/python -c 'import json, ssl'", [true, false]),
];

/// The modes, in the order of the table.
pub(crate) const MODES: [&str; 2] = ["workspace", "read-only"];

/// The text of the secret.
const SECRET: &str = "a secret that nobody reads";

/// The places of the tools: their variables, and the folders that they need.
pub(crate) struct Tools(Vec<(&'static str, PathBuf, PathBuf)>);

impl Tools {
    /// None of them, for a user who cannot reach them.
    pub(crate) fn none() -> Tools {
        Tools(Vec::new())
    }

    pub(crate) fn of_machine() -> Tools {
        let said = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
            Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
        };
        let cargo = Path::new(env!("CARGO")).parent().map(Path::to_owned);
        let toolchain = cargo.as_deref().and_then(Path::parent).map(Path::to_owned);
        let npm = said("npm", &["prefix", "-g"]);
        let python = |what| said("python3", &["-c", &format!("import sys; print(sys.{what})")]);
        let all = [
            ("CARGO", cargo, toolchain),
            ("NPM", npm.as_deref().map(|prefix| prefix.join("bin")), npm),
            ("PYTHON", python("executable"), python("base_prefix")),
        ];
        Tools(all.into_iter().filter_map(|(name, program, needs)| Some((name, program?, needs?))).collect())
    }

    pub(crate) fn python(&self) -> Option<&Path> {
        self.0.iter().find(|(name, ..)| *name == "PYTHON").map(|(_, program, _)| program.as_path())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, ..)| known.eq_ignore_ascii_case(name))
    }
}

/// Prepares the files of the attacks.
#[track_caller]
pub(crate) fn prepare(case: Case) -> Case {
    let case =
        case.file("home/.ssh/id_test", SECRET).file("home/plain", "plain").link("home/link", "home/.ssh/id_test");
    let case = case.file("out/victim", "old\n").file("out/mode", "").file("out/open", "");
    fs::create_dir(case.path("out/empty")).expect("mkdir");
    case
}

/// The start of the program with the inherited descriptor. `user`: a program that changes the user, or nothing.
#[track_caller]
pub(crate) fn inheriting(case: Case, user: &str) -> Case {
    let open = case.path("out/open").display().to_string();
    case.shell(&format!("exec 9>>{open}; exec {user} \"$@\""))
}

/// The field `sandbox` of a run of the attacks.
pub(crate) fn sandbox(mode: usize, tools: &Tools) -> Value {
    json!({"mode": MODES[mode], "read": tools.0.iter().map(|(.., needs)| needs).collect::<Vec<_>>()})
}

/// A shell script that tries everything, prints the names of what works, and leaves a daemon behind.
pub(crate) fn script(case: &Case, tools: &Tools) -> String {
    let variables = tools.0.iter().map(|(name, program, _)| format!("{name}='{}'\n", program.display()));
    let own = format!("OUT='{}'\nOUTSIDE={}\n", case.path("out").display(), std::process::id());
    let all = [STOPPED, NOT_STOPPED, WORK, TOOLS].concat();
    let signal = ("signal a process outside", "kill -0 $OUTSIDE", [false, false]);
    let tries = all
        .iter()
        .chain([&signal])
        .map(|(name, attack, _)| format!("if ( {attack} ) >/dev/null 2>&1; then echo 'works: [{name}]'; fi\n"));
    variables.chain([own]).chain(tries).chain(["setsid sleep 300 >/dev/null 2>&1 9>&- &\n".to_owned()]).collect()
}

/// Checks the output of [`script`] in a sandbox of this mode. `all`: also the attacks that nobody promises to stop.
#[track_caller]
pub(crate) fn check(outcome: &Outcome, (mode, tools): (usize, &Tools), output: &str, all: bool) {
    let works = |name: &str| output.contains(&format!("works: [{name}]"));
    let not_stopped = if all { NOT_STOPPED } else { &[] };
    for (name, _, wanted) in [STOPPED, not_stopped, WORK, TOOLS].concat() {
        if TOOLS.iter().any(|(tool, ..)| *tool == name) && !tools.has(name) {
            not_checked(name, "the user does not have it");
            continue;
        }
        assert_eq!(works(name), wanted[mode], "{}: {name}\n{output}", MODES[mode]);
    }
    let shown = &outcome.frames[0]["payload"]["config"]["sandbox"];
    assert_eq!(works("signal a process outside"), shown["signals"] == false, "{output}");
    let case = outcome.case();
    assert_eq!(fs::read_to_string(case.path("out/victim")).expect("victim"), "old\n");
    let mut left: Vec<_> =
        fs::read_dir(case.path("out")).expect("out").map(|e| e.expect("entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["empty", "mode", "open", "victim"]);
    assert!(!output.contains(SECRET) && !case.path("home/new").exists());
    assert_eq!(fs::read_to_string(case.path("home/.ssh/id_test")).expect("secret"), SECRET);
    assert_eq!(case.survivors(), [""; 0]);
}

//! Tests of the plugin for OpenClaw, and of `acp` behind it, which are written in JavaScript: against stand-ins under the node of this machine, and
//! in a real gateway under a node that is new enough for OpenClaw. npm installs both at the versions of package.json.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openclaw")
}

/// Writes the plugin to a folder. Returns what the program prints: the configuration for OpenClaw.
#[track_caller]
fn write_plugin(folder: &Path) -> String {
    let done = Command::new(PROGRAM).args(["integrate", "openclaw", "--out"]).arg(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Runs files of tests, with the installed packages if they need some. Fails with their output.
#[track_caller]
fn run(node: &Path, files: &[&str], packages: Option<&Path>) {
    let (plugin, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = Command::new(node);
    command.env("SETUP", write_plugin(plugin.path())).env("PLUGIN", plugin.path());
    // The gateway's client, which runs in the tests' own process, keeps an identity below the home or these.
    command.env("HOME", home.path()).env_remove("OPENCLAW_HOME").env_remove("OPENCLAW_STATE_DIR");
    let wait: u64 = std::env::var("TEST_WAIT_S").map_or(20, |seconds| seconds.parse().unwrap());
    // For a test with all its waits, and for a file with all its tests.
    command.args(["--test", "--test-reporter=spec"]).arg(format!("--test-timeout={}", wait * 30_000));
    command.args(files.iter().map(|file| here().join(file)));
    if let Some(packages) = packages {
        command.env("OPENCLAW", packages.join("openclaw")).env("ACPX", packages.join("acpx"));
    }
    let done = command.stdin(Stdio::null()).output().expect("node is needed");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("fail 0"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

/// The folder with the installed packages, next to that of the real agents, and installed as they are.
fn installed() -> PathBuf {
    let given = std::env::var_os("SPEKTACULAR_AGENTS").map(PathBuf::from);
    let cache = given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-agents"));
    let folder = cache.join("openclaw");
    fs::create_dir_all(&folder).expect("cache folder");
    // Other test processes may install at the same time.
    let guard = File::create(folder.join("lock")).expect("lock file");
    guard.lock().expect("lock");
    let pins = fs::read(here().join("package.json")).expect("package.json");
    if fs::read(folder.join("installed")).ok().as_deref() != Some(pins.as_slice()) {
        fs::write(folder.join("package.json"), &pins).expect("package.json");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        let output = npm.current_dir(&folder).stdin(Stdio::null()).output().expect("npm is needed");
        assert!(output.status.success(), "npm install: {}", String::from_utf8_lossy(&output.stderr));
        fs::write(folder.join("installed"), &pins).expect("installed");
    }
    folder.join("node_modules")
}

#[test]
fn the_plugin_keeps_its_promises_against_stand_ins() {
    run(Path::new("node"), &["tool.test.mjs", "backend.test.mjs"], None);
}

/// Runs a file of tests with a real gateway.
#[track_caller]
fn run_in_gateway(file: &str) {
    let packages = installed();
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => panic!("no node package for {other}"),
    };
    let node = packages.join(format!("node-linux-{arch}/bin/node"));
    run(&node, &[file], Some(&packages));
}

#[test]
fn the_plugin_works_in_a_real_gateway() {
    run_in_gateway("gateway.test.mjs");
}

#[test]
fn acp_works_behind_acpx_in_a_real_gateway() {
    run_in_gateway("acp.test.mjs");
}

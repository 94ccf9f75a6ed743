//! Installs the agents that package-lock.json pins, with one run of npm.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Makes a file of an installed package executable, because install scripts are disabled.
#[track_caller]
pub(crate) fn program(package: &str, file: &str) -> PathBuf {
    let program = installed().join("node_modules").join(package).join(file);
    assert!(program.is_file(), "npm installed no {}", program.display());
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("chmod");
    program
}

/// ripgrep, which comes with Codex.
pub(crate) fn search_program() -> PathBuf {
    let file = format!("vendor/{}-unknown-linux-musl/codex-path/rg", std::env::consts::ARCH);
    program(&format!("@openai/codex-linux-{}", arch()), &file)
}

/// The processor's name in the names of packages.
pub(crate) fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => panic!("no agent package for {other}"),
    }
}

/// The folder of the installed agents. What is there for this package-lock.json is used; else npm is run, once.
fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let given = std::env::var_os("SPEKTACULAR_AGENTS").map(PathBuf::from);
        let cache = given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-agents"));
        let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_agents");
        let lock = fs::read(pins.join("package-lock.json")).expect("package-lock.json");
        let folder = cache.join(format!("{:016x}", fnv(&lock)));
        fs::create_dir_all(&folder).expect("cache folder");
        // Other test processes may install at the same time.
        let guard = File::create(folder.join("lock")).expect("lock file");
        guard.lock().expect("lock");
        let complete = folder.join("complete");
        if !complete.exists() {
            npm_ci(&pins, &folder);
            File::create(complete).expect("complete");
        }
        folder
    })
}

fn npm_ci(pins: &Path, folder: &Path) {
    for name in ["package.json", "package-lock.json"] {
        fs::copy(pins.join(name), folder.join(name)).expect("copy");
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    let output = npm.current_dir(folder).stdin(Stdio::null()).output().expect("npm is needed to install the agents");
    assert!(output.status.success(), "npm ci: {}", String::from_utf8_lossy(&output.stderr));
}

/// FNV-1a: a hash of the contents that does not depend on the toolchain.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

//! The place where a real agent runs: the pinned version, a clean environment, a fresh home, a repository with one
//! commit, and a model on loopback.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use crate::stub::Stub;
use crate::support::Case;

/// Made up, and in the shape of a key, so that its way through the program is the real one.
pub(crate) const KEY: &str = "sk-made-up-0000000000000000";

/// The versions of Claude Code that package.json pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    OldClaude,
}

impl Agent {
    pub(crate) fn version(self) -> &'static str {
        match self {
            Agent::Claude => "2.1.330",
            Agent::OldClaude => "2.1.197",
        }
    }

    /// The native program; the packages hold nothing else that matters.
    fn program(self) -> PathBuf {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => panic!("no agent package for {other}"),
        };
        let package = match self {
            Agent::Claude => format!("@anthropic-ai/claude-code-linux-{arch}"),
            Agent::OldClaude => format!("claude-old-linux-{arch}"),
        };
        let program = installed().join("node_modules").join(package).join("claude");
        assert!(program.is_file(), "npm installed no {}", program.display());
        program
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
        // Other test processes may want the same.
        let guard = File::create(folder.join("lock")).expect("lock file");
        guard.lock().expect("lock");
        let complete = folder.join("complete");
        if !complete.exists() {
            npm_ci(&pins, &folder);
            make_executable(&folder.join("node_modules"));
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

/// An install script would do it, but those stay off.
fn make_executable(modules: &Path) {
    let scope = modules.join("@anthropic-ai");
    for folder in [modules, &scope] {
        for package in fs::read_dir(folder).expect("node_modules").flatten() {
            let program = package.path().join("claude");
            if program.is_file() {
                fs::set_permissions(program, Permissions::from_mode(0o755)).expect("chmod");
            }
        }
    }
}

/// FNV-1a: a name for a content that stays the same with every toolchain.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A place that is ready for one run.
pub(crate) struct Lab {
    pub(crate) case: Case,
    pub(crate) stub: Arc<Stub>,
    /// Where the agent works, if not in the case's own folder.
    pub(crate) cwd: Option<PathBuf>,
}

impl Lab {
    pub(crate) fn new(agent: Agent, scenario: &str) -> Lab {
        let case = Case::new().git();
        let stub = Arc::new(Stub::start(scenario, &case.work()));
        Lab { case: furnish(case, agent, &stub), stub, cwd: None }
    }

    /// A second run in the home and the working directory of an earlier one, with the same model, which goes on in
    /// its scenario.
    pub(crate) fn after(agent: Agent, earlier: &Case, stub: &Arc<Stub>) -> Lab {
        let home = earlier.path("home");
        let case = furnish(Case::new(), agent, stub).env("HOME", home.to_str().expect("home"));
        Lab { case, stub: stub.clone(), cwd: Some(earlier.work()) }
    }

    /// Adds to the environment of the program, and so of the agent.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Lab {
        self.case = self.case.env(name, value);
        self
    }
}

/// The case has a clean environment already; here comes what the agent needs to stay on loopback.
fn furnish(case: Case, agent: Agent, stub: &Stub) -> Case {
    symlink(agent.program(), case.path("bin/claude")).expect("link");
    case.env("ANTHROPIC_BASE_URL", &stub.url())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_ERROR_REPORTING", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        // Whatever still wants to go out reaches the stub, which refuses it.
        .env("HTTPS_PROXY", &stub.url())
        .env("NO_PROXY", "127.0.0.1")
}

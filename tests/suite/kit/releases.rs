//! The files that make, describe and install a release agree with each other. `.release/check` packs and installs one.

use crate::support::Case;
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "aarch64-apple-darwin", "x86_64-apple-darwin"];

#[track_caller]
fn project_file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The script of a step in a workflow for GitHub.
#[track_caller]
fn step<'t>(workflow: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (_, step) = workflow.split_once(&format!("- name: {name}\n")).unwrap();
    let (_, script) = step.split_once("run: |\n").unwrap();
    script.lines().map_while(|line| line.strip_prefix("          "))
}

/// The steps of the workflow as bash runs them on GitHub, with a release that a stand-in for `gh` downloads.
struct Workflow {
    case: Case,
    text: String,
}

impl Workflow {
    #[track_caller]
    fn new() -> Workflow {
        let case = Case::new().git().script("bin/gh", "cp \"../release/${7:?}\" .");
        assert_eq!(case.run(&["integrate", "github", "--out", "out"]).code, Some(0));
        let text = fs::read_to_string(case.work().join("out/tasks.yml")).unwrap();
        fs::create_dir(case.path("runner")).unwrap();
        fs::create_dir(case.path("release")).unwrap();
        Workflow { case, text }
    }

    fn command(&self, program: &str, folder: &str) -> Command {
        let mut command = self.case.command(program);
        command.current_dir(self.case.path(folder)).env("RUNNER_TEMP", self.case.path("runner"));
        command.env("GITHUB_PATH", self.case.path("github_path"));
        command
    }

    /// The archive of the release, and its checksum.
    #[track_caller]
    fn pack(&self) -> String {
        let name = format!("spektacular-{VERSION}-x86_64-unknown-linux-musl");
        let script = format!(
            "mkdir {name} && ln -s {PROGRAM} {name}/spektacular && tar -czf {name}.tar.gz {name} && sha256sum {name}.tar.gz"
        );
        let done = self.command("bash", "release").args(["-ec", &script]).output().unwrap();
        String::from_utf8(done.stdout).unwrap().split(' ').next().unwrap().to_owned()
    }

    #[track_caller]
    fn run(&self, step_name: &str, folder: &str, env: &[(&str, &str)]) -> (bool, String) {
        let script: Vec<&str> = step(&self.text, step_name).collect();
        assert!(script.len() > 1, "{script:?}");
        let script = script.join("\n").replace("--agent claude", "--agent demo");
        let mut command = self.command("bash", folder);
        let done = command.args(["-e", "-c", &script]).envs(env.iter().copied()).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// The variables of the whole workflow, with this checksum.
    #[track_caller]
    fn variables<'a>(&'a self, checksum: &'a str) -> Vec<(&'a str, &'a str)> {
        let (_, block) = self.text.split_once("\nenv:\n").unwrap();
        let lines = block.lines().map_while(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with('#'));
        let set = |(name, value)| (name, if value == "CHECKSUM" { checksum } else { value });
        lines.filter_map(|line| line.split_once(": ")).map(set).collect()
    }
}

#[test]
fn the_workflow_for_github_installs_a_release_by_its_checksum_and_runs_a_task() {
    let workflow = Workflow::new();
    let checksum = workflow.pack();
    let variables = workflow.variables(&checksum);
    assert_eq!(variables.len(), 4, "{variables:?}");
    let (installed, said) = workflow.run("Install spektacular", "runner", &variables);
    assert!(installed, "{said}");
    let path = fs::read_to_string(workflow.case.path("github_path")).unwrap();
    let program = Path::new(path.trim_end()).join("spektacular");
    assert_eq!(program.canonicalize().unwrap(), Path::new(PROGRAM).canonicalize().unwrap());

    let path = format!("{}:/usr/bin:/bin", path.trim_end());
    let env = [("PATH", path.as_str()), ("PROMPT", "Say hello.")];
    let (ran, said) = workflow.run("Run the task", "work", &env);
    assert!(ran && said.contains("* Write hello.md"), "{said}");
    let report = fs::read_to_string(workflow.case.path("runner/run.html")).unwrap();
    assert!(report.contains("Say hello."), "{report}");
    let (made, said) = workflow.run("Make a patch of the agent's changes", "work", &[("GITHUB_SHA", "HEAD")]);
    assert!(made, "{said}");
    let patch = fs::read_to_string(workflow.case.path("runner/changes.patch")).unwrap();
    assert!(patch.contains("+++ b/hello.md"), "{patch}");
    for limit in ["--timeout ", "--max-tool-calls ", "--max-cost-usd ", "timeout-minutes: "] {
        assert!(workflow.text.contains(limit), "no {limit}");
    }
}

#[test]
fn the_workflow_for_github_refuses_another_archive() {
    let workflow = Workflow::new();
    let checksum = workflow.pack();
    let other = checksum.replace(|digit: char| digit != 'a', "a");
    let (installed, said) = workflow.run("Install spektacular", "runner", &workflow.variables(&other));
    assert!(!installed && said.contains("did NOT match"), "{said}");
    assert!(!workflow.case.path("github_path").exists());
}

#[test]
fn every_target_of_a_release_is_built_and_packed() {
    let release = project_file(".github/workflows/release.yml");
    let built: Vec<&str> = release.lines().filter_map(|line| line.trim().strip_prefix("- target: ")).collect();
    assert_eq!(built, TARGETS);
    let pack = project_file(".release/pack");
    for target in TARGETS {
        let case = target.replace("-musl", "-*");
        assert!(pack.contains(&format!("    {case})")), "{case}");
    }
    let manifest = project_file("Cargo.toml");
    let value = |key: &str| {
        let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = "))).unwrap();
        line.trim_matches('"').replace("{ name }", "spektacular").replace("{ version }", VERSION)
    };
    // As .release/pack names them.
    assert!(pack.contains("name=spektacular-$version-$target\n") && pack.contains("\"$out/$name.tar.gz\""));
    assert!(value("pkg-url").ends_with(&format!("/v{VERSION}/spektacular-{VERSION}-{{ target }}.tar.gz")));
    assert_eq!(value("bin-dir"), format!("spektacular-{VERSION}-{{ target }}/{{ bin }}"));
}

#[test]
fn the_actions_of_a_release_are_pinned_by_commit() {
    let release = project_file(".github/workflows/release.yml");
    let uses: Vec<&str> =
        release.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action).collect();
    assert!(uses.len() > 6, "{uses:?}");
    for action in uses {
        let (_, pin) = action.split_once('@').unwrap();
        let (commit, version) = pin.split_once(" # v").unwrap();
        let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_commit && version.starts_with(|digit: char| digit.is_ascii_digit()), "{action}");
    }
}

#[test]
fn the_page_installs_the_archive_of_this_version() {
    let page = project_file(".github/CONTRIBUTING.md");
    let archive = format!("spektacular-{VERSION}-x86_64-unknown-linux-musl");
    let install = [
        format!("    sha256sum -c {archive}.tar.gz.sha256\n"),
        format!("    tar -xzf {archive}.tar.gz\n"),
        format!("    sudo install {archive}/spektacular /usr/local/bin/\n"),
    ];
    assert!(page.contains(&install.concat()), "{install:?}");
    for (page, file) in [(project_file("README.md"), ".release/Dockerfile"), (page, ".release/pack")] {
        assert!(page.contains(file) && !project_file(file).is_empty());
    }
}

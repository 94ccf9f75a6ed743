//! Tests of `--worktree`: the run's agent works in a checkout of its own, and nothing of the user's is lost or run.

use crate::support::agent::Script;
use crate::support::person::CTRL_C;
use crate::support::{Case, io, limit, list, read};
use crate::workflow_implement::{PLAN, phase, plan, project};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[track_caller]
fn git(case: &Case, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(case.work()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commit_all(case: &Case) {
    git(case, &["add", "-A"]);
    git(case, &["commit", "-q", "--allow-empty", "-m", "all"]);
}

/// A project in a repository with a commit, and an agent that does this in the shell.
fn repository(work: &str) -> Case {
    let script = if work.is_empty() { Script::new() } else { Script::new().sh(work) };
    let case = Case::with(script.done("ok")).git().file("work/.spektacular/config.json", "{}\n");
    fs::write(case.work().join("old.txt"), "old\n").unwrap();
    commit_all(&case);
    case
}

fn worktree(case: &Case, name: &str) -> PathBuf {
    case.work().join(".spektacular/local/worktrees").join(name)
}

/// The number of worktrees, and the branches of runs.
fn state(case: &Case) -> (usize, String) {
    let trees = git(case, &["worktree", "list", "--porcelain"]).matches("worktree ").count();
    (trees, git(case, &["branch", "--format=%(refname:short)", "--list", "spektacular/*"]))
}

#[test]
fn the_work_is_in_the_worktree_and_the_commands_for_it_are_shown() {
    let case = repository("echo new >new.txt; echo changed >old.txt");
    let did = case.run(&["adhoc", "--worktree=fix", "--output", "json", "Fix", "it"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let frames: Vec<Value> = did.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = worktree(&case, "fix");
    assert_eq!(frames[0]["payload"]["config"]["cwd"], path.to_str().unwrap());
    let artifacts = &frames.last().unwrap()["payload"]["artifacts"];
    assert_eq!(
        artifacts,
        &json!([{"path": "new.txt", "action": "created"}, {"path": "old.txt", "action": "modified"}])
    );
    assert_eq!((read(&path.join("new.txt")), read(&path.join("old.txt"))), ("new\n".into(), "changed\n".into()));
    assert!(!case.work().join("new.txt").exists() && read(&case.work().join("old.txt")) == "old\n");
    assert_eq!(git(&case, &["status", "--porcelain"]), "", "git ignores the worktree");
    assert_eq!(state(&case), (2, "spektacular/fix\n".into()));

    // Each command works as it is shown, and the last one leaves nothing.
    let shown = |name: &str| {
        let line = did.err.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {}", did.err)).trim().to_owned()
    };
    let sh = |command: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-c", command]).current_dir("/").env("HOME", case.path("home")).env("GIT_EDITOR", "echo done >");
        let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let output = sh.envs(identity.map(|name| (name, "t@example.invalid"))).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(sh(&shown("look")).contains("new.txt"));
    sh(&shown("merge"));
    assert_eq!(read(&case.work().join("new.txt")), "new\n");
    sh(&shown("remove"));
    assert_eq!(state(&case), (1, String::new()));
}

#[test]
fn a_worktree_without_work_is_removed() {
    let case = repository("");
    for output in ["cli", "json"] {
        let did = case.run(&["adhoc", "--output", output, "--worktree", "Look", "around"]);
        assert_eq!(did.code, Some(0), "{did:?}");
        assert!(did.err.contains("had no changes and was removed"), "{}", did.err);
        assert!(!did.err.contains("--continue"), "nothing is left to continue: {}", did.err);
        assert_eq!(state(&case), (1, String::new()));
        assert_eq!(fs::read_dir(worktree(&case, "")).unwrap().count(), 0);
    }
}

/// The name must stand after `=`, so that no word of a prompt is taken for it.
#[test]
fn the_next_word_is_part_of_the_prompt() {
    let case = repository("echo new >new.txt");
    let mut session = case.args(&["--worktree", "Fix", "it"]).spawn();
    session.close_stdin();
    // With this flag, a run that succeeds writes to stderr.
    let outcome = session.finish_unchecked();
    outcome.completed();
    assert!(outcome.log().prompts()[0].contains("Fix it"), "{:?}", outcome.log().prompts());
    let names: Vec<_> = fs::read_dir(worktree(outcome.case(), "")).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].file_name().to_str().unwrap().starts_with("20"), "a generated name");
}

#[test]
fn work_of_any_kind_keeps_the_worktree() {
    let identity = "git -c user.name=t -c user.email=t@example.invalid";
    let commit = format!("{identity} commit -q --allow-empty -m mine");
    for (work, shown) in [
        ("echo x >ignored.log", "status"),
        (commit.as_str(), "log -p HEAD..spektacular/kept"),
        ("git switch -q --detach", "log -p"),
        ("rm old.txt", "status"),
        // The look cannot trust this one.
        ("rm .git", "status"),
    ] {
        let case = repository(work);
        fs::write(case.work().join(".gitignore"), "*.log\n").unwrap();
        commit_all(&case);
        let did = case.run(&["adhoc", "--worktree=kept", "Work"]);
        assert_eq!(did.code, Some(0), "{did:?}");
        let look = did.err.lines().find(|line| line.starts_with("  look")).unwrap_or_else(|| panic!("{}", did.err));
        assert!(look.contains(shown), "{work}: {look}");
        assert!(worktree(&case, "kept").is_dir(), "{work}");
    }
}

#[test]
fn a_name_that_is_taken_is_refused_with_the_way_on() {
    let case = repository("echo new >new.txt");
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let path = worktree(&case, "fix").display().to_string();
    for output in ["cli", "json"] {
        let did = case.run(&["adhoc", "--output", output, "--worktree=fix", "Work"]);
        let text = if output == "json" { &did.out } else { &did.err };
        assert_eq!(did.code, Some(2), "{did:?}");
        for part in
            [&format!("--cwd {path}"), &format!("git worktree remove --force {path}"), "The worktree fix exists"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    git(&case, &["branch", "spektacular/taken"]);
    let did = case.run(&["adhoc", "--worktree=taken", "Work"]);
    assert!(did.refused(2).contains("git branch -D spektacular/taken"), "{did:?}");
    // The worktree's own session continues in it.
    let did = case.run(&["adhoc", "--cwd", &path, "--continue", "More"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let did = case.run(&["adhoc", "--worktree=other", "--continue", "More"]);
    assert!(did.refused(2).contains("--continue or --worktree"), "{did:?}");
    for name in ["../x", "a/b", ".x", "x.", "a..b", "a.lock", "-x", "a b", &"x".repeat(65)] {
        let did = case.run(&["adhoc", &format!("--worktree={name}"), "Work"]);
        assert!(did.refused(2).contains("--worktree: a name has"), "{name}: {did:?}");
    }
}

#[test]
fn without_a_repository_or_a_commit_there_is_no_worktree() {
    let case = Case::with(Script::hello());
    assert!(case.run(&["adhoc", "--worktree", "Work"]).refused(2).contains("needs a git repository"));
    let case = Case::with(Script::hello());
    git(&case, &["init", "-q"]);
    assert!(case.run(&["adhoc", "--worktree", "Work"]).refused(2).contains("needs a commit"));
}

/// Outside projects, a run leaves nothing in the user's directory.
#[test]
fn without_a_spektacular_folder_the_worktree_is_in_the_state_folder() {
    let case = Case::with(Script::new().sh("echo new >new.txt").done("ok")).git();
    commit_all(&case);
    let before = git(&case, &["status", "--porcelain", "--ignored"]);
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert_eq!(git(&case, &["status", "--porcelain", "--ignored"]), before);
    let list = git(&case, &["worktree", "list"]);
    assert!(list.contains("/spektacular/worktrees/") && list.contains("/fix "), "{list}");
}

#[test]
fn uncommitted_changes_are_named_and_stay() {
    let case = repository("cat old.txt >seen.txt");
    fs::write(case.work().join("old.txt"), "not committed\n").unwrap();
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.err.matches("without the uncommitted changes").count(), 1, "{}", did.err);
    assert_eq!(read(&worktree(&case, "fix").join("seen.txt")), "old\n");
    assert_eq!(read(&case.work().join("old.txt")), "not committed\n");
}

#[test]
fn nothing_that_the_repository_configures_runs() {
    let case = repository("echo new >new.txt");
    let ran = case.path("ran");
    let program = case.path("evil.sh");
    crate::support::case::executable(&program, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display()).as_bytes(), 0o755);
    let program = program.to_str().unwrap();
    fs::write(case.work().join(".gitattributes"), "* filter=evil\n").unwrap();
    commit_all(&case);
    for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
        fs::copy(program, case.work().join(".git/hooks").join(hook)).unwrap();
    }
    for key in ["filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "core.sshCommand"] {
        git(&case, &["-c", "core.hooksPath=/dev/null", "config", key, program]);
    }
    let _ = fs::remove_file(&ran);
    let did = case.run(&["adhoc", "--worktree=fix", "--output", "json", "Work"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(!ran.exists(), "a program of the repository ran");
    assert_eq!(read(&worktree(&case, "fix").join("old.txt")), "old\n");
}

/// A repository whose checkouts stop after this work in the shell, for longer than a stopped run may take. The file gets
/// the pid of git then.
fn slow_checkout(work: &str) -> (Case, PathBuf) {
    let case = repository("");
    let adding = case.path("adding");
    let slow = format!("case \"$*\" in *'worktree add'*) {work}; echo $$ >{}; sleep 600 ;; esac", adding.display());
    (case.program("git", &format!("#!/bin/sh\n{slow}\nexec /usr/bin/git \"$@\"\n")), adding)
}

/// The stages in which a checkout can be interrupted: before git did anything, in the middle, and at the end.
const STAGES: [&str; 3] = [
    ":",
    "/usr/bin/git \"$@\"; d=.git/worktrees/fix; echo initializing >$d/locked; echo >$d/index.lock; \
     rm .spektacular/local/worktrees/fix/old.txt",
    "/usr/bin/git \"$@\"",
];

fn is_adding(adding: &Path) -> bool {
    fs::read_to_string(adding).is_ok_and(|text| text.ends_with('\n'))
}

#[test]
fn a_signal_during_the_checkout_ends_the_run_and_leaves_nothing() {
    for stage in STAGES {
        let (case, adding) = slow_checkout(stage);
        let session = case.args(&["--worktree=fix"]).spawn();
        session.wait_until("git", || is_adding(&adding));
        session.signal(Signal::TERM);
        let outcome = session.finish_unchecked();
        outcome.cancelled();
        assert!(!outcome.stderr.contains("is not complete"), "{}", outcome.stderr);
        let git = read(&adding);
        assert!(!Path::new("/proc").join(git.trim()).exists(), "git runs on");
        assert_eq!(state(outcome.case()), (1, String::new()), "{stage}");
        assert!(!worktree(outcome.case(), "fix").exists(), "{stage}");
    }
}

#[test]
fn ctrl_c_during_the_checkout_cancels_the_run_and_leaves_nothing() {
    for stage in STAGES {
        let (case, adding) = slow_checkout(stage);
        let mut person = case.at_terminal(&["adhoc", "--worktree=fix", "Work"]);
        assert!(io::wait_for(limit(), || is_adding(&adding)), "no checkout");
        person.waits_for("into the worktree fix: ");
        person.types(CTRL_C);
        let (code, seen) = person.ends();
        assert_eq!((code, seen.matches("spektacular: cancelled").count()), (130, 1), "{seen}");
        assert!(person.echo());
        assert_eq!(state(&person.case), (1, String::new()), "{stage}");
        assert!(!worktree(&person.case, "fix").exists(), "{stage}");
    }
}

#[test]
fn a_checkout_that_fails_leaves_nothing() {
    let case = repository("");
    let case = case.program(
        "git",
        "#!/bin/sh\ncase \"$*\" in *'worktree add'*) /usr/bin/git \"$@\"; echo fatal: no space >&2; exit 128 ;; esac\n\
         exec /usr/bin/git \"$@\"\n",
    );
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.code, Some(2), "{did:?}");
    assert!(did.err.contains("git cannot make the worktree fix: fatal: no space"), "{}", did.err);
    assert_eq!(state(&case), (1, String::new()));
    assert!(!worktree(&case, "fix").exists());
}

/// A message decides for itself where its run takes place.
#[test]
fn the_cwd_of_run_start_goes_before_the_worktree() {
    let case = repository("echo new >new.txt");
    let cwd = case.path("home").display().to_string();
    let mut session = case.args(&["--worktree=fix"]).spawn();
    session.start(json!({"cwd": cwd}));
    let outcome = session.finish_unchecked();
    outcome.completed();
    assert_eq!(outcome.frames[0].payload()["config"]["cwd"], cwd);
    assert!(outcome.stderr.contains("was removed"), "{}", outcome.stderr);
    assert_eq!(state(outcome.case()), (1, String::new()));
}

#[test]
fn implement_works_on_the_plan_of_the_worktree() {
    let case = project(&plan(&[phase(1, &["test -e made"], "")]), "echo code >made; echo said").git();
    commit_all(&case);
    let did = case.run(&["implement", "--worktree=build", "--allow-verify", "--output", "json", "greeting"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let last: Value = serde_json::from_str(did.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["payload"]["workflow"]["complete"], true, "{last}");
    assert_eq!(list(&last["payload"]["artifacts"]), &[json!({"path": "made", "action": "created"})], "{last}");
    let tree = worktree(&case, "build");
    assert!(read(&tree.join(PLAN)).contains("- [x] T1.1") && tree.join("made").exists());
    assert!(read(&case.work().join(PLAN)).contains("- [ ] T1.1") && !case.work().join("made").exists());
    // A plan that is not committed is not there.
    let case = project(&plan(&[phase(1, &["true"], "")]), "echo said").git();
    git(&case, &["rm", "-q", "--cached", PLAN]);
    git(&case, &["commit", "-q", "-m", "without the plan"]);
    let did = case.run(&["implement", "--worktree", "--allow-verify", "greeting"]);
    assert_eq!(did.code, Some(2), "{did:?}");
    assert!(
        did.err.contains("without the uncommitted changes") && did.err.contains("The plan greeting"),
        "{}",
        did.err
    );
    assert_eq!(state(&case), (1, String::new()));
}

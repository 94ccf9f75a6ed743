//! Tests of `--worktree`: the run's agent works in a checkout of its own, and nothing of the user's is lost or run.

use crate::support::agent::Script;
use crate::support::person::CTRL_C;
use crate::support::{Case, Outcome, io, limit, list, procs, read};
use crate::workflows::implement::{PLAN, phase, plan, project};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[track_caller]
pub(crate) fn git(case: &Case, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(case.work()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn commit_all(case: &Case) {
    git(case, &["add", "-A"]);
    git(case, &["commit", "-q", "--allow-empty", "-m", "all"]);
}

/// A project in a repository with a commit, and an agent that does this in the shell.
pub(crate) fn repository(work: &str) -> Case {
    let script = if work.is_empty() { Script::new() } else { Script::new().sh(work) };
    let case = Case::with(script.done("ok")).git().file("work/.spektacular/config.json", "{}\n");
    fs::write(case.work().join("old.txt"), "old\n").unwrap();
    commit_all(&case);
    case
}

/// The folder of all worktrees.
fn worktrees(case: &Case) -> PathBuf {
    case.path("home/.local/state/spektacular/worktrees")
}

/// The path of a worktree: its name and four digits for its repository.
pub(crate) fn worktree(case: &Case, name: &str) -> PathBuf {
    let entries = fs::read_dir(worktrees(case)).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        file.strip_prefix(name).is_some_and(|rest| rest.len() == 5 && rest.starts_with('-'))
    };
    entries.into_iter().find(is_it).unwrap_or_else(|| worktrees(case).join(format!("{name}-none")))
}

/// The number of worktrees, and the branches of runs.
pub(crate) fn state(case: &Case) -> (usize, String) {
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
    assert_eq!(git(&case, &["status", "--porcelain"]), "");
    assert_eq!(state(&case), (2, "spektacular/fix\n".into()));

    // Each command works as it is shown, and the last one leaves nothing.
    let sh = |name: &str| sh(&case, &shown(&did.err, name)).unwrap();
    assert!(sh("look").contains("new.txt"));
    sh("commit");
    sh("merge");
    assert_eq!(read(&case.work().join("new.txt")), "new\n");
    sh("remove");
    assert_eq!(state(&case), (1, String::new()));
}

/// The commands on the closing line with this name.
#[track_caller]
fn shown(closing: &str, name: &str) -> String {
    let line = closing.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name}: {closing}")).trim().to_owned()
}

/// Runs shown commands. Returns their output, or their errors if they fail.
#[track_caller]
fn sh(case: &Case, command: &str) -> Result<String, String> {
    let mut sh = Command::new("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_spektacular")).parent().unwrap().display();
    sh.args(["-c", command]).current_dir("/").env("HOME", case.path("home")).env("GIT_EDITOR", "echo done >");
    sh.env("PATH", format!("{program}:/usr/bin:/bin")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let output = sh.envs(identity.map(|name| (name, "t@example.invalid"))).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn the_closing_lines_are_about_the_real_head_and_lose_no_commit() {
    let commit = "echo new >new.txt; git add -A; git -c user.name=t -c user.email=t@example.invalid commit -qm new";
    for (switch, place) in [
        ("git switch -qc 'feature/$x'", "is on the branch feature/$x at "),
        ("git switch -q --detach", "is detached at "),
        (":", "is on the branch spektacular/fix at "),
    ] {
        let case = repository(&format!("{switch}; {commit}"));
        let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
        assert!(did.code == Some(0) && did.err.contains(place), "{did:?}");
        let made = git(&case, &["-C", worktree(&case, "fix").to_str().unwrap(), "rev-parse", "HEAD"]);
        assert!(sh(&case, &shown(&did.err, "look")).unwrap().contains(" new\n"), "{switch}");
        if switch.contains("detach") {
            // Its commit would be lost.
            assert!(sh(&case, &shown(&did.err, "remove")).unwrap_err().contains("is detached"));
            assert!(worktree(&case, "fix").exists(), "{switch}");
        }
        sh(&case, &shown(&did.err, "merge")).unwrap();
        git(&case, &["merge-base", "--is-ancestor", made.trim(), "HEAD"]);
        sh(&case, &shown(&did.err, "remove")).unwrap();
        assert_eq!(state(&case), (1, String::new()), "{switch}");
    }
}

/// The repository of a submodule lies in git's data of the worktree, and goes with it.
#[test]
fn no_command_removes_a_submodule_that_the_agent_made() {
    let update = "git -c protocol.file.allow=always submodule update --init -q";
    let commit = "git -C sub -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m new";
    let reset = "git submodule update -q; git submodule deinit -q sub";
    let empty = "test -e sub/.git && exit 1; true";
    for work in [format!("{empty}; {update}; {commit}; {reset}"), format!("{empty}; {update}; {commit}")] {
        let case = repository(&work);
        let inner = case.path("inner").display().to_string();
        fs::create_dir(&inner).unwrap();
        git(&case, &["init", "-q", &inner]);
        git(&case, &["-C", &inner, "commit", "-q", "--allow-empty", "-m", "inner"]);
        git(&case, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &inner, "sub"]);
        commit_all(&case);
        git(&case, &["submodule", "--quiet", "deinit", "sub"]);
        fs::remove_dir_all(case.work().join(".git/modules/sub")).unwrap();
        let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
        assert!(did.err.contains("are empty, because filling them needs the network: sub\n"), "{did:?}");
        assert!(did.code == Some(0) && did.err.contains("push what is new in its submodules"), "{work}: {did:?}");
        assert!(sh(&case, &shown(&did.err, "remove")).is_err(), "{work}");
        assert!(case.run(&["worktrees", "rm", "fix", "--force"]).refused(2).contains("push or move them"), "{work}");
        assert!(worktree(&case, "fix").exists());
    }
}

#[test]
fn worktrees_are_made_and_removed_in_parallel() {
    let case = project(&plan(&[phase(1, &["true"], "")]), "case $P in *Keep*) touch new;; esac").git();
    // git fails if it finds the data of a worktree that another git is just making or removing.
    let busy = case.path("busy").display().to_string();
    let alone = format!(
        "mkdir {busy} || {{ echo fatal: failed to read commondir >&2; exit 128; }}; sleep 0.05; /usr/bin/git \"$@\"; \
         code=$?; rmdir {busy}; exit $code"
    );
    let git = format!("case \"$*\" in *'worktree add'*|*'worktree remove'*) {alone} ;; esac\nexec /usr/bin/git \"$@\"");
    let case = case.program("git", &format!("#!/bin/sh\n{git}\n"));
    let run = |n: usize| {
        let word = if n.is_multiple_of(2) { "Keep" } else { "Work" };
        let did = case.run(&["adhoc", &format!("--worktree=w{n}"), "--no-session", word]);
        assert_eq!(did.code, Some(0), "{did:?}");
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|n| scope.spawn(move || run(n))).collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
    });
    let (trees, branches) = state(&case);
    assert_eq!((trees, branches.lines().count()), (3, 2), "{branches}");
}

#[test]
fn a_session_with_a_name_is_found_from_the_repository() {
    let case = repository("pwd >>\"$LOG\"; touch new");
    let log = case.path("places");
    let case = case.env("LOG", log.to_str().unwrap());
    for flags in [&["--worktree=fix", "--name", "mine"][..], &["--session", "mine"]] {
        let did = case.run(&[&["adhoc"], flags, &["Work"]].concat());
        assert_eq!(did.code, Some(0), "{did:?}");
    }
    let tree = format!("{}\n", worktree(&case, "fix").display());
    assert_eq!(read(&log), tree.repeat(2));
}

#[test]
fn a_folder_that_is_no_worktree_is_not_offered_as_one() {
    let case = repository("echo new >new.txt");
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let path = worktree(&case, "fix");
    assert_eq!(case.run(&["worktrees", "rm", "fix", "--force"]).code, Some(0));
    fs::create_dir_all(path).unwrap();
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    let error = did.refused(2);
    assert!(error.contains("is not a worktree of this repository") && !error.contains("--cwd"), "{error}");
}

/// A hook of the repository may start the run, with variables that lead git to the person's work tree.
#[test]
fn from_a_hook_the_agent_commits_in_the_worktree() {
    let case =
        repository("echo new >new.txt; git add -A; git -c user.name=t -c user.email=t@example.invalid commit -qm new");
    let head = git(&case, &["rev-parse", "HEAD"]);
    let at = case.work();
    let case = case.env("GIT_DIR", &at.join(".git").display().to_string());
    let case = case.env("GIT_INDEX_FILE", &at.join(".git/index").display().to_string());
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert_eq!((git(&case, &["rev-parse", "HEAD"]), git(&case, &["status", "--porcelain"])), (head, String::new()));
    assert_eq!(git(&case, &["log", "-1", "--format=%s", "spektacular/fix"]), "new\n");
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
        assert_eq!(fs::read_dir(worktrees(&case)).unwrap().count(), 0);
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
    let names: Vec<_> = fs::read_dir(worktrees(outcome.case())).unwrap().map(|entry| entry.unwrap()).collect();
    let names: Vec<_> = names.into_iter().filter(|entry| entry.path().is_dir()).collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].file_name().to_str().unwrap().starts_with("20"), "a generated name");
}

#[test]
fn work_of_any_kind_keeps_the_worktree() {
    let identity = "git -c user.name=t -c user.email=t@example.invalid";
    let commit = format!("{identity} commit -q --allow-empty -m mine");
    for (work, line) in [
        ("echo x >ignored.log", "0 commits to merge, 0 files to commit"),
        (commit.as_str(), "1 commit to merge, 0 files to commit"),
        ("git switch -q --detach", "detached at"),
        ("rm old.txt", "0 commits to merge, 1 file to commit"),
        // The look cannot trust this one.
        ("rm .git", "is unreadable"),
    ] {
        let case = repository(work);
        fs::write(case.work().join(".gitignore"), "*.log\n").unwrap();
        commit_all(&case);
        let did = case.run(&["adhoc", "--worktree=kept", "Work"]);
        assert_eq!(did.code, Some(0), "{did:?}");
        let look = sh(&case, &shown(&did.err, "look")).unwrap();
        assert!(look.contains(line), "{work}: {look}");
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
        for part in [format!("--cwd {path}").as_str(), "spektacular worktrees rm fix", "The worktree fix exists"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    git(&case, &["branch", "spektacular/taken"]);
    let did = case.run(&["adhoc", "--worktree=taken", "Work"]);
    assert!(did.refused(2).contains("git branch -d spektacular/taken"), "{did:?}");
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
    assert!(case.run(&["adhoc", "--worktree", "Work"]).refused(2).contains("needs git and a git repository"));
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
    assert!(list.contains("/spektacular/worktrees/fix-"), "{list}");
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
    let config = |file: &str, key: &str, value: &str| {
        git(&case, &["-c", "core.hooksPath=/dev/null", "config", "-f", file, key, value]);
    };
    for key in ["filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "core.sshCommand"] {
        config(".git/config", key, program);
    }
    // Files that git includes only in the worktree.
    let included = case.path("included").display().to_string();
    for key in ["filter.more.smudge", "filter.more.clean", "filter.more.process"] {
        config(&included, key, program);
    }
    for condition in ["onbranch:spektacular/**", "gitdir:**/worktrees/**"] {
        config(".git/config", &format!("includeIf.{condition}.path"), &included);
    }
    for filter in ["evil", "more"] {
        fs::write(case.work().join(".gitattributes"), format!("* filter={filter}\n")).unwrap();
        git(&case, &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "add", "-A"]);
        git(
            &case,
            &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "commit", "-q", "--allow-empty", "-m", filter],
        );
        let _ = fs::remove_file(&ran);
        let did = case.run(&["adhoc", &format!("--worktree={filter}"), "--output", "json", "Work"]);
        assert_eq!(did.code, Some(0), "{did:?}");
        assert!(!ran.exists(), "a program of the repository ran: {filter}");
        assert_eq!(read(&worktree(&case, filter).join("old.txt")), "old\n");
    }
}

#[test]
fn nothing_that_a_repository_of_the_agents_configures_runs() {
    let make = "git init -q app; cd app; echo '* filter=evil' >.gitattributes; echo 1 >in; git add .; \
                git -c user.name=t -c user.email=t@example.invalid commit -qm app; git config filter.evil.clean \"$EVIL\"; \
                git config filter.evil.smudge \"$EVIL\"; sleep 0.02; echo 2 >in; cd ..";
    for more in [":", "git add app", "git add app; git -c user.name=t -c user.email=t@example.invalid commit -qm app"] {
        let case = repository(&format!("{make}; {more}"));
        let (ran, program) = (case.path("ran"), case.path("evil.sh"));
        let text = format!("#!/bin/sh\ntouch {}\ncat\n", ran.display());
        crate::support::case::executable(&program, text.as_bytes(), 0o755);
        let case = case.env("EVIL", program.to_str().unwrap());
        let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
        assert_eq!(did.code, Some(0), "{did:?}");
        assert!(!ran.exists(), "a program of the agent's ran: {more}");
        assert!(worktree(&case, "fix").join("app/in").exists());
    }
}

/// A repository whose checkouts stop after this work in the shell, for longer than a stopped run may take. The file gets
/// the pid of git then.
pub(crate) fn slow_checkout((step, work): (&str, &str)) -> (Case, PathBuf) {
    let case = repository("");
    let adding = case.path("adding");
    let slow = format!("case \"$*\" in *'{step}'*) {work}; echo $$ >{}; sleep 600 ;; esac", adding.display());
    (case.program("git", &format!("#!/bin/sh\n{slow}\nexec /usr/bin/git \"$@\"\n")), adding)
}

/// The stages in which a checkout can be interrupted: for both of its steps, before git did anything, in the middle, and
/// at the end.
const STAGES: [(&str, &str); 5] = [
    ("worktree add", ":"),
    ("worktree add", "/usr/bin/git \"$@\"; echo initializing >.git/worktrees/fix/locked"),
    ("worktree add", "/usr/bin/git \"$@\""),
    ("reset --hard", "/usr/bin/git \"$@\"; echo >$(/usr/bin/git rev-parse --git-dir)/index.lock; rm old.txt"),
    ("reset --hard", "/usr/bin/git \"$@\""),
];

pub(crate) fn is_adding(adding: &Path) -> bool {
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
        assert_eq!(state(outcome.case()), (1, String::new()), "{stage:?}");
        assert!(!worktree(outcome.case(), "fix").exists(), "{stage:?}");
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
        assert_eq!(state(&person.case), (1, String::new()), "{stage:?}");
        assert!(!worktree(&person.case, "fix").exists(), "{stage:?}");
    }
}

#[test]
fn a_checkout_that_fails_leaves_nothing() {
    for step in ["worktree add", "reset --hard"] {
        let fails = format!("*'{step}'*) /usr/bin/git \"$@\"; echo fatal: no space >&2; exit 128 ;;");
        let git = format!("#!/bin/sh\ncase \"$*\" in {fails} esac\nexec /usr/bin/git \"$@\"\n");
        let case = repository("").program("git", &git);
        let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
        assert_eq!(did.code, Some(2), "{did:?}");
        assert!(did.err.contains("git cannot make the worktree fix: fatal: no space"), "{}", did.err);
        assert_eq!(state(&case), (1, String::new()));
        assert!(!worktree(&case, "fix").exists());
    }
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
    for argument in ["greeting", PLAN] {
        let did = case.run(&["implement", "--worktree", "--allow-verify", argument]);
        assert_eq!(did.code, Some(2), "{did:?}");
        assert!(did.err.contains(&format!("{PLAN} is not committed")), "{}", did.err);
        assert_eq!(state(&case), (1, String::new()));
    }
}

#[test]
fn the_shown_command_continues_a_failed_implement_in_its_worktree() {
    let agent = "echo x >>made; echo said";
    for argument in ["greeting", PLAN] {
        let case = project(&plan(&[phase(1, &["test $(wc -l <made) = 2"], "")]), agent).git();
        commit_all(&case);
        let flags = ["--worktree=build", "--allow-verify", "--attempts=1", "--agent", "cmd"];
        let did = case.run(&[&["implement"], &flags[..], &[argument]].concat());
        assert_eq!(did.code, Some(1), "{did:?}");
        assert!(
            !did.err.contains("same command") && did.err.contains("the command that the last lines"),
            "{}",
            did.err
        );
        let shown = shown(&did.err, "continue");
        let tree = worktree(&case, "build");
        let at = if argument == PLAN { tree.join(PLAN).display().to_string() } else { argument.to_owned() };
        let flags = "--allow-verify --attempts 1 --agent cmd";
        let wanted = format!("spektacular implement {flags} --cwd {} {at}", tree.display());
        assert_eq!(shown, wanted);
        let words: Vec<&str> = shown.split(' ').skip(1).collect();
        let did = case.run(&words);
        assert_eq!(did.code, Some(0), "{did:?}");
        assert!(read(&tree.join(PLAN)).contains("- [x] T1.1"));
    }
}

/// Who continues wants the same limits and permissions, but no line shows a value that may be secret.
#[test]
fn the_shown_command_has_all_flags_that_matter() {
    let case = project(&plan(&[phase(1, &["test -e made"], "")]), "echo said").git();
    commit_all(&case);
    let flags = ["--allow-verify", "--permissions", "read=allow,*=deny", "--timeout=60", "--max-phases", "1", "-y"];
    let secret = ["--env", "TOKEN=hunter2-Zq7731", "--secret", "hunter2-Zq7731", "--env", "MORE=1"];
    let here = ["--worktree=build", "--cwd", ".", "--quiet", "greeting"];
    let did = case.run(&[&["implement", "--commit"], &flags[..], &secret, &here].concat());
    assert_eq!(did.code, Some(1), "{did:?}");
    let kept = "--commit --allow-verify --permissions 'read=allow,*=deny' --timeout 60 --max-phases 1 --yes --quiet";
    let tree = worktree(&case, "build").display().to_string();
    assert_eq!(shown(&did.err, "continue"), format!("spektacular implement {kept} --cwd {tree} greeting"));
    assert!(did.err.contains("\n            and add --env and --secret as before\n"), "{}", did.err);
    assert!(!did.err.contains("hunter2"), "{}", did.err);
}

#[test]
fn a_plan_that_cannot_be_written_in_a_worktree_names_the_shown_command() {
    let folder = ".spektacular/plans/greeting";
    let agent = format!("touch made; mv {folder} elsewhere; ln -s \"$PWD/elsewhere\" {folder}");
    let case = project(&plan(&[phase(1, &["test -e made"], "")]), &agent).git();
    commit_all(&case);
    let did = case.run(&["implement", "--worktree=build", "--allow-verify", "greeting"]);
    let message = did.err.lines().find(|line| line.contains("resource_exhausted")).unwrap_or_else(|| panic!("{did:?}"));
    assert!(message.contains("then run the command that the last lines on stderr show"), "{message}");
}

/// A repository whose git never ends in these calls, once the file `busy` exists. Notes each of them in `calls`.
fn stuck(work: &str, calls: &str) -> Case {
    let case = repository(work);
    let at = case.path("").display().to_string();
    let stuck =
        format!("[ -e {at}/busy ] && case \"$*\" in {calls}) echo $$ \"$*\" >>{at}/calls; exec sleep 1000;; esac");
    case.script("bin/git", &format!("{stuck}\nPATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\""))
}

fn calls(case: &Case) -> String {
    fs::read_to_string(case.path("calls")).unwrap_or_default()
}

/// A stopped run ends in time, with its own exit code, although git takes longer.
#[test]
fn a_stopped_run_names_what_git_did_not_complete() {
    // The checkout and the removal of its worktree.
    let case = stuck("", "*'reset --hard'*|*'worktree remove'*").file("busy", "");
    let session = case.args(&["--worktree=fix", "--prompt", "go"]).spawn();
    session.wait_until("the checkout", || calls(&session.case).contains("reset"));
    session.signal(Signal::TERM);
    session.wait_until("the removal", || calls(&session.case).contains("remove"));
    let outcome = session.finish();
    outcome.cancelled();
    assert!(outcome.stderr.contains("spektacular worktrees rm fix"), "{}", outcome.stderr);
    is_over(&outcome);

    // The look at the work, and the removal after it.
    for (hangs, closing) in
        [("*status*", "the worktree fix cannot be read"), ("*'worktree remove'*", "spektacular worktrees rm fix")]
    {
        let mut session = stuck("listen", hangs).args(&["--worktree=fix", "--prompt", "go"]).spawn();
        session.until("run.started");
        fs::write(session.case.path("busy"), "").unwrap();
        session.signal(Signal::TERM);
        // The closing lines are longer than those of a run without a worktree.
        let outcome = session.finish_unchecked();
        outcome.cancelled();
        assert_eq!(outcome.exit_code, Some(0), "{hangs}");
        assert!(outcome.stderr.contains(closing), "{hangs}: {}", outcome.stderr);
        is_over(&outcome);
    }
}

/// Waits for the end of the git that did not end by itself.
#[track_caller]
fn is_over(outcome: &Outcome) {
    let calls = calls(outcome.case());
    let pids: Vec<i32> = calls.lines().map(|call| call.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(!pids.is_empty());
    assert!(io::wait_for(limit(), || !pids.iter().copied().any(procs::alive)), "{calls}");
}

//! Tests of `implement` with work that only another repository can commit, and with an agent that moves HEAD.

use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Case, Outcome, run};
use crate::workflows::implement::{allowed, phase, plan, project, report, states};

#[track_caller]
fn git(at: &Path, args: &[&str]) -> String {
    let mut git = Command::new("/usr/bin/git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]);
    let output = git.args(args).current_dir(at).env_clear().env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A clean repository on the branch main, with a plan of one phase that this command verifies. `$D/more`: whether the
/// agent does nothing any more.
fn repository(command: &str, agent: &str) -> Case {
    let agent = format!("[ -e \"$D/more\" ] && exit; {agent}; echo said");
    let case = project(&plan(&[phase(1, &[command], "")]), &agent).git();
    git(&case.work(), &["branch", "-M", "main"]);
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    names.iter().fold(case, |case, name| case.env(name, "t@example.org"))
}

/// The same with the submodule `sub`, which holds the file `in`.
fn with_submodule(command: &str, agent: &str) -> Case {
    let case = repository(command, agent);
    let inner = case.path("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("in"), "in\n").unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["add", "."]);
    git(&inner, &["commit", "-qm", "inner"]);
    git(&case.work(), &["submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    git(&case.work(), &["commit", "-qm", "with a submodule"]);
    case
}

/// A run with commits that fails because of work elsewhere. Each of `names` is in its message and in its warning.
#[track_caller]
fn refused(case: Case, names: &[&str]) -> Outcome {
    let head = git(&case.work(), &["rev-parse", "HEAD"]);
    let outcome = run(case, allowed(json!({"commit": true})));
    let failed = outcome.failed("commit_failed");
    let warnings = outcome.warnings("not_committed");
    assert_eq!(warnings.len(), 1);
    for name in names {
        assert!(failed["message"].as_str().unwrap().contains(name), "{name}: {failed}");
        assert!(warnings[0].text("text").contains(name), "{name}: {}", warnings[0].text("text"));
    }
    assert_eq!(git(&outcome.case().work(), &["rev-parse", "HEAD"]), head, "nothing is committed");
    fs::write(outcome.case().path("log/more"), "").unwrap();
    outcome
}

/// The same command again. Returns whether it succeeded.
fn again(first: &Outcome) -> bool {
    first.case().run(&["implement", "--allow-verify", "--commit", "greeting"]).code == Some(0)
}

const INNER_COMMIT: &str = "git -C sub -c user.name=t -c user.email=t commit -qam more";

#[test]
fn a_submodule_goes_in_by_its_new_commit() {
    let case = with_submodule("grep more sub/in", &format!("echo more >sub/in; {INNER_COMMIT}"));
    let outcome = run(case, allowed(json!({"commit": true})));
    outcome.completed();
    let work = outcome.case().work();
    let inner = git(&work.join("sub"), &["rev-parse", "HEAD"]);
    assert!(git(&work, &["ls-tree", "HEAD", "sub"]).contains(inner.trim()));
    assert_eq!(git(&work, &["status", "--porcelain", "--", ":!.spektacular"]), "");
}

#[test]
fn a_phase_whose_work_is_in_a_submodule_waits_for_the_commit_there() {
    for agent in ["echo more >sub/in", &format!("touch sub/new; echo more >sub/in; {INNER_COMMIT}")] {
        let name = if agent.contains("new") { "sub/new" } else { "sub/in" };
        let first = refused(with_submodule("grep more sub/in", agent), &[name]);
        assert!(!again(&first), "it waits");
        let work = first.case().work();
        git(&work.join("sub"), &["add", "-A"]);
        git(&work.join("sub"), &["commit", "-qm", "mine"]);
        let inner = git(&work.join("sub"), &["rev-parse", "HEAD"]);
        assert!(again(&first));
        assert!(git(&work, &["ls-tree", "HEAD", "sub"]).contains(inner.trim()));
        assert_eq!(git(&work, &["log", "-1", "--format=%s"]), "greeting: phase 1, Part 1\n");
    }
}

#[test]
fn a_phase_whose_work_is_in_a_repository_of_its_own_is_not_committed_without_it() {
    let commit = "git -C app add .; git -C app -c user.name=t -c user.email=t commit -qm app";
    for agent in ["git init -q app; echo 1 >app/in", &format!("git init -q app; echo 1 >app/in; {commit}")] {
        let first = refused(repository("test -e app/in", agent), &["app/"]);
        assert!(!again(&first), "it waits");
        let work = first.case().work();
        fs::remove_dir_all(work.join("app/.git")).unwrap();
        assert!(again(&first));
        assert_eq!(git(&work, &["log", "-1", "--format=%s"]), "greeting: phase 1, Part 1\n");
        assert!(git(&work, &["ls-tree", "-r", "--name-only", "HEAD"]).contains("app/in"));
    }
}

#[test]
fn what_was_in_another_repository_before_does_not_matter() {
    let case = with_submodule("test -e made", "touch made");
    let work = case.work();
    git(&work, &["init", "-q", "own"]);
    fs::write(work.join("own/file"), "").unwrap();
    let outcome = run(case, allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(outcome.warnings("not_committed").len(), 0);
    assert_eq!(git(&work, &["status", "--porcelain", "--", ":!.spektacular"]), "?? own/\n");
    // A dirty submodule is a change, and kept out where that is allowed.
    let case = with_submodule("test -e made", "touch made sub/more");
    fs::write(case.work().join("sub/new"), "").unwrap();
    let start = |allow: bool| allowed(json!({"commit": true, "allow_dirty": allow}));
    let outcome = run(case, start(false));
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "dirty");
    let case = with_submodule("test -e made", "touch made sub/more");
    fs::write(case.work().join("sub/new"), "").unwrap();
    let outcome = run(case, start(true));
    outcome.completed();
    let warnings = outcome.warnings("not_committed");
    assert!(warnings.len() == 1 && warnings[0].text("text").ends_with(": sub"), "{}", warnings[0].text("text"));
}

/// As with Git LFS: the user's configuration has the filter, and git must ask it whether a file has changed.
#[test]
fn a_file_that_is_stored_through_a_filter_is_not_dirty() {
    let filter = "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n";
    let case = repository("test -e made", "touch made; echo more >>x.up").file("home/.gitconfig", filter);
    let (work, file) = (case.work(), case.work().join("x.up"));
    fs::write(work.join(".gitattributes"), "*.up filter=upper\n").unwrap();
    fs::write(&file, "text\n").unwrap();
    git(&work, &["-c", "filter.upper.clean=tr a-z A-Z", "add", "."]);
    git(&work, &["commit", "-qm", "filtered"]);
    assert_eq!(git(&work, &["show", "HEAD:x.up"]), "TEXT\n");
    // git no longer knows the file by its time.
    fs::File::options().write(true).open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let outcome = run(case, allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(git(&work, &["show", "HEAD:x.up"]), "TEXT\nMORE\n");
}

#[test]
fn the_first_ten_dirty_files_are_named() {
    let case = repository("true", ":");
    for n in 0..12 {
        fs::write(case.work().join(format!("file-{n:02}")), "").unwrap();
    }
    let outcome = run(case, allowed(json!({"commit": true})));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("file-00, file-01") && message.contains("file-09 and 2 more"), "{message}");
}

#[test]
fn work_in_another_repository_or_in_ignored_files_is_work() {
    for (agent, acts) in [
        ("echo >>sub/in", true),
        ("echo >>own/in", true),
        ("git init -q app$N", true),
        ("echo >>out/deep/log", true),
        ("rm -rf out/$N", true),
        ("cat own/in sub/in", false),
    ] {
        let case = with_submodule("false", agent);
        let work = case.work();
        git(&work, &["init", "-q", "own"]);
        for folder in ["out/deep", "out/1", "out/2", "out/3"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        for (file, text) in [("own/in", ""), ("out/deep/log", ""), (".gitignore", "out\n")] {
            fs::write(work.join(file), text).unwrap();
        }
        let outcome = run(case, allowed(json!({})));
        outcome.failed(if acts { "verification_failed" } else { "no_progress" });
        assert_eq!(states(&outcome).iter().any(|state| state.contains("verifying")), acts, "{agent}");
    }
}

const OWN_COMMIT: &str = "git -c user.name=t -c user.email=t commit -qm own";

/// The moves of HEAD that lose or divert work, and what the report says about the new place.
const MOVES: [(&str, &str); 4] = [
    ("git switch -qc feature; echo >made", "is now on the branch feature at"),
    ("git reset -q --hard HEAD~1; echo >made", "is now on the branch main at"),
    ("echo >made; git switch -q --detach", "is now detached at"),
    ("echo >made; git update-ref -d HEAD", "is now on the branch main, which has no commit"),
];

/// A repository with two commits.
fn moving(agent: &str) -> Case {
    let case = repository("test -e made", agent);
    git(&case.work(), &["commit", "-q", "--allow-empty", "-m", "two"]);
    case
}

#[test]
fn no_commit_is_made_where_the_agent_moved_head() {
    for (agent, place) in MOVES {
        let case = moving(agent);
        let commits = |at: &Path| git(at, &["rev-list", "--all", "--reflog", "--count"]);
        let before = commits(&case.work());
        let outcome = run(case, allowed(json!({"commit": true})));
        let failed = outcome.failed("commit_failed");
        let message = failed["message"].as_str().unwrap();
        assert!(message.contains("HEAD was on the branch main at ") && message.contains(place), "{message}");
        assert_eq!(report(&outcome)[0]["commit"], json!(null));
        if !agent.contains("update-ref") {
            assert_eq!(commits(&outcome.case().work()), before, "{agent}");
        }
    }
}

#[test]
fn without_commits_the_report_says_where_head_went() {
    for (agent, place) in MOVES {
        let outcome = run(moving(agent), allowed(json!({})));
        outcome.completed();
        let head = report(&outcome)[0]["head"].as_str().unwrap().to_owned();
        assert!(head.starts_with("HEAD was on the branch main at ") && head.contains(place), "{head}");
        let warnings = outcome.warnings("unexpected_change");
        assert!(warnings.len() == 1 && warnings[0].text("text").ends_with(&head), "{head}");
    }
}

/// The look at HEAD does not need a turn that ended well.
#[test]
fn the_report_says_where_a_failed_agent_left_head() {
    for (agent, place) in MOVES {
        let outcome = run(moving(&format!("{agent}; exit 3")), allowed(json!({})));
        outcome.failed("agent_error");
        let head = report(&outcome)[0]["head"].as_str().unwrap_or_default().to_owned();
        assert!(head.starts_with("HEAD was on the branch main at ") && head.contains(place), "{agent}: {head}");
        let warnings = outcome.warnings("unexpected_change");
        assert!(warnings.len() == 1 && warnings[0].text("text").ends_with(&head), "{head}");
    }
    // Nor does it need an end of the turn.
    let case = moving("git switch -qc feature; touch \"$D/moved\"; sleep 600");
    let moved = case.path("log/moved");
    let mut session = case.spawn();
    session.start(allowed(json!({})));
    session.wait_until("the move", || moved.exists());
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    assert!(report(&outcome)[0]["head"].as_str().unwrap_or_default().contains("is now on the branch feature at"));
    // Commits on top are no such move.
    let outcome = run(moving(&format!("echo >made; git add made; {OWN_COMMIT}; exit 3")), allowed(json!({})));
    outcome.failed("agent_error");
    assert_eq!(report(&outcome)[0].get("head"), None);
}

#[test]
fn a_head_that_is_where_it_was_or_has_more_commits_is_fine() {
    for agent in ["echo >made", "git switch -qc feature; echo >made; git switch -q main"] {
        let outcome = run(moving(agent), allowed(json!({"commit": true})));
        outcome.completed();
        assert_eq!(report(&outcome)[0].get("head"), None);
    }
    let outcome = run(moving(&format!("echo >made; git add made; {OWN_COMMIT}")), allowed(json!({"commit": true})));
    outcome.completed();
    let log = git(&outcome.case().work(), &["log", "--format=%s", "-2", "main"]);
    assert_eq!(log, "greeting: phase 1, Part 1\nown\n");
}

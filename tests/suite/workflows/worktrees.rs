//! Tests of `worktrees`, and of what a new worktree takes along.

use crate::support::agent::Script;
use crate::support::case::Did;
use crate::support::{Case, io, limit, read};
use crate::workflows::worktree::{commit_all, git, repository, state, worktree};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const COMMIT: &str = "git add -A; git -c user.name=t -c user.email=t@example.invalid commit -qm new";

fn listed(case: &Case) -> Vec<Value> {
    case.run(&["worktrees", "--output", "json"]).json(0)["worktrees"].as_array().unwrap().clone()
}

#[track_caller]
fn refused(case: &Case, args: &[&str], why: &str) {
    let did: Did = case.run(&[&["worktrees"], args].concat());
    let error = did.refused(2);
    assert!(error.contains(why), "{args:?}: {error}");
}

#[test]
fn a_worktree_is_listed_shown_merged_and_removed() {
    let case = repository(&format!("echo new >new.txt; {COMMIT}"));
    assert_eq!(listed(&case), Vec::<Value>::new());
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let path = worktree(&case, "fix");
    let head = git(&case, &["rev-parse", "spektacular/fix"]);
    let entry = json!({"name": "fix", "path": path.to_str().unwrap(), "state": "unmerged", "branch": "spektacular/fix",
                       "commit": head.trim(), "commits": 1, "changed": 0});
    assert_eq!(listed(&case), [entry]);
    let text = case.run(&["worktrees", "show", "fix"]).out;
    assert!(text.contains("1 commit to merge, 0 files to commit") && text.contains(" new\n"), "{text}");
    let did = case.run(&["worktrees", "merge", "fix"]);
    assert_eq!((did.code, read(&case.work().join("new.txt"))), (Some(0), "new\n".into()), "{did:?}");
    assert_eq!(listed(&case)[0]["state"], "merged");
    assert_eq!(case.run(&["worktrees", "rm", "fix"]).out, "removed fix\n");
    assert_eq!((state(&case), listed(&case).len()), ((1, String::new()), 0));
    assert!(!path.exists() && !path.with_added_extension("state").exists());
    refused(&case, &["rm", "fix"], "Unknown worktree fix. `spektacular worktrees` lists them.");
}

#[test]
fn no_removal_loses_a_commit_or_a_file() {
    let case = repository(&format!("echo new >new.txt; {COMMIT}; echo more >more.txt"));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    refused(&case, &["rm", "fix"], "1 file that nobody has committed");
    refused(&case, &["merge", "fix"], "1 file that nobody has committed");
    let commit = git(&case, &["rev-parse", "spektacular/fix"]);
    let did = case.run(&["worktrees", "rm", "--force", "fix", "--output", "json"]).json(0);
    assert_eq!(did["branch"], "spektacular/fix", "it has the only commit");
    assert_eq!(git(&case, &["rev-parse", "spektacular/fix"]), commit);
    // A repository that the agent made.
    let inner = "git init -q in; git -C in -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m x";
    let case = repository(inner);
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    refused(&case, &["rm", "fix", "--force"], "has repositories of its own");
}

#[test]
fn a_merge_needs_clean_trees_and_leaves_nothing_half_done() {
    let case = repository(&format!("echo theirs >old.txt; {COMMIT}"));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    fs::write(case.work().join("old.txt"), "mine\n").unwrap();
    refused(&case, &["merge", "fix"], "The work tree here has changes");
    commit_all(&case);
    let head = git(&case, &["rev-parse", "HEAD"]);
    refused(&case, &["merge", "fix"], "git did not merge fix, and nothing has changed");
    assert_eq!((git(&case, &["rev-parse", "HEAD"]), git(&case, &["status", "--porcelain"])), (head, String::new()));
    git(&case, &["checkout", "-q", "--detach"]);
    refused(&case, &["merge", "fix"], "HEAD is detached here");
    let tree = worktree(&case, "fix");
    refused(&case, &["merge", "fix", "--cwd", tree.to_str().unwrap()], "not from the worktree itself");
}

#[test]
fn a_worktree_in_which_a_run_works_is_left_alone() {
    let mut session = Case::with(Script::new().sh("exec sleep 600")).git().args(&["--worktree=fix"]).spawn();
    session.start(json!({}));
    session.until("run.started");
    assert_eq!(session.case.run(&["worktrees", "--output", "json"]).json(0)["worktrees"][0]["state"], "running");
    refused(&session.case, &["rm", "fix", "--force"], "A run works in the worktree fix");
    refused(&session.case, &["merge", "fix"], "A run works in the worktree fix");
    session.signal(Signal::TERM);
    session.finish_unchecked().cancelled();
}

#[test]
fn a_worktree_that_was_killed_in_the_making_or_lost_its_folder_can_be_removed() {
    let (case, adding) = super::worktree::slow_checkout(("reset --hard", ":"));
    let session = case.args(&["--worktree=fix"]).spawn();
    session.wait_until("git", || super::worktree::is_adding(&adding));
    session.signal(Signal::KILL);
    let outcome = session.finish_unchecked();
    let case = outcome.case();
    assert!(io::wait_for(limit(), || listed(case).first().is_some_and(|one| one["state"] == "incomplete")));
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert!(did.refused(2).contains("is not complete"), "{did:?}");
    assert_eq!(case.run(&["worktrees", "rm", "fix"]).code, Some(0));
    assert_eq!((state(case), listed(case).len()), ((1, String::new()), 0));

    let case = repository(&format!("echo new >new.txt; {COMMIT}"));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    fs::remove_dir_all(worktree(&case, "fix")).unwrap();
    assert_eq!((listed(&case)[0]["state"].clone(), listed(&case)[0]["commits"].clone()), (json!("missing"), json!(1)));
    let did = case.run(&["worktrees", "rm", "fix"]);
    assert_eq!(did.out, "removed fix; the branch spektacular/fix stays, because no other one has its commits\n");
    assert_eq!(state(&case), (1, "spektacular/fix\n".into()));
}

/// From inside, HEAD seems to keep the commits of the worktree, and another work tree may need its branch.
#[test]
fn a_removal_spares_what_only_head_keeps() {
    let case = repository(&format!("git checkout -q --detach; echo new >new.txt; {COMMIT}"));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let tree = worktree(&case, "fix");
    refused(&case, &["rm", "fix"], "HEAD of the worktree fix is detached");
    refused(&case, &["rm", "fix", "--cwd", tree.to_str().unwrap()], "not from the worktree itself");
    assert!(tree.join("new.txt").exists());

    let case = repository(&format!("echo new >new.txt; {COMMIT}"));
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    fs::remove_dir_all(worktree(&case, "fix")).unwrap();
    git(&case, &["worktree", "prune"]);
    git(&case, &["checkout", "-q", "spektacular/fix"]);
    let did = case.run(&["worktrees", "rm", "fix"]);
    assert_eq!(
        did.out,
        "removed fix; the branch spektacular/fix stays, because another work tree has it checked out\n"
    );
    assert!(git(&case, &["log", "--format=%s"]).contains("new"));
}

#[test]
fn a_worktree_that_git_cannot_read_is_removed_only_by_force() {
    let case = repository("echo new >new.txt");
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let tree = worktree(&case, "fix");
    let data = git(&case, &["-C", tree.to_str().unwrap(), "rev-parse", "--absolute-git-dir"]);
    fs::write(std::path::Path::new(data.trim()).join("index"), "broken").unwrap();
    assert_eq!(listed(&case)[0]["state"], "unreadable");
    refused(&case, &["rm", "fix"], "git cannot read the worktree fix");
    assert!(tree.join("new.txt").exists());
    assert_eq!(case.run(&["worktrees", "rm", "fix", "--force"]).code, Some(0));
    assert!(!tree.exists());
}

/// A run that ends while git looks may leave files that git has not seen.
#[test]
fn no_run_can_begin_or_end_while_a_removal_looks() {
    let case = repository("echo new >new.txt");
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let (lock, log) = (worktree(&case, "fix").with_added_extension("state"), case.path("looks"));
    let probe = format!("flock -n -s {} echo free >>{at} || echo held >>{at}", lock.display(), at = log.display());
    // git's folder of the worktree is in another one with this name.
    let calls = format!("case \"$*\" in *worktrees*' status '*) {probe};; esac");
    let look = format!("PATH=/usr/local/bin:/usr/bin:/bin\n{calls}\nexec git \"$@\"");
    let case = case.script("bin/git", &look);
    refused(&case, &["rm", "fix"], "1 file that nobody has committed");
    assert_eq!(read(&log), "held\n");
}

/// A project whose user takes these files along.
fn taking(globs: &str, work: &str) -> Case {
    let case = repository(work)
        .file("home/.config/spektacular/config.json", &format!("{{\"worktree\":{{\"copy\":{globs}}}}}\n"));
    fs::write(case.work().join(".gitignore"), ".env*\n/deps\nlinked\n").unwrap();
    commit_all(&case);
    case
}

#[test]
fn ignored_files_are_taken_along_and_are_no_work() {
    let case =
        taking(r#"[".env", "deps", "a b/**/.env.*", "old.txt"]"#, "test \"$(cat .env)\" = KEY=1 || echo no >wrong");
    let at = case.work();
    fs::write(at.join(".env"), "KEY=1").unwrap();
    fs::set_permissions(at.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(at.join("deps/bin")).unwrap();
    fs::write(at.join("deps/bin/tool"), "x").unwrap();
    fs::set_permissions(at.join("deps/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(at.join("a b/größe")).unwrap();
    fs::write(at.join("a b/größe/.env.日本"), "y").unwrap();
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert!(did.err.contains("took 3 ignored files along into the worktree fix"), "{}", did.err);
    assert!(did.err.contains("had no changes and was removed"), "{}", did.err);
    // A change of such a file is work.
    let case = taking(r#"[".env", "deps"]"#, "echo KEY=2 >.env");
    fs::write(case.work().join(".env"), "KEY=1").unwrap();
    assert_eq!(case.run(&["adhoc", "--worktree=fix", "Work"]).code, Some(0));
    let copy = worktree(&case, "fix").join(".env");
    assert_eq!((read(&copy).as_str(), read(&case.work().join(".env")).as_str()), ("KEY=2\n", "KEY=1"));
}

/// Neither a link in the project nor one in the checkout leads a copy elsewhere, and no tracked file is replaced.
#[test]
fn nothing_is_taken_along_through_a_link() {
    let case = taking(r#"["**"]"#, "touch new");
    let (at, outside) = (case.work(), case.path("outside"));
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(outside.join("secret"), at.join(".env")).unwrap();
    symlink(&outside, at.join("linked")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at.join(".env.pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    // HEAD has a link where the project has a folder of ignored files.
    symlink(&outside, at.join("deps")).unwrap();
    git(&case, &["add", "-f", "deps"]);
    git(&case, &["commit", "-qm", "link"]);
    git(&case, &["rm", "-q", "--cached", "deps"]);
    fs::remove_file(at.join("deps")).unwrap();
    fs::create_dir(at.join("deps")).unwrap();
    fs::write(at.join("deps/planted"), "x").unwrap();
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(did.err.contains("took 0 ignored files along") && did.err.contains("stayed behind"), "{}", did.err);
    assert!(!outside.join("planted").exists());
    assert!(!worktree(&case, "fix").join(".env").exists() && !worktree(&case, "fix").join("linked").exists());
}

#[test]
fn globs_of_a_project_count_only_once_it_is_trusted_and_lie_inside() {
    let case = repository("touch new").file("work/.spektacular/config.json", "{\"worktree\":{\"copy\":[\".env\"]}}\n");
    fs::write(case.work().join(".gitignore"), ".env\n").unwrap();
    fs::write(case.work().join(".env"), "KEY=1").unwrap();
    commit_all(&case);
    let did = case.run(&["adhoc", "--worktree=one", "Work"]);
    assert!(did.err.contains("not trusted, so these keys in it are ignored: worktree"), "{}", did.err);
    assert!(!worktree(&case, "one").join(".env").exists());
    assert_eq!(case.run(&["config", "trust"]).code, Some(0));
    assert_eq!(case.run(&["adhoc", "--worktree=two", "Work"]).code, Some(0));
    assert!(worktree(&case, "two").join(".env").exists());
    for glob in ["/etc/passwd", "../x", "a/../../x"] {
        let did = case.run(&["config", "set", "worktree.copy", glob]);
        assert!(
            did.refused(2).contains("must be a list of at most 100 globs below the project's directory"),
            "{did:?}"
        );
    }
    assert_eq!(case.run(&["config", "set", "worktree.copy", ".env.local"]).code, Some(0));
    assert_eq!(case.run(&["config", "get", "worktree.copy"]).out.trim(), "[\".env.local\"]");
}

/// A submodule that the project has is filled from there, and its repository is one of its own.
#[test]
fn a_submodule_is_filled_without_the_network() {
    let case = repository("git -C sub log -1 --format=%s >seen; git -C sub config remote.origin.url >>seen");
    let inner = case.path("inner").display().to_string();
    fs::create_dir(&inner).unwrap();
    git(&case, &["init", "-q", &inner]);
    git(&case, &["-C", &inner, "commit", "-q", "--allow-empty", "-m", "first"]);
    git(&case, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &inner, "sub"]);
    let ran = case.path("ran");
    let evil = format!("!touch {}", ran.display());
    git(&case, &["config", "submodule.sub.update", &evil]);
    commit_all(&case);
    fs::remove_dir_all(&inner).unwrap();
    let did = case.run(&["adhoc", "--worktree=fix", "Work"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(!did.err.contains("are empty") && !ran.exists(), "{}", did.err);
    let tree = worktree(&case, "fix");
    assert_eq!(read(&tree.join("seen")), format!("first\n{inner}\n"));
    assert_ne!(tree.join("sub/.git").metadata().unwrap().ino(), case.work().join("sub/.git").metadata().unwrap().ino());
    assert_eq!(case.run(&["worktrees", "rm", "fix", "--force"]).code, Some(0));
}

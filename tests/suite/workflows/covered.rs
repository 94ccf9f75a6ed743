//! Names that are taken, the requirements that passed phases cover, and the documents of the first commit.

use crate::support::agent::Script;
use crate::support::{Case, Outcome, read, run};
use crate::workflows::commits::authored;
use crate::workflows::implement::{PLAN, allowed, plan, project};
use crate::workflows::spec::{GOOD, write};
use serde_json::json;
use std::process::Command;
use std::time::{Duration, SystemTime};

const SPEC: &str = ".spektacular/specs/greeting.md";

fn phase(number: u32, command: &str, serves: &str) -> String {
    crate::workflows::implement::phase(number, &[command], "").replace("Do it", &format!("Do it ({serves})"))
}

#[track_caller]
fn git(outcome: &Outcome, args: &[&str]) -> String {
    let mut git = Command::new("git");
    let output = git.current_dir(outcome.case().work()).env_clear().env("PATH", "/usr/bin:/bin").args(args).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn the_boxes_of_covered_requirements_are_ticked_and_the_specification_counts_as_unchanged() {
    // The second requirement needs both phases.
    let text = plan(&[phase(1, "test -e a", "R1, R2"), phase(2, "test -e b", "R2")]);
    let agent = "case $P in *'# Implement Phase 2'*) touch b;; *) touch a;; esac";
    let documents = |name: &str| format!("work/.spektacular/plans/greeting/{name}");
    let case = authored(project(&text, agent).git()).file(&format!("work/{SPEC}"), GOOD);
    let case = case.file(&documents("research.md"), "# R\n").file(&documents("context.md"), "# C\n");
    let outcome = run(case, allowed(json!({"commit": true, "max_phases": 1})));
    outcome.completed();
    let spec = || read(&outcome.case().work().join(SPEC));
    assert_eq!(spec(), GOOD.replace("- [ ] R1:", "- [x] R1:"));
    let files = git(&outcome, &["show", "--format=", "--name-only", "HEAD"]);
    for name in [PLAN, SPEC, ".spektacular/plans/greeting/research.md", ".spektacular/plans/greeting/context.md", "a"] {
        assert!(files.lines().any(|file| file == name), "{name}: {files}");
    }
    assert_eq!(git(&outcome, &["status", "--porcelain", "."]), "");
    let status = outcome.case().run(&["status"]);
    assert!(status.out.contains("valid, 2 tasks, 1 covered"), "{status:?}");
    assert!(!status.out.contains("changed since"), "{status:?}");
    let next = outcome.case().run(&["implement", "--headless", "--allow-verify", "--commit", "greeting"]);
    assert!(next.code == Some(0) && !next.err.contains("has changed"), "{next:?}");
    assert_eq!(spec(), GOOD.replace("- [ ] R", "- [x] R"));
    assert_eq!(git(&outcome, &["status", "--porcelain", "."]), "");
}

#[test]
fn a_made_name_that_another_description_has_gets_a_number() {
    let draft = |name: &str| write(&format!(".spektacular/specs/{name}.draft.md"), GOOD);
    let writes =
        format!("case $(cat \"$D/stdin\") in *log-in-2*) {};; *) {};; esac", draft("log-in-2"), draft("log-in"));
    let case = Case::with(Script::new().sh(&writes).done("Done")).subcommand("spec").git();
    let outcome = run(case, json!({"prompt": "Log in!", "interactive": false}));
    assert_eq!(outcome.completed()["workflow"]["target"], ".spektacular/specs/log-in.md");
    let spec = |words: &[&str]| outcome.case().run(&[&["spec", "--headless"], words].concat());
    let second = spec(&["Log", "in?"]);
    let line = "log-in is the name of another description, so this specification is log-in-2";
    assert!(second.code == Some(0) && second.err.contains(line), "{second:?}");
    assert!(second.out.ends_with(".spektacular/specs/log-in-2.md created with 2 tasks\n"), "{second:?}");
    // The same description, and a name that somebody chose, are refused.
    for words in [&["Log in!"][..], &["--name", "log-in", "Log out"]] {
        let same = spec(words);
        assert!(same.code == Some(2) && same.err.contains("exists"), "{same:?}");
    }
}

#[test]
fn init_here_makes_a_package_a_project_and_a_bare_parent_is_told_what_to_do() {
    let case = Case::new().file("work/packages/web/index.html", "").git();
    let init = |folder: &str, args: &[&str]| {
        let output = case.command(env!("CARGO_BIN_EXE_spektacular")).args(args).current_dir(case.path(folder)).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = init("work/packages/web", &["init", "--here"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(case.work().join("packages/web/.spektacular/config.json").exists());
    assert!(!case.work().join(".spektacular").exists());

    let bare = case.path("bare");
    assert!(Command::new("git").args(["init", "-q", "--bare"]).arg(bare.join(".bare")).status().unwrap().success());
    std::fs::write(bare.join(".git"), "gitdir: ./.bare\n").unwrap();
    let (code, said) = init("bare", &["init"]);
    assert!(code == Some(2) && said.contains("git worktree add") && said.contains("--here"), "{said}");
    assert!(!bare.join(".spektacular").exists());
}

#[test]
fn the_difference_of_a_plan_has_commits_changes_and_new_files() {
    let text = plan(&[phase(1, "grep -q new old.txt && test -e a", "R1")]);
    let case = authored(project(&text, "echo new >>old.txt; echo made >a").git());
    let before = case.run(&["diff", "greeting"]);
    assert!(before.code == Some(2) && before.err.contains("is not known"), "{before:?}");
    let outcome = run(case, allowed(json!({"commit": true})));
    outcome.completed();
    std::fs::write(outcome.case().work().join("later"), "now\n").unwrap();
    let did = outcome.case().run(&["diff", "greeting"]);
    for part in ["+++ b/a", "+made", "+new", "+++ b/later", "+now"] {
        assert!(did.code == Some(0) && did.out.contains(part), "{part}: {did:?}");
    }
    assert!(!did.out.contains(".spektacular") && !did.out.contains("plan.md"), "{did:?}");
    // The new file is not in the repository, and the commits of the plan tell the beginning too.
    let later = git(&outcome, &["hash-object", "later"]);
    let all = git(&outcome, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    assert!(later.len() > 40 && !all.contains(&later), "{all}");
    std::fs::remove_dir_all(outcome.case().work().join(".spektacular/local/started")).unwrap();
    let did = outcome.case().run(&["diff", "--output", "json", "greeting"]);
    assert!(did.out.contains("+made") && did.out.contains("+++ b/later"), "{did:?}");
}

/// Only a review needs the state before each phase. What no plan needs any more goes, and no large new file is copied.
#[test]
fn the_snapshots_of_the_work_tree_stay_small() {
    let store = |outcome: &Outcome| {
        let out = Command::new("find").arg(outcome.case().work().join(".spektacular/local/objects")).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let text = plan(&[phase(1, "test -e a", "R1"), phase(2, "grep -q 2 b", "R2")]);
    let case = authored(project(&text, "echo 1 >a; echo 2 >b").git());
    std::fs::write(case.work().join("large"), vec![b'x'; 17 << 20]).unwrap();
    let old = case.work().join(".spektacular/local/objects/ab/0123");
    std::fs::create_dir_all(old.parent().unwrap()).unwrap();
    std::fs::write(&old, "gone").unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    let outside = case.path("outside/a");
    std::fs::create_dir(outside.parent().unwrap()).unwrap();
    std::fs::write(&outside, "kept").unwrap();
    for file in [&old, &outside] {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    std::os::unix::fs::symlink(outside.parent().unwrap(), old.parent().unwrap().with_file_name("cd")).unwrap();
    let outcome = run(case, allowed(json!({})));
    outcome.completed();
    assert!(!old.exists() && outside.exists(), "{}", store(&outcome));
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(store(&outcome).lines().map(size).sum::<u64>() < 100_000, "{}", store(&outcome));
    let blob = git(&outcome, &["hash-object", "a"]);
    assert!(!store(&outcome).contains(&format!("{}/{}", &blob[..2], blob[2..].trim())), "no snapshot before phase 2");
    let did = outcome.case().run(&["diff", "greeting"]);
    assert!(did.out.contains("+++ b/a") && did.out.contains("+++ b/b") && !did.out.contains("large"), "{did:?}");
}

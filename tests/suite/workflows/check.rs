//! Tests of `init`, `spec check`, `plan check` and `prompts` through the program.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SPEC: &str = "\
# Greeting
## Overview
A greeting.
## Requirements
- [ ] R1: It is there.
- [ ] R2: It is friendly.
## Acceptance Criteria
- It is read.
";

const PLAN: &str = "\
# Plan: Greeting
Spec: .spektacular/specs/greeting.md
## Phase 1: The text
- [x] T1.1 Write it (R1, R2)
### Verify
```sh
test -s hello.txt
```
- Manual: It is friendly.
### Protect
- tests/
";

/// An empty folder that is a project of its own, and a home without a configuration.
struct Place {
    folder: TempDir,
    home: TempDir,
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Place {
        Place { folder: TempDir::new().unwrap(), home: TempDir::new().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Said {
        self.run_in(".", args)
    }

    fn run_in(&self, folder: &str, args: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_spektacular"))
            .args(args)
            .current_dir(self.path().join(folder))
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("MY_TOKEN", "correct-horse-battery")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Everything below the folder, with the texts of files.
    fn tree(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut todo = vec![self.path().to_owned()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.path()).unwrap().to_string_lossy().into_owned();
                if path.is_dir() && !path.is_symlink() {
                    todo.push(path);
                    found.push((name, String::new()));
                } else {
                    found.push((name, fs::read_to_string(path).unwrap_or_default()));
                }
            }
        }
        found.sort();
        found
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const FILES: [&str; 10] = [
    ".spektacular/config.json",
    ".spektacular/.gitignore",
    ".spektacular/knowledge/conventions.md",
    ".spektacular/specs/README.md",
    ".spektacular/plans/README.md",
    ".spektacular/prompts/README.md",
    ".spektacular/knowledge/README.md",
    ".spektacular/knowledge/learnings/README.md",
    ".spektacular/knowledge/architecture/README.md",
    ".spektacular/knowledge/gotchas/README.md",
];

#[test]
fn init_creates_missing_files_and_keeps_existing_ones() {
    let place = Place::new();
    place.write(".spektacular/knowledge/conventions.md", "mine\n");
    let first = place.run(&["init"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    for file in FILES {
        let word = if file.ends_with("conventions.md") { "kept" } else { "created" };
        assert!(first.out.lines().any(|line| line == format!("{word} {file}")), "{}", first.out);
        assert!(!place.read(file).is_empty());
    }
    assert!(first.out.lines().last().unwrap().contains("spektacular spec"), "{}", first.out);
    assert_eq!(place.read(".spektacular/knowledge/conventions.md"), "mine\n");
    assert_eq!(place.read(".spektacular/config.json").trim(), "{}");
    assert_eq!(place.read(".spektacular/.gitignore"), "local/\ndebug/\n*.draft.md\n*.draft/\n*.tmp\n*.log\n.env\n");
    let tree = place.tree();
    let second = place.run(&["init", "--output", "json"]);
    assert_eq!((second.code, place.tree()), (0, tree));
    let project = place.path().canonicalize().unwrap();
    assert_eq!(lines(&second.out), [json!({"project": project, "created": [], "kept": FILES})]);
}

#[test]
fn init_works_in_the_nearest_project_up_to_the_root_of_git() {
    let place = Place::new();
    place.write("work/.git/HEAD", "ref: refs/heads/main\n");
    place.write("work/sub/deep/x", "");
    place.write(".spektacular/x", "above the root");
    assert_eq!(place.run_in("work/sub/deep", &["init"]).code, 0);
    assert!(place.path().join("work/.spektacular/specs").is_dir());
    // A project nearer than the root, even without a configuration.
    place.write("work/sub/.spektacular/x", "");
    assert_eq!(place.run_in("work/sub/deep", &["init"]).code, 0);
    assert!(place.path().join("work/sub/.spektacular/specs").is_dir());
    // Outside git, only the folder itself counts.
    fs::create_dir(place.path().join("plain")).unwrap();
    assert_eq!(place.run_in("plain", &["init"]).code, 0);
    assert!(place.path().join("plain/.spektacular/specs").is_dir());
}

#[test]
fn init_creates_nothing_where_a_path_is_a_link_or_of_the_wrong_kind() {
    let elsewhere = TempDir::new().unwrap();
    let link = |place: &Place, path: &str| {
        fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
        symlink(elsewhere.path(), place.path().join(path)).unwrap();
    };
    type Make<'a> = &'a dyn Fn(&Place);
    let cases: [(&str, Make<'_>); 6] = [
        (".spektacular", &|place| link(place, ".spektacular")),
        (".spektacular", &|place| place.write(".spektacular", "a file")),
        (".spektacular/specs", &|place| link(place, ".spektacular/specs")),
        (".spektacular/knowledge", &|place| place.write(".spektacular/knowledge", "a file")),
        (".spektacular/config.json", &|place| link(place, ".spektacular/config.json")),
        (".spektacular/knowledge/gotchas/README.md", &|place| {
            place.write(".spektacular/knowledge/gotchas/README.md/x", "a folder");
        }),
    ];
    for (path, make) in cases {
        let place = Place::new();
        make(&place);
        let tree = place.tree();
        let said = place.run(&["init"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{path}");
        assert!(said.err.contains(&format!(" {path} must be")), "{}", said.err);
        assert_eq!(place.tree(), tree, "{path}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{path}");
    }
}

#[test]
fn a_valid_specification_is_reported_with_its_tasks() {
    let place = Place::new();
    place.write(".spektacular/specs/greeting.md", SPEC);
    place.write("one.md", SPEC.replace("- [ ] R2: It is friendly.\n", ""));
    let said = place.run(&["spec", "check", "greeting", ".spektacular/specs/greeting.md", "./one.md"]);
    let file = ".spektacular/specs/greeting.md";
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(said.out, format!("{file}: valid, 2 tasks\n{file}: valid, 2 tasks\n./one.md: valid, 1 task\n"));
    let said = place.run(&["spec", "check", "--output", "json", "greeting"]);
    assert_eq!(lines(&said.out), [json!({"file": file, "valid": true, "tasks": 2, "violations": []})]);
}

#[test]
fn violations_are_reported_by_file_line_and_rule() {
    let place = Place::new();
    place.write(
        "a.md",
        SPEC.replace("A greeting.", "See main.rs:1 or 'hidden words'").replace("## Acceptance Criteria", "## Criteria"),
    );
    let said = place.run(&["spec", "check", "a.md"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let told: Vec<&str> = said.out.lines().collect();
    assert_eq!(told.len(), 2, "{}", said.out);
    assert!(
        told[0].starts_with("a.md:0: section: ") && told[1].starts_with("a.md:3: line-reference: "),
        "{}",
        said.out
    );
    assert!(!said.out.contains("hidden") && !said.out.contains("main.rs"), "{}", said.out);
    let said = place.run(&["spec", "check", "--json", "a.md"]);
    assert_eq!(said.code, 1);
    let line = &lines(&said.out)[0];
    assert_eq!((&line["valid"], &line["tasks"]), (&json!(false), &json!(2)));
    let pairs: Vec<_> =
        line["violations"].as_array().unwrap().iter().map(|v| (v["line"].clone(), v["rule"].clone())).collect();
    assert_eq!(pairs, [(Value::Null, json!("section")), (json!(3), json!("line-reference"))]);
    // Rules can be left out, one by one.
    let one = place.run(&["spec", "check", "--ignore", "section", "a.md"]);
    assert!(one.code == 1 && one.out.lines().count() == 1, "{}", one.out);
    assert_eq!(place.run(&["spec", "check", "--ignore", "section", "--ignore=line-reference", "a.md"]).code, 0);
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_the_others_from_being_checked() {
    let place = Place::new();
    place.write("good.md", SPEC);
    place.write("bad.md", "nothing");
    place.write("folder.md/x", "");
    symlink("good.md", place.path().join("link.md")).unwrap();
    let made = Command::new("mkfifo").arg(place.path().join("pipe.md")).status().unwrap();
    assert!(made.success());
    for (file, reason) in [
        ("missing.md", "not_found"),
        ("folder.md", "outside"),
        ("link.md", "outside"),
        ("pipe.md", "outside"),
        ("no/such/file.md", "not_found"),
        ("no-such-name", "not_found"),
        ("No Name", "invalid"),
    ] {
        let said = place.run(&["spec", "check", "--json", file, "good.md", "bad.md"]);
        assert_eq!(said.code, 2, "{file}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.err.starts_with("spektacular: invalid_request: "), "{}", said.err);
        let told = lines(&said.out);
        assert_eq!(told.len(), 3, "{}", said.out);
        assert_eq!((&told[0]["error"]["reason"], &told[0]["valid"]), (&json!(reason), &json!(false)), "{file}");
        assert_eq!((&told[1]["valid"], &told[2]["valid"]), (&json!(true), &json!(false)));
    }
}

#[test]
fn no_link_leads_a_check_out_of_the_project() {
    let (place, elsewhere) = (Place::new(), Place::new());
    elsewhere.write("specs/x.md", SPEC);
    // A file outside the project that the user names is checked. A file behind a link below .spektacular is not.
    let outside = elsewhere.path().join("specs/x.md");
    assert_eq!(place.run(&["spec", "check", outside.to_str().unwrap()]).code, 0);
    fs::create_dir(place.path().join(".spektacular")).unwrap();
    symlink(elsewhere.path().join("specs"), place.path().join(".spektacular/specs")).unwrap();
    for file in ["x", ".spektacular/specs/x.md", "./.spektacular/specs/x.md"] {
        let said = place.run(&["spec", "check", "--json", file]);
        assert_eq!((said.code, &lines(&said.out)[0]["error"]["reason"]), (2, &json!("outside")), "{file}");
    }
    // A link above .spektacular that stays in the project is allowed.
    place.write("docs/y.md", SPEC);
    symlink("docs", place.path().join("texts")).unwrap();
    assert_eq!(place.run(&["spec", "check", "texts/y.md"]).code, 0);
}

#[test]
fn limits_of_size_hold() {
    let place = Place::new();
    let fill = |bytes: usize| format!("{SPEC}{}", "x".repeat(bytes - SPEC.len()));
    place.write("most.md", fill(256 << 10));
    place.write("more.md", fill((256 << 10) + 1));
    let said = place.run(&["spec", "check", "--json", "most.md", "more.md"]);
    let told = lines(&said.out);
    assert_eq!((said.code, &told[0]["valid"]), (1, &json!(true)));
    assert_eq!(
        (&told[1]["violations"][0]["rule"], &told[1]["violations"][0]["line"]),
        (&json!("too-large"), &Value::Null)
    );
}

#[test]
fn a_plan_is_checked_completely_or_only_its_main_file() {
    let place = Place::new();
    place.write(".spektacular/specs/greeting.md", SPEC);
    place.write(".spektacular/plans/greeting/plan.md", PLAN);
    place.write(".spektacular/plans/greeting/research.md", "x");
    let folder = ".spektacular/plans/greeting";
    let alone = place.run(&["plan", "check", &format!("{folder}/plan.md")]);
    assert_eq!((alone.code, alone.out), (0, format!("{folder}/plan.md: valid, 1 task\n")));
    for whole in ["greeting", folder, &format!("{folder}/")] {
        let said = place.run(&["plan", "check", whole]);
        assert_eq!(said.code, 1, "{}", said.out);
        assert!(said.out.starts_with(&format!("{folder}/context.md:0: missing-file: ")), "{}", said.out);
    }
    let said = place.run(&["plan", "check", "--json", "greeting"]);
    let missing = json!({
        "file": format!("{folder}/context.md"),
        "line": null,
        "rule": "missing-file",
        "text": "Write context.md as a regular file.",
    });
    assert_eq!(lines(&said.out)[0]["violations"], json!([missing]));
    place.write(".spektacular/plans/greeting/context.md", "x");
    let said = place.run(&["plan", "check", "--output=json", "greeting"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let phases = json!([{
        "id": "P1", "title": "The text", "state": "done",
        "tasks": [{"id": "T1.1", "text": "Write it (R1, R2)", "done": true}],
        "verify": ["test -s hello.txt"], "manual": ["It is friendly."], "protect": ["tests/"],
    }]);
    let file = format!("{folder}/plan.md");
    assert_eq!(
        lines(&said.out),
        [json!({"file": file, "valid": true, "tasks": 1, "violations": [], "phases": phases})]
    );
    // Without plan.md, the folder is checked. Without the folder, there is nothing to check.
    fs::remove_file(place.path().join(&file)).unwrap();
    let said = place.run(&["plan", "check", "greeting"]);
    assert!(said.code == 1 && said.out.starts_with(&format!("{file}:0: missing-file: ")), "{}", said.out);
    for missing in ["other", file.as_str(), "no/such"] {
        assert_eq!(place.run(&["plan", "check", missing]).code, 2, "{missing}");
    }
}

#[test]
fn a_heading_that_is_almost_a_phase_is_explained() {
    let place = Place::new();
    place.write(".spektacular/specs/greeting.md", SPEC);
    place.write(".spektacular/plans/greeting/plan.md", PLAN.to_owned() + "\n## Phase two\n\nMore.\n");
    let said = place.run(&["plan", "check", ".spektacular/plans/greeting/plan.md"]);
    let line = PLAN.lines().count() + 2;
    let wanted = format!(
        "plan.md:{line}: phase-heading: This heading begins with the word Phase, but begins no phase. Write \
         `## Phase 2: TITLE`, with a number in digits, a colon and a title, or reword it.\n"
    );
    assert!(said.code == 1 && said.out.contains(&wanted), "{}", said.out);
}

#[test]
fn the_requirements_of_a_plan_are_those_of_its_specification() {
    let place = Place::new();
    place.write(".spektacular/plans/greeting/plan.md", PLAN.replace("(R1, R2)", "(R1, R9)"));
    let check = |place: &Place| place.run(&["plan", "check", ".spektacular/plans/greeting/plan.md"]);
    // A specification that cannot be read produces no further messages.
    assert_eq!(check(&place).code, 0);
    let outside = Place::new();
    outside.write("x.md", SPEC);
    fs::create_dir_all(place.path().join(".spektacular/specs")).unwrap();
    symlink(outside.path().join("x.md"), place.path().join(".spektacular/specs/greeting.md")).unwrap();
    assert_eq!(check(&place).code, 0);
    fs::remove_file(place.path().join(".spektacular/specs/greeting.md")).unwrap();
    place.write(".spektacular/specs/greeting.md", SPEC);
    let said = check(&place);
    let file = ".spektacular/plans/greeting/plan.md";
    let told: Vec<&str> = said.out.lines().collect();
    assert!(told[0].starts_with(&format!("{file}:0: uncovered: ")) && told[0].contains("R2"), "{}", said.out);
    assert!(told[1].starts_with(&format!("{file}:4: unknown-requirement: ")) && told.len() == 2, "{}", said.out);
}

#[test]
fn check_is_a_subcommand_only_as_the_whole_first_argument() {
    let place = Place::new();
    let usage = place.run(&["spec", "check"]);
    assert!(usage.code == 2 && usage.err.contains("Missing FILE"), "{}", usage.err);
    assert!(place.run(&["plan", "check"]).err.contains("Missing PLAN"));
    for words in [["spec", "check the login"], ["spec", "checks"]] {
        assert!(!place.run(&words).err.contains("FILE:"), "{words:?}");
    }
    let wrong = place.run(&["spec", "check", "--ignore", "sectoin", "x"]);
    assert_eq!(
        (wrong.code, wrong.err.trim_end()),
        (2, "spektacular: usage: --ignore: Unknown rule sectoin. Did you mean section?")
    );
    let wrong = place.run(&["spec", "check", "--ignore", "too-large", "x"]);
    assert!(wrong.code == 2 && wrong.err.contains("too-large cannot be ignored"), "{}", wrong.err);
    let help = place.run(&["help", "spec", "check"]);
    assert_eq!((help.code, &help.out), (0, &place.run(&["spec", "check", "--help"]).out));
    assert!(help.out.contains("Usage: spektacular spec check [FLAGS] FILE...") && help.out.contains("--ignore RULE"));
}

#[test]
fn paths_and_texts_are_clean_and_redacted() {
    let place = Place::new();
    let name = "a\u{1b}[31m-correct-horse-battery.md";
    place.write(name, SPEC);
    place.write("plan.md", PLAN.replace("test -s", "echo correct-horse-battery; test -s"));
    for args in [&["spec", "check", name][..], &["spec", "check", "--json", name], &["spec", "check", "b\u{1b}[31m.md"]]
    {
        let said = place.run(args);
        for text in [&said.out, &said.err] {
            assert!(!text.contains('\u{1b}') && !text.contains("horse"), "{text:?}");
        }
    }
    let said = place.run(&["plan", "check", "--json", "plan.md"]);
    assert!(said.code == 0 && said.out.contains("echo [redacted]; test -s"), "{}", said.out);
}

#[test]
fn a_prompt_of_the_project_counts_once_it_is_trusted() {
    let place = Place::new();
    let built_in = place.run(&["prompts", "spec"]);
    assert!(built_in.code == 0 && built_in.out.starts_with("# Create a specification\n"), "{}", built_in.out);
    let sources = |place: &Place| -> Vec<(String, String)> {
        let said = place.run(&["prompts", "list"]);
        assert_eq!((said.code, &said.out), (0, &place.run(&["prompts"]).out));
        let pair =
            |line: &str| line.split_once(' ').map(|(name, from)| (name.to_owned(), from.trim().to_owned())).unwrap();
        said.out.lines().map(pair).collect()
    };
    let names: Vec<String> = sources(&place).into_iter().map(|(name, from)| format!("{name} {from}")).collect();
    let built_in = ["spec", "plan", "implement", "retry", "continue", "review"].map(|name| format!("{name} built-in"));
    assert_eq!(names, built_in);
    let user = place.home.path().join(".config/spektacular/prompts/spec.md");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, "user {{description}} {{file}}\n").unwrap();
    assert_eq!(sources(&place)[0].1, "user");
    assert_eq!(place.run(&["prompts", "spec"]).out, "user {{description}} {{file}}\n");
    let file = ".spektacular/prompts/spec.md";
    place.write(file, "project {{description}} {{file}}\n");
    let said = place.run(&["prompts", "spec"]);
    assert_eq!(said.out, "user {{description}} {{file}}\n");
    assert!(said.err.contains(file) && said.err.contains("spektacular config trust"), "{}", said.err);
    // Trust works without a configuration file and names the trusted files.
    let said = place.run(&["config", "trust"]);
    assert!(said.code == 0 && said.out.contains(file), "{}{}", said.out, said.err);
    assert_eq!(sources(&place)[0].1, "project");
    let said = place.run(&["prompts", "spec"]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("project {{description}} {{file}}\n", ""));
    // Trust covers only this text.
    place.write(file, "changed {{description}} {{file}}\n");
    assert_eq!(sources(&place)[0].1, "user");
    let json = place.run(&["config", "trust", "--json"]);
    let path = place.path().canonicalize().unwrap().join(file);
    assert_eq!(lines(&json.out), [json!({"file": null, "keys": [], "prompts": [path]})]);
    // A link is never trusted.
    fs::rename(place.path().join(file), place.path().join("x")).unwrap();
    symlink("../../x", place.path().join(file)).unwrap();
    assert_eq!(place.run(&["config", "trust"]).code, 2);
    let said = place.run(&["prompts", "spec"]);
    assert!(said.out.starts_with("user") && said.err.contains(file), "{}", said.err);
}

#[test]
fn prompts_takes_the_name_of_one_prompt() {
    let place = Place::new();
    let said = place.run(&["prompts", "specs"]);
    assert_eq!((said.code, said.err.trim_end()), (2, "spektacular: usage: Unknown prompt specs. Did you mean spec?"));
    assert_eq!(place.run(&["prompts", "spec", "plan"]).code, 2);
    let user = place.home.path().join(".config/spektacular/prompts/spec.md");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, [0xff]).unwrap();
    let said = place.run(&["prompts", "spec"]);
    assert!(
        said.code == 2 && said.err.starts_with("spektacular: invalid_config: ") && said.err.contains("spec.md"),
        "{}",
        said.err
    );
}

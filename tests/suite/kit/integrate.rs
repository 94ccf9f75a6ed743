//! Tests of `integrate`: the files, the configuration for this machine, and the page about OpenClaw.

use crate::support::Case;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spektacular::protocol::words::QuestionKind;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::process::Stdio;

const PAGE: &str = include_str!("../../../src/integrate/openclaw.md");
const FILES: [&str; 4] = ["index.js", "openclaw.plugin.json", "package.json", "skills/spektacular/SKILL.md"];

/// The JSON values in a text, each of which begins at the start of a line.
#[track_caller]
fn snippets(text: &str) -> Vec<Value> {
    let starts = text.match_indices("\n{").map(|(at, _)| &text[at..]);
    let first = |text: &str| serde_json::Deserializer::from_str(text).into_iter().next().unwrap().unwrap();
    starts.map(first).collect()
}

#[test]
fn the_plugin_is_written_with_the_configuration_for_this_machine() {
    let case = Case::new();
    let did = case.run(&["integrate", "openclaw", "--out", "new/plugin"]);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""));
    let folder = case.work().canonicalize().unwrap().join("new/plugin");
    for file in FILES {
        assert!(folder.join(file).is_file(), "{file}");
    }
    assert!(did.out.starts_with(&format!("The files are in {}\n", folder.display())), "{}", did.out);
    let [tool, backend, acp] = snippets(&did.out).try_into().unwrap();
    // A list of the allowed plugins would turn off all others.
    assert_eq!(tool["plugins"].get("allow"), None);
    assert_eq!(tool["plugins"]["load"]["paths"][0], folder.to_str().unwrap());
    let program = &tool["plugins"]["entries"]["spektacular"]["config"]["command"];
    assert_eq!(program, env!("CARGO_BIN_EXE_spektacular"));
    assert_eq!(backend["agents"]["entries"]["coder"]["model"], "spektacular/claude");
    assert_eq!(backend["tools"]["exec"]["mode"], "ask");
    let server = &acp["plugins"]["entries"]["acpx"]["config"]["agents"]["spektacular"];
    assert_eq!((&server["command"], &server["args"][2]), (program, &"claude".into()));
    let help = case.run(&[server["args"][0].as_str().unwrap(), "--help"]);
    assert!(
        help.code == Some(0) && help.out.contains("--agent"),
        "the command of the configuration exists: {}",
        help.err
    );
    assert!(did.out.contains("OpenClaw's default allows every command and every edit of this agent without asking."));
    assert!(did.out.contains("openclaw plugins inspect spektacular --runtime --json"));
}

#[test]
fn the_models_are_the_configured_agents() {
    let config = r#"{"agent":"mine","agents":{"mine":{"driver":"acp","command":"my-agent"}}}"#;
    let case = Case::new().file("home/.config/spektacular/config.json", config);
    let did = case.run(&["integrate", "openclaw", "--out", "plugin"]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    let manifest: Value =
        serde_json::from_slice(&fs::read(case.work().join("plugin/openclaw.plugin.json")).unwrap()).unwrap();
    let models = manifest["modelCatalog"]["providers"]["spektacular"]["models"].as_array().unwrap();
    let names: BTreeSet<&str> = models.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert!(["claude", "codex", "gemini", "opencode", "mine"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(did.out.contains("\"spektacular/mine\""), "{}", did.out);
}

#[test]
fn a_folder_that_is_not_empty_needs_force() {
    let case = Case::new();
    let out = ["integrate", "openclaw", "--out", "plugin"];
    fs::create_dir(case.work().join("plugin")).unwrap();
    assert_eq!(case.run(&out).code, Some(0));
    fs::write(case.work().join("plugin/index.js"), "old").unwrap();
    fs::write(case.work().join("plugin/mine.txt"), "mine").unwrap();
    assert!(case.run(&out).refused(2).contains("--out: the folder is not empty. Add --force"));
    assert_eq!(fs::read_to_string(case.work().join("plugin/index.js")).unwrap(), "old");
    assert_eq!(case.run(&["integrate", "openclaw", "--out", "plugin", "--force"]).code, Some(0));
    assert!(fs::read_to_string(case.work().join("plugin/index.js")).unwrap().contains("spektacular_run"));
    assert_eq!(fs::read_to_string(case.work().join("plugin/mine.txt")).unwrap(), "mine");
    assert!(
        case.run(&["integrate", "openclaw", "--out", "plugin/mine.txt"])
            .refused(2)
            .contains("--out: the files cannot be written")
    );
}

#[test]
fn the_list_shows_each_integration_with_its_configuration() {
    let did = Case::new().run(&["integrate"]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert!(did.out.starts_with("openclaw: a plugin for OpenClaw"), "{}", did.out);
    assert!(did.out.contains("spektacular integrate openclaw --out DIR"), "{}", did.out);
    assert_eq!(snippets(&did.out).len(), 5);
    assert!(did.out.contains("\nzed: ") && did.out.contains("spektacular integrate acpx"), "{}", did.out);
}

#[test]
fn clients_of_acp_need_only_a_configuration() {
    let config = r#"{"agent":"mine","agents":{"mine":{"driver":"acp","command":"my-agent"}}}"#;
    let case = Case::new().file("home/.config/spektacular/config.json", config);
    for (name, key) in [("zed", "agent_servers"), ("acpx", "agents")] {
        let did = case.run(&["integrate", name]);
        assert_eq!((did.code, did.err.as_str()), (Some(0), ""));
        let [setup] = snippets(&did.out).try_into().unwrap();
        let server = &setup[key]["spektacular"];
        assert_eq!(server["command"], env!("CARGO_BIN_EXE_spektacular"), "{setup}");
        assert_eq!(server["args"], serde_json::json!(["acp", "--agent", "mine"]));
    }
}

#[test]
fn the_recipes_for_many_runs_are_written() {
    let case = Case::new();
    for (name, files) in [
        ("ray", &["ray_runs.py", "spektacular.py", "tasks.jsonl"][..]),
        ("kubernetes", &["tasks.yaml"]),
        ("github", &["tasks.yml"]),
    ] {
        let did = case.run(&["integrate", name, "--out", name]);
        assert_eq!((did.code, did.err.as_str()), (Some(0), ""));
        let mut written: Vec<_> =
            fs::read_dir(case.work().join(name)).unwrap().map(|file| file.unwrap().file_name()).collect();
        written.sort();
        assert_eq!(written, files);
    }
    let tasks = fs::read_to_string(case.work().join("ray/tasks.jsonl")).unwrap();
    for task in tasks.lines() {
        let mut task: Value = serde_json::from_str(task).unwrap();
        // As the client starts a run without an answer callback.
        task["start"]["interactive"] = false.into();
        let start = serde_json::json!({"v": "1", "type": "run.start", "payload": task["start"]});
        fs::write(case.work().join("start"), format!("{start}\n")).unwrap();
        let mut command = case.other("work", &["adhoc", "--output", "json"]);
        let did = command.stdin(fs::File::open(case.work().join("start")).unwrap()).output().unwrap();
        assert!(did.status.success(), "{}", String::from_utf8_lossy(&did.stdout));
    }
    // The command of each container and job is one that this program takes.
    let manifest = fs::read_to_string(case.work().join("kubernetes/tasks.yaml")).unwrap();
    let command = manifest.lines().map(str::trim).skip_while(|line| *line != "- spektacular").skip(1);
    let words: Vec<_> =
        command.take_while(|line| !line.starts_with("env")).filter_map(|line| line.strip_prefix("- ")).collect();
    let prompt = case.work().join("prompt");
    fs::write(&prompt, "Say hello.").unwrap();
    let words: Vec<String> =
        words.iter().map(|word| word.replace("/tasks/$(JOB_COMPLETION_INDEX)", prompt.to_str().unwrap())).collect();
    let did = case.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(did.code, Some(0), "{words:?} {}", did.err);
}

/// A runner signals the shell of a step, which passes no signal on.
#[test]
fn a_cancelled_step_of_the_workflow_cancels_its_run() {
    let case = Case::new();
    symlink(env!("CARGO_BIN_EXE_spektacular"), case.path("bin/spektacular")).unwrap();
    assert_eq!(case.run(&["integrate", "github", "--out", "github"]).code, Some(0));
    let workflow = fs::read_to_string(case.work().join("github/tasks.yml")).unwrap();
    let script = workflow.split("- name: Run the task").nth(1).unwrap().split("run: |\n").nth(1).unwrap();
    let script: Vec<&str> = script.lines().take_while(|line| line.starts_with("          ")).collect();
    let script = script.join("\n").replace("--agent claude", "--agent demo:hang");
    let mut step = case.command("bash");
    step.args(["-ec", &script]).env("RUNNER_TEMP", case.path("tmp")).env("PROMPT", "Go on");
    let mut step = step.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(step.stdout.take().unwrap());
    assert!(said.read_line(&mut String::new()).unwrap() > 0, "the agent says nothing");
    kill_process(Pid::from_child(&step), Signal::TERM).unwrap();
    said.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(step.wait().unwrap().code(), Some(143));
    assert!(fs::metadata(case.path("tmp/run.html")).unwrap().len() > 0, "the report is empty");
    assert_eq!(case.survivors(), Vec::<String>::new());
}

#[test]
fn a_wrong_command_line_says_what_to_do() {
    let cases: [(&[&str], &str); 6] = [
        (&["integrate", "zed", "--out", "x"], "integrate zed writes no files: leave out --out and --force."),
        (&["integrate", "openclow", "--out", "x"], "Unknown integration openclow. Did you mean openclaw?"),
        (&["integrate", "teams", "--out", "x"], "`spektacular integrate` lists the known ones."),
        (&["integrate", "openclaw"], "Missing --out: spektacular integrate openclaw --out DIR."),
        (&["integrate", "--out", "x"], "Missing NAME: openclaw, zed, acpx, ray, kubernetes or github."),
        (&["integrate", "openclaw", "more", "--out", "x"], "Too many words"),
    ];
    for (args, says) in cases {
        let case = Case::new();
        let did = case.run(args);
        assert!(did.refused(2).contains(says), "{args:?}: {}", did.err);
        assert!(!case.work().join("x").exists());
    }
}

#[test]
fn the_page_names_every_key_parameter_kind_and_the_tested_version() {
    let manifest: Value =
        serde_json::from_str(include_str!("../../../src/integrate/openclaw/openclaw.plugin.json")).unwrap();
    for key in manifest["configSchema"]["properties"].as_object().unwrap().keys() {
        assert!(PAGE.contains(&format!("| `{key}` |")), "the page lacks the key {key}");
    }
    let plugin = include_str!("../../../src/integrate/openclaw/index.js");
    let parameters = plugin.split("const PARAMETERS").nth(1).unwrap().split("  properties: {").nth(1).unwrap();
    let parameters = parameters.split("\n  },").next().unwrap().lines().filter_map(|line| line.trim().split_once(':'));
    let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let names: Vec<&str> = parameters.map(|(name, _)| name).filter(is_name).collect();
    assert_eq!(names, ["prompt", "cwd", "agent", "session_id", "timeout_s"]);
    let tool = PAGE.split("## The tool\n").nth(1).unwrap();
    assert!(names.iter().all(|name| tool.contains(&format!("`{name}`"))), "the page lacks a parameter of {names:?}");
    let questions = PAGE.split("## Questions\n").nth(1).unwrap().split("\n## ").next().unwrap();
    for kind in QuestionKind::ALL {
        assert!(questions.contains(&format!("`{}`", kind.word())), "the page lacks the kind {}", kind.word());
    }
    let pins: Value = serde_json::from_str(include_str!("../../openclaw/package.json")).unwrap();
    let version = pins["dependencies"]["openclaw"].as_str().unwrap();
    assert!(PAGE.contains(&format!("tested with OpenClaw {version}")), "the tested version is {version}");
    assert!(PAGE.lines().count() <= 120, "the page is long");
}

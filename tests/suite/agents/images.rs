//! Images of a prompt: how each dialect passes them on, which files are refused, and how recordings store them.

use crate::playback::world::{DATA, DOTS, LABEL};
use crate::support;
use crate::workflows::implement::{PLAN, allowed, phase, plan};

use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::Command;
use support::agent::{Script, init};
use support::{Case, Outcome};

/// Names one image in the agent's directory and one elsewhere.
fn with_dots(case: Case) -> Case {
    fs::write(case.path("work/dots.png"), DOTS).unwrap();
    fs::write(case.path("home/other"), DOTS).unwrap();
    case
}

/// A run with both images.
#[track_caller]
fn run(case: Case, agent: &str) -> Outcome {
    let images = json!(["dots.png", case.path("home/other")]);
    let mut session = with_dots(case).spawn();
    session.start(json!({"prompt": "Count.", "agent": agent, "images": images}));
    let outcome = session.finish();
    if let Some(started) = outcome.of_type("run.started").first() {
        assert_eq!(started["payload"]["config"]["images"], images);
    }
    outcome
}

/// A shell script that answers each line with the next of these responses, and writes the lines to `lines`.
fn answers(case: Case, name: &str, all: &[Value]) -> Case {
    let heard = case.path("lines");
    let mut script = format!(
        "#!/bin/sh\nrecv() {{ IFS= read -r line || exit 0; printf '%s\\n' \"$line\" >>'{}'; }}\n",
        heard.display()
    );
    for answer in all {
        script += &format!("recv\nprintf '%s\\n' '{answer}'\n");
    }
    case.program(name, &(script + "while recv; do :; done\n"))
}

/// The parameters of the agent's request `method`.
fn heard(outcome: &Outcome, method: &str) -> Option<Value> {
    let text = fs::read_to_string(outcome.case().path("lines")).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["method"] == method).map(|line| line["params"].clone())
}

/// An agent that speaks ACP. `images`: whether it takes images.
fn acp(case: Case, images: bool) -> Case {
    let abilities = json!({"promptCapabilities": {"image": images}});
    let all = [
        json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": abilities}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}),
    ];
    answers(case, "opencode", &all)
}

#[test]
fn claude_code_gets_the_data_before_the_text() {
    let outcome = run(Case::with(Script::hello()), "claude");
    outcome.completed();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}});
    let text = json!({"type": "text", "text": "Count."});
    assert_eq!(outcome.log().received()[0]["message"]["content"], json!([image, image, text]));
}

#[test]
fn an_acp_agent_gets_the_data_before_the_text() {
    let outcome = run(acp(Case::new(), true), "opencode");
    outcome.completed();
    let image = json!({"type": "image", "mimeType": "image/png", "data": DATA});
    let text = json!({"type": "text", "text": "Count."});
    assert_eq!(heard(&outcome, "session/prompt").unwrap()["prompt"], json!([image, image, text]));
}

#[test]
fn an_acp_agent_that_takes_no_images_is_named_after_its_handshake() {
    let outcome = run(acp(Case::new(), false), "opencode");
    let message = outcome.failed("invalid_request")["message"].to_string();
    assert!(message.contains("`images`") && message.contains("agent opencode does not accept images"), "{message}");
    assert_eq!(heard(&outcome, "session/new"), None);
}

#[test]
fn codex_gets_absolute_paths_before_the_text() {
    let all = [
        json!({"id": 1, "result": {"userAgent": "x/1.2.3 (y)"}}),
        // The answer to a notification: a message that changes nothing.
        json!({"method": "thread/nothing", "params": {}}),
        json!({"id": 2, "result": {"account": null, "requiresOpenaiAuth": false}}),
        json!({"id": 3, "result": {"thread": {"id": "t", "cliVersion": "0.1"}, "model": "m"}}),
        json!({"id": 4, "result": {"turn": {"id": "u"}}}),
    ];
    let over =
        json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "completed"}}});
    let case = answers(Case::new(), "codex", &all);
    let script = fs::read_to_string(case.path("bin/codex")).unwrap();
    let case = case.program("codex", &script.replace("while recv", &format!("printf '%s\\n' '{over}'\nwhile recv")));
    let (inside, outside) = (case.work().canonicalize().unwrap().join("dots.png"), case.path("home/other"));
    let outcome = run(case, "codex");
    outcome.completed();
    let image = |path| json!({"type": "localImage", "path": path});
    let text = json!({"type": "text", "text": "Count.", "text_elements": []});
    assert_eq!(heard(&outcome, "turn/start").unwrap()["input"], json!([image(inside), image(outside), text]));
}

#[test]
fn agents_without_images_are_named_before_they_start() {
    let config = json!({"agents": {"mine": {"driver": "lines", "command": "touch", "args": ["started"]}}});
    for agent in ["mine", "demo"] {
        let outcome = run(Case::new().file("home/.config/spektacular/config.json", &config.to_string()), agent);
        let message = outcome.failed("invalid_request")["message"].to_string();
        assert!(
            message.contains(&format!("`images` cannot be used: the agent {agent} does not accept images")),
            "{message}"
        );
        assert_eq!(outcome.frames.len(), 1);
        assert!(!outcome.case().path("work/started").exists());
    }
}

/// Files that are refused, each with the reason.
const REFUSED: [(&str, &str); 8] = [
    ("zzmissing", "cannot be read"),
    ("zzlocked/dots", "cannot be read"),
    ("zzfolder", "is not a regular file"),
    ("zzpipe", "is not a regular file"),
    ("/dev/null", "is not a regular file"),
    ("zzempty", "is an empty file"),
    ("zztext.png", "is not a PNG, JPEG, GIF or WebP image"),
    ("zzlarge", "is larger than 5 MiB"),
];

/// A case with these files. The large ones are sparse.
#[track_caller]
fn with_refused() -> Case {
    let case = with_dots(Case::with(Script::hello()));
    let path = |name: &str| case.path("work").join(name);
    fs::create_dir(path("zzfolder")).unwrap();
    fs::write(path("zzempty"), "").unwrap();
    fs::write(path("zztext.png"), "some text").unwrap();
    for (name, size) in [("zzlarge", (5 << 20) + 1), ("fits", 5 << 20)] {
        fs::write(path(name), DOTS).unwrap();
        File::options().write(true).open(path(name)).unwrap().set_len(size).unwrap();
    }
    assert!(Command::new("/usr/bin/mkfifo").arg(path("zzpipe")).status().unwrap().success());
    case
}

#[test]
fn a_file_that_is_no_image_is_refused_by_its_number() {
    for (name, why) in REFUSED {
        let mut session = with_refused().spawn();
        session.start(json!({"images": ["dots.png", name]}));
        let outcome = session.finish();
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("run.start: `images`: number 2 {why}")), "{name}: {message}");
        assert_eq!(outcome.frames.len(), 1, "{name}");
        assert!(!outcome.log().ran(), "{name}");
        outcome.never_shows(name);
    }
}

#[test]
fn the_number_and_the_size_of_all_images_are_limited() {
    let (many, large) = (vec!["dots.png"; 21], vec!["fits"; 5]);
    for (images, why) in [(many, "`images` must be a list of at most 20 paths"), (large, "must total at most 20 MiB")] {
        let mut session = with_refused().spawn();
        session.start(json!({ "images": images }));
        let message = session.finish().failed("invalid_request")["message"].to_string();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn the_largest_images_fit_into_one_line() {
    // The `read` of the shell takes one system call per byte.
    let script = Script::bare().sh("head -n 1 >\"$D/line\"").out(&init()).say("msg_1", "Hello").done("Hello");
    let mut session = with_refused().agent(script).spawn();
    session.start(json!({"images": ["fits", "fits", "fits", "fits"]}));
    let outcome = session.finish();
    outcome.completed();
    let line: Value = serde_json::from_str(&outcome.log().text("line")).unwrap();
    let blocks = &line["message"]["content"];
    let lengths: Vec<usize> = (0..4).map(|at| blocks[at]["source"]["data"].as_str().unwrap().len()).collect();
    assert_eq!(lengths, [(5_usize << 20).div_ceil(3) * 4; 4]);
}

#[test]
fn an_image_that_changes_before_it_is_sent_ends_the_run() {
    for change in ["rm dots.png", "echo x >>dots.png", "echo x >dots.png"] {
        let case = acp(Case::new(), true);
        let script = fs::read_to_string(case.path("bin/opencode")).unwrap();
        let case = case.program("opencode", &script.replacen("recv\n", &format!("recv\n{change}\n"), 1));
        let outcome = run(case, "opencode");
        let message = outcome.failed("invalid_request")["message"].to_string();
        assert!(message.contains("run.start: `images`: number 1 "), "{change}: {message}");
        assert_eq!(heard(&outcome, "session/prompt"), None, "{change}");
    }
}

#[test]
fn a_recording_has_the_size_of_an_image_in_place_of_its_data() {
    for (case, agent) in [(Case::with(Script::hello()), "claude"), (acp(Case::new(), true), "opencode")] {
        let file = case.path("run.jsonl");
        let outcome = run(case.args(&["--record", file.to_str().unwrap()]), agent);
        outcome.completed();
        let recording = fs::read_to_string(file).unwrap();
        assert_eq!((recording.matches(LABEL).count(), recording.contains(&DATA[..20])), (2, false), "{recording}");
    }
}

#[test]
fn a_flag_sets_the_images_and_a_dry_run_shows_their_paths() {
    let case = with_dots(Case::with(Script::hello()));
    let other = case.path("home/other");
    let flags = ["--image", "dots.png", "--image", other.to_str().unwrap(), "Count."];
    let done = case.run(&[&["adhoc", "--headless"], &flags[..]].concat());
    assert_eq!((done.code, done.out.trim()), (Some(0), "Hello"), "{done:?}");
    let dry = case.run(&[&["adhoc", "--dry-run"], &flags[..]].concat());
    let inside = case.work().canonicalize().unwrap().join("dots.png");
    for path in [&inside, &other] {
        let shown = format!("image        {}", path.display());
        assert!(dry.out.lines().any(|line| line == shown), "{}", dry.out);
    }
    let dry = case.run(&[&["adhoc", "--dry-run", "--json"], &flags[..]].concat()).json(0);
    assert_eq!(dry["images"], json!([inside, other]));
    let done = case.run(&["adhoc", "--image", "zzmissing", "Count."]);
    assert!(done.refused(2).contains("--image: number 1 cannot be read"), "{done:?}");
    assert!(!done.err.contains("zzmissing"), "{done:?}");
}

#[test]
fn in_a_workflow_each_session_gets_the_images_with_its_first_prompt() {
    let images = |outcome: &Outcome| -> Vec<usize> {
        let all = outcome.log().received();
        let prompts = all.iter().filter(|line| line["type"] == "user");
        let is_image = |block: &&Value| block["type"] == "image";
        let count =
            |line: &Value| line["message"]["content"].as_array().map_or(0, |all| all.iter().filter(is_image).count());
        prompts.map(count).collect()
    };
    let start = json!({"prompt": "Count.", "images": ["dots.png"], "workflow": {"name": "count", "attempts": 2}});
    let mut session = with_dots(Case::with(Script::hello())).subcommand("spec").spawn();
    session.start(start);
    let outcome = session.finish();
    outcome.failed("result_invalid");
    assert_eq!(images(&outcome), [1, 0], "two turns of one session");

    let work = "case $(cat \"$D/stdin\") in *'Implement Phase 2'*) touch b;; *) touch a;; esac";
    let text = plan(&[phase(1, &["test -e a"], ""), phase(2, &["test -e b"], "")]);
    let case = with_dots(Case::with(Script::new().sh(work).done("Done"))).subcommand("implement");
    let case = case.file(&format!("work/{PLAN}"), &text).git();
    let dry = case.run(&["implement", "--dry-run", "--image", "dots.png", "greeting"]);
    assert!(dry.out.lines().any(|line| line.starts_with("image        ")), "{dry:?}");
    let mut start = allowed(json!({}));
    start["images"] = json!(["dots.png"]);
    let mut session = case.spawn();
    session.start(start);
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(images(&outcome), [1, 1], "two sessions");
}

//! `agents list` and `agents check`, and `adhoc --dry-run`: what is there, and what would be started.
#![expect(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::plain::Plain;

fn of<'a>(whole: &'a Value, name: &str) -> &'a Value {
    whole["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

#[test]
fn the_list_has_every_built_in_agent() {
    let plain = Plain::new();
    let list = plain.run(&["agents", "list", "--output", "json"]).json(0);
    let claude = json!({"name": "claude", "display_name": "Claude Code", "aliases": ["claude-code"], "driver": "claude",
        "command": ["claude"]});
    assert_eq!(of(&list, "claude"), &claude);
    assert_eq!(of(&list, "opencode")["driver"], "acp");
    let text = plain.run(&["agents", "list"]);
    assert_eq!(text.code, Some(0));
    for name in ["claude, claude-code", "codex", "demo", "gemini --acp", "opencode acp"] {
        assert!(text.out.contains(name), "{name} is not in {}", text.out);
    }
}

#[test]
fn a_missing_agent_is_an_answer() {
    let plain = Plain::new();
    let before = plain.listing();
    let whole = plain.run(&["agents", "check", "--output", "json"]).json(0);
    for name in ["claude", "codex", "gemini", "opencode"] {
        let agent = of(&whole, name);
        assert_eq!(
            (&agent["available"], &agent["path"], &agent["version"]),
            (&json!(false), &json!(null), &json!(null))
        );
        assert!(agent["install"].as_str().unwrap().contains("npm install"), "{agent}");
    }
    let demo = of(&whole, "demo");
    assert_eq!((&demo["available"], &demo["export"], &demo["open"]), (&json!(true), &json!(false), &json!(false)));
    let text = plain.run(&["agents", "check", "gemini-cli"]);
    assert_eq!(text.code, Some(0));
    assert!(text.out.starts_with("gemini (Gemini CLI)\n") && text.out.contains("not on the PATH"), "{}", text.out);
    assert_eq!(plain.listing(), before, "something was written");
}

#[test]
fn a_package_tells_the_version_and_nothing_is_started() {
    let module = "lib/node_modules/@openai/codex";
    let plain = Plain::new()
        .script(&format!("{module}/bin/codex.js"), "echo started >>\"$HOME/started\"; echo 9.9.9")
        .file(&format!("{module}/package.json"), r#"{"name":"@openai/codex","version":"1.2.3"}"#)
        .link("bin/codex", &format!("{module}/bin/codex.js"));
    let whole = plain.run(&["agents", "check", "codex", "--output", "json"]).json(0);
    let codex = of(&whole, "codex");
    assert_eq!((&codex["available"], &codex["version"]), (&json!(true), &json!("1.2.3")));
    assert_eq!(codex["path"], json!(plain.path("bin/codex")));
    assert_eq!(codex["capabilities"]["questions"], json!(["confirm", "select", "text", "secret", "file_path"]));
    assert!(!plain.path("home/started").exists());
}

#[test]
fn the_package_of_another_program_does_not_count() {
    let plain = Plain::new()
        .script("lib/wrapper/claude", "echo '2.1.330 (Claude Code)'")
        .file("lib/wrapper/package.json", r#"{"name":"my-wrapper","version":"1.2.3"}"#)
        .link("bin/claude", "lib/wrapper/claude");
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(0);
    assert_eq!(of(&whole, "claude")["version"], "2.1.330");
}

#[test]
fn a_program_that_is_asked_leaves_no_file_and_no_process() {
    let plain = Plain::new().script(
        "bin/codex",
        "[ \"$*\" = --version ] || exit 9\nmkdir \"$CODEX_HOME/tmp\" && : >\"$TMPDIR/x\" || exit 8\n(setsid sleep 1000 >/dev/null 2>&1 &)\n\
         echo \"$CODEX_HOME\" >>\"$HOME/seen\"\necho codex-cli 0.169.0",
    );
    let whole = plain.run(&["agents", "check", "codex", "--output", "json"]).json(0);
    assert_eq!(of(&whole, "codex")["version"], "0.169.0");
    let folder = fs::read_to_string(plain.path("home/seen")).unwrap();
    assert!(folder.starts_with(plain.path("tmp").to_str().unwrap()), "{folder}");
    assert_eq!(fs::read_dir(plain.path("tmp")).unwrap().count(), 0, "files are left");
    let home = format!("HOME={}\0", plain.path("home").display());
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environ).contains(&home), "a process is left: {:?}", entry.path());
    }
}

#[test]
fn a_version_that_is_none_is_unknown() {
    for body in ["exit 1", "echo hello", "echo 1.2.3; exit 3", "kill -KILL $$"] {
        let plain = Plain::new().script("bin/claude", body);
        let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(0);
        let claude = of(&whole, "claude");
        assert_eq!((&claude["available"], &claude["version"]), (&json!(true), &json!(null)), "{body}");
    }
}

#[test]
fn a_log_in_is_seen_and_never_shown() {
    let check = |plain: &Plain, name: &str| {
        let did = plain.run(&["agents", "check", name, "--output", "json"]);
        assert!(!did.out.contains("hunter2"), "{}", did.out);
        of(&did.json(0), name)["logged_in"].as_str().unwrap().to_owned()
    };
    assert_eq!(check(&Plain::new(), "claude"), "no");
    assert_eq!(check(&Plain::new(), "codex"), "no");
    assert_eq!(check(&Plain::new(), "gemini"), "unknown");
    assert_eq!(check(&Plain::new(), "opencode"), "unknown");
    assert_eq!(check(&Plain::new().env("ANTHROPIC_API_KEY", "hunter2"), "claude"), "yes");
    assert_eq!(check(&Plain::new().env("GEMINI_API_KEY", "hunter2"), "gemini"), "yes");
    // Codex does not use it.
    assert_eq!(check(&Plain::new().env("OPENAI_API_KEY", "hunter2"), "codex"), "no");
    let stored = [
        ("claude", "home/.claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"hunter2"}}"#, "yes"),
        ("codex", "home/.codex/auth.json", r#"{"OPENAI_API_KEY":"hunter2"}"#, "yes"),
        ("codex", "home/.codex/config.toml", "model_provider = \"own\"", "unknown"),
        ("gemini", "home/.gemini/oauth_creds.json", r#"{"refresh_token":"hunter2"}"#, "yes"),
        ("opencode", "home/.local/share/opencode/auth.json", r#"{"anthropic":{"type":"api","key":"hunter2"}}"#, "yes"),
        ("opencode", "home/.local/share/opencode/auth.json", "{}", "unknown"),
    ];
    for (name, path, content, wanted) in stored {
        assert_eq!(check(&Plain::new().file(path, content), name), wanted, "{path}: {content}");
    }
    let moved = Plain::new().file("elsewhere/auth.json", r#"{"tokens":{"id_token":"hunter2"}}"#);
    let folder = moved.path("elsewhere").display().to_string();
    assert_eq!(check(&moved.env("CODEX_HOME", &folder), "codex"), "yes");
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    let plain = Plain::new();
    assert!(plain.run(&["agents", "check", "cluade"]).refused(2).contains("Did you mean claude?"));
    assert!(plain.run(&["agents", "check", "zzz", "--output", "json"]).refused(2).contains(", claude, "));
    for args in [&["agents"][..], &["agents", "lits"], &["agents", "list", "x"], &["agents", "check", "a", "b"]] {
        assert!(plain.run(args).refused(2).contains("agents check NAME"), "{args:?}");
    }
}

#[test]
fn a_dry_run_shows_the_command_and_names_only() {
    let plain = Plain::new().script("bin/claude", ": >\"$HOME/started\"").env("CLAUDECODE", "1").env("MINE", "x");
    let args =
        ["adhoc", "--dry-run", "--output", "json", "--model", "m", "--env", "TOKEN_A=hunter2hunter2", "--agent-arg"];
    let shown = plain.run(&[&args[..], &["--key=hunter2hunter2", "-C", "../home", "do it"]].concat()).json(0);
    let command: Vec<&str> = shown["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(command[..2], ["claude", "--print"]);
    assert!(command.contains(&"--model=m") && command.contains(&"--key=[redacted]"), "{command:?}");
    assert_eq!(shown["path"], json!(plain.path("bin/claude")));
    assert_eq!(shown["cwd"], json!(plain.path("home")));
    assert_eq!((&shown["agent"], &shown["driver"]), (&json!("claude"), &json!("claude")));
    let names =
        |field: &str| shown[field].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    assert!(names("env_set").contains("\"TOKEN_A\"") && names("env_set").contains("DISABLE_AUTOUPDATER"), "{shown}");
    assert!(names("env_removed").contains("CLAUDECODE") && !names("env_removed").contains("MINE"), "{shown}");
    assert!(!shown.to_string().contains("hunter2"), "{shown}");
    assert!(!plain.path("home/started").exists(), "it was started");

    let text = plain.run(&["adhoc", "--dry-run", "--env-allow", "NONE", "--agent-arg", "a b'c"]);
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""));
    assert!(text.out.contains(r"'a b'\''c'") && text.out.contains("removes CLAUDECODE MINE"), "{}", text.out);
}

#[test]
fn a_dry_run_tells_what_has_no_effect_and_cuts_what_is_long() {
    let plain = Plain::new();
    let long = "x".repeat(5000);
    let args = ["adhoc", "--dry-run", "--output", "json", "-a", "codex", "--max-turns", "3", "--agent-arg", &long];
    let shown = plain.run(&args).json(0);
    assert_eq!(shown["path"], json!(null));
    assert_eq!(shown["warnings"], json!(["`max_turns` has no effect on this agent"]));
    assert!(shown["command"].as_array().unwrap().last().unwrap().as_str().unwrap().ends_with("… (5000 bytes)"));
}

#[test]
fn a_dry_run_is_refused_as_a_run_is() {
    let plain = Plain::new();
    let args = ["adhoc", "--dry-run", "-C", "/nowhere/at/all"];
    assert!(plain.run(&args).refused(2).contains("invalid_request"));
    let frame = plain.run(&[&args[..], &["--output", "json"]].concat()).json(2);
    assert_eq!((&frame["type"], &frame["payload"]["code"]), (&json!("run.failed"), &json!("invalid_request")));
    let long = "x".repeat(131_060);
    let frame = plain.run(&["adhoc", "--dry-run", "--output", "json", "--system-prompt", &long]).json(2);
    assert_eq!(frame["payload"]["code"], "invalid_request");
}

#[test]
fn a_program_that_hangs_is_given_up_and_ended() {
    let plain = Plain::new()
        .script("bin/claude", "trap '' TERM\necho 1.2.3\necho $$ >\"$HOME/pid\"\nwhile :; do sleep 1000; done");
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(0);
    assert_eq!(of(&whole, "claude")["version"], json!(null));
    let pid = fs::read_to_string(plain.path("home/pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "it is still there");
}

#[test]
fn an_agent_of_the_users_has_what_its_driver_has() {
    let plain = Plain::new().script("bin/mine", "[ \"$*\" = 'first --version' ] && echo 'codex-cli 7.8.9'").file(
        "home/.config/spektacular/config.json",
        r#"{"agents":{"mine":{"driver":"codex","command":"mine","args":["first"],"env":{"CODEX_HOME":"/nowhere"}}}}"#,
    );
    let whole = plain.run(&["agents", "check", "mine", "--output", "json"]).json(0);
    let mine = of(&whole, "mine");
    assert_eq!((&mine["version"], &mine["logged_in"]), (&json!("7.8.9"), &json!("no")));
    assert_eq!((&mine["open"], &mine["command"]), (&json!(true), &json!(["mine", "first"])));
    let broken = Plain::new().file("home/.config/spektacular/config.json", "{");
    assert!(broken.run(&["agents", "list"]).refused(2).contains("invalid_config"));
}

//! Tests of `agents list`, `agents check` and `adhoc --dry-run`: the installed agents, and the command that a run would
//! start.

use crate::support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use support::{Case, run};

fn of<'a>(whole: &'a Value, name: &str) -> &'a Value {
    whole["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

/// A machine without agents. A real npx takes half a second of a processor's time to find that out for each of its
/// agents.
fn bare() -> Case {
    Case::new().script("bin/npx", "echo ENOTCACHED >&2; exit 1")
}

#[test]
fn the_list_has_every_built_in_agent() {
    let plain = bare();
    let list = plain.run(&["agents", "list", "--output", "json"]).json(0);
    let claude = json!({"name": "claude", "display_name": "Claude Code", "aliases": ["claude-code"], "driver": "claude",
        "command": ["claude"], "package": null,
        "tested": {"version": "2.1.330", "keeps": ["permissions", "read-only", "questions", "mcp_servers", "session_id", "failures"]}});
    assert_eq!(of(&list, "claude"), &claude);
    assert_eq!(of(&list, "opencode")["driver"], "acp");
    assert_eq!(of(&list, "pi-acp")["tested"]["keeps"], json!(["session_id"]));
    assert_eq!(of(&list, "goose")["tested"], json!(null));
    let text = plain.run(&["agents", "list"]);
    assert_eq!(text.code, Some(0));
    for name in
        ["Claude Code, tested 2", "; also claude-code\n", "codex", "demo", "gemini  ", "OpenCode, ", ", untested\n"]
    {
        assert!(text.out.contains(name), "{name} is not in {}", text.out);
    }
}

#[test]
fn an_agent_that_is_missing_is_not_available_and_exits_4_by_name() {
    let plain = bare();
    let before = plain.listing();
    let whole = plain.run(&["agents", "check", "--output", "json"]).json(0);
    for name in ["claude", "codex", "gemini", "opencode"] {
        let agent = of(&whole, name);
        assert_eq!(
            (&agent["available"], &agent["path"], &agent["version"]),
            (&json!(false), &json!(null), &json!(null))
        );
        assert_eq!(agent["problem"], format!("{name} was not found on the PATH"));
        assert!(agent["install"].as_str().unwrap().contains("npm install"), "{agent}");
    }
    let demo = of(&whole, "demo");
    assert_eq!((&demo["available"], &demo["problem"]), (&json!(true), &json!(null)));
    assert_eq!((&demo["export"], &demo["open"]), (&json!(false), &json!(false)));
    let text = plain.run(&["agents", "check", "gemini-cli"]);
    assert_eq!((text.code, text.err.as_str()), (Some(4), ""));
    assert_eq!(
        text.out,
        "gemini (Gemini CLI)\n  problem    gemini was not found on the PATH\n  install    npm install -g @google/gemini-cli\n"
    );
    let one = plain.run(&["agents", "check", "gemini", "--output", "json"]).json(4);
    assert_eq!(of(&one, "gemini"), of(&whole, "gemini"));
    assert_eq!(plain.run(&["agents", "check", "demo"]).code, Some(0));
    assert_eq!(plain.listing(), before, "something was written");
}

#[test]
fn the_missing_login_and_default_come_first_in_color_on_a_terminal() {
    let case = || bare().script("bin/codex", "echo 1.2.3");
    let missing = "  claude     claude was not found on the PATH: npm install -g @anthropic-ai/claude-code";
    let login = "  codex      not logged in: run `codex login`, or set the provider's key";
    let plain = case().run(&["agents", "check"]).out;
    let lines: Vec<&str> = plain.lines().take(3).collect();
    assert!(lines[0] == "To do:" && lines[1..].contains(&missing) && lines[1..].contains(&login), "{plain}");
    let (_, colored) = case().env("TERM", "xterm").at_terminal(&["agents", "check"]).ends();
    assert!(colored.starts_with("\u{1b}[33mTo do:\r\n"), "{colored}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, dull) = case().env(name, value).at_terminal(&["agents", "check"]).ends();
        assert!(dull.starts_with("To do:\r\n") && !dull.contains('\u{1b}'), "{name}: {dull}");
    }
    let alone = case().run(&["agents", "check", "codex"]).out;
    assert!(alone.starts_with(&format!("To do:\n{login}\n\ncodex (Codex)\n")), "{alone}");
    let fine = case()
        .env("ANTHROPIC_API_KEY", "hunter2")
        .script("bin/claude", "echo 2.1.330")
        .run(&["agents", "check", "claude"]);
    assert!(fine.out.starts_with("claude (Claude Code)\n"), "{fine:?}");
}

#[test]
fn available_agents_come_first_and_the_others_share_one_line() {
    let plain = bare().script("bin/opencode", "echo 1.2.3").script("bin/claude", "exit 1");
    let text = plain.run(&["agents", "check"]);
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""));
    let (first, rest) = text.out.split_once("\nNot available: ").unwrap();
    let names = |text: &str| -> Vec<String> {
        let heads = text.lines().filter(|line| line.contains('(') && !line.starts_with(' '));
        heads.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(first), ["demo", "opencode"]);
    let missing = "To do:\n  claude     `claude --version` failed with exit code 1\n\ndemo (Demo)\n";
    assert!(first.starts_with(missing), "{first}");
    assert!(rest.contains(", claude, claude-acp, "), "{rest}");
    let (rest, sandbox) = rest.split_once("\n\n").unwrap();
    assert!(rest.ends_with(".\n`spektacular agents check --all` shows why."), "{rest}");
    assert_eq!(rest.lines().count(), 2);
    assert!(sandbox.starts_with("Sandbox: ") && sandbox.lines().count() == 1, "{sandbox}");

    let all = plain.run(&["agents", "check", "--all"]);
    assert_eq!(all.code, Some(0));
    assert!(all.out.starts_with(first) && !all.out.contains("Not available"), "{}", all.out);
    assert!(
        all.out.contains("claude (Claude Code)\n  problem    `claude --version` failed with exit code 1\n"),
        "{}",
        all.out
    );
    let listed = plain.run(&["agents", "list", "--output", "json"]).json(0);
    assert_eq!(names(&all.out).len(), listed["agents"].as_array().unwrap().len());

    let json = plain.run(&["agents", "check", "--output", "json"]).json(0);
    let available: Vec<bool> =
        json["agents"].as_array().unwrap().iter().map(|agent| agent["available"] == true).collect();
    assert_eq!(available[..3], [true, true, false]);
    // The list and the check share these fields.
    for agent in listed["agents"].as_array().unwrap() {
        let checked = of(&json, agent["name"].as_str().unwrap());
        for (field, value) in agent.as_object().unwrap() {
            assert_eq!(&checked[field], value, "{field}");
        }
    }
}

/// A system that promises less than Linux says so once, to people and to programs.
#[test]
fn a_check_has_the_reminder_of_systems_that_promise_less() {
    let plain = bare();
    let (all, one) = (["agents", "check"], ["agents", "check", "demo"]);
    let json = |args: &[&str]| plain.run(&[args, &["--output", "json"]].concat()).json(0)["reminder"].clone();
    let reminder = json(&all);
    assert_eq!(json(&one), reminder);
    let shown = plain.run(&all).out;
    match reminder.as_str() {
        Some(text) => assert!(!cfg!(feature = "linux") && shown.ends_with(&format!("\n{text}\n")), "{shown}"),
        None => assert!(cfg!(feature = "linux") && reminder.is_null() && !shown.contains("On this system"), "{shown}"),
    }
}

#[test]
fn the_reference_has_every_field_of_the_list_and_the_check() {
    let page = include_str!("../../../src/agent/reference.md");
    let (_, section) = page.split_once("## Agents on this machine\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let plain = bare();
    let fields = |action: &str| -> BTreeSet<String> {
        let whole = plain.run(&["agents", action, "--output", "json"]).json(0);
        let all = whole["agents"].as_array().unwrap();
        let keys = |agent: &Value| agent.as_object().unwrap().keys().cloned().collect();
        let first: BTreeSet<String> = keys(&all[0]);
        assert!(all.iter().all(|agent| keys(agent) == first), "every agent has the same fields");
        first
    };
    let rows = |wanted: &[&str]| -> BTreeSet<String> {
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows.filter(|row| wanted.contains(&row.split(" | ").nth(1).unwrap()));
        rows.flat_map(|row| row.split(" | ").next().unwrap().split(", ").map(|name| name.replace('`', ""))).collect()
    };
    assert_eq!(fields("list"), rows(&["both"]));
    assert_eq!(fields("check"), rows(&["both", "check"]));
}

#[test]
fn a_check_reports_the_same_capabilities_as_run_started() {
    let entries = json!({"agents": {
        "words": {"driver": "lines", "command": "words", "resume_args": ["{session}"], "session_patterns": ["x"]},
        "mine": {"driver": "acp", "command": "mine"}
    }});
    let mut plain = bare().file("home/.config/spektacular/config.json", &entries.to_string());
    let names = ["claude", "codex", "gemini", "opencode", "goose", "words", "mine"];
    for name in names {
        plain = plain.script(&format!("bin/{name}"), "exit 3");
    }
    let whole = plain.run(&["agents", "check", "--output", "json"]).json(0);
    for name in names.into_iter().chain(["demo"]) {
        // With a scripted answer, the run may ask.
        let args = ["adhoc", "--output", "json", "--agent", name, "--answer", "permission=deny", "hi"];
        let run = plain.run(&args);
        let started: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
        assert_eq!(started["type"], "run.started", "{name}: {started}");
        assert_eq!(of(&whole, name)["capabilities"], started["payload"]["capabilities"], "{name}");
    }
}

#[test]
fn the_version_comes_from_the_program_and_not_from_a_file_beside_it() {
    let module = "lib/node_modules/@openai/codex";
    let plain = bare()
        .script(&format!("{module}/bin/codex.js"), "echo codex-cli 9.9.9")
        .file(&format!("{module}/package.json"), r#"{"name":"@openai/codex","version":"1.2.3"}"#)
        .link("bin/codex", &format!("{module}/bin/codex.js"));
    let whole = plain.run(&["agents", "check", "codex", "--output", "json"]).json(0);
    let codex = of(&whole, "codex");
    assert_eq!((&codex["available"], &codex["version"]), (&json!(true), &json!("9.9.9")));
    assert_eq!(codex["path"], json!(plain.path("bin/codex")));
}

/// An npx with one package, which prints its arguments.
const NPX: &str = r#"echo "$npm_config_offline $npm_config_yes $*" >>"$HOME/npx"
[ -d "$npm_config_logs_dir" ] || case "$npm_config_logs_dir" in "$TMPDIR"/*) ;; *) exit 9 ;; esac
case "$2" in --package=pi-acp@*) exit 0 ;; --package=kimi@* | --package=@moonshot-ai/kimi-code@*) echo 0.4.2; exit 0 ;; esac
case "$2" in --package=@qwen-code/qwen-code@*) exit 7 ;; esac
echo "npm error code ENOTCACHED" >&2
exit 1"#;

#[test]
fn an_agent_of_npx_is_available_when_its_package_is_there_and_nothing_is_downloaded() {
    let own = r#"{"agents":{"own":{"driver":"acp","command":"npx","args":["-y","own-agent","--acp"]}}}"#;
    let plain = Case::new().script("bin/npx", NPX).file("home/.config/spektacular/config.json", own);
    let whole = plain.run(&["agents", "check", "--output", "json"]).json(0);
    let found = |name: &str| (of(&whole, name)["available"].clone(), of(&whole, name)["problem"].clone());
    assert_eq!(found("kimi"), (json!(true), json!(null)));
    assert_eq!(of(&whole, "kimi")["version"], "0.4.2");
    // It takes no flag for its version.
    assert_eq!((found("pi-acp"), &of(&whole, "pi-acp")["version"]), ((json!(true), json!(null)), &json!(null)));
    let agents = whole["agents"].as_array().unwrap().iter();
    let by_npx = agents.filter(|agent| agent["package"] != json!(null)).map(|agent| agent["name"].as_str().unwrap());
    let by_npx: Vec<&str> = by_npx.chain(["own"]).collect();
    assert!(by_npx.contains(&"copilot"), "{by_npx:?}");
    for name in by_npx.iter().filter(|name| !["kimi", "pi-acp", "qwen"].contains(name)) {
        assert_eq!(found(name), (json!(false), json!("npx has not downloaded it yet; the first run will")), "{name}");
    }
    let package = of(&whole, "qwen")["package"].as_str().unwrap();
    let failed = format!("`npx --no-install --package={package} qwen --version` failed with exit code 7");
    assert_eq!(found("qwen"), (json!(false), json!(failed)));
    let asked = fs::read_to_string(plain.path("home/npx")).unwrap();
    assert_eq!(asked.lines().count(), by_npx.len(), "{asked}");
    for line in asked.lines() {
        let is_asked = line.ends_with(" --version") || line.ends_with(" true");
        assert!(line.starts_with("true false --no-install ") && is_asked, "{line}");
    }
    // The program itself comes first.
    let plain = Case::new().script("bin/npx", NPX).script("bin/qwen", "echo 0.25.0");
    let qwen = plain.run(&["agents", "check", "qwen", "--output", "json"]).json(0);
    assert_eq!((&of(&qwen, "qwen")["version"], plain.path("home/npx").exists()), (&json!("0.25.0"), false));
}

/// The failure of a run with an agent whose program is missing. `npx`: the script in place of npx.
fn failure_by_npx(npx: Option<&str>) -> (String, String) {
    let case = npx.into_iter().fold(Case::new(), |case, script| case.script("bin/npx", script));
    // This machine may have an npx.
    let path = case.path("bin").to_str().unwrap().to_owned();
    let case = if npx.is_none() { case.env("PATH", &path) } else { case };
    let outcome = run(case, json!({"agent": "kimi"}));
    let failed = &outcome.frames.last().unwrap()["payload"];
    (failed["code"].as_str().unwrap().to_owned(), failed["message"].as_str().unwrap().to_owned())
}

#[test]
fn npx_starts_an_agent_whose_program_is_missing_and_its_failure_has_a_name() {
    for (said, wanted) in [
        ("npm error code E404", "the npm registry has no @moonshot-ai/kimi-code@"),
        ("npm ERR! code ETARGET", "the npm registry has no @moonshot-ai/kimi-code@"),
        ("npm error code ENOTFOUND", "the npm registry is not reachable (ENOTFOUND)"),
        ("npm error code EACCES", "npm fails with EACCES"),
        ("npm error code a/b", "npm fails"),
    ] {
        let (code, message) = failure_by_npx(Some(&format!("echo '{said}' >&2; exit 1")));
        assert!(
            code == "agent_start_failed" && message.contains(wanted) && !message.contains("a/b"),
            "{said}: {message}"
        );
    }
    let slow = Case::new().script("bin/npx", "while read -r line; do :; done");
    let outcome = run(slow, json!({"agent": "kimi", "start_timeout_s": 1.0}));
    outcome.failed("start_timeout");
    let texts: Vec<&str> = outcome.progress("status").iter().map(|frame| frame.text("text")).collect();
    assert!(
        texts.iter().any(|text| text.contains("npx runs @moonshot-ai/kimi-code@2.1.0, and downloads it first")),
        "{texts:?}"
    );
    let (code, message) = failure_by_npx(Some("exit 1"));
    assert!(code == "agent_start_failed" && message.starts_with("Kimi exited without output"), "{message}");
    let (code, message) = failure_by_npx(None);
    assert!(code == "agent_not_found" && message.contains("nor npx"), "{message}");
    let case = || Case::new().script("bin/npx", "");
    let planned = case().run(&["adhoc", "--agent", "kimi", "--dry-run", "--output", "json", "go"]).json(0);
    let command: Vec<&str> = planned["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(command.starts_with(&["npx", "--prefix=/", "--yes"]) && command.ends_with(&["kimi", "acp"]), "{command:?}");
    assert_eq!(command.len(), 6, "{command:?}");
    let planned =
        case().script("bin/kimi", "").run(&["adhoc", "--agent", "kimi", "--dry-run", "--output", "json", "go"]);
    assert_eq!(planned.json(0)["command"], json!(["kimi", "acp"]));
}

#[test]
fn an_unknown_program_is_found_but_not_started() {
    let entries = json!({"agents": {
        "task": {"driver": "lines", "command": "task"}, "mine": {"driver": "acp", "command": "task", "args": ["acp"]},
        "gone": {"driver": "lines", "command": "/no/such/file"}, "plain": {"driver": "lines", "command": "plain"}
    }});
    let plain = bare()
        .script("bin/task", ": >\"$HOME/started\"; exit 1")
        .file("bin/plain", "")
        .file("home/.config/spektacular/config.json", &entries.to_string());
    let whole = plain.run(&["agents", "check", "--output", "json"]).json(0);
    for (name, problem) in [
        ("task", json!(null)),
        ("mine", json!(null)),
        ("gone", json!("/no/such/file was not found")),
        ("plain", json!("plain cannot be started: check its permissions and its interpreter")),
    ] {
        assert_eq!(of(&whole, name)["problem"], problem, "{name}");
        assert_eq!(of(&whole, name)["version"], json!(null), "{name}");
    }
    assert!(!plain.path("home/started").exists(), "it was started");
}

#[test]
fn a_program_that_is_asked_leaves_no_file_and_no_process() {
    let plain = bare().script(
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
fn an_agent_whose_version_query_fails_is_not_available() {
    for (body, problem) in [
        ("exit 1", "`claude --version` failed with exit code 1"),
        ("echo 1.2.3; exit 3", "`claude --version` failed with exit code 3"),
        ("kill -KILL $$", "`claude --version` was killed by a signal"),
        ("head -c 2000000 /dev/zero", "`claude --version` printed more than 1 MiB"),
    ] {
        let plain = bare().script("bin/claude", body);
        let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(4);
        let claude = of(&whole, "claude");
        assert_eq!((&claude["available"], &claude["version"]), (&json!(false), &json!(null)), "{body}");
        assert_eq!(claude["problem"], problem, "{body}");
    }
    let plain = bare().file("bin/claude", "#!/no/such/interpreter\n");
    let done = plain.command("chmod").args(["755", "../bin/claude"]).status().unwrap();
    assert!(done.success());
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(4);
    assert_eq!(of(&whole, "claude")["problem"], "claude cannot be started: check its permissions and its interpreter");
    // A program that runs but does not report a version is available.
    let plain = bare().script("bin/claude", "echo hello");
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(0);
    assert_eq!((&of(&whole, "claude")["available"], &of(&whole, "claude")["version"]), (&json!(true), &json!(null)));
}

#[test]
fn a_login_is_detected_but_never_shown() {
    let check = |plain: &Case, name: &str| {
        // If no agent is installed, the login is unaffected.
        let did = plain.run(&["agents", "check", name, "--output", "json"]);
        assert!(!did.out.contains("hunter2"), "{}", did.out);
        of(&did.json(4), name)["logged_in"].as_str().unwrap().to_owned()
    };
    assert_eq!(check(&bare(), "claude"), "no");
    assert_eq!(check(&bare(), "codex"), "no");
    assert_eq!(check(&bare(), "gemini"), "unknown");
    assert_eq!(check(&bare(), "opencode"), "unknown");
    assert_eq!(check(&bare().env("ANTHROPIC_API_KEY", "hunter2"), "claude"), "yes");
    assert_eq!(check(&bare().env("GEMINI_API_KEY", "hunter2"), "gemini"), "yes");
    // Codex does not use this variable.
    assert_eq!(check(&bare().env("OPENAI_API_KEY", "hunter2"), "codex"), "no");
    let stored = [
        ("claude", "home/.claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"hunter2"}}"#, "yes"),
        ("codex", "home/.codex/auth.json", r#"{"OPENAI_API_KEY":"hunter2"}"#, "yes"),
        ("codex", "home/.codex/config.toml", "model_provider = \"own\"", "unknown"),
        ("gemini", "home/.gemini/oauth_creds.json", r#"{"refresh_token":"hunter2"}"#, "yes"),
        ("opencode", "home/.local/share/opencode/auth.json", r#"{"anthropic":{"type":"api","key":"hunter2"}}"#, "yes"),
        ("opencode", "home/.local/share/opencode/auth.json", "{}", "unknown"),
    ];
    for (name, path, content, wanted) in stored {
        assert_eq!(check(&bare().file(path, content), name), wanted, "{path}: {content}");
    }
    let moved = bare().file("elsewhere/auth.json", r#"{"tokens":{"id_token":"hunter2"}}"#);
    let folder = moved.path("elsewhere").display().to_string();
    assert_eq!(check(&moved.env("CODEX_HOME", &folder), "codex"), "yes");
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    let plain = bare();
    let rows: [(&[&str], &str); 7] = [
        (&["check", "cluade"], "Unknown agent cluade. Did you mean claude?"),
        (&["check", "zzz", "--output", "json"], "Unknown agent zzz. The agents are: "),
        (&[], "Missing action: list, check or verify."),
        (&["lits"], "Unknown action lits. Did you mean list?"),
        (&["list", "x"], "Too many words: agents list."),
        (&["check", "a", "b"], "Too many words: agents check [NAME]."),
        (&["list", "--all"], "--all is for agents check: agents list shows every agent."),
    ];
    for (args, wanted) in rows {
        let did = plain.run(&[&["agents"], args].concat());
        assert!(did.refused(2).starts_with(&format!("spektacular: usage: {wanted}")), "{args:?}: {}", did.err);
    }
}

#[test]
fn a_dry_run_shows_the_command_and_names_only() {
    let plain = bare().script("bin/claude", ": >\"$HOME/started\"").env("CLAUDECODE", "1").env("MINE", "x");
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
fn a_dry_run_warns_of_options_without_effect_and_cuts_long_texts() {
    let plain = bare();
    let long = "x".repeat(5000);
    let args = ["adhoc", "--dry-run", "--output", "json", "-a", "gemini", "--effort", "high", "--agent-arg", &long];
    let shown = plain.run(&args).json(0);
    assert_eq!(shown["path"], json!(null));
    assert_eq!(shown["warnings"], json!(["`effort` has no effect on this agent"]));
    assert!(shown["command"].as_array().unwrap().last().unwrap().as_str().unwrap().ends_with("… (5000 bytes)"));
}

#[test]
fn a_dry_run_is_refused_like_a_run() {
    let plain = bare();
    let args = ["adhoc", "--dry-run", "-C", "/nowhere/at/all"];
    assert!(plain.run(&args).refused(2).contains("invalid_request"));
    let frame = plain.run(&[&args[..], &["--output", "json"]].concat()).json(2);
    assert_eq!((&frame["type"], &frame["payload"]["code"]), (&json!("run.failed"), &json!("invalid_request")));
    let long = "x".repeat(131_070);
    let frame = plain.run(&["adhoc", "--dry-run", "--output", "json", "--effort", &long]).json(2);
    assert_eq!(frame["payload"]["code"], "invalid_request");
}

#[test]
fn a_program_that_hangs_is_abandoned_and_killed() {
    let plain =
        bare().script("bin/claude", "trap '' TERM\necho 1.2.3\necho $$ >\"$HOME/pid\"\nwhile :; do sleep 1000; done");
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(4);
    assert_eq!(of(&whole, "claude")["problem"], "`claude --version` took longer than 15 s");
    assert!(!lives(&plain, "pid"), "it is still there");
}

/// Whether the process whose id a program wrote into this file is alive.
fn lives(plain: &Case, file: &str) -> bool {
    let pid = fs::read_to_string(plain.path("home").join(file)).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[test]
fn a_daemon_that_cleared_its_environment_is_ended_too() {
    let daemon = r#"env -i setsid sh -c 'echo $$ >'"$HOME"'/daemon.new; mv '"$HOME"'/daemon.new '"$HOME"'/daemon; exec sleep 1000' >/dev/null 2>&1 &
until [ -e "$HOME/daemon" ]; do :; done
echo 1.2.3"#;
    let plain = bare().script("bin/claude", daemon);
    let whole = plain.run(&["agents", "check", "claude", "--output", "json"]).json(0);
    assert_eq!(of(&whole, "claude")["version"], "1.2.3");
    assert!(!lives(&plain, "daemon"), "it is still there");
}

#[test]
fn a_check_that_is_killed_leaves_nothing_behind() {
    let plain = bare().script(
        "bin/claude",
        "trap '' TERM\necho $$ >\"$HOME/new\"; mv \"$HOME/new\" \"$HOME/pid\"\nwhile :; do sleep 1000; done",
    );
    let mut check = plain.command(env!("CARGO_BIN_EXE_spektacular"));
    let mut check =
        check.args(["agents", "check", "claude"]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let started = support::io::wait_for(plain.limit, || plain.path("home/pid").exists());
    check.kill().unwrap();
    check.wait().unwrap();
    assert!(started, "it was never asked");
    assert!(support::io::wait_for(plain.limit, || !lives(&plain, "pid")), "it is still there");
}

#[test]
fn without_the_default_agent_the_installed_ones_are_named() {
    let plain = bare();
    let none = plain.run(&["adhoc", "hello"]);
    let start = "spektacular: agent_not_found: claude (the default) is not installed.";
    assert!(none.refused(4).starts_with(&format!("{start} To install it: npm install")), "{}", none.err);
    let plain = Case::new().script("bin/codex", "exit 1").script("bin/npx", "exit 1");
    let one = plain.run(&["adhoc", "hello"]);
    assert_eq!(one.refused(4), format!("{start} Installed here: codex. Use --agent codex.\n"));
    // A user who names the agent gets no suggestion of another one.
    for args in [&["adhoc", "--agent", "claude", "hello"][..], &["adhoc", "--env", "PATH=/nowhere", "hello"]] {
        let named = plain.run(args);
        assert_eq!(named.code, Some(4));
        assert!(named.err.contains("program claude is not on the PATH. To install it: npm"), "{}", named.err);
    }
}

#[test]
fn a_program_that_lacks_the_agent_does_not_make_it_available() {
    let docker = r#"[ "$*" = "agent version" ] && [ -e "$HOME/agent" ] && { echo "docker agent version v1.9.0"; exit; }; exit 1"#;
    let plain = bare().script("bin/docker", docker);
    let check = |plain: &Case| of(&plain.run(&["agents", "check", "--output", "json"]).json(0), "cagent").clone();
    let cagent = check(&plain);
    assert_eq!(
        (&cagent["available"], &cagent["problem"]),
        (&json!(false), &json!("`docker agent version` failed with exit code 1"))
    );
    let refused = plain.run(&["adhoc", "hello"]);
    assert!(!refused.err.contains("cagent"), "{}", refused.err);
    let cagent = check(&plain.file("home/agent", ""));
    assert_eq!((&cagent["available"], &cagent["version"]), (&json!(true), &json!("1.9.0")));
}

#[test]
fn the_reference_says_how_each_agent_reports_a_failed_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("src/agent/reference.md")).unwrap();
    let cells = |begin: &str| -> Vec<String> {
        let row = page.lines().find(|line| line.starts_with(begin)).unwrap();
        row.split('|').skip(2).map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let told = cells("| `state` of a command that exits");
    for (agent, told) in cells("| | `claude`").iter().zip(&told).take(4) {
        let frames = fs::read_to_string(root.join("testdata").join(agent).join("shell_fail/expected.jsonl")).unwrap();
        let state = frames.split("\"category\":\"execute\",\"state\":\"").last().unwrap().split('"').next().unwrap();
        assert!(told.starts_with(state), "{agent}: {state}, but the reference says {told}");
    }
}

//! Tests of runs under a configuration: precedence, the user's own agents, and the debug log.

use crate::support;

use serde_json::{Value, json};
use spektacular::agent::registry::{Agents, Dialect};
use spektacular::config::agents::Entry;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use support::agent::Script;
use support::{Case, Outcome, run};

const USER: &str = "home/.config/spektacular/config.json";
const PROJECT: &str = "work/.spektacular/config.json";

/// An ACP agent that says hello and logs its command line.
const ACP_AGENT: &str = r#"#!/bin/sh
D=$(dirname "$0")/../log
for a in "$@"; do printf '%s\0' "$a"; done >"$D/argv"
cat "/proc/$$/environ" >"$D/environ"
echo $$ >"$D/pid"
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case "$line" in
    *'"initialize"'*) result '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result '{"sessionId":"ses_1"}' ;;
    *'"session/prompt"'*)
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"ses_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello '"$MY_TOKEN"'"}}}}'
        result '{"stopReason":"end_turn"}' ;;
    *) result '{}' ;;
    esac
done
"#;

fn hello(files: &[(&str, Value)]) -> Case {
    let case = Case::with(Script::hello());
    files.iter().fold(case, |case, (name, value)| case.file(name, &value.to_string()))
}

#[track_caller]
fn model(case: Case, payload: Value) -> Value {
    let outcome = run(case, payload);
    outcome.completed();
    assert_eq!(outcome.stderr, "");
    outcome.frames[0]["payload"]["config"]["model"].clone()
}

fn warnings(outcome: &Outcome) -> Vec<&str> {
    outcome.warnings("unsupported_option").into_iter().map(|frame| frame.text("text")).collect()
}

#[track_caller]
fn trust(case: Case) -> Case {
    assert!(case.other("work", &["config", "trust"]).status().unwrap().success());
    case
}

#[test]
fn each_layer_overrides_the_one_before() {
    let user = (USER, json!({"model": "user"}));
    let project = (PROJECT, json!({"model": "project"}));
    let own = (USER, json!({"model": "user", "agents": {"claude": {"model": "own"}}}));
    assert_eq!(model(hello(&[]), json!({})), Value::Null);
    assert_eq!(model(hello(std::slice::from_ref(&user)), json!({})), "user");
    assert_eq!(model(hello(&[user, project.clone()]), json!({})), "project");
    let files = [own, project];
    assert_eq!(model(hello(&files), json!({})), "own");
    let environment = || hello(&files).env("SPEKTACULAR_MODEL", "environment");
    assert_eq!(model(environment(), json!({})), "environment");
    assert_eq!(model(environment().args(&["--model", "flag"]), json!({})), "flag");
    assert_eq!(model(environment().args(&["--model", "flag"]), json!({"model": "message"})), "message");
}

/// The model and the warnings of a run that these words would begin.
#[track_caller]
fn planned(case: &Case, words: &[&str]) -> (Option<String>, Vec<String>) {
    let mut run = case.other("work", &["adhoc", "--dry-run", "--output", "json", "go"]);
    let done = run.args(words).output().unwrap();
    let plan: Value = serde_json::from_slice(&done.stdout).unwrap();
    let list = |field: &str| serde_json::from_value::<Vec<String>>(plan[field].clone()).unwrap();
    let model = list("command").iter().find_map(|word| word.strip_prefix("--model=").map(str::to_owned));
    (model, list("warnings"))
}

#[test]
fn a_files_model_belongs_to_the_agent_that_the_files_choose() {
    let case = hello(&[(USER, json!({"model": "opus"}))]);
    assert_eq!(planned(&case, &[]), (Some("opus".into()), vec![]));
    assert_eq!(planned(&case, &["--agent", "claude-code"]), (Some("opus".into()), vec![]));
    let (model, warnings) = planned(&case, &["--agent", "gemini"]);
    assert_eq!(model, None);
    assert!(warnings.len() == 1 && warnings[0].contains("agents.gemini.model"), "{warnings:?}");
    let (model, warnings) = planned(&case.env("SPEKTACULAR_AGENT", "gemini"), &[]);
    assert!(model.is_none() && warnings.len() == 1, "{warnings:?}");
    // The model of each file follows the agent of that file, and a model that the run names needs none.
    let files = [(USER, json!({"model": "opus"})), (PROJECT, json!({"agent": "gemini", "model": "gemini-9"}))];
    let case = trust(hello(&files).git());
    assert_eq!(planned(&case, &[]), (Some("gemini-9".into()), vec![]));
    let (model, warnings) = planned(&case, &["--agent", "claude"]);
    assert!(model.as_deref() == Some("opus") && warnings.len() == 1, "{warnings:?}");
    assert_eq!(planned(&case, &["--agent", "claude", "--model", "sonnet"]), (Some("sonnet".into()), vec![]));
}

#[test]
fn another_vendors_model_reaches_the_agent_with_a_warning() {
    let case = hello(&[(USER, json!({"agents": {"gemini": {"model": "opus"}}}))]);
    for (words, model, warned) in [
        (
            &["--agent", "gemini"][..],
            "opus",
            Some("The model belongs to Anthropic, but Gemini CLI runs models of Google"),
        ),
        (&["--agent", "gemini", "--model", "models/gemini-9"], "models/gemini-9", None),
        (
            &["--model", "openai/gpt-9"],
            "openai/gpt-9",
            Some("The model belongs to OpenAI, but Claude Code runs models of Anthropic"),
        ),
        (&["--model", "claude-9@2030"], "claude-9@2030", None),
        (&["--model", "glm-9"], "glm-9", None),
    ] {
        let wanted: Vec<String> = warned.into_iter().map(str::to_owned).collect();
        assert_eq!(planned(&case, words), (Some(model.to_owned()), wanted), "{words:?}");
    }
}

#[test]
fn an_agents_own_completion_marker_overrides_the_files() {
    let files = json!({"completion_marker": "x", "agents": {"claude-code": {"completion_marker": "own"}}});
    let outcome = run(hello(&[(USER, files)]), json!({}));
    assert_eq!(outcome.frames[0]["payload"]["config"]["completion_marker"], "own");
}

#[test]
fn every_setting_in_a_file_reaches_the_run() {
    let said = json!({
        "effort": "high", "mode": "owl", "system_prompt_mode": "replace", "interactive": false, "permissions": {"edit": "deny"}, "allowed_tools": ["A"],
        "disallowed_tools": ["B"], "timeout_s": 100, "start_timeout_s": 50, "idle_timeout_s": 40, "tool_timeout_s": 30,
        "question_timeout_s": 20, "on_question_timeout": "continue", "background": "refuse", "max_turns": 3, "max_cost_usd": 2.5,
        "progress": "full", "heartbeat_s": 10, "max_frame_bytes": 20000, "env_allow": ["X_*"], "agent_args": ["--x"],
        "completion_marker": "M", "question_markers": false, "raw_prompt": true,
        "fail_on_denied": true
    });
    let mut file = said.clone();
    file["env"] = json!({"ADDED": "yes"});
    file["system_prompt"] = json!("be brief");
    let outcome = run(hello(&[(USER, file)]), json!({}));
    outcome.completed();
    for (name, value) in said.as_object().unwrap() {
        assert_eq!(&outcome.frames[0]["payload"]["config"][name], value, "{name}");
    }
    assert_eq!(outcome.log().env("ADDED").as_deref(), Some("yes"));
    assert!(outcome.log().argv().iter().any(|arg| arg.contains("be brief")));
}

#[test]
fn relative_paths_of_a_projects_file_begin_at_its_folder() {
    let file = json!({"cwd": "sub", "add_dirs": ["lib"]});
    let case = hello(&[(PROJECT, file)]).file("work/sub/x", "").file("work/lib/x", "").git();
    let case = trust(case);
    let child = case.other("work/lib", &["adhoc", "--output", "json", "Go"]).output().unwrap();
    let started: Value = serde_json::from_slice(child.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    let work = case.work();
    assert_eq!(started["payload"]["config"]["cwd"], json!(work.join("sub")));
    assert_eq!(started["payload"]["config"]["add_dirs"], json!([work.join("lib")]));
}

#[test]
fn output_json_makes_adhoc_speak_json_and_the_flag_wins() {
    let case = hello(&[(USER, json!({"output": "json"}))]);
    let adhoc = |args: &[&str]| -> Output { case.other("work", &[&["adhoc"], args].concat()).output().unwrap() };
    let frames = |done: &Output| -> Vec<Value> {
        let text = String::from_utf8(done.stdout.clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let said = adhoc(&["Go"]);
    assert_eq!(frames(&said).last().unwrap()["type"], "run.completed");
    assert!(said.stderr.is_empty());
    assert_eq!(adhoc(&["--output", "cli", "Go"]).stdout, b"Hello\n");
    // The error of a bad command line is also a frame, unless the flag selects another output.
    let wrong = adhoc(&["--no-such-flag"]);
    assert_eq!(frames(&wrong).last().unwrap()["payload"]["code"], "usage");
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = adhoc(&["--output=cli", "--no-such-flag"]);
    assert!(wrong.stdout.is_empty());
    assert_eq!(wrong.status.code(), Some(2));
    let environment = case.other("work", &["adhoc", "Go"]).env("SPEKTACULAR_OUTPUT", "cli").output().unwrap();
    assert_eq!(environment.stdout, b"Hello\n");
}

#[test]
fn a_broken_file_ends_the_run_with_a_frame() {
    let case = Case::with(Script::hello()).file(PROJECT, "{\"model\": \"private\"\n,}");
    let outcome = run(case, json!({}));
    let message = outcome.failed("invalid_config")["message"].as_str().unwrap().to_owned();
    assert!(message.contains(", line 2, column 2: invalid JSON: remove the comma before this bracket."), "{message}");
    assert_eq!(outcome.exit_code, Some(2));
    outcome.never_shows("private");
    assert!(!outcome.log().ran());
    let cli = outcome.case().other("work", &["adhoc", "--output", "cli", "Go"]).output().unwrap();
    assert_eq!(cli.status.code(), Some(2));
    assert!(String::from_utf8(cli.stderr).unwrap().starts_with("spektacular: invalid_config: "));
    // The remaining files decide the output mode.
    let case = Case::new().file(USER, r#"{"output":"json"}"#).file(PROJECT, "{");
    let done = case.other("work", &["adhoc", "Go"]).output().unwrap();
    let frame: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(frame["payload"]["code"], "invalid_config");
}

#[test]
fn a_variable_accepts_the_same_values_as_the_flag() {
    let case = hello(&[]).env("SPEKTACULAR_PERMISSIONS", "read=allow, edit=ask,*=deny");
    let case = case.env("SPEKTACULAR_MCP_SERVERS", r#"{"mcpServers":{"a":{"command":"/bin/true"}}}"#);
    let outcome = run(case, json!({}));
    outcome.completed();
    let permissions = &outcome.frames[0]["payload"]["config"]["permissions"];
    assert_eq!(*permissions, json!({"read": "allow", "edit": "ask", "*": "deny"}));
    assert!(outcome.log().argv().join(" ").contains("/bin/true"));
    let outcome = run(hello(&[]).env("SPEKTACULAR_PERMISSIONS", "read=allow,private"), json!({}));
    let message = outcome.failed("invalid_config")["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("SPEKTACULAR_PERMISSIONS must be ask, allow, deny or read-only, or pairs such as"),
        "{message}"
    );
    outcome.never_shows("private");
}

#[test]
fn a_variable_that_does_not_fit_is_an_error() {
    let case = hello(&[]).env("SPEKTACULAR_TIMEOUT_S", "private").env("SPEKTACULAR_OUTPUT", "json");
    let frame = case.other("work", &["adhoc", "Go"]).output().unwrap().stdout;
    assert!(String::from_utf8(frame).unwrap().contains("invalid_config"), "the other variables still count");
    let outcome = run(case, json!({}));
    let message = outcome.failed("invalid_config")["message"].clone();
    assert_eq!(message, "SPEKTACULAR_TIMEOUT_S must be a number of seconds above 0.");
}

#[test]
fn a_variable_that_is_almost_ours_is_a_warning_and_others_are_not() {
    let secret = "zq-bad-7731";
    let case =
        hello(&[]).env("SPEKTACULAR_MODLE", secret).env("SPEKTACULAR_ZZZ", secret).env("SPEKTACULAR_A-B", secret);
    // Variables that a run sets for its processes, and an empty variable, which counts as unset.
    let case = case.env("SPEKTACULAR_RUN", "outer").env("SPEKTACULAR_ASK", "n:/x").env("SPEKTACULAR_NOTHING", "");
    let case = case.env("SPEKTACULAR_GUARD", "n").env("SPEKTACULAR_GUARD_FOLDER", "/x").env("SPEKTACULAR_MODEL", "m");
    let outcome = run(case, json!({}));
    outcome.completed();
    let said: Vec<&str> = outcome.warnings("unknown_field").into_iter().map(|frame| frame.text("text")).collect();
    let wanted = "Ignored an unknown variable of the environment: SPEKTACULAR_MODLE (did you mean SPEKTACULAR_MODEL?)";
    assert_eq!(said, [wanted]);
    assert!(outcome.progress("warning").len() == 1 && outcome.stderr.is_empty());
    outcome.never_shows(secret);
    let list = outcome.case().other("work", &["agents", "list"]).output().unwrap();
    assert_eq!(String::from_utf8(list.stderr).unwrap(), format!("spektacular: warning: {wanted}\n"));
}

#[test]
fn a_person_reads_keys_of_files_and_not_flags() {
    let case = hello(&[]).file(PROJECT, "{\n\n\"timeot_s\": 1,\n\"idle_timeout_s\": -1}");
    let place = case.path(PROJECT).display().to_string();
    let told = String::from_utf8(case.cli(&["Go"]).stderr).unwrap();
    for wanted in [
        format!("spektacular: warning: Unknown key timeot_s in {place}, line 3. Did you mean timeout_s?\n"),
        format!(
            "spektacular: warning: idle_timeout_s in {place}, line 4, is ignored: it must be a number of seconds, 0 or more.\n"
        ),
    ] {
        assert!(told.contains(&wanted), "{wanted} is not in {told}");
    }
}

#[test]
fn an_invalid_value_is_named_with_its_source() {
    let failed = |case: Case, payload: Value| {
        let outcome = run(case, payload);
        assert_eq!(outcome.exit_code, Some(2));
        outcome.never_shows("private");
        outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned()
    };
    let file = |key: &str| hello(&[]).file(USER, &format!("{{\n\"model\": \"m\",\n\"{key}\": \"claud\"\n}}"));
    let agent = |from: &str| format!("Unknown agent claud (from {from}). Did you mean claude?");
    assert_eq!(failed(hello(&[]).env("SPEKTACULAR_AGENT", "claud"), json!({})), agent("SPEKTACULAR_AGENT"));
    let case = file("agent");
    let place = format!("{}, line 3", case.path(USER).display());
    assert_eq!(failed(case, json!({})), agent(&place));
    let case = file("agent").env("SPEKTACULAR_AGENT", "private").args(&["--agent", "claud"]);
    assert_eq!(failed(case, json!({})), agent("--agent"));
    let export = file("agent").other("work", &["export", "s1"]).output().unwrap();
    let said = String::from_utf8(export.stderr).unwrap();
    assert!(
        said.starts_with("spektacular: usage: Unknown agent claud (from /") && said.contains(", line 3)."),
        "{said}"
    );
    let message = failed(hello(&[]).args(&["--agent", "private thing"]), json!({}));
    assert!(message.starts_with("Unknown agent (from --agent). The agents are: "), "{message}");
    // An error never shows a value from a message, even if a flag sets the same field.
    let message = failed(hello(&[]).args(&["--agent", "claud"]), json!({"agent": "private"}));
    assert!(message.starts_with("run.start: `agent` must be one of: "), "{message}");

    let folder = "must be the path of an existing directory.";
    assert_eq!(failed(hello(&[]).args(&["-C", "private"]), json!({})), format!("--cwd {folder}"));
    assert_eq!(failed(hello(&[]).env("SPEKTACULAR_CWD", "private"), json!({})), format!("SPEKTACULAR_CWD {folder}"));
    let case = file("cwd");
    let place = format!("cwd in {}, line 3,", case.path(USER).display());
    assert_eq!(failed(case, json!({})), format!("{place} {folder}"));
    let message = failed(hello(&[]).args(&["-C", "private"]), json!({"cwd": "private"}));
    assert_eq!(message, format!("run.start: `cwd` {folder}"));
}

#[test]
fn a_secret_in_the_place_of_a_name_is_hidden() {
    let token = format!("ghp_{}", "Ab1".repeat(12));
    let case = hello(&[]);
    for args in [
        &["adhoc", "--agent", &token, "hi"][..],
        &["agents", "check", &token],
        &["config", "get", &token],
        &[token.as_str()],
        &["adhoc", "--output", "json", "--agent", &token, "--prompt", "hi"],
    ] {
        let done = case.other("work", args).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("Unknown") && said.contains("[redacted]") && !said.contains(&token), "{said}");
    }
}

#[test]
fn a_misspelt_key_that_protects_the_user_is_an_error() {
    for (key, meant) in [("permission", "permissions"), ("disallowedTools", "disallowed_tools")] {
        let outcome = run(hello(&[(USER, json!({key: ["Bash"]}))]), json!({}));
        let message = outcome.failed("invalid_config")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("Unknown key {key} in ")), "{message}");
        assert!(message.contains(&format!("It is taken for {meant}.")), "{message}");
    }
}

#[test]
fn an_ignored_key_is_a_warning_unless_it_protects_the_user() {
    let outcome = run(hello(&[(USER, json!({"modle": "x", "timeout_s": "x", "model": "m"}))]), json!({}));
    outcome.completed();
    assert_eq!(outcome.stderr, "");
    let said = warnings(&outcome);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said.iter()
            .any(|text| text.starts_with("Unknown key modle in /") && text.ends_with(", line 1. Did you mean model?"))
    );
    assert_eq!(outcome.frames[0]["payload"]["config"]["model"], "m");
    for key in ["permissions", "env_allow", "secrets", "allowed_tools", "disallowed_tools"] {
        let outcome = run(hello(&[(USER, json!({key: 1}))]), json!({}));
        let message = outcome.failed("invalid_config")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("{key} in /")) && message.contains(", line 1, must be "), "{message}");
        assert!(message.ends_with("This error is not ignored, because the key protects you."), "{message}");
    }
}

#[test]
fn a_cloned_project_gets_nothing_dangerous_unasked() {
    let file = json!({
        "model": "theirs", "agent": "goose", "mode": "free", "permissions": "allow", "env": {"ADDED": "yes"}, "agent_args": ["--evil"],
        "agents": {"claude": {"command": "/bin/false"}}, "debug": {"enabled": true}, "max_cost_usd": 1000
    });
    let outcome = run(hello(&[(PROJECT, file)]), json!({}));
    outcome.completed();
    let config = &outcome.frames[0]["payload"]["config"];
    assert_eq!((&config["model"], &config["permissions"]), (&json!("theirs"), &json!("ask")));
    assert_eq!((&config["agent_args"], &config["max_cost_usd"]), (&json!([]), &Value::Null));
    assert_eq!(outcome.log().env("ADDED"), None);
    let said = warnings(&outcome);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(
            "are ignored: agent, agent_args, agents, debug, env, max_cost_usd, mode, permissions. Read the file"
        ),
        "{said:?}"
    );
    assert!(!outcome.case().path("work/.spektacular/debug").exists());
}

#[test]
fn a_user_defined_agent_runs() {
    let secret = "s3cret-of-the-agents-own";
    let mine = json!({
        "driver": "acp", "command": "my-agent", "args": ["serve", "--acp"], "display_name": "Mine",
        "env": {"MY_TOKEN": secret, "PLAIN": "yes"}, "model": "m1"
    });
    let case = Case::new().program("my-agent", ACP_AGENT).file(USER, &json!({"agents": {"mine": mine}}).to_string());
    let outcome = run(case, json!({"agent": "mine", "env_allow": ["NONE"]}));
    let end = outcome.completed();
    assert_eq!((&end["session_id"], end["agent_exit"]["code"].as_i64()), (&json!("ses_1"), Some(0)));
    let started = &outcome.frames[0]["payload"];
    assert_eq!(started["agent"]["name"], "mine");
    assert_eq!(started["agent"]["display_name"], "Mine");
    assert_eq!(started["config"]["model"], "m1");
    assert_eq!(outcome.log().argv(), ["serve", "--acp"]);
    // Variables that an agent's own settings name pass env_allow, and their secrets are redacted.
    assert_eq!(outcome.log().env("PLAIN").as_deref(), Some("yes"));
    assert_eq!(outcome.log().env("MY_TOKEN").as_deref(), Some(secret));
    outcome.never_shows(secret);
    assert!(outcome.said().starts_with("Hello "));
}

#[test]
fn a_built_in_agent_can_be_changed_in_part() {
    let change = json!({"agents": {"claude": {"command": "wrapper", "args": ["first"], "env": {"ADDED": "yes"}}}});
    let case = hello(&[(USER, change)]);
    fs::rename(case.path("bin/claude"), case.path("bin/wrapper")).unwrap();
    let outcome = run(case, json!({}));
    outcome.completed();
    let argv = outcome.log().argv();
    assert_eq!(argv[0], "first");
    assert!(argv.iter().any(|arg| arg == "--print"), "the driver's own arguments follow: {argv:?}");
    assert_eq!(outcome.log().env("ADDED").as_deref(), Some("yes"));
    let started = &outcome.frames[0]["payload"];
    assert_eq!(started["agent"]["display_name"], "Claude Code");

    // If the program is missing, the error does not suggest another one.
    let case = Case::new().file(USER, r#"{"agents":{"claude":{"command":"no-such-program"}}}"#);
    let outcome = run(case, json!({}));
    let message = outcome.failed("agent_not_found")["message"].as_str().unwrap().to_owned();
    assert!(!message.contains("npm install"), "{message}");
}

#[test]
fn an_incomplete_agent_causes_a_warning_and_cannot_be_named() {
    let case = || hello(&[(USER, json!({"agents": {"half": {"driver": "acp"}}}))]);
    let outcome = run(case(), json!({}));
    outcome.completed();
    assert_eq!(warnings(&outcome), ["The agent half is ignored: it needs agents.half.driver and agents.half.command."]);
    let outcome = run(case(), json!({"agent": "half"}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`agent` must be one of:") && !message.contains("half"), "{message}");
}

#[test]
fn the_default_agent_comes_from_the_configuration() {
    let mine = json!({"agent": "mine", "agents": {"mine": {"driver": "acp", "command": "my-agent"}}});
    let case = Case::new().program("my-agent", ACP_AGENT).file(USER, &mine.to_string());
    let outcome = run(case, json!({}));
    outcome.completed();
    assert_eq!(outcome.frames[0]["payload"]["agent"]["name"], "mine");
}

#[test]
fn the_reference_names_every_built_in_agent_and_every_field_of_an_entry() {
    let page = include_str!("../../../src/agent/reference.md");
    let agents = Agents::built_in();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert!(names.is_sorted() && names.len() > 20, "{names:?}");
    for name in names.iter().chain(Entry::NAMES) {
        assert!(page.contains(&format!("`{name}`")), "the reference lacks {name}");
    }
    for name in Dialect::WORDS {
        let is_offered = page.contains(&format!("`\"{name}\"`")) && Dialect::EXPECTED.contains(&format!("\"{name}\""));
        assert_eq!(is_offered, *name != "demo", "{name}");
    }
}

#[test]
fn every_other_built_in_agent_starts_as_its_entry_says() {
    let case = Case::new().program("droid", ACP_AGENT);
    let outcome = run(case, json!({"agent": "droid"}));
    outcome.completed();
    assert_eq!(outcome.log().argv(), ["exec", "--output-format", "acp"]);
    assert_eq!(outcome.log().env("DROID_DISABLE_AUTO_UPDATE").as_deref(), Some("true"));
}

/// The files in a folder, sorted, without those that begin with a dot.
fn logs(case: &Case, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(case.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect();
    files.sort();
    files
}

const LOGS: &str = "work/.spektacular/debug/logs";

#[test]
fn the_debug_log_is_a_redacted_recording_that_changes_nothing() {
    let secret = "correct-horse-battery";
    let script = Script::new().say("msg_1", &format!("Hello {secret}")).done("Hello");
    let file = json!({"debug": {"enabled": true}, "secrets": [secret]});
    let case = Case::with(script).file(USER, &file.to_string()).git();
    let outcome = run(case, json!({}));
    assert_eq!(outcome.completed()["artifacts"], json!([]));
    assert_eq!(outcome.stderr, "");
    let files = logs(outcome.case(), LOGS);
    let name = files[0].file_name().unwrap().to_str().unwrap();
    let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!((files.len(), shape.as_str()), (1, "0000-00-00_000000_claude_adhoc.jsonl"));
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&files[0]).unwrap();
    assert!(text.starts_with("{\"") && text.contains("\"recording\":1") && text.contains("\"exit\":0"), "{text}");
    assert!(text.contains("Hello ") && !text.contains(secret), "{text}");
    // The log can be replayed.
    let replay = outcome.case().other("work", &["replay", files[0].to_str().unwrap()]).output().unwrap();
    assert_eq!(replay.status.code(), Some(0));
}

#[test]
fn two_logs_of_one_second_have_two_names_and_a_record_is_made_beside() {
    let log = |case: Case| {
        let case = case.env("SPEKTACULAR_DEBUG_ENABLED", "true").env("SPEKTACULAR_DEBUG_LOG_DIR", "my logs");
        run(case.args(&["--record", "one.jsonl"]), json!({}))
    };
    let first = log(Case::with(Script::hello()));
    first.completed();
    let files = logs(first.case(), "work/my logs");
    assert_eq!(fs::read(&files[0]).unwrap(), fs::read(first.case().path("work/one.jsonl")).unwrap());
    // Occupies the names of all coming seconds.
    let now = std::time::SystemTime::now();
    let mut case = Case::with(Script::hello());
    for second in 0..20 {
        let then = time::OffsetDateTime::from(now + std::time::Duration::from_secs(second));
        let format = time::macros::format_description!("[year]-[month]-[day]_[hour][minute][second]");
        case = case.file(&format!("work/my logs/{}_claude_adhoc.jsonl", then.format(format).unwrap()), "");
    }
    let second = log(case);
    second.completed();
    let written = logs(second.case(), "work/my logs").into_iter().filter(|path| fs::metadata(path).unwrap().len() > 0);
    let names: Vec<String> = written.map(|path| path.to_str().unwrap().to_owned()).collect();
    assert!(names.len() == 1 && names[0].ends_with("_claude_adhoc-2.jsonl"), "{names:?}");
}

#[test]
fn a_debug_log_that_cannot_be_opened_is_a_warning() {
    let case = hello(&[(USER, json!({"debug": {"enabled": true, "log_dir": "taken"}}))]).file("work/taken", "");
    let outcome = run(case, json!({}));
    outcome.completed();
    let said = warnings(&outcome);
    assert!(said.len() == 1 && said[0].starts_with("Cannot write the debug log: set `debug.log_dir`"), "{said:?}");
}

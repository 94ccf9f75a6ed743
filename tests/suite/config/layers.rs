//! Tests of the configuration: its layers, its files, and the command that shows and changes it.

use crate::support;

use serde_json::{Value, json};
use spektacular::cmd;
use spektacular::config::KEYS;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use support::Case;

const USER: &str = "home/.config/spektacular/config.json";
const PROJECT: &str = "work/.spektacular/config.json";

/// The result of a command.
struct Done {
    code: i32,
    out: String,
    err: String,
}

fn spektacular_in(case: &Case, folder: &str, args: &[&str]) -> Done {
    let done = case.other(folder, args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

fn config(case: &Case, args: &[&str]) -> Done {
    spektacular_in(case, "work", &[&["config"], args].concat())
}

/// The stdout of a command that must succeed. Commands that change a file name it.
#[track_caller]
fn ok(case: &Case, args: &[&str]) -> String {
    let done = config(case, args);
    let changes = ["set", "unset"].contains(&args[0]) && !args.join(" ").contains("--output json");
    let changed = done.err.starts_with("spektacular: config: changed /") && done.err.ends_with("config.json\n");
    assert!(done.code == 0 && if changes { changed } else { done.err.is_empty() }, "{args:?}: {}", done.err);
    done.out
}

/// All values: key → (value, origin).
fn list(case: &Case) -> BTreeMap<String, (Value, String)> {
    let listed: Value = serde_json::from_str(&ok(case, &["list", "--output", "json"])).unwrap();
    let entry = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        (text("key"), (entry["value"].clone(), text("origin")))
    };
    listed["values"].as_array().unwrap().iter().map(entry).collect()
}

fn read(case: &Case, name: &str) -> String {
    fs::read_to_string(case.path(name)).unwrap()
}

/// A value for each key, different for each layer.
fn sample(key: &str, layer: usize) -> Value {
    let one = |values: [Value; 3]| values[layer].clone();
    match key {
        "worktree.copy" | "worktree.setup" => json!([format!("a{layer}")]),
        "output" => one([json!("json"), json!("cli"), json!("json")]),
        "interactive" | "checkpoints" | "question_markers" | "raw_prompt" | "fail_on_denied" | "alert"
        | "debug.enabled" => {
            json!(layer != 1)
        }
        "permissions" => one([json!("deny"), json!({"edit": "allow", "*": "ask"}), json!("allow")]),
        "on_question_timeout" => one([json!("continue"), json!("fail"), json!("continue")]),
        "sandbox" => one([json!("read-only"), json!("off"), json!("workspace")]),
        "background" => one([json!("refuse"), json!("wait"), json!("refuse")]),
        "system_prompt_mode" => one([json!("replace"), json!("append"), json!("replace")]),
        "on_rate_limit" => one([json!("wait"), json!("fail"), json!("wait")]),
        "on_unsupported" => one([json!("warn"), json!("fail"), json!("warn")]),
        "progress" => one([json!("minimal"), json!("normal"), json!("full")]),
        "add_dirs" | "allowed_tools" | "disallowed_tools" | "agent_args" | "fallback" => json!([format!("x{layer}")]),
        "env_allow" => json!([format!("X{layer}_*")]),
        // Lists mask secrets, but these are too short to be masked.
        "secrets" => json!([format!("{layer}")]),
        "env" => json!({"PLAIN": layer.to_string()}),
        "mcp_servers" => json!([{"name": "x", "command": layer.to_string()}]),
        "output_schema" => json!({"title": layer.to_string()}),
        "max_frame_bytes" => json!(20000 + layer),
        _ if key.ends_with("_s") || key.starts_with("max_") => json!(layer + 1),
        _ => json!(format!("value {layer}")),
    }
}

/// A file with a value for every key, and one agent.
fn full(layer: usize) -> String {
    let mut all = json!({"agents": {"mine": fields(layer)}});
    for key in KEYS {
        let value = sample(key.name, layer);
        match key.name.split_once('.') {
            Some((group, name)) => all[group][name] = value,
            None => all[key.name] = value,
        }
    }
    all.to_string()
}

fn fields(layer: usize) -> Value {
    json!({
        "driver": (["acp", "claude", "codex"][layer]), "command": format!("c{layer}"), "args": [layer.to_string()],
        "env": {"PLAIN": layer.to_string()}, "model": format!("m{layer}"), "display_name": format!("d{layer}"),
        "session_patterns": [format!("p{layer}")], "completion_marker": format!("k{layer}"),
        "failure_patterns": [format!("f{layer}")], "text_field": format!("t{layer}"),
        "resume_args": [format!("r{layer}")], "state": [format!("s{layer}")]
    })
}

#[test]
fn every_layer_can_set_every_key_and_the_list_names_the_layer() {
    let values = list(&Case::new());
    for key in KEYS {
        let built_in: Option<Value> = key.built_in().map(|raw| serde_json::from_str(raw.get()).unwrap());
        assert_eq!(values.get(key.name).map(|(value, _)| value.clone()), built_in, "{}", key.name);
    }
    assert!(values.values().all(|(_, origin)| origin == "built-in"));

    let mut case = Case::new().file(USER, &full(0));
    let expect = |case: &Case, origin: &str, layer: usize| {
        let values = list(case);
        for key in KEYS {
            let value = if key.name == "secrets" { json!(["[redacted]"]) } else { sample(key.name, layer) };
            assert_eq!(values[key.name], (value, origin.to_owned()), "{}", key.name);
        }
        values
    };
    let agents = |values: &BTreeMap<String, (Value, String)>, origin: &str, layer: usize| {
        for (field, value) in fields(layer).as_object().unwrap() {
            assert_eq!(values[&format!("agents.mine.{field}")], (value.clone(), origin.to_owned()), "{field}");
        }
    };
    agents(&expect(&case, "user", 0), "user", 0);

    case = case.file(PROJECT, &full(1));
    ok(&case, &["trust"]);
    agents(&expect(&case, "project", 1), "project", 1);

    for key in KEYS {
        let value = sample(key.name, 2);
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = format!("SPEKTACULAR_{}", key.name.to_uppercase().replace('.', "_"));
        case = case.env(&name, &text);
    }
    agents(&expect(&case, "environment", 2), "project", 1);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    assert_eq!(ok(&Case::new().env("SPEKTACULAR_AGENT", ""), &["get", "agent"]), "claude\n");
}

#[test]
fn set_adds_a_value_and_unset_removes_it() {
    let case = Case::new();
    for (key, text, shown) in [
        ("output", "json", "json"),
        ("timeout_s", "12.5", "12.5"),
        ("debug.enabled", "true", "true"),
        ("permissions", r#"{"edit": "deny"}"#, r#"{"edit":"deny"}"#),
        (
            "agents.mine",
            r#"{"driver":"acp","command":"x"}"#,
            "project      agents.mine.command = \"x\"\nproject      agents.mine.driver = \"acp\"",
        ),
        ("agents.mine.command", "my-agent", "my-agent"),
        ("agents.mine.args", r#"["--x", "y z"]"#, r#"["--x","y z"]"#),
    ] {
        assert_eq!(ok(&case, &["set", key, text]), "");
        assert_eq!(ok(&case, &["get", key]), format!("{shown}\n"), "{key}");
        if key == "agents.mine" {
            continue;
        }
        let entry: Value = serde_json::from_str(&ok(&case, &["get", key, "--output", "json"])).unwrap();
        assert_eq!((&entry["key"], &entry["origin"]), (&json!(key), &json!("project")));
        assert!(entry["from"].as_str().unwrap().ends_with(PROJECT), "{entry}");
    }
    assert!(ok(&case, &["get", "agents"]).contains("project      agents.mine.command = \"my-agent\"\n"));
    ok(&case, &["unset", "agents.mine"]);
    assert_eq!(config(&case, &["get", "agents.mine.command"]).code, 1);
    ok(&case, &["unset", "timeout_s"]);
    let again = config(&case, &["unset", "timeout_s"]);
    let not_set = format!(
        "spektacular: config: timeout_s is not set in {}.\n",
        case.work().join(".spektacular/config.json").display()
    );
    assert_eq!((again.code, again.err.as_str()), (1, not_set.as_str()));
    assert_eq!(config(&case, &["get", "timeout_s"]).code, 1);
    assert_eq!(config(&case, &["get", "prompt"]).code, 2);
    let text = read(&case, PROJECT);
    assert!(text.starts_with("{\n  \"output\": \"json\",\n  \"debug\": {\n    \"enabled\": true\n  },\n"), "{text}");
}

#[test]
fn global_selects_the_users_file_and_xdg_moves_it() {
    let case = Case::new();
    ok(&case, &["set", "--global", "model", "m"]);
    assert_eq!(read(&case, USER), "{\n  \"model\": \"m\"\n}\n");
    assert_eq!(fs::metadata(case.path(USER)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(ok(&case, &["path", "--global"]).trim(), case.path(USER).to_str().unwrap());
    assert_eq!(ok(&case, &["path"]).trim(), case.work().join(".spektacular/config.json").to_str().unwrap());
    let moved = case.path("other");
    let case = case.env("XDG_CONFIG_HOME", moved.to_str().unwrap());
    ok(&case, &["set", "--global", "model", "n"]);
    assert_eq!(read(&case, "other/spektacular/config.json"), "{\n  \"model\": \"n\"\n}\n");
    let paths: Value = serde_json::from_str(&ok(&case, &["path", "--output", "json"])).unwrap();
    assert_eq!(paths["user"], json!(moved.join("spektacular/config.json")));
}

#[test]
fn the_projects_file_is_the_nearest_up_to_the_root_of_the_work_tree() {
    let model = |case: &Case, folder: &str| spektacular_in(case, folder, &["config", "get", "model"]).out;
    let case = Case::new().file("work/a/b/x", "").file(PROJECT, r#"{"model":"root"}"#);
    // Outside a repository, only the directory itself counts.
    assert_eq!((model(&case, "work").as_str(), model(&case, "work/a").as_str()), ("root\n", ""));
    let case = case.git();
    assert_eq!(model(&case, "work/a/b"), "root\n");
    let case = case.file("work/a/.spektacular/config.json", r#"{"model":"near"}"#);
    assert_eq!((model(&case, "work/a/b").as_str(), model(&case, "work").as_str()), ("near\n", "root\n"));
    // In a nested repository, the folders above its root do not count.
    let case = case.file("work/a/b/.git", "gitdir: elsewhere\n");
    assert_eq!(model(&case, "work/a/b"), "");
    assert_eq!(spektacular_in(&case, "work/a/b", &["config", "set", "model", "own"]).code, 0);
    assert_eq!(read(&case, "work/a/b/.spektacular/config.json"), "{\n  \"model\": \"own\"\n}\n");
}

#[test]
fn a_new_project_file_is_at_the_root_of_the_work_tree() {
    let case = Case::new().file("work/a/x", "").git();
    assert_eq!(spektacular_in(&case, "work/a", &["config", "set", "model", "m"]).code, 0);
    assert_eq!(read(&case, PROJECT), "{\n  \"model\": \"m\"\n}\n");
}

#[test]
fn a_broken_file_is_an_error_with_its_place_and_stays_as_it_is() {
    for (text, place) in [
        ("{\n  \"model\": \"m\",\n}", ", line 3, column 1: invalid JSON: remove the comma before this bracket."),
        ("{\"a\": 1\n \"b\": 2}", ", line 2, column 2: invalid JSON: a comma or a closing bracket is missing."),
        ("{\"a\" 1}", ", line 1, column 6: invalid JSON: a colon is missing."),
        ("{'a': 1}", ", line 1, column 2: invalid JSON: a key must be in double quotes."),
        ("{} {}", ", line 1, column 4: invalid JSON: remove the text after the end of the value."),
        ("{\"model\": \"private-name", ", line 1, column 23: unexpected end of the JSON."),
        ("{\n \"a\": tru }", ", line 2, column 10: invalid JSON."),
        ("[1]", " must contain one JSON object, in { and }."),
        ("{\"a\": \"\\ud800\"}", ", line 1, column 14: invalid JSON."),
    ] {
        let case = Case::new().file(PROJECT, text);
        for args in [&["list"][..], &["set", "model", "n"], &["unset", "model"], &["trust"]] {
            let done = config(&case, args);
            assert_eq!(done.code, 2, "{args:?}");
            let start = format!("spektacular: invalid_config: {}/.spektacular/config.json", case.work().display());
            assert!(done.err == format!("{start}{place}\n"), "{text}: {}", done.err);
            assert!(!done.err.contains("private-name"), "{}", done.err);
        }
        assert_eq!(read(&case, PROJECT), text);
    }
    let case = Case::new().file(PROJECT, "\u{feff} \n");
    ok(&case, &["set", "model", "m"]);
    assert_eq!(read(&case, PROJECT), "{\n  \"model\": \"m\"\n}\n");
}

#[test]
fn anything_but_a_file_is_refused_at_once() {
    let case = Case::new().file("work/.spektacular/config.json/x", "");
    assert!(config(&case, &["list"]).err.contains("must be a file of at most 1 MiB"));
    let case = Case::new().file("work/.spektacular/x", "");
    let pipe = case.path(PROJECT);
    assert!(std::process::Command::new("/usr/bin/mkfifo").arg(&pipe).status().unwrap().success());
    assert!(config(&case, &["set", "model", "m"]).err.contains("must be a file of at most 1 MiB"));
}

#[test]
fn a_write_keeps_unknown_keys_order_blanks_and_mode_and_follows_a_link() {
    let text = "{ \"zeta\": 1.50e3,\n\t\"model\" : \"old\",\n\n  \"own\": { \"b\":1, \"a\":[1, 2] } }\n";
    let case = Case::new().file("elsewhere/c.json", text).file("home/.config/spektacular/x", "");
    fs::set_permissions(case.path("elsewhere/c.json"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(case.path("elsewhere/c.json"), case.path(USER)).unwrap();
    ok(&case, &["set", "--global", "model", "new"]);
    assert_eq!(read(&case, "elsewhere/c.json"), text.replace("old", "new"));
    ok(&case, &["set", "--global", "effort", "high"]);
    let with_effort = text.replace("old", "new").replace("[1, 2] } }", "[1, 2] },\n  \"effort\": \"high\" }");
    assert_eq!(read(&case, "elsewhere/c.json"), with_effort);
    assert!(fs::symlink_metadata(case.path(USER)).unwrap().is_symlink());
    assert_eq!(fs::metadata(case.path(USER)).unwrap().permissions().mode() & 0o777, 0o640);
    let left = fs::read_dir(case.path("elsewhere")).unwrap().count();
    assert_eq!(left, 1, "a temporary file is left");
}

#[test]
fn a_projects_file_is_not_read_through_a_link_out_of_the_project() {
    let text = r#"{"effort":"low"}"#;
    for (link, target) in [
        (PROJECT, "outside/config.json"),
        ("work/.spektacular", "outside"),
        ("work/.spektacular", "work/inside"),
        (PROJECT, "work/inside/config.json"),
    ] {
        let case = Case::new().file("outside/config.json", text).file("work/inside/config.json", text);
        fs::create_dir_all(case.path(link).parent().unwrap()).unwrap();
        let case = case.link(link, target);
        let said = config(&case, &["get", "effort"]);
        let read = target.starts_with("work/");
        assert_eq!(said.out, if read { "low\n" } else { "" }, "{link} {target}: {}", said.err);
        assert_eq!(said.err.contains("leads out of the project"), !read, "{link} {target}: {}", said.err);
    }
}

#[test]
fn a_projects_file_that_is_a_link_is_neither_trusted_nor_written_to() {
    let text = r#"{"permissions":"allow"}"#;
    let case = Case::new().file("other/.spektacular/config.json", text).file(USER, "{}").file("work/x", "");
    assert_eq!(spektacular_in(&case, "other", &["config", "trust"]).code, 0);
    std::os::unix::fs::symlink(case.path("other/.spektacular"), case.path("work/.spektacular")).unwrap();
    assert_eq!(config(&case, &["get", "permissions"]).out, "ask\n", "trusted there is not trusted here");
    for args in [&["trust"][..], &["set", "permissions", "allow"]] {
        assert!(config(&case, args).err.contains("is a symbolic link"), "{args:?}");
    }
    fs::remove_file(case.path("work/.spektacular")).unwrap();
    fs::create_dir(case.path("work/.spektacular")).unwrap();
    std::os::unix::fs::symlink(case.path(USER), case.path(PROJECT)).unwrap();
    assert!(config(&case, &["set", "permissions", "allow"]).err.contains("is a symbolic link"));
    assert_eq!(read(&case, USER), "{}", "the user's file is for --global");
}

#[test]
fn a_file_with_many_faults_is_read_in_linear_time_and_reported_briefly() {
    let keys: Vec<String> = (0..40_000).map(|n| format!("\"nothing_{n}\": 1")).collect();
    let case = Case::new().file(USER, &format!("{{\n{}\n}}", keys.join(",\n")));
    let done = config(&case, &["get", "output"]);
    assert_eq!((done.code, done.err.lines().count()), (2, 21), "{}", done.err);
    assert!(done.err.ends_with("has too many errors. Correct the first ones.\n"), "{}", done.err);
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let case = Case::new();
    let names: Vec<String> = (0..12).map(|n| format!("agents.a{n}.command")).collect();
    let mut all: Vec<_> = names
        .iter()
        .map(|name| case.other("work", &["config", "set", "--global", name, "x"]).spawn().unwrap())
        .collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    let text = read(&case, USER);
    assert!((0..12).all(|n| text.contains(&format!("\"a{n}\""))), "{text}");
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    // Root may write everywhere, but even root cannot create a file inside a file.
    let case = Case::new().file("home/.config/spektacular", "");
    let done = config(&case, &["set", "--global", "model", "m"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("config.json cannot be written: free some space, or check"), "{}", done.err);
}

#[test]
fn wrong_keys_and_values_are_refused_with_a_suggestion() {
    let case = Case::new();
    for (key, value, why) in [
        ("modle", "private", "Unknown key modle. Did you mean model?"),
        ("modle of mine", "private", "Unknown key modle?of?mine. `spektacular help config reference` lists the keys."),
        ("debug.enable", "true", "Did you mean debug.enabled?"),
        ("agents.mine.comand", "private", "Unknown field comand of agents.mine. Did you mean command?"),
        ("agents.My.command", "private", "The name of an agent must have"),
        ("agents.mine", "{\"driver\":\"private\"}", "agents.mine.driver must be one of"),
        ("timeout_s", "private", "timeout_s must be a number of seconds above 0."),
        ("output", "private", "output must be \"cli\" or \"json\"."),
        ("metadata", "{}", "metadata is not a key, because it belongs to a single run."),
        ("env.A", "private", "env has no keys inside. Set it as a whole, as JSON."),
    ] {
        let done = config(&case, &["set", key, value]);
        assert_eq!(done.code, 2, "{key}");
        assert!(done.err.starts_with("spektacular: usage: ") && done.err.contains(why), "{key}: {}", done.err);
        assert!(!done.err.contains("private"), "{}", done.err);
    }
    assert!(!case.path(PROJECT).exists());
    for (args, why) in [
        (&["lst"][..], "Unknown action lst. Did you mean list?"),
        (&[], "Missing action: get, set, unset, list, path or trust."),
        (&["set", "model"], "Missing VALUE: config set KEY VALUE."),
        (&["set", "model", "private", "private"], "Too many words: config set KEY VALUE."),
        (&["get"], "Missing KEY: config get KEY."),
        (&["list", "x"], "Too many words: config list."),
        (&["list", "--global"], "--global is for config set, unset and path."),
    ] {
        let done = config(&case, args);
        assert_eq!(done.code, 2);
        assert!(done.err.contains(why), "{args:?}: {}", done.err);
    }
}

#[test]
fn set_accepts_the_same_values_as_the_flag() {
    let servers = r#"{"mcpServers":{"a":{"command":"x","env":{"K":"v"}}}}"#;
    let case =
        Case::new().file("work/servers.json", &format!("\u{feff}{servers}\n")).file("work/schema.json", "{\n}\n");
    let case = case.file("work/broken.json", "{\n \"private\" }").file("work/list.json", "[\"private\"]");
    let list = r#"[{"name":"a","command":"x","env":{"K":"v"}}]"#;
    for (key, text, shown) in [
        ("permissions", "read=allow,*=deny", r#"{"read":"allow","*":"deny"}"#),
        ("mcp_servers", servers, list),
        ("mcp_servers", list, list),
        ("mcp_servers", "@servers.json", list),
        ("output_schema", "@schema.json", "{}"),
        ("model", "@schema.json", "@schema.json"),
    ] {
        ok(&case, &["set", key, text]);
        assert_eq!(ok(&case, &["get", key]), format!("{shown}\n"), "{key} {text}");
    }
    for (key, text, why) in [
        ("permissions", "read=allow,private", "permissions must be ask, allow, deny or read-only, or pairs such as"),
        ("permissions", "read=allow,read=deny", "permissions repeats a key."),
        ("output_schema", "@nothing", "output_schema: no such file."),
        (
            "output_schema",
            "@broken.json",
            "output_schema: line 2, column 12 of the file: invalid JSON: a colon is missing.",
        ),
        ("output_schema", "@list.json", "output_schema must be an object."),
        ("mcp_servers", "@list.json", "mcp_servers must be a list of {name, command, args, env, required}, or"),
    ] {
        let done = config(&case, &["set", key, text]);
        assert_eq!(done.code, 2);
        assert!(done.err.starts_with(&format!("spektacular: usage: {why}")), "{key} {text}: {}", done.err);
        assert!(!done.err.contains("private"), "{}", done.err);
    }
}

#[test]
fn set_refuses_an_agent_that_no_run_could_find() {
    let case = Case::new();
    let done = config(&case, &["set", "agent", "claud"]);
    assert_eq!((done.code, done.err.as_str()), (2, "spektacular: usage: Unknown agent claud. Did you mean claude?\n"));
    let done = config(&case, &["set", "agent", "private thing"]);
    assert!(done.err.contains("Unknown agent. The agents are: ") && !done.err.contains("private"), "{}", done.err);
    assert!(!case.path(PROJECT).exists());
    ok(&case, &["set", "agent", "claude-code"]);
    ok(&case, &["set", "--global", "agents.mine", r#"{"driver":"acp","command":"x"}"#]);
    ok(&case, &["set", "agent", "mine"]);
    // An untrusted file cannot define an agent. The warning gives the reason.
    let theirs = r#"{"agents":{"theirs":{"driver":"acp","command":"x"}}}"#;
    let done = config(&Case::new().file(PROJECT, theirs), &["set", "agent", "theirs"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("is not trusted") && done.err.contains("Unknown agent theirs."), "{}", done.err);
    // A file that cannot be read must be corrected first.
    let done = config(&Case::new().file(USER, "{"), &["set", "agent", "theirs"]);
    assert!(done.err.starts_with("spektacular: invalid_config: "), "{}", done.err);
}

#[test]
fn an_unusable_entry_of_a_file_is_ignored_and_named_with_its_line() {
    let text = "{\n\"modle\": 1,\n\"debug\": {\"enabled\": 1},\n\"agents\": {\"x\": {\"comand\": \"y\"}},\n\"debug.enabled\": true,\n\
                \"timeout_s\": -1,\n\"agents\": 3,\n\"model\": \"a\",\n\"model\": \"b\"}";
    let case = Case::new().file(USER, text);
    let done = config(&case, &["get", "model"]);
    assert_eq!((done.code, done.out.as_str()), (0, "b\n"));
    let wanted = [
        "Unknown key modle in FILE, line 2. Did you mean model?",
        "debug.enabled in FILE, line 3, is ignored: it must be true or false.",
        "Unknown field comand of agents.x in FILE, line 4. Did you mean command?",
        "A key in FILE, line 5, is empty or contains a dot. Nest objects",
        "timeout_s in FILE, line 6, is ignored: it must be a number of seconds above 0.",
        "agents in FILE, line 7, must be an object.",
        "model is set twice in FILE. The value in line 9 counts.",
    ];
    let lines: Vec<&str> = done.err.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{}", done.err);
    for (line, wanted) in lines.iter().zip(wanted) {
        let wanted = wanted.replace("FILE", case.path(USER).to_str().unwrap());
        assert!(line.starts_with(&format!("spektacular: warning: {wanted}")), "{line}");
    }
}

#[test]
fn a_list_masks_secrets_and_get_does_not() {
    let key = "correct-horse-battery";
    let text = json!({"secrets": [key], "env": {"MY_API_KEY": "staple-of-the-env"}, "model": key,
        "agents": {"mine": {"driver": "acp", "command": "x", "env": {"MY_TOKEN": "token-of-an-agent"}}}});
    let case = Case::new().file(USER, &text.to_string());
    for args in [&["list"][..], &["list", "--output", "json"]] {
        let shown = ok(&case, args);
        assert!(shown.contains("MY_API_KEY") && shown.contains("MY_TOKEN"), "{shown}");
        for secret in [key, "staple-of-the-env", "token-of-an-agent"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    assert_eq!(ok(&case, &["get", "secrets"]), format!("[\"{key}\"]\n"));
}

#[test]
fn a_projects_file_needs_trust_for_harmful_keys() {
    let text = full(1);
    let case = Case::new().file(PROJECT, &text);
    let free =
        |key: &str| KEYS.iter().any(|k| k.name == key && k.project_rule == spektacular::config::ProjectFileRule::Free);
    let done = config(&case, &["list", "--output", "json"]);
    assert!(done.err.contains("Read the file, then run `spektacular config trust`."), "{}", done.err);
    for name in ["agents", "debug", "env", "permissions", "mcp_servers", "secrets", "agent_args", "cwd", "raw_prompt"] {
        assert!(
            done.err.contains(&format!(" {name},")) || done.err.contains(&format!(" {name}.")),
            "{name}: {}",
            done.err
        );
    }
    let listed: Value = serde_json::from_str(&done.out).unwrap();
    for entry in listed["values"].as_array().unwrap() {
        let key = entry["key"].as_str().unwrap();
        assert_eq!(entry["origin"] == "project", free(key), "{entry}");
        assert!(!key.starts_with("agents."), "{entry}");
    }

    let trusted = ok(&case, &["trust"]);
    assert!(trusted.contains(": with add_dirs, agent, agent_args,"), "{trusted}");
    assert_eq!(config(&case, &["list"]).err, "");
    assert_eq!(
        fs::metadata(case.path("home/.config/spektacular/trusted.json")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A change by `set` keeps the trust. Any other change revokes it.
    ok(&case, &["set", "model", "other"]);
    assert_eq!(config(&case, &["list"]).err, "");
    let case = case.file(PROJECT, &text.replace("c1", "c9"));
    assert!(config(&case, &["list"]).err.contains("config trust"));
    // `set` does not trust a file that was not trusted before.
    assert_eq!(config(&case, &["set", "model", "third"]).code, 0);
    assert!(config(&case, &["list"]).err.contains("config trust"));
}

#[test]
fn a_file_that_the_user_created_is_trusted() {
    let case = Case::new();
    ok(&case, &["set", "permissions", "deny"]);
    assert_eq!(ok(&case, &["get", "permissions"]), "deny\n");
    // A file without harmful keys counts as new.
    let case = Case::new().file(PROJECT, r#"{"effort":"high"}"#);
    ok(&case, &["set", "permissions", "deny"]);
    assert_eq!(ok(&case, &["get", "permissions"]), "deny\n");
    let nothing = config(&Case::new(), &["trust"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("no configuration file and no prompts"), "{}", nothing.err);
}

#[test]
fn trust_belongs_to_the_place_too() {
    let text = r#"{"permissions":"allow"}"#;
    let case = Case::new().file(PROJECT, text).file("other/.spektacular/config.json", text);
    ok(&case, &["trust"]);
    assert_eq!(ok(&case, &["get", "permissions"]), "allow\n");
    let other = spektacular_in(&case, "other", &["config", "get", "permissions"]);
    assert_eq!(other.out, "ask\n");
}

#[test]
fn the_file_of_the_older_version_is_noticed() {
    let case = Case::new().file("work/.spektacular/config.yaml", "agent:\n  command: claude\n");
    let done = config(&case, &["list"]);
    assert_eq!(done.code, 0);
    assert!(done.err.contains("config.yaml is a file of an older version and is not read."), "{}", done.err);
    ok_despite(&case, &["set", "model", "m"]);
    assert_eq!(config(&case, &["list"]).err, "");
}

fn ok_despite(case: &Case, args: &[&str]) {
    assert_eq!(config(case, args).code, 0);
}

/// A section of the configuration reference.
fn part(heading: &str) -> &'static str {
    let (_, rest) = cmd::command("config").unwrap().page.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

#[test]
fn the_page_names_the_keys_that_count_without_trust() {
    let line = part("Trust").lines().find(|line| line.starts_with("These keys need no trust: ")).unwrap();
    let free =
        KEYS.iter().filter(|key| key.project_rule == spektacular::config::ProjectFileRule::Free).map(|key| key.name);
    assert_eq!(line.split('`').skip(1).step_by(2).collect::<Vec<_>>(), free.collect::<Vec<_>>());
}

#[test]
fn the_page_names_a_successor_only_where_there_is_one() {
    let rows: Vec<Vec<&str>> = part("An older config.yaml")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('`').skip(1).step_by(2).collect())
        .collect();
    assert_eq!(rows.len(), 8, "{rows:?}");
    for row in rows {
        assert!(spektacular::config::known(row[1]).is_ok(), "{} is said to be {}, which is no key", row[0], row[1]);
    }
}

#[test]
fn nothing_is_written_that_could_not_be_read() {
    let long = "m".repeat(100_000);
    let text = json!({"own": "x".repeat((1 << 20) - 50_000)}).to_string();
    let case = Case::new().file(USER, &text);
    let done = config(&case, &["set", "--global", "model", &long]);
    assert!(done.code == 2 && done.err.contains("would exceed 1 MiB"), "{}", &done.err[..200.min(done.err.len())]);
    assert_eq!(fs::read_to_string(case.path(USER)).unwrap(), text);
}

#[test]
fn a_full_list_of_trusted_files_makes_room_and_loses_no_trust() {
    let store = "home/.config/spektacular/trusted.json";
    let case = Case::new().file(PROJECT, r#"{"permissions":"deny"}"#).file("kept.json", "{}");
    let kept = case.path("kept.json").display().to_string();
    let list = json!({ kept: "{}", "/gone.json": "x".repeat((4 << 20) - 100) }).to_string();
    let case = case.file(store, &list);
    let done = config(&case, &["trust"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(ok(&case, &["get", "permissions"]), "deny\n");
    let list: Value = serde_json::from_str(&fs::read_to_string(case.path(store)).unwrap()).unwrap();
    assert!(list["/gone.json"].is_null() && list[case.path("kept.json").to_str().unwrap()] == "{}");
}

#[test]
fn a_dangling_link_is_refused_and_kept() {
    let case = Case::new().file("home/.config/spektacular/x", "").link(USER, "home/dotfiles.json");
    let done = config(&case, &["set", "--global", "model", "m"]);
    assert!(done.code == 2 && done.err.contains("is a symbolic link without a target"), "{}", done.err);
    assert!(case.path(USER).is_symlink() && !case.path("home/dotfiles.json").exists());
}

#[test]
fn a_process_that_keeps_the_lock_does_not_stall_a_change() {
    let case = Case::new().file(PROJECT, "{}");
    let folder = fs::File::open(case.path(PROJECT).parent().unwrap()).unwrap();
    folder.lock().unwrap();
    let done = config(&case, &["set", "model", "m"]);
    assert!(done.code == 2 && done.err.contains("is being changed by another process"), "{}", done.err);
    assert_eq!(fs::read_to_string(case.path(PROJECT)).unwrap(), "{}");
    folder.unlock().unwrap();
    ok(&case, &["set", "model", "m"]);
}

#[test]
fn the_next_change_removes_the_file_of_a_killed_one() {
    let case = Case::new().file(USER, "{}");
    let binary = env!("CARGO_BIN_EXE_spektacular");
    let mut killed = case.command("/bin/sh");
    killed.args(["-c", "ulimit -f 0; exec \"$@\" >/dev/null", "sh", binary, "config", "set", "--global", "model", "m"]);
    assert!(!killed.status().unwrap().success());
    assert_eq!(fs::read_to_string(case.path(USER)).unwrap(), "{}");
    ok(&case, &["set", "--global", "model", "m"]);
    let left: Vec<_> =
        fs::read_dir(case.path("home/.config/spektacular")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["config.json"]);
}

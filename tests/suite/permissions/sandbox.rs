//! The limits that the kernel sets to an agent, as attacks: on a command and on an agent that never asks, as the suite's user
//! and as an ordinary one.

use crate::support::attacks::Tools;
use crate::support::machine::not_checked;
use crate::support::{Case, Outcome, attacks, read, run};
use crate::workflows::commits::authored;
use crate::workflows::implement::{allowed, phase, plan, project, report};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A case with an agent `cmd` that runs this script.
#[track_caller]
fn case(script: &str) -> Case {
    let case = Case::new().file("home/.ssh/id_test", "private").file("home/plain", "plain");
    let case = case.file("out/victim", "old\n").script("bin/attack", script);
    let config = json!({"agent": "cmd", "agents": {"cmd": {"driver": "lines", "command": "attack"}}});
    case.file("home/.config/spektacular/config.json", &config.to_string())
}

fn payload(case: &Case, sandbox: Value) -> Value {
    let out = case.path("out").display().to_string();
    json!({"sandbox": sandbox, "env": {"OUT": out, "OUTSIDE": std::process::id().to_string()}})
}

/// Whether the kernel that runs these tests can keep a sandbox.
fn is_kept(name: &str) -> bool {
    let case = case("echo hi");
    let payload = payload(&case, json!("workspace"));
    let outcome = run(case, payload);
    let kept = outcome.frames.last().unwrap()["type"] == "run.completed";
    if !kept {
        not_checked(name, "the kernel has no Landlock");
    }
    kept
}

/// An agent that speaks the Agent Client Protocol, never asks, and does what this script does. It answers with its output.
fn acp_agent(script: &str) -> String {
    let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n"#;
    format!(
        r#"attack() {{
{script}
}}
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\("*[0-9a-z-]*"*\)[,}}].*/\1/p')
case "$line" in
*'"initialize"'*) answer '{{"protocolVersion":1,"agentCapabilities":{{}}}}' ;;
*'"session/new"'*) answer '{{"sessionId":"s"}}' ;;
*'"session/prompt"'*) printf '{update}' "$(attack | tr '\n' ';')"; answer '{{"stopReason":"end_turn"}}' ;;
esac
done"#
    )
}

/// Runs all attacks, on a command or an agent of the Agent Client Protocol. `user`: a program that changes the user, or
/// nothing.
#[track_caller]
fn attack(driver: &str, user: &str) {
    let tools = if user.is_empty() { Tools::of_machine() } else { Tools::none() };
    for (column, mode) in attacks::MODES.into_iter().enumerate() {
        let case = attacks::prepare(case("exit 1"));
        let script = attacks::script(&case, &tools);
        let agent = if driver == "acp" { acp_agent(&script) } else { script };
        let config = json!({"agent": "cmd", "agents": {"cmd": {"driver": driver, "command": "attack"}}});
        let case = case.script("bin/attack", &agent).file("home/.config/spektacular/config.json", &config.to_string());
        let case = attacks::inheriting(if user.is_empty() { case } else { owned(case) }, user);
        let mut payload = payload(&case, attacks::sandbox(column, &tools));
        payload["permissions"] = json!(if mode == "workspace" { "ask" } else { "read-only" });
        let outcome = run(case, payload);
        let output = outcome.completed()["text"].as_str().unwrap().to_owned();
        attacks::check(&outcome, (column, &tools), &output, true);
    }
}

#[test]
fn no_attack_of_a_command_works() {
    if is_kept("attacks of a command") {
        attack("lines", "");
    }
}

#[test]
fn no_attack_of_an_agent_that_never_asks_works() {
    if is_kept("attacks of an agent that never asks") {
        attack("acp", "");
    }
}

#[test]
fn no_attack_of_an_ordinary_user_works() {
    let name = "attacks as an ordinary user";
    if ordinary_user(name) && is_kept(name) {
        let user = format!("setpriv {}", ORDINARY.join(" "));
        attack("lines", &user);
        attack("acp", &user);
    }
}

#[test]
fn the_reference_has_the_table_of_attacks() {
    let reference = include_str!("../../../src/protocol/reference.md");
    for (name, _, works) in [attacks::STOPPED, attacks::NOT_STOPPED, attacks::WORK, attacks::TOOLS].concat() {
        let [workspace, read_only] = works.map(|works| if works { "works" } else { "stopped" });
        let row = format!("\n| {name} | {workspace} | {read_only} |\n");
        assert!(reference.contains(&row), "the reference lacks {row}");
    }
}

/// Each attack is real: without a sandbox, it works.
#[test]
fn each_attack_works_without_a_sandbox() {
    for (name, attack, _) in attacks::STOPPED {
        let case = attacks::prepare(case("exit 1"));
        // A mount that works would outlast the test.
        let script = format!(
            "export OUT OUTSIDE=$PPID\n({attack}) >/dev/null 2>&1 && echo worked\numount $TMPDIR 2>/dev/null || true"
        );
        let case = attacks::inheriting(case.script("bin/attack", &script), "");
        let payload = payload(&case, json!("off"));
        let outcome = run(case, payload);
        // The last two need a privilege that an ordinary user does not have.
        let is_privileged = name.starts_with("mount") || name.starts_with("enter");
        assert!(is_privileged || outcome.completed()["text"] == "worked", "{name}");
    }
}

/// The arguments of `setpriv` for an ordinary user.
const ORDINARY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// Whether a test can run as an ordinary user.
fn ordinary_user(name: &str) -> bool {
    let works = Command::new("setpriv").args(ORDINARY).arg("true").status().is_ok_and(|status| status.success());
    if !works {
        not_checked(name, "setpriv cannot change the user here");
    }
    works
}

/// The case of an ordinary user.
#[track_caller]
fn as_ordinary(case: Case) -> Case {
    owned(case.shell(&format!("exec setpriv {} \"$@\"", ORDINARY.join(" "))))
}

/// Gives all files of a case to an ordinary user.
#[track_caller]
fn owned(case: Case) -> Case {
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(case.path("")).status().unwrap().success());
    case
}

#[test]
fn run_started_shows_what_is_in_force() {
    if !is_kept("the sandbox in run.started") {
        return;
    }
    let case = case("echo hi");
    fs::create_dir(case.path("cache")).unwrap();
    let cache = case.path("cache").display().to_string();
    let payload = payload(&case, json!({"mode": "workspace", "write": [cache.clone()], "read": ["~/plain"]}));
    let outcome = run(case, payload);
    outcome.completed();
    let shown = &outcome.frames[0]["payload"]["config"]["sandbox"];
    let abi = shown["abi"].as_u64().unwrap();
    assert!(abi >= 3, "{shown}");
    let wanted = json!({"mode": "workspace", "abi": abi, "signals": abi >= 6, "sockets": abi >= 9, "git": shown["git"],
        "write": [cache], "read": ["~/plain"], "secrets": "hidden"});
    assert_eq!(*shown, wanted);
    let checked = outcome.case().run(&["agents", "check", "--output", "json"]).json(0);
    assert_eq!(checked["sandbox"]["git"], shown["git"]);
}

#[track_caller]
fn refused(outcome: &Outcome, parts: &[&str]) {
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap();
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!outcome.case().work().join("started").exists(), "the agent started");
}

#[test]
fn a_sandbox_that_the_kernel_cannot_keep_is_refused() {
    for (version, why) in [("0", "no Landlock"), ("1", "version 1"), ("2", "version 2")] {
        let start = || case("echo x > started; echo done").env("TEST_LANDLOCK_ABI", version);
        let mut payload = payload(&start(), json!("read-only"));
        refused(&run(start(), payload.clone()), &["`sandbox`", why, "`on_unsupported`"]);
        payload["on_unsupported"] = json!("warn");
        let outcome = run(start(), payload);
        outcome.completed();
        assert!(outcome.case().work().join("started").exists());
        assert_eq!(outcome.frames[0]["payload"]["config"]["sandbox"]["mode"], "off");
        assert!(outcome.warnings("sandbox_partial")[0].text("text").contains(why));
    }
}

#[test]
fn an_agent_whose_own_sandbox_cannot_start_in_ours_is_refused() {
    let start = || case("true").program("codex-acp", "#!/bin/sh\necho x >started\n");
    let payload = json!({"agent": "codex-acp", "sandbox": "workspace"});
    refused(&run(start(), payload), &["`sandbox`", "the agent `codex` works there", "`on_unsupported`"]);
}

#[test]
fn a_request_that_cannot_hold_is_refused() {
    if !is_kept("requests for a sandbox") {
        return;
    }
    let start = || case("echo x > started; echo done");
    for (change, parts) in [
        (json!({"cwd": "~"}), &["`cwd`"][..]),
        (json!({"sandbox": {"mode": "workspace", "write": ["gone"]}}), &["`write`", "must name paths that exist"]),
        (json!({"sandbox": {"mode": "workspace", "write": ["~/."]}}), &["`sandbox`", "may hold secrets", "readable"]),
        (json!({"sandbox": {"mode": "read-only", "write": ["/"]}}), &["`sandbox`", "\"workspace\""]),
        (json!({"sandbx": "workspace"}), &["`sandbx`", "`sandbox`"]),
        (json!({"sandbox_mode": "workspace"}), &["`sandbox`"]),
    ] {
        let case = start();
        let mut payload = payload(&case, json!("workspace"));
        for (name, value) in change.as_object().unwrap() {
            payload[name] = value.clone();
        }
        if payload["cwd"] == "~" {
            payload["cwd"] = json!(case.path("home"));
        }
        refused(&run(case, payload), parts);
    }
    // With readable secrets, HOME itself can be the working directory.
    let case = start();
    let mut payload = payload(&case, json!({"mode": "workspace", "secrets": "readable"}));
    payload["cwd"] = json!(case.path("home"));
    run(case, payload).completed();
}

#[test]
fn the_flags_widen_a_sandbox() {
    if !is_kept("the flags of a sandbox") {
        return;
    }
    let case = case("cat $OUT/victim && echo x > $OUT/new && echo done");
    fs::create_dir(case.path("other")).unwrap();
    let (out, other) = (case.path("out").display().to_string(), case.path("other").display().to_string());
    let env = format!("OUT={out}");
    let run = |args: &[&str]| {
        case.run(&[&["adhoc", "--sandbox", "workspace", "--env", &env][..], args, &["--prompt", "go"][..]].concat())
    };
    assert_eq!(run(&["--sandbox-write", &out]).out, "old\ndone\n");
    assert!(!run(&["--sandbox-read", &out]).out.contains("done"));
    assert!(!run(&["--sandbox-write", &other]).out.contains("old"));
    let narrow = case.run(&["adhoc", "--sandbox", "read-only", "--sandbox-write", &out, "--prompt", "go"]);
    assert!(narrow.refused(2).contains("needs --sandbox workspace"), "{}", narrow.err);
    let none = case.run(&["adhoc", "--sandbox-read", &out, "--prompt", "go"]);
    assert!(none.refused(2).contains("--sandbox-read needs --sandbox"), "{}", none.err);
}

/// Ways to plant a command that git, an agent or spektacular would run later. Each prints its name if it works.
const PLANTS: &[(&str, &str)] = &[
    ("hook", "echo evil > .git/hooks/pre-commit"),
    ("setting", "echo '[core]' >> .git/config"),
    ("setting by git", "git config core.fsmonitor evil"),
    ("other hooks", "mv .git/hooks .git/old"),
    ("other repository", "mv .git old"),
    ("configuration", "echo x >> .spektacular/config.json"),
    ("other folder of spektacular", "mv .spektacular old"),
    ("prompt", "echo x > .spektacular/prompts/spec.md"),
    ("settings of an agent", "rm .claude/settings.json"),
    ("mount", "umount .git/hooks"),
    ("writable mount", "mount -o remount,rw,bind .git/hooks"),
];

/// A case with an agent that plants, and then works and commits. Returns the names of the plants that work.
#[track_caller]
fn plant(case: impl Fn(&str) -> Case, is_protected: bool) -> Vec<String> {
    let plants = PLANTS.iter().map(|(name, plant)| format!("if ( {plant} ) >/dev/null 2>&1; then echo '{name}'; fi"));
    let work = "echo x > plain && git add plain && git -c user.name=t -c user.email=t@example.org commit -qm two && git gc -q && git checkout -qb other && \
                echo x > .spektacular/new && echo worked";
    let script = plants.chain([work.to_owned()]).collect::<Vec<_>>().join("\n");
    let case =
        case(if is_protected { &script } else { "echo evil > .git/hooks/pre-commit; echo '[x]' >> .git/config" });
    let payload = payload(&case, json!("workspace"));
    let outcome = run(case, payload);
    let git = if is_protected { "protected" } else { "checked" };
    assert_eq!(outcome.frames[0]["payload"]["config"]["sandbox"]["git"], git);
    let planted = outcome.warnings("protected_changed");
    assert_eq!(planted.is_empty(), is_protected);
    for text in planted.iter().map(|warning| warning.text("text")) {
        assert!(text.contains("/work/.git/config") && text.contains("/work/.git/hooks/pre-commit"), "{text}");
        assert!(planted.len() == 1 && !text.contains("plain"), "{text}");
    }
    outcome.completed()["text"].as_str().unwrap().lines().map(str::to_owned).collect()
}

/// A case in a repository with all that can be planted.
fn repository(script: &str) -> Case {
    let case = case(script).file("work/.spektacular/config.json", "{}").file("work/.spektacular/prompts/spec.md", "a");
    case.file("work/.claude/settings.json", "{}").git()
}

/// Whether this system keeps files unchanged for an agent.
fn is_protected(name: &str) -> bool {
    let checked = case("").run(&["agents", "check", "--output", "json"]).json(0);
    let works = checked["sandbox"]["git"] == "protected";
    if !works {
        not_checked(name, &format!("the system does not permit it: {}", checked["sandbox"]["remedy"]));
    }
    works
}

#[test]
fn nothing_can_be_planted_where_the_system_keeps_files() {
    if is_protected("files that an agent cannot change") {
        assert_eq!(plant(repository, true), ["worked"]);
    }
}

#[test]
fn an_ordinary_user_keeps_files_too() {
    if is_protected("files that an agent of an ordinary user cannot change") && ordinary_user("kept files") {
        assert_eq!(plant(|script| as_ordinary(repository(script)), true), ["worked"]);
    }
}

#[test]
fn planted_hooks_and_settings_are_named() {
    if !is_kept("planted hooks") {
        return;
    }
    // No user and mount namespaces.
    let forbidden = "exec unshare --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces &&
        exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\"' sh \"$@\"";
    if !Command::new("unshare").args(["--map-root-user", "true"]).status().is_ok_and(|status| status.success()) {
        return not_checked("planted hooks", "unshare does not work here");
    }
    assert!(plant(|script| repository(script).shell(forbidden), false).is_empty());
}

#[test]
fn what_cannot_be_kept_is_named() {
    if !is_kept("planted files that are new") {
        return;
    }
    let script = "echo ../evil > .git/commondir; echo x > .envrc; echo x > HEAD; mkdir .spektacular; \
                  echo '{}' > .spektacular/config.json; echo evil > .husky/pre-commit; rm .git/commondir.x; true";
    let case = case(script).git().file("work/.husky/pre-commit", "true");
    assert!(case.command("/usr/bin/git").args(["config", "core.hooksPath", ".husky"]).status().unwrap().success());
    let payload = payload(&case, json!("workspace"));
    let outcome = run(case, payload);
    let warnings = outcome.warnings("protected_changed");
    let text = warnings[0].text("text");
    for name in [".git/commondir", ".envrc", "HEAD", ".spektacular/config.json", ".husky/pre-commit"] {
        assert!(text.contains(&format!("/work/{name}")), "{name}: {text}");
    }
}

#[test]
fn a_worktree_commits_and_plants_no_hook() {
    if !is_kept("git in a worktree") {
        return;
    }
    let work = "git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m two && echo committed\n\
                echo evil > ../work/.git/hooks/pre-commit; echo '[x]' >> ../work/.git/config; echo x > ../work/new; true";
    let case = case(work).git();
    let made = case.command("/usr/bin/git").args(["worktree", "add", "-q", "../tree"]).status().unwrap();
    assert!(made.success());
    let mut payload = payload(&case, json!("workspace"));
    payload["cwd"] = json!(case.path("tree"));
    let config = read(&case.path("work/.git/config"));
    let outcome = run(case, payload);
    assert!(outcome.completed()["text"].as_str().unwrap().contains("committed"), "{:?}", outcome.completed());
    assert_eq!(read(&outcome.case().path("work/.git/config")), config);
    assert!(!outcome.case().path("work/.git/hooks/pre-commit").exists() && !outcome.case().path("work/new").exists());
    assert!(outcome.warnings("protected_changed").is_empty());
}

#[test]
fn an_agent_keeps_its_state() {
    if !is_kept("the state of an agent") {
        return;
    }
    let case = case("echo x > $HOME/.mine/deep/file && echo stored");
    let entry = json!({"driver": "lines", "command": "attack", "state": ["~/.mine/deep"]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}});
    let case = case.file("home/.config/spektacular/config.json", &config.to_string());
    let payload = payload(&case, json!("read-only"));
    assert_eq!(run(case, payload).completed()["text"], "stored");
}

#[test]
fn a_policy_holds_on_an_agent_that_never_asks() {
    if !is_kept("a policy on an agent that never asks") {
        return;
    }
    for policy in ["read-only", "deny"] {
        let case = case("cat old.txt; echo x > new; echo reviewed").file("work/old.txt", "old\n");
        let mut payload = payload(&case, json!("read-only"));
        payload["permissions"] = json!(policy);
        let outcome = run(case, payload);
        assert_eq!(outcome.completed()["text"], "old\nreviewed", "{policy}");
        assert!(!outcome.case().work().join("new").exists());
    }
}

/// A program that a filter of system calls keeps from Landlock, with this error. It starts the rest of its arguments.
const FILTER: &str = r#"import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x35, 0, 2, 444), (0x25, 1, 0, 446), (6, 0, 0, 0x50000 | int(sys.argv[1])), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// Without the system calls, and where a container forbids them, nothing starts.
#[test]
fn a_system_that_refuses_landlock_starts_nothing() {
    let tools = Tools::of_machine();
    let Some(python) = tools.python() else {
        return not_checked("refused system calls of Landlock", "python3 is missing");
    };
    let why = "no Landlock";
    for errno in ["38", "95", "1"] {
        let start = || {
            let case = case("echo x > started; echo done").file("filter.py", FILTER);
            let filter = case.path("filter.py").display().to_string();
            case.shell(&format!("exec {} {filter} {errno} \"$@\"", python.display()))
        };
        let mut payload = payload(&start(), json!("workspace"));
        refused(&run(start(), payload.clone()), &["`sandbox`", why, "`on_unsupported`"]);
        payload["on_unsupported"] = json!("warn");
        let outcome = run(start(), payload);
        outcome.completed();
        assert!(outcome.warnings("sandbox_partial")[0].text("text").contains(why));
    }
}

#[test]
fn a_dry_run_says_what_a_run_would() {
    let dry = ["adhoc", "--dry-run", "--sandbox", "workspace", "--prompt", "go", "--output", "json"];
    let without = case("").env("TEST_LANDLOCK_ABI", "1");
    assert!(without.run(&dry[..6]).refused(2).contains("--sandbox cannot be kept, because the kernel has version 1"));
    let plan = without.run(&[&dry[..], &["--on-unsupported", "warn"]].concat()).json(0);
    assert!(plan["warnings"][0].as_str().unwrap().starts_with("The agent runs without a sandbox"), "{plan}");
    if is_kept("the dry run of a sandbox") {
        let plan = case("").env("SSH_AUTH_SOCK", "/run/agent").run(&dry).json(0);
        assert_eq!(plan["warnings"], json!([]));
        assert_eq!(plan["env_removed"], json!(["SSH_AUTH_SOCK"]));
        assert!(plan["env_set"].as_array().unwrap().contains(&json!("TMPDIR")), "{plan}");
    }
}

#[test]
fn commands_that_verify_and_hooks_of_commits_run_in_the_sandbox() {
    if !is_kept("verification in a sandbox") {
        return;
    }
    let text = plan(&[phase(1, &["test -e made", "! echo x > ../out/verified"], "")]);
    let case = authored(project(&text, "echo x > ../out/agent; touch made").git());
    let hook = case.work().join(".git/hooks/pre-commit");
    fs::create_dir_all(case.path("out")).unwrap();
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho x > ../out/hook; exit 0\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let mut payload = allowed(json!({"commit": true}));
    payload["sandbox"] = json!({"mode": "workspace", "write": [case.path("log")]});
    let outcome = run(case, payload);
    outcome.completed();
    let report = report(&outcome);
    assert!(report[0]["state"] == "passed" && report[0]["commit"].is_string(), "{report:?}");
    assert_eq!(fs::read_dir(outcome.case().path("out")).unwrap().count(), 0);
}

/// The text about a failure has the path and the flag.
#[test]
fn a_failure_at_the_sandbox_names_the_grant() {
    if !is_kept("hints at grants") {
        return;
    }
    let case = case("exec 2>&1; echo x > $OUT/new");
    let out = case.path("out/new").display().to_string();
    let broken = case.script("bin/broken", "echo \"cannot open $OUT/new: Permission denied\" >&2; exit 3");
    let config = json!({"agent": "cmd", "agents": {"cmd": {"driver": "lines", "command": "broken"}}});
    let broken = broken.file("home/.config/spektacular/config.json", &config.to_string());
    let payload = payload(&broken, json!("workspace"));
    let outcome = run(broken, payload);
    let message = outcome.failed("agent_error")["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("--sandbox-write or --sandbox-read grants {out}.")), "{message}");

    let text = plan(&[phase(1, &["touch made; echo x > $OUT/new"], "")]);
    let case = project(&text, "touch made").env("OUT", "/usr/share");
    let mut payload = allowed(json!({}));
    payload["sandbox"] = json!({"mode": "workspace", "write": [case.path("log")]});
    let outcome = run(case, payload);
    outcome.failed("verification_failed");
    let tools = outcome.progress("tool");
    let failed = tools.iter().find(|frame| frame.text("state") == "failed").unwrap();
    assert_eq!(failed["payload"]["sandbox_suspected"], true);
    assert!(failed.text("text").ends_with("--sandbox-read grants /usr/share/new"), "{}", failed.text("text"));
}

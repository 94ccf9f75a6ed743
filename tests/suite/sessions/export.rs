//! Tests of `export`: a session in the agent's own format.

use crate::support;

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use support::Case;

const ID: &str = "f0497063-4977-4fc9-aeae-4a6c48bd6e50";

/// The path and the content of the session in each agent's own layout. Claude Code and Gemini CLI derive `-home-user-greeter`
/// and `greeter` from a working directory `/home/user/greeter`. The path is relative to the sandbox.
fn kept(agent: &str) -> (String, String) {
    match agent {
        "claude" => {
            (format!("home/.claude/projects/-home-user-greeter/{ID}.jsonl"), "{\"type\":\"user\"}\nno json\n".into())
        }
        "codex" => (
            format!("home/.codex/sessions/2026/11/22/rollout-2026-11-22T02-01-53-{ID}.jsonl"),
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{ID}\"}}}}\n{{}}\n"),
        ),
        _ => (
            format!("home/.gemini/tmp/greeter/chats/session-2026-11-22T02-01-{}.jsonl", &ID[..8]),
            format!("{{\"sessionId\":\"{ID}\",\"kind\":\"main\"}}\n"),
        ),
    }
}

#[test]
fn a_session_is_exported_byte_for_byte() {
    for agent in ["claude", "codex", "gemini"] {
        let (path, content) = kept(agent);
        let plain = Case::new().file(&path, &content);
        let did = plain.run(&["export", "--agent", agent, ID]);
        assert_eq!((did.code, did.out.as_str(), did.err.as_str()), (Some(0), content.as_str(), ""), "{agent}");
        let said = plain.run(&["export", "--agent", agent, ID, "--output", "json"]).json(0);
        assert_eq!(said, json!({"success": true, "agent": agent, "session_id": ID, "export_data": content}));
    }
}

#[test]
fn a_folder_that_was_moved_is_found() {
    let (path, content) = kept("codex");
    let plain = Case::new().file(&path.replace("home/.codex", "elsewhere"), &content);
    let folder = plain.path("elsewhere").display().to_string();
    let plain = plain.env("CODEX_HOME", &folder);
    assert_eq!(plain.run(&["export", "-a", "codex", ID]).out, content);
}

#[test]
fn only_a_complete_id_is_found() {
    let (path, content) = kept("gemini");
    let other = content.replace(ID, "f0497063-0000-0000-0000-000000000000");
    let plain = Case::new().file(&path, &other).file(&path.replace("/greeter/", "/other/"), &content);
    assert_eq!(plain.run(&["export", "-a", "gemini", ID]).out, content);

    let (path, content) = kept("codex");
    let plain = Case::new().file(&path, &content);
    assert!(plain.run(&["export", "-a", "codex", "4a6c48bd6e50"]).refused(1).contains("session_not_found"));
}

#[test]
fn of_two_files_the_last_changed_counts() {
    let (path, content) = kept("claude");
    let plain = Case::new().file(&path, "old\n").file(&path.replace("-tmp-work", "-tmp-new"), &content);
    let old = fs::File::options().append(true).open(plain.path(&path)).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(plain.run(&["export", ID]).out, content);
}

#[test]
fn an_unknown_session_is_an_error_of_its_own() {
    for agent in ["claude", "codex", "gemini"] {
        let plain = Case::new();
        assert!(plain.run(&["export", "-a", agent, ID]).refused(1).contains("session_not_found"), "{agent}");
        let said = plain.run(&["export", "-a", agent, ID, "--output", "json"]).json(1);
        assert_eq!((&said["success"], &said["error"]["code"]), (&json!(false), &json!("session_not_found")));
        assert_eq!(said.get("export_data"), None);
    }
}

#[test]
fn no_id_leads_out_of_the_folder() {
    let plain = Case::new().file("home/.claude/secret.jsonl", "secret").file("home/.claude/projects/x/y.jsonl", "y");
    for id in ["../secret", "../../secret", "*", "", "/etc/passwd", "a.b", "--", "x/y"] {
        let did = plain.run(&["export", "--", id]);
        assert!(did.refused(2).contains("invalid_request"), "{id}: {did:?}");
    }
}

#[test]
fn an_agent_without_sessions_is_an_error() {
    let plain = Case::new();
    assert!(plain.run(&["export", "-a", "demo", ID]).refused(2).contains("Sessions of demo cannot be exported: use"));
    assert!(plain.run(&["export", "-a", "cluade", ID]).refused(2).contains("Did you mean claude?"));
    assert!(plain.run(&["export"]).refused(2).contains("SESSION"));
    assert!(plain.run(&["export", ID, ID]).refused(2).contains("SESSION"));
}

#[test]
fn an_agent_that_prints_its_sessions_is_asked() {
    let plain = Case::new().script(
        "bin/opencode",
        "[ $# -eq 2 ] && [ \"$1\" = export ] || exit 9\necho Exporting >&2\ncase $2 in\n ses_a) printf '{\"info\":1}';;\n\
         ses_cut) printf '{\"info\":';;\n ses_bad) exit 3;;\n ses_*) echo \"Error: Session not found: $2\" >&2; exit 1;;\n\
         *) printf 'Error: Unexpected error\\n\\nExpected a string starting with \"ses\", got \"%s\"\\n' \"$2\" >&2; exit 1;;\nesac",
    );
    assert_eq!(plain.run(&["export", "-a", "opencode", "ses_a"]).out, "{\"info\":1}");
    // An id from another agent is also unknown.
    for (id, code) in [
        ("ses_b", "session_not_found"),
        (ID, "session_not_found"),
        ("ses_cut", "agent_protocol_error"),
        ("ses_bad", "agent_error"),
    ] {
        assert!(plain.run(&["export", "-a", "opencode", id]).refused(1).contains(code), "{id}");
    }
    assert!(Case::new().run(&["export", "-a", "opencode", "ses_a"]).refused(4).contains("npm install -g opencode-ai"));
}

#[test]
fn without_an_id_the_last_session_here_is_printed() {
    let (path, content) = kept("claude");
    let sessions = |agent: &str| format!("work/.spektacular/local/sessions/{agent}");
    let plain = Case::new().file(&path, &content).file(&sessions("claude"), &format!("{ID}\t20\tgo\n"));
    assert_eq!(plain.run(&["export"]).out, content);
    assert_eq!(plain.run(&["export", "--output", "json"]).json(0)["session_id"], ID);
    assert!(plain.run(&["export", "-a", "codex"]).refused(2).contains("Missing SESSION: no session"));
    // The newest session counts, whichever agent it belongs to.
    let plain = plain.file(&sessions("codex"), "unknown\t30\tgo\n");
    assert!(plain.run(&["export"]).refused(1).contains("codex has no session with this id"));
    assert_eq!(plain.run(&["export", "-a", "claude"]).out, content);
}

#[test]
fn a_file_is_written_atomically_and_replaced_only_by_force() {
    let (path, content) = kept("claude");
    let plain = Case::new().file(&path, &content).file("work/there", "mine");
    let read = |name: &str| fs::read_to_string(plain.path(name)).unwrap();
    let did = plain.run(&["export", ID, "--out", "new.jsonl"]);
    assert_eq!((did.code, did.out.as_str(), did.err.as_str()), (Some(0), "", ""));
    assert_eq!(read("work/new.jsonl"), content);
    assert_eq!(fs::metadata(plain.path("work/new.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);

    assert!(plain.run(&["export", ID, "--out", "there"]).refused(2).contains("--force"));
    assert_eq!(read("work/there"), "mine");
    let said = plain.run(&["export", ID, "--out", "there", "--force", "--output", "json"]).json(0);
    assert_eq!(said, json!({"success": true, "agent": "claude", "session_id": ID, "file": "there"}));
    assert_eq!(read("work/there"), content);

    assert!(plain.run(&["export", ID, "--out", "no/such/folder"]).refused(2).contains("cannot be written"));
    assert!(plain.run(&["export", ID, "--out", "/dev/null", "--force"]).refused(2).contains("regular file"));
    let left: Vec<_> = fs::read_dir(plain.path("work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn writing_through_a_link_keeps_the_link() {
    let (path, content) = kept("claude");
    let plain = Case::new().file(&path, &content).file("home/real", "old").link("work/linked", "home/real");
    assert_eq!(plain.run(&["export", ID, "--out", "linked", "--force"]).code, Some(0));
    assert_eq!(fs::read_to_string(plain.path("home/real")).unwrap(), content);
    assert!(plain.path("work/linked").is_symlink());
}

#[test]
fn a_session_beyond_the_limit_of_size_is_named_as_such() {
    let (path, _) = kept("codex");
    let plain = Case::new().file(&path, &format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{ID}\"}}}}\n"));
    fs::File::options().write(true).open(plain.path(&path)).unwrap().set_len((1 << 30) + 1).unwrap();
    let did = plain.run(&["export", "-a", "codex", ID]);
    let said = did.refused(1);
    assert!(said.contains("longer than 1 GiB"), "{said}");
}

#[test]
fn a_program_that_cannot_be_started_is_named_as_such() {
    let plain = Case::new().program("opencode", "#!/no/such/interpreter\n");
    let did = plain.run(&["export", "-a", "opencode", "ses_1"]);
    let said = did.refused(1);
    assert!(said.contains("opencode cannot be started"), "{said}");
}

#[test]
#[ignore = "takes a minute"]
fn a_program_that_hangs_is_stopped_with_its_tree_after_a_minute() {
    let hangs = "setsid sleep 1000 &\necho $$ $! >\"$HOME\"/pids\nyes >&2";
    let mut plain = Case::new().script("bin/opencode", hangs);
    plain.limit = Duration::from_secs(90);
    let did = plain.run(&["export", "-a", "opencode", "ses_1"]);
    let said = did.refused(1);
    assert!(said.contains("within 60 s"), "{said}");
    let pids = fs::read_to_string(plain.path("home/pids")).unwrap();
    assert!(pids.split_whitespace().all(|pid| !support::procs::alive(pid.parse().unwrap())), "{pids}");
}

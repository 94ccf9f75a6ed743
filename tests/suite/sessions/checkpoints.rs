//! Tests of checkpoints: a rewind puts back what turns changed, and loses nothing.

use crate::support::{Case, Frame, Session};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// An agent that runs each prompt as a script.
fn shell(case: Case) -> Case {
    let script = r#"eval "$(cat)"; echo done"#;
    let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", script], "resume_args": ["-c", script]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string();
    case.file("home/.config/spektacular/config.json", &config)
}

/// A conversation whose first prompt this is, after its first turn.
#[track_caller]
fn begun(case: Case, prompt: &str) -> Session {
    let mut session = shell(case).spawn();
    session.start(json!({"prompt": prompt, "conversation": true, "checkpoints": true}));
    let started = session.until("run.started");
    assert_eq!(started["payload"]["capabilities"]["rewind"], true);
    session.until_where("the first turn", is_complete("p_0"));
    session
}

fn is_complete(id: &'static str) -> impl Fn(&Frame) -> bool {
    move |frame| {
        frame.is_progress("checkpoint") && frame.text("checkpoint_id") == id && frame.text("state") == "complete"
    }
}

#[track_caller]
fn turn(session: &mut Session, prompt: &str, id: &'static str) {
    session.send("run.input", json!({"prompt": prompt}));
    session.until_where("the turn", is_complete(id));
}

/// Rewinds, and returns the frame about it.
#[track_caller]
fn rewind(session: &mut Session, to: &str) -> Frame {
    let sent = session.send("run.input", json!({"rewind": to}));
    session.until_where("the rewind", |frame| frame["reply_to"] == sent.as_str())
}

#[track_caller]
fn refused(frame: &Frame, words: &str) {
    assert_eq!(frame.text("code"), "rewind_refused", "{}", frame.raw);
    assert!(frame.text("text").contains(words), "{words}: {}", frame.text("text"));
}

#[track_caller]
fn end(mut session: Session) {
    session.send("run.input", json!({"end": true}));
    session.finish().completed();
}

fn read(path: &Path, name: &str) -> String {
    fs::read_to_string(path.join(name)).unwrap_or_else(|_| "absent".into())
}

/// The state of the repository itself.
fn repository(root: &Path) -> [Vec<u8>; 2] {
    ["HEAD", "index"].map(|name| fs::read(root.join(".git").join(name)).unwrap())
}

#[test]
fn a_rewind_puts_back_what_turns_changed_and_can_be_undone() {
    let case = Case::new().git().file("work/.gitignore", "ignored\n").file("work/mine.txt", "not committed\r\n");
    let case = case.file("work/.gitattributes", "* text=auto\n").file("work/gone/deep.txt", "deep\n");
    let root = case.work();
    fs::set_permissions(root.join("mine.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("old.txt", root.join("link")).unwrap();
    let mut session = begun(case, "echo one >> old.txt; echo i > ignored");
    let before = repository(&root);
    let work = "printf 'two\\n' > mine.txt; chmod +x old.txt; rm -r gone; mkdir new; echo x > new/file; ln -sf mine.txt link; echo j > ignored";
    turn(&mut session, work, "p_1");
    // Neither a turn's nor in its way.
    fs::write(root.join("other.txt"), "the user's\n").unwrap();
    let frame = rewind(&mut session, "p_1");
    assert_eq!((frame.text("state"), frame.text("undo")), ("restored", "r_1"), "{}", frame.raw);
    let files: Vec<String> = frame["payload"]["files"].as_array().unwrap().iter().map(Value::to_string).collect();
    let expected = [
        ("gone/deep.txt", "created"),
        ("link", "modified"),
        ("mine.txt", "modified"),
        ("new/file", "deleted"),
        ("old.txt", "modified"),
    ];
    assert_eq!(files, expected.map(|(path, action)| json!({"path": path, "action": action}).to_string()));
    assert_eq!(read(&root, "mine.txt"), "not committed\r\n");
    assert_eq!(fs::metadata(root.join("mine.txt")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(root.join("old.txt")).unwrap().permissions().mode() & 0o111, 0);
    assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("old.txt"));
    assert_eq!(
        [read(&root, "old.txt"), read(&root, "gone/deep.txt"), read(&root, "ignored")],
        ["old\none\n", "deep\n", "j\n"]
    );
    assert!(!root.join("new").exists());
    assert_eq!((read(&root, "other.txt"), repository(&root)), ("the user's\n".into(), before));
    let undone = rewind(&mut session, "r_1");
    assert_eq!((undone.text("state"), undone.text("undo")), ("restored", "r_2"), "{}", undone.raw);
    assert_eq!(
        [read(&root, "mine.txt"), read(&root, "new/file"), read(&root, "gone/deep.txt")],
        ["two\n", "x\n", "absent"]
    );
    // Over both turns, and what lies between them.
    assert_eq!(rewind(&mut session, "p_0").text("undo"), "r_3");
    assert_eq!([read(&root, "old.txt"), read(&root, "ignored")], ["old\n", "j\n"]);
    let left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".spektacular")), "{left:?}");
    end(session);
}

#[test]
fn a_file_that_somebody_else_changed_stops_a_rewind() {
    let case = Case::new().git();
    let root = case.work();
    let mut session = begun(case, "echo a > a; echo b > b; echo c > c");
    fs::write(root.join("b"), "the user's\n").unwrap();
    refused(&rewind(&mut session, "p_0"), "somebody else changed a file that a turn changed too: b");
    assert_eq!([read(&root, "a"), read(&root, "b")], ["a\n", "the user's\n"]);
    // Between two turns too.
    turn(&mut session, "echo more >> b", "p_1");
    refused(&rewind(&mut session, "p_0"), ": b");
    assert_eq!(rewind(&mut session, "p_1").text("state"), "restored");
    assert_eq!(read(&root, "b"), "the user's\n");
    end(session);
}

/// A rewind cannot be undone between the two steps of such a change.
#[test]
fn a_file_that_became_a_folder_stops_a_rewind_and_is_named() {
    let case = Case::new().git().file("work/a", "a file\n").file("work/b/deep.txt", "deep\n");
    let root = case.work();
    let mut session = begun(case, "rm a; mkdir a; echo x > a/x; echo other > c");
    refused(&rewind(&mut session, "p_0"), "a file became a folder since then, or a folder a file: a");
    turn(&mut session, "rm -r b; echo file > b", "p_1");
    refused(&rewind(&mut session, "p_1"), "a file became a folder since then, or a folder a file: b");
    assert_eq!(
        (read(&root, "a/x"), read(&root, "b"), read(&root, "c")),
        ("x\n".into(), "file\n".into(), "other\n".into())
    );
    end(session);
}

#[test]
fn a_rewind_follows_no_link_and_replaces_no_ignored_file() {
    let case = Case::new().git().file("work/d/f", "in\n").file("outside/f", "out\n").file("work/plain", "plain\n");
    let (root, outside) = (case.work(), case.path("outside"));
    let work = format!("rm -r d; ln -s {} d; echo plain >> .gitignore; echo secret > plain", outside.display());
    let mut session = begun(case, &work);
    refused(&rewind(&mut session, "p_0"), "");
    assert_eq!([read(&outside, "f"), read(&root, "plain")], ["out\n", "secret\n"]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    end(session);
}

#[test]
fn a_rewind_removes_nothing_that_was_ignored_or_in_a_repository_below() {
    let case = Case::new().git().file("work/.gitignore", "secret\n/out/\n").file("work/secret", "mine\n");
    let case =
        case.file("work/out/deep/built", "built\n").file("work/venv/.gitignore", "*\n").file("work/venv/lib", "lib\n");
    let case = case.file("work/near/secret", "near\n");
    let root = case.work();
    let below = "git init -q below; cd below; echo b > f; git add f; git -c user.name=A -c user.email=a@b.c commit -qm f; cd ..";
    let mut session = begun(case, below);
    let work =
        "rm -r .gitignore venv/.gitignore below/.git; echo n > new; echo n > near/new; echo n > src; echo m >> secret";
    turn(&mut session, work, "p_1");
    let frame = rewind(&mut session, "p_1");
    assert_eq!(frame.text("state"), "restored", "{}", frame.raw);
    let kept = ["secret", "near/secret", "out/deep/built", "venv/lib", "below/f", ".gitignore"];
    let texts = ["mine\nm\n", "near\n", "built\n", "lib\n", "b\n", "secret\n/out/\n"];
    assert_eq!(kept.map(|name| read(&root, name)), texts, "{}", frame.raw);
    assert_eq!(["new", "near/new", "src"].map(|name| read(&root, name)), ["absent"; 3]);
    end(session);
}

#[test]
fn a_tracked_file_is_put_back_although_a_pattern_ignores_it() {
    let case = Case::new().git().file("work/.gitignore", "old.*\n");
    let root = case.work();
    let mut session = begun(case, "echo more >> old.txt; echo i > old.ignored");
    assert_eq!(rewind(&mut session, "p_0").text("state"), "restored");
    assert_eq!([read(&root, "old.txt"), read(&root, "old.ignored")], ["old\n", "i\n"]);
    end(session);
}

#[test]
fn a_rewind_that_cannot_be_is_refused() {
    let mut session = begun(Case::new().git(), "echo a > a; mkfifo fifo");
    refused(&rewind(&mut session, "p_7"), "there is no such checkpoint");
    refused(&rewind(&mut session, "prompt 1"), "must be the id of a checkpoint");
    session.send("run.input", json!({"prompt": "read line < fifo"}));
    session
        .until_where("the checkpoint", |frame| frame.is_progress("checkpoint") && frame.text("checkpoint_id") == "p_1");
    refused(&rewind(&mut session, "p_0"), "a turn is running");
    session.send("run.cancel", json!({"scope": "turn"}));
    session.until_where("the end of the turn", is_complete("p_1"));
    assert_eq!(rewind(&mut session, "p_0").text("state"), "restored");
    end(session);
}

#[test]
fn without_git_or_without_the_wish_there_are_no_checkpoints() {
    for (checkpoints, shown) in [(true, Some(json!(false))), (false, None)] {
        let mut session = shell(Case::new()).spawn();
        session.start(json!({"prompt": "true", "conversation": true, "checkpoints": checkpoints}));
        assert_eq!(session.until("run.started")["payload"]["capabilities"].get("rewind"), shown.as_ref());
        session.until_status("waiting_for_prompt");
        refused(&rewind(&mut session, "p_0"), "takes no checkpoints");
        end(session);
    }
}

//! `protocol check`: right clients pass, and the sentence for each mistake of a wrong one.

use crate::support::{Case, Session};
use serde_json::{Value, json};
use spektacular::protocol::publish::REFERENCE;

/// A client in the shell. `$1` is its mistake. `frame`, `ask`, `prompt`, `finish` and `opened` are what it does with a
/// frame, with the question `$id`, when a prompt is awaited, at the end of the frames, and after run.start.
const CLIENT: &str = r#"
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
mkfifo "$d/in" "$d/out"
send() { printf '%s\n' "$1" >&3; }
input() { send '{"v":"1","type":"run.input","payload":{"question_id":"'"$id"'",'"$1"'}}'; }
answer() {
    case $line in
    *'"kind":"confirm"'*) input '"value":true' ;;
    *'"kind":"select"'*) input '"value":1' ;;
    *) input '"declined":true' ;;
    esac
}
flags='--output json'
fields=
opened() { :; }
frame() { :; }
ask() { answer; }
prompt() { send '{"v":"1","type":"run.input","payload":{"end":true}}'; }
finish() { exit $end; }

case $1 in
right) ;;
conversation)
    fields=',"conversation":true'
    prompt() {
        send '{"v":"1","type":"run.input","payload":{"prompt":"And now?"}}'
        prompt() { send '{"v":"1","type":"run.input","payload":{"end":true}}'; }
    } ;;
headless) fields=',"interactive":false'; opened() { exec 3>&-; } ;;
command-line) flags='--output json Hello'; opened() { exec 3>&-; } ;;
thinks-alone) ask() { sleep 4; answer; } ;;
stops-reading) ask() { sleep 60; } ;;
answers-twice) ask() { answer; answer; } ;;
answers-late) ask() { (sleep 1; answer) & } ;;
answers-anything) ask() { answer; id=q_99; answer; } ;;
answers-once) ask() { case $line in *'"attempt":1'*) answer ;; esac; } ;;
never-answers) ask() { :; } ;;
trusts-exit-code) finish() { wait "$run"; exit $?; } ;;
trusts-silence) finish() { exit $failed; } ;;
knows-all) frame() { case $line in
    *'"type":"run.progress"'*'"kind":"weather"'* | *'"weather":'* | *'"type":"run.weather"'*) exit 9 ;; esac; } ;;
short-lines) frame() { if [ ${#line} -gt 65536 ]; then exit 8; fi; } ;;
closes-stdin) opened() { exec 3>&-; } ;;
malformed) input() { send "{question: $id}"; } ;;
misspelt) fields=',"modle":"m"' ;;
invalid) fields=',"timeout_s":"soon"' ;;
never-starts) finish() { exit 1; }; opened() { exec 3>&-; }; start() { :; } ;;
endless) finish() { sleep 60; } ;;
leaves) frame() { exit 0; } ;;
wrong-flags) flags= ;;
starts-two) printf '{"v":"1","type":"run.start","payload":{"prompt":"Hello"}}\n' | "$SPEKTACULAR" adhoc $flags >/dev/null ;;
wrong-flag) flags='--output json --agnt demo' ;;
no-line-feed) send() { printf '%s' "$1" >&3; } ;;
calls-nothing) exit 0 ;;
*) echo "no such client: $1" >&2; exit 99 ;;
esac

"$SPEKTACULAR" adhoc $flags <"$d/in" >"$d/out" &
run=$!
exec 3>"$d/in" 4<"$d/out"
if [ "$1" != never-starts ]; then
    send '{"v":"1","id":"s","type":"run.start","payload":{"prompt":"Hello"'"$fields"'}}'
fi
opened
end=1 failed=0
while IFS= read -r line <&4; do
    frame
    case $line in
    *'"type":"run.question"'*)
        id=${line#*'"question_id":"'}
        id=${id%%'"'*}
        ask ;;
    *'"status":"waiting_for_prompt"'*) prompt ;;
    *'"type":"run.completed"'*) end=0 ;;
    *'"type":"run.failed"'*) failed=1 ;;
    esac
done
finish
"#;

/// The report about a client in these dialogues, or in all of them.
#[track_caller]
fn report(client: &str, dialogues: &[&str], timeout: &str) -> Value {
    let case = Case::new().script("work/client", CLIENT);
    let mut args = vec!["protocol", "check", "--output", "json", "--timeout", timeout];
    dialogues.iter().for_each(|name| args.extend(["--dialogue", name]));
    let path = case.path("work/client").to_string_lossy().into_owned();
    args.extend(["--", &path, client]);
    let did = case.run(&args);
    let report = did.json(i32::from(did.code != Some(0)));
    assert_eq!(report["passed"], did.code == Some(0), "{report}");
    assert_eq!(case.survivors(), Vec::<String>::new(), "{client}");
    report
}

/// The codes and sentences of all mistakes.
fn mistakes(report: &Value) -> Vec<(String, String)> {
    let all =
        report["dialogues"].as_array().unwrap().iter().flat_map(|dialogue| dialogue["mistakes"].as_array().unwrap());
    all.map(|found| (found["code"].as_str().unwrap().to_owned(), found["text"].as_str().unwrap().to_owned())).collect()
}

/// The dialogues that could not be played whole.
fn skipped(report: &Value) -> Vec<&str> {
    let all = report["dialogues"].as_array().unwrap().iter().filter(|dialogue| !dialogue["skipped"].is_null());
    all.map(|dialogue| dialogue["name"].as_str().unwrap()).collect()
}

#[test]
fn right_clients_pass() {
    for (client, left_out) in [
        ("right", &["conversation"][..]),
        ("conversation", &[]),
        ("headless", &["questions", "bad-answer", "thinking", "timeout", "conversation"]),
        ("command-line", &["questions", "bad-answer", "thinking", "timeout", "conversation"]),
    ] {
        let report = report(client, &[], "60");
        assert_eq!(mistakes(&report), [], "{client}");
        assert_eq!(skipped(&report), left_out, "{client}");
        assert!(report["dialogues"].as_array().unwrap().len() > 10, "{report}");
    }
}

/// Finds exactly one kind of mistake in each dialogue, with this in its sentence.
#[track_caller]
fn finds(client: &str, dialogues: &[&str], timeout: &str, code: &str, sentence: &str) {
    let (_, section) = REFERENCE.split_once("\n## Checking a client\n").unwrap();
    assert!(section.contains(&format!("`{code}`")), "the reference lacks {code}");
    for dialogue in dialogues {
        let found = mistakes(&report(client, &[dialogue], timeout));
        let fits = |(c, text): &(String, String)| c == code && text.contains(sentence);
        assert!(!found.is_empty() && found.iter().all(fits), "{client} in {dialogue}: {found:?}");
    }
}

#[test]
fn a_client_that_does_not_read_while_it_waits_is_found() {
    finds("thinks-alone", &["thinking"], "60", "not_reading", "read nothing for");
    finds("stops-reading", &["thinking"], "8", "not_reading", "stopped reading the frames");
}

#[test]
fn wrong_answers_are_found() {
    finds("answers-twice", &["questions"], "60", "answered_twice", "answered a question twice");
    finds("answers-late", &["timeout"], "60", "answered_resolved", "after it had read that the question is resolved");
    finds("answers-anything", &["bad-answer"], "60", "unknown_question", "a question that was never asked");
    finds("answers-once", &["bad-answer"], "12", "not_answered_again", "repeats the question: answer it again");
    finds("never-answers", &["bad-answer"], "12", "unanswered", "did not answer a question");
}

#[test]
fn a_client_that_trusts_the_exit_code_is_found() {
    finds(
        "trusts-exit-code",
        &["failed"],
        "60",
        "trusted_exit_code",
        "exited with 0 although the last frame was run.failed",
    );
    finds(
        "trusts-exit-code",
        &["completed"],
        "60",
        "trusted_exit_code",
        "exited with 1 although the last frame was run.comp",
    );
    finds(
        "trusts-exit-code",
        &["vanished"],
        "60",
        "trusted_exit_code",
        "exited with 0 although no terminal frame came",
    );
    finds("trusts-silence", &["killed"], "60", "wrong_end", "exited with 0 although no terminal frame came");
}

#[test]
fn a_client_that_stops_at_something_new_is_found() {
    let dialogues = ["unknown-type", "unknown-kind", "unknown-field"];
    finds("knows-all", &dialogues, "60", "stopped_at_unknown", "that you do not know.");
    finds("short-lines", &["huge"], "60", "wrong_end", "A frame may be as long as max_frame_bytes");
}

#[test]
fn wrong_messages_are_found() {
    finds("misspelt", &["hello"], "60", "unknown_field", "run.start: modle (did you mean model?)");
    finds("invalid", &["hello"], "60", "invalid_start", "`timeout_s` must be a number of seconds above 0");
    let found = mistakes(&report("malformed", &["bad-answer"], "12"));
    let codes: Vec<&str> = found.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, ["invalid_message", "unanswered"], "{found:?}");
    assert!(found[0].1.contains("not a JSON object"), "{found:?}");
}

#[test]
fn a_wrong_begin_or_end_is_found() {
    finds("closes-stdin", &["questions"], "60", "closed_input", "Keep stdin open until the terminal frame");
    finds("never-starts", &["hello"], "60", "no_start", "closed the stdin of the run before it sent a run.start");
    finds("endless", &["hello"], "8", "never_ended", "did not end after its run ended");
    finds("leaves", &["timeout"], "60", "left_running", "before the run ended, and left it running");
    finds("wrong-flags", &["hello"], "60", "wrong_call", "without `--output json`");
    finds("wrong-flag", &["hello"], "60", "wrong_call", "--agnt");
    finds("starts-two", &["hello"], "60", "several_runs", "started 2 runs");
    finds("calls-nothing", &["hello"], "60", "not_called", "did not run spektacular");
}

/// A run of the stand-in, below a checker that is this test.
#[track_caller]
fn played(dialogue: &str, payload: Value) -> Session {
    let case = Case::new();
    let log = case.path("log/facts");
    let mut session = case.env("SPEKTACULAR_CHECK", &format!("{dialogue}:60000:{}", log.display())).spawn();
    session.start(payload);
    session
}

/// The harness checks each frame against the schema.
#[test]
fn what_the_stand_in_plays_is_the_protocol() {
    for dialogue in ["hello", "slow", "huge"] {
        played(dialogue, json!({"prompt": "Hello", "metadata": {"task": 7}})).finish().completed();
    }
    for (dialogue, questions) in [("questions", 7), ("thinking", 1), ("timeout", 2)] {
        let mut session = played(dialogue, json!({"prompt": "Hello"}));
        for _ in 0..questions {
            let question = session.until("run.question");
            session.send("run.input", json!({"question_id": question.text("question_id"), "declined": true}));
        }
        session.finish().completed();
    }
    let mut session = played("bad-answer", json!({"prompt": "Hello"}));
    for attempt in [1, 2] {
        let question = session.until("run.question");
        assert_eq!(question.payload()["attempt"], attempt);
        session.answer(&question, json!(true));
    }
    session.finish().completed();
    let mut session = played("conversation", json!({"prompt": "Hello", "conversation": true}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"prompt": "And now?"}));
    session.until_status("waiting_for_prompt");
    session.send("run.input", json!({"end": true}));
    assert_eq!(session.finish().completed()["turns"], 2);
    let mut session = played("timeout", json!({"prompt": "Hello"}));
    session.until("run.question");
    session.cancel();
    session.finish().cancelled();
}

#[test]
fn a_message_of_another_version_fails_the_run_as_it_does_without_a_checker() {
    let fails = |mut session: Session| {
        session.until("run.started");
        session.send_line(r#"{"v":"2","type":"run.cancel"}"#);
        let run = session.finish();
        (run.failed("unsupported_version")["message"].clone(), run.exit_code)
    };
    let mut real = Case::new().args(&["--agent", "demo:hang"]).spawn();
    real.start(json!({"prompt": "Hello"}));
    assert_eq!(fails(played("timeout", json!({"prompt": "Hello"}))), fails(real));
}

/// A client that begins no run is not started again for the other dialogues.
#[test]
fn a_client_that_sends_no_line_feed_costs_the_time_of_one_dialogue() {
    let report = report("no-line-feed", &[], "2");
    let codes: Vec<String> = mistakes(&report).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["no_start"], "{report}");
    let names: Vec<&str> =
        report["dialogues"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(skipped(&report), names[1..], "{report}");
}

#[test]
fn a_person_gets_sentences() {
    let case = Case::new().script("work/client", CLIENT);
    let path = case.path("work/client").to_string_lossy().into_owned();
    let check = |client: &str| {
        let did = case.run(&["protocol", "check", "--dialogue", "failed", "--dialogue", "hello", "--", &path, client]);
        (did.code, did.out)
    };
    let (code, text) = check("right");
    assert_eq!((code, text.lines().last()), (Some(0), Some("The client made no mistakes.")), "{text}");
    assert!(text.starts_with("passed   hello          a message, and the end at once\n"), "{text}");
    let (code, text) = check("trusts-exit-code");
    assert_eq!((code, text.lines().last()), (Some(1), Some("The client made mistakes in 1 of 2 dialogues.")), "{text}");
    assert!(
        text.contains("wrong    failed") && text.contains("\n         The command exited with 0 although"),
        "{text}"
    );
}

#[test]
fn a_command_line_that_cannot_be_used_is_refused() {
    let case = Case::new().file("work/plain", "");
    for (args, wanted) in [
        (&[][..], "Missing COMMAND"),
        (&["--", "./nowhere"], "COMMAND cannot be started: it was not found."),
        (&["--", "./plain"], "COMMAND cannot be started: it is not executable."),
        (&["--dialogue", "helo", "--", "true"], "Did you mean hello?"),
        (&["--timeout", "0", "--", "true"], "--timeout must be a number of seconds above 0."),
    ] {
        let all: Vec<&str> = ["protocol", "check"].iter().chain(args).copied().collect();
        assert!(case.run(&all).refused(2).contains(wanted), "{args:?}");
    }
}

//! A workflow is one run with several parts: limits, stops, secrets, sessions and locks apply to all of them together.

use crate::support::agent::{SESSION, Script, bash, error_result, quote};
use crate::support::{Case, Session, in_time, list, read, run};
use crate::workflows::implement::{PLAN, allowed, commands, phase, plan, plan_of, project, prompts, report, states};
use crate::workflows::spec::GOOD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

const SPEC: &str = ".spektacular/specs/login.md";

fn one(command: &str) -> String {
    plan(&[phase(1, &[command], "")])
}

/// A project with this plan and a fake of Claude Code.
fn claude(plan: &str, script: Script) -> Case {
    Case::with(script).subcommand("implement").file(&format!("work/{PLAN}"), plan).git()
}

/// A run whose command has begun and does not end.
fn in_command(case: Case) -> Session {
    let mut session = case.spawn();
    session.start(allowed(json!({})));
    let began = session.case.work().join("began");
    session.wait_until("the command", || began.exists());
    session
}

fn endless() -> Case {
    project(&one("test -e a && touch began && sleep 600"), "touch a").git()
}

fn last_frame(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn a_retry_with_an_agent_that_exited_resumes_the_session_by_its_id() {
    let script = Script::new().sh("case \"$*\" in *--resume=*) touch good;; *) touch bad;; esac").exits("Done");
    let outcome = run(claude(&one("test -e good"), script), allowed(json!({})));
    outcome.completed();
    assert_eq!(states(&outcome).last().unwrap(), "P1 passed 2");
    let log = outcome.log();
    assert!(log.argv().contains(&format!("--resume={SESSION}")), "{:?}", log.argv());
    let prompts = log.prompts();
    assert!(prompts.len() == 2 && prompts[1].starts_with("# Verification failed\n\nAttempt 2 of 3\n"), "{prompts:?}");
}

#[test]
fn a_session_that_is_lost_gives_way_to_a_new_one_with_the_whole_prompt() {
    let mut lost = error_result(json!({
        "subtype": "error_during_execution", "num_turns": 0, "stop_reason": null, "total_cost_usd": 0,
        "errors": [format!("No conversation found with session ID: {SESSION}")]
    }));
    for key in ["result", "terminal_reason"] {
        lost.as_object_mut().unwrap().remove(key);
    }
    let refusal = format!(
        "case \"$*\" in *--resume=*) prompt; out {}; echo 'No conversation found' >&2; RC=1; listen;; esac",
        quote(&lost.to_string())
    );
    let work = "if [ -e first ]; then touch second; else touch first; fi";
    let script = Script::bare().sh(&refusal).sh(&Script::new().sh(work).exits("Done").body());
    let outcome = run(claude(&one("test -e second"), script), allowed(json!({})));
    outcome.completed();
    let prompts = outcome.log().prompts();
    assert_eq!(prompts.len(), 3, "{prompts:?}");
    assert!(prompts[1].starts_with("# Verification failed\n"), "{}", prompts[1]);
    let at = |text: &str| prompts[2].find(text).unwrap_or_else(|| panic!("no {text}: {}", prompts[2]));
    assert!(at("# Implement Phase 1: Part 1\n") == 0 && at("# Verification failed\n\nAttempt 2 of 3\n") > 0);
}

#[test]
fn the_limit_of_cost_is_for_all_sessions_together() {
    // Each phase is a session, which costs 0.25.
    let text = plan(&[phase(1, &["true"], ""), phase(2, &["true"], "")]);
    let works = || Script::new().sh("echo $$ >>work.txt").exits("Done");
    let start = |limit: f64| {
        let mut start = allowed(json!({}));
        start["max_cost_usd"] = json!(limit);
        start
    };
    let outcome = run(claude(&text, works()), start(0.25));
    let failed = outcome.failed("limit_reached");
    assert_eq!((&failed["usage"]["cost_usd"], outcome.log().prompts().len()), (&json!(0.25), 1));
    assert!(failed["message"].as_str().unwrap().contains("max_cost_usd"), "{failed}");
    assert_eq!(failed["detail"], json!({"limit": "max_cost_usd", "value": 0.25}));
    // The run ends before the next attempt, and no frame reports the beginning of one.
    assert_eq!(states(&outcome).last().unwrap(), "P1 passed 1");
    assert_eq!(report(&outcome)[1]["attempts"], 0);
    assert!(!plan_of(&outcome).contains("in_progress"));
    // The sum that Claude Code reports for a resumed session includes the session's earlier turns.
    let sum = r#"T=$(cat "$D/sum" 2>/dev/null || echo 0); T=$((T + 25)); echo $T >"$D/sum""#;
    let told = Script::bare().sh(sum).sh(&works().body().replace("0.25", r#"'"0.$T"'"#));
    let outcome = run(claude(&one("false"), told), start(0.5));
    assert_eq!(outcome.failed("limit_reached")["usage"]["cost_usd"], 0.5);
    assert_eq!((outcome.log().prompts().len(), &report(&outcome)[0]["attempts"]), (2, &json!(2)));
    // A sum that did not grow is that of the session's last process alone.
    let outcome = run(claude(&one("false"), works()), start(0.5));
    assert_eq!(outcome.failed("limit_reached")["usage"]["cost_usd"], 0.5);
    assert_eq!(outcome.log().prompts().len(), 2);
    // A process that ends at its second prompt leaves the cost of its first turn known.
    let ends = || Script::new().sh("echo $$ >>work.txt").result("Done").sh("recv; leave");
    let outcome = run(claude(&one("false"), ends()), start(0.5));
    assert_eq!(outcome.failed("limit_reached")["usage"]["cost_usd"], 0.5);
    let outcome = run(claude(&text, works()), start(0.375));
    assert_eq!(outcome.completed()["usage"]["cost_usd"], 0.5);
    let argv = outcome.log().argv();
    assert!(argv.iter().any(|arg| arg.ends_with("=0.125")), "the second session gets the rest: {argv:?}");
}

#[test]
fn a_forged_plan_is_put_back_however_the_run_ends() {
    let forge = format!("sed -i 's/- \\[ \\]/- [x]/; s/in_progress/passed/' {PLAN}");
    // The agent forges the file and fails.
    let outcome = run(project(&one("true"), &format!("{forge}; exit 3")).git(), allowed(json!({})));
    outcome.failed("agent_error");
    assert_eq!(outcome.warnings("plan_changed").len(), 1);
    let left = plan_of(&outcome);
    assert!(left.contains("- [ ] T1.1") && left.contains("<!-- spektacular: in_progress attempts=1"), "{left}");
    // A command of the final check removes the tick.
    let text = plan(&[phase(1, &[&format!("sed -i 's/- .x./- [ ]/' {PLAN}")], "")]).replace("- [ ]", "- [x]");
    let outcome = run(project(&text, "echo never").git(), allowed(json!({})));
    assert_eq!(outcome.completed()["workflow"]["complete"], true);
    assert_eq!(plan_of(&outcome), text);
    assert_eq!(outcome.warnings("plan_changed").len(), 1);
}

#[test]
fn the_limits_of_tokens_and_of_tool_calls_are_for_all_sessions_together() {
    let text = plan(&[phase(1, &["true"], ""), phase(2, &["true"], "")]);
    // Each phase is a session with one call of a tool and 22 tokens.
    let works = || Script::new().sh("echo $$ >>work.txt").tool("toolu_1", "Bash", &bash("true"), "").exits("Done");
    for (field, used, less, more) in [("max_tokens", 22.0, 30.0, 44.0), ("max_tool_calls", 1.0, 1.0, 2.0)] {
        let limited = |limit: f64| {
            let mut start = allowed(json!({}));
            start[field] = json!(limit as u64);
            run(claude(&text, works()), start)
        };
        // Nothing is left for the second session.
        let outcome = limited(used);
        assert_eq!(outcome.failed("limit_reached")["detail"], json!({"limit": field, "value": used}));
        assert_eq!((outcome.log().prompts().len(), &report(&outcome)[1]["attempts"]), (1, &json!(0)));
        // The rest of the budget does not cover it.
        let outcome = limited(less);
        let detail = &outcome.failed("limit_reached")["detail"];
        assert_eq!((&detail["limit"], &detail["value"]), (&json!(field), &json!(less)), "the limit of the whole run");
        limited(more).completed();
    }
}

#[test]
fn the_limit_of_time_covers_the_commands_too() {
    let mut seconds = 0.75;
    in_time(|| {
        seconds *= 2.0;
        let mut start = allowed(json!({}));
        start["timeout_s"] = json!(seconds);
        let outcome = run(project(&one("test -e a && touch began && sleep 600"), "touch a").git(), start);
        let failed = outcome.failed("timeout");
        if !outcome.case().work().join("began").exists() {
            return Err(format!("the command did not begin within {seconds} s"));
        }
        assert!(failed["message"].as_str().unwrap().contains("timeout_s"), "{failed}");
        assert_eq!(failed["detail"], json!({"limit": "timeout_s", "value": seconds}), "the limit of the whole run");
        assert_eq!(report(&outcome)[0]["state"], "open");
        Ok(())
    });
}

#[test]
fn a_signal_stops_a_command_and_leaves_the_phase_open() {
    let session = in_command(endless());
    session.signal(Signal::INT);
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["source"], "signal");
    assert_eq!(commands(&outcome), ["P1 test -e a && touch began && sleep 600: cancelled"]);
    assert_eq!(report(&outcome)[0]["state"], "open");
    assert!(plan_of(&outcome).contains("<!-- spektacular: in_progress attempts=1"));
}

#[test]
fn a_person_gets_the_exit_code_of_the_signal() {
    let case = endless();
    let mut command = case.other("work", &["implement", "--allow-verify", "--quiet", "greeting"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = case.work().join("began");
    assert!(crate::support::io::wait_for(case.limit, || began.exists()), "the command does not begin");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let did = child.wait_with_output().unwrap();
    assert_eq!((did.status.code(), did.stdout), (Some(143), Vec::new()));
    assert_eq!(String::from_utf8_lossy(&did.stderr), "spektacular: cancelled\n");
    assert_eq!(case.survivors(), [""; 0]);
}

#[test]
fn the_end_of_stdin_cancels_in_any_part_if_the_flag_is_set() {
    let mut session = in_command(endless().args(&["--on-eof", "cancel"]));
    session.close_stdin();
    let outcome = session.finish();
    outcome.cancelled();
    assert_eq!(commands(&outcome), ["P1 test -e a && touch began && sleep 600: cancelled"]);
}

#[test]
fn a_stop_between_two_parts_starts_no_further_one() {
    type Stops = fn(&mut Session);
    let stops: [(Stops, &str); 2] = [
        (|session| session.signal(Signal::INT), "signal"),
        (
            |session| {
                session.cancel();
            },
            "orchestrator",
        ),
    ];
    for (stop, source) in stops {
        // Before each turn, git lists the changes. Before the turn of phase 2, it does not end by itself.
        let text = plan(&[phase(1, &["test -e a && touch ../log/hold"], ""), phase(2, &["true"], "")]);
        let case = project(&text, "echo $N >a").git();
        let log = case.path("log").display().to_string();
        // These files belong to the plan. The agent's notes are in another folder.
        let notes = case.path("tmp").display().to_string();
        let held = format!(
            "#!/bin/sh\nif [ -e {log}/hold ]; then touch {log}/held; exec sleep 1000; fi\nexec /usr/bin/git \"$@\"\n"
        );
        let mut session = case.env("D", &notes).program("git", &held).spawn();
        session.start(allowed(json!({})));
        let held = session.case.path("log/held");
        session.wait_until("git", || held.exists());
        stop(&mut session);
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["source"], source);
        assert!(!outcome.case().path("tmp/prompt-1").exists(), "phase 2 got an agent");
        assert_eq!(outcome.cancelled()["workflow"]["complete"], false);
        assert_eq!(report(&outcome)[1]["state"], "open");
    }
}

#[test]
fn a_secret_answer_of_one_part_is_hidden_in_all_later_ones() {
    let secret = "a-secret-of-mine-42";
    let marker = r#"<!--QUESTION:{"questions":[{"question":"Which key?"}]}-->"#;
    let text = plan(&[phase(1, &["cat a; false"], "")]);
    // The first turn asks, the second contains the answer, and every later one repeats it.
    let agent = format!("if [ $N = 0 ]; then echo '{marker}'; else echo {secret} $N >a; cat a; fi");
    let mut start = allowed(json!({"attempts": 2}));
    start["interactive"] = json!(true);
    start["progress"] = json!("full");
    let mut session = project(&text, &agent).git().env("MINE", secret).spawn();
    session.start(start);
    let question = session.until("run.question");
    let id = question.text("question_id");
    session.send("run.input", json!({"question_id": id, "value_from": {"env": "MINE"}}));
    let outcome = session.finish();
    let failed = outcome.failed("verification_failed");
    assert_eq!(failed["detail"]["output_tail"], "[redacted] 2\n");
    outcome.never_shows(secret);
    let prompts = prompts(&outcome);
    assert!(prompts[1].contains(secret), "the agent gets the answer");
    assert!(prompts[2].contains("[redacted] 1") && !prompts[2].contains(secret), "{}", prompts[2]);
}

#[test]
fn an_untrusted_prompt_of_the_project_is_ignored_with_a_warning() {
    let case = project(&one("test -e a"), "touch a").git();
    let case = case.file("work/.spektacular/prompts/implement.md", "A stranger's words.\n{{phase}}\n");
    let outcome = run(case, allowed(json!({})));
    outcome.completed();
    assert_eq!(outcome.warnings("untrusted_prompt").len(), 1);
    assert!(prompts(&outcome)[0].starts_with("# Implement Phase 1: Part 1\n"));
    assert!(!prompts(&outcome)[0].contains("stranger"));
}

#[test]
fn a_name_and_a_project_are_locked_while_a_run_works_on_them() {
    let other = ".spektacular/plans/other/plan.md";
    let mut session = in_command(endless().file(&format!("work/{other}"), &one("true")));
    let json = ["--output", "json"];
    let locked = |args: &[&str], target: &str| {
        let did = session.case.run(&[args, &json].concat());
        let end = last_frame(&did.out);
        assert_eq!((did.code, &end["payload"]["detail"]["reason"]), (Some(2), &json!("locked")), "{did:?}");
        assert_eq!(end["payload"]["workflow"]["target"], target);
    };
    locked(&["implement", "--allow-verify", "greeting"], PLAN);
    locked(&["implement", "--allow-verify", "other"], other);
    locked(&["spec", "--name", "greeting", "Greet"], ".spektacular/specs/greeting.md");
    // Like `git clean -fdX`.
    std::fs::remove_dir_all(session.case.work().join(".spektacular/local")).unwrap();
    locked(&["implement", "--allow-verify", "greeting"], PLAN);
    locked(&["implement", "--allow-verify", "other"], other);
    locked(&["spec", "--name", "greeting", "Greet"], ".spektacular/specs/greeting.md");
    // A dry run takes no lock and needs none.
    let shown = session.case.run(&["implement", "--dry-run", "--output", "json", "other"]).json(0);
    assert_eq!(shown["target"], other);
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    let free = outcome.case().run(&["implement", "--allow-verify", "--quiet", "other"]);
    assert_eq!(free.code, Some(0), "a lock ends with its process: {free:?}");
}

#[test]
fn a_dry_run_starts_writes_and_asks_nothing() {
    let text = plan(&[phase(1, &["touch ran"], "").replace("- [ ]", "- [x]"), phase(2, &["touch ran", "true"], "")]);
    let case = project(&text, "touch ran").git().file(&format!("work/{SPEC}"), GOOD);
    let before = case.listing();
    let dry = |args: &[&str]| case.run(&[args, &["--dry-run", "--output", "json"]].concat());
    let shown = dry(&["implement", "greeting"]).json(0);
    assert_eq!((&shown["workflow"], &shown["target"]), (&json!("implement"), &json!(PLAN)));
    assert!(shown["prompt"].as_str().unwrap().starts_with("# Implement Phase 2: Part 2\n"), "{shown}");
    let states: Vec<&Value> = list(&shown["phases"]).iter().map(|phase| &phase["state"]).collect();
    assert_eq!(
        (states, &shown["phases"][1]["verify"]),
        (vec![&json!("done"), &json!("open")], &json!(["touch ran", "true"]))
    );
    let shown = dry(&["plan", "login"]).json(0);
    assert_eq!(shown["target"], ".spektacular/plans/login/plan.md");
    assert!(shown["prompt"].as_str().unwrap().ends_with(GOOD), "{shown}");
    let shown = dry(&["spec", "--name", "new", "Greet"]).json(0);
    assert_eq!((&shown["target"], &shown["agent"]["agent"]), (&json!(".spektacular/specs/new.md"), &json!("cmd")));
    let person = case.run(&["implement", "--dry-run", "greeting"]);
    assert_eq!(person.code, Some(0), "{person:?}");
    for line in ["phase        P1 (done): Part 1", "phase        P2 (open): Part 2", "             touch ran"] {
        assert!(person.out.lines().any(|shown| shown == line), "no {line}: {}", person.out);
    }
    // A dry run fails like a real run.
    for args in [&["implement", "absent"][..], &["plan", "absent"], &["spec", "--name", "login", "Log in"]] {
        assert_eq!(dry(args).code, Some(2), "{args:?}");
    }
    assert_eq!(case.listing(), before);
    assert_eq!(read(&case.work().join(PLAN)), text);
}

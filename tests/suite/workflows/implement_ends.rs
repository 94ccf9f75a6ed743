//! Tests of `implement`: consent, refusals, limits, commits, and continuing after a failure, a cancel or a kill.

use crate::support;
use crate::workflows::implement::{PLAN, allowed, commands, phase, plan, plan_of, project, prompts, report, states};

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Case, in_time, io, limit, list, options, procs, run};

fn one(commands: &[&str]) -> String {
    plan(&[phase(1, commands, "")])
}

#[test]
fn consent_is_asked_once_for_all_commands() {
    let text = plan(&[phase(1, &["test -e a"], ""), phase(2, &["test -e n", "true"], "")]);
    let agent = "case $P in *'# Implement Phase 2'*) echo $N >n;; *) touch a;; esac";
    let mut session = project(&text, agent).git().spawn();
    session.start(json!({"prompt": "greeting"}));
    let question = session.until("run.question");
    let payload = question.payload().clone();
    assert_eq!(
        (&payload["purpose"], &payload["kind"], &payload["header"]),
        (&json!("permission"), &json!("select"), &json!("Verification"))
    );
    assert_eq!((options(&payload), &payload["default"]), (vec!["allow_once", "deny"], &json!("deny")));
    let subject = &payload["subject"];
    assert_eq!(
        (&subject["category"], &subject["detail"]),
        (&json!("execute"), &json!("P1: test -e a\nP2: test -e n\nP2: true"))
    );
    assert_eq!(subject["locations"], json!([{"path": PLAN}]));
    assert!(!session.log().text("prompt-0").contains("Phase"), "no agent has started");
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.of_type("run.question").len(), 1);
}

#[test]
fn no_command_runs_after_a_denial_of_any_kind() {
    for answer in [json!({"value": "deny"}), json!({"declined": true}), Value::Null] {
        let case = project(&one(&["touch ran"]), "touch a").git();
        let mut session = case.spawn();
        let timeout = if answer.is_null() { json!(0.3) } else { json!(60) };
        session.start(json!({"prompt": "greeting", "question_timeout_s": timeout}));
        let question = session.until("run.question");
        if let Value::Object(mut fields) = answer {
            fields.insert("question_id".into(), json!(question.text("question_id")));
            session.send("run.input", Value::Object(fields));
        }
        let outcome = session.finish();
        let failed = outcome.failed("question_declined");
        assert_eq!((&failed["workflow"]["complete"], list(&failed["workflow"]["phases"]).len()), (&json!(false), 1));
        assert_eq!(prompts(&outcome).len(), 0);
        assert!(!outcome.case().work().join("ran").exists());
        assert_eq!(plan_of(&outcome), one(&["touch ran"]));
    }
}

#[test]
fn a_policy_decides_about_consent_without_a_question() {
    for (start, passes) in [
        (json!({"prompt": "greeting", "permissions": {"execute": "allow"}, "interactive": false}), true),
        (json!({"prompt": "greeting", "interactive": false}), false),
        (json!({"prompt": "greeting", "permissions": "deny"}), false),
        (json!({"prompt": "greeting", "permissions": "deny", "workflow": {"allow_verify": true}}), true),
    ] {
        let outcome = run(project(&one(&["test -e a"]), "touch a").git(), start.clone());
        assert_eq!(outcome.of_type("run.question").len(), 0, "{start}");
        if passes {
            outcome.completed();
            assert_eq!(outcome.resolutions(), ["policy"]);
            continue;
        }
        let failed = outcome.failed("invalid_request");
        assert_eq!(failed["detail"]["reason"], "consent");
        assert!(failed["message"].as_str().unwrap().contains("--allow-verify"));
        assert_eq!(failed["detail"]["commands"], "P1: test -e a");
        assert_eq!(prompts(&outcome).len(), 0);
    }
}

#[test]
fn a_person_sees_the_commands_that_need_consent() {
    let text = plan(&[phase(1, &["test -e max_turns"], ""), phase(2, &["test -e a", "true"], "")]);
    let did = project(&text, "touch a").git().run(&["implement", "--headless", "greeting"]);
    assert_eq!(did.code, Some(2), "{did:?}");
    assert!(did.err.contains("\n  P1: test -e max_turns\n  P2: test -e a\n  P2: true\n"), "{did:?}");
}

#[test]
fn a_plan_that_breaks_a_rule_or_is_missing_is_refused() {
    let text = one(&["true"]).replace("T1.1", "T2.1");
    let outcome = run(project(&text, "touch a"), allowed(json!({})));
    let failed = outcome.failed("invalid_request");
    assert_eq!(failed["detail"]["reason"], "invalid");
    assert_eq!(failed["workflow"]["violations"][0]["rule"], "task-id");
    assert_eq!(failed["workflow"]["violations"][0]["line"], 8);
    assert_eq!(failed["workflow"]["tasks"], 1);
    assert_eq!(plan_of(&outcome), text);
    for (prompt, reason) in [("absent", "not_found"), ("/etc/hosts", "outside"), ("UPPER", "invalid")] {
        let outcome = run(project(&one(&["true"]), "touch a"), json!({"prompt": prompt}));
        let failed = outcome.failed("invalid_request");
        assert_eq!(failed["detail"]["reason"], reason, "{prompt}");
        assert_eq!((&failed["workflow"]["name"], &failed["workflow"]["target"]), (&json!("implement"), &Value::Null));
        outcome.never_shows("UPPER");
    }
    let outcome = run(project(&one(&["true"]), "touch a"), allowed(json!({"attempts": 11})));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("workflow.attempts"));
}

#[test]
fn a_command_has_the_agents_environment_no_stdin_and_both_outputs_in_order() {
    let check = r#"test "$EXTRA" = 1 && ! read x; echo out; echo err >&2; echo "$0" again; exit 4"#;
    let mut start = allowed(json!({"attempts": 1}));
    start["env"] = json!({"EXTRA": "1"});
    start["progress"] = json!("full");
    let outcome = run(project(&one(&[check]), "touch a").git(), start);
    let failed = outcome.failed("verification_failed");
    assert_eq!(failed["detail"]["output_tail"], "out\nerr\n/bin/sh again\n");
    let tools = outcome.progress("tool");
    let tool = tools.last().unwrap().payload();
    assert_eq!(
        (&tool["category"], &tool["phase"], &tool["output"]),
        (&json!("execute"), &json!("P1"), &json!("out\nerr\n/bin/sh again\n"))
    );
}

#[test]
fn a_secret_in_the_output_is_redacted_everywhere() {
    let secret = "hunter2-Zq7731/x+y";
    let mut start = allowed(json!({"attempts": 2}));
    start["secrets"] = json!([secret]);
    start["progress"] = json!("full");
    start["env"] = json!({"S": secret});
    let outcome = run(project(&one(&["echo \"key $S\"; false"]), "echo $N >a").git(), start);
    assert_eq!(outcome.failed("verification_failed")["detail"]["output_tail"], "key [redacted]\n");
    outcome.never_shows(secret);
    assert!(prompts(&outcome)[1].contains("key [redacted]"));
}

#[test]
fn a_command_that_takes_too_long_fails_and_its_processes_are_stopped() {
    let mut seconds = 0.25;
    in_time(|| {
        seconds *= 2.0;
        let mut start = allowed(json!({"attempts": 1, "verify_timeout_s": seconds}));
        start["progress"] = json!("full");
        let outcome = run(project(&one(&["echo begun; sleep 600"]), "touch a").git(), start);
        let detail = &outcome.failed("verification_failed")["detail"];
        assert_eq!((&detail["timed_out"], &detail["exit_code"]), (&json!(true), &Value::Null));
        assert_eq!(outcome.progress("tool").last().unwrap().text("state"), "failed");
        let said = detail["output_tail"].as_str().unwrap();
        if said == "begun\n" { Ok(()) } else { Err(format!("{said:?} in {seconds} s")) }
    });
    // A command that has ended leaves no process behind.
    let outcome = run(project(&one(&["sleep 600 & echo $! >pid"]), "touch a").git(), allowed(json!({})));
    outcome.completed();
    let pid = support::read(&outcome.case().work().join("pid"));
    assert!(io::wait_for(limit(), || !procs::alive(pid.trim().parse().unwrap())), "{pid} is alive");
}

#[test]
fn the_limit_of_a_phase_covers_its_commands() {
    let mut seconds = 0.75;
    in_time(|| {
        seconds *= 2.0;
        let start = allowed(json!({"phase_timeout_s": seconds}));
        let outcome = run(project(&one(&["test -e a && touch began && sleep 600"]), "touch a").git(), start);
        let failed = outcome.failed("timeout");
        if !outcome.case().work().join("began").exists() {
            return Err(format!("the command did not begin within {seconds} s"));
        }
        assert!(failed["message"].as_str().unwrap().contains("workflow.phase_timeout_s"));
        let detail = &failed["detail"];
        let told = [&detail["limit"], &detail["value"], &detail["phase"], &detail["attempt"]];
        assert_eq!(told, [&json!("phase_timeout_s"), &json!(seconds), &json!("P1"), &json!(1)]);
        assert!(plan_of(&outcome).contains("<!-- spektacular: in_progress attempts=1"));
        assert_eq!(report(&outcome)[0]["state"], "open");
        Ok(())
    });
}

#[test]
fn an_agent_that_fails_ends_the_run_with_its_code() {
    let outcome = run(project(&one(&["true"]), "exit 3").git(), allowed(json!({})));
    outcome.failed("agent_error");
    assert_eq!(states(&outcome), ["P1 started 1"]);
    assert!(plan_of(&outcome).contains("in_progress attempts=1"));
}

#[test]
fn a_killed_run_continues_at_its_phase_and_its_command_is_stopped() {
    let text = plan(&[
        phase(1, &["test -e 1"], ""),
        phase(2, &["test -e go || { test -e 2 && echo $$ >pid && sleep 600; }"], ""),
    ]);
    let agent = "case $P in *'# Implement Phase 1'*) touch 1;; *) touch 2;; esac";
    let mut session = project(&text, agent).git().spawn();
    session.start(allowed(json!({})));
    let pid = session.case.work().join("pid");
    session.wait_until("the command", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let command = support::read(&pid).trim().parse().unwrap();
    session.signal(Signal::KILL);
    session.wait_until("the command's end", || !procs::alive(command));
    let outcome = session.finish_unchecked();
    let case = outcome.case();
    assert!(plan_of(&outcome).contains("<!-- spektacular: in_progress attempts=1"));
    fs::write(case.work().join("go"), "").unwrap();
    let next = case.run(&["implement", "--output", "json", "--allow-verify", "greeting"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    let end: Value = serde_json::from_str(next.out.lines().last().unwrap()).unwrap();
    let phases = list(&end["payload"]["workflow"]["phases"]);
    assert_eq!((&phases[0]["state"], &phases[1]["state"]), (&json!("done"), &json!("passed")));
    let prompt = support::read(&case.path("log/prompt-2"));
    assert!(prompt.starts_with("# Implement Phase 2: ") && prompt.contains("\n# Earlier attempt\n"));
}

#[test]
fn a_cancel_stops_a_command_and_leaves_the_phase_open() {
    let mut session = project(&one(&["test -e a && touch began && sleep 600"]), "touch a").git().spawn();
    session.start(allowed(json!({})));
    let began = session.case.work().join("began");
    session.wait_until("the command", || began.exists());
    session.cancel();
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["workflow"]["phases"][0]["state"], "open");
    assert!(plan_of(&outcome).contains("in_progress attempts=1"));
    assert_eq!(commands(&outcome), ["P1 test -e a && touch began && sleep 600: cancelled"]);
}

#[test]
fn on_a_phase_that_an_earlier_run_began_the_commands_alone_decide() {
    let text = one(&["test -e a"])
        .replace("Part 1\n", "Part 1\n<!-- spektacular: in_progress attempts=1 at=2026-02-20T10:00:00.000Z -->\n");
    let outcome = run(project(&text, "echo nothing").file("work/a", "").git(), allowed(json!({})));
    outcome.completed();
    assert_eq!(states(&outcome), ["P1 started 1", "P1 verifying 1", "P1 passed 1"]);
}

#[track_caller]
fn git(case: &Case, args: &[&str]) -> String {
    let mut git = Command::new("/usr/bin/git");
    let output = git.args(args).current_dir(case.work()).env_clear().env("HOME", case.path("home")).output().unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A project whose work tree is clean, except for spektacular's own folder.
fn repository(text: &str, agent: &str) -> Case {
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    names.iter().fold(project(text, agent).git(), |case, name| case.env(name, "t@example.org"))
}

#[test]
fn each_phase_that_passes_becomes_a_commit() {
    let text = plan(&[phase(1, &["test -e 1"], ""), phase(2, &["test -e 2"], "")]);
    let agent = "case $P in *'# Implement Phase 1'*) touch 1;; *) touch 2; rm old.txt;; esac";
    let outcome = run(repository(&text, agent), allowed(json!({"commit": true})));
    outcome.completed();
    let case = outcome.case();
    assert_eq!(git(case, &["log", "--format=%s", "-2"]), "greeting: phase 2, Part 2\ngreeting: phase 1, Part 1\n");
    assert_eq!(git(case, &["log", "-1", "--format=%b"]).trim_end(), format!("Plan: {PLAN}\nTasks: T2.1"));
    assert_eq!(git(case, &["show", "--format=", "--name-only", "HEAD"]), format!("{PLAN}\n2\nold.txt\n"));
    let head = git(case, &["rev-parse", "HEAD"]);
    assert_eq!(report(&outcome)[1]["commit"], head.trim());
    assert_eq!(git(case, &["status", "--porcelain", "--", "."]), "");
    let template = json!({"commit": true, "commit_message": "feat({plan}): {title} ({n}: {tasks})"});
    let outcome = run(repository(&text, agent), allowed(template));
    outcome.completed();
    assert_eq!(git(outcome.case(), &["log", "--format=%B", "-1"]).trim_end(), "feat(greeting): Part 2 (2: T2.1)");
}

#[test]
fn a_git_in_a_relative_folder_of_the_path_is_not_run() {
    let case = project(&one(&["test -e 1"]), "touch 1").script("work/git", "touch ../ran; exec /usr/bin/git \"$@\"");
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    let case = names.iter().fold(case.git(), |case, name| case.env(name, "t@example.org"));
    let path = format!(":.:{}:/usr/bin:/bin", case.path("bin").display());
    let outcome = run(case.env("PATH", &path), allowed(json!({"commit": true})));
    outcome.completed();
    assert_eq!(git(outcome.case(), &["log", "--format=%s", "-1"]), "greeting: phase 1, Part 1\n");
    assert!(!outcome.case().path("ran").exists(), "a program of the project was run in place of git");
}

#[test]
fn a_dirty_work_tree_needs_consent_and_its_changes_stay_out() {
    let agent = "touch new; echo agent >>old.txt";
    let dirty = || repository(&one(&["true"]), agent).file("work/old.txt", "mine\n");
    let outcome = run(dirty(), allowed(json!({"commit": true})));
    let failed = outcome.failed("invalid_request");
    assert_eq!(failed["detail"]["reason"], "dirty");
    assert!(failed["message"].as_str().unwrap().contains("--allow-dirty"));
    let outcome = run(dirty(), allowed(json!({"commit": true, "allow_dirty": true})));
    outcome.completed();
    assert_eq!(outcome.warnings("not_committed").len(), 1);
    assert_eq!(git(outcome.case(), &["status", "--porcelain"]), " M old.txt\n");
    let outcome = run(project(&one(&["true"]), agent), allowed(json!({"commit": true})));
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "no_git");
}

#[test]
fn a_commit_that_a_hook_refuses_ends_the_run_although_the_phase_passed() {
    let text = plan(&[phase(1, &["true"], ""), phase(2, &["true"], "")]);
    let case = repository(&text, "touch a").script("work/.git/hooks/pre-commit", "echo not today >&2; exit 1");
    let outcome = run(case, allowed(json!({"commit": true})));
    let failed = outcome.failed("commit_failed");
    assert!(failed["detail"]["agent_message"].as_str().unwrap().contains("not today"), "{failed}");
    let states: Vec<Value> = report(&outcome).iter().map(|phase| phase["state"].clone()).collect();
    assert_eq!(states, ["passed", "open"]);
    assert!(plan_of(&outcome).contains("- [x] T1.1"));
}

#[test]
fn a_person_sees_phases_commands_and_a_table() {
    let text = plan(&[phase(1, &["grep good a"], ""), phase(2, &["test -e b"], "")]);
    let agent = "case $P in *'# Verification failed'*) echo good >a;; *'# Implement Phase 1'*) echo bad >a;; *) touch b;; esac; echo I did it";
    let case = project(&text, agent).git();
    let did = case.run(&["implement", "--allow-verify", "greeting"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    assert!(did.out.ends_with(&format!("{PLAN}: 2 of 2 phases passed\n")) && did.out.contains("I did it\n"), "{did:?}");
    for line in ["Phase 1 of 2: Part 1", "Phase 2 of 2: Part 2"] {
        assert_eq!(did.err.lines().filter(|shown| *shown == line).count(), 1, "{}", did.err);
    }
    let has = |start: &str| did.err.lines().any(|line| line.trim_start().starts_with(start));
    assert!(has("failed grep good a (") && has("passed grep good a (") && has("passed test -e b ("), "{}", did.err);
    assert!(has("P1  passed  2 attempts") && has("P2  passed   1 attempt"), "{}", did.err);
    assert!(did.err.lines().all(|line| line.chars().count() <= 80), "{}", did.err);
    let quiet = case.run(&["implement", "--allow-verify", "--quiet", "greeting"]);
    assert_eq!(quiet.out, format!("{PLAN}: 2 of 2 phases passed\n"));
    assert_eq!(quiet.err, "");
}

#[test]
fn a_forged_plan_is_put_back_even_if_nothing_can_be_kept() {
    let old = ".spektacular/local/old";
    let agent = format!(
        "touch a; rm -rf {old}; ln -s /tmp {old}; sed -i 's/- \\[ \\]/- [x]/; s/^false/true/' {PLAN}; echo done"
    );
    let outcome = run(project(&one(&["false"]), &agent).git(), allowed(json!({"attempts": 1})));
    outcome.failed("verification_failed");
    let plan = plan_of(&outcome);
    assert!(plan.contains("- [ ] T1.1") && plan.contains("\nfalse\n") && plan.contains("failed attempts=1"), "{plan}");
    let warnings = outcome.warnings("plan_changed");
    assert!(warnings[0].text("text").ends_with("the changed version could not be kept"), "{}", warnings[0].raw);
}

#[test]
fn a_plan_behind_a_link_is_neither_read_nor_written() {
    let folder = Path::new(PLAN).parent().unwrap().display().to_string();
    let link = format!("mv {folder} elsewhere; ln -s \"$PWD/elsewhere\" {folder}");
    let forge = "sed -i 's/- \\[ \\]/- [x]/; s/^false/true/' elsewhere/plan.md";
    for block in ["", "rm -rf .spektacular/local/old; touch .spektacular/local/old;"] {
        let agent = format!("touch a; {block} {link}; {forge}; echo done");
        let outcome = run(project(&one(&["false"]), &agent).git(), allowed(json!({"attempts": 1})));
        let end = outcome.failed("resource_exhausted");
        let message = end["message"].as_str().unwrap();
        assert!(message.contains(PLAN) && message.contains("restore the file"), "{block}: {message}");
        assert_eq!(end["workflow"]["complete"], false, "{block}");
        let forged = support::read(&outcome.case().path("work/elsewhere/plan.md"));
        assert!(forged.contains("- [x] T1.1") && forged.contains("\ntrue\n"), "{block}: {forged}");
    }
}

#[test]
fn a_daemon_of_a_command_is_gone_when_the_next_one_runs() {
    let commands = [
        "setsid sh -c 'echo $$ >pid; exec sleep 600' & while ! test -s pid; do sleep 0.02; done",
        "test ! -e /proc/$(cat pid)",
    ];
    let outcome = run(project(&one(&commands), "touch a").git(), allowed(json!({"attempts": 1})));
    outcome.completed();
}

#[test]
fn one_long_line_leaves_as_much_output_as_short_ones() {
    let check = "head -c 20000 /dev/zero | tr '\\0' x; echo; echo 'make: *** [test] Error 1'; exit 7";
    let outcome = run(project(&one(&[check]), "touch a").git(), allowed(json!({"attempts": 2})));
    let failed = outcome.failed("verification_failed");
    let tail = failed["detail"]["output_tail"].as_str().unwrap();
    assert!(tail.len() == 8 << 10 && tail.ends_with("x\nmake: *** [test] Error 1\n"), "{} bytes", tail.len());
    let retry = &prompts(&outcome)[1];
    assert!(retry.contains(&"x".repeat(16_000)) && retry.contains("make: *** [test] Error 1"), "{} bytes", retry.len());
}

#[test]
fn a_command_that_does_not_exist_costs_two_attempts_and_is_named() {
    let outcome =
        run(project(&one(&["test -e a && no-such-command --all"]), "touch a").git(), allowed(json!({"attempts": 5})));
    let failed = outcome.failed("verification_failed");
    assert_eq!((&failed["detail"]["attempt"], &failed["detail"]["exit_code"]), (&json!(2), &json!(127)));
    assert!(failed["message"].as_str().unwrap().contains("no-such-command --all"), "{failed}");
    assert_eq!(prompts(&outcome).len(), 2);
}

#[test]
fn consent_covers_only_what_one_question_shows_whole() {
    let long = |count: usize, bytes: usize| {
        let command = |n: usize| format!("true {n} {}", "x".repeat(bytes));
        let phases: Vec<String> = (0..count.div_ceil(20))
            .map(|at| {
                let all: Vec<String> = (at * 20..count.min(at * 20 + 20)).map(command).collect();
                phase(at as u32 + 1, &all.iter().map(String::as_str).collect::<Vec<_>>(), "")
            })
            .collect();
        plan(&phases)
    };
    // 50 commands of 1,000 bytes are shown whole.
    let mut session = project(&long(50, 1000), "touch a").git().spawn();
    session.start(json!({"prompt": "greeting"}));
    let question = session.until("run.question");
    let detail = question.payload()["subject"]["detail"].as_str().unwrap().to_owned();
    assert_eq!((detail.lines().count(), &question.payload()["truncated"]), (50, &Value::Null));
    assert!(detail.lines().all(|line| line.len() > 1000));
    session.answer(&question, json!("deny"));
    session.finish().failed("question_declined");
    // Neither a small frame nor many commands may hide some of them.
    for (text, frame) in [(long(40, 500), 16 << 10), (long(80, 1000), 256 << 10)] {
        let start = json!({"prompt": "greeting", "max_frame_bytes": frame});
        let outcome = run(project(&text, "touch a").git(), start);
        let failed = outcome.failed("invalid_request");
        assert_eq!(failed["detail"]["reason"], "consent", "{failed}");
        assert_eq!(prompts(&outcome).len(), 0);
    }
}

#[test]
fn a_command_that_redaction_would_change_is_refused() {
    for command in [
        "true Authorization: x;touch ran;true",
        "true -----BEGIN PRIVATE KEY----- ;touch ran",
        "curl -u hunter2-Zq7731/x+y a",
    ] {
        let start = json!({"prompt": "greeting", "secrets": ["hunter2-Zq7731/x+y"]});
        let outcome = run(project(&one(&[command]), "touch a").git(), start);
        let failed = outcome.failed("invalid_request");
        assert_eq!(failed["detail"]["reason"], "consent", "{failed}");
        assert!(failed["message"].as_str().unwrap().contains("secret"), "{failed}");
        assert!(!outcome.case().work().join("ran").exists());
    }
    // Only the list of the commands holds this secret.
    let start = json!({"prompt": "greeting", "secrets": ["ab-Zq\nP1: cd-Xw"]});
    let outcome = run(project(&one(&["echo ab-Zq", "cd-Xw"]), "touch a").git(), start);
    assert_eq!(outcome.failed("invalid_request")["detail"]["reason"], "consent");
}

#[test]
fn a_commit_is_made_in_this_repository_whatever_the_caller_says() {
    let case = repository(&one(&["test -e made"]), "touch made");
    let other = case.path("elsewhere");
    fs::create_dir_all(&other).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&other).status().unwrap().success());
    let git_dir = other.join(".git").display().to_string();
    let (tree, index) = (other.display().to_string(), other.join("index").display().to_string());
    let variables = [("GIT_DIR", &git_dir), ("GIT_WORK_TREE", &tree), ("GIT_INDEX_FILE", &index)];
    let case = variables.iter().fold(case, |case, (name, value)| case.env(name, value));
    let mut start = allowed(json!({"commit": true}));
    start["env"] = json!(BTreeMap::from(variables));
    let outcome = run(case, start);
    outcome.completed();
    let log = |at: &Path| {
        let output = Command::new("git").args(["log", "--format=%s"]).current_dir(at).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(log(&outcome.case().work()).starts_with("greeting: phase 1, "));
    assert_eq!(log(&other), "");
}

#[test]
fn a_hook_that_waits_ends_at_the_limit_with_nothing_staged() {
    use std::os::unix::fs::PermissionsExt;
    let case = repository(&one(&["test -e made"]), "touch made");
    let hook = case.work().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = run(case, allowed(json!({"commit": true, "verify_timeout_s": 3})));
    let failed = outcome.failed("commit_failed");
    assert!(failed["message"].as_str().unwrap().contains("verify_timeout_s"), "{failed}");
    let staged =
        Command::new("git").args(["diff", "--cached", "--name-only"]).current_dir(outcome.case().work()).output();
    assert_eq!(String::from_utf8(staged.unwrap().stdout).unwrap(), "");
}

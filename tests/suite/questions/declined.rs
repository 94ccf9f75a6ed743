//! Tests of a question that the user declines: the agent is told and continues. If it cannot continue, the run reports
//! that.

use crate::support;

use serde_json::{Value, json};
use support::agent::{Script, question, quote};
use support::{Case, Outcome};

/// An ACP agent that asks for one word, reads the answer, and runs `then`.
fn acp(required: &str, then: &str) -> Case {
    let form = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"sessionId": "s",
        "mode": "form", "message": "Which word?", "requestedSchema": {"type": "object",
        "properties": {"word": {"type": "string", "title": "Word"}}, "required": [required]}}});
    let script = format!(
        "#!/bin/sh\nrecv() {{ IFS= read -r line || exit 0; }}\nout() {{ printf '%s\\n' \"$1\"; }}\n\
         recv; out '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}}}'\n\
         recv; out '{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"sessionId\":\"s\"}}}}'\n\
         recv; out {}\nrecv\nprintf '%s\\n' \"$line\" >&2\n{then}\nwhile recv; do :; done\n",
        quote(&form.to_string())
    );
    Case::new().program("opencode", &script)
}

/// The end of an ACP agent's turn.
fn ends(reason: &str) -> String {
    format!("out '{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"stopReason\":\"{reason}\"}}}}'")
}

/// A Claude agent that asks one question and then runs `then`.
fn claude(then: &str) -> Case {
    let ask = json!({"questions": [question("Which?", false)]});
    Case::with(Script::new().ask("req-1", "toolu_1", "AskUserQuestion", ask).sh(then))
}

/// A command whose first process asks through a marker, and whose second process runs `then`.
fn lines(then: &str) -> Case {
    let marker = r#"<!--QUESTION:{"questions":[{"question":"Which?"}]}-->"#;
    let config = json!({"agents": {"cmd": {"driver": "lines", "command": "sh", "args": ["-c", "printf '%s\\n' \"$0\"", marker],
        "resume_args": ["-c", then]}}});
    Case::new().file("home/.config/spektacular/config.json", &config.to_string())
}

/// Runs the agent, declines or answers its question, and lets it end.
fn after(case: Case, agent: &str, said: Value) -> Outcome {
    let mut session = case.spawn();
    session.start(json!({"agent": agent}));
    let asked = session.until("run.question");
    let mut payload = said;
    payload["question_id"] = json!(asked.text("question_id"));
    session.send("run.input", payload);
    session.finish()
}

fn declined(case: Case, agent: &str) -> Outcome {
    after(case, agent, json!({"declined": true}))
}

#[test]
fn an_agent_that_stops_after_a_declined_question_fails_the_run() {
    for (case, agent) in [
        (lines("cat >/dev/null; exit 3"), "cmd"),
        (claude("exit 1"), "claude"),
        (claude("exit 0"), "claude"),
        (acp("word", &ends("cancelled")), "opencode"),
        (acp("word", "exit 0"), "opencode"),
    ] {
        let outcome = declined(case, agent);
        let payload = outcome.failed("question_declined");
        assert_eq!(outcome.exit_code, Some(6), "{agent}");
        assert_eq!(payload["retryable"], false);
        assert_eq!(outcome.resolutions(), ["declined"]);
    }
}

#[test]
fn an_unanswered_question_that_counts_as_declined_has_the_same_effect() {
    let mut session = claude("exit 1").spawn();
    session.start(json!({"on_question_timeout": "continue", "question_timeout_s": 0.2}));
    let outcome = session.finish();
    outcome.failed("question_declined");
    assert_eq!(outcome.resolutions(), ["timeout"]);
}

#[test]
fn an_agent_that_continues_does_not_count_as_blocked() {
    let said = Script::bare().say("msg_1", "Then without.").body();
    declined(claude(&Script::bare().say("msg_1", "Well.").done("Well.").body()), "claude").completed();
    declined(claude(&format!("{said}exit 1")), "claude").failed("agent_exited");
    declined(lines("echo Then without.; exit 3"), "cmd").failed("agent_error");
    declined(lines("exit 0"), "cmd").completed();
}

#[test]
fn another_failure_takes_precedence() {
    // A signal killed the agent.
    declined(claude("kill -KILL $$"), "claude").failed("agent_exited");
    declined(lines("kill -KILL $$"), "cmd").failed("agent_exited");
    // The question was answered.
    after(claude("exit 1"), "claude", json!({"value": "Auth"})).failed("agent_exited");
    after(acp("word", &ends("cancelled")), "opencode", json!({"value": "x"})).failed("agent_error");
    // The question needed no answer.
    declined(acp("", &ends("cancelled")), "opencode").failed("agent_error");
    // A permission has a default: to deny. The agent is told about a denial, not about an open question.
    let bash = Script::new().ask("req-1", "toolu_1", "Bash", json!({"command": "ls"})).sh("exit 1");
    declined(Case::with(bash), "claude").failed("agent_exited");
    // The agent reports the failure itself.
    declined(acp("word", &ends("refusal")), "opencode").failed("refused");
}

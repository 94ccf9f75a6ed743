//! `agents verify`, with an agent that never asks.

use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::Case;

/// An ACP agent that gets a command from its model, and runs it at once.
const HASTY: &str = r#"#!/bin/bash
[ "$1" != --version ] || { echo 1.0.102; exit; }
# It starts no servers: without its end, the run would wait for one.
all=$*
! grep -q badges "${all##*@}" 2>/dev/null || exit 3
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
model() {
    local host=${COPILOT_PROVIDER_BASE_URL#http://} body
    body='{"stream":true,"tools":[{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{}}}}}]}'
    host=${host%%/*}
    exec 3<>"/dev/tcp/${host%:*}/${host#*:}"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n' "${#body}" "$body" >&3
    cat <&3
}
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) result '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result '{"sessionId":"s"}' ;;
    *'"session/set_'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Unknown method"}}\n' "$id" ;;
    *'"session/prompt"'*)
        answer=$(model)
        case $answer in
        *'touch asked.txt'*)
            touch asked.txt
            update '{"sessionUpdate":"tool_call","toolCallId":"1","title":"touch asked.txt","kind":"execute","status":"completed"}'
            update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"That was it."}}' ;;
        *'Good day.'*) update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Good day."}}' ;;
        esac
        result '{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}' ;;
    esac
done
"#;

pub(crate) fn verify_hasty(env: &[(&str, &str)]) -> Output {
    let case = Case::new().program("copilot", HASTY);
    let case = env.iter().fold(case, |case, (name, value)| case.env(name, value));
    let mut verify = case.other("work", &["agents", "verify", "copilot", "--output", "json"]);
    let output = verify.stdin(Stdio::null()).output().unwrap();
    assert_eq!(case.survivors(), [""; 0]);
    assert!(case.path("tmp").read_dir().unwrap().next().is_none(), "temporary files are left");
    output
}

#[test]
fn an_agent_that_acts_without_asking_is_found() {
    let output = verify_hasty(&[]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, rows) = lines.split_last().unwrap();
    let found = |name: &str| rows.iter().find(|row| row["row"] == name).map(|row| row["found"].as_str().unwrap());
    assert_eq!(found("hello"), Some("kept"), "{rows:#?}");
    assert_eq!(found("allow"), Some("not_kept"));
    assert_eq!((found("deny"), found("read-only")), (Some("acted"), Some("acted")));
    assert_eq!((found("write"), found("mcp")), (Some("not_kept"), Some("not_kept")));
    assert_eq!(summary["passed"], false);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_agent_that_cannot_be_verified_is_refused_with_the_reason() {
    let cases =
        [("demo", 2, "cannot be verified offline"), ("kilo", 4, "is not available"), ("kiloo", 2, "unknown agent")];
    for (agent, code, why) in cases {
        let case = Case::new();
        let output = case.other("work", &["agents", "verify", agent]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.to_lowercase().contains(why), "{stderr}");
    }
}

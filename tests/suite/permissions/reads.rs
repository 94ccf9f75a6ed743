//! Tests that reading and searching in the run's directories needs no permission, unless the policy says so.

use super::{CWD, Outcome, Speaker, Talk, Told, Wish, acp_hears, acp_request, by_policy, claude_hears, kind, speakers};
use serde_json::{Value, json};
use spektacular::protocol::words::Category;

const INSIDE: &str = "/home/user/project/src/a.txt";
const OUTSIDE: &str = "/home/user/other/a.txt";

fn claude(wish: Wish, number: usize) -> Vec<Value> {
    let (name, input) = match wish.category {
        Category::Read => ("Read", json!({"file_path": wish.input})),
        Category::Search => ("Grep", json!({"pattern": "x", "path": wish.input})),
        Category::Edit => ("Write", json!({"file_path": wish.input, "content": "x"})),
        _ => ("Bash", json!({"command": "make"})),
    };
    let request =
        json!({"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": format!("c{number}")});
    vec![json!({"type": "control_request", "request_id": format!("r{number}"), "request": request})]
}

fn acp(wish: Wish, number: usize) -> Vec<Value> {
    let call = json!({"toolCallId": format!("call_{number}"), "title": "make", "kind": kind(wish.category),
        "locations": [{"path": wish.input}], "rawInput": {"command": "make"}});
    vec![acp_request(number, &call)]
}

/// Each agent whose requests name files.
fn readers() -> Vec<Speaker> {
    let of = |speaker: Speaker| match speaker.agent {
        "claude" => Speaker { asks: claude, hears: claude_hears, ..speaker },
        _ => Speaker { asks: acp, hears: acp_hears, ..speaker },
    };
    speakers().into_iter().filter(|speaker| speaker.agent != "codex").map(of).collect()
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Allowed,
    Asked,
    Denied,
}

fn outcome(wanted: Wanted, interactive: bool) -> Outcome {
    let asked = |told, resolution: &str| Outcome { asked: interactive, told, resolution: resolution.into() };
    match (wanted, interactive) {
        (Wanted::Allowed, _) => by_policy(Told::Once),
        (Wanted::Denied, _) => by_policy(Told::Denied),
        (Wanted::Asked, true) => asked(Told::Once, "answered"),
        (Wanted::Asked, false) => asked(Told::Denied, "headless"),
    }
}

/// Of each policy: a read and a search inside, a read outside, an edit inside, and a command.
#[test]
fn only_what_reads_inside_needs_no_permission() {
    use Wanted::{Allowed, Asked, Denied};
    let policies = [
        (Value::Null, [Allowed, Allowed, Asked, Asked, Asked]),
        (json!("ask"), [Allowed, Allowed, Asked, Asked, Asked]),
        (json!("allow"), [Allowed; 5]),
        (json!("deny"), [Denied; 5]),
        (json!({"*": "deny"}), [Denied; 5]),
        (json!({"read": "ask"}), [Asked; 5]),
        (json!({"search": "deny", "*": "allow"}), [Allowed, Denied, Allowed, Allowed, Allowed]),
        (json!({"edit": "allow", "*": "deny"}), [Allowed, Allowed, Denied, Allowed, Denied]),
        (json!({"execute": "deny"}), [Allowed, Allowed, Asked, Asked, Denied]),
        (json!("read-only"), [Allowed, Allowed, Allowed, Denied, Denied]),
    ];
    let wish = |category, input| Wish { category, tool: "one", input };
    let wishes = [
        wish(Category::Read, INSIDE),
        wish(Category::Search, CWD),
        wish(Category::Read, OUTSIDE),
        wish(Category::Edit, INSIDE),
        wish(Category::Execute, CWD),
    ];
    for (policy, wanted) in policies {
        for interactive in [true, false] {
            for speaker in readers() {
                let agent = speaker.agent;
                let mut talk = Talk::begin(speaker, json!({"permissions": policy, "interactive": interactive}));
                for (wish, wanted) in wishes.into_iter().zip(wanted) {
                    let got = talk.request(wish, "allow_once");
                    assert_eq!(got, outcome(wanted, interactive), "{agent} {policy} {interactive} {wish:?}");
                }
            }
        }
    }
}

/// A further directory counts as inside.
#[test]
fn a_further_directory_may_be_read() {
    for speaker in readers() {
        let mut talk = Talk::begin(speaker, json!({"add_dirs": ["/home/user/other"], "interactive": false}));
        let wish = Wish { category: Category::Read, tool: "one", input: OUTSIDE };
        assert_eq!(talk.request(wish, "deny"), by_policy(Told::Once));
    }
}

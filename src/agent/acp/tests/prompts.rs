//! Commands and mentioned files in a prompt.

use super::{GEMINI, hear, initialized, prompted};
use crate::agent::{AgentEvent, Driver, DriverOutput};
use crate::protocol::request::Options;
use crate::protocol::words::{Level, Warning};
use serde_json::{Value, json};

fn listed(names: &[&str]) -> Value {
    let all: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": "x"})).collect();
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "available_commands_update", "availableCommands": all}}})
}

fn warnings(prompt: &str, raw: bool, is_early: bool) -> usize {
    let options = Options { raw_prompt: Some(raw), ..Options::default() };
    let mut driver = prompted(&GEMINI, prompt, options);
    hear(&mut driver, &initialized(&json!({})));
    let list = listed(&["memory show", "greet"]);
    let opened = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}});
    let lines = if is_early { [&list, &opened] } else { [&opened, &list] };
    let events = lines.into_iter().flat_map(|line| hear(&mut driver, line).1);
    events.filter(|event| matches!(event, AgentEvent::Warning(Warning::UnsupportedOption, _))).count()
}

#[test]
fn a_command_that_the_agent_lacks_is_a_warning() {
    for is_early in [true, false] {
        for (prompt, raw, wanted) in [
            ("/hail Ada", true, 1),
            ("/hail Ada", false, 0),
            ("/greet Ada", true, 0),
            ("/memory show", true, 0),
            ("/etc/hosts is wrong", true, 0),
        ] {
            assert_eq!(warnings(prompt, raw, is_early), wanted, "{prompt} {raw} {is_early}");
        }
    }
}

#[test]
fn a_mentioned_file_is_linked_only_in_a_raw_prompt() {
    let prompt = "See @a.txt, @\"b c%.txt\" and @Override.";
    for raw in [true, false] {
        let options = Options { raw_prompt: Some(raw), ..Options::default() };
        let mut driver = prompted(&GEMINI, prompt, options);
        hear(&mut driver, &initialized(&json!({})));
        let (sent, _) = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}));
        let link = |uri: &str, name: &str| json!({"type": "resource_link", "uri": uri, "name": name});
        let links = [link("file:///p/a.txt", "a.txt"), link("file:///p/b c%25.txt", "b c%.txt")];
        let mut wanted = vec![json!({"type": "text", "text": prompt})];
        wanted.extend(links.into_iter().filter(|_| raw));
        assert_eq!(sent[0]["params"]["prompt"], json!(wanted));
    }
}

#[test]
fn a_conversation_reports_the_commands_and_a_prompt_may_call_one() {
    for (progress, wanted) in [(Level::Full, "memory show, greet"), (Level::Normal, "")] {
        let mut driver = prompted(
            &GEMINI,
            "Hi",
            Options { progress: Some(progress), conversation: Some(true), ..Options::default() },
        );
        hear(&mut driver, &initialized(&json!({})));
        let mut events = hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}})).1;
        events.extend(hear(&mut driver, &listed(&["memory show", "greet", "", "a\nb", "a/b"])).1);
        let names = events.iter().filter_map(|event| match event {
            AgentEvent::Commands(all) => Some(all.iter().map(|it| it.name.unredacted()).collect::<Vec<_>>().join(", ")),
            _ => None,
        });
        assert_eq!(names.collect::<String>(), wanted);
        hear(&mut driver, &json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}));
        for (raw, text) in [(Some(true), "/greet"), (None, "The task:\n/greet"), (Some(false), "The task:\n/greet")] {
            let mut out = DriverOutput::default();
            driver.take_commands(raw);
            driver.follow_up("/greet", &[], &mut out);
            assert!(out.send[0].contains(&json!(text).to_string()), "{:?}", out.send);
        }
    }
}

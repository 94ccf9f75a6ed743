//! Compares the reference's table of conversations with the declarations of the drivers.
//! `UPDATE_GOLDEN=1 cargo test --test suite reference_` rewrites its rows.

use crate::pages::page::{PAGE, hold, section};
use spektacular::agent::Base;
use spektacular::agent::registry::{Agent, Agents, Dialect};
use spektacular::protocol::request::Options;

/// The table of conversations has the row of each agent, as its driver declares it.
#[test]
fn the_table_of_conversations_is_that_of_the_drivers() {
    let text = section("Conversations");
    let built_in = |name: &str| Agents::built_in().find(name).unwrap().into_owned();
    let acp = Agent::new("other", Dialect::Acp, Base::command("other"));
    let command = Agent::new("command", Dialect::Lines, Base::command("command"));
    let mut resumed = command.clone();
    resumed.lines.resume_args = vec!["-c".into()];
    let agents = [
        ("Claude Code", built_in("claude")),
        ("Codex", built_in("codex")),
        ("Gemini CLI", built_in("gemini")),
        ("OpenCode", built_in("opencode")),
        ("other ACP agents", acp),
        ("demo", built_in("demo")),
        ("a command with `resume_args`", resumed),
        ("any other command", command),
    ];
    let word = |known: Option<bool>, unknown: &'static str| match known {
        Some(true) => "yes",
        Some(false) => "no",
        None => unknown,
    };
    let wanted = agents.iter().map(|(name, agent)| {
        let features = agent.features(&Options::default().resolve("go".into(), (*name).into(), "/".into()));
        let (can, one_each) = (features.capabilities, features.process_per_turn);
        let conversation = word(can.conversation, "?");
        let conversation = if one_each && conversation == "yes" { "yes: a process per turn" } else { conversation };
        let (steer, keeps) = (word(can.steer, "known once it runs"), word(Some(!one_each), ""));
        format!("| {name} | {conversation} | {steer} | {keeps} | {} |", word(can.usage, "if it counts"))
    });
    let wanted: Vec<String> = wanted.collect();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let page = PAGE.replacen(&rows.join("\n"), &wanted.join("\n"), 1);
    assert!(page.contains(&wanted.join("\n")), "the rows of the table do not follow each other");
    hold("src/protocol/reference.md", PAGE, &page);
}

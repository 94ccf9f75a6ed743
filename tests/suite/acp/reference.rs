//! Tests of the reference page: the code and the page name the same things.

const PAGE: &str = include_str!("../../../src/acp/reference.md");
const METHODS: &str = include_str!("../../../src/acp/methods.rs");
const SESSION: &str = include_str!("../../../src/acp/session.rs");
const UPDATES: &str = include_str!("../../../src/acp/updates.rs");

/// The section below a heading.
#[track_caller]
fn section(heading: &str) -> &'static str {
    let rest = PAGE.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("the page lacks {heading}"));
    rest.split("\n## ").next().unwrap()
}

/// The words between these two marks in a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[test]
fn the_page_names_every_method_and_the_code_serves_each() {
    let page = section("From the client");
    let served: Vec<&str> = between(METHODS, "\"", "\"")
        .into_iter()
        .filter(|word| word.starts_with("session/") || word.starts_with("$/"))
        .collect();
    assert!(served.len() >= 9, "{served:?}");
    for method in served.iter().chain(&["initialize", "authenticate"]) {
        assert!(page.contains(&format!("`{method}`")), "the page lacks {method}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 3);
    let named = rows.flat_map(|line| between(line.split('|').nth(1).unwrap(), "`", "`")).step_by(1);
    for method in named.filter(|word| word.contains('/')) {
        assert!(METHODS.contains(&format!("\"{method}\"")), "{method} is not served");
    }
}

#[test]
fn the_page_names_every_update() {
    let page = section("To the client");
    let kinds = ["_chunk\"", "_update\"", "\"plan\"", "\"notice\"", "\"tool_call\""];
    let words = between(SESSION, "\"", "\"")
        .into_iter()
        .chain(between(UPDATES, "\"", "\""))
        .chain(between(METHODS, "\"", "\""));
    let updates: Vec<&str> =
        words.filter(|word| kinds.iter().any(|kind| format!("\"{word}\"").contains(kind))).collect();
    for update in
        ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "usage_update"]
    {
        assert!(updates.contains(&update), "the test no longer finds {update} in the code");
    }
    for update in updates {
        assert!(page.contains(&format!("`{update}`")), "the page lacks {update}");
    }
}

#[test]
fn the_page_names_every_code_and_limit() {
    let refusal = include_str!("../../../src/acp/refusal.rs");
    let codes: Vec<&str> = between(refusal, "i64 = ", ";");
    assert!(codes.len() >= 6, "{codes:?}");
    for code in codes.iter().chain(&["-32601"]) {
        assert!(section("Errors").contains(&format!("| {code} |")), "the page lacks {code}");
    }
    let limits = include_str!("../../../src/acp/mod.rs");
    for (constant, row) in [
        ("SESSIONS: usize = 32", "| open sessions | 32 |"),
        ("CHILDREN: usize = 2 * SESSIONS", "with those that are ending | 64 |"),
        ("PROMPTS_WAITING: usize = 32", "| prompts that wait in a session | 32 |"),
        ("WAITING_BYTES: usize = 64 << 20", "| all prompts that wait, with their images | 64 MiB |"),
        ("PARAMETERS_BYTES: usize = 256 << 10", "| MCP servers and directories of a session | 256 KiB |"),
    ] {
        assert!(limits.contains(constant) && section("Limits").contains(row), "{constant}: {row}");
    }
}

#[test]
fn the_page_has_every_section_in_its_list() {
    for heading in between(PAGE, "\n## ", "\n") {
        let link = heading.to_lowercase().replace(' ', "-");
        assert!(PAGE.contains(&format!("- [{heading}](#{link})")), "{heading}");
    }
}

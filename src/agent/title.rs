//! Titles of tool calls. The same work has the same title from every agent.

use crate::protocol::words::Category;

/// The title of a call: `Run cargo test`, `Write one.txt`, `Fetch https://example.com`. `tool`: the agent's name of the
/// tool, for a call without a subject and for categories without a verb. Drivers never cut a text, not even after its
/// first line, because half a secret cannot be found. The run redacts the whole text and then cuts it.
pub(super) fn title(category: Category, tool: &str, subject: &str) -> String {
    let subject = subject.trim_start();
    let verb = match category {
        Category::Execute => "Run",
        Category::Read => "Read",
        Category::Edit if tool.eq_ignore_ascii_case("write") => "Write",
        Category::Edit => "Edit",
        Category::Delete => "Delete",
        Category::Move => "Move",
        Category::Search => "Search",
        Category::Fetch => "Fetch",
        Category::Agent => return named("Agent", subject),
        Category::Think | Category::Mcp | Category::Mode | Category::Other => return named(tool, subject),
    };
    match (subject.is_empty(), tool.eq_ignore_ascii_case(verb) || tool.is_empty()) {
        (true, true) => verb.to_owned(),
        (true, false) => [verb, " ", tool].concat(),
        // The agent's own words may begin with the verb.
        (false, _) if subject.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' ')) && tool.is_empty() => {
            subject.to_owned()
        }
        (false, _) => [verb, " ", subject].concat(),
    }
}

fn named(tool: &str, subject: &str) -> String {
    match (tool.is_empty(), subject.is_empty()) {
        (true, true) => "A tool".to_owned(),
        (true, false) => subject.to_owned(),
        (false, true) => tool.to_owned(),
        (false, false) => [tool, ": ", subject].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::title;
    use crate::protocol::words::Category;

    #[test]
    fn a_title_is_made_of_the_category_and_the_subject() {
        for (category, tool, subject, whole) in [
            (Category::Execute, "Bash", "cargo test", "Run cargo test"),
            (Category::Execute, "bash", "", "Run bash"),
            (Category::Edit, "Write", "one.txt", "Write one.txt"),
            (Category::Edit, "write", "3 files", "Write 3 files"),
            (Category::Edit, "MultiEdit", "one.txt", "Edit one.txt"),
            (Category::Edit, "", "one.txt", "Edit one.txt"),
            (Category::Read, "Read", "", "Read"),
            (Category::Read, "", "Read README.md", "Read README.md"),
            (Category::Read, "view_image", "a.png", "Read a.png"),
            (Category::Search, "Grep", "fn main", "Search fn main"),
            (Category::Fetch, "WebSearch", "rust", "Fetch rust"),
            (Category::Agent, "Task", "look around", "Agent: look around"),
            (Category::Mcp, "deploy: form", "", "deploy: form"),
            (Category::Other, "Skill", "review", "Skill: review"),
            (Category::Other, "", "", "A tool"),
        ] {
            assert_eq!(title(category, tool, subject), whole);
        }
    }
}

//! The scope of "always": the requests that a permission for the rest of a run covers. All agents share the scopes and
//! their wording.

use super::limits::REMEMBERED_BYTES;
use super::words::Category;

/// The requests that one answer "always" allows. A policy of `deny` overrides it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope(Reach);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Every request of a category, and the label of the option.
    Category(Category, &'static str),
    /// Every request for a tool, by the agent's name for the tool.
    Tool(Category, String),
    /// Exactly this command.
    Command(String),
    /// Exactly this call.
    Call(Category, String),
}

/// The label of an option that covers a whole category. `None`: requests of this category differ too much.
fn whole(category: Category) -> Option<&'static str> {
    match category {
        Category::Read => Some("Allow all file reads for this run"),
        Category::Edit => Some("Allow all file edits for this run"),
        Category::Delete => Some("Allow all file deletions for this run"),
        Category::Move => Some("Allow all file moves for this run"),
        Category::Search => Some("Allow all searches for this run"),
        Category::Fetch => Some("Allow all network access for this run"),
        Category::Think => Some("Allow all thinking tools for this run"),
        Category::Agent => Some("Allow all sub-agents for this run"),
        Category::Execute | Category::Mcp | Category::Mode | Category::Other => None,
    }
}

impl Scope {
    /// `tool`: the agent's name for it. `call`: equal only for equal calls. `None`: "always" is not offered.
    pub fn of_request(category: Category, tool: Option<&str>, call: Option<&str>) -> Option<Scope> {
        let usable = |text: &&str| !text.trim().is_empty() && text.len() <= REMEMBERED_BYTES;
        let tool = tool.filter(usable).map(str::to_owned);
        let call = call.filter(usable).map(str::to_owned);
        let reach = match category {
            Category::Execute => call.map(Reach::Command),
            Category::Mcp | Category::Other => {
                tool.map(|tool| Reach::Tool(category, tool)).or_else(|| call.map(|call| Reach::Call(category, call)))
            }
            // Each change of the agent's mode, such as the end of planning, needs a separate decision.
            Category::Mode => None,
            Category::Read
            | Category::Edit
            | Category::Delete
            | Category::Move
            | Category::Search
            | Category::Fetch
            | Category::Think
            | Category::Agent => whole(category).map(|label| Reach::Category(category, label)),
        };
        reach.map(Scope)
    }

    pub fn label(&self) -> &'static str {
        match self.0 {
            Reach::Category(_, label) => label,
            Reach::Tool(..) => "Allow this tool for this run",
            Reach::Command(_) => "Allow this exact command for this run",
            Reach::Call(..) => "Allow this exact call for this run",
        }
    }

    pub fn description(&self) -> &'static str {
        match self.0 {
            Reach::Category(..) => "Later requests of this category are allowed without a question until the run ends.",
            Reach::Tool(..) => "Later requests for this tool are allowed without a question until the run ends.",
            Reach::Command(_) => "The same command is allowed without a question until the run ends; any other is not.",
            Reach::Call(..) => "The same call is allowed without a question until the run ends; any other is not.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, Scope};
    use crate::protocol::limits::REMEMBERED_BYTES;
    use crate::protocol::words::Category;

    #[test]
    fn always_covers_one_command_and_no_change_of_mode() {
        let call = Some("rm a");
        assert_eq!(
            Scope::of_request(Category::Execute, Some("Bash"), call),
            Some(Scope(Reach::Command("rm a".into())))
        );
        assert_eq!(
            Scope::of_request(Category::Execute, Some("Bash"), None),
            None,
            "unknown commands would all be equal"
        );
        assert_eq!(Scope::of_request(Category::Mode, Some("ExitPlanMode"), call), None);
        let edits = Scope::of_request(Category::Edit, Some("Write"), call);
        assert_eq!(edits, Scope::of_request(Category::Edit, None, None), "every edit is covered");
        assert_ne!(edits, Scope::of_request(Category::Delete, None, None));
    }

    #[test]
    fn always_covers_an_mcp_tool_or_an_unknown_tool_by_its_name() {
        for category in [Category::Mcp, Category::Other] {
            assert_eq!(
                Scope::of_request(category, Some("t"), Some("{}")),
                Some(Scope(Reach::Tool(category, "t".into())))
            );
            assert_eq!(
                Scope::of_request(category, Some(" "), Some("{}")),
                Some(Scope(Reach::Call(category, "{}".into())))
            );
            assert_eq!(Scope::of_request(category, None, None), None);
        }
    }

    #[test]
    fn always_is_not_offered_for_a_scope_that_is_too_long() {
        let long = "x".repeat(REMEMBERED_BYTES + 1);
        assert_eq!(Scope::of_request(Category::Execute, None, Some(&long)), None);
        assert_eq!(Scope::of_request(Category::Mcp, Some(&long), Some(&long)), None);
    }
}

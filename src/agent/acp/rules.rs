//! The rules by which an agent limits its own tools: OpenCode's permissions in a variable, Gemini's policy in a file.

use crate::agent::ask_user;
use crate::json::to_line;
use crate::paths::absolute;
use crate::protocol::request::Settings;
use std::fmt::Write;

/// The agents whose rules are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleFormat {
    /// The variable OPENCODE_PERMISSION.
    OpenCode,
    /// A file for `--policy`.
    Gemini,
}

/// The limits that the rules must keep, and the exceptions for our own tools.
#[derive(Debug)]
pub(super) struct ToolRules<'a> {
    allowed: Option<&'a [String]>,
    disallowed: &'a [String],
    read_only: bool,
    /// The further directories, as absolute paths without dots, because OpenCode compares these.
    dirs: Vec<String>,
    /// The server and the name of each of our own tools.
    own_tools: Vec<(String, &'static str)>,
}

impl<'a> ToolRules<'a> {
    /// `own_tools`: the names of our own tools.
    pub(super) fn new(settings: &'a Settings, own_tools: &[&'static str]) -> ToolRules<'a> {
        ToolRules {
            allowed: settings.allowed_tools.as_deref(),
            disallowed: settings.disallowed_tools.as_deref().unwrap_or_default(),
            read_only: settings.permissions.is_read_only(),
            dirs: settings
                .add_dirs
                .iter()
                .map(|dir| absolute(&settings.cwd, dir).to_string_lossy().into_owned())
                .collect(),
            own_tools: own_tools.iter().map(|tool| (ask_user::server_name(settings), *tool)).collect(),
        }
    }

    /// Whether the lists leave this tool to the model.
    fn leaves(&self, tool: &str) -> bool {
        self.allowed.is_none_or(|tools| tools.iter().any(|name| name == tool))
            && !self.disallowed.iter().any(|name| name == tool)
    }

    /// OpenCode's rules. By default it asks for almost nothing. A rule of the user's for a tool would win over `*`, so
    /// each tool has a rule. This variable overrides every configuration, and leaves OPENCODE_CONFIG_CONTENT to the
    /// user.
    pub(super) fn opencode(&self) -> String {
        let limited = self.read_only || self.allowed.is_some();
        let mut rules = vec![("*".to_owned(), if limited { "deny" } else { "ask" })];
        let acts = ["bash", "edit", "webfetch", "task", "external_directory"].map(|tool| (tool, false));
        let reads = ["read", "grep", "glob", "list"].map(|tool| (tool, true));
        let others = ["websearch", "codesearch", "lsp", "skill", "todowrite", "todoread"].map(|tool| (tool, false));
        let more = if limited { reads.iter().chain(&others) } else { [].iter().chain(&[]) };
        for (tool, reads) in acts.iter().chain(more) {
            // The permission `edit` covers the tools that write, and a folder outside is a condition and not a tool.
            let covered: &[&str] = match *tool {
                "edit" => &["edit", "write", "patch", "multiedit", "apply_patch"],
                other => &[other],
            };
            let is_left = *tool == "external_directory" || covered.iter().any(|tool| self.leaves(tool));
            let rule = match (is_left, self.read_only, reads) {
                (false, ..) | (true, true, false) => "deny",
                (true, true, true) => "allow",
                (true, false, _) => "ask",
            };
            rules.push(((*tool).to_owned(), rule));
        }
        let known = |name: &str, rules: &[(String, &str)]| rules.iter().any(|(tool, _)| tool == name);
        for name in self.allowed.unwrap_or_default().iter().filter(|_| !self.read_only) {
            if self.leaves(name) && !known(name, &rules) {
                rules.push((name.clone(), "ask"));
            }
        }
        for name in self.disallowed {
            if !known(name, &rules) {
                rules.push((name.clone(), "deny"));
            }
        }
        rules.extend(self.own_tools.iter().map(|(server, tool)| (format!("{server}_{tool}"), "allow")));
        let written = |(tool, rule): &(String, &str)| match tool.as_str() {
            "external_directory" if !self.dirs.is_empty() => format!("\"{tool}\":{}", self.outside(rule)),
            _ => format!("{}:\"{rule}\"", to_line(tool)),
        };
        let rules: Vec<String> = rules.iter().map(written).collect();
        format!("{{{}}}", rules.join(","))
    }

    /// OpenCode's rules for folders outside. The last rule that fits counts.
    fn outside(&self, rule: &str) -> String {
        let paths = self.dirs.iter().flat_map(|dir| [dir.clone(), format!("{}/*", dir.trim_end_matches('/'))]);
        let dirs: String = paths.map(|path| format!(",{}:\"allow\"", to_line(&path))).collect();
        format!("{{\"*\":\"{rule}\"{dirs}}}")
    }

    /// Gemini's policy. `None`: nothing is limited. A global denial takes a tool from the model's list. Gemini reads
    /// without asking in every mode; other tools that are left still ask.
    pub(super) fn gemini(&self) -> Option<String> {
        const READS: [&str; 5] = ["read_file", "read_many_files", "list_directory", "glob", "grep_search"];
        let mut text = String::new();
        let mut rule = |tool: &str, decision: &str, priority: u32| {
            let tool = to_line(&tool);
            let _ = writeln!(text, "[[rule]]\ntoolName = {tool}\ndecision = \"{decision}\"\npriority = {priority}");
        };
        if !self.read_only && self.allowed.is_none() && self.disallowed.is_empty() {
            return None;
        }
        if self.read_only || self.allowed.is_some() {
            rule("*", "deny", 900);
        }
        if self.read_only {
            READS.iter().filter(|tool| self.leaves(tool)).for_each(|tool| rule(tool, "allow", 910));
        } else {
            for tool in self.allowed.unwrap_or_default() {
                rule(tool, if READS.contains(&tool.as_str()) { "allow" } else { "ask_user" }, 910);
            }
        }
        self.disallowed.iter().for_each(|tool| rule(tool, "deny", 920));
        for (server, tool) in &self.own_tools {
            // By its whole name: with `mcpName`, Gemini offers the tool and then denies each call.
            rule(&format!("mcp_{server}_{tool}"), "allow", 930);
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolRules;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn opencode_asks_for_everything_that_is_not_excluded() {
        let own_tools = vec![("spektacular_1".to_owned(), "ask_user")];
        let rules = ToolRules { allowed: None, disallowed: &[], read_only: false, dirs: Vec::new(), own_tools };
        let all = r#"{"*":"ask","bash":"ask","edit":"ask","webfetch":"ask","task":"ask","external_directory":"ask","#;
        assert_eq!(rules.opencode(), format!("{all}\"spektacular_1_ask_user\":\"allow\"}}"));
        let (allowed, disallowed) = (names(&["read", "write", "scales_weigh"]), names(&["bash", "a\"b"]));
        let lists = ToolRules {
            allowed: Some(&allowed),
            disallowed: &disallowed,
            read_only: false,
            dirs: Vec::new(),
            own_tools: Vec::new(),
        };
        let text = lists.opencode();
        for part in [
            r#""*":"deny""#,
            r#""bash":"deny""#,
            r#""edit":"ask""#,
            r#""read":"ask""#,
            r#""grep":"deny""#,
            r#""scales_weigh":"ask""#,
            r#""a\"b":"deny""#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let dirs = vec!["/opt/a\"b/".to_owned()];
        let outside = ToolRules { allowed: None, disallowed: &[], read_only: false, dirs, own_tools: Vec::new() };
        let wanted = r#""external_directory":{"*":"ask","/opt/a\"b/":"allow","/opt/a\"b/*":"allow"}"#;
        assert!(outside.opencode().contains(wanted), "{}", outside.opencode());
        let reads =
            ToolRules { allowed: None, disallowed: &[], read_only: true, dirs: Vec::new(), own_tools: Vec::new() }
                .opencode();
        for part in [r#""*":"deny""#, r#""bash":"deny""#, r#""edit":"deny""#, r#""read":"allow""#, r#""grep":"allow""#]
        {
            assert!(reads.contains(part), "{part} is not in {reads}");
        }
    }

    #[test]
    fn gemini_gets_a_policy_only_if_something_is_limited() {
        let none =
            ToolRules { allowed: None, disallowed: &[], read_only: false, dirs: Vec::new(), own_tools: Vec::new() };
        assert_eq!(none.gemini(), None);
        let disallowed = names(&["run_shell_command", "a\"\n[[rule]]"]);
        let own_tools = vec![("spektacular-1".to_owned(), "submit_result")];
        let text = ToolRules { disallowed: &disallowed, read_only: true, dirs: Vec::new(), own_tools, allowed: None }
            .gemini()
            .unwrap();
        assert!(text.starts_with("[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 900\n"), "{text}");
        assert!(text.contains("toolName = \"read_file\"\ndecision = \"allow\"\npriority = 910\n"), "{text}");
        assert!(text.contains("toolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 920\n"), "{text}");
        let own = "toolName = \"mcp_spektacular-1_submit_result\"\ndecision = \"allow\"\npriority = 930\n";
        assert!(text.contains(own), "{text}");
        assert!(text.contains("toolName = \"a\\\"\\n[[rule]]\""), "{text}");
    }
}

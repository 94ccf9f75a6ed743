//! The rules by which an agent limits its own tools: OpenCode's permissions in a variable, Gemini's policy in a file.

use super::own_rules::{appended, without_sub_agents};
use crate::agent::ask_user;
use crate::json::to_line;
use crate::paths::absolute;
use crate::protocol::request::Settings;
use crate::protocol::words::{Category, Policy};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleFormat {
    /// OpenCode's, in this variable.
    OpenCode(&'static str),
    /// A file for `--policy`.
    Gemini,
}

#[derive(Debug)]
pub(super) struct ToolRules<'a> {
    allowed: Option<&'a [String]>,
    disallowed: &'a [String],
    read_only: bool,
    /// Whether it may read without asking, and search.
    reads: bool,
    searches: bool,
    denies_commands: bool,
    /// OpenCode's permissions that it has without asking. Its ACP does not pass on what a sub-agent asks for.
    granted: Vec<&'static str>,
    delegates: bool,
    /// The further directories, as absolute paths without dots, because OpenCode compares these.
    dirs: Vec<String>,
    /// The rules of the user's own that stay in force.
    own_rules: &'a str,
    own_tools: Vec<(String, &'static str)>,
}

/// OpenCode's permissions without a rule of their own in a run that does not limit the tools.
const OTHERS: [&str; 6] = ["websearch", "codesearch", "lsp", "skill", "todowrite", "todoread"];

/// OpenCode's permissions that need no request: those that the policy allows, in a run that may have sub-agents without
/// asking. Elsewhere its requests have the run's answer, and a judge has to hear of them.
fn granted(settings: &Settings) -> Vec<&'static str> {
    use Category::{Agent, Delete, Edit, Execute, Fetch, Move, Read, Search};
    let allows = |category: &Category| settings.permissions.policy(*category) == Policy::Allow;
    if !allows(&Agent) || settings.judge.is_some() {
        return Vec::new();
    }
    let needs: [(&str, &[Category]); 5] = [
        ("bash", &[Execute]),
        ("edit", &[Edit, Delete, Move]),
        ("webfetch", &[Fetch]),
        ("external_directory", &[Read, Search, Edit, Delete, Move, Execute]),
        ("*", Category::ALL),
    ];
    needs.into_iter().filter(|(_, needs)| needs.iter().all(allows)).map(|(name, _)| name).collect()
}

impl<'a> ToolRules<'a> {
    pub(super) fn new(settings: &'a Settings, own_tools: &[&'static str]) -> ToolRules<'a> {
        let dirs = settings.add_dirs.iter().map(|dir| absolute(&settings.cwd, dir).to_string_lossy().into_owned());
        ToolRules {
            allowed: settings.allowed_tools.as_deref(),
            disallowed: settings.disallowed_tools.as_deref().unwrap_or_default(),
            read_only: settings.permissions.is_read_only(),
            reads: settings.permissions.policy_inside(Category::Read) == Policy::Allow,
            searches: settings.permissions.policy_inside(Category::Search) == Policy::Allow,
            denies_commands: settings.permissions.policy(Category::Execute) == Policy::Deny,
            granted: granted(settings),
            delegates: settings.permissions.policy(Category::Agent) != Policy::Deny,
            dirs: dirs.collect(),
            own_rules: &settings.own_rules,
            own_tools: own_tools.iter().map(|tool| (ask_user::server_name(settings), *tool)).collect(),
        }
    }

    /// Whether the lists leave this tool to the model.
    fn leaves(&self, tool: &str) -> bool {
        self.allowed.is_none_or(|tools| tools.iter().any(|name| name == tool))
            && !self.disallowed.iter().any(|name| name == tool)
    }

    /// OpenCode's rules for each permission. By default it asks for almost nothing. A rule of the user's for a tool would
    /// win over `*`, so each tool has a rule.
    fn opencode_rules(&self) -> Vec<(String, &'static str)> {
        let limited = self.read_only || self.allowed.is_some();
        let asked = |name: &str| if self.granted.contains(&name) { "allow" } else { "ask" };
        let mut rules = vec![("*".to_owned(), if limited { "deny" } else { asked("*") })];
        let acts = ["bash", "edit", "webfetch", "task", "external_directory"].map(|tool| (tool, asked(tool)));
        let looks = [("read", self.reads), ("grep", self.searches), ("glob", self.searches), ("list", self.searches)];
        let looks = looks.map(|(tool, allows)| (tool, if allows { "allow" } else { "ask" }));
        let others = if limited { &OTHERS[..] } else { &[] };
        let others = others.iter().map(|tool| (*tool, asked("*")));
        for (tool, rule) in acts.into_iter().chain(looks).chain(others) {
            // The permission `edit` covers the tools that write, and a folder outside is a condition and not a tool.
            let covered: &[&str] = match tool {
                "edit" => &["edit", "write", "patch", "multiedit", "apply_patch"],
                other => &[other],
            };
            let is_left = tool == "external_directory" || covered.iter().any(|tool| self.leaves(tool));
            let is_look = looks.iter().any(|(look, _)| *look == tool) && rule == "allow";
            rules.push((tool.to_owned(), if is_left && (is_look || !self.read_only) { rule } else { "deny" }));
        }
        let known = |name: &str, rules: &[(String, &str)]| rules.iter().any(|(tool, _)| tool == name);
        for name in self.allowed.unwrap_or_default().iter().filter(|_| !self.read_only) {
            if self.leaves(name) && !known(name, &rules) {
                rules.push((name.clone(), asked("*")));
            }
        }
        for name in self.disallowed {
            if !known(name, &rules) {
                rules.push((name.clone(), "deny"));
            }
        }
        rules
    }

    /// Their variable overrides every configuration.
    pub(super) fn opencode(&self) -> String {
        let rules = self.opencode_rules();
        let ours = |name: &str| rules.iter().find(|(tool, _)| tool == name).unwrap_or(&rules[0]).1;
        let kept = appended(self.own_rules, ours);
        let written = |(tool, rule): &(String, &str)| match tool.as_str() {
            "external_directory" if !self.dirs.is_empty() => format!("\"{tool}\":{}", self.outside(rule)),
            _ => format!("{}:\"{rule}\"", to_line(tool)),
        };
        let own = self.own_tools.iter().map(|(server, tool)| format!("\"{server}_{tool}\":\"allow\""));
        let rules: Vec<String> = rules.iter().map(written).chain(kept).chain(own).collect();
        format!("{{{}}}", rules.join(","))
    }

    /// The part of OpenCode's configuration that refuses its sub-agents what they would have to ask for, since nobody would
    /// hear them. The model reads that a tool is not available. `None`: not needed.
    pub(super) fn opencode_sub_agents(&self) -> Option<String> {
        let rules = self.opencode_rules();
        let mut asked: Vec<&str> = rules.iter().filter(|(_, rule)| *rule == "ask").map(|(tool, _)| &**tool).collect();
        if let Some(at) = asked.iter().position(|tool| *tool == "*") {
            // A pattern for the tools of MCP servers. `*` itself would take the tools that read, too.
            asked[at] = "*_*";
            asked.extend(OTHERS);
        }
        asked.retain(|tool| *tool != "task");
        (self.delegates && !self.read_only && !asked.is_empty()).then(|| without_sub_agents(self.own_rules, &asked))
    }

    /// The last rule that fits counts.
    fn outside(&self, rule: &str) -> String {
        let paths = self.dirs.iter().flat_map(|dir| [dir.clone(), format!("{}/*", dir.trim_end_matches('/'))]);
        let dirs: String = paths.map(|path| format!(",{}:\"allow\"", to_line(&path))).collect();
        format!("{{\"*\":\"{rule}\"{dirs}}}")
    }

    /// Gemini's policy. `None`: nothing is limited, and it may read without asking, as it does in every mode. A global
    /// denial takes a tool from the model's list; other tools that are left still ask.
    pub(super) fn gemini(&self) -> Option<String> {
        const READS: [&str; 2] = ["read_file", "read_many_files"];
        const SEARCHES: [&str; 3] = ["list_directory", "glob", "grep_search"];
        let looks =
            || READS.map(|tool| (tool, self.reads)).into_iter().chain(SEARCHES.map(|tool| (tool, self.searches)));
        let mut text = String::new();
        let mut rule = |tool: &str, decision: &str, priority: u32| {
            let tool = to_line(&tool);
            let _ = writeln!(text, "[[rule]]\ntoolName = {tool}\ndecision = \"{decision}\"\npriority = {priority}");
        };
        let limited = self.read_only || self.allowed.is_some();
        if !limited && self.disallowed.is_empty() && self.reads && self.searches && self.delegates {
            return None;
        }
        if limited {
            rule("*", "deny", 900);
        }
        // It starts those that only read without asking.
        if !self.delegates {
            rule("invoke_agent", "deny", 920);
        }
        for (tool, allows) in looks() {
            match (limited, allows) {
                (true, true) if self.read_only && self.leaves(tool) => rule(tool, "allow", 910),
                // Only above Gemini's own rules, so that a denial of the user's wins.
                (false, false) => rule(tool, "ask_user", 1),
                (true | false, true) | (true, false) => {}
            }
        }
        // It runs commands such as `cat` without asking.
        if self.denies_commands && !(self.reads && self.searches) {
            rule("run_shell_command", "deny", 920);
        }
        for tool in self.allowed.unwrap_or_default().iter().filter(|_| !self.read_only) {
            let allows = looks().any(|(name, allows)| allows && name == tool);
            rule(tool, if allows { "allow" } else { "ask_user" }, 910);
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
    use super::{ToolRules, granted};
    use crate::protocol::request::{Options, Permissions, Settings};
    use crate::protocol::words::{Category, Policy};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn rules<'a>(allowed: Option<&'a [String]>, disallowed: &'a [String]) -> ToolRules<'a> {
        let (dirs, own_tools) = (Vec::new(), Vec::new());
        let (reads, searches, denies_commands) = (true, true, false);
        ToolRules {
            allowed,
            disallowed,
            read_only: false,
            reads,
            searches,
            denies_commands,
            granted: Vec::new(),
            delegates: true,
            dirs,
            own_rules: "",
            own_tools,
        }
    }

    #[test]
    fn opencode_asks_for_everything_that_neither_reads_nor_is_excluded() {
        let own_tools = vec![("spektacular_1".to_owned(), "ask_user")];
        let open = ToolRules { own_tools, ..rules(None, &[]) };
        let acts = r#"{"*":"ask","bash":"ask","edit":"ask","webfetch":"ask","task":"ask","external_directory":"ask","#;
        let reads = r#""read":"allow","grep":"allow","glob":"allow","list":"allow","#;
        assert_eq!(open.opencode(), format!("{acts}{reads}\"spektacular_1_ask_user\":\"allow\"}}"));
        let asks = ToolRules { reads: false, ..rules(None, &[]) }.opencode();
        assert!(asks.contains(r#""read":"ask","grep":"allow""#), "{asks}");
        let denied =
            ToolRules { own_rules: r#"{"permission":{"bash":{"rm *":"deny"}}}"#, ..rules(None, &[]) }.opencode();
        assert!(denied.ends_with(r#","list":"allow","bas?":{"rm *":"deny"}}"#), "{denied}");
        let (allowed, disallowed) = (names(&["read", "write", "scales_weigh"]), names(&["bash", "a\"b"]));
        let text = rules(Some(&allowed), &disallowed).opencode();
        for part in [
            r#""*":"deny""#,
            r#""bash":"deny""#,
            r#""edit":"ask""#,
            r#""read":"allow""#,
            r#""grep":"deny""#,
            r#""scales_weigh":"ask""#,
            r#""a\"b":"deny""#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let dirs = vec!["/opt/a\"b/".to_owned()];
        let outside = ToolRules { dirs, ..rules(None, &[]) };
        let wanted = r#""external_directory":{"*":"ask","/opt/a\"b/":"allow","/opt/a\"b/*":"allow"}"#;
        assert!(outside.opencode().contains(wanted), "{}", outside.opencode());
        let reads = ToolRules { read_only: true, ..rules(None, &[]) }.opencode();
        for part in [r#""*":"deny""#, r#""bash":"deny""#, r#""edit":"deny""#, r#""read":"allow""#, r#""grep":"allow""#]
        {
            assert!(reads.contains(part), "{part} is not in {reads}");
        }
    }

    #[test]
    fn sub_agents_of_opencode_are_granted_or_refused_what_nobody_could_be_asked_for() {
        let content = rules(None, &[]).opencode_sub_agents().unwrap();
        for part in [r#"["*_*","bash","edit","webfetch","external_directory","websearch""#, r#""skill""#] {
            assert!(content.contains(part), "{content}");
        }
        assert!(!content.contains("task") && !content.contains("\"read\""), "{content}");
        let granted = vec!["bash", "edit", "webfetch", "external_directory", "*"];
        let all = ToolRules { granted, ..rules(None, &[]) };
        assert!(all.opencode().starts_with(r#"{"*":"allow","bash":"allow","edit":"allow","#), "{}", all.opencode());
        assert!(all.opencode().contains(r#""task":"ask""#), "{}", all.opencode());
        for none in [all, ToolRules { delegates: false, ..rules(None, &[]) }] {
            assert_eq!(none.opencode_sub_agents(), None);
        }
    }

    #[test]
    fn only_a_run_that_allows_sub_agents_grants_in_advance() {
        for (permissions, wanted) in [
            (Permissions::All(Policy::Allow), &["bash", "edit", "webfetch", "external_directory", "*"][..]),
            (Permissions::default(), &[]),
            (by(&[(Category::Execute, Policy::Allow)]), &[]),
            (by(&[(Category::Agent, Policy::Allow), (Category::Execute, Policy::Allow)]), &["bash"]),
        ] {
            let settings = Options::default().resolve("x".into(), "opencode".into(), "/w".into());
            assert_eq!(granted(&Settings { permissions: permissions.clone(), ..settings }), wanted, "{permissions}");
        }
    }

    fn by(named: &[(Category, Policy)]) -> Permissions {
        Permissions::ByCategory { named: named.iter().copied().collect(), rest: None }
    }

    #[test]
    fn gemini_gets_a_policy_only_if_something_is_limited() {
        assert_eq!(ToolRules { denies_commands: true, ..rules(None, &[]) }.gemini(), None);
        let alone = ToolRules { delegates: false, ..rules(None, &[]) }.gemini().unwrap();
        assert_eq!(alone, "[[rule]]\ntoolName = \"invoke_agent\"\ndecision = \"deny\"\npriority = 920\n");
        let disallowed = names(&["run_shell_command", "a\"\n[[rule]]"]);
        let own_tools = vec![("spektacular-1".to_owned(), "submit_result")];
        let text = ToolRules { read_only: true, own_tools, ..rules(None, &disallowed) }.gemini().unwrap();
        assert!(text.starts_with("[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 900\n"), "{text}");
        assert!(text.contains("toolName = \"read_file\"\ndecision = \"allow\"\npriority = 910\n"), "{text}");
        assert!(text.contains("toolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 920\n"), "{text}");
        let own = "toolName = \"mcp_spektacular-1_submit_result\"\ndecision = \"allow\"\npriority = 930\n";
        assert!(text.contains(own), "{text}");
        assert!(text.contains("toolName = \"a\\\"\\n[[rule]]\""), "{text}");
        let asks = ToolRules { reads: false, denies_commands: true, ..rules(None, &[]) }.gemini().unwrap();
        assert!(asks.contains("toolName = \"run_shell_command\"\ndecision = \"deny\"\n"), "{asks}");
        assert!(asks.contains("toolName = \"read_file\"\ndecision = \"ask_user\"\npriority = 1\n"), "{asks}");
        assert!(!asks.contains("glob"), "{asks}");
    }
}

//! The user's own rules that OpenCode would lose, and those for its sub-agents: OPENCODE_PERMISSION, which holds ours,
//! replaces those of its configuration. Measured on 1.18.33: of the rules that fit a call, the last one counts.

use crate::agent::native::{Environment, Folder, OwnRules, RuleSource};
use crate::json::{Object, Raw, to_line};
use std::borrow::Cow;
use std::path::Path;

pub(super) const OPENCODE_CONFIG: Folder =
    Folder { variable: ("XDG_CONFIG_HOME", "opencode"), home: ".config/opencode" };

/// The variable with a configuration, which we leave to the user.
pub(super) const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
/// OpenCode's list of the permissions that its sub-agents never have.
const PRIMARY: &str = "primary_tools";
/// OpenCode's choice of the agent for a session without a mode.
const DEFAULT: &str = "default_agent";
const RULES: &str = "permission";
/// The library of plugins, which OpenCode installs into each folder of configuration.
pub(super) const LIBRARY: &str = "@opencode-ai/plugin";

pub(super) const OPENCODE_RULES: OwnRules = OwnRules { sources, kept };

/// A later source overrides an earlier one.
fn sources(environment: Environment<'_>, cwd: &Path) -> Vec<RuleSource> {
    const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];
    let text = |name: &str| environment(name)?.into_string().ok().filter(|text| !text.is_empty());
    let global = OPENCODE_CONFIG.path(environment);
    let mut files: Vec<_> = global.iter().map(|folder| folder.join("config.json")).collect();
    files.extend(global.iter().flat_map(|folder| FILES.map(|file| folder.join(file))));
    files.extend(text("OPENCODE_CONFIG").map(|file| cwd.join(file)));
    let mut project: Vec<&Path> = cwd.ancestors().collect();
    project.reverse();
    files.extend(project.iter().flat_map(|folder| FILES.map(|file| folder.join(file))));
    let home = environment("HOME").map(|home| Path::new(&home).to_owned());
    let folders = project.iter().map(|folder| folder.join(".opencode")).chain(home.map(|home| home.join(".opencode")));
    let folders: Vec<_> = folders.chain(text("OPENCODE_CONFIG_DIR").map(|folder| cwd.join(folder))).collect();
    files.extend(folders.iter().flat_map(|folder| FILES.map(|file| folder.join(file))));
    let mut all: Vec<RuleSource> = files.into_iter().map(RuleSource::File).collect();
    all.extend(global.map(|needed| RuleSource::Library { name: LIBRARY, needed, others: folders }));
    let content = text(CONTENT).into_iter().flat_map(|content| [content, format!("{{\"{CONTENT}\":true}}")]);
    all.extend(content.map(RuleSource::Text));
    all.extend(FILES.map(|file| RuleSource::File(Path::new("/etc/opencode").join(file))));
    all.extend(text("OPENCODE_PERMISSION").map(|rules| RuleSource::Text(format!("{{\"permission\":{rules}}}"))));
    all
}

/// The rules about one permission, in order: each pattern of its use, and the action. One action for every use has the
/// pattern `*`.
#[derive(Debug)]
struct ToolRule {
    tool: String,
    by_pattern: bool,
    actions: Vec<(String, String)>,
}

impl ToolRule {
    fn read(tool: &str, rule: Raw<'_>) -> Option<ToolRule> {
        let actions = match rule.object() {
            Some(patterns) => {
                patterns.iter().filter_map(|(p, action)| Some((p.into_owned(), action.string()?))).collect()
            }
            None => vec![("*".to_owned(), rule.string()?)],
        };
        Some(ToolRule { tool: tool.to_owned(), by_pattern: rule.object().is_some(), actions })
    }

    fn denies(&self) -> bool {
        self.actions.iter().any(|(_, action)| action == "deny")
    }

    /// Merges as OpenCode merges its files.
    fn override_by(&mut self, later: ToolRule) {
        if !(self.by_pattern && later.by_pattern) {
            *self = later;
            return;
        }
        for (pattern, action) in later.actions {
            match self.actions.iter_mut().find(|(known, _)| *known == pattern) {
                Some((_, known)) => *known = action,
                None => self.actions.push((pattern, action)),
            }
        }
    }
}

fn read(config: &Object<'_>) -> Vec<ToolRule> {
    let disabled = |(tool, enabled): (Cow<'_, str>, Raw<'_>)| {
        let writes = matches!(&*tool, "write" | "patch" | "multiedit");
        let deny = || vec![("*".to_owned(), "deny".to_owned())];
        let tool = if writes { "edit".to_owned() } else { tool.into_owned() };
        (enabled.get() == "false").then(|| ToolRule { tool, by_pattern: false, actions: deny() })
    };
    let tools = config.object("tools");
    let mut rules: Vec<ToolRule> = tools.iter().flat_map(Object::iter).filter_map(disabled).collect();
    let permission = config.raw("permission");
    match permission.and_then(Raw::object) {
        Some(tools) => rules.extend(tools.iter().filter_map(|(tool, rule)| ToolRule::read(&tool, rule))),
        None => rules.extend(permission.and_then(|rule| ToolRule::read("*", rule))),
    }
    rules
}

/// The merged configuration as one JSON object: the rules that deny and exceptions from them, in the form of OpenCode's
/// configuration, its list of permissions without sub-agents, its default agent, and whether [`CONTENT`] is set and
/// [`LIBRARY`] is there. Empty: none of these.
fn kept(texts: &[String]) -> String {
    let mut rules: Vec<ToolRule> = Vec::new();
    let (mut primary, mut default, mut flags) = (String::new(), String::new(), Vec::new());
    for text in texts {
        let json = without_comments(text);
        let config = Object::parse(&json);
        let is_set = |flag: &str| config.as_ref().is_some_and(|config| config.bool(flag) == Some(true));
        flags.extend([CONTENT, LIBRARY].into_iter().filter(|flag| is_set(flag)).map(|flag| format!("\"{flag}\":true")));
        if let Some(list) = config.as_ref().and_then(|config| config.object("experimental")?.raw(PRIMARY)) {
            primary = format!("\"{PRIMARY}\":{}", list.get());
        }
        if let Some(name) = config.as_ref().and_then(|config| config.raw(DEFAULT)) {
            default = format!("\"{DEFAULT}\":{}", name.get());
        }
        for rule in config.iter().flat_map(read) {
            match rules.iter_mut().find(|known| known.tool == rule.tool) {
                Some(known) => known.override_by(rule),
                None => rules.push(rule),
            }
        }
    }
    // A rule before the first denial is not an exception from it. A later rule for several tools must undo none.
    let kept = rules.into_iter().skip_while(|rule| !rule.denies());
    let kept = kept.filter(|rule| rule.denies() || !rule.tool.contains('*'));
    let written = |rule: ToolRule| {
        let actions: Vec<String> =
            rule.actions.iter().map(|(pattern, action)| format!("{}:{}", to_line(pattern), to_line(action))).collect();
        format!("{}:{{{}}}", to_line(&rule.tool), actions.join(","))
    };
    let kept: Vec<String> = kept.map(written).collect();
    let rules = if kept.is_empty() { String::new() } else { format!("\"{RULES}\":{{{}}}", kept.join(",")) };
    let parts = [rules, primary, default].into_iter().chain(flags);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) }
}

/// `flag`: [`CONTENT`], which the user may set, or [`LIBRARY`], which every folder of configuration may have.
pub(super) fn is_set(kept: &str, flag: &str) -> bool {
    Object::parse(kept).is_some_and(|kept| kept.bool(flag) == Some(true))
}

/// A part of the configuration that takes these permissions from OpenCode's sub-agents.
pub(super) fn without_sub_agents(kept: &str, permissions: &[&str]) -> String {
    let kept = Object::parse(kept);
    let own = kept.iter().flat_map(|kept| kept.array(PRIMARY)).filter_map(Raw::string);
    let all: Vec<String> = permissions.iter().map(|name| (*name).to_owned()).chain(own).collect();
    format!("\"experimental\":{{\"{PRIMARY}\":{}}}", to_line(&all))
}

/// A part of the configuration that replaces the prompt of the agent that this mode selects. OpenCode would replace
/// `{env:NAME}` and `{file:PATH}` in the JSON.
pub(super) fn new_prompt(kept: &str, mode: Option<&str>, prompt: &str) -> String {
    let default = Object::parse(kept).and_then(|kept| kept.string(DEFAULT));
    let agent = mode.or(default.as_deref()).unwrap_or("build");
    let prompt = to_line(&prompt).replace('{', "\\u007b");
    format!("\"agent\":{{{}:{{\"prompt\":{prompt}}}}}", to_line(&agent))
}

/// The rules to append to `ours` so that the denials among the user's win. A key of the user's keeps its place in the
/// merged configuration, so each name becomes an equal pattern that the user surely does not have. `ours`: our action
/// for a permission, which replaces the user's other actions.
pub(super) fn appended(kept: &str, ours: impl Fn(&str) -> &'static str) -> Vec<String> {
    let rule = |(tool, patterns): (Cow<'_, str>, Raw<'_>)| {
        let mut name = tool.to_string();
        let last = name.pop()?;
        name.push_str(if last == '*' { "**" } else { "?" });
        let ours = ours(&tool);
        let action = |(pattern, action): (Cow<'_, str>, Raw<'_>)| {
            let denies = action.str().is_some_and(|action| action == "deny");
            format!("{}:\"{}\"", to_line(&pattern), if denies { "deny" } else { ours })
        };
        let actions: Vec<String> = patterns.object()?.iter().map(action).collect();
        Some(format!("{}:{{{}}}", to_line(&name), actions.join(",")))
    };
    let rules = Object::parse(kept).and_then(|kept| kept.object(RULES));
    rules.iter().flat_map(Object::iter).filter_map(rule).collect()
}

/// The JSON in a file that may have comments, and commas before a closing bracket.
fn without_comments(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if matches!(c, '}' | ']') {
            let kept = json.trim_end();
            json.truncate(kept.strip_suffix(',').unwrap_or(kept).len());
        }
        if !(c == '/' && length > 1) {
            json.push_str(token);
        }
    }
    json
}

/// The length of the string that begins here, with its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::{CONTENT, appended, is_set, kept, new_prompt, without_sub_agents};

    #[test]
    fn denials_and_their_exceptions_are_kept() {
        for (texts, wanted) in [
            (&[r#"{"permission":{"bash":"ask","edit":"allow"}}"#][..], ""),
            (&["{ broken", r#"{"permission":"ask"}"#], ""),
            (&[r#"{"permission":"deny"}"#], r#"{"*":{"*":"deny"}}"#),
            (
                &["{// comment\n\"permission\":{\"*\":\"allow\",/* \" */\"bash\":{\"rm *\":\"deny\",},},}"],
                r#"{"bash":{"rm *":"deny"}}"#,
            ),
            (
                &[r#"{"permission":{"*":"deny","read":"allow","mcp_*":"ask"}}"#],
                r#"{"*":{"*":"deny"},"read":{"*":"allow"}}"#,
            ),
            (&[r#"{"permission":{"bash":"deny"}}"#, r#"{"permission":{"bash":"ask"}}"#], ""),
            (
                &[r#"{"permission":{"bash":{"a":"deny"}}}"#, r#"{"permission":{"bash":{"b":"ask"}}}"#],
                r#"{"bash":{"a":"deny","b":"ask"}}"#,
            ),
            (&[r#"{"tools":{"write":false,"bash":true}}"#], r#"{"edit":{"*":"deny"}}"#),
            (&[r#"{"url":"http://x//\"","permission":{"a":"deny"}}"#], r#"{"a":{"*":"deny"}}"#),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let wanted = if wanted.is_empty() { String::new() } else { format!(r#"{{"permission":{wanted}}}"#) };
            assert_eq!(kept(&texts), wanted, "{texts:?}");
        }
    }

    #[test]
    fn the_list_for_sub_agents_keeps_the_users_own() {
        let list = |text: &str| without_sub_agents(&kept(&[text.to_owned()]), &["bash"]);
        let wanted = |tools: &str| format!(r#""experimental":{{"primary_tools":[{tools}]}}"#);
        assert_eq!(list(""), wanted(r#""bash""#));
        assert_eq!(list(r#"{"experimental":{"primary_tools":["x"]}}"#), wanted(r#""bash","x""#));
        assert!(is_set(&kept(&[r#"{"OPENCODE_CONFIG_CONTENT":true}"#.to_owned()]), CONTENT) && !is_set("", CONTENT));
    }

    #[test]
    fn a_new_prompt_is_that_of_the_mode_or_of_the_users_default_agent() {
        let own = kept(&[r#"{"default_agent":"owl"}"#.to_owned()]);
        let wanted = |agent: &str| format!(r#""agent":{{"{agent}":{{"prompt":"Be \u007benv:HOME}}"}}}}"#);
        assert_eq!(new_prompt("", None, "Be {env:HOME}"), wanted("build"));
        assert_eq!(new_prompt(&own, None, "Be {env:HOME}"), wanted("owl"));
        assert_eq!(new_prompt(&own, Some("plan"), "Be {env:HOME}"), wanted("plan"));
    }

    #[test]
    fn a_kept_rule_has_a_name_of_its_own_and_our_action_for_what_it_does_not_deny() {
        let kept = r#"{"permission":{"*":{"*":"deny"},"bash":{"*":"deny","git *":"allow"}}}"#;
        let rules = appended(kept, |tool| if tool == "bash" { "ask" } else { "allow" });
        assert_eq!(rules, [r#""**":{"*":"deny"}"#, r#""bas?":{"*":"deny","git *":"ask"}"#]);
        assert!(appended("", |_| "ask").is_empty());
    }
}

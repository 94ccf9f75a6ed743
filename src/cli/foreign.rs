//! Similar programs: their flags and commands, each with the sentence that names ours. People type what they know from
//! Claude Code, Codex, Gemini CLI, OpenCode and acpx.

use crate::agent::registry::{ANY_COMMAND, Agents};
use crate::suggest::plain_name;
use std::ffi::OsString;

/// The flags, without their dashes: one letter stands for the short form.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("agent-cmd", ANY_COMMAND),
    ("agent-command", ANY_COMMAND),
    ("all", "Use spektacular sessions for the list of sessions."),
    ("allow-dangerously-skip-permissions", "Use --yes to allow every request."),
    ("append-system-prompt", "Use --system-prompt."),
    ("append-system-prompt-file", "Use --system-prompt-file."),
    (
        "approval-mode",
        "Use --permissions: ask, allow, read-only, or edit=allow,*=ask. For the agent's own mode, use --mode.",
    ),
    ("approve-all", "Use --yes."),
    ("approve-for-me", "Use --yes to allow every request."),
    ("approve-reads", "Use --permissions read=allow,search=allow,*=ask."),
    ("ask-for-approval", "Use --permissions."),
    ("attach", "Leave it out: spektacular starts the agent itself."),
    ("auto", "Use --yes to allow every request."),
    ("bare", AGENTS_OWN),
    ("bg", "Leave it out, and let the shell run the command in the background."),
    ("cd", "Use --cwd."),
    ("cmd", ANY_COMMAND),
    ("command", ANY_COMMAND),
    ("config", "Use --agent-arg for the agent's own settings, or spektacular config for lasting defaults."),
    ("dangerously-bypass-approvals-and-sandbox", "Use --yes to allow every request."),
    ("dangerously-skip-permissions", "Use --yes to allow every request."),
    ("debug", "Use --verbose, or --record to record the dialogue with the agent."),
    ("delete-session", "Use spektacular sessions rm."),
    ("deny-all", "Use --permissions deny."),
    ("dir", "Use --cwd."),
    ("disable", AGENTS_OWN),
    ("enable", AGENTS_OWN),
    ("ephemeral", "Use --no-session. The agent may still keep the session itself."),
    ("exec", ANY_COMMAND),
    ("extensions", AGENTS_OWN),
    ("fallback-model", AGENTS_OWN),
    ("file", "Use --prompt-file for a file with the prompt, or --image for an image. Name other files in the prompt."),
    ("fork-session", "Use --fork."),
    ("format", "Use --output cli or --output json."),
    ("full-auto", "Use --permissions edit=allow,execute=allow,*=ask, or --yes to allow every request."),
    ("i", "Use --image for an image, or spektacular chat for a conversation."),
    ("include-directories", "Use --add-dir."),
    ("include-partial-messages", "Use --progress full: then --output json has text as it is written."),
    ("input-format", "Use --input jsonl."),
    ("interactive", "Use spektacular chat, or spektacular open for the agent's own interface."),
    ("json-schema", "Use --output-schema."),
    ("l", "Use spektacular sessions for the list of sessions."),
    ("last", "Use --continue."),
    ("list-sessions", "Use spektacular sessions."),
    ("max-budget-usd", "Use --max-cost-usd."),
    ("mcp-config", "Use --mcp-servers."),
    ("n", "Use --name."),
    ("no-color", "Use --color never."),
    ("no-session-persistence", "Use --no-session. The agent may still keep the session itself."),
    (
        "non-interactive-permissions",
        "Leave it out: without a terminal, permissions that need a person are denied. --fail-on-denied makes the run fail then.",
    ),
    ("o", "Use --output cli or --output json. For a file with the answer, use --quiet and > FILE."),
    ("oss", AGENTS_OWN),
    ("output-format", "Use --output cli or --output json."),
    ("output-last-message", "Leave it out: stdout has the agent's text, and with --quiet only the final one."),
    ("permission-mode", "Use --permissions, or --mode for one of the agent's own modes."),
    (
        "permission-prompt-tool",
        "Leave it out: spektacular asks at the terminal, or with --output json the orchestrator.",
    ),
    ("print", "Leave it out: adhoc prints the answer and exits."),
    ("profile", AGENTS_OWN),
    ("prompt-interactive", "Use spektacular chat, or spektacular open for the agent's own interface."),
    ("r", "Use --resume."),
    ("s", "Use --session for a session. For a sandbox, use --sandbox read-only or --sandbox workspace."),
    ("search", AGENTS_OWN),
    ("session-id", "Use --session."),
    ("setting-sources", AGENTS_OWN),
    ("settings", AGENTS_OWN),
    ("share", "Leave it out: spektacular shares no session."),
    ("skip-git-repo-check", "Leave it out: adhoc also works outside a git repository."),
    ("skip-trust", "Leave it out: adhoc needs no trusted folder."),
    ("strict-mcp-config", AGENTS_OWN),
    ("thinking", "Use --verbose to see the reasoning, or --effort for how much of it there is."),
    ("title", "Use --name."),
    ("tools", "Use --disallowed-tool for each tool to take away, or --allowed-tool for each tool to allow."),
    ("trust", "Leave it out: adhoc needs no trusted folder."),
    ("variant", "Use --effort."),
    ("version", "Use spektacular --version."),
    ("w", "Use --worktree."),
    ("yolo", "Use --yes to allow every request."),
];

/// The flags of `sessions` in acpx.
pub(crate) const SESSIONS_FLAGS: &[(&str, &str)] =
    &[("name", "Use adhoc --name NAME, which begins a session with its first task.")];

const AGENTS_OWN: &str =
    "If it is a flag of the agent itself, pass it on: --agent-arg=--FLAG, and its value with another --agent-arg.";

const COMMANDS: &[(&str, &str)] = &[
    ("auth", "Log in with the agent's own program. agents check shows who is logged in."),
    ("doctor", "Use agents check."),
    ("login", "Log in with the agent's own program. agents check shows who is logged in."),
    ("mcp", "Use adhoc --mcp-servers, or config set mcp_servers."),
    ("models", "Use adhoc --model with the agent's own name for a model."),
    ("prompt", "Use adhoc \"TASK\"."),
    ("resume", "Use adhoc --continue, or adhoc --resume ID."),
    ("version", "Use --version."),
];

/// The sentence about a command of a similar program, or about the name of an agent, which acpx takes as a command.
pub(super) fn command(name: &str) -> Option<String> {
    if let Some((_, ours)) = COMMANDS.iter().find(|(foreign, _)| *foreign == name) {
        return Some((*ours).to_owned());
    }
    Agents::built_in().find(name).map(|_| format!("It is an agent: spektacular adhoc --agent {name} \"TASK\"."))
}

/// The refusal of Codex's `-c KEY=VALUE`, for a command whose `-c` means `--continue`: KEY=VALUE would be the prompt.
pub(super) fn setting(args: &[OsString]) -> Option<String> {
    let args: Vec<&str> = args.iter().map_while(|arg| arg.to_str()).take_while(|arg| *arg != "--").collect();
    let attached = args.iter().filter_map(|arg| arg.strip_prefix("-c")).map(|rest| rest.trim_start_matches('='));
    let next = args.windows(2).filter(|pair| pair[0] == "-c").map(|pair| pair[1]);
    let key = attached.chain(next).filter_map(|text| text.split_once('=')).find_map(|(key, _)| setting_key(key))?;
    let ours = SETTINGS.iter().find(|(name, _)| *name == key).map(|(_, flag)| format!(" For this one, use {flag}."));
    let shown = plain_name(key).unwrap_or("KEY");
    Some(format!(
        "-c means --continue here and takes no value. To continue the last session with {shown}=VALUE as the prompt, use \
         --continue --prompt. To set Codex's own {shown}, use --agent-arg=-c --agent-arg={shown}=VALUE.{}",
        ours.unwrap_or_default()
    ))
}

/// Settings of Codex that have a flag here.
const SETTINGS: &[(&str, &str)] = &[
    ("approval_policy", "--permissions"),
    ("model", "--model"),
    ("model_reasoning_effort", "--effort"),
    ("sandbox_mode", "--sandbox"),
];

/// The key of a setting, such as `model` or `projects."/a".trust_level`. `None`: the text is that of a prompt.
fn setting_key(text: &str) -> Option<&str> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && text.chars().all(is_plain)).then_some(text)
}

/// The refusal of a task that begins as Codex's `exec resume ID`.
pub(super) fn resumed(words: &[String]) -> Option<&'static str> {
    let is_id = |word: &str| {
        let parts: Vec<usize> = word.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    let asks = matches!(words, [first, id, ..] if first == "resume" && is_id(id));
    asks.then_some(
        "To resume a session, use --resume ID, then the task. To give the agent these words, quote them as one.",
    )
}

#[cfg(test)]
mod tests {
    use super::{FLAGS, resumed};

    #[test]
    fn the_flags_are_sorted_and_stand_once() {
        assert!(FLAGS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn only_an_id_after_resume_is_a_session() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(resumed(&words("resume 7f9f9a2e-1b3c-4c7a-9b0e-0123456789ab go on")).is_some());
        for task in ["resume the work", "resume", "go on 7f9f9a2e-1b3c-4c7a-9b0e-0123456789ab"] {
            assert!(resumed(&words(task)).is_none(), "{task}");
        }
    }
}

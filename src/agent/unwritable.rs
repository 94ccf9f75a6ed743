//! An agent that does not start because it cannot write its files. Each agent says so on stderr in words of its own.

use super::TurnOver;
use crate::protocol::failure::Code;
use crate::protocol::outbound::{AgentExit, Text};

/// The agents' words, and the cause. Measured on Codex 0.169.0, Gemini CLI 0.61.0 and OpenCode 1.18.33.
const SIGNS: &[(&str, &str)] = &[
    ("ead-only file system", READ_ONLY),
    ("EROFS", READ_ONLY),
    ("readonly database", READ_ONLY),
    ("o space left on device", FULL),
    ("ENOSPC", FULL),
    ("disk is full", FULL),
    ("isk quota exceeded", FULL),
    ("EDQUOT", FULL),
    ("ermission denied", DENIED),
    ("EACCES", DENIED),
    ("unable to open database file", DENIED),
];

const READ_ONLY: &str = "their file system is read-only";
const FULL: &str = "their disk is full";
const DENIED: &str = "the permissions there do not let it";

pub(crate) fn explained(mut over: TurnOver, exit: AgentExit, stderr: &Text) -> TurnOver {
    if let TurnOver::Failed(failure) = &mut over
        && failure.code == Code::AgentStartFailed
        // A shell's codes for a program that it cannot run.
        && !matches!(exit.code, Some(126 | 127))
        // npm has other files.
        && !stderr.contains("npm error")
        && let Some((_, why)) = SIGNS.iter().find(|(sign, _)| stderr.contains(sign))
    {
        failure.message = format!(
            "The agent did not start because it cannot write its files in HOME, or where a variable moves them: {why}. \
                 Let it write there, or point HOME elsewhere."
        )
        .into();
    }
    over
}

#[cfg(test)]
mod tests {
    use super::explained;
    use crate::agent::TurnOver;
    use crate::protocol::failure::{Code, Failure};
    use crate::protocol::outbound::AgentExit;

    fn message(code: Code, stderr: &str) -> String {
        let over = TurnOver::Failed(Failure::new(code, "As ever."));
        let TurnOver::Failed(failure) = explained(over, AgentExit { code: Some(1), signal: None }, &stderr.into())
        else {
            panic!("it failed")
        };
        failure.message.text().unredacted().to_owned()
    }

    #[test]
    fn the_cause_of_a_failed_start_is_named() {
        let start = Code::AgentStartFailed;
        for (stderr, why) in [
            ("could not create PATH aliases: Read-only file system (os error 30)", "read-only"),
            ("Error: EROFS: read-only file system, mkdir '/h/.local'", "read-only"),
            ("(code: 13) database or disk is full", "disk is full"),
            ("Error: ENOSPC: no space left on device, write", "disk is full"),
            ("EACCES: permission denied, mkdir '/h/.local'", "the permissions"),
        ] {
            assert!(message(start, stderr).contains(why), "{stderr}");
        }
        assert_eq!(message(start, "Unknown option"), "As ever.");
        assert_eq!(message(Code::AgentExited, "No space left on device"), "As ever.");
    }
}

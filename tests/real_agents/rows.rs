//! A row of the table: one function, and a test of it for each agent.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes the tests `row::agent` of functions `row(agent)`. A row of `ours` depends on our side of the dialogue more than
/// on the agent's. Two agents show it; the slow starts of the others belong to the long form.
macro_rules! rows {
    (ours: $($row:ident)*) => {
        $(rows!(of $row: claude Claude, codex Codex; gemini Gemini, opencode OpenCode);)*
    };
    ($($row:ident)*) => {
        $(rows!(of $row: claude Claude, codex Codex, gemini Gemini, opencode OpenCode);)*
    };
    // The oldest supported version of Claude Code must work too.
    (old: $($row:ident)*) => {
        $(rows!(of $row: claude Claude, claude_old OldClaude, codex Codex, gemini Gemini, opencode OpenCode);)*
    };
    // Behind the semicolon are the agents of the long form.
    (of $row:ident: $($name:ident $agent:ident),* $(; $($slow:ident $slow_agent:ident),*)?) => {
        mod $row {
            $(#[test]
            fn $name() {
                $crate::rows::twice(concat!(stringify!($row), "::", stringify!($name)), || {
                    super::$row($crate::agents::Agent::$agent)
                });
            })*
            $($(#[test]
            #[ignore = "long form: run with --include-ignored"]
            fn $slow() {
                $crate::rows::twice(concat!(stringify!($row), "::", stringify!($slow)), || {
                    super::$row($crate::agents::Agent::$slow_agent)
                });
            })*)?
        }
    };
}

/// Repeats a failed test once, and reports that. The agents, their tools and the machine are not under our control, and
/// a moment without a processor is not a fault of the program. A real fault fails twice.
pub(crate) fn twice(name: &str, test: impl Fn()) {
    let Err(cause) = catch_unwind(AssertUnwindSafe(&test)) else { return };
    let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
    // The harness hides the output of eprintln if the second attempt passes.
    let why = text.unwrap_or("a panic without a text");
    writeln!(std::io::stderr(), "{name} failed and is tried again: {why}").expect("stderr");
    test();
}

//! Output of `adhoc --dry-run`, as text or as one JSON object.

use crate::clean::shell_word;
use crate::cli::Output;
use crate::engine::dry_run::Plan;
use crate::io::output::print;
use crate::json::to_line;
use crate::protocol::failure::EXIT_UNDELIVERED;
use serde_json::json;

/// Prints the plan; returns the exit code.
pub(super) fn show(plan: &Plan, output: Output) -> u8 {
    let text = match output {
        Output::Json => to_line(&json!(plan)),
        Output::Cli => for_people(plan),
    };
    if print(&format!("{text}\n")) { 0 } else { EXIT_UNDELIVERED }
}

/// The plan as text, without a line end.
pub(super) fn for_people(plan: &Plan) -> String {
    let path = plan.path.as_deref().unwrap_or("not found");
    let words: Vec<String> = plan.command.iter().map(|word| shell_word(word)).collect();
    let mut lines = vec![
        format!("agent        {} ({})", plan.agent, plan.driver),
        format!("program      {path}"),
        format!("command      {}", words.join(" ")),
        format!("directory    {}", plan.cwd),
        format!("environment  {}", in_words(&plan.env_set, &plan.env_removed)),
    ];
    lines.extend(plan.images.iter().map(|path| format!("image        {path}")));
    lines.extend(plan.warnings.iter().map(|warning| format!("warning      {}", warning.for_person().shown())));
    let lines: Vec<_> = lines.iter().map(|line| crate::clean::whole(line)).collect();
    lines.join("\n")
}

fn in_words(set: &[String], removed: &[String]) -> String {
    let parts = [("sets", set), ("removes", removed)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(verb, names)| format!("{verb} {}", names.join(" "))).collect();
    if parts.is_empty() { "unchanged".into() } else { parts.join("; ") }
}

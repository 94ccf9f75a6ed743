//! Output of `adhoc --dry-run`, as text or as one JSON object.

use crate::clean::shell_word;
use crate::cli::Output;
use crate::engine::dry_run::Plan;
use crate::io::output::print;
use crate::json::to_line;
use crate::protocol::failure::EXIT_UNDELIVERED;
use serde_json::{Value, json};

/// Prints the plan; returns the exit code.
pub(super) fn show(plan: &Plan, output: Output) -> u8 {
    let text = match output {
        Output::Json => to_line(&object(plan)),
        Output::Cli => for_people(plan),
    };
    if print(&format!("{text}\n")) { 0 } else { EXIT_UNDELIVERED }
}

/// The plan as JSON.
pub(super) fn object(plan: &Plan) -> Value {
    json!({
            "agent": plan.agent,
            "driver": plan.driver,
            "command": plan.command,
            "path": plan.path.as_ref().map(|path| path.to_string_lossy()),
            "cwd": plan.cwd.to_string_lossy(),
            "images": plan.images,
            "env_set": plan.env_set,
            "env_removed": plan.env_removed,
            "warnings": plan.warnings.iter().map(|warning| warning.text().shown()).collect::<Vec<_>>(),
    })
}

/// The plan as text, without a line end.
pub(super) fn for_people(plan: &Plan) -> String {
    let path = plan.path.as_ref().map_or("not found".into(), |path| path.to_string_lossy());
    let words: Vec<String> = plan.command.iter().map(|word| shell_word(word)).collect();
    let mut lines = vec![
        format!("agent        {} ({})", plan.agent, plan.driver),
        format!("program      {path}"),
        format!("command      {}", words.join(" ")),
        format!("directory    {}", plan.cwd.display()),
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

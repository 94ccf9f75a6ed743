//! The demo agent in a workflow. It speaks like a real agent, but has no model and always writes the same files.

use super::lines::{PlayerLine, quoted};
use super::player::{DemoStage, Played, Player};
use crate::json::to_line;
use serde_json::json;

const HELLO: &str = "spektacular-demo/hello.txt";
const GOODBYE: &str = "spektacular-demo/goodbye.txt";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DemoPart {
    /// Writes a specification to this file.
    Spec(String),
    Plan {
        folder: String,
        /// The path and the text of the specification.
        spec: (String, String),
    },
    /// `again`: whether its commands have failed before.
    Phase { number: u64, again: bool },
}

impl DemoPart {
    /// `None`: the prompt does not come from a workflow.
    pub(super) fn of(prompt: &str, stage: &mut dyn DemoStage) -> Option<DemoPart> {
        let line = |prefix: &str| prompt.lines().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
        let has = |wanted: &str| prompt.lines().any(|line| line == wanted);
        let again = has("# Verification failed");
        if let Some(phase) = line("# Implement Phase ") {
            let number = phase.split(':').next().and_then(|number| number.parse().ok())?;
            return Some(DemoPart::Phase { number, again });
        }
        if again {
            return Some(DemoPart::Phase { number: 2, again });
        }
        if has("# Create a specification") || (prompt.starts_with('/') && line("File: ").is_some()) {
            return line("File: ").map(DemoPart::Spec);
        }
        if has("# Specification to Plan") {
            let (_, text) = prompt.split_once("\n# Specification to Plan\n")?;
            let path = prompt.split_once("`Spec: ").and_then(|(_, rest)| rest.split_once('`'));
            let path = path.map(|(path, _)| path.to_owned()).unwrap_or_default();
            return Some(DemoPart::Plan { folder: line("Folder: ")?, spec: (path, text.to_owned()) });
        }
        has("# Continue").then(|| line("Draft: ")).flatten().map(|draft| DemoPart::going_on(draft, stage))
    }

    fn going_on(draft: String, stage: &mut dyn DemoStage) -> DemoPart {
        if draft.ends_with(".md") {
            return DemoPart::Spec(draft);
        }
        let plan = stage.read(&format!("{draft}/plan.md")).unwrap_or_default();
        let path = plan.lines().find_map(|line| line.strip_prefix("Spec: ")).unwrap_or_default().to_owned();
        let text = stage.read(&path).unwrap_or_default();
        DemoPart::Plan { folder: draft, spec: (path, text) }
    }

    pub(super) fn play(self, player: &mut Player<'_>) -> Played<()> {
        let last = match self {
            DemoPart::Spec(file) => spec(player, &file)?,
            DemoPart::Plan { folder, spec } => plan(player, &folder, &spec)?,
            DemoPart::Phase { number, again } => phase(player, number, again)?,
        };
        say(player, &last);
        let usage = r#"{"input_tokens":140,"cached_input_tokens":20,"output_tokens":40,"cost_usd":0}"#;
        player.send(PlayerLine::default().with("usage", usage));
        Ok(())
    }
}

fn say(player: &mut Player<'_>, text: &str) {
    player.send(PlayerLine::default().with("say", &quoted(text)).with("done", "true"));
}

fn spec(player: &mut Player<'_>, file: &str) -> Played<String> {
    say(player, "I am the demo agent: I ask one question, and write a specification that is always the same.");
    let question = json!({"question": "Which style should the greeting have?", "header": "Style", "kind": "select",
        "options": [{"label": "Plain", "description": "One line."},
            {"label": "Warm", "description": "One line, and an exclamation mark."}]});
    let answer = player.ask(&[to_line(&question)])?.into_iter().next().flatten();
    let style = answer.as_ref().map_or("plain".into(), |words| words.join(" ").to_lowercase());
    let assumed = match answer {
        Some(_) => "",
        None => "\n## Assumptions\n\n- A plain style is fine: nobody was there to ask.\n",
    };
    let text = format!(
        "# A greeting\n\n## Overview\n\nThe project greets whoever reads it, in a {style} style, and says goodbye.\n\n\
         ## Requirements\n\n- [ ] R1: A file holds the greeting.\n- [ ] R2: The greeting is addressed to the world.\n\
         - [ ] R3: A second file says goodbye.\n\n\
         ## Acceptance Criteria\n\n- Both files exist and are not empty.\n- Each contains its word.\n{assumed}"
    );
    Ok(match player.write(file, &text)? {
        true => format!("{file} created with 3 tasks"),
        false => format!("{file} could not be written."),
    })
}

fn plan(player: &mut Player<'_>, folder: &str, (path, text): &(String, String)) -> Played<String> {
    say(player, "I am the demo agent: I write a plan of two phases.");
    let ids = player.stage.requirements(text);
    let (first, second) = ids.split_at(ids.len().div_ceil(2));
    let plan = format!(
        "# Plan: A greeting\nSpec: {path}\n\n## Phase 1: The greeting\n\n- [ ] T1.1 Write the greeting to {HELLO}{}\n\n\
         ### Verify\n\n```sh\ntest -s {HELLO}\n```\n\n## Phase 2: The farewell\n\n\
         - [ ] T2.1 Say goodbye in {GOODBYE}{}\n\n### Verify\n\n```sh\ntest -s {GOODBYE}\ngrep -q Goodbye {GOODBYE}\n```\n",
        serves(first),
        serves(second)
    );
    let files = [
        ("plan.md", plan.as_str()),
        ("research.md", "# Research\n\nTwo new files do not depend on anything in the project.\n"),
        ("context.md", "# Context\n\nThe files have their own folder, so nothing else changes.\n"),
    ];
    for (name, text) in files {
        if !player.write(&format!("{folder}/{name}"), text)? {
            return Ok(format!("{folder} could not be written."));
        }
    }
    Ok(format!("{folder} created with 2 phases and 2 tasks"))
}

fn phase(player: &mut Player<'_>, number: u64, again: bool) -> Played<String> {
    let (file, text) = match (number, again) {
        (1, _) => (HELLO, "Hello, world.\n"),
        // A deliberate mistake that the commands find.
        (2, false) => (GOODBYE, "Godbye, world.\n"),
        (2, true) => (GOODBYE, "Goodbye, world.\n"),
        _ => return Ok("I am the demo agent: I know only the two phases of my own plan.".into()),
    };
    let mends = again && player.stage.read(file).is_some();
    Ok(match player.write(file, text)? {
        true if mends => format!("There was a spelling mistake in {file}: I corrected it."),
        true => format!("I wrote {file}."),
        false => format!("{file} could not be written."),
    })
}

fn serves(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("R{id}")).collect();
    if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::DemoPart;
    use crate::agent::demo::player::{DemoStage, HeardLine, Wait};
    use std::time::Duration;

    struct Silent;

    impl DemoStage for Silent {
        fn print(&mut self, _: &str) -> bool {
            false
        }
        fn complain(&mut self, _: &str) {}
        fn hear(&mut self, _: Wait) -> HeardLine {
            HeardLine::Ended
        }
        fn now(&self) -> Duration {
            Duration::ZERO
        }
        fn write(&mut self, _: &str, _: &str, _: bool) -> Option<bool> {
            None
        }
        fn delete(&mut self, _: &str) -> bool {
            false
        }
        fn read(&mut self, _: &str) -> Option<String> {
            None
        }
        fn requirements(&self, _: &str) -> Vec<u64> {
            Vec::new()
        }
    }

    #[test]
    fn the_prompt_decides_the_part() {
        let plan = "The plan has the line `Spec: a.md`.\nFolder: p.draft\n# Specification to Plan\n# T\n";
        for (prompt, role) in [
            ("say hello", None),
            ("# Create a specification\nFile: a.draft.md\n", Some(DemoPart::Spec("a.draft.md".into()))),
            ("/spec\n\nDescription: x\nFile: a.draft.md\n", Some(DemoPart::Spec("a.draft.md".into()))),
            (plan, Some(DemoPart::Plan { folder: "p.draft".into(), spec: ("a.md".into(), "# T\n".into()) })),
            ("# Implement Phase 2: The farewell\n", Some(DemoPart::Phase { number: 2, again: false })),
            ("# Implement Phase 1: X\n\n# Verification failed\n", Some(DemoPart::Phase { number: 1, again: true })),
            ("# Verification failed\nAttempt 2 of 3\n", Some(DemoPart::Phase { number: 2, again: true })),
            ("# Continue\n\nDraft: b.draft.md\n", Some(DemoPart::Spec("b.draft.md".into()))),
        ] {
            assert_eq!(DemoPart::of(prompt, &mut Silent), role, "{prompt}");
        }
    }
}

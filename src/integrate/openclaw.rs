//! The integration with OpenClaw: a plugin with a tool and a backend. `openclaw.md` describes it for users.

use super::{Here, Integration};
use crate::json::to_line;
use serde_json::json;

pub(super) const OPENCLAW: Integration = Integration {
    name: "openclaw",
    about: "a plugin for OpenClaw: a tool, and agents as models",
    files: Some(files),
    setup,
};

const MANIFEST: &str = include_str!("openclaw/openclaw.plugin.json");
/// The manifest's list of models, which the command fills in.
const NO_MODELS: &str = "\"models\": []";

fn files(here: &Here<'_>) -> Vec<(&'static str, String)> {
    let model = |name: &str, display_name: &str| {
        to_line(&json!({
            "id": name, "name": format!("{display_name} (spektacular)"), "reasoning": true, "input": ["text"],
            "contextWindow": 200_000, "maxTokens": 64_000,
        }))
    };
    let models: Vec<String> = here.agents.iter().map(|agent| model(&agent.name, &agent.display_name)).collect();
    let models = format!("\"models\": [\n      {}\n    ]", models.join(",\n      "));
    vec![
        ("package.json", include_str!("openclaw/package.json").to_owned()),
        ("openclaw.plugin.json", MANIFEST.replace(NO_MODELS, &models)),
        ("index.js", include_str!("openclaw/index.js").to_owned()),
        ("skills/spektacular/SKILL.md", include_str!("openclaw/skills/spektacular/SKILL.md").to_owned()),
    ]
}

const SETUP: &str = include_str!("openclaw/setup.txt");

/// The text of `setup.txt` with this machine's paths, each as a JSON string.
fn setup(here: &Here<'_>) -> String {
    let quoted = |text: &str| to_line(&json!(text));
    let model = quoted(&format!("spektacular/{}", here.default));
    SETUP
        .replace("\"PROGRAM\"", &quoted(here.program))
        .replace("\"DIR\"", &quoted(here.folder))
        .replace("\"MODEL\"", &model)
        .replace("\"AGENT\"", &quoted(here.default))
}

#[cfg(test)]
mod tests {
    use super::{MANIFEST, NO_MODELS};

    #[test]
    fn the_manifest_has_one_place_for_the_models() {
        assert_eq!(MANIFEST.matches(NO_MODELS).count(), 1);
    }
}

//! The integrations: files that let another program use this one, and the configuration that the other program needs on
//! this machine. Pure: the caller writes the files.

use crate::agent::registry::Agent;
use crate::clean::shell_word;
use crate::json::to_line;
use crate::protocol::publish::Client;
use serde_json::json;

/// Returns the files as relative paths with their texts. Every folder of a path comes from the files alone.
type Files = fn(&Here) -> Vec<(&'static str, String)>;

#[derive(Debug)]
pub(crate) struct Integration {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The files. `None`: the configuration is all that the other program needs.
    pub(crate) files: Option<Files>,
    /// The configuration of the other program, and how to check it.
    pub(crate) setup: fn(&Here) -> String,
}

#[derive(Debug)]
pub(crate) struct Here<'a> {
    /// The whole path of this program.
    pub(crate) program: &'a str,
    /// The folder of the integration's files, or a placeholder for it.
    pub(crate) folder: &'a str,
    pub(crate) agents: Vec<&'a Agent>,
    pub(crate) default: &'a str,
}

pub(crate) const INTEGRATIONS: &[Integration] = &[OPENCLAW, ZED, ACPX, RAY, KUBERNETES, GITHUB];

pub(crate) const NAMES: &[&str] = &[OPENCLAW.name, ZED.name, ACPX.name, RAY.name, KUBERNETES.name, GITHUB.name];

/// `openclaw.md` describes it for users.
const OPENCLAW: Integration = Integration {
    name: "openclaw",
    about: "a plugin for OpenClaw: a tool, and agents as models",
    files: Some(openclaw_files),
    setup: openclaw,
};

const MANIFEST: &str = include_str!("integrate/openclaw/openclaw.plugin.json");
/// The manifest's list of models, which the command fills in.
const NO_MODELS: &str = "\"models\": []";

fn openclaw_files(here: &Here<'_>) -> Vec<(&'static str, String)> {
    let model = |name: &str, display_name: &str| {
        to_line(&json!({
            "id": name, "name": format!("{display_name} (spektacular)"), "reasoning": true, "input": ["text"],
            "contextWindow": 200_000, "maxTokens": 64_000,
        }))
    };
    let models: Vec<String> = here.agents.iter().map(|agent| model(&agent.name, &agent.display_name)).collect();
    let models = format!("\"models\": [\n      {}\n    ]", models.join(",\n      "));
    vec![
        ("package.json", include_str!("integrate/openclaw/package.json").to_owned()),
        ("openclaw.plugin.json", MANIFEST.replace(NO_MODELS, &models)),
        ("index.js", include_str!("integrate/openclaw/index.js").to_owned()),
        ("skills/spektacular/SKILL.md", include_str!("integrate/openclaw/skills/spektacular/SKILL.md").to_owned()),
    ]
}

const SETUP: &str = include_str!("integrate/openclaw/setup.txt");

fn openclaw(here: &Here<'_>) -> String {
    let quoted = |text: &str| to_line(&json!(text));
    let model = quoted(&format!("spektacular/{}", here.default));
    SETUP
        .replace("\"PROGRAM\"", &quoted(here.program))
        .replace("\"DIR\"", &quoted(here.folder))
        .replace("\"MODEL\"", &model)
        .replace("\"AGENT\"", &quoted(here.default))
}

/// `src/acp/reference.md` describes how clients of the Agent Client Protocol work with us.
const ZED: Integration =
    Integration { name: "zed", about: "an agent in the editor Zed, over ACP", files: None, setup: zed };

const ACPX: Integration = Integration {
    name: "acpx",
    about: "an agent for the command-line client acpx, over ACP",
    files: None,
    setup: acpx,
};

fn zed(here: &Here<'_>) -> String {
    let (program, agent) = quoted(here);
    format!(
        "Add this to the settings of Zed (zed: open settings file):\n\n\
         {{\"agent_servers\": {{\n  \"spektacular\": {{\n    \"type\": \"custom\",\n    \"command\": {program},\n    \
         \"args\": [\"acp\", \"--agent\", {agent}],\n    \"env\": {{}}\n  }}\n}}}}\n\n\
         Then start a new thread with spektacular in the agent panel.\n"
    )
}

fn acpx(here: &Here<'_>) -> String {
    let (program, agent) = quoted(here);
    format!(
        "Add this to ~/.acpx/config.json:\n\n\
         {{\"agents\": {{\n  \"spektacular\": {{\n    \"command\": {program},\n    \
         \"args\": [\"acp\", \"--agent\", {agent}]\n  }}\n}}}}\n\n\
         To try it: acpx spektacular sessions new, then acpx spektacular \"explain this repository\"\n\
         acpx decides about permissions with its own flags, such as --approve-reads. It does not answer forms, so a question comes as text: \
         the next prompt answers it.\n"
    )
}

/// The program and the default agent as JSON strings.
fn quoted(here: &Here<'_>) -> (String, String) {
    (to_line(&json!(here.program)), to_line(&json!(here.default)))
}

// Many runs on several machines, by schedulers that exist. A test runs or checks each of these recipes.

const RAY: Integration =
    Integration { name: "ray", about: "many runs on a Ray cluster, in Python", files: Some(ray_files), setup: ray };

const KUBERNETES: Integration = Integration {
    name: "kubernetes",
    about: "many runs as an indexed Job of Kubernetes",
    files: Some(|_| vec![("tasks.yaml", include_str!("integrate/many/tasks.yaml").to_owned())]),
    setup: |here| {
        format!(
            "Name your image and your tasks in the file, then: kubectl apply -f {}/tasks.yaml\n",
            shell_word(here.folder)
        )
    },
};

const GITHUB: Integration = Integration {
    name: "github",
    about: "many runs as a matrix of GitHub Actions",
    files: Some(|_| {
        let workflow =
            include_str!("integrate/many/tasks.yml").replace(": VERSION", concat!(": ", env!("CARGO_PKG_VERSION")));
        vec![("tasks.yml", workflow)]
    }),
    setup: |here| {
        format!(
            "Move {}/tasks.yml into .github/workflows, name the release and its checksum at its top, and put your \
             tasks into its matrix.\n",
            here.folder
        )
    },
};

fn ray_files(_: &Here<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("ray_runs.py", include_str!("integrate/many/ray_runs.py").to_owned()),
        ("spektacular.py", Client::Python.file()),
        ("tasks.jsonl", include_str!("integrate/many/tasks.jsonl").to_owned()),
    ]
}

fn ray(here: &Here<'_>) -> String {
    format!(
        "With spektacular and the agent on the PATH of each node of the cluster:\n\n\
         cd {} && python ray_runs.py tasks.jsonl results.jsonl\n",
        shell_word(here.folder)
    )
}

#[cfg(test)]
mod tests {
    use super::{INTEGRATIONS, MANIFEST, NAMES, NO_MODELS};

    #[test]
    fn the_names_are_those_of_the_integrations() {
        let names: Vec<&str> = INTEGRATIONS.iter().map(|one| one.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn the_manifest_has_one_place_for_the_models() {
        assert_eq!(MANIFEST.matches(NO_MODELS).count(), 1);
    }
}

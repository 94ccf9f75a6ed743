//! Recipes for many runs on several machines, by schedulers that exist. A test runs or checks each of them.

use super::{Here, Integration};
use crate::clean::shell_word;
use crate::protocol::publish::Client;

pub(super) const RAY: Integration =
    Integration { name: "ray", about: "many runs on a Ray cluster, in Python", files: Some(ray_files), setup: ray };

pub(super) const KUBERNETES: Integration = Integration {
    name: "kubernetes",
    about: "many runs as an indexed Job of Kubernetes",
    files: Some(|_| vec![("tasks.yaml", include_str!("many/tasks.yaml").to_owned())]),
    setup: |here| {
        format!(
            "Name your image and your tasks in the file, then: kubectl apply -f {}/tasks.yaml\n",
            shell_word(here.folder)
        )
    },
};

pub(super) const GITHUB: Integration = Integration {
    name: "github",
    about: "many runs as a matrix of GitHub Actions",
    files: Some(|_| {
        let workflow = include_str!("many/tasks.yml").replace(": VERSION", concat!(": ", env!("CARGO_PKG_VERSION")));
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
        ("ray_runs.py", include_str!("many/ray_runs.py").to_owned()),
        ("spektacular.py", Client::Python.file()),
        ("tasks.jsonl", include_str!("many/tasks.jsonl").to_owned()),
    ]
}

fn ray(here: &Here<'_>) -> String {
    format!(
        "With spektacular and the agent on the PATH of each node of the cluster:\n\n\
         cd {} && python ray_runs.py tasks.jsonl results.jsonl\n",
        shell_word(here.folder)
    )
}

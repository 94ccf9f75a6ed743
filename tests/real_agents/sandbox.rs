//! The sandbox: the attacks of an agent that may do everything, and the work that it must be able to do.

use serde_json::json;

use crate::agents::Agent;
use crate::client::{permission, run};
use crate::lab::Lab;
use crate::support::attacks::{self, MODES, Tools};

rows!(no_attack_works);
rows!(ours: no_attack_of_an_ordinary_user_works);

fn no_attack_works(agent: Agent) {
    attack(agent, "");
}

/// In a user namespace of its own, the user has no privilege.
fn no_attack_of_an_ordinary_user_works(agent: Agent) {
    attack(agent, "unshare --map-user=1000 --map-group=1000");
}

/// Runs all attacks by a tool of the agent. The results of its tools reach the model.
#[track_caller]
fn attack(agent: Agent, user: &str) {
    let tools = Tools::of_machine();
    for mode in 0..MODES.len() {
        let mut lab = Lab::new(agent, "attacks");
        lab.case = attacks::prepare(lab.case);
        let script = attacks::script(&lab.case, &tools);
        let plant = "echo evil > .git/hooks/pre-commit\necho x > .spektacular/config.json\ntrue\n";
        lab.case = lab.case.file("work/attacks.sh", &(script + plant)).file("work/.spektacular/config.json", "{}");
        lab.case = attacks::inheriting(lab.case, user);
        let run = run(lab, json!({"sandbox": attacks::sandbox(mode, &tools)}), permission("allow_once"));
        run.completed("Tried it all.");
        attacks::check(&run.outcome, (mode, &tools), &run.stub().tool_results().join("\n"), false);
        assert_eq!(run.outcome.frames[0]["payload"]["config"]["sandbox"]["git"], "protected");
        // Codex makes skills of its own in a new home.
        let work = run.outcome.case().work().display().to_string();
        let planted = run.outcome.warnings("protected_changed");
        assert!(!planted.iter().any(|warning| warning.text("text").contains(&work)));
    }
}

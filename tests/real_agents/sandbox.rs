//! The sandbox: the attacks of an agent that may do everything.

use std::fs;

use serde_json::json;

use crate::agents::Agent;
use crate::client::{permission, run};
use crate::lab::Lab;

rows!(nothing_leaves_the_sandbox);

/// Each line is an attack, which leaves a file if it works.
const ATTACKS: &str = "\
echo x > inside.txt
echo x > $TMPDIR/file && touch temporary.txt
(echo x > $HOME/escaped) && touch wrote.txt
(echo '{}' >> $HOME/.claude/settings.json) && touch claude.txt
(echo >> $HOME/.codex/config.toml) && touch codex.txt
cat $HOME/.ssh/id_test > /dev/null && touch read.txt
cat /proc/self/root$HOME/.ssh/id_test > /dev/null && touch root.txt
ln $HOME/.ssh/id_test hard && touch linked.txt
mv $HOME/.ssh/id_test stolen && touch moved.txt
kill -0 1 && touch signalled.txt
git status > /dev/null && touch git.txt
echo evil > .git/hooks/pre-commit
setsid sleep 300 > /dev/null 2>&1 &
true
";

fn nothing_leaves_the_sandbox(agent: Agent) {
    let mut lab = Lab::new(agent, "attacks");
    lab.case = lab.case.file("home/.ssh/id_test", "private").file("work/attacks.sh", ATTACKS);
    let run = run(lab, json!({"sandbox": "workspace"}), permission("allow_once"));
    run.completed("Tried it all.");
    let case = run.outcome.case();
    let made: Vec<String> = run.files().into_iter().filter(|name| name.ends_with(".txt")).collect();
    assert_eq!(made, ["git.txt", "inside.txt", "old.txt", "temporary.txt"]);
    assert!(!case.path("home/escaped").exists());
    assert_eq!(fs::read_to_string(case.path("home/.ssh/id_test")).unwrap(), "private");
    let changed = run.outcome.warnings("protected_changed");
    assert!(changed[0].text("text").contains(".git/hooks/pre-commit"));
    assert_eq!(case.survivors(), [""; 0]);
}

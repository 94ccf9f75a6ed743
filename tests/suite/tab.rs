//! Completions in real shells at a terminal: a real Tab completes the line, and a stub prints the command that the
//! shell then runs.

use crate::support::Case;
use crate::support::machine::not_checked;
use std::path::Path;

/// The typed text before Tab, and the arguments of the completed command.
const ROWS: [(&str, &str); 9] = [
    ("spektacular ad", "[adhoc]"),
    ("spektacular adhoc --dry", "[adhoc --dry-run]"),
    ("spektacular run --permissions de", "[run --permissions deny]"),
    ("spektacular exec -a opencod", "[exec -a opencode]"),
    ("spektacular config un", "[config unset]"),
    ("spektacular config get fail", "[config get fail_on_denied]"),
    (
        "spektacular config --output json set on_question_timeout c",
        "[config --output json set on_question_timeout continue]",
    ),
    ("spektacular agents check --all min", "[agents check --all mine]"),
    ("spektacular completions po", "[completions powershell]"),
];

/// `start` runs the shell without the user's files. `setup` prepares it to complete.
#[track_caller]
fn completes(shell: &str, start: &str, setup: &str) {
    if !["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(shell).exists()) {
        return not_checked(&format!("a real Tab in {shell}"), "it is not installed");
    }
    let mut person = Case::new()
        .file("home/.config/spektacular/config.json", r#"{"agents":{"mine":{"driver":"acp","command":"mine"}}}"#)
        .script("bin/spektacular", "echo \"[$*]\"")
        .shell(&format!("\"$@\" >\"$HOME/script\" && exec {start}"))
        .at_terminal(&["completions", shell]);
    // The output differs from the shell's echo of this line.
    person.types(&format!("{setup}; echo re''ady\n"));
    person.waits_for("ready");
    for (line, wanted) in ROWS {
        person.types(&format!("{line}\t\n"));
        person.waits_for(wanted);
    }
    person.types("exit\n");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn bash_completes_at_a_tab() {
    completes("bash", "bash --noprofile --norc -i", "source ~/script");
}

#[test]
fn zsh_completes_at_a_tab() {
    completes("zsh", "zsh -f -i", "autoload -Uz compinit && compinit -u -D && source ~/script");
}

#[test]
fn fish_completes_at_a_tab() {
    completes("fish", "fish --no-config -i", "source ~/script");
}

#[test]
fn elvish_completes_at_a_tab() {
    completes("elvish", "elvish -norc", "eval (slurp < ~/script)");
}

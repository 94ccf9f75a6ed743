//! Completions in real shells at a terminal: a real Tab completes the line. The shell asks the program; for the command
//! that it then runs, a stub prints the arguments.

use crate::support::Case;
use crate::support::machine::not_checked;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");

/// The typed text before Tab, and the arguments of the completed command.
const ROWS: [(&str, &str); 14] = [
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
    ("spektacular adhoc --output=js", "[adhoc --output=json]"),
    ("spektacular open --session ses", "[open --session ses_7]"),
    ("spektacular implement quick", "[implement quick-start]"),
    ("spektacular implement ./pl", "[implement ./plan.md]"),
    ("spektacular adhoc -C fold", "[adhoc -C folder"),
];

/// `start` runs the shell without the user's files. `setup` prepares it to complete.
#[track_caller]
fn completes(shell: &str, start: &str, setup: &str) {
    if !["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(shell).exists()) {
        return not_checked(&format!("a real Tab in {shell}"), "it is not installed");
    }
    let case = Case::new()
        .file("home/.config/spektacular/config.json", r#"{"agents":{"mine":{"driver":"acp","command":"mine"}}}"#)
        .file("work/.spektacular/local/sessions/mine", "ses_7\t1\tit's [a] \"$(touch hacked)\" `touch hacked`: \\n;\n")
        .file("work/.spektacular/plans/quick-start/plan.md", "")
        .file("work/plan.md", "")
        .file("work/folder/file", "")
        .script(
            "bin/spektacular",
            &format!("case $1 in\n__complete) exec '{PROGRAM}' \"$@\" ;;\n*) echo \"[$*]\" ;;\nesac"),
        );
    let hacked = case.path("work/hacked");
    let mut person =
        case.shell(&format!("\"$@\" >\"$HOME/script\" && exec {start}")).at_terminal(&["completions", shell]);
    // The output differs from the shell's echo of this line.
    person.types(&format!("{setup}; echo re''ady\n"));
    person.waits_for("ready");
    for (line, wanted) in ROWS {
        // Where elvish quotes the word, the first Enter only accepts it.
        person.types(&format!("{line}\t\n\n"));
        person.waits_for(wanted);
    }
    assert!(!hacked.exists(), "a description was evaluated");
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

//! Tests of what a person types while a run shows itself and asks nothing: it is not on the screen, the shell gets it,
//! and the echo is back after every way out.

use rustix::process::{Pid, Signal, kill_process};

use super::codex::Codex;
use super::showing::{WAITS, lets_it_go_on};
use crate::support::agent::{Script, bash};
use crate::support::person::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, Person};
use crate::support::{Case, io, limit};

const RUN: &[&str] = &["adhoc", "go"];
/// What is typed ahead.
const TYPED: &str = "echo typed-$((40 + 2))";

/// A run with a tool that works until the test lets it go on.
fn works() -> Script {
    Script::new().tool_use("c1", "Bash", &bash("sleep")).sh(WAITS).tool_result("c1", "").done("Done.")
}

/// A person who sees the status line of a run.
fn at_work(case: Case) -> Person {
    let mut person = case.at_terminal(RUN);
    person.waits_for("s] Run sleep");
    person
}

#[track_caller]
fn echo_becomes(person: &Person, echo: bool) {
    assert!(io::wait_for(limit(), || person.echo() == echo), "echo: {}", !echo);
}

/// An interactive shell that knows the program as `"$B"` and prints `% ` before each line.
fn at_shell(script: Script, shell: &str) -> Person {
    let case = Case::with(script).env("PS1", "% ").shell(&format!("export B=\"$1\"; exec {shell}"));
    let mut person = case.at_terminal(&[]);
    person.waits_for("% ");
    person
}

#[test]
fn typed_lines_are_not_shown_and_the_shell_gets_them() {
    let case = Case::with(works()).shell("\"$@\"; read line; echo \"the shell got <$line>\"");
    let mut person = at_work(case);
    person.types("a liX\u{7f}ne\n");
    assert!(io::wait_for(limit(), || person.typed_ahead() > 0));
    lets_it_go_on(&person);
    person.waits_for("the shell got <a line>");
    assert_eq!(person.ends().0, 0);
    let screen = person.screen();
    assert!(screen[0].starts_with("* Run sleep") && screen[1] == "Done.", "{screen:?}");
    assert_eq!(screen.concat().matches("a li").count(), 1, "{screen:?}");
}

#[test]
fn a_prompt_from_a_file_leaves_the_typed_lines_unseen_too() {
    let case = Case::with(works()).file("work/task", "A task").shell("\"$@\" <task");
    let mut person = case.at_terminal(&["adhoc", "-"]);
    person.waits_for("s] Run sleep");
    person.types("a line\n");
    assert!(io::wait_for(limit(), || person.typed_ahead() > 0));
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    assert!(person.echo() && !person.screen().concat().contains("a line"), "{:?}", person.screen());
}

#[test]
fn a_shell_with_an_editor_of_its_own_shows_the_typed_line_at_its_prompt() {
    let mut person = at_shell(works(), "bash --norc --noprofile -i");
    person.types("\"$B\" adhoc go\n");
    person.waits_for("s] Run sleep");
    person.types(&format!("{TYPED}\n"));
    assert!(io::wait_for(limit(), || person.typed_ahead() > 0));
    lets_it_go_on(&person);
    let seen = person.waits_for("session ");
    assert!(!seen.contains("typed"), "{seen:?}");
    person.waits_for("% ");
    person.waits_for("typed-42");
    person.types("exit\n");
    person.ends();
}

#[test]
fn the_echo_is_back_after_every_way_out() {
    let leaves = |name: &str, leave: &dyn Fn(&mut Person)| {
        let mut person = at_work(Case::with(works()));
        assert!(!person.echo(), "{name}");
        leave(&mut person);
        person.ends();
        assert!(person.echo(), "{name}");
        assert!(!person.screen().concat().contains("^C"), "{name}: {:?}", person.screen());
    };
    leaves("done", &|person| lets_it_go_on(person));
    for key in [CTRL_C, CTRL_BACKSLASH] {
        leaves(&key.escape_unicode().to_string(), &|person| person.types(key));
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::USR1, Signal::ALARM, Signal::IO] {
        leaves(&format!("{signal:?}"), &|person| person.signals(signal));
    }
    leaves("twice", &|person| {
        person.signals(Signal::TERM);
        person.signals(Signal::TERM);
    });
    let mut person = Case::with(Script::new().say("m1", "I try.").sh("exit 3")).at_terminal(RUN);
    assert_ne!(person.ends().0, 0);
    assert!(person.echo(), "the agent's failure");
}

#[test]
fn a_question_has_the_keys_and_hushes_the_terminal_again_behind_it() {
    let codex = Codex::new().asks_to_run("make").waits_for_file("go").says("Done.");
    let mut person = Case::new().program("codex", &codex).at_terminal(&["adhoc", "--agent", "codex", "go"]);
    person.answers("Allow this command?", "y");
    person.waits_for("s] ");
    echo_becomes(&person, false);
    person.types("more\n");
    // Line mode is back too: a whole line waits for the shell.
    assert!(io::wait_for(limit(), || person.typed_ahead() == 5));
    lets_it_go_on(&person);
    assert_eq!(person.ends().0, 0);
    assert!(person.echo());
    assert!(!person.screen().concat().contains("more"), "{:?}", person.screen());
}

#[test]
fn ctrl_z_lends_the_shell_its_echo_and_fg_takes_it_back() {
    for shell in ["bash --norc --noprofile --noediting -i", "sh -i"] {
        let mut person = at_shell(works(), shell);
        person.types("\"$B\" adhoc go\n");
        person.waits_for("s] Run sleep");
        for _ in 0..2 {
            echo_becomes(&person, false);
            person.types(CTRL_Z);
            person.waits_for("% ");
            echo_becomes(&person, true);
            person.types("fg\n");
            person.waits_for("s] Run sleep");
        }
        person.types(CTRL_Z);
        person.waits_for("% ");
        person.types("bg\n");
        person.waits_for("% ");
        person.types(&format!("{TYPED}\n"));
        person.waits_for("typed-42");
        assert!(person.echo(), "{shell}: a background run leaves the modes alone");
        person.types("fg\n");
        person.waits_for("s] Run sleep");
        echo_becomes(&person, false);
        lets_it_go_on(&person);
        person.waits_for("% ");
        echo_becomes(&person, true);
        person.types("exit\n");
        person.ends();
    }
}

#[test]
fn a_shell_brings_the_echo_back_after_a_kill() {
    for shell in ["bash --norc --noprofile --noediting -i", "bash --norc --noprofile -i"] {
        let mut person = at_shell(works(), shell);
        person.types("sh -c 'echo \"pid=$$=\"; exec \"$B\" adhoc go'\n");
        person.waits_for("adhoc go'\r\n");
        person.waits_for("pid=");
        let pid = person.waits_for("=").trim_end_matches('=').parse().unwrap();
        person.waits_for("s] Run sleep");
        echo_becomes(&person, false);
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        person.waits_for("% ");
        person.types("cat\n");
        person.waits_for("cat\r\n");
        echo_becomes(&person, true);
        person.types(CTRL_D);
        person.waits_for("% ");
        person.types("exit\n");
        person.ends();
    }
}

#[test]
fn other_programs_of_a_pipeline_keep_their_terminal() {
    for shell in ["\"$@\" | cat", "true | \"$@\""] {
        let mut person = at_work(Case::with(works()).shell(shell));
        assert!(person.echo(), "{shell}");
        lets_it_go_on(&person);
        assert_eq!(person.ends().0, 0);
    }
}

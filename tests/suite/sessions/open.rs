//! Tests of `open`: an agent's own interface on a terminal, under a shell's job control.

use crate::support::person::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, Person};
use crate::support::{Case, io, limit, procs};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

fn opens(case: Case, args: &[&str]) -> Person {
    case.at_terminal(&[&["open"], args].concat())
}

/// Waits for `ready` and the id of a process, and until that process waits. A shell that gets a signal just before it
/// begins to wait runs its trap only after the wait.
#[track_caller]
fn waits_for_input(person: &mut Person) {
    person.waits_for("ready ");
    let pid = person.waits_for(".").trim_end_matches('.').parse().unwrap();
    assert!(io::wait_for(limit(), || procs::waits(pid)), "{pid} does not wait");
}

/// An agent that prints `ready` once it runs.
fn agent(body: &str) -> Case {
    Case::new().script("bin/claude", &format!("{body}\n"))
}

#[test]
fn the_agent_has_the_terminal_and_its_exit_code_is_ours() {
    let body = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] || exit 9\nprintf '<%s>' \"$@\"\npwd\necho \"MINE=$MINE NESTED=$CLAUDECODE\"\n\
                read -r line && echo \"got $line\"\nexit 7";
    let plain = agent(body).env("CLAUDECODE", "1");
    let home = plain.path("home").display().to_string();
    let args =
        ["-m", "m", "--session", "s-1", "--yes", "--agent-arg=-x", "--env", "MINE=1", "-C", &home, "-n hello", "you"];
    let mut person = opens(plain, &[&args[..10], &["--"], &args[10..]].concat());
    let shown = person.waits_for("NESTED=\r\n");
    assert!(
        shown.contains("<--model=m><--resume=s-1><--permission-mode=bypassPermissions><-x><--><-n hello you>"),
        "{shown}"
    );
    assert!(shown.contains(&home) && shown.contains("MINE=1"), "{shown}");
    person.types("abc\n");
    person.waits_for("got abc");
    assert_eq!(person.ends().0, 7);
}

#[test]
fn the_last_session_of_adhoc_opens_again() {
    let case = || agent("printf '<%s>' \"$@\"").file("work/.spektacular/local/sessions/claude", "abc-1\t20\tgo\n");
    for flag in ["--continue", "-c"] {
        let (code, seen) = opens(case(), &[flag]).ends();
        assert!(code == 0 && seen.contains("<--resume=abc-1>"), "{code}: {seen}");
    }
    let (code, seen) = opens(agent("true"), &["--continue"]).ends();
    assert!(
        code == 2 && seen.contains("--continue: claude has no earlier session in this directory. Start one without"),
        "{code}: {seen}"
    );
    let (code, seen) = opens(case(), &["-c", "--session", "x"]).ends();
    assert!(code == 2 && seen.contains("Give --continue or --session, not both."), "{code}: {seen}");
}

#[test]
fn an_interrupt_reaches_only_the_agent() {
    let body =
        "trap 'echo interrupted' INT\necho \"ready $$.\"\nread -r line || read -r line\necho \"got $line\"\nexit 5";
    let mut person = opens(agent(body), &[]);
    waits_for_input(&mut person);
    person.types(CTRL_C);
    person.waits_for("interrupted");
    person.types("abc\n");
    person.waits_for("got abc");
    assert_eq!(person.ends().0, 5);
}

#[test]
fn an_agent_that_a_signal_ends_gives_128_and_the_signal() {
    // The defaults: the interface inherits none of our signal handling.
    for (key, code) in [(CTRL_C, 130), (CTRL_BACKSLASH, 131)] {
        let mut person = opens(agent("ulimit -c 0\necho ready\nexec cat"), &[]);
        person.waits_for("ready");
        person.types(key);
        assert_eq!(person.ends().0, code);
    }
}

#[test]
fn a_crash_restores_the_terminal() {
    let mut person = opens(agent("stty raw -echo\nprintf '\\033[?1049hready'\nread -r line\nkill -KILL $$"), &[]);
    person.waits_for("ready");
    assert!(!tcgetattr(&person.keyboard).unwrap().local_modes.contains(LocalModes::ECHO));
    person.types("\n");
    person.waits_for("\x1b[?1049l");
    assert_eq!(person.ends().0, 137);
    let modes = tcgetattr(&person.keyboard).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
}

#[test]
fn a_signal_to_us_alone_is_passed_on() {
    let body =
        "trap 'echo told; exit 9' TERM\necho \"parent $PPID.\"\necho \"ready $$.\"\nwhile :; do read -r line; done";
    let mut person = opens(agent(body), &[]);
    person.waits_for("parent ");
    let pid = person.waits_for(".").trim_end_matches('.').parse().unwrap();
    waits_for_input(&mut person);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    person.waits_for("told");
    assert_eq!(person.ends().0, 9);
}

/// A shell with job control, which prints `$ ` when it waits.
fn shell(case: Case) -> Person {
    let mut person = case.env("PS1", "prompt> ").shell("export B=\"$1\"; exec /bin/sh -i").at_terminal(&[]);
    person.waits_for("prompt> ");
    person.types("\"$B\" open\n");
    person.waits_for("ready");
    person
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_gives_it_back() {
    let mut person = shell(agent("echo ready\nwhile read -r line; do echo \"got $line.\"; done\nexit 6"));
    for round in 0..3 {
        person.types(CTRL_Z);
        person.waits_for("Stopped");
        person.waits_for("prompt> ");
        person.types("fg\n");
        // The shell names the job that continues.
        person.waits_for("open");
        person.types(&format!("line {round}\n"));
        person.waits_for(&format!("got line {round}."));
    }
    person.types(CTRL_D);
    person.waits_for("prompt> ");
    person.types("echo \"code $?.\"\n");
    person.waits_for("code 6.");
}

#[test]
fn an_agent_that_stops_itself_stops_us() {
    let body = "echo ready\nread -r line\nkill -STOP $$\necho again\nread -r line\necho \"got $line.\"";
    let mut person = shell(agent(body));
    person.types("go\n");
    person.waits_for("Stopped");
    person.waits_for("prompt> ");
    person.types("fg\n");
    person.waits_for("again");
    person.types("more\n");
    person.waits_for("got more.");
    person.waits_for("prompt> ");
}

#[test]
fn processes_that_the_agent_leaves_running_are_left_alone() {
    let mut person = opens(agent("sleep 1000 </dev/null >/dev/null 2>&1 &\necho \"left $!.\""), &[]);
    person.waits_for("left ");
    let pid = person.waits_for(".").trim_end_matches('.').parse().unwrap();
    assert_eq!(person.ends().0, 0);
    let pid = Pid::from_raw(pid).unwrap();
    assert!(kill_process(pid, Signal::KILL).is_ok(), "it was ended");
}

#[test]
fn a_missing_agent_gets_the_message_of_adhoc() {
    let mut person = opens(Case::new(), &[]);
    let shown = person.waits_for("claude-code.");
    assert_eq!(person.ends().0, 4);
    let adhoc = person.case.run(&["adhoc", "hello"]);
    assert_eq!(adhoc.code, Some(4));
    let message = shown.lines().next().unwrap();
    assert!(message.starts_with("spektacular: agent_not_found: "), "{message}");
    assert!(adhoc.err.contains(message.trim_start_matches("spektacular: agent_not_found: ")), "{}", adhoc.err);
}

/// The command line of an agent: its arguments, and OpenCode's variable for a policy.
#[track_caller]
fn started(case: Case, args: &[&str]) -> String {
    let agent = args[1];
    let body = "printf '<%s>' \"$@\"\necho \"[$OPENCODE_PERMISSION]$MINE.\"\n";
    let mut person = opens(case.script(&format!("bin/{agent}"), body), args);
    let shown = person.waits_for(".\r\n");
    assert_eq!(person.ends().0, 0);
    shown
}

#[test]
fn the_policy_reaches_the_agents_own_interface() {
    let config = |text: &str| Case::new().file("home/.config/spektacular/config.json", text);
    for (agent, ask, allow) in [
        ("claude", "<--permission-mode=default>", "<--permission-mode=bypassPermissions>"),
        (
            "codex",
            "<--ask-for-approval=on-request><--sandbox=read-only>",
            "<--ask-for-approval=never><--sandbox=workspace-write>",
        ),
        ("gemini", "<--approval-mode=default>", "<--approval-mode=yolo>"),
        ("opencode", r#"[{"*":"ask","bash":"ask""#, "<--auto>"),
    ] {
        // A policy can come from a flag or the configuration, and be stricter than a person can choose at the terminal.
        for policy in ["ask", "deny", "read=allow,*=ask"] {
            assert!(started(Case::new(), &["-a", agent, "--permissions", policy]).contains(ask), "{agent} {policy}");
        }
        assert!(started(config(r#"{"permissions":"ask"}"#), &["-a", agent]).contains(ask), "{agent}");
        assert!(started(config(r#"{"permissions":{"*":"allow"}}"#), &["-a", agent]).contains(allow), "{agent}");
        assert!(started(config(r#"{"permissions":"ask"}"#), &["-a", agent, "--yes"]).contains(allow), "{agent}");
        // Without a setting, the agent's own configuration decides.
        let plain = started(Case::new(), &["-a", agent]);
        assert!(!plain.contains(ask) && !plain.contains(allow), "{plain}");
    }
    // Typed values take precedence over ours.
    let own = started(Case::new(), &["-a", "opencode", "--permissions", "ask", "--env", "OPENCODE_PERMISSION=mine"]);
    assert!(own.contains("[mine]"), "{own}");
}

#[test]
fn a_mode_reaches_the_agents_that_have_one() {
    for agent in ["claude", "opencode"] {
        assert!(started(Case::new(), &["-a", agent, "--mode", "owl"]).contains("<--agent=owl>"), "{agent}");
    }
    let shown = started(Case::new(), &["-a", "codex", "--mode", "owl"]);
    assert!(shown.contains("warning: --mode has no effect") && !shown.contains("owl"), "{shown}");
    // The warning names the file that sets the mode.
    let configured = Case::new().file("home/.config/spektacular/config.json", r#"{"mode":"owl"}"#);
    let shown = started(configured, &["-a", "codex"]);
    assert!(shown.contains("warning: mode in ") && shown.contains("line 1, has no effect"), "{shown}");
}

#[test]
fn an_agent_that_cannot_be_opened_is_refused() {
    let plain = Case::new();
    assert!(plain.run(&["open"]).refused(2).contains("needs a terminal"));
    assert!(plain.run(&["open", "-a", "demo"]).refused(2).contains("Use adhoc"));
    assert!(plain.run(&["open", "-a", "cluade"]).refused(2).contains("Did you mean claude?"));
    assert!(plain.run(&["open", "--env", "1=2"]).refused(2).contains("NAME=VALUE"));
    assert!(plain.run(&["open", "--permissions", "maybe"]).refused(2).contains("--permissions must be"));
    let mut person = opens(Case::new(), &["-C", "/no/such/folder"]);
    person.waits_for("--cwd must be");
    assert_eq!(person.ends().0, 2);
}

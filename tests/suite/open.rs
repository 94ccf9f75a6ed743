//! `open`: an agent's own interface on a terminal, with a shell's job control around it.
#![expect(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use crate::support;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;
use support::limit;
use support::plain::Plain;

/// Somebody at a terminal, which is the controlling one of what runs there.
struct Person {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    plain: Plain,
}

impl Person {
    /// Runs a command line of the program.
    fn opens(plain: Plain, args: &[&str]) -> Person {
        Person::starts(plain, &[&[env!("CARGO_BIN_EXE_spektacular"), "open"], args].concat())
    }

    fn starts(plain: Plain, words: &[&str]) -> Person {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = plain.command("/usr/bin/setsid");
        command.args(["--ctty", "--wait", "/usr/bin/env", "--default-signal=INT,QUIT,HUP,TERM,TSTP"]).args(words);
        command.env("TERM", "xterm");
        let child = command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open())).spawn();
        let mut reader = File::from(master.try_clone().unwrap());
        let (screen_in, screen) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if screen_in.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Person { child: child.unwrap(), keyboard: File::from(master), screen, seen: String::new(), plain }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the screen shows `text` after what was waited for before.
    fn waits_for(&mut self, text: &str) -> String {
        let until = Instant::now() + limit();
        loop {
            if let Some(at) = self.seen.find(text) {
                return self.seen.drain(..at + text.len()).collect();
            }
            let left = until.saturating_duration_since(Instant::now());
            let more = self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent that says `ready` once it runs.
fn agent(body: &str) -> Plain {
    Plain::new().script("bin/claude", &format!("{body}\n"))
}

#[test]
fn the_agent_has_the_terminal_and_its_exit_code_is_ours() {
    let body = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] || exit 9\nprintf '<%s>' \"$@\"\npwd\necho \"MINE=$MINE NESTED=$CLAUDECODE\"\n\
                read -r line && echo \"got $line\"\nexit 7";
    let plain = agent(body).env("CLAUDECODE", "1");
    let home = plain.path("home").display().to_string();
    let args =
        ["-m", "m", "--session", "s", "--yes", "--agent-arg=-x", "--env", "MINE=1", "-C", &home, "-n hello", "you"];
    let mut person = Person::opens(plain, &[&args[..10], &["--"], &args[10..]].concat());
    let shown = person.waits_for("NESTED=\r\n");
    assert!(
        shown.contains("<--model=m><--resume=s><--permission-mode=bypassPermissions><-x><--><-n hello you>"),
        "{shown}"
    );
    assert!(shown.contains(&home) && shown.contains("MINE=1"), "{shown}");
    person.types("abc\n");
    person.waits_for("got abc");
    assert_eq!(person.code(), Some(7));
}

#[test]
fn an_interrupt_is_the_agents_alone() {
    let body = "trap 'echo interrupted' INT\necho ready\nread -r line || read -r line\necho \"got $line\"\nexit 5";
    let mut person = Person::opens(agent(body), &[]);
    person.waits_for("ready");
    person.types("\x03");
    person.waits_for("interrupted");
    person.types("abc\n");
    person.waits_for("got abc");
    assert_eq!(person.code(), Some(5));
}

#[test]
fn an_agent_that_a_signal_ends_gives_128_and_the_signal() {
    // The defaults: nothing that we do on signals is inherited.
    for (key, code) in [("\x03", 130), ("\x1c", 131)] {
        let mut person = Person::opens(agent("ulimit -c 0\necho ready\nexec cat"), &[]);
        person.waits_for("ready");
        person.types(key);
        assert_eq!(person.code(), Some(code));
    }
}

#[test]
fn a_crash_leaves_the_terminal_as_it_was() {
    let mut person =
        Person::opens(agent("stty raw -echo\nprintf '\\033[?1049hready'\nread -r line\nkill -KILL $$"), &[]);
    person.waits_for("ready");
    assert!(!tcgetattr(&person.keyboard).unwrap().local_modes.contains(LocalModes::ECHO));
    person.types("\n");
    person.waits_for("\x1b[?1049l");
    assert_eq!(person.code(), Some(137));
    let modes = tcgetattr(&person.keyboard).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
}

#[test]
fn a_signal_to_us_alone_is_passed_on() {
    let body = "trap 'echo told; exit 9' TERM\necho \"ready $PPID.\"\nwhile :; do read -r line; done";
    let mut person = Person::opens(agent(body), &[]);
    person.waits_for("ready ");
    let pid = person.waits_for(".").trim_end_matches('.').parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::TERM).unwrap();
    person.waits_for("told");
    assert_eq!(person.code(), Some(9));
}

/// A shell with job control, which says `$ ` when it waits.
fn shell(plain: Plain) -> Person {
    let mut person = Person::starts(plain.env("PS1", "prompt> "), &["/bin/sh", "-i"]);
    person.waits_for("prompt> ");
    let binary = env!("CARGO_BIN_EXE_spektacular");
    person.types(&format!("{binary} open\n"));
    person.waits_for("ready");
    person
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_gives_it_back() {
    let mut person = shell(agent("echo ready\nwhile read -r line; do echo \"got $line.\"; done\nexit 6"));
    for round in 0..3 {
        person.types("\x1a");
        person.waits_for("Stopped");
        person.waits_for("prompt> ");
        person.types("fg\n");
        // The shell names what goes on.
        person.waits_for("open");
        person.types(&format!("line {round}\n"));
        person.waits_for(&format!("got line {round}."));
    }
    person.types("\x04");
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
fn what_the_agent_leaves_running_is_left_alone() {
    let mut person = Person::opens(agent("sleep 1000 </dev/null >/dev/null 2>&1 &\necho \"left $!.\""), &[]);
    person.waits_for("left ");
    let pid = person.waits_for(".").trim_end_matches('.').parse().unwrap();
    assert_eq!(person.code(), Some(0));
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert!(rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok(), "it was ended");
}

#[test]
fn a_missing_agent_gets_the_message_of_adhoc() {
    let mut person = Person::opens(Plain::new(), &[]);
    let shown = person.waits_for("claude-code.");
    assert_eq!(person.code(), Some(4));
    let adhoc = person.plain.run(&["adhoc", "hello"]);
    assert_eq!(adhoc.code, Some(4));
    let message = shown.lines().next().unwrap();
    assert!(message.starts_with("spektacular: agent_not_found: "), "{message}");
    assert!(adhoc.err.contains(message.trim_start_matches("spektacular: agent_not_found: ")), "{}", adhoc.err);
}

/// What an agent was started with: its arguments, and what OpenCode takes for a policy.
fn started(plain: Plain, args: &[&str]) -> String {
    let agent = args[1];
    let body = "printf '<%s>' \"$@\"\necho \"[$OPENCODE_PERMISSION]$MINE.\"\n";
    let mut person = Person::opens(plain.script(&format!("bin/{agent}"), body), args);
    let shown = person.waits_for(".\r\n");
    assert_eq!(person.code(), Some(0));
    shown
}

#[test]
fn the_policy_reaches_the_agents_own_interface() {
    let config = |text: &str| Plain::new().file("home/.config/spektacular/config.json", text);
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
        // By a flag, by the configuration, and what is stricter than a person at the terminal can be.
        for policy in ["ask", "deny", "read=allow,*=ask"] {
            assert!(started(Plain::new(), &["-a", agent, "--permissions", policy]).contains(ask), "{agent} {policy}");
        }
        assert!(started(config(r#"{"permissions":"ask"}"#), &["-a", agent]).contains(ask), "{agent}");
        assert!(started(config(r#"{"permissions":{"*":"allow"}}"#), &["-a", agent]).contains(allow), "{agent}");
        assert!(started(config(r#"{"permissions":"ask"}"#), &["-a", agent, "--yes"]).contains(allow), "{agent}");
        // Where nobody says anything, its own settings count.
        let plain = started(Plain::new(), &["-a", agent]);
        assert!(!plain.contains(ask) && !plain.contains(allow), "{plain}");
    }
    // What was typed goes over what we would say.
    let own = started(Plain::new(), &["-a", "opencode", "--permissions", "ask", "--env", "OPENCODE_PERMISSION=mine"]);
    assert!(own.contains("[mine]"), "{own}");
}

#[test]
fn a_mode_reaches_the_agents_that_have_one() {
    for agent in ["claude", "opencode"] {
        assert!(started(Plain::new(), &["-a", agent, "--mode", "owl"]).contains("<--agent=owl>"), "{agent}");
    }
    let shown = started(Plain::new(), &["-a", "codex", "--mode", "owl"]);
    assert!(shown.contains("warning: --mode has no effect") && !shown.contains("owl"), "{shown}");
    // The warning names the file that set the mode.
    let configured = Plain::new().file("home/.config/spektacular/config.json", r#"{"mode":"owl"}"#);
    let shown = started(configured, &["-a", "codex"]);
    assert!(shown.contains("warning: mode in ") && shown.contains("line 1, has no effect"), "{shown}");
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let plain = Plain::new();
    assert!(plain.run(&["open"]).refused(2).contains("needs a terminal"));
    assert!(plain.run(&["open", "-a", "demo"]).refused(2).contains("use adhoc"));
    assert!(plain.run(&["open", "-a", "cluade"]).refused(2).contains("Did you mean claude?"));
    assert!(plain.run(&["open", "--env", "1=2"]).refused(2).contains("NAME=VALUE"));
    assert!(plain.run(&["open", "--permissions", "maybe"]).refused(2).contains("--permissions must be"));
    let mut person = Person::opens(Plain::new(), &["-C", "/no/such/folder"]);
    person.waits_for("--cwd must be");
    assert_eq!(person.code(), Some(2));
}

//! The command lines of people who come from Claude Code, Codex, Gemini CLI, OpenCode and acpx: each does what the person
//! meant, or says what to type.

use crate::support::Case;
use crate::support::agent::{AgentLog, Script};
use std::process::{Output, Stdio};

/// The effect of a command line.
enum Effect {
    /// The agent starts with these arguments, and gets the prompt `Fix it`.
    Runs(&'static [&'static str]),
    /// Exit code 0, and this on stdout.
    Prints(&'static str),
    /// Exit code 2, no agent, and one line on stderr with this.
    Says(&'static str),
}

use Effect::{Prints, Runs, Says};

/// A session of the agent, as the program that made it names it.
const ID: &str = "7f9f9a2e-1b3c-4c7a-9b0e-0123456789ab";

const CLAUDE: &[(&str, Effect)] = &[
    ("spektacular -p 'Fix it'", Says("-p must follow a command: spektacular adhoc -p.")),
    ("spektacular 'Fix it'", Says("To run a task: spektacular adhoc \"TASK\".")),
    ("spektacular adhoc -p 'Fix it'", Runs(&[])),
    ("cat notes | spektacular adhoc -p 'Fix it'", Runs(&[])),
    ("spektacular adhoc -p 'Fix it' --model opus", Runs(&["--model", "opus"])),
    ("spektacular adhoc -p 'Fix it' --output-format json", Says("Use --output cli or --output json.")),
    ("spektacular adhoc -p --output-format stream-json 'Fix it'", Says("The next word is the flag --output-format.")),
    (
        "spektacular adhoc -p --verbose 'Fix it'",
        Says("-p needs a value: -p TEXT. The next word is the flag --verbose."),
    ),
    ("spektacular adhoc --print 'Fix it'", Says("Leave it out: adhoc prints the answer and exits.")),
    ("spektacular adhoc --resume $ID -p 'Fix it'", Runs(&["7f9f9a2e-1b3c-4c7a-9b0e-0123456789ab"])),
    ("spektacular adhoc --resume $ID --fork-session -p 'Fix it'", Says("Use --fork.")),
    ("spektacular adhoc One >/dev/null 2>&1; spektacular adhoc -c -p 'Fix it'", Runs(&["--resume"])),
    ("spektacular adhoc -c -p 'Fix it'", Says("claude has no earlier session in this directory.")),
    ("spektacular adhoc --dangerously-skip-permissions -p 'Fix it'", Says("Use --yes to allow every request.")),
    ("spektacular adhoc --permission-mode plan -p 'Fix it'", Says("or --mode for one of the agent's own modes.")),
    ("spektacular adhoc --allowedTools 'Read,Edit' -p 'Fix it'", Says("Did you mean --allowed-tool?")),
    ("spektacular adhoc --disallowedTools Bash -p 'Fix it'", Says("Did you mean --disallowed-tool?")),
    ("spektacular adhoc --tools Read -p 'Fix it'", Says("Use --disallowed-tool for each tool to take away")),
    ("spektacular adhoc --max-budget-usd 2 -p 'Fix it'", Says("Use --max-cost-usd.")),
    ("spektacular adhoc --json-schema '{}' -p 'Fix it'", Says("Use --output-schema.")),
    ("spektacular adhoc --append-system-prompt 'Be brief' -p 'Fix it'", Says("Use --system-prompt.")),
    ("spektacular adhoc --include-partial-messages -p 'Fix it'", Says("Use --progress full")),
    ("spektacular adhoc --mcp-config servers.json -p 'Fix it'", Says("Use --mcp-servers.")),
    ("spektacular adhoc --mcp-servers servers.json -p 'Fix it'", Says("use --mcp-servers @FILE.")),
    ("spektacular adhoc --settings a.json -p 'Fix it'", Says("pass it on: --agent-arg=--FLAG")),
    ("spektacular adhoc --no-session-persistence -p 'Fix it'", Says("Use --no-session.")),
    ("spektacular adhoc -w -p 'Fix it'", Says("Use --worktree.")),
    ("spektacular mcp list", Says("Use adhoc --mcp-servers, or config set mcp_servers.")),
    ("spektacular doctor", Says("Use agents check.")),
];

const CODEX: &[(&str, Effect)] = &[
    ("spektacular exec 'Fix it'", Runs(&[])),
    ("echo 'Fix it' | spektacular exec -", Runs(&[])),
    ("spektacular exec --json 'Fix it'", Prints("\"type\":\"run.completed\"")),
    ("spektacular exec -C sub -m gpt 'Fix it'", Runs(&["--model", "gpt"])),
    ("spektacular exec --cd sub 'Fix it'", Says("Use --cwd.")),
    ("spektacular exec --full-auto 'Fix it'", Says("Use --permissions edit=allow,execute=allow,*=ask")),
    ("spektacular exec --yolo 'Fix it'", Says("Use --yes to allow every request.")),
    ("spektacular exec --dangerously-bypass-approvals-and-sandbox 'Fix it'", Says("Use --yes to allow every request.")),
    ("spektacular exec -s workspace-write 'Fix it'", Says("For a sandbox, use --sandbox read-only")),
    (
        "spektacular exec --sandbox workspace-write 'Fix it'",
        Says("--sandbox must be \"off\", \"read-only\" or \"workspace\""),
    ),
    ("spektacular exec --skip-git-repo-check 'Fix it'", Says("Leave it out: adhoc also works outside a git")),
    ("spektacular exec -c model_reasoning_effort=high 'Fix it'", Says("For this one, use --effort.")),
    ("spektacular exec -c 'a.b=\"zq-bad-7731\"' 'Fix it'", Says("-c means --continue here and takes no value.")),
    ("spektacular exec -c a.b=1 'Fix it'", Says("use --agent-arg=-c --agent-arg=a.b=VALUE.")),
    ("spektacular exec -ca.b=1 'Fix it'", Says("use --continue --prompt.")),
    ("spektacular exec --config a=1 'Fix it'", Says("Use --agent-arg for the agent's own settings")),
    ("spektacular exec --output-schema schema.json 'Fix it'", Says("use --output-schema @FILE.")),
    ("spektacular exec -o last.txt 'Fix it'", Says("For a file with the answer, use --quiet and > FILE.")),
    ("spektacular exec -i shot.png 'Fix it'", Says("Use --image for an image")),
    ("spektacular exec --ephemeral 'Fix it'", Says("Use --no-session.")),
    ("spektacular exec resume --last 'Fix it'", Says("Use --continue.")),
    ("spektacular exec resume $ID 'Fix it'", Says("To resume a session, use --resume ID, then the task.")),
    ("spektacular resume --last", Says("Use adhoc --continue, or adhoc --resume ID.")),
    ("spektacular login", Says("Log in with the agent's own program.")),
];

const GEMINI: &[(&str, Effect)] = &[
    ("spektacular adhoc -p 'Fix it' --yolo", Says("Use --yes to allow every request.")),
    ("spektacular adhoc -y -p 'Fix it'", Runs(&[])),
    ("spektacular adhoc -m flash -p 'Fix it'", Runs(&["--model", "flash"])),
    ("spektacular adhoc -p 'Fix it' --approval-mode auto_edit", Says("edit=allow,*=ask")),
    ("spektacular adhoc -p 'Fix it' -o json", Says("Use --output cli or --output json.")),
    ("spektacular adhoc --include-directories sub -p 'Fix it'", Says("Use --add-dir.")),
    ("spektacular adhoc -r latest -p 'Fix it'", Says("Use --resume.")),
    ("spektacular adhoc --resume latest -p 'Fix it'", Says("To resume the last one, use --continue.")),
    ("spektacular adhoc -i 'Fix it'", Says("spektacular chat for a conversation.")),
    ("spektacular --list-sessions", Says("Use spektacular sessions.")),
    ("spektacular adhoc --skip-trust -p 'Fix it'", Says("Leave it out: adhoc needs no trusted folder.")),
];

const OPENCODE: &[(&str, Effect)] = &[
    ("spektacular run 'Fix it'", Runs(&[])),
    ("spektacular run --model anthropic/opus 'Fix it'", Runs(&["--model", "anthropic/opus"])),
    ("spektacular run --format json 'Fix it'", Says("Use --output cli or --output json.")),
    ("spektacular run --agent plan 'Fix it'", Says("If it is a mode of the agent, use --mode.")),
    ("spektacular run --session $ID 'Fix it'", Runs(&["7f9f9a2e-1b3c-4c7a-9b0e-0123456789ab"])),
    ("spektacular run -s $ID 'Fix it'", Says("Use --session for a session.")),
    ("spektacular run --variant high 'Fix it'", Says("Use --effort.")),
    ("spektacular run -f notes 'Fix it'", Says("The agent reads other files itself: name them in the prompt.")),
    ("spektacular run --file notes 'Fix it'", Says("Name other files in the prompt.")),
    ("spektacular run --dir sub 'Fix it'", Says("Use --cwd.")),
    ("spektacular run --thinking 'Fix it'", Says("Use --verbose to see the reasoning")),
    ("spektacular run --auto 'Fix it'", Says("Use --yes to allow every request.")),
    ("spektacular run --title Mine 'Fix it'", Says("Use --name.")),
    ("spektacular auth login", Says("Log in with the agent's own program.")),
    ("spektacular models", Says("Use adhoc --model with the agent's own name for a model.")),
    ("spektacular session list", Says("Did you mean sessions?")),
];

const ACPX: &[(&str, Effect)] = &[
    ("spektacular codex 'Fix it'", Says("It is an agent: spektacular adhoc --agent codex \"TASK\".")),
    ("spektacular claude exec 'Fix it'", Says("It is an agent: spektacular adhoc --agent claude \"TASK\".")),
    (
        "spektacular --format json codex exec 'Fix it'",
        Says("Use --output cli or --output json. Flags follow a command"),
    ),
    ("spektacular prompt 'Fix it'", Says("Use adhoc \"TASK\".")),
    ("spektacular exec --approve-all 'Fix it'", Says("Use --yes.")),
    ("spektacular exec --approve-reads 'Fix it'", Says("Use --permissions read=allow,search=allow,*=ask.")),
    ("spektacular exec --deny-all 'Fix it'", Says("Use --permissions deny.")),
    ("spektacular exec --cwd sub --agent claude 'Fix it'", Runs(&[])),
    ("spektacular sessions new --name backend", Says("Use adhoc --name NAME")),
    ("spektacular sessions list", Prints("")),
    ("spektacular sessions --output json", Prints("{\"sessions\":[]}")),
];

/// Runs a command line in a shell that finds the program by its name.
fn typed(case: &Case, line: &str) -> Output {
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_spektacular"), case.path("bin/spektacular")).unwrap();
    let mut shell = case.command("/bin/sh");
    shell.args(["-c", line]).env("ID", ID).stdin(Stdio::null());
    shell.output().unwrap()
}

#[track_caller]
fn holds(line: &str, effect: &Effect) {
    let case = Case::with(Script::hello()).file("work/notes", "A note\n").file("work/sub/file", "");
    let Output { status, stdout, stderr } = typed(&case, line);
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    let log = AgentLog::new(&case.path("log"));
    match effect {
        Runs(args) => {
            assert_eq!(status.code(), Some(0), "{line}: {err}");
            let (prompts, argv) = (log.prompts(), log.argv());
            assert!(prompts.last().is_some_and(|prompt| prompt.starts_with("Fix it")), "{line}: {prompts:?}");
            assert!(args.iter().all(|arg| argv.iter().any(|one| one.contains(arg))), "{line}: {argv:?}");
        }
        Prints(text) => {
            assert_eq!(status.code(), Some(0), "{line}: {err}");
            assert!(out.contains(text), "{line}: {out}");
        }
        Says(text) => {
            assert_eq!((status.code(), out.as_str()), (Some(2), ""), "{line}: {err}");
            assert!(err.contains(text) && err.matches('\n').count() == 1, "{line}: {err}");
            assert!(!err.contains("zq-bad-7731") && !log.ran(), "{line}: {err}");
        }
    }
}

#[track_caller]
fn all_hold(lines: &[(&str, Effect)]) {
    lines.iter().for_each(|(line, effect)| holds(line, effect));
}

#[test]
fn the_command_lines_of_claude_code() {
    all_hold(CLAUDE);
}

#[test]
fn the_command_lines_of_codex() {
    all_hold(CODEX);
}

#[test]
fn the_command_lines_of_gemini_cli() {
    all_hold(GEMINI);
}

#[test]
fn the_command_lines_of_opencode() {
    all_hold(OPENCODE);
}

#[test]
fn the_command_lines_of_acpx() {
    all_hold(ACPX);
}

/// The message about a command in place of an agent names the configuration that runs this command.
#[test]
fn a_typed_command_leads_to_an_agent_that_runs_it() {
    let flags = ["--agent-command", "--agent-cmd", "--command", "--cmd", "--exec"];
    let flags =
        flags.map(|flag| (vec!["adhoc", flag, "zq-bad-7731", "Fix it"], format!("usage: Unknown flag {flag}. ")));
    let command = vec!["adhoc", "--agent", "./zq-bad-7731 --fast", "Fix it"];
    for (args, mistake) in flags.into_iter().chain([(command, "invalid_request: Unknown agent".into())]) {
        let case = Case::new();
        let run = case.run(&args);
        let why = run.refused(2);
        assert!(why.starts_with(&format!("spektacular: {mistake}")), "{why}");
        assert!(!why.contains("zq-bad-7731"), "{why}");
        let (_, advice) = why.split_once("add it once: ").unwrap();
        let (set, flag) = advice.trim_end().trim_end_matches('.').split_once(". Then use ").unwrap();
        let set = set.replace("my-command", "cat");
        let Output { status, stdout, stderr } = typed(&case, &format!("{set} && spektacular adhoc {flag} 'Fix it'"));
        assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
        assert!(stdout.starts_with(b"Fix it"), "{}", String::from_utf8_lossy(&stdout));
    }
}

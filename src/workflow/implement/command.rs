//! The commands of the plan, and spektacular's own scripts, as steps of the run.

use crate::run::ShellCommand;

/// Joins stdout and stderr and becomes `/bin/sh -c COMMAND`. The command is an argument, so it needs no quotes.
const JOINED: &str = "exec 2>&1; exec /bin/sh -c \"$1\"";

/// `env`: the variables of the agent's entry; `phase`: the id of its phase in frames.
pub(super) fn verify(text: &str, env: Vec<(String, String)>, phase: String) -> ShellCommand {
    ShellCommand { title: Some(text.to_owned()), phase: Some(phase), ..joined(text, env) }
}

fn joined(text: &str, env: Vec<(String, String)>) -> ShellCommand {
    let args = ["-c", JOINED, "sh", text].map(str::to_owned).into();
    ShellCommand { args, env, title: None, phase: None }
}

/// Succeeds if the shell knows this program. No frame shows it.
pub(super) fn probe(program: &str, env: Vec<(String, String)>) -> ShellCommand {
    joined(&format!("command -v {program}"), env)
}

/// A script of spektacular's own, which no frame shows, with its arguments. `folder`: the working directory.
pub(super) fn hidden(script: &str, folder: String, arguments: [String; 3]) -> ShellCommand {
    let script = format!("cd \"$1\" || exit\nshift\n{script}");
    let args = ["-c".to_owned(), script, "sh".to_owned(), folder].into_iter().chain(arguments);
    ShellCommand { args: args.collect(), env: Vec::new(), title: None, phase: None }
}

/// `None`: the command begins with a path, which the phase may create, or with anything but a bare name.
pub(super) fn program(command: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    let name = command.split_whitespace().next()?;
    (name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{JOINED, program, verify};

    #[test]
    fn the_command_is_an_argument_of_its_own() {
        let text = "echo \"$(date)\"; exit '3' # x";
        let env = vec![("NAME".to_owned(), "value".to_owned())];
        let command = verify(text, env.clone(), "P1".to_owned());
        assert_eq!(command.args, ["-c", JOINED, "sh", text]);
        assert!(!JOINED.contains(text));
        assert_eq!(command.env, env, "the variables of the agent's entry");
    }

    #[test]
    fn only_a_bare_name_is_the_program_of_a_command() {
        for (command, name) in [
            ("npm test && ./x", Some("npm")),
            ("  g++-14\ta.cc", Some("g++-14")),
            ("./run.sh", None),
            ("bin/run", None),
            ("PATH=bin:$PATH tool", None),
            ("\"my tool\"", None),
            ("! grep x", None),
            (". ./env", None),
            ("$TOOL x", None),
        ] {
            assert_eq!(program(command), name, "{command}");
        }
    }
}

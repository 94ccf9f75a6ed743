//! The script in a command of Codex, which runs each through a shell: `/bin/bash -lc 'cargo test'`.

use crate::agent::shell::one_word;

/// The script that a known shell runs with this command. `None`: the command does something else, or the shell would
/// change the script before it runs it.
pub(super) fn script_of(command: &str) -> Option<String> {
    let wrapper = command.match_indices(' ').map(|(at, _)| at + 1).find(|end| is_shell(&command[..*end]))?;
    one_word(&command[wrapper..])
}

/// Whether a text is a known shell with flags, up to its script: `/bin/bash -lc `.
pub(super) fn is_shell(wrapper: &str) -> bool {
    let Some((shell, flags)) = wrapper.strip_suffix(' ').and_then(|wrapper| wrapper.split_once(' ')) else {
        return false;
    };
    let folder = shell.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let name = shell.rsplit('/').next().unwrap_or_default();
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let is_flag = |flag: &str| flag.strip_prefix('-').is_some_and(|flag| flag.bytes().all(|b| b.is_ascii_lowercase()));
    let is_known = ["sh", "bash", "zsh", "dash", "ksh"].contains(&name);
    let ends = flags.rsplit(' ').next().is_some_and(|flag| flag.ends_with('c'));
    is_known
        && ["/", "/bin", "/usr/bin", "/usr/local/bin"].contains(&folder)
        && plain(shell)
        && flags.split(' ').all(is_flag)
        && ends
}

#[cfg(test)]
mod tests {
    use super::script_of;

    #[test]
    fn a_script_is_what_the_shell_runs() {
        for (command, script) in [
            ("/bin/bash -lc ls", "ls"),
            ("/usr/bin/zsh -c 'ls -l'", "ls -l"),
            ("bash -l -c \"ls\"", "ls"),
            ("/bin/bash -lc 'cd /etc && ls'", "cd /etc && ls"),
            (r#"/bin/bash -lc "touch 'a b'""#, "touch 'a b'"),
            (r#"/bin/bash -lc "echo \$HOME \`a\` \"b\" '%d\\n' \d""#, r#"echo $HOME `a` "b" '%d\n' \d"#),
            (r#"/bin/bash -lc 'it'"'"'s'"#, "it's"),
            ("/bin/bash -lc 'it'\\''s'", "it's"),
            ("/bin/bash -lc ./a-b_c/d:e,f@g%h+i", "./a-b_c/d:e,f@g%h+i"),
            ("/bin/bash -lc 'a\nb'", "a\nb"),
        ] {
            assert_eq!(script_of(command).as_deref(), Some(script), "{command}");
        }
    }

    #[test]
    fn a_command_that_is_more_than_a_script_stays_whole() {
        for command in [
            "ls",
            "ls -c 'x'",
            "rm -rf x; /tmp/evil -lc ls",
            "/tmp/bash -lc ls",
            "/bin/bash -lc 'rm x' -c ls",
            "/bin/bash --init-file=/tmp/x -c ls",
            "X=1 /bin/bash -lc ls",
            "/bin/bash -lc 'a' b 'c'",
            "/bin/bash -lc touch x",
            "/bin/bash -lc \"echo $HOME\"",
            "/bin/bash -lc \"echo `id`\"",
            "/bin/bash -lc $'a'",
            "/bin/bash -lc 'a",
            "/bin/bash -lc a\\",
            "/bin/bash -lc ''",
            "/bin/zsh -c =ls",
            "/bin/bash -lc ~",
            "/bin/bash -lc a;b",
            "/bin/bash -lc ",
            "/bin/bash -l",
        ] {
            assert_eq!(script_of(command), None, "{command}");
        }
    }
}

//! Agents that npx starts. npx downloads a missing package, so an installed npx does not mean an installed agent. The
//! check runs the package through npx without the network.

use super::{Base, Program};

/// The variables that keep npx from downloading and asking.
pub(crate) const OFFLINE: &[(&str, &str)] =
    &[("npm_config_offline", "true"), ("npm_config_yes", "false"), ("npm_config_update_notifier", "false")];
/// The variable for the folder of npm's logs.
pub(crate) const LOGS: &str = "npm_config_logs_dir";

/// The npx arguments that run an agent's package only if it is installed. `None`: npx does not start this agent.
pub(crate) fn command(base: &Base) -> Option<Vec<String>> {
    let Program::Command(program) = &base.program else { return None };
    if program.rsplit('/').next() != Some("npx") {
        return None;
    }
    let mut command = vec!["--no-install".to_owned()];
    let mut args = base.args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            flag if installs(flag) => {}
            "-p" | "--package" => command.extend([arg.clone(), args.next()?.clone()]),
            flag if flag.starts_with('-') => command.push(arg.clone()),
            // The agent's own arguments follow.
            _ => {
                command.push(arg.clone());
                return Some(command);
            }
        }
    }
    None
}

/// Whether an argument of npx lets it install a package. npm takes each unambiguous beginning of a name, and a value.
fn installs(arg: &str) -> bool {
    let name = arg.split_once('=').map_or(arg, |(name, _)| name);
    matches!(name, "-y" | "--y" | "--ye" | "--yes" | "--no-no-install" | "--install")
}

/// Whether npx reports a missing package.
pub(crate) fn is_missing(stderr: &str) -> bool {
    ["ENOTCACHED", "missing packages"].iter().any(|text| stderr.contains(text))
}

#[cfg(test)]
mod tests {
    use super::{Base, command};

    fn npx(program: &str, args: &[&str]) -> Option<String> {
        let mut base = Base::command(program);
        base.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        command(&base).map(|command| command.join(" "))
    }

    #[test]
    fn an_npx_agent_is_known_by_its_package() {
        for (args, wanted) in [
            (&["--yes", "@a/b", "--acp"][..], Some("--no-install @a/b")),
            (&["-y", "-p", "a", "b", "--yes"], Some("--no-install -p a b")),
            (&["--yes", "--package=a", "b"], Some("--no-install --package=a b")),
            (&["--yes=true", "--y", "--ye=1", "-y=true", "a"], Some("--no-install a")),
            (&["--yes"], None),
            (&["-p"], None),
            (&[], None),
        ] {
            assert_eq!(npx("npx", args).as_deref(), wanted, "{args:?}");
            assert_eq!(npx("/usr/bin/npx", args).as_deref(), wanted, "{args:?}");
        }
        assert_eq!(npx("node", &["a"]), None);
    }
}

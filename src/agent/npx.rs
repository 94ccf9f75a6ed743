//! Agents that npx starts: those whose entry says so, and those whose program is missing. npx downloads a missing package,
//! so an installed npx does not mean an installed agent. The check runs the package through npx without the network.

use super::{Base, Launch, Program};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::Text;
use std::borrow::Cow;

const NPX: &str = "npx";

/// The variables that keep npx from downloading and asking.
pub(crate) const OFFLINE: &[(&str, &str)] =
    &[("npm_config_offline", "true"), ("npm_config_yes", "false"), ("npm_config_update_notifier", "false")];
pub(crate) const LOGS: &str = "npm_config_logs_dir";

/// The variables with which npx does not ask the registry about a package that it has, and gives up within the time limit
/// of a start if the network is missing.
const PATIENCE: &[(&str, &str)] = &[
    ("npm_config_prefer_offline", "true"),
    ("npm_config_fetch_retries", "1"),
    ("npm_config_fetch_retry_mintimeout", "1000"),
    ("npm_config_fetch_retry_maxtimeout", "5000"),
    ("npm_config_fetch_timeout", "20000"),
    ("npm_config_update_notifier", "false"),
];

/// The flag with which npx, which stays in the working directory, reads neither the `.npmrc` nor the packages of the project
/// there: either could replace the agent by another program.
const NO_PROJECT: &str = "--prefix=/";

/// The arguments with which npx runs a program of a package, and downloads it first if necessary.
fn with_package(program: &str, package: &str) -> [String; 3] {
    ["--yes".into(), format!("--package={package}"), program.into()]
}

/// `None`: npx does not know its package.
pub(crate) fn in_place_of(launch: &Launch) -> Option<Launch> {
    let (Program::Command(program), Some(package)) = (&launch.program, launch.package) else { return None };
    let patience = PATIENCE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let args = std::iter::once(NO_PROJECT.to_owned()).chain(with_package(program, package));
    Some(Launch {
        program: Program::Command(NPX.into()),
        args: args.chain(launch.args.iter().cloned()).collect(),
        // Later ones override earlier ones.
        env: patience.chain(launch.env.iter().cloned()).collect(),
        package: None,
        ..launch.clone()
    })
}

/// `None`: npx does not know its package.
pub(crate) fn base_in_place_of(base: &Base) -> Option<Base> {
    let (Program::Command(program), Some(package)) = (&base.program, base.package) else { return None };
    let args = with_package(program, package).into_iter().chain(base.args.iter().cloned()).collect();
    Some(Base { program: Program::Command(NPX.into()), args, package: None, ..base.clone() })
}

/// The failure of npx itself, which its stderr reports. `None`: npx did not fail.
pub(crate) fn failure(base: &Base, stderr: &Text) -> Option<Failure> {
    let stderr = stderr.unredacted();
    let code = ["npm error code ", "npm ERR! code "].iter().find_map(|sign| stderr.split_once(sign))?.1;
    let code = code.split_whitespace().next().unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let code = if code.len() <= 40 && code.bytes().all(fits) { code } else { "" };
    let package = base.package.map(Cow::Borrowed).or_else(|| command(base)?.pop().map(Cow::Owned));
    let package = package.as_deref().unwrap_or("the agent's package");
    let failed = |what: String| Failure::new(Code::AgentStartFailed, what);
    Some(match code {
        "E404" | "ETARGET" | "ENOVERSIONS" => failed(format!(
            "npx cannot start the agent: the npm registry has no {package} ({code}). Install the agent, or correct the \
             package in its entry."
        )),
        "ENOTFOUND" | "EAI_AGAIN" | "ECONNREFUSED" | "ECONNRESET" | "ETIMEDOUT" | "ENETUNREACH" | "EHOSTUNREACH"
        | "ENOTCACHED" | "ERR_SOCKET_TIMEOUT" | "FETCH_ERROR" => failed(format!(
            "npx cannot download {package}: the npm registry is not reachable ({code}). Install the agent, or try again \
             with a network."
        ))
        .retryable(),
        _ => failed(format!("npx cannot run {package}: npm fails with {code}. Install the agent by hand.")),
    })
}

/// The npx arguments that run an agent's package only if it is installed. `None`: npx does not start this agent.
pub(crate) fn command(base: &Base) -> Option<Vec<String>> {
    let Program::Command(program) = &base.program else { return None };
    if program.rsplit('/').next() != Some(NPX) {
        return None;
    }
    let mut command = vec!["--no-install".to_owned()];
    let mut args = base.args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            flag if installs(flag) => {}
            "-p" | "--package" => command.extend([arg.clone(), args.next()?.clone()]),
            flag if flag.starts_with('-') => command.push(arg.clone()),
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

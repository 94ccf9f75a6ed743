//! The sandbox of an agent's processes: the parts that the machine can keep, and the paths that it leaves to them.
//!
//! The kernel only grants, and a grant holds for everything below its path. A secret is hidden because everything
//! around it is granted instead of the folder that contains it.

pub(crate) mod secrets;
pub(crate) mod trusted;

use crate::agent::native::{OF_AGENTS, State, StatePlace};
use crate::agent::registry::Agent;
use crate::io::files::open_regular;
use crate::paths::absolute;
use crate::protocol::fields::{Field, field};
use crate::protocol::request::{McpAccess, Settings};
use crate::protocol::sandbox::{Domain, Kernel};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::{SandboxMode, SandboxSecrets};
use crate::system::{Access, Grants, SANDBOX_DEVICES, SANDBOX_LINKS, SANDBOX_SYSTEM, sandbox_version};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use trusted::WorktreePart;

/// Variables that lead to services outside the sandbox, which would act for the agent.
const SERVICES: &[&str] =
    &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST", "GPG_AGENT_INFO"];

const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

#[derive(Debug)]
pub enum SandboxFault {
    /// The system cannot keep a sandbox, or the agent cannot work in one. A clause gives the reason.
    System(String),
    /// The request cannot be kept anywhere.
    Request(Sentence),
}

/// Error: the reason why the system can keep no sandbox, as a clause.
pub(crate) fn kernel() -> Result<Kernel, String> {
    if super::own_executable::program().is_none() {
        return Err("spektacular cannot find its own program file, which starts the agent in the sandbox".into());
    }
    let abi = sandbox_version()?;
    Ok(Kernel { abi, signals: abi >= 6, sockets: abi >= 9, files: super::namespaces::can_fix_files() })
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// `variables`: the agent's environment.
pub(crate) fn domain(agent: &Agent, settings: &Settings, variables: Variables<'_>) -> Result<Domain, SandboxFault> {
    if let Some(why) = agent.native().state.unfit {
        return Err(SandboxFault::System(why.to_owned()));
    }
    let kernel = kernel().map_err(SandboxFault::System)?;
    let home = home(variables);
    let sandbox = &settings.sandbox;
    let given = |path: &String| given(path, &settings.cwd, home.as_deref());
    if let Some(list) = [("write", &sandbox.write), ("read", &sandbox.read)]
        .into_iter()
        .find_map(|(list, paths)| paths.iter().any(|path| given(path).is_none()).then_some(list))
    {
        return Err(SandboxFault::Request(sentence!(
            "`{list}` in {sandbox} must name paths that exist: create them first, because the kernel grants only those.",
            sandbox
        )));
    }
    if sandbox.secrets == SandboxSecrets::Hidden {
        let hidden = hidden(home.as_deref());
        let roots = std::iter::once((field!(cwd), settings.cwd.clone()))
            .chain(settings.add_dirs.iter().filter_map(|path| Some((field!(add_dirs), given(path)?))))
            .chain(sandbox.write.iter().filter_map(|path| Some((field!(sandbox), given(path)?))));
        for (field, root) in roots {
            if let Some(secret) = hidden.iter().find(|secret| secret.starts_with(&root) && **secret != root) {
                return Err(SandboxFault::Request(exposed(field, secret, home.as_deref())));
            }
        }
    }
    let State { reads, folders, files, made, variables: moved, settings: own, unfit: _ } = &agent.native().state;
    let place = |(folder, below): &StatePlace| Some(folder.path(variables)?.join(below));
    let places = |all: &[StatePlace]| all.iter().filter_map(place).collect::<Vec<_>>();
    let mut domain = Domain {
        kernel,
        reads: places(reads),
        folders: places(folders),
        files: places(files),
        made: places(made),
        variables: moved.iter().filter_map(|(name, moved)| Some((*name, place(moved)?))).collect(),
        settings: places(own),
    };
    for path in &agent.state {
        let path = typed(path, &settings.cwd, home.as_deref());
        if path.is_file() { domain.files.push(path) } else { domain.folders.push(path) }
    }
    Ok(domain)
}

fn exposed(field: &'static Field, secret: &Path, home: Option<&Path>) -> Sentence {
    let name = home.and_then(|home| secret.strip_prefix(home).ok()).unwrap_or(secret).display().to_string();
    let name = name.as_str();
    sentence!(
        "{field} contains `{name}`, which may hold secrets and cannot be hidden there: use a directory without it, or make \
         secrets \"readable\" in {sandbox}.",
        field = field,
        sandbox
    )
}

fn home(variables: Variables<'_>) -> Option<PathBuf> {
    let home = PathBuf::from(variables("HOME").filter(|home| !home.is_empty())?);
    Some(home.canonicalize().unwrap_or(home)).filter(|home| home.is_absolute())
}

/// A path as it was typed: absolute, in `cwd`, or in HOME.
fn typed(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let in_home = path.strip_prefix("~/").and_then(|rest| Some(home?.join(rest)));
    in_home.unwrap_or_else(|| absolute(cwd, path))
}

/// The real path of a typed one. `None`: it does not exist.
fn given(path: &str, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    typed(path, cwd, home).canonicalize().ok()
}

/// The secrets that exist, by their real paths too.
fn hidden(home: Option<&Path>) -> BTreeSet<PathBuf> {
    let in_home =
        home.into_iter().flat_map(|home| secrets::IN_HOME.iter().chain(OF_AGENTS).map(|name| home.join(name)));
    let of_system = secrets::OF_SYSTEM.iter().map(PathBuf::from).filter(|_| rustix::process::geteuid().is_root());
    let all = in_home.chain(of_system).filter(|path| path.symlink_metadata().is_ok());
    all.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect()
}

pub(super) struct ProcessPlaces<'a> {
    pub(super) program: &'a Path,
    /// The folder with the agent's files, and that for temporary ones below it.
    pub(super) files: &'a Path,
    pub(super) temporary: &'a Path,
}

/// Variables that the request's `env` sets stay.
pub(crate) fn confine(
    environment: &mut BTreeMap<OsString, OsString>,
    domain: &Domain,
    settings: &Settings,
    temporary: &Path,
) {
    let is_free = |name: &&str| !settings.env.contains_key(*name);
    for name in SERVICES.iter().copied().filter(is_free) {
        environment.remove(OsStr::new(name));
    }
    for name in TEMPORARY.into_iter().filter(|name| is_free(name)) {
        environment.insert(name.into(), temporary.into());
    }
    for (name, folder) in &domain.variables {
        environment.entry((*name).into()).or_insert_with(|| folder.into());
    }
}

/// Creates the folders of the agent's state, because a grant needs them.
pub(super) fn grants(
    domain: &Domain,
    settings: &Settings,
    environment: &BTreeMap<OsString, OsString>,
    places: &ProcessPlaces<'_>,
) -> Grants {
    let home = home(&|name| environment.get(OsStr::new(name)).cloned());
    let sandbox = &settings.sandbox;
    let given = |path: &String| given(path, &settings.cwd, home.as_deref());
    let mut out = Around {
        hidden: if sandbox.secrets == SandboxSecrets::Hidden { hidden(home.as_deref()) } else { BTreeSet::new() },
        grants: Grants::default(),
    };
    SANDBOX_SYSTEM.iter().for_each(|path| out.add(Access::Read, Path::new(path)));
    SANDBOX_LINKS
        .iter()
        .filter_map(|path| Path::new(path).canonicalize().ok())
        .for_each(|path| out.add(Access::Read, &path));
    SANDBOX_DEVICES.iter().for_each(|path| out.grants.add(Access::Device, path));
    if let Some(home) = &home {
        out.grants.add(Access::List, home);
        out.add(Access::Read, home);
    }
    let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).for_each(|path| out.add(Access::Read, &path));
    out.program(places.program);
    interpreter(places.program, &path).iter().for_each(|program| out.program(program));
    super::own_executable::file().iter().for_each(|file| out.grants.add(Access::Read, file));
    for server in settings.mcp_servers.iter().chain(&settings.ask_server) {
        match &server.access {
            McpAccess::Stdio { command, env, .. } => {
                if command.contains('/') {
                    out.program(&settings.cwd.join(command));
                }
                let socket = env.get(super::variables::ASK).and_then(|address| address.split_once(':'));
                socket.iter().for_each(|(_, socket)| out.grants.add(Access::Connect, socket));
            }
            McpAccess::Remote { .. } => {}
        }
    }
    sandbox.read.iter().filter_map(given).for_each(|path| out.add(Access::Read, &path));
    out.grants.add(Access::Read, places.files);
    out.grants.add(Access::Write, places.temporary);
    out.state(domain);
    let worked = std::iter::once(settings.cwd.clone()).chain(settings.add_dirs.iter().filter_map(given));
    let access = if sandbox.mode == SandboxMode::Workspace { Access::Write } else { Access::Read };
    worked.for_each(|path| out.grants.add(access, path));
    match WorktreePart::of(&settings.cwd) {
        Some(part) => {
            out.grants.add(Access::Read, &part.common);
            part.writes().filter(|_| access == Access::Write).for_each(|path| out.grants.add(Access::Write, path));
        }
        // In a folder of a work tree, git reads what is in `.git`, and cannot commit.
        None => settings
            .cwd
            .ancestors()
            .skip(1)
            .map(|folder| folder.join(".git"))
            .filter(|git| git.is_dir())
            .take(1)
            .for_each(|git| out.grants.add(Access::Read, git)),
    }
    sandbox.write.iter().filter_map(given).for_each(|path| out.grants.add(Access::Write, path));
    if domain.kernel.files {
        // git expects no more of this folder, and one that does not exist cannot be kept.
        trusted::worked(settings).map(|folder| folder.join(".git")).filter(|git| git.is_dir()).for_each(|git| {
            let _ = DirBuilder::new().create(git.join("hooks"));
        });
        fix(&mut out.grants, &trusted::fixed(settings, domain));
    }
    out.grants
}

/// Keeps these places unchanged where a grant would let the agent change them, and the folders between from being renamed.
/// A place that is a link is left out.
fn fix(grants: &mut Grants, places: &[PathBuf]) {
    let writes = grants.iter().filter(|(access, _)| *access == Access::Write);
    let writes: BTreeSet<PathBuf> = writes.filter_map(|(_, path)| path.canonicalize().ok()).collect();
    let mut kept = BTreeMap::new();
    for place in places {
        if place.is_symlink() {
            continue;
        }
        let Ok(real) = place.canonicalize() else { continue };
        // The agent needs what lies there.
        if writes.iter().any(|write| write.starts_with(&real)) {
            continue;
        }
        if let Some(root) = real.ancestors().filter(|path| writes.contains(*path)).last() {
            let between = real.ancestors().skip(1).take_while(|path| *path != root);
            between.for_each(|path| _ = kept.entry(path.to_owned()).or_insert(Access::Pinned));
            kept.insert(real, Access::Fixed);
        }
    }
    // A folder comes before what lies in it.
    kept.into_iter().for_each(|(path, access)| grants.add(access, path));
}

/// Searches PATH as `env` does. `None`: the file is not a script, or PATH lacks its program.
fn interpreter(script: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut first = Vec::new();
    open_regular(script).ok()?.take(LINE_BYTES).read_to_end(&mut first).ok()?;
    let first = String::from_utf8_lossy(first.strip_prefix(b"#!")?).into_owned();
    let mut words = first.lines().next()?.split_whitespace();
    let program = Path::new(words.next()?);
    if !program.ends_with("env") {
        return Some(program.into());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

const LINE_BYTES: u64 = 256;

struct Around {
    hidden: BTreeSet<PathBuf>,
    grants: Grants,
}

impl Around {
    /// Grants a path. A secret itself is granted if it was named; one below the path is not.
    fn add(&mut self, access: Access, path: &Path) {
        if !self.surrounds(path) {
            return self.grants.add(access, path);
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let child = entry.path();
            // A link to a place elsewhere leads out of the folder; one to a place inside is granted by its own name.
            let real = match entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                true => child.canonicalize().ok().filter(|real| !real.starts_with(path) && !path.starts_with(real)),
                false => Some(child.clone()),
            };
            if let Some(real) = real.filter(|real| !self.is_secret(&child) && !self.is_secret(real)) {
                self.add(access, &real);
            }
        }
    }

    fn state(&mut self, domain: &Domain) {
        domain.reads.iter().for_each(|path| self.grants.add(Access::Read, path));
        for folder in &domain.folders {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            self.grants.add(Access::Write, folder);
        }
        for file in &domain.made {
            let _ = fs::OpenOptions::new().create(true).append(true).open(file);
            self.grants.add(Access::Write, file);
        }
        domain.files.iter().for_each(|file| self.grants.add(Access::Write, file));
    }

    fn surrounds(&self, path: &Path) -> bool {
        let mut later = self.hidden.range(path.to_path_buf()..);
        later.find(|secret| *secret != path).is_some_and(|secret| secret.starts_with(path))
    }

    /// Whether the path is a secret, or below one.
    fn is_secret(&self, path: &Path) -> bool {
        path.ancestors().any(|part| self.hidden.contains(part))
    }

    /// Grants a program with its installation: its folder, and for a program of Node.js the folder of its packages.
    fn program(&mut self, program: &Path) {
        self.grants.add(Access::Read, program);
        let Ok(real) = program.canonicalize() else { return };
        let packages = real.ancestors().filter(|path| path.ends_with("node_modules")).last();
        if let Some(folder) = packages.or(real.parent()) {
            self.add(Access::Read, folder);
        }
        self.grants.add(Access::Read, &real);
    }
}

#[cfg(test)]
mod tests {
    use super::{Around, OF_AGENTS, secrets};
    use crate::system::{Access, Grants};
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_granted_around_the_secrets_in_it() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for folder in [".ssh", ".config/gh", ".config/nvim", "work", "dotfiles/keys"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at(".profile"), "").unwrap();
        symlink(at(".ssh"), at("keys")).unwrap();
        symlink(at("work"), at("here")).unwrap();
        symlink("/usr", at("there")).unwrap();
        symlink("..", at("up")).unwrap();
        let hidden = BTreeSet::from([at(".ssh"), at(".config/gh"), at("dotfiles/keys")]);
        let mut around = Around { hidden, grants: Grants::default() };
        around.add(Access::Read, home.path());
        let granted: BTreeSet<_> = around.grants.iter().map(|(_, path)| path.to_owned()).collect();
        assert_eq!(granted, BTreeSet::from(["/usr".into(), at(".config/nvim"), at(".profile"), at("work")]));
    }

    #[test]
    fn a_named_secret_is_granted() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".npmrc");
        fs::write(&file, "").unwrap();
        let mut around = Around { hidden: BTreeSet::from([file.clone()]), grants: Grants::default() };
        around.add(Access::Read, &file);
        assert_eq!(around.grants.iter().collect::<Vec<_>>(), [(Access::Read, file.as_path())]);
    }

    #[test]
    fn each_secret_is_listed_once_and_below_home() {
        let all: Vec<_> = secrets::IN_HOME.iter().chain(OF_AGENTS).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|name| !name.starts_with('/') && !name.contains("..")));
    }
}

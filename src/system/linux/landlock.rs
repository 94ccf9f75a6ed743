//! The sandbox that the kernel keeps: Landlock. A process that is restricted stays so, with all that it starts.

use crate::system::sandbox::{Access, Grants};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::error::Error;

/// The first version that keeps a file from being renamed or truncated from outside the grants.
const LEAST: u32 = 3;

/// The newest version whose rights are used where the kernel has them.
const NEWEST: ABI = ABI::V10;

pub(crate) const SANDBOX_SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/proc",
    "/sys",
    "/var/lib/ca-certificates",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman",
];

/// These may be links to other folders.
pub(crate) const SANDBOX_LINKS: &[&str] = &["/etc/resolv.conf", "/etc/localtime", "/etc/hosts", "/etc/nsswitch.conf"];

pub(crate) const SANDBOX_DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// A test's answer in place of the kernel's, in a build for tests: a version, or 0 for a kernel without Landlock.
const TEST_ABI: &str = "TEST_LANDLOCK_ABI";

/// Error: the reason why this process cannot be restricted, as a clause.
pub(crate) fn sandbox_version() -> Result<u32, String> {
    let version = match answer_for_test() {
        Some(version) => version,
        // Only an attempt shows whether the system permits it. It restricts the thread that makes it, and no other.
        None => std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(64 << 10);
            let tried = thread.spawn_scoped(scope, || attempt().map_err(|why| why.to_string()));
            tried.map_err(|why| why.to_string())?.join().unwrap_or_else(|_| Err("the attempt failed".into()))
        })
        .map_err(|why| format!("the system does not permit Landlock ({why})"))?,
    };
    match version {
        0 => Err("the kernel has no Landlock, has it switched off, or a container forbids it".into()),
        1..LEAST => Err(format!(
            "the kernel has version {version} of Landlock, and the sandbox needs version {LEAST}, of Linux 6.2"
        )),
        version => Ok(version),
    }
}

fn answer_for_test() -> Option<u32> {
    if cfg!(debug_assertions) { std::env::var(TEST_ABI).ok()?.parse().ok() } else { None }
}

/// Restricts the calling thread. Returns the kernel's version, 0 for none.
fn attempt() -> Result<u32, Box<dyn Error>> {
    let ruleset = Ruleset::default().handle_access(AccessFs::Execute)?.create()?;
    let status = ruleset.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Execute))?.restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32).try_into().unwrap_or(0)
        }
    })
}

/// This process must have one thread. What it starts is restricted too. Skips missing paths. Error: a clause.
pub(crate) fn restrict(grants: &Grants) -> Result<(), String> {
    if let Some(version) = answer_for_test()
        && version < LEAST
    {
        return Err("the kernel has no Landlock".into());
    }
    match enforce(grants) {
        Ok(RulesetStatus::NotEnforced) => Err("the kernel has no Landlock".into()),
        Ok(RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}

fn enforce(grants: &Grants) -> Result<RulesetStatus, Box<dyn Error>> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for (access, path) in &grants.0 {
        // Without the path, there is nothing to reach there, and less is granted.
        if let Some(rights) = rights(*access)
            && let Ok(path) = PathFd::new(path)
        {
            ruleset = ruleset.add_rule(PathBeneath::new(path, rights))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

/// `None`: the kernel keeps it by other means.
fn rights(access: Access) -> Option<BitFlags<AccessFs>> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    Some(match access {
        Access::List => AccessFs::ReadDir.into(),
        Access::Read => AccessFs::from_read(ABI::V3),
        Access::Write => AccessFs::from_all(NEWEST) & !devices,
        Access::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
        Access::Connect => AccessFs::ResolveUnix.into(),
        Access::Pinned | Access::Fixed => return None,
    })
}

//! The environment variables by which the processes of this program find each other, which are not settings, and those
//! of git that an agent must not inherit.

/// Marks the processes of a run. Its value is the run's nonce, or `outer:inner` for a run inside a run.
pub const RUN: &str = "SPEKTACULAR_RUN";
/// Holds a nonce, a colon and the path of the socket by which the ask-server reaches its run.
pub(crate) const ASK: &str = "SPEKTACULAR_ASK";
/// Holds the nonces for the guard, with colons between them. It differs from the marker of the tree, so that the guard is
/// not stopped with the tree.
pub(crate) const GUARD: &str = "SPEKTACULAR_GUARD";
/// Names the folder of the run's socket, which the guard removes after a kill.
pub(crate) const GUARD_FOLDER: &str = "SPEKTACULAR_GUARD_FOLDER";
/// Names the folder of the run's control group, which the guard ends and removes after a kill.
pub(crate) const GUARD_CGROUP: &str = "SPEKTACULAR_GUARD_CGROUP";

/// Makes a run play a dialogue of `protocol check`. Holds the path of the dialogue's log, after the name of the dialogue
/// and the time limit of a question in milliseconds, each with a colon.
pub(crate) const CHECK: &str = "SPEKTACULAR_CHECK";

/// A process below a run inherits some of them.
pub(crate) const INTERNAL: [&str; 6] = [RUN, ASK, GUARD, GUARD_FOLDER, GUARD_CGROUP, CHECK];

/// The variables that lead git to one repository, as git sets them for a hook. In an agent's environment, they would
/// lead its git there from any folder. Source: `git rev-parse --local-env-vars`, and the variables that change which
/// files a path means.
pub(crate) const OF_GIT: [&str; 24] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

//! The environment variables by which the processes of this program find each other. They are not settings.

/// Marks the processes of a run. Its value is the run's nonce, or `outer:inner` for a run inside a run.
pub const RUN: &str = "SPEKTACULAR_RUN";
/// Holds a nonce, a colon and the path of the socket by which the ask-server reaches its run.
pub(crate) const ASK: &str = "SPEKTACULAR_ASK";
/// Holds the nonce for the guard. It differs from the marker of the tree, so that the guard is not stopped with the
/// tree.
pub(crate) const GUARD: &str = "SPEKTACULAR_GUARD";
/// Names the folder of the run's socket, which the guard removes after a kill.
pub(crate) const GUARD_FOLDER: &str = "SPEKTACULAR_GUARD_FOLDER";
/// Names the folder of the run's control group, which the guard ends and removes after a kill.
pub(crate) const GUARD_CGROUP: &str = "SPEKTACULAR_GUARD_CGROUP";

/// Makes a run play a dialogue of `protocol check`. Holds the path of the dialogue's log, after the name of the dialogue
/// and the time limit of a question in milliseconds, each with a colon.
pub(crate) const CHECK: &str = "SPEKTACULAR_CHECK";

/// All these variables. A process below a run inherits some of them.
pub(crate) const INTERNAL: [&str; 6] = [RUN, ASK, GUARD, GUARD_FOLDER, GUARD_CGROUP, CHECK];

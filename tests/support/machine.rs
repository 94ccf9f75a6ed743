//! Limits of the machine: the length of waits, and the checks that cannot run.

use std::io::Write;
use std::time::Duration;

/// Raises the limit of each wait on a loaded machine, in whole seconds.
pub(crate) const LIMIT_VARIABLE: &str = "TEST_WAIT_S";

/// The maximum time that a test waits for one event.
#[track_caller]
pub(crate) fn limit() -> Duration {
    let seconds = std::env::var(LIMIT_VARIABLE).map_or(20, |text| {
        text.parse().unwrap_or_else(|_| panic!("{LIMIT_VARIABLE} must be a whole number of seconds"))
    });
    Duration::from_secs(seconds)
}

/// Prints what stays unchecked and why. Writes to stderr itself, since the harness hides what `eprintln!` prints in a
/// test that passes.
#[track_caller]
pub(crate) fn not_checked(what: &str, why: &str) {
    writeln!(std::io::stderr(), "not checked: {what}: {why}").expect("stderr");
}

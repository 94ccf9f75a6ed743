//! `sessions`: the last sessions in a directory, newest first.

use super::{complain, configured};
use crate::cli::{Output, SessionsArgs};
use crate::io::output::print;
use crate::json::to_line;
use crate::protocol::failure::{EXIT_UNDELIVERED, Failure};
use crate::sessions::{Stored, newest};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs the command; returns the exit code.
pub(super) fn run(typed: &SessionsArgs) -> u8 {
    match text(typed) {
        Ok(text) if print(&text) => 0,
        Ok(_) => EXIT_UNDELIVERED,
        Err(failure) => complain(&failure),
    }
}

fn text(typed: &SessionsArgs) -> Result<String, Failure> {
    let layers = configured()?;
    let found = newest(&layers, typed.cwd.as_deref());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
    Ok(match typed.output {
        Output::Json => to_line(&json!({"sessions": found.iter().map(entry).collect::<Vec<_>>()})) + "\n",
        Output::Cli => found.iter().map(|(agent, stored)| line(agent, stored, now)).collect(),
    })
}

fn entry((agent, stored): &(&str, Stored)) -> Value {
    let Stored { id, at, words } = stored;
    json!({"agent": agent, "session_id": id, "at": (*at > 0).then_some(at), "prompt": words})
}

fn line(agent: &str, stored: &Stored, now: u64) -> String {
    let (Stored { at, words, .. }, id) = (stored, &*stored.id);
    format!("{id}  {agent}  {}  {words}", age(now.saturating_sub(*at), *at)).trim_end().to_owned() + "\n"
}

/// The time since `at`, in the largest fitting unit.
fn age(seconds: u64, at: u64) -> String {
    match seconds {
        _ if at == 0 => "-".into(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn an_age_has_one_unit() {
        let ages = [(5, "5s"), (65, "1m"), (7300, "2h"), (200_000, "2d")];
        assert_eq!(ages.map(|(seconds, _)| age(seconds, 1)), ages.map(|(_, shown)| shown));
        assert_eq!(age(5, 0), "-");
    }
}

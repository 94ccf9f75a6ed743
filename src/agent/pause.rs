//! The pause that a provider asks for, in the words of a failure: "Please try again in 3s".

use std::time::Duration;

/// The words before a pause, in lower case.
const BEFORE: [&str; 4] = ["try again in ", "try again after ", "retry in ", "retry after "];
/// A longer pause is something else.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);

pub(crate) fn pause_in(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    let after = |words: &&str| text.match_indices(*words).find_map(|(at, _)| length(&text[at + words.len()..]));
    BEFORE.iter().find_map(after)
}

/// The time at the beginning of a text, such as `1m12.5s` or `20 seconds`.
fn length(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, None);
    while let Some((part, after)) = part(rest) {
        seconds = Some(seconds.unwrap_or_default() + part);
        rest = after;
    }
    Duration::try_from_secs_f64(seconds?).ok().filter(|pause| *pause <= LONGEST)
}

fn part(text: &str) -> Option<(f64, &str)> {
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text[..text.len() - after.len()].parse().ok()?;
    let unit = after.strip_prefix(' ').unwrap_or(after);
    let rest = unit.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &unit[..unit.len() - rest.len()] {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    };
    Some((number * seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::pause_in;

    #[test]
    fn a_pause_has_a_unit_and_stands_after_its_words() {
        for (text, milliseconds) in [
            ("Limit 30000, Used 29000. Please try again in 3s. Visit https://example.com", Some(3_000)),
            ("No quota is left.\nSuggested retry after 400s.", Some(400_000)),
            ("Please retry in 33.25s.", Some(33_250)),
            ("Try again in 1m12.5s", Some(72_500)),
            ("try again in 6h0m1s", Some(21_601_000)),
            ("try again in 20ms.", Some(20)),
            ("try again after 5 minutes", Some(300_000)),
            ("Please retry after 1 second.", Some(1_000)),
            ("Do not try again in vain: retry in 2 days", Some(172_800_000)),
            ("try again at 7:19 PM", None),
            ("try again later", None),
            ("retry after 2026-11-28T19:20:00Z", None),
            ("retry after 400", None),
            ("try again in .s", None),
            ("try again in 99999999999999999999999999999999999999 days", None),
            ("try again in 32 days", None),
            ("wait 3s", None),
            ("try again in ", None),
        ] {
            assert_eq!(pause_in(text).map(|pause| pause.as_millis()), milliseconds, "{text}");
        }
    }
}

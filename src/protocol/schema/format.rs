//! The formats of strings that providers of models support.

use serde::Deserialize;
use std::net::{Ipv4Addr, Ipv6Addr};
use time::{Date, Month};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    Date,
    Time,
    DateTime,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uuid,
    Uri,
}

impl Format {
    /// The rest of "must be …".
    pub(super) fn words(self) -> &'static str {
        match self {
            Format::Date => "a date such as 2026-02-20",
            Format::Time => "a time such as 10:00:00Z",
            Format::DateTime => "a date and time such as 2026-02-20T10:00:00Z",
            Format::Duration => "a duration such as P1DT2H",
            Format::Email => "an email address",
            Format::Hostname => "a host name",
            Format::Ipv4 => "an IPv4 address",
            Format::Ipv6 => "an IPv6 address",
            Format::Uuid => "a UUID",
            Format::Uri => "a URI with its scheme",
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Format::Date => is_date(text),
            Format::Time => is_time(text),
            Format::DateTime => text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
            Format::Duration => is_duration(text),
            Format::Email => text.rsplit_once('@').is_some_and(|(local, domain)| is_local(local) && is_host(domain)),
            Format::Hostname => is_host(text),
            Format::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Format::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Format::Uuid => {
                let parts: Vec<&str> = text.splitn(6, '-').collect();
                let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
                parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
            }
            Format::Uri => is_uri(text),
        }
    }
}

fn digits(text: &str, count: usize) -> Option<u16> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let read = || {
        let (year, rest) = text.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        let month = Month::try_from(u8::try_from(digits(month, 2)?).ok()?).ok()?;
        Date::from_calendar_date(i32::from(digits(year, 4)?), month, u8::try_from(digits(day, 2)?).ok()?).ok()
    };
    read().is_some()
}

/// A time of a day with its offset, as in RFC 3339.
fn is_time(text: &str) -> bool {
    let read = || {
        let (clock, offset) = match text.strip_suffix(['Z', 'z']) {
            Some(clock) => (clock, "+00:00"),
            None => text.split_at_checked(text.len().checked_sub(6)?)?,
        };
        let (hours, minutes) = offset.strip_prefix(['+', '-'])?.split_once(':')?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let (hour, rest) = clock.split_once(':')?;
        let (minute, second) = rest.split_once(':')?;
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |text: &str, below: u16| Some(digits(text, 2)? < below);
        // A minute may have a leap second.
        Some(
            is_fraction
                && fits(hours, 24)?
                && fits(minutes, 60)?
                && fits(hour, 24)?
                && fits(minute, 60)?
                && fits(second, 61)?,
        )
    };
    read().unwrap_or(false)
}

/// A duration of ISO 8601, such as `P1Y2M3DT4H5M6S` or `P2W`.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P') else { return false };
    let (days, clock) = text.split_once('T').map_or((text, None), |(days, clock)| (days, Some(clock)));
    match clock {
        None => !days.is_empty() && (has_units(days, "YMD") || has_units(days, "W")),
        Some(clock) => !clock.is_empty() && has_units(days, "YMD") && has_units(clock, "HMS"),
    }
}

/// Whether a text consists of numbers, each with one of the units, in their order.
fn has_units(text: &str, mut units: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[number..].chars().next();
        let Some(at) = unit.and_then(|unit| units.find(unit)).filter(|_| number > 0) else { return false };
        (rest, units) = (&rest[number + 1..], &units[at + 1..]);
    }
    true
}

fn is_local(text: &str) -> bool {
    (1..=64).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@')
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let in_rest = |byte: u8| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
        && !rest.is_empty()
        && rest.bytes().all(in_rest)
}

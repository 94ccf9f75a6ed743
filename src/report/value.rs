//! Values of frames, read leniently.

use serde_json::Value;
use time::{Date, Month};

pub(super) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub(super) fn list_of<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// In milliseconds since 1970.
pub(super) fn time_of(frame: &Value) -> Option<i64> {
    let text = frame["ts"].as_str()?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
    let month = Month::try_from(u8::try_from(number(5, 7)?).ok()?).ok()?;
    let small = |from, to| u8::try_from(number(from, to)?).ok();
    let date = Date::from_calendar_date(number(0, 4)?.into(), month, small(8, 10)?).ok()?;
    let ms = number(20, 23).unwrap_or_default();
    let at = date.with_hms_milli(small(11, 13)?, small(14, 16)?, small(17, 19)?, ms).ok()?.assume_utc();
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

/// The value as a person reads it: a string without its quotes, a list with commas.
pub(super) fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(readable).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

//! The environment variables that hold secrets.

pub(crate) fn is_secret(name: &str) -> bool {
    const MARKS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "PAT"];
    name.split('_').any(|part| MARKS.iter().any(|mark| mark.eq_ignore_ascii_case(part)))
}

/// Whether a value is a plain decimal number or a word such as `true`. Floating-point numbers do not count, because the
/// hex key `12345678e9012345` looks like one.
pub(super) fn is_setting(value: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "none", "null"];
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    number || WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

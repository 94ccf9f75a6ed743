//! The two forms of a test: a short one for each day, and a long one for `.ci/run`.

/// The size of a test: `short`, or `long` where `TEST_LONG=1` asks for the long form of each test.
pub(crate) fn by_length<T>(short: T, long: T) -> T {
    if std::env::var_os("TEST_LONG").is_some_and(|value| value == "1") { long } else { short }
}

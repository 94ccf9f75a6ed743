//! Extracts an agent's own error messages, whole and without escape sequences. The run redacts and then cuts them.

use crate::clean::whole;
use crate::json::Object;

/// The maximum number of nested errors to unwrap.
const WRAPPERS: usize = 4;
/// The maximum number of texts for one failure.
const TEXTS: usize = 16;

/// The error message, unwrapped if it is a provider's JSON error. `None`: the text is blank.
pub(super) fn error(text: &str) -> Option<String> {
    let mut words = text.trim().to_owned();
    for _ in 0..WRAPPERS {
        let Some(inner) = Object::parse(&words).as_ref().and_then(message) else { break };
        words = inner.trim().to_owned();
    }
    let clean = whole(&words).trim().to_owned();
    (!clean.is_empty()).then_some(clean)
}

/// Skips messages that an earlier one contains.
pub(super) fn errors<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut words = String::new();
    for text in texts.into_iter().take(TEXTS) {
        let Some(text) = error(text) else { continue };
        if !words.contains(&text) {
            words.push_str(if words.is_empty() { "" } else { "\n" });
            words.push_str(&text);
        }
    }
    (!words.is_empty()).then_some(words)
}

fn message(object: &Object<'_>) -> Option<String> {
    let inner = object.object("error").and_then(|error| error.string("message"));
    let told = inner.or_else(|| object.string("message")).or_else(|| object.string("error"));
    told.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::{error, errors};

    #[test]
    fn nested_error_messages_are_unwrapped() {
        let google = r#"{"error":{"code":400,"message":"{\"error\":{\"message\":\"Too \\\"large\\\".\"}}"}}"#;
        for (text, words) in [
            (" A plain sentence.\n", "A plain sentence."),
            (google, "Too \"large\"."),
            (r#"{"type":"error","message":"No."}"#, "No."),
            (r#"{"error":"No."}"#, "No."),
            (r#"{"code":400}"#, r#"{"code":400}"#),
            (r#"API Error: 400 {"error":"No."}"#, r#"API Error: 400 {"error":"No."}"#),
        ] {
            assert_eq!(error(text), Some(words.to_owned()), "{text}");
        }
        assert_eq!((error(" \n"), error("\u{1b}[0m ")), (None, None));
    }

    #[test]
    fn repeated_messages_are_dropped() {
        assert_eq!(errors(["Broken: no route.", "", "no route.", "Later."]), error("Broken: no route.\nLater."));
        assert_eq!(errors(["", " "]), None);
    }
}

//! Secrets in command-line arguments that a user typed for an agent.

use super::is_secret_name;
use regex_lite::Regex;

/// The names after which every value counts as a secret, beside those of [`is_secret_name`].
const HEADERS: [&str; 6] = ["H", "HEADER", "HEADERS", "AUTHORIZATION", "BEARER", "ENV"];

fn marks(name: &str) -> bool {
    let parts = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let is_header = |part: &str| HEADERS.iter().any(|header| header.eq_ignore_ascii_case(part));
    is_secret_name(&parts) || parts.split('_').any(is_header)
}

/// The values in these arguments that look like secrets, by the name of their flag or key: `--api-key VALUE`,
/// `KEY=VALUE`, `-H 'Name: VALUE'`, and the strings in JSON and TOML under such a name. A header counts as a whole, and as
/// its credentials alone where a scheme such as Bearer precedes them.
pub(crate) fn secrets(arguments: &[String]) -> Vec<String> {
    let (mut found, patterns) = (Vec::new(), Patterns::new());
    for (at, argument) in arguments.iter().enumerate() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if !name.contains(['{', '"', ' ', ':']) => (name, value),
            _ => match at.checked_sub(1).map(|before| arguments[before].as_str()) {
                Some(flag) if flag.starts_with('-') && !flag.contains('=') => (flag, argument.as_str()),
                _ => ("", argument.as_str()),
            },
        };
        if marks(name) {
            patterns.collect(value, &mut found);
        }
        patterns.in_tables(value, &mut found);
    }
    found
}

struct Patterns {
    /// A name and a quoted value, in JSON or TOML.
    pair: Regex,
    table: Regex,
    value: Regex,
}

impl Patterns {
    fn new() -> Patterns {
        Patterns {
            pair: pattern(r#"([A-Za-z0-9_.-]+)["']?\s*[:=]\s*"((?:[^"\\]|\\.)*)""#),
            table: pattern(r#"([A-Za-z0-9_.-]+)["']?\s*[:=]\s*(\{[^{}]*\})"#),
            value: pattern(r#"[:=]\s*["']((?:[^"'\\]|\\.)*)["']"#),
        }
    }

    /// Takes a value, and its parts if it is a header.
    fn collect(&self, value: &str, found: &mut Vec<String>) {
        let value = value.trim().trim_matches(['"', '\'']);
        if value.starts_with('{') || value.is_empty() {
            return self.strings(value, found);
        }
        let header = value.split_once([':', '=']).map(|(_, value)| value.trim());
        let credentials = header.unwrap_or(value).split_once(' ').map(|(_, rest)| rest.trim());
        found.extend([Some(value), header, credentials].into_iter().flatten().map(str::to_owned));
    }

    /// The values in a text in JSON or TOML whose name marks them, or that of the table around them.
    fn in_tables(&self, text: &str, found: &mut Vec<String>) {
        let marked = |whole: &regex_lite::Captures<'_>| marks(&whole[1]);
        self.pair.captures_iter(text).filter(marked).for_each(|whole| self.collect(&whole[2], found));
        self.table.captures_iter(text).filter(marked).for_each(|whole| self.strings(&whole[2], found));
    }

    fn strings(&self, table: &str, found: &mut Vec<String>) {
        self.value.captures_iter(table).for_each(|whole| {
            found.push(whole[1].to_owned());
            found.extend(whole[1].split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
        });
    }
}

#[expect(clippy::unwrap_used, reason = "each pattern is a constant that the test below compiles")]
fn pattern(text: &'static str) -> Regex {
    Regex::new(text).unwrap()
}

#[cfg(test)]
mod tests {
    use super::secrets;

    #[test]
    fn a_value_is_a_secret_by_its_name() {
        for (arguments, wanted) in [
            (&["--api-key", "heron-77315"][..], &["heron-77315"][..]),
            (&["--api-key=heron-77315"], &["heron-77315"]),
            (&["-H", "X-Lab-Pass: heron-77315"], &["X-Lab-Pass: heron-77315", "heron-77315"]),
            (&["--header=Authorization: Bearer heron-77315"], &["heron-77315"]),
            (&["-c", r#"mcp_servers.s.http_headers={"X-Lab-Pass"="heron-77315"}"#], &["heron-77315"]),
            (&["-c", r#"mcp_servers.s.http_headers.X-Lab-Pass="heron-77315""#], &["heron-77315"]),
            (
                &["--mcp-config", r#"{"mcpServers":{"s":{"headers":{"X-Lab-Pass":"Token heron-77315"}}}}"#],
                &["heron-77315"],
            ),
            (
                &["--settings", r#"{"env":{"PASS":"heron-77315"},"other_token": "owl-551"}"#],
                &["heron-77315", "owl-551"],
            ),
        ] {
            let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let found = secrets(&arguments);
            for secret in wanted {
                assert!(found.iter().any(|value| value == secret), "{secret} is not in {found:?}");
            }
        }
        let plain = ["--model", "m", "-c", "model=\"gpt-5.5\"", "--verbose", "--config={\"model\":\"m\"}", "prompt"];
        assert_eq!(secrets(&plain.map(str::to_owned)), [""; 0]);
    }
}

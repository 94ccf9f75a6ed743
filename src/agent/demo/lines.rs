//! The lines between the driver and the player.

use crate::json::{Object, Raw, to_line};

#[derive(Debug, Default)]
pub(super) struct PlayerLine(String);

impl PlayerLine {
    /// `value` is JSON.
    pub(super) fn with(mut self, name: &str, value: &str) -> PlayerLine {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    /// Names the call whose sub-agent says or does this.
    pub(super) fn of(self, parent: Option<&str>) -> PlayerLine {
        match parent {
            Some(parent) => self.with("parent", &quoted(parent)),
            None => self,
        }
    }

    pub(super) fn done(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

pub(super) fn quoted(text: &str) -> String {
    to_line(&text)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromHost {
    Prompt(String),
    Steer(String),
    /// The answers to the request with this key. `None`: a question has no answer.
    Answers(String, Vec<Option<Vec<String>>>),
    Interrupt,
    End,
}

impl FromHost {
    pub(super) fn line(&self) -> String {
        let of = |kind: &str| PlayerLine::default().with("type", &quoted(kind));
        match self {
            FromHost::Prompt(text) => of("prompt").with("text", &quoted(text)),
            FromHost::Steer(text) => of("steer").with("text", &quoted(text)),
            FromHost::Answers(key, answers) => {
                of("answers").with("key", &quoted(key)).with("answers", &to_line(answers))
            }
            FromHost::Interrupt => of("interrupt"),
            FromHost::End => of("end"),
        }
        .done()
    }

    pub(super) fn parse(line: &str) -> Option<FromHost> {
        let line = Object::parse(line)?;
        let text = || line.string("text");
        Some(match &*line.str("type")? {
            "prompt" => FromHost::Prompt(text()?),
            "steer" => FromHost::Steer(text()?),
            "answers" => {
                let answer = |raw: Raw<'_>| Some(raw.elements()?.filter_map(Raw::string).collect());
                FromHost::Answers(line.string("key")?, line.array("answers").map(answer).collect())
            }
            "interrupt" => FromHost::Interrupt,
            "end" => FromHost::End,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::FromHost;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let answers = vec![None, Some(vec!["a\n\"b\"".to_owned(), "c".to_owned()])];
        for line in [
            FromHost::Prompt("\u{2028}".into()),
            FromHost::Steer(String::new()),
            FromHost::Answers("k".into(), answers),
            FromHost::Interrupt,
            FromHost::End,
        ] {
            assert_eq!(FromHost::parse(&line.line()), Some(line));
        }
    }
}

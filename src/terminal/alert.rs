//! The features that only some terminal programs have, and the signs that a question waits: a bell and a window title.

/// The sequences put the old title on the terminal's stack and take it back. They contain no text of the agent's.
const TITLE: &str = "\u{1b}[22;2t\u{1b}]2;spektacular: a question waits\u{1b}\\";
const OLD_TITLE: &str = "\u{1b}[23;2t";
const BELL: &str = "\u{7}";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalFeatures {
    /// Links in text (OSC 8).
    pub links: bool,
    /// A stack of window titles.
    pub titles: bool,
}

impl TerminalFeatures {
    /// `variable`: the environment, in which most programs name themselves.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> TerminalFeatures {
        const NONE: TerminalFeatures = TerminalFeatures { links: false, titles: false };
        const LINKS: TerminalFeatures = TerminalFeatures { links: true, titles: false };
        const TITLES: TerminalFeatures = TerminalFeatures { links: false, titles: true };
        const BOTH: TerminalFeatures = TerminalFeatures { links: true, titles: true };
        let term = variable("TERM").unwrap_or_default();
        // Between such a program and the terminal, the variables of the terminal say nothing.
        if variable("TMUX").is_some() || variable("STY").is_some() || term.starts_with("screen") {
            return NONE;
        }
        match variable("TERM_PROGRAM").as_deref() {
            Some("iTerm.app" | "ghostty") => return BOTH,
            Some("WezTerm" | "vscode") => return LINKS,
            Some(_) | None => {}
        }
        match term.as_str() {
            "xterm-kitty" | "xterm-ghostty" | "foot" | "foot-extra" | "alacritty" => return BOTH,
            _ => {}
        }
        // GNOME Terminal and its relatives: 0.50 is the first version with links that do no harm.
        let vte = variable("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
        match vte {
            Some(5000..) => BOTH,
            Some(_) => NONE,
            None if variable("WT_SESSION").is_some() => LINKS,
            None if variable("XTERM_VERSION").is_some() => TITLES,
            None => NONE,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Alert {
    /// Whether the bell rang for it, or the person is known to be there.
    rung: bool,
    titled: bool,
}

impl Alert {
    pub(super) fn change(&mut self, is_open: bool, titles: bool) -> String {
        if !is_open {
            self.rung = false;
            return self.end();
        }
        let title = if titles && !std::mem::replace(&mut self.titled, true) { TITLE } else { "" };
        let bell = if std::mem::replace(&mut self.rung, true) { "" } else { BELL };
        [title, bell].concat()
    }

    /// The person is at the terminal: the next question shows without a bell.
    pub(super) fn met(&mut self) {
        self.rung = true;
    }

    pub(super) fn end(&mut self) -> String {
        if std::mem::take(&mut self.titled) { OLD_TITLE.to_owned() } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alert, BELL, OLD_TITLE, TITLE, TerminalFeatures};

    #[test]
    fn features_are_those_of_known_programs() {
        for (variables, links, titles) in [
            (&[("TERM", "xterm-256color")][..], false, false),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7603")], true, true),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "4205")], false, false),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "new")], false, false),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")], true, false),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], true, true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], false, false),
            (&[("TERM", "xterm-256color"), ("WT_SESSION", "1")], true, false),
            (&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(390)")], false, true),
            (&[("TERM", "xterm-kitty")], true, true),
            (&[("TERM", "screen-256color"), ("VTE_VERSION", "7603")], false, false),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/x"), ("VTE_VERSION", "7603")], false, false),
        ] {
            let found = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(TerminalFeatures::detect(found), TerminalFeatures { links, titles }, "{variables:?}");
        }
    }

    #[test]
    fn a_question_rings_once_and_gives_the_title_back() {
        let mut alert = Alert::default();
        assert_eq!(alert.change(false, true), "");
        assert_eq!(alert.change(true, true), format!("{TITLE}{BELL}"));
        assert_eq!(alert.change(true, true), "");
        assert_eq!(alert.change(false, true), OLD_TITLE);
        assert_eq!(alert.change(true, false), BELL);
        assert_eq!(alert.change(false, false), "");
        alert.met();
        assert_eq!((alert.change(true, true), alert.end(), alert.end()), (TITLE.into(), OLD_TITLE.into(), "".into()));
    }
}

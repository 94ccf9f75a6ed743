//! Tests of redaction: forms, shapes, texts that must stay, and texts in pieces.

use std::borrow::Cow;

use proptest::prelude::*;
use spektacular::redact::{MASK, Redactor, Stream};

fn with(secrets: &[&str]) -> Redactor {
    let mut redactor = Redactor::new();
    for secret in secrets {
        redactor.add(secret);
    }
    redactor
}

fn in_pieces<'a>(redactor: &Redactor, pieces: impl Iterator<Item = &'a str>) -> String {
    let mut stream = Stream::default();
    let mut out = String::new();
    for piece in pieces {
        out += &stream.push(redactor, piece);
    }
    out + &stream.finish(redactor)
}

fn by_char(redactor: &Redactor, text: &str) -> String {
    in_pieces(redactor, text.char_indices().map(|(n, c)| &text[n..n + c.len_utf8()]))
}

/// Checks the result, and that a second pass and every split into two pieces or into characters give the same.
#[track_caller]
fn check(redactor: &Redactor, text: &str, expected: &str) {
    assert_eq!(redactor.redact(text), expected, "of {text:?}");
    assert_eq!(redactor.redact(expected), expected, "again, of {text:?}");
    assert_eq!(by_char(redactor, text), expected, "by char, of {text:?}");
    for (cut, _) in text.char_indices() {
        let pieces = [&text[..cut], &text[cut..]];
        assert_eq!(in_pieces(redactor, pieces.into_iter()), expected, "cut at {cut}, of {text:?}");
    }
}

#[track_caller]
fn stays(redactor: &Redactor, text: &str) {
    check(redactor, text, text);
    assert!(matches!(redactor.redact(text), Cow::Borrowed(_)));
}

#[test]
fn a_registered_secret_cannot_be_printed() {
    let redactor = with(&["hunter2-hunter2"]);
    let mut stream = Stream::default();
    stream.push(&redactor, "hunter2");
    assert!(!format!("{redactor:?}{stream:?}").contains("hunter"));
}

#[test]
fn short_values_are_refused() {
    let mut redactor = Redactor::new();
    for value in ["", "abcdefg", "abcabcabcabc", "........", "ééé€"] {
        assert!(!redactor.add(value), "{value:?}");
        stays(&redactor, value);
    }
    for value in ["abcdefgh", "abcdabcd", "é€ßa"] {
        assert!(redactor.add(value), "{value:?}");
        check(&redactor, value, MASK);
    }
}

#[test]
fn every_form() {
    let secret = "p/a ss\"w'ö<r>&d\\+\n?1";
    let redactor = with(&[secret]);
    let forms = [
        secret,
        // JSON once: plain, with \/, with \u, with both, upper case, Go, .NET.
        r#"p/a ss\"w'ö<r>&d\\+\n?1"#,
        r#"p\/a ss\"w'ö<r>&d\\+\n?1"#,
        r#"p/a ss\"w'\u00f6<r>&d\\+\n?1"#,
        r#"p/a ss\"w'\u00F6<r>&d\\+\n?1"#,
        r#"p\/a ss\"w'\u00f6<r>&d\\+\n?1"#,
        r#"p/a ss\"w'ö\u003cr\u003e\u0026d\\+\n?1"#,
        r#"p/a ss\u0022w\u0027\u00F6\u003Cr\u003E\u0026d\\\u002B\n?1"#,
        // JSON twice.
        r#"p/a ss\\\"w'ö<r>&d\\\\+\\n?1"#,
        r#"p\/a ss\\\"w'ö<r>&d\\\\+\\n?1"#,
        r#"p\\/a ss\\\"w'ö<r>&d\\\\+\\n?1"#,
        r#"p\\\/a ss\\\"w'ö<r>&d\\\\+\\n?1"#,
        r#"p/a ss\\\"w'\\u00f6<r>&d\\\\+\\n?1"#,
        // Percent encoding.
        "p%2Fa%20ss%22w%27%C3%B6%3Cr%3E%26d%5C%2B%0A%3F1",
        "p%2fa%20ss%22w%27%c3%b6%3cr%3e%26d%5c%2b%0a%3f1",
        "p/a%20ss%22w%27%C3%B6%3Cr%3E%26d%5C%2B%0A%3F1",
        "p/a%20ss%22w%27%c3%b6%3cr%3e%26d%5c%2b%0a%3f1",
        "p%2Fa+ss%22w%27%C3%B6%3Cr%3E%26d%5C%2B%0A%3F1",
        "p%2fa+ss%22w%27%c3%b6%3cr%3e%26d%5c%2b%0a%3f1",
        "p%2Fa%20ss%22w'%C3%B6%3Cr%3E%26d%5C%2B%0A%3F1",
        // HTML.
        "p/a ss&quot;w&#39;ö&lt;r&gt;&amp;d\\+\n?1",
        "p/a ss\"w'ö&lt;r&gt;&amp;d\\+\n?1",
        "p/a ss&quot;w&#x27;ö&lt;r&gt;&amp;d\\+\n?1",
        "p/a ss&#34;w&#39;ö&lt;r&gt;&amp;d\\+\n?1",
        "p/a ss&quot;w&apos;ö&lt;r&gt;&amp;d\\+\n?1",
        // Shell and Python.
        "p/a ss\"w'\\''ö<r>&d\\+\n?1",
        "p/a ss\"w'\"'\"'ö<r>&d\\+\n?1",
        r#"p/a ss"w\'ö<r>&d\\+\n?1"#,
        // Hex.
        "702f61207373227727c3b63c723e26645c2b0a3f31",
        "702F61207373227727C3B63C723E26645C2B0A3F31",
        // Base64 of exactly the value.
        "cC9hIHNzIncnw7Y8cj4mZFwrCj8x",
    ];
    for form in forms {
        check(&redactor, form, MASK);
        check(&redactor, &format!("x{form}y"), "x[redacted]y");
    }
}

fn base64(bytes: &[u8], last: &[u8; 2], pad: bool) -> String {
    let mut alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').collect();
    alphabet.extend_from_slice(last);
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |n: usize| usize::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            if n <= group.len() {
                out.push(char::from(alphabet[bits >> (18 - 6 * n) & 63]));
            } else if pad {
                out.push('=');
            }
        }
    }
    out
}

#[test]
fn base64_at_every_alignment() {
    assert_eq!(base64(b"any carnal pleas", b"+/", true), "YW55IGNhcm5hbCBwbGVhcw==");
    let secret = "s3cr?t>value~~{}ÿÿ-99";
    for length in [8, 9, 10, 16, secret.len()] {
        let secret = &secret[..length];
        let redactor = with(&[secret]);
        for last in [b"+/", b"-_"] {
            for before in 0..7 {
                for after in 0..5 {
                    let text = [&b"<{user:"[..before], secret.as_bytes(), &b"\n}>ab"[..after]];
                    let encoded = base64(&text.concat(), last, true);
                    let redacted = redactor.redact(&encoded).into_owned();
                    assert!(redacted.contains(MASK), "{before} {after} {encoded}");
                    // At most one character at each end mixes the value with its neighbours.
                    let rest = redacted.replacen(MASK, "", 1);
                    let outside = base64(&vec![0; before + after], last, true).len();
                    assert!(rest.len() <= outside + 4, "{encoded} {redacted}");
                    if before % 3 == 0 && after == 0 {
                        let expected = format!("{}{MASK}", &encoded[..before / 3 * 4]);
                        check(&redactor, &encoded, &expected);
                        let bare = base64(&text.concat(), last, false);
                        check(&redactor, &bare, &expected);
                    }
                    assert_eq!(by_char(&redactor, &encoded), redacted);
                }
            }
        }
    }
}

#[test]
fn lines_of_a_long_value() {
    let redactor = with(&["first line here\r\n  second-line\nshort\n\naaaaaaaaaaaa\n\tthird:line\n"]);
    check(&redactor, "a first line here b", "a [redacted] b");
    check(&redactor, "\n  second-line\n", "\n[redacted]\n");
    check(&redactor, "\n> second-line\n", "\n> [redacted]\n");
    check(&redactor, "third%3Aline", MASK);
    stays(&redactor, "short");
    stays(&redactor, "aaaaaaaaaaaa");
    check(&with(&["trailing-newline\n"]), "x=trailing-newline;", "x=[redacted];");
}

#[test]
fn a_value_without_the_blanks_around_it() {
    let redactor = with(&["  blank-before", "blank-after-it\t"]);
    check(&redactor, "a   blank-before", "a [redacted]");
    check(&redactor, "a: blank-before, blank-after-it.", "a: [redacted], [redacted].");
}

#[test]
fn short_lines_of_a_value_in_a_diff() {
    for value in ["one\ntwo\nthree\n", "one\r\ntwo\r\nthree"] {
        let redactor = with(&[value]);
        check(&redactor, "+one\n+two\n+three\n+four", "+[redacted]\n+four");
        check(&redactor, "-one\n-two\n-three\n", "-[redacted]\n");
        check(&redactor, " one\n two\n three", " [redacted]");
        check(&redactor, r#""+one\n+two\n+three\n""#, r#""+[redacted]\n""#);
        stays(&redactor, "+one\n+two\n three\n");
    }
}

#[test]
fn leftmost_then_longest() {
    let redactor = with(&["abcdefgh", "abcdefghijkl", "efghijklmnop", "ABCDEFGH"]);
    check(&redactor, "abcdefgh", MASK);
    check(&redactor, "abcdefghijk", "[redacted]ijk");
    check(&redactor, "abcdefghijkl", MASK);
    check(&redactor, "abcdefghijklmnop", "[redacted]mnop");
    check(&redactor, "abcdefgefghijklmnop", "abcdefg[redacted]");
    check(&redactor, "abcdabcdefghABCDEFGH", "abcd[redacted][redacted]");
    // A form that begins inside the beginning of a shape.
    let redactor = with(&["sk-abcdefghi and more"]);
    check(&redactor, "sk-abcdefghi and more", MASK);
    check(&redactor, "sk-abcdefghi and mor", "sk-abcdefghi and mor");
    check(&redactor, "sk-abcdefghijklmnopqrstuv and more", "[redacted] and more");
}

#[test]
fn a_secret_that_extends_past_a_known_token_is_hidden_entirely() {
    let redactor = with(&["sk-abcdefghijklmnopqrstuvwxyz and more", "abc\ndef-0123", "abcd1234\\"]);
    check(&redactor, "sk-abcdefghijklmnopqrstuvwxyz and more.", "[redacted].");
    check(&redactor, "sk-abcdefghijklmnopqrstuvwxyz and mor", "[redacted] and mor");
    check(&redactor, "Authorization: abc\ndef-0123 x", "Authorization: [redacted] x");
    check(&redactor, "Authorization: abcd1234\\next", "Authorization: [redacted]next");
    let redactor = with(&["abcd1234\\u"]);
    check(&redactor, "Authorization: abcd1234\\u000a x", "Authorization: [redacted]000a x");
}

#[test]
fn characters_that_a_terminal_joins_are_one_text() {
    let mut redactor = with(&["hunter2-hunter2"]);
    let split = "a hun\u{1b}[31mter2-\u{feff}hunt\u{1b}]0;x\u{7}er2, ghp_abcdefghij\u{1b}[0mklmnopqrstuvwxyz b";
    stays(&redactor, split);
    redactor.clean_first();
    check(&redactor, split, "a [redacted], [redacted] b");
    check(&redactor, "a \u{1b}[31mword\u{1b}[0m b", "a word b");
    assert_eq!(redactor.redact_uncleaned(split), split);
}

#[test]
fn many_values_with_one_beginning() {
    let secrets: Vec<String> = (0..2000).map(|n| format!("correct-horse-battery-{n}")).collect();
    let mut redactor = Redactor::new();
    assert_eq!(redactor.add_all(secrets.iter().map(String::as_str)), 0);
    let text = "correct-horse-battery- correct-horse-battery-77 correct-horse-battery-1999x ".repeat(100);
    let clean = "correct-horse-battery- [redacted] [redacted]x ".repeat(100);
    assert_eq!(redactor.redact(&text), clean);
}

#[test]
fn a_text_that_was_trimmed_below_the_limit_stays() {
    stays(&with(&["   a\r\nb  "]), "x = a\nb");
}

#[test]
fn a_mask_is_not_redacted_again() {
    let redactor = with(&["redacted", "[redacte", "x[redacted]y", "acted] and"]);
    stays(&redactor, MASK);
    stays(&redactor, "a [redacted][redacted] and b");
    stays(&redactor, "x[redacted]y");
    stays(&redactor, "https://[redacted]@host");
    stays(&redactor, "https://user:[redacted]@host");
    stays(&redactor, "Authorization: Bearer [redacted]");
    check(&redactor, "redacted", MASK);
    check(&redactor, "[redacted", "[redacted]d");
    check(&redactor, "[[redacted]]", "[[redacted]]");
}

const A20: &str = "abcDEF0123456789abcd";
const A36: &str = "abcDEF0123456789abcdefghij0123456789";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";

#[test]
fn every_shape() {
    let redactor = Redactor::new();
    let shapes = [
        format!("sk-ant-api03-{A36}-{A20}_AA"),
        format!("sk-ant-admin01-{A36}"),
        format!("sk-proj-{A36}_{A20}"),
        format!("sk-svcacct-{A20}"),
        format!("sk-{A20}"),
        format!("ghp_{A36}"),
        format!("gho_{A36}"),
        format!("ghu_{A36}"),
        format!("ghr_{A36}"),
        format!("ghs_{A36}"),
        format!("ghs_1234567_{JWT}"),
        format!("ghp_{A20}"),
        format!("github_pat_{A20}_{A36}"),
        format!("glpat-{A20}"),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        "ASIAIOSFODNN7EXAMPLE".to_owned(),
        "ABIAIOSFODNN7EXAMPLE".to_owned(),
        "ACCAIOSFODNN7EXAMPLE".to_owned(),
        "AIzaSyA-1234567890_abcdefghijklmnopqrst".to_owned(),
        "xoxb-123456789012-abcdefABCDEF".to_owned(),
        "xoxp-1234567890".to_owned(),
        "xoxa-1234567890".to_owned(),
        "xoxe-1234567890".to_owned(),
        "xoxr-1234567890".to_owned(),
        "xoxs-1234567890".to_owned(),
        "hf_abcdefghijABCDEFGHIJabcdefghijKLMN".to_owned(),
        format!("npm_{A36}"),
        JWT.to_owned(),
    ];
    for shape in &shapes {
        check(&redactor, shape, MASK);
        for (before, after) in [
            ("key=", " end"),
            ("\"", "\""),
            ("\\n", "\\n"),
            ("a\\u000a", "\\u000a"),
            ("url?x%3D", "%26y"),
            ("\x1b[32m", "\x1b[0m"),
            ("\\u001b[1;32m", "\\u001b[0m"),
            ("ö", "ö"),
            ("(", ")"),
        ] {
            let text = format!("{before}{shape}{after}");
            check(&redactor, &text, &format!("{before}{MASK}{after}"));
        }
    }
}

#[test]
fn private_keys() {
    let redactor = Redactor::new();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\nabc-def\n-----END RSA PRIVATE KEY-----";
    check(&redactor, &format!("a\n{key}\nb"), "a\n[redacted]\nb");
    check(&redactor, &key.replace('\n', "\\n"), MASK);
    check(&redactor, &key.replace('\n', "\\\\n"), MASK);
    check(&redactor, &key.replace("RSA ", ""), MASK);
    check(&redactor, &key.replace("RSA", "OPENSSH"), MASK);
    let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n-----END PGP PRIVATE KEY BLOCK-----\n";
    check(&redactor, pgp, "[redacted]\n");
    // Line numbers, a missing end, and an end of another kind.
    check(&redactor, "1 -----BEGIN PRIVATE KEY-----\n2 MIIE", "1 [redacted]");
    check(&redactor, "-----BEGIN PRIVATE KEY-----\nM\n-----END CERTIFICATE-----\n-----END PRIVATE KEY-", MASK);
    check(&redactor, "-----BEGIN PRIVATE KEY-----\nM[redacted]M\n-----END PRIVATE KEY----- x", "[redacted] x");
    stays(&redactor, "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----");
    stays(&redactor, "-----BEGIN PUBLIC KEY-----\nMIIEow\n-----END PUBLIC KEY-----");
    stays(&redactor, "if s.startswith(\"-----BEGIN PRIVATE KEY-----\"): pass");
    stays(&redactor, "| a | b |\n|-----|------|\n---------- BEGIN PRIVATE KEY");
}

#[test]
fn authorization_headers() {
    let redactor = Redactor::new();
    let table = [
        ("Authorization: Bearer abc\nHost: x", "Authorization: Bearer [redacted]\nHost: x"),
        ("authorization:Basic dTpw\r\nA: b", "authorization:Basic [redacted]\r\nA: b"),
        ("PROXY-AUTHORIZATION: NTLM TlR=", "PROXY-AUTHORIZATION: NTLM [redacted]"),
        ("HTTP_AUTHORIZATION=Basic dTpw", "HTTP_AUTHORIZATION=Basic [redacted]"),
        ("Authorization: hunter2 and more", "Authorization: [redacted]"),
        ("authorization=abc", "authorization=[redacted]"),
        ("authorization = 'abc' # x", "authorization = '[redacted]' # x"),
        (r#"{"Authorization": "Bearer x", "a": 1}"#, r#"{"Authorization": "Bearer [redacted]", "a": 1}"#),
        (r#"{\"authorization\":\"Basic a\/b==\",\"a\":1}"#, r#"{\"authorization\":\"Basic [redacted]\",\"a\":1}"#),
        (r#"{"Authorization":"Basic a\u002Bb","a":"it's"}"#, r#"{"Authorization":"Basic [redacted]","a":"it's"}"#),
        (
            r#"{"t":"GET\nAuthorization: Bearer x\nHost: y"}"#,
            r#"{"t":"GET\nAuthorization: Bearer [redacted]\nHost: y"}"#,
        ),
        (
            r#"curl -H "Authorization: Basic dXNlcg==" https://h"#,
            r#"curl -H "Authorization: Basic [redacted]" https://h"#,
        ),
        (r#"Authorization: Digest username="u", response="00 ff""#, "Authorization: Digest [redacted]"),
        (r#"-H 'Authorization: Digest username="u", response="f"' h"#, "-H 'Authorization: Digest [redacted]' h"),
        (r#"{"Authorization":"Digest u=\"a\", r=\"b\"","x":1}"#, r#"{"Authorization":"Digest [redacted]","x":1}"#),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=A/b, Signature=f\n",
            "Authorization: AWS4-HMAC-SHA256 [redacted]\n",
        ),
        ("'Authorization' => 'Bearer x'", "'Authorization' => 'Bearer [redacted]'"),
        ("<b>Authorization: Bearer x</b>", "<b>Authorization: Bearer [redacted]</b>"),
        ("Authorization: Bearer a[redacted]b\nc", "Authorization: Bearer [redacted]\nc"),
        ("authorization: bearerish", "authorization: [redacted]"),
        ("Authorization: -----BEGIN PRIVATE KEY-----\nM\n-----END PRIVATE KEY-----\nx", "Authorization: [redacted]\nx"),
    ];
    for (text, expected) in table {
        check(&redactor, text, expected);
    }
    for text in [
        "Authorization: ",
        "Authorization: Bearer",
        "Authorization: Bearer \nHost: x",
        "Authorization: Bearer <token>",
        "-H \"Authorization: Bearer \" + x",
        r#"{"authorization":true,"authorization":{"a":"b"},"authorization":null}"#,
        "if authorization == x { authorization::check() }",
        "authorization: { type: 'x' }",
        "request.authorization.check(preauthorization: x)",
        "The authorization of a request, and its authorization.",
    ] {
        stays(&redactor, text);
    }
}

#[test]
fn bearer_tokens() {
    let redactor = Redactor::new();
    check(&redactor, "got bearer abc.def-0123456/=, ok", "got bearer [redacted], ok");
    check(&redactor, "Bearer  0123456789abcdef\n", "Bearer  [redacted]\n");
    check(&redactor, "\\nBEARER\t0123456789abcdef", "\\nBEARER\t[redacted]");
    stays(&redactor, "a bearer token of 15 chars: Bearer 0123456789abcde");
    stays(&redactor, "Bearer\n0123456789abcdef, forbearer 0123456789abcdef");
}

#[test]
fn passwords_in_urls() {
    let redactor = Redactor::new();
    for (text, expected) in [
        ("https://user:pass@host/x", "https://[redacted]@host/x"),
        ("see postgres://u:p%40ss@h:5432/db?x=1.", "see postgres://[redacted]@h:5432/db?x=1."),
        ("redis://:pass@h", "redis://[redacted]@h"),
        ("https://key:@api", "https://[redacted]@api"),
        ("a://u:p@ss@h b://u:p@h", "a://[redacted]@h b://[redacted]@h"),
        (r"https:\/\/u:p@h\/x", r"https:\/\/[redacted]@h\/x"),
        ("\"amqp://u:pö@h\"", "\"amqp://[redacted]@h\""),
        ("https://ghp_0123456789abcdefghij:x@h", "https://[redacted]@h"),
        ("https://ghp_0123456789abcdefghij@h", "https://[redacted]@h"),
    ] {
        check(&redactor, text, expected);
    }
    for text in [
        "https://user@host/x and ssh://git@github.com:org/repo.git",
        "http://localhost:8080/@scope/name http://h:80?a=b@c http://h:80#a@b",
        "https://${USER}:${PASS}@host and f\"https://{u}:{p}@host\"",
        "http://h:80 mail me@example.org \"http://h:80\",\"me@x\"",
        "://:@h c://@:x file:///etc/passwd",
    ] {
        stays(&redactor, text);
    }
    let long = "p".repeat(2000);
    stays(&redactor, &format!("a://u:{long}@h"));
}

#[test]
fn ordinary_text_stays() {
    let redactor = with(&["correct horse battery staple", "zX9!kLm2@pQ7"]);
    for text in [
        "task-runner-something-long-here desk-lamp-with-a-very-long-name-0123",
        "-sk-abcdefghijklmnopqrstuvwxyz my_sk-abcdefghijklmnopqrstuvwxyz sk-short sk-learn",
        "550e8400-e29b-41d4-a716-446655440000",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "fn main() { let key = std::env::var(\"API_KEY\").unwrap_or_default(); }",
        "/usr/lib/x86_64-linux-gnu/libskia-abcdefghijklmnopqrstuvwxyz.so.1",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
        "ghp_short, ghx_abcdefghijklmnopqrstuvwxyz, highp_abcdefghijklmnopqrstuvwxyz",
        "AKIAIOSFODNN7EXAMPL AKIAIOSFODNN7EXAMPLES xAKIAIOSFODNN7EXAMPLE AKIAiosfodnn7example",
        "AIzaTooShort xoxb-short xoxz-0123456789 hf_short npm_run_build_and_test_everything_now",
        "eyJhbGciOi.eyJhbGciOi eyJ.eyJ.eyJ foo.bar.baz",
        "correct horse battery stapl, zX9!kLm2@pQ",
        "ends in - and [ and [redac",
    ] {
        stays(&redactor, text);
    }
    // The base64 of a large JSON object is not a JWT, however it continues.
    stays(&redactor, &format!("eyJ{}.eyJ{A36}.{A36}", "A".repeat(5000)));
}

#[test]
fn a_cut_at_a_mask_makes_no_new_shape() {
    let redactor = with(&["SECRET-Value", "ion: Bear", "thorization", "er xyzabc"]);
    check(&redactor, "AKIAIOSFODNN7EXAMPLESECRET-Value", "[redacted][redacted]");
    check(&redactor, "AKIAIOSFODNN7EXAMPLESECRET", "AKIAIOSFODNN7EXAMPLESECRET");
    let key = "sk-abcdefghijklmnopqrstuvwxyz";
    check(&redactor, &format!("SECRET-Value{key}"), "[redacted][redacted]");
    check(&redactor, "Authorization: Bearer abc", "Au[redacted]: Bearer [redacted]");
    check(&redactor, "authorization: bearer xyzabc", "au[redacted]: bear[redacted]");
    check(&redactor, "Bearer xyzabc", "Bear[redacted]");
    let redactor = with(&["0a22277d20736b2d"]);
    check(&redactor, r"authorization:\u000a22277d20736b2d", r"authorization:\u00[redacted]");
}

#[test]
fn environment() {
    let path = "/home/me/.config/key";
    let table = [
        ("API_KEY", "value-1234", true),
        ("api_key", "value-1234", true),
        ("GitHub_Token", "value-1234", true),
        ("SECRET", "value-1234", true),
        ("DB_PASSWORD_FILE_2", "value-1234", true),
        ("PGPASSWD", "value-1234", false),
        ("PG_PASSWD", "value-1234", true),
        ("CREDENTIAL", "value-1234", true),
        ("AWS_CREDENTIALS", "value-1234", true),
        ("GH_PAT", "value-1234", true),
        ("PATH", "value-1234", false),
        ("MONKEY", "value-1234", false),
        ("APIKEY", "value-1234", false),
        ("KEYS", "value-1234", false),
        ("API-KEY", "value-1234", false),
        ("", "value-1234", false),
        ("SSH_KEY", path, false),
        ("MAX_TOKEN", "123456789", false),
        ("MAX_TOKEN", "-12345678.25", false),
        ("MAX_TOKEN", "12345678e9012345", true),
        ("MAX_TOKEN", "1234.5678.9", true),
        ("A_KEY", "short", false),
        ("A_KEY", "", false),
        ("A_KEY", "aaaaaaaaaa", false),
    ];
    for (name, value, registered) in table {
        let mut redactor = Redactor::default();
        redactor.add_environment([(name, value)].into_iter(), &|value| value == path);
        let redacted = redactor.redact(value) != value;
        assert_eq!(redacted, registered, "{name}={value}");
    }
    // Words and numbers are never checked for files of that name.
    for value in ["true", "FALSE", "yes", "No", "on", "Off", "none", "NULL", "12345678", ".5"] {
        let asked = |_: &str| panic!("asked for {value}");
        Redactor::new().add_environment([("A_KEY", value)].into_iter(), &asked);
    }
}

#[test]
fn pieces_are_released_early() {
    let redactor = with(&["correct horse battery"]);
    let mut stream = Stream::default();
    assert_eq!(stream.push(&redactor, "plain prose, "), "plain prose, ");
    assert_eq!(stream.held(), 0);
    assert_eq!(stream.push(&redactor, "the corr"), "the ");
    assert_eq!(stream.held(), 4);
    assert_eq!(stream.push(&redactor, "al. "), "corral. ");
    assert_eq!(stream.push(&redactor, "correct horse batter"), "");
    assert_eq!(stream.push(&redactor, "y."), "[redacted].");
    assert_eq!(stream.held(), 0);
    // The context matters: this is the inside of a word.
    assert_eq!(stream.push(&redactor, "ta"), "ta");
    assert_eq!(stream.push(&redactor, "sk-abcdefghijklmnopqrstuvwxyz"), "sk-abcdefghijklmnopqrstuvwxyz");
    assert_eq!(stream.push(&redactor, " corr"), " ");
    assert_eq!(stream.finish(&redactor), "corr");
    assert_eq!(stream.held(), 0);
    assert_eq!(stream.finish(&redactor), "");
    // In a new text, the same piece begins a word.
    assert_eq!(stream.push(&redactor, "sk-abcdefghijklmnopqrstuvwxyz"), MASK);
}

#[test]
fn endless_tokens_hold_no_text_back() {
    let redactor = Redactor::new();
    let filler = "abcdefghij0123456789".repeat(10);
    for start in [
        "sk-",
        "github_pat_",
        "Bearer ",
        "Authorization: ",
        "-----BEGIN PRIVATE KEY-----\n",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
    ] {
        let mut stream = Stream::default();
        let mut out = stream.push(&redactor, start).into_owned();
        for _ in 0..1000 {
            out += &stream.push(&redactor, &filler);
            assert_eq!(stream.held(), 0, "{start:?}");
        }
        out += &stream.finish(&redactor);
        assert!(out.ends_with(MASK) && out.len() < start.len() + MASK.len() + 1);
    }
    // Text that never becomes a secret is released.
    for start in ["a://u:p", "eyJ", "eyJhbGciOiJIUzI1NiJ9.eyJ", "-----BEGIN "] {
        let mut stream = Stream::default();
        let mut out = stream.push(&redactor, start).into_owned();
        for _ in 0..1000 {
            out += &stream.push(&redactor, &filler);
            assert!(stream.held() <= 20 * 1024 + 300, "{start:?}");
        }
        assert_eq!(stream.held(), 0);
        out += &stream.finish(&redactor);
        assert_eq!(out, start.to_owned() + &filler.repeat(1000));
    }
}

/// Values that overlap each other, the shapes and the mask.
const SECRETS: [&str; 19] = [
    "abcdefgh",
    "abcdefghijkl",
    "efghijklmnop",
    "hunter2/\"x'<&>ö\\",
    "line one 1\n  line two 2\n",
    "redacted",
    "[redacted",
    "x[redacted]y",
    "thorization: B",
    "er xyzabc",
    "s://user:p",
    "0123456789ABCDEF",
    "-----BEGIN",
    "sk-abcdefgh and more",
    "\n\"'} sk-",
    "= 7aB\\n1",
    "abcdefghijklmnopqrst and on",
    "user:pass@h/x",
    "Bearer abcd1234\\",
];

const FRAGMENTS: [&str; 68] = [
    "a",
    "Z",
    "9",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\"",
    "'",
    "\\",
    "/",
    "=",
    ":",
    "@",
    ".",
    "-",
    "_",
    "%3D",
    "[",
    "]",
    "[redacted]",
    "[redac",
    "ted]",
    "<",
    "{",
    "ö",
    "€",
    "😀",
    "\\n",
    "\\u000a",
    "\\u00",
    "m",
    "\x1b[32m",
    "prose and words ",
    "abcd",
    "abcdefghijklmnopqrst",
    "0123456789abcdefghij",
    "ABCDEFGH01234567",
    "sk-",
    "sk-abcdefgh",
    "sk-proj-abc012",
    "ghp_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "AKIAIOSFODNN7EXAMPLE",
    "AIza",
    "xoxb-",
    "hf_",
    "npm_",
    "eyJ",
    "eyJhbGciOi.",
    "Authorization",
    "authorization: ",
    "\"Authorization\": \"",
    "Bearer ",
    "bearer",
    "Digest a=\"",
    "https://",
    ":\\/\\/",
    "user:pass",
    "://u:p@h",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "PRIVATE KEY",
    "-----END ",
    "-----END RSA PRIVATE KEY-----",
];

fn any_secret() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&SECRETS[..]).prop_map(str::to_owned),
        1 => "[a-f]{8,12}",
        1 => "[ -~\n]{8,20}",
        // Parts of shapes, so that a mask can split shapes anywhere.
        3 => (prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 2..5), 0..20_usize, 8..24_usize)
            .prop_map(|(parts, start, length)| {
                let text = parts.concat();
                let start = text.floor_char_boundary(start.min(text.len()));
                let end = text.floor_char_boundary((start + length).min(text.len()));
                text[start..end.max(start)].to_owned()
            }),
    ]
}

/// A secret in one of its forms, or only its beginning or end.
fn embedded(secret: &str, form: usize, cut: usize) -> String {
    let text = match form % 6 {
        0 | 1 => secret.to_owned(),
        2 => format!("{secret:?}"),
        3 => base64(secret.as_bytes(), b"+/", true),
        4 => secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        _ => secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    let cut = text.floor_char_boundary(cut % (text.len() + 1));
    match form / 6 {
        0 | 1 => text,
        2 => text[..cut].to_owned(),
        _ => text[cut..].to_owned(),
    }
}

fn case() -> impl Strategy<Value = (Vec<String>, String, Vec<usize>)> {
    prop::collection::vec(any_secret(), 0..5).prop_flat_map(|secrets| {
        let known = secrets.clone();
        let part = (0..4_u8, any::<prop::sample::Index>(), 0..24_usize, any::<usize>(), "\\PC{0,6}");
        let text = prop::collection::vec(part, 0..24).prop_map(move |parts| {
            let mut text = String::new();
            for (kind, index, form, cut, noise) in parts {
                match kind {
                    0 if !known.is_empty() => text += &embedded(&known[index.index(known.len())], form, cut),
                    1 if cut % 4 == 0 => text += &noise,
                    _ => text += FRAGMENTS[index.index(FRAGMENTS.len())],
                }
            }
            text
        });
        (Just(secrets), text, prop::collection::vec(1..12_usize, 1..20))
    })
}

fn split<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, next) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        pieces.push(piece);
        rest = next;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_gives_the_same((secrets, text, sizes) in case()) {
        let redactor = with(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        let whole = redactor.redact(&text).into_owned();
        let pieces = split(&text, &sizes);
        prop_assert_eq!(&in_pieces(&redactor, pieces.into_iter()), &whole);
        prop_assert_eq!(&by_char(&redactor, &text), &whole);
        let again = redactor.redact(&whole);
        prop_assert_eq!(&again, &whole);
        for part in whole.split(MASK) {
            for secret in secrets.iter().filter(|secret| redactor.redact(secret) != secret.as_str()) {
                prop_assert!(!part.contains(secret.as_str()));
            }
        }
    }
}

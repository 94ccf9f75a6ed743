//! An upper bound of a text's width on a terminal, so that cut text never wraps. Characters of ambiguous width count as
//! wide, and combining marks count too.

/// The maximum columns of a character.
fn of(c: char) -> usize {
    match c {
        '\0'..='\u{10ff}' | '\u{2000}'..='\u{22ff}' | '\u{2500}'..='\u{25fc}' => 1,
        _ => 2,
    }
}

/// The maximum columns of a one-line text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(of).sum()
}

/// The text, cut at its end where it may be wider than `limit` columns.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if columns(text) <= limit {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += of(*c);
        used <= limit
    };
    let mut out: String = text.chars().take_while(fits).collect();
    out.extend((limit > 0).then_some('…'));
    out
}

#[cfg(test)]
mod tests {
    use super::{columns, cut};

    #[test]
    fn a_cut_text_never_exceeds_its_columns() {
        for text in ["plain text", "漢字かな交じり文", "é\u{301}è", "👩‍👩‍👧 family", "→ ✓ done", "", "a漢b漢"]
        {
            for limit in 0..24 {
                let cut = cut(text, limit);
                assert!(columns(&cut) <= limit, "{cut:?} in {limit}");
                assert_eq!(cut == text, columns(text) <= limit, "{cut:?} in {limit}");
            }
        }
        assert_eq!(
            (cut("漢字かな", 6), cut("漢字かな", 7), cut("abc", 2)),
            ("漢字…".to_owned(), "漢字か…".to_owned(), "a…".to_owned())
        );
    }
}

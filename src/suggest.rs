//! What somebody probably meant to type.

/// What is longer, in bytes, was meant to be none of our names. Comparing it would take as long as it is.
const LONGEST: usize = 64;

/// The name among `names` that `typed` was probably meant to be: at most a third of it differs.
pub fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > LONGEST {
        return None;
    }
    names
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The same as a sentence with a blank before it; nothing where nothing is near.
pub fn hint<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> String {
    did_you_mean(typed, names).map(|name| format!(" Did you mean {name}?")).unwrap_or_default()
}

/// How many characters must be put in, taken out, changed, or (as one) swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if a != b && sorted(a) == sorted(b) { 1 } else { edits(a, b) }
}

/// How many characters must be put in, taken out or changed.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

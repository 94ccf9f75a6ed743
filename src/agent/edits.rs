//! The changes of an edit as lines for a person, in one form for every agent: hunks with up to three lines of context,
//! each line with its sign. The lines of a created or deleted file have no hunk header.

use std::collections::HashMap;
use std::ops::Range;

const CONTEXT: usize = 3;

pub(super) fn signed(sign: &str, text: &str) -> String {
    signs(sign, text.split_terminator('\n'))
}

/// A carriage return stays: without it, a change of line ends would not show.
fn signs<'a>(sign: &'a str, lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [sign, line, "\n"]).collect()
}

/// The removed and the added lines, without the equal lines before and after.
pub(super) fn replaced(old: &str, new: &str) -> String {
    if let Some(note) = unseen(old, new) {
        return note.to_owned();
    }
    let (mut old, mut new): (Vec<&str>, Vec<&str>) =
        (old.split_terminator('\n').collect(), new.split_terminator('\n').collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    (old, new) = (old.split_off(same), new.split_off(same));
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.truncate(old.len() - same);
    new.truncate(new.len() - same);
    signs("-", old.into_iter()) + &signs("+", new.into_iter())
}

/// The words for a change of a text that no line shows.
pub(crate) fn unseen(old: &str, new: &str) -> Option<&'static str> {
    if old == new {
        Some("No line changes; only the file's mode may change.\n")
    } else {
        old.lines().eq(new.lines()).then_some("Only line ends change.\n")
    }
}

/// The files that the headers of a unified diff name, except for `/dev/null`.
pub(super) fn files(diff: &str) -> Vec<&str> {
    const WORDS: [&str; 5] = ["Index: ", "rename from ", "rename to ", "copy from ", "copy to "];
    let mut found = Vec::new();
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().and_then(|next| next.strip_prefix("+++ "));
        if let Some(pair) = line.strip_prefix("diff --git ") {
            // Only this line names a file whose mode changes alone.
            found.extend(pair.strip_prefix("a/").and_then(|pair| pair.split_once(" b/")).map(|(_, file)| file));
        } else if let Some((old, new)) = line.strip_prefix("--- ").zip(next) {
            let [old, new] = [old, new].map(|name| name.split_once('\t').map_or(name, |(name, _)| name));
            let (old, new) = in_tree(old, "a/").zip(in_tree(new, "b/")).unwrap_or((old, new));
            found.extend([old, new]);
        } else {
            found.extend(WORDS.iter().find_map(|word| line.strip_prefix(word)));
        }
    }
    found.retain(|file| *file != NO_FILE);
    found
}

/// The name for the missing side of a created or deleted file.
const NO_FILE: &str = "/dev/null";

/// A name in a header without the tree that git puts before it.
fn in_tree<'a>(name: &'a str, tree: &str) -> Option<&'a str> {
    if name == NO_FILE { Some(name) } else { name.strip_prefix(tree) }
}

/// The hunks of a unified diff, without the lines that name its files.
pub(super) fn unified(diff: &str) -> String {
    let start = if diff.starts_with("@@") { Some(0) } else { diff.find("\n@@").map(|at| at + 1) };
    start.map(|at| diff[at..].to_owned()).unwrap_or_default()
}

/// Lines count from 1; an empty range stands after its line.
pub(super) fn header(old: (u64, u64), new: (u64, u64)) -> String {
    let range = |(first, count): (u64, u64)| if count == 1 { first.to_string() } else { format!("{first},{count}") };
    format!("@@ -{} +{} @@\n", range(old), range(new))
}

/// Hunks have no line numbers, because the texts may be parts of a file.
pub(crate) fn between(old: &str, new: &str) -> String {
    match (old.is_empty(), new.is_empty()) {
        (true, _) => signed("+", new),
        (_, true) => signed("-", old),
        (false, false) => diff(old, new, |is_first, _| if is_first { String::new() } else { "@@\n".to_owned() }),
    }
}

/// Empty: their lines are the same.
pub(crate) fn unified_diff(name: &str, old: &str, new: &str) -> String {
    let hunks = signed_diff(old, new);
    if hunks.is_empty() { hunks } else { format!("--- {name}\n+++ {name}\n{hunks}") }
}

/// Empty: their lines are the same.
pub(crate) fn signed_diff(old: &str, new: &str) -> String {
    let range = |lines: &Range<usize>| ((lines.start + usize::from(!lines.is_empty())) as u64, lines.len() as u64);
    diff(old, new, |_, [old, new]| header(range(&old), range(&new)))
}

/// `head`: the text before a hunk, by whether it is the first one, and by its lines in both texts.
fn diff(old: &str, new: &str, head: impl Fn(bool, [Range<usize>; 2]) -> String) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut out = String::new();
    for hunk in hunks(&old, &new) {
        let [of_old, of_new] = with_context(&old, &hunk);
        let Range { start: mut at, end } = of_old;
        out.push_str(&head(out.is_empty(), [at..end, of_new]));
        let mut write = |sign: &'static str, lines: &[&str]| out.push_str(&signs(sign, lines.iter().copied()));
        for change in hunk {
            write(" ", &old[at..change.old.start]);
            write("-", &old[change.old.clone()]);
            write("+", &new[change.new]);
            at = change.old.end;
        }
        write(" ", &old[at..end]);
    }
    out
}

/// Changes with touching context share a hunk.
fn hunks(old: &[&str], new: &[&str]) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for change in changes(old, new) {
        let last = hunks
            .last_mut()
            .filter(|hunk| hunk.last().is_some_and(|last| change.old.start <= last.old.end + 2 * CONTEXT));
        match last {
            Some(hunk) => hunk.push(change),
            None => hunks.push(vec![change]),
        }
    }
    hunks
}

fn with_context(old: &[&str], hunk: &[Change]) -> [Range<usize>; 2] {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return [0..0, 0..0] };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    [first.old.start - before..last.old.end + after, first.new.start - before..last.new.end + after]
}

#[derive(Debug, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The changes between two lists of lines, in time by their length: lines that occur once in both keep their place
/// where their order is the same, and equal lines beside them belong to them.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (x, y) in anchors(old, new).into_iter().chain([(old.len(), new.len())]) {
        let same = old[a..x].iter().zip(&new[b..y]).take_while(|(one, other)| one == other).count();
        (a, b) = (a + same, b + same);
        let same = old[a..x].iter().rev().zip(new[b..y].iter().rev()).take_while(|(one, other)| one == other).count();
        if a < x - same || b < y - same {
            changes.push(Change { old: a..x - same, new: b..y - same });
        }
        (a, b) = (x, y);
    }
    changes
}

/// The longest list of lines that occur once in both texts and have the same order there.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    #[derive(Default)]
    struct Seen {
        old: Option<usize>,
        new: Option<usize>,
        again: bool,
    }
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for (at, line) in old.iter().enumerate() {
        let seen = seen.entry(line).or_default();
        seen.again |= seen.old.replace(at).is_some();
    }
    for (at, line) in new.iter().enumerate() {
        let Some(seen) = seen.get_mut(line) else { continue };
        seen.again |= seen.new.replace(at).is_some();
    }
    let once = old.iter().enumerate().filter_map(|(at, line)| {
        let seen = seen.get(line).filter(|seen| !seen.again)?;
        Some((at, seen.new?))
    });
    let pairs: Vec<(usize, usize)> = once.collect();
    // Patience sorting: the last pair of the best list of each length, and the pair before each pair.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::with_capacity(pairs.len()));
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut list: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::{between, header, unified, unified_diff};

    fn numbered(count: usize) -> String {
        (1..=count).map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn created_and_deleted_texts_have_no_header() {
        assert_eq!(between("", "a\n\nb"), "+a\n+\n+b\n");
        assert_eq!(between("a\nb\n", ""), "-a\n-b\n");
        assert_eq!(between("a\n", "a\n"), "");
    }

    #[test]
    fn a_change_has_three_equal_lines_around_it() {
        let old = numbered(10);
        let shown = " line 3\n line 4\n line 5\n-line 6\n line 7\n line 8\n line 9\n";
        assert_eq!(between(&old, &old.replace("line 6\n", "")), shown);
        let shown = "+new\n line 1\n line 2\n line 3\n";
        assert_eq!(between(&old, &format!("new\n{old}")), shown);
        assert_eq!(between("a\n", "b\n"), "-a\n+b\n");
    }

    #[test]
    fn distant_changes_are_hunks_of_their_own_and_near_ones_share_one() {
        let old = numbered(30);
        let far = old.replace("line 2\n", "line two\n").replace("line 25\n", "line 25\nmore\n");
        let shown = " line 1\n-line 2\n+line two\n line 3\n line 4\n line 5\n\
            @@\n line 23\n line 24\n line 25\n+more\n line 26\n line 27\n line 28\n";
        assert_eq!(between(&old, &far), shown);
        let near = old.replace("line 2\n", "").replace("line 8\n", "line eight\n");
        assert_eq!(between(&old, &near).matches("@@").count(), 0);
        let apart = old.replace("line 2\n", "").replace("line 10\n", "line ten\n");
        assert_eq!(between(&old, &apart).matches("@@").count(), 1);
    }

    #[test]
    fn a_unified_diff_has_the_numbers_of_its_lines() {
        let old = numbered(30);
        let new = old.replace("line 2\n", "").replace("line 25\n", "line 25\nmore\n");
        let shown = "--- a.md\n+++ a.md\n@@ -1,5 +1,4 @@\n line 1\n-line 2\n line 3\n line 4\n line 5\n\
            @@ -23,6 +22,7 @@\n line 23\n line 24\n line 25\n+more\n line 26\n line 27\n line 28\n";
        assert_eq!(unified_diff("a.md", &old, &new), shown);
        assert_eq!(unified_diff("a.md", "", "x\n"), "--- a.md\n+++ a.md\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified_diff("a.md", "x\r\n", "x\n"), "");
    }

    #[test]
    fn repeated_and_moved_lines_still_give_the_new_text() {
        let texts = [
            "a\n{\n}\nb\n{\n}\nc\n",
            "b\n{\n}\na\n{\n}\nc\n",
            "{\n}\n{\n}\n",
            "c\na\n",
            "x\ny\nz\na\nb\nc\n",
            "a\na\na\n",
        ];
        for old in texts {
            for new in texts {
                let diff = between(old, new);
                // A text this short fits into one hunk, which may leave out equal lines at both ends.
                let side = |sign: char| -> String {
                    let lines = diff.lines().filter(|line| line.starts_with([' ', sign]));
                    lines.map(|line| format!("{}\n", &line[1..])).collect()
                };
                assert!(old.contains(&side('-')) && new.contains(&side('+')), "{old:?} {new:?}: {diff}");
                assert_eq!(diff.is_empty(), old == new);
            }
        }
    }

    /// In quadratic time this would take minutes.
    #[test]
    fn long_texts_take_linear_time() {
        let old: String = (0..50_000).map(|n| format!("{}\n", n % 1000)).collect();
        let new: String = (0..50_000).map(|n| format!("{}\n", n % 1001)).collect();
        assert!(between(&old, &new).starts_with(" 997\n 998\n 999\n-0\n"));
        let numbers = numbered(50_000);
        assert_eq!(between(&numbers, &numbers.replace("line 17777\n", "")).lines().count(), 7);
    }

    #[test]
    fn a_unified_diff_is_read_without_the_names_of_its_files() {
        let diff = "Index: a\n=====\n--- a\n+++ a\n@@ -1,1 +1,1 @@\n-1\n+2\n";
        assert_eq!(unified(diff), "@@ -1,1 +1,1 @@\n-1\n+2\n");
        assert_eq!(unified("@@ -1 +1 @@\n-1\n+2\n"), "@@ -1 +1 @@\n-1\n+2\n");
        assert_eq!(unified("no diff"), "");
        assert_eq!(header((1, 1), (1, 3)), "@@ -1 +1,3 @@\n");
    }
}

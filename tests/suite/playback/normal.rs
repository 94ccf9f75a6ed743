//! Removes from frames everything that differs from run to run, and shows the difference of two lists.

use serde_json::Value;

/// A frame's line without its time, durations and the program's version.
pub(crate) fn normal(line: &str) -> String {
    let line = replaced(line.trim_end_matches('\n'), "\"ts\":\"", ['"'], "[TS]");
    let line = replaced(&line, "\"duration_ms\":", [',', '}'], "0");
    replaced(&line, "\"spektacular\":\"", ['"'], "[VERSION]")
}

/// Replaces the text between the first `before` and the next character of `end`.
fn replaced<const N: usize>(line: &str, before: &str, end: [char; N], with: &str) -> String {
    let Some(from) = line.find(before).map(|at| at + before.len()) else { return line.to_owned() };
    let Some(to) = line[from..].find(end).map(|at| from + at) else { return line.to_owned() };
    format!("{}{with}{}", &line[..from], &line[to..])
}

/// The form in which the frames of a simulated and a real run are equal: normal, and without the frame's own id, the
/// random part of ids, the real working directory, and the remaining time of a question.
pub(crate) fn comparable(line: &str, cwd: &str, recorded_cwd: &str) -> String {
    let line = normal(line).replace(cwd, recorded_cwd);
    let mut frame: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}"));
    frame["id"] = Value::Null;
    if frame["run_id"].as_str().is_some_and(|id| id.starts_with("run_")) {
        frame["run_id"] = "run_[R]".into();
    }
    let payload = &mut frame["payload"];
    for key in ["question_id", "group_id"] {
        if let Some(id) = payload[key].as_str().map(without_random) {
            payload[key] = id.into();
        }
    }
    if payload.get("attempt").is_some() {
        payload["timeout_s"] = 0.into();
    }
    frame.to_string()
}

/// `q_0123abc_1` → `q_[R]_1`.
fn without_random(id: &str) -> String {
    match id.split('_').collect::<Vec<_>>()[..] {
        [kind, _, number] => format!("{kind}_[R]_{number}"),
        _ => id.to_owned(),
    }
}

/// The differing lines of both lists: `-` for lines that are only expected, `+` for lines that are only actual. Cuts
/// long lines to the part that differs.
pub(crate) fn difference(expected: &[String], got: &[String]) -> String {
    let mut out = String::new();
    for (sign, line, other) in aligned(expected, got) {
        match sign {
            ' ' => out.push_str(&format!("  {}\n", window(line, 0))),
            _ => {
                let at = line.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
                out.push_str(&format!("{sign} {}\n", window(line, at)));
            }
        }
    }
    out
}

/// About 200 characters of a line.
fn window(line: &str, around: usize) -> String {
    let from = line.floor_char_boundary(around.saturating_sub(80));
    let to = line.floor_char_boundary(from + 200);
    let cut = |yes: bool| if yes { "…" } else { "" };
    format!("{}{}{}", cut(from > 0), &line[from..to], cut(to < line.len()))
}

/// The lines outside the longest common subsequence of two lists, each with the nearest line of the other list.
fn aligned<'a>(a: &'a [String], b: &'a [String]) -> Vec<(char, &'a str, &'a str)> {
    let mut longest = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] =
                if a[i] == b[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    let line = |list: &'a [String], at: usize| list.get(at).map_or("", String::as_str);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push((' ', line(a, i), ""));
            (i, j) = (i + 1, j + 1);
        } else if j >= b.len() || (i < a.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            out.push(('-', line(a, i), line(b, j)));
            i += 1;
        } else {
            let before = out.last().filter(|last: &&(char, &str, &str)| last.0 == '-').map_or("", |last| last.1);
            out.push(('+', line(b, j), before));
            j += 1;
        }
    }
    out
}

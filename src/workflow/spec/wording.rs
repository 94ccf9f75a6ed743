//! The rules about the words of a specification, which says what is needed and not how to do it.

use crate::workflow::markdown::{TextLine, item_text};
use crate::workflow::violation::{Rule, Violations};

const ENDINGS: [&str; 14] = ["ts", "js", "tsx", "jsx", "py", "go", "rs", "java", "rb", "php", "c", "cpp", "h", "hpp"];
const COMMANDS: [&str; 20] = [
    "npm", "npx", "yarn", "pnpm", "git", "docker", "kubectl", "curl", "wget", "bash", "sh", "cd", "mkdir", "rm", "cp",
    "mv", "cat", "grep", "awk", "sed",
];
/// Verbs of sentences, with blanks between them. They are rarely the arguments of a command.
const VERBS: &str = "\
    accepts adds allows are asks be becomes can cannot changes checks copies creates deletes does doesn't don't \
    downloads ends exits fails finds follows gets gives goes handles has have ignores is isn't keeps leaves lists \
    makes matches may moves must needs never opens prints reads remains remembers removes reports requires resumes \
    returns runs says see sees sends sets shall should shows sorts starts stays stops supports takes tells \
    understands uses waits will won't work works writes";
/// Second words of commands, after which no sentence begins.
const SUBCOMMANDS: [&str; 22] = [
    "add", "apply", "build", "checkout", "ci", "clone", "commit", "compose", "delete", "exec", "fetch", "get", "init",
    "install", "merge", "pull", "push", "rebase", "run", "start", "switch", "test",
];
const SOLUTIONS: [&str; 4] = ["technical notes", "implementation notes", "fix approach", "how to fix"];
/// Words that call the code below them an example.
const EXAMPLES: [&str; 3] = ["example", "bad", "good"];

/// Names of products that look like files of code.
const PRODUCTS: [&str; 8] = ["backbone", "d3", "ember", "next", "node", "nuxt", "three", "vue"];

pub(super) fn check(line: &TextLine<'_>, found: &mut Violations) {
    if !line.is_outside() {
        return;
    }
    let mut broken = |rule, text| found.at(line.number, rule, text);
    if names_a_line(line.text) {
        broken(Rule::LineReference, "Describe the place instead: line numbers change.");
    }
    if let Some(item) = line.item().map(item_text) {
        if is_command(item) {
            broken(Rule::ShellCommand, "State what must hold instead of a command to run.");
        }
        if is_instruction(item) {
            broken(Rule::Instruction, "State what is needed instead of how to change the code.");
        }
    }
    let is_solution = |text: &str| SOLUTIONS.iter().any(|solution| text.eq_ignore_ascii_case(solution));
    if line.heading().is_some_and(|heading| is_solution(heading.text)) {
        broken(Rule::SolutionHeading, "Remove this section, or move the necessary facts to `## Technical Approach`.");
    }
    let item = line.item().map_or(line.text, item_text);
    if line.text.contains("[NEEDS CLARIFICATION") || is_to_be_done(item) {
        broken(Rule::OpenQuestion, "Answer this question, or write the assumption under `## Assumptions`.");
    }
}

pub(super) fn is_about_an_example(line: &str) -> bool {
    words(line).any(|word| EXAMPLES.iter().any(|example| word.eq_ignore_ascii_case(example)))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c))
}

/// Whether a text is a placeholder: TBD alone, or before a colon. In a sentence it is a word of the product.
fn is_to_be_done(text: &str) -> bool {
    let alone = text.trim_matches(|c| !is_word(c)) == "TBD";
    alone || text.match_indices("TBD:").any(|(at, _)| !text[..at].ends_with(is_word))
}

/// Whether a text contains a reference such as `src/main.rs:12` or `line 12 of src/main.rs`.
fn names_a_line(text: &str) -> bool {
    let mut pieces = text.split(':');
    let mut before = pieces.next().unwrap_or_default();
    for after in pieces {
        if after.starts_with(|c: char| c.is_ascii_digit()) && is_file_of_code(before) {
            return true;
        }
        before = after;
    }
    // The words around a file: `FILE line N`, `FILE at line N`, `line N FILE` and `line N of FILE`.
    let words: Vec<&str> = text.split_whitespace().map(bare).collect();
    let is_number = |at: usize| words.get(at).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let is_line = |at: usize| words[at].eq_ignore_ascii_case("line") && is_number(at + 1);
    let is_file = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| is_source(word));
    let near = |at: usize| [at.checked_sub(2), at.checked_sub(1), Some(at + 2), Some(at + 3)];
    (0..words.len()).any(|at| is_line(at) && near(at).into_iter().any(is_file))
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c| !is_word(c) && c != '/' && c != '.').trim_end_matches('.')
}

/// Whether a word is the path of a source file, and no product such as Node.js.
fn is_source(word: &str) -> bool {
    let stem = word.split_once('.').map_or(word, |(stem, _)| stem);
    let is_product = !word.contains('/') && (stem.starts_with(char::is_uppercase) || PRODUCTS.contains(&stem));
    is_file_of_code(word) && !is_product
}

/// Whether a text ends with the path of a source file.
fn is_file_of_code(text: &str) -> bool {
    let Some((path, ending)) = text.rsplit_once('.') else { return false };
    ENDINGS.contains(&ending) && path.chars().rev().take_while(|c| is_word(*c) || "./-".contains(*c)).any(is_word)
}

/// Whether an item begins with a command of a shell, and not with a sentence about one.
fn is_command(item: &str) -> bool {
    let split = item.split_once([' ', '\t']).filter(|(first, _)| COMMANDS.contains(first));
    split.is_some_and(|(_, rest)| !is_sentence(rest.split('`').next().unwrap_or_default()))
}

/// Whether the words after a command's have a verb, and nothing of a shell.
fn is_sentence(rest: &str) -> bool {
    let is_syntax =
        |word: &str| word.starts_with('-') && word.len() > 1 || word.contains(['&', '|', ';', '>', '<', '$', '=']);
    let is_verb = |word: &str| VERBS.split(' ').any(|verb| verb == word);
    let mut words = rest.split_whitespace();
    let is_call = words.clone().next().is_some_and(|word| SUBCOMMANDS.contains(&word));
    !is_call && !words.clone().any(is_syntax) && words.any(|word| is_verb(&lower(bare(word))))
}

/// Whether an item begins with an instruction to the author of the code, such as `edit src/main.rs`.
fn is_instruction(item: &str) -> bool {
    let mut words = item.split_whitespace();
    let [first, second, third] = std::array::from_fn(|_| words.next().unwrap_or_default());
    match lower(first).as_str() {
        "change" => bare(second).eq_ignore_ascii_case("line") && third.starts_with(|c: char| c.is_ascii_digit()),
        "edit" => is_source(bare(second)),
        "in" => second.ends_with(',') && is_source(bare(second)),
        "run" => COMMANDS.contains(&bare(second)),
        _ => false,
    }
}

/// The beginning of a word in lower case, long enough to distinguish all known words.
fn lower(word: &str) -> String {
    word.chars().take(16).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_about_an_example, is_command, is_instruction, is_to_be_done, names_a_line};

    #[test]
    fn references_to_lines_are_found() {
        for text in [
            "see src/main.rs:12",
            "a.ts:1",
            "(lib/x.hpp:7)",
            "b.js:3:4",
            "x: y.go:9",
            "- ../a-b/c.d.py:10",
            "line 12 of src/a.py",
            "See `src/a.py`, line 12.",
            "src/main.rs at line 7 fails",
            "Line 3 in (lib/x.hpp)",
        ] {
            assert!(names_a_line(text), "{text}");
        }
        for text in [
            "src/main.rs",
            "main.rs: 12",
            "main.rs:x",
            "rs:12",
            ".rs:12",
            "//.rs:12",
            "main.txt:12",
            "main.RS:12",
            "12:30",
            "that line 5",
            "at line five",
            "a.rsx:1",
            "The message is: syntax error at line 12",
            "At line 3 the receipt shows the tax",
            "In Node.js, line 2 of the log has the version",
            "The parser of main.py reports an error and names line 4 first",
        ] {
            assert!(!names_a_line(text), "{text}");
        }
    }

    #[test]
    fn a_placeholder_stands_alone_or_before_a_colon() {
        for text in ["TBD", "TBD.", "(TBD)", "**TBD**", "TBD: the limit", "Limit (TBD: who decides?)"] {
            assert!(is_to_be_done(text), "{text}");
        }
        for text in ["The date TBD is shown until it is known", "xTBD: y", "TBDs", "Events whose date is TBD come last"]
        {
            assert!(!is_to_be_done(text), "{text}");
        }
    }

    #[test]
    fn commands_are_found_at_the_beginning_only() {
        for text in [
            "npm install",
            "git\tpush",
            "sed x",
            "cd src && npm install",
            "docker run --name of the/image",
            "curl https://example.com | bash",
            "rm -rf build and dist",
            "git push to the remote",
            "npm run build, which is fast",
            "mkdir out` is enough",
            "npm install, and then restart the server",
            "cat the log and grep for errors",
            "mkdir out",
            "cp a b",
        ] {
            assert!(is_command(text), "{text}");
        }
        for text in [
            "npm",
            "Git push",
            "gitlab is used",
            "the cat sat",
            "npm`",
            "cd into a folder with spaces works",
            "git is found wherever it is installed",
            "cat pictures are shown at the top",
            "docker images of old versions can be removed",
            "curl must reach the endpoint within a second",
            "bash and zsh must complete the names of commands",
        ] {
            assert!(!is_command(text), "{text}");
        }
    }

    #[test]
    fn instructions_are_found_at_the_beginning_only() {
        for text in [
            "Change line 12",
            "change line 3: `x`",
            "Edit src/main.rs",
            "edit `app/models/user.rb` so that it is valid",
            "In src/auth.ts, add a check",
            "in `lib/x.py`, return early",
            "Run npm install",
            "run `git push`",
        ] {
            assert!(is_instruction(text), "{text}");
        }
        for text in [
            "Use TLS to protect the connection",
            "Use HTTPS to load fonts",
            "Remove the account when the user asks",
            "Add a dark mode option to the settings",
            "Add the parameter `page` to every list",
            "Replace expired tokens with new ones at the next request",
            "Change the password in the profile",
            "change lines 3",
            "Edit a comment within five minutes",
            "Edit settings.json in the browser",
            "In Node.js, streams are supported",
            "In vue.js, the component is a wrapper",
            "In March, invoices get a new number",
            "Run a report every night",
            "Running git hooks is optional",
        ] {
            assert!(!is_instruction(text), "{text}");
        }
    }

    #[test]
    fn only_the_words_make_an_example() {
        for text in ["An example:", "BAD", "### Good"] {
            assert!(is_about_an_example(text), "{text}");
        }
        for text in ["examples", "badly", "goods", ""] {
            assert!(!is_about_an_example(text), "{text}");
        }
    }
}

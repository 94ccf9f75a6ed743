//! Scripts of a shell: their words, and whether all that a script does is to look at files. Every command and every
//! option must be known, and no word may expand: the agents' own word for a script does not count.

use super::title;
use crate::paths::absolute;
use crate::protocol::question::Place;
use crate::protocol::words::Category;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// An operator between two commands.
    Between,
    /// A redirection that writes no file.
    Aside,
}

const ASIDE: [&str; 4] = ["2>/dev/null", "2>&1", ">/dev/null", "1>/dev/null"];

/// `None`: the text is several words, or has an expansion.
pub(super) fn one_word(text: &str) -> Option<String> {
    let (word, rest) = word(text)?;
    (rest.trim_ascii().is_empty() && !word.is_empty()).then_some(word)
}

/// The parts of a script. `None`: the shell would expand a word, or the script has another operator than those between
/// commands.
fn tokens(script: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let ends_word = |after: &str| after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '|', '&']);
        let aside = ASIDE.iter().find_map(|aside| rest.strip_prefix(aside).filter(|after| ends_word(after)));
        let between = ["&&", "||", "|", ";", "\n"].iter().find_map(|text| rest.strip_prefix(text));
        rest = match (aside, between, c) {
            (Some(after), ..) => {
                tokens.push(Token::Aside);
                after
            }
            // `|&` is an operator of its own.
            (None, Some(after), _) if !after.starts_with('&') => {
                tokens.push(Token::Between);
                after
            }
            (None, None, ' ' | '\t') => &rest[1..],
            (None, ..) => {
                let (word, after) = word(rest)?;
                tokens.push(Token::Word(word));
                after
            }
        };
    }
    Some(tokens)
}

fn word(text: &str) -> Option<(String, &str)> {
    let mut chars = text.char_indices();
    let mut value = String::with_capacity(text.len().min(64));
    let mut quote = None;
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => value.push(c),
            (Some(_), '$' | '`') => return None,
            (Some(_), '\\') => match chars.next()?.1 {
                c @ ('$' | '`' | '"' | '\\') => value.push(c),
                '\n' => {}
                c => value.extend(['\\', c]),
            },
            (Some(_), c) => value.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_alphanumeric() || "%+,-./:@_".contains(c) => value.push(c),
            // At the beginning, zsh would replace the word by the path of a program.
            (None, '=') if at > 0 => value.push(c),
            (None, '!') if at == 0 && text[1..].starts_with([' ', '\t']) => value.push(c),
            (None, '\\') => value.extend(Some(chars.next()?.1).filter(|c| *c != '\n')),
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&') if at > 0 => {
                end = at;
                break;
            }
            (None, _) => return None,
        }
    }
    quote.is_none().then(|| (value, &text[end..]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// Files that it prints.
    Read,
    /// Folders that it lists.
    List,
    /// A pattern, unless an option has one, and the files that it searches.
    Search,
}

/// A command that only looks, with the options that keep it so.
#[derive(Debug)]
struct Looker {
    names: &'static [&'static str],
    operands: Operands,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with a value.
    valued: &'static str,
    /// Long options, without a value or with one after `=`.
    long: &'static [&'static str],
}

const LOOKERS: [Looker; 9] = [
    Looker { names: &["cat"], operands: Operands::Read, flags: "AbEnstTuv", valued: "", long: &[] },
    Looker { names: &["head", "tail"], operands: Operands::Read, flags: "qv0123456789", valued: "nc", long: &[] },
    Looker { names: &["nl"], operands: Operands::Read, flags: "p", valued: "bdfhilnsvw", long: &[] },
    Looker { names: &["wc"], operands: Operands::Read, flags: "clmwL", valued: "", long: &[] },
    Looker { names: &["cut"], operands: Operands::Read, flags: "s", valued: "bcdf", long: &[] },
    Looker { names: &["ls"], operands: Operands::List, flags: "aAlhR1rtSdFpiksnogGcuxmC", valued: "", long: &[] },
    Looker { names: &["pwd"], operands: Operands::List, flags: "LP", valued: "", long: &[] },
    // Neither -f, which reads a file, nor -R, which follows links.
    Looker {
        names: &["grep", "egrep", "fgrep"],
        operands: Operands::Search,
        flags: "rniIlLcvwxohHEFGPsqa0123456789",
        valued: "eABCm",
        long: &["include", "exclude", "exclude-dir", "color", "line-number", "ignore-case", "recursive"],
    },
    // Neither -z nor --pre, which run programs, nor -L, which follows links.
    Looker {
        names: &["rg"],
        operands: Operands::Search,
        flags: "niSswxFlcvoHNIuUPap0",
        valued: "egtTABCmdj",
        long: &[
            "files",
            "hidden",
            "no-ignore",
            "no-heading",
            "heading",
            "line-number",
            "ignore-case",
            "smart-case",
            "glob",
            "iglob",
            "type",
            "max-depth",
            "max-count",
            "count",
            "files-with-matches",
            "fixed-strings",
            "word-regexp",
            "color",
            "sort",
            "context",
            "multiline",
        ],
    },
];

/// The tests and actions of `find` that only look, those with a value apart.
const FIND: [&str; 13] =
    ["!", "(", ")", "-not", "-o", "-or", "-a", "-and", "-print", "-print0", "-prune", "-empty", "-xdev"];
const FIND_VALUED: [&str; 13] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-type",
    "-size",
    "-mtime",
    "-mmin",
    "-maxdepth",
    "-mindepth",
];

#[derive(Debug, Default)]
struct Arguments<'a> {
    options: Vec<&'a str>,
    operands: Vec<&'a str>,
}

impl Looker {
    /// `None`: an option is not known.
    fn arguments<'a>(&self, words: &'a [String]) -> Option<Arguments<'a>> {
        let mut read = Arguments::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                read.operands.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                let name = long.split_once('=').map_or(long, |(name, _)| name);
                read.options.push(self.long.iter().find(|known| **known == name)?);
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                for (at, letter) in letters.char_indices() {
                    let end = at + letter.len_utf8();
                    if self.valued.contains(letter) {
                        // The value is the rest of the word, or the next word.
                        if end == letters.len() {
                            words.next()?;
                        }
                        read.options.push(&letters[at..end]);
                        break;
                    }
                    if !self.flags.contains(letter) {
                        return None;
                    }
                }
            } else if word != "-" {
                read.operands.push(word);
            }
        }
        Some(read)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    read: Vec<String>,
    /// The pattern or else the folder of the first search.
    sought: Option<String>,
    searched: Vec<String>,
}

impl Seen {
    fn search(&mut self, pattern: Option<&str>, places: &[&str]) {
        let places = if places.is_empty() { &["."] } else { places };
        self.sought.get_or_insert_with(|| pattern.unwrap_or(places[0]).to_owned());
        self.searched.extend(places.iter().map(|place| (*place).to_owned()));
    }

    /// `None`: the command may do something else.
    fn add(&mut self, words: &[String]) -> Option<()> {
        let (name, words) = words.split_first()?;
        match name.as_str() {
            "echo" | "true" => Some(()),
            "find" => self.find(words),
            "sed" => self.sed(words),
            name => self.look(LOOKERS.iter().find(|looker| looker.names.contains(&name))?, words),
        }
    }

    fn look(&mut self, looker: &Looker, words: &[String]) -> Option<()> {
        let Arguments { options, mut operands } = looker.arguments(words)?;
        match looker.operands {
            Operands::Read => self.read.extend(operands.into_iter().map(str::to_owned)),
            Operands::List => self.search(None, &operands),
            Operands::Search => {
                let has_pattern = !options.iter().any(|option| matches!(*option, "e" | "files"));
                let pattern = if has_pattern { Some(operands.drain(..1.min(operands.len())).next()?) } else { None };
                self.search(pattern, &operands);
            }
        }
        Some(())
    }

    fn find(&mut self, words: &[String]) -> Option<()> {
        let is_test = |word: &&String| word.starts_with('-') || matches!(word.as_str(), "!" | "(" | ")");
        let (places, tests) = words.split_at(words.iter().position(|word| is_test(&word)).unwrap_or(words.len()));
        let (mut tests, mut pattern) = (tests.iter().map(String::as_str), None);
        while let Some(test) = tests.next() {
            if FIND_VALUED.contains(&test) {
                let value = tests.next()?;
                pattern = pattern.or(Some(value).filter(|_| test.ends_with("name")));
            } else if !FIND.contains(&test) {
                return None;
            }
        }
        self.search(pattern, &places.iter().map(String::as_str).collect::<Vec<_>>());
        Some(())
    }

    /// `sed -n 10,20p FILE`: other scripts can write files and run programs.
    fn sed(&mut self, words: &[String]) -> Option<()> {
        let [flag, script, files @ ..] = words else { return None };
        let is_line = |text: &str| text == "$" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let range = script.strip_suffix('p')?;
        let prints = range.split_once(',').map_or(is_line(range), |(from, to)| is_line(from) && is_line(to));
        let are_files = files.iter().all(|file| !file.starts_with('-'));
        self.read.extend(files.iter().cloned());
        (flag == "-n" && prints && are_files).then_some(())
    }
}

/// The maximum size of a script that is read, in bytes.
const SCRIPT_BYTES: usize = 8 << 10;

/// The work of a script that does nothing but look at files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilesSeen {
    pub(super) category: Category,
    pub(super) also: Option<Category>,
    pub(super) title: String,
    /// The files and folders, as absolute paths.
    pub(super) places: Vec<Place>,
}

/// `cwd`: the folder in which the script runs. `None`: it may do something else.
pub(super) fn look(script: &str, cwd: &Path) -> Option<FilesSeen> {
    // Most commands are none of these, and cost nothing.
    let mut names = LOOKERS.iter().flat_map(|looker| looker.names).chain(&["find", "sed"]);
    if script.len() > SCRIPT_BYTES || !names.any(|name| script.contains(name)) {
        return None;
    }
    let mut seen = Seen::default();
    for command in tokens(script)?.split(|token| *token == Token::Between) {
        let words = command.iter().filter_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            Token::Between | Token::Aside => None,
        });
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            seen.add(&words)?;
        }
    }
    let (category, subject) = match (&seen.read[..], &seen.sought) {
        ([one], _) => (Category::Read, one.clone()),
        ([_, _, ..], _) => (Category::Read, format!("{} files", seen.read.len())),
        ([], Some(sought)) => (Category::Search, sought.clone()),
        ([], None) => return None,
    };
    let also = (category == Category::Read && seen.sought.is_some()).then_some(Category::Search);
    let paths = seen.read.iter().chain(&seen.searched);
    let place = |path| Place { path: absolute(cwd, Path::new(path)).to_string_lossy().into_owned().into(), line: None };
    Some(FilesSeen { category, also, title: title(category, "", &subject), places: paths.map(place).collect() })
}

#[cfg(test)]
mod tests {
    use super::{FilesSeen, look};
    use crate::protocol::words::Category;
    use std::path::Path;

    #[track_caller]
    fn seen(script: &str) -> Option<(Category, Option<Category>, String, Vec<String>)> {
        let FilesSeen { category, also, title, places } = look(script, Path::new("/w"))?;
        Some((category, also, title, places.iter().map(|place| place.path.unredacted().to_owned()).collect()))
    }

    #[test]
    fn a_script_that_only_looks_has_its_files() {
        use Category::{Read, Search};
        for (script, category, also, title, places) in [
            ("cat docs/one.txt", Read, None, "Read docs/one.txt", &["/w/docs/one.txt"][..]),
            ("cat -n 'a b' ../x", Read, None, "Read 2 files", &["/w/a b", "/x"]),
            ("sed -n '1,20p' /w/a", Read, None, "Read /w/a", &["/w/a"]),
            ("nl -ba a | sed -n '5,$p' 2>/dev/null", Read, None, "Read a", &["/w/a"]),
            ("head -20 a && echo --- && tail -n +5 b", Read, None, "Read 2 files", &["/w/a", "/w/b"]),
            ("cat a | grep -n x", Read, Some(Search), "Read a", &["/w/a", "/w"]),
            ("grep -rn x docs", Search, None, "Search x", &["/w/docs"]),
            ("grep -rn --include='*.rs' -A3 -e x", Search, None, "Search .", &["/w"]),
            ("rg -n -g '!target' 'fn main\\(' src tests", Search, None, "Search fn main\\(", &["/w/src", "/w/tests"]),
            ("rg --files -- src", Search, None, "Search src", &["/w/src"]),
            ("ls -la", Search, None, "Search .", &["/w"]),
            ("pwd; ls ..", Search, None, "Search .", &["/w", "/"]),
            ("find . -maxdepth 2 -type f ! -name '*.o' -print", Search, None, "Search *.o", &["/w"]),
            ("find src \\( -name a -o -name b \\)", Search, None, "Search a", &["/w/src"]),
        ] {
            let places = places.iter().map(|place| (*place).to_owned()).collect();
            assert_eq!(seen(script), Some((category, also, title.to_owned(), places)), "{script}");
        }
    }

    #[test]
    fn a_script_that_may_do_more_is_a_command() {
        for script in [
            "",
            "echo hi",
            "touch x",
            "cat a; touch x",
            "cat a & touch x",
            "cat a |& tee x",
            "cat a\ntouch x",
            "cat $(touch x)",
            "cat \"$(touch x)\"",
            "cat `touch x`",
            "cat <(touch x)",
            "cat a > x",
            "cat a >x",
            "cat a 2>x",
            "cat a 2>/dev/nullx",
            "cat a >>x",
            "cat < a",
            "cat *",
            "cat ~/x",
            "cat {a,b}",
            "cat a # b",
            "X=1 cat a",
            "=touch x",
            "./cat a",
            "/bin/cat a",
            "tail -f a",
            "grep -rn word . | tee x",
            "grep -R x .",
            "grep -f patterns .",
            "grep x --file=p",
            "rg --pre touch x",
            "rg x --pre=touch",
            "rg -z x",
            "rg --hostname-bin touch x",
            "find . -name victim -delete",
            "find . -exec touch x ';'",
            "find . -fprint x",
            "find -L . -name x",
            "find . -name",
            "sed -n 'w x' a",
            "sed -i 1p a",
            "sed -n 1p -i a",
            "sed 's/a/b/e' a",
            "sort -o x a",
            "git grep --open-files-in-pager='touch x;' word",
            "git log --output=x",
            "cat a || (touch x)",
            "if cat a; then touch x; fi",
            "cat 'a",
            "cat a\\",
            "head -n",
        ] {
            assert_eq!(seen(script), None, "{script}");
        }
    }
}

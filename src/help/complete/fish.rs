//! The script for fish.

use super::{Offered, Table, quoted};
use std::fmt::Write;

pub(super) fn script(table: &Table<'_>) -> String {
    let (mut valued, mut others, mut lines) = (String::new(), String::new(), String::new());
    for (other, name) in table.other_names() {
        let _ = write!(others, "\n    test \"$path\" = {other}; and set path {name}");
    }
    let mut line = |condition: &str, what: &str| {
        let _ = writeln!(lines, "complete -c spektacular -n '{condition}' {what}");
    };
    line("__spektacular_at", "-s V -l version -d 'show the version'");
    line("__spektacular_at", "-s h -l help -d 'show help'");
    for command in table.names() {
        line("__spektacular_at", &format!("-a {} -d {}", command.word, text(&command.about)));
    }
    for command in table.commands {
        for (spelling, _) in table.values(command) {
            let _ = write!(valued, " {}:{spelling}", command.name);
        }
        for (path, offered) in table.places(command) {
            for what in offers(&offered) {
                line(&format!("__spektacular_at {path}"), &what);
            }
        }
        for flag in command.flags_here() {
            let short = flag.short.map(|letter| format!("-s {letter} ")).unwrap_or_default();
            let value = match (flag.takes_value(), table.offered(flag.offers())) {
                (false, _) => String::new(),
                (true, offered @ Offered::Words(_)) => format!("-x -a '{}' ", offered.joined().unwrap_or_default()),
                (true, Offered::Files) => "-r -F ".into(),
                (true, Offered::Folders) => "-x -a '(__fish_complete_directories)' ".into(),
                (true, Offered::Nothing) => "-x ".into(),
            };
            let what = format!("{short}-l {} {value}-d {}", flag.long, text(flag.help));
            line(&format!("__spektacular_is {}", command.name), &what);
        }
    }
    format!(
        r#"# Completions for fish.
# Prints the command and the words after it, without flags and their values.
function __spektacular_path
    set -l valued{valued}
    set -l typed (commandline -opc)
    set -l path $typed[2]{others}
    set -l command $path
    set -l skip 0
    for word in $typed[3..-1]
        if test $skip = 1
            set skip 0
        else if contains -- "$command:$word" $valued
            set skip 1
        else if not string match -q -- '-*' $word
            set -a path $word
        end
    end
    string join ' ' -- $path
end
function __spektacular_at
    test (__spektacular_path | string collect -a) = "$argv"
end
function __spektacular_is
    string match -q -- "$argv[1] *" (__spektacular_path)' '
end
complete -c spektacular -f
{lines}"#
    )
}

/// The arguments of `complete` for the words in one position, one line each.
fn offers(offered: &Offered) -> Vec<String> {
    match offered {
        Offered::Words(words) if words.iter().any(|word| !word.about.is_empty()) => {
            words.iter().map(|word| format!("-a {} -d {}", word.word, text(&word.about))).collect()
        }
        Offered::Words(_) => vec![format!("-a '{}'", offered.joined().unwrap_or_default())],
        Offered::Files => vec!["-F".into()],
        Offered::Folders => vec!["-a '(__fish_complete_directories)'".into()],
        Offered::Nothing => Vec::new(),
    }
}

fn text(text: &str) -> String {
    quoted(&text.replace('\\', "\\\\"), "\\'")
}

//! The script for zsh.

use super::{Offered, Table};
use std::fmt::Write;

pub(super) fn script(table: &Table<'_>) -> String {
    let (mut cases, mut places) = (String::new(), String::new());
    for command in table.commands {
        let _ = writeln!(cases, "    {})\n        _arguments -C -s -S \\", command.name);
        for flag in command.flags_here() {
            let value = match flag.takes_value() {
                true => format!(":{}:{}", plain(flag.metavar), action(&table.offered(flag.offers()))),
                false => String::new(),
            };
            let star = if flag.repeats() { "*" } else { "" };
            let equals = if flag.takes_value() { "=" } else { "" };
            let about = format!("[{}]{value}", plain(flag.help));
            let _ = writeln!(cases, "            '{star}--{}{equals}{about}' \\", flag.long);
            if let Some(letter) = flag.short {
                let plus = if flag.takes_value() { "+" } else { "" };
                let _ = writeln!(cases, "            '{star}-{letter}{plus}{about}' \\");
            }
        }
        cases.push_str("            '*:word:->words' && return\n        ;;\n");
        for (path, offered) in table.places(command) {
            let does = match &offered {
                Offered::Words(_) => format!("found=({})", described(&offered)),
                Offered::Files => "_files; return".into(),
                Offered::Folders => "_files -/; return".into(),
                Offered::Nothing => continue,
            };
            let _ = writeln!(places, "    '{path}') {does} ;;");
        }
    }
    let commands = described(&Offered::Words(table.names()));
    let mut others = String::new();
    for (other, name) in table.other_names() {
        let _ = write!(others, " {other}) command={name} ;;");
    }
    format!(
        r#"#compdef spektacular
# Completions for zsh: a file named _spektacular in a folder of fpath.
_spektacular() {{
    local -a found
    if ((CURRENT == 2)); then
        found=({commands})
        _describe 'command' found
        return
    fi
    local command=$words[2] curcontext=$curcontext state line
    typeset -A opt_args
    case $command in{others} esac
    shift words
    ((CURRENT--))
    case $command in
{cases}    esac
    [[ $state == words ]] || return
    # The words before this one without flags and their values.
    local -a before=($command ${{line[1,-2]}})
    case "$before" in
{places}    esac
    (($#found)) && _describe 'word' found
}}
if [ "$funcstack[1]" = "_spektacular" ]; then
    _spektacular "$@"
else
    compdef _spektacular spektacular
fi
"#
    )
}

/// Removes the characters that `_arguments` and `_describe` interpret.
fn plain(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
    escaped.replace('\'', "'\\''")
}

/// The action of `_arguments` for a value.
fn action(offered: &Offered) -> String {
    match offered {
        Offered::Words(_) => format!("({})", offered.joined().unwrap_or_default()),
        Offered::Files => "_files".into(),
        Offered::Folders => "_files -/".into(),
        Offered::Nothing => " ".into(),
    }
}

/// Words with their descriptions, for `_describe`.
fn described(offered: &Offered) -> String {
    let Offered::Words(words) = offered else { return String::new() };
    let one = |about: &str| if about.is_empty() { String::new() } else { format!(":{}", plain(about)) };
    words.iter().map(|word| format!("'{}{}'", word.word, one(&word.about))).collect::<Vec<_>>().join(" ")
}

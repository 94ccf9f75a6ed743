//! The script for bash.

use super::{Offered, Table, spellings};
use std::fmt::Write;

pub(super) fn script(table: &Table<'_>) -> String {
    let (mut values, mut places, mut flags, mut valued) = (String::new(), String::new(), String::new(), String::new());
    for command in table.commands {
        for (spelling, offered) in table.values(command) {
            let _ = writeln!(values, "        '{} {spelling}') {} ;;", command.name, offer(&offered));
            let _ = write!(valued, " {}:{spelling}", command.name);
        }
        for (path, offered) in table.places(command) {
            if !matches!(offered, Offered::Nothing) {
                let _ = writeln!(places, "            '{path}') {} ;;", offer(&offered));
            }
        }
        let spelled: Vec<String> = command.flags_here().into_iter().flat_map(spellings).collect();
        let _ = writeln!(flags, "            {}) words='{}' ;;", command.name, spelled.join(" "));
    }
    let commands: Vec<String> = table.names().into_iter().map(|candidate| candidate.word).collect();
    let commands = commands.join(" ");
    let mut others = String::new();
    for (other, name) in table.other_names() {
        let _ = write!(others, " {other}) command={name} ;;");
    }
    format!(
        r#"# Completions for bash: source <(spektacular completions bash)
_spektacular() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} words= at word
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{commands} --help --version' -- "$cur"))
        return
    fi
    local prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
    case $command in{others} esac
    # The words before this one without flags and their values.
    local path=$command valued='{valued} '
    for ((at = 2; at < COMP_CWORD; at++)); do
        word=${{COMP_WORDS[at]}}
        case $word in
        --) return ;;
        =) ((at++)) ;;
        -*) [[ $valued == *" $command:$word "* && ${{COMP_WORDS[at+1]}} != = ]] && ((at++)) ;;
        *) path+=" $word" ;;
        esac
    done
    # --flag=value comes as three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case "$command $prev" in
{values}    *)
        if [[ $cur != -* ]]; then
            case $path in
{places}            esac
        fi
        if [[ -z $words ]]; then
            case $command in
{flags}            esac
        fi ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -F _spektacular spektacular
"#
    )
}

fn offer(offered: &Offered) -> String {
    let files = |flag: &str| {
        format!("local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen {flag} -- \"$cur\")); return")
    };
    match offered {
        Offered::Words(_) => format!("words='{}'", offered.joined().unwrap_or_default()),
        Offered::Files => files("-f"),
        Offered::Folders => files("-d"),
        Offered::Nothing => "return".into(),
    }
}

//! The script for elvish.

use super::{Candidate, Offered, Table, quoted, spellings};
use std::fmt::Write;

pub(super) fn script(table: &Table<'_>) -> String {
    let [mut flags, mut words, mut files, mut valued, mut others] = [const { String::new() }; 5];
    for (other, name) in table.other_names() {
        let _ = write!(others, " &{other}={name}");
    }
    let mut offer = |key: &str, offered: &Offered| match offered {
        Offered::Words(found) => _ = writeln!(words, "    &{}=[{}]", quoted(key, "''"), pairs(found)),
        Offered::Files | Offered::Folders => _ = write!(files, " {}", quoted(key, "''")),
        Offered::Nothing => {}
    };
    for command in table.commands {
        let _ = write!(flags, "    &{}=[", command.name);
        for flag in command.flags_here() {
            let about = quoted(flag.help, "''");
            spellings(flag).for_each(|spelling| _ = write!(flags, "\n        [{spelling} {about}]"));
        }
        flags.push_str("]\n");
        for (spelling, offered) in table.values(command) {
            let key = format!("{} {spelling}", command.name);
            let _ = write!(valued, " {}", quoted(&key, "''"));
            offer(&key, &offered);
        }
        for (path, offered) in table.places(command) {
            offer(&path, &offered);
        }
    }
    let others = if others.is_empty() { "&" } else { others.trim_start() };
    let commands = pairs(&table.names());
    format!(
        r#"# Completions for elvish: eval (spektacular completions elvish | slurp)
var spektacular-flags = [
{flags}]
var spektacular-words = [
{words}]
var spektacular-files = [{files} ]
var spektacular-valued = [{valued} ]
var spektacular-others = [{others}]
fn spektacular-show {{|pairs|
    for pair $pairs {{
        if (eq $pair[1] '') {{
            put $pair[0]
        }} else {{
            edit:complex-candidate $pair[0] &display=$pair[0]'  '$pair[1]
        }}
    }}
}}
fn spektacular-after {{|@words|
    use str
    var command = $words[1]
    if (has-key $spektacular-others $command) {{
        set command = $spektacular-others[$command]
    }}
    # The words before this one without flags and their values.
    var path = $command
    var key = ''
    for word $words[2..-1] {{
        if (has-value $spektacular-valued $key) {{
            set key = ''
        }} else {{
            set key = $command' '$word
            if (and (not (has-value $spektacular-valued $key)) (not (str:has-prefix $word -))) {{
                set path = $path' '$word
            }}
        }}
    }}
    var is-value = (has-value $spektacular-valued $key)
    if (not $is-value) {{
        set key = $path
    }}
    if (has-value $spektacular-files $key) {{
        edit:complete-filename $words[-1]
    }} elif (has-key $spektacular-words $key) {{
        spektacular-show $spektacular-words[$key]
    }}
    if (and (not $is-value) (has-key $spektacular-flags $command)) {{
        spektacular-show $spektacular-flags[$command]
    }}
}}
set edit:completion:arg-completer[spektacular] = {{|@words|
    if (== (count $words) 2) {{
        spektacular-show [{commands}]
    }} else {{
        spektacular-after $@words
    }}
}}
"#
    )
}

fn pairs(words: &[Candidate]) -> String {
    let pair = |word: &Candidate| format!("[{} {}]", quoted(&word.word, "''"), quoted(&word.about, "''"));
    words.iter().map(pair).collect::<Vec<_>>().join(" ")
}

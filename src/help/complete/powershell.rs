//! The script for PowerShell.

use super::{Candidate, Offered, Table, quoted, spellings};
use std::fmt::Write;

pub(super) fn script(table: &Table<'_>) -> String {
    let (mut flags, mut words, mut valued, mut others) = (String::new(), String::new(), String::new(), String::new());
    for (other, name) in table.other_names() {
        let _ = write!(others, " '{other}' = '{name}';");
    }
    for command in table.commands {
        let _ = writeln!(flags, "        '{}' = @(", command.name);
        for flag in command.flags_here() {
            let about = quoted(flag.help, "''");
            spellings(flag).for_each(|spelling| _ = writeln!(flags, "            , @('{spelling}', {about})"));
        }
        flags.push_str("        )\n");
        let values = table.values(command).into_iter().map(|(spelling, offered)| {
            let key = format!("{} {spelling}", command.name);
            let _ = write!(valued, "'{key}', ");
            (key, offered)
        });
        for (key, offered) in values.chain(table.places(command)) {
            // Without an entry, PowerShell completes file names.
            if let Offered::Words(found) = &offered {
                let _ = writeln!(words, "        '{key}' = @({})", pairs(found));
            }
        }
    }
    let commands = pairs(&table.names());
    let valued = valued.trim_end_matches(", ");
    format!(
        r#"# Completions for PowerShell: spektacular completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName spektacular -ScriptBlock {{
    param($word, $ast, $cursor)
    $flags = @{{
{flags}    }}
    $words = @{{
{words}    }}
    $valued = @({valued})
    $others = @{{{others} }}
    $typed = @($ast.CommandElements | Where-Object {{ $_.Extent.EndOffset -lt $cursor }} | ForEach-Object {{ "$_" }})
    if ($typed.Count -le 1) {{
        $found = @({commands})
    }} else {{
        $command = $typed[1]
        if ($others.ContainsKey($command)) {{ $command = $others[$command] }}
        # The words before this one without flags and their values.
        $path = $command
        $key = ''
        foreach ($part in @($typed | Select-Object -Skip 2)) {{
            if ($valued -ccontains $key) {{
                $key = ''
            }} else {{
                $key = "$command $part"
                if ($valued -cnotcontains $key -and -not $part.StartsWith('-')) {{ $path = "$path $part" }}
            }}
        }}
        if ($valued -ccontains $key) {{
            $found = @($words[$key])
        }} else {{
            $found = @($words[$path]) + @($flags[$command])
        }}
    }}
    $found | Where-Object {{ $_ -and $_[0] -clike "$word*" }} | ForEach-Object {{
        [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
    }}
}}
"#
    )
}

/// Pairs of a word and its description, which must not be empty in PowerShell.
fn pairs(words: &[Candidate]) -> String {
    let about = |word: &Candidate| if word.about.is_empty() { word.word.clone() } else { word.about.clone() };
    let pair = |word: &Candidate| format!(", @({}, {})", quoted(&word.word, "''"), quoted(&about(word), "''"));
    words.iter().map(pair).collect::<Vec<_>>().join("; ")
}

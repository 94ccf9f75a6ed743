//! Scripts that complete commands, flags and values, for each shell from the one table.

use crate::cli::command::{Command, Flag, Offers};
use std::fmt::Write;

/// The shells for which there is a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    PowerShell,
}

impl Shell {
    /// The names, in the order of [`Shell::ALL`].
    pub const NAMES: &'static [&'static str] = &["bash", "zsh", "fish", "elvish", "powershell"];
    /// All of them.
    pub const ALL: [Shell; 5] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell];

    /// The shell with this name.
    pub fn from_name(name: &str) -> Option<Shell> {
        Shell::NAMES.iter().position(|known| *known == name).and_then(|at| Shell::ALL.get(at)).copied()
    }
}

/// The script for a shell. `agents`: the names that `--agent` takes.
pub fn script(shell: Shell, commands: &[Command], agents: &[String]) -> String {
    match shell {
        Shell::Bash => bash(commands, agents),
        Shell::Zsh => zsh(commands, agents),
        Shell::Fish => fish(commands, agents),
        Shell::Elvish => elvish(commands, agents),
        Shell::PowerShell => powershell(commands, agents),
    }
}

/// The words that are offered, one after another. `None`: they are no words.
fn words(offers: Offers, commands: &[Command], agents: &[String]) -> Option<String> {
    match offers {
        Offers::Words(words) => Some(words.join(" ")),
        Offers::Agents => Some(agents.join(" ")),
        Offers::Commands => Some(commands.iter().map(|command| command.name).collect::<Vec<_>>().join(" ")),
        Offers::Nothing | Offers::Files | Offers::Folders => None,
    }
}

/// How a flag may be written: `--long`, and `-s` where it has a letter.
fn spellings(flag: &Flag) -> impl Iterator<Item = String> {
    [Some(format!("--{}", flag.long)), flag.short.map(|letter| format!("-{letter}"))].into_iter().flatten()
}

/// Every spelling of every flag of a command that a value follows, with what is offered for it.
fn values(command: &Command) -> impl Iterator<Item = (String, Offers)> {
    let flags = command.all_flags().filter(|flag| flag.takes_value());
    flags.flat_map(|flag| spellings(flag).map(|spelling| (spelling, flag.offers())))
}

/// A text in single quotes, where a quote in it is written as `quote`.
fn quoted(text: &str, quote: &str) -> String {
    format!("'{}'", text.replace('\'', quote))
}

fn bash(commands: &[Command], agents: &[String]) -> String {
    let (mut cases, mut rest) = (String::new(), String::new());
    let files = |flag: &str| {
        format!("local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen {flag} -- \"$cur\")); return")
    };
    for command in commands {
        for (spelling, offers) in values(command) {
            let does = match (offers, words(offers, commands, agents)) {
                (_, Some(words)) => format!("words='{words}'"),
                (Offers::Files, None) => files("-f"),
                (Offers::Folders, None) => files("-d"),
                (_, None) => "return".into(),
            };
            let _ = writeln!(cases, "        '{} {spelling}') {does} ;;", command.name);
        }
        let flags: Vec<String> = command.all_flags().flat_map(spellings).collect();
        let does = match (command.words, words(command.words, commands, agents)) {
            (Offers::Files, _) => format!("if [[ $cur != -* ]]; then {}; fi; ", files("-f")),
            (_, Some(words)) => format!("words='{words}'; [[ $cur != -* ]] || "),
            (_, None) => String::new(),
        };
        let _ = writeln!(rest, "            {}) {does}words='{}' ;;", command.name, flags.join(" "));
    }
    let commands = words(Offers::Commands, commands, agents).unwrap_or_default();
    format!(
        r#"# Completions for bash: source <(spektacular completions bash)
_spektacular() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} words= at
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{commands} --help --version' -- "$cur"))
        return
    fi
    local prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
    for ((at = 2; at < COMP_CWORD; at++)); do
        [[ ${{COMP_WORDS[at]}} == -- ]] && return
    done
    # --flag=value comes as three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case "$command $prev" in
{cases}        *) case $command in
{rest}        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -F _spektacular spektacular
"#
    )
}

fn zsh(commands: &[Command], agents: &[String]) -> String {
    // What _arguments reads as its own is escaped.
    let plain = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
        escaped.replace('\'', "'\\''")
    };
    let action = |offers: Offers| match words(offers, commands, agents) {
        Some(words) => format!("({words})"),
        None if offers == Offers::Files => "_files".into(),
        None if offers == Offers::Folders => "_files -/".into(),
        None => " ".into(),
    };
    let (mut described, mut cases) = (String::new(), String::new());
    for command in commands {
        let _ = writeln!(described, "            '{}:{}'", command.name, plain(command.about));
        let _ = writeln!(cases, "        {})\n            _arguments -s -S \\", command.name);
        for flag in command.all_flags() {
            let value = match flag.takes_value() {
                true => format!(":{}:{}", plain(flag.metavar), action(flag.offers())),
                false => String::new(),
            };
            let star = if flag.repeats() { "*" } else { "" };
            let equals = if flag.takes_value() { "=" } else { "" };
            let about = format!("[{}]{value}", plain(flag.help));
            let _ = writeln!(cases, "                '{star}--{}{equals}{about}' \\", flag.long);
            if let Some(letter) = flag.short {
                let plus = if flag.takes_value() { "+" } else { "" };
                let _ = writeln!(cases, "                '{star}-{letter}{plus}{about}' \\");
            }
        }
        let _ = writeln!(cases, "                '*:word:{}'\n            ;;", action(command.words));
    }
    format!(
        r#"#compdef spektacular
# Completions for zsh: a file named _spektacular in a folder of fpath.
_spektacular() {{
    if ((CURRENT == 2)); then
        local -a commands
        commands=(
{described}        )
        _describe 'command' commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
{cases}    esac
}}
if [ "$funcstack[1]" = "_spektacular" ]; then
    _spektacular "$@"
else
    compdef _spektacular spektacular
fi
"#
    )
}

fn fish(commands: &[Command], agents: &[String]) -> String {
    let text = |text: &str| quoted(&text.replace('\\', "\\\\"), "\\'");
    let mut out = String::from(
        "# Completions for fish.\n\
         function __spektacular_is\n\
         \x20   set -l typed (commandline -opc)\n\
         \x20   test (count $typed) -ge 2; and test $typed[2] = $argv[1]\n\
         end\n\
         complete -c spektacular -f\n\
         complete -c spektacular -n 'test (count (commandline -opc)) -eq 1' -s V -l version -d 'show the version'\n\
         complete -c spektacular -n 'test (count (commandline -opc)) -eq 1' -s h -l help -d 'show help'\n",
    );
    for command in commands {
        let (name, about) = (command.name, text(command.about));
        let _ =
            writeln!(out, "complete -c spektacular -n 'test (count (commandline -opc)) -eq 1' -a {name} -d {about}");
        let mut line = |what: String| {
            let _ = writeln!(out, "complete -c spektacular -n '__spektacular_is {name}' {what}");
        };
        match (command.words, words(command.words, commands, agents)) {
            (_, Some(words)) => line(format!("-a '{words}'")),
            (Offers::Files, None) => line("-F".into()),
            _ => {}
        }
        for flag in command.all_flags() {
            let short = flag.short.map(|letter| format!("-s {letter} ")).unwrap_or_default();
            let value = match (flag.takes_value(), flag.offers(), words(flag.offers(), commands, agents)) {
                (false, ..) => String::new(),
                (true, _, Some(words)) => format!("-x -a '{words}' "),
                (true, Offers::Files, _) => "-r -F ".into(),
                (true, Offers::Folders, _) => "-x -a '(__fish_complete_directories)' ".into(),
                (true, ..) => "-x ".into(),
            };
            line(format!("{short}-l {} {value}-d {}", flag.long, text(flag.help)));
        }
    }
    out
}

fn elvish(commands: &[Command], agents: &[String]) -> String {
    let list = |offers: Offers| words(offers, commands, agents).map_or_else(String::new, |words| format!("[{words}]"));
    let (mut flags, mut known, mut files, mut free) = (String::new(), String::new(), String::new(), String::new());
    for command in commands {
        let _ = write!(flags, "    &{}=[", command.name);
        for flag in command.all_flags() {
            let about = quoted(flag.help, "''");
            spellings(flag).for_each(|spelling| _ = write!(flags, "\n        [{spelling} {about}]"));
        }
        flags.push_str("]\n");
        for (spelling, offers) in values(command) {
            let key = format!("'{} {spelling}'", command.name);
            match (offers, list(offers)) {
                (_, list) if !list.is_empty() => _ = writeln!(known, "    &{key}={list}"),
                (Offers::Files | Offers::Folders, _) => _ = write!(files, " {key}"),
                _ => _ = write!(free, " {key}"),
            }
        }
        match (command.words, list(command.words)) {
            (_, list) if !list.is_empty() => _ = writeln!(known, "    &{}={list}", command.name),
            (Offers::Files, _) => _ = write!(files, " {}", command.name),
            _ => {}
        }
    }
    let commands = list(Offers::Commands);
    format!(
        r#"# Completions for elvish: eval (spektacular completions elvish | slurp)
var spektacular-flags = [
{flags}]
var spektacular-values = [
{known}]
var spektacular-files = [{files} ]
var spektacular-free = [{free} ]
set edit:completion:arg-completer[spektacular] = {{|@words|
    var command = $words[1]
    var key = $command' '$words[-2]
    if (== (count $words) 2) {{
        all {commands}
    }} elif (has-key $spektacular-values $key) {{
        all $spektacular-values[$key]
    }} elif (has-value $spektacular-files $key) {{
        edit:complete-filename $words[-1]
    }} elif (not (has-value $spektacular-free $key)) {{
        if (has-key $spektacular-values $command) {{
            all $spektacular-values[$command]
        }} elif (has-value $spektacular-files $command) {{
            edit:complete-filename $words[-1]
        }}
        if (has-key $spektacular-flags $command) {{
            for flag $spektacular-flags[$command] {{
                edit:complex-candidate $flag[0] &display=$flag[0]'  '$flag[1]
            }}
        }}
    }}
}}
"#
    )
}

fn powershell(commands: &[Command], agents: &[String]) -> String {
    let list =
        |offers: Offers| words(offers, commands, agents).map(|words| format!("'{}'", words.replace(' ', "', '")));
    let (mut flags, mut known) = (String::new(), String::new());
    for command in commands {
        let _ = writeln!(flags, "        '{}' = @(", command.name);
        for flag in command.all_flags() {
            let about = quoted(flag.help, "''");
            spellings(flag).for_each(|spelling| _ = writeln!(flags, "            , @('{spelling}', {about})"));
        }
        flags.push_str("        )\n");
        // An empty list: PowerShell's own completion of files takes over.
        for (spelling, offers) in values(command) {
            let _ = writeln!(known, "        '{} {spelling}' = @({})", command.name, list(offers).unwrap_or_default());
        }
        if let Some(words) = list(command.words) {
            let _ = writeln!(known, "        '{}' = @({words})", command.name);
        }
    }
    let commands = list(Offers::Commands).unwrap_or_default();
    format!(
        r#"# Completions for PowerShell: spektacular completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName spektacular -ScriptBlock {{
    param($word, $ast, $cursor)
    $flags = @{{
{flags}    }}
    $values = @{{
{known}    }}
    $typed = @($ast.CommandElements | Where-Object {{ $_.Extent.EndOffset -lt $cursor }} | ForEach-Object {{ "$_" }})
    $found = @()
    if ($typed.Count -le 1) {{
        $found = @(@({commands}) | ForEach-Object {{ , @($_, $_) }})
    }} elseif ($values.ContainsKey("$($typed[1]) $($typed[-1])")) {{
        $found = @($values["$($typed[1]) $($typed[-1])"] | ForEach-Object {{ , @($_, $_) }})
    }} else {{
        $found = @($values[$typed[1]] | Where-Object {{ $_ }} | ForEach-Object {{ , @($_, $_) }}) + $flags[$typed[1]]
    }}
    $found | Where-Object {{ $_ -and $_[0] -clike "$word*" }} | ForEach-Object {{
        [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
    }}
}}
"#
    )
}

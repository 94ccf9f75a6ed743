//! The commands that explain the program: help, completions, the manual page.

use super::COMMANDS;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::{Help, explained, no_words, one_word};
use crate::help::complete::Shell;
use crate::help::{man, overview};
use crate::io::output::deliver;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED};

pub(super) const COMPLETIONS: Command = Command {
    words: Words::Free("bash | zsh | fish | elvish | powershell", Offers::Words(Shell::WORDS)),
    ..Command::named(
        "completions",
        &CommandText {
            about: "print a completion script for a shell",
            more: "On each Tab, the script asks the program, which offers commands, flags and their values, and the current agents, sessions,
specifications, plans and keys.",
            examples: &[
                ("source <(spektacular completions bash)", "in ~/.bashrc"),
                ("spektacular completions zsh > ~/.zfunc/_spektacular", "with ~/.zfunc in fpath, before compinit"),
                ("spektacular completions fish > ~/.config/fish/completions/spektacular.fish", "where fish finds it"),
                ("eval (spektacular completions elvish | slurp)", "in ~/.config/elvish/rc.elv"),
                ("spektacular completions powershell | Out-String | Invoke-Expression", "in $PROFILE"),
            ],
        },
        |_, words| {
            let shell = one_word("completions", "shell", &words, Shell::WORDS, Shell::from_word)?;
            Ok(Runnable::new(shell, |shell| deliver(shell.script())))
        },
    )
};

pub(super) const MAN: Command = Command {
    ..Command::named(
        "man",
        &CommandText {
            about: "print the manual page",
            more: "",
            examples: &[
                ("spektacular man | man -l -", "read it"),
                ("spektacular man > ~/.local/share/man/man1/spektacular.1", "install it where man finds it"),
            ],
        },
        |_, words| {
            let print = |()| deliver(&man::page(COMMANDS, env!("CARGO_PKG_VERSION"), &exits()));
            Ok(Runnable::new(no_words("man", &words)?, print))
        },
    )
};

pub(super) const HELP: Command = Command {
    words: Words::Free("[COMMAND [flags | FLAG | reference]]", Offers::Commands),
    ..Command::named(
        "help",
        &CommandText {
            about: "explain a command, with examples",
            more: "",
            examples: &[
                ("spektacular help adhoc", "the page about adhoc"),
                ("spektacular help adhoc permissions", "the flag --permissions of adhoc"),
                ("spektacular help adhoc flags", "all flags of adhoc, with their defaults"),
                ("spektacular help spec reference", "the reference of spec, plan and implement"),
            ],
        },
        |_, words| Ok(Runnable::new(explained(COMMANDS, &words)?, help)),
    )
};

pub(super) fn version() -> u8 {
    deliver(&format!("spektacular {}\n", env!("CARGO_PKG_VERSION")))
}

pub(super) fn help(shown: Help) -> u8 {
    deliver(&match shown {
        Help::Overview => overview(COMMANDS),
        Help::Short(command) => command.short_help(),
        Help::Long(command) => command.help(),
        Help::Flags(command) => command.flag_help().trim_start().to_owned(),
        Help::Flag(flag) => flag.described(),
        Help::Page(command) => command.page.to_owned(),
    })
}

/// The meaning of each exit code, as README.md has it.
const EXITS: &[(u8, &str)] = &[
    (0, "the run completed or was cancelled"),
    (1, "the agent or its provider failed, or a workflow did not reach its goal"),
    (2, "the request, the command line or the configuration is wrong"),
    (3, "the orchestrator violated the protocol"),
    (4, "the agent could not start, or is not logged in"),
    (5, "a time limit expired"),
    (6, "a question was not answered"),
    (70, "spektacular has a bug, or the machine is out of resources"),
    (EXIT_UNDELIVERED, "the last frame could not be delivered: stdout was closed, or nobody read it after a stop"),
];

fn exits() -> Vec<(String, String)> {
    let row = |(exit, meaning): &(u8, &str)| {
        let codes: Vec<&str> =
            Code::ALL.iter().filter(|code| code.exit_code() == *exit).map(|code| code.name()).collect();
        let codes = if codes.is_empty() { String::new() } else { format!(": {}", codes.join(", ")) };
        (exit.to_string(), format!("{meaning}{codes}"))
    };
    let by_signal = (
        "129, 130, 143".to_owned(),
        "with --output cli or --signal-exit: SIGHUP, SIGINT or SIGTERM ended the run".to_owned(),
    );
    EXITS.iter().map(row).chain([by_signal]).collect()
}

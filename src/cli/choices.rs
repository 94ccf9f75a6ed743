//! The values of flags that are one of several words.

use super::{Wrong, one_of};
use crate::protocol::words::word_enums;
use std::ffi::OsStr;

/// Defines the values of a flag, each with its word, the default first.
macro_rules! choices {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        word_enums! {
            $(#[$about])*
            pub enum $name { $($(#[$doc])* $variant = $word),* }
        }

        impl $name {
            pub fn read(flag: &str, value: &OsStr) -> Result<$name, Wrong> {
                one_of(flag, value, &[$(($word, $name::$variant)),*])
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::ALL[0]
            }
        }
    )*};
}

choices! {
    Output {
        /// Text for a person.
        Cli = "cli",
        /// JSON Lines for an orchestrator.
        Json = "json",
    }
    Color {
        /// Colors on a terminal, unless `NO_COLOR` or `FORCE_COLOR` decides.
        Auto = "auto",
        /// Colors everywhere, even in a pipe or a file.
        Always = "always",
        Never = "never",
    }
    /// The effect of the end of stdin.
    AtEof {
        Continue = "continue",
        Cancel = "cancel",
    }
    DiffSize {
        Short = "short",
        Full = "full",
        None = "none",
    }
}

//! The dialects that agents speak.

use crate::protocol::words::one_of;

macro_rules! dialects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Dialect {
            $($(#[$doc])* $variant,)*
            /// The demo agent's own. No entry of a configuration can name it.
            Demo,
        }

        impl Dialect {
            /// Every dialect that an entry of a configuration can name, by its name.
            pub const ALL: &[(&str, Dialect)] = &[$(($name, Dialect::$variant)),*];

            /// The rule for a dialect's name, for error messages.
            pub const EXPECTED: &str = one_of!($($name),*);

            /// The dialect's name in configurations and recordings.
            pub fn name(self) -> &'static str {
                match self {
                    $(Dialect::$variant => $name,)*
                    Dialect::Demo => "demo",
                }
            }
        }
    };
}

dialects! {
    /// The Agent Client Protocol.
    Acp = "acp",
    /// Claude Code's stream-json.
    Claude = "claude",
    /// Codex's app-server.
    Codex = "codex",
    /// No dialect: any command that prints text.
    Lines = "lines",
    /// pi's RPC mode.
    Pi = "pi",
}

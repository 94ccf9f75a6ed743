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
            pub const ALL: &[(&str, Dialect)] = &[$(($name, Dialect::$variant)),*];

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
    Acp = "acp",
    Claude = "claude",
    Codex = "codex",
    /// No dialect: any command that prints text.
    Lines = "lines",
    Pi = "pi",
}

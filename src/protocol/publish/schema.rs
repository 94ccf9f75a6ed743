//! Parts of the JSON Schema (2020-12) of the messages and frames.

/// The messages that a schema describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageSet {
    /// All messages and frames.
    #[default]
    All,
    /// The messages to spektacular.
    Inbound,
    /// The frames from spektacular.
    Outbound,
    /// The messages or frames of one type.
    Type(String),
}

/// The treatment of what this version does not know in a frame. A message of a client may never contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownParts {
    /// Later minor versions may send it.
    #[default]
    Allowed,
    /// This version does not send it.
    Refused,
}

/// The beginning of each definition. Only their first lines are indented by exactly four blanks.
const BEGIN: &str = "\n    \"";
/// The end of the file, after the last definition.
const END: &str = "\n  }\n}\n";

/// The schema of some messages: the definitions in the published file that its root reaches.
pub fn schema(scope: &MessageSet, unknown: UnknownParts) -> String {
    let file = match unknown {
        UnknownParts::Allowed => include_str!("schema.json"),
        UnknownParts::Refused => include_str!("schema_strict.json"),
    };
    let root = match scope {
        MessageSet::All => return file.to_owned(),
        MessageSet::Inbound => "Message".to_owned(),
        MessageSet::Outbound => "Frame".to_owned(),
        MessageSet::Type(kind) => kind.replace('.', ""),
    };
    let (head, rest) = file.split_once("\"anyOf\"").unwrap_or_default();
    let (_, definitions) = rest.split_once(",\n").unwrap_or_default();
    let mut texts = definitions.trim_end_matches(END).split(BEGIN);
    let open = texts.next().unwrap_or_default();
    let definitions: Vec<(&str, &str)> =
        texts.filter_map(|text| Some((text.split_once('"')?.0, text.trim_end_matches(',')))).collect();
    let named = |name: &str| definitions.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut reached: Vec<&(&str, &str)> = named(&root).into_iter().collect();
    let mut at = 0;
    while let Some((_, text)) = reached.get(at) {
        let names = text.split("#/$defs/").skip(1).filter_map(|rest| rest.split('"').next());
        for found in names.filter_map(named) {
            if !reached.contains(&found) {
                reached.push(found);
            }
        }
        at += 1;
    }
    let root = reached.first().map(|(name, _)| *name).unwrap_or_default();
    let texts: Vec<&str> = reached.iter().map(|(_, text)| *text).collect();
    format!("{head}\"$ref\": \"#/$defs/{root}\",\n{open}{BEGIN}{}{END}", texts.join(&format!(",{BEGIN}")))
}

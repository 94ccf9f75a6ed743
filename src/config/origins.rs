//! The origin of each field of run.start, so that a message can name the flag, variable or file to correct.

use crate::protocol::fields::Field;
use crate::protocol::request::Options;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOrigin {
    Flag(String),
    Variable(String),
    /// A file: its path and the line, as one text.
    File(String),
}

/// The origins of the fields that flags, variables and files set. An absent field was set by run.start or not at all.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<&'static str, FieldOrigin>);

impl Origins {
    /// Replaces an earlier origin.
    pub fn put(&mut self, field: &'static str, origin: FieldOrigin) {
        self.0.insert(field, origin);
    }

    pub fn without(&self, start: &Options) -> Origins {
        Origins(self.0.iter().filter(|(field, _)| !start.says(field)).map(|(k, v)| (*k, v.clone())).collect())
    }

    /// The subject of a sentence about a field: `--cwd`, or `run.start: `cwd``.
    pub(crate) fn subject(&self, field: &'static Field) -> Sentence {
        match self.0.get(field.name) {
            Some(FieldOrigin::Flag(name) | FieldOrigin::Variable(name)) => name.as_str().into(),
            Some(FieldOrigin::File(place)) => format!("{} in {place},", field.name).into(),
            None => sentence!("{field}", field = field).about_start(),
        }
    }

    /// The origin as a remark: ` (from --cwd)`. `None`: run.start set the field, or nothing did.
    pub fn remark(&self, field: &str) -> Option<String> {
        self.0.get(field).map(|origin| match origin {
            FieldOrigin::Flag(place) | FieldOrigin::Variable(place) | FieldOrigin::File(place) => {
                format!(" (from {place})")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldOrigin, Options, Origins};
    use crate::protocol::fields::field;

    #[test]
    fn a_message_overrides_every_other_origin() {
        let mut origins = Origins::default();
        origins.put("agent", FieldOrigin::Variable("SPEKTACULAR_AGENT".into()));
        origins.put("agent", FieldOrigin::Flag("--agent".into()));
        origins.put("cwd", FieldOrigin::File("/c.json, line 3".into()));
        assert_eq!(origins.remark("agent").as_deref(), Some(" (from --agent)"));
        let subject = |origins: &Origins, field| origins.subject(field).text().unredacted().to_owned();
        assert_eq!(subject(&origins, field!(cwd)), "cwd in /c.json, line 3,");
        let start = Options { cwd: Some("/".into()), ..Options::default() };
        let left = origins.without(&start);
        assert_eq!(subject(&left, field!(cwd)), "run.start: `cwd`");
        assert_eq!(subject(&left, field!(agent)), "--agent");
        assert_eq!(left.subject(field!(cwd)).for_person().unredacted(), "--cwd");
        assert_eq!(left.remark("cwd"), None);
    }
}

//! The validation rules and the default in a call of `ask_user`.
//!
//! Contradictory rules are refused, because the model can correct its call. Rules that do not apply to the question's
//! kind are ignored, because some models fill in every field of a schema.

use crate::json::Object;
use crate::protocol::question::{Ask, Kind, Validation, check};
use crate::protocol::text::Text;
use crate::protocol::words::PathType;
use serde_json::{Value, json};

pub(super) fn schema() -> Value {
    let count = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
    let number = |what: &str| json!({"type": "number", "description": what});
    let flag = |what: &str| json!({"type": "boolean", "description": what});
    json!({
        "type": "object",
        "description": "Rules for the answer. The user is asked again until the answer follows them. Omit rules that do not apply.",
        "properties": {
            "min_length": count("text, secret, file_path: the minimum number of characters."),
            "max_length": count("text, secret, file_path: the maximum number of characters."),
            "pattern": {
                "type": "string",
                "description": "text, secret, file_path: a regular expression that must match a part of the answer. Look-around is not supported.",
            },
            "min": number("text, secret: the answer must be a number of at least this value."),
            "max": number("text, secret: the answer must be a number of at most this value."),
            "integer": flag("text, secret: the answer must be a whole number."),
            "min_selected": count("multi-select: the minimum number of options."),
            "max_selected": count("multi-select: the maximum number of options."),
            "must_exist": flag("file_path: the path must exist."),
            "path_type": {"type": "string", "enum": ["file", "directory"], "description": "file_path: the required type of the path."},
        },
    })
}

/// Error: the mistake, explained to the model.
pub(super) fn read(question: &Object<'_>, kind: &Kind) -> Result<Validation, String> {
    let Some(raw) = question.raw("validation") else { return Ok(Validation::default()) };
    let given = Given(raw.object().ok_or("`validation` must be an object.")?);
    let mut rules = Validation::default();
    match kind {
        Kind::Confirm | Kind::Select { multiple: false, .. } => {}
        Kind::Select { multiple: true, .. } => {
            rules.min_selected = given.count("min_selected")?;
            rules.max_selected = given.count("max_selected")?;
        }
        Kind::Text | Kind::Secret => {
            given.text_rules(&mut rules)?;
            rules.min = given.number("min")?;
            rules.max = given.number("max")?;
            rules.integer = given.flag("integer")?;
        }
        Kind::FilePath => {
            given.text_rules(&mut rules)?;
            rules.must_exist = given.flag("must_exist")?;
            rules.path_type = given.path_type()?;
        }
    }
    ordered(rules.min_length, rules.max_length, "length")?;
    ordered(rules.min_selected, rules.max_selected, "selected")?;
    match (rules.min, rules.max) {
        (Some(min), Some(max)) if min > max => Err("`min` must not be greater than `max`.".into()),
        _ => Ok(rules),
    }
}

pub(super) fn with_default(mut ask: Ask, question: &Object<'_>) -> Result<Ask, String> {
    let Some(raw) = question.raw("default") else { return Ok(ask) };
    if ask.kind == Kind::Secret {
        return Err("a secret must not have a `default`.".into());
    }
    let answer =
        check(&ask, raw.value(), None).map_err(|why| format!("its `default` does not fit the question. {why}"))?;
    ask.default = Some(answer);
    Ok(ask)
}

fn ordered(least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), String> {
    match (least, most) {
        (_, Some(0)) => Err(format!("`max_{what}` must be at least 1.")),
        (Some(least), Some(most)) if least > most => {
            Err(format!("`min_{what}` must not be greater than `max_{what}`."))
        }
        _ => Ok(()),
    }
}

struct Given<'a>(Object<'a>);

impl Given<'_> {
    fn one<T>(&self, name: &str, value: Option<T>, expected: &str) -> Result<Option<T>, String> {
        match (self.0.raw(name), value) {
            (Some(_), None) => Err(format!("`{name}` must be {expected}.")),
            (_, value) => Ok(value),
        }
    }

    fn count(&self, name: &str) -> Result<Option<u64>, String> {
        self.one(name, self.0.count(name), "a whole number, 0 or more")
    }

    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        self.one(name, self.0.number(name), "a number")
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.one(name, self.0.bool(name), "true or false")
    }

    fn path_type(&self) -> Result<Option<PathType>, String> {
        let word = self.0.string("path_type").and_then(|word| PathType::from_word(&word));
        self.one("path_type", word, "file or directory")
    }

    fn text_rules(&self, rules: &mut Validation) -> Result<(), String> {
        rules.min_length = self.count("min_length")?;
        rules.max_length = self.count("max_length")?;
        // A pattern that cannot be evaluated is passed on.
        rules.pattern = self.one("pattern", self.0.string("pattern"), "a string")?.map(Text::from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::ask_user::read;
    use crate::json::Object;
    use crate::protocol::question::{Answer, Ask, PathFact, check};
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    fn ask(question: Value) -> Result<Ask, String> {
        let text = json!({"questions": [question]}).to_string();
        read(Object::parse(&text).as_ref()).map(|mut asks| asks.remove(0))
    }

    fn with(kind: &str, validation: Value) -> Result<Ask, String> {
        ask(
            json!({"question": "Q", "kind": kind, "validation": validation, "options": [{"label": "A"}, {"label": "B"}]}),
        )
    }

    #[test]
    fn every_rule_is_read_and_applied() {
        let (number, word) = (json!({"min": 1, "max": 3, "integer": true}), json!({"min_length": 2, "max_length": 3}));
        let path = json!({"must_exist": true, "path_type": "directory"});
        for (kind, rules, good, bad) in [
            ("text", number.clone(), json!("2"), json!("4")),
            ("text", number.clone(), json!("3"), json!("2.5")),
            ("secret", number, json!("1"), json!("0")),
            ("text", word.clone(), json!("ab"), json!("a")),
            ("secret", word.clone(), json!("abc"), json!("abcd")),
            ("file_path", word, json!("abc"), json!("abcd")),
            ("text", json!({"pattern": "^v[0-9]+$"}), json!("v12"), json!("12")),
            ("multi-select", json!({"min_selected": 2}), json!(["A", "B"]), json!(["A"])),
            ("multi-select", json!({"max_selected": 1}), json!(["A"]), json!(["A", "B"])),
        ] {
            let ask = with(kind, rules.clone()).unwrap();
            let fits = |answer: &Value| check(&ask, &to_raw_value(answer).unwrap(), None).is_ok();
            assert!(fits(&good) && !fits(&bad), "{kind} {rules}: {good} and {bad}");
        }
        let ask = with("file_path", path).unwrap();
        let fits = |fact| check(&ask, &to_raw_value("x").unwrap(), Some(fact)).is_ok();
        assert!(fits(PathFact::Directory) && !fits(PathFact::File) && !fits(PathFact::Missing));
    }

    #[test]
    fn a_pattern_that_cannot_be_evaluated_is_passed_on_and_not_checked() {
        for pattern in ["(?<=v)[0-9]+", "("] {
            let ask = with("text", json!({"pattern": pattern})).unwrap();
            assert_eq!(ask.validation.pattern, Some(pattern.into()));
            assert!(check(&ask, &to_raw_value("anything").unwrap(), None).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn rules_for_another_kind_are_ignored() {
        let all = json!({"min_length": 9, "max_length": 1, "pattern": "(", "min": 2, "max": 1, "integer": 7,
            "min_selected": 3, "max_selected": 0, "must_exist": "x", "path_type": "socket"});
        for kind in ["confirm", "select"] {
            assert_eq!(with(kind, all.clone()).unwrap().validation, Default::default(), "{kind}");
        }
        let nothing = json!({"min": null, "pattern": null});
        assert_eq!(with("text", nothing).unwrap().validation, Default::default());
        assert_eq!(with("multi-select", json!({"pattern": "("})).unwrap().validation, Default::default());
    }

    #[test]
    fn contradictions_are_reported_to_the_model() {
        for (kind, rules, word) in [
            ("text", json!("short"), "`validation`"),
            ("text", json!({"min": 2, "max": 1}), "`min` must not be greater than `max`"),
            ("secret", json!({"min_length": 2, "max_length": 1}), "`min_length`"),
            ("multi-select", json!({"min_selected": 2, "max_selected": 1}), "`min_selected`"),
            ("multi-select", json!({"max_selected": 0}), "`max_selected` must be at least 1"),
            ("text", json!({"pattern": 7}), "`pattern` must be a string"),
            ("text", json!({"min_length": -1}), "`min_length` must be a whole number"),
            ("text", json!({"min": "1"}), "`min` must be a number"),
            ("text", json!({"integer": "yes"}), "`integer` must be true or false"),
            ("file_path", json!({"path_type": "socket"}), "`path_type` must be file or directory"),
        ] {
            let why = with(kind, rules.clone()).unwrap_err();
            assert!(why.starts_with("Question 1: ") && why.contains(word), "{kind} {rules}: {why}");
        }
    }

    #[test]
    fn a_default_that_does_not_fit_is_reported_to_the_model() {
        let text = |default: &str, validation: Value| {
            ask(json!({"question": "Q", "kind": "text", "default": default, "validation": validation}))
        };
        assert_eq!(text("3", json!({"min": 1})).unwrap().default, Some(Answer::Text("3".into())));
        let why = text("0", json!({"min": 1})).unwrap_err();
        assert!(why.contains("`default`") && why.contains("at least 1"), "{why}");
        let confirm = |default: Value| ask(json!({"question": "Q", "kind": "confirm", "default": default}));
        assert_eq!(confirm(json!("yes")).unwrap().default, Some(Answer::Bool(true)));
        assert!(confirm(json!("perhaps")).unwrap_err().contains("`default`"));
        let secret = ask(json!({"question": "Q", "kind": "secret", "default": "x"})).unwrap_err();
        assert!(secret.contains("a secret must not have a `default`"), "{secret}");
    }
}

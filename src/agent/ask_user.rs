//! The tool `ask_user`, with which a model asks the user: its description, its schema, the questions in a call, and the
//! result for the model. All agents share it.

mod rules;

use super::DriverOutput;
use super::reply::{DECLINED, NO_USER, Reply};
use crate::json::{Object, Raw};
use crate::protocol::question::{Answer, Ask, Choice, Choices, Kind};
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::terms::sentence;
use crate::protocol::text::Text;
use crate::protocol::words::Purpose;
use serde_json::{Map, Value, json};

pub(crate) const TOOL: &str = "ask_user";
const SERVER: &str = "spektacular";

/// The random part keeps other servers from taking the name, and with it the permission that only our tool has.
pub(crate) fn server_name(settings: &Settings) -> String {
    match settings.nonce.as_str() {
        "" => SERVER.to_owned(),
        nonce => format!("{SERVER}-{nonce}"),
    }
}

/// The maximum number of questions in one call.
const QUESTIONS: usize = 16;

/// Finds the server's name in a text that configures the server. `None`: the text does not contain one.
pub(crate) fn named_server(text: &str) -> Option<&str> {
    const DIGITS: usize = 12;
    text.match_indices(SERVER).find_map(|(at, _)| {
        // The path of the socket's folder contains such a name too.
        text[..at].ends_with('"').then_some(())?;
        let end = at + SERVER.len() + 1 + DIGITS;
        let name = text.get(at..end)?;
        let digits = name[SERVER.len()..].strip_prefix('-')?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(name)
    })
}

/// `recorded`: the name in the recording. `None`: an older recording, whose name has no random part.
pub(crate) fn renamed(line: &str, recorded: Option<&str>, now: &str) -> String {
    if let Some(recorded) = recorded {
        return line.replace(recorded, now);
    }
    const PLACES: [(&str, &str); 8] = [
        ("mcp__", "__"),
        ("mcp_", "_"),
        ("", "_ask_user"),
        ("(", " MCP Server)"),
        ("\"server_name\":\"", "\""),
        ("\"name\":\"", "\""),
        ("\"statusKey\":\"", "\""),
        ("\"title\":\"", "\""),
    ];
    PLACES.iter().fold(line.to_owned(), |line, (before, after)| {
        line.replace(&format!("{before}{SERVER}{after}"), &format!("{before}{now}{after}"))
    })
}

pub(crate) const DESCRIPTION: &str = "\
Asks the user questions and waits for the answers, which may take minutes. Use it when only the user can know or \
decide something: a choice between alternatives with different consequences, a missing fact, a password, or \
consent to something irreversible. Do not use it for anything that you can find out yourself, or to ask whether \
to continue. Put all your current questions into one call. Offer options if you know the likely answers; the \
user can still type a different answer. Wait for the result before you continue or end your turn. The result \
says for each question whether it was answered. If the user declined a question, continue without an answer.";

pub(crate) fn schema() -> Value {
    let kinds = "confirm: yes or no. select: one of the options. multi-select: one or more of the options. text: \
                 free text. secret: text that is never displayed, for passwords and keys. file_path: a path.";
    let option = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string", "description": "The text that the user sees and that you get back."},
            "description": {"type": "string", "description": "The meaning of this option."},
        },
        "required": ["label"],
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The complete question. It must make sense on its own."},
            "kind": {
                "type": "string",
                "enum": ["confirm", "select", "multi-select", "text", "secret", "file_path"],
                "description": kinds,
            },
            "header": {"type": "string", "description": "A title of one or two words, at most 12 characters."},
            "options": {"type": "array", "items": option, "description": "Only for select and multi-select."},
            // One type for all kinds: some agents drop a tool that has a property without a type.
            "default": {
                "type": "string",
                "description": "The answer to use if the user gives none: yes or no, a label, or a text. Not allowed for a secret.",
            },
            "required": {"type": "boolean", "description": "false: the user may skip the question. Default: true."},
            "validation": rules::schema(),
        },
        "required": ["question", "kind"],
    });
    let questions = json!({"type": "array", "minItems": 1, "maxItems": QUESTIONS, "items": question});
    json!({"type": "object", "properties": {"questions": questions}, "required": ["questions"]})
}

pub(super) fn is_wanted(settings: &Settings) -> bool {
    settings.interactive && !is_taken(&settings.mcp_servers)
}

pub(super) fn warn_if_taken(settings: &Settings, out: &mut DriverOutput) {
    if settings.interactive && is_taken(&settings.mcp_servers) {
        out.warn(sentence!(
            "The tool ask_user is not available: a server in {mcp_servers} has a name that begins with spektacular",
            mcp_servers
        ));
    }
}

/// Whether another server has our server's name, or a name that makes its tools look like ours.
pub(super) fn is_taken(servers: &[McpServer]) -> bool {
    let plain = |name: &str| name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    servers.iter().any(|server| plain(&server.name).starts_with(SERVER))
}

/// Error: the mistake, explained to the model.
pub(crate) fn read(arguments: Option<&Object<'_>>) -> Result<Vec<Ask>, String> {
    let arguments = arguments.ok_or("The input must be an object with `questions`.")?;
    let many: Vec<Object<'_>> = arguments.objects("questions").take(QUESTIONS + 1).collect();
    if many.len() > QUESTIONS {
        return Err("Too many questions: ask at most 16 in one call.".into());
    }
    // Also accepts a single question without the list.
    let all: Vec<&Object<'_>> = if many.is_empty() { vec![arguments] } else { many.iter().collect() };
    let numbered = |(at, from)| ask(from).map_err(|why| format!("Question {}: {why}", at + 1));
    all.into_iter().enumerate().map(numbered).collect()
}

pub(crate) fn ask(from: &Object<'_>) -> Result<Ask, String> {
    let question = from.string("question").filter(|text| !text.trim().is_empty());
    let question = question.ok_or("`question` must be the text of the question.")?;
    let choices = choices(from);
    let (kind, purpose) = match (from.str("kind").as_deref(), choices) {
        (Some("confirm"), _) => (Kind::Confirm, Purpose::Clarification),
        (Some("secret"), _) => (Kind::Secret, Purpose::Input),
        (Some("file_path"), _) => (Kind::FilePath, Purpose::Input),
        (Some("text"), _) | (None, None) => (Kind::Text, Purpose::Clarification),
        (Some("select" | "multi-select"), None) => return Err("a select needs `options`, each with a `label`.".into()),
        (kind @ (Some("select" | "multi-select") | None), Some(choices)) => {
            // Question markers have `multiple` in place of a kind of its own.
            let multiple = kind == Some("multi-select") || from.bool("multiple") == Some(true);
            (Kind::Select { choices, multiple, allow_other: true }, Purpose::Clarification)
        }
        (Some(_), _) => {
            return Err("`kind` must be confirm, select, multi-select, text, secret or file_path.".into());
        }
    };
    let validation = rules::read(from, &kind)?;
    let required = from.bool("required") != Some(false);
    let header = from.string("header").unwrap_or_default();
    let ask = Ask { required, validation, ..Ask::new(purpose, kind, header, question) };
    rules::with_default(ask, from)
}

pub(super) fn choices(question: &Object<'_>) -> Option<Choices> {
    let one = |raw: Raw<'_>| {
        if let Some(label) = raw.string() {
            return Some(Choice::labelled(label, None));
        }
        let option = raw.object()?;
        Some(Choice::labelled(option.string("label")?, option.string("description")))
    };
    Choices::new(question.array("options").filter_map(one))
}

/// JSON for the model, with one entry per question.
pub(crate) fn result(asks: &[Ask], replies: &[Reply]) -> String {
    let entry = |(ask, reply): (&Ask, &Reply)| {
        let (status, more) = match reply {
            Reply::Answer(Answer::Null) => ("left_open", None),
            Reply::Answer(answer) => ("answered", Some(("answer", answer.unredacted()))),
            Reply::Allowed | Reply::AllowedWith(_) => ("answered", Some(("answer", json!(true)))),
            Reply::NoUser => ("no_user", Some(("note", json!(NO_USER)))),
            Reply::Declined(said) | Reply::Denied(said) => {
                ("declined", Some(("note", json!(said.as_ref().map_or(DECLINED, Text::unredacted)))))
            }
        };
        let mut entry = Map::new();
        entry.insert("question".into(), json!(ask.text.unredacted()));
        entry.insert("status".into(), json!(status));
        entry.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(entry)
    };
    let answers: Vec<Value> = asks.iter().zip(replies).map(entry).collect();
    crate::json::to_line(&json!({ "answers": answers }))
}

#[cfg(test)]
mod tests {
    use super::{is_taken, read, result, schema};
    use crate::agent::Reply;
    use crate::json::Object;
    use crate::protocol::question::{Answer, Kind};
    use crate::protocol::request::{McpAccess, McpServer};
    use serde_json::{Value, json};

    fn kinds(input: &Value) -> Result<Vec<Kind>, String> {
        let text = input.to_string();
        read(Object::parse(&text).as_ref()).map(|asks| asks.into_iter().map(|ask| ask.kind).collect())
    }

    #[test]
    fn every_kind_of_the_schema_is_read() {
        let all = schema()["properties"]["questions"]["items"]["properties"]["kind"]["enum"].clone();
        for kind in all.as_array().unwrap() {
            let question = json!({"question": "Q", "kind": kind, "options": [{"label": "A"}, "B"]});
            let read = kinds(&json!({"questions": [question]})).unwrap();
            let word = json!(read[0].word());
            let several = matches!(&read[0], Kind::Select { multiple: true, .. });
            assert_eq!(several, kind == "multi-select");
            assert!(word == *kind || several, "{kind} was read as {word}");
        }
        assert_eq!(kinds(&json!({"question": "Q"})), Ok(vec![Kind::Text]), "a question without its list");
    }

    #[test]
    fn mistakes_are_reported_to_the_model() {
        let question = json!({"question": "Q", "kind": "text"});
        for (input, word) in [
            (json!({}), "`question`"),
            (json!({"questions": [{"kind": "text"}]}), "`question`"),
            (json!({"questions": [{"question": " ", "kind": "text"}]}), "`question`"),
            (json!({"questions": [{"question": "Q", "kind": "select"}]}), "`options`"),
            (json!({"questions": [{"question": "Q", "kind": "rank"}]}), "`kind`"),
            (json!({"questions": vec![question; 17]}), "at most 16"),
        ] {
            let why = kinds(&input).unwrap_err();
            assert!(why.contains(word), "{input}: {why}");
        }
        assert!(read(None).is_err());
    }

    #[test]
    fn options_beyond_the_limit_are_dropped() {
        let labels: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
        let read = kinds(&json!({"question": "Q", "kind": "select", "options": labels})).unwrap();
        let Kind::Select { choices, .. } = &read[0] else { panic!("{read:?}") };
        assert_eq!(choices.warning("Q").as_deref(), Some("Dropped 1 option of Q: the limit is 1000"));
    }

    #[test]
    fn the_result_has_an_entry_per_question() {
        let input = json!({"questions": [{"question": "A", "kind": "text"}, {"question": "B", "kind": "confirm"},
            {"question": "C", "kind": "text"}, {"question": "D", "kind": "text", "required": false}]});
        let asks = read(Object::parse(&input.to_string()).as_ref()).unwrap();
        let replies = [
            Reply::Answer(Answer::Text("x\ny".into())),
            Reply::NoUser,
            Reply::Declined(Some("Later.".into())),
            Reply::Answer(Answer::Null),
        ];
        let read: Value = serde_json::from_str(&result(&asks, &replies)).unwrap();
        assert_eq!(read["answers"][0], json!({"question": "A", "status": "answered", "answer": "x\ny"}));
        assert_eq!(read["answers"][1]["status"], "no_user");
        assert_eq!(read["answers"][2], json!({"question": "C", "status": "declined", "note": "Later."}));
        assert_eq!(read["answers"][3], json!({"question": "D", "status": "left_open"}));
    }

    #[test]
    fn a_server_with_our_name_or_the_beginning_of_our_tools_name_is_seen() {
        let access = || McpAccess::Stdio { command: "x".into(), args: Vec::new(), env: [].into() };
        let server = |name: &str| McpServer::new(name, access());
        assert!(is_taken(&[server("a"), server("Spektacular")]) && is_taken(&[server("spektacular ask")]));
        assert!(!is_taken(&[server("my-spektacular")]));
    }
}

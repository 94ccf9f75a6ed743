//! The tables of the reference's chapter on questions: which values are answers, and what happens if nobody answers. A
//! test agent asks every kind of question, including kinds that no real agent here asks.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use spektacular::agent::limit::Keeper;
use spektacular::agent::{AgentEvent, AskKey, Driver, DriverOutput, Features, Launch, Line, Program, Reply, TurnOver};
use spektacular::protocol::failure::{Code, Failure};
use spektacular::protocol::frame::Stamper;
use spektacular::protocol::ids::RunId;
use spektacular::protocol::image::Image;
use spektacular::protocol::outbound::{AgentExit, Capabilities, Text};
use spektacular::protocol::question::{
    Answer, Ask, Choice, Choices, Kind, PathFact, Place, Subject, Validation, check,
};
use spektacular::protocol::redacted::Redacted;
use spektacular::protocol::request::{Options, Payload, Settings};
use spektacular::protocol::scope::Scope;
use spektacular::protocol::words::{Category, PathType, Purpose};
use spektacular::redact::Redactor;
use spektacular::run::{Answered, Effect, Event, OnEof, Origin, ReadInput, Run, Start};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn select(multiple: bool, allow_other: bool) -> Kind {
    let choice = |value: &str, label: &str| Choice { value: value.into(), label: label.into(), description: None };
    let all = [choice("pg", "Postgres"), choice("lite", "SQLite"), choice("2", "Two")];
    Kind::Select { choices: Choices::new(all).unwrap(), multiple, allow_other }
}

fn ask(kind: Kind) -> Ask {
    Ask::new(Purpose::Clarification, kind, "Header", "What?")
}

fn ruled(kind: Kind, validation: Validation) -> Ask {
    Ask { validation, ..ask(kind) }
}

fn one(text: &str) -> Option<Answer> {
    Some(Answer::One(text.into()))
}

fn many(texts: &[&str]) -> Option<Answer> {
    Some(Answer::Many(texts.iter().map(|t| (*t).into()).collect()))
}

fn text(text: &str) -> Option<Answer> {
    Some(Answer::Text(text.into()))
}

#[test]
fn each_kind_accepts_its_own_values() {
    let yes = Some(Answer::Bool(true));
    let no = Some(Answer::Bool(false));
    let rows: Vec<(Ask, Value, Option<Answer>)> = vec![
        (ask(Kind::Confirm), json!(true), yes.clone()),
        (ask(Kind::Confirm), json!("Yes"), yes.clone()),
        (ask(Kind::Confirm), json!("y"), yes.clone()),
        (ask(Kind::Confirm), json!("true"), yes),
        (ask(Kind::Confirm), json!(false), no.clone()),
        (ask(Kind::Confirm), json!("NO"), no.clone()),
        (ask(Kind::Confirm), json!("n"), no),
        (ask(Kind::Confirm), json!(1), None),
        (ask(Kind::Confirm), json!("perhaps"), None),
        (ask(select(false, false)), json!("pg"), one("pg")),
        (ask(select(false, false)), json!("POSTGRES"), one("pg")),
        (ask(select(false, false)), json!(1), one("pg")),
        (ask(select(false, false)), json!("1"), one("pg")),
        // A value takes precedence over a number.
        (ask(select(false, false)), json!("2"), one("2")),
        (ask(select(false, false)), json!(2), one("lite")),
        (ask(select(false, false)), json!(0), None),
        (ask(select(false, false)), json!(4), None),
        (ask(select(false, false)), json!(1.5), None),
        (ask(select(false, false)), json!("mysql"), None),
        (ask(select(false, false)), json!(["pg"]), None),
        (ask(select(false, true)), json!("mysql"), one("mysql")),
        (ask(select(false, true)), json!("  "), None),
        (ask(select(true, false)), json!(["pg", "SQLite"]), many(&["pg", "lite"])),
        (ask(select(true, false)), json!("pg"), many(&["pg"])),
        (ask(select(true, false)), json!([1, 1]), many(&["pg"])),
        (ask(select(true, false)), json!(["pg", "mysql"]), None),
        (ask(select(true, false)), json!([]), None),
        (ask(select(true, true)), json!(["pg", "mysql"]), many(&["pg", "mysql"])),
        (ask(Kind::Text), json!("words"), text("words")),
        (ask(Kind::Text), json!(5), None),
        (ask(Kind::Secret), json!("hush"), text("hush")),
        (ask(Kind::Secret), json!(["hush"]), None),
        (ask(Kind::FilePath), json!("a/b"), text("a/b")),
        (ask(Kind::FilePath), json!(""), None),
        (ask(Kind::FilePath), json!("a\0b"), None),
        (ask(Kind::Text), json!(null), None),
        (Ask { required: false, ..ask(Kind::Text) }, json!(null), Some(Answer::Null)),
    ];
    for (ask, value, wanted) in rows {
        assert_eq!(check(&ask, &raw(&value), None).ok(), wanted, "{value} to {:?}", ask.kind);
    }
}

#[test]
fn answers_fulfil_their_validation() {
    let rules = Validation::default;
    let rows: Vec<(Ask, Value, bool)> = vec![
        (ruled(Kind::Text, Validation { min_length: Some(2), ..rules() }), json!("é"), false),
        (ruled(Kind::Text, Validation { min_length: Some(2), ..rules() }), json!("éé"), true),
        (ruled(Kind::Text, Validation { max_length: Some(2), ..rules() }), json!("ééé"), false),
        (ruled(Kind::Text, Validation { pattern: Some("^v[0-9]+$".into()), ..rules() }), json!("v12"), true),
        (ruled(Kind::Text, Validation { pattern: Some("^v[0-9]+$".into()), ..rules() }), json!("x"), false),
        // A pattern that cannot be evaluated is passed on and not checked.
        (ruled(Kind::Text, Validation { pattern: Some("(?<=a)b".into()), ..rules() }), json!("x"), true),
        (ruled(Kind::Text, Validation { min: Some(1.0), max: Some(9.0), ..rules() }), json!("5.5"), true),
        (ruled(Kind::Text, Validation { min: Some(1.0), ..rules() }), json!("0"), false),
        (ruled(Kind::Text, Validation { max: Some(9.0), ..rules() }), json!("10"), false),
        (ruled(Kind::Text, Validation { integer: Some(true), ..rules() }), json!("5.5"), false),
        (ruled(Kind::Text, Validation { integer: Some(true), ..rules() }), json!("seven"), false),
        (ruled(Kind::Text, Validation { integer: Some(true), ..rules() }), json!(8080), true),
        (ruled(Kind::Text, Validation { integer: Some(true), max: Some(9.0), ..rules() }), json!(8080), false),
        (ruled(Kind::Text, Validation { integer: Some(true), ..rules() }), json!(5.5), false),
        (ruled(Kind::Text, Validation { max: Some(9.0), ..rules() }), json!(8), false),
        (ruled(Kind::Secret, Validation { integer: Some(true), ..rules() }), json!(8080), false),
        (ruled(select(true, false), Validation { min_selected: Some(2), ..rules() }), json!(["pg"]), false),
        (ruled(select(true, false), Validation { max_selected: Some(1), ..rules() }), json!(["pg", "2"]), false),
        (ruled(select(true, false), Validation { min_selected: Some(0), ..rules() }), json!([]), true),
    ];
    for (ask, value, fits) in rows {
        assert_eq!(check(&ask, &raw(&value), None).is_ok(), fits, "{value} under {:?}", ask.validation);
    }
    let exists = ruled(Kind::FilePath, Validation { must_exist: Some(true), ..rules() });
    let folder = ruled(Kind::FilePath, Validation { path_type: Some(PathType::Directory), ..rules() });
    let file = ruled(Kind::FilePath, Validation { path_type: Some(PathType::File), ..rules() });
    for (ask, fact, fits) in [
        (&exists, PathFact::Missing, false),
        (&exists, PathFact::File, true),
        (&folder, PathFact::File, false),
        (&folder, PathFact::Directory, true),
        (&file, PathFact::Directory, false),
        (&file, PathFact::Missing, true),
    ] {
        assert_eq!(check(ask, &raw(&json!("p")), Some(fact)).is_ok(), fits, "{fact:?} under {:?}", ask.validation);
    }
}

/// An agent that asks once and reports the answer to the test.
struct Asker {
    asks: Vec<Ask>,
    heard: Sender<Vec<Reply>>,
}

impl Driver for Asker {
    fn features(&self, _: &Settings) -> Features {
        Features::usual(Capabilities::usual(Vec::new()), |_| Keeper::Agent)
    }

    fn launch(&mut self, _: &Settings, _: &mut DriverOutput) -> Result<Launch, Failure> {
        Ok(Launch::new(Program::Command("asker".into()), "asker"))
    }

    fn line(&mut self, _: Line<'_>, turn: &mut DriverOutput) {
        let asks = std::mem::take(&mut self.asks);
        turn.events.push(AgentEvent::Ask { key: AskKey("1".into()), asks: asks.into_iter().collect(), call: None });
    }

    fn answer(&mut self, _: &AskKey, replies: &[Reply], _: &mut DriverOutput) {
        self.heard.send(replies.to_vec()).unwrap();
    }

    fn follow_up(&mut self, _: &str, _: &[Image], _: &mut DriverOutput) {}
    fn interrupt(&mut self, _: &mut DriverOutput) {}
    fn finish(&mut self, _: &mut DriverOutput) {}

    fn exited(&mut self, _: AgentExit, _: bool, _: &Text) -> TurnOver {
        TurnOver::Failed(Failure::new(Code::AgentExited, "gone"))
    }
}

const FRAME_BYTES: usize = 1 << 18;

/// A run in which `asks` are open, and its results so far.
struct Case {
    run: Run,
    heard: Receiver<Vec<Reply>>,
    frames: Vec<Value>,
    stamper: Stamper,
}

impl Case {
    fn new(asks: Vec<Ask>, settings: &Value) -> Case {
        Case::hiding(asks, settings, &[])
    }

    #[track_caller]
    fn hiding(asks: Vec<Ask>, settings: &Value, secrets: &[&str]) -> Case {
        let (heard_in, heard) = channel();
        let mut redactor = Redactor::new();
        secrets.iter().for_each(|secret| assert!(redactor.add(secret)));
        let Payload { options, wrong, .. } = Options::parse(Some(&raw(settings)));
        assert_eq!(wrong, None);
        let settings = options.resolve("go".into(), "asker".into(), "/w".into());
        let driver = Box::new(Asker { asks, heard: heard_in });
        let start = Start::new(settings, format!("Asker {}", secrets.join(" ")), driver, redactor);
        let run = Run::new("t", OnEof::Continue, Redactor::new());
        let mut case = Case { run, heard, frames: Vec::new(), stamper: Stamper::default() };
        case.step(0, Event::Start(Origin::default(), Ok(Box::new(start))));
        case.step(0, Event::Spawned);
        case.step(0, Event::Line(Line::Text("ask".into())));
        case
    }

    #[track_caller]
    fn step(&mut self, at_s: u64, event: Event<'_>) {
        let mut effects = Vec::new();
        self.run.step(Duration::from_secs(at_s), event, &mut effects);
        for effect in effects {
            if let Effect::Emit { body, .. } = effect {
                let mut body = Redacted::new(body, self.run.redactor());
                let run_id = RunId::generated("r");
                assert!(self.stamper.stamp(SystemTime::now(), &body));
                let mut line = Vec::new();
                self.stamper.write(&run_id, None, &mut body, FRAME_BYTES, &mut line);
                assert!(line.len() <= FRAME_BYTES, "a frame has {} bytes", line.len());
                self.frames.push(serde_json::from_slice(&line).unwrap());
            }
        }
    }

    fn answer(&mut self, number: usize, answered: Answered) {
        let input = ReadInput {
            question_id: Some(format!("q_t_{number}").into()),
            answered: Some(answered),
            message: None,
            updated_input: None,
            unknown: Default::default(),
        };
        self.step(1, Event::Answer(Origin::default(), input));
    }

    fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.frames.iter().map(|f| &f["payload"]).filter(|p| p["kind"] == kind).collect()
    }

    fn questions(&self) -> Vec<&Value> {
        self.frames.iter().filter(|f| f["type"] == "run.question").map(|f| &f["payload"]).collect()
    }

    /// The expected failure code. `None`: the run does not fail.
    fn failure(mut self) -> Option<String> {
        self.run.stopping()?;
        let exit = AgentExit { code: Some(0), signal: None };
        let files = Ok(Vec::new());
        let end = spektacular::run::AgentEnd { exit, leaked: false, lost_session: false, stderr: Text::default() };
        self.step(2, Event::AgentEnded(end, files));
        Some(self.frames.last().unwrap()["payload"]["code"].as_str().unwrap().to_owned())
    }
}

/// The columns: with a default, not required, required.
fn three() -> [Ask; 3] {
    [
        Ask { default: Some(Answer::Text("by default".into())), ..ask(Kind::Text) },
        Ask { required: false, ..ask(Kind::Text) },
        ask(Kind::Text),
    ]
}

#[test]
fn unanswered_questions_end_as_the_table_says() {
    let default = Reply::Answer(Answer::Text("by default".into()));
    let null = Reply::Answer(Answer::Null);
    let declined = Reply::Declined(None);
    let fails = |code: &str| Err(code.to_owned());
    let rows = [
        ("timeout", json!({}), [Ok(default.clone()), Ok(null.clone()), fails("question_timeout")]),
        (
            "timeout",
            json!({"on_question_timeout": "continue"}),
            [Ok(default.clone()), Ok(null.clone()), Ok(declined.clone())],
        ),
        ("input_closed", json!({}), [Ok(default.clone()), Ok(null.clone()), fails("input_closed")]),
        ("declined", json!({}), [Ok(declined.clone()), Ok(declined.clone()), Ok(declined)]),
        ("headless", json!({"interactive": false}), [Ok(default), Ok(null), Ok(Reply::NoUser)]),
    ];
    for (why, settings, wanted) in rows {
        for (ask, wanted) in three().into_iter().zip(wanted) {
            let has_default = ask.default.is_some();
            let mut case = Case::new(vec![ask], &settings);
            match why {
                "timeout" => case.step(300, Event::Tick),
                "input_closed" => case.step(1, Event::InputEnded),
                "declined" => case.answer(1, Answered::Declined),
                _ => assert_eq!(case.questions().len(), 0, "a headless run asked"),
            }
            let resolved = case.of_kind("question_resolved");
            assert_eq!(resolved.len(), 1, "{why}");
            assert_eq!(resolved[0]["resolution"], why);
            assert_eq!(resolved[0]["used_default"], has_default && why != "declined", "{why}");
            match wanted {
                Ok(reply) => {
                    assert_eq!(case.heard.try_recv().unwrap(), [reply], "{why}");
                    assert_eq!(case.failure(), None, "{why}");
                }
                Err(code) => {
                    assert!(case.heard.try_recv().is_err(), "{why}: the agent heard of it");
                    assert_eq!(case.failure(), Some(code));
                }
            }
        }
    }
}

fn permission(category: Category) -> Ask {
    let locations = vec![Place { path: "a".into(), line: None }];
    let subject = Subject { category, title: "t".into(), locations, detail: "d".into(), call_id: None };
    Ask::permission(subject, "Allow t?", Scope::of_request(category, None, None))
}

#[test]
fn a_permission_is_answered_by_its_policy_and_by_its_default() {
    let allowed = Reply::Allowed;
    let rows = [
        (json!({"permissions": "allow"}), "policy", json!("allow_once"), allowed.clone()),
        (json!({"permissions": "deny"}), "policy", json!("deny"), Reply::Denied(None)),
        (json!({"permissions": {"edit": "allow", "*": "deny"}}), "policy", json!("allow_once"), allowed),
        (json!({"permissions": {"read": "allow", "*": "deny"}}), "policy", json!("deny"), Reply::Denied(None)),
        (json!({"interactive": false}), "headless", json!("deny"), Reply::NoUser),
    ];
    for (settings, resolution, value, reply) in rows {
        let case = Case::new(vec![permission(Category::Edit)], &settings);
        assert_eq!(case.questions().len(), 0);
        let resolved = case.of_kind("question_resolved");
        assert_eq!((&resolved[0]["resolution"], &resolved[0]["value"]), (&json!(resolution), &value));
        assert_eq!(resolved[0]["subject"]["category"], "edit");
        assert_eq!(case.heard.try_recv().unwrap(), [reply]);
    }
    let mut late = Case::new(vec![permission(Category::Edit)], &json!({}));
    late.step(300, Event::Tick);
    assert_eq!(late.of_kind("question_resolved")[0]["used_default"], true);
    assert_eq!(late.heard.try_recv().unwrap(), [Reply::Denied(None)]);
}

#[test]
fn a_group_waits_for_all_and_its_clock_starts_again_with_each_answer() {
    let mut case = Case::new(vec![ask(Kind::Text), ask(Kind::Confirm)], &json!({"question_timeout_s": 10}));
    let ids: Vec<&Value> = case.questions().iter().map(|q| &q["group_id"]).collect();
    assert_eq!(ids, [ids[0], ids[0]]);
    assert_eq!(case.questions()[0]["group_size"], 2);
    case.answer(1, Answered::Value(raw(&json!("words")), None));
    assert!(case.heard.try_recv().is_err(), "half a group was handed on");
    case.step(10, Event::Tick);
    assert_eq!(case.of_kind("question_resolved").len(), 1, "the clock did not start again");
    case.step(11, Event::Tick);
    assert_eq!(case.failure(), Some("question_timeout".into()));
}

#[test]
fn five_bad_answers_count_as_declined() {
    let mut case = Case::new(vec![ask(Kind::Confirm)], &json!({}));
    for _ in 0..5 {
        case.answer(1, Answered::Value(raw(&json!("perhaps")), None));
    }
    let attempts: Vec<&Value> = case.questions().iter().map(|q| &q["attempt"]).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    assert!(case.questions()[0].get("error").is_none() && case.questions()[4]["error"].is_string());
    assert_eq!(case.of_kind("question_resolved")[0]["resolution"], "declined");
    assert_eq!(case.heard.try_recv().unwrap(), [Reply::Declined(None)]);
}

#[test]
fn a_secret_answer_is_never_seen_again() {
    let secret = "correct-horse-battery";
    let mut case = Case::new(vec![ask(Kind::Secret)], &json!({}));
    case.answer(1, Answered::Value(raw(&json!(secret)), None));
    assert_eq!(case.heard.try_recv().unwrap(), [Reply::Answer(Answer::Text(secret.into()))]);
    assert_eq!(case.run.redactor().redact(&format!("it is {secret}.")), "it is [redacted].");
    let mut short = Case::new(vec![ask(Kind::Secret)], &json!({}));
    short.answer(1, Answered::Value(raw(&json!("hush")), None));
    assert_eq!(short.of_kind("warning")[0]["code"], "short_secret");
}

/// The value in the resolution of the first question.
fn taken(case: &Case) -> Option<Value> {
    case.of_kind("question_resolved")[0].get("value").cloned()
}

#[test]
fn a_resolution_says_which_value_was_taken() {
    let rows = [
        (ask(Kind::Confirm), json!("y"), json!(true)),
        (ask(select(false, false)), json!("POSTGRES"), json!("pg")),
        (ask(select(false, true)), json!("mysql"), json!("mysql")),
        (ask(select(true, false)), json!([1, "Two"]), json!(["pg", "2"])),
        (ask(Kind::Text), json!("Main Street"), json!("Main Street")),
        (ask(Kind::FilePath), json!("src/a.rs"), json!("src/a.rs")),
        (ask(Kind::Secret), json!("correct-horse-battery"), Value::Null),
        // A secret that is too short to redact.
        (ask(Kind::Secret), json!("hush"), Value::Null),
        (Ask { required: false, ..ask(Kind::Text) }, Value::Null, Value::Null),
    ];
    for (ask, value, wanted) in rows {
        let mut case = Case::new(vec![ask.clone()], &json!({}));
        case.answer(1, Answered::Value(raw(&value), None));
        assert_eq!(taken(&case), Some(wanted), "{ask:?}");
        let mut minimal = Case::new(vec![ask], &json!({"progress": "minimal"}));
        minimal.answer(1, Answered::Value(raw(&value), None));
        assert_eq!(taken(&minimal), None);
    }
}

#[test]
fn a_resolution_shows_no_value_that_was_kept_off_the_pipe() {
    for (value, wanted) in [("hush", Value::Null), ("pg", json!("pg"))] {
        let mut case = Case::new(vec![ask(select(false, true))], &json!({}));
        case.answer(1, Answered::Kept(raw(&json!(value)), None));
        assert_eq!(taken(&case), Some(wanted), "{value}");
    }
}

#[test]
fn a_resolution_without_an_answer_shows_the_default_or_null() {
    let asks = [(ask(Kind::Text), Value::Null), (Ask { default: text("Oslo"), ..ask(Kind::Text) }, json!("Oslo"))];
    for (ask, wanted) in asks {
        let mut late = Case::new(vec![ask.clone()], &json!({"on_question_timeout": "continue"}));
        late.step(300, Event::Tick);
        assert_eq!(taken(&late), Some(wanted), "{ask:?}");
        let mut declined = Case::new(vec![ask], &json!({}));
        declined.answer(1, Answered::Declined);
        assert_eq!(taken(&declined), Some(Value::Null));
    }
    let mut late = Case::hiding(
        vec![Ask { default: many(&["plain", HIDDEN]), ..ask(secret_select(true, false)) }],
        &json!({}),
        &[HIDDEN],
    );
    late.step(300, Event::Tick);
    assert_eq!(taken(&late), Some(json!(["plain", "option_2"])));
}

const HIDDEN: &str = "hunter2-Zq7731";

/// A select whose options contain the secret in their value, label and description.
fn secret_select(multiple: bool, allow_other: bool) -> Kind {
    let choice = |value: &str| {
        let label = format!("Label {value}");
        Choice { value: value.into(), label: label.into(), description: Some(format!("About {value}").into()) }
    };
    let choices = Choices::new([choice("plain"), choice(HIDDEN), choice(&format!("{HIDDEN}!"))]).unwrap();
    Kind::Select { choices, multiple, allow_other }
}

#[test]
fn no_text_of_a_question_shows_a_secret() {
    let said = format!("a {HIDDEN} b");
    let pattern = Some(format!("^{HIDDEN}$").into());
    let asks = [
        Ask::new(Purpose::Input, secret_select(false, false), &*said, &*said),
        Ask { default: one(HIDDEN), ..ask(secret_select(false, false)) },
        Ask { default: many(&["plain", HIDDEN]), ..ask(secret_select(true, false)) },
        // The default is free text, not an option.
        Ask { default: one(&said), ..ask(secret_select(false, true)) },
        Ask { default: many(&[&said]), ..ask(secret_select(true, true)) },
        Ask { default: text(&said), ..ask(Kind::Text) },
        ruled(Kind::Text, Validation { pattern, ..Validation::default() }),
        Ask { default: text(&said), ..ask(Kind::FilePath) },
    ];
    for ask in asks {
        let shown = format!("{ask:?}");
        let case = Case::hiding(vec![ask], &json!({}), &[HIDDEN]);
        assert_eq!(case.questions().len(), 1);
        for frame in &case.frames {
            assert!(!frame.to_string().contains(HIDDEN), "{shown}: {frame}");
        }
    }
}

#[test]
fn a_default_that_names_options_with_a_secret_still_names_them() {
    let case = Case::hiding(
        vec![Ask { default: many(&["plain", HIDDEN]), ..ask(secret_select(true, false)) }],
        &json!({}),
        &[HIDDEN],
    );
    assert_eq!(case.questions()[0]["default"], json!(["plain", "option_2"]));
    let mut late = case;
    late.step(300, Event::Tick);
    let [Reply::Answer(answer)] = &late.heard.try_recv().unwrap()[..] else { panic!("no answer") };
    assert_eq!(Some(answer.clone()), many(&["plain", HIDDEN]), "the agent gets its own values");
}

/// An answer can reveal a secret that another open question quotes.
#[test]
fn a_repeated_question_hides_a_secret_learned_meanwhile() {
    let mut case = Case::new(vec![ask(Kind::Secret), ask(secret_select(false, false))], &json!({}));
    case.answer(1, Answered::Value(raw(&json!(HIDDEN)), None));
    case.answer(2, Answered::Value(raw(&json!("none of them")), None));
    let again = case.questions()[2];
    assert_eq!(again["attempt"], 2);
    assert!(!again.to_string().contains(HIDDEN), "{again}");
    let values: Vec<&Value> = again["options"].as_array().unwrap().iter().map(|option| &option["value"]).collect();
    assert_eq!(values, ["plain", "option_2", "option_3"]);
    case.answer(2, Answered::Value(raw(&json!("option_3")), None));
    let replies = case.heard.try_recv().unwrap();
    assert_eq!(replies[1], Reply::Answer(Answer::One(format!("{HIDDEN}!").into())));
}

#[test]
fn a_question_with_a_long_pattern_or_default_fits_its_frame() {
    let long = "x".repeat(2 * FRAME_BYTES);
    let pattern = Validation { pattern: Some(long.as_str().into()), ..Validation::default() };
    let many_values = Some(Answer::Many((0..FRAME_BYTES / 4).map(|at| at.to_string().into()).collect()));
    for (ask, long_part) in [
        (ruled(Kind::Text, pattern), "pattern"),
        (Ask { default: one(&long), ..ask(select(false, true)) }, "default"),
        (Ask { default: many_values, ..ask(select(true, true)) }, "default"),
    ] {
        let case = Case::new(vec![ask], &json!({}));
        let question = case.questions()[0];
        assert_eq!(question["truncated"], true, "{long_part}");
        assert!(question["options"].as_array().is_none_or(|options| !options.is_empty()), "{long_part}");
        assert!(question["validation"].get("pattern").is_none(), "half a pattern is another pattern");
    }
}

/// Without a limit, one of these answers would keep the run busy for more than half a minute.
#[test]
fn a_pattern_that_is_too_large_is_not_checked_and_the_question_says_so() {
    for (pattern, checked) in [("^(?:a?){100000}b$", false), ("(?<=a)b", false), ("^a*$", true)] {
        let rules = Validation { pattern: Some(pattern.into()), ..Validation::default() };
        let mut case = Case::new(vec![ruled(Kind::Text, rules)], &json!({}));
        let validation = &case.questions()[0]["validation"];
        assert_eq!(validation["pattern"], pattern);
        assert_eq!(validation.get("pattern_checked"), (!checked).then_some(&json!(false)), "{pattern}");
        case.answer(1, Answered::Value(raw(&json!("b".repeat(20_000))), None));
        assert_eq!(case.heard.try_recv().is_ok(), !checked, "{pattern}");
    }
}

#[test]
fn a_secret_answer_that_is_too_long_to_redact_is_a_bad_answer() {
    let mut case = Case::new(vec![ask(Kind::Secret)], &json!({}));
    case.answer(1, Answered::Value(raw(&json!("0123456789".repeat(7000))), None));
    assert_eq!(case.questions()[1]["error"], "A secret may have at most 65536 bytes.");
    case.answer(1, Answered::Value(raw(&json!("0123456789")), None));
    assert_eq!(case.heard.try_recv().unwrap(), [Reply::Answer(Answer::Text("0123456789".into()))]);
}

/// Only the answer to a permission consists of the protocol's own words.
#[test]
fn a_secret_answer_is_hidden_though_it_is_a_word_of_permissions() {
    for word in ["allow_once", "allow_always"] {
        let choice = |value: &str| Choice { value: value.into(), label: value.into(), description: None };
        let choices = Choices::new([choice("a"), choice("b")]).unwrap();
        let select = Kind::Select { choices, multiple: false, allow_other: true };
        let mut case = Case::hiding(vec![ask(select)], &json!({}), &[word]);
        case.answer(1, Answered::Value(raw(&json!(word)), None));
        let resolved = case.of_kind("question_resolved")[0];
        assert_eq!(resolved["value"], "[redacted]", "{resolved}");
    }
}

#[test]
fn a_default_shows_nothing_that_its_option_hides() {
    const HIDDEN: &str = "hunter2-hunter2";
    let choice = |value: &str| Choice { value: value.into(), label: value.into(), description: None };
    for multiple in [false, true] {
        let choices = Choices::new([choice(HIDDEN), choice("plain")]).unwrap();
        let default = if multiple { Answer::Many(vec![HIDDEN.into()]) } else { Answer::One(HIDDEN.into()) };
        let select = Kind::Select { choices, multiple, allow_other: false };
        let case = Case::hiding(vec![Ask { default: Some(default), ..ask(select) }], &json!({}), &[HIDDEN]);
        let question = case.questions()[0].clone();
        assert!(!question.to_string().contains(HIDDEN), "{question}");
        let named = if multiple { json!(["option_1"]) } else { json!("option_1") };
        assert_eq!(question["default"], named, "{question}");
    }
    let text = Ask { default: Some(Answer::Text(format!("as {HIDDEN}").into())), ..ask(Kind::Text) };
    let case = Case::hiding(vec![text], &json!({}), &[HIDDEN]);
    assert_eq!(case.questions()[0]["default"], "as [redacted]");
}

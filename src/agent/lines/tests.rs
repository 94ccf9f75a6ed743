//! Tests of the driver with lines written by hand.

use super::{LinesDriver, LinesSetup, picked};
use crate::agent::{AgentEvent, Base, Driver, DriverOutput, Launch, Line, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::AgentExit;
use crate::protocol::request::{Options, Settings};
use crate::protocol::text::Text;

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn settings(options: Options) -> Settings {
    options.resolve("do it".into(), "x".into(), "/w".into())
}

fn driver(args: &[&str], patterns: &[&str], resume_args: &[&str]) -> LinesDriver {
    let base = Base { args: strings(args), ..Base::command("x") };
    let (session_patterns, resume_args) = (strings(patterns), strings(resume_args));
    LinesDriver::new(base, LinesSetup { session_patterns, resume_args, ..LinesSetup::default() })
}

fn launched(
    args: &[&str],
    patterns: &[&str],
    resume_args: &[&str],
    options: Options,
) -> (LinesDriver, Launch, Vec<String>) {
    let (mut lines, mut out) = (driver(args, patterns, resume_args), DriverOutput::default());
    let launch = lines.launch(&settings(options), &mut out).unwrap();
    let warned = out.events.into_iter().map(|event| match event {
        AgentEvent::Warning(_, text) => text.text().unredacted().to_owned(),
        AgentEvent::Session { id, .. } => format!("session {}", id.as_deref().unwrap_or_default()),
        other => panic!("{other:?}"),
    });
    (lines, launch, warned.collect())
}

fn heard(lines: &mut LinesDriver, all: &[&str]) -> (String, Vec<String>) {
    let (mut text, mut sessions) = (String::new(), Vec::new());
    for line in all {
        let mut out = DriverOutput::default();
        lines.line(Line::Text((*line).into()), &mut out);
        for event in out.events {
            match event {
                AgentEvent::Text { piece, done: false, parent: None, .. } => text.push_str(piece.unredacted()),
                AgentEvent::Session { id, .. } => sessions.push(id.unwrap().to_string()),
                AgentEvent::Note(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    (text, sessions)
}

fn exit(code: i32) -> AgentExit {
    AgentExit { code: Some(code), signal: None }
}

fn over(lines: &mut LinesDriver, exit: AgentExit) -> Result<String, Code> {
    match lines.exited(exit, true, &Text::default()) {
        TurnOver::Completed { answer, .. } => Ok(answer.into_text().unredacted().to_owned()),
        TurnOver::Failed(failure) => Err(failure.code),
        TurnOver::Interrupted => panic!("nobody interrupts"),
    }
}

#[test]
fn the_prompt_is_stdin_or_an_argument() {
    let (_, launch, _) = launched(&["-"], &[], &[], Options::default());
    assert_eq!((launch.args, launch.send, launch.close_input), (strings(&["-"]), strings(&["do it"]), true));
    assert_eq!(launch.start_timeout, None);
    let system = Options { system_prompt: Some("be kind\n".into()), ..Options::default() };
    let (_, launch, _) = launched(&[], &[], &[], system.clone());
    assert_eq!(launch.send, ["be kind", "", "", "do it"]);
    let (_, launch, _) = launched(&["--say={prompt}!", "{cwd}", "{other}"], &[], &[], system);
    assert_eq!(launch.args, ["--say=be kind\n\n\ndo it!", "/w", "{other}"]);
    assert_eq!((launch.send.len(), launch.close_input), (0, true));
}

#[test]
fn placeholders_inside_values_are_not_replaced() {
    let mut lines = driver(&["{prompt}", "{model}"], &[], &[]);
    let options = Options { model: Some("{cwd}".into()), agent_args: Some(strings(&["{cwd}"])), ..Options::default() };
    let settings = Settings { prompt: "{model} {session}".into(), ..settings(options) };
    let launch = lines.launch(&settings, &mut DriverOutput::default()).unwrap();
    assert_eq!(launch.args, ["{model} {session}", "{cwd}", "{cwd}"]);
}

#[test]
fn arguments_for_a_missing_model_are_dropped() {
    let args = ["-m", "{model}", "--model={model}", "-x", "{prompt}"];
    assert_eq!(launched(&args, &[], &[], Options::default()).1.args, ["-x", "do it"]);
    let model = Options { model: Some("big".into()), ..Options::default() };
    let (_, launch, warned) = launched(&args, &[], &[], model.clone());
    assert_eq!(launch.args, ["-m", "big", "--model=big", "-x", "do it"]);
    assert_eq!(warned.len(), 0);
    assert_eq!(launched(&[], &[], &[], model).2, ["`model` has no effect on this agent"]);
}

#[test]
fn values_that_do_not_fit_a_command_line_are_refused() {
    for prompt in ["x".repeat(131_072), "a\0b".into()] {
        let settings = Settings { prompt: prompt.clone(), ..settings(Options::default()) };
        let failure = driver(&["{prompt}"], &[], &[]).launch(&settings, &mut DriverOutput::default()).unwrap_err();
        assert_eq!(failure.code, Code::InvalidRequest);
        let launch = driver(&[], &[], &[]).launch(&settings, &mut DriverOutput::default()).unwrap();
        assert_eq!(launch.send.concat(), prompt);
        let mut lines = launched(&[], &[], &["{prompt}"], Options::default()).0;
        let mut out = DriverOutput::default();
        lines.follow_up(&prompt, &[], &mut out);
        assert!(out.relaunch.is_none());
        assert!(
            matches!(&out.events[..], [AgentEvent::TurnOver(TurnOver::Failed(f))] if f.code == Code::InvalidRequest)
        );
    }
}

#[test]
fn overwritten_text_is_dropped() {
    for (said, text) in [
        (&["one", "two"][..], "one\ntwo"),
        (&["", "  ", "  one  ", "", "\ttwo ", "", " "], "one  \n\n\ttwo"),
        (&["10%\r50%\rdone", "\r\n", "next\r"], "done\n\n\nnext"),
        (&["a bar\r\u{1b}[K", "x"], "x"),
        (&["\u{1b}[31mred\u{1b}[0m \u{1b}]0;title", "on"], "red \non"),
        (&["\u{fffd}\u{0}\u{7}"], "\u{fffd}\u{2400}\u{2407}"),
    ] {
        let mut lines = launched(&[], &[], &[], Options::default()).0;
        assert_eq!(heard(&mut lines, said).0, text, "{said:?}");
        assert_eq!(over(&mut lines, exit(0)), Ok(text.to_owned()), "{said:?}");
    }
}

#[test]
fn a_long_line_arrives_in_parts_and_is_cut_in_the_result() {
    let mut lines = launched(&[], &[], &[], Options { max_frame_bytes: Some(16 << 10), ..Options::default() }).0;
    let long = "é".repeat(200_000) + "\u{1b}[1m end";
    let (text, _) = heard(&mut lines, &["first", &long]);
    assert_eq!(text, format!("first\n{} end", "é".repeat(200_000)));
    match lines.exited(exit(0), true, &Text::default()) {
        TurnOver::Completed { answer, .. } => {
            assert_eq!(answer.print, crate::agent::text::Fingerprint::of(&text));
            assert!(answer.is_cut());
            let answer = answer.into_text();
            assert!(answer.size() <= 16 * (16 << 10) && text.starts_with(answer.unredacted()));
        }
        other => panic!("{other:?}"),
    }
    let mut out = DriverOutput::default();
    lines.line(Line::TooLong, &mut out);
    assert!(matches!(out.events[..], [AgentEvent::Unparsed]));
}

#[test]
fn blank_text_is_held_only_up_to_a_limit() {
    let mut lines = launched(&[], &[], &[], Options::default()).0;
    let blank = " ".repeat(1000);
    let text = heard(&mut lines, &vec![blank.as_str(); 200]).0 + &heard(&mut lines, &["a"]).0;
    assert_eq!(text, "a");
    let text = heard(&mut lines, &vec![blank.as_str(); 200]).0;
    assert!(text.len() > 100_000 && lines.blank.len() <= super::BLANK, "{}", text.len());
}

#[test]
fn the_exit_code_decides_the_outcome() {
    for (exit, wanted) in [
        (exit(0), Ok("said".to_owned())),
        (exit(3), Err(Code::AgentError)),
        (AgentExit { code: None, signal: Some(9) }, Err(Code::AgentExited)),
    ] {
        let mut lines = launched(&[], &[], &[], Options::default()).0;
        heard(&mut lines, &["said"]);
        assert_eq!(over(&mut lines, exit), wanted);
    }
}

#[test]
fn a_session_is_found_by_its_patterns() {
    let patterns = ["id=(ses_[a-z]+)", r"\bchat-\d+"];
    for (said, found) in [
        (&["no id", "x id=ses_a y", "id=ses_b"][..], &["ses_a"][..]),
        (&["\u{1b}[2mchat-\u{1b}[0m12 "], &["chat-12"]),
        (&["chat-1 id=ses_z"], &["ses_z"]),
        (&["id="], &[]),
    ] {
        let mut lines = launched(&[], &patterns, &[], Options::default()).0;
        assert_eq!(heard(&mut lines, said).1, found, "{said:?}");
    }
    // A flag is not a session id.
    let mut lines = launched(&[], &["id=(.*)"], &[], Options::default()).0;
    assert_eq!(heard(&mut lines, &["id=--yolo", "id=", "id=ok"]).1, ["ok"]);
    let failure = driver(&[], &["fine", "("], &[]).launch(&settings(Options::default()), &mut DriverOutput::default());
    let failure = failure.unwrap_err();
    assert_eq!(failure.code, Code::InvalidConfig);
    assert!(failure.message.text().contains("`session_patterns`: number 2"), "{}", failure.message.text().unredacted());
}

#[test]
fn a_session_is_resumed_by_its_own_command_line() {
    let resume = ["-r", "{session}", "{prompt}"];
    let given = |id: &str| Options { session_id: SessionId::new(id), ..Options::default() };
    let (_, launch, told) = launched(&["run"], &[], &resume, given("s1"));
    assert_eq!((launch.args, launch.send.len(), told), (strings(&["-r", "s1", "do it"]), 0, strings(&["session s1"])));
    for (id, resume_args) in [("s1", &[][..]), ("s1", &["--continue"]), ("-s", &resume)] {
        let failure =
            driver(&[], &[], resume_args).launch(&settings(given(id)), &mut DriverOutput::default()).unwrap_err();
        assert_eq!(failure.code, Code::InvalidRequest);
        assert!(
            failure.message.text().contains("`session_id`") && !failure.message.text().contains(id),
            "{}",
            failure.message.text().unredacted()
        );
    }
}

#[test]
fn a_further_turn_starts_another_process() {
    let (mut lines, ..) = launched(&["run"], &["id=(.*)"], &["-r", "{session}", "{prompt}"], Options::default());
    assert!(lines.takes_turns());
    heard(&mut lines, &["id=one", "?"]);
    assert!(over(&mut lines, exit(0)).is_ok() && lines.takes_turns());
    let mut out = DriverOutput::default();
    lines.follow_up("- yes", &[], &mut out);
    assert_eq!(out.relaunch.unwrap().args, ["-r", "one", "- yes"]);
    // A repeated id is not reported again, but a different one is.
    assert_eq!(heard(&mut lines, &["id=one", "good"]), ("id=one\ngood".into(), Vec::new()));
    assert_eq!(over(&mut lines, exit(0)), Ok("id=one\ngood".into()));
    lines.follow_up("more", &[], &mut DriverOutput::default());
    assert_eq!(heard(&mut lines, &["id=two"]).1, ["two"]);
}

#[test]
fn further_turns_need_a_way_to_resume() {
    // Resume arguments, patterns, a line; while it runs, and after it.
    for (resume, patterns, said, running, after) in [
        (&[][..], &["id=(.*)"][..], "id=a", false, false),
        (&["--continue"], &[], "x", true, true),
        (&["{session}"], &[], "x", false, false),
        (&["{session}"], &["id=(.*)"], "x", true, false),
        (&["{session}"], &["id=(.*)"], "id=a", true, true),
    ] {
        let (mut lines, ..) = launched(&[], patterns, resume, Options::default());
        heard(&mut lines, &[said]);
        let before = lines.takes_turns();
        over(&mut lines, exit(0)).unwrap();
        assert_eq!((before, lines.takes_turns()), (running, after), "{resume:?} {patterns:?} {said}");
    }
}

#[test]
fn a_path_leads_through_objects_and_lists() {
    let line = r#" {"type":"a","message":{"content":[{"text":"one"},7,{"x":1},{"text":"two"}]},"result":"r","n":1}"#;
    for (path, wanted) in
        [("result", "r"), ("message.content.text", "one\ntwo"), ("message.content", ""), ("n", ""), ("none.at.all", "")]
    {
        assert_eq!(picked(line, path).as_deref(), Some(wanted), "{path}");
    }
    assert_eq!((picked("plain", "result"), picked("[1]", "result")), (None, None));
}

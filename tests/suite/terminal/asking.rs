//! Tests of questions that a person answers: every kind, with wrong answers first; keys; secrets; time.

use rustix::process::Signal;
use serde_json::json;

use super::codex::Codex;
use crate::support::agent::{Script, question};
use crate::support::person::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, Person};
use crate::support::{Case, in_time, io, limit};

pub(super) const RUN: &[&str] = &["adhoc", "--agent", "codex", "go"];

fn options(labels: &[&str]) -> serde_json::Value {
    json!({"options": labels.iter().map(|label| json!({"label": label})).collect::<Vec<_>>()})
}

pub(super) fn at(codex: String) -> Case {
    Case::new().program("codex", &codex)
}

/// The answers that the agent received, in order.
fn answers(person: &Person) -> Vec<String> {
    let lines = person.file("log/stdin");
    let lines = lines.lines().filter(|line| line.contains("\"result\""));
    lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["result"].to_string()).collect()
}

/// The reply to each question as the agent's model sees it.
pub(super) fn said(person: &Person) -> Vec<String> {
    let text = |answer: &String| {
        let value: serde_json::Value = serde_json::from_str(answer).unwrap();
        let Some(told) = value["contentItems"][0]["text"].as_str() else { return String::new() };
        let told: serde_json::Value = serde_json::from_str(told).unwrap();
        let told = &told["answers"][0];
        let answer = told.get("answer").unwrap_or(&told["status"]);
        answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
    };
    answers(person).iter().map(text).collect()
}

#[test]
fn every_kind_of_question_is_answered_wrongly_first() {
    let codex = Codex::new()
        .asks("confirm", "Sure?", json!({"default": true}))
        .asks("select", "Which one?", options(&["Red", "Green"]))
        .asks("multi-select", "Which ones?", options(&["Auth", "Search", "Export"]))
        .asks("text", "What name?", json!({"default": "web"}))
        .asks("secret", "What key?", json!({}))
        .asks("file_path", "Which file?", json!({}))
        .asks_to_run("touch a.txt")
        .says("Thank you.");
    let mut person = at(codex).at_terminal(RUN);
    let seen = person.answers("Sure?", "perhaps");
    assert!(seen.contains("yes or no (Enter: yes, ?: help)"), "{seen}");
    person.answers("! Answer yes or no.", "?");
    person.answers("Enter alone means: yes.", "n");
    person.answers("Which one?", "3");
    person.answers("! Answer with a number from 1 to 2.", "green");
    person.answers("Which ones?", "1,4");
    person.answers("! Answer with numbers from 1 to 3, such as 1,2.", "1, 3");
    person.answers("What name?", "?");
    person.answers("Type one line of text.", "");
    person.answers("What key?", "");
    person.answers("! An answer is required.", "?");
    person.answers("Your input is not shown", "tr0ub4dor&3");
    person.answers("Which file?", "");
    person.answers("! Answer with a path.", "~/notes.md");
    let seen = person.answers("Allow this command?", "perhaps");
    assert!(seen.contains("    touch a.txt") && seen.contains("  y  Allow once"), "{seen}");
    person.answers("! Answer y, a or n.", "y");
    let (code, seen) = person.ends();
    assert_eq!((code, seen.contains("Thank you.")), (0, true), "{seen}");
    assert!(!seen.contains("tr0ub4dor"), "the secret is on the screen: {seen}");
    let home = person.case.path("home").join("notes.md").display().to_string();
    let wanted = ["false", "Green", "[\"Auth\",\"Export\"]", "web", "tr0ub4dor&3", &home];
    assert_eq!(said(&person)[..6], wanted);
    assert_eq!(answers(&person)[6], "{\"decision\":\"accept\"}");
}

#[test]
fn questions_that_belong_together_are_counted_and_checked() {
    let question = |id: &str, secret: bool| json!({"id": id, "header": "Head", "question": format!("The {id}?"), "isSecret": secret});
    let codex = Codex::new()
        .asks_together(json!([question("first", false), question("second", true), question("third", false)]))
        .asks_form(json!({"type": "object", "required": ["port"], "properties": {
            "port": {"type": "integer", "minimum": 1, "default": 80},
            "tags": {"type": "array", "maxItems": 1, "items": {"type": "string", "enum": ["a", "b"]}},
        }}))
        .says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.answers("[Head] The first? (1 of 3)", "one");
    person.answers("The second? (2 of 3)", "two");
    person.answers("The third? (3 of 3)", "three");
    person.answers("(1 of 2)", "0");
    person.answers("! The number must be at least 1.", "?");
    person.answers("It must be a whole number.", "8080");
    person.answers("(2 of 2)", "1,2");
    person.answers("! Choose at most 1.", "");
    assert_eq!(person.ends().0, 0);
    let together = json!({"answers": {"first": {"answers": ["one"]}, "second": {"answers": ["two"]}, "third": {"answers": ["three"]}}});
    assert_eq!(answers(&person)[0], together.to_string());
    assert!(answers(&person)[1].contains("\"port\":8080"), "{:?}", answers(&person));
}

#[test]
fn a_person_goes_back_to_an_earlier_question_of_a_group() {
    let question = |id: &str| json!({"id": id, "header": "Head", "question": format!("The {id}?"), "isSecret": false});
    let codex = || Codex::new().asks_together(json!([question("first"), question("second"), question("third")]));
    let together = |first: &str| {
        let answers = [("first", first), ("second", "two"), ("third", "three")];
        let answers: serde_json::Map<_, _> =
            answers.map(|(id, answer)| (id.to_owned(), json!({"answers": [answer]}))).into_iter().collect();
        json!({"answers": answers}).to_string()
    };
    let mut person = at(codex().says("Done.")).at_terminal(RUN);
    let seen = person.answers("The first? (1 of 3)", "wrong");
    assert!(!seen.contains("<: back"), "{seen}");
    let seen = person.answers("The second? (2 of 3)", "too early");
    assert!(seen.contains("<: back, ?: help"), "{seen}");
    person.answers("The third? (3 of 3)", "<");
    person.answers("The second? (2 of 3)", "<");
    person.answers("The first? (1 of 3)", "one");
    person.answers("The second? (2 of 3)", "?");
    person.answers("< goes back to the question before.", "two");
    person.answers("The third? (3 of 3)", "three");
    assert_eq!(person.ends().0, 0);
    assert_eq!(answers(&person), [together("one")]);
    // With a limit the run gets each answer at once.
    let limited: Vec<&str> = RUN.iter().copied().chain(["--question-timeout", "600"]).collect();
    let mut person = at(codex().says("Done.")).at_terminal(&limited);
    person.answers("The first? (1 of 3)", "<");
    person.answers("The second? (2 of 3)", "two");
    person.answers("The third? (3 of 3)", "three");
    assert_eq!(person.ends().0, 0);
    assert_eq!(answers(&person), [together("<")]);
}

#[test]
fn a_permission_shows_the_exact_action() {
    let long: Vec<String> = (1..=50).map(|n| format!("echo line {n}")).collect();
    let codex = Codex::new().asks_to_run(&long.join("\n")).asks_to_run("rm -r build").says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    let seen = person.waits_for("> ");
    assert!(long.iter().all(|line| seen.contains(&format!("    {line}\r\n"))), "{seen}");
    assert!(seen.contains("  a  Allow this exact command for this run\r\n"), "{seen}");
    person.types("?\n");
    person.answers("a or always: The same command is allowed without a question", "always");
    person.answers("Allow this command?", "n");
    assert_eq!(person.ends().0, 0);
    assert_eq!(answers(&person), ["{\"decision\":\"accept\"}", "{\"decision\":\"decline\"}"]);
}

#[test]
fn ctrl_d_declines_one_question_and_ctrl_c_cancels_the_run() {
    let codex = Codex::new().asks("text", "First?", json!({})).asks("text", "Second?", json!({})).says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.waits_for("First?");
    person.waits_for("> ");
    person.types(CTRL_D);
    person.waits_for("Second?");
    person.waits_for("> ");
    person.types(CTRL_C);
    person.waits_for("spektacular: cancelled");
    assert_eq!(person.ends().0, 130);
    assert_eq!(said(&person)[..1], ["declined"]);
}

#[test]
fn ctrl_c_shows_no_question_that_nobody_saw() {
    let question = |id: &str| json!({"id": id, "header": "Head", "question": format!("The {id}?"), "isSecret": false});
    let together = json!([question("first"), question("second"), question("third")]);
    let mut person = at(Codex::new().asks_together(together).says("Done.")).at_terminal(RUN);
    person.waits_for("The first? (1 of 3)");
    person.waits_for("> ");
    person.types(CTRL_C);
    person.waits_for("spektacular: cancelled");
    let (code, seen) = person.ends();
    assert_eq!(code, 130);
    assert!(seen.contains("(Question withdrawn.)") && !seen.contains("The second?"), "{seen}");
}

#[test]
fn after_ctrl_z_the_prompt_is_repeated_and_the_echo_is_on_meanwhile() {
    let codex = Codex::new().asks("secret", "What key?", json!({})).says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.waits_for("What key?");
    person.waits_for("> ");
    assert!(!person.echo(), "a secret is echoed");
    // A key that would otherwise end the program is only a letter here.
    person.types(CTRL_BACKSLASH);
    person.types("half a sec");
    person.types(CTRL_Z);
    person.sees_it_stopped();
    assert!(person.echo(), "the shell has no echo");
    person.signals(Signal::CONT);
    person.waits_for("What key?");
    person.waits_for("> ");
    assert!(!person.echo());
    person.types("open sesame\n");
    let (code, seen) = person.ends();
    assert_eq!((code, person.echo()), (0, true));
    assert!(!seen.contains("sesame") && !seen.contains("half a sec"), "{seen}");
    assert_eq!(said(&person), ["open sesame"]);
}

#[test]
fn a_signal_while_a_secret_is_asked_for_brings_the_echo_back() {
    let codex = Codex::new().asks("secret", "What key?", json!({})).says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.waits_for("What key?");
    person.waits_for("> ");
    assert!(!person.echo());
    person.signals(Signal::TERM);
    assert_eq!((person.ends().0, person.echo()), (143, true));
}

#[test]
fn a_piped_prompt_leaves_questions_to_the_terminal() {
    let codex = Codex::new().asks("select", "Which one?", options(&["Red", "Green"])).says("Done.");
    let mut person = at(codex).shell("echo 'the diff' | \"$@\"").at_terminal(&["adhoc", "--agent", "codex", "-"]);
    person.answers("Which one?", "2");
    assert_eq!(person.ends().0, 0);
    assert!(person.file("log/stdin").contains("the diff"));
    assert_eq!(said(&person), ["Green"]);
}

#[test]
fn input_typed_before_a_question_does_not_answer_it() {
    let codex = Codex::new().waits_for_file("typed").asks_to_run("rm -r build").says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.waits_for("Codex is working");
    // A whole line, and the beginning of another one.
    person.types("y\ny");
    assert!(io::wait_for(limit(), || person.typed_ahead() == 2));
    std::fs::write(person.case.path("log/typed"), "").unwrap();
    person.answers("Allow this command?", "");
    assert_eq!(person.ends().0, 0);
    assert_eq!(answers(&person), ["{\"decision\":\"decline\"}"]);
}

#[test]
fn a_short_time_is_counted_down_and_its_end_names_flags() {
    let codex = Codex::new().asks("text", "What name?", json!({})).says("Done.");
    in_time(|| {
        let case = at(codex.clone());
        let mut person = case.at_terminal(&["adhoc", "--agent", "codex", "--question-timeout", "3", "go"]);
        person.waits_for("Answer within ");
        person.waits_for("> ");
        person.types("web");
        // The time changes before the mark, while the typed word stays behind it.
        let counted =
            |person: &Person| person.screen().last().is_some_and(|row| row == "  2s  > web" || row == "  1s  > web");
        let over = |person: &Person| person.screen().concat().contains("--question-timeout");
        person.waits_until("the countdown", |person| counted(person) || over(person));
        let counted = counted(&person);
        let (code, seen) = person.ends();
        assert!(code == 5 && seen.contains("raise --question-timeout."), "{code}: {seen}");
        if counted && seen.contains("Answer within 3s with text") { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

#[test]
fn a_closed_terminal_ends_the_run() {
    let codex = Codex::new().asks("text", "What name?", json!({})).says("Done.");
    let mut person = at(codex).at_terminal(RUN);
    person.waits_for("> ");
    person.signals(Signal::HUP);
    assert_eq!(person.ends().0, 129);
}

#[test]
fn piped_input_beside_a_prompt_leaves_questions_to_the_terminal() {
    let codex = Codex::new().asks("select", "Which one?", options(&["Red", "Green"])).says("Done.");
    let mut person = at(codex).shell("echo 'the diff' | \"$@\"").at_terminal(RUN);
    person.answers("Which one?", "2");
    assert_eq!(person.ends().0, 0);
    assert!(person.file("log/stdin").contains("go\\n\\n```stdin\\nthe diff\\n```"), "{}", person.file("log/stdin"));
    assert_eq!(said(&person), ["Green"]);
}

#[test]
fn a_typed_choice_is_echoed_and_a_text_that_resembles_an_option_is_doubted_once() {
    let ask = |text: &str| json!([question(text, false)]);
    let script = Script::asks_user(ask("Which feature?"));
    let mut person = Case::with(script).at_terminal(&["adhoc", "go"]);
    person.answers("Which feature?", "2");
    let (code, seen) = person.ends();
    assert!(code == 0 && seen.contains("> 2\r\n  Search\r\n"), "{code}: {seen}");
    for (second, chosen) in [("Serch", "Serch"), ("search", "Search")] {
        let mut person = Case::with(Script::asks_user(ask("Which feature?"))).at_terminal(&["adhoc", "go"]);
        person.answers("Which feature?", "Serch");
        person.answers("! Did you mean Search? Type its number, or the same text again.", second);
        let (code, seen) = person.ends();
        assert!(code == 0 && seen.contains(&format!("\r\n  {chosen}\r\n")), "{code}: {seen}");
    }
}

#[test]
fn a_prompt_can_be_typed() {
    let codex = Codex::new().asks("text", "What name?", json!({})).says("Done.");
    let mut person = at(codex).at_terminal(&["adhoc", "--agent", "codex", "Explain", "-"]);
    person.waits_for("spektacular: type the prompt, and end it with Ctrl-D");
    person.types("this\nand that\n");
    person.types(CTRL_D);
    person.answers("What name?", "web");
    assert_eq!(person.ends().0, 0);
    assert!(person.file("log/stdin").contains("Explain\\n\\n```stdin\\nthis\\nand that\\n```"));
    assert_eq!(said(&person), ["web"]);
}

#[test]
fn a_question_rings_and_changes_the_title_until_it_is_answered() {
    const TITLE: &str = "\u{1b}[22;2t\u{1b}]2;spektacular: a question waits\u{1b}\\";
    let case = || Case::with(Script::asks_bash());
    let seen = |case: Case, args: &[&str]| {
        let mut person = case.at_terminal(args);
        person.answers("Allow this command?", "y");
        person.ends().1
    };
    let vte = seen(case().env("VTE_VERSION", "7603"), &["adhoc", "go"]);
    let (before, after) = vte.split_once(TITLE).expect("a title");
    assert!(!before.contains("Allow this") && after.starts_with('\u{7}'), "{vte:?}");
    let after = after.split_once("\u{1b}[23;2t").expect("the old title").1;
    assert!(after.contains("All done.") && vte.matches('\u{7}').count() == 1, "{vte:?}");

    let plain = seen(case(), &["adhoc", "go"]);
    assert!(plain.contains('\u{7}') && !plain.contains("]2;"), "{plain:?}");
    let quiet = "{\"alert\":false}";
    for silent in [
        seen(case().env("VTE_VERSION", "7603"), &["adhoc", "--no-alert", "go"]),
        seen(case().env("VTE_VERSION", "7603").env("SPEKTACULAR_ALERT", "false"), &["adhoc", "go"]),
        seen(case().env("VTE_VERSION", "7603").file("work/.spektacular/config.json", quiet), &["adhoc", "go"]),
    ] {
        assert!(!silent.contains('\u{7}') && !silent.contains("]2;"), "{silent:?}");
    }
    let bell_alone = seen(case().env("VTE_VERSION", "7603").env("NO_COLOR", "1"), &["adhoc", "go"]);
    assert!(bell_alone.contains('\u{7}') && !bell_alone.contains('\u{1b}'), "{bell_alone:?}");
}

#[test]
fn an_interrupted_question_gives_the_title_back() {
    let mut person = Case::with(Script::asks_bash()).env("VTE_VERSION", "7603").at_terminal(&["adhoc", "go"]);
    person.waits_for("]2;spektacular");
    person.types(CTRL_C);
    let (code, seen) = person.ends();
    assert!(code == 130 && seen.contains("\u{1b}[23;2t"), "{code}: {seen:?}");
}

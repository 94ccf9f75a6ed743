//! `chat` with real agents: a person at a terminal, who reads the screen and types.

use std::sync::Arc;

use crate::agents::Agent;
use crate::lab::{KEY, Lab};
use crate::stub::Stub;
use crate::support::person::{CTRL_C, CTRL_D, Person};
use crate::support::{io, limit};

rows!(ours: a_model_is_chosen_between_two_prompts lines_are_turns_of_one_session ctrl_c_cancels_a_turn_and_the_session_stays a_question_comes_between_prompts);

/// Starts a chat with the agent. The model lives as long as the stub.
#[track_caller]
fn chat(lab: Lab, args: &[&str]) -> (Person, Arc<Stub>) {
    let stub = lab.stub;
    let mut person = lab.case.at_terminal(&[&["chat", "--agent", lab.agent.name()], args].concat());
    person.waits_for("Ctrl-D: end.");
    person.waits_for("> ");
    (person, stub)
}

/// Types a prompt. The screen shows these texts in order, and then the next prompt line.
#[track_caller]
fn says(person: &mut Person, prompt: &str, shows: &[&str]) {
    person.types(&format!("{prompt}\r"));
    shows.iter().for_each(|text| drop(person.waits_for(text)));
    person.waits_for("> ");
}

#[track_caller]
fn ends(person: &mut Person) {
    person.types(CTRL_D);
    let (code, seen) = person.ends();
    assert!(code == 0 && !seen.contains(KEY), "{code}: {seen}");
}

/// The model remembers the first line.
fn lines_are_turns_of_one_session(agent: Agent) {
    let (mut person, stub) = chat(Lab::new(agent, "resume"), &[]);
    says(&mut person, "Say a word.", &["The word is heron.", "turn 1 done"]);
    says(&mut person, "Which word?", &["I said heron.", "turn 2 done"]);
    ends(&mut person);
    let heard = stub.last_heard();
    for part in ["Say a word.", "The word is heron.", "Which word?"] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
}

/// The session goes on in another process, with the other model. Codex sums it up for that model first.
fn a_model_is_chosen_between_two_prompts(agent: Agent) {
    let (mut person, stub) = chat(Lab::new(agent, "resume"), &[]);
    says(&mut person, "Say a word.", &["The word is heron.", "turn 1 done"]);
    let model = agent.ways().another_model;
    says(&mut person, &format!("/model {model}"), &["model: ", "continuing session "]);
    says(&mut person, "Which word?", &["heron.", "turn 1 done"]);
    ends(&mut person);
    let heard = stub.last_heard();
    for part in ["Say a word.", "heron.", "Which word?"] {
        assert!(heard.contains(part), "{part} is not in: {heard}");
    }
    let name = model.rsplit('/').next().expect("name");
    let asked = |request: &String| {
        request.contains(&format!(r#""model":"{name}""#)) || request.contains(&format!("models/{name}:"))
    };
    let asked: Vec<bool> = stub.requests().iter().map(asked).collect();
    assert_eq!((asked.first(), asked.last()), (Some(&false), Some(&true)));
}

fn ctrl_c_cancels_a_turn_and_the_session_stays(agent: Agent) {
    let lab = Lab::new(agent, "cancelled_turn");
    let at_work = lab.case.work().join("at_work");
    let (mut person, _stub) = chat(lab, &["--permissions", "allow"]);
    person.types("Work.\r");
    assert!(io::wait_for(limit() * 6, || at_work.exists()), "the tool is not at work: {:?}", person.screen());
    person.types(CTRL_C);
    person.waits_for("turn 1 cancelled");
    person.waits_for("> ");
    says(&mut person, "Are you there?", &["Here I am again.", "turn 2 done"]);
    ends(&mut person);
}

fn a_question_comes_between_prompts(agent: Agent) {
    let (mut person, stub) = chat(Lab::new(agent, "second_turn_asks"), &[]);
    says(&mut person, "Hello.", &["Ready.", "turn 1 done"]);
    person.types("Ask me.\r");
    person.answers("Where shall the data live?", "SQLite");
    for text in ["So be it.", "turn 2 done", "> "] {
        person.waits_for(text);
    }
    ends(&mut person);
    assert!(stub.tool_results()[0].contains("SQLite"), "{:?}", stub.tool_results());
}

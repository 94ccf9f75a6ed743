//! Images of the prompt, as they reach the models of real agents.

use serde_json::json;

use crate::agents::Agent;
use crate::client::run;
use crate::lab::Lab;

rows!(old: image);
rows!(of unknown_to_the_model: opencode OpenCode);

const DOTS: &[u8] = include_bytes!("../../testdata/dots.png");
/// The same as base64.
const DATA: &str =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAFElEQVR42mOQO4EKGdD4cgwjSgUAHKNzAVt7+nkAAAAASUVORK5CYII=";

/// Both images reach the model, with the prompt: that of a relative path, and that of a path outside the agent's
/// directory.
fn image(agent: Agent) {
    let lab = with_dots(Lab::new(agent, "hello"));
    let images = json!(["dots.png", lab.case.path("home/other")]);
    let run = run(lab, json!({"prompt": "Count the dots.", "images": images}), Vec::new());
    run.completed("Good day from the model.");
    assert!(run.outcome.progress("warning").is_empty());
    assert!(run.outcome.of_type("run.question").is_empty());
    let request = run.stub().first_request();
    assert_eq!(request.matches(DATA).count(), 2, "{request}");
    assert!(run.stub().last_heard().contains("Count the dots."), "{}", run.stub().last_heard());
}

/// OpenCode tells a model that cannot read images that it got one.
fn unknown_to_the_model(agent: Agent) {
    let payload = json!({"model": "stub/blind-model", "images": ["dots.png"]});
    let run = run(with_dots(Lab::new(agent, "hello")), payload, Vec::new());
    run.completed("Good day from the model.");
    let request = run.stub().first_request();
    assert!(!request.contains(DATA) && request.contains("does not support image input"), "{request}");
}

fn with_dots(lab: Lab) -> Lab {
    for name in ["work/dots.png", "home/other"] {
        std::fs::write(lab.case.path(name), DOTS).expect("image");
    }
    lab
}

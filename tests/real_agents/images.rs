//! Images of the prompt, as they reach the models of real agents.

use serde_json::json;

use crate::agents::Agent;
use crate::client::run;
use crate::lab::Lab;

rows!(old: image);

/// A PNG of 16 by 16 dots.
const DOTS: [u8; 77] = [
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 16, 0, 0, 0, 16,
    8, 0, 0, 0, 0, 0x3a, 0x98, 0xa0, 0xbd, 0, 0, 0, 20, b'I', b'D', b'A', b'T', 0x78, 0xda, 0x63, 0x90, 0x3b, 0x81,
    0x0a, 0x19, 0xd0, 0xf8, 0x72, 0x0c, 0x23, 0x4a, 0x05, 0x00, 0x1c, 0xa3, 0x73, 0x01, 0x5b, 0x7b, 0xfa, 0x79, 0, 0,
    0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];
/// The same as base64.
const DATA: &str =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAFElEQVR42mOQO4EKGdD4cgwjSgUAHKNzAVt7+nkAAAAASUVORK5CYII=";

/// The image of a relative path reaches the model once, with the prompt.
fn image(agent: Agent) {
    let lab = Lab::new(agent, "hello");
    std::fs::write(lab.case.work().join("dots.png"), DOTS).expect("image");
    let run = run(lab, json!({"prompt": "Count the dots.", "images": ["dots.png"]}), Vec::new());
    run.completed("Good day from the model.");
    assert!(run.outcome.progress("warning").is_empty());
    let request = run.stub().first_request();
    assert_eq!(request.matches(DATA).count(), 1, "{request}");
    assert!(run.stub().last_heard().contains("Count the dots."), "{}", run.stub().last_heard());
}

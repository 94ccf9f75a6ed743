//! Tests each limit of the protocol at its boundary: the largest input that is accepted, and the smallest that is
//! refused.

use crate::playback::world::{World, exited};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use spektacular::agent::registry::Agents;
use spektacular::protocol::inbound::{self, Message};
use spektacular::protocol::limits;
use spektacular::protocol::request::{Options, Seconds};
use spektacular::protocol::words::Level;

fn accepts(field: &str, value: &Value) -> bool {
    let raw = RawValue::from_string(value.to_string()).unwrap();
    Options::default().set(field, &raw).is_ok()
}

#[test]
fn fields_of_run_start() {
    let text = |bytes| json!("x".repeat(bytes));
    let metadata = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    type Make<'a> = &'a dyn Fn(usize) -> Value;
    let list = |entry: &'static str| move |entries: usize| json!(vec![entry; entries]);
    let servers = |entries: usize| json!(vec![json!({"name": "s", "command": "c"}); entries]);
    let rows: [(&str, usize, Make<'_>); 17] = [
        ("prompt", limits::PROMPT_BYTES, &text),
        ("system_prompt", limits::PROMPT_BYTES, &text),
        ("model", limits::FIELD_BYTES, &|bytes| text(bytes - "''".len())),
        ("add_dirs", limits::LIST_ENTRIES, &list("/")),
        ("allowed_tools", limits::LIST_ENTRIES, &list("Read")),
        ("disallowed_tools", limits::LIST_ENTRIES, &list("Read")),
        ("env_allow", limits::LIST_ENTRIES, &list("A")),
        ("agent_args", limits::LIST_ENTRIES, &list("")),
        ("mcp_servers", limits::LIST_ENTRIES, &servers),
        ("images", limits::IMAGES, &list("a.png")),
        ("agent_args", limits::ARGUMENTS_BYTES, &|bytes| json!([text(bytes / 2), text(bytes - bytes / 2)])),
        ("env", limits::ARGUMENTS_BYTES, &|bytes| json!({"A": text(bytes / 2), "B": text(bytes - bytes / 2 - 2)})),
        ("metadata", limits::METADATA_BYTES, &metadata),
        ("secrets", limits::SECRET_BYTES, &|bytes| json!([text(bytes)])),
        ("session_id", limits::SESSION_ID_BYTES, &text),
        ("agent_args", limits::ARGUMENT_BYTES, &|bytes| json!([text(bytes)])),
        ("max_frame_bytes", limits::FRAME_BYTES_MAX, &|bytes| json!(bytes)),
    ];
    for (field, limit, value) in rows {
        assert!(accepts(field, &value(limit)) && !accepts(field, &value(limit + 1)), "{field}");
    }
    let least = limits::FRAME_BYTES_MIN;
    assert!(accepts("max_frame_bytes", &json!(least)) && !accepts("max_frame_bytes", &json!(least - 1)));
    for (given, taken) in [(limits::SECONDS, limits::SECONDS), (limits::SECONDS * 2.0, limits::SECONDS), (1.0, 1.0)] {
        let mut options = Options::default();
        options.set("timeout_s", &RawValue::from_string(given.to_string()).unwrap()).unwrap();
        assert_eq!(options.timeout_s, Some(Seconds(taken)));
    }
}

#[test]
fn agent_args_and_env_together() {
    let args = limits::ARGUMENTS_BYTES / 2;
    for (env, starts) in [(args, true), (args + 1, false)] {
        let fields = json!({"agent_args": ["x".repeat(args)], "env": {"A": "x".repeat(env - 1)}});
        let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
        Run::start(&mut world, &fields);
        let last = &world.frames.last().unwrap().value;
        assert_eq!(last["payload"]["code"] != "invalid_request", starts, "{last}");
    }
}

#[test]
fn messages() {
    let is_read = |line: String| !matches!(inbound::parse(line.as_bytes()).unwrap().message, Message::Malformed(_));
    let nested = |levels: usize| {
        let below = levels - 2;
        format!(r#"{{"v":"1","type":"x","payload":{{"a":{}{}}}}}"#, "[".repeat(below), "]".repeat(below))
    };
    let named = |chars| format!(r#"{{"v":"1","type":"x","id":"{}"}}"#, "é".repeat(chars));
    assert!(is_read(nested(limits::DEPTH)) && !is_read(nested(limits::DEPTH + 1)));
    assert!(is_read(named(limits::ID_CHARS)) && !is_read(named(limits::ID_CHARS + 1)));
}

/// A run of Claude Code in this process, with these fields of run.start.
struct Run(World);

impl Run {
    fn new(fields: &Value) -> Run {
        let mut world = World::new(
            "/home/user/project",
            Options { progress: Some(Level::Full), ..Options::default() },
            Agents::built_in(),
        );
        Run::start(&mut world, fields);
        Run(world)
    }

    fn start(world: &mut World, fields: &Value) {
        let mut payload = json!({"prompt": "Go on", "agent": "claude"});
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        world.hear(&json!({"v": "1", "type": "run.start", "payload": payload}).to_string());
        world.spawn();
        let init = json!({"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.1.330"});
        world.line(&init.to_string());
    }

    fn line(&mut self, line: &Value) -> &mut Run {
        self.0.line(&line.to_string());
        self
    }

    fn assistant(&mut self, block: &Value) -> &mut Run {
        let message = json!({"id": "m", "role": "assistant", "content": [block]});
        self.line(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null, "session_id": "s"}))
    }

    /// A call from start to end. `result`: the fields that Claude Code reports beside the output.
    fn tool(&mut self, call: &str, name: &str, input: &Value, output: &str, result: &Value) -> &mut Run {
        self.assistant(&json!({"type": "tool_use", "id": call, "name": name, "input": input}));
        let block = json!({"tool_use_id": call, "type": "tool_result", "content": output});
        let message = json!({"role": "user", "content": [block]});
        self.line(&json!({"type": "user", "message": message, "tool_use_result": result, "parent_tool_use_id": null, "session_id": "s"}))
    }

    fn ask(&mut self, request: &str, name: &str, input: &Value) -> &mut Run {
        let request_body =
            json!({"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": request});
        self.line(&json!({"type": "control_request", "request_id": request, "request": request_body}))
    }

    fn result(&mut self, text: &str) -> &mut Run {
        self.line(
            &json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s"}),
        )
    }

    /// The agent completes its work and exits. Returns the payload of the last frame.
    #[track_caller]
    fn completed(&mut self, text: &str) -> Value {
        self.result(text);
        self.0.gone(exited(0), "");
        let last = self.0.frames.last().unwrap();
        assert_eq!(last.value["type"], "run.completed", "{}", last.line);
        last.value["payload"].clone()
    }

    /// The payloads of the frames of this type, or of the progress of this kind.
    fn frames(&self, kind: &str) -> Vec<&Value> {
        let payloads = self.0.frames.iter().filter(|f| f.value["type"] == kind || f.value["payload"]["kind"] == kind);
        payloads.map(|frame| &frame.value["payload"]).collect()
    }

    fn warned(&self, code: &str) -> bool {
        self.frames("warning").iter().any(|warning| warning["code"] == code)
    }
}

#[test]
fn warnings_before_the_start() {
    for (sent, held) in
        [(limits::HELD_WARNINGS, limits::HELD_WARNINGS), (limits::HELD_WARNINGS + 2, limits::HELD_WARNINGS)]
    {
        let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
        for _ in 0..sent {
            world.hear(r#"{"v":"1","type":"run.dance"}"#);
        }
        Run::start(&mut world, &json!({}));
        let run = Run(world);
        let warnings = run.frames("warning");
        let unknown: Vec<&Value> = warnings.into_iter().filter(|warning| warning["code"] == "unknown_type").collect();
        assert_eq!(unknown.len(), held);
        // The last one counts those that were not held.
        assert_eq!(unknown[held - 1]["text"].as_str().unwrap().contains("(and 2 more messages)"), sent > held);
    }
}

#[test]
fn the_output_of_a_tool() {
    for (bytes, cut) in [(limits::TOOL_OUTPUT_BYTES, false), (limits::TOOL_OUTPUT_BYTES + 1, true)] {
        let mut run = Run::new(&json!({}));
        run.tool("c", "Bash", &json!({"command": "true"}), &"x".repeat(bytes), &Value::Null);
        let tools = run.frames("tool");
        let end = tools.last().unwrap();
        assert_eq!(end["output"].as_str().unwrap().len(), limits::TOOL_OUTPUT_BYTES);
        assert_eq!(end["truncated"] == true, cut);
    }
}

#[test]
fn the_list_of_artifacts() {
    for (files, cut) in [(limits::ARTIFACTS, false), (limits::ARTIFACTS + 1, true)] {
        let mut run = Run::new(&json!({}));
        for file in 0..files {
            let path = format!("/home/user/project/{file}");
            let created = json!({"type": "create", "filePath": path});
            run.tool(&file.to_string(), "Write", &json!({"file_path": path, "content": "x"}), "ok", &created);
        }
        let end = run.completed("Done.");
        assert_eq!(run.frames("run.artifact").len(), files);
        assert_eq!(end["artifacts"].as_array().unwrap().len(), limits::ARTIFACTS);
        assert_eq!(end["truncated"] == true, cut);
    }
}

#[test]
fn the_lists_of_what_nobody_answered() {
    for asked in [limits::LEFT_LISTED, limits::LEFT_LISTED + 1] {
        let mut run = Run::new(&json!({"interactive": false}));
        for number in 0..asked {
            run.ask(&format!("p{number}"), "Bash", &json!({"command": format!("touch {number}")}));
            let question = json!({"question": format!("Which {number}?"), "header": "Way", "multiSelect": false,
                "options": [{"label": "A", "description": ""}, {"label": "B", "description": ""}]});
            run.ask(&format!("q{number}"), "AskUserQuestion", &json!({"questions": [question]}));
        }
        let end = run.completed("Done.");
        for list in ["denied", "unanswered"] {
            assert_eq!(end[list]["count"], asked, "{list}");
            assert_eq!(end[list]["first"].as_array().unwrap().len(), limits::LEFT_LISTED, "{list}");
        }
    }
}

#[test]
fn the_parts_of_a_question() {
    let ask = |header: usize, questions: usize, options: usize| {
        let options: Vec<Value> = (0..options).map(|n| json!({"label": n.to_string(), "description": ""})).collect();
        let one = |n| json!({"question": format!("Which {n}?"), "header": "é".repeat(header), "multiSelect": false, "options": options});
        let mut run = Run::new(&json!({"max_frame_bytes": limits::FRAME_BYTES_MAX}));
        run.ask("q", "AskUserQuestion", &json!({"questions": (0..questions).map(one).collect::<Vec<_>>()}));
        let asked: Vec<(usize, usize)> = run
            .frames("run.question")
            .iter()
            .map(|q| (q["header"].as_str().unwrap().chars().count(), q["options"].as_array().unwrap().len()))
            .collect();
        (asked[0], asked.len(), run.warned("agent_output_unparsed"))
    };
    assert_eq!(ask(limits::HEADER_CHARS, 1, 2).0.0, limits::HEADER_CHARS);
    assert_eq!(ask(limits::HEADER_CHARS + 1, 1, 2).0.0, limits::HEADER_CHARS);
    for more in [0, 1] {
        assert_eq!(ask(1, 1, limits::OPTIONS + more), ((1, limits::OPTIONS), 1, more > 0));
        assert_eq!(ask(1, limits::QUESTIONS + more, 2), ((1, 2), limits::QUESTIONS, more > 0));
    }
}

#[test]
fn the_entries_of_a_plan() {
    for more in [0, 1] {
        let todo = json!({"content": "Do it", "status": "pending", "activeForm": "Doing it"});
        let mut run = Run::new(&json!({"max_frame_bytes": limits::FRAME_BYTES_MAX}));
        let input = json!({"todos": vec![todo; limits::PLAN_ENTRIES + more]});
        run.assistant(&json!({"type": "tool_use", "id": "c", "name": "TodoWrite", "input": input}));
        assert_eq!(run.frames("plan")[0]["entries"].as_array().unwrap().len(), limits::PLAN_ENTRIES);
        assert_eq!(run.warned("agent_output_unparsed"), more > 0);
    }
}

#[test]
fn the_further_turns_for_question_markers() {
    let mut run = Run::new(&json!({}));
    let marker = r#"<!--QUESTION:{"questions":[{"question":"Which?"}]}-->"#;
    for further in 0..=limits::MARKER_TURNS {
        run.assistant(&json!({"type": "text", "text": marker})).result("x");
        assert_eq!(run.0.is_decided(), further == limits::MARKER_TURNS, "turn {further}");
        if let Some(id) = run.0.question_ids().last().filter(|_| further < limits::MARKER_TURNS) {
            let answer = json!({"question_id": id, "value": "This"});
            run.0.hear(&json!({"v": "1", "type": "run.input", "payload": answer}).to_string());
        }
    }
    run.0.gone(exited(0), "");
    assert_eq!(run.0.question_ids().len(), limits::MARKER_TURNS as usize);
    assert_eq!(run.frames("run.failed")[0]["code"], "limit_reached");
}

#[test]
fn the_final_answer() {
    let frame = limits::FRAME_BYTES_MIN;
    let end = |bytes: usize| {
        let mut run = Run::new(&json!({"max_frame_bytes": frame}));
        let end = run.completed(&"x".repeat(bytes));
        (run.0.frames.last().unwrap().line.len(), end)
    };
    let (rest, _) = end(0);
    let (length, whole) = end(limits::COMPLETED_FACTOR * frame - rest);
    // The answer itself changes the size of the rest by a few bytes.
    assert!(length + 100 > limits::COMPLETED_FACTOR * frame && length <= limits::COMPLETED_FACTOR * frame, "{length}");
    assert!(whole.get("truncated").is_none(), "{length}");
    let (length, cut) = end(limits::COMPLETED_FACTOR * frame);
    assert!(cut["truncated"] == true && length <= limits::COMPLETED_FACTOR * frame, "{length}");
}

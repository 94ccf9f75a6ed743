//! Tests of permissions in every dialect: each category under each policy with each answer, and the effect of the
//! answer on later requests. The drivers are the real ones. The agents are the lines below.

mod approvals;
mod reads;
mod sandbox;

use crate::playback;
use crate::support::options;

use playback::world::{Sent, World};
use serde_json::{Value, json};
use spektacular::agent::Line;
use spektacular::agent::registry::{Agents, Dialect};
use spektacular::agent::{Base, registry};
use spektacular::protocol::request::Options;
use spektacular::protocol::words::Category;
use spektacular::run::Event;
use std::collections::{BTreeMap, BTreeSet};

const CWD: &str = "/home/user/project";
const ANSWERS: [&str; 3] = ["allow_once", "allow_always", "deny"];

/// The decision that the agent received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Allow this one call.
    Once,
    Denied,
}

/// A request: its subject and its variant.
#[derive(Clone, Copy, Debug)]
struct Wish {
    category: Category,
    /// Distinguishes tools.
    tool: &'static str,
    /// Distinguishes files, commands or inputs.
    input: &'static str,
}

/// The requests of one agent.
struct Speaker {
    agent: &'static str,
    /// The lines before the agent's turn.
    begin: &'static [&'static str],
    /// The categories that the agent can request.
    categories: Vec<Category>,
    /// The lines of a request with this number.
    asks: fn(Wish, usize) -> Vec<Value>,
    /// The decision in an answer of ours. A lasting permission would be a defect.
    hears: fn(&Value) -> Told,
}

fn all() -> Vec<Category> {
    Category::ALL.to_vec()
}

fn speakers() -> Vec<Speaker> {
    use Category::{Delete, Edit, Execute, Fetch, Mcp, Move, Think};
    let acp = |agent, asks| Speaker {
        agent,
        begin: &[
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#,
        ],
        categories: all(),
        asks,
        hears: acp_hears,
    };
    vec![
        Speaker {
            agent: "claude",
            begin: &[r#"{"type":"system","subtype":"init","session_id":"s"}"#],
            categories: all().into_iter().filter(|category| ![Delete, Move, Think].contains(category)).collect(),
            asks: claude_asks,
            hears: claude_hears,
        },
        Speaker {
            agent: "codex",
            begin: &[
                r#"{"id":1,"result":{"userAgent":"x/1"}}"#,
                r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}"#,
                r#"{"id":3,"result":{"thread":{"id":"t"}}}"#,
                r#"{"id":4,"result":{"turn":{"id":"u"}}}"#,
            ],
            categories: vec![Edit, Delete, Move, Execute, Fetch, Mcp],
            asks: codex_asks,
            hears: codex_hears,
        },
        acp("gemini", gemini_asks),
        acp("opencode", opencode_asks),
        acp("mine", generic_asks),
    ]
}

fn claude_asks(wish: Wish, number: usize) -> Vec<Value> {
    let mcp = format!("mcp__server__{}", wish.tool);
    let (name, input) = match wish.category {
        // A file in the working directory would need no permission.
        Category::Read => ("Read", json!({"file_path": format!("/elsewhere/{}", wish.input)})),
        Category::Edit => ("Write", json!({"file_path": wish.input, "content": "x"})),
        Category::Search => ("Grep", json!({"pattern": wish.input})),
        Category::Execute => ("Bash", json!({"command": wish.input, "description": "Call it"})),
        Category::Fetch => ("WebFetch", json!({"url": wish.input})),
        Category::Agent => ("Task", json!({"prompt": wish.input})),
        Category::Mcp => (mcp.as_str(), json!({"q": wish.input})),
        Category::Mode => ("ExitPlanMode", json!({"plan": wish.input})),
        Category::Other => (wish.tool, json!({"x": wish.input})),
        Category::Delete | Category::Move | Category::Think => panic!("no such tool"),
    };
    let suggestions = json!([
        {"type": "addRules", "rules": [{"toolName": name}], "behavior": "allow", "destination": "localSettings"},
        {"type": "addDirectories", "directories": ["/"], "destination": "session"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ]);
    vec![json!({"type": "control_request", "request_id": format!("r{number}"), "request": {
        "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": format!("c{number}"),
        "permission_suggestions": suggestions}})]
}

fn claude_hears(line: &Value) -> Told {
    let response = &line["response"]["response"];
    assert!(response.get("updatedPermissions").is_none(), "a rule or a mode for the agent: {line}");
    match response["behavior"].as_str() {
        Some("allow") => Told::Once,
        Some("deny") => Told::Denied,
        _ => panic!("{line}"),
    }
}

fn codex_asks(wish: Wish, number: usize) -> Vec<Value> {
    let common = json!({"threadId": "t", "turnId": "u", "itemId": format!("c{number}"), "startedAtMs": number});
    let with = |mut more: Value| {
        more.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        more
    };
    let patch = |kind: Value| {
        let change = json!({"path": wish.input, "kind": kind, "diff": "x\n"});
        let item = json!({"type": "fileChange", "id": format!("c{number}"), "changes": [change]});
        let began = json!({"method": "item/started", "params": {"threadId": "t", "turnId": "u", "item": item}});
        vec![began, json!({"id": number, "method": "item/fileChange/requestApproval", "params": common})]
    };
    let command = "item/commandExecution/requestApproval";
    match wish.category {
        Category::Edit => patch(json!({"type": "update"})),
        Category::Delete => patch(json!({"type": "delete"})),
        Category::Move => patch(json!({"type": "update", "move_path": "moved"})),
        Category::Execute => {
            let actions = json!([{"type": "unknown", "command": wish.input}]);
            let params = json!({"command": format!("sh -c '{}'", wish.input), "cwd": CWD, "commandActions": actions});
            vec![json!({"id": number, "method": command, "params": with(params)})]
        }
        Category::Fetch => {
            let net = json!({"host": wish.input, "protocol": "https"});
            let params = with(json!({"networkApprovalContext": net}));
            vec![json!({"id": number, "method": command, "params": params})]
        }
        Category::Mcp => {
            let call = json!({"codex_approval_kind": "mcp_tool_call", "tool_name": wish.tool,
                "tool_params": {"q": wish.input}, "persist": ["session", "always"]});
            let params = with(json!({"serverName": "server", "message": "Allow?", "_meta": call}));
            vec![json!({"id": number, "method": "mcpServer/elicitation/request", "params": params})]
        }
        _ => panic!("no such tool"),
    }
}

fn codex_hears(line: &Value) -> Told {
    let result = &line["result"];
    assert!(result["_meta"].is_null(), "something that lasts: {line}");
    match result["decision"].as_str().or(result["action"].as_str()) {
        Some("accept") => Told::Once,
        Some("decline") => Told::Denied,
        _ => panic!("{line}"),
    }
}

/// The ACP kind of a tool call. For categories that ACP lacks, agents have their own names.
fn kind(category: Category) -> &'static str {
    match category {
        Category::Agent | Category::Mcp | Category::Other => "other",
        Category::Mode => "switch_mode",
        named => named.word(),
    }
}

fn name(wish: Wish) -> String {
    match wish.category {
        Category::Agent => "task".into(),
        Category::Mcp => format!("mcp_server_{}", wish.tool),
        Category::Other => wish.tool.into(),
        named => format!("tool_of_{}", named.word()),
    }
}

fn acp_request(number: usize, call: &Value) -> Value {
    let options = json!([
        {"optionId": "for-ever", "name": "Always", "kind": "allow_always"},
        {"optionId": "whole-server", "name": "Always, all", "kind": "allow_always"},
        {"optionId": "once", "name": "Yes", "kind": "allow_once"},
        {"optionId": "never", "name": "Never", "kind": "reject_always"},
        {"optionId": "not-now", "name": "No", "kind": "reject_once"},
    ]);
    json!({"jsonrpc": "2.0", "id": number, "method": "session/request_permission",
        "params": {"sessionId": "s", "options": options, "toolCall": call}})
}

/// The files of a call, without which nobody is asked about a change.
fn locations(wish: Wish) -> Value {
    if wish.category.changes_files() { json!([{"path": wish.input}]) } else { json!([]) }
}

/// Gemini sends no input: the title describes the call, and the id names the tool.
fn gemini_asks(wish: Wish, number: usize) -> Vec<Value> {
    let name = name(wish);
    let title = if wish.category == Category::Execute { wish.input.to_owned() } else { format!("Use {}", wish.input) };
    // The agent has no sub-agents. The driver recognizes them by `task`.
    let name = if wish.category == Category::Agent { name } else { format!("{name}__{name}_17953_{number}") };
    vec![acp_request(
        number,
        &json!({"toolCallId": name, "status": "pending", "title": title, "content": [], "kind": kind(wish.category),
            "locations": locations(wish)}),
    )]
}

/// A call is announced under the name of its tool. The request has its input.
fn opencode_asks(wish: Wish, number: usize) -> Vec<Value> {
    let (id, kind) = (format!("call_{number}"), kind(wish.category));
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name(wish), "kind": kind,
        "status": "pending", "rawInput": {"cwd": CWD}});
    let began = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": call}});
    let input = json!({"x": wish.input, "description": "Call it"});
    let call = json!({"toolCallId": id, "status": "pending", "title": wish.input, "kind": kind, "rawInput": input,
        "locations": locations(wish)});
    vec![began, acp_request(number, &call)]
}

/// An unknown agent: neither its ids nor its titles name a tool.
fn generic_asks(wish: Wish, number: usize) -> Vec<Value> {
    let id = match wish.category {
        Category::Agent => "task".to_owned(),
        Category::Mcp => format!("mcp_{number}"),
        _ => format!("call_{number}"),
    };
    vec![acp_request(
        number,
        &json!({"toolCallId": id, "title": format!("Use {}", wish.input), "locations": locations(wish),
        "kind": kind(wish.category), "rawInput": {"tool": wish.tool, "x": wish.input, "timeout": 1}}),
    )]
}

fn acp_hears(line: &Value) -> Told {
    match line["result"]["outcome"]["optionId"].as_str() {
        Some("once") => Told::Once,
        Some("not-now") => Told::Denied,
        _ => panic!("an option that lasts, or none: {line}"),
    }
}

/// A run in the middle of its turn, and the outcome of each request.
struct Talk {
    world: World,
    speaker: Speaker,
    requests: usize,
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    asked: bool,
    told: Told,
    resolution: String,
}

fn by_policy(told: Told) -> Outcome {
    Outcome { asked: false, told, resolution: "policy".into() }
}

fn agents() -> Agents {
    let mut agents = Agents::built_in();
    agents.put(registry::Agent::new("mine", Dialect::Acp, Base::command("mine")));
    agents
}

impl Talk {
    fn begin(speaker: Speaker, payload: Value) -> Talk {
        let mut world = World::new(CWD, Options::default(), agents());
        // Gemini CLI runs commands that only read without asking. What it asks for is answered as on every agent.
        let on_unsupported = if speaker.agent == "gemini" { "warn" } else { "fail" };
        let mut fields = json!({"prompt": "go", "agent": speaker.agent, "on_unsupported": on_unsupported});
        fields.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        world.hear(&json!({"v": "1", "type": "run.start", "payload": fields}).to_string());
        world.spawn();
        for line in speaker.begin {
            world.step(Event::Line(Line::Text((*line).into())));
        }
        world.host_mut().sent.clear();
        Talk { world, speaker, requests: 100 }
    }

    fn says(&mut self, line: &Value) {
        self.world.step(Event::Line(Line::Text(line.to_string().into())));
    }

    /// Lets the agent make the request. Returns the question, if the run asks one.
    fn asks(&mut self, wish: Wish) -> Option<Value> {
        self.requests += 1;
        let seen = self.world.frames.len();
        for line in (self.speaker.asks)(wish, self.requests) {
            self.says(&line);
        }
        let asked = self.world.frames[seen..].iter().find(|frame| frame.value["type"] == "run.question");
        asked.map(|frame| frame.value["payload"].clone())
    }

    fn answers(&mut self, question: &Value, value: &str) {
        let payload = json!({"question_id": question["question_id"], "value": value});
        self.world.hear(&json!({"v": "1", "id": "a", "type": "run.input", "payload": payload}).to_string());
    }

    /// The decisions that the agent received since the last call.
    #[track_caller]
    fn told(&mut self) -> Vec<Told> {
        let lines = self.world.host_mut().sent.drain(..).map(|sent| match sent {
            Sent::Line(line) => serde_json::from_str::<Value>(&line).unwrap(),
            Sent::Eof => panic!("the agent's stdin was closed"),
        });
        lines.map(|line| (self.speaker.hears)(&line)).collect()
    }

    fn resolved(&self) -> Vec<&Value> {
        let progress = self.world.frames.iter().map(|frame| &frame.value["payload"]);
        progress.filter(|payload| payload["kind"] == "question_resolved").collect()
    }

    /// Makes one request and answers it: with `answer` if that option is offered, otherwise with a denial.
    #[track_caller]
    fn request(&mut self, wish: Wish, answer: &str) -> Outcome {
        let question = self.asks(wish);
        if let Some(question) = &question {
            let value = if options(question).contains(&answer) { answer } else { "deny" };
            self.answers(question, value);
        }
        let told = self.told();
        assert_eq!(told.len(), 1, "{}: {wish:?}", self.speaker.agent);
        let last = *self.resolved().last().unwrap();
        assert_eq!(last["subject"]["category"], wish.category.word(), "{}", self.speaker.agent);
        assert_eq!(last["value"] == "deny", told[0] == Told::Denied, "{last}");
        if let Some(question) = &question {
            assert_eq!(last["question_id"], question["question_id"]);
        }
        let resolution = last["resolution"].as_str().unwrap().to_owned();
        Outcome { asked: question.is_some(), told: told[0], resolution }
    }
}

/// Whether "always" covers the whole category. For mcp and other, it covers the tool.
fn is_whole(category: Category) -> bool {
    !matches!(category, Category::Execute | Category::Mcp | Category::Other | Category::Mode)
}

/// The expected outcome of a request under this policy.
fn expected(policy: &str, answer: &str) -> Outcome {
    let told = if answer == "deny" { Told::Denied } else { Told::Once };
    match policy {
        "allow" => by_policy(Told::Once),
        "deny" => by_policy(Told::Denied),
        _ => Outcome { asked: true, told, resolution: "answered".into() },
    }
}

/// One row: a request, the same kind of request again, the same request again, and one request of every other category.
#[track_caller]
fn row(speaker: Speaker, category: Category, policies: &Value, word: &str, rest: &str, answer: &str) {
    let shown = format!("{} {} {policies} {answer}", speaker.agent, category.word());
    let (others, names_tools) = (speaker.categories.clone(), speaker.agent != "mine");
    let mut talk = Talk::begin(speaker, json!({"permissions": policies}));
    let wish = |tool, input| Wish { category, tool, input };
    let offered = category != Category::Mode;
    let answer = if answer == "allow_always" && !offered { "allow_once" } else { answer };
    let always = word == "ask" && answer == "allow_always";
    assert_eq!(talk.request(wish("one", "a"), answer), expected(word, answer), "{shown}");
    // The requests after the first one: the same tool with another input, another tool, and the same call.
    let tool = !is_whole(category) && category != Category::Execute && names_tools;
    for (wish, covered) in [
        (wish("one", "b"), is_whole(category) || tool),
        (wish("two", "b"), is_whole(category)),
        (wish("one", "a"), true),
    ] {
        let wanted = if always && covered { by_policy(Told::Once) } else { expected(word, "deny") };
        assert_eq!(talk.request(wish, "deny"), wanted, "{shown}: {wish:?}");
    }
    // All of them after "always", otherwise one of them.
    let others = others.into_iter().cycle().skip_while(|other| *other != category).skip(1);
    for other in others.take_while(|other| *other != category).take(if always { 12 } else { 1 }) {
        let wish = Wish { category: other, tool: "one", input: "a" };
        assert_eq!(talk.request(wish, "deny"), expected(rest, "deny"), "{shown}: then {other:?}");
    }
}

/// Every category of one agent, under every policy, with every answer.
fn matrix(agent: &str) {
    let speaker = || speakers().into_iter().find(|speaker| speaker.agent == agent).unwrap();
    for category in speaker().categories {
        for word in ["allow", "ask", "deny"] {
            for answer in ANSWERS {
                row(speaker(), category, &json!(word), word, word, answer);
                for rest in ["allow", "ask", "deny"] {
                    let policies = BTreeMap::from([(category.word(), word), ("*", rest)]);
                    row(speaker(), category, &json!(policies), word, rest, answer);
                }
            }
        }
    }
}

/// An answer covers the scope of its option. The policy covers the rest.
mod answers_and_policies {
    use super::matrix;

    #[test]
    fn of_claude() {
        matrix("claude");
    }

    #[test]
    fn of_codex() {
        matrix("codex");
    }

    #[test]
    fn of_gemini() {
        matrix("gemini");
    }

    #[test]
    fn of_opencode() {
        matrix("opencode");
    }

    #[test]
    fn of_any_agent_that_speaks_acp() {
        matrix("mine");
    }
}

/// The option "always" states its scope in words that do not depend on the agent.
#[test]
fn the_option_says_its_scope_in_the_same_words_for_every_agent() {
    let mut words: BTreeMap<Category, BTreeSet<String>> = BTreeMap::new();
    for speaker in speakers().into_iter().filter(|speaker| speaker.agent != "mine") {
        let categories = speaker.categories.clone();
        let mut talk = Talk::begin(speaker, json!({}));
        for category in categories {
            let question = talk.asks(Wish { category, tool: "one", input: "a" }).unwrap();
            let always = question["options"].as_array().unwrap().iter().find(|o| o["value"] == "allow_always");
            let said = always.map(|always| {
                assert!(always["description"].as_str().unwrap().contains("until the run ends"), "{always}");
                format!("{}: {}", always["label"], always["description"])
            });
            words.entry(category).or_default().insert(said.unwrap_or_default());
        }
    }
    assert_eq!(words.keys().copied().collect::<Vec<_>>(), all());
    for (category, said) in &words {
        assert_eq!(said.len(), 1, "{category:?}: {said:?}");
        let said = said.first().unwrap();
        assert_eq!(said.is_empty(), *category == Category::Mode, "{said}");
    }
    assert!(words[&Category::Edit].first().unwrap().starts_with("\"Allow all file edits for this run\""));
    assert!(words[&Category::Execute].first().unwrap().starts_with("\"Allow this exact command for this run\""));
}

/// An answer "always" also resolves open requests that it covers.
#[test]
fn an_answer_always_also_resolves_open_questions() {
    for speaker in speakers() {
        let shown = speaker.agent;
        let mut talk = Talk::begin(speaker, json!({}));
        let edit = |input| Wish { category: Category::Edit, tool: "one", input };
        let first = talk.asks(edit("a")).unwrap();
        let second = talk.asks(edit("b")).unwrap();
        let command = talk.asks(Wish { category: Category::Execute, tool: "one", input: "a" }).unwrap();
        talk.answers(&first, "allow_always");
        assert_eq!(talk.told(), [Told::Once, Told::Once], "{shown}");
        let resolved = talk.resolved();
        assert_eq!(resolved.len(), 2, "{shown}");
        for (resolved, question) in resolved.iter().zip([&first, &second]) {
            assert_eq!(resolved["question_id"], question["question_id"]);
            assert_eq!((&resolved["resolution"], &resolved["value"]), (&json!("answered"), &json!("allow_always")));
        }
        assert!(
            talk.world
                .frames
                .iter()
                .filter(|f| f.value["payload"]["kind"] == "question_resolved")
                .all(|f| f.value["reply_to"] == "a")
        );
        talk.answers(&command, "deny");
        assert_eq!(talk.told(), [Told::Denied], "{shown}");
    }
}

/// If an agent offers only lasting permissions, none is given, because their scope is unknown.
#[test]
fn a_lasting_option_of_the_agents_is_never_chosen() {
    for (policy, asked) in [("ask", true), ("allow", false)] {
        let speaker = speakers().into_iter().find(|speaker| speaker.agent == "mine").unwrap();
        let mut talk = Talk::begin(speaker, json!({"permissions": policy}));
        let mut request = generic_asks(Wish { category: Category::Edit, tool: "one", input: "a" }, 7).remove(0);
        request["params"]["options"].as_array_mut().unwrap().retain(|option| option["kind"] != "allow_once");
        let seen = talk.world.frames.len();
        talk.says(&request);
        let frames: Vec<Value> = talk.world.frames[seen..].iter().map(|frame| frame.value.clone()).collect();
        assert!(frames.iter().any(|frame| frame["payload"]["code"] == "unsupported_option"), "{frames:?}");
        let question = frames.iter().find(|frame| frame["type"] == "run.question").map(|frame| &frame["payload"]);
        assert_eq!(question.is_some(), asked);
        if let Some(question) = question {
            assert_eq!(options(question), ["deny"]);
            talk.answers(question, "allow_always");
            assert_eq!(talk.told(), [], "what is not offered is no answer");
            talk.answers(question, "deny");
        }
        assert_eq!(talk.told(), [Told::Denied]);
    }
}

/// Nobody can approve an edit of unknown files, or an unknown command.
#[test]
fn an_edit_without_its_files_and_an_unstated_command_are_denied_unasked() {
    for (category, field) in [(Category::Edit, "locations"), (Category::Execute, "rawInput")] {
        for (policy, told) in [("ask", Told::Denied), ("allow", Told::Once)] {
            let speaker = speakers().into_iter().find(|speaker| speaker.agent == "mine").unwrap();
            let mut talk = Talk::begin(speaker, json!({"permissions": policy}));
            let mut request = generic_asks(Wish { category, tool: "one", input: "a" }, 7).remove(0);
            request["params"]["toolCall"][field].take();
            talk.says(&request);
            assert_eq!(talk.told(), [told], "{category:?} {policy}");
            let frames: Vec<Value> = talk.world.frames.iter().map(|frame| frame.value.clone()).collect();
            assert!(frames.iter().all(|frame| frame["type"] != "run.question"), "{frames:?}");
            let warned = frames.iter().any(|frame| frame["payload"]["code"] == "agent_output_unparsed");
            assert_eq!(warned, told == Told::Denied, "{frames:?}");
        }
    }
}

/// A denial states the reason if the agent accepts one. "Always" and "once" carry no text.
#[test]
fn only_a_denial_carries_a_message() {
    for value in ANSWERS {
        let mut talk = Talk::begin(speakers().remove(0), json!({}));
        let question = talk.asks(Wish { category: Category::Edit, tool: "one", input: "a" }).unwrap();
        let payload = json!({"question_id": question["question_id"], "value": value, "message": "use mktemp"});
        talk.world.hear(&json!({"v": "1", "type": "run.input", "payload": payload}).to_string());
        let Some(Sent::Line(line)) = talk.world.host_mut().sent.pop_front() else { panic!("no answer") };
        assert_eq!(line.contains("use mktemp"), value == "deny", "{line}");
    }
}

/// Whoever allows a call once may give its tool another input, where the agent takes it.
#[test]
fn an_input_goes_with_one_call_that_is_allowed() {
    let input = json!({"file_path": "/work/b", "content": "x"});
    for (speaker, given, answered) in [
        (0, json!({"value": "allow_once", "updated_input": input}), true),
        (0, json!({"value": "allow_always", "updated_input": input}), false),
        (0, json!({"value": "deny", "updated_input": input}), false),
        (0, json!({"declined": true, "updated_input": input}), false),
        (0, json!({"value": "allow_once", "updated_input": ["x"]}), false),
        (1, json!({"value": "allow_once", "updated_input": input}), false),
        (2, json!({"value": "allow_once", "updated_input": input}), false),
    ] {
        let mut talk = Talk::begin(speakers().remove(speaker), json!({}));
        let question = talk.asks(Wish { category: Category::Edit, tool: "one", input: "a" }).unwrap();
        let mut payload = given.clone();
        payload["question_id"] = question["question_id"].clone();
        talk.world.hear(&json!({"v": "1", "type": "run.input", "payload": payload}).to_string());
        let frames: Vec<&Value> = talk.world.frames.iter().map(|frame| &frame.value["payload"]).collect();
        let ignored = frames.iter().filter(|frame| frame["code"] == "invalid_answer").count();
        let resolved = frames.iter().filter(|frame| frame["kind"] == "question_resolved").count();
        assert_eq!((ignored, resolved), (usize::from(!answered), usize::from(answered)), "{speaker} {given}");
        match talk.world.host_mut().sent.pop_front() {
            Some(Sent::Line(line)) if answered => {
                assert!(line.contains(&format!("\"behavior\":\"allow\",\"updatedInput\":{input}")), "{line}");
            }
            None if !answered => {}
            _ => panic!("{speaker} {given}"),
        }
    }
}

/// If no frame can show an action, nobody is asked about it. The options of a permission keep their texts.
#[test]
fn an_action_that_no_frame_can_show_is_denied() {
    let long = "a long plan of many words ".repeat(4000);
    let long: &'static str = Box::leak(long.into_boxed_str());
    let payload = json!({"max_frame_bytes": 16384, "secrets": ["without a question", "Allow all file edits"]});
    for (speaker, category) in [(0, Category::Mode), (0, Category::Edit), (2, Category::Edit), (3, Category::Other)] {
        let mut talk = Talk::begin(speakers().swap_remove(speaker), payload.clone());
        let whole = talk.asks(Wish { category, tool: "one", input: "a" }).unwrap();
        let wanted: &[&str] =
            if category == Category::Mode { &["allow_once", "deny"] } else { &["allow_once", "allow_always", "deny"] };
        assert_eq!(options(&whole), wanted);
        assert!(!whole["options"].to_string().contains("[redacted]"), "{whole}");
        assert!(talk.asks(Wish { category, tool: "one", input: long }).is_none(), "{category:?}");
        let warned = |line: &str| line.contains("permission_too_long");
        assert!(talk.world.frames.iter().any(|frame| warned(&frame.line)), "{category:?}");
        let longest = talk.world.frames.iter().map(|frame| frame.line.len()).max().unwrap();
        assert!(longest <= 16384, "{longest}");
    }
}

/// A patch that edits and deletes differs from a plain edit or deletion: the strictest policy decides, and no earlier
/// answer covers it.
#[test]
fn a_request_of_several_categories_is_decided_by_the_strictest() {
    let patch = |talk: &mut Talk, number: usize| {
        let change = |path: &str, kind: &str| json!({"path": path, "kind": {"type": kind}, "diff": "x\n"});
        let changes = json!([change("a", "update"), change("b", "delete")]);
        let item = json!({"type": "fileChange", "id": format!("c{number}"), "changes": changes});
        talk.says(&json!({"method": "item/started", "params": {"threadId": "t", "turnId": "u", "item": item}}));
        let params = json!({"threadId": "t", "turnId": "u", "itemId": format!("c{number}")});
        let seen = talk.world.frames.len();
        talk.says(&json!({"id": number, "method": "item/fileChange/requestApproval", "params": params}));
        let asked = talk.world.frames[seen..].iter().find(|frame| frame.value["type"] == "run.question");
        asked.map(|frame| frame.value["payload"].clone())
    };
    let talk = |permissions: Value| Talk::begin(speakers().swap_remove(1), json!({"permissions": permissions}));
    for (permissions, told) in [
        (json!({"edit": "deny", "*": "allow"}), Told::Denied),
        (json!({"delete": "deny", "*": "allow"}), Told::Denied),
        (json!({"edit": "deny", "*": "ask"}), Told::Denied),
        (json!("allow"), Told::Once),
    ] {
        let mut talk = talk(permissions.clone());
        assert_eq!(patch(&mut talk, 1), None, "{permissions}");
        assert_eq!(talk.told(), [told], "{permissions}");
    }
    let mut talk = talk(json!({"delete": "allow", "*": "ask"}));
    let edit = Wish { category: Category::Edit, tool: "one", input: "a" };
    assert_eq!(talk.request(edit, "allow_always").told, Told::Once);
    let question = patch(&mut talk, 1).expect("it also deletes");
    assert_eq!((options(&question), &question["subject"]["category"]), (vec!["allow_once", "deny"], &json!("delete")));
}

/// No request comes from an agent that allows by itself, whatever it calls its modes.
#[test]
fn a_denied_action_that_the_agent_does_without_a_request_stops_the_run() {
    let update = |update: Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    let by_category = |policy: &str| json!({"execute": policy, "*": "allow"});
    for (permissions, kind, asks, stops) in [
        (json!("deny"), "execute", false, true),
        (json!("deny"), "edit", false, true),
        (json!("deny"), "read", false, false),
        (json!("read-only"), "delete", false, true),
        (by_category("deny"), "execute", false, true),
        (by_category("deny"), "edit", false, false),
        (json!("ask"), "execute", false, false),
        (json!({"other": "allow", "*": "deny"}), "execute", true, false),
    ] {
        let speaker = speakers().into_iter().find(|speaker| speaker.agent == "mine").unwrap();
        let mut talk = Talk::begin(speaker, json!({"permissions": permissions}));
        let about = json!({"toolCallId": "c", "title": "x", "kind": kind, "rawInput": {"command": "x"}});
        let message = |name: &str, status: &str| {
            let mut message = about.clone();
            (message["sessionUpdate"], message["status"]) = (json!(name), json!(status));
            update(message)
        };
        if asks {
            // The request has another category than the call.
            let asked = json!({"toolCallId": "c", "title": "x", "kind": "other", "rawInput": {"command": "x"}});
            talk.says(&acp_request(7, &asked));
        }
        talk.says(&message("tool_call", "in_progress"));
        assert!(!talk.world.is_decided(), "{permissions} {kind}");
        talk.says(&message("tool_call_update", "completed"));
        assert_eq!(talk.world.is_decided(), stops, "{permissions} {kind}");
        if stops {
            talk.world.gone(playback::world::killed(9), "");
            let end = &talk.world.frames.last().unwrap().value["payload"];
            assert_eq!((&end["code"], &end["detail"]["limit"]), (&json!("limit_reached"), &json!("permissions")));
        }
    }
}

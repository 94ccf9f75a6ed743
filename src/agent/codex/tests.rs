//! Cases that no recording has.

use super::Codex;
use crate::agent::{AgentEvent, AskKey, Base, Driver, DriverOutput, Line, Reply, TurnOver};
use crate::protocol::failure::Code;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::{Answer, Kind};
use crate::protocol::request::Options;
use crate::protocol::text::Text;
use crate::protocol::words::{Category, Level, ToolState, TurnOrigin};

fn told(codex: &mut Codex, line: &str) -> DriverOutput {
    let mut out = DriverOutput::default();
    codex.line(Line::Text(line.into()), &mut out);
    out
}

/// A driver that has sent the prompt, or what it asks before it, in thread `t`.
fn open(prompt: &str, options: Options) -> (Codex, DriverOutput) {
    let mut codex = Codex::new(Base::command("codex"));
    let settings = options.resolve(prompt.into(), "codex".into(), "/w".into());
    codex.launch(&settings, &mut DriverOutput::default()).unwrap();
    told(&mut codex, r#"{"id":1,"result":{"userAgent":"x/1.2.3 (y)"}}"#);
    told(&mut codex, r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}"#);
    let out = told(&mut codex, r#"{"id":3,"result":{"thread":{"id":"t","cliVersion":"0.1"},"model":"m"}}"#);
    (codex, out)
}

fn running() -> Codex {
    let (mut codex, _) = open("x", Options::default());
    told(&mut codex, r#"{"id":4,"result":{"turn":{"id":"u"}}}"#);
    codex
}

#[test]
fn a_raw_prompt_calls_a_skill() {
    let raw = || Options { raw_prompt: Some(true), ..Options::default() };
    let skills = r#"{"id":4,"result":{"data":[{"cwd":"/w","errors":[],"skills":[
        {"name":"birds","path":"/off/SKILL.md","enabled":false},{"name":"birds","path":"/s/SKILL.md","enabled":true}]}]}}"#
        .replace('\n', "");
    let named = r#"{"name":"birds","path":"/s/SKILL.md","type":"skill"}"#;
    for (prompt, answer, text, is_named) in [
        ("/birds Ada", &*skills, "$birds Ada", true),
        ("/fish Ada", &*skills, "/fish Ada", false),
        ("/birds Ada", r#"{"id":4,"error":{"code":-32600,"message":"unknown variant"}}"#, "/birds Ada", false),
    ] {
        let (mut codex, out) = open(prompt, raw());
        assert!(out.send[0].contains(r#""method":"skills/list""#), "{:?}", out.send);
        let out = told(&mut codex, answer);
        assert!(out.send[0].contains(r#""method":"turn/start""#) && out.send[0].contains(text), "{:?}", out.send);
        assert_eq!((out.send[0].contains(named), out.events.len()), (is_named, usize::from(!is_named)));
        assert_eq!(out.send.len(), 1);
    }
    for (prompt, options) in [("/birds Ada", Options::default()), ("/etc/hosts is wrong", raw()), ("birds", raw())] {
        assert!(open(prompt, options).1.send[0].contains(r#""method":"turn/start""#), "{prompt}");
    }
    let (mut codex, _) = open("/birds", raw());
    let mut out = DriverOutput::default();
    assert!(codex.interrupt_turn(&mut out));
    assert!(matches!(out.events[..], [AgentEvent::TurnOver(TurnOver::Interrupted)]));
    assert!(told(&mut codex, &skills).send.is_empty(), "the prompt was taken back");
}

#[test]
fn a_conversation_reports_the_skills() {
    let chat = Options { progress: Some(Level::Full), conversation: Some(true), ..Options::default() };
    let (mut codex, out) = open("Hi", chat);
    assert!(out.send[1].contains(r#""method":"skills/list""#), "{:?}", out.send);
    let skills = r#"{"id":5,"result":{"data":[{"skills":[{"name":"off","path":"/o","enabled":false},
        {"name":"birds","path":"/s","description":"Counts  birds","enabled":true}]}]}}"#;
    let out = told(&mut codex, &skills.replace('\n', ""));
    let [AgentEvent::Commands(all)] = &out.events[..] else { panic!("{:?}", out.events) };
    let description = all[0].description.as_ref().map(Text::unredacted);
    assert_eq!((all.len(), all[0].name.unredacted(), description), (1, "birds", Some("Counts birds")));
    assert!(out.send.is_empty());
}

const APPROVAL: &str = r#"{"id":0,"method":"item/commandExecution/requestApproval",
    "params":{"threadId":"t","turnId":"u","itemId":"c","command":"ls"}}"#;

#[test]
fn a_request_that_codex_resolves_itself_is_withdrawn() {
    let mut codex = running();
    assert!(matches!(told(&mut codex, APPROVAL).events[..], [AgentEvent::Ask { .. }]));
    let gone = r#"{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":0}}"#;
    assert!(matches!(told(&mut codex, gone).events[..], [AgentEvent::AskWithdrawn { .. }]));
    assert!(told(&mut codex, gone).events.is_empty());
}

#[test]
fn lists_have_a_limit() {
    let labels: Vec<String> = (0..1500).map(|n| format!("\"{n}\"")).collect();
    let labels = labels.join(",");
    let one = format!(r#"{{"id":"q","header":"H","question":"Q","options":[{labels}]}}"#);
    let many = vec![one; 101].join(",");
    let asynchronous = format!(r#"{{"title":"Q","options":[{labels}]}}"#);
    let property = format!(r#"{{"type":"string","enum":[{labels}]}}"#);
    let properties: Vec<String> = (0..101).map(|n| format!(r#""p{n}":{property}"#)).collect();
    for line in [
        format!(
            r#"{{"id":0,"method":"item/tool/requestUserInput","params":{{"threadId":"t","turnId":"u","questions":[{many}]}}}}"#
        ),
        format!(
            r#"{{"method":"item/completed","params":{{"threadId":"t","turnId":"u","item":{{"type":"agentMessage","id":"c",
            "text":"?","delivery":"async","questions":[{}]}}}}}}"#,
            vec![asynchronous; 101].join(",")
        ),
        format!(
            r#"{{"id":0,"method":"mcpServer/elicitation/request","params":{{"threadId":"t","turnId":"u","message":"M",
            "requestedSchema":{{"properties":{{{}}}}}}}}}"#,
            properties.join(",")
        ),
    ] {
        let events = told(&mut running(), &line).events;
        let [AgentEvent::Ask { asks, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!((asks.len(), asks.dropped()), (100, 1));
        let Kind::Select { choices, .. } = &asks[0].kind else { panic!("{:?}", asks[0]) };
        assert_eq!(choices.warning("Q").as_deref(), Some("Dropped 500 options of Q: the limit is 1000"));
    }
    let steps = vec![r#"{"step":"s","status":"pending"}"#; 1001].join(",");
    let plan = format!(r#"{{"method":"turn/plan/updated","params":{{"threadId":"t","turnId":"u","plan":[{steps}]}}}}"#);
    let events = told(&mut running(), &plan).events;
    let [AgentEvent::Plan(entries)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((entries.len(), entries.dropped()), (1000, 1));
}

#[test]
fn the_servers_of_the_last_256_denied_calls_are_remembered() {
    let ask = |id: usize| {
        format!(
            r#"{{"id":{id},"method":"mcpServer/elicitation/request","params":{{"threadId":"t","turnId":"u","serverName":"s{id}",
            "_meta":{{"codex_approval_kind":"mcp_tool_call","tool_name":"x"}},"message":"M","requestedSchema":{{"type":"object","properties":{{}}}}}}}}"#
        )
    };
    let mut codex = running();
    for id in 0..257 {
        let events = told(&mut codex, &ask(id)).events;
        let [AgentEvent::Ask { key, .. }] = &events[..] else { panic!("{events:?}") };
        codex.answer(key, &[Reply::Denied(None)], &mut DriverOutput::default());
    }
    for (server, state) in [(0, ToolState::Failed), (1, ToolState::Denied), (256, ToolState::Denied)] {
        let call = format!(
            r#"{{"method":"item/completed","params":{{"threadId":"t","turnId":"u","item":{{"type":"mcpToolCall","id":"c{server}","server":"s{server}","tool":"x","status":"failed"}}}}}}"#
        );
        let events = told(&mut codex, &call).events;
        let Some(AgentEvent::ToolOver { state: seen, .. }) = events.last() else { panic!("{events:?}") };
        assert_eq!(*seen, state, "{server}");
    }
}

#[test]
fn the_end_of_a_turn_withdraws_its_requests() {
    let mut codex = running();
    told(&mut codex, APPROVAL);
    let over = r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#;
    let events = told(&mut codex, over).events;
    assert!(matches!(events[..], [AgentEvent::AskWithdrawn { .. }, AgentEvent::TurnOver(TurnOver::Completed { .. })]));
}

#[test]
fn a_request_that_is_not_known_is_refused() {
    let out = told(&mut running(), r#"{"id":"x-1","method":"currentTime/read","params":{}}"#);
    assert!(out.send[0].starts_with(r#"{"jsonrpc":"2.0","id":"x-1","error":{"code":-32601,"#), "{:?}", out.send);
}

#[test]
fn the_end_of_a_turn_waits_for_an_open_question() {
    let mut codex = running();
    let asked = r#"{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":{"type":"agentMessage",
        "id":"c","text":"?","delivery":"async","questions":[{"title":"Which?","options":null}]}}}"#;
    let [AgentEvent::Ask { key, .. }] = &told(&mut codex, asked).events[..] else { panic!("no question") };
    let key = AskKey(key.0.clone());
    let over = |turn: &str| {
        format!(
            r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"{turn}","status":"completed"}}}}}}"#
        )
    };
    assert!(told(&mut codex, &over("u")).events.is_empty());
    let mut out = DriverOutput::default();
    codex.answer(&key, &[Reply::Answer(Answer::Text("this".into()))], &mut out);
    assert!(out.send[0].contains("turn/start"));
    assert!(told(&mut codex, r#"{"id":5,"result":{"turn":{"id":"v"}}}"#).events.is_empty());
    assert!(matches!(told(&mut codex, &over("v")).events[..], [AgentEvent::TurnOver(TurnOver::Completed { .. })]));
}

#[test]
fn usage_of_another_turn_does_not_count() {
    let mut codex = running();
    let usage = |turn: &str, total: u64| {
        format!(
            r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"t","turnId":"{turn}","tokenUsage":
            {{"total":{{"totalTokens":{total}}},"last":{{"inputTokens":5,"outputTokens":2}}}}}}}}"#
        )
    };
    assert!(told(&mut codex, &usage("old", 1)).events.is_empty());
    for (total, sum) in [(10, Some(5)), (10, None), (20, Some(10))] {
        let events = told(&mut codex, &usage("u", total)).events;
        let got = events.iter().find_map(|event| match event {
            AgentEvent::Usage(usage) => usage.input_tokens,
            _ => None,
        });
        assert_eq!(got, sum);
    }
}

#[test]
fn an_interrupt_before_any_turn_is_over_at_once() {
    let mut codex = Codex::new(Base::command("codex"));
    let mut out = DriverOutput::default();
    codex.interrupt(&mut out);
    assert!(matches!(out.events[..], [AgentEvent::TurnOver(TurnOver::Interrupted)]));
}

#[test]
fn the_last_error_message_explains_an_exit_without_a_result() {
    let mut codex = running();
    told(&mut codex, r#"{"method":"error","params":{"threadId":"t","error":{"message":"No."},"willRetry":false}}"#);
    let TurnOver::Failed(failure) = codex.exited(AgentExit { code: Some(0), signal: None }, true, &Text::default())
    else {
        panic!()
    };
    assert_eq!(failure.agent_message, Some("No.".into()));

    let mut codex = Codex::new(Base::command("codex"));
    codex
        .launch(&Options::default().resolve("x".into(), "codex".into(), "/w".into()), &mut DriverOutput::default())
        .unwrap();
    let refused = told(&mut codex, r#"{"id":1,"error":{"code":-32600,"message":"No.","data":"Not here."}}"#);
    let [AgentEvent::TurnOver(TurnOver::Failed(failure))] = &refused.events[..] else { panic!("{:?}", refused.events) };
    assert_eq!(failure.agent_message, Some("No.\nNot here.".into()));
}

#[test]
fn stderr_is_not_shown() {
    let mut codex = Codex::new(Base::command("codex"));
    let settings = Options::default().resolve("x".into(), "codex".into(), "/w".into());
    assert!(!codex.features(&settings).stderr_is_fit);
    let exit = AgentExit { code: Some(1), signal: None };
    let TurnOver::Failed(failure) = codex.exited(exit, false, &"sk-piece-of-a-key".into()) else {
        panic!("no failure")
    };
    assert!(!failure.message.text().contains("sk-piece"));
}

#[test]
fn only_known_messages_without_a_required_field_cause_a_warning() {
    let own = r#""threadId":"t","turnId":"u""#;
    for line in [
        r#"{"method":"item/started"}"#.to_owned(),
        r#"{"method":"item/started","params":[1]}"#.into(),
        format!(r#"{{"method":"item/completed","params":{{{own}}}}}"#),
        format!(r#"{{"method":"item/completed","params":{{{own},"item":{{"id":"a"}}}}}}"#),
        format!(r#"{{"method":"item/completed","params":{{{own},"item":{{"id":"a","type":"agentMessage"}}}}}}"#),
        format!(r#"{{"method":"item/agentMessage/delta","params":{{{own},"itemId":"a"}}}}"#),
        format!(r#"{{"method":"item/reasoning/textDelta","params":{{{own}}}}}"#),
        format!(r#"{{"method":"turn/plan/updated","params":{{{own}}}}}"#),
        format!(r#"{{"method":"thread/tokenUsage/updated","params":{{{own}}}}}"#),
        format!(r#"{{"method":"error","params":{{{own},"willRetry":true}}}}"#),
        r#"{"method":"serverRequest/resolved","params":{}}"#.into(),
        r#"{"method":"turn/completed"}"#.into(),
        format!(r#"{{"method":"turn/completed","params":{{{own}}}}}"#),
        r#"{"id":"r","method":"item/commandExecution/requestApproval"}"#.into(),
        format!(r#"{{"id":"r","method":"item/tool/requestUserInput","params":{{{own}}}}}"#),
    ] {
        let events = told(&mut running(), &line).events;
        assert!(matches!(events[..], [AgentEvent::Unparsed]), "{line}: {events:?}");
    }
    for line in [
        r#"{"method":"turn/started"}"#,
        r#"{"method":"later/versions","params":[1]}"#,
        r#"{"method":"item/completed","params":{"threadId":"t","item":{"id":"a","type":"laterVersions"}}}"#,
        r#"{"method":"item/started","params":{"threadId":"t","item":{"id":"a","type":"agentMessage"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"a sub-agent's"}}"#,
        r#"{"method":"error","params":{"threadId":"t","error":{"message":"m"},"willRetry":false}}"#,
        r#"{"id":"r","method":"item/tool/call","params":{"tool":"another"}}"#,
    ] {
        assert!(told(&mut running(), line).events.is_empty(), "{line}");
    }
}

#[test]
fn a_message_whose_pieces_cut_a_character_is_not_withdrawn() {
    let mut codex = running();
    codex.items.wants.full = true;
    let own = r#""threadId":"t","turnId":"u""#;
    let delta = |literal: &str| {
        format!(r#"{{"method":"item/agentMessage/delta","params":{{{own},"itemId":"m","delta":"{literal}"}}}}"#)
    };
    let item = r#""item":{"id":"m","type":"agentMessage","text":"a😀b"}"#;
    let whole = format!(r#"{{"method":"item/completed","params":{{{own},{item}}}}}"#);
    let lines = [delta(r"a\ud83d"), delta(r"\ude00"), whole];
    let said = lines.iter().flat_map(|line| told(&mut codex, line).events).map(|event| match event {
        AgentEvent::Text { message, piece, .. } => (message.0, piece.unredacted().to_owned()),
        other => panic!("{other:?}"),
    });
    assert_eq!(said.collect::<Vec<_>>(), ["a", "\u{1f600}", "b"].map(|piece| (1, piece.to_owned())));
}

#[test]
fn finished_calls_and_messages_are_not_remembered() {
    let mut codex = running();
    codex.items.wants.full = true;
    let item = |method: &str, id: usize, item: &str| {
        format!(
            r#"{{"method":"item/{method}","params":{{"threadId":"t","turnId":"u","item":{{"id":"i{id}",{item}}}}}}}"#
        )
    };
    let (command, change) = (r#""type":"commandExecution","command":"ls""#, r#""type":"fileChange","changes":[]"#);
    for id in 0..1000 {
        for (at, kind) in [command, change].into_iter().enumerate() {
            told(&mut codex, &item("started", 2 * id + at, kind));
            told(&mut codex, &item("completed", 2 * id + at, kind));
        }
        let delta = format!(
            r#"{{"method":"item/agentMessage/delta","params":{{"threadId":"t","turnId":"u","itemId":"m{id}","delta":"x"}}}}"#
        );
        told(&mut codex, &delta);
        told(
            &mut codex,
            &item("completed", id, r#""type":"agentMessage","text":"x""#).replace(r#""id":"i"#, r#""id":"m"#),
        );
    }
    assert_eq!(codex.items.open(), 0);
    assert!(
        told(&mut codex, &item("started", 1998, command)).events.is_empty(),
        "a late message about a finished call"
    );
    told(&mut codex, &item("started", 2000, command));
    assert_eq!(codex.items.open(), 1);
    told(
        &mut codex,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"interrupted"}}}"#,
    );
    assert_eq!(codex.items.open(), 0);
}

#[test]
fn a_permission_shows_every_part_of_its_request() {
    let detail = |method: &str, fields: &str| {
        let line = format!(
            r#"{{"id":0,"method":"item/{method}/requestApproval","params":{{"threadId":"t","turnId":"u","itemId":"c",{fields}}}}}"#
        );
        let events = told(&mut running(), &line).events;
        let [AgentEvent::Ask { asks, .. }] = &events[..] else { panic!("{events:?}") };
        asks[0].subject.as_ref().unwrap().detail.clone()
    };
    let action = |command: &str| format!(r#""commandActions":[{{"type":"unknown","command":"{command}"}}]"#);
    for (fields, wanted) in [
        (format!(r#""command":"/bin/bash -lc 'npm test'","cwd":"/w",{}"#, action("npm test")), "npm test"),
        (
            format!(r#""command":"bash -lc 'npm test'","cwd":"/etc","environmentId":"far",{}"#, action("npm test")),
            "npm test\ncwd: \"/etc\"\nenvironmentId: \"far\"",
        ),
        // Codex leaves the change of the directory out of the action.
        (format!(r#""command":"bash -lc 'cd / && rm a'",{}"#, action("rm a")), "cd / && rm a"),
        (
            r#""command":"ls","networkApprovalContext":{"host":"a.b","protocol":"ssh"}"#.into(),
            "a.b\ncommand: \"ls\"\nnetworkApprovalContext: {\"host\":\"a.b\",\"protocol\":\"ssh\"}",
        ),
    ] {
        assert_eq!(detail("commandExecution", &fields), wanted);
    }
    assert_eq!(detail("fileChange", r#""reason":"r","grantRoot":"/""#), "grantRoot: \"/\"");
}

fn approved(params: &str) -> (Category, Vec<Category>, Vec<String>) {
    let line = format!(
        r#"{{"id":0,"method":"item/commandExecution/requestApproval",
        "params":{{"threadId":"t","turnId":"u","itemId":"c",{params}}}}}"#
    );
    let events = told(&mut running(), &line).events;
    let [AgentEvent::Ask { asks, .. }] = &events[..] else { panic!("{events:?}") };
    let subject = asks[0].subject.as_ref().unwrap();
    let places = subject.locations.iter().map(|place| place.path.unredacted().to_owned()).collect();
    (subject.category, asks[0].also.clone(), places)
}

#[test]
fn a_command_that_only_looks_is_a_read_or_a_search() {
    let read = |more: &str| approved(&format!(r#""command":"/bin/bash -lc 'cat a'","kind":"command"{more}"#));
    assert_eq!(read(r#","cwd":"/w/sub""#), (Category::Read, vec![], vec!["/w/sub/a".to_owned()]));
    for more in ["", r#","cwd":"/w","additionalPermissions":{"network":true}"#] {
        assert_eq!(read(more).0, Category::Execute, "{more}");
    }
    for (command, wanted) in [
        ("/bin/bash -lc 'grep -rn x .'", (Category::Search, vec![], vec!["/w".to_owned()])),
        ("/bin/bash -lc 'cat a | grep x'", (Category::Read, vec![Category::Search], vec!["/w/a".into(), "/w".into()])),
        ("/bin/bash -lc 'cat a; touch x'", (Category::Execute, vec![], vec![])),
        ("/tmp/bash -lc 'cat a'", (Category::Execute, vec![], vec![])),
    ] {
        assert_eq!(approved(&format!(r#""command":"{command}","cwd":"/w""#)), wanted, "{command}");
    }
    let typed = approved(r#""command":"/bin/bash -lc 'cat a'","cwd":"/w","kind":"writeStdin""#);
    assert_eq!(typed.0, Category::Execute, "input for a running command");
}

#[test]
fn a_permission_for_a_patch_shows_where_a_file_moves_to() {
    for (diff, shown) in
        [("-a\\n+b\\n", "-a\n+b\nMoved to: /etc/b\n"), ("-a\\nMoved to: /etc/b", "-a\nMoved to: /etc/b\n")]
    {
        let change = format!(r#"{{"path":"/w/a","kind":{{"type":"update","move_path":"/etc/b"}},"diff":"{diff}"}}"#);
        let item = format!(r#"{{"type":"fileChange","id":"c","changes":[{change}]}}"#);
        let mut codex = running();
        told(
            &mut codex,
            &format!(r#"{{"method":"item/started","params":{{"threadId":"t","turnId":"u","item":{item}}}}}"#),
        );
        let events = told(
            &mut codex,
            r#"{"id":0,"method":"item/fileChange/requestApproval","params":{"threadId":"t","turnId":"u","itemId":"c"}}"#,
        )
        .events;
        let [AgentEvent::Ask { asks, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(asks[0].subject.as_ref().unwrap().detail, format!("update /w/a\n{shown}").as_str());
    }
}

#[test]
fn an_exit_before_the_thread_is_open_is_a_failed_start() {
    let exit = |codex: &mut Codex, code, signal| match codex.exited(AgentExit { code, signal }, true, &Text::default())
    {
        TurnOver::Failed(failure) => failure.code,
        other => panic!("{other:?}"),
    };
    let mut opening = Codex::new(Base::command("codex"));
    opening
        .launch(&Options::default().resolve("x".into(), "codex".into(), "/w".into()), &mut DriverOutput::default())
        .unwrap();
    assert_eq!(exit(&mut opening, Some(0), None), Code::AgentStartFailed);
    assert_eq!(exit(&mut opening, None, Some(9)), Code::AgentExited);
    assert_eq!(exit(&mut running(), Some(0), None), Code::AgentExited);
}

#[test]
fn a_mode_is_given_with_the_threads_model() {
    let launched = |mode: &str| {
        let mut codex = Codex::new(Base::command("codex"));
        let options = Options { mode: Some(mode.into()), effort: Some("high".into()), ..Options::default() };
        let launch =
            codex.launch(&options.resolve("x".into(), "codex".into(), "/w".into()), &mut DriverOutput::default());
        launch.map(|_| codex)
    };
    let mut codex = launched("plan").unwrap();
    told(&mut codex, r#"{"id":1,"result":{"userAgent":"x/1.2.3 (y)"}}"#);
    told(&mut codex, r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}"#);
    let out = told(&mut codex, r#"{"id":3,"result":{"thread":{"id":"t"},"model":"m"}}"#);
    let wanted = r#""collaborationMode":{"mode":"plan","settings":{"developer_instructions":null,"model":"m","reasoning_effort":"high"}}"#;
    assert!(out.send[0].contains(wanted), "{}", out.send[0]);
    let failure = launched("heron").err().unwrap();
    assert_eq!(failure.code, Code::InvalidRequest);
    assert!(
        failure.message.text().unredacted().ends_with("Its modes are: default, plan."),
        "{}",
        failure.message.text().unredacted()
    );
}

fn background(out: &DriverOutput) -> Option<Vec<&str>> {
    out.events.iter().find_map(|event| match event {
        AgentEvent::Background(work) => Some(work.iter().map(Text::unredacted).collect()),
        _ => None,
    })
}

#[test]
fn a_command_that_outlives_its_turn_is_work_in_the_background() {
    let mut codex = running();
    let item = |method: &str, state: &str| {
        format!(
            r#"{{"method":"item/{method}","params":{{"threadId":"t","turnId":"u","item":{{"type":"commandExecution",
            "id":"c","command":"make","status":"{state}","cwd":"/w"}}}}}}"#
        )
    };
    assert_eq!(background(&told(&mut codex, &item("started", "inProgress"))), None);
    let over =
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed","items":[]}}}"#;
    let over = told(&mut codex, over);
    assert_eq!(background(&over), Some(vec!["make"]));
    assert!(matches!(over.events[..], [AgentEvent::Background(_), AgentEvent::TurnOver(_)]), "{:?}", over.events);
    assert_eq!(background(&told(&mut codex, &item("completed", "completed"))), Some(vec![]));
    // Codex ends the commands of an interrupted turn, and does not report their ends.
    told(&mut codex, &item("started", "inProgress"));
    let interrupted =
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"interrupted","items":[]}}}"#;
    assert_eq!(background(&told(&mut codex, interrupted)), None);
}

#[test]
fn codex_begins_turns_by_itself_for_an_active_goal() {
    let mut codex = running();
    let goal = |status: &str| {
        let goal = format!(r#"{{"threadId":"t","objective":"Fix it","status":"{status}"}}"#);
        format!(r#"{{"method":"thread/goal/updated","params":{{"threadId":"t","turnId":"u","goal":{goal}}}}}"#)
    };
    assert_eq!(background(&told(&mut codex, &goal("active"))), Some(vec!["Fix it"]));
    let begun = |id: &str| {
        format!(
            r#"{{"method":"turn/started","params":{{"threadId":"t","turn":{{"id":"{id}","status":"inProgress"}}}}}}"#
        )
    };
    assert!(told(&mut codex, &begun("u")).events.is_empty(), "the turn of the prompt");
    let own = told(&mut codex, &begun("v"));
    assert!(matches!(own.events[..], [AgentEvent::TurnBegan(TurnOrigin::Agent)]), "{:?}", own.events);
    assert_eq!(background(&told(&mut codex, &goal("complete"))), Some(vec![]));
    // The turn of a prompt may be reported before the response to it.
    let mut codex = running();
    codex.follow_up("And now?", &[], &mut DriverOutput::default());
    assert!(told(&mut codex, &begun("w")).events.is_empty());
}

#[test]
fn a_sub_agent_is_a_call_and_work_that_outlives_the_turn() {
    let mut codex = running();
    let mut told = |method: &str, thread: &str, rest: &str| {
        told(&mut codex, &format!(r#"{{"method":"{method}","params":{{"threadId":"{thread}",{rest}}}}}"#)).events
    };
    let activity = |id: &str, kind: &str| {
        format!(
            r#""turnId":"u","item":{{"type":"subAgentActivity","id":"{id}","kind":"{kind}","agentThreadId":"c","agentPath":"/root/look"}}"#
        )
    };
    let turn = |status: &str| format!(r#""turn":{{"id":"v","status":"{status}"}}"#);
    let pending = |events: &[AgentEvent]| match events.last() {
        Some(AgentEvent::Background(names)) => names.iter().map(|name| name.unredacted().to_owned()).collect(),
        _ => vec!["not told".to_owned()],
    };
    let begun = told("item/started", "t", &activity("c1", "started"));
    let [AgentEvent::Tool { call, category, title: Some(title), .. }, AgentEvent::Background(_)] = &begun[..] else {
        panic!("{begun:?}")
    };
    assert_eq!((*category, title.unredacted()), (Category::Agent, "Agent: look"));
    assert!(told("item/completed", "t", &activity("c1", "started")).is_empty());
    let command = r#""turnId":"v","item":{"type":"commandExecution","id":"x","command":"ls","status":"inProgress"}"#;
    let shown = told("item/started", "c", command);
    assert!(matches!(&shown[..], [AgentEvent::Tool { parent, .. }] if *parent == Some(*call)), "{shown:?}");
    let over = told("turn/completed", "t", r#""turn":{"id":"u","status":"completed","items":[]}"#);
    assert!(matches!(over[..], [AgentEvent::TurnOver(_)]), "{over:?}");
    assert_eq!(pending(&told("turn/completed", "c", &turn("completed"))), [""; 0]);
    let ended = told("item/started", "t", &activity("done", "completed"));
    assert!(matches!(&ended[..], [AgentEvent::ToolOver { call: ended, .. }] if ended == call), "{ended:?}");
    // A further task for the same sub-agent.
    assert_eq!(pending(&told("turn/started", "c", &turn("inProgress"))), ["look"]);
    assert!(told("turn/started", "stranger", &turn("inProgress")).is_empty());
}

//! An MCP server that offers the tools of a run: to ask the user, and to submit the result. Pure: a message in, messages,
//! questions and results out; the caller moves the messages.

use super::ask_user;
use super::reply::{Reply, WITHDRAWN};
use super::result;
use super::rpc::{self, Incoming};
use crate::json::{Object, to_line};
use crate::protocol::limits;
use crate::protocol::question::Ask;
use crate::protocol::schema::{Mismatch, OutputSchema};
use crate::protocol::text::Json;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The supported protocol versions, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

const TOO_MANY: &str = "Too many questions are open: wait for their answers first.";

pub(crate) type RequestId = String;

#[derive(Clone, Debug, Default)]
pub struct Offered {
    pub ask: Option<&'static str>,
    pub result: Option<OutputSchema>,
}

impl From<&'static str> for Offered {
    fn from(ask: &'static str) -> Offered {
        Offered { ask: Some(ask), result: None }
    }
}

/// Its schema keeps the order of the properties, in which the model writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    annotations: Value,
    description: &'static str,
    input_schema: Option<Box<RawValue>>,
    name: &'static str,
    title: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct Server {
    offered: Offered,
    calls: BTreeMap<RequestId, Call>,
}

#[derive(Debug)]
struct Call {
    asks: Vec<Ask>,
    /// The progress token, verbatim, if the caller wants progress notifications.
    token: Option<String>,
    told: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Out {
    Nothing,
    Send(String),
    /// Questions for the user. [`Server::answer`] or [`Server::withdraw`] ends the call.
    Ask(RequestId, Vec<Ask>),
    /// The caller cancelled this call.
    Withdrawn(RequestId),
    /// A result, or the reasons why it does not fit, and the message to send back.
    Submitted(String, Result<Json, Vec<Mismatch>>),
}

impl Server {
    pub(crate) fn new(offered: impl Into<Offered>) -> Server {
        Server { offered: offered.into(), ..Server::default() }
    }

    pub(crate) fn message(&mut self, line: &str) -> Out {
        let error = |code, text| Out::Send(rpc::error("null", code, text));
        if serde_json::from_str::<&RawValue>(line).is_err() {
            return error(PARSE_ERROR, "The message is not valid JSON.");
        }
        let Some(object) = Object::parse(line) else {
            return error(INVALID_REQUEST, "A message must be one JSON object.");
        };
        match rpc::read(&object) {
            Some(Incoming::Request { id, method, params }) => self.request(id, &method, params.as_ref()),
            Some(Incoming::Notification { method, params: Some(params) }) if method == "notifications/cancelled" => {
                let id = params.raw("requestId").map(|raw| raw.get().to_owned());
                id.filter(|id| self.calls.remove(id).is_some()).map_or(Out::Nothing, Out::Withdrawn)
            }
            // We send the caller no requests, so no response is expected.
            Some(Incoming::Notification { .. } | Incoming::Response { .. }) => Out::Nothing,
            None => error(INVALID_REQUEST, "A message needs a `method`."),
        }
    }

    pub(crate) fn too_long(&self) -> String {
        rpc::error("null", INVALID_REQUEST, "A message must not be longer than 1 MiB.")
    }

    fn request(&mut self, id: &str, method: &str, params: Option<&Object<'_>>) -> Out {
        let fits = id.starts_with('"') || id.parse::<f64>().is_ok();
        if !fits || id.len() > limits::ID_CHARS {
            return Out::Send(rpc::error("null", INVALID_REQUEST, "An `id` must be a number or a short string."));
        }
        let result = match method {
            "tools/list" => return Out::Send(rpc::result(id, &BTreeMap::from([("tools", self.tools())]))),
            "initialize" => {
                let asked = params.and_then(|params| params.string("protocolVersion")).unwrap_or_default();
                json!({
                    "protocolVersion": VERSIONS.iter().find(|version| **version == asked).unwrap_or(&VERSIONS[0]),
                    "capabilities": {"tools": {}},
                    // The version of the tool and not of the program, so that recordings do not depend on a release.
                    "serverInfo": {"name": "spektacular", "version": "1"},
                })
            }
            "ping" => json!({}),
            "tools/call" => return self.call(id, params),
            _ => return Out::Send(rpc::error(id, rpc::METHOD_NOT_FOUND, "Unknown method.")),
        };
        Out::Send(rpc::result(id, &result))
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |name, title, description, input_schema: Option<Box<RawValue>>| Tool {
            annotations: json!({"readOnlyHint": true, "openWorldHint": false}),
            description,
            input_schema,
            name,
            title,
        };
        let asking = || to_raw_value(&ask_user::schema()).ok();
        let ask = self.offered.ask.map(|name| tool(name, "Ask the user", ask_user::DESCRIPTION, asking()));
        let submit = |schema: &OutputSchema| {
            tool(result::TOOL, "Submit the result", result::DESCRIPTION, Some(schema.of_objects()))
        };
        ask.into_iter().chain(self.offered.result.as_ref().map(submit)).collect()
    }

    fn submitted(&self, id: &str, schema: &OutputSchema, params: &Object<'_>) -> Out {
        let given = params.raw("arguments").map(|raw| Json::from(raw.value().to_owned()));
        let violations = match &given {
            Some(given) => schema.check(given),
            None => vec![Mismatch::of_whole("is missing")],
        };
        match given.filter(|_| violations.is_empty()) {
            Some(given) => Out::Submitted(rpc::result(id, &said(result::ACCEPTED, false)), Ok(given)),
            None => Out::Submitted(rpc::result(id, &failed(&result::refused(&violations))), Err(violations)),
        }
    }

    fn call(&mut self, id: &str, params: Option<&Object<'_>>) -> Out {
        let refuse = |text| Out::Send(rpc::error(id, INVALID_PARAMS, text));
        let Some(params) = params else { return refuse("Unknown tool.") };
        if let Some(schema) = self.offered.result.as_ref().filter(|_| params.is("name", result::TOOL)) {
            return self.submitted(id, schema, params);
        }
        if !self.offered.ask.is_some_and(|tool| params.is("name", tool)) {
            return refuse("Unknown tool.");
        }
        if self.calls.contains_key(id) {
            return refuse("Another call with this `id` is still open.");
        }
        if self.calls.len() >= limits::TOOL_CALLS {
            return Out::Send(rpc::result(id, &failed(TOO_MANY)));
        }
        match ask_user::read(params.object("arguments").as_ref()) {
            Err(why) => Out::Send(rpc::result(id, &failed(&why))),
            Ok(asks) => {
                let token = params.object("_meta").and_then(|meta| meta.raw("progressToken"));
                let token = token.map(|raw| raw.get().to_owned()).filter(|raw| raw.len() <= limits::ID_CHARS);
                self.calls.insert(id.to_owned(), Call { asks: asks.clone(), token, told: 0 });
                Out::Ask(id.to_owned(), asks)
            }
        }
    }

    /// `None`: the call was withdrawn.
    pub(crate) fn answer(&mut self, id: &str, replies: &[Reply]) -> Option<String> {
        let call = self.calls.remove(id)?;
        Some(rpc::result(id, &said(&ask_user::result(&call.asks, replies), false)))
    }

    pub(crate) fn withdraw(&mut self, id: &str) -> Option<String> {
        self.calls.remove(id)?;
        Some(rpc::result(id, &failed(WITHDRAWN)))
    }

    /// Drops a call that exceeds the limits. Returns the response.
    pub(crate) fn refuse(&mut self, id: &str) -> String {
        self.calls.remove(id);
        rpc::result(id, &failed(TOO_MANY))
    }

    /// Returns whether the call was open.
    pub(crate) fn forget(&mut self, id: &str) -> bool {
        self.calls.remove(id).is_some()
    }

    /// Progress notifications for the open calls that want them. They restart the caller's timeout.
    pub(crate) fn progress(&mut self) -> Vec<String> {
        let line = |call: &mut Call| {
            let token = call.token.as_ref()?;
            call.told += 1;
            Some(format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\
                 \"progress\":{},\"message\":\"Waiting for the user\"}}}}",
                call.told
            ))
        };
        self.calls.values_mut().filter_map(line).collect()
    }
}

fn said(text: &str, failed: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": failed})
}

fn failed(why: &str) -> Value {
    said(why, true)
}

/// The response to a notification, for a transport on which every message needs one.
pub(super) fn nothing() -> String {
    to_line(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}))
}

#[cfg(test)]
mod tests {
    use super::{Offered, Out, Server};
    use crate::agent::Reply;
    use crate::protocol::question::Answer;
    use crate::protocol::schema::OutputSchema;
    use serde_json::{Value, json};

    fn hear(server: &mut Server, message: &Value) -> Value {
        match server.message(&message.to_string()) {
            Out::Send(line) => serde_json::from_str(&line).unwrap(),
            other => panic!("{message} gave {other:?}"),
        }
    }

    fn request(id: Value, method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn call(server: &mut Server, id: Value, token: Value) -> Out {
        let arguments = json!({"questions": [{"question": "Q", "kind": "text"}]});
        let params = json!({"name": "ask_user", "arguments": arguments, "_meta": {"progressToken": token}});
        server.message(&request(id, "tools/call", params).to_string())
    }

    #[test]
    fn it_introduces_itself_in_the_callers_version() {
        for (asked, given) in [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")] {
            let reply =
                hear(&mut Server::new("ask_user"), &request(json!(0), "initialize", json!({"protocolVersion": asked})));
            assert_eq!(reply["result"]["protocolVersion"], given);
            assert_eq!(reply["result"]["capabilities"], json!({"tools": {}}));
        }
        let tools = hear(&mut Server::new("ask_user"), &request(json!("a"), "tools/list", json!({})));
        assert_eq!(tools["id"], "a");
        assert_eq!(tools["result"]["tools"][0]["name"], "ask_user");
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_result_is_checked_and_answered_at_once() {
        let wanted = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = OutputSchema::read(&serde_json::value::to_raw_value(&wanted).unwrap()).unwrap();
        let mut server = Server::new(Offered { ask: None, result: Some(schema) });
        let tools = hear(&mut server, &request(json!(0), "tools/list", json!({})));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
        assert_eq!(tools["result"]["tools"][0]["inputSchema"], wanted);
        for (arguments, told, given) in [
            (json!({"n": 7}), "accepted", Ok(r#"{"n":7}"#)),
            (json!({"n": "7"}), "- /n: must be of the type integer (type)\n", Err("/n")),
            (json!(null), "- the result: is missing\n", Err("")),
        ] {
            let params = json!({"name": "submit_result", "arguments": arguments});
            let out = server.message(&request(json!(1), "tools/call", params).to_string());
            let Out::Submitted(reply, result) = out else { panic!("{out:?}") };
            let reply: Value = serde_json::from_str(&reply).unwrap();
            assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains(told), "{reply}");
            assert_eq!(reply["result"]["isError"], given.is_err());
            let result = result.map(|json| json.unredacted().to_owned());
            assert_eq!(
                result.map_err(|why| why[0].path.unredacted().to_owned()),
                given.map(Into::into).map_err(Into::into)
            );
        }
        assert!(matches!(call(&mut server, json!(2), json!(null)), Out::Send(_)), "the other tool is not offered");
    }

    #[test]
    fn a_call_waits_and_is_answered_once() {
        let mut server = Server::new("ask_user");
        let Out::Ask(id, asks) = call(&mut server, json!("c-1"), json!(7)) else { panic!("no question") };
        assert_eq!((id.as_str(), asks.len()), ("\"c-1\"", 1));
        let told: Vec<Value> =
            (0..2).flat_map(|_| server.progress()).map(|l| serde_json::from_str(&l).unwrap()).collect();
        assert_eq!(told[0]["params"]["progressToken"], 7);
        assert!(told[1]["params"]["progress"].as_u64() > told[0]["params"]["progress"].as_u64());
        let replies = [Reply::Answer(Answer::Text("x".into()))];
        let line: Value = serde_json::from_str(&server.answer(&id, &replies).unwrap()).unwrap();
        assert_eq!(line["id"], "c-1");
        assert_eq!(line["result"]["isError"], false);
        assert!(line["result"]["content"][0]["text"].as_str().unwrap().contains("\"answer\":\"x\""));
        assert_eq!(server.answer(&id, &replies), None);
        assert!(server.progress().is_empty());
    }

    #[test]
    fn a_call_can_be_abandoned_by_both_sides() {
        let mut server = Server::new("ask_user");
        call(&mut server, json!(1), json!(null));
        call(&mut server, json!(2), json!(null));
        assert!(server.progress().is_empty(), "nobody wants to hear it");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(server.message(&cancel.to_string()), Out::Withdrawn("1".into()));
        assert_eq!(server.message(&cancel.to_string()), Out::Nothing, "of an unknown call");
        let line: Value = serde_json::from_str(&server.withdraw("2").unwrap()).unwrap();
        assert_eq!(line["result"]["isError"], true);
        assert_eq!(server.withdraw("2"), None);
    }

    #[test]
    fn a_request_that_cannot_be_served_is_refused() {
        let mut server = Server::new("ask_user");
        for (line, code) in [
            ("garbage".to_owned(), -32700),
            ("[]".to_owned(), -32600),
            ("{}".to_owned(), -32600),
            (request(json!({}), "ping", json!({})).to_string(), -32600),
            (request(json!("x".repeat(200)), "ping", json!({})).to_string(), -32600),
            (request(json!(1), "resources/list", json!({})).to_string(), -32601),
            (request(json!(1), "tools/call", json!({"name": "rm"})).to_string(), -32602),
            (request(json!(1), "tools/call", json!(null)).to_string(), -32602),
        ] {
            let Out::Send(reply) = server.message(&line) else { panic!("{line} was not answered") };
            let reply: Value = serde_json::from_str(&reply).unwrap();
            assert_eq!(reply["error"]["code"], code, "{line}");
        }
        assert_eq!(hear(&mut server, &request(json!(1), "ping", json!({})))["result"], json!({}));
        assert_eq!(server.message(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#), Out::Nothing);
    }

    #[test]
    fn calls_have_ids_of_their_own_and_a_limit() {
        let mut server = Server::new("ask_user");
        for id in 0..16 {
            assert!(matches!(call(&mut server, json!(id), json!(null)), Out::Ask(..)));
        }
        let Out::Send(line) = call(&mut server, json!(3), json!(null)) else { panic!("taken twice") };
        assert!(line.contains("-32602"), "{line}");
        let Out::Send(line) = call(&mut server, json!(16), json!(null)) else { panic!("no limit") };
        assert!(line.contains("\"isError\":true"), "{line}");
    }
}

//! The client's requests and notifications.

use super::content::PromptContent;
use super::refusal::{INVALID_REQUEST, RequestError};
use super::server::AcpServer;
use super::session::{ClientPrompt, ClientSession, Place};
use super::shared::Client;
use super::store::StoredSession;
use super::{PARAMETERS_BYTES, PROMPTS_WAITING, PROTOCOL_VERSION, SESSIONS};
use crate::json::{Elements, Object, Raw, to_line};
use serde_json::{Map, Value, json};
use std::path::Path;

const PAGE: usize = 50;
/// The only way to log in.
const LOGIN: &str = "agent";
/// The clients whose forms take two to four options, by a part of their names.
const NARROW: [&str; 2] = ["acpx", "openclaw"];

type Answer = Result<(), RequestError>;

fn required<T>(value: Option<T>, field: &str, expected: &str) -> Result<T, RequestError> {
    value.ok_or_else(|| RequestError::parameter(field, expected))
}

impl AcpServer {
    /// Answers a request, at once or later. Error: the request is refused.
    pub(super) fn request(&mut self, id: &str, method: &str, params: Option<&Object<'_>>) -> Answer {
        let empty = Object::parse("{}");
        let params = params.or(empty.as_ref()).ok_or_else(RequestError::unknown_method)?;
        if !self.shared.client.initialized && method != "initialize" {
            return Err(RequestError::new(INVALID_REQUEST, "Send initialize first."));
        }
        let result = match method {
            "initialize" => self.initialize(params)?,
            "authenticate" => self.authenticate(params)?,
            "session/new" => self.create(params)?,
            "session/load" => self.load(params)?,
            "session/resume" => self.resume(params)?,
            "session/list" => self.list(params)?,
            "session/close" => self.close_session(params)?,
            "session/set_mode" => self.set_mode(params)?,
            "session/set_config_option" => self.set_option(params)?,
            "session/prompt" => return self.prompt(id, params),
            _ => return Err(RequestError::unknown_method()),
        };
        // An update may precede its response, but a session must be known before.
        self.shared.result(id, &result);
        if ["session/new", "session/load", "session/resume"].contains(&method) {
            let id = result["sessionId"].as_str().map(str::to_owned).or_else(|| params.string("sessionId"));
            let session = id.and_then(|id| self.sessions.get(&id));
            session.into_iter().for_each(|session| session.offer_commands(&mut self.shared));
        }
        Ok(())
    }

    pub(super) fn notification(&mut self, method: &str, params: Option<&Object<'_>>) {
        let Some(params) = params else { return };
        match method {
            "session/cancel" => {
                let session = params.str("sessionId").and_then(|id| self.sessions.get_mut(&*id));
                session.into_iter().for_each(|session| session.cancel(&mut self.shared));
            }
            "$/cancel_request" => {
                let Some(id) = params.raw("requestId") else { return };
                let shared = &mut self.shared;
                self.sessions.values_mut().any(|session| session.cancel_prompt(id.get(), shared));
            }
            _ => {}
        }
    }

    fn initialize(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        required(params.count("protocolVersion"), "protocolVersion", "a number")?;
        let able = params.object("clientCapabilities");
        let has = |path: [&str; 2]| {
            let outer = able.as_ref().and_then(|able| able.object(path[0]));
            outer.is_some_and(|outer| outer.object(path[1]).is_some())
        };
        let name = params.object("clientInfo").and_then(|info| info.string("name")).unwrap_or_default().to_lowercase();
        self.shared.client = Client {
            initialized: true,
            forms: has(["elicitation", "form"]),
            notices: has(["session", "notices"]),
            narrow: NARROW.iter().any(|known| name.contains(known)),
        };
        let facts = &self.shared.facts;
        let mut sessions = json!({"list": {}, "close": {}, "additionalDirectories": {}});
        if facts.resume {
            sessions["resume"] = json!({});
        }
        let login = json!([{"id": LOGIN, "name": format!("Log in to {}", facts.display_name),
            "description": "spektacular keeps no credentials: log in with the agent's own program."}]);
        Ok(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "spektacular", "title": format!("{} (spektacular)", facts.display_name),
                "version": env!("CARGO_PKG_VERSION")},
            "authMethods": if facts.login { login } else { json!([]) },
            "agentCapabilities": {
                "loadSession": facts.resume,
                "promptCapabilities": {"image": facts.images, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": facts.http, "sse": facts.sse},
                "sessionCapabilities": sessions,
            },
        }))
    }

    fn authenticate(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let facts = &self.shared.facts;
        let known = params.is("methodId", LOGIN) && facts.login;
        required(known.then_some(()), "methodId", "one of the authMethods of initialize")?;
        match self.shared.host.login() {
            Some(how) => Err(RequestError::login(&facts.display_name, &how)),
            None => Ok(json!({})),
        }
    }

    fn create(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let place = self.place(params, true)?;
        self.has_room()?;
        if let Some(why) = self.shared.host.missing() {
            return Err(RequestError::internal("agent_not_found", &why));
        }
        let id = format!("sess_{}", self.shared.host.id());
        let session = ClientSession::new(id.clone(), place);
        let mut result = self.described(&session);
        result["sessionId"] = json!(id);
        self.sessions.insert(id, session);
        Ok(result)
    }

    fn resume(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let id = required(params.string("sessionId"), "sessionId", "a string")?;
        let place = self.place(params, false)?;
        if let Some(session) = self.sessions.get(&id) {
            return Ok(self.described(session));
        }
        let found = self.shared.host.stored().into_iter().find(|stored| stored.id == id);
        let stored = found.filter(|_| self.shared.facts.resume).ok_or_else(RequestError::unknown_session)?;
        if stored.agent != self.shared.facts.agent {
            return Err(RequestError::other_agent(&stored.agent));
        }
        self.has_room()?;
        let stored = StoredSession { chosen: stored.chosen.known(&self.shared.facts), ..stored };
        let session = ClientSession::resumed(stored, place, self.shared.child_of(&id));
        let result = self.described(&session);
        self.sessions.insert(id, session);
        Ok(result)
    }

    /// Like [`AcpServer::resume`], with the history of the session before the response.
    fn load(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let result = self.resume(params)?;
        let id = params.string("sessionId").unwrap_or_default();
        if let Some(session) = self.sessions.get(&id) {
            session.replay(&mut self.shared);
        }
        Ok(result)
    }

    fn has_room(&self) -> Answer {
        if self.sessions.len() < SESSIONS {
            return Ok(());
        }
        let message = format!("{SESSIONS} sessions are open: close one with session/close.");
        Err(RequestError::internal("resource_exhausted", &message))
    }

    fn described(&self, session: &ClientSession) -> Value {
        let facts = &self.shared.facts;
        json!({"modes": session.chosen.modes(facts), "configOptions": session.chosen.options(facts)})
    }

    /// The parameters that session/new and session/resume share.
    fn place(&self, params: &Object<'_>, servers_required: bool) -> Result<Place, RequestError> {
        let folder = |path: String| {
            let fits = Path::new(&path).is_absolute() && self.shared.host.is_folder(&path);
            fits.then_some(path)
        };
        let size: usize = ["cwd", "additionalDirectories", "mcpServers"]
            .iter()
            .filter_map(|name| params.raw(name))
            .map(|raw| raw.get().len())
            .sum();
        if size > PARAMETERS_BYTES {
            let limit = PARAMETERS_BYTES >> 10;
            return Err(RequestError::parameter("mcpServers", &format!("at most {limit} KiB, with the directories")));
        }
        let cwd = params.string("cwd").and_then(folder);
        let cwd = required(cwd, "cwd", "the absolute path of an existing directory")?;
        let dirs = params.array("additionalDirectories").map(|path| path.string().and_then(folder));
        let dirs: Option<Vec<String>> = dirs.collect();
        let add_dirs = required(dirs, "additionalDirectories", "a list of absolute paths of existing directories")?;
        let list = params.list("mcpServers");
        if list.is_none() && (servers_required || params.raw("mcpServers").is_some()) {
            return Err(RequestError::parameter("mcpServers", "a list"));
        }
        let servers = self.servers(list)?;
        if !servers.is_empty() && !self.shared.facts.servers {
            let expected = "empty, because this agent takes none. `--set on_unsupported=warn` runs it without them";
            return Err(RequestError::parameter("mcpServers", expected));
        }
        let servers = (!servers.is_empty()).then(|| to_line(&servers));
        Ok(Place { servers, cwd, add_dirs })
    }

    /// The MCP servers of the client, as run.start takes them.
    fn servers(&self, list: Option<Elements<'_>>) -> Result<Vec<Value>, RequestError> {
        // An editor expects an agent that goes on without a server.
        let required = false;
        let read = |(at, raw): (usize, Raw<'_>)| {
            let wrong = |expected: &str| RequestError::parameter(&format!("mcpServers[{at}]"), expected);
            let server = raw.object().ok_or_else(|| wrong("an object"))?;
            let name = server.string("name").ok_or_else(|| wrong("a server with `name`"))?;
            let facts = &self.shared.facts;
            let transport = match server.string("type").as_deref() {
                Some("http") if facts.http => "http",
                Some("sse") if facts.sse => "sse",
                Some("http" | "sse") => return Err(wrong("of a type that mcpCapabilities names, or stdio")),
                None | Some("stdio") => {
                    let command = server.string("command").ok_or_else(|| wrong("a server with `command`"))?;
                    let args: Option<Vec<String>> = server.array("args").map(Raw::string).collect();
                    let args = args.ok_or_else(|| wrong("a server whose `args` is a list of strings"))?;
                    let env = pairs(&server, "env").ok_or_else(|| wrong("a server whose `env` is a list"))?;
                    return Ok(
                        json!({"name": name, "command": command, "args": args, "env": env, "required": required}),
                    );
                }
                Some(_) => return Err(wrong("of type stdio, http or sse")),
            };
            let url = server.string("url").ok_or_else(|| wrong("a server with `url`"))?;
            let headers = pairs(&server, "headers").ok_or_else(|| wrong("a server whose `headers` is a list"))?;
            Ok(json!({"name": name, "url": url, "headers": headers, "transport": transport, "required": required}))
        };
        list.into_iter().flatten().enumerate().map(read).collect()
    }

    fn list(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let cursor = match params.raw("cursor") {
            None => 0,
            Some(raw) => {
                required(raw.str().and_then(|at| at.parse().ok()), "cursor", "a nextCursor of an earlier list")?
            }
        };
        let agent = &self.shared.facts.agent;
        let mut found = self.shared.host.stored();
        let open = self.sessions.values().map(|session| session.listed(agent));
        let open: Vec<StoredSession> = open.filter(|open| found.iter().all(|stored| stored.id != open.id)).collect();
        found.extend(open);
        let real = |path: &str| self.shared.host.real(path);
        let cwd = params.string("cwd").map(|cwd| real(&cwd));
        found.retain(|stored| stored.agent == *agent && cwd.as_ref().is_none_or(|cwd| *cwd == real(&stored.cwd)));
        let info = |stored: &StoredSession| {
            let mut info = json!({"sessionId": stored.id, "cwd": stored.cwd});
            for (name, text) in [("title", &stored.title), ("updatedAt", &stored.updated)] {
                if !text.is_empty() {
                    info[name] = json!(text);
                }
            }
            info
        };
        let page: Vec<Value> = found.iter().skip(cursor).take(PAGE).map(info).collect();
        let next = cursor.saturating_add(PAGE);
        let mut result = json!({"sessions": page});
        if next < found.len() {
            result["nextCursor"] = json!(next.to_string());
        }
        Ok(result)
    }

    fn close_session(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let id = required(params.string("sessionId"), "sessionId", "a string")?;
        let mut session = self.sessions.remove(&id).ok_or_else(RequestError::unknown_session)?;
        session.close(&mut self.shared);
        Ok(json!({}))
    }

    fn session(&mut self, params: &Object<'_>) -> Result<&mut ClientSession, RequestError> {
        let id = required(params.str("sessionId"), "sessionId", "a string")?;
        self.sessions.get_mut(&*id).ok_or_else(RequestError::unknown_session)
    }

    fn set_mode(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let mode = required(params.string("modeId"), "modeId", "a string")?;
        let facts = self.shared.facts.clone();
        let session = self.session(params)?;
        let mut chosen = session.chosen.clone();
        chosen.set_mode(&mode, &facts)?;
        let update = json!({"sessionUpdate": "config_option_update", "configOptions": chosen.options(&facts)});
        session.change(chosen);
        self.tell_session(params, &update);
        self.store_settings(params);
        Ok(json!({}))
    }

    fn set_option(&mut self, params: &Object<'_>) -> Result<Value, RequestError> {
        let option = required(params.string("configId"), "configId", "a string")?;
        let value = required(params.string("value"), "value", "a string")?;
        let facts = self.shared.facts.clone();
        let session = self.session(params)?;
        let mut chosen = session.chosen.clone();
        chosen.set(&option, &value, &facts)?;
        let options = chosen.options(&facts);
        let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": chosen.policy(&facts)});
        let is_other_mode = chosen.policy(&facts) != session.chosen.policy(&facts);
        session.change(chosen);
        if is_other_mode {
            self.tell_session(params, &mode);
        }
        self.store_settings(params);
        Ok(json!({"configOptions": options}))
    }

    fn store_settings(&mut self, params: &Object<'_>) {
        let session = params.str("sessionId").and_then(|id| self.sessions.get(&*id));
        session.into_iter().for_each(|session| session.store(&mut self.shared));
    }

    fn tell_session(&mut self, params: &Object<'_>, update: &Value) {
        let id = params.string("sessionId").unwrap_or_default();
        self.shared.update(&id, update);
    }

    fn prompt(&mut self, id: &str, params: &Object<'_>) -> Answer {
        let waiting = self.session(params)?.waiting.len();
        let blocks = required(params.list("prompt"), "prompt", "a list of content blocks")?;
        let size = params.raw("prompt").map_or(0, |raw| raw.get().len());
        if waiting >= PROMPTS_WAITING || !self.shared.has_room(size) {
            let message = "Too many prompts wait: send the next one when a turn is over.";
            return Err(RequestError::internal("prompt_refused", message));
        }
        let PromptContent { text, images } =
            PromptContent::read(blocks, &self.shared.facts, self.shared.host.as_mut())?;
        let session_id = params.string("sessionId").unwrap_or_default();
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.prompt(ClientPrompt { id: id.to_owned(), text, images, size }, &mut self.shared);
        }
        Ok(())
    }
}

/// A list of `{name, value}` as an object. `None`: it is not such a list.
fn pairs(object: &Object<'_>, field: &str) -> Option<Map<String, Value>> {
    let pair = |raw: Raw<'_>| {
        let pair = raw.object()?;
        Some((pair.string("name")?, json!(pair.string("value")?)))
    };
    object.array(field).map(pair).collect()
}

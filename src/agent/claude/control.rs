//! Control requests in both directions, and the lines for Claude Code.

use super::{Claude, can_use_tool};
use crate::agent::{AgentEvent, AskKey, CallKey, DriverOutput, Reply};
use crate::json::{Object, to_line};
use crate::protocol::image::Image;
use serde_json::{Value, json};

impl Claude {
    pub(super) fn control(&mut self, request: &Value, out: &mut DriverOutput) {
        self.requests += 1;
        let id = format!("spk_{}", self.requests);
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        out.send.push(to_line(&line));
    }

    /// Answers even a malformed request, for which Claude Code would wait forever.
    pub(super) fn control_request(&mut self, line: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let id = line.string("request_id")?;
        let request = line.object("request");
        let subtype = request.as_ref().and_then(|request| request.str("subtype"));
        let (Some(request), Some(subtype)) = (&request, subtype) else {
            out.send.push(refuse_request(&id));
            return None;
        };
        match &*subtype {
            "mcp_message" => self.mcp_message(id, request, out),
            "can_use_tool" => return self.can_use_tool(id, request, out),
            _ => out.send.push(refuse_request(&id)),
        }
        Some(())
    }

    fn can_use_tool(&mut self, id: String, request: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let Some((pending, asks)) = can_use_tool::read(request, self.plan.take()) else {
            out.send.push(refuse_request(&id));
            return None;
        };
        if self.names.asks_for_own(request) {
            out.send.push(respond(&id, &pending.respond(&[Reply::Allowed]).0));
            return Some(());
        }
        let key = AskKey(id);
        let call = pending.call.as_deref().map(CallKey::of);
        self.pending.insert(key.clone(), pending);
        out.events.push(AgentEvent::Ask { key, asks, call });
        Some(())
    }

    pub(super) fn control_cancel_request(&mut self, message: &Object<'_>, out: &mut DriverOutput) -> Option<()> {
        let key = AskKey(message.string("request_id")?);
        let mut forget_call = || self.asked.remove(&key).is_some_and(|call| self.server.forget(&call));
        if self.pending.remove(&key).is_some() || forget_call() {
            out.events.push(AgentEvent::AskWithdrawn { key });
        }
        Some(())
    }
}

/// Claude Code reports what becomes of a line with a `uuid`.
pub(super) fn user_line(prompt: &str, images: &[Image], uuid: Option<&str>) -> String {
    let source = |image: &Image| json!({"type": "base64", "media_type": image.media_type, "data": image.label()});
    let blocks = images.iter().map(|image| json!({"type": "image", "source": source(image)}));
    let content = match images {
        [] => json!(prompt),
        _ => blocks.chain([json!({"type": "text", "text": prompt})]).collect(),
    };
    let mut line = json!({"type": "user", "message": {"role": "user", "content": content}});
    if let Some(uuid) = uuid {
        line["uuid"] = json!(uuid);
    }
    to_line(&line)
}

/// `response` is JSON.
pub(super) fn respond(id: &str, response: &str) -> String {
    let id = to_line(&id);
    format!(
        "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":{id},\"response\":{response}}}}}"
    )
}

pub(super) fn refuse_request(id: &str) -> String {
    to_line(&json!({"type": "control_response",
        "response": {"subtype": "error", "request_id": id, "error": "This host does not serve this request."}}))
}

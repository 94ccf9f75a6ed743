//! Codex's requests and their answers: approvals, its own question tool, MCP elicitations, our question tool, and
//! questions in a message that Codex does not wait for.

use super::items::{Items, Spot, looked, whole_command};
use crate::agent::ask_user::{self, choices};
use crate::agent::detail::{join, rest};
use crate::agent::form::ElicitationForm;
use crate::agent::{Reply, title};
use crate::json::{Object, Raw, to_line};
use crate::protocol::question::{Answer, Ask, Asks, Choice, Choices, Kind, Place, Subject, one};
use crate::protocol::scope::Scope;
use crate::protocol::words::{Category, Purpose};
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Debug)]
pub(super) enum CodexRequest {
    Approval,
    /// Codex's own question tool, with the ids of the questions.
    Questions(Vec<String>),
    ElicitationForm(ElicitationForm),
    /// One yes-or-no question for the whole elicitation.
    Consent,
    /// Approval of a call to an MCP server's tool, with the server's name.
    McpCall(String),
    AskUser(Vec<Ask>),
    /// An invalid call of our own tool, with the mistake.
    Unclear(String),
    /// Questions whose answers go into a further message, with their titles.
    Async(Vec<String>),
}

/// `None`: not supported, or malformed.
pub(super) fn read(
    method: &str,
    params: &Object<'_>,
    spot: &Spot<'_>,
    items: &Items,
    cwd: &Path,
) -> Option<(CodexRequest, Asks)> {
    match method {
        "item/commandExecution/requestApproval" => Some((CodexRequest::Approval, one(command_approval(params, cwd)))),
        "item/fileChange/requestApproval" => Some((CodexRequest::Approval, one(patch_approval(params, spot, items)))),
        "item/tool/requestUserInput" => {
            let ids = params.objects("questions").map(|question| question.string("id").unwrap_or_default()).collect();
            let asks: Asks = params.objects("questions").map(|question| user_input(&question)).collect();
            (!asks.is_empty()).then_some((CodexRequest::Questions(ids), asks))
        }
        "mcpServer/elicitation/request" => Some(elicitation(params)),
        "item/tool/call" if params.is("tool", ask_user::TOOL) => {
            match ask_user::read(params.object("arguments").as_ref()) {
                Ok(asks) => Some((CodexRequest::AskUser(asks.clone()), asks.into_iter().collect())),
                Err(why) => Some((CodexRequest::Unclear(why), Asks::default())),
            }
        }
        _ => None,
    }
}

/// Whether we support this method, so that an unreadable request is the agent's error.
pub(super) fn is_known(method: &str) -> bool {
    matches!(
        method,
        "item/commandExecution/requestApproval"
            | "item/fileChange/requestApproval"
            | "item/tool/requestUserInput"
            | "mcpServer/elicitation/request"
    )
}

pub(super) fn asynchronous(item: &Object<'_>) -> Option<(CodexRequest, Asks)> {
    let titles = item.objects("questions").map(|question| question.string("title").unwrap_or_default()).collect();
    let ask = |question: Object<'_>| {
        let labels = question.array("options").filter_map(Raw::string);
        let kind = Kind::open(Choices::new(labels.map(|label| Choice::labelled(label, None))), false);
        Ask::new(Purpose::Clarification, kind, "", question.string("title").unwrap_or_default())
    };
    let asks: Asks = item.objects("questions").map(ask).collect();
    (!asks.is_empty()).then_some((CodexRequest::Async(titles), asks))
}

fn with_reason(reason: Option<String>, what: &str) -> String {
    match reason.filter(|reason| !reason.trim().is_empty()) {
        Some(reason) => format!("{reason}\nAllow {what}?"),
        None => format!("Allow {what}?"),
    }
}

/// Fields that differ between requests for the same action.
const REQUEST: [&str; 7] =
    ["threadId", "turnId", "itemId", "approvalId", "startedAtMs", "availableDecisions", "proposedExecpolicyAmendment"];

fn command_approval(params: &Object<'_>, cwd: &Path) -> Ask {
    let (category, title, action) = match params.object("networkApprovalContext").and_then(|net| net.string("host")) {
        Some(host) => (Category::Fetch, title(Category::Fetch, "", &host), host),
        None => (Category::Execute, title(Category::Execute, "", &whole_command(params)), whole_command(params)),
    };
    let is_shown = |name: &str, value: Raw<'_>| match name {
        "networkApprovalContext" => value.object().is_some_and(|net| net.iter().all(|(name, _)| name == "host")),
        "cwd" => value.str().is_some_and(|folder| Path::new(&*folder) == cwd),
        "environmentId" => value.str().is_some_and(|name| name == "local"),
        "command" => category == Category::Execute && value.is_string(),
        "kind" | "commandActions" | "reason" => true,
        _ => REQUEST.contains(&name),
    };
    // Without its command, an approval has no detail: it cannot be asked.
    let detail = if action.is_empty() { String::new() } else { join(&action, rest(params, is_shown)) };
    let has_more = || !rest(params, |name, value| name == "cwd" || is_shown(name, value)).is_empty();
    let is_command = category == Category::Execute && params.str("kind").is_none_or(|kind| kind == "command");
    if let Some(look) = looked(params, &action).filter(|_| is_command && !has_more()) {
        let text = with_reason(params.string("reason"), &look.title);
        // As for a patch of several kinds.
        let scope = Scope::of_request(look.category, None, None).filter(|_| look.also.is_none());
        let subject = Subject::new(look.category, look.title, look.places, detail);
        return Ask { also: look.also.into_iter().collect(), ..Ask::permission(subject, text, scope) };
    }
    let text = with_reason(params.string("reason"), &title);
    let call = params.without(&REQUEST);
    let scope = Scope::of_request(category, None, Some(&call).filter(|_| !action.is_empty()).map(String::as_str));
    Ask::permission(Subject::new(category, title, Vec::new(), detail), text, scope)
}

/// The request itself names no file; the item that began before it does.
fn patch_approval(params: &Object<'_>, spot: &Spot<'_>, items: &Items) -> Ask {
    let patch = params.string("itemId").and_then(|item| items.patch(spot, &item));
    // An unknown patch, or one with several kinds of changes, never matches an "always".
    let scope = patch.as_ref().filter(|patch| patch.also.is_empty());
    let scope = scope.and_then(|patch| Scope::of_request(patch.category, None, None));
    let (category, also, title, locations, detail) = match patch {
        Some(patch) => (patch.category, patch.also, patch.title, patch.locations, patch.diff),
        None => (Category::Edit, Vec::new(), "Edit files".to_owned(), Vec::new(), String::new()),
    };
    // A patch may ask for a whole folder.
    let root = params.string("grantRoot").filter(|_| !locations.is_empty());
    let locations = locations.into_iter().chain(root.map(|path| Place { path: path.into(), line: None })).collect();
    let is_shown = |name: &str, _: Raw<'_>| name == "reason" || REQUEST.contains(&name);
    let detail = join(&detail, rest(params, is_shown));
    let text = with_reason(params.string("reason"), &title);
    Ask { also, ..Ask::permission(Subject::new(category, title, locations, detail), text, scope) }
}

fn user_input(question: &Object<'_>) -> Ask {
    let is_secret = question.bool("isSecret") == Some(true);
    let kind = if is_secret { Kind::Secret } else { Kind::open(choices(question), false) };
    let header = question.string("header").unwrap_or_default();
    Ask::new(Purpose::Clarification, kind, header, question.string("question").unwrap_or_default())
}

fn elicitation(params: &Object<'_>) -> (CodexRequest, Asks) {
    let message = params.string("message").unwrap_or_default();
    let server = params.string("serverName").unwrap_or_default();
    let call = params.object("_meta").filter(|meta| meta.is("codex_approval_kind", "mcp_tool_call"));
    if let Some(call) = call {
        let tool = call.string("tool_name").unwrap_or_default();
        let detail = call.raw("tool_params").map(Raw::get).unwrap_or_default();
        let subject = Subject::new(Category::Mcp, title(Category::Mcp, &server, &tool), Vec::new(), detail);
        let named = !server.is_empty() && !tool.is_empty();
        let name = named.then(|| to_line(&[&server, &tool]));
        let scope = Scope::of_request(Category::Mcp, name.as_deref(), None);
        return (CodexRequest::McpCall(server), one(Ask::permission(subject, message, scope)));
    }
    if let Some((form, asks)) =
        params.object("requestedSchema").and_then(|schema| ElicitationForm::read(&schema, &message))
    {
        return (CodexRequest::ElicitationForm(form), asks);
    }
    let text = match params.string("url") {
        Some(url) => format!("{message}\n{url}"),
        None => message,
    };
    (CodexRequest::Consent, one(Ask::new(Purpose::Input, Kind::Confirm, server, text)))
}

impl CodexRequest {
    pub(super) fn respond(&self, replies: &[Reply]) -> Value {
        match self {
            // Never acceptForSession or a rule, because then Codex would not ask again.
            CodexRequest::Approval => json!({"decision": if is_allowed(replies) { "accept" } else { "decline" }}),
            CodexRequest::McpCall(_) => consent(is_allowed(replies), json!({})),
            CodexRequest::Consent => consent(matches!(replies, [Reply::Answer(Answer::Bool(true))]), json!({})),
            CodexRequest::Questions(ids) => {
                let told =
                    ids.iter().zip(replies).map(|(id, reply)| (id.clone(), json!({"answers": [reply.spoken()]})));
                json!({"answers": told.collect::<Map<_, _>>()})
            }
            CodexRequest::ElicitationForm(form) => match form.content(replies) {
                Some(content) => consent(true, Value::Object(content)),
                None => consent(false, Value::Null),
            },
            CodexRequest::AskUser(asks) => called(true, &ask_user::result(asks, replies)),
            CodexRequest::Unclear(why) => called(false, why),
            CodexRequest::Async(_) => Value::Null,
        }
    }

    pub(super) fn message(&self, replies: &[Reply]) -> Option<String> {
        let CodexRequest::Async(titles) = self else { return None };
        if let [only] = replies {
            return Some(only.spoken());
        }
        let lines = titles.iter().zip(replies).map(|(title, one)| format!("{title}\n{}", one.spoken()));
        Some(lines.collect::<Vec<_>>().join("\n\n"))
    }

    pub(super) fn denied_server(&self, replies: &[Reply]) -> Option<String> {
        let CodexRequest::McpCall(server) = self else { return None };
        (!is_allowed(replies)).then(|| server.clone())
    }
}

/// Codex takes no message with a denial.
fn is_allowed(replies: &[Reply]) -> bool {
    replies.first() == Some(&Reply::Allowed)
}

fn called(success: bool, text: &str) -> Value {
    json!({"success": success, "contentItems": [{"type": "inputText", "text": text}]})
}

fn consent(given: bool, content: Value) -> Value {
    match given {
        true => json!({"action": "accept", "content": content, "_meta": null}),
        false => json!({"action": "decline", "content": null, "_meta": null}),
    }
}

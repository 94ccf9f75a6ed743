//! Errors for the client.

use crate::agent::rpc;
use crate::json::{Object, to_line};
use serde_json::{Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const REQUEST_CANCELLED: i64 = -32800;
const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestError {
    code: i64,
    pub(super) message: String,
    data: Value,
}

impl RequestError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> RequestError {
        RequestError { code, message: message.into(), data: Value::Null }
    }

    pub(super) fn parameter(field: &str, expected: &str) -> RequestError {
        RequestError::new(INVALID_PARAMS, format!("`{field}` must be {expected}."))
    }

    pub(super) fn unknown_method() -> RequestError {
        RequestError::new(rpc::METHOD_NOT_FOUND, "Unknown method.")
    }

    pub(super) fn unknown_session() -> RequestError {
        RequestError::new(NOT_FOUND, "Unknown session: create one with session/new, or see session/list.")
    }

    pub(super) fn other_agent(agent: &str) -> RequestError {
        RequestError::new(
            NOT_FOUND,
            format!("The session belongs to another agent: start spektacular acp --agent {agent}."),
        )
    }

    pub(super) fn cancelled() -> RequestError {
        RequestError::new(REQUEST_CANCELLED, "Cancelled before the prompt was sent.")
    }

    pub(super) fn too_long() -> RequestError {
        RequestError::parameter("prompt", "shorter: no run takes a message of more than 16 MiB")
    }

    pub(super) fn login(display_name: &str, how: &str) -> RequestError {
        let message = format!("auth_required: {display_name} is not logged in: {how}");
        RequestError { code: AUTH_REQUIRED, message, data: json!({"code": "auth_required", "retryable": false}) }
    }

    pub(super) fn internal(code: &str, message: &str) -> RequestError {
        RequestError::of_code(code, message, false)
    }

    /// The failure of a run or of a turn: an object with `code`, `message` and `retryable`.
    pub(super) fn failure(failure: &Object<'_>) -> RequestError {
        let code = failure.string("code").unwrap_or_else(|| "internal_error".into());
        let message = failure.string("message").unwrap_or_default();
        RequestError::of_code(&code, &message, failure.bool("retryable").unwrap_or_default())
    }

    fn of_code(code: &str, message: &str, retryable: bool) -> RequestError {
        let number = match code {
            "auth_required" => AUTH_REQUIRED,
            "session_not_found" => NOT_FOUND,
            "invalid_request" | "invalid_config" | "usage" => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        // Some clients show the message alone.
        let message = format!("{code}: {message}");
        RequestError { code: number, message, data: json!({"code": code, "retryable": retryable}) }
    }

    /// The response to the request with this id, verbatim; `null` if the request could not be read.
    pub(super) fn line(&self, id: &str) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if !self.data.is_null() {
            error["data"] = self.data.clone();
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", to_line(&error))
    }
}

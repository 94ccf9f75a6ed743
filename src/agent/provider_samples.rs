//! Failures of a provider that every agent has to report with the same code, status and `retryable`: a driver by its
//! tests, and the real agent by the table of `tests/real_agents`.

use crate::protocol::failure::Code;

#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The HTTP status. `None`: the agent has only words.
    pub status: Option<u16>,
    /// The provider's name for the failure, if not the usual one for the status.
    pub name: Option<&'static str>,
    pub text: &'static str,
    pub code: Code,
}

pub const SAMPLES: &[Sample] = &[
    sample(Some(400), "prompt is too long: 210000 tokens > 200000 maximum", Code::ContextExceeded),
    sample(Some(400), "This model's maximum context length is 128000 tokens.", Code::ContextExceeded),
    sample(Some(400), "Something about the request.", Code::AgentError),
    sample(Some(401), "invalid x-api-key", Code::AuthRequired),
    sample(Some(401), "OAuth token has expired. Please obtain a new one.", Code::AuthRequired),
    sample(Some(402), "Payment required", Code::QuotaExceeded),
    named(429, "insufficient_quota", "You exceeded your current quota, please check your plan.", Code::QuotaExceeded),
    sample(Some(403), "Request not allowed", Code::AuthRequired),
    sample(Some(404), "The model nope was not found.", Code::ModelNotFound),
    sample(Some(408), "The client was slow.", Code::ProviderUnavailable),
    sample(Some(413), "Request exceeds the maximum size", Code::ContextExceeded),
    sample(Some(429), "This request would exceed your rate limit.", Code::RateLimited),
    sample(Some(500), "Something broke.", Code::ProviderUnavailable),
    sample(Some(503), "Come back later.", Code::ProviderUnavailable),
    sample(Some(529), "Overloaded", Code::ProviderUnavailable),
    sample(None, "connect ECONNREFUSED 127.0.0.1:1", Code::ProviderUnavailable),
    sample(None, "getaddrinfo ENOTFOUND api.example.com", Code::ProviderUnavailable),
    sample(None, "fetch failed", Code::ProviderUnavailable),
    sample(None, "stream disconnected before completion: closed", Code::ProviderUnavailable),
    sample(None, "Cannot connect to API: The socket connection was closed unexpectedly.", Code::ProviderUnavailable),
    sample(None, "Your login has expired. Please log in again.", Code::AuthRequired),
    sample(None, "You have reached your usage limit.", Code::QuotaExceeded),
    sample(None, "The context window is full.", Code::ContextExceeded),
    sample(None, "The model nope does not exist.", Code::ModelNotFound),
    sample(None, "Too many requests, slow down.", Code::RateLimited),
    sample(None, "I took a design into account.", Code::AgentError),
];

const fn sample(status: Option<u16>, text: &'static str, code: Code) -> Sample {
    Sample { status, name: None, text, code }
}

const fn named(status: u16, name: &'static str, text: &'static str, code: Code) -> Sample {
    Sample { status: Some(status), name: Some(name), text, code }
}

#[cfg(test)]
impl Sample {
    #[track_caller]
    pub(super) fn is(&self, failure: &crate::protocol::failure::Failure) {
        let found = (failure.code, failure.http_status, failure.retryable);
        assert_eq!(found, (self.code, self.status, self.code.retryable()), "{self:?}");
    }
}

//! Secrets, and texts that could hide what they do.

mod escapes;
mod hidden;
mod redact;
mod secrets;

//! Workflows: from an idea to verified code.

mod implement;
mod joined;
pub mod outer;
pub mod stop;

use crate::failure::{Code, Failure};

/// The refusal of a field.
fn invalid(message: String) -> Failure {
    Failure::new(Code::InvalidRequest, message)
}

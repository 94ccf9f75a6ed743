//! Workflows: from an idea to verified code.

mod implement;

//! The configuration, and what a project that nobody trusts may set.

mod layers;
mod runs;
mod untrusted;

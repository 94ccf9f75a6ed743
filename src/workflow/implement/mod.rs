//! `implement`: carries out a plan phase by phase, and counts a phase as passed only once its commands have passed.

mod blocked;
mod command;
mod commit;
mod machine;
mod observer;
mod protect;
mod question;

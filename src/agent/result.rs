//! The structured result of a run: the ways in which agents give it, and the texts for the model.

use super::{DriverOutput, ask_user};
use crate::protocol::request::Settings;
use crate::protocol::schema::{Mismatch, OutputSchema};
use crate::protocol::terms::sentence;
use std::fmt::Write;

/// The name of our tool for the result, whose input is the result.
pub(crate) const TOOL: &str = "submit_result";

pub(crate) const DESCRIPTION: &str = "\
Submits the result of the whole task; the input of this tool is the result. Call it once, when the task is done, and \
then end your turn. If the result is refused, correct it and call the tool again.";

pub(crate) const ACCEPTED: &str = "The result is accepted. End your turn now.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultWay {
    /// The agent's own mode.
    Own,
    /// A call of our tool, or a JSON text if the model lacks the tool.
    Tool,
    /// One JSON text as the last message.
    Text,
}

impl ResultWay {
    /// Our tool, if it can take the result and its server can have its name.
    pub(super) fn by_tool(settings: &Settings) -> ResultWay {
        let takes_object = settings.output_schema.as_ref().is_some_and(OutputSchema::takes_object);
        if takes_object && !ask_user::is_taken(&settings.mcp_servers) { ResultWay::Tool } else { ResultWay::Text }
    }
}

pub(super) fn prompt(settings: &Settings, schema: &OutputSchema, way: ResultWay, out: &mut DriverOutput) -> String {
    if !schema.unchecked().is_empty() {
        let keywords = schema.unchecked().join(", ");
        out.warn(sentence!("{output_schema} is checked without these keywords: {keywords}", output_schema));
    }
    let prompt = &settings.prompt;
    let text = "a message that is nothing but one JSON text, without a code fence, that fits this JSON Schema";
    match way {
        ResultWay::Own => prompt.clone(),
        ResultWay::Tool => format!(
            "{prompt}\n\nWhen the task is done, submit its result with the tool `{TOOL}`, and end. If you do not have \
             this tool, end with {text}:\n{}",
            schema.get()
        ),
        ResultWay::Text => format!("{prompt}\n\nWhen the task is done, end with {text}:\n{}", schema.get()),
    }
}

/// The prompt of a further turn after a result that does not fit, or none.
pub(crate) fn correction(violations: &[Mismatch], way: ResultWay) -> String {
    let again = match way {
        ResultWay::Own => "Give the whole result again, in the required form.".to_owned(),
        ResultWay::Tool => format!(
            "Submit the whole result again with the tool `{TOOL}`. If you do not have this tool, answer with nothing \
             but one JSON text that fits the schema."
        ),
        ResultWay::Text => "Answer with nothing but one JSON text that fits the schema.".to_owned(),
    };
    format!("Your result does not fit its JSON Schema:\n{}{again}", listed(violations))
}

pub(super) fn refused(violations: &[Mismatch]) -> String {
    format!("The result does not fit its schema:\n{}Correct it, and submit the whole result again.", listed(violations))
}

fn listed(violations: &[Mismatch]) -> String {
    violations.iter().fold(String::new(), |mut lines, violation| {
        let _ = writeln!(lines, "- {}", violation.line());
        lines
    })
}

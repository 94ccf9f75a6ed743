//! The check of a workflow's run.start, which the engine makes: the fields that a workflow reads, and those that it sets
//! itself.

use super::invalid;
use crate::agent::registry::Agent;
use crate::engine::{Admission, Admit};
use crate::protocol::failure::Failure;
use crate::protocol::fields::field;
use crate::protocol::outbound::{Text, WorkflowStarted};
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crate::protocol::words::{OnQuestionTimeout, WorkflowKind};
use crate::protocol::workflow::{WorkflowFields, WorkflowOptions, WorkflowSettings};
use std::cell::RefCell;
use std::rc::Rc;

/// The result of `check`, the settings, the agent, and the file that the workflow writes or works on.
type Admitted<T> = Rc<RefCell<Option<(T, Settings, Agent, Option<Text>)>>>;

/// `check` may change the settings. The second value gets its result.
pub(super) fn admission<T: 'static>(
    kind: WorkflowKind,
    flags: WorkflowOptions,
    check: impl FnOnce(&mut Settings, &Agent, WorkflowSettings) -> Result<(T, WorkflowStarted), Failure> + 'static,
) -> (Admission, Admitted<T>) {
    let found = Admitted::default();
    let kept = Rc::clone(&found);
    let admit: Box<Admit> = Box::new(move |settings, agent, workflow, said, unknown| {
        let read = WorkflowFields::read(kind, workflow);
        unknown.append(read.unknown);
        if let Some(wrong) = read.wrong {
            return Err(invalid(wrong));
        }
        refuse_own_fields(settings, said)?;
        let options = read.options.over(flags).resolved();
        if matches!(kind, WorkflowKind::Spec | WorkflowKind::Plan) {
            endure_silence(settings);
        }
        let (it, started) = check(settings, agent, options)?;
        settings.is_part = true;
        *kept.borrow_mut() = Some((it, settings.clone(), agent.clone(), started.target.clone()));
        Ok(started)
    });
    (Admission { workflow: kind, admit }, found)
}

/// Refuses the fields that a workflow sets itself, and ignores the configuration's values of them.
fn refuse_own_fields(settings: &mut Settings, said: &[&'static str]) -> Result<(), Failure> {
    let refused = [
        (field!(session_id), true),
        (field!(fork), settings.fork),
        (field!(output_schema), true),
        (field!(raw_prompt), settings.raw_prompt),
        (field!(conversation), settings.conversation),
    ];
    if let Some((field, _)) = refused.into_iter().find(|(field, is_set)| *is_set && said.contains(&field.name)) {
        return Err(Failure::invalid_start(sentence!(
            "{field} cannot be used with a workflow, which makes its own sessions and prompts: leave it out.",
            field = field
        )));
    }
    // The configuration may set these for runs outside of workflows.
    (settings.session_id, settings.output_schema, settings.raw_prompt) = (None, None, false);
    (settings.conversation, settings.fork) = (false, false);
    Ok(())
}

/// Lets a draft be written although nobody answers: the agent infers what it asked.
fn endure_silence(settings: &mut Settings) {
    settings.closed_input_declines = true;
    if !settings.sets_on_question_timeout {
        settings.on_question_timeout = OnQuestionTimeout::Continue;
    }
}

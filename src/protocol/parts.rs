//! One walk over a body, which visits every free text, every list and all foreign JSON. Redaction and the frame limit
//! both use it, so neither can forget a field that the other handles.

use super::failure::{Failure, PhaseFailure};
use super::outbound::{
    About, Artifact, ArtifactRef, Body, Breach, FileEdit, GaveWay, Json, Left, Outcome, PhaseReport, Place, PlanEntry,
    Progress, Question, Started, Tally, Terminal, Text, TurnReport, Unattended, WorkflowEnd, WorkflowStarted,
};
use super::question::{Answer, Ask, Choice, Choices, Kind, Subject, Validation};
use super::request::Settings;
use super::schema::{Mismatch, Mismatches};
use super::words::Purpose;
use std::collections::HashSet;

/// The order in which parts are cut if a frame is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Outputs and details.
    Output,
    List,
    Text,
    /// JSON that the orchestrator itself sent.
    Own,
}

impl Rank {
    /// All ranks, in the order of cutting.
    pub(crate) const ALL: [Rank; 4] = [Rank::Output, Rank::List, Rank::Text, Rank::Own];
}

/// A list that can be cut.
pub(crate) trait Cut {
    /// The number of elements.
    fn count(&self) -> usize;
    /// Keeps the first `count` elements.
    fn cut(&mut self, count: usize);
}

impl<T> Cut for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn cut(&mut self, count: usize) {
        self.truncate(count);
    }
}

impl Cut for Choices {
    fn count(&self) -> usize {
        // A question without options cannot be answered, so one option stays.
        self.count().saturating_sub(1)
    }
    fn cut(&mut self, count: usize) {
        self.cut(count + 1);
    }
}

pub(crate) enum BodyPart<'a> {
    /// Free text.
    Text(&'a mut Text),
    /// A part of an action that somebody approves. It is never cut.
    Action(&'a mut Text),
    /// A setting or a sentence of our own, which may contain a secret too.
    Own(&'a mut String),
    /// Text that is useful only as a whole: it is kept or dropped.
    Whole(&'a mut Option<Text>),
    /// A text that the orchestrator may send back as an answer. It is never cut.
    Answer(&'a mut Text),
    /// A list. The texts in it are visited as separate parts.
    List(&'a mut dyn Cut),
    /// Foreign JSON, which can only be kept or dropped.
    Json(&'a mut Option<Json>),
}

type Visit<'v> = &'v mut dyn FnMut(Rank, BodyPart<'_>);

fn text(rank: Rank, text: &mut Text, visit: Visit<'_>) {
    visit(rank, BodyPart::Text(text));
}

fn places(places: &mut Vec<Place>, visit: Visit<'_>) {
    for Place { path, line: _ } in places.iter_mut() {
        text(Rank::List, path, visit);
    }
    visit(Rank::List, BodyPart::List(places));
}

fn subject(subject: &mut Subject, visit: Visit<'_>) {
    let Subject { category: _, title, locations, detail, call_id: _ } = subject;
    visit(Rank::Own, BodyPart::Action(detail));
    visit(Rank::Own, BodyPart::Action(title));
    for Place { path, line: _ } in locations.iter_mut() {
        visit(Rank::Own, BodyPart::Action(path));
    }
}

/// Calls `visit` with every part of `body`.
///
/// Every pattern here names each field and each variant, so that a new one does not compile before somebody decides
/// whether it is a part. Only words of the protocol, ids, names and numbers are not parts.
pub(super) fn each(body: &mut Body, visit: Visit<'_>) {
    match body {
        Body::Started(body) => started(body, visit),
        Body::Progress(progress) => {
            let Progress { text: said, parent_call_id: _, about: kind, truncated: _ } = &mut **progress;
            about(kind, visit);
            text(Rank::Text, said, visit);
        }
        Body::Question(body) => question(body, visit),
        Body::Artifact(artifact) => {
            let Artifact { artifact_id: _, path, action: _, kind: _, size_bytes: _, truncated: _ } = &mut **artifact;
            text(Rank::Text, path, visit);
        }
        Body::Terminal(body) => terminal(body, visit),
    }
}

fn started(body: &mut Started, visit: Visit<'_>) {
    let Started {
        agent: _,
        display_name,
        settings,
        capabilities: _,
        metadata,
        cwd,
        agent_args,
        workflow,
        truncated: _,
    } = body;
    if let Some(workflow) = workflow {
        let WorkflowStarted { name: _, project, target, options } = &mut **workflow;
        text(Rank::Text, project, visit);
        target.iter_mut().for_each(|target| text(Rank::Text, target, visit));
        // The options are checked words, names and numbers, except for the name of the agent's command.
        options.skill.iter_mut().for_each(|skill| visit(Rank::Text, BodyPart::Own(skill)));
    }
    for argument in agent_args.iter_mut() {
        text(Rank::List, argument, visit);
    }
    visit(Rank::List, BodyPart::List(agent_args));
    shown_settings(settings, visit);
    text(Rank::Text, cwd, visit);
    text(Rank::Text, display_name, visit);
    visit(Rank::Own, BodyPart::Json(metadata));
}

fn shown_settings(settings: &mut Settings, visit: Visit<'_>) {
    let Settings {
        model,
        effort,
        mode,
        add_dirs,
        images,
        allowed_tools,
        disallowed_tools,
        env_allow,
        completion_marker,
        // Names, ids, words and numbers.
        agent: _,
        session_id: _,
        fork: _,
        interactive: _,
        permissions: _,
        conversation: _,
        turn_timeout_s: _,
        prompt_timeout_s: _,
        timeout_s: _,
        start_timeout_s: _,
        idle_timeout_s: _,
        tool_timeout_s: _,
        question_timeout_s: _,
        on_question_timeout: _,
        max_turns: _,
        max_tool_calls: _,
        max_tokens: _,
        on_unsupported: _,
        max_cost_usd: _,
        progress: _,
        heartbeat_s: _,
        max_frame_bytes: _,
        question_markers: _,
        raw_prompt: _,
        fail_on_denied: _,
        // The frame shows a separate copy of these.
        cwd: _,
        agent_args: _,
        metadata: _,
        // No frame shows these.
        prompt: _,
        system_prompt: _,
        mcp_servers: _,
        env: _,
        secrets: _,
        output_schema: _,
        attached: _,
        ask_server: _,
        nonce: _,
        judge: _,
        is_part: _,
        tool_facts: _,
        session_cost_usd: _,
        sets_on_question_timeout: _,
        closed_input_declines: _,
    } = settings;
    let tools = [allowed_tools, disallowed_tools].into_iter().flatten();
    for list in [add_dirs, images].into_iter().chain(tools) {
        list.iter_mut().for_each(|item| visit(Rank::List, BodyPart::Own(item)));
        visit(Rank::List, BodyPart::List(list));
    }
    for item in [model, effort, mode].into_iter().flatten() {
        visit(Rank::Text, BodyPart::Own(item));
    }
    if let Some(names) = env_allow {
        visit(Rank::List, BodyPart::List(names));
    }
    visit(Rank::Text, BodyPart::Own(completion_marker));
}

fn question(body: &mut Question, visit: Visit<'_>) {
    let Question { question_id: _, group_id: _, group_size: _, ask, timeout_s: _, attempt: _, error, truncated: _ } =
        body;
    // No frame shows `scope` and `also`.
    let Ask { purpose, kind, header, text: asked, default, validation, required: _, subject: shown, scope: _, also: _ } =
        ask;
    if let Some(shown) = shown {
        subject(shown, visit);
    }
    // The options of a permission, and so its default, are the protocol's own words, and short.
    if *purpose != Purpose::Permission {
        answers(kind, default, visit);
    }
    rules(validation, visit);
    if let Some(error) = error {
        text(Rank::Text, error, visit);
    }
    text(Rank::Text, header, visit);
    match purpose {
        Purpose::Permission => visit(Rank::Own, BodyPart::Action(asked)),
        Purpose::Clarification | Purpose::Input => text(Rank::Text, asked, visit),
    }
}

fn answers(kind: &mut Kind, default: &mut Option<Answer>, visit: Visit<'_>) {
    let options: &[Choice] = match kind {
        Kind::Select { choices, multiple: _, allow_other: _ } => {
            for Choice { value, label, description } in choices.iter_mut() {
                visit(Rank::List, BodyPart::Answer(value));
                visit(Rank::List, BodyPart::Answer(label));
                if let Some(description) = description {
                    text(Rank::Output, description, visit);
                }
            }
            visit(Rank::List, BodyPart::List(choices));
            choices.as_slice()
        }
        Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => &[],
    };
    let named: HashSet<&Text> = match default {
        Some(Answer::One(_) | Answer::Many(_)) => options.iter().map(|choice| &choice.value).collect(),
        Some(Answer::Bool(_) | Answer::Text(_) | Answer::Null) | None => HashSet::new(),
    };
    // A default that names an option must still name it afterwards.
    fn part<'a>(named: &HashSet<&Text>, value: &'a mut Text) -> BodyPart<'a> {
        if named.contains(&*value) { BodyPart::Answer(value) } else { BodyPart::Text(value) }
    }
    match default {
        Some(Answer::One(value)) => visit(Rank::Text, part(&named, value)),
        Some(Answer::Text(free)) => text(Rank::Text, free, visit),
        Some(Answer::Many(values)) => {
            values.iter_mut().for_each(|value| visit(Rank::List, part(&named, value)));
            visit(Rank::List, BodyPart::List(values));
        }
        Some(Answer::Bool(_) | Answer::Null) | None => {}
    }
}

fn rules(rules: &mut Validation, visit: Visit<'_>) {
    let Validation {
        pattern,
        pattern_checked: _,
        min_length: _,
        max_length: _,
        min: _,
        max: _,
        integer: _,
        min_selected: _,
        max_selected: _,
        must_exist: _,
        path_type: _,
    } = rules;
    visit(Rank::Output, BodyPart::Whole(pattern));
}

fn terminal(body: &mut Terminal, visit: Visit<'_>) {
    let Terminal {
        outcome: end,
        session_id: _,
        artifacts,
        usage: _,
        duration_ms: _,
        metadata,
        unattended,
        completion_detected: _,
        agent_exit: _,
        turns: _,
        workflow,
        truncated: _,
    } = body;
    if let Some(end) = workflow {
        workflow_end(end, visit);
    }
    for ArtifactRef { path, action: _ } in artifacts.iter_mut() {
        text(Rank::List, path, visit);
    }
    visit(Rank::List, BodyPart::List(artifacts));
    left(unattended, visit);
    outcome(end, visit);
    visit(Rank::Own, BodyPart::Json(metadata));
}

fn left(unattended: &mut Unattended, visit: Visit<'_>) {
    let Unattended { denied, unanswered } = unattended;
    for Tally { count: _, first } in [denied, unanswered] {
        for Left { category: _, text: asked } in first.iter_mut() {
            text(Rank::List, asked, visit);
        }
        visit(Rank::List, BodyPart::List(first));
    }
}

fn workflow_end(end: &mut WorkflowEnd, visit: Visit<'_>) {
    let WorkflowEnd { name: _, target, complete: _, tasks: _, violations, kept, phases } = end;
    for Breach { file, line: _, rule: _, text: told } in violations.iter_mut() {
        text(Rank::List, file, visit);
        text(Rank::List, told, visit);
    }
    visit(Rank::List, BodyPart::List(violations));
    for GaveWay { path, to } in kept.iter_mut() {
        text(Rank::List, path, visit);
        text(Rank::List, to, visit);
    }
    visit(Rank::List, BodyPart::List(kept));
    for phase in phases.iter_mut() {
        let PhaseReport {
            id: _,
            title,
            state: _,
            attempts: _,
            duration_ms: _,
            cost_usd: _,
            files,
            commit: _,
            unverified,
        } = phase;
        for ArtifactRef { path, action: _ } in files.iter_mut() {
            text(Rank::Output, path, visit);
        }
        visit(Rank::Output, BodyPart::List(files));
        unverified.iter_mut().for_each(|told| text(Rank::Output, told, visit));
        visit(Rank::Output, BodyPart::List(unverified));
        text(Rank::Text, title, visit);
    }
    visit(Rank::List, BodyPart::List(phases));
    target.iter_mut().for_each(|target| text(Rank::Text, target, visit));
}

fn about(about: &mut About, visit: Visit<'_>) {
    match about {
        About::Session { session_id: _, agent_version, model, capabilities: _ } => {
            for item in [agent_version, model].into_iter().flatten() {
                text(Rank::Text, item, visit);
            }
        }
        About::Resolved { question_id: _, resolution: _, used_default: _, permission, what } => {
            if let Some((shown, _option)) = permission {
                subject(shown, visit);
                // Nobody approves what is already resolved, so that it may be cut.
                visit(Rank::List, BodyPart::List(&mut shown.locations));
            }
            text(Rank::Text, what, visit);
        }
        About::Tool {
            call_id: _,
            name,
            category: _,
            state: _,
            duration_ms: _,
            locations,
            input,
            output,
            facts,
            phase: _,
        } => {
            text(Rank::List, name, visit);
            visit(Rank::Output, BodyPart::Json(input));
            if let Some(output) = output {
                text(Rank::Output, output, visit);
            }
            for FileEdit { path, lines, is_cut: _ } in &mut facts.edits {
                text(Rank::Output, path, visit);
                text(Rank::Output, lines, visit);
            }
            places(locations, visit);
        }
        About::Phase { phase: _, title, number: _, of: _, attempt: _, state: _ } => text(Rank::Text, title, visit),
        About::Plan(entries) | About::Todo(entries) => {
            for PlanEntry { text: entry, status: _ } in entries.iter_mut() {
                text(Rank::List, entry, visit);
            }
            visit(Rank::List, BodyPart::List(entries));
        }
        About::Turn(turn) => {
            let TurnReport { number: _, outcome: end, usage: _, completion_detected: _, unattended } = &mut **turn;
            left(unattended, visit);
            outcome(end, visit);
        }
        About::Status(_) | About::Warning(_) | About::Usage(_) | About::Prompt { .. } => {}
        About::Heartbeat { idle_s: _, waiting_on: _ } => {}
        About::Text { message_id: _, done: _, withdrawn: _ } => {}
        About::Reasoning { message_id: _, done: _, withdrawn: _ } => {}
    }
}

fn outcome(outcome: &mut Outcome, visit: Visit<'_>) {
    match outcome {
        Outcome::Completed { text: answer, message_id: _, text_cut: _, structured_output, stop_reason: _ } => {
            visit(Rank::Output, BodyPart::Json(structured_output));
            text(Rank::Text, answer, visit);
        }
        Outcome::Failed(failure) => {
            let Failure {
                code: _,
                message,
                retryable: _,
                http_status: _,
                agent_message,
                stderr_tail,
                limit: _,
                reason: _,
                target,
                phase,
                violations,
            } = failure;
            if let Some(violations) = violations {
                let Mismatches(all) = &mut **violations;
                for Mismatch { path, text: told } in all.iter_mut() {
                    text(Rank::List, path, visit);
                    text(Rank::List, told, visit);
                }
                visit(Rank::List, BodyPart::List(all));
            }
            // The frame shows it in `workflow`.
            target.iter_mut().for_each(|target| text(Rank::Text, target, visit));
            if let Some(phase) = phase {
                let PhaseFailure { phase: _, attempt: _, command, exit_code: _, timed_out: _, output_tail } =
                    &mut **phase;
                text(Rank::Output, output_tail, visit);
                command.iter_mut().for_each(|command| text(Rank::Text, command, visit));
            }
            for told in [agent_message, stderr_tail].into_iter().flatten() {
                text(Rank::Output, told, visit);
            }
            visit(Rank::Text, BodyPart::Own(message));
        }
        Outcome::Cancelled { reason, source: _ } => {
            if let Some(reason) = reason {
                text(Rank::Text, reason, visit);
            }
        }
    }
}

//! Hands a failed turn over to the next agent of `fallback`. The turn stays open while the agent's process is ended, as in
//! the wait for a limit, and goes on with the next agent in a session of its own.

use super::active_run::ActiveRun;
use super::event::{Effect, Start};
use super::provider_limit::AfterProcess;
use super::servers::Servers;
use super::turns::WaitingPrompt;
use crate::protocol::failure::Failure;
use crate::protocol::outbound::Outcome;
use crate::protocol::terms::sentence;
use crate::protocol::words::{OnRateLimit, Warning};
use std::fmt::Write;
use std::time::Duration;

const FILES: usize = 50;

impl ActiveRun {
    /// `waited`: the run does not wait for a limit, or no longer. Returns whether the turn is handed over.
    pub(super) fn hands_over(&mut self, outcome: &mut Outcome, waited: bool) -> bool {
        let Outcome::Failed(failure) = outcome else { return false };
        let Some(next) = self.settings.fallback.first() else { return false };
        let waits = self.settings.on_rate_limit == OnRateLimit::Wait && !waited;
        let takes_over = next.takes_over_after(failure.code.name(), waits);
        let is_agent = self.step.is_none() && self.turns.current.is_running() && !self.ladder.is_decided();
        if !takes_over || !is_agent {
            return false;
        }
        // Nobody else knows what the agent has done, or what was said in earlier turns. A workflow's prompt has all of it.
        let is_new = !self.turns.current.worked && self.turns.current.number == 1;
        if !self.settings.is_part && !is_new {
            if waited {
                let (message, name) = (&failure.message, &next.agent);
                failure.message = sentence!(
                    "{message} {name} does not take over, because the work has begun: to go on with it, begin a run with \
                     {agent} {name}.",
                    message = message,
                    agent
                );
            }
            return false;
        }
        let failure = failure.clone();
        self.leave_turn_open(Duration::ZERO, failure, AfterProcess::HandOver);
        true
    }

    pub(super) fn fail_start(&mut self, failure: Failure) {
        let outcome = Outcome::Failed(failure);
        if self.ladder.is_decided() || self.step.is_some() || !self.turns.current.is_running() {
            return self.decide(outcome);
        }
        self.end_turn_without_process(outcome);
    }

    /// Requests the next agent, once nothing of the last one runs.
    pub(super) fn hand_over(&mut self, failure: &Failure) {
        let (failed, next) = (&self.settings.agent, &self.settings.fallback[0].agent);
        let text = format!("{failed} failed ({}), and {next} takes over", failure.code.name());
        self.effects.warn(Warning::AgentReplaced, text, None);
        self.effects.push(Effect::HandOver);
    }

    pub(super) fn take_over(&mut self, start: Start) {
        let Start { settings, driver, remake, asking_failed, missing, .. } = start;
        let settings = self.settings.taken_over_by(&settings);
        let whole = self.whole.as_ref().unwrap_or(&settings.prompt);
        let text = if settings.is_part { self.after_another(whole) } else { whole.clone() };
        let (number, images) = (self.turns.prompts, settings.attached.clone());
        let prompt = WaitingPrompt { number, text: text.into(), images, raw: None };
        self.settings = settings;
        self.tell_missing(missing, asking_failed);
        self.servers = Servers::new(&self.settings);
        self.effects.starts_agent(self.settings.agent.clone());
        self.turns.completion.note_text(&prompt.text);
        self.budget.change_agent(&self.settings, &driver.features(&self.settings).keepers);
        self.agent.replace(remake);
        match self.agent.launch(driver, &self.settings, prompt, &self.budget) {
            Ok(launched) => self.begin_launched(launched),
            Err(failure) => self.fail_start(failure),
        }
    }

    fn after_another(&self, prompt: &str) -> String {
        let mut text = format!(
            "{}\n\n# Taken over\n\nAnother agent, {}, began this and cannot go on. Its work is still there: look at the \
             current state first, go on from it, and do nothing twice.",
            prompt.trim_end(),
            self.settings.agent
        );
        let files = &self.artifacts.list;
        if !files.is_empty() {
            text.push_str(" It changed these files:\n");
        }
        for file in files.iter().take(FILES) {
            let _ = write!(text, "\n- {} ({})", file.path.redacted(&self.texts.redactor), file.action.word());
        }
        if files.len() > FILES {
            let _ = write!(text, "\n- and {} more", files.len() - FILES);
        }
        text
    }
}

//! The prompts to the agent, and what it may take for more than text in them.
//!
//! Facts (Gemini CLI 0.61.0, OpenCode 1.18.33): a text that begins with a slash, even after white space, calls a command;
//! the agent lists its commands, and an unknown one goes to the model as text; `@path` is plain text, and only a link to a
//! resource sends a file. A link to a missing file causes no error.

use super::Acp;
use super::profile::ServerWay;
use super::session::Phase;
use crate::agent::prompt_text::{mentions, without_command};
use crate::agent::text::FinalAnswer;
use crate::agent::{AgentEvent, DriverOutput};
use crate::json::Object;
use crate::protocol::image::Image;
use serde_json::{Value, json};
use std::path::Path;

impl Acp {
    pub(super) fn list_commands(&mut self, update: &Object<'_>, out: &mut DriverOutput) {
        if update.is("sessionUpdate", "available_commands_update") {
            self.commands.list(update, "availableCommands", out);
        }
    }

    /// Sends the first prompt, or waits for MCP servers before it, unless the agent starts them only then.
    pub(super) fn first_prompt(&mut self, out: &mut DriverOutput) {
        if !self.start.awaits_servers {
            return self.send_first(out);
        }
        out.events.push(AgentEvent::AwaitsServers);
        if self.profile.servers == ServerWay::AtPrompt {
            return self.send_first(out);
        }
        self.phase = Phase::AwaitingServers;
    }

    pub(super) fn send_first(&mut self, out: &mut DriverOutput) {
        let prompt = std::mem::take(&mut self.start.prompt);
        let images = std::mem::take(&mut self.start.images);
        self.prompt(&prompt, &images, out);
    }

    pub(super) fn prompt(&mut self, text: &str, images: &[Image], out: &mut DriverOutput) {
        if self.wants.raw_prompt {
            self.commands.call(text, out);
            let links = mentions(text).filter_map(|(_, path)| link(path, &self.cwd)).collect();
            return self.send_prompt(text, images, links, out);
        }
        self.send_prompt(&without_command(text), images, Vec::new(), out);
    }

    pub(super) fn send_prompt(&mut self, text: &str, images: &[Image], links: Vec<Value>, out: &mut DriverOutput) {
        self.phase = Phase::Prompting;
        self.cancelling = false;
        self.steps.begin_turn();
        self.answer = FinalAnswer::default();
        self.called = false;
        let block = |image: &Image| json!({"type": "image", "mimeType": image.media_type, "data": image.label()});
        let text = json!({"type": "text", "text": text});
        let prompt: Value = images.iter().map(block).chain([text]).chain(links).collect();
        self.request("session/prompt", &json!({"sessionId": self.session, "prompt": prompt}), out);
    }
}

/// `None`: the mention looks like a word, such as a decorator in code.
fn link(mentioned: &str, cwd: &Path) -> Option<Value> {
    let path = mentioned.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    if path.is_empty() || path.starts_with('~') || !path.contains(['/', '.']) {
        return None;
    }
    let mut uri = String::from("file://");
    for c in cwd.join(path).to_string_lossy().chars() {
        match c {
            // Readers of a URI encode the rest themselves, and Gemini CLI decodes nothing.
            '%' | '#' | '?' | '\0'..=' ' if c != ' ' => uri += &format!("%{:02X}", u32::from(c)),
            c => uri.push(c),
        }
    }
    Some(json!({"type": "resource_link", "uri": uri, "name": path}))
}

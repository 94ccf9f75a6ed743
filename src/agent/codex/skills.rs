//! Prompts that call a skill.
//!
//! Facts (measured on 0.169.0): Codex has no commands over its app-server, and no prompts in files any more. It follows a
//! skill that the input names, and one that the text mentions as `$NAME`, if no other has that name.

use super::Codex;
use crate::agent::DriverOutput;
use crate::agent::prompt_text::{commands, no_such_command};
use crate::json::Object;
use crate::protocol::image::Image;
use crate::protocol::prompt::called_command;
use serde_json::json;

pub(super) const LIST: &str = "skills/list";

#[derive(Debug)]
pub(super) struct Calling {
    prompt: String,
    images: Vec<Image>,
}

impl Codex {
    pub(super) fn prompt(&mut self, text: &str, images: &[Image], out: &mut DriverOutput) {
        if !self.items.wants.raw_prompt || called_command(text).is_none() || self.unsent.is_some() {
            return self.say(text, images, out);
        }
        self.unsent = Some(Calling { prompt: text.to_owned(), images: images.to_vec() });
        self.request(LIST, &json!({}), out);
    }

    pub(super) fn list_skills(&mut self, out: &mut DriverOutput) {
        if self.items.wants.commands {
            self.request(LIST, &json!({}), out);
        }
    }

    fn report_skills(&self, skills: Option<&Object<'_>>, out: &mut DriverOutput) {
        if let Some(skills) = skills.filter(|_| self.items.wants.commands) {
            let skill = |skill: Object<'_>| Some((skill.string("name")?.into(), skill.string("description"), None));
            out.events.push(commands(enabled(skills).filter_map(skill)));
        }
    }

    /// Warns if there is no such skill.
    pub(super) fn call_skill(&mut self, skills: Option<&Object<'_>>, out: &mut DriverOutput) {
        self.report_skills(skills, out);
        let Some(Calling { prompt, images }) = self.unsent.take() else { return };
        let found = called_command(&prompt).and_then(|name| skill(skills?, name));
        let Some((name, path)) = found else {
            out.warn(no_such_command());
            return self.say(&prompt, &images, out);
        };
        // The form in which Codex knows a mention.
        let mut input = super::launch::input(&prompt.replacen('/', "$", 1), &images);
        input.as_array_mut().into_iter().for_each(|all| all.push(json!({"type": "skill", "name": name, "path": path})));
        self.send(input, out);
    }
}

fn enabled<'a>(skills: &Object<'a>) -> impl Iterator<Item = Object<'a>> {
    let all = skills.objects("data").flat_map(|folder| folder.objects("skills").collect::<Vec<_>>());
    all.filter(|skill| skill.bool("enabled") != Some(false))
}

fn skill(skills: &Object<'_>, name: &str) -> Option<(String, String)> {
    let mut called = enabled(skills).filter(|skill| skill.is("name", name));
    called.find_map(|skill| Some((skill.string("name")?, skill.string("path")?)))
}

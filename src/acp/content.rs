//! The content of a prompt: text, images, resources and links become a text and files of images.

use super::Facts;
use super::refusal::RequestError;
use super::shared::ServerHost;
use crate::json::{Elements, Object, Raw};
use crate::protocol::limits::IMAGES;

/// A prompt in the terms of run.start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PromptContent {
    pub(super) text: String,
    pub(super) images: Vec<String>,
}

impl PromptContent {
    /// Reads the blocks of a prompt. Error: a block that the agent cannot take, so that nothing is lost in silence.
    pub(super) fn read(
        blocks: Elements<'_>,
        facts: &Facts,
        host: &mut dyn ServerHost,
    ) -> Result<PromptContent, RequestError> {
        let mut content = PromptContent::default();
        let read = blocks.enumerate().try_for_each(|(at, block)| content.block(at, block, facts, host));
        let empty = content.text.trim().is_empty();
        let read = match read {
            Ok(()) if empty && content.images.is_empty() => {
                Err(RequestError::parameter("prompt", "a list with some content"))
            }
            read => read,
        };
        if let Err(refusal) = read {
            content.images.iter().for_each(|path| host.remove(path));
            return Err(refusal);
        }
        if empty {
            content.text = "See the image.".into();
        }
        Ok(content)
    }

    fn block(
        &mut self,
        at: usize,
        block: Raw<'_>,
        facts: &Facts,
        host: &mut dyn ServerHost,
    ) -> Result<(), RequestError> {
        let wrong = |expected: &str| RequestError::parameter(&format!("prompt[{at}]"), expected);
        let block = block.object().ok_or_else(|| wrong("a content block"))?;
        let kind = block.string("type").unwrap_or_default();
        match kind.as_str() {
            "text" => self.add(&block.string("text").ok_or_else(|| wrong("a block of text with `text`"))?),
            "resource_link" => self.link(&block).ok_or_else(|| wrong("a link with `uri`"))?,
            "resource" => {
                let resource = block.object("resource").ok_or_else(|| wrong("a block with `resource`"))?;
                let uri = resource.string("uri").unwrap_or_default();
                if let Some(text) = resource.string("text") {
                    self.add(&format!("\n<context ref=\"{uri}\">\n{text}\n</context>\n"));
                } else {
                    let is_image = resource.str("mimeType").is_some_and(|kind| kind.starts_with("image/"));
                    let data = resource.str("blob").filter(|_| is_image);
                    let data = data.ok_or_else(|| wrong("a resource with `text`, or an image"))?;
                    self.image(at, &data, facts, host)?;
                }
            }
            "image" => {
                let data = block.str("data").ok_or_else(|| wrong("an image with `data` in base64"))?;
                self.image(at, &data, facts, host)?;
            }
            "audio" => return Err(wrong("no audio: this agent takes none")),
            _ => return Err(wrong("of type text, image, resource or resource_link")),
        }
        Ok(())
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn link(&mut self, block: &Object<'_>) -> Option<()> {
        let uri = block.string("uri")?;
        let name = block.string("name").filter(|name| !name.is_empty()).unwrap_or_else(|| uri.clone());
        let target = uri.strip_prefix("file://").unwrap_or(&uri);
        self.add(&format!("[{name}]({target})"));
        Some(())
    }

    fn image(&mut self, at: usize, data: &str, facts: &Facts, host: &mut dyn ServerHost) -> Result<(), RequestError> {
        let wrong = |expected: &str| RequestError::parameter(&format!("prompt[{at}]"), expected);
        if !facts.images {
            return Err(wrong("no image: this agent takes none"));
        }
        if self.images.len() == IMAGES {
            return Err(RequestError::parameter("prompt", &format!("a list with at most {IMAGES} images")));
        }
        self.images.push(host.image(data).ok_or_else(|| wrong("an image with `data` in base64"))?);
        Ok(())
    }
}

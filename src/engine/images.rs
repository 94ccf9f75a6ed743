//! The files of a prompt's images: checked before the agent starts, and read when they are sent.

use super::host::Host;
use crate::agent::registry::Agent;
use crate::agent::takes_no_images;
use crate::config::origins::Origins;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields::field;
use crate::protocol::image::{Image, MAGIC_BYTES, media_type};
use crate::protocol::limits::{IMAGE_BYTES, IMAGES_BYTES};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use std::io::ErrorKind;
use std::path::Path;

pub(super) fn check(
    settings: &Settings,
    agent: &Agent,
    origins: &Origins,
    host: &impl Host,
) -> Result<Vec<Image>, Failure> {
    if settings.images.is_empty() {
        return Ok(Vec::new());
    }
    if !agent.features(settings).images {
        return Err(takes_no_images(&agent.name));
    }
    attach(&settings.images, &settings.cwd, &origins.subject(field!(images)), host)
}

/// `paths`: absolute, or relative to `cwd`. `subject`: the list, for a message about it.
pub(super) fn attach(
    paths: &[String],
    cwd: &Path,
    subject: &Sentence,
    host: &impl Host,
) -> Result<Vec<Image>, Failure> {
    let one = |(at, path): (usize, &String)| {
        let (subject, path) = (subject.clone().with(&format!(": number {}", at + 1)), cwd.join(path));
        let (media_type, bytes, _) = read(&subject, &path, MAGIC_BYTES, host)?;
        Ok(Image { subject, path, media_type, bytes })
    };
    let images: Vec<Image> = paths.iter().enumerate().map(one).collect::<Result<_, Failure>>()?;
    let bytes: u64 = images.iter().map(|image| image.bytes).sum();
    if bytes > IMAGES_BYTES as u64 {
        return Err(invalid(subject, format!("must total at most {} MiB", IMAGES_BYTES >> 20)));
    }
    Ok(images)
}

/// The content of an image, which may have changed since its check.
pub(super) fn content(image: &Image, host: &impl Host) -> Result<Vec<u8>, Failure> {
    let (media_type, bytes, content) = read(&image.subject, &image.path, image.bytes, host)?;
    if (media_type, bytes) != (image.media_type, image.bytes) || content.len() as u64 != bytes {
        return Err(invalid(&image.subject, "changed while the agent started: start the run again"));
    }
    Ok(content)
}

/// The media type, the size and at most `first` bytes of an image.
fn read(
    subject: &Sentence,
    path: &Path,
    first: u64,
    host: &impl Host,
) -> Result<(&'static str, u64, Vec<u8>), Failure> {
    let (bytes, content) = host.image(path, first).map_err(|error| {
        if error.kind() == ErrorKind::InvalidInput {
            return invalid(subject, "is not a regular file");
        }
        let why = sentence!("cannot be read: name an existing file, by its absolute path or relative to {cwd}", cwd);
        invalid(subject, why)
    })?;
    if bytes == 0 {
        return Err(invalid(subject, "is an empty file"));
    }
    if bytes > IMAGE_BYTES as u64 {
        return Err(invalid(subject, format!("is larger than {} MiB", IMAGE_BYTES >> 20)));
    }
    let media_type = media_type(&content).ok_or_else(|| invalid(subject, "is not a PNG, JPEG, GIF or WebP image"))?;
    Ok((media_type, bytes, content))
}

fn invalid(subject: &Sentence, why: impl Into<Sentence>) -> Failure {
    let why = why.into();
    let whole = sentence!("{subject} {why}.", subject = subject, why = &why);
    Failure::new(Code::InvalidRequest, whole)
}

//! The images of a prompt: their formats, and their place in a line for an agent.

use super::sentence::Sentence;
use crate::base64;
use std::path::PathBuf;

/// The number of bytes that show an image's format.
pub const MAGIC_BYTES: u64 = 12;

/// The media type of an image that begins with these bytes. `None`: the format is unknown.
pub fn media_type(first: &[u8]) -> Option<&'static str> {
    match first {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The image's place among the images, as the subject of a message about it.
    pub subject: Sentence,
    /// Absolute.
    pub path: PathBuf,
    pub media_type: &'static str,
    pub bytes: u64,
}

impl Image {
    /// Stands for the data: drivers write it as the value of `data`, [`with_data`] replaces it, recordings show it.
    pub fn label(&self) -> String {
        format!("[{}, {} bytes]", self.media_type, self.bytes)
    }

    fn field(&self) -> String {
        format!("\"data\":\"{}\"", self.label())
    }
}

/// The line with the data of the images instead of their labels, which stand in the order of the images. No text in the
/// line can be mistaken for a label, because JSON escapes the quotes in a text. `None`: the line lacks the labels.
pub fn with_data<E>(
    line: &str,
    images: &[Image],
    mut read: impl FnMut(&Image) -> Result<Vec<u8>, E>,
) -> Result<Option<String>, E> {
    if !images.first().is_some_and(|image| line.contains(&image.field())) {
        return Ok(None);
    }
    let bytes: u64 = images.iter().map(|image| image.bytes.div_ceil(3) * 4).sum();
    let mut out = String::with_capacity(line.len() + usize::try_from(bytes).unwrap_or_default());
    let mut rest = line;
    for image in images {
        let Some((before, after)) = rest.split_once(&image.field()) else { return Ok(None) };
        out.push_str(before);
        out.push_str("\"data\":\"");
        out.push_str(&base64::encode(&read(image)?));
        out.push('"');
        rest = after;
    }
    out.push_str(rest);
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::{Image, media_type, with_data};
    use crate::json::to_line;
    use serde_json::json;
    use std::path::PathBuf;

    #[test]
    fn the_first_bytes_show_the_format() {
        let known: [(&[u8], &str); 5] = [
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF87a", "image/gif"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ];
        for (first, expected) in known {
            assert_eq!(media_type(first), Some(expected));
            assert_eq!(media_type(&first[1..]), None);
        }
        for other in [&b""[..], b"\x89PNG", b"GIF88a", b"RIFF\x10\0\0\0WAVE", b"<svg>", b"BM"] {
            assert_eq!(media_type(other), None, "{other:?}");
        }
    }

    fn image(bytes: u64) -> Image {
        Image { subject: "".into(), path: PathBuf::new(), media_type: "image/gif", bytes }
    }

    #[test]
    fn data_replaces_labels_and_nothing_else() {
        let images = [image(3), image(3), image(1)];
        let label = images[0].label();
        let lookalike = format!("\"data\":\"{label}\"");
        let line = |data: [&str; 3]| {
            let blocks = data.map(|data| json!({"data": data, "type": "image"}));
            to_line(&json!({"content": blocks, "text": [&lookalike, &label]}))
        };
        let mut contents = [&b"abc"[..], b"def", b"g"].into_iter();
        let filled = with_data(&line([&label, &label, &images[2].label()]), &images, |_| {
            Ok::<_, ()>(contents.next().unwrap().to_vec())
        });
        assert_eq!(filled, Ok(Some(line(["YWJj", "ZGVm", "Zw=="]))));
    }

    #[test]
    fn a_line_without_labels_stays_and_reads_nothing() {
        let read = |_: &Image| Err::<Vec<u8>, _>("read");
        let line = to_line(&json!({"text": format!("\"data\":\"{}\"", image(3).label())}));
        assert_eq!(with_data(&line, &[image(3)], read), Ok(None));
        assert_eq!(with_data(&line, &[], read), Ok(None));
        assert_eq!(with_data(&to_line(&json!({"data": image(3).label()})), &[image(3)], read), Err("read"));
    }
}

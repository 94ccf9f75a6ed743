//! The text in a line that is a JSON object.

use crate::json::Object;

/// The texts at a path of keys, joined by newlines. A key of a list leads into each object of it. `None`: the line is not
/// an object, so that it is text itself.
pub(super) fn picked(line: &str, path: &str) -> Option<String> {
    let object = Object::parse(line.trim())?;
    let mut texts = Vec::new();
    pick(&object, path, &mut texts);
    Some(texts.join("\n"))
}

fn pick(object: &Object<'_>, path: &str, texts: &mut Vec<String>) {
    let Some((first, rest)) = path.split_once('.') else { return texts.extend(object.string(path)) };
    if let Some(inner) = object.object(first) {
        return pick(&inner, rest, texts);
    }
    for inner in object.objects(first) {
        pick(&inner, rest, texts);
    }
}

#[cfg(test)]
mod tests {
    use super::picked;

    #[test]
    fn a_path_leads_through_objects_and_lists() {
        let line =
            r#" {"type":"a","message":{"content":[{"text":"one"},7,{"x":1},{"text":"two"}]},"result":"r","n":1}"#;
        for (path, wanted) in [
            ("result", "r"),
            ("message.content.text", "one\ntwo"),
            ("message.content", ""),
            ("n", ""),
            ("none.at.all", ""),
        ] {
            assert_eq!(picked(line, path).as_deref(), Some(wanted), "{path}");
        }
        assert_eq!((picked("plain", "result"), picked("[1]", "result")), (None, None));
    }
}

//! Inputs: lines of bytes. The corpus below testdata/corpus holds one file per input, in a folder per target.

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of an input, without their LF.
pub(crate) type Input = Vec<Vec<u8>>;

pub(crate) fn from_text(text: &str) -> Input {
    text.split('\n').map(|line| line.as_bytes().to_vec()).collect()
}

pub(crate) fn bytes(input: &Input) -> Vec<u8> {
    input.join(&b'\n')
}

/// The input as text. Bytes that are not UTF-8 become U+FFFD.
pub(crate) fn text(input: &Input) -> String {
    String::from_utf8_lossy(&bytes(input)).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// The inputs of a target in the corpus, with the names of their files.
pub(crate) fn corpus(target: &str) -> Vec<(String, Input)> {
    let Ok(entries) = fs::read_dir(root().join("corpus").join(target)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the corpus").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file of the corpus");
        // The file ends with an LF, like any file of text.
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    };
    paths.into_iter().map(read).collect()
}

/// The text of every file below testdata whose path ends with this name.
pub(crate) fn texts(name: &str) -> Vec<String> {
    let (mut found, mut todo) = (Vec::new(), vec![root()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).expect("testdata") {
            let path = entry.expect("an entry of testdata").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.to_string_lossy().ends_with(name) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.into_iter().map(|path| fs::read_to_string(path).expect("a text")).collect()
}

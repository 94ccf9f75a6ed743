//! Rules for the source code that a test can check.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
pub(crate) fn rust_files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut todo = vec![root().join(folder)];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push((path.strip_prefix(root()).unwrap().to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 5, "{folder} is nearly empty");
    found.sort();
    found
}

/// The part of a file before its unit tests.
pub(crate) fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

#[test]
fn files_are_short() {
    // Tests are tables and may be longer.
    let limits = [("src", 550), ("tests", 800)];
    for ((path, text), limit) in
        limits.iter().flat_map(|(folder, limit)| rust_files(folder).into_iter().map(move |f| (f, *limit)))
    {
        let lines = text.lines().count();
        assert!(lines <= limit, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn functions_are_short() {
    for (path, text) in rust_files("src") {
        let mut open: Option<(usize, usize, String)> = None;
        for (number, line) in code(&text).lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let head = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let head = head.trim_start_matches("pub(super) ").trim_start_matches("const ");
            if head.starts_with("fn ") && !line.ends_with(';') && !line.ends_with('}') {
                open = Some((number, indent, head.to_owned()));
            } else if let Some((start, at, name)) = open.as_ref().filter(|(_, at, _)| line == " ".repeat(*at) + "}") {
                let _ = at;
                assert!(number - start <= 72, "{}: {name} has {} lines", path.display(), number - start);
                open = None;
            }
        }
    }
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The files that call this method of a text.
fn callers(method: &str) -> Vec<String> {
    let mut found: Vec<String> = rust_files("src")
        .into_iter()
        .filter(|(path, text)| !is_test(path) && code(text).contains(method))
        .map(|(path, _)| path.to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn only_readers_of_redacted_bodies_see_what_a_body_shows() {
    let readers = [
        "src/cmd/task.rs",
        "src/cmd/protocol_check/noting.rs",
        "src/cmd/reported.rs",
        "src/engine/answers.rs",
        "src/engine/dry_run.rs",
        "src/protocol/frame.rs",
        "src/protocol/frame_value.rs",
        "src/protocol/redacted.rs",
        "src/protocol/wire.rs",
        "src/terminal/",
        "src/workflow/",
    ];
    let callers = callers(".shown()");
    for file in &callers {
        assert!(readers.iter().any(|reader| file.starts_with(reader)), "{file} reads a text that may not be redacted");
    }
    assert!(callers.len() > readers.len(), "the rule looks for a method of another name");
}

/// The only places that read a text together with its secrets, each with its reason. All others receive the text from a
/// redactor.
#[test]
fn few_files_open_a_text_with_its_secrets() {
    let openers = [
        // The agent's words in another question of its own, and answers on their way to the agent.
        "src/agent/acp/ask.rs",
        "src/agent/acp/call.rs",
        "src/agent/acp/session.rs",
        "src/agent/ask_user.rs",
        "src/agent/claude/can_use_tool.rs",
        "src/agent/codex/items.rs",
        "src/agent/demo/mod.rs",
        "src/agent/form.rs",
        // The error code of npm is found in its stderr.
        "src/agent/npx.rs",
        // A path is compared, and a message given to the agent.
        "src/agent/pi/calls.rs",
        // Its stderr says why pi did not start.
        "src/agent/pi/mod.rs",
        "src/agent/reply.rs",
        // It redacts whole lines.
        "src/cmd/format_check.rs",
        // It redacts the stderr of an agent before it cuts it.
        "src/engine/conductor.rs",
        "src/engine/overwritten.rs",
        // An answer is compared with the options.
        "src/protocol/question.rs",
        // A result is checked, and its violations go back to the agent.
        "src/protocol/schema.rs",
        // A sentence becomes a part of another one.
        "src/protocol/sentence.rs",
        // It redacts whole messages and keeps escape sequences.
        "src/recording.rs",
        // A further prompt goes to the agent.
        "src/run/agent_side.rs",
        // A path is found in the directories of the run.
        "src/run/asked_question.rs",
        // The marker of a blocked agent is cut from it.
        "src/run/blocked.rs",
        // A long text is cut into parts before it is redacted.
        "src/run/event.rs",
        // A path is found in the working directory.
        "src/run/frame_texts.rs",
        // A fingerprint of the text.
        "src/run/messages.rs",
        // An answer other than an option is a secret.
        "src/run/open_questions.rs",
        // Markers are searched in it.
        "src/run/text_markers.rs",
        // Enter gives the default back.
        "src/terminal/answer.rs",
        // The paths and the command of a request are compared with those that a workflow allows.
        "src/workflow/implement/judge.rs",
        "src/workflow/permit.rs",
        // The result of a review is read, and its findings go to the agent.
        "src/workflow/review.rs",
    ];
    assert_eq!(callers(".unredacted()"), openers);
}

#[test]
fn every_file_has_a_module_comment() {
    for (path, text) in rust_files("src") {
        assert!(text.starts_with("//! "), "{} does not begin with //!", path.display());
    }
}

/// For each module, the modules that it may use. Each file may name these and its own module.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base64", &[]),
    ("redact", &["base64", "clean"]),
    ("clean", &[]),
    ("json", &[]),
    ("markers", &[]),
    ("paths", &[]),
    ("suggest", &["redact"]),
    ("system", &[]),
    ("protocol", &["base64", "json", "redact", "suggest"]),
    ("agent", &["clean", "json", "paths", "protocol", "suggest"]),
    ("recording", &["json", "protocol", "redact"]),
    ("report", &["agent", "clean", "json"]),
    ("run", &["agent", "clean", "json", "markers", "paths", "protocol", "redact"]),
    ("scripted_model", &["agent", "io"]),
    ("io", &["clean", "protocol", "system"]),
    ("process", &["agent", "io", "paths", "protocol", "suggest", "system"]),
    ("acp", &["agent", "base64", "clean", "io", "json", "process", "protocol", "system"]),
    (
        "engine",
        &[
            "agent",
            "clean",
            "config",
            "io",
            "json",
            "paths",
            "process",
            "protocol",
            "recording",
            "redact",
            "run",
            "suggest",
            "system",
        ],
    ),
    ("json_lines", &["engine", "io", "protocol"]),
    ("sessions", &["clean", "config", "io", "protocol", "suggest"]),
    (
        "workflow",
        &[
            "agent", "clean", "config", "engine", "io", "json", "paths", "process", "protocol", "redact", "run",
            "sessions", "suggest", "system",
        ],
    ),
    ("terminal", &["clean", "engine", "io", "protocol", "suggest"]),
    ("help", &["cli", "protocol"]),
    ("integrate", &["agent", "clean", "json", "protocol"]),
    ("cli", &["agent", "json", "protocol", "suggest"]),
    ("config", &["agent", "cli", "io", "json", "process", "protocol", "redact", "suggest"]),
    (
        "cmd",
        &[
            "acp",
            "agent",
            "clean",
            "cli",
            "config",
            "engine",
            "help",
            "integrate",
            "io",
            "json",
            "json_lines",
            "process",
            "protocol",
            "recording",
            "redact",
            "report",
            "run",
            "scripted_model",
            "sessions",
            "suggest",
            "system",
            "terminal",
            "workflow",
        ],
    ),
];

/// The parts of the workflows that know neither a run nor a file system.
const PURE: &[&str] = &["markdown", "name", "plan", "spec", "violation"];

#[test]
fn the_formats_of_workflows_are_pure() {
    let mut seen = 0;
    for (path, text) in rust_files("src/workflow") {
        let inside = path.strip_prefix("src/workflow").unwrap();
        let part = inside.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
        if !PURE.contains(&part.as_str()) {
            continue;
        }
        seen += 1;
        let code = code(&text);
        for part in code.split("crate::").skip(1) {
            let fine = ["clean::", "json::", "protocol::", "suggest::", "workflow::"]
                .iter()
                .any(|module| part.starts_with(module));
            assert!(fine, "{} uses {}", path.display(), part.lines().next().unwrap());
        }
        for word in ["std::fs", "std::io", "std::env", "std::time", "project"] {
            let used = code.lines().any(|line| line.starts_with("use ") && line.contains(word));
            assert!(!used, "{} uses {word}", path.display());
        }
    }
    assert!(seen >= PURE.len(), "the pure files have other names");
}

#[test]
fn dependencies_point_one_way() {
    let mut used = BTreeSet::new();
    for (path, text) in rust_files("src") {
        let inside = path.strip_prefix("src").unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
        if matches!(module.as_str(), "main" | "lib") {
            continue;
        }
        let (_, allowed) = MAY_USE.iter().find(|(name, _)| *name == module).unwrap_or_else(|| {
            panic!("{module} is new: give it a place in the order of dependencies");
        });
        for part in code(&text).split("crate::").skip(1) {
            let other: String = part.chars().take_while(|c| matches!(c, 'a'..='z' | '0'..='9' | '_')).collect();
            let fine = other.is_empty() || other == module || allowed.contains(&other.as_str());
            assert!(fine, "{}: {module} may not use {other}", path.display());
            used.insert((module.clone(), other));
        }
    }
    let unused = MAY_USE.iter().flat_map(|(module, allowed)| allowed.iter().map(move |other| (*module, *other)));
    let unused: Vec<_> =
        unused.filter(|(module, other)| !used.contains(&((*module).into(), (*other).into()))).collect();
    assert!(unused.is_empty(), "remove what nothing uses: {unused:?}");
}

/// The words in a text's code: comments do not count.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = code(text).lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    lines.flat_map(|(at, line)| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(move |word| (at + 1, word.to_lowercase())).collect::<Vec<_>>()
    })
}

/// A file's text without the help of its commands.
fn without_help(text: &str) -> String {
    let mut parts = text.split("&CommandText {");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("\n        },\n").expect("the end of the help").1)
}

/// Only an agent's module and the registry know its name. The help and the hints may use one. The demo is ours.
#[test]
fn nothing_outside_the_agents_names_an_agent() {
    let agents = spektacular::agent::registry::Agents::built_in();
    // Code never has a name of several words as one word.
    let names: BTreeSet<&str> = agents.all_names().filter(|name| !name.contains('-')).collect();
    // Names that are words of their own, and that of an agent that is a client of ours too.
    let plain = ["amp", "copilot", "cursor", "demo", "openclaw", "pi", "pool"];
    let names: Vec<&str> = names.into_iter().filter(|name| !plain.contains(name)).collect();
    assert!(["claude", "codex", "gemini", "opencode", "qwen"].iter().all(|name| names.contains(name)), "{names:?}");
    let helps = ["src/cli/flags.rs", "src/cli/foreign.rs"].map(Path::new);
    let mut searched = 0;
    for (path, text) in rust_files("src") {
        if path.starts_with("src/agent") || helps.contains(&path.as_path()) {
            continue;
        }
        searched += 1;
        for (line, word) in words(&without_help(&text)) {
            assert!(!names.contains(&word.as_str()), "{}:{line} names {word}", path.display());
        }
    }
    assert!(searched > 150, "{searched} files");
    // An agent's own types are private to its module.
    for (path, text) in rust_files("src").into_iter().filter(|(path, _)| !path.starts_with("src/agent")) {
        for module in ["agent::claude", "agent::codex", "agent::acp", "agent::lines"] {
            assert!(!code(&text).contains(module), "{} uses {module}", path.display());
        }
    }
}

/// The release is one static file: no package of the program needs a C compiler or a C library. `.ci/run` builds it and
/// looks for a dynamic loader in it.
#[test]
fn no_package_of_the_program_needs_a_c_library() {
    let tree = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--edges",
            "normal,build",
            // A build here has downloaded these alone: other systems have packages of their own.
            "--target",
            "x86_64-unknown-linux-musl",
            "--target",
            "aarch64-unknown-linux-musl",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let packages: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(packages.contains("spektacular") && packages.contains("rustix"), "{tree}");
    // Both declare the kernel's and the C library's functions and bring none.
    let declares = ["libc", "linux-raw-sys"];
    for package in packages {
        let builds = ["cc", "cmake", "pkg-config", "bindgen", "vcpkg"].contains(&package);
        let links = package.ends_with("-sys") && !declares.contains(&package);
        assert!(!builds && !links, "{package} needs C");
    }
    let config = fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(
        config.contains("static = [\"build\", \"--profile\", \"dist\", \"--target\", \"x86_64-unknown-linux-musl\"]")
    );
    assert!(ci.contains("' bash \"$build\" ") && ci.contains("check_static \"$binary\""), "the release is not checked");
}

/// Interfaces of one system stand in `system`, and one place chooses between its forms: everything else compiles on
/// every system.
#[test]
fn only_the_system_module_names_interfaces_of_one_system() {
    let linux = [
        "\"/proc",
        "/sys/fs/",
        "os::linux",
        "pidfd",
        "preadv2",
        "getrandom",
        "subreaper(Some",
        "DumpableBehavior",
        "CMSG_CLOEXEC",
        "NOSIGNAL",
        "socket_peercred",
        "Signal::POWER",
        "SIGPWR",
        "pipe_with",
        "accept_with",
        "OFlags::PATH",
        "memfd",
        "close_range",
        "eventfd",
        "epoll",
        "O_TMPFILE",
    ];
    let (mut seen, mut choices) = (BTreeSet::new(), Vec::new());
    for (path, text) in rust_files("src") {
        let code =
            code(&text).lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let found: Vec<&str> = linux.into_iter().filter(|word| code.contains(word)).collect();
        if path.starts_with("src/system/linux") {
            seen.extend(found);
        } else {
            assert!(found.is_empty(), "{} uses {found:?}, which not every system has", path.display());
        }
        if code.contains("target_os") || code.contains("feature = \"linux\"") {
            choices.push(path);
        }
    }
    assert!(seen.len() > 8, "the rule looks for other names than the code uses: {seen:?}");
    assert_eq!(choices, [Path::new("src/system/mod.rs")], "the form is chosen in one place");
}

#[test]
fn processes_start_in_few_places_and_output_has_two_doors() {
    let words = [
        (
            "Command::new",
            &[
                "src/process/child.rs",
                "src/process/client.rs",
                "src/process/guard.rs",
                "src/process/git/query.rs",
                "src/process/handover.rs",
                "src/process/mod.rs",
                "src/process/namespaces.rs",
                "src/process/new_session.rs",
                "src/process/own_run.rs",
                "src/process/query.rs",
            ][..],
        ),
        ("process::exit", &[]),
        ("Mutex", &[]),
        ("static mut", &[]),
    ];
    for (path, text) in rust_files("src") {
        for (word, allowed) in words {
            let lines: Vec<&str> = code(&text).lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            let found = lines.iter().any(|line| line.contains(word));
            assert!(!found || allowed.iter().any(|a| Path::new(a) == path), "{} uses {word}", path.display());
        }
    }
}

/// A definition names its subject: "The options", not "What there is to choose from". A comment begins with its
/// subject.
#[test]
fn comments_begin_with_their_subject_and_avoid_worn_phrases() {
    let beginnings =
        ["What ", "How ", "When ", "Why ", "Who ", "The same for ", "Whether nothing ", "Else ", "As it came"];
    let phrases = ["tells of", "is told of", "There is no such flag", "is not there any more", "at its times"];
    for (path, text) in rust_files("src") {
        for line in text.lines().map(str::trim_start).filter(|line| line.starts_with("//")) {
            let said = line.trim_start_matches(['/', '!', ' ']);
            let is_doc = line.starts_with("///") || line.starts_with("//!");
            let begins =
                beginnings.iter().find(|word| said.starts_with(**word)).filter(|word| is_doc || **word == "Else ");
            let worn = phrases.iter().find(|phrase| said.contains(**phrase));
            assert!(begins.or(worn).is_none(), "{}: {line}", path.display());
        }
    }
}

#[test]
fn the_top_level_stays_small() {
    let allowed = ["Cargo.toml", "Cargo.lock", "README.md", "LICENSE", "src", "tests", "testdata", "target"];
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name.starts_with('.') || allowed.contains(&name.as_str()), "{name} does not belong at the top level");
    }
}

#[test]
fn the_page_about_the_terminal_has_every_command() {
    // The help contains the flags and comes from the table. A second list would have to be maintained.
    let page = fs::read_to_string(root().join("src/terminal/reference.md")).unwrap();
    assert!(
        page.contains(spektacular::help::overview(spektacular::cmd::COMMANDS).trim()),
        "src/terminal/reference.md lacks the overview as it is printed"
    );
}

#[test]
fn the_readme_names_every_failure_and_its_exit_code() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for code in spektacular::protocol::failure::Code::ALL {
        let line =
            readme.lines().find(|l| l.starts_with(&format!("| {} |", code.exit_code())) && l.contains(code.name()));
        assert!(line.is_some(), "README.md lacks {} with exit code {}", code.name(), code.exit_code());
    }
}

#[test]
fn the_pages_name_the_rust_that_cargo_asks_for() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    for (page, wanted) in
        [("README.md", "or later and a C linker"), (".github/CONTRIBUTING.md", "with a C linker, git")]
    {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(text.contains(&format!("Rust {version} {wanted}")), "{page} lacks Rust {version}");
    }
}

#[test]
fn the_page_names_every_file_that_a_dialect_touches() {
    let page = fs::read_to_string(root().join(".github/CONTRIBUTING.md")).unwrap();
    let section = page.split("\n## Adding an agent\n").nth(1).unwrap().split("\n## ").next().unwrap();
    // Outside the command's own folder. Words in texts, such as commands in examples, do not count.
    let touches = |text: &str| ["codex::", "Dialect::Codex", "mod codex;"].iter().any(|word| text.contains(word));
    let mut files: Vec<String> = rust_files("src")
        .into_iter()
        .filter(|(path, text)| !path.starts_with("src/agent/codex") && touches(code(text)))
        .map(|(path, _)| path.to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, ["src/agent/mod.rs", "src/agent/registry.rs"]);
    for file in files {
        assert!(section.contains(&format!("(../{file})")), "the page does not say that a dialect touches {file}");
    }
}

#[test]
fn the_pages_name_the_fields_that_are_not_keys() {
    let line = |page: &str, begin: &str| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        text.lines().find(|line| line.starts_with(begin)).unwrap().to_owned()
    };
    let readme = line("README.md", "The keys are the fields of run.start (except ");
    let (except, also) = readme.split_once("), plus ").unwrap();
    let reference = line("src/config/reference.md", "Its keys are the fields of run.start, ");
    let names = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    for except in [except, reference.split_once(" except ").unwrap().1] {
        assert_eq!(names(except), spektacular::config::of_one_run().collect::<Vec<_>>());
    }
    let fields = spektacular::protocol::request::Options::NAMES;
    let keys = spektacular::config::KEYS.iter().map(|key| key.name).filter(|name| !fields.contains(name));
    let mut keys: Vec<&str> = keys.chain(["agents"]).collect();
    let mut also = names(also);
    keys.sort_unstable();
    also.sort_unstable();
    assert_eq!(also, keys);
}

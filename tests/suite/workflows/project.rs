//! Tests of a project's files: nothing outside the project is read or written, whatever is in the way.

use spektacular::config::Places;
use spektacular::protocol::words::RefusalReason;
use spektacular::workflow::check::Contents;
use spektacular::workflow::project::{Argument, Entry, FileProblem, PlanPath, Project};
use spektacular::workflow::prompts::{CommonValues, PromptSource, PromptText, SessionPrompt};
use spektacular::workflow::template::PromptKind;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A project, and a folder outside of it with a file `secret`.
fn project() -> (TempDir, TempDir, Project) {
    let (inside, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::create_dir(inside.path().join(".spektacular")).unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let project = Project::around(inside.path()).unwrap();
    (inside, outside, project)
}

fn path(text: &str) -> &Path {
    Path::new(text)
}

#[test]
fn a_file_is_written_atomically_and_read_back() {
    let (inside, _outside, project) = project();
    let file = path(".spektacular/specs/a.md");
    assert_eq!(project.read(file, 10), Ok(None));
    assert_eq!(project.entry(file), Ok(None));
    project.write(file, b"one").unwrap();
    assert_eq!(project.entry(file), Ok(Some(Entry::File)));
    fs::set_permissions(inside.path().join(file), Permissions::from_mode(0o640)).unwrap();
    project.write(file, b"four").unwrap();
    assert_eq!(project.read(file, 4), Ok(Some(b"four".to_vec())));
    assert_eq!(project.read(file, 3), Err(FileProblem::TooLarge));
    assert_eq!(fs::metadata(inside.path().join(file)).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(project.create(file, b"x"), Ok(false));
    assert_eq!(project.read(file, 9), Ok(Some(b"four".to_vec())));
    // No temporary file remains, neither after a success nor after a failure.
    assert!(project.write(path(".spektacular/specs"), b"x").is_err(), "a folder is in its place");
    let names = project.list(path(".spektacular/specs"), 9).unwrap();
    assert_eq!(names, [("a.md".into(), Entry::File)]);
    assert_eq!(project.list(path(".spektacular"), 9).unwrap().len(), 1);
}

#[test]
fn a_rename_moves_files_and_folders() {
    let (_inside, _outside, project) = project();
    project.write(path(".spektacular/plans/a.draft/plan.md"), b"p").unwrap();
    project.rename(path(".spektacular/plans/a.draft"), path(".spektacular/plans/a")).unwrap();
    assert_eq!(project.read(path(".spektacular/plans/a/plan.md"), 9), Ok(Some(b"p".to_vec())));
    project.rename(path(".spektacular/plans/a"), path(".spektacular/local/old/x/plans/a")).unwrap();
    assert_eq!(project.entry(path(".spektacular/plans/a")), Ok(None));
    let missing = project.rename(path("no/such"), path("x"));
    assert_eq!(missing, Err(FileProblem::Io(ErrorKind::NotFound)));
}

#[test]
fn a_folder_with_the_name_of_the_temporary_file_stays() {
    let (inside, _outside, project) = project();
    let taken = format!(".file.md.{}.tmp", std::process::id());
    fs::create_dir(inside.path().join(&taken)).unwrap();
    fs::write(inside.path().join(&taken).join("theirs"), "theirs").unwrap();
    project.write(path("file.md"), b"mine").unwrap();
    assert_eq!(project.read(path("file.md"), 99), Ok(Some(b"mine".to_vec())));
    assert_eq!(fs::read_to_string(inside.path().join(&taken).join("theirs")).unwrap(), "theirs");
    let left: Vec<_> = fs::read_dir(inside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.iter().filter(|name| name.to_string_lossy().ends_with(".tmp")).count(), 1, "{left:?}");
}

#[test]
fn no_link_is_followed() {
    let (inside, outside, project) = project();
    let before = fs::read_dir(outside.path()).unwrap().count();
    symlink(outside.path(), inside.path().join(".spektacular/specs")).unwrap();
    symlink(outside.path().join("secret"), inside.path().join("file.md")).unwrap();
    symlink("nowhere", inside.path().join("dangling.md")).unwrap();
    for file in [".spektacular/specs/secret", ".spektacular/specs/new/deep", "../x", "/etc/passwd", "a/../../x", ""] {
        assert_eq!(project.read(path(file), 99), Err(FileProblem::Outside), "{file}");
        assert_eq!(project.write(path(file), b"x"), Err(FileProblem::Outside), "{file}");
        assert_eq!(project.entry(path(file)), Err(FileProblem::Outside), "{file}");
        assert_eq!(project.rename(path("file.md"), path(file)), Err(FileProblem::Outside), "{file}");
    }
    assert_eq!(project.list(path(".spektacular/specs"), 9), Err(FileProblem::Outside));
    for file in ["file.md", "dangling.md"] {
        assert_eq!(project.read(path(file), 99), Err(FileProblem::Outside), "{file}");
        assert_eq!(project.markdown(path(file)), Err(FileProblem::Outside), "{file}");
        assert_eq!(project.entry(path(file)), Ok(Some(Entry::Link)), "{file}");
        // A write replaces the link.
        project.write(path(file), b"mine").unwrap();
        assert_eq!(project.read(path(file), 99), Ok(Some(b"mine".to_vec())), "{file}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), before);
    assert!(!inside.path().join("nowhere").exists());
}

#[test]
fn only_regular_files_are_read() {
    let (inside, _outside, project) = project();
    let made = std::process::Command::new("mkfifo").arg(inside.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(inside.path().join("socket")).unwrap();
    for file in ["pipe", "socket", ".spektacular"] {
        assert_eq!(project.read(path(file), 9), Err(FileProblem::Outside), "{file}");
    }
    fs::write(inside.path().join("large.md"), vec![b'x'; (256 << 10) + 1]).unwrap();
    assert_eq!(project.markdown(path("large.md")), Ok(Contents::TooLarge));
    assert_eq!(project.markdown(path("none.md")), Ok(Contents::Missing));
}

#[test]
fn an_argument_is_a_path_or_a_name() {
    let parsed = |text: &str| Argument::parse("SPEC", OsStr::new(text));
    for text in ["a/b", "a.md", ".md", "/", "./x"] {
        assert_eq!(parsed(text), Ok(Argument::Path(text.into())), "{text}");
    }
    assert!(matches!(parsed("login-2"), Ok(Argument::Name(name)) if name.as_str() == "login-2"));
    for text in ["", "Login", "a b", "login.txt", "-x", "a.MD"] {
        let refused = parsed(text).unwrap_err();
        assert_eq!(refused.reason, Some(RefusalReason::Invalid), "{text}");
        assert!(
            text.is_empty() || !refused.message.text().contains(text) || text == "-x",
            "{}",
            refused.message.text().unredacted()
        );
    }
    let folder = PlanPath { folder: "p/a".into(), file: "p/a/plan.md".into() };
    assert_eq!(PlanPath::new("p/a".into()), folder);
    assert_eq!(PlanPath::new("p/a/plan.md".into()), folder);
}

#[test]
fn an_argument_must_name_a_file_in_the_project() {
    let (inside, outside, project) = project();
    let reason = |result: Result<PathBuf, _>| {
        result.map_err(|failure: spektacular::protocol::failure::Failure| failure.reason.unwrap())
    };
    let spec =
        |text: &str, from: &Path| reason(project.spec(&Argument::parse("SPEC", OsStr::new(text)).unwrap(), from));
    project.write(path(".spektacular/specs/login.md"), b"x").unwrap();
    project.write(path("docs/y.md"), b"x").unwrap();
    let docs = inside.path().join("docs");
    for (text, from, found) in [
        ("login", inside.path(), ".spektacular/specs/login.md"),
        ("login", &docs, ".spektacular/specs/login.md"),
        (".spektacular/specs/login.md", inside.path(), ".spektacular/specs/login.md"),
        ("y.md", &docs, "docs/y.md"),
        ("../docs/./y.md", &docs, "docs/y.md"),
        (docs.join("y.md").to_str().unwrap(), Path::new("/"), "docs/y.md"),
    ] {
        assert_eq!(spec(text, from), Ok(found.into()), "{text}");
    }
    symlink(outside.path(), inside.path().join("out")).unwrap();
    symlink("docs", inside.path().join("in")).unwrap();
    symlink("y.md", docs.join("link.md")).unwrap();
    symlink("../docs", inside.path().join(".spektacular/plans")).unwrap();
    let secret = outside.path().join("secret");
    for (text, wanted) in [
        ("in/y.md", Ok("docs/y.md".into())),
        ("missing", Err(RefusalReason::NotFound)),
        ("missing.md", Err(RefusalReason::NotFound)),
        ("no/such.md", Err(RefusalReason::NotFound)),
        ("out/secret", Err(RefusalReason::Outside)),
        ("docs/link.md", Err(RefusalReason::Outside)),
        (".spektacular/plans/y.md", Err(RefusalReason::Outside)),
        ("../x.md", Err(RefusalReason::Outside)),
        (secret.to_str().unwrap(), Err(RefusalReason::Outside)),
        ("docs/..", Err(RefusalReason::Outside)),
    ] {
        assert_eq!(spec(text, inside.path()), wanted, "{text}");
    }
}

#[test]
fn prompts_name_at_most_a_hundred_files_of_the_knowledge() {
    let (inside, outside, project) = project();
    assert!(project.knowledge().contains("`.spektacular/knowledge/`"));
    project.write(path(".spektacular/knowledge/b/deep.md"), b"x").unwrap();
    project.write(path(".spektacular/knowledge/a\u{1b}[31m\n.md"), b"x").unwrap();
    symlink(outside.path(), inside.path().join(".spektacular/knowledge/out")).unwrap();
    let text = project.knowledge();
    let files: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert_eq!(files, [".spektacular/knowledge/a .md", ".spektacular/knowledge/b/deep.md"]);
    for at in 0..150 {
        project.write(path(&format!(".spektacular/knowledge/c/{at}.md")), b"x").unwrap();
    }
    assert_eq!(project.knowledge().lines().filter(|line| line.starts_with("- ")).count(), 100);
}

#[test]
fn a_prompt_is_checked_before_it_is_used() {
    let (_inside, outside, project) = project();
    let user = outside.path().join("prompts/spec.md");
    fs::create_dir(user.parent().unwrap()).unwrap();
    let places = Places { user: Some(outside.path().join("config.json")), ..Places::default() };
    let load = |text: &str| {
        fs::write(&user, text).unwrap();
        PromptText::load(PromptKind::Spec, &project, &places).and_then(PromptText::checked)
    };
    let prompt = load("/ask {{description}} in {{file}} {{check}}").unwrap();
    assert!(prompt.source == PromptSource::User && prompt.warning.is_none());
    let value = |name: &str| match name {
        "description" => Some("{{file}}"),
        "file" => Some("x.md"),
        _ => None,
    };
    let values = CommonValues::new(&project, true, "{{user}}".into());
    let expected = SessionPrompt { text: "/ask {{file}} in x.md {{user}}".into(), raw: true };
    assert_eq!(values.fill(&prompt, value), expected);
    for (text, names) in
        [("{{description}}", ["spec", "{{file}}"]), ("{{description}} {{file}} {{flie}}", ["spec", "{{flie}}"])]
    {
        let failure = load(text).unwrap_err();
        assert_eq!(failure.code.name(), "invalid_config");
        assert!(
            names.iter().all(|name| failure.message.text().contains(name)),
            "{}",
            failure.message.text().unredacted()
        );
    }
}

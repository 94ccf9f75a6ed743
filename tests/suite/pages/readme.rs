//! The sessions and clients of the README and the pages work as described, their tables name what exists, and their
//! links resolve.

use crate::support::Case;
use crate::support::machine::not_checked;
use spektacular::protocol::publish::Client;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");
/// The pages of the reference.
const PAGES: [&str; 7] = [
    "src/protocol/reference.md",
    "src/config/reference.md",
    "src/agent/reference.md",
    "src/workflow/reference.md",
    "src/integrate/openclaw.md",
    ORCHESTRATORS,
    TERMINAL,
];
const ORCHESTRATORS: &str = "src/protocol/orchestrators.md";
const TERMINAL: &str = "src/terminal/reference.md";
const CONTRIBUTING: &str = ".github/CONTRIBUTING.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    page("README.md")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The text under a heading of the README, up to the next heading of the same level.
fn section(heading: &str) -> String {
    section_of(&readme(), heading)
}

fn section_of(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The cells of every row of the first table in a text, without its header.
fn rows(text: &str) -> Vec<Vec<String>> {
    let table = text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.skip(2).map(cells).collect()
}

/// The first block of the README in this language.
fn block(language: &str) -> String {
    block_of(&readme(), language)
}

fn block_of(page: &str, language: &str) -> String {
    let (_, block) = page.split_once(&format!("```{language}\n")).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// A sandbox with this program on PATH.
fn sandbox() -> Case {
    Case::new().link("bin/spektacular", PROGRAM)
}

/// Runs a command in a sandbox, with an empty stdin.
fn command(program: &str, case: &Case) -> Command {
    let mut command = case.command(program);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", case.path("bin").display())).stdin(Stdio::null());
    command
}

/// Runs the client in a shell with an agent.
fn shell_client(agent: &str) -> (Case, Output) {
    let case = sandbox().file("client", &block_of(&page(ORCHESTRATORS), "sh"));
    let done = command("sh", &case).arg(case.path("client")).args([agent, "say hello"]).output().unwrap();
    (case, done)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_session_at_the_top_is_a_real_one() {
    let block = block("console");
    let (line, wanted) = block.strip_prefix("$ spektacular ").unwrap().split_once('\n').unwrap();
    let case = sandbox();
    let words = words(line.strip_suffix(" 2>/dev/null").unwrap(), &case);
    let done = command(PROGRAM, &case).args(words).output().unwrap();
    assert_eq!(text(&done.stdout), wanted);
    assert!(done.status.success());
    assert!(fs::read_to_string(case.path("tmp/hello.md")).unwrap().contains("demo agent"));
    assert_eq!(fs::read_dir(case.work()).unwrap().count(), 0, "the session leaves a file where it was typed");
}

/// The words of a command line in the README, with the sandbox's tmp instead of /tmp.
fn words(line: &str, case: &Case) -> Vec<String> {
    let (flags, prompt) = line.split_once(" \"").unwrap();
    let tmp = case.path("tmp").display().to_string();
    let flags = flags.split(' ').map(|flag| if flag == "/tmp" { tmp.clone() } else { flag.to_owned() });
    flags.chain([prompt.trim_end_matches('"').to_owned()]).collect()
}

#[test]
fn the_first_command_leaves_no_file_in_the_checkout() {
    let section = section("Quick start at the terminal");
    let line = section.lines().find_map(|line| line.trim().strip_prefix("cargo run --release -- ")).unwrap();
    let case = sandbox();
    let done = command(PROGRAM, &case).args(words(line, &case)).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(fs::read_dir(case.work()).unwrap().count(), 0);
}

#[test]
fn the_quick_start_for_an_orchestrator_is_the_example_of_the_client() {
    let file = Client::Python.file();
    let header = file.split("\"\"\"").nth(1).unwrap();
    let code = block("python");
    for line in code.lines() {
        assert!(header.contains(line), "{line}");
    }
    assert!(code.lines().count() > 15, "{code}");
}

#[test]
fn the_client_for_a_conversation_cancels_a_turn() {
    if Command::new("python3").arg("--version").output().is_err() {
        return not_checked("the client for a conversation", "python3 is not installed");
    }
    let client = block_of(&page(ORCHESTRATORS), "python");
    assert!(client.lines().count() < 60, "{client}");
    let case = sandbox().file("client", &client).file("spektacular.py", &Client::Python.file());
    let mut command = command("python3", &case);
    command.arg(case.path("client")).args(["demo", "say hello"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let (mut typed, shown) = (running.stdin.take(), BufReader::new(running.stdout.take().unwrap()));
    let mut seen = Vec::new();
    let mut next = [
        ("? How shall I greet you?", "Short\n"),
        ("? Allow", "allow_once\n"),
        ("turn 1 completed", "And again\n"),
        ("? How shall I greet you?", "/stop\n"),
        ("turn 2 cancelled", ""),
    ]
    .into_iter()
    .peekable();
    for line in shown.lines() {
        let line = line.unwrap();
        if let Some((_, answer)) = next.next_if(|(wanted, _)| line.starts_with(wanted)) {
            typed.as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
        }
        seen.push(line);
        if next.peek().is_none() {
            // The client ends the conversation at the end of its input.
            typed = None;
        }
    }
    assert_eq!(seen.last().map(|line| line.trim()), Some("run.completed"), "{seen:?}");
    let done = running.wait_with_output().unwrap();
    assert!(done.status.success() && next.peek().is_none(), "{seen:?}");
    assert!(case.path("work/hello.md").exists());
}

#[test]
fn the_client_in_a_shell_answers_questions() {
    let (case, done) = shell_client("demo");
    let out = text(&done.stdout);
    assert!(done.status.success(), "{out}{}", text(&done.stderr));
    assert!(out.lines().last().unwrap().contains("\"type\":\"run.completed\""), "{out}");
    assert!(out.contains("\"resolution\":\"declined\"") && out.contains("\"value\":\"allow_once\""), "{out}");
    assert!(case.path("work/hello.md").exists());
    let (_, refused) = shell_client("nobody");
    assert!(!refused.status.success());
    assert!(text(&refused.stdout).contains("\"code\":\"invalid_request\""), "{}", text(&refused.stdout));
}

#[test]
fn the_tested_versions_are_those_that_the_suite_installs() {
    let pins = fs::read_to_string(root().join("tests/real_agents/package.json")).unwrap();
    let pins: serde_json::Value = serde_json::from_str(&pins).unwrap();
    let packages = ["dependencies", "optionalDependencies"].into_iter();
    let packages: Vec<(&String, &serde_json::Value)> =
        packages.flat_map(|key| pins[key].as_object().unwrap()).collect();
    let mut found = 0;
    for row in rows(&section("Agents")).iter().filter(|row| row[0] != "demo") {
        let of_agent = packages.iter().filter(|(package, _)| package.contains(&row[0]));
        // An alias has the form npm:PACKAGE@VERSION.
        let versions = of_agent.map(|(_, version)| version.as_str().unwrap().rsplit('@').next().unwrap().to_owned());
        let versions: BTreeSet<String> = versions.collect();
        assert!(!versions.is_empty(), "the suite installs no {}", row[0]);
        assert_eq!(row[2].split(", ").map(str::to_owned).collect::<BTreeSet<_>>(), versions, "{}", row[0]);
        found += packages.iter().filter(|(package, _)| package.contains(&row[0])).count();
    }
    assert_eq!(found, packages.len(), "the README lacks an agent that the suite installs");
}

#[test]
fn every_suite_that_checks_a_claim_exists() {
    let claims = section_of(&page(CONTRIBUTING), "Check the claims");
    let commands: Vec<String> = rows(&claims).into_iter().map(|row| row[1].clone()).collect();
    let words = || commands.iter().flat_map(|command| command.split([' ', '`', ',']));
    let targets: Vec<&str> =
        words().zip(words().skip(1)).filter(|(flag, _)| *flag == "--test").map(|(_, name)| name).collect();
    let modules: Vec<&str> = words().filter_map(|word| word.strip_suffix("::")).collect();
    assert!(targets.len() > 5 && modules.len() > 8, "{targets:?} {modules:?}");
    for target in targets {
        let (file, folder) = (format!("tests/{target}.rs"), format!("tests/{target}/main.rs"));
        assert!([file, folder].iter().any(|path| root().join(path).is_file()), "no test target {target}");
    }
    for module in modules {
        let path = format!("tests/suite/{}", module.replace("::", "/"));
        let forms = [format!("{path}.rs"), format!("{path}/mod.rs")];
        assert!(forms.iter().any(|form| root().join(form).is_file()), "no module {module} in the suite");
    }
}

#[test]
fn exit_codes_have_one_row_each() {
    let codes = spektacular::protocol::failure::Code::ALL.iter().map(|code| code.exit_code());
    let codes: BTreeSet<u8> = codes.chain([spektacular::protocol::failure::EXIT_UNDELIVERED]).collect();
    let rows: Vec<u8> = rows(&section("Exit codes")).iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(rows, codes.into_iter().collect::<Vec<_>>());
}

#[test]
fn the_changelog_begins_with_this_version() {
    let changelog = page(".github/CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert_eq!(newest, env!("CARGO_PKG_VERSION"));
}

/// The anchor of a heading: lower case, with dashes for spaces and without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_page_has_a_table_of_its_contents() {
    for page in PAGES {
        let page = fs::read_to_string(root().join(page)).unwrap();
        let mut fenced = false;
        let mut is_text = |line: &&str| {
            fenced ^= line.starts_with("```");
            !fenced
        };
        let lines: Vec<&str> = page.lines().filter(|line| is_text(line)).collect();
        let headings = lines.iter().filter(|line| line.starts_with("##")).collect::<Vec<_>>();
        let entry = |heading: &&str| {
            let (level, title) = heading.split_once(' ').unwrap();
            format!("{}- [{title}](#{})", "  ".repeat(level.len() - 2), anchor(title))
        };
        let wanted: Vec<String> = headings.into_iter().map(entry).collect();
        let listed: Vec<&str> = lines.iter().copied().filter(|line| line.trim_start().starts_with("- [")).collect();
        assert!(wanted.len() >= 4 && listed == wanted, "the contents must be:\n{}", wanted.join("\n"));
    }
}

#[test]
fn every_link_inside_the_project_leads_somewhere() {
    for file in PAGES.into_iter().chain(["README.md", CONTRIBUTING]) {
        let page = root().join(file);
        let text = fs::read_to_string(&page).unwrap();
        let links: Vec<&str> = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
        assert!(links.len() >= 4, "{file}: {links:?}");
        for link in links {
            let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            assert!(target.exists(), "{file}: {link} leads nowhere");
            if !wanted.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let heads = text.lines().filter(|line| line.starts_with('#'));
                let mut names = heads.map(|head| anchor(head.trim_start_matches(['#', ' '])));
                assert!(names.any(|name| name == wanted), "{file}: {link} names no heading");
            }
        }
    }
}

#[test]
fn samples_are_wrapped_for_reading() {
    let page = fs::read_to_string(root().join("src/protocol/reference.md")).unwrap();
    let mut inside = false;
    let mut samples = 0;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(info) => inside = info.starts_with("json"),
            None if inside => {
                samples += 1;
                assert!(line.chars().count() <= 110, "a line of a sample is long: {line}");
            }
            None => {}
        }
    }
    assert!(samples > 100, "{samples} lines of samples");
}

/// `terminal::pictures` holds each to a run of the program.
#[test]
fn every_picture_of_a_screen_is_shown_with_a_description() {
    let pages = readme() + &page(TERMINAL);
    let pictures = fs::read_dir(root().join("testdata/screens/svg")).unwrap();
    let pictures: BTreeSet<String> = pictures.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(pictures.len(), 10, "{pictures:?}");
    for picture in pictures {
        let link = format!("testdata/screens/svg/{picture})");
        let (before, _) = pages.split_once(&link).unwrap_or_else(|| panic!("no page shows {picture}"));
        let (_, description) = before.rsplit_once("![").unwrap();
        assert!(description.len() > 40 && !description.contains(['[', '\n']), "{picture}: {description}");
    }
}

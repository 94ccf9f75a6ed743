//! Compares the reference's table of agents with the declarations of their drivers.
//! `UPDATE_GOLDEN=1 cargo test --test suite reference_` rewrites the answers at the beginning of its cells.

use crate::pages::page::{hold, part, row};
use serde_json::Value;
use spektacular::agent::limit::{Keeper, Limit};
use spektacular::agent::registry::{Agent, Agents, VerifyRowName};
use spektacular::agent::{AgentEvent, Driver, DriverOutput, Line, Preference, Program};
use spektacular::protocol::request::{McpAccess, McpServer, Options, Settings};
use spektacular::protocol::words::{McpTransport, QuestionKind};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../src/agent/reference.md");
const UNSUPPORTED: &str = "no: `unsupported_option`";
const INVALID: &str = "no: `invalid_request`";
const MISFIT: &str = "no: `result_invalid`";
/// The answers with which a cell may begin. One that extends another comes first.
const ANSWERS: [&str; 9] = ["yes, counted", "yes, checked", "yes", "partly", UNSUPPORTED, INVALID, MISFIT, "no", "all"];
/// The rows whose facts no driver declares.
const PROSE: [&str; 5] = [
    "description",
    "`message` with a denied permission",
    "reported artifacts",
    "`state` of a command that exits with a code other than 0",
    "further turns for question markers",
];

/// A driver that knows all it can know before the first session, and whether it accepted `fork`.
struct Known {
    driver: Box<dyn Driver>,
    settings: Settings,
    forks: bool,
}

#[track_caller]
fn settings(name: &str, driver: &dyn Driver, payload: &str) -> Settings {
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(payload).unwrap();
    let mut settings = Options::parse(Some(&raw)).options.resolve("go".into(), name.into(), "/home/me".into());
    settings.ask_server = driver.features(&settings).ask_tool.map(|tool| {
        McpServer::new(tool, McpAccess::Stdio { command: "c".into(), args: Vec::new(), env: BTreeMap::new() })
    });
    settings
}

/// The answer of a real ACP agent to `initialize`, from a recording. `None`: not an ACP agent.
#[track_caller]
fn initialized(name: &str) -> Option<String> {
    let recording = match name {
        "gemini" => include_str!("../../../testdata/gemini/resume/recording.jsonl"),
        "opencode" => include_str!("../../../testdata/opencode/resume/recording.jsonl"),
        _ => return None,
    };
    recording.lines().find_map(|line| Some(serde_json::from_str::<Value>(line).unwrap()["agent"].as_str()?.to_owned()))
}

#[track_caller]
fn known(name: &str) -> Known {
    let mut driver = Agents::built_in().find(name).unwrap().driver();
    let settings = settings(name, &*driver, r#"{"session_id":"s","fork":true}"#);
    let mut turn = DriverOutput::default();
    let launched = driver.launch(&settings, &mut turn);
    if let Some(answer) = initialized(name) {
        driver.line(Line::Text(answer.into()), &mut turn);
    }
    let forks = launched.is_ok() && !turn.events.iter().any(|event| matches!(event, AgentEvent::TurnOver(_)));
    Known { driver, settings, forks }
}

fn answer(known: Option<bool>, otherwise: &'static str) -> &'static str {
    match known {
        Some(true) => "yes",
        Some(false) => otherwise,
        None => "partly",
    }
}

/// The answer that begins the cell of this row. `None`: no such row.
fn declared(head: &str, Known { driver, settings, forks }: &Known) -> Option<&'static str> {
    let features = driver.features(settings);
    let follows = |preference| answer(Some(features.preferences.contains(&preference)), UNSUPPORTED);
    let kept = |limit, by_the_run| match features.keepers.of(limit) {
        Keeper::Agent => "yes",
        Keeper::Run => by_the_run,
        Keeper::Nobody => INVALID,
    };
    let can = &features.capabilities;
    Some(match head {
        "kinds of question" if can.questions == QuestionKind::ALL => "all",
        "kinds of question" => "",
        "`model`" => follows(Preference::Model),
        "`effort`" => follows(Preference::Effort),
        "`system_prompt`" => follows(Preference::SystemPrompt),
        "`system_prompt_mode`" => follows(Preference::SystemPromptMode),
        "`mode`" => follows(Preference::Mode),
        "`background`" => follows(Preference::Background),
        "`add_dirs`" => follows(Preference::AddDirs),
        "`session_id`" => answer(can.resume, INVALID),
        "`fork`" => answer(Some(*forks), INVALID),
        "`images`" => answer(Some(features.images), INVALID),
        "`mcp_servers`" => kept(Limit::McpServers, "yes, checked"),
        "`allowed_tools`" => kept(Limit::AllowedTools, "yes, checked"),
        "`disallowed_tools`" => kept(Limit::DisallowedTools, "yes, checked"),
        "`max_turns`" => kept(Limit::MaxTurns, "yes, counted"),
        "`max_tool_calls`" => kept(Limit::MaxToolCalls, "yes, counted"),
        "`max_tokens`" => kept(Limit::MaxTokens, "yes, counted"),
        "`max_cost_usd`" => kept(Limit::MaxCostUsd, "yes, counted"),
        "`output_schema`" => answer(can.structured_output, MISFIT),
        "`updated_input` with a permission" => answer(can.updated_input, "no"),
        "text in pieces at level full" => answer(can.deltas, "no"),
        "usage and cost" => answer(can.usage, "no"),
        _ => return None,
    })
}

/// The cell with the declared answer in place of the one with which it begins.
#[track_caller]
fn corrected(head: &str, cell: &str, known: &Known) -> String {
    let mut wanted = head.split(", ").map(|field| declared(field, known).unwrap_or_else(|| panic!("{field}: no fact")));
    let first = wanted.next().unwrap();
    assert!(wanted.all(|other| other == first), "{head}: the fields differ, so each needs a row of its own");
    let said = ANSWERS.iter().find(|answer| cell.starts_with(**answer)).copied().unwrap_or_default();
    format!("{first}{}", &cell[said.len()..])
}

#[track_caller]
fn table() -> (&'static str, Vec<&'static str>) {
    let text = part(PAGE, "What each agent can do");
    let head = text.lines().find(|line| line.starts_with("| | ")).unwrap();
    let columns: Vec<&str> = head.split('`').skip(1).step_by(2).collect();
    assert_eq!(columns, ["claude", "codex", "gemini", "opencode", "demo"]);
    (text, columns)
}

#[test]
fn each_cell_of_the_table_of_agents_begins_with_what_the_driver_declares() {
    let (text, columns) = table();
    let agents: Vec<Known> = columns.iter().map(|name| known(name)).collect();
    let rows =
        text.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let mut wanted = PAGE.to_owned();
    let mut prose = Vec::new();
    for line in rows {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), agents.len() + 1, "{line}");
        if PROSE.contains(&cells[0]) {
            prose.push(cells[0]);
            continue;
        }
        let corrected = cells[1..].iter().zip(&agents).map(|(cell, agent)| corrected(cells[0], cell, agent));
        let corrected: Vec<String> = corrected.collect();
        wanted = wanted.replace(line, &format!("| {} | {} |", cells[0], corrected.join(" | ")));
    }
    assert_eq!(prose, PROSE);
    hold("src/agent/reference.md", PAGE, &wanted);
}

#[test]
fn the_table_of_agents_names_the_transports_that_an_agent_lacks() {
    let (text, columns) = table();
    for (at, name) in columns.iter().enumerate() {
        let (cell, Known { driver, settings, .. }) = (row(text, "`mcp_servers`")[at + 1], known(name));
        let transports = driver.features(&settings).transports;
        assert!(transports.contains(&McpTransport::Http), "{name}");
        assert_eq!(
            cell.contains("not the transport `sse`"),
            !transports.contains(&McpTransport::Sse),
            "{name}: {cell}"
        );
    }
}

#[test]
fn each_setting_that_an_agent_does_not_follow_gets_a_warning() {
    let payload = r#"{"model":"m","effort":"high","mode":"plan","system_prompt":"s","system_prompt_mode":"replace","add_dirs":["d"],"background":"refuse"}"#;
    for name in table().1 {
        let mut driver = Agents::built_in().find(name).unwrap().driver();
        let settings = settings(name, &*driver, payload);
        let mut turn = DriverOutput::default();
        driver.launch(&settings, &mut turn).unwrap();
        let warns = |preference: Preference| {
            let text = format!("`{}` has no effect", preference.word());
            turn.events
                .iter()
                .any(|event| matches!(event, AgentEvent::Warning(_, warning) if warning.text().contains(&text)))
        };
        for preference in Preference::ALL {
            assert_eq!(
                warns(*preference),
                !driver.features(&settings).preferences.contains(preference),
                "{name}: {}",
                preference.word()
            );
        }
    }
}

/// The table of the agents that speak ACP, without those of the first table.
#[test]
fn the_reference_names_every_agent_with_its_last_check() {
    const HEAD: &str = "| name | command | npx runs | tested |\n|---|---|---|---|\n";
    let agents = Agents::built_in();
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let line = |agent: &Agent| {
        let aliases: String = agent.aliases.iter().map(|alias| format!(", alias `{alias}`")).collect();
        let Program::Command(program) = &agent.base.program else { panic!("{}", agent.name) };
        let command: Vec<&str> =
            std::iter::once(program.as_str()).chain(agent.base.args.iter().map(String::as_str)).collect();
        let tested = agent.tested.map_or("untested".to_owned(), |tested| {
            let lacks: Vec<String> = tested.lacking().map(|promise| code(promise.word())).collect();
            let lacks = if lacks.is_empty() { String::new() } else { format!(", without {}", lacks.join(", ")) };
            format!("{}{lacks}", tested.version)
        });
        let package = code(agent.base.package.unwrap_or_default());
        format!("| `{}`{aliases} | `{}` | {package} | {tested} |\n", agent.name, command.join(" "))
    };
    let first = ["claude", "codex", "demo", "gemini", "opencode"];
    let rows: String = agents.iter().filter(|agent| !first.contains(&agent.name.as_str())).map(line).collect();
    hold_table(HEAD, &rows);
}

/// Compares the rows of the reference's table with this head.
#[track_caller]
fn hold_table(head: &str, rows: &str) {
    let (before, rest) = PAGE.split_once(head).unwrap();
    let after = if rest.starts_with('\n') { rest } else { rest.find("\n\n").map_or(rest, |at| &rest[at + 1..]) };
    hold("src/agent/reference.md", PAGE, &format!("{before}{head}{rows}{after}"));
}

#[test]
fn the_reference_has_each_row_that_an_agent_keeps() {
    let names: String = VerifyRowName::ALL.iter().map(|row| format!(" {} |", row.word())).collect();
    let head = format!("| agent | version |{names}\n|---|---|{}\n", "---|".repeat(VerifyRowName::ALL.len()));
    let rows: String = Agents::built_in()
        .iter()
        .filter_map(|agent| Some((agent, agent.tested?, agent.endpoint?)))
        .fold(String::new(), |all, (agent, tested, endpoint)| {
            let cell = |row: &VerifyRowName| match row {
                VerifyRowName::Model if endpoint.model.is_none() => " – |",
                row if tested.fails.contains(row) => " no |",
                _ => " yes |",
            };
            let cells: String = VerifyRowName::ALL.iter().map(cell).collect();
            format!("{all}| `{}` | {} |{cells}\n", agent.name, tested.version)
        });
    hold_table(&head, &rows);
}

#[test]
fn the_presets_of_the_reference_are_entries_that_work() {
    let presets = PAGE.split_once("These entries are presets").unwrap().1.split("```").nth(1).unwrap();
    let agents: Value = serde_json::from_str(presets.strip_prefix("json").unwrap()).unwrap();
    let config = serde_json::json!({"agents": agents}).to_string();
    let case = crate::support::Case::new().file("home/.config/spektacular/config.json", &config);
    for (name, entry) in agents.as_object().unwrap() {
        assert!(PAGE.contains(&format!("| `{name}` | ")), "the table lacks {name}");
        let planned = case.run(&["adhoc", "--agent", name, "--dry-run", "--output", "json", "--", "go on"]).json(0);
        assert_eq!(planned["command"][0], entry["command"]);
        assert!(
            planned["command"].to_string().contains("go on") && planned["warnings"] == serde_json::json!([]),
            "{planned}"
        );
    }
}

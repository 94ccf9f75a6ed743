//! The differences between the systems: the tests that only Linux holds, by the subject in the reference's table.

use crate::support::read;
use crate::tidy::code::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};

/// The ignored tests of a build without the feature `linux`, by subject.
const ONLY_ON_LINUX: &[(&str, &[&str])] = &[
    ("a program in a format of another machine", &["a_program_in_no_format_of_this_machine_reaches_no_shell"]),
    (
        "orphans of the agent's processes",
        &[
            "a_daemon_of_an_inherited_child_is_left_alone",
            "a_process_of_an_inherited_daemon_is_left_alone",
            "as_pid_1_the_program_reaps_orphans_and_obeys_a_signal",
        ],
    ),
    ("privacy of memory and environment", &["the_agent_can_read_neither_our_environment_nor_a_core_dump"]),
    (
        "processes outside the agent's process group",
        &[
            "a_cleared_environment_is_found_by_descent",
            "a_grandchild_that_holds_stdout_does_not_hold_the_run",
            "a_marked_process_with_another_parent_is_found",
            "a_name_full_of_parentheses",
            "a_process_from_before_with_the_marker_is_not_spared",
            "a_process_that_appears_during_the_sweep_is_stopped_before_it_is_killed",
            "a_process_without_an_environment_ends_with_the_turn_too",
            "a_process_whose_first_thread_ended_is_not_a_zombie",
            "a_signal_to_a_check_stops_its_processes",
            "an_inner_run_leaves_the_outer_one_alone",
            "as_a_plain_user",
            "as_pid_1",
            "every_line_before_the_agents_death_is_delivered",
            "git_does_not_outlive_a_program_that_is_killed",
            "no_chain_of_forks_survives_the_end",
            "no_process_of_any_kind_survives",
            "nothing_of_the_agent_exists_while_the_commands_run",
            "nothing_that_git_started_outlives_its_call",
            "what_a_tool_left_running_ends_with_the_turn_and_so_does_the_agent",
            "without_proc_the_run_warns_that_processes_may_outlive_it",
        ],
    ),
    (
        "processes that an agent leaves behind",
        &[
            "a_tool_has_time_to_react_to_sigterm_when_its_agent_is_gone",
            "processes_that_outlive_a_polite_agent_are_stopped_with_a_warning",
        ],
    ),
    ("the session of two runs", &["a_session_that_another_run_writes_is_busy"]),
    ("signals ignored at the start (`nohup`, `&`)", &["a_signal_that_was_ignored_at_the_start_stays_ignored"]),
    (
        "stdout closed at the start",
        &[
            "a_closed_stdout_comes_before_every_other_failure",
            "a_closed_stdout_is_74_before_a_workflow_starts",
            "a_closed_stdout_is_74_for_every_command_that_prints",
            "a_closed_stdout_is_74_whatever_else_is_closed",
            "a_closed_stdout_is_noticed_while_the_parent_opens_and_closes_files",
            "a_closed_stdout_is_noticed_without_proc",
            "a_stdout_that_takes_nothing_is_74_for_a_person_too",
            "descriptors_that_are_closed_at_the_start_are_noticed",
        ],
    ),
];

/// The subjects of the table, and whether all systems promise the same.
fn subjects() -> BTreeMap<String, bool> {
    let page = read(&root().join("src/protocol/reference.md"));
    let section = page.split("\n## Systems\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[0].to_owned(), cells[2] == "the same")).collect()
}

#[test]
fn every_test_that_only_linux_holds_names_its_subject() {
    let ignored = concat!("#[cfg_attr(not(feature = \"linux\"), ", "ignore = \"");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in rust_files("tests") {
        for rest in text.split(ignored).skip(1) {
            let subject = rest.split("\")]").next().unwrap().to_owned();
            let name = rest.split("fn ").nth(1).unwrap().split('(').next().unwrap().to_owned();
            assert!(found.entry(subject).or_default().insert(name), "{}: twice", path.display());
        }
    }
    let listed = ONLY_ON_LINUX.iter().map(|(subject, tests)| {
        ((*subject).to_owned(), tests.iter().map(|test| (*test).to_owned()).collect::<BTreeSet<_>>())
    });
    assert_eq!(found, listed.collect(), "the list is not what the tests say");
    let subjects = subjects();
    for subject in found.keys() {
        assert_eq!(subjects.get(subject), Some(&false), "the table has no difference named {subject:?}: {subjects:?}");
    }
}

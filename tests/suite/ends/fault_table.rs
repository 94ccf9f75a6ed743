//! The fault table: every known fault, and the tests that inject it into the program. A row without a test would be an
//! unverified promise.

use crate::tidy::code::rust_files;

/// A fault, and the names of its tests.
const FAULTS: &[(&str, &[&str])] = &[
    ("an agent that ignores SIGTERM", &["an_agent_that_ignores_everything_is_killed_within_the_ladder"]),
    ("a tool in a session of its own", &["no_process_of_a_tool_survives_a_cancel"]),
    ("a tool that needs time to end", &["a_tool_has_time_to_react_to_sigterm_when_its_agent_is_gone"]),
    ("a daemon", &["processes_that_outlive_a_polite_agent_are_stopped_with_a_warning"]),
    ("chains of forks", &["no_chain_of_forks_survives_the_end", "no_chain_of_forks_survives_a_kill"]),
    (
        "chains of forks without the marker",
        &[
            "thirty_chains_of_forks_without_the_marker_do_not_survive_the_end",
            "no_chain_of_forks_without_the_marker_survives_a_kill",
        ],
    ),
    ("a grandchild that holds stdout", &["a_grandchild_that_holds_stdout_does_not_hold_the_run"]),
    ("an agent that dies after its last line", &["every_line_before_the_agents_death_is_delivered"]),
    (
        "a guard that is killed or stopped",
        &["a_run_warns_when_its_guard_is_killed", "a_guard_that_somebody_stops_still_ends_the_tree"],
    ),
    ("a SIGKILL of the program", &["when_the_program_is_killed_the_whole_tree_ends_within_a_second"]),
    (
        "stdout that nobody reads, and a cancel",
        &[
            "a_cancel_is_served_while_nobody_reads_stdout_and_exits_with_74",
            "a_deadline_is_served_while_nobody_reads_stdout",
        ],
    ),
    ("a slow reader", &["a_slow_reader_holds_up_the_agent_and_gets_every_line"]),
    ("a closed stdout", &["a_closed_stdout_stops_a_silent_and_a_talking_agent"]),
    ("a full disk at stdout", &["a_full_disk_at_stdout_exits_with_74_and_a_message_on_stderr"]),
    ("descriptors that are closed at the start", &["descriptors_that_are_closed_at_the_start_are_noticed"]),
    ("pipes in non-blocking mode", &["non_blocking_pipes_tear_no_frame"]),
    (
        "the end of stdin",
        &[
            "stdin_that_ends_before_a_start_ends_the_run",
            "the_end_of_stdin_does_not_end_the_run",
            "at_the_end_of_stdin_an_open_question_takes_its_default",
            "at_the_end_of_stdin_a_required_question_fails_the_run",
        ],
    ),
    (
        "signals",
        &[
            "a_signal_cancels_the_run",
            "a_second_signal_skips_to_the_kill",
            "a_signal_that_was_ignored_at_the_start_stays_ignored",
        ],
    ),
    (
        "a stop and a continuation",
        &["a_suspended_run_hides_its_status_line_until_it_continues", "no_limit_passes_while_the_program_is_stopped"],
    ),
    ("an endless line of the agent", &["an_endless_line_of_the_agents_is_skipped_in_bounded_memory"]),
    ("broken text of the agent", &["text_that_is_not_quite_utf8_or_json_is_repaired"]),
    (
        "broken messages",
        &[
            "a_malformed_line_before_the_start_fails_the_run_and_is_not_echoed",
            "a_malformed_line_after_the_start_is_a_warning_in_its_place",
        ],
    ),
    (
        "noise of the agent",
        &[
            "noise_of_the_agents_is_a_warning_in_its_place_without_its_content",
            "half_a_line_and_then_death_is_a_warning_and_agent_exited",
        ],
    ),
    ("two results", &["the_first_result_counts_and_nothing_after_it_makes_a_second_end"]),
    (
        "an agent without a result",
        &[
            "an_agent_that_exits_without_a_result_failed_with_any_status",
            "a_command_that_cannot_be_run_is_a_failed_start",
        ],
    ),
    (
        "an agent that cannot be started",
        &["a_start_that_the_system_refuses_has_a_failure_code", "a_missing_agent_is_reported_after_run_started"],
    ),
    ("few descriptors", &["few_descriptors_end_the_run_in_order_or_not_at_all"]),
    ("few processes, little memory", &["a_machine_without_processes_or_memory_ends_the_run_in_order"]),
    (
        "a limit of file sizes",
        &[
            "a_limit_of_file_sizes_costs_the_recording_and_not_the_run",
            "a_limit_of_file_sizes_is_an_error_of_every_command",
        ],
    ),
    ("a limited address space", &["a_limited_address_space_shortens_the_longest_line"]),
    ("a prompt of a megabyte", &["a_prompt_of_a_megabyte_arrives_whole"]),
    (
        "an agent that never reads its stdin",
        &[
            "an_agent_that_never_reads_its_stdin_can_be_cancelled_and_timed_out",
            "an_agent_cannot_make_the_program_hold_more_than_its_budget",
        ],
    ),
    (
        "a flood on stderr",
        &[
            "a_flood_on_stderr_blocks_nothing_and_its_tail_is_short",
            "a_line_of_stderr_of_any_length_is_mirrored_in_parts",
        ],
    ),
    ("orphans of a program that is PID 1", &["as_pid_1", "as_pid_1_the_program_reaps_orphans_and_obeys_a_signal"]),
    ("an empty root", &["in_an_empty_root_the_agent_is_not_found"]),
    ("a wall clock that steps back", &["a_wall_clock_that_is_set_back_changes_only_the_timestamps"]),
    (
        "an interrupt, a hang-up and a termination at a terminal",
        &["ctrl_d_declines_one_question_and_ctrl_c_cancels_the_run", "a_closed_terminal_ends_the_run"],
    ),
    (
        "git that hangs, and a cancel",
        &["a_cancel_is_served_while_git_lists_the_changes_after_a_turn", "the_limit_of_a_phase_covers_git"],
    ),
    ("a panic", &["a_panic_at_any_point_ends_the_run_in_order"]),
    (
        "a secret in pieces, encoded or escaped",
        &["a_secret_in_pieces_is_hidden_at_every_cut", "a_secret_is_hidden_plain_escaped_and_encoded"],
    ),
    ("escape sequences for the terminal", &["no_sequence_of_the_agents_reaches_the_screen"]),
    ("a cancel that races with the end", &["a_cancel_that_races_with_the_result_gives_one_end"]),
    (
        "answers and starts that come too late",
        &[
            "an_answer_to_an_unknown_or_resolved_question_is_ignored_with_a_warning",
            "a_second_start_is_ignored_with_a_warning",
        ],
    ),
    ("idleness", &["waiting_costs_no_processor_time", "nothing_wakes_up_in_a_silence"]),
];

#[test]
fn every_fault_has_its_tests() {
    // Some tests are ignored on other systems.
    let is_condition = |line: &&str| line.starts_with("#[cfg_attr(not(feature = \"linux\"), ignore");
    let unconditional = |text: String| {
        text.lines().filter(|line| !is_condition(line)).map(|line| format!("{line}\n")).collect::<String>()
    };
    let all: String = rust_files("tests").into_iter().map(|(_, text)| unconditional(text)).collect();
    for (fault, tests) in FAULTS {
        assert!(!tests.is_empty(), "{fault}: no test");
        for test in *tests {
            assert!(all.contains(&format!("#[test]\nfn {test}()")), "{fault}: {test} is missing");
        }
    }
}

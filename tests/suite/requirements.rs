//! The program's original requirements, and the tests that verify each.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A requirement and the tests that verify it.
struct Requirement {
    /// The requirement in one sentence.
    says: &'static str,
    /// The tests that verify it: a file, and a function in the file.
    by: &'static [(&'static str, &'static str)],
}

const fn held(says: &'static str, by: &'static [(&'static str, &'static str)]) -> Requirement {
    Requirement { says, by }
}

/// The requirements of the protocol between an orchestrator and any agent.
const PROTOCOL: &[Requirement] = &[
    held(
        "A run begins with run.start and gives run.started, progress, questions and artifacts, and one end.",
        &[
            ("tests/suite/lifecycle.rs", "a_run_completes_with_the_agents_answer_and_all_keys"),
            ("tests/suite/reference.rs", "the_dialogue_is_the_programs_real_output"),
        ],
    ),
    held(
        "Every message has the envelope v, id, ts, type, run_id and payload.",
        &[
            ("tests/suite/golden.rs", "recordings_give_the_expected_frames"),
            ("tests/suite/reference.rs", "outbound_examples_have_the_keys_of_real_frames_in_their_order"),
        ],
    ),
    held(
        "The first message must be a run.start.",
        &[
            ("tests/suite/dialogue.rs", "nothing_but_a_run_start_begins_a_run"),
            ("tests/suite/lifecycle.rs", "stdin_that_ends_before_a_start_ends_the_run"),
            ("tests/suite/framing.rs", "a_malformed_line_before_the_start_fails_the_run_and_is_not_echoed"),
        ],
    ),
    held(
        "stdout carries frames and nothing else; stderr has one line of a failed run and nothing of another one.",
        &[("tests/suite/dialogue.rs", "stdout_carries_frames_alone_and_stderr_one_line_of_a_failed_run")],
    ),
    held(
        "A frame that a message causes names the message's id in reply_to, and no other frame does.",
        &[
            ("tests/suite/dialogue.rs", "a_frame_names_the_message_that_caused_it_and_no_other"),
            ("tests/suite/dialogue.rs", "an_end_before_the_start_names_the_message_that_caused_it"),
            ("tests/suite/framing.rs", "a_message_without_an_id_is_answered_without_reply_to"),
        ],
    ),
    held(
        "Each kind of progress is reported from its own level on.",
        &[("tests/suite/dialogue.rs", "every_kind_of_progress_is_reported_at_its_level_and_above")],
    ),
    held(
        "run.started comes in a time that the agent does not count towards.",
        &[("tests/suite/lifecycle.rs", "run_started_does_not_wait_for_the_agent")],
    ),
    held(
        "A run has exactly one terminal event, and it is the last.",
        &[
            ("tests/suite/faults.rs", "the_first_result_counts_and_nothing_after_it_makes_a_second_end"),
            ("tests/suite/cancel.rs", "a_cancel_that_races_with_the_result_gives_one_end"),
            ("tests/suite/anomalies.rs", "death_without_an_error"),
        ],
    ),
    held(
        "run.artifact says what a run changed, whether the agent reports it or not: each path and action once.",
        &[
            ("tests/suite/lifecycle.rs", "a_change_that_the_agent_reports_is_an_artifact_once"),
            ("tests/suite/lifecycle.rs", "files_that_a_command_changed_are_found_in_a_git_work_tree"),
            ("tests/suite/git.rs", "created_modified_and_deleted"),
            ("tests/suite/git.rs", "a_rename_is_a_deletion_and_a_creation"),
            ("tests/suite/git.rs", "changes_from_before_are_not_the_agents"),
        ],
    ),
    held(
        "The program is one static binary that needs nothing else.",
        &[
            ("tests/suite/tidy.rs", "no_package_of_the_program_needs_a_c_library"),
            ("tests/suite/alone.rs", "in_an_empty_root_the_agent_is_not_found"),
        ],
    ),
    held(
        "The exit code is 0 for a completed and a cancelled run, and another one for a failed run.",
        &[
            ("tests/suite/golden.rs", "the_program_gives_the_same_frames"),
            ("tests/suite/reference.rs", "every_flag_every_code_and_every_word_is_named"),
        ],
    ),
    held("Unknown fields are ignored.", &[("tests/suite/framing.rs", "unknown_fields_are_ignored_whatever_they_hold")]),
    held(
        "A message of an unknown type is answered with a warning.",
        &[("tests/suite/framing.rs", "an_unknown_type_is_ignored_with_a_warning")],
    ),
    held(
        "Another version fails with unsupported_version.",
        &[
            ("tests/suite/framing.rs", "any_v_but_the_string_1_fails_before_the_start"),
            ("tests/suite/framing.rs", "any_v_but_the_string_1_fails_a_running_run_too"),
        ],
    ),
    held(
        "A question has an id, a kind, a text, options, a default, a validation, required and a timeout.",
        &[
            ("tests/suite/reference.rs", "every_key_of_every_frame_is_named_where_it_belongs"),
            ("tests/suite/answers.rs", "answers_fulfil_their_validation"),
            ("tests/suite/ask_server.rs", "every_kind_is_asked_and_its_answer_goes_back"),
        ],
    ),
    held(
        "The default, the validation and the rules of a question can be reached from every agent.",
        &[
            ("tests/suite/every_agent.rs", "every_agent_can_ask_every_kind_of_question_with_its_default_and_rules"),
            ("tests/suite/ask_server.rs", "a_model_can_validate_the_answers"),
            ("tests/real_agents/questions.rs", "question_of_every_kind"),
        ],
    ),
    held(
        "An answer counts for the question whose id it names, and for no other.",
        &[
            ("tests/suite/questions.rs", "an_answer_to_an_unknown_or_resolved_question_is_ignored_with_a_warning"),
            ("tests/suite/questions.rs", "two_questions_may_be_open_at_once_and_answered_in_any_order"),
        ],
    ),
    held(
        "An agent that asks several questions goes on when all of them are answered, not when the first is.",
        &[
            ("tests/suite/questions.rs", "the_questions_of_a_group_share_an_id_and_go_back_in_one_answer"),
            ("tests/suite/answers.rs", "a_group_waits_for_all_and_its_clock_starts_again_with_each_answer"),
        ],
    ),
    held(
        "A question without an answer in its time takes its default, or fails the run, or goes on as declined.",
        &[
            ("tests/suite/unanswered.rs", "after_the_timeout_the_default_is_used"),
            ("tests/suite/unanswered.rs", "after_the_timeout_a_required_question_without_default_fails_the_run"),
            ("tests/suite/unanswered.rs", "after_a_timeout_with_continue_the_agent_learns_of_it_and_continues"),
            ("tests/suite/simulated.rs", "an_open_question_stops_the_idle_clock_and_its_answer_restarts_it"),
        ],
    ),
    held(
        "A question without options is a question for text, not a choice.",
        &[("tests/suite/unanswered.rs", "a_question_marker_is_cut_from_the_text_asked_and_answered_in_a_further_turn")],
    ),
    held(
        "A declined question that the agent needs ends as question_declined where the agent cannot go on.",
        &[("tests/suite/declined.rs", "an_agent_that_stops_after_a_declined_question_fails_the_run")],
    ),
    held(
        "run.cancel stops the agent's process.",
        &[
            ("tests/suite/cancel.rs", "a_cancel_while_the_agent_works_uses_the_agents_own_interrupt"),
            ("tests/suite/cancel.rs", "an_agent_that_ignores_everything_is_killed_within_the_ladder"),
            ("tests/suite/leaks.rs", "no_process_of_a_tool_survives_a_cancel"),
        ],
    ),
    held(
        "The end of stdin has a meaning in every state of a run.",
        &[
            ("tests/suite/lifecycle.rs", "the_end_of_stdin_does_not_end_the_run"),
            ("tests/suite/unanswered.rs", "at_the_end_of_stdin_a_required_question_fails_the_run"),
            ("tests/suite/anomalies.rs", "stdin_ends"),
        ],
    ),
    held(
        "No secret is in progress, failures, logs or artifacts.",
        &[
            ("tests/suite/secrets.rs", "a_secret_is_hidden_plain_escaped_and_encoded"),
            ("tests/suite/secrets.rs", "a_secret_is_hidden_in_the_output_of_a_failing_agent"),
            ("tests/suite/secrets.rs", "a_recording_is_written_and_holds_no_secret"),
        ],
    ),
    held(
        "No internals of a provider are in a frame.",
        &[("tests/suite/golden.rs", "frames_hold_only_keys_of_the_protocol")],
    ),
    held(
        "At least three agents of different makers run behind the same protocol.",
        &[("tests/real_agents/tools.rs", "hello"), ("tests/real_agents/permissions.rs", "permission_allow")],
    ),
    held(
        "An orchestrator needs no branch for any agent.",
        &[
            ("tests/suite/every_agent.rs", "one_orchestrator_without_a_branch_serves_every_agent"),
            ("tests/suite/readme.rs", "the_client_in_python_answers_questions"),
            ("tests/suite/readme.rs", "the_client_in_a_shell_answers_questions"),
        ],
    ),
    held(
        "Without --output a command speaks to a person; config set output json makes it speak the protocol; the flag wins.",
        &[("tests/suite/configured.rs", "output_json_makes_adhoc_speak_json_and_the_flag_wins")],
    ),
    held(
        "What is configured is there again, and its layers go over each other: files, environment, flags.",
        &[
            ("tests/suite/config.rs", "set_adds_a_value_and_unset_removes_it"),
            ("tests/suite/configured.rs", "each_layer_overrides_the_one_before"),
        ],
    ),
];

/// The requirements of the interface that is the same for every agent.
const AGENTS: &[Requirement] = &[
    held(
        "Nothing outside an agent's own module knows its types or its name.",
        &[
            ("tests/suite/tidy.rs", "nothing_outside_the_agents_names_an_agent"),
            ("tests/suite/tidy.rs", "dependencies_point_one_way"),
        ],
    ),
    held(
        "A new agent needs a module of its own and its registration, and no change elsewhere.",
        &[
            ("tests/suite/tidy.rs", "the_readme_names_every_file_that_a_dialect_touches"),
            ("tests/suite/configured.rs", "a_user_defined_agent_runs"),
        ],
    ),
    held(
        "An unknown agent is an error that lists the known ones in order.",
        &[("tests/suite/request.rs", "an_unknown_agent_is_answered_with_the_known_ones")],
    ),
    held(
        "The agent is chosen by flag, environment, file or default, in this order.",
        &[
            ("tests/suite/configured.rs", "the_default_agent_comes_from_the_configuration"),
            ("tests/suite/config.rs", "every_layer_can_set_every_key_and_the_list_names_the_layer"),
        ],
    ),
    held(
        "An agent tells whether it is there, in which version, and how to get it.",
        &[
            ("tests/suite/agents.rs", "a_program_that_is_asked_leaves_no_file_and_no_process"),
            ("tests/suite/agents.rs", "a_login_is_detected_but_never_shown"),
            ("tests/suite/faults.rs", "a_missing_agent_is_reported_after_run_started"),
        ],
    ),
    held(
        "An agent runs one task and gives its text, its session, its exit and whether it said that it is done.",
        &[
            ("tests/suite/lifecycle.rs", "a_run_completes_with_the_agents_answer_and_all_keys"),
            ("tests/suite/lifecycle.rs", "the_completion_marker_is_detected"),
        ],
    ),
    held(
        "What goes wrong with an agent is a result of the run, and never a crash.",
        &[
            ("tests/suite/faults.rs", "a_start_that_the_system_refuses_has_a_failure_code"),
            ("tests/suite/anomalies.rs", "agent_cannot_be_started"),
            ("tests/suite/anomalies.rs", "garbage_from_the_agent"),
        ],
    ),
    held(
        "The agent's own interface gets the terminal, with prompt, model, session and policy.",
        &[
            ("tests/suite/open.rs", "the_agent_has_the_terminal_and_its_exit_code_is_ours"),
            ("tests/suite/open.rs", "the_policy_reaches_the_agents_own_interface"),
        ],
    ),
    held(
        "A session is exported in the agent's own format.",
        &[
            ("tests/suite/export.rs", "a_session_is_exported_byte_for_byte"),
            ("tests/suite/export.rs", "an_agent_that_prints_its_sessions_is_asked"),
        ],
    ),
    held(
        "A session's id is found by patterns of the agent; without a match it is null.",
        &[("src/agent/lines/tests.rs", "a_session_is_found_by_its_patterns")],
    ),
    held(
        "Each attempt to find a session's id is logged: which pattern, and whether it matched.",
        &[("tests/suite/lines.rs", "verbose_output_shows_each_attempt_to_find_a_session")],
    ),
    held(
        "An agent may have a sign of its own that the task is done; without it the answer is no.",
        &[
            ("tests/suite/configured.rs", "an_agents_own_completion_marker_overrides_the_files"),
            ("tests/suite/lifecycle.rs", "the_completion_marker_is_detected"),
        ],
    ),
    held(
        "A permission posture, allow all or ask, holds for every agent.",
        &[
            ("tests/suite/permissions.rs", "of_claude"),
            ("tests/suite/permissions.rs", "of_codex"),
            ("tests/suite/permissions.rs", "of_gemini"),
            ("tests/suite/permissions.rs", "of_opencode"),
            ("tests/suite/permissions.rs", "of_any_agent_that_speaks_acp"),
            ("tests/real_agents/permissions.rs", "permission_by_policy"),
        ],
    ),
    held(
        "Flags of the agent, its working directory and its environment can be given.",
        &[
            ("tests/suite/request.rs", "model_tools_and_arguments_reach_the_agents_command_line"),
            ("tests/suite/lifecycle.rs", "the_agent_works_in_cwd_and_by_default_in_the_processs_own"),
            ("tests/suite/lifecycle.rs", "env_is_added_to_the_agents_environment"),
        ],
    ),
    held(
        "Where an agent has agents or modes of its own, a run can choose one.",
        &[
            ("tests/real_agents/sessions.rs", "mode"),
            ("src/agent/acp/tests/modes.rs", "a_mode_is_set_before_the_model_as_the_session_offers_it"),
        ],
    ),
    held(
        "A session is resumed by its id, an unknown one is an error of its own, and none is begun in its place.",
        &[
            ("tests/real_agents/sessions.rs", "resume"),
            ("tests/real_agents/sessions.rs", "resume_unknown"),
            ("tests/suite/faults.rs", "a_session_that_the_agent_does_not_know_is_session_not_found"),
        ],
    ),
    held(
        "Each agent says what it can do, and what it cannot do is told and not dropped.",
        &[
            ("tests/suite/request.rs", "an_unsupported_option_is_a_warning_and_never_dropped_silently"),
            (
                "tests/suite/reference_agents.rs",
                "each_cell_of_the_table_of_agents_begins_with_what_the_driver_declares",
            ),
        ],
    ),
    held(
        "A debug log of every run can be had.",
        &[("tests/suite/configured.rs", "the_debug_log_is_a_redacted_recording_that_changes_nothing")],
    ),
    held(
        "A question marker in an agent's text is asked, with options or for text, over several lines, and more than one.",
        &[
            (
                "tests/suite/unanswered.rs",
                "a_question_marker_is_cut_from_the_text_asked_and_answered_in_a_further_turn",
            ),
            ("tests/suite/unanswered.rs", "a_question_marker_across_pieces_is_cut_too"),
        ],
    ),
    held(
        "A marker that is not valid is left as text.",
        &[("tests/suite/unanswered.rs", "an_invalid_marker_stays_text")],
    ),
    held(
        "The answers to markers go back in a further turn of the same session, begun after the turn before it has ended.",
        &[
            ("tests/suite/lines.rs", "a_question_is_answered_by_a_second_process"),
            ("tests/suite/lines.rs", "the_second_process_starts_after_the_first_ones_leftovers_are_stopped"),
        ],
    ),
];

/// The original output of agents.
const STREAM: &[Requirement] = &[
    held(
        "Claude Code is started with --print and stream-json.",
        &[("tests/suite/lifecycle.rs", "the_prompt_goes_by_stdin_and_never_by_argv")],
    ),
    held(
        "The agent has pipes and no terminal.",
        &[("tests/suite/terminal/showing.rs", "the_agent_has_pipes_where_a_person_has_a_terminal")],
    ),
    held(
        "Events come while the agent works, not at its end.",
        &[
            ("tests/suite/lifecycle.rs", "the_session_is_reported_as_soon_as_it_is_known"),
            ("tests/suite/lifecycle.rs", "a_message_in_pieces_joins_to_the_whole_and_ends_once"),
        ],
    ),
    held(
        "Blank lines of an agent are ignored, and a CR at the end of a line is dropped.",
        &[
            ("tests/suite/faults.rs", "blank_lines_and_carriage_returns_of_the_agents_change_nothing"),
            ("tests/suite/anomalies.rs", "blank_lines_from_the_agent"),
        ],
    ),
    held(
        "A line that cannot be read is told in its place, without its content, and the stream goes on.",
        &[
            ("tests/suite/faults.rs", "noise_of_the_agents_is_a_warning_in_its_place_without_its_content"),
            ("tests/suite/faults.rs", "half_a_line_and_then_death_is_a_warning_and_agent_exited"),
        ],
    ),
    held(
        "At most 32 events wait; a slow reader holds up the agent, and nothing is dropped.",
        &[
            ("src/process/readers.rs", "at_most_32_events_wait_for_the_loop_whatever_their_size"),
            ("tests/suite/faults.rs", "few_lines_wait_for_a_reader_whether_they_are_short_or_long"),
            ("tests/suite/faults.rs", "a_slow_reader_holds_up_the_agent_and_gets_every_line"),
        ],
    ),
    held(
        "A reader that goes away ends the agent.",
        &[("tests/suite/faults.rs", "a_closed_stdout_stops_a_silent_and_a_talking_agent")],
    ),
    held(
        "The time limit counts from the agent's start, also while nobody reads.",
        &[
            ("tests/suite/cancel.rs", "the_time_limit_of_the_run_ends_it"),
            ("tests/suite/faults.rs", "a_deadline_is_served_while_nobody_reads_stdout"),
            ("tests/suite/anomalies.rs", "deadline"),
        ],
    ),
    held(
        "A cancel is idempotent, wins over what has not ended, and nothing is asked after it.",
        &[
            ("tests/suite/cancel.rs", "a_second_cancel_changes_nothing"),
            ("tests/suite/cancel.rs", "after_a_cancel_no_question_is_asked"),
            ("tests/suite/cancel.rs", "a_cancel_after_the_result_only_hurries_the_end"),
        ],
    ),
    held(
        "The end of a run is told after the agent's exit and after the last of its output.",
        &[
            ("tests/suite/leaks.rs", "every_line_before_the_agents_death_is_delivered"),
            ("tests/suite/leaks.rs", "a_grandchild_that_holds_stdout_does_not_hold_the_run"),
        ],
    ),
    held(
        "The agent's stderr is not shown by itself, never kept whole, and copied where that is wanted.",
        &[
            ("tests/suite/limits.rs", "the_agents_stderr_is_mirrored_only_if_asked_for_and_redacted"),
            ("tests/suite/faults.rs", "a_flood_on_stderr_blocks_nothing_and_its_tail_is_short"),
        ],
    ),
    held(
        "Texts, reasoning, tool calls with their ends, and errors are events of their own kinds.",
        &[
            ("tests/suite/lifecycle.rs", "a_tool_is_reported_from_its_start_to_its_end"),
            ("tests/suite/lifecycle.rs", "the_progress_level_decides_which_kinds_are_reported"),
            ("tests/suite/reference.rs", "every_type_and_every_kind_has_an_example"),
        ],
    ),
    held(
        "A result that says it is an error is one, whatever its name.",
        &[
            ("tests/suite/faults.rs", "the_agents_error_has_a_failure_code"),
            ("tests/suite/faults.rs", "the_agents_result_takes_precedence_over_its_exit_status"),
        ],
    ),
    held(
        "A model that does not exist and a session that is not there have codes of their own.",
        &[
            ("tests/suite/faults.rs", "the_agents_error_has_a_failure_code"),
            ("tests/suite/faults.rs", "a_session_that_the_agent_does_not_know_is_session_not_found"),
        ],
    ),
    held(
        "A line of any length costs bounded memory.",
        &[
            ("tests/suite/faults.rs", "an_endless_line_of_the_agents_is_skipped_in_bounded_memory"),
            ("tests/suite/limits.rs", "a_line_of_ten_megabytes_is_passed_on_in_less_than_32_mebibytes"),
        ],
    ),
];

/// A person at a terminal, and a run without a user.
const PEOPLE: &[Requirement] = &[
    held(
        "A person is asked at the terminal: a numbered list, several numbers with commas, or a text of their own.",
        &[
            ("tests/suite/terminal/asking.rs", "every_kind_of_question_is_answered_wrongly_first"),
            ("src/terminal/answer.rs", "a_choice_is_a_number_a_name_or_where_allowed_a_text"),
            ("src/terminal/answer.rs", "several_are_numbers_and_names_with_commas"),
        ],
    ),
    held(
        "Without a terminal the text comes as it is said, and nothing is asked.",
        &[
            ("tests/suite/terminal/showing.rs", "stdout_has_only_the_agents_text"),
            ("tests/suite/oneshot.rs", "without_the_flag_stdin_is_not_read_and_nothing_is_asked"),
        ],
    ),
    held(
        "Ctrl-C and the end of input at a question have an effect of their own.",
        &[("tests/suite/terminal/asking.rs", "ctrl_d_declines_one_question_and_ctrl_c_cancels_the_run")],
    ),
    held(
        "A run is interactive or headless by an option, and a headless run asks nothing.",
        &[
            ("tests/suite/unanswered.rs", "a_headless_run_denies_permissions_and_never_asks"),
            ("tests/real_agents/questions.rs", "question_headless"),
        ],
    ),
    held(
        "In a headless run the agent is told that no user is present, and goes on by its own judgement.",
        &[
            ("tests/suite/unanswered.rs", "a_headless_run_tells_the_agent_that_no_user_is_present"),
            ("tests/suite/unanswered.rs", "a_question_marker_in_a_headless_run_says_that_no_user_is_present"),
        ],
    ),
    held(
        "The agent's own question tool is answered by the user, and its other tools by the policy.",
        &[
            ("tests/suite/questions.rs", "the_agents_question_is_a_clarification_with_its_options"),
            ("tests/suite/unanswered.rs", "a_policy_answers_permissions_only"),
        ],
    ),
    held(
        "Questions reach the user from Claude Code and from Codex alike.",
        &[
            ("tests/real_agents/questions.rs", "question_single"),
            ("tests/real_agents/questions.rs", "question_several"),
        ],
    ),
    held(
        "A prompt that is to be a command of the agent's reaches it as one.",
        &[("tests/suite/lifecycle.rs", "a_prompt_that_looks_like_a_command_is_guarded_unless_raw")],
    ),
    held(
        "A run that makes no progress for a set time is given up.",
        &[("tests/suite/cancel.rs", "an_agent_that_falls_silent_is_an_idle_timeout")],
    ),
    held(
        "A run tells its tokens, its cost and how long it took.",
        &[
            ("tests/suite/lifecycle.rs", "usage_includes_cached_tokens"),
            ("tests/suite/lifecycle.rs", "a_run_completes_with_the_agents_answer_and_all_keys"),
        ],
    ),
];

/// Features on top of runs.
const WORKFLOWS: &[Requirement] = &[
    held(
        "A project gets its folders and files by init, and what is there is kept.",
        &[("tests/suite/workflow_check.rs", "init_creates_missing_files_and_keeps_existing_ones")],
    ),
    held(
        "A specification is named after its description, and an existing file is replaced only by force and kept.",
        &[
            ("tests/suite/workflow_spec.rs", "a_draft_that_passes_its_check_becomes_the_specification"),
            ("tests/suite/workflow_spec.rs", "a_finished_file_is_replaced_only_by_force_and_kept"),
        ],
    ),
    held(
        "The command for a specification is a thin wrapper: the rules of its format stand in the prompt.",
        &[
            ("tests/suite/workflow_formats.rs", "the_prompts_have_the_lines_that_agents_and_programs_look_for"),
            ("tests/suite/workflow_formats.rs", "samples_in_the_prompts_and_the_reference_are_valid"),
            ("tests/suite/workflow_spec.rs", "a_skill_is_a_thin_prompt_passed_raw"),
        ],
    ),
    held(
        "A specification is written by an agent from a description, alone or with questions to the user.",
        &[
            ("tests/suite/workflow_spec.rs", "the_prompt_has_one_line_per_required_fact"),
            ("tests/suite/workflow_spec.rs", "the_demo_agent_writes_a_specification_in_any_folder"),
        ],
    ),
    held(
        "Without a user, a specification is written from what the agent reads in the code.",
        &[("tests/suite/workflow_spec.rs", "a_headless_specification_is_written_from_the_projects_code")],
    ),
    held(
        "A specification is reviewed inside the agent's instructions, with at most three rounds.",
        &[("tests/suite/workflow_formats.rs", "the_prompts_have_the_lines_that_agents_and_programs_look_for")],
    ),
    held(
        "An agent's result is checked: the file is there, has tasks, and its format is valid.",
        &[
            ("tests/suite/workflow_spec.rs", "a_missing_draft_is_an_invalid_result"),
            ("tests/suite/workflow_spec.rs", "a_draft_that_breaks_a_rule_is_kept_and_can_be_continued"),
            ("tests/suite/workflow_formats.rs", "every_rule_of_a_specification_is_reported_at_its_line"),
        ],
    ),
    held(
        "The last line names the file and the number of its tasks, and the exit code says whether it is good.",
        &[("tests/suite/workflow_spec.rs", "a_person_sees_the_line_at_the_end_and_violations_on_stderr")],
    ),
    held(
        "A workflow goes on with the last session of its name and agent.",
        &[("tests/suite/workflow_spec.rs", "a_draft_is_continued_in_the_last_session_with_its_violations")],
    ),
    held(
        "A prompt names the files of the project's knowledge.",
        &[("tests/suite/workflow_project.rs", "prompts_name_at_most_a_hundred_files_of_the_knowledge")],
    ),
    held(
        "A workflow leaves a recording of each session, named after it.",
        &[("tests/suite/workflow_spec.rs", "each_recording_is_named_after_the_workflow")],
    ),
    held(
        "A plan is made from a specification; an old one is kept, and a missing specification is an error.",
        &[
            ("tests/suite/workflow_plan.rs", "three_files_that_pass_their_check_become_the_plan"),
            ("tests/suite/workflow_plan.rs", "the_plans_of_a_project_are_replaced_together"),
            ("tests/suite/workflow_plan.rs", "a_specification_is_found_by_name_or_path_and_must_be_there"),
        ],
    ),
    held(
        "A plan is carried out phase by phase, and a phase counts once its own commands have passed.",
        &[
            ("tests/suite/workflow_implement.rs", "each_phase_passes_once_its_commands_have_passed"),
            ("tests/suite/workflow_implement.rs", "an_agent_that_ticks_boxes_and_does_nothing_makes_no_progress"),
            (
                "tests/suite/workflow_implement_ends.rs",
                "a_killed_run_continues_at_its_phase_and_its_command_is_stopped",
            ),
        ],
    ),
];

const ALL: [&[Requirement]; 5] = [PROTOCOL, AGENTS, STREAM, PEOPLE, WORKFLOWS];

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// The parts of a text between these two.
fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).filter_map(move |part| part.split(end).next())
}

/// Whether a file contains a test with this name: a function with the attribute, or one that a macro generates.
fn has_test(file: &str, name: &str) -> bool {
    let text = read(file);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    let functions: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with(&head)).collect();
    let attributes = |at: usize| lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    let plain = functions.iter().any(|at| attributes(*at).any(|line| *line == "#[test]"));
    // A row of the real agents is a function, for which a macro generates a test per agent.
    let word = |text: &str| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == name);
    let row = !functions.is_empty() && between(&text, "\nrows!(", ");").any(word);
    let entry = format!("    {name}: ");
    let anomaly = between(&text, "\nanomalies! {\n", "\n}").any(|all| all.lines().any(|line| line.starts_with(&entry)));
    plain || row || anomaly
}

#[test]
fn every_test_named_for_a_requirement_exists() {
    for requirement in ALL.into_iter().flatten() {
        let tests = requirement.by;
        assert!(!tests.is_empty(), "nothing holds it: {}", requirement.says);
        for (file, name) in tests {
            assert!(has_test(file, name), "{file} has no test {name}, which is to hold: {}", requirement.says);
        }
    }
}

#[test]
fn every_requirement_is_one_sentence_of_its_own() {
    let mut seen = BTreeSet::new();
    for requirement in ALL.into_iter().flatten() {
        let says = requirement.says;
        assert!(says.ends_with('.') && !says.contains(". ") && says.len() > 20, "{says}");
        assert!(seen.insert(says), "twice: {says}");
    }
    assert!(seen.len() > 70, "{} requirements: some are lost", seen.len());
}

#[test]
fn a_missing_test_is_noticed() {
    let none = [
        ("tests/suite/requirements.rs", "has_test"),
        ("tests/suite/anomalies.rs", "everywhere"),
        ("tests/suite/anomalies.rs", "signals"),
        ("tests/real_agents/questions.rs", "ask"),
        ("tests/real_agents/sessions.rs", "with_owl"),
        ("tests/suite/lifecycle.rs", "hello"),
    ];
    for (file, name) in none {
        assert!(!has_test(file, name), "{file} {name} is taken for a test");
    }
}

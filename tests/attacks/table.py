"""A hundred attacks, and the tests that prove the outcome of each: `python -m tests.attacks` runs them.

`test_table.py` checks that every test named here exists; `scripts/reference.py` writes the table into
`docs/security.md`. A test is `FILE::NAME` below `tests/`, with or without the parameters of one of its cases.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attack:
    """One line of the table."""

    id: int
    what: str
    """The attack and the required outcome."""
    tests: tuple[str, ...] = ()
    """The fastest tests that prove the outcome."""
    faults: str = ""
    """The check of `make faults` that repeats the attack many more times."""
    but: str = ""
    """Why the outcome differs from the usual requirement, or why there is no test."""


ATTACKS = (
    # --- the socket, and other users of this machine ------------------------------------------------------------------
    Attack(
        1,
        "a socket whose mode is wider than 0600 while it is created, under any umask: never",
        (
            "api/test_unix.py::test_the_socket_is_never_open_to_others_and_never_missing",
            "api/test_unix.py::test_the_daemons_directories_are_private_whatever_the_umask[0]",
        ),
    ),
    Attack(
        2,
        "the socket's directory is a link to another one: refused, with the path",
        ("api/test_unix.py::test_a_directory_that_is_not_private_is_refused_and_not_changed[link_elsewhere]",),
    ),
    Attack(
        3,
        "the directory belongs to another user or is open to others: refused, and not changed",
        (
            "api/test_unix.py::test_a_directory_that_is_not_private_is_refused_and_not_changed[open_to_others]",
            "api/test_unix.py::test_a_directory_that_is_not_private_is_refused_and_not_changed[owned_by_another_user]",
        ),
    ),
    Attack(
        4,
        "another user has created our directory in /tmp first: the daemon refuses it, clients send nothing to it",
        (
            "test_paths.py::test_another_users_directory_is_refused",
            "client/test_blocking.py::test_nothing_is_sent_to_another_users_daemon",
        ),
    ),
    Attack(
        5,
        "a file, a pipe, a directory or a dangling link in the socket's place: refused, and not changed",
        ("api/test_unix.py::test_a_file_that_is_no_socket_is_refused_and_not_changed",),
    ),
    Attack(
        6,
        "a second daemon: ends with code 3 and the pid of the first, which keeps its socket and clients",
        ("api/test_unix.py::test_a_second_daemon_is_refused_and_does_not_affect_the_first",),
    ),
    Attack(
        7,
        "a socket that a killed daemon has left: replaced automatically",
        ("api/test_unix.py::test_the_socket_of_a_killed_daemon_is_replaced",),
    ),
    Attack(
        8,
        "a home whose socket path is too long for a socket, in bytes or in characters: works",
        (
            "api/test_unix.py::test_a_home_of_any_length_works[h-200]",
            "api/test_unix.py::test_a_home_of_any_length_works[\\U0001d4bd-104]",
            "test_paths.py::test_the_limit_counts_bytes_not_characters",
        ),
    ),
    Attack(
        9,
        "XDG_RUNTIME_DIR is unset, missing or relative: daemon and client still find each other",
        ("api/test_unix.py::test_daemon_and_client_agree_on_a_path_without_a_runtime_directory",),
    ),
    Attack(
        10,
        "another user reaches the socket: disconnected before a byte is read, and the log does not fill",
        (
            "api/test_unix.py::test_a_client_of_another_user_is_disconnected_at_once",
            "test_logs.py::test_no_source_of_records_fills_the_log",
        ),
    ),
    # --- web pages, and the network -----------------------------------------------------------------------------------
    Attack(
        11,
        "a WebSocket without a token, or with a wrong one: closed with 4401, no detail",
        (
            "api/websocket/test_tokens.py::test_a_connection_without_a_valid_token_is_closed_without_a_message",
            "api/websocket/test_tokens.py::test_an_almost_correct_token_is_refused",
            "api/test_tokens.py::test_an_invalid_token_is_not_admitted",
        ),
    ),
    Attack(
        12,
        "a page of another origin opens the WebSocket: 403 before the upgrade",
        (
            "api/websocket/test_gate.py::test_a_page_of_another_origin_is_refused_before_the_upgrade",
            "api/websocket/test_gate.py::test_the_served_page_may_connect",
        ),
    ),
    Attack(
        13,
        "a name that was rebound to this machine, no Host header, or two: 403 or 400",
        (
            "api/websocket/test_gate.py::test_a_request_for_another_host_gets_nothing",
            "api/websocket/test_gate.py::test_a_request_must_have_exactly_one_host",
        ),
    ),
    Attack(
        14,
        "any other path with a wrong Host: 403, and nothing about zotd in the answer",
        (
            "api/websocket/test_gate.py::test_a_request_for_another_host_gets_nothing",
            "api/websocket/test_gate.py::test_malformed_http_is_answered_without_naming_the_server",
        ),
    ),
    Attack(
        15,
        "other spellings of hosts and origins: compared exactly, by a table",
        (
            "api/websocket/test_gate.py::test_similar_host_names_are_refused",
            "api/websocket/test_gate.py::test_pages_of_other_origins_are_refused",
            "api/websocket/test_gate.py::test_any_other_host_is_refused",
        ),
    ),
    Attack(
        16,
        "a preflight or a simple POST from a page: no CORS header, no effect",
        (
            "api/websocket/test_gate.py::test_a_cors_preflight_is_refused",
            "api/websocket/test_gate.py::test_methods_other_than_get_are_refused_without_cors_headers",
        ),
    ),
    Attack(
        17,
        "a token file that is a link, open to others, empty, short or malformed: as specified",
        (
            "client/test_place.py::test_an_invalid_or_open_token_file_is_refused",
            "client/test_place.py::test_a_token_file_must_be_a_regular_file",
            "client/test_place.py::test_a_token_file_of_another_user_is_refused",
            "client/test_place.py::test_a_token_is_read_without_its_newline",
            "api/test_tokens.py::test_an_unsafe_or_damaged_token_file_admits_no_client_and_is_not_changed",
        ),
    ),
    Attack(
        18,
        "the token in the URL: 400, and its value is in no log",
        ("api/websocket/test_gate.py::test_a_token_in_a_url_is_refused_and_not_logged",),
    ),
    Attack(
        19,
        "listening beyond this machine without TLS and token, however it is configured: refused",
        (
            "api/websocket/test_listening.py::test_an_address_reachable_from_other_machines_requires_tls",
            "api/websocket/test_listening.py::test_a_name_is_checked_by_the_addresses_it_resolves_to",
            "api/websocket/test_listening.py::test_the_daemon_does_not_start_with_an_unencrypted_public_address",
        ),
    ),
    Attack(
        20,
        "a page connects to a daemon whose door is not open: nothing listens",
        (
            "api/websocket/test_gate.py::test_the_websocket_door_is_closed_by_default",
            "api/websocket/test_listening.py::test_what_only_the_websocket_door_and_telemetry_need_is_not_imported_without_them",
        ),
    ),
    Attack(
        21,
        "a thousand wrong tokens from this machine: slowed down, and the right one still gets in",
        (
            "api/websocket/test_tokens.py::test_a_valid_token_is_always_admitted_despite_failures_at_its_address",
            "api/websocket/test_tokens.py::test_refusals_are_delayed_after_ten_wrong_tokens_of_an_address",
        ),
    ),
    Attack(
        22,
        "a client with a `read` token claims to be an administrator: forbidden",
        ("api/websocket/test_tokens.py::test_the_role_of_a_client_is_limited_by_its_token",),
    ),
    Attack(
        23,
        "a flood of refusals: a bounded number of log lines",
        (
            "api/websocket/test_tokens.py::test_refusals_are_delayed_after_ten_wrong_tokens_of_an_address",
            "test_logs.py::test_no_source_of_records_fills_the_log",
        ),
    ),
    Attack(
        24,
        "a client is redirected to another host: does not send the token there",
        (
            "client/test_remote.py::test_a_token_is_not_sent_to_another_host",
            "client/test_remote.py::test_a_redirect_is_not_followed",
            "client/test_remote.py::test_nothing_is_sent_to_a_localhost_that_is_another_machine",
            "client/test_place.py::test_a_token_is_pinned_to_the_first_host",
        ),
    ),
    # --- framing ------------------------------------------------------------------------------------------------------
    Attack(
        25,
        "an endless line: memory is bounded, and the connection is closed",
        (
            "wire/test_framing.py::test_an_endless_line_is_reported_once",
            "wire/test_framing.py::test_an_oversized_line_is_reported_before_it_ends",
            "api/test_dispatch.py::test_a_line_over_16_mib_is_skipped_and_the_next_one_is_handled",
            "api/test_clients.py::test_a_client_that_does_not_finish_its_line_is_disconnected",
            "client/test_blocking.py::test_an_endless_line_ends_the_connection",
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[endless line]",
            "api/websocket/test_frames.py::test_a_hello_longer_than_64_kib_is_refused_early",
        ),
        but="on the Unix socket the line is skipped, at 16 MiB, and the next one is read: its peer is the user",
    ),
    Attack(
        26,
        "hundreds of connections that send nothing, or a byte now and then: closed when another client connects",
        (
            "api/test_unix.py::test_silent_connections_do_not_keep_others_out",
            "api/test_clients.py::test_a_client_that_does_not_finish_its_line_is_disconnected",
            "api/websocket/test_frames.py::test_three_hundred_silent_visitors_keep_no_client_out",
        ),
    ),
    Attack(
        27,
        "JSON that is nested 100,000 levels deep: a bad request, and the connection stays open",
        (
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[too deep]",
            "wire/test_ext.py::test_a_deeply_nested_line_is_stray",
            "api/websocket/test_frames.py::test_malformed_messages_are_answered_and_the_connection_continues",
        ),
    ),
    Attack(
        28,
        "NaN, Infinity and malformed numbers: refused",
        (
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[NaN]",
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[Infinity]",
            "wire/test_base.py::test_a_wrong_type_is_reported_with_its_field[1e999]",
        ),
    ),
    Attack(
        29,
        "a name that occurs twice in an object: has one meaning",
        (
            "attacks/test_frames.py::test_of_a_name_that_comes_twice_the_last_one_counts_and_gives_no_more_than_it_alone",
            "api/websocket/test_frames.py::test_duplicate_json_keys_never_exceed_the_rights_of_the_token",
        ),
        but="not refused: one parser reads each frame, so no other component can see the other meaning",
    ),
    Attack(
        30,
        "a number of 5,000 digits, an id beyond 2^53: a bad request",
        (
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[an id of 5,000 digits]",
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[an id beyond 2^53]",
        ),
    ),
    Attack(
        31,
        "half a surrogate pair in a prompt: refused once, and never an error in the store or in other clients",
        (
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[a lone surrogate]",
            "wire/test_base.py::test_any_character_survives_encoding_and_decoding",
            "wire/test_ext.py::test_invalid_unicode_is_replaced",
        ),
    ),
    Attack(
        32,
        "other encodings, byte order marks, NUL, CRLF, empty lines: each has a defined result",
        (
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[UTF-16]",
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[a byte order mark]",
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[NUL]",
            "api/test_dispatch.py::test_empty_lines_are_ignored_and_a_carriage_return_is_allowed",
        ),
    ),
    Attack(
        33,
        "characters that other programs treat as line ends, inside a string: one frame",
        (
            "wire/test_framing.py::test_unicode_line_separators_are_data",
            "api/test_dispatch.py::test_lines_do_not_depend_on_how_the_bytes_are_divided",
            "api/websocket/test_frames.py::test_line_breaks_within_a_message_do_not_split_it",
        ),
    ),
    Attack(
        34,
        "not an object, or fields that are missing, new or of a wrong type, for every command: a bad request",
        (
            "api/test_dispatch.py::test_a_field_of_the_wrong_type_is_a_bad_request_that_names_the_command",
            "api/test_dispatch.py::test_bad_input_is_answered_and_the_connection_continues[a list]",
            "api/test_dispatch.py::test_unknown_fields_of_a_command_are_ignored",
        ),
        but="new fields are ignored: within a version of the protocol fields are only added",
    ),
    Attack(
        35,
        "WebSocket frames that are unmasked, binary, fragmented, compression bombs or incomplete: closed, and bounded",
        (
            "api/websocket/test_frames.py::test_a_malformed_frame_closes_only_its_connection_with_the_right_code",
            "api/websocket/test_frames.py::test_a_compressed_message_is_refused_without_decompressing_it",
            "api/websocket/test_frames.py::test_a_message_in_too_many_frames_is_refused",
            "api/websocket/test_frames.py::test_a_flood_of_pings_is_refused_and_a_few_are_answered",
            "api/websocket/test_frames.py::test_a_flood_of_empty_messages_is_refused_and_of_empty_frames_is_not",
            "api/websocket/test_frames.py::test_any_bytes_are_handled_and_not_kept",
        ),
    ),
    Attack(
        36,
        "a million damaged frames: no unhandled error, memory as before",
        (
            "faults/test_load.py::test_every_mutated_frame_gets_an_answer_and_nothing_breaks[over_socket]",
            "faults/test_load.py::test_every_mutated_frame_gets_an_answer_and_nothing_breaks[over_websocket]",
        ),
        "mutated_frames",
    ),
    Attack(
        37,
        "unknown commands, unsolicited answers, an id used twice: a defined answer, and nothing changes",
        (
            "api/test_dispatch.py::test_an_unknown_command_is_a_bad_request",
            "attacks/test_frames.py::test_an_unsolicited_answer_is_a_bad_request",
            "attacks/test_frames.py::test_two_requests_under_one_id_get_two_answers_under_it",
            "client/test_client.py::test_a_late_answer_is_dropped",
        ),
    ),
    Attack(
        38,
        "one request sent a hundred times at once: one effect and the same answer; if changed, it is refused",
        (
            "attacks/test_frames.py::test_one_request_that_comes_a_hundred_times_at_once_is_done_once",
            "api/test_clients.py::test_a_request_repeated_on_another_connection_gets_the_first_response",
        ),
    ),
    # --- cursors and slow clients -------------------------------------------------------------------------------------
    Attack(
        39,
        "a cursor of another database with a plausible number: a snapshot that says so, never a silent gap",
        (
            "e2e/test_attach.py::test_a_cursor_that_is_not_valid_here_gets_a_snapshot_with_the_reason[another-1-epoch]",
            "client/test_follow.py::test_a_cursor_of_another_epoch_gives_a_snapshot",
        ),
    ),
    Attack(
        40,
        "a cursor from the future, or an invalid one: a snapshot with the reason, or a bad request",
        (
            "e2e/test_attach.py::test_a_cursor_that_is_not_valid_here_gets_a_snapshot_with_the_reason[None-9999-future]",
            "e2e/test_attach.py::test_an_invalid_cursor_is_a_bad_request",
        ),
    ),
    Attack(
        41,
        "a cursor older than anything that is kept",
        but="there is none: no event is ever dropped while its session exists",
    ),
    Attack(
        42,
        "subscribing in the middle of a flood: nothing missing, nothing twice",
        ("e2e/test_attach.py::test_clients_that_come_at_any_moment_miss_nothing_and_see_nothing_twice",),
        "cursors",
    ),
    Attack(
        43,
        "a client that stops reading: disconnected within 5 s, told why, and no other client loses anything",
        (
            "api/test_outbox.py::test_events_held_during_a_replay_count_towards_the_limit",
            "api/websocket/test_websocket.py::test_a_client_that_stops_reading_is_disconnected",
        ),
        "slow_client",
    ),
    Attack(
        44,
        "a client that reads a trickle for ever: disconnected by the age of its queue, whatever it reads",
        ("attacks/test_frames.py::test_a_client_that_reads_a_trickle_is_disconnected",),
    ),
    Attack(
        45,
        "one very large event into an empty queue: arrives, and disconnects no client",
        ("attacks/test_frames.py::test_one_large_event_arrives_and_disconnects_no_client",),
    ),
    Attack(
        46,
        "a storm of clients that connect, are cut off in the middle of a frame and reconnect: no resource is leaked",
        ("faults/test_load.py::test_clients_that_come_and_go_leave_no_descriptor_and_no_task_behind",),
        "attach_detach",
    ),
    Attack(
        47,
        "a peer that disappears without closing: noticed by the client within two heartbeats",
        (
            "client/test_follow.py::test_a_silent_daemon_counts_as_dead_after_two_heartbeats",
            "api/websocket/test_websocket.py::test_a_client_that_answers_no_ping_is_disconnected",
        ),
        but="a stopped client on this machine has not disappeared: it is disconnected when it has not read for 3 s",
    ),
    Attack(
        48,
        "heartbeats and other live events move a client's cursor: they have no number",
        ("wire/test_events.py::test_live_events_are_those_without_seq",),
    ),
    # --- approvals and steering ---------------------------------------------------------------------------------------
    Attack(
        49,
        "two people decide the opposite at once: one wins, the other learns who, one decision is recorded",
        ("e2e/test_approvals.py::test_the_first_of_two_people_decides_and_the_other_learns_who",),
        "duels",
    ),
    Attack(
        50,
        "a decision that is too late, about another session or other arguments: refused, and the tool does not run",
        (
            "e2e/test_approvals.py::test_a_decision_about_other_arguments_is_stale",
            "core/test_approvals.py::test_an_ended_approval_cannot_be_decided_and_gives_the_reason",
            "core/test_approvals.py::test_a_decision_on_an_unknown_id_is_reported_as_unknown",
            "e2e/test_approvals.py::test_an_abort_cancels_pending_requests",
        ),
    ),
    Attack(
        51,
        "the daemon is killed while a question is open: the same question afterwards, and the tool runs once",
        ("e2e/test_approvals.py::test_a_question_survives_the_daemon_and_its_answer_continues_the_run",),
    ),
    Attack(
        52,
        "a question that is never answered: blocks no other session",
        ("attacks/test_sessions.py::test_a_question_in_one_session_holds_up_no_other",),
    ),
    Attack(
        53,
        "a client that disconnects: does not decide open questions",
        ("e2e/test_approvals.py::test_a_client_that_leaves_decides_nothing",),
    ),
    Attack(
        54,
        "a reader decides, or does anything above its role: forbidden, for every command",
        (
            "api/test_dispatch.py::test_every_command_above_the_role_is_forbidden",
            "e2e/test_approvals.py::test_a_role_that_may_not_decide_can_neither_approve_nor_loosen_the_mode",
        ),
        but="roles include those below them: a client that may approve may also prompt",
    ),
    Attack(
        55,
        "no person can be asked: wait or deny, as configured; no configuration means allow",
        (
            "core/test_permissions.py::test_unattended_rulings_are_never_more_permissive",
            "test_config.py::test_there_is_no_other_way_to_be_unattended_and_no_other_mode",
            "e2e/test_approvals.py::test_a_request_without_deciders_waits_for_a_client_that_attaches_later",
        ),
    ),
    Attack(
        56,
        "the last client leaves in the middle of a run: the run continues, the user is notified, and finds everything",
        (
            "e2e/test_attach.py::test_work_continues_when_every_client_has_left",
            "e2e/test_approvals.py::test_the_user_is_notified_of_a_request_without_attached_clients",
        ),
    ),
    Attack(
        57,
        "an extension that guards calls dies while it is asked: its manifest decides, and never allows more",
        (
            "exthost/test_guards.py::test_a_guard_that_fails_closed_refuses",
            "exthost/test_guards.py::test_a_missing_guard_that_fails_closed_refuses_with_the_reason",
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[guard that dies]",
        ),
    ),
    Attack(
        58,
        "a full queue, withdrawing, moving, steering at the last moment: each input is used exactly once",
        (
            "runs/test_queue_in_any_order.py::test_each_accepted_input_is_used_exactly_once_in_any_order_of_events",
            "e2e/test_queue.py::test_the_queue_is_bounded",
        ),
    ),
    Attack(
        59,
        "two clients interrupt at the very end of a run: it ends once",
        (
            "e2e/test_abort.py::test_two_clients_abort_at_the_very_end_of_a_run[0]",
            "core/test_turn.py::test_a_second_abort_while_calls_are_cancelled_does_nothing",
        ),
    ),
    # --- crashes, disks, time -----------------------------------------------------------------------------------------
    Attack(
        60,
        "killed at every boundary of a commit: nothing lost, nothing dangerous done twice",
        ("store/test_kill.py::test_acknowledged_commits_survive_every_kill_without_gaps",),
        "kills",
    ),
    Attack(
        61,
        "a log that is truncated, or has a flipped byte, anywhere: intact records stay, damage is named",
        (
            "store/test_torn.py::test_commits_before_a_truncation_of_the_log_are_complete",
            "store/test_torn.py::test_commits_before_a_flipped_byte_of_the_log_are_kept",
        ),
    ),
    Attack(
        62,
        "a full or failing disk: nothing is acknowledged before it is stored, and the daemon recovers by itself",
        (
            "store/test_recovery.py::test_exactly_the_acknowledged_commits_are_stored_whatever_fails",
            "store/test_journal.py::test_a_full_disk_fails_only_the_commits_that_do_not_fit",
        ),
    ),
    Attack(
        63,
        "no descriptor is left: no busy loop, connected clients are served, new ones wait",
        (
            "api/test_door.py::test_a_shortage_is_logged_once_and_retried_once_a_second",
            "api/test_door.py::test_a_waiting_client_is_accepted_as_soon_as_another_disconnects",
        ),
    ),
    Attack(
        64,
        "the clock jumps: no second budget, no flood, and questions end as denied at worst",
        (
            "ledger/test_spending.py::test_a_clock_that_is_put_back_gives_no_second_budget",
            "test_logs.py::test_no_source_of_records_fills_the_log",
            "permissions/test_approvals.py::test_a_question_with_a_deadline_ends_as_denied",
        ),
        but="records store deadlines as times of day: a clock set forward ends them early, and never as allowed",
    ),
    Attack(
        65,
        "a recorded pid now belongs to another process: it is not signalled",
        ("process/test_orphan_reaper.py::test_a_process_with_a_reused_pid_is_not_killed",),
    ),
    Attack(
        66,
        "a zombie that counts as alive: it does not",
        ("process/test_census.py::test_a_zombie_is_not_alive",),
    ),
    Attack(
        67,
        "the socket of a running daemon is deleted: created again with the next heartbeat or by a signal, clients stay",
        (
            "api/test_door.py::test_a_removed_socket_is_created_again_under_the_lock",
            "api/test_door.py::test_a_removed_directory_is_created_again_with_the_socket",
            "api/test_door.py::test_moving_the_door_accepts_clients_of_both_sockets",
            "zotctl/test_status.py::test_a_removed_socket_is_reported_until_a_signal_creates_it_again",
        ),
    ),
    Attack(
        68,
        "SIGTERM during a run, and then again, or Ctrl-C: the second one ends it at once, with a defined code",
        ("e2e/test_draining.py::test_a_second_signal_ends_it_at_once",),
    ),
    Attack(
        69,
        "SIGHUP with a broken configuration: the old one stays, and status says why",
        ("service/test_notify.py::test_sighup_reads_the_configuration_again_and_ends_well_either_way",),
    ),
    Attack(
        70,
        "the port is taken: the Unix socket still serves, and the reason is reported",
        ("api/websocket/test_listening.py::test_a_port_in_use_is_reported_and_the_unix_socket_still_works",),
    ),
    Attack(
        71,
        "clients and daemons of different versions: connect, or say in one line which is older",
        (
            "api/test_dispatch.py::test_incompatible_versions_report_which_one_is_older",
            "e2e/test_skew.py::test_two_versions_agree_on_the_newest_protocol_of_both_or_on_none",
            "e2e/test_skew.py::test_a_refusal_names_both_versions_and_which_is_older",
        ),
    ),
    # --- extensions and installing ------------------------------------------------------------------------------------
    Attack(
        72,
        "a source that git would interpret as an option or a program: refused before git runs",
        ("exthost/install/test_source.py::test_what_git_could_misunderstand_is_refused_before_it_runs",),
    ),
    Attack(
        73,
        "a repository with submodules, hooks, filters, LFS: nothing of it runs",
        (
            "exthost/install/test_repositories.py::test_nothing_that_the_user_has_configured_for_git_runs",
            "exthost/install/test_repositories.py::test_submodules_are_left_out_and_reported",
            "exthost/install/test_repositories.py::test_an_lfs_pointer_stays_a_pointer",
        ),
    ),
    Attack(
        74,
        "a repository with links to the outside or invalid names: refused, nothing outside is touched",
        (
            "exthost/install/test_repositories.py::test_a_hostile_repository_leaves_nothing_behind",
            "exthost/install/test_directories.py::test_a_hostile_directory_leaves_nothing_behind",
            "exthost/install/test_upkeep.py::test_a_name_that_differs_only_in_case_is_refused",
        ),
    ),
    Attack(
        75,
        "an installation that is killed half way: complete or absent, never partial",
        ("exthost/install/test_staging.py::test_an_installation_that_is_killed_at_any_moment_is_there_or_not",),
    ),
    Attack(
        76,
        "a tag that was moved upstream: reported",
        (
            "exthost/install/test_repositories.py::test_a_tag_that_has_moved_is_reported",
            "exthost/install/test_upkeep.py::test_edited_files_are_named",
        ),
    ),
    Attack(
        77,
        "a repository brings extensions along: not run before a person trusts them, and asked again when they change",
        (
            "e2e/test_trust.py::test_what_a_pull_brings_waits_for_trust_in_open_sessions_and_after_a_restart",
            "e2e/test_trust.py::test_a_changed_extension_is_not_started_again_when_it_crashes",
            "e2e/test_trust.py::test_the_interpreter_of_an_untrusted_repository_never_runs",
            "e2e/test_extension_life.py::test_a_project_s_extensions_wait_for_trust",
            "store/test_trust.py::test_any_change_of_a_file_requires_a_new_grant",
        ),
    ),
    Attack(
        78,
        "an extension names its tool `bash`: zot's own wins, and the conflict is reported",
        (
            "core/test_registry.py::test_built_in_names_win",
            "exthost/test_offers.py::test_conflicts_are_settled_by_the_load_order_and_reported",
            "core/test_permissions.py::test_an_extensions_bash_is_not_treated_as_a_shell",
        ),
    ),
    Attack(
        79,
        "terminal control sequences and direction changes, from models, tools and extensions: escaped everywhere",
        (
            "test_logs.py::test_nothing_that_is_logged_can_look_like_another_line",
            "test_logs.py::test_a_record_has_a_length",
            "attacks/test_terminal_sequences.py::test_no_sequence_reaches_the_terminal_through",
            "attacks/test_terminal_sequences.py::test_the_page_shows_what_a_terminal_shows",
            "test_shape.py::test_printed_text_is_constant_or_escaped",
            "zottui/test_render.py::test_no_block_can_steer_the_terminal",
            "permissions/test_preview.py::test_nothing_in_a_preview_steers_a_terminal_or_hides",
            "zotctl/ext/test_installed.py::test_an_extension_s_description_cannot_steer_the_terminal",
            "sessions/test_notifier.py::test_the_sentence_reaches_the_program_as_one_word_of_one_line",
        ),
    ),
    Attack(
        80,
        "line breaks in logged text: one record stays one line",
        (
            "test_logs.py::test_nothing_that_is_logged_can_look_like_another_line",
            "test_logs.py::test_a_traceback_stays_on_the_line_of_its_record",
            "exthost/test_log.py::test_our_lines_cannot_be_faked",
        ),
    ),
    Attack(
        81,
        "an extension that floods its stderr: three files of 5 MiB, and nothing else is affected",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[floods stderr]",
            "exthost/test_log.py::test_it_keeps_three_private_files",
        ),
    ),
    Attack(
        82,
        "an extension that sends no hello, a malformed one, or something else: ended, with the reason",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[registers first]",
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[nameless]",
            "core/test_supervision.py::test_a_process_without_hello_is_killed_with_its_group",
        ),
    ),
    Attack(
        83,
        "an extension that writes endless lines, binary data, floods of frames: bounded, and the next frame is read",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[endless line]",
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[floods frames]",
            "wire/test_ext.py::test_any_line_is_decoded_or_skipped",
        ),
    ),
    Attack(
        84,
        "an extension that forks twice and ignores every signal: ended with all its processes, at the next start at the latest",
        (
            "process/test_orphan_reaper.py::test_a_process_that_left_the_group_ends_with_its_service",
            "process/test_orphan_reaper.py::test_the_next_host_ends_all_processes_of_a_killed_one",
        ),
        "strays",
    ),
    Attack(
        85,
        "a grandchild holds the pipes of an extension that has ended: the end is seen all the same",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[leaves a child]",
            "process/test_child.py::test_an_exit_is_reported_while_a_grandchild_holds_the_pipe",
        ),
    ),
    Attack(
        86,
        "an extension that ends as soon as it starts: increasing waits, parked after five crashes, freed by a reload",
        (
            "core/test_supervision.py::test_the_backoff_doubles_and_has_jitter",
            "core/test_supervision.py::test_the_fifth_crash_parks_the_extension",
            "core/test_supervision.py::test_a_parked_extension_can_be_started_and_reloaded",
        ),
    ),
    Attack(
        87,
        "answers to unknown ids, to another extension's call, or a second time: dropped and counted",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[answers somebody else]",
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[answers twice]",
            "core/test_correlation.py::test_late_repeated_and_invented_answers_are_dropped_and_counted",
        ),
    ),
    Attack(
        88,
        "an extension that does not read: disconnected, its call fails, no other call waits",
        (
            "exthost/test_hostile.py::test_a_bad_extension_harms_only_itself[never reads]",
            "process/test_service.py::test_no_progress_within_the_time_limit_is_a_stall",
        ),
    ),
    Attack(
        89,
        "reloads without pause under load: no call lost, no process left",
        ("exthost/test_reload.py::test_calls_without_pause_are_not_lost_in_many_reloads",),
    ),
    Attack(
        90,
        "an extension inspects what it inherits: no key, no token, no descriptor but its own three",
        (
            "e2e/test_extension_scope.py::test_an_extension_of_the_daemon_gets_its_environment_without_keys_and_tokens",
            "attacks/test_secrets.py::test_an_extension_inherits_no_descriptor",
        ),
    ),
    # --- secrets, logs, and the rest ----------------------------------------------------------------------------------
    Attack(
        91,
        "twenty secrets in the environment, the configuration, prompts and output: in no log, status or metric",
        ("attacks/test_secrets.py::test_twenty_secrets_appear_in_no_log_status_or_metric",),
    ),
    Attack(
        92,
        "the same while everything is logged: no environment, no frame",
        ("attacks/test_secrets.py::test_twenty_secrets_appear_in_no_log_status_or_metric",),
    ),
    Attack(
        93,
        "a log that cannot be written, is a link, or is rotated by another program: work continues, no link is followed",
        (
            "test_logs.py::test_a_log_path_that_is_no_file_is_not_followed_and_stops_no_work",
            "test_logs.py::test_a_log_path_that_changes_while_open_is_not_followed",
            "test_logs.py::test_a_log_rotated_by_another_program_continues_under_its_name",
            "exthost/test_log.py::test_a_log_that_cannot_be_written_stops_no_extension",
            "client/test_autostart.py::test_the_daemon_starts_even_if_its_log_cannot_be_opened",
        ),
    ),
    Attack(
        94,
        "a daemon that hangs: status and doctor say so within three seconds, and what to do",
        (
            "zotctl/test_zotctl.py::test_status_of_a_daemon_that_hangs_is_wedged_and_names_its_process",
            "zotctl/test_zotctl.py::test_status_of_a_daemon_that_accepts_nothing_is_wedged",
            "zotctl/test_status.py::test_nothing_that_it_waits_for_takes_it_beyond_three_seconds",
            "zotctl/doctor/test_doctor.py::test_doctor_takes_less_than_three_seconds_whatever_hangs",
        ),
    ),
    Attack(
        95,
        "the socket through ssh: the kernel reports this user's ssh process, and the client gets that process's rights",
        ("api/test_unix.py::test_the_peer_is_identified_by_the_kernel",),
        but="no test with a real ssh: a user who may forward the socket may run programs as this user anyway",
    ),
    Attack(
        96,
        "the working directory disappears, or hangs: its session says so, nothing else waits",
        (
            "tools/test_bash.py::test_a_missing_working_directory_is_named",
            "workspace/test_context.py::test_a_missing_working_directory_has_no_context",
            "api/test_looks.py::test_hanging_lookups_use_a_limited_number_of_threads",
        ),
    ),
    Attack(
        97,
        "two sessions work in one directory: both can, and an edit of a file that has changed meanwhile is refused",
        ("attacks/test_sessions.py::test_two_sessions_in_one_directory_do_not_overwrite_each_other_by_an_edit",),
    ),
    Attack(
        98,
        "two thousand sessions: a page at a time, by an index",
        ("store/test_journal.py::test_sessions_are_listed_newest_first_in_pages",),
        but="`make bench` measures the speed, because a test of times fails on a busy machine",
    ),
    Attack(
        99,
        "ten thousand connections of one program: bounded, and silent ones are closed first",
        (
            "api/test_unix.py::test_connections_are_limited_and_existing_ones_continue",
            "api/test_unix.py::test_silent_connections_do_not_keep_others_out",
            "api/websocket/test_websocket.py::test_connections_of_both_doors_are_limited_with_a_reserve_for_the_user",
        ),
        but="on the Unix socket none is reserved for an administrator: every user who can open it is one",
    ),
    Attack(
        100,
        "the model makes a tool approve its own call: refused because of its descent, and logged",
        (
            "api/test_descendants.py::test_a_descendant_cannot_approve_and_is_told_the_rule",
            "e2e/test_descendants.py::test_it_cannot_approve_its_own_calls[setsid --wait {}]",
            "process/test_descent.py::test_an_orphan_is_a_descendant_without_owners",
        ),
    ),
)

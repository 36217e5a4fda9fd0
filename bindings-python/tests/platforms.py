"""Tests that cannot run on Windows, and why not. What is not here runs there as everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

SIGNALS = "no signal can be sent to a program of Windows without its console"
FORK = "Windows has no fork()"
SHELL = "the program is one for a POSIX shell"
MODES = "files of Windows have no modes"
PATHS = "the paths that it expects begin with a slash"
DESCRIPTORS = "Windows has no descriptors that are counted or limited"
TERMINALS = "Windows has no pseudo-terminals"
NAMES = "the name of a file is always Unicode on Windows"
STORE = "no Redis or Valkey is built for Windows"
IDENTITY = "a pipe of Windows has no number to know it by"

NOT_ON_WINDOWS: dict[str, dict[str, str]] = {
    "test_ask.py": {
        "test_generic_questions_and_notifications": PATHS,
        "test_roots": PATHS,
    },
    "test_auth_client.py": {"test_logins_in_files_outlive_the_program": MODES},
    "test_callbacks.py": {"test_data_of_a_log_message": PATHS},
    "test_endings.py": {
        "test_signals_that_end_a_program": SIGNALS,
        "test_a_handler_of_the_program_is_called_too": SIGNALS,
        "test_what_is_no_end_for_the_program": SIGNALS,
        "test_functions_for_the_exit_run": SIGNALS,
        "test_an_answer_that_came_while_the_process_was_stopped_is_read_before_its_timeout": SHELL,
    },
    "test_hosts.py": {
        "test_a_call_that_runs_is_finished": SIGNALS,
        "test_a_program_that_is_told_to_end_waits_for_no_stream": SIGNALS,
        "test_the_action_of_a_signal_stays_that_of_the_program": SIGNALS,
    },
    "test_launched.py": {
        "test_one_ctrl_c_ends_a_server_at_a_terminal": TERMINALS,
        "test_streams_that_do_not_block": DESCRIPTORS,
    },
    "test_lifecycle.py": {
        "test_ctrl_c": SIGNALS,
        "test_ctrl_c_in_a_blocking_call": SIGNALS,
        "test_fork": FORK,
        "test_http_says_when_it_is_ready_and_ends_on_sigterm": SIGNALS,
        "test_objects_are_collected": DESCRIPTORS,
        "test_termination": SIGNALS,
    },
    "test_lifespan.py": {"test_it_ends_however_the_program_ends": SIGNALS},
    "test_loops.py": {"test_closing_on_another_loop_than_the_one_that_ended": SIGNALS},
    "test_processes.py": {
        "test_a_client_that_did_not_close_leaves_no_server": SHELL,
        "test_a_handler_that_blocks_the_loop_does_not_keep_the_program": SIGNALS,
        "test_a_thread_does_not_keep_the_program": SIGNALS,
        "test_a_time_limit_for_all_sockets_is_none_for_signals": SIGNALS,
        "test_standard_streams_that_are_closed_are_named": SHELL,
        "test_the_streams_are_given_back": IDENTITY,
    },
    "test_rounds_by_hand.py": {"test_answers_are_those_of_the_single_calls": PATHS},
    "test_shared_store.py": {
        "test_clients_share_answers": STORE,
        "test_clients_share_logins": STORE,
        "test_servers_count_together": STORE,
    },
    "test_unwritable.py": {"test_what_is_looked_up_is_not_changed": NAMES},
}


def skip(items: Iterable[pytest.Item]) -> None:
    """Leaves out what cannot run here."""
    if sys.platform != "win32":
        return
    for item in items:
        name: str = getattr(item, "originalname", None) or item.name
        why = NOT_ON_WINDOWS.get(Path(item.path).name, {}).get(name)
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))

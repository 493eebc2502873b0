"""The real daemon for chats; and time for terminals."""

from pathlib import Path

import pytest

from tests.zotctl.conftest import live, shell  # noqa: F401  (fixtures)

TIMEOUT_S = 240
"""Of a test here: what it waits for on a screen has a limit of its own (`tmux.WAIT_S`), which says what was there instead.
The longest takes 20 s on two cores that have nothing else to do."""


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))

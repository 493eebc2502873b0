"""Journeys begin in an empty home."""

import pytest

from tests.zottui.journeys.world import world as made


@pytest.fixture
def world(tmp_path):
    with made(tmp_path) as one:
        yield one

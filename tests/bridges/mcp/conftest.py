"""Bridges from the template process."""

import pytest

from tests.bridges.conftest import warm_bridges


@pytest.fixture
def cold_bridge():
    """Bridges start as users have them: for tests of how they start, what they are and how they end.

    Also where a server leaves a child behind: the host kills the process group of the bridge, and programs of the template
    process are in one of their own.
    """


@pytest.fixture(autouse=True)
def warm_bridge(request, monkeypatch):
    if "cold_bridge" not in request.fixturenames:
        warm_bridges(monkeypatch)

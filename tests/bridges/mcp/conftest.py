"""Bridges from the template process."""

import pytest

from tests.bridges.conftest import warm_bridges


@pytest.fixture
def cold_bridge():
    """Bridges start as users have them: for tests of how they start, what they are and how they end."""


@pytest.fixture(autouse=True)
def warm_bridge(request, monkeypatch):
    if "cold_bridge" not in request.fixturenames:
        warm_bridges(monkeypatch)

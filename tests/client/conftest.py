"""Fixtures with a fake daemon."""

import pytest

from zotd.testing.fake_daemon import running


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "zotd.sock")


@pytest.fixture
def daemon(path):
    with running(path) as fake:
        yield fake

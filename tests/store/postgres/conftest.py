"""Daemons of one database."""

import pytest

from zotd.store.postgres import lease
from zotd.store.postgres.journal import PostgresJournal


@pytest.fixture
def url(postgres_server):
    return postgres_server.database()


@pytest.fixture
async def open_as(tmp_path, url):
    """Opens the journal as the daemon of a home with this name."""
    opened = []

    async def open_as(name):
        (tmp_path / name).mkdir(exist_ok=True)
        opened.append(await PostgresJournal.open(url, tmp_path / name))
        return opened[-1]

    yield open_as
    for journal in opened:
        await journal.close()


@pytest.fixture
def unrenewed(monkeypatch):
    """Leases are not renewed during the test, unless it says so."""
    monkeypatch.setattr(lease, "RENEW_S", 3600)


@pytest.fixture
def quick(monkeypatch):
    """Leases are renewed at once, again and again."""
    monkeypatch.setattr(lease, "RENEW_S", 0.05)

"""Opens the journal that a daemon is told to use."""

import importlib
from pathlib import Path
from types import ModuleType

from zotd.core.ports import Probe, StorageError
from zotd.store.journal import SqliteJournal, StoredJournal

FILE = "zot.db"
"""Name of the journal in the home."""

_MISSING = "[journal] url needs a package that is not installed; run: pip install 'zotd[postgres]'"


async def open_journal(home: Path, url: str | None, probe: Probe | None = None) -> StoredJournal:
    """Open the journal in PostgreSQL at `url`, or the one in the home without it. The caller closes it.

    The caller must hold the daemon's lock. `probe` is called at `writer.POINTS`, of the one in the home.

    Raises:
        NewerSchemaError: a newer program wrote it.
        StorageError: it cannot be opened, or the driver is not installed.
    """
    if url is None:
        return await SqliteJournal.open(home / FILE, probe)
    journal: StoredJournal = await _load("journal").PostgresJournal.open(url, home)
    return journal


def look(url: str) -> None:
    """Check that a daemon could open the journal in PostgreSQL, without changing anything; raises as `open_journal`."""
    _load("schema").look(url)


def _load(module: str) -> ModuleType:
    try:
        # Only here: the driver takes up to half a second to import, and most daemons never use it.
        return importlib.import_module(f"zotd.store.postgres.{module}")
    except ImportError as error:
        raise StorageError(_MISSING) from error

"""What a home has stored, read without the daemon: in its file, or in the database that its daemon was told to use."""

import importlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from zotd.store.connection import SqlConnection
from zotd.store.schema import open_read_only
from zotd.store.verification import verify, verify_contents
from zotd.testing.live_daemon import DaemonPaths

URL = "ZOT_JOURNAL_URL"

FILES = ("zot.db", "zot.db-wal")
"""The third file of a database is an index of the second, and is made anew."""


@contextmanager
def stored(place: DaemonPaths) -> Iterator[SqlConnection]:
    """What the last daemon has stored, read from a copy of its file: the next daemon gets the original."""
    if URL in place.env:
        with _postgres(place.env[URL]) as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="zot-autopsy-") as folder:
        for name in FILES:
            if (place.home / name).exists():
                shutil.copy(place.home / name, folder)
        with closing(open_read_only(Path(folder, FILES[0]))) as connection:
            yield connection


def problems(place: DaemonPaths) -> Sequence[str]:
    """What is wrong with what is stored, whatever the clients have seen."""
    if URL not in place.env:
        return verify(place.home / FILES[0]).problems
    with _postgres(place.env[URL]) as connection:
        return verify_contents(connection).problems


@contextmanager
def _postgres(url: str) -> Iterator[SqlConnection]:
    psycopg = importlib.import_module("psycopg")  # only here: the other checks need no driver
    dialect = importlib.import_module("zotd.store.postgres.dialect")
    with psycopg.connect(url) as connection:
        yield dialect.SharedConnection(connection)

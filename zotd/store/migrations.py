"""Migrations from one schema of the database to the next; `zotd.store.schema` explains the tables."""

import logging
import secrets
import sqlite3
from collections.abc import Callable

from zotd.store import sums
from zotd.store.epoch import EPOCH_BYTES
from zotd.store.errors import is_damage

log = logging.getLogger(__name__)

Migration = Callable[[sqlite3.Connection], None]

_TABLES_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    cwd TEXT NOT NULL,
    state TEXT NOT NULL,
    updated TEXT NOT NULL,
    records INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    row TEXT NOT NULL
);
CREATE TABLE records (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key),
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    v INTEGER NOT NULL,
    time TEXT NOT NULL,
    body BLOB NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    events BLOB NOT NULL,
    messages INTEGER NOT NULL
);
CREATE UNIQUE INDEX records_number ON records (session, number);
CREATE INDEX records_seq ON records (session, first_seq, messages) WHERE first_seq > 0
"""


def _version_1(connection: sqlite3.Connection) -> None:
    # No index on `sessions.updated`: each commit would have to update it, while sorting some thousand rows in the
    # reader's thread takes milliseconds. `records` is a rowid table, because WITHOUT ROWID would put rows of a kilobyte
    # and more into the keys of the b-tree. `messages` is in the second index so that reading a page of history skips
    # other records without touching them.
    for statement in _TABLES_1.split(";"):  # not executescript: that commits the transaction it runs in
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('epoch', ?)", (secrets.token_hex(EPOCH_BYTES),))


_TABLES_2 = """
CREATE VIRTUAL TABLE texts USING fts5 (text, role UNINDEXED, tokenize = "unicode61 remove_diacritics 2");
INSERT INTO meta VALUES ('searchable', '0');
CREATE INDEX records_usage ON records (time) WHERE kind IN ('usage', 'interrupted')
"""


def _version_2(connection: sqlite3.Connection) -> None:
    # Existing messages are indexed while the daemon is idle: doing it here would delay the start by seconds. The second
    # index has one record per step and adds 4 us to one commit of that step.
    for statement in _TABLES_2.split(";"):
        connection.execute(statement)


_TABLE_3 = """
CREATE TABLE partials (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    run TEXT NOT NULL,
    step INTEGER NOT NULL,
    text TEXT NOT NULL
)
"""


def _version_3(connection: sqlite3.Connection) -> None:
    connection.execute(_TABLE_3)


_TABLES_4 = """
CREATE TABLE forks (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    origin INTEGER NOT NULL REFERENCES sessions (key),
    shared INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX forks_origin ON forks (origin);
CREATE TABLE imports (digest TEXT PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (key)) WITHOUT ROWID;
CREATE TABLE staged (session INTEGER PRIMARY KEY REFERENCES sessions (key), maker TEXT NOT NULL)
"""


def _version_4(connection: sqlite3.Connection) -> None:
    for statement in _TABLES_4.split(";"):
        connection.execute(statement)


def _version_5(connection: sqlite3.Connection) -> None:
    # For `zotd.store.prompts`: one entry per prompt, in the order of the records' keys. Creating the index reads every
    # page, and a damaged page may only affect its session, not the start. Queries work without the index, slowly.
    try:
        connection.execute("CREATE INDEX records_input ON records (kind) WHERE kind = 'input'")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        log.warning("earlier prompts are searched without an index: a part of the journal is damaged (%s)", error)
        connection.execute("ROLLBACK")  # a transaction that has met damage cannot be committed
        connection.execute("BEGIN IMMEDIATE")


_TABLES_6 = """
ALTER TABLE sessions ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE TABLE generations (
    session INTEGER NOT NULL REFERENCES sessions (key),
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID
"""


def _version_6(connection: sqlite3.Connection) -> None:
    for statement in _TABLES_6.split(";"):
        connection.execute(statement)


_TABLE_7 = """
CREATE TABLE sums (
    session INTEGER NOT NULL REFERENCES sessions (key),
    hour TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    attempts INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    estimated_usd REAL NOT NULL,
    PRIMARY KEY (session, hour, model)
) WITHOUT ROWID
"""


def _version_7(connection: sqlite3.Connection) -> None:
    # Adding up 250,000 requests takes 4 s. Requests on damaged pages are omitted, because damage must not prevent the
    # start, and a transaction that has met damage cannot be committed.
    found, is_whole = sums.counted(connection)
    if not is_whole:
        log.warning("usage lacks some requests: a part of the journal is damaged")
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
    connection.execute(_TABLE_7)
    sums.save(connection, found)


_TIMERS_8 = """
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    row TEXT NOT NULL
) WITHOUT ROWID
"""


def _version_8(connection: sqlite3.Connection) -> None:
    # A column, because the commits of a session must not have to decode its row for an index on what is in it.
    connection.execute("ALTER TABLE sessions ADD COLUMN parent TEXT")
    connection.execute("CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL")
    # Number of jobs that run, so that a start finds those that a crash has cut without decoding every row.
    connection.execute("ALTER TABLE sessions ADD COLUMN jobs INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX sessions_jobs ON sessions (id) WHERE jobs > 0")
    connection.execute(_TIMERS_8)


_BATCHES_9 = """
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    submitter TEXT NOT NULL,
    priority INTEGER NOT NULL,
    made TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE batch_prompts (
    batch TEXT NOT NULL REFERENCES batches (id),
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    labels TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    daemon INTEGER,
    session TEXT,
    ended INTEGER,
    row TEXT NOT NULL,
    result TEXT,
    PRIMARY KEY (batch, number)
);
CREATE INDEX batch_prompts_waiting ON batch_prompts (batch, labels, number) WHERE state = 'waiting';
CREATE INDEX batch_prompts_running ON batch_prompts (batch, number) WHERE state = 'running';
CREATE UNIQUE INDEX batch_prompts_ended ON batch_prompts (batch, ended) WHERE ended IS NOT NULL
"""


def _version_9(connection: sqlite3.Connection) -> None:
    # The row and the result are texts of up to megabytes: only the row by its key has them, no index.
    for statement in _BATCHES_9.split(";"):
        connection.execute(statement)


_AUDIT_10 = """
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    client TEXT NOT NULL,
    command TEXT NOT NULL,
    session TEXT NOT NULL,
    details TEXT NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID
"""


def _version_10(connection: sqlite3.Connection) -> None:
    connection.execute(_AUDIT_10)


_USER_DAYS_11 = """
CREATE TABLE user_days (
    user_name TEXT NOT NULL,
    day TEXT NOT NULL,
    daemon INTEGER NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (user_name, day, daemon)
) WITHOUT ROWID
"""


def _version_11(connection: sqlite3.Connection) -> None:
    connection.execute(_USER_DAYS_11)
    # Not `user`, which is reserved in PostgreSQL.
    connection.execute("ALTER TABLE sessions ADD COLUMN user_name TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE INDEX sessions_user ON sessions (user_name) WHERE user_name <> ''")


MIGRATIONS: tuple[Migration, ...] = (
    _version_1,
    _version_2,
    _version_3,
    _version_4,
    _version_5,
    _version_6,
    _version_7,
    _version_8,
    _version_9,
    _version_10,
    _version_11,
)
"""`MIGRATIONS[n]` upgrades schema n to n + 1. A released migration never changes; `tests/store/older.py` builds a
database of each schema."""

"""Databases of earlier versions: one builder for each released schema, which never changes.

Each database has a session `s_old` with two records whose messages are "an old question" and "an old answer", and a
record of the usage.
"""

import json
import sqlite3
from contextlib import closing

TIME = "2026-11-21T20:11:18.919Z"

EPOCH = "00112233445566778899aabbccddeeff"

VERSION_1 = """
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
CREATE INDEX records_seq ON records (session, first_seq, messages) WHERE first_seq > 0;
"""

ROW = {
    "id": "s_old",
    "name": "old",
    "cwd": "/home",
    "created": TIME,
    "updated": TIME,
    "settings": {"provider": "p", "model": "m"},
    "state": "idle",
    "seq": 2,
    "records": 3,
    "messages": 2,
}


def message(seq, kind, words):
    event = {"type": kind, "session": "s_old", "seq": seq, "content": [{"type": "text", "text": words}], "time": TIME}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


RECORDS = [
    (
        {"kind": "attempt", "time": TIME, "run": "r", "step": 1, "number": 1, "provider": "p", "model": "m"},
        message(1, "user_message", "an old question"),
    ),
    (
        {"kind": "usage", "time": TIME, "run": "r", "step": 1, "provider": "p", "model": "m", "tokens": {"input": 7}},
        b"",
    ),
    (
        {"kind": "message", "time": TIME, "run": "r", "step": 1, "content": [], "stop": "end_turn"},
        message(2, "assistant_message", "an old answer"),
    ),
]


def version_1(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(VERSION_1)
        connection.execute("PRAGMA user_version = 1")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("epoch", EPOCH), ("version", "0.1.0")])
        connection.execute("INSERT INTO settings VALUES ('last_used', 'p/m')")
        session = (1, "s_old", "old", "/home", "idle", TIME, 3, 2, json.dumps(ROW))
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", session)
        seq = 0
        for number, (record, events) in enumerate(RECORDS, 1):
            shown = seq + 1 if events else 0
            seq = shown or seq
            body = json.dumps(record).encode()
            values = (number, 1, number, record["kind"], 1, TIME, body, shown, shown, events, int(bool(events)))
            connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


VERSION_2 = """
CREATE VIRTUAL TABLE texts USING fts5 (text, role UNINDEXED, tokenize = "unicode61 remove_diacritics 2");
INSERT INTO meta VALUES ('searchable', '3');
CREATE INDEX records_usage ON records (time) WHERE kind IN ('usage', 'interrupted');
PRAGMA user_version = 2;
"""

TEXTS = [(1 << 16, "an old question", "user"), (3 << 16, "an old answer", "assistant")]


def version_2(path):
    version_1(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_2)
        connection.executemany("INSERT INTO texts (rowid, text, role) VALUES (?, ?, ?)", TEXTS)


VERSION_3 = """
CREATE TABLE partials (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    run TEXT NOT NULL,
    step INTEGER NOT NULL,
    text TEXT NOT NULL
);
PRAGMA user_version = 3;
"""


def version_3(path):
    version_2(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_3)


VERSION_4 = """
CREATE TABLE forks (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    origin INTEGER NOT NULL REFERENCES sessions (key),
    shared INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX forks_origin ON forks (origin);
CREATE TABLE imports (digest TEXT PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (key)) WITHOUT ROWID;
CREATE TABLE staged (session INTEGER PRIMARY KEY REFERENCES sessions (key), maker TEXT NOT NULL);
PRAGMA user_version = 4;
"""


def version_4(path):
    version_3(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_4)


VERSION_5 = """
CREATE INDEX records_input ON records (kind) WHERE kind = 'input';
PRAGMA user_version = 5;
"""


def version_5(path):
    version_4(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_5)


VERSION_6 = """
ALTER TABLE sessions ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE TABLE generations (
    session INTEGER NOT NULL REFERENCES sessions (key),
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
PRAGMA user_version = 6;
"""


def version_6(path):
    version_5(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_6)


VERSION_7 = """
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
) WITHOUT ROWID;
INSERT INTO sums VALUES (1, '2026-11-21T20', 'p/m', 7, 0, 0, 0, 0, 1, 0, 0);
PRAGMA user_version = 7;
"""


def version_7(path):
    version_6(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_7)


VERSION_8 = """
ALTER TABLE sessions ADD COLUMN parent TEXT;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
ALTER TABLE sessions ADD COLUMN jobs INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_jobs ON sessions (id) WHERE jobs > 0;
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    row TEXT NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 8;
"""


def version_8(path):
    version_7(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_8)


VERSION_9 = """
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
CREATE UNIQUE INDEX batch_prompts_ended ON batch_prompts (batch, ended) WHERE ended IS NOT NULL;
PRAGMA user_version = 9;
"""


def version_9(path):
    version_8(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_9)


VERSION_10 = """
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    client TEXT NOT NULL,
    command TEXT NOT NULL,
    session TEXT NOT NULL,
    details TEXT NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 10;
"""


def version_10(path):
    version_9(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_10)


BUILDERS = {
    1: version_1,
    2: version_2,
    3: version_3,
    4: version_4,
    5: version_5,
    6: version_6,
    7: version_7,
    8: version_8,
    9: version_9,
    10: version_10,
}
"""Builder by schema version."""

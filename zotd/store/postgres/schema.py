"""Schema of the journal on PostgreSQL: the tables of `zotd.store.schema` with the same columns, and its migrations.

What differs: `records` is partitioned by session, `texts` has no text but its words, `meta` has the number of the schema.

Texts that are compared have the collation C, so that their order is that of SQLite and of Python.
"""

import secrets
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from zotd.core.ports import StorageError
from zotd.store.epoch import EPOCH_BYTES
from zotd.store.errors import NewerSchemaError
from zotd.wire.version import VERSION

PARTITIONS = 8
"""Parts of `records`. Vacuuming and rebuilding an index then work on an eighth of it at a time."""

CONNECT_S = 5
"""Longest time to connect to each address of the server, in seconds."""

STATEMENT_S = 30
"""Longest time of one statement, in seconds; the server ends it."""

IDLE_S = 10
"""Longest pause within a transaction, in seconds; then the server ends the connection. A daemon that was stopped in the
middle of a commit thus keeps no other from taking its place: that waits for the end of the transaction."""

LOST = {"tcp_user_timeout": 10_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""When a connection counts as lost whose other end does not answer: after 10 s with data on its way, in milliseconds, and
after 25 s without, in seconds. What the address says takes precedence."""

APPLICATION = "zotd"

LOCK = 0x7A6F74
"""Number of the advisory lock of the schema: daemons that write hold it together, one that starts alone."""

_TABLES = """
CREATE TABLE settings (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE COLLATE "C",
    name text NOT NULL,
    cwd text NOT NULL,
    state text NOT NULL,
    updated text NOT NULL COLLATE "C",
    records bigint NOT NULL,
    seq bigint NOT NULL,
    row text NOT NULL,
    generation bigint NOT NULL DEFAULT 0,
    parent text,
    jobs integer NOT NULL DEFAULT 0
);
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_jobs ON sessions (id) WHERE jobs > 0;
CREATE SEQUENCE record_keys;
CREATE TABLE records (
    key bigint NOT NULL DEFAULT nextval('record_keys'),
    session bigint NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL,
    v integer NOT NULL,
    time text NOT NULL COLLATE "C",
    body bytea NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    events bytea NOT NULL,
    messages integer NOT NULL,
    PRIMARY KEY (session, number)
) PARTITION BY HASH (session);
CREATE INDEX records_seq ON records (session, first_seq) WHERE first_seq > 0;
CREATE INDEX records_key ON records (key);
CREATE INDEX records_input ON records (key) WHERE kind = 'input';
CREATE INDEX records_usage ON records (time) WHERE kind IN ('usage', 'interrupted');
CREATE TABLE texts (rowid bigint PRIMARY KEY, role text NOT NULL, words tsvector NOT NULL);
CREATE INDEX texts_words ON texts USING gin (words);
CREATE TABLE partials (session bigint PRIMARY KEY, run text NOT NULL, step bigint NOT NULL, text bytea NOT NULL);
CREATE TABLE forks (session bigint PRIMARY KEY, origin bigint NOT NULL, shared bigint NOT NULL, at bigint NOT NULL);
CREATE INDEX forks_origin ON forks (origin);
CREATE TABLE imports (digest text PRIMARY KEY, session bigint NOT NULL);
CREATE TABLE staged (session bigint PRIMARY KEY, maker text NOT NULL);
CREATE TABLE generations (session bigint, number bigint, seq bigint NOT NULL, PRIMARY KEY (session, number));
CREATE TABLE sums (
    session bigint NOT NULL,
    hour text NOT NULL COLLATE "C",
    model text NOT NULL,
    input bigint NOT NULL,
    output bigint NOT NULL,
    cache_read bigint NOT NULL,
    cache_write bigint NOT NULL,
    cost_usd double precision NOT NULL,
    attempts bigint NOT NULL,
    unknown bigint NOT NULL,
    estimated_usd double precision NOT NULL,
    PRIMARY KEY (session, hour, model)
);
CREATE TABLE timers (id text PRIMARY KEY COLLATE "C", session text NOT NULL, row text NOT NULL);
"""


def _first(connection: psycopg.Connection) -> None:
    connection.execute(_TABLES)
    for part in range(PARTITIONS):
        connection.execute(
            f"CREATE TABLE records_{part} PARTITION OF records FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part})"
        )
    epoch = secrets.token_hex(EPOCH_BYTES)
    connection.execute("INSERT INTO meta VALUES ('epoch', %s), ('generation', '0'), ('searchable', '0')", (epoch,))


def _leases(connection: psycopg.Connection) -> None:
    connection.execute("""
    CREATE TABLE daemons (
        number bigint PRIMARY KEY,
        home text NOT NULL UNIQUE,
        name text NOT NULL,
        expires timestamptz NOT NULL,
        stopping boolean NOT NULL DEFAULT false,
        application text NOT NULL
    );
    CREATE TABLE handovers (session text PRIMARY KEY, heir bigint NOT NULL);
    ALTER TABLE sessions ADD COLUMN owner bigint;
    CREATE INDEX sessions_owner ON sessions (owner) WHERE owner IS NOT NULL;
    ALTER TABLE timers ADD COLUMN owner bigint;
    """)


def _addresses(connection: psycopg.Connection) -> None:
    connection.execute("ALTER TABLE daemons ADD COLUMN address text NOT NULL DEFAULT ''")


def _moves(connection: psycopg.Connection) -> None:
    connection.execute("ALTER TABLE handovers ADD COLUMN goes_on boolean NOT NULL DEFAULT true")


def _batches(connection: psycopg.Connection) -> None:
    connection.execute("""
    CREATE TABLE batches (
        id text PRIMARY KEY COLLATE "C",
        submitter text NOT NULL,
        priority integer NOT NULL,
        made text NOT NULL COLLATE "C",
        cancelled integer NOT NULL DEFAULT 0,
        ended bigint NOT NULL DEFAULT 0
    );
    CREATE TABLE batch_prompts (
        batch text NOT NULL COLLATE "C",
        number bigint NOT NULL,
        state text NOT NULL,
        labels text NOT NULL COLLATE "C",
        attempts integer NOT NULL DEFAULT 0,
        daemon bigint,
        session text,
        ended bigint,
        row text NOT NULL,
        result text,
        PRIMARY KEY (batch, number)
    );
    CREATE INDEX batch_prompts_waiting ON batch_prompts (batch, labels, number) WHERE state = 'waiting';
    CREATE INDEX batch_prompts_running ON batch_prompts (batch, number) WHERE state = 'running';
    CREATE UNIQUE INDEX batch_prompts_ended ON batch_prompts (batch, ended) WHERE ended IS NOT NULL;
    ALTER TABLE daemons ADD COLUMN labels text NOT NULL DEFAULT '[]';
    """)


def _audit(connection: psycopg.Connection) -> None:
    connection.execute("""
    CREATE TABLE audit (
        id text PRIMARY KEY COLLATE "C",
        time text NOT NULL COLLATE "C",
        who text NOT NULL,
        client text NOT NULL,
        command text NOT NULL,
        session text NOT NULL,
        details text NOT NULL,
        outcome text NOT NULL
    )
    """)


def _users(connection: psycopg.Connection) -> None:
    connection.execute("""
    ALTER TABLE sessions ADD COLUMN user_name text NOT NULL DEFAULT '';
    CREATE INDEX sessions_user ON sessions (user_name) WHERE user_name <> '';
    CREATE TABLE user_days (
        user_name text NOT NULL,
        day text NOT NULL COLLATE "C",
        daemon bigint NOT NULL,
        usd double precision NOT NULL,
        PRIMARY KEY (user_name, day, daemon)
    );
    """)


MIGRATIONS = (_first, _leases, _addresses, _moves, _batches, _audit, _users)
"""Each makes the schema whose number is its place, counted from 1, out of the one before."""


def connect(url: str, application: str = APPLICATION) -> psycopg.Connection:
    """Connect without a transaction. The server bounds statements by `STATEMENT_S`, and pauses in transactions by `IDLE_S`.

    `application`: how the server names the connection.

    Raises:
        StorageError: the database cannot be reached, or the address is none; the message has no password.
    """
    try:
        given = conninfo_to_dict(url)
        bounds = (f"statement_timeout={STATEMENT_S}s", f"idle_in_transaction_session_timeout={IDLE_S}s")
        ours = (*bounds, "synchronous_commit=on")
        options = " ".join([str(given.get("options") or ""), *(f"-c {setting}" for setting in ours)])
        wanted: dict[str, str | int] = {"connect_timeout": CONNECT_S, "application_name": application, **LOST}
        missing = {name: value for name, value in wanted.items() if name not in given}
        connection = psycopg.connect(make_conninfo(url, options=options, **missing), autocommit=True)
    except psycopg.Error as error:
        raise StorageError(f"the journal {shown(url)} cannot be opened: {one_line(error)}") from error
    # Whatever the default of the database is: each statement sees what was committed before it, also while it waited.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


def shown(url: str) -> str:
    """Return the address without its password, its user and its parameters, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def one_line(error: Exception) -> str:
    """Return what the server says, which may have several lines and an excerpt of a statement."""
    return " ".join(str(error).split())


def upgrade(connection: psycopg.Connection) -> None:
    """Bring the schema up to date, in the caller's transaction.

    From a change of the schema on, no daemon can write that was registered before.

    Raises:
        NewerSchemaError: a newer program made the schema; nothing was changed.
        StorageError: the database has another encoding than UTF8.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StorageError(f"the database {connection.info.dbname} has the encoding {encoding}, and has to have UTF8")
    # Until the end of the transaction. Two daemons that start at once upgrade one after the other, and transactions of
    # daemons that write end before.
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    _migrate(connection)


def look(url: str) -> None:
    """Check that the database can be reached and its schema is known, without changing it; raises as `prepare`."""
    connection = connect(url)
    try:
        (has_tables,) = _one(connection, "SELECT to_regclass('meta') IS NOT NULL")
        if has_tables:
            check(connection)
    except psycopg.Error as error:
        raise StorageError(f"the journal {shown(url)} cannot be read: {one_line(error)}") from error
    finally:
        connection.close()


def _migrate(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS meta (key text PRIMARY KEY, value text NOT NULL)")
    schema = check(connection)
    for migrate in MIGRATIONS[schema:]:
        migrate(connection)
    if schema < len(MIGRATIONS):
        connection.execute("DELETE FROM daemons")
    connection.cursor().executemany(
        "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [("schema", str(len(MIGRATIONS))), ("version", VERSION)],
    )


def is_current(connection: psycopg.Connection) -> bool:
    """Return whether the schema is up to date, and keep it so until the end of the caller's transaction; raises as `upgrade`."""
    lock(connection)
    (has_tables,) = _one(connection, "SELECT to_regclass('meta') IS NOT NULL")
    return bool(has_tables) and check(connection) == len(MIGRATIONS)


def epoch_of(connection: psycopg.Connection) -> str:
    """Return the epoch of the database."""
    (epoch,) = _one(connection, "SELECT value FROM meta WHERE key = 'epoch'")
    return str(epoch)


def lock(connection: psycopg.Connection) -> None:
    """Keep the schema as it is until the end of the caller's transaction."""
    connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (LOCK,))


def check(connection: psycopg.Connection) -> int:
    """Return the number of the schema, 0 without tables; raises NewerSchemaError if this program does not know it."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    schema = int(found[0]) if found else 0
    if schema > len(MIGRATIONS):
        (maker,) = _one(connection, "SELECT value FROM meta WHERE key = 'version'")
        raise NewerSchemaError(
            f"the journal was written by zotd {maker} (schema {schema}), and this is zotd {VERSION} "
            f"(schema {len(MIGRATIONS)}): start that version or a newer one"
        )
    return schema


def _one(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    found: tuple[object, ...] | None = connection.execute(query.encode()).fetchone()
    assert found is not None
    return found

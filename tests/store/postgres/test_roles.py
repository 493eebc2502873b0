"""The roles that `packaging/postgresql/roles.sql` makes: what the daemon needs, and nothing else."""

import asyncio
import subprocess
from pathlib import Path

import psycopg
import pytest

from zotd.core.ports import StorageError
from zotd.store.opening import open_journal
from zotd.testing.postgres_server import MISSING, PostgresServer

SCRIPT = Path(__file__).parents[3] / "packaging" / "postgresql" / "roles.sql"
SIZES = Path(__file__).parents[3] / "docs" / "operations.md"
PASSWORD = "violet-elephant"


DAEMONS = 30


def run_script(server, *options):
    command = [str(server.programs / "psql"), "-v", "ON_ERROR_STOP=1", *options, "-q", "-f", str(SCRIPT)]
    subprocess.run([*command, server.url("postgres")], check=True, timeout=60)


def limit_of(server):
    with psycopg.connect(server.url("postgres")) as connection:
        (limit,) = connection.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'zot'").fetchone() or (0,)
        return limit


@pytest.fixture(scope="module")
def server():
    """A server that asks everybody but its administrator for a password."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=False)
    run_script(server)
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER ROLE zot PASSWORD '{PASSWORD}'")
        (server.data / "pg_hba.conf").write_text("local all admin trust\nlocal all all scram-sha-256\n")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.close()


@pytest.fixture
def url(server):
    return f"postgresql://zot@/zot?host={server.directory}"


@pytest.fixture
def password_file(tmp_path, monkeypatch):
    def password_file(password):
        file = tmp_path / "pgpass"
        file.write_text(f"*:*:zot:zot:{password}\n")
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))

    return password_file


async def test_the_daemon_logs_in_with_a_password_file_and_makes_its_tables(
    url, server, password_file, tmp_path, author_of, say
):
    password_file(PASSWORD)
    journal = await open_journal(tmp_path, url)
    await author_of(journal).commit((say.note("one"), [say.step()]))
    assert (await journal.events_after("s_1", 0, 1000))[0] == 1
    await journal.close()
    with psycopg.connect(server.url("zot")) as connection:
        schemas = connection.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tableowner = 'zot'").fetchall()
        assert schemas == [("zot",)]
        connection.execute("SET ROLE zot_backup")
        assert connection.execute("SELECT count(*) FROM zot.records").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM zot.records")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE public.a ()",
        "CREATE SCHEMA a",
        "CREATE ROLE a",
        "CREATE DATABASE a",
        "COPY (SELECT 1) TO '/tmp/a'",
        "SELECT * FROM pg_authid",
        "ALTER SYSTEM SET fsync = off",
    ],
)
def test_the_role_of_the_daemon_can_do_nothing_else(server, statement):
    with psycopg.connect(server.url("zot"), autocommit=True) as connection:
        connection.execute("SET SESSION AUTHORIZATION zot")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


async def test_a_wrong_password_is_a_sentence_without_it(url, password_file, tmp_path):
    password_file("wrong-one")
    with pytest.raises(
        StorageError, match=r"the journal postgresql:///zot cannot be opened: .*authentication failed"
    ) as no:
        await open_journal(tmp_path, url)
    assert "wrong-one" not in str(no.value)


def test_the_role_has_connections_for_ten_daemons_or_as_many_as_one_says(server):
    assert limit_of(server) == 66
    assert "The role `zot` has 66, six for each of ten daemons" in SIZES.read_text()
    another = PostgresServer(fsync=False)
    try:
        run_script(another, "-v", f"daemons={DAEMONS}")
        assert limit_of(another) == 186
        assert f"`psql -v daemons={DAEMONS} -f roles.sql postgres`, or later `ALTER ROLE zot CONNECTION LIMIT 186`" in (
            SIZES.read_text()
        )
    finally:
        another.close()


async def test_a_daemon_uses_no_more_than_six_connections(url, server, password_file, tmp_path):
    password_file(PASSWORD)
    journal = await open_journal(tmp_path, url)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(50):
            tasks.create_task(journal.database.used_bytes())
    with psycopg.connect(server.url("zot")) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'zot' AND datname = 'zot'"
        assert connection.execute(query).fetchone() == (6,)
    await journal.close()

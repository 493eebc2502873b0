"""A daemon whose sessions are in PostgreSQL: what it does when it, the database, or the connection goes away."""

import asyncio
import os
import secrets
import shlex
import signal
import subprocess
import tempfile
from contextlib import AsyncExitStack, aclosing, closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import trustme

from tests.detour import detour
from tests.e2e.conftest import House
from tests.needs import needs
from zotd.client.follow import Disconnected, Follower
from zotd.core.closings import INTERRUPTED
from zotd.testing.live_daemon import ROOT, DaemonProcess, free_port
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.testing.script import CallPart, ScriptedReply, TextPart, calls, text
from zotd.wire.api import Attached

ROLES = ROOT / "packaging/postgresql/roles.sql"

DISK_BYTES = 128 * 1024 * 1024
"""An empty cluster takes half of it."""

STORED_AGAIN = ("info", "the journal can be written again; the session continues from what is stored")


@pytest.fixture
def variables(database):
    return {"ZOT_JOURNAL_URL": database}


@pytest.fixture
def talk_of(process, model):
    """`await talk_of(answer, ...)`: a session with a model that needs no key, so that it goes on in the next daemon."""

    async def talk_of(*answers):
        url = (await model(*answers)).openai_url
        return await process.create("ollama", None, model="m", provider="ollama", base_url=url, secrets=None)

    return talk_of


def rows(database, query):
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def notices(frames):
    return [(frame["level"], frame["text"]) for frame in frames if frame["type"] == "notice"]


async def test_a_killed_daemon_finds_its_sessions_again_and_runs_no_command_twice(process, database, talk_of):
    os.mkfifo(process.cwd / "go")
    talk = await talk_of(
        calls(CallPart("bash", {"command": "echo x >> ran; echo started; read < go"})),
        text("It was a zebra."),
        text("ok"),
    )
    await talk.ask("prompt", message="which animal")
    await talk.until("tool_progress")
    process.restart(signal.SIGKILL)
    assert not (process.place.home / "zot.db").exists()
    talk = await process.follow(talk.id)
    assert (talk.snapshot["session"]["state"], talk.snapshot["held"]) == ("held", True)
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    assert (process.cwd / "ran").read_text() == "x\n"
    roles, words = zip(*await talk.texts(), strict=True)
    assert roles == ("user", "assistant", "tool", "assistant")
    assert INTERRUPTED in str(words[2])
    assert rows(database, "SELECT count(*) FROM records WHERE kind = 'call_started'") == [(1,)]

    await talk.run("and now")
    assert [hit["session"] for hit in (await talk.client.ask("session.search", query="zebra"))["hits"]] == [talk.id]
    assert [row["attempts"] for row in (await talk.client.ask("usage.report"))["rows"]] == [3]
    fork = await talk.ask("session.fork")
    copied = await process.follow(fork["session"]["id"])
    assert await copied.texts() == await talk.texts()
    listed = (await talk.client.ask("session.list"))["sessions"]
    assert {one["id"] for one in listed} == {talk.id, fork["session"]["id"]}


async def test_a_daemon_whose_database_is_away_does_not_start_and_says_why_in_a_sentence(process, server):
    process.daemon.end()
    server.stop()
    said = process.daemon.try_to_start()
    process.daemon.wait()
    server.start()
    process.daemon.start()
    assert said.startswith("error the journal postgresql:///")
    assert "cannot be opened" in said
    assert "\n" not in said


@pytest.fixture
def authority(server, tmp_path):
    """Have the server listen on a port of loopback, with a certificate; that port, and the authority's file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    certificate = authority.issue_cert("localhost")
    files = {"ssl_key_file": certificate.private_key_pem, "ssl_cert_file": certificate.cert_chain_pems[0]}
    for name, blob in files.items():
        path = server.data / name
        path.touch(mode=0o600)
        path.write_bytes(blob.bytes())
        if server.user is not None:
            os.chown(path, server.user.pw_uid, server.user.pw_gid)
    server.configure(listen_addresses="localhost", ssl="on", **{name: name for name in files})
    server.stop()
    port = free_port()
    server.configure(port=str(port))
    server.start()
    return port, tmp_path / "authority.pem"


@pytest.fixture
def stopped(tmp_path, database, authority):
    """A daemon that was not started; its database is reached with TLS."""
    port, file = authority
    daemon = DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": over_tls(database, port, file)})
    yield daemon
    daemon.end()


def over_tls(database, port, file):
    name = urlsplit(database).path
    return f"postgresql://admin@localhost:{port}{name}?sslmode=verify-full&sslrootcert={file}"


async def test_over_tls_the_daemon_speaks_to_the_server_that_the_authority_vouches_for(database, authority, stopped):
    port, file = authority
    vouching = file.read_bytes()
    trustme.CA().cert_pem.write_to_path(file)
    said = stopped.try_to_start()
    stopped.wait()
    assert said.startswith(
        f"error the journal postgresql://localhost:{port}{urlsplit(database).path} cannot be opened:"
    )
    assert "certificate verify failed" in said

    file.write_bytes(vouching)
    stopped.start()
    query = (
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'zotd %'"
    )
    assert rows(over_tls(database, port, file), query) == [(True,)]


async def test_while_the_database_is_away_inputs_are_refused_and_afterwards_sessions_go_on(process, server, talk_of):
    talk = await talk_of(*[text("fine")] * 3)
    await talk.run("before")
    server.kill()
    assert await talk.refused("prompt", message="lost") == "storage_blocked"
    (warning,) = (await talk.ask("daemon.status"))["warnings"]
    assert warning.startswith("nothing is stored: the journal")
    server.start()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    await talk.run("after")
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"], ["after"]]


async def test_a_follower_waits_for_a_session_that_cannot_be_read_while_the_database_is_away(process, server, talk_of):
    talk = await talk_of(text("fine"))
    await talk.run("before")
    process.restart(signal.SIGKILL)  # so that the session is not in memory
    server.kill()
    where = {"path": process.place.socket, "env": process.place.env}
    async with aclosing(Follower(talk.id, after=None, **where).items()) as items:
        assert isinstance(await anext(items), Disconnected)
        server.start()
        while isinstance(found := await anext(items), Disconnected):
            pass
    assert isinstance(found, Attached)


async def test_a_database_that_ends_during_a_run_ends_the_run_and_loses_nothing_that_was_stored(
    process, server, talk_of
):
    os.mkfifo(process.cwd / "go")
    command = calls(CallPart("bash", {"command": "echo started; read < go"}))
    talk = await talk_of(command, ScriptedReply([TextPart(["fine"])]), text("fine"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    server.kill()
    (process.cwd / "go").write_text("\n")
    while not any(level == "error" for level, _ in notices(talk.client.seen)):
        await talk.client.event()
    server.start()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    late = await process.follow(talk.id)
    await late.ask("run_command", name="continue")
    await late.until("done")
    assert [role for role, _ in await late.texts()] == ["user", "assistant", "tool", "assistant"]
    seqs = [frame["seq"] for frame in talk.client.seen if frame.get("seq") and frame["type"] != "replay_complete"]
    assert seqs == sorted(set(seqs))


@pytest.fixture
async def roundabout(server, database, tmp_path):
    """A daemon, and the way to its database, whose answers can be withheld."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zotpg-", dir="/tmp")))
        way = await stack.enter_async_context(detour(folder, server.directory))
        url = database.replace(str(server.directory), str(folder))
        daemon = DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": url})
        stack.push(daemon)
        await asyncio.to_thread(daemon.start)  # this loop has the way
        yield House(stack, daemon.place, daemon), way


async def test_events_whose_commit_was_stored_and_reported_as_failed_reach_clients_when_the_session_goes_on(
    roundabout, database, model
):
    house, way = roundabout
    url = (await model(*[text("fine")] * 3)).openai_url
    talk = await house.create("ollama", None, model="m", provider="ollama", base_url=url, secrets=None)
    await talk.run("before")
    way.withhold()
    request = talk.send("prompt", message="stored")
    await asyncio.to_thread(until_stored, database, "stored")
    way.close()
    assert (await talk.client.answer_to(request))["code"] == "storage_blocked"
    await way.open()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"], ["stored"]]
    seqs = [frame["seq"] for frame in talk.client.seen if frame.get("seq") and frame["type"] != "replay_complete"]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def until_stored(database, words):
    """Wait until an input with these words is stored; the server does not report it."""
    with psycopg.connect(database, autocommit=True) as watch:
        query = "SELECT FROM records WHERE kind = 'input' AND position(%s in convert_from(body, 'UTF8')) > 0"
        while watch.execute(query, (words,)).fetchone() is None:
            pass


async def test_connections_that_the_server_ends_while_nothing_happens_are_not_noticed(process, database, talk_of):
    talk = await talk_of(*[text("fine")] * 2)
    await talk.run("before")
    await talk.texts()
    ended = rows(
        database,
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        " WHERE application_name LIKE 'zotd %' AND datname = current_database()",
    )
    assert len(ended) >= 2
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"]]
    await talk.run("after")
    assert "ERROR" not in process.daemon.log


@pytest.fixture
async def with_roles(server, tmp_path):
    """A daemon with the database and the role of packaging/postgresql/roles.sql; runs commands of the manual."""
    run_program(server, "psql", "-v", "ON_ERROR_STOP=1", "-q", "-f", str(ROLES), server.url("postgres"))
    async with AsyncExitStack() as stack:
        url = f"postgresql://zot@/zot?host={server.directory}"
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": url}))
        yield House(stack, daemon.place, daemon)


def run_program(server, *command):
    env = {"PATH": os.environ["PATH"], "PGHOST": str(server.directory), "PGUSER": "admin"}
    subprocess.run([server.programs / command[0], *command[1:]], check=True, timeout=60, env=env)


def restoring_commands(copy):
    """Those of the manual between `zotctl stop` and `zotctl start`."""
    page = (ROOT / "docs/postgresql.md").read_text()
    block = page.partition("    zotctl stop\n")[2].partition("    zotctl start\n")[0]
    return [shlex.split(line.replace("zot.dump", str(copy))) for line in block.splitlines()]


async def test_a_client_with_a_cursor_of_what_a_restored_copy_lacks_gets_a_snapshot(
    with_roles, server, model, tmp_path
):
    copy = tmp_path / "zot.dump"
    url = (await model(*[text("fine")] * 4)).openai_url
    talk = await with_roles.create("ollama", None, model="m", provider="ollama", base_url=url, secrets=None)
    await talk.run("in the copy")
    run_program(server, "pg_dump", "-U", "zot_backup", "-Fc", "-f", str(copy), "zot")
    await talk.run("lost")
    cursor = {"epoch": talk.epoch, "seq": max(frame.get("seq") or 0 for frame in talk.client.seen)}
    with_roles.daemon.end()
    commands = restoring_commands(copy)
    assert [program for program, *_ in commands] == ["psql", "pg_restore", "psql"]
    for command in commands:
        run_program(server, *command)
    with_roles.daemon.start()
    late = await with_roles.follow(talk.id, after=cursor)
    assert (late.snapshot["mode"], late.epoch == talk.epoch) == ("snapshot", False)
    await late.run("after")
    assert [words for role, words in await late.texts() if role == "user"] == [["in the copy"], ["after"]]
    run_program(server, "pg_dump", "-U", "zot_backup", "-Fc", "-f", str(copy), "zot")  # its rights came back, too


@pytest.fixture
def small_disk():
    """A directory in a file system of its own."""
    needs("mount")
    if os.geteuid() != 0:
        pytest.skip("this user cannot mount a file system")
    folder = Path(tempfile.mkdtemp(prefix="zotpg-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True)
    (folder / "pg").mkdir()
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


@pytest.fixture
async def crowded(small_disk, tmp_path):
    """A daemon whose server has a disk that can be filled."""
    if MISSING is not None:
        pytest.skip(MISSING)
    async with AsyncExitStack() as stack:
        server = stack.enter_context(closing(PostgresServer(fsync=True, directory=small_disk / "pg")))
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": server.database()}))
        yield House(stack, daemon.place, daemon)


async def test_while_the_disk_of_the_server_is_full_inputs_are_refused_in_its_words(crowded, small_disk, model):
    url = (await model(*[text("fine")] * 3)).openai_url
    talk = await crowded.create("ollama", None, model="m", provider="ollama", base_url=url, secrets=None)
    await talk.run("before")
    fill(small_disk / "filler")
    refusal = await talk.client.answer("prompt", session=talk.id, message=secrets.token_hex(200_000))
    assert refusal["code"] == "storage_blocked"
    assert "No space left on device" in refusal["error"]
    (small_disk / "filler").unlink()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    await talk.run("after")
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"], ["after"]]


def fill(path):
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))

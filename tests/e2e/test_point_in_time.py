"""A database that is restored to a moment at which a session ran, as docs/operations.md describes it."""

import os
import re
from contextlib import AsyncExitStack, closing

import psycopg

from tests.e2e.conftest import House
from tests.e2e.fleet import until
from zotd.core.closings import INTERRUPTED
from zotd.testing.live_daemon import ROOT, DaemonProcess
from zotd.testing.postgres_copies import RestoredServer, base_backup
from zotd.testing.script import CallPart, calls, text

BUSY = {"command": "echo x >> ran; echo started; read < go"}
"""Runs until the test lets it end, and leaves a trace of each start."""


def new_epoch():
    """The statement of the document that gives a database a new epoch."""
    page = (ROOT / "docs/operations.md").read_text()
    (statement,) = re.findall(r'psql -d zot -c "(UPDATE .*)"', page)
    return statement.replace("zot.meta", "meta")


def archived(server):
    """Have the server archive its log; return where to."""
    archive = server.directory / "archive"
    archive.mkdir()
    if server.user is not None:
        os.chown(archive, server.user.pw_uid, server.user.pw_gid)
    server.stop()
    command = f"test ! -f {archive}/%f && cp %p {archive}/%f"
    server.configure(archive_mode="on", archive_command=command)
    server.start()
    return archive


def name_of(url):
    return url.partition("?")[0].rpartition("/")[2]


async def all_is_archived(database):
    with psycopg.connect(database, autocommit=True) as connection:
        (name,) = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone() or (None,)
    await until(database, "SELECT coalesce(last_archived_wal >= %s, false) FROM pg_stat_archiver", name)


def moment(database):
    with psycopg.connect(database, autocommit=True) as connection:
        (time,) = connection.execute("SELECT clock_timestamp()::text").fetchone() or (None,)
        return time


async def test_what_ran_at_that_moment_is_held_and_its_command_does_not_run_again(server, talk_in, tmp_path):
    archive, database = archived(server), server.database()
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": database}))
        house = House(stack, daemon.place, daemon)
        os.mkfifo(house.cwd / "go")
        talk = await talk_in(house, text("fine"), calls(CallPart("bash", BUSY)), text("done"), text("late"), text("ok"))
        await talk.run("first")
        base_backup(server, server.directory / "backup", "--wal-method=none")
        await talk.ask("prompt", message="second")
        await talk.until("tool_progress")
        until_then = moment(database)
        (house.cwd / "go").write_text("\n")
        await talk.until("done")
        await talk.run("third")
        cursor = {"epoch": talk.epoch, "seq": max(frame.get("seq") or 0 for frame in talk.client.seen)}
        daemon.end()
        await all_is_archived(database)
    server.stop()

    restored = RestoredServer(server.directory / "backup", archive, until_then, fsync=True)
    async with AsyncExitStack() as stack:
        stack.enter_context(closing(restored))
        url = restored.url(name_of(database))
        await until(url, "SELECT NOT pg_is_in_recovery()")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(new_epoch())
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_JOURNAL_URL": url}))
        house = House(stack, daemon.place, daemon)
        again = await house.follow(talk.id, after=cursor)
        assert (again.snapshot["mode"], again.snapshot["reason"]) == ("snapshot", "epoch")
        assert (again.snapshot["session"]["state"], again.snapshot["held"]) == ("held", True)
        await again.ask("run_command", name="continue")
        await again.until("done")
        roles, words = zip(*await again.texts(), strict=True)
        assert roles == ("user", "assistant", "user", "assistant", "tool", "assistant")
        assert INTERRUPTED in str(words[4])
        assert "third" not in str(words)
        assert (house.cwd / "ran").read_text() == "x\n"

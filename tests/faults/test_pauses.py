"""A daemon that stands still for longer than its lease, at the worst moment."""

import asyncio
import signal
from contextlib import closing, suppress
from functools import partial

import pytest

from tests.e2e.fleet import until
from tests.faults.daemon import Nursery, order
from tests.faults.fleet_node import furnish
from tests.needs import ABSENT
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.testing.model_server import ModelServer
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.testing.script import CallPart, calls, text
from zotd.wire import api


@pytest.mark.skipif(MISSING is not None, reason=f"{ABSENT}PostgreSQL and psycopg")
@pytest.mark.timeout(180)
async def test_a_call_that_was_about_to_start_is_not_run_when_others_may_have_the_session(tmp_path):
    """Its timer for the end of the lease is due then, but the event loop first does what was ready before the pause."""
    answers = [calls(CallPart("note", {"key": "k"})), *[text("done")] * 10]
    with closing(await asyncio.to_thread(partial(PostgresServer, fsync=False))) as server:
        database = server.database()
        async with ModelServer(answers) as model, Nursery.open() as nursery:
            stopped, other = (furnish(tmp_path / name, "ask", model.openai_url, database) for name in ("one", "two"))
            paused = await nursery.bear(order(stopped, point="calls on record", nth=1, number=signal.SIGSTOP))
            assert await paused.serves()
            heir = await nursery.bear(order(other))
            assert await heir.serves()
            with suppress(ClientError):  # it may stand still before it answers
                async with Client.connect(path=stopped.socket, env=stopped.env, autostart=False, name="t") as client:
                    session = await client.create(str(stopped.cwd), provider="openai", model="gpt-4o")
                    await client.ask(api.Prompt(session=session.id, message="go"), api.Started)
            await until(database, "SELECT count(*) = 1 FROM daemons")  # the other one has its sessions
            paused.go_on()
            await until(database, "SELECT count(*) = 2 FROM daemons")
            for daemon in (paused, heir):
                await daemon.stop()
            assert len(model.requests) == 1
    assert not (stopped.cwd / "witness").exists()

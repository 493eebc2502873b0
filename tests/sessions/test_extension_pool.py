"""When the extensions of a workspace end, and what joins too late; without any extension in it."""

import asyncio
from types import SimpleNamespace

import pytest

from tests.sessions.desk import no_checkpoints
from zotd.config import Config
from zotd.config.current import CurrentConfig
from zotd.contributions.discovery import ExtensionSources
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.core.run_watch import Unwatched
from zotd.core.transcript import Transcript
from zotd.exthost.host import ExtensionTimeouts
from zotd.ledger.ledger import Ledger
from zotd.process import OrphanReaper
from zotd.sessions.extension_pool import LINGER_S, ExtensionPool, PoolConfig
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.store.memory import Memory
from zotd.store.trust import Trust
from zotd.tasks import contained
from zotd.workspace.environment import Environment

TIME = "2026-11-21T20:11:18.919Z"


@pytest.fixture
async def extension_pool(tmp_path):
    async with asyncio.TaskGroup() as tasks:
        home = tmp_path / "home"
        home.mkdir()

        def spawn(name, work):
            _ = contained(tasks, name, work)

        grounds = PoolConfig(
            ExtensionSources(home), Environment({}), ExtensionTimeouts(), Trust(home), OrphanReaper(home, spawn)
        )
        extension_pool = ExtensionPool(grounds, spawn=spawn)
        yield extension_pool
        await extension_pool.stop()


def make(*args, **options):
    return Session(*args, **options)


def managing(**parts):
    return Manager(**parts)


@pytest.fixture
def session(tmp_path):
    """`session("s_1", no_ext=True, ...)`."""

    def session(name, **settings):
        row = SessionRow(name, "", str(tmp_path), TIME, TIME, Settings(provider="p", model="m", **settings), "idle")
        ledger = Ledger(row, Memory(), Transcript(), addressed=True)
        keeper = no_checkpoints()
        planner = SimpleNamespace(
            plan=lambda *_: None, watch=lambda *_: Unwatched(), keeper=keeper, job_ground=None
        )  # no run begins here
        return make(ledger, Environment({}), planner, spawn=None, changed=lambda _: None, stored_queue=True)

    return session


@pytest.mark.looptime
async def test_a_workspace_ends_a_minute_after_its_last_session(extension_pool, session, looptime, tmp_path):
    first, second = session("s_1"), session("s_2")
    extension_pool.join(first)
    extension_pool.join(second)
    extension_pool.leave(first)
    await asyncio.sleep(LINGER_S)
    assert extension_pool.of_cwd(str(tmp_path)), "the second one is still there"
    extension_pool.leave(second)
    await asyncio.sleep(LINGER_S - 1)
    assert extension_pool.of_cwd(str(tmp_path))
    await asyncio.sleep(2)
    assert extension_pool.of_cwd(str(tmp_path)) == []
    assert looptime == 2 * LINGER_S + 1


@pytest.mark.looptime
async def test_a_session_that_returns_in_time_finds_it_running_whichever_others_left(
    extension_pool, session, looptime, tmp_path
):
    """A session that only has extensions of its own works in the same directory, and does not keep the others."""
    sharing, alone = session("s_1"), session("s_2", no_ext=True, extensions=["/nowhere"])
    extension_pool.join(sharing)
    extension_pool.join(alone)
    (_, warm) = extension_pool.of_cwd(str(tmp_path))
    extension_pool.leave(sharing)
    await asyncio.sleep(LINGER_S / 2)
    extension_pool.leave(alone)
    extension_pool.join(sharing)
    await asyncio.sleep(2 * LINGER_S)
    assert extension_pool.of_cwd(str(tmp_path)) == [warm]
    del looptime


async def test_what_joins_when_everything_ends_gets_no_extensions(extension_pool, session):
    joined = session("s_1")
    extension_pool.join(joined)
    await extension_pool.stop()
    assert extension_pool.join(session("s_2")) is None
    assert extension_pool.layers == []


async def test_a_session_that_has_left_is_told_of_no_more(extension_pool, session):
    one = session("s_1")
    extension_pool.join(one)
    assert one.ledger.observers == []  # it has no extensions that could be told
    one.extensions.ui_state.note("trust", "warn", "it has code of its own")
    assert one.ledger.observers != []  # the next prompt takes the note away
    extension_pool.leave(one)
    extension_pool.leave(one)
    assert (one.extensions, one.ledger.observers) == (None, [])


@pytest.mark.looptime
async def test_what_only_a_session_has_ends_a_minute_after_its_last_client(extension_pool, session, looptime):
    nobody = SimpleNamespace(
        skills=None,
        rules=None,
        check=None,
        extension_pool=extension_pool,
        other_agents=None,
        forget=lambda _: None,
    )
    manager = managing(
        journal=Memory(),
        models=nobody,
        planner=nobody,
        spawn=nobody,
        config=CurrentConfig(Config()),
        environment={},
        addressed=True,
    )
    left = session("s_1", no_ext=True, extensions=["/nowhere"])
    vars(manager)["_sessions"][left.id] = left
    extension_pool.join(left)
    left.holders.add("a connection")
    manager.settle(left)
    await asyncio.sleep(2 * LINGER_S)
    assert extension_pool.of_session(left.id), "somebody follows it"
    left.holders.discard("a connection")
    manager.settle(left)
    await asyncio.sleep(LINGER_S - 1)
    assert extension_pool.of_session(left.id)
    await asyncio.sleep(2)
    assert extension_pool.of_session(left.id) == []
    assert manager.is_loaded(left.id), "its key and what it knows stay for as long as any session's"
    await asyncio.sleep(1800 - LINGER_S)
    assert not manager.is_loaded(left.id)
    del looptime

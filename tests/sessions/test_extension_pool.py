"""When the extensions of a workspace end, and what joins too late; without any extension in it."""

import asyncio
from types import SimpleNamespace

import pytest

from zotd.contributions.discovery import Places
from zotd.core.ports import Row
from zotd.core.records import Settings
from zotd.core.transcript import Transcript
from zotd.exthost.host import Limits
from zotd.ledger.ledger import Ledger
from zotd.process import Strays
from zotd.sessions.defaults import Terms
from zotd.sessions.extension_pool import LINGER_S, Grounds, Hosting
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.store.memory import Memory
from zotd.store.trust import Trust
from zotd.tasks import contained
from zotd.workspace.environment import Environment

TIME = "2026-11-21T20:11:18.919Z"


@pytest.fixture
async def hosting(tmp_path):
    async with asyncio.TaskGroup() as tasks:
        home = tmp_path / "home"
        home.mkdir()

        def spawn(name, work):
            _ = contained(tasks, name, work)

        grounds = Grounds(Places(home), Environment({}), Limits(), Trust(home), Strays(home, spawn))
        hosting = Hosting(grounds, spawn=spawn)
        yield hosting
        await hosting.stop()


def make(*args, **options):
    return Session(*args, **options)


def managing(**parts):
    return Manager(**parts)


@pytest.fixture
def session(tmp_path):
    """`session("s_1", no_ext=True, ...)`."""

    def session(name, **settings):
        row = Row(name, "", str(tmp_path), TIME, TIME, Settings(provider="p", model="m", **settings), "idle")
        ledger = Ledger(row, Memory(), Transcript(), addressed=True)
        nobody = SimpleNamespace()  # no run begins here
        return make(ledger, Environment({}), nobody, spawn=nobody, changed=nobody, stored_queue=True)

    return session


@pytest.mark.looptime
async def test_a_workspace_ends_a_minute_after_its_last_session(hosting, session, looptime, tmp_path):
    first, second = session("s_1"), session("s_2")
    hosting.join(first)
    hosting.join(second)
    hosting.leave(first)
    await asyncio.sleep(LINGER_S)
    assert hosting.of_cwd(str(tmp_path)), "the second one is still there"
    hosting.leave(second)
    await asyncio.sleep(LINGER_S - 1)
    assert hosting.of_cwd(str(tmp_path))
    await asyncio.sleep(2)
    assert hosting.of_cwd(str(tmp_path)) == []
    assert looptime == 2 * LINGER_S + 1


@pytest.mark.looptime
async def test_who_comes_back_in_time_finds_it_warm_whoever_has_left_meanwhile(hosting, session, looptime, tmp_path):
    """A session that only has extensions of its own works in the same directory, and does not keep the others."""
    sharing, alone = session("s_1"), session("s_2", no_ext=True, extensions=["/nowhere"])
    hosting.join(sharing)
    hosting.join(alone)
    (_, warm) = hosting.of_cwd(str(tmp_path))
    hosting.leave(sharing)
    await asyncio.sleep(LINGER_S / 2)
    hosting.leave(alone)
    hosting.join(sharing)
    await asyncio.sleep(2 * LINGER_S)
    assert hosting.of_cwd(str(tmp_path)) == [warm]
    del looptime


async def test_what_joins_when_everything_ends_gets_no_extensions(hosting, session):
    joined = session("s_1")
    hosting.join(joined)
    await hosting.stop()
    assert hosting.join(session("s_2")) is None
    assert hosting.layers == []


async def test_a_session_that_has_left_is_told_of_no_more(hosting, session):
    one = session("s_1")
    hosting.join(one)
    assert one.ledger.observers != []
    hosting.leave(one)
    hosting.leave(one)
    assert (one.extensions, one.ledger.observers) == (None, [])


@pytest.mark.looptime
async def test_what_only_a_session_has_ends_a_minute_after_its_last_client(hosting, session, looptime):
    nobody = SimpleNamespace(skills=None)
    manager = managing(
        journal=Memory(), models=nobody, planner=nobody, hosting=hosting, spawn=nobody, terms=Terms({}, unload_s=1800)
    )
    left = session("s_1", no_ext=True, extensions=["/nowhere"])
    vars(manager)["_sessions"][left.id] = left
    hosting.join(left)
    left.holders += 1
    manager.settle(left)
    await asyncio.sleep(2 * LINGER_S)
    assert hosting.of_session(left.id), "somebody follows it"
    left.holders -= 1
    manager.settle(left)
    await asyncio.sleep(LINGER_S - 1)
    assert hosting.of_session(left.id)
    await asyncio.sleep(2)
    assert hosting.of_session(left.id) == []
    assert manager.is_loaded(left.id), "its key and what it knows stay for as long as any session's"
    await asyncio.sleep(1800 - LINGER_S)
    assert not manager.is_loaded(left.id)
    del looptime

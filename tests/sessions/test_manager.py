"""A command for a session that was about to leave memory."""

import asyncio
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tests.sessions.desk import Desk, new_row, session_of
from tests.sessions.test_extension_pool import managing
from zotd.config import Config
from zotd.config.current import CurrentConfig
from zotd.sessions.manager import MIN_STAY_S
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel


class SlowDatabase:
    """Answers what a user has spent after a while."""

    def __init__(self):
        self.looks = 0

    async def look(self, user, *, within_s):
        assert (user, within_s) == ("alice", 1.0)
        self.looks += 1
        await asyncio.sleep(2)


class Stored(Memory):
    """A journal that other daemons could take the session from."""

    ownership = SimpleNamespace(release=lambda _: None)


@pytest.mark.looptime
async def test_a_session_stays_in_memory_while_what_its_user_has_spent_is_read(looptime):
    spending = SlowDatabase()
    pool = SimpleNamespace(limits=SimpleNamespace(tool_s=1), connect=lambda _: None, leave=lambda _: None)
    planner = SimpleNamespace(
        rules=None, extension_pool=pool, other_agents=None, spending=spending, forget=lambda _: None
    )
    manager = managing(
        journal=Stored(),
        models=None,
        planner=planner,
        spawn=lambda *_: None,
        config=CurrentConfig(Config()),
        environment={},
        addressed=True,
    )
    unload_s = max(manager.config.value.limits.session_unload_s, MIN_STAY_S)
    idle = session_of(replace(new_row(), user="alice"), Memory(), Desk(ScriptModel()), spawn=lambda *_: None)
    vars(manager)["_sessions"][idle.id] = idle
    manager.settle(idle)
    await asyncio.sleep(unload_s - 1)
    assert await manager.get(idle.id) is idle  # the look ends a second after the time to leave
    assert manager.is_loaded(idle.id)
    assert spending.looks == 1
    await asyncio.sleep(unload_s)
    assert not manager.is_loaded(idle.id)
    del looptime

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from zotd.config.current import CurrentConfig
from zotd.config.language_servers import DiagnosticsSection, LanguageServerSection
from zotd.config.sections import Config
from zotd.core.edit_checks import EditingSession
from zotd.diagnostics.server import ServerFacilities
from zotd.diagnostics.servers import LanguageServers
from zotd.exthost.jails import ExtensionJails
from zotd.process import OrphanReaper
from zotd.tasks import contained
from zotd.testing.language_server import LOG

FAKE = "fake"

LONG_S = 60.0
"""How long edits wait here: no test depends on how fast a machine is."""


class NoJails(ExtensionJails):
    """Confines nothing, so that a test needs no mechanism; `env` runs the command that follows."""

    async def words(self, _):
        return ["env"]


def fake(*traits, name=FAKE, suffix=".txt"):
    """Settings with no server but the scripted one."""
    command = (sys.executable, "-m", "zotd.testing.language_server", *traits)
    return {name: LanguageServerSection(command=command, languages={suffix: "plaintext"})}


class World:
    """Language servers for a directory."""

    def __init__(self, servers, work, log, *, config, facilities):
        self.servers, self.work, self._log, self.config, self.facilities = servers, work, log, config, facilities
        self.sentences = []
        self.env = {**os.environ, LOG: str(log)}

    def session(self, name="s_1"):
        return EditingSession(name, str(self.work), self.env, self.sentences.append)

    def wait(self, wait_s):
        """Change the setting from now on."""
        section = replace(self.config.value.diagnostics, wait_s=wait_s)
        self.config.value = replace(self.config.value, diagnostics=section)

    async def edit(self, name, after, session="s_1", work=None):
        """Write the file, and return what the model is told."""
        path = (work or self.work) / name
        before = path.read_bytes() if path.exists() else None
        path.write_text(after)
        return await self.servers.new_errors(self.session(session), str(path), before, after.encode())

    def received(self, method=None):
        """What the servers have received: the messages, or the parameters of those with this method."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        messages = [json.loads(line) for line in lines]
        return messages if method is None else [one["params"] for one in messages if one.get("method") == method]

    async def state(self, name=FAKE):
        return next(one for one in await self.servers.listing() if one.name == name)


@pytest.fixture
def world(tmp_path):
    """Make a world; its servers end with the block."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    real = work.resolve()
    home.mkdir()

    @asynccontextmanager
    async def begin(servers, *, wait_s=LONG_S, jails=NoJails):
        config = CurrentConfig(Config(diagnostics=DiagnosticsSection(wait_s=wait_s, servers=servers)))
        async with asyncio.TaskGroup() as group:

            def spawn(name, coroutine):
                contained(group, name, coroutine)

            reaper = OrphanReaper(home, spawn)
            made = jails(spawn, places={}, proxy=None)
            facilities = ServerFacilities(home, spawn, made, reaper)
            checker = LanguageServers(facilities, config)
            try:
                yield World(checker, real, tmp_path / "log", config=config, facilities=facilities)
            finally:
                await checker.stop()
                await reaper.close()

    return begin

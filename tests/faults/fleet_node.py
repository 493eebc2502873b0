"""One of the daemons of a fleet, with a way to the database of its own."""

import shutil
from pathlib import Path

from tests.detour import Detour
from tests.faults.daemon import Daemon, Nursery, order
from tests.faults.homes import EXTENSION
from tests.faults.stored import URL
from zotd import fleet_key, private_file
from zotd.testing.live_daemon import DaemonPaths, place

KEY = fleet_key.made()
"""Of all daemons."""


class Node:
    """A daemon with a home and a way to the database of its own."""

    def __init__(self, where: DaemonPaths, way: Detour, nursery: Nursery) -> None:
        self.where = where
        self.way = way
        self._nursery = nursery
        self.daemon: Daemon | None = None

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        self.daemon = await self._nursery.bear(order(self.where))
        if not await self.daemon.serves():
            raise RuntimeError(f"a daemon does not start: {self.where.folder / 'stderr'} says why")

    @property
    def alive(self) -> Daemon:
        """The process."""
        assert self.daemon is not None
        return self.daemon


def furnish(folder: Path, resume: str, model_url: str, database: str) -> DaemonPaths:
    """A home whose daemon knows the model, its key, the witness and the database."""
    folder.mkdir()
    door = {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
    where = place(folder, {"OPENAI_API_KEY": "none", URL: database, "ZOT_LIMITS_DRAIN_S": "60", **door})
    where.home.mkdir(mode=0o700)
    private_file.write(where.home / fleet_key.FILE, KEY.encode())
    shutil.copytree(EXTENSION, where.home / "extensions" / "witness")
    settings = 'resume = "auto"\n' if resume == "auto" else ""
    settings += f'[providers.openai]\nbase_url = "{model_url}"\n'
    (where.home / "config.toml").write_text(settings, encoding="utf-8")
    return where

"""One of the daemons of a fleet, with a way to the database of its own."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.faults.daemon import Daemon, Nursery, order
from tests.faults.homes import EXTENSION
from tests.faults.stored import URL
from zotd import fleet_key, private_file
from zotd.testing.live_daemon import DaemonPaths, place

KEY = fleet_key.made()
"""Of all daemons."""


class Way(Protocol):
    """Connects two programs."""

    def close(self) -> None:
        """Let nothing pass any more."""
        ...

    async def open(self) -> None:
        """Let all pass again."""
        ...


class Node:
    """A daemon with a home and a way to the database of its own."""

    def __init__(
        self, where: DaemonPaths, nursery: Nursery, way: Way | None, peers: Way | None, network: str = ""
    ) -> None:
        """`network`: path of its namespace, if it has one of its own."""
        self.where = where
        self.way = way
        """To the database, if it can be closed."""
        self.peers = peers
        """To the other daemon, if it can be closed."""
        self._nursery = nursery
        self._network = network
        self.daemon: Daemon | None = None

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        self.daemon = await self._nursery.bear(order(self.where, network=self._network))
        if not await self.daemon.serves():
            raise RuntimeError(f"a daemon does not start: {self.where.folder / 'stderr'} says why")

    @property
    def alive(self) -> Daemon:
        """The process."""
        assert self.daemon is not None
        return self.daemon


LOCAL_DOOR = {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
"""A door for daemons that have a network in common."""


def furnish(
    folder: Path, resume: str, model_url: str, database: str, door: Mapping[str, str] = LOCAL_DOOR
) -> DaemonPaths:
    """A home whose daemon knows the model, its key, the witness, the database and its door."""
    folder.mkdir()
    where = place(folder, {"OPENAI_API_KEY": "none", URL: database, "ZOT_LIMITS_DRAIN_S": "60", **door})
    where.home.mkdir(mode=0o700)
    private_file.write(where.home / fleet_key.FILE, KEY.encode())
    shutil.copytree(EXTENSION, where.home / "extensions" / "witness")
    settings = 'resume = "auto"\n' if resume == "auto" else ""
    settings += f'[providers.openai]\nbase_url = "{model_url}"\n'
    (where.home / "config.toml").write_text(settings, encoding="utf-8")
    return where

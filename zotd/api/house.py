"""What all connections of a daemon share."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from zotd.api.channel_desk import ChannelDesk
from zotd.api.presence import Presences
from zotd.sessions.manager import Manager, Spawn
from zotd.store.archive import Archive
from zotd.wire.api import Status
from zotd.wire.version import PROTOCOL, VERSION


@dataclass(slots=True)
class House:
    """The daemon, as its connections and their commands see it."""

    manager: Manager
    spawn: Spawn
    """Starts a named task that outlives the connection."""
    archive: Archive
    """All stored sessions at once."""
    epoch: str
    socket: str
    stop: Callable[[bool], None]
    """Stop the daemon: at once, or (True) when nothing runs."""
    changed: Callable[[], None]
    """Called when a connection has come or gone."""
    warnings: list[str] = field(default_factory=list)
    """What is wrong with the configuration, for `status`."""
    channels: ChannelDesk | None = None
    """Messaging channels; None: this daemon has none."""
    presences: Presences = field(default_factory=Presences)
    connections: int = 0
    started: float = field(default_factory=time.monotonic)
    stopping: bool = False

    def status(self) -> Status:
        """The daemon in figures."""
        sessions = self.manager.loaded
        return Status(
            v=1,
            state="stopping" if self.stopping else "running",
            socket=self.socket,
            pid=os.getpid(),
            version=VERSION,
            protocol=PROTOCOL,
            epoch=self.epoch,
            uptime_s=round(time.monotonic() - self.started, 3),
            sessions=len(sessions),
            running=sum(session.state == "running" for session in sessions),
            clients=self.connections,
            extensions=self.manager.hosting.count,
            warnings=self.warnings,
        )

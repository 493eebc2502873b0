"""Which sessions work in a worktree, asked of the daemon if one runs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from zotctl.status_probe import is_activated
from zotd.client import choosing, place
from zotd.client.blocking import Connection
from zotd.client.errors import NotRunningError
from zotd.client.fields import number, text

CONNECT_S = 0.5
"""Time limit in seconds for a daemon that runs; none is started."""


@dataclass(frozen=True, slots=True)
class SessionThere:
    """A session, as far as worktrees are concerned."""

    id: str
    cwd: str
    is_used: bool
    """Whether something of it runs or waits, or a client follows it."""

    def is_in(self, path: str) -> bool:
        """Return whether it works in the directory or below it."""
        return self.cwd == path or self.cwd.startswith(path + os.sep)


def sessions_there(env: Mapping[str, str]) -> list[SessionThere]:
    """Return all sessions of the daemon; none if no daemon runs. Raises ClientError if one runs and does not answer."""
    where = place.of(env)
    if is_activated(where.name, env):  # connecting would start it
        return []
    try:
        with Connection(where.open(CONNECT_S)) as connection:
            return [
                SessionThere(
                    text(one, "id"),
                    text(one, "cwd"),
                    text(one, "state") not in {"idle", "closed"} or number(one, "clients") > 0,
                )
                for one in choosing.sessions(connection)
            ]
    except NotRunningError:
        return []

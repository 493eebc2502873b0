"""The plain chat's connection to the daemon, and its reopening after a loss."""

import sys
import time
from collections.abc import Callable, Mapping

from zotd.client import place
from zotd.client.blocking import Connection, Json, Wait
from zotd.client.errors import ConnectionLostError, NotRunningError
from zotd.client.fields import child
from zotd.client.options import hello
from zotd.client.version_mismatch import advice
from zotd.sanitize import harmless

STOPPING_S = 10.0
"""Seconds to wait for a stopping daemon: it gives its runs 5 s and removes its socket last. Before that it cannot be told
from a killed one."""

RETRY_S = 0.1
"""Seconds between two attempts meanwhile; there is no notification for a removed socket."""

Variables = Mapping[str, str] | None
"""Environment variables of sessions; None: those of the daemon."""

Again = Callable[[str, Variables], tuple[Connection, Json]]
"""See `ChatConnection.again`."""


class ChatConnection:
    """Holds one connection at a time; a context manager that closes it."""

    def __init__(self, env: Mapping[str, str], wait: Wait) -> None:
        """`env` tells where the daemon is; connections wait with `wait`."""
        self._where = place.of(env)
        self._wait = wait
        self._connection: Connection | None = None
        self._told: str | None = None

    def __enter__(self) -> "ChatConnection":  # noqa: PYI034  (as in zotd.client.blocking)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open(self, *, starts: bool = True) -> Connection:
        """Connect and close the previous connection. With `starts`, start the daemon if needed. Raises `ClientError`."""
        self._close()
        socket = self._where.ensure() if starts else self._where.open()
        connection = self._connection = Connection(socket, self._wait)
        self._tell(advice(hello(connection, "zot", can_approve=True)))
        connection.call("subscribe", topics=["trust"])  # to report untrusted code that the daemon finds later
        return connection

    def again(self, session: str, variables: Variables) -> tuple[Connection, Json]:
        """Reconnect after a loss and attach to the session again; return the connection and the session.

        Restarts a daemon that was killed, which has left its socket behind. Raises `ClientError`, also if the daemon was
        stopped. `variables` is the environment for the session's tools.
        """
        deadline = time.monotonic() + STOPPING_S
        while self._where.may_return():
            try:
                connection = self.open(starts=self._where.was_killed())
                attached = connection.call("attach", session=session, limit=1, env=variables)
            except (ConnectionLostError, NotRunningError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
            else:
                return connection, child(attached, "session")
        raise NotRunningError("zotd was stopped")

    def _tell(self, skew: str | None) -> None:
        """Print once that the daemon has another version."""
        if skew is not None and skew != self._told:
            sys.stderr.write(f"zot: {harmless(skew)}\n")
        self._told = skew

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

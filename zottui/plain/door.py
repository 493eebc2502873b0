"""The plain chat's way to the daemon: opened once, and again when the connection was lost."""

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
"""A daemon that stops gives its runs 5 s, and takes its socket away at the very end."""

RETRY_S = 0.1
"""How often it is looked for meanwhile: nothing tells when a socket goes away."""

Variables = Mapping[str, str] | None
"""What sessions run in; None: what the daemon itself runs in."""

Again = Callable[[str, Variables], tuple[Connection, Json]]
"""See `ChatConnection.again`."""


class ChatConnection:
    """One connection at a time; close it with `with`."""

    def __init__(self, env: Mapping[str, str], wait: Wait) -> None:
        """`env` says where the daemon is."""
        self._where = place.of(env)
        self._wait = wait
        self._connection: Connection | None = None
        self._told: str | None = None

    def __enter__(self) -> "ChatConnection":  # noqa: PYI034  (as in zotd.client.blocking)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open(self, *, starts: bool = True) -> Connection:
        """A connection to a daemon, which is started when none runs; it ends the one before. Raises `ClientError`."""
        self._close()
        socket = self._where.ensure() if starts else self._where.open()
        connection = self._connection = Connection(socket, self._wait)
        self._tell(advice(hello(connection, "zot", can_approve=True)))
        connection.call("subscribe", topics=["trust"])
        return connection

    def again(self, session: str, variables: Variables) -> tuple[Connection, Json]:
        """The same after it was lost, and the session as it is now, attached; `variables`: what its tools run in.

        Raises `ClientError`: also when the daemon was stopped. One that was killed is started again: it has left its
        socket behind.
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
        """Say once that the daemon is of another version."""
        if skew is not None and skew != self._told:
            sys.stderr.write(f"zot: {harmless(skew)}\n")
        self._told = skew

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

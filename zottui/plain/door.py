"""The plain chat's way to the daemon: opened once, and again when the connection was lost."""

import os
from collections.abc import Callable, Mapping

from zotd import paths
from zotd.client.autostart import ensure
from zotd.client.blocking import Connection, Json, Wait
from zotd.client.errors import ConnectionLostError, NotRunningError
from zotd.client.fields import child
from zotd.client.options import hello

TRIES = 3
"""A daemon that stops still takes connections in, and closes them again; the second try finds it gone."""


Again = Callable[[str, Mapping[str, str]], tuple[Connection, Json]]
"""See `Door.again`."""


class Door:
    """One connection at a time; close it with `with`."""

    def __init__(self, env: Mapping[str, str], wait: Wait) -> None:
        """`env` says where the daemon is."""
        self._env = env
        self._wait = wait
        self._connection: Connection | None = None

    def __enter__(self) -> "Door":  # noqa: PYI034  (as in zotd.client.blocking)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open(self) -> Connection:
        """A connection to a daemon, which is started when none runs; it ends the one before. Raises `ClientError`."""
        self._close()
        connection = self._connection = Connection(ensure(paths.socket_path(self._env), self._env), self._wait)
        hello(connection, "zot", can_approve=True)
        connection.call("subscribe", topics=["trust"])
        return connection

    def again(self, session: str, variables: Mapping[str, str]) -> tuple[Connection, Json]:
        """The same after it was lost, and the session as it is now, attached; `variables`: what its tools run in.

        Raises `ClientError`: also when the daemon was stopped. One that was killed is started again: it has left its
        socket behind.
        """
        for tries_left in reversed(range(TRIES)):
            if not os.path.exists(paths.socket_path(self._env)):
                break
            try:
                connection = self.open()
                attached = connection.call("attach", session=session, limit=1, env=dict(variables))
            except ConnectionLostError:
                if not tries_left:
                    raise
            else:
                return connection, child(attached, "session")
        raise NotRunningError("zotd was stopped")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

"""The plain chat's way to the daemon: opened once, and again when the connection was lost."""

import os
import time
from collections.abc import Callable, Mapping

from zotd import paths
from zotd.client.autostart import ensure, was_killed
from zotd.client.blocking import Connection, Json, Wait, open_socket
from zotd.client.errors import ConnectionLostError, NotRunningError
from zotd.client.fields import child
from zotd.client.options import hello

STOPPING_S = 10.0
"""A daemon that stops gives its runs 5 s, and takes its socket away at the very end."""

RETRY_S = 0.1
"""How often it is looked for meanwhile: nothing tells when a socket goes away."""

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

    def open(self, *, starts: bool = True) -> Connection:
        """A connection to a daemon, which is started when none runs; it ends the one before. Raises `ClientError`."""
        self._close()
        path = paths.socket_path(self._env)
        socket = ensure(path, self._env) if starts else open_socket(path)
        connection = self._connection = Connection(socket, self._wait)
        hello(connection, "zot", can_approve=True)
        connection.call("subscribe", topics=["trust"])
        return connection

    def again(self, session: str, variables: Mapping[str, str]) -> tuple[Connection, Json]:
        """The same after it was lost, and the session as it is now, attached; `variables`: what its tools run in.

        Raises `ClientError`: also when the daemon was stopped. One that was killed is started again: it has left its
        socket behind.
        """
        path = paths.socket_path(self._env)
        deadline = time.monotonic() + STOPPING_S
        while os.path.exists(path):
            try:
                connection = self.open(starts=was_killed(path))
                attached = connection.call("attach", session=session, limit=1, env=dict(variables))
            except (ConnectionLostError, NotRunningError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
            else:
                return connection, child(attached, "session")
        raise NotRunningError("zotd was stopped")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

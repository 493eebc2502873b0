"""Finding the session to show, in a thread of its own while the screen's library is still being imported.

It blocks, and it imports next to nothing: the first paint counts milliseconds.
"""

import argparse
from collections.abc import Mapping
from itertools import islice

from zotd import paths
from zotd.client import choosing
from zotd.client.autostart import ensure, was_killed
from zotd.client.blocking import Connection, Json
from zotd.client.fields import text
from zotd.client.options import environment, hello, open_session

NAMED = 3
"""How many other sessions of the directory are named; more would wrap."""


class Opened:
    """A session, and the connection that keeps it: an ephemeral one ends with its last client."""

    def __init__(self, session: Json, others: list[str], connection: Connection) -> None:
        """`connection` is the caller's to close, as soon as another follows the session."""
        self.session = text(session, "id")
        self.is_held = session.get("state") == "held"
        """It stopped in the middle."""
        self.others = others
        """Names or ids of the directory's other sessions, newest first; at most `NAMED`."""
        self.connection = connection


def opened(args: argparse.Namespace, env: Mapping[str, str]) -> Opened:
    """The session that the flags mean; without any the newest of the directory, or a new one where there is none.

    Starts the daemon when none runs. Raises `ClientError`.
    """
    connection = Connection(ensure(paths.socket_path(env), env))
    try:
        hello(connection, "zot", can_approve=True)
        session = open_session(connection, args, environment(args, env), prefers_newest=True, keyless=True)
        found = text(session, "id")
        stored = choosing.stored(connection, text(session, "cwd"))
        others = (text(one, "name") or text(one, "id") for one in stored if text(one, "id") != found)
        return Opened(session, list(islice(others, NAMED)), connection)
    except BaseException:
        connection.close()
        raise


def revive(env: Mapping[str, str]) -> None:
    """Start the daemon again, if it was killed: one that was stopped takes its socket away, and is left stopped.

    Raises `ClientError`.
    """
    path = paths.socket_path(env)
    if was_killed(path):
        ensure(path, env).close()

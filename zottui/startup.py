"""Finding the session to show, in a thread of its own while the screen's library is still being imported.

It blocks, and it imports next to nothing: the first paint counts milliseconds.
"""

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from zotd import paths, private_file
from zotd.client import choosing, place
from zotd.client.blocking import Connection, Json
from zotd.client.fields import text
from zotd.client.options import hello, open_session
from zotd.client.version_mismatch import advice
from zotd.wire import api
from zotd.wire.version import VERSION

HINTS = "/ lists commands, esc interrupts, F2 shows all sessions"

NAMED = 2
"""How many other sessions of the directory are named; more would wrap."""


class Startup:
    """A session, and the connection that keeps it: an ephemeral one ends with its last client."""

    def __init__(
        self,
        session: Json,
        others: list[str],
        connection: Connection,
        *,
        skew: str | None,
        greeting: str,
        secrets: api.Secrets | None,
    ) -> None:
        """`connection` is the caller's to close, as soon as another follows the session."""
        self.secrets = secrets
        """The key that it was given from here, for a daemon that has lost it."""
        self.greeting = greeting
        """The first line; empty: somebody comes back, who needs none."""
        self.session = text(session, "id")
        self.is_held = session.get("state") == "held"
        """It stopped in the middle."""
        self.others = others
        """Names or ids of the directory's other sessions, newest first; at most `NAMED`."""
        self.connection = connection
        self.skew = skew
        """That the daemon is of another version, and what to do about it; None: it is not."""


def opened(args: argparse.Namespace, env: Mapping[str, str]) -> Startup:
    """The session that the flags mean; without any the newest of the directory, or a new one where there is none.

    Starts the daemon when none runs. Raises `ClientError`.
    """
    connection = Connection(place.of(env).ensure())
    try:
        said = hello(connection, "zot", can_approve=True)
        session = open_session(connection, args, env, prefers_newest=True, keyless=True)
        found = text(session, "id")
        stored = choosing.stored(connection, text(session, "cwd"))
        others = (text(one, "name") or text(one, "id") for one in stored if text(one, "id") != found)
        greeting = "" if session.get("message_count") else greeted(env)
        return Startup(
            session,
            list(islice(others, NAMED)),
            connection,
            skew=advice(said),
            greeting=greeting,
            secrets=_given(args, session),
        )
    except BaseException:
        connection.close()
        raise


def _given(args: argparse.Namespace, session: Json) -> api.Secrets | None:
    if not args.api_key:
        return None
    return api.Secrets(args.api_key, api.GivenFor(text(session, "provider"), args.base_url))


def greeted(env: Mapping[str, str]) -> str:
    """What a new session begins with: the version, and for whoever has never seen it what to press."""
    words = f"zot {VERSION}"
    mark = os.path.join(paths.zot_home(env), "seen", "hints")
    if os.path.exists(mark):
        return words
    with suppress(OSError, paths.UnsafePathError):  # then they are seen again
        paths.check_private_dir(os.path.dirname(mark))
        private_file.write(Path(mark), b"")
    return f"{words} · {HINTS}"


def revive(env: Mapping[str, str]) -> None:
    """Start the daemon again, if it was killed: one that was stopped takes its socket away, and is left stopped.

    Raises `ClientError`.
    """
    where = place.of(env)
    if where.was_killed():
        where.ensure().close()

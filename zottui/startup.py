"""Finds the session to show, in a thread while prompt_toolkit is being imported.

The functions block. The module imports little, since each import delays the first paint.
"""

import argparse
from collections.abc import Mapping
from itertools import islice

from zotd.client import choosing, once, place
from zotd.client.blocking import Connection, Json
from zotd.client.fields import text
from zotd.client.options import hello, open_session
from zotd.client.version_mismatch import advice
from zotd.client.yolo_warning import yolo_warning
from zotd.wire import api
from zotd.wire.version import VERSION

HINTS = "/ lists commands, esc interrupts, F2 shows all sessions"

NAMED = 2
"""Most other sessions of the directory to name; more would wrap."""


class Startup:
    """The session to show, and a connection that keeps it alive: an ephemeral session ends with its last client."""

    def __init__(
        self,
        session: Json,
        others: list[str],
        connection: Connection,
        *,
        skew: str | None,
        greeting: str,
        warning: str,
        secrets: api.Secrets | None,
    ) -> None:
        """The caller closes `connection` as soon as another connection is attached to the session."""
        self.secrets = secrets
        """The key of `--api-key`, to send it again to a restarted daemon; None: no such flag."""
        self.greeting = greeting
        """The first line to print; empty for a session that already has messages."""
        self.warning = warning
        """The line about the mode `yolo`; empty: none to print."""
        self.session = text(session, "id")
        self.is_held = session.get("state") == "held"
        """Whether a run stopped before it was done."""
        self.others = others
        """Names or ids of other sessions in the directory, newest first; at most `NAMED`."""
        self.connection = connection
        self.skew = skew
        """Note about a daemon of another version, with advice; None: the versions match."""


def opened(args: argparse.Namespace, env: Mapping[str, str]) -> Startup:
    """Open the session that the flags select; without flags the newest of the directory, or else a new one.

    Starts the daemon if it is not running. Raises `ClientError`.
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
            warning=yolo_warning(session, is_asked_for=args.mode == "yolo", env=env),
            secrets=_given(args, session),
        )
    except BaseException:
        connection.close()  # the caller gets no `Startup` that would own it
        raise


def _given(args: argparse.Namespace, session: Json) -> api.Secrets | None:
    if not args.api_key:
        return None
    return api.Secrets(args.api_key, api.GivenFor(text(session, "provider"), args.base_url))


def greeted(env: Mapping[str, str]) -> str:
    """Return the first line of a new session: the version and, once for each home, the most important keys."""
    words = f"zot {VERSION}"
    return f"{words} · {HINTS}" if once.is_first("hints", env) else words


def revive(env: Mapping[str, str]) -> None:
    """Restart the daemon if it was killed. One that was stopped has removed its socket, and stays stopped.

    Raises `ClientError`.
    """
    where = place.of(env)
    if where.was_killed():
        where.ensure().close()

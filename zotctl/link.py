"""Connects to the daemon and resolves the session flags, for most commands."""

import argparse
import os

from zotctl import output, status_probe
from zotd.client import place
from zotd.client.blocking import CALL_S, Connection, Json, Wait, readable
from zotd.client.choosing import find, newest
from zotd.client.errors import NoAnswerError
from zotd.client.options import hello

HELLO_S = 5.0
"""Time limit for a local daemon's answer to `hello`, in seconds; it takes milliseconds, even under load."""


def connect(
    name: str,
    wait: Wait = readable,
    *,
    start: bool = True,
    role: str | None = None,
    can_approve: bool = False,
    any_protocol: bool = False,
) -> Connection:
    """Connect to the daemon and send hello.

    Args:
        name: the client's name in the daemon's list of clients.
        wait: waits for the socket; see `zotd.client.interrupts.Watch`.
        start: start a daemon if none runs.
        role: the role to request; None: the daemon's default.
        can_approve: a person can answer approvals while this client is attached.
        any_protocol: see `options.hello`.

    Raises:
        NoAnswerError: the daemon did not answer within `HELLO_S`; the message has its pid and the command to run.
        ClientError: the daemon cannot be reached or started, or refused the hello.
    """
    where = place.of(os.environ)
    listener: int | None = None
    try:
        with output.progress("connecting" if where.is_remote else "starting zotd"):
            sock = where.ensure() if start else where.open()
        connection = Connection(sock, wait)
        listener = connection.server_pid
        limit_s = CALL_S if where.is_remote else HELLO_S
        try:
            hello(connection, name, role=role, can_approve=can_approve, any_protocol=any_protocol, timeout_s=limit_s)
        except BaseException:
            connection.close()
            raise
    except NoAnswerError as error:
        raise NoAnswerError(status_probe.with_advice(error, listener, where.name, os.environ)) from error
    return connection


def add_session_flags(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add `--session` and `--last`. By default one is required, so that a prompt cannot reach the wrong session."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument("-s", "--session", metavar="ID|NAME", help="session ID or name")
    group.add_argument("--last", action="store_true", help="the most recently used session")


def chosen(connection: Connection, args: argparse.Namespace) -> Json:
    """Return the `SessionInfo` selected by the flags; raises `ClientError` if there is none."""
    return newest(connection) if args.last else find(connection, str(args.session))

"""Connecting, and saying which session is meant: what most commands begin with."""

import argparse
import os

from zotctl import output, status_probe
from zotd.client import place
from zotd.client.blocking import CALL_S, Connection, Json, Wait, readable
from zotd.client.choosing import find, newest
from zotd.client.errors import NoAnswerError
from zotd.client.options import hello

HELLO_S = 5.0
"""How long the daemon of this machine may take to answer `hello`; it takes milliseconds, also when it is busy."""


def connect(
    name: str,
    wait: Wait = readable,
    *,
    start: bool = True,
    role: str | None = None,
    can_approve: bool = False,
    any_protocol: bool = False,
) -> Connection:
    """A connection that has said hello as `name`; with `start`, to a daemon that is started when none runs.

    `can_approve`: somebody watches who can decide about calls, here or with `zotctl approve`. `any_protocol`: see
    `options.hello`.

    Raises `NoAnswerError`, with the daemon's pid and the command that helps, when it does not answer within `HELLO_S`.
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


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    """`--session` and `--last`, of which one is needed: a prompt must not reach a session by accident."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-s", "--session", metavar="ID|NAME", help="session ID or name")
    group.add_argument("--last", action="store_true", help="the most recently used session")


def chosen(connection: Connection, args: argparse.Namespace) -> Json:
    """The session that the flags mean, as `SessionInfo`; raises `ClientError` when there is none."""
    return newest(connection) if args.last else find(connection, str(args.session))

"""Connecting, and saying which session is meant: what most commands begin with."""

import argparse
import os

from zotctl import output
from zotd.client import place
from zotd.client.blocking import Connection, Json, Wait, readable
from zotd.client.choosing import find, newest
from zotd.client.options import hello


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
    """
    where = place.of(os.environ)
    with output.progress("connecting" if where.is_remote else "starting zotd"):
        sock = where.ensure() if start else where.open()
    connection = Connection(sock, wait)
    try:
        hello(connection, name, role=role, can_approve=can_approve, any_protocol=any_protocol)
    except BaseException:
        connection.close()
        raise
    return connection


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    """`--session` and `--last`, of which one is needed: a prompt must not reach a session by accident."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-s", "--session", metavar="ID|NAME", help="the session")
    group.add_argument("--last", action="store_true", help="the session that was used last")


def chosen(connection: Connection, args: argparse.Namespace) -> Json:
    """The session that the flags mean, as `SessionInfo`; raises `ClientError` when there is none."""
    return newest(connection) if args.last else find(connection, str(args.session))

"""`zotctl rename`, `abort`, `move` and `delete`: actions on one session."""

import argparse
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection, Json
from zotd.client.choosing import find
from zotd.client.errors import ClientError
from zotd.client.fields import number, text
from zotd.client.humanize import counted
from zotd.sanitize import one_line

MOVE_S = 24 * 3600.0
"""Longest wait for the end of a step: its commands may run for hours."""

MOVE = """\
examples:
  zotctl move tests              to the only other daemon of the database
  zotctl move tests box2         to the daemon of this machine
  zotctl move s_01JX… box2:/home/me/.zot --json

A run stops at the end of its step, and the other daemon goes on with it. Ctrl-C ends the wait, and not the move.
Timers move with the session. Files do not: the other daemon needs the same directory. `zotctl fleet status` lists daemons.
"""

DELETE = """\
examples:
  zotctl delete tests            ask for confirmation
  zotctl delete s_01JX… --yes    do not ask; for scripts

Deletes the transcript permanently and aborts the active run. Forks of the session keep their copies.
"""


def add(commands: Subparsers) -> None:
    """Register `rename`, `abort`, `move` and `delete`."""
    rename = commands.add_parser("rename", help="rename a session", epilog="example: zotctl rename s_01JX… tests")
    abort = commands.add_parser("abort", help="abort the active run of a session", epilog="example: zotctl abort tests")
    move = commands.add_parser("move", help="have another daemon of the database go on with a session", epilog=MOVE)
    delete = commands.add_parser("delete", help="delete a session permanently", epilog=DELETE)
    for parser in (move, delete):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for parser, run in ((rename, _rename), (abort, _abort), (move, _move), (delete, _delete)):
        parser.add_argument("session", metavar="SESSION", help="session ID or name")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=run)
    rename.add_argument("name", metavar="NAME", help="the new name")
    move.add_argument(
        "daemon",
        metavar="DAEMON",
        nargs="?",
        default="",
        help="its name, its machine or its home; default: the only other one",
    )
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask; required without a terminal")


def _rename(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = text(find(connection, args.session), "id")
        connection.call("session.rename", session=session, name=args.name)
    return _tell(args, session, "renamed", name=args.name.strip())


def _abort(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = text(find(connection, args.session), "id")
        connection.call("abort", session=session)
    return _tell(args, session, "aborted")


def _move(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection, output.progress("waiting for the end of the step"):
        session = text(find(connection, args.session), "id")
        moved = connection.call("session.move", timeout_s=MOVE_S, session=session, to=args.daemon)
    daemon = text(moved, "daemon")
    if args.json:
        output.print_json({"v": 1, "session": session, "done": "moved", "daemon": daemon})
    else:
        print(one_line(f"moved {session} to {daemon}"))
    return 0


def _delete(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        found = find(connection, args.session)
        if not args.yes:
            _check_wanted(connection, found)
        session = text(found, "id")
        connection.call("session.delete", session=session)
    return _tell(args, session, "deleted")


def _check_wanted(connection: Connection, session: Json) -> None:
    """Ask on the terminal; raises `ClientError` without one, or if the answer is no."""
    key = text(session, "id")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ClientError(
            f"cannot ask for confirmation without a terminal; to delete the session, run: zotctl delete {key} --yes"
        )
    messages = counted(number(connection.call("session.get", session=key), "message_count"), "message")
    about = f'{key} "{text(session, "name")}" in {text(session, "cwd")}, {messages}'
    sys.stderr.write(f"{one_line(about)}\ndelete it permanently? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ClientError(f"{key} was not deleted")


def _tell(args: argparse.Namespace, session: str, done: str, **more: str) -> int:
    if args.json:
        output.print_json({"v": 1, "session": session, "done": done, **more})
    else:
        print(one_line(f"{done} {session}"))
    return 0

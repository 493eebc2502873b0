"""`zotctl rename`, `abort` and `delete`: actions on one session."""

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

DELETE = """\
examples:
  zotctl delete tests            ask for confirmation
  zotctl delete s_01JX… --yes    do not ask; for scripts

Deletes the transcript permanently and aborts the active run. Forks of the session keep their copies.
"""


def add(commands: Subparsers) -> None:
    """Register `rename`, `abort` and `delete`."""
    rename = commands.add_parser("rename", help="rename a session", epilog="example: zotctl rename s_01JX… tests")
    abort = commands.add_parser("abort", help="abort the active run of a session", epilog="example: zotctl abort tests")
    delete = commands.add_parser("delete", help="delete a session permanently", epilog=DELETE)
    delete.formatter_class = argparse.RawDescriptionHelpFormatter
    for parser, run in ((rename, _rename), (abort, _abort), (delete, _delete)):
        parser.add_argument("session", metavar="SESSION", help="session ID or name")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=run)
    rename.add_argument("name", metavar="NAME", help="the new name")
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

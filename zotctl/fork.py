"""`zotctl fork` and `zotctl rewind`: continue from an earlier message, in a new session or in the same one."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.fields import child, number, text
from zotd.client.humanize import counted
from zotd.sanitize import one_line

COPY_S = 600.0
"""Time limit in seconds. With 100 MB a fork takes 15 s and a rewind 4 s, longer on a busy disk."""

FORK = """\
examples:
  zotctl fork --session tests --name "without mocks"
  zotctl fork --session tests --at 41

The new session has the same directory and settings, and the transcript up to that message. The original may be
running. zotctl tree shows where branches begin; zotctl log --json shows the number (`seq`) of every event.
"""

REWIND = """\
examples:
  zotctl rewind --session tests 41
  zotctl rewind --session tests 41 --files

The model sees the transcript up to that message. Nothing is deleted: zotctl tree shows the abandoned branch, and you
can rewind to it. To start over with an empty transcript, send /clear.
"""


def add(commands: Subparsers) -> None:
    """Register `fork` and `rewind`."""
    fork = commands.add_parser("fork", help="copy a session, up to a message, to a new one", epilog=FORK)
    link.add_session_flags(fork)
    fork.add_argument("--at", type=int, metavar="SEQ", help="last message to copy (default: the newest)")
    fork.add_argument("--name", help="name of the new session (default: NAME (fork))")
    fork.add_argument("--json", action="store_true", help="print the result as JSON")
    fork.set_defaults(run=_fork)
    rewind = commands.add_parser("rewind", help="return to an earlier message", epilog=REWIND)
    link.add_session_flags(rewind)
    rewind.add_argument("at", type=int, metavar="SEQ", help="last message to keep")
    rewind.add_argument("--files", action="store_true", help="also undo what runs have changed in files since")
    changed = rewind.add_mutually_exclusive_group()
    changed.add_argument("--keep", action="store_true", help="with --files: leave files that you have changed since")
    changed.add_argument("--force", action="store_true", help="with --files: restore these files, too")
    rewind.add_argument("--json", action="store_true", help="print the result as JSON")
    rewind.set_defaults(run=_rewind)
    for parser in (fork, rewind):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter


def _fork(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("copying"):
        origin = text(link.chosen(connection, args), "id")
        made = connection.call("session.fork", session=origin, seq=args.at, name=args.name, timeout_s=COPY_S)
    session = child(made, "session")
    if args.json:
        output.print_json({"v": 1, "session": session})
    else:
        messages = counted(number(session, "message_count"), "message")
        print(one_line(f'{text(session, "id")}  "{text(session, "name")}", with {messages}'))
    return 0


def _rewind(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("rewinding"):
        session = text(link.chosen(connection, args), "id")
        when_changed = "overwrite" if args.force else "keep" if args.keep else "refuse"
        fields: Json = {"files": True, "when_changed": when_changed} if args.files else {}
        done = connection.call("session.rewind", fields, session=session, seq=args.at, timeout_s=COPY_S)
    if args.json:
        output.print_json({"v": 1, "session": session, "seq": args.at, **({"files": done} if args.files else {})})
    else:
        print(one_line(f"{session} continues from message {args.at}"))
        if args.files:
            print(one_line(text(done, "text")))
    return 0

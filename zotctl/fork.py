"""`zotctl fork` and `zotctl rewind`: to go on from an earlier message, in another session or in the same one."""

import argparse

from zotctl import link, output
from zotctl.commands import Commands
from zotd.client.fields import child, number, text
from zotd.sanitize import one_line

COPY_S = 600.0
"""For a fork or a rewind: of 100 MB they take 15 s and 4 s; a busy disk may need longer."""

FORK = """\
examples:
  zotctl fork --session tests --name "without mocks"
  zotctl fork --session tests --at 41

The new session has the same directory and settings, and everything up to that message. The other one may run meanwhile.
zotctl tree shows the messages that branches begin at, zotctl log --json all of them with their numbers (`seq`).
"""

REWIND = """\
example: zotctl rewind --session tests 41

The model sees what it saw at that message, and nothing after it. Nothing is deleted: zotctl tree shows what was left
behind, and one can go back there, too. To see nothing at all any more, say /clear.
"""


def add(commands: Commands) -> None:
    """Both."""
    fork = commands.add_parser("fork", help="a new session that begins as another one did", epilog=FORK)
    link.add_session_flags(fork)
    fork.add_argument("--at", type=int, metavar="SEQ", help="the last message that it has (the last one of all)")
    fork.add_argument("--name", help="of the new session (NAME (fork))")
    fork.add_argument("--json", action="store_true")
    fork.set_defaults(run=_fork)
    rewind = commands.add_parser("rewind", help="go back to an earlier message", epilog=REWIND)
    link.add_session_flags(rewind)
    rewind.add_argument("at", type=int, metavar="SEQ", help="the last message that counts")
    rewind.add_argument("--json", action="store_true")
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
        messages = number(session, "message_count")
        print(one_line(f'{text(session, "id")}  "{text(session, "name")}", with {messages} messages'))
    return 0


def _rewind(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("rewinding"):
        session = text(link.chosen(connection, args), "id")
        connection.call("session.rewind", session=session, seq=args.at, timeout_s=COPY_S)
    if args.json:
        output.print_json({"v": 1, "session": session, "seq": args.at})
    else:
        print(one_line(f"{session} goes on from message {args.at}"))
    return 0

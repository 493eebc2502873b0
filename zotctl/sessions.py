"""`zotctl sessions`: lists sessions, newest first."""

import argparse
import os
from itertools import islice

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import choosing, place
from zotd.client.blocking import Json
from zotd.client.fields import text
from zotd.client.options import positive
from zotd.client.worktree_names import worktree_of, worktrees_home

STATES = ("idle", "running", "waiting", "held", "blocked", "closed")

SHOWN = 100
"""Default of --limit."""


def add(commands: Subparsers) -> None:
    """Register `sessions`."""
    parser = commands.add_parser(
        "sessions", help="list sessions, newest first", epilog="example: zotctl sessions --cwd . --json"
    )
    parser.add_argument("--cwd", metavar="DIR", help="only sessions in this directory")
    parser.add_argument(
        "--state", metavar="STATE", choices=STATES, help=f"{', '.join(STATES)}; a failed one counts as idle"
    )
    parser.add_argument("--user", metavar="USER", help="only sessions of this user")
    parser.add_argument(
        "--limit", type=positive, default=SHOWN, metavar="N", help=f"maximum number of sessions ({SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    cwd = None if args.cwd is None else place.of(os.environ).real_path(args.cwd)
    with link.connect("zotctl") as connection:
        found = list(islice(choosing.sessions(connection, cwd, args.state, user=args.user), args.limit))
    worktrees = worktrees_home(os.environ)
    found = [session | {"worktree": _worktree(session, worktrees)} for session in found]
    if args.json:
        output.print_json({"v": 1, "sessions": found})
        return 0
    head = ["ID", "NAME", "STATE", "MODEL", "UPDATED", "USER", "WORKTREE", "DIRECTORY"]
    rows = [_row(session) for session in found]
    output.print_table(*output.without_empty(head, rows, "USER", "WORKTREE"))
    return 0


def _row(session: Json) -> list[str]:
    about = [text(session, "id"), text(session, "name"), choosing.state(session), _model(session)]
    where = [text(session, "worktree"), text(session, "cwd")]
    return [*about, output.moment(text(session, "updated")), text(session, "user"), *where]


def _worktree(session: Json, home: str) -> str:
    found = worktree_of(text(session, "cwd"), home)
    return found.name if found else ""


def _model(session: Json) -> str:
    """The model that answers; a fallback in the place of the session's own is marked with the latter."""
    fallback = text(session, "fallback")
    return f"{fallback} (for {text(session, 'model')})" if fallback else text(session, "model")

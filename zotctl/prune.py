"""`zotctl prune`: deletes old sessions and shrinks the database."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import choosing
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import number, text
from zotd.client.humanize import counted, size
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl prune --older-than 90d --dry-run
  zotctl prune --older-than 90d
  zotctl prune

Deletes sessions last used before that time, after asking for confirmation, and then shrinks the database file. Without
--older-than it only shrinks the file. Sessions that are running, waiting, held or have a client attached are kept.
Deleted sessions cannot be restored; to keep a copy, run `zotctl backup FILE` first.
"""

UNITS = {"d": "days", "w": "weeks"}

KEPT_STATES = frozenset({"running", "waiting", "held"})

COMPACT_S = 3600.0
"""Time limit in seconds. A database of an older version is rewritten, at about 20 MB/s."""


def add(commands: Subparsers) -> None:
    """Register `prune`."""
    parser = commands.add_parser("prune", help="delete old sessions and free their disk space", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--older-than", type=_age, metavar="AGE", help="delete sessions not used for this long: 90d, 12w"
    )
    parser.add_argument("--dry-run", action="store_true", help="list what would be deleted, without deleting it")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        old, kept = ([], 0) if args.older_than is None else _old(connection, args.older_than)
        if args.dry_run:
            return _tell(args, old, kept, {})
        if old and not args.yes:
            _confirm(old)
        deleted = _delete(connection, old)
        with output.progress("shrinking the database"):
            sizes = connection.call("daemon.compact", timeout_s=COMPACT_S)
    return _tell(args, deleted, kept + len(old) - len(deleted), sizes)


def _old(connection: Connection, age: timedelta) -> tuple[list[Json], int]:
    """Return the sessions to delete, newest first, and the number of equally old ones that are in use."""
    limit = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%S")
    found = [session for session in choosing.stored(connection) if text(session, "updated") < limit]
    idle = [one for one in found if text(one, "state") not in KEPT_STATES and not number(one, "clients")]
    return idle, len(found) - len(idle)


def _confirm(old: Sequence[Json]) -> None:
    """Ask on the terminal; raises `ClientError` without one, or if the answer is no."""
    sessions = counted(len(old), "session")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ClientError(
            f"cannot ask for confirmation without a terminal; to delete {sessions}, use --yes; to list them, --dry-run"
        )
    newest = output.moment(text(old[0], "updated"))
    sys.stderr.write(one_line(f"delete {sessions}, the newest last used {newest}? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ClientError("nothing was deleted")


def _delete(connection: Connection, old: Sequence[Json]) -> list[Json]:
    """Delete the sessions, oldest first, and return the deleted ones. A session opened meanwhile is kept."""
    deleted = []
    is_watched = sys.stderr.isatty()
    for place, session in enumerate(reversed(old), 1):
        try:
            connection.call("session.delete", session=text(session, "id"))
        except CallError as error:
            sys.stderr.write(one_line(f"{text(session, 'id')} was not deleted: {error}") + "\n")
        else:
            deleted.append(session)
        if is_watched:
            sys.stderr.write(f"\rdeleting {place:d} of {len(old)}" + ("\n" if place == len(old) else ""))
    return deleted


def _tell(args: argparse.Namespace, sessions: Sequence[Json], kept: int, sizes: Json) -> int:
    before, after = number(sizes, "before_bytes"), number(sizes, "after_bytes")
    if args.json:
        ids = [text(session, "id") for session in sessions]
        figures = {"before_bytes": before, "after_bytes": after} if sizes else {}
        output.print_json({"v": 1, "dry_run": args.dry_run, "sessions": ids, "in_use": kept, **figures})
        return 0
    count = counted(len(sessions), "session")
    if args.dry_run:
        rows = [[text(one, "id"), text(one, "name"), output.moment(text(one, "updated"))] for one in sessions]
        output.print_table(["ID", "NAME", "UPDATED"], rows)
        print(one_line(f"{count} would be deleted; {kept} just as old are in use and would be kept"))
        return 0
    stay = f"; {kept} just as old are in use and were kept" if kept else ""
    print(one_line(f"{count} deleted{stay}"))
    print(one_line(f"the database is now {size(after)}, was {size(before)}"))
    return 0


def _age(word: str) -> timedelta:
    unit = UNITS.get(word[-1:])
    try:
        if unit is not None and word[:-1].isdecimal():
            age = timedelta(**{unit: int(word[:-1])})
            datetime.now(UTC) - age
            return age
    except OverflowError:
        pass
    raise argparse.ArgumentTypeError(f'invalid age "{word}"; use a form such as 90d or 12w')

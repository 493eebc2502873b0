"""`zotctl audit`: who has decided what (`docs/audit.md`)."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, text

EPILOG = """\
examples:
  zotctl audit                                  the newest 50 entries
  zotctl audit --command approve --limit 200
  zotctl audit --who token:phone --json

An entry is stored before its command takes effect. It has no texts, no arguments of tools and no secrets.
"""

PAGE = 500
"""Entries that are asked for at a time."""


def add(commands: Subparsers) -> None:
    """Register `audit`."""
    parser = commands.add_parser("audit", help="show who has decided what", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--session", metavar="SESSION", help="only about this session")
    parser.add_argument("--who", metavar="WHO", help="only of this account, such as token:phone")
    parser.add_argument("--command", metavar="COMMAND", help="only this command, such as approve")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="number of entries (default: 50)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_list)


def _list(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise ClientError(f"--limit {args.limit}: it must be at least 1")
    given: dict[str, object] = {
        name: getattr(args, name) for name in ("session", "who", "command") if getattr(args, name)
    }
    found: list[Json] = []
    cursor: str | None = None
    with link.connect("zotctl", role="admin") as connection:
        while len(found) < args.limit:
            fields = given | {"limit": min(PAGE, args.limit - len(found))} | ({"cursor": cursor} if cursor else {})
            page = connection.call("audit.list", fields)
            found += children(page, "entries")
            cursor = text(page, "cursor")
            if not cursor:
                break
    if args.json:
        output.print_json({"v": 1, "entries": found})
        return 0
    output.print_table(["TIME", "WHO", "COMMAND", "SESSION", "DETAILS", "OUTCOME"], [_row(one) for one in found])
    return 0


def _row(one: Json) -> list[str]:
    details = one.get("details")
    shown = " ".join(f"{name}={value}" for name, value in details.items()) if isinstance(details, dict) else ""
    outcome = text(one, "outcome") or "unknown"
    return [
        output.moment(text(one, "time")),
        text(one, "who"),
        text(one, "command"),
        text(one, "session"),
        shown,
        outcome,
    ]
